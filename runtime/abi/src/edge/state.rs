//! The state of the process: its rank, from MPI_Init to MPI_Finalize.

use std::ffi::c_int;
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicUsize, Ordering};
use std::thread::ThreadId;

use longshore::{Class, Rank};

use crate::edge::constants::{THREAD_FUNNELED, THREAD_MULTIPLE, THREAD_SERIALIZED};
use crate::edge::fault::{Fault, Result};
use crate::edge::line;

/// The stage of the process's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// MPI_Init wasn't called.
    Before,
    /// The rank is part of its job.
    Active,
    /// MPI_Finalize was called.
    After,
    /// The process is on its way out, and calls of exit handlers do nothing.
    Ending,
}

static PHASE: AtomicU8 = AtomicU8::new(Phase::Before as u8);

/// What exists from MPI_Init on.
pub struct State {
    rank: Rank,
    threads: AtomicI32,
    main: ThreadId,
}

static STATE: OnceLock<State> = OnceLock::new();

/// Whether several threads may call at the same time.
static THREADED: AtomicBool = AtomicBool::new(false);

/// The stage of the process's life.
#[inline]
pub fn phase() -> Phase {
    match PHASE.load(Ordering::Relaxed) {
        0 => Phase::Before,
        1 => Phase::Active,
        2 => Phase::After,
        _ => Phase::Ending,
    }
}

/// Sets the stage.
pub fn set_phase(phase: Phase) {
    PHASE.store(phase as u8, Ordering::Relaxed);
}

/// The name of a level of thread support.
pub fn level_name(level: c_int) -> &'static str {
    match level {
        THREAD_FUNNELED => "MPI_THREAD_FUNNELED",
        THREAD_SERIALIZED => "MPI_THREAD_SERIALIZED",
        THREAD_MULTIPLE => "MPI_THREAD_MULTIPLE",
        _ => "MPI_THREAD_SINGLE",
    }
}

/// Whether several threads may call at the same time.
#[inline]
pub fn is_threaded() -> bool {
    THREADED.load(Ordering::Relaxed)
}

/// The state, if MPI_Init was called.
#[inline]
pub fn get() -> Option<&'static State> {
    STATE.get()
}

/// The state.
///
/// # Errors
/// OTHER before MPI_Init.
pub fn state() -> Result<&'static State> {
    let outside = || Fault::new(Class::Other, "MPI_Init wasn't called".to_owned());
    STATE.get().ok_or_else(outside)
}

/// The number of sessions, and that of MPI_Init's world.
static SESSIONS: AtomicUsize = AtomicUsize::new(0);

/// Whether calls are allowed: the rank is part of its job.
#[inline]
pub fn is_active() -> bool {
    phase() == Phase::Active || SESSIONS.load(Ordering::Relaxed) > 0
}

/// Begins a session.
pub fn begin_session() {
    SESSIONS.fetch_add(1, Ordering::Relaxed);
}

/// Ends a session.
pub fn end_session() {
    SESSIONS.fetch_sub(1, Ordering::Relaxed);
}

/// Begins what MPI_Init begins.
///
/// # Errors
/// OTHER if it was called already; those of [`join`].
pub fn start(threads: i32) -> Result<()> {
    if phase() != Phase::Before {
        let what = "MPI_Init was called already: a process calls it once".to_owned();
        return Err(Fault::new(Class::Other, what));
    }
    join(threads)?;
    if let Some(state) = get() {
        state.threads.store(threads, Ordering::Relaxed);
    }
    set_phase(Phase::Active);
    Ok(())
}

/// Joins the job, unless this process is in it already.
///
/// # Errors
/// Those of [`longshore::init`]. OTHER after MPI_Finalize, which has left the job.
pub fn join(threads: i32) -> Result<()> {
    if threads == THREAD_MULTIPLE {
        THREADED.store(true, Ordering::Relaxed);
    }
    if let Some(state) = STATE.get() {
        if threads == THREAD_MULTIPLE {
            state.rank.promise_one_thread(false);
        }
        return match phase() {
            Phase::Before | Phase::Active => Ok(()),
            Phase::After | Phase::Ending => {
                let what = "the process has left its job by MPI_Finalize".to_owned();
                Err(Fault::new(Class::Other, what))
            }
        };
    }
    longshore::Interface { language: longshore::Language::C, line: line::of_call }.register();
    let rank = longshore::init_with(longshore::Matching::Lengths)?;
    rank.promise_one_thread(threads != THREAD_MULTIPLE);
    if rank.is_emulated() {
        let name = rank.architecture().name().to_owned();
        let what = format!(
            "this rank was started with --arch {name}, but a program in C uses its memory as its \
             machine does: run a build for that machine instead"
        );
        return Err(Fault::new(Class::Other, what));
    }
    let main = std::thread::current().id();
    let _ = STATE.set(State { rank, threads: AtomicI32::new(threads), main });
    Ok(())
}

/// Leaves the job when a process exits that had sessions only.
pub fn leave_at_exit() {
    if phase() == Phase::Before {
        if let Some(state) = get() {
            // Nobody is left to hear of an error.
            let _ = state.rank.leave();
        }
    }
}

impl State {
    pub fn rank(&self) -> &Rank {
        &self.rank
    }

    /// The level of thread support that was granted.
    pub fn threads(&self) -> i32 {
        self.threads.load(Ordering::Relaxed)
    }

    /// The thread that called MPI_Init.
    pub fn main(&self) -> ThreadId {
        self.main
    }
}

/// Tells the user in lines that no other process's output divides.
pub fn say(lines: &str) {
    // Without a standard error there is nobody to tell.
    let _ = std::io::stderr().write_all(lines.as_bytes());
}

/// Ends the whole job with an exit status. Exit handlers may call MPI: such calls do nothing.
pub fn end_job(code: i32) -> ! {
    set_phase(Phase::Ending);
    if let Some(state) = get() {
        state.rank.abort(code);
    }
    end_process(code)
}

/// Ends this process with an exit status.
pub fn end_process(code: i32) -> ! {
    set_phase(Phase::Ending);
    std::process::exit(code)
}
