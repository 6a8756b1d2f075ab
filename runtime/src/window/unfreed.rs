//! What a window tells its rank about itself for rule 30: every window is freed, and every epoch
//! ended, before `finalize`.

use std::sync::Arc;

use super::parts::Parts;
use super::state::EpochState;
use crate::check::Caller;
use crate::object::Card;
use crate::process::Process;
use crate::program::Line;

/// A window's entry among the windows of its rank. When it is dropped, the window has been freed or
/// dropped.
pub(super) struct Unfreed {
    process: Arc<Process>,
    window: u32,
    card: Arc<Card>,
}

impl Unfreed {
    pub(super) fn new(parts: &Parts, card: &Arc<Card>) -> Unfreed {
        Unfreed { process: parts.process().clone(), window: parts.id(), card: card.clone() }
    }

    /// Notes the access epoch or exposure that is open after a call. A fence epoch ends with the
    /// window.
    #[cold]
    pub(super) fn note_epochs(&self, parts: &Parts, caller: Caller) {
        let access = match parts.epochs().state() {
            state
            @ (EpochState::Started(_) | EpochState::Locks(_) | EpochState::LockAll { .. }) => {
                Some(state.to_string())
            }
            _ => None,
        };
        let exposure = parts.epochs().is_posted().then(|| "exposed by a post".to_owned());
        let open: Vec<_> = access.into_iter().chain(exposure).collect();
        let epoch = (!open.is_empty()).then(|| open.join(", "));
        self.process.windows().set_epoch(self.window, epoch, Line::of(caller));
    }
}

impl Drop for Unfreed {
    fn drop(&mut self) {
        self.process.windows().dropped(self.window, self.card.name());
    }
}
