//! The benches of `longshore bench`: one-sided operations, datatypes and launching, beside the
//! limits of the machine and beside MPI libraries.
//!
//! - A [`case`] describes one measurement; a [`plan`] lists the cases of a run.
//! - A [`run`] lets contenders take turns on the cases: this library, hand-written loops, the
//!   machine's limits, and MPI libraries (peers).
//! - A [`row`] holds one result; a [`report`] presents all of them.

pub mod case;
pub mod catalog;
pub mod datatypes;
pub mod environment;
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

/// The reason why a measurement is impossible.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Pins this thread, and the threads that it starts, to core number `index` of those that this
/// process may use.
pub fn pin(index: usize) {
    let mut set = CpuSet::new();
    if cores().get(index).is_some_and(|&core| set.set(core).is_ok()) {
        // If the core has been taken away meanwhile, the thread stays unpinned and only loses
        // speed.
        let _ = sched_setaffinity(Pid::from_raw(0), &set);
    }
}

/// The cores that this process may use. The first call reads them, while its thread is unpinned.
fn cores() -> &'static [usize] {
    static CORES: OnceLock<Vec<usize>> = OnceLock::new();
    CORES.get_or_init(|| {
        let set = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
        (0..CpuSet::count()).filter(|&core| set.is_set(core) == Ok(true)).collect()
    })
}
