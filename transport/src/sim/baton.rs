//! One rank runs at a time, and a seed decides which.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::bury;
use crate::segment::Segment;

/// What each turn costs in simulated time.
const TURN: Duration = Duration::from_micros(1);

/// Who holds the baton, and who wants it.
pub(super) struct Baton {
    round: Mutex<Round>,
    /// One for each rank, to wake just the one whose turn it is.
    calls: Vec<Condvar>,
    limit: Duration,
}

struct Round {
    /// Whose turn it is.
    holder: Option<u32>,
    turns: Vec<Turn>,
    /// How many have taken their seats, before the first turn.
    seated: usize,
    now: Duration,
    random: SmallRng,
    /// Simulated time is up.
    over: bool,
    first_panic: Option<u32>,
}

/// What a rank wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// It doesn't run under the baton.
    Outside,
    /// To run.
    Ready,
    /// To run once its doorbell has rung, or after this time.
    Sleeping(Duration),
}

/// A rank's thread under the baton; dropping it leaves.
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

    fn round(&self) -> MutexGuard<'_, Round> {
        self.round.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Duration {
        self.round().now
    }

    pub(super) fn first_panic(&self) -> Option<u32> {
        self.round().first_panic
    }

    /// Takes a seat for `rank`, and waits for its first turn. The first turn is given once everyone is seated.
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

    /// Passes the baton and waits until it comes back; false, at once, for a rank that doesn't run under it.
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

    /// Gives the baton to the next rank, and wakes it unless it is the one that calls. Whoever wakes needs the lock, so it is
    /// let go of meanwhile.
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

    /// Decides for one of those who can run. Where all sleep, time leaps to the first who wakes.
    fn choose(&self, round: &mut Round, segment: &Segment) {
        round.now += TURN;
        let until = |turn: &Turn, rank: u32| match *turn {
            Turn::Outside => None,
            Turn::Ready => Some(Duration::ZERO),
            Turn::Sleeping(_) if !segment.is_armed(rank) => Some(Duration::ZERO),
            Turn::Sleeping(deadline) => Some(deadline),
        };
        let wakes: Vec<_> = (0..)
            .zip(&round.turns)
            .filter_map(|(rank, turn)| Some((until(turn, rank)?, rank)))
            .collect();
        let Some(&(first, _)) = wakes.iter().min() else {
            round.holder = None;
            return;
        };
        round.now = round.now.max(first);
        let ready: Vec<_> = wakes.iter().filter(|(wake, _)| *wake <= round.now).collect();
        let (_, next) = *ready[round.random.random_range(0..ready.len())];
        round.holder = Some(next);
        round.over |= round.now > self.limit;
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
