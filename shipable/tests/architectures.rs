//! Tests of architectures against the tables of their standards. `ci/check-architectures` tests
//! them with compilers.

use shipable::arch::{ByteOrder, FloatFormat, LeafLayout, Value};
use shipable::{Architecture, Basic, Class};

fn sizes(architecture: &Architecture, table: &[(u32, &[Basic])]) {
    let mut covered = 0;
    for (size, basics) in table {
        for basic in *basics {
            let layout = architecture.basic(*basic);
            assert_eq!((layout.size, layout.extent), (*size, *size), "{basic} in {architecture}");
            assert!(layout.components.iter().all(|c| c.scalar.order == ByteOrder::Big));
            covered += 1;
        }
    }
    let rest = Basic::ALL.iter().filter(|b| b.is_marker() || b.is_pair()).count();
    assert_eq!(covered + rest, Basic::ALL.len(), "every type is in the table");
}

/// The sizes are those of MPI-5.0 section 14.5.2. The names of the sized Fortran types state
/// theirs.
#[test]
fn external32_has_the_sizes_of_the_standard() {
    use Basic::*;
    let table: &[(u32, &[Basic])] = &[
        (1, &[Packed, Byte, Char, SignedChar, UnsignedChar, Int8, Uint8, CBool, CxxBool]),
        (1, &[Character, Integer1, Logical1]),
        (2, &[Wchar, Short, UnsignedShort, Int16, Uint16, Integer2, Real2, Logical2]),
        (2, &[Float16, Bfloat16]),
        (4, &[Int, Unsigned, Long, UnsignedLong, Float, Int32, Uint32, Logical, Integer, Real]),
        (4, &[Integer4, Real4, Logical4, Complex4]),
        (8, &[LongLong, UnsignedLongLong, Double, Int64, Uint64, Aint, Count, Offset]),
        (8, &[DoublePrecision, Integer8, Real8, Logical8, Complex8]),
        (8, &[CFloatComplex, CxxFloatComplex, Complex]),
        (16, &[LongDouble, Integer16, Real16, Logical16, Complex16]),
        (16, &[CDoubleComplex, CxxDoubleComplex, DoubleComplex]),
        (32, &[CLongDoubleComplex, CxxLongDoubleComplex, Complex32]),
    ];
    sizes(&Architecture::EXTERNAL32, table);
    let long_double = Architecture::EXTERNAL32.basic(LongDouble).components[0].scalar;
    assert_eq!(long_double.value, Value::Float(FloatFormat::Binary128));
    for &basic in Basic::ALL {
        assert_eq!(Architecture::EXTERNAL32.basic(basic).align, 1, "external32 has no padding");
    }
}

/// RFC 4506: units of four bytes. Only single bytes are packed.
#[test]
fn xdr_has_units_of_four_bytes() {
    use Basic::*;
    let table: &[(u32, &[Basic])] = &[
        (1, &[Packed, Byte]),
        (4, &[Char, SignedChar, UnsignedChar, Int8, Uint8, CBool, CxxBool, Character]),
        (4, &[Integer1, Logical1, Wchar, Short, UnsignedShort, Int16, Uint16, Integer2, Real2]),
        (4, &[Logical2, Int, Unsigned, Long, UnsignedLong, Float, Int32, Uint32, Logical]),
        (4, &[Integer, Real, Integer4, Real4, Logical4, Float16, Bfloat16]),
        (8, &[LongLong, UnsignedLongLong, Double, Int64, Uint64, Aint, Count, Offset]),
        (8, &[DoublePrecision, Integer8, Real8, Logical8, Complex8, Complex4]),
        (8, &[CFloatComplex, CxxFloatComplex, Complex]),
        (16, &[LongDouble, Integer16, Real16, Logical16, Complex16]),
        (16, &[CDoubleComplex, CxxDoubleComplex, DoubleComplex]),
        (32, &[CLongDoubleComplex, CxxLongDoubleComplex, Complex32]),
    ];
    sizes(&Architecture::XDR, table);
    let bytes = [Basic::Byte.into(), Basic::Int.into()];
    let record = shipable::Datatype::simple_struct(&[5, 1], &bytes).unwrap();
    assert_eq!(record.bounds(&Architecture::XDR).unwrap().extent(), 12);
}

#[test]
fn pairs_have_the_layout_of_c_structs() {
    let offset = |layout: &LeafLayout| layout.components[1].offset;
    for (architecture, basic, expected) in [
        (Architecture::X86_64, Basic::DoubleInt, (8, 12, 16)),
        (Architecture::I686, Basic::DoubleInt, (8, 12, 12)),
        (Architecture::M68K, Basic::ShortInt, (2, 6, 6)),
        (Architecture::X86_64, Basic::ShortInt, (4, 6, 8)),
        (Architecture::X86_64, Basic::LongDoubleInt, (16, 20, 32)),
        (Architecture::I686, Basic::LongDoubleInt, (12, 16, 16)),
        (Architecture::WIN64, Basic::LongInt, (4, 8, 8)),
        (Architecture::AIX32, Basic::DoubleInt, (8, 12, 16)),
        (Architecture::EXTERNAL32, Basic::DoubleInt, (8, 12, 12)),
        (Architecture::X86_64, Basic::TwoDoublePrecision, (8, 16, 16)),
    ] {
        let layout = architecture.basic(basic);
        let found = (offset(&layout), layout.size, layout.extent);
        assert_eq!(found, expected, "{basic} on {architecture}");
    }
}

#[test]
fn names_and_aliases_find_their_architectures() {
    for known in Architecture::all() {
        assert_eq!(Architecture::by_name(known.name()).unwrap().name(), known.name());
        assert_eq!(Architecture::by_name(&known.name().to_uppercase()), Ok(*known));
        assert_eq!(Architecture::by_name(&known.descriptor()), Ok(*known));
    }
    for (alias, known) in [
        ("x86_64", Architecture::X86_64),
        ("i386", Architecture::I686),
        ("arm64", Architecture::AARCH64),
        ("powerpc64le", Architecture::PPC64LE),
        ("native", Architecture::NATIVE),
    ] {
        assert_eq!(Architecture::by_name(alias), Ok(known));
    }
    let error = Architecture::by_name("vax").unwrap_err();
    assert_eq!(error.class(), Class::Arg);
    assert!(error.to_string().contains("`vax`") && error.to_string().contains("s390x"));
}

#[test]
fn no_two_names_share_a_representation() {
    let all = Architecture::all();
    for (at, one) in all.iter().enumerate() {
        for other in &all[..at] {
            assert!(!one.same_representation(other), "{one} and {other}");
        }
    }
}

#[test]
fn native_architecture_matches_the_target() {
    let native = Architecture::NATIVE;
    assert_eq!(native.order(), ByteOrder::NATIVE);
    assert_eq!(usize::from(native.pointer().size), size_of::<usize>());
    let char_signed = std::ffi::c_char::MIN != 0;
    assert_eq!(native.char_is_signed(), char_signed);
}

#[test]
fn with_fortran_replaces_the_default_kinds() {
    let wide = shipable::arch::Width { size: 8, align: 8 };
    let all_ones = shipable::arch::Fortran {
        integer: wide,
        real: wide,
        logical: wide,
        truth: u64::MAX,
        ..*Architecture::X86_64.fortran()
    };
    let changed = Architecture::X86_64.with_fortran(all_ones).unwrap();
    let scalar = |basic| changed.basic(basic).components[0].scalar;
    assert_eq!(scalar(Basic::Real).value, Value::Float(FloatFormat::Binary64));
    assert_eq!(scalar(Basic::Logical).value, Value::Logical { truth: u64::MAX });
    assert_eq!(scalar(Basic::Logical2).value, Value::Logical { truth: 0xffff });
    assert_eq!(scalar(Basic::CBool).value, Value::Logical { truth: 1 });
    // A truth of all ones in a narrower default kind is all ones in the wider kinds. Other truths
    // keep their bits.
    let narrow = shipable::arch::Width { size: 4, align: 4 };
    for (truth, [two, eight, sixteen]) in [
        (0xffff_ffff, [0xffff, u64::MAX, u64::MAX]),
        (0x7fff_ffff, [0xffff, 0x7fff_ffff, 0x7fff_ffff]),
        (0x0001_0000, [1, 0x0001_0000, 0x0001_0000]),
    ] {
        let fortran = shipable::arch::Fortran { logical: narrow, truth, ..all_ones };
        let changed = Architecture::X86_64.with_fortran(fortran).unwrap();
        let image = |basic| changed.basic(basic).components[0].scalar.value;
        assert_eq!(image(Basic::Logical4), Value::Logical { truth });
        assert_eq!(image(Basic::Logical2), Value::Logical { truth: two });
        assert_eq!(image(Basic::Logical8), Value::Logical { truth: eight });
        assert_eq!(image(Basic::Logical16), Value::Logical { truth: sixteen });
    }
    let none = shipable::arch::Fortran { truth: 0, ..all_ones };
    assert_eq!(Architecture::X86_64.with_fortran(none).unwrap_err().class(), Class::Arg);
    // A descriptor of these two is only a name.
    for fixed in [Architecture::EXTERNAL32, Architecture::XDR] {
        assert_eq!(fixed.with_fortran(all_ones).unwrap_err().class(), Class::Arg);
    }
}

/// Machines without a name, known only by descriptors: an int of two bytes, and an int of eight.
#[test]
fn sized_integers_have_their_width_for_any_size_of_int() {
    use Basic::*;
    let i686 = Architecture::I686.descriptor();
    for (ints, int, long) in [("i2.2,l4.2", 2, 4), ("i8.8,l8.8", 8, 8)] {
        let machine = Architecture::from_descriptor(&i686.replace("i4.4,l4.4", ints)).unwrap();
        let size = |basic| machine.basic(basic).size;
        assert_eq!([Short, Int, Long, LongLong].map(size), [2, int, long, 8]);
        assert_eq!([Int8, Uint16, Integer2, Int64, Integer8].map(size), [1, 2, 2, 8, 8]);
        // No type has four bytes, so it is the next wider one.
        assert_eq!([Int32, Uint32, Integer4, Logical4].map(size), [int.max(4); 4]);
    }
    let backwards = i686.replace("i4.4,l4.4", "i8.8,l4.4");
    let refused = Architecture::from_descriptor(&backwards).unwrap_err();
    assert!(refused.to_string().contains("an int of 8 bytes and a long of 4"), "{refused}");
}
