//! Operations as data: as they are called, and as they are once every rule holds for them.

use std::any::TypeId;

use shipable::Leaf;
use shipable::reduce::Op;

use super::access::Permit;
use super::peers::Target;
use crate::engine::Keep;
use crate::job::Activity;
use crate::memory::Span;
use crate::origin::{Elementwise, What};
use crate::types::{ElementType, TargetType};
use crate::wire::Kind;

/// What an operation does to the target's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// Memory of this rank that an operation uses: a span, and what keeps its memory alive.
pub(super) struct Lease {
    span: Span,
    keep: Keep,
}

impl Lease {
    pub(super) fn new(span: Span, keep: Keep) -> Lease {
        Lease { span, keep }
    }

    /// Memory whose lender keeps it until the operation is done.
    #[inline]
    pub(super) fn lent(span: Span) -> Lease {
        Lease { span, keep: Keep::Lender }
    }

    #[inline]
    pub(super) fn span(&self) -> Span {
        self.span
    }

    pub(super) fn into_keep(self) -> Keep {
        self.keep
    }

    /// Whether its lender keeps it.
    pub(super) fn is_lent(&self) -> bool {
        matches!(self.keep, Keep::Lender)
    }
}

/// Elements in this rank's memory, as a call names them.
pub(super) struct Operand<'a> {
    pub what: What<'a>,
    pub lease: Lease,
}

impl<'a> Operand<'a> {
    /// Elements of memory that its lender keeps until the operation is done.
    #[inline]
    pub(super) fn lent(span: Span, what: What<'a>) -> Operand<'a> {
        Operand { what, lease: Lease::lent(span) }
    }
}

/// An operation as it is called.
pub(super) struct Operation<'a> {
    /// The name of the call, for errors.
    pub call: &'static str,
    pub action: Action,
    pub target: i32,
    pub displacement: i64,
    pub count: i64,
    pub target_type: TargetType<'a>,
    /// The elements that it reads.
    pub origin: Option<Operand<'a>>,
    /// The room for the elements that it fetches.
    pub result: Option<Operand<'a>>,
    /// The element with which compare_and_swap compares, of the origin's type.
    pub compare: Option<Span>,
    /// The Rust type of an operation on one element whose operands are given by value.
    pub by_value: Option<TypeId>,
}

impl<'a> Operation<'a> {
    /// An operation at a place: the target, the displacement, and the count and type of the
    /// elements there.
    #[inline]
    pub(super) fn new(
        action: Action,
        (target, displacement, count, target_type): (i32, i64, i64, TargetType<'a>),
        origin: Option<Operand<'a>>,
        result: Option<Operand<'a>>,
    ) -> Operation<'a> {
        let (call, compare, by_value) = (action.call(), None, None);
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
        }
    }

    /// The same operation with a request.
    pub(super) fn requested(self) -> Operation<'a> {
        Operation { call: self.action.request_call(), ..self }
    }
}

/// Elements in this rank's memory, checked.
pub(super) struct Elements {
    pub elements: Elementwise,
    pub lease: Lease,
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
    pub origin: Option<Elements>,
    pub result: Option<Elements>,
    pub compare: Option<Span>,
    /// The predefined type of the items of an accumulate; `None` if there are no items.
    pub leaf: Option<Leaf>,
    /// The Rust type of the elements that a put or get moves, if they are all of a slice.
    pub slice: Option<ElementType>,
    /// Whether a put or get moves members of elements with padding. Such a type is valid only for a
    /// certain length of memory.
    pub picks_members: bool,
}

impl Checked<'_> {
    /// The elements in this rank's memory that a put or get moves.
    pub(super) fn near(&self) -> Option<&Elements> {
        if self.action == Action::Get { self.result.as_ref() } else { self.origin.as_ref() }
    }

    /// Whether it is an accumulate without items.
    pub(super) fn is_empty(&self) -> bool {
        let accumulates = !matches!(self.action, Action::Put | Action::Get);
        accumulates && (self.leaf.is_none() || self.count == 0)
    }

    /// Whether lenders keep all of its memory.
    pub(super) fn is_lent(&self) -> bool {
        self.origin.iter().chain(&self.result).all(|side| side.lease.is_lent())
    }
}
