//! Collective calls with requests: they make progress in other calls, several are under way at a
//! time, and they come to the results of the calls that wait.

use std::sync::Arc;

use longshore::job::Checking;
use longshore::sim::{Options, run};
use longshore::{
    Class, Comparison, Given, IN_PLACE, Neighbors, Op, Origin, PROC_NULL, Rank, UserOp, test_some,
    wait_all,
};

/// The numbers of a rank, of which sums over ranks are easy to tell.
fn numbers(rank: &Rank, factor: i64) -> Vec<i64> {
    vec![i64::from(rank.world().rank() + 1) * factor; 300]
}

#[test]
fn several_calls_are_under_way_at_a_time() {
    for size in [1, 2, 5, 8] {
        let body = |rank: Rank| {
            let world = rank.world();
            let (me, size) = (world.rank(), world.size());
            let sum = world.iallreduce(numbers(&rank, 1), vec![0; 300], Op::Sum).unwrap();
            let limit = world.ibcast(vec![if me == size - 1 { 7 } else { 0 }], size - 1).unwrap();
            let meeting = world.ibarrier().unwrap();
            let others = world.iallgather(vec![me], vec![-1; size as usize]).unwrap();
            let blocks = world.ialltoall(vec![me; size as usize], vec![-1; size as usize]).unwrap();
            // A call that waits, while the others are under way.
            let mut greatest = [0];
            world.allreduce(&[me], &mut greatest, Op::Max).unwrap();
            assert_eq!(greatest, [size - 1]);
            wait_all(&[&blocks, &meeting]).unwrap();
            assert_eq!(blocks.wait().unwrap().1, Vec::from_iter(0..size));
            assert_eq!(others.wait().unwrap().1, Vec::from_iter(0..size));
            meeting.wait().unwrap();
            assert_eq!(limit.wait().unwrap(), [7]);
            let total = i64::from(size * (size + 1) / 2);
            let (data, all) = sum.wait().unwrap();
            assert_eq!((data, all), (numbers(&rank, 1), vec![total; 300]));
            rank.finalize().unwrap();
        };
        run(size, &Options::default(), body).unwrap();
    }
}

#[test]
fn a_call_makes_progress_while_its_rank_waits_for_something_else() {
    let body = |rank: Rank| {
        let world = rank.world();
        let (me, size) = (world.rank(), world.size());
        let meeting = world.ibarrier().unwrap();
        if me == 0 {
            // Rank 0 completes the barrier of the others within this receive.
            let mut all = vec![0; size as usize];
            for from in 1..size {
                world.recv(&mut all[from as usize..][..1], from, 0).unwrap();
            }
            assert!(all.iter().copied().eq(0..size));
            meeting.wait().unwrap();
        } else {
            meeting.wait().unwrap();
            world.send(&[me], 0, 0).unwrap();
        }
        rank.finalize().unwrap();
    };
    run(7, &Options::default(), body).unwrap();
}

#[test]
fn a_duplicate_is_made_while_the_ranks_do_something_else() {
    let body = |rank: Rank| {
        let world = rank.world();
        let me = world.rank();
        let making = if me == 0 {
            let making = world.idup().unwrap();
            assert!(!making.test().unwrap());
            // The others wait for this message before they take part.
            for to in 1..world.size() {
                world.send(&[me], to, 0).unwrap();
            }
            making
        } else {
            world.recv(&mut [0], 0, 0).unwrap();
            world.idup().unwrap()
        };
        let dup = making.wait().unwrap();
        assert_eq!(dup.compare(world), Comparison::Congruent);
        let mut sum = [0];
        dup.allreduce(&[1], &mut sum, Op::Sum).unwrap();
        assert_eq!(sum, [dup.size()]);
        dup.free().unwrap();
        rank.finalize().unwrap();
    };
    run(5, &Options::default(), body).unwrap();
}

#[test]
fn a_dropped_call_goes_on() {
    let body = |rank: Rank| {
        let world = rank.world();
        let data = vec![if world.rank() == 0 { 5 } else { 0 }; 50_000];
        let sent = world.ibcast(data, 0).unwrap();
        match world.rank() {
            0 => drop(sent),
            _ => assert_eq!(sent.wait().unwrap(), vec![5; 50_000]),
        }
        world.barrier().unwrap();
        rank.finalize().unwrap();
    };
    run(4, &Options::default(), body).unwrap();
}

#[test]
fn tests_complete_a_call() {
    let body = |rank: Rank| {
        let world = rank.world();
        let product = UserOp::new(|left: &[i64], right: &mut [i64]| {
            left.iter().zip(right).for_each(|(left, right)| *right *= left);
        });
        let data = Given::<Vec<i64>>::in_place(Vec::new());
        let room = vec![i64::from(world.rank() + 1); 3];
        let mut call = Some(world.iscan(data, room, Arc::new(product)).unwrap());
        while let Some(scan) = call.take() {
            match test_some(&[&scan]).unwrap().is_empty() {
                true => call = Some(scan),
                false => {
                    let factorial: i64 = (1..=i64::from(world.rank() + 1)).product();
                    assert_eq!(scan.wait().unwrap().1, [factorial; 3]);
                }
            }
        }
        rank.finalize().unwrap();
    };
    run(6, &Options::default(), body).unwrap();
}

#[test]
fn reserved_calls_are_started_in_any_order_and_again() {
    let body = |rank: Rank| {
        let world = rank.world();
        let (me, size) = (world.rank(), world.size());
        let (first, second) = (world.reserve(), world.reserve());
        for round in 0..5 {
            let sum = || first.iallreduce(vec![me + round], vec![0], Op::Sum).unwrap();
            let all = || second.iallgather(vec![me * round], vec![0; size as usize]).unwrap();
            let (sum, all) = match (me + round) % 2 {
                0 => {
                    let sum = sum();
                    (sum, all())
                }
                _ => {
                    let all = all();
                    (sum(), all)
                }
            };
            assert!(all.wait().unwrap().1.into_iter().eq((0..size).map(|rank| rank * round)));
            assert_eq!(sum.wait().unwrap().1, [size * (size - 1) / 2 + size * round]);
        }
        rank.finalize().unwrap();
    };
    run(5, &Options::default(), body).unwrap();
}

#[test]
fn errors_are_those_of_the_calls_that_wait() {
    let body = |rank: Rank| {
        let world = rank.world();
        let me = world.rank();
        assert_eq!(world.ibcast(vec![0], 3).err().unwrap().class(), Class::Root);
        // Rank 1 gives another type, and learns it; the others aren't concerned.
        let wrong = match me {
            1 => world.ibcast(vec![0.5f32], 0).unwrap().wait().err(),
            _ => world.ibcast(vec![1i32], 0).unwrap().wait().err(),
        };
        assert_eq!(wrong.map(|error| error.class()), (me == 1).then_some(Class::Type));
        // All ranks learn of the operands that can't be combined.
        let data = match me {
            1 => world.iallreduce(vec![1u8; 2], vec![0u8; 2], Op::Max).unwrap().wait().err(),
            _ => world.iallreduce(vec![1u8], vec![0u8], Op::Max).unwrap().wait().err(),
        };
        assert!(data.is_some());
        world.barrier().unwrap();
        rank.finalize().unwrap();
    };
    // `--check` reports such calls at all ranks, before they are made.
    let options = Options { check: Checking::Off, ..Options::default() };
    run(3, &options, body).unwrap();
}

#[test]
fn neighbours_exchange_blocks_of_their_own() {
    let body = |rank: Rank| {
        let world = rank.world();
        let (me, size) = (world.rank(), world.size());
        // A line: the first and the last rank have one neighbour.
        let before = if me > 0 { me - 1 } else { PROC_NULL };
        let next = if me < size - 1 { me + 1 } else { PROC_NULL };
        let line = Neighbors { sources: &[before, next], destinations: &[before, next] };
        let (mut low, mut high) = ([-1], [-1; 2]);
        let (down, up) = ([10 * me, me], [me]);
        let given = [Origin::from(&down), Origin::from(&up)];
        let taken = [(&mut low).into(), (&mut high).into()];
        world.neighbor_alltoallw(line, given, taken).unwrap();
        assert_eq!(low, [if me > 0 { me - 1 } else { -1 }]);
        assert_eq!(high, if me < size - 1 { [10 * (me + 1), me + 1] } else { [-1; 2] });
        // Twice the same neighbour: blocks keep their order.
        let twice = Neighbors { sources: &[0, 0], destinations: &[] };
        let all: Vec<i32> = (0..size).flat_map(|to| [to, to]).collect();
        let from_first = match me {
            0 => Neighbors { destinations: &all, ..twice },
            _ => twice,
        };
        let given = (0..from_first.destinations.len() as i32).map(|at| Given::from(vec![at]));
        let taken = [Given::from(vec![-1]), Given::from(vec![-1])];
        let exchange = world.ineighbor_alltoallw(from_first, given, taken).unwrap();
        assert_eq!(exchange.wait().unwrap().1, [[2 * me], [2 * me + 1]]);
        // A neighbour that doesn't exist is an error at the rank that names it, and at its others.
        let wrong = match me {
            0 => world.neighbor_alltoallw(
                Neighbors { sources: &[], destinations: &[1, size] },
                [Origin::from(&[1]), Origin::from(&[1])],
                [],
            ),
            1 => world.neighbor_alltoallw(
                Neighbors { sources: &[0], destinations: &[] },
                [],
                [(&mut low).into()],
            ),
            _ => world.neighbor_alltoallw(Neighbors { sources: &[], destinations: &[] }, [], []),
        };
        assert_eq!(wrong.err().map(|error| error.class()), (me < 2).then_some(Class::Rank));
        // A block from itself that it doesn't send would be waited for in vain.
        let alone = Neighbors { sources: &[me, me], destinations: &[me] };
        let taken = [(&mut low).into(), (&mut high).into()];
        let error = world.neighbor_alltoallw(alone, [Origin::from(&up)], taken).unwrap_err();
        assert_eq!(error.class(), Class::Topology);
        rank.finalize().unwrap();
    };
    run(4, &Options::default(), body).unwrap();
}

#[test]
fn data_in_place_need_memory() {
    let body = |rank: Rank| {
        let mut room = [1];
        rank.world().allreduce(IN_PLACE, &mut room, Op::Sum).unwrap();
        let sending = rank.alone().isend(Given::in_place(vec![0u8]), 0, 0);
        assert_eq!(sending.err().unwrap().class(), Class::Buffer);
        rank.finalize().unwrap();
    };
    run(2, &Options::default(), body).unwrap();
}
