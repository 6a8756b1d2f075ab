//! Functions of a program that are called for each datatype that is freed
//! (MPIX_Type_free_handler of proposal 0, docs/proposals.md).
#![allow(unsafe_code)]

use std::sync::Mutex;

use crate::edge::arg::Address;
use crate::edge::fault::{Fault, Result};
use crate::edge::handle::Handle;
use crate::edge::lock::lock;

/// A function of the program. Its handle is that of the datatype, which is still valid.
type Handler = unsafe extern "C" fn(Handle);

static HANDLERS: Mutex<Vec<Address>> = Mutex::new(Vec::new());

/// Registers a function. It stays until the job ends.
pub fn register(function: Address) -> Result<()> {
    if function.is_null() {
        return Err(Fault::argument("function is a null pointer"));
    }
    lock(&HANDLERS).push(function);
    Ok(())
}

/// Calls the functions for a datatype that is about to be freed, in the order of their
/// registration. They run without a lock, so they may make any call.
pub fn announce(handle: Handle) {
    let handlers = lock(&HANDLERS).clone();
    for handler in handlers {
        // SAFETY: the program passed the function, which isn't null, as one of this type.
        unsafe {
            let handler: Handler = std::mem::transmute(handler.pointer());
            handler(handle);
        }
    }
}
