//! The job's state in the segment: the state of each rank, causes of death, and a request to abort.

use std::fmt;

use super::{Segment, SegmentError};
use crate::atomics::{Acquire, Le32, Relaxed, Release, SeqCst};
use crate::futex;

/// The state of a rank, as the job knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RankState {
    /// The rank has not started, or is not yet in its `init`.
    Absent,
    /// The rank is between `init` and `finalize`.
    Alive,
    /// The rank has finalized, and receives nothing any more.
    Finalized,
    /// The rank ended without `finalize`.
    Dead(Cause),
}

/// The cause of a rank's death.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// A signal, by its number on this host.
    Signal(i32),
    /// The rank exited with this status. With status 0, it did so without `finalize`.
    Exit(i32),
    /// The rank aborted the job with this code.
    Abort(i32),
    /// The connection to the rank was lost.
    Lost,
}

/// A rank's note about its current activity, for observers of the job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Note {
    /// A code whose meaning the writer and the reader agree on.
    pub code: u32,
    /// A detail, whose meaning depends on the code.
    pub detail: u32,
    /// The number of notes so far, modulo 2^32. Two notes that are equal, this count included, are
    /// one note.
    pub calls: u32,
    /// The rank that this rank waits for, if it knows one.
    pub waits_for: Option<u32>,
    /// The number of events while this rank waited, modulo 2^32: see [`Segment::note_move`].
    pub moves: u32,
}

/// The state of the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JobState {
    /// The job goes on.
    Running,
    /// A rank, or the launcher, has asked to end the job.
    Aborting {
        /// The rank that asked for it; `None` for the launcher.
        by: Option<u32>,
        /// The exit status that was asked for.
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
            Self::Exit(0) => f.write_str("exited with status 0, without finalize"),
            Self::Exit(status) => write!(f, "exited with status {status}"),
            Self::Abort(code) => write!(f, "aborted with code {code}"),
            Self::Lost => f.write_str("connection lost"),
        }
    }
}

impl RankState {
    /// Whether the rank receives nothing any more, ever.
    #[inline]
    pub fn is_gone(self) -> bool {
        matches!(self, Self::Finalized | Self::Dead(_))
    }
}

/// The state of ranks and of the job. A rank out of range is [`RankState::Absent`]; marking it does
/// nothing.
impl Segment {
    /// The state of `rank`.
    #[inline]
    pub fn rank_state(&self, rank: u32) -> RankState {
        // What a rank wrote before it was marked is seen.
        self.block(rank).map_or(RankState::Absent, |block| block.state.load())
    }

    /// Whether `rank` has finalized or died.
    #[inline]
    pub(crate) fn is_gone(&self, rank: u32) -> bool {
        self.block(rank).is_some_and(|block| block.state.is_gone())
    }

    /// Sets the state of `rank`, and wakes all ranks if it is gone. Ranks mark themselves alive and
    /// finalized; the launcher marks dead ranks. Death is final: a later mark is ignored.
    pub fn mark(&self, rank: u32, state: RankState) {
        let Some(block) = self.block(rank) else { return };
        if matches!(state, RankState::Dead(_)) {
            // Recorded first, before other ranks can die in consequence.
            let _ = self.header().first_dead.replace(0, rank + 1, SeqCst);
        }
        block.state.mark(state);
        if state.is_gone() {
            self.announce();
        }
    }

    /// The rank that was marked dead first, if any. Other ranks may have died in consequence.
    #[inline]
    pub fn first_dead(&self) -> Option<u32> {
        self.header().first_dead.load(Acquire).checked_sub(1)
    }

    /// Whether the job goes on or is being ended.
    #[inline]
    pub fn job_state(&self) -> JobState {
        let header = self.header();
        let code_of = |by: u32| match by.checked_sub(2) {
            None => Some(&header.launcher),
            Some(rank) => self.block(rank).map(|block| &block.abort),
        };
        match header.job.load(code_of) {
            None => JobState::Running,
            Some((by, code)) => JobState::Aborting { by: by.checked_sub(2), code },
        }
    }

    /// Asks to end the job with an exit status, and wakes all ranks. Only the first request counts.
    pub fn abort(&self, code: i32) {
        let (header, block) = (self.header(), self.rank().and_then(|rank| self.block(rank)));
        let name = self.rank().map_or(1, |rank| rank + 2);
        header.job.ask(name, block.map_or(&header.launcher, |block| &block.abort), code);
        self.announce();
    }

    /// A word that changes whenever a rank finalizes or dies, or the job aborts: one word to check
    /// while waiting.
    #[inline]
    pub fn events(&self) -> u32 {
        self.header().events.load(Acquire) // Pairs with the release in `announce`.
    }

    /// The process of `rank` is about to be reaped. From here on no rank takes its pid for its own,
    /// which another process may get.
    pub fn retire(&self, rank: u32) {
        if let Some(block) = self.block(rank) {
            block.beacon.clear();
        }
    }

    /// Notes this rank's current activity, for observers of the job. The reader must know the
    /// meaning of `code` and `detail`.
    #[inline]
    pub fn note(&self, code: u32, detail: u32) {
        if let Some(block) = self.rank().and_then(|rank| self.block(rank)) {
            block.note.write(code, detail);
        }
    }

    /// Adds to the last note the rank that this rank waits for.
    #[inline]
    pub fn note_wait(&self, rank: Option<u32>) {
        if let Some(block) = self.rank().and_then(|rank| self.block(rank)) {
            block.note.wait_for(rank);
        }
    }

    /// Adds a text to the last note. Of a long text, only the beginning is kept. One thread at a
    /// time calls this.
    pub fn remark(&self, text: &str) {
        let own = self.rank().and_then(|rank| Some((self.block(rank)?, self.remark_of(rank)?)));
        let Some((block, remark)) = own else { return };
        let version = remark.version.load(Relaxed);
        // Odd before the first word is written; pairs with the barrier in `remarked`.
        remark.version.store_before_loads(version | 1);
        let room = size_of_val(&remark.text);
        let ends = (0..=text.len().min(room)).rev();
        let end = ends.into_iter().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
        let text = &text.as_bytes()[..end];
        for (word, bytes) in remark.text.iter().zip(text.chunks(4)) {
            let mut whole = [0; 4];
            whole[..bytes.len()].copy_from_slice(bytes);
            word.store(u32::from_le_bytes(whole), Relaxed);
        }
        remark.len.store(text.len() as u32, Relaxed);
        remark.calls.store(block.note.calls(), Relaxed);
        remark.version.store((version | 1).wrapping_add(1), Release);
    }

    /// The text that `rank` has added to its last note; `None` if there is none, or if the rank is
    /// writing it.
    pub fn remarked(&self, rank: u32) -> Option<String> {
        let (block, remark) = (self.block(rank)?, self.remark_of(rank)?);
        let version = remark.version.load(Acquire); // Pairs with the release in `remark`.
        let len = (remark.len.load(Relaxed) as usize).min(size_of_val(&remark.text));
        let mut text: Vec<u8> =
            remark.text.iter().flat_map(|word| word.load(Relaxed).to_le_bytes()).collect();
        text.truncate(len);
        let is_current = remark.calls.load(Relaxed) == block.note.calls();
        // The words come before the second look at the version.
        crate::atomics::full_barrier();
        let is_whole = version % 2 == 0 && remark.version.load(Relaxed) == version;
        (is_whole && is_current && len > 0).then(|| String::from_utf8_lossy(&text).into_owned())
    }

    /// Counts an event while this rank waits, which shows that it is not stuck.
    #[inline]
    pub fn note_move(&self) {
        if let Some(block) = self.rank().and_then(|rank| self.block(rank)) {
            block.note.count_move();
        }
    }

    /// Counts a look of this rank, which waits, at all that may end its call.
    #[inline]
    pub fn note_look(&self) {
        if let Some(block) = self.rank().and_then(|rank| self.block(rank)) {
            // Two threads at the same time may count one look. Readers only compare counts.
            block.looks.store(block.looks.load(Relaxed).wrapping_add(1), Release);
        }
    }

    /// The number of looks of `rank`, modulo 2^32.
    pub fn looks(&self, rank: u32) -> u32 {
        self.block(rank).map_or(0, |block| block.looks.load(Acquire))
    }

    /// Notes that several threads of this rank make calls.
    pub fn note_threads(&self) {
        if let Some(block) = self.rank().and_then(|rank| self.block(rank)) {
            block.threads.store(1, Release);
        }
    }

    /// Whether several threads of `rank` make calls, as it noted.
    pub fn has_threads(&self, rank: u32) -> bool {
        self.block(rank).is_some_and(|block| block.threads.load(Acquire) != 0)
    }

    /// The last note of `rank`.
    pub fn noted(&self, rank: u32) -> Note {
        self.block(rank).map_or_else(Note::default, |block| block.note.read())
    }

    /// Wakes `rank` if it sleeps on its doorbell.
    ///
    /// # Errors
    /// [`SegmentError::NoSuchRank`].
    #[inline]
    pub fn ring(&self, rank: u32) -> Result<(), SegmentError> {
        let bell = &self.block(rank).ok_or(SegmentError::NoSuchRank(rank, self.size()))?.bell;
        // The caller's writes come before reading the bell; pairs with the barrier in `arm`.
        crate::atomics::full_barrier();
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

    /// Arms the doorbell of `rank`, for requests and answers. The launcher has no doorbell.
    #[inline]
    pub(crate) fn arm(&self, rank: u32) {
        if let Some(block) = self.block(rank) {
            block.bell.store_before_loads(ARMED);
        }
    }

    /// Arms the doorbell of `rank` for requests only: an answer doesn't ring it.
    #[inline]
    pub(crate) fn arm_for_requests(&self, rank: u32) {
        if let Some(block) = self.block(rank) {
            block.bell.store_before_loads(ARMED_FOR_REQUESTS);
        }
    }

    #[inline]
    pub(crate) fn disarm(&self, rank: u32) {
        if let Some(block) = self.block(rank) {
            block.bell.store(0, Relaxed); // A late ring wakes nobody, and does no harm.
        }
    }

    /// Whether nobody has rung since `rank` armed its doorbell.
    #[inline]
    pub(crate) fn is_armed(&self, rank: u32) -> bool {
        self.block(rank).is_some_and(|block| block.bell.load(Acquire) == ARMED)
    }

    pub(crate) fn sleep(&self, rank: u32, at_most: std::time::Duration) {
        if let Some(block) = self.block(rank) {
            // Ringing changes the word, whichever way it is armed.
            match block.bell.load(Relaxed) {
                0 => {}
                armed => futex::wait(&block.bell, armed, at_most),
            }
        }
    }
}

const ARMED: u32 = 1;
const ARMED_FOR_REQUESTS: u32 = 2;

/// Rings a bell that is armed in any way. The caller's full barrier stands between its writes and
/// this load.
#[inline]
pub(crate) fn ring_armed(bell: &Le32) {
    if bell.load(Relaxed) != 0 {
        // Release pairs with the acquire in `is_armed`. Only the ringer that clears the word wakes.
        if bell.swap(0, Release) != 0 {
            futex::wake_all(bell);
        }
    }
}

/// Rings a bell for an answer: not if it is armed for requests only.
#[inline]
pub(crate) fn ring_waiting(bell: &Le32) {
    if bell.load(Relaxed) != ARMED_FOR_REQUESTS {
        ring_armed(bell);
    }
}
