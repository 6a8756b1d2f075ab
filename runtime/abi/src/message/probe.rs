//! Probes, and the messages that matched probes take (MPI-5.0 section 3.8).

use std::ffi::c_int;
use std::sync::{Arc, Mutex};

use longshore::{Class, Envelope, Matched};

use crate::communicator::promise::{Length, look_at_length, look_at_wildcards};
use crate::communicator::{Comm, envelope};
use crate::datatype::{Type, of_message};
use crate::edge::arg::Room;
use crate::edge::constants::{MESSAGE_NO_PROC, MESSAGE_NULL, PROC_NULL};
use crate::edge::elements::Elements;
use crate::edge::fault::{Fault, Raiser, Result};
use crate::edge::handle::{Handle, Kind, Object, find, insert, remove};
use crate::edge::lock::lock;
use crate::edge::status::Status;
use crate::request::{self, Operation};

/// A message that a matched probe has taken, until it is received.
pub struct Message {
    matched: Mutex<Option<Matched>>,
    comm: Arc<Comm>,
    /// The handle of the communicator.
    handle: Handle,
}

impl Object for Message {
    const KIND: Kind = Kind::Message;
    const CLASS: Class = Class::Request;
    const NULL: Handle = MESSAGE_NULL;

    fn predefined(_: Handle) -> Option<Arc<Message>> {
        None
    }
}

/// The status of a message that is there.
fn status_of(comm: &Comm, envelope: &Envelope) -> Status {
    envelope::found(Some(comm), envelope.source(), envelope.tag(), envelope.bytes())
}

pub fn probe(source: c_int, tag: c_int, comm: &Comm, status: Room<Status>) -> Result<()> {
    look_at_wildcards(comm, source, tag);
    let envelope = comm.inner().probe(source, tag)?;
    status_of(comm, &envelope).put(status.get(0));
    Ok(())
}

pub fn iprobe(source: c_int, tag: c_int, comm: &Comm, status: Room<Status>) -> Result<bool> {
    look_at_wildcards(comm, source, tag);
    let Some(envelope) = comm.inner().iprobe(source, tag)? else { return Ok(false) };
    status_of(comm, &envelope).put(status.get(0));
    Ok(true)
}

/// A handle of a message that a probe has taken.
fn taken(handle: Handle, comm: Arc<Comm>, matched: Matched) -> Result<(Handle, Status)> {
    let status = status_of(&comm, matched.envelope());
    if status.source == PROC_NULL {
        return Ok((MESSAGE_NO_PROC, status));
    }
    let matched = Mutex::new(Some(matched));
    Ok((insert(Arc::new(Message { matched, comm, handle }))?, status))
}

pub fn mprobe(source: c_int, tag: c_int, handle: Handle, status: Room<Status>) -> Result<Handle> {
    let comm = find::<Comm>(handle)?;
    look_at_wildcards(&comm, source, tag);
    let matched = comm.inner().mprobe(source, tag)?;
    let (message, found) = taken(handle, comm, matched)?;
    found.put(status.get(0));
    Ok(message)
}

pub fn improbe(
    source: c_int,
    tag: c_int,
    handle: Handle,
    status: Room<Status>,
) -> Result<(bool, Handle)> {
    let comm = find::<Comm>(handle)?;
    look_at_wildcards(&comm, source, tag);
    let Some(matched) = comm.inner().improbe(source, tag)? else {
        return Ok((false, MESSAGE_NULL));
    };
    let (message, found) = taken(handle, comm, matched)?;
    found.put(status.get(0));
    Ok((true, message))
}

/// Takes a message to be received: its handle becomes null. `None` for MPI_MESSAGE_NO_PROC.
fn take(message: &mut Handle) -> Result<Option<(Matched, Arc<Message>)>> {
    if *message == MESSAGE_NO_PROC {
        *message = MESSAGE_NULL;
        return Ok(None);
    }
    let message = remove::<Message>(message)?;
    let matched = lock(&message.matched).take();
    Ok(matched.map(|matched| (matched, message)))
}

/// The null process for a message of it, and any other for other messages.
fn peer_of(message: Handle) -> c_int {
    if message == MESSAGE_NO_PROC { PROC_NULL } else { 0 }
}

pub fn mrecv(
    room: Elements<Option<&Type>>,
    message: &mut Handle,
    status: Room<Status>,
) -> Result<()> {
    let room = of_message(room, peer_of(*message))?;
    let place = room.destination()?;
    let received = match take(message)? {
        None => Status::PROC_NULL,
        Some((matched, message)) => {
            let raised = |error| Fault::from(error).on(Raiser::Comm(message.handle));
            let received = matched.recv(place).map_err(raised)?;
            let received = envelope::received(Some(&message.comm), &received);
            look_at_length(&message.comm, room.count, room.datatype, &received);
            received
        }
    };
    received.put(status.get(0));
    Ok(())
}

pub fn imrecv(room: Elements<Option<&Type>>, message: &mut Handle) -> Result<Handle> {
    let room = of_message(room, peer_of(*message))?;
    let place = room.given()?;
    let Some((matched, message)) = take(message)? else {
        return request::complete(Status::PROC_NULL);
    };
    let raiser = Raiser::Comm(message.handle);
    let receiving = matched.irecv(place).map_err(|error| Fault::from(error).on(raiser))?;
    let length = Length::promised(&message.comm, room.count, room.datatype);
    request::made(Operation::Receive(receiving, length), raiser, Some(message.comm.clone()))
}
