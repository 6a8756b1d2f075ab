//! Windows: memory that the ranks of a communicator open to each other (MPI-5.0 chapter 12).

mod access;
mod api;
mod check;
mod checking;
mod claim;
mod core;
mod create;
mod directory;
mod flight;
mod info;
mod lane;
mod memo;
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
