//! How a process finds its job: its rank, the other ranks, and what they share.
//!
//! [`Environment::from_env`] reads what a launcher left in the environment. `longshore run` leaves
//! everything; another launcher that speaks PMI-1 or PMIx leaves rank and size, and the ranks share the rest among
//! themselves. Ranks of several hosts learn by way of the launcher where the others listen.

mod activity;
mod bootstrap;
pub mod env;
mod exchange;
mod inherited;
mod network;
pub mod pmi;
mod pmix;
mod secret;
mod words;

use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::str::FromStr;

pub(crate) use network::Network;

use shipable::Architecture;
use tracing::level_filters::LevelFilter;

use self::exchange::Exchange;
use crate::hosts::Hosts;
pub use activity::Activity;
pub use secret::Secret;
pub use words::UnknownWord;

/// What a launched process knows of its job.
#[derive(Debug)]
pub struct Environment {
    /// This process's rank.
    pub rank: u32,
    /// The number of ranks, above `rank`.
    pub size: u32,
    /// The segment that all ranks on this host share.
    pub segment: OwnedFd,
    /// Proof of membership.
    pub secret: Secret,
    /// Which routes operations may take.
    pub routes: Routes,
    /// Whether a thread of this rank answers its peers while the program computes.
    pub progress: bool,
    /// What another rank's death does to this one.
    pub on_death: OnDeath,
    /// Whether uses of windows are checked that MPI leaves undefined.
    pub check: Checking,
    /// Which ranks share a host.
    pub(crate) hosts: Hosts,
    /// The way to those that don't share this one's, until its link is made.
    pub(crate) network: Option<Network>,
    launcher: Exchange,
}

/// Which routes operations may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Routes {
    /// The best for each pair of ranks.
    #[default]
    Best,
    /// Messages only: the route that always works.
    Message,
}

/// Whether a thread of each rank answers its peers while the program computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Progress {
    /// One does, where peers reach a window of the rank by messages. It sleeps while nothing comes.
    #[default]
    On,
    /// None does: peers are answered while the rank is inside a call.
    Off,
}

/// Whether uses of windows are looked for that MPI leaves undefined, and reported on standard error (rules 7, 8, 9, 22 and 23). The same at all ranks.
/// While they are, all operations go by message. Loads and stores are seen that a rank makes of its own memory by accessors, not by
/// pointer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checking {
    /// They aren't.
    #[default]
    Off,
    /// They are, and the job goes on.
    Report,
    /// Likewise, and `finalize` fails at all ranks where any was found at any.
    Fail,
}

/// What the death of a rank does to the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDeath {
    /// It ends the job.
    #[default]
    End,
    /// The survivors' calls that involve it return an error.
    Report,
}

/// Why a process can't join its job.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A variable is missing, or holds what it can't.
    #[error("{name}={value:?} in the environment: expected {expected}")]
    Variable {
        /// Its name.
        name: &'static str,
        /// What it holds; empty where it is missing.
        value: String,
        /// What it should hold.
        expected: &'static str,
    },
    /// The launcher can't be spoken to.
    #[error("speaking with the launcher: {0}")]
    Launcher(#[source] io::Error),
    /// The segment can't be made, found or opened.
    #[error("the job's shared segment: {0}")]
    Segment(#[source] io::Error),
    /// The progress thread can't be started.
    #[error("starting the progress thread: {0}")]
    Thread(#[source] io::Error),
    /// Ranks are on several hosts, and this build has no link between hosts.
    #[error(
        "rank {rank} and rank {other} run on different hosts: build the program with the cargo feature `fabric`, \
         longshore = {{ ..., features = [\"fabric\"] }}, which needs libfabric (ci/libfabric brings it), or start all ranks on one"
    )]
    SeveralHosts {
        /// The rank that found out.
        rank: u32,
        /// One of another host.
        other: u32,
    },
    /// The network between hosts can't be used.
    #[error("the network between hosts: {0}")]
    Network(String),
}

/// The adversary's seed, where the environment has one.
pub(crate) fn adversary() -> Result<Option<u64>, Error> {
    optional(env::ADVERSARY, "a number, the adversary's seed")
}

/// Whether uses of windows are checked, by the environment.
pub(crate) fn checking() -> Result<Checking, Error> {
    Ok(optional(env::CHECK, "off, report or fail")?.unwrap_or_default())
}

/// The representation to emulate, where the environment names one.
pub(crate) fn architecture() -> Result<Option<Architecture>, Error> {
    let known = |name: String| Architecture::by_name(&name);
    let found = text(env::ARCH).map(known).transpose();
    found.map_err(|_| {
        wrong(env::ARCH, "a representation that `longshore info` lists, or a descriptor")
    })
}

/// Which routes operations may take, by the environment.
pub(crate) fn routes() -> Result<Routes, Error> {
    Ok(optional(env::ROUTE, "best or message")?.unwrap_or_default())
}

/// How much is to be told on standard error, where the environment says.
pub(crate) fn log_level() -> Result<Option<LevelFilter>, Error> {
    optional(env::LOG, "off, error, warn, info, debug or trace")
}

impl Environment {
    /// This process's job, or `None` for a process that no launcher started.
    ///
    /// Under `longshore run` on one host this costs two short exchanges with the launcher. On several, and under another
    /// launcher, it is collective: all ranks of the job have to call it.
    ///
    /// # Errors
    /// A malformed or incomplete environment, a launcher that doesn't answer, several hosts without a network between.
    pub fn from_env() -> Result<Option<Environment>, Error> {
        let Some((mut launcher, rank, size)) = connect()? else { return Ok(None) };
        if rank >= size {
            return Err(wrong(env::PMI_RANK, RANK));
        }
        let (segment, secret, hosts) = match optional::<RawFd>(env::SEGMENT, "an open descriptor")?
        {
            Some(number) => {
                let segment = inherited::duplicate(number).map_err(Error::Segment)?;
                let secret = text(env::SECRET)
                    .and_then(|secret| Secret::from_hex(&secret))
                    .ok_or(wrong_secret())?;
                let hosts = match text(env::HOSTS) {
                    Some(hosts) => Hosts::parse(&hosts, size).ok_or(wrong(env::HOSTS, HOSTS))?,
                    None => Hosts::one(),
                };
                (segment, secret, hosts)
            }
            None => bootstrap::share(rank, size, &mut launcher)?,
        };
        let routes = routes()?;
        let check = checking()?;
        // An adversary and what is checked want messages.
        let accesses = routes == Routes::Best && check == Checking::Off && adversary()?.is_none();
        let network = match hosts.is_one() {
            true => None,
            false => Some(Network::meet(rank, &hosts, accesses, &mut launcher)?),
        };
        Ok(Some(Environment {
            hosts,
            network,
            rank,
            size,
            segment,
            secret,
            routes,
            progress: optional::<Progress>(env::PROGRESS, "on or off")?.unwrap_or_default()
                == Progress::On,
            on_death: optional(env::ON_DEATH, "end or report")?.unwrap_or_default(),
            check,
            launcher,
        }))
    }

    /// Whether the launcher is gone, killed outright perhaps. A rank that waits asks now and then, and
    /// ends: its launcher can't end it any more. Doesn't block.
    pub fn is_orphaned(&self) -> bool {
        self.launcher.hung_up()
    }

    /// Tells the launcher that this rank has finalized: from here on its end is no failure.
    pub fn finalize(&mut self) -> Result<(), Error> {
        self.launcher.finalize().map_err(Error::Launcher)
    }

    /// Asks the launcher to end the whole job with exit status `code`.
    pub fn abort(&mut self, code: i32) -> Result<(), Error> {
        self.launcher.abort(code).map_err(Error::Launcher)
    }
}

const HOSTS: &str = "numbers of ranks with ',' between, PMI_SIZE together";
const RANK: &str = "a rank, from 0 and below PMI_SIZE";

/// The launcher, and this process's rank and the job's size.
fn connect() -> Result<Option<(Exchange, u32, u32)>, Error> {
    if let Some(number) = optional::<RawFd>(env::PMI_FD, "an open descriptor")? {
        let size = required(env::PMI_SIZE, "the number of ranks, from 1")?;
        let rank = required(env::PMI_RANK, RANK)?;
        let socket = inherited::duplicate(number).map_err(Error::Launcher)?;
        let client = pmi::Client::open(socket).map_err(Error::Launcher)?;
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

pub(crate) fn text(name: &str) -> Option<String> {
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

fn wrong_secret() -> Error {
    Error::Variable {
        name: env::SECRET,
        value: "...".to_owned(),
        expected: "64 hexadecimal digits, the same for all ranks",
    }
}
