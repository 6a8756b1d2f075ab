//! Messages between two processes (MPI-5.0 chapter 3).

use std::ffi::c_int;

use longshore::{Communicator, Destination, Origin, Pointed, Sending};

use crate::communicator::promise::{Length, look_at_length, look_at_wildcards};
use crate::communicator::{Comm, envelope};
use crate::datatype::{Type, of_message};
use crate::edge::arg::{Buffer, Room};
use crate::edge::constants::PROC_NULL;
use crate::edge::fault::{Raiser, Result};
use crate::edge::handle::{Handle, find};
use crate::edge::status::Status;
use crate::request::copied::Copied;
use crate::request::{self, Operation};

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
    received((room, count, datatype), source, tag, comm)?.put(status.get(0));
    Ok(())
}

/// Receives a message, and looks at the promises of its communicator.
#[inline]
pub fn received(
    (room, count, datatype): (Destination<'_>, i64, &longshore::Type),
    source: c_int,
    tag: c_int,
    comm: &Comm,
) -> longshore::Result<Status> {
    look_at_wildcards(comm, source, tag);
    let received = envelope::received(Some(comm), &comm.inner().recv(room, source, tag)?);
    look_at_length(comm, count, datatype, &received);
    Ok(received)
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
    let (sent, place) = ((data, dest, sendtag), (room, recvcount, datatype));
    exchanged(sent, place, source, recvtag, comm)?.put(status.get(0));
    Ok(())
}

/// Sends one message and receives another, and looks at the promises of their communicator.
#[inline]
pub fn exchanged(
    sent: (Origin<'_>, c_int, c_int),
    (room, count, datatype): (Destination<'_>, i64, &longshore::Type),
    source: c_int,
    tag: c_int,
    comm: &Comm,
) -> longshore::Result<Status> {
    look_at_wildcards(comm, source, tag);
    let received = comm.inner().sendrecv(sent, (room, source, tag))?;
    let received = envelope::received(Some(comm), &received);
    look_at_length(comm, count, datatype, &received);
    Ok(received)
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
    let found = find::<Comm>(comm)?;
    match sending(found.inner(), buf, count, of_message(datatype, dest)?, (dest, tag))? {
        None => request::ended(),
        Some(sending) => request::made(Operation::Send(sending), Raiser::Comm(comm), Some(found)),
    }
}

/// Starts a send; `None` if it is complete at once.
pub fn sending(
    comm: &Communicator,
    buf: Buffer,
    count: i64,
    datatype: &longshore::Type,
    (dest, tag): (c_int, c_int),
) -> Result<Option<Sending<Pointed>>> {
    if comm.isend_at_once(buf.origin(count, datatype)?, dest, tag)? {
        return Ok(None);
    }
    Ok(Some(comm.isend(buf.given(count, datatype)?, dest, tag)?))
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
        let (sent, datatype) = (of_message(sendtype, dest)?, of_message(recvtype, source)?);
        let room = recvbuf.given(recvcount, datatype)?;
        look_at_wildcards(own, source, recvtag);
        let length = Length::promised(own, recvcount, datatype);
        // An error of the send drops the receive, which then gets no message.
        let receiving = comm.irecv(room, source, recvtag)?;
        Ok(match sending(comm, sendbuf, sendcount, sent, (dest, sendtag))? {
            None => Operation::Receive(receiving, length),
            Some(sending) => {
                let both = Box::new((sending, receiving));
                Operation::Exchange { both, length, _copy: None }
            }
        })
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
        && crate::edge::constants::ANY_SOURCE == longshore::ANY_SOURCE
        && crate::edge::constants::ANY_TAG == longshore::ANY_TAG
);
