//! The wire tap: records the frames that a rank sends and receives, for diagnosis.

use std::collections::VecDeque;

use crate::observe::{FrameObserver, Seen};
use crate::wire::{Brief, Frame, Header, Kind};

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
    /// What looks at each frame. One look at this field decides that nothing does.
    recording: Option<Box<Recording>>,
    /// The number of frames sent, counted even when the tap is off.
    pub sent: u64,
}

/// What looks at each frame.
#[derive(Default)]
struct Recording {
    frames: Option<VecDeque<Tapped>>,
    observer: Option<FrameObserver>,
}

impl Tap {
    /// Turns recording on, or turns it off and drops the frames.
    pub(crate) fn turn(&mut self, on: bool) {
        let recording = self.recording.get_or_insert_default();
        recording.frames = on.then(|| recording.frames.take().unwrap_or_default());
        if !on && recording.observer.is_none() {
            self.recording = None;
        }
    }

    /// The frames recorded since the last call.
    pub(crate) fn take(&mut self) -> Vec<Tapped> {
        let frames = self.recording.as_mut().and_then(|recording| recording.frames.as_mut());
        frames.map(std::mem::take).unwrap_or_default().into()
    }

    /// Lets an observer see each frame.
    pub(crate) fn observe(&mut self, observer: FrameObserver) {
        self.recording.get_or_insert_default().observer = Some(observer);
    }

    /// The observer of frames, if there is one.
    pub(crate) fn observer(&mut self) -> Option<&mut FrameObserver> {
        self.recording.as_mut()?.observer.as_mut()
    }

    /// A link had no room for a frame, which waits.
    pub(crate) fn retry(&mut self) {
        if let Some(observer) = self.observer() {
            observer.retry();
        }
    }

    #[inline]
    pub(crate) fn record(&mut self, direction: Direction, peer: u32, frame: &[u8]) {
        self.sent += u64::from(direction == Direction::Sent);
        if let Some(recording) = &mut self.recording {
            recording.record(direction, peer, frame);
        }
    }
}

impl Recording {
    #[cold]
    fn record(&mut self, direction: Direction, peer: u32, frame: &[u8]) {
        if let (Some(observer), Some(kind)) = (&mut self.observer, Frame::kind(frame)) {
            let sent = direction == Direction::Sent;
            if observer.count(sent, peer, kind, frame.len() as u64) {
                if let Some(decoded) = Frame::decode(frame) {
                    observer.trace(seen(direction, peer, frame.len(), decoded));
                }
            }
        }
        let Some(frames) = &mut self.frames else { return };
        if frames.len() == KEPT {
            frames.pop_front();
        }
        let bytes = frame[..frame.len().min(SNAP)].to_vec();
        frames.push_back(Tapped { direction, peer, bytes, length: frame.len() });
    }
}

/// What the observer learns of a frame.
fn seen(direction: Direction, peer: u32, len: usize, frame: Frame<'_>) -> Seen {
    let (kind, window, number) = match frame {
        Frame::Long(Header { kind, context, operation, .. }, _) => (kind, context, operation),
        Frame::Short(Brief { kind, context, .. }, _) => (kind, context, 0),
    };
    let operates =
        matches!(kind, Kind::Put | Kind::Get | Kind::Accumulate | Kind::Fetch | Kind::Swap);
    let number = if operates { number } else { 0 };
    let sent = direction == Direction::Sent;
    Seen { sent, peer, bytes: len as u64, kind, window, number }
}
