//! Intercommunicators (MPI-5.0 section 7.6).

use std::ffi::c_int;
use std::sync::Arc;

use longshore::Class;

use crate::communicator::group::{self, Group};
use crate::communicator::{Comm, made};
use crate::edge::constants::COMM_NULL;
use crate::edge::fault::{Fault, Result};
use crate::edge::handle::{Handle, Kind, find};
use crate::edge::state;
use crate::environment::session::number_of;
use crate::objects::errhandler::Errhandler;
use crate::objects::info::Info;
use crate::objects::object::Card;

pub fn comm_test_inter(comm: &Comm) -> Result<bool> {
    Ok(comm.inner().remote_group().is_some())
}

fn remote(comm: &Comm) -> Result<&longshore::Group> {
    comm.inner().remote_group().ok_or_else(|| {
        let what = "the communicator has no remote group: it is no intercommunicator";
        Fault::new(Class::Comm, what.to_owned())
    })
}

pub fn comm_remote_size(comm: &Comm) -> Result<c_int> {
    Ok(remote(comm)?.size())
}

pub fn comm_remote_group(comm: &Comm) -> Result<Handle> {
    group::made(remote(comm)?.clone(), comm.session())
}

/// The communicator of the leaders means something at the leader only.
pub fn intercomm_create(
    comm: &Comm,
    leader: c_int,
    peer: Handle,
    remote_leader: c_int,
    tag: c_int,
) -> Result<Handle> {
    let peer = match comm.inner().rank() == leader {
        // Without one, the call sends the error to the other ranks of the group.
        true => find::<Comm>(peer).ok(),
        false => None,
    };
    let peer = peer.as_ref().map(|peer| (peer.inner(), remote_leader));
    let inner = comm.inner().intercomm_create(leader, peer, tag)?;
    made(comm, Some(inner), Card::default())
}

/// The leaders know each other by the communicator of all processes.
pub fn intercomm_create_from_groups(
    local: &Group,
    leader: c_int,
    remote: &Group,
    remote_leader: c_int,
    tag: &str,
    info: Option<&Info>,
    errhandler: &Arc<Errhandler>,
) -> Result<Handle> {
    errhandler.suits(Kind::Comm)?;
    if local.inner().size() == 0 || remote.inner().size() == 0 {
        return Ok(COMM_NULL);
    }
    let (world, tag) = (state::state()?.rank().world(), number_of(tag));
    let wrong = || {
        let what = format!("there is no rank {remote_leader} in the remote group");
        Fault::new(Class::Rank, what)
    };
    let index = usize::try_from(remote_leader).map_err(|_| wrong())?;
    let process = *remote.inner().processes().get(index).ok_or_else(wrong)?;
    let of_world = world.group().processes().iter().position(|of_world| *of_world == process);
    let of_world = of_world.ok_or_else(wrong)? as c_int;
    let own = world.create_group(local.inner(), tag)?;
    let peer = Some((world, of_world)).filter(|_| own.rank() == leader);
    let inner = own.intercomm_create(leader, peer, tag);
    own.free()?;
    Comm::from_group(inner?, errhandler.clone(), info, local.session())
}

pub fn intercomm_merge(comm: &Comm, high: bool) -> Result<Handle> {
    made(comm, Some(comm.inner().merge(high)?), Card::default())
}
