//! Starting a job's ranks, and standing by until the last has ended.
//!
//! [`run`] does what `longshore run` does: it starts the ranks of a [`Job`], serves them PMI-1, forwards
//! what they print, and when one dies ends the others, or tells them. One thread does all of it in one
//! poll loop, and the ranks die with that thread. [`guarded`] is for programs that are nothing but a
//! launcher: it forwards signals, and leaves nothing running even when the launcher itself is killed.
//!
//! | the job's status | when |
//! |---|---|
//! | 0 | all ranks exited with 0, those that called init after finalize |
//! | the first failing rank's | it exited with another status |
//! | 128 + signal | the first failing rank was killed |
//! | 1 | the first failing rank exited with 0, but without finalize, or without an init that others waited for |
//! | 1 | standard output or error can't be written, for another reason than that nobody reads it |
//! | the code | a rank aborted the job with it |
//! | 124 | the job took longer than its timeout |
//! | 126, 127 | a program can't be started, or isn't found ([`Error::status`]) |
//! | 1 | a host can't be reached, or its agent is gone |
//!
//! Ranks on other hosts are started, listened to and ended by an *agent* on each, of which [`serve`] is the whole: a start command
//! such as ssh runs it, and what the launcher and it tell each other, the job's secret included, goes over its standard input and
//! output. Launcher and agent use the same station (module `local`), which does and doesn't decide; the launcher decides.
//!
//! A rank's environment gets the variables in [`job::env`](crate::job::env); its standard input is the
//! launcher's for rank 0 and empty for the others.

mod agent;
mod cause;
mod guard;
mod local;
mod message;
mod output;
mod plan;
mod process;
mod remote;
mod server;
mod supervisor;
mod watchdog;

use std::ffi::OsString;
use std::io;
use std::time::Duration;

pub use agent::serve;
pub use guard::{Control, guarded, is_ignored};

use crate::job::{Checking, OnDeath, Progress, Routes};

/// The start command where none is given: it asks for no password, and notices within half a minute that a host is gone.
pub const SSH: &str = "ssh -o BatchMode=yes -o ConnectTimeout=15 -o ServerAliveInterval=10";

/// The status of a job that took longer than its timeout, as timeout(1) has it.
pub const TIMED_OUT: u8 = 124;

/// After how long in one call `longshore run` reports who waits for whom, unless told otherwise.
pub const WATCHDOG: Duration = Duration::from_secs(10);

/// What to run.
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
    /// The programs, whose ranks follow each other in this order.
    pub parts: Vec<Part>,
    /// Where the ranks run, which fill the hosts in this order; empty: all here.
    pub hosts: Vec<Host>,
    /// The words that start a program on a host, with the host's name behind them and then the program's own words: `ip netns
    /// exec`, or [`SSH`], which none stand for. Standard input and output have to get through, and nothing else. Behind words of one's own
    /// the agent's aren't quoted for a shell.
    pub start: Vec<OsString>,
    /// The words that start an agent on a host, which is a program that [serves](serve); none: those of this program there, with
    /// `agent` behind.
    pub agent: Vec<OsString>,
    /// The folder that ranks start in; none: the launcher's own, or on hosts the one of that name.
    pub folder: Option<OsString>,
    /// Whether each line of output starts with its rank.
    pub label: bool,
    /// How long the job may take.
    pub timeout: Option<Duration>,
    /// What the death of a rank does to the others.
    pub on_death: OnDeath,
    /// Which routes operations may take.
    pub routes: Routes,
    /// The seed of an adversary, which [`ADVERSARY`](crate::job::env::ADVERSARY) describes.
    pub adversary: Option<u64>,
    /// Whether each rank has a thread that answers its peers while the program computes; none: the environment decides.
    pub progress: Option<Progress>,
    /// Whether uses of windows are checked that MPI leaves undefined; none: the environment decides.
    pub check: Option<Checking>,
    /// How long ranks may stay in one call before who waits for whom is reported; none: for ever.
    pub watchdog: Option<Duration>,
}

/// A host that ranks run on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// What the start command calls it.
    pub name: OsString,
    /// How many ranks it takes, above 0.
    pub ranks: u32,
}

/// Ranks that run one program.
#[derive(Clone, Debug)]
pub struct Part {
    /// How many, above 0.
    pub ranks: u32,
    /// The program, looked up in PATH where it has no slash.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Additions to its environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Names of the representations that the part's ranks emulate, in turn from its first rank;
    /// `native`, or none at all, for the machine's own.
    pub archs: Vec<String>,
}

impl Part {
    /// One rank of `program`, without arguments.
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

/// Why a job didn't start, or had to be given up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No part has a rank.
    #[error("a job needs at least one rank")]
    Empty,
    /// More ranks than the hosts take.
    #[error(
        "{ranks} ranks, and the hosts take {room}: give --host more, or larger numbers behind ':'"
    )]
    Room {
        /// The ranks of all parts.
        ranks: u32,
        /// What the hosts take together.
        room: u32,
    },
    /// A host's start command can't be run.
    #[error("host {host}: can't run {}: {source}", command.to_string_lossy())]
    StartHost {
        /// The host.
        host: String,
        /// The first word of the start command.
        command: OsString,
        /// Why.
        source: io::Error,
    },
    /// There is no such folder to start ranks in.
    #[error("can't start ranks in the folder {}: {source}; --wdir names another", folder.to_string_lossy())]
    Folder {
        /// The folder.
        folder: OsString,
        /// Why.
        source: io::Error,
    },
    /// A program can't be started.
    #[error("part {part}: can't start {}: {source}", program.to_string_lossy())]
    Start {
        /// The part of the job, from 1.
        part: usize,
        /// The program.
        program: OsString,
        /// Why.
        source: io::Error,
    },
    /// The ranks' shared segment can't be made.
    #[error("the job's shared segment: {0}")]
    Segment(#[from] longshore_transport::SegmentError),
    /// The system refuses what a launcher needs.
    #[error("starting and watching the ranks: {0}")]
    System(#[from] io::Error),
}

impl Error {
    /// The exit status for it, as shells have it: 127 for a program that isn't found, 126 for one that
    /// can't be run, 1 for all else.
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

/// Runs `job` until its last rank has ended, and gives back its exit status, as the table in the
/// [module's documentation](self) has it.
///
/// The ranks die with the calling thread. `control` says whether signals are forwarded: see
/// [`guarded`].
///
/// # Errors
/// The job can't start, or the system fails the launcher. No rank is left running.
pub fn run(job: &Job, control: &Control) -> Result<u8, Error> {
    supervisor::Supervisor::start(job, control)?.supervise()
}
