//! The codes of errors, their classes and their strings (MPI-5.0 sections 9.4 and 9.5).
//!
//! The code of an error has its class in the lower seven bits, and the number of its message above
//! them. So MPI_Error_string returns the message of the very error, whatever failed since. Classes
//! and codes that a program adds follow MPI_ERR_LASTCODE.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::Mutex;

use longshore::Class;

use crate::edge::arg::Chars;
use crate::edge::constants::{
    self as c, ERR_ABI, ERR_LASTCODE, ERR_PROC_FAILED, ERR_REVOKED, MAX_ERROR_STRING, SUCCESS,
};
use crate::edge::fault::{Fault, Result};
use crate::edge::lock::lock;

/// The bits of a code that are its class.
const CLASS_BITS: u32 = 7;

/// The number of messages that are kept. All codes are below MPI_ERR_LASTCODE.
const KEPT: usize = 127;

const _: () = assert!((KEPT as c_int) << CLASS_BITS | ERR_REVOKED < ERR_LASTCODE);

// No code of a message is one of an error of tools.
const _: () = assert!(ERR_REVOKED < c::T_ERR_CANNOT_INIT % (1 << CLASS_BITS));

/// The message of an error.
struct Message {
    class: c_int,
    text: String,
    /// When it was kept last.
    stamp: u64,
}

/// The messages of the last errors, by the numbers in their codes less 1.
static MESSAGES: Mutex<(Vec<Message>, u64)> = Mutex::new((Vec::new(), 0));

/// The code that a call returns that failed. `text` is kept as its message, unless the code is one
/// that a function of the program returned.
pub fn of_fault(fault: &Fault, text: String) -> c_int {
    match fault.is_returned() {
        true => fault.code(),
        false => keep(fault.code(), text),
    }
}

/// Keeps the message of an error of a class, for MPI_Error_string, and returns the error's code. An
/// equal message has the same code. The oldest message goes if there are too many.
fn keep(class: c_int, text: String) -> c_int {
    // Programs compare these with codes, as MPI describes it.
    let is_fixed = matches!(class, SUCCESS | c::ERR_IN_STATUS | c::ERR_PENDING);
    if is_fixed || class == ERR_LASTCODE || !is_class(class) {
        return class;
    }
    let mut messages = lock(&MESSAGES);
    let (kept, now) = &mut *messages;
    *now += 1;
    let message = Message { class, text, stamp: *now };
    let same = |it: &Message| it.class == class && it.text == message.text;
    let index = match kept.iter().position(same) {
        Some(index) => index,
        None if kept.len() < KEPT => kept.len(),
        None => {
            let oldest = kept.iter().enumerate().min_by_key(|(_, it)| it.stamp);
            oldest.map_or(0, |(index, _)| index)
        }
    };
    match kept.get_mut(index) {
        Some(place) => *place = message,
        None => kept.push(message),
    }
    (index as c_int + 1) << CLASS_BITS | class
}

/// The class of a code of an error of MPI.
pub fn class_of(code: c_int) -> Option<c_int> {
    if is_class(code) || (c::T_ERR_CANNOT_INIT..=c::T_ERR_PVAR_NO_ATOMIC).contains(&code) {
        return Some(code);
    }
    let (class, number) = (code & ((1 << CLASS_BITS) - 1), code >> CLASS_BITS);
    let is_kept = usize::try_from(number).is_ok_and(|number| number <= lock(&MESSAGES).0.len());
    (number > 0 && is_kept && class != SUCCESS && is_class(class)).then_some(class)
}

/// The message of a code, unless newer ones have taken its place.
fn message_of(code: c_int) -> Option<String> {
    let index = usize::try_from((code >> CLASS_BITS) - 1).ok()?;
    let messages = lock(&MESSAGES);
    let message = messages.0.get(index)?;
    (message.class == code & ((1 << CLASS_BITS) - 1)).then(|| message.text.clone())
}

/// The names of the errors of tools, from MPI_T_ERR_CANNOT_INIT on, and what they mean (MPI-5.0
/// section 15.3.10).
const TOOLS: [(&str, &str); 18] = [
    ("CANNOT_INIT", "the interface can't be initialized"),
    ("NOT_ACCESSIBLE", "the function can't be used now"),
    ("NOT_INITIALIZED", "call MPI_T_init_thread first"),
    ("NOT_SUPPORTED", "the function isn't supported"),
    ("MEMORY", "there is no memory"),
    ("INVALID", "an argument is wrong"),
    ("INVALID_INDEX", "there is nothing with this index"),
    ("INVALID_ITEM", "there is no item with this index"),
    ("INVALID_SESSION", "there is no such session"),
    ("INVALID_HANDLE", "there is no such handle"),
    ("INVALID_NAME", "there is nothing with this name"),
    ("OUT_OF_HANDLES", "there are no handles left"),
    ("OUT_OF_SESSIONS", "there are no sessions left"),
    ("CVAR_SET_NOT_NOW", "the variable can't be set now"),
    ("CVAR_SET_NEVER", "the variable can't be set any more"),
    ("PVAR_NO_WRITE", "the variable can't be written"),
    ("PVAR_NO_STARTSTOP", "the variable can't be started or stopped"),
    ("PVAR_NO_ATOMIC", "the variable can't be read and reset at once"),
];

/// The name and the meaning of an error of tools.
fn of_tools(code: c_int) -> Option<(&'static str, &'static str)> {
    TOOLS.get(usize::try_from(code - c::T_ERR_CANNOT_INIT).ok()?).copied()
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
    if let Some((name, _)) = of_tools(code) {
        return format!("MPI_T_ERR_{name}");
    }
    let class = class_of(code).and_then(|class| u8::try_from(class).ok());
    match class.and_then(Class::from_wire) {
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
    if let Some((name, meaning)) = of_tools(code) {
        return format!("MPI_T_ERR_{name}: {meaning}");
    }
    message_of(code).unwrap_or_else(|| name(code))
}

/// Whether a code is one of MPI's classes.
fn is_class(code: c_int) -> bool {
    let is_of_failures = (ERR_PROC_FAILED..=ERR_REVOKED).contains(&code);
    (SUCCESS..=ERR_ABI).contains(&code) || is_of_failures || code == ERR_LASTCODE
}

pub fn error_class(code: c_int) -> Result<c_int> {
    let added = lock(&ADDED).classes.get(&code).copied();
    added.or_else(|| class_of(code)).ok_or_else(|| unknown(code))
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
