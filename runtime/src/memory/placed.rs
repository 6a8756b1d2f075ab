//! Memory of the segment that a program asked for, outside of any window.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use longshore_transport::{Range, Segment};

use super::exposed::Exposed;
use super::span::Span;

/// An allocation in the segment. It is given up when dropped.
pub(crate) struct Placed {
    segment: Segment,
    range: Range,
    /// Where its first byte lies in the segment.
    offset: u64,
    memory: Exposed,
    /// The process that allocated it: a forked child must not free it.
    pid: u32,
}

impl Placed {
    /// Takes over a range of the segment, in which the memory begins at `offset`.
    pub(crate) fn new(segment: &Segment, range: Range, offset: u64, memory: Exposed) -> Placed {
        let (segment, pid) = (segment.clone(), std::process::id());
        Placed { segment, range, offset, memory, pid }
    }

    pub(crate) fn span(&self) -> Span {
        self.memory.span()
    }

    /// Where its first byte lies in the segment.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Where this memory lies in the segment, if all of it is in the allocation.
    fn offset_of(&self, memory: Span) -> Option<u64> {
        let own = self.span();
        let into = memory.start().addr().checked_sub(own.start().addr())? as u64;
        let has = memory.len() <= own.len().checked_sub(into)?;
        has.then_some(self.offset + into)
    }
}

impl Drop for Placed {
    fn drop(&mut self) {
        if std::process::id() == self.pid {
            // Nobody is there to hear of an error. The range stays allocated then.
            let _ = self.segment.free(self.range);
        }
    }
}

/// The allocations of a rank in the segment, by their addresses.
#[derive(Default)]
pub(crate) struct Places(Mutex<Known>);

#[derive(Default)]
struct Known {
    all: BTreeMap<usize, Weak<Placed>>,
    /// The number of entries at which those of freed allocations are removed.
    limit: usize,
}

impl Places {
    fn all(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes an allocation known.
    pub(crate) fn add(&self, placed: &Arc<Placed>) {
        let Known { all, limit } = &mut *self.all();
        if all.len() >= *limit {
            all.retain(|_, placed| placed.strong_count() > 0);
            *limit = 2 * all.len() + 64;
        }
        all.insert(placed.span().start().addr(), Arc::downgrade(placed));
    }

    /// The allocation that has all of this memory, and where the memory lies in the segment.
    pub(crate) fn find(&self, memory: Span) -> Option<(Arc<Placed>, u64)> {
        let known = self.all();
        let (_, placed) = known.all.range(..=memory.start().addr()).next_back()?;
        let placed = placed.upgrade()?;
        let offset = placed.offset_of(memory).filter(|_| memory.len() > 0)?;
        Some((placed, offset))
    }
}
