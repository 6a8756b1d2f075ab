//! The loops around a move, compiled for several instruction sets, and the choice among them.
#![allow(unsafe_code)]

use std::array;
use std::hint::black_box;
use std::mem::{MaybeUninit, transmute_copy};
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
use std::ops::RangeInclusive;

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
use super::access::Avx2;
use super::access::{Baseline, Number, Set};
use super::moves::{Copy, CopyAny, CopyChunks, CopyPair, Fixed, LINE, Move, Swap};
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
use super::moves::{CopyLines, CopyLong};
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
use super::x86::Shuffle;
use crate::convert::Unit;

/// The bytes of one way of the first-level cache, a page on most machines.
const PAGE: usize = 4096;
/// The bytes of a small first-level cache.
const FIRST_LEVEL: usize = 32 << 10;

/// A grid of runs, with counts and strides in a pointer's width.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows {
    pub counts: [usize; 2],
    pub from: [isize; 2],
    pub to: [isize; 2],
    /// The bytes of a run in the source.
    pub run: usize,
}

impl Rows {
    /// If the inner dimension has one run, the dimensions are exchanged: only the inner loop is
    /// unrolled.
    #[inline]
    pub(super) fn new(counts: [u64; 2], from: [i64; 2], to: [i64; 2], run: usize) -> Rows {
        let turned = counts[1] == 1;
        let order = |[outer, inner]: [i64; 2]| {
            if turned { [inner as isize, outer as isize] } else { [outer as isize, inner as isize] }
        };
        // Only a count whose stride is 0 can exceed a pointer's width.
        let [outer, inner] = counts.map(|count| usize::try_from(count).unwrap_or(usize::MAX));
        let counts = if turned { [inner, outer] } else { [outer, inner] };
        Rows { counts, from: order(from), to: order(to), run }
    }

    /// Whether masked moves are faster (docs/tuning.md, "Sparse runs").
    ///
    /// On one side at least, each run has a cache line of its own. The lines exceed a first-level
    /// cache but fit a second-level one.
    #[inline]
    fn are_sparse(&self) -> bool {
        const APART: usize = 128;
        let apart = self.from[1].unsigned_abs().max(self.to[1].unsigned_abs());
        let runs = self.counts[0].saturating_mul(self.counts[1]);
        apart >= APART && (1024..=8192).contains(&runs)
    }

    /// Whether the grid is a transpose that loses cache lines (docs/tuning.md, "Transposes").
    ///
    /// Adjacent runs of the outer dimension then share a line on one side, and the runs between
    /// them evict it from a first-level cache.
    ///
    /// The target's runs must be disjoint, since the order of the stores changes.
    #[inline]
    pub(super) fn share_lines(&self) -> bool {
        let ([rows, columns], run) = (self.counts, self.run);
        let apart = |strides: [isize; 2]| strides.map(isize::unsigned_abs);
        let lost = |[outer, inner]: [usize; 2]| {
            // The larger the power of two in the stride, the fewer sets of the cache the lines fall
            // into. At a page's stride they all compete for one set.
            let places = 1 << inner.trailing_zeros().clamp(LINE.ilog2(), PAGE.ilog2());
            outer < LINE && inner >= LINE && columns.saturating_mul(places) > FIRST_LEVEL
        };
        let within = |count: usize, stride: usize, other: usize| {
            stride >= run && other >= stride.saturating_mul(count)
        };
        let (from, to) = (apart(self.from), apart(self.to));
        let [outer, inner] = to;
        rows > 1
            && run < LINE
            && (lost(from) || lost(to))
            && (within(columns, inner, outer) || within(rows, outer, inner))
    }
}

pub(super) type GridLoop = unsafe fn(&Rows, *const u8, *mut u8);
type TableLoop = unsafe fn(&[i64], usize, *const u8, *mut u8);

/// The loops around one move.
///
/// All are unsafe to call. Every run that a loop reaches must be readable in the source and
/// writable in the target. The move must be made for the length of a run. The processor must have
/// the loop's instruction set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loops {
    /// One run.
    pub run: unsafe fn(*const u8, *mut u8, usize),
    /// Two strided dimensions.
    grid: GridLoop,
    /// Two strided dimensions, for sparse runs: see `Rows::are_sparse`.
    sparse: GridLoop,
    /// Two strided dimensions, for transposes: see `Rows::share_lines`.
    tiled: GridLoop,
    /// From a table's offsets to a packed stream.
    pub gather: TableLoop,
    /// From a packed stream to a table's offsets.
    pub scatter: TableLoop,
    /// From a table's offsets to the same offsets.
    pub mirror: TableLoop,
}

impl Loops {
    /// The loop for this grid.
    #[inline]
    pub(super) fn grid(&self, rows: &Rows) -> GridLoop {
        if rows.share_lines() {
            self.tiled
        } else if rows.are_sparse() {
            self.sparse
        } else {
            self.grid
        }
    }
}

/// # Safety
///
/// See [`Loops`].
#[inline(always)]
unsafe fn grid<M: Move, S: Set>(rows: &Rows, mut from: *const u8, mut to: *mut u8) {
    for _ in 0..rows.counts[0] {
        // SAFETY: the caller's promise. Pointers wrap, because the step after the last run may
        // leave the memory.
        unsafe { row::<M, S>(rows, from, to) };
        from = from.wrapping_offset(rows.from[0]);
        to = to.wrapping_offset(rows.to[0]);
    }
}

/// The columns of a strip. A page apart, their lines fill one set of a first-level cache of eight
/// ways.
const COLUMNS: usize = 8;

/// The offsets of a strip's columns. A separate function, so that it isn't instantiated for every
/// move.
fn column_offsets(rows: &Rows) -> [[isize; 2]; COLUMNS] {
    array::from_fn(|i| [rows.from[1], rows.to[1]].map(|stride| stride.wrapping_mul(i as isize)))
}

/// A grid in strips of some columns. All rows of a strip are moved before the next strip, so that a
/// cache line is used up before it is evicted. The loop `grid` moves the columns that don't fill a
/// strip.
///
/// # Safety
///
/// See [`Loops`].
#[inline(always)]
unsafe fn tiled<M: Move, S: Set>(
    rows: &Rows,
    mut from: *const u8,
    mut to: *mut u8,
    grid: GridLoop,
) {
    let ([outer, inner], run) = (rows.counts, rows.run);
    let at = column_offsets(rows);
    for _ in 0..inner / COLUMNS {
        let (mut row_from, mut row_to) = (from, to);
        for _ in 0..outer {
            for [from_at, to_at] in at {
                // SAFETY: the caller's promise. Pointers wrap as in `grid`.
                unsafe {
                    M::run_at::<S>(row_from, from_at, row_to, to_at, run);
                }
            }
            row_from = row_from.wrapping_offset(rows.from[0]);
            row_to = row_to.wrapping_offset(rows.to[0]);
        }
        from = from.wrapping_offset(rows.from[1].wrapping_mul(COLUMNS as isize));
        to = to.wrapping_offset(rows.to[1].wrapping_mul(COLUMNS as isize));
    }
    let rest = Rows { counts: [outer, inner % COLUMNS], ..*rows };
    // SAFETY: the caller's promise, for the remaining columns.
    unsafe { grid(&rest, from, to) }
}

#[inline(always)]
fn multiples(stride: isize) -> [isize; 3] {
    [2, 3, 4].map(|i| black_box(stride.wrapping_mul(i)))
}

/// One row, four runs at a time.
///
/// The addresses of the four are independent. A chain of additions costs a cycle for each run, as a
/// taken branch does, while processors store twice in a cycle. The compiler would form that chain
/// if it saw that the strides are multiples of one another. [`multiples`] hides that.
///
/// Moves that contain a loop go one at a time. Processors predict loads by the address of the
/// instruction. With four copies of the loop, each would see only every fourth run (docs/tuning.md,
/// "Unrolled loops").
///
/// # Safety
///
/// See [`Loops`].
#[inline(always)]
unsafe fn row<M: Move, S: Set>(rows: &Rows, mut from: *const u8, mut to: *mut u8) {
    let ([_, from_stride], [_, to_stride], run) = (rows.from, rows.to, rows.run);
    let mut left = rows.counts[1];
    if left >= 4 && !M::LOOPS {
        let ([from_2, from_3, from_4], [to_2, to_3, to_4]) =
            (multiples(from_stride), multiples(to_stride));
        while left >= 4 {
            // SAFETY: the caller's promise.
            unsafe {
                M::run::<S>(from, to, run);
                M::run_at::<S>(from, from_stride, to, to_stride, run);
                M::run_at::<S>(from, from_2, to, to_2, run);
                M::run_at::<S>(from, from_3, to, to_3, run);
            }
            from = from.wrapping_offset(from_4);
            to = to.wrapping_offset(to_4);
            left -= 4;
        }
    }
    for _ in 0..left {
        // SAFETY: the caller's promise.
        unsafe { M::run::<S>(from, to, run) };
        from = from.wrapping_offset(from_stride);
        to = to.wrapping_offset(to_stride);
    }
}

/// # Safety
///
/// See [`Loops`].
#[inline(always)]
unsafe fn gather<M: Move, S: Set>(offsets: &[i64], run: usize, from: *const u8, to: *mut u8) {
    for (i, &offset) in offsets.iter().enumerate() {
        // SAFETY: the caller's promise.
        unsafe { M::run_at::<S>(from, offset as isize, to, (i * run) as isize, run) };
    }
}

/// # Safety
///
/// See [`Loops`].
#[inline(always)]
unsafe fn scatter<M: Move, S: Set>(offsets: &[i64], run: usize, from: *const u8, to: *mut u8) {
    for (i, &offset) in offsets.iter().enumerate() {
        // SAFETY: the caller's promise.
        unsafe { M::run_at::<S>(from, (i * run) as isize, to, offset as isize, run) };
    }
}

/// # Safety
///
/// See [`Loops`].
#[inline(always)]
unsafe fn mirror<M: Move, S: Set>(offsets: &[i64], run: usize, from: *const u8, to: *mut u8) {
    for &offset in offsets {
        let offset = offset as isize;
        // SAFETY: the caller's promise.
        unsafe { M::run_at::<S>(from, offset, to, offset, run) };
    }
}

/// Makes a module with the loops compiled for one instruction set.
macro_rules! instruction_set {
    ($name:ident: $set:ident $(, $attribute:meta)?) => {
        mod $name {
            use super::{Loops, Move, Rows};

            /// # Safety
            ///
            /// See [`Loops`].
            $(#[$attribute])?
            pub(super) unsafe fn run<M: Move>(from: *const u8, to: *mut u8, run: usize) {
                // SAFETY: the caller's promise.
                unsafe { M::run::<super::$set>(from, to, run) }
            }

            /// # Safety
            ///
            /// See [`Loops`].
            $(#[$attribute])?
            pub(super) unsafe fn grid<M: Move>(rows: &Rows, from: *const u8, to: *mut u8) {
                // SAFETY: the caller's promise.
                unsafe { super::grid::<M, super::$set>(rows, from, to) }
            }

            /// # Safety
            ///
            /// See [`Loops`].
            $(#[$attribute])?
            unsafe fn tiled<M: Move>(rows: &Rows, from: *const u8, to: *mut u8) {
                // SAFETY: the caller's promise.
                unsafe { super::tiled::<M, super::$set>(rows, from, to, grid::<M>) }
            }

            /// # Safety
            ///
            /// See [`Loops`].
            $(#[$attribute])?
            unsafe fn gather<M: Move>(table: &[i64], run: usize, from: *const u8, to: *mut u8) {
                // SAFETY: the caller's promise.
                unsafe { super::gather::<M, super::$set>(table, run, from, to) }
            }

            /// # Safety
            ///
            /// See [`Loops`].
            $(#[$attribute])?
            unsafe fn scatter<M: Move>(table: &[i64], run: usize, from: *const u8, to: *mut u8) {
                // SAFETY: the caller's promise.
                unsafe { super::scatter::<M, super::$set>(table, run, from, to) }
            }

            /// # Safety
            ///
            /// See [`Loops`].
            $(#[$attribute])?
            unsafe fn mirror<M: Move>(table: &[i64], run: usize, from: *const u8, to: *mut u8) {
                // SAFETY: the caller's promise.
                unsafe { super::mirror::<M, super::$set>(table, run, from, to) }
            }

            pub(super) const fn loops<M: Move>() -> &'static Loops {
                &Loops {
                    run: run::<M>,
                    grid: grid::<M>,
                    sparse: grid::<M>,
                    tiled: tiled::<M>,
                    gather: gather::<M>,
                    scatter: scatter::<M>,
                    mirror: mirror::<M>,
                }
            }
        }
    };
}

instruction_set!(baseline: Baseline);
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
instruction_set!(avx2: Avx2, target_feature(enable = "avx2"));
/// Loops with the zmm registers of AVX-512. Each holds a whole cache line.
#[rustversion::since(1.89)]
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
mod zmm {
    use std::sync::LazyLock;

    use super::*;
    use crate::kernels::access::Avx512;
    use crate::kernels::x86::Masked;

    instruction_set!(avx512: Avx512, target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl"));

    /// The loops that copy runs of 1 to `MOST` bytes with one masked load and store each. `None` if
    /// the processor has no masks.
    pub(super) fn masked<const MOST: usize>() -> Option<&'static Loops> {
        has_avx512().then(avx512::loops::<Masked<MOST>>)
    }

    /// The loops of a move of up to 16 bytes, with masked moves for sparse runs only. `None` if the
    /// processor has no masks.
    pub(super) fn sparse<M: Move>() -> Option<&'static Loops> {
        let loops =
            const { &Loops { sparse: avx512::grid::<Masked<16>>, ..*baseline::loops::<M>() } };
        has_avx512().then_some(loops)
    }

    /// The loops that copy runs in aligned lines. `None` if the processor has no such registers.
    pub(super) fn lines() -> Option<&'static Loops> {
        has_avx512().then(avx512::loops::<CopyLines>)
    }

    /// The loops that copy runs that are too long for the other loops. `None` if the processor has
    /// no such registers.
    pub(super) fn long() -> Option<&'static Loops> {
        has_avx512().then(avx512::loops::<CopyLong>)
    }

    /// The longest single run that a loop with registers of 64 bytes copies. For longer runs memcpy
    /// is faster unless both memories are in a first-level cache (docs/tuning.md, "Single runs").
    const LONGEST_ALONE: usize = 4096;

    /// Copies 128 bytes or more. Returns false, and copies nothing, if the processor has no such
    /// registers.
    ///
    /// # Safety
    ///
    /// See [`Loops`].
    #[inline]
    pub(super) unsafe fn copy(from: *const u8, to: *mut u8, len: usize) -> bool {
        static THERE: LazyLock<bool> = LazyLock::new(has_avx512);
        if *THERE {
            // SAFETY: the caller's promise. The processor has AVX-512, which includes AVX2.
            unsafe {
                match len {
                    ..=LONGEST_ALONE => avx512::run::<CopyChunks<128>>(from, to, len),
                    _ => avx512::run::<CopyLong>(from, to, len),
                }
            }
        }
        *THERE
    }
}

/// Compilers before 1.89 can't compile for AVX-512.
#[rustversion::before(1.89)]
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
mod zmm {
    pub(super) fn masked<const MOST: usize>() -> Option<&'static super::Loops> {
        None
    }

    pub(super) fn sparse<M: super::Move>() -> Option<&'static super::Loops> {
        None
    }

    pub(super) fn lines() -> Option<&'static super::Loops> {
        None
    }

    pub(super) fn long() -> Option<&'static super::Loops> {
        None
    }

    pub(super) unsafe fn copy(_: *const u8, _: *mut u8, _: usize) -> bool {
        false
    }
}

/// The loops that copy runs of this length.
pub(super) fn copy(run: u64) -> &'static Loops {
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    if let Some(loops) = masked_copy(run) {
        return loops;
    }
    match run {
        1 => baseline::loops::<Copy<1>>(),
        2 => baseline::loops::<Copy<2>>(),
        3 => baseline::loops::<CopyPair<2>>(),
        4 => baseline::loops::<Copy<4>>(),
        5..=7 => baseline::loops::<CopyPair<4>>(),
        8 => baseline::loops::<Copy<8>>(),
        9..=15 => baseline::loops::<CopyPair<8>>(),
        16 => baseline::loops::<Copy<16>>(),
        17..=31 => baseline::loops::<CopyPair<16>>(),
        _ => long_copy(run),
    }
}

/// The loops that copy runs of this length with one masked load and store. They beat two moves that
/// overlap. Runs of 16 bytes gain if they are far apart, and runs of 4 and 8 bytes only if they are
/// sparse (docs/tuning.md, "Masked copies").
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn masked_copy(run: u64) -> Option<&'static Loops> {
    match run {
        3 | 5..=7 | 9..=16 => zmm::masked::<16>(),
        17..=31 => zmm::masked::<32>(),
        4 => zmm::sparse::<Copy<4>>(),
        8 => zmm::sparse::<Copy<8>>(),
        _ => None,
    }
}

/// The longest run that a grid copies in a loop with registers of 32 bytes or less. A register of
/// 64 bytes touches two cache lines unless it is aligned (docs/tuning.md, "Runs of a grid").
const LONGEST: u64 = 1024;

/// The loops that copy runs of this length with aligned stores. `None` for lengths at which
/// unaligned loops or memcpy are faster (docs/tuning.md, "Copies in lines").
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn copy_in_lines(run: u64) -> Option<&'static Loops> {
    match zmm::lines() {
        Some(loops) => (512..=2560).contains(&run).then_some(loops),
        None if is_x86_feature_detected!("avx2") => {
            (512..=4096).contains(&run).then(avx2::loops::<CopyLines>)
        }
        None => None,
    }
}

/// The single runs that are copied in lines on processors with AVX2 but not AVX-512
/// (docs/tuning.md, "Single runs").
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
const LINES_ALONE: RangeInclusive<usize> = 512..=16 << 10;

/// The loops that copy runs of this length, for which wide registers help.
fn long_copy(run: u64) -> &'static Loops {
    macro_rules! choose {
        ($set:ident, $any:ty) => {
            match run {
                32 => $set::loops::<Copy<32>>(),
                33..=63 => $set::loops::<CopyPair<32>>(),
                64 => $set::loops::<Copy<64>>(),
                65..=128 => $set::loops::<CopyPair<64>>(),
                129..=LONGEST => $set::loops::<CopyChunks<64>>(),
                _ => $set::loops::<$any>(),
            }
        };
    }
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    {
        if let Some(loops) = copy_in_lines(run) {
            return loops;
        }
        match zmm::long() {
            Some(loops) if run > LONGEST => return loops,
            _ if is_x86_feature_detected!("avx2") => return choose!(avx2, CopyLong),
            _ => {}
        }
    }
    choose!(baseline, CopyAny)
}

/// Whether the processor has everything that the loops with registers of 64 bytes are compiled for.
#[rustversion::since(1.89)]
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
#[inline]
pub(super) fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
}

/// Copies `len` bytes, like `ptr::copy`, but faster up to some KiB. If the two overlap, the bytes
/// in the overlap are unspecified afterwards.
///
/// # Safety
///
/// `len` bytes must be readable from `from` and writable from `to`.
#[inline]
pub unsafe fn copy_run(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller's promise. Each move is made for the lengths of its arm.
    unsafe {
        match len {
            8 => Copy::<8>::run::<Baseline>(from, to, len),
            1 => Copy::<1>::run::<Baseline>(from, to, len),
            2 => Copy::<2>::run::<Baseline>(from, to, len),
            4..=7 => CopyPair::<4>::run::<Baseline>(from, to, len),
            9..=16 => CopyPair::<8>::run::<Baseline>(from, to, len),
            17..=32 => CopyPair::<16>::run::<Baseline>(from, to, len),
            33..=64 => CopyPair::<32>::run::<Baseline>(from, to, len),
            65..=128 => CopyPair::<64>::run::<Baseline>(from, to, len),
            129.. => copy_long(from, to, len),
            _ => CopyAny::run::<Baseline>(from, to, len),
        }
    }
}

/// Loads a value that others may write meanwhile. A naturally aligned value of up to 8 bytes
/// doesn't tear.
///
/// # Safety
///
/// Its bytes must be readable, and every bit pattern must be a value of the type.
#[inline(always)]
pub unsafe fn load_value<T>(from: *const u8) -> T {
    // SAFETY: the caller's promise: each number has the bytes of the value. `copy_run` initialises
    // all of the value's.
    unsafe {
        match size_of::<T>() {
            1 => transmute_copy(&u8::load(from)),
            2 => transmute_copy(&u16::load(from)),
            4 => transmute_copy(&u32::load(from)),
            8 => transmute_copy(&u64::load(from)),
            len => {
                let mut value = MaybeUninit::<T>::uninit();
                copy_run(from, value.as_mut_ptr().cast(), len);
                value.assume_init()
            }
        }
    }
}

/// # Safety
///
/// See [`copy_run`].
unsafe fn copy_long(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller's promise. Each loop is called only if the processor has its instruction
    // set.
    unsafe {
        #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
        if zmm::copy(from, to, len) {
            return;
        } else if is_x86_feature_detected!("avx2") {
            return match LINES_ALONE.contains(&len) {
                true => avx2::run::<CopyLines>(from, to, len),
                false => avx2::run::<CopyLong>(from, to, len),
            };
        }
        CopyAny::run::<Baseline>(from, to, len);
    }
}

/// The loops that swap runs of this length.
pub(super) fn swap(unit: Unit, run: u64) -> &'static Loops {
    match unit {
        Unit::Two => swap_units::<2>(run),
        Unit::Four => swap_units::<4>(run),
        Unit::Eight => swap_units::<8>(run),
        Unit::Sixteen => swap_units::<16>(run),
    }
}

fn swap_units<const UNIT: usize>(run: u64) -> &'static Loops {
    macro_rules! choose {
        ($set:ident, $swap:ident) => {
            match run {
                _ if run == UNIT as u64 => $set::loops::<Fixed<$swap<UNIT>, UNIT>>(),
                4 => $set::loops::<Fixed<$swap<UNIT>, 4>>(),
                6 => $set::loops::<Fixed<$swap<UNIT>, 6>>(),
                8 => $set::loops::<Fixed<$swap<UNIT>, 8>>(),
                12 => $set::loops::<Fixed<$swap<UNIT>, 12>>(),
                16 => $set::loops::<Fixed<$swap<UNIT>, 16>>(),
                24 => $set::loops::<Fixed<$swap<UNIT>, 24>>(),
                32 => $set::loops::<Fixed<$swap<UNIT>, 32>>(),
                64 => $set::loops::<Fixed<$swap<UNIT>, 64>>(),
                _ => $set::loops::<$swap<UNIT>>(),
            }
        };
    }
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    if is_x86_feature_detected!("avx2") {
        return choose!(avx2, Shuffle);
    }
    choose!(baseline, Swap)
}
