//! How the calls of a rank wait, and make progress meanwhile.

use std::sync::atomic::Ordering;

use super::{Meeting, Process};
use crate::barrier::Barrier;
use crate::check::circle::Circle;
use crate::engine::{Engine, State, Ticket, Venue};
use crate::error::{ErrorKind, Result};
use crate::group::Group;
use crate::job::Activity;

impl Process {
    /// Makes progress until `poll` gives something. It is told when this rank is about to sleep, so that whoever it waits
    /// for can be asked to ring.
    ///
    /// # Errors
    /// The job is being ended; the link has failed, while `poll` gives nothing; and what `poll` gives.
    pub(crate) fn wait<T>(
        &self,
        mut poll: impl FnMut(&mut State, bool) -> Option<Result<T>>,
    ) -> Result<T> {
        let brief = self.waiter.brief();
        if brief > 0 {
            let mut engine = self.engine();
            let look = |_| self.look(&mut engine, &mut poll, false).1;
            if let Some(outcome) = (0..brief).find_map(look) {
                return outcome;
            }
        }
        let served = self.waiter.enter();
        let outcome = self.turn_by_turn(poll);
        if served && self.waiter.leave() && self.engine().progress() {
            // There may be more: the progress thread goes on.
            self.waiter.ring();
        }
        outcome
    }

    /// Makes progress once; whether anything moved or happened to the job, and what `poll` gives. Where neither is anything, and this
    /// thread isn't about to sleep, glances at the link a few times: most of what comes is seen so in half the time. In line, since
    /// each place knows which it is: a fence took 3 % more instructions otherwise.
    #[inline(always)]
    fn look<T>(
        &self,
        engine: &mut Engine,
        poll: &mut impl FnMut(&mut State, bool) -> Option<Result<T>>,
        arming: bool,
    ) -> (bool, Option<Result<T>>) {
        let mut moved = engine.progress();
        if moved {
            self.segment.note_move();
            if engine.state().take_asked() {
                self.waiter.asked();
            }
        }
        moved |= self.hear_of_ranks(engine);
        if moved {
            self.waiter.nudge(u32::from(arming));
        }
        let mut outcome = poll(engine.state(), arming);
        let mut glances = if moved || arming { 0 } else { GLANCES };
        while glances > 0 && outcome.is_none() {
            std::hint::spin_loop();
            if !engine.is_quiet() {
                break;
            }
            outcome = poll(engine.state(), false);
            glances -= 1;
        }
        match engine.state().is_broken() {
            true => (moved, unless_broken(engine.state(), outcome)),
            false => (moved, outcome),
        }
    }

    fn turn_by_turn<T>(
        &self,
        mut poll: impl FnMut(&mut State, bool) -> Option<Result<T>>,
    ) -> Result<T> {
        let (mut idle, mut circle) = (0, None);
        loop {
            let mut engine = self.engine();
            let (mut moved, mut looks) = (false, 0);
            // To let go of the engine after each look would take as long as the look.
            while looks == 0 || looks < LOOKS && idle + looks < self.waiter.patience() {
                let (progress, outcome) = self.look(&mut engine, &mut poll, false);
                if let Some(outcome) = outcome {
                    return outcome;
                }
                moved = progress;
                if moved {
                    break;
                }
                looks += 1;
            }
            drop(engine);
            self.check_job()?;
            if moved || idle < self.waiter.patience() {
                idle = if moved { 0 } else { idle + looks };
                continue;
            }
            let found = self.waiter.sleep(|| {
                // An end or an abort since the last look rang nobody: this rank's bell wasn't armed yet.
                let (moved, outcome) = self.look(&mut self.engine(), &mut poll, true);
                (moved || outcome.is_some()).then_some(outcome)
            });
            if let Some(Some(outcome)) = found {
                return outcome;
            }
            // Woken by what moves nothing here, an access to memory, it looks for the next as it did for this one.
            idle = 0;
            if found.is_none() {
                self.check_launcher();
                self.check_circle(&mut circle)?;
            }
        }
    }

    /// Looks for a short time whether something is there: the usual case takes a few hundred nanoseconds and not the
    /// engine's lock. Whoever needs this rank's answer before it can do its part gets it soon enough.
    #[inline]
    pub(crate) fn spin(&self, mut is_there: impl FnMut() -> bool) -> bool {
        for _ in 0..self.waiter.spins() {
            if is_there() {
                return true;
            }
            std::hint::spin_loop();
        }
        false
    }

    /// Makes progress for the progress thread; true if there may be more.
    pub(crate) fn serve(&self) -> bool {
        let mut engine = self.engine();
        let moved = engine.progress();
        // No call waited for it.
        engine.state().take_asked();
        let heard = self.hear_of_ranks(&mut engine);
        if moved || heard {
            self.waiter.nudge(0);
        }
        moved
    }

    /// Makes progress once, for a call that asks whether something is there; whether it is.
    ///
    /// # Errors
    /// The job is being ended; the link has failed, so that it never will be.
    pub(crate) fn test(&self, is_there: impl FnOnce(&mut State) -> bool) -> Result<bool> {
        self.poll()?;
        let mut engine = self.engine();
        let is_there = is_there(engine.state());
        match engine.state().broken().filter(|_| !is_there) {
            Some(error) => Err(error),
            None => Ok(is_there),
        }
    }

    /// Makes progress once, for a call that doesn't wait.
    ///
    /// # Errors
    /// The job is being ended.
    pub(crate) fn poll(&self) -> Result<()> {
        self.serve();
        // Who calls this in a loop lets others run.
        self.waiter.pause();
        self.check_job()
    }

    /// Makes progress in a call that has nothing to wait for, where no thread does: its caller may repeat it until a peer has
    /// done something, and that peer may need this rank's answer for it (MPI-5.0 section 12.7.3).
    ///
    /// # Errors
    /// As [`poll`](Process::poll).
    #[inline]
    pub(crate) fn oblige(&self) -> Result<()> {
        if self.unserved.load(Ordering::Relaxed) { self.poll() } else { Ok(()) }
    }

    /// Waits for all of a group, to which this process belongs as `rank`. Whoever has lost a member doesn't enter:
    /// the others may have failed one meeting earlier or later, and two that fail at different ones must not take each other for
    /// a success.
    pub(crate) fn meet(&self, meeting: &Meeting, group: &Group, rank: u32) -> Result<()> {
        self.check_living(group)?;
        match meeting {
            Meeting::Flags(barrier) => self.meet_by_flags(barrier),
            Meeting::Messages(venue) => self.meet_at(*venue, group, rank),
        }
    }

    fn meet_by_flags(&self, barrier: &Barrier) -> Result<()> {
        let mut entered = barrier.enter();
        if self.spin(|| barrier.poll(&mut entered, false)) {
            return self.oblige();
        }
        self.wait(|state, arming| {
            if barrier.poll(&mut entered, arming) {
                return Some(Ok(()));
            }
            state.dead_among(barrier.group()).map(Err)
        })
    }

    /// Likewise by messages, which need no memory that all share.
    pub(crate) fn meet_at(&self, venue: Venue, group: &Group, rank: u32) -> Result<()> {
        self.check_living(group)?;
        let mut engine = self.engine();
        engine.state().enter_meeting(venue, group, rank);
        engine.progress();
        drop(engine);
        self.wait(|state, arming| {
            let Some(awaited) = state.awaited_in_meeting(venue) else { return Some(Ok(())) };
            if arming {
                self.note_wait(Some(awaited));
            }
            state.dead_among(group).map(Err)
        })
    }

    /// Waits as one of a group: whoever of it died, the call can't end well, and who knows it may have left the call
    /// already.
    pub(crate) fn wait_among<T>(
        &self,
        group: &Group,
        mut poll: impl FnMut(&mut State) -> Option<Result<T>>,
    ) -> Result<T> {
        self.wait(|state, _| poll(state).or_else(|| state.dead_among(group).map(Err)))
    }

    /// Where uses of windows are checked: whether this rank waits in a circle of ranks, each in one call for so long that no
    /// frame can be under way which ends it.
    fn check_circle(&self, seen: &mut Option<Circle>) -> Result<()> {
        if self.checks() {
            let mut engine = self.engine();
            let call = self.segment.noted(self.me.rank).calls;
            let told = engine.state().check().and_then(|check| check.take_circle(call));
            if let Some(text) = told {
                return Err(ErrorKind::Circle(text).into());
            }
            let circle = Circle::of(&self.segment, self.me.rank, self.me.size);
            if let Some((calls, text)) = circle.and_then(|circle| circle.has_lasted(seen)) {
                engine.state().note_circle(calls, text.clone());
                engine.progress();
                return Err(ErrorKind::Circle(text).into());
            }
        }
        Ok(())
    }
}

impl Ticket {
    /// Waits until the operation on `target`, a rank of the job, is done; gives what went wrong.
    pub(crate) fn wait(&self, process: &Process, target: Option<u32>) -> Result<()> {
        let poll = |arming: bool| {
            if arming {
                process.note_wait(target);
            }
            self.is_done().then_some(Ok(()))
        };
        // Nobody is waited for in vain: what reaches no rank is done at once.
        process.during(Activity::Request, target.unwrap_or(0), || {
            process.wait(|_, arming| poll(arming))
        })?;
        self.take_failure().map_or(Ok(()), Err)
    }
}

/// Glances between two times that a waiting call makes progress: a glance takes a fifth of that, and half of it is for the
/// processor to rest.
const GLANCES: u32 = 4;

/// Looks of a call that waits before another of its rank's threads may have the engine.
const LOOKS: u32 = 4;

/// What a look comes to: where the link has failed, what is there counts, and nothing more will come. Peers seem gone then that aren't.
#[cold]
fn unless_broken<T>(state: &State, outcome: Option<Result<T>>) -> Option<Result<T>> {
    let Some(error) = state.broken() else { return outcome };
    match outcome {
        None => Some(Err(error)),
        Some(Err(gone)) if matches!(gone.kind(), ErrorKind::Gone { .. }) => Some(Err(error)),
        outcome => outcome,
    }
}
