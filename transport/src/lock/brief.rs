//! A lock for moments: one exchange to take it and a store to give it back.

use crate::atomics::{AcqRel, Acquire, Le32, Relaxed, Release, nap, spin};
use crate::segment::Mapping;

/// The lock's word.
///
/// ```text
///    0 state: u32, 0 or the holder's number + 1
/// ```
#[derive(Debug, Default)]
#[repr(C)]
pub struct BriefWord {
    state: Le32,
}

/// A lock over one word, held for a few memory accesses. Whoever comes takes it when it is free, waiting or not, so that it
/// costs one exchange where nobody waits. Nobody is woken either: who waits for longer than the work takes, because the holder lost
/// its core, naps and looks again. The death of the holder is seen by those that wait.
///
/// ```
/// use longshore_transport::{Segment, lock::BriefLock};
/// let segment = Segment::create(2)?.as_rank(0)?;
/// let memory = segment.map(segment.allocate(BriefLock::BYTES)?)?;
/// let held = BriefLock::at(&memory, 0).acquire(0, |_| false);
/// drop(held);
/// # Ok::<(), longshore_transport::SegmentError>(())
/// ```
#[derive(Clone, Copy)]
pub struct BriefLock<'a> {
    word: &'a BriefWord,
}

/// Holds the lock until dropped.
pub struct Briefly<'a> {
    word: &'a BriefWord,
}

impl<'a> BriefLock<'a> {
    /// Bytes of shared memory, zeroed at first: a cache line.
    pub const BYTES: u64 = 64;

    /// A lock over `word`. Zero is a free lock.
    pub fn new(word: &'a BriefWord) -> Self {
        Self { word }
    }

    /// The lock at `offset` of `memory`, a multiple of 4.
    ///
    /// # Panics
    /// If it isn't inside.
    #[inline]
    pub fn at(memory: &'a Mapping, offset: u64) -> Self {
        Self::new(memory.at(offset))
    }

    /// Takes the lock for `number`, below 2^32 - 1, as soon as it is free. `is_dead` says of a number whether its owner
    /// will never run again.
    #[inline]
    pub fn acquire(self, number: u32, is_dead: impl Fn(u32) -> bool) -> Briefly<'a> {
        // Acquire pairs with the release in `drop`: what the last holder wrote is seen.
        if self.word.state.replace(0, number + 1, Acquire).is_err() {
            self.wait(number + 1, is_dead);
        }
        Briefly { word: self.word }
    }

    #[cold]
    fn wait(self, name: u32, is_dead: impl Fn(u32) -> bool) {
        let (state, mut looks) = (&self.word.state, 0);
        loop {
            let seen = state.load(Relaxed);
            let free = seen.checked_sub(1).is_none_or(|holder| looks == SPINS && is_dead(holder));
            // AcqRel on the way to the next: what a dead holder wrote may be seen or not, as its death had it.
            if free && state.replace(seen, name, AcqRel).is_ok() {
                return;
            }
            if looks < SPINS {
                looks += 1;
                spin();
            } else {
                nap();
            }
        }
    }

    /// Who holds the lock, if anyone.
    pub fn holder(self) -> Option<u32> {
        self.word.state.load(Acquire).checked_sub(1)
    }
}

impl Drop for Briefly<'_> {
    #[inline]
    fn drop(&mut self) {
        // Release pairs with the acquire in `acquire`.
        self.word.state.store(0, Release);
    }
}

/// A few microseconds, as long as the work that it guards.
#[cfg(not(loom))]
const SPINS: u32 = 400;
#[cfg(loom)]
const SPINS: u32 = 0;
