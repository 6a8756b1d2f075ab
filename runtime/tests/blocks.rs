//! Collective calls with long blocks, which go from memory to memory, beside short ones.

mod support;

use longshore::job::{Checking, Routes};
use longshore::sim::{Options, run, run_shared};
use longshore::{
    Architecture, Class, Communicator, Datatype, Destination, Given, IN_PLACE, Op, Origin, Rank,
};

use support::crowd;

/// Elements of 8 bytes of the shortest long block, and some more.
const LONG: usize = 4097 + 300;

/// Runs a program on communicators of 1 to 6 ranks, like and unlike, and on ranks of a segment.
fn everywhere(body: impl Fn(&Rank, &Communicator) + Sync) {
    everywhere_by(&Options::default(), body);
}

/// Runs a program as [`everywhere`], with these options.
fn everywhere_by(options: &Options, body: impl Fn(&Rank, &Communicator) + Sync) {
    let whole = |rank: Rank| {
        body(&rank, rank.world());
        rank.finalize().unwrap();
    };
    let kinds = [Architecture::S390X, Architecture::NATIVE, Architecture::X86_64];
    for ranks in 1..7 {
        run(ranks, &Options { seed: 7, ..options.clone() }, whole).unwrap();
        let unlike = kinds.into_iter().cycle().take(ranks as usize).collect();
        let unlike = Options { architectures: unlike, routes: Routes::Message, ..options.clone() };
        run(ranks, &unlike, whole).unwrap();
    }
    let emulated = vec![Architecture::S390X; 3];
    run(3, &Options { architectures: emulated, ..options.clone() }, whole).unwrap();
    run_shared(crowd(3), options, whole).unwrap();
    for other in [Architecture::AARCH64, Architecture::S390X] {
        let architectures = vec![Architecture::X86_64, other, other];
        let options = Options { architectures, ..options.clone() };
        run(3, &options, whole).unwrap();
        run_shared(3, &options, whole).unwrap();
    }
}

/// The element at a place of the block from one rank to another.
fn element(from: i32, to: i32, at: usize) -> i64 {
    i64::from(from) << 48 | i64::from(to) << 32 | at as i64
}

fn block(from: i32, to: i32, length: usize) -> impl Iterator<Item = i64> {
    (0..length).map(move |at| element(from, to, at))
}

/// The length of the block from one rank to another: some are long, and some empty.
fn length(from: i32, to: i32) -> usize {
    [LONG, 3, LONG + 5000, 0, 4096][(2 * from + to) as usize % 5]
}

/// Ranges of these lengths one after the other, with gaps of one element.
fn ranges(lengths: impl Iterator<Item = usize>) -> Vec<std::ops::Range<i64>> {
    let mut end = 0;
    let range = |length: usize| {
        let start = end;
        end += length as i64 + 1;
        start..start + length as i64
    };
    lengths.map(range).collect()
}

#[test]
fn long_blocks_reach_every_rank() {
    everywhere(|_, world| {
        let (me, size) = (world.rank(), world.size());
        for root in 0..size {
            let mut data = Vec::from_iter(block(if me == root { root } else { 99 }, 0, LONG));
            world.bcast(&mut data, root).unwrap();
            assert!(data.into_iter().eq(block(root, 0, LONG)));
        }
        let mine = Vec::from_iter(block(me, 0, LONG));
        let all = world.allgather(&mine).unwrap();
        let due = Vec::from_iter((0..size).flat_map(|from| block(from, 0, LONG)));
        assert!(all == due);
        let mut all = vec![-1; due.len()];
        all[me as usize * LONG..][..LONG].copy_from_slice(&mine);
        world.allgather_into(IN_PLACE, &mut all).unwrap();
        assert!(all == due);
        let given = Vec::from_iter((0..size).flat_map(|to| block(me, to, LONG)));
        let due = Vec::from_iter((0..size).flat_map(|from| block(from, me, LONG)));
        let mut taken = vec![-1; due.len()];
        world.alltoall(&given, &mut taken).unwrap();
        assert!(taken == due);
        taken.clone_from(&given);
        world.alltoall(IN_PLACE, &mut taken).unwrap();
        assert!(taken == due);
        let mut sum = vec![0; LONG];
        world.allreduce(&mine, &mut sum, Op::Sum).unwrap();
        world.scan(IN_PLACE, &mut sum, Op::Max).unwrap();
        let total = |at| (0..size).map(|from| element(from, 0, at)).sum::<i64>();
        assert!((0..LONG).all(|at| sum[at] == total(at)));
    });
}

#[test]
fn long_and_short_blocks_go_together() {
    everywhere(|rank, world| {
        let (me, size) = (world.rank(), world.size());
        let gathered = ranges((0..size).map(|from| length(from, 0)));
        let mut room = vec![-1; gathered[size as usize - 1].end as usize];
        let mine = Vec::from_iter(block(me, 0, length(me, 0)));
        world.allgatherv(&mine, &mut room, &gathered).unwrap();
        let part = |room: &[i64], range: &std::ops::Range<i64>| {
            room[range.start as usize..range.end as usize].to_vec()
        };
        for (from, range) in (0..).zip(&gathered) {
            assert!(part(&room, range).into_iter().eq(block(from, 0, length(from, 0))));
            assert!(room.get(range.end as usize).is_none_or(|gap| *gap == -1));
        }
        let given = ranges((0..size).map(|to| length(me, to)));
        let taken = ranges((0..size).map(|from| length(from, me)));
        let mut data = vec![-2; given[size as usize - 1].end as usize];
        for (to, range) in (0..).zip(&given) {
            let block = Vec::from_iter(block(me, to, length(me, to)));
            data[range.start as usize..range.end as usize].copy_from_slice(&block);
        }
        let mut room = vec![-1; taken[size as usize - 1].end as usize];
        world.alltoallv((&data, &given), (&mut room, &taken)).unwrap();
        for (from, range) in (0..).zip(&taken) {
            assert!(part(&room, range).into_iter().eq(block(from, me, length(from, me))));
            assert!(room.get(range.end as usize).is_none_or(|gap| *gap == -1));
        }
        // Each second element, in the rank's own representation.
        let sparse = Datatype::vector(LONG as i64, 1, 2, &Datatype::int64()).unwrap();
        let sparse = rank.commit(&sparse).unwrap();
        let mut buffers = Vec::new();
        for _ in 0..size {
            let mut buffer = rank.buffer::<i64>(2 * LONG).unwrap();
            buffer.write(0, &vec![-1; 2 * LONG]).unwrap();
            buffers.push(buffer);
        }
        let given = (0..size).map(|to| Vec::from_iter(block(me, to, LONG)));
        let given = Vec::from_iter(given);
        let taken = buffers.iter_mut().map(|room| Destination::typed(room, 1, &sparse));
        world.alltoallw(given.iter().map(Origin::from), taken).unwrap();
        for (from, room) in (0..).zip(&buffers) {
            let room = room.to_vec().unwrap();
            assert!(room.iter().step_by(2).copied().eq(block(from, me, LONG)));
            assert!(room.iter().skip(1).step_by(2).all(|gap| *gap == -1));
        }
    });
}

#[test]
fn calls_with_requests_move_long_blocks_at_the_same_time() {
    everywhere(|_, world| {
        let (me, size) = (world.rank(), world.size());
        let room = || vec![-1; LONG * size as usize];
        let mine = Vec::from_iter(block(me, 0, LONG));
        let given = Vec::from_iter((0..size).flat_map(|to| block(me, to, LONG)));
        let gathering = world.iallgather(mine, room()).unwrap();
        let exchange = world.ialltoall(given, room()).unwrap();
        let data = Vec::from_iter(block(if me == 0 { 0 } else { 99 }, 0, LONG));
        let broadcast = world.ibcast(Given::from(data), 0).unwrap();
        let from_root = broadcast.wait().unwrap();
        assert!(from_root.into_iter().eq(block(0, 0, LONG)));
        let (_, taken) = exchange.wait().unwrap();
        assert!(taken.into_iter().eq((0..size).flat_map(|from| block(from, me, LONG))));
        let (_, all) = gathering.wait().unwrap();
        assert!(all.into_iter().eq((0..size).flat_map(|from| block(from, 0, LONG))));
    });
}

#[test]
fn a_rank_without_room_for_long_blocks_passes_them_on() {
    // The check would refuse the calls at all ranks.
    let unchecked = Options { check: Checking::Off, ..Options::default() };
    everywhere_by(&unchecked, |_, world| {
        let (me, size) = (world.rank(), world.size());
        let wrong = size / 2;
        let class = |outcome: longshore::Result<()>| outcome.err().map(|error| error.class());
        let due = if me == wrong && size > 1 { Some(Class::Type) } else { None };
        let whole = LONG * size as usize;
        // Its room has elements of another type.
        let mut data = Vec::from_iter(block(me, 0, LONG));
        let mut reals = vec![0.0; whole];
        let mut room = vec![-1; whole];
        let got = match due {
            Some(_) => world.bcast(&mut reals[..LONG], 0),
            None => world.bcast(&mut data, 0),
        };
        assert_eq!(class(got), due);
        assert!(due.is_some() || data.iter().copied().eq(block(0, 0, LONG)));
        let mine = Vec::from_iter(block(me, 0, LONG));
        let got = match due {
            Some(_) => world.allgather_into(&mine, &mut reals),
            None => world.allgather_into(&mine, &mut room),
        };
        assert_eq!(class(got), due);
        let all = (0..size).flat_map(|from| block(from, 0, LONG));
        assert!(due.is_some() || room.iter().copied().eq(all));
        let given = Vec::from_iter((0..size).flat_map(|to| block(me, to, LONG)));
        let got = match due {
            Some(_) => world.alltoall(&given, &mut reals),
            None => world.alltoall(&given, &mut room),
        };
        assert_eq!(class(got), due);
        let all = (0..size).flat_map(|from| block(from, me, LONG));
        assert!(due.is_some() || room.iter().copied().eq(all));
        // Its data can't be divided, so all ranks get its error.
        let given = if due.is_some() { &given[1..] } else { &given[..] };
        assert_eq!(class(world.alltoall(given, &mut room)), (size > 1).then_some(Class::Count));
        world.barrier().unwrap();
    });
}

#[test]
fn long_blocks_go_to_a_root_and_come_from_it() {
    everywhere(|_, world| {
        let (me, size) = (world.rank(), world.size());
        let mine = Vec::from_iter(block(me, 0, LONG));
        for root in 0..size {
            let mut room = vec![-1; if me == root { LONG * size as usize } else { 0 }];
            world.gather(&mine, &mut room, root).unwrap();
            let all = || (0..size).flat_map(|from| block(from, 0, LONG));
            assert!(me != root || room.iter().copied().eq(all()));
            room.iter_mut().for_each(|value| *value = -1);
            if me == root {
                room[me as usize * LONG..][..LONG].copy_from_slice(&mine);
                world.gather(IN_PLACE, &mut room, root).unwrap();
                assert!(room.iter().copied().eq(all()));
            } else {
                world.gather(&mine, &mut room, root).unwrap();
            }
            // Some blocks are short, some long, and some empty.
            let places = ranges((0..size).map(|from| length(from, root)));
            let end = places[size as usize - 1].end as usize;
            let mut room = vec![-1; end];
            let part = Vec::from_iter(block(me, root, length(me, root)));
            world.gatherv(&part, &mut room, &places, root).unwrap();
            for (from, place) in (0..).zip(&places).filter(|_| me == root) {
                let found = &room[place.start as usize..place.end as usize];
                assert!(found.iter().copied().eq(block(from, root, length(from, root))));
                assert!(room.get(place.end as usize).is_none_or(|gap| *gap == -1));
            }
            let mut back = vec![-1; length(me, root)];
            world.scatterv(&room, &places, &mut back, root).unwrap();
            assert_eq!(back, part);
            let given = Vec::from_iter((0..size).flat_map(|to| block(root, to, LONG)));
            let mut taken = vec![-1; LONG];
            match me == root {
                true => world.scatter(&given, IN_PLACE, root).unwrap(),
                false => world.scatter(&[0i64; 0], &mut taken, root).unwrap(),
            }
            assert!(me == root || taken.iter().copied().eq(block(root, me, LONG)));
            world.scatter(&given, &mut taken, root).unwrap();
            assert!(taken.into_iter().eq(block(root, me, LONG)));
        }
    });
}

#[test]
fn a_root_that_refuses_long_blocks_delays_no_rank() {
    let unchecked = Options { check: Checking::Off, ..Options::default() };
    everywhere_by(&unchecked, |_, world| {
        let (me, size) = (world.rank(), world.size());
        let class = |outcome: longshore::Result<()>| outcome.err().map(|error| error.class());
        let (root, mine) = (size - 1, Vec::from_iter(block(me, 0, LONG)));
        let due = (me == root).then_some(Class::Type);
        let mut reals = vec![0.0; LONG * size as usize];
        assert_eq!(class(world.gather(&mine, &mut reals, root)), due);
        // A room of another type at the rank that gets a block.
        let given = Vec::from_iter((0..size).flat_map(|to| block(root, to, LONG)));
        let due = (me == 0).then_some(Class::Type);
        let mut taken = vec![-1; LONG];
        let got = match due {
            Some(_) => world.scatter(&given, &mut reals[..LONG], root),
            None => world.scatter(&given, &mut taken, root),
        };
        assert_eq!(class(got), due);
        assert!(due.is_some() || taken.into_iter().eq(block(root, me, LONG)));
        world.barrier().unwrap();
    });
}

#[test]
fn long_operands_are_combined_at_every_rank_and_root() {
    everywhere(|rank, world| {
        let (me, size) = (world.rank(), world.size());
        let mine = Vec::from_iter(block(me, 0, LONG));
        let total = Vec::from_iter(
            (0..LONG).map(|at| (0..size).map(|from| element(from, 0, at)).sum::<i64>()),
        );
        let mut room = mine.clone();
        world.allreduce(IN_PLACE, &mut room, Op::Sum).unwrap();
        assert!(room == total);
        for root in 0..size {
            let mut room = vec![-1; if me == root { LONG } else { 0 }];
            world.reduce(&mine, &mut room, Op::Sum, root).unwrap();
            assert!(me != root || room == total);
        }
        // Every second rank has its operands and its room in each second element.
        let sparse = Datatype::vector(LONG as i64, 1, 2, &Datatype::int64()).unwrap();
        let sparse = rank.commit(&sparse).unwrap();
        let mut data = rank.buffer::<i64>(2 * LONG).unwrap();
        let spread = Vec::from_iter(mine.iter().flat_map(|value| [*value, -7]));
        data.write(0, &spread).unwrap();
        let mut result = rank.buffer::<i64>(2 * LONG).unwrap();
        result.write(0, &vec![-1; 2 * LONG]).unwrap();
        let mut room = vec![-1; LONG];
        if me % 2 == 0 {
            let origin = Origin::typed(&data, 1, &sparse);
            world.allreduce(origin, Destination::typed(&mut result, 1, &sparse), Op::Sum).unwrap();
            let result = result.to_vec().unwrap();
            room = Vec::from_iter(result.iter().copied().step_by(2));
            assert!(result.iter().skip(1).step_by(2).all(|gap| *gap == -1));
        } else {
            world.allreduce(&mine, &mut room, Op::Sum).unwrap();
        }
        assert!(room == total);
        // The ranks' blocks differ in length, and the last one is empty.
        let lengths = (0..size).map(|to| if to == size - 1 { 0 } else { 100 + to as usize });
        let mut places = Vec::new();
        let mut end = 0;
        for length in lengths {
            places.push(end..end + length as i64);
            end += length as i64;
        }
        places[0].end += LONG as i64 - end;
        let moved = LONG as i64 - end;
        places[1..].iter_mut().for_each(|place| *place = place.start + moved..place.end + moved);
        let own = places[me as usize].start as usize..places[me as usize].end as usize;
        let mut block = vec![-1; own.len()];
        world.reduce_scatter(&mine, &mut block, &places, Op::Sum).unwrap();
        assert!(block == total[own.clone()]);
        let mut room = mine.clone();
        world.reduce_scatter(IN_PLACE, &mut room, &places, Op::Sum).unwrap();
        assert!(room[..own.len()] == total[own]);
        let reducing = world.ireduce(mine, vec![-1; LONG], Op::Sum, 0).unwrap();
        let (_, room) = reducing.wait().unwrap();
        assert!(me != 0 || room == total);
    });
}

/// Bytes at both ends of what is posted and read from memory, of several pieces, and elements that
/// the ranks don't divide evenly.
#[test]
fn blocks_of_every_length_are_combined_and_exchanged() {
    let body = |rank: Rank| {
        let world = rank.world();
        let (me, size) = (world.rank(), world.size());
        for length in [512, 513, 1024, 1025, 2048, 2049, 3 * LONG, 40_007] {
            let mine = Vec::from_iter(block(me, 0, length));
            let total = Vec::from_iter(
                (0..length).map(|at| (0..size).map(|from| element(from, 0, at)).sum::<i64>()),
            );
            let mut sums = mine.clone();
            world.allreduce(IN_PLACE, &mut sums, Op::Sum).unwrap();
            assert!(sums == total);
            world.allreduce(&mine, &mut sums, Op::Sum).unwrap();
            assert!(sums == total);
            for root in [0, size - 1] {
                let mut sums = mine.clone();
                match me == root {
                    true => world.reduce(IN_PLACE, &mut sums, Op::Sum, root).unwrap(),
                    false => world.reduce(&mine, &mut sums, Op::Sum, root).unwrap(),
                }
                assert!(sums == if me == root { &total[..] } else { &mine[..] });
            }
            let parts = Vec::from_iter((0..size).flat_map(|to| block(me, to, length)));
            let due = (0..length).map(|at| (0..size).map(|from| element(from, me, at)).sum());
            let (due, mut sums) = (Vec::<i64>::from_iter(due), vec![-1; length]);
            world.reduce_scatter_block(&parts, &mut sums, Op::Sum).unwrap();
            assert!(sums == due);
            let mut sums = parts.clone();
            world.reduce_scatter_block(IN_PLACE, &mut sums, Op::Sum).unwrap();
            assert!(sums[..length] == due);
            let mut up_to = vec![-1; length];
            world.scan(&mine, &mut up_to, Op::Max).unwrap();
            assert!(up_to == mine);
            let mut all = vec![-1; parts.len()];
            world.alltoall(&parts, &mut all).unwrap();
            assert!(all.into_iter().eq((0..size).flat_map(|from| block(from, me, length))));
        }
        rank.finalize().unwrap();
    };
    for ranks in [2, 3, 5] {
        run(ranks, &Options { seed: 7, ..Options::default() }, body).unwrap();
        run_shared(ranks, &Options::default(), body).unwrap();
    }
}

/// Some ranks have their blocks in one run, and some in each second element, so these have to be
/// sent.
#[test]
fn blocks_in_one_run_and_with_gaps_meet() {
    everywhere(|rank, world| {
        let (me, size) = (world.rank(), world.size());
        let sparse = Datatype::vector(LONG as i64, 1, 2, &Datatype::int64()).unwrap();
        let sparse = rank.commit(&sparse).unwrap();
        let mine = Vec::from_iter(block(me, 0, LONG));
        let spread = |values: &[i64]| Vec::from_iter(values.iter().flat_map(|it| [*it, -7]));
        let mut wide = rank.buffer::<i64>(2 * LONG).unwrap();
        for odd in 0..size {
            for root in 0..size {
                wide.write(0, &spread(&mine)).unwrap();
                let mut all = vec![-1; if me == root { LONG * size as usize } else { 0 }];
                match me == odd {
                    true => world.gather(Origin::typed(&wide, 1, &sparse), &mut all, root).unwrap(),
                    false => world.gather(&mine, &mut all, root).unwrap(),
                }
                assert!(me != root || all.into_iter().eq(whole(size)));
                let given = Vec::from_iter((0..size).flat_map(|to| block(root, to, LONG)));
                let (mut taken, due) = (vec![-1; LONG], Vec::from_iter(block(root, me, LONG)));
                if me == odd {
                    let room = Destination::typed(&mut wide, 1, &sparse);
                    world.scatter(&given, room, root).unwrap();
                    assert_eq!(
                        wide.to_vec().unwrap()[..2 * LONG - 1],
                        spread(&due)[..2 * LONG - 1]
                    );
                } else {
                    world.scatter(&given, &mut taken, root).unwrap();
                    assert!(taken == due);
                }
                let due = Vec::from_iter(block(root, 0, LONG));
                let mut data = if me == root { due.clone() } else { vec![-1; LONG] };
                wide.write(0, &spread(&data)).unwrap();
                if me == odd {
                    world.bcast(Destination::typed(&mut wide, 1, &sparse), root).unwrap();
                    data = wide.to_vec().unwrap().into_iter().step_by(2).collect();
                } else {
                    world.bcast(&mut data, root).unwrap();
                }
                assert!(data == due);
            }
            wide.write(0, &spread(&mine)).unwrap();
            let mut all = vec![-1; LONG * size as usize];
            match me == odd {
                true => world.allgather_into(Origin::typed(&wide, 1, &sparse), &mut all).unwrap(),
                false => world.allgather_into(&mine, &mut all).unwrap(),
            }
            assert!(all.into_iter().eq(whole(size)));
        }
    });
}

/// A block of each rank.
fn whole(size: i32) -> impl Iterator<Item = i64> {
    (0..size).flat_map(|from| block(from, 0, LONG))
}

/// Like ranks add in the order of ranks, whichever rank adds. Their results have the same bits.
#[test]
fn long_sums_of_floats_are_those_of_the_order_of_ranks() {
    for ranks in 1..7 {
        let value = |rank: i32, at: usize| f64::from(rank + 1).powi(3) / (at as f64 + 0.7);
        let sums = run(ranks, &Options::default(), |rank| {
            let me = rank.world().rank();
            let mine = Vec::from_iter((0..LONG).map(|at| value(me, at)));
            let mut sum = vec![0.0; LONG];
            rank.world().allreduce(&mine, &mut sum, Op::Sum).unwrap();
            let mut again = vec![0.0; LONG];
            let root = ranks as i32 - 1;
            rank.world().reduce(&mine, &mut again, Op::Sum, root).unwrap();
            assert!(me != root || again == sum);
            rank.finalize().unwrap();
            sum
        })
        .unwrap();
        let in_order = |at| (1..ranks as i32).fold(value(0, at), |sum, rank| sum + value(rank, at));
        let due = Vec::from_iter((0..LONG).map(in_order));
        assert!(sums.iter().all(|sum| *sum == due));
    }
}

#[test]
fn long_operands_that_differ_are_an_error_at_the_ranks_that_need_them() {
    let unchecked = Options { check: Checking::Off, ..Options::default() };
    everywhere_by(&unchecked, |_, world| {
        let (me, size) = (world.rank(), world.size());
        let class = |outcome: longshore::Result<()>| outcome.err().map(|error| error.class());
        for wrong in 0..size {
            let is_wrong = me == wrong;
            // Of another type, shorter, and so short that it isn't announced.
            let mine = vec![1; LONG];
            for short in [LONG - 1, 10] {
                let mine = if is_wrong { &mine[..short] } else { &mine[..] };
                let mut room = mine.to_vec();
                let due = (size > 1).then_some(Class::Type);
                assert_eq!(class(world.allreduce(mine, &mut room, Op::Sum)), due);
                let at_root = due.filter(|_| me == 0);
                assert_eq!(class(world.reduce(mine, &mut room, Op::Sum, 0)), at_root);
            }
            let reals = vec![1.0; LONG];
            let (mut room, mut other) = (vec![0; LONG], vec![0.0; LONG]);
            let got = match is_wrong {
                true => world.allreduce(&reals, &mut other, Op::Sum),
                false => world.allreduce(&mine, &mut room, Op::Sum),
            };
            assert_eq!(class(got), (size > 1).then_some(Class::Type));
            // The operation isn't defined on the type.
            let got = match is_wrong {
                true => world.reduce(&reals, &mut other, Op::Band, size - 1),
                false => world.reduce(&mine, &mut room, Op::Band, size - 1),
            };
            let due = if me == size - 1 || is_wrong { Some(Class::Op) } else { None };
            assert_eq!(class(got), due);
        }
        world.barrier().unwrap();
    });
}

/// Of a NaN and a number, the lower rank's operand is the result, in every slice.
#[test]
fn long_extremes_are_those_of_short_ones() {
    for ranks in 1..5 {
        run(ranks, &Options::default(), |rank| {
            let world = rank.world();
            let mine = [1.0, f64::NAN, -0.0, 0.0][world.rank() as usize];
            for op in [Op::Max, Op::Min] {
                let (mut short, mut long) = ([0.0f64], vec![0.0f64; LONG]);
                world.allreduce(&[mine], &mut short, op).unwrap();
                world.allreduce(&vec![mine; LONG], &mut long, op).unwrap();
                assert!(long.iter().all(|value| value.to_bits() == short[0].to_bits()));
            }
            rank.finalize().unwrap();
        })
        .unwrap();
    }
}

#[test]
fn long_operands_may_lie_over_each_other() {
    everywhere(|rank, world| {
        let (me, size) = (world.rank(), world.size());
        let still = Datatype::vector(LONG as i64, 1, 0, &Datatype::int64()).unwrap();
        let still = rank.commit(&still).unwrap();
        let mut one = rank.buffer::<i64>(1).unwrap();
        one.write(0, &[7]).unwrap();
        let (mine, mut sum) = (vec![7i64; LONG], vec![0i64; LONG]);
        match me % 2 {
            0 => world.allreduce(&mine, &mut sum, Op::Sum).unwrap(),
            _ => world.allreduce(Origin::typed(&one, 1, &still), &mut sum, Op::Sum).unwrap(),
        }
        assert!(sum.iter().all(|sum| *sum == 7 * i64::from(size)));
    });
}

#[test]
fn ranks_that_divide_long_operands_differently_get_an_error() {
    let unchecked = Options { check: Checking::Off, ..Options::default() };
    run(3, &unchecked, |rank| {
        let (me, world) = (rank.world().rank(), rank.world());
        let class = |outcome: longshore::Result<()>| outcome.err().map(|error| error.class());
        let (mine, third) = (vec![1i64; LONG], LONG as i64 / 3);
        let equal = [0..third, third..2 * third, 2 * third..LONG as i64];
        let other = [third..2 * third, 0..third, 2 * third..LONG as i64];
        let mut room = vec![0i64; equal[me as usize].clone().count()];
        world.reduce_scatter(&mine, &mut room, &equal, Op::Sum).unwrap();
        let ranges = if me == 1 { &other } else { &equal };
        let got = world.reduce_scatter(&mine, &mut room, ranges, Op::Sum);
        assert_eq!(class(got), Some(Class::Type));
        let beyond = [0..third, third..2 * third, 2 * third..2 * LONG as i64];
        let ranges = if me == 1 { &beyond } else { &equal };
        let got = world.reduce_scatter(&mine, &mut room, ranges, Op::Sum);
        assert_eq!(class(got), Some(Class::Count));
        rank.finalize().unwrap();
    })
    .unwrap();
}
