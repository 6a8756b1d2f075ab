//! Puts and gets in every kind of epoch, by every route.

mod support;

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use longshore::job::{Checking, Routes};
use longshore::sim::{Options, run, run_shared};
use longshore::{
    Architecture, Assert, Class, Datatype, Destination, Info, LockType, Op, Origin, Passive,
    Pointed, Rank, Route, Window,
};

use support::crowd;

/// A time that only a hang takes, even on the slowest machine.
const HANG: Duration = Duration::from_secs(60);

/// Runs a program between like and unlike ranks, directly and by message, simulated and on threads.
fn everywhere(ranks: u32, body: impl Fn(&Rank) + Sync) {
    let whole = |rank: Rank| {
        body(&rank);
        rank.finalize().unwrap();
    };
    let unlike = vec![Architecture::S390X, Architecture::NATIVE, Architecture::I686];
    let like = Options::default();
    let told = Options { routes: Routes::Message, ..Options::default() };
    let unlike = Options { architectures: unlike, ..Options::default() };
    for options in [like, told, unlike] {
        for seed in 0..4 {
            run(ranks, &Options { seed, ..options.clone() }, whole).unwrap();
        }
        for progress in [false, true] {
            run_shared(ranks, &Options { progress, ..options.clone() }, whole).unwrap();
        }
    }
}

/// Each rank puts a column into the next rank's matrix, and gets it back.
fn exchange(rank: Rank) -> Route {
    let world = rank.world();
    let (me, size) = (world.rank(), world.size());
    let next = (me + 1) % size;
    let mut window = Window::allocate(world, 80 * 8, 8, &Info::default()).unwrap();
    let column = Datatype::vector(8, 1, 10, &Datatype::double()).unwrap();
    let column = rank.commit(&column).unwrap();
    let values: [f64; 8] = std::array::from_fn(|row| f64::from(me) + row as f64 / 8.0);
    window.fence(|epoch| epoch.put(&values, next, 3, 1, &column)).unwrap();
    let before = (me + size - 1) % size;
    for row in 0..8 {
        let found: f64 = window.get(row * 10 + 3).unwrap();
        assert_eq!(found, f64::from(before) + row as f64 / 8.0);
        assert_eq!(window.get::<f64>(row * 10 + 2).unwrap(), 0.0);
    }
    let mut back = [0.0f64; 8];
    window.fence(|epoch| epoch.get(&mut back, next, 3, 1, &column)).unwrap();
    assert_eq!(back, values);
    let mut buffer = rank.buffer::<f64>(8).unwrap();
    window.fence(|epoch| epoch.get(&mut buffer, next, 3, 1, &column)).unwrap();
    assert_eq!(buffer.to_vec().unwrap(), values);
    window.fence(|epoch| epoch.put(Origin::from(&buffer), me, 4, 1, &column)).unwrap();
    assert_eq!(window.get::<f64>(14).unwrap(), values[1]);
    let route = window.route(next).unwrap();
    window.free().unwrap();
    rank.finalize().unwrap();
    route
}

#[test]
fn like_ranks_use_the_direct_route() {
    let options = Options { adversary: None, check: Checking::Off, ..Options::default() };
    assert_eq!(run(3, &options, exchange).unwrap(), [Route::Direct; 3]);
    assert_eq!(run_shared(2, &options, exchange).unwrap(), [Route::Direct; 2]);
    assert_eq!(run_shared(5, &options, exchange).unwrap(), [Route::Direct; 5]);
}

#[test]
fn like_ranks_use_messages_if_the_job_says_so() {
    let options = Options { routes: Routes::Message, ..Options::default() };
    assert_eq!(run(3, &options, exchange).unwrap(), [Route::Message; 3]);
    assert_eq!(run_shared(4, &options, exchange).unwrap(), [Route::Message; 4]);
    assert_eq!(run(1, &options, exchange).unwrap(), [Route::Message]);
}

#[test]
fn unlike_ranks_exchange_data_by_message() {
    let architectures =
        vec![Architecture::S390X, Architecture::I686, Architecture::WIN64, Architecture::M68K];
    let options = Options { architectures, ..Options::default() };
    assert_eq!(run(4, &options, exchange).unwrap(), [Route::Message; 4]);
    assert_eq!(run_shared(4, &options, exchange).unwrap(), [Route::Message; 4]);
}

/// Each rank adds to a counter at rank 0 by get and put. Without mutual exclusion, updates are
/// lost.
#[test]
fn an_exclusive_lock_protects_a_read_and_a_write() {
    const TURNS: i64 = 20;
    everywhere(crowd(4), |rank| {
        let world = rank.world();
        let window = Window::allocate(world, 8, 8, &Info::default()).unwrap();
        let long = rank.type_of::<i64>().unwrap();
        for _ in 0..TURNS {
            let add = window.lock(0, LockType::Exclusive, |epoch| {
                let mut count = [0i64];
                epoch.flush(0, |epoch| epoch.get(&mut count, 0, 0, 1, &long))?;
                count[0] += 1;
                epoch.flush(0, |epoch| epoch.put(&count, 0, 0, 1, &long))
            });
            add.unwrap();
        }
        world.barrier().unwrap();
        let mut count = [0i64];
        window.lock(0, LockType::Shared, |epoch| epoch.get(&mut count, 0, 0, 1, &long)).unwrap();
        assert_eq!(count[0], TURNS * i64::from(world.size()));
        window.free().unwrap();
    });
}

/// A writer with an exclusive lock leaves two equal words. A reader with a shared lock checks them.
#[test]
fn shared_and_exclusive_locks_exclude_each_other() {
    everywhere(crowd(4), |rank| {
        let world = rank.world();
        let window = Window::allocate(world, 16, 8, &Info::default()).unwrap();
        let (long, me) = (rank.type_of::<i64>().unwrap(), i64::from(world.rank()));
        for turn in 0..20 {
            let target = turn as i32 % 2;
            if (turn + me) % 3 == 0 {
                let write = window.lock(target, LockType::Exclusive, |epoch| {
                    let value = [turn * 10 + me];
                    epoch.flush(target, |epoch| epoch.put(&value, target, 0, 1, &long))?;
                    epoch.flush_local(target, |epoch| epoch.put(&value, target, 1, 1, &long))
                });
                write.unwrap();
            } else if turn % 2 == 0 {
                let mut pair = [0i64; 2];
                window
                    .lock(target, LockType::Shared, |epoch| {
                        epoch.get(&mut pair, target, 0, 2, &long)
                    })
                    .unwrap();
                assert_eq!(pair[0], pair[1]);
            } else {
                let read = window.lock_all(|epoch| {
                    let mut pair = [0i64; 2];
                    epoch.flush_all(|epoch| epoch.get(&mut pair, target, 0, 2, &long))?;
                    Ok(pair)
                });
                let pair = read.unwrap();
                assert_eq!(pair[0], pair[1]);
            }
        }
        window.free().unwrap();
    });
}

#[test]
fn a_rank_may_hold_several_locks_on_a_created_window() {
    everywhere(crowd(3), |rank| {
        let world = rank.world();
        let (me, size) = (world.rank(), world.size());
        let memory = rank.buffer::<i64>(size as usize).unwrap();
        let window = Window::create(world, memory, 8, &Info::default()).unwrap();
        let long = rank.type_of::<i64>().unwrap();
        let (values, next, after) = ([i64::from(me) + 1], (me + 1) % size, (me + 2) % size);
        // All ranks lock in rank order. Different orders could deadlock.
        let (low, high) = (next.min(after), next.max(after));
        let put = window.lock(low, LockType::Exclusive, |outer| {
            window.lock(high, LockType::Exclusive, |inner| {
                inner.put(&values, low, i64::from(me), 1, &long)?;
                outer.put(&values, high, i64::from(me), 1, &long)
            })
        });
        put.unwrap();
        world.barrier().unwrap();
        for other in [(me + size - 1) % size, (me + size - 2) % size] {
            assert_eq!(window.get::<i64>(other.into()).unwrap(), i64::from(other) + 1);
        }
        world.barrier().unwrap();
        window.free().unwrap();
    });
}

/// Each rank exposes its window to its left and right neighbours and puts to both, in several
/// turns. The groups overlap.
#[test]
fn post_start_complete_wait_works_with_overlapping_groups() {
    everywhere(crowd(4), |rank| {
        let world = rank.world();
        let (me, size) = (world.rank(), world.size());
        let window = Window::allocate(world, 32, 8, &Info::default()).unwrap();
        let long = rank.type_of::<i64>().unwrap();
        let (left, right) = ((me + size - 1) % size, (me + 1) % size);
        let both = world.group().incl(&[left, right]).unwrap();
        for turn in 0..10i64 {
            let value = [turn * 10 + i64::from(me)];
            window.post(&both, Assert::NONE).unwrap();
            let put = window.start(&both, Assert::NONE, |epoch| {
                epoch.put(&value, left, 1, 1, &long)?;
                epoch.put(&value, right, 0, 1, &long)
            });
            put.unwrap();
            match turn % 2 {
                0 => window.wait().unwrap(),
                _ => while !window.test().unwrap() {},
            }
            assert_eq!(window.get::<i64>(0).unwrap(), turn * 10 + i64::from(left));
            assert_eq!(window.get::<i64>(1).unwrap(), turn * 10 + i64::from(right));
        }
        window.free().unwrap();
    });
}

/// An unlock doesn't wait until the target has it. A later call that reaches the target by another
/// path must still find the window unlocked.
#[test]
fn a_post_after_an_unlock_and_a_barrier_finds_the_window_unlocked() {
    everywhere(crowd(3), |rank| {
        let world = rank.world();
        let (me, size) = (world.rank(), world.size());
        let window = Window::allocate(world, 8, 8, &Info::default()).unwrap();
        let (next, long) = ((me + 1) % size, rank.type_of::<i64>().unwrap());
        let before = world.group().incl(&[(me + size - 1) % size]).unwrap();
        let after = world.group().incl(&[next]).unwrap();
        for turn in 0..5i64 {
            let value = [turn];
            let put = window
                .lock(next, LockType::Exclusive, |epoch| epoch.put(&value, next, 0, 1, &long));
            put.unwrap();
            world.barrier().unwrap();
            window.post(&before, Assert::NONE).unwrap();
            window
                .start(&after, Assert::NONE, |epoch| epoch.put(&value, next, 0, 1, &long))
                .unwrap();
            window.wait().unwrap();
            world.barrier().unwrap();
        }
        window.free().unwrap();
    });
}

/// Within lock_all, a rank's own loads and stores hold its own lock, so no exclusive lock can be
/// granted in between.
#[test]
#[allow(unsafe_code)]
fn own_loads_and_stores_within_lock_all_are_locked() {
    everywhere(2, |rank| {
        let (world, info) = (rank.world(), Info::default());
        // SAFETY: the pointer is to eight bytes of this rank's window, which the rank has locked.
        let through = |pointer: *mut u8| Ok(unsafe { pointer.cast::<i64>().read_volatile() });
        let window = Window::allocate(world, 8, 8, &info).unwrap();
        count_by_turns(rank, &window, || window.get::<i64>(0));
        count_by_turns(rank, &window, || through(window.base()));
        window.free().unwrap();

        // A pointer that the program had before it made the window.
        let mut own = rank.buffer::<i64>(1).unwrap();
        let start = own.bytes_mut().as_mut_ptr();
        // SAFETY: the buffer outlives the window, and nothing accesses it by another path
        // meanwhile.
        let memory = unsafe { Pointed::new(start, 8) };
        let window = Window::create(world, memory, 8, &info).unwrap();
        count_by_turns(rank, &window, || through(start));
        window.free().unwrap();
    });
}

/// Rank 0 counts in its own memory, which it reads by `load`. Rank 1 counts under an exclusive
/// lock.
fn count_by_turns<M>(rank: &Rank, window: &Window<M>, load: impl Fn() -> longshore::Result<i64>) {
    const TURNS: i64 = 20;
    let (world, me) = (rank.world(), rank.world().rank());
    let long = rank.type_of::<i64>().unwrap();
    let zero = window.local().set(0, 0i64);
    zero.and_then(|()| world.barrier()).unwrap();
    for turn in 0..TURNS {
        if me == 0 {
            let counted = window.lock_all(|epoch| {
                let before = load()?;
                // The other rank requests the lock meanwhile.
                world.send(&[turn], 1, 0)?;
                for _ in 0..10 {
                    world.iprobe(1, 0)?;
                }
                assert_eq!(load()?, before);
                epoch.local().set(0, epoch.local().get::<i64>(0)? + 1)
            });
            counted.unwrap();
        } else {
            world.recv(&mut [0i64], 0, 0).unwrap();
            let mut found = [0i64];
            let counted = window.lock(0, LockType::Exclusive, |epoch| {
                epoch.flush(0, |epoch| epoch.get(&mut found, 0, 0, 1, &long))?;
                let more = [found[0] + 1];
                epoch.flush(0, |epoch| epoch.put(&more, 0, 0, 1, &long))
            });
            counted.unwrap();
        }
    }
    world.barrier().unwrap();
    if me == 0 {
        assert_eq!(window.get::<i64>(0).unwrap(), 2 * TURNS);
    }
    world.barrier().unwrap();
}

/// Windows on a communicator of a part of the job, whose ranks differ from those of the job.
#[test]
fn epochs_work_on_a_part_of_the_job() {
    everywhere(4, |rank| {
        let world = rank.world();
        let odd = world.rank() % 2;
        let part = world.split(Some(odd), -world.rank()).unwrap().unwrap();
        let window = Window::allocate(&part, 8, 8, &Info::default()).unwrap();
        let long = rank.type_of::<i64>().unwrap();
        let (me, other) = (part.rank(), 1 - part.rank());
        let value = [i64::from(world.rank()) + 10];
        window
            .lock(other, LockType::Exclusive, |epoch| epoch.put(&value, other, 0, 1, &long))
            .unwrap();
        part.barrier().unwrap();
        let mut got = [0i64];
        window.lock_all(|epoch| epoch.get(&mut got, me, 0, 1, &long)).unwrap();
        assert_eq!(got[0], i64::from((world.rank() + 2) % 4) + 10);
        part.barrier().unwrap();
        let whole = part.group();
        window.post(whole, Assert::NONE).unwrap();
        let value = [i64::from(me)];
        window
            .start(&whole.incl(&[other]).unwrap(), Assert::NONE, |epoch| {
                epoch.put(&value, other, 0, 1, &long)
            })
            .unwrap();
        window.start(&whole.incl(&[me]).unwrap(), Assert::NONE, |_| Ok(())).unwrap();
        window.wait().unwrap();
        assert_eq!(window.get::<i64>(0).unwrap(), i64::from(other));
        window.free().unwrap();
        part.free().unwrap();
    });
}

/// Rank 1 computes without calling the library. Without its progress thread, rank 0 would wait
/// until it ends.
#[test]
fn the_progress_thread_serves_peers_of_a_computing_target() {
    let architectures = vec![Architecture::NATIVE, Architecture::S390X];
    let options = Options { architectures, progress: true, ..Options::default() };
    const TURNS: i64 = 100;
    let turns = AtomicI64::new(0);
    let body = |rank: Rank| {
        let world = rank.world();
        let window =
            Window::create(world, rank.buffer::<i64>(1).unwrap(), 8, &Info::default()).unwrap();
        let long = rank.type_of::<i64>().unwrap();
        world.barrier().unwrap();
        if world.rank() == 0 {
            for turn in 0..TURNS {
                let (value, mut got) = ([turn], [0]);
                let put = window.lock(1, LockType::Exclusive, |epoch| {
                    epoch.flush(1, |epoch| epoch.put(&value, 1, 0, 1, &long))?;
                    epoch.get(&mut got, 1, 0, 1, &long)
                });
                put.unwrap();
                assert_eq!(got, value);
                turns.store(turn + 1, Ordering::Relaxed);
            }
        } else {
            let (mut seen, mut since) = (0, Instant::now());
            while seen < TURNS {
                let now = turns.load(Ordering::Relaxed);
                if now != seen {
                    (seen, since) = (now, Instant::now());
                }
                assert!(since.elapsed() < HANG, "turn {seen} isn't served");
                std::hint::spin_loop();
            }
        }
        world.barrier().unwrap();
        window.free().unwrap();
        rank.finalize().unwrap();
    };
    run_shared(2, &options, body).unwrap();
}

/// Without a progress thread, every call serves the peers, even a call that has nothing to wait
/// for.
#[test]
fn calls_that_wait_for_nothing_serve_peers() {
    let body = |rank: Rank| {
        let world = rank.world();
        let window = Window::allocate(world, 32, 8, &Info::default()).unwrap();
        let long = rank.type_of::<i64>().unwrap();
        if world.rank() == 1 {
            for at in 0..2 {
                // No put writes the polled word.
                let set = |epoch: &Passive<'_, '_>| {
                    epoch.accumulate(&[1i64], 0, at, 1, &long, Op::Replace)
                };
                window.lock(0, LockType::Shared, set).unwrap();
            }
        } else {
            let start = Instant::now();
            let hopeful = || start.elapsed() < HANG;
            while window.get::<i64>(0).unwrap() == 0 {
                assert!(hopeful(), "locks that are free serve no peer");
                window.lock(0, LockType::Exclusive, |_| Ok(())).unwrap();
            }
            let until_there = |epoch: &Passive<'_, '_>| {
                while window.get::<i64>(1)? == 0 {
                    assert!(hopeful(), "syncs serve no peer");
                    epoch.sync()?;
                }
                Ok(())
            };
            window.lock_all(until_there).unwrap();
        }
        // The rank exposes another window meanwhile, to an empty group.
        let other = Window::allocate(world, 0, 1, &Info::default()).unwrap();
        let nobody = world.group().incl(&[]).unwrap();
        if world.rank() == 1 {
            let set =
                |epoch: &Passive<'_, '_>| epoch.accumulate(&[1i64], 0, 2, 1, &long, Op::Replace);
            window.lock(0, LockType::Shared, set).unwrap();
            window
                .lock(0, LockType::Shared, |epoch| {
                    epoch.accumulate(&[1i64], 0, 3, 1, &long, Op::Replace)
                })
                .unwrap();
        } else {
            let start = Instant::now();
            let hopeful = || start.elapsed() < HANG;
            while window.get::<i64>(2).unwrap() == 0 {
                assert!(hopeful(), "waits for an empty group serve no peer");
                other.post(&nobody, Assert::NONE).unwrap();
                other.wait().unwrap();
            }
            while window.get::<i64>(3).unwrap() == 0 {
                assert!(hopeful(), "tests of an ended exposure serve no peer");
                other.post(&nobody, Assert::NONE).unwrap();
                assert!(other.test().unwrap());
            }
        }
        other.free().unwrap();
        world.barrier().unwrap();
        window.free().unwrap();
        rank.finalize().unwrap();
    };
    let options = Options { routes: Routes::Message, ..Options::default() };
    run(2, &options, body).unwrap();
    run_shared(2, &Options { progress: false, ..options }, body).unwrap();
}

/// Threads of one rank wait at the same time. The thread that receives a frame wakes the others.
#[test]
fn threads_of_a_rank_wake_each_other() {
    const TURNS: i64 = 300;
    let took = |progress| {
        let options = Options { routes: Routes::Message, progress, ..Options::default() };
        let body = |rank: Rank| {
            let world = rank.world();
            let (me, other) = (world.rank(), 1 - world.rank());
            std::thread::scope(|scope| {
                for tag in 0..3 {
                    scope.spawn(move || {
                        for turn in 0..TURNS {
                            let mut got = [0i64];
                            if me == 0 {
                                world.send(&[turn], other, tag).unwrap();
                                world.recv(&mut got, other, tag).unwrap();
                                assert_eq!(got[0], turn + 1);
                            } else {
                                world.recv(&mut got, other, tag).unwrap();
                                world.send(&[got[0] + 1], other, tag).unwrap();
                            }
                        }
                    });
                }
            });
            world.barrier().unwrap();
            rank.finalize().unwrap();
        };
        let start = Instant::now();
        run_shared(2, &options, body).unwrap();
        start.elapsed()
    };
    for progress in [false, true] {
        // A missed wake costs 100 ms in each turn. A busy machine costs time in one turn only.
        let mut rounds = (0..3).map(|_| took(progress));
        let quick = rounds.any(|took| took < Duration::from_secs(10));
        assert!(quick, "wakes are missed, progress thread: {progress}");
    }
}

/// Different threads may use different windows of one communicator. Collective calls on one window
/// neither wait for nor match those on another.
#[test]
fn threads_may_use_different_windows_of_one_communicator() {
    // With `--check`, the calls on a communicator and on its windows must have one order.
    let options = Options { routes: Routes::Message, check: Checking::Off, ..Options::default() };
    let body = |rank: Rank| {
        let world = rank.world();
        let (me, size) = (world.rank(), world.size());
        let long = rank.type_of::<i64>().unwrap();
        for turn in 0..20 {
            let windows =
                [8, 16, 24].map(|bytes| Window::allocate(world, bytes, 8, &Info::default()));
            std::thread::scope(|scope| {
                for (number, window) in windows.into_iter().enumerate() {
                    let long = &long;
                    scope.spawn(move || {
                        let (mut window, next) = (window.unwrap(), (me + 1) % size);
                        let value = [turn as i64];
                        // The ranks use the windows in different orders.
                        let pause = (me as usize + number + turn) % 3;
                        std::thread::sleep(Duration::from_micros(300 * pause as u64));
                        window.set_info(&window.info()).unwrap();
                        window.fence(|epoch| epoch.put(&value, next, 0, 1, long)).unwrap();
                        assert_eq!(window.get::<i64>(0).unwrap(), value[0]);
                        window.free().unwrap();
                    });
                }
            });
        }
        rank.finalize().unwrap();
    };
    run_shared(4, &options, body).unwrap();
}

fn class<T>(outcome: longshore::Result<T>) -> Option<Class> {
    outcome.err().map(|error| error.class())
}

/// Every call without a scope, from pointers, by every route, and their refusals.
#[test]
#[allow(unsafe_code)]
fn calls_without_scopes_behave_like_scopes() {
    everywhere(crowd(3), |rank| {
        let world = rank.world();
        let (me, size) = (world.rank(), world.size());
        let (next, before) = ((me + 1) % size, (me + size - 1) % size);
        let window = Window::allocate(world, 80, 8, &Info::default()).unwrap();
        let (long, calls) = (rank.type_of::<i64>().unwrap(), window.raw());
        // Pointers to the second and third of four elements in the rank's own representation.
        let mut four = rank.buffer::<i64>(4).unwrap();
        four.write(0, &[-1, 10 + i64::from(me), 20, -1]).unwrap();
        let later = Datatype::indexed(&[2], &[1], long.datatype()).unwrap();
        let later = rank.commit(&later).unwrap();
        let from = four.bytes().as_ptr();

        // SAFETY: all memory in this test outlives the calls that complete its operations.
        let refused = unsafe { calls.put(from, 1, &later, next, 0, 2, &long) };
        assert_eq!(class(refused), Some(Class::RmaSync));
        assert_eq!(class(calls.complete()), Some(Class::RmaSync));
        assert_eq!(class(calls.unlock(next)), Some(Class::RmaSync));
        assert_eq!(class(calls.unlock_all()), Some(Class::RmaSync));
        assert_eq!(class(calls.flush(next)), Some(Class::RmaSync));

        // Fences.
        calls.fence(Assert::NOPRECEDE).unwrap();
        // SAFETY: the memory outlives the call that completes the operation.
        let put = |disp| unsafe { calls.put(from, 1, &later, next, disp, 2, &long) };
        put(0).unwrap();
        put(2).unwrap();
        assert_eq!(class(put(9)), Some(Class::RmaRange));
        // SAFETY: the memory outlives the call that completes the operation.
        let negative = unsafe { calls.put(from, -1, &later, next, 0, 2, &long) };
        // Rule T2, and rule 19.
        let locale = Datatype::hvector(2, 1, 8, long.datatype()).unwrap();
        let locale = rank.commit(&locale).unwrap();
        // SAFETY: the memory outlives the call that completes the operation.
        let (refused, unequal) = unsafe {
            let refused = calls.put(from, 1, &later, next, 0, 1, &locale);
            (refused, calls.put(from, 1, &later, next, 0, 3, &long))
        };
        assert_eq!((class(refused), class(unequal)), (Some(Class::Type), Some(Class::Type)));
        assert_eq!(class(negative), Some(Class::Count));
        // SAFETY: the memory outlives the call that completes the operation.
        let request = unsafe { calls.rput(from, 1, &later, next, 0, 2, &long) };
        assert_eq!(class(request.map(drop)), Some(Class::RmaSync));
        calls.fence(Assert::NOSUCCEED).unwrap();
        let mut got = [0i64; 4];
        window.read(0, &mut got).unwrap();
        assert_eq!(got, [10 + i64::from(before), 20, 10 + i64::from(before), 20]);

        // Start and complete.
        let [to, of] = [next, before].map(|rank| world.group().incl(&[rank]).unwrap());
        window.post(&of, Assert::NONE).unwrap();
        calls.start(&to, Assert::NONE).unwrap();
        // SAFETY: the memory outlives the call that completes the operation.
        unsafe { calls.accumulate(from, 1, &later, next, 0, 2, &long, Op::Sum).unwrap() };
        calls.complete().unwrap();
        window.wait().unwrap();
        assert_eq!(window.get::<i64>(1).unwrap(), 40);

        world.barrier().unwrap();
        // Locks, fetches and requests. The results go to the rank's own memory.
        let mut room = rank.buffer::<i64>(8).unwrap();
        let place = room.bytes_mut().as_mut_ptr();
        let room_at = |element: usize| place.wrapping_add(8 * element);
        let at = |element: usize| from.wrapping_add(8 * element);
        calls.lock(next, LockType::Exclusive, Assert::NONE).unwrap();
        // SAFETY: the memory outlives the call that completes the operation.
        unsafe {
            calls.get(room_at(0), 1, &later, next, 0, 2, &long).unwrap();
            calls.flush(next).unwrap();
            calls.fetch_and_op(at(2), room_at(0), &long, next, 1, Op::Sum).unwrap();
            calls.fetch_and_op(std::ptr::null(), room_at(3), &long, next, 1, Op::NoOp).unwrap();
            calls.compare_and_swap(at(0), room_at(2), room_at(4), &long, next, 4).unwrap();
            let (origin, result) = ((at(1), 1, &long), (room_at(5), 1, &long));
            calls.get_accumulate(origin, result, next, 4, 1, &long, Op::Replace).unwrap();
            calls.rput(at(2), 1, &long, next, 5, 1, &long).unwrap().wait().unwrap();
            calls.raccumulate(at(2), 1, &long, next, 5, 1, &long, Op::Sum).unwrap().wait().unwrap();
            calls.rget(room_at(6), 1, &long, next, 5, 1, &long).unwrap().wait().unwrap();
            let (origin, result) = ((std::ptr::null(), 0, &long), (room_at(7), 1, &long));
            let fetched = calls.rget_accumulate(origin, result, next, 5, 1, &long, Op::NoOp);
            fetched.unwrap().wait().unwrap();
        }
        calls.unlock(next).unwrap();
        // Before: 20 + me, and 40. After: 60, then 0 (not equal to 40, so not swapped), then 20
        // twice.
        let mine = 2 * (10 + i64::from(me));
        let found = room.to_vec().unwrap();
        assert_eq!(found, [40, mine, 40, 60, 0, 0, 40, 40]);

        // A pair type, whose memory has padding.
        let pair = rank.commit(&Datatype::short_int()).unwrap();
        let extent = pair.extent() as usize;
        let mut pairs = vec![0u8; 2 * extent];
        let start = pairs.as_mut_ptr();
        calls.lock_all(Assert::NONE).unwrap();
        // SAFETY: the memory outlives the call that completes the operation.
        let fetch = |op| unsafe {
            calls.fetch_and_op(start, start.wrapping_add(extent), &pair, next, 8, op).unwrap();
        };
        fetch(Op::Minloc);
        calls.flush_local_all().unwrap();
        calls.sync().unwrap();
        // SAFETY: the memory outlives the call that completes the operation.
        let swap = unsafe { calls.compare_and_swap(from, from, place, &pair, next, 8) };
        assert_eq!(class(swap), Some(Class::Type));
        // One long in a type that isn't predefined: refused by message and directly.
        let shifted = Datatype::indexed_block(1, &[3], &Datatype::long_long()).unwrap();
        let shifted = rank.commit(&shifted).unwrap();
        // SAFETY: the memory outlives the call that completes the operation.
        let swap = unsafe { calls.compare_and_swap(from, from, place, &shifted, next, 0) };
        assert_eq!(class(swap), Some(Class::Type));
        calls.unlock_all().unwrap();
        world.barrier().unwrap();
        window.free().unwrap();
    });
}

/// A window over memory behind a pointer, and a collective call with pointers.
#[test]
#[allow(unsafe_code)]
fn a_window_over_a_pointer_leaves_the_memory_in_place() {
    everywhere(crowd(3), |rank| {
        let world = rank.world();
        let (me, size) = (world.rank(), world.size());
        let next = (me + 1) % size;
        let long = rank.type_of::<i64>().unwrap();
        let mut own = rank.buffer::<i64>(3).unwrap();
        let start = own.bytes_mut().as_mut_ptr();
        // SAFETY: the buffer outlives the window, and nothing accesses it by another path
        // meanwhile.
        let memory = unsafe { Pointed::new(start, 24) };
        let mut window = Window::create(world, memory, 8, &Info::default()).unwrap();
        let value = [i64::from(me)];
        window.fence(|epoch| epoch.put(&value, next, 1, 1, &long)).unwrap();
        assert_eq!(window.base(), start);
        let memory = window.free().unwrap();
        assert_eq!((memory.start(), memory.len()), (start, 24));
        // SAFETY: the buffer has three elements, and the two parts of it don't overlap.
        let (from, to) = unsafe {
            (Origin::raw(start, 2, &long), Destination::raw(start.wrapping_add(16), 1, &long))
        };
        // Two elements don't fit into one.
        assert_eq!(class(world.allreduce(from, to, Op::Sum)), Some(Class::Type));
        // SAFETY: the buffer has three elements, and the two parts of it don't overlap.
        let (from, to) = unsafe {
            let from = start.wrapping_add(8);
            (Origin::raw(from, 1, &long), Destination::raw(start.wrapping_add(16), 1, &long))
        };
        world.allreduce(from, to, Op::Sum).unwrap();
        let (before, sum) = ((me + size - 1) % size, size * (size - 1) / 2);
        assert_eq!(own.to_vec().unwrap(), [0, i64::from(before), i64::from(sum)]);
    });
}

/// Rank 0 reaches rank 1's memory directly, but rank 1 reaches rank 0 by messages. Rank 0 must
/// answer these messages while it computes, and wait for unlocks that arrive as messages.
#[test]
#[allow(unsafe_code)]
fn a_rank_reached_by_message_serves_peers_although_it_goes_direct() {
    const ROUNDS: i64 = 50;
    for progress in [true, false] {
        let put = AtomicBool::new(false);
        let body = |rank: Rank| {
            let (world, info) = (rank.world(), Info::default());
            let long = rank.type_of::<i64>().unwrap();
            match world.rank() {
                0 => {
                    let mut own = rank.buffer::<i64>(1).unwrap();
                    // SAFETY: the buffer outlives the window, and nothing accesses it by another
                    // path meanwhile.
                    let memory = unsafe { Pointed::new(own.bytes_mut().as_mut_ptr(), 8) };
                    let window = Window::create(world, memory, 8, &info).unwrap();
                    assert_eq!(window.route(1).unwrap(), Route::Direct);
                    let start = Instant::now();
                    while progress && !put.load(Ordering::Acquire) {
                        assert!(start.elapsed() < HANG, "no answer");
                        std::thread::yield_now();
                    }
                    let other = world.group().incl(&[1]).unwrap();
                    for _ in 0..ROUNDS {
                        world.barrier().unwrap();
                        window.post(&other, Assert::NONE).unwrap();
                        window.wait().unwrap();
                        world.barrier().unwrap();
                    }
                    assert_eq!(window.get::<i64>(0).unwrap(), ROUNDS - 1);
                    window.free().unwrap();
                }
                _ => {
                    let window = Window::create(world, vec![0i64], 8, &info).unwrap();
                    assert_eq!(window.route(0).unwrap(), Route::Message);
                    let store = |value: i64| {
                        let value = [value];
                        let stored = window.lock(0, LockType::Exclusive, |epoch| {
                            epoch.put(&value, 0, 0, 1, &long)
                        });
                        stored.unwrap();
                    };
                    store(-1);
                    put.store(true, Ordering::Release);
                    let other = world.group().incl(&[0]).unwrap();
                    for round in 0..ROUNDS {
                        store(round);
                        world.barrier().unwrap();
                        window.start(&other, Assert::NONE, |_| Ok(())).unwrap();
                        world.barrier().unwrap();
                    }
                    window.free().unwrap();
                }
            }
            rank.finalize().unwrap();
        };
        let direct = Options { adversary: None, check: Checking::Off, ..Options::default() };
        run_shared(2, &Options { progress, ..direct }, body).unwrap();
    }
}

/// A request is dropped after its epoch, and its target refuses the operation. The next collective
/// call reports that, after it has met the other ranks.
#[test]
fn a_late_refusal_is_reported_by_the_next_call_and_blocks_no_rank() {
    let told = Options { routes: Routes::Message, ..Options::default() };
    for is_last in [false, true] {
        let body = |rank: Rank| {
            let world = rank.world();
            let long = rank.type_of::<i64>().unwrap();
            let mut window = Window::create_dynamic(world, &Info::default()).unwrap();
            let is_first = world.rank() == 0;
            if is_first {
                let request = window.lock_all(|epoch| epoch.rput(vec![1i64], 1, 4096, 1, &long));
                drop(request.unwrap());
            }
            world.barrier().unwrap();
            let mut epochs = 0;
            if !is_last {
                let outcome = window.fences(|chain| {
                    for _ in 0..3 {
                        chain.epoch(|_| Ok(()))?;
                        epochs += 1;
                    }
                    Ok(())
                });
                assert_eq!((class(outcome), epochs), (is_first.then_some(Class::RmaRange), 3));
            }
            let expected = (is_first && is_last).then_some(Class::RmaRange);
            assert_eq!(class(window.free()), expected);
            rank.finalize().unwrap();
        };
        run(2, &told, body).unwrap();
    }
}

/// A dead origin can't complete its access epoch. A test reports that, and ends the exposure epoch.
#[test]
fn a_test_ends_the_exposure_to_a_dead_origin() {
    let body = |rank: Rank| {
        let world = rank.world();
        let window = Window::allocate(world, 8, 8, &Info::default()).unwrap();
        // The other rank has made the window before it exits.
        if world.rank() == 1 {
            world.recv(&mut [0u8], 0, 0).unwrap();
            return;
        }
        world.send(&[0u8], 1, 0).unwrap();
        window.post(&world.group().incl(&[1]).unwrap(), Assert::NONE).unwrap();
        let gone = loop {
            match window.test() {
                Ok(false) => std::thread::yield_now(),
                done => break class(done),
            }
        };
        assert_eq!(gone, Some(Class::ProcAborted));
        assert_eq!(class(window.test()), Some(Class::RmaSync));
    };
    run_shared(2, &Options::default(), body).unwrap();
}
