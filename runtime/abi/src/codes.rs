//! The codes of errors, their classes and their strings (MPI-5.0 sections 9.4 and 9.5).
//!
//! The code of an error is its class, so a program may compare a code with a class. Classes and
//! codes that a program adds follow MPI_ERR_LASTCODE. The message of the last error of each code is
//! kept per thread, and MPI_Error_string appends it to the name of the class.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::Mutex;

use longshore::Class;

use crate::arg::Chars;
use crate::constants::{ERR_ABI, ERR_LASTCODE, MAX_ERROR_STRING, SUCCESS};
use crate::fault::{Fault, Result};
use crate::lock::lock;

thread_local! {
    /// The message of the last error of each code.
    static MESSAGES: RefCell<BTreeMap<c_int, String>> = const { RefCell::new(BTreeMap::new()) };
}

/// Keeps the message of an error, for MPI_Error_string.
pub fn keep(code: c_int, message: String) {
    MESSAGES.with_borrow_mut(|kept| kept.insert(code, message));
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
pub fn name(code: c_int) -> String {
    let class = u8::try_from(code).ok().and_then(Class::from_wire);
    match class {
        Some(class) => class.mpi_name(),
        None if code == SUCCESS => "MPI_SUCCESS".to_owned(),
        None => format!("error code {code}"),
    }
}

/// The text of a code.
pub fn string(code: c_int) -> String {
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
    (SUCCESS..=ERR_ABI).contains(&code) || code == ERR_LASTCODE
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
