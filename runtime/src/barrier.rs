//! The barrier of a group of ranks that share a segment: dissemination over flags, one line for each rank and round.
//!
//! 1. In round k of epoch e, rank r writes e to the line of rank r + 2^k and waits for e on its own.
//! 2. After ceil(log2 n) rounds everyone has, directly or not, heard of everyone.
//!
//! A line has one writer and one reader. Its word is `epoch << 1 | asleep`: a reader that goes to sleep sets the low bit,
//! and the writer, which swaps, finds it and rings. A writer can be one epoch ahead of its reader, never two.
//!
//! Everything that a rank wrote to shared memory before it entered is visible to all that have left: each write is a
//! release, each wait an acquire. Ranks of any byte order and word size take part.

use std::sync::atomic::{AtomicU32, Ordering};

use longshore_transport::{Mapping, Range, Segment, SegmentError};

use crate::group::Group;

/// Bytes from line to line: two cache lines, since neighbours are fetched in pairs.
const LINE: usize = 128;

/// The bit of a word that says that its reader sleeps.
const ASLEEP: u32 = 1;

/// The epochs there are, and the mask of them.
const EPOCHS: u32 = u32::MAX >> 1;

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

    /// This process's rank there.
    pub(crate) fn rank(&self) -> u32 {
        self.rank
    }

    /// Where its memory lies in the segment.
    pub(crate) fn place(&self) -> Range {
        self.place
    }

    /// Enters the next epoch.
    pub(crate) fn enter(&self) -> Entered {
        let epoch = self.epoch.load(Ordering::Relaxed).wrapping_add(1) & EPOCHS;
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
        let word = self.word(peer, entered.round);
        // Pairs with the load and the exchange in `heard`.
        let before = word.swap((entered.epoch << 1).to_le(), Ordering::AcqRel);
        if u32::from_le(before) & ASLEEP != 0 {
            // A rank of this job is a rank of its segment.
            let _ = self.segment.ring(self.group.process(peer));
        }
    }

    fn heard(&self, entered: &Entered, arming: bool) -> bool {
        let word = self.word(self.rank, entered.round);
        let reached = |word: u32| {
            // Epochs are 31 bits and wrap; the writer is at most one ahead.
            let ahead = (u32::from_le(word) >> 1).wrapping_sub(entered.epoch) & EPOCHS;
            ahead <= EPOCHS / 2
        };
        let found = word.load(Ordering::Acquire);
        if reached(found) || !arming {
            return reached(found);
        }
        let asleep = found | ASLEEP.to_le();
        match word.compare_exchange(found, asleep, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => false,
            Err(found) => reached(found),
        }
    }

    fn word(&self, rank: u32, round: u32) -> &AtomicU32 {
        self.lines.word32(LINE * (rank * rounds(self.size) + round) as usize)
    }
}

/// The rounds that it takes to hear of everyone.
fn rounds(size: u32) -> u32 {
    size.next_power_of_two().trailing_zeros()
}
