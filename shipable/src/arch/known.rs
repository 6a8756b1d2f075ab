//! The representations of known machines. `ci/check-architectures` verifies these numbers with real
//! compilers.

use super::{Architecture, ByteOrder, FloatFormat, Fortran, StructRule, Width};

const fn w(size: u8, align: u8) -> Width {
    Width { size, align }
}

/// Fortran's default kinds in GNU and most other compilers: INTEGER, REAL and LOGICAL of four
/// bytes, and 1 for `.TRUE.`.
const fn fortran(double_align: u8) -> Fortran {
    Fortran {
        integer: w(4, 4),
        real: w(4, 4),
        double_precision: w(8, double_align),
        logical: w(4, 4),
        truth: 1,
    }
}

impl Architecture {
    /// x86-64 Linux: LP64, x87's long double in 16 bytes.
    pub const X86_64: Architecture = Architecture {
        name: "x86-64",
        order: ByteOrder::Little,
        char: w(1, 1),
        short: w(2, 2),
        int: w(4, 4),
        long: w(8, 8),
        long_long: w(8, 8),
        pointer: w(8, 8),
        wchar: w(4, 4),
        float: w(4, 4),
        double: w(8, 8),
        long_double: w(16, 16),
        long_double_format: FloatFormat::X87,
        bool: w(1, 1),
        fortran: fortran(8),
        quad_align: 16,
        char_signed: true,
        rule: StructRule::Natural,
    };

    /// i686 Linux: ILP32; in structs, long long and double align to 4; long double takes 12 bytes.
    pub const I686: Architecture = Architecture {
        name: "i686",
        long: w(4, 4),
        long_long: w(8, 4),
        pointer: w(4, 4),
        double: w(8, 4),
        long_double: w(12, 4),
        fortran: fortran(4),
        ..Architecture::X86_64
    };

    /// s390x Linux: big-endian LP64, binary128 aligned to 8.
    pub const S390X: Architecture = Architecture {
        name: "s390x",
        order: ByteOrder::Big,
        long_double: w(16, 8),
        long_double_format: FloatFormat::Binary128,
        quad_align: 8,
        char_signed: false,
        ..Architecture::X86_64
    };

    /// aarch64 Linux: LP64, binary128. riscv64 Linux has the same representation.
    pub const AARCH64: Architecture = Architecture {
        name: "aarch64",
        long_double_format: FloatFormat::Binary128,
        char_signed: false,
        ..Architecture::X86_64
    };

    /// aarch64 macOS: LP64, long double is double.
    pub const MACOS: Architecture = Architecture {
        name: "macos",
        long_double: w(8, 8),
        long_double_format: FloatFormat::Binary64,
        ..Architecture::X86_64
    };

    /// ppc64le Linux with IBM's double-double.
    pub const PPC64LE: Architecture = Architecture {
        name: "ppc64le",
        long_double_format: FloatFormat::DoubleDouble,
        char_signed: false,
        ..Architecture::X86_64
    };

    /// ppc64 Linux, big-endian, with IBM's double-double.
    pub const PPC64: Architecture =
        Architecture { name: "ppc64", order: ByteOrder::Big, ..Architecture::PPC64LE };

    /// Windows x86-64: LLP64, wchar_t of 2 bytes, long double is double.
    pub const WIN64: Architecture = Architecture {
        name: "win64",
        long: w(4, 4),
        wchar: w(2, 2),
        long_double: w(8, 8),
        long_double_format: FloatFormat::Binary64,
        ..Architecture::X86_64
    };

    /// armhf Linux: ILP32, long double is double.
    pub const ARMHF: Architecture = Architecture {
        name: "armhf",
        long: w(4, 4),
        pointer: w(4, 4),
        long_double: w(8, 8),
        long_double_format: FloatFormat::Binary64,
        quad_align: 8,
        char_signed: false,
        ..Architecture::X86_64
    };

    /// mips o32 Linux: big-endian ILP32, long double is double.
    pub const MIPS: Architecture = Architecture {
        name: "mips",
        order: ByteOrder::Big,
        char_signed: true,
        ..Architecture::ARMHF
    };

    /// m68k Linux: big-endian ILP32, no alignment above 2, a 96-bit long double.
    pub const M68K: Architecture = Architecture {
        name: "m68k",
        order: ByteOrder::Big,
        char: w(1, 1),
        short: w(2, 2),
        int: w(4, 2),
        long: w(4, 2),
        long_long: w(8, 2),
        pointer: w(4, 2),
        wchar: w(4, 2),
        float: w(4, 2),
        double: w(8, 2),
        long_double: w(12, 2),
        long_double_format: FloatFormat::M68k,
        bool: w(1, 1),
        fortran: Fortran {
            integer: w(4, 2),
            real: w(4, 2),
            double_precision: w(8, 2),
            logical: w(4, 2),
            truth: 1,
        },
        quad_align: 2,
        char_signed: true,
        rule: StructRule::Natural,
    };

    /// AIX in 32 bits: the power struct rule, wchar_t of 2 bytes, long double is double.
    pub const AIX32: Architecture = Architecture {
        name: "aix32",
        order: ByteOrder::Big,
        long: w(4, 4),
        pointer: w(4, 4),
        wchar: w(2, 2),
        double: w(8, 8),
        long_double: w(8, 8),
        long_double_format: FloatFormat::Binary64,
        char_signed: false,
        rule: StructRule::Power,
        ..Architecture::X86_64
    };

    /// AIX in 64 bits: the power struct rule, long double is double.
    pub const AIX64: Architecture = Architecture {
        name: "aix64",
        long: w(8, 8),
        pointer: w(8, 8),
        wchar: w(4, 4),
        ..Self::AIX32
    };

    /// AIX in 64 bits with double-double as long double, an option of its compilers.
    pub const AIX64_LDBL128: Architecture = Architecture {
        name: "aix64-ldbl128",
        long_double: w(16, 16),
        long_double_format: FloatFormat::DoubleDouble,
        ..Self::AIX64
    };

    /// external32 (MPI-5.0 section 14.5.2): big-endian and unpadded, long in 4 bytes.
    pub const EXTERNAL32: Architecture = Architecture {
        name: "external32",
        order: ByteOrder::Big,
        char: w(1, 1),
        short: w(2, 1),
        int: w(4, 1),
        long: w(4, 1),
        long_long: w(8, 1),
        pointer: w(8, 1),
        wchar: w(2, 1),
        float: w(4, 1),
        double: w(8, 1),
        long_double: w(16, 1),
        long_double_format: FloatFormat::Binary128,
        bool: w(1, 1),
        fortran: Fortran {
            integer: w(4, 1),
            real: w(4, 1),
            double_precision: w(8, 1),
            logical: w(4, 1),
            truth: 1,
        },
        quad_align: 1,
        char_signed: true,
        rule: StructRule::Natural,
    };

    /// XDR (RFC 4506): big-endian, in units of 4 bytes. Bytes are packed, and the item after them
    /// is aligned.
    pub const XDR: Architecture = Architecture {
        name: "xdr",
        order: ByteOrder::Big,
        char: w(4, 4),
        short: w(4, 4),
        int: w(4, 4),
        long: w(4, 4),
        long_long: w(8, 4),
        pointer: w(8, 4),
        wchar: w(4, 4),
        float: w(4, 4),
        double: w(8, 4),
        long_double: w(16, 4),
        long_double_format: FloatFormat::Binary128,
        bool: w(4, 4),
        fortran: Fortran {
            integer: w(4, 4),
            real: w(4, 4),
            double_precision: w(8, 4),
            logical: w(4, 4),
            truth: 1,
        },
        quad_align: 4,
        char_signed: true,
        rule: StructRule::Natural,
    };

    /// The representation of the compilation target.
    pub const NATIVE: Architecture = NATIVE;

    /// Every architecture with a name.
    pub const fn all() -> &'static [Architecture] {
        &ALL
    }
}

static ALL: [Architecture; 16] = [
    Architecture::X86_64,
    Architecture::I686,
    Architecture::S390X,
    Architecture::AARCH64,
    Architecture::MACOS,
    Architecture::PPC64LE,
    Architecture::PPC64,
    Architecture::WIN64,
    Architecture::ARMHF,
    Architecture::MIPS,
    Architecture::M68K,
    Architecture::AIX32,
    Architecture::AIX64,
    Architecture::AIX64_LDBL128,
    Architecture::EXTERNAL32,
    Architecture::XDR,
];

/// Alternative names that compilers and distributions use.
pub(super) const ALIASES: &[(&str, Architecture)] = &[
    ("native", Architecture::NATIVE),
    ("x86_64", Architecture::X86_64),
    ("amd64", Architecture::X86_64),
    ("i386", Architecture::I686),
    ("x86", Architecture::I686),
    ("arm64", Architecture::AARCH64),
    ("riscv64", Architecture::AARCH64),
    ("aarch64-macos", Architecture::MACOS),
    ("powerpc64le", Architecture::PPC64LE),
    ("powerpc64", Architecture::PPC64),
    ("windows", Architecture::WIN64),
    ("arm", Architecture::ARMHF),
    ("armv7", Architecture::ARMHF),
];

#[cfg(all(target_arch = "x86_64", not(windows)))]
const NATIVE: Architecture = Architecture::X86_64;
#[cfg(all(target_arch = "x86_64", target_env = "msvc"))]
const NATIVE: Architecture = Architecture::WIN64;
#[cfg(all(target_arch = "x86", not(windows)))]
const NATIVE: Architecture = Architecture::I686;
#[cfg(target_arch = "s390x")]
const NATIVE: Architecture = Architecture::S390X;
#[cfg(any(all(target_arch = "aarch64", target_os = "linux"), target_arch = "riscv64"))]
const NATIVE: Architecture = Architecture::AARCH64;
#[cfg(all(target_arch = "aarch64", target_vendor = "apple"))]
const NATIVE: Architecture = Architecture::MACOS;
#[cfg(all(target_arch = "powerpc64", target_endian = "little"))]
const NATIVE: Architecture = Architecture::PPC64LE;
#[cfg(all(target_arch = "powerpc64", target_endian = "big", not(target_os = "aix")))]
const NATIVE: Architecture = Architecture::PPC64;
#[cfg(target_arch = "arm")]
const NATIVE: Architecture = Architecture::ARMHF;
#[cfg(target_arch = "mips")]
const NATIVE: Architecture = Architecture::MIPS;
#[cfg(target_arch = "m68k")]
const NATIVE: Architecture = Architecture::M68K;

// Some targets exist in both byte orders, but only one of them is known here.
const _: () = assert!(
    NATIVE.order as u8 == ByteOrder::NATIVE as u8,
    "the representation chosen for this target has the other byte order: add the target's to arch/known.rs, and choose it there"
);
