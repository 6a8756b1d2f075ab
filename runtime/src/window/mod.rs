//! Windows: memory that the ranks of a communicator open to each other (MPI-5.0 chapter 12).

mod accumulate;
mod active;
mod api;
mod checking;
mod core;
mod create;
mod directory;
mod flight;
mod frame;
mod info;
mod operation;
mod pairs;
mod part;
mod passive;
mod remote;
mod single;
mod state;
mod targets;
#[cfg(test)]
mod tests;

pub use api::{
    Allocated, Attached, Buffers, Chain, Epoch, Fetched, Local, Passive, Raw, Request, Window,
};
pub use info::{AccumulateOps, Alignment, Info, Ordering as AccumulateOrdering};
pub use passive::LockType;
