//! RMA and datatype benches.

pub mod case;
pub mod datatypes;
pub mod launch;
pub mod peers;
pub mod rma;
pub mod row;
pub mod worker;
