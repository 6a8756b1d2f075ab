//! A lock without a queue: one exchange takes it, and one store releases it.

use crate::atomics::{AcqRel, Acquire, Le32, Relaxed, Release, nap, spin};
use crate::mapping::{Mapping, Shared};

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

// SAFETY: repr(C), of one word.
#[allow(unsafe_code)]
unsafe impl Shared for BriefWord {}

/// A lock over one word, held for a few memory accesses.
///
/// Any caller takes the lock while it is free, even if others wait, so an uncontended lock costs
/// one exchange. Releasing it wakes nobody. A waiter spins for as long as the guarded work usually
/// takes; after that the holder has probably lost its core, so the waiter naps between further
/// tries. Waiters detect the death of the holder.
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
    /// Bytes of shared memory that the lock takes: one cache line. They must start zeroed.
    pub const BYTES: u64 = 64;

    /// A lock over `word`. A zero word is a free lock.
    #[inline]
    pub fn new(word: &'a BriefWord) -> Self {
        Self { word }
    }

    /// The lock at `offset` of `memory`, a multiple of 4.
    ///
    /// # Panics
    /// If it isn't inside `memory`.
    #[inline]
    pub fn at(memory: &'a Mapping, offset: u64) -> Self {
        Self::new(memory.at(offset))
    }

    /// Takes the lock for `number`, below 2^32 - 1, as soon as it is free. `is_dead` returns
    /// whether the owner of a number will never run again.
    #[inline]
    pub fn acquire(self, number: u32, is_dead: impl Fn(u32) -> bool) -> Briefly<'a> {
        // Acquire pairs with the release in `drop`: the writes of the last holder are seen.
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
            // AcqRel passes them on to the next holder. The writes of a dead holder may be seen or
            // not, as at its death.
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

    /// The number of the holder, if any.
    #[inline]
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

/// A few microseconds, as long as the guarded work takes.
#[cfg(not(loom))]
const SPINS: u32 = 400;
#[cfg(loom)]
const SPINS: u32 = 0;
