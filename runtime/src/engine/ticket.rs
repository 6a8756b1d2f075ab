//! Operations that somebody waits for one by one: request-based ones, and those that return a value.

use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Ledger, Operation};
use crate::error::Error;
use crate::memory::Room;
use crate::numbers::Numbers;

/// Whether an operation is done, and how it ended. Shared by the engine and whoever waits.
#[derive(Default)]
pub(crate) struct Ticket {
    done: AtomicBool,
    /// Whether anything went wrong: mostly nothing does, and a lock would cost what a look at the link does.
    failed: AtomicBool,
    failure: Mutex<Failure>,
    /// Who is told of a failure that nobody took, and of which target.
    heir: Option<(Arc<Ledger>, u32)>,
    /// Where an element comes to that it fetches.
    room: Room,
}

#[derive(Default)]
struct Failure {
    error: Option<Error>,
    /// Nobody asks for it any more.
    forsaken: bool,
}

impl Ticket {
    /// One of an operation on a rank of the job. If it fails and whoever holds this lets go of it unasked, the epoch's end tells.
    pub(crate) fn of_epoch(ledger: &Arc<Ledger>, target: Option<u32>) -> Ticket {
        let heir = target.map(|target| (ledger.clone(), target));
        let mut ticket = Ticket::default();
        ticket.heir = heir;
        ticket
    }

    /// Makes it another operation's; false where someone else has it still.
    pub(crate) fn renew(this: &Arc<Ticket>) -> bool {
        if Arc::strong_count(this) != 1 {
            return false;
        }
        // Pairs with the release of whoever let go of it last. Nobody can get it any more but from its only holder.
        fence(Ordering::Acquire);
        this.done.store(false, Ordering::Relaxed);
        if this.failed.load(Ordering::Relaxed) {
            this.failed.store(false, Ordering::Relaxed);
            *this.failure() = Failure::default();
        }
        true
    }

    /// Whether the operation is done: its memory is as it will be.
    #[inline]
    pub(crate) fn is_done(&self) -> bool {
        // Pairs with the release in `settle`.
        self.done.load(Ordering::Acquire)
    }

    /// What went wrong, once.
    pub(crate) fn take_failure(&self) -> Option<Error> {
        // Set before `done`, or by whoever let go of it.
        if self.failed.load(Ordering::Relaxed) { self.failure().error.take() } else { None }
    }

    /// Nobody asks any more how the operation ended; gives what went wrong until now.
    #[inline]
    pub(crate) fn forsake(&self) -> Option<Error> {
        if self.is_done() && !self.failed.load(Ordering::Relaxed) {
            return None;
        }
        self.forsake_failure()
    }

    #[cold]
    fn forsake_failure(&self) -> Option<Error> {
        let mut failure = self.failure();
        // To be forgotten by `renew`.
        self.failed.store(true, Ordering::Relaxed);
        failure.forsaken = true;
        failure.error.take()
    }

    fn failure(&self) -> MutexGuard<'_, Failure> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the element is that it fetched.
    pub(crate) fn room(&self) -> &Room {
        &self.room
    }

    /// What went wrong, unless something else did before; given back where nobody asks for it any more.
    fn fail(&self, error: Error) -> Option<Error> {
        let mut failure = self.failure();
        if failure.forsaken {
            return Some(error);
        }
        // What this rank found says more than the target's answer to it.
        failure.error.get_or_insert(error);
        self.failed.store(true, Ordering::Relaxed);
        None
    }

    /// The operation will never be done.
    pub(super) fn give_up(&self, error: Error) {
        self.failure().error = Some(error);
        self.failed.store(true, Ordering::Relaxed);
        self.settle();
    }

    /// The operation is done.
    pub(crate) fn settle(&self) {
        self.done.store(true, Ordering::Release);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let (Some((ledger, target)), Some(error)) = (&self.heir, self.take_failure()) {
            ledger.fail(*target, error);
        }
    }
}

/// The operations under way that somebody waits for.
#[derive(Default)]
pub(super) struct Tickets(Numbers<Operation, Arc<Ticket>>);

impl Tickets {
    pub(super) fn insert(&mut self, operation: Operation, ticket: Arc<Ticket>) {
        self.0.insert(operation, ticket);
    }

    /// Whether nobody waits for an operation by itself.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether somebody waits for an operation by itself.
    pub(super) fn contains(&self, operation: Operation) -> bool {
        self.0.contains_key(&operation)
    }

    /// An operation failed, which isn't done for that. The failure goes to who waits for it, else to the ledger.
    pub(super) fn fail(&self, operation: Operation, error: Error, ledger: &Ledger) {
        let left = match self.0.get(&operation) {
            Some(ticket) if Arc::strong_count(ticket) > 1 => ticket.fail(error),
            _ => Some(error),
        };
        if let Some(error) = left {
            ledger.fail(operation.target, error);
        }
    }

    /// An operation is done.
    pub(super) fn settle(&mut self, operation: Operation) {
        let ticket = if self.0.is_empty() { None } else { self.0.remove(&operation) };
        if let Some(ticket) = ticket {
            ticket.settle();
        }
    }

    /// Operations will never be done.
    pub(super) fn give_up(
        &mut self,
        which: impl Fn(&Operation) -> bool,
        error: impl Fn() -> Error,
    ) {
        self.0.retain(|operation, ticket| {
            let given_up = which(operation);
            if given_up {
                ticket.give_up(error());
            }
            !given_up
        });
    }
}
