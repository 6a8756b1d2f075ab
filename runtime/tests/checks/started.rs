//! Collective calls with requests, and persistent ones, under `--check` (rule 8).

use longshore::Communicator;

use super::*;

type Start<'a> = dyn Fn(&Communicator, i32) -> longshore::Result<()> + Sync + 'a;

#[test]
fn calls_with_requests_must_have_equal_arguments() {
    let calls: [(&Start<'_>, [&str; 2]); 5] = [
        (
            &|world, me| world.ibcast(vec![me], me)?.wait().map(drop),
            ["rank 0: ibcast with root 0 at ", "rank 1: ibcast with root 1 at "],
        ),
        (
            &|world, me| {
                let op = if me == 1 { Op::Max } else { Op::Sum };
                world.iallreduce(vec![me], vec![0], op)?.wait().map(drop)
            },
            ["iallreduce by MPI_SUM", "rank 1: iallreduce by MPI_MAX"],
        ),
        (
            &|world, me| match me {
                1 => world.ibarrier()?.wait(),
                _ => world.ireduce(vec![me], vec![0], Op::Sum, 0)?.wait().map(drop),
            },
            ["rank 0 and 1 more: ireduce by MPI_SUM with root 0", "rank 1: ibarrier at "],
        ),
        (
            &|world, me| match me {
                1 => world.ibcast(vec![1f32], 0)?.wait().map(drop),
                _ => world.ibcast(vec![1i32], 0)?.wait().map(drop),
            },
            ["rank 0 and 1 more: ibcast with root 0 of 1 ", "rank 1: ibcast with root 0 of 1 "],
        ),
        (
            &|world, me| {
                let first = world.reserve();
                first
                    .iallreduce(vec![me], vec![0], if me == 1 { Op::Max } else { Op::Sum })?
                    .wait()?;
                Ok(())
            },
            ["allreduce_init by MPI_SUM", "rank 1: allreduce_init by MPI_MAX"],
        ),
    ];
    for (start, words) in calls {
        let both = [&["rule 8: ranks ", "runtime/tests/checks/started.rs:"], &words[..]].concat();
        expect(&both, |rank| {
            let (world, me) = (rank.world(), rank.world().rank());
            let error = start(world, me).unwrap_err();
            assert_eq!(error.class(), Class::RmaSync, "{error}");
            // The calls of the ranks match again.
            let sum = world.iallreduce(vec![1], vec![0], Op::Sum).unwrap();
            assert_eq!(sum.wait().unwrap().1, [3]);
        });
    }
}

#[test]
fn calls_with_requests_that_match_are_silent() {
    expect_nothing(|rank| {
        let (world, me) = (rank.world(), rank.world().rank());
        // Reserved places may be started in any order, and calls may overlap.
        let (sums, maxima) = (world.reserve(), world.reserve());
        for round in 0..3 {
            let (one, two) = match me % 2 {
                0 => ((&sums, Op::Sum), (&maxima, Op::Max)),
                _ => ((&maxima, Op::Max), (&sums, Op::Sum)),
            };
            let started =
                [one, two].map(|(of, op)| of.iallreduce(vec![me + round], vec![0], op).unwrap());
            let meeting = world.ibarrier().unwrap();
            world.barrier().unwrap();
            let gathered = world.igather(vec![me], vec![0; 3], 2).unwrap();
            started.into_iter().for_each(|it| drop(it.wait().unwrap()));
            assert!(me != 2 || gathered.wait().unwrap().1 == [0, 1, 2]);
            meeting.wait().unwrap();
        }
        world.barrier().unwrap();
    });
}
