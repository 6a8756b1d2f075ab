//! The representations of known machines, and which of them a compilation target has: one table.
//!
//! `ci/check-architectures` verifies the numbers with real compilers. docs/architectures.md
//! describes how to add a machine.

use std::ffi::{c_char, c_long, c_longlong};

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

/// The table. An entry has the constant's name, the names for users (the first one is shown), the
/// compilation targets by a `cfg` predicate, and the representation. Targets that differ only by
/// name share an entry.
macro_rules! architectures {
    ($(
        $(#[$doc:meta])*
        $constant:ident = [$name:literal $(, $alias:literal)*] for ($($target:tt)+) {
            $($field:tt)+
        }
    )*) => {
        impl Architecture {
            $(
                $(#[$doc])*
                pub const $constant: Architecture = Architecture { name: $name, $($field)+ };
            )*

            /// The representation of the compilation target.
            pub const NATIVE: Architecture = NATIVE;

            /// Every architecture with a name.
            pub const fn all() -> &'static [Architecture] {
                ALL
            }
        }

        static ALL: &[Architecture] = &[$(Architecture::$constant),*];

        /// Alternative names that compilers and distributions use.
        pub(super) const ALIASES: &[(&str, Architecture)] = &[
            ("native", Architecture::NATIVE),
            $($(($alias, Architecture::$constant),)*)*
        ];

        $(
            #[cfg($($target)+)]
            const NATIVE: Architecture = Architecture::$constant;
        )*

        #[cfg(not(any($($($target)+),*)))]
        compile_error!(
            "shipable doesn't know how this compilation target represents data: add its sizes, \
             alignments and formats to the table in shipable/src/arch/known.rs, as \
             docs/architectures.md describes"
        );
        // Otherwise the error above would be followed by others, about a missing name.
        #[cfg(not(any($($($target)+),*)))]
        const NATIVE: Architecture = Architecture::X86_64;
    };
}

architectures! {
    /// x86-64 Linux: LP64, x87's long double in 16 bytes.
    X86_64 = ["x86-64", "x86_64", "amd64"] for (all(
        target_arch = "x86_64",
        target_pointer_width = "64",
        not(windows),
    )) {
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
        rule: StructRule::Natural
    }

    /// i686 Linux: ILP32; in structs, long long and double align to 4; long double takes 12 bytes.
    I686 = ["i686", "i386", "x86"] for (all(target_arch = "x86", target_os = "linux")) {
        long: w(4, 4),
        long_long: w(8, 4),
        pointer: w(4, 4),
        double: w(8, 4),
        long_double: w(12, 4),
        fortran: fortran(4),
        ..Architecture::X86_64
    }

    /// s390x Linux: big-endian LP64, binary128 aligned to 8.
    S390X = ["s390x"] for (target_arch = "s390x") {
        order: ByteOrder::Big,
        long_double: w(16, 8),
        long_double_format: FloatFormat::Binary128,
        quad_align: 8,
        char_signed: false,
        ..Architecture::X86_64
    }

    /// aarch64 Linux: LP64, binary128. riscv64 Linux has the same representation.
    AARCH64 = ["aarch64", "arm64", "riscv64"] for (any(
        all(
            target_arch = "aarch64",
            target_os = "linux",
            target_endian = "little",
            target_pointer_width = "64",
        ),
        target_arch = "riscv64",
    )) {
        long_double_format: FloatFormat::Binary128,
        char_signed: false,
        ..Architecture::X86_64
    }

    /// aarch64 macOS: LP64, long double is double.
    MACOS = ["macos", "aarch64-macos"] for (all(target_arch = "aarch64", target_vendor = "apple")) {
        long_double: w(8, 8),
        long_double_format: FloatFormat::Binary64,
        ..Architecture::X86_64
    }

    /// ppc64le Linux with IBM's double-double.
    PPC64LE = ["ppc64le", "powerpc64le", "ppc64el"] for (all(
        target_arch = "powerpc64",
        target_endian = "little",
        target_env = "gnu",
    )) {
        long_double_format: FloatFormat::DoubleDouble,
        char_signed: false,
        ..Architecture::X86_64
    }

    /// ppc64 Linux, big-endian, with IBM's double-double.
    PPC64 = ["ppc64", "powerpc64"] for (all(
        target_arch = "powerpc64",
        target_endian = "big",
        target_os = "linux",
        target_env = "gnu",
    )) {
        order: ByteOrder::Big,
        ..Architecture::PPC64LE
    }

    /// ppc Linux, 32-bit big-endian: ILP32 with IBM's double-double.
    PPC = ["ppc", "powerpc"] for (all(
        target_arch = "powerpc",
        target_endian = "big",
        target_env = "gnu",
    )) {
        long: w(4, 4),
        pointer: w(4, 4),
        ..Architecture::PPC64
    }

    /// Windows x86-64: LLP64, wchar_t of 2 bytes, long double is double.
    WIN64 = ["win64", "windows"] for (all(target_arch = "x86_64", target_env = "msvc")) {
        long: w(4, 4),
        wchar: w(2, 2),
        long_double: w(8, 8),
        long_double_format: FloatFormat::Binary64,
        ..Architecture::X86_64
    }

    /// armhf Linux: ILP32, long double is double.
    ARMHF = ["armhf", "arm", "armv7", "armel"] for (all(
        target_arch = "arm",
        target_endian = "little",
        not(target_vendor = "apple"),
    )) {
        long: w(4, 4),
        pointer: w(4, 4),
        long_double: w(8, 8),
        long_double_format: FloatFormat::Binary64,
        quad_align: 8,
        char_signed: false,
        ..Architecture::X86_64
    }

    /// mips o32 Linux: big-endian ILP32, long double is double.
    MIPS = ["mips"] for (all(
        any(target_arch = "mips", target_arch = "mips32r6"),
        target_endian = "big",
    )) {
        order: ByteOrder::Big,
        char_signed: true,
        ..Architecture::ARMHF
    }

    /// mipsel o32 Linux: little-endian ILP32, long double is double.
    MIPSEL = ["mipsel"] for (all(
        any(target_arch = "mips", target_arch = "mips32r6"),
        target_endian = "little",
    )) {
        order: ByteOrder::Little,
        ..Architecture::MIPS
    }

    /// sparc64 Linux: big-endian LP64, binary128. mips64 n64 Linux has the same representation.
    SPARC64 = ["sparc64", "mips64"] for (any(
        target_arch = "sparc64",
        all(any(target_arch = "mips64", target_arch = "mips64r6"), target_endian = "big"),
    )) {
        order: ByteOrder::Big,
        long_double_format: FloatFormat::Binary128,
        ..Architecture::X86_64
    }

    /// sparc Linux, 32-bit: big-endian ILP32, binary128 aligned to 8.
    SPARC = ["sparc"] for (target_arch = "sparc") {
        long: w(4, 4),
        pointer: w(4, 4),
        long_double: w(16, 8),
        quad_align: 8,
        ..Architecture::SPARC64
    }

    /// loongarch64 Linux: little-endian LP64, binary128. mips64el n64 Linux has the same
    /// representation.
    LOONGARCH64 = ["loongarch64", "mips64el"] for (any(
        target_arch = "loongarch64",
        all(any(target_arch = "mips64", target_arch = "mips64r6"), target_endian = "little"),
    )) {
        order: ByteOrder::Little,
        ..Architecture::SPARC64
    }

    /// riscv32 Linux: ILP32, binary128.
    RISCV32 = ["riscv32"] for (target_arch = "riscv32") {
        long: w(4, 4),
        pointer: w(4, 4),
        ..Architecture::AARCH64
    }

    /// m68k Linux: big-endian ILP32, no alignment above 2, a 96-bit long double.
    M68K = ["m68k"] for (target_arch = "m68k") {
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
        rule: StructRule::Natural
    }

    /// AIX in 32 bits: the power struct rule, wchar_t of 2 bytes, long double is double.
    AIX32 = ["aix32"] for (any()) {
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
    }

    /// AIX in 64 bits: the power struct rule, long double is double.
    AIX64 = ["aix64"] for (all(target_arch = "powerpc64", target_os = "aix")) {
        long: w(8, 8),
        pointer: w(8, 8),
        wchar: w(4, 4),
        ..Self::AIX32
    }

    /// AIX in 64 bits with double-double as long double, an option of its compilers.
    AIX64_LDBL128 = ["aix64-ldbl128"] for (any()) {
        long_double: w(16, 16),
        long_double_format: FloatFormat::DoubleDouble,
        ..Self::AIX64
    }

    /// external32 (MPI-5.0 section 14.5.2): big-endian and unpadded, long in 4 bytes.
    EXTERNAL32 = ["external32"] for (any()) {
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
        rule: StructRule::Natural
    }

    /// XDR (RFC 4506): big-endian, in units of 4 bytes. Bytes are packed, and the item after them
    /// is aligned.
    XDR = ["xdr"] for (any()) {
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
        rule: StructRule::Natural
    }
}

// The compiler of this crate agrees with the table.
const _: () = {
    const fn agrees(width: Width, size: usize, align: usize) -> bool {
        width.size as usize == size && width.align as usize == align
    }
    assert!(
        NATIVE.order as u8 == ByteOrder::NATIVE as u8
            && agrees(NATIVE.pointer, size_of::<usize>(), align_of::<usize>())
            && agrees(NATIVE.short, size_of::<i16>(), align_of::<i16>())
            && agrees(NATIVE.int, size_of::<i32>(), align_of::<i32>())
            && agrees(NATIVE.long, size_of::<c_long>(), align_of::<c_long>())
            && agrees(NATIVE.long_long, size_of::<c_longlong>(), align_of::<c_longlong>())
            && agrees(NATIVE.double, size_of::<f64>(), align_of::<f64>())
            && NATIVE.char_signed == (c_char::MIN != 0),
        "the compiler represents data otherwise than the entry for this target says: correct its \
         `for` or its sizes in the table in shipable/src/arch/known.rs"
    );
};
