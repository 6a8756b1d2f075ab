//! Keyvals and attributes (MPI-5.0 section 7.7).
//!
//! Functions of the program run without a lock, so they may make any call.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex};

use longshore::Class;

use crate::arg::Address;
use crate::communicator::Comm;
use crate::constants as c;
use crate::datatype::Type;
use crate::fault::{Fault, Result};
use crate::handle::{Handle, Kind, find};
use crate::object::{Card, lock};
use crate::window::Win;

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

/// The keyvals that aren't freed, and the number of the last.
struct Keyvals {
    known: BTreeMap<c_int, Arc<Keyval>>,
    last: c_int,
}

static KEYVALS: Mutex<Keyvals> = Mutex::new(Keyvals { known: BTreeMap::new(), last: 1000 });

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
pub trait Holder: crate::handle::Object {
    fn its_card(&self) -> &Card;

    /// The value of a predefined attribute.
    fn predefined_attribute(&self, keyval: c_int) -> Option<Address>;
}

impl Keyval {
    fn find(kind: Kind, number: c_int) -> Result<Arc<Keyval>> {
        let keyval = lock(&KEYVALS).known.get(&number).cloned();
        match keyval {
            Some(keyval) if keyval.kind == kind => Ok(keyval),
            Some(keyval) => {
                let what = format!("keyval {number} is for a {:?}, not a {kind:?}", keyval.kind);
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
            Err(Fault::coded(code, Some(message)))
        }
    }
}

/// Deletes all attributes of an object, the last one that was set first (MPI-5.0 section 7.7.2).
/// Stops at a delete function that fails: the rest stay.
pub fn clear<T: Holder>(object: &T, handle: Handle) -> Result<()> {
    loop {
        let last = object.its_card().attributes().0.last().cloned();
        let Some(Attribute { number, keyval, value }) = last else { return Ok(()) };
        keyval.ask_delete(handle, number, value)?;
        object.its_card().attributes().0.retain(|attribute| attribute.number != number);
    }
}

/// Copies the attributes of an object to the card of its dup.
pub fn copy<T: Holder>(from: &T, handle: Handle, to: &Card) -> Result<()> {
    let all = from.its_card().attributes().0.clone();
    for Attribute { number, keyval, value } in all {
        if let Some(value) = keyval.ask_copy(handle, number, value)? {
            to.attributes().0.push(Attribute { number, keyval, value });
        }
    }
    Ok(())
}

fn create(kind: Kind, copy: Address, delete: Address, extra: Address) -> c_int {
    let mut keyvals = lock(&KEYVALS);
    keyvals.last += 1;
    let number = keyvals.last;
    keyvals.known.insert(number, Arc::new(Keyval { kind, copy, delete, extra }));
    number
}

fn free(kind: Kind, number: &mut c_int) -> Result<()> {
    Keyval::find(kind, *number)?;
    lock(&KEYVALS).known.remove(number);
    *number = c::KEYVAL_INVALID;
    Ok(())
}

fn set<T: Holder>(handle: Handle, number: c_int, value: Address) -> Result<()> {
    let object = find::<T>(handle)?;
    let keyval = Keyval::find(T::KIND, number)?;
    let known = |attribute: &&Attribute| attribute.number == number;
    let old = object.its_card().attributes().0.iter().find(known).map(|old| old.value);
    if let Some(old) = old {
        keyval.ask_delete(handle, number, old)?;
    }
    let mut attributes = object.its_card().attributes();
    match attributes.0.iter_mut().find(|attribute| attribute.number == number) {
        Some(attribute) => attribute.value = value,
        None => attributes.0.push(Attribute { number, keyval, value }),
    }
    Ok(())
}

fn get<T: Holder>(object: &T, number: c_int, room: Address) -> Result<bool> {
    let value = match object.predefined_attribute(number) {
        Some(value) => Some(value),
        None => {
            if !is_predefined(number, T::KIND) {
                Keyval::find(T::KIND, number)?;
            }
            let attributes = object.its_card().attributes();
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

fn delete<T: Holder>(handle: Handle, number: c_int) -> Result<()> {
    let object = find::<T>(handle)?;
    let keyval = Keyval::find(T::KIND, number)?;
    let known = |attribute: &&Attribute| attribute.number == number;
    let value = object.its_card().attributes().0.iter().find(known).map(|old| old.value);
    let Some(value) = value else {
        // MPI-5.0 section 7.7.2 has no error for it, but a program that expects one is wrong.
        return Ok(());
    };
    keyval.ask_delete(handle, number, value)?;
    object.its_card().attributes().0.retain(|attribute| attribute.number != number);
    Ok(())
}

macro_rules! attributes {
    ($object:ident, $kind:ident, $create:ident, $free:ident, $set:ident, $get:ident, $delete:ident) => {
        pub fn $create(copy: Address, delete: Address, extra: Address) -> Result<c_int> {
            Ok(create(Kind::$kind, copy, delete, extra))
        }

        pub fn $free(number: &mut c_int) -> Result<()> {
            free(Kind::$kind, number)
        }

        pub fn $set(handle: Handle, number: c_int, value: Address) -> Result<()> {
            set::<$object>(handle, number, value)
        }

        pub fn $get(object: &$object, number: c_int, room: Address) -> Result<bool> {
            get(object, number, room)
        }

        pub fn $delete(handle: Handle, number: c_int) -> Result<()> {
            delete::<$object>(handle, number)
        }
    };
}

attributes!(
    Comm,
    Comm,
    comm_create_keyval,
    comm_free_keyval,
    comm_set_attr,
    comm_get_attr,
    comm_delete_attr
);
attributes!(
    Type,
    Type,
    type_create_keyval,
    type_free_keyval,
    type_set_attr,
    type_get_attr,
    type_delete_attr
);
attributes!(
    Win,
    Win,
    win_create_keyval,
    win_free_keyval,
    win_set_attr,
    win_get_attr,
    win_delete_attr
);
attributes!(Comm, Comm, keyval_create, keyval_free, attr_put, attr_get, attr_delete);

impl Holder for Comm {
    fn its_card(&self) -> &Card {
        self.card()
    }

    fn predefined_attribute(&self, keyval: c_int) -> Option<Address> {
        static TAG_UB: c_int = c_int::MAX;
        static ANY_RANK: c_int = c::ANY_SOURCE;
        static NO_RANK: c_int = c::PROC_NULL;
        static NO: c_int = 0;
        match keyval {
            c::TAG_UB => Some(Address::of(&TAG_UB)),
            c::IO => Some(Address::of(&ANY_RANK)),
            c::HOST => Some(Address::of(&NO_RANK)),
            c::WTIME_IS_GLOBAL => Some(Address::of(&NO)),
            c::LASTUSEDCODE => Some(kept(&LAST_USED, crate::error::last_used())),
            c::UNIVERSE_SIZE => {
                let size = crate::state::get()?.world().inner().size();
                Some(kept(&UNIVERSE, size))
            }
            _ => None,
        }
    }
}

static LAST_USED: Mutex<Option<&'static c_int>> = Mutex::new(None);
static UNIVERSE: Mutex<Option<&'static c_int>> = Mutex::new(None);

/// The address of a number that the program may read at any time. A number that changes gets a new
/// address.
fn kept(place: &Mutex<Option<&'static c_int>>, number: c_int) -> Address {
    let mut place = lock(place);
    match *place {
        Some(kept) if *kept == number => Address::of(kept),
        _ => {
            let kept: &'static c_int = Box::leak(Box::new(number));
            *place = Some(kept);
            Address::of(kept)
        }
    }
}

impl Holder for Type {
    fn its_card(&self) -> &Card {
        self.card()
    }

    fn predefined_attribute(&self, _: c_int) -> Option<Address> {
        None
    }
}

impl Holder for Win {
    fn its_card(&self) -> &Card {
        self.card()
    }

    fn predefined_attribute(&self, keyval: c_int) -> Option<Address> {
        self.attribute(keyval)
    }
}
