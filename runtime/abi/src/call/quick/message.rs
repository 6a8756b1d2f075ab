//! The quick ways of sends and receives that wait, of sends that are complete at once, and of
//! receives with requests.
#![allow(unsafe_code)]

use std::ffi::c_int;

use crate::call::quick::{coded, failed, lasting};
use crate::call::raise;
use crate::communicator::Comm;
use crate::datatype::compiled;
use crate::edge::arg::{self, Room};
use crate::edge::constants::REQUEST_NULL;
use crate::edge::elements::Elements;
use crate::edge::fault::Raiser;
use crate::edge::handle::{Handle, find};
use crate::edge::status::Status;
use crate::message::p2p;
use crate::request;

#[inline(always)]
pub fn send(data: Elements, dest: c_int, tag: c_int, comm: Handle) -> Option<c_int> {
    let own = Comm::borrow(comm)?;
    let data = lasting(data)?.origin().ok()?;
    coded("MPI_Send", Raiser::Comm(comm), own.inner().send(data, dest, tag))
}

/// # Safety
/// The program's promises of MPI_Isend.
#[inline(always)]
pub unsafe fn isend(
    data: Elements,
    dest: c_int,
    tag: c_int,
    comm: Handle,
    request: *mut Handle,
) -> Option<c_int> {
    if request.is_null() {
        return None;
    }
    let own = Comm::borrow(comm)?;
    let data = lasting(data)?.origin().ok()?;
    let (made, code) = match own.inner().isend_at_once(data, dest, tag) {
        // It isn't complete at once, and hasn't begun.
        Ok(false) => return None,
        Ok(true) => match request::ended() {
            Ok(ended) => (ended, 0),
            Err(fault) => (REQUEST_NULL, raise("MPI_Isend", Raiser::Comm(comm), &fault)),
        },
        Err(error) => (REQUEST_NULL, failed("MPI_Isend", Raiser::Comm(comm), error)),
    };
    // SAFETY: the caller's promise, of a place that isn't null.
    unsafe { arg::put(request, made) };
    Some(code)
}

/// # Safety
/// The program's promises of MPI_Irecv.
#[inline(always)]
pub unsafe fn irecv(
    room: Elements,
    source: c_int,
    tag: c_int,
    comm: Handle,
    request: *mut Handle,
) -> Option<c_int> {
    if request.is_null() {
        return None;
    }
    let (own, room) = (Comm::borrow(comm)?, room.of(compiled(room.datatype)?));
    let operation = p2p::receiving(own.inner(), own, room, (source, tag));
    let made = operation.and_then(|operation| {
        request::made(operation, Raiser::Comm(comm), Some(find::<Comm>(comm)?))
    });
    let (made, code) = match made {
        Ok(made) => (made, 0),
        Err(fault) => (REQUEST_NULL, raise("MPI_Irecv", Raiser::Comm(comm), &fault)),
    };
    // SAFETY: the caller's promise, of a place that isn't null.
    unsafe { arg::put(request, made) };
    Some(code)
}

/// # Safety
/// The program's promises of MPI_Recv.
#[inline(always)]
pub unsafe fn recv(
    room: Elements,
    source: c_int,
    tag: c_int,
    comm: Handle,
    status: *mut Status,
) -> Option<c_int> {
    let (own, room) = (Comm::borrow(comm)?, lasting(room)?);
    // SAFETY: the caller's promise.
    let status = unsafe { Room::new(status) };
    let received = p2p::received(room.destination().ok()?, room, (source, tag), own);
    let received = received.map(|received| received.put(status.get(0)));
    coded("MPI_Recv", Raiser::Comm(comm), received)
}

/// # Safety
/// The program's promises of MPI_Sendrecv.
#[allow(clippy::too_many_arguments)] // MPI's
pub unsafe fn sendrecv(
    data: Elements,
    dest: c_int,
    tag: c_int,
    room: Elements,
    source: c_int,
    room_tag: c_int,
    comm: Handle,
    status: *mut Status,
) -> Option<c_int> {
    let (own, sent) = (Comm::borrow(comm)?, lasting(data)?);
    let room = match room.datatype == data.datatype {
        true => room.of(sent.datatype),
        false => lasting(room)?,
    };
    // SAFETY: the caller's promise.
    let status = unsafe { Room::new(status) };
    let (sent, place) = (sent.origin().ok()?, room.destination().ok()?);
    let (sent, place) = ((sent, dest, tag), (place, source, room_tag));
    let received = p2p::exchanged(sent, place, room, own);
    let received = received.map(|received| received.put(status.get(0)));
    coded("MPI_Sendrecv", Raiser::Comm(comm), received)
}
