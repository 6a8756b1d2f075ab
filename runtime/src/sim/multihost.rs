//! Jobs on several simulated hosts: threads with a segment for each host, and libfabric over the
//! loopback between the hosts.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use longshore_transport::composed::Composed;
use longshore_transport::fabric::Listener;
use longshore_transport::shm::ShmLink;
use longshore_transport::{RankState, Segment};

use shipable::Architecture;

use super::{Body, Options, join};
use crate::endpoint::{self, Endpoint};
use crate::error::Result;
use crate::job::Hosts;
use crate::job::{self, env};
use crate::rank::Rank;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const SECRET: &[u8] = b"all ranks are threads of one process";
const PATIENCE: Duration = Duration::from_secs(20);

/// The host of each rank, if the environment asks for several hosts.
pub(super) fn hosts(ranks: u32) -> Option<Vec<u32>> {
    let hosts: u32 =
        longshore_job::text(env::SIM_HOSTS)?.parse().ok().filter(|hosts| *hosts > 1)?;
    (ranks > 1).then(|| (0..ranks).map(|rank| rank % hosts).collect())
}

/// Records a rank's death in the segments of all hosts, as a launcher does.
struct DeathReporter<'a> {
    rank: u32,
    segments: &'a [Segment],
}

impl Drop for DeathReporter<'_> {
    fn drop(&mut self) {
        let states = self.segments.iter().map(|segment| segment.rank_state(self.rank));
        if let Some(dead) = states.into_iter().find(|state| matches!(state, RankState::Dead(_))) {
            self.segments.iter().for_each(|segment| segment.mark(self.rank, dead));
        }
    }
}

/// Runs `body` once for each rank, with rank `r` on host `of[r]`.
pub(super) fn run(of: Vec<u32>, options: &Options, body: Body<'_>) -> Result<()> {
    let network =
        |error: longshore_transport::fabric::OpenError| job::Error::Network(error.to_string());
    let (hosts, ranks) = (Hosts::new(of.clone()), of.len() as u32);
    let count = of.iter().max().map_or(0, |last| last + 1);
    let segments = (0..count).map(|_| Segment::create(ranks));
    let segments = segments.collect::<std::result::Result<Vec<_>, _>>()?;
    let accessible = endpoint::choose("tcp", &Architecture::NATIVE, &Architecture::NATIVE).0;
    let listen = |_| {
        let mut listener = Listener::open("tcp", HERE, PATIENCE)?;
        let memory = match accessible {
            Endpoint::Datagram => Some(listener.open_memory()?),
            Endpoint::Connected => None,
        };
        Ok((listener, memory))
    };
    let listeners = (0..ranks).map(|rank| listen(rank).map_err(network));
    let listeners = listeners.collect::<std::result::Result<Vec<_>, _>>()?;
    let (listeners, memories): (Vec<Listener>, Vec<Option<SocketAddr>>) =
        listeners.into_iter().unzip();
    let addresses: Vec<SocketAddr> = listeners.iter().map(Listener::address).collect();
    let start = |(rank, listener): (u32, Listener)| {
        let _reporter = DeathReporter { rank, segments: &segments };
        let segment = segments[of[rank as usize] as usize].as_rank(rank)?;
        let known =
            (0..ranks).map(|peer| (!hosts.share(peer, rank)).then(|| addresses[peer as usize]));
        let far = listener.link(segment.clone(), known.collect(), &memories, SECRET);
        let far = far.map_err(network)?;
        let near = ShmLink::new(segment.clone())?;
        let is_near = (0..ranks).map(|peer| hosts.share(peer, rank)).collect();
        let mut setup = options.setup(segment, Box::new(Composed::new(near, far, is_near)));
        setup.hosts = hosts.clone();
        setup.progress = options.progress;
        Rank::start(setup).map(body)
    };
    join((0..).zip(listeners), start)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::thread;

    use crossbeam_channel::bounded;
    use longshore_transport::Cause;
    use shipable::Class;

    use super::super::collect;
    use super::*;
    use crate::communicator::Communicator;

    /// Waits until all three ranks are here. Each makes progress meanwhile: an adversary may still
    /// hold what a rank has sent.
    fn gather(world: &Communicator, arrived: &AtomicU32) {
        arrived.fetch_add(1, Ordering::SeqCst);
        while arrived.load(Ordering::SeqCst) < 3 {
            // The first to leave may have marked a rank as lost already, which isn't of interest.
            let _ = world.iprobe(0, 1);
            thread::yield_now();
        }
    }

    /// Rank 0 marks rank 2 as lost in its host's segment, so rank 1 on that host gives rank 2 up
    /// too. Rank 2 still has a connection to rank 1, but must not wait for it.
    #[test]
    fn a_rank_that_is_lost_to_a_host_waits_for_none_of_its_ranks() {
        longshore_transport::needs_libfabric!();
        let (failed, awaited) = bounded(2);
        let connected = AtomicU32::new(0);
        let within = Duration::from_secs(120);
        let body = |rank: Rank| {
            let (world, mut word) = (rank.world(), [0i32]);
            world.barrier().unwrap();
            match world.rank() {
                0 => {
                    gather(world, &connected);
                    rank.process().segment().mark(2, RankState::Dead(Cause::Lost));
                    let class = world.recv(&mut word, 2, 0).unwrap_err().class();
                    (class, awaited.recv_timeout(within).is_ok())
                }
                1 => {
                    world.send(&[1], 2, 0).unwrap();
                    world.recv(&mut word, 2, 0).unwrap();
                    gather(world, &connected);
                    let class = world.recv(&mut word, 2, 0).unwrap_err().class();
                    // Until rank 2 has failed, this rank sends nothing from which rank 2 could
                    // learn of its loss.
                    (class, awaited.recv_timeout(within).is_ok())
                }
                _ => {
                    world.recv(&mut word, 1, 0).unwrap();
                    world.send(&[1], 1, 0).unwrap();
                    gather(world, &connected);
                    let class = world.recv(&mut word, 1, 0).unwrap_err().class();
                    (0..2).for_each(|_| failed.send(()).unwrap());
                    (class, true)
                }
            }
        };
        let two_hosts = |_, options: &Options, body: Body<'_>| run(vec![0, 0, 1], options, body);
        let ends = collect(3, &Options::default(), &body, two_hosts);
        assert_eq!(ends.unwrap(), [(Class::ProcAborted, true); 3]);
    }
}
