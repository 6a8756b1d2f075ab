//! What happens to one run of bytes.
//!
//! Moves read and write through raw pointers only and without alignment, so that no reference to
//! shared memory arises, and overlapping runs are defined.
#![allow(unsafe_code)]

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
use std::ops::Range;
use std::ptr;

use crate::convert::Unit;

/// Bytes of a line of the cache, as most have.
pub(super) const LINE: usize = 64;

/// One way to move a run.
pub(super) trait Move {
    /// Whether it is a loop of its own, and not a few instructions.
    const LOOPS: bool = false;

    /// Moves `run` bytes.
    ///
    /// # Safety
    ///
    /// `run` bytes must be readable from `from` and writable from `to`, and `run` must be one that
    /// this move is for.
    unsafe fn run(from: *const u8, to: *mut u8, run: usize);
}

/// Copies exactly `W` bytes.
pub(super) struct Copy<const W: usize>;

/// Copies from `W` to twice `W` bytes, as two of `W` that may overlap.
pub(super) struct CopyPair<const W: usize>;

/// Copies `CHUNK` bytes or more, as many at a time.
pub(super) struct CopyChunks<const CHUNK: usize>;

/// Copies 128 bytes or more; but for those of the first and the last 64, stores are aligned, so that none touches two lines of the cache.
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
pub(super) struct CopyLines;

/// Copies any number of bytes, in lines where memcpy may stall.
///
/// For these lengths the C library takes `rep movsb` on processors that promise it to be fast, which on a Zen 3 it is where both memories begin at
/// like places of 32 bytes alone: 64 KiB take 1.3 us, 2.2 to an address 40 bytes further into its page than the source in its own, and 22 to one 4, 8 or 16
/// bytes further (glibc 2.36; 2.39 knows, BZ 30994). In lines they take 1.3 anywhere (`cargo bench -p longshore-benches --bench micro --
/// askew`).
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
pub(super) struct CopyLong;

/// Where the C library begins with `rep movsb`, at the least, and where it ends, at the second-level cache's size, at the most.
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
const STRINGS: Range<usize> = 2 << 10..2 << 20;

/// Copies any number of bytes.
pub(super) struct CopyAny;

/// Reverses each unit of `UNIT` bytes in any number of units.
pub(super) struct Swap<const UNIT: usize>;

/// A move of any run, applied to runs of exactly `W` bytes, for which it is then compiled: no loop is left.
pub(super) struct Fixed<M, const W: usize>(M);

impl<const W: usize> Move for Copy<W> {
    #[inline(always)]
    unsafe fn run(from: *const u8, to: *mut u8, _: usize) {
        // SAFETY: the caller's promise, `run` being W. Of constant length, this is as many loads
        // and stores as it takes.
        unsafe { ptr::copy(from, to, W) }
    }
}

impl<const W: usize> Move for CopyPair<W> {
    #[inline(always)]
    unsafe fn run(from: *const u8, to: *mut u8, run: usize) {
        // SAFETY: the caller's promise; `run` is W to 2 W, so that both parts lie within it.
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
        // SAFETY: the caller's promise; chunks start at `last` at most, so they lie within the run.
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
        // SAFETY: the caller's promise; lines start before `last`, so they end within the run.
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
        // SAFETY: the caller's promise; such a run has more than a line.
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
        // SAFETY: the caller's promise. copy_nonoverlapping would be no faster.
        unsafe { ptr::copy(from, to, run) }
    }
}

impl<const UNIT: usize> Move for Swap<UNIT> {
    const LOOPS: bool = true;

    #[inline(always)]
    unsafe fn run(from: *const u8, to: *mut u8, run: usize) {
        for at in (0..run).step_by(UNIT) {
            // SAFETY: the caller's promise; `run` is a multiple of UNIT.
            unsafe { swap_one::<UNIT>(from.add(at), to.add(at)) };
        }
    }
}

/// Moves one unit, reversed.
///
/// # Safety
///
/// `UNIT` bytes must be readable from `from` and writable from `to`.
#[inline(always)]
pub(super) unsafe fn swap_one<const UNIT: usize>(from: *const u8, to: *mut u8) {
    // SAFETY: the caller's promise: the integers are of UNIT bytes.
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
        // SAFETY: the caller's promise, `run` being W.
        unsafe { M::run(from, to, W) }
    }
}
