//! What all handles of a rank share: its engine, its life from `init` to `finalize`, and how its calls wait.

mod progress;
mod setup;
mod wait;

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::JoinHandle;

use longshore_transport::{Cause, JobState, Range, RankState, Rdma, Segment};
use shipable::Architecture;

use crate::barrier::Barrier;
use crate::endpoint::{self, Endpoint};
use crate::engine::{Engine, Me, Venue};
use crate::error::{Error, ErrorKind, Result};
use crate::group::Group;
use crate::hosts::Hosts;
use crate::job::{Activity, Checking, Environment, Routes};
use crate::log;
use crate::object::{Card, ErrorHandler, Holder, Names};
use crate::types::Elements;
use crate::waiter::Waiter;

pub(crate) use setup::Setup;

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

    /// Peers may access memory of this rank from here on.
    pub(crate) fn expose(&self) {
        self.waiter.expose();
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

impl Card {
    /// Has the object's handler deal with an error that none has dealt with.
    pub(crate) fn raise(&self, process: &Process, mut error: Error) -> Error {
        if error.first_raised() {
            self.handle(process, &error);
        }
        error
    }

    /// Has the object's handler deal with an error.
    pub(crate) fn handle(&self, process: &Process, error: &Error) {
        match self.errhandler() {
            ErrorHandler::Return => {}
            ErrorHandler::Abort | ErrorHandler::Fatal => process.abort(error),
            ErrorHandler::Own(handler) => handler(&Holder::new(self, None), error),
        }
    }
}

/// How often a rank that leaves without finalize tries to send what it still has to.
const LAST_TRIES: u32 = 20;

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
