//! The identity of a rank in its types and keyvals, the ids that it gives to forms, what it has
//! dropped, and its free handlers.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use crossbeam_utils::CachePadded;
use portable_atomic::AtomicU64;

use super::Holder;
use crate::dropped::DroppedQueue;

/// A handler that is called when a type is freed; see
/// [`Rank::type_free_handler`](crate::Rank::type_free_handler).
pub(crate) type FreeHandler = Arc<dyn Fn(&Holder<'_>) + Send + Sync>;

/// The ids of a rank's forms, and the queue of what its threads have dropped. The value also
/// identifies the rank: types and keyvals with another one belong to another rank.
pub(crate) struct Names {
    last: CachePadded<AtomicU64>,
    dropped: DroppedQueue,
    free_handlers: Mutex<Vec<FreeHandler>>,
}

/// The ranks of this process that have had names.
static RANKS: AtomicU64 = AtomicU64::new(0);

impl Default for Names {
    /// The ids of each rank of a process have their own range, so that a number alone tells whose
    /// it is: no rank has 2^40 forms.
    fn default() -> Names {
        let first = RANKS.fetch_add(1, Ordering::Relaxed) << 40;
        Names {
            last: CachePadded::new(AtomicU64::new(first)),
            dropped: DroppedQueue::default(),
            free_handlers: Mutex::default(),
        }
    }
}

impl Names {
    /// A new id. Ids increase, are never reused, and no other rank of this process has them.
    pub(crate) fn next(&self) -> u64 {
        self.last.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// What the rank's threads have dropped and its engine still holds.
    #[inline]
    pub(crate) fn dropped(&self) -> &DroppedQueue {
        &self.dropped
    }

    pub(crate) fn add_free_handler(&self, handler: FreeHandler) {
        self.free_handlers.lock().unwrap_or_else(PoisonError::into_inner).push(handler);
    }

    /// Drops all free handlers.
    pub(crate) fn forget_free_handlers(&self) {
        let mut handlers = self.free_handlers.lock().unwrap_or_else(PoisonError::into_inner);
        let forgotten = std::mem::take(&mut *handlers);
        // Dropped after the lock is released: a handler's captured values may call in.
        drop(handlers);
        drop(forgotten);
    }

    /// Calls all free handlers for a type that is about to be freed, in the order of their
    /// registration.
    pub(crate) fn tell_free_handlers(&self, holder: &Holder<'_>) {
        // Clones the list, because a handler may register another one.
        let handlers = self.free_handlers.lock().unwrap_or_else(PoisonError::into_inner).clone();
        handlers.iter().for_each(|handler| handler(holder));
    }
}
