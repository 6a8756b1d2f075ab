//! What a notification orders: the notified rank's later accesses, after the operation and after
//! what its origin had done before.

use longshore::{Info, Rank, Type, Window};

use super::{ONE, expect, expect_nothing};

/// Makes a program on a window of 16 elements of 64 bits and 4 counters.
fn notified(
    body: impl Fn(&Rank, &Window, &Type) -> longshore::Result<()> + Sync,
) -> impl Fn(&Rank) + Sync {
    move |rank| {
        let (world, info) = (rank.world(), Info { max_num_notify: 4, ..Info::default() });
        let window = Window::allocate(world, 16 * 8, 8, &info).unwrap();
        let long = rank.type_of::<i64>().unwrap();
        body(rank, &window, &long).unwrap();
        world.barrier().unwrap();
        window.free().unwrap();
    }
}

/// Two ranks write and read the same elements by turns, and know of it by counters only.
#[test]
fn notified_operations_precede_what_their_target_does_next() {
    expect_nothing(notified(|rank, window, long| {
        let me = rank.world().rank();
        if me == 2 {
            return Ok(());
        }
        let mut found = [0i64; 2];
        window.lock_all(|epoch| {
            for round in 1..=3 {
                if me == 0 {
                    epoch.put(&ONE, 1, 2, 1, long)?;
                    epoch.flush(1, |_| Ok(()))?;
                    epoch.put_notify(&ONE, 1, 0, 1, long, 0)?;
                    // The owner has taken the values out.
                    window.wait_notify(1, round)?;
                } else {
                    while !window.test_notify(0, round)? {}
                    assert_eq!(epoch.local().get::<i64>(0)?, 1);
                    // Put before, and flushed.
                    assert_eq!(epoch.local().get::<i64>(2)?, 1);
                    epoch.local().set(0, 5i64)?;
                    epoch.local().set(2, 5i64)?;
                    epoch.put_notify(&[0i64; 0], 0, 0, 0, long, 1)?;
                }
            }
            Ok(())
        })?;
        // A get that is over, as its target learns.
        window.lock_all(|epoch| {
            if me == 0 {
                return epoch.get_notify(&mut found, 1, 4, 2, long, 2);
            }
            window.wait_notify(2, 1)?;
            epoch.local().write(4, &[7i64, 8])
        })
    }));
}

/// A third rank that hears of it from the notified one may go on.
#[test]
fn a_notified_rank_passes_its_knowledge_on() {
    expect_nothing(notified(|rank, window, long| {
        let world = rank.world();
        window.lock_all(|epoch| match world.rank() {
            0 => epoch.put_notify(&ONE, 1, 0, 1, long, 0),
            1 => {
                window.wait_notify(0, 1)?;
                world.send(&ONE, 2, 0)
            }
            _ => {
                world.recv(&mut [0i64], 1, 0)?;
                epoch.put(&ONE, 1, 0, 1, long)
            }
        })
    }));
}

/// The origin itself doesn't know that the operation is over, so nobody learns it from there.
#[test]
fn rule_23_a_notification_tells_only_its_target() {
    let words = ["rule 23", "of rank 1", "put by rank 0 at ", "put by rank 2 at ", "bytes 0..8"];
    expect(
        &words,
        notified(|rank, window, long| {
            let world = rank.world();
            window.lock_all(|epoch| match world.rank() {
                0 => {
                    epoch.put_notify(&ONE, 1, 0, 1, long, 0)?;
                    world.send(&ONE, 2, 0)
                }
                1 => window.wait_notify(0, 1).map(drop),
                _ => {
                    world.recv(&mut [0i64], 0, 0)?;
                    epoch.put(&ONE, 1, 0, 1, long)
                }
            })
        }),
    );
}

/// The notification of another operation says nothing of this one.
#[test]
fn rule_23_a_notification_is_of_its_operation_only() {
    let words = ["rule 23", "of rank 1", "put by rank 0 at ", "load by rank 1 at ", "bytes 0..8"];
    expect(
        &words,
        notified(|rank, window, long| {
            window.lock_all(|epoch| match rank.world().rank() {
                0 => {
                    epoch.put_notify(&ONE, 1, 0, 1, long, 0)?;
                    epoch.put_notify(&ONE, 1, 1, 1, long, 1)
                }
                1 => {
                    window.wait_notify(1, 1)?;
                    epoch.local().get::<i64>(1)?;
                    epoch.local().get::<i64>(0).map(drop)
                }
                _ => Ok(()),
            })
        }),
    );
}
