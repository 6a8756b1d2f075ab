//! The arguments of each collective call, as MPI has them, and the list of these calls.
#![allow(clippy::too_many_arguments)] // MPI's

use std::ffi::c_int;
use std::sync::Arc;

use longshore::Class;

use crate::communicator::Comm;
use crate::edge::arg::{Buffer, List, Numbers};
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
            bcast ibcast bcast_init (buffer: Buffer, count: i64, datatype: Handle, root: c_int);
            gather igather gather_init (sendbuf: Buffer, sendcount: i64, sendtype: Handle, recvbuf: Buffer, recvcount: i64, recvtype: Handle, root: c_int);
            gatherv igatherv gatherv_init (sendbuf: Buffer, sendcount: i64, sendtype: Handle, recvbuf: Buffer, recvcounts: Numbers, displs: Numbers, recvtype: Handle, root: c_int);
            scatter iscatter scatter_init (sendbuf: Buffer, sendcount: i64, sendtype: Handle, recvbuf: Buffer, recvcount: i64, recvtype: Handle, root: c_int);
            scatterv iscatterv scatterv_init (sendbuf: Buffer, sendcounts: Numbers, displs: Numbers, sendtype: Handle, recvbuf: Buffer, recvcount: i64, recvtype: Handle, root: c_int);
            allgather iallgather allgather_init (sendbuf: Buffer, sendcount: i64, sendtype: Handle, recvbuf: Buffer, recvcount: i64, recvtype: Handle);
            allgatherv iallgatherv allgatherv_init (sendbuf: Buffer, sendcount: i64, sendtype: Handle, recvbuf: Buffer, recvcounts: Numbers, displs: Numbers, recvtype: Handle);
            alltoall ialltoall alltoall_init (sendbuf: Buffer, sendcount: i64, sendtype: Handle, recvbuf: Buffer, recvcount: i64, recvtype: Handle);
            alltoallv ialltoallv alltoallv_init (sendbuf: Buffer, sendcounts: Numbers, sdispls: Numbers, sendtype: Handle, recvbuf: Buffer, recvcounts: Numbers, rdispls: Numbers, recvtype: Handle);
            alltoallw ialltoallw alltoallw_init (sendbuf: Buffer, sendcounts: Numbers, sdispls: Numbers, sendtypes: List<Handle>, recvbuf: Buffer, recvcounts: Numbers, rdispls: Numbers, recvtypes: List<Handle>);
            reduce ireduce reduce_init (sendbuf: Buffer, recvbuf: Buffer, count: i64, datatype: Handle, op: &Arc<Op>, root: c_int);
            allreduce iallreduce allreduce_init (sendbuf: Buffer, recvbuf: Buffer, count: i64, datatype: Handle, op: &Arc<Op>);
            scan iscan scan_init (sendbuf: Buffer, recvbuf: Buffer, count: i64, datatype: Handle, op: &Arc<Op>);
            exscan iexscan exscan_init (sendbuf: Buffer, recvbuf: Buffer, count: i64, datatype: Handle, op: &Arc<Op>);
            reduce_scatter_block ireduce_scatter_block reduce_scatter_block_init (sendbuf: Buffer, recvbuf: Buffer, count: i64, datatype: Handle, op: &Arc<Op>);
            reduce_scatter ireduce_scatter reduce_scatter_init (sendbuf: Buffer, recvbuf: Buffer, counts: Numbers, datatype: Handle, op: &Arc<Op>);
        }
    };
}
pub(crate) use each_collective;

pub fn barrier(_comm: &Comm) -> Result<Arguments> {
    Ok(Arguments::Barrier)
}

pub fn bcast(
    buffer: Buffer,
    count: i64,
    datatype: Handle,
    root: c_int,
    comm: &Comm,
) -> Result<Arguments> {
    let data = match comm.is_idle(root) {
        true => Blocks::default(),
        false => Blocks { side: Some(Side::new(buffer, count, datatype)?), ranges: None },
    };
    Ok(Arguments::Bcast(data, root))
}

pub fn gather(
    sendbuf: Buffer,
    sendcount: i64,
    sendtype: Handle,
    recvbuf: Buffer,
    recvcount: i64,
    recvtype: Handle,
    root: c_int,
    comm: &Comm,
) -> Result<Arguments> {
    let data = match comm.gives_nothing(root) {
        true => Blocks::default(),
        false => Blocks::one(sendbuf, sendcount, sendtype)?,
    };
    let all = match comm.is_root(root) {
        true => Blocks::equal(recvbuf, recvcount, recvtype, comm)?,
        false => Blocks::default(),
    };
    Ok(Arguments::Gather(data, all, root))
}

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
) -> Result<Arguments> {
    let data = match comm.gives_nothing(root) {
        true => Blocks::default(),
        false => Blocks::one(sendbuf, sendcount, sendtype)?,
    };
    let all = match comm.is_root(root) {
        true => Blocks::varying(recvbuf, recvcounts, displs, recvtype, comm)?,
        false => Blocks { side: None, ranges: Some(Vec::new()) },
    };
    Ok(Arguments::Gather(data, all, root))
}

pub fn scatter(
    sendbuf: Buffer,
    sendcount: i64,
    sendtype: Handle,
    recvbuf: Buffer,
    recvcount: i64,
    recvtype: Handle,
    root: c_int,
    comm: &Comm,
) -> Result<Arguments> {
    let all = match comm.is_root(root) {
        true => Blocks::equal(sendbuf, sendcount, sendtype, comm)?,
        false => Blocks::default(),
    };
    let mine = match comm.gives_nothing(root) {
        true => Blocks::default(),
        false => Blocks::one(recvbuf, recvcount, recvtype)?,
    };
    Ok(Arguments::Scatter(all, mine, root))
}

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
) -> Result<Arguments> {
    let all = match comm.is_root(root) {
        true => Blocks::varying(sendbuf, sendcounts, displs, sendtype, comm)?,
        false => Blocks { side: None, ranges: Some(Vec::new()) },
    };
    let mine = match comm.gives_nothing(root) {
        true => Blocks::default(),
        false => Blocks::one(recvbuf, recvcount, recvtype)?,
    };
    Ok(Arguments::Scatter(all, mine, root))
}

pub fn allgather(
    sendbuf: Buffer,
    sendcount: i64,
    sendtype: Handle,
    recvbuf: Buffer,
    recvcount: i64,
    recvtype: Handle,
    comm: &Comm,
) -> Result<Arguments> {
    let data = Blocks::one(sendbuf, sendcount, sendtype)?;
    Ok(Arguments::Allgather(data, Blocks::equal(recvbuf, recvcount, recvtype, comm)?))
}

pub fn allgatherv(
    sendbuf: Buffer,
    sendcount: i64,
    sendtype: Handle,
    recvbuf: Buffer,
    recvcounts: Numbers,
    displs: Numbers,
    recvtype: Handle,
    comm: &Comm,
) -> Result<Arguments> {
    let data = Blocks::one(sendbuf, sendcount, sendtype)?;
    let all = Blocks::varying(recvbuf, recvcounts, displs, recvtype, comm)?;
    Ok(Arguments::Allgather(data, all))
}

pub fn alltoall(
    sendbuf: Buffer,
    sendcount: i64,
    sendtype: Handle,
    recvbuf: Buffer,
    recvcount: i64,
    recvtype: Handle,
    comm: &Comm,
) -> Result<Arguments> {
    let data = match sendbuf.is_in_place() {
        true => Blocks::default(),
        false => Blocks::equal(sendbuf, sendcount, sendtype, comm)?,
    };
    Ok(Arguments::Alltoall(data, Blocks::equal(recvbuf, recvcount, recvtype, comm)?))
}

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
) -> Result<Arguments> {
    let data = match sendbuf.is_in_place() {
        true => Blocks::default(),
        false => Blocks::varying(sendbuf, sendcounts, sdispls, sendtype, comm)?,
    };
    let all = Blocks::varying(recvbuf, recvcounts, rdispls, recvtype, comm)?;
    Ok(Arguments::Alltoall(data, all))
}

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
) -> Result<Arguments> {
    let size = comm.peers() as usize;
    let data = match sendbuf.is_in_place() {
        true => {
            comm.intra()?;
            None
        }
        false => Some(typed(sendbuf, sendcounts, sdispls, sendtypes, size)?),
    };
    Ok(Arguments::Alltoallw(data, typed(recvbuf, recvcounts, rdispls, recvtypes, size)?))
}

pub fn reduce(
    sendbuf: Buffer,
    recvbuf: Buffer,
    count: i64,
    datatype: Handle,
    op: &Arc<Op>,
    root: c_int,
    comm: &Comm,
) -> Result<Arguments> {
    let (data, room) = ((sendbuf, count), (recvbuf, count));
    let ignored = (comm.gives_nothing(root), !comm.is_root(root));
    let operands = Operands::new(data, room, (datatype, op), ignored)?;
    Ok(Arguments::Reduce(operands, root))
}

pub fn allreduce(
    sendbuf: Buffer,
    recvbuf: Buffer,
    count: i64,
    datatype: Handle,
    op: &Arc<Op>,
    _comm: &Comm,
) -> Result<Arguments> {
    let (data, room) = ((sendbuf, count), (recvbuf, count));
    Ok(Arguments::Allreduce(Operands::new(data, room, (datatype, op), (false, false))?))
}

pub fn scan(
    sendbuf: Buffer,
    recvbuf: Buffer,
    count: i64,
    datatype: Handle,
    op: &Arc<Op>,
    _comm: &Comm,
) -> Result<Arguments> {
    let (data, room) = ((sendbuf, count), (recvbuf, count));
    Ok(Arguments::Scan(Operands::new(data, room, (datatype, op), (false, false))?))
}

pub fn exscan(
    sendbuf: Buffer,
    recvbuf: Buffer,
    count: i64,
    datatype: Handle,
    op: &Arc<Op>,
    comm: &Comm,
) -> Result<Arguments> {
    let (data, room) = ((sendbuf, count), (recvbuf, count));
    // The room of rank 0 stays as it is, and may be no memory at all, unless it has the data. If it
    // is the data's buffer, the other ranks refuse theirs, and this one doesn't begin alone.
    let is_same = sendbuf == recvbuf && comm.inner().size() > 1;
    let unused = comm.inner().rank() == 0 && !sendbuf.is_in_place() && !is_same;
    Ok(Arguments::Exscan(Operands::new(data, room, (datatype, op), (false, unused))?))
}

pub fn reduce_scatter_block(
    sendbuf: Buffer,
    recvbuf: Buffer,
    count: i64,
    datatype: Handle,
    op: &Arc<Op>,
    comm: &Comm,
) -> Result<Arguments> {
    let all = count.checked_mul(i64::from(comm.inner().size())).ok_or_else(too_many)?;
    let taken = if sendbuf.is_in_place() { all } else { count };
    let operands = Operands::new((sendbuf, all), (recvbuf, taken), (datatype, op), (false, false))?;
    Ok(Arguments::ReduceScatter(operands, None))
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
    let operands = Operands::new((sendbuf, all), (recvbuf, taken), (datatype, op), (false, false))?;
    Ok(Arguments::ReduceScatter(operands, Some(ranges)))
}
