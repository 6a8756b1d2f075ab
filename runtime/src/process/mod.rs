//! What all handles of a rank share: its engine, its life from `init` to `finalize`, and how its calls wait.

mod progress;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::JoinHandle;

use longshore_transport::fault::{Chance, Faults, Faulty};
use longshore_transport::{Cause, JobState, Link, Range, RankState, Rdma, Segment};
use shipable::Architecture;

use crate::barrier::Barrier;
use crate::check::circle::Circle;
use crate::check::{Check, report};
use crate::endpoint::{self, Endpoint};
use crate::engine::{Context, Engine, Me, State, Venue};
use crate::error::{Error, ErrorKind, Result};
use crate::group::Group;
use crate::hosts::Hosts;
use crate::job::{Activity, Checking, Environment, Routes};
use crate::log;
use crate::types::{Elements, Names};
use crate::waiter::Waiter;
use crate::wire::Founding;

/// What a rank is made of.
pub(crate) struct Setup {
    pub segment: Segment,
    pub link: Box<dyn Link>,
    pub hosts: Hosts,
    pub architecture: Architecture,
    pub routes: Routes,
    /// The seed of what decides all that may be one way or another; it implies messages.
    pub adversary: Option<u64>,
    /// Whether uses of windows are checked; it implies messages.
    pub check: Checking,
    pub secret: Vec<u8>,
    pub environment: Option<Environment>,
    /// Whether the process is this rank's alone, to be ended with it.
    pub whole: bool,
    /// Whether waiting may spin.
    pub spin: bool,
    /// Whether a thread answers while the program computes.
    pub progress: bool,
}

/// What all handles of a rank share.
pub(crate) struct Process {
    me: Me,
    hosts: Hosts,
    routes: Routes,
    check: Checking,
    names: Arc<Names>,
    elements: Elements,
    engine: Mutex<Engine>,
    /// Direct access to the memory of other hosts, where the link has it.
    rdma: Option<Arc<dyn Rdma>>,
    segment: Segment,
    waiter: Arc<Waiter>,
    /// Whether a thread answers while the program computes, where there is something to answer.
    progress: bool,
    /// Whether peers reach a window of this rank by messages, and no thread answers them: calls that don't wait do.
    unserved: AtomicBool,
    /// The progress thread, if there is one.
    server: Mutex<Option<JoinHandle<()>>>,
    /// The job's events that the engine has heard of.
    events: AtomicU32,
    /// Whether the engine has lost a peer: to be seen without its lock.
    bereft: Arc<AtomicBool>,
    life: AtomicU8,
    /// Held while a communicator or window is made.
    making: Mutex<()>,
    /// The lowest number that no window had.
    next_window: AtomicU32,
    /// The lowest number that no communicator had.
    next_context: AtomicU32,
    environment: Mutex<Option<Environment>>,
    /// Whether the process is this rank's alone.
    whole: bool,
}

/// How the ranks of a group meet.
pub(crate) enum Meeting {
    /// By flags, in the memory that they share.
    Flags(Barrier),
    /// By messages, on a communicator or window: they are on several hosts.
    Messages(Venue),
}

/// The states of a rank, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Life {
    Starting,
    Ready,
    Finalized,
}

impl Setup {
    pub(crate) fn new(segment: Segment, link: Box<dyn Link>) -> Setup {
        Setup {
            segment,
            link,
            hosts: Hosts::one(),
            architecture: Architecture::NATIVE,
            routes: Routes::Best,
            adversary: None,
            check: Checking::Off,
            secret: Vec::new(),
            environment: None,
            whole: false,
            spin: true,
            progress: false,
        }
    }

    /// Comes to know everyone, and waits until everyone does. Gives what all ranks meet by as well.
    pub(crate) fn start(self) -> Result<(Arc<Process>, Meeting)> {
        let Setup {
            segment,
            link,
            hosts,
            architecture,
            routes,
            adversary,
            check,
            secret,
            environment,
            whole,
            spin,
            progress,
        } = self;
        let (link, routes): (Box<dyn Link>, _) = match adversary {
            Some(seed) => (Box::new(Faulty::new(link, Faults::adversary(seed))), Routes::Message),
            None if check != Checking::Off => (link, Routes::Message),
            None => (link, routes),
        };
        let me = Me {
            rank: link.rank(),
            size: link.size(),
            architecture,
            emulated: !architecture.same_representation(&Architecture::NATIVE),
        };
        segment.mark(me.rank, RankState::Alive);
        let waiter = match spin {
            true => Waiter::new(me.rank, link.doorbell(), hosts.count_beside(me.rank, me.size)),
            false => Waiter::sleeping(me.rank, link.doorbell()),
        };
        let waiter = Arc::new(waiter);
        let founding = match me.rank {
            0 => {
                // Ranks of several hosts meet by messages.
                let barrier = match hosts.is_one() {
                    true => segment.allocate(Barrier::bytes(me.size))?,
                    false => Range { offset: 0, len: 0 },
                };
                Some(Founding { barrier: (barrier.offset, barrier.len), job: random_identity() })
            }
            _ => None,
        };
        let names = Arc::new(Names::default());
        let rdma = link.rdma();
        let mut engine = Engine::new(me, link, secret, names.clone(), founding);
        let bereft = engine.state().bereft.clone();
        let process = Arc::new(Process {
            rdma,
            me,
            hosts,
            routes,
            check,
            elements: Elements::new(names.clone(), architecture),
            engine: Mutex::new(engine),
            names,
            events: AtomicU32::new(segment.events().wrapping_sub(1)), // so it hears of those gone before
            bereft,
            segment,
            waiter,
            progress,
            unserved: AtomicBool::new(false),
            server: Mutex::default(),
            life: AtomicU8::new(Life::Starting as u8),
            making: Mutex::default(),
            next_window: AtomicU32::new(1),
            next_context: AtomicU32::new(Context::FIRST),
            environment: Mutex::new(environment),
            whole,
        });
        process.note(Activity::Init, 0);
        process.engine().state().chance =
            adversary.map(|seed| Chance::new(seed ^ u64::from(me.rank) << 32));
        if check != Checking::Off {
            process.engine().state().check = Some(Box::new(Check::new(me.rank, me.size)));
            if me.rank == 0 && !process.hosts.is_one() {
                log::say(report::SEVERAL_HOSTS);
            }
        }
        process.engine().state().start_hello()?;
        process.hear_of_ranks(&mut process.engine());
        let founding = process.wait(|state, _| {
            let taken = state.take_hello();
            if taken.is_none() {
                process.note_wait(state.awaited_hello());
            }
            taken
        })?;
        let group = Group::of_job(me.size, me.rank);
        let meeting = match process.hosts.is_one() {
            true => Meeting::Flags(process.barrier_at(Some(founding.barrier), &group, me.rank)?),
            false => Meeting::Messages(Venue::Communicator(Context::WORLD.number())),
        };
        // Those to whom this one is unknown would take nothing else of it.
        process.meet(&meeting, &group, me.rank)?;
        process.note(Activity::Computing, 0);
        process.life.store(Life::Ready as u8, Ordering::Release);
        tracing::info!(rank = me.rank, size = me.size, architecture = %me.architecture, ?routes, "initialized");
        Ok((process, meeting))
    }
}

/// A number that no other run has drawn.
fn random_identity() -> u128 {
    let word = || u128::from(RandomState::new().build_hasher().finish());
    word() << 64 | word()
}

impl Process {
    pub(crate) fn me(&self) -> &Me {
        &self.me
    }

    /// Which ranks share this one's host.
    pub(crate) fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    pub(crate) fn routes(&self) -> Routes {
        self.routes
    }

    /// Whether uses of windows are checked.
    #[inline]
    pub(crate) fn checks(&self) -> bool {
        self.check != Checking::Off
    }

    /// Whether what was found is an error in the end.
    pub(crate) fn check_fails(&self) -> bool {
        self.check == Checking::Fail
    }

    pub(crate) fn names(&self) -> &Arc<Names> {
        &self.names
    }

    pub(crate) fn elements(&self) -> &Elements {
        &self.elements
    }

    /// Begins to agree with others on the number of a communicator or window, which none of them had before: one at a time, since
    /// two agreements at once might come to the same one. Lasts until what this gives is dropped.
    ///
    /// # Errors
    /// Another thread is at it. Waiting for it might be for ever: it waits for other ranks, which may wait for this thread.
    pub(crate) fn begin_making(&self) -> Result<MutexGuard<'_, ()>> {
        match self.making.try_lock() {
            Ok(making) => Ok(making),
            Err(TryLockError::Poisoned(making)) => Ok(making.into_inner()),
            Err(TryLockError::WouldBlock) => Err(ErrorKind::MakingTwo.into()),
        }
    }

    pub(crate) fn next_window(&self) -> u32 {
        self.next_window.load(Ordering::Relaxed)
    }

    pub(crate) fn set_next_window(&self, number: u32) {
        self.next_window.fetch_max(number, Ordering::Relaxed);
    }

    pub(crate) fn next_context(&self) -> u32 {
        self.next_context.load(Ordering::Relaxed)
    }

    pub(crate) fn set_next_context(&self, number: u32) {
        self.next_context.fetch_max(number, Ordering::Relaxed);
    }

    pub(crate) fn segment(&self) -> &Segment {
        &self.segment
    }

    /// Direct access to the memory of other hosts.
    pub(crate) fn rdma(&self) -> Option<&Arc<dyn Rdma>> {
        self.rdma.as_ref()
    }

    /// The endpoints that serve this rank and one of another host, and why.
    pub(crate) fn endpoint(
        &self,
        peer: u32,
        architecture: &Architecture,
    ) -> (Endpoint, &'static str) {
        match &self.rdma {
            Some(rdma) if rdma.reaches(peer) => {
                endpoint::choose(rdma.provider(), &self.me.architecture, architecture)
            }
            _ => (Endpoint::Connected, "one of both gives no access to its memory"),
        }
    }

    /// The engine, locked. A panic under the lock is a bug, and its rank ends; what it held is still let go of.
    pub(crate) fn engine(&self) -> MutexGuard<'_, Engine> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets go of the memory that a window's operations were lent, and waits until the network does.
    pub(crate) fn let_go(&self, window: u32) {
        self.engine().state().let_go(window);
        self.await_network(window, None);
    }

    /// Likewise, of operations that nobody waits for any more.
    pub(crate) fn give_up(&self, window: u32) {
        let job_ends = self.check_job().is_err();
        self.engine().state().give_up(window, job_ends);
        self.await_network(window, None);
    }

    /// Waits until the network has no memory that a window's operations were lent, those on a target or all: they are done, or given up.
    pub(crate) fn await_network(&self, window: u32, target: Option<u32>) {
        let accesses = self.engine().state().take_accesses(window, target);
        // The engine is unlocked.
        drop(accesses);
    }

    fn server(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn environment(&self) -> MutexGuard<'_, Option<Environment>> {
        self.environment.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses calls before the end of `init`, and after `finalize`.
    #[inline]
    pub(crate) fn ready(&self) -> Result<()> {
        let life = self.life.load(Ordering::Relaxed);
        if life == Life::Ready as u8 {
            return Ok(());
        }
        Err(match life == Life::Starting as u8 {
            true => ErrorKind::NotInitialized.into(),
            false => ErrorKind::Finalized.into(),
        })
    }

    /// Notes what this rank is doing, for the launcher's message should it die.
    #[inline]
    pub(crate) fn note(&self, activity: Activity, argument: u32) {
        self.segment.note(activity.code(), argument);
    }

    /// Notes whom this rank waits for in the call that it noted last, for the launcher's watchdog.
    pub(crate) fn note_wait(&self, rank: Option<u32>) {
        self.segment.note_wait(rank);
    }

    /// The barrier of a group, to which this rank belongs as `rank`, whose memory its first rank found at this place of
    /// the segment.
    pub(crate) fn barrier_at(
        &self,
        place: Option<(u64, u64)>,
        group: &Group,
        rank: u32,
    ) -> Result<Barrier> {
        let peer = group.process(0);
        let missing = || ErrorKind::Protocol { peer, what: "it named no barrier".to_owned() };
        let (offset, len) = place.ok_or_else(missing)?;
        let barrier = Barrier::new(&self.segment, Range { offset, len }, group, rank)?;
        Ok(barrier.ok_or_else(missing)?)
    }

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

    /// Peers may access memory of this rank from here on.
    pub(crate) fn expose(&self) {
        self.waiter.expose();
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

    /// Takes part in the job no more; all ranks have come here.
    pub(crate) fn end(&self) -> Result<()> {
        // Others may still wait for what this rank said in the last meeting.
        self.wait(|state, _| state.is_flushed().then_some(Ok(())))?;
        self.life.store(Life::Finalized as u8, Ordering::Release);
        self.waiter.ring();
        if let Some(server) = self.server().take() {
            // One that panicked has said so.
            let _ = server.join();
        }
        self.segment.mark(self.me.rank, RankState::Finalized);
        self.engine().leave();
        if let Some(environment) = &mut *self.environment() {
            environment.finalize()?;
        }
        Ok(())
    }

    /// Whether the rank takes part in the job no more.
    pub(crate) fn is_over(&self) -> bool {
        self.life.load(Ordering::Acquire) == Life::Finalized as u8
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

    /// Whether this rank has lost a peer: it died, or can't be reached any more.
    #[inline]
    pub(crate) fn is_bereft(&self) -> bool {
        self.bereft.load(Ordering::Relaxed)
    }

    /// # Errors
    /// This rank has lost one of a group.
    pub(crate) fn check_living(&self, group: &Group) -> Result<()> {
        match self.is_bereft().then(|| self.engine().state().dead_among(group)).flatten() {
            Some(error) => Err(error),
            None => Ok(()),
        }
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

    /// Notes what this rank does while `body` runs.
    pub(crate) fn during<T>(
        &self,
        activity: Activity,
        argument: u32,
        body: impl FnOnce() -> T,
    ) -> T {
        self.note(activity, argument);
        let outcome = body();
        self.note(Activity::Computing, 0);
        outcome
    }

    /// Tells the engine which ranks have gone since it last heard; true if anything happened to the job.
    fn hear_of_ranks(&self, engine: &mut Engine) -> bool {
        let events = self.segment.events();
        // Under the engine's lock. Mostly nothing is new, and an exchange would cost what a look does.
        if self.events.load(Ordering::Relaxed) == events {
            return false;
        }
        self.events.store(events, Ordering::Relaxed);
        let states: Vec<_> = (0..self.me.size).map(|rank| self.segment.rank_state(rank)).collect();
        engine.handle_rank_states(&states);
        true
    }

    /// Whether the job goes on.
    pub(crate) fn check_job(&self) -> Result<()> {
        match self.segment.job_state() {
            JobState::Running => Ok(()),
            JobState::Aborting { by, .. } => Err(ErrorKind::Aborting { by }.into()),
        }
    }

    /// Whether the job is being ended. A rank that aborts it is dead to all, by the launcher's word, a moment before the job is said to end.
    fn is_ended(&self) -> bool {
        let state = |rank| self.segment.rank_state(rank);
        let aborted = |rank| matches!(state(rank), RankState::Dead(Cause::Abort(_)));
        self.check_job().is_err() || (0..self.me.size).any(aborted)
    }

    /// Where uses of windows are checked: whether this rank waits in a circle of ranks, each in one call for so long that no
    /// frame can be under way which ends it.
    fn check_circle(&self, seen: &mut Option<Circle>) -> Result<()> {
        if self.checks() {
            let mut engine = self.engine();
            let call = self.segment.noted(self.me.rank).calls;
            let told = engine.state().check.as_mut().and_then(|check| check.take_circle(call));
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

    /// Ends the job for an error, and this process if it is this rank's alone.
    pub(crate) fn abort(&self, error: &Error) {
        let code = i32::from(error.class().wire());
        // Where another ends it, its word counts.
        if !self.is_ended() {
            // Before the launcher hears of it: its signal to all ranks may end this one at once.
            if self.whole {
                log::say(&format!("longshore: rank {} ends the job: {error:?}\n", self.me.rank));
            }
            if let Some(environment) = &mut *self.environment() {
                // Where the launcher isn't there to end the job, the segment's word does.
                let _ = environment.abort(code);
            }
            self.segment.abort(code);
        }
        if self.whole {
            std::process::exit(code);
        }
    }

    /// A rank whose launcher is gone ends: nobody else can end it.
    fn check_launcher(&self) {
        if self.environment().as_ref().is_some_and(Environment::is_orphaned) {
            log::say(&format!("longshore: rank {} ends: its launcher is gone\n", self.me.rank));
            std::process::exit(1);
        }
    }
}

/// Glances between two times that a waiting call makes progress: a glance takes a fifth of that, and half of it is for the
/// processor to rest.
const GLANCES: u32 = 4;

/// Looks of a call that waits before another of its rank's threads may have the engine.
const LOOKS: u32 = 4;

/// How often a rank that leaves without finalize tries to send what it still has to.
const LAST_TRIES: u32 = 20;

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

impl Drop for Process {
    fn drop(&mut self) {
        // A rank in a thread that ends without finalize: its peers must not wait for it.
        if self.life.load(Ordering::Relaxed) != Life::Finalized as u8 {
            // What it sent counts, as far as there is room for it.
            let engine = self.engine.get_mut().unwrap_or_else(PoisonError::into_inner);
            for _ in 0..LAST_TRIES {
                if engine.state().is_flushed() {
                    break;
                }
                engine.progress();
            }
            self.segment.mark(self.me.rank, RankState::Dead(Cause::Lost));
            engine.leave();
        }
    }
}
