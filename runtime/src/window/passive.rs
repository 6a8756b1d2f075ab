//! Passive target synchronisation: lock and unlock, flush, sync (MPI-5.0 sections 12.5.3 and 12.5.4), and what flushes and
//! the ends of all epochs share.

use std::cell::Cell;
use std::sync::Arc;

use longshore_transport::lock::{Claim, Sharing, User};

use super::core::Core;
use super::state::{Access, EpochState, Step};
use super::targets::Target;
use crate::assert::Assert;
use crate::engine::{EXPOSED, Operation, State, Ticket};
use crate::error::{Error, ErrorKind, Result};
use crate::flavor::Flavor;
use crate::job::Activity;
use crate::memory::full_barrier;
use crate::route::Route;

/// How a target is locked (MPI-5.0 section 12.5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockType {
    /// Several ranks may hold it at a time.
    Shared,
    /// One rank holds it alone.
    Exclusive,
}

impl LockType {
    /// The one with this number, as the MPI ABI has it (rule 10).
    ///
    /// ```
    /// use longshore::{Class, LockType};
    ///
    /// assert_eq!(LockType::from_number(234)?, LockType::Exclusive);
    /// assert_eq!(LockType::from_number(0).unwrap_err().class(), Class::Locktype);
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// LOCKTYPE for another number.
    pub fn from_number(number: i32) -> Result<LockType> {
        match number {
            234 => Ok(LockType::Exclusive),
            235 => Ok(LockType::Shared),
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

impl Core {
    /// Locks a target.
    #[inline]
    pub(super) fn lock(&self, rank: i32, lock_type: LockType, assert: Assert) -> Result<()> {
        let call = || -> Result<()> {
            self.process.ready()?;
            self.check_locks()?;
            assert.allowed("lock", Assert::NOCHECK)?;
            let target = self.real_target(rank)?;
            let locked = self.next(Step::Lock)?;
            if target.access.get() != Access::Closed {
                return Err(ErrorKind::Epoch(TWICE).into());
            }
            let access = match assert.contains(Assert::NOCHECK) {
                true => Access::Unchecked,
                false => self.claim(target, lock_type.into())?,
            };
            self.enter(locked);
            target.access.set(access);
            Ok(())
        };
        call().map_err(|error| self.failed(error, "lock", Some(rank)))
    }

    /// Unlocks a target: operations on it are done. The lock is given back whatever they came to.
    #[inline]
    pub(super) fn unlock(&self, rank: i32) -> Result<()> {
        let call = || -> Result<()> {
            let target = self.real_target(rank)?;
            let held = match self.epoch.get() {
                EpochState::Locks(_) if target.access.get() == Access::Closed => {
                    return Err(ErrorKind::Epoch(NOT_LOCKED).into());
                }
                EpochState::Locks(held) => held,
                _ => 0,
            };
            self.step(Step::Unlock)?;
            // To give back a claim is a full barrier.
            let settled = match target.access.get() {
                Access::Claimed(_) => self.await_done(Some(target)),
                _ => self.settle(Some(target)),
            };
            self.give_back(target);
            settled.map_err(|error| error.within(|| EpochState::Locks(held).to_string()))
        };
        call().map_err(|error| self.failed(error, "unlock", Some(rank)))
    }

    /// Opens all targets. Their locks are taken when the first operation needs them, and this rank's own, which its loads and stores
    /// need, with the first of these. They are taken at once where loads and stores don't come by here: through a pointer, and to others'
    /// parts of a shared window.
    #[inline]
    pub(super) fn lock_all(&self, assert: Assert) -> Result<()> {
        let call = || -> Result<()> {
            self.process.ready()?;
            self.check_locks()?;
            assert.allowed("lock_all", Assert::NOCHECK)?;
            let unchecked = assert.contains(Assert::NOCHECK);
            let locked = self.next(Step::LockAll { unchecked })?;
            let own = self.control.rank();
            // What is checked is to see the own lock's time from its begin.
            if self.flavor == Flavor::Shared || self.pointed.get() || self.process.checks() {
                self.lock_at_once(unchecked)?;
            } else if !unchecked && self.control.is_exposed(own) {
                return Err(ErrorKind::Epoch(EXPOSED).into());
            }
            self.enter(locked);
            Ok(())
        };
        call().map_err(|error| self.failed(error, "lock_all", None))
    }

    /// Takes the locks that loads and stores need, or none.
    #[cold]
    fn lock_at_once(&self, unchecked: bool) -> Result<()> {
        let own = self.control.rank() as usize;
        let mut at_once = match self.flavor {
            Flavor::Shared => 0..self.targets.len(),
            _ => own..own + 1,
        };
        at_once
            .try_for_each(|rank| self.lock_lazily(&self.targets[rank], unchecked))
            .inspect_err(|_| self.give_back_all())
    }

    /// Unlocks all targets: all operations are done.
    #[inline]
    pub(super) fn unlock_all(&self) -> Result<()> {
        let call = || -> Result<()> {
            self.step(Step::UnlockAll)?;
            // To give back a claim is a full barrier.
            let settled = match self.claims.get() {
                true => self.await_done(None),
                false => self.settle(None),
            };
            self.give_back_all();
            let locked = EpochState::LockAll { unchecked: false };
            settled.map_err(|error| error.within(|| locked.to_string()))
        };
        call().map_err(|error| self.failed(error, "unlock_all", None))
    }

    /// Takes this rank's own lock, if lock_all promised it and nothing has needed it so far.
    #[inline]
    pub(super) fn lock_own(&self) -> Result<()> {
        let own = &self.targets[self.control.rank() as usize];
        match self.epoch.get() {
            EpochState::LockAll { unchecked } if own.access.get() == Access::Closed => {
                self.lock_lazily(own, unchecked)
            }
            _ => Ok(()),
        }
    }

    /// The program has a pointer to memory of its window, and what is loaded and stored through it isn't seen: from here on lock_all takes
    /// the own lock at once, and one that is open takes it now.
    #[cold]
    pub(super) fn point(&self) -> Result<()> {
        self.pointed.set(true);
        self.lock_own()
    }

    /// Takes the lock that lock_all promised, shared.
    pub(super) fn lock_lazily(&self, target: &Target, unchecked: bool) -> Result<()> {
        let access = match unchecked {
            true => Access::Unchecked,
            false => self.claim(target, Sharing::Shared)?,
        };
        self.claims.set(self.claims.get() | matches!(access, Access::Claimed(_)));
        target.access.set(access);
        self.opened.borrow_mut().push(target.rank);
        Ok(())
    }

    /// Operations on a target are done, at both sides. Ends with a full barrier.
    #[inline]
    pub(super) fn flush(&self, rank: i32) -> Result<()> {
        self.flush_as("flush", Some(rank))
    }

    /// Operations on all targets are done.
    #[inline]
    pub(super) fn flush_all(&self) -> Result<()> {
        self.flush_as("flush_all", None)
    }

    /// Operations on a target are done at this side: buffers may be used again.
    pub(super) fn flush_local(&self, rank: i32) -> Result<()> {
        self.flush_as("flush_local", Some(rank))
    }

    /// Operations on all targets are done at this side.
    pub(super) fn flush_local_all(&self) -> Result<()> {
        self.flush_as("flush_local_all", None)
    }

    /// That an operation is done at this side is known once it is done at the other, so the local flushes wait as long.
    #[inline]
    fn flush_as(&self, call: &'static str, rank: Option<i32>) -> Result<()> {
        let flush = || -> Result<()> {
            self.passive()?;
            let target = match rank {
                // Nothing is under way to PROC_NULL.
                Some(rank) => match self.target(rank)? {
                    None => return Ok(()),
                    target => target,
                },
                None => None,
            };
            if let (Some(target), EpochState::Locks(_)) = (target, self.epoch.get()) {
                if target.access.get() == Access::Closed {
                    return Err(ErrorKind::Epoch(NOT_LOCKED).into());
                }
            }
            self.settle(target)
        };
        flush().map_err(|error| self.failed(error, call, rank))
    }

    /// Orders this rank's own loads and stores of its window against what others do.
    pub(super) fn sync(&self) -> Result<()> {
        match self.epoch.get() {
            EpochState::Freed => Err(self.failed(ErrorKind::WindowFreed.into(), "sync", None)),
            _ => {
                full_barrier();
                self.stored.set(false);
                self.process.oblige().map_err(|error| self.failed(error, "sync", None))
            }
        }
    }

    /// Waits until operations on a target, or on all, are done; gives the first of them to fail.
    #[inline]
    pub(super) fn settle(&self, target: Option<&Target>) -> Result<()> {
        // Before whatever tells another rank of it, and before this rank's own loads.
        full_barrier();
        self.await_done(target)
    }

    /// The same, without a barrier.
    #[inline]
    fn await_done(&self, target: Option<&Target>) -> Result<()> {
        match self.flight.is_shipped() {
            true => self.wait_settled(target)?,
            false => self.process.oblige()?,
        }
        self.flight.ledger.take_failure(target.map(|target| target.peer)).map_or(Ok(()), Err)
    }

    #[cold]
    fn wait_settled(&self, target: Option<&Target>) -> Result<()> {
        let Some(target) = target else {
            let settled = self.await_all().and_then(|()| self.confirm(None));
            self.drain();
            return settled;
        };
        let is_settled = || self.flight.ledger.outstanding(target.peer) == 0;
        if is_settled() {
            self.process.oblige()?;
        } else {
            // Here the engine can be asked at no cost, so that the scope's end needn't.
            let settled = |state: &State| is_settled().then(|| state.holds_nothing());
            // Who can't wait gives the operations up: nothing touches their memory any more.
            let idle = self
                .await_one(Activity::Flush, target, || target.peer, settled)
                .inspect_err(|_| self.process.give_up(self.window))?;
            if idle {
                self.flight.give_back();
            }
        }
        // Of a target that is gone all counts as done.
        if self.flight.is_lent() && target.route == Route::Rdma {
            self.process.await_network(self.window, Some(target.peer));
        }
        self.confirm(Some(target))
    }

    /// Waits for what one target does, where `whom` says on which rank of the job that depends.
    fn await_one<T>(
        &self,
        activity: Activity,
        target: &Target,
        whom: impl Fn() -> u32,
        poll: impl Fn(&State) -> Option<T>,
    ) -> Result<T> {
        let poll = |state: &mut State, arming| {
            if arming {
                self.process.note_wait(Some(whom()));
            }
            poll(state).map(Ok)
        };
        self.process.during(activity, target.peer, || self.process.wait(poll))
    }

    /// Gets a target's lock.
    #[inline(always)]
    fn claim(&self, target: &Target, sharing: Sharing) -> Result<Access> {
        if target.route != Route::Direct {
            return self.claim_apart(target, sharing);
        }
        self.claim_here(target, sharing)
    }

    /// Where messages are the way to the target's memory, they are the one to its lock, unless it's this rank's own.
    #[cold]
    #[inline(never)]
    fn claim_apart(&self, target: &Target, sharing: Sharing) -> Result<Access> {
        if target.rank != self.control.rank() {
            return self.claim_by_message(target, sharing);
        }
        let forsaken = match self.process.checks() {
            true => self.process.engine().state().reclaim_own(self.window, sharing),
            false => None,
        };
        match forsaken {
            Some(claim) => self.await_claim(target, claim),
            None => self.claim_here(target, sharing),
        }
    }

    #[inline(always)]
    fn claim_here(&self, target: &Target, sharing: Sharing) -> Result<Access> {
        if self.control.is_exposed(target.rank) {
            return Err(ErrorKind::Epoch(EXPOSED).into());
        }
        let claim = self.control.claim(target.rank, self.user(), sharing);
        match claim.ticket() {
            Some(ticket) if !self.process.is_bereft() => Ok(self.claimed(target, sharing, ticket)),
            _ => self.await_claim(target, claim),
        }
    }

    /// This rank, as locks know it.
    #[inline]
    fn user(&self) -> User {
        User { number: self.control.rank(), served: false }
    }

    #[inline]
    fn claimed(&self, target: &Target, sharing: Sharing, ticket: u32) -> Access {
        target.ticket.set(ticket);
        self.own_lock(sharing, true);
        Access::Claimed(sharing)
    }

    /// Waits for a lock; where a rank has died, this one's may be what was waited for.
    #[cold]
    #[inline(never)]
    fn await_claim(&self, target: &Target, mut claim: Claim) -> Result<Access> {
        let bereft = self.process.is_bereft();
        let wait = || {
            if !bereft && self.process.spin(|| self.control.poll(target.rank, &mut claim, false)) {
                return Ok(());
            }
            self.process.wait(|state, arming| {
                // The lock of a rank that died is to be had, as whoever is dead is passed over; that it died is heard of soon.
                if let Some(gone) = state.gone(target.peer) {
                    return Some(Err(gone));
                }
                if self.control.poll(target.rank, &mut claim, arming) {
                    return (!self.control.is_dead(target.rank)).then_some(Ok(()));
                }
                if arming {
                    let holder = self.control.locker(target.rank);
                    self.process.note_wait(holder.map(|rank| self.control.group().process(rank)));
                }
                None
            })
        };
        let waited = self.process.during(Activity::Lock, target.peer, wait);
        match (waited, claim.ticket()) {
            (Ok(()), Some(ticket)) => Ok(self.claimed(target, claim.sharing(), ticket)),
            (waited, _) => {
                let goes_on = self.process.checks() && self.process.check_job().is_ok();
                match goes_on && claim.ticket().is_none() && target.rank == self.control.rank() {
                    true => self.process.engine().state().forsake_own(self.window, claim),
                    // If it still stands in the queue it stays there. Nobody behind it waits for long: the target is gone, or
                    // the job is being ended, and that ends their calls too.
                    false => self.control.release(target.rank, claim),
                }
                Err(waited.err().unwrap_or_else(|| ErrorKind::Epoch(NOT_LOCKED).into()))
            }
        }
    }

    fn claim_by_message(&self, target: &Target, sharing: Sharing) -> Result<Access> {
        let asked = Cell::new(0);
        let start = |state: &mut State, number| {
            asked.set(number);
            state.start_lock(target.peer, self.window, number, sharing);
        };
        // The target answers in time: it's whoever has the lock that lets this rank wait.
        let holder = || {
            let locker = self.control.locker(target.rank).filter(|by| *by != self.control.rank());
            locker.map_or(target.peer, |by| self.control.group().process(by))
        };
        let refused = self.ask(Activity::Lock, target, start, holder, || false);
        if refused.is_err() && asked.get() != 0 && self.process.check_job().is_ok() {
            let mut engine = self.process.engine();
            engine.state().forsake_lock(target.peer, self.window, asked.get());
            engine.progress();
        }
        refused?.map_or(Ok(Access::Granted), Err)
    }

    /// Asks a target for something, and waits for its answer, that it is done or why it is refused; or until none is needed. The answer
    /// depends on the rank of the job that `whom` gives.
    pub(super) fn ask(
        &self,
        activity: Activity,
        target: &Target,
        start: impl FnOnce(&mut State, u64),
        whom: impl Fn() -> u32,
        is_needless: impl Fn() -> bool,
    ) -> Result<Option<Error>> {
        let ticket = Arc::new(Ticket::default());
        {
            let mut engine = self.process.engine();
            let state = engine.state();
            if let Some(gone) = state.gone(target.peer) {
                return Err(gone);
            }
            self.process.check_job()?;
            let number = self.flight.ledger.issue(target.peer);
            state.ticket(
                Operation { target: target.peer, window: self.window, number },
                ticket.clone(),
            );
            start(state, number);
            engine.progress();
        }
        let is_over = |_: &State| (ticket.is_done() || is_needless()).then_some(());
        if let Err(error) = self.await_one(activity, target, whom, is_over) {
            // Where the job goes on, so does what else is under way.
            if self.process.check_job().is_err() {
                self.process.give_up(self.window);
            }
            return Err(error);
        }
        let refused = ticket.take_failure();
        if refused.is_some() {
            // That the target is gone has failed the account too, of which nothing else is open.
            self.flight.ledger.take_failure(Some(target.peer));
        }
        Ok(refused)
    }

    /// Gives back the locks that lock_all took.
    #[inline]
    fn give_back_all(&self) {
        let mut opened = self.opened.borrow_mut();
        opened.iter().for_each(|&rank| self.give_back(&self.targets[rank as usize]));
        // Its memory is for the next ones.
        opened.clear();
        self.claims.set(false);
    }

    /// Gives a target's lock back, after what was done under it.
    #[inline]
    fn give_back(&self, target: &Target) {
        self.synchronized(target);
        match target.access.replace(Access::Closed) {
            Access::Claimed(sharing) => {
                self.own_lock(sharing, false);
                let claim = Claim::held(self.user(), sharing, target.ticket.get());
                self.control.release(target.rank, claim);
            }
            Access::Granted => self.start_unlock(target),
            Access::Closed | Access::Started | Access::Unchecked => {}
        }
    }

    /// Rule 9: NOSTORE is about what was stored since then. Mostly nothing was.
    #[inline]
    fn synchronized(&self, target: &Target) {
        if self.stored.get() && target.rank == self.control.rank() {
            self.stored.set(false);
        }
    }

    #[cold]
    fn start_unlock(&self, target: &Target) {
        let mut engine = self.process.engine();
        engine.state().start_unlock(target.peer, self.window);
        engine.progress();
    }

    /// The target with this rank; PROC_NULL has no lock.
    #[inline]
    fn real_target(&self, rank: i32) -> Result<&Target> {
        let found = usize::try_from(rank).ok().and_then(|rank| self.targets.get(rank));
        let size = self.targets.len() as u32;
        found.ok_or_else(|| ErrorKind::Rank { rank, size, null: false }.into())
    }

    #[cold]
    pub(super) fn failed(&self, error: Error, call: &'static str, target: Option<i32>) -> Error {
        let error = error.at(|| self.place(call, target, None));
        self.raise(error.within(|| self.epoch.get().to_string()))
    }
}

const TWICE: &str = "the target is locked by this rank already: unlock it first (rule 5)";
const NOT_LOCKED: &str = "the target isn't locked by this rank: lock it before (rule 5)";
