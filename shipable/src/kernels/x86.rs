//! Moves for loops that are compiled with AVX2 or AVX-512: swaps by byte shuffles, and copies by
//! masks.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86")]
use std::arch::x86 as arch;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64 as arch;

use arch::{_mm_shuffle_epi8, _mm256_castsi256_si128, _mm256_loadu_si256, _mm256_shuffle_epi8};

use super::access::{Avx2, Set};
use super::moves::{Move, swap_at, swap_one};

/// Reverses the bytes of each unit of `UNIT` bytes, in a run of any number of units. The processor
/// must have AVX2.
pub(super) struct Shuffle<const UNIT: usize>;

impl<const UNIT: usize> Shuffle<UNIT> {
    /// For each byte of a 32-byte register, the index of its source within its 16-byte lane.
    const SOURCES: [u8; 32] = {
        let mut sources = [0; 32];
        let mut i = 0;
        while i < 32 {
            sources[i] = (i % 16 / UNIT * UNIT + UNIT - 1 - i % UNIT) as u8;
            i += 1;
        }
        sources
    };
}

impl<const UNIT: usize> Move for Shuffle<UNIT> {
    const LOOPS: bool = true;

    #[inline(always)]
    unsafe fn run<S: Set>(from: *const u8, to: *mut u8, run: usize) {
        let mut at = 0;
        // SAFETY: the caller's promises. Every access starts at `at` and ends at `run` at most:
        // `run` is a multiple of UNIT, which divides all widths. No access needs alignment.
        unsafe {
            let sources = _mm256_loadu_si256(Self::SOURCES.as_ptr().cast());
            let swap = |bytes| _mm256_shuffle_epi8(bytes, sources);
            while at + 128 <= run {
                let [a, b, c, d] = Avx2::load_four(from.add(at));
                Avx2::store_four(to.add(at), [swap(a), swap(b), swap(c), swap(d)]);
                at += 128;
            }
            while at + 32 <= run {
                Avx2::store(to.add(at), swap(Avx2::load(from.add(at))));
                at += 32;
            }
            if at + 16 <= run {
                let bytes = Avx2::load_16(from, at as isize);
                let bytes = _mm_shuffle_epi8(bytes, _mm256_castsi256_si128(sources));
                Avx2::store_16(to, at as isize, bytes);
                at += 16;
            }
            while at < run {
                swap_one::<UNIT>(from, at as isize, to, at as isize);
                at += UNIT;
            }
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
        if run == 16 {
            // SAFETY: the caller's promise: the run is one register, of whole units.
            unsafe {
                let sources = _mm256_loadu_si256(Self::SOURCES.as_ptr().cast());
                let bytes = Avx2::load_16(from, from_at);
                let bytes = _mm_shuffle_epi8(bytes, _mm256_castsi256_si128(sources));
                return Avx2::store_16(to, to_at, bytes);
            }
        }
        // SAFETY: the caller's promise.
        unsafe { swap_at::<Self, S, UNIT>(from, from_at, to, to_at, run) }
    }
}

#[rustversion::since(1.89)]
use super::access::Avx512;

/// Copies 1 to `MOST` bytes with one masked load and one masked store. `MOST` is 16 or 32. The
/// processor must have AVX-512BW and AVX-512VL.
#[rustversion::since(1.89)]
pub(super) struct Masked<const MOST: usize>;

#[rustversion::since(1.89)]
impl<const MOST: usize> Move for Masked<MOST> {
    #[inline(always)]
    unsafe fn run<S: Set>(from: *const u8, to: *mut u8, run: usize) {
        // SAFETY: the caller's promise.
        unsafe { Self::run_at::<S>(from, 0, to, 0, run) }
    }

    #[inline(always)]
    unsafe fn run_at<S: Set>(
        from: *const u8,
        from_at: isize,
        to: *mut u8,
        to_at: isize,
        run: usize,
    ) {
        const { assert!(MOST == 16 || MOST == 32) }
        let mask = u32::MAX >> (32 - run);
        // SAFETY: the loop that uses this move is compiled and chosen for a processor with these
        // instructions. The bits of the mask stand for the first `run` bytes, which are the
        // caller's promise.
        unsafe {
            match MOST {
                16 => Avx512::copy_16(from, from_at, to, to_at, mask),
                _ => Avx512::copy_32(from, from_at, to, to_at, mask),
            }
        }
    }
}
