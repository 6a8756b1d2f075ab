//! Communicators that are made or freed with requests and buffers (MPI-5.0 section 7.4).

use longshore::{Class, Communicator};

use crate::communicator::duplication::Duplication;
use crate::communicator::{self, Comm, Own};
use crate::datatype::described;
use crate::edge::fault::{Fault, Raiser, Result};
use crate::edge::handle::{Handle, find, remove};
use crate::message::buffered;
use crate::objects::info::Info;
use crate::objects::keyval;
use crate::request::arguments::Started;
use crate::request::{self, Operation};

/// The handle of a duplicate, and the request that is complete when the duplicate is there.
pub fn comm_idup(handle: Handle) -> Result<(Handle, Handle)> {
    comm_idup_with_info(handle, None)
}

pub fn comm_idup_with_info(handle: Handle, info: Option<&Info>) -> Result<(Handle, Handle)> {
    let comm = find::<Comm>(handle)?;
    let own = Own::copy(&comm, handle, info)?;
    let duplication = Duplication::new(comm.inner().idup()?, own)?;
    let made = duplication.handle();
    let operation = Operation::Collective(Started::Duplicate(Box::new(duplication)));
    Ok((made, request::made(operation, Raiser::Comm(handle), Some(comm))?))
}

/// Attributes are deleted first. A delete function that fails leaves the communicator as it is.
pub fn comm_free(handle: &mut Handle) -> Result<()> {
    if described::freed(handle) {
        return Ok(());
    }
    Ok(let_go(handle)?.free()?)
}

/// Frees a handle. Returns its communicator, whose free is still to come.
fn let_go(handle: &mut Handle) -> Result<Communicator> {
    let comm = find::<Comm>(*handle)?;
    if handle.is_predefined() {
        let what = format!("{} exists as long as the job: it can't be freed", comm.card().name());
        return Err(Fault::new(Class::Comm, what));
    }
    keyval::clear(&*comm, *handle)?;
    buffered::end(&comm)?;
    communicator::forget_parent(*handle);
    remove::<Comm>(handle)?;
    Ok(comm.inner().share())
}

pub fn comm_disconnect(handle: &mut Handle) -> Result<()> {
    Ok(let_go(handle)?.disconnect()?)
}
