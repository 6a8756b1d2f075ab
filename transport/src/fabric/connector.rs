//! The connections that this rank makes: one to each peer, begun with the first frame for it.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::connection::{Broken, Effect, Outbound};
use super::error::{CallError, Refusals};
use super::handles::{Completion, Connection, Network};
use super::peers::{Peers, SILENCE};
use super::{opening, sockets};
use crate::link::{FrameMut, LinkError, Refused};
use crate::protocol::challenge::{Greeting, Key};
use crate::segment::{Cause, RankState};

/// The shortest pause before a connection is tried again that failed for lack of descriptors or
/// memory. A sleeping rank tries again after each nap.
const PAUSE: Duration = Duration::from_millis(10);

/// The connections to peers.
pub(super) struct Connector {
    key: Key,
    interface: IpAddr,
    /// The longest silence of a peer's host.
    patience: Duration,
    /// The listening addresses of peers, by rank.
    addresses: Vec<Option<SocketAddr>>,
    /// The connections, by rank. `connect` begins them and `end` ends them, together with the next
    /// two fields.
    outbound: Vec<Option<Box<Outbound>>>,
    /// The peers at the other ends, by the number of the endpoint.
    owners: HashMap<usize, u32>,
    /// The peers whose connections are not established yet.
    unsettled: HashSet<u32>,
    /// The connections for which this process lacks descriptors or memory, by peer.
    refusals: HashMap<u32, Refusals>,
    /// The peers with messages that are written and not posted.
    waiting: Vec<u32>,
    /// The receiver of the last frame, until it is known whether that frame could be posted.
    last: Option<u32>,
}

impl Connector {
    pub(super) fn new(
        addresses: Vec<Option<SocketAddr>>,
        key: Key,
        interface: IpAddr,
        patience: Duration,
    ) -> Connector {
        Connector {
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

    /// The peer at the other end of the endpoint with this number.
    pub(super) fn owner(&self, number: usize) -> Option<u32> {
        self.owners.get(&number).copied()
    }

    /// The peer at the other end of a connection.
    pub(super) fn peer_at(&self, connection: Connection) -> Option<u32> {
        (0..).zip(&self.outbound).find_map(|(peer, out)| {
            (out.as_ref()?.endpoint.connection() == connection).then_some(peer)
        })
    }

    /// Whether no connection is being established.
    pub(super) fn is_settled(&self) -> bool {
        self.unsettled.is_empty()
    }

    /// Begins a connection to `peer`, if there is none.
    ///
    /// # Errors
    /// [`Refused::WouldBlock`] if the peer never listened, or while this process lacks resources,
    /// for as long as a peer may be silent. [`Refused::Failed`] if the peer is given up, or the
    /// connection is impossible.
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
            // It never listened. Its silence begins, during which the launcher may report its end.
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
        let (protection, nonce) = opening(peers.encrypts).map_err(LinkError::Fabric)?;
        let greeting = match peers.encrypts {
            true => Greeting::encrypted(peers.rank, peer, nonce),
            false => Greeting::new(peers.rank, peer, nonce),
        };
        let made = Outbound::connect(network, address, greeting, protection, &self.key)
            .map_err(|error| self.refuse(peer, error.with(peer), peers))?;
        self.refusals.remove(&peer);
        self.unsettled.insert(peer);
        self.owners.insert(made.endpoint.number(), peer);
        self.outbound[peer as usize] = Some(Box::new(made));
        self.watch(peer, peers);
        Ok(())
    }

    /// Records a failed attempt to connect, and decides whether to try again.
    fn refuse(&mut self, peer: u32, error: CallError, peers: &Peers) -> Refused {
        if !error.is_shortage() {
            return LinkError::Fabric(error.to_string()).into();
        }
        let refusals = Refusals::add(self.refusals.remove(&peer), Instant::now());
        self.refusals.insert(peer, refusals);
        match refusals.tried() {
            tried if tried > SILENCE => return LinkError::Fabric(error.to_string()).into(),
            Duration::ZERO => {
                let rank = peers.rank;
                tracing::warn!(rank, peer, %error, "short of resources: will retry to connect")
            }
            _ => {}
        }
        Refused::WouldBlock
    }

    /// Ends the connection to a peer. Returns `false` if there is none.
    pub(super) fn end(&mut self, peer: u32) -> bool {
        self.refusals.remove(&peer);
        let Some(outbound) = self.outbound[peer as usize].take() else { return false };
        self.owners.remove(&outbound.endpoint.number());
        self.unsettled.remove(&peer);
        true
    }

    pub(super) fn lose(&mut self, peer: u32, why: &Broken, peers: &mut Peers) {
        let is_dialling =
            self.outbound[peer as usize].as_ref().is_some_and(|out| out.is_dialling());
        match self.end(peer) {
            true if is_dialling => peers.fail_to_reach(peer, why),
            true => peers.lose(peer, why),
            false => {}
        }
    }

    /// Asks the system to detect a silent host at the other end. This is done when the connection
    /// begins, and again once it is established, because libfabric may have changed the options
    /// meanwhile.
    fn watch(&self, peer: u32, peers: &Peers) {
        let Some(address) = self.addresses[peer as usize] else { return };
        let watched = sockets::watch_connecting(self.interface, address, self.patience);
        if let Err(error) = watched {
            let rank = peers.rank;
            tracing::warn!(rank, peer, %error, "can't watch the connection yet: the keeper will retry");
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

    /// Handles the end of an operation on the connection to a peer. Returns an error for the rank
    /// if the connection was encrypted and what came over it is none of the peer's messages.
    pub(super) fn handle_completion(
        &mut self,
        peer: u32,
        completion: Completion,
        peers: &mut Peers,
    ) -> Option<LinkError> {
        let outbound = self.outbound[peer as usize].as_mut()?;
        match outbound.handle_completion(completion, &self.key) {
            Ok(Effect::Joined(_)) => {
                self.unsettled.remove(&peer);
                tracing::debug!(rank = peers.rank, peer, "connected");
                self.pump(peer, peers);
            }
            Ok(Effect::Farewell(state)) => peers.part(peer, state),
            Ok(_) if outbound.is_waiting() => self.pump(peer, peers),
            Ok(_) => {}
            Err(why) => {
                self.lose(peer, &why, peers);
                if let (Broken::Protocol(what), true) = (&why, peers.encrypts) {
                    return Some(peers.report_broken(peer, what));
                }
            }
        }
        None
    }

    /// Room for a frame to a peer, if there is any. `answers_follow` is whether further answers may
    /// follow the frame.
    pub(super) fn frame(
        &mut self,
        peer: u32,
        len: usize,
        answers_follow: bool,
    ) -> Option<FrameMut<'_>> {
        self.last = Some(peer);
        self.outbound[peer as usize].as_mut()?.frame(len, answers_follow)
    }

    /// Checks the last frame: if nothing else is under way, no completion reports that it is held
    /// or couldn't be posted.
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

    /// Handles a failure to send to a peer, and remembers whether written messages wait.
    fn check(&mut self, peer: u32, peers: &mut Peers) {
        let Some(outbound) = &mut self.outbound[peer as usize] else { return };
        if let Some(error) = outbound.take_broken() {
            self.lose(peer, &error.with(peer).into(), peers);
        } else if outbound.is_waiting() && !self.waiting.contains(&peer) {
            self.waiting.push(peer);
        }
    }

    /// Whether an operation to a peer that may still take it is under way.
    pub(super) fn is_unsent(&self, peers: &Peers) -> bool {
        (0..).zip(&self.outbound).any(|(peer, out)| {
            out.as_ref().is_some_and(|out| out.is_unsent() && !peers.is_gone(peer))
        })
    }

    /// Sends farewells after all frames. Returns the peers to which it could.
    pub(super) fn say_farewells(&mut self, state: RankState) -> HashSet<u32> {
        let all = (0..).zip(&mut self.outbound);
        let told = all.filter_map(|(peer, out)| out.as_mut()?.say_farewell(state).then_some(peer));
        told.collect()
    }
}

#[cfg(test)]
impl Connector {
    pub(super) fn outbound(&mut self, peer: u32) -> Option<&mut Outbound> {
        self.outbound[peer as usize].as_deref_mut()
    }

    pub(super) fn address(&mut self, peer: u32) -> &mut Option<SocketAddr> {
        &mut self.addresses[peer as usize]
    }
}
