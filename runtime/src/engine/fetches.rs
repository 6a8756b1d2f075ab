//! Operations of this rank whose answers bring data.

use std::sync::Arc;

use super::exposure::Keep;
use super::{Operation, Ticket};
use crate::error::Error;
use crate::memory::Span;
use crate::numbers::Numbers;
use crate::types::Compiled;

/// Where the answer to a get, or to what fetches as well, goes.
pub(crate) struct Fetch {
    /// Its elements here; none of an answer in one frame that goes to the run as it is.
    pub origin: Option<Arc<Compiled>>,
    pub count: u64,
    /// Where an answer in one frame goes as it is, and its bytes; none where it has to be unpacked.
    pub run: Option<(i64, u64)>,
    pub span: Span,
    pub keep: Keep,
    /// The bytes of the target's window, for errors.
    pub bytes: (i128, i128),
}

/// Those under way. Mostly there is one, which needs no table.
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

    /// Takes one out.
    #[inline]
    pub(super) fn remove(&mut self, operation: Operation) -> Option<Fetch> {
        match self.one.take_if(|(one, _)| *one == operation) {
            Some((_, fetch)) => Some(fetch),
            None if self.others.is_empty() => None,
            None => self.others.remove(&operation),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.one.is_none() && self.others.is_empty()
    }

    /// Lets go of some, which will never be done: their memory, and who waits for one of them alone.
    pub(super) fn give_up(
        &mut self,
        which: impl Fn(&Operation) -> bool,
        error: impl Fn() -> Error,
    ) {
        let tell = |fetch: &Fetch| {
            if let Keep::Waiter(ticket) = &fetch.keep {
                ticket.give_up(error());
            }
        };
        if let Some((_, fetch)) = self.one.take_if(|(one, _)| which(one)) {
            tell(&fetch);
        }
        self.others.retain(|operation, fetch| {
            let given_up = which(operation);
            if given_up {
                tell(fetch);
            }
            !given_up
        });
    }
}

impl Fetch {
    /// Who waits for it alone.
    pub(super) fn waiter(&self) -> Option<&Arc<Ticket>> {
        match &self.keep {
            Keep::Waiter(ticket) => Some(ticket),
            _ => None,
        }
    }
}
