//! Tests of the memory that forms and types take, measured in the allocator.
#![allow(unsafe_code)] // for the allocator

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use shipable::form::Limits;
use shipable::{Architecture, Committed, Datatype, Error, Form, codec};

thread_local! {
    /// The bytes that this thread has allocated, and their peak.
    static HELD: Cell<(i64, i64)> = const { Cell::new((0, 0)) };
}

struct Counting;

fn count(bytes: i64) {
    HELD.with(|held| {
        let (now, most) = held.get();
        held.set((now + bytes, most.max(now + bytes)));
    });
}

// SAFETY: the system's allocator does the work. `realloc` is the trait's default, which allocates
// and copies.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: the caller keeps the contract of `GlobalAlloc::dealloc`.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns a call's result, the bytes that the result holds, and the peak during the call.
fn footprint<T>(call: impl FnOnce() -> T) -> (T, i64, i64) {
    let (before, _) = HELD.get();
    HELD.set((before, before));
    let result = call();
    let (after, most) = HELD.get();
    (result, after - before, most - before)
}

/// The peak of decoding, in multiples of the input's length.
fn peak(bytes: &[u8]) -> i64 {
    let (form, kept, most) = footprint(|| Form::decode(bytes, &Limits::default()));
    println!("{} bytes: {} kept, {most} at most", bytes.len(), kept);
    if form.is_ok() {
        assert!(kept <= 22 * bytes.len() as i64, "{kept} of {}", bytes.len());
    }
    most / bytes.len() as i64
}

/// A portable form of a leaf and `count` nodes, each with these bytes.
fn nodes(node: &[u8], count: usize) -> Vec<u8> {
    let mut bytes = vec![b'P', 252];
    bytes.extend((count as u32 + 1).to_le_bytes());
    bytes.extend([0, 1]);
    bytes.extend(node.repeat(count));
    bytes
}

#[test]
fn decoding_memory_is_proportional_to_the_input() {
    const MANY: usize = 100_000;
    // An irregular type of many blocks, which is one node.
    let displacements: Vec<i64> = (0..MANY as i64).map(|at| 3 * at + at * at % 3).collect();
    let indexed = Datatype::indexed_block(1, &displacements, &Datatype::int()).unwrap();
    let indexed = Form::compile(&indexed, &Architecture::X86_64).unwrap().encode();
    assert!(peak(&indexed) < 20);
    // The shortest nodes: empty arrays, and structs of one member.
    assert!(peak(&nodes(&[4, 1, 0, 0], 1000)) < 45, "arrays");
    assert!(peak(&nodes(&[5, 1, 1, 1], 1000)) < 45, "structs");
    // Leaves are shorter still, but repeated leaves are refused.
    let leaves = nodes(&[0, 9], MANY);
    assert!(peak(&leaves) < 5);
    let refused = Form::decode(&leaves, &Limits::default()).unwrap_err();
    assert_eq!(refused.to_string(), "not a form: node 2: equals a node before it");
    // A list that claims more items than the input has.
    let claim = codec::encode(&(1u64 << 36), 100).unwrap();
    let claims = [&[b'P', 1, 4, 1][..], &claim, &[0; 100]].concat();
    assert!(matches!(Form::decode(&claims, &Limits::default()), Err(Error::Decode(_))));
    assert!(peak(&claims) < 36);
}

#[test]
fn memory_of_regular_types_is_independent_of_counts() {
    let commit = |count: i64| {
        let column = Datatype::vector(count, 1, 10, &Datatype::double()).unwrap();
        let record = Datatype::simple_struct(&[1, 1], &[Datatype::char(), column]).unwrap();
        let array = Datatype::contiguous(count, &record).unwrap();
        let (committed, kept, most) = footprint(|| {
            let committed = Committed::new(&array, &Architecture::X86_64).unwrap();
            for stream in [Architecture::S390X, Architecture::EXTERNAL32, Architecture::XDR] {
                committed.program(&stream).unwrap();
            }
            committed
        });
        drop(committed);
        (kept, most)
    };
    assert_eq!(commit(100), commit(100_000_000));
}

#[test]
fn members_of_one_type_share_operations() {
    let leaves = [Datatype::int(), Datatype::double(), Datatype::char()];
    let kinds: Vec<_> = (0..15).map(|at| leaves[at % 3].clone()).collect();
    let displacements: Vec<_> = (0..15).map(|at| 16 * at + at % 2).collect();
    let record = Datatype::struct_(&[1; 15], &displacements, &kinds).unwrap();
    const MANY: i64 = 5000;
    let displacements: Vec<_> = (0..MANY).map(|at| 1000 * at + at % 3).collect();
    let records = vec![record; MANY as usize];
    let lengths: Vec<_> = (0..MANY).map(|at| 1 + at % 2).collect();
    let records = Datatype::struct_(&lengths, &displacements, &records).unwrap();
    let committed = Committed::new(&records, &Architecture::X86_64).unwrap();
    let (_, kept, most) =
        footprint(|| committed.program(&Architecture::S390X).map(|program| program.stream_size()));
    println!("{} kept, {} at most of each member", kept / MANY, most / MANY);
    assert!(kept < 700 * MANY && most < 2000 * MANY, "{kept} {most}");
}

/// Types whose programs need many times the memory of their forms.
fn swelling() -> Vec<(&'static str, Datatype)> {
    const MANY: i64 = 20_000;
    // Seven runs of two lengths, in groups of four equally spaced copies.
    let lengths: Vec<_> = (0..7).map(|at| 1 + at % 2).collect();
    let displacements: Vec<_> = (0..7).map(|at| 5 * at + at % 3).collect();
    let seven = Datatype::hindexed(&lengths, &displacements, &Datatype::byte()).unwrap();
    let fours: Vec<_> = (0..4 * MANY).map(|at| 50 * at + at / 4 % 3).collect();
    let tables = Datatype::hindexed_block(1, &fours, &seven).unwrap();
    // Members that take one operation each, and members that are loops.
    let leaves = [Datatype::int(), Datatype::char(), Datatype::double()];
    let kinds: Vec<_> = (0..MANY as usize).map(|at| leaves[at % 3].clone()).collect();
    let operations = Datatype::simple_struct(&vec![1; MANY as usize], &kinds).unwrap();
    let cube = (1..4)
        .fold(Datatype::int(), |inner, at| Datatype::hvector(2, 1, 10i64.pow(at), &inner).unwrap());
    let displacements: Vec<_> = (0..MANY).map(|at| 10_000 * at).collect();
    let lengths: Vec<_> = (0..MANY).map(|at| 2 + at % 2).collect();
    let loops = Datatype::struct_(&lengths, &displacements, &vec![cube; MANY as usize]).unwrap();
    // Types of few operations, which each enclosing type copies.
    let kinds: Vec<_> = (0..15).map(|at| leaves[at % 3].clone()).collect();
    let displacements: Vec<_> = (0..15).map(|at| 16 * at + at % 2).collect();
    let record = Datatype::struct_(&[1; 15], &displacements, &kinds).unwrap();
    let records: Vec<_> =
        (0..1000).map(|at| Datatype::resized(0, 1000 + at, &record).unwrap()).collect();
    let displacements: Vec<_> = (0..1000).map(|at| 10_000 * at).collect();
    let copies = Datatype::struct_(&[2; 1000], &displacements, &records).unwrap();
    vec![("tables", tables), ("operations", operations), ("loops", loops), ("copies", copies)]
}

#[test]
fn lowering_stays_within_its_charged_memory() {
    let (memory, stream) = (Architecture::X86_64, Architecture::S390X);
    for (name, datatype) in swelling() {
        let form = Form::compile(&datatype, &memory).unwrap();
        let bytes = form.encode().len() as i64;
        // The bounds and sizes of nodes aren't charged; they are proportional to the form's bytes.
        let nodes = 300 * form.nodes().len() as i64;
        let whole = 1 << 30;
        let mut room = whole;
        let (program, kept, most) = footprint(|| form.lower_within(&memory, &stream, &mut room));
        assert!(program.is_ok());
        let charged = (whole - room) as i64;
        println!("{name}: {bytes} bytes, {charged} charged, {kept} kept, {most} at most");
        assert!(kept <= charged + 1000, "{name}");
        assert!(most <= 5 * charged / 2 + nodes, "{name}");
        drop(program);
        let mut room = charged as u64 / 4;
        let (refused, _, most) = footprint(|| form.lower_within(&memory, &stream, &mut room));
        assert!(matches!(refused, Err(Error::TooLarge { .. })), "{name}");
        assert_eq!(room, charged as u64 / 4, "{name}");
        println!("{most} at most of {room}");
        assert!(most <= 5 * charged / 8 + nodes, "{name}");
    }
}

#[test]
fn nothing_is_made_after_a_commit() {
    let pair = Datatype::struct_(&[1, 2], &[0, 8], &[Datatype::double(), Datatype::int()]).unwrap();
    let places: Vec<i64> = (0..1000).map(|at| 40 * at + at * at % 3).collect();
    let types = [
        Datatype::int(),
        Datatype::vector(10, 2, 5, &Datatype::double()).unwrap(),
        Datatype::vector(10, 2, 5, &pair).unwrap(),
        Datatype::hindexed_block(2, &places, &pair).unwrap(),
    ];
    for datatype in types {
        let committed = Committed::new(&datatype, &Architecture::X86_64).unwrap();
        let (size, kept, most) = footprint(|| {
            let same = committed.program(&Architecture::X86_64).unwrap();
            assert_eq!(same.stream_size(), committed.native().stream_size());
            committed.native().stream_size() + committed.form().nodes().len() as u64
        });
        assert!(size > 0);
        assert_eq!((kept, most), (0, 0), "{datatype}");
    }
}

#[test]
fn irregular_blocks_take_no_memory_in_the_form() {
    const MANY: i64 = 10_000;
    let lengths: Vec<_> = (0..MANY).map(|at| 1 + at * at % 7).collect();
    let displacements: Vec<_> = (0..MANY).map(|at| 20 * at + at * at % 3).collect();
    for datatype in [
        Datatype::indexed(&lengths, &displacements, &Datatype::int()),
        Datatype::hindexed_block(1, &displacements, &Datatype::byte()),
    ] {
        let datatype = datatype.unwrap();
        let compile = || Form::compile(&datatype, &Architecture::X86_64).unwrap();
        let (form, kept, most) = footprint(compile);
        assert!(kept < 1000 && most < 4000, "{kept} {most}");
        let decoded = Form::decode(&form.encode(), &Limits::default()).unwrap();
        assert_eq!(decoded, form);
    }
}

#[test]
fn long_tables_take_few_bytes_for_each_run() {
    const MANY: i64 = 100_000;
    let lengths: Vec<_> = (0..MANY).map(|at| 1 + at % 2 * 13).collect();
    let displacements: Vec<_> = (0..MANY).map(|at| 20 * at + at * at % 3).collect();
    let ragged = Datatype::hindexed(&lengths, &displacements, &Datatype::byte()).unwrap();
    let form = Form::compile(&ragged, &Architecture::X86_64).unwrap();
    let (program, kept, most) =
        footprint(|| form.lower(&Architecture::X86_64, &Architecture::X86_64).unwrap());
    println!("{} kept, {} at most of each run", kept / MANY, most / MANY);
    assert!(kept < 17 * MANY && most < 33 * MANY, "{kept} {most}");
    assert_eq!(program.stream_size(), lengths.iter().sum::<i64>() as u64);
}
