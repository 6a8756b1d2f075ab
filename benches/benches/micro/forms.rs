//! The stages of a type before any data moves: compiled at commit, encoded at the origin, decoded
//! and lowered at the target.

use divan::Bencher;
use longshore_benches::{catalog, types};
use shipable::form::Limits;
use shipable::{Architecture, Datatype, Form};

/// The named types of `longshore bench`, including one with very many blocks.
fn names() -> Vec<&'static str> {
    let mut names: Vec<_> =
        types::all().expect("they are valid").into_iter().map(|named| named.name).collect();
    names.push("blocks");
    names
}

fn datatype(name: &str) -> Datatype {
    catalog::named(name).expect("one of them").notation.parse().expect("its own notation")
}

fn form(name: &str) -> Form {
    Form::compile(&datatype(name), &Architecture::NATIVE).expect("it fits")
}

#[divan::bench(args = names())]
fn compile(bencher: Bencher, name: &str) {
    let datatype = datatype(name);
    bencher.bench_local(|| Form::compile(divan::black_box(&datatype), &Architecture::NATIVE));
}

#[divan::bench(args = names())]
fn encode(bencher: Bencher, name: &str) {
    let form = form(name);
    bencher.bench_local(|| divan::black_box(&form).encode());
}

#[divan::bench(args = names())]
fn decode(bencher: Bencher, name: &str) {
    let bytes = form(name).encode();
    bencher.bench_local(|| Form::decode(divan::black_box(&bytes), &Limits::default()));
}

#[divan::bench(args = names())]
fn lower(bencher: Bencher, name: &str) {
    let form = form(name);
    let native = Architecture::NATIVE;
    bencher.bench_local(|| divan::black_box(&form).lower(&native, &native));
}

/// Lowering for data of a big-endian machine.
#[divan::bench(args = names())]
fn lower_for_s390x(bencher: Bencher, name: &str) {
    let form = form(name);
    bencher
        .bench_local(|| divan::black_box(&form).lower(&Architecture::NATIVE, &Architecture::S390X));
}
