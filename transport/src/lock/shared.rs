//! A fair reader-writer lock in shared memory that survives the death of its users.
//!
//! A user that wants the lock exclusively enters a [queue](super::queue), waits for its turn, and
//! then waits until all readers have left. Each reader sets a bit of its own, so that readers can
//! be named too:
//!
//! 1. *Shared, the queue is empty*: set the bit; a full barrier; if the queue is still empty, the
//!    lock is held. Otherwise clear the bit and continue with step 2.
//! 2. *Shared, the queue is not empty*: enter the queue. In its turn, set the bit, and call the
//!    next user.
//! 3. *Exclusive*: enter the queue. In its turn, the lock is held once no living reader's bit is
//!    set. Release calls the next user.
//!
//! A writer enters the queue before it reads the bits, and a reader sets its bit before it reads
//! the queue, so one of the two sees the other. No user overtakes the queue, so no user starves.
//!
//! Nothing here sleeps or blocks. A waiter polls, and each step reports the user that it has to
//! wake.

use super::queue::{LockHead, Queue};
use crate::atomics::{AcqRel, Acquire, Le32, barrier_after_exchange};
use crate::mapping::Mapping;

/// How a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sharing {
    /// By several users at a time.
    Shared,
    /// By one user only.
    Exclusive,
}

/// A user of a lock: a number below the lock's size, and how the user reaches the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct User {
    /// The number of the user.
    pub number: u32,
    /// Whether the lock's keeper accesses the lock for this user. The keeper is then the one to
    /// wake.
    pub served: bool,
}

/// A user's request for the lock, from [`SharedLock::claim`] to [`SharedLock::release`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the lock stays taken until the claim is released"]
pub struct Claim {
    user: User,
    sharing: Sharing,
    state: ClaimState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClaimState {
    Queued(u32),
    /// The ticket in the queue. It counts only for an exclusive claim.
    Held(u32),
}

/// A reader-writer lock over words in shared memory.
#[derive(Clone, Copy)]
pub struct SharedLock<'a> {
    queue: Queue<'a, Le32>,
    holders: &'a [Le32],
}

/// The number of words in a lock, computed once for many locks.
#[derive(Clone, Copy, Debug)]
pub struct LockLayout {
    entries: u32,
    words: u32,
}

impl LockLayout {
    /// The layout of locks with `users` users.
    #[inline]
    pub fn of(users: u32) -> LockLayout {
        LockLayout { entries: users.next_power_of_two(), words: users.div_ceil(32) }
    }
}

impl User {
    /// The user's number in the queue: below twice the number of users.
    #[inline]
    fn encode(self) -> u32 {
        self.number << 1 | u32::from(self.served)
    }

    #[inline]
    fn decode(word: u32) -> User {
        User { number: word >> 1, served: word & 1 != 0 }
    }
}

impl Claim {
    /// The user that made the claim.
    #[inline]
    pub fn user(&self) -> User {
        self.user
    }

    /// How the lock is to be held.
    #[inline]
    pub fn sharing(&self) -> Sharing {
        self.sharing
    }

    /// Changes how the lock is to be held, unless it is held already.
    #[inline]
    pub fn want(&mut self, sharing: Sharing) {
        if let ClaimState::Queued(_) = self.state {
            self.sharing = sharing;
        }
    }

    /// A claim that is held, restored from the value of [`ticket`](Claim::ticket).
    #[inline]
    pub fn held(user: User, sharing: Sharing, ticket: u32) -> Claim {
        Claim { user, sharing, state: ClaimState::Held(ticket) }
    }

    /// The claim of a [request](SharedLock::request), with what that returned.
    #[inline]
    pub fn requested(user: User, sharing: Sharing, requested: Result<u32, u32>) -> Claim {
        let state = match requested {
            Ok(ticket) => ClaimState::Held(ticket),
            Err(ticket) => ClaimState::Queued(ticket),
        };
        Claim { user, sharing, state }
    }

    /// The ticket with which the lock is held, if it is held. [`Claim::held`] restores the claim
    /// from it.
    #[inline]
    pub fn ticket(&self) -> Option<u32> {
        match self.state {
            ClaimState::Held(ticket) => Some(ticket),
            ClaimState::Queued(_) => None,
        }
    }
}

impl<'a> SharedLock<'a> {
    /// Bytes of shared memory that a lock of `users` takes: a multiple of 64. They must start
    /// zeroed.
    #[inline]
    pub fn bytes(users: u32) -> u64 {
        64 + 4
            * (u64::from(users.div_ceil(32)) + u64::from(users.next_power_of_two()))
                .next_multiple_of(16)
    }

    /// The lock of this layout in `memory`, from `offset` on, which is a multiple of 8.
    ///
    /// # Panics
    /// If the lock isn't inside `memory`.
    #[inline]
    pub fn new(
        memory: &'a Mapping,
        offset: u64,
        LockLayout { entries, words }: LockLayout,
    ) -> Self {
        // One slice, since each is checked against the memory's end.
        let all = memory.slice(offset + 64, words as usize + entries as usize);
        let (holders, entries) = all.split_at(words as usize);
        Self::over(memory.at(offset), entries, holders)
    }

    /// The lock over these words. The length of `entries` is a power of two, and at least the
    /// number of users; `holders` has a bit for each user.
    #[inline]
    pub fn over(head: &'a LockHead, entries: &'a [Le32], holders: &'a [Le32]) -> Self {
        Self { queue: Queue::new(head, entries), holders }
    }

    /// Asks for the lock: the ticket with which it is held, if nobody else has it, and otherwise
    /// the ticket in the queue, as an error. [`Claim::requested`] makes the claim. A user has one
    /// claim at a time. `wake` is called with the user to wake.
    ///
    /// A ticket is one word. A claim has several, which would be written one by one and read as a
    /// whole, and the processor waits for that.
    #[inline(always)]
    pub fn request(&self, user: User, sharing: Sharing, wake: impl Fn(User)) -> Result<u32, u32> {
        if sharing == Sharing::Shared && self.queue.is_empty() {
            self.mark(user.number); // A full barrier.
            if self.queue.is_empty() {
                return Ok(0);
            }
            self.leave(user.number, &wake);
        }
        let ticket = self.queue.enter(user.encode());
        // Mostly nobody else has the lock, and its turn comes at once.
        let is_free = sharing == Sharing::Exclusive && self.queue.turn() == ticket;
        match is_free && self.holders.iter().all(|word| word.load(Acquire) == 0) {
            true => Ok(ticket),
            false => Err(ticket),
        }
    }

    /// Asks for the lock, as [`request`](SharedLock::request) does.
    #[inline(always)]
    pub fn claim(&self, user: User, sharing: Sharing, wake: impl Fn(User)) -> Claim {
        Claim::requested(user, sharing, self.request(user, sharing, wake))
    }

    /// Whether the lock is held now. Waiters and holders for which `is_dead` returns true are
    /// passed over.
    #[inline]
    pub fn poll(
        &self,
        claim: &mut Claim,
        is_dead: impl Fn(u32) -> bool,
        wake: impl Fn(User),
    ) -> bool {
        let ClaimState::Queued(ticket) = claim.state else { return true };
        if self.queue.turn() != ticket {
            let called = self.queue.pass_over(|owner| is_dead(User::decode(owner).number));
            wake_called(called, wake);
            return false;
        }
        match claim.sharing {
            Sharing::Shared => {
                self.mark(claim.user.number);
                wake_called(self.queue.call(ticket), wake);
            }
            Sharing::Exclusive if self.is_shared(is_dead) => return false,
            Sharing::Exclusive => {}
        }
        claim.state = ClaimState::Held(ticket);
        true
    }

    /// Releases the lock. A claim that isn't held yet must have come to its turn.
    #[inline(always)]
    pub fn release(&self, claim: Claim, wake: impl Fn(User)) {
        match (claim.sharing, claim.state) {
            (Sharing::Shared, ClaimState::Held(_)) => self.leave(claim.user.number, wake),
            (_, ClaimState::Queued(ticket) | ClaimState::Held(ticket)) => {
                wake_called(self.queue.call(ticket), wake);
            }
        }
    }

    /// The user that holds the lock or is next to get it, if any: a reader, or otherwise the head
    /// of the queue. Users for which `is_dead` returns true don't count.
    pub fn holder(&self, is_dead: impl Fn(u32) -> bool) -> Option<u32> {
        let next = || Some(User::decode(self.queue.owner(self.queue.turn())?).number);
        self.sharers()
            .find(|sharer| !is_dead(*sharer))
            .or_else(|| next().filter(|next| !is_dead(*next)))
    }

    /// The users whose bits are set.
    fn sharers(&self) -> impl Iterator<Item = u32> + 'a {
        self.holders.iter().zip((0..).step_by(32)).flat_map(|(word, base)| {
            let bits = word.load(Acquire);
            (0..32).filter(move |bit| bits >> bit & 1 != 0).map(move |bit| base + bit)
        })
    }

    /// Sets a user's bit. A full barrier: pairs with the one in `Queue::enter`.
    #[inline]
    fn mark(&self, user: u32) {
        self.holders[user as usize / 32].set_bits(1 << (user % 32), AcqRel);
        barrier_after_exchange();
    }

    /// Clears a user's bit, and wakes the user at the head of the queue, which may wait for that.
    #[inline]
    fn leave(&self, user: u32, wake: impl Fn(User)) {
        // Release pairs with the acquire in `is_shared`: what was written under the lock is seen.
        self.holders[user as usize / 32].clear_bits(1 << (user % 32), AcqRel);
        barrier_after_exchange(); // Clears the bit before reading the queue.
        if let Some(waiting) = self.queue.owner(self.queue.turn()) {
            wake(User::decode(waiting));
        }
    }

    /// Whether a living user shares the lock. Clears the bits of dead users.
    #[inline]
    fn is_shared(&self, is_dead: impl Fn(u32) -> bool) -> bool {
        let mut shared = false;
        for (word, base) in self.holders.iter().zip((0..).step_by(32)) {
            let mut bits = word.load(Acquire);
            while bits != 0 {
                let bit = bits.trailing_zeros();
                bits &= bits - 1;
                match is_dead(base + bit) {
                    true => word.clear_bits(1 << bit, AcqRel),
                    false => shared = true,
                }
            }
        }
        shared
    }
}

#[inline]
fn wake_called(called: Option<(u32, u32)>, wake: impl Fn(User)) {
    if let Some((_, owner)) = called {
        wake(User::decode(owner));
    }
}
