//! Accesses in `asm!`, for x86 and x86-64.
#![allow(unsafe_code)]

use std::arch::asm;
#[cfg(target_arch = "x86")]
use std::arch::x86 as arch;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64 as arch;

use super::Set;

/// Registers of 16 bytes.
pub(in crate::kernels) struct Baseline;

/// Registers of 32 bytes. The processor must have AVX2.
pub(in crate::kernels) struct Avx2;

/// Registers of 64 bytes. The processor must have AVX-512F, BW and VL.
#[rustversion::since(1.89)]
pub(in crate::kernels) struct Avx512;

/// Makes a function that loads a register. Its address is a pointer and a constant displacement.
macro_rules! load {
    ($load:ident: $value:ty, $class:ident, $instruction:literal $(, $attribute:meta)?) => {
        /// # Safety
        ///
        /// The bytes of the register must be readable from `from` plus `AT` on.
        $(#[$attribute])?
        #[inline]
        unsafe fn $load<const AT: usize>(from: *const u8) -> $value {
            let value;
            // SAFETY: the caller's promise. The block does what relaxed atomic loads of each byte
            // would do. It changes no memory and no flags.
            unsafe {
                asm!(
                    concat!($instruction, " [{from} + {at}]"),
                    value = out($class) value,
                    from = in(reg) from,
                    at = const AT,
                    options(nostack, preserves_flags, readonly)
                );
            }
            value
        }
    };
}

/// Makes a function that stores a register, at an address as in `load`.
macro_rules! store {
    ($store:ident: $value:ty, $class:ident, $instruction:literal $operand:literal $(, $attribute:meta)?) => {
        /// # Safety
        ///
        /// The bytes of the register must be writable from `to` plus `AT` on.
        $(#[$attribute])?
        #[inline]
        unsafe fn $store<const AT: usize>(to: *mut u8, value: $value) {
            // SAFETY: the caller's promise. The block does what relaxed atomic stores of each byte
            // would do. It changes no other memory and no flags.
            unsafe {
                asm!(
                    concat!($instruction, " [{to} + {at}], ", $operand),
                    value = in($class) value,
                    to = in(reg) to,
                    at = const AT,
                    options(nostack, preserves_flags)
                );
            }
        }
    };
}

/// Makes functions that load and store a number at a pointer and an index, which both are in
/// registers. The other architecture has too few of them.
#[cfg(target_arch = "x86_64")]
macro_rules! indexed {
    ($load:ident $store:ident: $number:ty, $in:literal, $out:literal $operand:literal, $class:ident) => {
        /// # Safety
        ///
        /// The number's bytes must be readable from `from` plus `at` on.
        #[inline(always)]
        pub(super) unsafe fn $load(from: *const u8, at: isize) -> $number {
            let value: u64;
            // SAFETY: the caller's promise. The block does what relaxed atomic loads of each byte
            // would do. It changes no memory and no flags.
            unsafe {
                asm!(
                    concat!($in, " [{from} + {at}]"),
                    value = out(reg) value,
                    from = in(reg) from,
                    at = in(reg) at,
                    options(nostack, preserves_flags, readonly)
                );
            }
            value as $number
        }

        /// # Safety
        ///
        /// The number's bytes must be writable from `to` plus `at` on.
        #[inline(always)]
        pub(super) unsafe fn $store(to: *mut u8, at: isize, value: $number) {
            // SAFETY: the caller's promise. The block does what relaxed atomic stores of each byte
            // would do. It changes no other memory and no flags.
            unsafe {
                asm!(
                    concat!($out, " [{to} + {at}], ", $operand),
                    value = in($class) value,
                    to = in(reg) to,
                    at = in(reg) at,
                    options(nostack, preserves_flags)
                );
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
indexed!(load_u8_at store_u8_at: u8, "movzx {value:e}, byte ptr", "mov byte ptr" "{value}", reg_byte);
#[cfg(target_arch = "x86_64")]
indexed!(load_u16_at store_u16_at: u16, "movzx {value:e}, word ptr", "mov word ptr" "{value:x}", reg);
#[cfg(target_arch = "x86_64")]
indexed!(load_u32_at store_u32_at: u32, "mov {value:e}, dword ptr", "mov dword ptr" "{value:e}", reg);
#[cfg(target_arch = "x86_64")]
indexed!(load_u64_at store_u64_at: u64, "mov {value}, qword ptr", "mov qword ptr" "{value}", reg);

load!(load_byte: u32, reg, "movzx {value:e}, byte ptr");
load!(load_word: u32, reg, "movzx {value:e}, word ptr");
load!(load_double: u32, reg, "mov {value:e}, dword ptr");
#[cfg(target_arch = "x86_64")]
load!(load_quad: u64, reg, "mov {value}, qword ptr");
#[cfg(target_arch = "x86")]
load!(load_quad: u64, xmm_reg, "movq {value}, qword ptr");
load!(load_xmm: arch::__m128i, xmm_reg, "movdqu {value},");

store!(store_byte: u8, reg_byte, "mov byte ptr" "{value}");
store!(store_word: u16, reg, "mov word ptr" "{value:x}");
store!(store_double: u32, reg, "mov dword ptr" "{value:e}");
#[cfg(target_arch = "x86_64")]
store!(store_quad: u64, reg, "mov qword ptr" "{value}");
#[cfg(target_arch = "x86")]
store!(store_quad: u64, xmm_reg, "movq qword ptr" "{value}");
store!(store_xmm: arch::__m128i, xmm_reg, "movdqu" "{value}");

// In code with AVX, shorter registers take its encoding too: with the older one, they wait for the
// upper half of the register.
load!(load_vex: arch::__m128i, xmm_reg, "vmovdqu {value},", target_feature(enable = "avx2"));
load!(load_ymm: arch::__m256i, ymm_reg, "vmovdqu {value},", target_feature(enable = "avx2"));
store!(store_vex: arch::__m128i, xmm_reg, "vmovdqu" "{value}", target_feature(enable = "avx2"));
store!(store_ymm: arch::__m256i, ymm_reg, "vmovdqu" "{value}", target_feature(enable = "avx2"));

/// Makes the functions for a number of up to 8 bytes.
macro_rules! number {
    ($load:ident $store:ident: $number:ty = $load_register:ident $store_register:ident) => {
        /// # Safety
        ///
        /// The number's bytes must be readable.
        #[inline(always)]
        pub(super) unsafe fn $load(from: *const u8) -> $number {
            // SAFETY: the caller's promise.
            unsafe { $load_register::<0>(from) as $number }
        }

        /// # Safety
        ///
        /// The number's bytes must be writable.
        #[inline(always)]
        pub(super) unsafe fn $store(to: *mut u8, value: $number) {
            // SAFETY: the caller's promise.
            unsafe { $store_register::<0>(to, value) }
        }
    };
}

number!(load_u8 store_u8: u8 = load_byte store_byte);
number!(load_u16 store_u16: u16 = load_word store_word);
number!(load_u32 store_u32: u32 = load_double store_double);
number!(load_u64 store_u64: u64 = load_quad store_quad);

/// Makes an instruction set of its widest registers and the functions that access them, and of the
/// functions for registers of 16 bytes.
macro_rules! set {
    ($set:ident: $wide:ty, $bytes:literal, $load:ident $store:ident, $load_16:ident $store_16:ident) => {
        impl Set for $set {
            type Wide = $wide;

            #[inline(always)]
            unsafe fn copy<const W: usize>(from: *const u8, to: *mut u8) {
                const TWO: usize = 2 * $bytes;
                const FOUR: usize = 4 * $bytes;
                const { assert!(W.is_power_of_two() && (W <= 16 || W >= $bytes && W <= FOUR)) }
                // SAFETY: the caller's promise: each arm copies W bytes.
                unsafe {
                    match W {
                        1 => store_u8(to, load_u8(from)),
                        2 => store_u16(to, load_u16(from)),
                        4 => store_u32(to, load_u32(from)),
                        8 => store_u64(to, load_u64(from)),
                        _ if W == $bytes => Self::store(to, Self::load(from)),
                        16 => $store_16::<0>(to, $load_16::<0>(from)),
                        TWO => {
                            let (first, second) = ($load::<0>(from), $load::<$bytes>(from));
                            $store::<0>(to, first);
                            $store::<$bytes>(to, second);
                        }
                        _ => Self::store_four(to, Self::load_four(from)),
                    }
                }
            }

            #[inline(always)]
            unsafe fn load(from: *const u8) -> $wide {
                // SAFETY: the caller's promise.
                unsafe { $load::<0>(from) }
            }

            #[inline(always)]
            unsafe fn store(to: *mut u8, wide: $wide) {
                // SAFETY: the caller's promise.
                unsafe { $store::<0>(to, wide) }
            }

            #[inline(always)]
            unsafe fn load_four(from: *const u8) -> [$wide; 4] {
                // SAFETY: the caller's promise, for each of the four.
                unsafe {
                    [
                        $load::<0>(from),
                        $load::<$bytes>(from),
                        $load::<{ 2 * $bytes }>(from),
                        $load::<{ 3 * $bytes }>(from),
                    ]
                }
            }

            #[inline(always)]
            unsafe fn store_four(to: *mut u8, wide: [$wide; 4]) {
                // SAFETY: the caller's promise, for each of the four.
                unsafe {
                    $store::<0>(to, wide[0]);
                    $store::<$bytes>(to, wide[1]);
                    $store::<{ 2 * $bytes }>(to, wide[2]);
                    $store::<{ 3 * $bytes }>(to, wide[3]);
                }
            }
        }
    };
}

set!(Baseline: arch::__m128i, 16, load_xmm store_xmm, load_xmm store_xmm);
set!(Avx2: arch::__m256i, 32, load_ymm store_ymm, load_vex store_vex);

impl Avx2 {
    /// Loads 16 bytes from a displacement.
    ///
    /// # Safety
    ///
    /// See [`Set`].
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(in crate::kernels) unsafe fn load_16(from: *const u8, at: isize) -> arch::__m128i {
        #[cfg(target_arch = "x86_64")]
        {
            let value;
            // SAFETY: the caller's promise. The block does what relaxed atomic loads of each byte
            // would do. It changes no memory and no flags.
            unsafe {
                asm!(
                    "vmovdqu {value}, [{from} + {at}]",
                    value = out(xmm_reg) value,
                    from = in(reg) from,
                    at = in(reg) at,
                    options(nostack, preserves_flags, readonly)
                );
            }
            value
        }
        #[cfg(target_arch = "x86")]
        // SAFETY: the caller's promise.
        unsafe {
            load_vex::<0>(from.wrapping_offset(at))
        }
    }

    /// Stores 16 bytes at a displacement.
    ///
    /// # Safety
    ///
    /// See [`Set`].
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(in crate::kernels) unsafe fn store_16(to: *mut u8, at: isize, value: arch::__m128i) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the caller's promise. The block does what relaxed atomic stores of each byte
        // would do. It changes no other memory and no flags.
        unsafe {
            asm!(
                "vmovdqu [{to} + {at}], {value}",
                value = in(xmm_reg) value,
                to = in(reg) to,
                at = in(reg) at,
                options(nostack, preserves_flags)
            );
        }
        #[cfg(target_arch = "x86")]
        // SAFETY: the caller's promise.
        unsafe {
            store_vex::<0>(to.wrapping_offset(at), value)
        }
    }
}

#[rustversion::since(1.89)]
mod avx512 {
    use super::*;

    load!(load_zmm: arch::__m512i, zmm_reg, "vmovdqu64 {value},", target_feature(enable = "avx512f"));
    store!(store_zmm: arch::__m512i, zmm_reg, "vmovdqu64" "{value}", target_feature(enable = "avx512f"));
    set!(Avx512: arch::__m512i, 64, load_zmm store_zmm, load_vex store_vex);

    /// Makes a copy of the bytes whose bits are set in a mask.
    macro_rules! masked {
        ($copy:ident: $class:ident) => {
            /// Copies the bytes whose bits are set in a mask, between displacements.
            ///
            /// # Safety
            ///
            /// These bytes must be readable from `from` plus `from_at` on, and writable from `to`
            /// plus `to_at` on. The processor must have the instruction set.
            #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
            #[inline]
            pub(in crate::kernels) unsafe fn $copy(
                from: *const u8,
                from_at: isize,
                to: *mut u8,
                to_at: isize,
                mask: u32,
            ) {
                // SAFETY: the caller's promise. The instructions access only the bytes of the mask,
                // as relaxed atomic loads and stores of them would do.
                #[cfg(target_arch = "x86_64")]
                unsafe {
                    asm!(
                        "vmovdqu8 {run}{{{mask}}}{{z}}, [{from} + {from_at}]",
                        "vmovdqu8 [{to} + {to_at}]{{{mask}}}, {run}",
                        run = out($class) _,
                        mask = in(kreg) mask,
                        from = in(reg) from,
                        from_at = in(reg) from_at,
                        to = in(reg) to,
                        to_at = in(reg) to_at,
                        options(nostack, preserves_flags)
                    );
                }
                // SAFETY: as above.
                #[cfg(target_arch = "x86")]
                unsafe {
                    asm!(
                        "vmovdqu8 {run}{{{mask}}}{{z}}, [{from}]",
                        "vmovdqu8 [{to}]{{{mask}}}, {run}",
                        run = out($class) _,
                        mask = in(kreg) mask,
                        from = in(reg) from.wrapping_offset(from_at),
                        to = in(reg) to.wrapping_offset(to_at),
                        options(nostack, preserves_flags)
                    );
                }
            }
        };
    }

    impl Avx512 {
        masked!(copy_16: xmm_reg);
        masked!(copy_32: ymm_reg);
    }
}
