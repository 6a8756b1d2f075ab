//! Claims on the locks of targets: how a lock is taken and released, in shared memory or by
//! messages, and when lock_all takes it.
//!
//! lock_all takes each target's lock with the first operation that needs it. It takes at once the
//! locks that loads and stores need without a call: all of a shared window's, and the own one after
//! the program has had a pointer to its memory. A post that finds its window locked by message asks
//! the holder, whose unlock arrives before its answer.

use std::cell::Cell;

use longshore_transport::lock::{Claim, Sharing, User};

use super::access::Permit;
use super::parts::Parts;
use super::peers::Target;
use super::state::{Access, EpochState};
use super::waiting::{ask, remark};
use crate::engine::{EXPOSED, State};
use crate::error::{ErrorKind, Result};
use crate::job::Activity;
use crate::observe::{At, EpochKind};

/// The permission to operate on a target (rules 1 and 2), for which lock_all may take its lock.
pub(super) fn allow<'a>(parts: &'a Parts, target: &Target) -> Result<Permit<'a>> {
    parts.epochs().allow(target, |unchecked| lock_lazily(parts, target, unchecked))
}

/// Takes this rank's own lock, if lock_all promised it and nothing has needed it so far.
#[inline]
pub(super) fn lock_own(parts: &Parts) -> Result<()> {
    let own = parts.peers().own();
    match parts.epochs().state() {
        EpochState::LockAll { unchecked } if own.epochs.access.get() == Access::Closed => {
            lock_lazily(parts, own, unchecked)
        }
        _ => Ok(()),
    }
}

/// The program gets a pointer to its own memory, and the window doesn't see loads and stores
/// through it. From here on lock_all takes the own lock at once; an open one takes it now.
#[cold]
pub(super) fn note_pointer(parts: &Parts) -> Result<()> {
    parts.epochs().note_pointer();
    lock_own(parts)
}

/// Takes the shared lock that lock_all promised.
pub(super) fn lock_lazily(parts: &Parts, target: &Target, unchecked: bool) -> Result<()> {
    let access = match unchecked {
        true => unchecked_lock(parts, target),
        false => claim(parts, target, Sharing::Shared)?,
    };
    parts.epochs().note_locked(target.rank, matches!(access, Access::Claimed(_)));
    target.epochs.access.set(access);
    Ok(())
}

/// Opens a target that the program promises to be free of conflicts.
#[cold]
pub(super) fn unchecked_lock(parts: &Parts, target: &Target) -> Access {
    note_lock(parts, target, true);
    Access::Unchecked
}

/// Takes a target's lock.
#[inline]
pub(super) fn claim(parts: &Parts, target: &Target, sharing: Sharing) -> Result<Access> {
    match target.shares_control() {
        true => claim_here(parts, target, sharing),
        false => claim_apart(parts, target, sharing),
    }
}

/// Takes the lock of a target whose control block its messages guard, unless it is this rank's own.
#[cold]
#[inline(never)]
fn claim_apart(parts: &Parts, target: &Target, sharing: Sharing) -> Result<Access> {
    if !parts.peers().is_own(target) {
        return claim_by_message(parts, target, sharing);
    }
    let process = parts.process();
    let forsaken = match process.checks() {
        true => process.engine().state().reclaim_own(parts.id(), sharing),
        false => None,
    };
    match forsaken {
        Some(claim) => await_claim(parts, target, claim),
        None => claim_here(parts, target, sharing),
    }
}

#[inline(always)]
fn claim_here(parts: &Parts, target: &Target, sharing: Sharing) -> Result<Access> {
    let control = parts.peers().control();
    if control.is_exposed(target.rank) {
        return Err(ErrorKind::Epoch(EXPOSED).into());
    }
    match control.request(target.rank, user(parts), sharing) {
        Ok(ticket) if !parts.process().is_bereft() => Ok(claimed(parts, target, sharing, ticket)),
        requested => claim_later(parts, target, sharing, requested),
    }
}

/// Takes a lock that wasn't free when it was requested.
#[cold]
#[inline(never)]
fn claim_later(
    parts: &Parts,
    target: &Target,
    sharing: Sharing,
    requested: std::result::Result<u32, u32>,
) -> Result<Access> {
    let control = parts.peers().control();
    let mut claim = Claim::requested(user(parts), sharing, requested);
    control.poll(target.rank, &mut claim, false);
    match claim.ticket() {
        Some(ticket) if !parts.process().is_bereft() => Ok(claimed(parts, target, sharing, ticket)),
        _ => await_claim(parts, target, claim),
    }
}

/// This rank, as locks know it.
#[inline]
fn user(parts: &Parts) -> User {
    User { number: parts.peers().rank(), served: false }
}

#[inline]
fn claimed(parts: &Parts, target: &Target, sharing: Sharing, ticket: u32) -> Access {
    target.epochs.ticket.set(ticket);
    if parts.process().notes_callers() {
        note_claim(parts, target, sharing, true);
    }
    Access::Claimed(sharing)
}

/// This rank has taken a lock by its own claim, or is about to release it.
#[cold]
#[inline(never)]
fn note_claim(parts: &Parts, target: &Target, sharing: Sharing, gets: bool) {
    parts.checking().own_lock(sharing, gets);
    note_lock(parts, target, gets);
}

/// A lock epoch begins or ends, for the trace.
#[cold]
pub(super) fn note_lock(parts: &Parts, target: &Target, begins: bool) {
    let (kind, rank) = (EpochKind::Lock, Some(target.rank as i32));
    match parts.observed() {
        Some(observed) if begins => observed.open(kind, rank, parts.checking().caller()),
        Some(observed) => observed.close(kind, rank, Some(target.peer)),
        None => {}
    }
}

/// Waits for a lock. Where a rank has died, the claim may have waited for that rank's lock.
#[cold]
#[inline(never)]
fn await_claim(parts: &Parts, target: &Target, mut claim: Claim) -> Result<Access> {
    let (process, peers) = (parts.process(), parts.peers());
    let control = peers.control();
    let bereft = process.is_bereft();
    let wait = || {
        if !bereft && process.spin(|| control.poll(target.rank, &mut claim, false)) {
            return Ok(());
        }
        process.wait(|state, arming| {
            // A dead target's lock can be had, since the queue passes over the dead. The engine
            // hears of the death soon.
            if let Some(gone) = state.gone(target.peer) {
                return Some(Err(gone));
            }
            if control.poll(target.rank, &mut claim, arming) {
                return (!control.is_dead(target.rank)).then_some(Ok(()));
            }
            if arming {
                let holder = control.locker(target.rank);
                process.note_wait(holder.map(|rank| peers.process(rank)));
                remark(parts);
            }
            None
        })
    };
    let at = At { peer: Some(target.peer), ..parts.at() };
    let waited = process.during(Activity::Lock, target.peer, at, wait);
    match (waited, claim.ticket()) {
        (Ok(()), Some(ticket)) => Ok(claimed(parts, target, claim.sharing(), ticket)),
        (waited, _) => {
            let goes_on = process.checks() && process.check_job().is_ok();
            match goes_on && claim.ticket().is_none() && peers.is_own(target) {
                true => process.engine().state().forsake_own(parts.id(), claim),
                // A claim that still stands in the queue stays there. No claim after it waits for
                // long: the target is gone, or the end of the job ends those calls too.
                false => control.release(target.rank, claim),
            }
            Err(waited.err().unwrap_or_else(|| ErrorKind::Epoch(NOT_LOCKED).into()))
        }
    }
}

fn claim_by_message(parts: &Parts, target: &Target, sharing: Sharing) -> Result<Access> {
    let (process, peers) = (parts.process(), parts.peers());
    let asked = Cell::new(0);
    let start = |state: &mut State, number| {
        asked.set(number);
        state.start_lock(target.peer, parts.id(), number, sharing);
    };
    // The target answers in time. The lock's holder is the one that lets this rank wait.
    let holder = || {
        let locker = peers.control().locker(target.rank).filter(|by| *by != peers.rank());
        locker.map_or(target.peer, |by| peers.process(by))
    };
    let refused = ask(parts, Activity::Lock, target, start, holder, || false);
    if refused.is_err() && asked.get() != 0 && process.check_job().is_ok() {
        let mut engine = process.engine();
        engine.state().forsake_lock(target.peer, parts.id(), asked.get());
        engine.progress();
    }
    refused?.map_or(Ok(()), Err)?;
    note_lock(parts, target, true);
    Ok(Access::Granted)
}

/// Releases the locks that lock_all took.
#[inline]
pub(super) fn release_all(parts: &Parts) {
    parts.epochs().release_locked(|rank| release(parts, parts.peers().of(rank)));
}

/// Releases a target's lock after the operations under it.
#[inline(always)]
pub(super) fn release(parts: &Parts, target: &Target) {
    let (epochs, peers) = (parts.epochs(), parts.peers());
    // Rule 9: NOSTORE promises that nothing was stored since then. Mostly nothing was.
    if epochs.has_stored() && peers.is_own(target) {
        epochs.forget_stores();
    }
    match target.epochs.access.replace(Access::Closed) {
        Access::Claimed(sharing) => {
            if parts.process().notes_callers() {
                note_claim(parts, target, sharing, false);
            }
            let claim = Claim::held(user(parts), sharing, target.epochs.ticket.get());
            peers.control().release(target.rank, claim);
        }
        Access::Granted => start_unlock(parts, target),
        Access::Unchecked => note_lock(parts, target, false),
        Access::Closed | Access::Started => {}
    }
}

#[cold]
fn start_unlock(parts: &Parts, target: &Target) {
    note_lock(parts, target, false);
    let mut engine = parts.process().engine();
    engine.state().start_unlock(target.peer, parts.id());
    engine.progress();
}

pub(super) const NOT_LOCKED: &str = "the target isn't locked by this rank: lock it before (rule 5)";
