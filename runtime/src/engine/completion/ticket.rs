//! Tickets: the completion of single operations, for calls that wait for one operation and not for
//! all of an epoch.
//!
//! Request-based operations have one, and operations that return a value.

use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Ledger;
use crate::engine::operation::Operation;
use crate::error::Error;
use crate::memory::Room;
use crate::numbers::Numbers;

/// Whether an operation is done, and its failure. The engine and the waiting call share it.
#[derive(Default)]
pub(crate) struct Ticket {
    done: AtomicBool,
    /// Whether there may be a failure, so that the usual case takes no lock.
    failed: AtomicBool,
    failure: Mutex<Failure>,
    /// The ledger, and its target, that takes over a failure which no call took.
    heir: Option<(Arc<Ledger>, u32)>,
    /// Room for an element that the operation fetches.
    room: Room,
}

#[derive(Default)]
struct Failure {
    error: Option<Error>,
    /// No call will ask for the failure any more.
    forsaken: bool,
}

impl Ticket {
    /// The ticket of an operation on `target`, a rank of the job. If the operation fails and the
    /// ticket is dropped before a call takes the failure, the end of the epoch reports it.
    pub(crate) fn of_epoch(ledger: &Arc<Ledger>, target: Option<u32>) -> Ticket {
        let heir = target.map(|target| (ledger.clone(), target));
        let mut ticket = Ticket::default();
        ticket.heir = heir;
        ticket
    }

    /// Resets a ticket for another operation; false, and nothing done, if there is another holder.
    pub(crate) fn renew(this: &Arc<Ticket>) -> bool {
        if Arc::strong_count(this) != 1 {
            return false;
        }
        // Pairs with the release in the drop of the last other reference. Only this holder can make
        // new references.
        fence(Ordering::Acquire);
        this.done.store(false, Ordering::Relaxed);
        if this.failed.load(Ordering::Relaxed) {
            this.failed.store(false, Ordering::Relaxed);
            *this.failure() = Failure::default();
        }
        true
    }

    /// Whether the operation is done: all bytes that it writes are written.
    #[inline]
    pub(crate) fn is_done(&self) -> bool {
        // Pairs with the release in `settle`.
        self.done.load(Ordering::Acquire)
    }

    /// Takes the operation's failure.
    pub(crate) fn take_failure(&self) -> Option<Error> {
        // `failed` is set before `done`, or by the thread that forsook the ticket.
        if self.failed.load(Ordering::Relaxed) { self.failure().error.take() } else { None }
    }

    /// Notes that no call will ask for a later failure. Returns the failure that is known by now.
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
        // So `renew` resets the failure.
        self.failed.store(true, Ordering::Relaxed);
        failure.forsaken = true;
        failure.error.take()
    }

    fn failure(&self) -> MutexGuard<'_, Failure> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The room for the element that the operation fetches.
    pub(crate) fn room(&self) -> &Room {
        &self.room
    }

    /// Stores a failure, unless an earlier one is stored. Returns the error if the ticket is
    /// forsaken.
    fn fail(&self, error: Error) -> Option<Error> {
        let mut failure = self.failure();
        if failure.forsaken {
            return Some(error);
        }
        // The first failure wins: an error found at this rank is more precise than the target's
        // answer.
        failure.error.get_or_insert(error);
        self.failed.store(true, Ordering::Relaxed);
        None
    }

    /// Ends the operation with an error: it will never be done.
    pub(in crate::engine) fn give_up(&self, error: Error) {
        self.failure().error = Some(error);
        self.failed.store(true, Ordering::Relaxed);
        self.settle();
    }

    /// Marks the operation as done.
    pub(crate) fn settle(&self) {
        // Pairs with the acquire in `is_done`.
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

/// The tickets of operations under way.
#[derive(Default)]
pub(in crate::engine) struct Tickets(Numbers<Operation, Arc<Ticket>>);

impl Tickets {
    pub(in crate::engine) fn insert(&mut self, operation: Operation, ticket: Arc<Ticket>) {
        self.0.insert(operation, ticket);
    }

    #[inline]
    pub(in crate::engine) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a call waits for this operation by itself.
    #[inline]
    pub(in crate::engine) fn contains(&self, operation: Operation) -> bool {
        self.0.contains_key(&operation)
    }

    /// Notes that an operation failed, which doesn't complete it. The failure goes to the call that
    /// waits for the operation, otherwise to the ledger.
    pub(in crate::engine) fn fail(&self, operation: Operation, error: Error, ledger: &Ledger) {
        let error = error.of_operation(operation.number);
        let unclaimed = match self.0.get(&operation) {
            Some(ticket) if Arc::strong_count(ticket) > 1 => ticket.fail(error),
            _ => Some(error),
        };
        if let Some(error) = unclaimed {
            ledger.fail(operation.target, error);
        }
    }

    /// Completes an operation, if it has a ticket.
    pub(in crate::engine) fn settle(&mut self, operation: Operation) {
        let ticket = if self.0.is_empty() { None } else { self.0.remove(&operation) };
        if let Some(ticket) = ticket {
            ticket.settle();
        }
    }

    /// Ends some operations with an error: they will never be done.
    pub(in crate::engine) fn give_up(
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
