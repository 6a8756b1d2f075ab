//! How fast a sender writes into the bulk of its ring, and whether its receiver should claim the lines that it has read.
//!
//! A line that the sender wrote and the receiver read is in both caches. Before the sender writes there again the other's copy has to go,
//! for which a Zen 4 takes 7 ns a line where the cores are near, mostly, and 25 where they are far. A line that the receiver has written
//! to is its own alone: that takes 2 and 3, and the write, behind what is read, next to nothing. So 1 MiB by message takes 44 us (near) and
//! 85 (far) instead of 120 and 475. A Zen 5 took 22 (near) without. So the sender asks for it where it finds that it is slow.
//! (2 virtual cores, Zen 4: `longshore bench put_latency --window create --route message --size 1M`.)

use std::time::Duration;

/// Frames of which one is timed: to read the clock twice takes as long as a good part of 1 KiB.
const SAMPLE: u32 = 4;

/// The shortest frames that are timed.
const SHORTEST: usize = 1 << 10;

/// Slow samples in a row: one may be of pages that are new, or of a sender that was interrupted.
const SLOW: u32 = 3;

/// Frames with claims until it is tried without: cores, and ranks, may have moved.
const TRIAL: u32 = 4096;

/// What is slow: fewer bytes a nanosecond, but for what it takes to read the clock.
const BYTES: u64 = 14;
const CLOCK: u64 = 30;

/// A sender's pace.
#[derive(Debug, Default)]
pub(super) struct Pace {
    frames: u32,
    slow: u32,
    claimed: bool,
}

impl Pace {
    /// A frame of `len` bytes comes next. Whether it is to be timed.
    #[inline]
    pub(super) fn begin(&mut self, len: usize) -> bool {
        if len < SHORTEST {
            return false;
        }
        self.frames = self.frames.wrapping_add(1);
        if self.claimed { self.frames >= TRIAL } else { self.frames % SAMPLE == 0 }
    }

    /// So many bytes took so long. Gives whether the receiver is to claim what it has read, where that changes.
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

    /// What a sender finds out whose every frame takes so long.
    fn told(pace: &mut Pace, len: usize, nanoseconds: u64, frames: u32) -> Vec<bool> {
        let mut frame = || {
            let timed = pace.begin(len);
            timed.then(|| pace.took(len, Duration::from_nanos(nanoseconds))).flatten()
        };
        (0..frames).filter_map(|_| frame()).collect()
    }

    #[test]
    fn who_is_slow_for_some_time_asks_for_claims_and_tries_without_now_and_then() {
        let mut pace = Pace::default();
        assert_eq!(told(&mut pace, FRAME, 2_000, 10_000), []);
        assert_eq!(told(&mut pace, FRAME, 7_200, (SLOW - 1) * SAMPLE), []);
        assert_eq!(told(&mut pace, FRAME, 2_000, SAMPLE), []);
        assert_eq!(told(&mut pace, FRAME, 7_200, SLOW * SAMPLE), [true]);
        assert_eq!(told(&mut pace, FRAME, 2_000, TRIAL - 1), []);
        assert_eq!(told(&mut pace, FRAME, 2_000, 1), [false]);
        assert_eq!(told(&mut pace, FRAME, 7_200, SLOW * SAMPLE), [true]);
    }

    #[test]
    fn frames_of_a_few_bytes_are_not_timed() {
        assert_eq!(told(&mut Pace::default(), SHORTEST - 1, 1_000_000, 10_000), []);
    }
}
