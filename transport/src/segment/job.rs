//! The job's state in the segment: who is alive, how the dead died, who wants the job ended.

use std::fmt;

use super::{Segment, SegmentError};
use crate::atomics::{Acquire, Le32, Relaxed, Release, SeqCst};
use crate::futex;

/// What the job knows of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RankState {
    /// Not started, or not yet in its `init`.
    Absent,
    /// Between `init` and `finalize`.
    Alive,
    /// It has finalized, and receives nothing any more.
    Finalized,
    /// It ended without `finalize`.
    Dead(Cause),
}

/// How a rank died.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// By a signal, of this number on this host.
    Signal(i32),
    /// It exited with this status.
    Exit(i32),
    /// It aborted the job with this code.
    Abort(i32),
    /// The connection to it was lost.
    Lost,
}

/// What a rank noted of what it is doing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Note {
    /// A code that its reader can tell.
    pub code: u32,
    /// What the code is about.
    pub detail: u32,
    /// How often the rank has noted something, modulo 2^32: two equal notes with equal counts are one.
    pub calls: u32,
    /// The rank that it waits for, as far as it can name one.
    pub waits_for: Option<u32>,
    /// How often something has moved while the rank waited, modulo 2^32.
    pub moves: u32,
}

/// Whether the job is to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JobState {
    /// It is.
    Running,
    /// It is being ended: by a rank that called abort, or by the launcher.
    Aborting {
        /// The rank that asked for it; none for the launcher.
        by: Option<u32>,
        /// The exit status asked for.
        code: i32,
    },
}

impl fmt::Display for RankState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("not started"),
            Self::Alive => f.write_str("alive"),
            Self::Finalized => f.write_str("finalized"),
            Self::Dead(cause) => write!(f, "dead, {cause}"),
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signal(number) => write!(f, "killed by signal {number}"),
            Self::Exit(status) => write!(f, "exited with status {status}"),
            Self::Abort(code) => write!(f, "aborted with code {code}"),
            Self::Lost => f.write_str("connection lost"),
        }
    }
}

/// A state and its code in one word, so that no reader sees half of it: state in the low half, code in the high one.
fn word(state: u32, code: i32) -> u64 {
    u64::from(state) | u64::from(code as u32) << 32
}

impl RankState {
    pub(crate) fn encode(self) -> u64 {
        match self {
            Self::Absent => 0,
            Self::Alive => word(1, 0),
            Self::Finalized => word(2, 0),
            Self::Dead(Cause::Lost) => word(3, 0),
            Self::Dead(Cause::Signal(number)) => word(4, number),
            Self::Dead(Cause::Exit(status)) => word(5, status),
            Self::Dead(Cause::Abort(code)) => word(6, code),
        }
    }

    pub(crate) fn decode(word: u64) -> Self {
        let code = (word >> 32) as u32 as i32;
        match word as u32 {
            0 => Self::Absent,
            1 => Self::Alive,
            2 => Self::Finalized,
            4 => Self::Dead(Cause::Signal(code)),
            5 => Self::Dead(Cause::Exit(code)),
            6 => Self::Dead(Cause::Abort(code)),
            _ => Self::Dead(Cause::Lost),
        }
    }

    /// Whether the rank will receive nothing any more.
    pub fn is_gone(self) -> bool {
        matches!(self, Self::Finalized | Self::Dead(_))
    }
}

/// A rank's part in the job. Ranks out of range are [`RankState::Absent`], and marking them does nothing.
impl Segment {
    /// What the job knows of `rank`.
    pub fn rank_state(&self, rank: u32) -> RankState {
        // Acquire pairs with the release in `mark`: what a rank wrote before it was marked is seen.
        self.block(rank)
            .map_or(RankState::Absent, |block| RankState::decode(block.state.load(Acquire)))
    }

    /// Notes what became of `rank`, and wakes everyone to look at it. Ranks mark themselves alive and finalized; the
    /// launcher marks the dead. Nobody returns from death: a later mark is ignored.
    pub fn mark(&self, rank: u32, state: RankState) {
        let Some(block) = self.block(rank) else { return };
        if matches!(state, RankState::Dead(_)) {
            // Before anybody can end for it.
            let _ = self.header().first_dead.replace(0, rank + 1, SeqCst);
        }
        let mut seen = block.state.load(Relaxed);
        while !matches!(RankState::decode(seen), RankState::Dead(_)) {
            match block.state.replace(seen, state.encode(), SeqCst) {
                Ok(()) => break,
                Err(found) => seen = found,
            }
        }
        if state.is_gone() {
            self.announce();
        }
    }

    /// The rank that was marked dead before all others, if one is: those may have died for it.
    pub fn first_dead(&self) -> Option<u32> {
        self.header().first_dead.load(Acquire).checked_sub(1)
    }

    /// Whether the job is to go on.
    pub fn job_state(&self) -> JobState {
        let word = self.header().job.load(Acquire);
        match word as u32 {
            0 => JobState::Running,
            who => JobState::Aborting { by: who.checked_sub(2), code: (word >> 32) as u32 as i32 },
        }
    }

    /// Asks for the job's end with an exit status, and wakes everyone. The first to ask counts.
    pub fn abort(&self, code: i32) {
        let who = self.rank().map_or(1, |rank| rank + 2);
        let _ = self.header().job.replace(0, word(who, code), SeqCst);
        self.announce();
    }

    /// Changes whenever a rank finalizes or dies, or the job aborts: one word to look at while waiting.
    pub fn events(&self) -> u32 {
        self.header().events.load(Acquire) // pairs with the release in `announce`
    }

    /// Notes what this rank is doing, for whoever watches the job: a code and a detail that their reader can tell.
    pub fn note(&self, code: u32, detail: u32) {
        if let Some(block) = self.rank().and_then(|rank| self.block(rank)) {
            block.doing.store(u64::from(code) | u64::from(detail) << 32, Relaxed);
            // Two threads that note at a time may count one call: the count is there to see that it changes.
            block.calls.store(block.calls.load(Relaxed).wrapping_add(1), Relaxed);
            block.waits_for.store(0, Relaxed);
        }
    }

    /// Adds to the last note whom this rank waits for.
    pub fn note_wait(&self, rank: Option<u32>) {
        if let Some(block) = self.rank().and_then(|rank| self.block(rank)) {
            block.waits_for.store(rank.map_or(0, |rank| rank.wrapping_add(1)), Relaxed);
        }
    }

    /// Notes that something has moved while this rank waits: it is not stuck.
    pub fn note_move(&self) {
        if let Some(block) = self.rank().and_then(|rank| self.block(rank)) {
            // Of two threads at a time one may count: as above.
            block.moves.store(block.moves.load(Relaxed).wrapping_add(1), Relaxed);
        }
    }

    /// What `rank` noted last.
    pub fn noted(&self, rank: u32) -> Note {
        let Some(block) = self.block(rank) else { return Note::default() };
        let doing = block.doing.load(Relaxed);
        let waits_for = block.waits_for.load(Relaxed).checked_sub(1);
        let (code, detail) = (doing as u32, (doing >> 32) as u32);
        let (calls, moves) = (block.calls.load(Relaxed), block.moves.load(Relaxed));
        Note { code, detail, calls, waits_for, moves }
    }

    /// Wakes `rank` if it sleeps on its doorbell.
    ///
    /// # Errors
    /// [`SegmentError::NoSuchRank`].
    pub fn ring(&self, rank: u32) -> Result<(), SegmentError> {
        let bell = &self.block(rank).ok_or(SegmentError::NoSuchRank(rank, self.size()))?.bell;
        crate::atomics::full_barrier(); // what the caller wrote, before the look at the bell; pairs with the one in `arm`
        ring_armed(bell);
        Ok(())
    }

    /// Wakes every rank that sleeps on its doorbell.
    pub fn wake_all(&self) {
        for rank in 0..self.size() {
            let _ = self.ring(rank);
        }
    }

    fn announce(&self) {
        let events = &self.header().events;
        let mut seen = events.load(Relaxed);
        while let Err(found) = events.replace(seen, seen.wrapping_add(1), Release) {
            seen = found;
        }
        self.wake_all();
    }

    /// Arms this rank's doorbell; the launcher has none.
    pub(crate) fn arm(&self, rank: u32) {
        if let Some(block) = self.block(rank) {
            block.bell.store_before_loads(ARMED);
        }
    }

    /// The same but for answers.
    pub(crate) fn arm_for_requests(&self, rank: u32) {
        if let Some(block) = self.block(rank) {
            block.bell.store_before_loads(ARMED_FOR_REQUESTS);
        }
    }

    pub(crate) fn disarm(&self, rank: u32) {
        if let Some(block) = self.block(rank) {
            block.bell.store(0, Relaxed); // a ring that comes too late finds nobody asleep, no more
        }
    }

    /// Whether nobody has rung since `rank` armed its doorbell.
    pub(crate) fn is_armed(&self, rank: u32) -> bool {
        self.block(rank).is_some_and(|block| block.bell.load(Acquire) == ARMED)
    }

    pub(crate) fn sleep(&self, rank: u32, at_most: std::time::Duration) {
        if let Some(block) = self.block(rank) {
            // However it is armed, it changes when it rings.
            match block.bell.load(Relaxed) {
                0 => {}
                armed => futex::wait(&block.bell, armed, at_most),
            }
        }
    }
}

const ARMED: u32 = 1;
const ARMED_FOR_REQUESTS: u32 = 2;

/// Rings a bell whose owner armed it. The caller's full barrier stands between what it wrote and this load.
pub(crate) fn ring_armed(bell: &Le32) {
    if bell.load(Relaxed) != 0 {
        // Release pairs with the acquire in `is_armed`. Whoever takes the bell down wakes.
        if bell.swap(0, Release) != 0 {
            futex::wake_all(bell);
        }
    }
}

/// The same for an answer, which whoever armed for requests alone doesn't need.
pub(crate) fn ring_waiting(bell: &Le32) {
    if bell.load(Relaxed) != ARMED_FOR_REQUESTS {
        ring_armed(bell);
    }
}
