//! RMA and datatype benches.

pub mod case;
pub mod datatypes;
pub mod environment;
pub mod launch;
pub mod peers;
pub mod progress;
pub mod report;
pub mod rma;
pub mod row;
pub mod worker;
