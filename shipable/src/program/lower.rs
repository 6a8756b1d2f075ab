//! Lowering: from a form to the program of a memory and a stream.
//!
//! 1. Find the bounds of every node in the memory's architecture.
//! 2. Node by node, children first, turn a node into operations: a leaf into the runs of its scalars, an array into its
//!    child's operations repeated, a struct into its members' operations one after the other.
//! 3. After every node, normalise: [`join`] runs that adjoin, [`tabulate`] sequences of runs. [`repeat`] folds
//!    repetitions into blocks where they fit. None of them changes the order of the stream; a verifier checks after each
//!    node that the operations still hold the same bytes.
//!
//! A sequence too long to be copied into every place that repeats it becomes the body of a loop, which is shared. So a
//! program grows with its form, however often parts of it are repeated. Yet it may be hundreds of times as large as the form's
//! bytes: an operation takes 300 where a member took two, and a run of four becomes up to 28 of a table. What is made is therefore
//! charged to a [`Room`] before it is made.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use super::Program;
use super::op::{Block, Body, Gather, Item, Loop, Op, Piece, Start, Table};
use crate::arch::Architecture;
use crate::basic::Leaf;
use crate::bounds::Bounds;
use crate::convert::Conversion;
use crate::error::{Error, Result};
use crate::form::{Form, Node, Run, Tag, layout};
use crate::kernels::Offsets;

/// The longest sequence of operations that is copied into what repeats it.
const COPIED: usize = 16;

/// The most operations that an array or a struct makes by copying several of a child; beyond, they are shared.
const MANY: usize = 256;

/// The shortest sequence of runs that becomes a table.
const TABLE: usize = 8;

/// What a program may take, in bytes. All that is copied or tabulated is charged before, and what is joined is given back; so
/// what is held on the way is about twice of it at most.
struct Room {
    left: u64,
    /// All that there was.
    most: u64,
}

impl Room {
    /// Charges `count` values.
    fn take<T>(&mut self, count: usize) -> Result<()> {
        let bytes = (count as u64).saturating_mul(size_of::<T>() as u64);
        let too_large = Error::TooLarge { most: self.most };
        self.left = self.left.checked_sub(bytes).ok_or(too_large)?;
        Ok(())
    }

    /// `count` values that were charged are gone.
    fn give_back<T>(&mut self, count: usize) {
        self.left += (count * size_of::<T>()) as u64;
    }

    fn copy(&mut self, ops: &[Op]) -> Result<Vec<Op>> {
        self.take::<Op>(ops.len())?;
        Ok(ops.to_vec())
    }

    /// Operations repeated, as one, which costs little to copy.
    fn looped(&mut self, ops: Vec<Op>, count: u64, stride: i64) -> Result<Op> {
        self.take::<Start>(ops.len())?;
        // Two counts lie before what is shared.
        self.take::<(Op, Body, [usize; 2])>(1)?;
        Ok(Op::Loop(Loop { start: 0, count, stride, body: Arc::new(Body::new(ops)) }))
    }

    fn once(&mut self, ops: Vec<Op>) -> Result<Op> {
        self.looped(ops, 1, 0)
    }
}

/// Lowers a form, and leaves of `room` what the program doesn't take.
pub(crate) fn lower(
    form: &Form,
    memory: &Architecture,
    stream: &Architecture,
    room: &mut u64,
) -> Result<Program> {
    let mut within = Room { left: *room, most: *room };
    let program = lower_within(form, memory, stream, &mut within)?;
    *room = within.left;
    Ok(program)
}

fn lower_within(
    form: &Form,
    memory: &Architecture,
    stream: &Architecture,
    room: &mut Room,
) -> Result<Program> {
    let portable = form.tag() == Tag::Portable;
    let layouts = layout::layouts(form.nodes(), portable, memory)?;
    let sizes = layout::sizes(form.nodes(), stream)?;
    let mut lowered: Vec<Vec<Op>> = Vec::with_capacity(layouts.len());
    for (index, node) in form.nodes().iter().enumerate() {
        let mut ops = match node {
            Node::Leaf(leaf) => {
                let items = items(*leaf, memory, stream)?;
                room.take::<Op>(items.len())?;
                items
            }
            Node::Array { child, runs, .. } => {
                let extent = layouts[*child as usize].extent();
                let unit = if portable { extent } else { 1 };
                array(&lowered[*child as usize], runs, unit, extent, room)?
            }
            Node::Simple { members } => {
                let places = layout::places(members, &layouts)?;
                let members = members.iter().zip(places);
                structure(
                    members.map(|(member, place)| (member.child, member.length, place)),
                    &lowered,
                    &layouts,
                    room,
                )?
            }
            Node::Struct { members, .. } => {
                let members =
                    members.iter().map(|member| (member.child, member.length, member.displacement));
                structure(members, &lowered, &layouts, room)?
            }
        };
        let made = ops.len();
        ops = tabulate(join(ops), room)?;
        room.give_back::<Op>(made - ops.len());
        verify(&ops, &layouts[index], sizes[index]);
        if ops.len() > COPIED {
            ops = vec![room.once(ops)?];
        }
        lowered.push(ops);
    }
    let ops = lowered.pop().unwrap_or_default();
    let body = match <[Op; 1]>::try_from(ops) {
        Ok([Op::Loop(Loop { start: 0, count: 1, body, .. })]) => Arc::unwrap_or_clone(body),
        Ok([op]) => Body::new(vec![op]),
        Err(ops) => Body::new(ops),
    };
    let extent = layouts.last().map_or(0, Bounds::extent);
    Ok(Program::new(body, extent))
}

/// The scalars of a leaf, each converted on its own.
fn items(leaf: Leaf, memory: &Architecture, stream: &Architecture) -> Result<Vec<Op>> {
    let (inside, outside) = (memory.leaf(leaf)?, stream.leaf(leaf)?);
    let parts = inside.components.iter().zip(&outside.components);
    let ops = parts.map(|(inside, outside)| {
        let pack = Conversion::between(inside.scalar, outside.scalar)?;
        let fails = pack.can_fail() || pack.reversed().can_fail();
        let item = Item { pack, unpack: pack.reversed(), leaf: fails.then_some(leaf) };
        // The unit of a copy is a byte.
        let units = u64::from(inside.scalar.size) / item.memory();
        Ok(Op::Block(Block::run(inside.offset.into(), item, units, 1)))
    });
    ops.collect()
}

/// Runs of a child, whose elements lie `extent` apart, with displacements in `unit`s of bytes.
fn array(child: &[Op], runs: &[Run], unit: i64, extent: i64, room: &mut Room) -> Result<Vec<Op>> {
    if child.is_empty() {
        return Ok(Vec::new());
    }
    if let Some(table) = table(child, runs, unit, extent, room)? {
        room.take::<Op>(1)?;
        return Ok(vec![Op::Gather(table)]);
    }
    let shared;
    let child = match child.len() * runs.len() {
        _ if child.len() == 1 => child,
        0..=MANY => child,
        _ => {
            let copy = room.copy(child)?;
            shared = [room.once(copy)?];
            &shared
        }
    };
    room.take::<Op>(child.len() * runs.len())?;
    let mut ops = Vec::with_capacity(child.len() * runs.len());
    for run in runs {
        let block = repeat(child.to_vec(), run.length, extent, room)?;
        let stride = layout::scaled(run.stride, unit)?;
        let mut blocks = repeat(block, run.count, stride, room)?;
        shift(&mut blocks, layout::scaled(run.displacement, unit)?)?;
        ops.append(&mut blocks);
    }
    Ok(ops)
}

/// Many short runs of a child that is one run itself and adjoins its like, or single children that are runs converted alike,
/// make a table at once.
fn table(
    child: &[Op],
    runs: &[Run],
    unit: i64,
    extent: i64,
    room: &mut Room,
) -> Result<Option<Gather>> {
    let blocks = runs.iter().fold(0u64, |sum, run| sum.saturating_add(run.count));
    let few = blocks <= 4 * runs.len() as u64 && blocks >= TABLE as u64;
    let [Op::Block(one), more @ ..] = child else { return Ok(None) };
    let adjoins = more.is_empty() && u64::try_from(extent) == Ok(one.memory_run());
    let parts = child.iter().map_while(|op| match op {
        Op::Block(part) if part.runs() == 1 && part.item == one.item => Some(part),
        _ => None,
    });
    let parts: SmallVec<[&Block; 4]> = parts.collect();
    let alike = parts.len() == child.len();
    if !few || !alike || !(adjoins || runs.iter().all(|run| run.length == 1)) {
        return Ok(None);
    }
    let mut builder = TableBuilder::new(one.item, blocks as usize * child.len(), room)?;
    for run in runs {
        let stride = layout::scaled(run.stride, unit)?;
        let mut at = layout::scaled(run.displacement, unit)?;
        for block in 0..run.count {
            for part in &parts {
                // The bounds of the array were found, so its bytes lie within i64.
                let start = at.wrapping_add(part.start);
                builder.add(start, part.units * run.length, part.items * run.length);
            }
            if block + 1 < run.count {
                at = at.checked_add(stride).ok_or(Error::Overflow { what: "a displacement" })?;
            }
        }
    }
    Ok(Some(builder.finish(room)?))
}

/// Members one after the other: each a child, how many of it, and where. Where they would make too many operations, members of
/// one type share theirs.
fn structure(
    members: impl Iterator<Item = (u32, u64, i64)> + Clone,
    lowered: &[Vec<Op>],
    layouts: &[Bounds],
    room: &mut Room,
) -> Result<Vec<Op>> {
    let all: usize = members.clone().map(|(child, ..)| lowered[child as usize].len()).sum();
    let each = if all > MANY { members.clone().count() } else { all };
    room.take::<Op>(each)?;
    let mut shared: HashMap<u32, Op> = HashMap::new();
    let mut ops = Vec::with_capacity(each);
    for (child, length, place) in members {
        let extent = layouts[child as usize].extent();
        let one = &lowered[child as usize];
        let one = match one.len() {
            2.. if all > MANY => {
                let one = match shared.entry(child) {
                    Entry::Occupied(shared) => shared.into_mut(),
                    Entry::Vacant(first) => {
                        let copy = room.copy(one)?;
                        first.insert(room.once(copy)?)
                    }
                };
                vec![one.clone()]
            }
            _ => one.clone(),
        };
        let mut member = repeat(one, length, extent, room)?;
        // The bounds of the struct were found, so its bytes lie within i64.
        member.iter_mut().for_each(|op| op.shift(place));
        ops.append(&mut member);
    }
    Ok(ops)
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

/// Operations `count` times, `stride` apart.
fn repeat(mut ops: Vec<Op>, count: u64, stride: i64, room: &mut Room) -> Result<Vec<Op>> {
    if count == 0 || ops.is_empty() {
        return Ok(Vec::new());
    }
    if count == 1 {
        return Ok(ops);
    }
    if let [op] = &mut *ops {
        match op {
            Op::Block(block) => {
                if let Some(repeated) = block.repeated(count, stride) {
                    return Ok(vec![Op::Block(repeated)]);
                }
            }
            Op::Loop(inner) if inner.count == 1 => {
                (inner.count, inner.stride) = (count, stride);
                return Ok(ops);
            }
            Op::Loop(inner) if inner.continues(stride) => {
                inner.count *= count;
                return Ok(ops);
            }
            Op::Loop(_) | Op::Gather(_) => {}
        }
    }
    Ok(vec![room.looped(ops, count, stride)?])
}

/// Joins runs that follow each other in memory and are converted alike.
fn join(mut ops: Vec<Op>) -> Vec<Op> {
    ops.dedup_by(|next, last| {
        let (Op::Block(last), Op::Block(next)) = (last, next) else { return false };
        let adjoin = last.runs() == 1
            && next.runs() == 1
            && last.start.checked_add(last.memory_run() as i64) == Some(next.start);
        let joins = adjoin && last.item == next.item;
        if joins {
            last.lengthen(next.units, next.items);
        }
        joins
    });
    ops
}

/// Turns long sequences of runs that are converted alike into tables.
fn tabulate(ops: Vec<Op>, room: &mut Room) -> Result<Vec<Op>> {
    if ops.len() < TABLE {
        return Ok(ops);
    }
    let mut tabulated = Vec::with_capacity(ops.len());
    let mut ops = ops.into_iter().peekable();
    while let Some(op) = ops.next() {
        let mut runs = vec![op];
        while let (Op::Block(first), Some(Op::Block(next))) = (&runs[0], ops.peek()) {
            if first.runs() > 1 || next.runs() > 1 || first.item != next.item {
                break;
            }
            runs.extend(ops.next());
        }
        match &runs[0] {
            Op::Block(first) if runs.len() >= TABLE => {
                let mut table = TableBuilder::new(first.item, runs.len(), room)?;
                for run in &runs {
                    if let Op::Block(run) = run {
                        table.add(run.start, run.units, run.items);
                    }
                }
                tabulated.push(Op::Gather(table.finish(room)?));
            }
            _ => tabulated.append(&mut runs),
        }
    }
    Ok(tabulated)
}

/// A table in the making; runs that adjoin are joined.
struct TableBuilder {
    item: Item,
    /// Offset and units of each run.
    runs: Vec<(i64, u64)>,
    /// How many of them there is room for.
    most: usize,
    items: u64,
}

impl TableBuilder {
    fn new(item: Item, runs: usize, room: &mut Room) -> Result<TableBuilder> {
        room.take::<(i64, u64)>(runs)?;
        Ok(TableBuilder { item, runs: Vec::with_capacity(runs), most: runs, items: 0 })
    }

    fn add(&mut self, offset: i64, units: u64, items: u64) {
        self.items += items;
        match self.runs.last_mut() {
            Some((last, length))
                if last.checked_add((*length * self.item.memory()) as i64) == Some(offset) =>
            {
                *length += units;
            }
            _ => self.runs.push((offset, units)),
        }
    }

    fn finish(mut self, room: &mut Room) -> Result<Gather> {
        let unit = self.item.stream();
        let start = self.runs.first().map_or(0, |&(first, _)| first);
        self.runs.iter_mut().for_each(|(offset, _)| *offset = offset.wrapping_sub(start));
        let least = self.runs.iter().map(|&(offset, _)| offset).min();
        let ends =
            self.runs.iter().map(|&(offset, units)| offset + (units * self.item.memory()) as i64);
        let reach = least.unwrap_or(0)..ends.max().unwrap_or(0);
        let units: u64 = self.runs.iter().map(|(_, units)| units).sum();
        let step = self.runs.iter().fold(0, |divisor, (_, units)| gcd(*units, divisor));
        let parts = units / step;
        let most = EXPANSION * self.runs.len() as u64;
        let table = if parts <= most && (parts <= CUT || parts <= 2 * self.runs.len() as u64) {
            // Parts of equal length: what a length of its own for each run costs is more than they do.
            let memory = (step * self.item.memory()) as i64;
            room.take::<i64>(parts as usize)?;
            let mut offsets = Vec::with_capacity(parts as usize);
            for &(offset, units) in &self.runs {
                offsets.extend((0..units / step).map(|part| offset + part as i64 * memory));
            }
            let offsets = Arc::new(Offsets::new(offsets));
            Table::Even { offsets, units: step, kernels: self.item.kernels(step) }
        } else {
            room.take::<Piece>(self.runs.len())?;
            let mut position = 0;
            let pieces = self.runs.iter().map(|&(offset, units)| {
                let piece = Piece { offset, position };
                position += units * unit;
                piece
            });
            Table::Ragged { pieces: pieces.collect() }
        };
        room.give_back::<(i64, u64)>(self.most);
        let (item, items) = (self.item, self.items);
        Ok(Gather { start, table, item, stream: units * unit, items, reach })
    }
}

/// A table of runs of different lengths is cut into equal parts unless they would be more than so many times the runs.
const EXPANSION: u64 = 8;

/// Beyond so many parts, which take 2 MiB, only tables are cut that become no larger by it.
const CUT: u64 = 1 << 18;

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Stands between the passes: operations that lost, moved or added bytes are a bug here.
fn verify(ops: &[Op], layout: &Bounds, size: u64) {
    if cfg!(debug_assertions) {
        let held: u64 = ops.iter().map(Op::stream).sum();
        assert_eq!(held, size, "bytes in the stream of {ops:?}");
        let starts = ops.iter().map(|op| op.reach().start).min().unwrap_or(0);
        let ends = ops.iter().map(|op| op.reach().end).max().unwrap_or(0);
        assert_eq!((starts, ends), (layout.true_lb, layout.true_ub), "bounds of {ops:?}");
    }
}
