//! Transfers by several threads: their results are those of one thread.

use std::ops::Range;

use shipable::program::{self, Pool};
use shipable::{Architecture, Committed, Datatype, Error, Partial, Program, View, ViewMut};

/// Threads that are started for each transfer. The parts run in reverse order on two threads.
struct Threads;

impl Pool for Threads {
    fn threads(&self) -> usize {
        2
    }

    fn run(&self, parts: usize, work: &(dyn Fn(usize) + Sync)) {
        assert!(parts > 1, "one part needs no threads");
        std::thread::scope(|scope| {
            scope.spawn(|| (0..parts).rev().step_by(2).for_each(work));
            (0..parts).rev().skip(1).step_by(2).for_each(work);
        });
    }
}

/// Types of over half a MiB, with the count of elements.
fn types() -> Vec<(Datatype, u64)> {
    let long = Datatype::long();
    let places: Vec<i64> = (0..60_000).map(|at| 3 * at + at * at % 2).collect();
    let lengths: Vec<i64> = (0..60_000).map(|at| 1 + at % 2).collect();
    let members = [Datatype::char(), long.clone(), Datatype::short()];
    let pair = Datatype::struct_(&[1, 2, 3], &[0, 8, 24], &members).unwrap();
    let column = Datatype::vector(100, 1, 50, &long).unwrap();
    vec![
        (Datatype::vector(80_000, 1, 2, &long).unwrap(), 1),
        (Datatype::vector(1000, 3, -200, &long).unwrap(), 30),
        (Datatype::indexed_block(1, &places, &long).unwrap(), 2),
        (Datatype::indexed(&lengths, &places, &long).unwrap(), 1),
        (pair, 30_000),
        (Datatype::resized(0, 40_000, &column).unwrap(), 800),
        (Datatype::contiguous(80_000, &long).unwrap(), 1),
    ]
}

fn memory(range: &Range<i64>, value: impl Fn(usize) -> u8) -> (Vec<u8>, i64) {
    let length = range.end.max(0) - range.start.min(0);
    ((0..length as usize).map(value).collect(), -range.start.min(0))
}

/// The values of the longs fit four bytes.
fn small(at: usize) -> u8 {
    if at % 8 < 3 { (at * 7 % 251) as u8 } else { 0 }
}

fn views<'a>(bytes: &'a [u8], zero: i64) -> View<'a> {
    View::new(bytes).shifted(zero).unwrap()
}

fn into<'a>(bytes: &'a mut [u8], zero: i64) -> ViewMut<'a> {
    ViewMut::new(bytes).shifted(zero).unwrap()
}

fn program(committed: &Committed, stream: Architecture) -> shipable::SharedProgram {
    committed.program(&stream).unwrap()
}

#[test]
fn several_threads_move_what_one_moves() {
    let streams = [Architecture::X86_64, Architecture::S390X, Architecture::WIN64];
    for (datatype, count) in types() {
        let committed = Committed::new(&datatype, &Architecture::X86_64).unwrap();
        for stream in streams {
            let program: &Program = &program(&committed, stream);
            let range = program.range(count).unwrap();
            let (from, zero) = memory(&range, small);
            let length = program.stream_length(count).unwrap() as usize;
            let (mut one, mut many) = (vec![0; length], vec![1; length]);
            program.pack(count, views(&from, zero), 0, &mut one).unwrap();
            let packed = program.pack_in(&Threads, count, views(&from, zero), 0, &mut many);
            assert_eq!(packed.unwrap(), length);
            assert!(one == many, "packing {datatype} for {stream}");

            let (mut one, _) = memory(&range, |_| 9);
            let mut back = one.clone();
            let partial = &mut Partial::default();
            program.unpack(count, into(&mut one, zero), 0, &many, partial).unwrap();
            program.unpack_in(&Threads, count, into(&mut back, zero), 0, &many, partial).unwrap();
            assert!(one == back, "unpacking {datatype} from {stream}");
            // From a place within the transfer.
            let middle = length / 3;
            let part = program.unpack_in(
                &Threads,
                count,
                into(&mut back, zero),
                0,
                &many[..middle],
                partial,
            );
            part.unwrap();
            let rest = &many[middle..];
            program
                .unpack_in(&Threads, count, into(&mut back, zero), middle as u64, rest, partial)
                .unwrap();
            assert!(one == back, "unpacking {datatype} in two");
        }
        let native = committed.native();
        let range = native.range(count).unwrap();
        let (from, zero) = memory(&range, small);
        let (mut one, _) = memory(&range, |_| 9);
        let mut many = one.clone();
        native.mirror(count, views(&from, zero), into(&mut one, zero)).unwrap();
        native.mirror_in(&Threads, count, views(&from, zero), into(&mut many, zero)).unwrap();
        assert!(one == many, "copying {datatype}");
    }
}

#[test]
fn several_threads_copy_between_types() {
    let types: Vec<_> = types().into_iter().map(|(datatype, _)| datatype).collect();
    let of = |datatype: &Datatype, copies: i64| {
        let datatype = Datatype::contiguous(copies, datatype).unwrap();
        Committed::new(&datatype, &Architecture::X86_64).unwrap()
    };
    let long = Datatype::long();
    let every_third = Datatype::vector(120_000, 1, 3, &long).unwrap();
    let pairs = [
        (of(&types[2], 2), of(&every_third, 1)),
        (of(&Datatype::contiguous(120_000, &long).unwrap(), 1), of(&types[2], 2)),
        (of(&types[2], 2), of(&Datatype::contiguous(120_000, &long).unwrap(), 1)),
    ];
    for (source, target) in pairs {
        for memory_of_target in [Architecture::X86_64, Architecture::S390X] {
            let target = Committed::new(target.datatype(), &memory_of_target).unwrap();
            let (near, far) = (source.native(), program(&target, Architecture::X86_64));
            let (from, zero) = memory(&near.range(1).unwrap(), small);
            let (mut one, to_zero) = memory(&far.range(1).unwrap(), |_| 9);
            let mut many = one.clone();
            program::copy(near, 1, views(&from, zero), &far, 1, into(&mut one, to_zero)).unwrap();
            let from = views(&from, zero);
            program::copy_in(&Threads, (near, 1), from, (&far, 1), into(&mut many, to_zero))
                .unwrap();
            assert!(one == many, "{} to {}", source.datatype(), target.datatype());
        }
    }
}

#[test]
fn nothing_after_a_refused_value_is_written() {
    for (datatype, count) in types() {
        // Memory with longs of four bytes, and a stream with longs of eight.
        let committed = Committed::new(&datatype, &Architecture::WIN64).unwrap();
        let unpacking: &Program = &program(&committed, Architecture::X86_64);
        let length = unpacking.stream_length(count).unwrap() as usize;
        let range = unpacking.range(count).unwrap();
        let wide = Committed::new(&datatype, &Architecture::X86_64).unwrap();
        let (from, wide_zero) = memory(&wide.native().range(count).unwrap(), small);
        let mut good = vec![0; length];
        wide.native().pack(count, views(&from, wide_zero), 0, &mut good).unwrap();
        for places in [&[0.01][..], &[0.5], &[0.99], &[0.3, 0.6, 0.9]] {
            let mut bad = good.clone();
            for place in places {
                // A whole value of ones is -1 in a long; the next byte makes it too large.
                let at = (length as f64 * place) as usize;
                bad[at..at + 16].copy_from_slice(&[0x55; 16]);
            }
            let (mut one, zero) = memory(&range, |at| at as u8);
            let mut many = one.clone();
            let partial = &mut Partial::default();
            let refused =
                unpacking.unpack(count, into(&mut one, zero), 0, &bad, partial).unwrap_err();
            let found =
                unpacking.unpack_in(&Threads, count, into(&mut many, zero), 0, &bad, partial);
            assert!(matches!(refused, Error::Conversion(_)), "{refused}");
            assert_eq!(found.unwrap_err().to_string(), refused.to_string());
            assert!(one == many, "{datatype}, {places:?}");
        }
        // Packing the same values for the narrow stream.
        let packing: &Program = &program(&wide, Architecture::WIN64);
        let mut from = from;
        let middle = from.len() / 2;
        from[middle..middle + 64].fill(0x55);
        let mut one = vec![3; packing.stream_length(count).unwrap() as usize];
        let mut many = one.clone();
        let view = views(&from, wide_zero);
        let refused = packing.pack(count, view, 0, &mut one);
        let found = packing.pack_in(&Threads, count, view, 0, &mut many);
        assert_eq!(found.map_err(|e| e.to_string()), refused.map_err(|e| e.to_string()));
        assert!(one == many, "packing {datatype}");
    }
}
