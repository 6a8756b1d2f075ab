//! Lock and unlock, lock_all and unlock_all (MPI-5.0 section 12.5.3).

use longshore_transport::lock::Sharing;

use crate::assert::Assert;
use crate::check::Caller;
use crate::engine::EXPOSED;
use crate::error::{ErrorKind, Result};
use crate::flavor::Flavor;
use crate::window::claim::{NOT_LOCKED, claim, lock_lazily, release, release_all, unchecked_lock};
use crate::window::parts::Parts;
use crate::window::promise::broken;
use crate::window::state::{Access, EpochState, Step};
use crate::window::sync::flush::{await_done, settle};

/// How a target is locked (MPI-5.0 section 12.5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockType {
    /// Several ranks may hold it at a time.
    Shared,
    /// Only one rank holds it.
    Exclusive,
}

impl LockType {
    /// The lock type with this number in the MPI ABI (rule 10).
    ///
    /// ```
    /// use longshore::{Class, LockType};
    ///
    /// assert_eq!(LockType::from_number(301)?, LockType::Exclusive);
    /// assert_eq!(LockType::from_number(0).unwrap_err().class(), Class::Locktype);
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// LOCKTYPE for another number.
    pub fn from_number(number: i32) -> Result<LockType> {
        match number {
            301 => Ok(LockType::Exclusive),
            302 => Ok(LockType::Shared),
            _ => Err(ErrorKind::LockType(number).into()),
        }
    }
}

impl From<LockType> for Sharing {
    fn from(lock_type: LockType) -> Sharing {
        match lock_type {
            LockType::Shared => Sharing::Shared,
            LockType::Exclusive => Sharing::Exclusive,
        }
    }
}

/// Locks a target.
#[inline]
pub(in crate::window) fn lock(
    parts: &Parts,
    rank: i32,
    lock_type: LockType,
    assert: Assert,
) -> Result<()> {
    let epochs = parts.epochs();
    parts.process().ready()?;
    check_hint(parts)?;
    assert.allowed("lock", Assert::NOCHECK)?;
    let target = parts.peers().existing(rank)?;
    let locked = epochs.next(Step::Lock)?;
    if target.epochs.access.get() != Access::Closed {
        return Err(ErrorKind::Epoch(TWICE).into());
    }
    let access = match assert.contains(Assert::NOCHECK) {
        true => unchecked_lock(parts, target),
        false => claim(parts, target, lock_type.into())?,
    };
    epochs.enter(locked);
    target.epochs.access.set(access);
    Ok(())
}

/// Unlocks a target: the operations on it are done. The lock is released even where they failed.
#[inline]
pub(in crate::window) fn unlock(parts: &Parts, rank: i32, caller: Caller) -> Result<()> {
    let epochs = parts.epochs();
    let target = parts.peers().existing(rank)?;
    let held = match epochs.state() {
        EpochState::Locks(_) if target.epochs.access.get() == Access::Closed => {
            return Err(ErrorKind::Epoch(NOT_LOCKED).into());
        }
        EpochState::Locks(held) => held,
        _ => 0,
    };
    epochs.step(Step::Unlock)?;
    // Releasing a claim is a full barrier.
    let settled = match target.epochs.access.get() {
        Access::Claimed(_) => await_done(parts, Some(target), Some(caller)),
        _ => settle(parts, Some(target), Some(caller)),
    };
    release(parts, target);
    settled.map_err(|error| error.within(|| EpochState::Locks(held).to_string()))
}

/// Opens all targets. The first operation that needs a target's lock takes it, and the first load
/// or store of its own window takes this rank's.
///
/// Locks are taken at once for loads and stores that the window doesn't see: through a pointer, and
/// of other ranks' parts of a shared window.
#[inline]
pub(in crate::window) fn lock_all(parts: &Parts, assert: Assert) -> Result<()> {
    let (process, peers, epochs) = (parts.process(), parts.peers(), parts.epochs());
    process.ready()?;
    check_hint(parts)?;
    assert.allowed("lock_all", Assert::NOCHECK)?;
    let unchecked = assert.contains(Assert::NOCHECK);
    let locked = epochs.next(Step::LockAll { unchecked })?;
    // The checker needs the own lock from the epoch's beginning.
    let is_shared = parts.memory().flavor() == Flavor::Shared;
    if is_shared || epochs.is_pointed() || process.checks() {
        lock_at_once(parts, unchecked)?;
    } else if !unchecked && peers.control().is_exposed(peers.rank()) {
        return Err(ErrorKind::Epoch(EXPOSED).into());
    }
    epochs.enter(locked);
    Ok(())
}

/// Takes the locks that loads and stores need, or none.
#[cold]
fn lock_at_once(parts: &Parts, unchecked: bool) -> Result<()> {
    let peers = parts.peers();
    let mut at_once = match parts.memory().flavor() {
        Flavor::Shared => 0..peers.len() as u32,
        _ => peers.rank()..peers.rank() + 1,
    };
    at_once
        .try_for_each(|rank| lock_lazily(parts, peers.of(rank), unchecked))
        .inspect_err(|_| release_all(parts))
}

/// Unlocks all targets: all operations are done.
#[inline]
pub(in crate::window) fn unlock_all(parts: &Parts, caller: Caller) -> Result<()> {
    parts.epochs().step(Step::UnlockAll)?;
    // Releasing a claim is a full barrier.
    let settled = match parts.epochs().has_claims() {
        true => await_done(parts, None, Some(caller)),
        false => settle(parts, None, Some(caller)),
    };
    release_all(parts);
    let locked = EpochState::LockAll { unchecked: false };
    settled.map_err(|error| error.within(|| locked.to_string()))
}

/// Rule 26: a window with the hint `no_locks` isn't locked.
#[inline]
fn check_hint(parts: &Parts) -> Result<()> {
    match parts.info().no_locks {
        true => broken(parts, NO_LOCKS),
        false => Ok(()),
    }
}

const TWICE: &str = "the target is locked by this rank already: unlock it first (rule 5)";
const NO_LOCKS: &str =
    "the window has the info no_locks=true, and is locked all the same: leave it out (rule 26)";
