//! Tests of packed buffers: positions, representations and counts.

use shipable::arch::Value;
use shipable::oracle::{self, Options, Random, each_seed};
use shipable::{
    Architecture, Basic, Class, Committed, Datatype, Error, TypeClass, View, ViewMut, address,
};

const EXTERNAL32: Architecture = Architecture::EXTERNAL32;
const XDR: Architecture = Architecture::XDR;

fn commit(datatype: &Datatype, architecture: &Architecture) -> Committed {
    Committed::new(datatype, architecture).unwrap()
}

/// Packs at a position of a buffer of `room` bytes, which are 0xee before.
fn pack(
    committed: &Committed,
    memory: &[u8],
    count: u64,
    (room, mut position): (usize, u64),
    representation: &Architecture,
) -> Result<(Vec<u8>, u64), Error> {
    let mut packed = vec![0xee; room];
    committed.pack(View::new(memory), count, &mut packed, &mut position, representation)?;
    Ok((packed, position))
}

/// The packed buffer that XDR makes of a stream without padding.
fn padded(scalars: &[oracle::Item], dense: &[u8], position: u64) -> Vec<u8> {
    let (mut padded, mut at) = (vec![0xee; position as usize], 0);
    for item in scalars {
        let size = usize::from(item.scalar.size);
        if item.scalar.value != Value::Bytes {
            padded.resize(padded.len().next_multiple_of(4), 0);
        }
        padded.extend(&dense[at..at + size]);
        at += size;
    }
    padded
}

#[test]
fn types_of_equal_signatures_unpack_each_others_buffers() {
    // Whether the stream has padding; `None` if a value was refused.
    let paddings = each_seed(1000, |seed| {
        let random = &mut Random::new(seed, Options::default());
        let (memory, elsewhere) = (random.architecture(), random.architecture());
        let representation = *random.pick(&[EXTERNAL32, XDR, XDR, memory, elsewhere]);
        random.options.architecture = memory;
        let (source, target) = random.pair();
        let types = [&source, &target].map(|datatype| commit(datatype, &memory));
        let count = 1 + random.below(3);
        let held = types.each_ref().map(|committed| {
            let range = committed.native().range(count).unwrap();
            let origin = (-range.start).max(0) as usize;
            (origin, origin + range.end.max(0) as usize)
        });
        let bytes = random.bytes(held[0].1);
        let from = (&memory, &bytes[..], held[0].0);
        let (dense, refused) = oracle::pack(&source, count, from, &representation).unwrap();
        let mut expected = random.bytes(held[1].1);
        let mut unpacked = expected.clone();
        let to = (&memory, &mut expected[..], held[1].0);
        if refused.is_some()
            || oracle::unpack(&target, count, to, (&representation, &dense)).unwrap().is_some()
        {
            return None;
        }
        let start = random.below(9);
        let stream = match representation == XDR {
            true => padded(&oracle::expand(&source, &XDR, count).unwrap(), &dense, start),
            false => [vec![0xee; start as usize], dense.clone()].concat(),
        };
        let has_padding = stream.len() > start as usize + dense.len() + 3;

        let what = format!("seed {seed}: {count} of {source} on {memory} as {representation}");
        let view = View::new(&bytes).with_origin(held[0].0 as u64);
        let (mut packed, mut position) = (vec![0xee; stream.len()], start);
        types[0].pack(view, count, &mut packed, &mut position, &representation).unwrap();
        assert_eq!(position, stream.len() as u64, "{what}");
        assert!(packed == stream, "{what}");
        let sizes: u64 = (0..2).map(|_| types[0].pack_size(count, &representation).unwrap()).sum();
        let size = types[0].pack_size(2 * count, &representation).unwrap();
        assert!(size <= sizes && position - start <= sizes, "{what}: {sizes}");

        position = start;
        // Unpacks element by element of the other type.
        for element in 0..count as i64 {
            let view = ViewMut::new(&mut unpacked).with_origin(held[1].0 as u64);
            let view = view.shifted(element * types[1].bounds().extent()).unwrap();
            types[1].unpack(&stream, &mut position, view, 1, &representation).unwrap();
        }
        assert_eq!(position, stream.len() as u64, "{what}, unpacked as {target}");
        assert!(unpacked == expected, "{what}, unpacked as {target}");
        Some(has_padding)
    });
    let tried = paddings.iter().flatten().count();
    let mixed = paddings.iter().flatten().filter(|has_padding| **has_padding).count();
    assert!(tried > 0 && (mixed > 0 || tried < 100), "{tried} {mixed}");
}

#[test]
fn external32_has_the_sizes_of_the_standard() {
    // Types of MPI-5.0 table 14.3 whose size differs from x86-64's, and some whose size doesn't.
    let sizes = [
        (Basic::Long, 4),
        (Basic::UnsignedLong, 4),
        (Basic::Wchar, 2),
        (Basic::LongDouble, 16),
        (Basic::CBool, 1),
        (Basic::Aint, 8),
        (Basic::Logical, 4),
        (Basic::CLongDoubleComplex, 32),
        (Basic::LongDoubleInt, 20),
        (Basic::ShortInt, 6),
        (Basic::Packed, 1),
    ];
    for (basic, size) in sizes {
        let committed = commit(&Datatype::basic(basic), &Architecture::X86_64);
        assert_eq!(committed.pack_size(3, &EXTERNAL32).unwrap(), 3 * size, "{basic}");
    }
}

#[test]
fn c_struct_matches_golden_bytes_in_external32_and_xdr() {
    // struct { char c; double d; short s[3]; long l; char bytes[5]; long double x; }
    let members = [
        Datatype::char(),
        Datatype::double(),
        Datatype::short(),
        Datatype::long(),
        Datatype::byte(),
        Datatype::long_double(),
    ];
    let record = Datatype::simple_struct(&[1, 1, 3, 1, 5, 1], &members).unwrap();
    let mut images = Vec::new();
    for architecture in [Architecture::X86_64, Architecture::S390X, Architecture::I686] {
        // The oracle computes the values from the external32 image.
        let mut memory = vec![0; 200];
        let mut external = vec![b'A'];
        external.extend(1.5f64.to_be_bytes());
        external.extend([0, 1, 0xff, 0xfe, 0, 3]);
        external.extend((-7i32).to_be_bytes());
        external.extend(*b"bytes");
        external.extend([0x40, 0, 0xc0].iter().chain(&[0; 13]));
        let held = (&architecture, &mut memory[..], 0);
        assert_eq!(oracle::unpack(&record, 1, held, (&EXTERNAL32, &external)).unwrap(), None);

        let record = commit(&record, &architecture);
        let (packed, end) = pack(&record, &memory, 1, (50, 0), &EXTERNAL32).unwrap();
        assert_eq!(packed[..end as usize], external, "{architecture}");
        let (packed, end) = pack(&record, &memory, 1, (60, 0), &XDR).unwrap();
        images.push(packed[..end as usize].to_vec());
    }
    let xdr = [
        &[0, 0, 0, b'A'][..],
        &1.5f64.to_be_bytes(),
        &[0, 0, 0, 1, 0xff, 0xff, 0xff, 0xfe, 0, 0, 0, 3],
        &(-7i32).to_be_bytes(),
        b"bytes\0\0\0",
        &[0x40, 0, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    ];
    assert_eq!(images, vec![xdr.concat(); 3]);
}

#[test]
fn xdr_pads_single_bytes_before_other_items() {
    let (byte, int) = (Datatype::byte(), Datatype::int());
    let both = Datatype::simple_struct(&[3, 1, 2], &[byte.clone(), int.clone(), byte.clone()]);
    let both = commit(&both.unwrap(), &Architecture::X86_64);
    let memory: Vec<u8> = (1..=24).collect();
    let (packed, end) = pack(&both, &memory, 2, (24, 0), &XDR).unwrap();
    // Two bytes of one element and three bytes of the next are adjacent.
    assert_eq!(packed[..11], [1, 2, 3, 0, 8, 7, 6, 5, 9, 10, 13]);
    assert_eq!(packed[11..end as usize], [14, 15, 0, 0, 0, 20, 19, 18, 17, 21, 22][..]);
    // Unpacked in other portions: three bytes one by one, and an int.
    let (byte, int) = (commit(&byte, &XDR), commit(&int, &Architecture::S390X));
    let (mut position, mut back) = (0, [0; 4]);
    for at in 0..3 {
        let view = ViewMut::new(&mut back[at..=at]);
        byte.unpack(&packed, &mut position, view, 1, &XDR).unwrap();
    }
    assert_eq!((back, position), ([1, 2, 3, 0], 3));
    int.unpack(&packed, &mut position, ViewMut::new(&mut back), 1, &XDR).unwrap();
    assert_eq!((back, position), ([8, 7, 6, 5], 8));
}

#[test]
fn buffers_and_values_that_do_not_fit_are_refused() {
    let ints = commit(&Datatype::int(), &Architecture::X86_64);
    let memory = [0; 12];
    let refused = |count, buffer, representation: &Architecture| {
        let error = pack(&ints, &memory, count, buffer, representation).unwrap_err();
        (error.class(), error.to_string())
    };
    for representation in [&Architecture::X86_64, &EXTERNAL32, &XDR] {
        assert_eq!(pack(&ints, &memory, 2, (12, 4), representation).unwrap().1, 12);
        assert_eq!(pack(&ints, &memory, 0, (3, 3), representation).unwrap().1, 3);
        let (class, text) = refused(3, (12, 4), representation);
        let expected =
            "pack: 3 elements take 12 bytes at position 4, of which the buffer of 12 has 8";
        assert_eq!((class, &*text), (Class::Truncate, expected));
        let (class, text) = refused(1, (12, 13), representation);
        assert_eq!(class, Class::Arg);
        assert!(text.contains("position 13 lies past the buffer's 12 bytes"), "{text}");
        assert_eq!(refused(4, (100, 0), representation).0, Class::Buffer);
        assert_eq!(refused(u64::MAX, (100, 0), representation).0, Class::ValueTooLarge);
    }
    let mut position = 9;
    let mut memory = [7; 4];
    let unpacked = ints.unpack(&[0; 12], &mut position, ViewMut::new(&mut memory), 1, &EXTERNAL32);
    assert_eq!(unpacked.unwrap_err().class(), Class::Truncate);
    assert_eq!((position, memory), (9, [7; 4]));
    // A long that external32 can't hold.
    let longs = commit(&Datatype::long(), &Architecture::X86_64);
    let memory = [7i64, 1 << 31].map(i64::to_le_bytes).concat();
    let error = pack(&longs, &memory, 2, (8, 0), &EXTERNAL32).unwrap_err();
    assert_eq!(error.class(), Class::Conversion);
    assert!(error.to_string().starts_with("element 1 (MPI_LONG): 2147483648"), "{error}");
}

#[test]
fn element_counts_beyond_int_are_supported() {
    let (count, bytes) = (1i64 << 33, Datatype::byte());
    let huge = commit(&Datatype::contiguous(count, &bytes).unwrap(), &Architecture::X86_64);
    assert_eq!(huge.pack_size(5, &EXTERNAL32).unwrap(), 5 << 33);
    assert_eq!(huge.pack_size(5, &XDR).unwrap(), 5 << 33);
    assert_eq!(huge.count_in(3 << 33, &EXTERNAL32).unwrap(), Some(3));
    assert_eq!(huge.elements_in((3 << 33) + 7, &EXTERNAL32).unwrap(), Some((3 << 33) + 7));
    let mixed = Datatype::simple_struct(&[1, 1], &[Datatype::byte(), Datatype::int()]).unwrap();
    let mixed = commit(&Datatype::contiguous(count, &mixed).unwrap(), &Architecture::X86_64);
    assert_eq!(mixed.pack_size(1, &XDR).unwrap(), 8 << 33);
    assert_eq!(mixed.pack_size(u64::MAX, &XDR).unwrap_err().class(), Class::ValueTooLarge);
}

#[test]
fn message_bytes_are_counted_in_elements() {
    let here = Architecture::X86_64;
    let pair = commit(&Datatype::double_int(), &here);
    let whole =
        |bytes| (pair.count_in(bytes, &here).unwrap(), pair.elements_in(bytes, &here).unwrap());
    assert_eq!(whole(0), (Some(0), Some(0)));
    assert_eq!(whole(24), (Some(2), Some(4)));
    assert_eq!(whole(20), (None, Some(3)));
    assert_eq!(whole(10), (None, None));
    let complex = commit(&Datatype::c_double_complex(), &here);
    assert_eq!(complex.elements_in(16, &here).unwrap(), Some(1));
    assert_eq!(complex.elements_in(24, &here).unwrap(), None);
    let nothing = commit(&Datatype::contiguous(0, &Datatype::int()).unwrap(), &here);
    assert_eq!(nothing.count_in(0, &here).unwrap(), Some(0));
    assert_eq!(nothing.count_in(4, &here).unwrap(), None);
    assert_eq!(nothing.elements_in(4, &here).unwrap(), None);
    // A message has no padding, even in XDR. A packed buffer in XDR has.
    let mixed = Datatype::struct_(&[1, 1], &[0, 4], &[Datatype::byte(), Datatype::int()]).unwrap();
    let mixed = commit(&mixed, &here);
    assert_eq!(mixed.pack_size(1, &XDR).unwrap(), 8);
    assert_eq!(
        (mixed.count_in(5, &XDR).unwrap(), mixed.count_in(8, &XDR).unwrap()),
        (Some(1), None)
    );
    assert_eq!(mixed.elements_in(6, &XDR).unwrap(), Some(3));
    // Each beginning of a random type's sequence of scalars.
    each_seed(300, |seed| {
        let random = &mut Random::new(seed, Options::default());
        let datatype = random.datatype();
        let stream = random.architecture();
        let committed = commit(&datatype, &here);
        let items = oracle::flatten(&datatype).repeat(2);
        let mut bytes = 0;
        for (before, leaf) in items.iter().enumerate() {
            let found = committed.elements_in(bytes, &stream).unwrap();
            assert_eq!(found, Some(before as u64), "seed {seed}: {bytes} bytes of {datatype}");
            let size = u64::from(stream.leaf(*leaf).unwrap().size);
            if size > 1 {
                assert_eq!(committed.elements_in(bytes + 1, &stream).unwrap(), None);
            }
            bytes += size;
        }
        let elements = committed.elements_in(bytes, &stream).unwrap();
        assert_eq!(elements, Some(items.len() as u64), "seed {seed}: {datatype}");
        let count = if items.is_empty() { 0 } else { 2 };
        assert_eq!(committed.count_in(bytes, &stream).unwrap(), Some(count), "{datatype}");
    });
}

#[test]
fn match_size_finds_types_by_class_and_size() {
    let find = |class, size, on: &Architecture| Datatype::match_size(class, size, on);
    for here in [Architecture::X86_64, Architecture::I686, Architecture::M68K] {
        assert!(find(TypeClass::Real, 8, &here).unwrap().is(&Datatype::real8()));
        assert!(find(TypeClass::Complex, 8, &here).unwrap().is(&Datatype::complex8()));
        for size in [1, 2, 4, 8, 16] {
            let found = find(TypeClass::Integer, size, &here).unwrap();
            assert_eq!(found.bounds(&here).unwrap().size, size as i64);
        }
    }
    let error = find(TypeClass::Real, 12, &Architecture::X86_64).unwrap_err();
    assert_eq!(error.class(), Class::Arg);
    assert!(error.to_string().contains("12 bytes"), "{error}");
    // XDR has no type of two bytes.
    assert!(find(TypeClass::Integer, 2, &XDR).is_err());
    // In XDR, narrow types have the size of wider ones, and the widest one is returned.
    assert!(find(TypeClass::Integer, 4, &XDR).unwrap().is(&Datatype::integer4()));
    assert!(find(TypeClass::Real, 4, &XDR).unwrap().is(&Datatype::real4()));
    assert!(find(TypeClass::Complex, 8, &XDR).unwrap().is(&Datatype::complex8()));
}

#[test]
fn address_arithmetic_wraps() {
    let record = (1u8, 2u64);
    let (base, member) = (address::of(&record), address::of(&record.1));
    let offset = std::mem::offset_of!((u8, u64), 1) as i64;
    assert_eq!(address::difference(member, base), offset);
    assert_eq!(address::sum(base, offset), member);
    // Beyond the greatest address, addresses wrap as unsigned integers do.
    assert_eq!(address::difference(i64::MIN, i64::MAX), 1);
    assert_eq!(address::sum(i64::MAX, 1), i64::MIN);
}
