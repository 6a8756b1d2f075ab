//! Owned handles of libfabric's objects, closed in the right order, with a safe surface.
//!
//! A [`Network`] is a fabric with its domain, two queues and passive endpoint. An [`Endpoint`] is
//! one end of a connection. It owns the memory that its operations use, in numbered slots. Only one
//! operation at a time uses a slot. The [`Completion`] of that operation, which only the queue
//! makes, frees the slot.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_void};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::RawFd;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::error::CallError;
use super::ffi as fi;
use super::fid::{Blame, Fid};
use super::library::{INTERFACE, Library};
use super::queue::{Queue, RawCompletion, descriptor};

/// The bits of an operation's context that hold its slot; the other bits hold its endpoint.
const SLOT_BITS: u32 = 8;

/// A list of a provider's offers.
pub(super) struct Info {
    first: NonNull<fi::fi_info>,
    library: Library,
}

// SAFETY: plain memory, which no call changes after it was returned.
unsafe impl Send for Info {}
// SAFETY: plain memory, which no call changes after it was returned.
unsafe impl Sync for Info {}

impl Info {
    /// The list that libfabric made, unless it is null.
    fn new(library: Library, first: *mut fi::fi_info) -> Option<Info> {
        NonNull::new(first).map(|first| Info { first, library })
    }

    /// An offer with zeroed attributes, to be filled in.
    fn empty(library: Library) -> Option<Info> {
        // SAFETY: of null, it makes zeroed attributes, or returns null.
        Info::new(library, unsafe { (library.fi_dupinfo)(ptr::null()) })
    }

    pub(super) fn as_ptr(&self) -> *mut fi::fi_info {
        self.first.as_ptr()
    }
}

impl Drop for Info {
    fn drop(&mut self) {
        // SAFETY: libfabric made it, and it is owned.
        unsafe { (self.library.fi_freeinfo)(self.as_ptr()) }
    }
}

/// An address in the format of the system's calls.
pub(super) enum Sockaddr {
    V4(libc::sockaddr_in),
    V6(libc::sockaddr_in6),
}

impl Sockaddr {
    pub(super) fn new(address: SocketAddr) -> Sockaddr {
        match address {
            SocketAddr::V4(v4) => {
                // SAFETY: plain data; all zeros is a value of it.
                let mut to: libc::sockaddr_in = unsafe { std::mem::zeroed() };
                to.sin_family = libc::AF_INET as libc::sa_family_t;
                to.sin_port = v4.port().to_be();
                to.sin_addr.s_addr = u32::from_ne_bytes(v4.ip().octets());
                Sockaddr::V4(to)
            }
            SocketAddr::V6(v6) => {
                // SAFETY: plain data; all zeros is a value of it.
                let mut to: libc::sockaddr_in6 = unsafe { std::mem::zeroed() };
                to.sin6_family = libc::AF_INET6 as libc::sa_family_t;
                to.sin6_port = v6.port().to_be();
                to.sin6_addr.s6_addr = v6.ip().octets();
                to.sin6_scope_id = v6.scope_id();
                Sockaddr::V6(to)
            }
        }
    }

    pub(super) fn as_ptr(&self) -> *const c_void {
        match self {
            Sockaddr::V4(address) => ptr::from_ref(address).cast(),
            Sockaddr::V6(address) => ptr::from_ref(address).cast(),
        }
    }
}

/// The purpose of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// Messages between the two ends of a connection (FI_EP_MSG).
    Messages,
    /// RMA without connections (FI_EP_RDM).
    Rma,
}

/// The offer of `provider` for endpoints on `interface`. A `port` of 0 is for endpoints that
/// connect.
pub(super) fn offer(
    blame: &Blame,
    interface: IpAddr,
    port: u16,
    purpose: Use,
) -> Result<Info, CallError> {
    let (kind, capabilities) = match purpose {
        Use::Messages => (fi::FI_EP_MSG, fi::FI_MSG),
        Use::Rma => (fi::FI_EP_RDM, fi::FI_RMA),
    };
    let library = blame.library;
    let invalid = |_| blame.error("fi_getinfo", libc::EINVAL);
    let node = CString::new(interface.to_string()).map_err(invalid)?;
    let service = CString::new(port.to_string()).map_err(invalid)?;
    let name = CString::new(blame.provider.as_str()).map_err(invalid)?;
    let hints = Info::empty(library);
    let hints = hints.ok_or_else(|| blame.error("fi_allocinfo", libc::ENOMEM))?;
    // SAFETY: fi_dupinfo allocates all attributes that are set here. fi_freeinfo frees the name,
    // which malloc allocated.
    unsafe {
        let hints = hints.as_ptr();
        (*hints).caps = capabilities;
        (*(*hints).ep_attr).type_ = kind;
        (*(*hints).domain_attr).threading = fi::FI_THREAD_SAFE;
        (*(*hints).fabric_attr).prov_name = libc::strdup(name.as_ptr());
    }
    let mut found = ptr::null_mut();
    // SAFETY: the strings and the hints outlive the call.
    let status = unsafe {
        let flags = fi::FI_SOURCE | fi::FI_NUMERICHOST;
        let (node, service, hints) = (node.as_ptr(), service.as_ptr(), hints.as_ptr());
        (library.fi_getinfo)(INTERFACE, node, service, flags, hints, &mut found)
    };
    blame.done("fi_getinfo", status as isize)?;
    Info::new(library, found).ok_or_else(|| blame.error("fi_getinfo", libc::ENODATA))
}

/// The names of this host's providers that offer connected endpoints, each once.
pub(super) fn providers(library: Library) -> Vec<String> {
    let mut found = ptr::null_mut();
    let Some(hints) = Info::empty(library) else { return Vec::new() };
    // SAFETY: fi_dupinfo allocates the attributes; the hints outlive the call.
    let status = unsafe {
        (*(*hints.as_ptr()).ep_attr).type_ = fi::FI_EP_MSG;
        (*hints.as_ptr()).caps = fi::FI_MSG;
        (library.fi_getinfo)(INTERFACE, ptr::null(), ptr::null(), 0, hints.as_ptr(), &mut found)
    };
    let found = Info::new(library, found);
    let Some(first) = found.filter(|_| status == 0) else { return Vec::new() };
    let mut names = Vec::new();
    let mut at = first.as_ptr();
    while !at.is_null() {
        // SAFETY: an entry of a list that libfabric made and `first` holds. Every provider has a
        // name.
        let name = unsafe { CStr::from_ptr((*(*at).fabric_attr).prov_name) };
        names.push(name.to_string_lossy().into_owned());
        // SAFETY: an entry of a list that libfabric made and `first` holds.
        at = unsafe { (*at).next };
    }
    names.sort();
    names.dedup();
    names
}

/// A fabric on one interface, with its queues and a passive endpoint. The fields are closed in
/// their order.
pub(super) struct Network {
    listener: Fid<fi::fid_pep>,
    completions: Queue,
    events: Fid<fi::fid_eq>,
    domain: Fid<fi::fid_domain>,
    fabric: Fid<fi::fid_fabric>,
    /// The offer of which connecting endpoints are made.
    active: Info,
    pub(super) blame: Blame,
    next: AtomicUsize,
}

impl Network {
    /// Listens at `address`, whose port is not 0. A port of the provider's choice can't be read on
    /// big-endian machines, where fi_getname of the provider tcp takes a `size_t` for a
    /// `socklen_t`.
    ///
    /// # Errors
    /// A call failed; the port may be in use (EADDRINUSE).
    pub(super) fn listen(
        library: Library,
        provider: &str,
        address: SocketAddr,
    ) -> Result<Arc<Network>, CallError> {
        let blame = Blame::new(library, provider);
        let active = offer(&blame, address.ip(), 0, Use::Messages)?;
        let passive = offer(&blame, address.ip(), address.port(), Use::Messages)?;
        let mut fabric = ptr::null_mut();
        // SAFETY: the offer's attributes are valid until it is dropped.
        let attributes = unsafe { (*active.as_ptr()).fabric_attr };
        // SAFETY: the arguments outlive the call, and the new object is owned from its return on.
        let status = unsafe { (library.fi_fabric)(attributes, &mut fabric, ptr::null_mut()) };
        let fabric = blame.made("fi_fabric", status, fabric)?;

        let mut attributes = fi::fi_eq_attr { wait_obj: fi::FI_WAIT_FD, ..Default::default() };
        let mut events = ptr::null_mut();
        // SAFETY: the arguments outlive the call, and the new object is owned from its return on.
        let status = unsafe {
            fi::fi_eq_open(fabric.as_ptr(), &mut attributes, &mut events, ptr::null_mut())
        };
        let events = blame.made("fi_eq_open", status, events)?;

        let mut domain = ptr::null_mut();
        // SAFETY: the arguments outlive the call, and the new object is owned from its return on.
        let status = unsafe {
            fi::fi_domain(fabric.as_ptr(), active.as_ptr(), &mut domain, ptr::null_mut())
        };
        let domain = blame.made("fi_domain", status, domain)?;

        let completions = Queue::open(&domain, &blame)?;

        let mut listener = ptr::null_mut();
        // SAFETY: the arguments outlive the call, and the new object is owned from its return on.
        let status = unsafe {
            fi::fi_passive_ep(fabric.as_ptr(), passive.as_ptr(), &mut listener, ptr::null_mut())
        };
        let listener = blame.made("fi_passive_ep", status, listener)?;
        // SAFETY: both are open, and the listener is closed before the queue.
        let status = unsafe { fi::fi_bind(listener.fid(), events.fid(), 0) };
        blame.done("fi_pep_bind", status as isize)?;
        // SAFETY: the listener is open and bound to a queue.
        let status = unsafe { fi::fi_listen(listener.as_ptr()) };
        blame.done("fi_listen", status as isize)?;
        let next = AtomicUsize::new(0);
        Ok(Arc::new(Network { listener, completions, events, domain, fabric, active, blame, next }))
    }

    /// The next event of a connection, if there is one. Reading it first makes progress on arrived
    /// data.
    ///
    /// # Errors
    /// The queue itself failed.
    pub(super) fn next_event(self: &Arc<Network>) -> Result<Option<Event>, CallError> {
        // Holds an entry and the data that came with it; no provider has more.
        let mut entry = [0u64; 128];
        let mut kind = 0;
        // SAFETY: the buffer has `len` bytes, and is aligned for an entry.
        let status = unsafe {
            let len = size_of_val(&entry);
            fi::fi_eq_read(self.events.as_ptr(), &mut kind, entry.as_mut_ptr().cast(), len, 0)
        };
        match -(status as i32) {
            libc::EAGAIN => return Ok(None),
            fi::FI_EAVAIL => return self.next_failure(),
            code if code > 0 => return Err(self.blame.error("fi_eq_read", code)),
            _ => {}
        }
        // SAFETY: the buffer's own bytes, initialized.
        let all =
            unsafe { std::slice::from_raw_parts(entry.as_ptr().cast::<u8>(), size_of_val(&entry)) };
        // SAFETY: libfabric wrote an entry of this type, as it does for all events of connections.
        let entry = unsafe { &*entry.as_ptr().cast::<fi::fi_eq_cm_entry>() };
        let connection = Connection(entry.fid as usize);
        Ok(match kind {
            fi::FI_CONNREQ => Info::new(self.blame.library, entry.info).map(|info| {
                let (network, start) = (self.clone(), size_of::<fi::fi_eq_cm_entry>());
                let words = all.get(start..status as usize).unwrap_or_default().to_vec();
                Event::Request(Request { info, words, network, open: true })
            }),
            fi::FI_CONNECTED => Some(Event::Connected(connection)),
            fi::FI_SHUTDOWN => Some(Event::Closed(connection)),
            _ => None,
        })
    }

    fn next_failure(&self) -> Result<Option<Event>, CallError> {
        let mut entry = fi::fi_eq_err_entry::default();
        // SAFETY: the entry outlives the call; it offers no buffer for provider data.
        let status = unsafe { fi::fi_eq_readerr(self.events.as_ptr(), &mut entry, 0) };
        if status < 0 {
            return Ok(None);
        }
        let error = self.blame.error("fi_connect", entry.err);
        Ok(Some(Event::Failed(Connection(entry.fid as usize), error)))
    }

    /// Appends completions to `ended`. Returns whether there were any.
    ///
    /// # Errors
    /// The queue itself failed.
    pub(super) fn completions(&self, ended: &mut Vec<Completion>) -> Result<bool, CallError> {
        self.completions.read(|operation| {
            let RawCompletion { context, received, len, failed } = operation;
            let call = if received { "fi_recv" } else { "fi_send" };
            let outcome = match failed {
                Some(code) => CompletionResult::Failed(self.blame.error(call, code)),
                None if received => CompletionResult::Received(len),
                None => CompletionResult::Sent,
            };
            ended.push(Completion::new(context, outcome));
        })
    }

    /// The descriptors that become readable when there may be an event or a completion.
    ///
    /// # Errors
    /// The provider has none.
    pub(super) fn descriptors(&self) -> Result<[RawFd; 2], CallError> {
        Ok([descriptor(&self.events, &self.blame)?, self.completions.descriptor()?])
    }

    /// Whether a sleep on the descriptors is safe: no event or completion waits.
    pub(super) fn may_wait(&self) -> bool {
        self.completions.may_wait(&self.fabric, Some(&self.events))
    }

    /// The number of a new endpoint, for the contexts of its operations. No two endpoints have the
    /// same.
    fn next_number(&self) -> Result<usize, CallError> {
        let number = self.next.fetch_add(1, Relaxed);
        if number >> (usize::BITS - SLOT_BITS) != 0 {
            self.next.fetch_sub(1, Relaxed);
            return Err(self.blame.error("fi_endpoint", libc::EMFILE));
        }
        Ok(number)
    }
}

/// The connection of an event, as [`Endpoint::connection`] names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Connection(usize);

/// An event of a connection.
pub(super) enum Event {
    /// A peer, or a stranger, requests a connection.
    Request(Request),
    /// The connection is established.
    Connected(Connection),
    /// The other end is gone.
    Closed(Connection),
    /// The connection couldn't be established, or broke.
    Failed(Connection, CallError),
}

/// A request for a connection. Dropping it rejects the connection.
pub(super) struct Request {
    info: Info,
    /// The data of the request, which a stranger may have sent: any bytes, of any length.
    words: Vec<u8>,
    network: Arc<Network>,
    open: bool,
}

impl Request {
    /// The data that came with the request.
    pub(super) fn words(&self) -> &[u8] {
        &self.words
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if self.open {
            // SAFETY: the handle came with the request. It is accepted or rejected only once, as
            // `open` ensures.
            unsafe {
                let handle = (*self.info.as_ptr()).handle;
                fi::fi_reject(self.network.listener.as_ptr(), handle, ptr::null(), 0);
            }
        }
    }
}

/// The end of an operation, to be passed to its endpoint.
#[derive(Debug)]
pub(super) struct Completion {
    endpoint: usize,
    slot: u8,
    outcome: CompletionResult,
}

/// The result of an operation.
#[derive(Debug)]
pub(super) enum CompletionResult {
    /// The send is complete: its memory is free.
    Sent,
    /// The receive is complete: this number of bytes is in the slot.
    Received(usize),
    /// The operation failed.
    Failed(CallError),
}

impl Completion {
    fn new(context: usize, outcome: CompletionResult) -> Completion {
        Completion { endpoint: context >> SLOT_BITS, slot: context as u8, outcome }
    }

    /// The number of the endpoint.
    pub(super) fn endpoint(&self) -> usize {
        self.endpoint
    }
}

/// Memory for one operation at a time.
struct Slot {
    memory: NonNull<u8>,
    len: usize,
    posted: bool,
}

// SAFETY: owned memory, without ties to a thread.
unsafe impl Send for Slot {}

impl Slot {
    fn new(len: usize) -> Slot {
        let memory = Box::into_raw(vec![0u8; len].into_boxed_slice());
        // SAFETY: a box is never null.
        Slot { memory: unsafe { NonNull::new_unchecked(memory.cast()) }, len, posted: false }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // SAFETY: it was made from a box of this length. An endpoint is closed before its slots are
        // dropped, so no operation uses the memory.
        drop(unsafe {
            Box::from_raw(ptr::slice_from_raw_parts_mut(self.memory.as_ptr(), self.len))
        });
    }
}

/// One end of a connection, with the memory of its operations. The fields are dropped in their
/// order.
pub(super) struct Endpoint {
    endpoint: Fid<fi::fid_ep>,
    slots: Vec<Slot>,
    number: usize,
    network: Arc<Network>,
}

impl Endpoint {
    /// Starts to connect to the listener at `to`, which receives `words` with the request. `slots`
    /// has the lengths of the first slots.
    ///
    /// # Errors
    /// A call failed.
    pub(super) fn connect(
        network: &Arc<Network>,
        to: SocketAddr,
        words: &[u8],
        slots: &[usize],
    ) -> Result<Endpoint, CallError> {
        let endpoint = Endpoint::open(network, &network.active, slots)?;
        let (opened, address) = (endpoint.endpoint.as_ptr(), Sockaddr::new(to));
        // SAFETY: the endpoint, the address and the words outlive the call.
        let status =
            unsafe { fi::fi_connect(opened, address.as_ptr(), words.as_ptr().cast(), words.len()) };
        network.blame.done("fi_connect", status as isize)?;
        Ok(endpoint)
    }

    /// Accepts a connection. `slots` has the lengths of the first slots; a receive is posted on
    /// each slot of `ears`.
    ///
    /// # Errors
    /// A call failed.
    pub(super) fn accept(
        mut request: Request,
        slots: &[usize],
        ears: &[u8],
    ) -> Result<Endpoint, CallError> {
        let mut endpoint = Endpoint::open(&request.network, &request.info, slots)?;
        for &slot in ears {
            endpoint.post_receive(slot)?;
        }
        // SAFETY: the endpoint was made of the request's info, and is enabled.
        let status = unsafe { fi::fi_accept(endpoint.endpoint.as_ptr(), ptr::null(), 0) };
        endpoint.network.blame.done("fi_accept", status as isize)?;
        // If a step above fails, the request's drop rejects the handle, after the endpoint was
        // dropped, which has its socket.
        request.open = false;
        Ok(endpoint)
    }

    fn open(network: &Arc<Network>, info: &Info, slots: &[usize]) -> Result<Endpoint, CallError> {
        let blame = &network.blame;
        let number = network.next_number()?;
        let mut endpoint = ptr::null_mut();
        // SAFETY: the domain and the info are open; the endpoint holds the network, so it is closed
        // before them.
        let status = unsafe {
            let domain = network.domain.as_ptr();
            fi::fi_endpoint(domain, info.as_ptr(), &mut endpoint, ptr::null_mut())
        };
        let endpoint = blame.made("fi_endpoint", status, endpoint)?;
        // SAFETY: all are open, and the queues outlive the endpoint.
        unsafe {
            let bound = fi::fi_bind(endpoint.fid(), network.events.fid(), 0);
            blame.done("fi_ep_bind", bound as isize)?;
            let both = fi::FI_SEND | fi::FI_RECV;
            let bound = fi::fi_bind(endpoint.fid(), network.completions.fid(), both);
            blame.done("fi_ep_bind", bound as isize)?;
            blame.done("fi_enable", fi::fi_enable(endpoint.fid()) as isize)?;
        }
        let network = network.clone();
        let slots = slots.iter().map(|&len| Slot::new(len)).collect();
        Ok(Endpoint { endpoint, slots, number, network })
    }

    /// The number by which completions name the endpoint.
    pub(super) fn number(&self) -> usize {
        self.number
    }

    /// The name by which events refer to the endpoint. Closing the endpoint discards its events.
    pub(super) fn connection(&self) -> Connection {
        Connection(self.endpoint.as_ptr() as usize)
    }

    /// Adds a slot of length `len`. Returns its number.
    ///
    /// # Panics
    /// After 256 slots.
    pub(super) fn add_slot(&mut self, len: usize) -> u8 {
        let slot = u8::try_from(self.slots.len()).expect("an endpoint has few slots");
        self.slots.push(Slot::new(len));
        slot
    }

    /// The memory of a slot, initialized. The caller must use it only before the slot is posted.
    ///
    /// # Panics
    /// If the slot is posted.
    pub(super) fn memory(&mut self, slot: u8) -> NonNull<[u8]> {
        let slot = &self.slots[usize::from(slot)];
        assert!(!slot.posted, "the slot is in use");
        NonNull::slice_from_raw_parts(slot.memory, slot.len)
    }

    /// The first `len` bytes of a slot.
    ///
    /// # Panics
    /// If the slot is posted, or shorter than `len`.
    pub(super) fn bytes(&self, slot: u8, len: usize) -> &[u8] {
        let slot = &self.slots[usize::from(slot)];
        assert!(!slot.posted && len <= slot.len, "the slot is in use, or shorter");
        // SAFETY: initialized memory of at least that length. No operation uses it, and posting
        // takes `&mut self`.
        unsafe { std::slice::from_raw_parts(slot.memory.as_ptr(), len) }
    }

    /// The first `len` bytes of a slot, to be changed.
    ///
    /// # Panics
    /// If the slot is posted, or shorter than `len`.
    pub(super) fn bytes_mut(&mut self, slot: u8, len: usize) -> &mut [u8] {
        let slot = &mut self.slots[usize::from(slot)];
        assert!(!slot.posted && len <= slot.len, "the slot is in use, or shorter");
        // SAFETY: initialized memory of at least that length. No operation uses it, and `&mut self`
        // excludes other access.
        unsafe { std::slice::from_raw_parts_mut(slot.memory.as_ptr(), len) }
    }

    /// Writes into a slot, from offset `at` on.
    ///
    /// # Panics
    /// If the slot is posted, or `bytes` don't fit it.
    pub(super) fn write(&mut self, slot: u8, at: usize, bytes: &[u8]) {
        let slot = &mut self.slots[usize::from(slot)];
        let room = slot.len.checked_sub(at).is_some_and(|room| bytes.len() <= room);
        assert!(!slot.posted && room, "the slot is in use, or shorter");
        // SAFETY: memory of at least that length. No operation uses it, and `&mut self` excludes
        // other access.
        unsafe {
            let to = slot.memory.as_ptr().add(at);
            ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
    }

    /// Posts a receive on a slot. Messages fill slots in posting order. Returns `false` if the
    /// provider has no room, as is the case once the connection has ended.
    ///
    /// # Errors
    /// The provider refuses it.
    ///
    /// # Panics
    /// If the slot is posted.
    pub(super) fn post_receive(&mut self, slot: u8) -> Result<bool, CallError> {
        let context = self.context(slot);
        let entry = &mut self.slots[usize::from(slot)];
        assert!(!entry.posted, "the slot is in use");
        // SAFETY: the memory is valid for `entry.len` bytes until the operation has ended: it is
        // freed after the endpoint is closed, and nobody touches it before `complete`.
        let status = unsafe {
            let memory = entry.memory.as_ptr().cast();
            let any = fi::FI_ADDR_UNSPEC; // A connection has only one other end.
            fi::fi_recv(self.endpoint.as_ptr(), memory, entry.len, ptr::null_mut(), any, context)
        };
        if status as i32 == -libc::EAGAIN {
            return Ok(false);
        }
        self.network.blame.done("fi_recv", status)?;
        entry.posted = true;
        Ok(true)
    }

    /// Posts a send of the first `len` bytes of a slot. Returns `false`, without any effect, if the
    /// provider has no room.
    ///
    /// # Errors
    /// The provider refuses it.
    ///
    /// # Panics
    /// If the slot is posted, or shorter than `len`.
    pub(super) fn post_send(&mut self, slot: u8, len: usize) -> Result<bool, CallError> {
        let context = self.context(slot);
        let entry = &mut self.slots[usize::from(slot)];
        assert!(!entry.posted && len <= entry.len, "the slot is in use, or shorter");
        // SAFETY: the memory is valid for `len` bytes until the operation has ended: it is freed
        // after the endpoint is closed, and nobody touches it before `complete`.
        let status = unsafe {
            let memory = entry.memory.as_ptr().cast();
            let any = fi::FI_ADDR_UNSPEC;
            fi::fi_send(self.endpoint.as_ptr(), memory, len, ptr::null_mut(), any, context)
        };
        if status as i32 == -libc::EAGAIN {
            return Ok(false);
        }
        self.network.blame.done("fi_send", status)?;
        entry.posted = true;
        Ok(true)
    }

    /// Frees the slot of an operation that has ended. Returns the slot and the result.
    ///
    /// # Panics
    /// If the operation belongs to another endpoint.
    pub(super) fn complete(&mut self, completion: Completion) -> (u8, CompletionResult) {
        assert_eq!(completion.endpoint, self.number, "another endpoint's completion");
        if let Some(slot) = self.slots.get_mut(usize::from(completion.slot)) {
            slot.posted = false;
        }
        (completion.slot, completion.outcome)
    }

    fn context(&self, slot: u8) -> *mut c_void {
        ptr::without_provenance_mut(self.number << SLOT_BITS | usize::from(slot))
    }
}
