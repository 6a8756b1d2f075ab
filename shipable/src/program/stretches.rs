//! The memory that a program reaches, as strided stretches or as single runs.

use std::ops::Range;

use super::Program;
use super::cursor::{Cursor, Elements, Strip};
use super::op::{Body, Op};
use crate::dims::Dim;
use crate::error::Result;

/// A run of bytes of memory, repeated in strided dimensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The displacement of the first byte of the first run.
    pub start: i64,
    /// The bytes of a run.
    pub len: u64,
    /// The dimensions, from the outermost to the innermost. Each is a count of repetitions and a
    /// stride in bytes, which is above 0.
    pub dims: Vec<(u64, i64)>,
}

impl Stretch {
    /// The displacement past the last byte.
    pub fn end(&self) -> i64 {
        let last = |end: i64, &(count, stride): &(u64, i64)| {
            end.saturating_add(stride.saturating_mul(count as i64 - 1))
        };
        self.dims.iter().fold(self.start.saturating_add_unsigned(self.len), last)
    }

    /// This stretch repeated in one more dimension, the outermost.
    fn repeated(mut self, count: u64, stride: i64) -> Stretch {
        match stride {
            _ if count <= 1 || stride == 0 => {}
            _ if stride < 0 => {
                self.start = self.start.wrapping_add((count as i64 - 1).wrapping_mul(stride));
                self.dims.insert(0, (count, stride.wrapping_neg()));
            }
            _ if self.dims.is_empty() && u64::try_from(stride) == Ok(self.len) => self.len *= count,
            _ => self.dims.insert(0, (count, stride)),
        }
        self
    }
}

impl Program {
    /// The memory of `count` elements, relative to displacement 0, as at most `most` stretches, and
    /// whether these are all.
    ///
    /// The stretches are in the order of the type map. A regular layout takes one stretch, however
    /// many runs it has.
    ///
    /// ```
    /// use shipable::{Architecture, Committed, Datatype, Stretch};
    ///
    /// let column = Datatype::vector(1 << 30, 1, 10, &Datatype::double())?;
    /// let column = Committed::new(&column, &Architecture::X86_64)?;
    /// let (stretches, whole) = column.native().stretches(1, 100);
    /// assert_eq!(stretches, [Stretch { start: 0, len: 8, dims: vec![(1 << 30, 80)] }]);
    /// assert!(whole);
    /// # Ok::<(), shipable::Error>(())
    /// ```
    pub fn stretches(&self, count: u64, most: usize) -> (Vec<Stretch>, bool) {
        if count == 0 {
            return (Vec::new(), true);
        }
        let mut collector = StretchCollector {
            found: Vec::new(),
            most,
            outer: vec![Dim { count, stride: self.extent }],
        };
        let whole = collector.body(&self.body, 0);
        (collector.found, whole)
    }
}

impl Program {
    /// The memory of `count` elements as runs, each a displacement and a length in bytes, in the
    /// order of the type map.
    ///
    /// If the program is [all copy](Program::is_all_copy), its packed stream is the concatenation
    /// of these runs. Returns `None` if there are more than `most` runs, or if a run is longer than
    /// a `u64` counts.
    ///
    /// ```
    /// use shipable::{Architecture, Committed, Datatype};
    ///
    /// let down = Datatype::vector(3, 2, -4, &Datatype::double())?;
    /// let down = Committed::new(&down, &Architecture::X86_64)?;
    /// assert_eq!(down.native().runs(1, 10), Some(vec![(0, 16), (-32, 16), (-64, 16)]));
    /// assert_eq!(down.native().runs(1, 2), None);
    /// # Ok::<(), shipable::Error>(())
    /// ```
    pub fn runs(&self, count: u64, most: usize) -> Option<Vec<(i64, u64)>> {
        // A single run needs no walk over its elements.
        if let Some(start) = self.contiguous(count).filter(|_| count > 0) {
            let run = (start, self.stream_length(count).ok()?);
            return (most > 0).then(|| vec![run]);
        }
        let mut runs = RunCollector { found: Vec::new(), most };
        let all = Dim { count, stride: self.extent };
        runs.repeat(&[all], 0, &mut |runs, at| runs.body(&self.body, at)).then_some(runs.found)
    }
}

impl Program {
    /// Calls `each` with the runs of memory that hold a part of the packed stream of `count`
    /// elements, in the order of the stream: the displacement and the length of each run, in bytes.
    /// Adjoining runs are passed as one. `each` returns whether to go on.
    ///
    /// The part is found by division and binary search, so a part of a large type takes time in
    /// proportion to the runs of the part. The program has to be
    /// [all copy](Program::is_all_copy): a run then has as many bytes in memory as in the stream.
    ///
    /// ```
    /// use shipable::{Architecture, Committed, Datatype};
    ///
    /// let column = Datatype::vector(1 << 30, 1, 10, &Datatype::double())?;
    /// let column = Committed::new(&column, &Architecture::X86_64)?;
    /// let mut runs = Vec::new();
    /// column.native().runs_within(1, 12..32, |at, len| {
    ///     runs.push((at, len));
    ///     true
    /// })?;
    /// assert_eq!(runs, [(84, 4), (160, 8), (240, 8)]);
    /// # Ok::<(), shipable::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// - [`Error::Position`](crate::Error::Position) if the part isn't within the stream.
    /// - [`Error::Overflow`](crate::Error::Overflow) if a displacement of the elements exceeds an
    ///   `i64`, or the length of the stream a `u64`.
    pub fn runs_within(
        &self,
        count: u64,
        part: Range<u64>,
        mut each: impl FnMut(i64, u64) -> bool,
    ) -> Result<()> {
        let wanted = part.end.saturating_sub(part.start);
        let length = self.part(count, part.start, wanted)?;
        if length < wanted {
            return Err(self.past_the_end(count, part.end));
        }
        self.range(count)?;
        if length == 0 {
            return Ok(());
        }
        if let Some(start) = self.contiguous(count) {
            each(start.wrapping_add(part.start as i64), length);
            return Ok(());
        }
        let elements = Elements::new(&self.body, count, self.extent);
        let mut cursor = Cursor::in_order(&elements, part);
        let mut last: Option<(i64, u64)> = None;
        let mut add = |at: i64, len: u64| match &mut last {
            Some((start, run)) if start.checked_add_unsigned(*run) == Some(at) => {
                *run += len;
                true
            }
            _ => last.replace((at, len)).is_none_or(|(start, run)| each(start, run)),
        };
        while let Some(strip) = cursor.next(u64::MAX) {
            if !strip.runs(&mut add) {
                return Ok(());
            }
        }
        if let Some((start, run)) = last {
            each(start, run);
        }
        Ok(())
    }
}

impl Strip<'_> {
    /// Calls `each` with every run of memory, until it returns false. Returns whether it didn't.
    fn runs(&self, each: &mut impl FnMut(i64, u64) -> bool) -> bool {
        match self {
            Strip::Grid { block, units, counts, memory, memory_strides, .. } => {
                let len = units * block.item().memory();
                let [outer, inner] = *memory_strides;
                (0..counts[0] as i64).all(|row| {
                    let row = memory.wrapping_add(outer.wrapping_mul(row));
                    (0..counts[1] as i64)
                        .all(|at| each(row.wrapping_add(inner.wrapping_mul(at)), len))
                })
            }
            // A cursor in order makes no tiles.
            Strip::Tile(_) => true,
            Strip::Table { gather, runs, base, .. } => runs.clone().all(|index| {
                let (start, run) = gather.run(index);
                each(base.wrapping_add(start), gather.item().bytes_in_memory(run.end - run.start))
            }),
            Strip::Units { item, units, memory, .. } => each(*memory, units * item.memory()),
            Strip::Cut { item, memory, .. } => each(*memory, item.memory()),
        }
    }
}

/// Collects runs.
struct RunCollector {
    found: Vec<(i64, u64)>,
    most: usize,
}

impl RunCollector {
    /// Adds the runs of a body at a displacement. Returns false if they are too many.
    fn body(&mut self, body: &Body, at: i64) -> bool {
        body.ops.iter().all(|op| match op {
            Op::Block(block) => {
                let (start, len) = (at.wrapping_add(block.start), block.memory_run());
                self.repeat(&block.dims, start, &mut |runs, at| runs.add(at, len))
            }
            Op::Gather(gather) => (0..gather.len()).all(|index| {
                let (start, run) = gather.run(index);
                let len = gather.item().bytes_in_memory(run.end - run.start);
                self.add(at.wrapping_add(start), len)
            }),
            Op::Loop(each) => {
                let dim = Dim { count: each.count, stride: each.stride };
                let start = at.wrapping_add(each.start);
                self.repeat(&[dim], start, &mut |runs, at| runs.body(&each.body, at))
            }
        })
    }

    /// Calls `each` with every displacement of strided dimensions, the first of which is the
    /// outermost.
    fn repeat(
        &mut self,
        dims: &[Dim],
        at: i64,
        each: &mut dyn FnMut(&mut RunCollector, i64) -> bool,
    ) -> bool {
        let Some((dim, inner)) = dims.split_first() else { return each(self, at) };
        let place = |index: u64| at.wrapping_add(dim.stride.wrapping_mul(index as i64));
        (0..dim.count).all(|index| self.repeat(inner, place(index), each))
    }

    fn add(&mut self, start: i64, len: u64) -> bool {
        match self.found.last_mut() {
            _ if len == 0 => true,
            Some((last, run)) if last.checked_add_unsigned(*run) == Some(start) => {
                *run += len;
                true
            }
            _ => {
                self.found.push((start, len));
                self.found.len() <= self.most
            }
        }
    }
}

/// Collects stretches.
struct StretchCollector {
    found: Vec<Stretch>,
    most: usize,
    /// The dimensions of the enclosing loops, from the outermost to the innermost.
    outer: Vec<Dim>,
}

impl StretchCollector {
    /// Adds the stretches of a body at a displacement. Returns false if they are too many.
    fn body(&mut self, body: &Body, at: i64) -> bool {
        body.ops.iter().all(|op| match op {
            Op::Block(block) => {
                self.add(at.wrapping_add(block.start), block.memory_run(), &block.dims)
            }
            Op::Gather(gather) => (0..gather.len()).all(|index| {
                let (start, run) = gather.run(index);
                let len = gather.item().bytes_in_memory(run.end - run.start);
                self.add(at.wrapping_add(start), len, &[])
            }),
            Op::Loop(each) => {
                self.outer.push(Dim { count: each.count, stride: each.stride });
                let whole = self.body(&each.body, at.wrapping_add(each.start));
                self.outer.pop();
                whole
            }
        })
    }

    fn add(&mut self, start: i64, len: u64, inner: &[Dim]) -> bool {
        if self.found.len() == self.most {
            return false;
        }
        let run = Stretch { start, len, dims: Vec::new() };
        let all = inner.iter().rev().chain(self.outer.iter().rev());
        self.found.push(all.fold(run, |run, dim| run.repeated(dim.count, dim.stride)));
        true
    }
}
