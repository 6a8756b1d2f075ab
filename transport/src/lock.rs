//! A fair lock in shared memory that survives the death of whoever holds it or waits for it.
//!
//! Waiters stand in a queue of places, and a place names who stands there, so that the death of anyone is seen by
//! whoever comes after. Every step is one compare and swap:
//!
//! 1. *Queue*: put (ticket, rank) into the place of the ticket at the tail. That commits; advancing the tail is
//!    anyone's work after it, so death between the two leaves no gap.
//! 2. *Wait* until the head is the own ticket. Sleeps last at most 100 ms; after each, a head whose owner is dead is
//!    passed over.
//! 3. *Release*: advance the head, and wake the one whose ticket it is now.
//!
//! What the lock guards must be in order at any moment, since its holder may die at any moment: changes are committed by
//! single words.

use crate::atomics::{AcqRel, Acquire, Le32, Le64, Release, full_barrier, spin};
use crate::futex::{self, LONGEST_SLEEP};

/// The lock's state: the ticket that holds it, and the next to be given. Equal where nobody holds it.
#[derive(Debug, Default)]
#[repr(C)]
pub struct LockHead {
    head: Le32,
    tail: Le32,
}

/// A place in the queue.
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

/// A lock over its words.
#[derive(Clone, Copy)]
pub struct FairLock<'a> {
    head: &'a LockHead,
    places: &'a [LockPlace],
}

/// Holds the lock until dropped.
pub struct Held<'a> {
    lock: FairLock<'a>,
    ticket: u32,
}

fn name(ticket: u32, rank: u32) -> u64 {
    u64::from(ticket) << 32 | u64::from(rank + 1)
}

impl<'a> FairLock<'a> {
    /// A lock over `head` and `places`: a power of two, and at least as many as there are ranks. At most one thread of
    /// each rank may wait at a time. Zeroed words are a free lock.
    pub fn new(head: &'a LockHead, places: &'a [LockPlace]) -> Self {
        debug_assert!(places.len().is_power_of_two());
        Self { head, places }
    }

    fn place(&self, ticket: u32) -> &'a LockPlace {
        &self.places[ticket as usize & (self.places.len() - 1)]
    }

    /// Waits for its turn and takes the lock for `rank`. `is_dead` says of a rank whether it will never run again.
    pub fn acquire(self, rank: u32, is_dead: impl Fn(u32) -> bool) -> Held<'a> {
        let ticket = self.queue(rank);
        let mut spins = 0;
        // Acquire pairs with the release in `call_next`: what the last holder wrote is seen.
        while self.head.head.load(Acquire) != ticket {
            if spins < SPINS {
                spins += 1;
                spin();
                continue;
            }
            self.pass_over(&is_dead);
            let place = self.place(ticket);
            let turn = place.turn.load(Acquire); // pairs with the store in `call_next`
            if self.head.head.load(Acquire) != ticket {
                futex::wait(&place.turn, turn, LONGEST_SLEEP);
            }
        }
        Held { lock: self, ticket }
    }

    /// Who holds the lock, if anyone.
    pub fn holder(self) -> Option<u32> {
        let ticket = self.head.head.load(Acquire);
        self.owner(ticket)
    }

    /// Whose ticket it is, if it was given.
    fn owner(&self, ticket: u32) -> Option<u32> {
        let name = self.place(ticket).name.load(Acquire);
        if (name >> 32) as u32 == ticket { (name as u32).checked_sub(1) } else { None }
    }

    /// Takes a ticket.
    fn queue(&self, rank: u32) -> u32 {
        loop {
            let ticket = self.head.tail.load(Acquire);
            let place = self.place(ticket);
            let seen = place.name.load(Acquire);
            let age = ticket.wrapping_sub((seen >> 32) as u32) as i32;
            if seen as u32 == 0 || age > 0 {
                // The place holds an older ticket, long served. AcqRel: the name is in place before the tail moves.
                if place.name.replace(seen, name(ticket, rank), AcqRel).is_err() {
                    continue;
                }
                let _ = self.head.tail.replace(ticket, ticket.wrapping_add(1), AcqRel);
                full_barrier(); // the name, before the look at the head; pairs with the one in `call_next`
                return ticket;
            }
            // Taken: its owner has not moved the tail yet, or (age < 0) others have gone on since we looked.
            let _ = self.head.tail.replace(ticket, ticket.wrapping_add(1), AcqRel);
        }
    }

    /// Passes over a head whose owner is dead.
    fn pass_over(&self, is_dead: &impl Fn(u32) -> bool) {
        let ticket = self.head.head.load(Acquire);
        if self.owner(ticket).is_some_and(is_dead) {
            self.call_next(ticket);
        }
    }

    /// Ends the turn of `ticket`, unless someone already did.
    fn call_next(&self, ticket: u32) {
        let next = ticket.wrapping_add(1);
        // Release pairs with the acquire in `acquire`.
        if self.head.head.replace(ticket, next, Release).is_err() {
            return;
        }
        full_barrier(); // the head, before the look at the next name; pairs with the one in `queue`
        if self.owner(next).is_some() {
            let place = self.place(next);
            place.turn.store(next, Release);
            futex::wake_all(&place.turn);
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.lock.call_next(self.ticket);
    }
}

/// About a microsecond: longer than an allocation takes, shorter than a sleep.
#[cfg(not(loom))]
const SPINS: u32 = 100;
#[cfg(loom)]
const SPINS: u32 = 0;
