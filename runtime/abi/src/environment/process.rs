//! Dynamic processes (MPI-5.0 chapter 11). No process starts others yet.

use std::ffi::c_int;

use longshore::Class;

use crate::communicator::Comm;
use crate::edge::arg::Address;
use crate::edge::constants::{COMM_NULL, ERR_UNSUPPORTED_OPERATION};
use crate::edge::fault::{Fault, Result};
use crate::edge::handle::Handle;
use crate::edge::state;
use crate::objects::info::Info;

/// The module by which mpi4py's pools start their workers.
const POOL_WORKER: &str = "mpi4py.futures.server";

/// The error of starting processes. Command and arguments count at the root only (MPI-5.0 section
/// 11.3.2), so other ranks don't look at them. A pool of mpi4py calls this in a thread of its own,
/// whose exception nobody gets, and the program waits for ever: the job ends instead.
pub fn comm_spawn(
    command: Address,
    argv: Address,
    _maxprocs: c_int,
    _info: Option<&Info>,
    root: c_int,
    comm: &Comm,
) -> Fault {
    let is_root = c_int::try_from(comm.inner().rank()) == Ok(root);
    if is_root && argv.words().iter().any(|word| word == POOL_WORKER) {
        state::say(
            "longshore: MPIPoolExecutor would start its workers by MPI_Comm_spawn, which isn't \
             written, so the job ends\n\
             longshore: let ranks of the job be the workers: mpiexec -n N python -m mpi4py.futures \
             PROGRAM\n",
        );
        state::end_job(ERR_UNSUPPORTED_OPERATION);
    }
    let command = if is_root { command.text() } else { None };
    let command = command.unwrap_or_else(|| "the program".to_owned());
    let what = format!(
        "{command} isn't started, since MPI_Comm_spawn isn't written yet: start all processes of \
         the job by mpiexec -n N"
    );
    Fault::new(Class::UnsupportedOperation, what)
}

pub fn comm_get_parent() -> Result<Handle> {
    Ok(COMM_NULL)
}
