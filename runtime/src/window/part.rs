//! The position of a rank's memory in the segment of its host.
//!
//! Cache lines whose addresses differ by a power of two compete for few places in a cache. Mappings
//! and allocations begin at page boundaries. So equal columns of two arrays would evict each other.
//! Large memory therefore begins at an odd number of lines into its first page, and neighbouring
//! ranks have different numbers.

use longshore_transport::{GRANULE, Range, Segment, SegmentError};

use super::info::Alignment;
use crate::memory::Exposed;

/// The bytes of a cache line on most processors.
pub(super) const LINE: u64 = 64;

/// The number of different offsets, all within a page.
const LEADS: u64 = 32;

/// The shortest memory with an offset: all lines of shorter memory fit into a cache.
pub(super) const LONG: u64 = 16 << 10;

/// A part of the segment that is a rank's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// The offset of its first byte in the segment.
    pub offset: u64,
    pub len: u64,
}

impl Part {
    /// Allocates memory for a rank, which begins `lead` bytes into the allocation.
    pub(super) fn allocate(segment: &Segment, len: u64, lead: u64) -> Result<Part, SegmentError> {
        let range = segment.allocate(len.saturating_add(lead)).map_err(|error| match error {
            SegmentError::Exhausted { room, .. } => {
                SegmentError::Exhausted { bytes: len, room: room.saturating_sub(lead) }
            }
            error => error,
        })?;
        Ok(Part { offset: range.offset + lead, len })
    }

    /// Moves memory to a part of its own, where related ranks access it directly, if there is room.
    /// The program doesn't notice: only the window can reach the memory until it gives it back.
    pub(super) fn enclose(
        segment: &Segment,
        exposed: Exposed,
        rank: u32,
    ) -> (Exposed, Option<Part>) {
        let len = exposed.span().len();
        if len == 0 {
            return (exposed, None);
        }
        let part = Part::allocate(segment, len, lead(len, rank, Alignment::default()));
        let Ok(part) = part else { return (exposed, None) };
        match part.map(segment) {
            Ok(room) => (exposed.moved_to(room), Some(part)),
            Err(_) => {
                // Messages reach the memory where it is.
                let _ = segment.free(part.range());
                (exposed, None)
            }
        }
    }

    /// The range that is allocated and mapped for it.
    pub(super) fn range(self) -> Range {
        let offset = self.offset - self.offset % GRANULE;
        let bytes = self.len.max(1).checked_add(self.offset - offset);
        let len = bytes.and_then(|bytes| bytes.checked_next_multiple_of(GRANULE));
        Range { offset, len: len.unwrap_or(u64::MAX) }
    }

    /// Its memory.
    pub(super) fn map(self, segment: &Segment) -> Result<Exposed, SegmentError> {
        let range = self.range();
        let mapping = segment.map(range)?;
        Ok(Exposed::allocated(mapping, self.offset - range.offset, self.len))
    }
}

/// The number of bytes into a page at which a rank's memory begins.
pub(super) fn lead(len: u64, rank: u32, alignment: Alignment) -> u64 {
    match len < LONG || u64::from(alignment.bytes()) > LINE {
        true => 0,
        false => LINE * (2 * (u64::from(rank) % LEADS) + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_memory_begins_at_different_page_offsets() {
        let any = Alignment::default();
        let leads: Vec<u64> = (0..LEADS as u32).map(|rank| lead(LONG, rank, any)).collect();
        for (rank, lead) in leads.iter().enumerate() {
            assert!(*lead < 4096 && lead / LINE % 2 == 1 && lead % LINE == 0, "{lead}");
            assert!(!leads[..rank].contains(lead), "{lead} twice");
        }
        assert_eq!(lead(LONG, LEADS as u32, any), leads[0]);
        assert_eq!(lead(LONG - 1, 3, any), 0);
    }

    #[test]
    fn a_mapped_part_has_the_allocated_length() {
        let segment = Segment::create(1).unwrap().as_rank(0).unwrap();
        for len in [0, 1, LONG, GRANULE - 64, GRANULE - 63, GRANULE, 10 * GRANULE + 7] {
            let part = Part::allocate(&segment, len, lead(len, 0, Alignment::default())).unwrap();
            let memory = part.map(&segment).unwrap();
            assert_eq!(memory.span().len(), len);
            segment.free(part.range()).unwrap();
        }
        let refused = Part::allocate(&segment, u64::MAX, 64).unwrap_err();
        let SegmentError::Exhausted { bytes: u64::MAX, room } = refused else {
            panic!("{refused}");
        };
        // The memory that the error reports as free can be allocated.
        Part::allocate(&segment, room, 64).unwrap();
    }
}
