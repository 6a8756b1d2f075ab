//! The arguments of each collective call, as MPI has them, and the list of these calls.

use std::ffi::c_int;
use std::sync::Arc;

use longshore::Class;

use crate::communicator::Comm;
use crate::edge::arg::{Buffer, Numbers};
use crate::edge::elements::{Elements, Reduction, Typed, Varying};
use crate::edge::fault::{Fault, Result};
use crate::edge::handle::Handle;
use crate::operation::Op;
use crate::request::arguments::{Arguments, Blocks, Operands, Side, too_many, typed};

/// Passes the list of collective calls to a macro: the names of the call that waits, the call with
/// a request and the persistent one, and their parameters before the communicator.
macro_rules! each_collective {
    ($make:ident) => {
        $make! {
            barrier ibarrier barrier_init ();
            bcast ibcast bcast_init (data: Elements, root: c_int);
            gather igather gather_init (data: Elements, room: Elements, root: c_int);
            gatherv igatherv gatherv_init (data: Elements, room: Varying, root: c_int);
            scatter iscatter scatter_init (data: Elements, room: Elements, root: c_int);
            scatterv iscatterv scatterv_init (data: Varying, room: Elements, root: c_int);
            allgather iallgather allgather_init (data: Elements, room: Elements);
            allgatherv iallgatherv allgatherv_init (data: Elements, room: Varying);
            alltoall ialltoall alltoall_init (data: Elements, room: Elements);
            alltoallv ialltoallv alltoallv_init (data: Varying, room: Varying);
            alltoallw ialltoallw alltoallw_init (data: Typed, room: Typed);
            reduce ireduce reduce_init (reduction: Reduction, op: &Arc<Op>, root: c_int);
            allreduce iallreduce allreduce_init (reduction: Reduction, op: &Arc<Op>);
            scan iscan scan_init (reduction: Reduction, op: &Arc<Op>);
            exscan iexscan exscan_init (reduction: Reduction, op: &Arc<Op>);
            reduce_scatter_block ireduce_scatter_block reduce_scatter_block_init (reduction: Reduction, op: &Arc<Op>);
            reduce_scatter ireduce_scatter reduce_scatter_init (sendbuf: Buffer, recvbuf: Buffer, counts: Numbers, datatype: Handle, op: &Arc<Op>);
        }
    };
}
pub(crate) use each_collective;

pub fn barrier(_comm: &Comm) -> Result<Arguments> {
    Ok(Arguments::Barrier)
}

pub fn bcast(data: Elements, root: c_int, comm: &Comm) -> Result<Arguments> {
    let data = match comm.is_idle(root) {
        true => Blocks::default(),
        false => Blocks { side: Some(Side::new(data)?), ranges: None },
    };
    Ok(Arguments::Bcast(data, root))
}

pub fn gather(data: Elements, room: Elements, root: c_int, comm: &Comm) -> Result<Arguments> {
    let data = match comm.gives_nothing(root) {
        true => Blocks::default(),
        false => Blocks::one(data)?,
    };
    let all = match comm.is_root(root) {
        true => Blocks::equal(room, comm)?,
        false => Blocks::default(),
    };
    Ok(Arguments::Gather(data, all, root))
}

pub fn gatherv(data: Elements, room: Varying, root: c_int, comm: &Comm) -> Result<Arguments> {
    let data = match comm.gives_nothing(root) {
        true => Blocks::default(),
        false => Blocks::one(data)?,
    };
    let all = match comm.is_root(root) {
        true => Blocks::varying(room, comm)?,
        false => Blocks { side: None, ranges: Some(Vec::new()) },
    };
    Ok(Arguments::Gather(data, all, root))
}

pub fn scatter(data: Elements, room: Elements, root: c_int, comm: &Comm) -> Result<Arguments> {
    let all = match comm.is_root(root) {
        true => Blocks::equal(data, comm)?,
        false => Blocks::default(),
    };
    let mine = match comm.gives_nothing(root) {
        true => Blocks::default(),
        false => Blocks::one(room)?,
    };
    Ok(Arguments::Scatter(all, mine, root))
}

pub fn scatterv(data: Varying, room: Elements, root: c_int, comm: &Comm) -> Result<Arguments> {
    let all = match comm.is_root(root) {
        true => Blocks::varying(data, comm)?,
        false => Blocks { side: None, ranges: Some(Vec::new()) },
    };
    let mine = match comm.gives_nothing(root) {
        true => Blocks::default(),
        false => Blocks::one(room)?,
    };
    Ok(Arguments::Scatter(all, mine, root))
}

pub fn allgather(data: Elements, room: Elements, comm: &Comm) -> Result<Arguments> {
    let data = Blocks::one(data)?;
    Ok(Arguments::Allgather(data, Blocks::equal(room, comm)?))
}

pub fn allgatherv(data: Elements, room: Varying, comm: &Comm) -> Result<Arguments> {
    let data = Blocks::one(data)?;
    let all = Blocks::varying(room, comm)?;
    Ok(Arguments::Allgather(data, all))
}

pub fn alltoall(data: Elements, room: Elements, comm: &Comm) -> Result<Arguments> {
    let data = match data.buffer.is_in_place() {
        true => Blocks::default(),
        false => Blocks::equal(data, comm)?,
    };
    Ok(Arguments::Alltoall(data, Blocks::equal(room, comm)?))
}

pub fn alltoallv(data: Varying, room: Varying, comm: &Comm) -> Result<Arguments> {
    let data = match data.buffer.is_in_place() {
        true => Blocks::default(),
        false => Blocks::varying(data, comm)?,
    };
    let all = Blocks::varying(room, comm)?;
    Ok(Arguments::Alltoall(data, all))
}

pub fn alltoallw(data: Typed, room: Typed, comm: &Comm) -> Result<Arguments> {
    let size = comm.peers() as usize;
    let data = match data.buffer.is_in_place() {
        true => {
            comm.intra()?;
            None
        }
        false => Some(typed(data, size)?),
    };
    Ok(Arguments::Alltoallw(data, typed(room, size)?))
}

pub fn reduce(reduction: Reduction, op: &Arc<Op>, root: c_int, comm: &Comm) -> Result<Arguments> {
    let ignored = (comm.gives_nothing(root), !comm.is_root(root));
    Ok(Arguments::Reduce(Operands::new(reduction.data(), reduction.room(), op, ignored)?, root))
}

pub fn allreduce(reduction: Reduction, op: &Arc<Op>, _comm: &Comm) -> Result<Arguments> {
    let (data, room) = (reduction.data(), reduction.room());
    Ok(Arguments::Allreduce(Operands::new(data, room, op, (false, false))?))
}

pub fn scan(reduction: Reduction, op: &Arc<Op>, _comm: &Comm) -> Result<Arguments> {
    let (data, room) = (reduction.data(), reduction.room());
    Ok(Arguments::Scan(Operands::new(data, room, op, (false, false))?))
}

pub fn exscan(reduction: Reduction, op: &Arc<Op>, comm: &Comm) -> Result<Arguments> {
    let (data, room) = (reduction.data(), reduction.room());
    // The room of rank 0 stays as it is, and may be no memory at all, unless it has the data. If it
    // is the data's buffer, the other ranks refuse theirs, and this one doesn't begin alone.
    let is_same = data.buffer == room.buffer && comm.inner().size() > 1;
    let unused = comm.inner().rank() == 0 && !data.buffer.is_in_place() && !is_same;
    Ok(Arguments::Exscan(Operands::new(data, room, op, (false, unused))?))
}

pub fn reduce_scatter_block(reduction: Reduction, op: &Arc<Op>, comm: &Comm) -> Result<Arguments> {
    let all = reduction.count.checked_mul(i64::from(comm.inner().size())).ok_or_else(too_many)?;
    let data = Elements { count: all, ..reduction.data() };
    let taken = if data.buffer.is_in_place() { all } else { reduction.count };
    let room = Elements { count: taken, ..reduction.room() };
    Ok(Arguments::ReduceScatter(Operands::new(data, room, op, (false, false))?, None))
}

pub fn reduce_scatter(
    sendbuf: Buffer,
    recvbuf: Buffer,
    counts: Numbers,
    datatype: Handle,
    op: &Arc<Op>,
    comm: &Comm,
) -> Result<Arguments> {
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
    let data = Elements { buffer: sendbuf, count: all, datatype };
    let room = Elements { buffer: recvbuf, count: taken, datatype };
    let operands = Operands::new(data, room, op, (false, false))?;
    Ok(Arguments::ReduceScatter(operands, Some(ranges)))
}
