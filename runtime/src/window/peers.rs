//! The ranks of a window, as one of them sees the others.
//!
//! A window of many ranks has few targets for most of them. So each rank keeps 32 bytes for every
//! other one, and makes a [`Target`] of them when an operation first names that rank.

use std::cell::{Cell, OnceCell};
use std::sync::Arc;

use shipable::Architecture;

use super::directory::Reading;
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
    targets: Box<[Line]>,
    /// The architectures that occur, each once.
    architectures: Vec<Architecture>,
    is_dynamic: bool,
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
    pub route: Route,
    pub location: Location,
    /// Equal for two targets of one window if the same operations are valid on both: [`DIRECT`], or
    /// a number of their route and architecture.
    pub class: u64,
    /// Its memory, once this rank has mapped it.
    pub mapping: OnceCell<Mapping>,
    /// The attachments of a dynamic window, once this rank has read them.
    pub reading: OnceCell<Reading>,
    /// Whether the current epoch allows operations on it.
    pub access: Cell<Access>,
    /// The ticket of this rank's claim on its lock.
    pub ticket: Cell<u32>,
    /// The posts of the target that this rank has used up, and its completes.
    pub posts: Cell<u32>,
    pub completes: Cell<u32>,
    /// The posts and completes that this rank has signalled to it through the control block. They
    /// are kept here, since reading them back takes as long as signalling.
    pub signalled: [Cell<u32>; 2],
}

/// The class of all targets that are reached directly: they have this rank's representation.
pub(super) const DIRECT: u64 = 0;

/// Where a target's memory lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Location {
    /// In memory that this rank can't map.
    Private,
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
    pub route: Route,
    /// The memory's, or the directory's, offset in the segment; by [`Route::Rdma`] its key.
    pub offset: Option<u64>,
}

/// The facts about a rank that no operation has named yet.
struct Line {
    size: u64,
    /// As [`Known::offset`]; 0, the segment's header, stands for none.
    offset: u64,
    unit: u32,
    /// An index into the window's architectures.
    architecture: u16,
    route: Route,
    target: OnceCell<Box<Target>>,
}

// With the ledger's 16 bytes and at most 24 in the control block, a rank costs its peers little.
const _: () = assert!(size_of::<Line>() <= 32);

impl Peers {
    /// The ranks of a communicator, with the facts about each in their order.
    pub(super) fn new(
        communicator: &Communicator,
        known: impl Iterator<Item = Result<Known>>,
        is_dynamic: bool,
        control: Arc<Control>,
        meeting: Meeting,
    ) -> Result<Peers> {
        let mut architectures: Vec<Architecture> = Vec::new();
        let lines = known.map(|known| {
            let Known { measures, architecture, route, offset } = known?;
            // There are few, and neighbours are mostly alike.
            let same = |seen: &Architecture| {
                seen.name() == architecture.name() && seen.same_representation(&architecture)
            };
            let at = architectures.iter().rposition(same).unwrap_or_else(|| {
                architectures.push(architecture);
                architectures.len() - 1
            });
            let (Measures { size, unit }, architecture) = (measures, at as u16);
            let offset = offset.unwrap_or(0);
            Ok(Line { size, offset, unit, architecture, route, target: OnceCell::new() })
        });
        let targets = lines.collect::<Result<_>>()?;
        let communicator = communicator.share();
        Ok(Peers { communicator, targets, architectures, is_dynamic, control, meeting })
    }

    pub(super) fn communicator(&self) -> &Communicator {
        &self.communicator
    }

    /// The words in shared memory by which the ranks lock, post and complete.
    #[inline]
    pub(super) fn control(&self) -> &Control {
        &self.control
    }

    /// Waits until all ranks of the window with this number have called it.
    pub(super) fn meet(&self, window: u32) -> Result<()> {
        self.communicator.meet_at(&self.meeting, window)
    }

    /// The ranks that an operation or synchronisation of this rank has named.
    pub(super) fn named(&self) -> impl Iterator<Item = &Target> {
        self.targets.iter().filter_map(|line| line.target.get().map(|target| &**target))
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
        let line = &self.targets[rank as usize];
        match line.target.get() {
            Some(target) => target,
            None => self.make(rank as usize, line),
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
        let own = self.control.rank() as usize;
        self.targets.iter().enumerate().any(|(rank, line)| line.route == route && rank != own)
    }

    /// The number of ranks reached by a route.
    pub(super) fn count_by(&self, route: Route) -> usize {
        self.targets.iter().filter(|line| line.route == route).count()
    }

    /// The other ranks reached directly whose memory, or directory, begins at these offsets of the
    /// segment.
    pub(super) fn direct_offsets(&self) -> impl Iterator<Item = (u32, u64)> {
        let own = self.control.rank();
        let direct = (0..).zip(&self.targets).filter(|(_, line)| line.route == Route::Direct);
        let offsets = direct.filter(|(_, line)| line.offset > 0);
        offsets.map(|(rank, line)| (rank, line.offset)).filter(move |(rank, _)| *rank != own)
    }

    /// The first rank whose memory isn't empty.
    pub(super) fn first_sized(&self) -> Option<u32> {
        self.targets.iter().position(|line| line.size > 0).map(|rank| rank as u32)
    }

    #[inline]
    fn at(&self, rank: usize) -> Option<&Target> {
        let line = self.targets.get(rank)?;
        Some(match line.target.get() {
            Some(target) => target,
            None => self.make(rank, line),
        })
    }

    #[cold]
    fn make<'a>(&self, rank: usize, line: &'a Line) -> &'a Target {
        line.target.get_or_init(|| {
            Box::new(Target {
                rank: rank as u32,
                peer: self.control.group().process(rank as u32),
                measures: Measures { size: line.size, unit: line.unit },
                architecture: self.architectures[usize::from(line.architecture)],
                route: line.route,
                location: self.location(line),
                class: match line.route {
                    Route::Direct => DIRECT,
                    route => {
                        1 + (u64::from(line.architecture) << 1 | (route == Route::Rdma) as u64)
                    }
                },
                mapping: OnceCell::new(),
                reading: OnceCell::new(),
                access: Cell::new(Access::Closed),
                ticket: Cell::new(0),
                posts: Cell::new(0),
                completes: Cell::new(0),
                signalled: Default::default(),
            })
        })
    }

    fn location(&self, line: &Line) -> Location {
        match (line.offset, line.route) {
            (0, _) => Location::Private,
            (key, Route::Rdma) => Location::Registered(key),
            (offset, _) if self.is_dynamic => Location::Directory(offset),
            (offset, _) => Location::Segment(offset),
        }
    }
}

impl Target {
    /// Whether this rank uses the target's control block itself. The route decides it, so that a
    /// lock, a post or a complete arrives after the operations before it.
    #[inline]
    pub(super) fn shares_control(&self) -> bool {
        matches!(self.route, Route::Direct)
    }

    /// The key under which its memory is registered with the network, if it is.
    #[inline]
    pub(super) fn key(&self) -> Option<u64> {
        match self.location {
            Location::Registered(key) => Some(key),
            Location::Private | Location::Segment(_) | Location::Directory(_) => None,
        }
    }
}
