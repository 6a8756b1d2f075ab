//! The calls of a window whose operations notify the target, and those of a target that waits for
//! notifications.

use super::core::Core;
use super::operation::{Action, Operation, Side};
use super::path::fast;
use super::sync::notify::{reset, test, value, wait};
use crate::check::Caller;
use crate::error::Result;
use crate::memory::Span;
use crate::origin::What;
use crate::types::TargetType;

impl Core {
    /// As [`transfer`](Core::transfer), and raises a counter at the target when the operation is
    /// done there; see [`Epoch::put_notify`](super::Epoch::put_notify).
    #[allow(clippy::too_many_arguments)] // MPI's
    #[inline(always)]
    #[track_caller]
    pub(super) fn transfer_notify(
        &self,
        action: Action,
        memory: Span,
        what: What<'_>,
        target: i32,
        displacement: i64,
        count: i64,
        target_type: TargetType<'_>,
        notify: i32,
    ) -> Result<()> {
        let (parts, at) = (self.parts(), displacement);
        let done = fast::transfer_notify(
            parts,
            action,
            memory,
            what,
            target,
            at,
            count,
            target_type,
            notify,
        );
        if done.is_some() {
            return Ok(());
        }
        let place = (target, displacement, count, target_type);
        self.transfer_notify_otherwise(action, (memory, what), place, notify)
    }

    #[inline(never)]
    #[track_caller]
    fn transfer_notify_otherwise(
        &self,
        action: Action,
        (span, what): (Span, What<'_>),
        place: (i32, i64, i64, TargetType<'_>),
        notify: i32,
    ) -> Result<()> {
        let side = Some(Side { what, span });
        let operation = match action {
            Action::Get => Operation::new(action, place, None, side),
            _ => Operation::new(action, place, side, None),
        };
        self.operate(operation.notifying(notify))
    }

    /// As [`accumulate`](Core::accumulate), and raises a counter at the target when the operation
    /// is done there; see [`Epoch::accumulate_notify`](super::Epoch::accumulate_notify).
    #[allow(clippy::too_many_arguments)] // MPI's
    #[inline(always)]
    #[track_caller]
    pub(super) fn accumulate_notify(
        &self,
        action: Action,
        (memory, what): (Span, What<'_>),
        result: Option<(Span, What<'_>)>,
        target: i32,
        displacement: i64,
        count: i64,
        target_type: TargetType<'_>,
        notify: i32,
    ) -> Result<()> {
        // An atomic get ignores its origin, which may be null (MPI-5.0 section 12.3.4).
        let (memory, what) = match result {
            Some(result) if action.is_atomic_get() => result,
            _ => (memory, what),
        };
        let (parts, at) = (self.parts(), displacement);
        let done = fast::accumulate_notify(
            parts,
            action,
            memory,
            what,
            &result,
            target,
            at,
            count,
            target_type,
            notify,
        );
        if done.is_some() {
            return Ok(());
        }
        let place = (target, displacement, count, target_type);
        self.accumulate_notify_otherwise(action, (memory, what), result, place, notify)
    }

    #[inline(never)]
    #[track_caller]
    fn accumulate_notify_otherwise(
        &self,
        action: Action,
        (span, what): (Span, What<'_>),
        result: Option<(Span, What<'_>)>,
        place: (i32, i64, i64, TargetType<'_>),
        notify: i32,
    ) -> Result<()> {
        let origin = Some(Side { what, span });
        let result = result.map(|(span, what)| Side { what, span });
        self.operate(Operation::new(action, place, origin, result).notifying(notify))
    }

    /// The value of a notification counter of this rank.
    #[inline]
    pub(super) fn notify_value(&self, notify: i32, caller: Caller) -> Result<u64> {
        let found = value(self.parts(), notify);
        found.map_err(|error| self.failed(error, "notify_value", None, caller))
    }

    /// Sets a notification counter of this rank to 0. Returns the value before.
    pub(super) fn reset_notify_value(&self, notify: i32, caller: Caller) -> Result<u64> {
        let before = reset(self.parts(), notify);
        before.map_err(|error| self.failed(error, "reset_notify_value", None, caller))
    }

    /// Waits until a notification counter of this rank has a value. Returns its value.
    #[inline]
    pub(super) fn wait_notify(&self, notify: i32, value: u64, caller: Caller) -> Result<u64> {
        self.called(caller);
        let reached = wait(self.parts(), notify, value);
        reached.map_err(|error| self.failed(error, "wait_notify", None, caller))
    }

    /// Whether a notification counter of this rank has a value.
    #[inline]
    pub(super) fn test_notify(&self, notify: i32, value: u64, caller: Caller) -> Result<bool> {
        let tested = test(self.parts(), notify, value);
        tested.map_err(|error| self.failed(error, "test_notify", None, caller))
    }
}
