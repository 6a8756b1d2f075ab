//! The state of a rank, its note, and the request to end the job, in words of 32 bits.
//!
//! **State.** A death may have a code, in a word of its own. The first that marks a death takes the
//! state, so that nobody else writes the code:
//!
//! ```text
//!     state            code
//!     alive            -
//!     alive, taken     -        1. compare and swap: one takes it
//!     alive, taken     9        2. write the code
//!     signal           9        3. compare and swap, release: readers that see it see the code
//! ```
//!
//! A state that is taken still reads as before. A death without a code needs one step, and replaces
//! a taken state too: the third step then fails, and nobody reads the code. So a marker that dies
//! on the way blocks nobody who only knows that the rank is gone. Only the launcher marks codes,
//! and the job ends with it.
//!
//! **Request to end the job.** Each rank has a word for its own code, and so has the launcher. The
//! first request that names its rank in the job's word is the one that counts:
//!
//! ```text
//!     rank 3: asked, code        job
//!             1      -           -           1. compare and swap: one thread of the rank asks
//!             1      7           -           2. write the code
//!             1      7           rank 3      3. compare and swap, release: the job ends with code 7
//! ```
//!
//! A rank that dies on the way has asked for nothing, and blocks no other rank.
//!
//! **Note.** Two places for notes take turns, and a count says which one is valid. The writer
//! changes a place only after it has counted the note in the other place. So a reader that finds
//! the same count before and after has read one note:
//!
//! ```text
//!     note 0    note 1    count
//!     A         -         2           A is valid
//!     A         B         2           1. write the note into the other place
//!     A         B         3           2. count it, release: B is valid
//! ```
//!
//! Each word is written with release and read with acquire. So a reader that sees a part of note
//! `n + 2` sees the count `n + 1` afterwards.

use super::{Cause, Note, RankState};
use crate::atomics::{Acquire, Le32, Relaxed, Release, SeqCst, spin};

const TAKEN: u32 = 1 << 31;

const ABSENT: u32 = 0;
const ALIVE: u32 = 1;
const FINALIZED: u32 = 2; // From here on, the rank is gone.
const LOST: u32 = 3; // Every number from here on is a death.
const SIGNAL: u32 = 4;
const EXIT: u32 = 5;
const ABORT: u32 = 6;

/// The state of a rank.
///
/// ```text
///    0 state: u32    4 code: u32, of a death
/// ```
#[derive(Debug, Default)]
#[repr(C)]
pub struct StateWords {
    state: Le32,
    code: Le32,
}

impl RankState {
    /// The number of the state, and the code of a death that has one.
    pub(crate) fn encode(self) -> (u32, Option<i32>) {
        match self {
            Self::Absent => (ABSENT, None),
            Self::Alive => (ALIVE, None),
            Self::Finalized => (FINALIZED, None),
            Self::Dead(Cause::Lost) => (LOST, None),
            Self::Dead(Cause::Signal(number)) => (SIGNAL, Some(number)),
            Self::Dead(Cause::Exit(status)) => (EXIT, Some(status)),
            Self::Dead(Cause::Abort(code)) => (ABORT, Some(code)),
        }
    }

    /// The state of this number. `code` returns the code of a death.
    #[inline]
    pub(crate) fn decode(number: u32, code: impl FnOnce() -> i32) -> Self {
        match number {
            ABSENT => Self::Absent,
            ALIVE => Self::Alive,
            FINALIZED => Self::Finalized,
            SIGNAL => Self::Dead(Cause::Signal(code())),
            EXIT => Self::Dead(Cause::Exit(code())),
            ABORT => Self::Dead(Cause::Abort(code())),
            _ => Self::Dead(Cause::Lost),
        }
    }
}

impl StateWords {
    /// The state.
    #[inline]
    pub fn load(&self) -> RankState {
        // Acquire pairs with the release in `mark`: what a rank wrote before it was marked is seen,
        // and so is the code.
        let state = self.state.load(Acquire);
        RankState::decode(state & !TAKEN, || self.code.load(Relaxed) as i32)
    }

    /// Whether the rank has finalized or died: [`RankState::is_gone`] of the state.
    #[inline]
    pub fn is_gone(&self) -> bool {
        self.state.load(Acquire) & !TAKEN >= FINALIZED
    }

    /// Sets the state. Death is final: a later mark is ignored.
    pub fn mark(&self, state: RankState) {
        let (number, code) = state.encode();
        let mut seen = self.state.load(Relaxed);
        // A death under way comes before this mark, unless this one has no code to wait for.
        while seen & !TAKEN < LOST && (seen & TAKEN == 0 || number == LOST) {
            let next = if code.is_some() { seen | TAKEN } else { number };
            match self.state.replace(seen, next, SeqCst) {
                Err(found) => seen = found,
                Ok(()) => {
                    if let Some(code) = code {
                        self.code.store(code as u32, Relaxed);
                        // Fails if the rank was marked as lost in the meantime.
                        let _ = self.state.replace(next, number, SeqCst);
                    }
                    return;
                }
            }
        }
    }
}

/// The name of a rank, or of the launcher, that asked to end the job; 0 while nobody has.
///
/// ```text
///    0 by: u32
/// ```
#[derive(Debug, Default)]
#[repr(C)]
pub struct AbortWord {
    by: Le32,
}

/// The code with which a rank, or the launcher, asks to end the job.
///
/// ```text
///    0 asked: u32    4 code: u32
/// ```
#[derive(Debug, Default)]
#[repr(C)]
pub struct AbortCode {
    asked: Le32,
    code: Le32,
}

impl AbortWord {
    /// The name of the one that asked, and its code. `own` has the code of each name.
    #[inline]
    pub fn load<'a>(&self, own: impl FnOnce(u32) -> Option<&'a AbortCode>) -> Option<(u32, i32)> {
        match self.by.load(Acquire) {
            0 => None,
            // Pairs with the release in `ask`: the code is there. A name without a code is no
            // rank's.
            by => Some((by, own(by).map_or(0, |own| own.code.load(Relaxed) as i32))),
        }
    }

    /// Asks to end the job, under a name that isn't 0 and with the name's own words.
    pub fn ask(&self, name: u32, own: &AbortCode, code: i32) {
        if own.asked.replace(0, 1, Relaxed).is_err() {
            // Another thread of this rank asks. The caller relies on the request after its return.
            while self.by.load(Acquire) == 0 {
                spin();
            }
            return;
        }
        own.code.store(code as u32, Relaxed);
        let _ = self.by.replace(0, name, SeqCst);
    }
}

/// The note of a rank.
///
/// ```text
///    0 code: u32    4 detail: u32      of the notes with an even number
///    8 code: u32   12 detail: u32      of those with an odd number
///   16 calls: u32  20 waits for: u32, rank + 1
///   24 moves: u32
/// ```
#[derive(Debug, Default)]
#[repr(C)]
pub struct NoteWords {
    notes: [[Le32; 2]; 2],
    calls: Le32,
    waits_for: Le32,
    moves: Le32,
}

/// Readings of a note that changes all the time, before a mixed one is returned.
const LOOKS: u32 = 100;

impl NoteWords {
    /// Writes the next note. Two threads of a rank that write at the same time may mix their notes
    /// and count one of them.
    #[inline]
    pub fn write(&self, code: u32, detail: u32) {
        let calls = self.calls.load(Relaxed).wrapping_add(1);
        let [code_word, detail_word] = &self.notes[calls as usize % 2];
        code_word.store(code, Release);
        detail_word.store(detail, Release);
        self.calls.store(calls, Release);
        self.waits_for.store(0, Relaxed);
    }

    /// The number of the last note.
    #[inline]
    pub fn calls(&self) -> u32 {
        self.calls.load(Relaxed)
    }

    /// Adds the rank that the writer waits for.
    #[inline]
    pub fn wait_for(&self, rank: Option<u32>) {
        self.waits_for.store(rank.map_or(0, |rank| rank.wrapping_add(1)), Relaxed);
    }

    /// Counts an event while the writer waits.
    #[inline]
    pub fn count_move(&self) {
        // Two threads at the same time may count one event. Readers only compare counts.
        self.moves.store(self.moves.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// The last note.
    pub fn read(&self) -> Note {
        let mut looks = 0;
        loop {
            // Acquire pairs with the releases in `write`.
            let calls = self.calls.load(Acquire);
            let [code, detail] = &self.notes[calls as usize % 2];
            let (code, detail) = (code.load(Acquire), detail.load(Acquire));
            let waits_for = self.waits_for.load(Relaxed).checked_sub(1);
            let moves = self.moves.load(Relaxed);
            looks += 1;
            if self.calls.load(Relaxed) == calls || looks == LOOKS {
                return Note { code, detail, calls, waits_for, moves };
            }
        }
    }
}
