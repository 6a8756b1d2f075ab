//! The error of an access outside of a view's memory.

/// Displacements that a view's memory doesn't have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "displacements {reach_start}..{reach_end} reach outside of the memory's {memory_start}..{memory_end}"
)]
pub struct OutOfBounds {
    /// The first displacement asked for.
    pub reach_start: i64,
    /// The end of the displacements asked for.
    pub reach_end: i64,
    /// The memory's first displacement.
    pub memory_start: i64,
    /// The end of the memory's displacements.
    pub memory_end: i64,
}
