//! Collective calls between like and unlike ranks, on communicators of many sizes, compared with
//! serial results.

#[path = "collectives/errors.rs"]
mod errors;
mod support;

use std::ops::Range;

use longshore::job::{Checking, Routes};
use longshore::sim::{Options, run, run_shared};
use longshore::{
    Architecture, Class, Communicator, Datatype, Destination, IN_PLACE, Op, Operator, Origin, Rank,
    UserOp,
};

use support::crowd;

const KINDS: [Architecture; 4] =
    [Architecture::S390X, Architecture::NATIVE, Architecture::I686, Architecture::M68K];

/// Two kinds that differ in long double only.
const RELATED: [Architecture; 2] = [Architecture::X86_64, Architecture::AARCH64];

/// Two kinds that differ in most types.
const UNLIKE: [Architecture; 2] = [Architecture::S390X, Architecture::X86_64];

/// Runs a program on communicators of 1 to 9 ranks.
fn everywhere(body: impl Fn(&Rank, &Communicator) + Sync) {
    everywhere_with(Options::default().check, body);
}

fn everywhere_with(check: Checking, body: impl Fn(&Rank, &Communicator) + Sync) {
    on_ranks((1..10).chain([crowd(10)]), check, body);
}

/// Runs a program on communicators of so many ranks, like and unlike.
fn on_ranks(
    ranks: impl Iterator<Item = u32>,
    check: Checking,
    body: impl Fn(&Rank, &Communicator) + Sync,
) {
    let options = Options { check, ..Options::default() };
    let whole = |rank: Rank| {
        body(&rank, rank.world());
        // In reverse order, so that ranks differ from those of the job.
        let turned = rank.world().split(Some(0), -rank.world().rank()).unwrap().unwrap();
        body(&rank, &turned);
        rank.finalize().unwrap();
    };
    for ranks in ranks {
        let unlike = KINDS.into_iter().cycle().take(ranks as usize).collect();
        let unlike = Options { architectures: unlike, routes: Routes::Message, ..options.clone() };
        run(ranks, &unlike, whole).unwrap();
        run(ranks, &Options { seed: 7, ..options.clone() }, whole).unwrap();
    }
    run_shared(crowd(3), &options, whole).unwrap();
    for kinds in [RELATED, UNLIKE] {
        let architectures = kinds.into_iter().cycle().take(5).collect();
        let options = Options { architectures, ..options.clone() };
        run(5, &options, whole).unwrap();
        run_shared(5, &options, whole).unwrap();
    }
}

#[test]
fn data_reach_every_rank_from_every_root() {
    everywhere(|_, world| {
        let (me, size) = (world.rank(), world.size());
        for root in 0..size {
            let mut data = [if me == root { f64::from(root) + 0.5 } else { -1.0 }; 3];
            world.bcast(&mut data, root).unwrap();
            assert_eq!(data, [f64::from(root) + 0.5; 3]);

            let mut all = vec![-1; if me == root { 2 * size as usize } else { 0 }];
            world.gather(&[me, 10 * me], &mut all, root).unwrap();
            assert!(all.chunks(2).zip(0..).all(|(block, rank)| block == [rank, 10 * rank]));

            let dealt: Vec<i32> = (0..all.len() as i32).map(|at| 100 * root + at).collect();
            let mut mine = [-1; 2];
            world.scatter(&dealt, &mut mine, root).unwrap();
            assert_eq!(mine, [100 * root + 2 * me, 100 * root + 2 * me + 1]);
        }
        assert_eq!(world.allgather(&[me]).unwrap(), (0..size).collect::<Vec<_>>());
        let given: Vec<i32> = (0..size).map(|to| 100 * me + to).collect();
        let mut taken = vec![-1; size as usize];
        world.alltoall(&given, &mut taken).unwrap();
        assert_eq!(taken, (0..size).map(|from| 100 * from + me).collect::<Vec<_>>());
    });
}

#[test]
fn reductions_combine_in_the_order_of_ranks() {
    everywhere(|_, world| {
        let (me, size) = (world.rank(), world.size());
        let sum = |to: i32| (0..to).sum::<i32>();
        for root in 0..size {
            let mut total = [-1; 2];
            world.reduce(&[me, 2 * me], &mut total, Op::Sum, root).unwrap();
            let due = if me == root { [sum(size), 2 * sum(size)] } else { [-1; 2] };
            assert_eq!(total, due);
        }
        let mut greatest = [0.0];
        world.allreduce(&[f64::from(me)], &mut greatest, Op::Max).unwrap();
        assert_eq!(greatest, [f64::from(size - 1)]);
        let mut up_to = [-1];
        world.scan(&[me], &mut up_to, Op::Sum).unwrap();
        assert_eq!(up_to, [sum(me + 1)]);
        let mut before = [-1];
        world.exscan(&[me], &mut before, Op::Sum).unwrap();
        assert_eq!(before, [if me == 0 { -1 } else { sum(me) }]);
        // Equal bits on all ranks: those of the binomial tree of ranks.
        let part = [1.0 / f64::from(me + 3)];
        let (mut whole, mut at_root) = ([0.0f64], [0.0f64]);
        world.allreduce(&part, &mut whole, Op::Sum).unwrap();
        world.reduce(&part, &mut at_root, Op::Sum, size - 1).unwrap();
        assert!(me != size - 1 || whole == at_root);
        let bits = world.allgather(&[whole[0].to_bits()]).unwrap();
        assert!(bits.iter().all(|other| *other == bits[0]));
    });
}

/// Affine maps x -> a x + b, whose composition isn't commutative. They are modulo 2^64, since the
/// maps of many ranks compose to large ones.
fn compose(left: &[[i64; 2]], right: &mut [[i64; 2]]) {
    for (f, g) in left.iter().zip(right) {
        *g = [g[0].wrapping_mul(f[0]), g[0].wrapping_mul(f[1]).wrapping_add(g[1])];
    }
}

#[test]
fn operations_of_the_program_combine_in_the_order_of_ranks() {
    everywhere(|_, world| {
        let (me, size) = (world.rank(), world.size());
        let op = UserOp::new(compose);
        let of = |rank: i32| [[2, i64::from(rank)], [1, 7]];
        let due = |ranks: Range<i32>| {
            ranks.map(of).reduce(|left, mut right| {
                compose(&left, &mut right);
                right
            })
        };
        for root in 0..size {
            let mut total = [[-1; 2]; 2];
            world.reduce(&of(me), &mut total, &op, root).unwrap();
            assert_eq!(total, if me == root { due(0..size).unwrap() } else { [[-1; 2]; 2] });
        }
        let mut total = of(me);
        world.allreduce(IN_PLACE, &mut total, &op).unwrap();
        assert_eq!(total, due(0..size).unwrap());
        let mut up_to = [[-1; 2]; 2];
        world.scan(&of(me), &mut up_to, &op).unwrap();
        assert_eq!(Some(up_to), due(0..me + 1));
        let mut before = [[-1; 2]; 2];
        world.exscan(&of(me), &mut before, &op).unwrap();
        assert_eq!(before, due(0..me).unwrap_or([[-1; 2]; 2]));
        // A block of the result for each rank.
        let all: Vec<_> = (0..size).map(|block| [i64::from(me + 2), i64::from(block)]).collect();
        let total = |block: i32| {
            (0..size).map(|rank| [[i64::from(rank + 2), i64::from(block)]]).reduce(|f, mut g| {
                compose(&f, &mut g);
                g
            })
        };
        let mut mine = [[-1; 2]];
        world.reduce_scatter_block(&all, &mut mine, &op).unwrap();
        assert_eq!(Some(mine), total(me));
        let mut room = all.clone();
        world.reduce_scatter_block(IN_PLACE, &mut room, &op).unwrap();
        assert_eq!(Some([room[0]]), total(me));
        assert!(room[1..] == all[1..]);
        // Rank 0 gets nothing, and the last rank the first two blocks.
        let range = |rank: i32| match (rank, size) {
            (_, 1) => 0..1,
            (0, _) => 0..0,
            (rank, size) if rank == size - 1 => 0..2,
            (rank, _) => i64::from(rank + 1)..i64::from(rank + 2),
        };
        let ranges: Vec<_> = (0..size).map(range).collect();
        let own = range(me);
        let mut mine = vec![[-1; 2]; (own.end - own.start) as usize];
        world.reduce_scatter(&all, &mut mine, &ranges, &op).unwrap();
        assert_eq!(mine, own.map(|block| total(block as i32).unwrap()[0]).collect::<Vec<_>>());

        let mut local = of(me);
        world.reduce_local(&of(5), &mut local, &op).unwrap();
        let mut due = of(me);
        compose(&of(5), &mut due);
        assert_eq!(local, due);

        let error = world.allreduce(&[1.5], &mut [0.0], &op).unwrap_err();
        assert_eq!(error.class(), Class::Op);
        assert!(error.to_string().contains("elements of [i64; 2]"), "{error}");
    });
}

/// Ranks of one host exchange strings by a board, in which the longest have no room.
#[test]
fn data_of_any_length_reach_the_ranks_that_need_them() {
    /// Elements of the longest block that is posted, of one more, and just too many for a slot of 2
    /// and of 8 ranks.
    const LENGTHS: [usize; 6] = [0, 1, 2048, 2049, 4200, 17_000];
    on_ranks([2, 8].into_iter(), Options::default().check, |_, world| {
        let (me, size) = (world.rank(), world.size());
        let last = size - 1;
        let value =
            |from: i32, to: i32, at: usize| i64::from(from) << 40 | i64::from(to) << 30 | at as i64;
        let add = UserOp::new(|low: &[i64], high: &mut [i64]| {
            low.iter().zip(high).for_each(|(low, high)| *high += low);
        });
        for length in LENGTHS {
            let block = |from, to| (0..length).map(move |at| value(from, to, at));
            let mine = Vec::from_iter(block(me, 0));
            let sum = |ranks: Range<i32>| {
                let at = |at| ranks.clone().map(|from| value(from, 0, at)).sum::<i64>();
                Vec::from_iter((0..length).map(at))
            };
            let [total, before, up_to] = [0..size, 0..me, 0..me + 1].map(sum);
            for op in [Operator::from(Op::Sum), Operator::from(&add)] {
                let mut room = vec![-1; length];
                world.reduce(&mine, &mut room, op, last).unwrap();
                assert!(me != last || room == total, "reduce of {length} by {op:?}");
                world.allreduce(&mine, &mut room, op).unwrap();
                assert!(room == total, "allreduce of {length} by {op:?}");
                world.scan(&mine, &mut room, op).unwrap();
                assert!(room == up_to, "scan of {length} by {op:?}");
                room.fill(-1);
                world.exscan(&mine, &mut room, op).unwrap();
                assert!(me == 0 || room == before, "exscan of {length} by {op:?}");
            }
            if length > LENGTHS[4] {
                continue;
            }
            let mut room = if me == last { mine.clone() } else { vec![-1; length] };
            world.bcast(&mut room, last).unwrap();
            assert!(room.iter().copied().eq(block(last, 0)), "bcast of {length}");
            let all = Vec::from_iter((0..size).flat_map(|from| block(from, 0)));
            let mut room = vec![-1; all.len()];
            world.allgather_into(&mine, &mut room).unwrap();
            assert!(room == all, "allgather of {length}");
            let mut room = vec![-1; if me == last { all.len() } else { 0 }];
            world.gather(&mine, &mut room, last).unwrap();
            assert!(me != last || room == all, "gather of {length}");
            let given = Vec::from_iter((0..size).flat_map(|to| block(me, to)));
            let mut room = vec![-1; length];
            let dealt = if me == last { &given[..] } else { &[] };
            world.scatter(dealt, &mut room, last).unwrap();
            assert!(room.iter().copied().eq(block(last, me)), "scatter of {length}");
            let mut room = vec![-1; all.len()];
            world.alltoall(&given, &mut room).unwrap();
            let due = (0..size).flat_map(|from| block(from, me));
            assert!(room.into_iter().eq(due), "alltoall of {length}");
        }
    });
}

/// Some ranks have their data in one run of memory, and post them from there. Others have gaps
/// between theirs, and pack them.
#[test]
fn data_with_gaps_and_without_meet_in_one_call() {
    everywhere(|rank, world| {
        let (me, size) = (world.rank(), world.size());
        // Pairs of which every second one is left out, at odd ranks.
        let step = if me % 2 == 1 { 4 } else { 2 };
        let type_of = |pairs: i64| {
            let pairs = Datatype::vector(pairs, 2, step, &Datatype::int()).unwrap();
            rank.commit(&pairs).unwrap()
        };
        let (one, each) = (type_of(1), type_of(size.into()));
        let room = |pairs: i32| rank.buffer::<i32>((pairs as i64 * step) as usize).unwrap();
        let fill = |pairs: i32, from: i32| {
            let mut memory = room(pairs);
            for pair in 0..pairs {
                memory.write(pair as usize * step as usize, &[from + pair, -from - pair]).unwrap();
            }
            memory
        };
        let check = |memory: &longshore::Buffer<i32>, due: &[i32], what: &str| {
            for (pair, due) in due.iter().enumerate() {
                let at = pair * step as usize;
                let found = [memory.get(at).unwrap(), memory.get(at + 1).unwrap()];
                assert_eq!(found, [*due, -due], "{what}, rank {me} of {size}, pair {pair}");
            }
        };
        let ranks: Vec<i32> = (0..size).collect();
        for root in 0..size {
            let mut memory = fill(1, if me == root { 40 + root } else { 0 });
            world.bcast(Destination::typed(&mut memory, 1, &one), root).unwrap();
            check(&memory, &[40 + root], "bcast");
            let (mine, mut all) = (fill(1, me), room(size));
            let mine = Origin::typed(&mine, 1, &one);
            // A type for all pairs is one element: a gather takes one for each rank.
            let pair =
                rank.commit(&Datatype::resized(0, 4 * step, one.datatype()).unwrap()).unwrap();
            let to = Destination::typed(&mut all, size.into(), &pair);
            world.gather(mine, to, root).unwrap();
            if me == root {
                check(&all, &ranks, "gather");
            }
            let (dealt, mut memory) = (fill(size, 70), room(1));
            let from = Origin::typed(&dealt, size.into(), &pair);
            world.scatter(from, Destination::typed(&mut memory, 1, &one), root).unwrap();
            check(&memory, &[70 + me], "scatter");
            let (operands, mut total) = (fill(size, me), room(size));
            let (from, to) =
                (Origin::typed(&operands, 1, &each), Destination::typed(&mut total, 1, &each));
            world.reduce(from, to, Op::Sum, root).unwrap();
            let sums: Vec<i32> =
                ranks.iter().map(|at| ranks.iter().map(|of| of + at).sum()).collect();
            if me == root {
                check(&total, &sums, "reduce");
            }
            let mut all = room(size);
            let to = Destination::typed(&mut all, size.into(), &pair);
            world.allgather_into(mine, to).unwrap();
            check(&all, &ranks, "allgather");
            let (given, mut taken) = (fill(size, 100 * me), room(size));
            let from = Origin::typed(&given, size.into(), &pair);
            world.alltoall(from, Destination::typed(&mut taken, size.into(), &pair)).unwrap();
            check(
                &taken,
                &ranks.iter().map(|from| 100 * from + me).collect::<Vec<_>>(),
                "alltoall",
            );
            let mut total = room(size);
            world
                .allreduce(
                    from_each(&operands, &each),
                    Destination::typed(&mut total, 1, &each),
                    Op::Sum,
                )
                .unwrap();
            check(&total, &sums, "allreduce");
            let mut total = room(size);
            world
                .scan(
                    from_each(&operands, &each),
                    Destination::typed(&mut total, 1, &each),
                    Op::Sum,
                )
                .unwrap();
            let up_to: Vec<i32> = ranks.iter().map(|at| (0..=me).map(|of| of + at).sum()).collect();
            check(&total, &up_to, "scan");
            let mut mine = room(1);
            let from = Origin::typed(&operands, size.into(), &pair);
            let to = Destination::typed(&mut mine, 1, &pair);
            world.reduce_scatter_block(from, to, Op::Sum).unwrap();
            check(&mine, &sums[me as usize..][..1], "reduce_scatter_block");
        }
    });
}

fn from_each<'a>(memory: &'a longshore::Buffer<i32>, each: &'a longshore::Type) -> Origin<'a> {
    Origin::typed(memory, 1, each)
}

/// A rank whose string has no room on the board reads none there. Its slots become free all the
/// same.
#[test]
fn a_rank_without_room_on_the_board_waits_for_no_meeting() {
    on_ranks([2, 3].into_iter(), Options::default().check, |_, world| {
        let (me, size) = (world.rank(), world.size());
        let sum = || {
            let mut total = [0];
            world.allreduce(&[1], &mut total, Op::Sum).unwrap();
            assert_eq!(total, [size]);
        };
        // Blocks of one number, but for the own one of the last rank, which stays in place.
        let length = |rank: i32| if rank == me && me == size - 1 { 60_000 } else { 1 };
        let mut start = 0;
        let ranges: Vec<Range<i64>> = (0..size)
            .map(|rank| {
                let end = start + length(rank);
                std::mem::replace(&mut start, end)..end
            })
            .collect();
        for round in 0..6 {
            (0..round % 3).for_each(|_| sum());
            let mut room = vec![me; start as usize];
            world.alltoallv((IN_PLACE, &[]), (&mut room, &ranges)).unwrap();
            assert!((0..).zip(&ranges).all(|(rank, range)| room[range.start as usize] == rank));
            sum();
        }
    });
}

/// A board has room for two strings of a rank. Ranks that others don't wait for go ahead.
#[test]
fn ranks_that_go_ahead_overwrite_nothing() {
    on_ranks([1, 2, 3, 6].into_iter(), Options::default().check, |_, world| {
        let (me, size) = (world.rank(), world.size());
        for round in 0..50 {
            let root = if round < 20 { 0 } else { (round / 3) % size };
            let mut value = [if me == root { round } else { -1 }; 3];
            world.bcast(&mut value, root).unwrap();
            assert_eq!(value, [round; 3]);
            let mut sum = [0];
            world.reduce(&[me + round], &mut sum, Op::Sum, root).unwrap();
            let due = (0..size).map(|rank| rank + round).sum::<i32>();
            assert!(me != root || sum == [due]);
            let mut before = [-1];
            world.exscan(&[round], &mut before, Op::Sum).unwrap();
            assert_eq!(before, [if me == 0 { -1 } else { me * round }]);
            if round % 7 == 0 {
                world.barrier().unwrap();
            }
        }
    });
}

#[test]
fn each_pair_of_ranks_exchanges_data_of_its_own_type() {
    everywhere(|_, world| {
        let (me, size) = (world.rank(), world.size());
        // From rank i to rank j: i + j numbers, as doubles if i + j is odd.
        let (ints, reals) = (vec![me; 2 * size as usize], vec![f64::from(me); 2 * size as usize]);
        let give = |to: i32| match ((me + to) as usize, (me + to) % 2) {
            (count, 0) => Origin::from(&ints[..count]),
            (count, _) => Origin::from(&reals[..count]),
        };
        let mut rooms: Vec<_> = (0..size)
            .map(|from| (vec![-1; (me + from) as usize], vec![-1.0; (me + from) as usize]))
            .collect();
        fn take<'r>(odd: bool, (ints, reals): &'r mut (Vec<i32>, Vec<f64>)) -> Destination<'r> {
            if odd { Destination::from(&mut reals[..]) } else { Destination::from(&mut ints[..]) }
        }
        let taken = (0..).zip(&mut rooms).map(|(from, room)| take((me + from) % 2 == 1, room));
        world.alltoallw((0..size).map(give), taken).unwrap();
        for (from, (ints, reals)) in (0..).zip(&rooms) {
            let even = (me + from) % 2 == 0;
            assert!(ints.iter().all(|got| *got == if even { from } else { -1 }));
            assert!(reals.iter().all(|got| *got == if even { -1.0 } else { f64::from(from) }));
        }
        let error = world.alltoallw([], []).unwrap_err();
        assert!(error.to_string().contains(&format!("for {size} ranks")), "{error}");
    });
}

#[test]
fn derived_types_are_gathered_scattered_and_reduced() {
    everywhere(|rank, world| {
        let (me, size) = (world.rank(), world.size());
        // The second column of a matrix of 3 x 2, in the rank's own representation.
        let column = Datatype::vector(3, 1, 2, &Datatype::double()).unwrap();
        let column = rank.commit(&column).unwrap();
        let mut matrix = rank.buffer::<f64>(6).unwrap();
        matrix.write(0, &[0.0, f64::from(me), 0.0, 1.0, 0.0, 2.0]).unwrap();
        let mut sums = rank.buffer::<f64>(6).unwrap();
        let to = Destination::typed(&mut sums, 1, &column);
        world.allreduce(Origin::typed(&matrix, 1, &column).at(8), to, Op::Sum).unwrap();
        let (total, n) = (f64::from((0..size).sum::<i32>()), f64::from(size));
        assert_eq!(sums.to_vec().unwrap(), [total, 0.0, n, 0.0, 2.0 * n, 0.0]);
        let mut all = vec![0.0; 3 * size as usize];
        world.allgather_into(Origin::typed(&matrix, 1, &column).at(8), &mut all).unwrap();
        assert!(all.chunks(3).zip(0..).all(|(of, rank)| of == [f64::from(rank), 1.0, 2.0]));
        let record = Datatype::struct_(&[1, 1], &[0, 8], &[Datatype::int(), Datatype::double()]);
        let record = rank.commit(&record.unwrap()).unwrap();
        let bytes = [0u8; 16];
        let mixed = Origin::typed(&bytes[..], 1, &record);
        let error = world.allreduce(mixed, &mut [0.0], Op::Sum).unwrap_err();
        assert_eq!(error.class(), Class::Type);
    });
}

#[test]
fn in_place_data_are_taken_from_the_receive_buffer() {
    everywhere(|_, world| {
        let (me, size) = (world.rank(), world.size());
        let sum = |to: i32| (0..to).sum::<i32>();
        for root in 0..size {
            let mut all = vec![-1; if me == root { size as usize } else { 0 }];
            if me == root {
                all[me as usize] = 10 * me;
                world.gather(IN_PLACE, &mut all, root).unwrap();
                assert!(all.iter().zip(0..).all(|(value, rank)| *value == 10 * rank));
                world.scatter(&all, IN_PLACE, root).unwrap();
                let mut total = [me];
                world.reduce(IN_PLACE, &mut total, Op::Sum, root).unwrap();
                assert_eq!(total, [sum(size)]);
            } else {
                world.gather(&[10 * me], &mut all, root).unwrap();
                let mut mine = [-1];
                world.scatter(&all, &mut mine, root).unwrap();
                assert_eq!(mine, [10 * me]);
                world.reduce(&[me], &mut all, Op::Sum, root).unwrap();
            }
        }
        let mut all = vec![-1; 2 * size as usize];
        all[2 * me as usize..][..2].copy_from_slice(&[me, -me]);
        world.allgather_into(IN_PLACE, &mut all).unwrap();
        assert!(all.chunks(2).zip(0..).all(|(block, rank)| block == [rank, -rank]));
        let mut parts: Vec<i32> = (0..size).map(|to| 100 * me + to).collect();
        world.alltoall(IN_PLACE, &mut parts).unwrap();
        assert_eq!(parts, (0..size).map(|from| 100 * from + me).collect::<Vec<_>>());
        let (mut total, mut up_to, mut before) = ([me], [me], [me]);
        world.allreduce(IN_PLACE, &mut total, Op::Sum).unwrap();
        world.scan(IN_PLACE, &mut up_to, Op::Sum).unwrap();
        world.exscan(IN_PLACE, &mut before, Op::Sum).unwrap();
        assert_eq!((total, up_to, before), ([sum(size)], [sum(me + 1)], [sum(me)]));
        let error = world.send(IN_PLACE, me, 0).unwrap_err();
        assert_eq!(error.class(), Class::Buffer);
        // In place at a rank that isn't the root.
        if size > 1 {
            let mut room = [0; 9];
            let data = if me == 0 { Origin::from(&[1]) } else { IN_PLACE.into() };
            let outcome = world.reduce(data, &mut room[..1], Op::Sum, 0);
            assert_eq!(outcome.unwrap_err().class(), Class::Buffer);
        }
    });
}

#[test]
fn vector_variants_take_a_range_for_each_rank() {
    everywhere(|rank, world| {
        let (me, size) = (world.rank(), world.size());
        // Rank r has r elements (rank 0 none). Blocks are in reverse rank order with a gap of one
        // element.
        let start = |rank: i32| i64::from((rank + 1..size).map(|later| later + 1).sum::<i32>());
        let ranges: Vec<_> =
            (0..size).map(|rank| start(rank)..start(rank) + i64::from(rank)).collect();
        let length = start(0) as usize;
        let expected = {
            let mut expected = vec![-1.0; length];
            for (range, rank) in ranges.iter().zip(0..size) {
                expected[range.start as usize..range.end as usize].fill(f64::from(rank));
            }
            expected
        };
        let mine = vec![f64::from(me); me as usize];
        for root in 0..size {
            // In the rank's own representation, with an explicit type.
            let mut room = rank.buffer::<f64>(length).unwrap();
            room.write(0, &vec![-1.0; length]).unwrap();
            world.gatherv(&mine, &mut room, &ranges, root).unwrap();
            let unset = vec![-1.0; length];
            assert_eq!(room.to_vec().unwrap(), if me == root { &expected } else { &unset }[..]);
            let mut back = vec![-1.0; me as usize];
            world.scatterv(&room, &ranges, &mut back, root).unwrap();
            assert_eq!(back, mine);
        }
        let mut room = vec![-1.0; length];
        let own = &ranges[me as usize];
        room[own.start as usize..own.end as usize].copy_from_slice(&mine);
        world.allgatherv(IN_PLACE, &mut room, &ranges).unwrap();
        assert_eq!(room, expected);
        // Rank i sends i + j elements to rank j.
        let given: Vec<_> = (0..size).map(|to| i64::from(to)..i64::from(me + 2 * to)).collect();
        let data: Vec<i32> = (0..3 * size).map(|at| 1000 * me + at).collect();
        let before = |from: i32| i64::from((0..from).map(|from| from + me).sum::<i32>());
        let taken: Vec<_> = (0..size).map(|from| before(from)..before(from + 1)).collect();
        let mut room = vec![-1; before(size) as usize];
        world.alltoallv((&data, &given), (&mut room, &taken)).unwrap();
        let due = (0..size).flat_map(|from| (me..from + 2 * me).map(move |at| 1000 * from + at));
        assert_eq!(room, due.collect::<Vec<_>>());
        // Ranges out of bounds, ranges with end before start, and too few ranges.
        let mut room = [0.0];
        for wrong in [
            vec![0..2; size as usize],
            vec![Range { start: 1, end: 0 }; size as usize],
            vec![-1..0; 9],
        ] {
            let outcome = world.allgatherv(&[1.0], &mut room, &wrong);
            assert_eq!(outcome.unwrap_err().class(), Class::Count);
        }
        let outcome = world.scatterv(&[1.0], &[], &mut room, 0);
        assert_eq!(outcome.unwrap_err().class(), Class::Count);
        world.barrier().unwrap();
    });
}

/// The blocks of a matrix often have a type whose extent is below its true one. Only elements of
/// the ranges count, not those between.
#[test]
fn ranges_may_lie_in_the_gaps_of_each_other() {
    everywhere(|rank, world| {
        let (me, size) = (world.rank(), world.size());
        // A rank's block of a matrix of two rows: two columns. The next block begins two columns
        // later, where the second element of the type would overlap the first.
        let block = Datatype::vector(2, 2, 2 * i64::from(size), &Datatype::double()).unwrap();
        let block = rank.commit(&Datatype::resized(0, 8, &block).unwrap()).unwrap();
        let ranges: Vec<_> = (0..i64::from(size)).map(|rank| 2 * rank..2 * rank + 1).collect();
        let mut matrix = rank.buffer::<f64>(4 * size as usize).unwrap();
        let count = 2 * i64::from(size) - 1;
        let room = Destination::typed(&mut matrix, count, &block);
        world.allgatherv(&[f64::from(me); 4], room, &ranges).unwrap();
        let due: Vec<_> = (0..4 * size).map(|at| f64::from(at % (2 * size) / 2)).collect();
        assert_eq!(matrix.to_vec().unwrap(), due);
        // Two elements of one range do overlap.
        let double: Vec<_> = (0..size).map(|_| 0..2).collect();
        let mut matrix = rank.buffer::<f64>(4 * size as usize + 2).unwrap();
        let room = Destination::typed(&mut matrix, 2, &block);
        let error = world.allgatherv(&[f64::from(me); 8], room, &double).unwrap_err();
        assert!(error.to_string().contains("overlap"), "{error}");
        world.barrier().unwrap();
    });
}

/// A rank whose long has 32 bits forwards values that it couldn't hold itself. It gets an error
/// only for values that it receives itself. The values are in a Rust slice, so this machine's long
/// must have 64 bits.
#[cfg(target_pointer_width = "64")]
#[test]
fn forwarded_data_are_not_converted() {
    use longshore::c;
    let body = |rank: Rank| {
        let world = rank.world();
        let narrow = rank.type_of::<c::Long>().unwrap().extent() == 4;
        let big = 1 << 40;
        let mut value = [c::Long(if world.rank() == 0 { big } else { 0 })];
        // Slices have the machine's representation. Only a buffer has the emulated rank's.
        let mut memory = rank.buffer::<c::Long>(1).unwrap();
        if world.rank() == 0 {
            world.bcast(&mut value, 0).unwrap();
        } else {
            let got = world.bcast(&mut memory, 0);
            match narrow {
                true => assert_eq!(got.unwrap_err().class(), Class::Conversion),
                false => {
                    got.unwrap();
                    assert_eq!(memory.get(0).unwrap(), c::Long(big));
                }
            }
        }
        // Each contribution fits. A forwarded partial sum needn't fit.
        let mut total = rank.buffer::<c::Long>(1).unwrap();
        memory.set(0, c::Long(1 << 30)).unwrap();
        let summed = world.allreduce(&memory, &mut total, Op::Sum);
        match narrow {
            true => assert_eq!(summed.unwrap_err().class(), Class::Conversion),
            false => assert_eq!(total.get(0).unwrap(), c::Long(8 << 30)),
        }
        world.barrier().unwrap();
        rank.finalize().unwrap();
    };
    let architectures = [Architecture::X86_64, Architecture::I686].repeat(4);
    run(8, &Options { architectures, ..Options::default() }, body).unwrap();
}

#[test]
fn two_ranks_exchange_long_messages_at_once() {
    everywhere(|_, world| {
        let (me, size) = (world.rank(), world.size());
        let (next, before) = ((me + 1) % size, (me + size - 1) % size);
        let data = vec![me; 100_000];
        let mut got = vec![-1; 100_000];
        let status = world.sendrecv((&data, next, 3), (&mut got, before, 3)).unwrap();
        assert_eq!((status.source, status.tag, status.count), (before, 3, 100_000));
        assert!(got.iter().all(|value| *value == before));
        let nobody = longshore::PROC_NULL;
        let status = world.sendrecv((&data, nobody, 3), (&mut got, nobody, 3)).unwrap();
        assert_eq!((status.source, status.count), (nobody, 0));
    });
}
