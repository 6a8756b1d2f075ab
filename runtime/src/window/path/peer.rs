//! Puts and gets that the system copies to or from the private memory of a like rank of this host
//! (process_vm_readv and process_vm_writev). The target takes no part, and may compute meanwhile.
//! They are done when their call returns.
//!
//! A target that is in a call takes a message sooner than the system copies its data, so it gets
//! one. Messages also carry shorter puts and gets, those of short runs, and those that the system
//! doesn't copy (see [`longshore_transport::peer_memory`]).

use longshore_transport::Access;

use super::Progress;
use crate::job::Activity;
use crate::memory::Side;
use crate::process::Process;
use crate::route::Route;
use crate::window::directory::Turn;
use crate::window::memo::Frame;
use crate::window::operation::{Action, Checked, Operation};
use crate::window::own::Reach;
use crate::window::parts::Parts;
use crate::window::peers::Target;

/// The least length in bytes, and the least average length of runs. The system finds the pages of
/// each run, which takes as long as a copy of some KiB (docs/tuning.md, "Copies by the system").
const LONG: u64 = 4 << 10;

/// Does a put or get by a copy of the system, if that pays and is possible. Returns false
/// otherwise; the target may have some of the bytes then. A turn keeps attached memory attached.
pub(super) fn carry_out(parts: &Parts, checked: &Checked<'_>, turn: Option<Turn<'_>>) -> bool {
    try_out(parts, checked, turn).is_some()
}

/// As [`carry_out`]. An error is one of types, which a message meets again.
fn try_out(parts: &Parts, checked: &Checked<'_>, turn: Option<Turn<'_>>) -> Option<()> {
    let (process, target) = (parts.process(), checked.target);
    let (access, side) = (access(checked.action)?, checked.near()?);
    let (near, count) = (side.elements.datatype.native(), side.elements.count);
    let len = near.stream_length(count).ok()?;
    let most = usize::try_from(len / LONG).unwrap_or(usize::MAX);
    if len < LONG || !may_go(parts, target) {
        return None;
    }
    let far = checked.target_type.with_native(&process.me().architecture, |far| {
        Ok(if far.is_all_copy() { far.runs(checked.count, most) } else { None })
    });
    let near = if near.is_all_copy() { near.runs(count, most) } else { None };
    let (far, near) = (far.ok()??, near?);
    let address = address(target, turn.as_ref())?;
    let place = |(at, len): (i64, u64)| {
        Some((address.checked_add_signed(checked.base.checked_add(at)?)?, len))
    };
    let far = far.into_iter().map(place).collect::<Option<Vec<_>>>()?;
    let near = Side { span: side.elements.span, runs: &near };
    if !near.exchange(process.peer_memory(), target.peer, access, &far) {
        return None;
    }
    if let Some(counter) = checked.notify {
        parts.peers().control().notify(target.rank, counter);
    }
    Some(())
}

/// The address in the target's process at which its window begins. In a dynamic window
/// displacements are addresses, and a turn is needed.
fn address(target: &Target, turn: Option<&Turn<'_>>) -> Option<u64> {
    target.address().or(turn.map(|_| 0))
}

/// Carries out a put or get that the memo knows as one frame.
pub(super) fn again(
    parts: &Parts,
    target: &Target,
    frame: &Frame,
    operation: &Operation<'_>,
) -> Option<Progress> {
    if frame.len < LONG {
        return None;
    }
    let access = access(operation.action)?;
    let (start, end) = frame.bytes(target, operation.displacement)?;
    let (is_one, span) = ((end - start) as u64 == frame.len, operation.moved()?.span);
    if !is_one || !frame.is_memory(span) || !may_go(parts, target) {
        return None;
    }
    let turn = match target.route {
        Route::Direct => match parts.memory().reach(target, (start.into(), end.into())).ok()? {
            Reach::Private(turn) => Some(turn),
            Reach::Mapped(_) | Reach::Unknown => return None,
        },
        _ => None,
    };
    let address = address(target, turn.as_ref())?;
    let near = Side { span, runs: &[(frame.first, frame.len)] };
    let far = [(address.checked_add_signed(start)?, frame.len)];
    let memory = parts.process().peer_memory();
    if !near.exchange(memory, target.peer, access, &far) {
        return None;
    }
    if let Some(counter) = operation.notify {
        // The memo knows only operations whose counter the window has.
        parts.peers().control().notify(target.rank, counter as u16);
    }
    Some(Progress::Copied)
}

/// Whether a copy by the system may serve a target now. When the job ends, operations are given up.
fn may_go(parts: &Parts, target: &Target) -> bool {
    let process = parts.process();
    !answers(process, target.peer) && process.check_job().is_ok()
}

/// Whether a rank is in a call, in which it answers messages at once. Where ranks have too few
/// processors to poll, it may have to wait for one.
fn answers(process: &Process, peer: u32) -> bool {
    let is_in_call = || process.segment().noted(peer).code != Activity::Computing.code();
    process.mailboxes().is_some() && is_in_call()
}

fn access(action: Action) -> Option<Access> {
    match action {
        Action::Put => Some(Access::Write),
        Action::Get => Some(Access::Read),
        _ => None,
    }
}
