//! Operations as data: as they are called, and as they are once every rule holds for them.

use std::sync::Arc;

use shipable::Leaf;

use super::access::Permit;
use super::call::{Action, Call};
use super::near::{Near, Side, Sides};
use super::peers::Target;
use crate::memory::{Keeper, Lease, Span};
use crate::origin::Elementwise;
use crate::types::{Compiled, ElementType, TargetType};

/// An operation as it is called.
#[derive(Clone, Copy)]
pub(super) struct Operation<'a> {
    pub call: Call<'a>,
    /// This rank's memory. It is its lenders', who keep it until the operation is done, unless
    /// [`Holders`] do.
    pub sides: Sides<Side<'a>>,
    /// Whether it has a request.
    pub is_requested: bool,
}

impl<'a> Operation<'a> {
    #[inline(always)]
    pub(super) fn new<N: Near<'a>>(call: Call<'a>, sides: Sides<N>) -> Operation<'a> {
        let Call { action, target, at, count, target_type, notify } = call;
        // Field by field, so that nobody needs the address of the call that is given.
        let call = Call { action, target, at, count, target_type, notify };
        Operation { call, sides: sides.map(N::side), is_requested: false }
    }

    /// The name of the call, for errors.
    pub(super) fn name(&self) -> &'static str {
        match self.is_requested {
            true => self.call.action.request_call(),
            false => self.call.name(),
        }
    }

    /// The elements in this rank's memory that a put or get moves.
    #[inline]
    pub(super) fn moved(&self) -> Option<&Side<'a>> {
        match self.call.action {
            Action::Get => self.sides.result.as_ref(),
            _ => self.sides.origin.as_ref(),
        }
    }

    /// The elements in this rank's memory that a put or get moves, or the operands. An atomic get
    /// ignores its operands, so these are the elements of its result.
    #[inline]
    pub(super) fn near(&self) -> Option<&Side<'a>> {
        match self.call.action.is_atomic_get() {
            true => self.sides.result.as_ref(),
            false => self.moved(),
        }
    }

    /// The same operation with a request.
    pub(super) fn requested(self) -> Operation<'a> {
        Operation { is_requested: true, ..self }
    }
}

/// What keeps the memory of an operation that outlives its call.
pub(super) struct Holders {
    pub origin: Keeper,
    pub result: Keeper,
}

impl Holders {
    /// Lenders keep all memory until the operation is done.
    pub(super) fn lenders() -> Holders {
        Holders { origin: Keeper::Lender, result: Keeper::Lender }
    }
}

/// Elements in this rank's memory, checked, with what keeps their memory alive.
pub(super) struct Operand {
    pub elements: Elementwise,
    pub keeper: Keeper,
}

impl Operand {
    /// The type and number of the elements, and their memory.
    pub(super) fn into_parts(self) -> (Arc<Compiled>, u64, Lease) {
        let Elementwise { datatype, count, span } = self.elements;
        (datatype, count, Lease::new(span, self.keeper))
    }
}

/// An operation for which every rule holds.
pub(super) struct Checked<'a> {
    pub action: Action,
    pub target: &'a Target,
    pub permit: Permit<'a>,
    pub displacement: i64,
    pub count: u64,
    pub target_type: TargetType<'a>,
    /// Bytes from the window's start to the operation's displacement 0.
    pub base: i64,
    /// The bytes of the target's window that it touches.
    pub bytes: (i128, i128),
    pub origin: Option<Operand>,
    pub result: Option<Operand>,
    pub compare: Option<Span>,
    /// The predefined type of the items of an accumulate; `None` if there are no items.
    pub leaf: Option<Leaf>,
    /// The Rust type of the elements that a put or get moves, if they are all of a slice.
    pub slice: Option<ElementType>,
    /// Whether a put or get moves members of elements with padding. Such a type is valid only for a
    /// certain length of memory.
    pub picks_members: bool,
    /// The counter that rises at the target when the operation is done there.
    pub notify: Option<u16>,
}

impl<'a> Checked<'a> {
    /// The notification of an operation that moves no data: a put of no elements.
    pub(super) fn bare(self) -> Checked<'a> {
        Checked { action: Action::Put, count: 0, origin: None, result: None, ..self }
    }

    /// The elements in this rank's memory that a put or get moves.
    pub(super) fn near(&self) -> Option<&Operand> {
        if self.action == Action::Get { self.result.as_ref() } else { self.origin.as_ref() }
    }

    /// Whether all of its data have the same bytes here and at the target, and lie there as in the
    /// target type's own program: nothing is converted.
    pub(super) fn is_copied(&self) -> bool {
        if self.target.alike {
            return true;
        }
        let there = &self.target.architecture;
        let is_equal = match self.target_type {
            TargetType::Own(own) => own.compiled().is_equal_on(there),
            // The target built it, and its form says where its items lie there.
            TargetType::Foreign(_) => true,
        };
        // The operands may be others than the target's elements, and those of a slice have the
        // machine's representation.
        let mut near = self.origin.iter().chain(&self.result);
        is_equal && near.all(|side| side.elements.datatype.has_same_items(there))
    }

    /// Whether it is an accumulate without items.
    pub(super) fn is_empty(&self) -> bool {
        let accumulates = !self.action.moves();
        accumulates && (self.leaf.is_none() || self.count == 0)
    }

    /// Whether lenders keep all of its memory.
    pub(super) fn is_lent(&self) -> bool {
        self.origin.iter().chain(&self.result).all(|side| side.keeper.is_lender())
    }
}
