//! Puts and gets in every kind of epoch, by every route.

#[path = "epochs/pointers.rs"]
mod pointers;
#[path = "epochs/progress.rs"]
mod progress;
mod support;

use std::time::Duration;

use longshore::job::{Checking, Routes};
use longshore::sim::{Options, run, run_shared};
use longshore::{
    Architecture, Assert, Class, Datatype, Info, LockType, Origin, Pointed, Rank, Route, Window,
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
fn ranks_of_the_other_byte_order_exchange_data_by_message() {
    let architectures =
        vec![Architecture::S390X, Architecture::I686, Architecture::WIN64, Architecture::M68K];
    let options =
        Options { architectures, adversary: None, check: Checking::Off, ..Options::default() };
    let routes = [Route::Message, Route::Direct, Route::Message, Route::Direct];
    assert_eq!(run(4, &options, exchange).unwrap(), routes);
    assert_eq!(run_shared(4, &options, exchange).unwrap(), routes);
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

fn class<T>(outcome: longshore::Result<T>) -> Option<Class> {
    outcome.err().map(|error| error.class())
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
