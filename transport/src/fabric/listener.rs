//! A rank's listener, which exists before the addresses of its peers are known.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};

use super::connector::Connector;
use super::error::CallError;
use super::fid::Blame;
use super::guests::{Door, Guests};
use super::handles::Network;
use super::inbox::Inbox;
use super::keeper::Keeper;
use super::library::Library;
use super::peers::Peers;
use super::place::{Place, Ports};
use super::rma::RmaEndpoint;
use super::sockets::{self, Ends};
use super::watcher::Watcher;
use super::{FabricLink, OpenError, opening};
use crate::protocol::challenge::{self, Key};
use crate::segment::Segment;

/// The bytes of a request for a connection: libfabric's header, and the proof after it.
const REQUEST: u64 = HEADER + challenge::REQUEST as u64;

/// The bytes of a request to the RMA endpoint, which has no proof.
const RMA_REQUEST: u64 = HEADER;

/// The header of libfabric's tcp provider before a request. Other providers don't use the system's
/// sockets.
const HEADER: u64 = 32;

/// A listening rank that doesn't know the addresses of its peers yet.
pub struct Listener {
    network: Arc<Network>,
    address: SocketAddr,
    ports: Option<Ports>,
    patience: Duration,
    /// The endpoint through which peers access memory of this rank.
    rma: Option<RmaEndpoint>,
    encrypts: bool,
}

/// The most descriptors for a peer on another host: a connection for each direction, and one for
/// RMA.
const DESCRIPTORS: rlim_t = 3;

/// The descriptors that this process needs for everything else.
const OTHERS: rlim_t = 128;

/// Raises this process's limit of descriptors to the number that `peers` peers may take. Without a
/// descriptor, a living peer would seem gone.
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
            "too few descriptors for the ranks on other hosts: raise the limit (ulimit -Hn)"
        );
    }
}

impl Listener {
    /// Listens with `provider` at `place`, an interface with or without a range of ports, and on no
    /// other interface. A connection ends if the host at its other end is silent for longer than
    /// `patience`.
    ///
    /// # Errors
    /// There is no libfabric, or all ports of the range are in use. libfabric or the system refuses
    /// it, for example for an unknown provider or another machine's address.
    pub fn open(
        provider: &str,
        place: impl Into<Place>,
        patience: Duration,
    ) -> Result<Listener, OpenError> {
        let (library, place) = (Library::get()?, place.into());
        let listen = |address| Network::listen(library, provider, address);
        let (address, network) = at_free_port(place, patience, listen)?;
        Ok(Listener { network, address, ports: place.ports, patience, rma: None, encrypts: false })
    }

    /// The address at which this rank listens, to be given to its peers.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Enables RMA between this rank and its peers, at another port of the same place. Returns the
    /// address at which peers access this rank's memory. A rank that [encrypts](Listener::encrypt)
    /// can't have it.
    ///
    /// # Errors
    /// All ports of the range are in use. The provider offers no endpoints for RMA, or requires a
    /// feature that the fabric module leaves out.
    pub fn open_memory(&mut self) -> Result<SocketAddr, OpenError> {
        let Blame { library, provider } = &self.network.blame;
        let open = |address| RmaEndpoint::open(*library, provider, address);
        let place = Place { interface: self.address.ip(), ports: self.ports };
        let (address, rma) = at_free_port(place, self.patience, open)?;
        self.rma = Some(rma);
        Ok(address)
    }

    /// Encrypts all messages between this rank and its peers, which must all do so. RMA can't be
    /// encrypted, so its endpoint is closed.
    pub fn encrypt(&mut self) {
        (self.rma, self.encrypts) = (None, true);
    }

    /// The link of the rank to which `segment` belongs.
    ///
    /// `addresses` has the listening address of each rank, and `memories` its RMA address; a rank
    /// without one can't be reached that way. `secret` is known to all ranks of the job, and to
    /// nobody else.
    ///
    /// # Errors
    /// The provider has no descriptor to sleep on; a thread can't be started; `segment` is the
    /// launcher's handle.
    pub fn link(
        self,
        segment: Segment,
        addresses: Vec<Option<SocketAddr>>,
        memories: &[Option<SocketAddr>],
        secret: &[u8],
    ) -> Result<FabricLink, OpenError> {
        let Listener { network, address, patience, rma, encrypts, .. } = self;
        let rank = segment.rank().ok_or(crate::segment::SegmentError::NotARank)?;
        let rma = rma.filter(|_| !encrypts).map(|mut rma| {
            rma.meet(memories, patience);
            Arc::new(rma)
        });
        allow_descriptors(addresses.iter().flatten().count());
        let [events, completions] = network.descriptors()?;
        let accesses = rma.as_ref().map(|rma| rma.descriptor()).transpose()?;
        let descriptors = [Some(events), Some(completions), accesses];
        let watcher =
            Watcher::start(network.clone(), rma.clone(), descriptors, segment.clone(), rank);
        let system = |source| OpenError::System { interface: address.ip(), source };
        let watcher = watcher.map_err(system)?;
        // In a static program the first random number opens a file, which then stays open. Later
        // there may be no descriptor for it.
        opening(encrypts).map_err(|error| system(io::Error::other(error)))?;
        let own = [address].into_iter().chain(rma.as_ref().map(|rma| rma.address()));
        let peers = addresses.iter().chain(memories).flatten().copied();
        let memory = rma.as_ref().map(|rma| Door { address: rma.address(), request: RMA_REQUEST });
        let doors = [Door { address, request: REQUEST }].into_iter().chain(memory).collect();
        let guests = Arc::new(Mutex::new(Guests::new(doors)));
        let keeper = Keeper::start(Ends::new(own, peers), patience, guests.clone());
        let keeper = keeper.map_err(system)?;
        let key = Key::new(secret);
        Ok(FabricLink {
            watcher,
            guests,
            _keeper: keeper,
            network,
            rma,
            peers: Peers::new(rank, segment, address.ip(), addresses.clone(), encrypts),
            connector: Connector::new(addresses, key.clone(), address.ip(), patience),
            inbox: Inbox::new(key),
            ended: Vec::new(),
            polls: 0,
            looks: 0,
            operations: 0,
            broken: None,
            left: false,
        })
    }
}

/// Calls `open` with an address of the place that nothing listens at. Connections to that address
/// end if their host is silent for longer than `patience`.
pub(super) fn at_free_port<T>(
    place: impl Into<Place>,
    patience: Duration,
    open: impl Fn(SocketAddr) -> Result<T, CallError>,
) -> Result<(SocketAddr, T), OpenError> {
    let place = place.into();
    let Place { interface, ports } = place;
    let system = |source| OpenError::System { interface, source };
    for address in place.addresses() {
        let address = address.map_err(system)?;
        match open(address) {
            Ok(opened) => {
                let watched = sockets::watch_listener(address, patience).map_err(system)?;
                tracing::debug!(%address, watched, "listens");
                return Ok((address, opened));
            }
            Err(error) if error.code == libc::EADDRINUSE => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(OpenError::InUse { interface, ports })
}
