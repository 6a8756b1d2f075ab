//! One-sided operations between two pinned ranks, as rows that `benches/peers/rma.c` has as well.

use std::time::{Duration, Instant};

use longshore::{Info, Rank, Result, Window};

/// Times of a row are medians over so many rounds,
const ROUNDS: usize = 41;
/// each of so many calls.
const CALLS: usize = 2000;

/// A measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What was called, as the peers' program names it.
    pub name: &'static str,
    /// The median time of a call, in microseconds.
    pub micros: f64,
}

/// Measures on the job's first two ranks, which it pins to a core each. Collective; every rank has its own view.
///
/// # Errors
/// What the communication meets.
pub fn measure(rank: &Rank) -> Result<Vec<Row>> {
    let world = rank.world();
    pin(world.rank());
    let other = (world.rank() + 1) % world.size();
    let double = rank.type_of::<f64>()?;
    let value = [1.5_f64];
    let mut window = Window::allocate(world, 4096, double.extent(), &Info::default())?;
    window.fences(|chain| {
        let fence = rounds(|| {
            let start = Instant::now();
            for _ in 0..CALLS {
                chain.epoch(|_| Ok(()))?;
            }
            Ok(start.elapsed())
        })?;
        let put_and_fence = rounds(|| {
            let start = Instant::now();
            for call in 0..CALLS {
                chain.epoch(|epoch| epoch.put(&value, other, call as i64 % 512, 1, &double))?;
            }
            Ok(start.elapsed())
        })?;
        let put = rounds(|| {
            chain.epoch(|epoch| {
                let start = Instant::now();
                for call in 0..CALLS {
                    epoch.put(&value, other, call as i64 % 512, 1, &double)?;
                }
                Ok(start.elapsed())
            })
        })?;
        Ok(vec![
            Row { name: "fence", micros: fence },
            Row { name: "put8+fence", micros: put_and_fence },
            Row { name: "put8", micros: put },
        ])
    })
}

/// The median time of a call, in microseconds.
fn rounds(mut round: impl FnMut() -> Result<Duration>) -> Result<f64> {
    let mut took = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        took.push(round()?);
    }
    took.sort_unstable();
    Ok(took[ROUNDS / 2].as_secs_f64() * 1e6 / CALLS as f64)
}

/// Keeps this process, and those it starts, on the core of that number where the machine has it.
pub fn pin(rank: i32) {
    use nix::sched::{CpuSet, sched_setaffinity};
    let mut cores = CpuSet::new();
    let set = usize::try_from(rank).is_ok_and(|rank| cores.set(rank).is_ok());
    if set {
        // A core that isn't ours leaves the process where it was: slower, no more.
        let _ = sched_setaffinity(nix::unistd::Pid::from_raw(0), &cores);
    }
}
