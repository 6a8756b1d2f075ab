//! The quick ways of sends and receives that wait, and of sends that are complete at once.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};

use crate::call::quick::{coded, failed, lasting};
use crate::call::raise;
use crate::communicator::Comm;
use crate::edge::arg::{self, Buffer, Room};
use crate::edge::constants::REQUEST_NULL;
use crate::edge::fault::Raiser;
use crate::edge::handle::Handle;
use crate::edge::status::Status;
use crate::message::p2p;
use crate::request;

/// # Safety
/// The program's promises of MPI_Send.
pub unsafe fn send(
    data: *const c_void,
    count: i64,
    datatype: Handle,
    dest: c_int,
    tag: c_int,
    comm: Handle,
) -> Option<c_int> {
    let (own, datatype) = (Comm::borrow(comm)?, lasting(datatype)?);
    // SAFETY: the caller's promise.
    let data = unsafe { Buffer::new(data) }.origin(count, datatype).ok()?;
    coded("MPI_Send", Raiser::Comm(comm), own.inner().send(data, dest, tag))
}

/// # Safety
/// The program's promises of MPI_Isend.
#[allow(clippy::too_many_arguments)] // MPI's
pub unsafe fn isend(
    data: *const c_void,
    count: i64,
    datatype: Handle,
    dest: c_int,
    tag: c_int,
    comm: Handle,
    request: *mut Handle,
) -> Option<c_int> {
    if request.is_null() {
        return None;
    }
    let (own, datatype) = (Comm::borrow(comm)?, lasting(datatype)?);
    // SAFETY: the caller's promise.
    let data = unsafe { Buffer::new(data) }.origin(count, datatype).ok()?;
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
/// The program's promises of MPI_Recv.
#[allow(clippy::too_many_arguments)] // MPI's
pub unsafe fn recv(
    room: *mut c_void,
    count: i64,
    datatype: Handle,
    source: c_int,
    tag: c_int,
    comm: Handle,
    status: *mut Status,
) -> Option<c_int> {
    let (own, datatype) = (Comm::borrow(comm)?, lasting(datatype)?);
    // SAFETY: the caller's promise.
    let (room, status) = unsafe { (Buffer::new(room), Room::new(status)) };
    let room = room.destination(count, datatype).ok()?;
    let received = p2p::received((room, count, datatype), source, tag, own);
    let received = received.map(|received| received.put(status.get(0)));
    coded("MPI_Recv", Raiser::Comm(comm), received)
}

/// # Safety
/// The program's promises of MPI_Sendrecv.
#[allow(clippy::too_many_arguments)] // MPI's
pub unsafe fn sendrecv(
    data: *const c_void,
    count: i64,
    datatype: Handle,
    dest: c_int,
    tag: c_int,
    room: *mut c_void,
    room_count: i64,
    room_type: Handle,
    source: c_int,
    room_tag: c_int,
    comm: Handle,
    status: *mut Status,
) -> Option<c_int> {
    let (own, sent_type) = (Comm::borrow(comm)?, lasting(datatype)?);
    let taken_type = if room_type == datatype { sent_type } else { lasting(room_type)? };
    // SAFETY: the caller's promise.
    let (data, room, status) = unsafe { (Buffer::new(data), Buffer::new(room), Room::new(status)) };
    let data = data.origin(count, sent_type).ok()?;
    let room = room.destination(room_count, taken_type).ok()?;
    let (sent, place) = ((data, dest, tag), (room, room_count, taken_type));
    let received = p2p::exchanged(sent, place, source, room_tag, own);
    let received = received.map(|received| received.put(status.get(0)));
    coded("MPI_Sendrecv", Raiser::Comm(comm), received)
}
