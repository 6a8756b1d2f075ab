//! The queue under the locks: tickets in the order of their requests, each with its owner.
//!
//! Tickets are given out in order, and ticket `t` has entry `t` modulo the number of entries, `p`.
//! The entry's word names the ticket and its owner by one number, `4 t + owner + 1` modulo 2^32. An
//! owner is below `2 p`, and the tickets of an entry are `p` apart, so their names don't mix:
//!
//! ```text
//!           4 (t - p)              4 t                    4 (t + p)
//!     ----------+----------------------+----------------------+---------
//!               |-- owners of t - p    |-- owners of t        |-- owners of t + p
//!      free for t: ]4 t - 4 p, 4 t]     t is given: ]4 t, 4 t + 4 p[
//! ```
//!
//! A name repeats after 2^30 tickets, whatever `p` is. An entry has a name of every lap, since each
//! ticket is given before the head moves past it. So the only name that a new ticket may replace is
//! the one of the lap before. A rank that was stopped for long, with an old head, replaces no name
//! of a later lap. A new entry is zero, which is free for the first lap.
//!
//! Every step is one compare-and-swap:
//!
//! 1. *Enter*: starting at the head, write (ticket, owner) into the first entry that has the name
//!    of the lap before. This name is all of the queue's record of a waiter, so its death leaves no
//!    gap.
//! 2. *Turn*: the ticket at the head has its turn. If its owner is dead, a later waiter passes it
//!    over.
//! 3. *Call*: advance the head, and wake the owner of the ticket that is now at the head.

use crate::atomics::{AcqRel, Acquire, Le32, Release, barrier_after_exchange};
use crate::mapping::Shared;

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

/// An entry of a queue, with the name of its ticket and owner.
pub(super) trait QueueEntry {
    fn name(&self) -> &Le32;
}

impl QueueEntry for Le32 {
    #[inline]
    fn name(&self) -> &Le32 {
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

/// The place of a ticket in the queue.
#[derive(Clone, Copy)]
struct Place<'a> {
    word: &'a Le32,
    /// The names of the ticket are above this number. Those of the lap before are below it.
    base: u32,
    /// The numbers between the names of two laps.
    span: u32,
}

impl Place<'_> {
    /// The entry's name.
    #[inline]
    fn read(self) -> u32 {
        self.word.load(Acquire) // Pairs with the release in `enter`.
    }

    /// The name of the ticket with this owner.
    #[inline]
    fn name(self, owner: u32) -> u32 {
        self.base.wrapping_add(owner + 1)
    }

    /// Whether `name` is empty, or of the lap before.
    #[inline]
    fn is_free(self, name: u32) -> bool {
        self.base.wrapping_sub(name) < self.span
    }

    /// The ticket's owner, if `name` is the ticket's.
    #[inline]
    fn owner(self, name: u32) -> Option<u32> {
        let owner = name.wrapping_sub(self.base).wrapping_sub(1);
        (owner < self.span - 1).then_some(owner)
    }
}

impl<'a, E: QueueEntry> Queue<'a, E> {
    /// A queue over `head` and `entries`. Zeroed words are an empty queue.
    ///
    /// The length of `entries` is a power of two, at most 2^24, and at least the number of tickets
    /// that may be out at a time.
    #[inline]
    pub(super) fn new(head: &'a LockHead, entries: &'a [E]) -> Self {
        debug_assert!(entries.len().is_power_of_two());
        Self { head, entries }
    }

    #[inline]
    pub(super) fn entry(&self, ticket: u32) -> &'a E {
        &self.entries[ticket as usize & (self.entries.len() - 1)]
    }

    /// The place of `ticket`.
    #[inline]
    fn place(&self, ticket: u32) -> Place<'a> {
        let span = (self.entries.len() as u32) << 2;
        Place { word: self.entry(ticket).name(), base: ticket << 2, span }
    }

    /// The ticket whose turn it is, or the next ticket to be given. Acquire pairs with the release
    /// in `call`: the writes of the previous turn are seen.
    #[inline]
    pub(super) fn turn(&self) -> u32 {
        self.head.head.load(Acquire)
    }

    /// Whether the queue has no ticket out.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        // The head moves on only after its ticket was given. If this ticket isn't given yet, it was
        // still the head when its entry was read.
        let ticket = self.turn();
        let place = self.place(ticket);
        place.is_free(place.read())
    }

    /// The owner of `ticket`, if it was given.
    #[inline]
    pub(super) fn owner(&self, ticket: u32) -> Option<u32> {
        let place = self.place(ticket);
        place.owner(place.read())
    }

    /// Takes a ticket for `owner`, a number below twice the length of the entries. A full barrier.
    #[inline]
    pub(super) fn enter(&self, owner: u32) -> u32 {
        let mut ticket = self.turn();
        loop {
            let place = self.place(ticket);
            let seen = place.read();
            debug_assert!(owner < place.span / 2);
            if !place.is_free(seen) {
                // If the entry has a name of a later lap, others have advanced the head since it
                // was read.
                let given = place.owner(seen).is_some();
                ticket = if given { ticket.wrapping_add(1) } else { self.turn() };
            } else if place.word.replace(seen, place.name(owner), AcqRel).is_ok() {
                // All tickets before this one were given, and the ticket of the lap before was
                // served long ago.
                // Writes the name before reading the head; pairs with the one in `call`.
                barrier_after_exchange();
                return ticket;
            }
        }
    }

    /// Ends the turn of `ticket`, and returns the ticket that is called next, with its owner.
    /// Returns `None` if nobody waits, or if another rank has ended that turn. A full barrier.
    #[inline]
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const ENTRIES: u32 = 4;

    /// A queue whose next ticket is `head`, as earlier tickets left it.
    fn queue_at(head: u32, body: impl Fn(Queue<'_, Le32>)) {
        let (word, entries) = (LockHead::default(), <[Le32; ENTRIES as usize]>::default());
        let queue = Queue::new(&word, &entries);
        word.head.store(head, Release);
        for ticket in (0..ENTRIES).map(|back| head.wrapping_sub(ENTRIES).wrapping_add(back)) {
            let place = queue.place(ticket);
            place.word.store(place.name(2 * ENTRIES - 1), Release);
        }
        body(queue);
    }

    #[test]
    fn tickets_and_laps_wrap_around() {
        for head in [4, (1 << 30) - 5, 1 << 30, (3 << 30) + 1, u32::MAX - 5] {
            queue_at(head, |queue| {
                for first in (0..12).map(|lap| head.wrapping_add(lap * ENTRIES)) {
                    assert!(queue.is_empty() && queue.owner(first).is_none(), "{first}");
                    for (place, owner) in [0, 7, 5, 1].into_iter().enumerate() {
                        let ticket = queue.enter(owner);
                        assert_eq!(ticket, first.wrapping_add(place as u32));
                        assert_eq!(queue.owner(ticket), Some(owner));
                        assert!(!queue.is_empty());
                    }
                    assert_eq!(queue.call(first), Some((first.wrapping_add(1), 7)));
                    let next = [(); 3].map(|()| queue.pass_over(|_| true).map(|next| next.1));
                    assert_eq!(next, [Some(5), Some(1), None]);
                }
            });
        }
    }

    /// A rank that read the head, and was stopped for some laps, takes no ticket out of turn.
    #[test]
    fn only_a_name_of_the_lap_before_is_replaced() {
        let ticket = 5 * ENTRIES + 1;
        queue_at(ticket, |queue| {
            let place = queue.place(ticket);
            assert!(place.is_free(place.read()));
            let laps = (0..100).chain([1 << 20, 1 << 26, 1 << 27, (1 << 28) - 2]);
            for lap in laps {
                for owner in 0..2 * ENTRIES {
                    let later = queue.place(ticket.wrapping_add(lap * ENTRIES)).name(owner);
                    assert!(!place.is_free(later), "{lap} {owner}");
                }
            }
        });
    }
}
