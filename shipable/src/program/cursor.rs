//! Finding and walking the part of a program that a transfer moves.
//!
//! A cursor starts at any position of the packed stream, which it finds by division in what repeats and by binary search
//! in what doesn't, and hands out [`Strip`]s: pieces that one call of a kernel moves. Strips follow the stream, with one
//! exception that leaves its bytes as they are: a loop over a few small blocks (an array of structs) is moved in tiles,
//! each block for all iterations of a tile before the next block. That is done where no iteration touches another's memory,
//! so that it can't be told from the order of the stream unless a conversion fails; whoever moves a tile sees to that.

use std::ops::Range;

use smallvec::SmallVec;

use super::op::{Block, Body, Gather, Item, Loop, Op};

/// Bytes of memory and stream that a tile should stay below: a first-level cache. On a Zen 5 with 48 KiB, 32 KiB pack
/// `longshore bench pack --type struct` at 16 GB/s, 16 KiB at 14.
const TILE: u64 = 32 * 1024;

/// Bytes that a block of a tile has at most where it is converted on trial.
pub(crate) const TRIAL: usize = 8 * 1024;

/// What one call of a kernel moves, or, of a tile, one for each block.
#[derive(Debug)]
pub(crate) enum Strip<'p> {
    /// Runs of a block: `counts` of them, outer and inner.
    Grid {
        block: &'p Block,
        /// Units in a run: all of the block's, or a part of one run.
        units: u64,
        counts: [u64; 2],
        memory: i64,
        memory_strides: [i64; 2],
        /// Position in the stream of the first byte.
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
    /// A part of a run of a table.
    Piece {
        item: Item,
        units: u64,
        memory: i64,
        stream: u64,
    },
    /// A part of a unit that a transfer's start or end cuts in two: the bytes `part` of the unit at `stream`.
    Cut {
        item: Item,
        memory: i64,
        stream: u64,
        part: Range<u64>,
    },
}

/// Whole iterations of a body of blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tile<'p> {
    pub body: &'p Body,
    pub iterations: u64,
    /// What the first iteration adds to displacements.
    pub base: i64,
    pub stride: i64,
    pub stream: u64,
}

/// A count of elements of a program: what a cursor walks.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // one on the stack of each transfer
pub(crate) enum Whole<'p> {
    /// One element that is one block.
    One(&'p Block),
    /// Several that are one block together.
    Block(Block),
    /// A body repeated.
    Loop { body: &'p Body, count: u64, stride: i64 },
}

impl<'p> Whole<'p> {
    pub(crate) fn new(body: &'p Body, count: u64, extent: i64) -> Whole<'p> {
        if let [Op::Block(block)] = &*body.ops {
            if count == 1 {
                return Whole::One(block);
            }
            if let Some(block) = block.repeated(count, extent) {
                return Whole::Block(block);
            }
        }
        Whole::Loop { body, count, stride: extent }
    }

    /// The one strip that all of them are, if they are: what most transfers move.
    #[inline]
    pub(crate) fn strip(&self) -> Option<Strip<'_>> {
        let block = match self {
            Whole::One(block) => block,
            Whole::Block(block) => block,
            Whole::Loop { .. } => return None,
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

/// An iteration of a body.
#[derive(Clone, Debug)]
struct Frame<'p> {
    body: &'p Body,
    /// What the iteration adds to displacements.
    base: i64,
    stride: i64,
    /// Iterations left, this one included.
    left: u64,
    op: usize,
    /// Bytes of the operation that are done.
    within: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Cursor<'p> {
    /// The one block, and its bytes that are done; or the nest of loops.
    block: Option<(&'p Block, u64)>,
    frames: SmallVec<[Frame<'p>; 4]>,
    position: u64,
    end: u64,
    tiles: bool,
}

impl<'p> Cursor<'p> {
    /// A cursor over the bytes `range` of the stream, which lie within it.
    pub(crate) fn new(whole: &'p Whole<'p>, range: Range<u64>) -> Cursor<'p> {
        let mut cursor = Cursor {
            block: None,
            frames: SmallVec::new(),
            position: range.start,
            end: range.end,
            tiles: true,
        };
        match whole {
            Whole::One(block) => cursor.block = Some((block, range.start)),
            Whole::Block(block) => cursor.block = Some((block, range.start)),
            Whole::Loop { body, count, stride } if range.start < range.end => {
                cursor.seek(body, *count, *stride, range.start);
            }
            Whole::Loop { .. } => {}
        }
        cursor
    }

    /// The same, but strictly in the order of the stream.
    pub(crate) fn in_order(whole: &'p Whole<'p>, range: Range<u64>) -> Cursor<'p> {
        Cursor { tiles: false, ..Cursor::new(whole, range) }
    }

    /// Steps down to `position` of a repeated body.
    fn seek(&mut self, mut body: &'p Body, mut count: u64, mut stride: i64, mut position: u64) {
        let mut base = 0;
        loop {
            let iteration = position / body.stream;
            position %= body.stream;
            base = step(base, iteration, stride);
            let op = body.find(position);
            position -= body.start(op).stream;
            let left = count - iteration;
            self.frames.push(Frame { body, base, stride, left, op, within: position });
            match &body.ops[op] {
                Op::Loop(inner) => {
                    base = base.wrapping_add(inner.start);
                    (body, count, stride) = (&inner.body, inner.count, inner.stride);
                }
                Op::Block(_) | Op::Gather(_) => return,
            }
        }
    }

    /// How much of the stream is done.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// The next strip, of no more than `most` bytes of the stream; `None` at the end of the range.
    pub(crate) fn next(&mut self, most: u64) -> Option<Strip<'p>> {
        let room = most.min(self.end - self.position);
        if let Some((block, within)) = &mut self.block {
            if room == 0 {
                return None;
            }
            let (strip, length) = grid(block, 0, *within, room, self.position);
            *within += length;
            self.position += length;
            return Some(strip);
        }
        loop {
            let frame = self.frames.last_mut()?;
            if room == 0 {
                return None;
            }
            let Some(op) = frame.body.ops.get(frame.op) else {
                frame.left -= 1;
                if frame.left > 0 {
                    frame.base = step(frame.base, 1, frame.stride);
                    frame.op = 0;
                } else {
                    self.leave();
                }
                continue;
            };
            if self.tiles && frame.op == 0 && frame.within == 0 {
                if let Some(iterations) = frame.tile(room) {
                    let Frame { body, base, stride, .. } = *frame;
                    let stream = self.position;
                    self.position += iterations * body.stream;
                    frame.left -= iterations;
                    frame.base = step(base, iterations, stride);
                    if frame.left == 0 {
                        self.leave();
                    }
                    return Some(Strip::Tile(Tile { body, iterations, base, stride, stream }));
                }
            }
            let (strip, length) = match op {
                Op::Loop(Loop { start, count, stride, body }) => {
                    let base = frame.base.wrapping_add(*start);
                    let (stride, left) = (*stride, *count);
                    self.frames.push(Frame { body, base, stride, left, op: 0, within: 0 });
                    continue;
                }
                Op::Block(block) => grid(block, frame.base, frame.within, room, self.position),
                Op::Gather(gather) => table(gather, frame.base, frame.within, room, self.position),
            };
            frame.within += length;
            self.position += length;
            if frame.within == frame.body.end(frame.op) - frame.body.start(frame.op).stream {
                (frame.op, frame.within) = (frame.op + 1, 0);
            }
            return Some(strip);
        }
    }

    /// Steps out of a loop that is done.
    fn leave(&mut self) {
        self.frames.pop();
        if let Some(outer) = self.frames.last_mut() {
            (outer.op, outer.within) = (outer.op + 1, 0);
        }
    }
}

impl Frame<'_> {
    /// How many iterations make a tile, if the body is one for it and two are left.
    fn tile(&self, room: u64) -> Option<u64> {
        let body = self.body;
        let columnar = body.columnar.as_ref()?;
        if body.span() > u128::from(self.stride.unsigned_abs()) {
            return None;
        }
        let most = TILE / (body.stream.saturating_add(self.stride.unsigned_abs()));
        let tried = (TRIAL as u64).checked_div(columnar.tried).unwrap_or(u64::MAX);
        let iterations = self.left.min(room / body.stream).min(most.max(16)).min(tried);
        (iterations >= 2).then_some(iterations)
    }
}

/// A displacement `count` strides on. The sum fits i64, like all that a program reaches, even where the product doesn't.
fn step(displacement: i64, count: u64, stride: i64) -> i64 {
    displacement.wrapping_add(stride.wrapping_mul(count as i64))
}

/// The strip at byte `within` of a block, in `room` bytes of the stream, and its length.
fn grid(block: &Block, base: i64, within: u64, room: u64, stream: u64) -> (Strip<'_>, u64) {
    let [outer, middle, inner] = block.dims;
    let run = block.stream_run();
    let whole = |counts: [u64; 2], memory| {
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
    if within == 0 && outer.count == 1 && room >= middle.count * inner.count * run {
        return whole([middle.count, inner.count], start);
    }
    let (index, into) = (within / run, within % run);
    let (row, j) = (index / inner.count, index % inner.count);
    let (plane, i) = (row / middle.count, row % middle.count);
    let memory = [(outer, plane), (middle, i), (inner, j)]
        .into_iter()
        .fold(start, |at, (dim, index)| step(at, index, dim.stride));
    let runs = room / run;
    if into > 0 || runs == 0 {
        let (units, length) = match part(&block.item(), memory, stream, into..run, room) {
            Part::Cut(strip, length) => return (strip, length),
            Part::Units(units, length) => (units, length),
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
        whole([1, runs.min(inner.count - j)], memory)
    } else {
        whole([(runs / inner.count).min(middle.count - i), inner.count], memory)
    }
}

/// The strip at byte `within` of a table, in `room` bytes of the stream, and its length.
fn table(gather: &Gather, base: i64, within: u64, room: u64, stream: u64) -> (Strip<'_>, u64) {
    let first = gather.find(within);
    let (offset, run) = gather.run(first);
    let into = within - run.start;
    let reached = within + room;
    if into == 0 && run.end <= reached {
        let past = if reached >= gather.stream { gather.len() } else { gather.find(reached) };
        let strip = Strip::Table { gather, runs: first..past, base, stream };
        return (strip, gather.run(past - 1).1.end - within);
    }
    let (item, memory) = (gather.item(), base.wrapping_add(offset));
    match part(&item, memory, stream, into..run.end - run.start, room) {
        Part::Cut(strip, length) => (strip, length),
        Part::Units(units, length) => {
            let memory = memory + item.bytes_in_memory(into) as i64;
            (Strip::Piece { item, units, memory, stream }, length)
        }
    }
}

/// What is next in a run that isn't moved as a whole.
enum Part<'p> {
    /// A part of a unit, and its length in the stream.
    Cut(Strip<'p>, u64),
    /// Whole units, and their length in the stream.
    Units(u64, u64),
}

/// What is next at byte `left.start` of a run at `memory` that ends at `left.end`, in `room` bytes of the stream.
fn part<'p>(item: &Item, memory: i64, stream: u64, left: Range<u64>, room: u64) -> Part<'p> {
    let unit = item.stream();
    let (index, cut) = (left.start / unit, left.start % unit);
    if cut > 0 || room < unit {
        let part = cut..unit.min(cut + room);
        let length = part.end - part.start;
        let memory = memory + (index * item.memory()) as i64;
        return Part::Cut(Strip::Cut { item: *item, memory, stream: stream - cut, part }, length);
    }
    let units = room.min(left.end - left.start) / unit;
    Part::Units(units, units * unit)
}
