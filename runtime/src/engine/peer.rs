//! What a rank knows of one of its peers.

use std::collections::VecDeque;

use shipable::Architecture;

use super::forms::Forms;
use super::incoming::Incoming;
use super::outbox::Outgoing;
use super::recent::Recents;
use crate::numbers::NumberSet;
use crate::wire::{Brief, Introduction, Kind};

/// Bytes of short messages, each with its header, that a rank holds for each sender before they are received.
pub(crate) const ROOM: u64 = 64 << 10;

/// The longest message that is sent at once.
pub(crate) const EAGER: u64 = 4 << 10;

/// Why nothing more can be sent to a peer.
#[derive(Clone, Debug)]
pub(super) struct Gone {
    pub why: String,
    /// It left in good order.
    pub finalized: bool,
}

/// One peer.
#[derive(Default)]
pub(super) struct Peer {
    hello: Option<(Architecture, bool)>,
    /// The longest form that it takes.
    pub form_limit: u64,
    /// What became of it, once it is gone.
    pub gone: Option<Gone>,
    pub outbox: VecDeque<Outgoing>,
    /// The forms of this rank that it has been told.
    pub told: NumberSet<u64>,
    /// The forms that it has told this rank.
    pub forms: Forms,
    pub incoming: Incoming,
    /// What was found of its last operations.
    pub recents: Recents,
    /// Its operations that are done, by window, to be acknowledged.
    done: VecDeque<(u32, u64)>,
    /// Bytes that it still holds room for.
    room: u64,
    /// Bytes to be given back to it.
    owed: u64,
}

impl Peer {
    /// It is known from here on.
    pub(super) fn meet(&mut self, architecture: Architecture, it: &Introduction) {
        self.hello = Some((architecture, it.emulated));
        self.form_limit = it.form_limit;
        self.room = it.room.min(ROOM);
    }

    /// Its representation, once it is known.
    pub(super) fn architecture(&self) -> Option<&Architecture> {
        self.hello.as_ref().map(|(architecture, _)| architecture)
    }

    /// Whether its representation is emulated.
    pub(super) fn is_emulated(&self) -> bool {
        self.hello.is_some_and(|(_, emulated)| emulated)
    }

    /// Whether a stream of it is under way.
    #[inline]
    pub(super) fn is_streaming(&self) -> bool {
        matches!(self.incoming, Incoming::Stream(_))
    }

    /// An operation of the peer on a window is done.
    pub(super) fn acknowledge(&mut self, window: u32) {
        match self.done.iter_mut().find(|(of, _)| *of == window) {
            Some((_, count)) => *count += 1,
            None => self.done.push_back((window, 1)),
        }
    }

    /// Whether the peer has room for so much of short messages.
    pub(super) fn has_room(&self, bytes: u64) -> bool {
        bytes <= self.room
    }

    /// Takes room that the peer has.
    pub(super) fn take_room(&mut self, bytes: u64) {
        self.room = self.room.saturating_sub(bytes);
    }

    /// Gives back the room of a short message that was received.
    pub(super) fn owe(&mut self, bytes: u64) {
        self.owed += bytes;
    }

    /// The peer gave room back.
    pub(super) fn credit(&mut self, bytes: u64) -> Result<(), String> {
        self.room = self
            .room
            .checked_add(bytes)
            .filter(|room| *room <= ROOM)
            .ok_or("more room than there is")?;
        Ok(())
    }

    /// The next frame without a stream, which may overtake streams; `brief_sent` says that it went.
    pub(super) fn brief(&self) -> Option<Brief> {
        if self.gone.is_some() {
            return None;
        }
        if let Some(&(context, value)) = self.done.front() {
            return Some(Brief { kind: Kind::Ack, context, operation: 0, value });
        }
        (self.owed >= ROOM / 4).then_some(Brief {
            kind: Kind::Credit,
            context: 0,
            operation: 0,
            value: self.owed,
        })
    }

    pub(super) fn brief_sent(&mut self) {
        if self.done.pop_front().is_none() {
            self.owed = 0;
        }
    }
}

/// A set of peers.
pub(super) struct PeerSet(Box<[u64]>);

impl PeerSet {
    /// None of so many.
    pub(super) fn new(size: u32) -> PeerSet {
        PeerSet(vec![0; size.div_ceil(64) as usize].into())
    }

    pub(super) fn insert(&mut self, peer: u32) {
        self.0[peer as usize / 64] |= 1 << (peer % 64);
    }

    pub(super) fn remove(&mut self, peer: u32) {
        self.0[peer as usize / 64] &= !(1 << (peer % 64));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.from(0).is_none()
    }

    /// The first from this one on.
    #[inline]
    pub(super) fn from(&self, peer: u32) -> Option<u32> {
        let first = peer as usize / 64;
        let mut word = self.0.get(first)? & u64::MAX << (peer % 64);
        for at in first..self.0.len() {
            if word != 0 {
                return Some(at as u32 * 64 + word.trailing_zeros());
            }
            word = self.0.get(at + 1).copied().unwrap_or(0);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_gives_its_peers_in_order() {
        let mut set = PeerSet::new(200);
        let all = |set: &PeerSet| {
            let first = set.from(0);
            std::iter::successors(first, |peer| set.from(peer + 1)).collect::<Vec<_>>()
        };
        assert_eq!((all(&set), set.is_empty()), (vec![], true));
        let some = [0, 1, 63, 64, 130, 199];
        some.iter().for_each(|&peer| set.insert(peer));
        assert_eq!((all(&set), set.is_empty()), (some.to_vec(), false));
        [0, 63].iter().for_each(|&peer| set.remove(peer));
        assert_eq!(all(&set), [1, 64, 130, 199]);
        assert_eq!(set.from(256), None);
    }
}
