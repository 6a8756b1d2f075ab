//! Transfers that exceed the links: large data over small rings, many operations, and messages
//! before their receives.

mod support;

use longshore::job::{Checking, Routes};
use longshore::sim::{Options, run, run_shared};
use longshore::{
    ANY_SOURCE, ANY_TAG, Architecture, Class, Communicator, Datatype, Destination, Info, LockType,
    Origin, PROC_NULL, Rank, Window,
};

const UNLIKE: [Architecture; 3] = [Architecture::S390X, Architecture::NATIVE, Architecture::I686];

/// Every rank puts to and gets from every rank at once, with more data than all links hold.
fn flood(rank: Rank) {
    flood_one(&rank, Window::allocate);
    flood_one(&rank, support::allocate_shared);
    rank.finalize().unwrap();
}

fn flood_one(rank: &Rank, make: fn(&Communicator, i64, i64, &Info) -> longshore::Result<Window>) {
    let world = rank.world();
    let (me, size) = (world.rank(), world.size());
    const LEN: usize = 20_000;
    let bytes = LEN as i64 * 8 * i64::from(size);
    let mut window = make(world, bytes, 8, &Info::default()).unwrap();
    let long = rank.type_of::<i64>().unwrap();
    let block = |from: i32, to: i32| -> Vec<i64> {
        (0..LEN as i64).map(|at| at << 20 | i64::from(from) << 10 | i64::from(to)).collect()
    };
    let blocks: Vec<_> = (0..size).map(|to| block(me, to)).collect();
    let place = |of: i32| i64::from(of) * LEN as i64;
    window
        .fence(|epoch| {
            for (to, data) in blocks.iter().enumerate() {
                epoch.put(data, to as i32, place(me), LEN as i64, &long)?;
            }
            Ok(())
        })
        .unwrap();
    let mut found = vec![0i64; LEN];
    for from in 0..size {
        window.read(place(from), &mut found).unwrap();
        assert!(found == block(from, me), "rank {me} from {from}");
    }
    let mut back = vec![vec![0i64; LEN]; size as usize];
    window
        .fence(|epoch| {
            for (from, room) in back.iter_mut().enumerate() {
                epoch.get(room, from as i32, place(me), LEN as i64, &long)?;
            }
            Ok(())
        })
        .unwrap();
    for (from, found) in back.iter().enumerate() {
        assert!(*found == block(me, from as i32));
    }
    window.free().unwrap();
}

#[test]
fn large_transfers_pass_small_links() {
    let small =
        Options { architectures: UNLIKE.to_vec(), frame: 256, frames: 2, ..Options::default() };
    run(3, &small, flood).unwrap();
    run_shared(3, &Options { architectures: UNLIKE.to_vec(), ..Options::default() }, flood)
        .unwrap();
    run_shared(3, &Options { routes: Routes::Message, ..Options::default() }, flood).unwrap();
    run_shared(3, &Options::default(), flood).unwrap();
}

#[test]
fn more_operations_than_may_be_in_flight_complete() {
    let many = |rank: Rank| {
        let world = rank.world();
        let me = world.rank();
        let mut window = Window::allocate(world, 4 * 2000 * 3, 4, &Info::default()).unwrap();
        let int = rank.type_of::<i32>().unwrap();
        let values: Vec<i32> = (0..2000).collect();
        window
            .fence(|epoch| {
                for (at, value) in values.chunks(1).enumerate() {
                    for to in 0..world.size() {
                        epoch.put(value, to, at as i64 * 3 + i64::from(me), 1, &int)?;
                    }
                }
                Ok(())
            })
            .unwrap();
        let mut found = vec![0i32; 6000];
        window.read(0, &mut found).unwrap();
        assert!(found.iter().enumerate().all(|(at, value)| *value == at as i32 / 3));
        window.free().unwrap();
        rank.finalize().unwrap();
    };
    let options =
        Options { architectures: UNLIKE.to_vec(), frame: 128, frames: 1, ..Options::default() };
    run(3, &options, many).unwrap();
    run_shared(3, &options, many).unwrap();
}

#[test]
fn one_value_needs_no_array() {
    let options = Options { architectures: UNLIKE.to_vec(), ..Options::default() };
    run(3, &options, |rank| {
        let world = rank.world();
        let (me, size) = (world.rank(), world.size());
        let (next, before) = ((me + 1) % size, (me + size - 1) % size);
        let double = rank.type_of::<f64>().unwrap();
        let mut window = Window::allocate(world, 8, 8, &Info::default()).unwrap();
        let (value, mut got) = (f64::from(me), -1.0);
        window.fence(|epoch| epoch.put(&value, next, 0, 1, &double)).unwrap();
        window.fence(|epoch| epoch.get(&mut got, next, 0, 1, &double)).unwrap();
        assert_eq!((window.get::<f64>(0).unwrap(), got), (f64::from(before), value));
        let (mut other, mut sum) = (-1, 0);
        world.sendrecv((&me, next, 0), (&mut other, before, 0)).unwrap();
        assert_eq!(other, before);
        world.allreduce(&me, &mut sum, longshore::Op::Sum).unwrap();
        assert_eq!(sum, 3);
        window.free().unwrap();
        rank.finalize().unwrap();
    })
    .unwrap();
}

#[test]
fn messages_wait_for_their_receives() {
    let talk = |rank: Rank| {
        let world = rank.world();
        let me = world.rank();
        let long: Vec<f64> = (0..50_000).map(|at| f64::from(at) / 3.0).collect();
        if me == 0 {
            // More messages than the queues have room for, received in reverse order.
            for tag in 0..200 {
                world.send(&[tag; 100], 1, tag).unwrap();
            }
            world.send(&long, 2, 5).unwrap();
            let status = world.recv(&mut [0u16; 4], ANY_SOURCE, ANY_TAG).unwrap();
            assert_eq!((status.source, status.tag, status.count), (2, 9, 3));
        } else if me == 1 {
            let mut room = [0i32; 100];
            for tag in (0..50).rev() {
                world.recv(&mut room, 0, tag).unwrap();
                assert_eq!(room, [tag; 100]);
            }
            for _ in 50..200 {
                let status = world.recv(&mut room, 0, ANY_TAG).unwrap();
                assert_eq!(room[99], status.tag);
            }
        } else {
            let mut room = vec![0.0f64; 60_000];
            let status = world.recv(&mut room, 0, 5).unwrap();
            assert_eq!(status.count, 50_000);
            assert!(room[..50_000] == long[..]);
            world.send(&[1u16, 2, 3], 0, 9).unwrap();
        }
        world.barrier().unwrap();
        let all = world.allgather(&[me, me * me]).unwrap();
        assert_eq!(all, [0, 0, 1, 1, 2, 4]);
        rank.finalize().unwrap();
    };
    let options = Options { architectures: UNLIKE.to_vec(), ..Options::default() };
    run(3, &options, talk).unwrap();
    run_shared(3, &options, talk).unwrap();
    run_shared(3, &Options::default(), talk).unwrap();
}

#[test]
fn receives_refuse_messages_that_do_not_fit() {
    let talk = |rank: Rank| {
        let world = rank.world();
        let long = vec![1.5f64; 10_000];
        if world.rank() == 0 {
            world.send(&[1i32, 2, 3], 1, 0).unwrap();
            world.send(&[1i32, 2, 3], 1, 1).unwrap();
            world.send(&long, 1, 2).unwrap();
            world.send(&long, 1, 3).unwrap();
            assert_eq!(world.send(&long, 1, -4).unwrap_err().class(), Class::Tag);
            assert_eq!(world.send(&long, 4, 4).unwrap_err().class(), Class::Rank);
        } else {
            let error = world.recv(&mut [0i32; 2], 0, 0).unwrap_err();
            assert_eq!(error.class(), Class::Truncate, "{error}");
            let error = world.recv(&mut [0.0f32; 3], 0, 1).unwrap_err();
            assert_eq!(error.class(), Class::Type, "{error}");
            let error = world.recv(&mut [0.0f64; 2], 0, 2).unwrap_err();
            assert_eq!(error.class(), Class::Truncate, "{error}");
            let mut room = vec![0.0f64; 10_000];
            world.recv(&mut room, 0, 3).unwrap();
            assert!(room == long);
        }
        rank.finalize().unwrap();
    };
    run(2, &Options::default(), talk).unwrap();
    run_shared(2, &Options::default(), talk).unwrap();
}

#[test]
fn created_windows_give_their_memory_back() {
    let body = |rank: Rank| {
        let world = rank.world();
        let int = rank.type_of::<i32>().unwrap();
        let next = (world.rank() + 1) % world.size();
        let buffer = rank.buffer::<i32>(4).unwrap();
        let mut window = Window::create(world, buffer, 4, &Info::default()).unwrap();
        window.fence(|epoch| epoch.put(&[7, 8], next, 1, 2, &int)).unwrap();
        assert_eq!(window.free().unwrap().to_vec().unwrap(), [0, 7, 8, 0]);
        let outcome = Window::create(world, vec![0i32; 4], 4, &Info::default());
        if rank.is_emulated() {
            assert_eq!(outcome.err().unwrap().class(), Class::Buffer);
        } else if let Ok(mut window) = outcome {
            window.fence(|epoch| epoch.put(&[9], next, 3, 1, &int)).unwrap();
            assert_eq!(window.free().unwrap(), [0, 0, 0, 9]);
        }
        let boxed = vec![0u8; 16].into_boxed_slice();
        let window = Window::create(world, boxed, 4, &Info::default()).unwrap();
        assert_eq!(*window.free().unwrap(), [0; 16]);
        rank.finalize().unwrap();
    };
    let options = Options { architectures: UNLIKE.to_vec(), ..Options::default() };
    run(3, &options, body).unwrap();
    run_shared(3, &Options::default(), body).unwrap();
}

#[test]
fn types_are_defined_once_and_retired() {
    let options = Options { routes: Routes::Message, ..Options::default() };
    let kinds = run(2, &options, |rank| {
        use longshore::{Direction, wire};
        let world = rank.world();
        let mut window = Window::allocate(world, 800, 8, &Info::default()).unwrap();
        rank.tap(world.rank() == 0);
        let column = Datatype::vector(2, 1, 10, &Datatype::double()).unwrap();
        let column = rank.commit(&column).unwrap();
        for _ in 0..3 {
            let me = world.rank();
            let put = |epoch: &longshore::Epoch<'_, '_>| match me {
                0 => epoch.put(&[1.0f64, 2.0], 1, 0, 1, &column),
                _ => Ok(()),
            };
            window.fence(put).unwrap();
        }
        drop(column);
        world.barrier().unwrap();
        window.fence(|_| Ok(())).unwrap();
        window.free().unwrap();
        world.send(&[0u8], world.rank(), 0).unwrap();
        let frames = rank.tapped();
        let sent = frames.iter().filter(|frame| frame.direction == Direction::Sent);
        let kinds: Vec<_> = sent
            .filter(|frame| frame.peer == 1)
            .filter_map(|frame| wire::describe(&frame.bytes))
            .filter(|frame| frame.form.is_some())
            .map(|frame| (frame.kind, frame.tag, frame.payload))
            .collect();
        world.recv(&mut [0u8], world.rank(), 0).unwrap();
        rank.finalize().unwrap();
        kinds
    })
    .unwrap();
    use longshore::wire::Kind;
    let kinds: Vec<_> = kinds[0].iter().map(|(kind, tag, _)| (*kind, *tag)).collect();
    let put = (Kind::Put, None);
    assert_eq!(kinds, [(Kind::Define, Some("portable")), put, put, put, (Kind::Retire, None)]);
}

/// Like ranks reach memory directly on one host, and with LONGSHORE_SIM_HOSTS through the network.
#[test]
fn puts_into_reachable_memory_send_no_form() {
    let options = Options { adversary: None, check: Checking::Off, ..Options::default() };
    let kinds = run_shared(2, &options, |rank| {
        let world = rank.world();
        let values = vec![1.5f64; 1 << 17];
        let mut window = Window::allocate(world, 1 << 20, 8, &Info::default()).unwrap();
        let doubles = Datatype::contiguous(1 << 17, &Datatype::double()).unwrap();
        let doubles = rank.commit(&doubles).unwrap();
        rank.tap(true);
        let target = if world.rank() == 0 { 1 } else { PROC_NULL };
        window.fence(|epoch| epoch.put(&values, target, 0, 1, &doubles)).unwrap();
        let frames = rank.tapped();
        if world.rank() == 1 {
            let mut found = vec![0f64; 1 << 17];
            window.read(0, &mut found).unwrap();
            assert!(found == values);
        }
        window.free().unwrap();
        rank.finalize().unwrap();
        let kinds = frames.iter().filter_map(|frame| longshore::wire::describe(&frame.bytes));
        kinds.filter(|frame| frame.form.is_some()).map(|frame| frame.kind).collect::<Vec<_>>()
    });
    assert_eq!(kinds.unwrap(), [[], []]);
}

/// Messages longer than a short one, of each layout on both sides. Between like ranks of a host the
/// receiver copies them where it can.
#[test]
fn long_messages_arrive_in_every_layout() {
    for count in [513, 4096, 40_000] {
        let body = |rank: Rank| {
            let (world, count) = (rank.world(), count as usize);
            let column = Datatype::vector(count as i64, 1, 2, &Datatype::int64()).unwrap();
            let blocks = [count as i64 - 300, 300];
            let pieces = Datatype::indexed(&blocks, &[400, 0], &Datatype::int64()).unwrap();
            let [column, pieces] = [column, pieces].map(|form| rank.commit(&form).unwrap());
            let (me, size) = (world.rank(), world.size());
            // In the order of the stream, at the places of each layout.
            let value = |at: usize, by: i32| (at as i64) << 8 | i64::from(by);
            let places: [Vec<usize>; 3] = [
                (0..count).collect(),
                (0..count).map(|at| 2 * at).collect(),
                (400..400 + count - 300).chain(0..300).collect(),
            ];
            let (next, before) = ((me + 1) % size, (me + size - 1) % size);
            for (sent, of) in places.iter().enumerate() {
                for (taken, to) in places.iter().enumerate() {
                    let mut data = vec![-1; 2 * count + 100];
                    of.iter().enumerate().for_each(|(at, &place)| data[place] = value(at, me));
                    let mut room = vec![-2; 2 * count + 100];
                    let origin = match sent {
                        0 => Origin::from(&data[..count]),
                        1 => Origin::typed(&data[..], 1, &column),
                        _ => Origin::typed(&data[..], 1, &pieces),
                    };
                    let destination = match taken {
                        // With more room than the message has elements.
                        0 => Destination::from(&mut room[..]),
                        1 => Destination::typed(&mut room[..], 1, &column),
                        _ => Destination::typed(&mut room[..], 1, &pieces),
                    };
                    world.sendrecv((origin, next, 7), (destination, before, 7)).unwrap();
                    let found = to.iter().map(|&place| room[place]);
                    assert!(found.eq((0..count).map(|at| value(at, before))), "{sent} {taken}");
                    let untouched = room.iter().filter(|&&value| value == -2).count();
                    assert_eq!(untouched, room.len() - count);
                }
            }
            rank.finalize().unwrap();
        };
        for ranks in 1..4 {
            run(ranks, &Options::default(), body).unwrap();
        }
        run_shared(2, &Options::default(), body).unwrap();
        let options = Options { routes: Routes::Message, ..Options::default() };
        run(3, &options, body).unwrap();
    }
}

#[test]
fn calls_that_need_an_exited_rank_fail() {
    let options = Options { architectures: UNLIKE.to_vec(), ..Options::default() };
    let body = |rank: Rank| {
        let world = rank.world();
        let mut window = Window::allocate(world, 8, 8, &Info::default()).unwrap();
        let long = rank.type_of::<i64>().unwrap();
        if world.rank() == 1 {
            // The other ranks have made the window before this one exits.
            world.recv(&mut [0u8], 0, 0).unwrap();
            world.recv(&mut [0u8], 2, 0).unwrap();
            return; // without finalize: as if it had died
        }
        world.send(&[0u8], 1, 0).unwrap();
        let error = window.fence(|epoch| epoch.put(&[1i64], 1, 0, 1, &long)).unwrap_err();
        assert_eq!(error.class(), Class::ProcAborted, "{error}");
        let error = world.barrier().unwrap_err();
        assert_eq!(error.class(), Class::ProcAborted, "{error}");
        assert!(error.to_string().contains("rank 1 is gone"), "{error}");
        let error = world.recv(&mut [0i32], 1, 0).unwrap_err();
        assert_eq!(error.class(), Class::ProcAborted, "{error}");
        let error = world.send(&[0i32; 10_000], 1, 0).unwrap_err();
        assert_eq!(error.class(), Class::ProcAborted, "{error}");
        // The remaining ranks still reach each other.
        let other = 2 - world.rank();
        world.send(&[world.rank()], other, 3).unwrap();
        let mut heard = [9];
        world.recv(&mut heard, other, 3).unwrap();
        assert_eq!(heard, [other]);
    };
    run(3, &options, body).unwrap();
    run_shared(3, &options, body).unwrap();
    run_shared(3, &Options::default(), body).unwrap();
}

/// Puts with consecutive numbers under an adversary. Returns the numbers in the order of sending,
/// and the length of the shortest first frame.
fn puts_sent(seed: u64) -> (Vec<u64>, usize) {
    let check = Checking::Off;
    let options = Options { adversary: Some(seed), seed, check, ..Options::default() };
    let sent = run(2, &options, |rank| {
        let world = rank.world();
        let mut window = Window::allocate(world, 8 * 1000, 8, &Info::default()).unwrap();
        let long = rank.type_of::<i64>().unwrap();
        let blocks: Vec<Vec<i64>> = (0..10).map(|block| vec![block; 100]).collect();
        rank.tap(world.rank() == 0);
        let mine = if world.rank() == 0 { &blocks[..] } else { &[] };
        let fenced = window.fence(|epoch| {
            let mut numbered = mine.iter().enumerate();
            numbered.try_for_each(|(at, block)| epoch.put(block, 1, 100 * at as i64, 100, &long))
        });
        fenced.unwrap();
        if world.rank() == 1 {
            let mut found = vec![0i64; 1000];
            window.read(0, &mut found).unwrap();
            assert_eq!(found, blocks.concat());
        }
        window.free().unwrap();
        let frames = rank.tapped();
        rank.finalize().unwrap();
        let sent = frames.iter().filter(|frame| frame.direction == longshore::Direction::Sent);
        let puts = sent.filter_map(|frame| longshore::wire::describe(&frame.bytes));
        let puts: Vec<_> = puts.filter(|frame| frame.kind == longshore::wire::Kind::Put).collect();
        let numbers = puts.iter().filter_map(|frame| frame.operation).collect();
        (numbers, puts.iter().map(|frame| frame.payload).min().unwrap_or(0))
    });
    sent.unwrap().swap_remove(0)
}

#[test]
fn the_adversary_reorders_and_splits_puts() {
    let runs: Vec<_> = (0..20).map(puts_sent).collect();
    let ordered = |numbers: &Vec<u64>| numbers.is_sorted();
    assert!(runs.iter().all(|(numbers, _)| numbers.len() == 10));
    assert!(runs.iter().any(|(numbers, _)| !ordered(numbers)), "{runs:?}");
    assert!(runs.iter().any(|(_, shortest)| *shortest < 800), "{runs:?}");
    assert_eq!(puts_sent(3), puts_sent(3), "a seed is a run");
}

/// An operation that was valid once isn't checked again, but an operation that differs from it is.
#[test]
fn an_operation_that_differs_from_a_valid_one_is_checked() {
    let whole = |rank: Rank| {
        let world = rank.world();
        let (me, other) = (world.rank(), 1 - world.rank());
        let commit = |datatype| rank.commit(&datatype).unwrap();
        let column = commit(Datatype::vector(4, 1, 3, &Datatype::double()).unwrap());
        let transposed = {
            let column = Datatype::vector(3, 1, 3, &Datatype::double()).unwrap();
            let column = Datatype::resized(0, 8, &column).unwrap();
            commit(Datatype::contiguous(3, &column).unwrap())
        };
        let row = commit(Datatype::contiguous(4, &Datatype::double()).unwrap());
        let info = Info::default().set("target_types", "same_layout").unwrap();
        let window = Window::allocate(world, 12 * 8, 8, &info).unwrap();
        let matrix: Vec<f64> = (0..12).map(|at| f64::from(at + 100 * me)).collect();
        let mut room = [0u8; 96];
        let bytes: Vec<u8> = matrix.iter().flat_map(|value| value.to_ne_bytes()).collect();
        window
            .lock_all(|epoch| {
                for _ in 0..3 {
                    let from = Origin::typed(&bytes[..], 1, &column);
                    epoch.flush(other, |epoch| epoch.put(from, other, 0, 1, &column))?;
                    let from = Origin::typed(&bytes[..], 1, &transposed);
                    epoch.flush(other, |epoch| epoch.put(from, other, 0, 1, &transposed))?;
                    epoch.flush(other, |epoch| epoch.put(&matrix[8..], other, 2, 1, &column))?;
                    let mut back = [0.0; 4];
                    epoch.flush(other, |epoch| epoch.get(&mut back, other, 2, 1, &column))?;
                    assert_eq!(back, matrix[8..]);
                }
                let refusals = [
                    epoch.put(Origin::typed(&bytes[..], 1, &column), other, 3, 1, &column),
                    epoch.put(Origin::typed(&bytes[..], 1, &column), other, -1, 1, &column),
                    epoch.put(Origin::typed(&bytes[..72], 1, &column), other, 0, 1, &column),
                    epoch.put(Origin::typed(&bytes[..], 1, &column).at(24), other, 0, 1, &column),
                    epoch.put(Origin::typed(&bytes[..], 1, &column), other, 0, 2, &column),
                    epoch.put(Origin::typed(&bytes[..], 1, &column), 2, 0, 1, &column),
                    epoch.put(&matrix[8..], other, 3, 1, &column),
                    epoch.put(&matrix[7..], other, 0, 1, &column),
                    epoch.get(
                        Destination::typed(&mut room[..72], 1, &column),
                        other,
                        0,
                        1,
                        &column,
                    ),
                    epoch.put(&matrix[8..], other, 9, 1, &row),
                ];
                let classes = refusals.map(|refused| refused.unwrap_err().class());
                use Class::{Buffer, Disp, Rank, RmaRange, Type};
                let expected =
                    [RmaRange, Disp, Buffer, Buffer, Type, Rank, RmaRange, Type, Buffer, RmaRange];
                assert_eq!(classes, expected);
                Ok(())
            })
            .unwrap();
        world.barrier().unwrap();
        let theirs = |at: usize| at as f64 + 100.0 * f64::from(other);
        let mut expected = [0, 1, 8, 3, 4, 9, 6, 7, 10, 9, 0, 11].map(theirs);
        expected[10] = 0.0;
        let mut found = [0.0; 12];
        window.read(0, &mut found).unwrap();
        assert_eq!(found, expected);
        let outside = window.lock(me, LockType::Shared, |epoch| {
            epoch.put(Origin::typed(&bytes[..], 1, &column), other, 0, 1, &column)
        });
        assert_eq!(outside.unwrap_err().class(), Class::RmaSync);
        window.free().unwrap();
        rank.finalize().unwrap();
    };
    for routes in [Routes::Best, Routes::Message] {
        run_shared(2, &Options { routes, ..Options::default() }, whole).unwrap();
    }
}

/// Elements of one type on both sides, of which one may be a run while several are not. Each number
/// of them moves all its elements, whatever number came before.
#[test]
fn every_number_of_elements_of_one_type_moves_whole() {
    const LAST: usize = 5;
    let whole = |rank: Rank| {
        let world = rank.world();
        let other = 1 - world.rank();
        let commit = |datatype| rank.commit(&datatype).unwrap();
        let double = Datatype::double();
        let types = [
            // One element is a run, and several have gaps between them.
            commit(Datatype::resized(0, 24, &double).unwrap()),
            // One element has a gap already.
            commit(Datatype::vector(2, 1, 2, &double).unwrap()),
            // Elements that lie within each other.
            commit(Datatype::resized(0, 8, &Datatype::vector(2, 1, 7, &double).unwrap()).unwrap()),
        ];
        // What items an element has, and the distance to the next element, in doubles.
        let layouts: [(&[usize], usize); 3] = [(&[0], 3), (&[0, 2], 3), (&[0, 7], 1)];
        let info = Info::default().set("target_types", "same_layout").unwrap();
        let mut window = Window::allocate(world, 16 * 8, 8, &info).unwrap();
        for (datatype, (items, extent)) in types.iter().zip(layouts) {
            for count in [1, 2, 3, 1, LAST, 2] {
                let touched = |at: usize| {
                    (0..count).any(|n| items.iter().any(|item| n * extent + item == at))
                };
                let data: Vec<f64> = (1..=16).map(|at| f64::from(at + 100 * other)).collect();
                let bytes: Vec<u8> = data.iter().flat_map(|value| value.to_ne_bytes()).collect();
                window.write(0, &[0.0; 16]).unwrap();
                world.barrier().unwrap();
                let elements = count as i64;
                let from = || Origin::typed(&bytes[..], elements, datatype);
                window.fence(|epoch| epoch.put(from(), other, 0, elements, datatype)).unwrap();
                let mut found = [0.0; 16];
                window.read(0, &mut found).unwrap();
                for (at, &found) in found.iter().enumerate() {
                    let put = f64::from(at as i32 + 1 + 100 * world.rank());
                    let expected = if touched(at) { put } else { 0.0 };
                    assert_eq!(found, expected, "{count} of {datatype}, item {at}");
                }
                let mut back = [0u8; 16 * 8];
                let to = Destination::typed(&mut back[..], elements, datatype);
                window.fence(|epoch| epoch.get(to, other, 0, elements, datatype)).unwrap();
                for (at, back) in back.chunks(8).enumerate() {
                    let back = f64::from_ne_bytes(back.try_into().unwrap());
                    let expected = if touched(at) { data[at] } else { 0.0 };
                    assert_eq!(back, expected, "{count} of {datatype} gotten, item {at}");
                }
            }
        }
        window.free().unwrap();
        rank.finalize().unwrap();
    };
    for routes in [Routes::Best, Routes::Message] {
        run_shared(2, &Options { routes, ..Options::default() }, whole).unwrap();
    }
}

/// docs/mpi.md, "Messages and collective calls": so many short messages need no receive.
#[test]
fn six_hundred_eighty_short_messages_are_buffered() {
    run(2, &Options::default(), |rank| {
        let world = rank.world();
        if world.rank() == 0 {
            (0..680i64).for_each(|at| world.send(&[at], 1, 0).unwrap());
        }
        world.barrier().unwrap();
        if world.rank() == 1 {
            for at in 0..680i64 {
                let mut got = [0i64];
                world.recv(&mut got, 0, 0).unwrap();
                assert_eq!(got, [at]);
            }
        }
        rank.finalize().unwrap();
    })
    .unwrap();
}
