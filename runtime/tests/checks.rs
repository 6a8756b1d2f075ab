//! Reports of `--check` on rules 7, 8, 9, 22 and 23, and programs without reports, between like and
//! unlike ranks.

#[path = "checks/collective.rs"]
mod collective;
#[path = "checks/messages.rs"]
mod messages;
#[path = "checks/notify.rs"]
mod notify;
#[path = "checks/started.rs"]
mod started;
#[path = "checks/threads.rs"]
mod threads;
#[path = "checks/waits.rs"]
mod waits;

use longshore::job::{Checking, Topics};
use longshore::shipable::Basic;
use longshore::sim::{Options, run, run_shared};
use longshore::{
    Architecture, Assert, Class, Datatype, Info, LockType, Op, Passive, Rank, TargetTypes, Type,
    Window,
};

const NATIVE: Architecture = Architecture::NATIVE;
const ONE: [i64; 1] = [1];
const SITE: &str = "runtime/tests/checks.rs:";

fn options(unlike: bool) -> Options {
    let unlike_ranks = vec![Architecture::S390X, NATIVE, Architecture::I686];
    let architectures = if unlike { unlike_ranks } else { Vec::new() };
    Options { architectures, check: Checking::Report(Topics::default()), ..Options::default() }
}

/// Runs a program on three ranks, like and unlike, in several orders. Returns the reports of each
/// run.
fn reports(body: impl Fn(&Rank) + Sync) -> Vec<Vec<String>> {
    let whole = |rank: Rank| {
        rank.promise_one_thread(true);
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

/// Both the type and the memory may make up for a displacement that isn't aligned itself.
#[test]
fn rule_14_is_about_the_address_of_the_first_item() {
    let put = |rank: &Rank, mut window: Window, displacement: i64, first: i64| {
        let double = Datatype::hindexed_block(1, &[first], &Datatype::basic(Basic::Double));
        let double = rank.commit(&double.unwrap()).unwrap();
        let put = window.fence(|epoch| match rank.world().rank() {
            2 => epoch.put(&[1.5], 1, displacement, 1, &double),
            _ => Ok(()),
        });
        put.unwrap();
        window.free().unwrap();
    };
    let body = |rank: Rank| {
        let info = Info { target_types: TargetTypes::SameLayout, ..Info::default() };
        // The second member of structs of 12 bytes.
        let window = Window::allocate(rank.world(), 28, 12, &info).unwrap();
        put(&rank, window, 1, 4);
        // The memory of rank 1 begins at byte 28.
        let window = Window::allocate_shared(rank.world(), 28, 1, &info).unwrap();
        put(&rank, window, 4, 0);
        let reports = rank.reports();
        rank.finalize().unwrap();
        reports
    };
    assert_eq!(run(3, &options(false), body).unwrap().concat(), [""; 0]);
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
        let fails =
            Options { check: Checking::Fail(Topics::default()), adversary, ..options(true) };
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
