//! A cursor over the part of a program that a transfer moves.
//!
//! A cursor starts at any position of the packed stream. It finds the position by division in loops
//! and by binary search in bodies. From there it hands out [`Strip`]s, pieces that one kernel call
//! moves.
//!
//! Strips follow the order of the stream, with one exception. A loop over a few small blocks, such
//! as an array of structs, is moved in tiles: each block for all iterations of the tile, then the
//! next block. Tiles are used only if no two iterations overlap in memory, so the order makes no
//! difference unless a conversion fails. The transfer of a tile handles that case (`Tile::transfer`
//! in `pack`).

use std::ops::Range;

use smallvec::SmallVec;

use super::op::{Block, Body, Gather, Item, Loop, Op};

/// The most bytes of memory and stream in a tile, to stay within a first-level cache
/// (docs/tuning.md, "Tiles").
const TILE: u64 = 32 * 1024;

/// The most bytes of a block in a tile whose conversion is tried first.
pub(crate) const TRIAL: usize = 8 * 1024;

/// A piece of a transfer that one kernel call moves. A tile needs a call for each of its blocks.
#[derive(Debug)]
pub(crate) enum Strip<'p> {
    /// Runs of a block, in two dimensions.
    Grid {
        block: &'p Block,
        /// The units of a run: all of the block's, or fewer if the strip is a part of one run.
        units: u64,
        counts: [u64; 2],
        memory: i64,
        memory_strides: [i64; 2],
        /// The position of the first byte in the stream.
        stream: u64,
        stream_strides: [u64; 2],
    },
    Tile(Tile<'p>),
    /// Whole runs of a table.
    Table {
        gather: &'p Gather,
        runs: Range<usize>,
        base: i64,
        stream: u64,
    },
    /// Whole units of one run of a table.
    Units {
        item: Item,
        units: u64,
        memory: i64,
        stream: u64,
    },
    /// A part of a unit that the start or the end of a transfer cuts in two: the bytes `part` of
    /// the unit at `stream`.
    Cut {
        item: Item,
        memory: i64,
        stream: u64,
        part: Range<u64>,
    },
}

/// Consecutive iterations of a body of blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tile<'p> {
    pub body: &'p Body,
    pub iterations: u64,
    /// The displacement that the first iteration adds.
    pub base: i64,
    pub stride: i64,
    pub stream: u64,
}

/// The elements that a cursor walks: a program's body and a count.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // each transfer has only one, on its stack
pub(crate) enum Elements<'p> {
    /// One element that is one block.
    One(&'p Block),
    /// Elements that form one block together.
    Block(Block),
    /// A body that is repeated.
    Loop { body: &'p Body, count: u64, stride: i64 },
}

impl<'p> Elements<'p> {
    pub(crate) fn new(body: &'p Body, count: u64, extent: i64) -> Elements<'p> {
        if let [Op::Block(block)] = &*body.ops {
            if count == 1 {
                return Elements::One(block);
            }
            if let Some(block) = block.repeated(count, extent) {
                return Elements::Block(block);
            }
        }
        Elements::Loop { body, count, stride: extent }
    }

    /// All elements as a single strip, where they are one. Most transfers are.
    #[inline]
    pub(crate) fn strip(&self) -> Option<Strip<'_>> {
        let block = match self {
            Elements::One(block) => block,
            Elements::Block(block) => block,
            Elements::Loop { .. } => return None,
        };
        let [outer, middle, inner] = block.dims;
        let run = block.stream_run();
        (outer.count == 1).then(|| Strip::Grid {
            block,
            units: block.units,
            counts: [middle.count, inner.count],
            memory: block.start,
            memory_strides: [middle.stride, inner.stride],
            stream: 0,
            stream_strides: [inner.count * run, run],
        })
    }
}

/// A level of the loop nest, with its current iteration.
#[derive(Clone, Debug)]
struct Level<'p> {
    body: &'p Body,
    /// The displacement that the iteration adds.
    base: i64,
    stride: i64,
    /// The iterations left, including the current one.
    left: u64,
    op: usize,
    /// The bytes of the operation that are done.
    within: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Cursor<'p> {
    /// The only block and its bytes that are done. `None` if `levels` are walked instead.
    block: Option<(&'p Block, u64)>,
    levels: SmallVec<[Level<'p>; 4]>,
    position: u64,
    end: u64,
    tiles: bool,
}

impl<'p> Cursor<'p> {
    /// A cursor over a range of the stream. The range must lie within the stream.
    pub(crate) fn new(elements: &'p Elements<'p>, range: Range<u64>) -> Cursor<'p> {
        let mut cursor = Cursor {
            block: None,
            levels: SmallVec::new(),
            position: range.start,
            end: range.end,
            tiles: true,
        };
        match elements {
            Elements::One(block) => cursor.block = Some((block, range.start)),
            Elements::Block(block) => cursor.block = Some((block, range.start)),
            Elements::Loop { body, count, stride } if range.start < range.end => {
                cursor.seek(body, *count, *stride, range.start);
            }
            Elements::Loop { .. } => {}
        }
        cursor
    }

    /// A cursor that follows the order of the stream strictly, without tiles.
    pub(crate) fn in_order(elements: &'p Elements<'p>, range: Range<u64>) -> Cursor<'p> {
        Cursor { tiles: false, ..Cursor::new(elements, range) }
    }

    /// Descends to `position` in the stream of a repeated body.
    fn seek(&mut self, mut body: &'p Body, mut count: u64, mut stride: i64, mut position: u64) {
        let mut base = 0;
        loop {
            let iteration = position / body.stream;
            position %= body.stream;
            base = step(base, iteration, stride);
            let op = body.find(position);
            position -= body.start(op).stream;
            let left = count - iteration;
            self.levels.push(Level { body, base, stride, left, op, within: position });
            match &body.ops[op] {
                Op::Loop(inner) => {
                    base = base.wrapping_add(inner.start);
                    (body, count, stride) = (&inner.body, inner.count, inner.stride);
                }
                Op::Block(_) | Op::Gather(_) => return,
            }
        }
    }

    /// The current position in the stream.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// The next strip, of at most `most` bytes of the stream. `None` at the end of the range.
    pub(crate) fn next(&mut self, most: u64) -> Option<Strip<'p>> {
        let limit = most.min(self.end - self.position);
        if let Some((block, within)) = &mut self.block {
            if limit == 0 {
                return None;
            }
            let (strip, length) = grid(block, 0, *within, limit, self.position);
            *within += length;
            self.position += length;
            return Some(strip);
        }
        loop {
            let level = self.levels.last_mut()?;
            if limit == 0 {
                return None;
            }
            let Some(op) = level.body.ops.get(level.op) else {
                level.left -= 1;
                if level.left > 0 {
                    level.base = step(level.base, 1, level.stride);
                    level.op = 0;
                } else {
                    self.leave();
                }
                continue;
            };
            if self.tiles && level.op == 0 && level.within == 0 {
                if let Some(iterations) = level.tile(limit) {
                    let Level { body, base, stride, .. } = *level;
                    let stream = self.position;
                    self.position += iterations * body.stream;
                    level.left -= iterations;
                    level.base = step(base, iterations, stride);
                    if level.left == 0 {
                        self.leave();
                    }
                    return Some(Strip::Tile(Tile { body, iterations, base, stride, stream }));
                }
            }
            let (strip, length) = match op {
                Op::Loop(Loop { start, count, stride, body }) => {
                    let base = level.base.wrapping_add(*start);
                    let (stride, left) = (*stride, *count);
                    self.levels.push(Level { body, base, stride, left, op: 0, within: 0 });
                    continue;
                }
                Op::Block(block) => grid(block, level.base, level.within, limit, self.position),
                Op::Gather(gather) => table(gather, level.base, level.within, limit, self.position),
            };
            level.within += length;
            self.position += length;
            if level.within == level.body.end(level.op) - level.body.start(level.op).stream {
                (level.op, level.within) = (level.op + 1, 0);
            }
            return Some(strip);
        }
    }

    /// Leaves a loop after its last iteration.
    fn leave(&mut self) {
        self.levels.pop();
        if let Some(outer) = self.levels.last_mut() {
            (outer.op, outer.within) = (outer.op + 1, 0);
        }
    }
}

impl Level<'_> {
    /// The number of iterations of a tile. `None` if the body isn't fit for a tile, or fewer than
    /// two iterations are left.
    fn tile(&self, limit: u64) -> Option<u64> {
        let body = self.body;
        let columnar = body.columnar.as_ref()?;
        if body.span() > u128::from(self.stride.unsigned_abs()) {
            return None;
        }
        let most = TILE / (body.stream.saturating_add(self.stride.unsigned_abs()));
        let tried = (TRIAL as u64).checked_div(columnar.tried).unwrap_or(u64::MAX);
        let iterations = self.left.min(limit / body.stream).min(most.max(16)).min(tried);
        (iterations >= 2).then_some(iterations)
    }
}

/// The displacement `count` strides further. The program's reach fits an `i64`, so the sum does
/// too, even if the product wraps.
fn step(displacement: i64, count: u64, stride: i64) -> i64 {
    displacement.wrapping_add(stride.wrapping_mul(count as i64))
}

/// The strip at byte `within` of a block, of at most `limit` bytes of the stream, and its length.
fn grid(block: &Block, base: i64, within: u64, limit: u64, stream: u64) -> (Strip<'_>, u64) {
    let [outer, middle, inner] = block.dims;
    let run = block.stream_run();
    let whole_runs = |counts: [u64; 2], memory| {
        let strip = Strip::Grid {
            block,
            units: block.units,
            counts,
            memory,
            memory_strides: [middle.stride, inner.stride],
            stream,
            stream_strides: [inner.count * run, run],
        };
        (strip, counts[0] * counts[1] * run)
    };
    let start = base.wrapping_add(block.start);
    if within == 0 && outer.count == 1 && limit >= middle.count * inner.count * run {
        return whole_runs([middle.count, inner.count], start);
    }
    let (index, into) = (within / run, within % run);
    let (row, j) = (index / inner.count, index % inner.count);
    let (plane, i) = (row / middle.count, row % middle.count);
    let memory = [(outer, plane), (middle, i), (inner, j)]
        .into_iter()
        .fold(start, |at, (dim, index)| step(at, index, dim.stride));
    let runs = limit / run;
    if into > 0 || runs == 0 {
        let (units, length) = match partial_run(&block.item(), memory, stream, into..run, limit) {
            PartialRun::Cut(strip, length) => return (strip, length),
            PartialRun::Units(units, length) => (units, length),
        };
        let memory = memory + block.item().bytes_in_memory(into) as i64;
        let (counts, strides) = ([1, 1], [0, 0]);
        let strip = Strip::Grid {
            block,
            units,
            counts,
            memory,
            memory_strides: strides,
            stream,
            stream_strides: [length, length],
        };
        (strip, length)
    } else if j > 0 || runs < inner.count {
        whole_runs([1, runs.min(inner.count - j)], memory)
    } else {
        whole_runs([(runs / inner.count).min(middle.count - i), inner.count], memory)
    }
}

/// The strip at byte `within` of a table, of at most `limit` bytes of the stream, and its length.
fn table(gather: &Gather, base: i64, within: u64, limit: u64, stream: u64) -> (Strip<'_>, u64) {
    let first = gather.find(within);
    let (offset, run) = gather.run(first);
    let into = within - run.start;
    let reached = within + limit;
    if into == 0 && run.end <= reached {
        let past = if reached >= gather.stream { gather.len() } else { gather.find(reached) };
        let strip = Strip::Table { gather, runs: first..past, base, stream };
        return (strip, gather.run(past - 1).1.end - within);
    }
    let (item, memory) = (gather.item(), base.wrapping_add(offset));
    match partial_run(&item, memory, stream, into..run.end - run.start, limit) {
        PartialRun::Cut(strip, length) => (strip, length),
        PartialRun::Units(units, length) => {
            let memory = memory + item.bytes_in_memory(into) as i64;
            (Strip::Units { item, units, memory, stream }, length)
        }
    }
}

/// The next piece of a run that isn't moved as a whole.
enum PartialRun<'p> {
    /// A part of a unit, and its length in the stream.
    Cut(Strip<'p>, u64),
    /// A number of whole units, and their length in the stream.
    Units(u64, u64),
}

/// The next piece at byte `left.start` of a run, of at most `limit` bytes of the stream. The run
/// lies at `memory` and ends at byte `left.end`.
fn partial_run<'p>(
    item: &Item,
    memory: i64,
    stream: u64,
    left: Range<u64>,
    limit: u64,
) -> PartialRun<'p> {
    let unit = item.stream();
    let (index, cut) = (left.start / unit, left.start % unit);
    if cut > 0 || limit < unit {
        let part = cut..unit.min(cut + limit);
        let length = part.end - part.start;
        let memory = memory + (index * item.memory()) as i64;
        return PartialRun::Cut(
            Strip::Cut { item: *item, memory, stream: stream - cut, part },
            length,
        );
    }
    let units = limit.min(left.end - left.start) / unit;
    PartialRun::Units(units, units * unit)
}
