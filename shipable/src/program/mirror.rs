//! Copies between two memories in which elements lie at equal displacements.
//!
//! Each byte goes to its own displacement, so runs may be copied in any order. The copy therefore
//! sorts the dimensions by stride and merges rows as far as possible. A transpose on both sides
//! becomes a copy of plain rows again.

use std::ops::Range;

use super::cursor::{Cursor, Elements, Strip};
use super::op::{Block, Body, Gather, Op, Table};
use super::pack::ragged_runs;
use super::{Program, copy};
use crate::convert::Conversion;
use crate::dims::Dim;
use crate::error::Result;
use crate::kernels::{Kernel, KernelError, Lane, Tabled};
use crate::memory::{OutOfBounds, View, ViewMut};

impl Program {
    /// Whether [`mirror`](Program::mirror) can copy between elements of the two programs. They must
    /// reach the same displacements in the same order, and convert nothing.
    ///
    /// `false` doesn't prove a difference: only the first operations of deeply nested datatypes are
    /// compared.
    ///
    /// ```
    /// # use shipable::{Architecture, Committed, Datatype};
    /// # let commit = |datatype| Committed::new(&datatype, &Architecture::NATIVE);
    /// let column = commit(Datatype::vector(4, 1, 3, &Datatype::double())?)?;
    /// let bytes = commit(Datatype::hvector(4, 1, 24, &Datatype::double())?)?;
    /// assert!(column.native().is_like(bytes.native()));
    /// let row = commit(Datatype::contiguous(4, &Datatype::double())?)?;
    /// assert!(!column.native().is_like(row.native()));
    /// # Ok::<(), shipable::Error>(())
    /// ```
    pub fn is_like(&self, other: &Program) -> bool {
        let mut compared = COMPARED;
        self.body.copies
            && (std::ptr::eq(self, other)
                || self.extent == other.extent && alike(&self.body, &other.body, &mut compared))
    }

    /// Copies `count` elements to the same displacements of another memory.
    ///
    /// The result is that of [`copy`] from this program to itself, but the order is whichever is
    /// fastest.
    ///
    /// ```
    /// use shipable::{Architecture, Committed, Datatype, View, ViewMut};
    /// let column = Datatype::vector(3, 1, 2, &Datatype::byte())?;
    /// let column = Committed::new(&column, &Architecture::NATIVE)?;
    /// let mut matrix = [0; 6];
    /// column.native().mirror(1, View::new(&[1, 2, 3, 4, 5, 6]), ViewMut::new(&mut matrix))?;
    /// assert_eq!(matrix, [1, 0, 3, 0, 5, 0]);
    /// # Ok::<(), shipable::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`copy`].
    pub fn mirror(&self, count: u64, from: View<'_>, mut to: ViewMut<'_>) -> Result<()> {
        if !self.body.copies {
            return copy(self, count, from, self, count, to);
        }
        let reach = self.range(count)?;
        from.covers(reach.start, reach.end)?;
        to.covers(reach.start, reach.end)?;
        let mut memories = Memories { from, to: &mut to };
        let is_flat = |op: &Op| !matches!(op, Op::Loop(_));
        match &*self.body.ops {
            _ if reach.is_empty() => Ok(()),
            [Op::Block(block)] => {
                memories.block(block, Dim { count, stride: self.extent }).map_err(Into::into)
            }
            ops if count == 1 && ops.iter().all(is_flat) => {
                ops.iter().try_for_each(|op| memories.op(op)).map_err(Into::into)
            }
            _ => self.mirror_strips(count, 0..self.body.stream * count, &mut memories),
        }
    }

    /// Copies the memory of a part of the stream of `count` elements to the same displacements of
    /// another memory. No value is converted, and the part cuts none.
    pub(super) fn mirror_part(
        &self,
        count: u64,
        part: Range<u64>,
        from: View<'_>,
        to: &mut ViewMut<'_>,
    ) -> Result<()> {
        self.mirror_strips(count, part, &mut Memories { from, to })
    }

    /// Copies strip by strip, in tiles where possible.
    fn mirror_strips(
        &self,
        count: u64,
        part: Range<u64>,
        memories: &mut Memories<'_, '_, '_>,
    ) -> Result<()> {
        let elements = Elements::new(&self.body, count, self.extent);
        let mut cursor = Cursor::new(&elements, part);
        while let Some(strip) = cursor.next(u64::MAX) {
            memories.strip(&strip)?;
        }
        Ok(())
    }
}

/// The most operations that are compared before two programs count as different.
const COMPARED: u32 = 1024;

/// Whether two bodies that only copy are equal. Compares at most `most` operations.
fn alike(a: &Body, b: &Body, most: &mut u32) -> bool {
    if std::ptr::eq(a, b) {
        return true;
    }
    let same_table = |a: &Gather, b: &Gather| match (&a.table, &b.table) {
        (Table::Even { offsets: x }, Table::Even { offsets: y }) => {
            a.kernel.from_run() == b.kernel.from_run() && x == y
        }
        (Table::Ragged { runs: x }, Table::Ragged { runs: y }) => x == y,
        _ => false,
    };
    let mut same = |(a, b): (&Op, &Op)| {
        let Some(left) = most.checked_sub(1) else { return false };
        *most = left;
        match (a, b) {
            (Op::Block(a), Op::Block(b)) => {
                (a.start, a.dims, a.memory_run()) == (b.start, b.dims, b.memory_run())
            }
            (Op::Gather(a), Op::Gather(b)) => {
                (a.start, a.stream) == (b.start, b.stream) && same_table(a, b)
            }
            (Op::Loop(a), Op::Loop(b)) => {
                (a.start, a.count, a.stride) == (b.start, b.count, b.stride)
                    && alike(&a.body, &b.body, most)
            }
            _ => false,
        }
    };
    (a.stream, a.ops.len()) == (b.stream, b.ops.len()) && a.ops.iter().zip(&b.ops).all(&mut same)
}

/// The two memories. Callers have checked that every run lies in both.
struct Memories<'f, 'v, 't> {
    from: View<'f>,
    to: &'v mut ViewMut<'t>,
}

impl Memories<'_, '_, '_> {
    fn op(&mut self, op: &Op) -> Result<(), OutOfBounds> {
        match op {
            Op::Block(block) => self.block(block, Dim::ONE),
            Op::Gather(gather) => self.table(gather, 0..gather.len(), 0),
            Op::Loop(_) => unreachable!("loops are walked by a cursor"),
        }
    }

    /// Copies a block that is repeated in one more dimension.
    fn block(&mut self, block: &Block, repeated: Dim) -> Result<(), OutOfBounds> {
        let [outer, middle, inner] = block.dims;
        let gap = inner.stride.checked_sub_unsigned(block.memory_run());
        if [repeated.count, outer.count, middle.count] == [1; 3] && gap > Some(0) {
            // One dimension in the order of memory, the most common case: there is nothing to sort.
            let lane = Lane { start: block.start, strides: [0, inner.stride] };
            let kernel = &block.kernel;
            return moved(kernel.transfer([1, inner.count], self.from, lane, self.to, lane));
        }
        self.rows(block.start, [repeated, outer, middle, inner], block.memory_run())
    }

    fn strip(&mut self, strip: &Strip<'_>) -> Result<(), OutOfBounds> {
        match strip {
            Strip::Grid { block, units, counts, memory, memory_strides, .. } => {
                let [outer, inner] =
                    [0, 1].map(|which| Dim { count: counts[which], stride: memory_strides[which] });
                let run = units * block.item().memory();
                self.rows(*memory, [Dim::ONE, Dim::ONE, outer, inner], run)
            }
            Strip::Table { gather, runs, base, .. } => self.table(gather, runs.clone(), *base),
            Strip::Tile(tile) => {
                tile.part(0..tile.iterations).try_for_each(|strip| self.strip(&strip))
            }
            Strip::Units { item, units, memory, .. } => {
                self.rows(*memory, [Dim::ONE; 4], units * item.memory())
            }
            Strip::Cut { .. } => unreachable!("only a part of a stream cuts a unit"),
        }
    }

    fn table(
        &mut self,
        gather: &Gather,
        runs: std::ops::Range<usize>,
        base: i64,
    ) -> Result<(), OutOfBounds> {
        match &gather.table {
            Table::Even { offsets } => {
                let at = base.wrapping_add(gather.start);
                let kernel = gather.kernel.copying();
                moved(kernel.by_table(Tabled::Both, offsets, runs, self.from, at, self.to, at))
            }
            Table::Ragged { .. } => {
                ragged_runs(gather, runs, base, 0).try_for_each(|strip| self.strip(&strip))
            }
        }
    }

    /// Copies runs in four dimensions. Each kernel call takes the two innermost ones.
    fn rows(&mut self, start: i64, dims: [Dim; 4], run: u64) -> Result<(), OutOfBounds> {
        let MemoryOrder { start, dims: [outermost, outer, middle, inner], run } =
            MemoryOrder::new(start, dims, run);
        let kernel = Kernel::new(Conversion::Copy, run);
        for i in 0..outermost.count as i64 {
            for j in 0..outer.count as i64 {
                let start = start
                    .wrapping_add(outermost.stride.wrapping_mul(i))
                    .wrapping_add(outer.stride.wrapping_mul(j));
                let lane = Lane { start, strides: [middle.stride, inner.stride] };
                let counts = [middle.count, inner.count];
                moved(kernel.transfer(counts, self.from, lane, self.to, lane))?;
            }
        }
        Ok(())
    }
}

/// Runs in at most four dimensions, in the order of memory, in as few dimensions as possible.
pub(super) struct MemoryOrder {
    pub start: i64,
    /// The dimensions, from the outermost to the innermost. Unused dimensions come first.
    pub dims: [Dim; 4],
    pub run: u64,
}

impl MemoryOrder {
    /// 1. Drop dimensions of one run or of stride 0. Make strides positive and start at the first
    ///    run in memory.
    /// 2. Sort by stride, so that the shortest stride is the innermost.
    /// 3. Merge runs that adjoin, and dimensions that continue each other at an unchanged stride.
    pub(super) fn new(mut start: i64, all: [Dim; 4], mut run: u64) -> MemoryOrder {
        let (mut dims, mut used) = ([Dim::ONE; 4], 0);
        for Dim { count, stride } in all {
            if count <= 1 || stride == 0 {
                continue;
            }
            if stride < 0 {
                start = start.wrapping_add(stride.wrapping_mul(count as i64 - 1));
            }
            let dim = Dim { count, stride: stride.wrapping_abs() };
            let index = (0..used).find(|&at| dims[at].stride < dim.stride).unwrap_or(used);
            dims.copy_within(index..used, index + 1);
            (dims[index], used) = (dim, used + 1);
        }
        while used > 0 && dims[used - 1].stride as u64 == run {
            used -= 1;
            run *= dims[used].count;
        }
        let mut last = 0;
        for at in 1..used {
            let Dim { count, stride } = dims[at];
            let whole = i128::from(stride) * i128::from(count);
            if i128::from(dims[last].stride) == whole {
                dims[last] = Dim { count: dims[last].count * count, stride };
            } else {
                last += 1;
                dims[last] = dims[at];
            }
        }
        let used = if used == 0 { 0 } else { last + 1 };
        let of = |at: usize| if at < used { dims[used - 1 - at] } else { Dim::ONE };
        MemoryOrder { start, dims: [of(3), of(2), of(1), of(0)], run }
    }
}

/// Unwraps the errors of a copy, which never refuses a value.
fn moved(outcome: Result<(), KernelError>) -> Result<(), OutOfBounds> {
    match outcome {
        Err(KernelError::OutOfBounds(error)) => Err(error),
        Err(KernelError::Value { .. }) | Ok(()) => Ok(()),
    }
}
