//! The queue under the locks: tickets in the order of their requests, each with its owner.
//!
//! Every step is one compare-and-swap:
//!
//! 1. *Enter*: starting at the head, write (ticket, rank) into the first entry that holds an older
//!    ticket. This name is all of the queue's record of a waiter, so its death leaves no gap.
//! 2. *Turn*: the ticket at the head has its turn. If its owner is dead, a later waiter passes it
//!    over.
//! 3. *Call*: advance the head, and wake the owner of the ticket that is now at the head.

use crate::atomics::{AcqRel, Acquire, Le32, Le64, Release, barrier_after_exchange};
use crate::segment::Shared;

/// The state of a queue: the ticket whose turn it is, or the next ticket to be given.
#[derive(Debug, Default)]
#[repr(C)]
pub struct LockHead {
    head: Le32,
    zero: u32,
}

// SAFETY: repr(C), of words and padding.
#[allow(unsafe_code)]
unsafe impl Shared for LockHead {}

/// An entry of a queue. Its name holds a ticket in the high half and its owner + 1 in the low half.
pub(super) trait QueueEntry {
    fn name(&self) -> &Le64;
}

impl QueueEntry for Le64 {
    fn name(&self) -> &Le64 {
        self
    }
}

/// A queue over words in shared memory.
pub(super) struct Queue<'a, E> {
    head: &'a LockHead,
    entries: &'a [E],
}

impl<E> Clone for Queue<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for Queue<'_, E> {}

fn name(ticket: u32, owner: u32) -> u64 {
    u64::from(ticket) << 32 | u64::from(owner + 1)
}

/// Whether `name` is empty, or holds a ticket before this one.
#[inline(always)]
fn is_older(name: u64, ticket: u32) -> bool {
    name as u32 == 0 || ticket.wrapping_sub((name >> 32) as u32) as i32 > 0
}

impl<'a, E: QueueEntry> Queue<'a, E> {
    /// A queue over `head` and `entries`. Zeroed words are an empty queue.
    ///
    /// The length of `entries` is a power of two, and at least the number of tickets that
    /// may be out at a time.
    #[inline(always)]
    pub(super) fn new(head: &'a LockHead, entries: &'a [E]) -> Self {
        debug_assert!(entries.len().is_power_of_two());
        Self { head, entries }
    }

    #[inline(always)]
    pub(super) fn entry(&self, ticket: u32) -> &'a E {
        &self.entries[ticket as usize & (self.entries.len() - 1)]
    }

    /// The ticket whose turn it is, or the next ticket to be given. Acquire pairs with the release
    /// in `call`: the writes of the previous turn are seen.
    #[inline(always)]
    pub(super) fn turn(&self) -> u32 {
        self.head.head.load(Acquire)
    }

    /// Whether the queue has no ticket out.
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        // The head moves on only after its ticket was given. If this ticket isn't given yet, it was
        // still the head when its entry was read.
        let ticket = self.turn();
        let seen = self.entry(ticket).name().load(Acquire);
        is_older(seen, ticket)
    }

    /// The owner of `ticket`, if it was given.
    #[inline(always)]
    pub(super) fn owner(&self, ticket: u32) -> Option<u32> {
        let name = self.entry(ticket).name().load(Acquire);
        if (name >> 32) as u32 == ticket { (name as u32).checked_sub(1) } else { None }
    }

    /// Takes a ticket. A full barrier.
    #[inline(always)]
    pub(super) fn enter(&self, owner: u32) -> u32 {
        let mut ticket = self.turn();
        loop {
            let name = self.entry(ticket).name();
            let seen = name.load(Acquire);
            if !is_older(seen, ticket) {
                // If the entry holds a newer ticket, others have advanced the head since it was
                // read.
                let given = (seen >> 32) as u32 == ticket;
                ticket = if given { ticket.wrapping_add(1) } else { self.turn() };
            } else if name.replace(seen, self::name(ticket, owner), AcqRel).is_ok() {
                // All tickets before this one were given, and the older ticket of this entry was
                // served long ago.
                // Writes the name before reading the head; pairs with the one in `call`.
                barrier_after_exchange();
                return ticket;
            }
        }
    }

    /// Ends the turn of `ticket`, and returns the ticket that is called next, with its owner.
    /// Returns `None` if nobody waits, or if another rank has ended that turn. A full barrier.
    #[inline(always)]
    pub(super) fn call(&self, ticket: u32) -> Option<(u32, u32)> {
        let next = ticket.wrapping_add(1);
        // Release pairs with the acquire in `turn`.
        if self.head.head.replace(ticket, next, Release).is_err() {
            return None;
        }
        // Writes the head before reading the name; pairs with the one in `enter`.
        barrier_after_exchange();
        Some((next, self.owner(next)?))
    }

    /// Passes over the head if its owner is dead. Returns the ticket that is called by it, with its
    /// owner.
    pub(super) fn pass_over(&self, is_dead: impl Fn(u32) -> bool) -> Option<(u32, u32)> {
        let ticket = self.turn();
        if self.owner(ticket).is_some_and(is_dead) { self.call(ticket) } else { None }
    }
}
