//! The loops around a move, and their versions for instruction sets.
#![allow(unsafe_code)]

use super::moves::{Copy, CopyAny, CopyPair, Move, Swap, SwapAny};
use crate::convert::Unit;

/// A grid in a pointer's width.
pub(super) struct Rows {
    pub counts: [usize; 2],
    pub from: [isize; 2],
    pub to: [isize; 2],
    /// Bytes of a run in the source.
    pub run: usize,
}

type GridBody = unsafe fn(&Rows, *const u8, *mut u8);
type TableBody = unsafe fn(&[i64], usize, *const u8, *mut u8);

/// The loops around one move.
///
/// All are unsafe to call: every run that the loop reaches must be readable in the source and writable in the destination,
/// and have a length that the move is for; the instruction set must be this machine's.
#[derive(Debug)]
pub(super) struct Bodies {
    pub grid: GridBody,
    /// From a table's offsets to a packed stream.
    pub gather: TableBody,
    /// From a packed stream to a table's offsets.
    pub scatter: TableBody,
}

/// # Safety
///
/// See [`Bodies`].
#[inline(always)]
unsafe fn grid<M: Move>(rows: &Rows, mut from: *const u8, mut to: *mut u8) {
    for _ in 0..rows.counts[0] {
        let (mut source, mut destination) = (from, to);
        for _ in 0..rows.counts[1] {
            // SAFETY: the caller's promise. Pointers wrap since the step after the last run may leave the memory.
            unsafe { M::run(source, destination, rows.run) };
            source = source.wrapping_offset(rows.from[1]);
            destination = destination.wrapping_offset(rows.to[1]);
        }
        from = from.wrapping_offset(rows.from[0]);
        to = to.wrapping_offset(rows.to[0]);
    }
}

/// # Safety
///
/// See [`Bodies`].
#[inline(always)]
unsafe fn gather<M: Move>(offsets: &[i64], run: usize, from: *const u8, mut to: *mut u8) {
    for &offset in offsets {
        // SAFETY: the caller's promise.
        unsafe { M::run(from.wrapping_offset(offset as isize), to, run) };
        to = to.wrapping_add(run);
    }
}

/// # Safety
///
/// See [`Bodies`].
#[inline(always)]
unsafe fn scatter<M: Move>(offsets: &[i64], run: usize, mut from: *const u8, to: *mut u8) {
    for &offset in offsets {
        // SAFETY: the caller's promise.
        unsafe { M::run(from, to.wrapping_offset(offset as isize), run) };
        from = from.wrapping_add(run);
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
                &Bodies { grid: grid::<M>, gather: gather::<M>, scatter: scatter::<M> }
            }
        }
    };
}

instruction_set!(baseline,);
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
instruction_set!(avx2, target_feature(enable = "avx2"));
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
instruction_set!(avx512, target_feature(enable = "avx512f,avx512bw,avx512vl"));

/// The loops for a move on this machine. The standard library asks the processor once and remembers.
fn best<M: Move>() -> &'static Bodies {
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    {
        if is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vl") {
            return avx512::bodies::<M>();
        }
        if is_x86_feature_detected!("avx2") {
            return avx2::bodies::<M>();
        }
    }
    baseline::bodies::<M>()
}

/// The loops that copy runs of this length.
pub(super) fn copy(run: u64) -> &'static Bodies {
    match run {
        1 => best::<Copy<1>>(),
        2 => best::<Copy<2>>(),
        3 => best::<CopyPair<2>>(),
        4 => best::<Copy<4>>(),
        5..=7 => best::<CopyPair<4>>(),
        8 => best::<Copy<8>>(),
        9..=15 => best::<CopyPair<8>>(),
        16 => best::<Copy<16>>(),
        17..=31 => best::<CopyPair<16>>(),
        32 => best::<Copy<32>>(),
        33..=63 => best::<CopyPair<32>>(),
        64 => best::<Copy<64>>(),
        _ => best::<CopyAny>(),
    }
}

/// The loops that swap runs of this length.
pub(super) fn swap(unit: Unit, run: u64) -> &'static Bodies {
    match (unit, run) {
        (Unit::Two, 2) => best::<Swap<2, 2>>(),
        (Unit::Two, _) => best::<SwapAny<2>>(),
        (Unit::Four, 4) => best::<Swap<4, 4>>(),
        (Unit::Four, _) => best::<SwapAny<4>>(),
        (Unit::Eight, 8) => best::<Swap<8, 8>>(),
        (Unit::Eight, 64) => best::<Swap<8, 64>>(),
        (Unit::Eight, _) => best::<SwapAny<8>>(),
        (Unit::Sixteen, 16) => best::<Swap<16, 16>>(),
        (Unit::Sixteen, _) => best::<SwapAny<16>>(),
    }
}
