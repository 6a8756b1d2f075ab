//! The attempts of the operations on windows that programs make most, and of their flushes.
//!
//! An attempt is all in the export of its function, without a call but of the loops that copy and
//! combine elements. It returns `None` if it has done nothing. Then the export jumps to the
//! [quick](crate::call::quick) way, which makes the rest of the call. So a call that is made by its
//! attempt keeps no arguments for the rest: each store would delay the locked instruction of a
//! flush (docs/tuning.md, "Attempts of calls by C").
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};

use longshore::{Op, TargetType};

use crate::call::quick::{both, calls, is_memory};
use crate::datatype::known;
use crate::edge::handle::Handle;
use crate::operation::predefined;
use crate::window::rma::is_counted;

/// # Safety
/// The program's promises of MPI_Accumulate.
#[inline(always)]
#[allow(clippy::too_many_arguments)] // MPI's
pub unsafe fn accumulate(
    origin: *const c_void,
    count: i64,
    datatype: Handle,
    rank: c_int,
    disp: i64,
    target_count: i64,
    target_type: Handle,
    op: Handle,
    win: Handle,
) -> Option<()> {
    let ((own, target), calls) = (both(known, datatype, target_type)?, calls(win)?);
    if !is_memory(origin) || target_count == 0 || is_counted(datatype) {
        return None;
    }
    let (op, from) = (predefined(op)?, (origin.cast(), count, own));
    // SAFETY: the caller's promise.
    let described = unsafe {
        calls.accumulating(from, rank, disp, (target_count, TargetType::Own(target)), op)
    };
    described.attempt().then_some(())
}

/// # Safety
/// The program's promises of MPI_Get_accumulate.
#[inline(always)]
#[allow(clippy::too_many_arguments)] // MPI's
pub unsafe fn get_accumulate(
    origin: *const c_void,
    count: i64,
    datatype: Handle,
    result: *mut c_void,
    result_count: i64,
    result_type: Handle,
    rank: c_int,
    disp: i64,
    target_count: i64,
    target_type: Handle,
    op: Handle,
    win: Handle,
) -> Option<()> {
    let ((own, target), calls) = (both(known, result_type, target_type)?, calls(win)?);
    if !is_memory(result) || target_count == 0 || is_counted(result_type) {
        return None;
    }
    let op = predefined(op)?;
    // An atomic get ignores its origin. Operands of another type are left to the rest of the call.
    if op != Op::NoOp && (!is_memory(origin) || datatype != result_type) {
        return None;
    }
    let (from, to) = ((origin.cast(), count, own), (result.cast(), result_count, own));
    let there = (target_count, TargetType::Own(target));
    // SAFETY: the caller's promise.
    let described = unsafe { calls.get_accumulating(from, to, rank, disp, there, op) };
    described.attempt().then_some(())
}

/// # Safety
/// The program's promises of MPI_Fetch_and_op.
#[inline(always)]
pub unsafe fn fetch_and_op(
    origin: *const c_void,
    result: *mut c_void,
    datatype: Handle,
    rank: c_int,
    disp: i64,
    op: Handle,
    win: Handle,
) -> Option<()> {
    let (own, calls, op) = (known(datatype)?, calls(win)?, predefined(op)?);
    if !is_memory(origin) || !is_memory(result) || is_counted(datatype) {
        return None;
    }
    let (from, to) = (origin.cast(), result.cast());
    // SAFETY: the caller's promise.
    unsafe { calls.fetching(from, to, own, rank, disp, op) }.attempt().then_some(())
}

/// # Safety
/// The program's promises of MPI_Compare_and_swap.
#[inline(always)]
pub unsafe fn compare_and_swap(
    origin: *const c_void,
    compare: *const c_void,
    result: *mut c_void,
    datatype: Handle,
    rank: c_int,
    disp: i64,
    win: Handle,
) -> Option<()> {
    let (own, calls) = (known(datatype)?, calls(win)?);
    let are_memory = is_memory(origin) && is_memory(compare) && is_memory(result);
    if !are_memory || is_counted(datatype) {
        return None;
    }
    let (new, old, to) = (origin.cast(), compare.cast(), result.cast());
    // SAFETY: the caller's promise.
    unsafe { calls.swapping([new, old], to, own, rank, disp) }.attempt().then_some(())
}

/// # Safety
/// The program's promises of MPI_Win_flush.
#[inline(always)]
pub unsafe fn win_flush(rank: c_int, win: Handle) -> Option<()> {
    calls(win)?.attempt_flush(rank).then_some(())
}

/// # Safety
/// The program's promises of MPI_Win_flush_local.
#[inline(always)]
pub unsafe fn win_flush_local(rank: c_int, win: Handle) -> Option<()> {
    calls(win)?.attempt_flush_local(rank).then_some(())
}
