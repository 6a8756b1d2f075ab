//! One-sided communication (RMA) between unlike machines.

pub mod job;
pub mod launcher;
