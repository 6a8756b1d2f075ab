//! Collective calls (MPI-5.0 chapter 6).
//!
//! | file | holds |
//! |---|---|
//! | `mod.rs` | calls that wait |
//! | [`collectives`] | the arguments of each call, and the list of the calls |
//! | [`nonblocking`], [`prepared`] | calls with requests, and persistent ones (sections 6.12 and 6.13) |
//! | [`neighborhood`] | calls among neighbours (section 8.6) |
//! | [`failures`] | communicators after failures |
//! | [`lifetime`] | communicators that are made or freed with requests and buffers (section 7.4) |
//!
//! The arguments of a call are checked once, in [`arguments`](crate::request::arguments), for its
//! three ways.

pub(crate) mod collectives;
pub(crate) mod failures;
pub(crate) mod lifetime;
pub(crate) mod neighborhood;
pub(crate) mod nonblocking;
pub(crate) mod prepared;

use std::ffi::c_int;
use std::sync::Arc;

use longshore::Class;

use crate::collective::collectives::each_collective;
use crate::communicator::Comm;
use crate::edge::arg::{Buffer, Numbers};
use crate::edge::elements::{Elements, Reduction, Typed, Varying};
use crate::edge::fault::{Fault, Result};
use crate::edge::handle::Handle;
use crate::edge::state;
use crate::operation::Op;
use crate::request::arguments::Operands;

macro_rules! waiting {
    ($($name:ident $_started:ident $_init:ident ($($arg:ident: $kind:ty),*);)*) => {
        $(
            pub fn $name($($arg: $kind,)* comm: &Comm) -> Result<()> {
                let arguments = collectives::$name($($arg,)* comm)?;
                arguments.check_apart()?;
                arguments.run(comm.inner())
            }
        )*
    };
}

each_collective!(waiting);

pub fn reduce_local(reduction: Reduction, op: &Arc<Op>) -> Result<()> {
    let (data, room) = (reduction.data(), reduction.room());
    if data.buffer.is_in_place() || room.buffer.is_in_place() {
        let what = "MPI_IN_PLACE is no buffer of MPI_Reduce_local";
        return Err(Fault::new(Class::Buffer, what.to_owned()));
    }
    let operands = Operands::new(data, room, op, (false, false))?;
    operands.check_apart()?;
    let (data, room, op) = operands.lent()?;
    Ok(state::state()?.rank().alone().reduce_local(data, room, op)?)
}
