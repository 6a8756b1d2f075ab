//! Parts of the segment, and the errors of what is done with them.

use std::fmt;

use thiserror::Error;

use super::MemoryLimit;

/// A part of the segment: its position, from which a peer can map it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Range {
    /// Where the range begins: a multiple of [`GRANULE`](crate::segment::GRANULE), unless it is a
    /// [piece](crate::segment::Segment::allocate_piece).
    pub offset: u64,
    /// The length in bytes: a multiple of [`GRANULE`](crate::segment::GRANULE), unless it is a
    /// piece.
    pub len: u64,
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{:#x}, {:#x})", self.offset, self.offset.saturating_add(self.len))
    }
}

/// An error of the segment or of its allocator.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SegmentError {
    /// A system call failed.
    #[error("{call}: {}", std::io::Error::from_raw_os_error(*.errno))]
    System {
        /// The system call.
        call: &'static str,
        /// The error number.
        errno: i32,
    },
    /// The object isn't a segment of this version, or no segment can have the requested geometry.
    #[error("invalid segment: {0}")]
    Geometry(String),
    /// The range isn't in the segment, or is too long to map in this process.
    #[error("range {0} can't be mapped")]
    Unmappable(Range),
    /// No rank has allocated the range.
    #[error("range {0} isn't allocated")]
    NotAllocated(Range),
    /// The process can't map a range.
    #[error("{bytes} bytes of shared memory can't be mapped: {limit}")]
    NoMemory {
        /// The length of the range.
        bytes: u64,
        /// The limit that the process has reached.
        limit: MemoryLimit,
    },
    /// There is no room for a range.
    #[error("no room for {bytes} bytes of shared memory: the longest free range has {room} bytes")]
    Exhausted {
        /// The requested length.
        bytes: u64,
        /// The longest range that has room.
        room: u64,
    },
    /// The maximum number of ranges is allocated.
    #[error("{0} ranges of shared memory are in use, which is the maximum: free a window")]
    TooMany(u32),
    /// The job has no such rank.
    #[error("no rank {0} in a job of {1}")]
    NoSuchRank(u32, u32),
    /// The launcher's handle was used where only a rank's handle works.
    #[error("not a rank's handle: the launcher's handle can't allocate ranges")]
    NotARank,
}
