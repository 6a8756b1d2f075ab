//! RMA and datatype benches.

pub mod case;
pub mod datatypes;
pub mod environment;
#[cfg(feature = "fabric")]
mod fabric;
pub mod kernels;
pub mod launch;
pub mod limits;
pub mod loops;
pub mod pattern;
pub mod peers;
pub mod plan;
pub mod progress;
pub mod report;
pub mod rma;
pub mod row;
pub mod run;
pub mod scratch;
pub mod types;

/// Whatever makes a measurement impossible, in words.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Keeps this thread, and what it starts, on the core of that number where the machine has it.
pub fn pin(core: usize) {
    use nix::sched::{CpuSet, sched_setaffinity};
    let mut cores = CpuSet::new();
    if cores.set(core).is_ok() {
        // A core that isn't ours leaves the thread where it was: slower, no more.
        let _ = sched_setaffinity(nix::unistd::Pid::from_raw(0), &cores);
    }
}
