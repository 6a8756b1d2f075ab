//! Intercommunicators (MPI-5.0 section 7.6). None is made yet, so every communicator has one group.

use std::ffi::c_int;

use longshore::Class;

use crate::communicator::Comm;
use crate::fault::{Fault, Result};
use crate::handle::Handle;

pub fn comm_test_inter(_comm: &Comm) -> Result<bool> {
    Ok(false)
}

fn no_remote() -> Fault {
    Fault::new(
        Class::Comm,
        "the communicator has no remote group: it is no intercommunicator".to_owned(),
    )
}

pub fn comm_remote_size(_comm: &Comm) -> Result<c_int> {
    Err(no_remote())
}

pub fn comm_remote_group(_comm: &Comm) -> Result<Handle> {
    Err(no_remote())
}
