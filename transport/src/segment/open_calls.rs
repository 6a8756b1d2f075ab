//! The calls that the threads of a rank are in, on the first page of its [`Journal`].
//!
//! Each call takes a slot: the length of its description, and the description itself. So the
//! launcher finds the call in which a rank has ended.
//!
//! [`Journal`]: super::Journal

use std::sync::atomic::{AtomicU32, fence};

use crate::atomics::{Acquire, Le32, Relaxed, Release};
use crate::mapping::Mapping;

/// The slots of a rank.
const SLOTS: u32 = 15;

/// The bytes of a slot.
const SLOT: u64 = 256;

/// The offset of the first slot in the journal.
const FIRST: u64 = 256;

const _: () = assert!(FIRST + SLOTS as u64 * SLOT == 4096);

/// The calls that the threads of a rank are in. Threads use it without a lock.
///
/// ```
/// use longshore_transport::{Journal, OpenCalls};
///
/// let journal = Journal::create(1, 4096)?;
/// let (rank, launcher) = (journal.open_calls()?, journal.open_calls()?);
/// let slot = rank.enter(b"fence, for rank ?").unwrap();
/// rank.amend(&slot, 16, u32::from_le_bytes(*b"7   "));
/// assert_eq!(launcher.read(), [b"fence, for rank 7"]);
/// rank.leave(slot);
/// assert!(launcher.read().is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct OpenCalls {
    /// The first page of the journal.
    mapping: Mapping,
    /// A bit for each slot that a thread of this process has taken.
    taken: AtomicU32,
}

/// The slot of a call, from [`OpenCalls::enter`] to [`OpenCalls::leave`].
#[derive(Debug, PartialEq, Eq)]
pub struct CallSlot(u32);

impl CallSlot {
    #[inline]
    fn start(&self) -> u64 {
        FIRST + u64::from(self.0) * SLOT
    }
}

impl OpenCalls {
    /// The most bytes of a description. A longer one is cut.
    pub const ROOM: usize = SLOT as usize - 4;

    pub(super) fn new(mapping: Mapping) -> OpenCalls {
        OpenCalls { mapping, taken: AtomicU32::new(0) }
    }

    #[inline]
    fn length(&self, slot: &CallSlot) -> &Le32 {
        self.mapping.at(slot.start())
    }

    /// A thread enters a call with this description. `None` if as many threads as there are slots
    /// are in calls.
    #[must_use]
    pub fn enter(&self, description: &[u8]) -> Option<CallSlot> {
        let mut taken = self.taken.load(Relaxed);
        loop {
            let slot = CallSlot(taken.trailing_ones());
            if slot.0 >= SLOTS {
                return None;
            }
            match self.taken.compare_exchange_weak(taken, taken | 1 << slot.0, Acquire, Relaxed) {
                Err(other) => taken = other,
                Ok(_) => {
                    self.describe(&slot, description);
                    return Some(slot);
                }
            }
        }
    }

    /// Describes a call anew.
    pub fn describe(&self, slot: &CallSlot, description: &[u8]) {
        let description = &description[..description.len().min(OpenCalls::ROOM)];
        let length = self.length(slot);
        length.store(0, Relaxed);
        // A rank that is killed below leaves no mixture: the length is 0 before the first byte
        // changes.
        fence(Release);
        self.mapping.store(slot.start() as usize + 4, description);
        // Pairs with the acquire in `read`.
        length.store(description.len() as u32, Release);
    }

    /// Replaces a word of a call's description: the four bytes from `offset` on, little-endian.
    ///
    /// # Panics
    /// If `offset` isn't a multiple of four, or the description has no room for the word.
    #[inline]
    pub fn amend(&self, slot: &CallSlot, offset: usize, word: u32) {
        assert!(offset % 4 == 0 && offset + 4 <= OpenCalls::ROOM, "no word at {offset}");
        let place: &Le32 = self.mapping.at(slot.start() + 4 + offset as u64);
        place.store(word, Relaxed);
    }

    /// A thread leaves a call.
    #[inline]
    #[allow(clippy::needless_pass_by_value)] // The slot is gone.
    pub fn leave(&self, slot: CallSlot) {
        self.length(&slot).store(0, Relaxed);
        // Pairs with the acquire in `enter`: the next thread finds the slot as it was left.
        self.taken.fetch_and(!(1 << slot.0), Release);
    }

    /// The descriptions of the calls that threads are in. The rank must have ended: otherwise it
    /// may be writing them.
    #[must_use]
    pub fn read(&self) -> Vec<Vec<u8>> {
        let call = |slot| {
            let slot = CallSlot(slot);
            // A rank's word, so it is checked.
            let len = (self.length(&slot).load(Acquire) as usize).min(OpenCalls::ROOM);
            let mut bytes = vec![0; len];
            self.mapping.load(slot.start() as usize + 4, &mut bytes);
            (len > 0).then_some(bytes)
        };
        (0..SLOTS).filter_map(call).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::Journal;

    #[test]
    fn slots_are_taken_again_and_run_out() {
        let journal = Journal::create(0, 0).unwrap();
        let calls = journal.open_calls().unwrap();
        let mut slots: Vec<_> = (0..SLOTS as u8).map(|n| calls.enter(&[n; 300]).unwrap()).collect();
        assert_eq!(calls.enter(b"more"), None);
        calls.leave(slots.remove(3));
        let read = calls.read();
        assert_eq!(read.len(), SLOTS as usize - 1);
        assert!(read.iter().all(|call| call.len() == OpenCalls::ROOM && call[0] != 3));
        let again = calls.enter(b"again").unwrap();
        assert_eq!((again.start(), &calls.read()[3][..]), (FIRST + 3 * SLOT, &b"again"[..]));
        assert_eq!(journal.len(), 0);
    }
}
