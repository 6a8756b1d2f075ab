//! Tables: long sequences of runs at irregular places, as one operation.

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use super::budget::Budget;
use super::op::{Block, Gather, Item, Op, Ops, RaggedRun, Table};
use crate::error::Result;
use crate::form::Regular;
use crate::form::vectors::{Blocks, Stored, Vectors};
use crate::kernels::{Kernel, OffsetsBuilder};

/// The shortest sequence of runs that becomes a table.
pub(super) const TABLE: usize = 8;

const _: () = assert!(Regular::RUNS < TABLE);

/// Makes a table directly from vectors of few blocks, or a single run if all adjoin. Returns
/// `None` if it can't.
///
/// The child must consist of single runs with one conversion. In addition, either consecutive
/// children adjoin, or each block holds one child.
pub(super) fn table(
    child: &[Op],
    vectors: &Vectors,
    unit: i64,
    extent: i64,
    budget: &mut Budget,
) -> Result<Option<Op>> {
    let [Op::Block(one), more @ ..] = child else { return Ok(None) };
    let adjoins = more.is_empty() && u64::try_from(extent) == Ok(one.memory_run());
    let parts = child.iter().map_while(|op| match op {
        Op::Block(part) if part.runs() == 1 && part.item() == one.item() => Some(part),
        _ => None,
    });
    let parts: SmallVec<[&Block; 4]> = parts.collect();
    if parts.len() < child.len() {
        return Ok(None);
    }
    // The bounds of the array fit an `i64`, so its displacements do too. A summand may wrap.
    match vectors.stored() {
        Stored::Blocks(blocks) => {
            if !adjoins && !blocks.iter().all(|(_, length)| length == 1) {
                return Ok(None);
            }
            let places = blocks.iter().map(move |(at, length)| (at.wrapping_mul(unit), length));
            if let (true, [part], Some(divisor)) = (adjoins, &parts[..], blocks.divisor()) {
                return apart(part, blocks, divisor, places, unit, budget).map(Some);
            }
            tabled(&parts, places, blocks.copies(), budget).map(Some)
        }
        Stored::Vectors(vectors) => {
            let (blocks, copies) = vectors.iter().fold((0u64, 0u64), |(blocks, copies), vector| {
                // The child has bytes, and the array's size fits, so the number of children fits
                // too.
                (
                    blocks.saturating_add(vector.count),
                    copies.wrapping_add(vector.count.wrapping_mul(vector.length)),
                )
            });
            let few = blocks <= (Blocks::JOINED * vectors.len()) as u64 && blocks >= TABLE as u64;
            if !few || !(adjoins || vectors.iter().all(|vector| vector.length == 1)) {
                return Ok(None);
            }
            let places = vectors.iter().flat_map(|vector| {
                let (first, stride) =
                    (vector.displacement.wrapping_mul(unit), vector.stride.wrapping_mul(unit));
                let place = move |block: u64| first.wrapping_add(stride.wrapping_mul(block as i64));
                (0..vector.count).map(move |block| (place(block), vector.length))
            });
            tabled(&parts, places, copies, budget).map(Some)
        }
    }
}

/// A table of blocks of a child. A block has a displacement and a number of children. If there are
/// several parts of a child, each block holds one child.
fn tabled(
    parts: &[&Block],
    blocks: impl Iterator<Item = (i64, u64)> + Clone,
    copies: u64,
    budget: &mut Budget,
) -> Result<Op> {
    let item = parts[0].item();
    let items = copies * parts.iter().map(|part| part.items).sum::<u64>();
    match *parts {
        [part] => {
            let (start, units) = (part.start, part.units);
            let runs = blocks.map(move |(at, length)| (at.wrapping_add(start), units * length));
            gather(item, runs, items, budget)
        }
        _ => {
            let runs = blocks.flat_map(|(at, _)| {
                parts.iter().map(move |part| (at.wrapping_add(part.start), part.units))
            });
            gather(item, runs, items, budget)
        }
    }
}

/// A table of blocks of a child that is one run. The children of a block adjoin, and no block
/// adjoins the one before, so the blocks are the runs. The totals of their constructor are those of
/// the table, which spares a walk over them.
fn apart(
    part: &Block,
    blocks: &Blocks,
    divisor: u64,
    mut places: impl Iterator<Item = (i64, u64)> + Clone,
    unit: i64,
    budget: &mut Budget,
) -> Result<Op> {
    let item = part.item();
    let all = places.clone();
    let first = places.next().map_or(0, |(at, _)| at);
    let [least, last] = blocks.reach().map(|at| at.wrapping_mul(unit).wrapping_sub(first));
    let tally = Tally {
        start: first.wrapping_add(part.start),
        runs: blocks.len() as u64,
        units: part.units * blocks.copies(),
        step: part.units * divisor,
        reach: least..last.wrapping_add(part.memory_run() as i64),
    };
    let items = blocks.copies() * part.items;
    let (start, units) = (part.start, part.units);
    let runs = all.map(move |(at, length)| (at.wrapping_add(start), units * length));
    filled(item, &tally, items, budget, runs, true)
}

/// Turns long sequences of runs from index `from` on into tables, where their conversions agree.
pub(super) fn tabulate(ops: &mut Ops, from: usize, budget: &mut Budget) -> Result<()> {
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
            _ => ops.extend(sequence.iter().cloned()),
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
    let memory = item.memory();
    let tally = Tally::of(runs.clone(), memory);
    if tally.runs == 1 {
        return Ok(Op::Block(Block::run(tally.start, item, tally.units, items)));
    }
    filled(item, &tally, items, budget, runs, false)
}

/// Totals over the runs of a table.
struct Tally {
    /// The displacement of the first run.
    start: i64,
    runs: u64,
    units: u64,
    /// The greatest common divisor of the runs' units.
    step: u64,
    /// The memory from the first byte to past the last one, relative to `start`.
    reach: Range<i64>,
}

impl Tally {
    /// Totals over runs, which are joined if they adjoin. A unit takes `memory` bytes.
    fn of(runs: impl Iterator<Item = (i64, u64)>, memory: u64) -> Tally {
        let mut start = None;
        // Most steps are a power of two, of which a run is a multiple if it has none of the bits of
        // `rest`.
        let (mut all, mut units, mut step, mut rest) = (0u64, 0u64, 0u64, u64::MAX);
        let (mut least, mut greatest) = (0i64, 0i64);
        joined(runs, memory, |offset, run| {
            let offset = offset.wrapping_sub(*start.get_or_insert(offset));
            least = least.min(offset);
            greatest = greatest.max(offset.wrapping_add((run * memory) as i64));
            (all, units) = (all + 1, units + run);
            if run & rest != 0 {
                step = gcd(run, step);
                rest = if step.is_power_of_two() { step - 1 } else { u64::MAX };
            }
        });
        let start = start.unwrap_or(0);
        Tally { start, runs: all, units, step, reach: least..greatest }
    }
}

/// The table of several runs, each an offset and a number of units. Runs that adjoin are joined; if
/// `is_apart`, none do.
fn filled(
    item: Item,
    tally: &Tally,
    items: u64,
    budget: &mut Budget,
    runs: impl Iterator<Item = (i64, u64)>,
    is_apart: bool,
) -> Result<Op> {
    let (memory, stream) = (item.memory(), item.stream());
    let Tally { start, runs: all, units, step, ref reach } = *tally;
    let parts = units / step;
    let (table, kernel) = if parts <= EXPANSION * all && (parts <= CUT || parts <= 2 * all) {
        // Cut the runs into parts of equal length. The kernel for even tables more than makes up
        // for the additional parts.
        budget.take::<i64>(parts as usize + OffsetsBuilder::CHUNK)?;
        let mut offsets = OffsetsBuilder::of(parts as usize);
        let bytes = (step * memory) as i64;
        match (is_apart, step.is_power_of_two()) {
            // Most tables of many blocks. A shift is faster than a division, and a loop that calls
            // no closure keeps its state in registers.
            (true, true) => {
                let shift = step.trailing_zeros();
                for (offset, run) in runs {
                    offsets.add(offset.wrapping_sub(start), run >> shift, bytes);
                }
            }
            _ => joined(runs, memory, |offset, run| {
                offsets.add(offset.wrapping_sub(start), run / step, bytes);
            }),
        }
        let offsets = offsets.finish([reach.start, reach.end.wrapping_sub(bytes)]);
        (Table::Even { offsets: Arc::new(offsets) }, Kernel::new(item.pack, step))
    } else {
        budget.take::<RaggedRun>(all as usize)?;
        let (mut ragged, mut position) = (Vec::with_capacity(all as usize), 0);
        joined(runs, memory, |offset, run| {
            ragged.push(RaggedRun { offset: offset.wrapping_sub(start), position });
            position += run * stream;
        });
        (Table::Ragged { runs: ragged.into() }, Kernel::new(item.pack, 1))
    };
    let (leaf, stream, reach) = (item.leaf, units * stream, reach.clone());
    Ok(Op::Gather(Gather { start, table, kernel, leaf, stream, items, reach }))
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
