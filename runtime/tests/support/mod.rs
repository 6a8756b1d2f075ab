//! Helpers that several tests of this crate share.
#![allow(dead_code)] // each test binary uses a part

use longshore::{Communicator, Info, Result, Window};

/// A shared window. If LONGSHORE_SIM_HOSTS places the ranks on different hosts, which share no
/// memory, an allocated window instead.
pub fn allocate_shared(world: &Communicator, size: i64, unit: i64, info: &Info) -> Result<Window> {
    match std::env::var_os("LONGSHORE_SIM_HOSTS") {
        Some(_) => Window::allocate(world, size, unit, info),
        None => Window::allocate_shared(world, size, unit, info),
    }
}

/// `ranks`, or LONGSHORE_TEST_RANKS if that is more: for tests that run on any number of ranks.
pub fn crowd(ranks: u32) -> u32 {
    let wanted = std::env::var("LONGSHORE_TEST_RANKS").ok().and_then(|ranks| ranks.parse().ok());
    wanted.unwrap_or(0).max(ranks)
}
