//! Operations on windows (MPI-5.0 section 12.3).
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::sync::Arc;

use longshore::shipable::Basic;
use longshore::{Class, PROC_NULL};

use crate::datatype::foreign::Target;
use crate::datatype::{NUMBER_OF_CHAR, Type};
use crate::edge::arg::Buffer;
use crate::edge::fault::{Fault, Raiser, Result};
use crate::edge::handle::{Handle, find};
use crate::operation::Op;
use crate::request::{self, Operation};
use crate::window::Win;

/// One side of an operation: its memory, and how many elements of which type.
struct Side<'a> {
    buffer: Buffer,
    count: i64,
    datatype: &'a longshore::Type,
}

impl<'a> Side<'a> {
    fn new(buffer: Buffer, count: i64, datatype: &'a Type) -> Result<Side<'a>> {
        let datatype = datatype.committed()?;
        buffer.check(count, datatype)?;
        Ok(Side { buffer, count, datatype })
    }

    fn parts(&self) -> (*mut u8, i64, &'a longshore::Type) {
        (self.buffer.address(), self.count, self.datatype)
    }
}

/// The operation of an accumulate, which MPI's own are.
fn own(op: &Op) -> Result<longshore::Op> {
    match op {
        Op::Predefined(op) => Ok(*op),
        #[allow(unreachable_patterns)] // until a program can make its own
        _ => {
            let what = "accumulates take MPI's own operations only (MPI-5.0 section 12.3.4)";
            Err(Fault::new(Class::Op, what.to_owned()))
        }
    }
}

/// The operation of an accumulate of so many elements. No elements may be of any type.
fn of_count(op: longshore::Op, target_count: i64) -> longshore::Op {
    if target_count == 0 { longshore::Op::Replace } else { op }
}

/// The type for an operation on values of a type. MPI_CHAR is text for MPI, but programs count with
/// it, as C does.
fn arithmetic(datatype: &Type) -> Result<Option<Arc<Type>>> {
    match datatype.datatype().as_basic() {
        Some(Basic::Char) => find::<Type>(NUMBER_OF_CHAR).map(Some),
        _ => Ok(None),
    }
}

/// Whether a handle is that of a type which isn't a number for MPI, but is for programs.
#[inline(always)]
pub fn is_counted(handle: Handle) -> bool {
    handle == crate::edge::constants::CHAR
}

/// The origin's type of an operation on values, and that of the target in its place, where both are
/// MPI_CHAR.
fn arithmetic_both(datatype: &Type, target: &mut Target) -> Result<Option<Arc<Type>>> {
    let there = target.own().map(arithmetic).transpose()?.flatten();
    let both = arithmetic(datatype)?.zip(there);
    Ok(both.map(|(here, there)| {
        *target = Target::Own(there);
        here
    }))
}

/// The origin of an operation that doesn't read it: any arguments are right.
fn origin<'a>(
    op: longshore::Op,
    (buffer, count, datatype): (Buffer, i64, Handle),
    result: (&'a longshore::Type, *mut u8),
    found: &'a mut Option<Arc<Type>>,
) -> Result<(*const u8, i64, &'a longshore::Type)> {
    if op == longshore::Op::NoOp {
        return Ok((result.1, 0, result.0));
    }
    let datatype = find::<Type>(datatype)?;
    let datatype = &**found.insert(arithmetic(&datatype)?.unwrap_or(datatype));
    let side = Side::new(buffer, count, datatype)?;
    Ok((side.buffer.address(), count, side.datatype))
}

macro_rules! run {
    ($win:expr, $call:ident ( $($argument:expr),* $(,)? )) => {
        // SAFETY: the program says that the memory is there until the operation is complete.
        $win.with(|window| unsafe { window.raw().$call($($argument),*) })?
    };
}

#[allow(clippy::too_many_arguments)] // MPI's
pub fn put(
    buffer: Buffer,
    count: i64,
    datatype: &Type,
    rank: c_int,
    disp: i64,
    target_count: i64,
    target_type: Handle,
    win: &Win,
) -> Result<()> {
    let target = Target::find(target_type)?;
    let target = target.to_call()?;
    let (from, count, own) = Side::new(buffer, count, datatype)?.parts();
    if rank == PROC_NULL {
        return Ok(());
    }
    Ok(run!(win, put(from, count, own, rank, disp, target_count, target))?)
}

#[allow(clippy::too_many_arguments)] // MPI's
pub fn get(
    buffer: Buffer,
    count: i64,
    datatype: &Type,
    rank: c_int,
    disp: i64,
    target_count: i64,
    target_type: Handle,
    win: &Win,
) -> Result<()> {
    let target = Target::find(target_type)?;
    let target = target.to_call()?;
    let (to, count, own) = Side::new(buffer, count, datatype)?.parts();
    if rank == PROC_NULL {
        return Ok(());
    }
    Ok(run!(win, get(to, count, own, rank, disp, target_count, target))?)
}

#[allow(clippy::too_many_arguments)] // MPI's
pub fn accumulate(
    buffer: Buffer,
    count: i64,
    datatype: &Type,
    rank: c_int,
    disp: i64,
    target_count: i64,
    target_type: Handle,
    op: &Op,
    win: &Win,
) -> Result<()> {
    let op = of_count(own(op)?, target_count);
    let mut target = Target::find(target_type)?;
    let char = arithmetic_both(datatype, &mut target)?;
    let (datatype, target) = (char.as_deref().unwrap_or(datatype), target.to_call()?);
    let (from, count, own) = Side::new(buffer, count, datatype)?.parts();
    if rank == PROC_NULL {
        return Ok(());
    }
    Ok(run!(win, accumulate(from, count, own, rank, disp, target_count, target, op))?)
}

#[allow(clippy::too_many_arguments)] // MPI's
pub fn get_accumulate(
    buffer: Buffer,
    count: i64,
    datatype: Handle,
    result: Buffer,
    result_count: i64,
    result_type: &Type,
    rank: c_int,
    disp: i64,
    target_count: i64,
    target_type: Handle,
    op: &Op,
    win: &Win,
) -> Result<()> {
    let op = of_count(own(op)?, target_count);
    let mut target = Target::find(target_type)?;
    let char = arithmetic_both(result_type, &mut target)?;
    let (result_type, target) = (char.as_deref().unwrap_or(result_type), target.to_call()?);
    let to = Side::new(result, result_count, result_type)?.parts();
    let mut found = None;
    let from = origin(op, (buffer, count, datatype), (to.2, to.0), &mut found)?;
    if rank == PROC_NULL {
        return Ok(());
    }
    Ok(run!(win, get_accumulate(from, to, rank, disp, target_count, target, op))?)
}

pub fn fetch_and_op(
    buffer: Buffer,
    result: Buffer,
    datatype: &Type,
    rank: c_int,
    disp: i64,
    op: &Op,
    win: &Win,
) -> Result<()> {
    let (op, char) = (own(op)?, arithmetic(datatype)?);
    let datatype = char.as_deref().unwrap_or(datatype).committed()?;
    if rank == PROC_NULL {
        return Ok(());
    }
    result.check(1, datatype)?;
    let from = match op {
        longshore::Op::NoOp => result,
        _ => {
            buffer.check(1, datatype)?;
            buffer
        }
    };
    let (from, to) = (from.address(), result.address());
    Ok(run!(win, fetch_and_op(from, to, datatype, rank, disp, op))?)
}

pub fn compare_and_swap(
    buffer: Buffer,
    compare: Buffer,
    result: Buffer,
    datatype: &Type,
    rank: c_int,
    disp: i64,
    win: &Win,
) -> Result<()> {
    let char = arithmetic(datatype)?;
    let datatype = char.as_deref().unwrap_or(datatype).committed()?;
    if rank == PROC_NULL {
        return Ok(());
    }
    for memory in [buffer, compare, result] {
        memory.check(1, datatype)?;
    }
    let (new, old) = (buffer.address(), compare.address());
    Ok(run!(win, compare_and_swap(new, old, result.address(), datatype, rank, disp))?)
}

/// A handle of the request of an operation.
fn requested(request: longshore::Request<()>) -> Result<Handle> {
    request::made(Operation::Rma(request), Raiser::Own, None)
}

/// The request of an operation with the null process, which is complete.
fn nothing() -> Result<Handle> {
    request::ended()
}

#[allow(clippy::too_many_arguments)] // MPI's
pub fn rput(
    buffer: Buffer,
    count: i64,
    datatype: &Type,
    rank: c_int,
    disp: i64,
    target_count: i64,
    target_type: Handle,
    win: &Win,
) -> Result<Handle> {
    let target = Target::find(target_type)?;
    let target = target.to_call()?;
    let (from, count, own) = Side::new(buffer, count, datatype)?.parts();
    if rank == PROC_NULL {
        return nothing();
    }
    requested(run!(win, rput(from, count, own, rank, disp, target_count, target))?)
}

#[allow(clippy::too_many_arguments)] // MPI's
pub fn rget(
    buffer: Buffer,
    count: i64,
    datatype: &Type,
    rank: c_int,
    disp: i64,
    target_count: i64,
    target_type: Handle,
    win: &Win,
) -> Result<Handle> {
    let target = Target::find(target_type)?;
    let target = target.to_call()?;
    let (to, count, own) = Side::new(buffer, count, datatype)?.parts();
    if rank == PROC_NULL {
        return nothing();
    }
    requested(run!(win, rget(to, count, own, rank, disp, target_count, target))?)
}

#[allow(clippy::too_many_arguments)] // MPI's
pub fn raccumulate(
    buffer: Buffer,
    count: i64,
    datatype: &Type,
    rank: c_int,
    disp: i64,
    target_count: i64,
    target_type: Handle,
    op: &Op,
    win: &Win,
) -> Result<Handle> {
    let op = of_count(own(op)?, target_count);
    let mut target = Target::find(target_type)?;
    let char = arithmetic_both(datatype, &mut target)?;
    let (datatype, target) = (char.as_deref().unwrap_or(datatype), target.to_call()?);
    let (from, count, own) = Side::new(buffer, count, datatype)?.parts();
    if rank == PROC_NULL {
        return nothing();
    }
    requested(run!(win, raccumulate(from, count, own, rank, disp, target_count, target, op))?)
}

#[allow(clippy::too_many_arguments)] // MPI's
pub fn rget_accumulate(
    buffer: Buffer,
    count: i64,
    datatype: Handle,
    result: Buffer,
    result_count: i64,
    result_type: &Type,
    rank: c_int,
    disp: i64,
    target_count: i64,
    target_type: Handle,
    op: &Op,
    win: &Win,
) -> Result<Handle> {
    let op = of_count(own(op)?, target_count);
    let mut target = Target::find(target_type)?;
    let char = arithmetic_both(result_type, &mut target)?;
    let (result_type, target) = (char.as_deref().unwrap_or(result_type), target.to_call()?);
    let to = Side::new(result, result_count, result_type)?.parts();
    let mut found = None;
    let from = origin(op, (buffer, count, datatype), (to.2, to.0), &mut found)?;
    if rank == PROC_NULL {
        return nothing();
    }
    requested(run!(win, rget_accumulate(from, to, rank, disp, target_count, target, op))?)
}
