//! Concurrent accumulates of several ranks, like and unlike, compared with serial results.

mod support;

use half::{bf16, f16};
use longshore::job::Routes;
use longshore::shipable::Basic;
use longshore::sim::{Options, run, run_shared};
use longshore::{
    Architecture, Class, Datatype, Destination, Element, Given, Info, Op, Origin, Rank, Window, c,
};
use shipable::oracle::{self, Random, cases, each_seed};

use support::crowd;

const NATIVE: Architecture = Architecture::NATIVE;

/// Runs a test between like and unlike ranks, directly, by message, and both within one window.
fn everywhere(ranks: u32, body: impl Fn(&Rank) + Sync) {
    let whole = |rank: Rank| {
        body(&rank);
        rank.finalize().unwrap();
    };
    let unlike = vec![Architecture::S390X, Architecture::I686, NATIVE];
    let mixed = vec![NATIVE, NATIVE, Architecture::M68K];
    for (architectures, routes) in [
        (vec![NATIVE; 3], Routes::Best),
        (vec![NATIVE; 3], Routes::Message),
        (unlike, Routes::Best),
        (mixed, Routes::Best),
        (vec![NATIVE, Architecture::AARCH64, NATIVE], Routes::Best),
        (vec![Architecture::LOONGARCH64, Architecture::AARCH64, NATIVE], Routes::Best),
    ] {
        let options = Options { architectures, routes, ..Options::default() };
        run(ranks, &options, whole).unwrap();
        run_shared(ranks, &options, whole).unwrap();
    }
}

/// All ranks accumulate to random elements of all windows. The operation must be commutative and
/// exact in every representation, because its order is arbitrary. `value` makes an operand of a
/// seed, and `fold` computes an element from all seeds that reached it.
fn storm<T: Element + PartialEq + std::fmt::Debug>(
    op: Op,
    value: impl Fn(u64) -> T + Sync + Copy,
    fold: impl Fn(&[u64]) -> T + Sync + Copy,
) {
    const ELEMENTS: i64 = 40;
    everywhere(crowd(3), |rank| {
        let world = rank.world();
        let (me, size) = (world.rank() as u64, world.size() as u64);
        let ty = rank.type_of::<T>().unwrap();
        let every_third = Datatype::vector(3, 1, 3, ty.datatype()).unwrap();
        let every_third = rank.commit(&every_third).unwrap();
        let mut window =
            Window::allocate(world, ELEMENTS * ty.extent(), ty.extent(), &Info::default()).unwrap();
        // Each rank draws the operations of all ranks, so it knows the seeds that reach it.
        let mut wanted: Vec<Vec<Vec<u64>>> =
            vec![vec![Vec::new(); ELEMENTS as usize]; size as usize];
        let mut mine = Vec::new();
        for origin in 0..size {
            let mut random = Random::new(origin + 7, oracle::Options::default());
            for _ in 0..30 {
                let (target, strided) = (random.below(size), random.chance(2));
                let (count, step) = if strided { (3, 3) } else { (1 + random.below(8) as i64, 1) };
                let at = random.below((ELEMENTS - count * step) as u64) as i64;
                let seeds: Vec<u64> = (0..count).map(|_| random.below(100)).collect();
                for (index, &seed) in seeds.iter().enumerate() {
                    wanted[target as usize][(at + index as i64 * step) as usize].push(seed);
                }
                if origin == me {
                    mine.push((
                        target as i32,
                        at,
                        strided,
                        seeds.iter().map(|&seed| value(seed)).collect::<Vec<T>>(),
                    ));
                }
            }
        }
        window
            .fence(|epoch| {
                mine.iter().try_for_each(|(target, at, strided, values)| match strided {
                    true => epoch.accumulate(values, *target, *at, 1, &every_third, op),
                    false => epoch.accumulate(values, *target, *at, values.len() as i64, &ty, op),
                })
            })
            .unwrap();
        for (at, seeds) in wanted[me as usize].iter().enumerate() {
            assert_eq!(window.get::<T>(at as i64).unwrap(), fold(seeds), "{op} at {at}");
        }
        window.free().unwrap();
    });
}

#[test]
fn concurrent_accumulates_lose_no_operand() {
    storm(Op::Sum, |seed| seed as f64, |seeds| seeds.iter().sum::<u64>() as f64);
    storm(
        Op::Sum,
        |seed| seed as i16 * 200,
        |seeds| seeds.iter().fold(0i16, |sum, &seed| sum.wrapping_add(seed as i16 * 200)),
    );
    storm(Op::Max, |seed| seed as i32, |seeds| seeds.iter().copied().max().unwrap_or(0) as i32);
}

#[test]
fn bitwise_and_logical_accumulates_combine_all_operands() {
    storm(
        Op::Bxor,
        |seed| seed * 0x0101_0101,
        |seeds| seeds.iter().fold(0, |bits, seed| bits ^ (seed * 0x0101_0101)),
    );
    storm(
        Op::Bor,
        |seed| c::Byte(1 << (seed % 8)),
        |seeds| c::Byte(seeds.iter().fold(0, |bits, seed| bits | 1 << (seed % 8))),
    );
    storm(
        Op::Lor,
        |seed| c::Bool::from(seed % 5 == 0),
        |seeds| c::Bool::from(seeds.iter().any(|seed| seed % 5 == 0)),
    );
}

/// The ranks of this test have three formats of long double.
#[test]
fn long_doubles_are_added_in_the_targets_format() {
    everywhere(crowd(3), |rank| {
        let world = rank.world();
        let quads =
            rank.commit(&Datatype::contiguous(5, &Basic::LongDouble.into()).unwrap()).unwrap();
        let size = quads.extent();
        let mut window = Window::create(
            world,
            rank.buffer::<c::LongDouble>(5).unwrap(),
            size / 5,
            &Info::default(),
        )
        .unwrap();
        let mut operands = rank.buffer::<c::LongDouble>(5).unwrap();
        for index in 0..5 {
            operands.set(index, c::LongDouble::from(index as f64 + 0.5)).unwrap();
        }
        window
            .fence(|epoch| {
                (0..world.size()).try_for_each(|target| {
                    let origin = Origin::typed(&operands, 1, &quads);
                    epoch.accumulate(origin, target, 0, 1, &quads, Op::Sum)
                })
            })
            .unwrap();
        let sums = window.free().unwrap();
        for index in 0..5 {
            let sum = f64::from(world.size()) * (index as f64 + 0.5);
            assert_eq!(sums.get(index).unwrap().to_f64().unwrap(), sum);
        }
    });
}

/// No machine has instructions for them, and XDR's are four bytes long.
#[test]
fn halves_are_put_and_added_between_unlike_ranks() {
    everywhere(crowd(3), |rank| {
        let world = rank.world();
        let (me, size) = (world.rank(), world.size());
        let mut window = Window::allocate(world, 2 * i64::from(size), 2, &Info::default()).unwrap();
        let (brain, mine) = (rank.type_of::<bf16>().unwrap(), [bf16::from_f32(me as f32 + 0.5)]);
        let ones = vec![bf16::ONE; size as usize];
        window
            .fence(|epoch| (0..size).try_for_each(|to| epoch.put(&mine, to, me.into(), 1, &brain)))
            .unwrap();
        window
            .fence(|epoch| {
                let all = i64::from(size);
                (0..size).try_for_each(|to| epoch.accumulate(&ones, to, 0, all, &brain, Op::Sum))
            })
            .unwrap();
        let mut held = vec![bf16::ZERO; size as usize];
        window.read(0, &mut held).unwrap();
        for (origin, value) in held.iter().enumerate() {
            assert_eq!(value.to_f32(), origin as f32 + 0.5 + size as f32);
        }
        // The other half is another type.
        let other = [f16::ONE];
        let refused = window.fence(|epoch| epoch.put(&other, me, 0, 1, &brain)).unwrap_err();
        assert_eq!(refused.class(), Class::Type);
        window.free().unwrap();
    });
}

#[test]
fn counters_give_every_number_once() {
    everywhere(crowd(3), |rank| {
        let world = rank.world();
        let mut window = Window::allocate(world, 16, 8, &Info::default()).unwrap();
        const EACH: usize = 25;
        let mut taken = window
            .fence(|epoch| {
                // Half of the operations are in flight at once.
                let several = (0..EACH)
                    .map(|_| epoch.fetch_and_op(1i64, 1, 1, Op::Sum))
                    .collect::<longshore::Result<Vec<_>>>()?;
                let mut taken = several
                    .into_iter()
                    .map(|one| one.wait())
                    .collect::<longshore::Result<Vec<_>>>()?;
                for _ in 0..EACH {
                    taken.push(epoch.fetch_and_op(1i64, 1, 1, Op::Sum)?.wait()?);
                }
                Ok(taken)
            })
            .unwrap();
        assert!(
            taken.windows(2).all(|pair| pair[0] < pair[1]),
            "an origin's operations are ordered"
        );
        taken = world.allgather(&taken).unwrap();
        taken.sort_unstable();
        assert_eq!(taken, (0..i64::from(world.size()) * 2 * EACH as i64).collect::<Vec<_>>());
        window.free().unwrap();
    });
}

#[test]
fn compare_and_swap_loops_lose_no_update() {
    everywhere(crowd(3), |rank| {
        let world = rank.world();
        let mut window = Window::allocate(world, 8, 4, &Info::default()).unwrap();
        window
            .fence(|epoch| {
                for _ in 0..10 {
                    let mut seen = epoch.fetch_and_op(0u32, 2, 1, Op::NoOp)?.wait()?;
                    loop {
                        let found = {
                            let new = seen.wrapping_mul(3).wrapping_add(1);
                            epoch.compare_and_swap(new, seen, 2, 1)?.wait()?
                        };
                        if found == seen {
                            break;
                        }
                        seen = found;
                    }
                }
                Ok(())
            })
            .unwrap();
        let wanted =
            (0..10 * world.size()).fold(0u32, |value, _| value.wrapping_mul(3).wrapping_add(1));
        if world.rank() == 2 {
            assert_eq!(window.get::<u32>(1).unwrap(), wanted);
        }
        window.free().unwrap();
    });
}

#[test]
fn an_origin_sees_its_own_accumulates_in_order() {
    everywhere(crowd(3), |rank| {
        let world = rank.world();
        let (me, size) = (world.rank(), world.size());
        let mut window =
            Window::allocate(world, i64::from(size) * 800, 8, &Info::default()).unwrap();
        let long = rank.type_of::<c::LongLong>().unwrap();
        let values: Vec<Vec<c::LongLong>> =
            (0..5).map(|turn| (0..100).map(|i| c::LongLong(100 * turn + i)).collect()).collect();
        let mut seen = vec![vec![c::LongLong(-1); 100]; 6];
        let next = (me + 1) % size;
        // Each rank has its own section of each window.
        let at = i64::from(me) * 100;
        window
            .fence(|epoch| {
                let (last, fetched) = seen.split_last_mut().unwrap();
                for (turn, (values, seen)) in values.iter().zip(fetched).enumerate() {
                    let op = if turn % 2 == 0 { Op::Replace } else { Op::Sum };
                    epoch.get_accumulate(values, seen, next, at, 100, &long, op)?;
                }
                epoch.get_accumulate(&values[0], last, next, at, 100, &long, Op::NoOp)
            })
            .unwrap();
        for i in 0..100 {
            let seen: Vec<i64> = seen.iter().map(|turn| turn[i].0).collect();
            let i = i as i64;
            assert_eq!(seen, [0, i, 100 + 2 * i, 200 + i, 500 + 2 * i, 400 + i]);
        }
        window.free().unwrap();
    });
}

#[test]
fn maxloc_takes_the_largest_value_and_then_the_smallest_index() {
    everywhere(crowd(3), |rank| {
        let world = rank.world();
        let me = world.rank();
        let pairs = rank.commit(&Basic::TwoInt.into()).unwrap();
        let mut window = Window::allocate(world, 16, 8, &Info::default()).unwrap();
        let value = [[3i32, 9], [7, 5], [7, 4]][me as usize % 3];
        let bytes: Vec<u8> = match rank.architecture().order() {
            shipable::arch::ByteOrder::Little => {
                value.iter().flat_map(|part| part.to_le_bytes()).collect()
            }
            shipable::arch::ByteOrder::Big => {
                value.iter().flat_map(|part| part.to_be_bytes()).collect()
            }
        };
        window
            .fence(|epoch| {
                let pair = Origin::typed(&bytes[..], 1, &pairs);
                epoch.accumulate(pair, 1, 1, 1, &pairs, Op::Maxloc)
            })
            .unwrap();
        if me == 1 {
            let mut found = [0i32; 2];
            window.read(1, &mut found).unwrap();
            assert_eq!(found, [7, 4]);
        }
        window.free().unwrap();
    });
}

#[test]
fn pairs_are_elements_of_windows_and_of_reductions() {
    everywhere(crowd(3), |rank| {
        let world = rank.world();
        let me = world.rank();
        let pair = rank.type_of::<c::DoubleInt>().unwrap();
        let mut window =
            Window::allocate(world, 2 * pair.extent(), pair.extent(), &Info::default()).unwrap();
        let mine = [c::DoubleInt::from(([3.5, 7.5, 7.5][me as usize % 3], me))];
        let most = c::DoubleInt { value: 7.5, index: 1 };
        window.fence(|epoch| epoch.accumulate(&mine, 1, 1, 1, &pair, Op::Maxloc)).unwrap();
        if me == 1 {
            assert_eq!(window.get::<c::DoubleInt>(1).unwrap(), most);
        }
        let fetched = window.fence(|epoch| epoch.fetch_and_op(most, 1, 1, Op::Maxloc)?.wait());
        assert_eq!(fetched.unwrap(), most);
        let mut found = [c::DoubleInt::default()];
        world.allreduce(&mine, &mut found, Op::Maxloc).unwrap();
        assert_eq!(found, [most]);
        window.free().unwrap();
    });
}

/// Checks that MAX and MIN of no greater values leave the operands at the target, by each call in
/// turn, and that those which fetch return the values that were held.
fn ordered<T: Element + PartialEq + std::fmt::Debug>(rank: &Rank, held: [T; 3], operands: [T; 3]) {
    let world = rank.world();
    let (me, datatype) = (world.rank(), rank.type_of::<T>().unwrap());
    let unit = datatype.extent();
    let mut window = Window::allocate(world, 99 * unit, unit, &Info::default()).unwrap();
    // Enough elements for the loops over four registers, over one, and over what remains.
    let of = |three: [T; 3]| Vec::from_iter(three.into_iter().cycle().take(99));
    let text = |values: &[T]| format!("{values:?}");
    for op in [Op::Max, Op::Min] {
        for call in 0..3 {
            window.fence(|_| Ok(())).unwrap();
            if me == 1 {
                window.write(0, &of(held)).unwrap();
            }
            let (many, mut old, mut taken) = (of(operands), of(operands), operands);
            window
                .fence(|epoch| match call {
                    _ if me != 0 => Ok(()),
                    0 => epoch.accumulate(&many, 1, 0, 99, &datatype, op),
                    1 => epoch.get_accumulate(&many, &mut old, 1, 0, 99, &datatype, op),
                    _ => (0..3).try_for_each(|at| {
                        taken[at] = epoch.fetch_and_op(operands[at], 1, at as i64, op)?.wait()?;
                        Ok(())
                    }),
                })
                .unwrap();
            let old_values = if me == 0 && call == 1 { held } else { operands };
            let taken_values = if me == 0 && call == 2 { held } else { operands };
            assert_eq!(text(&old), text(&of(old_values)));
            assert_eq!(text(&taken), text(&taken_values));
            if me == 1 {
                let mut found = of(held);
                window.read(0, &mut found).unwrap();
                let (changed, rest) = found.split_at(if call < 2 { 99 } else { 3 });
                assert_eq!(text(changed), text(&many[..changed.len()]), "{op:?} {call}");
                assert_eq!(text(rest), text(&of(held)[changed.len()..]));
            }
        }
    }
    window.free().unwrap();
}

#[test]
fn max_and_min_keep_the_origins_value_where_no_value_is_greater() {
    everywhere(2, |rank| {
        for (a, b) in [(1.0, f64::NAN), (f64::NAN, 1.0), (0.0, -0.0), (-0.0, 0.0)] {
            ordered(rank, [a, b, a], [b, a, b]);
            let [held, operands] = [[a, b, a], [b, a, b]].map(|all| all.map(|it| it as f32));
            ordered(rank, held, operands);
            let [held, operands] = [[a, b, a], [b, a, b]].map(|all| all.map(f16::from_f64));
            ordered(rank, held, operands);
        }
        let (mut greatest, data) = ([-0.0, 1.0, f64::NAN], [0.0, f64::NAN, 1.0]);
        rank.world().reduce_local(&data, &mut greatest, Op::Max).unwrap();
        assert_eq!(format!("{greatest:?}"), format!("{data:?}"));
    });
}

/// Random types at origin, result and target of unlike ranks, with operands cut into frames of many
/// lengths.
#[test]
fn random_types_accumulate_as_the_oracle_does() {
    each_seed(40, |seed| {
        let mut random = Random::new(
            seed,
            oracle::Options { portable: true, items: 120, ..oracle::Options::default() },
        );
        let sides = [random.architecture(), random.architecture()];
        let options = Options {
            seed,
            architectures: sides.to_vec(),
            frame: 128 << random.below(5),
            frames: 1 + random.below(6) as usize,
            fast: random.chance(2),
            ..Options::default()
        };
        let leaf = *random.pick(&[
            Basic::Int,
            Basic::Double,
            Basic::UnsignedShort,
            Basic::CDoubleComplex,
            Basic::Integer2,
        ]);
        random.options.architecture = sides[1];
        let (origin, target) = random.pair_of(leaf.into());
        let op = if random.chance(2) { Op::Sum } else { Op::Replace };
        // Values below 4 are exact in every representation, also after adding two of them.
        let seeds: Vec<u64> = (0..4000).map(|_| random.below(4)).collect();
        run(2, &options, |rank| {
            let world = rank.world();
            let me = world.rank() as usize;
            let mut window =
                Window::create(world, vec![0u8; 1 << 16], 1, &Info::default()).unwrap();
            let place = |datatype: &Datatype, architecture: &Architecture| {
                let items = oracle::expand(datatype, architecture, 1).unwrap();
                let bounds = datatype.bounds(architecture).unwrap();
                (items, -bounds.true_lb.min(0), bounds.true_ub - bounds.true_lb.min(0))
            };
            let ((from, from_at, from_len), (to, to_at, to_len)) =
                (place(&origin, &sides[0]), place(&target, &sides[1]));
            let disjoint = |ty, side: usize| !oracle::overlaps(ty, &sides[side], 1).unwrap();
            if from.is_empty()
                || to_len > 1 << 16
                || from_len > 1 << 20
                || !disjoint(&target, 1)
                || !disjoint(&origin, 0)
            {
                window.free().unwrap();
                rank.finalize().unwrap();
                return;
            }
            let native = |leaf: Basic| NATIVE.basic(leaf).components[0].scalar;
            let write = |memory: &mut [u8], item: &oracle::Item, at: i64, value: u64| {
                use shipable::arch::Value;
                let (bytes, scalar) = match item.scalar.value {
                    Value::Float(_) => ((value as f64).to_ne_bytes(), native(Basic::Double)),
                    _ => (value.to_ne_bytes(), native(Basic::Uint64)),
                };
                let start = (item.offset + at) as usize;
                let room = &mut memory[start..start + usize::from(item.scalar.size)];
                let to = match item.scalar.value {
                    Value::Float(_) => item.scalar,
                    _ => shipable::arch::Scalar {
                        value: Value::Int { signed: false },
                        ..item.scalar
                    },
                };
                let conversion = shipable::convert::Conversion::between(scalar, to).unwrap();
                let units = room.chunks_mut(conversion.to_size().into());
                for (from, to) in bytes.chunks(conversion.from_size().into()).zip(units) {
                    conversion.apply(from, to).unwrap();
                }
            };
            let value = |index: usize| seeds[index % seeds.len()];
            let mut operands = vec![0u8; from_len as usize];
            from.iter()
                .enumerate()
                .for_each(|(index, item)| write(&mut operands, item, from_at, value(index)));
            let types = [rank.commit(&origin), rank.commit(&target)];
            let mut fetched = vec![0u8; from_len as usize];
            let outcome = window.fence(|epoch| {
                let ([Ok(origin), Ok(target)], 0) = (&types, me) else { return Ok(()) };
                let operands = || Origin::typed(&operands[..], 1, origin).at(from_at);
                epoch.accumulate(operands(), 1, to_at, 1, target, op)?;
                let room = Destination::typed(&mut fetched[..], 1, origin).at(from_at);
                epoch.get_accumulate(operands(), room, 1, to_at, 1, target, op)
            });
            let what = format!("seed {seed}: {op}, {origin} to {target}");
            outcome.unwrap_or_else(|error| panic!("{what}: {error}"));
            if me == 0 {
                assert!(fetched == operands, "{what}: fetched");
            } else {
                let mut wanted = vec![0u8; 1 << 16];
                let times = if op == Op::Sum { 2 } else { 1 };
                to.iter().enumerate().for_each(|(index, item)| {
                    write(&mut wanted, item, to_at, times * value(index))
                });
                assert!(window.local().bytes(0, 1 << 16).unwrap() == wanted, "{what}");
            }
            window.free().unwrap();
            rank.finalize().unwrap();
        })
        .unwrap();
    });
}

/// Rule 28: the elements before the one that doesn't fit are combined. That element and later ones
/// are not.
#[test]
fn an_operand_that_does_not_fit_stops_the_accumulate() {
    let options = Options { architectures: vec![NATIVE, Architecture::I686], ..Options::default() };
    run(2, &options, |rank| {
        let world = rank.world();
        let long = rank.type_of::<c::UnsignedLong>().unwrap();
        let mut window = Window::allocate(world, 64, long.extent(), &Info::default()).unwrap();
        let mut operands = vec![1u64; 5];
        operands[3] = 1 << 40;
        let operands: Vec<c::UnsignedLong> =
            operands.into_iter().map(|n| c::UnsignedLong(n as _)).collect();
        let outcome = window.fence(|epoch| match world.rank() {
            0 => epoch.accumulate(&operands, 1, 0, 5, &long, Op::Sum),
            _ => Ok(()),
        });
        if world.rank() == 0 && size_of::<c::UnsignedLong>() == 8 {
            let error = outcome.unwrap_err();
            assert_eq!(error.class(), Class::Conversion);
            let text = error.to_string();
            assert!(text.contains("element 3") && text.contains("accumulate at rank 0"), "{text}");
        } else if world.rank() == 1 && size_of::<c::UnsignedLong>() == 8 {
            let mut found = [c::UnsignedLong(9); 5];
            window.read(0, &mut found).unwrap();
            assert_eq!(found.map(|value| value.0), [1, 1, 1, 0, 0]);
        }
        window.free().unwrap();
        rank.finalize().unwrap();
    })
    .unwrap();
}

/// Requests may be waited for in any order. The end of the epoch completes dropped requests.
#[test]
fn a_completed_request_returns_its_memory() {
    everywhere(crowd(3), |rank| {
        let world = rank.world();
        let (me, size) = (i64::from(world.rank()), world.size());
        let double = rank.type_of::<f64>().unwrap();
        let every_other = Datatype::vector(10, 1, 2, &Datatype::double()).unwrap();
        let every_other = rank.commit(&every_other).unwrap();
        let window = Window::allocate(world, i64::from(size) * 800, 8, &Info::default()).unwrap();
        let next = (world.rank() + 1) % size;
        let at = 100 * me;
        window
            .lock_all(|epoch| {
                let values: Vec<f64> = (0..100).map(|i| i as f64 + me as f64).collect();
                let put = epoch.rput(values.clone(), next, at, 100, &double)?;
                let boxed: Box<[f64]> = put.wait()?.into();
                assert_eq!(*boxed, values[..]);
                let adding = epoch.raccumulate(boxed, next, at, 100, &double, Op::Sum)?;
                let mut spare = rank.buffer::<f64>(10)?;
                (0..10).try_for_each(|i| spare.set(i, 1.0))?;
                // Ordered after the sum, since both are accumulates.
                let fetching = epoch.rget_accumulate(
                    spare,
                    vec![0.0; 10],
                    next,
                    at,
                    1,
                    &every_other,
                    Op::Replace,
                )?;
                while !fetching.test()? {}
                let (spare, fetched) = fetching.wait()?;
                assert_eq!(spare.to_vec()?, [1.0; 10]);
                assert_eq!(
                    fetched,
                    (0..10).map(|i| 2.0 * (2 * i) as f64 + 2.0 * me as f64).collect::<Vec<_>>()
                );
                adding.wait()?;
                let given = Given::typed(vec![0u8; 96], 5, &double, 16);
                let bytes = epoch.rget(given, next, at, 5, &double)?.wait()?[16..56].to_vec();
                let order = |bytes: &[u8]| match rank.architecture().order() {
                    shipable::arch::ByteOrder::Little => {
                        f64::from_le_bytes(bytes.try_into().unwrap())
                    }
                    shipable::arch::ByteOrder::Big => f64::from_be_bytes(bytes.try_into().unwrap()),
                };
                let got: Vec<f64> = bytes.chunks(8).map(order).collect();
                assert_eq!(got, [1.0, 2.0 + 2.0 * me as f64, 1.0, 6.0 + 2.0 * me as f64, 1.0]);
                // The end of the epoch completes a dropped request.
                drop(epoch.rput(vec![-1.0; 100], next, at, 100, &double)?);
                Ok(())
            })
            .unwrap();
        world.barrier().unwrap();
        let before = 100 * i64::from((world.rank() + size - 1) % size);
        assert_eq!(window.get::<f64>(before + 50).unwrap(), -1.0);
        window.free().unwrap();
    });
}

#[test]
fn wait_returns_the_refusal_of_its_request() {
    let options = Options { architectures: vec![NATIVE, Architecture::I686], ..Options::default() };
    run(2, &options, |rank| {
        let world = rank.world();
        let long = rank.type_of::<c::UnsignedLong>().unwrap();
        let window = Window::allocate(world, 64, long.extent(), &Info::default()).unwrap();
        if world.rank() == 0 && size_of::<c::UnsignedLong>() == 8 {
            let too_long = || vec![c::UnsignedLong(7), c::UnsignedLong((1u64 << 40) as _)];
            let outcome = window.lock_all(|epoch| {
                for outcome in [
                    epoch.rput(too_long(), 1, 0, 2, &long)?.wait().map(drop),
                    epoch.raccumulate(too_long(), 1, 0, 2, &long, Op::Sum)?.wait().map(drop),
                    epoch
                        .rget_accumulate(too_long(), too_long(), 1, 0, 2, &long, Op::Sum)?
                        .wait()
                        .map(drop),
                ] {
                    assert_eq!(outcome.unwrap_err().class(), Class::Conversion);
                }
                // The end of the epoch reports the refusal of a dropped request.
                drop(epoch.raccumulate(too_long(), 1, 0, 2, &long, Op::Sum)?);
                Ok(())
            });
            assert_eq!(outcome.unwrap_err().class(), Class::Conversion);
        }
        world.barrier().unwrap();
        window.free().unwrap();
        rank.finalize().unwrap();
    })
    .unwrap();
}

/// Two origins that reach the window directly and one that sends messages, at once in passive
/// epochs.
#[test]
fn direct_and_message_accumulates_are_atomic_to_each_other() {
    let options =
        Options { architectures: vec![NATIVE, NATIVE, Architecture::S390X], ..Options::default() };
    let each = cases(3000).min(20_000) as i64;
    run_shared(3, &options, |rank| {
        let world = rank.world();
        let pairs = Datatype::contiguous(3, &Datatype::double()).unwrap();
        let pairs = rank.commit(&pairs).unwrap();
        let window = Window::allocate(world, 64, 8, &Info::default()).unwrap();
        window
            .lock_all(|epoch| {
                for i in 0..each {
                    epoch.accumulate(&[1.0f64, 2.0, 4.0], 1, 1, 1, &pairs, Op::Sum)?;
                    if i % 3 == 0 {
                        epoch.fetch_and_op(1i32, 1, 5, Op::Sum)?.wait()?;
                    }
                }
                Ok(())
            })
            .unwrap();
        world.barrier().unwrap();
        if world.rank() == 1 {
            let mut sums = [0.0; 3];
            window.read(1, &mut sums).unwrap();
            assert_eq!(sums, [1.0, 2.0, 4.0].map(|value| value * 3.0 * each as f64));
            assert_eq!(i64::from(window.get::<i32>(5).unwrap()), 3 * ((each + 2) / 3));
        }
        window.free().unwrap();
        rank.finalize().unwrap();
    })
    .unwrap();
}

#[test]
fn repeated_get_accumulates_fetch_and_are_checked_like_the_first() {
    everywhere(2, |rank| {
        let world = rank.world();
        let long = rank.commit(&Datatype::int64()).unwrap();
        const MOST: usize = 40_000;
        let mut window = Window::allocate(world, 8 * MOST as i64, 8, &Info::default()).unwrap();
        window.fence(|_| Ok(())).unwrap();
        if world.rank() == 0 {
            // One element, several, and more than one frame holds.
            for (turn, count) in [1, 1, 10, 10, MOST, MOST].into_iter().enumerate() {
                let ones = vec![1i64; count];
                let (mut before, mut after) = (vec![-1i64; count], vec![-1i64; count]);
                let n = count as i64;
                let twice = window.lock(1, longshore::LockType::Shared, |epoch| {
                    epoch.get_accumulate(&ones, &mut before, 1, 0, n, &long, Op::Sum)?;
                    epoch.get_accumulate(&ones, &mut after, 1, 0, n, &long, Op::Sum)
                });
                twice.unwrap();
                assert_eq!(before[0], 2 * turn as i64);
                assert!(before.iter().zip(&after).all(|(before, after)| before + 1 == *after));
            }
            let (mut room, mut more) = ([0i64], [0i64]);
            let refused = window.lock_all(|epoch| {
                epoch.get_accumulate(&[1i64], &mut room, 1, 0, 1, &long, Op::NoOp)?;
                epoch.accumulate(&[1i64], 1, 0, 1, &long, Op::NoOp)
            });
            assert_eq!(refused.unwrap_err().class(), Class::Op);
            let short = window.lock_all(|epoch| {
                epoch.get_accumulate(&[1i64], &mut room, 1, 0, 1, &long, Op::Sum)?;
                epoch.get_accumulate(&[1i64], &mut more, 1, MOST as i64, 1, &long, Op::Sum)
            });
            assert_eq!(short.unwrap_err().class(), Class::RmaRange);
        }
        window.fence(|_| Ok(())).unwrap();
        window.free().unwrap();
    });
}
