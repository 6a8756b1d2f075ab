//! What an origin knows of the ranks of a window.
//!
//! A window of many ranks has few targets for most of them. So of each rank it keeps a [`Line`], and makes a [`Target`] of it
//! when it is first asked for.

use std::cell::{Cell, OnceCell};
use std::ops::Index;
use std::sync::Arc;

use shipable::Architecture;

use super::directory::{Reading, Turn};
use super::state::Access;
use crate::engine::Measures;
use crate::error::Result;
use crate::group::Group;
use crate::memory::{Exposed, Span};
use crate::route::Route;

/// One rank of a window, and how this rank's epochs and operations on it stand.
pub(super) struct Target {
    /// Its rank in the window's communicator.
    pub rank: u32,
    /// Its rank in the job, by which the engine and the ledger know it.
    pub peer: u32,
    pub measures: Measures,
    pub architecture: Architecture,
    pub route: Route,
    /// Where its memory begins in the segment, if it lies there; of a dynamic window its directory; by [`Route::Rdma`] its key.
    pub offset: Option<u64>,
    pub door: OnceCell<Door>,
    /// What it has attached, once this rank has looked.
    pub reading: OnceCell<Reading>,
    /// What the epoch allows.
    pub access: Cell<Access>,
    /// That of this rank's claim on its lock.
    pub ticket: Cell<u32>,
    /// Its posts that this rank has used up, and its completes.
    pub posts: Cell<u32>,
    pub completes: Cell<u32>,
    /// How many of each this rank has told it of, if it does so directly: to read that there takes as long as to tell.
    pub told: [Cell<u32>; 2],
}

impl Target {
    /// Whether its memory has been reached directly before.
    #[inline]
    pub(super) fn is_near(&self) -> bool {
        self.door.get().is_some() || self.reading.get().is_some()
    }
}

/// A target's memory that an operation reaches directly, for as long as this is held.
pub(super) struct Reached<'a> {
    pub span: Span,
    /// What keeps it attached, if it is.
    pub _turn: Option<Turn<'a>>,
}

/// A target's memory, mapped.
pub(super) struct Door {
    pub span: Span,
    pub _memory: Held,
}

/// What keeps a door's memory.
pub(super) enum Held {
    Mapped { _mapping: Exposed },
    Own { _exposed: Arc<Exposed> },
}

/// What is known of a rank from the window's making on.
pub(super) struct Known {
    pub measures: Measures,
    pub architecture: Architecture,
    pub route: Route,
    pub offset: Option<u64>,
}

/// The ranks of a window, by rank in its communicator.
pub(super) struct Targets {
    lines: Box<[Line]>,
    /// Those that occur.
    architectures: Vec<Architecture>,
    group: Group,
}

/// What is kept of a rank that may never be a target.
struct Line {
    size: u64,
    /// Where its memory begins in the segment; 0, where the header is, if it doesn't lie there. Or its key.
    offset: u64,
    unit: u32,
    /// Among those that occur.
    architecture: u16,
    route: Route,
    target: OnceCell<Box<Target>>,
}

// With the ledger's 16 bytes, and 24 at most in the control block, what a rank costs at the others is small.
const _: () = assert!(size_of::<Line>() <= 32);

impl Targets {
    /// The ranks of a group, of which this is known in their order.
    pub(super) fn new(
        group: &Group,
        known: impl Iterator<Item = Result<Known>>,
    ) -> Result<Targets> {
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
        let lines = lines.collect::<Result<_>>()?;
        Ok(Targets { lines, architectures, group: group.clone() })
    }

    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    /// The ranks reached by a route.
    pub(super) fn by(&self, route: Route) -> impl Iterator<Item = usize> {
        (0..).zip(&self.lines).filter(move |(_, line)| line.route == route).map(|(rank, _)| rank)
    }

    /// The ranks reached directly whose memory, or directory, begins at these offsets of the segment.
    pub(super) fn places(&self) -> impl Iterator<Item = (u32, u64)> {
        let direct = (0..).zip(&self.lines).filter(|(_, line)| line.route == Route::Direct);
        direct.filter(|(_, line)| line.offset > 0).map(|(rank, line)| (rank, line.offset))
    }

    /// The first rank with memory of any bytes.
    pub(super) fn first_sized(&self) -> Option<usize> {
        self.lines.iter().position(|line| line.size > 0)
    }

    #[inline]
    pub(super) fn get(&self, rank: usize) -> Option<&Target> {
        let line = self.lines.get(rank)?;
        Some(match line.target.get() {
            Some(target) => target,
            None => self.meet(rank, line),
        })
    }

    #[cold]
    fn meet<'a>(&self, rank: usize, line: &'a Line) -> &'a Target {
        line.target.get_or_init(|| {
            Box::new(Target {
                rank: rank as u32,
                peer: self.group.process(rank as u32),
                measures: Measures { size: line.size, unit: line.unit },
                architecture: self.architectures[usize::from(line.architecture)],
                route: line.route,
                offset: (line.offset > 0).then_some(line.offset),
                door: OnceCell::new(),
                reading: OnceCell::new(),
                access: Cell::new(Access::Closed),
                ticket: Cell::new(0),
                posts: Cell::new(0),
                completes: Cell::new(0),
                told: Default::default(),
            })
        })
    }
}

impl Index<usize> for Targets {
    type Output = Target;

    fn index(&self, rank: usize) -> &Target {
        let line = &self.lines[rank];
        match line.target.get() {
            Some(target) => target,
            None => self.meet(rank, line),
        }
    }
}
