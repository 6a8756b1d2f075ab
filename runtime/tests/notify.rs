//! Notified operations: a counter at the target rises when the data are there, by every route and
//! between unlike ranks.

mod support;

use std::thread;
use std::time::Duration;

use longshore::job::Routes;
use longshore::sim::{Options, run, run_shared};
use longshore::{
    Architecture, Assert, Class, Datatype, Info, LockType, Op, PROC_NULL, Rank, Window,
};

use support::allocate_shared;

const NATIVE: Architecture = Architecture::NATIVE;

fn counters(max_num_notify: u16) -> Info {
    Info { max_num_notify, ..Info::default() }
}

/// Runs a program between like and unlike ranks, directly, by message, and both within one window.
fn everywhere(ranks: u32, body: impl Fn(&Rank) + Sync) {
    let whole = |rank: Rank| {
        body(&rank);
        rank.finalize().unwrap();
    };
    for (architectures, routes) in [
        (vec![NATIVE; 3], Routes::Best),
        (vec![NATIVE; 3], Routes::Message),
        (vec![Architecture::S390X, Architecture::I686, NATIVE], Routes::Best),
        (vec![NATIVE, NATIVE, Architecture::M68K], Routes::Best),
    ] {
        let options = Options { architectures, routes, ..Options::default() };
        for seed in 0..3 {
            run(ranks, &Options { seed, ..options.clone() }, whole).unwrap();
        }
        for progress in [false, true] {
            run_shared(ranks, &Options { progress, ..options.clone() }, whole).unwrap();
        }
    }
}

fn neighbours(rank: &Rank) -> (i32, i32) {
    let (me, size) = (rank.world().rank(), rank.world().size());
    ((me + 1) % size, (me + size - 1) % size)
}

/// Values from which a reader can tell their round, and whether all of them are there.
fn values(round: u64, count: i64) -> Vec<i64> {
    (0..count).map(|at| (round as i64) << 32 | at).collect()
}

/// A put of a length that takes no frame, one frame, a stream; the reader sees all of it.
#[test]
fn a_notified_put_is_there_when_the_counter_rises() {
    everywhere(3, |rank| {
        let (next, _) = neighbours(rank);
        let long = rank.type_of::<i64>().unwrap();
        for count in [1, 8, 300, 40_000] {
            let mut window = Window::allocate(rank.world(), count * 8, 8, &counters(2)).unwrap();
            for round in 1..=3 {
                let data = values(round, count);
                window
                    .lock_all(|epoch| {
                        epoch.put_notify(&data, next, 0, count, &long, 0)?;
                        assert_eq!(window.wait_notify(0, round)?, round);
                        let mut found = vec![0i64; count as usize];
                        epoch.local().read(0, &mut found)?;
                        assert_eq!(found, data);
                        // The neighbour may put again.
                        epoch.put_notify(&[0i64; 0], (next + 1) % 3, 0, 0, &long, 1)?;
                        window.wait_notify(1, round).map(drop)
                    })
                    .unwrap();
            }
            assert_eq!(window.notify_value(0).unwrap(), 3);
            window.set(0, 0i64).unwrap();
            window.free().unwrap();
        }
    });
}

/// Columns of unlike ranks, which are converted on their way.
#[test]
fn layouts_and_representations_are_converted() {
    everywhere(3, |rank| {
        let (next, before) = neighbours(rank);
        let column = Datatype::vector(8, 1, 10, &Datatype::double()).unwrap();
        let column = rank.commit(&column).unwrap();
        let window = Window::allocate(rank.world(), 80 * 8, 8, &counters(1)).unwrap();
        let values: [f64; 8] =
            std::array::from_fn(|row| f64::from(rank.world().rank()) + row as f64 / 8.0);
        window.lock_all(|epoch| epoch.put_notify(&values, next, 3, 1, &column, 0)).unwrap();
        window.wait_notify(0, 1).unwrap();
        for row in 0..8 {
            let found: f64 = window.get(row * 10 + 3).unwrap();
            assert_eq!(found, f64::from(before) + row as f64 / 8.0);
        }
        window.free().unwrap();
    });
}

/// The owner writes over the data as soon as it is notified that they were read.
#[test]
fn a_notified_get_has_read_the_data_when_the_counter_rises() {
    everywhere(2, |rank| {
        let (next, _) = neighbours(rank);
        let long = rank.type_of::<i64>().unwrap();
        for count in [1, 4, 300, 200_000] {
            let mut window = Window::allocate(rank.world(), count * 8, 8, &counters(1)).unwrap();
            window.write(0, &values(1, count)).unwrap();
            rank.world().barrier().unwrap();
            let mut found = vec![0i64; count as usize];
            window
                .lock_all(|epoch| {
                    epoch.get_notify(&mut found, next, 0, count, &long, 0)?;
                    window.wait_notify(0, 1)?;
                    epoch.local().write(0, &values(2, count))
                })
                .unwrap();
            assert!(found == values(1, count), "{count}");
            window.free().unwrap();
        }
    });
}

#[test]
fn accumulates_of_all_ranks_raise_one_counter() {
    everywhere(3, |rank| {
        let size = rank.world().size() as u64;
        let long = rank.type_of::<i64>().unwrap();
        const COUNT: i64 = 1000;
        const ROUNDS: u64 = 5;
        let window = Window::allocate(rank.world(), COUNT * 8, 8, &counters(2)).unwrap();
        let ones = vec![1i64; COUNT as usize];
        let mut before = vec![-1i64; COUNT as usize];
        window
            .lock_all(|epoch| {
                for _ in 0..ROUNDS {
                    epoch.accumulate_notify(&ones, 0, 0, COUNT, &long, Op::Sum, 1)?;
                }
                epoch.get_accumulate_notify(&ones, &mut before, 0, 0, COUNT, &long, Op::Sum, 1)?;
                if rank.world().rank() == 0 {
                    let all = size * (ROUNDS + 1);
                    assert_eq!(window.wait_notify(1, all)?, all);
                    let mut found = vec![0i64; COUNT as usize];
                    epoch.local().read(0, &mut found)?;
                    assert!(found.iter().all(|value| *value == all as i64));
                }
                Ok(())
            })
            .unwrap();
        // Each rank's five come before its sixth.
        assert!(before.iter().all(|value| (5..18).contains(value)), "{before:?}");
        window.free().unwrap();
    });
}

/// An atomic get, an accumulate and a put of nothing, and PROC_NULL.
#[test]
fn operations_without_data_notify_too() {
    everywhere(2, |rank| {
        let (next, _) = neighbours(rank);
        let long = rank.type_of::<i64>().unwrap();
        let empty = rank.commit(&Datatype::contiguous(0, &Datatype::double()).unwrap()).unwrap();
        let window = Window::allocate(rank.world(), 16, 8, &counters(1)).unwrap();
        let (none, mut nothing, mut one) = ([0i64; 0], [0i64; 0], [-1i64]);
        window
            .lock_all(|epoch| {
                epoch.put_notify(&none, next, 0, 0, &long, 0)?;
                epoch.get_notify(&mut nothing, next, 0, 0, &long, 0)?;
                epoch.accumulate_notify(&none, next, 0, 0, &long, Op::Sum, 0)?;
                epoch.put_notify(&none, next, 0, 7, &empty, 0)?;
                epoch.get_accumulate_notify(&none, &mut one, next, 0, 1, &long, Op::NoOp, 0)?;
                epoch.put_notify(&[1i64], PROC_NULL, 0, 1, &long, 0)?;
                assert_eq!(window.wait_notify(0, 5)?, 5);
                Ok(())
            })
            .unwrap();
        assert_eq!(one, [0]);
        rank.world().barrier().unwrap();
        assert_eq!(window.notify_value(0).unwrap(), 5);
        window.free().unwrap();
    });
}

/// Counters and counts of which some are more than a small header has bits for.
#[test]
fn each_counter_of_many_counts_for_itself() {
    const COUNTERS: [i32; 7] = [0, 1, 254, 255, 256, 511, 599];
    const COUNTS: [i64; 5] = [0, 1, 255, 256, 600];
    everywhere(2, |rank| {
        let (next, _) = neighbours(rank);
        let byte = rank.type_of::<u8>().unwrap();
        let window = Window::allocate(rank.world(), 600, 1, &counters(600)).unwrap();
        assert_eq!(window.num_notify(), 600);
        let data = [7u8; 600];
        window
            .lock_all(|epoch| {
                for (at, counter) in COUNTERS.into_iter().enumerate() {
                    for count in COUNTS.into_iter().take(at % 5 + 1) {
                        let (data, op) = (&data[..count as usize], Op::Replace);
                        epoch.accumulate_notify(data, next, 0, count, &byte, op, counter)?;
                    }
                }
                Ok(())
            })
            .unwrap();
        for (at, counter) in COUNTERS.into_iter().enumerate() {
            let due = at as u64 % 5 + 1;
            assert_eq!(window.wait_notify(counter, due).unwrap(), due, "{counter}");
        }
        rank.world().barrier().unwrap();
        let all: u64 = (0..600).map(|counter| window.notify_value(counter).unwrap()).sum();
        assert_eq!(all, 1 + 2 + 3 + 4 + 5 + 1 + 2);
        window.free().unwrap();
    });
}

#[test]
fn a_counter_is_tested_and_reset() {
    everywhere(2, |rank| {
        let (me, (next, _)) = (rank.world().rank(), neighbours(rank));
        let long = rank.type_of::<i64>().unwrap();
        let window = Window::allocate(rank.world(), 8, 8, &counters(1)).unwrap();
        assert!(!window.test_notify(0, 1).unwrap() && window.test_notify(0, 0).unwrap());
        rank.world().barrier().unwrap();
        let reset = || assert_eq!(window.reset_notify_value(0).unwrap(), 1);
        for round in 1..=3i64 {
            let value = [round];
            let put = || {
                let kind = LockType::Shared;
                let put =
                    window.lock(next, kind, |epoch| epoch.put_notify(&value, next, 0, 1, &long, 0));
                put.unwrap();
            };
            if me == 0 {
                put();
                window.wait_notify(0, 1).unwrap();
                reset();
            } else {
                while !window.test_notify(0, 1).unwrap() {}
                assert_eq!(window.get::<i64>(0).unwrap(), round);
                reset();
                assert_eq!(window.notify_value(0).unwrap(), 0);
                put();
            }
        }
        window.free().unwrap();
    });
}

/// Memory that the program owns, that is attached, and that all share, within fences.
#[test]
fn windows_of_every_flavor_notify() {
    everywhere(3, |rank| {
        let world = rank.world();
        let ((next, before), me) = (neighbours(rank), world.rank());
        let (long, value) = (rank.type_of::<i64>().unwrap(), [i64::from(me)]);
        let created = Window::create(world, rank.buffer::<i64>(4).unwrap(), 8, &counters(1));
        let mut created = created.unwrap();
        created.fence(|epoch| epoch.put_notify(&value, next, 3, 1, &long, 0)).unwrap();
        assert_eq!(created.wait_notify(0, 1).unwrap(), 1);
        assert_eq!(created.get::<i64>(3).unwrap(), i64::from(before));
        created.free().unwrap();

        let mut shared = allocate_shared(world, 32, 8, &counters(1)).unwrap();
        shared.fence(|epoch| epoch.put_notify(&value, next, 3, 1, &long, 0)).unwrap();
        assert_eq!(shared.wait_notify(0, 1).unwrap(), 1);
        assert_eq!(shared.get::<i64>(3).unwrap(), i64::from(before));
        shared.free().unwrap();

        let mut dynamic = Window::create_dynamic(world, &counters(1)).unwrap();
        let list = dynamic.attach(rank.buffer::<i64>(4).unwrap()).unwrap();
        let lists = world.allgather(&[list.address()]).unwrap();
        let at = lists[next as usize] + 8;
        for round in 1..=2 {
            dynamic.fence(|epoch| epoch.put_notify(&value, next, at, 1, &long, 0)).unwrap();
            assert_eq!(dynamic.wait_notify(0, round).unwrap(), round);
        }
        assert_eq!(dynamic.detach(list).unwrap().get(1).unwrap(), i64::from(before));
        dynamic.free().unwrap();
    });
}

/// All calls by pointer, in native memory.
#[test]
#[allow(unsafe_code)]
fn calls_by_pointer_notify() {
    for routes in [Routes::Best, Routes::Message] {
        let body = |rank: Rank| {
            let (next, _) = neighbours(&rank);
            let window = Window::allocate(rank.world(), 16, 8, &counters(4)).unwrap();
            let (long, calls) = (rank.type_of::<i64>().unwrap(), window.raw());
            let (two, mut got, mut before) = (2i64, -1i64, -1i64);
            let from = (&raw const two).cast();
            calls.lock_all(Assert::NONE).unwrap();
            // SAFETY: the numbers stay until the unlock_all has returned, and each result is read
            // after a flush.
            unsafe {
                calls.put_notify(from, 1, &long, next, 0, 1, &long, 0).unwrap();
                calls.flush(next).unwrap();
                let to = (&raw mut got).cast();
                calls.get_notify(to, 1, &long, next, 0, 1, &long, 1).unwrap();
                calls.accumulate_notify(from, 1, &long, next, 1, 1, &long, Op::Sum, 2).unwrap();
                let (from, to) = ((from, 1, &long), ((&raw mut before).cast(), 1, &long));
                calls.get_accumulate_notify(from, to, next, 1, 1, &long, Op::Prod, 3).unwrap();
            }
            calls.unlock_all().unwrap();
            (0..4).for_each(|counter| assert_eq!(window.wait_notify(counter, 1).unwrap(), 1));
            assert_eq!([got, before], [2, 2]);
            assert_eq!([0, 1].map(|at| window.get::<i64>(at).unwrap()), [2, 4]);
            window.free().unwrap();
            rank.finalize().unwrap();
        };
        run(2, &Options { routes, ..Options::default() }, body).unwrap();
        run_shared(2, &Options { routes, ..Options::default() }, body).unwrap();
    }
}

/// The target learns nothing of an operation that its representation can't hold, and the origin
/// learns which value it is. Only a program whose long has 64 bits has such a value.
#[cfg(target_pointer_width = "64")]
#[test]
fn a_value_that_does_not_fit_raises_nothing() {
    use longshore::c;

    let architectures = vec![Architecture::X86_64, Architecture::I686];
    let options = Options { architectures, ..Options::default() };
    let body = |rank: Rank| {
        let long = rank.type_of::<c::Long>().unwrap();
        let window = Window::allocate(rank.world(), 4000, 4, &counters(1)).unwrap();
        if rank.world().rank() == 0 {
            for count in [1, 500] {
                let wide = vec![c::Long(1 << 40); count];
                let refused =
                    window.lock_all(|epoch| epoch.put_notify(&wide, 1, 0, count as i64, &long, 0));
                let refused = refused.unwrap_err();
                assert_eq!(refused.class(), Class::Conversion, "{refused}");
                assert!(refused.to_string().contains("1099511627776"), "{refused}");
            }
            let fits = [c::Long(5)];
            window.lock_all(|epoch| epoch.put_notify(&fits, 1, 1, 1, &long, 0)).unwrap();
        } else {
            assert_eq!(window.wait_notify(0, 1).unwrap(), 1);
            assert_eq!(window.get::<c::Long>(1).unwrap(), c::Long(5));
        }
        rank.world().barrier().unwrap();
        assert_eq!(window.notify_value(0).unwrap(), u64::from(rank.world().rank() == 1));
        window.free().unwrap();
        rank.finalize().unwrap();
    };
    run(2, &options, body).unwrap();
    run_shared(2, &options, body).unwrap();
}

/// Rule 31.
#[test]
fn rule_31_a_counter_that_the_window_does_not_have() {
    everywhere(2, |rank| {
        let (next, _) = neighbours(rank);
        let long = rank.type_of::<i64>().unwrap();
        let some = Window::allocate(rank.world(), 8, 8, &counters(2)).unwrap();
        let none = Window::allocate(rank.world(), 8, 8, &Info::default()).unwrap();
        let few = "no notification counter 2: use one from 0 up and below 2, the window's info \
                   mpi_assert_max_num_notify";
        for (window, counter, text) in [
            (&some, -1, "no notification counter -1"),
            (&some, 2, few),
            (&none, 0, "the window has none, so make it with the info mpi_assert_max_num_notify"),
        ] {
            let (value, mut result) = ([1i64], [0i64]);
            let each = |refused: longshore::Result<()>| {
                let refused = refused.unwrap_err();
                assert_eq!(refused.class(), Class::Arg);
                assert!(refused.to_string().contains(text), "{refused}");
            };
            window
                .lock_all(|epoch| {
                    // Twice: once with nothing in the memo.
                    for _ in 0..2 {
                        each(epoch.put_notify(&value, next, 0, 1, &long, counter));
                        each(epoch.accumulate_notify(&value, next, 0, 1, &long, Op::Sum, counter));
                        epoch.flush(next, |epoch| epoch.put(&[0i64], next, 0, 1, &long))?;
                    }
                    each(epoch.get_notify(&mut result, next, 0, 1, &long, counter));
                    Ok(())
                })
                .unwrap();
            each(window.wait_notify(counter, 0).map(drop));
            each(window.test_notify(counter, 0).map(drop));
            each(window.notify_value(counter).map(drop));
            each(window.reset_notify_value(counter).map(drop));
        }
        rank.world().barrier().unwrap();
        assert_eq!(some.get::<i64>(0).unwrap(), 0);
        some.free().unwrap();
        none.free().unwrap();
    });
}

/// A rank that sleeps in a wait is woken, by either route.
#[test]
fn a_sleeper_is_woken() {
    for routes in [Routes::Best, Routes::Message] {
        let body = |rank: Rank| {
            let long = rank.type_of::<i64>().unwrap();
            let window = Window::allocate(rank.world(), 8, 8, &counters(1)).unwrap();
            for round in 1..=3 {
                if rank.world().rank() == 0 {
                    // Longer than any spinning; the result doesn't depend on it.
                    thread::sleep(Duration::from_millis(30));
                    let value = [round as i64];
                    window.lock_all(|epoch| epoch.put_notify(&value, 1, 0, 1, &long, 0)).unwrap();
                } else {
                    assert_eq!(window.wait_notify(0, round).unwrap(), round);
                }
                rank.world().barrier().unwrap();
            }
            window.free().unwrap();
            rank.finalize().unwrap();
        };
        run_shared(2, &Options { routes, ..Options::default() }, body).unwrap();
    }
}

/// Ranks that panicked in an epoch notify nobody.
#[test]
fn a_wait_on_a_poisoned_window_ends() {
    for routes in [Routes::Best, Routes::Message] {
        let body = |rank: Rank| {
            let window = Window::allocate(rank.world(), 8, 8, &counters(1)).unwrap();
            if rank.world().rank() == 0 {
                let panic = std::panic::AssertUnwindSafe(|| {
                    window.lock_all(|_| -> longshore::Result<()> { panic!("meant") })
                });
                assert!(std::panic::catch_unwind(panic).is_err());
                let refused = window.wait_notify(0, 1).unwrap_err();
                assert_eq!(refused.class(), Class::Win, "{refused}");
            } else {
                let refused = window.wait_notify(0, 1).unwrap_err();
                assert_eq!(refused.class(), Class::Win, "{refused}");
                assert!(refused.to_string().contains("rank 0"), "{refused}");
            }
            drop(window);
            rank.finalize().unwrap();
        };
        run_shared(2, &Options { routes, ..Options::default() }, body).unwrap();
    }
}
