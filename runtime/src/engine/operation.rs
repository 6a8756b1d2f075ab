//! The name of an operation of this rank on a window.

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
