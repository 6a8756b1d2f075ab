//! The attempts of the operations on windows that programs make most, and of their flushes.
//!
//! An attempt is all in the export of its function, without a call but of the loops that copy and
//! combine elements. It returns `None` if it has done nothing. Then the export jumps to the
//! [quick](crate::call::quick) way, which makes the rest of the call. So a call that is made by its
//! attempt keeps no arguments for the rest: each store would delay the locked instruction of a
//! flush (docs/tuning.md, "Attempts of calls by C").
#![allow(unsafe_code)]

use std::ffi::c_int;

use longshore::{Op, TargetType};

use crate::call::quick::{both, calls, is_memory, read, written};
use crate::datatype::known;
use crate::edge::arg::Buffer;
use crate::edge::elements::{Elements, Fetch, Remote, Swap};
use crate::edge::handle::Handle;
use crate::operation::predefined;
use crate::window::rma::is_counted;

#[inline(always)]
pub fn accumulate(origin: Elements, remote: Remote, op: Handle, win: Handle) -> Option<()> {
    let ((from, target), calls) = (both(known, origin, remote)?, calls(win)?);
    let Remote { rank, disp, count, .. } = remote;
    if !is_memory(origin.buffer) || count == 0 || is_counted(origin.datatype) {
        return None;
    }
    let (op, there) = (predefined(op)?, (count, TargetType::Own(target)));
    // SAFETY: the promise of `Buffer::new`.
    let described = unsafe { calls.accumulating(read(from), rank, disp, there, op) };
    described.attempt().then_some(())
}

#[inline(always)]
pub fn get_accumulate(
    origin: Elements,
    result: Elements,
    remote: Remote,
    op: Handle,
    win: Handle,
) -> Option<()> {
    let ((to, target), calls) = (both(known, result, remote)?, calls(win)?);
    let Remote { rank, disp, count, .. } = remote;
    if !is_memory(result.buffer) || count == 0 || is_counted(result.datatype) {
        return None;
    }
    let op = predefined(op)?;
    // An atomic get ignores its origin. Operands of another type are left to the rest of the call.
    let is_alike = is_memory(origin.buffer) && origin.datatype == result.datatype;
    if op != Op::NoOp && !is_alike {
        return None;
    }
    let (from, there) = (origin.of(to.datatype), (count, TargetType::Own(target)));
    // SAFETY: the promise of `Buffer::new`.
    let described =
        unsafe { calls.get_accumulating(read(from), written(to), rank, disp, there, op) };
    described.attempt().then_some(())
}

#[inline(always)]
pub fn fetch_and_op(fetch: Fetch, op: Handle, win: Handle) -> Option<()> {
    let Fetch { origin, result, datatype, rank, disp } = fetch;
    let (own, calls, op) = (known(datatype)?, calls(win)?, predefined(op)?);
    if !is_memory(origin) || !is_memory(result) || is_counted(datatype) {
        return None;
    }
    let (from, to) = (origin.address(), result.address());
    // SAFETY: the promise of `Buffer::new`.
    unsafe { calls.fetching(from, to, own, rank, disp, op) }.attempt().then_some(())
}

#[inline(always)]
pub fn compare_and_swap(swap: Swap, win: Handle) -> Option<()> {
    let Swap { origin, compare, result, datatype, rank, disp } = swap;
    let (own, calls) = (known(datatype)?, calls(win)?);
    let are_memory = is_memory(origin) && is_memory(compare) && is_memory(result);
    if !are_memory || is_counted(datatype) {
        return None;
    }
    let [new, old, to] = [origin, compare, result].map(Buffer::address);
    // SAFETY: the promise of `Buffer::new`.
    unsafe { calls.swapping([new, old], to, own, rank, disp) }.attempt().then_some(())
}

#[inline]
pub fn win_flush(rank: c_int, win: Handle) -> Option<()> {
    calls(win)?.attempt_flush(rank).then_some(())
}

#[inline]
pub fn win_flush_local(rank: c_int, win: Handle) -> Option<()> {
    calls(win)?.attempt_flush_local(rank).then_some(())
}
