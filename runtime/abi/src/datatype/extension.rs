//! Longshore's own functions, which `mpix.h` declares, for jobs of unlike machines.

use std::ffi::c_int;

use longshore::shipable::contents::{self, Elements};
use longshore::shipable::datatype::Combiner;
use longshore::{Class, Datatype, Tag};

use crate::communicator::Comm;
use crate::datatype::query::{self, combiner};
use crate::datatype::{Type, Version, foreign, freed, made};
use crate::edge::arg::{Address, Chars, List, Number, Room, Width};
use crate::edge::fault::{Fault, Result};
use crate::edge::handle::{Handle, find};
use crate::edge::state;

/// The data representation of a rank, by its name.
pub fn comm_representation(comm: &Comm, rank: c_int, room: Chars, size: usize) -> Result<()> {
    room.write(comm.inner().representation(rank)?.name(), size);
    Ok(())
}

/// A struct whose members lie as C lays them out, at each rank in its own way. So it is right as a
/// target type at any rank.
pub fn type_create_simple_struct(
    count: usize,
    blocklengths: List<c_int>,
    types: List<Handle>,
) -> Result<Handle> {
    let blocklengths = blocklengths.slice(count, "array_of_blocklengths")?.iter();
    let blocklengths: Vec<i64> = blocklengths.map(|length| i64::from(*length)).collect();
    let members = types.slice(count, "array_of_types")?.iter();
    let members = members.map(|handle| find::<Type>(*handle)).collect::<Result<Vec<_>>>()?;
    let version = Version::new(Width::Int, members.iter().map(|member| &**member));
    let members: Vec<_> = members.iter().map(|member| member.datatype().clone()).collect();
    made(Datatype::simple_struct(&blocklengths, &members)?, version)
}

/// The number of entries of a type (proposal 0, docs/proposals.md).
pub fn type_count(datatype: &Type) -> Result<i64> {
    Ok(contents::type_count(datatype.datatype()))
}

/// Writes at most `count` entries of a type to the arrays, and sets `count` to their number.
/// Nothing is written if the call fails.
pub fn type_elements<L: Number, D: Number>(
    datatype: &Type,
    count: &mut i64,
    blocklengths: Room<L>,
    displacements: Room<D>,
    types: Room<Handle>,
) -> Result<c_int> {
    let elements = contents::type_elements(datatype.datatype(), *count)?;
    let lengths = fitting(&elements.blocklengths, "block length")?;
    let places = fitting(&elements.displacements, "displacement")?;
    let blocklengths = blocklengths.slice(lengths.len(), "array_of_blocklengths")?;
    let displacements = displacements.slice(places.len(), "array_of_displacements")?;
    let room = types.slice(elements.types.len(), "array_of_types")?;
    let handles = parts(&elements, datatype)?;
    blocklengths.copy_from_slice(&lengths);
    displacements.copy_from_slice(&places);
    room.copy_from_slice(&handles);
    *count = elements.count;
    Ok(combiner(elements.combiner))
}

/// The handles of the types among the entries of a type. A derived type gets a new handle.
fn parts(elements: &Elements, datatype: &Type) -> Result<Vec<Handle>> {
    // MPI-1's markers of the bounds, which MPI removed, surround the type that is resized.
    let before = usize::from(elements.combiner == Combiner::Resized);
    let versions = &datatype.version().children;
    let mut handles = Vec::with_capacity(elements.types.len());
    for (at, part) in elements.types.iter().enumerate() {
        let version = at.checked_sub(before).and_then(|at| versions.get(at));
        match query::part(part, version) {
            Ok(handle) => handles.push(handle),
            Err(fault) => {
                handles.iter_mut().for_each(query::forget);
                return Err(fault);
            }
        }
    }
    Ok(handles)
}

/// Numbers in the width of a version.
fn fitting<N: Number>(numbers: &[i64], what: &str) -> Result<Vec<N>> {
    let fitting = |number: &i64| {
        let narrow = N::narrow(*number);
        let fits = narrow.wide() == *number;
        fits.then_some(narrow).ok_or_else(|| {
            let what = format!("the {what} {number} is too large: call MPIX_Type_elements_c");
            Fault::new(Class::Type, what)
        })
    };
    numbers.iter().map(fitting).collect()
}

/// Registers a function that is called for each datatype that is freed, with its handle.
pub fn type_free_handler(function: Address) -> Result<()> {
    freed::register(function)
}

/// Whether a type is right as a target type at any rank.
pub fn type_is_portable(datatype: &Type) -> Result<bool> {
    let compiled = state::state()?.rank().commit(datatype.datatype())?;
    Ok(compiled.tag() == Tag::Portable)
}

/// The type in Longshore's notation (docs/notation.md), as much of it as there is room for.
pub fn type_print(datatype: &Type, room: Chars, size: usize) -> Result<()> {
    room.write(&datatype.datatype().to_string(), size);
    Ok(())
}

/// Sends a committed type itself, so that its receiver can use it as the type of data here.
pub fn type_send(datatype: &Type, dest: c_int, tag: c_int, comm: &Comm) -> Result<()> {
    Ok(comm.inner().type_send(datatype.committed()?, dest, tag)?)
}

/// Receives a type, which describes data at the rank that built it.
pub fn type_recv(source: c_int, tag: c_int, comm: &Comm) -> Result<Handle> {
    foreign::received(comm.inner().type_recv(source, tag)?)
}
