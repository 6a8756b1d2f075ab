//! A picture of memory, before it is drawn: rows of cells, and what is folded away.
//!
//! A picture is never longer than it was asked to be, however large the type. Rows that repeat are folded into one line that
//! says how often, rows without data likewise, and what then is still too long is left out by a line that says so. The
//! renderers for terminals and SVG draw the same picture.

use std::ops::Range;

use shipable::Leaf;

use super::memory::Memory;
use super::strided::{Address, Effort};

/// What is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// Bytes of a cell's unit: all lengths and positions are multiples of it.
    pub unit: i64,
    /// Bytes of a row.
    pub pitch: i64,
    /// Rows and folds from the lowest address up.
    pub lines: Vec<Line>,
    /// Whether all items are to be seen, and not in the order of the type map.
    pub reordered: bool,
    /// Whether some byte that is to be seen belongs to several items.
    pub overlaps: bool,
}

/// A line of a picture.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// A row of memory.
    Row(Row),
    /// Rows that aren't drawn.
    Fold {
        /// The address of the first.
        start: Address,
        /// How many.
        rows: u128,
        /// Why.
        reason: FoldReason,
    },
}

/// Why rows aren't drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoldReason {
    /// They repeat the lines above them.
    Repeats {
        /// How many lines.
        lines: usize,
        /// How many times.
        times: u128,
    },
    /// They hold no data.
    Empty,
    /// There are too many.
    TooMany,
    /// Their items interleave too much to be told apart in a reasonable time.
    Tangled,
}

/// A row of memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The address of its first byte.
    pub start: Address,
    /// All of its bytes, in order.
    pub cells: Vec<Cell>,
}

/// Bytes of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// From the row's start.
    pub at: i64,
    /// How many bytes.
    pub length: i64,
    /// What they are.
    pub holds: Contents,
}

/// What bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// An item, or a part of it.
    Item {
        /// Its type.
        leaf: Leaf,
        /// Its place in the type map.
        index: u128,
        /// Whether it begins here, and whether it ends here.
        whole: (bool, bool),
    },
    /// Of several items.
    Shared,
    /// Of none, between the bounds.
    Gap,
    /// Of none, and outside of the bounds.
    Outside,
}

/// How large a picture may be.
#[derive(Clone, Copy, Debug)]
pub struct PictureLimits {
    /// The most units in a row.
    pub units: i64,
    /// The most lines.
    pub lines: usize,
    /// Whether all of memory fits one row, unless the type has a structure that asks for more.
    pub single: bool,
}

impl PictureLimits {
    /// The fewest lines that a picture can be folded into.
    pub const LEAST: usize = 12;
    /// Rows that are drawn at the end of a picture that is too long.
    const TAIL: u128 = 3;
}

/// Rows that are too few to be folded.
const FEW_ROWS: u128 = 12;
/// The most lines that a fold repeats.
const PERIOD: usize = 8;

impl Picture {
    /// Draws memory in units of `unit` bytes, which divides the memory's own.
    pub fn new(memory: &Memory, unit: i64, limits: PictureLimits) -> Picture {
        let all = whole(memory);
        let pitch =
            i128::from(pitch(memory, unit, limits)).min((all.end - all.start).max(unit.into()));
        let rows = |origin: Address| (all.end - origin + pitch - 1).div_euclid(pitch) as u128;
        // Rows start at multiples of their length, unless the type's start makes for fewer of them.
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

    /// Units of a row.
    pub fn units(&self) -> i64 {
        self.pitch / self.unit
    }

    /// Whether a bound is marked in a row: an upper one behind its last byte, a lower one before its first. Where the extent is
    /// negative they lie the other way round, and the picture's own ends take them too.
    pub fn bounds(&self, row: &Row, at: Address, upper: bool) -> bool {
        let end = row.start + i128::from(self.pitch);
        let ends = |line: Option<&Line>| line.is_some_and(|line| line.start() == row.start);
        match upper {
            true => row.start < at && at <= end || at == row.start && ends(self.lines.first()),
            false => (row.start..end).contains(&at) || at == end && ends(self.lines.last()),
        }
    }
}

/// All that there is to be seen: the bounds, and the data within them and outside.
fn whole(memory: &Memory) -> Range<Address> {
    let (span, reach) = (memory.span(), memory.reach());
    match memory.items() {
        0 => span.start.min(span.end)..span.end.max(span.start),
        _ => span.start.min(span.end).min(reach.start)..span.end.max(span.start).max(reach.end),
    }
}

/// A row's length in bytes: one that shows the type's structure, if there is one.
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
    // Every other item, and the like.
    if let Some(&short) = units(&simple).iter().filter(|n| (2..FEW).contains(*n)).max() {
        return MANY.min(limits.units) / short * short * unit;
    }
    match needed(memory) {
        needed if limits.single => i64::try_from(needed).unwrap_or(i64::MAX).max(unit),
        _ => unit << (63 - (limits.units / 3).max(8).leading_zeros()),
    }
}

/// Bytes of all that there is to be seen.
pub fn needed(memory: &Memory) -> i128 {
    let all = whole(memory);
    all.end - all.start
}

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

    /// Draws a line or lengthens the last one, and says by how many rows; none where it takes too much effort.
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

    /// Folds rows from `row` on that repeat the lines above, if the type says that they do.
    fn repetition(&mut self, row: u128) -> Option<Option<u128>> {
        let at = self.address(row);
        let pitch = i128::from(self.pitch);
        let span = self.memory.span();
        for cycle in self.memory.cycles(at, &mut self.effort)? {
            let Some(period) = common(cycle.period, pitch) else { continue };
            let rows = (period / pitch) as u128;
            // Whole periods of whole rows from here on. The bounds aren't within them, nor is the last row.
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
            // One row, which is folded already.
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
            // Two periods that were drawn are the same.
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

    /// The line that starts at an address.
    fn line_at(&self, at: Address) -> Option<usize> {
        self.lines.iter().rposition(|line| line.start() == at)
    }

    /// How many rows from `row` on, which has none, have no data and lie on one side of each bound.
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

    /// Whether another row holds the same at the same places.
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
    /// The address of its first byte.
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

/// The least common multiple, where it is one to be reckoned with.
fn common(a: i128, b: i128) -> Option<i128> {
    let (mut x, mut y) = (a, b);
    while y > 0 {
        (x, y) = (y, x % y);
    }
    (a / x.max(1)).checked_mul(b).filter(|&multiple| multiple > 0)
}
