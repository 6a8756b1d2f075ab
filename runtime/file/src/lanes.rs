//! The threads that carry out accesses with requests.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, unbounded};

/// The most threads of a file. Each waits for the system most of the time, so they are more than
/// idle cores, but few, since a device is no faster with many.
const THREADS: usize = 4;

type Job = Box<dyn FnOnce() + Send>;

/// An access that is under way.
pub(crate) struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Threads that are started when they are first needed, and end with the file.
pub(crate) struct Lanes {
    jobs: Sender<Job>,
    queue: Receiver<Job>,
    /// The number of accesses that are queued or under way.
    open: Arc<AtomicUsize>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Lanes {
    pub fn new() -> Lanes {
        let (jobs, queue) = unbounded();
        Lanes { jobs, queue, open: Arc::default(), threads: Mutex::default() }
    }

    /// The number of accesses that are under way.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Acquire)
    }

    /// An access is under way until the value is dropped.
    pub fn begin(&self) -> Open {
        self.open.fetch_add(1, Ordering::AcqRel);
        Open(self.open.clone())
    }

    /// Runs a job on one of the threads. Jobs begin in the order of these calls.
    pub fn run(&self, job: impl FnOnce() + Send + 'static) {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        if threads.len() < THREADS && self.open() > threads.len() {
            let queue = self.queue.clone();
            let started = std::thread::Builder::new()
                .name("longshore-file".to_owned())
                .spawn(move || queue.iter().for_each(|job| job()));
            threads.extend(started);
        }
        let none = threads.is_empty();
        drop(threads);
        // The receiver exists as long as this value. Without a thread the caller does the job.
        if none { job() } else { drop(self.jobs.send(Box::new(job))) }
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        // The threads end when the queue has no sender any more.
        self.jobs = unbounded().0;
        let threads = self.threads.get_mut().unwrap_or_else(PoisonError::into_inner);
        for thread in threads.drain(..) {
            // A job that panicked has completed its request with an error.
            drop(thread.join());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_jobs_are_done_before_the_threads_end() {
        let done = Arc::new(AtomicUsize::new(0));
        let lanes = Lanes::new();
        for _ in 0..100 {
            let (done, open) = (done.clone(), lanes.begin());
            lanes.run(move || {
                let _open = open;
                std::thread::yield_now();
                done.fetch_add(1, Ordering::Relaxed);
            });
        }
        drop(lanes);
        assert_eq!(done.load(Ordering::Relaxed), 100);
    }
}
