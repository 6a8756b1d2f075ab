//! The ladder of an operation. Each rung makes the operation, or does nothing and leaves it to the
//! next, which can do more and takes longer:
//!
//! | rung | needs | then |
//! |---|---|---|
//! | [`attempt`] | the memo knows it as direct, its target is mapped, the epoch is open | bytes are copied or combined in the caller's code |
//! | [`mailbox::post`] | the memo knows it as a letter | the target answers at once |
//! | [`attempt::locked`] | lock_all has promised the target's lock | the lock is taken, and the attempt made again |
//! | [`path::again`] | the memo knows it | by the means that the memo has |
//! | [`check`], [`path::carry_out`] | nothing | all rules are checked; the memo learns the means |
//!
//! A window whose operations are observed or explained has the last two rungs only, within
//! [`Core::counted`]. With `LONGSHORE_FAST=off` all windows have the last one only.

use std::panic::Location;
use std::sync::Arc;

use super::Core;
use crate::check::Caller;
use crate::engine::Ticket;
use crate::error::Result;
use crate::job::Activity;
use crate::window::attempt::{self, attempt};
use crate::window::call::Call;
use crate::window::check::check;
use crate::window::claim;
use crate::window::explain::tell;
use crate::window::memo::Key;
use crate::window::near::{Near, Sides};
use crate::window::operation::{Holders, Operation};
use crate::window::path::{self, Progress, mailbox};

impl Core {
    /// Operates on a target's window.
    #[inline(always)]
    #[track_caller]
    pub(in crate::window) fn operate<'a, N: Near<'a>>(
        &'a self,
        call: Call<'a>,
        sides: Sides<N>,
    ) -> Result<()> {
        match self.attempt(call, sides) {
            true => Ok(()),
            // All of it is written to memory here, and only here.
            false => self.rest(&Operation::new(call, sides)),
        }
    }

    /// The first rung. Returns false if it has done nothing.
    #[inline(always)]
    pub(in crate::window) fn attempt<'a, N: Near<'a>>(
        &'a self,
        call: Call<'a>,
        sides: Sides<N>,
    ) -> bool {
        attempt(&self.parts, call, sides).is_some()
    }

    /// The other rungs.
    #[inline(never)]
    #[track_caller]
    pub(in crate::window) fn rest(&self, operation: &Operation<'_>) -> Result<()> {
        let (parts, caller) = (&self.parts, Location::caller());
        let Operation { call, sides, .. } = operation;
        let target = parts.peers().get(call.target);
        if let (None, Some(to)) = (parts.observed(), target) {
            if mailbox::post(parts, to, call, sides).is_some() {
                return Ok(());
            }
            let again = || attempt(parts, *call, *sides);
            if attempt::awaits_lock(parts, to) && attempt::locked(parts, to, again).is_some() {
                return Ok(());
            }
        }
        let issue = || match target.and_then(|to| path::again(parts, to, operation, None)) {
            Some(progress) => Ok(Some(self.begun(operation, progress, caller))),
            None => self.issue(operation, Holders::lenders(), None, caller),
        };
        self.counted(operation, caller, issue).map(drop)
    }

    /// Notes the program's line of an operation that is in flight.
    #[inline]
    pub(super) fn begun(
        &self,
        operation: &Operation<'_>,
        progress: Progress,
        caller: Caller,
    ) -> Progress {
        if !progress.is_done() {
            self.note_site(operation.call.target, caller);
        }
        progress
    }

    /// Issues an operation, and lets the observer count it if there is one. The program's line is
    /// an argument here and below, since closures don't pass it on.
    #[inline]
    pub(super) fn counted(
        &self,
        operation: &Operation<'_>,
        caller: Caller,
        issue: impl FnOnce() -> Result<Option<Progress>>,
    ) -> Result<Option<Progress>> {
        let observed = self.parts.observed();
        let begun = observed.map(|it| it.begin(&self.parts, &operation.call, caller));
        let progress = issue()?;
        if let (Some(observed), Some(begun)) = (observed, begun) {
            observed.end(&self.parts, &operation.call, begun, progress);
        }
        if let (Some(explained), Some(progress)) = (self.parts.explained(), progress) {
            tell(explained, &self.parts, &self.card.name(), operation, progress);
        }
        Ok(progress)
    }

    /// The last rung: an operation with all its checks, and a ticket if it is waited for by itself.
    /// `None` for PROC_NULL, on which there is nothing to do.
    pub(super) fn issue(
        &self,
        operation: &Operation<'_>,
        holders: Holders,
        ticket: Option<Arc<Ticket>>,
        caller: Caller,
    ) -> Result<Option<Progress>> {
        let (parts, rank) = (&self.parts, operation.call.target);
        let process = parts.process();
        self.called(caller);
        self.note(operation.call.action.activity(), rank);
        let mut bytes = None;
        let issue = || -> Result<Option<Progress>> {
            process.ready()?;
            let Some(target) = parts.peers().target(rank)? else {
                return parts.epochs().check_open().map(|()| None);
            };
            let permit = claim::allow(parts, target)?;
            let key = Key::of(process.names(), target, operation);
            let settled = key.as_ref().and_then(|key| parts.memo().settled(key));
            let checked = check(parts, permit, target, operation, holders, settled)?;
            bytes = Some(checked.bytes);
            let key = key.filter(|_| !checked.picks_members);
            path::carry_out(parts, checked, ticket, key).map(Some)
        };
        let outcome = issue();
        process.note(Activity::Computing, 0);
        if !matches!(outcome, Ok(None | Some(Progress::Done))) {
            self.note_site(rank, caller);
        }
        let place = || self.place(operation.name(), Some(rank), bytes);
        outcome.map_err(|error| self.raise(error.at(place), caller))
    }

    /// Issues an operation with a request: whether the ticket will be told that it is done.
    #[track_caller]
    pub(in crate::window) fn request(
        &self,
        operation: &Operation<'_>,
        holders: Holders,
        ticket: &Arc<Ticket>,
    ) -> Result<()> {
        let caller = Location::caller();
        let issue = || self.issue(operation, holders, Some(ticket.clone()), caller);
        match self.counted(operation, caller, issue)? {
            Some(Progress::Started | Progress::Accessed) => Ok(()),
            _ => {
                ticket.settle();
                Ok(())
            }
        }
    }
}
