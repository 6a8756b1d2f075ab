//! The state of the process: its rank, from MPI_Init to MPI_Finalize.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::ThreadId;

use longshore::{Class, Rank};

use crate::communicator::Comm;
use crate::constants::{COMM_SELF, COMM_WORLD, THREAD_MULTIPLE};
use crate::fault::{Fault, Result};

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
    world: Arc<Comm>,
    alone: Arc<Comm>,
    threads: i32,
    main: ThreadId,
}

static STATE: OnceLock<State> = OnceLock::new();

/// The stage of the process's life.
#[inline(always)]
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

/// The state, if MPI_Init was called.
#[inline(always)]
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

/// Joins the job.
///
/// # Errors
/// OTHER if it was called already; those of [`longshore::init`].
pub fn start(threads: i32) -> Result<()> {
    if phase() != Phase::Before {
        let what = "MPI_Init was called already: a process calls it once".to_owned();
        return Err(Fault::new(Class::Other, what));
    }
    let rank = longshore::init()?;
    if rank.is_emulated() {
        let name = rank.architecture().name().to_owned();
        let what = format!(
            "this rank was started with --arch {name}, but a program in C uses its memory as its \
             machine does: run a build for that machine instead"
        );
        return Err(Fault::new(Class::Other, what));
    }
    let world = Comm::initial(rank.world().share(), COMM_WORLD);
    let alone = Comm::initial(rank.alone().share(), COMM_SELF);
    let main = std::thread::current().id();
    let _ = STATE.set(State { rank, world, alone, threads, main });
    set_phase(Phase::Active);
    Ok(())
}

impl State {
    pub fn rank(&self) -> &Rank {
        &self.rank
    }

    /// MPI_COMM_WORLD.
    pub fn world(&self) -> &Arc<Comm> {
        &self.world
    }

    /// MPI_COMM_SELF.
    pub fn alone(&self) -> &Arc<Comm> {
        &self.alone
    }

    /// The level of thread support that was granted.
    pub fn threads(&self) -> i32 {
        self.threads
    }

    /// Whether several threads may call at the same time.
    pub fn is_threaded(&self) -> bool {
        self.threads == THREAD_MULTIPLE
    }

    /// The thread that called MPI_Init.
    pub fn main(&self) -> ThreadId {
        self.main
    }
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
