//! The connections that this rank makes: one to each peer, begun with the first frame for it.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::connection::{Broken, News, Outbound};
use super::error::{CallError, Refusals};
use super::handles::{Completion, Connection, Network};
use super::peers::{Peers, SILENCE};
use super::{nonce, sockets};
use crate::link::{FrameMut, LinkError, Refused};
use crate::protocol::challenge::{Greeting, Key};
use crate::segment::{Cause, RankState};

/// How long to wait at least before a connection is tried again for which this process was short of something; a rank that sleeps
/// does at each nap.
const PAUSE: Duration = Duration::from_millis(10);

/// What leads to peers.
pub(super) struct Dialled {
    key: Key,
    interface: IpAddr,
    /// How long a peer's host may be silent.
    patience: Duration,
    /// Where peers listen, by rank.
    addresses: Vec<Option<SocketAddr>>,
    /// Likewise. All begin in `connect` and end in `end`, with the next two.
    outbound: Vec<Option<Box<Outbound>>>,
    /// Whom their endpoints lead to, by number.
    owners: HashMap<usize, u32>,
    /// Peers whose connections haven't been heard to stand.
    unsettled: HashSet<u32>,
    /// Connections for which this process is short of descriptors or memory, by peer.
    refusals: HashMap<u32, Refusals>,
    /// Peers with frames that are written and not posted.
    waiting: Vec<u32>,
    /// To whom the last frame was, while it isn't known whether it could be posted.
    last: Option<u32>,
}

impl Dialled {
    pub(super) fn new(
        addresses: Vec<Option<SocketAddr>>,
        key: Key,
        interface: IpAddr,
        patience: Duration,
    ) -> Dialled {
        Dialled {
            key,
            interface,
            patience,
            outbound: addresses.iter().map(|_| None).collect(),
            addresses,
            owners: HashMap::new(),
            unsettled: HashSet::new(),
            refusals: HashMap::new(),
            waiting: Vec::new(),
            last: None,
        }
    }

    /// Whose connection an endpoint's number names.
    pub(super) fn owner(&self, number: usize) -> Option<u32> {
        self.owners.get(&number).copied()
    }

    /// The peer that this rank's end of a connection leads to.
    pub(super) fn peer_at(&self, connection: Connection) -> Option<u32> {
        (0..).zip(&self.outbound).find_map(|(peer, out)| {
            (out.as_ref()?.endpoint.connection() == connection).then_some(peer)
        })
    }

    /// Whether none is coming about.
    pub(super) fn is_settled(&self) -> bool {
        self.unsettled.is_empty()
    }

    /// Begins a connection, where there is none.
    ///
    /// # Errors
    /// [`Refused::WouldBlock`] where nobody listens, or while this process is short of what it takes, for as long as a peer may be
    /// silent; the peer is given up; it can't be had.
    pub(super) fn connect(
        &mut self,
        peer: u32,
        network: &Arc<Network>,
        peers: &mut Peers,
    ) -> Result<(), Refused> {
        if self.outbound[peer as usize].is_some() {
            return Ok(());
        }
        let Some(address) = self.addresses[peer as usize] else {
            // It never listened. Whoever knows what became of it may still say so.
            peers.miss(peer);
            return Err(Refused::WouldBlock);
        };
        if peers.is_given_up(peer) {
            let state = RankState::Dead(Cause::Lost);
            return Err(LinkError::PeerGone { peer, state }.into());
        }
        if self.refusals.get(&peer).is_some_and(|refusals| refusals.last.elapsed() < PAUSE) {
            return Err(Refused::WouldBlock);
        }
        let nonce = nonce().map_err(|error| LinkError::Fabric(error.to_string()))?;
        let greeting = Greeting::new(peers.rank, peer, nonce);
        let made = Outbound::connect(network, address, greeting, &self.key)
            .map_err(|error| self.refuse(peer, error.with(peer), peers))?;
        self.refusals.remove(&peer);
        self.unsettled.insert(peer);
        self.owners.insert(made.endpoint.number(), peer);
        self.outbound[peer as usize] = Some(Box::new(made));
        self.watch(peer, peers);
        Ok(())
    }

    /// What comes of a connection that can't be had now.
    fn refuse(&mut self, peer: u32, error: CallError, peers: &Peers) -> Refused {
        if !error.is_shortage() {
            return LinkError::Fabric(error.to_string()).into();
        }
        let refusals = Refusals::add(self.refusals.remove(&peer), Instant::now());
        self.refusals.insert(peer, refusals);
        match refusals.tried() {
            tried if tried > SILENCE => return LinkError::Fabric(error.to_string()).into(),
            Duration::ZERO => {
                tracing::warn!(rank = peers.rank, peer, %error, "tries again to connect")
            }
            _ => {}
        }
        Refused::WouldBlock
    }

    /// Ends the connection to a peer. False if there is none.
    pub(super) fn end(&mut self, peer: u32) -> bool {
        self.refusals.remove(&peer);
        let Some(outbound) = self.outbound[peer as usize].take() else { return false };
        self.owners.remove(&outbound.endpoint.number());
        self.unsettled.remove(&peer);
        true
    }

    pub(super) fn lose(&mut self, peer: u32, why: &Broken, peers: &mut Peers) {
        if self.end(peer) {
            peers.lose(peer, why);
        }
    }

    /// Has the system watch the connection to a peer: as it begins, and once it stands, since libfabric may have set it otherwise
    /// meanwhile.
    fn watch(&self, peer: u32, peers: &Peers) {
        let Some(address) = self.addresses[peer as usize] else { return };
        let watched = sockets::watch_connecting(self.interface, address, self.patience);
        if let Err(error) = watched {
            tracing::warn!(rank = peers.rank, peer, %error, "the keeper watches it later");
        }
    }

    pub(super) fn handle_connected(&mut self, connection: Connection, peers: &mut Peers) {
        let Some(peer) = self.peer_at(connection) else { return };
        self.watch(peer, peers);
        let outbound = self.outbound[peer as usize].as_mut();
        if let Some(Err(why)) = outbound.map(|out| out.handle_connected()) {
            self.lose(peer, &why, peers);
        }
    }

    /// An operation on the connection to a peer has ended.
    pub(super) fn handle_completion(
        &mut self,
        peer: u32,
        completion: Completion,
        peers: &mut Peers,
    ) {
        let Some(outbound) = &mut self.outbound[peer as usize] else { return };
        match outbound.handle_completion(completion, &self.key) {
            Ok(News::Joined(_)) => {
                self.unsettled.remove(&peer);
                tracing::debug!(rank = peers.rank, peer, "connected");
                self.pump(peer, peers);
            }
            Ok(News::Farewell(state)) => peers.part(peer, state),
            Ok(_) if outbound.is_waiting() => self.pump(peer, peers),
            Ok(_) => {}
            Err(why) => self.lose(peer, &why, peers),
        }
    }

    /// Room for a frame to a peer, if there is any; and whether answers follow it, if it is one.
    pub(super) fn frame(
        &mut self,
        peer: u32,
        len: usize,
        answers_follow: bool,
    ) -> Option<FrameMut<'_>> {
        self.last = Some(peer);
        self.outbound[peer as usize].as_mut()?.frame(len, answers_follow)
    }

    /// What became of the last frame: where nothing is under way, no completion tells that it couldn't be posted, or is held.
    pub(super) fn check_last(&mut self, peers: &mut Peers) {
        if let Some(peer) = self.last.take() {
            self.check(peer, peers);
        }
    }

    pub(super) fn send_held(&mut self, peers: &mut Peers) {
        self.check_last(peers);
        for peer in std::mem::take(&mut self.waiting) {
            self.pump(peer, peers);
        }
    }

    fn pump(&mut self, peer: u32, peers: &mut Peers) {
        if let Some(outbound) = &mut self.outbound[peer as usize] {
            outbound.pump();
        }
        self.check(peer, peers);
    }

    /// Whether a peer can be sent to, and has all that is written.
    fn check(&mut self, peer: u32, peers: &mut Peers) {
        let Some(outbound) = &mut self.outbound[peer as usize] else { return };
        if let Some(error) = outbound.take_broken() {
            self.lose(peer, &error.with(peer).into(), peers);
        } else if outbound.is_waiting() && !self.waiting.contains(&peer) {
            self.waiting.push(peer);
        }
    }

    /// Whether something is still on its way to one who may take it.
    pub(super) fn is_unsent(&self, peers: &Peers) -> bool {
        (0..).zip(&self.outbound).any(|(peer, out)| {
            out.as_ref().is_some_and(|out| out.is_unsent() && !peers.is_gone(peer))
        })
    }

    /// Says farewell behind all frames; who hears it.
    pub(super) fn say_farewells(&mut self, state: RankState) -> HashSet<u32> {
        let all = (0..).zip(&mut self.outbound);
        let told = all.filter_map(|(peer, out)| out.as_mut()?.say_farewell(state).then_some(peer));
        told.collect()
    }
}

#[cfg(test)]
impl Dialled {
    pub(super) fn outbound(&mut self, peer: u32) -> Option<&mut Outbound> {
        self.outbound[peer as usize].as_deref_mut()
    }

    pub(super) fn address(&mut self, peer: u32) -> &mut Option<SocketAddr> {
        &mut self.addresses[peer as usize]
    }
}
