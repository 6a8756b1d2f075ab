//! Tests of rules that scoped calls can't break, by calls without scopes.

use std::panic::Location;

use shipable::{Architecture, Class};

use super::{Info, LockType, Window};
use crate::assert::Assert;
use crate::error::Result;
use crate::job::Checking;
use crate::memory::{Loan, Scope};
use crate::origin::Origin;
use crate::rank::Rank;
use crate::sim::{Options, run};
use crate::types::{TargetType, Type};
use crate::window::call::{Action, Call};
use crate::window::core::Core;
use crate::window::near::{Side, Sides};

fn put(core: &Core, values: &[f64], double: &Type) -> Result<()> {
    let what = Origin::from(values).what;
    Scope::with(|scope| {
        let span = scope.lend(Loan::new(values));
        let there = (values.len() as i64, TargetType::Own(double));
        let put = core
            .operate(Call::new(Action::Put, 0, 0, there), Sides::of_origin(Side { what, span }));
        core.drain();
        put
    })
}

fn everywhere(body: impl Fn(&Rank) + Sync) {
    everywhere_with(Options::default().check, body);
}

fn everywhere_with(check: Checking, body: impl Fn(&Rank) + Sync) {
    for architectures in [vec![], vec![Architecture::M68K]] {
        let options = Options { architectures, check, ..Options::default() };
        run(1, &options, |rank| {
            body(&rank);
            rank.finalize().unwrap();
        })
        .unwrap();
    }
}

#[test]
fn rule_1_no_operation_without_an_epoch() {
    everywhere(|rank| {
        let window = Window::allocate(rank.world(), 8, 8, &Info::default()).unwrap();
        let (core, double) = (&window.core, rank.type_of::<f64>().unwrap());
        let refused = |outcome: Result<()>| {
            let error = outcome.unwrap_err();
            assert_eq!(error.class(), Class::RmaSync);
            assert!(error.to_string().contains("no epoch"), "{error}");
        };
        refused(put(core, &[1.0], &double));
        core.fence(Assert::NONE).unwrap();
        put(core, &[2.0], &double).unwrap();
        core.fence(Assert::NOSUCCEED).unwrap();
        refused(put(core, &[3.0], &double));
        assert_eq!(window.get::<f64>(0).unwrap(), 2.0);
        window.free().unwrap();
    });
}

#[test]
fn rule_25_no_window_is_freed_within_an_epoch() {
    // A check would report the second window at finalize.
    everywhere_with(Checking::Off, |rank| {
        let double = rank.type_of::<f64>().unwrap();
        let window = Window::allocate(rank.world(), 8, 8, &Info::default()).unwrap();
        window.core.fence(Assert::NONE).unwrap();
        window.free().unwrap();
        let window = Window::allocate(rank.world(), 8, 8, &Info::default()).unwrap();
        window.core.fence(Assert::NONE).unwrap();
        put(&window.core, &[1.0], &double).unwrap();
        let error = window.free().unwrap_err();
        assert_eq!(error.class(), Class::RmaSync);
        assert!(error.to_string().contains("fence epoch 1"), "{error}");
    });
}

#[test]
fn failures_are_bounded_and_the_first_is_returned() {
    everywhere(|rank| {
        let mut window = Window::allocate(rank.world(), 8, 8, &Info::default()).unwrap();
        let ledger = window.core.parts().flight().ledger().clone();
        let error = window
            .fence(|_| {
                for count in 0..1000 {
                    ledger.fail(0, crate::error::ErrorKind::Count(count).into());
                }
                Ok(())
            })
            .unwrap_err();
        assert!(error.to_string().starts_with("count 0 "), "{error}");
        window.fence(|_| Ok(())).unwrap();
        window.free().unwrap();
    });
}

#[test]
fn a_panic_releases_lent_memory_and_continues() {
    let panicked = std::panic::catch_unwind(|| {
        everywhere(|rank| {
            let mut window = Window::allocate(rank.world(), 800, 8, &Info::default()).unwrap();
            let double = rank.type_of::<f64>().unwrap();
            let values = [1.0; 100];
            let _ = window.fence(|epoch| {
                epoch.put(&values, 0, 0, 100, &double)?;
                if true {
                    panic!("of the body");
                }
                Ok(())
            });
        });
    });
    let message = panicked.unwrap_err();
    assert_eq!(message.downcast_ref::<&str>(), Some(&"of the body"));
}

/// The network holds memory of puts to ranks on other hosts.
#[test]
fn a_panic_releases_memory_that_the_network_holds() {
    let many = 200_000;
    let panicked = std::panic::catch_unwind(|| {
        run(2, &Options::default(), |rank| {
            let values = vec![1.0; many];
            let info = Info::default();
            let mut window = Window::allocate(rank.world(), 8 * many as i64, 8, &info).unwrap();
            let double = rank.type_of::<f64>().unwrap();
            // One rank panics, and the other one learns that the job ends.
            let _ = window.fence(|epoch| {
                if rank.world().rank() == 0 {
                    for _ in 0..3 {
                        epoch.put(&values, 1, 0, many as i64, &double)?;
                    }
                    panic!("of the body");
                }
                Ok(())
            });
        })
    });
    let message = panicked.unwrap_err();
    assert_eq!(message.downcast_ref::<&str>(), Some(&"of the body"));
}

/// A put by message could be packed after its buffer is gone, when the links have room for it.
#[test]
fn operations_are_refused_after_an_abort() {
    let options = Options { routes: crate::job::Routes::Message, ..Options::default() };
    run(1, &options, |rank| {
        let mut window = Window::allocate(rank.world(), 8, 8, &Info::default()).unwrap();
        let double = rank.type_of::<f64>().unwrap();
        let values = [1.0];
        window.core.parts().process().segment().abort(3);
        for _ in 0..3 {
            let mut taken = Ok(());
            let fence = window.fence(|epoch| {
                taken = epoch.put(&values, 0, 0, 1, &double);
                Ok(())
            });
            assert_eq!(taken.unwrap_err().class(), Class::ProcAborted);
            fence.unwrap();
        }
    })
    .unwrap();
}

/// Scopes always pair these calls.
#[test]
fn rules_3_to_5_and_11_hold_for_calls_without_scopes() {
    everywhere(|rank| {
        let window = Window::allocate(rank.world(), 8, 8, &Info::default()).unwrap();
        let (core, double) = (&window.core, rank.type_of::<f64>().unwrap());
        let refused = |outcome: Result<()>, words: &[&str]| {
            let error = outcome.unwrap_err();
            assert_eq!(error.class(), Class::RmaSync);
            for word in words {
                assert!(error.to_string().contains(word), "no {word:?} in: {error}");
            }
        };
        refused(core.complete(Location::caller()), &["without a start", "rule 4", "no epoch"]);
        refused(core.unlock(0, Location::caller()), &["without a lock", "rule 5"]);
        refused(core.unlock_all(Location::caller()), &["without a lock_all", "rule 4"]);
        for flush in [
            core.flush(0, Location::caller()),
            core.flush_all(Location::caller()),
            core.flush_local(0, Location::caller()),
            core.flush_local_all(Location::caller()),
        ] {
            refused(flush, &["passive epoch", "rules 11 and 12", "flush"]);
        }
        core.lock(0, LockType::Shared, Assert::NONE, Location::caller()).unwrap();
        refused(core.fence(Assert::NONE), &["fence within", "rule 3", "1 target locked"]);
        core.unlock(0, Location::caller()).unwrap();
        // A fence with no operation after it hasn't opened an epoch yet.
        core.fence(Assert::NONE).unwrap();
        core.lock_all(Assert::NONE, Location::caller()).unwrap();
        core.unlock_all(Location::caller()).unwrap();
        core.fence(Assert::NONE).unwrap();
        put(core, &[2.0], &double).unwrap();
        refused(
            core.lock(0, LockType::Shared, Assert::NONE, Location::caller()),
            &["lock within", "fence epoch 1"],
        );
        refused(core.flush(0, Location::caller()), &["passive epoch", "fence epoch 1"]);
        core.fence(Assert::NOSUCCEED).unwrap();
        core.sync(Location::caller()).unwrap();
        window.free().unwrap();
    });
}

/// An unlock by message may arrive after its sender has left the window. (Rank 1 receives no
/// message of rank 0 while it frees a window of four ranks.)
#[test]
fn late_messages_to_a_freed_window_change_nothing() {
    shipable::oracle::each_seed(40, |seed| {
        let options = Options { routes: crate::job::Routes::Message, seed, ..Options::default() };
        run(4, &options, |rank| {
            for _ in 0..4 {
                let window = Window::allocate(rank.world(), 8, 8, &Info::default()).unwrap();
                if rank.world().rank() == 0 {
                    window.lock(1, LockType::Exclusive, |_| Ok(())).unwrap();
                }
                window.free().unwrap();
            }
            rank.finalize().unwrap();
        })
        .unwrap();
    });
}
