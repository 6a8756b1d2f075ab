//! RMA and datatype benches.

pub mod datatypes;
pub mod launch;
pub mod peers;
pub mod rma;
