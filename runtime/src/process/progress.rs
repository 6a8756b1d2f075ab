//! The progress thread, which answers peers while the program computes (MPI-5.0 section 12.7.3).
//!
//! It starts with the first window that a peer reaches by messages, or the first frame that a call
//! has to leave in the outbox. `longshore run --progress off` or the environment variable
//! `LONGSHORE_PROGRESS=0` disables it. It sleeps on the rank's doorbell, and uses no processor time
//! while no frames arrive. Waiting calls make progress themselves, and the thread steps aside for
//! them. Direct operations need neither.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

use longshore_transport::signals;

use super::{Process, UNSERVED};
use crate::bytes;
use crate::engine::Engine;
use crate::error::Result;
use crate::job;
use crate::waiter::Waiter;

impl Process {
    /// Called if peers reach a window of this rank by messages. Starts the progress thread, unless
    /// it runs already or is disabled.
    pub(crate) fn answer_peers(self: &Arc<Process>) -> Result<()> {
        if !self.serving.progress {
            self.serving.longer_ways.fetch_or(UNSERVED, Ordering::Relaxed);
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

impl Process {
    /// Called where a call ends. A frame for which the link had no room is left to the progress
    /// thread, which starts for it: the program may compute for long before its next call, and a
    /// message that it has sent has to arrive.
    #[inline]
    pub(crate) fn leave_rest(&self) {
        if self.course.stranded.load(Ordering::Relaxed) {
            self.leave_rest_to_thread();
        }
    }

    #[cold]
    fn leave_rest_to_thread(&self) {
        let stays = |engine: &mut Engine| {
            let rests = !engine.state().is_flushed();
            self.course.stranded.store(rests, Ordering::Relaxed);
            rests
        };
        if stays(&mut self.engine()) {
            // Without a thread, the next call sends it.
            let _ = self.serving.process.upgrade().map(|process| process.answer_peers());
        }
    }
}

/// Starts the progress thread of a rank. It ends with the rank.
fn start(process: &Arc<Process>, waiter: Arc<Waiter>) -> std::io::Result<JoinHandle<()>> {
    let process = Arc::downgrade(process);
    let name = "longshore-progress".to_owned();
    let builder = std::thread::Builder::new().name(name).stack_size(256 << 10);
    signals::blocked(|| builder.spawn(move || serve(&process, &waiter)))
}

fn serve(process: &Weak<Process>, waiter: &Waiter) {
    let is_over = || process.upgrade().is_none_or(|process| process.is_over());
    while !is_over() {
        // While it sleeps, the thread holds no reference that would keep the rank alive.
        let progress =
            || process.upgrade().is_none_or(|process| process.is_over() || process.serve());
        waiter.doze(|| progress().then_some(()));
        bytes::free_unused();
    }
}
