//! The way of a fetched value from a target back to the call that waits for it.

use std::panic::Location;
use std::sync::Arc;

use shipable::Element;

use super::state::EpochState;
use crate::check::Caller;
use crate::engine::{Ledger, Ticket};
use crate::error::{Error, ErrorKind, Place, Result};
use crate::object::Card;
use crate::observe::At;
use crate::process::Process;

/// A fetched value, or the value to come.
pub(super) enum Value<T> {
    Here(T),
    Coming(Coming),
}

/// A value that is on its way into memory that the engine holds as well.
pub(super) struct Coming {
    lane: Arc<Lane>,
    call: Called,
}

/// The room for one fetched value, and the parts of its window that its waiter needs.
///
/// The window uses it for the next value when no waiter has it any more: most programs wait for
/// one value before they fetch another.
pub(super) struct Lane {
    pub process: Arc<Process>,
    pub window: u32,
    pub ledger: Arc<Ledger>,
    pub ticket: Arc<Ticket>,
    /// The window's card, whose error handler deals with errors.
    pub card: Arc<Card>,
}

/// The call that fetches a value.
pub(super) struct Called {
    pub call: &'static str,
    /// Its target's rank in the window.
    pub target: i32,
    /// Its target's rank in the job.
    pub peer: u32,
    pub bytes: Option<(i128, i128)>,
    pub epoch: EpochState,
    pub caller: Caller,
}

impl Coming {
    pub(super) fn new(lane: Arc<Lane>, call: Called) -> Coming {
        Coming { lane, call }
    }

    /// Whether the value is here. Makes progress.
    #[track_caller]
    pub(super) fn test(&self) -> Result<bool> {
        let caller = Location::caller();
        let Lane { process, ticket, .. } = &*self.lane;
        if ticket.is_done() {
            return Ok(true);
        }
        process.test(|_| ticket.is_done()).map_err(|error| self.failed(error, caller))
    }

    /// Waits for the value.
    #[inline]
    #[track_caller]
    pub(super) fn wait<T: Element>(self) -> Result<T> {
        let caller = Location::caller();
        let Lane { process, ticket, window, .. } = &*self.lane;
        let at = At { window: Some(*window), peer: Some(self.call.peer), ..At::of(caller) };
        let waited = ticket.wait(process, at);
        waited.map_err(|error| self.failed(error, caller))?;
        let value = ticket.room().span::<T>().and_then(|room| room.peek(0));
        value.ok_or_else(|| ErrorKind::WindowFreed.into())
    }

    /// Gives an error of the call its place, and the window's error handler the error.
    #[cold]
    fn failed(&self, error: Error, caller: Caller) -> Error {
        let Called { call, target, peer, bytes, epoch, caller: issued } = self.call;
        let Lane { process, window, card, .. } = &*self.lane;
        let place = || Place {
            call,
            rank: process.me().rank,
            target: Some(target),
            process: Some(peer),
            window: Some(*window),
            bytes,
            epoch: Some(epoch.to_string()),
            ..Place::default()
        };
        let mut error = error.at(place);
        error.locate(|_, _| Some(issued));
        card.raise(process, error.seen_at(caller, || card.name()))
    }
}

impl Drop for Coming {
    /// The window reports the failure of a value that nothing waited for.
    #[inline]
    fn drop(&mut self) {
        if let Some(error) = self.lane.ticket.forsake() {
            self.lane.ledger.fail(self.call.peer, error);
        }
    }
}
