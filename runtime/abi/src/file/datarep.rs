//! Representations of data that a program registers, with functions of its own that convert
//! (MPI-5.0 section 14.5.3).
//!
//! The file's layout is that of memory: a representation whose extents differ is refused when a
//! view is set. A call converts all of its elements at once, on the caller's thread.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex};

use longshore::shipable::Basic;
use longshore::{Class, Datatype, Destination, Origin};

use crate::datatype::{Type, handle_of};
use crate::edge::arg::{Address, Width};
use crate::edge::constants::{MAX_DATAREP_STRING, SUCCESS};
use crate::edge::elements::Elements;
use crate::edge::fault::{Fault, Result};
use crate::edge::handle::Handle;
use crate::edge::lock::lock;

/// A function that converts elements between memory and file.
type Convert =
    unsafe extern "C" fn(*mut c_void, Handle, c_int, *mut c_void, i64, *mut c_void) -> c_int;
type ConvertLarge =
    unsafe extern "C" fn(*mut c_void, Handle, i64, *mut c_void, i64, *mut c_void) -> c_int;

/// A function that returns the extent of a predefined type in a file.
type Extent = unsafe extern "C" fn(Handle, *mut isize, *mut c_void) -> c_int;

/// A representation that the program has registered.
pub struct Registered {
    name: String,
    width: Width,
    read: Address,
    write: Address,
    extent: Address,
    extra: Address,
}

static REGISTERED: Mutex<Vec<Arc<Registered>>> = Mutex::new(Vec::new());

pub fn register_datarep(
    width: Width,
    name: &str,
    read: Address,
    write: Address,
    extent: Address,
    extra: Address,
) -> Result<()> {
    if name.is_empty() || name.len() >= MAX_DATAREP_STRING as usize {
        let what = format!("the name has {} characters: use 1 to 127", name.len());
        return Err(Fault::argument(what));
    }
    if extent.is_null() {
        return Err(Fault::argument("dtype_file_extent_fn is a null pointer"));
    }
    let mut registered = lock(&REGISTERED);
    let is_known = longshore_file::Datarep::named(name).is_ok();
    if is_known || registered.iter().any(|known| known.name == name) {
        let what = format!("there is a data representation {name:?} already");
        return Err(Fault::new(Class::DupDatarep, what));
    }
    let name = name.to_owned();
    registered.push(Arc::new(Registered { name, width, read, write, extent, extra }));
    Ok(())
}

/// The outcome of a function of the program, which returned `code`.
fn outcome(what: &str, code: c_int) -> Result<()> {
    match code {
        SUCCESS => Ok(()),
        _ => {
            let message = format!("the {what} function of a data representation returned {code}");
            Err(Fault::new(Class::Conversion, message))
        }
    }
}

impl Registered {
    /// The representation of a name, if the program has registered it.
    pub fn named(name: &str) -> Option<Arc<Registered>> {
        lock(&REGISTERED).iter().find(|known| known.name == name).cloned()
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Refuses a type whose parts have other extents in the file than in memory.
    pub fn suits(&self, datatype: &Datatype) -> Result<()> {
        let Some(basic) = datatype.as_basic() else {
            return datatype.node().children().iter().try_for_each(|part| self.suits(part));
        };
        let (found, own) = (self.extent_of(basic)?, own_extent(basic)?);
        if found == own {
            return Ok(());
        }
        let what = format!(
            "the data representation {:?} gives {} the extent {found} in the file, which is {own} \
             in memory: only representations with equal extents can be used",
            self.name,
            basic.mpi_name()
        );
        Err(Fault::new(Class::UnsupportedDatarep, what))
    }

    /// The extent of a predefined type in the file.
    fn extent_of(&self, basic: Basic) -> Result<i64> {
        let mut extent = 0;
        // SAFETY: the program passed the function as the extent function of this representation.
        let code = unsafe {
            let function: Extent = std::mem::transmute(self.extent.pointer());
            function(handle_of(basic), &raw mut extent, self.extra.pointer())
        };
        outcome("extent", code).map(|()| extent as i64)
    }

    /// Converts elements between memory and `file`, which has room for them.
    fn convert(
        &self,
        what: &str,
        function: Address,
        elements: Elements,
        file: &mut [u8],
    ) -> Result<()> {
        let Elements { buffer, count, datatype } = elements;
        if count == 0 {
            return Ok(());
        }
        let memory = buffer.address().cast::<c_void>();
        let (place, extra) = (file.as_mut_ptr().cast::<c_void>(), self.extra.pointer());
        // SAFETY: the program passed the function as a conversion function of this version. It gets
        // the program's own buffer, and as many bytes of the file as its elements have.
        let code = unsafe {
            match self.width {
                Width::Int => {
                    let function: Convert = std::mem::transmute(function.pointer());
                    let count = c_int::try_from(count).map_err(|_| {
                        let what = format!("{count} elements are too many for int counts");
                        Fault::new(Class::Count, what)
                    })?;
                    function(memory, datatype, count, place, 0, extra)
                }
                Width::Large => {
                    let function: ConvertLarge = std::mem::transmute(function.pointer());
                    function(memory, datatype, count, place, 0, extra)
                }
            }
        };
        outcome(what, code)
    }

    /// Carries out a call that writes elements, which are converted first.
    pub fn write(
        &self,
        elements: Elements,
        datatype: &Type,
        call: impl FnOnce(Origin<'_>) -> Result<longshore_file::Status>,
    ) -> Result<longshore_file::Status> {
        let (count, committed) = (elements.count, datatype.committed()?);
        self.suits(datatype.datatype())?;
        if self.write.is_null() || count < 0 {
            return call(elements.of(committed).origin()?);
        }
        elements.of(committed).check()?;
        let mut file = room(count, committed)?;
        self.convert("write conversion", self.write, elements, &mut file)?;
        call((&file[..]).into())
    }

    /// Carries out a call that reads elements, which are converted then.
    pub fn read(
        &self,
        elements: Elements,
        datatype: &Type,
        call: impl FnOnce(Destination<'_>) -> Result<longshore_file::Status>,
    ) -> Result<longshore_file::Status> {
        let (count, committed) = (elements.count, datatype.committed()?);
        self.suits(datatype.datatype())?;
        if self.read.is_null() || count < 0 {
            return call(elements.of(committed).destination()?);
        }
        elements.of(committed).check()?;
        let mut file = room(count, committed)?;
        let moved = call((&mut file[..]).into())?;
        let size = committed.bounds().size.max(1) as u64;
        let whole = Elements { count: (moved.bytes / size) as i64, ..elements };
        self.convert("read conversion", self.read, whole, &mut file)?;
        Ok(moved)
    }
}

/// Room for the bytes of elements in the file.
fn room(count: i64, datatype: &longshore::Type) -> Result<Vec<u8>> {
    let bytes = count.checked_mul(datatype.bounds().size);
    let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
    let mut room = Vec::new();
    match bytes.filter(|bytes| room.try_reserve_exact(*bytes).is_ok()) {
        Some(bytes) => {
            room.extend(std::iter::repeat_n(0, bytes));
            Ok(room)
        }
        None => {
            let what = format!("there is no memory to convert {count} elements of {datatype}");
            Err(Fault::new(Class::NoMem, what))
        }
    }
}

fn own_extent(basic: Basic) -> Result<i64> {
    Ok(Datatype::from(basic).bounds(&longshore::Architecture::NATIVE)?.extent())
}
