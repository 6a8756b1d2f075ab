//! Panics that a rank catches: the window in whose epoch it panicked is poisoned, and nothing
//! hangs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use longshore::job::{Checking, Routes, Topics};
use longshore::sim::{Options, run, run_shared};
use longshore::{
    Architecture, Assert, Callbacks, Class, Communicator, Error, ErrorHandler, ErrorKind, Info,
    Keyval, LockType, Rank, Window,
};

/// Runs a program by every route, simulated, on threads, and with `--check`.
fn everywhere(ranks: u32, body: impl Fn(&Rank) + Sync) {
    let whole = |rank: Rank| {
        body(&rank);
        rank.finalize().unwrap();
    };
    let unlike = vec![Architecture::S390X, Architecture::NATIVE, Architecture::I686];
    let options = [
        Options { check: Checking::Off, ..Options::default() },
        Options { routes: Routes::Message, check: Checking::Off, ..Options::default() },
        Options { architectures: unlike, check: Checking::Off, ..Options::default() },
        Options { hosts: vec![0, 1, 1], check: Checking::Off, ..Options::default() },
    ];
    for options in options {
        for seed in 0..4 {
            run(ranks, &Options { seed, ..options.clone() }, whole).unwrap();
        }
        if options.hosts.is_empty() {
            run_shared(ranks, &options, whole).unwrap();
        }
    }
}

/// Runs a body that panics, and catches the panic.
fn panicking(body: impl FnOnce() -> longshore::Result<()>) {
    let caught = catch_unwind(AssertUnwindSafe(body));
    assert!(caught.is_err(), "no panic: {:?}", caught.map(|outcome| outcome.is_ok()));
}

fn is_poisoned(error: &Error, culprit: u32) -> bool {
    matches!(error.kind(), ErrorKind::WindowPoisoned { by } if *by == culprit)
        && error.class() == Class::Win
}

fn allocate(rank: &Rank) -> Window {
    Window::allocate(rank.world(), 64, 8, &Info::default()).unwrap()
}

/// Every kind of call on a poisoned window reports rank 1's panic.
fn expect_poisoned(window: &mut Window, rank: &Rank) {
    let world = rank.world();
    let group = world.group();
    let is = |error: Option<Error>| is_poisoned(&error.unwrap(), 1);
    assert!(is(window.fence(|_| Ok(())).err()));
    assert!(is(window.fences(|_| Ok(())).err()));
    assert!(is(window.lock(0, LockType::Shared, |_| Ok(())).err()));
    assert!(is(window.lock_all(|_| Ok(())).err()));
    assert!(is(window.start(group, Assert::NONE, |_| Ok(())).err()));
    assert!(is(window.post(group, Assert::NONE).err()));
    assert!(is(window.wait().err()));
    assert!(is(window.test().err()));
    assert!(is(window.set_info(&Info::default()).err()));
    let calls = window.raw();
    assert!(is(calls.flush_all().err()));
    // The rank's own memory can still be read.
    window.get::<f64>(0).unwrap();
}

/// The communicator is still of use, and so are new windows.
fn expect_others_work(rank: &Rank) {
    let world = rank.world();
    let mut fresh = allocate(rank);
    let double = rank.type_of::<f64>().unwrap();
    let values = [f64::from(world.rank())];
    let next = (world.rank() + 1) % world.size();
    fresh.fence(|epoch| epoch.put(&values, next, 0, 1, &double)).unwrap();
    assert_eq!(next, (fresh.get::<f64>(0).unwrap() as i32 + 2) % world.size());
    fresh.free().unwrap();
    world.barrier().unwrap();
}

#[test]
fn a_panic_in_a_fence_poisons_the_window_at_all_ranks() {
    everywhere(3, |rank| {
        let mut window = allocate(rank);
        let double = rank.type_of::<f64>().unwrap();
        window.fence(|epoch| epoch.put(&[2.5], 0, 0, 1, &double)).unwrap();
        if rank.world().rank() == 1 {
            panicking(|| {
                window.fence(|epoch| {
                    epoch.put(&[3.5], 0, 1, 1, &double)?;
                    panic!("in a fence")
                })
            });
        } else {
            let error = window.fence(|_| Ok(())).unwrap_err();
            assert!(is_poisoned(&error, 1), "{error}");
        }
        expect_poisoned(&mut window, rank);
        let error = window.free().unwrap_err();
        assert!(is_poisoned(&error, 1), "{error}");
        expect_others_work(rank);
    });
}

#[test]
fn a_panic_between_the_fences_of_a_chain_poisons_the_window() {
    everywhere(3, |rank| {
        let mut window = allocate(rank);
        if rank.world().rank() == 1 {
            panicking(|| {
                window.fences(|chain| {
                    chain.epoch(|_| Ok(()))?;
                    panic!("between two fences")
                })
            });
        } else {
            let chained = window.fences(|chain| {
                chain.epoch(|_| Ok(()))?;
                chain.epoch(|_| Ok(()))
            });
            assert!(is_poisoned(&chained.unwrap_err(), 1));
        }
        expect_poisoned(&mut window, rank);
        assert!(is_poisoned(&window.free().unwrap_err(), 1));
        expect_others_work(rank);
    });
}

#[test]
fn a_panic_under_a_lock_releases_it() {
    for all in [false, true] {
        everywhere(3, |rank| {
            let window = allocate(rank);
            let long = rank.type_of::<i64>().unwrap();
            let world = rank.world();
            if world.rank() == 1 {
                panicking(|| match all {
                    true => window.lock_all(|epoch| {
                        epoch.put(&[7i64], 0, 0, 1, &long)?;
                        panic!("within lock_all")
                    }),
                    false => window.lock(0, LockType::Exclusive, |epoch| {
                        epoch.flush(0, |epoch| {
                            epoch.put(&[7i64], 0, 0, 1, &long)?;
                            panic!("under a lock")
                        })
                    }),
                });
            }
            world.barrier().unwrap();
            if world.rank() != 1 {
                let locked = window.lock(0, LockType::Exclusive, |epoch| {
                    let mut found = [0i64];
                    epoch.flush(0, |epoch| epoch.get(&mut found, 0, 0, 1, &long))
                });
                locked.unwrap();
            }
            // The panic drains the operations.
            assert!(world.rank() != 0 || window.get::<i64>(0).unwrap() == 7);
            assert!(is_poisoned(&window.free().unwrap_err(), 1));
            expect_others_work(rank);
        });
    }
}

#[test]
fn a_panic_between_start_and_complete_ends_the_wait_of_the_target() {
    everywhere(3, |rank| {
        let mut window = allocate(rank);
        let world = rank.world();
        let group = |member: i32| world.group().incl(&[member]).unwrap();
        match world.rank() {
            1 => panicking(|| window.start(&group(0), Assert::NONE, |_| panic!("started"))),
            0 => {
                window.post(&group(1), Assert::NONE).unwrap();
                assert!(is_poisoned(&window.wait().unwrap_err(), 1));
            }
            // Rank 0 posts to rank 2 no more.
            _ => {
                let started = window.start(&group(0), Assert::NONE, |_| Ok(()));
                assert!(is_poisoned(&started.unwrap_err(), 1));
            }
        }
        expect_poisoned(&mut window, rank);
        assert!(is_poisoned(&window.free().unwrap_err(), 1));
        expect_others_work(rank);
    });
}

#[test]
fn hints_of_a_poisoned_window_are_not_awaited() {
    everywhere(3, |rank| {
        let window = allocate(rank);
        if rank.world().rank() == 1 {
            panicking(|| window.lock(1, LockType::Shared, |_| panic!("under a lock")));
        }
        let set = window.set_info(&Info::default());
        assert!(is_poisoned(&set.unwrap_err(), 1));
        expect_others_work(rank);
    });
}

#[test]
fn under_check_a_caught_panic_shifts_no_announcement() {
    let options = Options { check: Checking::Report(Topics::default()), ..Options::default() };
    let body = |rank: Rank| {
        let mut window = allocate(&rank);
        if rank.world().rank() == 1 {
            panicking(|| window.fence(|_| panic!("in a fence")));
        }
        let error = window.fence(|_| Ok(())).unwrap_err();
        assert!(is_poisoned(&error, 1), "{error}");
        // The calls on the communicator are still compared with each other.
        rank.world().barrier().unwrap();
        assert!(is_poisoned(&window.free().unwrap_err(), 1));
        rank.finalize().unwrap();
    };
    for seed in 0..4 {
        run(3, &Options { seed, ..options.clone() }, body).unwrap();
    }
    run_shared(3, &options, body).unwrap();
}

/// A callback or handler that panics.
fn refuse<T>() -> T {
    panic!("in a callback")
}

#[test]
fn a_delete_callback_that_panics_is_asked_once_and_ends_no_process() {
    everywhere(2, |rank| {
        let asked = Arc::new(AtomicU32::new(0));
        let count = |asked: &Arc<AtomicU32>| {
            let asked = asked.clone();
            move || _ = asked.fetch_add(1, Ordering::Relaxed)
        };
        let (of_window, of_dup) = (count(&asked), count(&asked));
        let callbacks = Callbacks::default().delete(move |_, _| {
            of_window();
            refuse()
        });
        let keyval: Keyval<Window, ()> = rank.create_keyval(callbacks).unwrap();
        let window = allocate(rank);
        window.set_attr(&keyval, ()).unwrap();
        panicking(|| window.free());
        let callbacks = Callbacks::default().delete(move |_, _| {
            of_dup();
            refuse()
        });
        let keyval: Keyval<Communicator, ()> = rank.create_keyval(callbacks).unwrap();
        let dup = rank.world().dup().unwrap();
        dup.set_attr(&keyval, ()).unwrap();
        panicking(|| dup.free());
        assert_eq!(asked.load(Ordering::Relaxed), 2);
        expect_others_work(rank);
    });
}

#[test]
fn an_error_handler_may_panic_in_a_call_that_closes_an_epoch() {
    everywhere(2, |rank| {
        let mut window = allocate(rank);
        let long = rank.type_of::<i64>().unwrap();
        window.set_errhandler(ErrorHandler::Own(Arc::new(|_, _| refuse())));
        // No rank may put in this epoch, so the target refuses it, or the fence reports the assert.
        let value = [1i64];
        window.set(0, 1i64).unwrap();
        panicking(|| {
            window.fence_with(Assert::NOSTORE, Assert::NONE, |epoch| {
                epoch.put(&value, 0, 0, 1, &long)
            })
        });
        panicking(|| {
            window.lock(0, LockType::Shared, |epoch| {
                epoch.flush(0, |_| {
                    let _ = window.raw().unlock(0);
                    Ok(())
                })
            })
        });
    });
}
