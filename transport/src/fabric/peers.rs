//! The state of each peer, as far as this rank knows it by itself. The segment holds the job's
//! knowledge.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use super::connection::Broken;
use crate::link::LinkError;
use crate::protocol::challenge::Greeting;
use crate::segment::{Cause, RankState, Segment};

/// The longest silence of a peer whose connection ended without a farewell. After that the peer
/// counts as lost. Meanwhile the launcher, if there is one, reports what became of the peer.
pub(super) const SILENCE: Duration = Duration::from_secs(1);

/// All ranks of the job, as this rank sees them.
pub(super) struct Peers {
    pub rank: u32,
    pub segment: Segment,
    /// The state of each rank.
    all: Vec<PeerState>,
    /// The peers whose connections ended without a farewell, with the time.
    silent: HashMap<u32, Instant>,
    /// This host's address, and those of the peers' hosts, by rank.
    host: IpAddr,
    hosts: Vec<Option<IpAddr>>,
}

#[derive(Debug, Clone, Default)]
struct PeerState {
    /// Whether the peer has proved its membership on a connection that it made.
    has_joined: bool,
    /// Whether the peer has sent its farewell to this rank.
    has_parted: bool,
    /// Whether this rank treats the peer as dead: no connection goes to it, or comes from it.
    is_given_up: bool,
}

impl Peers {
    pub(super) fn new(
        rank: u32,
        segment: Segment,
        host: IpAddr,
        hosts: Vec<Option<IpAddr>>,
    ) -> Peers {
        let all = vec![PeerState::default(); hosts.len()];
        Peers { rank, segment, all, silent: HashMap::new(), host, hosts }
    }

    /// The error of an encrypted connection with a peer that has ended otherwise than by a
    /// farewell. It names both hosts, between which someone may change what travels.
    pub(super) fn broken(&self, peer: u32, why: &str) -> LinkError {
        let host = self.hosts.get(peer as usize).copied().flatten();
        let host = host.map_or_else(|| "an unknown host".to_owned(), |host| format!("host {host}"));
        let (own, rank) = (self.host, self.rank);
        let why = format!(
            "the encrypted connection between rank {peer} on {host} and rank {rank} on host {own} \
             has ended: {why}"
        );
        LinkError::Connection { peer, why }
    }

    pub(super) fn size(&self) -> u32 {
        self.all.len() as u32
    }

    /// Whether the job knows that the peer sends nothing more.
    pub(super) fn is_gone(&self, peer: u32) -> bool {
        self.segment.rank_state(peer).is_gone()
    }

    pub(super) fn is_silent(&self, peer: u32) -> bool {
        self.silent.contains_key(&peer)
    }

    pub(super) fn is_given_up(&self, peer: u32) -> bool {
        self.all[peer as usize].is_given_up
    }

    /// Whether a guest may still send something. The guest claims to be `peer`, or has proved it.
    pub(super) fn may_speak(&self, peer: u32, is_proved: bool) -> bool {
        let standing = &self.all[peer as usize];
        !standing.has_parted && (is_proved || !standing.has_joined)
    }

    /// Checks whether this rank may accept a greeting.
    ///
    /// # Errors
    /// Describes the violation.
    pub(super) fn expect(&self, greeting: &Greeting) -> Result<(), String> {
        let (&Greeting { from, to, .. }, rank, size) = (greeting, self.rank, self.size());
        if to != rank || from >= size {
            return Err(format!(
                "a greeting from rank {from} to rank {to}, but this is rank {rank} of {size}"
            ));
        }
        let standing = &self.all[from as usize];
        match standing.has_joined || standing.is_given_up {
            true => Err(format!("a second connection from rank {from}")),
            false => Ok(()),
        }
    }

    /// Records that a peer has proved its membership. Returns `false` if it had done so before.
    pub(super) fn join(&mut self, peer: u32) -> bool {
        !std::mem::replace(&mut self.all[peer as usize].has_joined, true)
    }

    /// Restarts the silence of a peer: a frame arrived that it sent before one of its connections
    /// ended.
    pub(super) fn hear(&mut self, peer: u32) {
        if let Some(since) = self.silent.get_mut(&peer) {
            *since = Instant::now();
        }
    }

    /// Records a peer's farewell.
    pub(super) fn part(&mut self, peer: u32, state: RankState) {
        self.all[peer as usize].has_parted = true;
        if !self.is_gone(peer) {
            self.segment.mark(peer, state);
        }
    }

    /// Records that a peer can't be reached any more, and that it sent no farewell.
    pub(super) fn lose(&mut self, peer: u32, why: &Broken) {
        if !self.is_gone(peer) {
            tracing::debug!(rank = self.rank, peer, %why, "a connection ended");
            self.miss(peer);
        }
    }

    /// Begins the silence of a peer, unless it is silent already.
    pub(super) fn miss(&mut self, peer: u32) {
        self.silent.entry(peer).or_insert_with(Instant::now);
    }

    /// Treats a peer as dead from now on. Returns `false` if it did so before.
    pub(super) fn give_up(&mut self, peer: u32) -> bool {
        !std::mem::replace(&mut self.all[peer as usize].is_given_up, true)
    }

    /// Whether a peer has been silent for too long.
    pub(super) fn is_any_overdue(&self) -> bool {
        self.silent.values().any(is_overdue)
    }

    /// Marks peers as lost if they have been silent for too long and the job doesn't know that they
    /// are gone. Returns these.
    pub(super) fn mark_lost(&mut self) -> Vec<u32> {
        let Self { rank, segment, silent, .. } = self;
        let mut lost = Vec::new();
        silent.retain(|&peer, since| {
            let is_lost = is_overdue(since);
            if is_lost && !segment.rank_state(peer).is_gone() {
                tracing::warn!(rank, peer, "lost a peer");
                segment.mark(peer, RankState::Dead(Cause::Lost));
                lost.push(peer);
            }
            !is_lost
        });
        lost
    }
}

fn is_overdue(since: &Instant) -> bool {
    since.elapsed() > SILENCE
}
