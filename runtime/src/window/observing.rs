//! Operations that are counted, and traced, under `--stats` and `--trace`.
//!
//! Calls come here from the one place at which each kind of operation leaves its fast path
//! (`core::operations`). The inlined attempts know no observed window, so nothing passes by.

use super::memo::KnownRun;
use super::observed::Observed;
use super::operation::{Action, Operation};
use super::parts::Parts;
use super::path::{Progress, fast, mailbox};
use super::peers::Target;
use crate::check::Caller;
use crate::memory::Span;
use crate::observe::{self, At, Done, TIMED};
use crate::origin::What;
use crate::route::Route;
use crate::types::{TargetType, Type};

/// Whether copies to and from a target are counted: it is mapped, and its window observed. What
/// goes by message is counted further on.
#[inline(always)]
pub(super) fn counts_copies(parts: &Parts, target: i32) -> bool {
    let is_mapped = |target: &Target| target.mapping.get().is_some();
    parts.observed().is_some() && parts.peers().get(target).is_some_and(is_mapped)
}

/// A put or get that the inlined attempt doesn't know, since its window is observed. Returns
/// whether it is done: as a copy that only has to be counted. This much is in the caller's code,
/// where the operand's kind and length are known, so that only scalars are passed on.
#[inline(always)]
#[allow(clippy::too_many_arguments)] // MPI's
pub(super) fn count_copy(
    parts: &Parts,
    action: Action,
    memory: Span,
    what: &What<'_>,
    target: i32,
    at: i64,
    count: i64,
    target_type: TargetType<'_>,
) -> bool {
    let TargetType::Own(own) = target_type else { return false };
    let Some((place, len)) = memory.at_zero() else { return false };
    if !what.is_plain(count as u64, own.compiled()) {
        return false;
    }
    match action {
        Action::Put => count_scalars::<true>(parts, place, len, target, at, count, own),
        _ => count_scalars::<false>(parts, place, len, target, at, count, own),
    }
    .is_some()
}

/// A `PUT`, or a get, for [`count_copy`], of elements that are the target type's.
#[inline(never)]
fn count_scalars<const PUT: bool>(
    parts: &Parts,
    place: *mut u8,
    len: u64,
    target: i32,
    at: i64,
    count: i64,
    own: &Type,
) -> Option<()> {
    let observed = parts.observed().filter(|observed| len < TIMED && !observed.traces)?;
    let run = parts.memo().observed_run(own)?;
    let action = if PUT { Action::Put } else { Action::Get };
    let memory = Span::around(place, 0, i64::try_from(len).ok()?);
    let what = What::Typed { count, datatype: own, at: 0, native: None };
    fast::copy(parts, action, memory, what, target, at, count, own, run)?;
    observed.count(parts, target, action, len, 0);
    Some(())
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
        self.count(parts, target, action, bytes, 0);
        Some(())
    }

    /// A put or get by the target's mailbox.
    #[allow(clippy::too_many_arguments)] // MPI's
    pub(super) fn ask(
        &self,
        parts: &Parts,
        action: Action,
        memory: Span,
        what: What<'_>,
        target: i32,
        at: i64,
        count: i64,
        own: &Type,
    ) -> Option<()> {
        // A trace has the time of each operation, which the full way takes.
        if self.traces {
            return None;
        }
        mailbox::transfer(parts, action, memory, what, None, target, at, count, own)?;
        let (kind, bytes) = (action.number(), memory.len());
        let done = Done { kind, route: Route::Message, bytes, nanos: 0 };
        self.counters.count(target as u32, || peer_of(parts, target), done);
        Some(())
    }

    /// Counts an operation on a target that was reached directly.
    #[inline(always)]
    fn count(&self, parts: &Parts, target: i32, action: Action, bytes: u64, nanos: u64) -> Done {
        let done = Done { kind: action.number(), route: Route::Direct, bytes, nanos };
        self.counters.count(target as u32, || peer_of(parts, target), done);
        done
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
        let done = self.count(parts, target, action, bytes, nanos);
        if self.traces {
            parts.checking().called(caller);
            self.trace(parts, (begin, 0), done, peer_of(parts, target), TargetType::Own(own));
        }
        Some(())
    }

    /// The bytes of an operation.
    #[inline(always)]
    fn bytes(&self, operation: &Operation<'_>) -> u64 {
        let target_type = operation.target_type;
        let size = match self.last.get() {
            (id, size) if id == target_type.id() => size,
            _ => self.size(target_type),
        };
        size.wrapping_mul(u64::try_from(operation.count).unwrap_or(0))
    }

    /// The bytes of an operation that is only counted, after it.
    #[inline(always)]
    pub(super) fn untimed(&self, operation: &Operation<'_>) -> Option<u64> {
        let bytes = self.bytes(operation);
        (bytes < TIMED && !self.traces).then_some(bytes)
    }

    /// Counts an operation that is only counted.
    #[inline(always)]
    pub(super) fn count_next(
        &self,
        parts: &Parts,
        operation: &Operation<'_>,
        bytes: u64,
        progress: Progress,
    ) {
        let route = match progress {
            Progress::Started | Progress::Answered => Route::Message,
            Progress::Accessed => Route::Rdma,
            Progress::Copied => Route::Peer,
            Progress::Done => {
                let begun = Begun { bytes, time: 0, issued: 0 };
                return self.end(parts, operation, begun, Some(progress));
            }
        };
        let (target, kind) = (operation.target, operation.action.number());
        let done = Done { kind, route, bytes, nanos: 0 };
        self.counters.count(target as u32, || peer_of(parts, target), done);
    }

    /// An operation is about to be carried out.
    #[inline]
    pub(super) fn begin(&self, parts: &Parts, operation: &Operation<'_>, caller: Caller) -> Begun {
        let bytes = self.bytes(operation);
        if !self.traces {
            let time = if bytes >= TIMED { observe::now() } else { 0 };
            return Begun { bytes, time, issued: 0 };
        }
        parts.checking().called(caller);
        let peer = parts.peers().get(operation.target).map(|target| target.peer);
        let issued = peer.map_or(0, |peer| parts.flight().ledger().issued(peer));
        Begun { bytes, time: observe::now(), issued }
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
            Progress::Copied => Route::Peer,
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
}

/// The rank in the job of a target that an operation has reached.
fn peer_of(parts: &Parts, target: i32) -> u32 {
    parts.peers().get(target).map_or(0, |target| target.peer)
}
