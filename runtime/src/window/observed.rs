//! Operations that are counted, and traced, under `--stats` and `--trace`.
//!
//! Calls come here from the one place at which each kind of operation leaves its fast path
//! (`core::operations`). The inlined attempts know no observed window, so nothing passes by.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use super::memo::KnownRun;
use super::operation::{Action, Operation};
use super::parts::Parts;
use super::path::{Progress, fast};
use crate::check::Caller;
use crate::memory::Span;
use crate::observe::{self, At, Done, EpochKind, Observer, TIMED, WindowCounters};
use crate::origin::What;
use crate::process::Process;
use crate::route::Route;
use crate::types::{TargetType, Type};

/// The observer of a window.
pub(super) struct Observed {
    observer: Arc<Observer>,
    /// Whether operations are traced too.
    traces: bool,
    counters: Arc<WindowCounters>,
    /// The size of the type that was counted last, by its number. Most operations have its type.
    last: Cell<(u64, u64)>,
    /// The epochs that are traced and haven't ended.
    open: RefCell<Vec<Open>>,
}

/// An epoch that has begun.
struct Open {
    kind: EpochKind,
    /// The locked target, by its rank in the window.
    target: Option<i32>,
    begin: u64,
    caller: Option<Caller>,
}

/// An operation that is about to be carried out.
#[derive(Clone, Copy)]
pub(super) struct Begun {
    bytes: u64,
    /// The time, if it is taken.
    time: u64,
    /// The number of operations that were handed to the engine for the target.
    issued: u64,
}

impl Observed {
    pub(super) fn of_window(process: &Process, id: u32, ranks: usize) -> Option<Observed> {
        let observer = process.observer()?.clone();
        let counters = observer.window(id, ranks);
        let traces = observer.traces();
        Some(Observed {
            observer,
            traces,
            counters,
            last: Cell::default(),
            open: RefCell::default(),
        })
    }

    /// A put or get that the memo knows as a copy, on a target that is mapped: the observed twin of
    /// the inlined attempt. It takes scalars, as that does.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)] // MPI's
    pub(super) fn copy(
        &self,
        parts: &Parts,
        action: Action,
        memory: Span,
        what: What<'_>,
        target: i32,
        at: i64,
        count: i64,
        own: &Type,
        caller: Caller,
    ) -> Option<()> {
        let run = parts.memo().observed_run(own)?;
        let bytes = run.len(count)?;
        if bytes >= TIMED || self.traces {
            let place = (target, at, count, own);
            return self.copy_timed(parts, action, (memory, what), place, (run, bytes), caller);
        }
        fast::copy(parts, action, memory, what, target, at, count, own, run)?;
        let done = Done { kind: action.number(), route: Route::Direct, bytes, nanos: 0 };
        self.counters.count(target as u32, || peer_of(parts, target), done);
        Some(())
    }

    /// As [`copy`](Observed::copy), of an operation whose time is taken.
    #[cold]
    #[inline(never)]
    fn copy_timed(
        &self,
        parts: &Parts,
        action: Action,
        (memory, what): (Span, What<'_>),
        (target, at, count, own): (i32, i64, i64, &Type),
        (run, bytes): (KnownRun, u64),
        caller: Caller,
    ) -> Option<()> {
        let begin = observe::now();
        fast::copy(parts, action, memory, what, target, at, count, own, run)?;
        let nanos = if bytes >= TIMED { observe::now().saturating_sub(begin) } else { 0 };
        let done = Done { kind: action.number(), route: Route::Direct, bytes, nanos };
        let peer = peer_of(parts, target);
        self.counters.count(target as u32, || peer, done);
        if self.traces {
            parts.checking().called(caller);
            self.trace(parts, (begin, 0), done, peer, TargetType::Own(own));
        }
        Some(())
    }

    /// An operation is about to be carried out.
    #[inline]
    pub(super) fn begin(&self, parts: &Parts, operation: &Operation<'_>, caller: Caller) -> Begun {
        let target_type = operation.target_type;
        let size = match self.last.get() {
            (id, size) if id == target_type.id() => size,
            _ => self.size(target_type),
        };
        let bytes = size.wrapping_mul(u64::try_from(operation.count).unwrap_or(0));
        if !self.traces {
            let time = if bytes >= TIMED { observe::now() } else { 0 };
            return Begun { bytes, time, issued: 0 };
        }
        parts.checking().called(caller);
        let peer = parts.peers().get(operation.target).map(|target| target.peer);
        let issued = peer.map_or(0, |peer| parts.flight().ledger().issued(peer));
        Begun { bytes, time: observe::now(), issued }
    }

    #[cold]
    fn size(&self, target_type: TargetType<'_>) -> u64 {
        let bounds = target_type.bounds_on(&shipable::Architecture::NATIVE);
        let size = bounds.map_or(0, |bounds| u64::try_from(bounds.size).unwrap_or(0));
        self.last.set((target_type.id(), size));
        size
    }

    /// An operation was carried out, or handed to the engine or the network. On PROC_NULL nothing
    /// was.
    #[inline]
    pub(super) fn end(
        &self,
        parts: &Parts,
        operation: &Operation<'_>,
        begun: Begun,
        progress: Option<Progress>,
    ) {
        let (Some(to), Some(progress)) = (parts.peers().get(operation.target), progress) else {
            return;
        };
        let route = match progress {
            Progress::Done if to.route == Route::Direct => Route::Direct,
            Progress::Accessed => Route::Rdma,
            _ => Route::Message,
        };
        let Begun { bytes, time, issued } = begun;
        let nanos = if bytes >= TIMED { observe::now().saturating_sub(time) } else { 0 };
        let done = Done { kind: operation.action.number(), route, bytes, nanos };
        self.counters.count(to.rank, || to.peer, done);
        if self.traces {
            let now = parts.flight().ledger().issued(to.peer);
            let number = if route == Route::Message && now > issued { now } else { 0 };
            self.trace(parts, (time, number), done, to.peer, operation.target_type);
        }
    }

    #[cold]
    fn trace(
        &self,
        parts: &Parts,
        begun: (u64, u64),
        done: Done,
        peer: u32,
        target_type: TargetType<'_>,
    ) {
        let at = At { peer: Some(peer), ..parts.at() };
        self.observer.operation(at, done, begun, (target_type.id(), &target_type));
    }

    /// An epoch of a kind begins, of the locked target if it has one.
    pub(super) fn open(&self, parts: &Parts, kind: EpochKind, target: Option<i32>) {
        if self.traces {
            let (begin, caller) = (observe::now(), parts.checking().caller());
            self.open.borrow_mut().push(Open { kind, target, begin, caller });
        }
    }

    /// An epoch that began has ended.
    pub(super) fn close(&self, parts: &Parts, kind: EpochKind, target: Option<i32>) {
        let mut all = self.open.borrow_mut();
        let is_it = |open: &Open| open.kind == kind && open.target == target;
        let Some(Open { begin, caller, .. }) =
            all.iter().position(is_it).map(|at| all.swap_remove(at))
        else {
            return;
        };
        let peer = target.and_then(|target| Some(parts.peers().get(target)?.peer));
        self.observer.epoch(kind as u8, begin, At { window: Some(parts.id()), caller, peer });
    }

    /// The window is about to end. Its name is known until then.
    pub(super) fn name(&self, name: String) {
        self.counters.set_name(name);
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        self.observer.end_window(&self.counters);
    }
}

/// The rank in the job of a target that an operation has reached.
fn peer_of(parts: &Parts, target: i32) -> u32 {
    parts.peers().get(target).map_or(0, |target| target.peer)
}
