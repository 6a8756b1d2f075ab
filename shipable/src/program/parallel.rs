//! Transfers by several threads.
//!
//! A long transfer is divided into parts of its packed stream, between two values. Each part reads
//! and writes bytes of its own, so the result is that of one thread.
//!
//! Under a conversion that can refuse a value, nothing after that value may be written. Parts after
//! the first therefore save what they overwrite, and are undone if a part before them fails.
//!
//! The threads belong to the caller: see [`Pool`].
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::step::copy_part;
use super::{Partial, Program, copy};
use crate::error::{Error, Result};
use crate::memory::{View, ViewMut};

/// Threads that carry out parts of a transfer.
pub trait Pool: Sync {
    /// The number of threads that work at the same time.
    fn threads(&self) -> usize;

    /// Calls `work` once for each part from 0 to `parts - 1`, in any order and at the same time.
    /// Returns when all calls have returned.
    fn run(&self, parts: usize, work: &(dyn Fn(usize) + Sync));
}

#[cfg(feature = "rayon")]
impl Pool for rayon::ThreadPool {
    fn threads(&self) -> usize {
        self.current_num_threads()
    }

    fn run(&self, parts: usize, work: &(dyn Fn(usize) + Sync)) {
        use rayon::iter::{IntoParallelIterator, ParallelIterator};
        self.install(|| (0..parts).into_par_iter().for_each(work));
    }
}

/// The fewest bytes of the stream of a part (docs/tuning.md, "Parts of a transfer").
const LEAST: u64 = 1 << 20;

/// The fewest bytes of the stream of a part that is converted unit by unit.
const LEAST_SLOW: u64 = 16 << 10;

/// The parts for each thread, so that one that is interrupted delays the others by a part only.
const PARTS: u64 = 4;

/// The longest part of the stream that is divided at once, if values can be refused. It bounds the
/// memory that is saved.
const MOST_SAVED: u64 = 64 << 20;

/// The longest reach of memory whose bytes are saved. The gaps in it take addresses, but no memory.
const MOST_REACH: i64 =
    (isize::MAX as i64) >> if cfg!(target_pointer_width = "64") { 24 } else { 6 };

impl Program {
    /// Whether a transfer of `length` bytes of the stream may be divided among threads. The answer
    /// costs next to nothing.
    #[inline]
    pub fn is_divisible(&self, length: u64) -> bool {
        length >= 2 * self.least()
    }

    fn least(&self) -> u64 {
        if self.body.slow { LEAST_SLOW } else { LEAST }
    }

    /// The [`pack`](Program::pack) of the same arguments, by the threads of a pool.
    ///
    /// # Errors
    ///
    /// Those of [`pack`](Program::pack). Bytes of `out` after a refused value keep their values.
    pub fn pack_in(
        &self,
        pool: &dyn Pool,
        count: u64,
        memory: View<'_>,
        position: u64,
        out: &mut [u8],
    ) -> Result<usize> {
        let length = self.part(count, position, out.len() as u64)?;
        let range = position..position + length;
        let Some(parts) = self.parts(pool, count, range).filter(|_| !self.is_run(count)) else {
            return self.pack(count, memory, position, out);
        };
        let reach = self.range(count)?;
        memory.covers(reach.start, reach.end)?;
        let mut rest = &mut out[..length as usize];
        let mut slots = Vec::with_capacity(parts.len());
        for part in &parts {
            let (own, later) = rest.split_at_mut((part.end - part.start) as usize);
            let saved = (self.body.fails && !slots.is_empty()).then(|| own.to_vec());
            slots.push(Mutex::new((own, saved)));
            rest = later;
        }
        let failed = each_part(pool, &parts, |index, part| {
            let mut slot = slots[index].lock().unwrap_or_else(PoisonError::into_inner);
            self.pack(count, memory, part.start, slot.0).map(drop)
        });
        let Some((first, error)) = failed else { return Ok(length as usize) };
        for slot in slots.into_iter().skip(first + 1) {
            if let (own, Some(saved)) = slot.into_inner().unwrap_or_else(PoisonError::into_inner) {
                own.copy_from_slice(&saved);
            }
        }
        Err(error)
    }

    /// The [`unpack`](Program::unpack) of the same arguments, by the threads of a pool.
    ///
    /// # Errors
    ///
    /// Those of [`unpack`](Program::unpack).
    pub fn unpack_in(
        &self,
        pool: &dyn Pool,
        count: u64,
        mut memory: ViewMut<'_>,
        position: u64,
        input: &[u8],
        partial: &mut Partial,
    ) -> Result<()> {
        let range = position..position.saturating_add(input.len() as u64);
        let whole = self.part(count, position, input.len() as u64)? == input.len() as u64;
        let parts = self
            .parts(pool, count, range)
            .filter(|_| whole && !self.is_run(count) && self.has_disjoint_elements(count));
        let Some(parts) = parts else {
            return self.unpack(count, memory, position, input, partial);
        };
        self.written(pool, &parts, count, &mut memory, |part, memory| {
            let [start, end] = [part.start, part.end].map(|at| (at - position) as usize);
            self.unpack(count, memory, part.start, &input[start..end], &mut Partial::default())
        })
    }

    /// The [`mirror`](Program::mirror) of the same arguments, by the threads of a pool.
    ///
    /// # Errors
    ///
    /// Those of [`mirror`](Program::mirror).
    pub fn mirror_in(
        &self,
        pool: &dyn Pool,
        count: u64,
        from: View<'_>,
        mut to: ViewMut<'_>,
    ) -> Result<()> {
        let parts = self.parts(pool, count, 0..self.stream_length(count)?);
        let parts = parts.filter(|_| {
            self.is_all_copy() && !self.is_run(count) && self.has_disjoint_elements(count)
        });
        let Some(parts) = parts else { return self.mirror(count, from, to) };
        let reach = self.range(count)?;
        from.covers(reach.start, reach.end)?;
        self.written(pool, &parts, count, &mut to, |part, mut to| {
            self.mirror_part(count, part, from, &mut to)
        })
    }

    /// Writes the parts of `count` elements. If one fails, undoes those after it.
    fn written(
        &self,
        pool: &dyn Pool,
        parts: &[Range<u64>],
        count: u64,
        memory: &mut ViewMut<'_>,
        write: impl Fn(Range<u64>, ViewMut<'_>) -> Result<()> + Sync,
    ) -> Result<()> {
        let reach = self.range(count)?;
        memory.covers(reach.start, reach.end)?;
        if !self.body.fails {
            let shared = memory.share();
            let failed = each_part(pool, parts, |_, part| {
                // SAFETY: the elements are disjoint, and so are the parts of their stream. So no
                // byte is accessed through two of the views.
                write(part, unsafe { shared.view() })
            });
            return failed.map_or(Ok(()), |(_, error)| Err(error));
        }
        let saved: Vec<Mutex<Option<Saved>>> = parts.iter().map(|_| Mutex::default()).collect();
        let shared = memory.share();
        let failed = each_part(pool, parts, |index, part| {
            // SAFETY: as above.
            let mut own = unsafe { shared.view() };
            if index > 0 {
                let kept = Saved::new(self, count, part.clone(), own.as_view())?;
                *saved[index].lock().unwrap_or_else(PoisonError::into_inner) = Some(kept);
            }
            write(part, own.reborrow())
        });
        let Some((first, error)) = failed else { return Ok(()) };
        for (part, saved) in parts.iter().zip(saved).skip(first + 1) {
            if let Some(saved) = saved.into_inner().unwrap_or_else(PoisonError::into_inner) {
                saved.restore(self, count, part.clone(), memory)?;
            }
        }
        Err(error)
    }

    /// The parts of a range of the stream. `None` if one thread is as fast, or if the range starts
    /// or ends within a value.
    fn parts(&self, pool: &dyn Pool, count: u64, range: Range<u64>) -> Option<Vec<Range<u64>>> {
        let (length, threads) = (range.end.checked_sub(range.start)?, pool.threads() as u64);
        if threads < 2 || !self.is_divisible(length) {
            return None;
        }
        if self.body.fails {
            let reach = self.range(count).ok()?;
            if length > MOST_SAVED || reach.end.checked_sub(reach.start)? > MOST_REACH {
                return None;
            }
        }
        let total = self.stream_length(count).ok()?;
        let is_cut = |position: u64| position < total && self.boundary(position) != position;
        if range.end > total || is_cut(range.start) || is_cut(range.end) {
            return None;
        }
        let number = (length / self.least()).min(threads * PARTS);
        let step = length.div_ceil(number);
        let mut parts = Vec::with_capacity(number as usize);
        let mut start = range.start;
        for index in 1..=number {
            let end = match index == number {
                true => range.end,
                false => self.boundary(range.start + index * step),
            };
            if end > start {
                parts.push(start..end);
                start = end;
            }
        }
        (parts.len() > 1).then_some(parts)
    }

    /// The last position up to this one of the stream at which no value is cut.
    pub(super) fn boundary(&self, position: u64) -> u64 {
        let within = position % self.body.stream;
        position - within + self.body.boundary(within)
    }

    fn is_run(&self, count: u64) -> bool {
        self.contiguous(count).is_some()
    }

    /// Whether no byte belongs to two items, as far as that is known without comparing elements.
    fn has_disjoint_elements(&self, count: u64) -> bool {
        let apart = self.body.span() <= u128::from(self.extent.unsigned_abs());
        (count == 1 || apart) && !self.overlaps(1)
    }
}

/// The [`copy`] of the same arguments, by the threads of a pool.
///
/// # Errors
///
/// Those of [`copy`].
pub fn copy_in(
    pool: &dyn Pool,
    (source, source_count): (&Program, u64),
    from: View<'_>,
    (target, target_count): (&Program, u64),
    mut to: ViewMut<'_>,
) -> Result<()> {
    let length = source.stream_length(source_count)?;
    let fits = length == target.stream_length(target_count)?;
    let parts = target.parts(pool, target_count, 0..length).filter(|parts| {
        let cuts = || parts.iter().skip(1).all(|part| source.boundary(part.start) == part.start);
        let one = std::ptr::eq(source, target) && source.is_all_copy();
        fits && !one && !target.is_run(target_count) && !source.is_run(source_count)
            && target.has_disjoint_elements(target_count)
            // Its conversions would be undone by the target's positions.
            && !source.body.fails
            && cuts()
    });
    let Some(parts) = parts else {
        if fits && std::ptr::eq(source, target) && source.is_all_copy() {
            return target.mirror_in(pool, target_count, from, to);
        }
        // The source may be the stream.
        let start =
            source.contiguous(source_count).filter(|_| fits && !target.is_run(target_count));
        let parts = target.parts(pool, target_count, 0..length);
        let parts = parts.filter(|_| target.has_disjoint_elements(target_count));
        if let Some((start, parts)) = start.zip(parts) {
            return stream_to(pool, &parts, (start, length), from, (target, target_count), to);
        }
        return copy(source, source_count, from, target, target_count, to);
    };
    let read = source.range(source_count)?;
    from.covers(read.start, read.end)?;
    target.written(pool, &parts, target_count, &mut to, |part, to| {
        copy_part((source, source_count), from, (target, target_count), to, part)
    })
}

/// Unpacks a stream that lies in memory from a displacement on.
fn stream_to(
    pool: &dyn Pool,
    parts: &[Range<u64>],
    (start, length): (i64, u64),
    from: View<'_>,
    (target, count): (&Program, u64),
    mut to: ViewMut<'_>,
) -> Result<()> {
    let end = start.checked_add_unsigned(length).ok_or_else(|| Error::overflow("a bound"))?;
    from.covers(start, end)?;
    let stream = from.shifted(start).ok_or_else(|| Error::overflow("a bound"))?;
    target.written(pool, parts, count, &mut to, |part, mut to| {
        let at = i64::try_from(part.start).map_err(|_| Error::overflow("a displacement"))?;
        let input = stream.shifted(at).ok_or_else(|| Error::overflow("a displacement"))?;
        let length = part.end - part.start;
        let partial = &mut Partial::default();
        target
            .unpack_from(count, &mut to, part.start, length, input, partial)
            .map_err(|error| error.explain_in(target, count))
    })
}

/// Carries out all parts. Returns the first part that failed, and its error.
fn each_part(
    pool: &dyn Pool,
    parts: &[Range<u64>],
    work: impl Fn(usize, Range<u64>) -> Result<()> + Sync,
) -> Option<(usize, Error)> {
    let first: Mutex<Option<(usize, Error)>> = Mutex::default();
    pool.run(parts.len(), &|index| {
        if let Err(error) = work(index, parts[index].clone()) {
            let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
            if first.as_ref().is_none_or(|(known, _)| index < *known) {
                *first = Some((index, error));
            }
        }
    });
    first.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// The bytes of a part of the elements, before they were overwritten.
struct Saved {
    bytes: Vec<u8>,
    /// The displacement of the first byte.
    start: i64,
}

impl Saved {
    fn new(program: &Program, count: u64, part: Range<u64>, memory: View<'_>) -> Result<Saved> {
        let stream = program.body.stream;
        let (first, last) = (part.start / stream, (part.end - 1) / stream);
        let reach = program.range(last - first + 1)?;
        // The displacements of all elements fit.
        let start = reach.start.wrapping_add(program.extent.wrapping_mul(first as i64));
        let mut saved = Saved { bytes: vec![0; (reach.end - reach.start) as usize], start };
        let to = ViewMut::new(&mut saved.bytes).shifted(start.wrapping_neg());
        let mut to = to.ok_or_else(|| Error::overflow("a displacement"))?;
        program.mirror_part(count, part, memory, &mut to)?;
        Ok(saved)
    }

    fn restore(
        &self,
        program: &Program,
        count: u64,
        part: Range<u64>,
        memory: &mut ViewMut<'_>,
    ) -> Result<()> {
        let from = View::new(&self.bytes).shifted(self.start.wrapping_neg());
        let from = from.ok_or_else(|| Error::overflow("a displacement"))?;
        program.mirror_part(count, part, from, memory)
    }
}
