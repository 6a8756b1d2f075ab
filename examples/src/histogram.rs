//! A histogram that is summed first by loads from shared memory, then by `accumulate`.
//!
//! 1. Each rank counts its draws in its own segment of a shared window.
//! 2. Ranks of one representation on one host form a group. Each rank of a group sums a stripe of
//!    the bins by loading that stripe from the segments of the whole group.
//! 3. Each rank accumulates its stripe into the window of rank 0. This step crosses hosts and
//!    representations: `accumulate` adds in the representation of the target.

use std::error::Error;
use std::ops::Range;

use longshore::{Communicator, Info, Op, Rank, SplitType, Window};

use crate::random::splitmix64;
use crate::show::Show;

const BINS: usize = 40;
/// Numbers that each rank draws.
const DRAWS: u64 = 2000;

/// Runs the example on any number of ranks.
///
/// # Errors
/// An error of the communication, or a count that differs from a serial count.
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
        // A sync on either side of the barrier: loads after it return the stores before it.
        epoch.sync()?;
        near.barrier()?;
        epoch.sync()?;
        let mut counts = vec![0u64; stripe.len()];
        for other in 0..near.size() {
            shared.shared_query(other)?.read(stripe.start as i64, &mut counts)?;
            sums.iter_mut().zip(&counts).for_each(|(sum, count)| *sum += count);
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
    show.check("every bin equals that of a serial count", me != 0 || found == wanted)?;
    total.free()?;
    shared.free()?;
    near.free()?;
    Ok(())
}

/// The ranks that can load each other's numbers directly: those on one host with one
/// representation.
fn alike(world: &Communicator) -> Result<Communicator, Box<dyn Error>> {
    let missing = "split_type returned no communicator, although every rank named a type";
    let host = world.split_type(Some(SplitType::Shared), 0)?.ok_or(missing)?;
    let alike = host.split_type(Some(SplitType::Architecture), 0)?.ok_or(missing)?;
    host.free()?;
    Ok(alike)
}

/// The bins that a rank sums for its group.
fn stripe(near: &Communicator) -> Range<usize> {
    let (rank, size) = (near.rank() as usize, near.size() as usize);
    rank * BINS / size..(rank + 1) * BINS / size
}

/// The bin of each number that a rank draws. Each is the mean of four uniform numbers, so the
/// middle bins get the most.
fn draws(rank: i32) -> impl Iterator<Item = i64> {
    let first = (rank as u64) << 32;
    (first..first + DRAWS).map(|draw| {
        let numbers = (4 * draw..).take(4).map(|number| splitmix64(number) % BINS as u64);
        numbers.sum::<u64>() as i64 / 4
    })
}
