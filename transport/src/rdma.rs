//! Remote memory access (RMA): the trait, its transfers and its memory registrations.
//!
//! Unsafe code is needed only where a caller or a handle guarantees that memory stays valid: two
//! methods of the trait, and the handles [`Transfer`] and [`Room`].
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::Duration;

use crate::error::{LinkError, Refused};

/// Access to memory that peers have exposed: an optional capability of a
/// [`Link`](crate::link::Link).
///
/// A completed access is complete at the peer too. Accesses and frames may overtake each other.
///
/// Progress needs polling at both sides: the peer's link by
/// [`receive`](crate::link::Link::receive), this side's link by `receive` or by
/// [`poll`](Rdma::poll). The peer takes part in no other way.
pub trait Rdma: Send + Sync {
    /// The libfabric provider's name.
    fn provider(&self) -> &str;

    /// The most stretches of the peer's memory that one access takes.
    fn stretch_limit(&self) -> usize;

    /// Whether this rank can access memory of `peer`.
    fn reaches(&self, peer: u32) -> bool;

    /// Registers memory. Until the handle is dropped, any peer that has its key, a random number,
    /// may access the memory.
    ///
    /// # Errors
    /// The network refuses the registration.
    ///
    /// # Safety
    /// The memory is valid for reads and writes until the handle is dropped. Until then no
    /// reference to it exists.
    unsafe fn expose(
        &self,
        memory: NonNull<u8>,
        len: usize,
    ) -> Result<Box<dyn Registration>, LinkError>;

    /// Starts an access to `at`, whose stretches have `len` bytes in total. The access fails if the
    /// peer is gone or exposes no such memory; the link then treats the peer as lost.
    ///
    /// # Errors
    /// [`Refused::WouldBlock`] while there is no room: poll, then try again. [`Refused::Failed`]
    /// when there will never be room. Neither touches the memory.
    ///
    /// # Safety
    /// The memory is valid for the access: for reads if it writes to the peer, for writes if it
    /// reads from the peer. Nothing else accesses the memory in conflict with that. Both hold until
    /// the access [is over](Outcome::is_over), or until the link and this handle are dropped.
    unsafe fn start(
        &self,
        access: Access,
        at: &RemoteMemory<'_>,
        memory: NonNull<u8>,
        len: usize,
        outcome: &Arc<Outcome>,
    ) -> Result<(), Refused>;

    /// Takes in the accesses that have ended.
    ///
    /// # Errors
    /// The network itself failed.
    fn poll(&self) -> Result<(), LinkError>;
}

/// The direction of an access to a peer's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// From the peer's memory to this rank's.
    Read,
    /// From this rank's memory to the peer's.
    Write,
}

/// The state of an access: under way, done or failed.
#[derive(Debug, Default)]
pub struct Outcome(AtomicU8);

const DONE: u8 = 1;
const FAILED: u8 = 2;

impl Outcome {
    /// Whether the access has succeeded: the data are in place.
    #[inline]
    pub fn is_done(&self) -> bool {
        // Acquire pairs with the release in `end`.
        self.0.load(Ordering::Acquire) == DONE
    }

    /// Whether the access has ended, well or not. It touches no memory any more.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.0.load(Ordering::Acquire) != 0
    }

    /// Records the end of the access. Only links call it.
    pub fn end(&self, done: bool) {
        self.0.store(if done { DONE } else { FAILED }, Ordering::Release);
    }
}

/// A memory registration, which dropping this ends.
pub trait Registration: Send + Sync {
    /// The key by which peers name the memory.
    fn key(&self) -> u64;
}

/// A part of a peer's exposed memory.
#[derive(Debug, Clone, Copy)]
pub struct RemoteMemory<'a> {
    /// The peer.
    pub peer: u32,
    /// The key of the peer's registration.
    pub key: u64,
    /// Offset in the registered memory and length in bytes, in the order of the data.
    pub stretches: &'a [(u64, u64)],
}

/// An access with the local memory that it needs. Dropping it waits for its end.
pub struct Transfer {
    rdma: Arc<dyn Rdma>,
    start: NonNull<u8>,
    len: usize,
    /// The local memory, if this owns it.
    owned: Option<Vec<u8>>,
    started: bool,
    outcome: Arc<Outcome>,
}

// SAFETY: the memory is owned, or promised to this handle only; bytes have no ties to a thread. All
// other fields are Send.
unsafe impl Send for Transfer {}

impl Transfer {
    /// An access from or to `buffer`, which [`into_buffer`](Transfer::into_buffer) gives back.
    pub fn of_buffer(rdma: &Arc<dyn Rdma>, mut buffer: Vec<u8>) -> Transfer {
        let rdma = rdma.clone();
        let start = NonNull::from(buffer.as_mut_slice()).cast();
        let (len, outcome) = (buffer.len(), Arc::default());
        Transfer { rdma, start, len, owned: Some(buffer), started: false, outcome }
    }

    /// An access from or to memory that this doesn't own.
    ///
    /// # Safety
    /// The memory is valid for reads, or for writes if the access reads from the peer, until this
    /// is dropped. Nothing else accesses it in conflict with that until then. The returned value is
    /// dropped, not leaked.
    pub unsafe fn of_memory(rdma: &Arc<dyn Rdma>, start: NonNull<u8>, len: usize) -> Transfer {
        let rdma = rdma.clone();
        Transfer { rdma, start, len, owned: None, started: false, outcome: Arc::default() }
    }

    /// Starts the access, once.
    ///
    /// # Errors
    /// Those of [`Rdma::start`].
    pub fn start(&mut self, access: Access, at: &RemoteMemory<'_>) -> Result<(), Refused> {
        if !self.started {
            // SAFETY: the memory is owned or promised to this handle. Its drop waits until the
            // access is over, and if it is leaked, an owned buffer is never freed. Nothing else
            // accesses an owned buffer until then, and moving the vector doesn't move its buffer.
            unsafe { self.rdma.start(access, at, self.start, self.len, &self.outcome)? };
            self.started = true;
        }
        Ok(())
    }

    /// Whether the access has succeeded: the data are in place.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.outcome.is_done()
    }

    /// Whether the access has ended, well or not.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.outcome.is_over()
    }

    /// The buffer, once the access is over; `None` for memory that this doesn't own.
    pub fn into_buffer(mut self) -> Option<Vec<u8>> {
        self.wait();
        self.owned.take()
    }

    fn wait(&self) {
        while self.started && !self.outcome.is_over() {
            if let Err(error) = self.rdma.poll() {
                // The access can't be cancelled, and which memory it still touches is unknown.
                eprintln!("longshore: lost the network in an access to memory: {error}");
                std::process::abort();
            }
            if !self.outcome.is_over() {
                thread::sleep(PAUSE);
            }
        }
    }
}

/// The pause between two polls for an access whose caller has given up: a peer is gone, or the job
/// ends.
const PAUSE: Duration = Duration::from_micros(20);

impl Drop for Transfer {
    fn drop(&mut self) {
        self.wait();
    }
}

/// Owned memory, zeroed at first, that is registered until this is dropped.
pub struct Room {
    registration: Box<dyn Registration>,
    _memory: Box<[UnsafeCell<u8>]>,
}

impl Room {
    /// Registers `len` bytes.
    ///
    /// # Errors
    /// Those of [`Rdma::expose`].
    pub fn new(rdma: &dyn Rdma, len: usize) -> Result<Room, LinkError> {
        let memory: Box<[_]> = std::iter::repeat_with(|| UnsafeCell::new(0)).take(len).collect();
        let start = NonNull::from(&*memory).cast();
        // SAFETY: this handle owns the memory, and drops its fields in their order: the
        // registration first. It gives out no reference to the content of the cells.
        let registration = unsafe { rdma.expose(start, len)? };
        Ok(Room { registration, _memory: memory })
    }

    /// The key by which peers name the memory.
    pub fn key(&self) -> u64 {
        self.registration.key()
    }
}
