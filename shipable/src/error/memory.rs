//! The error of an access outside a view's memory.

/// A range of displacements that isn't inside a view's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "displacements {reach_start}..{reach_end} reach outside of the memory's {memory_start}..{memory_end}"
)]
pub struct OutOfBounds {
    /// The first displacement of the access.
    pub reach_start: i64,
    /// The end of the access, exclusive.
    pub reach_end: i64,
    /// The memory's first displacement.
    pub memory_start: i64,
    /// The end of the memory's displacements, exclusive.
    pub memory_end: i64,
}
