//! Accumulates: operations that combine, element by element, each atomic with respect to any other of them.
//!
//! All take the target's accumulate lock, a piece or frame at a time: a like origin itself, and for any other the target's
//! engine. The operands of one origin arrive in the order of its calls, whichever way, so that they are ordered as MPI's
//! default `accumulate_ordering` has it, and stay so where the info would allow less.

use std::any::TypeId;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

use shipable::Leaf;
use shipable::reduce::{Op, Reduction, Swap};

use super::api::Epoch;
use super::api::Lane;
use super::core::Core;
use super::frame::{Burst, Shapes};
use super::operation::{Call, Run};
use super::targets::{Reached, Target};
use crate::engine::{BY_NUMBER, Fetch, Keep, Operation, Outgoing, Purpose, Source, Ticket, reach};
use crate::error::{ErrorKind, Result, conversion, excerpt};
use crate::job::Activity;
use crate::memory::{Span, Typed};
use crate::origin::{Destination, Elementwise, Origin, What};
use crate::types::{Compiled, TargetType, Type};
use crate::wire::{Header, Kind};

/// Bytes that are combined under the lock at a time: a few microseconds' worth. Each time the lock is taken, the processor
/// waits for the stores of the last piece: 60 ns of the 600 that 32 KiB take. (Zen 5; `longshore bench acc_latency --size 1M`.)
const PIECE: u64 = 128 << 10;

impl<'scope> Epoch<'scope, '_> {
    /// Combines data with what a target's window holds (MPI-5.0 section 12.3.4), in the target's representation: `op` of
    /// each operand and the item that is there takes the item's place. Each element is combined atomically with respect to
    /// all accumulates of any origin, and those of one origin to one place in the order of its calls.
    ///
    /// All items on both sides are of one predefined type, on which `op` is defined; [`Op::Replace`] is on all.
    ///
    /// ```
    /// # use longshore::{Info, Op, Window};
    /// # let rank = longshore::init()?;
    /// # let mut window = Window::allocate(rank.world(), 16, 8, &Info::default())?;
    /// let double = rank.type_of::<f64>()?;
    /// window.fence(|epoch| {
    ///     epoch.accumulate(&[0.5, 2.0], 0, 0, 2, &double, Op::Sum)?;
    ///     epoch.accumulate(&[1.5], 0, 1, 1, &double, Op::Max)
    /// })?;
    /// assert_eq!(window.get::<f64>(1)?, 2.0);
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`put`](Epoch::put); OP for an operation that the type doesn't take, TYPE where the items are of several types,
    /// or of different ones on the two sides.
    #[inline]
    #[track_caller]
    pub fn accumulate<'t>(
        &self,
        origin: impl Into<Origin<'scope>>,
        target: i32,
        target_disp: i64,
        target_count: i64,
        target_type: impl Into<TargetType<'t>>,
        op: Op,
    ) -> Result<()> {
        let Origin { loan, what } = origin.into();
        let (operands, target_type) = ((self.scope.lend(loan), what), target_type.into());
        self.core.accumulate(operands, None, target, target_disp, target_count, target_type, op)
    }

    /// As [`accumulate`](Epoch::accumulate), and gets what was there before (MPI-5.0 section 12.3.4). With [`Op::NoOp`] it
    /// changes nothing, and `origin` isn't looked at: an atomic get.
    ///
    /// ```
    /// # use longshore::{Info, Op, Window};
    /// # let rank = longshore::init()?;
    /// # let window = Window::allocate(rank.world(), 64, 8, &Info::default())?;
    /// let long = rank.type_of::<i64>()?;
    /// let (mut before, mut now, nothing) = ([-1i64; 2], [-1i64; 2], [0i64; 0]);
    /// window.lock_all(|epoch| {
    ///     epoch.flush(0, |epoch| epoch.get_accumulate(&[3i64, 4], &mut before, 0, 0, 2, &long, Op::Sum))?;
    ///     // An atomic get.
    ///     epoch.get_accumulate(&nothing, &mut now, 0, 0, 2, &long, Op::NoOp)
    /// })?;
    /// assert!(now[0] >= before[0] + 3 && now[1] >= before[1] + 4);
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`accumulate`](Epoch::accumulate), and for `result` as [`get`](Epoch::get).
    #[allow(clippy::too_many_arguments)] // MPI's
    #[inline]
    #[track_caller]
    pub fn get_accumulate<'t>(
        &self,
        origin: impl Into<Origin<'scope>>,
        result: impl Into<Destination<'scope>>,
        target: i32,
        target_disp: i64,
        target_count: i64,
        target_type: impl Into<TargetType<'t>>,
        op: Op,
    ) -> Result<()> {
        let Origin { loan, what } = origin.into();
        let Destination { loan: room, what: wanted } = result.into();
        let (operands, target_type) = ((self.scope.lend(loan), what), target_type.into());
        let result = Some((self.scope.lend_mut(room), wanted));
        self.core.accumulate(operands, result, target, target_disp, target_count, target_type, op)
    }
}

/// What is ready to be done again: a program does the same over and over. It is used where it lies: for a copy
/// store forwarding fails, 5 ns.
#[derive(Default)]
pub(super) struct Ready {
    /// By the target type's id.
    accumulate: RefCell<Option<(u64, Op, Reduction)>>,
    pub fetch: RefCell<Option<(TypeId, Op, Reduction)>>,
    pub swap: RefCell<Option<(TypeId, Swap)>>,
    /// The type of an element that went by message.
    pub element: RefCell<Option<(TypeId, Type)>>,
    /// What was found of the last operations that went as frames.
    pub shapes: Shapes,
    pub burst: Cell<Burst>,
    /// Whether elements of the last type lie in a window as they do in slices.
    pub plain: Cell<Option<(TypeId, bool)>>,
    /// Where the last element comes to that was fetched by message.
    pub lane: RefCell<Option<Arc<Lane>>>,
}

/// Memory of the rank's own: where operands are, or where what was there goes.
pub(super) struct Lent<'a> {
    pub span: Span,
    pub what: &'a What<'a>,
    pub keep: Keep,
}

impl<'a> Lent<'a> {
    /// Its lender keeps it until the operation is done.
    pub(super) fn new(span: Span, what: &'a What<'a>) -> Lent<'a> {
        Lent { span, what, keep: Keep::Lender }
    }
}

/// A side of an accumulate, checked.
pub(super) struct Side {
    pub elements: Elementwise,
    pub keep: Keep,
}

impl Core {
    /// Accumulates, and brings what was there to `result` if there is one; see [`Epoch::accumulate`]. Lenders keep both memories
    /// until the operation is done. The quickest way is in line, as for [`Core::transfer`].
    #[allow(clippy::too_many_arguments)] // MPI's
    #[inline(always)]
    #[track_caller]
    pub(super) fn accumulate(
        &self,
        (memory, what): (Span, What<'_>),
        result: Option<(Span, What<'_>)>,
        target: i32,
        displacement: i64,
        count: i64,
        target_type: TargetType<'_>,
        op: Op,
    ) -> Result<()> {
        let run = self.single_run(memory.len(), &what, target, displacement, count, target_type);
        if let Some(run) = run {
            if self.accumulate_run(run, memory, &result, count, target_type, op).is_some() {
                self.used.set(true);
                return Ok(());
            }
        }
        let kind = if result.is_some() { Kind::Fetch } else { Kind::Accumulate };
        let call = Call::new(kind, target, displacement, count, target_type);
        self.accumulate_else((memory, what), result, call, op)
    }

    /// The other ways of an accumulate, the quicker one first.
    #[inline(never)]
    #[track_caller]
    fn accumulate_else(
        &self,
        (memory, what): (Span, What<'_>),
        result: Option<(Span, What<'_>)>,
        call: Call<'_>,
        op: Op,
    ) -> Result<()> {
        if self.frame_update((memory, &what), &result, &call, op).is_some() {
            return Ok(());
        }
        let result = result.as_ref().map(|(room, what)| Lent::new(*room, what));
        self.update(&call, op, Lent::new(memory, &what), result, None)
    }

    /// The quick way of an accumulate on a run: the last one's operation on elements of the same type, with room of the same type for
    /// what was there.
    #[inline(always)]
    fn accumulate_run(
        &self,
        run: Run<'_>,
        memory: Span,
        result: &Option<(Span, What<'_>)>,
        count: i64,
        target_type: TargetType<'_>,
        op: Op,
    ) -> Option<()> {
        let TargetType::Own(own_type) = target_type else { return None };
        let own = own_type.compiled();
        let room = match result {
            None => None,
            Some((room, what)) if what.is_plain(count as u64, own) && room.len() == run.len => {
                Some(*room)
            }
            Some(_) => return None,
        };
        let recent = self.recent.accumulate.borrow();
        let (id, last, reduction) = recent.as_ref()?;
        if (*id, *last) != (own.id(), op) {
            return None;
        }
        match run.target.door.get() {
            Some(door) if run.len <= PIECE => self.combine(reduction, run, door.span, memory, room),
            _ => self.combine_pieces(reduction, run, memory, room),
        }
    }

    /// Combines a piece, where all memories have it; what was there goes to `room`.
    #[inline(always)]
    fn combine(
        &self,
        reduction: &Reduction,
        Run { target, first, far, len }: Run<'_>,
        there: Span,
        memory: Span,
        room: Option<Span>,
    ) -> Option<()> {
        let operands = memory.shifted(first)?;
        let _held = self.control.accumulate(target.rank);
        if let Some(room) = room {
            if !room.copy_run(first, there, far, len) {
                return None;
            }
        }
        there.combine_run(reduction, far, operands, len).then_some(())
    }

    /// Combines piece by piece, none unless all can be.
    #[inline(never)]
    fn combine_pieces(
        &self,
        reduction: &Reduction,
        run: Run<'_>,
        memory: Span,
        room: Option<Span>,
    ) -> Option<()> {
        let Run { target, first, far, len } = run;
        let has = |span: Span, at: i64| {
            at.checked_add_unsigned(len).is_some_and(|end| span.covers(at, end))
        };
        let all = |there: Span| {
            if !has(there, far) || !has(memory, first) || !room.is_none_or(|room| has(room, first))
            {
                return None;
            }
            let piece = PIECE / reduction.element() * reduction.element();
            let mut done = 0;
            while done < len {
                let (far, first) = (far + done as i64, first + done as i64);
                let run = Run { target, first, far, len: piece.min(len - done) };
                self.combine(reduction, run, there, memory, room)?;
                done += run.len;
            }
            Some(())
        };
        self.with_reach(target, far, all).flatten()
    }

    /// An accumulate with all its checks.
    #[track_caller]
    pub(super) fn update(
        &self,
        call: &Call<'_>,
        op: Op,
        origin: Lent<'_>,
        result: Option<Lent<'_>>,
        ticket: Option<Arc<Ticket>>,
    ) -> Result<()> {
        self.issued(call.name, call.target, Activity::Accumulate, |bytes| {
            self.checked_update(call, op, origin, result, ticket, bytes)
        })
    }

    fn checked_update(
        &self,
        call: &Call<'_>,
        op: Op,
        origin: Lent<'_>,
        result: Option<Lent<'_>>,
        ticket: Option<Arc<Ticket>>,
        bytes: &mut Option<(i128, i128)>,
    ) -> Result<()> {
        self.process.ready()?;
        let Some(target) = self.target(call.target)? else { return self.check_epoch() };
        self.access(target)?;
        let count = u64::try_from(call.count).map_err(|_| ErrorKind::Count(call.count))?;
        self.check_type(call.target_type, target)?;
        let side = |lent: Lent<'_>| -> Result<Side> {
            let elements = lent.what.resolve(&self.process, lent.span)?;
            self.check_signatures(&elements, call.target_type, count)?;
            Ok(Side { elements, keep: lent.keep })
        };
        // MPI has the origin of what changes nothing ignored.
        let idle = op == Op::NoOp && call.kind == Kind::Fetch;
        let origin = if idle { None } else { Some(side(origin)?) };
        let result = result.map(side).transpose()?;
        if let Some(result) = &result {
            result.elements.check_disjoint()?;
        }
        if call.target_type.overlaps(count)? {
            let datatype = excerpt(&call.target_type);
            return Err(ErrorKind::Overlap { count: call.count, datatype }.into());
        }
        let sides = [("origin", &origin), ("result", &result)];
        let sides = sides
            .into_iter()
            .filter_map(|(role, side)| Some((role, &side.as_ref()?.elements.datatype)));
        let leaf = check_leaves(call, op, sides)?;
        let bounds = call.target_type.bounds_on(&target.architecture)?;
        let reach =
            reach(target.measures, call.displacement, count, &bounds, &target.architecture)?;
        *bytes = Some(reach.bytes);
        self.used.set(true);
        let (Some(leaf), 1..) = (leaf, count) else { return Ok(()) };
        match self.reach_to_update(target, reach.bytes)? {
            Some(reached) => {
                let sides = (origin.as_ref(), result.as_ref());
                self.update_directly(call, op, &reached, leaf, sides, count, reach.base)
            }
            None => {
                let source = match origin {
                    Some(Side { elements: Elementwise { datatype, count, span }, keep }) => {
                        let program = datatype.program(&self.process.me().architecture)?;
                        let length = program.stream_length(count)?;
                        (length, Source::Typed { program, count, span, _keep: keep })
                    }
                    None => (0, Source::Empty),
                };
                self.ship_update(
                    call,
                    op.wire(),
                    target,
                    count,
                    source,
                    result,
                    ticket,
                    reach.bytes,
                )
            }
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn update_directly<'a>(
        &self,
        call: &Call<'_>,
        op: Op,
        reached: &Reached<'_>,
        leaf: Leaf,
        (origin, result): (Option<&'a Side>, Option<&'a Side>),
        count: u64,
        base: i64,
    ) -> Result<()> {
        let span = reached.span.shifted(base);
        let span = span.ok_or(ErrorKind::Displacement(call.displacement))?;
        let architecture = &self.process.me().architecture;
        let reduction = Reduction::new(op, leaf, architecture)?;
        if let TargetType::Own(own) = call.target_type {
            let own = own.compiled();
            // What changes nothing isn't remembered: it is an error in an accumulate.
            if own.is_portable() && op != Op::NoOp {
                self.recent.accumulate.replace(Some((own.id(), op, reduction)));
            }
        }
        call.target_type.with_native(architecture, |program| {
            let there = Typed { program, count, span };
            let typed = |side: &'a Side| {
                let Elementwise { datatype, count, span } = &side.elements;
                Typed { program: datatype.native(), count: *count, span: *span }
            };
            // An operation without operands reads none.
            let operands = origin.map_or(Typed { program, count, span }, typed);
            let result = result.map(typed);
            let length = program.stream_length(count)?;
            let piece = PIECE / reduction.element() * reduction.element();
            let mut done = 0;
            while done < length {
                let range = done..length.min(done + piece);
                done = range.end;
                let _held = self.control.accumulate(call.target as u32);
                Span::combine(&reduction, &operands, &there, result.as_ref(), range)
                    .map_err(conversion)?;
            }
            Ok(())
        })
    }

    /// Hands an accumulate to the engine.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn ship_update(
        &self,
        call: &Call<'_>,
        code: u8,
        target: &Target,
        count: u64,
        (length, source): (u64, Source),
        result: Option<Side>,
        ticket: Option<Arc<Ticket>>,
        bytes: (i128, i128),
    ) -> Result<()> {
        let (mut engine, header) = self.begin(call, target, count)?;
        let state = engine.state();
        let operation =
            Operation { target: target.peer, window: self.window, number: header.operation };
        // What fetches is answered by its number anyway.
        let by_number = ticket.is_some() && call.kind == Kind::Accumulate;
        let tag = code | if by_number { BY_NUMBER } else { 0 };
        if let Some(ticket) = ticket {
            state.ticket(operation, ticket);
        }
        if let Some(Side { elements: Elementwise { datatype, count, span }, keep }) = result {
            let origin = Some(datatype);
            state.expect(operation, Fetch { origin, count, run: None, span, keep, bytes });
        }
        let purpose = Purpose::Operation(call.kind, operation);
        let header = Header { tag, length, ..header };
        engine.send(target.peer, Outgoing::new(header, source, purpose));
        Ok(())
    }
}

/// Rule 21: the one predefined type of all sides, or none where there are no items.
fn check_leaves<'a>(
    call: &Call<'_>,
    op: Op,
    sides: impl Iterator<Item = (&'static str, &'a Arc<Compiled>)>,
) -> Result<Option<Leaf>> {
    if op == Op::NoOp && call.kind == Kind::Accumulate {
        return Err(ErrorKind::NoOp.into());
    }
    if call.target_type.signature().count == 0 {
        return Ok(None);
    }
    let pairs = matches!(op, Op::Maxloc | Op::Minloc);
    let mixed = |datatype: String, role| ErrorKind::MixedTypes { datatype, role, pairs };
    let wanted = call.target_type.single_leaf();
    let wanted = wanted.ok_or_else(|| mixed(excerpt(&call.target_type), "target"))?;
    for (role, datatype) in sides {
        let found = datatype.single_leaf().ok_or_else(|| mixed(excerpt(datatype), role))?;
        if found != wanted {
            let datatype = excerpt(datatype);
            let (found, wanted) = (found.to_string(), wanted.to_string());
            return Err(ErrorKind::OtherType { datatype, found, wanted }.into());
        }
    }
    op.check(wanted)?;
    Ok(Some(wanted))
}
