//! The functions that ask for what a datatype is, and how much of it was received (MPI-5.0 sections
//! 3.2.5 and 5.1).

use std::ffi::c_int;
use std::sync::Arc;

use longshore::shipable::contents::{Counts, DISTRIBUTE_DFLT_DARG, Envelope};
use longshore::shipable::datatype::Combiner;
use longshore::{Class, Datatype};

use crate::communicator::envelope;
use crate::datatype::{Type, Version, handle_of, is_parametrised, made, permanent};
use crate::edge::arg::{Buffer, Chars, Room, Width};
use crate::edge::fault::{Fault, Result};
use crate::edge::handle::{Handle, find, remove};
use crate::edge::status::Status;
use crate::edge::{constants as c, state};

pub fn aint_add(base: i64, displacement: i64) -> isize {
    longshore::address::sum(base, displacement) as isize
}

pub fn aint_diff(one: i64, other: i64) -> isize {
    longshore::address::difference(one, other) as isize
}

pub fn get_address(location: Buffer) -> Result<i64> {
    // An MPI_Aint is as long as a pointer, and addresses in the upper half are negative ones.
    Ok(location.address().addr() as isize as i64)
}

pub fn type_size(datatype: &Type) -> Result<i64> {
    Ok(datatype.bounds()?.size)
}

pub fn type_size_x(datatype: &Type) -> Result<i64> {
    type_size(datatype)
}

pub fn type_get_extent(datatype: &Type) -> Result<(i64, i64)> {
    let bounds = datatype.bounds()?;
    Ok((bounds.lb, bounds.extent()))
}

pub fn type_get_extent_x(datatype: &Type) -> Result<(i64, i64)> {
    type_get_extent(datatype)
}

pub fn type_get_true_extent(datatype: &Type) -> Result<(i64, i64)> {
    let bounds = datatype.bounds()?;
    Ok((bounds.true_lb, bounds.true_extent()))
}

pub fn type_get_true_extent_x(datatype: &Type) -> Result<(i64, i64)> {
    type_get_true_extent(datatype)
}

pub fn type_set_name(datatype: &Type, name: &str) -> Result<()> {
    datatype.card().set_name(name);
    Ok(())
}

pub fn type_get_name(handle: Handle, room: Chars) -> Result<usize> {
    let name = match handle {
        c::DATATYPE_NULL => "MPI_DATATYPE_NULL".to_owned(),
        _ => find::<Type>(handle)?.card().name(),
    };
    Ok(room.write(&name, c::MAX_OBJECT_NAME as usize))
}

/// The version whose arguments a type has. Only the version with large counts can return those of
/// a type that was made with large counts (MPI-5.0 section 5.1.13).
fn counts(asked: Width, datatype: &Type) -> Result<Counts> {
    match (datatype.version().width, asked) {
        (Width::Int, _) => Ok(Counts::Int),
        (Width::Large, Width::Large) => Ok(Counts::Large),
        (Width::Large, Width::Int) => {
            let what = "the type was made with large counts: ask for its contents with them";
            Err(Fault::new(Class::Type, what.to_owned()))
        }
    }
}

/// The constant of a constructor.
pub fn combiner(combiner: Combiner) -> c_int {
    match combiner {
        Combiner::Named => c::COMBINER_NAMED,
        Combiner::Dup => c::COMBINER_DUP,
        Combiner::Contiguous => c::COMBINER_CONTIGUOUS,
        Combiner::Vector => c::COMBINER_VECTOR,
        Combiner::Hvector | Combiner::HvectorInteger => c::COMBINER_HVECTOR,
        Combiner::Indexed => c::COMBINER_INDEXED,
        Combiner::Hindexed | Combiner::HindexedInteger => c::COMBINER_HINDEXED,
        Combiner::IndexedBlock => c::COMBINER_INDEXED_BLOCK,
        Combiner::HindexedBlock => c::COMBINER_HINDEXED_BLOCK,
        // The simple struct is Longshore's own.
        Combiner::Struct | Combiner::StructInteger | Combiner::SimpleStruct => c::COMBINER_STRUCT,
        Combiner::Subarray => c::COMBINER_SUBARRAY,
        Combiner::Darray => c::COMBINER_DARRAY,
        Combiner::F90Real => c::COMBINER_F90_REAL,
        Combiner::F90Complex => c::COMBINER_F90_COMPLEX,
        Combiner::F90Integer => c::COMBINER_F90_INTEGER,
        Combiner::Resized => c::COMBINER_RESIZED,
        Combiner::ValueIndex => c::COMBINER_VALUE_INDEX,
    }
}

pub fn type_get_envelope(width: Width, datatype: &Type) -> Result<(i64, i64, i64, i64, c_int)> {
    let envelope = datatype.datatype().envelope(counts(width, datatype)?)?;
    let Envelope { integers, addresses, large_counts, datatypes, .. } = envelope;
    let [integers, addresses, large_counts, datatypes] =
        [integers, addresses, large_counts, datatypes].map(|n| n as i64);
    Ok((integers, addresses, large_counts, datatypes, combiner(envelope.combiner)))
}

#[allow(clippy::too_many_arguments)] // MPI's
pub fn type_get_contents(
    width: Width,
    datatype: &Type,
    max_integers: i64,
    max_addresses: i64,
    max_large_counts: i64,
    max_datatypes: i64,
    integers: Room<c_int>,
    addresses: Room<isize>,
    large_counts: Room<i64>,
    datatypes: Room<Handle>,
) -> Result<()> {
    let contents = datatype.datatype().contents(counts(width, datatype)?)?;
    contents.envelope().fits(&Envelope {
        combiner: contents.combiner,
        integers: max_integers as usize,
        addresses: max_addresses as usize,
        large_counts: max_large_counts as usize,
        datatypes: max_datatypes as usize,
    })?;
    let mut given = contents.integers.clone();
    if contents.combiner == Combiner::Darray {
        default_arguments(&mut given, datatype.version().width);
    }
    integers.slice(given.len(), "array_of_integers")?.copy_from_slice(&given);
    let room = addresses.slice(contents.addresses.len(), "array_of_addresses")?;
    for (out, address) in room.iter_mut().zip(&contents.addresses) {
        *out = *address as isize;
    }
    let room = large_counts.slice(contents.large_counts.len(), "array_of_large_counts")?;
    room.copy_from_slice(&contents.large_counts);
    let room = datatypes.slice(contents.datatypes.len(), "array_of_datatypes")?;
    let versions = &datatype.version().children;
    for ((out, child), version) in room.iter_mut().zip(&contents.datatypes).zip(versions) {
        *out = part(child, Some(version))?;
    }
    Ok(())
}

/// A handle of a type that another one is made of: that of a predefined type, or a new one.
pub fn part(part: &Datatype, version: Option<&Arc<Version>>) -> Result<Handle> {
    match part.as_basic() {
        Some(basic) => Ok(handle_of(basic)),
        None if is_parametrised(part) => permanent(part.clone()),
        None => {
            let version = version.cloned().unwrap_or_else(|| Version::new(Width::Int, []));
            made(part.clone(), version)
        }
    }
}

/// Frees a handle of [`part`] that the program never had. That of a predefined type stays.
pub fn forget(part: &mut Handle) {
    if find::<Type>(*part).is_ok_and(|known| !known.is_permanent()) {
        let _ = remove::<Type>(part);
    }
}

/// Gives the default distribution arguments of a darray the ABI's number. Its integers are size,
/// rank, ndims, then gsizes (with int counts only), distribs, dargs, psizes and the order.
fn default_arguments(integers: &mut [c_int], width: Width) {
    let Some(ndims) = integers.get(2).map(|ndims| *ndims as usize) else { return };
    let start = match width {
        Width::Int => 3 + 2 * ndims,
        Width::Large => 3 + ndims,
    };
    for darg in integers.iter_mut().skip(start).take(ndims) {
        if *darg == DISTRIBUTE_DFLT_DARG {
            *darg = c::DISTRIBUTE_DFLT_DARG;
        }
    }
}

pub fn get_count(status: &Status, datatype: &Type) -> Result<i64> {
    let architecture = &envelope::representation(status)?;
    let bytes = status.bytes() as u64;
    let count = datatype.committed()?.count_in(bytes, architecture)?;
    Ok(count.map_or(i64::from(c::UNDEFINED), |count| count as i64))
}

pub fn get_elements(status: &Status, datatype: &Type) -> Result<i64> {
    let architecture = &envelope::representation(status)?;
    let bytes = status.bytes() as u64;
    let elements = datatype.committed()?.elements_in(bytes, architecture)?;
    Ok(elements.map_or(i64::from(c::UNDEFINED), |elements| elements as i64))
}

pub fn get_elements_x(status: &Status, datatype: &Type) -> Result<i64> {
    get_elements(status, datatype)
}

pub fn status_set_elements(status: &mut Status, datatype: &Type, count: i64) -> Result<()> {
    let wrong = || Fault::new(Class::Count, format!("the count of elements is {count}"));
    let count = u64::try_from(count).map_err(|_| wrong())?;
    let architecture = state::state()?.rank().architecture();
    let committed = datatype.committed()?;
    let size = datatype.bounds()?.size as u64;
    let each = committed.elements_in(size, architecture)?.unwrap_or(0);
    let bytes = match (each, count) {
        (_, 0) => 0,
        (0, _) => return Err(wrong()),
        _ => {
            // The end of the last elements, which don't fill a whole type, is where their number is
            // reached.
            let (whole, rest) = (count / each, count % each);
            let (mut low, mut high) = (0, if rest == 0 { 0 } else { size });
            while low < high {
                let middle = low + (high - low) / 2;
                let reached = reached(committed, middle, architecture)?;
                if reached < rest { low = middle + 1 } else { high = middle }
            }
            whole.checked_mul(size).and_then(|bytes| bytes.checked_add(low)).ok_or_else(wrong)?
        }
    };
    status.set_own(bytes as i64);
    Ok(())
}

/// The number of elements that end within the first bytes of a type.
fn reached(
    committed: &longshore::Type,
    bytes: u64,
    architecture: &longshore::Architecture,
) -> Result<u64> {
    // Within an element there is no number, so the last end before it counts.
    for back in 0..=bytes.min(32) {
        if let Some(elements) = committed.elements_in(bytes - back, architecture)? {
            return Ok(elements);
        }
    }
    Ok(0)
}

pub fn status_set_elements_x(status: &mut Status, datatype: &Type, count: i64) -> Result<()> {
    status_set_elements(status, datatype, count)
}
