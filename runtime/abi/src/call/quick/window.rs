//! The quick ways of operations on windows, and of what completes them.
//!
//! They take no lock, reference count, thread-local or allocation: the memo of the runtime's window
//! has checked the operation before.
//!
//! The functions with an [`attempt`](crate::call::attempt) make the rest of the call.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};

use longshore::{Assert, LockType, Op, Raw, Result, TargetType, Type};

use crate::call::quick::{coded, is_memory};
use crate::communicator::group::Group;
use crate::datatype::compiled;
use crate::edge::fault::Raiser;
use crate::edge::handle::{Handle, borrow_object};
use crate::operation::predefined;
use crate::window::Win;
use crate::window::rma::is_counted;

/// The calls of a window.
#[inline(always)]
pub fn calls(win: Handle) -> Option<Raw<'static>> {
    Some(borrow_object::<Win>(win)?.alone()?.raw())
}

/// The compiled types of both sides, which mostly are one. `find` finds that of a handle.
#[inline(always)]
pub fn both(
    find: impl Fn(Handle) -> Option<&'static Type>,
    datatype: Handle,
    target_type: Handle,
) -> Option<(&'static Type, &'static Type)> {
    let own = find(datatype)?;
    Some((own, if target_type == datatype { own } else { find(target_type)? }))
}

/// The code of a call that was made.
#[inline(always)]
fn code(call: &'static str, win: Handle, outcome: Result<()>) -> Option<c_int> {
    coded(call, Raiser::Win(win), outcome)
}

/// Whether memory and rank are those of a usual operation.
#[inline(always)]
fn is_usual(memory: *const c_void, rank: c_int) -> bool {
    is_memory(memory) && rank >= 0
}

/// # Safety
/// The program's promises of MPI_Put.
#[inline(always)]
#[allow(clippy::too_many_arguments)] // MPI's
pub unsafe fn put(
    origin: *const c_void,
    count: i64,
    datatype: Handle,
    rank: c_int,
    disp: i64,
    target_count: i64,
    target_type: Handle,
    win: Handle,
) -> Option<c_int> {
    let ((own, target), calls) = (both(compiled, datatype, target_type)?, calls(win)?);
    if !is_usual(origin, rank) {
        return None;
    }
    // SAFETY: the caller's promise.
    let put = unsafe { calls.put(origin.cast(), count, own, rank, disp, target_count, target) };
    code("MPI_Put", win, put)
}

/// # Safety
/// The program's promises of MPI_Get.
#[inline(always)]
#[allow(clippy::too_many_arguments)] // MPI's
pub unsafe fn get(
    result: *mut c_void,
    count: i64,
    datatype: Handle,
    rank: c_int,
    disp: i64,
    target_count: i64,
    target_type: Handle,
    win: Handle,
) -> Option<c_int> {
    let ((own, target), calls) = (both(compiled, datatype, target_type)?, calls(win)?);
    if !is_usual(result, rank) {
        return None;
    }
    // SAFETY: the caller's promise.
    let got = unsafe { calls.get(result.cast(), count, own, rank, disp, target_count, target) };
    code("MPI_Get", win, got)
}

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
) -> Option<c_int> {
    let ((own, target), calls) = (both(compiled, datatype, target_type)?, calls(win)?);
    if !is_usual(origin, rank) || target_count == 0 || is_counted(datatype) {
        return None;
    }
    let (op, from) = (predefined(op)?, (origin.cast(), count, own));
    // SAFETY: the caller's promise.
    let described = unsafe {
        calls.accumulating(from, rank, disp, (target_count, TargetType::Own(target)), op)
    };
    code("MPI_Accumulate", win, described.rest())
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
) -> Option<c_int> {
    let ((own, target), calls) = (both(compiled, result_type, target_type)?, calls(win)?);
    if !is_usual(result, rank) || target_count == 0 || is_counted(result_type) {
        return None;
    }
    let to = (result.cast::<u8>(), result_count, own);
    let op = predefined(op)?;
    // An atomic get ignores its origin.
    let from = match op {
        Op::NoOp => (to.0.cast_const(), 0, own),
        _ if !is_memory(origin) || is_counted(datatype) => return None,
        _ if datatype == result_type => (origin.cast(), count, own),
        _ => (origin.cast(), count, compiled(datatype)?),
    };
    let there = (target_count, TargetType::Own(target));
    // SAFETY: the caller's promise.
    let described = unsafe { calls.get_accumulating(from, to, rank, disp, there, op) };
    code("MPI_Get_accumulate", win, described.rest())
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
) -> Option<c_int> {
    let (own, calls, op) = (compiled(datatype)?, calls(win)?, predefined(op)?);
    if !is_usual(origin, rank) || !is_memory(result) || is_counted(datatype) {
        return None;
    }
    // SAFETY: the caller's promise.
    let described = unsafe { calls.fetching(origin.cast(), result.cast(), own, rank, disp, op) };
    code("MPI_Fetch_and_op", win, described.rest())
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
) -> Option<c_int> {
    let (own, calls) = (compiled(datatype)?, calls(win)?);
    let is_usual = is_usual(origin, rank) && is_memory(compare) && is_memory(result);
    if !is_usual || is_counted(datatype) {
        return None;
    }
    let (new, old) = (origin.cast(), compare.cast());
    // SAFETY: the caller's promise.
    let described = unsafe { calls.swapping([new, old], result.cast(), own, rank, disp) };
    code("MPI_Compare_and_swap", win, described.rest())
}

macro_rules! completing {
    ($($name:ident $call:ident $text:literal;)*) => {
        $(
            /// # Safety
            /// The program's promises of the call.
            #[inline(always)]
            pub unsafe fn $name(win: Handle) -> Option<c_int> {
                code($text, win, calls(win)?.$call())
            }
        )*
    };
}

completing! {
    win_complete complete "MPI_Win_complete";
    win_flush_all flush_all "MPI_Win_flush_all";
    win_flush_local_all flush_local_all "MPI_Win_flush_local_all";
    win_sync sync "MPI_Win_sync";
    win_unlock_all unlock_all "MPI_Win_unlock_all";
}

/// An assert of known bits.
#[inline(always)]
fn assert(bits: c_int) -> Option<Assert> {
    Assert::from_bits(u32::try_from(bits).ok()?).ok()
}

/// # Safety
/// The program's promises of the call.
#[inline(always)]
pub unsafe fn win_fence(bits: c_int, win: Handle) -> Option<c_int> {
    code("MPI_Win_fence", win, calls(win)?.fence(assert(bits)?))
}

/// # Safety
/// The program's promises of the call.
#[inline(always)]
pub unsafe fn win_start(group: Handle, bits: c_int, win: Handle) -> Option<c_int> {
    let group = borrow_object::<Group>(group)?.inner();
    code("MPI_Win_start", win, calls(win)?.start(group, assert(bits)?))
}

/// # Safety
/// The program's promises of the call.
#[inline(always)]
pub unsafe fn win_post(group: Handle, bits: c_int, win: Handle) -> Option<c_int> {
    let group = borrow_object::<Group>(group)?.inner();
    let window = borrow_object::<Win>(win)?.alone()?;
    code("MPI_Win_post", win, window.post(group, assert(bits)?))
}

/// # Safety
/// The program's promises of the call.
#[inline(always)]
pub unsafe fn win_wait(win: Handle) -> Option<c_int> {
    code("MPI_Win_wait", win, borrow_object::<Win>(win)?.alone()?.wait())
}

/// # Safety
/// The program's promises of the call.
#[inline(always)]
pub unsafe fn win_lock(lock_type: c_int, rank: c_int, bits: c_int, win: Handle) -> Option<c_int> {
    let lock_type = LockType::from_number(lock_type).ok()?;
    if rank < 0 {
        return None;
    }
    code("MPI_Win_lock", win, calls(win)?.lock(rank, lock_type, assert(bits)?))
}

/// # Safety
/// The program's promises of the call.
#[inline(always)]
pub unsafe fn win_lock_all(bits: c_int, win: Handle) -> Option<c_int> {
    code("MPI_Win_lock_all", win, calls(win)?.lock_all(assert(bits)?))
}

/// # Safety
/// The program's promises of the call.
#[inline(always)]
pub unsafe fn win_unlock(rank: c_int, win: Handle) -> Option<c_int> {
    if rank < 0 {
        return None;
    }
    code("MPI_Win_unlock", win, calls(win)?.unlock(rank))
}

/// # Safety
/// The program's promises of the call.
#[inline(always)]
pub unsafe fn win_flush(rank: c_int, win: Handle) -> Option<c_int> {
    if rank < 0 {
        return None;
    }
    code("MPI_Win_flush", win, calls(win)?.rest_of_flush(rank))
}

/// # Safety
/// The program's promises of the call.
#[inline(always)]
pub unsafe fn win_flush_local(rank: c_int, win: Handle) -> Option<c_int> {
    if rank < 0 {
        return None;
    }
    code("MPI_Win_flush_local", win, calls(win)?.rest_of_flush_local(rank))
}
