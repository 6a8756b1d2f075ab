//! The schedule of a simulated job: only the rank with the baton runs, and a seed decides which
//! rank is next.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::bury;
use crate::segment::Segment;

/// The simulated time of one turn.
const TURN: Duration = Duration::from_micros(1);

/// The ranks that are looked at by chance before all are.
const PROBES: u32 = 64;

/// The baton, which one rank holds at a time, with the wishes of all ranks.
pub(super) struct Baton {
    round: Mutex<Round>,
    /// One for each rank, to wake only the rank that is next.
    calls: Vec<Condvar>,
    limit: Duration,
}

struct Round {
    /// The rank whose turn it is.
    holder: Option<u32>,
    turns: Vec<Turn>,
    /// The number of ranks that have joined before the first turn.
    seated: usize,
    now: Duration,
    random: SmallRng,
    /// Whether the simulated time is up.
    over: bool,
    first_panic: Option<u32>,
}

/// A rank's wish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// The rank doesn't run under the baton.
    Outside,
    /// The rank can run.
    Ready,
    /// The rank can run once its doorbell has rung, or at this simulated time.
    Sleeping(Duration),
}

/// A rank's thread under the baton. Dropping it leaves the baton.
pub(super) struct Seated<'a> {
    baton: &'a Baton,
    rank: u32,
    segment: &'a Segment,
}

impl Baton {
    pub(super) fn new(ranks: u32, seed: u64, limit: Duration) -> Self {
        let turns = vec![Turn::Outside; ranks as usize];
        let random = SmallRng::seed_from_u64(seed);
        let (holder, seated, now, over) = (None, 0, Duration::ZERO, false);
        let round =
            Mutex::new(Round { holder, turns, seated, now, random, over, first_panic: None });
        Self { round, calls: (0..ranks).map(|_| Condvar::new()).collect(), limit }
    }

    #[inline]
    fn round(&self) -> MutexGuard<'_, Round> {
        self.round.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Duration {
        self.round().now
    }

    pub(super) fn first_panic(&self) -> Option<u32> {
        self.round().first_panic
    }

    /// Joins `rank`, and waits for its first turn. The first turn starts once all ranks have
    /// joined.
    pub(super) fn join<'a>(&'a self, rank: u32, segment: &'a Segment) -> Seated<'a> {
        let mut round = self.round();
        round.turns[rank as usize] = Turn::Ready;
        round.seated += 1;
        if round.seated == round.turns.len() {
            round.seated = 0;
            round = self.hand_over(round, Some(rank), segment);
        }
        drop(self.wait_for_turn(round, rank));
        Seated { baton: self, rank, segment }
    }

    /// Passes the baton, and waits until it comes back. Returns `false`, at once, for a rank that
    /// doesn't run under the baton.
    pub(super) fn pass(&self, rank: u32, want: Turn, segment: &Segment) -> bool {
        let mut round = self.round();
        if round.turns[rank as usize] == Turn::Outside {
            return false;
        }
        round.turns[rank as usize] = match want {
            Turn::Sleeping(at_most) => Turn::Sleeping(round.now + at_most),
            want => want,
        };
        let round = self.hand_over(round, Some(rank), segment);
        drop(self.wait_for_turn(round, rank));
        true
    }

    /// Gives the baton to the next rank, and wakes that rank unless it is the caller. The woken
    /// rank needs the lock, so this releases the lock meanwhile.
    fn hand_over<'a>(
        &'a self,
        mut round: MutexGuard<'a, Round>,
        caller: Option<u32>,
        segment: &Segment,
    ) -> MutexGuard<'a, Round> {
        self.choose(&mut round, segment);
        if round.over {
            self.calls.iter().for_each(Condvar::notify_all);
            return round;
        }
        match round.holder {
            Some(next) if caller != Some(next) => {
                drop(round);
                self.calls[next as usize].notify_all();
                self.round()
            }
            _ => round,
        }
    }

    #[inline]
    fn wait_for_turn<'a>(
        &'a self,
        mut round: MutexGuard<'a, Round>,
        rank: u32,
    ) -> MutexGuard<'a, Round> {
        while round.holder != Some(rank) && !round.over {
            round = self.calls[rank as usize].wait(round).unwrap_or_else(PoisonError::into_inner);
        }
        if round.over {
            drop(round);
            panic!("rank {rank} still runs when simulated time is up");
        }
        round.turns[rank as usize] = Turn::Ready;
        round
    }

    /// Chooses one of the ranks that can run. If all ranks sleep, the time advances to the earliest
    /// deadline.
    fn choose(&self, round: &mut Round, segment: &Segment) {
        round.now += TURN;
        let Some(next) = self.next_ready(round, segment) else {
            round.holder = None;
            return;
        };
        round.holder = Some(next);
        round.over |= round.now > self.limit;
    }

    /// One of the ranks that can run; `None` if all are outside.
    ///
    /// In a large job, looks at some ranks by chance first. While many of them can run, that finds
    /// one soon, and counting all of them would take longer than their turns.
    fn next_ready(&self, round: &mut Round, segment: &Segment) -> Option<u32> {
        let ranks = round.turns.len() as u32;
        for _ in 0..if ranks > PROBES { PROBES } else { 0 } {
            let rank = round.random.random_range(0..ranks);
            let wake = round.turns[rank as usize].wake(rank, segment);
            if wake.is_some_and(|wake| wake <= round.now) {
                return Some(rank);
            }
        }
        let wakes: Vec<_> = (0..)
            .zip(&round.turns)
            .filter_map(|(rank, turn)| Some((turn.wake(rank, segment)?, rank)))
            .collect();
        let (first, _) = *wakes.iter().min()?;
        round.now = round.now.max(first);
        let ready: Vec<_> = wakes.iter().filter(|(wake, _)| *wake <= round.now).collect();
        Some(ready[round.random.random_range(0..ready.len())].1)
    }
}

impl Turn {
    /// The simulated time from which on the rank with this wish can run; `None` for one outside.
    fn wake(&self, rank: u32, segment: &Segment) -> Option<Duration> {
        match *self {
            Turn::Outside => None,
            Turn::Ready => Some(Duration::ZERO),
            Turn::Sleeping(_) if !segment.is_armed(rank) => Some(Duration::ZERO),
            Turn::Sleeping(deadline) => Some(deadline),
        }
    }
}

impl Drop for Seated<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            bury(self.segment, self.rank);
        }
        let mut round = self.baton.round();
        if std::thread::panicking() {
            round.first_panic.get_or_insert(self.rank);
        }
        round.turns[self.rank as usize] = Turn::Outside;
        drop(self.baton.hand_over(round, None, self.segment));
    }
}
