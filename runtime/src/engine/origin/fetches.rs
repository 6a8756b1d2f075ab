//! Operations of this rank whose answers bring data: gets, and accumulates that fetch.

use std::sync::Arc;

use crate::engine::completion::Ticket;
use crate::engine::operation::Operation;
use crate::error::Error;
use crate::memory::Lease;
use crate::numbers::Numbers;
use crate::types::Compiled;

/// The memory that the answer to a fetching operation goes to.
pub(crate) struct Fetch {
    /// The type of the elements; `None` if the answer comes in one frame and `run` takes it as it
    /// is.
    pub origin: Option<Arc<Compiled>>,
    pub count: u64,
    /// The first byte and the length of the run that an answer in one frame is copied to; `None` if
    /// the answer has to be unpacked.
    pub run: Option<(i64, u64)>,
    pub lease: Lease,
    /// The ticket of the call that waits for this operation by itself, if one does.
    pub waiter: Option<Arc<Ticket>>,
    /// The bytes of the target's window, for errors.
    pub bytes: (i128, i128),
}

/// The fetching operations under way. Mostly there is one, which needs no table.
#[derive(Default)]
pub(super) struct Fetches {
    one: Option<(Operation, Fetch)>,
    others: Numbers<Operation, Fetch>,
}

impl Fetches {
    pub(super) fn insert(&mut self, operation: Operation, fetch: Fetch) {
        match &self.one {
            None => self.one = Some((operation, fetch)),
            Some(_) => _ = self.others.insert(operation, fetch),
        }
    }

    #[inline]
    pub(super) fn remove(&mut self, operation: Operation) -> Option<Fetch> {
        match self.one.take_if(|(one, _)| *one == operation) {
            Some((_, fetch)) => Some(fetch),
            None if self.others.is_empty() => None,
            None => self.others.remove(&operation),
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.one.is_none() && self.others.is_empty()
    }

    /// Gives up some operations: lets go of their memory, and ends with an error each call that
    /// waits for one of them.
    pub(super) fn give_up(
        &mut self,
        which: impl Fn(&Operation) -> bool,
        error: impl Fn() -> Error,
    ) {
        let end = |fetch: &Fetch| {
            if let Some(ticket) = &fetch.waiter {
                ticket.give_up(error());
            }
        };
        if let Some((_, fetch)) = self.one.take_if(|(one, _)| which(one)) {
            end(&fetch);
        }
        self.others.retain(|operation, fetch| {
            let given_up = which(operation);
            if given_up {
                end(fetch);
            }
            !given_up
        });
    }
}
