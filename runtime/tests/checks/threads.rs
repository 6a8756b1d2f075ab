//! Rule 8 where the ranks have several threads, which announce calls on one communicator.

use std::thread;
use std::time::Duration;

use longshore::sim::run_shared;
use longshore::{Assert, Class, Info, Rank, Window};

use super::options;

/// While calls on a window differ, other threads wait for calls on its communicator and on another
/// window, and return when these are made at all ranks.
#[test]
fn rule_8_reports_leave_the_calls_of_other_threads_alone() {
    let body = |rank: Rank| {
        let world = rank.world();
        let me = world.rank();
        let [window, other] =
            [8, 16].map(|size| Window::allocate(world, size, 8, &Info::default()).unwrap());
        // Rank 1 comes late, so that rank 0 waits meanwhile.
        let pause = || thread::sleep(Duration::from_millis(if me == 1 { 3 } else { 0 }));
        let other = thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..20 {
                    pause();
                    world.barrier().unwrap();
                }
            });
            let other = scope.spawn(move || {
                for _ in 0..20 {
                    pause();
                    other.set_info(&Info::default()).unwrap();
                }
                other
            });
            for _ in 0..100 {
                let error = match me {
                    0 => window.set_info(&Info::default()).unwrap_err(),
                    _ => window.raw().fence(Assert::NONE).unwrap_err(),
                };
                assert_eq!(error.class(), Class::RmaSync, "{error}");
            }
            other.join().unwrap()
        });
        world.barrier().unwrap();
        let reports = rank.reports();
        window.free().unwrap();
        other.free().unwrap();
        rank.finalize().unwrap();
        reports
    };
    let found = run_shared(2, &options(false), body).unwrap().concat();
    assert_eq!(found.len(), 1, "{found:#?}");
}
