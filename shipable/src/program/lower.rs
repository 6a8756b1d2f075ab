//! Lowering: from a form to a program, for one memory and one stream.
//!
//! 1. Take the bounds of every node in the memory's architecture. The caller has computed them.
//! 2. Turn the nodes into operations, children first. A leaf becomes the runs of its
//!    scalars. An array repeats the operations of its child. A struct becomes the operations of its
//!    members in sequence.
//! 3. Normalise after every node: [`join`] runs that adjoin, [`tabulate`] sequences of runs. While
//!    step 2 repeats operations, [`repeat`] folds the repetitions into blocks where they fit. None
//!    of these changes the order of the stream. In debug builds, [`verify`] checks after each node
//!    that the operations hold as many bytes as before, within the same bounds.
//!
//! A sequence that is too long to copy into every operation that repeats it becomes the body of a
//! loop, which the loops share. The program's size is therefore linear in the form's, however often
//! the form repeats its parts. The factor can still be large: an operation takes 180 bytes where a
//! member took two, and a run that took four bytes becomes up to 28 bytes of a table. A hostile
//! peer's form must not exhaust memory, so every allocation is charged to a [`Budget`] first.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use super::Program;
use super::op::{Block, Body, Gather, Item, Loop, Op, OpStart, RaggedRun, Table};
use crate::arch::Architecture;
use crate::basic::Leaf;
use crate::bounds::Bounds;
use crate::convert::Conversion;
use crate::error::{Error, Result};
use crate::form::{Form, Node, Tag, Vector, layout};
use crate::kernels::{Kernel, OffsetsBuilder};

/// The capacity for operations that suffices for most programs, shared children included.
const FEW: usize = 4;

/// The longest sequence of operations that is copied into the operations that repeat it.
const COPIED: usize = 16;

/// The most operations that an array or a struct makes by copying its children. Beyond, it shares
/// them.
const MANY: usize = 256;

/// The shortest sequence of runs that becomes a table.
const TABLE: usize = 8;

/// The bytes that a program may still take. Operations are charged before they are copied or
/// tabulated, and refunded when they are joined. While lowering runs, it holds at most two to three
/// times the charged bytes.
struct Budget {
    left: u64,
    /// The bytes at the start, for the error message.
    most: u64,
}

impl Budget {
    /// Charges for `count` values of a type.
    fn take<T>(&mut self, count: usize) -> Result<()> {
        let bytes = (count as u64).saturating_mul(size_of::<T>() as u64);
        let too_large = Error::TooLarge { most: self.most };
        self.left = self.left.checked_sub(bytes).ok_or(too_large)?;
        Ok(())
    }

    /// Refunds `count` values that were charged.
    fn give_back<T>(&mut self, count: usize) {
        self.left += (count * size_of::<T>()) as u64;
    }

    /// A loop over operations. Copying it is cheap, because the body is shared.
    fn looped(&mut self, ops: Box<[Op]>, count: u64, stride: i64) -> Result<Op> {
        self.take::<OpStart>(ops.len())?;
        // An `Arc` stores two counts beside its value.
        self.take::<(Op, Body, [usize; 2])>(1)?;
        Ok(Op::Loop(Loop { start: 0, count, stride, body: Arc::new(Body::new(ops)) }))
    }

    fn once(&mut self, ops: Box<[Op]>) -> Result<Op> {
        self.looped(ops, 1, 0)
    }

    /// A loop of one iteration over a copy of operations.
    fn shared(&mut self, ops: &[Op]) -> Result<Op> {
        self.take::<Op>(ops.len())?;
        self.once(ops.into())
    }
}

/// Lowers a form. `layouts` are the bounds of its nodes in the memory's architecture. Subtracts the
/// bytes that the program takes from `budget`.
pub(crate) fn lower(
    form: &Form,
    layouts: &[Bounds],
    memory: &Architecture,
    stream: &Architecture,
    budget: &mut u64,
) -> Result<Program> {
    let mut within = Budget { left: *budget, most: *budget };
    let program = lower_within(form, layouts, memory, stream, &mut within)?;
    *budget = within.left;
    Ok(program)
}

fn lower_within(
    form: &Form,
    layouts: &[Bounds],
    memory: &Architecture,
    stream: &Architecture,
    budget: &mut Budget,
) -> Result<Program> {
    let portable = form.tag() == Tag::Portable;
    let same = memory.same_representation(stream);
    // If the stream has the memory's representation, the bounds hold the sizes already.
    let sizes = if same { Vec::new() } else { layout::sizes(form.nodes(), stream)? };
    // The operations of all nodes that are lowered so far, and the loops that they share.
    let mut ops = Vec::with_capacity(FEW);
    let mut lowered: SmallVec<[Range<usize>; 8]> = SmallVec::new();
    for (index, node) in form.nodes().iter().enumerate() {
        let from = match node {
            Node::Leaf(leaf) => items(*leaf, memory, (!same).then_some(stream), &mut ops, budget)?,
            Node::Array { child, vectors, .. } => {
                let extent = layouts[*child as usize].extent();
                let unit = if portable { extent } else { 1 };
                array(lowered[*child as usize].clone(), vectors, unit, extent, &mut ops, budget)?
            }
            Node::Simple { members } => {
                let places = layout::places(members, layouts)?;
                let members = members.iter().zip(places);
                let members = members.map(|(member, place)| (member.child, member.length, place));
                structure(members, &lowered, layouts, &mut ops, budget)?
            }
            Node::Struct { members, .. } => {
                let members =
                    members.iter().map(|member| (member.child, member.length, member.displacement));
                structure(members, &lowered, layouts, &mut ops, budget)?
            }
        };
        let made = ops.len();
        join(&mut ops, from);
        tabulate(&mut ops, from, budget)?;
        budget.give_back::<Op>(made - ops.len());
        verify(&ops[from..], &layouts[index], sizes.get(index).copied());
        if ops.len() - from > COPIED {
            let body = ops.drain(from..).collect();
            ops.push(budget.once(body)?);
        }
        lowered.push(from..ops.len());
    }
    let last = lowered.pop().unwrap_or_default();
    let body = match &ops[last.clone()] {
        [Op::Loop(Loop { start: 0, count: 1, body, .. })] => {
            let body = Arc::clone(body);
            drop(ops);
            Arc::unwrap_or_clone(body)
        }
        _ => Body::new(ops.drain(last).collect()),
    };
    let extent = layouts.last().map_or(0, Bounds::extent);
    Ok(Program::new(body, extent))
}

/// Adds the scalars of a leaf and returns the index of the first one. If the stream's
/// representation differs, each scalar is converted separately.
fn items(
    leaf: Leaf,
    memory: &Architecture,
    stream: Option<&Architecture>,
    ops: &mut Vec<Op>,
    budget: &mut Budget,
) -> Result<usize> {
    let from = ops.len();
    let inside = memory.leaf(leaf)?;
    let outside = stream.map(|stream| stream.leaf(leaf)).transpose()?;
    budget.take::<Op>(inside.components.len())?;
    for (part, inside) in inside.components.iter().enumerate() {
        let pack = match &outside {
            Some(outside) => Conversion::between(inside.scalar, outside.components[part].scalar)?,
            None => Conversion::Copy,
        };
        let fails = pack.can_fail() || pack.reversed().can_fail();
        let item = Item { pack, leaf: fails.then_some(leaf) };
        // The unit of a copy is a byte.
        let units = u64::from(inside.scalar.size) / item.memory();
        ops.push(Op::Block(Block::run(inside.offset.into(), item, units, 1)));
    }
    Ok(from)
}

/// Adds vectors of a child and returns the index of the first operation. The child's elements lie
/// `extent` bytes apart. Displacements of the vectors count `unit`s of bytes.
fn array(
    mut child: Range<usize>,
    vectors: &[Vector],
    unit: i64,
    extent: i64,
    ops: &mut Vec<Op>,
    budget: &mut Budget,
) -> Result<usize> {
    if child.is_empty() {
        return Ok(ops.len());
    }
    if let Some(table) = table(&ops[child.clone()], vectors, unit, extent, budget)? {
        budget.take::<Op>(1)?;
        ops.push(table);
        return Ok(ops.len() - 1);
    }
    if child.len() > 1 && child.len() * vectors.len() > MANY {
        let shared = budget.shared(&ops[child])?;
        ops.push(shared);
        child = ops.len() - 1..ops.len();
    }
    budget.take::<Op>(child.len() * vectors.len())?;
    let first = ops.len();
    grow(ops, child.len() * vectors.len());
    for vector in vectors {
        let from = ops.len();
        ops.extend_from_within(child.clone());
        repeat(ops, from, vector.length, extent, budget)?;
        repeat(ops, from, vector.count, layout::scaled(vector.stride, unit)?, budget)?;
        shift(&mut ops[from..], layout::scaled(vector.displacement, unit)?)?;
    }
    Ok(first)
}

/// Reserves capacity for `more` operations. Growing by a quarter instead of doubling keeps the peak
/// low, since the old and the new allocation exist together.
fn grow(ops: &mut Vec<Op>, more: usize) {
    if ops.capacity() - ops.len() < more {
        ops.reserve_exact(more.max(ops.len() / 4).max(FEW));
    }
}

/// Makes a table directly from vectors of few blocks, or a single run if all adjoin. Returns
/// `None` if it can't.
///
/// The child must consist of single runs with one conversion. In addition, either consecutive
/// children adjoin, or each block holds one child.
fn table(
    child: &[Op],
    vectors: &[Vector],
    unit: i64,
    extent: i64,
    budget: &mut Budget,
) -> Result<Option<Op>> {
    let (blocks, copies) = vectors.iter().fold((0u64, 0u64), |(blocks, copies), vector| {
        // The child has bytes, and the array's size fits, so the number of children fits too.
        (
            blocks.saturating_add(vector.count),
            copies.wrapping_add(vector.count.wrapping_mul(vector.length)),
        )
    });
    let few = blocks <= 4 * vectors.len() as u64 && blocks >= TABLE as u64;
    let [Op::Block(one), more @ ..] = child else { return Ok(None) };
    let adjoins = more.is_empty() && u64::try_from(extent) == Ok(one.memory_run());
    let parts = child.iter().map_while(|op| match op {
        Op::Block(part) if part.runs() == 1 && part.item() == one.item() => Some(part),
        _ => None,
    });
    let parts: SmallVec<[&Block; 4]> = parts.collect();
    let alike = parts.len() == child.len();
    if !few || !alike || !(adjoins || vectors.iter().all(|vector| vector.length == 1)) {
        return Ok(None);
    }
    // The bounds of the array fit an `i64`, so its displacements do too. A summand may wrap.
    let blocks = vectors.iter().flat_map(|vector| {
        let (first, stride) =
            (vector.displacement.wrapping_mul(unit), vector.stride.wrapping_mul(unit));
        let place = move |block: u64| first.wrapping_add(stride.wrapping_mul(block as i64));
        (0..vector.count).map(move |block| (place(block), vector.length))
    });
    let items = copies * parts.iter().map(|part| part.items).sum::<u64>();
    let table = match &parts[..] {
        [part] => {
            let runs =
                blocks.map(|(at, length)| (at.wrapping_add(part.start), part.units * length));
            gather(one.item(), runs, items, budget)?
        }
        parts => {
            let runs = blocks.flat_map(|(at, _)| {
                parts.iter().map(move |part| (at.wrapping_add(part.start), part.units))
            });
            gather(one.item(), runs, items, budget)?
        }
    };
    Ok(Some(table))
}

/// Adds the members of a struct in order and returns the index of the first operation. A member is
/// a child, the number of its elements, and a displacement. If copies would be too many operations,
/// members of one type share theirs.
fn structure(
    members: impl Iterator<Item = (u32, u64, i64)> + Clone,
    lowered: &[Range<usize>],
    layouts: &[Bounds],
    ops: &mut Vec<Op>,
    budget: &mut Budget,
) -> Result<usize> {
    let all: usize = members.clone().map(|(child, ..)| lowered[child as usize].len()).sum();
    let each = if all > MANY { members.clone().count() } else { all };
    budget.take::<Op>(each)?;
    let mut shared: HashMap<u32, Op> = HashMap::new();
    let first = ops.len();
    grow(ops, each);
    for (child, length, place) in members {
        let extent = layouts[child as usize].extent();
        let one = lowered[child as usize].clone();
        let from = ops.len();
        match one.len() {
            2.. if all > MANY => {
                let one = match shared.entry(child) {
                    Entry::Occupied(shared) => shared.into_mut(),
                    Entry::Vacant(first) => first.insert(budget.shared(&ops[one])?),
                };
                ops.push(one.clone());
            }
            _ => ops.extend_from_within(one),
        }
        repeat(ops, from, length, extent, budget)?;
        // The bounds of the struct fit an `i64`, so the displacements of its members do too.
        ops[from..].iter_mut().for_each(|op| op.shift(place));
    }
    Ok(first)
}

fn shift(ops: &mut [Op], by: i64) -> Result<()> {
    for op in ops {
        let Range { start, end } = op.reach();
        if start.checked_add(by).is_none() || end.checked_add(by).is_none() {
            return Err(Error::Overflow { what: "a displacement" });
        }
        op.shift(by);
    }
    Ok(())
}

/// Repeats the operations from index `from` on, `count` times, `stride` bytes apart.
fn repeat(
    ops: &mut Vec<Op>,
    from: usize,
    count: u64,
    stride: i64,
    budget: &mut Budget,
) -> Result<()> {
    let repeated = match &mut ops[from..] {
        [] => true,
        _ if count == 1 => true,
        _ if count == 0 => {
            ops.truncate(from);
            true
        }
        [Op::Block(block)] => block.repeat(count, stride),
        [Op::Loop(inner)] if inner.count == 1 => {
            (inner.count, inner.stride) = (count, stride);
            true
        }
        [Op::Loop(inner)] if inner.continues(stride) => {
            inner.count *= count;
            true
        }
        _ => false,
    };
    if !repeated {
        let body = ops.drain(from..).collect();
        ops.push(budget.looped(body, count, stride)?);
    }
    Ok(())
}

/// Joins runs from index `from` on that adjoin in memory and have the same conversion.
fn join(ops: &mut Vec<Op>, from: usize) {
    let mut last = from;
    for next in from + 1..ops.len() {
        if let [Op::Block(last), .., Op::Block(next)] = &mut ops[last..=next] {
            let adjoin = last.runs() == 1
                && next.runs() == 1
                && last.start.checked_add(last.memory_run() as i64) == Some(next.start);
            if adjoin && last.item() == next.item() {
                last.lengthen(next.units, next.items);
                continue;
            }
        }
        last += 1;
        ops.swap(last, next);
    }
    ops.truncate(last + 1);
}

/// Turns long sequences of runs from index `from` on into tables, where their conversions agree.
fn tabulate(ops: &mut Vec<Op>, from: usize, budget: &mut Budget) -> Result<()> {
    if ops.len() - from < TABLE {
        return Ok(());
    }
    let alike = |last: &Op, next: &Op| match (last, next) {
        (Op::Block(last), Op::Block(next)) => {
            last.runs() == 1 && next.runs() == 1 && last.item() == next.item()
        }
        _ => false,
    };
    if ops[from..].chunk_by(alike).all(|sequence| sequence.len() < TABLE) {
        return Ok(());
    }
    let all: Vec<Op> = ops.drain(from..).collect();
    for sequence in all.chunk_by(alike) {
        match sequence {
            [Op::Block(first), ..] if sequence.len() >= TABLE => {
                let runs = sequence.iter().filter_map(|op| match op {
                    Op::Block(run) => Some((run.start, run.units)),
                    _ => None,
                });
                let items = sequence.iter().map(Op::items).sum();
                ops.push(gather(first.item(), runs, items, budget)?);
            }
            _ => ops.extend_from_slice(sequence),
        }
    }
    Ok(())
}

/// A table of runs, each an offset and a number of units. Runs that adjoin are joined. If one run
/// remains, the result is a block. The iterator runs twice: to measure, and to fill the table.
fn gather(
    item: Item,
    runs: impl Iterator<Item = (i64, u64)> + Clone,
    items: u64,
    budget: &mut Budget,
) -> Result<Op> {
    let (memory, stream) = (item.memory(), item.stream());
    let mut start = None;
    let (mut all, mut units, mut step) = (0u64, 0u64, 0u64);
    let (mut least, mut greatest) = (0i64, 0i64);
    joined(runs.clone(), memory, |offset, run| {
        let offset = offset.wrapping_sub(*start.get_or_insert(offset));
        least = least.min(offset);
        greatest = greatest.max(offset.wrapping_add((run * memory) as i64));
        (all, units) = (all + 1, units + run);
        if step != 1 {
            step = gcd(run, step);
        }
    });
    let start = start.unwrap_or(0);
    if all == 1 {
        return Ok(Op::Block(Block::run(start, item, units, items)));
    }
    let parts = units / step;
    let (table, kernel) = if parts <= EXPANSION * all && (parts <= CUT || parts <= 2 * all) {
        // Cut the runs into parts of equal length. The kernel for even tables more than makes up
        // for the additional parts.
        budget.take::<i64>(parts as usize)?;
        let mut offsets = OffsetsBuilder::of(parts as usize);
        joined(runs, memory, |offset, run| {
            offsets.add(offset.wrapping_sub(start), run / step, (step * memory) as i64);
        });
        (Table::Even { offsets: Arc::new(offsets.finish()) }, Kernel::new(item.pack, step))
    } else {
        budget.take::<RaggedRun>(all as usize)?;
        let (mut ragged, mut position) = (Vec::with_capacity(all as usize), 0);
        joined(runs, memory, |offset, run| {
            ragged.push(RaggedRun { offset: offset.wrapping_sub(start), position });
            position += run * stream;
        });
        (Table::Ragged { runs: ragged.into() }, Kernel::new(item.pack, 1))
    };
    let (leaf, stream) = (item.leaf, units * stream);
    Ok(Op::Gather(Gather { start, table, kernel, leaf, stream, items, reach: least..greatest }))
}

/// Passes each run to `each`, after joining runs that adjoin. A unit takes `memory` bytes.
#[inline]
fn joined(runs: impl Iterator<Item = (i64, u64)>, memory: u64, mut each: impl FnMut(i64, u64)) {
    let mut last: Option<(i64, u64)> = None;
    runs.for_each(|(offset, units)| match &mut last {
        Some((start, run)) if start.checked_add((*run * memory) as i64) == Some(offset) => {
            *run += units;
        }
        last => {
            if let Some((start, run)) = last.replace((offset, units)) {
                each(start, run);
            }
        }
    });
    if let Some((start, run)) = last {
        each(start, run);
    }
}

/// A table of runs of different lengths is cut into equal parts, unless the parts would outnumber
/// the runs by more than this factor.
const EXPANSION: u64 = 8;

/// If there are more parts than this (2 MiB of offsets), a table is cut only if that makes it no
/// larger.
const CUT: u64 = 1 << 18;

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Checks a pass in debug builds: lost, moved or additional bytes are a bug of the pass.
fn verify(ops: &[Op], layout: &Bounds, size: Option<u64>) {
    if cfg!(debug_assertions) {
        let held: u64 = ops.iter().map(Op::stream).sum();
        let size = size.unwrap_or(layout.size as u64);
        assert_eq!(held, size, "bytes in the stream of {ops:?}");
        let starts = ops.iter().map(|op| op.reach().start).min().unwrap_or(0);
        let ends = ops.iter().map(|op| op.reach().end).max().unwrap_or(0);
        assert_eq!((starts, ends), (layout.true_lb, layout.true_ub), "bounds of {ops:?}");
    }
}
