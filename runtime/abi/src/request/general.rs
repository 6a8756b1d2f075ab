//! Generalized requests: operations that the program carries out itself (MPI-5.0 section 13.2).
//!
//! The program says when its operation is complete, from any thread. Its functions run without a
//! lock, so they may make any call.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use crate::edge::arg::Address;
use crate::edge::constants::SUCCESS;
use crate::edge::fault::{Fault, Result};
use crate::edge::lock::lock;
use crate::edge::status::Status;

/// A function that fills the status of a complete operation.
type Query = unsafe extern "C" fn(*mut c_void, *mut Status) -> c_int;

/// A function that frees what belongs to the operation.
type Free = unsafe extern "C" fn(*mut c_void) -> c_int;

/// A function that cancels the operation, and learns whether it is complete.
type Cancel = unsafe extern "C" fn(*mut c_void, c_int) -> c_int;

/// An operation of the program.
pub struct General {
    query: Address,
    free: Address,
    cancel: Address,
    extra: Address,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_complete: bool,
    /// Whether its request was freed before it was complete.
    is_freed: bool,
}

/// Wakes the calls that wait for operations of the program.
static COMPLETED: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());

/// The longest time for which a call waits before it makes progress for other ranks.
const PAUSE: Duration = Duration::from_millis(1);

/// Waits until an operation of the program may be complete, for a short time at most.
pub fn pause() {
    let (mutex, completed) = &COMPLETED;
    drop(completed.wait_timeout(lock(mutex), PAUSE));
}

fn outcome(what: &str, code: c_int) -> Result<()> {
    match code {
        SUCCESS => Ok(()),
        _ => {
            let message = format!("the {what} function of a generalized request returned {code}");
            Err(Fault::returned(code, message))
        }
    }
}

impl General {
    pub fn new(query: Address, free: Address, cancel: Address, extra: Address) -> Arc<General> {
        Arc::new(General { query, free, cancel, extra, state: Mutex::default() })
    }

    pub fn is_complete(&self) -> bool {
        lock(&self.state).is_complete
    }

    /// The program says that the operation is complete.
    pub fn complete(&self) -> Result<()> {
        let is_freed = {
            let mut state = lock(&self.state);
            state.is_complete = true;
            state.is_freed
        };
        let (mutex, completed) = &COMPLETED;
        drop(lock(mutex));
        completed.notify_all();
        if is_freed { self.ask_free() } else { Ok(()) }
    }

    /// Frees the request. The operation goes on.
    pub fn release(&self) -> Result<()> {
        let is_complete = {
            let mut state = lock(&self.state);
            state.is_freed = true;
            state.is_complete
        };
        if is_complete { self.ask_free() } else { Ok(()) }
    }

    /// The status of the operation, which is complete.
    pub fn query(&self) -> Result<Status> {
        let mut status = Status::EMPTY;
        if self.query.is_null() {
            return Ok(status);
        }
        // SAFETY: the program passed the function as the query function of this request.
        let code = unsafe {
            let query: Query = std::mem::transmute(self.query.pointer());
            query(self.extra.pointer(), &raw mut status)
        };
        status.error = code;
        outcome("query", code).map(|()| status)
    }

    /// Ends a request whose operation is complete, and returns the status.
    pub fn end(&self) -> Result<Status> {
        let (status, freed) = (self.query(), self.ask_free());
        freed.and(status)
    }

    fn ask_free(&self) -> Result<()> {
        if self.free.is_null() {
            return Ok(());
        }
        // SAFETY: the program passed the function as the free function of this request.
        let code = unsafe {
            let free: Free = std::mem::transmute(self.free.pointer());
            free(self.extra.pointer())
        };
        outcome("free", code)
    }

    /// Asks the program to cancel the operation.
    pub fn cancel(&self) -> Result<()> {
        if self.cancel.is_null() {
            return Ok(());
        }
        let is_complete = self.is_complete();
        // SAFETY: the program passed the function as the cancel function of this request.
        let code = unsafe {
            let cancel: Cancel = std::mem::transmute(self.cancel.pointer());
            cancel(self.extra.pointer(), c_int::from(is_complete))
        };
        outcome("cancel", code)
    }
}
