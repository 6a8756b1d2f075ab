//! Accesses by relaxed atomics, for any machine.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86")]
use std::arch::x86 as arch;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64 as arch;
use std::mem::MaybeUninit;
#[cfg(target_has_atomic = "64")]
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32};

use super::Set;

/// The set of every machine. Its widest registers have 8 bytes.
pub(in crate::kernels) struct Baseline;

/// Registers of 32 bytes, for intrinsics. The processor must have AVX2.
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
pub(in crate::kernels) struct Avx2;

/// Registers of 64 bytes, for intrinsics. The processor must have AVX-512F, BW and VL.
#[rustversion::since(1.89)]
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
pub(in crate::kernels) struct Avx512;

/// Makes the functions for a number: one access if the address is aligned and the machine `has` one
/// of this width, otherwise two of its halves.
macro_rules! number {
    (#[$has:meta] $load:ident $store:ident: $number:ty, $atomic:ty, $load_half:ident $store_half:ident $half:ty) => {
        /// # Safety
        ///
        /// The number's bytes must be readable.
        #[inline]
        pub(in crate::kernels) unsafe fn $load(from: *const u8) -> $number {
            const HALF: usize = size_of::<$half>();
            #[$has]
            {
                if from.addr() % size_of::<$number>() == 0 {
                    // SAFETY: the caller's promise. The address is aligned. Memory that is only
                    // readable is only loaded, which no machine does by a store at this width.
                    return unsafe { <$atomic>::from_ptr(from.cast_mut().cast()) }.load(Relaxed);
                }
            }
            // SAFETY: the caller's promise, for each half.
            let halves = unsafe { [$load_half(from), $load_half(from.add(HALF))] };
            let [first, second] = halves.map(<$number>::from);
            match cfg!(target_endian = "little") {
                true => second << (8 * HALF) | first,
                false => first << (8 * HALF) | second,
            }
        }

        /// # Safety
        ///
        /// The number's bytes must be writable.
        #[inline]
        pub(in crate::kernels) unsafe fn $store(to: *mut u8, value: $number) {
            const HALF: usize = size_of::<$half>();
            #[$has]
            {
                if to.addr() % size_of::<$number>() == 0 {
                    // SAFETY: the caller's promise. The address is aligned.
                    return unsafe { <$atomic>::from_ptr(to.cast()) }.store(value, Relaxed);
                }
            }
            let (low, high) = (value as $half, (value >> (8 * HALF)) as $half);
            let (first, second) =
                if cfg!(target_endian = "little") { (low, high) } else { (high, low) };
            // SAFETY: the caller's promise, for each half.
            unsafe {
                $store_half(to, first);
                $store_half(to.add(HALF), second);
            }
        }
    };
}

number!(#[cfg(target_has_atomic = "16")] load_u16 store_u16: u16, AtomicU16, load_u8 store_u8 u8);
number!(#[cfg(target_has_atomic = "32")] load_u32 store_u32: u32, AtomicU32, load_u16 store_u16 u16);
number!(#[cfg(target_has_atomic = "64")] load_u64 store_u64: u64, AtomicU64, load_u32 store_u32 u32);

/// # Safety
///
/// The byte must be readable.
#[inline]
pub(in crate::kernels) unsafe fn load_u8(from: *const u8) -> u8 {
    // SAFETY: the caller's promise. Memory that is only readable is only loaded.
    unsafe { AtomicU8::from_ptr(from.cast_mut()) }.load(Relaxed)
}

/// # Safety
///
/// The byte must be writable.
#[inline]
pub(in crate::kernels) unsafe fn store_u8(to: *mut u8, value: u8) {
    // SAFETY: the caller's promise.
    unsafe { AtomicU8::from_ptr(to) }.store(value, Relaxed);
}

/// Loads a value without padding, of which every bit pattern is one, in words and bytes.
///
/// # Safety
///
/// Its bytes must be readable.
#[inline]
unsafe fn load<T: Copy>(from: *const u8) -> T {
    let mut value = MaybeUninit::<T>::uninit();
    // SAFETY: the caller's promise. The copy initialises all bytes of the value.
    unsafe {
        copy(from, value.as_mut_ptr().cast(), size_of::<T>());
        value.assume_init()
    }
}

/// Stores a value without padding, in words and bytes.
///
/// # Safety
///
/// Its bytes must be writable.
#[inline]
unsafe fn store<T: Copy>(to: *mut u8, value: T) {
    // SAFETY: the caller's promise.
    unsafe { copy((&raw const value).cast(), to, size_of::<T>()) }
}

/// Copies any number of bytes.
///
/// # Safety
///
/// `len` bytes must be readable from `from` and writable from `to`.
#[inline]
pub(super) unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    let mut at = 0;
    // SAFETY: the caller's promise, for each word and byte.
    unsafe {
        while at + 8 <= len {
            store_u64(to.add(at), load_u64(from.add(at)));
            at += 8;
        }
        while at < len {
            store_u8(to.add(at), load_u8(from.add(at)));
            at += 1;
        }
    }
}

/// Makes an instruction set of its widest registers.
macro_rules! set {
    ($set:ident: $wide:ty) => {
        impl Set for $set {
            type Wide = $wide;

            #[inline]
            unsafe fn copy<const W: usize>(from: *const u8, to: *mut u8) {
                // SAFETY: the caller's promise.
                unsafe {
                    match W {
                        1 => store_u8(to, load_u8(from)),
                        2 => store_u16(to, load_u16(from)),
                        4 => store_u32(to, load_u32(from)),
                        _ => copy(from, to, W),
                    }
                }
            }

            #[inline]
            unsafe fn load(from: *const u8) -> $wide {
                // SAFETY: the caller's promise. Registers have no padding.
                unsafe { load(from) }
            }

            #[inline]
            unsafe fn store(to: *mut u8, wide: $wide) {
                // SAFETY: the caller's promise. Registers have no padding.
                unsafe { store(to, wide) }
            }

            #[inline]
            unsafe fn load_four(from: *const u8) -> [$wide; 4] {
                // SAFETY: the caller's promise. Registers have no padding.
                unsafe { load(from) }
            }

            #[inline]
            unsafe fn store_four(to: *mut u8, wide: [$wide; 4]) {
                // SAFETY: the caller's promise. Registers have no padding.
                unsafe { store(to, wide) }
            }
        }
    };
}

set!(Baseline: u64);
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
set!(Avx2: arch::__m256i);

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
impl Avx2 {
    /// Loads 16 bytes.
    ///
    /// # Safety
    ///
    /// See [`Set`].
    #[inline]
    pub(in crate::kernels) unsafe fn load_16(from: *const u8, at: isize) -> arch::__m128i {
        // SAFETY: the caller's promise. Registers have no padding.
        unsafe { load(from.wrapping_offset(at)) }
    }

    /// Stores 16 bytes.
    ///
    /// # Safety
    ///
    /// See [`Set`].
    #[inline]
    pub(in crate::kernels) unsafe fn store_16(to: *mut u8, at: isize, value: arch::__m128i) {
        // SAFETY: the caller's promise. Registers have no padding.
        unsafe { store(to.wrapping_offset(at), value) }
    }
}
#[rustversion::since(1.89)]
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
set!(Avx512: arch::__m512i);

#[rustversion::since(1.89)]
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
impl Avx512 {
    /// Copies the bytes whose bits are set in a mask, which are the first ones, between
    /// displacements.
    ///
    /// # Safety
    ///
    /// These bytes must be readable from `from` plus `from_at` on, and writable from `to` plus
    /// `to_at` on.
    #[inline]
    pub(in crate::kernels) unsafe fn copy_16(
        from: *const u8,
        from_at: isize,
        to: *mut u8,
        to_at: isize,
        mask: u32,
    ) {
        let (from, to) = (from.wrapping_offset(from_at), to.wrapping_offset(to_at));
        // SAFETY: the caller's promise.
        unsafe { copy(from, to, mask.trailing_ones() as usize) }
    }

    /// Copies the bytes whose bits are set in a mask, which are the first ones, between
    /// displacements.
    ///
    /// # Safety
    ///
    /// These bytes must be readable from `from` plus `from_at` on, and writable from `to` plus
    /// `to_at` on.
    #[inline]
    pub(in crate::kernels) unsafe fn copy_32(
        from: *const u8,
        from_at: isize,
        to: *mut u8,
        to_at: isize,
        mask: u32,
    ) {
        let (from, to) = (from.wrapping_offset(from_at), to.wrapping_offset(to_at));
        // SAFETY: the caller's promise.
        unsafe { copy(from, to, mask.trailing_ones() as usize) }
    }
}
