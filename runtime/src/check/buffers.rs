//! The memory that operations under way use: two of them may not use the same bytes if one of them
//! writes these (MPI-5.0 sections 3.7.2, 6.12).
//!
//! An operation *begins* where it is started, and is compared with those under way. If it has a
//! request, the interface that gave the request says how to find out whether the program has
//! completed it. Until then it is under way, even if its data have moved already.
//!
//! Left out: blocks with displacements of their own, whose gaps may have other uses, and types with
//! more than some thousand runs.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::thread::{self, ThreadId};

use shipable::Program;

use super::footprint::{Footprint, Overlap, StretchSet};
use super::report::Reports;
use super::site;
use crate::job::Topic;
use crate::memory::Span;
use crate::program::Line;

/// Whether the program hasn't completed a request.
pub(crate) type IsActive = Arc<dyn Fn() -> bool + Send + Sync>;

/// The limit of uses that are remembered.
const LIMIT: usize = 16_384;

/// A use of memory by an operation.
#[derive(Clone)]
pub(crate) struct Use {
    pub call: &'static str,
    pub line: Line,
    pub writes: bool,
    pub memory: Footprint,
}

impl Use {
    /// The use of `count` elements at displacement 0 of a span.
    pub(crate) fn new(
        (call, line): (&'static str, Line),
        writes: bool,
        (program, count, span): (&Program, u64, Span),
    ) -> Use {
        let shape = Arc::new(StretchSet::new(program, count));
        Use { call, line, writes, memory: Footprint::new(shape, span.address(0).addr() as i64) }
    }
}

struct UnderWay {
    request: usize,
    is_active: IsActive,
    of: Use,
}

/// The uses of memory by a rank.
#[derive(Default)]
pub(crate) struct Buffers {
    under_way: Vec<UnderWay>,
    /// The number of uses after which those that are over are looked for.
    full: usize,
    /// The uses of operations that threads have begun and that have no request yet.
    begun: HashMap<ThreadId, Vec<Use>>,
}

impl Buffers {
    /// An operation begins. It `stays` under way if its call doesn't wait for it.
    pub(super) fn begin(&mut self, me: u32, of: Use, stays: bool, reports: &mut Reports) {
        let Some(bounds) = of.memory.bounds() else { return };
        for UnderWay { of: other, is_active, .. } in &self.under_way {
            let is_near = |it: Range<i64>| it.start < bounds.end && bounds.start < it.end;
            let near = (of.writes || other.writes) && other.memory.bounds().is_some_and(is_near);
            if !near || !is_active() {
                continue;
            }
            if let Overlap::At(bytes) = of.memory.overlap(&other.memory) {
                let [here, there] = [&of, other].map(|it| site(Some(it.line)));
                let kind = format!("buffers {there} {here}");
                let deed = |it: &Use| if it.writes { "writes" } else { "reads" };
                reports.tell(Topic::Buffers, kind, || {
                    format!(
                        "check: buffers: two operations of rank {me} that are under way use the \
                         same memory\n\
                         check:   {} at {there} {} it\ncheck:   {} at {here} {} it\n\
                         check:   both use bytes {}..{} of the first one's memory; complete one \
                         before the other starts\n",
                        other.call,
                        deed(other),
                        of.call,
                        deed(&of),
                        bytes.start - other.memory.bounds().map_or(0, |it| it.start),
                        bytes.end - other.memory.bounds().map_or(0, |it| it.start),
                    )
                });
            }
        }
        if stays {
            let begun = self.begun.entry(thread::current().id()).or_default();
            // Programs in Rust own the memory of a request, and none of them asks for these.
            if begun.len() >= LIMIT {
                begun.clear();
            }
            begun.push(of);
        }
    }

    /// The operations that this thread has begun in the call at this line have a request.
    pub(super) fn keep(&mut self, line: Line, request: usize, is_active: IsActive) {
        let begun = self.begun.remove(&thread::current().id()).unwrap_or_default();
        self.under_way.retain(|it| it.request != request);
        if self.under_way.len() >= self.full {
            self.under_way.retain(|it| (it.is_active)());
            self.full = (2 * self.under_way.len()).max(64);
        }
        // Those of calls that failed are at other lines.
        for of in begun.into_iter().filter(|it| it.line.key() == line.key()) {
            if self.under_way.len() < LIMIT {
                let is_active = is_active.clone();
                self.under_way.push(UnderWay { request, is_active, of });
            }
        }
    }
}
