//! Rule 7, and calls that wait in a circle.

use std::time::Duration;

use longshore::sim::run_shared;
use longshore::{Assert, Class, Info, LockType, Passive, Rank, Window};

use super::{expect, options, windowed};

const SITE: &str = "runtime/tests/checks/waits.rs:";

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
