//! The quick ways of the calls that programs make most.
//!
//! They borrow objects by their handles, without a reference count, and take usual arguments only.
//! A program may free an object that a call of another thread waits with. So calls that wait borrow
//! only objects for which no other thread can do that. Where anything is unusual, the function
//! returns `None`, and the long way does all of the call.
//!
//! | file | holds |
//! |---|---|
//! | `mod.rs` | what all of them need |
//! | [`window`] | operations on windows, and what completes them |
//! | [`collective`] | collective calls that wait |
//! | [`message`] | sends and receives that wait, sends that are complete at once, receives with requests |

mod collective;
mod message;
mod window;

use std::ffi::c_int;

use longshore::Type;

use crate::call::raise;
use crate::datatype::compiled;
use crate::edge::arg::Buffer;
use crate::edge::elements::Elements;
use crate::edge::fault::Raiser;
use crate::edge::state;

pub use collective::*;
pub use message::*;
pub use window::*;

/// Whether a buffer is memory: neither null nor MPI_IN_PLACE.
#[inline]
pub fn is_memory(buffer: Buffer) -> bool {
    buffer.address().addr() > 1
}

/// Elements, unless another thread may free their type during a call that waits.
#[inline]
fn lasting(elements: Elements) -> Option<Elements<&'static Type>> {
    match elements.datatype.is_predefined() || !state::is_threaded() {
        true => Some(elements.of(compiled(elements.datatype)?)),
        false => None,
    }
}

/// The code of a call that was made on this object.
#[inline]
fn coded(call: &'static str, raiser: Raiser, outcome: longshore::Result<()>) -> Option<c_int> {
    match outcome {
        Ok(()) => Some(0),
        Err(error) => Some(failed(call, raiser, error)),
    }
}

#[cold]
fn failed(call: &'static str, raiser: Raiser, error: longshore::Error) -> c_int {
    raise(call, raiser, &error.into())
}
