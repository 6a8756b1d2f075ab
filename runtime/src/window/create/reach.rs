//! How this rank and a peer reach each other's memory, known before the window is made.

use std::sync::Arc;

use shipable::Architecture;

use crate::communicator::Communicator;
use crate::endpoint::Endpoint;
use crate::job::Routes;
use crate::memory::{Exposed, Registered};
use crate::process::Process;
use crate::route::{Route, RouteFacts, choose};

/// The facts that decide the route to a peer with a representation, emulated or not: whether this
/// rank can map the peer's memory, and whether that memory is registered.
pub(super) fn pair_with(
    process: &Process,
    (architecture, emulated): (Architecture, bool),
    reachable: bool,
    registered: bool,
) -> RouteFacts {
    let me = process.me();
    RouteFacts {
        message_only: process.routes() == Routes::Message,
        emulated: emulated || me.emulated,
        same_representation: architecture.same_representation(&me.architecture),
        reachable,
        beside: false,
        registered,
    }
}

/// Whether other ranks would reach this rank's memory directly if it lay in the segment.
pub(super) fn has_like_peers(communicator: &Communicator) -> bool {
    let process = communicator.process();
    let me = process.me();
    let is_direct = |&peer: &u32| {
        let known = process.engine().state().representation(peer);
        let reachable = process.hosts().share(peer, me.rank);
        let pair = known.map(|known| pair_with(process, known, reachable, false));
        peer != me.rank && pair.is_some_and(|pair| choose(pair) == Route::Direct)
    };
    communicator.group().processes().iter().any(is_direct)
}

/// Registers a window's memory with the network, if like ranks on other hosts can access it. They
/// use messages where it isn't registered.
pub(super) fn register(communicator: &Communicator, memory: &Arc<Exposed>) -> Option<Registered> {
    let process = communicator.process();
    let rdma = process.rdma()?;
    let me = process.me();
    let like = |&peer: &u32| {
        let known = process.engine().state().representation(peer);
        known.is_some_and(|known| {
            let registered = process.endpoint(peer, &known.0).0 == Endpoint::Datagram;
            choose(pair_with(process, known, false, registered)) == Route::Rdma
        })
    };
    if !communicator.group().processes().iter().any(like) {
        return None;
    }
    process.expose();
    let registered = Registered::new(memory, &**rdma);
    registered.unwrap_or_else(|error| {
        tracing::warn!(rank = me.rank, %error, "can't register a window's memory");
        None
    })
}
