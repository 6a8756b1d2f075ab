//! The paths of operations to a target's memory.
//!
//! An operation is tried three times, and each try leaves the next one what it can't do:
//!
//! 1. [`fast`], in the caller's code: the memo knows the operation, and its target is mapped;
//! 2. [`again`]: the memo knows the operation;
//! 3. [`carry_out`], after all rules were checked. It notes in the memo how it was done.

mod direct;
pub(super) mod fast;
pub(super) mod mailbox;
mod message;
mod peer;
mod rdma;

use std::cell::RefCell;
use std::sync::Arc;

use super::claim::allow;
use super::memo::{Frame, Key, Means, Prepared};
use super::operation::{Checked, Operation};
use super::own::Reach;
use super::parts::Parts;
use super::peers::Target;
use crate::engine::{Ticket, check_counter};
use crate::error::Result;
use crate::route::Route;

/// How far an operation has come when its call returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Done,
    /// The target has carried it out, by its mailbox.
    Answered,
    /// The system has copied the data.
    Copied,
    /// The engine has the rest.
    Started,
    /// The network accesses the target's memory.
    Accessed,
}

impl Progress {
    /// Whether nothing is in flight.
    pub(super) fn is_done(self) -> bool {
        matches!(self, Progress::Done | Progress::Answered | Progress::Copied)
    }
}

/// Carries out an operation for which every rule holds. If a ticket is given, the ticket is told
/// when the operation is done. This is the only place that chooses by the route.
pub(super) fn carry_out(
    parts: &Parts,
    checked: Checked<'_>,
    ticket: Option<Arc<Ticket>>,
    key: Option<Key>,
) -> Result<Progress> {
    checked.permit.used();
    let checked = match (checked.is_empty(), checked.notify) {
        (true, None) => return Ok(Progress::Done),
        (true, Some(_)) => checked.bare(),
        (false, _) => checked,
    };
    match checked.target.route {
        Route::Direct => {
            let turn = match direct::reach(parts, &checked)? {
                Reach::Mapped(reached) => {
                    let done = direct::carry_out(parts, &checked, &reached, key)?;
                    if let Some(counter) = checked.notify {
                        parts.peers().control().notify(checked.target.rank, counter);
                    }
                    return Ok(done);
                }
                Reach::Private(turn) => Some(turn),
                Reach::Unknown => None,
            };
            // Otherwise the target's directory wasn't read yet, so the next operation is noted.
            note(parts, &checked, key.filter(Key::is_private), Means::Frame);
            if turn.is_some_and(|turn| peer::carry_out(parts, &checked, Some(turn))) {
                return Ok(Progress::Copied);
            }
        }
        Route::Peer => {
            note(parts, &checked, key, Means::Frame);
            if peer::carry_out(parts, &checked, None) {
                return Ok(Progress::Copied);
            }
        }
        Route::Rdma => {
            note(parts, &checked, key, Means::Registered);
            // An operation with a ticket may use other memory than its lender's. One that notifies
            // goes with its notification.
            let is_plain = ticket.is_none() && checked.notify.is_none();
            if is_plain && checked.is_lent() && rdma::carry_out(parts, &checked)? {
                return Ok(Progress::Accessed);
            }
        }
        Route::Message => note(parts, &checked, key, Means::Frame),
    }
    message::carry_out(parts, checked, ticket)
}

/// Notes a valid operation that doesn't go directly.
fn note(parts: &Parts, checked: &Checked<'_>, key: Option<Key>, means: fn(Frame) -> Means) {
    let Some(key) = key else { return };
    let frame = if key.is_same() { message::prepare(parts, checked) } else { None };
    parts.memo().keep(key, checked.action, frame.map_or(Means::Stream(checked.leaf), means));
}

/// Carries out an operation that the memo knows. `None` where it doesn't, or where memory, bounds
/// or the epoch have to be looked at by the rules, which report what is wrong. A waiter is settled
/// when its value has come, unless the operation is done at once.
#[inline(always)]
pub(super) fn again(
    parts: &Parts,
    operation: &Operation<'_>,
    waiter: Option<&Arc<Ticket>>,
) -> Option<Progress> {
    let target = parts.peers().get(operation.target)?;
    let permit = match parts.epochs().permit(target) {
        Some(permit) => permit,
        None => allow(parts, target).ok()?,
    };
    let control = parts.peers().control();
    let notify = match operation.notify {
        None => None,
        Some(index) => Some(check_counter(index, control.notifications()).ok()?),
    };
    let key = Key::of(parts.process().names(), target, operation)?;
    let slot = parts.memo().of(&key, operation.action);
    let prepared = slot.borrow();
    let done = match prepared.if_key(&key) {
        Some(Means::Stream(_)) => return None,
        None | Some(Means::Nothing) => None,
        Some(Means::Frame(_) | Means::Registered(_)) => {
            drop(prepared);
            let progress = frame(parts, target, slot, key, operation, waiter)?;
            permit.used();
            return Some(progress);
        }
        Some(direct) => direct::again(parts, target, direct, operation),
    };
    let done = done?;
    if let Some(counter) = notify {
        control.notify(target.rank, counter);
    }
    permit.used();
    Some(done)
}

/// As [`again`], for callers in generic code.
#[inline(never)]
pub(super) fn again_value(
    parts: &Parts,
    operation: &Operation<'_>,
    waiter: &Arc<Ticket>,
) -> Option<Progress> {
    again(parts, operation, Some(waiter))
}

/// Carries out an operation that the memo has as one frame.
#[inline(never)]
fn frame(
    parts: &Parts,
    target: &Target,
    slot: &RefCell<Prepared>,
    key: Key,
    operation: &Operation<'_>,
    waiter: Option<&Arc<Ticket>>,
) -> Option<Progress> {
    renew(parts, target, slot, key, operation.count as u64)?;
    match slot.borrow().if_key(&key)? {
        Means::Frame(frame) => {
            let copied = match target.route {
                // A frame on the direct route is of memory that is attached and private.
                Route::Peer | Route::Direct => peer::again(parts, target, frame, operation),
                Route::Rdma | Route::Message => None,
            };
            let progress =
                copied.or_else(|| message::again(parts, target, frame, operation, waiter));
            if progress == Some(Progress::Answered) {
                parts.memo().keep_letter(key, frame);
            }
            progress
        }
        Means::Registered(frame) => rdma::again(parts, target, frame, operation, waiter),
        _ => None,
    }
}

/// Makes sure that an operation that the memo has as one frame has this number of elements.
#[inline(always)]
fn renew(
    parts: &Parts,
    target: &Target,
    slot: &RefCell<Prepared>,
    key: Key,
    count: u64,
) -> Option<()> {
    if slot.borrow().if_key(&key)?.frame()?.count != count {
        // The number of elements is all that differs.
        let means = slot.borrow().if_key(&key)?.renewed(parts, target, count)?;
        slot.replace(Prepared::new(key, means));
    }
    Some(())
}

impl Means {
    /// The frame of an operation that goes as one.
    fn frame(&self) -> Option<&Frame> {
        match self {
            Means::Frame(frame) | Means::Registered(frame) => Some(frame),
            _ => None,
        }
    }

    /// The means for another number of the same elements.
    #[cold]
    fn renewed(&self, parts: &Parts, target: &Target, count: u64) -> Option<Means> {
        let frame = Frame::new(parts, target, &self.frame()?.datatype, count)?;
        Some(match self {
            Means::Registered(_) => Means::Registered(frame),
            _ => Means::Frame(frame),
        })
    }
}
