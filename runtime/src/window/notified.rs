//! The calls of a target that waits for notifications.

use super::core::Core;
use super::sync::notify::{reset, test, value, wait};
use crate::check::Caller;
use crate::error::Result;

impl Core {
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
