//! Infos: pairs of keys and values (MPI-5.0 chapter 10).

use std::env;
use std::sync::{Arc, Mutex, OnceLock};

use longshore::Class;

use crate::edge::arg::Chars;
use crate::edge::constants::{INFO_ENV, INFO_NULL, MAX_INFO_KEY, MAX_INFO_VAL};
use crate::edge::fault::{Fault, Result};
use crate::edge::handle::{Handle, Kind, Object, insert, remove};
use crate::edge::lock::lock;
use crate::objects::hint;

/// Keys and their values, in the order of their setting.
pub type Pairs = Vec<(String, String)>;

/// An info.
#[derive(Default)]
pub struct Info {
    pairs: Mutex<Pairs>,
}

impl Object for Info {
    const KIND: Kind = Kind::Info;
    const CLASS: Class = Class::Info;
    const NULL: Handle = INFO_NULL;

    fn predefined(handle: Handle) -> Option<Arc<Info>> {
        static ENV: OnceLock<Arc<Info>> = OnceLock::new();
        (handle == INFO_ENV).then(|| ENV.get_or_init(|| Arc::new(Info::new(environment()))).clone())
    }
}

impl Info {
    pub fn new(pairs: Pairs) -> Info {
        Info { pairs: Mutex::new(pairs) }
    }

    /// A copy of the pairs.
    pub fn pairs(&self) -> Pairs {
        lock(&self.pairs).clone()
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<String> {
        let pairs = lock(&self.pairs);
        pairs.iter().find(|(known, _)| known == key).map(|(_, value)| value.clone())
    }
}

/// Sets a key of some pairs.
pub fn set(pairs: &mut Pairs, key: &str, value: &str) {
    match pairs.iter_mut().find(|(known, _)| known == key) {
        Some((_, old)) => value.clone_into(old),
        None => pairs.push((key.to_owned(), value.to_owned())),
    }
}

/// The kinds of memory that calls take, in the infos of communicators, windows and sessions
/// (MPI-5.0 section 12.4.3): the system's, and that of MPI's own functions.
pub fn kinds_of_memory() -> (String, String) {
    ("mpi_memory_alloc_kinds".to_owned(), "mpi,system".to_owned())
}

/// How the program was started (MPI-5.0 section 11.2.3), as far as the process knows it.
fn environment() -> Pairs {
    let mut pairs = Pairs::new();
    let mut arguments = env::args_os().map(|argument| argument.to_string_lossy().into_owned());
    if let Some(command) = arguments.next() {
        pairs.push(("command".to_owned(), command));
    }
    let rest: Vec<String> = arguments.collect();
    if !rest.is_empty() {
        pairs.push(("argv".to_owned(), rest.join(" ")));
    }
    if let Ok(size) = env::var("PMI_SIZE") {
        pairs.push(("maxprocs".to_owned(), size));
    }
    if let Ok(wdir) = env::current_dir() {
        pairs.push(("wdir".to_owned(), wdir.to_string_lossy().into_owned()));
    }
    pairs.push(("arch".to_owned(), env::consts::ARCH.to_owned()));
    let level = match crate::edge::state::get() {
        Some(state) => crate::edge::state::level_name(state.threads()),
        None => "MPI_THREAD_SINGLE",
    };
    pairs.push(("thread_level".to_owned(), level.to_owned()));
    pairs.retain(|(_, value)| value.len() < MAX_INFO_VAL as usize);
    pairs
}

fn checked_key(key: &str) -> Result<&str> {
    let trimmed = key.trim();
    match trimmed.len() {
        0 => Err(Fault::new(Class::InfoKey, "the key is empty".to_owned())),
        len if len >= MAX_INFO_KEY as usize => {
            let what = format!("the key has {len} characters, and at most 255 are allowed");
            Err(Fault::new(Class::InfoKey, what))
        }
        _ => Ok(trimmed),
    }
}

pub fn info_create() -> Result<Handle> {
    insert(Arc::new(Info::default()))
}

pub fn info_create_env(_argc: i32, _argv: crate::edge::arg::Address) -> Result<Handle> {
    insert(Arc::new(Info::new(environment())))
}

pub fn info_dup(info: &Info) -> Result<Handle> {
    insert(Arc::new(Info::new(info.pairs())))
}

pub fn info_free(info: &mut Handle) -> Result<()> {
    remove::<Info>(info).map(drop)
}

pub fn info_set(info: &Info, key: &str, value: &str) -> Result<()> {
    let key = checked_key(key)?;
    let value = value.trim();
    if value.len() >= MAX_INFO_VAL as usize {
        let what =
            format!("the value of {key} has {} characters: at most 1023 are allowed", value.len());
        return Err(Fault::new(Class::InfoValue, what));
    }
    set(&mut lock(&info.pairs), key, value);
    hint::report(key);
    Ok(())
}

pub fn info_delete(info: &Info, key: &str) -> Result<()> {
    let key = checked_key(key)?;
    let mut pairs = lock(&info.pairs);
    match pairs.iter().position(|(known, _)| known == key) {
        Some(at) => {
            pairs.remove(at);
            Ok(())
        }
        None => Err(Fault::new(Class::InfoNokey, format!("the info has no key {key}"))),
    }
}

pub fn info_get_nkeys(info: &Info) -> Result<usize> {
    Ok(lock(&info.pairs).len())
}

pub fn info_get_nthkey(info: &Info, n: i32, room: Chars) -> Result<()> {
    let pairs = lock(&info.pairs);
    let nth = usize::try_from(n).ok().and_then(|n| pairs.get(n));
    let Some((key, _)) = nth else {
        let what = format!("there is no key {n} among {}", pairs.len());
        return Err(Fault::argument(what));
    };
    room.write(key, MAX_INFO_KEY as usize);
    Ok(())
}

pub fn info_get_string(info: &Info, key: &str, buflen: &mut i32, room: Chars) -> Result<bool> {
    let key = checked_key(key)?;
    let Ok(size) = usize::try_from(*buflen) else {
        return Err(Fault::argument(format_args!("buflen is {buflen}")));
    };
    let Some(value) = info.get(key) else { return Ok(false) };
    room.write(&value, size);
    *buflen = value.len() as i32 + 1;
    Ok(true)
}

pub fn info_get(info: &Info, key: &str, valuelen: i32, room: Chars) -> Result<bool> {
    let key = checked_key(key)?;
    let Ok(size) = usize::try_from(valuelen) else {
        return Err(Fault::argument(format_args!("valuelen is {valuelen}")));
    };
    let Some(value) = info.get(key) else { return Ok(false) };
    room.write(&value, size + 1);
    Ok(true)
}

pub fn info_get_valuelen(info: &Info, key: &str) -> Result<(i32, bool)> {
    let value = info.get(checked_key(key)?);
    Ok((value.as_ref().map_or(0, |value| value.len() as i32), value.is_some()))
}
