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
use crate::window::peers::{DIRECT, OBSERVED, Target};
use crate::wire::{Header, Kind};

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
    count_answer(parts, header.kind);
    if let Some(room) = room {
        room.write(frame.first, &answer.map(u64::to_le_bytes).as_flattened()[..fetched]);
    }
    Some(())
}

/// A put, get or accumulate of elements of the target type itself, of which a mailbox has taken as
/// many before. An accumulate may fetch as well, into `result`. Calls by pointer, of scopes and
/// observed ones try it before the full check. Others find their frame in the memo.
#[inline(always)]
#[allow(clippy::too_many_arguments)] // MPI's
pub(in crate::window) fn transfer(
    parts: &Parts,
    action: Action,
    memory: Span,
    what: What<'_>,
    result: Option<(Span, What<'_>)>,
    rank: i32,
    displacement: i64,
    count: i64,
    own: &Type,
) -> Option<()> {
    let target = parts.peers().known(rank).filter(|target| may_go(parts, target, action))?;
    let class = target.class_at(displacement);
    if matches!(class, DIRECT | OBSERVED) {
        return None;
    }
    parts.process().will_ask(target.peer);
    let is_plain = |what: What<'_>| what.is_plain(count as u64, own.compiled());
    let place = (target, class, displacement, count as u64);
    match is_plain(what) && result.is_none_or(|(_, what)| is_plain(what)) {
        true => post(parts, action, memory, result.map(|(room, _)| room), place, own),
        false => None,
    }
}

#[inline(never)]
fn post(
    parts: &Parts,
    action: Action,
    memory: Span,
    room: Option<Span>,
    (target, class, displacement, count): (&Target, u64, i64, u64),
    own: &Type,
) -> Option<()> {
    let KnownLetter { len, signature, .. } = parts.memo().letter(action, class, own, count)?;
    let permit = parts.epochs().permit(target)?;
    let fits = memory.len() == len && room.is_none_or(|room| room.len() == len);
    if !fits || !own.is_of(parts.process().names()) {
        return None;
    }
    let start = displacement.checked_mul(target.measures.unit.into()).filter(|at| *at >= 0)?;
    let end = start.checked_add_unsigned(len)?;
    if end as u64 > target.measures.size {
        return None;
    }
    let is_get = action == Action::Get;
    let mut data = [[0; 8]; OPERANDS];
    if is_get {
        // The answer is longer than the operands.
        (len <= ANSWER).then_some(())?;
    } else {
        let operands = data.as_flattened_mut().get_mut(..len as usize)?;
        memory.read(0, operands).then_some(())?;
    }
    let header = Header {
        tag: action.code(),
        context: parts.id(),
        displacement,
        count,
        form: own.compiled().id(),
        signature: signature.into(),
        length: if is_get { 0 } else { len },
        ..Header::new(action.kind())
    };
    let room = if is_get { Some(memory) } else { room };
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
#[inline(always)]
fn count_answer(parts: &Parts, kind: Kind) {
    // The program mostly waits for a value before it fetches the next one, maybe without a flush.
    if !matches!(kind, Kind::Fetch | Kind::Swap) {
        parts.flight().answer();
    }
}
