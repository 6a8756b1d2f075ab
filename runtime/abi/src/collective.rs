//! Collective calls that wait (MPI-5.0 chapter 6).

use std::ffi::c_int;
use std::sync::Arc;

use longshore::Class;

use crate::arg::{Buffer, List, Numbers};
use crate::arguments::Operands;
use crate::collectives::{self, each_collective};
use crate::communicator::Comm;
use crate::fault::{Fault, Result};
use crate::handle::Handle;
use crate::operation::Op;
use crate::state;

macro_rules! waiting {
    ($($name:ident $_started:ident $_init:ident ($($arg:ident: $kind:ty),*);)*) => {
        $(
            #[allow(clippy::too_many_arguments)] // MPI's
            pub fn $name($($arg: $kind,)* comm: &Comm) -> Result<()> {
                let arguments = collectives::$name($($arg,)* comm)?;
                arguments.check_apart()?;
                arguments.run(comm.inner())
            }
        )*
    };
}

each_collective!(waiting);

pub fn reduce_local(
    inbuf: Buffer,
    inoutbuf: Buffer,
    count: i64,
    datatype: Handle,
    op: &Arc<Op>,
) -> Result<()> {
    if inbuf.is_in_place() || inoutbuf.is_in_place() {
        let what = "MPI_IN_PLACE is no buffer of MPI_Reduce_local";
        return Err(Fault::new(Class::Buffer, what.to_owned()));
    }
    let operands =
        Operands::new((inbuf, count), (inoutbuf, count), (datatype, op), (false, false))?;
    operands.check_apart()?;
    let (data, room, op) = operands.lent()?;
    Ok(state::state()?.rank().alone().reduce_local(data, room, op)?)
}
