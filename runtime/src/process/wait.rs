//! The waiting of a rank's calls, which make progress meanwhile.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::{Meeting, Process, UNSERVED};
use crate::barrier::Barrier;
use crate::bytes;
use crate::check::circle::WaitCycle;
use crate::engine::{Engine, State, Ticket, Venue};
use crate::error::{ErrorKind, Result};
use crate::group::Group;
use crate::job::Activity;
use crate::observe::{self, At};
use crate::program;
use crate::waiter::NAP;

impl Process {
    /// Makes progress until `poll` returns a result. Its second argument is true when this rank is
    /// about to sleep, so that the rank that it waits for can be asked to ring.
    ///
    /// # Errors
    /// The error that `poll` returns. PROC_ABORTED if the job is being aborted. OTHER if the link
    /// has failed and `poll` returns nothing.
    pub(crate) fn wait<T>(
        &self,
        mut poll: impl FnMut(&mut State, bool) -> Option<Result<T>>,
    ) -> Result<T> {
        match self.glance_at_schedules(&mut poll).or_else(|| self.glance(&mut poll)) {
            Some(outcome) => outcome,
            None => self.wait_longer(poll),
        }
    }

    /// Advances schedules for a short time, and calls `poll` when one has ended, as the beginning
    /// of a wait. `None` if `poll` returns nothing. Messages of other calls wait meanwhile.
    #[inline]
    fn glance_at_schedules<T>(
        &self,
        poll: &mut impl FnMut(&mut State, bool) -> Option<Result<T>>,
    ) -> Option<Result<T>> {
        if !self.has_schedules() {
            return None;
        }
        let looks = self.waiter.spins() / SPINS_PER_ADVANCE;
        (0..looks).find_map(|_| {
            if self.advance() {
                return poll(self.engine().state(), false);
            }
            std::hint::spin_loop();
            None
        })
    }

    /// Calls `poll` once, before a wait, and makes no progress. `None` if it returns nothing, if
    /// the link has failed, which the wait reports, or if only calls make progress.
    #[inline]
    pub(crate) fn find<T>(&self, poll: impl FnOnce(&mut State) -> Option<T>) -> Option<T> {
        if self.must_poll() {
            return None;
        }
        let mut engine = self.engine();
        if engine.state().is_broken() { None } else { poll(engine.state()) }
    }

    /// As [`wait`](Process::wait), but first [finds](Process::find) a result that is there.
    pub(crate) fn wait_or_find<T>(
        &self,
        mut poll: impl FnMut(&mut State, bool) -> Option<Result<T>>,
    ) -> Result<T> {
        let mut engine = self.engine();
        let is_fresh = self.must_poll() || engine.state().is_broken();
        let found = if is_fresh { None } else { poll(engine.state(), false) };
        // Steps of schedules may need the engine.
        let early = if self.has_schedules() { 0 } else { self.waiter.early_polls() };
        let found = found.or_else(|| {
            let mut polls = 0..early;
            polls.find_map(|_| self.progress_and_poll(&mut engine, &mut poll, false).1)
        });
        drop(engine);
        let found = found.or_else(|| self.glance_at_schedules(&mut poll));
        found.unwrap_or_else(|| self.wait_longer(poll))
    }

    /// Makes progress and calls `poll` a few times, as the beginning of a wait. `None` if `poll`
    /// returns nothing.
    pub(crate) fn glance<T>(
        &self,
        poll: &mut impl FnMut(&mut State, bool) -> Option<Result<T>>,
    ) -> Option<Result<T>> {
        let polls = self.waiter.early_polls();
        if polls == 0 {
            return None;
        }
        let mut engine = self.engine();
        (0..polls).find_map(|_| self.progress_and_poll(&mut engine, poll, false).1)
    }

    /// As [`wait`](Process::wait), after a [`glance`](Process::glance) without a result.
    pub(crate) fn wait_longer<T>(
        &self,
        poll: impl FnMut(&mut State, bool) -> Option<Result<T>>,
    ) -> Result<T> {
        let served = self.waiter.enter();
        let outcome = self.turn_by_turn(served, poll);
        if self.course.lingers.load(Ordering::Relaxed) {
            self.course.lingers.store(false, Ordering::Relaxed);
        }
        program::has_waited();
        if served {
            self.hand_over();
        }
        outcome
    }

    /// Leaves the progress to the progress thread.
    fn hand_over(&self) {
        if self.waiter.leave() && self.engine().progress() {
            // There may be more frames: wakes the progress thread, which takes over.
            self.waiter.ring();
        }
    }

    /// Looks for the program's line, in a wait that takes long. The progress thread, if it is
    /// `served`, makes progress meanwhile.
    #[cold]
    fn look_for_line(&self, served: bool) {
        if served {
            self.hand_over();
        }
        program::lingers(self.observer.as_ref().and_then(|_| observe::line_of_call()));
        if served {
            self.waiter.enter();
        }
    }

    /// Makes progress once and calls `poll`. Returns whether anything moved or happened in the job,
    /// and the result of `poll`.
    ///
    /// If neither happened, and this thread isn't about to sleep, glances at the link a few times:
    /// most frames are noticed earlier this way. Inlined, since `arming` is constant at each call
    /// site (docs/tuning.md, "Glances at the link").
    #[inline(always)]
    fn progress_and_poll<T>(
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
                if engine.has_mail() {
                    (moved, outcome) = (true, self.take_mail(engine, poll));
                }
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

    /// Takes in operations by mailbox, and calls `poll`, as long as operations come. The peer that
    /// sent one waits for its answer, and often sends the next one at once.
    #[inline(never)]
    fn take_mail<T>(
        &self,
        engine: &mut Engine,
        poll: &mut impl FnMut(&mut State, bool) -> Option<Result<T>>,
    ) -> Option<Result<T>> {
        let (mut outcome, mut mails, mut idle) = (None, 0, 0);
        while outcome.is_none() && mails < MAILS && idle < IDLE_LOOKS {
            match engine.take_mail() {
                true => (mails, idle) = (mails + 1, 0),
                false if engine.is_link_quiet() => idle += 1,
                false => break,
            }
            outcome = poll(engine.state(), false);
            engine.await_mail();
        }
        self.segment.note_move();
        self.waiter.asked();
        outcome
    }

    fn turn_by_turn<T>(
        &self,
        served: bool,
        mut poll: impl FnMut(&mut State, bool) -> Option<Result<T>>,
    ) -> Result<T> {
        let (mut idle, mut yielded, mut circle, mut asleep) = (0, false, None, None);
        let mut nap = if self.observer.is_some() { observe::NAP } else { NAP };
        loop {
            let mut engine = self.engine();
            let (mut moved, mut polls) = (false, 0);
            // Releasing the engine after each poll would take as long as the poll itself.
            let most = if self.has_schedules() { 1 } else { POLLS_PER_LOCK };
            while polls == 0 || polls < most && idle + polls < self.waiter.polls() {
                let (progress, outcome) = self.progress_and_poll(&mut engine, &mut poll, false);
                if let Some(outcome) = outcome {
                    return outcome;
                }
                moved = progress;
                if moved {
                    break;
                }
                polls += 1;
            }
            drop(engine);
            self.check_job()?;
            if self.advance() {
                self.waiter.nudge(0);
                moved = true;
            }
            if moved || idle < self.waiter.polls() {
                idle = if moved { 0 } else { idle + polls };
                yielded &= !moved;
                continue;
            }
            if !yielded {
                // Once before each sleep, even if what ends the yields moves nothing.
                yielded = true;
                let mut outcome = None;
                let is_there = self.waiter.yield_until(|| {
                    let mut engine = self.engine();
                    if engine.state().is_broken() || !engine.is_quiet() {
                        return true;
                    }
                    outcome = poll(engine.state(), false);
                    outcome.is_some()
                });
                match outcome {
                    Some(outcome) => return outcome,
                    None if is_there => continue,
                    None => {}
                }
            }
            self.tell_poisoned();
            let mut observed = (0, None);
            let found = self.waiter.sleep(nap, || {
                // The bell is armed only now, so an abort since the last poll didn't ring.
                let (moved, outcome) = self.progress_and_poll(&mut self.engine(), &mut poll, true);
                let moved = moved || outcome.is_none() && self.advance_before_sleep();
                if let Some(observer) = &self.observer {
                    observed = (observe::now(), observer.awaited());
                }
                (moved || outcome.is_some()).then_some(outcome)
            });
            if let Some(Some(outcome)) = found {
                return outcome;
            }
            // An access to memory may have ended the sleep, so this rank polls for the next one.
            (idle, yielded) = (0, false);
            if found.is_none() {
                if let Some(observer) = &self.observer {
                    if observer.slept(observed.0, observed.1, nap) {
                        // The call may be the one in which the job hangs.
                        self.publish(false);
                    }
                    nap = (2 * nap).min(NAP);
                }
                let asleep: &mut Instant = asleep.get_or_insert_with(Instant::now);
                if asleep.elapsed() >= LINGER {
                    self.course.lingers.store(true, Ordering::Relaxed);
                    if program::is_line_wanted() {
                        self.look_for_line(served);
                    }
                }
                bytes::free_unused();
                self.check_launcher();
                self.check_circle(&mut circle)?;
            }
        }
    }

    /// Advances schedules for a thread that is about to sleep. Wakes other sleepers if one has
    /// ended, since they may wait for it. Returns whether this thread should look again.
    fn advance_before_sleep(&self) -> bool {
        let moved = self.advance_arming();
        if moved {
            self.waiter.nudge(1);
        }
        moved
    }

    /// Wakes the waiting threads of this rank, whose calls this thread may have ended. The caller
    /// has locked the engine.
    pub(crate) fn nudge(&self) {
        self.waiter.nudge(0);
    }

    /// Checks `is_there` for a short time. Usually that suffices, and it doesn't take the engine's
    /// lock. A peer that needs an answer of this rank first gets it soon enough.
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

    /// Makes progress for the progress thread. Returns whether there may be more.
    pub(crate) fn serve(&self) -> bool {
        let mut engine = self.engine();
        let moved = engine.progress();
        // No call waited for these frames, so they don't count as requests during a wait.
        engine.state().take_asked();
        let heard = self.hear_of_ranks(&mut engine);
        if moved || heard {
            self.waiter.nudge(0);
        }
        moved
    }

    /// Makes progress once, for a call that tests for completion. Returns the result of `is_there`.
    ///
    /// # Errors
    /// PROC_ABORTED if the job is being aborted. OTHER if the link has failed and `is_there` is
    /// false.
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
    /// PROC_ABORTED if the job is being aborted.
    pub(crate) fn poll(&self) -> Result<()> {
        self.pass();
        // Callers may call this in a loop, so other threads get a chance to run.
        self.waiter.pause();
        self.check_job()
    }

    /// Makes progress once.
    fn pass(&self) {
        self.serve();
        if self.advance() {
            self.waiter.nudge(0);
        }
    }

    /// Makes progress in a call that has met its peers, if there is no progress thread. Programs
    /// may make such calls only, and peers need answers of this rank meanwhile. Unlike
    /// [`oblige`](Process::oblige) it lets no other thread run: the peers have.
    ///
    /// # Errors
    /// PROC_ABORTED if the job is being aborted.
    #[inline]
    pub(crate) fn keep_up(&self) -> Result<()> {
        if self.must_poll() {
            self.pass();
            self.check_job()?;
        }
        Ok(())
    }

    /// Whether calls that don't wait have to make progress, since there is no progress thread.
    #[inline]
    pub(crate) fn must_poll(&self) -> bool {
        self.serving.longer_ways.load(Ordering::Relaxed) & UNSERVED != 0
    }

    /// Whether calls take longer ways: they [have to](Process::must_poll) make progress, or are
    /// checked.
    #[inline]
    pub(crate) fn takes_longer_ways(&self) -> bool {
        self.serving.longer_ways.load(Ordering::Relaxed) != 0
    }

    /// Makes progress in a call that doesn't wait, if there is no progress thread. The caller may
    /// repeat its call until a peer has acted, and the peer may need an answer of this rank for
    /// that (MPI-5.0 section 12.7.3).
    ///
    /// # Errors
    /// Those of [`poll`](Process::poll).
    #[inline]
    pub(crate) fn oblige(&self) -> Result<()> {
        if self.must_poll() { self.poll() } else { Ok(()) }
    }

    /// Waits until all ranks of a group have entered the barrier, which may be a window's; this
    /// process is rank `rank`. A rank that has lost a member doesn't enter. Otherwise ranks that
    /// failed in different passes of the barrier could take each other's signals for a success.
    pub(crate) fn meet(
        &self,
        meeting: &Meeting,
        group: &Group,
        rank: u32,
        window: Option<u32>,
    ) -> Result<()> {
        self.check_living(group, window)?;
        match meeting {
            Meeting::Flags(barrier) => self.meet_by_flags(barrier, window),
            Meeting::Messages(venue) => self.meet_by_messages(*venue, group, rank, window),
        }
    }

    fn meet_by_flags(&self, barrier: &Barrier, window: Option<u32>) -> Result<()> {
        let mut entered = barrier.enter();
        if self.spin(|| barrier.poll(&mut entered, false)) {
            return self.keep_up();
        }
        self.wait(|state, arming| {
            if barrier.poll(&mut entered, arming) {
                return Some(Ok(()));
            }
            if let (Some(window), true) = (window, arming) {
                self.remark_name(window);
            }
            state.lost_at(barrier).map(Err)
        })
    }

    /// A barrier by messages, which needs no shared memory. See [`meet`](Process::meet).
    pub(crate) fn meet_at(&self, venue: Venue, group: &Group, rank: u32) -> Result<()> {
        self.meet_by_messages(venue, group, rank, None)
    }

    fn meet_by_messages(
        &self,
        venue: Venue,
        group: &Group,
        rank: u32,
        window: Option<u32>,
    ) -> Result<()> {
        self.check_living(group, window)?;
        let mut engine = self.engine();
        engine.state().enter_meeting(venue, group, rank);
        engine.progress();
        drop(engine);
        self.wait(|state, arming| {
            let Some(awaited) = state.awaited_in_meeting(venue) else { return Some(Ok(())) };
            if arming {
                self.note_wait(Some(awaited));
                if let Some(window) = window {
                    self.remark_name(window);
                }
            }
            let revoked = venue.context().and_then(|context| state.revoked(context));
            revoked.or_else(|| state.lost_among(group, window)).map(Err)
        })
    }

    /// Publishes the name of a window on which all ranks meet. The note of the call has its number.
    #[inline]
    fn remark_name(&self, window: u32) {
        self.remark(|| {
            self.books.windows.name(window).map_or_else(String::new, |name| format!("{name:?}"))
        });
    }

    /// Under `--check`: fails if this rank waits in a circle of ranks that nothing under way can
    /// end.
    fn check_circle(&self, seen: &mut Option<WaitCycle>) -> Result<()> {
        if self.checks() {
            self.note_thread();
            self.segment.note_look();
            let mut engine = self.engine();
            let call = self.segment.noted(self.identity.me.rank).calls;
            let told = engine.state().check().and_then(|check| check.take_circle(call));
            if let Some(text) = told {
                return Err(ErrorKind::Circle(text).into());
            }
            let circle = WaitCycle::of(&self.segment, self.identity.me.rank, self.identity.me.size);
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
    /// Waits until the operation is complete, and returns its error. `at` is the place of the call,
    /// with the operation's target.
    pub(crate) fn wait(&self, process: &Process, at: At) -> Result<()> {
        let target = at.peer;
        let poll = |arming: bool| {
            if arming {
                process.note_wait(target);
            }
            self.is_done().then_some(Ok(()))
        };
        // An operation on PROC_NULL is complete at once, so the detail of the activity isn't shown.
        process.during(Activity::Request, target.unwrap_or(0), at, || {
            process.wait(|_, arming| poll(arming))
        })?;
        self.take_failure().map_or(Ok(()), Err)
    }
}

/// The time after which a waiting call says more about itself.
const LINGER: Duration = Duration::from_millis(500);

/// Glances between two calls of `Engine::progress`. Each includes a pause of the processor
/// (docs/tuning.md, "Glances at the link").
const GLANCES: u32 = 4;

/// Operations by mailbox that are taken in before the engine makes progress again, and looks after
/// the last of them.
const MAILS: u32 = 64;
const IDLE_LOOKS: u32 = 16;

/// The number of checks of a word that take about as long as a look at a schedule.
const SPINS_PER_ADVANCE: u32 = 8;

/// Polls of a waiting call before it releases the engine to other threads of its rank.
const POLLS_PER_LOCK: u32 = 4;

/// The result of a poll after the link has failed. A result that is there counts. Reports of dead
/// peers may be wrong then, so the link's error replaces them.
#[cold]
fn unless_broken<T>(state: &State, outcome: Option<Result<T>>) -> Option<Result<T>> {
    let Some(error) = state.broken() else { return outcome };
    match outcome {
        None => Some(Err(error)),
        Some(Err(gone))
            if matches!(gone.kind(), ErrorKind::Gone { .. } | ErrorKind::Failed { .. }) =>
        {
            Some(Err(error))
        }
        outcome => outcome,
    }
}
