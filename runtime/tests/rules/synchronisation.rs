//! The order of synchronisation calls: rules 2 to 6, 9, 10, 12, 13 and 25.

use longshore::job::Routes;
use longshore::{
    Architecture, Assert, Class, Datatype, Info, LockType, Op, Origin, PROC_NULL, Type, Window,
};

use crate::{
    everywhere, everywhere_alone, everywhere_leaving_windows, expect, job, windows, wrong,
};

#[test]
fn calls_after_finalize_are_refused() {
    everywhere_alone(|rank| {
        let mut window = Window::allocate(rank.world(), 8, 1, &Info::default()).unwrap();
        // Under `--check`, it reports the window.
        drop(rank.finalize());
        let error = window.fence(|_| Ok(())).unwrap_err();
        expect(&error, Class::Other, &["finalized"]);
        expect(&window.free().unwrap_err(), Class::Other, &["finalized"]);
    });
}

#[test]
fn the_bodys_error_is_returned_after_the_closing_fence() {
    everywhere(|rank, world| {
        let mut window = Window::allocate(world, 8, 8, &Info::default()).unwrap();
        let long = rank.type_of::<i64>().unwrap();
        let me = world.rank();
        let outcome = window.fence(|epoch| {
            epoch.put(&[41i64], me, 0, 1, &long)?;
            rank.commit(&Datatype::vector(-1, 1, 1, &Datatype::int())?)
        });
        expect(&outcome.unwrap_err(), Class::Count, &[]);
        assert_eq!(window.get::<i64>(0).unwrap(), 41);
        window.free().unwrap();
    });
}

#[test]
fn rule_2_operations_reach_targets_that_are_locked_or_started_to() {
    windows(|world, window, double| {
        let me = world.rank();
        let other = (me + 1) % world.size();
        let error = window
            .lock(me, LockType::Shared, |epoch| epoch.put(&[1.0f64], other, 0, 1, double))
            .unwrap_err();
        expect(
            &error,
            Class::RmaSync,
            &["isn't locked", "rule 2", "put at rank", "1 target locked"],
        );
        let error =
            window.lock(me, LockType::Shared, |epoch| epoch.flush(other, |_| Ok(()))).unwrap_err();
        expect(&error, Class::RmaSync, &["isn't locked", "rule 5", "flush at rank"]);
        let own = world.group().incl(&[me]).unwrap();
        window.post(&own, Assert::NONE).unwrap();
        let error = window
            .start(&own, Assert::NONE, |epoch| epoch.put(&[1.0f64], other, 0, 1, double))
            .unwrap_err();
        expect(&error, Class::RmaSync, &["start group", "rule 2", "started to 1 target"]);
        window.wait().unwrap();
        world.barrier().unwrap();
        assert_eq!(window.local().bytes(0, 80).unwrap(), [0; 80]);
    });
}

#[test]
fn rule_3_access_epochs_are_disjoint() {
    windows(|world, window, double| {
        let me = world.rank();
        let own = world.group().incl(&[me]).unwrap();
        let lock = LockType::Exclusive;
        let start = || window.start(&own, Assert::NONE, |_| Ok(())).unwrap_err();
        let error = window.lock(me, lock, |_| Ok(start())).unwrap();
        expect(&error, Class::RmaSync, &["start within", "rule 3", "1 target locked"]);
        let error = window.lock_all(|_| Ok(start())).unwrap();
        expect(&error, Class::RmaSync, &["start within", "all targets locked"]);
        let all = || window.lock_all(|_| Ok(())).unwrap_err();
        let error = window.lock(me, lock, |_| Ok(all())).unwrap();
        expect(&error, Class::RmaSync, &["lock within", "rule 3"]);
        window.post(&own, Assert::NONE).unwrap();
        let error = window.start(&own, Assert::NONE, |_| Ok(all())).unwrap();
        expect(&error, Class::RmaSync, &["lock within", "lock_all at rank", "started to 1 target"]);
        let error = window.fence(|_| Ok(())).unwrap_err();
        expect(&error, Class::RmaSync, &["fence while the window is exposed", "rule 3"]);
        window.wait().unwrap();
        world.barrier().unwrap();
        // The refused calls have changed nothing.
        let value = [f64::from(me)];
        window.lock(me, lock, |epoch| epoch.put(&value, me, 0, 1, double)).unwrap();
        assert_eq!(window.get::<f64>(0).unwrap(), value[0]);
    });
}

/// A process outside of the window's group is refused, and named by its rank in the job.
#[test]
fn post_and_start_refuse_ranks_outside_the_window() {
    everywhere(|_, world| {
        let me = world.rank();
        let Some(part) = world.split((me > 0).then_some(0), me).unwrap() else { return };
        let window = Window::allocate(&part, 8, 8, &Info::default()).unwrap();
        let outside = world.group().incl(&[0]).unwrap();
        for error in [
            window.post(&outside, Assert::NONE).unwrap_err(),
            window.start(&outside, Assert::NONE, |_| Ok(())).unwrap_err(),
        ] {
            expect(&error, Class::Group, &["process 0 of the group", "the window's group"]);
        }
        window.free().unwrap();
    });
}

#[test]
fn rules_4_and_5_unmatched_calls_are_refused() {
    windows(|world, window, _| {
        let me = world.rank();
        expect(
            &window.wait().unwrap_err(),
            Class::RmaSync,
            &["without a post", "rule 4", "no epoch"],
        );
        expect(&window.test().unwrap_err(), Class::RmaSync, &["without a post", "test at rank"]);
        let own = world.group().incl(&[me]).unwrap();
        window.post(&own, Assert::NONE).unwrap();
        let error = window.post(&own, Assert::NONE).unwrap_err();
        expect(&error, Class::RmaSync, &["post while the window is exposed", "rule 4"]);
        window.start(&own, Assert::NONE, |_| Ok(())).unwrap();
        assert!(window.test().unwrap());
        let twice = window.lock(me, LockType::Shared, |_| {
            Ok(window.lock(me, LockType::Shared, |_| Ok(())).unwrap_err())
        });
        expect(&twice.unwrap(), Class::RmaSync, &["locked by this rank already", "rule 5"]);
    });
}

#[test]
fn rule_6_a_window_is_not_exposed_and_locked_at_once() {
    windows(|world, window, _| {
        let (me, size) = (world.rank(), world.size());
        let before = world.group().incl(&[(me + size - 1) % size]).unwrap();
        let (next, after) = ((me + 1) % size, world.group().incl(&[(me + 1) % size]).unwrap());
        window.post(&before, Assert::NONE).unwrap();
        world.barrier().unwrap();
        for lock_type in [LockType::Shared, LockType::Exclusive] {
            let error = window.lock(next, lock_type, |_| Ok(())).unwrap_err();
            expect(&error, Class::RmaSync, &["exposed its window", "rule 6"]);
        }
        let error = window.lock_all(|_| Ok(())).unwrap_err();
        expect(&error, Class::RmaSync, &["exposed its window", "rule 6", "lock_all at rank"]);
        world.barrier().unwrap();
        window.start(&after, Assert::NONE, |_| Ok(())).unwrap();
        window.wait().unwrap();
        world.barrier().unwrap();
        let refused = window
            .lock(me, LockType::Shared, |_| Ok(window.post(&before, Assert::NONE).unwrap_err()));
        expect(
            &refused.unwrap(),
            Class::RmaSync,
            &["has the window locked", "rule 6", "post at rank"],
        );
        // Also if no operation has needed the lock yet.
        for loads in [false, true] {
            let refused = window.lock_all(|epoch| {
                if loads {
                    epoch.local().get::<u8>(0)?;
                }
                Ok(window.post(&before, Assert::NONE).unwrap_err())
            });
            let words = ["has the window locked", "rule 6", "post at rank"];
            expect(&refused.unwrap(), Class::RmaSync, &words);
        }
        world.barrier().unwrap();
    });
}

#[test]
fn rule_9_false_asserts_are_refused() {
    windows(|world, window, double| {
        let me = world.rank();
        let target = (me + 1) % world.size();
        let put = |epoch: &longshore::Epoch<'_, '_>| epoch.put(&[1.0f64], target, 0, 1, double);
        let error = window.fence_with(Assert::NONE, Assert::NOPRECEDE, put).unwrap_err();
        expect(&error, Class::RmaSync, &["NOPRECEDE", "rule 9", "fence at rank"]);
        window.set(1, 2.0f64).unwrap();
        let error = window.fence_with(Assert::NOSTORE, Assert::NONE, |_| Ok(())).unwrap_err();
        expect(&error, Class::RmaSync, &["NOSTORE", "rule 9"]);
        window.fence_with(Assert::NOSTORE, Assert::NOSTORE, |_| Ok(())).unwrap();
        // A refused post has no effect, even if it is repeated.
        window.set(1, 2.0f64).unwrap();
        let own = world.group().incl(&[me]).unwrap();
        for _ in 0..2 {
            let error = window.post(&own, Assert::NOSTORE).unwrap_err();
            expect(&error, Class::RmaSync, &["NOSTORE", "rule 9", "post at rank"]);
        }
        window.post(&own, Assert::NONE).unwrap();
        window.start(&own, Assert::NONE, |_| Ok(())).unwrap();
        window.wait().unwrap();
        // An unlock is a synchronisation, too.
        window.lock(me, LockType::Exclusive, |epoch| epoch.local().set(1, 3.0f64)).unwrap();
        window.lock_all(|epoch| epoch.local().set(1, 3.0f64)).unwrap();
        window.fence_with(Assert::NOSTORE, Assert::NONE, |_| Ok(())).unwrap();
        window
            .lock((me + 1) % world.size(), LockType::Shared, |epoch| epoch.local().set(1, 3.0f64))
            .unwrap();
        let error = window.fence_with(Assert::NOSTORE, Assert::NONE, |_| Ok(())).unwrap_err();
        expect(&error, Class::RmaSync, &["NOSTORE", "rule 9"]);
        let by_message = window.route(target).unwrap() == longshore::Route::Message;
        let outcome = window.fence_with(Assert::NOPUT, Assert::NONE, |epoch| {
            world.barrier()?; // all have made their promise
            put(epoch)?;
            // After the put, which arrives before its target reports the false assert.
            world.send(&[0i32], target, 0)?;
            world.recv(&mut [0i32], (me + world.size() - 1) % world.size(), 0).map(drop)
        });
        if by_message {
            expect(&outcome.unwrap_err(), Class::RmaSync, &["NOPUT", "rule 9", "refused"]);
        }
        window.fence(put).unwrap();
    });
}

/// For each kind of operation: a successful one precedes a fence, a refused one doesn't. That holds
/// for first and for repeated operations.
#[test]
fn rule_9_refused_operations_do_not_precede_a_fence() {
    type Operation = dyn Fn(&longshore::Epoch<'_, '_>, i64, &Type) -> longshore::Result<()> + Sync;
    let operations: [&Operation; 4] = [
        &|epoch, at, double| epoch.put(&[1.0f64], 1, at, 1, double),
        &|epoch, at, double| epoch.accumulate(&[1.0f64], 1, at, 1, double, Op::Sum),
        &|epoch, at, _| epoch.fetch_and_op(1.0f64, 1, at, Op::Sum)?.wait().map(drop),
        &|epoch, at, _| epoch.compare_and_swap(1i64, 0, 1, at)?.wait().map(drop),
    ];
    windows(|world, window, double| {
        let mine = world.rank() == 0;
        for (at, operation) in (0..).zip(operations) {
            for _ in 0..2 {
                let done = window.fence_with(Assert::NONE, Assert::NOPRECEDE, |epoch| {
                    if mine { operation(epoch, at, double) } else { Ok(()) }
                });
                match mine {
                    true => expect(&done.unwrap_err(), Class::RmaSync, &["NOPRECEDE", "rule 9"]),
                    false => done.unwrap(),
                }
                let refused = window.fence_with(Assert::NONE, Assert::NOPRECEDE, |epoch| {
                    Ok(operation(epoch, 10, double).unwrap_err())
                });
                expect(&refused.unwrap(), Class::RmaRange, &["80 bytes"]);
            }
        }
    });
}

#[test]
fn rule_10_unknown_asserts_and_lock_types_are_refused() {
    windows(|world, window, _| {
        let (me, own) = (world.rank(), world.group().incl(&[world.rank()]).unwrap());
        let unknown = Assert::from_bits(1 << 20).unwrap_err();
        expect(&unknown, Class::Assert, &["0x100000", "rule 10"]);
        assert_eq!(Assert::from_bits(1024).unwrap(), Assert::NOCHECK);
        expect(
            &LockType::from_number(5).unwrap_err(),
            Class::Locktype,
            &["lock type 5", "rule 10"],
        );
        let error = window.fence_with(Assert::NOCHECK, Assert::NONE, |_| Ok(())).unwrap_err();
        expect(&error, Class::Assert, &["fence takes no assert", "0x400"]);
        let wrong = Assert::NOPUT | Assert::NOCHECK;
        let error = window.lock_with(me, LockType::Shared, wrong, |_| Ok(())).unwrap_err();
        expect(&error, Class::Assert, &["lock takes no assert", "0x1000"]);
        let error = window.lock_all_with(wrong, |_| Ok(())).unwrap_err();
        expect(&error, Class::Assert, &["lock_all takes no assert"]);
        let error = window.start(&own, Assert::NOSTORE, |_| Ok(())).unwrap_err();
        expect(&error, Class::Assert, &["start takes no assert", "0x2000"]);
        let error = window.post(&own, Assert::NOSUCCEED).unwrap_err();
        expect(&error, Class::Assert, &["post takes no assert", "0x4000"]);
    });
}

#[test]
fn rules_25_and_27_hold_for_exposed_windows_and_invalid_ranks() {
    everywhere_leaving_windows(|rank, world| {
        let window = Window::allocate(world, 8, 8, &Info::default()).unwrap();
        for target in [-5, world.size(), PROC_NULL] {
            let error = window.lock(target, LockType::Shared, |_| Ok(())).unwrap_err();
            expect(&error, Class::Rank, &["no rank", "lock at rank"]);
            assert!(!error.to_string().contains("or PROC_NULL"), "{error}");
        }
        let part = world.split(Some(world.rank()), 0).unwrap().unwrap();
        let alone = Window::allocate(&part, 8, 8, &Info::default()).unwrap();
        let error = alone.post(world.group(), Assert::NONE).unwrap_err();
        expect(&error, Class::Group, &["post at rank"]);
        window.post(world.group(), Assert::NONE).unwrap();
        let error = window.free().unwrap_err();
        expect(&error, Class::RmaSync, &["epoch open", "rule 25", "free at rank"]);
        alone.free().unwrap();
        assert!(rank.world().size() == 3);
    });
}

#[test]
fn rule_12_requests_outside_passive_epochs_are_refused() {
    let words = ["needs a passive epoch", "rput at rank 0", "target 1"];
    wrong(Class::RmaSync, &words, |epoch, double| {
        epoch.rput(vec![1.0f64], 1, 0, 1, double).map(drop)
    });
    wrong(Class::RmaSync, &["passive epoch"], |epoch, double| {
        epoch.raccumulate(vec![1.0f64], 1, 0, 1, double, Op::Sum).map(drop)
    });
}

#[test]
fn rule_13_freeing_or_cancelling_a_request_is_refused() {
    everywhere(|rank, world| {
        let window = Window::allocate(world, 80, 8, &Info::default()).unwrap();
        let double = rank.type_of::<f64>().unwrap();
        window
            .lock_all(|epoch| {
                let request = epoch.rput(vec![1.0f64], world.rank(), 0, 1, &double)?;
                expect(
                    &request.cancel().unwrap_err(),
                    Class::Request,
                    &["can't be cancelled", "wait for it", "rput at rank"],
                );
                expect(
                    &request.free().unwrap_err(),
                    Class::Request,
                    &["can't be freed", "wait for it"],
                );
                assert_eq!(request.wait()?, [1.0]);
                Ok(())
            })
            .unwrap();
        assert_eq!(window.get::<f64>(0).unwrap(), 1.0);
        window.free().unwrap();
    });
}

#[test]
fn rule_9_an_assert_covers_only_the_epoch_after_it() {
    windows(|world, window, double| {
        let me = world.rank();
        for from in 0..world.size() {
            let other = (from + 1) % world.size();
            let both = window.fences(|chain| {
                chain.epoch_with(
                    if me == other { Assert::NOPUT } else { Assert::NONE },
                    |epoch| {
                        match me {
                            // By now the other rank is in its fence, or about to enter it.
                            _ if me == from => {
                                world.recv(&mut [0i32], other, 0)?;
                                epoch.put(&[1.0f64], other, 0, 1, double)
                            }
                            _ if me == other => world.send(&[0i32], from, 0),
                            _ => Ok(()),
                        }
                    },
                )?;
                chain.epoch(|_| world.barrier())?;
                chain.epoch(|epoch| match me == from {
                    true => epoch.put(&[2.0f64], other, 1, 1, double),
                    false => Ok(()),
                })
            });
            both.unwrap();
            if me == other {
                assert_eq!([0, 1].map(|at| window.get::<f64>(at).unwrap()), [1.0, 2.0]);
            }
        }
    });
}

/// A target's refusal is reported by the call that completes the operations on that target, and by
/// no other call. The lock is released all the same.
#[test]
fn a_refusal_is_reported_by_the_completion_of_its_own_target() {
    // A long has 8 bytes at rank 0 and 4 at the others.
    let architectures = [Architecture::S390X, Architecture::I686, Architecture::I686];
    job(&architectures, Routes::Best, |rank| {
        let world = rank.world();
        let window = Window::allocate(world, 8, 1, &Info::default()).unwrap();
        let long = rank.commit(&Datatype::long()).unwrap();
        let mut memory = rank.buffer::<i64>(2).unwrap();
        if world.rank() == 0 {
            memory.write(0, &[1 << 40, 7]).unwrap();
            let exclusive = LockType::Exclusive;
            let too_long = || Origin::typed(&memory, 1, &long);
            let refused = window.lock(1, exclusive, |one| {
                one.put(too_long(), 1, 0, 1, &long)?;
                // The target's refusal arrives before the answer to this call.
                world.send(&[0i32], 1, 0)?;
                world.recv(&mut [0i32], 1, 0)?;
                window.lock(2, exclusive, |two| {
                    let seven = Origin::typed(&memory, 1, &long).at(8);
                    two.put(seven, 2, 0, 1, &long)?;
                    two.flush(PROC_NULL, |_| Ok(()))?;
                    two.flush(2, |_| Ok(()))
                })
            });
            expect(&refused.unwrap_err(), Class::Conversion, &["put at rank 0", "target 1"]);
            // Within lock_all, the first operation on a target locks it.
            let refused = window.lock_all(|all| {
                all.put(too_long(), 1, 0, 1, &long)?;
                world.send(&[0i32], 1, 0)?;
                world.recv(&mut [0i32], 1, 0)?;
                all.flush(2, |all| {
                    all.put(Origin::typed(&memory, 1, &long).at(8), 2, 4, 1, &long)
                })?;
                Ok(all.flush(1, |_| Ok(())).unwrap_err())
            });
            expect(&refused.unwrap(), Class::Conversion, &["put at rank 0", "target 1"]);
        } else if world.rank() == 1 {
            for _ in 0..2 {
                world.recv(&mut [0i32], 0, 0).unwrap();
                world.send(&[0i32], 0, 0).unwrap();
            }
        }
        world.barrier().unwrap();
        // A rank whose lock failed doesn't hold the lock.
        window.lock(2, LockType::Exclusive, |_| Ok(())).unwrap();
        if world.rank() == 2 {
            assert_eq!([0, 4].map(|at| window.get::<i32>(at).unwrap()), [7, 7]);
        }
        window.free().unwrap();
        rank.finalize().unwrap();
    });
}

/// A rank whose assert is false gets an error, and the fences of the other ranks complete.
#[test]
fn rule_9_a_false_assert_on_one_rank_blocks_no_other_rank() {
    windows(|world, window, _| {
        window.set(1, 2.0f64).unwrap();
        let lies = world.rank() == 0;
        let opening = if lies { Assert::NOSTORE } else { Assert::NONE };
        let mut ran = false;
        let outcome = window.fence_with(opening, Assert::NONE, |_| {
            ran = true;
            Ok(())
        });
        assert_eq!((outcome.is_err(), ran), (lies, !lies));
        // Before any other operation.
        let error = window.fence_with(Assert::NONE, Assert::NOCHECK, |_| Ok(())).unwrap_err();
        expect(&error, Class::Assert, &["fence takes no assert", "rule 10"]);
        window.fence(|_| Ok(())).unwrap();
    });
}

/// NOPUT concerns operations that change the window.
#[test]
fn rule_9_noput_allows_an_atomic_get() {
    windows(|world, window, double| {
        let (me, size) = (world.rank(), world.size());
        let [before, next] = [(me + size - 1) % size, (me + 1) % size]
            .map(|rank| (rank, world.group().incl(&[rank]).unwrap()));
        window.set(0, 4.5f64).unwrap();
        window.post(&before.1, Assert::NOPUT).unwrap();
        let (mut got, none) = ([0.0f64], [0.0f64; 0]);
        let fetched = window.start(&next.1, Assert::NONE, |epoch| {
            epoch.get_accumulate(&none, &mut got, next.0, 0, 1, double, Op::NoOp)?;
            epoch.fetch_and_op(0.0f64, next.0, 0, Op::NoOp)?.wait()
        });
        assert_eq!((fetched.unwrap(), got), (4.5, [4.5]));
        window.wait().unwrap();
    });
}
