//! The quick ways of collective calls that wait, within one group, on data apart from the result or
//! in place.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};

use longshore::{Communicator, Destination, IN_PLACE, Op, Origin, Type};

use crate::call::quick::{coded, lasting};
use crate::communicator::Comm;
use crate::edge::arg::Buffer;
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

/// The bytes of a block's elements, if those of a type leave no gaps between them.
#[inline]
fn bytes(count: i64, datatype: &Type) -> Option<usize> {
    let bounds = datatype.bounds();
    let is_dense = bounds.lb == 0 && bounds.size == bounds.extent();
    let bytes = bounds.size.checked_mul(count).and_then(|bytes| usize::try_from(bytes).ok());
    bytes.filter(|bytes| is_dense && *bytes > 0)
}

/// Whether two pieces of memory have no byte in common.
#[inline]
fn are_apart(one: (Buffer, usize), other: (Buffer, usize)) -> bool {
    let [(one, len), (other, other_len)] = [one, other].map(|(at, len)| (at.address().addr(), len));
    one.abs_diff(other) >= if one < other { len } else { other_len }
}

/// Elements of one type: their memory, their count, and the type.
type Elements = (Buffer, i64, &'static Type);

/// The data and the room of a call, if they are apart or the data are in place.
#[inline]
fn sides(data: Elements, room: Elements) -> Option<(Origin<'static>, Destination<'static>)> {
    let room_bytes = bytes(room.1, room.2)?;
    let place = destination(room)?;
    if data.0.is_in_place() {
        return Some((IN_PLACE.into(), place));
    }
    let data_bytes = bytes(data.1, data.2)?;
    are_apart((data.0, data_bytes), (room.0, room_bytes)).then_some(())?;
    Some((origin(data)?, place))
}

/// The elements of a block of each rank.
#[inline]
fn of_each(own: &Communicator, count: i64) -> Option<i64> {
    count.checked_mul(own.size().into())
}

/// The data and the room of a call that takes a block of each rank. Data in place are of the room's
/// type.
#[inline]
fn sides_of_each(
    own: &Communicator,
    (data, count, datatype): (Buffer, i64, Handle),
    (room, block, room_type): (Buffer, i64, Handle),
) -> Option<(Origin<'static>, Destination<'static>)> {
    let taken = lasting(room_type)?;
    let given = if data.is_in_place() { taken } else { lasting(datatype)? };
    sides((data, count, given), (room, of_each(own, block)?, taken))
}

#[inline]
fn origin((data, count, datatype): Elements) -> Option<Origin<'static>> {
    data.origin(count, datatype).ok()
}

#[inline]
fn destination((room, count, datatype): Elements) -> Option<Destination<'static>> {
    room.destination(count, datatype).ok()
}

/// The operands of a reduction, and its operation.
struct Operands {
    of: &'static Type,
    op: Op,
}

impl Operands {
    #[inline]
    fn new(datatype: Handle, op: Handle) -> Option<Operands> {
        let (of, op) = (lasting(datatype)?, predefined(op)?);
        (!is_counted(datatype)).then_some(Operands { of, op })
    }
}

/// # Safety
/// The program's promises of MPI_Bcast.
pub unsafe fn bcast(
    buffer: *mut c_void,
    count: i64,
    datatype: Handle,
    root: c_int,
    comm: Handle,
) -> Option<c_int> {
    let (own, datatype) = (group(comm)?, lasting(datatype)?);
    // SAFETY: the caller's promise.
    let data = destination((unsafe { Buffer::new(buffer) }, count, datatype))?;
    coded("MPI_Bcast", Raiser::Comm(comm), own.bcast(data, root))
}

/// # Safety
/// The program's promises of MPI_Reduce.
#[allow(clippy::too_many_arguments)] // MPI's
pub unsafe fn reduce(
    data: *const c_void,
    room: *mut c_void,
    count: i64,
    datatype: Handle,
    op: Handle,
    root: c_int,
    comm: Handle,
) -> Option<c_int> {
    let (own, Operands { of, op }) = (group(comm)?, Operands::new(datatype, op)?);
    // SAFETY: the caller's promise.
    let [data, room] = unsafe { [Buffer::new(data), Buffer::new(room)] };
    let (data, room) = match own.rank() == root {
        true => sides((data, count, of), (room, count, of))?,
        false => (origin((data, count, of))?, IN_PLACE.into()),
    };
    coded("MPI_Reduce", Raiser::Comm(comm), own.reduce(data, room, op, root))
}

macro_rules! combining {
    ($($name:ident $text:literal $(unless $is_unusual:expr)?;)*) => {
        $(
            /// # Safety
            /// The program's promises of the call.
            pub unsafe fn $name(
                data: *const c_void,
                room: *mut c_void,
                count: i64,
                datatype: Handle,
                op: Handle,
                comm: Handle,
            ) -> Option<c_int> {
                let (own, Operands { of, op }) = (group(comm)?, Operands::new(datatype, op)?);
                $(if $is_unusual(own) { return None; })?
                // SAFETY: the caller's promise.
                let [data, room] = unsafe { [Buffer::new(data), Buffer::new(room)] };
                let (data, room) = sides((data, count, of), (room, count, of))?;
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

/// # Safety
/// The program's promises of MPI_Reduce_scatter_block.
pub unsafe fn reduce_scatter_block(
    data: *const c_void,
    room: *mut c_void,
    count: i64,
    datatype: Handle,
    op: Handle,
    comm: Handle,
) -> Option<c_int> {
    let (own, Operands { of, op }) = (group(comm)?, Operands::new(datatype, op)?);
    // SAFETY: the caller's promise.
    let [data, room] = unsafe { [Buffer::new(data), Buffer::new(room)] };
    let all = of_each(own, count)?;
    let taken = if data.is_in_place() { all } else { count };
    let (data, room) = sides((data, all, of), (room, taken, of))?;
    let made = own.reduce_scatter_block(data, room, op);
    coded("MPI_Reduce_scatter_block", Raiser::Comm(comm), made)
}

/// # Safety
/// The program's promises of MPI_Gather.
#[allow(clippy::too_many_arguments)] // MPI's
pub unsafe fn gather(
    data: *const c_void,
    count: i64,
    datatype: Handle,
    room: *mut c_void,
    room_count: i64,
    room_type: Handle,
    root: c_int,
    comm: Handle,
) -> Option<c_int> {
    let own = group(comm)?;
    // SAFETY: the caller's promise.
    let [data, room] = unsafe { [Buffer::new(data), Buffer::new(room)] };
    let (data, room) = match own.rank() == root {
        true => sides_of_each(own, (data, count, datatype), (room, room_count, room_type))?,
        false => (origin((data, count, lasting(datatype)?))?, IN_PLACE.into()),
    };
    coded("MPI_Gather", Raiser::Comm(comm), own.gather(data, room, root))
}

/// # Safety
/// The program's promises of MPI_Scatter.
#[allow(clippy::too_many_arguments)] // MPI's
pub unsafe fn scatter(
    data: *const c_void,
    count: i64,
    datatype: Handle,
    room: *mut c_void,
    room_count: i64,
    room_type: Handle,
    root: c_int,
    comm: Handle,
) -> Option<c_int> {
    let own = group(comm)?;
    // SAFETY: the caller's promise.
    let [data, room] = unsafe { [Buffer::new(data), Buffer::new(room)] };
    if room.is_in_place() {
        return None;
    }
    let room = (room, room_count, lasting(room_type)?);
    let (data, room) = match own.rank() == root {
        true => sides((data, of_each(own, count)?, lasting(datatype)?), room)?,
        false => (IN_PLACE.into(), destination(room)?),
    };
    coded("MPI_Scatter", Raiser::Comm(comm), own.scatter(data, room, root))
}

/// # Safety
/// The program's promises of MPI_Allgather.
#[allow(clippy::too_many_arguments)] // MPI's
pub unsafe fn allgather(
    data: *const c_void,
    count: i64,
    datatype: Handle,
    room: *mut c_void,
    room_count: i64,
    room_type: Handle,
    comm: Handle,
) -> Option<c_int> {
    let own = group(comm)?;
    // SAFETY: the caller's promise.
    let [data, room] = unsafe { [Buffer::new(data), Buffer::new(room)] };
    let room = (room, room_count, room_type);
    let (data, room) = sides_of_each(own, (data, count, datatype), room)?;
    coded("MPI_Allgather", Raiser::Comm(comm), own.allgather_into(data, room))
}

/// # Safety
/// The program's promises of MPI_Alltoall.
#[allow(clippy::too_many_arguments)] // MPI's
pub unsafe fn alltoall(
    data: *const c_void,
    count: i64,
    datatype: Handle,
    room: *mut c_void,
    room_count: i64,
    room_type: Handle,
    comm: Handle,
) -> Option<c_int> {
    let own = group(comm)?;
    // SAFETY: the caller's promise.
    let [data, room] = unsafe { [Buffer::new(data), Buffer::new(room)] };
    let (data, room) = ((data, of_each(own, count)?, datatype), (room, room_count, room_type));
    let (data, room) = sides_of_each(own, data, room)?;
    coded("MPI_Alltoall", Raiser::Comm(comm), own.alltoall(data, room))
}
