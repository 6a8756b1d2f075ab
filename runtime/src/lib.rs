//! One-sided communication (RMA) between unlike machines.
