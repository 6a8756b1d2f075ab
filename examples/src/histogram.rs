//! A histogram: each rank counts what it draws in memory of its own, ranks of one representation on one host add up their
//! counts by loads from each other's memory, and what they found meets in one rank's window by accumulate.
//!
//! Within shared memory nobody calls anything: a rank sums a stripe of the bins over all parts. Between unlike ranks, or hosts,
//! accumulate adds in the target's representation.

use std::error::Error;
use std::ops::Range;

use longshore::{Communicator, Info, Op, Rank, SplitType, Window};

use crate::random::mixed;
use crate::show::Show;

const BINS: usize = 40;
/// What a rank draws.
const DRAWS: u64 = 2000;

/// Plays it on any number of ranks.
///
/// # Errors
/// What the communication meets, and a count that differs from what one rank alone counts.
pub fn run(rank: &Rank) -> Result<(), Box<dyn Error>> {
    let world = rank.world();
    let show = Show::new(rank);
    let (me, size) = (world.rank(), world.size());
    let near = alike(world)?;
    let groups = world.allgather(&[near.rank()])?.iter().filter(|&&rank| rank == 0).count();
    show.step(&format!(
        "Histogram: {size} ranks, memory shared by groups: {groups}; {DRAWS} draws each"
    ))?;

    let shared = Window::allocate_shared(&near, (BINS * 8) as i64, 8, &Info::default())?;
    let mut total = Window::allocate(world, (BINS * 8) as i64, 8, &Info::default())?;
    let count = rank.type_of::<u64>()?;
    let mine = shared.local();
    let stripe = stripe(&near);
    let mut sums = vec![0u64; stripe.len()];
    shared.lock_all(|epoch| {
        for bin in draws(me) {
            mine.set(bin, mine.get::<u64>(bin)? + 1)?;
        }
        // What was stored before the barrier is loaded behind it.
        epoch.sync()?;
        near.barrier()?;
        epoch.sync()?;
        let mut part = vec![0u64; stripe.len()];
        for other in 0..near.size() {
            shared.shared_query(other)?.read(stripe.start as i64, &mut part)?;
            sums.iter_mut().zip(&part).for_each(|(sum, part)| *sum += part);
        }
        Ok(())
    })?;
    let (start, bins) = (stripe.start as i64, stripe.len() as i64);
    total.fence(|epoch| epoch.accumulate(&sums, 0, start, bins, &count, Op::Sum))?;

    let mut found = vec![0u64; BINS];
    total.read(0, &mut found)?;
    let mut wanted = vec![0u64; BINS];
    (0..size).flat_map(draws).for_each(|bin| wanted[bin as usize] += 1);
    let highest = found.iter().max().copied().unwrap_or(0);
    show.say(&format!("the highest of {BINS} bins holds {highest}"))?;
    show.check("every bin holds what a rank alone counts", me != 0 || found == wanted)?;
    total.free()?;
    shared.free()?;
    near.free()?;
    Ok(())
}

/// The ranks that can load each other's numbers as they lie: those on one host, of one representation.
fn alike(world: &Communicator) -> Result<Communicator, Box<dyn Error>> {
    let missing = "a split by type has every rank in a part";
    let host = world.split_type(Some(SplitType::Shared), 0)?.ok_or(missing)?;
    let alike = host.split_type(Some(SplitType::Architecture), 0)?.ok_or(missing)?;
    host.free()?;
    Ok(alike)
}

/// The bins that a rank adds up.
fn stripe(near: &Communicator) -> Range<usize> {
    let (rank, size) = (near.rank() as usize, near.size() as usize);
    rank * BINS / size..(rank + 1) * BINS / size
}

/// The bins of what a rank draws: sums of uniform numbers, so that they heap up in the middle.
fn draws(rank: i32) -> impl Iterator<Item = i64> {
    let first = (rank as u64) << 32;
    (first..first + DRAWS).map(|draw| {
        let numbers = (4 * draw..).take(4).map(|at| mixed(at) % BINS as u64);
        numbers.sum::<u64>() as i64 / 4
    })
}
