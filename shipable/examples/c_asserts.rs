//! Prints C source that compiles only if an architecture's constants are true.
//!
//! Usage: `c_asserts ARCHITECTURE [STRUCTS]`. The source asserts the size, alignment and format of
//! every basic type that C can name, and the size and offsets of random structs, by default 200. It
//! includes no headers. `ci/check-architectures` compiles it with every available compiler.

use std::fmt::Write;

use shipable::arch::{ByteOrder, FloatFormat};
use shipable::bounds::StructLayout;
use shipable::oracle::Random;
use shipable::{Architecture, Basic, Bounds};

const ALWAYS: &str = "1";

/// clang before 18 aligns it to 16 on s390x, which violates the ABI.
const INT128: &str = "defined(__SIZEOF_INT128__) && !(defined(__s390x__) && __clang_major__ < 18)";

/// The basic types of freestanding C: the type, a preprocessor condition, and its name in C.
const TYPES: &[(Basic, &str, &str)] = &[
    (Basic::Char, ALWAYS, "char"),
    (Basic::SignedChar, ALWAYS, "signed char"),
    (Basic::Wchar, ALWAYS, "__WCHAR_TYPE__"),
    (Basic::Short, ALWAYS, "short"),
    (Basic::UnsignedShort, ALWAYS, "unsigned short"),
    (Basic::Int, ALWAYS, "int"),
    (Basic::Unsigned, ALWAYS, "unsigned"),
    (Basic::Long, ALWAYS, "long"),
    (Basic::UnsignedLong, ALWAYS, "unsigned long"),
    (Basic::LongLong, ALWAYS, "long long"),
    (Basic::UnsignedLongLong, ALWAYS, "unsigned long long"),
    (Basic::Float, ALWAYS, "float"),
    (Basic::Double, ALWAYS, "double"),
    (Basic::LongDouble, ALWAYS, "long double"),
    (Basic::CBool, ALWAYS, "_Bool"),
    (Basic::Int16, ALWAYS, "__INT16_TYPE__"),
    (Basic::Int32, ALWAYS, "__INT32_TYPE__"),
    (Basic::Int64, ALWAYS, "__INT64_TYPE__"),
    (Basic::Aint, ALWAYS, "__INTPTR_TYPE__"),
    (Basic::CFloatComplex, ALWAYS, "float _Complex"),
    (Basic::CDoubleComplex, ALWAYS, "double _Complex"),
    (Basic::CLongDoubleComplex, ALWAYS, "long double _Complex"),
    (Basic::FloatInt, ALWAYS, "struct { float a; int b; }"),
    (Basic::DoubleInt, ALWAYS, "struct { double a; int b; }"),
    (Basic::LongInt, ALWAYS, "struct { long a; int b; }"),
    (Basic::TwoInt, ALWAYS, "struct { int a; int b; }"),
    (Basic::ShortInt, ALWAYS, "struct { short a; int b; }"),
    (Basic::LongDoubleInt, ALWAYS, "struct { long double a; int b; }"),
    (Basic::Integer16, INT128, "__int128"),
    (Basic::Real16, "defined(__SIZEOF_FLOAT128__)", "__float128"),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().ok_or("usage: c_asserts ARCHITECTURE [STRUCTS]")?;
    let structs: usize = arguments.next().map_or(Ok(200), |count| count.parse())?;
    let architecture = Architecture::by_name(&name)?;
    let mut text = String::from("#define SAME(what, is) _Static_assert((what) == (is), #what)\n");
    formats(&architecture, &mut text)?;
    for (at, (basic, guard, c_name)) in TYPES.iter().enumerate() {
        let bounds = Bounds::of_leaf((*basic).into(), &architecture)?;
        writeln!(text, "#if {guard}\ntypedef {c_name} T{at};")?;
        placed(&format!("T{at}"), &bounds, &mut text)?;
        writeln!(text, "#endif")?;
    }
    // Every run prints the same structs.
    let random = Random::new(1, Default::default());
    Structs { architecture, random, done: Vec::new() }.print(structs, &mut text)?;
    print!("{text}");
    Ok(())
}

/// Asserts the byte order, the sign of char, and the format of long double.
fn formats(architecture: &Architecture, text: &mut String) -> std::fmt::Result {
    let order = match architecture.order() {
        ByteOrder::Little => "__ORDER_LITTLE_ENDIAN__",
        ByteOrder::Big => "__ORDER_BIG_ENDIAN__",
    };
    let signed = i32::from(architecture.char_is_signed());
    let (bits, exponent) = match architecture.long_double().1 {
        FloatFormat::Binary16 => (11, 16),
        FloatFormat::Bfloat16 => (8, 128),
        FloatFormat::Binary32 => (24, 128),
        FloatFormat::Binary64 => (53, 1024),
        FloatFormat::X87 | FloatFormat::M68k => (64, 16384),
        FloatFormat::Binary128 => (113, 16384),
        FloatFormat::DoubleDouble => (106, 1024),
    };
    writeln!(text, "SAME(__BYTE_ORDER__, {order});")?;
    writeln!(text, "SAME((char)-1 < 0, {signed});")?;
    writeln!(text, "SAME(__FLT_MANT_DIG__, 24);\nSAME(__DBL_MANT_DIG__, 53);")?;
    writeln!(text, "SAME(__LDBL_MANT_DIG__, {bits});\nSAME(__LDBL_MAX_EXP__, {exponent});")
}

/// Asserts a type's size, its alignment as a struct member, and the size of a struct that starts
/// with it.
fn placed(c_type: &str, bounds: &Bounds, text: &mut String) -> std::fmt::Result {
    let (extent, align, leading) = (bounds.extent(), bounds.align, bounds.leading_align);
    writeln!(text, "SAME(sizeof({c_type}), {extent});")?;
    writeln!(text, "struct After_{c_type} {{ char c; {c_type} x; }};")?;
    writeln!(text, "SAME(__builtin_offsetof(struct After_{c_type}, x), {align});")?;
    writeln!(text, "struct Before_{c_type} {{ {c_type} x; char c; }};")?;
    let before = (extent + 1).div_euclid(leading) + i64::from((extent + 1) % leading != 0);
    writeln!(text, "SAME(sizeof(struct Before_{c_type}), {});", before * leading)
}

/// A generator of random structs. Their members are basic types, arrays and earlier structs.
struct Structs {
    architecture: Architecture,
    random: Random,
    done: Vec<Bounds>,
}

impl Structs {
    fn print(&mut self, count: usize, text: &mut String) -> Result<(), Box<dyn std::error::Error>> {
        for at in 0..count {
            let mut layout = StructLayout::new();
            let (mut members, mut asserts) = (String::new(), String::new());
            for member in 0..1 + self.random.index(6) {
                let (c_type, bounds) = self.member()?;
                let length = if self.random.chance(3) { 1 + self.random.index(5) } else { 1 };
                let displacement = layout.push(length as i64, &bounds)?;
                write!(members, " {c_type} m{member}[{length}];")?;
                writeln!(
                    asserts,
                    "SAME(__builtin_offsetof(struct S{at}, m{member}), {displacement});"
                )?;
            }
            let bounds = layout.finish()?;
            writeln!(text, "struct S{at} {{{members} }};\ntypedef struct S{at} S{at};\n{asserts}")?;
            placed(&format!("S{at}"), &bounds, text)?;
            self.done.push(bounds);
        }
        Ok(())
    }

    fn member(&mut self) -> shipable::Result<(String, Bounds)> {
        if !self.done.is_empty() && self.random.chance(4) {
            let at = self.random.index(self.done.len());
            return Ok((format!("S{at}"), self.done[at]));
        }
        let always = TYPES.iter().filter(|(_, guard, _)| *guard == ALWAYS).count();
        let at = self.random.index(always);
        Ok((format!("T{at}"), Bounds::of_leaf(TYPES[at].0.into(), &self.architecture)?))
    }
}
