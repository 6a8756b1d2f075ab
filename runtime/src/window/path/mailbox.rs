//! Operations by the target's mailbox: those by message of a few bytes, on a related rank of this
//! host that polls. They are done when their call returns.
//!
//! A mailbox takes what the memo has as one frame. Whatever it doesn't take goes as that frame.
//!
//! Mailboxes carry short operations to memory of related ranks on one host that is not reached
//! directly. Each rank has one in the segment (`mailbox.rs`). The origin posts the frame that it
//! would send, the target handles it as it handles a frame that is like one of the origin's last,
//! and writes the answer beside it. So an operation moves two cache lines, and passes no queue at
//! either end.
//!
//! - The operation is done when its call returns, so no counter or epoch knows of it. An accumulate
//!   goes by mailbox only if no earlier one is on its way by a frame.
//! - A mailbox only makes faster what a frame does as well. The origin sends a frame if the target
//!   doesn't poll, as its doorbell tells, if another rank uses the mailbox, if the target declines
//!   what it doesn't know, or if it doesn't answer in some microseconds. The origin takes its
//!   operation back then. Of it and the target one succeeds, by an exchange.
//! - An origin that waits for an answer looks into its own mailbox, so two ranks may ask each
//!   other.
//! - `--check`, `--adversary` and `--route message` use frames only, and so do ranks that share
//!   processors.
//! - Each end fetches the line that it is about to write while it still prepares what to write,
//!   since the other end polls that line (docs/tuning.md, "Lines fetched ahead").
//! - Operations of up to 16 bytes of operands fit, and up to 56 bytes of an answer. Puts, gets and
//!   accumulates of any number of elements that are one run take a short way: the memo has the
//!   numbers of the last ones that a mailbox took.
//! - Each operation waits for its answer, so a stream of puts is faster by frames. After four
//!   operations without a flush the next ones are frames.

use super::{Again, Path, Progress, Waiter, Ways, message};
use crate::engine::{ANSWER, OPERANDS};
use crate::error::Result;
use crate::memory::Span;
use crate::window::call::{Action, Call};
use crate::window::memo::{Frame, Letter};
use crate::window::near::{Near, Sides};
use crate::window::operation::{Checked, Operation};
use crate::window::parts::Parts;
use crate::window::peers::{Class, Target};
use crate::wire::{Header, Kind};

/// Whether an operation may go by a target's mailbox. Accumulates stay in the order of their calls,
/// and those before this one may be on their way by frames.
#[inline]
pub(super) fn may_go(parts: &Parts, target: &Target, action: Action) -> bool {
    let (flight, is_unordered) = (parts.flight(), action.moves());
    let is_next = || is_unordered || flight.outstanding(target.peer) == 0;
    target.has_mailbox && !flight.is_burst() && is_next()
}

/// The path.
pub(super) const PATH: Path = Path { name: "mailbox", misfit, carry_out, again };

fn misfit(_: &Parts, target: &Target, operation: &Operation<'_>, len: u64) -> Option<&'static str> {
    let call = &operation.call;
    if !target.has_mailbox {
        return Some("the target isn't a related rank of this host that polls");
    }
    if call.notify.is_some() {
        return Some("it notifies the target");
    }
    let most = if call.action == Action::Get { ANSWER } else { OPERANDS as u64 * 8 };
    match len > most {
        true => Some("it is longer than a letter"),
        false => Some("others are in flight, or it is the first of its kind"),
    }
}

/// A mailbox takes what the memo has as one frame.
fn carry_out(_: &Parts, _: &mut Checked<'_>, _: &mut Ways) -> Result<Option<Progress>> {
    Ok(None)
}

fn again(
    parts: &Parts,
    target: &Target,
    frame: &Frame,
    operation: &Operation<'_>,
    _: Waiter<'_>,
) -> Again {
    if operation.call.notify.is_some() || !may_go(parts, target, operation.call.action) {
        return Again::Continue(());
    }
    parts.process().will_ask(target.peer);
    match ask(parts, target, frame, operation) {
        Some(()) => Again::Break(Some(Progress::Answered)),
        None => Again::Continue(()),
    }
}

/// Asks a target by its mailbox to carry out an operation, whose memory is the frame's run. `None`,
/// and nothing has been done, where it has to go as a frame.
#[inline]
fn ask(parts: &Parts, target: &Target, frame: &Frame, operation: &Operation<'_>) -> Option<()> {
    let Sides { origin, result: room, compare } = operation.sides.map(|side| side.span);
    let is_memory = |span: Span| frame.is_memory(span);
    if !message::may_go(parts, target)
        || !origin.is_none_or(is_memory)
        || !room.is_none_or(is_memory)
    {
        return None;
    }
    let (_, header) = frame.place(target, operation.call.action, operation.call.at)?;
    let count = u64::from(origin.is_some()) + u64::from(compare.is_some());
    let header = Header { context: parts.id(), length: count * frame.len, ..header };
    let (mut operands, len) = ([[0; 8]; OPERANDS], frame.len as usize);
    if header.length > size_of_val(&operands) as u64 || room.is_some() && frame.len > ANSWER {
        return None;
    }
    let mut rest = operands.as_flattened_mut();
    for span in compare.into_iter().chain(origin) {
        let (data, after) = rest.split_at_mut_checked(len)?;
        span.read(frame.first, data).then_some(())?;
        rest = after;
    }
    let fetched = room.map_or(0, |_| len);
    let operands = operands.map(u64::from_le_bytes);
    let answer = parts.process().ask(target.peer, &header, operands, fetched)?;
    count_answer(parts, header.kind);
    if let Some(room) = room {
        room.write(frame.first, &answer.map(u64::to_le_bytes).as_flattened()[..fetched]);
    }
    Some(())
}

/// Makes an operation of which the mailbox of a like target has taken one before. `None`, and
/// nothing has been done, where it isn't one.
#[inline]
pub(in crate::window) fn post<'a, N: Near<'a>>(
    parts: &Parts,
    target: &Target,
    call: &Call<'_>,
    sides: &Sides<N>,
) -> Option<()> {
    let Call { action, at, count, notify: None, .. } = *call else { return None };
    if !may_go(parts, target, action) {
        return None;
    }
    let (own, class) = (call.own()?, target.class_at(at));
    if class == Class::Direct || sides.compare.is_some() {
        return None;
    }
    parts.process().will_ask(target.peer);
    let letter = Letter { action, class, datatype: own.compiled().id(), count };
    let (len, signature) = parts.memo().letter(letter)?;
    let permit = parts.epochs().permit(target)?;
    let place = |near: Option<N>| match near {
        None => Some(None),
        Some(near) => {
            near.run(count, own, len).map(|start| Some(Span::around(start, 0, len as i64)))
        }
    };
    let (origin, room) = (place(sides.origin)?, place(sides.result)?);
    let start = at.checked_mul(target.measures.unit.into()).filter(|at| *at >= 0)?;
    let end = start.checked_add_unsigned(len)?;
    if end as u64 > target.measures.size {
        return None;
    }
    let mut data = [[0; 8]; OPERANDS];
    if let Some(origin) = origin {
        origin.read(0, data.as_flattened_mut().get_mut(..len as usize)?).then_some(())?;
    }
    // An answer may be longer than the operands.
    if room.is_some() && len > ANSWER {
        return None;
    }
    let header = Header {
        tag: action.code(),
        context: parts.id(),
        displacement: at,
        count: count as u64,
        form: own.compiled().id(),
        signature: signature.into(),
        length: origin.map_or(0, |_| len),
        ..Header::new(action.kind())
    };
    let fetched = room.map_or(0, |_| len as usize);
    let answer =
        parts.process().ask(target.peer, &header, data.map(u64::from_le_bytes), fetched)?;
    count_answer(parts, header.kind);
    if let Some(room) = room {
        room.write(0, &answer.map(u64::to_le_bytes).as_flattened()[..fetched]);
    }
    permit.used();
    Some(())
}

/// A mailbox has taken an operation of this kind.
#[inline]
fn count_answer(parts: &Parts, kind: Kind) {
    // The program mostly waits for a value before it fetches the next one, maybe without a flush.
    if !matches!(kind, Kind::Fetch | Kind::Swap) {
        parts.flight().answer();
    }
}
