//! Fair locks in shared memory that survive the death of whoever holds them or waits for them.
//!
//! Waiters stand in a queue of places, and a place names who stands there, so that the death of anyone is seen by
//! whoever comes after. [`FairLock`] blocks, for a short time; [`SharedLock`] is polled, and may be held for long.
//! [`BriefLock`] has no queue, and costs a quarter.
//!
//! What a lock guards must be in order at any moment, since its holder may die at any moment: changes are committed by
//! single words.

mod brief;
mod queue;
mod shared;

use crate::atomics::{Acquire, Le32, Le64, Release, spin};
use crate::futex::{self, LONGEST_SLEEP};
use crate::segment::Mapping;
use queue::{Place, Queue};

pub use brief::{BriefLock, BriefWord, Briefly};
pub use queue::LockHead;
pub use shared::{Claim, Shape, SharedLock, Sharing, User};

/// A place in the queue of a [`FairLock`].
///
/// ```text
///    0 name: u64, ticket in the high half, rank + 1 in the low one    8 turn: u32, the last ticket that was called    12 zero
/// ```
#[derive(Debug, Default)]
#[repr(C)]
pub struct LockPlace {
    name: Le64,
    turn: Le32,
    zero: u32,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<LockHead>() == 8 && size_of::<LockPlace>() == 16);

impl Place for LockPlace {
    fn name(&self) -> &Le64 {
        &self.name
    }
}

/// A lock over its words.
#[derive(Clone, Copy)]
pub struct FairLock<'a> {
    queue: Queue<'a, LockPlace>,
}

/// Holds the lock until dropped.
pub struct Held<'a> {
    lock: FairLock<'a>,
    ticket: u32,
}

impl<'a> FairLock<'a> {
    /// A lock over `head` and `places`: a power of two, and at least as many as there are ranks. At most one thread of
    /// each rank may wait at a time. Zeroed words are a free lock.
    pub fn new(head: &'a LockHead, places: &'a [LockPlace]) -> Self {
        Self { queue: Queue::new(head, places) }
    }

    /// Bytes of shared memory, zeroed at first, that a lock of `ranks` takes: a multiple of 64.
    pub fn bytes(ranks: u32) -> u64 {
        64 + 16 * u64::from(ranks.next_power_of_two()).next_multiple_of(4)
    }

    /// The lock in the `bytes(ranks)` bytes that lie from `offset` of `memory` on, a multiple of 8.
    ///
    /// # Panics
    /// If they aren't inside.
    pub fn at(memory: &'a Mapping, offset: u64, ranks: u32) -> Self {
        let places = memory.slice(offset + 64, ranks.next_power_of_two() as usize);
        Self::new(memory.at(offset), places)
    }

    /// Waits for its turn and takes the lock for `rank`. `is_dead` says of a rank whether it will never run again.
    #[inline]
    pub fn acquire(self, rank: u32, is_dead: impl Fn(u32) -> bool) -> Held<'a> {
        let ticket = self.queue.enter(rank);
        if self.queue.turn() != ticket {
            self.wait(ticket, is_dead);
        }
        Held { lock: self, ticket }
    }

    /// Sleeps last at most 100 ms; after each, a head whose owner is dead is passed over.
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
            let place = self.queue.place(ticket);
            let turn = place.turn.load(Acquire); // pairs with the store in `wake`
            if self.queue.turn() != ticket {
                futex::wait(&place.turn, turn, LONGEST_SLEEP);
            }
        }
    }

    /// Who holds the lock, if anyone.
    pub fn holder(self) -> Option<u32> {
        self.queue.owner(self.queue.turn())
    }

    fn wake(&self, called: Option<(u32, u32)>) {
        if let Some((ticket, _)) = called {
            let place = self.queue.place(ticket);
            place.turn.store(ticket, Release);
            futex::wake_all(&place.turn);
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
