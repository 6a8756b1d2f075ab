//! The loops around a move, and their versions for instruction sets.
#![allow(unsafe_code)]

use std::hint::black_box;

use super::moves::{Copy, CopyAny, CopyPair, Fixed, Move, Swap};
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
use super::x86::Shuffle;
use crate::convert::Unit;

/// A grid in a pointer's width.
pub(super) struct Rows {
    pub counts: [usize; 2],
    pub from: [isize; 2],
    pub to: [isize; 2],
    /// Bytes of a run in the source.
    pub run: usize,
}

impl Rows {
    /// Where the inner dimension is of one run, the outer takes its place: the loop is in the inner.
    #[inline]
    pub(super) fn new(counts: [u64; 2], from: [i64; 2], to: [i64; 2], run: usize) -> Rows {
        let turned = counts[1] == 1;
        let order = |[outer, inner]: [i64; 2]| {
            if turned { [inner as isize, outer as isize] } else { [outer as isize, inner as isize] }
        };
        // Only runs at one place over and over can be more than a pointer's width counts.
        let [outer, inner] = counts.map(|count| usize::try_from(count).unwrap_or(usize::MAX));
        let counts = if turned { [inner, outer] } else { [outer, inner] };
        Rows { counts, from: order(from), to: order(to), run }
    }
}

type GridBody = unsafe fn(&Rows, *const u8, *mut u8);
type TableBody = unsafe fn(&[i64], usize, *const u8, *mut u8);

/// The loops around one move.
///
/// All are unsafe to call: every run that the loop reaches must be readable in the source and
/// writable in the destination, and have a length that the move is for; the instruction set must be
/// this machine's.
#[derive(Debug)]
pub(super) struct Bodies {
    /// One run.
    pub run: unsafe fn(*const u8, *mut u8, usize),
    /// Two strided dimensions.
    pub grid: GridBody,
    /// From a table's offsets to a packed stream.
    pub gather: TableBody,
    /// From a packed stream to a table's offsets.
    pub scatter: TableBody,
}

/// Strides of the target from which lines are asked for ahead: a few runs a page, which the hardware doesn't see coming. Loads need
/// no help, since the processor has many under way, but stores are carried out in order.
const FAR: usize = 1024;

/// How many runs ahead. On a Zen 5, `longshore bench unpack --type face` (runs of 8 bytes,
/// 1 KiB apart) takes a tenth less with 12 or 32 than with none.
const AHEAD: isize = 12;

/// # Safety
///
/// See [`Bodies`].
#[inline(always)]
unsafe fn grid<M: Move>(rows: &Rows, mut from: *const u8, mut to: *mut u8) {
    let prefetch = rows.run <= 64 && rows.counts[1] >= 64 && rows.to[1].unsigned_abs() >= FAR;
    for _ in 0..rows.counts[0] {
        // SAFETY: the caller's promise. Pointers wrap since the step after the last run may leave
        // the memory.
        unsafe {
            match prefetch {
                true => row::<M, true>(rows, from, to),
                false => row::<M, false>(rows, from, to),
            }
        }
        from = from.wrapping_offset(rows.from[0]);
        to = to.wrapping_offset(rows.to[0]);
    }
}

/// Four runs at a time, placed independently: a chain of additions, like a taken branch, costs a
/// cycle a run, while processors store twice. Left to itself the compiler makes that chain, so it
/// mustn't see that multiples are multiples.
///
/// # Safety
///
/// See [`Bodies`].
#[inline(always)]
unsafe fn row<M: Move, const PREFETCH: bool>(rows: &Rows, mut from: *const u8, mut to: *mut u8) {
    let ([_, from_stride], [_, to_stride], run) = (rows.from, rows.to, rows.run);
    let mut left = rows.counts[1];
    if left >= 4 {
        let multiples = |stride: isize| [2, 3, 4].map(|i| black_box(stride.wrapping_mul(i)));
        let ([from_2, from_3, from_4], [to_2, to_3, to_4]) =
            (multiples(from_stride), multiples(to_stride));
        while left >= 4 {
            if PREFETCH {
                let ahead = to.wrapping_offset(to_stride.wrapping_mul(AHEAD));
                for stride in [0, to_stride, to_2, to_3] {
                    prefetch(ahead.wrapping_offset(stride));
                }
            }
            // SAFETY: the caller's promise.
            unsafe {
                M::run(from, to, run);
                M::run(from.wrapping_offset(from_stride), to.wrapping_offset(to_stride), run);
                M::run(from.wrapping_offset(from_2), to.wrapping_offset(to_2), run);
                M::run(from.wrapping_offset(from_3), to.wrapping_offset(to_3), run);
            }
            from = from.wrapping_offset(from_4);
            to = to.wrapping_offset(to_4);
            left -= 4;
        }
    }
    for _ in 0..left {
        // SAFETY: the caller's promise.
        unsafe { M::run(from, to, run) };
        from = from.wrapping_offset(from_stride);
        to = to.wrapping_offset(to_stride);
    }
}

/// Asks for the cache line at an address, which may be any: nothing is read.
#[inline(always)]
fn prefetch(place: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch of any address does nothing but fill caches.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(place.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

/// # Safety
///
/// See [`Bodies`].
#[inline(always)]
unsafe fn gather<M: Move>(offsets: &[i64], run: usize, from: *const u8, to: *mut u8) {
    for (i, &offset) in offsets.iter().enumerate() {
        // SAFETY: the caller's promise.
        unsafe { M::run(from.wrapping_offset(offset as isize), to.wrapping_add(i * run), run) };
    }
}

/// # Safety
///
/// See [`Bodies`].
#[inline(always)]
unsafe fn scatter<M: Move>(offsets: &[i64], run: usize, from: *const u8, to: *mut u8) {
    for (i, &offset) in offsets.iter().enumerate() {
        // SAFETY: the caller's promise.
        unsafe { M::run(from.wrapping_add(i * run), to.wrapping_offset(offset as isize), run) };
    }
}

/// A module with the loops compiled for one instruction set.
macro_rules! instruction_set {
    ($name:ident, $($attribute:meta)?) => {
        mod $name {
            use super::{Bodies, Move, Rows};

            /// # Safety
            ///
            /// See [`Bodies`].
            $(#[$attribute])?
            unsafe fn run<M: Move>(from: *const u8, to: *mut u8, run: usize) {
                // SAFETY: the caller's promise.
                unsafe { M::run(from, to, run) }
            }

            /// # Safety
            ///
            /// See [`Bodies`].
            $(#[$attribute])?
            unsafe fn grid<M: Move>(rows: &Rows, from: *const u8, to: *mut u8) {
                // SAFETY: the caller's promise.
                unsafe { super::grid::<M>(rows, from, to) }
            }

            /// # Safety
            ///
            /// See [`Bodies`].
            $(#[$attribute])?
            unsafe fn gather<M: Move>(table: &[i64], run: usize, from: *const u8, to: *mut u8) {
                // SAFETY: the caller's promise.
                unsafe { super::gather::<M>(table, run, from, to) }
            }

            /// # Safety
            ///
            /// See [`Bodies`].
            $(#[$attribute])?
            unsafe fn scatter<M: Move>(table: &[i64], run: usize, from: *const u8, to: *mut u8) {
                // SAFETY: the caller's promise.
                unsafe { super::scatter::<M>(table, run, from, to) }
            }

            pub(super) const fn bodies<M: Move>() -> &'static Bodies {
                &Bodies { run: run::<M>, grid: grid::<M>, gather: gather::<M>, scatter: scatter::<M> }
            }
        }
    };
}

instruction_set!(baseline,);
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
instruction_set!(avx2, target_feature(enable = "avx2"));

/// The loops that copy runs of this length.
pub(super) fn copy(run: u64) -> &'static Bodies {
    match run {
        1 => baseline::bodies::<Copy<1>>(),
        2 => baseline::bodies::<Copy<2>>(),
        3 => baseline::bodies::<CopyPair<2>>(),
        4 => baseline::bodies::<Copy<4>>(),
        5..=7 => baseline::bodies::<CopyPair<4>>(),
        8 => baseline::bodies::<Copy<8>>(),
        9..=15 => baseline::bodies::<CopyPair<8>>(),
        16 => baseline::bodies::<Copy<16>>(),
        17..=31 => baseline::bodies::<CopyPair<16>>(),
        _ => long_copy(run),
    }
}

/// The loops that copy runs for which wide vectors help.
fn long_copy(run: u64) -> &'static Bodies {
    macro_rules! choose {
        ($set:ident) => {
            match run {
                32 => $set::bodies::<Copy<32>>(),
                33..=63 => $set::bodies::<CopyPair<32>>(),
                64 => $set::bodies::<Copy<64>>(),
                65..=128 => $set::bodies::<CopyPair<64>>(),
                _ => $set::bodies::<CopyAny>(),
            }
        };
    }
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    if is_x86_feature_detected!("avx2") {
        return choose!(avx2);
    }
    choose!(baseline)
}

/// The loops that swap runs of this length.
pub(super) fn swap(unit: Unit, run: u64) -> &'static Bodies {
    match unit {
        Unit::Two => swap_units::<2>(run),
        Unit::Four => swap_units::<4>(run),
        Unit::Eight => swap_units::<8>(run),
        Unit::Sixteen => swap_units::<16>(run),
    }
}

fn swap_units<const UNIT: usize>(run: u64) -> &'static Bodies {
    macro_rules! choose {
        ($set:ident, $swap:ident) => {
            match run {
                _ if run == UNIT as u64 => $set::bodies::<Fixed<$swap<UNIT>, UNIT>>(),
                4 => $set::bodies::<Fixed<$swap<UNIT>, 4>>(),
                6 => $set::bodies::<Fixed<$swap<UNIT>, 6>>(),
                8 => $set::bodies::<Fixed<$swap<UNIT>, 8>>(),
                12 => $set::bodies::<Fixed<$swap<UNIT>, 12>>(),
                16 => $set::bodies::<Fixed<$swap<UNIT>, 16>>(),
                24 => $set::bodies::<Fixed<$swap<UNIT>, 24>>(),
                32 => $set::bodies::<Fixed<$swap<UNIT>, 32>>(),
                64 => $set::bodies::<Fixed<$swap<UNIT>, 64>>(),
                _ => $set::bodies::<$swap<UNIT>>(),
            }
        };
    }
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    if is_x86_feature_detected!("avx2") {
        return choose!(avx2, Shuffle);
    }
    choose!(baseline, Swap)
}
