//! The bench of a target that computes without calling the library.

use std::time::{Duration, Instant};

use longshore::{Info, Window};

use super::Pair;
use crate::Failure;
use crate::case::{Case, Flavor};
use crate::row::{Outcome, Refusal, Sample};

/// The time for which the target computes.
const COMPUTES: Duration = Duration::from_millis(200);

impl Pair<'_> {
    /// Measures a put and flush of a double to a rank that computes. If the value isn't there at
    /// the end of the computation, the put has taken [`COMPUTES`].
    pub(super) fn computing(&self, case: &Case) -> Result<Outcome, Failure> {
        let Flavor::Create = case.window else {
            return Ok(Err(Refusal::Unsupported("measured on created windows".to_owned())));
        };
        let double = self.rank.type_of::<f64>()?;
        let rounds = i64::from(case.rounds);
        let memory = self.rank.buffer::<f64>(case.rounds as usize)?;
        let window = Window::create(self.world, memory, double.extent(), &Info::default())?;
        let before = self.line()?;
        let (mut took, mut late) = (Vec::new(), false);
        for round in 0..rounds {
            let value = [1.5 + round as f64];
            self.world.barrier()?;
            let start = Instant::now();
            let mut put = COMPUTES;
            if self.me == 0 {
                std::thread::sleep(COMPUTES / 20);
                put = window.lock_all(|epoch| {
                    epoch.flush(1, |_| Ok(()))?;
                    let start = Instant::now();
                    epoch.flush(1, |epoch| epoch.put(&value, 1, round, 1, &double))?;
                    Ok(start.elapsed())
                })?;
            } else {
                while start.elapsed() < COMPUTES {
                    std::hint::spin_loop();
                }
            }
            let there = self.world.allgather(&[window.get::<f64>(round)?])?[1] == value[0];
            late |= !there;
            took.push(if there { put } else { COMPUTES }.as_secs_f64() * 1e6);
        }
        let line = [before, self.line()?];
        window.free()?;
        let sample = Sample::of(took, line, !late);
        Ok(sample.ok_or(Refusal::Unsupported("no rounds".to_owned())))
    }
}
