//! What a window has under way at its origin side: the account of its operations, and what the engine may still hold of them.

use std::cell::Cell;
use std::sync::Arc;

use crate::engine::Ledger;

/// Operations on one target that may be under way; the next one waits, and makes progress meanwhile.
const OUTSTANDING: u64 = 256;

/// Operations that were handed to the engine.
pub(super) struct Flight {
    pub ledger: Arc<Ledger>,
    /// Whether the engine was handed any since it last had none.
    shipped: Cell<bool>,
    /// Whether the engine may hold memory, or whom to tell, of one of them.
    lent: Cell<bool>,
}

impl Flight {
    pub(super) fn new(ledger: Arc<Ledger>) -> Flight {
        Flight { ledger, shipped: Cell::new(false), lent: Cell::new(false) }
    }

    /// Whether one more operation on a process may be under way.
    #[inline]
    pub(super) fn has_room(&self, peer: u32) -> bool {
        self.ledger.outstanding(peer) < OUTSTANDING
    }

    /// The engine has an operation, and nothing of its memory.
    #[inline]
    pub(super) fn ship(&self) {
        self.shipped.set(true);
    }

    /// The engine has an operation, and its memory or whom to tell.
    #[inline]
    pub(super) fn lend(&self) {
        self.lent.set(true);
        self.ship();
    }

    /// Whether the engine may have any operation.
    #[inline]
    pub(super) fn is_shipped(&self) -> bool {
        self.shipped.get()
    }

    /// Whether the engine may have anything of one but its number.
    #[inline]
    pub(super) fn is_lent(&self) -> bool {
        self.lent.get()
    }

    /// The engine has been found to have nothing of any but its number.
    pub(super) fn give_back(&self) {
        self.lent.set(false);
    }

    /// No operation is under way; `unconfirmed` says whether there is still one to be confirmed.
    pub(super) fn land(&self, unconfirmed: bool) {
        self.give_back();
        self.shipped.set(unconfirmed);
    }
}
