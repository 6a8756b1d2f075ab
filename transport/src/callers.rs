//! The callers of a rank: the peers whose rings it doesn't watch and that hold a frame.
//!
//! ```text
//!    0  called: u32     a caller has set its bit since the rank looked
//!    4  bits: u32[]     a bit for each peer
//! ```
//!
//! A rank that polls reads only the first word, in a job of any size:
//!
//! ```text
//!     caller                                    the rank
//!     1. set its bit                            1. called = 0, by an exchange: acquire
//!     2. called = 1, by an exchange: release    2. take the bits
//! ```
//!
//! A caller whose second step comes after the rank's first is found the next time. A caller whose
//! second step comes before it has set its bit, and the rank sees the bit: the exchanges of other
//! callers in between keep the order, which plain stores would not.

pub use crate::atomics::Le32 as Word;
use crate::atomics::{AcqRel, Relaxed, barrier_after_exchange};

/// The words in which peers call a rank.
#[derive(Clone, Copy, Debug)]
pub struct Callers<'a> {
    words: &'a [Word],
}

impl<'a> Callers<'a> {
    /// The number of words for a job of `ranks`.
    #[inline]
    pub const fn words(ranks: u32) -> usize {
        1 + ranks.div_ceil(32) as usize
    }

    /// The callers in these words: [`Callers::words`], which start zeroed.
    #[inline]
    pub fn new(words: &'a [Word]) -> Self {
        Self { words }
    }

    /// Calls the rank. A full barrier.
    #[inline]
    pub fn call(&self, caller: u32) {
        self.words[1 + caller as usize / 32].set_bits(1 << (caller % 32), AcqRel);
        // Release pairs with the acquire in `take`: what the caller published is seen.
        self.words[0].swap(1, AcqRel);
        barrier_after_exchange();
    }

    /// Whether a peer has called.
    #[inline]
    pub fn is_called(&self) -> bool {
        self.words[0].load(Relaxed) != 0
    }

    /// Takes the callers, and passes each to `answer`.
    pub fn take(&self, mut answer: impl FnMut(u32)) {
        self.words[0].swap(0, AcqRel);
        for (word, base) in self.words[1..].iter().zip((0..).step_by(32)) {
            let mut calls = if word.load(Relaxed) == 0 { 0 } else { word.swap(0, AcqRel) };
            while calls != 0 {
                answer(base + calls.trailing_zeros());
                calls &= calls - 1;
            }
        }
    }
}
