//! Keyvals, and the attributes of objects (MPI-5.0 section 7.7). The module attribute has the
//! functions that programs call.
//!
//! Functions of the program run without a lock, so they may make any call.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use longshore::Class;

use crate::edge::arg::Address;
use crate::edge::constants as c;
use crate::edge::fault::{Fault, Result};
use crate::edge::handle::{Handle, Kind, Object, find};
use crate::edge::lock::lock;

/// A key of attributes, with the functions that copy and delete them.
pub struct Keyval {
    kind: Kind,
    copy: Address,
    delete: Address,
    extra: Address,
}

/// A function that copies an attribute. Its handle is that of the old object.
type Copy = unsafe extern "C" fn(
    Handle,
    c_int,
    *mut c_void,
    *mut c_void,
    *mut *mut c_void,
    *mut c_int,
) -> c_int;

/// A function that deletes an attribute.
type Delete = unsafe extern "C" fn(Handle, c_int, *mut c_void, *mut c_void) -> c_int;

/// The number that stands for a function which copies the value as it is.
const DUP: usize = 1;

/// The keyvals, and the number of the last.
struct Keyvals {
    known: BTreeMap<c_int, Arc<Keyval>>,
    /// Those that are freed. A keyval remains as long as an attribute has it (MPI-5.0 section
    /// 7.7.2), so that its attributes can be read and deleted.
    freed: BTreeMap<c_int, Weak<Keyval>>,
    last: c_int,
}

static KEYVALS: Mutex<Keyvals> =
    Mutex::new(Keyvals { known: BTreeMap::new(), freed: BTreeMap::new(), last: 1000 });

/// The attributes of an object, in the order of their setting.
#[derive(Default)]
pub struct Attributes(Vec<Attribute>);

/// An attribute keeps its keyval, which may be freed before.
#[derive(Clone)]
struct Attribute {
    number: c_int,
    keyval: Arc<Keyval>,
    value: Address,
}

/// An object with attributes.
pub trait Holder: Object {
    /// Its attributes. No function of the program may run while they are locked.
    fn attributes(&self) -> MutexGuard<'_, Attributes>;

    /// The value of a predefined attribute.
    fn predefined_attribute(&self, keyval: c_int) -> Option<Address>;
}

impl Keyval {
    /// The keyval of this number, if it isn't freed.
    fn find(kind: Kind, number: c_int) -> Result<Arc<Keyval>> {
        let keyval = lock(&KEYVALS).known.get(&number).cloned();
        Keyval::check(keyval, kind, number)
    }

    /// The keyval of this number, if it isn't freed or an attribute has it.
    fn find_used(kind: Kind, number: c_int) -> Result<Arc<Keyval>> {
        let keyvals = lock(&KEYVALS);
        let freed = || keyvals.freed.get(&number).and_then(Weak::upgrade);
        let keyval = keyvals.known.get(&number).cloned().or_else(freed);
        drop(keyvals);
        Keyval::check(keyval, kind, number)
    }

    fn check(keyval: Option<Arc<Keyval>>, kind: Kind, number: c_int) -> Result<Arc<Keyval>> {
        match keyval {
            Some(keyval) if keyval.kind == kind => Ok(keyval),
            Some(keyval) => {
                let what =
                    format!("keyval {number} is for {}, not {}", keyval.kind.name(), kind.name());
                Err(Fault::new(Class::Keyval, what))
            }
            None if (c::TAG_UB..=c::WIN_MODEL).contains(&number) => {
                let what = format!("keyval {number} is predefined: its attributes are only read");
                Err(Fault::new(Class::Keyval, what))
            }
            None => {
                Err(Fault::new(Class::Keyval, format!("{number} is no keyval, or a freed one")))
            }
        }
    }

    /// Calls the delete function.
    fn ask_delete(&self, handle: Handle, number: c_int, value: Address) -> Result<()> {
        if self.delete.is_null() {
            return Ok(());
        }
        // SAFETY: the program passed the function as one that deletes such attributes.
        let code = unsafe {
            let delete: Delete = std::mem::transmute(self.delete.pointer());
            delete(handle, number, value.pointer(), self.extra.pointer())
        };
        callback("delete", number, code)
    }

    /// Calls the copy function, and returns the copy if there is to be one.
    fn ask_copy(&self, handle: Handle, number: c_int, value: Address) -> Result<Option<Address>> {
        match self.copy.number() {
            0 => return Ok(None),
            DUP => return Ok(Some(value)),
            _ => {}
        }
        let (mut copy, mut flag) = (value.pointer(), 0);
        // SAFETY: the program passed the function as one that copies such attributes.
        let code = unsafe {
            let function: Copy = std::mem::transmute(self.copy.pointer());
            let extra = self.extra.pointer();
            function(handle, number, extra, value.pointer(), &raw mut copy, &raw mut flag)
        };
        callback("copy", number, code)?;
        Ok((flag != 0).then_some(Address::new(copy)))
    }
}

fn callback(what: &str, number: c_int, code: c_int) -> Result<()> {
    match code {
        c::SUCCESS => Ok(()),
        _ => {
            let message = format!("the {what} function of keyval {number} returned {code}");
            Err(Fault::returned(code, message))
        }
    }
}

/// Deletes all attributes of an object, the last one that was set first (MPI-5.0 section 7.7.2).
/// Stops at a delete function that fails: the rest stay.
pub fn clear<T: Holder>(object: &T, handle: Handle) -> Result<()> {
    loop {
        let last = object.attributes().0.last().cloned();
        let Some(Attribute { number, keyval, value }) = last else { return Ok(()) };
        keyval.ask_delete(handle, number, value)?;
        object.attributes().0.retain(|attribute| attribute.number != number);
    }
}

/// The attributes for the dup of an object.
pub fn copy<T: Holder>(from: &T, handle: Handle) -> Result<Attributes> {
    let all = from.attributes().0.clone();
    let mut copies = Vec::new();
    for Attribute { number, keyval, value } in all {
        if let Some(value) = keyval.ask_copy(handle, number, value)? {
            copies.push(Attribute { number, keyval, value });
        }
    }
    Ok(Attributes(copies))
}

/// Makes a keyval.
pub fn create(kind: Kind, copy: Address, delete: Address, extra: Address) -> c_int {
    let mut keyvals = lock(&KEYVALS);
    keyvals.last += 1;
    let number = keyvals.last;
    keyvals.known.insert(number, Arc::new(Keyval { kind, copy, delete, extra }));
    number
}

/// Frees a keyval, whose attributes stay. It may be freed again until they are gone.
pub fn free(kind: Kind, number: &mut c_int) -> Result<()> {
    let keyval = Keyval::find_used(kind, *number)?;
    let mut keyvals = lock(&KEYVALS);
    keyvals.known.remove(number);
    keyvals.freed.retain(|_, keyval| keyval.strong_count() > 0);
    keyvals.freed.insert(*number, Arc::downgrade(&keyval));
    *number = c::KEYVAL_INVALID;
    Ok(())
}

/// Sets an attribute. The delete function gets the old value.
pub fn set<T: Holder>(handle: Handle, number: c_int, value: Address) -> Result<()> {
    let object = find::<T>(handle)?;
    let keyval = Keyval::find(T::KIND, number)?;
    let known = |attribute: &&Attribute| attribute.number == number;
    let old = object.attributes().0.iter().find(known).map(|old| old.value);
    if let Some(old) = old {
        keyval.ask_delete(handle, number, old)?;
    }
    let mut attributes = object.attributes();
    match attributes.0.iter_mut().find(|attribute| attribute.number == number) {
        Some(attribute) => attribute.value = value,
        None => attributes.0.push(Attribute { number, keyval, value }),
    }
    Ok(())
}

/// Writes the value of an attribute to `room`, and returns whether it is set.
pub fn get<T: Holder>(object: &T, number: c_int, room: Address) -> Result<bool> {
    let value = match object.predefined_attribute(number) {
        Some(value) => Some(value),
        None => {
            if !is_predefined(number, T::KIND) {
                Keyval::find_used(T::KIND, number)?;
            }
            let attributes = object.attributes();
            let known = |attribute: &&Attribute| attribute.number == number;
            attributes.0.iter().find(known).map(|attribute| attribute.value)
        }
    };
    if room.is_null() {
        return Err(Fault::argument("attribute_val is a null pointer"));
    }
    if let Some(value) = value {
        room.room::<*mut c_void>().set(0, value.pointer());
    }
    Ok(value.is_some())
}

/// Whether objects of a kind may have a predefined attribute.
fn is_predefined(number: c_int, kind: Kind) -> bool {
    match kind {
        Kind::Comm => (c::TAG_UB..=c::UNIVERSE_SIZE).contains(&number),
        Kind::Win => (c::WIN_BASE..=c::WIN_MODEL).contains(&number),
        _ => false,
    }
}

/// Deletes an attribute.
pub fn delete<T: Holder>(handle: Handle, number: c_int) -> Result<()> {
    let object = find::<T>(handle)?;
    let keyval = Keyval::find_used(T::KIND, number)?;
    let known = |attribute: &&Attribute| attribute.number == number;
    let value = object.attributes().0.iter().find(known).map(|old| old.value);
    let Some(value) = value else {
        // MPI-5.0 section 7.7.2 has no error for it, but a program that expects one is wrong.
        return Ok(());
    };
    keyval.ask_delete(handle, number, value)?;
    object.attributes().0.retain(|attribute| attribute.number != number);
    Ok(())
}
