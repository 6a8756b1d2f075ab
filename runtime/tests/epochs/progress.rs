//! Ranks that compute, and threads that wait at the same time: who serves the peers.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::{Duration, Instant};

use longshore::job::{Checking, Routes};
use longshore::sim::{Options, run, run_shared};
use longshore::{Architecture, Assert, Info, LockType, Op, Passive, Pointed, Rank, Route, Window};

use super::HANG;

/// Rank 1 computes without calling the library. Without its progress thread, rank 0 would wait
/// until it ends.
#[test]
fn the_progress_thread_serves_peers_of_a_computing_target() {
    let architectures = vec![Architecture::NATIVE, Architecture::S390X];
    let options = Options { architectures, progress: true, ..Options::default() };
    const TURNS: i32 = 100;
    let turns = AtomicI32::new(0);
    let body = |rank: Rank| {
        let world = rank.world();
        let window =
            Window::create(world, rank.buffer::<i64>(1).unwrap(), 8, &Info::default()).unwrap();
        let long = rank.type_of::<i64>().unwrap();
        world.barrier().unwrap();
        if world.rank() == 0 {
            for turn in 0..TURNS {
                let (value, mut got) = ([i64::from(turn)], [0]);
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
                    assert_eq!(window.route(0).unwrap(), Route::Peer);
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
