//! The wire tap: records the frames that a rank sends and receives, for diagnosis.

use std::collections::VecDeque;

/// The number of frames that are kept. Older ones are dropped.
const KEPT: usize = 4096;

/// The number of bytes that are kept of a frame.
const SNAP: usize = 4096;

/// The direction of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From this rank to the peer.
    Sent,
    /// From the peer to this rank.
    Received,
}

/// A frame recorded by the tap. [`wire::describe`](crate::wire::describe) decodes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tapped {
    /// The direction of the frame.
    pub direction: Direction,
    /// The rank at the other end.
    pub peer: u32,
    /// The frame, cut to its first 4096 bytes.
    pub bytes: Vec<u8>,
    /// The whole length of the frame in bytes.
    pub length: usize,
}

/// The recorder. It is off by default.
#[derive(Default)]
pub(crate) struct Tap {
    frames: Option<VecDeque<Tapped>>,
    /// The number of frames sent, counted even when the tap is off.
    pub sent: u64,
}

impl Tap {
    /// Turns recording on, or turns it off and drops the frames.
    pub(crate) fn turn(&mut self, on: bool) {
        self.frames = on.then(|| self.frames.take().unwrap_or_default());
    }

    /// The frames recorded since the last call.
    pub(crate) fn take(&mut self) -> Vec<Tapped> {
        self.frames.as_mut().map(std::mem::take).unwrap_or_default().into()
    }

    #[inline]
    pub(crate) fn record(&mut self, direction: Direction, peer: u32, frame: &[u8]) {
        self.sent += u64::from(direction == Direction::Sent);
        let Some(frames) = &mut self.frames else { return };
        if frames.len() == KEPT {
            frames.pop_front();
        }
        let bytes = frame[..frame.len().min(SNAP)].to_vec();
        frames.push_back(Tapped { direction, peer, bytes, length: frame.len() });
    }
}
