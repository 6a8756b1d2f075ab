//! Tests of lowering, by the text of programs: which runs merge, and that no run is reordered.

use shipable::form::Limits;
use shipable::{Architecture, Committed, Datatype, Form, View, oracle};

const HERE: Architecture = Architecture::X86_64;

fn native(datatype: &Datatype) -> String {
    Committed::new(datatype, &HERE).unwrap().native().to_string()
}

fn lowered(datatype: &Datatype, memory: &Architecture, stream: &Architecture) -> String {
    Form::compile(datatype, memory).unwrap().lower(memory, stream).unwrap().to_string()
}

fn d() -> Datatype {
    Datatype::double()
}

#[test]
fn adjacent_items_become_one_run() {
    assert_eq!(native(&Datatype::contiguous(6, &d()).unwrap()), "extent 48 { 48 @0 }");
    assert_eq!(native(&Datatype::vector(3, 2, 2, &d()).unwrap()), "extent 48 { 48 @0 }");
    assert_eq!(native(&Datatype::indexed(&[2, 3], &[1, 3], &d()).unwrap()), "extent 40 { 40 @8 }");
    let (lengths, mut end) = ((1..10).collect::<Vec<i64>>(), 0);
    let starts: Vec<i64> = lengths.iter().map(|length| (end, end += length).0).collect();
    let many = Datatype::indexed(&lengths, &starts, &d()).unwrap();
    assert_eq!(native(&many), "extent 360 { 360 @0 }");
    // A struct without gaps, of members of different types; and an array of it.
    let members = [d(), Datatype::int(), Datatype::float()];
    let packed = Datatype::simple_struct(&[1, 1, 1], &members).unwrap();
    assert_eq!(native(&packed), "extent 16 { 16 @0 }");
    assert_eq!(native(&Datatype::contiguous(9, &packed).unwrap()), "extent 144 { 144 @0 }");
    // Runs whose items have equal byte swaps merge.
    let swapped = lowered(&packed, &HERE, &Architecture::S390X);
    assert_eq!(swapped, "extent 16 { swap8 1 @0; swap4 2 @8 }");
    // A pair is two adjacent items.
    let pair = Datatype::basic(shipable::Basic::DoubleInt);
    assert_eq!(native(&pair), "extent 16 { 12 @0 }");
}

#[test]
fn regular_repetitions_become_blocks() {
    assert_eq!(native(&Datatype::vector(8, 1, 10, &d()).unwrap()), "extent 568 { 8 x 80: 8 @0 }");
    let cube = Datatype::subarray(&[4, 5, 6], &[2, 3, 2], &[1, 1, 1], shipable::Order::C, &d());
    assert_eq!(native(&cube.unwrap()), "extent 960 { 2 x 240: 3 x 48: 16 @296 }");
    // Two dimensions with a common stride become one.
    let rows = Datatype::vector(3, 1, 2, &d()).unwrap();
    let more = Datatype::hvector(4, 1, 48, &rows).unwrap();
    assert_eq!(native(&more), "extent 184 { 12 x 16: 8 @0 }");
    // Up to four dimensions are one block; a fifth is a loop around it.
    let four = Datatype::subarray(&[3; 4], &[2; 4], &[0; 4], shipable::Order::C, &d()).unwrap();
    assert_eq!(native(&four), "extent 648 { 2 x 216: 2 x 72: 2 x 24: 16 @0 }");
    let five = Datatype::subarray(&[3; 5], &[2; 5], &[0; 5], shipable::Order::C, &d()).unwrap();
    assert_eq!(native(&five), "extent 1944 { 2 x 648 @0 { 2 x 216: 2 x 72: 2 x 24: 16 @0 } }");
}

#[test]
fn irregular_displacements_become_a_table() {
    let displacements = [9, 2, 30, 4, 17, 11, 26, 0];
    let scattered = Datatype::indexed_block(1, &displacements, &d()).unwrap();
    let table = "[8 @72 @16 @240 @32 @136 @88 @208 @0]";
    assert_eq!(native(&scattered), format!("extent 248 {{ {table} }}"));
    let swapped = lowered(&scattered, &HERE, &Architecture::S390X);
    assert_eq!(swapped, "extent 248 { swap8 [1 @72 @16 @240 @32 @136 @88 @208 @0] }");
}

#[test]
fn runs_of_2_to_the_58_bytes_become_a_table() {
    const LONG: i64 = 1 << 58;
    let displacements: Vec<_> = (0..8).map(|at| at * (LONG + 2) + at * at % 3).collect();
    let long = Datatype::hindexed_block(LONG, &displacements, &Datatype::byte()).unwrap();
    let displacements: String =
        displacements.iter().map(|displacement| format!(" @{displacement}")).collect();
    let end = 7 * (LONG + 2) + 1 + LONG;
    assert_eq!(native(&long), format!("extent {end} {{ [{LONG}{displacements}] }}"));
}

#[test]
fn copies_at_many_displacements_share_operations() {
    let displacements = |count: i64| (0..count).map(|at| at * 5 + at * at % 3).collect::<Vec<_>>();
    let record = Datatype::simple_struct(&[1, 1], &[Datatype::char(), d()]).unwrap();
    // Copied bytes become one table. Alternating conversions become loops with a shared body.
    let copied = native(&Datatype::indexed_block(1, &displacements(9), &record).unwrap());
    assert!(copied.contains("{ [1 @0 @8 @9 "), "{copied}");
    let many = Datatype::indexed_block(1, &displacements(300), &record).unwrap();
    let program = lowered(&many, &HERE, &Architecture::S390X);
    assert!(program.contains("{ 2 x 96 @0 #1{ 1 @0; swap8 1 @8 }; 2 x 64 @176 #1; "), "{program}");
    let committed = Committed::new(&many, &HERE).unwrap();
    for stream in [HERE, Architecture::S390X] {
        let program = committed.program(&stream).unwrap();
        let end = program.range(2).unwrap().end as usize;
        let memory: Vec<u8> = (0..end).map(|at| (at * 7) as u8).collect();
        let mut packed = vec![0; 2 * program.stream_size() as usize];
        let (expected, _) = oracle::pack(&many, 2, (&HERE, &memory, 0), &stream).unwrap();
        program.pack(2, View::new(&memory), 0, &mut packed).unwrap();
        assert!(packed == expected, "{stream}");
    }
}

#[test]
fn lowering_keeps_the_order_of_the_type_map() {
    // A 3 by 4 matrix by columns: the stream has the order of the type map, not of memory.
    let column = Datatype::vector(3, 1, 4, &d()).unwrap();
    let transpose = Datatype::hvector(4, 1, 8, &column).unwrap();
    assert_eq!(native(&transpose), "extent 96 { 4 x 8: 3 x 32: 8 @0 }");
    let matrix: Vec<u8> = (0..12).flat_map(|at| [at; 8]).collect();
    let committed = Committed::new(&transpose, &HERE).unwrap();
    let mut packed = [0; 96];
    committed.native().pack(1, View::new(&matrix), 0, &mut packed).unwrap();
    let order: Vec<u8> = packed.chunks(8).map(|double| double[0]).collect();
    assert_eq!(order, [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]);
    // Runs that are adjacent in memory, the second one first.
    let backwards = Datatype::indexed(&[1, 1], &[1, 0], &d()).unwrap();
    assert_eq!(native(&backwards), "extent 16 { 2 x -8: 8 @8 }");
}

#[test]
fn empty_types_lower_to_empty_programs() {
    for empty in [
        Datatype::contiguous(0, &d()).unwrap(),
        Datatype::vector(3, 0, 5, &d()).unwrap(),
        Datatype::basic(shipable::Basic::Lb),
    ] {
        assert_eq!(native(&empty), "extent 0 { }", "{empty}");
    }
    let bounded = Datatype::resized(-8, 32, &Datatype::contiguous(0, &d()).unwrap()).unwrap();
    assert_eq!(native(&bounded), "extent 32 { }");
}

/// The lowering of a form that shares the lists of its constructor takes totals from the form. That
/// of a decoded form, which has vectors, reads all blocks.
#[test]
fn tables_of_shared_blocks_equal_those_of_decoded_forms() {
    // Blocks with the divisors 1, 3 and 2, of which the last isn't obvious.
    let lengths = [[1, 2, 7, 3], [3, 3, 3, 3], [2, 4, 6, 8]];
    for lengths in lengths {
        for (gap, sign) in [(9, 1), (9, -1), (lengths[0], 1)] {
            let lengths: Vec<i64> = (0..40).map(|at| lengths[at % 4]).collect();
            // Irregular places. With a gap of a block's length some blocks adjoin.
            let places: Vec<i64> = (0..40)
                .map(|at| sign * (at * gap + if at % 5 == 0 { 0 } else { at % 3 }))
                .collect();
            for child in [
                Datatype::int(),
                Datatype::double_int(),
                Datatype::contiguous(3, &Datatype::char()).unwrap(),
            ] {
                let blocks = Datatype::indexed(&lengths, &places, &child).unwrap();
                let form = Form::compile(&blocks, &HERE).unwrap();
                let decoded = Form::decode(&form.encode(), &Limits::default()).unwrap();
                let [shared, read] =
                    [form, decoded].map(|form| format!("{:#?}", form.lower(&HERE, &HERE).unwrap()));
                assert_eq!(shared, read, "{blocks}");
            }
        }
    }
}
