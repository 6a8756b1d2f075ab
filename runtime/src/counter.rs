//! A counter in shared memory, which one rank writes and others wait for, asleep if they have to
//! wait long.
//!
//! ```text
//!    u32, little-endian: count << 1 | asleep
//! ```
//!
//! A reader that goes to sleep sets the low bit. The writer swaps the word, finds the bit and rings
//! the readers. All that the writer wrote before a count is visible to a reader that has read it.

use std::sync::atomic::{AtomicU32, Ordering};

/// The bit that the reader sets before it sleeps.
const ASLEEP: u32 = 1;

/// The highest count, and the mask of counts. They wrap: a reader waits for a count that is near.
pub(crate) const COUNTS: u32 = u32::MAX >> 1;

/// The count after this one, which may be 0.
#[inline]
pub(crate) fn next(count: u32) -> u32 {
    count.wrapping_add(1) & COUNTS
}

/// Writes a count. Returns true if a reader sleeps and the caller has to ring the readers.
#[inline]
pub(crate) fn set(word: &AtomicU32, count: u32) -> bool {
    // Pairs with the load and the exchange in `is_within`.
    let before = word.swap((count << 1).to_le(), Ordering::AcqRel);
    u32::from_le(before) & ASLEEP != 0
}

/// The last count, for its writer.
pub(crate) fn last(word: &AtomicU32) -> u32 {
    // The reader changes only the low bit.
    u32::from_le(word.load(Ordering::Relaxed)) >> 1
}

/// Whether this count is reached. If it isn't, and `arming` is set, marks the reader as asleep, so
/// that the writer of the next count rings it.
#[inline]
pub(crate) fn is_reached(word: &AtomicU32, count: u32, arming: bool) -> bool {
    is_within(word, count, COUNTS / 2, arming)
}

/// Whether this count, or one of so many after it, is written, as [`is_reached`] does.
#[inline]
pub(crate) fn is_within(word: &AtomicU32, count: u32, more: u32, arming: bool) -> bool {
    let is_there = |word: u32| (u32::from_le(word) >> 1).wrapping_sub(count) & COUNTS <= more;
    // Pairs with the swap in `set`.
    let mut found = word.load(Ordering::Acquire);
    loop {
        if is_there(found) || !arming {
            return is_there(found);
        }
        let asleep = found | ASLEEP.to_le();
        // Writers of other counts may come between, and another reader may have set the bit.
        match word.compare_exchange(found, asleep, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return false,
            Err(now) => found = now,
        }
    }
}

/// Counts that a rank leaves for good, in another word than counts of rounds. Returns true to the
/// last of so many ranks, which then may free the memory: what the others have read of it they
/// read before.
pub(crate) fn leave(word: &AtomicU32, ranks: u32) -> bool {
    let next = |left: u32| Some(u32::from_le(left).wrapping_add(1).to_le());
    let (Ok(before) | Err(before)) = word.fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
    u32::from_le(before).wrapping_add(1) == ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_wrap_and_a_sleeper_is_rung_once() {
        let word = AtomicU32::new(0);
        assert!(!set(&word, COUNTS) && last(&word) == COUNTS);
        assert!(is_reached(&word, COUNTS, true) && is_reached(&word, COUNTS - 1, true));
        assert!(is_within(&word, COUNTS, 0, true) && !is_within(&word, COUNTS - 1, 0, false));
        assert_eq!(next(COUNTS), 0);
        assert!(!is_reached(&word, 0, false) && !is_reached(&word, 0, true));
        assert_eq!(last(&word), COUNTS);
        assert!(set(&word, 0) && is_reached(&word, 0, true));
        assert!(!set(&word, 1));
    }
}
