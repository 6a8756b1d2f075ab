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
    observer: Option<FrameObserver>,
    frames: Option<VecDeque<Tapped>>,
    /// Whether frames are kept or traced. Otherwise they are only counted.
    looks_inside: bool,
}

impl Tap {
    /// Turns recording on, or turns it off and drops the frames.
    pub(crate) fn turn(&mut self, on: bool) {
        let recording = self.recording.get_or_insert_default();
        recording.frames = on.then(|| recording.frames.take().unwrap_or_default());
        recording.choose();
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
        let recording = self.recording.get_or_insert_default();
        recording.observer = Some(observer);
        recording.choose();
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
            match direction {
                Direction::Sent => recording.record::<true>(peer, frame),
                Direction::Received => recording.record::<false>(peer, frame),
            }
        }
    }
}

impl Recording {
    /// Decides what is done with frames.
    fn choose(&mut self) {
        let traces = self.observer.as_ref().is_some_and(FrameObserver::traces);
        self.looks_inside = traces || self.frames.is_some();
    }

    /// Most jobs that are observed only count frames, which takes a few instructions. A call of
    /// its own, so that the paths of other jobs have no more than a branch. Cold, since the paths
    /// would save registers for it otherwise.
    #[cold]
    #[inline(never)]
    fn record<const SENT: bool>(&mut self, peer: u32, frame: &[u8]) {
        let observer = self.observer.as_mut().filter(|_| !self.looks_inside);
        if let (Some(observer), Some(&code)) = (observer, frame.first()) {
            if observer.count_next(SENT, peer, code, frame.len() as u64) {
                return;
            }
        }
        // In the tail, so that the way above saves no registers.
        self.look_inside(if SENT { Direction::Sent } else { Direction::Received }, peer, frame);
    }

    /// Counts a frame that begins a run, or that is kept or traced too.
    #[cold]
    #[inline(never)]
    fn look_inside(&mut self, direction: Direction, peer: u32, frame: &[u8]) {
        if let (Some(observer), Some(&code)) = (&mut self.observer, frame.first()) {
            observer.count(direction == Direction::Sent, peer, code, frame.len() as u64);
        }
        if let Some(observer) = self.observer.as_ref().filter(|observer| observer.traces()) {
            if let Some(decoded) = Frame::decode(frame) {
                observer.trace(seen(direction, peer, frame.len(), decoded));
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
