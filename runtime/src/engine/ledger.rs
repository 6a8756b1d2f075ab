//! The account of a window's operations: how many each target has done, and what failed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::error::Error;

/// Failures that are kept until the call that returns the first; there can be as many as operations.
const KEPT: usize = 16;

/// Between the window, which counts what it issues, and the engine, which counts what is done.
pub(crate) struct Ledger {
    issued: Box<[AtomicU64]>,
    acknowledged: Box<[AtomicU64]>,
    failed: AtomicBool,
    failures: Mutex<Vec<Error>>,
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

    /// The first target that hasn't done all.
    pub(crate) fn laggard(&self) -> Option<u32> {
        (0..self.issued.len() as u32).find(|&target| self.outstanding(target) > 0)
    }

    /// How many operations on a target are done.
    fn acknowledged(&self, target: u32) -> u64 {
        // Pairs with the release in `acknowledge`: the target's memory, and this rank's for a get, are as they will be.
        self.acknowledged[target as usize].load(Ordering::Acquire)
    }

    /// So many more are done.
    pub(super) fn acknowledge(&self, target: u32, count: u64) {
        let word = &self.acknowledged[target as usize];
        // One writer: the engine, under its lock.
        word.store(word.load(Ordering::Relaxed).saturating_add(count), Ordering::Release);
    }

    /// All that was or will be issued to a target that is gone counts as done.
    pub(super) fn release(&self, target: u32) {
        self.acknowledged[target as usize].store(u64::MAX, Ordering::Release);
    }

    /// A target is gone: what it had not done has failed.
    pub(super) fn target_gone(&self, target: u32, error: impl FnOnce() -> Error) {
        if self.outstanding(target) > 0 {
            self.fail(error());
        }
        self.release(target);
    }

    /// An operation failed.
    pub(crate) fn fail(&self, error: Error) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.len() < KEPT {
            failures.push(error);
        }
        self.failed.store(true, Ordering::Release);
    }

    /// The first failure since the last call; the others are forgotten.
    pub(crate) fn take_failure(&self) -> Option<Error> {
        if !self.failed.load(Ordering::Acquire) {
            return None;
        }
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        self.failed.store(false, Ordering::Relaxed);
        std::mem::take(&mut *failures).into_iter().next()
    }
}
