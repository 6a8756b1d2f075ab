//! The barrier of a group of ranks that share a segment: dissemination over flags, one line for each rank and round.
//!
//! 1. In round k of epoch e, rank r writes e to the line of rank r + 2^k and waits for e on its own.
//! 2. After ceil(log2 n) rounds everyone has, directly or not, heard of everyone.
//!
//! A line holds a [counter] of epochs, with one writer and one reader. A writer can be one epoch ahead of its reader, never two.
//!
//! Everything that a rank wrote to shared memory before it entered is visible to all that have left: each write is a
//! release, each wait an acquire. Ranks of any byte order and word size take part.

use std::sync::atomic::{AtomicU32, Ordering};

use longshore_transport::{Mapping, Range, Segment, SegmentError};

use crate::counter;
use crate::group::Group;

/// Bytes from line to line: two cache lines, since neighbours are fetched in pairs.
const LINE: usize = 128;

/// One rank's part in a barrier.
pub(crate) struct Barrier {
    lines: Mapping,
    /// Where the lines lie in the segment.
    place: Range,
    segment: Segment,
    group: Group,
    rank: u32,
    size: u32,
    epoch: AtomicU32,
}

/// A barrier under way.
pub(crate) struct Entered {
    epoch: u32,
    round: u32,
}

impl Barrier {
    /// Bytes of shared memory, zeroed at first, that a barrier of `size` ranks takes.
    pub(crate) fn bytes(size: u32) -> u64 {
        LINE as u64 * u64::from(size) * u64::from(rounds(size).max(1))
    }

    /// The part of rank `rank` of a group in the barrier whose memory is at `place` of the segment; `None` if that is too
    /// short.
    pub(crate) fn new(
        segment: &Segment,
        place: Range,
        group: &Group,
        rank: u32,
    ) -> Result<Option<Barrier>, SegmentError> {
        let size = group.size() as u32;
        if place.len < Self::bytes(size) {
            return Ok(None);
        }
        let (lines, segment) = (segment.map(place)?, segment.clone());
        let epoch = AtomicU32::new(0);
        Ok(Some(Barrier { lines, place, segment, group: group.clone(), rank, size, epoch }))
    }

    /// Who takes part.
    pub(crate) fn group(&self) -> &Group {
        &self.group
    }

    /// Where its memory lies in the segment.
    pub(crate) fn place(&self) -> Range {
        self.place
    }

    /// Enters the next epoch.
    pub(crate) fn enter(&self) -> Entered {
        let epoch = counter::next(self.epoch.load(Ordering::Relaxed));
        self.epoch.store(epoch, Ordering::Relaxed);
        let entered = Entered { epoch, round: 0 };
        self.signal(&entered);
        entered
    }

    /// Goes on as far as the others allow; true once all have entered. With `arming`, whoever this rank still waits for
    /// will ring it.
    #[inline]
    pub(crate) fn poll(&self, entered: &mut Entered, arming: bool) -> bool {
        while entered.round < rounds(self.size) {
            if !self.heard(entered, arming) {
                if arming {
                    let before = (self.rank + self.size - (1 << entered.round)) % self.size;
                    self.segment.note_wait(Some(self.group.process(before)));
                }
                return false;
            }
            entered.round += 1;
            self.signal(entered);
        }
        true
    }

    fn signal(&self, entered: &Entered) {
        if entered.round >= rounds(self.size) {
            return;
        }
        let peer = (self.rank + (1 << entered.round)) % self.size;
        if counter::set(self.word(peer, entered.round), entered.epoch) {
            // A rank of this job is a rank of its segment.
            let _ = self.segment.ring(self.group.process(peer));
        }
    }

    fn heard(&self, entered: &Entered, arming: bool) -> bool {
        counter::is_reached(self.word(self.rank, entered.round), entered.epoch, arming)
    }

    fn word(&self, rank: u32, round: u32) -> &AtomicU32 {
        self.lines.word32(LINE * (rank * rounds(self.size) + round) as usize)
    }
}

/// The rounds that it takes to hear of everyone.
pub(crate) fn rounds(size: u32) -> u32 {
    size.next_power_of_two().trailing_zeros()
}
