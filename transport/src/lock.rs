//! Fair locks in shared memory that survive the death of their holders and waiters.
//!
//! Waiters stand in a queue whose entries name them, so that later waiters can pass over a dead
//! rank.
//!
//! - [`FairLock`] blocks its caller, and is held for a short time.
//! - [`SharedLock`] is polled, and may be held for long.
//! - [`BriefLock`] has no queue, and is held for a few memory accesses.
//!
//! A holder may die at any moment, so the data under a lock must be consistent at any moment: every
//! change is committed by one store to one word.

mod brief;
mod queue;
mod shared;

use crate::atomics::{Acquire, Le32, Release, spin};
use crate::futex::{self, LONGEST_SLEEP};
use crate::mapping::{Mapping, Shared};
use queue::{Queue, QueueEntry};

pub use brief::{BriefLock, BriefWord, Briefly};
pub use queue::LockHead;
pub use shared::{Claim, LockLayout, SharedLock, Sharing, User};

/// An entry in the queue of a [`FairLock`].
///
/// ```text
///    0 name: u32, ticket and rank
///    4 turn: u32, the last ticket that was called
/// ```
#[derive(Debug, Default)]
#[repr(C)]
pub struct LockEntry {
    name: Le32,
    turn: Le32,
}

// SAFETY: repr(C), of words.
#[allow(unsafe_code)]
unsafe impl Shared for LockEntry {}

#[cfg(not(loom))]
const _: () = assert!(size_of::<LockHead>() == 8 && size_of::<LockEntry>() == 8);

impl QueueEntry for LockEntry {
    #[inline]
    fn name(&self) -> &Le32 {
        &self.name
    }
}

/// A lock that blocks its caller, over words in shared memory.
#[derive(Clone, Copy)]
pub struct FairLock<'a> {
    queue: Queue<'a, LockEntry>,
}

/// Holds the lock until dropped.
pub struct Held<'a> {
    lock: FairLock<'a>,
    ticket: u32,
}

impl<'a> FairLock<'a> {
    /// A lock over `head` and `entries`. Zeroed words are a free lock.
    ///
    /// The length of `entries` is a power of two, and at least the number of ranks. Only
    /// one thread of each rank may wait at a time.
    #[inline]
    pub fn new(head: &'a LockHead, entries: &'a [LockEntry]) -> Self {
        Self { queue: Queue::new(head, entries) }
    }

    /// Bytes of shared memory that a lock of `ranks` takes: a multiple of 64. They must start
    /// zeroed.
    pub fn bytes(ranks: u32) -> u64 {
        64 + 8 * u64::from(ranks.next_power_of_two()).next_multiple_of(8)
    }

    /// The lock in the `bytes(ranks)` bytes of `memory` from `offset` on, which is a multiple of 8.
    ///
    /// # Panics
    /// If these bytes aren't inside `memory`.
    #[inline]
    pub fn at(memory: &'a Mapping, offset: u64, ranks: u32) -> Self {
        let entries = memory.slice(offset + 64, ranks.next_power_of_two() as usize);
        Self::new(memory.at(offset), entries)
    }

    /// Waits for its turn and takes the lock for `rank`. `is_dead` returns whether a rank will
    /// never run again.
    #[inline]
    pub fn acquire(self, rank: u32, is_dead: impl Fn(u32) -> bool) -> Held<'a> {
        let ticket = self.queue.enter(rank);
        if self.queue.turn() != ticket {
            self.wait(ticket, is_dead);
        }
        Held { lock: self, ticket }
    }

    /// Waits for the turn of `ticket`. Each sleep lasts at most 100 ms; before each, a dead rank at
    /// the head of the queue is passed over.
    #[cold]
    fn wait(self, ticket: u32, is_dead: impl Fn(u32) -> bool) {
        let mut spins = 0;
        while self.queue.turn() != ticket {
            if spins < SPINS {
                spins += 1;
                spin();
                continue;
            }
            self.wake(self.queue.pass_over(&is_dead));
            let entry = self.queue.entry(ticket);
            let turn = entry.turn.load(Acquire); // pairs with the store in `wake`
            if self.queue.turn() != ticket {
                futex::wait(&entry.turn, turn, LONGEST_SLEEP);
            }
        }
    }

    /// The rank that holds the lock, if any.
    pub fn holder(self) -> Option<u32> {
        self.queue.owner(self.queue.turn())
    }

    fn wake(&self, called: Option<(u32, u32)>) {
        if let Some((ticket, _)) = called {
            let entry = self.queue.entry(ticket);
            entry.turn.store(ticket, Release);
            futex::wake_all(&entry.turn);
        }
    }
}

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        self.lock.wake(self.lock.queue.call(self.ticket));
    }
}

/// About a microsecond: longer than an allocation takes, shorter than a sleep.
#[cfg(not(loom))]
const SPINS: u32 = 100;
#[cfg(loom)]
const SPINS: u32 = 0;
