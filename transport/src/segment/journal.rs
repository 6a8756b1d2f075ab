//! The journal of a rank: memory in which the rank leaves counters and events for its launcher.
//!
//! The launcher makes the journal and passes it to the rank, which maps it. So what a rank has
//! written is there after any end of the rank, SIGKILL included. The rank never waits for a reader:
//! events that have no room are counted, and dropped.
//!
//! ```text
//!    0  magic u32       the layout, and its version
//!    4  wants u32       what the rank is to record: a set of bits that launcher and rank agree on
//!    8  events u32      bytes of events that are complete
//!   12  dropped u32     events that had no room
//!   16  current u32     the snapshot to read: 0 for none, 1 or 2
//!   20  lengths u32[2]  the bytes of both snapshots
//!  256  open calls      15 slots of 256 bytes, each with a length u32 and a description
//! 4096  snapshot 1      2 MiB
//!       snapshot 2      2 MiB
//!       events          up to the end
//! ```
//!
//! All words are little-endian. A snapshot replaces the last one: the rank writes the other one of
//! the two, and then the word `current`. Events only grow.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::{OpenCalls, Range, SegmentError};
use crate::atomics::{Acquire, Le32, Relaxed, Release};
use crate::mapping::{self, Mapping};

const MAGIC: u32 = 0x324a_534c;
const SNAPSHOTS: u64 = 4096;

/// The most bytes of a snapshot.
const SNAPSHOT: u64 = 2 << 20;
const EVENTS: u64 = SNAPSHOTS + 2 * SNAPSHOT;

/// The journal of a rank, which its launcher reads.
///
/// ```
/// use std::os::fd::AsFd;
/// use longshore_transport::Journal;
///
/// let launcher = Journal::create(1, 4096)?;
/// let mut rank = Journal::open(launcher.as_fd().try_clone_to_owned()?)?;
/// assert!(rank.append(b"event") && rank.publish(b"counters"));
/// let mut event = [0; 5];
/// launcher.read(0, &mut event);
/// assert_eq!((launcher.len(), &event), (5, b"event"));
/// assert_eq!(launcher.snapshot().as_deref(), Some(&b"counters"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Journal {
    object: OwnedFd,
    mapping: Mapping,
}

impl Journal {
    /// Makes a journal with room for this many bytes of events. Its memory is taken when it is
    /// written.
    ///
    /// # Errors
    /// [`SegmentError::System`] where shared memory isn't available. [`SegmentError::Unmappable`]
    /// where the address space has no room.
    pub fn create(wants: u32, events: u32) -> Result<Journal, SegmentError> {
        let len = EVENTS + u64::from(events).next_multiple_of(4096);
        let object = mapping::create(len)?;
        let mapping = Mapping::new(object.as_fd(), Range { offset: 0, len })?;
        let journal = Journal { object, mapping };
        journal.word(4).store(wants, Relaxed);
        journal.word(0).store(MAGIC, Release);
        Ok(journal)
    }

    /// The journal with an inherited descriptor.
    ///
    /// # Errors
    /// [`SegmentError::Geometry`] for an object that is no journal of this version. Those of
    /// [`create`](Journal::create).
    pub fn open(object: OwnedFd) -> Result<Journal, SegmentError> {
        let len = mapping::size(object.as_fd())?;
        if len < EVENTS {
            return Err(SegmentError::Geometry(format!("a journal of {len} bytes")));
        }
        let mapping = Mapping::new(object.as_fd(), Range { offset: 0, len })?;
        let journal = Journal { object, mapping };
        match journal.word(0).load(Acquire) {
            MAGIC => Ok(journal),
            magic => Err(SegmentError::Geometry(format!("a journal of version {magic:#x}"))),
        }
    }

    #[inline]
    fn word(&self, offset: u64) -> &Le32 {
        self.mapping.at(offset)
    }

    /// What the rank is to record.
    pub fn wants(&self) -> u32 {
        self.word(4).load(Relaxed)
    }

    /// The calls that the threads of the rank are in, which they note without a lock.
    ///
    /// # Errors
    /// Those of [`create`](Journal::create).
    pub fn open_calls(&self) -> Result<OpenCalls, SegmentError> {
        let first_page = Range { offset: 0, len: SNAPSHOTS };
        Ok(OpenCalls::new(Mapping::new(self.object.as_fd(), first_page)?))
    }

    /// Appends an event. Returns false, and counts the event as dropped, if there is no room.
    pub fn append(&mut self, event: &[u8]) -> bool {
        let used = self.word(8).load(Relaxed);
        let start = EVENTS as usize + used as usize;
        let room = self.mapping.len().saturating_sub(start);
        match u32::try_from(event.len()).ok().and_then(|len| used.checked_add(len)) {
            Some(after) if event.len() <= room => {
                self.mapping.store(start, event);
                // Pairs with the acquire in `len`.
                self.word(8).store(after, Release);
                true
            }
            _ => {
                self.drop_event();
                false
            }
        }
    }

    /// Counts an event as dropped.
    pub fn drop_event(&mut self) {
        let dropped = self.word(12).load(Relaxed);
        self.word(12).store(dropped.saturating_add(1), Relaxed);
    }

    /// The number of bytes of events for which there is room in all.
    pub fn room(&self) -> usize {
        self.mapping.len() - EVENTS as usize
    }

    /// Replaces the snapshot. Returns false, and keeps the last one, if it is longer than 2 MiB.
    pub fn publish(&mut self, snapshot: &[u8]) -> bool {
        if snapshot.len() as u64 > SNAPSHOT {
            return false;
        }
        let next = if self.word(16).load(Relaxed) == 1 { 2 } else { 1 };
        let start = SNAPSHOTS + u64::from(next - 1) * SNAPSHOT;
        self.mapping.store(start as usize, snapshot);
        self.word(16 + 4 * u64::from(next)).store(snapshot.len() as u32, Relaxed);
        // Pairs with the acquire in `snapshot`.
        self.word(16).store(next, Release);
        true
    }

    /// The number of bytes of events.
    #[allow(clippy::len_without_is_empty)] // Nobody asks.
    pub fn len(&self) -> usize {
        // A rank's word, so it is checked.
        (self.word(8).load(Acquire) as usize).min(self.room())
    }

    /// The number of events that had no room.
    pub fn dropped(&self) -> u32 {
        self.word(12).load(Relaxed)
    }

    /// Reads bytes of events from `offset` on.
    ///
    /// # Panics
    /// If they aren't within the first [`len`](Journal::len) bytes.
    pub fn read(&self, offset: usize, into: &mut [u8]) {
        assert!(offset.checked_add(into.len()).is_some_and(|end| end <= self.len()));
        self.mapping.load(EVENTS as usize + offset, into);
    }

    /// The last snapshot. Its rank must have ended: otherwise it may be writing there.
    pub fn snapshot(&self) -> Option<Vec<u8>> {
        let current @ 1..=2 = self.word(16).load(Acquire) else { return None };
        let len = self.word(16 + 4 * u64::from(current)).load(Relaxed);
        let mut bytes = vec![0; u64::from(len).min(SNAPSHOT) as usize];
        let start = SNAPSHOTS + u64::from(current - 1) * SNAPSHOT;
        self.mapping.load(start as usize, &mut bytes);
        Some(bytes)
    }
}

/// The descriptor, which the launcher passes to the rank.
impl AsFd for Journal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.object.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_without_room_are_counted_and_the_rest_stays() {
        let mut journal = Journal::create(3, 4096).unwrap();
        let taken = (0..100u8).filter(|&byte| journal.append(&[byte; 64])).count();
        assert_eq!((taken, journal.len(), journal.dropped()), (64, 4096, 36));
        let mut last = [0; 64];
        journal.read(63 * 64, &mut last);
        assert_eq!((last, journal.wants()), ([63; 64], 3));
    }

    #[test]
    fn a_snapshot_replaces_the_last_one_unless_it_is_too_long() {
        let mut journal = Journal::create(0, 0).unwrap();
        assert_eq!(journal.snapshot(), None);
        for number in 0..5u8 {
            assert!(journal.publish(&[number; 100]));
            assert_eq!(journal.snapshot(), Some(vec![number; 100]));
        }
        assert!(!journal.publish(&vec![0; SNAPSHOT as usize + 1]));
        assert_eq!(journal.snapshot(), Some(vec![4; 100]));
    }

    #[test]
    fn an_object_that_is_no_journal_is_refused() {
        for len in [4096, EVENTS] {
            let error = Journal::open(mapping::create(len).unwrap()).unwrap_err();
            assert!(matches!(error, SegmentError::Geometry(_)), "{error}");
        }
    }
}
