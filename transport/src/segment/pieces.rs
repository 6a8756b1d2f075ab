//! Pieces: short ranges that share pages, mappings and entries of the table with others.
//!
//! A rank allocates *chunks* of the heap, and divides each into slots of one size, a power of two.
//! A piece is a slot. Only the process that allocated a piece frees it, so which slots are taken is
//! known to that process only, and a peer can't damage it.
//!
//! Peers map the granule that has a piece. No piece begins in the last page of a granule, unless it
//! fills the page: so every mapping of a piece has at least a page.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;

use super::layout::GRANULE;
use super::{Mapping, Range, Segment, SegmentError};
use crate::mapping::LEAST;

/// The bytes of a chunk.
const CHUNK: u64 = 16 * GRANULE;

/// The shortest slot, a cache line of most processors, and the longest, as powers of two.
const SHORTEST: u32 = 6;
const LONGEST: u32 = 14;

/// The pieces of a process, by the size of their slots.
#[derive(Default)]
pub(super) struct Pieces([Class; (LONGEST - SHORTEST + 1) as usize]);

/// The chunks whose slots have one size.
#[derive(Default)]
struct Class {
    /// By their offsets.
    chunks: BTreeMap<u64, Chunk>,
    /// The offsets of the chunks with a free slot.
    open: BTreeSet<u64>,
}

struct Chunk {
    range: Range,
    mapping: Mapping,
    /// Which slots are taken, of those that ever were.
    taken: Vec<bool>,
    /// The slots that were taken and are free again.
    free: Vec<u32>,
}

impl Chunk {
    fn is_empty(&self) -> bool {
        self.free.len() == self.taken.len()
    }
}

/// The slots of a chunk.
#[derive(Clone, Copy)]
struct Slots {
    size: u64,
    in_granule: u64,
}

impl Slots {
    fn of(size: u64) -> Slots {
        let room = if size < LEAST { GRANULE - LEAST } else { GRANULE };
        Slots { size, in_granule: room / size }
    }

    /// The slots of a chunk with so many bytes.
    fn count(self, chunk: u64) -> u64 {
        chunk / GRANULE * self.in_granule
    }

    /// Where a slot begins in its chunk.
    fn start(self, slot: u64) -> u64 {
        slot / self.in_granule * GRANULE + slot % self.in_granule * self.size
    }

    /// The slot that begins there.
    fn at(self, start: u64) -> Option<u64> {
        let within = start % GRANULE;
        let slot = start / GRANULE * self.in_granule + within / self.size;
        (self.start(slot) == start).then_some(slot)
    }
}

/// Whether a range is a piece rather than whole granules.
pub(super) fn is_piece(range: Range) -> bool {
    range.len % GRANULE != 0
}

impl Segment {
    /// Allocates memory of at least `bytes` that only this process frees. Short memory shares its
    /// pages with other such memory; see [`Segment::allocate`] for long memory. It reads as zeros,
    /// and begins at a multiple of its length, if that is below a page.
    ///
    /// # Errors
    /// Those of [`Segment::allocate`] and of [`Segment::map`].
    pub fn allocate_piece(&self, bytes: u64) -> Result<Range, SegmentError> {
        if bytes > 1 << LONGEST {
            return self.allocate(bytes);
        }
        let size = bytes.max(1 << SHORTEST).next_power_of_two();
        let slots = Slots::of(size);
        let mut pieces = self.shared.pieces.lock().unwrap_or_else(PoisonError::into_inner);
        let class = &mut pieces.0[(size.trailing_zeros() - SHORTEST) as usize];
        let offset = match class.open.first() {
            Some(&offset) => offset,
            None => match self.chunk() {
                Ok(chunk) => {
                    let offset = chunk.range.offset;
                    class.open.insert(offset);
                    class.chunks.insert(offset, chunk);
                    offset
                }
                Err(SegmentError::Exhausted { room, .. }) => {
                    return Err(SegmentError::Exhausted { bytes, room });
                }
                Err(error) => return Err(error),
            },
        };
        let Some(chunk) = class.chunks.get_mut(&offset) else {
            return Err(SegmentError::NotAllocated(Range { offset, len: CHUNK }));
        };
        let slot = match chunk.free.pop() {
            Some(slot) => {
                chunk.mapping.clear(slots.start(slot.into()), size);
                chunk.taken[slot as usize] = true;
                slot
            }
            None => {
                chunk.taken.push(true);
                chunk.taken.len() as u32 - 1
            }
        };
        if chunk.free.is_empty() && chunk.taken.len() as u64 == slots.count(chunk.range.len) {
            class.open.remove(&offset);
        }
        Ok(Range { offset: offset + slots.start(slot.into()), len: size })
    }

    fn chunk(&self) -> Result<Chunk, SegmentError> {
        let range = match self.allocate(CHUNK) {
            // There may be room for less.
            Err(SegmentError::Exhausted { .. }) => self.allocate(GRANULE)?,
            allocated => allocated?,
        };
        let mapping = self.map(range).inspect_err(|_| {
            // There is an error to return already.
            let _ = self.free(range);
        })?;
        Ok(Chunk { range, mapping, taken: Vec::new(), free: Vec::new() })
    }

    /// Frees a piece of this process. One empty chunk of each size stays for the next piece.
    pub(super) fn free_piece(&self, range: Range) -> Result<(), SegmentError> {
        let missing = SegmentError::NotAllocated(range);
        if !range.len.is_power_of_two() || !(1 << SHORTEST..=1 << LONGEST).contains(&range.len) {
            return Err(missing);
        }
        let mut pieces = self.shared.pieces.lock().unwrap_or_else(PoisonError::into_inner);
        let class = &mut pieces.0[(range.len.trailing_zeros() - SHORTEST) as usize];
        let found = class.chunks.range_mut(..=range.offset).next_back();
        let Some((&offset, chunk)) = found else { return Err(missing) };
        let slot = Slots::of(range.len).at(range.offset - offset);
        let Some(slot) = slot.filter(|&slot| chunk.taken.get(slot as usize) == Some(&true)) else {
            return Err(missing);
        };
        chunk.taken[slot as usize] = false;
        chunk.free.push(slot as u32);
        let is_empty = chunk.is_empty();
        class.open.insert(offset);
        if is_empty && class.open.len() > 1 {
            class.open.remove(&offset);
            if let Some(chunk) = class.chunks.remove(&offset) {
                return self.free(chunk.range);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_lie_apart_and_leave_a_page_to_every_mapping() {
        for power in SHORTEST..=LONGEST {
            let slots = Slots::of(1 << power);
            let mut end = 0;
            for slot in 0..slots.count(CHUNK) {
                let start = slots.start(slot);
                assert!(start >= end && slots.at(start) == Some(slot));
                assert!(start % GRANULE + slots.size.max(LEAST) <= GRANULE, "{slot}");
                assert_eq!(slots.at(start + 1), None);
                end = start + slots.size;
            }
            assert!(end <= CHUNK);
        }
    }
}
