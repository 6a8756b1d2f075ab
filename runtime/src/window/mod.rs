//! Windows: memory that the ranks of a communicator open to each other (MPI-5.0 chapter 12).
//!
//! It is built in layers, and each layer uses only those above it.
//!
//! ```text
//! info part directory state     hints; where memory lies; the table of attachments; epochs as a table
//! readings.rs                   what this rank has read of its notification counters
//! peers.rs                      the ranks of a window: Target, Mapping, control block, meeting
//! access.rs                     Epochs: the state of the epochs. A Permit is needed to operate
//! own/                          OwnMemory: this rank's memory, and how a target's is reached directly
//! flight.rs sites.rs            operations in flight, and their source lines for late errors
//! checking.rs                   reports to the checker
//! call.rs near.rs operation.rs  data only: what a call asks of its target; this rank's memory; both
//! memo.rs                       operations that were valid, and how each is carried out
//! observed.rs explained.rs      the window's counters, its open epochs, and what it has explained
//! parts.rs                      Parts: all of the above, one field each
//! waiting.rs claim.rs           how calls wait; how locks of targets are taken and released
//! check.rs                      check(Operation) -> Checked: every rule of an operation, once
//! path/                         PATHS: direct, rdma, peer, mailbox, message; mod.rs has the only loop
//! attempt.rs                    the first rung of the ladder, in the caller's code
//! observing.rs explain.rs       operations that are counted, traced, and explained
//! sync/                         fence, pscw, lock, flush, notify
//! lane.rs                       a fetched value on its way
//! core.rs core/ notified.rs     Core: one method for each call
//! create/                       offer, agree, build
//! api/                          Window, Epoch, Raw, Local, Request, Fetched
//! ```
//!
//! A new synchronisation call is a function in `sync/`, its step in `state`, a method of `Core`,
//! and one in `api/`. docs/design.md has the ladder that an operation climbs.

mod access;
mod api;
mod attempt;
mod call;
mod check;
mod checking;
mod claim;
mod core;
mod create;
mod directory;
mod explain;
mod explained;
mod flight;
mod info;
mod lane;
mod memo;
mod near;
mod notified;
mod observed;
mod observing;
mod operation;
mod own;
mod part;
mod parts;
mod path;
mod peers;
mod promise;
mod readings;
mod sites;
mod state;
mod sync;
#[cfg(test)]
mod tests;
mod unfreed;
mod waiting;

pub use api::{
    Allocated, Allocation, Attached, Buffers, Chain, Epoch, Fetched, Local, Passive, Raw, Request,
    Window,
};
pub use info::{AccumulateOps, Alignment, Info, Ordering as AccumulateOrdering};
pub use sync::lock::LockType;
