//! Starts the ranks of a job and supervises them until the last has ended.
//!
//! Internal to Longshore: the command `longshore` is built on this crate, and so are benches and
//! tests that start jobs. The ranks, in the crate `longshore`, contain nothing of it. It may change
//! in any version.
//!
//! [`run`] implements `longshore run`: it starts the ranks of a [`Job`], serves PMI-1 to them and
//! forwards their output. When a rank dies, it ends the other ranks or reports the death to them.
//! One thread does all of this in one poll loop, and the ranks die with that thread. [`guarded`] is
//! for programs that are only a launcher: it also forwards signals, and it leaves no process
//! running even if the launcher itself is killed.
//!
//! | the job's status | when |
//! |---|---|
//! | 0 | every rank exited with 0, and every rank that called init also called finalize |
//! | the first failing rank's status | that rank exited with a status other than 0 |
//! | 128 + signal | the first failing rank was killed by a signal |
//! | 1 | the first failing rank exited with 0 without finalize |
//! | 1 | a rank exited with 0 without the init that other ranks were waiting for |
//! | 1 | writing standard output or error failed, except because its reader has gone |
//! | the code's low byte, or 1 if that is 0 | a rank aborted the job with that code |
//! | 124 | the job took longer than its timeout |
//! | 126, 127 | a program can't be started, or isn't found ([`Error::status`]) |
//! | 1 | a host can't be reached, or its agent has gone |
//!
//! On every other host an *agent* starts, watches and ends the ranks; [`serve`] is the agent's
//! whole program. A start command such as ssh runs the agent. Launcher and agent exchange all
//! messages, including the job's secret, over the agent's standard input and output. Both use the
//! module `local` for the processes of their own host. That module makes no decisions; the launcher
//! makes all of them.
//!
//! A rank's environment gets the variables in [`longshore_job::env`]. Rank 0 inherits the
//! launcher's standard input; the standard input of every other rank is empty.

mod advice;
mod agent;
mod binding;
mod cause;
mod core_file;
mod frames;
#[cfg(fuzzing)]
mod fuzzing;
mod guard;
mod job;
mod limits;
mod local;
mod mapping;
mod message;
mod observe;
mod output;
mod plan;
mod process;
mod program;
mod remote;
mod server;
mod stacks;
mod supervisor;
mod watchdog;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

pub use agent::serve;
pub use binding::{Binding, Processors};
#[cfg(fuzzing)]
pub use fuzzing::Launcher;
pub use guard::{Control, guarded, is_ignored};
pub use job::{Host, Job, Output, Part, Patience, Placement, Recording, Settings, Stacks, Wrap};
pub use limits::Limits;
pub use mapping::Mapping;
pub use observe::{Report, Stats, timeline};

/// The default start command. It never asks for a password, and it notices within half a minute
/// that a host has gone.
pub const SSH: &str = "ssh -o BatchMode=yes -o ConnectTimeout=15 -o ServerAliveInterval=10";

/// The status of a job that took longer than its timeout: that of timeout(1).
pub const TIMED_OUT: u8 = 124;

/// The default of [`Patience::watchdog`] in `longshore run`.
pub const WATCHDOG: Duration = Duration::from_secs(10);

/// The reason why a job didn't start, or why the launcher gave it up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No part has a rank.
    #[error("a job needs at least one rank: give -n a number above 0")]
    Empty,
    /// The job has more ranks than its hosts take.
    #[error(
        "the job has {ranks} ranks, but its hosts take only {room}: give --host more hosts, or larger numbers after ':'"
    )]
    Room {
        /// The number of ranks of all parts.
        ranks: u32,
        /// The number of ranks that all hosts take together.
        room: u32,
    },
    /// The start command of a host can't be run.
    #[error("host {host}: can't run {}: {source}; --start names another start command", command.to_string_lossy())]
    StartHost {
        /// The host.
        host: String,
        /// The first word of the start command.
        command: OsString,
        /// The system's error.
        source: io::Error,
    },
    /// The ranks of a host can't be bound to cores as the job asks.
    #[error("{0}")]
    Binding(String),
    /// The working directory for the ranks doesn't exist or can't be entered.
    #[error("can't start ranks in the folder {}: {source}; --wdir names another", folder.to_string_lossy())]
    Folder {
        /// The folder.
        folder: OsString,
        /// The system's error.
        source: io::Error,
    },
    /// A file for the output of a rank can't be made.
    #[error("can't write the output of ranks to {}: {source}; --output names another folder", path.display())]
    Output {
        /// The file or the folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file for the counters or the trace of the job can't be written.
    #[error("can't write {}: {source}; name another file", path.display())]
    Observe {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A program can't be started.
    #[error("part {part}: can't start {}: {source}{}", program.to_string_lossy(), advice::of_program(source))]
    Start {
        /// The number of the job's part, from 1.
        part: usize,
        /// The program.
        program: OsString,
        /// The system's error.
        source: io::Error,
    },
    /// The segment that the ranks share can't be created.
    #[error("the job's shared segment: {0}{advice}", advice = advice::of_segment(.0))]
    Segment(#[from] longshore_transport::SegmentError),
    /// A system call of the launcher failed.
    #[error("starting and watching the ranks: {0}{advice}", advice = advice::of_call(.0))]
    System(#[from] io::Error),
}

impl Error {
    /// The exit status that shells use for this error: 127 for a program that isn't found, 126 for
    /// a program that can't be run, 1 for all other errors.
    pub fn status(&self) -> u8 {
        match self {
            Error::Start { source, .. } | Error::StartHost { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => 127,
                _ => 126,
            },
            _ => 1,
        }
    }
}

/// Runs `job` until its last rank has ended, and returns the job's exit status. The
/// [module's documentation](self) lists the statuses.
///
/// The ranks die with the calling thread. `control` decides whether signals are forwarded; see
/// [`guarded`].
///
/// # Errors
/// The job can't start, or a system call of the launcher fails. No rank is left running.
pub fn run(job: &Job, control: &Control) -> Result<u8, Error> {
    supervisor::Supervisor::start(job, control)?.supervise()
}
