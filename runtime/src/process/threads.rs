//! The threads of a rank that make calls, as `--check` counts them: of a rank with several, one
//! thread may end the call for which another one waits.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ThreadId};

use super::Process;
use crate::pool;

/// The knowledge about the threads that make calls.
pub(super) struct Threads {
    /// The thread that joined the job.
    first: ThreadId,
    /// Whether the program has promised that one thread at a time makes calls.
    promised: AtomicBool,
    /// Whether another thread than the first has made a call.
    several: AtomicBool,
}

impl Threads {
    pub(super) fn new() -> Threads {
        let (promised, several) = (AtomicBool::new(false), AtomicBool::new(false));
        Threads { first: thread::current().id(), promised, several }
    }
}

impl Process {
    /// The program promises that one thread at a time makes calls, so that no thread ends the call
    /// of another one (MPI-5.0 section 11.2.1, a level below MPI_THREAD_MULTIPLE).
    pub(crate) fn promise_one_thread(&self, promised: bool) {
        self.threads.promised.store(promised, Ordering::Relaxed);
    }

    /// Under `--check`, notes the thread of a call. The ranks of this host learn of the second one.
    pub(crate) fn note_thread(&self) {
        let threads = &self.threads;
        let is_another = thread::current().id() != threads.first;
        if is_another && !threads.promised.load(Ordering::Relaxed) {
            threads.several.store(true, Ordering::Relaxed);
            self.segment.note_threads();
        }
    }

    /// Whether another thread may end a call of this rank: one that makes calls, or one that may
    /// begin to.
    pub(crate) fn may_have_threads(&self) -> bool {
        let threads = &self.threads;
        let several = threads.several.load(Ordering::Relaxed);
        several || !threads.promised.load(Ordering::Relaxed) && self.has_more_threads()
    }

    /// Whether the process may have threads beside the first and this library's. Those of a
    /// simulation and of the network can't be told from the program's.
    fn has_more_threads(&self) -> bool {
        if !self.identity.whole || !self.identity.hosts.is_one() {
            return true;
        }
        let own = 1 + usize::from(self.server().is_some()) + pool::made();
        std::fs::read_dir("/proc/self/task").map_or(true, |threads| threads.count() > own)
    }
}
