//! A call that operates on a target's window, as a value.

use shipable::reduce::Op;

use crate::job::Activity;
use crate::types::{TargetType, Type};
use crate::wire::Kind;

/// All that a call asks of its target. This rank's memory is [`Sides`](super::near::Sides).
#[derive(Clone, Copy)]
pub(super) struct Call<'t> {
    pub action: Action,
    pub target: i32,
    /// The displacement, in the target's units.
    pub at: i64,
    /// The number of elements at the target.
    pub count: i64,
    pub target_type: TargetType<'t>,
    /// The index of the counter that rises at the target when the operation is done there.
    pub notify: Option<i32>,
}

impl<'t> Call<'t> {
    /// A call on `count` elements of a type, from a displacement of the target's window on.
    #[inline(always)]
    pub(super) fn new(
        action: Action,
        target: i32,
        at: i64,
        (count, target_type): (i64, TargetType<'t>),
    ) -> Call<'t> {
        Call { action, target, at, count, target_type, notify: None }
    }

    /// The same call, which raises a counter at the target.
    #[inline]
    pub(super) fn notifying(self, index: i32) -> Call<'t> {
        Call { notify: Some(index), ..self }
    }

    /// The target type, if this rank built it.
    #[inline]
    pub(super) fn own(&self) -> Option<&'t Type> {
        match self.target_type {
            TargetType::Own(own) => Some(own),
            TargetType::Foreign(_) => None,
        }
    }

    /// The name of the call, for errors.
    pub(super) fn name(&self) -> &'static str {
        match self.notify {
            None => self.action.call(),
            Some(_) => self.action.notify_call(),
        }
    }
}

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
    #[inline]
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

    /// Whether it fetches data from the target.
    pub(super) fn fetches(self) -> bool {
        match self {
            Action::Put | Action::Accumulate(_) => false,
            Action::Get
            | Action::GetAccumulate(_)
            | Action::FetchAndOp(_)
            | Action::CompareAndSwap => true,
        }
    }

    /// The operation of an accumulate, if it is one.
    #[inline]
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

    /// Whether it moves data, instead of combining them.
    #[inline]
    pub(super) fn moves(self) -> bool {
        matches!(self, Action::Put | Action::Get)
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
