//! Persistent collective calls (MPI-5.0 section 6.13). Each takes its place in the order of the
//! communicator's calls when it is made, so ranks may start them in any order.

use std::ffi::c_int;
use std::sync::Arc;

use longshore::Class;

use crate::collective::collectives::{self, each_collective};
use crate::communicator::Comm;
use crate::edge::arg::{Buffer, Numbers};
use crate::edge::elements::{Elements, Reduction, Typed, Varying};
use crate::edge::fault::{Fault, Raiser, Result};
use crate::edge::handle::{Handle, find};
use crate::objects::info::Info;
use crate::operation::Op;
use crate::request::arguments::Arguments;
use crate::request::{self, Operation};

/// Makes a persistent call on a communicator. Its arguments are checked now, since errors at a
/// start would be far from the call that is wrong.
pub fn prepare(comm: Handle, arguments: impl FnOnce(&Comm) -> Result<Arguments>) -> Result<Handle> {
    let found = find::<Comm>(comm)?;
    let arguments = arguments(&found)?;
    arguments.check_apart()?;
    let size = found.peers();
    let is_rank = |root: &c_int| (0..size).contains(root) || found.gives_nothing(*root);
    if let Some(root) = arguments.root().filter(|root| !is_rank(root)) {
        let what = format!("there is no root {root} in a communicator of {size}");
        return Err(Fault::new(Class::Root, what));
    }
    let reserved = found.inner().reserve();
    let start = move || arguments.start(&reserved).map(Operation::Collective);
    request::persistent(Box::new(start), Raiser::Comm(comm), found)
}

macro_rules! prepared {
    ($($_waiting:ident $_started:ident $name:ident ($($arg:ident: $kind:ty),*);)*) => {
        $(
            pub fn $name($($arg: $kind,)* comm: Handle, _: Option<&Info>) -> Result<Handle> {
                prepare(comm, |comm| collectives::$_waiting($($arg,)* comm))
            }
        )*
    };
}

each_collective!(prepared);
