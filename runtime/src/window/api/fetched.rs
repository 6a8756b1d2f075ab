//! What fetch_and_op and compare_and_swap return: a value that is here, or on its way.

use std::fmt;
use std::sync::Arc;

use shipable::Element;

use crate::engine::{Ledger, Ticket};
use crate::error::{ErrorKind, Place, Result};
use crate::object::Card;
use crate::process::Process;
use crate::window::core::Core;
use crate::window::state::EpochState;

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

enum Value<T> {
    Here(T),
    Coming(Coming),
}

/// A value on its way, into memory that the engine holds as well.
struct Coming {
    lane: Arc<Lane>,
    call: Called,
}

/// The call that fetches it.
pub(in crate::window) struct Called {
    pub call: &'static str,
    /// Its target, in the window and in the job.
    pub target: i32,
    pub peer: u32,
    pub bytes: Option<(i128, i128)>,
    pub epoch: EpochState,
}

/// Where a value comes to, and what it needs of its window. Once it is nobody's any more, the window's next value takes it over: most
/// programs wait for one before they fetch another.
pub(in crate::window) struct Lane {
    process: Arc<Process>,
    window: u32,
    ledger: Arc<Ledger>,
    ticket: Arc<Ticket>,
    /// The window's, whose error handler deals with errors.
    card: Arc<Card>,
}

impl Lane {
    pub(in crate::window) fn ticket(&self) -> &Arc<Ticket> {
        &self.ticket
    }
}

impl Core {
    /// Where the next value comes to.
    pub(in crate::window) fn lane(&self) -> Arc<Lane> {
        let mut last = self.recent.lane.borrow_mut();
        match &*last {
            // Last the ticket: what its renewal sees, others did before they let go of either.
            Some(lane) if Arc::strong_count(lane) == 1 && Ticket::renew(&lane.ticket) => {
                lane.clone()
            }
            _ => last.insert(Arc::new(self.new_lane())).clone(),
        }
    }

    #[cold]
    fn new_lane(&self) -> Lane {
        Lane {
            process: self.process.clone(),
            window: self.window,
            ledger: self.flight.ledger.clone(),
            ticket: Arc::default(),
            card: self.card.clone(),
        }
    }
}

impl<T: Element> Fetched<T> {
    #[inline]
    pub(in crate::window) fn here(value: T) -> Fetched<T> {
        Fetched(Value::Here(value))
    }

    pub(in crate::window) fn coming(lane: Arc<Lane>, call: Called) -> Fetched<T> {
        Fetched(Value::Coming(Coming { lane, call }))
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
        let Value::Coming(coming) = &self.0 else { return Ok(true) };
        let Lane { process, ticket, card, .. } = &*coming.lane;
        if ticket.is_done() {
            return Ok(true);
        }
        let is_done = process.test(|_| ticket.is_done());
        is_done.map_err(|error| card.raise(process, error.at(|| coming.place())))
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

impl Coming {
    #[inline]
    fn wait<T: Element>(self) -> Result<T> {
        let Lane { process, ticket, card, .. } = &*self.lane;
        let waited = ticket.wait(process, Some(self.call.peer));
        waited.map_err(|error| card.raise(process, error.at(|| self.place())))?;
        ticket.room().span::<T>().peek(0).ok_or_else(|| ErrorKind::WindowFreed.into())
    }

    fn place(&self) -> Place {
        let Called { call, target, peer, bytes, epoch } = self.call;
        Place {
            call,
            rank: self.lane.process.me().rank,
            target: Some(target),
            process: Some(peer),
            window: Some(self.lane.window),
            bytes,
            epoch: Some(epoch.to_string()),
        }
    }
}

impl Drop for Coming {
    /// What went wrong and nobody asked for is the window's to tell.
    #[inline]
    fn drop(&mut self) {
        if let Some(error) = self.lane.ticket.forsake() {
            self.lane.ledger.fail(self.call.peer, error);
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
