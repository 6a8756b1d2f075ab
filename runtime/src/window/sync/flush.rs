//! Flushes and sync (MPI-5.0 section 12.5.4), and the completion that ends every epoch.

use crate::check::Caller;
use crate::engine::State;
use crate::error::{ErrorKind, Result};
use crate::job::Activity;
use crate::memory::full_barrier;
use crate::window::access::check_usable;
use crate::window::claim::NOT_LOCKED;
use crate::window::parts::Parts;
use crate::window::peers::Target;
use crate::window::state::{Access, EpochState};
use crate::window::waiting::{await_all, await_target, drain, find_done};

/// Whether a flush of a target has nothing to wait for: it is locked, and nothing is in flight.
#[inline]
pub(in crate::window) fn is_idle(parts: &Parts, rank: i32) -> bool {
    let Some(target) = parts.peers().known(rank) else { return false };
    let is_open = match parts.epochs().state() {
        EpochState::LockAll { .. } => true,
        EpochState::Locks(_) => target.epochs.access.get() != Access::Closed,
        _ => false,
    };
    is_open && parts.flight().is_empty() && !parts.process().must_poll()
}

/// Completes the operations on a target if none is in flight, which takes only a full barrier.
/// Otherwise returns false, and [`flush`] does all of the call. Inlined, since it is most of what a
/// program pays for a direct operation.
#[inline]
pub(in crate::window) fn flush_idle(parts: &Parts, rank: i32) -> bool {
    let is_idle = is_idle(parts, rank);
    if is_idle {
        parts.flight().end_burst();
        full_barrier();
    }
    is_idle
}

/// Completes the operations on a target, or on all, at both sides. Has a full barrier.
#[inline]
pub(in crate::window) fn flush(parts: &Parts, rank: Option<i32>, caller: Caller) -> Result<()> {
    match flushed(parts, rank)? {
        Flushed::Nobody => Ok(()),
        Flushed::Target(target) => settle(parts, Some(target), Some(caller)),
        Flushed::All => settle(parts, None, Some(caller)),
    }
}

/// Completes the operations on a target, or on all, at this side only: their memory may be used
/// again, and fetched values are there.
///
/// Operations by message are waited for until they are complete at both sides. Direct ones are done
/// when their call returns, and no other rank learns of them here, so there is no barrier.
#[inline]
pub(in crate::window) fn flush_local(
    parts: &Parts,
    rank: Option<i32>,
    caller: Caller,
) -> Result<()> {
    match flushed(parts, rank)? {
        Flushed::Nobody => Ok(()),
        Flushed::Target(target) => await_done(parts, Some(target), Some(caller)),
        Flushed::All => await_done(parts, None, Some(caller)),
    }
}

/// The targets of a flush.
enum Flushed<'a> {
    /// Nothing is in flight to PROC_NULL.
    Nobody,
    Target(&'a Target),
    All,
}

/// Checks that the targets of a flush are locked.
#[inline]
fn flushed(parts: &Parts, rank: Option<i32>) -> Result<Flushed<'_>> {
    let epochs = parts.epochs();
    epochs.check_passive()?;
    let target = match rank {
        Some(rank) => match parts.peers().target(rank)? {
            None => return Ok(Flushed::Nobody),
            Some(target) => target,
        },
        None => return Ok(Flushed::All),
    };
    match epochs.state() {
        EpochState::Locks(_) if target.epochs.access.get() == Access::Closed => {
            Err(ErrorKind::Epoch(NOT_LOCKED).into())
        }
        _ => Ok(Flushed::Target(target)),
    }
}

/// Orders this rank's own loads and stores of its window against those of others.
pub(in crate::window) fn sync(parts: &Parts) -> Result<()> {
    check_usable(parts.epochs().state())?;
    full_barrier();
    parts.epochs().forget_stores();
    parts.process().oblige()
}

/// Waits until the operations on a target, or on all, are done. The error is the first of theirs.
/// `caller` is the source line of the call, if it isn't noted yet.
#[inline]
pub(super) fn settle(parts: &Parts, target: Option<&Target>, caller: Option<Caller>) -> Result<()> {
    // What is read after the barrier waits for it, so a flush with nothing to wait for reads first.
    let nothing = parts.flight().is_empty() && !parts.process().must_poll();
    parts.flight().end_burst();
    // Before any message that lets another rank rely on it, and before this rank's own loads.
    full_barrier();
    if nothing { Ok(()) } else { await_done(parts, target, caller) }
}

/// As [`settle`], for a caller that has a full barrier itself.
#[inline]
pub(super) fn await_done(
    parts: &Parts,
    target: Option<&Target>,
    caller: Option<Caller>,
) -> Result<()> {
    let flight = parts.flight();
    flight.end_burst();
    match flight.is_shipped() {
        true => wait_settled(parts, target, caller)?,
        false => parts.process().oblige()?,
    }
    flight.take_failure(target.map(|target| target.peer)).map_or(Ok(()), Err)
}

#[cold]
fn wait_settled(parts: &Parts, target: Option<&Target>, caller: Option<Caller>) -> Result<()> {
    if let Some(caller) = caller {
        parts.checking().called(caller);
    }
    let (process, flight) = (parts.process(), parts.flight());
    let confirm = || parts.checking().confirm(flight, parts.peers(), target);
    let Some(target) = target else {
        let waited = process.observed(Activity::Flush, parts.at(), || await_all(parts));
        let settled = waited.and_then(|()| confirm());
        drain(parts);
        return settled;
    };
    let is_settled = || flight.outstanding(target.peer) == 0;
    if is_settled() {
        find_done(parts, Activity::Flush, target)?;
    } else {
        // The engine is locked here anyway, so that the scope's end needn't ask it again.
        let settled = |state: &State| is_settled().then(|| state.holds_nothing());
        // A wait that fails gives the operations up: nothing touches their memory any more.
        let idle = await_target(parts, Activity::Flush, target, || target.peer, settled)
            .inspect_err(|_| process.give_up(parts.id()))?;
        if idle {
            flight.give_back();
        }
    }
    // All operations on a target that is gone count as done, but the network may have their memory.
    if flight.is_lent() && target.key().is_some() {
        process.await_network(parts.id(), Some(target.peer));
    }
    if !process.checks() && parts.observed().is_none() {
        flight.land_at(target.peer);
    }
    confirm()
}
