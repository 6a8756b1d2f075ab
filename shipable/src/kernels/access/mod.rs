//! Loads and stores of memory that others may write meanwhile.
//!
//! Peers write a window while its owner reads it. Programs do both by safe calls, so neither may be
//! undefined behaviour. In Rust's model, a plain access races with a concurrent store, and so does
//! a volatile one. The kernels access all memory through this module, which has no such accesses:
//!
//! - `x86` has them in `asm!`. For the compiler, a block of `asm!` is a foreign function: it may do
//!   whatever Rust code could do with the same memory. Each block of `x86` does what relaxed atomic
//!   accesses to its bytes would do, one after the other in some order: these processors load and
//!   store each byte whole, once, and only where the instruction says.
//! - `portable` has relaxed atomics, as wide as the address is aligned. It serves other machines,
//!   and the sanitizers on every machine, since they don't see the accesses of `asm!` (`--cfg
//!   sanitized`).
//! - Long runs are copied by memmove of the C library, which is machine code as well. It is called
//!   through a pointer that the compiler can't trace, so that it is no known function with plain
//!   accesses, but a foreign one.
//!
//! Accesses order nothing. The calls that synchronise windows do that.
#![allow(unsafe_code)]

#[cfg(any(sanitized, not(any(target_arch = "x86", target_arch = "x86_64"))))]
mod portable;
#[cfg(all(not(sanitized), any(target_arch = "x86", target_arch = "x86_64")))]
mod x86;

#[cfg(any(sanitized, not(any(target_arch = "x86", target_arch = "x86_64"))))]
use portable as machine;
#[cfg(all(not(sanitized), any(target_arch = "x86", target_arch = "x86_64")))]
use x86 as machine;

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
pub(super) use machine::Avx2;
#[rustversion::since(1.89)]
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
pub(super) use machine::Avx512;
pub(super) use machine::Baseline;

/// An instruction set, by the registers that it loads and stores.
///
/// All functions need memory at the pointer that is readable or writable, of the length of the
/// value, and a processor with the instruction set. No access needs alignment.
pub(super) trait Set {
    /// The widest register.
    type Wide: Copy;

    /// Copies exactly `W` bytes: 1, 2, 4, 8 or 16, or one, two or four of the widest registers.
    ///
    /// # Safety
    ///
    /// See [`Set`].
    unsafe fn copy<const W: usize>(from: *const u8, to: *mut u8);

    /// Copies exactly `W` bytes between displacements from the pointers.
    ///
    /// # Safety
    ///
    /// See [`Set`].
    #[inline]
    unsafe fn copy_at<const W: usize>(from: *const u8, from_at: isize, to: *mut u8, to_at: isize) {
        // SAFETY: the caller's promise: each number has W bytes.
        unsafe {
            match W {
                1 => u8::load_at(from, from_at).store_at(to, to_at),
                2 => u16::load_at(from, from_at).store_at(to, to_at),
                4 => u32::load_at(from, from_at).store_at(to, to_at),
                8 => u64::load_at(from, from_at).store_at(to, to_at),
                _ => Self::copy::<W>(from.wrapping_offset(from_at), to.wrapping_offset(to_at)),
            }
        }
    }

    /// Loads one of the widest registers.
    ///
    /// # Safety
    ///
    /// See [`Set`].
    unsafe fn load(from: *const u8) -> Self::Wide;

    /// Stores one of the widest registers.
    ///
    /// # Safety
    ///
    /// See [`Set`].
    unsafe fn store(to: *mut u8, wide: Self::Wide);

    /// Loads four of the widest registers.
    ///
    /// # Safety
    ///
    /// See [`Set`].
    unsafe fn load_four(from: *const u8) -> [Self::Wide; 4];

    /// Stores four of the widest registers.
    ///
    /// # Safety
    ///
    /// See [`Set`].
    unsafe fn store_four(to: *mut u8, wide: [Self::Wide; 4]);
}

/// A number that is loaded and stored at any address.
pub(super) trait Number: Copy {
    /// # Safety
    ///
    /// The number's bytes must be readable.
    unsafe fn load(from: *const u8) -> Self;

    /// # Safety
    ///
    /// The number's bytes must be writable.
    unsafe fn store(self, to: *mut u8);

    /// # Safety
    ///
    /// The number's bytes must be readable from `from` plus `at` on.
    #[inline]
    unsafe fn load_at(from: *const u8, at: isize) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Self::load(from.wrapping_offset(at)) }
    }

    /// # Safety
    ///
    /// The number's bytes must be writable from `to` plus `at` on.
    #[inline]
    unsafe fn store_at(self, to: *mut u8, at: isize) {
        // SAFETY: the caller's promise.
        unsafe { self.store(to.wrapping_offset(at)) }
    }
}

macro_rules! numbers {
    ($($number:ty = $load:ident $store:ident $load_at:ident $store_at:ident
        $value:ident: $to_bits:expr, $from_bits:expr;)*) => {
        $(impl Number for $number {
            #[inline]
            unsafe fn load(from: *const u8) -> Self {
                // SAFETY: the caller's promise.
                let $value = unsafe { machine::$load(from) };
                $from_bits
            }

            #[inline]
            unsafe fn store(self, to: *mut u8) {
                let $value = self;
                // SAFETY: the caller's promise.
                unsafe { machine::$store(to, $to_bits) }
            }

            #[cfg(all(target_arch = "x86_64", not(sanitized)))]
            #[inline]
            unsafe fn load_at(from: *const u8, at: isize) -> Self {
                // SAFETY: the caller's promise.
                let $value = unsafe { machine::$load_at(from, at) };
                $from_bits
            }

            #[cfg(all(target_arch = "x86_64", not(sanitized)))]
            #[inline]
            unsafe fn store_at(self, to: *mut u8, at: isize) {
                let $value = self;
                // SAFETY: the caller's promise.
                unsafe { machine::$store_at(to, at, $to_bits) }
            }
        })*
    };
}

numbers! {
    u8 = load_u8 store_u8 load_u8_at store_u8_at value: value, value;
    u16 = load_u16 store_u16 load_u16_at store_u16_at value: value, value;
    u32 = load_u32 store_u32 load_u32_at store_u32_at value: value, value;
    u64 = load_u64 store_u64 load_u64_at store_u64_at value: value, value;
    i8 = load_u8 store_u8 load_u8_at store_u8_at value: value as u8, value as i8;
    i16 = load_u16 store_u16 load_u16_at store_u16_at value: value as u16, value as i16;
    i32 = load_u32 store_u32 load_u32_at store_u32_at value: value as u32, value as i32;
    i64 = load_u64 store_u64 load_u64_at store_u64_at value: value as u64, value as i64;
    f32 = load_u32 store_u32 load_u32_at store_u32_at
        value: value.to_bits(), f32::from_bits(value);
    f64 = load_u64 store_u64 load_u64_at store_u64_at
        value: value.to_bits(), f64::from_bits(value);
}

impl Number for u128 {
    #[inline]
    unsafe fn load(from: *const u8) -> u128 {
        // SAFETY: the caller's promise, for each half.
        let halves = unsafe { [machine::load_u64(from), machine::load_u64(from.add(8))] };
        let [first, second] = halves.map(u128::from);
        if cfg!(target_endian = "little") { second << 64 | first } else { first << 64 | second }
    }

    #[inline]
    unsafe fn store(self, to: *mut u8) {
        let halves = [(self >> 64) as u64, self as u64];
        let [second, first] =
            if cfg!(target_endian = "little") { halves } else { [halves[1], halves[0]] };
        // SAFETY: the caller's promise, for each half.
        unsafe {
            machine::store_u64(to, first);
            machine::store_u64(to.add(8), second);
        }
    }
}

impl Number for i128 {
    #[inline]
    unsafe fn load(from: *const u8) -> i128 {
        // SAFETY: the caller's promise.
        unsafe { u128::load(from) as i128 }
    }

    #[inline]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { (self as u128).store(to) }
    }
}

/// Copies any number of bytes.
///
/// # Safety
///
/// `len` bytes must be readable from `from` and writable from `to`.
#[inline]
pub(super) unsafe fn copy_any(from: *const u8, to: *mut u8, len: usize) {
    #[cfg(sanitized)]
    // SAFETY: the caller's promise.
    unsafe {
        portable::copy(from, to, len);
    }
    #[cfg(not(sanitized))]
    {
        type Memmove = unsafe extern "C" fn(*mut u8, *const u8, usize) -> *mut u8;
        unsafe extern "C" {
            fn memmove(to: *mut u8, from: *const u8, len: usize) -> *mut u8;
        }
        let foreign: Memmove = std::hint::black_box(memmove);
        // SAFETY: the caller's promise. The declaration is that of the C library.
        unsafe { foreign(to, from, len) };
    }
}
