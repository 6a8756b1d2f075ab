//! A count in shared memory that one rank writes and another waits for, asleep if need be.
//!
//! ```text
//!    u32, little-endian: count << 1 | asleep
//! ```
//!
//! A reader that goes to sleep sets the low bit, and the writer, which swaps, finds it and rings. Whatever was written before
//! a count was told is visible to who has heard it.

use std::sync::atomic::{AtomicU32, Ordering};

/// The bit that says that the reader sleeps.
const ASLEEP: u32 = 1;

/// The counts there are, which wrap, and the mask of them. Neither side is ever more than a few ahead.
pub(crate) const COUNTS: u32 = u32::MAX >> 1;

/// The count after this one.
#[inline]
pub(crate) fn next(count: u32) -> u32 {
    count.wrapping_add(1) & COUNTS
}

/// Tells a count; true if its reader sleeps, and is to be rung.
#[inline]
pub(crate) fn tell(word: &AtomicU32, count: u32) -> bool {
    // Pairs with the load and the exchange in `heard`.
    let before = word.swap((count << 1).to_le(), Ordering::AcqRel);
    u32::from_le(before) & ASLEEP != 0
}

/// What was told last, for who tells.
pub(crate) fn told(word: &AtomicU32) -> u32 {
    // The reader changes the low bit alone.
    u32::from_le(word.load(Ordering::Relaxed)) >> 1
}

/// Whether this count was told, or a later one. With `arming`, who tells the next one hears that its reader sleeps.
#[inline]
pub(crate) fn heard(word: &AtomicU32, count: u32, arming: bool) -> bool {
    let reached = |word: u32| (u32::from_le(word) >> 1).wrapping_sub(count) & COUNTS <= COUNTS / 2;
    let found = word.load(Ordering::Acquire);
    if reached(found) || !arming {
        return reached(found);
    }
    let asleep = found | ASLEEP.to_le();
    match word.compare_exchange(found, asleep, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => false,
        Err(found) => reached(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_wrap_and_who_sleeps_is_rung_once() {
        let word = AtomicU32::new(0);
        assert!(!tell(&word, COUNTS) && told(&word) == COUNTS);
        assert!(heard(&word, COUNTS, true) && heard(&word, COUNTS - 1, true));
        assert_eq!(next(COUNTS), 0);
        assert!(!heard(&word, 0, false) && !heard(&word, 0, true));
        assert_eq!(told(&word), COUNTS);
        assert!(tell(&word, 0) && heard(&word, 0, true));
        assert!(!tell(&word, 1));
    }
}
