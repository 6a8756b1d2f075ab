//! Frames, as the engine's tap counts them, peer by peer.

use std::sync::Arc;

use super::events::{self, Event};
use super::snapshot::PeerCounts;
use super::tracer::Key;
use super::{Observer, Recorded, now};
use crate::wire::Kind;

/// The counts of frames of one rank. The engine has them under its lock.
pub(crate) struct FrameObserver {
    observer: Arc<Observer>,
    peers: Vec<PeerCounts>,
    retries: u64,
    forms: u64,
    form_bytes: u64,
}

/// The counts of frames so far.
#[derive(Default)]
pub(crate) struct Taken {
    pub peers: Vec<PeerCounts>,
    pub retries: u64,
    pub forms: u64,
    pub form_bytes: u64,
}

/// What a frame has.
#[derive(Clone, Copy)]
pub(crate) struct Seen {
    pub sent: bool,
    pub peer: u32,
    pub bytes: u64,
    pub kind: Kind,
    pub window: u32,
    /// The number of the operation that it begins; otherwise 0.
    pub number: u64,
}

impl FrameObserver {
    pub(crate) fn new(observer: Arc<Observer>) -> FrameObserver {
        FrameObserver { observer, peers: Vec::new(), retries: 0, forms: 0, form_bytes: 0 }
    }

    /// Counts a frame.
    pub(crate) fn see(&mut self, seen: Seen) {
        let at = match self.peers.binary_search_by_key(&seen.peer, |peer| peer.rank) {
            Ok(at) => at,
            Err(at) => {
                self.peers.insert(at, PeerCounts { rank: seen.peer, ..PeerCounts::default() });
                at
            }
        };
        let peer = &mut self.peers[at];
        let has_data = matches!(
            seen.kind,
            Kind::Put
                | Kind::Accumulate
                | Kind::Fetch
                | Kind::Swap
                | Kind::Reply
                | Kind::Eager
                | Kind::Bulk
                | Kind::More
        );
        let is_form = seen.kind == Kind::Define;
        if seen.sent {
            peer.sent += 1;
            peer.sent_bytes += seen.bytes;
            self.forms += u64::from(is_form);
            self.form_bytes += if is_form { seen.bytes } else { 0 };
        } else {
            peer.received += 1;
            peer.received_bytes += seen.bytes;
            // Of an unlike peer; `taken` forgets those of like peers.
            peer.converted += u64::from(has_data);
            peer.converted_bytes += if has_data { seen.bytes } else { 0 };
        }
        if self.observer.traces() {
            self.observer.frame(seen);
        }
    }

    /// Counts a frame for which the link had no room.
    pub(crate) fn retry(&mut self) {
        self.retries += 1;
    }

    /// The counts so far. `is_unlike` says which peers have another representation.
    pub(crate) fn taken(&self, is_unlike: impl Fn(u32) -> bool) -> Taken {
        let counts = |peer: &PeerCounts| match is_unlike(peer.rank) {
            true => *peer,
            false => PeerCounts { converted: 0, converted_bytes: 0, ..*peer },
        };
        let peers = self.peers.iter().map(counts).collect();
        let FrameObserver { retries, forms, form_bytes, .. } = *self;
        Taken { peers, retries, forms, form_bytes }
    }
}

impl Observer {
    /// Records a frame for the trace.
    fn frame(&self, seen: Seen) {
        let Seen { sent, peer, bytes, window, number, .. } = seen;
        let mut recorded = self.recorded();
        let Recorded { tracer, journal, .. } = &mut *recorded;
        let thread = tracer.thread(journal);
        let kind = tracer.text(journal, Key::Frame(seen.kind), || format!("{:?}", seen.kind));
        let time = now();
        let frame = events::Frame { thread, sent, kind, peer, time, bytes, window, number };
        tracer.put_many(journal, &Event::Frame(frame));
    }
}
