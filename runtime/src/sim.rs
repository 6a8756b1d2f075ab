//! Jobs in one process with one thread for each rank, for tests of this crate and of its users.
//!
//! [`run`] simulates the links. Only one rank runs at a time, in an order that a seed decides, so
//! that a failure can be reproduced. In [`run_shared`], all threads run at the same time over real
//! shared memory.
//!
//! `LONGSHORE_SIM_HOSTS=2` in the environment distributes the ranks of each job to two simulated
//! hosts. Between these, libfabric over the loopback is the link, so that the tests cover that link
//! too.

mod multihost;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use longshore_transport::shm::ShmLink;
use longshore_transport::sim::{Cluster, Limits};
use longshore_transport::{Link, Segment};
use shipable::Architecture;

use crate::error::Result;
use crate::job::{Checking, Hosts, Ladder, OnDeath, Routes};
use crate::process::{Conduct, Setup};
use crate::rank::{Matching, Rank};

/// The options of a simulated job.
///
/// ```
/// use longshore::Architecture;
/// use longshore::sim::{Options, run};
///
/// let options = Options { architectures: vec![Architecture::S390X, Architecture::I686], ..Options::default() };
/// let sums = run(2, &options, |rank| {
///     let names = rank.world().allgather(&[rank.world().rank() + 1]).unwrap();
///     rank.finalize().unwrap();
///     names.iter().sum::<i32>()
/// })?;
/// assert_eq!(sums, [3, 3]);
/// # Ok::<(), longshore::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    /// The seed of the order in which ranks run.
    pub seed: u64,
    /// The data representation of each rank. Ranks beyond the end of the list have the machine's
    /// own.
    pub architectures: Vec<Architecture>,
    /// The host number of each rank; if empty, all ranks are on one host. Ranks on different hosts
    /// share no memory.
    pub hosts: Vec<u32>,
    /// The routes that operations may take.
    pub routes: Routes,
    /// The effect of a rank's death on the others. A rank dies when its body drops it before
    /// `finalize`.
    pub on_death: OnDeath,
    /// The seed of the adversary, which [`ADVERSARY`](crate::job::env::ADVERSARY) describes. The
    /// default is the environment's `LONGSHORE_ADVERSARY`, if it is set.
    pub adversary: Option<u64>,
    /// Whether ranks check for uses of windows that MPI leaves undefined. The default is the
    /// environment's `LONGSHORE_CHECK`.
    pub check: Checking,
    /// Whether operations that are known to be valid take a shorter way than the full check. The
    /// default is the environment's `LONGSHORE_FAST`.
    pub fast: bool,
    /// The length of the longest frame between two ranks in bytes, at least 128.
    pub frame: usize,
    /// The most frames on the way between two ranks.
    pub frames: usize,
    /// Whether ranks of [`run_shared`] may have progress threads. In [`run`], a rank is one thread.
    pub progress: bool,
    /// The data that match in messages and collective calls.
    pub matching: Matching,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            seed: 0,
            architectures: Vec::new(),
            hosts: Vec::new(),
            routes: Routes::Best,
            on_death: OnDeath::End,
            adversary: crate::job::adversary().unwrap_or_default(),
            check: crate::job::checking().unwrap_or_default(),
            fast: crate::job::ladder().unwrap_or_default().fast,
            frame: 4096,
            frames: 16,
            progress: true,
            matching: Matching::default(),
        }
    }
}

impl Options {
    fn setup(&self, segment: Segment, link: Box<dyn Link>) -> Setup {
        let rank = link.rank() as usize;
        let mut setup = Setup::new(segment, link);
        if let Some(architecture) = self.architectures.get(rank) {
            setup.architecture = *architecture;
        }
        if !self.hosts.is_empty() {
            setup.hosts = Hosts::new(self.hosts.clone());
        }
        setup.on_death = self.on_death;
        setup.by_length = self.matching == Matching::Lengths;
        setup.conduct = Conduct {
            routes: self.routes,
            ladder: Ladder { fast: self.fast, ..crate::job::ladder().unwrap_or_default() },
            adversary: self.adversary,
            check: self.check,
        };
        setup
    }
}

/// Runs `body` once for each of `ranks` ranks over simulated links. Returns the results by rank.
///
/// # Errors
/// The number of ranks is larger than a segment allows, or shared memory isn't available.
///
/// # Panics
/// A rank panics, or all ranks wait for each other.
pub fn run<T: Send>(
    ranks: u32,
    options: &Options,
    body: impl Fn(Rank) -> T + Sync,
) -> Result<Vec<T>> {
    collect(ranks, options, &body, simulate)
}

/// Runs `body` once for each of `ranks` ranks, in threads that communicate through real shared
/// memory. Returns the results by rank.
///
/// ```
/// use longshore::sim::{Options, run_shared};
///
/// let ranks = run_shared(3, &Options::default(), |rank| {
///     let me = rank.world().rank();
///     rank.finalize().unwrap();
///     me
/// })?;
/// assert_eq!(ranks, [0, 1, 2]);
/// # Ok::<(), longshore::Error>(())
/// ```
///
/// # Errors
/// The number of ranks is larger than a segment allows, or shared memory isn't available.
///
/// # Panics
/// A rank panics.
pub fn run_shared<T: Send>(
    ranks: u32,
    options: &Options,
    body: impl Fn(Rank) -> T + Sync,
) -> Result<Vec<T>> {
    collect(ranks, options, &body, share)
}

/// The function that each rank runs. A trait object, so that the job's code isn't compiled again
/// for each body.
type Body<'a> = &'a (dyn Fn(Rank) + Sync);

/// Calls `run` to run `body` once for each rank, and collects the results by rank.
fn collect<T: Send>(
    ranks: u32,
    options: &Options,
    body: &(dyn Fn(Rank) -> T + Sync),
    run: fn(u32, &Options, Body<'_>) -> Result<()>,
) -> Result<Vec<T>> {
    let results = Mutex::new(BTreeMap::new());
    run(ranks, options, &|rank| {
        let number = rank.world().rank();
        let result = body(rank);
        results.lock().unwrap_or_else(PoisonError::into_inner).insert(number, result);
    })?;
    Ok(results.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect())
}

fn simulate(ranks: u32, options: &Options, body: Body<'_>) -> Result<()> {
    if let Some(hosts) = multihost::hosts(ranks).filter(|_| options.hosts.is_empty()) {
        return multihost::run(hosts, options, body);
    }
    let limits = Limits { frame: options.frame, frames: options.frames, ..Limits::default() };
    let cluster = Cluster::with_limits(ranks, options.seed, limits)?;
    let outcomes = cluster.run(|seat| {
        let mut setup = options.setup(seat.segment, Box::new(seat.link));
        setup.processors = None;
        Rank::start(setup).map(body)
    });
    outcomes.into_iter().collect()
}

fn share(ranks: u32, options: &Options, body: Body<'_>) -> Result<()> {
    if let Some(hosts) = multihost::hosts(ranks).filter(|_| options.hosts.is_empty()) {
        return multihost::run(hosts, options, body);
    }
    let launcher = Segment::create(ranks)?;
    let start = |rank| {
        let segment = launcher.as_rank(rank)?;
        let link = Box::new(ShmLink::new(segment.clone())?);
        let mut setup = options.setup(segment, link);
        setup.progress = options.progress;
        Rank::start(setup).map(body)
    };
    join(0..ranks, start)
}

/// Runs `start` in one thread for each element of `ranks`, and joins the threads.
fn join<R: Send>(
    ranks: impl Iterator<Item = R>,
    start: impl Fn(R) -> Result<()> + Sync,
) -> Result<()> {
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let start = &start;
        let threads: Vec<_> = ranks.map(|rank| scope.spawn(move || start(rank))).collect();
        threads.into_iter().map(|thread| thread.join()).collect()
    });
    for outcome in outcomes {
        outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use longshore_transport::fault::{Faults, Faulty};
    use longshore_transport::{LinkError, RankState};
    use shipable::Class;

    use super::*;
    use crate::error::{Error, ErrorKind};

    /// Two living ranks lose their connection, and the segment doesn't record it. A collective must
    /// not succeed at this rank with data that others have sent: the lost peer never gets this
    /// rank's.
    #[test]
    fn a_rank_that_lost_a_living_peer_enters_no_collective() {
        let cluster = Cluster::new(3, 0).unwrap();
        cluster.run(|seat| {
            let cut = (seat.link.rank() == 0).then_some((1, 1000));
            let link = Faulty::new(seat.link, Faults { cut, ..Faults::default() });
            let setup = Setup { processors: None, ..Setup::new(seat.segment, Box::new(link)) };
            let rank = Rank::start(setup).unwrap();
            let world = rank.world();
            if world.rank() == 0 {
                // A send that only buffers wouldn't give the turn to the receiver.
                let send = || world.ssend(&[1], 1, 0);
                let error = std::iter::repeat_with(send).find_map(Result::err);
                assert_eq!(error.unwrap().class(), Class::ProcAborted);
                let known = rank.process().segment().rank_state(1);
                assert!(!matches!(known, RankState::Dead(_)), "{known}");
                let entered = rank.process().check_living(world.group(), None);
                assert_eq!(entered.unwrap_err().class(), Class::ProcAborted);
            } else {
                let error =
                    std::iter::repeat_with(|| world.recv(&mut [0i32], 0, 0)).find_map(Result::err);
                assert_eq!(error.unwrap().class(), Class::ProcAborted);
            }
        });
    }

    #[test]
    fn a_failed_link_is_reported_after_the_messages_that_arrived_before() {
        let cluster = Cluster::new(2, 0).unwrap();
        cluster.run(|seat| {
            let fail = (seat.link.rank() == 0).then_some(1000);
            let link = Faulty::new(seat.link, Faults { fail, ..Faults::default() });
            let setup = Setup { processors: None, ..Setup::new(seat.segment, Box::new(link)) };
            let rank = Rank::start(setup).unwrap();
            let world = rank.world();
            if world.rank() == 1 {
                world.send(&[7], 0, 0).unwrap();
                let error = std::iter::repeat_with(|| world.barrier()).find_map(Result::err);
                return assert_eq!(error.unwrap().class(), Class::ProcAborted);
            }
            let failed =
                |error: Error| matches!(error.kind(), ErrorKind::Link(LinkError::Fabric(_)));
            let error = std::iter::repeat_with(|| world.barrier()).find_map(Result::err);
            assert!(failed(error.unwrap()));
            let mut word = [0i32];
            world.recv(&mut word, 1, 0).unwrap();
            assert_eq!(word, [7]);
            assert!(failed(world.recv(&mut word, 1, 0).unwrap_err()));
            assert!(failed(world.iprobe(1, 0).unwrap_err()));
        });
    }
}
