//! The account of a window's operations: how many each target has done, and what failed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::Error;

/// So many are done of a target of which nobody waits for anything any more.
const RELEASED: u64 = u64::MAX;

/// Between the window, which counts what it issues, and the engine, which counts what is done.
pub(crate) struct Ledger {
    issued: Box<[AtomicU64]>,
    acknowledged: Box<[AtomicU64]>,
    failed: AtomicBool,
    /// The first failure on each target, until it is taken: there can be as many as operations.
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

    /// Counts one more operation on a target, and gives its number.
    pub(crate) fn issue(&self, target: u32) -> u64 {
        // One writer: the window, which one thread at a time uses.
        let word = &self.issued[target as usize];
        let number = word.load(Ordering::Relaxed) + 1;
        word.store(number, Ordering::Relaxed);
        number
    }

    /// How many operations on a target were issued.
    pub(crate) fn issued(&self, target: u32) -> u64 {
        self.issued[target as usize].load(Ordering::Relaxed)
    }

    /// How many operations on a target aren't done.
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

    /// The first target from this one on that hasn't done all.
    #[inline]
    pub(crate) fn laggard(&self, from: u32) -> Option<u32> {
        (from..self.issued.len() as u32).find(|&target| self.outstanding(target) > 0)
    }

    /// How many operations on a target are done.
    fn acknowledged(&self, target: u32) -> u64 {
        // Pairs with the release in `acknowledge`: the target's memory, and this rank's for a get, are as they will be.
        self.acknowledged[target as usize].load(Ordering::Acquire)
    }

    /// So many more are done; an error if that is more than were issued.
    pub(super) fn acknowledge(&self, target: u32, count: u64) -> Result<(), String> {
        let word = &self.acknowledged[target as usize];
        // One writer: the engine, under its lock. What is issued is counted under it too.
        let before = word.load(Ordering::Relaxed);
        if before == RELEASED {
            return Ok(());
        }
        let outstanding = self.outstanding(target);
        if count > outstanding {
            return Err(format!("{count} operations done, where {outstanding} were under way"));
        }
        word.store(before + count, Ordering::Release);
        Ok(())
    }

    /// All that was or will be issued to a target that is gone counts as done.
    pub(super) fn release(&self, target: u32) {
        self.acknowledged[target as usize].store(RELEASED, Ordering::Release);
    }

    /// A target is gone: what it had not done has failed.
    pub(super) fn target_gone(&self, target: u32, error: impl FnOnce() -> Error) {
        if self.outstanding(target) > 0 {
            self.fail(target, error());
        }
        self.release(target);
    }

    /// An operation on a target failed.
    pub(crate) fn fail(&self, target: u32, error: Error) {
        let mut failures = self.failures();
        if !failures.iter().any(|(of, _)| *of == target) {
            failures.push((target, error));
        }
        self.failed.store(true, Ordering::Release);
    }

    /// The first failure on a target, or on any, since it was last asked for; later ones are forgotten with it.
    #[inline]
    pub(crate) fn take_failure(&self, target: Option<u32>) -> Option<Error> {
        if self.failed.load(Ordering::Acquire) { self.first_failure(target) } else { None }
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
