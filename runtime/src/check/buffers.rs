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
use super::loads::{Loads, Run, Watch};
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
    /// The window and the target, if it is a one-sided operation.
    flight: Option<Flight>,
    _watch: Option<Watch>,
}

/// The window and the target of a one-sided operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flight {
    pub window: u32,
    pub target: u32,
}

/// The use of memory by a one-sided operation, until its rank has seen it complete.
struct OneSided {
    flight: Flight,
    of: Use,
    _watch: Option<Watch>,
}

/// The uses of memory by a rank.
#[derive(Default)]
pub(crate) struct Buffers {
    /// What the compiler of the program reports of the memory of operations.
    loads: Arc<Loads>,
    under_way: Vec<UnderWay>,
    one_sided: Vec<OneSided>,
    /// The number of uses after which those that are over are looked for.
    full: usize,
    /// The uses of operations that threads have begun and that have no request yet.
    begun: HashMap<ThreadId, Vec<(Use, Option<Flight>)>>,
}

impl Buffers {
    pub(super) fn new(loads: Arc<Loads>) -> Buffers {
        Buffers { loads, ..Buffers::default() }
    }

    /// The operations under way, and what finds out whether they still are.
    fn uses(&self) -> impl Iterator<Item = (&Use, Option<&IsActive>)> {
        let asked = self.under_way.iter().map(|it| (&it.of, Some(&it.is_active)));
        self.one_sided.iter().map(|it| (&it.of, None)).chain(asked)
    }

    /// A one-sided operation begins, which may have a request.
    pub(super) fn begin_one_sided(
        &mut self,
        me: u32,
        flight: Flight,
        (of, is_requested): (Use, bool),
        reports: &mut Reports,
    ) {
        self.compare(me, &of, reports);
        if is_requested {
            self.stay(of, Some(flight));
        } else if self.one_sided.len() < LIMIT {
            let _watch = watch(&self.loads, &of);
            self.one_sided.push(OneSided { flight, of, _watch });
        } else {
            self.loads.miss();
        }
    }

    /// A window's operations on these targets are complete.
    pub(super) fn end_one_sided(&mut self, window: u32, targets: &[u32]) {
        self.land(|it| it.window == window && targets.contains(&it.target));
    }

    /// No operation of a window is under way any more.
    pub(super) fn close_window(&mut self, window: u32) {
        self.land(|it| it.window == window);
    }

    /// Operations are complete, whether or not the program has completed their requests.
    fn land(&mut self, is_complete: impl Fn(&Flight) -> bool) {
        self.one_sided.retain(|it| !is_complete(&it.flight));
        self.under_way.retain(|it| !it.flight.as_ref().is_some_and(&is_complete));
    }

    /// The program loads from memory, or stores to it.
    pub(super) fn touched(&self, me: u32, run: &Run, here: &str, reports: &mut Reports) {
        let (memory, stores) = (run.footprint(0), run.stores);
        let (does, deed) = if stores { ("stores to", "store") } else { ("loads from", "load") };
        let Some(bounds) = memory.bounds() else { return };
        for (other, is_active) in self.uses().filter(|(it, _)| stores || it.writes) {
            let Some(near) = other.memory.bounds() else { continue };
            let is_near = near.start < bounds.end && bounds.start < near.end;
            if !is_near || is_active.is_some_and(|is_active| !is_active()) {
                continue;
            }
            let Overlap::At(bytes) = memory.overlap(&other.memory) else { continue };
            let (there, does_there) = (site(Some(other.line)), deed_of(other));
            reports.tell(Topic::Buffers, format!("buffers {there} {deed} {here}"), || {
                format!(
                    "check: buffers: rank {me} {does} memory of an operation under way\n\
                     check:   {} at {there} {does_there} it\ncheck:   {deed} at {here}\n\
                     check:   both use bytes {}..{} of the operation's memory; {deed} after the \
                     call that completes the operation\n",
                    other.call,
                    bytes.start - near.start,
                    bytes.end - near.start,
                )
            });
        }
    }

    /// An operation begins. It `stays` under way if its call doesn't wait for it.
    pub(super) fn begin(&mut self, me: u32, of: Use, stays: bool, reports: &mut Reports) {
        self.compare(me, &of, reports);
        if stays {
            self.stay(of, None);
        }
    }

    /// An operation is under way after its call, and gets a request.
    fn stay(&mut self, of: Use, flight: Option<Flight>) {
        if of.memory.bounds().is_none() {
            return;
        }
        let begun = self.begun.entry(thread::current().id()).or_default();
        // Programs in Rust own the memory of a request, and none of them asks for these.
        if begun.len() >= LIMIT {
            begun.clear();
        }
        begun.push((of, flight));
    }

    /// Compares an operation that begins with those under way.
    fn compare(&self, me: u32, of: &Use, reports: &mut Reports) {
        let Some(bounds) = of.memory.bounds() else { return };
        for (other, is_active) in self.uses() {
            let is_near = |it: Range<i64>| it.start < bounds.end && bounds.start < it.end;
            let near = (of.writes || other.writes) && other.memory.bounds().is_some_and(is_near);
            if !near || is_active.is_some_and(|is_active| !is_active()) {
                continue;
            }
            if let Overlap::At(bytes) = of.memory.overlap(&other.memory) {
                let [here, there] = [of, other].map(|it| site(Some(it.line)));
                let kind = format!("buffers {there} {here}");
                reports.tell(Topic::Buffers, kind, || {
                    format!(
                        "check: buffers: two operations of rank {me} that are under way use the \
                         same memory\n\
                         check:   {} at {there} {} it\ncheck:   {} at {here} {} it\n\
                         check:   both use bytes {}..{} of the first one's memory; complete one \
                         before the other starts\n",
                        other.call,
                        deed_of(other),
                        of.call,
                        deed_of(of),
                        bytes.start - other.memory.bounds().map_or(0, |it| it.start),
                        bytes.end - other.memory.bounds().map_or(0, |it| it.start),
                    )
                });
            }
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
        for (of, flight) in begun.into_iter().filter(|(it, _)| it.line.key() == line.key()) {
            if self.under_way.len() < LIMIT {
                let is_active = is_active.clone();
                let _watch = watch(&self.loads, &of);
                self.under_way.push(UnderWay { request, is_active, of, flight, _watch });
            } else {
                self.loads.miss();
            }
        }
    }
}

/// What an operation does with its memory.
fn deed_of(of: &Use) -> &'static str {
    if of.writes { "writes" } else { "reads" }
}

/// Watches the loads and stores of the program in the memory of an operation.
fn watch(loads: &Arc<Loads>, of: &Use) -> Option<Watch> {
    let bounds = of.memory.bounds()?;
    let address = |at: i64| usize::try_from(at).ok();
    Some(loads.watch(address(bounds.start)?..address(bounds.end)?))
}
