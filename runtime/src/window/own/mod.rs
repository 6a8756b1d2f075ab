//! The memory of a window: this rank's own, and how operations reach a target's directly.

mod attach;

use std::any::TypeId;
use std::cell::Cell;
use std::sync::Arc;

use longshore_transport::{Range, Segment};

use super::directory::{Attached, Directory, Reading, Turn};
use super::part::Part;
use super::peers::{Location, Mapped, Mapping, Target};
use crate::engine::{Attachments, Measures};
use crate::error::{ErrorKind, Result};
use crate::flavor::Flavor;
use crate::memory::{Exposed, Span};
use crate::route::Route;

pub(super) use attach::find_pointed;

/// A window's memory at one rank.
pub(super) struct OwnMemory {
    segment: Segment,
    flavor: Flavor,
    /// This rank's number in the window.
    rank: u32,
    measures: Measures,
    exposed: Arc<Exposed>,
    /// The memory of all ranks, if they share it.
    whole: Option<Whole>,
    dynamic: Option<Dynamic>,
    /// The ranges that this rank allocated in the segment.
    ranges: Vec<Range>,
    /// Whether elements of the Rust type that was last asked for lie in a window as in slices.
    plain: Cell<Option<(TypeId, bool)>>,
}

/// The memory that the ranks of a shared window share, mapped.
pub(super) struct Whole {
    /// Where it begins in the segment.
    pub offset: u64,
    pub exposed: Exposed,
}

/// The attachments of a dynamic window.
pub(super) struct Dynamic {
    pub attachments: Arc<Attachments>,
    /// The attachments that other ranks reach directly, if there are related ranks.
    pub directory: Option<Directory>,
}

/// The parts from which a window's memory is made.
pub(super) struct Made {
    pub flavor: Flavor,
    pub rank: u32,
    pub measures: Measures,
    pub exposed: Arc<Exposed>,
    pub whole: Option<Whole>,
    pub dynamic: Option<Dynamic>,
}

/// How an operation reaches a target's memory without the target.
pub(super) enum Reach<'a> {
    /// The memory is mapped.
    Mapped(Reached<'a>),
    /// The system may copy it: it is attached, and in the target's private memory. Displacements
    /// are addresses there. It stays attached until the turn ends.
    Private(Turn<'a>),
    /// Only messages reach it, or nothing does.
    Unknown,
}

/// A target's memory that an operation reaches directly while this value exists.
pub(super) struct Reached<'a> {
    pub span: Span,
    /// Keeps attached memory attached.
    pub _turn: Option<Turn<'a>>,
}

impl OwnMemory {
    pub(super) fn new(segment: &Segment, made: Made) -> OwnMemory {
        let Made { flavor, rank, measures, exposed, whole, dynamic } = made;
        let (segment, ranges, plain) = (segment.clone(), Vec::new(), Cell::new(None));
        OwnMemory { segment, flavor, rank, measures, exposed, whole, dynamic, ranges, plain }
    }

    /// Takes over the ranges that this rank allocated in the segment for the window.
    pub(super) fn keep(&mut self, ranges: Vec<Range>) {
        self.ranges = ranges;
    }

    pub(super) fn flavor(&self) -> Flavor {
        self.flavor
    }

    pub(super) fn measures(&self) -> Measures {
        self.measures
    }

    /// This rank's memory; that of a dynamic window is empty.
    pub(super) fn span(&self) -> Span {
        self.exposed.span()
    }

    /// The attachments of a dynamic window.
    pub(super) fn attachments(&self) -> Option<&Arc<Attachments>> {
        self.dynamic.as_ref().map(|dynamic| &dynamic.attachments)
    }

    /// Refuses a call on a window of another flavor (rule 16).
    pub(super) fn check_flavor(&self, call: &'static str, wanted: Flavor) -> Result<()> {
        match self.flavor {
            flavor if flavor == wanted => Ok(()),
            flavor => Err(ErrorKind::Flavor { call, flavor, wanted }.into()),
        }
    }

    /// Whether elements of a Rust type lie in a window as in slices. `find` answers it for a type
    /// that wasn't the last one.
    #[inline]
    pub(super) fn is_plain(&self, element: TypeId, find: impl FnOnce() -> bool) -> bool {
        match self.plain.get() {
            Some((last, is_plain)) if last == element => is_plain,
            _ => {
                let is_plain = find();
                self.plain.set(Some((element, is_plain)));
                is_plain
            }
        }
    }

    /// A rank's part of the memory that the ranks share.
    ///
    /// # Errors
    /// RMA_SHARED where the part lies outside of it.
    pub(super) fn part(&self, target: &Target) -> Result<Exposed> {
        let part = || {
            let (whole, Location::Segment(offset)) = (self.whole.as_ref()?, target.location) else {
                return None;
            };
            whole.exposed.part(offset.checked_sub(whole.offset)?, target.measures.size)
        };
        let outside = || format!("rank {}'s part lies outside of what is shared", target.peer);
        part().ok_or_else(|| ErrorKind::NotShared(outside()).into())
    }

    /// The memory of a rank from which this rank can load: its own, its part of a shared window, or
    /// memory of a like rank that it reaches directly. Otherwise it is empty.
    ///
    /// # Errors
    /// The memory can't be mapped.
    pub(super) fn loadable(&self, target: &Target) -> Result<Span> {
        let is_near = matches!(target.location, Location::Segment(_))
            && target.route == Route::Direct
            && target.alike
            && target.measures.size > 0;
        match self.flavor {
            Flavor::Shared => Ok(self.part(target)?.span()),
            Flavor::Dynamic => Ok(Span::EMPTY),
            _ if target.rank == self.rank => Ok(self.span()),
            _ if is_near => self.map(target),
            _ => Ok(Span::EMPTY),
        }
    }

    /// How these bytes of a directly reached target's window are reached. [`Reach::Unknown`] where
    /// all of them aren't in one attachment that the target's directory lists.
    ///
    /// # Errors
    /// The memory can't be mapped.
    pub(super) fn reach(&self, target: &Target, (start, end): (i128, i128)) -> Result<Reach<'_>> {
        if self.dynamic.is_none() {
            let span = self.map(target)?;
            return Ok(Reach::Mapped(Reached { span, _turn: None }));
        }
        let (Ok(start), Ok(end)) = (i64::try_from(start), i64::try_from(end)) else {
            return Ok(Reach::Unknown);
        };
        Ok(match self.attached(target, start) {
            Some((Attached::Mapped(span), turn)) if span.covers(start, end) => {
                Reach::Mapped(Reached { span, _turn: Some(turn) })
            }
            Some((Attached::Private(last), turn)) if end as u64 <= last => Reach::Private(turn),
            _ => Reach::Unknown,
        })
    }

    /// The attachment of a target that has this address, if this rank reaches it directly.
    /// Displacements in it are addresses.
    pub(super) fn reach_address(&self, target: &Target, address: i64) -> Option<Reached<'_>> {
        match self.attached(target, address)? {
            (Attached::Mapped(span), turn) => Some(Reached { span, _turn: Some(turn) }),
            (Attached::Private(_), _) => None,
        }
    }

    /// The attachment of a target that has this address, if the target's directory lists it, and
    /// the turn in which it stays.
    #[inline]
    fn attached(&self, target: &Target, address: i64) -> Option<(Attached, Turn<'_>)> {
        let directory = self.dynamic.as_ref()?.directory.as_ref()?;
        let reading = self.reading(target)?;
        let turn = directory.turn();
        let attached = reading.find(&turn, u64::try_from(address).ok()?)?;
        Some((attached, turn))
    }

    /// A target's directory, opened on first use.
    fn reading<'a>(&self, target: &'a Target) -> Option<&'a Reading> {
        match (target.reading.get(), target.location) {
            (Some(reading), _) => Some(reading),
            (None, Location::Directory(offset)) => {
                // A directory that can't be mapped is left to messages.
                let reading = Reading::new(&self.segment, offset).ok()?;
                Some(target.reading.get_or_init(|| reading))
            }
            _ => None,
        }
    }

    /// A directly reached target's memory, mapped on first use.
    fn map(&self, target: &Target) -> Result<Span> {
        if let Some(mapping) = target.mapping.get() {
            return Ok(mapping.span);
        }
        let peer = |exposed: Exposed| {
            let span = exposed.span();
            Mapping { span, _memory: Mapped::Peer { _mapping: exposed } }
        };
        let mapping = match target.location {
            Location::Segment(_) if self.whole.is_some() => peer(self.part(target)?),
            Location::Segment(offset) if target.rank != self.rank => {
                peer(Part { offset, len: target.measures.size }.map(&self.segment)?)
            }
            _ => Mapping {
                span: self.exposed.span(),
                _memory: Mapped::Own { _exposed: self.exposed.clone() },
            },
        };
        Ok(target.mapping.get_or_init(|| mapping).span)
    }

    /// Ends the window's memory when no peer reaches it any more. All targets must be dropped
    /// before. Returns the memory, unless an operation still holds it, where the program had it.
    ///
    /// # Errors
    /// The segment's, after all ranges were freed.
    pub(super) fn close(self) -> Result<Option<Exposed>> {
        let OwnMemory { segment, exposed, whole, dynamic, ranges, .. } = self;
        let cleared = dynamic.map_or_else(Vec::new, |dynamic| {
            let ranges = dynamic.attachments.clear();
            drop(dynamic.directory);
            ranges
        });
        drop(whole);
        // The bytes move out of a range that is freed here.
        let exposed = Arc::into_inner(exposed).map(Exposed::moved_back);
        let ranges = ranges.into_iter().chain(cleared);
        let freed: Vec<_> = ranges.map(|range| segment.free(range)).collect();
        freed.into_iter().collect::<Result<Vec<()>, _>>()?;
        Ok(exposed)
    }
}
