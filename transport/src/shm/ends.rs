//! The two ends of a ring as a link uses them: frames in place, and notifications to the other end.
#![allow(unsafe_code)]

use std::time::Instant;

use super::memory::RingMapping;
use super::pace::Pace;
use crate::atomics::Le32;
use crate::link::{Consume, Frame, FrameMut, LinkError, Publish};
use crate::ring::{Receiver, Sender};
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

/// The sending end of a ring, with the receiver to notify.
#[derive(Debug)]
pub(super) struct Outbound {
    sender: Sender<RingMapping>,
    segment: Segment,
    rank: u32,
    peer: u32,
    pace: Pace,
    /// The time at which writing the current frame began, if that is measured.
    begun: Option<Instant>,
}

impl Outbound {
    /// Maps the ring to a peer at the first frame.
    #[cold]
    pub(super) fn open<'a>(
        unopened: &'a mut Option<Box<Self>>,
        segment: &Segment,
        rank: u32,
        peer: u32,
    ) -> Result<&'a mut Self, LinkError> {
        let sender = Sender::new(map(segment, rank, peer)?);
        let segment = segment.clone();
        let opened = Self { sender, segment, rank, peer, pace: Pace::default(), begun: None };
        Ok(unopened.insert(Box::new(opened)))
    }

    /// Room for a frame, if there is any.
    #[inline]
    pub(super) fn frame(&mut self, len: usize) -> Result<Option<FrameMut<'_>>, LinkError> {
        match self.sender.reserve(len) {
            Ok(Some(bytes)) => {
                self.begun = self.pace.begin(len).then(Instant::now);
                // SAFETY: nobody else uses these bytes until the next call on the sender. The frame
                // borrows `self`, so that call is the frame's own `publish`, to which it lends the
                // bytes. The bytes are initialized, as shared memory is.
                let bytes = unsafe { &mut *bytes.as_ptr() };
                Ok(Some(FrameMut::new(bytes, self)))
            }
            Ok(None) => {
                // The ring may be full of answers, which didn't ring. Reserving was a full barrier.
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
    /// Notes how long writing a frame took, and asks for claims if that changes anything.
    #[cold]
    fn measure(&mut self, len: usize, begun: Instant) {
        let claimed = self.pace.took(len, begun.elapsed());
        claimed.into_iter().for_each(|claimed| self.sender.claim(claimed));
    }

    /// Publishes a frame and returns the receiver's bell, for the caller to check.
    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Option<&Le32> {
        if let Some(begun) = self.begun.take() {
            self.measure(bytes.len(), begun);
        }
        if self.sender.publish(bytes).call {
            // Calls before reading the bell; pairs with the barrier in arming.
            self.segment.callers(self.peer).call(self.rank);
        }
        self.segment.block(self.peer).map(|block| &block.bell)
    }
}

impl Publish for Outbound {
    #[inline]
    fn publish(&mut self, bytes: &[u8]) {
        self.send(bytes).into_iter().for_each(ring_armed);
    }

    #[inline]
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
    /// The link's frame count when the last frame came from this ring.
    pub(super) last: u32,
    /// Whether the ring was empty when it was polled last.
    rested: bool,
    state: State,
}

/// When the link polls a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Only after its sender calls.
    Unwatched,
    /// At every poll of the link.
    Watched,
    /// Never again: the peer sent corrupt data.
    Broken,
}

impl Inbound {
    pub(super) fn new(segment: &Segment, rank: u32, peer: u32) -> Result<Self, LinkError> {
        let limit = crate::ring::frame_limit(segment.geometry().ring_bytes);
        let receiver = Receiver::new(map(segment, peer, rank)?, limit);
        let segment = segment.clone();
        Ok(Self { receiver, segment, rank, peer, last: 0, rested: true, state: State::Unwatched })
    }

    /// Starts watching. Returns `false` if the ring is watched already, or broken.
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
            // A frame arrived just now: this rank calls itself, so that the ring is watched again
            // in its turn.
            self.segment.callers(self.rank).call(self.peer);
        }
    }

    /// Whether a frame waits.
    #[inline]
    pub(super) fn has_frame(&mut self) -> Result<bool, LinkError> {
        self.receiver.find().map_err(|what| {
            self.state = State::Broken;
            LinkError::Corrupt { peer: self.peer, what }
        })
    }

    /// Whether a quick test shows no frame.
    #[inline]
    pub(super) fn is_quiet(&self) -> bool {
        self.receiver.is_quiet()
    }

    /// The frame that `has_frame` found.
    #[inline]
    pub(super) fn frame(&mut self) -> Option<Frame<'_>> {
        self.settle();
        let bytes = self.receiver.found()?;
        self.rested = false;
        // SAFETY: the sender doesn't touch the bytes before they are given back. The frame does
        // that when it is dropped, and it borrows `self` until then. The bytes are initialized, as
        // shared memory is.
        let bytes = unsafe { bytes.as_ref() };
        Some(Frame::new(self.peer, bytes, self))
    }

    /// Reports the read position to the sender, because the ring is empty. It waits for a second
    /// empty poll: after the first, an answer to the last frame may be more urgent.
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
    #[inline]
    fn consume(&mut self) {
        if self.receiver.release() {
            self.wake_sender();
        }
    }
}
