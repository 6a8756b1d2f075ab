//! Communicators after failures, as the MPI Forum's proposal of fault tolerance has them: which
//! members have failed, revocation, agreement, and the communicator of the survivors.

use std::ffi::c_int;

use crate::communicator::duplication::Duplication;
use crate::communicator::group::made as group_made;
use crate::communicator::{Comm, Own, made};
use crate::datatype::Type;
use crate::edge::arg::Room;
use crate::edge::constants::INT;
use crate::edge::fault::{Raiser, Result};
use crate::edge::handle::{Handle, find};
use crate::objects::object::Card;
use crate::request::arguments::Started;
use crate::request::{self, Operation};

pub fn comm_revoke(comm: &Comm) -> Result<()> {
    Ok(comm.inner().revoke()?)
}

pub fn comm_is_revoked(comm: &Comm) -> Result<bool> {
    Ok(comm.inner().is_revoked()?)
}

pub fn comm_get_failed(comm: &Comm) -> Result<Handle> {
    group_made(comm.inner().get_failed()?, comm.session())
}

pub fn comm_ack_failed(comm: &Comm, count: c_int) -> Result<c_int> {
    Ok(comm.inner().ack_failed(count)?)
}

pub fn comm_failure_ack(comm: &Comm) -> Result<()> {
    Ok(comm.inner().failure_ack()?)
}

pub fn comm_failure_get_acked(comm: &Comm) -> Result<Handle> {
    group_made(comm.inner().failure_get_acked()?, comm.session())
}

/// The flag is agreed on even if the call returns MPIX_ERR_PROC_FAILED.
pub fn comm_agree(comm: &Comm, flag: &mut c_int) -> Result<()> {
    Ok(comm.inner().agree(flag)?)
}

pub fn comm_iagree(handle: Handle, flag: Room<c_int>) -> Result<Handle> {
    let (comm, int) = (find::<Comm>(handle)?, find::<Type>(INT)?);
    let given = flag.buffer().given(1, int.committed()?);
    let given = given.map_err(|fault| comm.refused("agree", fault))?;
    let agreeing = comm.inner().iagree(given)?;
    let operation = Operation::Collective(Started::One(agreeing));
    request::made(operation, Raiser::Comm(handle), Some(comm))
}

pub fn comm_shrink(comm: &Comm) -> Result<Handle> {
    made(comm, Some(comm.inner().shrink()?), Card::default())
}

/// The handle of the survivors' communicator, and the request that is complete when it is there.
pub fn comm_ishrink(handle: Handle) -> Result<(Handle, Handle)> {
    let comm = find::<Comm>(handle)?;
    let duplication = Duplication::new(comm.inner().ishrink()?, Own::fresh(&comm))?;
    let made = duplication.handle();
    let operation = Operation::Collective(Started::Duplicate(Box::new(duplication)));
    Ok((made, request::made(operation, Raiser::Comm(handle), Some(comm))?))
}
