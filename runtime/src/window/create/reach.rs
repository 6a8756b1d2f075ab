//! How this rank and a peer reach each other's memory, known before the window is made.

use std::sync::Arc;

use shipable::Architecture;

use crate::communicator::Communicator;
use crate::endpoint::Endpoint;
use crate::flavor::Flavor;
use crate::job::Routes;
use crate::memory::{Exposed, Registered};
use crate::process::Process;
use crate::route::{Route, RouteFacts, choose};

/// A peer, as the routes to it depend on it.
#[derive(Clone, Copy)]
pub(super) struct Peer {
    pub architecture: Architecture,
    pub emulated: bool,
}

impl Peer {
    pub(super) fn of((architecture, emulated): (Architecture, bool)) -> Peer {
        Peer { architecture, emulated }
    }

    /// Whether all data have the same bytes at the peer as here, those of slices included.
    pub(super) fn is_like(&self, process: &Process) -> bool {
        let me = process.me();
        !me.emulated && !self.emulated && self.architecture.same_representation(&me.architecture)
    }

    /// Whether data of some types may have the same bytes at the peer as here. Other byte orders
    /// leave only characters and bytes. The addresses of a dynamic window's attachments aren't real
    /// at a rank that emulates another architecture, so others can't follow them.
    fn is_related(&self, process: &Process, flavor: Flavor) -> bool {
        let me = process.me();
        let has_addresses = flavor != Flavor::Dynamic || !me.emulated && !self.emulated;
        has_addresses && self.architecture.order() == me.architecture.order()
    }
}

/// The facts that decide the route to a peer's window of a flavor: whether this rank can map the
/// peer's memory, and whether that memory is registered.
pub(super) fn pair_with(
    process: &Process,
    peer: Peer,
    flavor: Flavor,
    reachable: bool,
    registered: bool,
) -> RouteFacts {
    RouteFacts {
        message_only: process.routes() == Routes::Message,
        related: peer.is_related(process, flavor),
        reachable,
        beside: false,
        registered,
    }
}

/// Whether other ranks would reach this rank's memory directly if it lay in the segment.
pub(super) fn has_direct_peers(communicator: &Communicator, flavor: Flavor) -> bool {
    let process = communicator.process();
    let me = process.me();
    let is_direct = |&peer: &u32| {
        let known = process.engine().state().representation(peer);
        let reachable = process.hosts().share(peer, me.rank);
        let pair = known.map(|known| pair_with(process, Peer::of(known), flavor, reachable, false));
        peer != me.rank && pair.is_some_and(|pair| choose(pair) == Route::Direct)
    };
    communicator.group().processes().iter().any(is_direct)
}

/// Registers a window's memory with the network, if related ranks on other hosts can access it.
/// They use messages where it isn't registered.
pub(super) fn register(communicator: &Communicator, memory: &Arc<Exposed>) -> Option<Registered> {
    let process = communicator.process();
    let rdma = process.rdma()?;
    let me = process.me();
    let accesses = |&peer: &u32| {
        let known = process.engine().state().representation(peer);
        known.is_some_and(|known| {
            let registered = process.endpoint(peer, &known.0).0 == Endpoint::Datagram;
            let pair = pair_with(process, Peer::of(known), Flavor::Create, false, registered);
            choose(pair) == Route::Rdma
        })
    };
    if !communicator.group().processes().iter().any(accesses) {
        return None;
    }
    process.expose();
    let registered = Registered::new(memory, &**rdma);
    registered.unwrap_or_else(|error| {
        tracing::warn!(rank = me.rank, %error, "can't register a window's memory");
        None
    })
}
