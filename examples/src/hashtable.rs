//! A hash table over all ranks' windows: keys are claimed by compare_and_swap, their counts grow by accumulate.
//!
//! Nobody serves the table: whoever counts a number finds its slot, claims it if it is free, and adds one. Two ranks that claim
//! a slot at once agree on who got it, whatever their byte orders, since the comparison happens where the slot lies.

use std::collections::BTreeMap;
use std::error::Error;

use longshore::{Info, Op, Passive, Rank, Window};

use crate::random::mixed;
use crate::show::Show;

/// Slots of each rank: a key, 0 where it is free, and a count.
const SLOTS: u64 = 64;
/// What a rank counts: so many numbers, of so many different ones.
const DRAWS: u64 = 300;
const DIFFERENT: u64 = 50;

/// Plays it on any number of ranks.
///
/// # Errors
/// What the communication meets, and a count that differs from what one rank alone counts.
pub fn run(rank: &Rank) -> Result<(), Box<dyn Error>> {
    let world = rank.world();
    let show = Show::new(rank);
    let (me, size) = (world.rank(), world.size() as u64);
    let table = Window::allocate(world, (SLOTS * 16) as i64, 8, &Info::default())?;
    let count = rank.type_of::<u64>()?;
    show.step(&format!(
        "Hash table: {size} ranks count {DRAWS} numbers each in {} slots",
        size * SLOTS
    ))?;

    table.lock_all(|epoch| {
        for key in draws(me) {
            let (owner, slot) = claim(epoch, key, size)?;
            epoch.accumulate(&[1u64], owner, 2 * slot + 1, 1, &count, Op::Sum)?;
        }
        Ok(())
    })?;
    world.barrier()?;

    let mut slots = vec![0u64; 2 * SLOTS as usize];
    table.read(0, &mut slots)?;
    let all = world.allgather(&slots)?;
    let taken = all.chunks(2).filter(|slot| slot[0] != 0);
    let found: BTreeMap<u64, u64> = taken.clone().map(|slot| (slot[0], slot[1])).collect();
    let mut wanted = BTreeMap::new();
    for rank in 0..size as i32 {
        draws(rank).for_each(|key| *wanted.entry(key).or_insert(0) += 1);
    }
    show.say(&format!("{} keys; each rank holds those that hash to it", found.len()))?;
    show.check("no key has two slots", taken.count() == found.len())?;
    show.check("every count is what a rank alone counts", found == wanted)?;
    table.free()?;
    Ok(())
}

/// The slot of a key: its own, or the next one that is free. The key is in it afterwards.
fn claim(epoch: &Passive<'_, '_>, key: u64, size: u64) -> longshore::Result<(i32, i64)> {
    let mut place = mixed(key) % (size * SLOTS);
    loop {
        let (owner, slot) = ((place / SLOTS) as i32, (place % SLOTS) as i64);
        let found = epoch.compare_and_swap(key, 0, owner, 2 * slot)?.wait()?;
        if found == 0 || found == key {
            return Ok((owner, slot));
        }
        place = (place + 1) % (size * SLOTS);
    }
}

/// The numbers that a rank counts, none of them 0.
fn draws(rank: i32) -> impl Iterator<Item = u64> {
    let first = (rank as u64) << 32;
    (first..first + DRAWS).map(|draw| mixed(mixed(draw) % DIFFERENT) | 1)
}
