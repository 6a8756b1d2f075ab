//! The operations by pointer. Each has two halves: an attempt, which is all in its caller's code,
//! and the rest of the call.
//!
//! A caller that has nothing left to do after the attempt but to make the rest of the call needs
//! no register for that (docs/tuning.md, "Attempts of calls by C").

use std::sync::Arc;

use shipable::reduce::Op;

use super::Core;
use crate::error::Result;
use crate::origin::What;
use crate::raw::{element, pointed};
use crate::types::{TargetType, Type};
use crate::window::operation::{Action, Operation, Side};
use crate::window::path::{fast, mailbox};

/// Elements in memory: where they start, how many there are, and of which type.
type Elements<'a> = (*mut u8, i64, &'a Type);

/// The origin of an accumulate. An atomic get ignores its own, which may be null (MPI-5.0 section
/// 12.3.4).
#[inline(always)]
fn operands<'a>(
    action: Action,
    origin: Elements<'a>,
    result: Option<Elements<'a>>,
) -> Elements<'a> {
    match result {
        Some(result) if action.is_atomic_get() => result,
        _ => origin,
    }
}

impl Core {
    /// Puts or gets elements by pointer; see [`Raw::put`](crate::Raw::put). The lender of the
    /// memory keeps it until the operation is done.
    #[inline(always)]
    #[track_caller]
    pub(in crate::window) fn transfer_pointed(
        &self,
        action: Action,
        origin: Elements<'_>,
        target: i32,
        at: i64,
        count: i64,
        target_type: TargetType<'_>,
    ) -> Result<()> {
        let is_done = match target_type {
            TargetType::Own(own) => self.try_transfer(action, origin, target, at, count, own),
            TargetType::Foreign(_) => false,
        };
        match is_done {
            true => Ok(()),
            false => self.transfer_typed(action, origin, (target, at, count, target_type)),
        }
    }

    /// As [`transfer_pointed`](Core::transfer_pointed), of elements of several types, or where the
    /// attempt has failed.
    #[inline(never)]
    #[track_caller]
    pub(in crate::window) fn transfer_typed(
        &self,
        action: Action,
        (place, elements, datatype): Elements<'_>,
        (target, at, count, target_type): (i32, i64, i64, TargetType<'_>),
    ) -> Result<()> {
        let (memory, what) = pointed(place, elements, datatype);
        if self.parts.observed().is_some() {
            return self.transfer_rest(action, memory, what, target, at, count, target_type);
        }
        if let TargetType::Own(own) = target_type {
            let parts = &self.parts;
            let asked =
                mailbox::transfer(parts, action, memory, what, None, target, at, count, own);
            if asked.is_some() {
                return Ok(());
            }
        }
        self.transfer_again(action, memory, what, target, at, count, target_type)
    }

    /// The attempt of [`transfer_pointed`](Core::transfer_pointed). Returns false if it has done
    /// nothing.
    #[inline(always)]
    pub(in crate::window) fn try_transfer(
        &self,
        action: Action,
        (place, elements, datatype): Elements<'_>,
        target: i32,
        at: i64,
        count: i64,
        own: &Type,
    ) -> bool {
        let is_same = elements == count && Arc::ptr_eq(datatype.compiled(), own.compiled());
        let parts = &self.parts;
        is_same && fast::transfer_places(parts, action, place, target, at, count, own).is_some()
    }

    /// Accumulates elements by pointers, and fetches the items that were there if there is a
    /// `result`; see [`Raw::accumulate`](crate::Raw::accumulate). The lender of both memories keeps
    /// them until the operation is done.
    #[allow(clippy::too_many_arguments)] // MPI's
    #[inline(always)]
    #[track_caller]
    pub(in crate::window) fn accumulate_pointed(
        &self,
        action: Action,
        origin: Elements<'_>,
        result: Option<Elements<'_>>,
        target: i32,
        at: i64,
        count: i64,
        target_type: TargetType<'_>,
    ) -> Result<()> {
        let is_done = match target_type {
            TargetType::Own(own) => {
                self.try_accumulate(action, origin, result, target, at, count, own)
            }
            TargetType::Foreign(_) => false,
        };
        match is_done {
            true => Ok(()),
            false => self.accumulate_rest(action, origin, result, (target, at, count, target_type)),
        }
    }

    /// The attempt of [`accumulate_pointed`](Core::accumulate_pointed). Returns false if it has
    /// done nothing.
    #[allow(clippy::too_many_arguments)] // MPI's
    #[inline(always)]
    pub(in crate::window) fn try_accumulate(
        &self,
        action: Action,
        origin: Elements<'_>,
        result: Option<Elements<'_>>,
        target: i32,
        at: i64,
        count: i64,
        own: &Type,
    ) -> bool {
        let origin = operands(action, origin, result);
        let is_same = |(_, elements, datatype): Elements<'_>| {
            elements == count && Arc::ptr_eq(datatype.compiled(), own.compiled())
        };
        if !is_same(origin) || !result.is_none_or(is_same) {
            return false;
        }
        let (parts, room) = (&self.parts, result.map(|(to, ..)| to));
        fast::accumulate_places(parts, action, origin.0, room, target, at, count, own).is_some()
    }

    /// As [`accumulate_pointed`](Core::accumulate_pointed), of elements of several types, or where
    /// the attempt has failed.
    #[inline(never)]
    #[track_caller]
    pub(in crate::window) fn accumulate_rest(
        &self,
        action: Action,
        origin: Elements<'_>,
        result: Option<Elements<'_>>,
        (target, at, count, target_type): (i32, i64, i64, TargetType<'_>),
    ) -> Result<()> {
        let (place, elements, datatype) = operands(action, origin, result);
        let origin = pointed(place, elements, datatype);
        let result = result.map(|(to, elements, datatype)| pointed(to, elements, datatype));
        self.accumulate(action, origin, result, target, at, count, target_type)
    }

    /// A fetch_and_op of one element by pointers. Their lender keeps both memories until the
    /// operation is done.
    #[inline(always)]
    #[track_caller]
    pub(in crate::window) fn fetch(
        &self,
        op: Op,
        operand: *mut u8,
        room: *mut u8,
        target: i32,
        at: i64,
        own: &Type,
    ) -> Result<()> {
        match self.try_fetch(op, operand, room, target, at, own) {
            true => Ok(()),
            false => self.fetch_rest(op, operand, room, target, at, own),
        }
    }

    /// The attempt of [`fetch`](Core::fetch). Returns false if it has done nothing.
    #[inline(always)]
    pub(in crate::window) fn try_fetch(
        &self,
        op: Op,
        operand: *mut u8,
        room: *mut u8,
        target: i32,
        at: i64,
        own: &Type,
    ) -> bool {
        let (parts, action, to) = (&self.parts, Action::FetchAndOp(op), Some(room));
        // An atomic get ignores its origin, which may be null (MPI-5.0 section 12.3.4).
        let from = if op == Op::NoOp { room } else { operand };
        fast::accumulate_places(parts, action, from, to, target, at, 1, own).is_some()
    }

    /// As [`fetch`](Core::fetch), where the attempt has failed.
    #[inline(never)]
    #[track_caller]
    pub(in crate::window) fn fetch_rest(
        &self,
        op: Op,
        operand: *mut u8,
        room: *mut u8,
        target: i32,
        at: i64,
        own: &Type,
    ) -> Result<()> {
        let operand = if op == Op::NoOp { room } else { operand };
        let [operand, room] = [operand, room].map(|place| element(place, own));
        let what = What::Typed { count: 1, datatype: own, at: 0, native: None };
        let place = (target, at, 1, TargetType::Own(own));
        let action = Action::FetchAndOp(op);
        self.accumulate_otherwise(action, (operand, what), Some((room, what)), place)
    }

    /// A compare_and_swap of one element by pointers: what the target's element is compared with,
    /// its new value, and room for its old one. Their lender keeps all memories until the operation
    /// is done.
    #[inline(always)]
    #[track_caller]
    pub(in crate::window) fn swap(
        &self,
        places: [*mut u8; 3],
        target: i32,
        at: i64,
        own: &Type,
    ) -> Result<()> {
        match self.try_swap(places, target, at, own) {
            true => Ok(()),
            false => self.swap_rest(places, target, at, own),
        }
    }

    /// The attempt of [`swap`](Core::swap). Returns false if it has done nothing.
    #[inline(always)]
    pub(in crate::window) fn try_swap(
        &self,
        places: [*mut u8; 3],
        target: i32,
        at: i64,
        own: &Type,
    ) -> bool {
        fast::swap_place(&self.parts, places, target, at, own).is_some()
    }

    /// As [`swap`](Core::swap), where the attempt has failed.
    #[inline(never)]
    #[track_caller]
    pub(in crate::window) fn swap_rest(
        &self,
        places: [*mut u8; 3],
        target: i32,
        at: i64,
        own: &Type,
    ) -> Result<()> {
        let parts = &self.parts;
        if let Some(to) = fast::unlocked(parts, target) {
            let again = move || fast::swap_place(parts, places, target, at, own);
            if fast::locked(parts, to, again).is_some() {
                return Ok(());
            }
        }
        let [compare, new, old] = places.map(|place| element(place, own));
        let what = What::Typed { count: 1, datatype: own, at: 0, native: None };
        let place = (target, at, 1, TargetType::Own(own));
        let (origin, result) = (Some(Side { what, span: new }), Some(Side { what, span: old }));
        let operation = Operation::new(Action::CompareAndSwap, place, origin, result);
        self.operate(Operation { compare: Some(compare), ..operation })
    }
}
