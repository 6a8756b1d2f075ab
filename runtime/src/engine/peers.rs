//! The ranks of the job as this rank knows them: their representations, their limits, and which of
//! them are gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use longshore_transport::LinkError;
use shipable::Architecture;

use crate::error::{Error, ErrorKind, Result};
use crate::group::Group;
use crate::wire::Introduction;

/// This rank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Me {
    pub rank: u32,
    pub size: u32,
    pub architecture: Architecture,
    pub emulated: bool,
}

impl Me {
    /// The error for a slice, which isn't in the representation that this rank emulates.
    pub(crate) fn emulated(&self) -> ErrorKind {
        ErrorKind::Emulated { architecture: self.architecture.to_string() }
    }
}

/// All ranks of the job.
pub(super) struct Peers {
    me: Me,
    ranks: Vec<Peer>,
    /// Whether a peer died or a window was poisoned. The process reads it without the engine's
    /// lock.
    bereft: Arc<AtomicBool>,
    /// Peers that died and that the link has not given up yet.
    dead: Vec<u32>,
    /// Peers that have finalized and whose last frames may still be under way.
    leaving: Vec<u32>,
    /// The failure of the link as a whole, which is final.
    broken: Option<LinkError>,
}

#[derive(Default)]
struct Peer {
    /// Set by the peer's introduction.
    identity: Option<Identity>,
    gone: Option<Gone>,
}

struct Identity {
    architecture: Architecture,
    emulated: bool,
    /// The longest encoded form that the peer accepts.
    form_limit: u64,
}

/// Why nothing more can be sent to a peer.
#[derive(Clone, Debug)]
pub(super) struct Gone {
    pub why: String,
    /// The peer left in good order.
    pub finalized: bool,
}

impl Gone {
    /// The error of a call that needs the peer.
    pub(super) fn error(&self, rank: u32) -> Error {
        ErrorKind::Gone { rank, state: self.why.clone() }.into()
    }
}

impl Peers {
    pub(super) fn new(me: Me) -> Peers {
        Peers {
            me,
            ranks: (0..me.size).map(|_| Peer::default()).collect(),
            bereft: Arc::default(),
            dead: Vec::new(),
            leaving: Vec::new(),
            broken: None,
        }
    }

    #[inline]
    pub(super) fn me(&self) -> &Me {
        &self.me
    }

    /// Stores a rank's introduction.
    pub(super) fn introduce(&mut self, rank: u32, architecture: Architecture, it: &Introduction) {
        let identity = Identity { architecture, emulated: it.emulated, form_limit: it.form_limit };
        self.ranks[rank as usize].identity = Some(identity);
    }

    /// Whether a peer has introduced itself, or another rank has introduced it.
    #[inline]
    pub(super) fn is_known(&self, peer: u32) -> bool {
        self.ranks[peer as usize].identity.is_some()
    }

    /// A peer's representation, once it is known.
    #[inline]
    pub(super) fn architecture(&self, peer: u32) -> Option<&Architecture> {
        self.ranks[peer as usize].identity.as_ref().map(|identity| &identity.architecture)
    }

    /// The representation in which a peer's data arrive.
    ///
    /// # Errors
    /// The peer isn't known.
    #[inline]
    pub(super) fn stream_of(&self, peer: u32) -> Result<&Architecture> {
        let unknown = || ErrorKind::Gone { rank: peer, state: "unknown".to_owned() };
        Ok(self.architecture(peer).ok_or_else(unknown)?)
    }

    /// The representation in which a peer's messages travel: this rank's own while the peer isn't
    /// known.
    pub(super) fn stream_or_own(&self, peer: u32) -> Architecture {
        *self.architecture(peer).unwrap_or(&self.me.architecture)
    }

    /// A rank's representation, and whether it is emulated; `None` for a rank out of range or one
    /// that isn't known yet.
    pub(super) fn representation(&self, rank: u32) -> Option<(Architecture, bool)> {
        let identity = self.ranks.get(rank as usize)?.identity.as_ref()?;
        Some((identity.architecture, identity.emulated))
    }

    /// The longest encoded form that a peer accepts.
    pub(super) fn form_limit(&self, peer: u32) -> u64 {
        self.ranks[peer as usize].identity.as_ref().map_or(0, |identity| identity.form_limit)
    }

    /// The error of a call that needs a rank which is gone.
    #[inline]
    pub(super) fn gone(&self, rank: u32) -> Option<Error> {
        let gone = self.ranks.get(rank as usize)?.gone.as_ref()?;
        Some(gone.error(rank))
    }

    /// Whether a peer is gone without having finalized.
    #[inline]
    pub(super) fn is_lost(&self, peer: u32) -> bool {
        self.ranks[peer as usize].gone.as_ref().is_some_and(|gone| !gone.finalized)
    }

    /// The error of a call that all ranks of a group have to join, if one of them is lost. A rank
    /// that has finalized has joined.
    pub(super) fn dead_among(&self, group: &Group) -> Option<Error> {
        if !self.is_bereft() {
            return None;
        }
        let lost = |&&rank: &&u32| (rank as usize) < self.ranks.len() && self.is_lost(rank);
        group.processes().iter().find(lost).and_then(|&rank| self.gone(rank))
    }

    /// Whether a peer or a window is lost.
    #[inline]
    pub(super) fn is_bereft(&self) -> bool {
        self.bereft.load(Ordering::Relaxed)
    }

    /// Notes the loss of a peer or of a window.
    pub(super) fn note_loss(&self) {
        self.bereft.store(true, Ordering::Relaxed);
    }

    /// The flag that is set once a peer or a window is lost, to be read without the engine's lock.
    pub(super) fn bereft(&self) -> &Arc<AtomicBool> {
        &self.bereft
    }

    /// Marks a peer as gone; false if it was gone before.
    pub(super) fn lose(&mut self, rank: u32, gone: Gone) -> bool {
        let peer = &mut self.ranks[rank as usize];
        if peer.gone.is_some() {
            return false;
        }
        let why = &gone.why;
        match gone.finalized {
            true => tracing::debug!(rank = self.me.rank, peer = rank, "a peer has finalized"),
            false => tracing::warn!(rank = self.me.rank, peer = rank, why, "lost a peer"),
        }
        let finalized = gone.finalized;
        peer.gone = Some(gone);
        if !finalized {
            self.note_loss();
            self.dead.push(rank);
        }
        true
    }

    /// Whether a peer died that the link has not given up yet.
    #[inline]
    pub(super) fn has_dead(&self) -> bool {
        !self.dead.is_empty()
    }

    /// The next dead peer for the link to give up.
    pub(super) fn take_dead(&mut self) -> Option<u32> {
        self.dead.pop()
    }

    /// Whether a peer has finalized whose last frames may still be under way.
    #[inline]
    pub(super) fn has_leaving(&self) -> bool {
        !self.leaving.is_empty()
    }

    /// Takes the peers that have finalized and whose last frames may still be under way.
    pub(super) fn take_leaving(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.leaving)
    }

    /// Notes that a peer has finalized and that more frames of it may arrive.
    pub(super) fn set_leaving(&mut self, rank: u32) {
        self.leaving.push(rank);
    }

    /// Notes that the link has failed for good. Later failures are ignored.
    #[cold]
    pub(super) fn link_broke(&mut self, error: LinkError) {
        if self.broken.is_none() {
            tracing::error!(rank = self.me.rank, %error, "the link has failed");
            self.broken = Some(error);
        }
    }

    /// Whether the link has failed.
    #[inline]
    pub(super) fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    /// The error of a call that would wait, if the link has failed.
    pub(super) fn broken(&self) -> Option<Error> {
        self.broken.as_ref().map(|error| ErrorKind::from(error.clone()).into())
    }
}

/// A set of ranks.
pub(super) struct PeerSet(Box<[u64]>);

impl PeerSet {
    /// An empty set, for ranks below `size`.
    pub(super) fn new(size: u32) -> PeerSet {
        PeerSet(vec![0; size.div_ceil(64) as usize].into())
    }

    #[inline]
    pub(super) fn insert(&mut self, peer: u32) {
        self.0[peer as usize / 64] |= 1 << (peer % 64);
    }

    #[inline]
    pub(super) fn remove(&mut self, peer: u32) {
        self.0[peer as usize / 64] &= !(1 << (peer % 64));
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.first_from(0).is_none()
    }

    /// The lowest member that is at least `peer`.
    #[inline]
    pub(super) fn first_from(&self, peer: u32) -> Option<u32> {
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
    fn peers_of_a_set_come_in_ascending_order() {
        let mut set = PeerSet::new(200);
        let all = |set: &PeerSet| {
            let first = set.first_from(0);
            std::iter::successors(first, |peer| set.first_from(peer + 1)).collect::<Vec<_>>()
        };
        assert_eq!((all(&set), set.is_empty()), (vec![], true));
        let some = [0, 1, 63, 64, 130, 199];
        some.iter().for_each(|&peer| set.insert(peer));
        assert_eq!((all(&set), set.is_empty()), (some.to_vec(), false));
        [0, 63].iter().for_each(|&peer| set.remove(peer));
        assert_eq!(all(&set), [1, 64, 130, 199]);
        assert_eq!(set.first_from(256), None);
    }
}
