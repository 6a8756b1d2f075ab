//! Operations of reductions: MPI's own, and those of programs (MPI-5.0 section 6.9).
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::sync::{Arc, OnceLock};

use longshore::shipable::Basic;
use longshore::{Class, SharedOperator, UserOp};

use crate::datatype::{NUMBER_OF_CHAR, Type};
use crate::edge::arg::{Address, Width};
use crate::edge::constants as c;
use crate::edge::fault::{Fault, Result};
use crate::edge::handle::{Handle, Kind, Object, find, insert, remove};

/// An operation of a reduction.
pub enum Op {
    /// One of MPI's own.
    Predefined(longshore::Op),
    /// A function of the program.
    User(User),
}

/// A function of the program, of the version whose number of elements is an int or an MPI_Count.
pub struct User {
    function: Address,
    width: Width,
    commutes: bool,
}

/// MPI_User_function.
type Function = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_int, *mut Handle);
/// MPI_User_function_c.
type LargeFunction = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut i64, *mut Handle);

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
        static MADE: [OnceLock<Arc<Op>>; 32] = [const { OnceLock::new() }; 32];
        let op = predefined(handle)?;
        let made = MADE.get(handle.number().wrapping_sub(c::OP_NULL.number()))?;
        Some(made.get_or_init(|| Arc::new(Op::Predefined(op))).clone())
    }
}

/// The operations by the distance of their handles from MPI_OP_NULL.
static BY_HANDLE: [Option<longshore::Op>; 32] = {
    let mut operations = [None; 32];
    let mut at = 0;
    while at < HANDLES.len() {
        operations[HANDLES[at].0.number() - c::OP_NULL.number()] = Some(HANDLES[at].1);
        at += 1;
    }
    operations
};

/// The operation of a predefined handle.
#[inline]
pub fn predefined(handle: Handle) -> Option<longshore::Op> {
    *BY_HANDLE.get(handle.number().wrapping_sub(c::OP_NULL.number()))?
}

impl Op {
    /// The type by which elements of a datatype are combined. MPI_CHAR is text for MPI, but
    /// programs count with it, as C does. Only to MPI_MIN and MPI_MAX it matters whether a char has
    /// a sign, so that unlike ranks agree on the other operations.
    pub fn operands(&self, datatype: Handle) -> Result<Handle> {
        let Op::Predefined(op) = self else { return Ok(datatype) };
        let is_char = find::<Type>(datatype)?.datatype().as_basic() == Some(Basic::Char);
        let is_ordered = matches!(op, longshore::Op::Min | longshore::Op::Max);
        Ok(match (is_char, is_ordered) {
            (false, _) => datatype,
            (true, true) => NUMBER_OF_CHAR,
            (true, false) => c::SIGNED_CHAR,
        })
    }

    /// The operation on elements of a datatype.
    pub fn on(self: &Arc<Op>, datatype: Handle) -> Result<SharedOperator> {
        if let Op::Predefined(op) = &**self {
            return Ok((*op).into());
        }
        let (op, of) = (self.clone(), find::<Type>(datatype)?);
        let extent = of.committed()?.extent();
        let combine = move |left: *const u8, right: *mut u8, count| {
            let Op::User(user) = &*op else { return };
            let datatype = Named::new(datatype, &of);
            // SAFETY: the runtime gives operands of the datatype of the call, to which the handle
            // and the extent belong.
            unsafe { user.combine((left.cast_mut(), right), count, (datatype.handle, extent)) }
        };
        Ok(Arc::new(UserOp::by_pointer(combine)).into())
    }
}

/// The handle that a function of the program gets for a datatype: that of the call, or another one
/// if the program has freed that meanwhile.
struct Named {
    handle: Handle,
    is_own: bool,
}

impl Named {
    fn new(handle: Handle, of: &Arc<Type>) -> Named {
        match find::<Type>(handle) {
            Ok(found) if Arc::ptr_eq(&found, of) => Named { handle, is_own: false },
            _ => match insert(of.clone()) {
                Ok(handle) => Named { handle, is_own: true },
                Err(_) => Named { handle: c::DATATYPE_NULL, is_own: false },
            },
        }
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        if self.is_own {
            let _ = remove::<Type>(&mut self.handle);
        }
    }
}

impl User {
    /// Combines `count` elements at the first address with those at the second.
    ///
    /// # Safety
    /// Both addresses have `count` elements of the datatype, of this extent.
    unsafe fn combine(
        &self,
        (mut left, mut right): (*mut u8, *mut u8),
        mut count: i64,
        (mut datatype, extent): (Handle, i64),
    ) {
        if self.width == Width::Large {
            // SAFETY: the program passed the function as an operation of this version, and the
            // caller promises the operands.
            unsafe {
                let function: LargeFunction = std::mem::transmute(self.function.pointer());
                function(left.cast(), right.cast(), &raw mut count, &raw mut datatype);
            }
            return;
        }
        while count > 0 {
            let mut now = c_int::try_from(count).unwrap_or(c_int::MAX);
            let step = (i64::from(now) * extent) as isize;
            // SAFETY: as above. The elements of this step are among the caller's.
            unsafe {
                let function: Function = std::mem::transmute(self.function.pointer());
                function(left.cast(), right.cast(), &raw mut now, &raw mut datatype);
            }
            count -= count.min(i64::from(c_int::MAX));
            (left, right) = (left.wrapping_offset(step), right.wrapping_offset(step));
        }
    }
}

pub fn op_create(width: Width, function: Address, commutes: bool) -> Result<Handle> {
    if function.is_null() {
        return Err(Fault::argument("user_fn is a null pointer"));
    }
    insert(Arc::new(Op::User(User { function, width, commutes })))
}

pub fn op_free(op: &mut Handle) -> Result<()> {
    remove::<Op>(op).map(drop)
}

pub fn op_commutative(op: &Op) -> Result<bool> {
    Ok(match op {
        // The order of MPI_REPLACE and MPI_NO_OP decides the result.
        Op::Predefined(op) => !matches!(op, longshore::Op::Replace | longshore::Op::NoOp),
        Op::User(user) => user.commutes,
    })
}
