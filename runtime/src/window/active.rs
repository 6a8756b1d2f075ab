//! Active target synchronisation: fence; start and complete, post and wait (MPI-5.0 sections 12.5.1 and 12.5.2).

use super::core::Core;
use super::state::{Access, EpochState, Step};
use super::targets::Target;
use crate::assert::Assert;
use crate::control::Tally;
use crate::counter;
use crate::engine::State;
use crate::error::{Error, ErrorKind, Result};
use crate::group::Group;
use crate::job::Activity;
use crate::route::Route;

impl Core {
    /// A fence: all operations of this rank are done, then all ranks meet. Without NOSUCCEED it opens the next epoch. Whether
    /// or not it fails, no operation of this rank is under way when it returns; but one that is refused, for asserts that no
    /// fence takes or in its place, does nothing.
    pub(super) fn fence(&self, assert: Assert) -> Result<()> {
        if let Err(error) = self.process.ready() {
            self.process.give_up(self.window);
            return Err(error);
        }
        let (before, used) = (self.epoch.get(), self.used.get());
        let step = || -> Result<()> {
            assert.allowed_to_fence()?;
            if self.posted.borrow().is_some() {
                return Err(ErrorKind::Epoch(FENCE_EXPOSED).into());
            }
            self.step(Step::Fence { succeeds: !assert.contains(Assert::NOSUCCEED) })
        };
        step().map_err(|error| self.failed(error, "fence", None))?;
        self.process.note(Activity::Fence, self.window);
        let truth = self.check_asserts(assert, used);
        self.stored.set(false);
        let settled = self.settle(None);
        // Puts of the epoch that ends arrive until the meeting is over, those of the next from before this rank sees that it
        // is: none of either is refused for a promise about the other.
        let (promised, no_put) = (self.control.is_no_put(), assert.contains(Assert::NOPUT));
        if promised && !no_put {
            self.control.set_no_put(false);
        }
        let met = match self.process.checks() {
            true => self.announce_fence(assert, before),
            false => Ok(()),
        };
        let met = met.and_then(|()| self.communicator.meet(&self.meeting));
        if no_put && !promised {
            self.control.set_no_put(true);
        }
        self.process.note(Activity::Computing, 0);
        let place = |error: Error| error.at(|| self.place("fence", None, None));
        let settled = settled.map_err(|error| place(error).within(|| before.to_string()));
        if met.is_err() {
            // Where not all are, no epoch begins.
            self.epoch.set(EpochState::Closed);
        }
        // One call that fails is one error to the handler, the gravest of what is wrong.
        met.and(settled).and(truth).map_err(|error| self.raise(place(error)))
    }

    /// Rule 9, as far as this rank can tell.
    fn check_asserts(&self, assert: Assert, used: bool) -> Result<()> {
        if assert.contains(Assert::NOSTORE) && self.stored.get() {
            return Err(ErrorKind::Epoch(STORED).into());
        }
        if assert.contains(Assert::NOPRECEDE) && used {
            return Err(ErrorKind::Epoch(PRECEDED).into());
        }
        Ok(())
    }

    /// Whether a fence has opened an epoch.
    pub(super) fn is_fenced(&self) -> bool {
        matches!(self.epoch.get(), EpochState::Fence(_))
    }

    /// What closes the last epoch was a fence already.
    pub(super) fn end_epochs(&self) {
        if self.is_fenced() {
            self.epoch.set(EpochState::Closed);
        }
    }

    /// Opens an access epoch to a group: waits until each of its ranks has posted.
    pub(super) fn start(&self, group: &Group, assert: Assert) -> Result<()> {
        let call = || -> Result<()> {
            self.process.ready()?;
            assert.allowed("start", Assert::NOCHECK)?;
            let targets = self.members(group)?;
            let before = self.epoch.get();
            self.step(Step::Start(targets.len() as u32))?;
            let posted = |target: &Target| {
                let count = counter::next(target.posts.get());
                // One that needs no check was made before, or is none of the program's.
                assert.contains(Assert::NOCHECK)
                    || self.control.heard(Tally::Posts, target.rank, count, false)
            };
            if self.all(&targets, posted) {
                self.process.oblige().inspect_err(|_| self.epoch.set(before))?;
            } else {
                let waited = self.process.during(Activity::Start, self.window, || {
                    self.await_tallies(Tally::Posts, &targets)
                });
                waited.map_err(|error| {
                    self.epoch.set(before);
                    self.unmatched(error, "start", &targets)
                })?;
            }
            self.note_start(&targets, assert);
            for &rank in &targets {
                let target = &self.targets[rank as usize];
                target.posts.set(counter::next(target.posts.get()));
                target.access.set(Access::Started);
            }
            self.opened.replace(targets);
            Ok(())
        };
        call().map_err(|error| self.failed(error, "start", None))
    }

    /// Ends the access epoch: operations are done, and the targets are told.
    pub(super) fn complete(&self) -> Result<()> {
        let call = || -> Result<()> {
            let state = self.epoch.get();
            self.step(Step::Complete)?;
            let settled = self.settle(None);
            for rank in self.opened.take() {
                let target = &self.targets[rank as usize];
                target.access.set(Access::Closed);
                self.signal(Tally::Completes, target);
            }
            settled.map_err(|error| error.within(|| state.to_string()))
        };
        call().map_err(|error| self.failed(error, "complete", None))
    }

    /// Exposes this rank's window to a group.
    pub(super) fn post(&self, group: &Group, assert: Assert) -> Result<()> {
        let call = || -> Result<()> {
            self.process.ready()?;
            assert.allowed("post", Assert::NOCHECK | Assert::NOSTORE | Assert::NOPUT)?;
            if self.epoch.get() == EpochState::Freed {
                return Err(ErrorKind::WindowFreed.into());
            }
            if self.posted.borrow().is_some() {
                return Err(ErrorKind::Epoch(POSTED_TWICE).into());
            }
            self.await_unlocked()?;
            let origins = self.members(group)?;
            self.check_asserts(assert, false)?;
            self.stored.set(false);
            self.control.set_exposed(true);
            self.control.set_no_put(assert.contains(Assert::NOPUT));
            self.note_post(&origins, assert);
            // What this rank stored is there before its peers hear of the post, by the release in the signal.
            origins
                .iter()
                .for_each(|&rank| self.signal(Tally::Posts, &self.targets[rank as usize]));
            *self.posted.borrow_mut() = Some(origins);
            Ok(())
        };
        call().map_err(|error| self.failed(error, "post", None))
    }

    /// Rule 6 at the owner. An unlock that travels by message may come later than what its sender did next, but before the
    /// sender's answer to a question.
    fn await_unlocked(&self) -> Result<()> {
        let own = self.control.rank();
        if self.epoch.get() == (EpochState::LockAll { unchecked: false }) {
            // Whether its lock was needed so far or not.
            return Err(ErrorKind::LockedWindow { by: own }.into());
        }
        // Out of the others' direct reach, whichever way this rank goes to theirs.
        let is_away = self.targets[own as usize].offset.is_none();
        while let Some(by) = self.control.locker(own) {
            let locker = &self.targets[by as usize];
            if by != own && (is_away || locker.route != Route::Direct) {
                let ping = |state: &mut State, number| {
                    state.start_ping(locker.peer, self.window, number);
                };
                let is_unlocked = || self.control.locker(own) != Some(by);
                let lost = self.ask(Activity::Post, locker, ping, || locker.peer, is_unlocked)?;
                lost.map_or(Ok(()), Err)?;
                if is_unlocked() {
                    continue;
                }
            }
            return Err(ErrorKind::LockedWindow { by }.into());
        }
        Ok(())
    }

    /// Waits until all ranks of the post's group have completed.
    pub(super) fn wait(&self) -> Result<()> {
        let call = || -> Result<()> {
            let origins = self.posted.borrow();
            let Some(origins) = origins.as_ref() else {
                return Err(ErrorKind::Epoch(WAIT_WITHOUT).into());
            };
            if self.all(origins, |origin| self.has_completed(origin)) {
                return self.process.oblige();
            }
            let waited = self.process.during(Activity::Wait, self.window, || {
                self.await_tallies(Tally::Completes, origins)
            });
            waited.map_err(|error| self.unmatched(error, "wait", origins))
        };
        let waited = call();
        if self.posted.borrow().is_some() {
            self.end_exposure();
        }
        waited.map_err(|error| self.failed(error, "wait", None))
    }

    /// Whether all ranks of the post's group have completed; the exposure has ended then.
    pub(super) fn test(&self) -> Result<bool> {
        let call = || -> Result<bool> {
            let origins = self.posted.borrow();
            let Some(origins) = origins.as_ref() else {
                return Err(ErrorKind::Epoch(WAIT_WITHOUT).into());
            };
            if self.all(origins, |origin| self.has_completed(origin)) {
                return self.process.oblige().map(|()| true);
            }
            self.process.poll()?;
            let mut engine = self.process.engine();
            for &rank in origins {
                let origin = &self.targets[rank as usize];
                match engine.state().gone(origin.peer) {
                    Some(gone) if !self.has_completed(origin) => return Err(gone),
                    _ => {}
                }
            }
            let is_done = self.all(origins, |origin| self.has_completed(origin));
            match engine.state().broken().filter(|_| !is_done) {
                Some(error) => Err(error),
                None => Ok(is_done),
            }
        };
        let done = call();
        // As after a wait: an origin that is gone completes no more.
        if !matches!(done, Ok(false)) && self.posted.borrow().is_some() {
            self.end_exposure();
        }
        done.map_err(|error| self.failed(error, "test", None))
    }

    fn has_completed(&self, origin: &Target) -> bool {
        let count = counter::next(origin.completes.get());
        self.control.heard(Tally::Completes, origin.rank, count, false)
    }

    fn end_exposure(&self) {
        let origins = self.posted.take().unwrap_or_default();
        self.note_exposed(&origins);
        for rank in origins {
            let origin = &self.targets[rank as usize];
            origin.completes.set(counter::next(origin.completes.get()));
        }
        self.stored.set(false);
        self.control.set_exposed(false);
        self.control.set_no_put(false);
    }

    fn all(&self, ranks: &[u32], is: impl Fn(&Target) -> bool) -> bool {
        ranks.iter().all(|&rank| is(&self.targets[rank as usize]))
    }

    /// Waits for one more of these from each rank.
    fn await_tallies(&self, tally: Tally, ranks: &[u32]) -> Result<()> {
        let mut left = ranks.iter().map(|&rank| &self.targets[rank as usize]).peekable();
        let heard = |target: &Target, arming| {
            let count = match tally {
                Tally::Posts => target.posts.get(),
                Tally::Completes => target.completes.get(),
            };
            self.control.heard(tally, target.rank, counter::next(count), arming)
        };
        while let Some(target) = left.peek() {
            if self.process.spin(|| heard(target, false)) {
                left.next();
                continue;
            }
            self.process.wait(|state, arming| {
                while let Some(target) = left.peek() {
                    if !heard(target, arming) {
                        if arming {
                            self.process.note_wait(Some(target.peer));
                        }
                        // Whoever of them died, this can't end: and one that is alive may have left for that very reason.
                        // What the dead one sent before was taken in before it was given up.
                        let lost = left.clone().find_map(|target| {
                            let gone = state.gone(target.peer)?;
                            (!heard(target, false)).then_some(gone)
                        });
                        return lost.map(Err);
                    }
                    left.next();
                }
                Some(Ok(()))
            })?;
        }
        Ok(())
    }

    /// Tells a rank of a post or complete, behind what was done before.
    fn signal(&self, tally: Tally, to: &Target) {
        let own = to.rank == self.control.rank();
        if to.route == Route::Direct || own {
            let told = &to.told[tally as usize];
            told.set(counter::next(told.get()));
            return self.control.signal(tally, to.rank, self.control.rank(), told.get());
        }
        let mut engine = self.process.engine();
        if tally == Tally::Completes {
            let (nocheck, caller) = self.started.get();
            engine.state().note_complete(self.window, to.peer, nocheck, caller);
        }
        engine.state().start_signal(to.peer, self.window, tally);
        engine.progress();
    }

    /// The ranks in the window of a group's processes.
    fn members(&self, group: &Group) -> Result<Vec<u32>> {
        let window = self.control.group();
        let rank = |&process: &u32| {
            window.rank_of(process).ok_or_else(|| ErrorKind::Outside { process }.into())
        };
        group.processes().iter().map(rank).collect()
    }
}

const STORED: &str = "NOSTORE, but this rank has stored to its window since the last synchronisation (rule 9): leave out \
     the assert";
const PRECEDED: &str = "NOPRECEDE, but this rank has issued operations since the last fence (rule 9): leave out the assert";
const POSTED_TWICE: &str =
    "a post while the window is exposed: wait for the first one's end (rule 4)";
const WAIT_WITHOUT: &str = "a wait or test without a post: call post before it (rule 4)";
const FENCE_EXPOSED: &str =
    "a fence while the window is exposed by a post: wait for its end first (rule 3)";
