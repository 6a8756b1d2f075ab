//! Messages between two processes (MPI-5.0 chapter 3).

use std::ffi::c_int;

use longshore::Communicator;

use crate::arg::{Buffer, Room};
use crate::communicator::Comm;
use crate::constants::PROC_NULL;
use crate::copied::Copied;
use crate::datatype::{Type, of_message};
use crate::envelope;
use crate::fault::Raiser;
use crate::fault::Result;
use crate::handle::{Handle, find};
use crate::request::{self, Operation};
use crate::status::Status;

pub fn send(
    buf: Buffer,
    count: i64,
    datatype: Option<&Type>,
    dest: c_int,
    tag: c_int,
    comm: &Comm,
) -> Result<()> {
    Ok(comm.inner().send(buf.origin(count, of_message(datatype, dest)?)?, dest, tag)?)
}

/// A receive that is there may be the reason for a program's ready send, and is no condition here.
pub fn rsend(
    buf: Buffer,
    count: i64,
    datatype: Option<&Type>,
    dest: c_int,
    tag: c_int,
    comm: &Comm,
) -> Result<()> {
    send(buf, count, datatype, dest, tag, comm)
}

pub fn ssend(
    buf: Buffer,
    count: i64,
    datatype: Option<&Type>,
    dest: c_int,
    tag: c_int,
    comm: &Comm,
) -> Result<()> {
    Ok(comm.inner().ssend(buf.origin(count, of_message(datatype, dest)?)?, dest, tag)?)
}

pub fn recv(
    buf: Buffer,
    count: i64,
    datatype: Option<&Type>,
    source: c_int,
    tag: c_int,
    comm: &Comm,
    status: Room<Status>,
) -> Result<()> {
    let room = buf.destination(count, of_message(datatype, source)?)?;
    let received = comm.inner().recv(room, source, tag)?;
    envelope::received(Some(comm), &received).put(status.get(0));
    Ok(())
}

#[allow(clippy::too_many_arguments)] // MPI's
pub fn sendrecv(
    sendbuf: Buffer,
    sendcount: i64,
    sendtype: Option<&Type>,
    dest: c_int,
    sendtag: c_int,
    recvbuf: Buffer,
    recvcount: i64,
    recvtype: Option<&Type>,
    source: c_int,
    recvtag: c_int,
    comm: &Comm,
    status: Room<Status>,
) -> Result<()> {
    let data = sendbuf.origin(sendcount, of_message(sendtype, dest)?)?;
    let room = recvbuf.destination(recvcount, of_message(recvtype, source)?)?;
    let received = comm.inner().sendrecv((data, dest, sendtag), (room, source, recvtag))?;
    envelope::received(Some(comm), &received).put(status.get(0));
    Ok(())
}

#[allow(clippy::too_many_arguments)] // MPI's
pub fn sendrecv_replace(
    buf: Buffer,
    count: i64,
    datatype: Option<&Type>,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    comm: &Comm,
    status: Room<Status>,
) -> Result<()> {
    let data = buf.destination(count, of_both(datatype, dest, source)?)?;
    let received = comm.inner().sendrecv_replace(data, (dest, sendtag), (source, recvtag))?;
    envelope::received(Some(comm), &received).put(status.get(0));
    Ok(())
}

/// The type of a message to one rank and of one from another, either of which may be MPI_PROC_NULL.
fn of_both(datatype: Option<&Type>, dest: c_int, source: c_int) -> Result<&longshore::Type> {
    of_message(datatype, if dest == PROC_NULL { source } else { dest })
}

/// Starts an operation on a communicator, and gives it a request.
fn start(
    comm: Handle,
    operation: impl FnOnce(&Communicator) -> Result<Operation>,
) -> Result<Handle> {
    let found = find::<Comm>(comm)?;
    let operation = operation(found.inner())?;
    request::made(operation, Raiser::Comm(comm), Some(found))
}

pub fn isend(
    buf: Buffer,
    count: i64,
    datatype: Option<&Type>,
    dest: c_int,
    tag: c_int,
    comm: Handle,
) -> Result<Handle> {
    start(comm, |comm| {
        let data = buf.given(count, of_message(datatype, dest)?)?;
        Ok(Operation::Send(comm.isend(data, dest, tag)?))
    })
}

pub fn issend(
    buf: Buffer,
    count: i64,
    datatype: Option<&Type>,
    dest: c_int,
    tag: c_int,
    comm: Handle,
) -> Result<Handle> {
    start(comm, |comm| {
        let data = buf.given(count, of_message(datatype, dest)?)?;
        Ok(Operation::Send(comm.issend(data, dest, tag)?))
    })
}

pub fn irsend(
    buf: Buffer,
    count: i64,
    datatype: Option<&Type>,
    dest: c_int,
    tag: c_int,
    comm: Handle,
) -> Result<Handle> {
    isend(buf, count, datatype, dest, tag, comm)
}

pub fn irecv(
    buf: Buffer,
    count: i64,
    datatype: Option<&Type>,
    source: c_int,
    tag: c_int,
    comm: Handle,
) -> Result<Handle> {
    start(comm, |comm| {
        let room = buf.given(count, of_message(datatype, source)?)?;
        Ok(Operation::Receive(comm.irecv(room, source, tag)?))
    })
}

#[allow(clippy::too_many_arguments)] // MPI's
pub fn isendrecv(
    sendbuf: Buffer,
    sendcount: i64,
    sendtype: Option<&Type>,
    dest: c_int,
    sendtag: c_int,
    recvbuf: Buffer,
    recvcount: i64,
    recvtype: Option<&Type>,
    source: c_int,
    recvtag: c_int,
    comm: Handle,
) -> Result<Handle> {
    start(comm, |comm| {
        let data = sendbuf.given(sendcount, of_message(sendtype, dest)?)?;
        let room = recvbuf.given(recvcount, of_message(recvtype, source)?)?;
        // An error of the send drops the receive, which then gets no message.
        let receiving = comm.irecv(room, source, recvtag)?;
        let sending = comm.isend(data, dest, sendtag)?;
        Ok(Operation::Exchange { both: Box::new((sending, receiving)), _copy: None })
    })
}

#[allow(clippy::too_many_arguments)] // MPI's
pub fn isendrecv_replace(
    buf: Buffer,
    count: i64,
    datatype: Option<&Type>,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    comm: Handle,
) -> Result<Handle> {
    start(comm, |comm| {
        let datatype = of_both(datatype, dest, source)?;
        // The received message may come before the other is sent.
        let copy = Copied::of(buf, count, datatype)?;
        let receiving = comm.irecv(buf.given(count, datatype)?, source, recvtag)?;
        let sending = comm.isend(copy.given(count, datatype), dest, sendtag)?;
        Ok(Operation::Exchange { both: Box::new((sending, receiving)), _copy: Some(copy) })
    })
}

/// Constants that mean the same to the runtime, so that no call converts them.
const _: () = assert!(
    PROC_NULL == longshore::PROC_NULL
        && crate::constants::ANY_SOURCE == longshore::ANY_SOURCE
        && crate::constants::ANY_TAG == longshore::ANY_TAG
);
