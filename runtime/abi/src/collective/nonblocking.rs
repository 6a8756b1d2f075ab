//! Collective calls with requests (MPI-5.0 section 6.12).

use std::ffi::c_int;
use std::sync::Arc;

use crate::collective::collectives::{self, each_collective};
use crate::communicator::Comm;
use crate::edge::arg::{Buffer, Numbers};
use crate::edge::elements::{Elements, Reduction, Typed, Varying};
use crate::edge::fault::{Raiser, Result};
use crate::edge::handle::{Handle, find};
use crate::operation::Op;
use crate::request::arguments::Arguments;
use crate::request::{self, Operation};

/// Starts a call on a communicator, and gives it a handle.
pub fn start(comm: Handle, arguments: impl FnOnce(&Comm) -> Result<Arguments>) -> Result<Handle> {
    let found = find::<Comm>(comm)?;
    let arguments = arguments(&found)?;
    arguments.check_apart()?;
    let started = arguments.start(found.inner())?;
    request::made(Operation::Collective(started), Raiser::Comm(comm), Some(found))
}

macro_rules! started {
    ($($_waiting:ident $name:ident $_init:ident ($($arg:ident: $kind:ty),*);)*) => {
        $(
            pub fn $name($($arg: $kind,)* comm: Handle) -> Result<Handle> {
                start(comm, |comm| collectives::$_waiting($($arg,)* comm))
            }
        )*
    };
}

each_collective!(started);
