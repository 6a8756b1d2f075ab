//! The quick ways of collective calls that wait, within one group, on data apart from the result or
//! in place.

use std::ffi::c_int;

use longshore::{Communicator, Destination, IN_PLACE, Op, Origin, Type};

use crate::call::quick::{coded, lasting};
use crate::communicator::Comm;
use crate::edge::arg::Buffer;
use crate::edge::elements::{Elements, Reduction};
use crate::edge::fault::Raiser;
use crate::edge::handle::Handle;
use crate::operation::predefined;
use crate::window::rma::is_counted;

/// The communicator of a handle, if it has one group.
#[inline]
fn group(comm: Handle) -> Option<&'static Communicator> {
    let inner = Comm::borrow(comm)?.inner();
    inner.remote_group().is_none().then_some(inner)
}

/// The bytes of a block's elements, if those of its type leave no gaps between them.
#[inline]
fn bytes(block: Elements<&Type>) -> Option<usize> {
    let bounds = block.datatype.bounds();
    let is_dense = bounds.lb == 0 && bounds.size == bounds.extent();
    let bytes = bounds.size.checked_mul(block.count);
    bytes.and_then(|bytes| usize::try_from(bytes).ok()).filter(|bytes| is_dense && *bytes > 0)
}

/// Whether two pieces of memory have no byte in common.
#[inline]
fn are_apart(one: (Buffer, usize), other: (Buffer, usize)) -> bool {
    let [(one, len), (other, other_len)] = [one, other].map(|(at, len)| (at.address().addr(), len));
    one.abs_diff(other) >= if one < other { len } else { other_len }
}

/// The data and the room of a call, if they are apart or the data are in place.
#[inline]
fn sides(
    data: Elements<&'static Type>,
    room: Elements<&'static Type>,
) -> Option<(Origin<'static>, Destination<'static>)> {
    let room_bytes = bytes(room)?;
    let place = room.destination().ok()?;
    if data.buffer.is_in_place() {
        return Some((IN_PLACE.into(), place));
    }
    are_apart((data.buffer, bytes(data)?), (room.buffer, room_bytes)).then_some(())?;
    Some((data.origin().ok()?, place))
}

/// A block of these elements for each rank.
#[inline]
fn of_each<T>(own: &Communicator, block: Elements<T>) -> Option<Elements<T>> {
    let count = block.count.checked_mul(own.size().into())?;
    Some(Elements { count, ..block })
}

/// The data and the room of a call that takes a block of each rank. Data in place are of the room's
/// type.
#[inline]
fn sides_of_each(
    own: &Communicator,
    data: Elements,
    block: Elements,
) -> Option<(Origin<'static>, Destination<'static>)> {
    let block = lasting(block)?;
    let data = match data.buffer.is_in_place() {
        true => data.of(block.datatype),
        false => lasting(data)?,
    };
    sides(data, of_each(own, block)?)
}

/// The operands of a reduction of MPI's own operations.
#[inline]
fn operands(reduction: Reduction, op: Handle) -> Option<([Elements<&'static Type>; 2], Op)> {
    let room = lasting(reduction.room())?;
    let (data, op) = (reduction.data().of(room.datatype), predefined(op)?);
    (!is_counted(reduction.datatype)).then_some(([data, room], op))
}

pub fn bcast(data: Elements, root: c_int, comm: Handle) -> Option<c_int> {
    let (own, data) = (group(comm)?, lasting(data)?.destination().ok()?);
    coded("MPI_Bcast", Raiser::Comm(comm), own.bcast(data, root))
}

pub fn reduce(reduction: Reduction, op: Handle, root: c_int, comm: Handle) -> Option<c_int> {
    let (own, ([data, room], op)) = (group(comm)?, operands(reduction, op)?);
    let (data, room) = match own.rank() == root {
        true => sides(data, room)?,
        false => (data.origin().ok()?, IN_PLACE.into()),
    };
    coded("MPI_Reduce", Raiser::Comm(comm), own.reduce(data, room, op, root))
}

macro_rules! combining {
    ($($name:ident $text:literal $(unless $is_unusual:expr)?;)*) => {
        $(
            pub fn $name(reduction: Reduction, op: Handle, comm: Handle) -> Option<c_int> {
                let (own, ([data, room], op)) = (group(comm)?, operands(reduction, op)?);
                $(if $is_unusual(own) { return None; })?
                let (data, room) = sides(data, room)?;
                coded($text, Raiser::Comm(comm), own.$name(data, room, op))
            }
        )*
    };
}

combining! {
    allreduce "MPI_Allreduce";
    scan "MPI_Scan";
    // The room of the first rank may be no memory at all.
    exscan "MPI_Exscan" unless |own: &Communicator| own.rank() == 0;
}

pub fn reduce_scatter_block(reduction: Reduction, op: Handle, comm: Handle) -> Option<c_int> {
    let (own, ([data, room], op)) = (group(comm)?, operands(reduction, op)?);
    let data = of_each(own, data)?;
    let room = match data.buffer.is_in_place() {
        true => of_each(own, room)?,
        false => room,
    };
    let (data, room) = sides(data, room)?;
    let made = own.reduce_scatter_block(data, room, op);
    coded("MPI_Reduce_scatter_block", Raiser::Comm(comm), made)
}

pub fn gather(data: Elements, block: Elements, root: c_int, comm: Handle) -> Option<c_int> {
    let own = group(comm)?;
    let (data, room) = match own.rank() == root {
        true => sides_of_each(own, data, block)?,
        false => (lasting(data)?.origin().ok()?, IN_PLACE.into()),
    };
    coded("MPI_Gather", Raiser::Comm(comm), own.gather(data, room, root))
}

pub fn scatter(block: Elements, room: Elements, root: c_int, comm: Handle) -> Option<c_int> {
    let own = group(comm)?;
    if room.buffer.is_in_place() {
        return None;
    }
    let room = lasting(room)?;
    let (data, room) = match own.rank() == root {
        true => sides(of_each(own, lasting(block)?)?, room)?,
        false => (IN_PLACE.into(), room.destination().ok()?),
    };
    coded("MPI_Scatter", Raiser::Comm(comm), own.scatter(data, room, root))
}

pub fn allgather(data: Elements, block: Elements, comm: Handle) -> Option<c_int> {
    let own = group(comm)?;
    let (data, room) = sides_of_each(own, data, block)?;
    coded("MPI_Allgather", Raiser::Comm(comm), own.allgather_into(data, room))
}

pub fn alltoall(data: Elements, block: Elements, comm: Handle) -> Option<c_int> {
    let own = group(comm)?;
    let (data, room) = sides_of_each(own, of_each(own, data)?, block)?;
    coded("MPI_Alltoall", Raiser::Comm(comm), own.alltoall(data, room))
}
