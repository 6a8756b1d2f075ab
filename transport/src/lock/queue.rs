//! The queue under the locks: tickets in the order in which they were asked for, and whose each is.
//!
//! Every step is one compare and swap:
//!
//! 1. *Queue*: put (ticket, rank) into the place of the ticket at the tail. That commits; advancing the tail is
//!    anyone's work after it, so death between the two leaves no gap.
//! 2. It is the *turn* of the ticket at the head. A head whose owner is dead is passed over by whoever waits behind it.
//! 3. *Call* the next one: advance the head, and wake the one whose ticket it is now.

use crate::atomics::{AcqRel, Acquire, Le32, Le64, Release, barrier_after_exchange};

/// A queue's state: the ticket whose turn it is, and the next to be given. Equal where nobody is in the queue.
#[derive(Debug, Default)]
#[repr(C)]
pub struct LockHead {
    pub(super) head: Le32,
    pub(super) tail: Le32,
}

/// A place in a queue, of which its name is part: ticket in the high half, owner + 1 in the low one.
pub(super) trait Place {
    fn name(&self) -> &Le64;
}

impl Place for Le64 {
    fn name(&self) -> &Le64 {
        self
    }
}

/// A queue over its words.
pub(super) struct Queue<'a, P> {
    head: &'a LockHead,
    places: &'a [P],
}

impl<P> Clone for Queue<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for Queue<'_, P> {}

fn name(ticket: u32, owner: u32) -> u64 {
    u64::from(ticket) << 32 | u64::from(owner + 1)
}

impl<'a, P: Place> Queue<'a, P> {
    /// A queue over `head` and `places`: a power of two, and at least as many as tickets may be out at a time. Zeroed words
    /// are an empty queue.
    #[inline]
    pub(super) fn new(head: &'a LockHead, places: &'a [P]) -> Self {
        debug_assert!(places.len().is_power_of_two());
        Self { head, places }
    }

    #[inline]
    pub(super) fn place(&self, ticket: u32) -> &'a P {
        &self.places[ticket as usize & (self.places.len() - 1)]
    }

    /// The ticket whose turn it is, if it was given. Acquire pairs with the release in `call`: what the last one wrote
    /// during its turn is seen.
    #[inline]
    pub(super) fn turn(&self) -> u32 {
        self.head.head.load(Acquire)
    }

    /// Whether nobody is in the queue.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        // The head first: it never passes the tail, so equal means empty at the time of the second load.
        let head = self.head.head.load(Acquire);
        head == self.head.tail.load(Acquire)
    }

    /// Whose ticket it is, if it was given.
    #[inline]
    pub(super) fn owner(&self, ticket: u32) -> Option<u32> {
        let name = self.place(ticket).name().load(Acquire);
        if (name >> 32) as u32 == ticket { (name as u32).checked_sub(1) } else { None }
    }

    /// Takes a ticket. A full barrier.
    #[inline]
    pub(super) fn enter(&self, owner: u32) -> u32 {
        loop {
            let ticket = self.head.tail.load(Acquire);
            let place = self.place(ticket);
            let seen = place.name().load(Acquire);
            let age = ticket.wrapping_sub((seen >> 32) as u32) as i32;
            if seen as u32 == 0 || age > 0 {
                // The place holds an older ticket, long served. AcqRel: the name is in place before the tail moves.
                if place.name().replace(seen, name(ticket, owner), AcqRel).is_err() {
                    continue;
                }
                let _ = self.head.tail.replace(ticket, ticket.wrapping_add(1), AcqRel);
                barrier_after_exchange(); // the name, before the look at the head; pairs with the one in `call`
                return ticket;
            }
            // Taken: its owner has not moved the tail yet, or (age < 0) others have gone on since we looked.
            let _ = self.head.tail.replace(ticket, ticket.wrapping_add(1), AcqRel);
        }
    }

    /// Ends the turn of `ticket`, and gives the ticket that was called with its owner; none where nobody waits, or where
    /// someone else ended that turn. A full barrier.
    #[inline]
    pub(super) fn call(&self, ticket: u32) -> Option<(u32, u32)> {
        let next = ticket.wrapping_add(1);
        // Release pairs with the acquire in `turn`.
        if self.head.head.replace(ticket, next, Release).is_err() {
            return None;
        }
        barrier_after_exchange(); // the head, before the look at the next name; pairs with the one in `enter`
        Some((next, self.owner(next)?))
    }

    /// Passes over a head whose owner is dead; gives who was called by it.
    pub(super) fn pass_over(&self, is_dead: impl Fn(u32) -> bool) -> Option<(u32, u32)> {
        let ticket = self.turn();
        if self.owner(ticket).is_some_and(is_dead) { self.call(ticket) } else { None }
    }
}
