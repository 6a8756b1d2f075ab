//! Raising errors, and the error handlers of objects (MPI-5.0 section 9.3).

use std::ffi::c_int;
use std::sync::Arc;

use crate::communicator::{Comm, own_of};
use crate::edge::arg::Address;
use crate::edge::constants::{COMM_SELF, COMM_WORLD};
use crate::edge::fault::{Fault, Raiser, Result};
use crate::edge::handle::{Handle, Kind, Object, find};
use crate::edge::state;
use crate::environment::session::Session;
use crate::file::File;
use crate::objects::codes;
use crate::objects::errhandler::{Errhandler, create};
use crate::window::Win;

/// Gives an error to its object's handler, and returns its code.
pub fn raise(call: &str, raiser: Raiser, fault: &Fault) -> c_int {
    let code = fault.code();
    let (code, message) = match fault.message() {
        None => (code, codes::string(code)),
        Some(message) => {
            let message = format!("{}: {message}", codes::name(code));
            (codes::of_fault(fault, format!("{call}: {message}")), message)
        }
    };
    if raiser == Raiser::Nobody {
        return code;
    }
    let (handle, handler) = handler(raiser);
    handler.handle_error(call, handle, code, &message);
    code
}

/// The object that raises an error, and its handler. An invalid one leaves it to MPI_COMM_SELF.
fn handler(raiser: Raiser) -> (Handle, Arc<Errhandler>) {
    let known = match raiser {
        Raiser::Comm(handle) => {
            find::<Comm>(handle).map(|comm| (handle, comm.card().errhandler())).ok()
        }
        Raiser::Win(handle) => {
            find::<Win>(handle).map(|win| (handle, win.card().errhandler())).ok()
        }
        Raiser::Session(handle) => {
            find::<Session>(handle).map(|session| (handle, session.card().errhandler())).ok()
        }
        Raiser::File(handle) => {
            let handler = find::<File>(handle).map(|file| file.card().errhandler());
            return (handle, handler.unwrap_or_else(|_| File::default_handler()));
        }
        Raiser::Handler(handle) => {
            find::<Errhandler>(handle).map(|handler| (handler.null_object(), handler)).ok()
        }
        Raiser::Own | Raiser::Nobody => None,
    };
    known.unwrap_or_else(|| {
        let handler = if state::is_active() { own() } else { outside() };
        (COMM_SELF, handler)
    })
}

/// The handler of errors that belong to no object: that of MPI_COMM_SELF (MPI-5.0 section 9.3). A
/// program that has set only the handler of MPI_COMM_WORLD gets that one, since MPI left these
/// errors to MPI_COMM_WORLD before MPI-4.
fn own() -> Arc<Errhandler> {
    let set = |comm| find::<Comm>(comm).ok().and_then(|comm| comm.card().given_errhandler());
    set(COMM_SELF).or_else(|| set(COMM_WORLD)).unwrap_or_else(outside)
}

/// The handler of errors outside of MPI_Init and MPI_Finalize.
fn outside() -> Arc<Errhandler> {
    Errhandler::fatal()
}

/// Calls the handler of an object, as if a call had failed.
fn call_handler(handler: &Errhandler, handle: Handle, code: c_int) {
    handler.handle_error("a call of the program", handle, code, &codes::string(code));
}

macro_rules! handling {
    ($object:ident, $kind:ident, $create:ident, $set:ident, $get:ident) => {
        pub fn $create(function: Address) -> Result<Handle> {
            create(Kind::$kind, function)
        }

        pub fn $set(object: &$object, handler: &Arc<Errhandler>) -> Result<()> {
            handler.suits(Kind::$kind)?;
            object.card().set_errhandler(handler.clone());
            Ok(())
        }

        pub fn $get(object: &$object) -> Result<Handle> {
            object.card().errhandler().handle()
        }
    };
}

pub fn comm_create_errhandler(function: Address) -> Result<Handle> {
    create(Kind::Comm, function)
}

/// The communicator may be one that MPI_Comm_idup is making.
pub fn comm_set_errhandler(comm: Handle, handler: &Arc<Errhandler>) -> Result<()> {
    handler.suits(Kind::Comm)?;
    own_of(comm)?.card().set_errhandler(handler.clone());
    Ok(())
}

pub fn comm_get_errhandler(comm: Handle) -> Result<Handle> {
    own_of(comm)?.card().errhandler().handle()
}

handling!(Win, Win, win_create_errhandler, win_set_errhandler, win_get_errhandler);
handling!(
    Session,
    Session,
    session_create_errhandler,
    session_set_errhandler,
    session_get_errhandler
);

pub fn comm_call_errhandler(handle: Handle, code: c_int) -> Result<()> {
    call_handler(&find::<Comm>(handle)?.card().errhandler(), handle, code);
    Ok(())
}

pub fn win_call_errhandler(handle: Handle, code: c_int) -> Result<()> {
    call_handler(&find::<Win>(handle)?.card().errhandler(), handle, code);
    Ok(())
}

pub fn session_call_errhandler(handle: Handle, code: c_int) -> Result<()> {
    call_handler(&find::<Session>(handle)?.card().errhandler(), handle, code);
    Ok(())
}

pub fn file_create_errhandler(function: Address) -> Result<Handle> {
    create(Kind::File, function)
}

/// Sets the handler of a file, or that of files to come for MPI_FILE_NULL.
pub fn file_set_errhandler(file: Handle, handler: &Arc<Errhandler>) -> Result<()> {
    handler.suits(Kind::File)?;
    match file == File::NULL {
        true => File::set_default_handler(handler.clone()),
        false => find::<File>(file)?.card().set_errhandler(handler.clone()),
    }
    Ok(())
}

pub fn file_get_errhandler(file: Handle) -> Result<Handle> {
    match file == File::NULL {
        true => File::default_handler().handle(),
        false => find::<File>(file)?.card().errhandler().handle(),
    }
}

pub fn file_call_errhandler(file: Handle, code: c_int) -> Result<()> {
    let handler = match file == File::NULL {
        true => File::default_handler(),
        false => find::<File>(file)?.card().errhandler(),
    };
    call_handler(&handler, file, code);
    Ok(())
}
