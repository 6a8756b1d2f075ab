//! Where a rank listens, before it knows where its peers do.

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};

use super::dialled::Dialled;
use super::error::CallError;
use super::handles::Network;
use super::inbox::Inbox;
use super::memory::Memory;
use super::peers::Peers;
use super::sockets::{self, Ends, Keeper};
use super::watcher::Watcher;
use super::{FabricLink, OpenError};
use crate::protocol::challenge::Key;
use crate::segment::Segment;

/// How often to look for a port: another process may take it first.
const PORTS: usize = 16;

/// A rank that listens and doesn't know yet where its peers do.
pub struct Listener {
    network: Arc<Network>,
    address: SocketAddr,
    patience: Duration,
    /// For peers that access memory here, and where they find it.
    memory: Option<Memory>,
}

/// Descriptors for a peer on another host at most: a connection for each direction, and one for accesses to memory.
const DESCRIPTORS: rlim_t = 3;

/// Those of this process for all else.
const OTHERS: rlim_t = 128;

/// Has the system let this process open as many descriptors as peers may take: without them a living peer would seem gone.
fn allow_descriptors(peers: usize) {
    let peers = rlim_t::try_from(peers).unwrap_or(rlim_t::MAX);
    let wanted = peers.saturating_mul(DESCRIPTORS).saturating_add(OTHERS);
    let Ok((allowed, most)) = getrlimit(Resource::RLIMIT_NOFILE) else { return };
    if allowed >= wanted {
        return;
    }
    let raised = setrlimit(Resource::RLIMIT_NOFILE, wanted.min(most), most);
    if raised.is_err() || most < wanted {
        tracing::warn!(
            peers,
            wanted,
            most,
            "few descriptors for so many ranks on other hosts: raise the limit (ulimit -Hn)"
        );
    }
}

impl Listener {
    /// Listens with `provider` on the interface of this address, and on no other. A connection whose other end's host is silent
    /// for longer than `patience` has ended.
    ///
    /// # Errors
    /// libfabric or the system refuses it: an unknown provider, an address that isn't this machine's.
    pub fn open(
        provider: &str,
        interface: IpAddr,
        patience: Duration,
    ) -> Result<Listener, OpenError> {
        let listen = |address| Network::listen(provider, address);
        let (address, network) = at_free_port(interface, patience, listen)?;
        Ok(Listener { network, address, patience, memory: None })
    }

    /// Where it listens, for its peers.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Lets peers access memory that this rank exposes, and this rank theirs; where they find it.
    ///
    /// # Errors
    /// The provider offers no endpoints for that, or not without what is left out here.
    pub fn open_memory(&mut self) -> Result<SocketAddr, OpenError> {
        let open = |address| Memory::open(&self.network.blame.0, address);
        let (address, memory) = at_free_port(self.address.ip(), self.patience, open)?;
        self.memory = Some(memory);
        Ok(address)
    }

    /// The link of the rank that `segment` was attached for, now that it is known where each rank listens, and where its memory is
    /// accessed; one that doesn't can't be reached. `secret` is what all ranks of the job hold, and nobody else.
    ///
    /// # Errors
    /// The provider has nothing to sleep on; no thread; the launcher's handle.
    pub fn link(
        self,
        segment: Segment,
        addresses: Vec<Option<SocketAddr>>,
        memories: &[Option<SocketAddr>],
        secret: &[u8],
    ) -> Result<FabricLink, OpenError> {
        let Listener { network, address, patience, memory } = self;
        let rank = segment.rank().ok_or(crate::segment::SegmentError::NotARank)?;
        let memory = memory.map(|mut memory| {
            memory.meet(memories, patience);
            Arc::new(memory)
        });
        allow_descriptors(addresses.iter().flatten().count());
        let [events, completions] = network.descriptors()?;
        let accesses = memory.as_ref().map(|memory| memory.descriptor()).transpose()?;
        let descriptors = [Some(events), Some(completions), accesses];
        let watcher =
            Watcher::start(network.clone(), memory.clone(), descriptors, segment.clone(), rank);
        let system = |source| OpenError::System { interface: address.ip(), source };
        let watcher = watcher.map_err(system)?;
        let own = [address].into_iter().chain(memory.as_ref().map(|memory| memory.address()));
        let peers = addresses.iter().chain(memories).flatten().copied();
        let keeper = Keeper::start(Ends::new(own, peers), patience).map_err(system)?;
        let key = Key::new(secret);
        Ok(FabricLink {
            watcher,
            _keeper: keeper,
            network,
            memory,
            peers: Peers::new(rank, segment, addresses.len()),
            dialled: Dialled::new(addresses, key.clone(), address.ip(), patience),
            inbox: Inbox::new(key),
            ended: Vec::new(),
            polls: 0,
            operations: 0,
            broken: None,
            left: false,
        })
    }
}

/// Opens what listens at an address of its own: the interface, with a port that the system found free. What connects there has so much
/// patience with a silent host.
pub(super) fn at_free_port<T>(
    interface: IpAddr,
    patience: Duration,
    open: impl Fn(SocketAddr) -> Result<T, CallError>,
) -> Result<(SocketAddr, T), OpenError> {
    let system = |source| OpenError::System { interface, source };
    let mut tries = 0..PORTS;
    loop {
        let free = TcpListener::bind((interface, 0)).and_then(|found| found.local_addr());
        let address = free.map_err(system)?;
        match open(address) {
            Ok(opened) => {
                let watched = sockets::watch_listener(address, patience).map_err(system)?;
                tracing::debug!(%address, watched, "listens");
                return Ok((address, opened));
            }
            Err(error) if error.code == libc::EADDRINUSE && tries.next().is_some() => {}
            Err(error) => return Err(error.into()),
        }
    }
}
