//! Packed datatypes and communicators (proposal 1, docs/proposals.md): MPIX_Pack_size, MPIX_Pack,
//! MPIX_Unpack and MPIX_Comm_compare, which `mpix.h` declares.
//!
//! A null handle decides which kind of object is packed:
//!
//! | count | datatype | communicator | object |
//! |---|---|---|---|
//! | 0 or more | valid | valid | data, as in MPI_Pack |
//! | 1 | valid | null | the datatype |
//! | 1 | null | valid | the communicator |
//! | not 1 | one of them null | | an error |
//! | any | null | null | an error |
//!
//! The proposal gives MPI_Pack itself these rows. MPI-5.0 makes a null handle an error of MPI_Pack
//! (sections 5.2 and 9.4), and programs rely on that to find a handle that they forgot to set. So
//! the calls of MPI keep their errors, and these calls are beside them.
//!
//! MPIX_Unpack takes both handles by address, since it sets one of them. In the proposal both are
//! null before an object is unpacked: one because it is null, the other because it is free to be
//! set. The packed object says which of the two it is. A null address stands for a null handle that
//! isn't to be set.

use std::ffi::c_int;
use std::sync::Arc;

use longshore::shipable::flat::{self, CommunicatorDescription, Comparison};
use longshore::{Class, Rank};

use crate::communicator::Comm;
use crate::communicator::group::compared;
use crate::datatype::pack::{self, length, moving};
use crate::datatype::{Type, unpacked};
use crate::edge::arg::{Buffer, Room};
use crate::edge::constants::ARCH_EQUIV;
use crate::edge::elements::Elements;
use crate::edge::fault::{Fault, Result};
use crate::edge::handle::{Handle, Kind, Object, find, insert, remove};
use crate::edge::state;

/// A communicator that was unpacked. It describes ranks of a job that may have ended.
pub struct Described(CommunicatorDescription);

impl Object for Described {
    const KIND: Kind = Kind::Described;
    const CLASS: Class = Class::Comm;
    const NULL: Handle = <Comm as Object>::NULL;

    fn predefined(_: Handle) -> Option<Arc<Described>> {
        None
    }
}

/// A communicator that can be compared.
enum Compared {
    Own(Arc<Comm>),
    Described(Arc<Described>),
}

impl Compared {
    fn find(handle: Handle) -> Result<Compared> {
        match find::<Described>(handle) {
            Ok(described) => Ok(Compared::Described(described)),
            Err(_) => Ok(Compared::Own(find(handle)?)),
        }
    }
}

/// Frees the handle if it is that of an unpacked communicator, and returns whether it is.
pub fn freed(handle: &mut Handle) -> bool {
    remove::<Described>(handle).is_ok()
}

pub fn comm_compare(one: Handle, other: Handle) -> Result<c_int> {
    let compare = |own: &Comm, described: &Described| -> Result<Comparison> {
        own.intra()?;
        Ok(own.inner().compare_unpacked(&described.0)?)
    };
    let result = match (Compared::find(one)?, Compared::find(other)?) {
        (Compared::Own(one), Compared::Own(other)) => one.inner().compare(other.inner()),
        (Compared::Own(own), Compared::Described(described))
        | (Compared::Described(described), Compared::Own(own)) => compare(&own, &described)?,
        (Compared::Described(one), Compared::Described(other)) => one.0.compare(&other.0),
    };
    Ok(match result {
        Comparison::ArchEquiv => ARCH_EQUIV,
        result => compared(result),
    })
}

/// What the arguments of MPIX_Pack and MPIX_Pack_size select.
enum Selected<'a> {
    Data(&'a Type, &'a Comm),
    /// The flat form of a datatype or communicator.
    Text(String),
}

fn selected<'a>(
    count: i64,
    datatype: Option<&'a Type>,
    comm: Option<&'a Comm>,
) -> Result<Selected<'a>> {
    match (datatype, comm) {
        (Some(datatype), Some(comm)) => Ok(Selected::Data(datatype, comm)),
        (None, None) => Err(both_null()),
        (Some(datatype), None) => {
            one(count)?;
            let here = state::state()?.rank().architecture();
            Ok(Selected::Text(flat::pack(datatype.datatype(), here)?))
        }
        (None, Some(comm)) => {
            one(count)?;
            comm.intra()?;
            Ok(Selected::Text(comm.inner().flat()?))
        }
    }
}

pub fn pack_size(count: i64, datatype: Option<&Type>, comm: Option<&Comm>) -> Result<i64> {
    match selected(count, datatype, comm)? {
        Selected::Data(datatype, comm) => pack::pack_size(count, datatype, comm),
        Selected::Text(text) => Ok(text.len() as i64),
    }
}

pub fn pack(
    data: Elements<Option<&Type>>,
    to: Buffer,
    size: i64,
    position: &mut i64,
    comm: Option<&Comm>,
) -> Result<()> {
    let text = match selected(data.count, data.datatype, comm)? {
        Selected::Data(datatype, comm) => {
            return pack::pack(data.of(datatype), to, size, position, comm);
        }
        Selected::Text(text) => text,
    };
    let packed = to.bytes_mut(length(size)?)?;
    moving(position, |at| {
        let room = start(*at, packed.len())?;
        let left = packed.len() - room;
        let place = packed[room..].get_mut(..text.len()).ok_or_else(|| {
            let what = format!(
                "the packed object takes {} bytes at position {at}, of which the buffer of {size} \
                 has {left}",
                text.len()
            );
            Fault::new(Class::Truncate, what)
        })?;
        place.copy_from_slice(text.as_bytes());
        *at += text.len() as u64;
        Ok(())
    })
}

pub fn unpack(
    from: Buffer,
    size: i64,
    position: &mut i64,
    to: Buffer,
    count: i64,
    datatype: Room<Handle>,
    comm: Room<Handle>,
) -> Result<()> {
    let (datatype, comm) = (datatype.get(0), comm.get(0));
    let is_given = |handle: &Option<&mut Handle>, null: Handle| {
        handle.as_ref().is_some_and(|handle| **handle != null)
    };
    match (is_given(&datatype, Type::NULL), is_given(&comm, Comm::NULL), datatype, comm) {
        (true, true, Some(datatype), Some(comm)) => {
            let datatype = find::<Type>(*datatype)?;
            match Compared::find(*comm)? {
                Compared::Own(comm) => {
                    let room = Elements { buffer: to, count, datatype: &*datatype };
                    pack::unpack(from, size, position, room, &comm)
                }
                Compared::Described(writer) => {
                    let room = to.destination(count, datatype.committed()?)?;
                    let packed = from.bytes(length(size)?)?;
                    let rank = state::state()?.rank();
                    moving(position, |at| Ok(rank.unpack_of(&writer.0, packed, at, room)?))
                }
            }
        }
        (false, false, datatype, comm) => {
            one(count)?;
            let packed = from.bytes(length(size)?)?;
            moving(position, |at| object(packed, at, datatype, comm))
        }
        _ => Err(Fault::argument(
            "one of the handles is null, but the other isn't: pass two valid handles to unpack \
             data, or set the handle to null that the unpacked object is to have",
        )),
    }
}

/// Unpacks a datatype or a communicator, as the packed object says. One of the places is set.
fn object(
    packed: &[u8],
    at: &mut u64,
    datatype: Option<&mut Handle>,
    comm: Option<&mut Handle>,
) -> Result<()> {
    let rank: &Rank = state::state()?.rank();
    let is_comm = packed[start(*at, packed.len())?..].starts_with(b"MCM");
    match (datatype, comm) {
        (None, None) => Err(both_null()),
        (datatype, Some(comm)) if is_comm || datatype.is_none() => {
            *comm = insert(Arc::new(Described(rank.unpack_communicator(packed, at)?)))?;
            Ok(())
        }
        (Some(datatype), _) => {
            *datatype = unpacked(rank.unpack_type(packed, at)?)?;
            Ok(())
        }
        (None, Some(_)) => Err(both_null()),
    }
}

/// The index of a position, which may be the end.
fn start(position: u64, size: usize) -> Result<usize> {
    let start = usize::try_from(position).ok().filter(|start| *start <= size);
    start.ok_or_else(|| {
        Fault::argument(format_args!(
            "position {position} lies past the end of a buffer of {size} bytes: give one within it"
        ))
    })
}

/// Checks the count of a datatype or communicator.
fn one(count: i64) -> Result<()> {
    match count {
        1 => Ok(()),
        _ => Err(Fault::argument(format_args!(
            "a count of {count} with a null handle: one datatype or communicator is packed at a \
             time, pass 1"
        ))),
    }
}

fn both_null() -> Fault {
    Fault::argument(
        "datatype and communicator are both null: one of them must select the object to pack or \
         unpack",
    )
}
