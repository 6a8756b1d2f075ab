//! Operations on a target's memory that this rank has mapped.
//!
//! Accumulates take the target's accumulate lock for each piece, so that they are atomic with
//! respect to those of other ranks. An origin's accumulates stay in the order of its calls, even
//! where the hint `accumulate_ordering` would allow less.

use shipable::program::Strided;
use shipable::reduce::{Op, Reduction, Swap};
use shipable::{Architecture, Leaf, Program};

use super::{Path, Progress, Ways, never};
use crate::error::{Error, ErrorKind, Result, conversion};
use crate::job::Routes;
use crate::memory::{Span, Typed};
use crate::origin::{Elementwise, What};
use crate::route::{CopyPlan, Route, plan_copy};
use crate::types::TargetType;
use crate::window::call::{Action, Call};
use crate::window::memo::{Key, Means, Moved, Run};
use crate::window::near::{Side, Sides};
use crate::window::operation::{Checked, Operand, Operation};
use crate::window::own::{Reach, Reached};
use crate::window::parts::Parts;
use crate::window::peers::Target;

/// Bytes that are combined under the accumulate lock at a time: some microseconds. Taking the lock
/// waits for the stores of the last piece (docs/tuning.md, "Pieces of accumulates").
pub(in crate::window) const PIECE: u64 = 128 << 10;

/// The path.
pub(super) const PATH: Path = Path { name: "direct", misfit, carry_out, again: never };

fn misfit(
    parts: &Parts,
    target: &Target,
    operation: &Operation<'_>,
    _: u64,
) -> Option<&'static str> {
    let (process, here) = (parts.process(), parts.process().me());
    let is_private = target.class_at(operation.call.at).is_private();
    match target.route {
        Route::Direct if is_private => Some("the attached memory isn't of MPI_Alloc_mem"),
        Route::Direct => converts(parts, target, operation).or_else(|| {
            // Attachments are mapped one by one.
            let is_mapped = parts.memory().reach(target, (0, 0)).is_ok();
            match must_wait(parts, target, operation.call.action) {
                _ if !is_mapped => Some("this rank can't map the target's memory"),
                true => Some("an earlier accumulate is on its way by message"),
                false => None,
            }
        }),
        _ if process.routes() == Routes::Message => Some("only messages are allowed in this job"),
        _ if target.architecture.order() != here.architecture.order() => {
            Some("the target has the other byte order")
        }
        Route::Message if parts.memory().attachments().is_some() && emulates(parts, target) => {
            Some("a rank that emulates another architecture attaches memory without real addresses")
        }
        Route::Rdma => Some("the target is on another host"),
        Route::Peer => Some("the memory isn't of MPI_Alloc_mem or MPI_Win_allocate"),
        Route::Message => Some("the target is on another host, or its memory isn't shared"),
    }
}

/// Why an operation isn't copied but converted; `None` if it is copied. It asks what
/// [`Checked::is_copied`] asks.
pub(super) fn converts(
    parts: &Parts,
    target: &Target,
    operation: &Operation<'_>,
) -> Option<&'static str> {
    let (process, there) = (parts.process(), &target.architecture);
    if target.alike {
        return None;
    }
    if let TargetType::Own(own) = operation.call.target_type {
        if !own.compiled().is_equal_on(there) {
            return Some("the target represents data of this type otherwise");
        }
    }
    let Sides { origin, result, .. } = &operation.sides;
    let origin = origin.as_ref().filter(|_| !operation.call.action.is_atomic_get());
    let is_converted = |side: &Side<'_>| {
        let checked = side.what.check(process, side.span);
        checked.is_ok_and(|checked| !checked.datatype.has_same_items(there))
    };
    let mut near = origin.into_iter().chain(result);
    near.any(is_converted).then_some("the target represents data of this rank's side otherwise")
}

/// Whether this rank or a target emulates another architecture than the machine's.
fn emulates(parts: &Parts, target: &Target) -> bool {
    let of_target = parts.process().engine().state().representation(target.peer);
    parts.process().me().emulated || of_target.is_some_and(|(_, emulated)| emulated)
}

/// Carries out an operation all of whose bytes this rank reaches.
fn carry_out(
    parts: &Parts,
    checked: &mut Checked<'_>,
    ways: &mut Ways,
) -> Result<Option<Progress>> {
    let Route::Direct = checked.target.route else { return Ok(None) };
    // By message where an earlier accumulate may be in flight by message, since they stay in order.
    if must_wait(parts, checked.target, checked.action) {
        return Ok(None);
    }
    if !checked.is_copied() {
        // Accumulates that are converted are checked each time, so that the memo learns when they
        // have to be in order.
        if checked.action.moves() {
            ways.note(parts, checked);
        }
        return Ok(None);
    }
    let reached = match parts.memory().reach(checked.target, checked.bytes) {
        Ok(Reach::Mapped(reached)) => reached,
        Ok(_) => return Ok(None),
        // Its address space may be smaller than an unlike target's.
        Err(_) if !checked.target.alike => return Ok(None),
        Err(error) => return Err(error),
    };
    act_checked(parts, checked, &reached, ways.key.take())?;
    if let Some(counter) = checked.notify {
        parts.peers().control().notify(checked.target.rank, counter);
    }
    Ok(Some(Progress::Done))
}

/// Whether an accumulate would overtake one that is in flight. Most windows never have one in
/// flight to a target that this rank reaches directly: it takes attachments, or a type that is
/// converted.
fn must_wait(parts: &Parts, target: &Target, action: Action) -> bool {
    let overtakes = || {
        let flight = parts.flight();
        flight.is_shipped() && flight.outstanding(target.peer) > 0
    };
    let accumulates = !action.moves();
    let may_overtake =
        || parts.memo().orders_accumulates() || parts.memory().attachments().is_some();
    accumulates && may_overtake() && overtakes()
}

/// Carries out an operation on memory that was reached, and notes how.
fn act_checked(
    parts: &Parts,
    checked: &Checked<'_>,
    reached: &Reached<'_>,
    key: Option<Key>,
) -> Result<()> {
    let there = reached.span.shifted(checked.base).ok_or_else(|| refused(checked.displacement))?;
    let means = match (checked.action, checked.leaf) {
        (Action::Put | Action::Get, _) => {
            transfer(parts, checked, there)?;
            Ok(key.and_then(|key| prepare(parts, checked, &key)))
        }
        (Action::CompareAndSwap, Some(leaf)) => swap(parts, checked, there, leaf).map(Some),
        (action, Some(leaf)) => {
            let op = action.op().unwrap_or(Op::NoOp);
            let reduction = Reduction::new(op, leaf, &parts.process().me().architecture)?;
            accumulate(parts, checked, there, &reduction)?;
            let run = key.filter(Key::is_same).and_then(|_| run(checked.target_type));
            Ok(run.map(|run| Means::Combine(run, reduction)))
        }
        (_, None) => Ok(None),
    }?;
    if let (Some(key), Some(means)) = (key.filter(|key| may_repeat(parts, checked, key)), means) {
        let is_everywhere = !key.is_private() && is_equal_everywhere(parts, checked.target_type);
        parts.memo().keep(key, means, is_everywhere);
    }
    Ok(())
}

/// Whether the memo may know an operation by its key. Where this rank emulates another architecture
/// the key doesn't tell slices, which have the machine's representation, from other memory. So its
/// type must be equal in both.
fn may_repeat(parts: &Parts, checked: &Checked<'_>, key: &Key) -> bool {
    !parts.process().me().emulated
        || key.is_same() && is_equal_in(checked.target_type, &[Architecture::NATIVE])
}

/// Whether a type is equal in the representations of all targets that this rank reaches directly.
fn is_equal_everywhere(parts: &Parts, target_type: TargetType<'_>) -> bool {
    is_equal_in(target_type, parts.peers().kinds())
}

fn is_equal_in(target_type: TargetType<'_>, kinds: &[Architecture]) -> bool {
    match target_type {
        TargetType::Own(own) => kinds.iter().all(|kind| own.compiled().is_equal_on(kind)),
        TargetType::Foreign(_) => kinds.is_empty(),
    }
}

fn refused(displacement: i64) -> Error {
    ErrorKind::Displacement(displacement).into()
}

/// Elements in this rank's memory, as their own program sees them.
fn typed(operand: &Operand) -> Typed<'_> {
    let Elementwise { datatype, count, span } = &operand.elements;
    Typed { program: datatype.native(), count: *count, span: *span }
}

/// Copies data to or from the target's memory.
fn transfer(parts: &Parts, checked: &Checked<'_>, there: Span) -> Result<()> {
    let Checked { count, target_type, displacement, .. } = *checked;
    let is_put = checked.action == Action::Put;
    let Some(side) = checked.near() else { return Ok(()) };
    let near = typed(side);
    let len = near.program.stream_length(near.count)?;
    target_type.with_native(&checked.target.architecture, |program| {
        let plan = plan_copy(len, near.program.contiguous(near.count), program.contiguous(count));
        let far = Typed { program, count, span: there };
        let copied = match plan {
            CopyPlan::Nothing => true,
            CopyPlan::Run { origin, target, len } if is_put => {
                far.span.copy_run(target, near.span, origin, len)
            }
            CopyPlan::Run { origin, target, len } => {
                near.span.copy_run(origin, far.span, target, len)
            }
            CopyPlan::Walk => {
                let (from, to) = if is_put { (near, far) } else { (far, near) };
                return Span::copy(from, to, parts.may_divide()).map_err(conversion);
            }
        };
        // The ranges were checked, but a span might be shorter than its owner announced.
        if copied { Ok(()) } else { Err(refused(displacement)) }
    })
}

/// Combines data with the target's memory, piece by piece.
fn accumulate(
    parts: &Parts,
    checked: &Checked<'_>,
    there: Span,
    reduction: &Reduction,
) -> Result<()> {
    let Checked { count, target_type, .. } = *checked;
    let control = parts.peers().control();
    target_type.with_native(&checked.target.architecture, |program| {
        let far = Typed { program, count, span: there };
        // Without operands or a result these places aren't accessed. All the same they hold values:
        // the compiler looks at places before it looks at whether there is one, which valgrind
        // reports.
        let none = || Typed { program, count, span: there };
        let operands = checked.origin.as_ref().map_or_else(none, typed);
        let room = checked.result.as_ref().map_or_else(none, typed);
        let result = checked.result.is_some().then_some(&room);
        let length = program.stream_length(count)?;
        let piece = PIECE / reduction.element() * reduction.element();
        let mut done = 0;
        while done < length {
            let range = done..length.min(done + piece);
            done = range.end;
            let _held = control.accumulate(checked.target.rank);
            Span::combine(reduction, &operands, &far, result, range).map_err(conversion)?;
        }
        Ok(())
    })
}

/// Compares and swaps one element.
fn swap(parts: &Parts, checked: &Checked<'_>, there: Span, leaf: Leaf) -> Result<Means> {
    let swap = Swap::new(leaf, &parts.process().me().architecture)?;
    let (Some(new), Some(old), Some(compare)) = (&checked.origin, &checked.result, checked.compare)
    else {
        return Err(refused(checked.displacement));
    };
    let _held = parts.peers().control().accumulate(checked.target.rank);
    match there.swap_at(&swap, 0, compare, new.elements.span, old.elements.span) {
        true => Ok(Means::Swap(swap)),
        false => Err(refused(checked.displacement)),
    }
}

/// The run that elements of a type of this rank are, if they are one.
fn run(target_type: TargetType<'_>) -> Option<Run> {
    let TargetType::Own(own) = target_type else { return None };
    let program = own.compiled().native();
    let (first, size) = (program.contiguous(1)?, program.stream_length(1).ok()?);
    let most = if program.contiguous(2).is_some() { i64::MAX as u64 } else { 1 };
    Some(Run { first, size, most })
}

/// How a put or get that was carried out is carried out again.
fn prepare(parts: &Parts, checked: &Checked<'_>, key: &Key) -> Option<Means> {
    let Checked { action, count, target_type, .. } = *checked;
    let side = checked.near()?;
    let near = side.elements.datatype.native();
    if let Some(run) = run(target_type).filter(|_| key.is_same()) {
        // A struct that ends in padding has more memory than data, and its tail isn't written.
        if run.len(count as i64) == Some(side.elements.span.len()) {
            return Some(Means::Copy(run));
        }
    }
    let process = parts.process();
    let slices = match checked.slice {
        Some(element) => Some(element.commit(process.elements()).ok()?.clone()),
        None => None,
    };
    if checked.picks_members {
        return None;
    }
    let moved = Moved { near_count: side.elements.count, far_count: count, slices };
    let architecture = &checked.target.architecture;
    let means = target_type
        .with_native(architecture, |far| Ok(Means::of(action == Action::Put, moved, near, far)));
    means.ok()
}

impl Means {
    /// How data are moved between two layouts.
    fn of(is_put: bool, moved: Moved, near: &Program, far: &Program) -> Means {
        let Moved { near_count, far_count, .. } = moved;
        let alike = near_count == far_count && near.is_like(far);
        let strided = match (alike, is_put) {
            (true, _) => Strided::mirror(near, near_count),
            (false, true) => Strided::between(near, near_count, far, far_count),
            (false, false) => Strided::between(far, far_count, near, near_count),
        };
        match strided {
            Some(strided) => Means::Strided(strided),
            None if alike => Means::Mirror(moved),
            None => Means::Walk(moved),
        }
    }
}

/// Carries out an operation again by the means that were prepared for it.
#[inline]
pub(super) fn again(
    parts: &Parts,
    target: &Target,
    means: &Means,
    operation: &Operation<'_>,
) -> Option<Progress> {
    if operation.call.at < 0 || must_wait(parts, target, operation.call.action) {
        return None;
    }
    let base = operation.call.at.checked_mul(i64::from(target.measures.unit))?;
    let acted = match target.mapping.get() {
        Some(mapping) => act(parts, target, means, operation, mapping.span.shifted(base)?),
        None => act_attached(parts, target, means, operation, base),
    };
    acted.map(|()| Progress::Done)
}

/// As [`act`], on memory that the target attached.
#[inline(never)]
fn act_attached(
    parts: &Parts,
    target: &Target,
    means: &Means,
    operation: &Operation<'_>,
    base: i64,
) -> Option<()> {
    // The address of the run's first byte decides which attachment it is.
    let first = match means {
        Means::Copy(run) | Means::Combine(run, _) => run.first,
        _ => 0,
    };
    let reached = parts.memory().reach_address(target, base.checked_add(first)?)?;
    act(parts, target, means, operation, reached.span.shifted(base)?)
}

/// Acts on the target's memory, displacement 0 being where the operation's lies.
#[inline(always)]
fn act(
    parts: &Parts,
    target: &Target,
    means: &Means,
    operation: &Operation<'_>,
    there: Span,
) -> Option<()> {
    match means {
        Means::Strided(strided) => {
            let near = displaced(operation.moved()?)?;
            let is_put = operation.call.action == Action::Put;
            let (from, to) = if is_put { (near, there) } else { (there, near) };
            Span::copy_strided(strided, from, to).then_some(())
        }
        _ => act_otherwise(parts, target, means, operation, there),
    }
}

#[inline(never)]
fn act_otherwise(
    parts: &Parts,
    target: &Target,
    means: &Means,
    operation: &Operation<'_>,
    there: Span,
) -> Option<()> {
    let Call { action, count, target_type, .. } = &operation.call;
    let Sides { origin, result, compare } = &operation.sides;
    match means {
        Means::Copy(run) => {
            let (memory, len) = (operation.moved()?.span, run.len(*count)?);
            let fits = memory.len() == len;
            let copied = match action {
                Action::Put => fits && there.copy_run(run.first, memory, run.first, len),
                _ => fits && memory.copy_run(run.first, there, run.first, len),
            };
            copied.then_some(())
        }
        Means::Combine(run, reduction) => {
            let room = result.map(|side| side.span);
            let memory = match action.is_atomic_get() {
                true => room?,
                false => origin.as_ref()?.span,
            };
            let len = run.len(*count)?;
            let fits = |span: Span| span.len() == len;
            if !fits(memory) || !room.is_none_or(fits) {
                return None;
            }
            combine_pieces(parts, target, reduction, run.first, len, [there, memory], room)
        }
        Means::Swap(swap) => {
            let (new, old) = (origin.as_ref()?.span, result.as_ref()?.span);
            let _held = parts.peers().control().accumulate(target.rank);
            there.swap_at(swap, 0, compare.as_ref()?.span, new, old).then_some(())
        }
        Means::Mirror(moved) | Means::Walk(moved) => {
            let mirrors = matches!(means, Means::Mirror(_));
            let is_put = *action == Action::Put;
            let far = (*target_type, &target.architecture, there);
            walk(parts, moved, mirrors, operation.moved()?, is_put, far)
        }
        Means::Nothing | Means::Strided(_) | Means::Frame(_) | Means::Stream(_) => None,
    }
}

/// The memory of a side, displacement 0 being where its elements' lies.
#[inline]
fn displaced(side: &Side<'_>) -> Option<Span> {
    match side.what {
        What::Typed { at, .. } => side.span.shifted(at),
        What::Slice { .. } | What::InPlace => Some(side.span),
    }
}

fn walk(
    parts: &Parts,
    moved: &Moved,
    mirrors: bool,
    side: &Side<'_>,
    is_put: bool,
    (target_type, architecture, far): (TargetType<'_>, &Architecture, Span),
) -> Option<()> {
    let datatype = match side.what {
        What::Slice { .. } => moved.slices.as_ref()?,
        What::Typed { datatype, .. } => datatype,
        What::InPlace => return None,
    };
    let (program, near) = (datatype.compiled().native(), displaced(side)?);
    let Moved { near_count, far_count, .. } = *moved;
    let outcome = match (mirrors, is_put) {
        (true, _) => {
            let (from, to) = if is_put { (near, far) } else { (far, near) };
            Span::mirror(program, near_count, from, to, parts.may_divide())
        }
        (false, _) => {
            let near = Typed { program, count: near_count, span: near };
            let copied = target_type.with_native(architecture, |program| {
                let far = Typed { program, count: far_count, span: far };
                let (from, to) = if is_put { (near, far) } else { (far, near) };
                Ok(Span::copy(from, to, parts.may_divide()))
            });
            copied.ok()?
        }
    };
    outcome.ok()
}

/// Combines one piece, if all memories have it. The items that were there go to `room`.
#[inline]
pub(super) fn combine(
    parts: &Parts,
    target: &Target,
    reduction: &Reduction,
    (first, len): (i64, u64),
    (there, at): (Span, i64),
    memory: Span,
    room: Option<Span>,
) -> Option<()> {
    let operands = memory.shifted(first)?;
    let _held = parts.peers().control().accumulate(target.rank);
    if let Some(room) = room {
        if !room.copy_run(first, there, at, len) {
            return None;
        }
    }
    there.combine_run(reduction, at, operands, len).then_some(())
}

/// Combines piece by piece: none unless all can be.
fn combine_pieces(
    parts: &Parts,
    target: &Target,
    reduction: &Reduction,
    first: i64,
    len: u64,
    [there, memory]: [Span; 2],
    room: Option<Span>,
) -> Option<()> {
    let end = first.checked_add_unsigned(len)?;
    let has = |span: Span| span.covers(first, end);
    if !has(there) || !has(memory) || !room.is_none_or(has) {
        return None;
    }
    let piece = PIECE / reduction.element() * reduction.element();
    let mut done = 0;
    while done < len {
        let at = first + done as i64;
        let piece = (at, piece.min(len - done));
        combine(parts, target, reduction, piece, (there, at), memory, room)?;
        done += piece.1;
    }
    Some(())
}
