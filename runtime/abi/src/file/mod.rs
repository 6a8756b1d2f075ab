//! Files (MPI-5.0 chapter 14).
//!
//! | file | holds |
//! |---|---|
//! | `mod.rs` | [`File`], the object behind a handle: opening and closing, views, queries |
//! | [`access`] | reading and writing (section 14.4) |
//! | [`datarep`] | representations that programs register (section 14.5.3) |
//!
//! The crate `longshore-file` has all I/O.

pub(crate) mod access;
pub(crate) mod datarep;

use std::ffi::c_int;
use std::path::Path;
use std::sync::{Arc, Mutex};

use longshore::Class;
use longshore_file::{Amode, Info as Hints, Whence};

use crate::communicator::{Comm, group};
use crate::datatype::{Type, query};
use crate::edge::arg::Chars;
use crate::edge::constants::{
    ERRORS_RETURN, FILE_NULL, MAX_DATAREP_STRING, SEEK_CUR, SEEK_END, SEEK_SET,
};
use crate::edge::fault::{Fault, Raiser, Result};
use crate::edge::handle::{Handle, Kind, Object, find, insert, remove};
use crate::edge::lock::lock;
use crate::file::access::error_of;
use crate::file::datarep::Registered;
use crate::objects::errhandler::Errhandler;
use crate::objects::info::{Info, Pairs};
use crate::objects::object::Card;

/// A file.
pub struct File {
    inner: longshore_file::File,
    card: Card,
    /// The etype and the filetype of the view, if they were set.
    types: Mutex<Option<[Arc<Type>; 2]>>,
    /// The representation of the view, if the program has registered it.
    conversion: Mutex<Option<Arc<Registered>>>,
}

static OF_FILES: Mutex<Option<Arc<Errhandler>>> = Mutex::new(None);

impl File {
    pub fn card(&self) -> &Card {
        &self.card
    }

    pub fn inner(&self) -> &longshore_file::File {
        &self.inner
    }

    /// The representation of the view, if the program has registered it.
    pub fn conversion(&self) -> Option<Arc<Registered>> {
        lock(&self.conversion).clone()
    }

    /// The handler of files that have none of their own: MPI_ERRORS_RETURN at first (MPI-5.0
    /// section 14.7).
    pub fn default_handler() -> Arc<Errhandler> {
        let set = lock(&OF_FILES).clone();
        set.or_else(|| Errhandler::predefined(ERRORS_RETURN)).unwrap_or_else(Errhandler::fatal)
    }

    pub fn set_default_handler(handler: Arc<Errhandler>) {
        *lock(&OF_FILES) = Some(handler);
    }
}

impl Object for File {
    const KIND: Kind = Kind::File;
    const CLASS: Class = Class::File;
    const NULL: Handle = FILE_NULL;

    fn predefined(_: Handle) -> Option<Arc<File>> {
        None
    }
}

/// Hints with those of a program. A value that a hint doesn't take is ignored, as MPI says.
fn hints(before: Hints, info: Option<&Info>) -> Hints {
    let given = info.map(Info::pairs).unwrap_or_default();
    given.iter().fold(before, |hints, (key, value)| hints.clone().set(key, value).unwrap_or(hints))
}

pub fn file_open(comm: &Comm, path: &Path, amode: c_int, info: Option<&Info>) -> Result<Handle> {
    let hints = hints(Hints::default(), info);
    let inner = longshore_file::File::open(comm.inner(), path, Amode::from_bits(amode), &hints)?;
    let card = Card::default();
    // Later changes of the default are for files that are opened later.
    card.set_errhandler(File::default_handler());
    insert(Arc::new(File { inner, card, types: Mutex::default(), conversion: Mutex::default() }))
}

/// The ranks agree first that none refuses the close: a refused one leaves the file as it is.
pub fn file_close(handle: &mut Handle) -> Result<()> {
    find::<File>(*handle)?.inner.may_close()?;
    let file = remove::<File>(handle)?;
    match Arc::into_inner(file) {
        Some(file) => {
            let handler = file.card.errhandler();
            file.inner.close().map_err(|error| {
                // The handle is gone, but the program has given its handler for this error, too.
                let fault = Fault::from(error);
                match handler.handle() {
                    Ok(handler) => fault.on(Raiser::Handler(handler)),
                    Err(_) => fault,
                }
            })
        }
        None => Err(Fault::new(Class::File, "another thread uses the file".to_owned())),
    }
}

pub fn file_delete(path: &Path, _info: Option<&Info>) -> Result<()> {
    Ok(longshore_file::File::delete(path)?)
}

pub fn file_get_amode(file: &File) -> Result<c_int> {
    Ok(file.inner.amode().bits())
}

pub fn file_get_atomicity(file: &File) -> Result<bool> {
    Ok(file.inner.atomicity())
}

pub fn file_set_atomicity(file: &File, flag: bool) -> Result<()> {
    Ok(file.inner.set_atomicity(flag)?)
}

pub fn file_get_byte_offset(file: &File, offset: i64) -> Result<i64> {
    Ok(file.inner.byte_offset(offset)?)
}

pub fn file_get_group(file: &File) -> Result<Handle> {
    group::made(file.inner.group().clone(), None)
}

pub fn file_get_info(file: &File) -> Result<Handle> {
    let hints = file.inner.info();
    let pairs = Hints::KEYS.into_iter();
    let pairs: Pairs = pairs.filter_map(|key| Some((key.to_owned(), hints.get(key)?))).collect();
    insert(Arc::new(Info::new(pairs)))
}

pub fn file_set_info(file: &File, info: &Info) -> Result<()> {
    Ok(file.inner.set_info(&hints(file.inner.info(), Some(info)))?)
}

pub fn file_get_size(file: &File) -> Result<i64> {
    Ok(file.inner.size()?)
}

pub fn file_set_size(file: &File, size: i64) -> Result<()> {
    Ok(file.inner.set_size(size)?)
}

pub fn file_preallocate(file: &File, size: i64) -> Result<()> {
    Ok(file.inner.preallocate(size)?)
}

pub fn file_sync(file: &File) -> Result<()> {
    Ok(file.inner.sync()?)
}

pub fn file_get_type_extent(file: &File, datatype: &Type) -> Result<i64> {
    Ok(file.inner.type_extent(datatype.datatype())?)
}

/// MPI_DISPLACEMENT_CURRENT.
const CURRENT: i64 = -1;

/// Takes part in a collective call for which this rank has a fault, and returns that.
fn refused(file: &File, call: &'static str, fault: Fault) -> Fault {
    // The error is this fault, or one of the runtime, which follows from it.
    let _ = file.inner.refuse(call, error_of(&fault));
    fault
}

/// Takes part in a collective call for which this rank has a fault, and returns that. `function` is
/// the name of the function in the table.
pub fn refused_by(handle: Handle, function: &str, fault: Fault) -> Fault {
    let call = if function == "file_set_info" { "set_info" } else { "set_view" };
    match find::<File>(handle) {
        Ok(file) => refused(&file, call, fault),
        // No rank waits for one that has no file.
        Err(_) => fault,
    }
}

/// The etype and the filetype of a view, which are committed, and suit its representation.
fn view_types(handles: [Handle; 2], conversion: Option<&Registered>) -> Result<[Arc<Type>; 2]> {
    let types = [find::<Type>(handles[0])?, find::<Type>(handles[1])?];
    for datatype in &types {
        let committed = datatype.committed()?;
        conversion.map_or(Ok(()), |conversion| conversion.suits(committed.datatype()))?;
    }
    Ok(types)
}

pub fn file_set_view(
    file: &File,
    disp: i64,
    etype: Handle,
    filetype: Handle,
    datarep: &str,
    info: Option<&Info>,
) -> Result<()> {
    let conversion = Registered::named(datarep);
    let types = view_types([etype, filetype], conversion.as_deref());
    let types = types.map_err(|fault| refused(file, "set_view", fault))?;
    let [etype, filetype] = [types[0].committed()?, types[1].committed()?];
    let disp = Some(disp).filter(|disp| *disp != CURRENT);
    let hints = hints(file.inner.info(), info);
    // The conversion is that of this interface, before the file's.
    let passed = if conversion.is_some() { "native" } else { datarep };
    file.inner.set_view_named(disp, (etype, filetype), (passed, datarep), &hints)?;
    *lock(&file.types) = Some(types);
    *lock(&file.conversion) = conversion;
    Ok(())
}

pub fn file_get_view(file: &File, room: Chars) -> Result<(i64, Handle, Handle)> {
    let view = file.inner.view();
    let conversion = file.conversion();
    let name = conversion.as_ref().map_or(view.datarep.name(), |own| own.name());
    room.write(name, MAX_DATAREP_STRING as usize);
    let types = lock(&file.types).clone();
    let handle = |at: usize, datatype: &longshore::Type| {
        let version = types.as_ref().map(|types| types[at].shared_version());
        let handle = query::part(datatype.datatype(), version)?;
        find::<Type>(handle)?.commit()?;
        Ok::<_, Fault>(handle)
    };
    Ok((view.disp, handle(0, &view.etype)?, handle(1, &view.filetype)?))
}

/// The reference of an offset.
fn whence(number: c_int) -> Result<Whence> {
    match number {
        SEEK_SET => Ok(Whence::Set),
        SEEK_CUR => Ok(Whence::Cur),
        SEEK_END => Ok(Whence::End),
        _ => {
            let what = "is neither MPI_SEEK_SET, MPI_SEEK_CUR nor MPI_SEEK_END";
            Err(Fault::argument(format_args!("whence is {number}, which {what}")))
        }
    }
}

pub fn file_seek(file: &File, offset: i64, number: c_int) -> Result<()> {
    Ok(file.inner.seek(offset, whence(number)?)?)
}

pub fn file_seek_shared(file: &File, offset: i64, number: c_int) -> Result<()> {
    let whence = whence(number).map_err(|fault| refused(file, "seek_shared", fault))?;
    Ok(file.inner.seek_shared(offset, whence)?)
}

pub fn file_get_position(file: &File) -> Result<i64> {
    Ok(file.inner.position()?)
}

pub fn file_get_position_shared(file: &File) -> Result<i64> {
    Ok(file.inner.position_shared()?)
}
