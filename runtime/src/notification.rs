//! A notification counter in shared memory: any rank raises it, and its owner waits for a value,
//! asleep if it has to wait long.
//!
//! ```text
//!    0  u32  count << 1 | asleep    the low 31 bits of the count
//!    4  u32  wraps                  how often these bits have begun again at 0
//! ```
//!
//! A rank raises the counter by one atomic addition to the first word. The rank whose addition
//! makes the count begin again at 0 counts the wrap as well. So the count has 63 bits, and no
//! machine needs an atomic of 64 bits. Between the two additions the count seems too low. It never
//! falls, so the owner keeps the last value that it has read, and doesn't believe a lower one.
//!
//! An owner that polls loads only the first word. From its low bits the owner learns by how much
//! the count has risen since it read both words.
//!
//! A counter that one origin raises could be raised by a plain store. It would gain nothing: the
//! addition takes about a nanosecond longer between two cores, and the origin would have to learn
//! in another way that the owner sleeps (docs/tuning.md, "Notifications to and fro").
//!
//! An owner that goes to sleep sets the low bit. Every rank that raises the counter then rings it,
//! until the owner clears the bit.
//!
//! Only ranks of the owner's representation share the words, so they have its byte order. The owner
//! raises the counter itself for all other ranks.

use std::sync::atomic::{AtomicU32, Ordering};

const ASLEEP: u32 = 1;
const ONE: u32 = 2;

/// The bits of the count in the first word.
const LOW: u32 = 31;

/// Bytes between two counters: a cache line, so that origins of different counters don't meet.
pub(crate) const STRIDE: u64 = 64;

/// A counter.
#[derive(Clone, Copy)]
pub(crate) struct Notification<'a> {
    pub count: &'a AtomicU32,
    pub wraps: &'a AtomicU32,
}

impl Notification<'_> {
    /// Adds one. All that the caller wrote before is visible to an owner that reads the new count,
    /// and all that it read before was read. Returns true if the owner sleeps and the caller has to
    /// ring it.
    #[inline]
    pub(crate) fn raise(self) -> bool {
        // Pairs with the loads in `read` and the exchange in `arm`.
        let before = self.count.fetch_add(ONE, Ordering::AcqRel);
        if before >= u32::MAX - ASLEEP {
            self.wraps.fetch_add(1, Ordering::Release);
        }
        before & ASLEEP != 0
    }

    /// The count, at least `last`: what the owner read last.
    #[inline]
    pub(crate) fn read(self, last: u64) -> u64 {
        loop {
            let wraps = self.wraps.load(Ordering::Acquire);
            let count = self.count.load(Ordering::Acquire);
            // A wrap that was counted is seen in the count as well, so only an older one is wrong.
            if self.wraps.load(Ordering::Acquire) == wraps {
                return last.max(u64::from(wraps) << LOW | u64::from(count >> 1));
            }
        }
    }

    /// By how much the count has risen above `last`, what the owner read last: less, by a multiple
    /// of 2^31, if it has risen by more than 31 bits hold. So `last` and the result together are a
    /// count that was reached. One load, for an owner that polls.
    #[inline]
    pub(crate) fn risen(self, last: u64) -> u32 {
        // Pairs with the addition in `raise`.
        let count = self.count.load(Ordering::Acquire) >> 1;
        count.wrapping_sub(last as u32) & (u32::MAX >> 1)
    }

    /// Marks the owner as asleep: ranks that raise the counter from here on ring it. The owner
    /// reads the count once more before it sleeps.
    pub(crate) fn arm(self) {
        self.count.fetch_or(ASLEEP, Ordering::AcqRel);
    }

    /// The owner sleeps no more.
    pub(crate) fn disarm(self) {
        self.count.fetch_and(!ASLEEP, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(count: u32, wraps: u32, body: impl FnOnce(Notification<'_>)) {
        let (count, wraps) = (AtomicU32::new(count), AtomicU32::new(wraps));
        body(Notification { count: &count, wraps: &wraps });
    }

    #[test]
    fn a_sleeper_is_rung_until_it_wakes() {
        with(0, 0, |counter| {
            assert!(!counter.raise());
            counter.arm();
            assert!(counter.raise() && counter.raise());
            counter.disarm();
            assert!(!counter.raise());
            assert_eq!(counter.read(0), 4);
        });
    }

    #[test]
    fn a_count_passes_31_bits() {
        let most = u32::MAX - ASLEEP;
        for asleep in [0, ASLEEP] {
            with(most | asleep, 2, |counter| {
                assert_eq!(counter.read(0), (3 << LOW) - 1);
                assert_eq!(counter.raise(), asleep != 0);
                assert_eq!(counter.read(0), 3 << LOW);
                assert_eq!(counter.count.load(Ordering::Relaxed), asleep);
            });
        }
        // A rank has begun the low bits again, and not counted the wrap yet.
        with(ONE, 2, |counter| assert_eq!(counter.read((3 << LOW) - 1), (3 << LOW) - 1));
    }

    #[test]
    fn a_poll_sees_by_how_much_a_count_has_risen() {
        for (count, wraps) in [(0, 0), (ASLEEP, 3), (u32::MAX - ASLEEP, 2), (u32::MAX - 3, 0)] {
            with(count, wraps, |counter| {
                let last = counter.read(0);
                assert_eq!(counter.risen(last), 0);
                for more in 1..=3 {
                    counter.raise();
                    assert_eq!(counter.risen(last), more);
                    assert_eq!(counter.risen(last + u64::from(more)), 0);
                    assert_eq!(counter.read(last), last + u64::from(more));
                }
                // After 2^31 raises more, a poll sees too few, and the next read sees all of them.
                counter.wraps.fetch_add(1, Ordering::Relaxed);
                assert_eq!(counter.risen(last), 3);
                assert_eq!(counter.read(last + 3), last + 3 + (1 << LOW));
            });
        }
    }

    #[test]
    fn raises_of_several_threads_all_count() {
        const EACH: u32 = 10_000;
        with(u32::MAX - EACH, 0, |counter| {
            let start = counter.read(0);
            let mut last = start;
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| (0..EACH).for_each(|_| _ = counter.raise()));
                }
                while last < start + 4 * u64::from(EACH) {
                    let polled = last + u64::from(counter.risen(last));
                    let next = counter.read(polled);
                    assert!(next >= polled);
                    last = next;
                }
            });
            assert_eq!(counter.read(last), start + 4 * u64::from(EACH));
        });
    }
}
