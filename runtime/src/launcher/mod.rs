//! Starts the ranks of a job and supervises them until the last has ended.
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
//! A rank's environment gets the variables in [`job::env`](crate::job::env). Rank 0 inherits the
//! launcher's standard input; the standard input of every other rank is empty.

mod advice;
mod agent;
mod binding;
mod cause;
mod core_file;
#[cfg(fuzzing)]
mod fuzzing;
mod guard;
mod limits;
mod local;
mod mapping;
mod message;
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
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

pub use agent::serve;
pub use binding::{Binding, Processors};
#[cfg(fuzzing)]
pub use fuzzing::Launcher;
pub use guard::{Control, guarded, is_ignored};
pub use limits::Limits;
pub use mapping::Mapping;

use crate::job::{Checking, OnDeath, Progress, Routes};
pub use crate::observe::{Report, Stats};

/// The default start command. It never asks for a password, and it notices within half a minute
/// that a host has gone.
pub const SSH: &str = "ssh -o BatchMode=yes -o ConnectTimeout=15 -o ServerAliveInterval=10";

/// The status of a job that took longer than its timeout: that of timeout(1).
pub const TIMED_OUT: u8 = 124;

/// The default of [`Job::watchdog`] in `longshore run`.
pub const WATCHDOG: Duration = Duration::from_secs(10);

/// The programs of a job and the options of its launch.
///
/// ```
/// use longshore::launcher::{Control, Job, Part, run};
///
/// let hello = Part { ranks: 2, ..Part::new("true") };
/// let job = Job { parts: vec![hello, Part::new("true")], ..Job::default() };
/// assert_eq!(run(&job, &Control::none())?, 0);
/// # Ok::<(), longshore::launcher::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Job {
    /// The programs. Ranks are numbered across them in this order.
    pub parts: Vec<Part>,
    /// The hosts. If empty, all ranks run on this host.
    pub hosts: Vec<Host>,
    /// The order in which ranks are assigned to the hosts.
    pub mapping: Mapping,
    /// The words of the start command, such as `ip netns exec`; if empty, [`SSH`]. The launcher
    /// appends the host's name and the agent's words. The command must pass standard input and
    /// output through, and need not pass anything else. Only for [`SSH`] does the launcher quote
    /// the agent's words for a shell.
    pub start: Vec<OsString>,
    /// The words that start an agent, a program that calls [`serve`], on a host. If empty: the path
    /// of this executable and the word `agent`.
    pub agent: Vec<OsString>,
    /// The working directory of the ranks. If `None`: the launcher's, by its path on other hosts.
    pub folder: Option<OsString>,
    /// The cores that each rank of a host may use. If `None`: an equal share, if there are as many
    /// cores as ranks, and otherwise all.
    pub binding: Option<Binding>,
    /// Whether the launcher prints the host and the processors of each rank on standard error.
    pub verbose: bool,
    /// Whether each line of output starts with its rank.
    pub label: bool,
    /// The folder for the ranks' output, which is made if it isn't there: N.out and N.err of rank
    /// N. If `None`, the output goes to the launcher's own.
    pub output: Option<PathBuf>,
    /// Commands that start the programs of some ranks. The first that has a rank is the rank's.
    pub wraps: Vec<Wrap>,
    /// The longest time that the job may take; `None`: no limit.
    pub timeout: Option<Duration>,
    /// The reaction to the death of a rank.
    pub on_death: OnDeath,
    /// The routes that operations may take.
    pub routes: Routes,
    /// The seed of an adversary, which [`ADVERSARY`](crate::job::env::ADVERSARY) describes.
    pub adversary: Option<u64>,
    /// Whether each rank has a thread that answers its peers while the program computes. If `None`,
    /// the ranks' environment decides.
    pub progress: Option<Progress>,
    /// Whether the ranks check for uses of windows that MPI leaves undefined. If `None`, the ranks'
    /// environment decides.
    pub check: Option<Checking>,
    /// Where the counters of the ranks go, after the end of the job; `None`: nothing is counted.
    pub stats: Option<Stats>,
    /// The file for the trace of the ranks, which Perfetto opens; `None`: nothing is traced.
    pub trace: Option<PathBuf>,
    /// The time that ranks may spend in one call without progress before the launcher reports which
    /// rank waits for which; `None`: no reports.
    pub watchdog: Option<Duration>,
    /// Whether a timeout and a report of the watchdog print the stacks of all ranks. A debugger of
    /// the host reads them (gdb or eu-stack), and stops each rank meanwhile.
    pub stacks: bool,
}

/// A host and the number of ranks that it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// The host's name, as the start command takes it.
    pub name: OsString,
    /// The number of ranks that the host takes, above 0.
    pub ranks: u32,
}

/// A command that starts programs, such as a debugger.
#[derive(Clone, Debug)]
pub struct Wrap {
    /// The ranks whose program it starts.
    pub ranks: Vec<RangeInclusive<u32>>,
    /// Its words, which a program and its arguments follow. At least one.
    pub words: Vec<OsString>,
}

/// One part of a job: consecutive ranks that run the same program.
#[derive(Clone, Debug)]
pub struct Part {
    /// The number of ranks, above 0.
    pub ranks: u32,
    /// The program. If it contains no slash, it is looked up in PATH.
    pub program: OsString,
    /// The program's arguments.
    pub arguments: Vec<OsString>,
    /// Variables that the ranks' environment has in addition.
    pub environment: Vec<(OsString, OsString)>,
    /// Names of the data representations that the ranks emulate, assigned in turn from the part's
    /// first rank. `native`, or an empty list, is the machine's own representation.
    pub archs: Vec<String>,
}

impl Part {
    /// A part of one rank that runs `program` without arguments.
    pub fn new(program: impl Into<OsString>) -> Part {
        Part {
            ranks: 1,
            program: program.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            archs: Vec::new(),
        }
    }
}

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
