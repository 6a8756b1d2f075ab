//! The frame of each call: whether it is allowed now, and where its error goes.
//!
//! | file | holds |
//! |---|---|
//! | `mod.rs` | [`enter`], through which the export of every function goes |
//! | [`error`] | raising errors, on the object that MPI names (MPI-5.0 section 9.3) |
//! | [`attempt`], [`quick`] | ways around the frame, for the calls that programs make most |

pub(crate) mod attempt;
pub(crate) mod error;
pub(crate) mod quick;

use std::ffi::c_int;

use crate::edge::fault::{Fault, Raiser, Result};
use crate::edge::state::{self, Phase};
use crate::environment::tool;

/// When a function may be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Between MPI_Init and MPI_Finalize.
    Active,
    /// At any time.
    Always,
}

/// Runs the body of a function, and raises its error.
pub fn enter(
    call: &'static str,
    when: When,
    raiser: Raiser,
    body: impl FnOnce() -> Result<()>,
) -> c_int {
    if when == When::Active && !state::is_active() {
        return misplaced(call);
    }
    match body() {
        Ok(()) => 0,
        Err(fault) => raise(call, raiser, &fault),
    }
}

/// Gives an error to the handler of its object, and returns its code. Tools have no handlers.
#[cold]
pub fn raise(call: &'static str, raiser: Raiser, fault: &Fault) -> c_int {
    if call.starts_with("MPI_T_") {
        return tool::code_of(fault);
    }
    error::raise(call, fault.raiser().unwrap_or(raiser), fault)
}

/// A call before MPI_Init or after MPI_Finalize. It ends the process, unless that is ending
/// already: its exit handlers may call MPI.
#[cold]
fn misplaced(call: &'static str) -> c_int {
    let when = match state::phase() {
        Phase::Before => "before MPI_Init",
        Phase::After => "after MPI_Finalize",
        Phase::Active | Phase::Ending => return crate::edge::constants::ERR_OTHER,
    };
    state::say(&format!("longshore: {call} was called {when}, so the process ends\n"));
    state::end_process(crate::edge::constants::ERR_OTHER)
}
