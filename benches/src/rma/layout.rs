//! The positions of a case's elements in the memory of a rank.

use longshore::{Datatype, Rank, Type};

use crate::Failure;
use crate::case::{Case, IN_FLIGHT};
use crate::pattern::{self, Pattern};

/// The most bytes that the slots of operations in flight may take.
const MOST: usize = 4 << 20;

/// A case's elements in this rank's memory: contiguous slots of `count` elements each.
pub struct Layout {
    /// The type of one element, committed.
    pub own: Type,
    /// Elements of a slot.
    pub count: i64,
    /// Bytes of a slot.
    pub slot_size: usize,
    /// The offset of displacement 0 in a slot.
    pub zero: i64,
    /// Bytes from a page's start to the origin's memory.
    pub offset: usize,
    /// The number of slots, which is the number of operations in an epoch.
    pub slots: usize,
    /// The data for validation. `None` if the type has items without such data.
    pub pattern: Option<Pattern>,
}

/// Bytes from one slot to the next, which keep doubles aligned in every slot. It equals `rounded`
/// in
/// `benches/peers/windows.c`.
fn slot_size(bytes: u64) -> Option<u64> {
    if bytes < 16 { Some(bytes.next_power_of_two()) } else { bytes.checked_next_multiple_of(16) }
}

/// Operations to each synchronisation: a power of two. `benches/peers/windows.c` computes the same
/// number, so that all contenders do the same work.
fn batch(slot_size: usize, calls: u32) -> usize {
    1 << (MOST / slot_size).clamp(1, IN_FLIGHT.min(calls) as usize).ilog2()
}

impl Layout {
    /// The layout of a case at this rank.
    ///
    /// # Errors
    /// A type that doesn't exist at this rank, or too much memory.
    pub fn new(rank: &Rank, case: &Case) -> Result<Layout, Failure> {
        let datatype: Datatype = case.datatype.parse()?;
        // The types that Rust programs use for their slices.
        let own = match case.datatype.as_str() {
            "d" => rank.type_of::<f64>()?,
            "i64" => rank.type_of::<i64>()?,
            "i8" => rank.type_of::<i8>()?,
            _ => rank.commit(&datatype)?,
        };
        let pattern = Pattern::new(&datatype, case.count, rank.architecture())?;
        let committed = longshore::shipable::Committed::new(&datatype, rank.architecture())?;
        let reach = committed.native().range(case.count)?;
        let whole = i128::from(own.extent()) * i128::from(case.count);
        // Windows have no negative displacements, so a slot includes the bytes before displacement
        // 0.
        let zero = -reach.start.min(0);
        let bytes = whole.max(i128::from(reach.end) + i128::from(zero)).max(1);
        let bytes = u64::try_from(bytes)?;
        let slot_size = slot_size(bytes).filter(|&slot_size| slot_size <= 1 << 30);
        let slot_size = slot_size.ok_or("more than 1 GiB of memory")? as usize;
        let slots = match case.bench {
            bench if bench.streams() => batch(slot_size, case.calls),
            _ => 1,
        };
        let count = i64::try_from(case.count)?;
        let offset = usize::try_from(case.offset)?;
        Ok(Layout { own, count, slot_size, zero, offset, slots, pattern })
    }

    /// Bytes of all slots.
    pub fn len(&self) -> usize {
        self.slots * self.slot_size
    }

    /// Fills the slots with validation data: the sums of the patterns of `seeds`, which differ from
    /// slot to slot, and the gap bytes of seed `gaps`. The last bytes of the last slot may be
    /// missing.
    ///
    /// # Errors
    /// Memory that is shorter than the slots.
    pub fn fill(&self, memory: &mut [u8], seeds: &[u64], gaps: u64) -> Result<(), Failure> {
        let Some(pattern) = &self.pattern else { return Ok(()) };
        pattern::fill_gaps(memory, gaps);
        for (at, slot) in (0..).zip(memory.chunks_mut(self.slot_size)) {
            let seeds: Vec<u64> = seeds.iter().map(|seed| seed + at).collect();
            pattern.write(slot, self.zero, &seeds)?;
        }
        Ok(())
    }
}

/// The first item of a seed's pattern.
pub fn first(seed: u64) -> i64 {
    pattern::number(0, &[seed]) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_to_a_synchronisation_equal_those_of_the_peers() {
        for (bytes, calls, operations) in [
            (1, 2048, 64),
            (24, 2048, 64),
            // 13 slots would fit, but 16 calls must be whole batches.
            (300_000, 16, 8),
            (1 << 20, 16, 4),
            (8 << 20, 16, 1),
            (8, 5, 4),
        ] {
            let slot_size = slot_size(bytes).unwrap_or_default() as usize;
            assert_eq!(batch(slot_size, calls), operations, "{bytes} bytes, {calls} calls");
        }
        assert_eq!([1, 3, 8, 15, 16, 24].map(slot_size), [1, 4, 8, 16, 16, 32].map(Some));
    }
}
