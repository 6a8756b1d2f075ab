//! Notified operations at their target: the counter that an operation names rises once the
//! operation is done there. One that is refused, or cut short, raises none.

use super::State;
use crate::wire::Header;

/// A notification that is due when an operation is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    pub window: u32,
    pub counter: u16,
    /// The origin, and its number of the operation.
    pub origin: u32,
    pub number: u64,
}

impl Due {
    /// The notification that a peer's operation asks for, if it does.
    #[inline]
    pub(super) fn of(peer: u32, header: &Header) -> Option<Due> {
        let counter = header.notify?;
        Some(Due { window: header.context, counter, origin: peer, number: header.operation })
    }
}

impl State {
    /// Gives the notification of an operation that is done here.
    #[inline]
    pub(super) fn notify(&mut self, due: Option<Due>) {
        if let Some(due) = due {
            self.notify_due(due);
        }
    }

    #[inline(never)]
    pub(super) fn notify_due(&mut self, due: Due) {
        // Before the counter rises: a call that reads it learns what the operation's origin did.
        self.notes.notified(due);
        self.target.exposures().notify(due.window, due.counter);
    }
}
