//! Reports of `--check` on rules 7, 8, 9, 22 and 23, and programs without reports, between like and
//! unlike ranks.

#[path = "checks/notify.rs"]
mod notify;

use std::time::Duration;

use longshore::job::Checking;
use longshore::shipable::Basic;
use longshore::sim::{Options, run, run_shared};
use longshore::{
    Architecture, Assert, Class, Communicator, Datatype, IN_PLACE, Info, LockType, Op, Passive,
    Rank, Type, Window,
};

const NATIVE: Architecture = Architecture::NATIVE;
const ONE: [i64; 1] = [1];
const SITE: &str = "runtime/tests/checks.rs:";

fn options(unlike: bool) -> Options {
    let unlike_ranks = vec![Architecture::S390X, NATIVE, Architecture::I686];
    let architectures = if unlike { unlike_ranks } else { Vec::new() };
    Options { architectures, check: Checking::Report, ..Options::default() }
}

/// Runs a program on three ranks, like and unlike, in several orders. Returns the reports of each
/// run.
fn reports(body: impl Fn(&Rank) + Sync) -> Vec<Vec<String>> {
    let whole = |rank: Rank| {
        body(&rank);
        // The records of operations have arrived when their fence or barrier has ended.
        rank.world().barrier().unwrap();
        let reports = rank.reports();
        rank.finalize().unwrap();
        reports
    };
    let mut found = Vec::new();
    for unlike in [false, true] {
        for seed in 0..3 {
            found.push(run(3, &Options { seed, ..options(unlike) }, whole).unwrap().concat());
        }
        found.push(run_shared(3, &options(unlike), whole).unwrap().concat());
    }
    found
}

/// Expects one report from every run, with these words.
#[track_caller]
fn expect(words: &[&str], body: impl Fn(&Rank) + Sync) {
    for found in reports(body) {
        assert_eq!(found.len(), 1, "{found:#?}");
        for word in words {
            assert!(found[0].contains(word), "{word}: {}", found[0]);
        }
        assert!(found[0].lines().all(|line| line.starts_with("check: ")), "{}", found[0]);
    }
}

#[track_caller]
fn expect_nothing(body: impl Fn(&Rank) + Sync) {
    for found in reports(body) {
        assert!(found.is_empty(), "{found:#?}");
    }
}

/// Makes a program on a window of 16 elements of 64 bits.
fn windowed(body: impl Fn(&Rank, &mut Window, &Type) + Sync) -> impl Fn(&Rank) + Sync {
    move |rank| {
        let world = rank.world();
        let mut window = Window::allocate(world, 16 * 8, 8, &Info::default()).unwrap();
        let long = rank.type_of::<i64>().unwrap();
        body(rank, &mut window, &long);
        world.barrier().unwrap();
        window.free().unwrap();
    }
}

#[test]
fn rule_23_puts_of_two_ranks_in_one_epoch() {
    let words = [
        "rule 23, window 1 of rank 2: accesses to the same bytes that nothing orders",
        "put by rank 0 at ",
        "put by rank 1 at ",
        SITE,
        ": bytes 8..24",
        ": bytes 16..32",
        "both touch bytes 16..24",
    ];
    expect(
        &words,
        windowed(|rank, window, long| {
            let me = rank.world().rank();
            let put = window.fence(|epoch| match me {
                2 => Ok(()),
                me => epoch.put(&[7i64, 8], 2, i64::from(me) + 1, 2, long),
            });
            put.unwrap();
        }),
    );
}

#[test]
fn rule_23_a_get_while_another_puts_or_accumulates() {
    let accesses = |accumulates: bool| {
        windowed(move |rank, window, long| {
            let mut room = [0i64; 4];
            let both = window.fence(|epoch| match rank.world().rank() {
                0 if accumulates => epoch.accumulate(&[1i64], 1, 3, 1, long, Op::Sum),
                0 => epoch.put(&[1i64], 1, 3, 1, long),
                1 => Ok(()),
                _ => epoch.get(&mut room, 1, 0, 4, long),
            });
            both.unwrap();
        })
    };
    let words =
        ["rule 23", "of rank 1", "put by rank 0 at ", "get by rank 2 at ", "touch bytes 24..32"];
    expect(&words, accesses(false));
    expect(&["rule 23", "accumulate (MPI_SUM of ", "get by rank 2 at "], accesses(true));
}

#[test]
fn rule_23_compares_the_exact_bytes_of_types() {
    let columns = |second: i64, elements: i64| {
        windowed(move |rank, window, _| {
            let int = Datatype::basic(Basic::Int32);
            let column = Datatype::vector(4, 1, 4, &int).unwrap();
            let column = rank.commit(&column).unwrap();
            let values = [7i32; 8];
            let me = rank.world().rank();
            let put = window.lock_all(|epoch| match me {
                0 => epoch.put(&values[..4], 2, 0, 1, &column),
                1 => epoch.put(&values[..4 * elements as usize], 2, second, elements, &column),
                _ => Ok(()),
            });
            put.unwrap();
        })
    };
    // The displacement unit is two ints: the third column of four doesn't overlap the first.
    expect_nothing(columns(1, 1));
    // The second element begins 13 ints further on, in the fourth column.
    expect_nothing(columns(1, 2));
    expect(&["rule 23", ": bytes 0..52, with gaps", "both touch bytes 16..20"], columns(2, 1));
}

#[test]
fn rule_23_covers_operations_of_one_rank() {
    let twice = |flushes: bool| {
        windowed(move |rank, window, long| {
            if rank.world().rank() == 1 {
                let values = [1i64];
                let put = window.lock(0, LockType::Exclusive, |epoch| {
                    epoch.put(&values, 0, 3, 1, long)?;
                    if flushes {
                        epoch.flush(0, |_| Ok(()))?;
                    }
                    epoch.put(&values, 0, 3, 1, long)
                });
                put.unwrap();
            }
        })
    };
    expect(&["rule 23", "of rank 0", "put by rank 1 at ", "touch bytes 24..32"], twice(false));
    expect_nothing(twice(true));
}

#[test]
fn rule_23_covers_loads_and_stores_of_the_owner() {
    let stores = windowed(|rank, window, long| {
        let me = rank.world().rank();
        let both = window.fence(|epoch| match me {
            0 => epoch.put(&[1i64], 1, 5, 1, long),
            1 => epoch.local().set(5, 2i64),
            _ => Ok(()),
        });
        both.unwrap();
    });
    expect(&["rule 23", "put by rank 0 at ", "store by rank 1 at ", "touch bytes 40..48"], stores);
    expect_nothing(windowed(|rank, window, long| {
        let me = rank.world().rank();
        window.set(5, 1i64).unwrap();
        let put = window.fence(|epoch| match me {
            0 => epoch.put(&[1i64], 1, 5, 1, long),
            _ => Ok(()),
        });
        put.unwrap();
        assert_eq!(window.get::<i64>(5).unwrap(), 1);
    }));
}

/// A message orders what its sender did before it, however late it is received.
#[test]
fn rule_23_a_message_tells_nothing_of_what_followed_it() {
    let words = ["rule 23", "of rank 2", "put by rank 0 at ", "put by rank 1 at ", "bytes 0..8"];
    expect(
        &words,
        windowed(|rank, window, long| {
            let world = rank.world();
            let all = window.lock_all(|epoch| match world.rank() {
                0 => {
                    epoch.put(&ONE, 2, 0, 1, long)?;
                    world.send(&ONE, 1, 0)?;
                    epoch.flush(2, |_| Ok(()))?;
                    world.send(&ONE, 1, 1)
                }
                1 => {
                    // The second message is here as well, but isn't received yet.
                    world.probe(0, 1)?;
                    world.recv(&mut [0i64], 0, 0)?;
                    epoch.put(&ONE, 2, 0, 1, long)?;
                    world.recv(&mut [0i64], 0, 1).map(drop)
                }
                _ => Ok(()),
            });
            all.unwrap();
        }),
    );
}

/// Each synchronisation that orders accesses of two ranks, and each with one half missing.
#[test]
fn ordered_accesses_are_not_reported() {
    for (flushes, tells) in [(true, true), (true, false), (false, true)] {
        let handed_on = windowed(move |rank, window, long| {
            let (world, me) = (rank.world(), rank.world().rank());
            let put = |epoch: &Passive<'_, '_>| epoch.put(&ONE, 2, 0, 1, long);
            let all = window.lock_all(|epoch| {
                match me {
                    0 => {
                        put(epoch)?;
                        if flushes {
                            epoch.flush(2, |_| Ok(()))?;
                        }
                        world.send(&ONE, if tells { 1 } else { 2 }, 0)?;
                        epoch.flush(2, |_| Ok(()))?;
                    }
                    1 => {
                        if tells {
                            world.recv(&mut [0i64], 0, 0)?;
                        }
                        put(epoch)?;
                    }
                    _ => {
                        if !tells {
                            world.recv(&mut [0i64], 0, 0)?;
                        }
                    }
                }
                Ok(())
            });
            all.unwrap();
        });
        match flushes && tells {
            true => expect_nothing(handed_on),
            false => expect(&["rule 23", "put by rank 0", "put by rank 1"], handed_on),
        }
    }
    // An exclusive lock; and a shared one, which orders nothing.
    for lock_type in [LockType::Exclusive, LockType::Shared] {
        let locked = windowed(move |rank, window, long| {
            if rank.world().rank() != 2 {
                window.lock(2, lock_type, |epoch| epoch.put(&ONE, 2, 0, 1, long)).unwrap();
            }
        });
        match lock_type {
            LockType::Exclusive => expect_nothing(locked),
            LockType::Shared => expect(&["rule 23"], locked),
        }
    }
    // Barriers and other collective calls, after a flush.
    expect_nothing(windowed(|rank, window, long| {
        let world = rank.world();
        let turns = window.lock_all(|epoch| {
            for turn in 0..6 {
                if turn % 3 == world.rank() {
                    epoch.flush(1, |epoch| epoch.put(&ONE, 1, 0, 1, long))?;
                }
                match turn {
                    0..3 => world.barrier()?,
                    _ => _ = world.allgather(&[turn])?,
                }
            }
            Ok(())
        });
        turns.unwrap();
    }));
    // Post, start, complete and wait.
    expect_nothing(windowed(|rank, window, long| {
        let (world, me) = (rank.world(), rank.world().rank());
        let group = |rank| world.group().incl(&[rank]).unwrap();
        for origin in [0, 2] {
            match me {
                1 => {
                    window.set(4, 3i64).unwrap();
                    window.post(&group(origin), Assert::NONE).unwrap();
                    window.wait().unwrap();
                    assert_eq!(window.get::<i64>(4).unwrap(), 1);
                }
                me if me == origin => {
                    let put = |epoch: &longshore::Epoch<'_, '_>| epoch.put(&ONE, 1, 4, 1, long);
                    window.start(&group(1), Assert::NONE, put).unwrap();
                }
                _ => {}
            }
        }
    }));
    // A flag that is accumulated and fetched.
    expect_nothing(windowed(|rank, window, long| {
        let me = rank.world().rank();
        let flagged = window.lock_all(|epoch| {
            match me {
                0 => {
                    epoch.flush(1, |epoch| epoch.put(&[5i64; 2], 1, 0, 2, long))?;
                    epoch.accumulate(&[1i64], 1, 8, 1, long, Op::Replace)?;
                }
                1 => {
                    while epoch.local().get::<i64>(8)? == 0 {
                        epoch.sync()?
                    }
                }
                _ => while epoch.fetch_and_op(0i64, 1, 8, Op::NoOp)?.wait()? == 0 {},
            }
            let mut found = [0i64; 2];
            match me {
                0 => return Ok(()),
                1 => epoch.local().read(0, &mut found)?,
                _ => epoch.flush(1, |epoch| epoch.get(&mut found, 1, 0, 2, long))?,
            }
            assert_eq!(found, [5; 2]);
            Ok(())
        });
        flagged.unwrap();
    }));
}

#[test]
fn rule_22_accumulates_of_two_operations_or_types() {
    let meet = |op: Op, same_op: bool| {
        move |rank: &Rank| {
            let world = rank.world();
            let info = Info::default();
            let info = if same_op { info.set("accumulate_ops", "same_op").unwrap() } else { info };
            let mut window = Window::allocate(world, 64, 8, &info).unwrap();
            let all = window.fence(|epoch| match world.rank() {
                0 => epoch.fetch_and_op(1i64, 1, 2, Op::Sum).map(drop),
                1 => Ok(()),
                _ => epoch.fetch_and_op(1i64, 1, 2, op).map(drop),
            });
            all.unwrap();
            window.free().unwrap();
        }
    };
    let words = [
        "rule 22, window 1 of rank 1: accumulates that aren't of one operation and type",
        "accumulate (MPI_SUM of ",
        "accumulate (MPI_MAX of ",
        "touch bytes 16..24",
    ];
    expect(&words, meet(Op::Max, false));
    expect_nothing(meet(Op::Sum, true));
    expect_nothing(meet(Op::NoOp, false));
    expect(&["rule 22", "MPI_NO_OP"], meet(Op::NoOp, true));
    // Both origins must lock, as in MPI's own example.
    expect_nothing(windowed(|rank, window, _| {
        let all = window.lock_all(|epoch| match rank.world().rank() {
            0 => epoch.compare_and_swap(1i64, 0, 1, 2)?.wait().map(drop),
            1 => Ok(()),
            _ => epoch.fetch_and_op(0i64, 1, 2, Op::Replace)?.wait().map(drop),
        });
        all.unwrap();
    }));
    let types = windowed(|rank, window, _| {
        let all = window.fence(|epoch| match rank.world().rank() {
            0 => epoch.fetch_and_op(1i64, 1, 2, Op::Sum).map(drop),
            1 => Ok(()),
            _ => epoch.fetch_and_op(1.0f64, 1, 2, Op::Sum).map(drop),
        });
        all.unwrap();
    });
    expect(&["rule 22", "by rank 0", "by rank 2", "touch bytes 16..24"], types);
}

#[test]
fn duplicate_reports_are_suppressed() {
    let whole = |rank: Rank| {
        windowed(|_, window, long| {
            for _ in 0..50 {
                window.fence(|epoch| epoch.put(&ONE, 1, 3, 1, long)).unwrap();
            }
        })(&rank);
        let reports = rank.reports();
        rank.finalize().unwrap();
        reports.len()
    };
    let told = run(3, &options(true), whole).unwrap();
    assert_eq!(told, [0, 1, 0]);
}

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

#[test]
fn rule_7_nocheck_must_be_given_on_both_sides() {
    for (posts, starts) in [(Assert::NOCHECK, Assert::NONE), (Assert::NONE, Assert::NOCHECK)] {
        let differ = windowed(move |rank, window, long| {
            let world = rank.world();
            let group = |rank| world.group().incl(&[rank]).unwrap();
            if world.rank() == 1 {
                window.post(&group(0), posts).unwrap();
            }
            world.barrier().unwrap();
            match world.rank() {
                0 => window.start(&group(1), starts, |it| it.put(&[1i64], 1, 0, 1, long)).unwrap(),
                1 => window.wait().unwrap(),
                _ => {}
            }
        });
        let with = |it: Assert| if it == Assert::NONE { "without" } else { "with" };
        let start = format!("start {} it by rank 0 at ", with(starts));
        let post = format!("post {} it by rank 1 at ", with(posts));
        expect(
            &["rule 7, window 1: NOCHECK on one side of a start and a post", &start, &post],
            differ,
        );
    }
}

#[test]
fn rule_7_a_nocheck_start_needs_an_earlier_post() {
    let unposted = windowed(|rank, window, _| {
        let world = rank.world();
        if world.rank() == 0 {
            let group = world.group().incl(&[1]).unwrap();
            window.start(&group, Assert::NOCHECK, |_| Ok(())).unwrap();
        }
    });
    let words = [
        "rule 7, window 1: a start to rank 1, which hasn't posted to its rank",
        "start by rank 0 at ",
        "rank 1 has exposed it to nobody",
    ];
    expect(&words, unposted);
}

/// Groups that don't match end in a deadlock. The check waits in real time to be sure of it.
#[test]
fn rule_7_groups_of_post_and_start_must_match() {
    for unlike in [false, true] {
        let body = |rank: Rank| {
            let world = rank.world();
            let window = Window::allocate(world, 8, 8, &Info::default()).unwrap();
            let group = |rank| world.group().incl(&[rank]).unwrap();
            // Each rank waits for another one.
            let failed = match world.rank() {
                0 => window.start(&group(1), Assert::NONE, |_| Ok(())).err(),
                1 => {
                    window.post(&group(2), Assert::NONE).unwrap();
                    window.wait().err()
                }
                _ => window.start(&group(0), Assert::NONE, |_| Ok(())).err(),
            };
            world.barrier().unwrap();
            let reports = rank.reports();
            window.free().unwrap();
            rank.finalize().unwrap();
            (failed.map(|error| error.class()), reports)
        };
        let (classes, reports): (Vec<_>, Vec<_>) =
            run_shared(3, &options(unlike), body).unwrap().into_iter().unzip();
        assert_eq!(classes, [Some(Class::RmaSync); 3]);
        let words = [
            &[
                "rule 7, window 1: a start that nothing can end",
                "rank 1's last post, at ",
                "is to rank 2",
            ][..],
            &["rule 7, window 1: a wait that nothing can end", "it waits for rank 2 to complete"],
            &["rule 7, window 1: a start that nothing can end", "rank 0 has posted to nobody"],
        ];
        for (reports, words) in reports.iter().zip(words) {
            for word in
                words.iter().chain(&["rank 0: in a start on window 1, waits for rank 1", SITE])
            {
                assert!(reports[0].contains(word), "{word}: {}", reports[0]);
            }
        }
    }
}

/// A rank that waits for a lock waits for the holder, not for the target. The lock is held for
/// longer than the check needs to be sure of a deadlock.
#[test]
fn a_lock_that_is_held_for_long_is_no_deadlock() {
    for unlike in [false, true] {
        let body = |rank: Rank| {
            let world = rank.world();
            let window = Window::allocate(world, 8, 8, &Info::default()).unwrap();
            let lock = |body: &dyn Fn()| {
                let locked = |_: &Passive| {
                    body();
                    Ok(())
                };
                window.lock(1, LockType::Exclusive, locked).unwrap();
            };
            let mut word = [0i32];
            match world.rank() {
                0 => {
                    world.recv(&mut word, 2, 0).unwrap();
                    lock(&|| ());
                    world.send(&word, 1, 0).unwrap();
                }
                1 => _ = world.recv(&mut word, 0, 0).unwrap(),
                _ => lock(&|| {
                    world.send(&[1i32], 0, 0).unwrap();
                    std::thread::sleep(Duration::from_secs(4));
                }),
            }
            world.barrier().unwrap();
            window.free().unwrap();
            rank.finalize().unwrap();
        };
        run_shared(3, &options(unlike), body).unwrap();
    }
}

/// Rank 1 waits in a deadlock for a lock that rank 2 holds, on rank 1's window or on rank 0's.
/// After the error the window works as before.
#[test]
fn an_abandoned_lock_request_leaves_the_queue() {
    for (unlike, owner) in [(false, 1), (true, 0)] {
        let body = |rank: Rank| {
            let world = rank.world();
            let me = world.rank();
            let mut window = Window::allocate(world, 8, 8, &Info::default()).unwrap();
            let long = rank.type_of::<i64>().unwrap();
            window.local().set(0, 7 + i64::from(me)).unwrap();
            world.barrier().unwrap();
            let lock = |lock_type| window.lock(owner, lock_type, |_| Ok(()));
            let mut word = [0i32];
            let given_up = |outcome: longshore::Result<()>| {
                assert_eq!(outcome.unwrap_err().class(), Class::RmaSync);
            };
            match me {
                1 => {
                    world.recv(&mut word, 2, 0).unwrap();
                    given_up(lock(LockType::Exclusive));
                    // A second request, with the other lock type, while the first is still queued.
                    world.recv(&mut word, 2, 0).unwrap();
                    world.send(&word, 2, 1).unwrap();
                    lock(LockType::Shared).unwrap();
                }
                2 => {
                    let held = |_: &Passive| {
                        world.send(&word, 1, 0)?;
                        given_up(world.recv(&mut [0i32], 1, 1).map(drop));
                        world.send(&word, 1, 0)?;
                        world.recv(&mut [0i32], 1, 1)?;
                        std::thread::sleep(Duration::from_millis(100));
                        Ok(())
                    };
                    window.lock(owner, LockType::Exclusive, held).unwrap();
                }
                _ => {}
            }
            world.barrier().unwrap();
            lock(LockType::Exclusive).unwrap();
            let mut values = [0i64; 3];
            let rooms = &mut values;
            let fetched = window.fence(|epoch| {
                let mut rooms = rooms.iter_mut().zip(0..);
                rooms.try_for_each(|(room, from)| {
                    epoch.get(std::slice::from_mut(room), from, 0, 1, &long)
                })
            });
            fetched.unwrap();
            assert_eq!(values, [7, 8, 9]);
            window.free().unwrap();
            rank.finalize().unwrap();
        };
        run_shared(3, &options(unlike), body).unwrap();
    }
}

/// Two ranks that receive a type from each other get an error. Later receives get both types.
#[test]
fn an_abandoned_receive_of_a_type_takes_no_message() {
    let body = |rank: Rank| {
        let world = rank.world();
        let (me, other) = (world.rank(), 1 - world.rank());
        assert_eq!(
            world.type_recv(other, 0).err().map(|error| error.class()),
            Some(Class::RmaSync)
        );
        world.barrier().unwrap();
        if me == 0 {
            world.type_send(&rank.type_of::<f64>().unwrap(), other, 0).unwrap();
        } else {
            assert_eq!(world.type_recv(other, 0).unwrap().builder(), 0);
        }
        rank.finalize().unwrap();
    };
    run_shared(2, &options(false), body).unwrap();
}

/// The end of an inner scope doesn't complete the requests of the outer scope.
#[test]
fn a_request_outlives_a_scope_within_its_epoch() {
    expect_nothing(windowed(|rank, window, long| {
        let [to, other] = [1, 2].map(|more| (rank.world().rank() + more) % 3);
        let nested = |epoch: &Passive| {
            let put = epoch.rput(vec![1i64], to, 0, 1, long)?;
            let value = epoch.fetch_and_op(1i64, to, 1, Op::Sum)?;
            // Its flush completes no operation on other targets.
            epoch.flush(other, |inner| inner.put(&[2i64], other, 2, 1, long))?;
            value.wait()?;
            put.wait().map(drop)
        };
        window.lock_all(nested).unwrap();
    }));
}

#[test]
fn findings_can_fail_finalize() {
    // In the last order a rank exits before another has its message.
    for adversary in [None, Some(1), Some(44_444)] {
        let fails = Options { check: Checking::Fail, adversary, ..options(true) };
        let outcomes = run(3, &fails, |rank| {
            windowed(|_, window, long| {
                window.fence(|epoch| epoch.put(&[1i64], 1, 3, 1, long)).unwrap();
            })(&rank);
            rank.finalize().map_err(|error| (error.class(), error.to_string()))
        });
        for outcome in outcomes.unwrap() {
            let (class, text) = outcome.unwrap_err();
            assert_eq!(class, Class::Other, "{text}");
            assert!(text.contains("--check reported 1 fault"), "{text}");
        }
    }
}
