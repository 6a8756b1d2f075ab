//! How bytes move: reliable, ordered frames between the ranks of a job, and the memory that they share.
//!
//! ```text
//!               Link                      reliable, ordered frames per peer; WouldBlock when full
//!    ┌───────────┼────────────┬──────────┬──────────┐
//!   shm         sim        fabric     Composed    Faulty     rings in shared memory; queues in one process; libfabric, between
//!    └─────┬─────┘                                           hosts; two links as one; a decorator of any
//!       Segment                           one sparse memory object per job and host: job state, doorbells,
//!                                         rings, and ranges that any rank allocates under a fair lock
//! ```
//!
//! This crate knows nothing of datatypes, nor of what is longer than a frame: its users cut that, and resume where a link
//! was full. Peers may differ in byte order and word size: every shared word is little-endian, of a defined width, and
//! refers to others by offset, never by address.

mod atomics;
pub mod composed;
#[cfg(feature = "fabric")]
pub mod fabric;
pub mod fault;
mod futex;
pub mod link;
pub mod lock;
#[cfg(feature = "protocol")]
pub mod protocol;
pub mod rdma;
pub mod segment;
pub mod shm;
pub mod signals;
pub mod sim;

pub use link::{Doorbell, Frame, FrameMut, Link, LinkError, Refused};
pub use rdma::{Access, Place, Rdma, Registration, Transfer};
pub use segment::{
    Cause, GRANULE, JobState, Mapping, Note, Range, RankState, Segment, SegmentError,
};
