//! Moves: the copy or swap of a single run.
//!
//! A move reads and writes by way of [`access`](super::access), without alignment. It makes no
//! reference to shared memory, and a source that overlaps its target isn't undefined behaviour.
#![allow(unsafe_code)]

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
use std::ops::Range;

use super::access::{Number, Set, copy_any};
use crate::convert::Unit;

/// The bytes of a cache line on most machines.
pub(super) const LINE: usize = 64;

/// The bytes within which the processor compares the addresses of loads and stores at first.
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
const PAGE: usize = 4096;

/// A way to move one run.
pub(super) trait Move {
    /// Whether the move contains a loop. Otherwise it is a few instructions.
    const LOOPS: bool = false;

    /// Moves `run` bytes with the registers of `S`.
    ///
    /// # Safety
    ///
    /// `run` bytes must be readable from `from` and writable from `to`. The move must be made for
    /// runs of this length. The processor must have the instruction set `S`.
    unsafe fn run<S: Set>(from: *const u8, to: *mut u8, run: usize);

    /// Moves `run` bytes between displacements from the pointers. For the shortest moves, this
    /// saves the instructions that add them.
    ///
    /// # Safety
    ///
    /// See [`run`](Move::run).
    #[inline(always)]
    unsafe fn run_at<S: Set>(
        from: *const u8,
        from_at: isize,
        to: *mut u8,
        to_at: isize,
        run: usize,
    ) {
        // SAFETY: the caller's promise.
        unsafe { Self::run::<S>(from.wrapping_offset(from_at), to.wrapping_offset(to_at), run) }
    }
}

/// Copies exactly `W` bytes.
pub(super) struct Copy<const W: usize>;

/// Copies `W` to 2 `W` bytes, as two pieces of `W` bytes that may overlap.
pub(super) struct CopyPair<const W: usize>;

/// Copies at least `CHUNK` bytes, `CHUNK` bytes at a time.
pub(super) struct CopyChunks<const CHUNK: usize>;

/// Copies at least 128 bytes. All stores except the first and the last are aligned, so that they
/// touch one cache line each.
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
pub(super) struct CopyLines;

/// Copies any number of bytes, in lines where memcpy may stall.
///
/// For these lengths glibc before 2.39 uses `rep movsb` on processors that declare it fast. Some
/// are slow if source and target differ in their offset within 32 bytes. Those with AVX-512 are
/// slow only if the target begins less than a line further into its page than the source (glibc
/// bug 30994; docs/tuning.md, "Unaligned rep movsb").
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
pub(super) struct CopyLong;

/// The lengths for which the C library may use `rep movsb`: from its lowest threshold to its
/// highest, which is the size of the second-level cache.
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
const STRINGS: Range<usize> = 2 << 10..2 << 20;

/// Copies any number of bytes.
pub(super) struct CopyAny;

/// Reverses the bytes of each unit of `UNIT` bytes, in a run of any number of units.
pub(super) struct Swap<const UNIT: usize>;

/// A move for runs of exactly `W` bytes. The constant length lets the compiler unroll the loop of
/// `M`.
pub(super) struct Fixed<M, const W: usize>(M);

impl<const W: usize> Move for Copy<W> {
    #[inline(always)]
    unsafe fn run<S: Set>(from: *const u8, to: *mut u8, _: usize) {
        // SAFETY: the caller's promise: `run` is W.
        unsafe { S::copy::<W>(from, to) }
    }

    #[inline(always)]
    unsafe fn run_at<S: Set>(from: *const u8, from_at: isize, to: *mut u8, to_at: isize, _: usize) {
        // SAFETY: the caller's promise: `run` is W.
        unsafe { S::copy_at::<W>(from, from_at, to, to_at) }
    }
}

impl<const W: usize> Move for CopyPair<W> {
    #[inline(always)]
    unsafe fn run<S: Set>(from: *const u8, to: *mut u8, run: usize) {
        // SAFETY: the caller's promise: `run` is W to 2 W, so both pieces lie within it.
        unsafe {
            S::copy::<W>(from, to);
            S::copy::<W>(from.add(run - W), to.add(run - W));
        }
    }
}

impl<const CHUNK: usize> Move for CopyChunks<CHUNK> {
    const LOOPS: bool = true;

    #[inline(always)]
    unsafe fn run<S: Set>(from: *const u8, to: *mut u8, run: usize) {
        let last = run - CHUNK;
        // SAFETY: the caller's promise. Chunks start at `last` at most, so they end within the run.
        unsafe {
            let mut at = 0;
            while at < last {
                S::copy::<CHUNK>(from.add(at), to.add(at));
                at += CHUNK;
            }
            S::copy::<CHUNK>(from.add(last), to.add(last));
        }
    }
}

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
impl Move for CopyLines {
    const LOOPS: bool = true;

    #[inline(always)]
    unsafe fn run<S: Set>(from: *const u8, to: *mut u8, run: usize) {
        let last = run - LINE;
        // SAFETY: the caller's promise. Lines start at `last` at most, so they end within the run.
        unsafe {
            S::copy::<LINE>(from, to);
            let mut at = LINE - to.addr() % LINE;
            while at < last {
                S::copy::<LINE>(from.add(at), to.add(at));
                at += LINE;
            }
            S::copy::<LINE>(from.add(last), to.add(last));
        }
    }
}

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
impl Move for CopyLong {
    const LOOPS: bool = true;

    #[inline(always)]
    unsafe fn run<S: Set>(from: *const u8, to: *mut u8, run: usize) {
        let apart = to.addr().wrapping_sub(from.addr());
        let stalls = match size_of::<S::Wide>() {
            LINE => (1..LINE).contains(&(apart % PAGE)),
            _ => apart % 32 != 0,
        };
        // SAFETY: the caller's promise. `CopyLines` gets at least 2 KiB, and it is made for 128 or
        // more.
        unsafe {
            match STRINGS.contains(&run) && stalls {
                true => CopyLines::run::<S>(from, to, run),
                false => CopyAny::run::<S>(from, to, run),
            }
        }
    }
}

impl Move for CopyAny {
    const LOOPS: bool = true;

    #[inline(always)]
    unsafe fn run<S: Set>(from: *const u8, to: *mut u8, run: usize) {
        // SAFETY: the caller's promise.
        unsafe { copy_any(from, to, run) }
    }
}

impl<const UNIT: usize> Move for Swap<UNIT> {
    const LOOPS: bool = true;

    #[inline(always)]
    unsafe fn run<S: Set>(from: *const u8, to: *mut u8, run: usize) {
        for at in (0..run).step_by(UNIT) {
            // SAFETY: the caller's promise. `run` is a multiple of UNIT.
            unsafe { swap_one::<UNIT>(from, at as isize, to, at as isize) };
        }
    }

    #[inline(always)]
    unsafe fn run_at<S: Set>(
        from: *const u8,
        from_at: isize,
        to: *mut u8,
        to_at: isize,
        run: usize,
    ) {
        // SAFETY: the caller's promise.
        unsafe { swap_at::<Self, S, UNIT>(from, from_at, to, to_at, run) }
    }
}

/// Moves one unit between displacements from the pointers, and reverses its bytes.
///
/// # Safety
///
/// `UNIT` bytes must be readable from `from` plus `from_at` on, and writable from `to` plus `to_at`
/// on.
#[inline(always)]
pub(super) unsafe fn swap_one<const UNIT: usize>(
    from: *const u8,
    from_at: isize,
    to: *mut u8,
    to_at: isize,
) {
    // SAFETY: the caller's promise: each integer has UNIT bytes.
    unsafe {
        match const { Unit::of(UNIT) } {
            Unit::Two => u16::load_at(from, from_at).swap_bytes().store_at(to, to_at),
            Unit::Four => u32::load_at(from, from_at).swap_bytes().store_at(to, to_at),
            Unit::Eight => u64::load_at(from, from_at).swap_bytes().store_at(to, to_at),
            Unit::Sixteen => u128::load_at(from, from_at).swap_bytes().store_at(to, to_at),
        }
    }
}

/// Moves a run of units and reverses the bytes of each: the body of `run_at` for `M`.
///
/// # Safety
///
/// See [`Move::run`].
#[inline(always)]
pub(super) unsafe fn swap_at<M: Move, S: Set, const UNIT: usize>(
    from: *const u8,
    from_at: isize,
    to: *mut u8,
    to_at: isize,
    run: usize,
) {
    // SAFETY: the caller's promise.
    unsafe {
        match run == UNIT {
            true => swap_one::<UNIT>(from, from_at, to, to_at),
            false => M::run::<S>(from.wrapping_offset(from_at), to.wrapping_offset(to_at), run),
        }
    }
}

impl<M: Move, const W: usize> Move for Fixed<M, W> {
    #[inline(always)]
    unsafe fn run<S: Set>(from: *const u8, to: *mut u8, _: usize) {
        // SAFETY: the caller's promise: `run` is W.
        unsafe { M::run::<S>(from, to, W) }
    }

    #[inline(always)]
    unsafe fn run_at<S: Set>(from: *const u8, from_at: isize, to: *mut u8, to_at: isize, _: usize) {
        // SAFETY: the caller's promise: `run` is W.
        unsafe { M::run_at::<S>(from, from_at, to, to_at, W) }
    }
}
