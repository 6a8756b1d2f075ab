//! The inlined attempt: an operation that the memo knows, on a target that is mapped.
//!
//! All but [`locked`] is in the caller's code, takes scalars and captures nothing: an operand
//! in a struct, or captured by a closure, would be written in words and read as a whole, for which
//! the processor waits (docs/tuning.md, "Scalar arguments").

use shipable::Element;
use shipable::reduce::Op;

use super::direct::{PIECE, combine};
use crate::control::Control;
use crate::memory::Span;
use crate::notification::Notification;
use crate::origin::What;
use crate::types::{TargetType, Type};
use crate::window::claim::allow;
use crate::window::memo::{KnownRun, Means};
use crate::window::operation::Action;
use crate::window::parts::Parts;
use crate::window::peers::Target;
use crate::window::state::{Access, EpochState};

/// The byte of a displacement in a target's window.
#[inline(always)]
pub(super) fn base(target: &Target, displacement: i64) -> Option<i64> {
    match displacement >= 0 {
        true => displacement.checked_mul(i64::from(target.measures.unit)),
        false => None,
    }
}

/// A mapped target that lock_all hasn't locked yet, which is why the attempt failed.
#[inline(always)]
pub(in crate::window) fn unlocked(parts: &Parts, target: i32) -> Option<&Target> {
    let EpochState::LockAll { .. } = parts.epochs().state() else { return None };
    let target = parts.peers().get(target)?;
    let is_open = target.access.get() != Access::Closed;
    (!is_open && target.mapping.get().is_some()).then_some(target)
}

/// Another attempt, with the target's lock. An error is left to the full check, which finds it
/// again.
#[cold]
#[inline(never)]
pub(in crate::window) fn locked<R>(
    parts: &Parts,
    target: &Target,
    attempt: impl FnOnce() -> Option<R>,
) -> Option<R> {
    allow(parts, target).ok()?;
    attempt()
}

/// A counter of a target that this rank raises itself.
struct Counter<'a> {
    control: &'a Control,
    owner: u32,
    notification: Notification<'a>,
}

/// The counter with an index, if the target is mapped.
#[inline(always)]
fn counter(parts: &Parts, rank: i32, index: i32) -> Option<Counter<'_>> {
    parts.peers().known(rank)?.mapping.get()?;
    // The argument is there before the number in the target, which would have to be loaded.
    let (control, owner) = (parts.peers().control(), rank as u32);
    let index = u16::try_from(index).ok().filter(|index| *index < control.notifications())?;
    Some(Counter { control, owner, notification: control.notification(owner, index) })
}

impl Counter<'_> {
    /// Raises it, after an operation.
    #[inline(always)]
    fn raise(&self) {
        if self.notification.raise() {
            self.control.wake_owner(self.owner);
        }
    }
}

/// A put or get.
#[inline(always)]
#[allow(clippy::too_many_arguments)] // MPI's
pub(in crate::window) fn transfer(
    parts: &Parts,
    action: Action,
    memory: Span,
    what: What<'_>,
    target: i32,
    displacement: i64,
    count: i64,
    target_type: TargetType<'_>,
) -> Option<()> {
    let TargetType::Own(own) = target_type else { return None };
    let run = parts.memo().run(own)?;
    copy(parts, action, memory, what, target, displacement, count, own, run)
}

/// A put or get that raises a counter of the target afterwards.
#[inline(always)]
#[allow(clippy::too_many_arguments)] // MPI's
pub(in crate::window) fn transfer_notify(
    parts: &Parts,
    action: Action,
    memory: Span,
    what: What<'_>,
    rank: i32,
    displacement: i64,
    count: i64,
    target_type: TargetType<'_>,
    notify: i32,
) -> Option<()> {
    let TargetType::Own(own) = target_type else { return None };
    let run = parts.memo().run(own)?;
    let target = parts.peers().known(rank)?;
    let counter = counter(parts, rank, notify)?;
    copy_with(parts, action, memory, what, target, displacement, count, own, run)?;
    counter.raise();
    Some(())
}

/// A put or get of elements that are a run, on a target that is mapped.
#[inline(always)]
#[allow(clippy::too_many_arguments)] // MPI's
pub(in crate::window) fn copy(
    parts: &Parts,
    action: Action,
    memory: Span,
    what: What<'_>,
    target: i32,
    displacement: i64,
    count: i64,
    own: &Type,
    run: KnownRun,
) -> Option<()> {
    let target = parts.peers().known(target)?;
    copy_with(parts, action, memory, what, target, displacement, count, own, run)
}

/// A put or get of elements that are a run, on a target that the caller has looked up.
#[inline(always)]
#[allow(clippy::too_many_arguments)] // MPI's
fn copy_with(
    parts: &Parts,
    action: Action,
    memory: Span,
    what: What<'_>,
    target: &Target,
    displacement: i64,
    count: i64,
    own: &Type,
    run: KnownRun,
) -> Option<()> {
    let mapping = target.mapping.get()?;
    let permit = parts.epochs().permit(target)?;
    let is_own = own.is_of(parts.process().names());
    if !is_own || !what.is_plain(count as u64, own.compiled()) {
        return None;
    }
    let len = run.len(count)?;
    if len != memory.len() {
        return None;
    }
    // No memory has a negative displacement.
    let far = displacement.checked_mul(i64::from(target.measures.unit))?;
    let copied = match action {
        Action::Put => mapping.span.copy_run(far, memory, 0, len),
        _ => memory.copy_run(0, mapping.span, far, len),
    };
    if !copied {
        return None;
    }
    permit.used();
    Some(())
}

/// An accumulate, or an operation that fetches as well, whose operands and result are elements of
/// the target type itself.
#[inline(always)]
#[allow(clippy::too_many_arguments)] // MPI's
pub(in crate::window) fn accumulate(
    parts: &Parts,
    action: Action,
    memory: Span,
    what: What<'_>,
    result: &Option<(Span, What<'_>)>,
    target: i32,
    displacement: i64,
    count: i64,
    target_type: TargetType<'_>,
) -> Option<()> {
    let TargetType::Own(own) = target_type else { return None };
    let target = parts.peers().known(target)?;
    let mapping = target.mapping.get()?;
    let permit = parts.epochs().permit(target)?;
    let prepared = parts.memo().direct(action, own).borrow();
    let Some(Means::Combine(run, reduction)) = prepared.if_direct(action, own) else { return None };
    let is_own = own.is_of(parts.process().names());
    if !is_own || !what.is_plain(count as u64, own.compiled()) {
        return None;
    }
    let len = run.len(count)?;
    if len != memory.len() || len > PIECE {
        return None;
    }
    let room = match result {
        None => None,
        Some((room, what)) => {
            if !what.is_plain(count as u64, own.compiled()) || room.len() != len {
                return None;
            }
            Some(*room)
        }
    };
    let far = base(target, displacement)?.checked_add(run.first)?;
    combine(parts, target, reduction, (run.first, len), (mapping.span, far), memory, room)?;
    permit.used();
    Some(())
}

/// An accumulate, or an operation that fetches as well, that raises a counter of the target
/// afterwards.
#[inline(always)]
#[allow(clippy::too_many_arguments)] // MPI's
pub(in crate::window) fn accumulate_notify(
    parts: &Parts,
    action: Action,
    memory: Span,
    what: What<'_>,
    result: &Option<(Span, What<'_>)>,
    target: i32,
    displacement: i64,
    count: i64,
    target_type: TargetType<'_>,
    notify: i32,
) -> Option<()> {
    let counter = counter(parts, target, notify)?;
    accumulate(parts, action, memory, what, result, target, displacement, count, target_type)?;
    counter.raise();
    Some(())
}

/// A fetch_and_op of one element, given by value.
#[inline(always)]
pub(in crate::window) fn fetch<T: Element>(
    parts: &Parts,
    operand: &T,
    target: i32,
    displacement: i64,
    op: Op,
) -> Option<T> {
    let action = Action::FetchAndOp(op);
    let target = parts.peers().known(target)?;
    let mapping = target.mapping.get()?;
    let permit = parts.epochs().permit(target)?;
    let prepared = parts.memo().value(action).borrow();
    let Some(Means::Combine(_, reduction)) = prepared.if_value::<T>(action) else {
        return None;
    };
    let at = base(target, displacement)?;
    let _held = parts.peers().control().accumulate(target.rank);
    let old = mapping.span.fetch(reduction, at, operand)?;
    permit.used();
    Some(old)
}

/// A compare_and_swap of one element, given by value.
#[inline(always)]
pub(in crate::window) fn swap<T: Element>(
    parts: &Parts,
    new: &T,
    compare: &T,
    target: i32,
    displacement: i64,
) -> Option<T> {
    let target = parts.peers().known(target)?;
    let mapping = target.mapping.get()?;
    let permit = parts.epochs().permit(target)?;
    let known = parts.memo().value(Action::CompareAndSwap);
    // A copy ends the borrow at once, so that the memo's count of borrows needn't be written.
    let Some(&Means::Swap(swap)) = known.borrow().if_swap::<T>() else { return None };
    // No memory has a negative displacement.
    let at = displacement.checked_mul(i64::from(target.measures.unit))?;
    let _held = parts.peers().control().accumulate(target.rank);
    let old = mapping.span.compare_and_swap(&swap, at, compare, new)?;
    permit.used();
    Some(old)
}

/// A put or get of elements of the target type itself, by pointer.
#[inline(always)]
pub(in crate::window) fn transfer_places(
    parts: &Parts,
    action: Action,
    place: *mut u8,
    rank: i32,
    displacement: i64,
    count: i64,
    own: &Type,
) -> Option<()> {
    let run = parts.memo().run(own)?;
    let target = parts.peers().known(rank)?;
    let mapping = target.mapping.get()?;
    let permit = parts.epochs().permit(target)?;
    let len = run.len(count)?;
    if !own.is_of(parts.process().names()) {
        return None;
    }
    // No memory has a negative displacement.
    let at = displacement.checked_mul(i64::from(target.measures.unit))?;
    let there = mapping.span.part_at(at, len)?;
    permit.used();
    match action {
        Action::Put => there.fill_from(place),
        _ => there.copy_to(place),
    }
    Some(())
}

/// An accumulate of elements of the target type itself, by pointers: to the operands, and to room
/// for the items that were there.
#[inline(always)]
#[allow(clippy::too_many_arguments)] // MPI's
pub(in crate::window) fn accumulate_places(
    parts: &Parts,
    action: Action,
    operands: *mut u8,
    room: Option<*mut u8>,
    rank: i32,
    displacement: i64,
    count: i64,
    own: &Type,
) -> Option<()> {
    let known = parts.memo().combine(action, own)?;
    let target = parts.peers().known(rank)?;
    let mapping = target.mapping.get()?;
    let permit = parts.epochs().permit(target)?;
    let len = known.len(count).filter(|len| *len <= PIECE)?;
    if !own.is_of(parts.process().names()) {
        return None;
    }
    // No memory has a negative displacement.
    let at = displacement.checked_mul(i64::from(target.measures.unit))?;
    // Found before the lock, after which nothing fails: so no argument is kept for the full check.
    let there = mapping.span.part_at(at, len)?;
    permit.used();
    // The argument is there before the number in the target, which would have to be loaded.
    let _held = parts.peers().control().accumulate(rank as u32);
    // The length is a constant in the first branch, which has no call for the copy then.
    let combined = match len {
        8 => there.combine_places(&known.combiner, operands, room, 8),
        len => there.combine_places(&known.combiner, operands, room, len),
    };
    assert!(combined.is_some(), "elements that were found in the target aren't there");
    Some(())
}

/// A compare_and_swap of one element of the target type itself, by pointer.
#[inline(always)]
pub(in crate::window) fn swap_place(
    parts: &Parts,
    [compare, new, old]: [*mut u8; 3],
    rank: i32,
    displacement: i64,
    own: &Type,
) -> Option<()> {
    let swap = parts.memo().swap(own)?;
    let target = parts.peers().known(rank)?;
    let mapping = target.mapping.get()?;
    let permit = parts.epochs().permit(target)?;
    if !own.is_of(parts.process().names()) {
        return None;
    }
    // No memory has a negative displacement.
    let at = displacement.checked_mul(i64::from(target.measures.unit))?;
    // Found before the lock, after which nothing fails: so no argument is kept for the full check.
    let there = mapping.span.part_at(at, swap.element())?;
    permit.used();
    // The argument is there before the number in the target, which would have to be loaded.
    let _held = parts.peers().control().accumulate(rank as u32);
    let swapped = there.swap_places(&swap, compare, new, old);
    assert!(swapped, "an element that was found in the target isn't there");
    Some(())
}
