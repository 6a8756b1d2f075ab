//! Moves: the copy or swap of a single run.
//!
//! A move reads and writes through raw pointers, without alignment. It makes no reference to shared
//! memory, and a source that overlaps its target isn't undefined behaviour.
#![allow(unsafe_code)]

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
use std::ops::Range;
use std::ptr;

use crate::convert::Unit;

/// The bytes of a cache line on most machines.
pub(super) const LINE: usize = 64;

/// A way to move one run.
pub(super) trait Move {
    /// Whether the move contains a loop. Otherwise it is a few instructions.
    const LOOPS: bool = false;

    /// Moves `run` bytes.
    ///
    /// # Safety
    ///
    /// `run` bytes must be readable from `from` and writable from `to`. The move must be made for
    /// runs of this length.
    unsafe fn run(from: *const u8, to: *mut u8, run: usize);
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
/// are slow if source and target differ in their offset within 32 bytes (glibc bug 30994;
/// docs/tuning.md, "Unaligned rep movsb").
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
    unsafe fn run(from: *const u8, to: *mut u8, _: usize) {
        // SAFETY: the caller's promise: `run` is W. With a constant length, this compiles to the
        // fewest loads and stores.
        unsafe { ptr::copy(from, to, W) }
    }
}

impl<const W: usize> Move for CopyPair<W> {
    #[inline(always)]
    unsafe fn run(from: *const u8, to: *mut u8, run: usize) {
        // SAFETY: the caller's promise: `run` is W to 2 W, so both pieces lie within it.
        unsafe {
            ptr::copy(from, to, W);
            ptr::copy(from.add(run - W), to.add(run - W), W);
        }
    }
}

impl<const CHUNK: usize> Move for CopyChunks<CHUNK> {
    const LOOPS: bool = true;

    #[inline(always)]
    unsafe fn run(from: *const u8, to: *mut u8, run: usize) {
        let last = run - CHUNK;
        // SAFETY: the caller's promise. Chunks start at `last` at most, so they end within the run.
        unsafe {
            let mut at = 0;
            while at < last {
                ptr::copy(from.add(at), to.add(at), CHUNK);
                at += CHUNK;
            }
            ptr::copy(from.add(last), to.add(last), CHUNK);
        }
    }
}

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
impl Move for CopyLines {
    const LOOPS: bool = true;

    #[inline(always)]
    unsafe fn run(from: *const u8, to: *mut u8, run: usize) {
        let last = run - LINE;
        // SAFETY: the caller's promise. Lines start at `last` at most, so they end within the run.
        unsafe {
            ptr::copy(from, to, LINE);
            let mut at = LINE - to.addr() % LINE;
            while at < last {
                ptr::copy(from.add(at), to.add(at), LINE);
                at += LINE;
            }
            ptr::copy(from.add(last), to.add(last), LINE);
        }
    }
}

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
impl Move for CopyLong {
    const LOOPS: bool = true;

    #[inline(always)]
    unsafe fn run(from: *const u8, to: *mut u8, run: usize) {
        let apart = to.addr().wrapping_sub(from.addr());
        // SAFETY: the caller's promise. `CopyLines` gets at least 2 KiB, and it is made for 128 or
        // more.
        unsafe {
            match STRINGS.contains(&run) && apart % 32 != 0 {
                true => CopyLines::run(from, to, run),
                false => CopyAny::run(from, to, run),
            }
        }
    }
}

impl Move for CopyAny {
    const LOOPS: bool = true;

    #[inline(always)]
    unsafe fn run(from: *const u8, to: *mut u8, run: usize) {
        // SAFETY: the caller's promise. `copy_nonoverlapping` would be no faster.
        unsafe { ptr::copy(from, to, run) }
    }
}

impl<const UNIT: usize> Move for Swap<UNIT> {
    const LOOPS: bool = true;

    #[inline(always)]
    unsafe fn run(from: *const u8, to: *mut u8, run: usize) {
        for at in (0..run).step_by(UNIT) {
            // SAFETY: the caller's promise. `run` is a multiple of UNIT.
            unsafe { swap_one::<UNIT>(from.add(at), to.add(at)) };
        }
    }
}

/// Moves one unit and reverses its bytes.
///
/// # Safety
///
/// `UNIT` bytes must be readable from `from` and writable from `to`.
#[inline(always)]
pub(super) unsafe fn swap_one<const UNIT: usize>(from: *const u8, to: *mut u8) {
    // SAFETY: the caller's promise: each integer has UNIT bytes.
    unsafe {
        match const { Unit::of(UNIT) } {
            Unit::Two => {
                let unit = from.cast::<u16>().read_unaligned();
                to.cast::<u16>().write_unaligned(unit.swap_bytes());
            }
            Unit::Four => {
                let unit = from.cast::<u32>().read_unaligned();
                to.cast::<u32>().write_unaligned(unit.swap_bytes());
            }
            Unit::Eight => {
                let unit = from.cast::<u64>().read_unaligned();
                to.cast::<u64>().write_unaligned(unit.swap_bytes());
            }
            Unit::Sixteen => {
                let unit = from.cast::<u128>().read_unaligned();
                to.cast::<u128>().write_unaligned(unit.swap_bytes());
            }
        }
    }
}

impl<M: Move, const W: usize> Move for Fixed<M, W> {
    #[inline(always)]
    unsafe fn run(from: *const u8, to: *mut u8, _: usize) {
        // SAFETY: the caller's promise: `run` is W.
        unsafe { M::run(from, to, W) }
    }
}
