//! RMA and datatype benches.

pub mod datatypes;
