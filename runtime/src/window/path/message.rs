//! Operations by messages, to any target: its engine converts and scatters.
//!
//! An operation goes as frames of the engine's outbox ([`carry_out`]), or, where the memo has a
//! [`Frame`] for it, as one frame that is written straight into the link ([`again`]).

use std::sync::Arc;

use shipable::{Architecture, Leaf};

use super::{Again, Path, Progress, Waiter, Ways};
use crate::check::alignment::Placed;
use crate::check::buffers::{Flight, Use};
use crate::engine::{BY_NUMBER, Fetch, Measures, Outgoing, Purpose, Source, Ticket};
use crate::error::{Result, conversion};
use crate::flavor::Flavor;
use crate::job::Topic;
use crate::memory::{Keeper, Lease, Span};
use crate::program::Line;
use crate::route::Route;
use crate::types::{TargetType, Type};
use crate::window::call::{Action, Call};
use crate::window::flight::Pace;
use crate::window::memo::Frame;
use crate::window::near::Sides;
use crate::window::operation::{Checked, Operand, Operation};
use crate::window::parts::Parts;
use crate::window::peers::Target;
use crate::window::waiting::await_room;
use crate::wire::{Header, Kind};

/// An answer of at most this many bytes comes in one frame: no link has a shorter limit.
const SHORT: u64 = 512;

/// Under `--check`, remarks on an operation whose items aren't aligned at the target. A dynamic
/// window has no unit that could be wrong.
#[cold]
fn check_alignment(parts: &Parts, checked: &Checked<'_>) -> Result<()> {
    let Checked { action, target, count, target_type, displacement, .. } = *checked;
    let is_placed = count > 0 && parts.memory().flavor() != Flavor::Dynamic;
    let (Some(Leaf::Basic(item)), true) = (target_type.single_leaf(), is_placed) else {
        return Ok(());
    };
    let bounds = target_type.bounds_on(&target.architecture)?;
    let placed = Placed {
        call: action.call(),
        line: parts.checking().caller(),
        ranks: (parts.process().me().rank, target.peer),
        window: parts.id(),
        item: item.mpi_name(),
        displacement,
        unit: target.measures.unit,
        lead: target.lead.into(),
        first: bounds.true_lb,
        align: bounds.align,
        extent: bounds.extent(),
    };
    if let Some((kind, text)) = placed.report() {
        if let Some(check) = parts.process().engine().state().check() {
            // MPI allows it, and some programs mean it.
            check.remark(Topic::Windows, kind, || text);
        }
    }
    Ok(())
}

/// The path. It takes every operation.
pub(super) const PATH: Path = Path { name: "message", misfit: |_, _, _, _| None, carry_out, again };

/// Hands an operation to the engine.
fn carry_out(
    parts: &Parts,
    checked: &mut Checked<'_>,
    ways: &mut Ways,
) -> Result<Option<Progress>> {
    let Checked { action, target, count, target_type, displacement, bytes, notify, .. } = *checked;
    let (process, kind) = (parts.process(), action.kind());
    // Those of other routes are noted by the paths that might have taken them.
    if target.route == Route::Message {
        ways.note(parts, checked);
    }
    if process.checks() {
        check_alignment(parts, checked)?;
    }
    let (uses, is_requested) = (uses(parts, checked)?, ways.ticket.is_some());
    let (length, source) = source(parts, action, checked.origin.take(), checked.compare)?;
    let is_moot = |length| length == 0 && notify.is_none();
    if kind == Kind::Put && is_moot(length) {
        return Ok(Some(Progress::Done));
    }
    if let (Kind::Get, Some(Operand { elements, .. })) = (kind, &checked.result) {
        // Lowered now, so that a type that can't be is refused by this call.
        let program = elements.datatype.program(&target.architecture)?;
        if is_moot(program.stream_length(elements.count)?) {
            return Ok(Some(Progress::Done));
        }
    }
    await_room(parts, action.activity(), target.peer)?;
    let mut engine = process.engine();
    let state = engine.state();
    if let Some(gone) = state.gone(target.peer) {
        return Err(gone);
    }
    // When the job ends, operations are given up and nothing waits for them.
    process.check_job()?;
    parts.flight().lend(target.peer);
    state.define(target.peer, target_type)?;
    state.note_call(target.peer, parts.checking().caller());
    for of in uses {
        let flight = Flight { window: parts.id(), target: target.peer };
        state.note_one_sided(flight, of, is_requested);
    }
    if notify.is_some() {
        state.note_notifying(target.peer);
    }
    let number = parts.flight().ledger().issue(target.peer);
    let operation = parts.operation(target.peer, number);
    // A fetch is answered by its number anyway.
    let by_number = ways.ticket.is_some() && matches!(kind, Kind::Put | Kind::Accumulate);
    if let Some(ticket) = ways.ticket.take() {
        state.ticket(operation, ticket);
    }
    if let Some(result) = checked.result.take() {
        let (datatype, count, lease) = result.into_parts();
        let origin = Some(datatype);
        let fetch = Fetch { origin, count, run: None, lease, waiter: None, bytes };
        state.expect(operation, fetch);
    }
    let signature = target_type.signature().repeat(count);
    let header = Header {
        context: parts.id(),
        operation: number,
        displacement,
        count,
        form: target_type.id(),
        signature: signature.map_or(0, |signature| signature.hash),
        length,
        tag: action.code() | if by_number { BY_NUMBER } else { 0 },
        notify,
        ..Header::new(kind)
    };
    let purpose = match kind {
        Kind::Get => Purpose::None,
        kind => Purpose::Operation(kind, operation),
    };
    engine.send(target.peer, Outgoing::new(header, source, purpose));
    drop(engine);
    if target.route == Route::Direct && !action.moves() {
        // A direct one on the same target must not overtake it.
        parts.memo().order_accumulates();
    }
    Ok(Some(Progress::Started))
}

/// Under `--check`, the memory that an operation of a program in another language uses until a call
/// completes it. In Rust, borrows keep others from it.
///
/// Left out: the origins of operations with one element.
fn uses(parts: &Parts, checked: &Checked<'_>) -> Result<Vec<Use>> {
    let (process, line) = (parts.process(), parts.checking().caller());
    let Some(line @ Line::Program(_)) = line.filter(|_| process.checks()) else {
        return Ok(Vec::new());
    };
    let origin = checked.origin.as_ref().filter(|_| !checked.action.is_single());
    let sides = [(origin, false), (checked.result.as_ref(), true)];
    let mut uses = Vec::new();
    for (side, writes) in sides {
        let Some(Operand { elements, .. }) = side else { continue };
        let program = elements.datatype.program(&process.me().architecture)?;
        let memory = (&*program, elements.count, elements.span);
        uses.push(Use::new((checked.action.call(), line), writes, memory));
    }
    Ok(uses)
}

/// The operands of an operation, as the outbox sends them, and their length in bytes.
fn source(
    parts: &Parts,
    action: Action,
    origin: Option<Operand>,
    compare: Option<Span>,
) -> Result<(u64, Source)> {
    let Some(origin) = origin else { return Ok((0, Source::Empty)) };
    let (datatype, count, lease) = origin.into_parts();
    let program = datatype.program(&parts.process().me().architecture)?;
    let length = program.stream_length(count)?;
    if !action.is_single() {
        return Ok((length, Source::Typed { program, count, lease }));
    }
    // The operands of one element may be gone when the call returns, so they are packed now.
    let mut packed = Vec::new();
    for operand in compare.into_iter().chain([lease.span()]) {
        let start = packed.len();
        packed.resize(start + length as usize, 0);
        operand.pack(&program, count, 0, &mut packed[start..]).map_err(conversion)?;
    }
    Ok((packed.len() as u64, Source::Bytes(packed.into())))
}

/// How an operation of this kind goes as one frame; `None` where it takes more than that.
pub(super) fn prepare(parts: &Parts, checked: &Checked<'_>) -> Option<Frame> {
    let process = parts.process();
    let TargetType::Own(own) = checked.target_type else { return None };
    // A frame has the bytes of slices, which are the machine's, or of other memory.
    let is_native = || own.compiled().is_equal_on(&Architecture::NATIVE);
    let is_plain = !process.checks() && !checked.action.is_atomic_get();
    if !is_plain || process.me().emulated && !is_native() {
        return None;
    }
    Frame::new(checked.target, own, checked.count)
}

/// Whether elements of a type are the same bytes, at the same displacements, here and at a target.
fn has_same_bytes(target: &Target, own: &Type) -> bool {
    target.alike || own.compiled().is_equal_on(&target.architecture)
}

impl Frame {
    /// The frame of this many elements of a type that are the same on both sides, and one run.
    #[cold]
    pub(super) fn new(target: &Target, own: &Type, count: u64) -> Option<Frame> {
        let (compiled, architecture) = (own.compiled(), &target.architecture);
        let program = compiled.native();
        let (first, len) = (program.contiguous(count)?, program.stream_length(count).ok()?);
        let bounds = TargetType::Own(own).bounds_on(architecture).ok()?;
        let last = bounds.extent().checked_mul(i64::try_from(count).ok()?.checked_sub(1)?)?;
        let low = bounds.true_lb.checked_add(last.min(0))?;
        let high = bounds.true_ub.checked_add(last.max(0))?;
        // A displacement whose data lie in the target's memory is within its pointers' reach,
        // unless they lie below it.
        let is_simple = len > 0 && low >= 0;
        is_simple.then_some(Frame {
            datatype: own.clone(),
            count,
            signature: own.signature().repeat(count)?.hash,
            first,
            len,
            reach: (low, high),
            alike: has_same_bytes(target, own),
        })
    }

    /// Whether it was made for a target with this one's representation.
    pub(super) fn is_for(&self, target: &Target) -> bool {
        self.alike == has_same_bytes(target, &self.datatype)
    }

    /// The bytes of a target's window that an operation touches. `None` where they aren't inside.
    #[inline]
    pub(super) fn bytes(&self, target: &Target, displacement: i64) -> Option<(i64, i64)> {
        let Measures { size, unit } = target.measures;
        let base = displacement.checked_mul(unit.into()).filter(|base| *base >= 0)?;
        let (start, end) = (base.checked_add(self.reach.0)?, base.checked_add(self.reach.1)?);
        (end as u64 <= size).then_some((start, end))
    }

    /// The bytes of a target's window that an operation touches, and its header but for the window.
    /// `None` where the bytes aren't inside.
    #[inline]
    pub(super) fn place(
        &self,
        target: &Target,
        action: Action,
        displacement: i64,
    ) -> Option<((i64, i64), Header)> {
        let bytes = self.bytes(target, displacement)?;
        let header = Header {
            displacement,
            count: self.count,
            form: self.datatype.compiled().id(),
            signature: self.signature,
            tag: action.code(),
            ..Header::new(action.kind())
        };
        Some((bytes, header))
    }

    /// Whether memory is the run of the frame's elements, to its last byte. A struct that ends in
    /// padding has more memory than data.
    #[inline]
    pub(super) fn is_memory(&self, span: Span) -> bool {
        let end = self.first.checked_add_unsigned(self.len);
        span.len() == self.len && end.is_some_and(|end| span.covers(self.first, end))
    }

    /// The entry that waits for an answer.
    fn fetch(&self, lease: Lease, waiter: Option<Arc<Ticket>>, bytes: (i64, i64)) -> Fetch {
        Fetch {
            // An answer that comes in one frame with the bytes of this rank's memory isn't
            // unpacked.
            origin: (!self.alike || self.len > SHORT).then(|| self.datatype.compiled().clone()),
            count: self.count,
            run: self.alike.then_some((self.first, self.len)),
            lease,
            waiter,
            bytes: (bytes.0.into(), bytes.1.into()),
        }
    }
}

/// Whether a frame may go to a target now.
pub(super) fn may_go(parts: &Parts, target: &Target) -> bool {
    parts.flight().has_room(target.peer) && parts.process().check_job().is_ok()
}

/// Sends an operation that the memo knows as one frame.
fn again(
    parts: &Parts,
    target: &Target,
    frame: &Frame,
    operation: &Operation<'_>,
    waiter: Waiter<'_>,
) -> Again {
    let may_go = may_go(parts, target);
    Again::Break(may_go.then(|| send(parts, target, frame, operation, waiter)).flatten())
}

/// Sends an operation as one frame. A stream's frames are held until there are many, which go
/// together, or until their sender looks at what has arrived.
#[inline]
fn send(
    parts: &Parts,
    target: &Target,
    frame: &Frame,
    operation: &Operation<'_>,
    waiter: Waiter<'_>,
) -> Option<Progress> {
    let pace = parts.flight().pace(target.peer);
    let Call { action, at, notify, .. } = operation.call;
    let Sides { origin, result: room, compare } = operation.sides.map(|side| side.span);
    let is_memory = |span: Span| frame.is_memory(span);
    if !origin.is_none_or(is_memory) || !room.is_none_or(is_memory) {
        return None;
    }
    let (bytes, header) = frame.place(target, action, at)?;
    let operands = u64::from(origin.is_some()) + u64::from(compare.is_some());
    let length = operands * frame.len;
    // The memo knows only operations whose counter the window has.
    let notify = notify.map(|index| index as u16);
    let header = Header { context: parts.id(), length, notify, ..header };
    let fill = |data: &mut [u8]| {
        let (first, second) = data.split_at_mut(match compare {
            Some(_) => frame.len as usize,
            None => 0,
        });
        compare.is_none_or(|span| span.read(frame.first, first))
            && origin.is_none_or(|span| span.read(frame.first, second))
    };
    let mut engine = parts.process().engine();
    // The target may be waiting for a notification.
    let may_wait = pace == Pace::Stream && notify.is_none();
    let number = engine.send_frame(target.peer, parts.flight().ledger(), header, may_wait, fill)?;
    match room {
        Some(room) => {
            let lease = Lease::new(room, waiter.map_or(Keeper::Lender, Keeper::owner));
            let fetch = frame.fetch(lease, waiter.cloned(), bytes);
            engine.state().expect(parts.operation(target.peer, number), fetch);
            parts.flight().lend(target.peer);
        }
        None => parts.flight().ship(target.peer),
    }
    Some(Progress::Started)
}
