//! The ranks of the job as this rank knows them: their representations, their limits, and which of
//! them are gone.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use longshore_transport::{LinkError, RankState};
use shipable::Architecture;

use super::context::Context;
use crate::error::{Error, ErrorKind, Result};
use crate::group::Group;
use crate::job::Hosts;
use crate::numbers::{NumberSet, Numbers};
use crate::observe::Exchanged;
use crate::types::Compiled;
use crate::wire::Introduction;

/// This rank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Me {
    /// Its number among all ranks of the job.
    pub rank: u32,
    /// The number of ranks for which the job has room.
    pub size: u32,
    /// The first rank of this rank's world, those that were started together with it.
    pub first: u32,
    /// The number of ranks in its world.
    pub count: u32,
    pub architecture: Architecture,
    pub emulated: bool,
    /// Whether data of equal length match, where both ranks let them.
    pub by_length: bool,
    /// Bytes of short messages, headers included, that the rank holds for each sender before they
    /// are received.
    pub room: u64,
    /// Whether the job goes on after the death of a rank.
    pub survives: bool,
}

impl Me {
    /// The ranks of this rank's world.
    pub(crate) fn world(&self) -> Range<u32> {
        self.first..self.first + self.count
    }

    /// The rank that is `steps` after this one in the circle of its world, at most a round.
    pub(super) fn after(&self, steps: u32) -> u32 {
        self.first + (self.rank - self.first + steps) % self.count
    }

    /// The error for a slice, which isn't in the representation that this rank emulates.
    pub(crate) fn emulated(&self) -> ErrorKind {
        ErrorKind::Emulated { architecture: self.architecture.to_string() }
    }
}

/// All ranks of the job.
pub(super) struct Peers {
    me: Me,
    /// The place of each rank's identity, plus one; 0 for a rank that isn't known yet.
    ranks: Box<[u32]>,
    /// The identities of the ranks that are known. Ranks that are introduced one after the other
    /// and are alike share one.
    identities: Vec<Identity>,
    /// The bytes of messages from the ranks of each identity: those that were copied, and those
    /// that were converted. None of like ranks.
    data: Vec<Cell<[u64; 2]>>,
    /// The ranks that are gone.
    gone: Numbers<u32, Gone>,
    /// Whether a peer died or a window was poisoned. The process reads it without the engine's
    /// lock.
    bereft: Arc<AtomicBool>,
    /// The ranks that have failed, in the order in which this rank has learned of it.
    failed: Vec<u32>,
    /// By the number of a communicator, the ranks whose failure is acknowledged there.
    acknowledged: Numbers<u32, Vec<u32>>,
    /// The numbers of the communicators that are revoked. None is used again.
    revoked: NumberSet<u32>,
    /// Whether a peer is gone or a communicator revoked.
    is_troubled: bool,
    /// Peers that died and that the link has not given up yet.
    dead: Vec<u32>,
    /// Peers that have finalized and whose last frames may still be under way.
    leaving: Vec<u32>,
    /// The failure of the link as a whole, which is final.
    broken: Option<LinkError>,
    hosts: Hosts,
}

/// What a rank's introduction says.
#[derive(Clone, Copy)]
struct Identity {
    architecture: Architecture,
    /// Whether it has this rank's representation.
    alike: bool,
    emulated: bool,
    by_length: bool,
    /// How messages of the rank are taken in.
    intake: Intake,
    /// The longest encoded form that the rank accepts.
    form_limit: u64,
    /// Bytes of short messages that the rank holds for each peer.
    room: u64,
}

/// How messages of a rank are taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Intake {
    /// The data that match elements of another signature.
    pub by_length: ByLength,
    /// Whether data are in the representation of all of this rank's memory.
    pub is_native: bool,
}

impl Intake {
    /// That of a rank that isn't known.
    const UNKNOWN: Intake = Intake { by_length: ByLength::Never, is_native: false };
}

/// The data of a message that match elements of another signature that are as long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByLength {
    /// None: the signatures have to be equal.
    Never,
    /// Those that aren't converted: all items of the sender's type and of the receiver's have the
    /// same bytes at both ranks.
    Copied,
    /// All: the ranks have the same representation.
    Always,
}

/// Why nothing more can be sent to a peer.
#[derive(Clone, Debug)]
pub(super) enum Gone {
    /// It has finalized or died. At the end of a large job that holds for all of its ranks.
    Ended(RankState),
    /// The link to it failed, or it broke the protocol.
    Failed(String),
}

impl Gone {
    fn why(&self) -> String {
        match self {
            Gone::Ended(state) => state.to_string(),
            Gone::Failed(why) => why.clone(),
        }
    }

    /// Whether the peer left in good order.
    fn is_finalized(&self) -> bool {
        matches!(self, Gone::Ended(RankState::Finalized))
    }

    /// The error of a call that needs the peer, in a job that survives deaths or not.
    pub(super) fn error(&self, rank: u32, survives: bool) -> Error {
        let state = self.why();
        match survives && !self.is_finalized() {
            true => ErrorKind::Failed { rank, state }.into(),
            false => ErrorKind::Gone { rank, state }.into(),
        }
    }
}

impl Peers {
    pub(super) fn new(me: Me) -> Peers {
        Peers {
            me,
            ranks: vec![0; me.size as usize].into(),
            identities: Vec::new(),
            data: Vec::new(),
            gone: Numbers::default(),
            bereft: Arc::default(),
            failed: Vec::new(),
            acknowledged: Numbers::default(),
            revoked: NumberSet::default(),
            is_troubled: false,
            dead: Vec::new(),
            leaving: Vec::new(),
            broken: None,
            hosts: Hosts::one(),
        }
    }

    /// Sets the hosts of the job's ranks.
    pub(super) fn set_hosts(&mut self, hosts: Hosts) {
        self.hosts = hosts;
    }

    /// Whether a rank is on another host.
    #[inline]
    pub(super) fn is_far(&self, rank: u32) -> bool {
        !self.hosts.is_one() && !self.hosts.share(rank, self.me.rank)
    }

    #[inline]
    pub(super) fn me(&self) -> &Me {
        &self.me
    }

    /// Stores a rank's introduction.
    pub(super) fn introduce(&mut self, rank: u32, architecture: Architecture, it: &Introduction) {
        let Introduction { emulated, by_length, form_limit, room, .. } = *it;
        let alike = architecture.same_representation(&self.me.architecture);
        let intake = Intake {
            by_length: match (self.me.by_length && by_length, alike) {
                (false, _) => ByLength::Never,
                (true, true) => ByLength::Always,
                (true, false) => ByLength::Copied,
            },
            // An emulating rank's slices are in the machine's representation.
            is_native: alike && !self.me.emulated,
        };
        let identity =
            Identity { architecture, alike, emulated, by_length, intake, form_limit, room };
        self.identities.push(identity);
        self.data.push(Cell::default());
        self.introduce_alike(rank);
    }

    /// Stores the introduction that a rank sent.
    ///
    /// # Errors
    /// Its representation isn't known here.
    pub(super) fn acquaint(
        &mut self,
        rank: u32,
        it: &Introduction,
    ) -> std::result::Result<(), String> {
        let architecture = Architecture::from_descriptor(&it.architecture);
        let architecture = architecture.map_err(|error| error.to_string())?;
        self.introduce(rank, architecture, it);
        Ok(())
    }

    /// What a rank's introduction says, for the ranks of another world.
    pub(super) fn introduction(&self, rank: u32) -> Option<Introduction> {
        let Identity { architecture, emulated, by_length, form_limit, room, .. } =
            *self.identity(rank)?;
        let architecture = architecture.descriptor();
        Some(Introduction { architecture, emulated, by_length, room, form_limit })
    }

    /// Stores the introduction of a rank that is like the one introduced last.
    pub(super) fn introduce_alike(&mut self, rank: u32) {
        self.ranks[rank as usize] = self.identities.len() as u32;
    }

    /// Whether a peer has introduced itself, or another rank has introduced it.
    #[inline]
    pub(super) fn is_known(&self, peer: u32) -> bool {
        self.ranks[peer as usize] != 0
    }

    #[inline]
    fn identity(&self, peer: u32) -> Option<&Identity> {
        self.identities.get((self.ranks[peer as usize] as usize).wrapping_sub(1))
    }

    /// Counts the data of a message from a rank that may be unlike this one.
    #[cold]
    pub(super) fn count_data(&self, rank: u32, bytes: u64, is_converted: bool) {
        let at = (self.ranks[rank as usize] as usize).wrapping_sub(1);
        if let Some(cell) = self.data.get(at) {
            let mut counts = cell.get();
            counts[usize::from(is_converted)] += bytes;
            cell.set(counts);
        }
    }

    /// The data of messages from unlike ranks.
    pub(super) fn exchanged(&self) -> Vec<Exchanged> {
        let all = self.identities.iter().zip(&self.data);
        let unlike = all.filter(|(identity, data)| !identity.alike && data.get() != [0; 2]);
        let exchanged = |(identity, data): (&Identity, &Cell<[u64; 2]>)| {
            let [copied, converted] = data.get();
            let (from, to) = (identity.architecture, Some(self.me.architecture));
            Exchanged { from, to, copied, converted }
        };
        unlike.map(exchanged).collect()
    }

    /// A peer's representation, once it is known.
    #[inline]
    pub(super) fn architecture(&self, peer: u32) -> Option<&Architecture> {
        self.identity(peer).map(|identity| &identity.architecture)
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
    #[inline]
    pub(super) fn stream_or_own(&self, peer: u32) -> &Architecture {
        self.architecture(peer).unwrap_or(&self.me.architecture)
    }

    /// A rank's representation, and whether it is emulated; `None` for a rank out of range or one
    /// that isn't known yet.
    pub(super) fn representation(&self, rank: u32) -> Option<(Architecture, bool)> {
        let identity = self.identity(Some(rank).filter(|rank| *rank < self.me.size)?)?;
        Some((identity.architecture, identity.emulated))
    }

    /// Whether data of equal length from or to a rank match without equal signatures: both ranks
    /// let them, and nothing is converted between them.
    pub(super) fn matches_by_length(&self, rank: u32) -> bool {
        self.me.by_length
            && self.identity(rank).is_some_and(|identity| identity.by_length && identity.alike)
    }

    /// How messages of a rank are taken in.
    #[inline]
    pub(super) fn intake(&self, rank: u32) -> Intake {
        self.identity(rank).map_or(Intake::UNKNOWN, |identity| identity.intake)
    }

    /// Whether elements of a type may have other bytes at a rank than here, where data of equal
    /// length match: otherwise nobody asks. They may at a rank that isn't known yet.
    #[inline]
    pub(super) fn converts(&self, rank: u32, datatype: &Compiled) -> bool {
        let has_same_items =
            |identity: &Identity| identity.alike || datatype.has_same_items(&identity.architecture);
        self.me.by_length && !self.identity(rank).is_some_and(has_same_items)
    }

    /// The longest encoded form that a peer accepts.
    pub(super) fn form_limit(&self, peer: u32) -> u64 {
        self.identity(peer).map_or(0, |identity| identity.form_limit)
    }

    /// Bytes of short messages of this rank that a peer holds before they are received.
    #[inline]
    pub(super) fn room(&self, peer: u32) -> u64 {
        self.identity(peer).map_or(0, |identity| identity.room)
    }

    /// The error of a call that needs a rank which is gone.
    #[inline]
    pub(super) fn gone(&self, rank: u32) -> Option<Error> {
        if self.gone.is_empty() {
            return None;
        }
        self.gone.get(&rank).map(|gone| gone.error(rank, self.me.survives))
    }

    /// Whether a peer is gone.
    pub(super) fn is_gone(&self, peer: u32) -> bool {
        self.gone.contains_key(&peer)
    }

    /// Whether a peer is gone without having finalized.
    #[inline]
    pub(super) fn is_lost(&self, peer: u32) -> bool {
        !self.gone.is_empty() && self.gone.get(&peer).is_some_and(|gone| !gone.is_finalized())
    }

    /// The error of a call that all ranks of a group have to join, if one of them is lost. A rank
    /// that has finalized has joined.
    pub(super) fn dead_among(&self, group: &Group) -> Option<Error> {
        if !self.is_bereft() {
            return None;
        }
        let lost = |&&rank: &&u32| self.is_lost(rank);
        group.processes().iter().find(lost).and_then(|&rank| self.gone(rank))
    }

    /// The members of a group that have failed, in the order in which this rank has learned of it.
    pub(super) fn failed_among(&self, group: &Group) -> Vec<u32> {
        self.failed.iter().copied().filter(|rank| group.contains(*rank)).collect()
    }

    /// Notes ranks as failed that others have agreed to have failed.
    pub(super) fn note_failed(&mut self, ranks: &[u32]) {
        let known = &mut self.failed;
        ranks.iter().for_each(|rank| {
            if !known.contains(rank) {
                known.push(*rank);
            }
        });
    }

    /// The ranks whose failure is acknowledged on a communicator.
    pub(super) fn acknowledged(&self, communicator: u32) -> &[u32] {
        self.acknowledged.get(&communicator).map_or(&[], |ranks| ranks)
    }

    /// Acknowledges the failure of these ranks on a communicator.
    pub(super) fn acknowledge(&mut self, communicator: u32, failed: Vec<u32>) {
        self.acknowledged.insert(communicator, failed);
    }

    /// Notes that a communicator is revoked; false if it was.
    pub(super) fn note_revoked(&mut self, communicator: u32) -> bool {
        self.is_troubled = true;
        self.revoked.insert(communicator)
    }

    /// Whether the communicator of this number is revoked.
    pub(super) fn is_revoked(&self, communicator: u32) -> bool {
        self.revoked.contains(&communicator)
    }

    /// The error of a call on the communicator of a message's context, if that is revoked. Windows
    /// go on.
    pub(super) fn revoked(&self, context: u32) -> Option<Error> {
        let communicator = Context::revocable(context)?;
        self.is_revoked(communicator).then(|| ErrorKind::Revoked.into())
    }

    /// Whether a peer is gone or a communicator revoked: then messages need a closer look.
    #[inline]
    pub(super) fn is_troubled(&self) -> bool {
        self.is_troubled
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

    /// Marks a peer as gone.
    pub(super) fn lose(&mut self, rank: u32, gone: Gone) {
        let finalized = gone.is_finalized();
        if finalized {
            tracing::debug!(rank = self.me.rank, peer = rank, "a peer has finalized");
        } else {
            tracing::warn!(rank = self.me.rank, peer = rank, why = gone.why(), "lost a peer");
        }
        self.is_troubled = true;
        self.gone.insert(rank, gone);
        if !finalized {
            self.note_loss();
            self.note_failed(&[rank]);
            self.dead.push(rank);
        }
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

/// A value for each peer that has used one. Most ranks of a large job deal with few peers, and each
/// other peer costs one pointer.
pub(super) struct PeerTable<T>(Box<[Option<Box<T>>]>);

impl<T: Default> PeerTable<T> {
    /// An empty table, for ranks below `size`.
    pub(super) fn new(size: u32) -> PeerTable<T> {
        PeerTable((0..size).map(|_| None).collect())
    }

    /// The value of a peer, if it has one.
    #[inline]
    pub(super) fn get(&self, peer: u32) -> Option<&T> {
        self.0[peer as usize].as_deref()
    }

    /// The value of a peer, if it has one.
    #[inline]
    pub(super) fn get_mut(&mut self, peer: u32) -> Option<&mut T> {
        self.0[peer as usize].as_deref_mut()
    }

    /// The value of a peer, which is the default before its first use.
    #[inline]
    pub(super) fn of(&mut self, peer: u32) -> &mut T {
        self.of_or(peer, T::default)
    }

    /// The value of a peer, which is `first()` before its first use.
    #[inline]
    pub(super) fn of_or(&mut self, peer: u32, first: impl FnOnce() -> T) -> &mut T {
        self.0[peer as usize].get_or_insert_with(|| Box::new(first()))
    }

    /// All values that were used.
    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flatten().map(|value| &**value)
    }

    /// All values that were used, with their peers in ascending order.
    pub(super) fn used(&mut self) -> impl Iterator<Item = (u32, &mut T)> {
        (0..).zip(&mut self.0).filter_map(|(peer, value)| Some((peer, value.as_deref_mut()?)))
    }
}

/// A set of ranks.
pub(super) struct PeerSet {
    words: Box<[u64]>,
    /// The number of members. A set is mostly empty, and then no word is looked at.
    members: u32,
}

impl PeerSet {
    /// An empty set, for ranks below `size`.
    pub(super) fn new(size: u32) -> PeerSet {
        PeerSet { words: vec![0; size.div_ceil(64) as usize].into(), members: 0 }
    }

    #[inline]
    pub(super) fn insert(&mut self, peer: u32) {
        let (word, bit) = (&mut self.words[peer as usize / 64], 1 << (peer % 64));
        self.members += u32::from(*word & bit == 0);
        *word |= bit;
    }

    #[inline]
    pub(super) fn remove(&mut self, peer: u32) {
        let (word, bit) = (&mut self.words[peer as usize / 64], 1 << (peer % 64));
        self.members -= u32::from(*word & bit != 0);
        *word &= !bit;
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.members == 0
    }

    pub(super) fn contains(&self, peer: u32) -> bool {
        self.words[peer as usize / 64] & 1 << (peer % 64) != 0
    }

    /// The lowest member that is at least `peer`.
    #[inline]
    pub(super) fn first_from(&self, peer: u32) -> Option<u32> {
        if self.members == 0 {
            return None;
        }
        let first = peer as usize / 64;
        let mut word = self.words.get(first)? & u64::MAX << (peer % 64);
        for at in first..self.words.len() {
            if word != 0 {
                return Some(at as u32 * 64 + word.trailing_zeros());
            }
            word = self.words.get(at + 1).copied().unwrap_or(0);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_values_only_for_the_peers_that_used_one() {
        let mut table = PeerTable::<u64>::new(300);
        assert!(table.get(299).is_none() && table.get_mut(0).is_none());
        *table.of(299) += 1;
        *table.of_or(7, || 5) += 1;
        *table.of_or(7, || 5) += 1;
        assert_eq!((table.get(7), table.get(299)), (Some(&7), Some(&1)));
        assert_eq!(table.used().map(|(peer, _)| peer).collect::<Vec<_>>(), [7, 299]);
        assert_eq!(table.values().sum::<u64>(), 8);
    }

    /// What a large job takes of each of its ranks: docs/performance.md, "Growth".
    #[test]
    fn ranks_that_are_alike_share_an_identity() {
        let architecture = Architecture::X86_64;
        let (emulated, by_length, room) = (false, false, 9);
        let survives = false;
        let (size, first, count) = (1000, 0, 1000);
        let me =
            Me { rank: 0, size, first, count, architecture, emulated, by_length, room, survives };
        let mut peers = Peers::new(me);
        let introduction = |architecture: Architecture| Introduction {
            architecture: architecture.descriptor(),
            emulated: false,
            by_length: false,
            room: 9,
            form_limit: 8,
        };
        peers.introduce(0, architecture, &introduction(architecture));
        (1..999).for_each(|rank| peers.introduce_alike(rank));
        assert!(!peers.is_known(999) && peers.representation(999).is_none());
        peers.introduce(999, Architecture::S390X, &introduction(Architecture::S390X));
        assert_eq!(peers.identities.len(), 2);
        let name = |rank| peers.architecture(rank).map(Architecture::name);
        assert_eq!((name(0), name(998), name(999)), (Some("x86-64"), name(0), Some("s390x")));
        assert_eq!((peers.room(998), peers.form_limit(999)), (9, 8));
        assert!(peers.representation(1000).is_none());
    }

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
