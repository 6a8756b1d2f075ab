//! What fetch_and_op and compare_and_swap return: a value that is here, or on its way.

use std::fmt;

use shipable::Element;

use crate::error::Result;
use crate::window::lane::Value;

/// What was in the target's window before an operation changed it.
///
/// The operation is under way already: several can be, each with its value on its way, before the first is waited for. A
/// directly reached target has answered when the call returns. MPI lets the value be read after a flush or the epoch's
/// end; so can this one, and sooner by [`wait`](Fetched::wait). Dropped, it is forgotten, and the operation isn't.
///
/// ```
/// use longshore::{Info, Op, Window};
///
/// let rank = longshore::init()?;
/// let mut counter = Window::allocate(rank.world(), 8, 8, &Info::default())?;
/// let tickets = counter.fence(|epoch| {
///     let (first, second) = (epoch.fetch_and_op(1i64, 0, 0, Op::Sum)?, epoch.fetch_and_op(1i64, 0, 0, Op::Sum)?);
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

    /// Whether the value is here, so that [`wait`](Fetched::wait) returns at once. Makes progress.
    ///
    /// ```
    /// # use longshore::{Info, Op, Window};
    /// # let rank = longshore::init()?;
    /// # let window = Window::allocate(rank.world(), 64, 8, &Info::default())?;
    /// window.lock_all(|epoch| {
    ///     let value = epoch.fetch_and_op(1i64, 0, 0, Op::Sum)?;
    ///     while !value.test()? {
    ///         // Something else in the meantime.
    ///     }
    ///     value.wait().map(drop)
    /// })?;
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// PROC_ABORTED where the job is being ended.
    pub fn test(&self) -> Result<bool> {
        match &self.0 {
            Value::Here(_) => Ok(true),
            Value::Coming(coming) => coming.test(),
        }
    }

    /// The value, waited for. The target has to come to a call that makes progress: between unlike ranks, in a fence epoch,
    /// its closing fence at the latest.
    ///
    /// # Errors
    /// What the target refused the operation for; PROC_ABORTED where it died.
    #[inline]
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
