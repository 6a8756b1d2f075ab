//! Copying from one typed memory to another, step by step.
//!
//! A step is the longest piece of the stream that one kernel call moves: a grid of runs common to
//! both ends. If steps are short, as between two irregular types, a part of the stream is packed
//! into a buffer that fits the cache, and unpacked from there.

use std::ops::Range;

use super::cursor::{Cursor, Elements, Strip};
use super::op::{Body, Item};
use super::pack::{TransferError, convert};
use super::{Partial, Program};
use crate::convert::{Conversion, MAX_SIZE};
use crate::error::{Error, Result};
use crate::kernels::{Kernel, KernelError, Lane};
use crate::memory::{View, ViewMut};

/// Copies `source_count` elements from typed memory to `target_count` elements of typed memory.
///
/// Both programs must be lowered for the same stream. The result is that of packing and then
/// unpacking. If source and target have the same type, [`Program::mirror`] is faster.
///
/// ```
/// use shipable::{Architecture, Committed, Datatype, View, ViewMut, program};
/// let arch = Architecture::NATIVE;
/// let row = Committed::new(&Datatype::contiguous(3, &Datatype::byte())?, &arch)?;
/// let column = Committed::new(&Datatype::vector(3, 1, 2, &Datatype::byte())?, &arch)?;
/// let mut matrix = [0; 6];
/// let (from, to) = (View::new(&[1, 2, 3]), ViewMut::new(&mut matrix));
/// program::copy(row.native(), 1, from, column.native(), 1, to)?;
/// assert_eq!(matrix, [1, 0, 2, 0, 3, 0]);
/// # Ok::<(), shipable::Error>(())
/// ```
///
/// # Errors
///
/// - [`Error::Signature`] if the packed streams differ in length.
/// - [`Error::Position`] if an item of one type doesn't coincide with an item of the other.
/// - [`Error::OutOfBounds`] if elements don't lie in their memory.
/// - [`Error::Conversion`] for a value that the target can't represent. Items before it are
///   written.
pub fn copy(
    source: &Program,
    source_count: u64,
    from: View<'_>,
    target: &Program,
    target_count: u64,
    mut to: ViewMut<'_>,
) -> Result<()> {
    let length = source.stream_length(source_count)?;
    let expected = target.stream_length(target_count)?;
    if length != expected {
        return Err(Error::Signature { from: length, to: expected });
    }
    if length == 0 {
        return Ok(());
    }
    if std::ptr::eq(source, target) && source.is_all_copy() {
        return source.mirror(source_count, from, to);
    }
    // One side may be contiguous: its memory is then the stream, and no copy of it is needed.
    let stream_at =
        |start: i64| Error::Overflow { what: if start < 0 { "a lower bound" } else { "a bound" } };
    if let (Some(read), Some(written)) =
        (source.contiguous(source_count), target.contiguous(target_count))
    {
        let [read, written] = [read, written].map(|start| Lane { start, strides: [0; 2] });
        let kernel = Kernel::new(Conversion::Copy, length);
        // A copy never refuses a value.
        return match kernel.transfer([1, 1], from, read, &mut to, written) {
            Err(KernelError::OutOfBounds(error)) => Err(error.into()),
            Err(KernelError::Value { .. }) | Ok(()) => Ok(()),
        };
    }
    if let Some(start) = source.contiguous(source_count) {
        from.covers(start, start.saturating_add_unsigned(length))?;
        let stream = from.shifted(start).ok_or_else(|| stream_at(start))?;
        let mut partial = Partial::default();
        return target
            .unpack_from(target_count, &mut to, 0, length, stream, &mut partial)
            .map_err(|error| error.explain_in(target, target_count));
    }
    if let Some(start) = target.contiguous(target_count) {
        to.covers(start, start.saturating_add_unsigned(length))?;
        let mut stream = to.shifted(start).ok_or_else(|| stream_at(start))?;
        return source
            .pack_into(source_count, from, 0, length, &mut stream)
            .map_err(|error| error.explain_in(source, source_count));
    }
    let (source, target) = ((source, source_count), (target, target_count));
    copy_part(source, from, target, to, 0..length)
}

/// Copies a part of the stream of elements between types that aren't contiguous. The part cuts no
/// value.
pub(super) fn copy_part(
    (source, source_count): (&Program, u64),
    from: View<'_>,
    (target, target_count): (&Program, u64),
    mut to: ViewMut<'_>,
    part: Range<u64>,
) -> Result<()> {
    let (read, written) = (source.range(source_count)?, target.range(target_count)?);
    from.covers(read.start, read.end)?;
    to.covers(written.start, written.end)?;
    let source_elements = Elements::new(&source.body, source_count, source.extent);
    let target_elements = Elements::new(&target.body, target_count, target.extent);
    let cursors_from = |position: u64| CursorPair {
        source: Cursor::in_order(&source_elements, position..part.end),
        target: Cursor::in_order(&target_elements, position..part.end),
    };
    let copies = source.is_all_copy() && target.is_all_copy();
    let (mut cursors, mut fills) = (cursors_from(part.start), 1u32);
    while let Some(step) = cursors.next()? {
        step.carry_out([&source.body, &target.body], from, &mut to)?;
        if !copies || step.source.length() >= SHORT {
            fills = 1;
            continue;
        }
        // Through a buffer, each end moves in pieces of its own size.
        let mut position = step.position + step.source.length();
        let mut buffer = [0; STAGING];
        for _ in 0..fills {
            let staged = (part.end - position).min(STAGING as u64);
            let buffer = &mut buffer[..staged as usize];
            source.pack(source_count, from, position, buffer)?;
            target.unpack(
                target_count,
                to.reborrow(),
                position,
                buffer,
                &mut Partial::default(),
            )?;
            position += staged;
        }
        // Types that have been irregular so far are likely to stay so: stage twice as much next
        // time.
        fills = fills.saturating_mul(2).min(1 << 10);
        cursors = cursors_from(position);
    }
    Ok(())
}

/// For steps below this many bytes of the stream, the search costs more than the copy.
const SHORT: u64 = 512;

/// The bytes of the staging buffer: half of a small first-level cache.
const STAGING: usize = 16 << 10;

/// The most runs that are joined to the first run of a table. Without a limit, every step would
/// walk the whole table again although it may move only the first bytes of it. Even 1-byte runs add
/// up to more than [`SHORT`].
const JOINED: usize = 1023;

/// A grid of runs at one end of a copy.
#[derive(Clone, Copy, Debug)]
struct Grid {
    item: Item,
    counts: [u64; 2],
    lane: Lane,
    /// The bytes of a run in the stream.
    run: u64,
    /// Whether the grid describes only the first runs of a table, those that adjoin.
    table: bool,
}

impl Grid {
    fn new(strip: &Strip<'_>) -> Option<Grid> {
        match strip {
            Strip::Grid { block, units, counts, memory, memory_strides, .. } => Some(Grid {
                item: block.item(),
                counts: *counts,
                lane: Lane { start: *memory, strides: *memory_strides },
                run: units * block.item().stream(),
                table: false,
            }),
            Strip::Table { gather, runs, base, .. } => {
                // The table may have cut a longer run into equal parts: join the parts that adjoin.
                let (offset, mut run) = gather.run(runs.start);
                let more = runs.clone().skip(1).take(JOINED).take_while(|&index| {
                    let (next, part) = gather.run(index);
                    let adjoins = next
                        == offset + gather.item().bytes_in_memory(part.start - run.start) as i64;
                    run.end = if adjoins { part.end } else { run.end };
                    adjoins
                });
                let joined = 1 + more.count();
                Some(Grid {
                    item: gather.item(),
                    counts: [1, 1],
                    lane: Lane { start: base.wrapping_add(offset), strides: [0; 2] },
                    run: run.end - run.start,
                    table: runs.len() > joined,
                })
            }
            Strip::Units { item, units, memory, .. } => Some(Grid {
                item: *item,
                counts: [1, 1],
                lane: Lane { start: *memory, strides: [0; 2] },
                run: units * item.stream(),
                table: false,
            }),
            Strip::Cut { .. } | Strip::Tile(_) => None,
        }
    }

    /// The bytes of a row, the inner dimension, in the stream.
    fn row(&self) -> u64 {
        self.counts[1] * self.run
    }

    fn length(&self) -> u64 {
        self.counts[0] * self.row()
    }

    /// Cuts the runs of one row into parts of `run` bytes of the stream. Each old run becomes a
    /// row.
    fn cut(&self, run: u64) -> Grid {
        let inner = self.item.bytes_in_memory(run) as i64;
        let counts = [self.counts[1], self.run / run];
        let lane = Lane { start: self.lane.start, strides: [self.lane.strides[1], inner] };
        Grid { counts, lane, run, ..*self }
    }

    /// Arranges the runs of one row in rows of `runs` runs each.
    fn fold(&self, runs: u64) -> Grid {
        let inner = self.lane.strides[1];
        let strides = [inner.wrapping_mul(runs as i64), inner];
        let lane = Lane { start: self.lane.start, strides };
        Grid { counts: [self.counts[1] / runs, runs], lane, ..*self }
    }
}

/// One step: two grids with equal counts and equal runs in the stream.
struct Step {
    source: Grid,
    target: Grid,
    /// The position of the step in the stream.
    position: u64,
}

/// The cursors of both ends, at the same position.
struct CursorPair<'p> {
    source: Cursor<'p>,
    target: Cursor<'p>,
}

impl CursorPair<'_> {
    /// The longest step that one kernel call can carry out. `None` at the end of the stream.
    fn next(&mut self) -> Result<Option<Step>> {
        let position = self.source.position();
        let mut most = u64::MAX;
        // Each iteration lowers `most`, down to a run or an item.
        loop {
            let (mut source, mut target) = (self.source.clone(), self.target.clone());
            let Some(a) = source.next(most) else { return Ok(None) };
            let Some(b) = target.next(most) else { return Ok(None) };
            let split = || {
                let problem = "items of the two types don't start and end together".into();
                Error::Position { position, problem }
            };
            let (a, b) = (Grid::new(&a).ok_or_else(split)?, Grid::new(&b).ok_or_else(split)?);
            match meet(&a, &b) {
                Ok((source_grid, target_grid)) => {
                    (self.source, self.target) = (source, target);
                    let unit = source_grid.item.stream().max(target_grid.item.stream());
                    if source_grid.run % unit != 0 {
                        return Err(split());
                    }
                    return Ok(Some(Step { source: source_grid, target: target_grid, position }));
                }
                Err(shorter) => most = shorter,
            }
        }
    }
}

/// The grids with equal counts that describe both, or a shorter length to try next.
fn meet(a: &Grid, b: &Grid) -> Result<(Grid, Grid), u64> {
    if a.table || b.table {
        let of = |grid: &Grid| if grid.table { grid.run } else { grid.length() };
        return Err(of(a).min(of(b)));
    }
    if a.length() != b.length() {
        return Err(a.length().min(b.length()));
    }
    if a.run == b.run && a.counts == b.counts {
        return Ok((*a, *b));
    }
    let (short, long) = (a.run.min(b.run), a.run.max(b.run));
    let row = a.row().min(b.row());
    if long % short != 0 {
        // No common grid exists. Try the length of the shorter run.
        return Err(short);
    }
    let whole = row / long * long;
    if whole == 0 {
        return Err(row);
    }
    if whole < a.length() {
        return Err(whole);
    }
    let parts = long / short;
    Ok(match a.run == short {
        true => (a.fold(parts), b.cut(short)),
        false => (a.cut(short), b.fold(parts)),
    })
}

impl Step {
    /// Carries out the step. An error names the item in the program whose conversion failed.
    fn carry_out(&self, bodies: [&Body; 2], from: View<'_>, to: &mut ViewMut<'_>) -> Result<()> {
        let Step { source, target, position } = self;
        let (conversion, item, body) = match (source.item.is_copy(), target.item.is_copy()) {
            (false, false) => return self.item_by_item(bodies, from, to),
            (_, true) => (source.item.pack, source.item, bodies[0]),
            (true, false) => (target.item.unpack(), target.item, bodies[1]),
        };
        Kernel::new(conversion, source.run / item.stream())
            .transfer(source.counts, from, source.lane, to, target.lane)
            .map_err(|error| {
                TransferError::of_kernel(error, *position, &item, conversion).explain(body)
            })
    }

    /// Converts each item to the stream's representation and from there to the target's. No single
    /// conversion does both.
    fn item_by_item(&self, bodies: [&Body; 2], from: View<'_>, to: &mut ViewMut<'_>) -> Result<()> {
        let Step { source, target, position } = self;
        let (a, b) = (source.item, target.item);
        // A double-double may be one item at one end and two items, its halves, at the other.
        let step = a.stream().max(b.stream());
        let [read_at, write_at] = [source, target].map(|grid| grid.lane.strides);
        let mut position = *position;
        let (mut read, mut packed, mut written) = ([0; MAX_SIZE], [0; MAX_SIZE], [0; MAX_SIZE]);
        let read = &mut read[..a.bytes_in_memory(step) as usize];
        let packed = &mut packed[..step as usize];
        let written = &mut written[..b.bytes_in_memory(step) as usize];
        let [rows, columns] = source.counts;
        for (i, j) in (0..rows as i64).flat_map(|i| (0..columns as i64).map(move |j| (i, j))) {
            let mut from_at = source.lane.start + i * read_at[0] + j * read_at[1];
            let mut to_at = target.lane.start + i * write_at[0] + j * write_at[1];
            for _ in 0..source.run / step {
                from.read(from_at, read)?;
                convert_all(&a, a.pack, read, packed, position)
                    .map_err(|error| error.explain(bodies[0]))?;
                convert_all(&b, b.unpack(), packed, written, position)
                    .map_err(|error| error.explain(bodies[1]))?;
                to.write(to_at, written)?;
                from_at += read.len() as i64;
                to_at += written.len() as i64;
                position += step;
            }
        }
        Ok(())
    }
}

/// Converts one unit or several.
fn convert_all(
    item: &Item,
    conversion: Conversion,
    from: &[u8],
    to: &mut [u8],
    position: u64,
) -> Result<(), TransferError> {
    let parts = to.chunks_exact_mut(conversion.to_size().into());
    from.chunks_exact(conversion.from_size().into())
        .zip(parts)
        .try_for_each(|(from, to)| convert(item, conversion, from, to, position))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Architecture, Committed, Datatype};

    #[test]
    fn a_step_joins_a_limited_number_of_runs() {
        const LONG: usize = 5000;
        // One long run, then many short ones: the table cuts the long run into parts of the short
        // length.
        let lengths: Vec<_> = [LONG as i64].into_iter().chain([1; LONG]).collect();
        let places: Vec<_> = [0]
            .into_iter()
            .chain((0..LONG as i64).map(|at| LONG as i64 + 3 + at * (at + 1)))
            .collect();
        let many = Datatype::indexed(&lengths, &places, &Datatype::double()).unwrap();
        let blocks: Vec<_> = (0..2 * LONG as i64 / 100).map(|at| 100 * at + at * at).collect();
        let blocks = Datatype::indexed_block(100, &blocks, &Datatype::double()).unwrap();
        let [many, blocks] =
            [many, blocks].map(|made| Committed::new(&made, &Architecture::NATIVE).unwrap());

        let elements = Elements::new(&many.native().body, 1, many.native().extent);
        let mut cursor = Cursor::in_order(&elements, 0..many.native().stream_size());
        let strip = cursor.next(u64::MAX).unwrap();
        assert!(matches!(&strip, Strip::Table { runs, .. } if runs.len() == 2 * LONG), "{strip:?}");
        let grid = Grid::new(&strip).unwrap();
        assert_eq!((grid.run, grid.table), (8 * (1 + JOINED as u64), true));

        // The rest of the long run is copied all the same, in both directions.
        for (source, target) in [(&many, &blocks), (&blocks, &many)] {
            let (source, target) = (source.native(), target.native());
            let held = source.range(1).unwrap().end as usize;
            let memory: Vec<u8> = (0..held).map(|at| (at % 251) as u8).collect();
            let mut packed = vec![0; source.stream_size() as usize];
            source.pack(1, View::new(&memory), 0, &mut packed).unwrap();
            let mut copied = vec![0; target.range(1).unwrap().end as usize];
            let mut expected = copied.clone();
            let to = ViewMut::new(&mut expected);
            target.unpack(1, to, 0, &packed, &mut Partial::default()).unwrap();
            copy(source, 1, View::new(&memory), target, 1, ViewMut::new(&mut copied)).unwrap();
            assert!(copied == expected);
        }
    }
}
