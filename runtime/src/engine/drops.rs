//! What the rank's threads have dropped: forms whose types are gone, and requests for which no call
//! will wait.

use std::sync::Arc;

use super::State;
use crate::dropped::Dropped;
use crate::object::Names;

/// The engine's end of the queue of what is dropped.
pub(super) struct Drops {
    names: Arc<Names>,
    /// The count of the queue at the last look.
    seen: u64,
}

impl Drops {
    pub(super) fn new(names: Arc<Names>) -> Drops {
        Drops { names, seen: 0 }
    }

    /// Whether anything was dropped since the last look.
    #[inline]
    pub(super) fn are_due(&self) -> bool {
        self.names.dropped().count() != self.seen
    }
}

impl State {
    /// Ends what was dropped since the last look.
    #[cold]
    pub(super) fn end_dropped(&mut self) {
        // Read before the queue: what is handed over meanwhile is due again.
        self.drops.seen = self.drops.names.dropped().count();
        while let Some(dropped) = self.drops.names.dropped().pop() {
            match dropped {
                Dropped::Form(id) => self.operations.shipped.retire(id, &mut self.outbox),
                Dropped::Send(number) => self.forget_send(number),
                Dropped::Receive(number) => self.abandon(number),
                Dropped::Claimed(number) => self.discard_claimed(number),
            }
        }
    }
}
