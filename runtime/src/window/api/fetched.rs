//! The result of fetch_and_op and compare_and_swap: a value that has arrived, or is on its way.

use std::fmt;

use shipable::Element;

use crate::error::Result;
use crate::window::lane::Value;

/// The value of a target's element before an operation changed it.
///
/// The operation is already in progress, so several can be in flight before the first value is
/// waited for. A directly reached target has answered when the call returns.
///
/// In MPI the value is available after a flush or at the end of the epoch. [`wait`](Fetched::wait)
/// can return it earlier. If this is dropped, the value is discarded, but the operation still takes
/// place.
///
/// ```
/// use longshore::{Info, Op, Window};
///
/// let rank = longshore::init()?;
/// let mut counter = Window::allocate(rank.world(), 8, 8, &Info::default())?;
/// let tickets = counter.fence(|epoch| {
///     let first = epoch.fetch_and_op(1i64, 0, 0, Op::Sum)?;
///     let second = epoch.fetch_and_op(1i64, 0, 0, Op::Sum)?;
///     Ok([first.wait()?, second.wait()?])
/// })?;
/// assert!(tickets[0] < tickets[1]);
/// counter.free()?;
/// rank.finalize()?;
/// # Ok::<(), longshore::Error>(())
/// ```
#[must_use = "an operation whose value nobody wants is an accumulate"]
pub struct Fetched<T>(Value<T>);

impl<T: Element> Fetched<T> {
    #[inline]
    pub(super) fn of(value: Value<T>) -> Fetched<T> {
        Fetched(value)
    }

    /// Whether the value has arrived, so that [`wait`](Fetched::wait) returns at once. Makes
    /// progress.
    ///
    /// ```
    /// # use longshore::{Info, Op, Window};
    /// # let rank = longshore::init()?;
    /// # let window = Window::allocate(rank.world(), 64, 8, &Info::default())?;
    /// window.lock_all(|epoch| {
    ///     let value = epoch.fetch_and_op(1i64, 0, 0, Op::Sum)?;
    ///     while !value.test()? {
    ///         // Other work in the meantime.
    ///     }
    ///     value.wait().map(drop)
    /// })?;
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// PROC_ABORTED if the job is ending.
    #[track_caller]
    pub fn test(&self) -> Result<bool> {
        match &self.0 {
            Value::Here(_) => Ok(true),
            Value::Coming(coming) => coming.test(),
        }
    }

    /// Waits for the value. A target that isn't reached directly must make a call that makes
    /// progress: in a fence epoch, its closing fence at the latest.
    ///
    /// # Errors
    /// The target's reason for refusing the operation, or PROC_ABORTED if the target died.
    #[inline]
    #[track_caller]
    pub fn wait(self) -> Result<T> {
        match self.0 {
            Value::Here(value) => Ok(value),
            Value::Coming(coming) => coming.wait(),
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Fetched<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Value::Here(value) => f.debug_tuple("Fetched").field(value).finish(),
            Value::Coming(_) => f.write_str("Fetched(on its way)"),
        }
    }
}
