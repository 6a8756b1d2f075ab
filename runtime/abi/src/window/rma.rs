//! Operations on windows (MPI-5.0 section 12.3).
#![allow(unsafe_code)]

use std::sync::Arc;

use longshore::shipable::Basic;
use longshore::{Class, PROC_NULL};

use crate::datatype::foreign::Target;
use crate::datatype::{NUMBER_OF_CHAR, Type};
use crate::edge::arg::Buffer;
use crate::edge::elements::{Elements, Fetch, Remote, Swap};
use crate::edge::fault::{Fault, Raiser, Result};
use crate::edge::handle::{Handle, find};
use crate::operation::Op;
use crate::request::{self, Operation};
use crate::window::Win;

/// Elements as the calls of windows take them.
type Parts<'a> = (*mut u8, i64, &'a longshore::Type);

/// The elements of one side of an operation, if there may be memory for them.
fn checked(elements: Elements<&Type>) -> Result<Parts<'_>> {
    let elements = elements.of(elements.datatype.committed()?);
    elements.check()?;
    Ok((elements.buffer.address(), elements.count, elements.datatype))
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
#[inline]
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

/// The origin of an operation, of which one that doesn't read it takes any.
fn origin_of<'a>(
    op: longshore::Op,
    origin: Elements,
    result: Parts<'a>,
    found: &'a mut Option<Arc<Type>>,
) -> Result<Parts<'a>> {
    if op == longshore::Op::NoOp {
        return Ok((result.0, 0, result.2));
    }
    let datatype = find::<Type>(origin.datatype)?;
    let datatype = found.insert(arithmetic(&datatype)?.unwrap_or(datatype));
    checked(origin.of(datatype))
}

macro_rules! run {
    ($win:expr, $call:ident ( $($argument:expr),* $(,)? )) => {
        // SAFETY: the program says that the memory is there until the operation is complete.
        $win.with(|window| unsafe { window.raw().$call($($argument),*) })?
    };
}

pub fn put(origin: Elements<&Type>, remote: Remote, win: &Win) -> Result<()> {
    let Remote { rank, disp, count, datatype } = remote;
    let target = Target::find(datatype)?;
    let (target, (at, len, own)) = (target.to_call()?, checked(origin)?);
    if rank == PROC_NULL {
        return Ok(());
    }
    Ok(run!(win, put(at, len, own, rank, disp, count, target))?)
}

pub fn get(result: Elements<&Type>, remote: Remote, win: &Win) -> Result<()> {
    let Remote { rank, disp, count, datatype } = remote;
    let target = Target::find(datatype)?;
    let (target, (at, len, own)) = (target.to_call()?, checked(result)?);
    if rank == PROC_NULL {
        return Ok(());
    }
    Ok(run!(win, get(at, len, own, rank, disp, count, target))?)
}

pub fn accumulate(origin: Elements<&Type>, remote: Remote, op: &Op, win: &Win) -> Result<()> {
    let Remote { rank, disp, count, datatype } = remote;
    let (op, mut target) = (of_count(own(op)?, count), Target::find(datatype)?);
    let char = arithmetic_both(origin.datatype, &mut target)?;
    let origin = origin.of(char.as_deref().unwrap_or(origin.datatype));
    let (target, (at, len, own)) = (target.to_call()?, checked(origin)?);
    if rank == PROC_NULL {
        return Ok(());
    }
    Ok(run!(win, accumulate(at, len, own, rank, disp, count, target, op))?)
}

pub fn get_accumulate(
    origin: Elements,
    result: Elements<&Type>,
    remote: Remote,
    op: &Op,
    win: &Win,
) -> Result<()> {
    let Remote { rank, disp, count, datatype } = remote;
    let (op, mut target) = (of_count(own(op)?, count), Target::find(datatype)?);
    let char = arithmetic_both(result.datatype, &mut target)?;
    let result = result.of(char.as_deref().unwrap_or(result.datatype));
    let (target, to) = (target.to_call()?, checked(result)?);
    let mut found = None;
    let (at, len, own) = origin_of(op, origin, to, &mut found)?;
    if rank == PROC_NULL {
        return Ok(());
    }
    let from = (at.cast_const(), len, own);
    Ok(run!(win, get_accumulate(from, to, rank, disp, count, target, op))?)
}

pub fn fetch_and_op(fetch: Fetch<&Type>, op: &Op, win: &Win) -> Result<()> {
    let Fetch { origin, result, datatype, rank, disp } = fetch;
    let (op, char) = (own(op)?, arithmetic(datatype)?);
    let datatype = char.as_deref().unwrap_or(datatype).committed()?;
    if rank == PROC_NULL {
        return Ok(());
    }
    result.check(1, datatype)?;
    let from = match op {
        longshore::Op::NoOp => result,
        _ => {
            origin.check(1, datatype)?;
            origin
        }
    };
    let (from, to) = (from.address(), result.address());
    Ok(run!(win, fetch_and_op(from, to, datatype, rank, disp, op))?)
}

pub fn compare_and_swap(swap: Swap<&Type>, win: &Win) -> Result<()> {
    let Swap { origin, compare, result, datatype, rank, disp } = swap;
    let char = arithmetic(datatype)?;
    let datatype = char.as_deref().unwrap_or(datatype).committed()?;
    if rank == PROC_NULL {
        return Ok(());
    }
    for memory in [origin, compare, result] {
        memory.check(1, datatype)?;
    }
    let [new, old, to] = [origin, compare, result].map(Buffer::address);
    Ok(run!(win, compare_and_swap(new, old, to, datatype, rank, disp))?)
}

/// A handle of the request of an operation.
fn requested(request: longshore::Request<()>) -> Result<Handle> {
    request::made(Operation::Rma(request), Raiser::Own, None)
}

/// The request of an operation with the null process, which is complete.
fn nothing() -> Result<Handle> {
    request::ended()
}

pub fn rput(origin: Elements<&Type>, remote: Remote, win: &Win) -> Result<Handle> {
    let Remote { rank, disp, count, datatype } = remote;
    let target = Target::find(datatype)?;
    let (target, (at, len, own)) = (target.to_call()?, checked(origin)?);
    if rank == PROC_NULL {
        return nothing();
    }
    requested(run!(win, rput(at, len, own, rank, disp, count, target))?)
}

pub fn rget(result: Elements<&Type>, remote: Remote, win: &Win) -> Result<Handle> {
    let Remote { rank, disp, count, datatype } = remote;
    let target = Target::find(datatype)?;
    let (target, (at, len, own)) = (target.to_call()?, checked(result)?);
    if rank == PROC_NULL {
        return nothing();
    }
    requested(run!(win, rget(at, len, own, rank, disp, count, target))?)
}

pub fn raccumulate(origin: Elements<&Type>, remote: Remote, op: &Op, win: &Win) -> Result<Handle> {
    let Remote { rank, disp, count, datatype } = remote;
    let (op, mut target) = (of_count(own(op)?, count), Target::find(datatype)?);
    let char = arithmetic_both(origin.datatype, &mut target)?;
    let origin = origin.of(char.as_deref().unwrap_or(origin.datatype));
    let (target, (at, len, own)) = (target.to_call()?, checked(origin)?);
    if rank == PROC_NULL {
        return nothing();
    }
    requested(run!(win, raccumulate(at, len, own, rank, disp, count, target, op))?)
}

pub fn rget_accumulate(
    origin: Elements,
    result: Elements<&Type>,
    remote: Remote,
    op: &Op,
    win: &Win,
) -> Result<Handle> {
    let Remote { rank, disp, count, datatype } = remote;
    let (op, mut target) = (of_count(own(op)?, count), Target::find(datatype)?);
    let char = arithmetic_both(result.datatype, &mut target)?;
    let result = result.of(char.as_deref().unwrap_or(result.datatype));
    let (target, to) = (target.to_call()?, checked(result)?);
    let mut found = None;
    let (at, len, own) = origin_of(op, origin, to, &mut found)?;
    if rank == PROC_NULL {
        return nothing();
    }
    let from = (at.cast_const(), len, own);
    requested(run!(win, rget_accumulate(from, to, rank, disp, count, target, op))?)
}
