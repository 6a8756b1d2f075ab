//! The state of each peer, as far as this rank knows it by itself. The segment holds the job's
//! knowledge.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
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
    /// The peers whose connections ended without a farewell.
    silent: HashMap<u32, Silence>,
    /// This host's address, and the peers' addresses, by rank.
    host: IpAddr,
    addresses: Vec<Option<SocketAddr>>,
    /// Whether this rank and its peers encrypt their messages.
    pub encrypts: bool,
}

/// The end of an encrypted connection whose peer is lost.
const SILENT: &str = "its other end sent no farewell, and no launcher says what became of the peer";

/// The silence of a peer.
struct Silence {
    since: Instant,
    /// What the rank reports if the peer is lost, beside that.
    report: Option<LinkError>,
}

#[derive(Debug, Clone, Default)]
struct PeerState {
    /// Whether the peer has proved its membership on a connection that it made.
    has_joined: bool,
    /// Whether the peer has sent its farewell to this rank.
    has_parted: bool,
    /// Whether this rank treats the peer as dead: no connection goes to it, or comes from it.
    is_given_up: bool,
    /// Whether the rank was told that a connection with the peer is broken. The ends of both of
    /// their connections follow from it, and are no news.
    is_reported: bool,
}

impl Peers {
    pub(super) fn new(
        rank: u32,
        segment: Segment,
        host: IpAddr,
        addresses: Vec<Option<SocketAddr>>,
        encrypts: bool,
    ) -> Peers {
        let all = vec![PeerState::default(); addresses.len()];
        Peers { rank, segment, all, silent: HashMap::new(), host, addresses, encrypts }
    }

    /// The only report of an encrypted connection over which something came that is none of the
    /// peer's messages.
    pub(super) fn report_broken(&mut self, peer: u32, what: &str) -> LinkError {
        self.all[peer as usize].is_reported = true;
        if let Some(silence) = self.silent.get_mut(&peer) {
            silence.report = None;
        }
        self.broken(peer, what)
    }

    /// The error of an encrypted connection with a peer that has ended otherwise than by a
    /// farewell. It names both hosts, between which someone may change what travels.
    fn broken(&self, peer: u32, why: &str) -> LinkError {
        let host = self.addresses[peer as usize].map(|address| address.ip());
        let host = host.map_or_else(|| "an unknown host".to_owned(), |host| format!("host {host}"));
        let (own, rank) = (self.host, self.rank);
        let why = format!(
            "the encrypted connection between rank {peer} on {host} and rank {rank} on host {own} \
             has ended: {why}"
        );
        LinkError::Connection { peer, why }
    }

    /// The error of a peer to whose address no connection could be made.
    fn unreachable(&self, peer: u32, why: &Broken) -> Option<LinkError> {
        let address = self.addresses[peer as usize]?;
        let (own, rank) = (self.host, self.rank);
        let why = format!(
            "rank {rank} on host {own} can't connect to it at {address}: {why}. If its host has \
             chosen the wrong interface, name another in LONGSHORE_INTERFACE there; if a firewall \
             stands between the hosts, let ports through and name them in LONGSHORE_PORTS"
        );
        Some(LinkError::Connection { peer, why })
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
        if let Some(silence) = self.silent.get_mut(&peer) {
            silence.since = Instant::now();
        }
    }

    /// Records a peer's farewell.
    pub(super) fn part(&mut self, peer: u32, state: RankState) {
        self.all[peer as usize].has_parted = true;
        if !self.is_gone(peer) {
            self.segment.mark(peer, state);
        }
    }

    /// Records that a connection with a peer has ended, and that the peer sent no farewell.
    pub(super) fn lose(&mut self, peer: u32, why: &Broken) {
        let report = self.encrypts.then(|| self.broken(peer, SILENT));
        self.end(peer, why, report);
    }

    /// Records that no connection to a peer could be made.
    pub(super) fn fail_to_reach(&mut self, peer: u32, why: &Broken) {
        let report = self.unreachable(peer, why);
        self.end(peer, why, report);
    }

    fn end(&mut self, peer: u32, why: &Broken, report: Option<LinkError>) {
        if !self.is_gone(peer) {
            tracing::debug!(rank = self.rank, peer, %why, "a connection ended");
            let report = report.filter(|_| !self.all[peer as usize].is_reported);
            let silence = self.silence(peer);
            silence.report = silence.report.take().or(report);
        }
    }

    /// Begins the silence of a peer, unless it is silent already.
    pub(super) fn miss(&mut self, peer: u32) {
        self.silence(peer);
    }

    fn silence(&mut self, peer: u32) -> &mut Silence {
        let begin = || Silence { since: Instant::now(), report: None };
        self.silent.entry(peer).or_insert_with(begin)
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
    /// are gone. Returns what is to be reported of them.
    pub(super) fn mark_lost(&mut self) -> Vec<LinkError> {
        let Self { rank, segment, silent, .. } = self;
        let mut reports = Vec::new();
        silent.retain(|&peer, silence| {
            let is_lost = is_overdue(silence);
            if is_lost && !segment.rank_state(peer).is_gone() {
                tracing::warn!(rank, peer, "lost a peer");
                segment.mark(peer, RankState::Dead(Cause::Lost));
                reports.extend(silence.report.take());
            }
            !is_lost
        });
        reports
    }
}

fn is_overdue(silence: &Silence) -> bool {
    silence.since.elapsed() > SILENCE
}
