//! Moves bytes between the ranks of a job: reliable, ordered frames, and memory that ranks share.
//!
//! ```text
//!               Link                      reliable, ordered frames per peer; WouldBlock when full
//!    ┌───────────┼────────────┬──────────┬──────────┐
//!   shm         sim        fabric     Composed    Faulty
//!    └─────┬─────┘
//!       Segment                           one sparse memory object per job and host: job state,
//!                                         doorbells, rings, and ranges that ranks allocate under a
//!                                         fair lock
//! ```
//!
//! - [`shm`]: rings in memory that the ranks of one host share.
//! - [`sim`]: simulated ranks in one process, whose schedule a seed decides.
//! - [`fabric`]: libfabric endpoints, between hosts.
//! - [`composed`]: one link made of two, for peers on this host and for peers elsewhere.
//! - [`peer_memory`]: copies to and from the private memory of other processes of this host.
//! - [`fault`]: a wrapper around any link that injects faults.
//!
//! This crate knows nothing of datatypes, and nothing of messages longer than a frame. The runtime
//! above cuts a long message into frames, and resumes after a link was full.
//!
//! Peers may differ in byte order and word size. Every shared word is therefore little-endian, has
//! a defined width, and refers to other words by offset, never by address.

mod atomics;
#[doc(hidden)]
pub mod callers;
pub mod composed;
mod error;
pub mod fabric;
pub mod fault;
mod futex;
pub mod link;
pub mod lock;
mod mapping;
pub mod peer_memory;
pub mod protocol;
pub mod rdma;
#[doc(hidden)]
pub mod ring;
pub mod segment;
pub mod shm;
pub mod signals;
pub mod sim;

pub use error::{LinkError, Refused};
pub use link::{Doorbell, Frame, FrameMut, Link};
pub use peer_memory::{Offer, PeerMemory};
pub use rdma::{Access, Rdma, Registration, RemoteMemory, Transfer};
pub use segment::{
    CallSlot, Cause, GRANULE, JobState, Journal, Mapping, MemoryLimit, Note, OpenCalls, Range,
    RankState, Segment, SegmentError,
};
