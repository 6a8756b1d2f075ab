//! The quick ways of operations on windows, and of what completes them.
//!
//! They take no lock, reference count, thread-local or allocation: the memo of the runtime's window
//! has checked the operation before.
//!
//! The functions with an [`attempt`](crate::call::attempt) make the rest of the call.
#![allow(unsafe_code)]

use std::ffi::c_int;

use longshore::{Assert, LockType, Op, Raw, Result, TargetType, Type};

use crate::call::quick::{coded, is_memory};
use crate::communicator::group::Group;
use crate::datatype::compiled;
use crate::edge::arg::Buffer;
use crate::edge::elements::{Elements, Fetch, Remote, Swap};
use crate::edge::fault::Raiser;
use crate::edge::handle::{Handle, borrow_object};
use crate::operation::predefined;
use crate::window::Win;
use crate::window::rma::is_counted;

/// The calls of a window.
#[inline]
pub fn calls(win: Handle) -> Option<Raw<'static>> {
    Some(borrow_object::<Win>(win)?.alone()?.raw())
}

/// A side of this rank, with the compiled type, and the compiled type of the target, which mostly
/// is the same. `find` finds that of a handle.
#[inline]
pub fn both(
    find: impl Fn(Handle) -> Option<&'static Type>,
    side: Elements,
    remote: Remote,
) -> Option<(Elements<&'static Type>, &'static Type)> {
    let own = find(side.datatype)?;
    let target = if remote.datatype == side.datatype { own } else { find(remote.datatype)? };
    Some((side.of(own), target))
}

/// Elements that an operation reads.
#[inline]
pub fn read(from: Elements<&Type>) -> (*const u8, i64, &Type) {
    (from.buffer.address(), from.count, from.datatype)
}

/// Elements that an operation writes.
#[inline]
pub fn written(to: Elements<&Type>) -> (*mut u8, i64, &Type) {
    (to.buffer.address(), to.count, to.datatype)
}

/// The code of a call that was made.
#[inline]
fn code(call: &'static str, win: Handle, outcome: Result<()>) -> Option<c_int> {
    coded(call, Raiser::Win(win), outcome)
}

/// Whether memory and rank are those of a usual operation.
#[inline]
fn is_usual(memory: Buffer, rank: c_int) -> bool {
    is_memory(memory) && rank >= 0
}

#[inline(always)]
pub fn put(origin: Elements, remote: Remote, win: Handle) -> Option<c_int> {
    let ((from, target), calls) = (both(compiled, origin, remote)?, calls(win)?);
    let Remote { rank, disp, count, .. } = remote;
    if !is_usual(origin.buffer, rank) {
        return None;
    }
    let (at, own) = (from.buffer.address(), from.datatype);
    // SAFETY: the promise of `Buffer::new`.
    let put = unsafe { calls.put(at, from.count, own, rank, disp, count, target) };
    code("MPI_Put", win, put)
}

#[inline(always)]
pub fn get(result: Elements, remote: Remote, win: Handle) -> Option<c_int> {
    let ((to, target), calls) = (both(compiled, result, remote)?, calls(win)?);
    let Remote { rank, disp, count, .. } = remote;
    if !is_usual(result.buffer, rank) {
        return None;
    }
    let (at, own) = (to.buffer.address(), to.datatype);
    // SAFETY: the promise of `Buffer::new`.
    let got = unsafe { calls.get(at, to.count, own, rank, disp, count, target) };
    code("MPI_Get", win, got)
}

#[inline]
pub fn accumulate(origin: Elements, remote: Remote, op: Handle, win: Handle) -> Option<c_int> {
    let ((from, target), calls) = (both(compiled, origin, remote)?, calls(win)?);
    let Remote { rank, disp, count, .. } = remote;
    if !is_usual(origin.buffer, rank) || count == 0 || is_counted(origin.datatype) {
        return None;
    }
    let (op, there) = (predefined(op)?, (count, TargetType::Own(target)));
    // SAFETY: the promise of `Buffer::new`.
    let described = unsafe { calls.accumulating(read(from), rank, disp, there, op) };
    code("MPI_Accumulate", win, described.rest())
}

#[inline]
pub fn get_accumulate(
    origin: Elements,
    result: Elements,
    remote: Remote,
    op: Handle,
    win: Handle,
) -> Option<c_int> {
    let ((to, target), calls) = (both(compiled, result, remote)?, calls(win)?);
    let Remote { rank, disp, count, .. } = remote;
    if !is_usual(result.buffer, rank) || count == 0 || is_counted(result.datatype) {
        return None;
    }
    let op = predefined(op)?;
    // An atomic get ignores its origin.
    let from = match op {
        Op::NoOp => Elements { count: 0, ..to },
        _ if !is_memory(origin.buffer) || is_counted(origin.datatype) => return None,
        _ if origin.datatype == result.datatype => origin.of(to.datatype),
        _ => origin.of(compiled(origin.datatype)?),
    };
    let there = (count, TargetType::Own(target));
    // SAFETY: the promise of `Buffer::new`.
    let described =
        unsafe { calls.get_accumulating(read(from), written(to), rank, disp, there, op) };
    code("MPI_Get_accumulate", win, described.rest())
}

#[inline]
pub fn fetch_and_op(fetch: Fetch, op: Handle, win: Handle) -> Option<c_int> {
    let Fetch { origin, result, datatype, rank, disp } = fetch;
    let (own, calls, op) = (compiled(datatype)?, calls(win)?, predefined(op)?);
    if !is_usual(origin, rank) || !is_memory(result) || is_counted(datatype) {
        return None;
    }
    let (from, to) = (origin.address(), result.address());
    // SAFETY: the promise of `Buffer::new`.
    let described = unsafe { calls.fetching(from, to, own, rank, disp, op) };
    code("MPI_Fetch_and_op", win, described.rest())
}

#[inline]
pub fn compare_and_swap(swap: Swap, win: Handle) -> Option<c_int> {
    let Swap { origin, compare, result, datatype, rank, disp } = swap;
    let (own, calls) = (compiled(datatype)?, calls(win)?);
    let is_usual = is_usual(origin, rank) && is_memory(compare) && is_memory(result);
    if !is_usual || is_counted(datatype) {
        return None;
    }
    let [new, old, to] = [origin, compare, result].map(Buffer::address);
    // SAFETY: the promise of `Buffer::new`.
    let described = unsafe { calls.swapping([new, old], to, own, rank, disp) };
    code("MPI_Compare_and_swap", win, described.rest())
}

macro_rules! completing {
    ($($name:ident $call:ident $text:literal;)*) => {
        $(
            #[inline]
            pub fn $name(win: Handle) -> Option<c_int> {
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
#[inline]
fn assert(bits: c_int) -> Option<Assert> {
    Assert::from_bits(u32::try_from(bits).ok()?).ok()
}

#[inline]
pub fn win_fence(bits: c_int, win: Handle) -> Option<c_int> {
    code("MPI_Win_fence", win, calls(win)?.fence(assert(bits)?))
}

#[inline]
pub fn win_start(group: Handle, bits: c_int, win: Handle) -> Option<c_int> {
    let group = borrow_object::<Group>(group)?.inner();
    code("MPI_Win_start", win, calls(win)?.start(group, assert(bits)?))
}

#[inline]
pub fn win_post(group: Handle, bits: c_int, win: Handle) -> Option<c_int> {
    let group = borrow_object::<Group>(group)?.inner();
    let window = borrow_object::<Win>(win)?.alone()?;
    code("MPI_Win_post", win, window.post(group, assert(bits)?))
}

#[inline]
pub fn win_wait(win: Handle) -> Option<c_int> {
    code("MPI_Win_wait", win, borrow_object::<Win>(win)?.alone()?.wait())
}

#[inline]
pub fn win_lock(lock_type: c_int, rank: c_int, bits: c_int, win: Handle) -> Option<c_int> {
    let lock_type = LockType::from_number(lock_type).ok()?;
    if rank < 0 {
        return None;
    }
    code("MPI_Win_lock", win, calls(win)?.lock(rank, lock_type, assert(bits)?))
}

#[inline]
pub fn win_lock_all(bits: c_int, win: Handle) -> Option<c_int> {
    code("MPI_Win_lock_all", win, calls(win)?.lock_all(assert(bits)?))
}

#[inline]
pub fn win_unlock(rank: c_int, win: Handle) -> Option<c_int> {
    if rank < 0 {
        return None;
    }
    code("MPI_Win_unlock", win, calls(win)?.unlock(rank))
}

#[inline]
pub fn win_flush(rank: c_int, win: Handle) -> Option<c_int> {
    if rank < 0 {
        return None;
    }
    code("MPI_Win_flush", win, calls(win)?.rest_of_flush(rank))
}

#[inline]
pub fn win_flush_local(rank: c_int, win: Handle) -> Option<c_int> {
    if rank < 0 {
        return None;
    }
    code("MPI_Win_flush_local", win, calls(win)?.rest_of_flush_local(rank))
}
