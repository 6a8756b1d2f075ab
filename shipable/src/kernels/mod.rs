//! Kernels: the inner loops that move runs of units from one memory to another and convert them.
//!
//! A [`Kernel`] is made for one conversion and one length of run, when a program is lowered. It has
//! a loop for each layout of the runs: two strided dimensions, with a [`Lane`] on either side, or a
//! table of [`Offsets`] on one side or on both. Const generics make the loops. They are keyed by
//! width in bytes, never by basic type.
//!
//! - `access`: the loads and stores of all others.
//! - `moves`: the move of one run, which copies or swaps 1, 2, 4, 8, 16, 32, 64 or any number of
//!   bytes.
//! - `loops`: the loops around a move, and the choice of an instruction set at run time.
//! - `fold`: operations in place, for reductions.
//! - `bytes`: copies between a view and bytes of the caller.
//! - `items`: a slower loop, unit by unit, for conversions that can refuse a value.
//!
//! Calls are safe: each checks once that all of its runs lie in its views. If runs overlap in the
//! target, they are moved in the order of the grid or the table, so the last one stays. If source
//! and target overlap, the bytes in the overlap are unspecified afterwards.
#![allow(unsafe_code)]

mod access;
mod bytes;
pub(crate) mod fold;
mod items;
mod loops;
mod moves;
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
mod x86;

use std::ops::Range;

use crate::convert::{Conversion, ValueError};
use crate::memory::{OutOfBounds, View, ViewMut};
use items::RunLayout;
use loops::{GridLoop, Loops, Rows};
pub use loops::{copy_run, load_value};

/// The displacements of the runs of one side: run `(i, j)` lies at `start + i * strides[0] + j *
/// strides[1]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lane {
    /// The displacement of the first run.
    pub start: i64,
    /// The bytes from one run to the next, in the outer and in the inner dimension.
    pub strides: [i64; 2],
}

/// A table of offsets in bytes, with the least and the greatest of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offsets {
    /// Its capacity may exceed its length by a few: a box would have to be allocated again.
    offsets: Vec<i64>,
    least: i64,
    greatest: i64,
}

/// The sides whose runs lie at a table's offsets. The runs of the other side are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tabled {
    /// The source: runs are gathered.
    Source,
    /// The target: runs are scattered.
    Target,
    /// Both sides, at the same offsets.
    Both,
}

/// Moves runs of one length under one conversion.
///
/// ```
/// use shipable::convert::Conversion;
/// use shipable::kernels::{Kernel, Lane};
/// use shipable::memory::{View, ViewMut};
///
/// // The second column of a matrix of 3 by 2 bytes.
/// let matrix = [11, 12, 21, 22, 31, 32];
/// let mut column = [0; 3];
/// let (second, packed) = (Lane { start: 1, strides: [0, 2] }, Lane::packed(0, [1, 3], 1));
/// let kernel = Kernel::new(Conversion::Copy, 1);
/// let (from, mut to) = (View::new(&matrix), ViewMut::new(&mut column));
/// kernel.transfer([1, 3], from, second, &mut to, packed)?;
/// assert_eq!(column, [12, 22, 32]);
/// # Ok::<(), shipable::kernels::KernelError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    conversion: Conversion,
    /// The bytes of a run in the source and in the target.
    from_run: i64,
    to_run: i64,
    /// `None` for conversions that go unit by unit.
    loops: Option<&'static Loops>,
}

/// A prepared [`Kernel::transfer`]: its loop and its checked displacements, for transfers that are
/// repeated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer {
    body: GridLoop,
    rows: Rows,
    /// The first and the last displacement that is read, and that of the first run.
    read: [i64; 2],
    from: i64,
    /// The first and the last displacement that is written, and that of the first run.
    written: [i64; 2],
    to: i64,
}

impl Transfer {
    /// Moves all runs.
    ///
    /// # Errors
    ///
    /// [`OutOfBounds`] if a view is too small. Nothing was moved.
    #[inline]
    pub(crate) fn carry_out(
        &self,
        source: View<'_>,
        target: &mut ViewMut<'_>,
    ) -> Result<(), OutOfBounds> {
        source.covers(self.read[0], self.read[1])?;
        target.covers(self.written[0], self.written[1])?;
        // SAFETY: `read` and `written` were computed from the lanes, and the views cover them. The
        // loop was chosen for these rows. Their strides and counts fit as in `Kernel::transfer`.
        unsafe { (self.body)(&self.rows, source.at(self.from), target.at(self.to)) };
        Ok(())
    }
}

/// The reason why a kernel stopped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KernelError {
    /// A view has too few bytes. Nothing was moved.
    #[error(transparent)]
    OutOfBounds(#[from] OutOfBounds),
    /// A value doesn't fit. Neither it nor any later value was moved.
    #[error("unit {unit}: {error}")]
    Value {
        /// The number of units that were moved before it.
        unit: u64,
        /// The value and the reason.
        error: ValueError,
    },
}

impl Lane {
    /// Runs of `run` bytes without gaps between them.
    pub fn packed(start: i64, counts: [u64; 2], run: u64) -> Lane {
        // Values beyond an `i64` saturate and then fail the bounds check.
        let inner = i64::try_from(run).unwrap_or(i64::MAX);
        let outer = i64::try_from(counts[1]).unwrap_or(i64::MAX).saturating_mul(inner);
        Lane { start, strides: [outer, inner] }
    }

    /// The displacements that runs of `run` bytes reach. `None` if they exceed an `i64`. Counts
    /// must be above zero.
    #[inline]
    fn reach(&self, counts: [u64; 2], run: i64) -> Option<Range<i64>> {
        let (mut start, mut end) = (self.start, self.start.checked_add(run)?);
        if counts == [1, 1] {
            return Some(start..end);
        }
        for (count, stride) in counts.into_iter().zip(self.strides) {
            let last = i64::try_from(count - 1).ok()?.checked_mul(stride)?;
            if last < 0 {
                start = start.checked_add(last)?;
            } else {
                end = end.checked_add(last)?;
            }
        }
        Some(start..end)
    }
}

impl Offsets {
    /// A table of these offsets, in bytes.
    pub fn new(offsets: impl Into<Vec<i64>>) -> Offsets {
        let offsets = offsets.into();
        let least = offsets.iter().copied().min().unwrap_or(0);
        let greatest = offsets.iter().copied().max().unwrap_or(0);
        Offsets { offsets, least, greatest }
    }

    /// The offsets.
    pub fn as_slice(&self) -> &[i64] {
        &self.offsets
    }

    /// The displacements that runs of `run` bytes reach, if the offsets are relative to `at`.
    fn reach(&self, at: i64, run: i64) -> Option<Range<i64>> {
        Some(at.checked_add(self.least)?..at.checked_add(self.greatest)?.checked_add(run)?)
    }
}

/// An offset table under construction.
pub(crate) struct OffsetsBuilder {
    /// The offsets, and zeros behind them.
    offsets: Vec<i64>,
    len: usize,
}

impl OffsetsBuilder {
    /// The offsets that are written at once.
    pub(crate) const CHUNK: usize = 8;

    /// An empty table with room for `most` offsets.
    pub(crate) fn of(most: usize) -> OffsetsBuilder {
        OffsetsBuilder { offsets: vec![0; most + OffsetsBuilder::CHUNK], len: 0 }
    }

    /// Adds `count` offsets, `step` bytes apart. The table has room for them.
    ///
    /// Offsets are written by the chunk, which spares a mispredicted branch for each short run of
    /// irregular length (docs/tuning.md, "Walks over blocks").
    #[inline(always)]
    pub(crate) fn add(&mut self, first: i64, count: u64, step: i64) {
        let end = self.len + count as usize;
        let (mut at, mut offset) = (self.len, first);
        while at < end {
            let chunk = &mut self.offsets[at..][..OffsetsBuilder::CHUNK];
            for (index, slot) in chunk.iter_mut().enumerate() {
                *slot = offset.wrapping_add(step.wrapping_mul(index as i64));
            }
            at += OffsetsBuilder::CHUNK;
            offset = offset.wrapping_add(step.wrapping_mul(OffsetsBuilder::CHUNK as i64));
        }
        self.len = end;
    }

    /// The table. `reach` are the least and the greatest of the offsets.
    pub(crate) fn finish(self, reach: [i64; 2]) -> Offsets {
        let OffsetsBuilder { mut offsets, len } = self;
        offsets.truncate(len);
        let [least, greatest] = reach;
        debug_assert_eq!(offsets.iter().min(), Some(&least));
        debug_assert_eq!(offsets.iter().max(), Some(&greatest));
        Offsets { offsets, least, greatest }
    }
}

/// The length of a run. One beyond any memory saturates, and then fails every bounds check.
#[inline]
fn in_memory(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

impl Kernel {
    /// The kernel for runs of `units` units of `conversion`.
    #[inline]
    pub fn new(conversion: Conversion, units: u64) -> Kernel {
        if conversion.is_copy() {
            return Kernel::of_copy(units);
        }
        let run = |size: u8| in_memory(units.saturating_mul(size.into()));
        let (from_run, to_run) = (run(conversion.from_size()), run(conversion.to_size()));
        let loops = match conversion {
            Conversion::Swap { unit } => Some(loops::swap(unit, from_run as u64)),
            _ => None,
        };
        Kernel { conversion, from_run, to_run, loops }
    }

    /// The kernel that copies runs of `bytes` bytes.
    #[inline(always)]
    pub(crate) fn of_copy(bytes: u64) -> Kernel {
        let (run, loops) = (in_memory(bytes), Some(loops::copy(bytes)));
        Kernel { conversion: Conversion::Copy, from_run: run, to_run: run, loops }
    }

    /// Makes this the kernel for runs of `units` units of the same conversion.
    pub(crate) fn set_units(&mut self, units: u64) {
        *self = Kernel::new(self.conversion, units);
    }

    /// The conversion.
    #[inline]
    pub fn conversion(&self) -> Conversion {
        self.conversion
    }

    /// The kernel that moves the same runs back. It has the same loops: a conversion with loops
    /// doesn't change a run's length.
    #[inline]
    pub fn reversed(self) -> Kernel {
        let Kernel { conversion, from_run, to_run, loops } = self;
        Kernel { conversion: conversion.reversed(), from_run: to_run, to_run: from_run, loops }
    }

    /// The kernel that copies the runs of the source.
    pub(crate) fn copying(self) -> Kernel {
        match self.conversion {
            Conversion::Copy => self,
            _ => Kernel::new(Conversion::Copy, self.from_run as u64),
        }
    }

    /// Whether the conversion goes unit by unit.
    #[inline]
    pub(crate) fn is_slow(&self) -> bool {
        self.loops.is_none()
    }

    /// The bytes of a run in the source.
    #[inline]
    pub fn from_run(&self) -> u64 {
        self.from_run as u64
    }

    /// The bytes of a run in the target.
    #[inline]
    pub fn to_run(&self) -> u64 {
        self.to_run as u64
    }

    /// Moves `counts[0]` times `counts[1]` runs. The second dimension is the inner one.
    ///
    /// # Errors
    ///
    /// See [`KernelError`].
    #[inline]
    pub fn transfer(
        &self,
        counts: [u64; 2],
        source: View<'_>,
        from: Lane,
        target: &mut ViewMut<'_>,
        to: Lane,
    ) -> Result<(), KernelError> {
        if counts.contains(&0) || self.from_run == 0 {
            return Ok(());
        }
        let read = from.reach(counts, self.from_run).unwrap_or(EVERYTHING);
        source.covers(read.start, read.end)?;
        let written = to.reach(counts, self.to_run).unwrap_or(EVERYTHING);
        target.covers(written.start, written.end)?;
        let (first, destination) = (source.at(from.start), target.at(to.start));
        if let ([1, 1], Some(loops)) = (counts, self.loops) {
            // SAFETY: each view covers the run, and the move was chosen for it.
            unsafe { (loops.run)(first, destination, self.from_run as usize) };
            return Ok(());
        }
        let rows = Rows::new(counts, from.strides, to.strides, self.from_run as usize);
        match self.loops {
            // SAFETY: the views cover everything that the lanes reach. Counts and used strides fit
            // a pointer's width, because the views' bytes do. Only a count whose stride is 0 may
            // exceed it. The loop was chosen for runs of `rows.run` bytes.
            Some(loops) => unsafe { loops.grid(&rows)(&rows, first, destination) },
            // SAFETY: the views cover everything that the lanes reach.
            None => unsafe { self.items(&RunLayout::Grid(&rows), first, destination)? },
        }
        Ok(())
    }

    /// Prepares a transfer. `None` if there is nothing to move, if the conversion goes unit by
    /// unit, or if a displacement exceeds an `i64`.
    pub(crate) fn prepare(&self, counts: [u64; 2], from: Lane, to: Lane) -> Option<Transfer> {
        if counts.contains(&0) || self.from_run == 0 {
            return None;
        }
        let read = from.reach(counts, self.from_run)?;
        let written = to.reach(counts, self.to_run)?;
        let rows = Rows::new(counts, from.strides, to.strides, self.from_run as usize);
        Some(Transfer {
            body: self.loops?.grid(&rows),
            rows,
            read: [read.start, read.end],
            from: from.start,
            written: [written.start, written.end],
            to: to.start,
        })
    }

    /// Moves runs that lie at a range of a table's offsets, on one side or on both. The runs of the
    /// other side are packed. Offsets and packed runs start at `from_at` in the source and at
    /// `to_at` in the target.
    ///
    /// # Errors
    ///
    /// See [`KernelError`]. The bounds check covers the whole table, not only the range.
    ///
    /// # Panics
    ///
    /// If the range exceeds the table.
    #[allow(clippy::too_many_arguments)] // a view and a displacement on each side
    pub fn by_table(
        &self,
        tabled: Tabled,
        table: &Offsets,
        range: Range<usize>,
        source: View<'_>,
        from_at: i64,
        target: &mut ViewMut<'_>,
        to_at: i64,
    ) -> Result<(), KernelError> {
        let offsets = &table.offsets[range];
        if offsets.is_empty() || self.from_run == 0 {
            return Ok(());
        }
        let reach = |tabled: bool, at: i64, run: i64| {
            if tabled { table.reach(at, run) } else { stream(offsets.len(), at, run) }
        };
        let read = reach(tabled != Tabled::Target, from_at, self.from_run).unwrap_or(EVERYTHING);
        source.covers(read.start, read.end)?;
        let written = reach(tabled != Tabled::Source, to_at, self.to_run).unwrap_or(EVERYTHING);
        target.covers(written.start, written.end)?;
        let (first, destination) = (source.at(from_at), target.at(to_at));
        let run = self.from_run as usize;
        let Some(loops) = self.loops else {
            let places = match tabled {
                Tabled::Both => RunLayout::Mirror { offsets },
                Tabled::Source => RunLayout::Gather { offsets, to_run: self.to_run as isize },
                Tabled::Target => RunLayout::Scatter { offsets, from_run: self.from_run as isize },
            };
            // SAFETY: the views cover every run at an offset of the table, and as many packed runs.
            return unsafe { self.items(&places, first, destination) };
        };
        let body = match tabled {
            Tabled::Both => loops.mirror,
            Tabled::Source => loops.gather,
            Tabled::Target => loops.scatter,
        };
        // SAFETY: the views cover every run at an offset of the table, and as many packed runs. The
        // loop was chosen for runs of `run` bytes.
        unsafe { body(offsets, run, first, destination) };
        Ok(())
    }

    /// Moves unit by unit.
    ///
    /// # Safety
    ///
    /// Every run at `places` must be readable in the source and writable in the destination.
    unsafe fn items(
        &self,
        places: &RunLayout<'_>,
        from: *const u8,
        to: *mut u8,
    ) -> Result<(), KernelError> {
        let run = self.from_run as usize;
        // SAFETY: the caller's promise. The length of a run is a multiple of the conversion's size.
        unsafe { items::transfer(self.conversion, places, run, from, to) }
            .map_err(|stop| KernelError::Value { unit: stop.unit, error: stop.error })
    }
}

/// Stands for a range that exceeds an `i64`. No memory covers it.
const EVERYTHING: Range<i64> = i64::MIN..i64::MAX;

fn stream(runs: usize, at: i64, run: i64) -> Option<Range<i64>> {
    Some(at..(runs as i64).checked_mul(run)?.checked_add(at)?)
}

#[cfg(test)]
mod tests;
