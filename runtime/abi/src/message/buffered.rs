//! Buffered sends (MPI-5.0 section 3.6).
//!
//! A message is copied to memory of its own. The buffer that the program attaches bounds how many
//! bytes may be copied at a time, and nothing is written to it.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::Mutex;

use longshore::{Class, Communicator, Pointed, Sending, Waitable};

use crate::communicator::Comm;
use crate::datatype::{Type, of_message};
use crate::edge::arg::{Address, Buffer};
use crate::edge::constants::{BSEND_OVERHEAD, PROC_NULL};
use crate::edge::elements::Elements;
use crate::edge::fault::{Fault, Raiser, Result};
use crate::edge::handle::Handle;
use crate::edge::lock::lock;
use crate::request::copied::Copied;
use crate::request::{self, Operation};

/// MPI_BUFFER_AUTOMATIC: a buffer without bounds.
const AUTOMATIC: usize = 2;

/// The owner of an attached buffer: a communicator, by its address, a session, by its number, or
/// the process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    Process,
    Comm(usize),
    Session(u64),
}

impl Owner {
    fn of(comm: &Comm) -> Owner {
        Owner::Comm(ptr::from_ref(comm).addr())
    }
}

/// A buffer, and the messages that are in it.
struct Attached {
    address: Address,
    /// Its length as the program gave it.
    size: i64,
    messages: Vec<Message>,
}

/// A message on its way. It is dropped before its memory.
struct Message {
    sending: Sending<Pointed>,
    /// The bytes of the buffer that it takes.
    cost: i64,
    copy: Copied,
}

static ATTACHED: Mutex<BTreeMap<Owner, Attached>> = Mutex::new(BTreeMap::new());

/// What calls wait for until messages have been sent.
fn sends(messages: &[Message]) -> Vec<&dyn Waitable> {
    messages.iter().map(|message| &message.sending as &dyn Waitable).collect()
}

impl Attached {
    /// Whether its size means nothing: MPI_BUFFER_AUTOMATIC.
    fn is_automatic(&self) -> bool {
        self.address.number() == AUTOMATIC
    }

    /// Forgets the messages that have been sent.
    fn clean(&mut self) -> Result<()> {
        let sent = longshore::test_some(&sends(&self.messages))?;
        // The messages before an index that goes away keep theirs.
        sent.into_iter().rev().for_each(|index| drop(self.messages.remove(index)));
        Ok(())
    }

    /// Checks that there is room for a message of so many bytes.
    fn check(&self, cost: i64) -> Result<()> {
        let used: i64 = self.messages.iter().map(|message| message.cost).sum();
        if self.is_automatic() || cost <= self.size - used {
            return Ok(());
        }
        let what = format!(
            "a message takes {cost} bytes of the attached buffer, which has {} and of which {used} \
             are in use: attach a larger one",
            self.size
        );
        Err(Fault::new(Class::Buffer, what))
    }
}

/// Copies a message, and sends the copy.
pub fn bsend(data: Elements<Option<&Type>>, dest: c_int, tag: c_int, comm: &Comm) -> Result<()> {
    bsend_by(of_message(data, dest)?, (dest, tag), comm, comm.inner())
}

/// A buffered send by a reference to the communicator of its own.
pub fn bsend_by(
    data: Elements<&longshore::Type>,
    (dest, tag): (c_int, c_int),
    comm: &Comm,
    by: &Communicator,
) -> Result<()> {
    data.check()?;
    if dest == PROC_NULL {
        return Ok(());
    }
    let mut attached = lock(&ATTACHED);
    let owners = [Some(Owner::of(comm)), comm.session().map(Owner::Session)];
    let owner = owners.into_iter().flatten().find(|owner| attached.contains_key(owner));
    let Some(buffer) = attached.get_mut(&owner.unwrap_or(Owner::Process)) else {
        let what = "no buffer is attached: call MPI_Buffer_attach before a buffered send";
        return Err(Fault::new(Class::Buffer, what.to_owned()));
    };
    buffer.clean()?;
    let copy = Copied::of(data)?;
    let cost = copy.bytes() + i64::from(BSEND_OVERHEAD);
    buffer.check(cost)?;
    let sending = by.isend(copy.given(data.count, data.datatype), dest, tag)?;
    buffer.messages.push(Message { sending, cost, copy });
    Ok(())
}

/// The send is complete for the program as soon as the message is copied.
pub fn ibsend(
    data: Elements<Option<&Type>>,
    dest: c_int,
    tag: c_int,
    comm: &Comm,
) -> Result<Handle> {
    bsend(data, dest, tag, comm)?;
    request::ended()
}

pub fn attach(owner: Owner, buffer: Buffer, size: i64) -> Result<()> {
    let address = Address::new(buffer.address().cast());
    let attached = Attached { address, size, messages: Vec::new() };
    if size < 0 {
        return Err(Fault::new(Class::Buffer, format!("the size is {size}")));
    }
    if address.is_null() && size > 0 {
        let what = format!("the address of {size} bytes is null");
        return Err(Fault::new(Class::Buffer, what));
    }
    let mut all = lock(&ATTACHED);
    if all.contains_key(&owner) {
        let what = "a buffer is attached already: detach it first";
        return Err(Fault::new(Class::Buffer, what.to_owned()));
    }
    all.insert(owner, attached);
    Ok(())
}

/// A request that is complete when the messages that are in a buffer now have been sent.
pub fn flush_by_request(owner: Owner) -> Result<Handle> {
    let (sends, copies) =
        take(owner).into_iter().map(|message| (message.sending, message.copy)).unzip();
    request::made(Operation::Flush(sends, copies), Raiser::Own, None)
}

/// Waits for a buffer's messages, and returns its address and size. The address is null if there is
/// no buffer.
fn detach(owner: Owner) -> Result<(Address, i64)> {
    let Some(buffer) = lock(&ATTACHED).remove(&owner) else {
        return Ok((Address::new(ptr::null_mut()), 0));
    };
    drain(&buffer.messages)?;
    let size = if buffer.is_automatic() { 0 } else { buffer.size };
    Ok((buffer.address, size))
}

/// Detaches a buffer, and writes its address to `room`.
pub fn detach_to(room: Address, owner: Owner) -> Result<i64> {
    if room.is_null() {
        return Err(Fault::argument("buffer_addr is a null pointer"));
    }
    let (address, size) = detach(owner)?;
    room.room::<*mut c_void>().set(0, address.pointer());
    Ok(size)
}

/// Waits until messages have been sent.
fn drain(messages: &[Message]) -> Result<()> {
    Ok(longshore::wait_all(&sends(messages))?)
}

/// The messages that are in a buffer now. Calls wait for them out of the lock, since other threads
/// may have to send what the messages wait for.
fn take(owner: Owner) -> Vec<Message> {
    let mut attached = lock(&ATTACHED);
    attached.get_mut(&owner).map_or_else(Vec::new, |buffer| std::mem::take(&mut buffer.messages))
}

pub fn flush(owner: Owner) -> Result<()> {
    drain(&take(owner))
}

pub fn buffer_attach(buffer: Buffer, size: i64) -> Result<()> {
    attach(Owner::Process, buffer, size)
}

pub fn buffer_detach(room: Address) -> Result<i64> {
    detach_to(room, Owner::Process)
}

pub fn buffer_flush() -> Result<()> {
    flush(Owner::Process)
}

pub fn buffer_iflush() -> Result<Handle> {
    flush_by_request(Owner::Process)
}

pub fn comm_iflush_buffer(comm: &Comm) -> Result<Handle> {
    flush_by_request(Owner::of(comm))
}

pub fn comm_attach_buffer(comm: &Comm, buffer: Buffer, size: i64) -> Result<()> {
    attach(Owner::of(comm), buffer, size)
}

pub fn comm_detach_buffer(comm: &Comm, room: Address) -> Result<i64> {
    detach_to(room, Owner::of(comm))
}

pub fn comm_flush_buffer(comm: &Comm) -> Result<()> {
    flush(Owner::of(comm))
}

/// Detaches the buffer of a session that ends.
pub fn end_session(number: u64) -> Result<()> {
    detach(Owner::Session(number)).map(drop)
}

/// Detaches the buffer of a communicator that is freed.
pub fn end(comm: &Comm) -> Result<()> {
    detach(Owner::of(comm)).map(drop)
}

/// Detaches all buffers, since the process leaves the job.
pub fn finish() -> Result<()> {
    let owners: Vec<Owner> = lock(&ATTACHED).keys().copied().collect();
    owners.into_iter().try_for_each(|owner| detach(owner).map(drop))
}
