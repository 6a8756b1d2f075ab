//! The pack engine: programs of the named types of `longshore bench`, beside hand-written loops.

use divan::Bencher;
use divan::counter::BytesCount;
use longshore_benches::case::{Bench, Case};
use longshore_benches::{catalog, loops, types};
use shipable::{Architecture, Committed, Datatype, Partial, View, ViewMut};

/// The memory and the stream of a type, and its case.
struct Work {
    committed: Committed,
    count: u64,
    memory: Vec<u8>,
    packed: Vec<u8>,
    case: Case,
}

fn names() -> Vec<&'static str> {
    types::all().expect("they are valid").into_iter().map(|named| named.name).collect()
}

impl Work {
    fn new(name: &str, bench: Bench, stream: &Architecture) -> Work {
        let named = catalog::named(name).expect("one of them");
        let datatype: Datatype = named.notation.parse().expect("its own notation");
        let committed = Committed::new(&datatype, &Architecture::NATIVE).expect("it fits");
        let program = committed.program(stream).expect("it converts");
        let length = program.range(named.count).expect("it fits").end as usize;
        let bytes = program.stream_length(named.count).expect("it fits") as usize;
        let (memory, packed) = (vec![1; length], vec![1; bytes]);
        let name = Some(named.name.to_owned());
        let case =
            Case { bench, name, datatype: named.notation, count: named.count, ..Case::default() };
        Work { committed, count: named.count, memory, packed, case }
    }

    fn pack(mut self, bencher: Bencher, stream: &Architecture) {
        let program = self.committed.program(stream).expect("it converts");
        bencher.counter(BytesCount::new(self.packed.len())).bench_local(|| {
            program.pack(self.count, View::new(divan::black_box(&self.memory)), 0, &mut self.packed)
        });
    }

    fn unpack(mut self, bencher: Bencher, stream: &Architecture) {
        let program = self.committed.program(stream).expect("it converts");
        bencher.counter(BytesCount::new(self.packed.len())).bench_local(|| {
            let memory = ViewMut::new(&mut self.memory);
            let packed = divan::black_box(&self.packed);
            program.unpack(self.count, memory, 0, packed, &mut Partial::default())
        });
    }
}

#[divan::bench(args = names())]
fn pack(bencher: Bencher, name: &str) {
    Work::new(name, Bench::Pack, &Architecture::NATIVE).pack(bencher, &Architecture::NATIVE);
}

#[divan::bench(args = names())]
fn pack_by_hand(bencher: Bencher, name: &str) {
    let mut work = Work::new(name, Bench::Pack, &Architecture::NATIVE);
    let (pack, _) = loops::of(&work.case).expect("a valid case").expect("each has a loop");
    bencher
        .counter(BytesCount::new(work.packed.len()))
        .bench_local(|| pack(divan::black_box(&work.memory), &mut work.packed));
}

#[divan::bench(args = names())]
fn pack_external32(bencher: Bencher, name: &str) {
    let external = &Architecture::EXTERNAL32;
    Work::new(name, Bench::Pack, external).pack(bencher, external);
}

#[divan::bench(args = names())]
fn unpack(bencher: Bencher, name: &str) {
    Work::new(name, Bench::Unpack, &Architecture::NATIVE).unpack(bencher, &Architecture::NATIVE);
}

#[divan::bench(args = names())]
fn unpack_by_hand(bencher: Bencher, name: &str) {
    let mut work = Work::new(name, Bench::Unpack, &Architecture::NATIVE);
    let (_, unpack) = loops::of(&work.case).expect("a valid case").expect("each has a loop");
    bencher
        .counter(BytesCount::new(work.packed.len()))
        .bench_local(|| unpack(&mut work.memory, divan::black_box(&work.packed)));
}

#[divan::bench(args = names())]
fn unpack_external32(bencher: Bencher, name: &str) {
    let external = &Architecture::EXTERNAL32;
    Work::new(name, Bench::Unpack, external).unpack(bencher, external);
}
