//! RMA: access to the memory of peers, through an endpoint without connections (FI_EP_RDM) that
//! does nothing else.
//!
//! **Security.** Keys are random, and travel only over connections whose ends have proved their
//! membership. But for this endpoint the provider accepts connections by itself, without a proof.
//! It identifies a peer by its host's address and by a port that the connecting side claims.
//!
//! - A user of a peer's host, or a sender that forges its address, can therefore impersonate that
//!   peer. It then gets the keys and the data of writes to that peer, and answers reads from it.
//! - Any sender that reaches this endpoint can crash its process, with data that the provider
//!   doesn't expect.
//!
//! Use this only on hosts and networks whose users trust each other.
//!
//! **Completion.** A write completes (FI_DELIVERY_COMPLETE, per call) when its data are in the
//! target's memory. With any weaker guarantee, a write with a wrong key would succeed, and its data
//! would be lost.
//!
//! Left out: local registration, virtual addresses and provider-chosen keys, which verbs requires;
//! atomics, which tcp lacks.
#![allow(unsafe_code)]

use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::error::{CallError, Refusals};
use super::ffi as fi;
use super::fid::{Blame, Fid};
use super::handles::{Info, Sockaddr, Use, offer};
use super::library::Library;
use super::peers::SILENCE;
use super::queue::Queue;
use super::sockets;
use crate::link::{LinkError, Refused};
use crate::rdma::{Access, Outcome, Rdma, Registration, RemoteMemory};

/// The most stretches of an operation, if the provider takes as many.
const STRETCHES: usize = 4;

/// The domain in which memory is registered.
struct Domain {
    domain: Fid<fi::fid_domain>,
    fabric: Fid<fi::fid_fabric>,
    /// The offer of which the endpoint is made.
    info: Info,
    blame: Blame,
    /// The number of registered regions.
    exposed: AtomicUsize,
}

/// A memory registration that peers can access.
struct Region {
    region: Fid<fi::fid_mr>,
    domain: Arc<Domain>,
}

/// The RMA endpoint, with the peers that it reaches. The fields are closed in their order.
pub(super) struct RmaEndpoint {
    endpoint: Fid<fi::fid_ep>,
    completions: Queue,
    peers: Fid<fi::fid_av>,
    /// The operations under way, by number.
    under_way: Mutex<Operations>,
    /// The peers with failed operations, and the errors, until they count as lost.
    failed: Mutex<Vec<(u32, CallError)>>,
    /// The reachable peers, by rank.
    targets: Box<[Option<Target>]>,
    domain: Arc<Domain>,
    stretches: usize,
    /// The address at which peers reach this endpoint.
    address: SocketAddr,
    /// The longest silence of a peer's host.
    patience: Duration,
}

/// A reachable peer.
struct Target {
    address: SocketAddr,
    /// The peer in the address vector.
    fi_addr: fi::fi_addr_t,
    /// Whether the system watches the connection that the first operation makes.
    watched: AtomicBool,
    /// Whether `refusals` may have a value; it avoids the lock.
    is_refused: AtomicBool,
    /// The refusals of operations while no operation to the peer was under way.
    refusals: Mutex<Option<Refusals>>,
}

impl Target {
    /// Records an operation that failed for lack of descriptors or memory: the first operation
    /// connects. Returns whether to try it again.
    fn try_again(&self) -> bool {
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        let added = Refusals::add(*refusals, Instant::now());
        *refusals = Some(added);
        self.is_refused.store(true, Ordering::Relaxed);
        added.tried() <= SILENCE
    }
}

/// Operations by number, from 1. Freed numbers are used again.
#[derive(Default)]
struct Operations {
    all: Vec<Option<Operation>>,
    free: Vec<usize>,
}

struct Operation {
    access: Access,
    peer: u32,
    outcome: Arc<Outcome>,
}

impl RmaEndpoint {
    /// Opens an endpoint at this address. It reaches no peer yet.
    ///
    /// # Errors
    /// A call failed. The port may be in use (EADDRINUSE), or the provider may offer no such
    /// endpoints, or it may require a feature that is left out here.
    pub(super) fn open(
        library: Library,
        provider: &str,
        address: SocketAddr,
    ) -> Result<RmaEndpoint, CallError> {
        let blame = Blame::new(library, provider);
        let info = offer(&blame, address.ip(), address.port(), Use::Rma)?;
        let (offered, mut fabric) = (info.as_ptr(), ptr::null_mut());
        // SAFETY: the offer's attributes are valid until it is dropped.
        let attributes = unsafe { (*offered).fabric_attr };
        // SAFETY: the arguments outlive the call, and the new object is owned from its return on.
        let status = unsafe { (library.fi_fabric)(attributes, &mut fabric, ptr::null_mut()) };
        let fabric = blame.made("fi_fabric", status, fabric)?;
        let (opened, mut domain) = (fabric.as_ptr(), ptr::null_mut());
        // SAFETY: the arguments outlive the call, and the new object is owned from its return on.
        let status = unsafe { fi::fi_domain(opened, offered, &mut domain, ptr::null_mut()) };
        let domain = blame.made("fi_domain", status, domain)?;
        let domain = Arc::new(Domain { domain, fabric, info, blame, exposed: AtomicUsize::new(0) });
        let blame = &domain.blame;
        let completions = Queue::open(&domain.domain, blame)?;
        let inner = domain.domain.as_ptr();
        let mut attributes = fi::fi_av_attr::default();
        let mut peers = ptr::null_mut();
        // SAFETY: the arguments outlive the call, and the new object is owned from its return on.
        let status = unsafe { fi::fi_av_open(inner, &mut attributes, &mut peers, ptr::null_mut()) };
        let peers = blame.made("fi_av_open", status, peers)?;
        let (offered, mut endpoint) = (domain.info.as_ptr(), ptr::null_mut());
        // SAFETY: the arguments outlive the call, and the new object is owned from its return on.
        // The endpoint is closed before the domain, which it holds.
        let status = unsafe { fi::fi_endpoint(inner, offered, &mut endpoint, ptr::null_mut()) };
        let endpoint = blame.made("fi_endpoint", status, endpoint)?;
        // SAFETY: all are open, and closed after the endpoint.
        unsafe {
            blame.done("fi_ep_bind", fi::fi_bind(endpoint.fid(), peers.fid(), 0) as isize)?;
            let both = fi::FI_TRANSMIT | fi::FI_RECV;
            let bound = fi::fi_bind(endpoint.fid(), completions.fid(), both);
            blame.done("fi_ep_bind", bound as isize)?;
            blame.done("fi_enable", fi::fi_enable(endpoint.fid()) as isize)?;
        }
        // SAFETY: libfabric made the attributes, which the domain holds.
        let most = unsafe { (*(*domain.info.as_ptr()).tx_attr).rma_iov_limit };
        let stretches = most.clamp(1, STRETCHES);
        let under_way = Mutex::default();
        let failed = Mutex::default();
        Ok(RmaEndpoint {
            endpoint,
            completions,
            peers,
            under_way,
            failed,
            targets: Box::default(),
            domain,
            stretches,
            address,
            patience: Duration::MAX,
        })
    }
}

impl RmaEndpoint {
    /// Inserts the peers' addresses into the address vector, by rank. `patience` is the longest
    /// silence of a peer's host.
    pub(super) fn meet(&mut self, addresses: &[Option<SocketAddr>], patience: Duration) {
        let target = |(peer, address): (usize, &Option<SocketAddr>)| {
            let to = (*address)?;
            let (address, mut fi_addr) = (Sockaddr::new(to), 0);
            // SAFETY: one address, in the format of an internet socket, and room for one result.
            let inserted = unsafe {
                let (peers, at) = (self.peers.as_ptr(), address.as_ptr());
                fi::fi_av_insert(peers, at, 1, &mut fi_addr, 0, ptr::null_mut())
            };
            if inserted != 1 {
                let why = "libfabric took no address: the peer is reached by messages only";
                tracing::warn!(peer, address = %to, inserted, why);
                return None;
            }
            Some(Target {
                address: to,
                fi_addr,
                watched: AtomicBool::new(false),
                is_refused: AtomicBool::new(false),
                refusals: Mutex::default(),
            })
        };
        self.patience = patience;
        self.targets = addresses.iter().enumerate().map(target).collect();
    }

    /// The address at which peers reach this endpoint.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The descriptor that becomes readable when an operation may have ended, or a peer needs
    /// progress here.
    ///
    /// # Errors
    /// The provider has none.
    pub(super) fn descriptor(&self) -> Result<RawFd, CallError> {
        self.completions.descriptor()
    }

    /// Whether a sleep on the descriptor is safe: nothing waits.
    pub(super) fn may_wait(&self) -> bool {
        self.completions.may_wait(&self.domain.fabric, None)
    }

    fn under_way(&self) -> MutexGuard<'_, Operations> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether memory is registered here, or operations of this rank are under way.
    pub(super) fn is_in_use(&self) -> bool {
        if self.domain.exposed.load(Ordering::Relaxed) > 0 {
            return true;
        }
        let under_way = self.under_way();
        under_way.free.len() < under_way.all.len()
    }

    /// Takes the peers with operations that failed since the last call.
    pub(super) fn take_failed(&self) -> Vec<(u32, CallError)> {
        std::mem::take(&mut *self.failed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn failure(&self, access: Access, code: i32, peer: u32) -> CallError {
        let call = match access {
            Access::Read => "fi_readmsg",
            Access::Write => "fi_writemsg",
        };
        self.domain.blame.error(call, code).with(peer)
    }

    /// Handles a refusal for lack of room. The provider has no room while it connects. If nobody
    /// listens, that lasts for ever, and the provider reports no error; so after the patience, the
    /// peer has failed unless its system answers.
    fn handle_refusal(&self, access: Access, peer: u32, to: &Target) {
        let is_reached = self.under_way().all.iter().flatten().any(|one| one.peer == peer);
        let mut refusals = to.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        if is_reached {
            *refusals = None;
            return;
        }
        let added = Refusals::add(*refusals, Instant::now());
        *refusals = Some(added);
        to.is_refused.store(true, Ordering::Relaxed);
        if added.tried() <= self.patience {
            return;
        }
        *refusals = None;
        // If a connection is established, the peer's system answers. Its process may compute, or be
        // stopped, for any time.
        if matches!(sockets::is_connected(to.address), Ok(false)) {
            let error = self.failure(access, libc::ETIMEDOUT, peer);
            let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
            failed.push((peer, error));
        }
    }

    /// Ends the series of refusals, because the provider had room.
    fn handle_success(&self, to: &Target) {
        if to.is_refused.load(Ordering::Relaxed) {
            to.is_refused.store(false, Ordering::Relaxed);
            *to.refusals.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }

    /// Handles the end of an operation.
    fn end(&self, number: usize, failed: Option<i32>) {
        let Some(operation) = self.under_way().remove(number) else { return };
        if let Some(code) = failed {
            let error = self.failure(operation.access, code, operation.peer);
            let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
            failed.push((operation.peer, error));
        }
        operation.outcome.end(failed.is_none());
    }
}

impl Operations {
    fn insert(&mut self, operation: Operation) -> usize {
        match self.free.pop() {
            Some(number) => {
                self.all[number - 1] = Some(operation);
                number
            }
            None => {
                self.all.push(Some(operation));
                self.all.len()
            }
        }
    }

    fn remove(&mut self, number: usize) -> Option<Operation> {
        let operation = self.all.get_mut(number.checked_sub(1)?)?.take();
        if operation.is_some() {
            self.free.push(number);
        }
        operation
    }
}

impl Rdma for RmaEndpoint {
    fn provider(&self) -> &str {
        &self.domain.blame.provider
    }

    fn stretch_limit(&self) -> usize {
        self.stretches
    }

    fn reaches(&self, peer: u32) -> bool {
        self.targets.get(peer as usize).is_some_and(Option::is_some)
    }

    unsafe fn expose(
        &self,
        memory: NonNull<u8>,
        len: usize,
    ) -> Result<Box<dyn Registration>, LinkError> {
        let blame = &self.domain.blame;
        let refused = |error: CallError| LinkError::Fabric(error.to_string());
        let mut tries = 0..3;
        loop {
            let mut key = [0; 8];
            getrandom::fill(&mut key).map_err(|error| LinkError::Fabric(error.to_string()))?;
            let key = u64::from_ne_bytes(key);
            let mut region = ptr::null_mut();
            // SAFETY: the memory stays valid until the region is closed, by the caller's promise.
            let status = unsafe {
                let (domain, start) = (self.domain.domain.as_ptr(), memory.as_ptr().cast());
                let access = fi::FI_REMOTE_READ | fi::FI_REMOTE_WRITE;
                fi::fi_mr_reg(domain, (start, len), access, key, &mut region)
            };
            // The key is taken already: try another.
            if -status == fi::FI_ENOKEY && tries.next().is_some() {
                continue;
            }
            let region = blame.made("fi_mr_reg", status, region).map_err(refused)?;
            self.domain.exposed.fetch_add(1, Ordering::Relaxed);
            return Ok(Box::new(Region { region, domain: self.domain.clone() }));
        }
    }

    unsafe fn start(
        &self,
        access: Access,
        at: &RemoteMemory<'_>,
        memory: NonNull<u8>,
        len: usize,
        outcome: &Arc<Outcome>,
    ) -> Result<(), Refused> {
        let many = at.stretches.len();
        let to = self.targets.get(at.peer as usize).and_then(Option::as_ref);
        let there = at.stretches.iter().map(|&(_, len)| len).sum::<u64>();
        let (Some(to), true) = (to, (1..=self.stretches).contains(&many) && there == len as u64)
        else {
            let what = format!("rank {}: can't access {many} stretches of {there} bytes", at.peer);
            return Err(LinkError::Fabric(what).into());
        };
        let mut remote = [fi::fi_rma_iov::default(); STRETCHES];
        for (iov, &(addr, len)) in remote.iter_mut().zip(at.stretches) {
            *iov = fi::fi_rma_iov { addr, len: len as usize, key: at.key };
        }
        let local = libc::iovec { iov_base: memory.as_ptr().cast(), iov_len: len };
        let operation = Operation { access, peer: at.peer, outcome: outcome.clone() };
        let number = self.under_way().insert(operation);
        let message = fi::fi_msg_rma {
            msg_iov: &local,
            desc: ptr::null_mut(),
            iov_count: 1,
            addr: to.fi_addr,
            rma_iov: remote.as_ptr(),
            rma_iov_count: many,
            context: ptr::without_provenance_mut(number),
            data: 0,
        };
        // SAFETY: the call copies the vectors. The memory is valid until the operation has ended,
        // by the caller's promise, or until the endpoint is closed, which happens before the
        // operations are dropped.
        let status = unsafe {
            let endpoint = self.endpoint.as_ptr();
            match access {
                Access::Write => fi::fi_writemsg(endpoint, &message, fi::FI_DELIVERY_COMPLETE),
                Access::Read => fi::fi_readmsg(endpoint, &message, 0),
            }
        };
        if !to.watched.swap(true, Ordering::Relaxed) {
            let watched = sockets::watch_connecting(self.address.ip(), to.address, self.patience);
            if let Err(error) = watched {
                let peer = at.peer;
                tracing::warn!(peer, %error, "can't watch the connection to detect a silent host");
            }
        }
        if status >= 0 {
            self.handle_success(to);
            return Ok(());
        }
        self.under_way().remove(number);
        match -(status as i32) {
            libc::EAGAIN => {
                self.handle_refusal(access, at.peer, to);
                Err(Refused::WouldBlock)
            }
            code => {
                let error = self.failure(access, code, at.peer);
                match error.is_shortage() && to.try_again() {
                    true => Err(Refused::WouldBlock),
                    false => Err(LinkError::Fabric(error.to_string()).into()),
                }
            }
        }
    }

    fn poll(&self) -> Result<(), LinkError> {
        let read = self.completions.read(|ended| self.end(ended.context, ended.failed));
        read.map(drop).map_err(|error| LinkError::Fabric(error.to_string()))
    }
}

impl Registration for Region {
    fn key(&self) -> u64 {
        // SAFETY: the region is open.
        unsafe { fi::fi_mr_key(self.region.as_ptr()) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        self.domain.exposed.fetch_sub(1, Ordering::Relaxed);
    }
}

// On other machines the provider tcp offers no such endpoints, or none that initiate.
#[cfg(all(test, target_pointer_width = "64", target_endian = "little"))]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, TcpListener};
    use std::os::fd::AsRawFd;

    use nix::sys::socket::{
        AddressFamily, SockFlag, SockType, SockaddrIn, bind, getsockname, socket,
    };

    use super::super::listener::at_free_port;
    use super::*;
    use crate::rdma::Transfer;

    /// Two ranks: rank 0 accesses the memory of rank 1.
    struct Pair {
        origin: Arc<RmaEndpoint>,
        target: RmaEndpoint,
    }

    impl Pair {
        fn new() -> Pair {
            let (here, patience) = (IpAddr::V4(Ipv4Addr::LOCALHOST), Duration::from_secs(20));
            let library = Library::get().unwrap();
            let open = || {
                let open = |address| RmaEndpoint::open(library, "tcp", address);
                at_free_port(here, patience, open).unwrap()
            };
            let ((one, mut origin), (other, mut target)) = (open(), open());
            origin.meet(&[Some(one), Some(other)], patience);
            target.meet(&[Some(one), Some(other)], patience);
            Pair { origin: Arc::new(origin), target }
        }

        /// Polls both ranks until `look` returns a value.
        fn wait<T>(&self, mut look: impl FnMut(&Pair) -> Option<T>) -> T {
            let start = Instant::now();
            loop {
                if let Some(found) = look(self) {
                    return found;
                }
                self.origin.poll().unwrap();
                self.target.poll().unwrap();
                assert!(start.elapsed() < Duration::from_secs(60), "nothing happens");
            }
        }

        /// An access that has begun.
        fn start(
            &self,
            access: Access,
            key: u64,
            stretches: &[(u64, u64)],
            data: &[u8],
        ) -> Transfer {
            let memory = RemoteMemory { peer: 1, key, stretches };
            let origin = self.origin.clone() as Arc<dyn Rdma>;
            let mut transfer = Transfer::of_buffer(&origin, data.to_vec());
            self.wait(|_| match transfer.start(access, &memory) {
                Ok(()) => Some(()),
                Err(Refused::WouldBlock) => None,
                Err(Refused::Failed(error)) => panic!("{error}"),
            });
            transfer
        }

        /// Performs an access that succeeds. Returns its buffer.
        fn access(
            &self,
            access: Access,
            key: u64,
            stretches: &[(u64, u64)],
            data: &[u8],
        ) -> Vec<u8> {
            let transfer = self.start(access, key, stretches, data);
            self.wait(|_| transfer.is_done().then_some(()));
            transfer.into_buffer().unwrap()
        }

        /// Performs an access that fails. Returns its error.
        fn refused(&self, access: Access, key: u64, stretches: &[(u64, u64)]) -> CallError {
            let transfer = self.start(access, key, stretches, b"lost");
            let (peer, error) = self.wait(|pair| pair.origin.take_failed().pop());
            assert!(peer == 1 && !transfer.is_done());
            error
        }
    }

    #[test]
    fn written_data_are_read_back() {
        crate::needs_libfabric!();
        let pair = Pair::new();
        let mut memory = vec![255u8; 16];
        let start = NonNull::new(memory.as_mut_ptr()).unwrap();
        // SAFETY: the memory outlives the registration, and is used directly only after it.
        let region = unsafe { pair.target.expose(start, memory.len()).unwrap() };
        pair.access(Access::Write, region.key(), &[(8, 3), (1, 2)], b"stone");
        let read = pair.access(Access::Read, region.key(), &[(1, 2), (8, 4)], &[0; 6]);
        assert_eq!(read, b"nesto\xff");
        drop(region);
        assert_eq!(memory, b"\xffne\xff\xff\xff\xff\xffsto\xff\xff\xff\xff\xff");
    }

    /// Writes to a peer at an address. Returns the failure, if one comes within the given time.
    fn attempt(to: SocketAddr, patience: Duration, within: Duration) -> Option<(u32, CallError)> {
        let library = Library::get().unwrap();
        let open = |address| RmaEndpoint::open(library, "tcp", address);
        let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let (own, mut memory) = at_free_port(here, patience, open).unwrap();
        memory.meet(&[Some(own), Some(to)], patience);
        let origin = Arc::new(memory);
        let memory = RemoteMemory { peer: 1, key: 1, stretches: &[(0, 4)] };
        let mut transfer = Transfer::of_buffer(&(origin.clone() as Arc<dyn Rdma>), vec![0; 4]);
        let start = Instant::now();
        while start.elapsed() < within {
            let refused = transfer.start(Access::Write, &memory);
            assert!(matches!(refused, Err(Refused::WouldBlock)), "{refused:?}");
            origin.poll().unwrap();
            if let Some(failed) = origin.take_failed().pop() {
                assert!(start.elapsed() > patience);
                return Some(failed);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        None
    }

    #[test]
    fn a_peer_that_does_not_listen_is_given_up() {
        crate::needs_libfabric!();
        let patience = Duration::from_millis(300);
        // The socket keeps its port, so that no other process listens there meanwhile.
        let (family, kind) = (AddressFamily::Inet, SockType::Stream);
        let silent = socket(family, kind, SockFlag::SOCK_CLOEXEC, None).unwrap();
        bind(silent.as_raw_fd(), &SockaddrIn::new(127, 0, 0, 1, 0)).unwrap();
        let port = getsockname::<SockaddrIn>(silent.as_raw_fd()).unwrap().port();
        let nobody = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let (peer, error) = attempt(nobody, patience, Duration::from_secs(60)).unwrap();
        assert_eq!((peer, error.call, error.code), (1, "fi_writemsg", libc::ETIMEDOUT));
    }

    #[test]
    fn a_peer_that_does_not_respond_is_waited_for() {
        crate::needs_libfabric!();
        let patience = Duration::from_millis(300);
        let stopped = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let failed = attempt(stopped.local_addr().unwrap(), patience, 5 * patience);
        assert!(failed.is_none(), "{failed:?}");
    }

    #[test]
    fn accesses_outside_of_registered_memory_fail_and_change_none() {
        crate::needs_libfabric!();
        let mut memory = vec![255u8; 16];
        let start = NonNull::new(memory.as_mut_ptr()).unwrap();
        for case in ["wrong key", "beyond the end", "dropped"] {
            let pair = Pair::new();
            // SAFETY: the memory outlives the registration, and is used directly only after it.
            let region = unsafe { pair.target.expose(start, 16).unwrap() };
            let (mut key, mut at, mut kept) = (region.key(), 0, Some(region));
            match case {
                "wrong key" => key ^= 1,
                "beyond the end" => at = 14,
                _ => kept = None,
            }
            let error = pair.refused(Access::Write, key, &[(at, 4)]);
            assert_eq!(error.call, "fi_writemsg", "{case}");
            let error = pair.refused(Access::Read, key, &[(at, 4)]);
            assert_eq!(error.call, "fi_readmsg", "{case}");
            drop(kept);
            assert_eq!(memory, [255; 16], "{case}");
        }
    }
}
