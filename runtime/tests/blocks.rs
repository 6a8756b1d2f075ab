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
