//! A job and the options of its launch. Options that change together are one part of the job.

use std::ffi::OsString;
use std::fmt::{self, Display, Formatter};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use super::{Binding, Mapping, Stats};
use longshore_job::{Checking, OnDeath, Progress, Routes};

/// The programs of a job and the options of its launch.
///
/// ```
/// use longshore_launcher::{Control, Job, Part, run};
///
/// let hello = Part { ranks: 2, ..Part::new("true") };
/// let job = Job { parts: vec![hello, Part::new("true")], ..Job::default() };
/// assert_eq!(run(&job, &Control::none())?, 0);
/// # Ok::<(), longshore_launcher::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Job {
    /// The programs. Ranks are numbered across them in this order.
    pub parts: Vec<Part>,
    /// Commands that start the programs of some ranks. The first that has a rank is the rank's.
    pub wraps: Vec<Wrap>,
    /// The working directory of the ranks. If `None`: the launcher's, by its path on other hosts.
    pub folder: Option<OsString>,
    /// Where the ranks run.
    pub placement: Placement,
    /// How the ranks communicate, and what they do about errors.
    pub settings: Settings,
    /// Where the ranks' output goes.
    pub output: Output,
    /// What is recorded of the job.
    pub recording: Recording,
    /// How long the job may take, and what the launcher reports of a job that hangs.
    pub patience: Patience,
}

/// Where the ranks of a job run.
#[derive(Clone, Debug, Default)]
pub struct Placement {
    /// The hosts. If empty, all ranks run on this host.
    pub hosts: Vec<Host>,
    /// The order in which ranks are assigned to the hosts.
    pub mapping: Mapping,
    /// The words of the start command, such as `ip netns exec`; if empty, [`SSH`](super::SSH). The
    /// launcher appends the host's name and the agent's words. The command must pass standard input
    /// and output through, and need not pass anything else. Only for [`SSH`](super::SSH) does the
    /// launcher quote the agent's words for a shell.
    pub start: Vec<OsString>,
    /// The words that start an agent, a program that calls [`serve`](super::serve), on a host. If
    /// empty: the path of this executable and the word `agent`.
    pub agent: Vec<OsString>,
    /// The cores that each rank of a host may use. If `None`: an equal share, if there are as many
    /// cores as ranks, and otherwise all.
    pub binding: Option<Binding>,
}

/// How the ranks of a job communicate, and what they do about errors. Ranks get these by their
/// environment.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The reaction to the death of a rank.
    pub on_death: OnDeath,
    /// The routes that operations may take.
    pub routes: Routes,
    /// The seed of an adversary, which [`ADVERSARY`](longshore_job::env::ADVERSARY) describes.
    pub adversary: Option<u64>,
    /// Whether each rank has a thread that answers its peers while the program computes. If `None`,
    /// the ranks' environment decides.
    pub progress: Option<Progress>,
    /// Whether the ranks check for uses of windows that MPI leaves undefined. If `None`, the ranks'
    /// environment decides.
    pub check: Option<Checking>,
    /// Whether ranks encrypt all that they send to other hosts. If not, the ranks' environment
    /// decides.
    pub encrypt: bool,
    /// Whether the ranks explain by which paths their operations reach windows. If not, the ranks'
    /// environment decides.
    pub explain: bool,
}

/// Where the output of a job goes.
#[derive(Clone, Debug, Default)]
pub struct Output {
    /// Whether the launcher prints the host and the processors of each rank on standard error.
    pub verbose: bool,
    /// Whether each line of output starts with its rank.
    pub label: bool,
    /// The folder for the ranks' output, which is made if it isn't there: N.out and N.err of rank
    /// N. If `None`, the output goes to the launcher's own.
    pub folder: Option<PathBuf>,
}

/// What is recorded of a job.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// Where the counters of the ranks go, after the end of the job; `None`: nothing is counted.
    pub stats: Option<Stats>,
    /// The file for the trace of the ranks, which Perfetto opens; `None`: nothing is traced.
    pub trace: Option<PathBuf>,
}

/// How long a job may take, and what the launcher reports of a job that hangs.
#[derive(Clone, Debug, Default)]
pub struct Patience {
    /// The longest time that the job may take; `None`: no limit.
    pub timeout: Option<Duration>,
    /// The time that ranks may spend in one call without progress before the launcher reports which
    /// rank waits for which; `None`: no reports.
    pub watchdog: Option<Duration>,
    /// When the launcher prints the stacks of ranks.
    pub stacks: Stacks,
}

/// When the launcher prints the stacks of ranks. A debugger of the host reads them (gdb or
/// eu-stack), and stops each rank meanwhile.
///
/// ```
/// use longshore_launcher::Stacks;
///
/// assert_eq!("off".parse(), Ok(Stacks::Off));
/// assert_eq!(Stacks::default(), Stacks::Hang);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stacks {
    /// Never.
    Off,
    /// After a timeout, when the job is about to end: those of some ranks, within seconds, if the
    /// host has a debugger.
    Timeout,
    /// After a timeout, and once after the first report of the watchdog on ranks that wait for each
    /// other: those of some ranks, within seconds, if the host has a debugger.
    #[default]
    Hang,
    /// After a timeout and after each report of the watchdog: those of all ranks. Without a
    /// debugger, the state of each thread.
    All,
    /// As [`All`](Stacks::All), with the frames of libraries, and with the names as they are.
    Full,
}

impl FromStr for Stacks {
    type Err = String;

    fn from_str(word: &str) -> Result<Stacks, String> {
        match word {
            "off" => Ok(Stacks::Off),
            "timeout" => Ok(Stacks::Timeout),
            "hang" => Ok(Stacks::Hang),
            "all" => Ok(Stacks::All),
            "full" => Ok(Stacks::Full),
            _ => Err("expected off, timeout, hang, all or full".to_owned()),
        }
    }
}

impl Display for Stacks {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stacks::Off => "off",
            Stacks::Timeout => "timeout",
            Stacks::Hang => "hang",
            Stacks::All => "all",
            Stacks::Full => "full",
        })
    }
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
