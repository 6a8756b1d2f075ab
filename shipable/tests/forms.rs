//! Tests of shipable forms: tags, golden bytes, hostile bytes, text, and lowering on every
//! architecture.

use shipable::form::{DecodeError, Limits};
use shipable::oracle::{Options, Random, each_seed};
use shipable::{
    Architecture, Basic, Class, Committed, Datatype, Distribution, Error, Form, Order, Tag,
};

fn d() -> Datatype {
    Datatype::double()
}

fn record() -> Datatype {
    Datatype::simple_struct(&[1, 3], &[Datatype::char(), d()]).unwrap()
}

fn compile(datatype: &Datatype) -> Form {
    Form::compile(datatype, &Architecture::X86_64).unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

const X86_64: &str = "e=l,s2.2,i4.4,l8.8,ll8.8,p8.8,w4.4,f4.4,d8.8,ld16.16x87,b1.1,I4.4,R4.4,D8.8,L4.4t1,\
                      q16,c=s,cs=ascii,sr=natural";

/// Types with the bytes of their forms, without the builder's descriptor, and with their text. The
/// bytes are the wire format: a change here is a change of the protocol.
fn golden() -> Vec<(Datatype, &'static str, &'static str)> {
    let grid = Datatype::subarray(&[4, 6], &[2, 3], &[1, 2], Order::C, &d());
    let (cyclic, darg) = ([Distribution::Cyclic], [Some(2)]);
    let dealt = Datatype::darray(2, 1, &[7], &cyclic, &darg, &[2], Order::C, &Datatype::int());
    let placed = Datatype::struct_(&[1, 1], &[0, 8], &[d(), Datatype::char()]);
    vec![
        (d(), "50010010", "portable: 0 = d"),
        (
            Datatype::vector(8, 1, 10, &d()).unwrap(),
            "500200100401010001081400",
            "portable: 0 = d; 1 = 0 x 1 every 10 count 8",
        ),
        (
            Datatype::indexed(&[3, 1], &[36, 0], &d()).unwrap(),
            "50020010040102480301000001010000",
            "portable: 0 = d; 1 = 0 x 3 at 36, 0 x 1",
        ),
        (
            Datatype::indexed_block(2, &[0, 5, 10], &Datatype::int()).unwrap(),
            "500200090401010002030a00",
            "portable: 0 = i; 1 = 0 x 2 every 5 count 3",
        ),
        (
            Datatype::contiguous(4, &record()).unwrap(),
            "5004000100100502020101030401010004010000",
            "portable: 0 = c; 1 = d; 2 = {0, 1 x 3}; 3 = 2 x 4",
        ),
        (
            grid.unwrap(),
            "500300100401010403010001000c04010102020100010008",
            "portable: 0 = d; 1 = 0 x 3 at 2 [0 extent 6]; 2 = 1 x 2 at 1 [0 extent 4]",
        ),
        (
            dealt.unwrap(),
            "50020009040102040201000c01010001000e",
            "portable: 0 = i; 1 = 0 x 2 at 2, 0 x 1 at 6 [0 extent 7]",
        ),
        (Datatype::basic(Basic::DoubleInt), "5001003b", "portable: 0 = di"),
        (Datatype::f90_real(Some(15), None).unwrap(), "500101010f00", "portable: 0 = FR:15:*"),
        (
            Datatype::hvector(2, 1, -18, &Datatype::short()).unwrap(),
            "4c0200070401010001022300",
            "locale-specific: 0 = s; 1 = 0 x 1 every -18 count 2",
        ),
        (
            placed.unwrap(),
            "4c0300100001060202010001011000",
            "locale-specific: 0 = d; 1 = c; 2 = {0 @0, 1 @8}",
        ),
        (
            Datatype::resized(-3, 9, &Datatype::int()).unwrap(),
            "4c02000904010100010100010512",
            "locale-specific: 0 = i; 1 = 0 x 1 [-3 extent 9]",
        ),
    ]
}

#[test]
fn bytes_and_text_match_golden_values() {
    for (datatype, bytes, text) in golden() {
        let form = compile(&datatype);
        let mut encoded = form.encode();
        if form.tag() == Tag::Locale {
            let descriptor = encoded.splice(1..2 + X86_64.len(), []).collect::<Vec<u8>>();
            assert_eq!(descriptor[0] as usize, X86_64.len());
            assert_eq!(descriptor[1..], *X86_64.as_bytes());
        }
        assert_eq!(hex(&encoded), bytes, "{datatype}");
        assert_eq!(form.to_string(), text, "{datatype}");
    }
}

#[test]
fn portable_forms_have_equal_bytes_on_every_architecture() {
    each_seed(200, |seed| {
        let random = &mut Random::new(seed, Options { portable: true, ..Options::default() });
        let datatype = random.datatype();
        let forms = Architecture::all().iter().map(|here| Form::compile(&datatype, here).unwrap());
        let bytes: Vec<_> = forms.map(|form| (form.tag(), form.encode())).collect();
        assert_eq!(bytes[0].0, Tag::Portable, "{datatype}");
        assert!(bytes.windows(2).all(|pair| pair[0] == pair[1]), "{datatype}");
    });
}

#[test]
fn empty_blocks_are_left_out_of_forms() {
    let bytes = Datatype::hvector(2, 1, 24, &d()).unwrap();
    for child in [d(), bytes] {
        let far = Datatype::indexed(&[1, 0], &[0, i64::MAX], &child).unwrap();
        let near = Datatype::indexed(&[1], &[0], &child).unwrap();
        assert_eq!(compile(&far).encode(), compile(&near).encode(), "{far}");
    }
}

#[test]
fn tags_depend_on_the_constructors() {
    let column = Datatype::vector(3, 1, 2, &record()).unwrap();
    let portable = [
        Datatype::basic(Basic::Ub),
        Datatype::f90_integer(9).unwrap(),
        Datatype::contiguous(2, &column).unwrap(),
        Datatype::indexed(&[1], &[4], &column).unwrap(),
        Datatype::indexed_block(1, &[4], &column).unwrap(),
        Datatype::subarray(&[4], &[2], &[1], Order::Fortran, &column).unwrap(),
        Datatype::dup(&column).unwrap(),
        Datatype::simple_struct(&[2], std::slice::from_ref(&column)).unwrap(),
    ];
    for datatype in portable {
        let form = compile(&datatype);
        assert_eq!((form.tag(), form.culprit()), (Tag::Portable, None), "{datatype}");
        assert_eq!(form.builder_architecture(), None);
    }
    let locale = [
        Datatype::hvector(2, 1, 9, &column).unwrap(),
        Datatype::hindexed(&[1], &[4], &column).unwrap(),
        Datatype::hindexed_block(1, &[4], &column).unwrap(),
        Datatype::struct_(&[1], &[0], std::slice::from_ref(&column)).unwrap(),
        Datatype::resized(0, 999, &column).unwrap(),
    ];
    for datatype in locale {
        // Each type built from it is locale-specific too, and reports it as the culprit.
        let above = Datatype::contiguous(2, &Datatype::dup(&datatype).unwrap()).unwrap();
        for form in [compile(&datatype), compile(&above)] {
            assert_eq!(form.tag(), Tag::Locale, "{datatype}");
            assert_eq!(form.culprit(), Some(&datatype));
            assert_eq!(form.builder_architecture(), Some(&Architecture::X86_64));
            let elsewhere = form.lower(&Architecture::I686, &Architecture::X86_64);
            assert!(matches!(elsewhere, Err(Error::OtherRepresentation { .. })), "{datatype}");
        }
    }
}

#[test]
fn equal_types_have_equal_forms() {
    // Whether shared or built separately, and with or without dup.
    let shared = Datatype::simple_struct(&[1, 1], &[record(), record()]).unwrap();
    let one = record();
    let other = Datatype::dup(&one).unwrap();
    let anew = Datatype::simple_struct(&[1, 1], &[one, other]).unwrap();
    assert_eq!(compile(&shared), compile(&anew));
    assert_eq!(compile(&shared).nodes().len(), 4);
    assert_ne!(compile(&shared), compile(&record()));
}

fn decode(bytes: &[u8]) -> Result<Form, DecodeError> {
    Form::decode(bytes, &Limits::default()).map_err(|error| {
        assert_eq!(error.class(), Class::Type);
        match error {
            Error::Decode(error) => error,
            other => panic!("{other}"),
        }
    })
}

#[test]
fn invalid_forms_are_refused_with_the_defect() {
    let unknown = decode(&[b'Q', 1, 0, 16]);
    assert_eq!(unknown, Err(DecodeError::UnknownTag(b'Q')));
    assert_eq!(decode(&[]), Err(DecodeError::Empty));
    assert_eq!(decode(b"P\0"), Err(DecodeError::Empty));
    let problem = |bytes: &[u8]| match decode(bytes) {
        Err(DecodeError::Node { problem, .. }) => problem,
        other => panic!("{other:?}"),
    };
    assert_eq!(problem(&[b'P', 1, 0, 255]), "unknown basic type");
    // A node that is its own child, and a node whose child comes after it.
    assert_eq!(problem(&[b'P', 1, 4, 0, 0, 0]), "a child isn't a node before it");
    assert_eq!(problem(&[b'P', 2, 0, 16, 4, 2, 0, 0]), "a child isn't a node before it");
    // Displacements in bytes in a portable form.
    let placed = Datatype::struct_(&[1], &[0], &[d()]).unwrap();
    let mut smuggled = compile(&placed).encode();
    smuggled.splice(..2 + X86_64.len(), [b'P']);
    assert_eq!(problem(&smuggled), "displacements in bytes in a portable form");
    // 2^62 doubles.
    let many = Datatype::contiguous(1 << 40, &Datatype::int8()).unwrap();
    let mut many = compile(&many).encode();
    let count = (1i64 << 40).to_le_bytes();
    let at = many.windows(8).position(|window| window == count).unwrap();
    many[at..at + 8].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(matches!(decode(&many), Err(DecodeError::Unsound(_))));
}

#[test]
fn limits_are_kept() {
    let mut nested = d();
    for _ in 0..100 {
        nested = Datatype::contiguous(1, &nested).unwrap();
    }
    let bytes = compile(&nested).encode();
    let depth = |depth| Form::decode(&bytes, &Limits { depth, ..Limits::default() });
    assert!(depth(101).is_ok());
    assert!(matches!(depth(100), Err(Error::Decode(DecodeError::Node { node: 100, .. }))));
    let length = |bytes: usize| Limits { bytes, ..Limits::default() };
    assert!(Form::decode(&bytes, &length(bytes.len())).is_ok());
    let refused = Form::decode(&bytes, &length(bytes.len() - 1));
    assert!(matches!(refused, Err(Error::Decode(DecodeError::Codec(_)))));
}

/// Bytes of forms, randomly damaged. If they still decode, the result must be usable without a
/// panic.
#[test]
fn damaged_bytes_never_panic() {
    let sound = each_seed(300, |seed| {
        let mut sound = 0;
        let random = &mut Random::new(seed, Options::default());
        random.options.portable = random.chance(2);
        random.options.items = 40;
        let form = compile(&random.datatype()).encode();
        for _ in 0..20 {
            let mut bytes = form.clone();
            for _ in 0..1 + random.below(3) {
                let at = random.below(bytes.len() as u64) as usize;
                match random.below(4) {
                    0 => bytes.truncate(at.max(1)),
                    1 => bytes[at] = *random.pick(&[0, 1, 127, 250, 251, 252, 253, 254, 255]),
                    2 => bytes.insert(at, random.below(256) as u8),
                    _ => bytes[at] ^= 1 << random.below(8),
                }
            }
            let Ok(damaged) = decode(&bytes) else { continue };
            sound += 1;
            let builder = damaged.builder_architecture().copied();
            let memory = builder.unwrap_or_else(|| random.architecture());
            let stream = random.architecture();
            let _ = (damaged.signature(), damaged.bounds(&memory), damaged.to_string());
            let _ = damaged.to_locale(&memory).map(|form| form.encode());
            let again = decode(&damaged.encode()).expect("a decoded form can be encoded");
            assert_eq!((&again, again.encode()), (&damaged, damaged.encode()));
            if let Ok(program) = damaged.lower(&memory, &stream) {
                // Packs bytes at the start, the middle and the end from memory of exactly the
                // form's range.
                let Ok(range) = program.range(1) else { continue };
                let length = program.stream_size();
                if range.start >= 0 && range.end < 1 << 16 {
                    let memory = vec![0; range.end as usize];
                    for position in [0, length / 2, length.saturating_sub(3)] {
                        let mut out = [0; 50];
                        let view = shipable::View::new(&memory);
                        program.pack(1, view, position, &mut out).unwrap();
                    }
                }
            }
        }
        sound
    });
    assert!(sound.into_iter().sum::<u64>() > 0, "all damage was found");
}

#[test]
fn forms_of_regular_types_are_small_for_any_counts() {
    let rows = Datatype::vector(1 << 30, 3, 1 << 20, &Datatype::int()).unwrap();
    let block = Datatype::hvector(1 << 10, 1, 1 << 52, &rows).unwrap();
    let form = compile(&block);
    assert!(form.encode().len() < 200);
    assert_eq!(form.signature().unwrap().count, 3 << 40);
    let program = form.lower(&Architecture::X86_64, &Architecture::S390X).unwrap();
    assert_eq!(program.stream_size(), 12 << 40);
    assert_eq!(
        program.to_string(),
        "extent 4611686018423193612 { 1099511627776 x 4194304: swap4 3 @0 }"
    );
    // A byte at 2^40 equal displacements takes one byte of memory, so the end of its stream can be
    // packed here.
    let same = Datatype::hvector(1 << 40, 1, 0, &Datatype::byte()).unwrap();
    let same = Committed::new(&same, &Architecture::X86_64).unwrap();
    let mut out = [0; 10];
    let end = (1 << 40) - 5;
    let written = same.native().pack(1, shipable::View::new(&[7]), end, &mut out).unwrap();
    assert_eq!((written, out), (5, [7, 7, 7, 7, 7, 0, 0, 0, 0, 0]));
}

#[test]
fn a_million_blocks_compile_and_lower() {
    let blocks = 1_000_000;
    let mut random = Random::new(1, Options::default());
    let lengths: Vec<i64> = (0..blocks).map(|_| random.below(4) as i64).collect();
    let displacements: Vec<i64> = (0..blocks).map(|at| at * 5 + random.below(2) as i64).collect();
    let datatype = Datatype::indexed(&lengths, &displacements, &d()).unwrap();
    let committed = Committed::new(&datatype, &Architecture::X86_64).unwrap();
    let bytes = committed.form().encode();
    assert!(bytes.len() < 10_000_000, "{}", bytes.len());
    let arrived = decode(&bytes).unwrap();
    let program = arrived.lower(&Architecture::S390X, &Architecture::X86_64).unwrap();
    assert!(!program.overlaps(1));
    let last = program.stream_size() - 8;
    let memory = vec![3; program.range(1).unwrap().end as usize];
    let mut out = [0; 8];
    assert_eq!(program.pack(1, shipable::View::new(&memory), last, &mut out).unwrap(), 8);
    assert_eq!(out, [3; 8]);
}

/// The bytes of a locale-specific form with these nodes.
fn located(nodes: &[u8]) -> Vec<u8> {
    let placed = Datatype::struct_(&[1], &[0], &[d()]).unwrap();
    let mut bytes = compile(&placed).encode();
    bytes.truncate(2 + X86_64.len());
    bytes.extend(nodes);
    bytes
}

#[test]
fn extent_of_i64_min_is_accepted() {
    // A char; a struct of the char with an extent of i64::MIN; a struct of that struct.
    let mut nodes = vec![3, 0, 1, 6, 1, 1, 1, 0, 2, 0, 253];
    nodes.extend(u64::MAX.to_le_bytes());
    nodes.extend([6, 1, 1, 1, 0, 0]);
    let form = decode(&located(&nodes)).unwrap();
    assert_eq!(
        form.to_string(),
        format!("locale-specific: 0 = c; 1 = {{0 @0}} (0 extent {}); 2 = {{1 @0}}", i64::MIN)
    );
    assert_eq!(form.bounds(&Architecture::X86_64).unwrap().extent(), i64::MIN);
}

/// Nested types, each with the type below it twice. A walk along each path would never end.
fn doubled(times: u32, bottom: &Datatype) -> Datatype {
    (0..times).fold(bottom.clone(), |below, _| {
        Datatype::struct_(&[1, 1], &[0, 1], &[below.clone(), below]).unwrap()
    })
}

#[test]
fn lowering_of_shared_subtrees_takes_linear_time() {
    // Bytes, which are copied, and integers, which are converted.
    for (bottom, same) in [(Datatype::byte(), true), (Datatype::int(), false)] {
        let datatype = doubled(55, &bottom);
        assert!(datatype == doubled(55, &bottom) && datatype != doubled(54, &bottom));
        let other = Datatype::struct_(&[1, 1], &[0, 2], &[bottom.clone(), bottom.clone()]).unwrap();
        assert!(doubled(54, &other) != datatype);
        let form = compile(&datatype);
        assert!(form.encode().len() < 1000);
        let program = form.lower(&Architecture::X86_64, &Architecture::S390X).unwrap();
        assert_eq!(program.is_all_copy(), same);
        assert!(program.overlaps(1));
        assert!(program.to_string().len() < 10_000 && format!("{program:?}").len() < 10_000);
        let mut out = [0; 9];
        let memory = [5; 64];
        let far = program.stream_size() - 8;
        assert_eq!(program.pack(1, shipable::View::new(&memory), far, &mut out).unwrap(), 8);
    }
}

#[test]
fn nested_tables_are_lowered_without_expansion() {
    let squares: Vec<i64> = (0..100_000).map(|n| n * n).collect();
    let inner = Datatype::indexed_block(1, &squares, &Datatype::byte()).unwrap();
    let outer = Datatype::hindexed_block(1, &squares, &inner).unwrap();
    let program = compile(&outer).lower(&Architecture::X86_64, &Architecture::X86_64).unwrap();
    assert_eq!(program.stream_size(), 10_000_000_000);
}

#[test]
fn transposes_are_recognised_as_disjoint() {
    let lower = |datatype: &Datatype| {
        compile(datatype).lower(&Architecture::X86_64, &Architecture::S390X).unwrap()
    };
    let (n, bytes) = (1 << 20, 8 << 20);
    // The columns of a matrix, one after the other, for doubles and for records; and rows, from the
    // last to the first.
    let transposed = |element: &Datatype, size| {
        Datatype::hvector(n, 1, size, &Datatype::hvector(n, 1, n * size, element).unwrap()).unwrap()
    };
    let pair = Datatype::struct_(&[1, 1], &[8, 0], &[d(), d()]).unwrap();
    assert!(!lower(&transposed(&d(), 8)).overlaps(1));
    assert!(!lower(&transposed(&pair, 16)).overlaps(1));
    assert!(!lower(&Datatype::hvector(n, 4, -bytes, &d()).unwrap()).overlaps(1));
    // One column, resized to the extent of one item, any number of times.
    let columns = |n: i64| {
        let column = Datatype::vector(n, 1, n, &d()).unwrap();
        lower(&Datatype::resized(0, 8, &column).unwrap())
    };
    assert!(!columns(n).overlaps(n as u64));
    assert!(!columns(1000).overlaps(1000));
    assert!(columns(1000).overlaps(1001));
    // One byte, 2^60 times.
    assert!(lower(&Datatype::hvector(1 << 60, 1, 0, &Datatype::byte()).unwrap()).overlaps(1));
}

#[test]
fn displacements_that_cancel_near_the_i64_limits_are_correct() {
    // A table at the lowest displacements of 64 bits, moved up by i64::MAX, next to a byte, twice.
    let low: Vec<i64> = [0, 2, 4, 6, 9, 12, 15, 19, 23].iter().map(|at| i64::MIN + at).collect();
    let table = Datatype::hindexed_block(1, &low, &Datatype::byte()).unwrap();
    let up = Datatype::hindexed_block(1, &[i64::MAX], &table).unwrap();
    let beside = Datatype::struct_(&[1, 1], &[1, 30], &[up, Datatype::byte()]).unwrap();
    let twice = Datatype::contiguous(2, &Datatype::resized(0, 32, &beside).unwrap()).unwrap();
    let committed = Committed::new(&twice, &Architecture::X86_64).unwrap();
    let memory: Vec<u8> = (0..64).collect();
    let mut out = [0; 20];
    committed.native().pack(1, shipable::View::new(&memory), 0, &mut out).unwrap();
    assert_eq!(out[..10], [0, 2, 4, 6, 9, 12, 15, 19, 23, 30]);
    assert_eq!(out[10..], [32, 34, 36, 38, 41, 44, 47, 51, 55, 62]);
    assert!(!committed.native().overlaps(1));
}

#[test]
fn forms_without_alignments_keep_the_padding() {
    // Under the power rule, the first member in memory sets the leading alignment. In the simple
    // struct this is the int by its index; in a struct with these displacements it would be the
    // double.
    let late = Datatype::resized(-100, 4, &Datatype::int()).unwrap();
    let simple = Datatype::simple_struct(&[1, 1], &[late, d()]).unwrap();
    let blocks = Datatype::hvector(2, 1, 16, &simple).unwrap();
    let aix = Architecture::AIX32;
    assert_eq!(simple.bounds(&aix).unwrap().extent(), 12);
    assert_eq!(blocks.bounds(&aix).unwrap().extent(), 28);
    let form = Form::compile(&blocks, &aix).unwrap();
    let read = Form::decode(&form.encode(), &Limits::default()).unwrap();
    assert_eq!(read.bounds(&aix).unwrap().extent(), 28, "{read}");
    assert!(read.to_string().ends_with("every 16 count 2 (0 extent 28)"), "{read}");
}

#[test]
fn deepest_forms_fit_a_small_stack() {
    // Each level is a struct of the level below and of sixteen separate bytes, too many to be
    // copied into the next level. Forms may nest deeper than datatypes.
    let mut nodes = vec![251, 0x00, 0x04, 0, 4];
    for level in 1..1024u32 {
        nodes.extend([6, 17, 1, 1, 0]);
        for at in 1..=16 {
            nodes.extend(
                shipable::codec::encode(&(level, 1u64, i64::from(level) * 40 + 2 * at), 100)
                    .unwrap(),
            );
        }
        nodes.push(0);
    }
    let lowered = std::thread::Builder::new().stack_size(512 << 10).spawn(move || {
        let form = decode(&located(&nodes)).unwrap();
        let program = form.lower(&Architecture::X86_64, &Architecture::S390X).unwrap();
        assert!(!program.overlaps(1));
        let memory: Vec<u8> = vec![1; program.range(1).unwrap().end as usize];
        let mut out = [0; 3];
        program.pack(1, shipable::View::new(&memory), 0, &mut out).unwrap();
        program.to_string().len()
    });
    lowered.unwrap().join().unwrap();
}

/// A random type whose arguments are spread over the range of i64, most of them near its limits.
fn extreme(random: &mut Random, depth: u64) -> Datatype {
    const NUMBERS: [i64; 20] = [
        0,
        1,
        1,
        2,
        3,
        -1,
        -7,
        1 << 12,
        1 << 20,
        1 << 31,
        -1 << 40,
        1 << 57,
        (1 << 60) - 1,
        1 << 60,
        -1 << 60,
        1 << 61,
        1 << 62,
        -1 << 62,
        i64::MAX,
        i64::MIN,
    ];
    loop {
        if depth == 0 {
            return random.basic().into();
        }
        let child = extreme(random, depth - 1);
        let mut some = |n: usize| (0..n).map(|_| *random.pick(&NUMBERS)).collect::<Vec<_>>();
        let (n, m) = (some(6), some(3));
        let length = |n: i64| n.checked_abs().unwrap_or(0);
        let lengths = m.iter().map(|&m| length(m)).collect::<Vec<_>>();
        let positive = lengths.iter().map(|&length| length.max(1)).collect::<Vec<_>>();
        let parts: Vec<_> = positive.iter().map(|size| 1 + size / 3).collect();
        let starts: Vec<_> = positive.iter().zip(&parts).map(|(size, part)| size - part).collect();
        let order = if random.chance(2) { Order::C } else { Order::Fortran };
        let made = match random.below(11) {
            0 => Datatype::contiguous(length(n[0]), &child),
            1 => Datatype::vector(length(n[0]), length(n[1]), n[2], &child),
            2 => Datatype::hvector(length(n[0]), length(n[1]), n[2], &child),
            3 => Datatype::indexed(&lengths, &n[..3], &child),
            4 => Datatype::hindexed(&lengths, &n[..3], &child),
            5 => Datatype::indexed_block(length(n[0]), &n[1..], &child),
            6 => Datatype::hindexed_block(length(n[0]), &n[1..], &child),
            7 => Datatype::resized(n[0], n[1], &child),
            8 => Datatype::subarray(&positive, &parts, &starts, order, &child),
            9 => {
                let (kinds, grid) = ([Distribution::Cyclic; 2], [2, 2]);
                let args = [Some(positive[2]), None];
                Datatype::darray(4, 1, &positive[..2], &kinds, &args, &grid, order, &child)
            }
            _ => {
                let children = [child.clone(), extreme(random, depth - 1), child];
                match random.chance(2) {
                    true => Datatype::struct_(&lengths, &n[..3], &children),
                    false => Datatype::simple_struct(&lengths, &children),
                }
            }
        };
        if let Ok(made) = made {
            return made;
        }
    }
}

#[test]
fn commit_refuses_exactly_the_types_that_cannot_be_compiled() {
    let taken = each_seed(20_000, |seed| {
        let mut random = Random::new(seed, Options::default());
        let datatype = extreme(&mut random, 1 + seed % 4);
        let on = random.architecture();
        let compiled = Form::compile(&datatype, &on)
            .and_then(|form| form.lower(&on, &on).map(|program| (form, program)));
        match (Committed::new(&datatype, &on), compiled) {
            (Ok(committed), Ok((form, program))) => {
                assert_eq!(committed.form(), &form, "{datatype} on {on}");
                assert_eq!(committed.tag(), form.tag(), "{datatype} on {on}");
                assert_eq!(*committed.bounds(), form.bounds(&on).unwrap(), "{datatype} on {on}");
                // A reader of the form computes the bounds itself, and lowers the form to an equal
                // program.
                let made = committed.native().to_string();
                assert_eq!(made, program.to_string(), "{datatype} on {on}");
                true
            }
            (Err(error), Err(same)) => {
                assert_eq!(error, same, "{datatype} on {on}");
                false
            }
            (committed, compiled) => panic!("{datatype} on {on}: {committed:?}, {compiled:?}"),
        }
    });
    let tried = taken.len();
    let taken = taken.into_iter().filter(|taken| *taken).count();
    assert!(tried < 1000 || taken.min(tried - taken) > tried / 10, "{taken} of {tried}");
}
