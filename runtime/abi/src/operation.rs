//! Operations of reductions (MPI-5.0 section 6.9).

use std::sync::Arc;

use longshore::Class;

use crate::constants as c;
use crate::handle::{Handle, Kind, Object};

/// An operation of a reduction.
pub enum Op {
    /// One of MPI's own.
    Predefined(longshore::Op),
}

/// The handles of the predefined operations.
const HANDLES: &[(Handle, longshore::Op)] = &[
    (c::SUM, longshore::Op::Sum),
    (c::MIN, longshore::Op::Min),
    (c::MAX, longshore::Op::Max),
    (c::PROD, longshore::Op::Prod),
    (c::BAND, longshore::Op::Band),
    (c::BOR, longshore::Op::Bor),
    (c::BXOR, longshore::Op::Bxor),
    (c::LAND, longshore::Op::Land),
    (c::LOR, longshore::Op::Lor),
    (c::LXOR, longshore::Op::Lxor),
    (c::MINLOC, longshore::Op::Minloc),
    (c::MAXLOC, longshore::Op::Maxloc),
    (c::REPLACE, longshore::Op::Replace),
    (c::NO_OP, longshore::Op::NoOp),
];

impl Object for Op {
    const KIND: Kind = Kind::Op;
    const CLASS: Class = Class::Op;
    const NULL: Handle = c::OP_NULL;

    fn predefined(handle: Handle) -> Option<Arc<Op>> {
        let op = predefined(handle)?;
        Some(Arc::new(Op::Predefined(op)))
    }
}

/// The operation of a predefined handle.
pub fn predefined(handle: Handle) -> Option<longshore::Op> {
    HANDLES.iter().find(|(known, _)| *known == handle).map(|(_, op)| *op)
}
