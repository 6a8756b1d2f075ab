//! What a rank has read of its notification counters.

use std::cell::Cell;

/// What a rank has read of each of its notification counters.
pub(super) struct Readings(Box<[Reading]>);

/// What a rank has read of one of them.
#[derive(Clone, Default)]
pub(super) struct Reading {
    /// The count that was read last. It never falls.
    pub(super) last: Cell<u64>,
    /// The count at the last reset.
    pub(super) reset: Cell<u64>,
}

impl Readings {
    /// Of counters that were never raised.
    pub(super) fn new(number: u16) -> Readings {
        Readings(vec![Reading::default(); number.into()].into())
    }

    /// That of the counter of this index.
    #[inline]
    pub(super) fn of(&self, index: u16) -> &Reading {
        &self.0[usize::from(index)]
    }
}
