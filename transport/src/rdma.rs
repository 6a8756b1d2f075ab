//! Direct access to the memory of peers: the trait, and what passes through it.
//!
//! Unsafe is here what promises memory: two methods of the trait, and the handles that keep such promises.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::Duration;

use crate::link::{LinkError, Refused};

/// Direct access to memory that peers have exposed: an optional capability of a [`Link`](crate::link::Link).
///
/// An access that is done is done at the other side too. Accesses and frames overtake each other. The peer takes part only as far as
/// its link has to be polled, by [`receive`](crate::link::Link::receive); this side's polls are that, and [`poll`](Rdma::poll).
pub trait Rdma: Send + Sync {
    /// The provider, as the network calls it.
    fn provider(&self) -> &str;

    /// The most stretches of memory at the other side that one access takes.
    fn stretch_limit(&self) -> usize;

    /// Whether a peer's memory can be reached this way.
    fn reaches(&self, peer: u32) -> bool;

    /// Exposes memory to whoever names its key, a random number, until the handle is dropped.
    ///
    /// # Errors
    /// The network refuses it.
    ///
    /// # Safety
    /// The memory is valid for reads and writes until the handle is dropped, and until then nobody has a reference to it.
    unsafe fn expose(
        &self,
        memory: NonNull<u8>,
        len: usize,
    ) -> Result<Box<dyn Registration>, LinkError>;

    /// Starts an access to a place, whose stretches are `len` bytes together. It fails if the peer is gone, or exposes no such memory;
    /// the link takes it for lost then.
    ///
    /// # Errors
    /// [`Refused::WouldBlock`] while there is no room: poll, then try again; [`Refused::Failed`] when there will never be. Neither
    /// touches the memory.
    ///
    /// # Safety
    /// The memory is valid for reads, or to read a place into it for writes, and nobody else uses it otherwise, until the access
    /// [is over](Outcome::is_over) or the link and this handle are dropped.
    unsafe fn start(
        &self,
        access: Access,
        at: &Place<'_>,
        memory: NonNull<u8>,
        len: usize,
        outcome: &Arc<Outcome>,
    ) -> Result<(), Refused>;

    /// Takes in what has ended.
    ///
    /// # Errors
    /// The network itself failed.
    fn poll(&self) -> Result<(), LinkError>;
}

/// What is done to a peer's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It is read into one's own.
    Read,
    /// It is written from one's own.
    Write,
}

/// How an access ended, once it has.
#[derive(Debug, Default)]
pub struct Outcome(AtomicU8);

const DONE: u8 = 1;
const FAILED: u8 = 2;

impl Outcome {
    /// Whether the data are where they should be.
    pub fn is_done(&self) -> bool {
        // Pairs with the release in `end`.
        self.0.load(Ordering::Acquire) == DONE
    }

    /// Whether the access has ended, well or not: it touches no memory any more.
    pub fn is_over(&self) -> bool {
        self.0.load(Ordering::Acquire) != 0
    }

    /// The access has ended. Called by links only.
    pub fn end(&self, done: bool) {
        self.0.store(if done { DONE } else { FAILED }, Ordering::Release);
    }
}

/// Memory that is exposed until this is dropped.
pub trait Registration: Send + Sync {
    /// What peers name it by.
    fn key(&self) -> u64;
}

/// Exposed memory of a peer.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The peer.
    pub peer: u32,
    /// The key of its memory.
    pub key: u64,
    /// Where in that memory, and how many bytes, in the order of the data.
    pub stretches: &'a [(u64, u64)],
}

/// An access, and the memory here that it needs. Dropped, it is waited for.
pub struct Transfer {
    rdma: Arc<dyn Rdma>,
    start: NonNull<u8>,
    len: usize,
    /// Its memory, if that is its own.
    owned: Option<Vec<u8>>,
    started: bool,
    outcome: Arc<Outcome>,
}

// SAFETY: the memory is its own or promised to it alone, bytes without ties to a thread; the rest is Send by itself.
unsafe impl Send for Transfer {}

impl Transfer {
    /// From or to a buffer, which [`into_buffer`](Transfer::into_buffer) gives back.
    pub fn of_buffer(rdma: &Arc<dyn Rdma>, mut buffer: Vec<u8>) -> Transfer {
        let rdma = rdma.clone();
        let start = NonNull::from(buffer.as_mut_slice()).cast();
        let (len, outcome) = (buffer.len(), Arc::default());
        Transfer { rdma, start, len, owned: Some(buffer), started: false, outcome }
    }

    /// From or to memory of another's.
    ///
    /// # Safety
    /// The memory is valid for reads, or for writes where a place is read, and nobody else uses it otherwise, until this is dropped,
    /// which it is.
    pub unsafe fn of_memory(rdma: &Arc<dyn Rdma>, start: NonNull<u8>, len: usize) -> Transfer {
        let rdma = rdma.clone();
        Transfer { rdma, start, len, owned: None, started: false, outcome: Arc::default() }
    }

    /// Starts it, once.
    ///
    /// # Errors
    /// As [`Rdma::start`].
    pub fn start(&mut self, access: Access, at: &Place<'_>) -> Result<(), Refused> {
        if !self.started {
            // SAFETY: the memory is this handle's or promised to it; its drop waits until the access is over, and without a drop
            // a buffer is never freed. Nobody else has a buffer until then, which moving the vector doesn't move.
            unsafe { self.rdma.start(access, at, self.start, self.len, &self.outcome)? };
            self.started = true;
        }
        Ok(())
    }

    /// Whether the data are where they should be.
    pub fn is_done(&self) -> bool {
        self.outcome.is_done()
    }

    /// Whether the access has ended, well or not.
    pub fn is_over(&self) -> bool {
        self.outcome.is_over()
    }

    /// The buffer, once the access is over; nothing of memory that was another's.
    pub fn into_buffer(mut self) -> Option<Vec<u8>> {
        self.wait();
        self.owned.take()
    }

    fn wait(&self) {
        while self.started && !self.outcome.is_over() {
            if let Err(error) = self.rdma.poll() {
                // What is under way can't be called back, and whose memory it touches can't be told.
                eprintln!("longshore: lost the network in an access to memory: {error}");
                std::process::abort();
            }
            if !self.outcome.is_over() {
                thread::sleep(PAUSE);
            }
        }
    }
}

/// Between two looks at an access whose caller has given up: a peer is gone, or the job ends.
const PAUSE: Duration = Duration::from_micros(20);

impl Drop for Transfer {
    fn drop(&mut self) {
        self.wait();
    }
}

/// Memory of its own, zeros at first, that is exposed until this is dropped.
pub struct Room {
    registration: Box<dyn Registration>,
    _memory: Box<[UnsafeCell<u8>]>,
}

impl Room {
    /// Exposes so many bytes.
    ///
    /// # Errors
    /// As [`Rdma::expose`].
    pub fn new(rdma: &dyn Rdma, len: usize) -> Result<Room, LinkError> {
        let memory: Box<[_]> = std::iter::repeat_with(|| UnsafeCell::new(0)).take(len).collect();
        let start = NonNull::from(&*memory).cast();
        // SAFETY: the memory is this handle's, whose fields are dropped in their order, and it gives nobody a reference to what
        // is in the cells.
        let registration = unsafe { rdma.expose(start, len)? };
        Ok(Room { registration, _memory: memory })
    }

    /// What peers name it by.
    pub fn key(&self) -> u64 {
        self.registration.key()
    }
}
