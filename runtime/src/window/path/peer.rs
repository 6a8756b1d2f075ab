//! Puts and gets that the system copies to or from the private memory of a related rank of this
//! host (process_vm_readv and process_vm_writev). The target takes no part, and may compute
//! meanwhile. They are done when their call returns.
//!
//! A target that is in a call takes a message sooner than the system copies its data, so it gets
//! one. Messages also carry shorter puts and gets, those of short runs, and those that the system
//! doesn't copy (see [`longshore_transport::peer_memory`]).
//!
//! Memory that keeps its address, such as a C program's, is found in the segment by its address if
//! `Rank::alloc_mem` allocated it. Other memory of the program's stays where it is, and its pages
//! stay the program's own. An earlier version moved them into the segment, under the same
//! addresses. That broke right programs: mremap, madvise, mlock, direct I/O, raw forks and signal
//! handlers met pages that weren't private. Related ranks of the host reach such memory by the
//! route *peer*, as far as their data are equal:
//!
//! - Locks, posts and completes pass through the control blocks in the segment, as by the direct
//!   route.
//! - Short operations go by mailbox, or as frames. So do atomic ones of any length, in their order.
//! - A put or get of 4 KiB or more, whose runs have as much on average, is copied by the system,
//!   in one call for up to 1,024 runs.
//! - A target that is in a call gets a message instead (docs/tuning.md, "Copies by the system").
//!   Its note in the segment says whether it is in one.
//! - The system may refuse such copies, as in containers. So a rank tries each peer once, on a word
//!   whose value the peer has published (`peer_memory.rs`). Where Yama restricts copies to
//!   ancestors, a rank allows them to its launcher and that one's descendants.
//! - A copy counts only if its peer lives before and after it, since a pid may name another process
//!   after a death. What the system doesn't copy, such as memory of a device, goes by message.

use longshore_transport::Access;

use super::direct::converts;
use super::{Again, Path, Progress, Waiter, Ways};
use crate::error::Result;
use crate::job::Activity;
use crate::memory::Side;
use crate::process::Process;
use crate::route::Route;
use crate::window::call::Action;
use crate::window::directory::Turn;
use crate::window::memo::Frame;
use crate::window::operation::{Checked, Operation};
use crate::window::own::Reach;
use crate::window::parts::Parts;
use crate::window::peers::Target;

/// The least length in bytes, and the least average length of runs. The system finds the pages of
/// each run, which takes as long as a copy of some KiB (docs/tuning.md, "Copies by the system").
const LONG: u64 = 4 << 10;

/// The path.
pub(super) const PATH: Path = Path { name: "copy by the system", misfit, carry_out, again };

fn misfit(
    parts: &Parts,
    target: &Target,
    operation: &Operation<'_>,
    len: u64,
) -> Option<&'static str> {
    let is_private = target.class_at(operation.call.at).is_private();
    if target.route != Route::Peer && !is_private {
        return Some("the memory isn't private memory of another process of this host");
    }
    if access(operation.call.action).is_none() {
        return Some("the system only copies");
    }
    if len < LONG {
        return Some("it is shorter than 4 KiB");
    }
    if let Some(why) = converts(parts, target, operation) {
        return Some(why);
    }
    match answers(parts.process(), target.peer) {
        true => Some("the target is in a call, where it takes messages sooner"),
        false => Some("its runs are short on average, or the system refuses"),
    }
}

/// Does a put or get by a copy of the system, if that pays and is possible. Otherwise the target
/// may have some of the bytes.
fn carry_out(
    parts: &Parts,
    checked: &mut Checked<'_>,
    ways: &mut Ways,
) -> Result<Option<Progress>> {
    let target = checked.target;
    let is_copied = checked.is_copied();
    let turn = match target.route {
        Route::Direct if !is_copied => return Ok(None),
        Route::Peer => None,
        Route::Direct => match parts.memory().reach(target, checked.bytes) {
            Ok(Reach::Private(turn)) => Some(turn),
            Ok(Reach::Mapped(_) | Reach::Unknown) => None,
            Err(_) if !target.alike => None,
            Err(error) => return Err(error),
        },
        Route::Rdma | Route::Message => return Ok(None),
    };
    // On the direct route the target's directory may not have been read yet. Then the next
    // operation is noted.
    ways.key = ways.key.filter(|key| target.route == Route::Peer || key.is_private());
    ways.note(parts, checked);
    let may_be = is_copied && (target.route == Route::Peer || turn.is_some());
    let copied = if may_be { copy(parts, checked, turn) } else { None };
    Ok(copied.map(|()| Progress::Copied))
}

/// A turn keeps attached memory attached. An error is one of types, which a message meets again.
fn copy(parts: &Parts, checked: &Checked<'_>, turn: Option<Turn<'_>>) -> Option<()> {
    let target = checked.target;
    let (access, side) = (access(checked.action)?, checked.near()?);
    let (near, count) = (side.elements.datatype.native(), side.elements.count);
    let len = near.stream_length(count).ok()?;
    let most = usize::try_from(len / LONG).unwrap_or(usize::MAX);
    if len < LONG || !may_go(parts, target) {
        return None;
    }
    let far = checked.target_type.with_native(&target.architecture, |far| {
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
    exchange(parts, target, access, near, &far, checked.notify)
}

/// Has the system copy data, and raises a counter at the target then.
fn exchange(
    parts: &Parts,
    target: &Target,
    access: Access,
    near: Side<'_>,
    far: &[(u64, u64)],
    notify: Option<u16>,
) -> Option<()> {
    if !near.exchange(parts.process().peer_memory(), target.peer, access, far) {
        return None;
    }
    if let Some(counter) = notify {
        parts.peers().control().notify(target.rank, counter);
    }
    Some(())
}

/// The address in the target's process at which its window begins. In a dynamic window
/// displacements are addresses, and a turn is needed.
fn address(target: &Target, turn: Option<&Turn<'_>>) -> Option<u64> {
    target.address().or(turn.map(|_| 0))
}

fn again(
    parts: &Parts,
    target: &Target,
    frame: &Frame,
    operation: &Operation<'_>,
    _: Waiter<'_>,
) -> Again {
    let is_reached = matches!(target.route, Route::Peer | Route::Direct);
    let may_be = frame.len >= LONG && frame.alike && is_reached;
    match may_be.then(|| copy_run(parts, target, frame, operation)).flatten() {
        Some(()) => Again::Break(Some(Progress::Copied)),
        None => Again::Continue(()),
    }
}

/// A put or get of one run. A frame on the direct route is of memory that is attached and private.
fn copy_run(
    parts: &Parts,
    target: &Target,
    frame: &Frame,
    operation: &Operation<'_>,
) -> Option<()> {
    let access = access(operation.call.action)?;
    let (start, end) = frame.bytes(target, operation.call.at)?;
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
    // The memo knows only operations whose counter the window has.
    let notify = operation.call.notify.map(|counter| counter as u16);
    exchange(parts, target, access, near, &far, notify)
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
