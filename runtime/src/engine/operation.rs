//! The names of operations on windows: of those of this rank, and of those of peers that notify it.

use crate::wire::Header;

/// In the tag of a put or accumulate: its origin waits for this operation by itself, so the target
/// answers it by its number and doesn't only count it.
pub(crate) const BY_NUMBER: u8 = 0x80;

/// An operation under way, by target, window and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Operation {
    pub target: u32,
    pub window: u32,
    pub number: u64,
}

/// A notification that is due when an operation is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    pub window: u32,
    pub counter: u16,
    /// The origin, and its number of the operation.
    pub origin: u32,
    pub number: u64,
}

impl Due {
    /// The notification that a peer's operation asks for, if it does.
    #[inline]
    pub(super) fn of(peer: u32, header: &Header) -> Option<Due> {
        let counter = header.notify?;
        Some(Due { window: header.context, counter, origin: peer, number: header.operation })
    }
}
