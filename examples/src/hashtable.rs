//! A hash table distributed over the windows of all ranks: `compare_and_swap` claims a slot for a
//! key, and `accumulate` adds to the count in it.
//!
//! No rank serves requests. To count a number, a rank finds the number's slot, claims the slot if
//! it is free, and adds one. When two ranks claim a slot at once, exactly one of them succeeds.
//! That holds between byte orders too, because the target compares in its own representation.

use std::collections::BTreeMap;
use std::error::Error;

use longshore::{Info, Op, Passive, Rank, Window};

use crate::random::splitmix64;
use crate::show::Show;

/// Slots in each rank's window. A slot is a key (0 if the slot is free) and a count.
const SLOTS: u64 = 64;
/// Numbers that each rank counts.
const DRAWS: u64 = 300;
/// Upper bound of the number of distinct keys.
const KEYS: u64 = 50;

/// Runs the example on any number of ranks.
///
/// # Errors
/// An error of the communication, or a count that differs from a serial count.
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
    show.check("every count equals that of a serial count", found == wanted)?;
    table.free()?;
    Ok(())
}

/// Finds or claims the slot of a key, by linear probing. Returns its rank and its index there.
fn claim(epoch: &Passive<'_, '_>, key: u64, size: u64) -> longshore::Result<(i32, i64)> {
    let mut probe = splitmix64(key) % (size * SLOTS);
    loop {
        let (owner, slot) = ((probe / SLOTS) as i32, (probe % SLOTS) as i64);
        let found = epoch.compare_and_swap(key, 0, owner, 2 * slot)?.wait()?;
        if found == 0 || found == key {
            return Ok((owner, slot));
        }
        probe = (probe + 1) % (size * SLOTS);
    }
}

/// The numbers that a rank counts. None is 0, which marks a free slot.
fn draws(rank: i32) -> impl Iterator<Item = u64> {
    let first = (rank as u64) << 32;
    (first..first + DRAWS).map(|draw| splitmix64(splitmix64(draw) % KEYS) | 1)
}
