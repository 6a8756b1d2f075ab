//! Measures how fast a sender writes into the bulk of its ring, to decide whether the receiver
//! should claim the cache lines that it has read.
//!
//! A line that the sender wrote and the receiver read is in both caches. Before the sender can
//! write it again, the receiver's copy must be invalidated, which is slow on some processors. To
//! *claim* a line, the receiver writes to it, so that only the receiver's cache holds it; the
//! sender then gets it faster. The sender asks for claims when it finds that it writes slowly
//! (docs/tuning.md, "Claiming ring lines").

use std::time::Duration;

/// One of this number of frames is timed, because reading the clock isn't free (docs/tuning.md,
/// "Claiming ring lines").
const SAMPLE: u32 = 4;

/// The length of the shortest frames that are timed.
const SHORTEST: usize = 1 << 10;

/// The number of consecutive slow samples that counts as slow. A single one may be due to new pages
/// or to an interrupted sender.
const SLOW: u32 = 3;

/// The number of frames with claims before writing without claims is tried again: cores and ranks
/// may have moved.
const TRIAL: u32 = 4096;

/// A sender is slow below this number of bytes per nanosecond (docs/tuning.md, "Claiming ring
/// lines").
const BYTES: u64 = 14;
/// The nanoseconds that reading the clock takes out of a sample.
const CLOCK: u64 = 30;

/// The state of a sender's measurement.
#[derive(Debug, Default)]
pub(super) struct Pace {
    frames: u32,
    slow: u32,
    claimed: bool,
}

impl Pace {
    /// Returns whether to time the next frame, which has `len` bytes.
    #[inline]
    pub(super) fn begin(&mut self, len: usize) -> bool {
        if len < SHORTEST {
            return false;
        }
        self.frames = self.frames.wrapping_add(1);
        if self.claimed { self.frames >= TRIAL } else { self.frames % SAMPLE == 0 }
    }

    /// Records that writing `len` bytes took `time`. Returns whether the receiver is to claim the
    /// lines that it has read, if that changes.
    pub(super) fn took(&mut self, len: usize, time: Duration) -> Option<bool> {
        let limit = u128::from(len as u64 / BYTES + CLOCK);
        self.slow = if time.as_nanos() > limit { self.slow + 1 } else { 0 };
        if !self.claimed && self.slow < SLOW {
            return None;
        }
        *self = Pace { claimed: !self.claimed, ..Pace::default() };
        Some(self.claimed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: usize = 64 << 10;

    /// The changes that a sender requests when it writes each of `frames` frames in `nanoseconds`.
    fn changes(pace: &mut Pace, len: usize, nanoseconds: u64, frames: u32) -> Vec<bool> {
        let mut frame = || {
            let timed = pace.begin(len);
            timed.then(|| pace.took(len, Duration::from_nanos(nanoseconds))).flatten()
        };
        (0..frames).filter_map(|_| frame()).collect()
    }

    #[test]
    fn a_sender_slow_for_some_time_asks_for_claims_and_sometimes_tries_without() {
        let mut pace = Pace::default();
        assert_eq!(changes(&mut pace, FRAME, 2_000, 10_000), []);
        assert_eq!(changes(&mut pace, FRAME, 7_200, (SLOW - 1) * SAMPLE), []);
        assert_eq!(changes(&mut pace, FRAME, 2_000, SAMPLE), []);
        assert_eq!(changes(&mut pace, FRAME, 7_200, SLOW * SAMPLE), [true]);
        assert_eq!(changes(&mut pace, FRAME, 2_000, TRIAL - 1), []);
        assert_eq!(changes(&mut pace, FRAME, 2_000, 1), [false]);
        assert_eq!(changes(&mut pace, FRAME, 7_200, SLOW * SAMPLE), [true]);
    }

    #[test]
    fn frames_of_a_few_bytes_are_not_timed() {
        assert_eq!(changes(&mut Pace::default(), SHORTEST - 1, 1_000_000, 10_000), []);
    }
}
