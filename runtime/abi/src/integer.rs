//! The ABI itself, and handles as integers (MPI-5.0 chapter 20).

use std::ffi::c_int;
use std::sync::{Arc, Mutex};

use crate::arg::{Address, Room};
use crate::constants::{ABI_SUBVERSION, ABI_VERSION, INFO_NULL};
use crate::fault::{Fault, Result};
use crate::handle::{self, Handle, insert};
use crate::info::{Info, Pairs};
use crate::lock::lock;

macro_rules! integers {
    ($($to:ident $from:ident)*) => {
        $(
            pub fn $to(handle: Handle) -> c_int {
                handle::to_int(handle)
            }

            pub fn $from(number: c_int) -> Handle {
                handle::from_int(number)
            }
        )*
    };
}

integers! {
    comm_toint comm_fromint
    errhandler_toint errhandler_fromint
    file_toint file_fromint
    group_toint group_fromint
    info_toint info_fromint
    message_toint message_fromint
    op_toint op_fromint
    request_toint request_fromint
    session_toint session_fromint
    type_toint type_fromint
    win_toint win_fromint
}

pub fn abi_get_version() -> Result<(c_int, c_int)> {
    Ok((ABI_VERSION, ABI_SUBVERSION))
}

/// The sizes of the types of the ABI (MPI-5.0 section 20.3.2).
pub fn abi_get_info() -> Result<Handle> {
    let sizes = [
        ("mpi_aint_size", size_of::<isize>()),
        ("mpi_count_size", size_of::<i64>()),
        ("mpi_offset_size", size_of::<i64>()),
    ];
    let pairs = sizes.map(|(key, size)| (key.to_owned(), size.to_string()));
    insert(Arc::new(Info::new(pairs.into())))
}

/// What a library for Fortran has told: its truth values and its types.
struct Fortran {
    booleans: Option<(c_int, Vec<u8>, Vec<u8>)>,
    info: Option<Pairs>,
}

static FORTRAN: Mutex<Fortran> = Mutex::new(Fortran { booleans: None, info: None });

pub fn abi_get_fortran_info() -> Result<Handle> {
    match &lock(&FORTRAN).info {
        Some(pairs) => insert(Arc::new(Info::new(pairs.clone()))),
        None => Ok(INFO_NULL),
    }
}

pub fn abi_set_fortran_info(info: &Info) -> Result<()> {
    lock(&FORTRAN).info = Some(info.pairs());
    Ok(())
}

/// The bytes of a truth value.
fn bytes<'a>(size: c_int, value: Address) -> Result<&'a mut [u8]> {
    match size {
        1 | 2 | 4 | 8 | 16 => {
            let room: Room<u8> = value.room();
            room.slice(size as usize, "a truth value")
        }
        _ => Err(Fault::argument(format_args!("a Fortran LOGICAL has no {size} bytes"))),
    }
}

pub fn abi_set_fortran_booleans(size: c_int, yes: Address, no: Address) -> Result<()> {
    let (yes, no) = (bytes(size, yes)?.to_vec(), bytes(size, no)?.to_vec());
    lock(&FORTRAN).booleans = Some((size, yes, no));
    Ok(())
}

pub fn abi_get_fortran_booleans(size: c_int, yes: Address, no: Address) -> Result<bool> {
    let fortran = lock(&FORTRAN);
    let Some((known, own_yes, own_no)) = &fortran.booleans else { return Ok(false) };
    if *known != size {
        let what = format!("the truth values that were set have {known} bytes, not {size}");
        return Err(Fault::argument(what));
    }
    bytes(size, yes)?.copy_from_slice(own_yes);
    bytes(size, no)?.copy_from_slice(own_no);
    Ok(true)
}
