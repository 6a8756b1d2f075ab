//! The operations of a window: each tries its paths, from the shortest to the one with all checks.

use std::any::TypeId;
use std::panic::Location;
use std::sync::Arc;

use shipable::Element;
use shipable::reduce::Op;

use super::Core;
use crate::check::Caller;
use crate::engine::{Ticket, reach};
use crate::error::{Error, ErrorKind, Result, type_excerpt};
use crate::job::Activity;
use crate::memory::{Keeper, Span, zeroed};
use crate::origin::What;
use crate::types::{ElementType, TargetType, Type};
use crate::window::check::check;
use crate::window::claim;
use crate::window::lane::{Called, Coming, Lane, Value};
use crate::window::memo::Key;
use crate::window::observed::Observed;
use crate::window::observing;
use crate::window::operation::{Action, Holders, Operation, Side};
use crate::window::path::{self, Progress, fast, mailbox};
use crate::window::peers::Target;

impl Core {
    /// Puts or gets; see [`Epoch::put`](crate::Epoch::put). The lender of `memory` keeps it until
    /// the operation is done.
    #[allow(clippy::too_many_arguments)] // MPI's
    #[inline(always)]
    #[track_caller]
    pub(in crate::window) fn transfer(
        &self,
        action: Action,
        memory: Span,
        what: What<'_>,
        target: i32,
        displacement: i64,
        count: i64,
        target_type: TargetType<'_>,
    ) -> Result<()> {
        let (parts, at) = (&self.parts, displacement);
        match fast::transfer(parts, action, memory, what, target, at, count, target_type) {
            Some(()) => Ok(()),
            None => self.transfer_rest(action, memory, what, target, at, count, target_type),
        }
    }

    /// A put or get that the inlined attempt doesn't do.
    #[allow(clippy::too_many_arguments)] // MPI's
    #[inline(always)]
    #[track_caller]
    pub(in crate::window) fn transfer_rest(
        &self,
        action: Action,
        memory: Span,
        what: What<'_>,
        target: i32,
        at: i64,
        count: i64,
        target_type: TargetType<'_>,
    ) -> Result<()> {
        let parts = &self.parts;
        if !observing::counts_copies(parts, target) {
            return self.transfer_otherwise(action, memory, what, target, at, count, target_type);
        }
        match observing::count_copy(parts, action, memory, &what, target, at, count, target_type) {
            true => Ok(()),
            false => self.transfer_observed(action, memory, what, target, at, count, target_type),
        }
    }

    /// As [`transfer_otherwise`](Core::transfer_otherwise), in a window that is observed.
    #[allow(clippy::too_many_arguments)] // MPI's
    #[inline(never)]
    #[track_caller]
    fn transfer_observed(
        &self,
        action: Action,
        span: Span,
        what: What<'_>,
        target: i32,
        at: i64,
        count: i64,
        target_type: TargetType<'_>,
    ) -> Result<()> {
        let parts = &self.parts;
        if let (Some(observed), TargetType::Own(own)) = (parts.observed(), target_type) {
            let caller = Location::caller();
            let copied = observed.copy(parts, action, span, what, target, at, count, own, caller);
            if copied.is_some() {
                return Ok(());
            }
        }
        self.transfer_otherwise(action, span, what, target, at, count, target_type)
    }

    /// A put or get that the first attempt doesn't do: by the target's mailbox, under a lock that
    /// is taken now, in parts, or by [`operate`](Core::operate).
    #[allow(clippy::too_many_arguments)] // MPI's
    #[inline(never)]
    #[track_caller]
    fn transfer_otherwise(
        &self,
        action: Action,
        span: Span,
        what: What<'_>,
        target: i32,
        at: i64,
        count: i64,
        target_type: TargetType<'_>,
    ) -> Result<()> {
        match self.parts.peers().known(target).is_some_and(|target| target.has_mailbox) {
            true => self.transfer_asked(action, span, what, target, at, count, target_type),
            false => self.transfer_again(action, span, what, target, at, count, target_type),
        }
    }

    /// As [`transfer_otherwise`](Core::transfer_otherwise), of a target with a mailbox.
    #[allow(clippy::too_many_arguments)] // MPI's
    #[inline(never)]
    #[track_caller]
    fn transfer_asked(
        &self,
        action: Action,
        span: Span,
        what: What<'_>,
        target: i32,
        at: i64,
        count: i64,
        target_type: TargetType<'_>,
    ) -> Result<()> {
        let parts = &self.parts;
        let asked = match (parts.observed(), target_type) {
            (None, TargetType::Own(own)) => {
                mailbox::transfer(parts, action, span, what, None, target, at, count, own)
            }
            (Some(observed), TargetType::Own(own)) => {
                observed.ask(parts, action, span, what, target, at, count, own)
            }
            (_, TargetType::Foreign(_)) => None,
        };
        match asked {
            Some(()) => Ok(()),
            None => self.transfer_again(action, span, what, target, at, count, target_type),
        }
    }

    #[allow(clippy::too_many_arguments)] // MPI's
    #[inline(always)]
    #[track_caller]
    pub(super) fn transfer_again(
        &self,
        action: Action,
        span: Span,
        what: What<'_>,
        target: i32,
        displacement: i64,
        count: i64,
        target_type: TargetType<'_>,
    ) -> Result<()> {
        let (parts, at) = (&self.parts, displacement);
        if let Some(to) = fast::unlocked(parts, target) {
            let again =
                move || fast::transfer(parts, action, span, what, target, at, count, target_type);
            if fast::locked(parts, to, again).is_some() {
                return Ok(());
            }
        }
        let side = Some(Side { what, span });
        let place = (target, displacement, count, target_type);
        // Two calls, so that the action is a constant in each.
        match action {
            Action::Get => self.operate(Operation::new(Action::Get, place, None, side)),
            _ => self.operate(Operation::new(Action::Put, place, side, None)),
        }
    }

    /// Accumulates, and fetches the items that were there if there is a `result`; see
    /// [`Epoch::accumulate`](crate::Epoch::accumulate). Lenders keep both memories until the
    /// operation is done.
    #[allow(clippy::too_many_arguments)] // MPI's
    #[inline(always)]
    #[track_caller]
    pub(in crate::window) fn accumulate(
        &self,
        action: Action,
        (memory, what): (Span, What<'_>),
        result: Option<(Span, What<'_>)>,
        target: i32,
        displacement: i64,
        count: i64,
        target_type: TargetType<'_>,
    ) -> Result<()> {
        // An atomic get ignores its origin, which may be null (MPI-5.0 section 12.3.4).
        let (memory, what) = match result {
            Some(result) if action.is_atomic_get() => result,
            _ => (memory, what),
        };
        let (parts, at) = (&self.parts, displacement);
        let done =
            fast::accumulate(parts, action, memory, what, &result, target, at, count, target_type);
        if done.is_some() {
            return Ok(());
        }
        let place = (target, displacement, count, target_type);
        self.accumulate_otherwise(action, (memory, what), result, place)
    }

    #[inline(never)]
    #[track_caller]
    pub(super) fn accumulate_otherwise(
        &self,
        action: Action,
        (memory, what): (Span, What<'_>),
        result: Option<(Span, What<'_>)>,
        place: (i32, i64, i64, TargetType<'_>),
    ) -> Result<()> {
        let (parts, (target, at, count, target_type)) = (&self.parts, place);
        if let (None, TargetType::Own(own)) = (parts.observed(), target_type) {
            let asked =
                mailbox::transfer(parts, action, memory, what, result, target, at, count, own);
            if asked.is_some() {
                return Ok(());
            }
        }
        if let Some(to) = fast::unlocked(parts, target) {
            let again = move || {
                let result = &result;
                fast::accumulate(
                    parts,
                    action,
                    memory,
                    what,
                    result,
                    target,
                    at,
                    count,
                    target_type,
                )
            };
            if fast::locked(parts, to, again).is_some() {
                return Ok(());
            }
        }
        let origin = Some(Side { what, span: memory });
        let result = result.map(|(span, what)| Side { what, span });
        self.operate(Operation::new(action, place, origin, result))
    }

    /// A fetch_and_op of one element, given by value.
    #[inline(always)]
    #[track_caller]
    pub(in crate::window) fn fetch_value<T: Element>(
        &self,
        operand: T,
        target: i32,
        displacement: i64,
        op: Op,
    ) -> Result<Value<T>> {
        match fast::fetch(&self.parts, &operand, target, displacement, op) {
            Some(old) => Ok(Value::Here(old)),
            None => {
                let again = move || fast::fetch(&self.parts, &operand, target, displacement, op);
                let action = Action::FetchAndOp(op);
                self.fetch_otherwise(action, &[operand], target, displacement, again)
            }
        }
    }

    /// A compare_and_swap of one element, given by value.
    #[inline(always)]
    #[track_caller]
    pub(in crate::window) fn swap_value<T: Element>(
        &self,
        new: T,
        compare: T,
        target: i32,
        displacement: i64,
    ) -> Result<Value<T>> {
        match fast::swap(&self.parts, &new, &compare, target, displacement) {
            Some(old) => Ok(Value::Here(old)),
            None => {
                let again = move || fast::swap(&self.parts, &new, &compare, target, displacement);
                let action = Action::CompareAndSwap;
                self.fetch_otherwise(action, &[new, compare], target, displacement, again)
            }
        }
    }

    /// An operation on one element whose operands are given by value, the new one first, when the
    /// attempt has failed. `again` is that attempt.
    #[inline(never)]
    #[track_caller]
    fn fetch_otherwise<T: Element>(
        &self,
        action: Action,
        operands: &[T],
        target: i32,
        displacement: i64,
        again: impl FnOnce() -> Option<T>,
    ) -> Result<Value<T>> {
        if let Some(to) = fast::unlocked(&self.parts, target) {
            if let Some(old) = fast::locked(&self.parts, to, again) {
                return Ok(Value::Here(old));
            }
        }
        let call = action.call();
        let process = self.parts.process();
        let caller = Location::caller();
        let place = |error: Error| self.failed(error, call, Some(target), caller);
        process.ready().map_err(place)?;
        let datatype = process.elements().in_memory::<T>().map_err(place)?;
        let lane = self.lane();
        let ticket = lane.ticket.clone();
        let room = ticket.room().span::<T>().ok_or_else(|| {
            // Rule 21: there is room for each predefined type.
            let datatype = type_excerpt(datatype.datatype());
            place(ErrorKind::NotPredefined { call, datatype }.into())
        })?;
        let what = What::Slice { count: 1, element: ElementType::of::<T>() };
        let operand = |at: usize| Span::with_slice(&operands[at..at + 1], |span| span);
        let compare = (operands.len() > 1).then(|| operand(1));
        let origin = Some(Side { what, span: operand(0) });
        let result = Some(Side { what, span: room });
        let at = (target, displacement, 1, TargetType::Own(&datatype));
        let by_value = Some(TypeId::of::<T>());
        let operation = Operation::new(action, at, origin, result);
        let operation = Operation { compare, by_value, ..operation };
        let progress = self.counted(&operation, caller, || {
            if let Some(progress) = path::again_value(&self.parts, &operation, &ticket) {
                if progress == Progress::Started {
                    self.note_site(target, caller);
                }
                return Ok(Some(progress));
            }
            let result = Keeper::owner(&ticket);
            let holders = Holders { origin: Keeper::Lender, result };
            self.issue(operation, holders, Some(ticket), caller)
        })?;
        match (progress, self.parts.peers().get(target)) {
            (Some(Progress::Started), Some(to)) => {
                let (epoch, peer) = (self.parts.epochs().state(), to.peer);
                let bytes = bytes_of(to, displacement, &datatype);
                let called = Called { call, target, peer, bytes, epoch, caller };
                Ok(Value::Coming(Coming::new(lane, called)))
            }
            (Some(Progress::Done | Progress::Answered), _) => {
                let old = room.peek(0).ok_or_else(|| place(ErrorKind::WindowFreed.into()))?;
                Ok(Value::Here(old))
            }
            // Nothing is fetched from PROC_NULL.
            _ => Ok(Value::Here(zeroed())),
        }
    }

    /// The lane of the next value.
    fn lane(&self) -> Arc<Lane> {
        let mut last = self.lane.borrow_mut();
        match &*last {
            // The ticket last: its renewal sees all that others did before they let go of either.
            Some(lane) if Arc::strong_count(lane) == 1 && Ticket::renew(&lane.ticket) => {
                lane.clone()
            }
            _ => {
                let lane = Lane {
                    process: self.parts.process().clone(),
                    window: self.parts.id(),
                    ledger: self.parts.flight().ledger().clone(),
                    ticket: Arc::default(),
                    card: self.card.clone(),
                };
                last.insert(Arc::new(lane)).clone()
            }
        }
    }

    /// An operation by the path that the memo knows, or by the path that its check finds.
    #[inline(always)]
    #[track_caller]
    pub(in crate::window) fn operate(&self, operation: Operation<'_>) -> Result<()> {
        let caller = Location::caller();
        let Some(observed) = self.parts.observed() else {
            return self.attempt(&operation, caller).map(drop);
        };
        match observed.untimed(&operation) {
            Some(bytes) => self.operate_untimed(observed, &operation, bytes, caller),
            None => self.operate_timed(&operation, caller),
        }
    }

    /// The program's line is an argument here and below, since closures don't pass it on.
    #[inline(always)]
    fn attempt(&self, operation: &Operation<'_>, caller: Caller) -> Result<Option<Progress>> {
        match path::again(&self.parts, operation, None) {
            Some(progress) if progress.is_done() => Ok(Some(progress)),
            Some(progress) => {
                self.note_site(operation.target, caller);
                Ok(Some(progress))
            }
            None => self.issue(*operation, Holders::lenders(), None, caller),
        }
    }

    /// An operation of these bytes that is only counted, after it. Inlined as the other attempt is:
    /// each caller knows which operands there are.
    #[inline(always)]
    fn operate_untimed(
        &self,
        observed: &Observed,
        operation: &Operation<'_>,
        bytes: u64,
        caller: Caller,
    ) -> Result<()> {
        let Some(progress) = path::again(&self.parts, operation, None) else {
            return self.issue_observed(operation, caller);
        };
        if !progress.is_done() {
            self.note_site(operation.target, caller);
        }
        observed.count_next(&self.parts, operation, bytes, progress);
        Ok(())
    }

    /// An operation whose time is taken.
    #[inline(never)]
    fn operate_timed(&self, operation: &Operation<'_>, caller: Caller) -> Result<()> {
        self.counted(operation, caller, || self.attempt(operation, caller)).map(drop)
    }

    /// An operation that the memo doesn't know, of a window whose operations are counted.
    #[inline(never)]
    fn issue_observed(&self, operation: &Operation<'_>, caller: Caller) -> Result<()> {
        let issue = || self.issue(*operation, Holders::lenders(), None, caller);
        self.counted(operation, caller, issue).map(drop)
    }

    /// Issues an operation, and lets the observer count it if there is one.
    #[inline(always)]
    fn counted(
        &self,
        operation: &Operation<'_>,
        caller: Caller,
        issue: impl FnOnce() -> Result<Option<Progress>>,
    ) -> Result<Option<Progress>> {
        let observed = self.parts.observed();
        let begun = observed.map(|it| it.begin(&self.parts, operation, caller));
        let progress = issue()?;
        if let (Some(observed), Some(begun)) = (observed, begun) {
            observed.end(&self.parts, operation, begun, progress);
        }
        Ok(progress)
    }

    /// An operation with all its checks, and a ticket if it is waited for by itself. `None` for
    /// PROC_NULL, on which there is nothing to do.
    fn issue(
        &self,
        operation: Operation<'_>,
        holders: Holders,
        ticket: Option<Arc<Ticket>>,
        caller: Caller,
    ) -> Result<Option<Progress>> {
        let (parts, call, rank) = (&self.parts, operation.call, operation.target);
        let process = parts.process();
        self.called(caller);
        self.note(operation.action.activity(), rank);
        let mut bytes = None;
        let issue = || -> Result<Option<Progress>> {
            process.ready()?;
            let Some(target) = parts.peers().target(rank)? else {
                return parts.epochs().check_open().map(|()| None);
            };
            let permit = claim::allow(parts, target)?;
            let key = Key::of(process.names(), target, &operation);
            let settled = key.as_ref().and_then(|key| parts.memo().settled(key, operation.action));
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
        outcome
            .map_err(|error| self.raise(error.at(|| self.place(call, Some(rank), bytes)), caller))
    }

    /// Issues an operation with a request: whether the ticket will be told that it is done.
    #[track_caller]
    pub(in crate::window) fn request(
        &self,
        operation: Operation<'_>,
        holders: Holders,
        ticket: &Arc<Ticket>,
    ) -> Result<()> {
        let caller = Location::caller();
        let issue = || self.issue(operation, holders, Some(ticket.clone()), caller);
        match self.counted(&operation, caller, issue)? {
            Some(Progress::Started | Progress::Accessed) => Ok(()),
            _ => {
                ticket.settle();
                Ok(())
            }
        }
    }
}

/// The bytes of a target's window that one element of a type touches.
fn bytes_of(target: &Target, displacement: i64, datatype: &Type) -> Option<(i128, i128)> {
    let bounds = TargetType::Own(datatype).bounds_on(&target.architecture).ok()?;
    let reach = reach(target.measures, displacement, 1, &bounds, &target.architecture).ok()?;
    Some(reach.bytes)
}
