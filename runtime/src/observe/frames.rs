//! Frames, as the engine's tap counts them, peer by peer.

use std::sync::Arc;

use longshore_job::journal::events::{self, Event};
use longshore_job::journal::snapshot::PeerCounts;

use super::tracer::Key;
use super::{Exchanged, Observer, Recorded, now};
use crate::wire::{Frame, Kind};

/// The counts of frames of one rank. The engine has them under its lock.
pub(crate) struct FrameObserver {
    observer: Arc<Observer>,
    runs: [Run; RUNS],
    peers: Vec<PeerCounts>,
    /// The place in `peers` of the peer that was looked up last.
    last: usize,
    retries: u64,
    forms: u64,
    form_bytes: u64,
}

/// The runs that are open at the same time: of two directions, four kinds and eight peers.
const RUNS: usize = 64;

/// Frames of one peer, direction and first byte, which has the kind. They are counted here, by two
/// additions, and join the counts of the peer when another run takes the place of this one.
#[derive(Clone, Copy, Default)]
#[repr(align(32))]
struct Run {
    /// The peer, the first byte and the direction: see [`key`]. 0 for none.
    key: u64,
    count: u64,
    bytes: u64,
}

/// Direction, peer and first byte of a frame in one word, which isn't 0.
#[inline]
fn key(sent: bool, peer: u32, code: u8) -> u64 {
    u64::from(peer) | u64::from(code) << 32 | u64::from(sent) << 40 | 1 << 41
}

/// The direction, peer and first byte of a word that [`key`] has made.
fn parts(key: u64) -> (bool, u32, u8) {
    (key >> 40 & 1 == 1, key as u32, (key >> 32) as u8)
}

/// The place of the run of frames with a key.
#[inline]
fn place(sent: bool, peer: u32, code: u8) -> usize {
    (peer as usize & 7) << 3 | (usize::from(code) & 3) << 1 | usize::from(sent)
}

/// The counts of frames so far.
#[derive(Default)]
pub(crate) struct Taken {
    pub peers: Vec<PeerCounts>,
    pub retries: u64,
    pub forms: u64,
    pub form_bytes: u64,
    /// The data of messages from ranks of other kinds.
    pub messages: Vec<Exchanged>,
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
        let (runs, peers, last) = ([Run::default(); RUNS], Vec::new(), 0);
        FrameObserver { observer, runs, peers, last, retries: 0, forms: 0, form_bytes: 0 }
    }

    /// Whether frames are traced.
    #[inline]
    pub(crate) fn traces(&self) -> bool {
        self.observer.traces()
    }

    /// Counts a frame with a first byte and a number of bytes, if it belongs to a run that is open.
    #[inline(always)]
    pub(crate) fn count_next(&mut self, sent: bool, peer: u32, code: u8, bytes: u64) -> bool {
        let run = &mut self.runs[place(sent, peer, code)];
        if run.key != key(sent, peer, code) {
            return false;
        }
        run.count += 1;
        run.bytes += bytes;
        true
    }

    /// Counts a frame with a first byte and a number of bytes.
    pub(crate) fn count(&mut self, sent: bool, peer: u32, code: u8, bytes: u64) {
        if !self.count_next(sent, peer, code, bytes) {
            let place = place(sent, peer, code);
            self.end_run(place);
            self.runs[place] = Run { key: key(sent, peer, code), count: 1, bytes };
        }
    }

    /// Adds a run to the counts of its peer.
    fn end_run(&mut self, place: usize) {
        let Run { key, count, bytes } = std::mem::take(&mut self.runs[place]);
        let (sent, peer, code) = parts(key);
        let Some(kind) = Frame::kind(&[code]).filter(|_| count > 0) else { return };
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
            self.forms += count;
            self.form_bytes += bytes;
        }
        let peer = self.peer(peer);
        if sent {
            peer.sent += count;
            peer.sent_bytes += bytes;
        } else {
            peer.received += count;
            peer.received_bytes += bytes;
            // Of an unlike peer; `taken` forgets those of like peers.
            peer.converted += if has_data { count } else { 0 };
            peer.converted_bytes += if has_data { bytes } else { 0 };
        }
    }

    /// The counts of a peer.
    fn peer(&mut self, rank: u32) -> &mut PeerCounts {
        if self.peers.get(self.last).is_none_or(|peer| peer.rank != rank) {
            self.last = self.find(rank);
        }
        &mut self.peers[self.last]
    }

    fn find(&mut self, rank: u32) -> usize {
        match self.peers.binary_search_by_key(&rank, |peer| peer.rank) {
            Ok(at) => at,
            Err(at) => {
                self.peers.insert(at, PeerCounts { rank, ..PeerCounts::default() });
                at
            }
        }
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
    pub(crate) fn taken(&mut self, is_unlike: impl Fn(u32) -> bool) -> Taken {
        (0..RUNS).for_each(|place| self.end_run(place));
        let counts = |peer: &PeerCounts| match is_unlike(peer.rank) {
            true => *peer,
            false => PeerCounts { converted: 0, converted_bytes: 0, ..*peer },
        };
        let peers = self.peers.iter().map(counts).collect();
        let FrameObserver { retries, forms, form_bytes, .. } = *self;
        Taken { peers, retries, forms, form_bytes, messages: Vec::new() }
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

#[cfg(test)]
mod tests {
    use longshore_transport::{Journal, Segment};

    use super::*;

    /// There are more peers and kinds than runs.
    #[test]
    fn every_frame_is_counted_however_runs_take_turns() {
        let segment = Segment::create(40).unwrap();
        let journal = Journal::create(longshore_job::journal::COUNTERS, 0).unwrap();
        let observer = Arc::new(Observer::new(0, &segment, journal));
        let mut frames = FrameObserver::new(observer);
        let kinds = [Kind::Put, Kind::Ack, Kind::Define, Kind::Accumulate, Kind::Get];
        for round in 0..10 {
            for peer in 0..40 {
                for kind in kinds {
                    for sent in [false, true] {
                        // The upper bits of the byte aren't the kind's.
                        let code = kind as u8 | if round % 2 == 0 { 0x80 } else { 0 };
                        let again = round % 3;
                        (0..=again).for_each(|_| frames.count(sent, peer, code, 40));
                    }
                }
            }
            // A snapshot on the way changes nothing.
            frames.taken(|_| true);
        }
        let number = (0..10).map(|round| 1 + round % 3).sum::<u64>();
        let Taken { peers, forms, form_bytes, .. } = frames.taken(|peer| peer == 7);
        assert_eq!((peers.len(), forms, form_bytes), (40, 40 * number, 40 * 40 * number));
        for peer in peers {
            let all = 5 * number;
            let converted = if peer.rank == 7 { 2 * number } else { 0 };
            let expected = PeerCounts {
                rank: peer.rank,
                sent: all,
                sent_bytes: 40 * all,
                received: all,
                received_bytes: 40 * all,
                converted,
                converted_bytes: 40 * converted,
            };
            assert_eq!(peer, expected);
        }
    }
}
