//! Sessions (MPI-5.0 section 11.3).
//!
//! All sessions of a process, and the world of MPI_Init, have one rank of the job. It joins with
//! the first of them, and leaves with MPI_Finalize. A process without MPI_Init leaves when it
//! exits, since another session may begin until then.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Once};

use longshore::Class;

use crate::communicator::group::{self, Group};
use crate::communicator::{self, Comm};
use crate::edge::arg::{Address, Buffer, Chars};
use crate::edge::constants::{
    COMM_NULL, MAX_PSET_NAME_LEN, SESSION_NULL, THREAD_FUNNELED, THREAD_MULTIPLE,
    THREAD_SERIALIZED, THREAD_SINGLE,
};
use crate::edge::fault::{Fault, Result};
use crate::edge::handle::{Handle, Kind, Object, insert, remove};
use crate::edge::state;
use crate::message::buffered::{self, Owner};
use crate::objects::errhandler::Errhandler;
use crate::objects::info::{Info, Pairs, kinds_of_memory};
use crate::objects::object::Card;

/// A session.
pub struct Session {
    card: Card,
    threads: i32,
    /// The number by which its groups and communicators name it.
    number: u64,
}

impl Object for Session {
    const KIND: Kind = Kind::Session;
    const CLASS: Class = Class::Session;
    const NULL: Handle = SESSION_NULL;

    fn predefined(_: Handle) -> Option<Arc<Session>> {
        None
    }
}

impl Session {
    pub fn card(&self) -> &Card {
        &self.card
    }
}

/// The process sets that every session has.
const SETS: [&str; 2] = ["mpi://WORLD", "mpi://SELF"];

fn set(name: &str) -> Result<longshore::Group> {
    let rank = state::state()?.rank();
    match SETS.iter().position(|set| set.eq_ignore_ascii_case(name)) {
        Some(0) => Ok(rank.world().group().clone()),
        Some(_) => Ok(rank.alone().group().clone()),
        None => Err(Fault::argument(format_args!("there is no process set {name:?}"))),
    }
}

pub fn session_init(info: Option<&Info>, errhandler: &Arc<Errhandler>) -> Result<Handle> {
    let level = info.and_then(|info| info.get("thread_level"));
    let levels = [THREAD_SINGLE, THREAD_FUNNELED, THREAD_SERIALIZED, THREAD_MULTIPLE];
    let named = |level: &String| levels.into_iter().find(|it| state::level_name(*it) == level);
    let threads = match &level {
        Some(level) => named(level).ok_or_else(|| no_level(level))?,
        None => THREAD_MULTIPLE,
    };
    errhandler.suits(Kind::Session)?;
    state::join(threads)?;
    communicator::begin(state::state()?.rank());
    leave_at_exit();
    state::begin_session();
    static STARTED: AtomicU64 = AtomicU64::new(0);
    let number = STARTED.fetch_add(1, Ordering::Relaxed);
    let session = Session { card: Card::default(), threads, number };
    session.card.set_errhandler(errhandler.clone());
    insert(Arc::new(session))
}

fn no_level(level: &str) -> Fault {
    let what = format!(
        "there is no thread_level {level}: use MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, \
         MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE"
    );
    Fault::new(Class::InfoValue, what)
}

/// Lets the process leave its job when it exits, if it never calls MPI_Init.
fn leave_at_exit() {
    extern "C" fn leave() {
        state::leave_at_exit();
    }
    static ONCE: Once = Once::new();
    // SAFETY: the function takes no argument and doesn't unwind. The library isn't unloaded before
    // the process exits, since exit handlers keep it.
    ONCE.call_once(|| unsafe {
        // Without a free place for it, the launcher reports that the rank left too early.
        let _ = libc::atexit(leave);
    });
}

pub fn session_finalize(handle: &mut Handle) -> Result<()> {
    let session = remove::<Session>(handle)?;
    let sent = buffered::end_session(session.number);
    state::end_session();
    sent
}

pub fn session_attach_buffer(session: &Session, buffer: Buffer, size: i64) -> Result<()> {
    buffered::attach(Owner::Session(session.number), buffer, size)
}

pub fn session_detach_buffer(session: &Session, room: Address) -> Result<i64> {
    buffered::detach_to(room, Owner::Session(session.number))
}

pub fn session_flush_buffer(session: &Session) -> Result<()> {
    buffered::flush(Owner::Session(session.number))
}

pub fn session_iflush_buffer(session: &Session) -> Result<Handle> {
    buffered::flush_by_request(Owner::Session(session.number))
}

pub fn session_get_num_psets(_session: &Session, _info: Option<&Info>) -> Result<i32> {
    Ok(SETS.len() as i32)
}

/// A length of 0 asks for the length.
pub fn session_get_nth_pset(
    _session: &Session,
    _info: Option<&Info>,
    n: i32,
    length: &mut i32,
    room: Chars,
) -> Result<()> {
    let Some(name) = usize::try_from(n).ok().and_then(|n| SETS.get(n)) else {
        return Err(Fault::argument(format_args!("there is no process set {n}")));
    };
    let size = usize::try_from(*length);
    let size = size.map_err(|_| Fault::argument(format_args!("pset_len is {length}")))?;
    if size > 0 && room.is_null() {
        return Err(Fault::argument(format_args!("pset_name is null, and pset_len {size}")));
    }
    if size > 0 {
        room.write(name, size.min(MAX_PSET_NAME_LEN as usize));
    }
    *length = name.len() as i32 + 1;
    Ok(())
}

pub fn session_get_info(session: &Session) -> Result<Handle> {
    let level = ("thread_level".to_owned(), state::level_name(session.threads).to_owned());
    insert(Arc::new(Info::new(vec![level, kinds_of_memory()])))
}

pub fn session_get_pset_info(_session: &Session, name: &str) -> Result<Handle> {
    let size = set(name)?.size();
    let pairs: Pairs = vec![("mpi_size".to_owned(), size.to_string())];
    insert(Arc::new(Info::new(pairs)))
}

pub fn group_from_session_pset(session: &Session, name: &str) -> Result<Handle> {
    group::made(set(name)?, Some(session.number))
}

/// The processes of the group agree by messages on the world's communicator. The string tag keeps
/// two calls of the same processes apart.
pub fn comm_create_from_group(
    group: &Group,
    tag: &str,
    info: Option<&Info>,
    errhandler: &Arc<Errhandler>,
) -> Result<Handle> {
    errhandler.suits(Kind::Comm)?;
    if group.inner().size() == 0 {
        return Ok(COMM_NULL);
    }
    let world = state::state()?.rank().world();
    let inner = world.create_group(group.inner(), number_of(tag))?;
    Comm::from_group(inner, errhandler.clone(), info, group.session())
}

/// The tag that stands for a string.
pub fn number_of(tag: &str) -> i32 {
    // FNV-1a, which must be the same on every machine.
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    (tag.bytes().fold(0x811c_9dc5u32, step) & 0x3fff_ffff) as i32
}
