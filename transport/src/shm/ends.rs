//! The two ends of a ring as a link uses them: frames in place, and telling the other side.
#![allow(unsafe_code)]

use std::time::Instant;

use super::memory::RingMapping;
use super::pace::Pace;
use super::ring::{Receiver, Sender};
use crate::atomics::{AcqRel, Le32, full_barrier};
use crate::link::{Consume, Frame, FrameMut, LinkError, Publish};
use crate::segment::{Segment, SegmentError, ring_armed, ring_waiting};

fn map(segment: &Segment, from: u32, to: u32) -> Result<RingMapping, LinkError> {
    let mapping = segment.map_ring(from, to)?;
    Ok(RingMapping::new(mapping, segment.geometry().ring_bytes))
}

impl From<SegmentError> for LinkError {
    fn from(error: SegmentError) -> Self {
        match error {
            SegmentError::NoSuchRank(rank, size) => Self::NoSuchRank { rank, size },
            error => Self::Memory(error.to_string()),
        }
    }
}

/// Sets `caller`'s bit among those who call `rank`.
pub(super) fn call(segment: &Segment, rank: u32, caller: u32) {
    let word = &segment.callers(rank)[caller as usize / 64];
    // Release pairs with the acquire of the receiver's swap: what the caller published is seen.
    word.set_bits(1 << (caller % 64), AcqRel);
}

/// The sending end of a ring, and whom to tell.
#[derive(Debug)]
pub(super) struct Outbound {
    sender: Sender<RingMapping>,
    segment: Segment,
    rank: u32,
    peer: u32,
    pace: Pace,
    /// When the writing of the frame in hand began, where that is timed.
    begun: Option<Instant>,
}

impl Outbound {
    pub(super) fn new(segment: &Segment, rank: u32, peer: u32) -> Result<Self, LinkError> {
        let sender = Sender::new(map(segment, rank, peer)?);
        let segment = segment.clone();
        Ok(Self { sender, segment, rank, peer, pace: Pace::default(), begun: None })
    }

    /// Room for a frame, if there is any.
    pub(super) fn frame(&mut self, len: usize) -> Result<Option<FrameMut<'_>>, LinkError> {
        match self.sender.reserve(len) {
            Ok(Some(bytes)) => {
                self.begun = self.pace.begin(len).then(Instant::now);
                // SAFETY: ours alone until the next call on the sender. The frame borrows `self`, so that call is the
                // frame's own `publish`, to which it lends the bytes. The bytes are initialized: shared memory is.
                let bytes = unsafe { &mut *bytes.as_ptr() };
                Ok(Some(FrameMut::new(bytes, self)))
            }
            Ok(None) => {
                // Answers may fill the ring that didn't ring. Asking for room was a full barrier.
                self.segment
                    .block(self.peer)
                    .map(|block| &block.bell)
                    .into_iter()
                    .for_each(ring_armed);
                Ok(None)
            }
            Err(what) => Err(LinkError::Corrupt { peer: self.peer, what }),
        }
    }
}

impl Outbound {
    /// Publishes a frame and gives the receiver's bell, which is to be looked at.
    #[inline]
    fn send(&mut self, bytes: &[u8]) -> Option<&Le32> {
        if let Some(begun) = self.begun.take() {
            let claimed = self.pace.took(bytes.len(), begun.elapsed());
            claimed.into_iter().for_each(|claimed| self.sender.claim(claimed));
        }
        if self.sender.publish(bytes).call {
            call(&self.segment, self.peer, self.rank);
            full_barrier(); // the call, before the look at the bell; pairs with the one in arming
        }
        self.segment.block(self.peer).map(|block| &block.bell)
    }
}

impl Publish for Outbound {
    fn publish(&mut self, bytes: &[u8]) {
        self.send(bytes).into_iter().for_each(ring_armed);
    }

    fn publish_answer(&mut self, bytes: &[u8]) {
        self.send(bytes).into_iter().for_each(ring_waiting);
    }
}

/// The receiving end of a ring.
#[derive(Debug)]
pub(super) struct Inbound {
    receiver: Receiver<RingMapping>,
    segment: Segment,
    rank: u32,
    peer: u32,
    /// When something came last, in frames of the link.
    pub(super) last: u32,
    /// Whether there was nothing to read since.
    rested: bool,
    state: State,
}

/// Whether a ring is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Only once its sender calls.
    Unwatched,
    /// At every poll.
    Watched,
    /// Never again: what came from it was corrupt.
    Broken,
}

impl Inbound {
    pub(super) fn new(segment: &Segment, rank: u32, peer: u32) -> Result<Self, LinkError> {
        let limit = super::ring::frame_limit(segment.geometry().ring_bytes);
        let receiver = Receiver::new(map(segment, peer, rank)?, limit);
        let segment = segment.clone();
        Ok(Self { receiver, segment, rank, peer, last: 0, rested: true, state: State::Unwatched })
    }

    /// Starts watching; false if it is watched already, or broken.
    pub(super) fn watch(&mut self) -> bool {
        let start = self.state == State::Unwatched;
        if start {
            self.state = State::Watched;
            self.receiver.watch();
        }
        start
    }

    /// Stops watching.
    pub(super) fn unwatch(&mut self) {
        self.state = State::Unwatched;
        self.publish();
        if self.receiver.unwatch() {
            // It spoke up just now. It comes back in its turn.
            call(&self.segment, self.rank, self.peer);
        }
    }

    /// Whether a frame waits.
    #[inline]
    pub(super) fn has_frame(&mut self) -> Result<bool, LinkError> {
        match self.receiver.poll() {
            Ok(frame) => Ok(frame.is_some()),
            Err(what) => {
                self.state = State::Broken;
                Err(LinkError::Corrupt { peer: self.peer, what })
            }
        }
    }

    /// Whether a glance shows no frame.
    #[inline]
    pub(super) fn is_quiet(&self) -> bool {
        self.receiver.is_quiet()
    }

    /// The frame that waits.
    pub(super) fn frame(&mut self) -> Option<Frame<'_>> {
        self.settle();
        let bytes = self.receiver.poll().ok()??;
        self.rested = false;
        // SAFETY: the sender doesn't touch them before they are given back, which the frame does when it is dropped; it
        // borrows `self` until then. The bytes are initialized: shared memory is.
        let bytes = unsafe { bytes.as_ref() };
        Some(Frame::new(self.peer, bytes, self))
    }

    /// Nothing to read: lets the sender know how far we are, but not at once, since what came may have to be answered.
    #[inline]
    pub(super) fn idle(&mut self) {
        self.settle();
        if self.rested {
            self.publish();
        }
        self.rested = true;
    }

    #[inline]
    fn settle(&mut self) {
        if self.receiver.settle() {
            self.wake_sender();
        }
    }

    #[inline]
    fn publish(&mut self) {
        if self.receiver.publish() {
            self.wake_sender();
        }
    }

    fn wake_sender(&self) {
        if let Some(block) = self.segment.block(self.peer) {
            ring_armed(&block.bell);
        }
    }
}

impl Consume for Inbound {
    fn consume(&mut self) {
        if self.receiver.release() {
            self.wake_sender();
        }
    }
}
