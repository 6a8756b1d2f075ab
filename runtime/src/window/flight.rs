//! The operations of a window that are in flight: the account of them, and the memory and waiters
//! that the engine may still hold for them.

use std::cell::Cell;
use std::sync::Arc;

use crate::engine::Ledger;
use crate::error::Error;

/// Operations on one target that may be in flight. The next one waits, and makes progress
/// meanwhile.
pub(super) const OUTSTANDING: u64 = 256;

/// A burst of this many operations on a target makes a stream: another operation is expected.
const STREAM: u64 = 4;

/// How the operations on a target follow each other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// Nothing else is in flight to the target, nor did the last burst have many operations.
    /// Waiting for more would gain nothing.
    Alone,
    /// Other operations are in flight, or will be.
    Stream,
}

/// A peer to which operations began while none was in flight, and the number issued to it before.
#[derive(Clone, Copy, Default)]
struct Burst {
    peer: u32,
    issued: u64,
}

/// The targets of operations that the engine has.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Shipped {
    #[default]
    None,
    One(u32),
    Several,
}

/// The operations of a window that were handed to the engine.
pub(super) struct Flight {
    ledger: Arc<Ledger>,
    /// The targets of the operations that the engine was handed since it last had none.
    shipped: Cell<Shipped>,
    /// Whether the engine may hold the memory, or the waiter, of an operation.
    lent: Cell<bool>,
    /// The last burst to begin.
    burst: Cell<Burst>,
    /// The operations that mailboxes have taken since the last call that completes operations.
    answered: Cell<u64>,
}

impl Flight {
    pub(super) fn new(ledger: Arc<Ledger>) -> Flight {
        let (shipped, lent, burst) = (Cell::default(), Cell::new(false), Cell::default());
        Flight { ledger, shipped, lent, burst, answered: Cell::new(0) }
    }

    /// The account that the engine keeps too.
    pub(super) fn ledger(&self) -> &Arc<Ledger> {
        &self.ledger
    }

    /// The operations on a process that aren't done.
    #[inline]
    pub(super) fn outstanding(&self, peer: u32) -> u64 {
        self.ledger.outstanding(peer)
    }

    /// Whether one more operation on a process may be in flight.
    #[inline]
    pub(super) fn has_room(&self, peer: u32) -> bool {
        self.ledger.outstanding(peer) < OUTSTANDING
    }

    /// How the next operation on a process follows those before it.
    #[inline]
    pub(super) fn pace(&self, peer: u32) -> Pace {
        if self.ledger.outstanding(peer) > 0 {
            return Pace::Stream;
        }
        let last = self.burst.replace(Burst { peer, issued: self.ledger.issued(peer) });
        let burst = self.ledger.issued(last.peer).saturating_sub(last.issued);
        if burst >= STREAM { Pace::Stream } else { Pace::Alone }
    }

    /// A mailbox has taken an operation.
    #[inline]
    pub(super) fn answer(&self) {
        self.answered.set(self.answered.get() + 1);
    }

    /// Whether mailboxes have taken so many operations that a stream of frames is faster.
    #[inline]
    pub(super) fn is_burst(&self) -> bool {
        self.answered.get() >= STREAM
    }

    /// A call completes operations.
    #[inline]
    pub(super) fn end_burst(&self) {
        self.answered.set(0);
    }

    /// The engine has an operation, and nothing of its memory.
    #[inline]
    pub(super) fn ship(&self, peer: u32) {
        let one = Shipped::One(peer);
        let is_first =
            matches!(self.shipped.get(), shipped if shipped == Shipped::None || shipped == one);
        self.shipped.set(if is_first { one } else { Shipped::Several });
    }

    /// The engine has an operation, and its memory or its waiter.
    #[inline]
    pub(super) fn lend(&self, peer: u32) {
        self.lent.set(true);
        self.ship(peer);
    }

    /// Whether the engine may have any operation.
    #[inline]
    pub(super) fn is_shipped(&self) -> bool {
        self.shipped.get() != Shipped::None
    }

    /// Whether the engine has no operation, and none failed.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        !self.is_shipped() && !self.ledger.has_failure()
    }

    /// Whether the engine may have more of an operation than its number.
    #[inline]
    pub(super) fn is_lent(&self) -> bool {
        self.lent.get()
    }

    /// The engine was found to have nothing of any operation but its number.
    pub(super) fn give_back(&self) {
        self.lent.set(false);
    }

    /// No operation is in flight. `unconfirmed` tells whether one still has to be confirmed.
    pub(super) fn land(&self, unconfirmed: bool) {
        self.give_back();
        if !unconfirmed {
            self.shipped.set(Shipped::None);
        }
    }

    /// No operation on a target is in flight, so none is if the engine was handed no others.
    pub(super) fn land_at(&self, peer: u32) {
        if self.shipped.get() == Shipped::One(peer) && !self.is_lent() {
            self.shipped.set(Shipped::None);
        }
    }

    /// Gives each failure that was not taken yet its source line.
    #[cold]
    pub(super) fn locate_failures(&self, locate: impl Fn(&mut Error)) {
        self.ledger.each_failure(locate);
    }

    /// The first failure on a process, or on any, since it was last asked for.
    #[inline]
    pub(super) fn take_failure(&self, peer: Option<u32>) -> Option<Error> {
        self.ledger.take_failure(peer)
    }
}
