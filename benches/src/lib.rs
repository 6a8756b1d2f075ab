//! RMA and datatype benches.

pub mod case;
pub mod catalog;
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

use std::sync::OnceLock;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// Whatever makes a measurement impossible, in words.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Keeps this thread, and what it starts, on one of the cores that this process may use, by its place among them.
pub fn pin(place: usize) {
    let mut set = CpuSet::new();
    if cores().get(place).is_some_and(|&core| set.set(core).is_ok()) {
        // A core that is taken away meanwhile leaves the thread where it was: slower, no more.
        let _ = sched_setaffinity(Pid::from_raw(0), &set);
    }
}

/// The cores that this process may use: those of the thread that asks first, which isn't pinned yet.
fn cores() -> &'static [usize] {
    static CORES: OnceLock<Vec<usize>> = OnceLock::new();
    CORES.get_or_init(|| {
        let set = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
        (0..CpuSet::count()).filter(|&core| set.is_set(core) == Ok(true)).collect()
    })
}
