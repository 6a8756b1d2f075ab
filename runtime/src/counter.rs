//! A counter in shared memory, which one rank writes and another waits for, asleep if it has to
//! wait long.
//!
//! ```text
//!    u32, little-endian: count << 1 | asleep
//! ```
//!
//! A reader that goes to sleep sets the low bit. The writer swaps the word, finds the bit and rings
//! the reader. All that the writer wrote before a count is visible to a reader that has read it.

use std::sync::atomic::{AtomicU32, Ordering};

/// The bit that the reader sets before it sleeps.
const ASLEEP: u32 = 1;

/// The highest count, and the mask of counts. They wrap: neither side is ever more than a few
/// ahead.
pub(crate) const COUNTS: u32 = u32::MAX >> 1;

/// The count after this one, which may be 0.
#[inline]
pub(crate) fn next(count: u32) -> u32 {
    count.wrapping_add(1) & COUNTS
}

/// Writes a count. Returns true if the reader sleeps and the caller has to ring it.
#[inline]
pub(crate) fn set(word: &AtomicU32, count: u32) -> bool {
    // Pairs with the load and the exchange in `is_reached`.
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
    holds(word, |found| found.wrapping_sub(count) & COUNTS <= COUNTS / 2, arming)
}

/// Whether exactly this count is written, as [`is_reached`] does.
#[inline]
pub(crate) fn is_exactly(word: &AtomicU32, count: u32, arming: bool) -> bool {
    holds(word, |found| found == count, arming)
}

/// Whether the count is one that the reader waits for.
#[inline(always)] // The closure is part of the reader's loop.
fn holds(word: &AtomicU32, is_awaited: impl Fn(u32) -> bool, arming: bool) -> bool {
    let is_there = |word: u32| is_awaited(u32::from_le(word) >> 1);
    // Pairs with the swap in `set`.
    let found = word.load(Ordering::Acquire);
    if is_there(found) || !arming {
        return is_there(found);
    }
    let asleep = found | ASLEEP.to_le();
    match word.compare_exchange(found, asleep, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => false,
        Err(found) => is_there(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_wrap_and_a_sleeper_is_rung_once() {
        let word = AtomicU32::new(0);
        assert!(!set(&word, COUNTS) && last(&word) == COUNTS);
        assert!(is_reached(&word, COUNTS, true) && is_reached(&word, COUNTS - 1, true));
        assert!(is_exactly(&word, COUNTS, true) && !is_exactly(&word, COUNTS - 1, false));
        assert_eq!(next(COUNTS), 0);
        assert!(!is_reached(&word, 0, false) && !is_reached(&word, 0, true));
        assert_eq!(last(&word), COUNTS);
        assert!(set(&word, 0) && is_reached(&word, 0, true));
        assert!(!set(&word, 1));
    }
}
