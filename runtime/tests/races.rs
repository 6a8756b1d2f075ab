//! Ranks that access a window's memory at the same time. MPI leaves the values open, but safe calls
//! can't rule it out, so each element that is read is an old or a new one. The thread sanitizer
//! judges the accesses of both sides (`ci/steps/races`).

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use longshore::job::{Checking, Routes};
use longshore::sim::{Options, run_shared};
use longshore::{Architecture, Info, LockType, Op, Passive, Result, Type, Window};

const DOUBLES: usize = 300;
const ROUNDS: u32 = 30;

/// An operation on the window of rank 1 with these values, which have this type.
type Operation = for<'s, 'e> fn(&Passive<'s, 'e>, &'e [f64], &'e Type) -> Result<()>;

/// Rank 0 operates on the window of rank 1 by message, so that the progress thread of rank 1
/// accesses it. Meanwhile rank 1 itself reads and writes it without synchronisation.
fn while_the_owner_accesses(operation: Operation) {
    for origin in [Architecture::NATIVE, Architecture::S390X] {
        let options = Options {
            architectures: vec![origin, Architecture::NATIVE],
            routes: Routes::Message,
            // A check would report them.
            check: Checking::Off,
            ..Options::default()
        };
        let is_over = AtomicBool::new(false);
        let body = |rank: longshore::Rank| {
            let world = rank.world();
            let window = Window::allocate(world, 8 * DOUBLES as i64, 8, &Info::default()).unwrap();
            let double = rank.type_of::<f64>().unwrap();
            world.barrier().unwrap();
            if world.rank() == 0 {
                for round in 0..ROUNDS {
                    let (values, lock) = ([f64::from(round); DOUBLES], LockType::Shared);
                    window.lock(1, lock, |epoch| operation(epoch, &values, &double)).unwrap();
                }
                is_over.store(true, SeqCst);
            } else {
                let is_whole = |value: &f64| value.fract() == 0.0 && (0.0..1e6).contains(value);
                let mut found = [0f64; DOUBLES];
                while !is_over.load(SeqCst) {
                    window.local().read(0, &mut found).unwrap();
                    assert!(found.iter().all(is_whole), "{found:?}");
                    window.local().write(2, &[7f64; 40]).unwrap();
                    window.local().set(1, 5f64).unwrap();
                }
            }
            world.barrier().unwrap();
            window.free().unwrap();
            rank.finalize().unwrap();
        };
        run_shared(2, &options, body).unwrap();
    }
}

#[test]
fn a_put_may_meet_the_owners_accesses() {
    while_the_owner_accesses(|epoch, values, double| {
        epoch.put(values, 1, 0, DOUBLES as i64, double)?;
        epoch.put(&values[..1], 1, 1, 1, double)
    });
}

#[test]
fn an_accumulate_may_meet_the_owners_accesses() {
    while_the_owner_accesses(|epoch, values, double| {
        epoch.accumulate(values, 1, 0, DOUBLES as i64, double, Op::Sum)?;
        epoch.accumulate(&values[..1], 1, 1, 1, double, Op::Max)
    });
}
