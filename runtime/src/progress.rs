//! The progress thread: it answers peers while the program computes (MPI-5.0 section 12.7.3).
//!
//! It begins with the first window that some peer reaches by messages, and is off by `longshore run --progress off` or the
//! environment variable `LONGSHORE_PROGRESS=0`. It sleeps on the rank's doorbell and takes no processor time while nothing
//! comes. Calls that wait make progress themselves, and it steps aside for them; direct operations need neither.

use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

use longshore_transport::signals;

use crate::process::Process;
use crate::waiter::Waiter;

/// Starts a rank's progress thread. It ends with the rank.
pub(crate) fn start(
    process: &Arc<Process>,
    waiter: Arc<Waiter>,
) -> std::io::Result<JoinHandle<()>> {
    let process = Arc::downgrade(process);
    let name = "longshore-progress".to_owned();
    let builder = std::thread::Builder::new().name(name).stack_size(256 << 10);
    signals::blocked(|| builder.spawn(move || serve(&process, &waiter)))
}

fn serve(process: &Weak<Process>, waiter: &Waiter) {
    let is_over = || process.upgrade().is_none_or(|process| process.is_over());
    while !is_over() {
        // Nothing is held in its sleep that would keep the rank.
        let progress =
            || process.upgrade().is_none_or(|process| process.is_over() || process.serve());
        waiter.doze(|| progress().then_some(()));
    }
}
