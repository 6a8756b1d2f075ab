//! Jobs in one process, a thread for each rank: for tests, of this crate and of programs over it.
//!
//! [`run`] simulates the links: one rank runs at a time, in an order that a seed decides, so that a failure can be had
//! again. [`run_shared`] has threads run at the same time over the rings of real shared memory.
//!
//! With the cargo feature `fabric`, `LONGSHORE_SIM_HOSTS=2` in the environment deals the ranks of each job to so many hosts, with
//! libfabric over the loopback between them: the same tests over another link.

#[cfg(feature = "fabric")]
mod apart;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use longshore_transport::shm::ShmLink;
use longshore_transport::sim::{Cluster, Limits};
use longshore_transport::{Link, Segment};
use shipable::Architecture;

use crate::error::Result;
use crate::hosts::Hosts;
use crate::job::{Checking, Routes};
use crate::process::Setup;
use crate::rank::Rank;

/// What a simulated job is like.
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
    /// Decides in which order ranks run.
    pub seed: u64,
    /// The representation of each rank's memory; the machine's own for ranks beyond its end.
    pub architectures: Vec<Architecture>,
    /// The host that each rank takes itself to be on, as a number; all are on one where there are none. Ranks of two hosts share
    /// no memory.
    pub hosts: Vec<u32>,
    /// Which routes operations may take.
    pub routes: Routes,
    /// The seed of an adversary: what MPI leaves open about the order of operations, and a link about frames, is decided by
    /// it, and all travels as messages. By default what the environment's `LONGSHORE_ADVERSARY` says, if it says anything.
    pub adversary: Option<u64>,
    /// Whether uses of windows are checked that MPI leaves undefined. By default what the environment's `LONGSHORE_CHECK` says.
    pub check: Checking,
    /// The longest frame between two ranks, in bytes; at least 128.
    pub frame: usize,
    /// Frames under way between two ranks, at most.
    pub frames: usize,
    /// Whether ranks may have progress threads, in [`run_shared`]: in [`run`] a rank is one thread.
    pub progress: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            seed: 0,
            architectures: Vec::new(),
            hosts: Vec::new(),
            routes: Routes::Best,
            adversary: crate::job::adversary().unwrap_or_default(),
            check: crate::job::checking().unwrap_or_default(),
            frame: 4096,
            frames: 16,
            progress: true,
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
        setup.routes = self.routes;
        setup.adversary = self.adversary;
        setup.check = self.check;
        setup
    }
}

/// Runs `body` once for each of `ranks` ranks, over simulated links; what each returned, by rank.
///
/// # Errors
/// More ranks than a segment has room for; no shared memory.
///
/// # Panics
/// When a rank does, or when all wait for each other.
pub fn run<T: Send>(
    ranks: u32,
    options: &Options,
    body: impl Fn(Rank) -> T + Sync,
) -> Result<Vec<T>> {
    collect(ranks, options, &body, simulate)
}

/// Runs `body` once for each of `ranks` ranks, in threads that share real shared memory; what each returned, by rank.
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
/// As [`run`].
///
/// # Panics
/// When a rank does.
pub fn run_shared<T: Send>(
    ranks: u32,
    options: &Options,
    body: impl Fn(Rank) -> T + Sync,
) -> Result<Vec<T>> {
    collect(ranks, options, &body, share)
}

/// What a rank runs. Of one type, so that a job isn't compiled anew for each body.
type Body<'a> = &'a (dyn Fn(Rank) + Sync);

/// What `body` returned for each rank of a job, when `run` has run it once for each.
fn collect<T: Send>(
    ranks: u32,
    options: &Options,
    body: &(dyn Fn(Rank) -> T + Sync),
    run: fn(u32, &Options, Body<'_>) -> Result<()>,
) -> Result<Vec<T>> {
    let results = Mutex::new(BTreeMap::new());
    run(ranks, options, &|rank| {
        let place = rank.world().rank();
        let result = body(rank);
        results.lock().unwrap_or_else(PoisonError::into_inner).insert(place, result);
    })?;
    Ok(results.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect())
}

fn simulate(ranks: u32, options: &Options, body: Body<'_>) -> Result<()> {
    #[cfg(feature = "fabric")]
    if let Some(hosts) = apart::hosts(ranks).filter(|_| options.hosts.is_empty()) {
        return apart::run(hosts, options, body);
    }
    let limits = Limits { frame: options.frame, frames: options.frames, ..Limits::default() };
    let cluster = Cluster::with_limits(ranks, options.seed, limits)?;
    let outcomes = cluster.run(|seat| {
        let mut setup = options.setup(seat.segment, Box::new(seat.link));
        setup.spin = false;
        Rank::start(setup).map(body)
    });
    outcomes.into_iter().collect()
}

fn share(ranks: u32, options: &Options, body: Body<'_>) -> Result<()> {
    #[cfg(feature = "fabric")]
    if let Some(hosts) = apart::hosts(ranks).filter(|_| options.hosts.is_empty()) {
        return apart::run(hosts, options, body);
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

/// Runs `start` in a thread for each of these.
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

    /// The job knows nothing of it: the connection between two ranks that live is lost. What the other ranks of the next meeting have
    /// told already must not make it a success here, since the lost one never hears of this rank.
    #[test]
    fn who_has_lost_a_peer_that_lives_enters_no_meeting() {
        let cluster = Cluster::new(3, 0).unwrap();
        cluster.run(|seat| {
            let cut = (seat.link.rank() == 0).then_some((1, 1000));
            let link = Faulty::new(seat.link, Faults { cut, ..Faults::default() });
            let setup = Setup { spin: false, ..Setup::new(seat.segment, Box::new(link)) };
            let rank = Rank::start(setup).unwrap();
            let world = rank.world();
            if world.rank() == 0 {
                let error = std::iter::repeat_with(|| world.send(&[1], 1, 0)).find_map(Result::err);
                assert_eq!(error.unwrap().class(), Class::ProcAborted);
                let known = rank.process().segment().rank_state(1);
                assert!(!matches!(known, RankState::Dead(_)), "{known}");
                let entered = rank.process().check_living(world.group());
                assert_eq!(entered.unwrap_err().class(), Class::ProcAborted);
            } else {
                let error =
                    std::iter::repeat_with(|| world.recv(&mut [0i32], 0, 0)).find_map(Result::err);
                assert_eq!(error.unwrap().class(), Class::ProcAborted);
            }
        });
    }

    #[test]
    fn who_waits_by_a_link_that_has_failed_is_told_and_has_what_came_before() {
        let cluster = Cluster::new(2, 0).unwrap();
        cluster.run(|seat| {
            let fail = (seat.link.rank() == 0).then_some(1000);
            let link = Faulty::new(seat.link, Faults { fail, ..Faults::default() });
            let setup = Setup { spin: false, ..Setup::new(seat.segment, Box::new(link)) };
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
