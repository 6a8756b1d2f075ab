//! Longshore's own functions, which `mpix.h` declares, for jobs of unlike machines.

use std::ffi::c_int;

use longshore::{Datatype, Tag};

use crate::arg::{Chars, List, Width};
use crate::communicator::Comm;
use crate::datatype::{Type, Version, made};
use crate::fault::Result;
use crate::foreign;
use crate::handle::{Handle, find};
use crate::state;

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
