//! RMA and datatype benches.
