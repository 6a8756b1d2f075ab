//! The state that all objects of a rank share: its engine, its life cycle from `init` to
//! `finalize`, and the waiting of its calls.

mod mailbox;
mod ports;
mod progress;
mod schedules;
mod setup;
mod threads;
mod wait;
mod windows;

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;

use longshore_transport::{Cause, JobState, PeerMemory, Range, RankState, Rdma, Segment};
use shipable::Architecture;

use crate::barrier::Barrier;
use crate::check::loads::{Finder, Loads};
use crate::endpoint::{self, Endpoint};
use crate::engine::{Context, Engine, Me, Venue};
use crate::error::{Error, ErrorKind, Result};
use crate::group::Group;
use crate::job::{Activity, Checking, Environment, Hosts, Ladder, Routes, Topic};
use crate::log;
use crate::memory::Places;
use crate::object::{Card, ErrorHandler, Holder, Names};
use crate::observe::{At, Observer};
use crate::types::Elements;
use crate::waiter::Waiter;

use mailbox::Mailboxes;
use ports::Ports;
pub(crate) use schedules::Schedule;
use schedules::Schedules;
pub(crate) use setup::{Conduct, Setup};
use threads::Threads;
use windows::Windows;

/// The shared state of a rank.
pub(crate) struct Process {
    identity: Identity,
    settings: Settings,
    engine: Mutex<Engine>,
    segment: Segment,
    waiter: Arc<Waiter>,
    serving: Serving,
    course: Course,
    books: Books,
    beside: Beside,
    /// What records the rank's operations and waits, under `--stats` and `--trace`.
    observer: Option<Arc<Observer>>,
    /// The loads and stores that the program's compiler reports, under `--check`.
    loads: Arc<Loads>,
    threads: Threads,
}

/// Who the rank is, and in which job.
struct Identity {
    me: Me,
    hosts: Hosts,
    /// The operating system's process of the rank.
    pid: u32,
    /// Whether the process contains only this rank.
    whole: bool,
    environment: Mutex<Option<Environment>>,
}

/// What the environment and the launcher ask for.
struct Settings {
    routes: Routes,
    ladder: Ladder,
    check: Checking,
    /// Whether windows note the source lines of calls: under `--check`, or for the observer.
    notes_callers: bool,
}

/// How the rank answers its peers while it computes.
struct Serving {
    /// The process itself, for the progress thread.
    process: Weak<Process>,
    /// Whether a progress thread is allowed.
    progress: bool,
    /// Why calls take longer ways: [`UNSERVED`], [`CHECKED`], or both.
    longer_ways: AtomicU8,
    /// The progress thread, if there is one.
    server: Mutex<Option<JoinHandle<()>>>,
}

/// Peers reach a window of this rank by messages without a progress thread. Calls that don't wait
/// must make progress then.
const UNSERVED: u8 = 1;

/// Calls are checked.
const CHECKED: u8 = 2;

/// What has become of the rank and of its job so far.
struct Course {
    life: AtomicU8,
    /// The count of job events of which the engine knows.
    events: AtomicU32,
    /// Whether the engine has lost a peer or a window, readable without its lock.
    bereft: Arc<AtomicBool>,
    /// Whether a call has left a frame in the outbox, readable without the engine's lock.
    stranded: Arc<AtomicBool>,
    /// Whether a message waits that no receive has matched, readable without the engine's lock.
    unmatched: Arc<AtomicBool>,
    /// Whether peers don't know yet of a window that this rank has poisoned.
    untold: AtomicBool,
    /// Whether a call has waited for long.
    lingers: AtomicBool,
}

/// The objects of the rank, and the numbers that it has given.
struct Books {
    names: Arc<Names>,
    elements: Elements,
    windows: Windows,
    places: Places,
    schedules: Schedules,
    ports: Ports,
    /// The number of windows that this rank numbered.
    windows_numbered: AtomicU32,
    /// The number of communicators that this rank numbered.
    contexts_numbered: AtomicU32,
}

/// The ways to memory of peers beside the engine's messages.
struct Beside {
    /// Access to the memory of ranks on other hosts, if the link offers it.
    rdma: Option<Arc<dyn Rdma>>,
    mailboxes: Option<Mailboxes>,
    peer_memory: Arc<PeerMemory>,
}

/// The barrier of a group.
pub(crate) enum Meeting {
    /// Flags in memory that all ranks share.
    Flags(Barrier),
    /// Messages in a communicator or window, if the ranks are on several hosts.
    Messages(Venue),
}

/// The states of a rank, in the order in which it passes through them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Life {
    Starting,
    Ready,
    Finalized,
}

impl Process {
    pub(crate) fn me(&self) -> &Me {
        &self.identity.me
    }

    /// The hosts of all ranks.
    pub(crate) fn hosts(&self) -> &Hosts {
        &self.identity.hosts
    }

    pub(crate) fn routes(&self) -> Routes {
        self.settings.routes
    }

    /// How operations on windows are carried out.
    pub(crate) fn ladder(&self) -> Ladder {
        self.settings.ladder
    }

    /// Whether `--check` is on.
    #[inline]
    pub(crate) fn checks(&self) -> bool {
        !matches!(self.settings.check, Checking::Off)
    }

    /// The observer, under `--stats` and `--trace`.
    #[inline]
    pub(crate) fn observer(&self) -> Option<&Arc<Observer>> {
        self.observer.as_ref()
    }

    /// Whether windows note the source lines of calls.
    #[inline]
    pub(crate) fn notes_callers(&self) -> bool {
        self.settings.notes_callers
    }

    /// Whether a call works though it breaks a promise of a hint or assert, and only `--check`
    /// reports it. [`Matching`](crate::Matching) says so.
    pub(crate) fn excuses(&self) -> bool {
        self.identity.me.by_length
    }

    /// Whether reports of `--check` make finalize fail.
    pub(crate) fn check_fails(&self) -> bool {
        matches!(self.settings.check, Checking::Fail(_))
    }

    pub(crate) fn names(&self) -> &Arc<Names> {
        &self.books.names
    }

    pub(crate) fn elements(&self) -> &Elements {
        &self.books.elements
    }

    /// The private memory of this host's other processes.
    pub(crate) fn peer_memory(&self) -> &PeerMemory {
        &self.beside.peer_memory
    }

    /// Takes back all memory that this process has offered to its peers.
    pub(crate) fn take_offers_back(&self) {
        // One thread at a time does so: the one that has the engine.
        let _engine = self.engine();
        self.peer_memory().withdraw();
    }

    /// This rank's allocations in the segment outside of windows.
    pub(crate) fn places(&self) -> &Places {
        &self.books.places
    }

    /// A number that no window of the job has or had, for one whose first rank this is. Several
    /// threads may make windows at the same time, so ranks don't agree on a number that is free at
    /// all of them: each rank has every n-th number to give, of a world of n ranks. Ranks that were
    /// started later give numbers of the upper half.
    ///
    /// # Errors
    /// OTHER if none is left.
    pub(crate) fn number_window(&self) -> Result<u32> {
        self.number(&self.books.windows_numbered, 1, u32::MAX)
    }

    /// As [`Process::number_window`], for the context of a communicator.
    ///
    /// # Errors
    /// OTHER if none is left.
    pub(crate) fn number_context(&self) -> Result<u32> {
        self.number(&self.books.contexts_numbered, Context::FIRST, Context::LIMIT)
    }

    fn number(&self, numbered: &AtomicU32, first: u32, limit: u32) -> Result<u32> {
        let me = &self.identity.me;
        let (first, step, end) = match (me.first, me.count == me.size) {
            (_, true) => (first, me.count, limit),
            (0, false) => (first, me.count, limit / 2),
            (_, false) => (limit / 2, me.size, limit),
        };
        let before = numbered.fetch_add(1, Ordering::Relaxed);
        let number =
            before.checked_mul(step).and_then(|number| number.checked_add(first + me.rank));
        number.filter(|number| *number < end).ok_or_else(|| {
            // It stays at the end.
            numbered.fetch_sub(1, Ordering::Relaxed);
            ErrorKind::Numbers.into()
        })
    }

    pub(crate) fn segment(&self) -> &Segment {
        &self.segment
    }

    /// Access to the memory of ranks on other hosts.
    pub(crate) fn rdma(&self) -> Option<&Arc<dyn Rdma>> {
        self.beside.rdma.as_ref()
    }

    /// Whether a rank is on another host.
    #[inline]
    pub(crate) fn is_far(&self, peer: u32) -> bool {
        let hosts = &self.identity.hosts;
        !hosts.is_one() && !hosts.share(peer, self.identity.me.rank)
    }

    /// The kind of endpoint between this rank and one of another host, with the reason.
    pub(crate) fn endpoint(
        &self,
        peer: u32,
        architecture: &Architecture,
    ) -> (Endpoint, &'static str) {
        match &self.beside.rdma {
            Some(rdma) if rdma.reaches(peer) => {
                endpoint::choose(rdma.provider(), &self.identity.me.architecture, architecture)
            }
            _ => (Endpoint::Connected, "one of both gives no access to its memory"),
        }
    }

    /// Locks the engine. A poisoned lock is still used, so that lent memory is released while a
    /// rank unwinds.
    #[inline]
    pub(crate) fn engine(&self) -> MutexGuard<'_, Engine> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Code of the program at `place` loads these bytes, or stores to them. The engine may call
    /// such code, and a signal handler may have it, so the checks take it in later.
    pub(crate) fn touched(
        &self,
        bytes: std::ops::Range<usize>,
        stores: bool,
        place: usize,
        finder: Finder,
    ) {
        if self.checks() {
            self.loads.find_by(finder);
            self.loads.touched(bytes, stores, place);
        }
    }

    /// Releases the memory lent to a window's operations, after the network has finished with it.
    pub(crate) fn let_go(&self, window: u32) {
        self.engine().state().let_go(window);
        self.await_network(window, None);
    }

    /// Gives up the operations of a window that no call waits for any more, and releases their
    /// memory.
    pub(crate) fn give_up(&self, window: u32) {
        let job_ends = self.check_job().is_err();
        self.engine().state().give_up(window, job_ends);
        self.await_network(window, None);
    }

    /// Waits until the network no longer uses memory lent to a window's operations: those on
    /// `target`, or all. They are complete or given up then.
    pub(crate) fn await_network(&self, window: u32, target: Option<u32>) {
        let accesses = self.engine().state().take_accesses(window, target);
        // Dropping the accesses waits for them. The engine is unlocked by now.
        drop(accesses);
    }

    fn server(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        self.serving.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn environment(&self) -> MutexGuard<'_, Option<Environment>> {
        self.identity.environment.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether `init` has ended, and `finalize` hasn't.
    #[inline]
    pub(crate) fn is_ready(&self) -> bool {
        self.course.life.load(Ordering::Relaxed) == Life::Ready as u8
    }

    /// Refuses calls before `init` has ended and after `finalize`.
    #[inline]
    pub(crate) fn ready(&self) -> Result<()> {
        if self.is_ready() {
            return Ok(());
        }
        let life = self.course.life.load(Ordering::Relaxed);
        Err(match life == Life::Starting as u8 {
            true => ErrorKind::NotInitialized.into(),
            false => ErrorKind::Finalized.into(),
        })
    }

    /// Publishes this rank's activity, for the launcher's report if the rank dies.
    #[inline]
    pub(crate) fn note(&self, activity: Activity, argument: u32) {
        self.segment.note(activity.code(), argument);
    }

    /// Publishes the rank that this one waits for, for the launcher's watchdog.
    pub(crate) fn note_wait(&self, rank: Option<u32>) {
        self.segment.note_wait(rank);
    }

    /// Publishes more about the current call, for reports of the watchdog and of `--check`, if it
    /// has waited for long. A call calls this before it sleeps, with the engine locked.
    pub(crate) fn remark(&self, text: impl FnOnce() -> String) {
        if self.course.lingers.load(Ordering::Relaxed) {
            self.segment.remark(&text());
        }
    }

    /// The windows that this rank has not freed.
    pub(crate) fn windows(&self) -> &Windows {
        &self.books.windows
    }

    /// Rule 30, at the end of a job that is checked: reports each window that isn't freed.
    pub(crate) fn check_windows(&self) {
        let reports = self.books.windows.reports(self.identity.me.rank);
        if let Some(check) = self.engine().state().check() {
            reports.into_iter().for_each(|(kind, text)| check.tell(Topic::Windows, kind, || text));
        }
    }

    /// Reports each message that no receive has matched, at the end of a job that is checked. All
    /// ranks have sent all of theirs.
    pub(crate) fn check_messages(&self) {
        let mut engine = self.engine();
        engine.progress();
        let state = engine.state();
        let reports = if self.is_bereft() { Vec::new() } else { state.report_unmatched() };
        if let Some(check) = state.check() {
            reports.into_iter().for_each(|(kind, text)| check.tell(Topic::Messages, kind, || text));
        }
    }

    /// The barrier of a group in which this process is rank `rank`. `place` is the memory that rank
    /// 0 of the group has allocated.
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

    /// Records that peers may access this rank's memory.
    pub(crate) fn expose(&self) {
        self.waiter.expose();
    }

    /// Leaves the job, after all ranks have entered finalize.
    pub(crate) fn end(&self) -> Result<()> {
        // Other ranks may still wait for this rank's frames of the last barrier.
        self.wait(|state, _| state.is_flushed().then_some(Ok(())))?;
        self.course.life.store(Life::Finalized as u8, Ordering::Release);
        self.publish(true);
        self.waiter.ring();
        if let Some(server) = self.server().take() {
            // If the thread panicked, the panic hook has printed the message.
            let _ = server.join();
        }
        self.segment.mark(self.identity.me.rank, RankState::Finalized);
        self.engine().leave();
        if let Some(environment) = &mut *self.environment() {
            environment.finalize()?;
        }
        Ok(())
    }

    /// Whether the rank has left the job.
    pub(crate) fn is_over(&self) -> bool {
        self.course.life.load(Ordering::Acquire) == Life::Finalized as u8
    }

    /// Whether the job goes on after the death of a rank.
    pub(crate) fn survives(&self) -> bool {
        self.identity.me.survives
    }

    /// Whether this rank has lost a peer, which is dead or out of reach, or a window, which is
    /// poisoned.
    #[inline]
    pub(crate) fn is_bereft(&self) -> bool {
        self.course.bereft.load(Ordering::Relaxed)
    }

    /// Whether a message waits that no receive has matched.
    #[inline]
    pub(crate) fn has_unmatched(&self) -> bool {
        self.course.unmatched.load(Ordering::Relaxed)
    }

    /// Refuses a group that has lost a rank, and a poisoned window.
    ///
    /// # Errors
    /// PROC_ABORTED if a rank of the group is lost. WIN if the window is poisoned.
    #[inline]
    pub(crate) fn check_living(&self, group: &Group, window: Option<u32>) -> Result<()> {
        let lost = || self.engine().state().lost_among(group, window);
        self.is_bereft().then(lost).flatten().map_or(Ok(()), Err)
    }

    /// Notes that a panic of this rank has poisoned a window. Its peers learn of it later, by
    /// [`tell_poisoned`](Process::tell_poisoned): if the panic ends the rank, its end is their
    /// news.
    pub(crate) fn poison(&self, window: u32, announced: u64, group: &Group) {
        self.books.windows.freed(window);
        self.engine().state().note_poisoned(window, announced, group);
        self.course.untold.store(true, Ordering::Relaxed);
    }

    /// Sends peers the news that this rank has poisoned a window, if it goes on after its panic.
    #[inline]
    pub(crate) fn tell_poisoned(&self) {
        if self.course.untold.load(Ordering::Relaxed) {
            self.tell_of_poisoned();
        }
    }

    #[cold]
    #[inline(never)]
    fn tell_of_poisoned(&self) {
        if !std::thread::panicking() {
            self.course.untold.store(false, Ordering::Relaxed);
            let mut engine = self.engine();
            engine.state().tell_poisoned();
            engine.progress();
        }
    }

    /// Publishes an activity of this rank while `body` runs, and lets the observer take its time.
    pub(crate) fn during<T>(
        &self,
        activity: Activity,
        argument: u32,
        at: At,
        body: impl FnOnce() -> T,
    ) -> T {
        self.note(activity, argument);
        let outcome = self.observed(activity, at, body);
        self.note(Activity::Computing, 0);
        self.leave_rest();
        outcome
    }

    /// Lets the observer take the time of a call that may wait.
    pub(crate) fn observed<T>(&self, activity: Activity, at: At, body: impl FnOnce() -> T) -> T {
        let Some(observer) = &self.observer else { return body() };
        let _timed = Timed::new(self, observer, activity, at);
        body()
    }

    /// Leaves a snapshot of what was observed to the launcher.
    #[cold]
    pub(crate) fn publish(&self, complete: bool) {
        let Some(observer) = &self.observer else { return };
        // A rank that aborts the job may hold the engine.
        let taken = match complete {
            true => self.engine().frames_taken(),
            false => match self.engine.try_lock() {
                Ok(mut engine) => engine.frames_taken(),
                Err(_) => return,
            },
        };
        observer.publish(complete, taken, |window| self.books.windows.name(window));
    }

    /// Passes news about the ranks of the job to the engine. Returns whether there were any.
    #[inline(always)]
    fn hear_of_ranks(&self, engine: &mut Engine) -> bool {
        let events = self.segment.events();
        // Mostly nothing is new, and an atomic exchange would cost as much as a poll. The engine's
        // lock makes load and store one step.
        if self.course.events.load(Ordering::Relaxed) == events {
            return false;
        }
        self.course.events.store(events, Ordering::Relaxed);
        let states: Vec<_> =
            (0..self.segment.started()).map(|rank| self.segment.rank_state(rank)).collect();
        engine.handle_rank_states(&states);
        true
    }

    /// Refuses calls in a job that is being aborted.
    ///
    /// # Errors
    /// PROC_ABORTED if the job is being aborted.
    #[inline]
    pub(crate) fn check_job(&self) -> Result<()> {
        match self.segment.job_state() {
            JobState::Running => Ok(()),
            JobState::Aborting { by, .. } => Err(ErrorKind::Aborting { by }.into()),
        }
    }

    /// Whether the job is being aborted. The launcher marks the aborting rank as dead shortly
    /// before it marks the job.
    fn is_ended(&self) -> bool {
        let state = |rank| self.segment.rank_state(rank);
        let aborted = |rank| matches!(state(rank), RankState::Dead(Cause::Abort(_)));
        self.check_job().is_err() || (0..self.segment.started()).any(aborted)
    }

    /// Aborts the job because of an error. Exits this process if it contains only this rank.
    pub(crate) fn abort(&self, error: &Error) {
        self.abort_with(i32::from(error.class().wire()), Some(error));
    }

    /// Aborts the job with an exit status, and prints the error that is the reason.
    pub(crate) fn abort_with(&self, code: i32, error: Option<&Error>) {
        // The first rank that aborts the job decides its exit status.
        if !self.is_ended() {
            // Printed before the launcher is notified, since its signal may kill this rank at once.
            if let Some(error) = error.filter(|_| self.identity.whole) {
                log::say(&format!(
                    "longshore: rank {} ends the job: {error:?}\n",
                    self.identity.me.rank
                ));
            }
            if let Some(environment) = &mut *self.environment() {
                // If the launcher can't be reached, the mark in the segment still ends the job.
                let _ = environment.abort(code);
            }
            self.segment.abort(code);
        }
        if self.identity.whole {
            self.publish(false);
            std::process::exit(code);
        }
    }

    /// Exits if the launcher is gone, since nothing else would end this rank.
    fn check_launcher(&self) {
        if self.environment().as_ref().is_some_and(Environment::is_orphaned) {
            log::say(&format!(
                "longshore: rank {} ends: its launcher is gone\n",
                self.identity.me.rank
            ));
            std::process::exit(1);
        }
    }
}

/// A call whose time the observer takes. It ends when this is dropped, by a panic too.
struct Timed<'a> {
    process: &'a Process,
    observer: &'a Observer,
}

impl<'a> Timed<'a> {
    #[cold]
    #[inline(never)]
    fn new(process: &'a Process, observer: &'a Observer, activity: Activity, at: At) -> Timed<'a> {
        observer.begin(activity, at);
        Timed { process, observer }
    }
}

impl Drop for Timed<'_> {
    // Not inlined, since most jobs aren't observed.
    #[cold]
    #[inline(never)]
    fn drop(&mut self) {
        let is_ending = self.process.is_bereft() || self.process.check_job().is_err();
        if self.observer.end(is_ending) {
            self.process.publish(false);
        }
    }
}

impl Card {
    /// Passes an error to the object's handler, unless a handler has had it already.
    pub(crate) fn raise(&self, process: &Process, mut error: Error) -> Error {
        if error.first_raised() {
            self.handle(process, &error);
        }
        error
    }

    /// Passes an error to the object's handler.
    pub(crate) fn handle(&self, process: &Process, error: &Error) {
        match self.errhandler() {
            ErrorHandler::Return => {}
            ErrorHandler::Abort | ErrorHandler::Fatal => process.abort(error),
            ErrorHandler::Own(handler) => handler(&Holder::new(self), error),
        }
    }
}

/// The number of attempts of a rank that ends without finalize to send its remaining frames.
const LAST_TRIES: u32 = 20;

/// Ends the calls under way when the program drops the rank, and leaves the rank to its own process
/// when a child that the program forked drops its copy.
///
/// The copy keeps the state for ever then. Its drop would tell the peers that the rank is gone, end
/// connections that the parent uses, and wait for threads that only the parent has.
pub(crate) struct ForkGuard(Arc<Process>);

impl ForkGuard {
    pub(crate) fn new(process: &Arc<Process>) -> ForkGuard {
        ForkGuard(process.clone())
    }
}

impl Drop for ForkGuard {
    fn drop(&mut self) {
        if std::process::id() != self.0.identity.pid {
            std::mem::forget(self.0.clone());
        } else {
            self.0.drop_schedules();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The rank's thread ended without finalize. Its peers must learn that it is gone.
        if self.course.life.load(Ordering::Relaxed) != Life::Finalized as u8 {
            self.publish(false);
            // Frames of complete calls are still sent, as far as the link has room.
            let engine = self.engine.get_mut().unwrap_or_else(PoisonError::into_inner);
            for _ in 0..LAST_TRIES {
                if engine.state().is_flushed() {
                    break;
                }
                engine.progress();
            }
            self.segment.mark(self.identity.me.rank, RankState::Dead(Cause::Lost));
            engine.leave();
        }
    }
}
