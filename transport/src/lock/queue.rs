//! The queue under the locks: tickets in the order in which they were asked for, and whose each is.
//!
//! Every step is one compare and swap:
//!
//! 1. *Queue*: put (ticket, rank) into the first place, from the head's on, that holds an older ticket. The name is all
//!    that there is to it, so death leaves no gap.
//! 2. It is the *turn* of the ticket at the head. A head whose owner is dead is passed over by whoever waits behind it.
//! 3. *Call* the next one: advance the head, and wake the one whose ticket it is now.

use crate::atomics::{AcqRel, Acquire, Le32, Le64, Release, barrier_after_exchange};

/// A queue's state: the ticket whose turn it is, given or not.
#[derive(Debug, Default)]
#[repr(C)]
pub struct LockHead {
    head: Le32,
    zero: u32,
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

/// Whether a place's name is of a ticket before this one, or of none.
#[inline(always)]
fn is_older(name: u64, ticket: u32) -> bool {
    name as u32 == 0 || ticket.wrapping_sub((name >> 32) as u32) as i32 > 0
}

impl<'a, P: Place> Queue<'a, P> {
    /// A queue over `head` and `places`: a power of two, and at least as many as tickets may be out at a time. Zeroed words
    /// are an empty queue.
    #[inline(always)]
    pub(super) fn new(head: &'a LockHead, places: &'a [P]) -> Self {
        debug_assert!(places.len().is_power_of_two());
        Self { head, places }
    }

    #[inline(always)]
    pub(super) fn place(&self, ticket: u32) -> &'a P {
        &self.places[ticket as usize & (self.places.len() - 1)]
    }

    /// The ticket whose turn it is, if it was given. Acquire pairs with the release in `call`: what the last one wrote
    /// during its turn is seen.
    #[inline(always)]
    pub(super) fn turn(&self) -> u32 {
        self.head.head.load(Acquire)
    }

    /// Whether nobody is in the queue.
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        // A head moves on only once its ticket was given: where it isn't yet, it was the head still.
        let ticket = self.turn();
        let seen = self.place(ticket).name().load(Acquire);
        is_older(seen, ticket)
    }

    /// Whose ticket it is, if it was given.
    #[inline(always)]
    pub(super) fn owner(&self, ticket: u32) -> Option<u32> {
        let name = self.place(ticket).name().load(Acquire);
        if (name >> 32) as u32 == ticket { (name as u32).checked_sub(1) } else { None }
    }

    /// Takes a ticket. A full barrier.
    #[inline(always)]
    pub(super) fn enter(&self, owner: u32) -> u32 {
        let mut ticket = self.turn();
        loop {
            let name = self.place(ticket).name();
            let seen = name.load(Acquire);
            if !is_older(seen, ticket) {
                // Where the place has a newer one, others have gone on since we looked at the head.
                let given = (seen >> 32) as u32 == ticket;
                ticket = if given { ticket.wrapping_add(1) } else { self.turn() };
            } else if name.replace(seen, self::name(ticket, owner), AcqRel).is_ok() {
                // All tickets before this one were given. The place's last one was served long ago.
                barrier_after_exchange(); // the name, before the look at the head; pairs with the one in `call`
                return ticket;
            }
        }
    }

    /// Ends the turn of `ticket`, and gives the ticket that was called with its owner; none where nobody waits, or where
    /// someone else ended that turn. A full barrier.
    #[inline(always)]
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
