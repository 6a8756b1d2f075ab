//! The control block of each rank of a window: synchronisation words in the segment, wherever the
//! window's memory is.
//!
//! ```text
//!    0  state u32            EXPOSED: between post and wait    NOPUT: no rank may put
//!   64  accumulate lock      64 bytes
//!  128  lock                 shared or exclusive, see transport's SharedLock
//!       posts[n] u32         counters, each written by the rank that posted
//!       completes[n] u32     counters, each written by the rank that completed
//!       notifications        64 bytes each, raised by operations that notify the owner
//! ```
//!
//! The route to a window's memory decides how a rank uses its control block. A rank with the direct
//! route uses it with the processor's atomics, and so does the owner. For any other rank, the owner
//! uses it when that rank's frame arrives, after its data in the link.
//!
//! Words are little-endian. A [counter] has one writer and one reader.

use std::sync::atomic::{AtomicU32, Ordering};

use longshore_transport::lock::{BriefLock, Briefly, Claim, LockLayout, SharedLock, Sharing, User};
use longshore_transport::{Mapping, Range, RankState, Segment, SegmentError};

use crate::counter;
use crate::group::Group;
use crate::notification::{self, Notification};

const ACCUMULATE: u64 = 64;
const LOCK: u64 = 128;

const EXPOSED: u32 = 1;
const NOPUT: u32 = 2;

/// The control blocks of a window, as one rank sees them.
pub(crate) struct Control {
    memory: Mapping,
    segment: Segment,
    group: Group,
    rank: u32,
    size: u32,
    /// The number of notification counters of each rank, and where they begin in its block.
    notifications: u16,
    counters: u64,
    /// The distance in bytes between consecutive blocks.
    stride: u64,
    locks: LockLayout,
}

/// The events that one rank counts for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tally {
    /// Posts of the writer to the reader.
    Posts,
    /// Accesses of the writer to the reader that are complete.
    Completes,
}

impl Control {
    /// The size in bytes of the control blocks of `size` ranks, each with a number of
    /// notification counters. The memory must be zeroed.
    pub(crate) fn bytes(size: u32, notifications: u16) -> u64 {
        u64::from(size) * Self::stride(size, notifications)
    }

    /// The blocks at `place` of the segment, for rank `rank` of a group. `None` if the memory is
    /// too small.
    pub(crate) fn new(
        segment: &Segment,
        place: Range,
        group: &Group,
        rank: u32,
        notifications: u16,
    ) -> Result<Option<Control>, SegmentError> {
        let size = group.size() as u32;
        if place.len < Self::bytes(size, notifications) {
            return Ok(None);
        }
        let (segment, group) = (segment.clone(), group.clone());
        let (memory, stride) = (segment.map(place)?, Self::stride(size, notifications));
        let locks = LockLayout::of(size);
        let counters = Self::counters(size);
        Ok(Some(Control {
            memory,
            segment,
            group,
            rank,
            size,
            notifications,
            counters,
            stride,
            locks,
        }))
    }

    fn stride(size: u32, notifications: u16) -> u64 {
        Self::counters(size)
            + (notification::STRIDE * u64::from(notifications)).next_multiple_of(128)
    }

    /// Where the notification counters of a block begin.
    fn counters(size: u32) -> u64 {
        (LOCK + SharedLock::bytes(size) + 8 * u64::from(size)).next_multiple_of(128)
    }

    /// The number of notification counters of each rank.
    #[inline]
    pub(crate) fn notifications(&self) -> u16 {
        self.notifications
    }

    /// An owner's notification counter with this index.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    pub(crate) fn notification(&self, owner: u32, index: u16) -> Notification<'_> {
        assert!(index < self.notifications, "no counter {index} of {}", self.notifications);
        let counters = self.block(owner) + self.counters;
        let at = counters + notification::STRIDE * u64::from(index);
        let [count, wraps] = self.memory.words32(at as usize);
        Notification { count, wraps }
    }

    /// Raises an owner's notification counter.
    #[inline]
    pub(crate) fn notify(&self, owner: u32, index: u16) {
        if self.notification(owner, index).raise() {
            self.wake_owner(owner);
        }
    }

    /// Wakes an owner that sleeps until a counter of it rises.
    #[cold]
    pub(crate) fn wake_owner(&self, owner: u32) {
        self.ring(owner);
    }

    #[inline]
    fn block(&self, owner: u32) -> u64 {
        u64::from(owner) * self.stride
    }

    /// Takes an owner's accumulate lock. Dropping the result releases it.
    #[inline(always)]
    pub(crate) fn accumulate(&self, owner: u32) -> Briefly<'_> {
        let lock = BriefLock::at(&self.memory, self.block(owner) + ACCUMULATE);
        lock.acquire(self.rank, |rank| self.is_dead(rank))
    }

    /// This process's rank in the window.
    #[inline]
    pub(crate) fn rank(&self) -> u32 {
        self.rank
    }

    /// The group of the window.
    pub(crate) fn group(&self) -> &Group {
        &self.group
    }

    /// Whether a rank is dead.
    pub(crate) fn is_dead(&self, rank: u32) -> bool {
        let known = rank < self.size;
        known && matches!(self.segment.rank_state(self.group.process(rank)), RankState::Dead(_))
    }

    fn ring(&self, rank: u32) {
        if rank < self.size {
            // Ringing can't fail: every rank of the job belongs to the segment.
            let _ = self.segment.ring(self.group.process(rank));
        }
    }

    #[inline]
    fn lock(&self, owner: u32) -> SharedLock<'_> {
        SharedLock::new(&self.memory, self.block(owner) + LOCK, self.locks)
    }

    /// Requests an owner's lock for this rank; see [`SharedLock::request`].
    #[inline(always)]
    pub(crate) fn request(&self, owner: u32, user: User, sharing: Sharing) -> Result<u32, u32> {
        self.lock(owner).request(user, sharing, |user| self.wake(owner, user))
    }

    /// Requests an owner's lock, for this rank or, at the owner, for a rank that it serves. A free
    /// lock is granted at once.
    #[inline]
    pub(crate) fn claim(&self, owner: u32, user: User, sharing: Sharing) -> Claim {
        let mut claim = self.lock(owner).claim(user, sharing, |user| self.wake(owner, user));
        self.poll(owner, &mut claim, false);
        claim
    }

    /// Whether a claim on an owner's lock is granted. With `thorough`, dead ranks are skipped.
    #[inline]
    pub(crate) fn poll(&self, owner: u32, claim: &mut Claim, thorough: bool) -> bool {
        let is_dead = |rank| thorough && self.is_dead(rank);
        self.lock(owner).poll(claim, is_dead, |user| self.wake(owner, user))
    }

    /// Releases an owner's lock.
    #[inline(always)]
    pub(crate) fn release(&self, owner: u32, claim: Claim) {
        self.lock(owner).release(claim, |user| self.wake(owner, user));
    }

    /// The living rank that holds an owner's lock or gets it next, if there is one.
    pub(crate) fn locker(&self, owner: u32) -> Option<u32> {
        let holder = self.lock(owner).holder(|rank| self.is_dead(rank));
        // Another rank may have written any value.
        holder.filter(|rank| *rank < self.size)
    }

    /// Wakes the rank that polls for a user: the user itself, or the owner that serves it.
    fn wake(&self, owner: u32, user: User) {
        self.ring(if user.served { owner } else { user.number });
    }

    /// Sets `to`'s count of events by `from`.
    pub(crate) fn signal(&self, tally: Tally, to: u32, from: u32, count: u32) {
        if counter::set(self.word(tally, to, from), count) {
            self.ring(to);
        }
    }

    /// Adds one to this rank's count of events by `from`.
    pub(crate) fn signal_here(&self, tally: Tally, from: u32) {
        let last = counter::last(self.word(tally, self.rank, from));
        self.signal(tally, self.rank, from, counter::next(last));
    }

    /// Whether this rank's count of events by `from` has reached `count`. With `arming`, the writer
    /// rings when it does.
    pub(crate) fn heard(&self, tally: Tally, from: u32, count: u32, arming: bool) -> bool {
        counter::is_reached(self.word(tally, self.rank, from), count, arming)
    }

    fn word(&self, tally: Tally, reader: u32, writer: u32) -> &AtomicU32 {
        let size = u64::from(self.size);
        let counts = self.block(reader) + LOCK + SharedLock::bytes(self.size);
        let at = match tally {
            Tally::Posts => counts,
            Tally::Completes => counts + 4 * size,
        };
        self.memory.word32((at + 4 * u64::from(writer)) as usize)
    }

    /// Sets whether this rank's window is exposed by a post.
    pub(crate) fn set_exposed(&self, exposed: bool) {
        self.change(EXPOSED, exposed);
    }

    /// Whether an owner has exposed its window by a post.
    #[inline]
    pub(crate) fn is_exposed(&self, owner: u32) -> bool {
        self.state(owner).load(Ordering::Relaxed) & EXPOSED.to_le() != 0
    }

    /// Sets whether other ranks may not put into this rank's window.
    pub(crate) fn set_no_put(&self, no_put: bool) {
        self.change(NOPUT, no_put);
    }

    /// Whether this rank has forbidden puts into its window.
    #[inline]
    pub(crate) fn is_no_put(&self) -> bool {
        self.state(self.rank).load(Ordering::Relaxed) & NOPUT.to_le() != 0
    }

    fn change(&self, bit: u32, on: bool) {
        // Only the owner writes the word.
        let word = self.state(self.rank);
        let state = u32::from_le(word.load(Ordering::Relaxed));
        let state = if on { state | bit } else { state & !bit };
        word.store(state.to_le(), Ordering::Relaxed);
    }

    #[inline]
    fn state(&self, owner: u32) -> &AtomicU32 {
        self.memory.word32(self.block(owner) as usize)
    }
}

#[cfg(test)]
mod tests {
    use longshore_transport::Cause;

    use super::*;

    #[test]
    fn a_block_takes_at_most_64_bytes_a_rank_and_a_constant() {
        for size in (1..=4096).chain([1000, 1025]) {
            assert!(Control::stride(size, 0) <= 512 + 64 * u64::from(size), "{size}");
        }
    }

    /// The control blocks of two ranks, as each of them sees them.
    fn pair(segment: &Segment) -> [Control; 2] {
        let place = segment.as_rank(0).unwrap().allocate(Control::bytes(2, 0)).unwrap();
        [0, 1].map(|rank| {
            let segment = segment.as_rank(rank).unwrap();
            Control::new(&segment, place, &Group::of_world(0..2, rank), rank, 0).unwrap().unwrap()
        })
    }

    #[test]
    fn dead_ranks_hold_no_lock() {
        for sharing in [Sharing::Shared, Sharing::Exclusive] {
            let segment = Segment::create(2).unwrap();
            let [owner, other] = pair(&segment);
            let _ = other.claim(0, User { number: 1, served: false }, sharing);
            assert_eq!(owner.locker(0), Some(1));
            segment.mark(1, RankState::Dead(Cause::Lost));
            assert_eq!(owner.locker(0), None);
        }
    }

    #[test]
    fn counts_wrap_around() {
        let [reader, writer] = pair(&Segment::create(2).unwrap());
        let most = u32::MAX >> 1;
        reader.word(Tally::Posts, 0, 1).store((most << 1).to_le(), Ordering::Relaxed);
        assert!(reader.heard(Tally::Posts, 1, most, true));
        assert!(!reader.heard(Tally::Posts, 1, 0, true));
        writer.signal(Tally::Posts, 0, 1, 0);
        assert!(reader.heard(Tally::Posts, 1, 0, true));
        assert!(!reader.heard(Tally::Completes, 1, 1, false));
    }
}
