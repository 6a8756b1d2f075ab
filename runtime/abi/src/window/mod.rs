//! Windows (MPI-5.0 chapter 12).
//!
//! | file | holds |
//! |---|---|
//! | `mod.rs` | [`Win`], the object behind a handle: making windows, and what is asked of them |
//! | [`epoch`] | synchronisation (sections 12.4 and 12.5) |
//! | [`rma`] | operations (section 12.3) |
//!
//! The quick way of operations is in [`quick`](crate::call::quick) and
//! [`attempt`](crate::call::attempt).
#![allow(unsafe_code)]

pub(crate) mod epoch;
pub(crate) mod rma;

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use longshore::{Allocation, Attached, Class, ErrorKind, Flavor, Info as Hints, Pointed, Window};

use crate::communicator::{Comm, group};
use crate::edge::arg::{Address, Buffer, Chars, Room};
use crate::edge::fault::{Fault, Result};
use crate::edge::handle::{Handle, Kind, Object, find, insert, remove};
use crate::edge::lock::lock;
use crate::edge::turn::Turn;
use crate::edge::{constants as c, state};
use crate::objects::info::{Info, kinds_of_memory};
use crate::objects::keyval::{self, Attributes, Holder};
use crate::objects::object::Card;

/// A window.
pub struct Win {
    window: OnceLock<Window>,
    /// The thread that uses the window.
    turn: Turn,
    card: Card,
    facts: Facts,
    /// The attachments of a dynamic window, by their addresses.
    attachments: Mutex<BTreeMap<usize, Attached<Pointed>>>,
}

// SAFETY: the window isn't shared without a turn: `turn` gives it to one thread at a time if
// several may call. If only one may, no other one comes here.
unsafe impl Sync for Win {}
// SAFETY: the window of the runtime may move to other threads.
unsafe impl Send for Win {}

/// The values of the predefined attributes, where programs find them.
struct Facts {
    base: Address,
    size: isize,
    unit: c_int,
    flavor: c_int,
    model: c_int,
}

impl Object for Win {
    const KIND: Kind = Kind::Win;
    const CLASS: Class = Class::Win;
    const NULL: Handle = c::WIN_NULL;

    fn predefined(_: Handle) -> Option<Arc<Win>> {
        None
    }
}

impl Win {
    pub fn card(&self) -> &Card {
        &self.card
    }

    /// The window, where only one thread calls; `None` where a turn has to be taken.
    #[inline]
    pub fn alone(&self) -> Option<&Window> {
        match state::is_threaded() {
            true => None,
            false => self.window.get(),
        }
    }

    /// Runs a call on the window, when no other thread does.
    #[inline]
    pub fn with<R>(&self, call: impl FnOnce(&Window) -> R) -> Result<R> {
        let _turn = self.turn.take();
        match self.window.get() {
            Some(window) => Ok(call(window)),
            None => Err(freed()),
        }
    }
}

impl Holder for Win {
    fn attributes(&self) -> MutexGuard<'_, Attributes> {
        self.card.attributes()
    }

    fn predefined_attribute(&self, keyval: c_int) -> Option<Address> {
        fn at<T>(value: &T) -> Address {
            Address::new(std::ptr::from_ref(value).cast_mut().cast())
        }
        match keyval {
            c::WIN_BASE => Some(self.facts.base),
            c::WIN_SIZE => Some(at(&self.facts.size)),
            c::WIN_DISP_UNIT => Some(at(&self.facts.unit)),
            c::WIN_CREATE_FLAVOR => Some(at(&self.facts.flavor)),
            c::WIN_MODEL => Some(at(&self.facts.model)),
            _ => None,
        }
    }
}

#[cold]
fn freed() -> Fault {
    Fault::new(Class::Win, "the window is freed".to_owned())
}

/// The hints of a program. Windows of C take target types of the same layout, unless it says
/// otherwise. A value that a hint doesn't take is ignored, as MPI says.
fn hints(info: Option<&Info>) -> Hints {
    let with = |hints: Hints, key: &str, value: &str| hints.set(key, value).unwrap_or(hints);
    let mut hints = with(Hints::default(), "target_types", "same_layout");
    for (key, value) in info.map(Info::pairs).unwrap_or_default() {
        hints = with(hints, &key, &value);
    }
    hints
}

/// A handle of a new window.
fn made(window: Window) -> Result<Handle> {
    let flavor = match window.flavor() {
        Flavor::Create => c::WIN_FLAVOR_CREATE,
        Flavor::Allocate => c::WIN_FLAVOR_ALLOCATE,
        Flavor::Dynamic => c::WIN_FLAVOR_DYNAMIC,
        _ => c::WIN_FLAVOR_SHARED,
    };
    let is_dynamic = flavor == c::WIN_FLAVOR_DYNAMIC;
    let facts = Facts {
        base: Address::new(window.base().cast()),
        size: if is_dynamic { 0 } else { window.size() as isize },
        unit: if is_dynamic { 1 } else { window.disp_unit() as c_int },
        flavor,
        model: c::WIN_UNIFIED,
    };
    let place = OnceLock::new();
    let _ = place.set(window);
    let (turn, card, attachments) = (Turn::default(), Card::default(), Mutex::default());
    insert(Arc::new(Win { window: place, turn, card, facts, attachments }))
}

fn base_of(handle: Handle, room: Address) -> Result<()> {
    let base = find::<Win>(handle)?.facts.base;
    room.room::<*mut std::ffi::c_void>().set(0, base.pointer());
    Ok(())
}

fn some_room(room: Address) -> Result<()> {
    match room.is_null() {
        true => Err(Fault::argument("baseptr is a null pointer")),
        false => Ok(()),
    }
}

pub fn win_allocate(
    size: i64,
    unit: i64,
    info: Option<&Info>,
    comm: &Comm,
    room: Address,
) -> Result<Handle> {
    some_room(room)?;
    let handle = made(Window::allocate(comm.inner(), size, unit, &hints(info))?)?;
    base_of(handle, room)?;
    Ok(handle)
}

pub fn win_allocate_shared(
    size: i64,
    unit: i64,
    info: Option<&Info>,
    comm: &Comm,
    room: Address,
) -> Result<Handle> {
    some_room(room)?;
    let handle = made(Window::allocate_shared(comm.inner(), size, unit, &hints(info))?)?;
    base_of(handle, room)?;
    Ok(handle)
}

pub fn win_create(
    base: Buffer,
    size: i64,
    unit: i64,
    info: Option<&Info>,
    comm: &Comm,
) -> Result<Handle> {
    // An argument that is wrong is refused by the call, in which all ranks take part.
    let wrong = |class, problem| Err(ErrorKind::WindowArgument { class, problem });
    let memory = match usize::try_from(size) {
        Err(_) => wrong(Class::Size, format!("the size is {size}")),
        Ok(len) if base.address().is_null() && len > 0 => {
            wrong(Class::Base, format!("the address of {len} bytes is null"))
        }
        // SAFETY: the program says that the memory is there until it frees the window.
        Ok(len) => Ok(unsafe { Pointed::new(base.address(), len) }),
    };
    made(Window::create_checked(comm.inner(), memory, unit, &hints(info))?.into())
}

pub fn win_create_dynamic(info: Option<&Info>, comm: &Comm) -> Result<Handle> {
    made(Window::create_dynamic(comm.inner(), &hints(info))?)
}

pub fn win_attach(win: &Win, base: Buffer, size: i64) -> Result<()> {
    let wrong = |_| Fault::new(Class::Size, format!("the size is {size}"));
    let len = usize::try_from(size).map_err(wrong)?;
    if base.address().is_null() && len > 0 {
        return Err(Fault::new(Class::Base, format!("the address of {len} bytes is null")));
    }
    // SAFETY: the program says that the memory is there until it detaches it.
    let memory = unsafe { Pointed::new(base.address(), len) };
    let attached = win.with(|window| window.attach(memory))??;
    lock(&win.attachments).insert(base.address().addr(), attached);
    Ok(())
}

pub fn win_detach(win: &Win, base: Buffer) -> Result<()> {
    // The attachment stays if the window can't be used now.
    win.with(|window| {
        let Some(attached) = lock(&win.attachments).remove(&base.address().addr()) else {
            let what = format!("no memory is attached at {:#x}", base.address().addr());
            return Err(Fault::new(Class::RmaAttach, what));
        };
        window.detach(attached)?;
        Ok(())
    })?
}

/// What could refuse the free comes first, so that the window stays as it is then.
pub fn win_free(handle: &mut Handle) -> Result<()> {
    let win = find::<Win>(*handle)?;
    win.with(Window::may_free)??;
    keyval::clear(&*win, *handle)?;
    drop(win);
    let win = remove::<Win>(handle)?;
    match Arc::into_inner(win).and_then(|win| win.window.into_inner()) {
        Some(window) => Ok(window.free()?),
        None => Err(Fault::new(Class::Win, "another thread uses the window".to_owned())),
    }
}

pub fn win_get_group(win: &Win) -> Result<Handle> {
    group::made(win.with(|window| window.group().clone())?, None)
}

pub fn win_get_info(win: &Win) -> Result<Handle> {
    let hints = win.with(Window::info)?;
    let pairs = Hints::KEYS.into_iter();
    let pairs = pairs.filter_map(|key| Some((key.to_owned(), hints.get(key)?)));
    insert(Arc::new(Info::new(pairs.chain([kinds_of_memory()]).collect())))
}

/// Hints that can only be given when the window is made have no effect.
pub fn win_set_info(win: &Win, info: &Info) -> Result<()> {
    let given = info.pairs();
    win.with(|window| {
        let mut hints = window.info();
        for (key, value) in &given {
            hints = hints.set(key, value).unwrap_or(hints);
        }
        // A hint that can't change any more is refused, and the others with it.
        let _ = window.set_info(&hints);
    })
}

pub fn win_set_name(win: &Win, name: &str) -> Result<()> {
    win.card.set_name(name);
    win.with(|window| window.set_name(name))
}

pub fn win_get_name(handle: Handle, room: Chars) -> Result<usize> {
    let name = match handle {
        c::WIN_NULL => "MPI_WIN_NULL".to_owned(),
        _ => find::<Win>(handle)?.card.name(),
    };
    Ok(room.write(&name, c::MAX_OBJECT_NAME as usize))
}

pub fn win_shared_query(win: &Win, rank: c_int, room: Address) -> Result<(i64, i64)> {
    some_room(room)?;
    let room: Room<*mut u8> = room.room();
    let facts = win.with(|window| -> longshore::Result<_> {
        let there = window.shared_query(rank)?;
        // No part of the memory belongs to a rank that has none of it.
        let base = if there.size() == 0 { std::ptr::null_mut() } else { there.base() };
        Ok((base, there.size(), there.disp_unit()))
    })?;
    let (base, size, unit) = facts?;
    room.set(0, base);
    Ok((size, unit))
}

/// The alignment of memory that no hint asks more of: that of [`Allocation`].
const ALIGNMENT: usize = 64;

/// Memory of MPI_Alloc_mem.
enum Given {
    /// In the segment, so that windows over it are reached directly.
    Placed(Allocation),
    /// The C library's, if the segment has no room, or if a hint asks for more alignment.
    Plain,
}

/// The memory of MPI_Alloc_mem that isn't free, by its address.
static GIVEN: Mutex<BTreeMap<usize, Given>> = Mutex::new(BTreeMap::new());

pub fn alloc_mem(size: i64, info: Option<&Info>, room: Address) -> Result<()> {
    some_room(room)?;
    let wrong = |_| Fault::argument(format_args!("the size is {size}"));
    let size = usize::try_from(size).map_err(wrong)?;
    let asked = info.and_then(|info| info.get("mpi_minimum_memory_alignment"));
    let asked = asked.and_then(|asked| asked.parse::<usize>().ok());
    let alignment = asked.filter(|asked| asked.is_power_of_two()).unwrap_or(1).max(ALIGNMENT);
    let placed = match alignment {
        ALIGNMENT => state::state()?.rank().alloc_mem(size).ok(),
        _ => None,
    };
    if let Some(placed) = placed {
        let start = placed.start();
        lock(&GIVEN).insert(start.addr(), Given::Placed(placed));
        room.room::<*mut std::ffi::c_void>().set(0, start.cast());
        return Ok(());
    }
    let mut memory = std::ptr::null_mut();
    // SAFETY: there is room for the address, and the alignment is a power of two.
    let failed = unsafe { libc::posix_memalign(&raw mut memory, alignment, size.max(1)) };
    if failed != 0 {
        return Err(Fault::new(Class::NoMem, format!("there are no {size} bytes")));
    }
    lock(&GIVEN).insert(memory.addr(), Given::Plain);
    room.room::<*mut std::ffi::c_void>().set(0, memory);
    Ok(())
}

/// Memory over which windows are made stays until they are freed. A null pointer is freed as by
/// `free`.
pub fn free_mem(base: Buffer) -> Result<()> {
    let address = base.address().addr();
    if base.address().is_null() {
        return Ok(());
    }
    let given = lock(&GIVEN).remove(&address);
    match given {
        // SAFETY: posix_memalign returned it, and it was in the table, so it isn't free.
        Some(Given::Plain) => unsafe { libc::free(base.address().cast()) },
        // The windows over it hold it as well.
        Some(Given::Placed(placed)) => drop(placed),
        None => {
            let what = "MPI_Alloc_mem returned no memory, or it is free already, at";
            return Err(Fault::new(Class::Base, format!("{what} {address:#x}")));
        }
    }
    Ok(())
}
