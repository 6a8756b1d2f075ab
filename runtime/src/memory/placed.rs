//! Memory of the segment that a program asked for, outside of any window.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use longshore_transport::{Range, Segment};

use super::cover::Cover;
use super::exposed::Exposed;
use super::mappings::Mappings;
use super::pages::Pages;
use super::span::Span;

/// An allocation in the segment. It is given up when dropped.
pub(crate) struct Placed {
    segment: Segment,
    range: Range,
    /// Where its first byte lies in the segment.
    offset: u64,
    memory: Span,
    ground: Ground,
    /// The process that allocated it: a forked child must not free it.
    pid: u32,
}

/// How an allocation is mapped.
enum Ground {
    Mapped {
        _memory: Exposed,
    },
    /// In the place of pages of the program's.
    Cover(Cover),
}

impl Placed {
    /// Takes over a range of the segment, in which the memory begins at `offset`.
    pub(crate) fn new(segment: &Segment, range: Range, offset: u64, memory: Exposed) -> Placed {
        let (span, ground) = (memory.span(), Ground::Mapped { _memory: memory });
        Placed::with(segment, range, offset, span, ground)
    }

    /// Moves pages of a program's to a range of the segment that has their length, which takes
    /// their place. `None` where that isn't safe: the range isn't taken over then.
    pub(crate) fn over(
        segment: &Segment,
        range: Range,
        pages: &Pages,
        mappings: &Mappings,
    ) -> Option<Placed> {
        let cover = Cover::over(segment, range.offset, pages, mappings)?;
        Some(Placed::with(segment, range, range.offset, pages.span, Ground::Cover(cover)))
    }

    fn with(segment: &Segment, range: Range, offset: u64, memory: Span, ground: Ground) -> Placed {
        let (segment, pid) = (segment.clone(), std::process::id());
        Placed { segment, range, offset, memory, ground, pid }
    }

    pub(crate) fn span(&self) -> Span {
        self.memory
    }

    /// Where this memory lies in the segment, if all of it is in the allocation.
    fn offset_of(&self, memory: Span) -> Option<u64> {
        let own = self.span();
        let into = memory.start().addr().checked_sub(own.start().addr())? as u64;
        let has = memory.len() <= own.len().checked_sub(into)?;
        (has && self.is_in_place()).then_some(self.offset + into)
    }

    /// Whether its addresses are still those of the segment's pages. A program that frees memory
    /// under a window may have other memory there.
    fn is_in_place(&self) -> bool {
        match &self.ground {
            Ground::Mapped { .. } => true,
            Ground::Cover(cover) => cover.is_whole(&Mappings::read()),
        }
    }
}

impl Drop for Placed {
    fn drop(&mut self) {
        if std::process::id() != self.pid {
            return;
        }
        let is_unused = match &self.ground {
            Ground::Mapped { .. } => true,
            Ground::Cover(cover) => cover.lift(),
        };
        if is_unused {
            // Nobody is there to hear of an error. The range stays allocated then.
            let _ = self.segment.free(self.range);
        }
    }
}

/// The allocations of a rank in the segment, by their addresses.
#[derive(Default)]
pub(crate) struct Places(Mutex<BTreeMap<usize, Weak<Placed>>>);

impl Places {
    fn all(&self) -> MutexGuard<'_, BTreeMap<usize, Weak<Placed>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes an allocation known.
    pub(crate) fn add(&self, placed: &Arc<Placed>) {
        let mut all = self.all();
        all.retain(|_, placed| placed.strong_count() > 0);
        all.insert(placed.span().start().addr(), Arc::downgrade(placed));
    }

    /// The allocation that has all of this memory, and where the memory lies in the segment.
    pub(crate) fn find(&self, memory: Span) -> Option<(Arc<Placed>, u64)> {
        let all = self.all();
        let (_, placed) = all.range(..=memory.start().addr()).next_back()?;
        let placed = placed.upgrade()?;
        let offset = placed.offset_of(memory).filter(|_| memory.len() > 0)?;
        Some((placed, offset))
    }
}
