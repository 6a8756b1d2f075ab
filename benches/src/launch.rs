//! The cost of a job without work: the time from launch to exit, and memory.

use std::ffi::OsStr;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use longshore::Rank;

use crate::Failure;
use crate::case::{Bench, Case};
use crate::row::{Outcome, Refusal, Sample};

/// Measures jobs of `longshore run`, with `program` as the command longshore. The sample is in
/// microseconds from launch to exit, or in kB for [`Bench::Memory`].
pub fn measure(case: &Case, program: &OsStr) -> Outcome {
    let mut rounds = Vec::new();
    for _ in 0..case.rounds {
        let work = if case.bench == Bench::Memory { "memory" } else { "nothing" };
        let mut command = Command::new(program);
        command
            // The timeout keeps a job that hangs from blocking the run.
            .args(["run", "--timeout", "60", "-n", &case.ranks.to_string()])
            .arg(program)
            .args(["bench-rank", work]);
        let start = Instant::now();
        let output = command.stdin(Stdio::null()).output();
        let took = start.elapsed().as_secs_f64() * 1e6;
        let output = output.map_err(|error| Refusal::Lost(format!("longshore run: {error}")))?;
        let failed = || {
            let Output { status, stderr, .. } = &output;
            Refusal::Lost(format!("{status}: {}", String::from_utf8_lossy(stderr).trim()))
        };
        if !output.status.success() {
            return Err(failed());
        }
        rounds.push(match work {
            "memory" => {
                String::from_utf8_lossy(&output.stdout).trim().parse().map_err(|_| failed())?
            }
            _ => took,
        });
    }
    Sample::of(rounds, [0.0; 2], false).ok_or_else(|| Refusal::Lost("no round".to_owned()))
}

/// Runs a rank of such a job: init, barrier and finalize. With `work` `memory`, rank 0 prints the
/// memory of the largest rank; `nothing` prints nothing.
///
/// # Errors
/// An error of the communication, or a system that doesn't report memory.
pub fn serve(work: &str) -> Result<(), Failure> {
    let rank = longshore::init()?;
    rank.world().barrier()?;
    if work == "memory" {
        let most = memory(&rank)?;
        if rank.world().rank() == 0 {
            println!("{most}");
        }
    }
    Ok(rank.finalize()?)
}

/// The memory (Pss) of the largest rank in kB. Pss contains the process's share of shared pages.
/// Collective.
///
/// # Errors
/// An error of the communication, or a system that doesn't report memory.
pub fn memory(rank: &Rank) -> Result<f64, Failure> {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup")?;
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:")).ok_or("no Pss line")?;
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse()?;
    let all = rank.world().allgather(&[kilobytes])?;
    Ok(all.into_iter().fold(0.0, f64::max))
}
