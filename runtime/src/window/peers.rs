//! The ranks of a window, as one of them sees the others.
//!
//! A window of many ranks has few targets for most of them. So each rank keeps a pointer for every
//! other one, and the facts about runs of like ranks once. It makes a [`Target`] of them when an
//! operation first names a rank.

use std::cell::{Cell, OnceCell};
use std::ops::Range;
use std::sync::Arc;

use shipable::Architecture;

use super::directory::Reading;
use super::sites::Sites;
use super::state::Access;
use crate::communicator::Communicator;
use crate::control::Control;
use crate::engine::Measures;
use crate::error::{ErrorKind, Result};
use crate::group::Group;
use crate::memory::{Exposed, Span};
use crate::process::Meeting;
use crate::route::Route;

/// The ranks of a window: who they are, and how they meet and signal each other.
pub(super) struct Peers {
    communicator: Communicator,
    targets: Box<[OnceCell<Box<Target>>]>,
    facts: Facts,
    is_dynamic: bool,
    /// The representations of the unlike ranks that this rank reaches directly. An attempt asks no
    /// type for its relation, so the memo keeps only types for it that are equal in all of these.
    kinds: Box<[Architecture]>,
    /// Whether some rank but this one has the direct route, or that of peer memory.
    is_shared: bool,
    control: Arc<Control>,
    meeting: Meeting,
}

/// A rank of a window as a target of operations, and the state of this rank's epochs on it.
pub(super) struct Target {
    /// Its rank in the window's communicator.
    pub rank: u32,
    /// Its rank in the job, by which the engine and the ledger know it.
    pub peer: u32,
    pub measures: Measures,
    pub architecture: Architecture,
    /// Whether all data have the same bytes there as here. Otherwise each operation asks its types.
    pub alike: bool,
    pub route: Route,
    pub location: Location,
    /// Whether messages to it may go by its mailbox: it is another rank of this host that may have
    /// private memory in the window, it is related, and ranks poll.
    pub has_mailbox: bool,
    /// Under `--check`, the bytes from the last multiple of
    /// [`LINE`](crate::check::alignment::LINE) to its memory, unless the window is dynamic.
    pub lead: u8,
    /// Equal for two targets of one window if the same operations are valid on both.
    pub class: Class,
    /// Its memory, once this rank has mapped it.
    pub mapping: OnceCell<Mapping>,
    /// The attachments of a dynamic window, once this rank has read them.
    pub reading: OnceCell<Reading>,
    pub epochs: Epochs,
    /// The source lines of operations on it that the engine has.
    pub sites: Sites,
}

/// The state of this rank's epochs on another one.
pub(super) struct Epochs {
    /// Whether the current epoch allows operations.
    pub access: Cell<Access>,
    /// The ticket of this rank's claim on the lock.
    pub ticket: Cell<u32>,
    pub tallies: Tallies,
}

/// The posts and completes between this rank and another one, by [`Tally`].
#[derive(Default)]
pub(super) struct Tallies {
    /// Those of the other rank that this rank has used up.
    pub used: [Cell<u32>; 2],
    /// Those that this rank has signalled to it through the control block. They are kept here,
    /// since reading them back takes as long as signalling.
    pub signalled: [Cell<u32>; 2],
}

/// What decides whether the operations that are valid on one target are valid on another of the
/// same window, and carried out alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// It is reached directly, and is like this rank.
    Direct,
    /// It is like this rank, and the operations are on attachments in its private memory, which go
    /// as those by [`Route::Peer`] do.
    Private,
    /// The operations are on attachments in its private memory, and it isn't like this rank: the
    /// number of [`Class::Apart`]. What is copied there may be converted elsewhere.
    PrivateApart(u32),
    /// It is reached by another route, or may have another architecture: a number of both.
    Apart(u32),
    /// It built the foreign type of the operation, and has this rank in the job.
    Builder(u32),
}

/// Where a target's memory lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Location {
    /// In memory that this rank can't map.
    Private,
    /// In the private memory of another process of this host, from this address on.
    Process(u64),
    /// In the segment of this rank's host, from this offset on.
    Segment(u64),
    /// In attachments, whose directory begins at this offset of the segment.
    Directory(u64),
    /// In memory registered with the network under this key.
    Registered(u64),
}

/// A target's memory, mapped into this process.
pub(super) struct Mapping {
    pub span: Span,
    pub _memory: Mapped,
}

/// The owner that keeps a mapping's memory alive.
pub(super) enum Mapped {
    Peer { _mapping: Exposed },
    Own { _exposed: Arc<Exposed> },
}

/// The facts about a rank that all ranks learn when the window is made.
pub(super) struct Known {
    pub measures: Measures,
    pub architecture: Architecture,
    /// As [`Target::alike`].
    pub alike: bool,
    pub route: Route,
    /// The memory's, or the directory's, offset in the segment; by [`Route::Peer`] its address, and
    /// by [`Route::Rdma`] its key.
    pub offset: Option<u64>,
    /// As [`Target::has_mailbox`].
    pub has_mailbox: bool,
    /// As [`Target::lead`].
    pub lead: u8,
}

/// The facts about all ranks of a window.
#[derive(Default)]
struct Facts {
    /// Consecutive ranks that are alike.
    runs: Vec<Fact>,
    /// As [`Known::offset`], from the first rank that has one to the last. 0, the segment's header,
    /// stands for none.
    offsets: Vec<u64>,
    /// The first rank that has an offset.
    first_offset: u32,
    /// The architectures that occur, each once.
    architectures: Vec<Architecture>,
    ranks: u32,
}

/// What ranks of a run have in common.
#[derive(Clone, Copy, PartialEq)]
struct Fact {
    /// The first of them.
    first: u32,
    size: u64,
    unit: u32,
    /// An index into the architectures.
    architecture: u16,
    alike: bool,
    route: Route,
    has_mailbox: bool,
    lead: u8,
}

// Even where no two ranks are alike, a rank costs its peers little.
const _: () = assert!(size_of::<Fact>() <= 24);

impl Facts {
    /// Adds the facts about the next rank.
    fn push(&mut self, known: Known) {
        let Known { measures, architecture, alike, route, offset, has_mailbox, lead } = known;
        // There are few, and neighbours are mostly alike.
        let same = |seen: &Architecture| {
            seen.name() == architecture.name() && seen.same_representation(&architecture)
        };
        let at = self.architectures.iter().rposition(same).unwrap_or_else(|| {
            self.architectures.push(architecture);
            self.architectures.len() - 1
        });
        let Measures { size, unit } = measures;
        let (first, architecture) = (self.ranks, at as u16);
        let fact = Fact { first, size, unit, architecture, alike, route, has_mailbox, lead };
        if self.runs.last().is_none_or(|last| *last != Fact { first: last.first, ..fact }) {
            self.runs.push(fact);
        }
        if let Some(offset) = offset {
            if self.offsets.is_empty() {
                self.first_offset = self.ranks;
            }
            self.offsets.resize((self.ranks - self.first_offset) as usize, 0);
            self.offsets.push(offset);
        }
        self.ranks += 1;
    }

    /// The facts about a rank, and its offset.
    fn of(&self, rank: u32) -> (Fact, u64) {
        let after = self.runs.partition_point(|fact| fact.first <= rank);
        (self.runs[after - 1], self.offset(rank))
    }

    /// A rank's offset; 0 if it has none.
    fn offset(&self, rank: u32) -> u64 {
        let at = rank.checked_sub(self.first_offset);
        at.and_then(|at| self.offsets.get(at as usize).copied()).unwrap_or(0)
    }

    /// The representations of unlike ranks that are reached directly.
    fn kinds(&self) -> Box<[Architecture]> {
        let mut kinds = vec![false; self.architectures.len()];
        let unlike = |fact: &&Fact| fact.route == Route::Direct && !fact.alike;
        for fact in self.runs.iter().filter(unlike) {
            kinds[usize::from(fact.architecture)] = true;
        }
        let all = self.architectures.iter().zip(kinds);
        all.filter(|(_, is_unlike)| *is_unlike).map(|(architecture, _)| *architecture).collect()
    }

    /// Whether some rank but `own` is reached by a route.
    fn has_other_by(&self, route: Route, own: u32) -> bool {
        let mut by_route = self.runs().filter(|(_, fact)| fact.route == route);
        by_route.any(|(ranks, _)| ranks != (own..own + 1))
    }

    /// The runs of like ranks.
    fn runs(&self) -> impl Iterator<Item = (Range<u32>, &Fact)> {
        let ends = self.runs.iter().skip(1).map(|fact| fact.first).chain([self.ranks]);
        self.runs.iter().zip(ends).map(|(fact, end)| (fact.first..end, fact))
    }
}

impl Peers {
    /// The ranks of a communicator, with the facts about each in their order.
    pub(super) fn new(
        communicator: &Communicator,
        known: impl Iterator<Item = Result<Known>>,
        is_dynamic: bool,
        control: Arc<Control>,
        meeting: Meeting,
    ) -> Result<Peers> {
        let mut facts = Facts::default();
        for known in known {
            facts.push(known?);
        }
        facts.offsets.shrink_to_fit();
        let targets = (0..facts.ranks).map(|_| OnceCell::new()).collect();
        let by = |route| facts.has_other_by(route, control.rank());
        let is_shared = by(Route::Direct) || by(Route::Peer);
        let communicator = communicator.share();
        let kinds = facts.kinds();
        Ok(Peers { communicator, targets, facts, is_dynamic, kinds, is_shared, control, meeting })
    }

    pub(super) fn communicator(&self) -> &Communicator {
        &self.communicator
    }

    /// The representations of the unlike ranks that this rank reaches directly.
    #[inline]
    pub(super) fn kinds(&self) -> &[Architecture] {
        &self.kinds
    }

    /// The words in shared memory by which the ranks lock, post and complete.
    #[inline]
    pub(super) fn control(&self) -> &Control {
        &self.control
    }

    /// Waits until all ranks of the window with this number have called it.
    #[inline]
    pub(super) fn meet(&self, window: u32) -> Result<()> {
        self.communicator.meet_at(&self.meeting, window)
    }

    /// The ranks that an operation or synchronisation of this rank has named.
    pub(super) fn named(&self) -> impl Iterator<Item = &Target> {
        self.targets.iter().filter_map(OnceCell::get).map(|target| &**target)
    }

    /// The number of ranks.
    pub(super) fn len(&self) -> usize {
        self.targets.len()
    }

    /// The target with a rank of the window's communicator; `None` for any other number.
    #[inline]
    pub(super) fn get(&self, rank: i32) -> Option<&Target> {
        self.at(usize::try_from(rank).ok()?)
    }

    /// The target with a rank of the window's communicator, if an operation or a lock has named it
    /// before. An attempt asks for it so, since no other function is called for it.
    #[inline]
    pub(super) fn known(&self, rank: i32) -> Option<&Target> {
        // No window has so many ranks that it has one with the number of a negative one.
        Some(self.targets.get(rank as u32 as usize)?.get()?)
    }

    /// The target with a rank of the window's communicator; `None` for PROC_NULL (rule 27).
    ///
    /// # Errors
    /// RANK for any other number.
    #[inline]
    pub(super) fn target(&self, rank: i32) -> Result<Option<&Target>> {
        match self.get(rank) {
            Some(target) => Ok(Some(target)),
            None => self.communicator.member(rank).map(|_| None),
        }
    }

    /// The target with a rank of the window's communicator, for calls that refuse PROC_NULL.
    ///
    /// # Errors
    /// RANK.
    #[inline]
    pub(super) fn existing(&self, rank: i32) -> Result<&Target> {
        let size = self.targets.len() as u32;
        self.get(rank).ok_or_else(|| ErrorKind::Rank { rank, size, null: false }.into())
    }

    /// The target with a rank that this window is known to have.
    #[inline]
    pub(super) fn of(&self, rank: u32) -> &Target {
        match self.targets[rank as usize].get() {
            Some(target) => target,
            None => self.make(rank),
        }
    }

    /// This rank's number in the window.
    #[inline]
    pub(super) fn rank(&self) -> u32 {
        self.control.rank()
    }

    /// This rank itself as a target.
    #[inline]
    pub(super) fn own(&self) -> &Target {
        self.of(self.control.rank())
    }

    /// Whether a target is this rank.
    #[inline]
    pub(super) fn is_own(&self, target: &Target) -> bool {
        target.rank == self.control.rank()
    }

    /// The rank in the job of a rank of the window.
    pub(super) fn process(&self, rank: u32) -> u32 {
        self.control.group().process(rank)
    }

    /// The ranks in the window of a group's processes.
    ///
    /// # Errors
    /// GROUP for a process that the window doesn't have.
    pub(super) fn members(&self, group: &Group) -> Result<Vec<u32>> {
        let window = self.control.group();
        let rank = |&process: &u32| {
            window.rank_of(process).ok_or_else(|| ErrorKind::Outside { process }.into())
        };
        group.processes().iter().map(rank).collect()
    }

    /// Whether some rank but this one is reached by a route.
    pub(super) fn has_other_by(&self, route: Route) -> bool {
        self.facts.has_other_by(route, self.control.rank())
    }

    /// Whether some rank but this one uses this rank's control block itself; see
    /// [`Target::shares_control`].
    #[inline]
    pub(super) fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// The number of ranks reached by a route.
    pub(super) fn count_by(&self, route: Route) -> usize {
        self.facts
            .runs()
            .filter(|(_, fact)| fact.route == route)
            .map(|(ranks, _)| ranks.len())
            .sum()
    }

    /// The other ranks reached directly whose memory, or directory, begins at these offsets of the
    /// segment.
    pub(super) fn direct_offsets(&self) -> impl Iterator<Item = (u32, u64)> {
        let own = self.control.rank();
        let direct = self.facts.runs().filter(|(_, fact)| fact.route == Route::Direct);
        let ranks = direct.flat_map(|(ranks, _)| ranks);
        let offsets = ranks.map(|rank| (rank, self.facts.offset(rank)));
        offsets.filter(move |(rank, offset)| *offset > 0 && *rank != own)
    }

    /// The first rank whose memory isn't empty.
    pub(super) fn first_sized(&self) -> Option<u32> {
        self.facts.runs().find(|(_, fact)| fact.size > 0).map(|(ranks, _)| ranks.start)
    }

    #[inline]
    fn at(&self, rank: usize) -> Option<&Target> {
        Some(match self.targets.get(rank)?.get() {
            Some(target) => target,
            None => self.make(rank as u32),
        })
    }

    #[cold]
    fn make(&self, rank: u32) -> &Target {
        self.targets[rank as usize].get_or_init(|| {
            let (fact, offset) = self.facts.of(rank);
            let Fact { size, unit, architecture, alike, route, has_mailbox, lead, .. } = fact;
            Box::new(Target {
                rank,
                peer: self.control.group().process(rank),
                measures: Measures { size, unit },
                architecture: self.facts.architectures[usize::from(architecture)],
                alike,
                route,
                location: self.location(offset, route),
                has_mailbox,
                lead,
                class: match route {
                    Route::Direct if alike => Class::Direct,
                    route => Class::Apart(u32::from(architecture) << 2 | route as u32),
                },
                mapping: OnceCell::new(),
                reading: OnceCell::new(),
                epochs: Epochs {
                    access: Cell::new(Access::Closed),
                    ticket: Cell::new(0),
                    tallies: Tallies::default(),
                },
                sites: Sites::default(),
            })
        })
    }

    fn location(&self, offset: u64, route: Route) -> Location {
        match (offset, route) {
            (0, _) => Location::Private,
            (address, Route::Peer) => Location::Process(address),
            (key, Route::Rdma) => Location::Registered(key),
            (offset, _) if self.is_dynamic => Location::Directory(offset),
            (offset, _) => Location::Segment(offset),
        }
    }
}

impl Class {
    /// The class of operations on attachments in private memory of a target of this class.
    #[inline]
    fn private(self) -> Class {
        match self {
            Class::Direct => Class::Private,
            Class::Apart(number) => Class::PrivateApart(number),
            class => class,
        }
    }

    /// Whether the operations are on attachments in private memory.
    #[inline]
    pub(super) fn is_private(self) -> bool {
        matches!(self, Class::Private | Class::PrivateApart(_))
    }
}

impl Target {
    /// Whether this rank uses the target's control block itself. The route decides it, so that a
    /// lock, a post or a complete arrives after the operations before it.
    #[inline]
    pub(super) fn shares_control(&self) -> bool {
        matches!(self.route, Route::Direct | Route::Peer)
    }

    /// The class of operations at a displacement. A dynamic window has attachments of two classes.
    #[inline]
    pub(super) fn class_at(&self, displacement: i64) -> Class {
        match self.reading.get() {
            Some(reading) if reading.expects_private(displacement as u64) => self.class.private(),
            _ => self.class,
        }
    }

    /// The key under which its memory is registered with the network, if it is.
    #[inline]
    pub(super) fn key(&self) -> Option<u64> {
        match self.location {
            Location::Registered(key) => Some(key),
            Location::Private
            | Location::Process(_)
            | Location::Segment(_)
            | Location::Directory(_) => None,
        }
    }

    /// The address of its memory in another process of this host, if that is where it lies.
    #[inline]
    pub(super) fn address(&self) -> Option<u64> {
        match self.location {
            Location::Process(address) => Some(address),
            Location::Private
            | Location::Segment(_)
            | Location::Directory(_)
            | Location::Registered(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An operation that the memo knows for one class is carried out alike on all of its targets.
    #[test]
    fn private_attachments_of_unlike_ranks_are_classes_of_their_own() {
        let [x86_64, i686] = [7, 11].map(Class::Apart);
        let all = [Class::Direct, x86_64, i686];
        for (one, class) in all.into_iter().enumerate() {
            assert!(!class.is_private() && class.private().is_private());
            for (other, another) in all.into_iter().enumerate() {
                assert_eq!(class.private() == another.private(), one == other);
            }
        }
    }

    #[test]
    fn facts_are_kept_once_for_runs_of_like_ranks() {
        let known = |size, route, offset: Option<u64>| Known {
            measures: Measures { size, unit: 8 },
            architecture: Architecture::X86_64,
            alike: true,
            route,
            offset,
            has_mailbox: false,
            lead: 0,
        };
        let mut facts = Facts::default();
        (0..500).for_each(|_| facts.push(known(64, Route::Message, None)));
        facts.push(known(64, Route::Direct, Some(4096)));
        (0..498).for_each(|_| facts.push(known(64, Route::Message, None)));
        facts.push(known(0, Route::Message, None));
        assert_eq!((facts.runs.len(), facts.ranks, facts.offsets.len()), (4, 1000, 1));
        let of = |rank| facts.of(rank);
        assert_eq!((of(499).0.route, of(499).1), (Route::Message, 0));
        assert_eq!((of(500).0.route, of(500).1), (Route::Direct, 4096));
        assert_eq!((of(501).0.route, of(501).1), (Route::Message, 0));
        assert_eq!((of(998).0.size, of(999).0.size), (64, 0));
        let runs: Vec<_> = facts.runs().map(|(ranks, _)| ranks).collect();
        assert_eq!(runs, [0..500, 500..501, 501..999, 999..1000]);
    }
}
