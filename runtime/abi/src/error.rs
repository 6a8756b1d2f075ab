//! Error handlers, and the codes of errors (MPI-5.0 chapter 9).
//!
//! The code of an error is its class, so a program may compare a code with a class. Classes and
//! codes that a program adds follow MPI_ERR_LASTCODE. The message of the last error of each code is
//! kept per thread, and MPI_Error_string appends it to the name of the class.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::{Arc, Mutex, OnceLock};

use longshore::Class;

use crate::absent::{File, Session};
use crate::arg::{Address, Chars};
use crate::call::Raiser;
use crate::communicator::Comm;
use crate::constants::{
    ERR_LASTCODE, ERRHANDLER_NULL, ERRORS_ABORT, ERRORS_ARE_FATAL, ERRORS_RETURN, MAX_ERROR_STRING,
    SUCCESS,
};
use crate::fault::{Fault, Result};
use crate::handle::{Handle, Kind, Object, find, insert, remove};
use crate::object::lock;
use crate::state::{self, Phase};
use crate::window::Win;

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

    /// Whether objects of a kind can have it.
    fn suits(&self, kind: Kind) -> Result<()> {
        match self.action {
            Action::Call { of, .. } if of != kind => {
                let what = format!("the error handler was created for a {of:?}, not a {kind:?}");
                Err(Fault::argument(what))
            }
            _ => Ok(()),
        }
    }

    /// A handle of it: the predefined one, or a new one.
    fn handle(self: Arc<Errhandler>) -> Result<Handle> {
        match self.handle {
            Some(handle) => Ok(handle),
            None => insert(self),
        }
    }

    /// Handles an error of a call on an object.
    fn handle_error(&self, call: &str, handle: Handle, code: c_int, message: &str) {
        match self.action {
            Action::Return => {}
            Action::Fatal | Action::Abort => {
                let rank = state::get().map(|state| state.world().inner().rank());
                let rank = rank.map_or(String::new(), |rank| format!("rank {rank}: "));
                eprintln!("longshore: {rank}{call} failed, and its error handler ends the job");
                eprintln!("longshore: {rank}{message}");
                // The status of a process has eight bits.
                state::end_job(if code & 0xff == 0 { 1 } else { code });
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

thread_local! {
    /// The message of the last error of each code.
    static MESSAGES: RefCell<BTreeMap<c_int, String>> = const { RefCell::new(BTreeMap::new()) };
}

/// Gives an error to its object's handler, and returns its code.
pub fn raise(call: &str, raiser: Raiser, fault: &Fault) -> c_int {
    let code = fault.code();
    let message = fault.message().map_or_else(
        || string(code),
        |message| {
            let message = format!("{}: {message}", name(code));
            MESSAGES.with_borrow_mut(|kept| kept.insert(code, format!("{call}: {message}")));
            message
        },
    );
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
        Raiser::Own | Raiser::Nobody => None,
    };
    known.unwrap_or_else(|| {
        let handler = match (state::phase(), state::get()) {
            (Phase::Active, Some(state)) => state.alone().card().errhandler(),
            _ => outside(),
        };
        (crate::constants::COMM_SELF, handler)
    })
}

/// The handler of errors outside of MPI_Init and MPI_Finalize.
fn outside() -> Arc<Errhandler> {
    Errhandler::fatal()
}

/// The classes, codes and strings that a program added.
#[derive(Default)]
struct Added {
    /// The class of each code; a class is its own.
    classes: BTreeMap<c_int, c_int>,
    strings: BTreeMap<c_int, String>,
    /// The number of codes that were ever added.
    last: c_int,
}

static ADDED: Mutex<Added> =
    Mutex::new(Added { classes: BTreeMap::new(), strings: BTreeMap::new(), last: 0 });

impl Added {
    fn add(&mut self, class: Option<c_int>) -> c_int {
        self.last += 1;
        let code = ERR_LASTCODE + self.last;
        self.classes.insert(code, class.unwrap_or(code));
        code
    }

    /// Refuses a code that no program added.
    fn own(&self, code: c_int) -> Result<()> {
        match self.classes.contains_key(&code) {
            true => Ok(()),
            false => Err(Fault::argument(format_args!("code {code} wasn't added by the program"))),
        }
    }
}

/// The largest code that is in use: the attribute MPI_LASTUSEDCODE.
pub fn last_used() -> c_int {
    ERR_LASTCODE + lock(&ADDED).last
}

/// The name of a code's class, such as `MPI_ERR_RANK`.
fn name(code: c_int) -> String {
    let class = u8::try_from(code).ok().and_then(Class::from_wire);
    match class {
        Some(class) => class.mpi_name(),
        None if code == SUCCESS => "MPI_SUCCESS".to_owned(),
        None => format!("error code {code}"),
    }
}

/// The text of a code.
fn string(code: c_int) -> String {
    let added = lock(&ADDED);
    if added.classes.contains_key(&code) {
        return added.strings.get(&code).cloned().unwrap_or_default();
    }
    drop(added);
    if code == SUCCESS {
        return "MPI_SUCCESS: no error".to_owned();
    }
    let message = MESSAGES.with_borrow(|kept| kept.get(&code).cloned());
    message.unwrap_or_else(|| name(code))
}

/// Whether a code is one of MPI's classes.
fn is_class(code: c_int) -> bool {
    (SUCCESS..=crate::constants::ERR_ABI).contains(&code) || code == ERR_LASTCODE
}

pub fn error_class(code: c_int) -> Result<c_int> {
    let added = lock(&ADDED);
    match added.classes.get(&code) {
        Some(class) => Ok(*class),
        None if is_class(code) || (1001..=1018).contains(&code) => Ok(code),
        None => Err(unknown(code)),
    }
}

fn unknown(code: c_int) -> Fault {
    Fault::argument(format_args!("{code} is no error code"))
}

pub fn error_string(code: c_int, room: Chars) -> Result<usize> {
    error_class(code)?;
    Ok(room.write(&string(code), MAX_ERROR_STRING as usize))
}

pub fn add_error_class() -> Result<c_int> {
    Ok(lock(&ADDED).add(None))
}

pub fn add_error_code(class: c_int) -> Result<c_int> {
    let mut added = lock(&ADDED);
    let is_added = added.classes.get(&class) == Some(&class);
    match is_added || is_class(class) {
        true => Ok(added.add(Some(class))),
        false => Err(Fault::argument(format_args!("{class} is no error class"))),
    }
}

pub fn add_error_string(code: c_int, text: &str) -> Result<()> {
    let mut added = lock(&ADDED);
    added.own(code)?;
    added.strings.insert(code, text.to_owned());
    Ok(())
}

pub fn remove_error_class(class: c_int) -> Result<()> {
    let mut added = lock(&ADDED);
    match added.classes.get(&class) {
        Some(own) if *own == class => {}
        _ => {
            return Err(Fault::argument(format_args!("class {class} wasn't added by the program")));
        }
    }
    let used = added.classes.iter().any(|(code, of)| *of == class && *code != class);
    if used || added.strings.contains_key(&class) {
        let what = format!("class {class} still has codes or a string: remove those first");
        return Err(Fault::argument(what));
    }
    added.classes.remove(&class);
    Ok(())
}

pub fn remove_error_code(code: c_int) -> Result<()> {
    let mut added = lock(&ADDED);
    match added.classes.get(&code) {
        Some(class) if *class != code => {}
        _ => return Err(Fault::argument(format_args!("code {code} wasn't added by the program"))),
    }
    if added.strings.contains_key(&code) {
        let what = format!("code {code} still has a string: remove it first");
        return Err(Fault::argument(what));
    }
    added.classes.remove(&code);
    Ok(())
}

pub fn remove_error_string(code: c_int) -> Result<()> {
    let mut added = lock(&ADDED);
    added.own(code)?;
    match added.strings.remove(&code) {
        Some(_) => Ok(()),
        None => Err(Fault::argument(format_args!("code {code} has no string"))),
    }
}

fn create(of: Kind, function: Address) -> Result<Handle> {
    if function.is_null() {
        return Err(Fault::argument("the function is null"));
    }
    insert(Arc::new(Errhandler { action: Action::Call { of, function }, handle: None }))
}

/// Calls the handler of an object, as if a call had failed.
fn call_handler(handler: &Errhandler, handle: Handle, code: c_int) {
    handler.handle_error("a call of the program", handle, code, &string(code));
}

pub fn errhandler_free(handle: &mut Handle) -> Result<()> {
    if handle.is_predefined() && Errhandler::predefined(*handle).is_some() {
        // MPI_Comm_get_errhandler returns predefined ones, which programs free, too.
        *handle = ERRHANDLER_NULL;
        return Ok(());
    }
    remove::<Errhandler>(handle).map(drop)
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

handling!(Comm, Comm, comm_create_errhandler, comm_set_errhandler, comm_get_errhandler);
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
