//! Statuses of messages: whose they are, and in which representation their length is.

use std::ffi::c_int;

use longshore::Architecture;

use crate::communicator::Comm;
use crate::edge::fault::Result;
use crate::edge::state;
use crate::edge::status::Status;

/// The status of a message of `bytes` bytes of rank `source` of a communicator.
pub fn found(comm: Option<&Comm>, source: c_int, tag: c_int, bytes: u64) -> Status {
    let processes = comm.map_or(&[][..], |comm| {
        let inner = comm.inner();
        inner.remote_group().unwrap_or(inner.group()).processes()
    });
    let process = usize::try_from(source).ok().and_then(|source| processes.get(source));
    Status::new(source, tag, bytes as i64, process.copied())
}

/// The status of a receive on a communicator.
pub fn received(comm: Option<&Comm>, status: &longshore::Status) -> Status {
    found(comm, status.source, status.tag, status.bytes)
}

/// The representation in which the bytes of a status are counted.
pub fn representation(status: &Status) -> Result<Architecture> {
    let state = state::state()?;
    match status.process() {
        None => Ok(*state.rank().architecture()),
        Some(process) => Ok(state.rank().representation_of(process as u32)?),
    }
}
