//! The allocator of the heap's ranges: windows, control blocks, and other memory that ranks share.
//!
//! The table's entries are unordered. An entry is in use while its offset isn't zero, so one store
//! allocates and one store frees. A rank that dies while it holds the lock therefore leaves a
//! consistent table. Two words of the header are hints, which make an allocation's time independent
//! of the number of ranges: an offset after which there is no range, and an entry before which none
//! is free, or [`NONE`]. The first is trusted as the lock is: a rank that damages it can damage
//! every window. Where the second finds no free entry, all are looked at once.

use std::os::fd::AsFd;
use std::sync::PoisonError;

use super::layout::{GRANULE, Geometry, RANGES, RangeEntry, lock_queue_len};
use super::pieces::is_piece;
use super::{Range, RankState, Segment, SegmentError};
use crate::atomics::{Acquire, Relaxed, Release};
use crate::lock::{FairLock, Held};
use crate::mapping;

/// The hint of the free entry after all were looked at and none was free. The next free replaces
/// it. Without it each allocation would look at all entries of a full table.
const NONE: u32 = u32::MAX;

impl Segment {
    /// Allocates a range of at least `bytes`, rounded up to at least one [`GRANULE`]. It reads as
    /// zeros, and only touched pages cost memory. It stays allocated until it is freed, even if its
    /// owner dies.
    ///
    /// # Errors
    /// [`SegmentError::Exhausted`]; [`SegmentError::TooMany`]; [`SegmentError::NotARank`].
    pub fn allocate(&self, bytes: u64) -> Result<Range, SegmentError> {
        let len = bytes.max(1).checked_next_multiple_of(GRANULE);
        // A length that overflows has no room either; the error then reports the available room.
        let len = len.unwrap_or(u64::MAX);
        self.locked(|| {
            let &Geometry { heap, size, .. } = self.geometry();
            let entries = self.entries();
            // 1. Find a free entry: a used one that was freed, or a new one at the end.
            let vacant = |from: usize| {
                let found = entries[from..].iter().position(|entry| entry.range().is_none());
                found.map_or(entries.len(), |found| from + found)
            };
            let hint = self.header().vacant.load(Relaxed);
            if hint == NONE {
                return Err(SegmentError::TooMany(RANGES));
            }
            let mut free = vacant((hint as usize).min(entries.len()));
            if free >= RANGES as usize {
                free = vacant(0);
            }
            if free >= RANGES as usize {
                self.header().vacant.store(NONE, Relaxed);
                return Err(SegmentError::TooMany(RANGES));
            }
            // 2. Place the range after all others. Only touched pages cost memory.
            let top = (u64::from(self.header().top.load(Relaxed)) * GRANULE).max(heap);
            if top.checked_add(len).is_some_and(|end| end <= size) {
                return Ok(self.enter(Range { offset: top, len }, free, top + len));
            }
            // 3. If there is no room left, find the first gap that is long enough. Invalid entries,
            //    written by a faulty peer, only make gaps shorter.
            let mut used: Vec<Range> = entries.iter().filter_map(RangeEntry::range).collect();
            used.sort_unstable();
            let top = used.last().map_or(heap, |last| last.offset + last.len);
            let (mut offset, mut room) = (heap, 0);
            for Range { offset: start, len: len_used } in used {
                let gap = start.saturating_sub(offset);
                if gap >= len {
                    break;
                }
                room = room.max(gap);
                offset = offset.max(start + len_used);
            }
            if offset.checked_add(len).is_none_or(|end| end > size) {
                let room = room.max(size.saturating_sub(offset));
                return Err(SegmentError::Exhausted { bytes, room });
            }
            Ok(self.enter(Range { offset, len }, free, top.max(offset + len)))
        })?
    }

    /// Writes a range to a free entry. `top` is the end of the last range.
    fn enter(&self, range: Range, free: usize, top: u64) -> Range {
        // Before the entry: a rank may die in between.
        self.header().top.store((top / GRANULE) as u32, Relaxed);
        let entry = &self.all_entries()[free];
        if free == self.entries().len() {
            entry.clear();
            self.header().ranges.store(free as u32 + 1, Release);
        }
        entry.set(range, self.rank().unwrap_or(0));
        self.header().vacant.store(free as u32 + 1, Relaxed);
        let mut known = self.shared.known.lock().unwrap_or_else(PoisonError::into_inner);
        // Other ranks may have freed some.
        if known.len() >= RANGES as usize {
            known.clear();
        }
        known.insert(range.offset, free as u32);
        range
    }

    /// Frees a range and its memory. Mappings of it stay valid, and read as zeros.
    ///
    /// # Errors
    /// [`SegmentError::NotAllocated`]; [`SegmentError::NotARank`]; [`SegmentError::System`].
    pub fn free(&self, range: Range) -> Result<(), SegmentError> {
        if is_piece(range) {
            return self.free_piece(range);
        }
        self.locked(|| {
            let entries = self.entries();
            let mut known = self.shared.known.lock().unwrap_or_else(PoisonError::into_inner);
            // The range may be another rank's, or that rank may have freed it.
            let is_it = |&index: &usize| entries[index].range() == Some(range);
            let known = known.remove(&range.offset).map(|index| index as usize);
            let index = known.filter(|&index| index < entries.len() && is_it(&index));
            let index = index.or_else(|| (0..entries.len()).find(is_it));
            let index = index.ok_or(SegmentError::NotAllocated(range))?;
            mapping::discard(self.as_fd(), range)?;
            // Before the entry: a rank may die in between.
            let vacant = &self.header().vacant;
            vacant.store(vacant.load(Relaxed).min(index as u32), Relaxed);
            entries[index].clear();
            Ok(())
        })?
    }

    /// The allocated ranges, ordered by offset, each with the rank that allocated it.
    pub fn ranges(&self) -> Vec<(Range, u32)> {
        let mut ranges: Vec<_> = (self.entries().iter())
            .filter_map(|entry| Some((entry.range()?, entry.owner())))
            .collect();
        ranges.sort_unstable();
        ranges
    }

    /// Runs `body` under the allocator's lock.
    fn locked<T>(&self, body: impl FnOnce() -> T) -> Result<T, SegmentError> {
        let rank = self.rank().ok_or(SegmentError::NotARank)?;
        let local = &self.shared.allocating[rank as usize];
        let _thread = local.lock().unwrap_or_else(PoisonError::into_inner);
        let _held = self.lock_as(rank);
        Ok(body())
    }

    fn lock_as(&self, rank: u32) -> Held<'_> {
        self.lock().acquire(rank, |rank| matches!(self.rank_state(rank), RankState::Dead(_)))
    }

    /// The allocator's lock.
    fn lock(&self) -> FairLock<'_> {
        let geometry = self.geometry();
        let entries = lock_queue_len(geometry.ranks) as usize;
        FairLock::new(&self.header().lock, self.shared.control.slice(geometry.lock_queue, entries))
    }

    /// Takes the allocator's lock and never releases it, for tests of a rank that dies while it
    /// holds the lock.
    #[doc(hidden)]
    pub fn seize(&self) {
        if let Some(rank) = self.rank() {
            std::mem::forget(self.lock_as(rank));
        }
    }

    /// The entries that were ever used.
    fn entries(&self) -> &[RangeEntry] {
        // Acquire pairs with the release in `allocate`.
        let count = self.header().ranges.load(Acquire).min(RANGES);
        &self.all_entries()[..count as usize]
    }

    fn all_entries(&self) -> &[RangeEntry] {
        self.shared.control.slice(self.geometry().table, RANGES as usize)
    }
}
