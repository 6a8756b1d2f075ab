//! Messages between two processes (MPI-5.0 chapter 3).

use std::ffi::c_int;

use longshore::{Communicator, Destination, Origin, Pointed, Sending};

use crate::communicator::promise::{Length, look_at_length, look_at_wildcards};
use crate::communicator::{Comm, envelope};
use crate::datatype::{Type, of_message};
use crate::edge::arg::Room;
use crate::edge::constants::PROC_NULL;
use crate::edge::elements::Elements;
use crate::edge::fault::{Raiser, Result};
use crate::edge::handle::{Handle, find};
use crate::edge::status::Status;
use crate::request::copied::Copied;
use crate::request::{self, Operation};

pub fn send(data: Elements<Option<&Type>>, dest: c_int, tag: c_int, comm: &Comm) -> Result<()> {
    Ok(comm.inner().send(of_message(data, dest)?.origin()?, dest, tag)?)
}

/// A receive that is there may be the reason for a program's ready send, and is no condition here.
pub fn rsend(data: Elements<Option<&Type>>, dest: c_int, tag: c_int, comm: &Comm) -> Result<()> {
    send(data, dest, tag, comm)
}

pub fn ssend(data: Elements<Option<&Type>>, dest: c_int, tag: c_int, comm: &Comm) -> Result<()> {
    Ok(comm.inner().ssend(of_message(data, dest)?.origin()?, dest, tag)?)
}

pub fn recv(
    room: Elements<Option<&Type>>,
    source: c_int,
    tag: c_int,
    comm: &Comm,
    status: Room<Status>,
) -> Result<()> {
    let room = of_message(room, source)?;
    received(room.destination()?, room, (source, tag), comm)?.put(status.get(0));
    Ok(())
}

/// Receives a message to `place`, which is that of `room`, and looks at the promises of its
/// communicator.
#[inline]
pub fn received(
    place: Destination<'_>,
    room: Elements<&longshore::Type>,
    (source, tag): (c_int, c_int),
    comm: &Comm,
) -> longshore::Result<Status> {
    look_at_wildcards(comm, source, tag);
    let received = envelope::received(Some(comm), &comm.inner().recv(place, source, tag)?);
    look_at_length(comm, room.count, room.datatype, &received);
    Ok(received)
}

#[allow(clippy::too_many_arguments)] // MPI's
pub fn sendrecv(
    data: Elements<Option<&Type>>,
    dest: c_int,
    sendtag: c_int,
    room: Elements<Option<&Type>>,
    source: c_int,
    recvtag: c_int,
    comm: &Comm,
    status: Room<Status>,
) -> Result<()> {
    let (data, room) = (of_message(data, dest)?, of_message(room, source)?);
    let (sent, place) = (data.origin()?, room.destination()?);
    let (sent, place) = ((sent, dest, sendtag), (place, source, recvtag));
    exchanged(sent, place, room, comm)?.put(status.get(0));
    Ok(())
}

/// Sends one message and receives another to `place`, which is that of `room`, and looks at the
/// promises of their communicator.
#[inline]
pub fn exchanged(
    sent: (Origin<'_>, c_int, c_int),
    place: (Destination<'_>, c_int, c_int),
    room: Elements<&longshore::Type>,
    comm: &Comm,
) -> longshore::Result<Status> {
    look_at_wildcards(comm, place.1, place.2);
    let received = comm.inner().sendrecv(sent, place)?;
    let received = envelope::received(Some(comm), &received);
    look_at_length(comm, room.count, room.datatype, &received);
    Ok(received)
}

pub fn sendrecv_replace(
    data: Elements<Option<&Type>>,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    comm: &Comm,
    status: Room<Status>,
) -> Result<()> {
    let data = of_both(data, dest, source)?;
    let place = data.destination()?;
    look_at_wildcards(comm, source, recvtag);
    let received = comm.inner().sendrecv_replace(place, (dest, sendtag), (source, recvtag))?;
    let received = envelope::received(Some(comm), &received);
    look_at_length(comm, data.count, data.datatype, &received);
    received.put(status.get(0));
    Ok(())
}

/// The elements of a message to one rank and of one from another, either of which may be
/// MPI_PROC_NULL.
fn of_both(
    data: Elements<Option<&Type>>,
    dest: c_int,
    source: c_int,
) -> Result<Elements<&longshore::Type>> {
    of_message(data, if dest == PROC_NULL { source } else { dest })
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
    data: Elements<Option<&Type>>,
    dest: c_int,
    tag: c_int,
    comm: Handle,
) -> Result<Handle> {
    let found = find::<Comm>(comm)?;
    match sending(found.inner(), of_message(data, dest)?, (dest, tag))? {
        None => request::ended(),
        Some(sending) => request::made(Operation::Send(sending), Raiser::Comm(comm), Some(found)),
    }
}

/// Starts a send; `None` if it is complete at once.
pub fn sending(
    comm: &Communicator,
    data: Elements<&longshore::Type>,
    (dest, tag): (c_int, c_int),
) -> Result<Option<Sending<Pointed>>> {
    if comm.isend_at_once(data.origin()?, dest, tag)? {
        return Ok(None);
    }
    Ok(Some(comm.isend(data.given()?, dest, tag)?))
}

pub fn issend(
    data: Elements<Option<&Type>>,
    dest: c_int,
    tag: c_int,
    comm: Handle,
) -> Result<Handle> {
    start(comm, |comm, _| {
        let data = of_message(data, dest)?.given()?;
        Ok(Operation::Send(comm.issend(data, dest, tag)?))
    })
}

pub fn irsend(
    data: Elements<Option<&Type>>,
    dest: c_int,
    tag: c_int,
    comm: Handle,
) -> Result<Handle> {
    isend(data, dest, tag, comm)
}

pub fn irecv(
    room: Elements<Option<&Type>>,
    source: c_int,
    tag: c_int,
    comm: Handle,
) -> Result<Handle> {
    start(comm, |comm, own| receiving(comm, own, of_message(room, source)?, (source, tag)))
}

/// Starts a receive.
#[inline(always)] // It has two callers, one of which is the quick way.
pub fn receiving(
    comm: &Communicator,
    own: &Comm,
    room: Elements<&longshore::Type>,
    (source, tag): (c_int, c_int),
) -> Result<Operation> {
    let place = room.promised()?;
    look_at_wildcards(own, source, tag);
    let length = Length::promised(own, room.count, room.datatype);
    Ok(Operation::Receive(comm.irecv_promised(place, source, tag)?, length))
}

pub fn isendrecv(
    data: Elements<Option<&Type>>,
    dest: c_int,
    sendtag: c_int,
    room: Elements<Option<&Type>>,
    source: c_int,
    recvtag: c_int,
    comm: Handle,
) -> Result<Handle> {
    start(comm, |comm, own| {
        let (data, room) = (of_message(data, dest)?, of_message(room, source)?);
        let place = room.promised()?;
        look_at_wildcards(own, source, recvtag);
        let length = Length::promised(own, room.count, room.datatype);
        // An error of the send drops the receive, which then gets no message.
        let receiving = comm.irecv_promised(place, source, recvtag)?;
        Ok(match sending(comm, data, (dest, sendtag))? {
            None => Operation::Receive(receiving, length),
            Some(sending) => {
                let both = Box::new((sending, receiving));
                Operation::Exchange { both, length, _copy: None }
            }
        })
    })
}

pub fn isendrecv_replace(
    data: Elements<Option<&Type>>,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    comm: Handle,
) -> Result<Handle> {
    start(comm, |comm, own| {
        let data = of_both(data, dest, source)?;
        look_at_wildcards(own, source, recvtag);
        let length = Length::promised(own, data.count, data.datatype);
        // The received message may come before the other is sent.
        let copy = Copied::of(data)?;
        let receiving = comm.irecv_promised(data.promised()?, source, recvtag)?;
        let sending = comm.isend(copy.given(data.count, data.datatype), dest, sendtag)?;
        Ok(Operation::Exchange { both: Box::new((sending, receiving)), length, _copy: Some(copy) })
    })
}

/// Constants that mean the same to the runtime, so that no call converts them.
const _: () = assert!(
    PROC_NULL == longshore::PROC_NULL
        && crate::edge::constants::ANY_SOURCE == longshore::ANY_SOURCE
        && crate::edge::constants::ANY_TAG == longshore::ANY_TAG
);
