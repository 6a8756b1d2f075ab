//! Locking, where a panic ends the process.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex. A panic ends the process, so no mutex stays poisoned for long.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
