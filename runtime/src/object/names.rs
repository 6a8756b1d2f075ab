//! What stands for a rank in its types and keyvals: the names that it gives to forms, and who is told of types that are freed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::Holder;

/// What is told of types that are freed; see [`Rank::type_free_handler`](crate::Rank::type_free_handler).
pub(crate) type FreeHandler = Arc<dyn Fn(&Holder<'_>) + Send + Sync>;

/// The names that a rank gives to forms, and those that have gone out of use. It stands for the rank: types and keyvals that
/// have another one are another rank's.
#[derive(Default)]
pub(crate) struct Names {
    last: AtomicU64,
    retired: Mutex<Vec<u64>>,
    retirements: AtomicU64,
    free_handlers: Mutex<Vec<FreeHandler>>,
}

impl Names {
    /// A name that none had before. Numbers increase and are never used again.
    pub(crate) fn next(&self) -> u64 {
        self.last.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// A name goes out of use.
    pub(crate) fn retire(&self, id: u64) {
        self.retired.lock().unwrap_or_else(PoisonError::into_inner).push(id);
        self.retirements.fetch_add(1, Ordering::Release);
    }

    /// How many names have gone out of use so far: costs nothing to look at.
    pub(crate) fn retirements(&self) -> u64 {
        self.retirements.load(Ordering::Acquire)
    }

    /// The names that went out of use since the last call.
    pub(crate) fn take_retired(&self) -> Vec<u64> {
        std::mem::take(&mut self.retired.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn add_free_handler(&self, handler: FreeHandler) {
        self.free_handlers.lock().unwrap_or_else(PoisonError::into_inner).push(handler);
    }

    /// Nobody is told any more.
    pub(crate) fn forget_free_handlers(&self) {
        let mut handlers = self.free_handlers.lock().unwrap_or_else(PoisonError::into_inner);
        let forgotten = std::mem::take(&mut *handlers);
        // What they hold may call in when it goes.
        drop(handlers);
        drop(forgotten);
    }

    /// Tells all free handlers of a type that is about to be freed, in the order in which they were registered.
    pub(crate) fn tell_free_handlers(&self, holder: &Holder<'_>) {
        // A copy: a handler may register another.
        let handlers = self.free_handlers.lock().unwrap_or_else(PoisonError::into_inner).clone();
        handlers.iter().for_each(|handler| handler(holder));
    }
}
