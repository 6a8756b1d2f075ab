//! Handles: the pointers that programs have for objects.
//!
//! A handle below 4096 is predefined. Another one is the address of a slot. Slots stand in one
//! piece of memory that is never given back, so a freed handle is recognised: its slot is of no
//! kind, or of another. A slot is taken again only after many others.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed};
use std::collections::VecDeque;
use std::mem::size_of;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use longshore::{Class, MemoryLimit, SourceLine};

use crate::edge::fault::{Fault, Result};
use crate::edge::made;
use crate::edge::raw::PREDEFINED;

pub use crate::edge::raw::Handle;

/// An object that programs have handles of.
pub trait Object: Send + Sync + Sized + 'static {
    /// The number of its kind, in slots.
    const KIND: Kind;
    /// The class of errors about its handles.
    const CLASS: Class;
    /// The handle that refers to none.
    const NULL: Handle;

    /// The object of a predefined handle.
    fn predefined(handle: Handle) -> Option<Arc<Self>>;
}

/// The kinds of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[allow(missing_docs)]
pub enum Kind {
    Comm = 1,
    Win,
    Type,
    Group,
    Info,
    Op,
    Errhandler,
    Request,
    Message,
    Session,
    File,
    ForeignType,
    /// A communicator that is being made.
    Draft,
    /// A communicator that was unpacked.
    Described,
}

impl Kind {
    /// The kinds of objects whose lines are noted.
    const NOTED: [Kind; 13] = [
        Kind::Comm,
        Kind::Win,
        Kind::Type,
        Kind::Group,
        Kind::Info,
        Kind::Op,
        Kind::Errhandler,
        Kind::Request,
        Kind::Session,
        Kind::File,
        Kind::ForeignType,
        Kind::Draft,
        Kind::Described,
    ];

    /// Its objects, as MPI calls them.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Comm | Kind::Draft | Kind::Described => "a communicator",
            Kind::Win => "a window",
            Kind::Type => "a datatype",
            Kind::Group => "a group",
            Kind::Info => "an info object",
            Kind::Op => "an operation",
            Kind::Errhandler => "an error handler",
            Kind::Request => "a request",
            Kind::Message => "a message",
            Kind::Session => "a session",
            Kind::File => "a file",
            Kind::ForeignType => "another rank's datatype",
        }
    }

    /// The null handle.
    fn null_name(self) -> &'static str {
        match self {
            Kind::Comm | Kind::Draft | Kind::Described => "MPI_COMM_NULL",
            Kind::Win => "MPI_WIN_NULL",
            Kind::Type | Kind::ForeignType => "MPI_DATATYPE_NULL",
            Kind::Group => "MPI_GROUP_NULL",
            Kind::Info => "MPI_INFO_NULL",
            Kind::Op => "MPI_OP_NULL",
            Kind::Errhandler => "MPI_ERRHANDLER_NULL",
            Kind::Request => "MPI_REQUEST_NULL",
            Kind::Message => "MPI_MESSAGE_NULL",
            Kind::Session => "MPI_SESSION_NULL",
            Kind::File => "MPI_FILE_NULL",
        }
    }
}

/// The number of slots, and with it of objects that exist at a time.
const SLOTS: usize = if cfg!(target_pointer_width = "64") { 1 << 22 } else { 1 << 20 };

/// The number of freed slots that stay free, so that a freed handle is recognised for long.
const RESTING: usize = 4096;

struct Slot {
    /// The [`Kind`] of its object; 0 without one.
    kind: AtomicU32,
    /// The object: what `Arc::into_raw` returned.
    object: AtomicPtr<()>,
}

/// The address of the first slot. Before there are slots, no address is near it.
static BASE: AtomicUsize = AtomicUsize::new(usize::MAX - SLOTS * size_of::<Slot>());

/// The free slots.
#[derive(Default)]
struct Free {
    /// Freed ones, in the order of their freeing.
    freed: VecDeque<u32>,
    /// The first that was never used.
    next: u32,
}

static FREE: Mutex<Free> = Mutex::new(Free { freed: VecDeque::new(), next: 0 });

/// The slots. They are made with the first object.
fn slots() -> Result<&'static [Slot]> {
    static MADE: OnceLock<&'static [Slot]> = OnceLock::new();
    if let Some(made) = MADE.get() {
        return Ok(made);
    }
    let _making = FREE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(made) = MADE.get() {
        return Ok(made);
    }
    let layout = Layout::array::<Slot>(SLOTS).unwrap_or(Layout::new::<Slot>());
    // SAFETY: the layout has a size. All zero is a slot without an object.
    let made = unsafe {
        let start = alloc_zeroed(layout).cast::<Slot>();
        if start.is_null() {
            let (bytes, limit) = (layout.size(), MemoryLimit::find());
            let what = format!("{bytes} bytes for handles can't be allocated: {limit}");
            return Err(Fault::new(Class::NoMem, what));
        }
        std::slice::from_raw_parts(start, SLOTS)
    };
    BASE.store(made.as_ptr().addr(), Ordering::Release);
    Ok(MADE.get_or_init(|| made))
}

/// The bits of a slot's distance from the first slot.
const DISTANCE: usize = SLOTS * size_of::<Slot>() - size_of::<Slot>();

const _: () = assert!(SLOTS.is_power_of_two() && size_of::<Slot>().is_power_of_two());

/// The slot of a handle. A predefined handle has none: the slots aren't at the first addresses.
#[inline]
fn slot_of(handle: Handle) -> Option<&'static Slot> {
    let address = handle.number();
    let is_slot = address.wrapping_sub(BASE.load(Ordering::Acquire)) & !DISTANCE == 0;
    // SAFETY: the address is that of a slot, and slots are never freed. Before there are slots, the
    // distance of every address is above theirs, or that of the last addresses, which the system
    // keeps.
    is_slot.then(|| unsafe { &*ptr::with_exposed_provenance(address) })
}

/// The handle that is the address of a slot.
fn handle_of(slot: &'static Slot) -> Handle {
    Handle::predefined(ptr::from_ref(slot).expose_provenance())
}

/// The integer that Fortran has for a handle (MPI-5.0 section 20.3).
pub fn to_int(handle: Handle) -> i32 {
    let base = BASE.load(Ordering::Acquire);
    match slot_of(handle) {
        None => handle.number() as i32,
        Some(_) => (PREDEFINED + (handle.number() - base) / size_of::<Slot>()) as i32,
    }
}

/// The handle of an integer of [`to_int`].
pub fn from_int(number: i32) -> Handle {
    let index = usize::try_from(number).ok().and_then(|number| number.checked_sub(PREDEFINED));
    let slot = index.and_then(|index| slots().ok()?.get(index));
    slot.map_or(Handle::predefined(number as usize), handle_of)
}

/// Gives an object a handle.
pub fn insert<T: Object>(object: Arc<T>) -> Result<Handle> {
    let slots = slots()?;
    let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
    let index = match free.next as usize {
        next if free.freed.len() <= RESTING && next < SLOTS => {
            free.next += 1;
            next
        }
        _ => match free.freed.pop_front() {
            Some(index) => index as usize,
            None => {
                let what = format!("there are {SLOTS} objects: free some first");
                return Err(Fault::new(Class::NoMem, what));
            }
        },
    };
    let slot = &slots[index];
    put(slot, object);
    // Requests and messages are made often. The former note themselves.
    if !matches!(T::KIND, Kind::Request | Kind::Message) {
        made::note(index as u32);
    }
    Ok(handle_of(slot))
}

/// The number of a handle's slot.
pub fn number_of(handle: Handle) -> Option<u32> {
    slot_of(handle)?;
    let distance = handle.number() - BASE.load(Ordering::Acquire);
    Some((distance / size_of::<Slot>()) as u32)
}

/// Under `--check`, the objects that exist and that the program could free, with their kinds and
/// the lines that made them, in the order of the slots. The lines of messages aren't known.
pub fn left() -> Vec<(Handle, Kind, Option<&'static SourceLine>)> {
    let Ok(slots) = slots() else { return Vec::new() };
    let next = FREE.lock().unwrap_or_else(PoisonError::into_inner).next as usize;
    let kind = |slot: &Slot| slot.kind.load(Ordering::Acquire);
    let messages = slots[..next].iter().filter(|slot| kind(slot) == Kind::Message as u32);
    let mut left: Vec<_> = messages.map(|slot| (handle_of(slot), Kind::Message, None)).collect();
    for (number, line) in made::all() {
        let slot = &slots[number as usize];
        let known = Kind::NOTED.iter().find(|known| **known as u32 == kind(slot));
        left.extend(known.map(|known| (handle_of(slot), *known, line)));
    }
    left
}

/// Under `--check`, the line that made an object.
pub fn line_of<T: Object>(object: &T) -> Option<Option<&'static SourceLine>> {
    let slots = slots().ok()?;
    let is_its = |number: u32| {
        let at = slots[number as usize].object.load(Ordering::Relaxed).cast_const();
        ptr::eq(at.cast::<T>(), object)
    };
    made::all().into_iter().find_map(|(number, line)| is_its(number).then_some(line))
}

/// Gives a handle another object, in place of one of another kind.
pub fn replace<T: Object, U: Object>(handle: Handle, object: Arc<U>) -> Result<Arc<T>> {
    let slot = slot_of(handle).ok_or_else(|| invalid::<T>(handle))?;
    let before = take::<T>(slot, handle)?;
    put(slot, object);
    Ok(before)
}

/// Gives an empty slot an object.
fn put<T: Object>(slot: &Slot, object: Arc<T>) {
    slot.object.store(Arc::into_raw(object).cast_mut().cast(), Ordering::Relaxed);
    slot.kind.store(T::KIND as u32, Ordering::Release);
}

/// Takes the object out of the slot of a handle.
fn take<T: Object>(slot: &Slot, handle: Handle) -> Result<Arc<T>> {
    let (here, none) = (T::KIND as u32, 0);
    let taken = slot.kind.compare_exchange(here, none, Ordering::AcqRel, Ordering::Relaxed);
    taken.map_err(|_| invalid::<T>(handle))?;
    let object = slot.object.load(Ordering::Relaxed).cast::<T>();
    // SAFETY: the slot had one of the object's counts, which only the exchange above hands over.
    Ok(unsafe { Arc::from_raw(object) })
}

/// The object of a handle.
pub fn find<T: Object>(handle: Handle) -> Result<Arc<T>> {
    match slot_of(handle) {
        Some(slot) if slot.kind.load(Ordering::Acquire) == T::KIND as u32 => {
            let object = slot.object.load(Ordering::Relaxed).cast::<T>();
            // SAFETY: the slot has one of the counts of an Arc of this type, since it is of its
            // kind. No thread frees a handle that another one uses in a call, as MPI asks.
            unsafe {
                Arc::increment_strong_count(object);
                Ok(Arc::from_raw(object))
            }
        }
        _ => T::predefined(handle).ok_or_else(|| invalid::<T>(handle)),
    }
}

/// The object of a handle, without a count: only while no other call of the program may free it,
/// and this one doesn't.
#[inline]
pub fn borrow_object<T: Object>(handle: Handle) -> Option<&'static T> {
    let slot = slot_of(handle)?;
    if slot.kind.load(Ordering::Acquire) != T::KIND as u32 {
        return None;
    }
    // SAFETY: as in `find`. The object stays while its handle isn't freed, which no thread does
    // during the call.
    unsafe { slot.object.load(Ordering::Relaxed).cast::<T>().as_ref() }
}

/// [`borrow_object`], with the error of a handle of no such object. A predefined handle has none.
#[inline]
pub fn borrow<T: Object>(handle: Handle) -> Result<&'static T> {
    borrow_object(handle).ok_or_else(|| invalid::<T>(handle))
}

/// The object of a handle that may be null.
pub fn find_optional<T: Object>(handle: Handle) -> Result<Option<Arc<T>>> {
    if handle == T::NULL { Ok(None) } else { find(handle).map(Some) }
}

/// Frees a handle, which becomes null. Its object lives on while others use it.
pub fn remove<T: Object>(handle: &mut Handle) -> Result<Arc<T>> {
    let object = match slot_of(*handle) {
        Some(slot) => {
            let object = take::<T>(slot, *handle)?;
            let index = (handle.number() - BASE.load(Ordering::Acquire)) / size_of::<Slot>();
            let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
            free.freed.push_back(index as u32);
            object
        }
        None if T::predefined(*handle).is_some() => {
            return Err(Fault::new(T::CLASS, "a predefined handle can't be freed".to_owned()));
        }
        None => return Err(invalid::<T>(*handle)),
    };
    *handle = T::NULL;
    Ok(object)
}

#[cold]
fn invalid<T: Object>(handle: Handle) -> Fault {
    let kind = T::KIND;
    let what = match handle {
        null if null == T::NULL => {
            format!("{} was passed: {} is needed", kind.null_name(), kind.name())
        }
        _ => match slot_of(handle) {
            Some(slot) if slot.kind.load(Ordering::Relaxed) == 0 => {
                format!("the handle of {} is freed: use objects before they are freed", kind.name())
            }
            Some(slot) if slot.kind.load(Ordering::Relaxed) == Kind::Draft as u32 => {
                "the communicator isn't made yet: complete the request first".to_owned()
            }
            Some(slot) if slot.kind.load(Ordering::Relaxed) == Kind::Described as u32 => {
                "the communicator was unpacked, and its ranks may be gone: it can only be given to \
                 MPIX_Comm_compare, MPIX_Unpack and MPI_Comm_free"
                    .to_owned()
            }
            Some(_) => format!("the handle is of another kind: {} is needed", kind.name()),
            None => format!("{:#x} is no handle of {}", handle.number(), kind.name()),
        },
    };
    Fault::new(T::CLASS, what)
}
