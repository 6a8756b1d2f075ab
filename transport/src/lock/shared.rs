//! A fair lock that one holds alone, or several share, in shared memory; it survives the death of any of them.
//!
//! Whoever wants it alone stands in a [queue](super::queue) and, in its turn, waits for those who share it to leave. Who
//! shares it says so by a bit of its own, so that holders have names too:
//!
//! 1. *Shared, nobody queues*: set the bit; a full barrier; if still nobody queues, that was all. Else take the bit back.
//! 2. *Shared, someone queues*: queue as well; in its turn set the bit, and call the next one.
//! 3. *Exclusive*: queue; the turn is there and no living rank's bit is set: held until the next one is called.
//!
//! A writer's name is in the queue before it looks at the bits, and a reader's bit is set before it looks at the queue, so
//! one of two sees the other. Nobody overtakes who queues, hence nobody starves.
//!
//! Nothing here sleeps or blocks: who has to wait polls, and each step tells whom to wake by it.

use super::queue::{LockHead, Queue};
use crate::atomics::{AcqRel, Acquire, Le64, barrier_after_exchange};
use crate::segment::Mapping;

/// How a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sharing {
    /// By several at a time.
    Shared,
    /// By one alone.
    Exclusive,
}

/// Who uses a lock: a number below the lock's size, and through whom it is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct User {
    /// Its number.
    pub number: u32,
    /// It doesn't touch the lock itself: the lock's keeper does so for it, and is the one to wake.
    pub served: bool,
}

/// A user's wish for the lock, from [`SharedLock::claim`] to [`SharedLock::release`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the lock stays taken until the claim is released"]
pub struct Claim {
    user: User,
    sharing: Sharing,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Queued(u32),
    /// With the ticket whose turn it is, where it isn't shared.
    Held(u32),
}

/// The lock over its words.
#[derive(Clone, Copy)]
pub struct SharedLock<'a> {
    queue: Queue<'a, Le64>,
    holders: &'a [Le64],
}

/// How many words a lock has, found once for many locks.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    places: u32,
    words: u32,
}

impl Shape {
    /// Of locks of so many users.
    pub fn of(users: u32) -> Shape {
        Shape { places: users.next_power_of_two(), words: users.div_ceil(64) }
    }
}

const SERVED: u32 = 1 << 31;

impl User {
    fn encode(self) -> u32 {
        self.number | if self.served { SERVED } else { 0 }
    }

    fn decode(word: u32) -> User {
        User { number: word & !SERVED, served: word & SERVED != 0 }
    }
}

impl Claim {
    /// Who made it.
    pub fn user(&self) -> User {
        self.user
    }

    /// How the lock is to be held.
    pub fn sharing(&self) -> Sharing {
        self.sharing
    }

    /// From here on the lock is wanted so, if it isn't held yet.
    pub fn want(&mut self, sharing: Sharing) {
        if let Stage::Queued(_) = self.stage {
            self.sharing = sharing;
        }
    }

    /// One that is held, with what [`ticket`](Claim::ticket) said of it.
    #[inline(always)]
    pub fn held(user: User, sharing: Sharing, ticket: u32) -> Claim {
        Claim { user, sharing, stage: Stage::Held(ticket) }
    }

    /// With which ticket it is held, if it is: all that its user needs to keep to [make it again](Claim::held).
    #[inline(always)]
    pub fn ticket(&self) -> Option<u32> {
        match self.stage {
            Stage::Held(ticket) => Some(ticket),
            Stage::Queued(_) => None,
        }
    }
}

impl<'a> SharedLock<'a> {
    /// Bytes of shared memory, zeroed at first, that a lock of `users` takes: a multiple of 64.
    #[inline]
    pub fn bytes(users: u32) -> u64 {
        64 + 8
            * (u64::from(users.div_ceil(64)) + u64::from(users.next_power_of_two()))
                .next_multiple_of(8)
    }

    /// The lock of this shape in the bytes that it takes from `offset` of `memory` on, a multiple of 8.
    ///
    /// # Panics
    /// If they aren't inside.
    #[inline(always)]
    pub fn new(memory: &'a Mapping, offset: u64, Shape { places, words }: Shape) -> Self {
        let holders = memory.slice(offset + 64, words as usize);
        let after = offset + 64 + 8 * u64::from(words);
        Self::over(memory.at(offset), memory.slice(after, places as usize), holders)
    }

    /// The lock over these words: a power of two places, at least one for each user, and a bit for each.
    #[inline(always)]
    pub fn over(head: &'a LockHead, places: &'a [Le64], holders: &'a [Le64]) -> Self {
        Self { queue: Queue::new(head, places), holders }
    }

    /// Asks for the lock. A user has one claim at a time. `wake` is told whom to wake.
    #[inline(always)]
    pub fn claim(&self, user: User, sharing: Sharing, wake: impl Fn(User)) -> Claim {
        if sharing == Sharing::Shared && self.queue.is_empty() {
            self.mark(user.number); // a full barrier
            if self.queue.is_empty() {
                return Claim { user, sharing, stage: Stage::Held(0) };
            }
            self.leave(user.number, &wake);
        }
        let stage = Stage::Queued(self.queue.enter(user.encode()));
        Claim { user, sharing, stage }
    }

    /// Whether the lock is held by now. Those for whom it waits and of whom `is_dead` says so are passed over.
    #[inline]
    pub fn poll(
        &self,
        claim: &mut Claim,
        is_dead: impl Fn(u32) -> bool,
        wake: impl Fn(User),
    ) -> bool {
        let Stage::Queued(ticket) = claim.stage else { return true };
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
        claim.stage = Stage::Held(ticket);
        true
    }

    /// Gives the lock back; a claim that isn't held yet must have come to its turn before.
    #[inline(always)]
    pub fn release(&self, claim: Claim, wake: impl Fn(User)) {
        match (claim.sharing, claim.stage) {
            (Sharing::Shared, Stage::Held(_)) => self.leave(claim.user.number, wake),
            (_, Stage::Queued(ticket) | Stage::Held(ticket)) => {
                wake_called(self.queue.call(ticket), wake);
            }
        }
    }

    /// Who has the lock or is next to get it, if anyone: one of those that share it, else who comes next in the queue. Those of
    /// whom `is_dead` says so don't count.
    pub fn holder(&self, is_dead: impl Fn(u32) -> bool) -> Option<u32> {
        let next = || Some(User::decode(self.queue.owner(self.queue.turn())?).number);
        self.sharers()
            .find(|sharer| !is_dead(*sharer))
            .or_else(|| next().filter(|next| !is_dead(*next)))
    }

    /// Whose bits are set.
    fn sharers(&self) -> impl Iterator<Item = u32> + 'a {
        self.holders.iter().zip((0..).step_by(64)).flat_map(|(word, base)| {
            let bits = word.load(Acquire);
            (0..64).filter(move |bit| bits >> bit & 1 != 0).map(move |bit| base + bit)
        })
    }

    /// Sets a user's bit. A full barrier: pairs with the one in `Queue::enter`.
    #[inline]
    fn mark(&self, user: u32) {
        self.holders[user as usize / 64].set_bits(1 << (user % 64), AcqRel);
        barrier_after_exchange();
    }

    /// Takes a user's bit back; who waits for that is woken.
    #[inline]
    fn leave(&self, user: u32, wake: impl Fn(User)) {
        // Release pairs with the acquire in `is_shared`: what was written under the lock is seen.
        self.holders[user as usize / 64].clear_bits(1 << (user % 64), AcqRel);
        barrier_after_exchange(); // the bit, before the look at the queue
        if let Some(waiting) = self.queue.owner(self.queue.turn()) {
            wake(User::decode(waiting));
        }
    }

    /// Whether a living user shares the lock. The bits of the dead are cleared.
    #[inline]
    fn is_shared(&self, is_dead: impl Fn(u32) -> bool) -> bool {
        let mut shared = false;
        for (word, base) in self.holders.iter().zip((0..).step_by(64)) {
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

fn wake_called(called: Option<(u32, u32)>, wake: impl Fn(User)) {
    if let Some((_, owner)) = called {
        wake(User::decode(owner));
    }
}
