//! Schedules: the steps of collective calls with requests, which later calls of the rank advance.
//!
//! A schedule is a future. It returns where it would wait for a message, and is polled again when
//! frames may have arrived. That happens in every call that waits or tests, on the thread of that
//! call and without a lock of the engine, since a step may run an operation of the program.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::{Context, Poll, Waker};

use smallvec::SmallVec;

use super::Process;
use crate::error::Result;

/// The schedules of a rank that haven't ended.
#[derive(Default)]
pub(super) struct Schedules {
    /// Their number, readable without the lock.
    active: AtomicUsize,
    list: Mutex<Vec<Arc<Schedule>>>,
    /// The number of threads that are about to sleep and advance them.
    arming: AtomicU32,
}

/// The steps of one call.
pub(crate) struct Schedule {
    /// `None` once they have ended.
    steps: Mutex<Option<Steps>>,
    outcome: Mutex<Option<Result<()>>>,
    has_ended: AtomicBool,
}

/// The outcome of a look at the steps of a schedule.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Advance {
    Waits,
    /// Another thread runs them.
    Elsewhere,
    Ended,
}

type Steps = Pin<Box<dyn Future<Output = Result<()>> + Send>>;

impl Schedule {
    /// Whether the call is complete, with success or with an error.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }

    /// Takes the outcome of the call, once.
    pub(crate) fn take_outcome(&self) -> Result<()> {
        lock(&self.outcome).take().unwrap_or(Ok(()))
    }

    /// Runs the steps that can run now. If another thread runs them, or this thread does so further
    /// up, returns at once.
    fn advance(&self) -> Advance {
        let mut steps = match self.steps.try_lock() {
            Ok(steps) => steps,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Advance::Elsewhere,
        };
        let Some(running) = &mut *steps else { return Advance::Waits };
        let Poll::Ready(outcome) = running.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        else {
            return Advance::Waits;
        };
        // The steps hold the memory of the call, which its owner gets back.
        *steps = None;
        *lock(&self.outcome) = Some(outcome);
        self.has_ended.store(true, Ordering::Release);
        Advance::Ended
    }
}

impl Process {
    /// Runs the first steps of a call, and keeps the others for later calls.
    pub(crate) fn schedule(
        &self,
        steps: impl Future<Output = Result<()>> + Send + 'static,
    ) -> Arc<Schedule> {
        let schedule = Arc::new(Schedule {
            steps: Mutex::new(Some(Box::pin(steps))),
            outcome: Mutex::default(),
            has_ended: AtomicBool::new(false),
        });
        if schedule.advance() != Advance::Ended {
            let mut list = lock(&self.books.schedules.list);
            list.push(schedule.clone());
            self.books.schedules.active.store(list.len(), Ordering::Relaxed);
        }
        schedule
    }

    /// Runs the steps of all schedules that can run now. Returns whether a schedule has ended. The
    /// engine isn't locked.
    #[inline]
    pub(crate) fn advance(&self) -> bool {
        self.has_schedules() && self.advance_all() == Some(Advance::Ended)
    }

    /// Whether a schedule hasn't ended.
    #[inline]
    pub(super) fn has_schedules(&self) -> bool {
        self.books.schedules.active.load(Ordering::Relaxed) > 0
    }

    /// Runs the steps that can run now, for a thread that is about to sleep. Steps that wait for a
    /// count of another rank arm it, so that the rank rings. Returns whether a schedule has ended,
    /// or another thread runs one, which may arm nothing.
    pub(super) fn advance_arming(&self) -> bool {
        if !self.has_schedules() {
            return false;
        }
        let arming = &self.books.schedules.arming;
        arming.fetch_add(1, Ordering::Relaxed);
        let outcome = self.advance_all();
        arming.fetch_sub(1, Ordering::Relaxed);
        matches!(outcome, Some(Advance::Ended | Advance::Elsewhere))
    }

    /// Whether the steps of schedules arm the counts for which they wait.
    pub(crate) fn is_arming(&self) -> bool {
        self.books.schedules.arming.load(Ordering::Relaxed) > 0
    }

    /// The outcome that concerns the caller most; `None` without schedules.
    #[inline(never)]
    fn advance_all(&self) -> Option<Advance> {
        // The steps of one may start another.
        let schedules: SmallVec<[_; 4]> =
            lock(&self.books.schedules.list).iter().cloned().collect();
        let outcome = schedules.iter().map(|schedule| schedule.advance()).max();
        if outcome == Some(Advance::Ended) {
            let mut list = lock(&self.books.schedules.list);
            list.retain(|schedule| !schedule.has_ended());
            self.books.schedules.active.store(list.len(), Ordering::Relaxed);
        }
        outcome
    }

    /// Drops the steps that no call will advance any more. They refer to this process.
    pub(super) fn drop_schedules(&self) {
        self.books.schedules.active.store(0, Ordering::Relaxed);
        drop(std::mem::take(&mut *lock(&self.books.schedules.list)));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
