//! The wire tap: the frames that a rank really sent and received, for people to look at.

use std::collections::VecDeque;

/// Frames that are kept; older ones are forgotten.
const KEPT: usize = 4096;

/// Bytes of a frame that are kept.
const SNAP: usize = 4096;

/// Which way a frame went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From this rank to the peer.
    Sent,
    /// From the peer to this rank.
    Received,
}

/// A frame that passed a tapped link. [`wire::describe`](crate::wire::describe) reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tapped {
    /// Which way it went.
    pub direction: Direction,
    /// The other rank.
    pub peer: u32,
    /// The frame, cut to its first 4096 bytes.
    pub bytes: Vec<u8>,
    /// Its whole length.
    pub length: usize,
}

/// Off until it is turned on.
#[derive(Default)]
pub(crate) struct Tap {
    frames: Option<VecDeque<Tapped>>,
    /// Frames sent, whether or not it is on.
    pub sent: u64,
}

impl Tap {
    /// Turns it on, or off and forgets.
    pub(crate) fn turn(&mut self, on: bool) {
        self.frames = on.then(|| self.frames.take().unwrap_or_default());
    }

    /// The frames since the last call.
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
