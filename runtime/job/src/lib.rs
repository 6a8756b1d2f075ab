//! The job of a process: its rank, the job's size, the shared segment, the secret and the options.
//!
//! Internal to Longshore: this is what the ranks (the crate `longshore`) and the launcher
//! (`longshore-launcher`) share. A program uses the crate `longshore`, whose module `job` has the
//! items that are meant for programs. The others may change in any version.
//!
//! [`Environment::from_env`] reads the environment that a launcher set up. `longshore run` provides
//! all of it. Other launchers provide rank and size by PMI-1 or PMIx, and the ranks agree on the
//! rest through the launcher's key-value store. Ranks on several hosts exchange their network
//! addresses through that store too.

mod activity;
mod bootstrap;
mod checking;
pub mod endpoint;
pub mod env;
mod exchange;
mod hosts;
mod inherited;
#[doc(hidden)]
pub mod joining;
#[doc(hidden)]
pub mod journal;
mod language;
mod line;
mod network;
pub mod pmi;
mod pmix;
mod secret;
mod words;

use std::io;
use std::num::NonZeroUsize;
use std::os::fd::{OwnedFd, RawFd};
use std::str::FromStr;

use longshore_transport::fabric::LibraryError;
use shipable::Architecture;
use tracing::level_filters::LevelFilter;

use self::exchange::Exchange;
pub use activity::Activity;
pub use checking::{Checking, Topic, Topics};
pub use hosts::Hosts;
pub use language::{Language, language, speak};
pub use network::Network;
#[doc(hidden)]
pub use network::listening;
pub use secret::Secret;
#[cfg(any(test, feature = "copies"))]
#[doc(hidden)]
pub use secret::copies;
pub use words::UnknownWord;

/// The job of a launched process.
#[derive(Debug)]
pub struct Environment {
    /// This process's rank.
    pub rank: u32,
    /// The number of ranks, above `rank`.
    pub size: u32,
    /// How these ranks were started.
    #[doc(hidden)]
    pub start: Start,
    /// The segment that all ranks on this host share.
    pub segment: OwnedFd,
    /// The secret by which ranks prove that they belong to the job.
    pub secret: Secret,
    /// The routes that operations may take.
    pub routes: Routes,
    /// Whether a thread of this rank answers its peers while the program computes.
    pub progress: bool,
    /// The number of processors that the ranks of this host may use together. `None`: unknown.
    #[doc(hidden)]
    pub processors: Option<usize>,
    /// The reaction to another rank's death.
    pub on_death: OnDeath,
    /// Whether this rank checks for uses of windows that MPI leaves undefined.
    pub check: Checking,
    /// The host of each rank.
    #[doc(hidden)]
    pub hosts: Hosts,
    /// The network to ranks on other hosts, until the link takes it over.
    #[doc(hidden)]
    pub network: Option<Network>,
    /// Where this rank records what the launcher asks for, until the rank takes it over.
    #[doc(hidden)]
    pub journal: Option<OwnedFd>,
    launcher: Exchange,
    /// The pipe whose end kills this process.
    _lifeline: Option<OwnedFd>,
}

/// How the ranks of a program were started.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct Start {
    /// The number of rank 0 among all ranks of the job: 0, unless a rank had this one started.
    pub first: u32,
    /// The port by which these ranks meet those that had them started.
    pub parent: Option<String>,
    /// The number of the program among those that were started together, if the launcher knows it.
    pub program: Option<u32>,
}

/// The routes that operations may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Routes {
    /// The best route for each pair of ranks.
    #[default]
    Best,
    /// Messages only: the route that works for every pair.
    Message,
}

/// Whether a thread of each rank answers its peers while the program computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Progress {
    /// A thread answers if peers reach a window of the rank by messages. It sleeps while no message
    /// arrives.
    #[default]
    On,
    /// No thread answers: peers get answers only while the rank is inside a call.
    Off,
}

/// The effect of a rank's death on the other ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDeath {
    /// The job ends.
    #[default]
    End,
    /// The job goes on. Calls that need the dead rank return PROC_FAILED at the survivors.
    Survive,
}

/// The reason why a process can't join its job.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An environment variable is missing or has an invalid value.
    #[error("{name}={value:?} in the environment: expected {expected}")]
    Variable {
        /// The variable's name.
        name: &'static str,
        /// The variable's value; empty if the variable is missing.
        value: String,
        /// A description of valid values.
        expected: &'static str,
    },
    /// The process has called `init` before.
    #[error(
        "this process has joined its job before: call init once, and pass the Rank on by reference"
    )]
    Twice,
    /// This process isn't the one that joins the job as its rank.
    #[error(
        "this process isn't rank {rank} of its job: {why}. One process of each rank calls init, once; start another program \
         by a launcher of its own, or as a job of one rank, without PMI_FD in its environment (env -u PMI_FD PROGRAM)"
    )]
    NotTheRank {
        /// The rank of the environment.
        rank: u32,
        /// What shows it.
        why: &'static str,
    },
    /// The communication with the launcher failed.
    #[error("communicating with the launcher: {0}")]
    Launcher(#[source] io::Error),
    /// The segment can't be created, found or opened.
    #[error("the job's shared segment: {0}")]
    Segment(#[source] io::Error),
    /// The progress thread can't be started.
    #[error("starting the progress thread: {0}")]
    Thread(#[source] io::Error),
    /// Ranks are on several hosts, but this host has no libfabric to link them.
    #[error(
        "rank {rank} and rank {other} run on different hosts, and on host {host}, {source}; \
         or start all ranks on one host"
    )]
    NoLibrary {
        /// The rank that reports the error.
        rank: u32,
        /// A rank on another host.
        other: u32,
        /// The name of the host of `rank`.
        host: String,
        /// What is wrong with the library, and what to do.
        source: LibraryError,
    },
    /// The network between hosts can't be used.
    #[error("the network between hosts: {0}")]
    Network(String),
}

/// The adversary's seed from the environment, if it is set.
pub fn adversary() -> Result<Option<u64>, Error> {
    optional(env::ADVERSARY, "a number, the adversary's seed")
}

/// The environment's choice of checking for undefined uses of windows.
pub fn checking() -> Result<Checking, Error> {
    Ok(optional(env::CHECK, checking::EXPECTED)?.unwrap_or_default())
}

/// The representation to emulate from the environment, if one is set.
pub fn architecture() -> Result<Option<Architecture>, Error> {
    let known = |name: String| Architecture::by_name(&name);
    let found = text(env::ARCH).map(known).transpose();
    found.map_err(|_| {
        wrong(env::ARCH, "a representation that `longshore info` lists, or a descriptor")
    })
}

/// The environment's choice of routes.
pub fn routes() -> Result<Routes, Error> {
    Ok(optional(env::ROUTE, "best or message")?.unwrap_or_default())
}

/// Whether something is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Switch {
    On,
    Off,
}

/// Whether the environment turns something on, if it says so.
fn switch(name: &'static str) -> Result<Option<bool>, Error> {
    Ok(optional::<Switch>(name, "on or off, or 1 or 0")?.map(|switch| switch == Switch::On))
}

/// How a rank carries out operations on windows, beside their routes.
#[derive(Clone, Copy, Debug)]
pub struct Ladder {
    /// Whether operations that are known to be valid take a shorter way than the full check.
    pub fast: bool,
    /// Whether each way that is taken is explained.
    pub explain: bool,
}

impl Default for Ladder {
    fn default() -> Ladder {
        Ladder { fast: true, explain: false }
    }
}

/// The environment's choice of how operations are carried out.
pub fn ladder() -> Result<Ladder, Error> {
    let Ladder { fast, explain } = Ladder::default();
    Ok(Ladder {
        fast: switch(env::FAST)?.unwrap_or(fast),
        explain: switch(env::EXPLAIN)?.unwrap_or(explain),
    })
}

/// The log level for standard error from the environment, if it is set.
pub fn log_level() -> Result<Option<LevelFilter>, Error> {
    optional(env::LOG, "off, error, warn, info, debug or trace")
}

/// The bytes of short messages, headers included, that a rank holds for each sender before they are
/// received, unless the environment has another number.
pub const ROOM: u64 = 64 << 20;

/// The environment's bytes of short messages that a rank holds for each sender.
pub fn room() -> Result<u64, Error> {
    let bytes = |text: String| -> Option<u64> {
        let digits = text.trim_end_matches(['K', 'M', 'G']);
        let unit = match &text[digits.len()..] {
            "" => 1,
            "K" => 1 << 10,
            "M" => 1 << 20,
            "G" => 1 << 30,
            _ => return None,
        };
        digits.parse::<u64>().ok()?.checked_mul(unit).filter(|bytes| *bytes >= LEAST_ROOM)
    };
    match text(env::ROOM) {
        None => Ok(ROOM),
        Some(text) => bytes(text).ok_or_else(|| {
            wrong(env::ROOM, "a number of bytes from 16K on, perhaps with K, M or G")
        }),
    }
}

/// The least room for which a message of any short length has a place.
const LEAST_ROOM: u64 = 16 << 10;

/// The environment's number of threads for long transfers, if it is set.
pub fn threads() -> Result<Option<usize>, Error> {
    let number = |text: String| if text == "off" { Ok(1) } else { text.parse() };
    let found = text(env::THREADS).map(number).transpose();
    found.map_err(|_| wrong(env::THREADS, "a number of threads, or off"))
}

impl Environment {
    /// The job of this process, or `None` if no launcher started the process: for example, if a
    /// rank did.
    ///
    /// Under `longshore run` on one host, the call makes short exchanges with the launcher. On
    /// several hosts, and under any other launcher, it is collective: all ranks must call it.
    ///
    /// Under `longshore run`, the kernel kills this process from then on if the launcher ends.
    ///
    /// # Errors
    /// The environment is malformed or incomplete, the launcher doesn't answer, or no network
    /// connects the job's hosts.
    pub fn from_env() -> Result<Option<Environment>, Error> {
        let Some((mut launcher, rank, size)) = connect()? else { return Ok(None) };
        if rank >= size {
            return Err(wrong(env::PMI_RANK, RANK));
        }
        let joined = match text(env::LAUNCHER) {
            Some(_) => launcher.join().map_err(Error::Launcher)?,
            None => None,
        };
        let mut start = Start::default();
        if text(env::LAUNCHER).is_some() {
            start.first = optional(env::FIRST, "the number of the first rank")?.unwrap_or_default();
            start.parent = text(env::PARENT);
        }
        start.program = launcher.program().map_err(Error::Launcher)?;
        let mut journal = None;
        let (segment, secret, hosts, lifeline) = match joined {
            Some(pmi::Joined { segment, lifeline, secret, journal: left }) => {
                journal = left;
                inherited::die_with(&lifeline).map_err(Error::Launcher)?;
                let hosts = match text(env::HOSTS) {
                    Some(hosts) => Hosts::parse(&hosts, size).ok_or(wrong(env::HOSTS, HOSTS))?,
                    None => Hosts::one(),
                };
                (segment, secret, hosts, Some(lifeline))
            }
            None => {
                let (segment, secret, hosts) = bootstrap::share(rank, size, &mut launcher)?;
                (segment, secret, hosts, None)
            }
        };
        let routes = routes()?;
        let check = checking()?;
        // Memory is accessed over the network only if operations may take routes other than
        // messages. The adversary and the checks work on messages only.
        let accesses = routes == Routes::Best && check == Checking::Off && adversary()?.is_none();
        let ports = match switch(env::ENCRYPT)?.unwrap_or_default() {
            true => network::Kind::Encrypted,
            false if accesses => network::Kind::Memory,
            false => network::Kind::Frames,
        };
        let network = match hosts.is_one() {
            true => None,
            false => Some(Network::meet(rank, &hosts, ports, &mut launcher)?),
        };
        Ok(Some(Environment {
            hosts,
            network,
            rank,
            size,
            start,
            segment,
            secret,
            routes,
            progress: optional::<Progress>(env::PROGRESS, "on or off")?.unwrap_or_default()
                == Progress::On,
            processors: optional::<NonZeroUsize>(env::PROCESSORS, "a number, from 1")?
                .map(NonZeroUsize::get),
            on_death: optional(env::ON_DEATH, "end or survive")?.unwrap_or_default(),
            check,
            journal,
            launcher,
            _lifeline: lifeline,
        }))
    }

    /// Whether the launcher has ended, for example by SIGKILL. Doesn't block.
    ///
    /// A waiting rank must ask from time to time and exit if so, because such a launcher can't end
    /// its ranks any more.
    pub fn is_orphaned(&self) -> bool {
        self.launcher.hung_up()
    }

    /// Notifies the launcher that this rank has finalized. Its exit is no failure after this call.
    pub fn finalize(&mut self) -> Result<(), Error> {
        self.launcher.finalize().map_err(Error::Launcher)
    }

    /// Asks the launcher to start processes. Returns once they run, or none does.
    ///
    /// # Errors
    /// The launcher isn't `longshore run`, or doesn't answer.
    #[doc(hidden)]
    pub fn order(&mut self, order: &joining::Order) -> Result<joining::Started, Error> {
        self.launcher.order(order).map_err(Error::Launcher)
    }

    /// Has the launcher publish a port under a name, unless the name is taken. Returns whether it
    /// was free.
    ///
    /// # Errors
    /// The launcher isn't `longshore run`, or doesn't answer.
    #[doc(hidden)]
    pub fn publish(&mut self, name: &str, port: &str) -> Result<bool, Error> {
        self.launcher.publish_port(name, port).map_err(Error::Launcher)
    }

    /// Has the launcher forget a name. Returns whether it knew the name.
    ///
    /// # Errors
    /// The launcher isn't `longshore run`, or doesn't answer.
    #[doc(hidden)]
    pub fn unpublish(&mut self, name: &str) -> Result<bool, Error> {
        self.launcher.unpublish_port(name).map_err(Error::Launcher)
    }

    /// The port that is published under a name, if there is one.
    ///
    /// # Errors
    /// The launcher isn't `longshore run`, or doesn't answer.
    #[doc(hidden)]
    pub fn look_up(&mut self, name: &str) -> Result<Option<String>, Error> {
        self.launcher.look_up_port(name).map_err(Error::Launcher)
    }

    /// Asks the launcher to end the whole job with exit status `code`.
    pub fn abort(&mut self, code: i32) -> Result<(), Error> {
        self.launcher.abort(code).map_err(Error::Launcher)
    }
}

const HOSTS: &str = "the numbers of consecutive ranks on one host, separated by ',', with the sum \
                     PMI_SIZE, and @N after those that are on the Nth host, from 0, again";
const RANK: &str = "a rank from 0 to PMI_SIZE - 1";

const CLOSED: &str = "its connection to the launcher, the descriptor PMI_FD, isn't open, so the rank, or a script in its \
                      place, started this process";
const JOINED: &str =
    "another process has joined as that rank, such as another program of the same script";

/// The connection to the launcher, with this process's rank and the job's size.
fn connect() -> Result<Option<(Exchange, u32, u32)>, Error> {
    if let Some(number) = optional::<RawFd>(env::PMI_FD, "an open descriptor")? {
        let size = required(env::PMI_SIZE, "the number of ranks, from 1")?;
        let rank = required(env::PMI_RANK, RANK)?;
        let not_the_rank = |why| Error::NotTheRank { rank, why };
        let taken = match inherited::take(number) {
            Err(Error::Launcher(error)) if error.raw_os_error() == Some(nix::libc::EBADF) => {
                return Err(not_the_rank(CLOSED));
            }
            Err(Error::Launcher(error)) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(not_the_rank(JOINED));
            }
            taken => taken?,
        };
        let Some(socket) = taken else { return Ok(None) };
        let client = pmi::Client::open(socket).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => not_the_rank(JOINED),
            _ => Error::Launcher(error),
        })?;
        return Ok(Some((Exchange::Pmi(client, rank), rank, size)));
    }
    if let Some(address) = text(env::PMI_PORT) {
        let id = text(env::PMI_ID);
        let id = id.ok_or(wrong(env::PMI_ID, "the process's identity, beside PMI_PORT"))?;
        let (client, rank, size) = pmi::Client::connect(&address, &id).map_err(Error::Launcher)?;
        return Ok(Some((Exchange::Pmi(client, rank), rank, size)));
    }
    if text(env::PMIX_NAMESPACE).is_some() && text(env::PMIX_RANK).is_some() {
        let client = pmix::Client::open().map_err(Error::Launcher)?;
        let (rank, size) = (client.rank(), client.size());
        return Ok(Some((Exchange::Pmix(client), rank, size)));
    }
    Ok(None)
}

/// The value of an environment variable, if it is set.
pub fn text(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

fn optional<T: FromStr>(name: &'static str, expected: &'static str) -> Result<Option<T>, Error> {
    text(name).map(|value| value.parse().map_err(|_| wrong(name, expected))).transpose()
}

fn required<T: FromStr>(name: &'static str, expected: &'static str) -> Result<T, Error> {
    optional(name, expected)?.ok_or(wrong(name, expected))
}

fn wrong(name: &'static str, expected: &'static str) -> Error {
    Error::Variable { name, value: text(name).unwrap_or_default(), expected }
}
