//! Error handlers (MPI-5.0 section 9.3).
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::sync::{Arc, OnceLock};

use longshore::Class;

use crate::edge::arg::Address;
use crate::edge::constants::{
    COMM_NULL, ERRHANDLER_NULL, ERRORS_ABORT, ERRORS_ARE_FATAL, ERRORS_RETURN, FILE_NULL,
    SESSION_NULL, WIN_NULL,
};
use crate::edge::fault::{Fault, Result};
use crate::edge::handle::{Handle, Kind, Object, insert, remove};
use crate::edge::{line, state};
use crate::objects::codes;

/// An error handler.
pub struct Errhandler {
    action: Action,
    /// The handle of a predefined one.
    handle: Option<Handle>,
}

/// What a handler does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    /// Ends the job.
    Fatal,
    /// Ends the process, and the job with it.
    Abort,
    /// Nothing: the call returns the code.
    Return,
    /// A function of the program is called, with the object and the code.
    Call { of: Kind, function: Address },
}

/// A program's handler. It may take more arguments, which MPI doesn't define.
type Function = unsafe extern "C" fn(*mut Handle, *mut c_int);

impl Object for Errhandler {
    const KIND: Kind = Kind::Errhandler;
    const CLASS: Class = Class::Errhandler;
    const NULL: Handle = ERRHANDLER_NULL;

    fn predefined(handle: Handle) -> Option<Arc<Errhandler>> {
        static ALL: OnceLock<[Arc<Errhandler>; 3]> = OnceLock::new();
        let all = ALL.get_or_init(|| {
            [
                (Action::Fatal, ERRORS_ARE_FATAL),
                (Action::Abort, ERRORS_ABORT),
                (Action::Return, ERRORS_RETURN),
            ]
            .map(|(action, handle)| Arc::new(Errhandler { action, handle: Some(handle) }))
        });
        all.iter().find(|known| known.handle == Some(handle)).cloned()
    }
}

impl Errhandler {
    /// MPI_ERRORS_ARE_FATAL.
    pub fn fatal() -> Arc<Errhandler> {
        match Errhandler::predefined(ERRORS_ARE_FATAL) {
            Some(fatal) => fatal,
            None => Arc::new(Errhandler { action: Action::Fatal, handle: None }),
        }
    }

    /// The handle that a function of the program gets where its object doesn't exist.
    pub fn null_object(&self) -> Handle {
        match self.action {
            Action::Call { of: Kind::Win, .. } => WIN_NULL,
            Action::Call { of: Kind::Session, .. } => SESSION_NULL,
            Action::Call { of: Kind::File, .. } => FILE_NULL,
            _ => COMM_NULL,
        }
    }

    /// Whether objects of a kind can have it.
    pub fn suits(&self, kind: Kind) -> Result<()> {
        match self.action {
            Action::Call { of, .. } if of != kind => {
                let what =
                    format!("the error handler was created for {}, not {}", of.name(), kind.name());
                Err(Fault::argument(what))
            }
            _ => Ok(()),
        }
    }

    /// A handle of it: the predefined one, or a new one.
    pub fn handle(self: Arc<Errhandler>) -> Result<Handle> {
        match self.handle {
            Some(handle) => Ok(handle),
            None => insert(self),
        }
    }

    /// Handles an error of a call on an object.
    pub fn handle_error(&self, call: &str, handle: Handle, code: c_int, message: &str) {
        match self.action {
            Action::Return => {}
            Action::Fatal | Action::Abort => {
                let rank = state::get().map(|state| state.rank().world().rank());
                let rank = rank.map_or(String::new(), |rank| format!("rank {rank}: "));
                // The checker has printed its report once, for all ranks.
                let message = match message.split_once(":\ncheck: ") {
                    Some((what, _)) => format!("{what}: --check's report says where"),
                    None => message.to_owned(),
                };
                let at = line::of_call(true).map_or(String::new(), |line| format!(" at {line}"));
                state::say(&format!(
                    "longshore: {rank}{call}{at} failed, and its error handler ends the job\n\
                     longshore: {rank}{message}\n"
                ));
                // The status of a process has eight bits, which a class of MPI fits.
                let status = codes::class_of(code).unwrap_or(code);
                state::end_job(if status & 0xff == 0 { 1 } else { status });
            }
            Action::Call { function, .. } => {
                let (mut handle, mut code) = (handle, code);
                // SAFETY: the program passed the function as an error handler of such objects.
                unsafe {
                    let function: Function = std::mem::transmute(function.pointer());
                    function(&raw mut handle, &raw mut code);
                }
            }
        }
    }
}

/// A handle of a new handler for objects of a kind.
pub fn create(of: Kind, function: Address) -> Result<Handle> {
    if function.is_null() {
        return Err(Fault::argument("the function is null"));
    }
    insert(Arc::new(Errhandler { action: Action::Call { of, function }, handle: None }))
}

pub fn errhandler_free(handle: &mut Handle) -> Result<()> {
    if handle.is_predefined() && Errhandler::predefined(*handle).is_some() {
        // MPI_Comm_get_errhandler returns predefined ones, which programs free, too.
        *handle = ERRHANDLER_NULL;
        return Ok(());
    }
    remove::<Errhandler>(handle).map(drop)
}
