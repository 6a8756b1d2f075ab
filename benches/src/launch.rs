//! What a job costs before it does anything: time from launch to exit, and memory.

use std::ffi::OsString;
use std::time::Instant;

use longshore::Rank;
use longshore::launcher::{self, Control, Job, Part};

/// What [`job`] measures of a job of `ranks`.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// Ranks of the job.
    pub ranks: u32,
    /// The median time of launch, init, barrier, finalize and exit, in milliseconds.
    pub millis: f64,
}

/// Launches jobs of `ranks`, each of which runs `program` with `arguments` and does nothing but init, barrier and finalize.
///
/// # Errors
/// A job that fails.
pub fn job(
    ranks: u32,
    program: OsString,
    arguments: Vec<OsString>,
    jobs: usize,
) -> Result<Cost, Box<dyn std::error::Error>> {
    let part = Part { ranks, arguments, ..Part::new(program) };
    let job = Job { parts: vec![part], ..Job::default() };
    let mut took = Vec::with_capacity(jobs);
    for _ in 0..jobs {
        let start = Instant::now();
        let status = launcher::run(&job, &Control::none())?;
        took.push(start.elapsed());
        if status != 0 {
            return Err(format!("a job of {ranks} ranks ended with status {status}").into());
        }
    }
    took.sort_unstable();
    Ok(Cost { ranks, millis: took[jobs / 2].as_secs_f64() * 1e3 })
}

/// This process's memory, its share of what several share included (Pss), in MB; the greatest of all ranks.
///
/// # Errors
/// What the communication meets; a system that doesn't tell.
pub fn memory(rank: &Rank) -> Result<f64, Box<dyn std::error::Error>> {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup")?;
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:")).ok_or("no Pss line")?;
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse()?;
    let all = rank.world().allgather(&[kilobytes])?;
    Ok(all.into_iter().fold(0.0, f64::max) / 1024.0)
}
