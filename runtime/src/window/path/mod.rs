//! The paths of operations to a target's memory, each a [`Path`] in a file of its own: what the
//! last two rungs of the ladder do.
//!
//! [`PATHS`] has them from the one that takes least to the one that takes everything, and
//! [`carry_out`] and [`again`] try them in this order. A new path is a file and a line there.

mod direct;
pub(super) mod mailbox;
mod message;
mod peer;
mod rdma;

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::claim::allow;
use super::memo::{Frame, Key, Means, Prepared};
use super::operation::{Checked, Operation};
use super::parts::Parts;
use super::peers::Target;
use crate::engine::{Ticket, check_counter};
use crate::error::Result;
use crate::route::Route;

pub(super) use direct::PIECE;

/// A path of operations to a target's memory.
pub(super) struct Path {
    /// Its name, for explanations.
    pub name: &'static str,
    /// Why an operation of so many bytes doesn't go by it; `None` if it may.
    pub misfit: fn(&Parts, &Target, &Operation<'_>, u64) -> Option<&'static str>,
    /// Carries out an operation for which every rule holds. `None`, and the origin's memory is
    /// still there, where another path has to do it.
    carry_out: fn(&Parts, &mut Checked<'_>, &mut Ways) -> Result<Option<Progress>>,
    /// Carries out an operation that the memo has as one frame. It breaks off without progress
    /// where only the full check finds a way, and continues where another path has to do it.
    again: fn(&Parts, &Target, &Frame, &Operation<'_>, Waiter<'_>) -> Again,
}

/// From the path that takes least to the one that takes everything.
pub(super) static PATHS: [Path; 5] =
    [direct::PATH, rdma::PATH, peer::PATH, mailbox::PATH, message::PATH];

/// What [`Path::carry_out`] may use: the ticket, which is told when the operation is done, and the
/// key by which the memo will know it.
pub(super) struct Ways {
    ticket: Option<Arc<Ticket>>,
    key: Option<Key>,
}

/// Who is settled when a fetched value has come, unless the operation is done at once.
type Waiter<'a> = Option<&'a Arc<Ticket>>;

/// What [`Path::again`] has done.
type Again = ControlFlow<Option<Progress>>;

/// The operation isn't one that the memo has as a frame.
fn never(_: &Parts, _: &Target, _: &Frame, _: &Operation<'_>, _: Waiter<'_>) -> Again {
    ControlFlow::Continue(())
}

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

    /// The name of the path that an operation took, on a target with this route.
    pub(super) fn path(self, route: Route) -> &'static str {
        let path = match self {
            Progress::Done if route == Route::Direct => direct::PATH,
            Progress::Accessed => rdma::PATH,
            Progress::Copied => peer::PATH,
            Progress::Answered => mailbox::PATH,
            Progress::Done | Progress::Started => message::PATH,
        };
        path.name
    }
}

/// Carries out an operation for which every rule holds. If a ticket is given, the ticket is told
/// when the operation is done.
pub(super) fn carry_out(
    parts: &Parts,
    checked: Checked<'_>,
    ticket: Option<Arc<Ticket>>,
    key: Option<Key>,
) -> Result<Progress> {
    checked.permit.used();
    let mut checked = match (checked.is_empty(), checked.notify) {
        (true, None) => return Ok(Progress::Done),
        (true, Some(_)) => checked.bare(),
        (false, _) => checked,
    };
    let mut ways = Ways { ticket, key };
    for path in &PATHS {
        if let Some(progress) = (path.carry_out)(parts, &mut checked, &mut ways)? {
            return Ok(progress);
        }
    }
    unreachable!("a message carries every operation")
}

impl Ways {
    /// Notes a valid operation that doesn't go directly.
    fn note(&mut self, parts: &Parts, checked: &Checked<'_>) {
        let Some(key) = self.key.take() else { return };
        let frame = if key.is_same() { message::prepare(parts, checked) } else { None };
        parts.memo().keep(key, frame.map_or(Means::Stream(checked.leaf), Means::Frame), false);
    }
}

/// Carries out an operation that the memo knows. `None` where it doesn't, or where memory, bounds
/// or the epoch have to be looked at by the rules, which report what is wrong. A waiter is settled
/// when its value has come, unless the operation is done at once.
#[inline]
pub(super) fn again(
    parts: &Parts,
    target: &Target,
    operation: &Operation<'_>,
    waiter: Waiter<'_>,
) -> Option<Progress> {
    let permit = match parts.epochs().permit(target) {
        Some(permit) => permit,
        None => allow(parts, target).ok()?,
    };
    let control = parts.peers().control();
    let notify = match operation.call.notify {
        None => None,
        Some(index) => Some(check_counter(index, control.notifications()).ok()?),
    };
    let key = Key::of(parts.process().names(), target, operation)?;
    let slot = parts.memo().of(&key);
    let prepared = slot.borrow();
    let done = match prepared.if_key(&key) {
        Some(Means::Stream(_)) => return None,
        None | Some(Means::Nothing) => None,
        Some(Means::Frame(_)) => {
            drop(prepared);
            let progress = frame(parts, target, (slot, key), operation, waiter)?;
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

/// Carries out an operation that the memo has as one frame.
#[inline(never)]
fn frame(
    parts: &Parts,
    target: &Target,
    (slot, key): (&RefCell<Prepared>, Key),
    operation: &Operation<'_>,
    waiter: Waiter<'_>,
) -> Option<Progress> {
    renew(target, slot, key, operation.call.count as u64)?;
    let prepared = slot.borrow();
    let Means::Frame(frame) = prepared.if_key(&key)? else { return None };
    debug_assert!(frame.is_for(target), "targets of one class have one representation");
    for path in &PATHS {
        if let ControlFlow::Break(progress) = (path.again)(parts, target, frame, operation, waiter)
        {
            if progress == Some(Progress::Answered) {
                parts.memo().keep_letter(key, frame);
            }
            return progress;
        }
    }
    None
}

/// Makes sure that an operation that the memo has as one frame has this number of elements.
#[inline]
fn renew(target: &Target, slot: &RefCell<Prepared>, key: Key, count: u64) -> Option<()> {
    let datatype = match slot.borrow().if_key(&key)? {
        Means::Frame(frame) if frame.count == count => return Some(()),
        Means::Frame(frame) => frame.datatype.clone(),
        _ => return None,
    };
    // The number of elements is all that differs.
    let frame = Frame::new(target, &datatype, count)?;
    slot.replace(Prepared::new(key, Means::Frame(frame)));
    Some(())
}
