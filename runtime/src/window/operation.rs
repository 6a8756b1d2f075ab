//! Operations as data: as they are called, and as they are once every rule holds for them.

use std::any::TypeId;
use std::sync::Arc;

use shipable::Leaf;
use shipable::reduce::Op;

use super::access::Permit;
use super::peers::Target;
use crate::job::Activity;
use crate::memory::{Keeper, Lease, Span};
use crate::origin::{Elementwise, What};
use crate::types::{Compiled, ElementType, TargetType};
use crate::wire::Kind;

/// The effect of an operation on the target's window. Its tag is a byte of its own, which is
/// quicker to match than a niche of [`Op`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Action {
    Put,
    Get,
    Accumulate(Op),
    GetAccumulate(Op),
    FetchAndOp(Op),
    CompareAndSwap,
}

impl Action {
    /// The kind of frame that asks for it.
    #[inline(always)]
    pub(super) fn kind(self) -> Kind {
        match self {
            Action::Put => Kind::Put,
            Action::Get => Kind::Get,
            Action::Accumulate(_) => Kind::Accumulate,
            Action::GetAccumulate(_) | Action::FetchAndOp(_) => Kind::Fetch,
            Action::CompareAndSwap => Kind::Swap,
        }
    }

    /// Its number among the kinds that are counted.
    #[inline]
    pub(super) fn number(self) -> u8 {
        match self {
            Action::Put => 0,
            Action::Get => 1,
            Action::Accumulate(_) => 2,
            Action::GetAccumulate(_) => 3,
            Action::FetchAndOp(_) => 4,
            Action::CompareAndSwap => 5,
        }
    }

    /// The operation of an accumulate, if it is one.
    #[inline(always)]
    pub(super) fn op(self) -> Option<Op> {
        match self {
            Action::Accumulate(op) | Action::GetAccumulate(op) | Action::FetchAndOp(op) => Some(op),
            Action::Put | Action::Get | Action::CompareAndSwap => None,
        }
    }

    /// Its number in a frame's tag.
    #[inline]
    pub(super) fn code(self) -> u8 {
        self.op().map_or(0, Op::wire)
    }

    /// Whether it is on one element of a predefined type.
    pub(super) fn is_single(self) -> bool {
        matches!(self, Action::FetchAndOp(_) | Action::CompareAndSwap)
    }

    /// Whether it changes nothing at the target and reads no operands: an atomic get.
    pub(super) fn is_atomic_get(self) -> bool {
        matches!(self, Action::GetAccumulate(Op::NoOp) | Action::FetchAndOp(Op::NoOp))
    }

    /// The activity that the watchdog reports.
    pub(super) fn activity(self) -> Activity {
        match self {
            Action::Put => Activity::Put,
            Action::Get => Activity::Get,
            _ => Activity::Accumulate,
        }
    }

    /// The name of the call.
    pub(super) fn call(self) -> &'static str {
        match self {
            Action::FetchAndOp(_) => "fetch_and_op",
            _ => self.kind().call(),
        }
    }

    /// The name of the call that notifies the target.
    pub(super) fn notify_call(self) -> &'static str {
        match self {
            Action::Put => "put_notify",
            Action::Get => "get_notify",
            Action::Accumulate(_) => "accumulate_notify",
            _ => "get_accumulate_notify",
        }
    }

    /// The name of the call that returns a request.
    pub(super) fn request_call(self) -> &'static str {
        match self {
            Action::Put => "rput",
            Action::Get => "rget",
            Action::Accumulate(_) => "raccumulate",
            _ => "rget_accumulate",
        }
    }
}

/// Elements in this rank's memory, as a call names them.
#[derive(Clone, Copy)]
pub(super) struct Side<'a> {
    pub what: What<'a>,
    pub span: Span,
}

/// An operation as it is called. Its memory is its lenders', who keep it until the operation is
/// done, unless [`Holders`] do.
#[derive(Clone, Copy)]
pub(super) struct Operation<'a> {
    /// The name of the call, for errors.
    pub call: &'static str,
    pub action: Action,
    pub target: i32,
    pub displacement: i64,
    pub count: i64,
    pub target_type: TargetType<'a>,
    /// The elements that it reads.
    pub origin: Option<Side<'a>>,
    /// The room for the elements that it fetches.
    pub result: Option<Side<'a>>,
    /// The element with which compare_and_swap compares, of the origin's type.
    pub compare: Option<Span>,
    /// The Rust type of an operation on one element whose operands are given by value.
    pub by_value: Option<TypeId>,
    /// The index of the counter that the operation raises at the target.
    pub notify: Option<i32>,
}

impl<'a> Operation<'a> {
    /// An operation at a place: the target, the displacement, and the count and type of the
    /// elements there.
    #[inline(always)]
    pub(super) fn new(
        action: Action,
        (target, displacement, count, target_type): (i32, i64, i64, TargetType<'a>),
        origin: Option<Side<'a>>,
        result: Option<Side<'a>>,
    ) -> Operation<'a> {
        let (call, compare, by_value, notify) = (action.call(), None, None, None);
        Operation {
            call,
            action,
            target,
            displacement,
            count,
            target_type,
            origin,
            result,
            compare,
            by_value,
            notify,
        }
    }

    /// The same operation, which raises a counter at the target.
    #[inline(always)]
    pub(super) fn notifying(self, index: i32) -> Operation<'a> {
        Operation { call: self.action.notify_call(), notify: Some(index), ..self }
    }

    /// The elements in this rank's memory that a put or get moves.
    #[inline(always)]
    pub(super) fn moved(&self) -> Option<&Side<'a>> {
        match self.action {
            Action::Get => self.result.as_ref(),
            _ => self.origin.as_ref(),
        }
    }

    /// The elements in this rank's memory that a put or get moves, or the operands. An atomic get
    /// ignores its operands, so these are the elements of its result.
    #[inline(always)]
    pub(super) fn near(&self) -> Option<&Side<'a>> {
        match self.action.is_atomic_get() {
            true => self.result.as_ref(),
            false => self.moved(),
        }
    }

    /// The same operation with a request.
    pub(super) fn requested(self) -> Operation<'a> {
        Operation { call: self.action.request_call(), ..self }
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

    /// Whether it is an accumulate without items.
    pub(super) fn is_empty(&self) -> bool {
        let accumulates = !matches!(self.action, Action::Put | Action::Get);
        accumulates && (self.leaf.is_none() || self.count == 0)
    }

    /// Whether lenders keep all of its memory.
    pub(super) fn is_lent(&self) -> bool {
        self.origin.iter().chain(&self.result).all(|side| side.keeper.is_lender())
    }
}
