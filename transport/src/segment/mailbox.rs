//! A rank's mailbox. It takes one short frame of a peer to a rank that polls, and the answer back,
//! in one cache line each.
//!
//! A peer that waits for the answer to its frame needs no queue for either of them. So both are
//! faster by the mailbox than through two rings. A peer that finds the mailbox in use, or that has
//! waited too long, sends its frame through a ring.
//!
//! ```text
//!     0  door: u32      closed, open, or claimed by a peer               (peers)
//!   128  posted: u32    frames that were posted                          (the peer that claimed it)
//!   132  letter: u32    the frame's length, its sender << 8
//!   136  frame: [u64; 7]
//!   256  answered: u32  the frame that was answered last, times 2,       (the rank)
//!                       and 1 if it was declined
//!   264  answer: [u64; 7]
//!   384  settled: u32   frames that were taken, or taken back            (the rank; a peer, rarely)
//! ```
//!
//! Each part has a pair of cache lines, which one side writes. So a frame and its answer move one
//! line each from core to core, and no side waits for a line that the other one polls.
//!
//! ```text
//!     peer                                         the rank, which polls `posted`
//!     door = claimed, by compare and swap: acquire
//!     letter, frame
//!     posted = n                 --- release --->  posted is n: acquire
//!                                                  settled = n, by compare and swap from n - 1
//!                                                  letter, frame
//!                                                  answer
//!     answered is 2n: acquire    <-- release ----  answered = 2n
//!     answer
//!     door = open: release
//! ```
//!
//! The rank may decline the frame, and has done nothing then. A peer that has waited too long takes
//! its frame back: it swaps `settled` too. Of both swaps one succeeds. So a frame is either handled
//! by the rank or taken back, and never both.
//!
//! A peer that dies while it uses the mailbox leaves it claimed, and others use their rings.

use crate::atomics::{Acquire, Le32, Relaxed, Release};
use crate::mapping::Shared;

/// The words of the longest frame in a mailbox, and of the longest answer.
pub const WORDS: usize = 7;

const CLOSED: u32 = 0;
const OPEN: u32 = 1;
const CLAIMED: u32 = 2;

/// A mailbox.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Mailbox {
    door: Le32,
    pad0: [u32; 31],
    posted: Le32,
    letter: Le32,
    frame: Words,
    pad1: [u32; 16],
    answered: Le32,
    pad2: u32,
    answer: Words,
    pad3: [u32; 16],
    settled: Le32,
    pad4: [u32; 31],
}

/// Words of 64 bits: the low half of each, then the high one.
type Words = [[Le32; 2]; WORDS];

// SAFETY: repr(C), of words and padding.
#[allow(unsafe_code)]
unsafe impl Shared for Mailbox {}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Mailbox>() == 512);

/// What has become of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The rank has handled it.
    Done,
    /// The rank has done nothing.
    Declined,
}

/// A frame that the rank has taken.
#[derive(Debug, Clone, Copy)]
pub struct Letter {
    /// Its number, by which it is answered.
    pub number: u32,
    /// The rank that posted it.
    pub sender: u32,
    /// Its length in bytes.
    pub len: usize,
    /// Its words. Those above its length are zero.
    pub frame: [u64; WORDS],
}

/// The peer's side.
impl Mailbox {
    /// Claims the mailbox. Returns false if it is closed, or if another peer has it.
    #[inline]
    pub fn claim(&self) -> bool {
        self.door.load(Relaxed) == OPEN && self.door.replace(OPEN, CLAIMED, Acquire).is_ok()
    }

    /// A peer is about to claim the mailbox and post a frame.
    #[inline]
    pub fn will_post(&self) {
        // Another peer that has claimed it may be writing there.
        if self.door.load(Relaxed) == OPEN {
            self.posted.will_store();
        }
    }

    /// Posts a frame of rank `sender`, of `len` bytes, in a mailbox that it has claimed. Returns
    /// the frame's number.
    #[inline(never)] // Its stores follow each other then (docs/tuning.md, "Mailboxes").
    pub fn post(&self, sender: u32, len: usize, frame: &[u64; WORDS]) -> u32 {
        // Only the peer that has claimed the mailbox writes this.
        let number = self.posted.load(Relaxed).wrapping_add(1);
        self.letter.store(len as u32 | sender << 8, Relaxed);
        write(&self.frame, frame, len);
        // Release pairs with the acquire in `take`.
        self.posted.store(number, Release);
        number
    }

    /// What has become of the frame of this number; `None` while that isn't known.
    #[inline]
    pub fn outcome(&self, number: u32) -> Option<Outcome> {
        // Pairs with the release in `answer`.
        match self.answered.load(Acquire).wrapping_sub(number << 1) {
            0 => Some(Outcome::Done),
            1 => Some(Outcome::Declined),
            _ => None,
        }
    }

    /// Takes the frame of this number back. Returns false if the rank has taken it.
    #[cold]
    pub fn withdraw(&self, number: u32) -> bool {
        self.settle(number)
    }

    /// The answer, of `len` bytes.
    #[inline]
    pub fn read_answer(&self, len: usize) -> [u64; WORDS] {
        read(&self.answer, len)
    }

    /// Lets other peers use the mailbox.
    #[inline]
    pub fn release(&self) {
        // Pairs with the acquire in `claim`: the next peer writes after this one has read.
        self.door.store(OPEN, Release);
    }
}

/// The side of the rank that has the mailbox.
impl Mailbox {
    /// Lets peers use the mailbox from here on. A rank that never polls keeps it closed.
    #[inline]
    pub fn open(&self) {
        // Of a mailbox that is open already, a peer may be the user.
        let _ = self.door.replace(CLOSED, OPEN, Release);
    }

    /// Whether a quick test shows a frame.
    #[inline]
    pub fn is_posted(&self) -> bool {
        // Relaxed: `take` reads the frame.
        self.posted.load(Relaxed) != self.settled.load(Relaxed)
    }

    /// Takes the frame, if there is one.
    #[inline]
    pub fn take(&self) -> Option<Letter> {
        // Acquire pairs with the release in `post`.
        let number = self.posted.load(Acquire);
        if !self.settle(number) {
            return None;
        }
        self.answered.will_store();
        let letter = self.letter.load(Relaxed);
        let len = letter as usize & 0xff;
        Some(Letter { number, sender: letter >> 8, len, frame: read(&self.frame, len) })
    }

    /// Answers a frame that is done by `len` bytes.
    #[inline]
    pub fn answer(&self, number: u32, len: usize, answer: &[u64; WORDS]) {
        write(&self.answer, answer, len);
        // Release pairs with the acquire in `outcome`.
        self.answered.store(number << 1, Release);
    }

    /// Declines a frame.
    #[cold]
    pub fn decline(&self, number: u32) {
        self.answered.store(number << 1 | 1, Release);
    }
}

impl Mailbox {
    /// Settles who has the frame of this number: the side that succeeds.
    #[inline]
    fn settle(&self, number: u32) -> bool {
        // Only the order of the swaps counts.
        self.settled.replace(number.wrapping_sub(1), number, Relaxed).is_ok()
    }
}

#[inline]
fn write(to: &Words, words: &[u64; WORDS], len: usize) {
    for ([low, high], word) in to.iter().zip(words).take(len.div_ceil(8)) {
        low.store(*word as u32, Relaxed);
        high.store((*word >> 32) as u32, Relaxed);
    }
}

#[inline]
fn read(from: &Words, len: usize) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    for (word, [low, high]) in words.iter_mut().zip(from).take(len.div_ceil(8)) {
        *word = u64::from(low.load(Relaxed)) | u64::from(high.load(Relaxed)) << 32;
    }
    words
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const FRAME: [u64; WORDS] = [1, 2, 3, 4, 5, 6 << 40, u64::MAX];

    #[test]
    fn a_frame_and_its_answer_pass() {
        let mailbox = Mailbox::default();
        assert!(!mailbox.claim());
        mailbox.open();
        for len in [0, 7, 8, 40, 56] {
            assert!(mailbox.claim() && !mailbox.claim() && !mailbox.is_posted());
            let number = mailbox.post(2895, len, &FRAME);
            assert!(mailbox.is_posted() && mailbox.outcome(number).is_none());
            let letter = mailbox.take().unwrap();
            assert_eq!((letter.number, letter.sender, letter.len), (number, 2895, len));
            let words = len.div_ceil(8);
            assert_eq!(letter.frame[..words], FRAME[..words]);
            assert!(letter.frame[words..].iter().all(|word| *word == 0));
            assert!(!mailbox.is_posted() && mailbox.take().is_none());
            mailbox.answer(number, len, &letter.frame);
            assert_eq!(mailbox.outcome(number), Some(Outcome::Done));
            assert_eq!(mailbox.read_answer(len), letter.frame);
            mailbox.release();
        }
    }

    #[test]
    fn a_frame_is_declined_or_taken_back_and_the_next_one_passes() {
        let mailbox = Mailbox::default();
        // Numbers begin again at 0.
        let last = u32::MAX / 2;
        for word in [&mailbox.posted, &mailbox.settled] {
            word.store(last, Relaxed);
        }
        let declined = mailbox.post(1, 8, &FRAME);
        assert_eq!(mailbox.take().map(|letter| letter.number), Some(declined));
        mailbox.decline(declined);
        assert_eq!(mailbox.outcome(declined), Some(Outcome::Declined));
        assert!(!mailbox.withdraw(declined));
        let late = mailbox.post(1, 8, &FRAME);
        assert!(mailbox.outcome(late).is_none() && mailbox.withdraw(late));
        assert!(!mailbox.is_posted() && mailbox.take().is_none());
        let next = mailbox.post(1, 8, &FRAME);
        mailbox.take().unwrap();
        mailbox.answer(next, 0, &FRAME);
        assert_eq!(mailbox.outcome(next), Some(Outcome::Done));
    }
}
