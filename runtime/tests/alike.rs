//! Operations between ranks whose architectures differ in some types only: data of equal types are
//! copied directly, other data are converted by message, and both give the same results.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::time::{Duration, Instant};

use longshore::job::{Checking, Routes};
use longshore::shipable::arch::{Scalar, Value};
use longshore::shipable::convert::Conversion;
use longshore::shipable::{Basic, Committed, Relation};
use longshore::sim::{Options, run, run_shared};
use longshore::{
    Architecture, Buffer, Class, Datatype, Destination, Info, LockType, Matching, Op, Origin, Rank,
    Route, Window, c,
};
use shipable::oracle::{self, Random};

type A = Architecture;

/// Whether ranks of one host take the best route: not under an adversary, nor where messages are
/// checked, nor where LONGSHORE_SIM_HOSTS places the ranks on several hosts.
fn takes_best_route(options: &Options) -> bool {
    options.adversary.is_none()
        && options.check == Checking::Off
        && std::env::var_os("LONGSHORE_SIM_HOSTS").is_none()
}

/// Runs a program on ranks of these architectures: simulated and in threads, also without the memo
/// and by message.
fn on(architectures: &[A], body: impl Fn(&Rank) + Sync) {
    by(
        &[(Routes::Best, true), (Routes::Best, false), (Routes::Message, true)],
        architectures,
        body,
    );
}

/// Runs a program on ranks of these architectures, with each of these routes, and with the memo or
/// without.
fn by(ways: &[(Routes, bool)], architectures: &[A], body: impl Fn(&Rank) + Sync) {
    let ranks = architectures.len() as u32;
    let whole = |rank: Rank| {
        body(&rank);
        rank.finalize().unwrap();
    };
    for &(routes, fast) in ways {
        let architectures = architectures.to_vec();
        let options = Options { architectures, routes, fast, ..Options::default() };
        run(ranks, &options, whole).unwrap();
        run_shared(ranks, &options, whole).unwrap();
    }
}

#[test]
fn related_ranks_of_a_host_reach_allocated_memory_directly() {
    for (here, there, expected) in [
        (A::X86_64, A::AARCH64, Route::Direct),
        (A::AARCH64, A::X86_64, Route::Direct),
        (A::I686, A::X86_64, Route::Direct),
        (A::AARCH64, A::AARCH64, Route::Direct),
        (A::S390X, A::S390X, Route::Direct),
        (A::X86_64, A::S390X, Route::Message),
    ] {
        let options = Options { architectures: vec![here, there], ..Options::default() };
        if !takes_best_route(&options) {
            return;
        }
        run(2, &options, |rank| {
            let window = Window::allocate(rank.world(), 64, 1, &Info::default()).unwrap();
            let other = (rank.world().rank() + 1) % 2;
            assert_eq!(window.route(other).unwrap(), expected, "{here} to {there}");
            window.free().unwrap();
            // The addresses of attachments aren't real at an emulated rank.
            let are_real = [here, there].iter().all(|it| it.same_representation(&A::NATIVE));
            let expected = if are_real { Route::Direct } else { Route::Message };
            let dynamic = Window::create_dynamic(rank.world(), &Info::default()).unwrap();
            assert_eq!(dynamic.route(other).unwrap(), expected, "{here} to {there}");
            dynamic.free().unwrap();
            rank.finalize().unwrap();
        })
        .unwrap();
    }
}

/// Elements of every basic type.
const COUNT: u64 = 5;

/// Writes a number to an item in memory, in its representation.
fn write(memory: &mut [u8], item: &oracle::Item, number: u64) {
    let native = |basic: Basic| A::NATIVE.basic(basic).components[0].scalar;
    let (bytes, from, to) = match item.scalar.value {
        Value::Float(_) => ((number as f64).to_ne_bytes(), native(Basic::Double), item.scalar),
        _ => {
            let to = Scalar { value: Value::Int { signed: false }, ..item.scalar };
            (number.to_ne_bytes(), native(Basic::Uint64), to)
        }
    };
    let start = item.offset as usize;
    let room = &mut memory[start..start + usize::from(item.scalar.size)];
    let conversion = Conversion::between(from, to).unwrap();
    let units = room.chunks_mut(conversion.to_size().into());
    for (from, to) in bytes.chunks(conversion.from_size().into()).zip(units) {
        conversion.apply(from, to).unwrap();
    }
}

/// Memory for elements of a type at one rank, with small numbers that every representation holds,
/// and the memory that they have at another, by the oracle.
fn memories(random: &mut Random, datatype: &Datatype, [here, there]: [&A; 2]) -> [Vec<u8>; 2] {
    let length = |at: &A| (datatype.bounds(at).unwrap().extent() * COUNT as i64) as usize;
    let mut memory = random.bytes(length(here));
    for item in oracle::expand(datatype, here, COUNT).unwrap() {
        let truth = matches!(item.scalar.value, Value::Logical { .. });
        write(&mut memory, &item, random.below(if truth { 2 } else { 120 }));
    }
    let (stream, refused) = oracle::pack(datatype, COUNT, (here, &memory, 0), there).unwrap();
    assert!(refused.is_none(), "{datatype}: {refused:?}");
    let mut expected = vec![0; length(there)];
    let refused = oracle::unpack(datatype, COUNT, (there, &mut expected, 0), (there, &stream));
    assert!(refused.unwrap().is_none());
    [memory, expected]
}

/// The bytes of the items. The gaps between them have any value.
fn items(datatype: &Datatype, at: &A, memory: &[u8]) -> Vec<u8> {
    let all = oracle::expand(datatype, at, COUNT).unwrap();
    let bytes = |item: oracle::Item| {
        let start = item.offset as usize;
        memory[start..start + usize::from(item.scalar.size)].to_vec()
    };
    all.into_iter().flat_map(bytes).collect()
}

/// Rank 0 puts elements of each basic type to a like rank and to an unlike one, and gets them back.
/// Each operation is repeated, so that the memo knows it from a target of the other kind.
#[test]
fn every_basic_type_arrives_whether_it_is_copied_or_converted() {
    let types: Vec<Basic> = Basic::ALL.iter().copied().filter(|basic| !basic.is_marker()).collect();
    for kinds in [
        [A::X86_64, A::AARCH64],
        [A::AARCH64, A::X86_64],
        [A::AARCH64, A::LOONGARCH64],
        [A::X86_64, A::I686],
        [A::ARMHF, A::X86_64],
        [A::X86_64, A::WIN64],
        [A::MACOS, A::AARCH64],
    ] {
        let sides = [kinds[0], kinds[0], kinds[1]];
        by(&[(Routes::Best, true)], &sides, |rank| {
            let world = rank.world();
            let me = world.rank();
            let mut window = Window::allocate(world, 1024, 1, &Info::default()).unwrap();
            for &basic in &types {
                let datatype = Datatype::from(basic);
                let ty = rank.commit(&datatype).unwrap();
                let mut random = Random::new(u64::from(basic.wire()), oracle::Options::default());
                for round in 0..6 {
                    // A like target, or the unlike one.
                    let target = 1 + (round + u64::from(basic.wire())) as usize % 2;
                    let both = [&sides[0], &sides[target]];
                    let [memory, wanted] = memories(&mut random, &datatype, both);
                    let to = target as i32;
                    window
                        .fence(|epoch| match me {
                            0 => {
                                let data = Origin::typed(&memory[..], COUNT as i64, &ty);
                                epoch.put(data, to, 0, COUNT as i64, &ty)
                            }
                            _ => Ok(()),
                        })
                        .unwrap();
                    let what = format!("{basic} from {} to {}", both[0], both[1]);
                    if me == to {
                        let found = window.local().bytes(0, wanted.len()).unwrap();
                        let [found, wanted] =
                            [&found, &wanted].map(|memory| items(&datatype, both[1], memory));
                        assert_eq!(found, wanted, "{what}");
                    }
                    let mut back = vec![0; memory.len()];
                    window
                        .fence(|epoch| match me {
                            0 => {
                                let room = Destination::typed(&mut back[..], COUNT as i64, &ty);
                                epoch.get(room, to, 0, COUNT as i64, &ty)
                            }
                            _ => Ok(()),
                        })
                        .unwrap();
                    if me == 0 {
                        // Through the other representation and back.
                        let (stream, refused) =
                            oracle::pack(&datatype, COUNT, (both[1], &wanted, 0), both[0]).unwrap();
                        assert!(refused.is_none(), "{what}");
                        let found = items(&datatype, both[0], &back);
                        assert_eq!(found, stream, "{what}");
                    }
                }
            }
            window.free().unwrap();
        });
    }
}

/// On a rank that emulates another architecture, slices have the machine's representation and
/// buffers the rank's. What the memo has learnt from one must not be taken for the other.
#[test]
fn slices_and_buffers_of_an_emulated_rank_are_told_apart() {
    for sides in [[A::S390X; 2], [A::AARCH64; 2], [A::AARCH64, A::X86_64], [A::I686, A::AARCH64]] {
        on(&sides, |rank| {
            let world = rank.world();
            let me = world.rank();
            let mut window = Window::allocate(world, 64, 8, &Info::default()).unwrap();
            let (long, number) = (rank.type_of::<i64>().unwrap(), 0x0102_0304_0506_0708);
            for round in 0..8i64 {
                let value = number + round;
                let mut buffer: Buffer<i64> = rank.buffer(1).unwrap();
                buffer.write(0, &[value]).unwrap();
                let values = [value];
                let put = window.fence(|epoch| match (me, round % 2) {
                    (0, 0) => epoch.put(&buffer, 1, 0, 1, &long),
                    (0, _) => epoch.put(&values, 1, 0, 1, &long),
                    _ => Ok(()),
                });
                put.unwrap();
                if me == 1 {
                    assert_eq!(window.get::<i64>(0).unwrap(), value, "round {round}");
                }
                let mut room: Buffer<i64> = rank.buffer(1).unwrap();
                let mut slice = [0i64];
                let got = window.fence(|epoch| match (me, round / 2 % 2) {
                    (0, 0) => epoch.get(&mut room, 1, 0, 1, &long),
                    (0, _) => epoch.get(&mut slice, 1, 0, 1, &long),
                    _ => Ok(()),
                });
                got.unwrap();
                if me == 0 {
                    let found = if round / 2 % 2 == 0 { room.get(0).unwrap() } else { slice[0] };
                    assert_eq!(found, value, "round {round}");
                }
                let sum = window.fence(|epoch| match (me, round % 2) {
                    (0, 0) => epoch.accumulate(&[1i64], 1, 0, 1, &long, Op::Sum),
                    (0, _) => {
                        buffer.write(0, &[1]).unwrap();
                        epoch.accumulate(&buffer, 1, 0, 1, &long, Op::Sum)
                    }
                    _ => Ok(()),
                });
                sum.unwrap();
                if me == 1 {
                    assert_eq!(window.get::<i64>(0).unwrap(), value + 1, "round {round}");
                }
            }
            window.free().unwrap();
        });
    }
}

/// Accumulates of one origin to one place are ordered, also if some are converted by message and
/// others are direct.
#[test]
fn a_direct_accumulate_does_not_overtake_a_converted_one() {
    on(&[A::X86_64, A::AARCH64], |rank| {
        let world = rank.world();
        let mut window = Window::allocate(world, 16, 1, &Info::default()).unwrap();
        let wide = rank.commit(&Datatype::from(Basic::LongDouble)).unwrap();
        let long = rank.type_of::<i64>().unwrap();
        let zero = [0u8; 16];
        for round in 1..40i64 {
            let rounds = [round];
            window
                .fence(|epoch| {
                    if world.rank() == 0 {
                        let data = Origin::typed(&zero[..], 1, &wide);
                        epoch.accumulate(data, 1, 0, 1, &wide, Op::Replace)?;
                        epoch.accumulate(&rounds, 1, 0, 1, &long, Op::Replace)?;
                    }
                    Ok(())
                })
                .unwrap();
            if world.rank() == 1 {
                assert_eq!(window.get::<i64>(0).unwrap(), round);
            }
        }
        window.free().unwrap();
    });
}

/// Ranks of three kinds add to two counters at the same time, and take a ticket from each: direct
/// operations, those by message, and the owner's are atomic together.
#[test]
fn fetches_and_swaps_of_unlike_ranks_are_atomic() {
    const ROUNDS: usize = 60;
    on(&[A::X86_64, A::AARCH64, A::LOONGARCH64], |rank| {
        let world = rank.world();
        let window = Window::allocate(world, 16, 8, &Info::default()).unwrap();
        let mut tickets = [Vec::new(), Vec::new()];
        window
            .lock_all(|epoch| {
                let mut seen = 0i64;
                while tickets.iter().any(|tickets| tickets.len() < ROUNDS) {
                    let fetched = epoch.fetch_and_op(1i64, 0, 0, Op::Sum)?.wait()?;
                    tickets[0].extend((tickets[0].len() < ROUNDS).then_some(fetched));
                    // Another rank may have swapped meanwhile: then the next swap knows its value.
                    let found = epoch.compare_and_swap(seen + 1, seen, 0, 1)?.wait()?;
                    let swapped = found == seen;
                    tickets[1].extend((swapped && tickets[1].len() < ROUNDS).then_some(found));
                    seen = if swapped { seen + 1 } else { found };
                }
                Ok(())
            })
            .unwrap();
        for tickets in tickets {
            let mut all = world.allgather(&tickets[..]).unwrap();
            all.sort_unstable();
            assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "two ranks have one ticket");
        }
        window.free().unwrap();
    });
}

/// The target is outside of any call until the origin has left its own, and no thread makes
/// progress for it (MPI-5.0 section 12.3).
#[test]
fn a_converted_accumulate_does_not_wait_for_its_target() {
    let options = Options {
        architectures: vec![A::X86_64, A::AARCH64],
        progress: false,
        ..Options::default()
    };
    let has_left = AtomicBool::new(false);
    run_shared(2, &options, |rank| {
        let world = rank.world();
        let mut window = Window::allocate(world, 16, 1, &Info::default()).unwrap();
        let wide = rank.commit(&Datatype::from(Basic::LongDouble)).unwrap();
        let long = rank.type_of::<i64>().unwrap();
        let zero = [0u8; 16];
        for round in 1..4 {
            let rounds = [round];
            window
                .fence(|epoch| {
                    if world.rank() == 0 {
                        // The second one is known to be direct, but comes after the first one.
                        let data = Origin::typed(&zero[..], 1, &wide);
                        epoch.accumulate(data, 1, 0, 1, &wide, Op::Replace)?;
                        epoch.accumulate(&rounds, 1, 0, 1, &long, Op::Replace)?;
                        has_left.store(true, SeqCst);
                    } else {
                        let began = Instant::now();
                        while !has_left.swap(false, SeqCst) {
                            assert!(began.elapsed() < Duration::from_secs(60), "round {round}");
                            std::thread::yield_now();
                        }
                    }
                    Ok(())
                })
                .unwrap();
            if world.rank() == 1 {
                assert_eq!(window.get::<i64>(0).unwrap(), round);
            }
        }
        window.free().unwrap();
        rank.finalize().unwrap();
    })
    .unwrap();
}

/// The target is outside of any call, and no thread makes progress for it.
#[test]
fn equal_types_need_no_help_of_the_target() {
    let options = Options {
        architectures: vec![A::X86_64, A::AARCH64],
        progress: false,
        ..Options::default()
    };
    // Slices of a machine of the other byte order are converted.
    let double = Committed::new(&Datatype::double(), &A::NATIVE).unwrap();
    if !takes_best_route(&options) || double.relation(&A::X86_64) != Relation::Equal {
        return;
    }
    let (is_done, is_ready) = (AtomicBool::new(false), AtomicU32::new(0));
    run_shared(2, &options, |rank| {
        let world = rank.world();
        let window = Window::allocate(world, 64, 8, &Info::default()).unwrap();
        window.local().set(0, 0i64).unwrap();
        world.barrier().unwrap();
        is_ready.fetch_add(1, SeqCst);
        while is_ready.load(SeqCst) < 2 {
            std::thread::yield_now();
        }
        let deadline = Instant::now() + Duration::from_secs(20);
        if world.rank() == 1 {
            while !is_done.load(SeqCst) {
                assert!(Instant::now() < deadline, "the target's help is waited for");
                std::thread::yield_now();
            }
        } else {
            let double = rank.type_of::<f64>().unwrap();
            let mut back = [0.0; 2];
            let done = window.lock(1, LockType::Shared, |epoch| {
                epoch.put(&[1.5, 2.5], 1, 2, 2, &double)?;
                let old: i64 = epoch.fetch_and_op(3i64, 1, 0, Op::Sum)?.wait()?;
                assert_eq!(old, 0);
                let old: i64 = epoch.compare_and_swap(7i64, 3, 1, 0)?.wait()?;
                assert_eq!(old, 3);
                epoch.flush(1, |epoch| epoch.get(&mut back, 1, 2, 2, &double))
            });
            done.unwrap();
            assert_eq!(back, [1.5, 2.5]);
            is_done.store(true, SeqCst);
        }
        world.barrier().unwrap();
        if world.rank() == 1 {
            assert_eq!(window.get::<i64>(0).unwrap(), 7);
        }
        window.free().unwrap();
        rank.finalize().unwrap();
    })
    .unwrap();
}

/// A value that only one of the two representations can hold is refused by the converted operation,
/// as between wholly unlike ranks.
#[test]
fn long_double_is_converted_between_x86_64_and_aarch64() {
    on(&[A::AARCH64, A::X86_64], |rank| {
        let world = rank.world();
        let mut window = Window::allocate(world, 16, 1, &Info::default()).unwrap();
        let ty = rank.type_of::<c::LongDouble>().unwrap();
        for round in 0..3 {
            let values = [c::LongDouble::from(0.25 + f64::from(round))];
            let put = window.fence(|epoch| match world.rank() {
                0 => epoch.put(&values, 1, 0, 1, &ty),
                _ => Ok(()),
            });
            put.unwrap();
            if world.rank() == 1 {
                let found = window.get::<c::LongDouble>(0).unwrap().to_f64();
                assert_eq!(found, Ok(0.25 + f64::from(round)));
            }
        }
        window.free().unwrap();
    });
}

/// A struct with displacements in bytes, as a program in C describes its own.
fn record(members: [Basic; 2], at: i64) -> Datatype {
    Datatype::struct_(&[1, 1], &[0, at], &members.map(Datatype::from)).unwrap()
}

#[test]
fn byte_displacements_are_accepted_where_the_target_has_the_same_layout() {
    use Basic::{Double, Int, Long, LongDouble};
    for (members, at, there) in [
        // Copied.
        ([Int, Double], 8, A::AARCH64),
        // Packed by hand: the basic types lie the same in C.
        ([Int, Double], 4, A::AARCH64),
        // Converted.
        ([Int, LongDouble], 16, A::AARCH64),
        ([Int, Double], 8, A::S390X),
        ([Int, Long], 8, A::LOONGARCH64),
        ([Int, Int], 4, A::I686),
        // A long of 4 bytes, and the padding before the next element.
        ([Double, Long], 8, A::ARMHF),
    ] {
        let sides = [A::X86_64, there];
        on(&sides, |rank| {
            let world = rank.world();
            let me = world.rank();
            let info = Info::default().set("target_types", "same_layout").unwrap();
            let mut window = Window::allocate(world, 1024, 1, &info).unwrap();
            let datatype = record(members, at);
            // The other rank's twin has the same displacements.
            let ty = rank.commit(&datatype).unwrap();
            let mut random = Random::new(at as u64, oracle::Options::default());
            for round in 0..4 {
                let both = [&sides[0], &sides[1]];
                let [memory, wanted] = memories(&mut random, &datatype, both);
                let put = window.fence(|epoch| match me {
                    0 => {
                        let data = Origin::typed(&memory[..], COUNT as i64, &ty);
                        epoch.put(data, 1, 0, COUNT as i64, &ty)
                    }
                    _ => Ok(()),
                });
                put.unwrap();
                if me == 1 {
                    let found = window.local().bytes(0, wanted.len()).unwrap();
                    let [found, wanted] =
                        [&found, &wanted].map(|memory| items(&datatype, both[1], memory));
                    assert_eq!(found, wanted, "{datatype} on {there}, round {round}");
                }
            }
            window.free().unwrap();
        });
    }
}

#[test]
fn other_byte_displacements_are_refused_with_the_first_difference() {
    use Basic::{Char, Double, Int, Long};
    for (members, at, says) in [
        (
            [Char, Double],
            8,
            "member 1 (MPI_DOUBLE) lies at offset 8 on x86-64 and at offset 4 on i686",
        ),
        ([Double, Int], 8, "an element has 16 bytes on x86-64 and 12 on i686"),
        ([Int, Long], 8, "member 1 (MPI_LONG) lies at offset 8 on x86-64 and at offset 4 on i686"),
        ([Double, Int], 24, "aren't those of a C struct, and MPI_DOUBLE has 8 bytes aligned to 8"),
    ] {
        on(&[A::X86_64, A::I686], |rank| {
            let world = rank.world();
            for policy in ["same_layout", "strict"] {
                let info = Info::default().set("target_types", policy).unwrap();
                let mut window = Window::allocate(world, 1024, 1, &info).unwrap();
                let ty = rank.commit(&record(members, at)).unwrap();
                let memory = [0u8; 64];
                let put = window.fence(|epoch| match world.rank() {
                    0 => epoch.put(Origin::typed(&memory[..], 1, &ty), 1, 0, 1, &ty),
                    _ => Ok(()),
                });
                if world.rank() == 0 {
                    let error = put.unwrap_err();
                    assert_eq!(error.class(), Class::Type, "{error}");
                    let text = error.to_string();
                    assert_eq!(text.contains(says), policy == "same_layout", "{text}");
                }
                window.free().unwrap();
            }
        });
    }
}

/// Two integers are a double of the program's, where nothing is converted between the ranks.
#[test]
fn data_of_equal_length_match_where_all_items_have_the_same_bytes() {
    for (there, matches) in [(A::AARCH64, true), (A::S390X, false)] {
        on(&[A::X86_64, there], |rank| {
            let world = rank.world();
            let info = Info::default().set("target_types", "same_layout").unwrap();
            let mut window = Window::allocate(world, 64, 1, &info).unwrap();
            let (double, int) = (rank.type_of::<f64>().unwrap(), rank.type_of::<i32>().unwrap());
            let bits = 2.5f64.to_bits();
            let halves: Vec<u8> = bits.to_le_bytes().into();
            let put = window.fence(|epoch| match world.rank() {
                0 => epoch.put(Origin::typed(&halves[..], 2, &int), 1, 8, 1, &double),
                _ => Ok(()),
            });
            if world.rank() == 0 {
                assert_eq!(put.is_ok(), matches, "{there}: {put:?}");
            } else if matches {
                assert_eq!(window.get::<f64>(8).unwrap(), 2.5);
            }
            window.free().unwrap();
        });
    }
}

/// Data of equal length match only if both ranks have the same bytes of the items at both ends:
/// otherwise the receiver's bytes would be those of the sender's format.
#[test]
fn messages_of_equal_length_match_where_neither_end_converts() {
    const MOST: usize = 2000;
    for (sides, is_converted) in [
        ([A::X86_64, A::AARCH64], true),
        ([A::AARCH64, A::X86_64], true),
        ([A::X86_64; 2], false),
        // The machine's representation is another one.
        ([A::AARCH64; 2], false),
        ([A::AARCH64, A::LOONGARCH64], false),
    ] {
        let matching = Matching::Lengths;
        // The check of messages reports what matches by its length alone.
        let check = Checking::Off;
        let architectures = sides.to_vec();
        let options = Options { architectures, matching, check, ..Options::default() };
        run(2, &options, |rank| {
            let world = rank.world();
            let wide = rank.commit(&Datatype::from(Basic::LongDouble)).unwrap();
            let byte = rank.commit(&Datatype::from(Basic::Byte)).unwrap();
            let int = rank.type_of::<i32>().unwrap();
            // At once, and announced.
            for count in [1, MOST] {
                let len = count * 16;
                let memory = vec![7u8; len];
                let mut room = vec![0u8; len];
                for (datatype, size, is_converted) in [(&wide, 16, is_converted), (&int, 4, false)]
                {
                    let what = format!("{} from {} to {}", datatype, sides[0], sides[1]);
                    if world.rank() == 0 {
                        let elements = (len / size) as i64;
                        world.send(Origin::typed(&memory[..], elements, datatype), 1, 0).unwrap();
                        continue;
                    }
                    room.fill(0);
                    let data = Destination::typed(&mut room[..], len as i64, &byte);
                    let received = world.recv(data, 0, 0);
                    let class = received.err().map(|error| error.class());
                    assert_eq!(class, is_converted.then_some(Class::Type), "{what}");
                    assert_eq!(room == memory, !is_converted, "{what}");
                }
                // The other way around, the receiver would convert.
                if world.rank() == 0 {
                    let data = Origin::typed(&memory[..], len as i64, &byte);
                    world.send(data, 1, 1).unwrap();
                } else {
                    let data = Destination::typed(&mut room[..], count as i64, &wide);
                    let class = world.recv(data, 0, 1).err().map(|error| error.class());
                    assert_eq!(class, is_converted.then_some(Class::Type), "{sides:?}");
                }
            }
            rank.finalize().unwrap();
        })
        .unwrap();
    }
}

/// The items of a foreign type lie in its builder's memory, so they have to be asked too.
#[test]
fn bytes_match_no_foreign_type_whose_items_differ() {
    on(&[A::X86_64, A::AARCH64], |rank| {
        let world = rank.world();
        let info = Info::default().set("target_types", "same_layout").unwrap();
        let mut window = Window::allocate(world, 64, 1, &info).unwrap();
        for (basic, matches) in [(Basic::LongDouble, false), (Basic::CDoubleComplex, true)] {
            let own = rank.commit(&Datatype::from(basic)).unwrap();
            let byte = rank.commit(&Datatype::from(Basic::Byte)).unwrap();
            let bytes = [9u8; 16];
            let foreign = match world.rank() {
                0 => Some(world.type_recv(1, 0).unwrap()),
                _ => world.type_send(&own, 0, 0).map(|()| None).unwrap(),
            };
            let put = window.fence(|epoch| match &foreign {
                Some(foreign) => epoch.put(Origin::typed(&bytes[..], 16, &byte), 1, 0, 1, foreign),
                None => Ok(()),
            });
            if world.rank() == 0 {
                let class = put.err().map(|error| error.class());
                assert_eq!(class, (!matches).then_some(Class::Type), "{basic}");
            } else {
                let found = window.local().bytes(0, 16).unwrap();
                assert_eq!(found == bytes, matches, "{basic}");
            }
        }
        window.free().unwrap();
    });
}
