//! Collective calls that fail, and calls that differ between ranks.

use longshore::job::Checking;
use longshore::sim::{Options, run, run_shared};
use longshore::{Class, Datatype, Op, Origin, Rank, UserOp};

use super::{everywhere_with, on_ranks};

/// Ranks that pass operands of other lengths, which may go by message, delay no other rank.
#[test]
fn operands_that_differ_in_length_are_an_error_where_they_are_combined() {
    on_ranks([1, 2, 5].into_iter(), Checking::Off, |_, world| {
        let (me, last) = (world.rank(), world.size() - 1);
        let add = UserOp::new(|low: &[i64], high: &mut [i64]| {
            low.iter().zip(high).for_each(|(low, high)| *high += low);
        });
        let class = |outcome: longshore::Result<()>| outcome.err().map(|error| error.class());
        for (most, one) in [(3, 40_000), (40_000, 3), (40_000, 50_000)] {
            let mine = vec![1i64; if me == last { one } else { most }];
            let mut room = mine.clone();
            let differ = (last > 0).then_some(Class::Type);
            let outcome = world.reduce(&mine, &mut room, &add, 0);
            assert_eq!(class(outcome), differ.filter(|_| me == 0));
            assert_eq!(class(world.allreduce(&mine, &mut room, &add)), differ);
            let outcome = world.scan(&mine, &mut room, &add);
            assert_eq!(class(outcome), differ.filter(|_| me == last));
            world.barrier().unwrap();
        }
    });
}

/// Ranks that have posted their data already learn of the others' from the general steps.
#[test]
fn short_data_that_differ_in_length_or_type_are_an_error() {
    on_ranks([1, 2, 3, 5].into_iter(), Checking::Off, |_, world| {
        let (me, size) = (world.rank(), world.size());
        let is_other = me == size - 1 && size > 1;
        let class = |outcome: longshore::Result<()>| outcome.err().map(|error| error.class());
        let differ = (size > 1).then_some(Class::Type);
        // One rank has more elements, or others.
        let numbers = vec![me; if is_other { 2 } else { 1 }];
        let (mut total, mut all) = (numbers.clone(), numbers.repeat(size as usize));
        assert_eq!(class(world.allreduce(&numbers, &mut total, Op::Max)), differ);
        let outcome = world.reduce(&numbers, &mut total, Op::Max, 0);
        assert_eq!(class(outcome), differ.filter(|_| me == 0));
        assert_eq!(class(world.scan(&numbers, &mut total, Op::Max)), differ.filter(|_| is_other));
        assert!(class(world.allgather_into(&numbers, &mut all)).is_some() == (size > 1));
        assert!(class(world.alltoall(&all.clone(), &mut all)).is_some() == (size > 1));
        assert_eq!(class(world.reduce_scatter_block(&all.clone(), &mut total, Op::Max)), differ);
        let outcome = match is_other {
            true => world.bcast(&mut [0.0f32], 0),
            false => world.bcast(&mut [1i32], 0),
        };
        assert_eq!(class(outcome), differ.filter(|_| is_other));
        // Nothing is left over.
        let mut sum = [0];
        world.allreduce(&[1], &mut sum, Op::Sum).unwrap();
        assert_eq!(sum, [size]);
    });
}

#[test]
fn ranks_that_divide_short_operands_differently_get_an_error() {
    everywhere_with(Checking::Off, |_, world| {
        let (me, size) = (world.rank(), world.size());
        let mut ranges: Vec<_> = (0..i64::from(size)).map(|rank| rank..rank + 1).collect();
        let is_other = me == size - 1 && size > 1;
        if is_other {
            ranges.swap(0, 1);
        }
        let mine = vec![me; size as usize];
        let outcome = world.reduce_scatter(&mine, &mut [0], &ranges, Op::Sum);
        let class = outcome.err().map(|error| error.class());
        assert_eq!(class, (size > 1).then_some(Class::Type));
        world.barrier().unwrap();
    });
}

#[test]
fn an_error_at_one_rank_reaches_the_ranks_that_need_its_data() {
    // `--check` reports such calls before they are made.
    everywhere_with(Checking::Off, |_, world| {
        let (me, size) = (world.rank(), world.size());
        let class = |outcome: longshore::Result<()>| outcome.err().map(|error| error.class());
        assert_eq!(class(world.bcast(&mut [0], size)), Some(Class::Root));
        assert_eq!(class(world.allreduce(&[1.0], &mut [0.0], Op::Band)), Some(Class::Op));
        assert_eq!(class(world.allreduce(&[1], &mut [0], Op::Replace)), Some(Class::Op));
        // A count that differs from the other ranks'.
        let data = vec![1; if me == size - 1 { 2 } else { 1 }];
        let mut room = data.clone();
        let outcome = world.allreduce(&data, &mut room, Op::Sum);
        assert_eq!(outcome.is_err(), size > 1);
        // The element count isn't a multiple of the size: all ranks get the root's error.
        let uneven = vec![0; size as usize + 1];
        let outcome = world.scatter(&uneven, &mut [0], 0);
        assert_eq!(class(outcome), (size > 1).then_some(Class::Count).or(Some(Class::Type)));
        world.barrier().unwrap();
    });
}

/// Runs a program whose ranks make different calls, in several orders, without `--check`.
fn mismatched(ranks: u32, body: impl Fn(&Rank) + Sync) {
    let whole = |rank: Rank| {
        body(&rank);
        // The ranks may have left messages of different calls.
        let _ = rank.finalize();
    };
    for seed in 0..4 {
        let options = Options { seed, check: Checking::Off, ..Options::default() };
        run(ranks, &options, whole).unwrap();
    }
    let options = Options { check: Checking::Off, ..Options::default() };
    run_shared(ranks, &options, whole).unwrap();
}

#[test]
fn calls_with_different_roots_are_not_taken_for_later_ones() {
    mismatched(3, |rank| {
        let world = rank.world();
        let me = world.rank();
        let mut faults = Vec::new();
        // Each rank takes itself for the root, and receives nothing.
        faults.extend(world.bcast(&mut [100 + me], me).err());
        for round in 0..3 {
            let mut value = [if me == 0 { round } else { -1 }];
            faults.extend(world.bcast(&mut value, 0).err());
            assert_eq!(value, [round]);
        }
        let mut sum = [0];
        faults.extend(world.allreduce(&[1], &mut sum, Op::Sum).err());
        assert_eq!(sum, [3]);
        faults.extend(world.barrier().err());
        if me != 0 {
            let ours =
                format!("(call 1) where this rank makes bcast with root {me} (call 1): make");
            let names =
                |text: String| text.contains("makes bcast with root") && text.contains(&ours);
            assert!(faults.iter().any(|fault| names(fault.to_string())), "{faults:?}");
        }
        assert!(faults.iter().all(|fault| fault.class() == Class::RmaSync), "{faults:?}");
    });
}

#[test]
fn a_call_that_meets_another_one_names_both() {
    mismatched(2, |rank| {
        let world = rank.world();
        let fault = match world.rank() {
            0 => world.allgather(&[1, 2, 3]).map(drop),
            _ => world.alltoall(&[1, 2], &mut [0; 2]),
        };
        let text = fault.unwrap_err().to_string();
        let [theirs, ours] = match world.rank() {
            0 => ["alltoall", "allgather"],
            _ => ["allgather", "alltoall"],
        };
        let words = format!("makes {theirs} (call 1) where this rank makes {ours} (call 1)");
        assert!(text.contains(&words) && text.contains("--check"), "{text}");
    });
    // Long messages wait for a receive that the other rank never makes.
    mismatched(2, |rank| {
        let me = rank.world().rank();
        let mut long = vec![me; 50_000];
        let text = rank.world().bcast(&mut long, me).unwrap_err().to_string();
        assert!(text.contains(&format!("bcast with root {} (call 1)", 1 - me)), "{text}");
    });
}

#[test]
fn a_rank_that_has_gone_on_to_its_next_call_is_not_awaited() {
    mismatched(2, |rank| {
        let world = rank.world();
        let mut value = [world.rank()];
        if world.rank() == 0 {
            // Refused at once: rank 0 takes no part.
            assert_eq!(world.bcast(&mut value, 5).unwrap_err().class(), Class::Root);
            let _ = world.bcast(&mut value, 0);
        } else {
            let text = world.bcast(&mut value, 0).unwrap_err().to_string();
            let words = "rank 0 makes bcast with root 0 (call 2) where this rank makes bcast with root 0 (call 1)";
            assert!(text.contains(words), "{text}");
        }
    });
}

#[test]
fn a_stream_beyond_memory_is_an_error_at_all_ranks() {
    let body = |rank: Rank| {
        let world = rank.world();
        // Many elements at one place: a petabyte when packed.
        let one = [1u8];
        let still = Datatype::resized(0, 0, &Datatype::byte()).unwrap();
        let still = rank.commit(&still).unwrap();
        let data = || Origin::typed(&one[..], 1 << 50, &still);
        let mut room = [0u8; 4];
        let faults = [
            world.gather(data(), &mut room, 0),
            world.reduce(data(), &mut room, Op::Bor, 0),
            world.allreduce(data(), &mut room, Op::Bor),
            world.scan(data(), &mut room, Op::Bor),
        ];
        for fault in faults {
            if let Err(error) = fault {
                assert_eq!(error.class(), Class::NoMem, "{error}");
            } else {
                panic!("no error");
            }
        }
        rank.finalize().unwrap();
    };
    let options = Options { check: Checking::Off, ..Options::default() };
    run(2, &options, body).unwrap();
}
