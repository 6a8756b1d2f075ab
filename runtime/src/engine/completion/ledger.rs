//! A window's completion counters: the operations issued to each target, those acknowledged by it,
//! and the failures.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use portable_atomic::AtomicU64;

use crate::error::Error;

/// The count of a target to which no call waits any more: all operations, past and future, count as
/// done.
const RELEASED: u64 = u64::MAX;

/// The completion counters of a window. The window counts the operations that it issues, the engine
/// those that are done.
pub(crate) struct Ledger {
    issued: Box<[AtomicU64]>,
    acknowledged: Box<[AtomicU64]>,
    failed: AtomicBool,
    /// The first failure on each target that is not taken yet. Later ones are dropped: each
    /// operation may fail.
    failures: Mutex<Vec<(u32, Error)>>,
}

impl Ledger {
    pub(crate) fn new(size: u32) -> Ledger {
        let zeros = || (0..size).map(|_| AtomicU64::new(0)).collect();
        Ledger {
            issued: zeros(),
            acknowledged: zeros(),
            failed: AtomicBool::new(false),
            failures: Mutex::default(),
        }
    }

    /// Counts one more operation on a target. Returns the operation's number.
    pub(crate) fn issue(&self, target: u32) -> u64 {
        // The window is the only writer, and one thread at a time uses it.
        let word = &self.issued[target as usize];
        let number = word.load(Ordering::Relaxed) + 1;
        word.store(number, Ordering::Relaxed);
        number
    }

    /// The number of operations that were issued to a target.
    pub(crate) fn issued(&self, target: u32) -> u64 {
        self.issued[target as usize].load(Ordering::Relaxed)
    }

    /// The number of operations on a target that aren't done.
    #[inline]
    pub(crate) fn outstanding(&self, target: u32) -> u64 {
        let issued = self.issued[target as usize].load(Ordering::Relaxed);
        issued.saturating_sub(self.acknowledged(target))
    }

    /// Whether all operations on all targets are done.
    #[inline]
    pub(crate) fn is_settled(&self) -> bool {
        (0..self.issued.len() as u32).all(|target| self.outstanding(target) == 0)
    }

    /// The first target, from `from` on, with an operation that isn't done.
    #[inline]
    pub(crate) fn laggard(&self, from: u32) -> Option<u32> {
        (from..self.issued.len() as u32).find(|&target| self.outstanding(target) > 0)
    }

    /// The number of operations on a target that are done.
    fn acknowledged(&self, target: u32) -> u64 {
        // Pairs with the release in `acknowledge`: all bytes that these operations write, at the
        // target or at this rank, are written.
        self.acknowledged[target as usize].load(Ordering::Acquire)
    }

    /// Counts `count` more operations on a target as done.
    ///
    /// # Errors
    /// Fewer were under way.
    pub(in crate::engine) fn acknowledge(&self, target: u32, count: u64) -> Result<(), String> {
        let word = &self.acknowledged[target as usize];
        // The engine is the only writer, under its lock. Operations are issued under that lock too.
        let before = word.load(Ordering::Relaxed);
        if before == RELEASED {
            return Ok(());
        }
        let outstanding = self.outstanding(target);
        if count > outstanding {
            return Err(format!(
                "{count} operations acknowledged, where {outstanding} were under way"
            ));
        }
        word.store(before + count, Ordering::Release);
        Ok(())
    }

    /// Counts all operations on a target as done, those issued later included: it will acknowledge
    /// none.
    pub(in crate::engine) fn release(&self, target: u32) {
        self.acknowledged[target as usize].store(RELEASED, Ordering::Release);
    }

    /// A target is gone: its operations that aren't done have failed.
    pub(in crate::engine) fn target_gone(&self, target: u32, error: impl FnOnce() -> Error) {
        if self.outstanding(target) > 0 {
            self.fail(target, error());
        }
        self.release(target);
    }

    /// Notes that an operation on a target failed.
    pub(crate) fn fail(&self, target: u32, error: Error) {
        let mut failures = self.failures();
        if !failures.iter().any(|(of, _)| *of == target) {
            failures.push((target, error));
        }
        self.failed.store(true, Ordering::Release);
    }

    /// Whether any operation failed whose failure hasn't been taken.
    #[inline]
    pub(crate) fn has_failure(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Takes the first failure on a target, or on any target if `target` is `None`. The later ones
    /// are dropped.
    #[inline]
    pub(crate) fn take_failure(&self, target: Option<u32>) -> Option<Error> {
        if self.has_failure() { self.first_failure(target) } else { None }
    }

    /// Hands out each failure that isn't taken yet.
    pub(crate) fn each_failure(&self, change: impl Fn(&mut Error)) {
        self.failures().iter_mut().for_each(|(_, error)| change(error));
    }

    #[cold]
    fn first_failure(&self, target: Option<u32>) -> Option<Error> {
        let mut failures = self.failures();
        let first =
            failures.iter().position(|(of, _)| target.is_none_or(|target| target == *of))?;
        let (_, failure) = failures.remove(first);
        if target.is_none() {
            failures.clear();
        }
        self.failed.store(!failures.is_empty(), Ordering::Relaxed);
        Some(failure)
    }

    fn failures(&self) -> MutexGuard<'_, Vec<(u32, Error)>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
