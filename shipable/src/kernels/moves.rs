//! What happens to one run of bytes.
#![allow(unsafe_code)]

use std::ptr;

/// One way to move a run. Functions read and write through raw pointers only, without alignment, so overlapping runs are
/// defined, and no reference to shared memory arises.
pub(super) trait Move {
    /// Moves `run` bytes.
    ///
    /// # Safety
    ///
    /// `run` bytes must be readable from `from` and writable from `to`, and `run` must be one that this move is for.
    unsafe fn run(from: *const u8, to: *mut u8, run: usize);
}

/// Copies exactly `W` bytes.
pub(super) struct Copy<const W: usize>;

/// Copies from `W` to twice `W` bytes, as two of `W` that may overlap.
pub(super) struct CopyPair<const W: usize>;

/// Copies any number of bytes.
pub(super) struct CopyAny;

/// Reverses units of `UNIT` bytes in exactly `W` bytes.
pub(super) struct Swap<const UNIT: usize, const W: usize>;

/// Reverses units of `UNIT` bytes in any number of units.
pub(super) struct SwapAny<const UNIT: usize>;

impl<const W: usize> Move for Copy<W> {
    #[inline(always)]
    unsafe fn run(from: *const u8, to: *mut u8, _: usize) {
        // SAFETY: the caller's promise, `run` being W.
        unsafe { to.cast::<[u8; W]>().write_unaligned(from.cast::<[u8; W]>().read_unaligned()) }
    }
}

impl<const W: usize> Move for CopyPair<W> {
    #[inline(always)]
    unsafe fn run(from: *const u8, to: *mut u8, run: usize) {
        // SAFETY: the caller's promise; `run` is W to 2 W, so that both pairs lie within it.
        unsafe {
            let head = from.cast::<[u8; W]>().read_unaligned();
            let tail = from.add(run - W).cast::<[u8; W]>().read_unaligned();
            to.cast::<[u8; W]>().write_unaligned(head);
            to.add(run - W).cast::<[u8; W]>().write_unaligned(tail);
        }
    }
}

impl Move for CopyAny {
    #[inline(always)]
    unsafe fn run(from: *const u8, to: *mut u8, run: usize) {
        // SAFETY: the caller's promise. Runs of one memory may overlap, hence not copy_nonoverlapping, which is no faster.
        unsafe { ptr::copy(from, to, run) }
    }
}

/// `W` bytes with the units of `UNIT` among them reversed; compiles to shuffles.
#[inline(always)]
fn swapped<const UNIT: usize, const W: usize>(bytes: [u8; W]) -> [u8; W] {
    let mut out = [0; W];
    let mut i = 0;
    while i < W {
        out[i] = bytes[i / UNIT * UNIT + (UNIT - 1 - i % UNIT)];
        i += 1;
    }
    out
}

impl<const UNIT: usize, const W: usize> Move for Swap<UNIT, W> {
    #[inline(always)]
    unsafe fn run(from: *const u8, to: *mut u8, _: usize) {
        // SAFETY: the caller's promise, `run` being W.
        unsafe {
            let bytes = from.cast::<[u8; W]>().read_unaligned();
            to.cast::<[u8; W]>().write_unaligned(swapped::<UNIT, W>(bytes));
        }
    }
}

impl<const UNIT: usize> Move for SwapAny<UNIT> {
    #[inline(always)]
    unsafe fn run(from: *const u8, to: *mut u8, run: usize) {
        const CHUNK: usize = 64;
        let mut at = 0;
        // SAFETY: the caller's promise; `run` is a multiple of UNIT, UNIT divides CHUNK, and `at` plus what is moved
        // stays within `run`.
        unsafe {
            while at + CHUNK <= run {
                Swap::<UNIT, CHUNK>::run(from.add(at), to.add(at), CHUNK);
                at += CHUNK;
            }
            while at < run {
                Swap::<UNIT, UNIT>::run(from.add(at), to.add(at), UNIT);
                at += UNIT;
            }
        }
    }
}
