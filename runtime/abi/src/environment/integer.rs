//! The ABI itself, and handles as integers (MPI-5.0 chapter 20).

use std::ffi::c_int;
use std::sync::{Arc, Mutex};

use longshore::Class;

use crate::datatype;
use crate::edge::arg::{Address, Room};
use crate::edge::constants::{self as c, ABI_SUBVERSION, ABI_VERSION};
use crate::edge::fault::{Fault, Result};
use crate::edge::handle::{self, Handle, insert};
use crate::edge::lock::lock;
use crate::objects::info::{self, Info, Pairs};

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

/// The keys about Fortran's types, and the types. A key of a type that not every Fortran has says
/// whether it is supported, another one its size (MPI-5.0 section 20.3.3).
const TYPES: [(&str, Handle); 23] = [
    ("mpi_logical_size", c::LOGICAL),
    ("mpi_integer_size", c::INTEGER),
    ("mpi_real_size", c::REAL),
    ("mpi_double_precision_size", c::DOUBLE_PRECISION),
    ("mpi_logical1_supported", c::LOGICAL1),
    ("mpi_logical2_supported", c::LOGICAL2),
    ("mpi_logical4_supported", c::LOGICAL4),
    ("mpi_logical8_supported", c::LOGICAL8),
    ("mpi_logical16_supported", c::LOGICAL16),
    ("mpi_integer1_supported", c::INTEGER1),
    ("mpi_integer2_supported", c::INTEGER2),
    ("mpi_integer4_supported", c::INTEGER4),
    ("mpi_integer8_supported", c::INTEGER8),
    ("mpi_integer16_supported", c::INTEGER16),
    ("mpi_real2_supported", c::REAL2),
    ("mpi_real4_supported", c::REAL4),
    ("mpi_real8_supported", c::REAL8),
    ("mpi_real16_supported", c::REAL16),
    ("mpi_complex4_supported", c::COMPLEX4),
    ("mpi_complex8_supported", c::COMPLEX8),
    ("mpi_complex16_supported", c::COMPLEX16),
    ("mpi_complex32_supported", c::COMPLEX32),
    ("mpi_double_complex_supported", c::DOUBLE_COMPLEX),
];

/// The value of a key: the size of its type, or whether there is such a type.
fn value_of(key: &str, datatype: Handle) -> String {
    match (key.ends_with("_size"), datatype::size_here(datatype)) {
        (true, size) => size.unwrap_or(0).to_string(),
        (false, size) => size.is_some().to_string(),
    }
}

/// All types of Fortran have sizes, whether or not a library for it has told any.
pub fn abi_get_fortran_info() -> Result<Handle> {
    let mut pairs: Pairs =
        TYPES.iter().map(|(key, datatype)| ((*key).to_owned(), value_of(key, *datatype))).collect();
    for (key, value) in lock(&FORTRAN).info.iter().flatten() {
        info::set(&mut pairs, key, value);
    }
    insert(Arc::new(Info::new(pairs)))
}

/// The types have the sizes that they have, so another size is refused. A type that the program's
/// Fortran lacks may stay.
///
/// # Errors
/// ABI for what can't take effect.
pub fn abi_set_fortran_info(info: &Info) -> Result<()> {
    let given = info.pairs();
    for (key, value) in &given {
        let Some((_, datatype)) = TYPES.iter().find(|(known, _)| known == key) else { continue };
        let own = value_of(key, *datatype);
        let lacks = key.ends_with("_supported") && value == "false";
        if *value != own && !lacks {
            let what = format!("{key} is {own} in this library, and can't be {value}");
            return Err(Fault::new(Class::Abi, what));
        }
    }
    let known = |pair: &(String, String)| TYPES.iter().any(|(key, _)| *key == pair.0);
    lock(&FORTRAN).info = Some(given.into_iter().filter(known).collect());
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
