//! Rules 8 and 9: all ranks make the same collective calls, with like arguments.

use longshore::sim::run;
use longshore::{Assert, Class, Communicator, IN_PLACE, Info, Op, Rank, Window};

use super::{ONE, expect, expect_nothing, options, windowed};

const SITE: &str = "runtime/tests/checks/collective.rs:";

#[test]
fn rule_9_collective_asserts_and_hints_must_agree() {
    for (assert, name) in [(Assert::NOPRECEDE, "NOPRECEDE"), (Assert::NOSUCCEED, "NOSUCCEED")] {
        let differ = windowed(move |rank, window, _| {
            let calls = window.raw();
            calls.fence(Assert::NONE).unwrap();
            let one = rank.world().rank() == 1;
            calls.fence(if one { assert } else { Assert::NOSTORE }).unwrap();
            calls.fence(Assert::NOSUCCEED).unwrap();
        });
        let first = format!("rule 9: some ranks promise {name}, and some don't");
        let words = [
            &first,
            "rank 0 and 1 more: fence of window 1 without ",
            "rank 1: fence of window 1 with ",
            SITE,
        ];
        expect(&words, differ);
    }
}

/// If one rank makes another collective call than the others, all ranks get an error and go on.
#[test]
fn rule_8_collective_calls_must_have_one_order() {
    let differ = windowed(|rank, window, _| {
        let world = rank.world();
        let error = match world.rank() {
            1 => world.barrier().unwrap_err(),
            _ => window.fence(|_| Ok(())).unwrap_err(),
        };
        assert_eq!(error.class(), Class::RmaSync, "{error}");
        assert!(error.to_string().contains("(rule 8)"), "{error}");
        // The ranks' calls match again.
        window.fence(|_| Ok(())).unwrap();
    });
    let words = [
        "rule 8: ranks make different collective calls on one communicator",
        "rank 0 and 1 more: fence of window 1 at ",
        "rank 1: barrier at ",
        SITE,
    ];
    expect(&words, differ);
    let created = |rank: &Rank| {
        let world = rank.world();
        let window = Window::allocate(world, 8, 8, &Info::default()).unwrap();
        match world.rank() {
            0 => drop(Window::create(world, vec![0u8; 8], 1, &Info::default()).err().unwrap()),
            _ => drop(window.free().unwrap_err()),
        }
    };
    expect(
        &["rule 8", "rank 0: create of a window at ", "rank 1 and 1 more: free of window 1 at "],
        created,
    );
}

/// Roots, operations, types and counts are compared, too.
#[test]
fn rule_8_collective_calls_must_have_equal_arguments() {
    type Call<'a> = dyn Fn(&Communicator, i32) -> longshore::Result<()> + Sync + 'a;
    let calls: [(&Call<'_>, &str, &str); 6] = [
        (&|world, me| world.bcast(&mut [me], me), "bcast with root 0 at ", "bcast with root 1 at "),
        (
            &|world, me| {
                let op = if me == 1 { Op::Max } else { Op::Sum };
                world.reduce(&[me], &mut [0], op, 2)
            },
            "reduce by MPI_SUM with root 2 at ",
            "reduce by MPI_MAX with root 2 at ",
        ),
        (
            &|world, me| {
                let count = if me == 1 { 2 } else { 1 };
                world.allreduce(&vec![1i64; count], &mut vec![0i64; count], Op::Sum)
            },
            "allreduce by MPI_SUM of 1 MPI_INT64_T at ",
            "allreduce by MPI_SUM of 2 MPI_INT64_T at ",
        ),
        (
            &|world, me| match me {
                1 => world.bcast(&mut [1.5], 0),
                _ => world.bcast(&mut [1i64], 0),
            },
            "bcast with root 0 of 1 MPI_INT64_T at ",
            "bcast with root 0 of 1 MPI_DOUBLE at ",
        ),
        (
            &|world, me| match me {
                1 => world.gather(&[1u8, 2], &mut [0u8; 3], 0),
                _ => world.gather(&[1u8], &mut [0u8; 3], 0),
            },
            "gather with root 0 of 1 MPI_UINT8_T at ",
            "gather with root 0 of 2 MPI_UINT8_T at ",
        ),
        (
            &|world, me| match me {
                1 => world.allgather(&[1.5]).map(drop),
                _ => world.allgather(&[1i64]).map(drop),
            },
            "allgather of 1 MPI_INT64_T at ",
            "allgather of 1 MPI_DOUBLE at ",
        ),
    ];
    for (call, others, one) in calls {
        expect(&["rule 8", others, one, SITE], |rank| {
            let error = call(rank.world(), rank.world().rank()).unwrap_err();
            assert_eq!(error.class(), Class::RmaSync, "{error}");
            // The ranks' calls match again.
            assert_eq!(rank.world().allgather(&[7]).unwrap(), [7; 3]);
        });
    }
    // Data in place have no type of their own.
    expect_nothing(|rank| {
        let mut sum = [1i64, 2];
        rank.world().allreduce(IN_PLACE, &mut sum, Op::Sum).unwrap();
        let mut all = [0u8; 3];
        let world = rank.world();
        match world.rank() {
            0 => world.gather(IN_PLACE, &mut all, 0).unwrap(),
            _ => world.gather(&[1u8], &mut [0u8; 0], 0).unwrap(),
        }
    });
}

/// The report names the line in the program, however many inner calls a collective call makes.
#[test]
fn rule_8_reports_name_the_line_of_every_collective_call() {
    let (mine, ranges) = ([1i64; 3], [0..1, 1..2, 2..3]);
    type Call<'a> = dyn Fn(&Communicator, &Window) -> longshore::Result<()> + Sync + 'a;
    let calls: [(&str, &Call<'_>); 12] = [
        ("bcast with root 0", &|world, _| world.bcast(&mut [1i64], 0)),
        ("gather with root 0", &|world, _| world.gather(&ONE, &mut [0i64; 3], 0)),
        ("gatherv with root 0", &|world, _| world.gatherv(&ONE, &mut [0i64; 3], &ranges, 0)),
        ("allgather", &|world, _| world.allgather(&ONE).map(drop)),
        ("allgatherv", &|world, _| world.allgatherv(&ONE, &mut [0i64; 3], &ranges)),
        ("scatter with root 0", &|world, _| world.scatter(&mine, &mut [0i64], 0)),
        ("scatterv with root 0", &|world, _| world.scatterv(&mine, &ranges, &mut [0i64], 0)),
        ("alltoall", &|world, _| world.alltoall(&mine, &mut [0i64; 3])),
        ("alltoallv", &|world, _| world.alltoallv((&mine, &ranges), (&mut [0i64; 3], &ranges))),
        ("allreduce by MPI_SUM", &|world, _| world.allreduce(&ONE, &mut [0i64], Op::Sum)),
        ("exscan by MPI_SUM", &|world, _| world.exscan(&ONE, &mut [0i64], Op::Sum)),
        ("set_info of window 1", &|_, window| window.set_info(&Info::default())),
    ];
    run(3, &options(false), |rank| {
        rank.promise_one_thread(true);
        let world = rank.world();
        let window = Window::allocate(world, 8, 8, &Info::default()).unwrap();
        for (name, call) in calls {
            let error = match world.rank() {
                1 => world.barrier().unwrap_err(),
                _ => call(world, &window).unwrap_err(),
            };
            for words in [format!("more: {name} at {SITE}"), format!("barrier at {SITE}")] {
                assert!(error.to_string().contains(&words), "no {words:?} in: {error}");
            }
        }
        window.free().unwrap();
        rank.finalize().unwrap();
    })
    .unwrap();
}
