//! Operations by the target's mailbox: those by message of a few bytes, on a like rank of this host
//! that polls. They are done when their call returns.
//!
//! A mailbox takes what the memo has as one frame. Whatever it doesn't take goes as that frame.

use crate::engine::{ANSWER, OPERANDS};
use crate::memory::Span;
use crate::origin::What;
use crate::types::Type;
use crate::window::memo::{Frame, KnownLetter};
use crate::window::operation::{Action, Operation};
use crate::window::parts::Parts;
use crate::window::peers::Target;
use crate::wire::{Header, Kind};

/// The bytes of the longest element.
const LONGEST: u64 = 8 * OPERANDS as u64;

/// The memory of an operation at this rank.
pub(super) struct Sides {
    pub origin: Option<Span>,
    pub compare: Option<Span>,
    /// Room for what is fetched.
    pub room: Option<Span>,
}

/// Whether an operation may go by a target's mailbox. Accumulates stay in the order of their calls,
/// and those before this one may be on their way by frames.
#[inline(always)]
pub(super) fn may_go(parts: &Parts, target: &Target, action: Action) -> bool {
    let (flight, is_unordered) = (parts.flight(), matches!(action, Action::Put | Action::Get));
    let is_next = || is_unordered || flight.outstanding(target.peer) == 0;
    target.has_mailbox && !flight.is_burst() && is_next()
}

/// Prepares the target's mailbox for an operation that may go by it.
#[inline]
pub(super) fn prepare(parts: &Parts, target: &Target, operation: &Operation<'_>) {
    if operation.notify.is_none() && may_go(parts, target, operation.action) {
        parts.process().will_ask(target.peer);
    }
}

/// Asks a target by its mailbox to carry out an operation, whose memory is the frame's run. `None`,
/// and nothing has been done, where it has to go as a frame.
#[inline(always)]
pub(super) fn ask(
    parts: &Parts,
    target: &Target,
    frame: &Frame,
    header: &Header,
    sides: Sides,
) -> Option<()> {
    let Sides { origin, compare, room } = sides;
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
    let answer = parts.process().ask(target.peer, header, operands, fetched)?;
    // The program mostly waits for a value before it fetches the next one, maybe without a flush.
    if !matches!(header.kind, Kind::Fetch | Kind::Swap) {
        parts.flight().answer();
    }
    if let Some(room) = room {
        room.write(frame.first, &answer.map(u64::to_le_bytes).as_flattened()[..fetched]);
    }
    Some(())
}

/// A put or get of one element of the target type itself that went by message before. Those by
/// pointer and observed ones try it before the full check. Others find their frame in the memo.
#[inline(always)]
#[allow(clippy::too_many_arguments)] // MPI's
pub(in crate::window) fn transfer(
    parts: &Parts,
    action: Action,
    memory: Span,
    what: What<'_>,
    rank: i32,
    displacement: i64,
    count: i64,
    own: &Type,
) -> Option<()> {
    let target = parts.peers().known(rank).filter(|target| may_go(parts, target, action))?;
    parts.process().will_ask(target.peer);
    transfer_to(parts, action, memory, what, target, displacement, count, own)
}

#[inline(never)]
#[allow(clippy::too_many_arguments)] // MPI's
fn transfer_to(
    parts: &Parts,
    action: Action,
    memory: Span,
    what: What<'_>,
    target: &Target,
    displacement: i64,
    count: i64,
    own: &Type,
) -> Option<()> {
    let KnownLetter { size, signature, .. } = parts.memo().letter(action, target, own)?;
    let permit = parts.epochs().permit(target)?;
    let is_known = count == 1 && what.is_plain(1, own.compiled()) && memory.len() == size;
    if !is_known || !own.is_of(parts.process().names()) || size > LONGEST {
        return None;
    }
    let start = displacement.checked_mul(target.measures.unit.into()).filter(|at| *at >= 0)?;
    let end = start.checked_add_unsigned(size)?;
    if end as u64 > target.measures.size {
        return None;
    }
    let is_put = action == Action::Put;
    let header = Header {
        context: parts.id(),
        displacement,
        count: 1,
        form: own.compiled().id(),
        signature: signature.into(),
        length: if is_put { size } else { 0 },
        ..Header::new(action.kind())
    };
    let mut data = [[0; 8]; OPERANDS];
    let bytes = &mut data.as_flattened_mut()[..size as usize];
    if is_put && !memory.read(0, bytes) {
        return None;
    }
    let fetched = if is_put { 0 } else { size as usize };
    let answer =
        parts.process().ask(target.peer, &header, data.map(u64::from_le_bytes), fetched)?;
    parts.flight().answer();
    if !is_put {
        memory.write(0, &answer.map(u64::to_le_bytes).as_flattened()[..fetched]);
    }
    permit.used();
    Some(())
}
