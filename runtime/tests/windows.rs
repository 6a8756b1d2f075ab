//! Windows of every flavor: their creation, their attributes, and operations on all of them.

mod support;

use std::sync::{Arc, Mutex};

use longshore::job::{Checking, Routes};
use longshore::sim::{Options, run, run_shared};
use longshore::{
    Architecture, Assert, Callbacks, Class, Communicator, Datatype, ErrorHandler, Flavor, Given,
    Info, Keyval, LockType, Model, Op, PROC_NULL, Pointed, Rank, Window,
};

use support::{allocate_shared, crowd};

const UNLIKE: [Architecture; 3] = [Architecture::S390X, Architecture::NATIVE, Architecture::I686];

/// Runs a test between like and unlike ranks, directly and by message, simulated and on threads.
fn everywhere(ranks: u32, body: impl Fn(&Rank, &Communicator) + Sync) {
    let whole = |rank: Rank| {
        body(&rank, rank.world());
        rank.finalize().unwrap();
    };
    for (architectures, routes) in
        [(vec![], Routes::Best), (vec![], Routes::Message), (UNLIKE.to_vec(), Routes::Best)]
    {
        let options = Options { architectures, routes, ..Options::default() };
        run(ranks, &options, whole).unwrap();
        run_shared(ranks, &options, whole).unwrap();
    }
}

#[test]
fn shared_segments_are_contiguous() {
    everywhere(3, |_, world| {
        let sizes = [24, 0, 13];
        let size = sizes[world.rank() as usize];
        let window = Window::allocate_shared(world, size, 1, &Info::default()).unwrap();
        assert_eq!((window.flavor(), window.model()), (Flavor::Shared, Model::Unified));
        let parts: Vec<_> = (0..3).map(|rank| window.shared_query(rank).unwrap()).collect();
        let start = parts[0].base() as usize;
        let places: Vec<_> = parts
            .iter()
            .map(|part| (part.rank(), part.base() as usize - start, part.size()))
            .collect();
        assert_eq!(places, [(0, 0, 24), (1, 24, 0), (2, 24, 13)]);
        assert_eq!(window.base(), parts[world.rank() as usize].base());
        window.free().unwrap();
    });
}

#[test]
fn noncontiguous_shared_segments_begin_on_pages() {
    everywhere(crowd(3), |_, world| {
        let info = Info::default().set("alloc_shared_noncontig", "true").unwrap();
        let size = 100 * i64::from(world.rank() + 1);
        let window = Window::allocate_shared(world, size, 4, &info).unwrap();
        for rank in 0..3 {
            let part = window.shared_query(rank).unwrap();
            assert_eq!((part.base() as usize % 4096, part.disp_unit()), (0, 4));
            assert_eq!(part.size(), 100 * (i64::from(rank) + 1));
        }
        window.free().unwrap();
        // A long segment begins inside its page, unless the info asks otherwise.
        for (alignment, places) in [("64", [64, 192, 320]), ("128", [0; 3])] {
            let info = info.set("mpi_minimum_memory_alignment", alignment).unwrap();
            let window = Window::allocate_shared(world, 100_000, 4, &info).unwrap();
            for (rank, place) in (0..3).zip(places) {
                let part = window.shared_query(rank).unwrap();
                assert_eq!(part.base() as usize % 4096, place);
            }
            window.free().unwrap();
        }
        let mixed = if world.rank() == 1 { "true" } else { "false" };
        let info = info.set("alloc_shared_noncontig", mixed).unwrap();
        let error = Window::allocate_shared(world, 8, 1, &info).err().unwrap();
        assert_eq!(error.class(), Class::Arg);
        assert!(error.to_string().contains("alloc_shared_noncontig"), "{error}");
    });
}

/// Each rank stores a value to each segment. The owner loads it in its own representation.
#[test]
fn a_value_that_one_rank_stores_is_loaded_by_another() {
    everywhere(crowd(3), |rank, world| {
        let (me, size) = (world.rank(), world.size());
        let window =
            Window::allocate_shared(world, 8 * i64::from(size), 8, &Info::default()).unwrap();
        for target in 0..size {
            let part = window.shared_query(target).unwrap();
            part.set(me.into(), 1.5 + f64::from(10 * me + target)).unwrap();
        }
        window.lock_all(|epoch| epoch.sync()).unwrap();
        world.barrier().unwrap();
        window.lock_all(|epoch| epoch.sync()).unwrap();
        for from in 0..size {
            assert_eq!(window.get::<f64>(from.into()).unwrap(), 1.5 + f64::from(10 * from + me));
        }
        let next = window.shared_query((me + 1) % size).unwrap();
        let value = 1.5 + f64::from(10 * me + next.rank());
        let big = next.architecture().order() == shipable::arch::ByteOrder::Big;
        let bytes = if big { value.to_be_bytes() } else { value.to_le_bytes() };
        assert_eq!(next.bytes(8 * i64::from(me), 8).unwrap(), bytes);
        assert_eq!(window.local().architecture(), rank.architecture());
        let error = next.get::<f64>(size.into()).unwrap_err();
        assert_eq!(error.class(), Class::RmaRange);
        assert!(error.to_string().contains(&format!("target {}", next.rank())), "{error}");
        window.free().unwrap();
    });
}

#[test]
fn equal_lengths_match_between_like_ranks_of_the_same_layout() {
    for routes in [Routes::Best, Routes::Message] {
        let options = Options { routes, ..Options::default() };
        run(2, &options, |rank| {
            let (world, next) = (rank.world(), 1 - rank.world().rank());
            let info = Info::default().set("target_types", "same_layout").unwrap();
            let mut window = Window::allocate(world, 64, 1, &info).unwrap();
            let long = rank.type_of::<i64>().unwrap();
            let pairs = rank.commit(&Datatype::vector(2, 1, 2, &Datatype::int()).unwrap()).unwrap();
            let bytes: Vec<u8> = (1..=16).collect();
            window
                .fence(|epoch| {
                    epoch.put(&bytes[..], next, 0, 2, &long)?;
                    epoch.put(&[7i64 << 32 | 5], next, 32, 1, &pairs)
                })
                .unwrap();
            assert_eq!(window.local().bytes(0, 16).unwrap(), bytes);
            let halves = [0, 8].map(|at| window.get::<i32>(32 + at).unwrap());
            // In the order of the halves in this machine's memory.
            assert_eq!(halves, if cfg!(target_endian = "little") { [5, 7] } else { [7, 5] });
            let mut back = [0u8; 8];
            window.fence(|epoch| epoch.get(&mut back[..], next, 32, 1, &pairs)).unwrap();
            assert_eq!(i64::from_ne_bytes(back), 7i64 << 32 | 5);
            let error = window.fence(|epoch| epoch.put(&bytes[..15], next, 0, 2, &long));
            assert_eq!(error.unwrap_err().class(), Class::Type);
            window.free().unwrap();
            // Without the policy, signatures are equal.
            let mut strict = Window::allocate(world, 64, 1, &Info::default()).unwrap();
            let error = strict.fence(|epoch| epoch.put(&bytes[..], next, 0, 2, &long));
            assert_eq!(error.unwrap_err().class(), Class::Type);
            strict.free().unwrap();
            rank.finalize().unwrap();
        })
        .unwrap();
    }
}

#[test]
fn shared_query_of_any_flavor_reports_what_can_be_loaded() {
    // The adversary, and checks, hide the memory of others.
    let (adversary, check, hosts) = (None, Checking::Off, vec![0, 0]);
    let options = Options { adversary, check, hosts, ..Options::default() };
    run(2, &options, |rank| {
        let world = rank.world();
        let (me, other) = (world.rank(), 1 - world.rank());
        let allocated = Window::allocate(world, 16, 8, &Info::default()).unwrap();
        allocated.local().set(1, f64::from(me)).unwrap();
        allocated.raw().fence(Assert::NONE).unwrap();
        let theirs = allocated.shared_query(other).unwrap();
        assert_eq!((theirs.rank(), theirs.size(), theirs.disp_unit()), (other, 16, 8));
        assert_eq!(theirs.get::<f64>(1).unwrap(), f64::from(other));
        allocated.raw().fence(Assert::NOSUCCEED).unwrap();
        allocated.free().unwrap();
        // Memory that the program points to stays where it is.
        let mut bytes = [0u8; 8];
        #[allow(unsafe_code)]
        // SAFETY: the array outlives the window, and is used only by it.
        let memory = unsafe { Pointed::new(bytes.as_mut_ptr(), 8) };
        let created = Window::create(world, memory, 1, &Info::default()).unwrap();
        assert_eq!(created.shared_query(me).unwrap().size(), 8);
        assert_eq!(created.shared_query(other).unwrap().size(), 0);
        created.free().unwrap();
        let dynamic = Window::create_dynamic(world, &Info::default()).unwrap();
        let none = dynamic.shared_query(me).unwrap();
        assert_eq!((none.size(), none.base().is_null()), (0, true));
        dynamic.free().unwrap();
        rank.finalize().unwrap();
    })
    .unwrap();
}

#[test]
fn shared_query_of_proc_null_returns_the_first_segment_with_memory() {
    everywhere(crowd(3), |_, world| {
        let info = Info::default();
        let size = if world.rank() == 0 { 0 } else { 16 };
        let window = Window::allocate_shared(world, size, 2, &info).unwrap();
        let first = window.shared_query(PROC_NULL).unwrap();
        assert_eq!((first.rank(), first.size(), first.disp_unit()), (1, 16, 2));
        assert_eq!(window.shared_query(world.size()).err().unwrap().class(), Class::Rank);
        window.free().unwrap();
        let window = Window::allocate_shared(world, 0, 1, &info).unwrap();
        assert_eq!(window.shared_query(PROC_NULL).unwrap().size(), 0);
        window.free().unwrap();
    });
}

/// The layout of a window for the operations below: ten doubles at each rank, and ten longs, which
/// begin `longs` displacements after the doubles.
struct Places {
    bases: Vec<i64>,
    scale: i64,
}

impl Places {
    fn double(&self, rank: i32, at: i64) -> i64 {
        self.bases[rank as usize] + self.scale * at
    }

    fn long(&self, rank: i32, at: i64) -> i64 {
        self.double(rank, 10 + at)
    }
}

/// Every operation, in every kind of epoch.
fn exercise<M>(rank: &Rank, window: &mut Window<M>, places: &Places) {
    let world = rank.world();
    let (me, size) = (world.rank(), world.size());
    let (next, before) = ((me + 1) % size, (me + size - 1) % size);
    let long = rank.type_of::<i64>().unwrap();
    let sparse = Datatype::vector(2, 1, 3, &Datatype::double()).unwrap();
    let sparse = rank.commit(&sparse).unwrap();
    let mine = [f64::from(me) + 0.25, f64::from(me) + 0.5];
    let theirs = mine.map(|value| value - f64::from(me) + f64::from(before));

    window.fence(|epoch| epoch.put(&mine, next, places.double(next, 1), 1, &sparse)).unwrap();
    let found = [1, 4].map(|at| window.get::<f64>(places.double(me, at)).unwrap());
    assert_eq!(found, theirs);
    let mut back = [0.0; 2];
    window.fence(|epoch| epoch.get(&mut back, next, places.double(next, 1), 1, &sparse)).unwrap();
    assert_eq!(back, mine);

    window.post(&world.group().incl(&[before]).unwrap(), Assert::NONE).unwrap();
    let started = window.start(&world.group().incl(&[next]).unwrap(), Assert::NONE, |epoch| {
        epoch.accumulate(&mine, next, places.double(next, 1), 1, &sparse, Op::Sum)
    });
    started.unwrap();
    window.wait().unwrap();
    // No rank locks a window while it is exposed.
    world.barrier().unwrap();
    let found = [1, 4].map(|at| window.get::<f64>(places.double(me, at)).unwrap());
    assert_eq!(found, theirs.map(|value| 2.0 * value));

    for _ in 0..3 {
        let locked = window.lock(0, LockType::Exclusive, |epoch| {
            let mut count = [0i64];
            epoch.flush(0, |epoch| epoch.get(&mut count, 0, places.long(0, 0), 1, &long))?;
            let count = [count[0] + 1];
            epoch.flush(0, |epoch| epoch.put(&count, 0, places.long(0, 0), 1, &long))
        });
        locked.unwrap();
    }
    let tickets = window.lock_all(|epoch| {
        let mut drawn = 0;
        for target in 0..size {
            drawn += epoch.fetch_and_op(1i64, target, places.long(target, 1), Op::Sum)?.wait()?;
            let mut all = [0.0; 2];
            epoch.flush_all(|epoch| {
                let place = places.double(target, 1);
                epoch.get_accumulate(&[0.0; 2], &mut all, target, place, 1, &sparse, Op::NoOp)
            })?;
            assert_eq!(all[0] + 0.5, all[1]);
        }
        let won = epoch.compare_and_swap(i64::from(me) + 1, 0, 0, places.long(0, 2))?.wait()?;
        let bytes = rank.buffer::<i64>(1)?;
        epoch.rput(bytes, next, places.long(next, 3), 1, &long)?.wait()?;
        let room =
            epoch.rget(rank.buffer::<i64>(1)?, next, places.long(next, 3), 1, &long)?.wait()?;
        assert_eq!(room.get(0)?, 0);
        Ok((drawn, won))
    });
    let tickets: Vec<(i64, i64)> = {
        let (drawn, won) = tickets.unwrap();
        world.allgather(&[drawn, won]).unwrap().chunks(2).map(|two| (two[0], two[1])).collect()
    };
    // Each target has given out tickets 0 to size - 1, and exactly one rank has swapped first.
    let all = i64::from(size) * i64::from(size * (size - 1) / 2);
    assert_eq!(tickets.iter().map(|(drawn, _)| drawn).sum::<i64>(), all);
    assert_eq!(tickets.iter().filter(|(_, won)| *won == 0).count(), 1);
    world.barrier().unwrap();
    if me == 0 {
        assert_eq!(window.get::<i64>(places.long(0, 0)).unwrap(), 3 * i64::from(size));
    }
    assert_eq!(window.get::<i64>(places.long(me, 1)).unwrap(), i64::from(size));
}

#[test]
fn every_operation_reaches_every_flavor() {
    everywhere(crowd(3), |rank, world| {
        let info = Info::default();
        let places = Places { bases: vec![0; world.size() as usize], scale: 1 };
        let mut window = Window::allocate(world, 160, 8, &info).unwrap();
        exercise(rank, &mut window, &places);
        window.free().unwrap();
        let mut window = Window::allocate_shared(world, 160, 8, &info).unwrap();
        exercise(rank, &mut window, &places);
        window.free().unwrap();
        let mut window = Window::create(world, rank.buffer::<u64>(20).unwrap(), 8, &info).unwrap();
        exercise(rank, &mut window, &places);
        window.free().unwrap();

        let mut window = Window::create_dynamic(world, &info).unwrap();
        assert_eq!((window.flavor(), window.size(), window.disp_unit()), (Flavor::Dynamic, 0, 1));
        assert!(window.base().is_null());
        let memory = window.attach(rank.buffer::<u64>(20).unwrap()).unwrap();
        assert_eq!(memory.size(), 160);
        let places = Places { bases: world.allgather(&[memory.address()]).unwrap(), scale: 8 };
        exercise(rank, &mut window, &places);
        let memory = window.detach(memory).unwrap();
        assert_eq!(memory.len(), 20);
        window.free().unwrap();
    });
}

/// Memory that is detached while a put to it is in flight is returned with all the data put.
#[test]
fn detach_waits_for_operations_in_flight() {
    let detach = |rank: Rank| {
        const LEN: usize = 4 << 20;
        let world = rank.world();
        let window = Window::create_dynamic(world, &Info::default()).unwrap();
        let memory = window.attach(vec![0u8; LEN]).unwrap();
        let places = world.allgather(&[memory.address()]).unwrap();
        let byte = rank.type_of::<u8>().unwrap();
        if world.rank() == 0 {
            let data = vec![7u8; LEN];
            let put = window.lock(1, LockType::Shared, |epoch| {
                epoch.put(&data, 1, places[1], LEN as i64, &byte)
            });
            put.unwrap();
        } else {
            while window.get::<u8>(memory.address()).unwrap() == 0 {
                std::thread::yield_now();
            }
            assert!(window.detach(memory).unwrap().iter().all(|byte| *byte == 7));
        }
        window.free().unwrap();
        rank.finalize().unwrap();
    };
    for routes in [Routes::Message, Routes::Best] {
        // The target reads the data before the put is complete.
        let options = Options { routes, check: Checking::Off, ..Options::default() };
        for _ in 0..5 {
            run_shared(2, &options, detach).unwrap();
        }
    }
}

/// Memory is attached and detached while other ranks put to it. Each put arrives or is refused.
/// Memory that is allocated at a detached address stays unchanged.
#[test]
fn no_put_reaches_detached_memory() {
    const TIMES: usize = 200;
    let options = Options { check: Checking::Off, ..Options::default() };
    let body = |rank: Rank| {
        let world = rank.world();
        let window = Window::create_dynamic(world, &Info::default()).unwrap();
        let byte = rank.type_of::<u8>().unwrap();
        if world.rank() == 0 {
            let mut address = [0i64];
            for _ in 0..TIMES {
                world.recv(&mut address, 1, 0).unwrap();
                let put = || {
                    window.lock(1, LockType::Shared, |epoch| {
                        epoch.put(&[7u8; 8], 1, address[0], 8, &byte)
                    })
                };
                while put().is_ok() {}
            }
        } else {
            for _ in 0..TIMES {
                let memory = window.attach(vec![0u8; 8]).unwrap();
                world.send(&[memory.address()], 0, 0).unwrap();
                while window.get::<u8>(memory.address()).unwrap() == 0 {
                    std::thread::yield_now();
                }
                let memory = window.detach(memory).unwrap();
                assert_eq!(memory, [7; 8]);
                // The allocator returns the freed address again.
                let next = Window::allocate(rank.alone(), 8, 1, &Info::default()).unwrap();
                assert_eq!(next.local().bytes(0, 8).unwrap(), [0; 8]);
                next.free().unwrap();
            }
        }
        window.free().unwrap();
        rank.finalize().unwrap();
    };
    run_shared(2, &options, body).unwrap();
}

/// Attached memory beyond the capacity of the directory is reached by message.
#[test]
fn the_number_of_attachments_is_unlimited() {
    const MANY: usize = 600;
    everywhere(2, |rank, world| {
        let mut window = Window::create_dynamic(world, &Info::default()).unwrap();
        let byte = rank.type_of::<u8>().unwrap();
        let all: Vec<_> = (0..MANY).map(|_| window.attach(vec![0u8; 2]).unwrap()).collect();
        let own: Vec<i64> = all.iter().map(|memory| memory.address()).collect();
        let other = 1 - world.rank();
        let places = world.allgather(&own).unwrap();
        let theirs = &places[other as usize * MANY..][..MANY];
        let values: Vec<u8> = (0..MANY).map(|at| at as u8).collect();
        window
            .fence(|epoch| {
                let each = theirs.iter().zip(values.chunks(1));
                each.into_iter()
                    .try_for_each(|(&at, value)| epoch.put(value, other, at + 1, 1, &byte))
            })
            .unwrap();
        for (at, memory) in all.into_iter().enumerate() {
            assert_eq!(window.detach(memory).unwrap(), [0, at as u8]);
        }
        window.free().unwrap();
    });
}

/// Memory is attached and detached between epochs. Freeing the window detaches the rest.
#[test]
fn detach_returns_the_attached_memory() {
    everywhere(crowd(3), |rank, world| {
        let mut window = Window::create_dynamic(world, &Info::default()).unwrap();
        let byte = rank.type_of::<u8>().unwrap();
        let next = (world.rank() + 1) % world.size();
        for turn in 0..5u8 {
            let memory = window.attach(vec![turn; 100]).unwrap();
            let other = window.attach(vec![0u8; 10].into_boxed_slice()).unwrap();
            let empty = window.attach(Vec::<u8>::new()).unwrap();
            let places = world.allgather(&[memory.address() + 7]).unwrap();
            let (mut back, data) = ([0u8; 3], [turn + 1; 10]);
            window
                .fence(|epoch| {
                    epoch.put(&data, next, places[next as usize], 10, &byte)?;
                    epoch.get(&mut back, next, places[next as usize] - 7, 3, &byte)
                })
                .unwrap();
            assert_eq!(back, [turn; 3]);
            assert_eq!(window.detach(empty).unwrap(), []);
            assert_eq!(*window.detach(other).unwrap(), [0; 10]);
            let bytes = window.detach(memory).unwrap();
            assert_eq!(bytes[..7], [turn; 7]);
            assert_eq!(bytes[7..17], [turn + 1; 10]);
            assert_eq!(bytes[17..], [turn; 83]);
        }
        let _left = window.attach(vec![1u8; 8]).unwrap();
        window.free().unwrap();
    });
}

/// An exclusive lock excludes lock_all of another rank, whose loads and stores then wait.
#[test]
fn an_exclusive_lock_excludes_lock_all_on_a_shared_window() {
    const TIMES: i64 = 10_000;
    let body = |rank: Rank| {
        let world = rank.world();
        let window = Window::allocate_shared(world, 8, 8, &Info::default()).unwrap();
        let counter = window.shared_query(0).unwrap();
        let count = || {
            let before = counter.get::<i64>(0)?;
            std::hint::spin_loop();
            counter.set(0, before + 1)
        };
        for _ in 0..TIMES {
            match world.rank() {
                1 => window.lock_all(|_| count()).unwrap(),
                _ => window.lock(0, LockType::Exclusive, |_| count()).unwrap(),
            }
        }
        world.barrier().unwrap();
        assert_eq!(window.shared_query(0).unwrap().get::<i64>(0).unwrap(), 2 * TIMES);
        window.free().unwrap();
        rank.finalize().unwrap();
    };
    run_shared(2, &Options::default(), body).unwrap();
}

/// Displacements beyond 32 bits, by message from ranks with 32-bit pointers, and directly. The
/// memory is sparse.
#[test]
fn windows_may_be_longer_than_4_gib() {
    if Architecture::NATIVE.pointer().size < 8 {
        return;
    }
    const SIZE: i64 = 5 << 30;
    const LAST: i64 = SIZE / 8 - 1;
    let body = |rank: Rank| {
        let world = rank.world();
        let (me, info) = (world.rank(), Info::default());
        let double = rank.type_of::<f64>().unwrap();
        let made = |owner| Window::allocate(world, if me == owner { SIZE } else { 8 }, 8, &info);
        let mut window = match made(0) {
            Ok(window) => window,
            Err(error) => {
                return assert_eq!(error.class(), Class::NoMem, "a limit of this machine: {error}");
            }
        };
        // The last rank has 32-bit pointers.
        assert_eq!(made(2).err().unwrap().class(), Class::Size);
        let value = [f64::from(me) + 0.5];
        let mut back = [0.0];
        window.fence(|epoch| epoch.put(&value, 0, LAST - i64::from(me), 1, &double)).unwrap();
        window.fence(|epoch| epoch.get(&mut back, 0, LAST - i64::from(me), 1, &double)).unwrap();
        assert_eq!(back, value);
        let add = |epoch: &longshore::Epoch<'_, '_>| {
            epoch.fetch_and_op(1.0f64, 0, LAST - 9, Op::Sum).map(drop)
        };
        window.fence(add).unwrap();
        let outcome = window.fence(|epoch| epoch.put(&value, 0, LAST + 1, 1, &double));
        assert_eq!(outcome.unwrap_err().class(), Class::RmaRange);
        if me == 0 {
            assert_eq!(window.get::<f64>(LAST - 2).unwrap(), 2.5);
            assert_eq!(window.get::<f64>(LAST - 9).unwrap(), 3.0);
        }
        window.free().unwrap();
        rank.finalize().unwrap();
    };
    let architectures = vec![Architecture::NATIVE, Architecture::NATIVE, Architecture::I686];
    let options = Options { architectures, ..Options::default() };
    run(3, &options, body).unwrap();
    run_shared(3, &options, body).unwrap();
}

#[test]
fn windows_may_be_empty() {
    everywhere(crowd(3), |rank, world| {
        let (me, info, long) = (world.rank(), Info::default(), rank.type_of::<i64>().unwrap());
        for all in [true, false] {
            let size = if all || me == 1 { 0 } else { 8 };
            let windows: [Window; 2] = [Window::allocate, allocate_shared]
                .map(|make| make(world, size, 8, &info).unwrap());
            for mut window in windows {
                assert_eq!(window.size(), size);
                // No element fits into an empty window, although it fits at other ranks.
                let nothing: [i64; 0] = [];
                window.fence(|epoch| epoch.put(&nothing, 1, 0, 0, &long)).unwrap();
                let outcome = window.fence(|epoch| epoch.put(&[1i64], 1, 0, 1, &long));
                assert_eq!(outcome.unwrap_err().class(), Class::RmaRange);
                let outcome =
                    window.fence(|epoch| epoch.accumulate(&[1i64], 0, 0, 1, &long, Op::Replace));
                assert_eq!(outcome.is_err(), all);
                window.free().unwrap();
            }
            let memory = rank.buffer::<i64>(size as usize / 8).unwrap();
            let window = Window::create(world, memory, 8, &info).unwrap();
            window.lock_all(|epoch| epoch.flush_all(|_| Ok(()))).unwrap();
            assert_eq!(window.free().unwrap().len(), size as usize / 8);
        }
    });
}

/// Hundreds of windows of all flavors at once, and a thousand in sequence.
#[test]
fn there_may_be_many_windows() {
    let body = |rank: Rank| {
        let world = rank.world();
        let (me, size, info) = (world.rank(), world.size(), Info::default());
        let (next, before) = ((me + 1) % size, (me + size - 1) % size);
        let long = rank.type_of::<i64>().unwrap();
        let mut windows: Vec<Window> = (0..300)
            .map(|number| match number % 2 {
                0 => Window::allocate(world, 16, 8, &info).unwrap(),
                _ => allocate_shared(world, 16, 8, &info).unwrap(),
            })
            .collect();
        for (number, window) in windows.iter_mut().enumerate() {
            let value = [1000 * i64::from(me) + number as i64];
            window.fence(|epoch| epoch.put(&value, next, 1, 1, &long)).unwrap();
        }
        for (number, window) in windows.iter().enumerate() {
            let wanted = 1000 * i64::from(before) + number as i64;
            assert_eq!(window.get::<i64>(1).unwrap(), wanted);
        }
        // Freed in another order than made.
        windows.into_iter().rev().for_each(|window| window.free().unwrap());
        for number in 0..1000i64 {
            let mut window = Window::allocate(world, 8, 8, &info).unwrap();
            let value = [number];
            window.fence(|epoch| epoch.put(&value, next, 0, 1, &long)).unwrap();
            assert_eq!(window.get::<i64>(0).unwrap(), number);
            window.free().unwrap();
        }
        rank.finalize().unwrap();
    };
    let unlike = vec![Architecture::S390X, Architecture::NATIVE];
    for architectures in [vec![], unlike] {
        run_shared(2, &Options { architectures, ..Options::default() }, body).unwrap();
    }
}

#[test]
fn displacements_count_the_targets_unit() {
    everywhere(3, |rank, world| {
        let units = [1, 12, 4096];
        let unit = units[world.rank() as usize];
        let double = rank.type_of::<f64>().unwrap();
        let me = world.rank();
        let value = [f64::from(me)];
        for make in [Window::allocate, allocate_shared] {
            let mut window = make(world, 4096 * 4, unit, &Info::default()).unwrap();
            let place = |target: i32| {
                // The multiple of the unit that is closest to 64 * me.
                let unit = units[target as usize];
                (64 * i64::from(me + 1) + unit - 1) / unit
            };
            let put = window.fence(|epoch| {
                (0..3).try_for_each(|target| match (target, me) {
                    // Adjacent, if units are long.
                    (2, _) => epoch.put(&value, 2, i64::from(me + 1), 1, &double),
                    _ => epoch.put(&value, target, place(target), 1, &double),
                })
            });
            put.unwrap();
            for from in 0..3i32 {
                let at = match me {
                    2 => i64::from(from + 1) * 4096,
                    _ => (64 * i64::from(from + 1) + unit - 1) / unit * unit,
                };
                let found = window.get::<f64>(at / unit).unwrap();
                assert_eq!(found, f64::from(from));
                let bytes = window.local().bytes(at, 8).unwrap();
                assert_eq!(bytes.iter().all(|byte| *byte == 0), from == 0);
            }
            window.free().unwrap();
        }
    });
}

/// Info hints can be read, and those that may change can be set. A window with `no_locks` refuses
/// locks.
#[test]
fn info_hints_are_kept_and_enforced() {
    everywhere(crowd(3), |_, world| {
        let info = Info::default().set("no_locks", "true").unwrap();
        let info = info.set("mpi_minimum_memory_alignment", "1024").unwrap();
        let mut window = Window::allocate_shared(world, 100, 8, &info).unwrap();
        assert_eq!(window.info(), info);
        assert_eq!(window.shared_query(0).unwrap().base() as usize % 1024, 0);
        let changed = info.set("accumulate_ops", "same_op").unwrap();
        let changed = changed.set("accumulate_ordering", "none").unwrap();
        window.set_info(&changed.set("no_locks", "false").unwrap()).unwrap();
        assert_eq!(window.info(), changed);
        let mixed = if world.rank() == 1 { info } else { changed };
        let error = window.set_info(&mixed).unwrap_err();
        assert_eq!(error.class(), Class::Arg);
        assert!(error.to_string().contains("accumulate_ordering=none at rank 0"), "{error}");
        for outcome in [
            window.lock(0, LockType::Shared, |_| Ok(())),
            window.lock_all(|_| Ok(())),
            window.lock(0, LockType::Exclusive, |_| Ok(())),
        ] {
            let error = outcome.unwrap_err();
            assert_eq!(error.class(), Class::RmaSync);
            assert!(error.to_string().contains("no_locks=true"), "{error}");
        }
        window.fence(|_| Ok(())).unwrap();
        window.free().unwrap();
    });
}

/// An error handler that logs the object's name and the call.
fn listen(heard: &Arc<Mutex<Vec<String>>>) -> ErrorHandler {
    let heard = heard.clone();
    ErrorHandler::new(move |holder, error| {
        let call = error.place().map_or("", |place| place.call);
        let told = format!("{} {call} {}", holder.name(), error.class().mpi_name());
        heard.lock().unwrap().push(told);
    })
}

#[test]
fn each_error_reaches_one_handler_once() {
    everywhere(3, |rank, world| {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let told = || std::mem::take(&mut *heard.lock().unwrap());
        let long = rank.type_of::<i64>().unwrap();
        let mut window = Window::allocate(world, 8, 8, &Info::default()).unwrap();
        assert_eq!(format!("{:?}", window.errhandler()), "MPI_ERRORS_RETURN");
        window.set_name("mine");
        window.set_errhandler(listen(&heard));
        let outcome = window.fence(|epoch| epoch.put(&[1i64], 1, 7, 1, &long));
        let error = outcome.unwrap_err();
        assert_eq!(told(), ["mine put MPI_ERR_RMA_RANGE"]);
        assert!(window.wait().is_err() && window.route(9).is_err());
        assert_eq!(told(), ["mine wait MPI_ERR_RMA_SYNC", "mine route MPI_ERR_RANK"]);
        assert!(window.get::<i64>(1).is_err() && window.set(-1, 1i64).is_err());
        let access = "mine access to its own window";
        assert_eq!(told(), ["RMA_RANGE", "DISP"].map(|class| format!("{access} MPI_ERR_{class}")));
        window.call_errhandler(&error);
        window.call_errhandler(&error);
        assert_eq!(told(), ["mine put MPI_ERR_RMA_RANGE"; 2]);
        // An error that only the target finds is returned by the call that completes the operation.
        let mut dynamic = Window::create_dynamic(world, &Info::default()).unwrap();
        dynamic.set_errhandler(listen(&heard));
        let put = |epoch: &longshore::Passive<'_, '_>| epoch.put(&[1i64], 1, 800, 1, &long);
        dynamic.lock(1, LockType::Shared, put).unwrap_err();
        assert_eq!(told(), [" put MPI_ERR_RMA_RANGE"]);
        let fetch = dynamic.lock(1, LockType::Shared, |epoch| {
            let fetched = epoch.fetch_and_op(1i64, 1, 800, Op::Sum)?;
            Ok(fetched.wait().is_err())
        });
        assert!(fetch.unwrap());
        assert_eq!(told().len(), 1);
        // The closing fence has two errors.
        let put = |epoch: &longshore::Epoch<'_, '_>| epoch.put(&[1i64], 1, 800, 1, &long);
        dynamic.fence_with(Assert::NONE, Assert::NOPRECEDE, put).unwrap_err();
        assert_eq!(told().len(), 1);
        dynamic.free().unwrap();
        window.free().unwrap();

        let mine = world.dup().unwrap();
        mine.set_name("parent");
        mine.set_errhandler(listen(&heard));
        assert!(Window::allocate(&mine, -1, 1, &Info::default()).is_err());
        assert_eq!(told(), ["parent allocate MPI_ERR_SIZE"]);
        let child = mine.split(Some(0), 0).unwrap().unwrap();
        assert!(child.send(&[0u8], 7, 0).is_err());
        assert_eq!(told(), [" send MPI_ERR_RANK"]);
        child.set_errhandler(ErrorHandler::Return);
        assert!(child.send(&[0u8], 7, 0).is_err());
        assert_eq!(told().len(), 0);
        child.free().unwrap();
        mine.free().unwrap();
    });
}

#[test]
fn error_handlers_get_errors_of_memory_attributes_and_flat_forms() {
    everywhere(3, |rank, world| {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let told = || std::mem::take(&mut *heard.lock().unwrap());
        let mine = world.dup().unwrap();
        mine.set_name("mine");
        mine.set_errhandler(listen(&heard));
        let window = Window::allocate(&mine, 8, 8, &Info::default()).unwrap();
        window.set_errhandler(listen(&heard));
        if rank.is_emulated() {
            let long = rank.type_of::<i64>().unwrap();
            let typed = || Given::typed(vec![1i64], 1, &long, 0);
            let body = |epoch: &longshore::Passive<'_, '_>| {
                assert!(epoch.rput(typed(), 1, 0, 1, &long).is_err());
                assert!(epoch.rget(typed(), 1, 0, 1, &long).is_err());
                assert!(epoch.raccumulate(typed(), 1, 0, 1, &long, Op::Sum).is_err());
                assert!(epoch.rget_accumulate(typed(), typed(), 1, 0, 1, &long, Op::Sum).is_err());
                Ok(())
            };
            window.lock_all(body).unwrap();
            let calls = ["rput", "rget", "raccumulate", "rget_accumulate"];
            assert_eq!(told(), calls.map(|call| format!(" {call} MPI_ERR_BUFFER")));
        }
        let key: Keyval<Window, i32> = rank.create_keyval(Callbacks::default()).unwrap();
        key.clone().free();
        assert!(window.attr(&key).is_err() && window.set_attr(&key, 1).is_err());
        let error = window.delete_attr(&key).unwrap_err();
        assert_eq!(error.place().unwrap().window, Some(window.number()));
        let calls = ["get_attr", "set_attr", "delete_attr"];
        assert_eq!(told(), calls.map(|call| format!(" {call} MPI_ERR_KEYVAL")));
        let key: Keyval<Communicator, i32> = rank.create_keyval(Callbacks::default()).unwrap();
        key.clone().free();
        assert!(mine.attr(&key).is_err());
        assert_eq!(told(), ["mine get_attr MPI_ERR_KEYVAL"]);
        window.free().unwrap();
    });
    run(1, &Options::default(), |rank| {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let mine = rank.world().dup().unwrap();
        mine.set_errhandler(listen(&heard));
        let described = rank.unpack_communicator(mine.flat().unwrap().as_bytes(), &mut 0).unwrap();
        rank.finalize().unwrap();
        assert!(mine.flat().is_err() && mine.compare_unpacked(&described).is_err());
        let words = ["flat", "compare_unpacked"].map(|call| format!(" {call} MPI_ERR_OTHER"));
        assert_eq!(*heard.lock().unwrap(), words);
    })
    .unwrap();
}

/// Ranks that share a process get a fatal error from later calls. Ranks in separate processes are
/// ended by their launcher.
#[test]
fn a_fatal_error_ends_the_job() {
    for handler in [ErrorHandler::Fatal, ErrorHandler::Abort] {
        run(2, &Options::default(), |rank| {
            let world = rank.world();
            world.barrier().unwrap();
            let error = match world.rank() {
                0 => {
                    world.set_errhandler(handler.clone());
                    assert_eq!(world.send(&[0u8], 5, 0).unwrap_err().class(), Class::Rank);
                    world.set_errhandler(ErrorHandler::Return);
                    world.recv(&mut [0u8], 1, 0).unwrap_err()
                }
                _ => world.barrier().unwrap_err(),
            };
            assert_eq!(error.class(), Class::ProcAborted, "{error}");
        })
        .unwrap();
    }
}

/// The memory of a created window is valid during the window's life, however like ranks reach it,
/// and is returned at its old address.
#[test]
fn owned_memory_of_a_created_window_moves_to_where_like_ranks_reach_it() {
    const BYTES: usize = (2 << 20) + 24;
    everywhere(crowd(3), |rank, world| {
        let (me, size) = (world.rank(), world.size());
        let next = (me + 1) % size;
        let memory: Vec<u8> = (0..BYTES).map(|at| (at / 16384) as u8 + me as u8).collect();
        let (copy, start) = (memory.clone(), memory.as_ptr());
        let mut window = Window::create(world, memory, 1, &Info::default()).unwrap();
        let allocated = Window::allocate(world, 8, 1, &Info::default()).unwrap();
        assert_eq!(window.route(next).unwrap(), allocated.route(next).unwrap());
        allocated.free().unwrap();
        let byte = rank.type_of::<u8>().unwrap();
        let (value, mut got) = ([200 + me as u8; 8], vec![0u8; 16385]);
        window
            .fence(|epoch| {
                epoch.put(&value, next, BYTES as i64 - 8, 8, &byte)?;
                epoch.get(&mut got, next, 16384, 16385, &byte)
            })
            .unwrap();
        assert_eq!((got[0], got[16384]), (1 + next as u8, 2 + next as u8));
        let memory = window.free().unwrap();
        let before = (me + size - 1) % size;
        assert_eq!(memory.as_ptr(), start);
        assert_eq!(memory[..BYTES - 8], copy[..BYTES - 8]);
        assert_eq!(memory[BYTES - 8..], [200 + before as u8; 8]);
    });
}
