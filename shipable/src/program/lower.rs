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

use smallvec::SmallVec;

use super::Program;
use super::budget::Budget;
use super::op::{Block, Item, Op, Ops};
use super::runs::{Run, Runs, copied};
use super::tables::{table, tabulate};
use crate::arch::Architecture;
use crate::basic::Leaf;
use crate::bounds::Bounds;
use crate::convert::Conversion;
use crate::error::{Error, Result};
use crate::fields::Fields;
use crate::form::vectors::{Stored, Vectors, scaled};
use crate::form::{Form, Node, Tag, layout};

/// The least capacity for operations that don't fit in place.
const FEW: usize = 4;

/// The longest sequence of operations that is copied into the operations that repeat it.
const COPIED: usize = 16;

/// The most operations that an array or a struct makes by copying its children. Beyond, it shares
/// them.
const MANY: usize = 256;

impl Form {
    /// The program that moves items between memory in one representation and a packed stream in
    /// another.
    ///
    /// # Errors
    ///
    /// Those of [`Form::bounds`] for `memory`.
    pub fn lower(&self, memory: &Architecture, stream: &Architecture) -> Result<Program> {
        self.lower_within(memory, stream, &mut u64::MAX.clone())
    }

    /// Lowers a form that may come from a hostile peer, and limits the memory that its program
    /// takes.
    ///
    /// The program takes at most `room` bytes, which are subtracted from `room`. While it is
    /// lowered, it holds about twice as many.
    ///
    /// ```
    /// use shipable::{Architecture, Datatype, Error, Form};
    /// let native = Architecture::NATIVE;
    /// let scattered: Vec<i64> = (0..1000).map(|at| at * at).collect();
    /// let scattered = Datatype::indexed_block(1, &scattered, &Datatype::int())?;
    /// let form = Form::compile(&scattered, &native)?;
    /// let mut room = 1 << 20;
    /// form.lower_within(&native, &native, &mut room)?;
    /// assert!(room < (1 << 20) - 8000);
    /// let refused = form.lower_within(&native, &native, &mut 8000);
    /// assert!(matches!(refused, Err(Error::TooLarge { most: 8000 })));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Form::lower`], and [`Error::TooLarge`] if `room` doesn't suffice. `room` is then
    /// unchanged.
    pub fn lower_within(
        &self,
        memory: &Architecture,
        stream: &Architecture,
        room: &mut u64,
    ) -> Result<Program> {
        self.check_representation(memory)?;
        let layouts = layout::layouts(self.nodes(), self.tag() == Tag::Portable, memory)?;
        let mut program = Program::empty(Fields::Unknown);
        lower(self, &layouts, memory, stream, room, &mut program)?;
        Ok(program)
    }
}

/// Lowers a form into an empty program. `layouts` are the bounds of its nodes in the memory's
/// architecture. Subtracts the bytes that the program takes from `budget`.
///
/// The program is written where it stays: returning it would copy it (docs/tuning.md, "Building a
/// committed datatype").
pub(crate) fn lower(
    form: &Form,
    layouts: &[Bounds],
    memory: &Architecture,
    stream: &Architecture,
    budget: &mut u64,
    program: &mut Program,
) -> Result<()> {
    let mut within = Budget { left: *budget, most: *budget };
    lower_within(form, layouts, (memory, stream), &mut within, &mut program.body.ops)?;
    program.settle(layouts.last().map_or(0, Bounds::extent));
    *budget = within.left;
    Ok(())
}

/// Adds the operations of the root to `ops`, which is empty.
fn lower_within(
    form: &Form,
    layouts: &[Bounds],
    (memory, stream): (&Architecture, &Architecture),
    budget: &mut Budget,
    ops: &mut Ops,
) -> Result<()> {
    let portable = form.tag() == Tag::Portable;
    let same = std::ptr::eq(memory, stream) || memory.same_representation(stream);
    let nodes = form.nodes();
    // If the stream has the memory's representation, the bounds hold the sizes already.
    let sizes = if same { Vec::new() } else { layout::sizes(form.nodes(), stream)? };
    let mut children = Children { nodes, layouts, same, lowered: SmallVec::new() };
    // `ops` holds the operations of all nodes that are lowered so far, and the loops that they
    // share.
    for (index, node) in nodes.iter().enumerate() {
        let from = ops.len();
        let from = match node {
            // A parent takes its run.
            Node::Leaf(leaf) if same && copied(*leaf, &layouts[index]).is_some() => {
                children.lowered.push(from..from);
                continue;
            }
            Node::Leaf(leaf) => {
                items(*leaf, memory, (!same).then_some(stream), ops, budget)?;
                from
            }
            Node::Array { child, vectors, .. } => {
                let extent = layouts[*child as usize].extent();
                let unit = if portable { extent } else { 1 };
                array(&children, *child, (vectors, unit), extent, ops, budget)?
            }
            Node::Simple { members } => {
                let places = layout::places(members, layouts)?;
                let members = members.iter().zip(places);
                let members = members.map(|(member, place)| (member.child, member.length, place));
                structure(members, &children, ops, budget)?;
                from
            }
            Node::Struct { members, .. } => {
                let members =
                    members.iter().map(|member| (member.child, member.length, member.displacement));
                structure(members, &children, ops, budget)?;
                from
            }
        };
        let made = ops.len();
        join(ops, from);
        tabulate(ops, from, budget)?;
        budget.give_back::<Op>(made - ops.len());
        verify(&ops[from..], &layouts[index], sizes.get(index).copied());
        if ops.len() - from > COPIED {
            let body = split_off(ops, from);
            ops.push(budget.once(body)?);
        }
        children.lowered.push(from..ops.len());
    }
    let from = match nodes.len().checked_sub(1) {
        None => 0,
        Some(last) => match children.get(last as u32) {
            Lowered::Ops(range) => range.start,
            Lowered::Run(run) => {
                ops.push(Op::Block(run.repeated(0, 1, 0)));
                ops.len() - 1
            }
        },
    };
    if from > 0 {
        ops.drain(..from);
    }
    if ops.capacity() > ops.len().max(2 * FEW) {
        ops.shrink_to_fit();
    }
    Ok(())
}

/// The nodes that are lowered so far.
struct Children<'a> {
    nodes: &'a [Node],
    layouts: &'a [Bounds],
    /// Whether the stream has the memory's representation.
    same: bool,
    /// The operations of each node. None for leaves that are a run.
    lowered: SmallVec<[Range<usize>; 8]>,
}

/// A lowered node.
enum Lowered {
    /// A leaf that is one run. Its operation is made where a parent takes it.
    Run(Run),
    /// A range of operations.
    Ops(Range<usize>),
}

impl Children<'_> {
    #[inline]
    fn get(&self, child: u32) -> Lowered {
        let child = child as usize;
        match &self.nodes[child] {
            Node::Leaf(leaf) if self.same => copied(*leaf, &self.layouts[child]).map(Lowered::Run),
            _ => None,
        }
        .unwrap_or_else(|| Lowered::Ops(self.lowered[child].clone()))
    }

    /// The number of a child's operations.
    fn len(&self, child: u32) -> usize {
        match self.get(child) {
            Lowered::Run(_) => 1,
            Lowered::Ops(range) => range.len(),
        }
    }

    fn extent(&self, child: u32) -> i64 {
        self.layouts[child as usize].extent()
    }

    /// Adds a copy of a child's operations.
    #[inline]
    fn add(&self, child: u32, ops: &mut Ops) {
        match self.get(child) {
            Lowered::Run(run) => ops.push(Op::Block(run.repeated(0, 1, 0))),
            Lowered::Ops(range) => {
                for index in range {
                    let op = ops[index].clone();
                    ops.push(op);
                }
            }
        }
    }

    /// Adds a loop of one iteration over a copy of a child's operations.
    fn shared(&self, child: u32, ops: &Ops, budget: &mut Budget) -> Result<Op> {
        budget.take::<Op>(self.len(child))?;
        let mut body = Ops::new();
        match self.get(child) {
            Lowered::Run(_) => self.add(child, &mut body),
            Lowered::Ops(range) => {
                body.reserve_exact(range.len());
                body.extend(ops[range].iter().cloned());
            }
        }
        budget.once(body)
    }
}

/// Adds the scalars of a leaf. If the stream's representation differs, each scalar is converted
/// separately.
fn items(
    leaf: Leaf,
    memory: &Architecture,
    stream: Option<&Architecture>,
    ops: &mut Ops,
    budget: &mut Budget,
) -> Result<()> {
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
    Ok(())
}

/// Adds vectors of a child and returns the index of the first operation. The child's elements lie
/// `extent` bytes apart. Displacements of the vectors count units of bytes.
fn array(
    children: &Children<'_>,
    child: u32,
    (vectors, unit): (&Vectors, i64),
    extent: i64,
    ops: &mut Ops,
    budget: &mut Budget,
) -> Result<usize> {
    let mut parts = children.len(child);
    if parts == 0 {
        return Ok(ops.len());
    }
    if let (Lowered::Run(run), Stored::Vectors([vector])) = (children.get(child), vectors.stored())
    {
        budget.take::<Op>(1)?;
        let start = scaled(vector.displacement, unit)?;
        ops.push(Op::Block(run.repeated(start, vector.length, extent)));
        repeat(ops, ops.len() - 1, vector.count, scaled(vector.stride, unit)?, budget)?;
        return Ok(ops.len() - 1);
    }
    if vectors.len() > 1 {
        let table = match children.get(child) {
            Lowered::Run(run) => {
                let one = [Op::Block(run.repeated(0, 1, 0))];
                table(&one, vectors, unit, extent, budget)?
            }
            Lowered::Ops(range) => table(&ops[range], vectors, unit, extent, budget)?,
        };
        if let Some(table) = table {
            budget.take::<Op>(1)?;
            ops.push(table);
            return Ok(ops.len() - 1);
        }
    }
    let mut shared = None;
    if parts > 1 && parts * vectors.len() > MANY {
        ops.push(children.shared(child, ops, budget)?);
        (parts, shared) = (1, Some(ops.len() - 1));
    }
    budget.take::<Op>(parts * vectors.len())?;
    let first = ops.len();
    grow(ops, parts * vectors.len());
    for vector in vectors {
        let from = ops.len();
        match shared {
            Some(shared) => {
                let op = ops[shared].clone();
                ops.push(op);
            }
            None => children.add(child, ops),
        }
        repeat(ops, from, vector.length, extent, budget)?;
        repeat(ops, from, vector.count, scaled(vector.stride, unit)?, budget)?;
        shift(&mut ops[from..], scaled(vector.displacement, unit)?)?;
    }
    Ok(first)
}

/// Adds the members of a struct in order. A member is a child, the number of its elements, and a
/// displacement. If copies would be too many operations, members of one type share theirs.
fn structure(
    members: impl Iterator<Item = (u32, u64, i64)> + Clone,
    children: &Children<'_>,
    ops: &mut Ops,
    budget: &mut Budget,
) -> Result<()> {
    let all: usize = members.clone().map(|(child, ..)| children.len(child)).sum();
    let each = if all > MANY { members.clone().count() } else { all };
    budget.take::<Op>(each)?;
    let mut shared: Option<HashMap<u32, Op>> = None;
    grow(ops, each);
    let mut runs = Runs { ops, last: None };
    // A form that a peer sent may have empty members.
    for (child, length, place) in members.filter(|(_, length, _)| *length > 0) {
        let extent = children.extent(child);
        if let Lowered::Run(run) = children.get(child) {
            if length == 1 || run.adjoins(extent) {
                runs.add(place, run.times(length));
                continue;
            }
        }
        runs.finish();
        let ops = &mut *runs.ops;
        let from = ops.len();
        match children.len(child) {
            2.. if all > MANY => {
                let one = match shared.get_or_insert_default().entry(child) {
                    Entry::Occupied(shared) => shared.into_mut(),
                    Entry::Vacant(first) => first.insert(children.shared(child, ops, budget)?),
                };
                ops.push(one.clone());
            }
            _ => children.add(child, ops),
        }
        repeat(ops, from, length, extent, budget)?;
        // The bounds of the struct fit an `i64`, so the displacements of its members do too.
        ops[from..].iter_mut().for_each(|op| op.shift(place));
    }
    runs.finish();
    Ok(())
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
fn repeat(ops: &mut Ops, from: usize, count: u64, stride: i64, budget: &mut Budget) -> Result<()> {
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
        let body = split_off(ops, from);
        ops.push(budget.looped(body, count, stride)?);
    }
    Ok(())
}

/// Joins runs from index `from` on that adjoin in memory and have the same conversion.
fn join(ops: &mut Ops, from: usize) {
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
        if last < next {
            ops.swap(last, next);
        }
    }
    ops.truncate(last + 1);
}

/// Reserves capacity for `more` operations. Growing by a quarter instead of doubling keeps the peak
/// low, since the old and the new allocation exist together.
fn grow(ops: &mut Ops, more: usize) {
    if ops.capacity() - ops.len() < more {
        ops.reserve_exact(more.max(ops.len() / 4).max(FEW));
    }
}

/// The operations from index `from` on, in no more memory than they need.
fn split_off(ops: &mut Ops, from: usize) -> Ops {
    let mut last = Ops::new();
    last.reserve_exact(ops.len() - from);
    last.extend(ops.drain(from..));
    last
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
