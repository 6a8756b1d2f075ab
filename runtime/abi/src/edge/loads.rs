//! Loads and stores of a program that was compiled with `mpicc --check`.
//!
//! Such a program contains the functions that its compiler calls before loads and stores. They are
//! compiled with the program, since only C knows the address of its caller. Each of them looks at
//! the table that [`longshore_watched_pages`] returns, and calls [`longshore_touched`] if the page
//! is watched: if `--check` is on, and the page has memory of a window or of an operation.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::sync::atomic::AtomicU16;

use crate::edge::{line, state};

/// The number of watched areas in the pages of 4096 bytes, by the last 16 bits of their numbers.
// SAFETY: no other library has a symbol with this library's name in it.
#[unsafe(no_mangle)]
pub extern "C" fn longshore_watched_pages() -> *const AtomicU16 {
    longshore::watched_pages().as_ptr()
}

/// The program is about to load bytes, or to store to them. `place` is the address to which the
/// compiler's call returns.
// SAFETY: no other library has a symbol with this library's name in it.
#[unsafe(no_mangle)]
pub extern "C" fn longshore_touched(
    start: *const c_void,
    bytes: usize,
    stores: c_int,
    place: *const c_void,
) {
    let Some(state) = state::get() else { return };
    let (start, place) = (start.addr(), place.addr().wrapping_sub(1));
    let bytes = start..start.saturating_add(bytes);
    state.rank().touched(bytes, stores != 0, place, line::of_address);
}
