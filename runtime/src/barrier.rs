//! The barrier of a group of ranks that share a segment: the dissemination algorithm over flags,
//! with one line for each rank and round.
//!
//! 1. In round k of epoch e, rank r writes e to the line of rank r + 2^k and waits for e on its
//!    own.
//! 2. After ceil(log2 n) rounds, each rank has heard of all others, directly or indirectly.
//!
//! A line contains a [counter] of epochs, with one writer and one reader. A writer can be at most
//! one epoch ahead of its reader.
//!
//! One more line contains the number of ranks that have left for good. The last of them may free
//! the memory, since no other rank reads its lines any more.
//!
//! All writes of a rank to shared memory before it entered are visible to all ranks that have left,
//! since each signal is a release and each wait an acquire. Ranks of any byte order and word size
//! can take part.

use std::sync::atomic::{AtomicU32, Ordering};

use longshore_transport::{Mapping, Range, Segment, SegmentError};

use crate::counter;
use crate::group::Group;

/// The distance of lines in bytes. It is two cache lines, since processors prefetch neighbouring
/// lines in pairs.
const LINE: usize = 128;

/// A barrier, as one of its ranks uses it.
pub(crate) struct Barrier {
    lines: Mapping,
    /// The memory of the lines in the segment.
    place: Range,
    segment: Segment,
    group: Group,
    rank: u32,
    size: u32,
    epoch: AtomicU32,
    /// The number of the window whose barrier it is, if it is one's.
    window: Option<u32>,
    /// The context of the communicator whose barrier it is, if it is one's.
    context: Option<u32>,
}

/// A pass of a barrier that has begun.
pub(crate) struct Entered {
    epoch: u32,
    round: u32,
}

impl Barrier {
    /// The size in bytes of the lines of `size` ranks. The memory must be zeroed.
    pub(crate) fn bytes(size: u32) -> u64 {
        LINE as u64 * (u64::from(size) * u64::from(rounds(size)) + 1)
    }

    /// The barrier of a group whose lines are at `place` of the segment, for rank `rank`. `None` if
    /// the memory is too small.
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
        let (group, window, context) = (group.clone(), None, None);
        Ok(Some(Barrier { lines, place, segment, group, rank, size, epoch, window, context }))
    }

    /// The barrier as that of a window.
    pub(crate) fn of_window(self, window: u32) -> Barrier {
        Barrier { window: Some(window), ..self }
    }

    /// The barrier as that of a communicator, of which a context is given.
    pub(crate) fn of_communicator(self, context: u32) -> Barrier {
        Barrier { context: Some(context), ..self }
    }

    /// The context of its communicator, if it is a communicator's barrier.
    pub(crate) fn context(&self) -> Option<u32> {
        self.context
    }

    /// The number of its window, if it is a window's barrier.
    pub(crate) fn window(&self) -> Option<u32> {
        self.window
    }

    /// The ranks that take part.
    pub(crate) fn group(&self) -> &Group {
        &self.group
    }

    /// The memory of the lines in the segment.
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

    /// Advances through the rounds as far as signals have arrived. Returns true after all ranks
    /// have entered. With `arming`, the rank that this one waits for will ring.
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

    /// Leaves for good, outside of any pass. Returns true to the last of all ranks, which may free
    /// the memory.
    pub(crate) fn leave(&self) -> bool {
        counter::leave(self.word(self.size, 0), self.size)
    }

    fn signal(&self, entered: &Entered) {
        if entered.round >= rounds(self.size) {
            return;
        }
        let peer = (self.rank + (1 << entered.round)) % self.size;
        if counter::set(self.word(peer, entered.round), entered.epoch) {
            // Ringing can't fail: every rank of the job belongs to the segment.
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

/// The number of rounds for `size` ranks.
pub(crate) fn rounds(size: u32) -> u32 {
    size.next_power_of_two().trailing_zeros()
}
