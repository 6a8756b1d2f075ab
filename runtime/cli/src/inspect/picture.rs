//! A picture of memory in lines, which the renderers for terminals and SVG draw.
//!
//! A line is a row of memory or a *fold*, which stands for many rows. A picture never exceeds its
//! limit of lines, however large the type is. Rows that repeat are folded into a line with the
//! number of repetitions, and so are rows without data. If the picture is still too long, one more
//! fold replaces its middle.

use std::ops::Range;

use shipable::Leaf;

use super::memory::Memory;
use super::strided::{Address, Effort};

/// A picture of the memory of a datatype.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// The number of bytes of a unit. All lengths and positions are multiples of it.
    pub unit: i64,
    /// The number of bytes of a row.
    pub pitch: i64,
    /// Rows and folds in the order of addresses.
    pub lines: Vec<Line>,
    /// Whether all items are visible and their order differs from the type map's.
    pub reordered: bool,
    /// Whether a visible byte belongs to several items.
    pub overlaps: bool,
}

/// A line of a picture.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// A row of memory.
    Row(Row),
    /// Rows that aren't drawn.
    Fold {
        /// The address of the first row.
        start: Address,
        /// The number of rows.
        rows: u128,
        /// The reason for the fold.
        reason: FoldReason,
    },
}

/// The reason why rows aren't drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoldReason {
    /// The rows repeat the lines above them.
    Repeats {
        /// The number of lines that repeat.
        lines: usize,
        /// The number of repetitions.
        times: u128,
    },
    /// The rows have no data.
    Empty,
    /// The picture would have too many lines.
    TooMany,
    /// The rows' items interleave so much that finding them takes too long.
    Tangled,
}

/// A row of memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The address of the row's first byte.
    pub start: Address,
    /// The cells, which cover all of the row's bytes in order.
    pub cells: Vec<Cell>,
}

/// Adjacent bytes of a row with the same contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The offset from the row's start.
    pub at: i64,
    /// The number of bytes.
    pub length: i64,
    /// The contents of the bytes.
    pub holds: Contents,
}

/// The contents of the bytes of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// An item, or a part of an item.
    Item {
        /// The item's type.
        leaf: Leaf,
        /// The item's index in the type map.
        index: u128,
        /// Whether the item begins in this cell, and whether it ends in this cell.
        whole: (bool, bool),
    },
    /// Bytes of several items.
    Shared,
    /// Bytes of no item between the bounds.
    Gap,
    /// Bytes of no item outside of the bounds.
    Outside,
}

/// The limits for the size of a picture.
#[derive(Clone, Copy, Debug)]
pub struct PictureLimits {
    /// The most units in a row.
    pub units: i64,
    /// The most lines.
    pub lines: usize,
    /// Whether the whole memory fits into one row. A type with a regular structure may still get
    /// several rows.
    pub single: bool,
}

impl PictureLimits {
    /// The fewest lines that a picture can be folded into.
    pub const LEAST: usize = 12;
    /// The number of rows that are drawn at the end of a picture that is too long.
    const TAIL: u128 = 3;
}

/// A picture of at most this many rows is not folded.
const FEW_ROWS: u128 = 12;
/// The most lines that a fold repeats.
const PERIOD: usize = 8;

impl Picture {
    /// Makes the picture of `memory` in units of `unit` bytes, a divisor of the memory's own unit.
    pub fn new(memory: &Memory, unit: i64, limits: PictureLimits) -> Picture {
        let all = whole(memory);
        let pitch =
            i128::from(pitch(memory, unit, limits)).min((all.end - all.start).max(unit.into()));
        let rows = |origin: Address| (all.end - origin + pitch - 1).div_euclid(pitch) as u128;
        // Rows start at multiples of their length, unless starting at the data gives fewer rows.
        let origin = all.start.div_euclid(pitch) * pitch;
        let origin = if rows(all.start) < rows(origin) { all.start } else { origin };
        let rows = rows(origin);
        let pitch = pitch as i64;
        let mut drawing = Drawing {
            memory,
            unit,
            pitch,
            origin,
            rows,
            lines: Vec::new(),
            effort: Effort::picture(),
        };
        drawing.draw(limits.lines.max(PictureLimits::LEAST));
        let mut picture =
            Picture { unit, pitch, lines: drawing.lines, reordered: false, overlaps: false };
        let folded = picture.lines.iter().any(|line| match line {
            Line::Row(_) => false,
            Line::Fold { reason, .. } => *reason != FoldReason::Empty,
        });
        let (mut heads, mut overlaps) = (Vec::new(), false);
        for cell in picture.rows().flat_map(|row| &row.cells) {
            match cell.holds {
                Contents::Item { index, whole: (true, _), .. } => heads.push(index),
                Contents::Shared => overlaps = true,
                _ => {}
            }
        }
        picture.overlaps = overlaps;
        picture.reordered = !folded && heads.windows(2).any(|pair| pair[1] < pair[0]);
        picture
    }

    /// The rows that are drawn.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.lines.iter().filter_map(|line| match line {
            Line::Row(row) => Some(row),
            Line::Fold { .. } => None,
        })
    }

    /// The number of units of a row.
    pub fn units(&self) -> i64 {
        self.pitch / self.unit
    }

    /// Whether a bound at address `at` is marked in a row.
    ///
    /// An upper bound belongs to the row with the byte before it, a lower bound to the row with the
    /// byte after it. With a negative extent, that byte can be outside of the picture; then the
    /// first or last row has the mark.
    pub fn bounds(&self, row: &Row, at: Address, upper: bool) -> bool {
        let end = row.start + i128::from(self.pitch);
        let ends = |line: Option<&Line>| line.is_some_and(|line| line.start() == row.start);
        match upper {
            true => row.start < at && at <= end || at == row.start && ends(self.lines.first()),
            false => (row.start..end).contains(&at) || at == end && ends(self.lines.last()),
        }
    }
}

/// The range of addresses to draw: the bounds and all data, also outside of the bounds.
fn whole(memory: &Memory) -> Range<Address> {
    let (span, reach) = (memory.span(), memory.reach());
    match memory.items() {
        0 => span.start.min(span.end)..span.end.max(span.start),
        _ => span.start.min(span.end).min(reach.start)..span.end.max(span.start).max(reach.end),
    }
}

/// The length of a row in bytes. If the type has a regular structure, the rows show it.
fn pitch(memory: &Memory, unit: i64, limits: PictureLimits) -> i64 {
    const FEW: i64 = 4;
    const MANY: i64 = 16;
    let (compound, simple) = memory.pitches();
    let units = |list: &[i64]| -> Vec<i64> { list.iter().map(|pitch| pitch / unit).collect() };
    for list in [units(&compound), units(&simple)] {
        if let Some(&good) = list.iter().filter(|n| (FEW..=limits.units).contains(*n)).min() {
            return good * unit;
        }
    }
    // Short periods, such as that of every other item: a row takes several of them.
    if let Some(&short) = units(&simple).iter().filter(|n| (2..FEW).contains(*n)).max() {
        return MANY.min(limits.units) / short * short * unit;
    }
    match needed(memory) {
        needed if limits.single => i64::try_from(needed).unwrap_or(i64::MAX).max(unit),
        _ => unit << (63 - (limits.units / 3).max(8).leading_zeros()),
    }
}

/// The number of bytes to draw.
pub fn needed(memory: &Memory) -> i128 {
    let all = whole(memory);
    all.end - all.start
}

/// A picture under construction.
struct Drawing<'a> {
    memory: &'a Memory,
    unit: i64,
    pitch: i64,
    origin: Address,
    rows: u128,
    lines: Vec<Line>,
    effort: Effort,
}

impl Drawing<'_> {
    fn draw(&mut self, most: usize) {
        let mut row = 0;
        let mut cut = false;
        while row < self.rows {
            let left = self.rows - row;
            if !cut
                && self.lines.len() + 1 + PictureLimits::TAIL as usize >= most
                && left > PictureLimits::TAIL
            {
                cut = true;
                if left > PictureLimits::TAIL + 1 {
                    let rows = left - PictureLimits::TAIL;
                    self.fold(row, rows, FoldReason::TooMany);
                    row += rows;
                    continue;
                }
            }
            match self.next(row) {
                Some(drawn) => row += drawn,
                None => {
                    self.fold(row, left, FoldReason::Tangled);
                    break;
                }
            }
        }
    }

    /// Adds a line for row `row` or extends the last fold, and returns the number of rows covered;
    /// `None` if the search runs out of effort.
    fn next(&mut self, row: u128) -> Option<u128> {
        let start = self.address(row);
        if self.rows <= FEW_ROWS {
            let drawn = self.row(start)?;
            self.lines.push(Line::Row(drawn));
            return Some(1);
        }
        if let Some(rows) = self.repetition(row)? {
            return Some(rows);
        }
        let drawn = self.row(start)?;
        if !drawn.holds_data() {
            let empty = self.empty(row)?;
            if empty > 1 {
                self.fold(row, empty, FoldReason::Empty);
                return Some(empty);
            }
        }
        // The last row is always drawn.
        let last = row + 1 == self.rows;
        let pitch = i128::from(self.pitch);
        match &mut self.lines[..] {
            [
                ..,
                Line::Row(above),
                Line::Fold { rows, reason: FoldReason::Repeats { lines: 1, times }, .. },
            ] if !last && above.repeats(&drawn) => {
                *rows += 1;
                *times += 1;
            }
            [.., Line::Row(before), Line::Row(above)]
                if !last && before.repeats(&drawn) && above.repeats(&drawn) =>
            {
                let start = start - pitch;
                self.lines.pop();
                let reason = FoldReason::Repeats { lines: 1, times: 2 };
                self.lines.push(Line::Fold { start, rows: 2, reason });
            }
            _ => self.lines.push(Line::Row(drawn)),
        }
        Some(1)
    }

    /// Folds rows from `row` on if a cycle of the memory shows that they repeat the lines above.
    ///
    /// The outer `None` means that the search ran out of effort, the inner `None` that no rows
    /// repeat.
    fn repetition(&mut self, row: u128) -> Option<Option<u128>> {
        let at = self.address(row);
        let pitch = i128::from(self.pitch);
        let span = self.memory.span();
        for cycle in self.memory.cycles(at, &mut self.effort)? {
            let Some(period) = common(cycle.period, pitch) else { continue };
            let rows = (period / pitch) as u128;
            // Only whole periods can be folded. They must not contain a bound or the last row.
            let mut end = cycle.end.min(self.address(self.rows - 1));
            for bound in [span.start, span.end] {
                if bound > at {
                    end = end.min(bound);
                }
            }
            let more = u128::try_from((end - at).div_euclid(period)).unwrap_or(0);
            if more == 0 {
                continue;
            }
            // A period of one row may already have a fold, which gets longer.
            if let [
                ..,
                Line::Fold { start, rows: folded, reason: FoldReason::Repeats { lines: 1, times } },
            ] = &mut self.lines[..]
            {
                if rows == 1 && cycle.start <= *start - pitch {
                    *folded += more;
                    *times += more;
                    return Some(Some(more));
                }
            }
            // Fold only if the last two periods were drawn and are equal.
            let Some(second) = self.line_at(at - period) else { continue };
            let Some(first) = self.line_at(at - 2 * period) else { continue };
            let (one, two) = (&self.lines[first..second], &self.lines[second..]);
            let alike = one.len() == two.len()
                && one.iter().zip(two).all(|(one, two)| one.repeats(two, period));
            if alike && two.len() <= PERIOD && cycle.start <= at - 2 * period {
                let reason = FoldReason::Repeats { lines: two.len(), times: more + 1 };
                self.lines.truncate(second);
                let start = at - period;
                self.lines.push(Line::Fold { start, rows: rows * (more + 1), reason });
                return Some(Some(rows * more));
            }
        }
        Some(None)
    }

    /// The index of the line that starts at an address.
    fn line_at(&self, at: Address) -> Option<usize> {
        self.lines.iter().rposition(|line| line.start() == at)
    }

    /// The number of rows from `row` on without data up to the next bound. Row `row` itself has no
    /// data. `None` if the search runs out of effort.
    fn empty(&mut self, row: u128) -> Option<u128> {
        let start = self.address(row);
        let mut end = match self.memory.next(start, &mut self.effort)? {
            Some(next) => next,
            None => self.address(self.rows),
        };
        let span = self.memory.span();
        for bound in [span.start, span.end] {
            if bound > start {
                end = end.min(bound);
            }
        }
        Some(((end - start) / i128::from(self.pitch)) as u128)
    }

    fn address(&self, row: u128) -> Address {
        self.origin + row as i128 * i128::from(self.pitch)
    }

    fn fold(&mut self, row: u128, rows: u128, reason: FoldReason) {
        let start = self.address(row);
        self.lines.push(Line::Fold { start, rows, reason });
    }

    fn row(&mut self, start: Address) -> Option<Row> {
        let end = start + i128::from(self.pitch);
        let items = self.memory.items_in(start..end, &mut self.effort)?;
        let span = self.memory.span();
        let unit = i128::from(self.unit);
        let mut holds: Vec<Contents> = (0..self.pitch / self.unit)
            .map(|cell| match span.contains(&(start + i128::from(cell) * unit)) {
                true => Contents::Gap,
                false => Contents::Outside,
            })
            .collect();
        for item in &items {
            let (first, last) = (item.at, item.at + i128::from(item.size));
            let inside = (first.max(start) - start) / unit..(last.min(end) - start) / unit;
            let whole = (first >= start, last <= end);
            for cell in &mut holds[inside.start as usize..inside.end as usize] {
                *cell = match cell {
                    Contents::Gap | Contents::Outside => {
                        Contents::Item { leaf: item.leaf, index: item.index, whole }
                    }
                    Contents::Item { .. } | Contents::Shared => Contents::Shared,
                };
            }
        }
        let mut cells: Vec<Cell> = Vec::new();
        for (holds, at) in holds.into_iter().zip((0..).step_by(self.unit as usize)) {
            match cells.last_mut() {
                Some(last) if last.holds == holds => last.length += self.unit,
                _ => cells.push(Cell { at, length: self.unit, holds }),
            }
        }
        Some(Row { start, cells })
    }
}

impl Row {
    fn holds_data(&self) -> bool {
        self.cells.iter().any(|cell| !matches!(cell.holds, Contents::Gap | Contents::Outside))
    }

    /// Whether another row has the same contents, apart from the items' indices.
    fn repeats(&self, other: &Row) -> bool {
        let kind = |cell: &Cell| match cell.holds {
            Contents::Item { leaf, whole, .. } => {
                Cell { holds: Contents::Item { leaf, index: 0, whole }, ..*cell }
            }
            _ => *cell,
        };
        self.cells.len() == other.cells.len()
            && self.cells.iter().zip(&other.cells).all(|(a, b)| kind(a) == kind(b))
    }
}

impl Line {
    /// The address of the line's first byte.
    pub fn start(&self) -> Address {
        match self {
            Line::Row(row) => row.start,
            Line::Fold { start, .. } => *start,
        }
    }

    fn repeats(&self, other: &Line, distance: i128) -> bool {
        let alike = match (self, other) {
            (Line::Row(one), Line::Row(other)) => one.repeats(other),
            (Line::Fold { rows, reason, .. }, Line::Fold { rows: more, reason: because, .. }) => {
                rows == more && reason == because
            }
            _ => false,
        };
        alike && self.start() + distance == other.start()
    }
}

/// The least common multiple; `None` if it doesn't fit or isn't positive.
fn common(a: i128, b: i128) -> Option<i128> {
    let (mut x, mut y) = (a, b);
    while y > 0 {
        (x, y) = (y, x % y);
    }
    (a / x.max(1)).checked_mul(b).filter(|&multiple| multiple > 0)
}
