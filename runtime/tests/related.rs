//! Collective calls of ranks whose architectures have some types in common, and differ in others:
//! every call, on types of both sorts, gives the same results.

use std::ops::Range;

use longshore::job::{Checking, Routes};
use longshore::shipable::Basic;
use longshore::sim::{Options, run, run_shared};
use longshore::{
    Architecture, Class, Communicator, Datatype, Destination, Element, IN_PLACE, Op, Origin, Rank,
    Shipable, UserOp, c,
};

type A = Architecture;

/// The kinds of the ranks of a job. The first and second differ in long double only, as do the
/// big-endian ones in some types.
const JOBS: [&[A]; 5] = [
    &[A::X86_64, A::AARCH64, A::X86_64],
    &[A::AARCH64, A::AARCH64, A::X86_64, A::AARCH64],
    &[A::X86_64, A::S390X],
    &[A::S390X, A::PPC64, A::S390X],
    &[A::AARCH64, A::X86_64, A::S390X],
];

/// Runs a program on ranks of these kinds, simulated and in threads, with each route.
fn on(kinds: &[A], check: Option<Checking>, body: impl Fn(&Rank, &Communicator) + Sync) {
    let whole = |rank: Rank| {
        body(&rank, rank.world());
        rank.finalize().unwrap();
    };
    for routes in [Routes::Best, Routes::Message] {
        let ranks = kinds.len() as u32;
        let mut options = Options { architectures: kinds.to_vec(), routes, ..Options::default() };
        options.check = check.unwrap_or(options.check);
        run(ranks, &options, whole).unwrap();
        run_shared(ranks, &options, whole).unwrap();
    }
}

/// An element that stands for a number.
trait Item: Element {
    fn of(number: i64) -> Self;
    fn number(&self) -> i64;
}

macro_rules! items {
    ($($item:ty),*) => { $(
        impl Item for $item {
            fn of(number: i64) -> $item {
                number as $item
            }

            fn number(&self) -> i64 {
                *self as i64
            }
        }
    )* };
}

items!(i8, i32, f64);

impl Item for c::LongDouble {
    fn of(number: i64) -> c::LongDouble {
        c::LongDouble::from(number as f64)
    }

    fn number(&self) -> i64 {
        self.to_f64().unwrap() as i64
    }
}

impl Item for c::SignedChar {
    fn of(number: i64) -> c::SignedChar {
        c::SignedChar(number as i8)
    }

    fn number(&self) -> i64 {
        self.0.into()
    }
}

impl Item for c::Char {
    fn of(number: i64) -> c::Char {
        c::Char(number as u8)
    }

    fn number(&self) -> i64 {
        (self.0 as i8).into()
    }
}

/// A struct with a long double.
#[derive(Clone, Copy, Debug, Shipable)]
#[repr(C)]
struct Record {
    number: i32,
    wide: c::LongDouble,
}

impl Item for Record {
    fn of(number: i64) -> Record {
        Record { number: number as i32, wide: Item::of(-number) }
    }

    fn number(&self) -> i64 {
        assert_eq!(self.wide.number(), i64::from(-self.number));
        self.number.into()
    }
}

/// Bytes of elements that are read from the memory of their ranks, or go in several frames.
const LONG: usize = 36 << 10;

/// As many elements of 16 bytes, whose sums are computed by software, have no room on a board.
const WIDE: usize = 1100;

/// The numbers of elements of a short and of a long block.
fn counts<T>() -> [usize; 2] {
    [3, if size_of::<T>() < 16 { LONG / size_of::<T>() } else { WIDE }]
}

/// The element at a place of the block from one rank to another: sums of four fit an `i8`.
fn number(from: i32, to: i32, at: usize) -> i64 {
    (i64::from(7 * from + 3 * to) + at as i64) % 50 - 20
}

fn block<T: Item>(from: i32, to: i32, count: usize) -> Vec<T> {
    (0..count).map(|at| T::of(number(from, to, at))).collect()
}

fn zeros<T: Item>(count: usize) -> Vec<T> {
    vec![T::of(0); count]
}

#[track_caller]
fn assert_numbers<T: Item>(found: &[T], expected: impl Iterator<Item = i64>, what: &str) {
    let found: Vec<i64> = found.iter().map(Item::number).collect();
    assert!(found.iter().copied().eq(expected), "{what} of {}", std::any::type_name::<T>());
}

/// Calls that move data, from and to slices, which are in the machine's representation, and
/// buffers, which are in the rank's.
fn moves<T: Item>(rank: &Rank, world: &Communicator) {
    let (me, size) = (world.rank(), world.size());
    let ranks = size as usize;
    let all_of = |to: i32, count: usize| {
        (0..size).flat_map(move |from| (0..count).map(move |at| number(from, to, at)))
    };
    for count in counts::<T>() {
        let one = |from: i32| (0..count).map(move |at| number(from, 0, at));
        let mine = block::<T>(me, 0, count);
        let mut stored = rank.buffer::<T>(count).unwrap();
        stored.write(0, &mine).unwrap();
        for root in 0..size {
            let mut data = if me == root { mine.clone() } else { zeros(count) };
            world.bcast(&mut data, root).unwrap();
            assert_numbers(&data, one(root), "bcast");
            let mut data = rank.buffer::<T>(count).unwrap();
            if me == root {
                data.write(0, &mine).unwrap();
            }
            world.bcast(&mut data, root).unwrap();
            assert_numbers(&data.to_vec().unwrap(), one(root), "bcast");

            let mut all = zeros::<T>(if me == root { count * ranks } else { 0 });
            world.gather(&mine, &mut all, root).unwrap();
            let due = if me == root { ranks } else { 0 };
            assert_numbers(&all, all_of(0, count).take(count * due), "gather");
            let mut part = zeros::<T>(count);
            world.scatter(&all, &mut part, root).unwrap();
            assert_numbers(&part, one(me), "scatter");
        }
        let mut all = rank.buffer::<T>(count * ranks).unwrap();
        world.allgather_into(&stored, &mut all).unwrap();
        assert_numbers(&all.to_vec().unwrap(), all_of(0, count), "allgather");
        // A slice at one rank meets buffers at others.
        let mut mixed = zeros::<T>(count * ranks);
        match me % 2 {
            0 => world.allgather_into(&stored, &mut mixed).unwrap(),
            _ => world.allgather_into(&mine, &mut mixed).unwrap(),
        }
        assert_numbers(&mixed, all_of(0, count), "allgather");

        let given: Vec<T> = (0..size).flat_map(|to| block(me, to, count)).collect();
        let mut taken = zeros::<T>(count * ranks);
        world.alltoall(&given, &mut taken).unwrap();
        assert_numbers(&taken, all_of(me, count), "alltoall");
        taken.clone_from(&given);
        world.alltoall(IN_PLACE, &mut taken).unwrap();
        assert_numbers(&taken, all_of(me, count), "alltoall");

        let ranges: Vec<Range<i64>> =
            (0..size).map(|rank| i64::from(rank) * count as i64).map(|at| at..at + 1).collect();
        let firsts = (0..size).map(|from| number(from, me, 0));
        let mut taken = zeros::<T>(count * ranks);
        world.alltoallv((&given, &ranges), (&mut taken, &ranges)).unwrap();
        let found: Vec<T> = taken.iter().step_by(count).copied().collect();
        assert_numbers(&found, firsts, "alltoallv");
        let mut taken = zeros::<T>(count * ranks);
        world.allgatherv(&mine[..1], &mut taken, &ranges).unwrap();
        let found: Vec<T> = taken.iter().step_by(count).copied().collect();
        assert_numbers(&found, (0..size).map(|from| number(from, 0, 0)), "allgatherv");
    }
}

/// The number that an operation makes of the numbers of some ranks.
fn combined(op: Op, numbers: impl Iterator<Item = i64>) -> i64 {
    match op {
        Op::Sum => numbers.sum(),
        Op::Min => numbers.min().unwrap(),
        _ => numbers.max().unwrap(),
    }
}

/// Calls that combine data.
fn reductions<T: Item>(rank: &Rank, world: &Communicator) {
    let (me, size) = (world.rank(), world.size());
    let [short, long] = counts::<T>();
    for (count, op) in [(short, Op::Sum), (short, Op::Min), (short, Op::Max), (long, Op::Sum)] {
        let of_some = |ranks: Range<i32>, at| combined(op, ranks.map(|from| number(from, 0, at)));
        let of_all = || (0..count).map(|at| of_some(0..size, at));
        let mine = block::<T>(me, 0, count);
        let mut room = zeros::<T>(count);
        world.allreduce(&mine, &mut room, op).unwrap();
        assert_numbers(&room, of_all(), "allreduce");
        room.clone_from(&mine);
        world.allreduce(IN_PLACE, &mut room, op).unwrap();
        assert_numbers(&room, of_all(), "allreduce in place");
        let (mut stored, mut sums) =
            (rank.buffer::<T>(count).unwrap(), rank.buffer::<T>(count).unwrap());
        stored.write(0, &mine).unwrap();
        world.allreduce(&stored, &mut sums, op).unwrap();
        assert_numbers(&sums.to_vec().unwrap(), of_all(), "allreduce");
        let mut started = zeros::<T>(count);
        match me % 2 {
            0 => world.allreduce(&stored, &mut started, op).unwrap(),
            _ => world.allreduce(&mine, &mut started, op).unwrap(),
        }
        assert_numbers(&started, of_all(), "allreduce");
        for root in 0..size {
            let mut room = zeros::<T>(if me == root { count } else { 0 });
            world.reduce(&mine, &mut room, op, root).unwrap();
            assert_numbers(&room, of_all().take(if me == root { count } else { 0 }), "reduce");
        }
        world.scan(&mine, &mut room, op).unwrap();
        assert_numbers(&room, (0..count).map(|at| of_some(0..me + 1, at)), "scan");
        if me == 0 {
            world.exscan(&mine, &mut room, op).unwrap();
        } else {
            world.exscan(&mine, &mut room, op).unwrap();
            assert_numbers(&room, (0..count).map(|at| of_some(0..me, at)), "exscan");
        }
        let given: Vec<T> = (0..size).flat_map(|to| block(me, to, count)).collect();
        let ours = || (0..count).map(|at| combined(op, (0..size).map(|it| number(it, me, at))));
        world.reduce_scatter_block(&given, &mut room, op).unwrap();
        assert_numbers(&room, ours(), "reduce_scatter_block");
        let ranges: Vec<Range<i64>> = (0..i64::from(size))
            .map(|rank| rank * count as i64..(rank + 1) * count as i64)
            .collect();
        room.fill(T::of(0));
        world.reduce_scatter(&given, &mut room, &ranges, op).unwrap();
        assert_numbers(&room, ours(), "reduce_scatter");
    }
}

/// An operation of the program.
fn own_operation<T: Item>(_: &Rank, world: &Communicator) {
    let (me, size) = (world.rank(), world.size());
    let sum = UserOp::new(|low: &[T], high: &mut [T]| {
        for (low, high) in low.iter().zip(high) {
            *high = T::of(low.number() + high.number());
        }
    });
    for count in counts::<T>() {
        let mut room = zeros::<T>(count);
        world.allreduce(&block::<T>(me, 0, count), &mut room, &sum).unwrap();
        let due = |at| (0..size).map(|from| number(from, 0, at)).sum();
        assert_numbers(&room, (0..count).map(due), "allreduce of the program");
    }
}

#[test]
fn data_of_every_type_reach_every_kind() {
    for kinds in JOBS {
        on(kinds, None, |rank, world| {
            moves::<i32>(rank, world);
            moves::<f64>(rank, world);
            moves::<c::Char>(rank, world);
            moves::<c::LongDouble>(rank, world);
            moves::<Record>(rank, world);
        });
    }
}

#[test]
fn operands_of_every_type_are_combined_among_kinds() {
    for kinds in JOBS {
        on(kinds, None, |rank, world| {
            reductions::<i32>(rank, world);
            reductions::<f64>(rank, world);
            reductions::<i8>(rank, world);
            reductions::<c::SignedChar>(rank, world);
            reductions::<c::LongDouble>(rank, world);
            own_operation::<i32>(rank, world);
            own_operation::<Record>(rank, world);
        });
    }
}

/// Ranks may give datatypes of other layouts, of which the signatures are equal. The layout of one
/// of them isn't known on other architectures.
fn layouts<T: Item>(rank: &Rank, world: &Communicator, item: Basic) {
    let (me, size, item) = (world.rank(), world.size(), Datatype::from(item));
    for count in [4, 20_000] {
        let run = Datatype::contiguous(count, &item).unwrap();
        let gaps = Datatype::hvector(count, 1, 48, &item).unwrap();
        let datatype = rank.commit(if me == 0 { &run } else { &gaps }).unwrap();
        let (count, length) = (count as usize, datatype.extent() as usize);
        let mine = block::<T>(me, 0, count);
        // Numbers to elements of the datatype, and back.
        let mut packed = vec![0; 16 * count];
        let mut memory = vec![0u8; length];
        rank.alone().pack(&mine, &mut packed, &mut 0).unwrap();
        let laid = Destination::typed(&mut memory[..], 1, &datatype);
        rank.alone().unpack(&packed, &mut 0, laid).unwrap();
        let numbers = |memory: &[u8]| {
            let (mut packed, mut numbers) = (vec![0; 16 * count], zeros::<T>(count));
            let elements = Origin::typed(memory, 1, &datatype);
            rank.alone().pack(elements, &mut packed, &mut 0).unwrap();
            rank.alone().unpack(&packed, &mut 0, &mut numbers[..]).unwrap();
            numbers
        };
        let mut room = vec![0u8; length];
        let data = Origin::typed(&memory[..], 1, &datatype);
        let greatest = Destination::typed(&mut room[..], 1, &datatype);
        world.allreduce(data, greatest, Op::Max).unwrap();
        let due = |at| combined(Op::Max, (0..size).map(|from| number(from, 0, at)));
        assert_numbers(&numbers(&room), (0..count).map(due), "allreduce");
        for root in 0..size {
            let mut sent = if me == root { memory.clone() } else { vec![0; length] };
            world.bcast(Destination::typed(&mut sent[..], 1, &datatype), root).unwrap();
            let due = (0..count).map(|at| number(root, 0, at));
            assert_numbers(&numbers(&sent), due, "bcast");
        }
    }
}

#[test]
fn ranks_of_a_call_may_have_other_layouts() {
    for kinds in JOBS {
        on(kinds, None, |rank, world| {
            layouts::<i32>(rank, world, Basic::Int32);
            layouts::<c::LongDouble>(rank, world, Basic::LongDouble);
        });
    }
}

/// Ranks of unequal signatures, of which some types are copied and others converted, take part in
/// the same exchanges: they get errors, and none waits forever.
#[test]
fn types_that_differ_among_kinds_are_an_error() {
    for kinds in JOBS {
        on(kinds, Some(Checking::Off), |_, world| {
            let (me, size) = (world.rank(), world.size());
            let class = |outcome: longshore::Result<()>| outcome.err().map(|error| error.class());
            for (wrong, count) in (0..size).flat_map(|it| [(it, 3), (it, 12_000)]) {
                let (ints, wides) =
                    (block::<i32>(me, 0, count), block::<c::LongDouble>(me, 0, count));
                let (mut int, mut wide) = (ints.clone(), wides.clone());
                let is_wrong = me == wrong;
                let got = match is_wrong {
                    true => world.allreduce(&wides, &mut wide, Op::Sum),
                    false => world.allreduce(&ints, &mut int, Op::Sum),
                };
                assert_eq!(class(got), Some(Class::Type));
                for root in 0..size {
                    let got = match is_wrong {
                        true => world.reduce(&wides, &mut wide, Op::Sum, root),
                        false => world.reduce(&ints, &mut int, Op::Sum, root),
                    };
                    if me == root {
                        assert_eq!(class(got), Some(Class::Type));
                    }
                    let got = match is_wrong {
                        true => world.bcast(&mut wide, root),
                        false => world.bcast(&mut int, root),
                    };
                    let due = me != root && (is_wrong || root == wrong);
                    assert_eq!(class(got), due.then_some(Class::Type));
                }
                let mut all_ints = vec![0; count * size as usize];
                let mut all_wides = zeros::<c::LongDouble>(count * size as usize);
                let got = match is_wrong {
                    true => world.allgather_into(&wides, &mut all_wides),
                    false => world.allgather_into(&ints, &mut all_ints),
                };
                assert_eq!(class(got), Some(Class::Type));
                let got = match is_wrong {
                    true => world.alltoall(&all_wides.clone(), &mut all_wides),
                    false => world.alltoall(&all_ints.clone(), &mut all_ints),
                };
                assert_eq!(class(got), Some(Class::Type));
                world.barrier().unwrap();
            }
        });
    }
}

/// In C, MPI_MIN of MPI_CHAR is that of the integer that a char is at the calling rank. Those of
/// the two kinds are two types.
#[test]
fn extremes_of_chars_of_two_signs_are_refused() {
    let kinds = [A::X86_64, A::AARCH64];
    on(&kinds, Some(Checking::Off), |_, world| {
        for count in [3, LONG] {
            let got = match world.rank() {
                0 => {
                    let mut room = vec![c::SignedChar(0); count];
                    world.allreduce(&vec![c::SignedChar(-1); count], &mut room, Op::Min)
                }
                _ => {
                    let mut room = vec![c::UnsignedChar(0); count];
                    world.allreduce(&vec![c::UnsignedChar(1); count], &mut room, Op::Min)
                }
            };
            assert_eq!(got.unwrap_err().class(), Class::Type);
        }
    });
}
