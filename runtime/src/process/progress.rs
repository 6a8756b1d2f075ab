//! The progress thread: it answers peers while the program computes (MPI-5.0 section 12.7.3).
//!
//! It begins with the first window that some peer reaches by messages, and is off by `longshore run --progress off` or the
//! environment variable `LONGSHORE_PROGRESS=0`. It sleeps on the rank's doorbell and takes no processor time while nothing
//! comes. Calls that wait make progress themselves, and it steps aside for them; direct operations need neither.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

use longshore_transport::signals;

use super::Process;
use crate::error::Result;
use crate::job;
use crate::waiter::Waiter;

impl Process {
    /// Peers reach a window of this rank by messages: starts the progress thread, unless there is one, or is to be none.
    pub(crate) fn answer_peers(self: &Arc<Process>) -> Result<()> {
        if !self.progress {
            self.unserved.store(true, Ordering::Relaxed);
            return Ok(());
        }
        let mut server = self.server();
        if server.is_none() {
            self.waiter.serve();
            let thread = start(self, self.waiter.clone());
            *server = Some(thread.map_err(job::Error::Thread)?);
        }
        Ok(())
    }
}

/// Starts a rank's progress thread. It ends with the rank.
fn start(process: &Arc<Process>, waiter: Arc<Waiter>) -> std::io::Result<JoinHandle<()>> {
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
