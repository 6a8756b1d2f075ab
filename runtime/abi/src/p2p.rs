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
use crate::promise::{Length, look_at_length, look_at_wildcards};
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
    let datatype = of_message(datatype, source)?;
    let room = buf.destination(count, datatype)?;
    look_at_wildcards(comm, source, tag);
    let received = envelope::received(Some(comm), &comm.inner().recv(room, source, tag)?);
    look_at_length(comm, count, datatype, &received);
    received.put(status.get(0));
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
    let datatype = of_message(recvtype, source)?;
    let room = recvbuf.destination(recvcount, datatype)?;
    look_at_wildcards(comm, source, recvtag);
    let received = comm.inner().sendrecv((data, dest, sendtag), (room, source, recvtag))?;
    let received = envelope::received(Some(comm), &received);
    look_at_length(comm, recvcount, datatype, &received);
    received.put(status.get(0));
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
    let datatype = of_both(datatype, dest, source)?;
    let data = buf.destination(count, datatype)?;
    look_at_wildcards(comm, source, recvtag);
    let received = comm.inner().sendrecv_replace(data, (dest, sendtag), (source, recvtag))?;
    let received = envelope::received(Some(comm), &received);
    look_at_length(comm, count, datatype, &received);
    received.put(status.get(0));
    Ok(())
}

/// The type of a message to one rank and of one from another, either of which may be MPI_PROC_NULL.
fn of_both(datatype: Option<&Type>, dest: c_int, source: c_int) -> Result<&longshore::Type> {
    of_message(datatype, if dest == PROC_NULL { source } else { dest })
}

/// Starts an operation on a communicator, and gives it a request.
fn start(
    comm: Handle,
    operation: impl FnOnce(&Communicator, &Comm) -> Result<Operation>,
) -> Result<Handle> {
    let found = find::<Comm>(comm)?;
    let operation = operation(found.inner(), &found)?;
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
    start(comm, |comm, _| {
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
    start(comm, |comm, _| {
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
    start(comm, |comm, own| {
        let datatype = of_message(datatype, source)?;
        let room = buf.given(count, datatype)?;
        look_at_wildcards(own, source, tag);
        let length = Length::promised(own, count, datatype);
        Ok(Operation::Receive(comm.irecv(room, source, tag)?, length))
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
    start(comm, |comm, own| {
        let data = sendbuf.given(sendcount, of_message(sendtype, dest)?)?;
        let datatype = of_message(recvtype, source)?;
        let room = recvbuf.given(recvcount, datatype)?;
        look_at_wildcards(own, source, recvtag);
        let length = Length::promised(own, recvcount, datatype);
        // An error of the send drops the receive, which then gets no message.
        let receiving = comm.irecv(room, source, recvtag)?;
        let sending = comm.isend(data, dest, sendtag)?;
        Ok(Operation::Exchange { both: Box::new((sending, receiving)), length, _copy: None })
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
    start(comm, |comm, own| {
        let datatype = of_both(datatype, dest, source)?;
        look_at_wildcards(own, source, recvtag);
        let length = Length::promised(own, count, datatype);
        // The received message may come before the other is sent.
        let copy = Copied::of(buf, count, datatype)?;
        let receiving = comm.irecv(buf.given(count, datatype)?, source, recvtag)?;
        let sending = comm.isend(copy.given(count, datatype), dest, sendtag)?;
        Ok(Operation::Exchange { both: Box::new((sending, receiving)), length, _copy: Some(copy) })
    })
}

/// Constants that mean the same to the runtime, so that no call converts them.
const _: () = assert!(
    PROC_NULL == longshore::PROC_NULL
        && crate::constants::ANY_SOURCE == longshore::ANY_SOURCE
        && crate::constants::ANY_TAG == longshore::ANY_TAG
);
