//! Blocking collective calls (MPI-5.0 chapter 6).
//!
//! Counts and types that a call ignores, such as those of the send buffer for MPI_IN_PLACE, are not
//! looked at.

use std::ffi::c_int;
use std::ops::Range;
use std::sync::Arc;

use longshore::{Class, Destination, IN_PLACE, Origin};

use crate::arg::{Buffer, List, Numbers};
use crate::communicator::Comm;
use crate::datatype::Type;
use crate::fault::{Fault, Result};
use crate::handle::{Handle, find};
use crate::operation::Op;
use crate::state;

/// The memory of one side of a call: elements of a datatype.
struct Side {
    buffer: Buffer,
    count: i64,
    datatype: Arc<Type>,
}

impl Side {
    fn new(buffer: Buffer, count: i64, datatype: Handle) -> Result<Side> {
        let datatype = find::<Type>(datatype)?;
        if count < 0 {
            return Err(Fault::new(Class::Count, format!("a count is {count}")));
        }
        Ok(Side { buffer, count, datatype })
    }

    /// A block of `count` elements for each rank of a communicator.
    fn blocks(buffer: Buffer, count: i64, datatype: Handle, comm: &Comm) -> Result<Side> {
        let side = Side::new(buffer, count, datatype)?;
        let count = side.count.checked_mul(i64::from(comm.inner().size()));
        Ok(Side { count: count.ok_or_else(too_many)?, ..side })
    }

    fn origin(&self) -> Result<Origin<'_>> {
        self.buffer.origin(self.count, self.datatype.committed()?)
    }

    fn room(&self) -> Result<Destination<'_>> {
        self.buffer.destination(self.count, self.datatype.committed()?)
    }
}

fn too_many() -> Fault {
    Fault::new(Class::Count, "a count and a displacement are too large together".to_owned())
}

/// The data of a call, if they aren't in place or ignored.
fn origin(side: Option<&Side>) -> Result<Origin<'_>> {
    side.map_or(Ok(IN_PLACE.into()), Side::origin)
}

/// The room of a call, if the data don't stay in place and it isn't ignored.
fn room(side: Option<&Side>) -> Result<Destination<'_>> {
    side.map_or(Ok(IN_PLACE.into()), Side::room)
}

/// Makes a side of a call, unless the call ignores it.
fn unless<T>(ignored: bool, make: impl FnOnce() -> Result<T>) -> Result<Option<T>> {
    if ignored { Ok(None) } else { make().map(Some) }
}

/// Blocks of their own lengths and places, one for each rank.
struct Varying {
    side: Side,
    /// The elements of each rank's block.
    ranges: Vec<Range<i64>>,
}

impl Varying {
    fn new(
        buffer: Buffer,
        counts: Numbers,
        displacements: Numbers,
        datatype: Handle,
        comm: &Comm,
    ) -> Result<Varying> {
        let size = comm.inner().size() as usize;
        let counts = counts.to_vec(size, "the counts")?;
        let displacements = displacements.to_vec(size, "the displacements")?;
        let mut ranges = Vec::new();
        for (rank, (count, start)) in counts.into_iter().zip(displacements).enumerate() {
            if count < 0 {
                let what = format!("the count of rank {rank} is {count}");
                return Err(Fault::new(Class::Count, what));
            }
            ranges.push(start..start.checked_add(count).ok_or_else(too_many)?);
        }
        // The runtime counts elements from the first one, and takes no negative places.
        let used = || ranges.iter().filter(|range| !range.is_empty());
        let first = used().map(|range| range.start).min().unwrap_or(0);
        let end = used().map(|range| range.end).max().unwrap_or(0);
        let whole = end.checked_sub(first).ok_or_else(too_many)?;
        let moved = |range: &Range<i64>| match range.is_empty() {
            true => 0..0,
            false => range.start - first..range.end - first,
        };
        let ranges = ranges.iter().map(moved).collect();
        let side = Side::new(buffer, whole, datatype)?;
        side.buffer.check(whole, side.datatype.committed()?)?;
        let shift = first.checked_mul(side.datatype.committed()?.extent()).ok_or_else(too_many)?;
        Ok(Varying { side: Side { buffer: buffer.after(shift), ..side }, ranges })
    }
}

/// The side and the ranges of blocks that the call may ignore.
fn parts(blocks: Option<&Varying>) -> (Option<&Side>, &[Range<i64>]) {
    blocks.map_or((None, &[]), |blocks| (Some(&blocks.side), &blocks.ranges))
}

pub fn barrier(comm: &Comm) -> Result<()> {
    Ok(comm.inner().barrier()?)
}

pub fn bcast(buffer: Buffer, count: i64, datatype: &Type, root: c_int, comm: &Comm) -> Result<()> {
    Ok(comm.inner().bcast(buffer.destination(count, datatype.committed()?)?, root)?)
}

#[allow(clippy::too_many_arguments)] // MPI's
pub fn gather(
    sendbuf: Buffer,
    sendcount: i64,
    sendtype: Handle,
    recvbuf: Buffer,
    recvcount: i64,
    recvtype: Handle,
    root: c_int,
    comm: &Comm,
) -> Result<()> {
    let data = unless(sendbuf.is_in_place(), || Side::new(sendbuf, sendcount, sendtype))?;
    let all =
        unless(comm.inner().rank() != root, || Side::blocks(recvbuf, recvcount, recvtype, comm))?;
    Ok(comm.inner().gather(origin(data.as_ref())?, room(all.as_ref())?, root)?)
}

#[allow(clippy::too_many_arguments)] // MPI's
pub fn gatherv(
    sendbuf: Buffer,
    sendcount: i64,
    sendtype: Handle,
    recvbuf: Buffer,
    recvcounts: Numbers,
    displs: Numbers,
    recvtype: Handle,
    root: c_int,
    comm: &Comm,
) -> Result<()> {
    let data = unless(sendbuf.is_in_place(), || Side::new(sendbuf, sendcount, sendtype))?;
    let all = unless(comm.inner().rank() != root, || {
        Varying::new(recvbuf, recvcounts, displs, recvtype, comm)
    })?;
    let (all, ranges) = parts(all.as_ref());
    Ok(comm.inner().gatherv(origin(data.as_ref())?, room(all)?, ranges, root)?)
}

#[allow(clippy::too_many_arguments)] // MPI's
pub fn scatter(
    sendbuf: Buffer,
    sendcount: i64,
    sendtype: Handle,
    recvbuf: Buffer,
    recvcount: i64,
    recvtype: Handle,
    root: c_int,
    comm: &Comm,
) -> Result<()> {
    let all =
        unless(comm.inner().rank() != root, || Side::blocks(sendbuf, sendcount, sendtype, comm))?;
    let mine = unless(recvbuf.is_in_place(), || Side::new(recvbuf, recvcount, recvtype))?;
    Ok(comm.inner().scatter(origin(all.as_ref())?, room(mine.as_ref())?, root)?)
}

#[allow(clippy::too_many_arguments)] // MPI's
pub fn scatterv(
    sendbuf: Buffer,
    sendcounts: Numbers,
    displs: Numbers,
    sendtype: Handle,
    recvbuf: Buffer,
    recvcount: i64,
    recvtype: Handle,
    root: c_int,
    comm: &Comm,
) -> Result<()> {
    let all = unless(comm.inner().rank() != root, || {
        Varying::new(sendbuf, sendcounts, displs, sendtype, comm)
    })?;
    let (all, ranges) = parts(all.as_ref());
    let mine = unless(recvbuf.is_in_place(), || Side::new(recvbuf, recvcount, recvtype))?;
    Ok(comm.inner().scatterv(origin(all)?, ranges, room(mine.as_ref())?, root)?)
}

pub fn allgather(
    sendbuf: Buffer,
    sendcount: i64,
    sendtype: Handle,
    recvbuf: Buffer,
    recvcount: i64,
    recvtype: Handle,
    comm: &Comm,
) -> Result<()> {
    let data = unless(sendbuf.is_in_place(), || Side::new(sendbuf, sendcount, sendtype))?;
    let all = Side::blocks(recvbuf, recvcount, recvtype, comm)?;
    Ok(comm.inner().allgather_into(origin(data.as_ref())?, all.room()?)?)
}

#[allow(clippy::too_many_arguments)] // MPI's
pub fn allgatherv(
    sendbuf: Buffer,
    sendcount: i64,
    sendtype: Handle,
    recvbuf: Buffer,
    recvcounts: Numbers,
    displs: Numbers,
    recvtype: Handle,
    comm: &Comm,
) -> Result<()> {
    let data = unless(sendbuf.is_in_place(), || Side::new(sendbuf, sendcount, sendtype))?;
    let all = Varying::new(recvbuf, recvcounts, displs, recvtype, comm)?;
    Ok(comm.inner().allgatherv(origin(data.as_ref())?, all.side.room()?, &all.ranges)?)
}

pub fn alltoall(
    sendbuf: Buffer,
    sendcount: i64,
    sendtype: Handle,
    recvbuf: Buffer,
    recvcount: i64,
    recvtype: Handle,
    comm: &Comm,
) -> Result<()> {
    let data = unless(sendbuf.is_in_place(), || Side::blocks(sendbuf, sendcount, sendtype, comm))?;
    let all = Side::blocks(recvbuf, recvcount, recvtype, comm)?;
    Ok(comm.inner().alltoall(origin(data.as_ref())?, all.room()?)?)
}

#[allow(clippy::too_many_arguments)] // MPI's
pub fn alltoallv(
    sendbuf: Buffer,
    sendcounts: Numbers,
    sdispls: Numbers,
    sendtype: Handle,
    recvbuf: Buffer,
    recvcounts: Numbers,
    rdispls: Numbers,
    recvtype: Handle,
    comm: &Comm,
) -> Result<()> {
    let data = unless(sendbuf.is_in_place(), || {
        Varying::new(sendbuf, sendcounts, sdispls, sendtype, comm)
    })?;
    let (data, given) = parts(data.as_ref());
    let all = Varying::new(recvbuf, recvcounts, rdispls, recvtype, comm)?;
    Ok(comm.inner().alltoallv((origin(data)?, given), (all.side.room()?, &all.ranges))?)
}

/// The blocks of an alltoallw, whose displacements are in bytes.
fn typed(
    buffer: Buffer,
    counts: Numbers,
    displacements: Numbers,
    types: List<Handle>,
    comm: &Comm,
) -> Result<Vec<Side>> {
    let size = comm.inner().size() as usize;
    let counts = counts.to_vec(size, "the counts")?;
    let displacements = displacements.to_vec(size, "the displacements")?;
    let types = types.slice(size, "the types")?.iter();
    let blocks = counts.into_iter().zip(displacements).zip(types);
    let block = |((count, at), datatype): ((i64, i64), &Handle)| {
        let side = Side::new(buffer, count, *datatype)?;
        side.buffer.check(count, side.datatype.committed()?)?;
        Ok(Side { buffer: buffer.after(at), ..side })
    };
    blocks.map(block).collect()
}

#[allow(clippy::too_many_arguments)] // MPI's
pub fn alltoallw(
    sendbuf: Buffer,
    sendcounts: Numbers,
    sdispls: Numbers,
    sendtypes: List<Handle>,
    recvbuf: Buffer,
    recvcounts: Numbers,
    rdispls: Numbers,
    recvtypes: List<Handle>,
    comm: &Comm,
) -> Result<()> {
    let data =
        unless(sendbuf.is_in_place(), || typed(sendbuf, sendcounts, sdispls, sendtypes, comm))?;
    let all = typed(recvbuf, recvcounts, rdispls, recvtypes, comm)?;
    // All data are packed before any are received.
    let given = data.as_ref().unwrap_or(&all).iter().map(Side::origin).collect::<Result<Vec<_>>>();
    let taken = all.iter().map(Side::room).collect::<Result<Vec<_>>>();
    Ok(comm.inner().alltoallw(given?, taken?)?)
}

/// The operands of a reduction: the data unless they are in place, and the room.
struct Operands {
    data: Option<Side>,
    room: Option<Side>,
    handle: Handle,
    extent: i64,
}

impl Operands {
    /// `given` elements at `sendbuf`, and `taken` at `recvbuf` unless the call ignores it.
    fn new(
        (sendbuf, given): (Buffer, i64),
        (recvbuf, taken): (Buffer, i64),
        handle: Handle,
        ignores_room: bool,
    ) -> Result<Operands> {
        let datatype = find::<Type>(handle)?;
        let extent = datatype.committed()?.extent();
        let data = unless(sendbuf.is_in_place(), || Side::new(sendbuf, given, handle))?;
        let room = unless(ignores_room, || Side::new(recvbuf, taken, handle))?;
        Ok(Operands { data, room, handle, extent })
    }

    /// Runs a call on them.
    fn reduce(
        &self,
        op: &Op,
        call: impl FnOnce(Origin<'_>, Destination<'_>, longshore::Operator<'_>) -> longshore::Result<()>,
    ) -> Result<()> {
        let (data, room) = (origin(self.data.as_ref())?, room(self.room.as_ref())?);
        Ok(op.with(self.handle, self.extent, |op| call(data, room, op))?)
    }
}

pub fn reduce(
    sendbuf: Buffer,
    recvbuf: Buffer,
    count: i64,
    datatype: Handle,
    op: &Op,
    root: c_int,
    comm: &Comm,
) -> Result<()> {
    let elsewhere = comm.inner().rank() != root;
    let operands = Operands::new((sendbuf, count), (recvbuf, count), datatype, elsewhere)?;
    operands.reduce(op, |data, room, op| comm.inner().reduce(data, room, op, root))
}

pub fn allreduce(
    sendbuf: Buffer,
    recvbuf: Buffer,
    count: i64,
    datatype: Handle,
    op: &Op,
    comm: &Comm,
) -> Result<()> {
    let operands = Operands::new((sendbuf, count), (recvbuf, count), datatype, false)?;
    operands.reduce(op, |data, room, op| comm.inner().allreduce(data, room, op))
}

pub fn scan(
    sendbuf: Buffer,
    recvbuf: Buffer,
    count: i64,
    datatype: Handle,
    op: &Op,
    comm: &Comm,
) -> Result<()> {
    let operands = Operands::new((sendbuf, count), (recvbuf, count), datatype, false)?;
    operands.reduce(op, |data, room, op| comm.inner().scan(data, room, op))
}

pub fn exscan(
    sendbuf: Buffer,
    recvbuf: Buffer,
    count: i64,
    datatype: Handle,
    op: &Op,
    comm: &Comm,
) -> Result<()> {
    // The room of rank 0 stays as it is, and may be no memory at all, unless it has the data.
    let unused = comm.inner().rank() == 0 && !sendbuf.is_in_place();
    let operands = Operands::new((sendbuf, count), (recvbuf, count), datatype, unused)?;
    operands.reduce(op, |data, room, op| comm.inner().exscan(data, room, op))
}

pub fn reduce_local(
    inbuf: Buffer,
    inoutbuf: Buffer,
    count: i64,
    datatype: Handle,
    op: &Op,
) -> Result<()> {
    if inbuf.is_in_place() || inoutbuf.is_in_place() {
        let what = "MPI_IN_PLACE is no buffer of MPI_Reduce_local";
        return Err(Fault::new(Class::Buffer, what.to_owned()));
    }
    let operands = Operands::new((inbuf, count), (inoutbuf, count), datatype, false)?;
    let alone = state::state()?.rank().alone();
    operands.reduce(op, |data, room, op| alone.reduce_local(data, room, op))
}

pub fn reduce_scatter_block(
    sendbuf: Buffer,
    recvbuf: Buffer,
    count: i64,
    datatype: Handle,
    op: &Op,
    comm: &Comm,
) -> Result<()> {
    let all = count.checked_mul(i64::from(comm.inner().size())).ok_or_else(too_many)?;
    let taken = if sendbuf.is_in_place() { all } else { count };
    let operands = Operands::new((sendbuf, all), (recvbuf, taken), datatype, false)?;
    operands.reduce(op, |data, room, op| comm.inner().reduce_scatter_block(data, room, op))
}

pub fn reduce_scatter(
    sendbuf: Buffer,
    recvbuf: Buffer,
    counts: Numbers,
    datatype: Handle,
    op: &Op,
    comm: &Comm,
) -> Result<()> {
    let size = comm.inner().size() as usize;
    let (mut all, mut ranges) = (0i64, Vec::new());
    for (rank, count) in counts.to_vec(size, "recvcounts")?.into_iter().enumerate() {
        if count < 0 {
            return Err(Fault::new(Class::Count, format!("recvcounts[{rank}] is {count}")));
        }
        let end = all.checked_add(count).ok_or_else(too_many)?;
        ranges.push(all..end);
        all = end;
    }
    let own = &ranges[comm.inner().rank() as usize];
    let taken = if sendbuf.is_in_place() { all } else { own.end - own.start };
    let operands = Operands::new((sendbuf, all), (recvbuf, taken), datatype, false)?;
    operands.reduce(op, |data, room, op| comm.inner().reduce_scatter(data, room, &ranges, op))
}
