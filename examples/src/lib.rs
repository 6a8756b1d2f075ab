//! Programs a user would write, each also an end-to-end test.

pub mod hex;
