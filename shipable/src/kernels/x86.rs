//! Moves for loops that are compiled with AVX2 or AVX-512: swaps by byte shuffles, and copies by
//! masks.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86")]
use std::arch::x86 as arch;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64 as arch;

use arch::{
    _mm_loadu_si128, _mm_shuffle_epi8, _mm_storeu_si128, _mm256_castsi256_si128,
    _mm256_loadu_si256, _mm256_shuffle_epi8, _mm256_storeu_si256,
};

use super::moves::{Move, swap_one};

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
    unsafe fn run(from: *const u8, to: *mut u8, run: usize) {
        let mut at = 0;
        // SAFETY: the caller's promises. Every access starts at `at` and ends at `run` at most:
        // `run` is a multiple of UNIT, which divides all widths. No access needs alignment.
        unsafe {
            let sources = _mm256_loadu_si256(Self::SOURCES.as_ptr().cast());
            let swap_32 = |at: usize| {
                let bytes = _mm256_loadu_si256(from.add(at).cast());
                _mm256_storeu_si256(to.add(at).cast(), _mm256_shuffle_epi8(bytes, sources));
            };
            while at + 128 <= run {
                swap_32(at);
                swap_32(at + 32);
                swap_32(at + 64);
                swap_32(at + 96);
                at += 128;
            }
            while at + 32 <= run {
                swap_32(at);
                at += 32;
            }
            if at + 16 <= run {
                let bytes = _mm_loadu_si128(from.add(at).cast());
                let bytes = _mm_shuffle_epi8(bytes, _mm256_castsi256_si128(sources));
                _mm_storeu_si128(to.add(at).cast(), bytes);
                at += 16;
            }
            while at < run {
                swap_one::<UNIT>(from.add(at), to.add(at));
                at += UNIT;
            }
        }
    }
}

/// Copies 1 to `MOST` bytes with one masked load and one masked store. `MOST` is 16 or 32. The
/// processor must have AVX-512BW and AVX-512VL.
#[rustversion::since(1.89)]
pub(super) struct Masked<const MOST: usize>;

#[rustversion::since(1.89)]
impl<const MOST: usize> Move for Masked<MOST> {
    #[inline(always)]
    unsafe fn run(from: *const u8, to: *mut u8, run: usize) {
        use arch::{
            _mm_mask_storeu_epi8, _mm_maskz_loadu_epi8, _mm256_mask_storeu_epi8,
            _mm256_maskz_loadu_epi8,
        };
        const { assert!(MOST == 16 || MOST == 32) }
        let mask = u32::MAX >> (32 - run);
        // SAFETY: the loop that uses this move is compiled and chosen for a processor with these
        // instructions. They access only the bytes whose mask bits are set: the first `run` ones,
        // which are the caller's promise.
        unsafe {
            if MOST == 16 {
                let run = _mm_maskz_loadu_epi8(mask as u16, from.cast());
                _mm_mask_storeu_epi8(to.cast(), mask as u16, run);
            } else {
                let run = _mm256_maskz_loadu_epi8(mask, from.cast());
                _mm256_mask_storeu_epi8(to.cast(), mask, run);
            }
        }
    }
}
