//! What a rank has read of its notification counters.

use std::cell::Cell;

/// What a rank has read of its counters.
pub(super) struct Readings(Box<[Reading]>);

/// What a rank has read of one counter.
#[derive(Clone, Default)]
pub(super) struct Reading {
    /// The count that was read last. It never falls.
    pub last: Cell<u64>,
    /// The count at the last reset.
    pub reset: Cell<u64>,
}

impl Readings {
    /// Of counters that were never raised.
    pub(super) fn new(number: u16) -> Readings {
        Readings(vec![Reading::default(); number.into()].into())
    }

    /// Of the counter with this index.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    pub(super) fn of(&self, index: u16) -> &Reading {
        &self.0[usize::from(index)]
    }
}
