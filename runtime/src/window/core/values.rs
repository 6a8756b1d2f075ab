//! The operations on one element, whose operands and result are values: fetch_and_op and
//! compare_and_swap of a scope.

use std::panic::Location;
use std::sync::Arc;

use shipable::Element;
use shipable::reduce::Op;

use super::Core;
use crate::engine::{Ticket, reach};
use crate::error::{Error, ErrorKind, Result, type_excerpt};
use crate::memory::{Keeper, Span, zeroed};
use crate::origin::What;
use crate::types::{ElementType, TargetType, Type};
use crate::window::attempt::{self, attempt};
use crate::window::call::{Action, Call};
use crate::window::lane::{Called, Coming, Lane, Value};
use crate::window::near::{self, Side, Sides};
use crate::window::operation::{Holders, Operation};
use crate::window::path::{self, Progress};
use crate::window::peers::Target;

/// An operation on one element, as it is called.
#[derive(Clone, Copy)]
struct OnValue<T> {
    action: Action,
    target: i32,
    at: i64,
    /// The value that the operation takes.
    operand: T,
    /// The value with which compare_and_swap compares.
    compare: T,
}

impl Core {
    /// A fetch_and_op.
    #[inline(always)]
    #[track_caller]
    pub(in crate::window) fn fetch_value<T: Element>(
        &self,
        operand: T,
        target: i32,
        at: i64,
        op: Op,
    ) -> Result<Value<T>> {
        let action = Action::FetchAndOp(op);
        self.on_value(OnValue { action, target, at, operand, compare: operand })
    }

    /// A compare_and_swap.
    #[inline(always)]
    #[track_caller]
    pub(in crate::window) fn swap_value<T: Element>(
        &self,
        new: T,
        compare: T,
        target: i32,
        at: i64,
    ) -> Result<Value<T>> {
        let (action, operand) = (Action::CompareAndSwap, new);
        self.on_value(OnValue { action, target, at, operand, compare })
    }

    #[inline(always)]
    #[track_caller]
    fn on_value<T: Element>(&self, on: OnValue<T>) -> Result<Value<T>> {
        match self.attempt_value(&on) {
            Some(old) => Ok(Value::Here(old)),
            None => self.rest_of_value(on),
        }
    }

    /// The [`attempt`] for values. Their type is known once the other rungs have looked it up.
    #[inline(always)]
    fn attempt_value<T: Element>(&self, on: &OnValue<T>) -> Option<T> {
        let own = self.parts.memo().value::<T>()?;
        let OnValue { action, target, at, operand, compare } = *on;
        let mut old = zeroed::<T>();
        let call = Call::new(action, target, at, (1, TargetType::Own(own)));
        let element = |place: *const T| Some(near::Value::new(place.cast_mut(), own));
        let (origin, result) = (element(&raw const operand), element(&raw mut old));
        let sides = Sides { origin, result, compare: element(&raw const compare) };
        attempt(&self.parts, call, sides)?;
        Some(old)
    }

    /// The other rungs.
    #[inline(never)]
    #[track_caller]
    fn rest_of_value<T: Element>(&self, on: OnValue<T>) -> Result<Value<T>> {
        let (parts, caller) = (&self.parts, Location::caller());
        let OnValue { action, target, at, operand, compare } = on;
        let to = parts.peers().get(target);
        if let Some(to) = to.filter(|to| attempt::awaits_lock(parts, to)) {
            if let Some(old) = attempt::locked(parts, to, || self.attempt_value(&on)) {
                return Ok(Value::Here(old));
            }
        }
        let place = |error: Error| self.failed(error, action.call(), Some(target), caller);
        parts.process().ready().map_err(place)?;
        let datatype = parts.process().elements().in_memory::<T>().map_err(place)?;
        parts.memo().keep_value::<T>(datatype);
        let lane = self.lane();
        let ticket = lane.ticket.clone();
        let room = ticket.room().span::<T>().ok_or_else(|| {
            // Rule 21: there is room for each predefined type.
            let (call, datatype) = (action.call(), type_excerpt(datatype.datatype()));
            place(ErrorKind::NotPredefined { call, datatype }.into())
        })?;
        let what = What::Slice { count: 1, element: ElementType::of::<T>() };
        let values = [operand, compare];
        let side =
            |at: usize| Span::with_slice(&values[at..at + 1], |span| Some(Side { what, span }));
        let compare = if action == Action::CompareAndSwap { side(1) } else { None };
        let sides = Sides { origin: side(0), result: Some(Side { what, span: room }), compare };
        let call = Call::new(action, target, at, (1, TargetType::Own(datatype)));
        let operation = Operation::new(call, sides);
        let progress = self.counted(&operation, caller, || {
            match to.and_then(|to| path::again(parts, to, &operation, Some(&ticket))) {
                Some(progress) => Ok(Some(self.begun(&operation, progress, caller))),
                None => {
                    let result = Keeper::owner(&ticket);
                    let holders = Holders { origin: Keeper::Lender, result };
                    self.issue(&operation, holders, Some(ticket), caller)
                }
            }
        })?;
        match (progress, to) {
            (Some(Progress::Started), Some(to)) => {
                let (epoch, peer) = (parts.epochs().state(), to.peer);
                let (call, bytes) = (action.call(), bytes_of(to, at, datatype));
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
}

/// The bytes of a target's window that one element of a type touches.
fn bytes_of(target: &Target, displacement: i64, datatype: &Type) -> Option<(i128, i128)> {
    let bounds = TargetType::Own(datatype).bounds_on(&target.architecture).ok()?;
    let reach = reach(target.measures, displacement, 1, &bounds, &target.architecture).ok()?;
    Some(reach.bytes)
}
