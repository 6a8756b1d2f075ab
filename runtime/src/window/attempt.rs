//! The attempt: an operation that the memo knows, on a target that is mapped. It is the first rung
//! of the ladder (`issue`), for calls of scopes, by pointer and of C alike.
//!
//! All but [`locked`] is in the caller's code, so that a call that passes its operands by value
//! keeps them in registers: a struct in memory would be written in words and read as a whole, for
//! which the processor waits (docs/tuning.md, "Scalar arguments").

use super::access::Permit;
use super::call::{Action, Call};
use super::claim::allow;
use super::near::{Near, Sides};
use super::parts::Parts;
use super::path::PIECE;
use super::peers::Target;
use super::state::{Access, EpochState};
use crate::control::Control;
use crate::memory::Span;
use crate::notification::Notification;

/// A target that is mapped, in an epoch that allows operations on it.
struct Ready<'p> {
    target: &'p Target,
    span: Span,
    permit: Permit<'p>,
}

/// What all attempts ask of the target. An error is left to the full check, which finds it again.
///
/// That the target type is one of this rank need not be asked: the memo knows its number, which no
/// type of another rank has.
#[inline(always)]
fn ready<'p>(parts: &'p Parts, call: &Call<'_>) -> Option<Ready<'p>> {
    let target = parts.peers().known(call.target)?;
    let span = target.mapping.get()?.span;
    Some(Ready { target, span, permit: parts.epochs().permit(target)? })
}

impl Ready<'_> {
    /// `len` bytes of the target's memory, from the call's displacement on.
    #[inline(always)]
    fn there(&self, call: &Call<'_>, len: u64) -> Option<Span> {
        let at = call.at.checked_mul(i64::from(self.target.measures.unit))?;
        // A negative place is a number above every length.
        self.span.part(at as u64, len)
    }
}

/// Makes an operation at once. Returns `None` if it has done nothing.
#[inline(always)]
pub(super) fn attempt<'a, N: Near<'a>>(
    parts: &'a Parts,
    call: Call<'a>,
    sides: Sides<N>,
) -> Option<()> {
    let counter = match call.notify {
        None => None,
        Some(index) => Some(counter(parts, call.target, index)?),
    };
    match call.action {
        Action::Put | Action::Get => copy(parts, &call, &sides),
        Action::CompareAndSwap => swap(parts, &call, &sides),
        _ => combine(parts, &call, &sides),
    }?;
    if let Some(counter) = counter {
        counter.raise();
    }
    Some(())
}

/// A counter of a target that this rank raises itself.
struct Counter<'p> {
    control: &'p Control,
    owner: u32,
    notification: Notification<'p>,
}

/// The counter with an index, if the target is mapped.
#[inline]
fn counter(parts: &Parts, rank: i32, index: i32) -> Option<Counter<'_>> {
    parts.peers().known(rank)?.mapping.get()?;
    // The argument is there before the number in the target, which would have to be loaded.
    let (control, owner) = (parts.peers().control(), rank as u32);
    let index = u16::try_from(index).ok().filter(|index| *index < control.notifications())?;
    Some(Counter { control, owner, notification: control.notification(owner, index) })
}

impl Counter<'_> {
    /// Raises it, after an operation.
    #[inline]
    fn raise(&self) {
        if self.notification.raise() {
            self.control.wake_owner(self.owner);
        }
    }
}

/// A put or get.
#[inline(always)]
fn copy<'a, N: Near<'a>>(parts: &'a Parts, call: &Call<'a>, sides: &Sides<N>) -> Option<()> {
    let own = call.own()?;
    let (is_known, run) = parts.memo().copied(own);
    is_known.then_some(())?;
    let len = run.len(call.count)?;
    let is_put = call.action == Action::Put;
    let near = if is_put { sides.origin } else { sides.result };
    let here = near?.run(call.count, own, len)?;
    let ready = ready(parts, call)?;
    let there = ready.there(call, len)?;
    ready.permit.used();
    match is_put {
        true => there.fill_from(here),
        false => there.copy_to(here),
    }
    Some(())
}

/// An accumulate, or an operation that fetches as well.
#[inline(always)]
fn combine<'a, N: Near<'a>>(parts: &'a Parts, call: &Call<'a>, sides: &Sides<N>) -> Option<()> {
    let own = call.own()?;
    let (is_known, (run, combiner)) = parts.memo().combined(call.action, own);
    is_known.then_some(())?;
    let ready = ready(parts, call)?;
    let len = run.len(call.count).filter(|len| *len <= PIECE)?;
    let operands = sides.origin?.run(call.count, own, len)?;
    let room = match sides.result {
        None => None,
        Some(room) => Some(room.run(call.count, own, len)?),
    };
    // Found before the lock, after which nothing fails: so no argument is kept for the full check.
    let there = ready.there(call, len)?;
    ready.permit.used();
    // The argument is there before the number in the target, which would have to be loaded.
    let _held = parts.peers().control().accumulate(call.target as u32);
    // The length is a constant in the first branch, which has no call for the copy then.
    let combined = match len {
        8 => there.combine_places(&combiner, operands, room, 8),
        len => there.combine_places(&combiner, operands, room, len),
    };
    assert!(combined.is_some(), "elements that were found in the target aren't there");
    Some(())
}

/// A compare_and_swap.
#[inline(always)]
fn swap<'a, N: Near<'a>>(parts: &'a Parts, call: &Call<'a>, sides: &Sides<N>) -> Option<()> {
    let own = call.own()?;
    let (is_known, swap) = parts.memo().swapped(own);
    is_known.then_some(())?;
    let ready = ready(parts, call)?;
    let len = match N::LEN {
        None => swap.element(),
        Some(len) => Some(len).filter(|len| *len == swap.element())?,
    };
    let element = |near: Option<N>| near?.run(1, own, len);
    let [compare, new, old] =
        [element(sides.compare)?, element(sides.origin)?, element(sides.result)?];
    // Found before the lock, after which nothing fails: so no argument is kept for the full check.
    let there = ready.there(call, len)?;
    ready.permit.used();
    // The argument is there before the number in the target, which would have to be loaded.
    let _held = parts.peers().control().accumulate(call.target as u32);
    let swapped = there.swap_places(&swap, len, [compare, new, old]);
    assert!(swapped, "an element that was found in the target isn't there");
    Some(())
}

/// Whether a mapped target awaits the lock that lock_all promised, which is why an attempt failed.
#[inline]
pub(super) fn awaits_lock(parts: &Parts, target: &Target) -> bool {
    let is_in_lock_all = matches!(parts.epochs().state(), EpochState::LockAll { .. });
    is_in_lock_all && target.epochs.access.get() == Access::Closed && target.mapping.get().is_some()
}

/// Another attempt, with the target's lock. An error is left to the full check, which finds it
/// again.
#[cold]
#[inline(never)]
pub(super) fn locked<R>(
    parts: &Parts,
    target: &Target,
    attempt: impl FnOnce() -> Option<R>,
) -> Option<R> {
    allow(parts, target).ok()?;
    attempt()
}
