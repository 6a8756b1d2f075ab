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
    /// The place in `peers` of the peer of the last frame: mostly the next one's too.
    last: usize,
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

/// What the trace has of a frame.
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
        let (peers, last) = (Vec::new(), 0);
        FrameObserver { observer, peers, last, retries: 0, forms: 0, form_bytes: 0 }
    }

    /// The counts of a peer.
    #[inline]
    fn peer(&mut self, rank: u32) -> &mut PeerCounts {
        if self.peers.get(self.last).is_none_or(|peer| peer.rank != rank) {
            self.last = self.find(rank);
        }
        &mut self.peers[self.last]
    }

    #[cold]
    fn find(&mut self, rank: u32) -> usize {
        match self.peers.binary_search_by_key(&rank, |peer| peer.rank) {
            Ok(at) => at,
            Err(at) => {
                self.peers.insert(at, PeerCounts { rank, ..PeerCounts::default() });
                at
            }
        }
    }

    /// Counts a frame of a kind and a number of bytes. Returns whether it is to be traced.
    #[inline]
    pub(crate) fn count(&mut self, sent: bool, peer: u32, kind: Kind, bytes: u64) -> bool {
        let has_data = matches!(
            kind,
            Kind::Put
                | Kind::Accumulate
                | Kind::Fetch
                | Kind::Swap
                | Kind::Reply
                | Kind::Eager
                | Kind::Bulk
                | Kind::More
        );
        if sent && kind == Kind::Define {
            self.forms += 1;
            self.form_bytes += bytes;
        }
        let peer = self.peer(peer);
        if sent {
            peer.sent += 1;
            peer.sent_bytes += bytes;
        } else {
            peer.received += 1;
            peer.received_bytes += bytes;
            // Of an unlike peer; `taken` forgets those of like peers.
            peer.converted += u64::from(has_data);
            peer.converted_bytes += if has_data { bytes } else { 0 };
        }
        self.observer.traces()
    }

    /// Records a frame for the trace.
    pub(crate) fn trace(&self, seen: Seen) {
        self.observer.frame(seen);
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
