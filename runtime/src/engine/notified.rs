//! Notified operations at their target: the counter that an operation names rises once the
//! operation is done there. One that is refused, or cut short, raises none.

use super::State;
use super::operation::Due;

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
