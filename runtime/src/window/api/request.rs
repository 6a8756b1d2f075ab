//! Request-based operations: each is waited for individually, and owns its memory until then.

use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;

use shipable::reduce::Op;

use super::epoch::Epoch;
use crate::engine::Ticket;
use crate::error::{ErrorKind, Place, Result};
use crate::given::{Given, Taken};
use crate::memory::{Exposed, Keeper, Memory};
use crate::object::Card;
use crate::observe::At;
use crate::process::Process;
use crate::several::Waitable;
use crate::several::sealed::{self, Frame, Maker};
use crate::types::IntoTargetType;
use crate::window::call::{Action, Call};
use crate::window::core::Core;
use crate::window::near::{Side, Sides};
use crate::window::operation::{Holders, Operation};

/// A request-based operation in progress (MPI-5.0 section 12.3.5).
///
/// It owns its memory: the engine may read or write it until the operation is done, and
/// [`wait`](Request::wait) gives it back. A put or accumulate is done when the data are in the
/// target's window, a get when they are at the origin.
///
/// The end of the epoch completes all of its requests. An operation whose request was dropped is
/// completed too, and its memory is freed then. If it fails, the end of the next epoch or the
/// window's `free` returns the error.
#[must_use = "the memory comes back from `wait`"]
pub struct Request<B> {
    process: Arc<Process>,
    ticket: Arc<Ticket>,
    memory: Vec<Arc<Exposed>>,
    place: Place,
    /// The window's error handlers, to which errors go.
    card: Arc<Card>,
    buffers: PhantomData<B>,
}

/// The memory that a request gives back: one buffer, or an origin and a result. `()` for a request
/// [by pointers](crate::Raw).
pub trait Buffers: Sized + private::GiveBack {}

mod private {
    use std::sync::Arc;

    use crate::memory::{Exposed, Memory};

    /// The memory that a request held, hidden from users.
    pub struct Returned(pub(in crate::window) Vec<Arc<Exposed>>);

    pub trait GiveBack: Sized {
        fn give_back(memory: Returned) -> Option<Self>;
    }

    fn one<M: Memory>(memory: Option<Arc<Exposed>>) -> Option<M> {
        Arc::into_inner(memory?)?.give_back()
    }

    impl<M: Memory> GiveBack for M {
        fn give_back(memory: Returned) -> Option<M> {
            one(memory.0.into_iter().next())
        }
    }

    /// The memory stays with the lender of the pointers.
    impl GiveBack for () {
        fn give_back(_: Returned) -> Option<()> {
            Some(())
        }
    }

    impl<O: Memory, M: Memory> GiveBack for (O, M) {
        fn give_back(memory: Returned) -> Option<(O, M)> {
            let mut memory = memory.0.into_iter();
            Some((one(memory.next())?, one(memory.next())?))
        }
    }
}

impl<B: private::GiveBack> Buffers for B {}

impl<B: Buffers> Request<B> {
    /// Whether the operation is done, so that [`wait`](Request::wait) returns at once. Makes
    /// progress.
    ///
    /// ```
    /// # use longshore::{Info, Window};
    /// # let rank = longshore::init()?;
    /// # let window = Window::allocate(rank.world(), 64, 8, &Info::default())?;
    /// let long = rank.type_of::<i64>()?;
    /// window.lock_all(|epoch| {
    ///     let put = epoch.rput(vec![7i64], 0, 0, 1, &long)?;
    ///     while !put.test()? {
    ///         // Other work in the meantime.
    ///     }
    ///     let memory = put.wait()?;
    ///     assert_eq!(memory, [7]);
    ///     Ok(())
    /// })?;
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// PROC_ABORTED if the job is ending.
    #[doc(alias = "MPI_Test")]
    pub fn test(&self) -> Result<bool> {
        if self.ticket.is_done() {
            return Ok(true);
        }
        let is_done = self.process.test(|_| self.ticket.is_done());
        is_done.map_err(|error| self.raised(error))
    }

    /// Waits until the operation is done, and gives its memory back.
    ///
    /// # Errors
    /// - The target's reason for refusing the operation.
    /// - CONVERSION for a value that the other side's representation can't hold.
    /// - PROC_ABORTED if the target died.
    ///
    /// On an error the memory is lost.
    #[track_caller]
    #[doc(alias = "MPI_Wait")]
    pub fn wait(self) -> Result<B> {
        let Request { process, ticket, memory, place, card, .. } = self;
        let at = At { window: place.window, peer: place.process, ..At::of(Location::caller()) };
        let outcome = ticket.wait(&process, at);
        if let (false, Some(window)) = (ticket.is_done(), place.window) {
            // The operation must not touch the memory any more.
            process.give_up(window);
        }
        // The engine releases the memory before it reports the operation as done.
        let gone = || ErrorKind::Aborting { by: None }.into();
        outcome
            .and_then(|()| B::give_back(private::Returned(memory)).ok_or_else(gone))
            .map_err(|error| raised(&process, &card, &place, error))
    }

    /// Cancels the operation, which MPI doesn't allow: always refused (rule 13, MPI-5.0 section
    /// 12.3.5).
    ///
    /// ```
    /// # use longshore::{Info, Window};
    /// # let rank = longshore::init()?;
    /// # let window = Window::allocate(rank.world(), 64, 8, &Info::default())?;
    /// let long = rank.type_of::<i64>()?;
    /// window.lock_all(|epoch| {
    ///     let put = epoch.rput(vec![7i64], 0, 0, 1, &long)?;
    ///     assert_eq!(put.cancel().unwrap_err().class(), longshore::Class::Request);
    ///     assert_eq!(put.free().unwrap_err().class(), longshore::Class::Request);
    ///     put.wait().map(drop)
    /// })?;
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// REQUEST.
    #[doc(alias = "MPI_Cancel")]
    pub fn cancel(&self) -> Result<()> {
        self.refuse(
            "an RMA request can't be cancelled: wait for it, or end the epoch, which completes it",
        )
    }

    /// Frees the request, which MPI doesn't allow: always refused (rule 13, MPI-5.0 section
    /// 12.3.5). A request may be dropped instead: its memory stays until the operation is done.
    ///
    /// # Errors
    /// REQUEST.
    #[doc(alias = "MPI_Request_free")]
    pub fn free(&self) -> Result<()> {
        self.refuse(
            "an RMA request can't be freed: wait for it, or end the epoch, which completes it",
        )
    }

    fn refuse(&self, why: &'static str) -> Result<()> {
        let error: crate::Error = ErrorKind::Request(why).into();
        Err(self.raised(error))
    }

    /// Gives an error the place of the call that issued the operation, and the window's error
    /// handler the error.
    #[cold]
    fn raised(&self, error: crate::Error) -> crate::Error {
        raised(&self.process, &self.card, &self.place, error)
    }
}

impl<B: Buffers> sealed::Waitable for Request<B> {
    fn is_complete(&self, _: Frame<'_>) -> bool {
        self.ticket.is_done()
    }

    fn process(&self) -> Option<Maker<'_>> {
        Some(Maker(&self.process))
    }

    fn awaited(&self) -> Option<u32> {
        self.place.process
    }
}

impl<B: Buffers> Waitable for Request<B> {}

impl Epoch<'_, '_> {
    /// A [`put`](Epoch::put) with a request, which is waited for individually (MPI-5.0 section
    /// 12.3.5). Only in passive epochs.
    ///
    /// ```
    /// # use longshore::{Info, Window};
    /// # let rank = longshore::init()?;
    /// # let window = Window::allocate(rank.world(), 64, 8, &Info::default())?;
    /// let long = rank.type_of::<i64>()?;
    /// window.lock_all(|epoch| {
    ///     let first = epoch.rput(vec![1i64, 2], 0, 0, 2, &long)?;
    ///     let second = epoch.rput(vec![3i64, 4], 0, 2, 2, &long)?;
    ///     let memory = first.wait()?;
    ///     second.wait()?;
    ///     assert_eq!(memory, [1, 2]);
    ///     Ok(())
    /// })?;
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`put`](Epoch::put), and RMA_SYNC outside of a passive epoch. On an error the
    /// memory is lost.
    #[track_caller]
    #[doc(alias = "MPI_Rput")]
    pub fn rput<'t, M: Memory>(
        &self,
        origin: impl Into<Given<M>>,
        target: i32,
        target_disp: i64,
        target_count: i64,
        target_type: impl IntoTargetType<'t>,
    ) -> Result<Request<M>> {
        let taken = Taken::new(origin.into(), self.core.parts().process());
        let there = (target_count, target_type.into_target_type());
        let call = Call::new(Action::Put, target, target_disp, there);
        request(self.core, call, taken.map(|taken| vec![taken]))
    }

    /// A [`get`](Epoch::get) with a request, which is waited for individually (MPI-5.0 section
    /// 12.3.5). Only in passive epochs.
    ///
    /// ```
    /// # use longshore::{Info, Window};
    /// # let rank = longshore::init()?;
    /// # let window = Window::allocate(rank.world(), 64, 8, &Info::default())?;
    /// let long = rank.type_of::<i64>()?;
    /// window.lock_all(|epoch| {
    ///     let get = epoch.rget(vec![-1i64; 4], 0, 0, 4, &long)?;
    ///     assert_eq!(get.wait()?, [0; 4]);
    ///     Ok(())
    /// })?;
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`rput`](Epoch::rput).
    #[track_caller]
    #[doc(alias = "MPI_Rget")]
    pub fn rget<'t, M: Memory>(
        &self,
        destination: impl Into<Given<M>>,
        target: i32,
        target_disp: i64,
        target_count: i64,
        target_type: impl IntoTargetType<'t>,
    ) -> Result<Request<M>> {
        let taken = Taken::new(destination.into(), self.core.parts().process());
        let there = (target_count, target_type.into_target_type());
        let call = Call::new(Action::Get, target, target_disp, there);
        request(self.core, call, taken.map(|taken| vec![taken]))
    }

    /// An [`accumulate`](Epoch::accumulate) with a request, which is waited for individually
    /// (MPI-5.0 section 12.3.5). Only in passive epochs.
    ///
    /// ```
    /// # use longshore::{Info, Op, Window};
    /// # let rank = longshore::init()?;
    /// # let window = Window::allocate(rank.world(), 64, 8, &Info::default())?;
    /// let long = rank.type_of::<i64>()?;
    /// window.lock_all(|epoch| {
    ///     epoch.raccumulate(vec![1i64, 2], 0, 0, 2, &long, Op::Sum)?.wait()?;
    ///     Ok(())
    /// })?;
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`accumulate`](Epoch::accumulate) and [`rput`](Epoch::rput).
    #[track_caller]
    #[doc(alias = "MPI_Raccumulate")]
    pub fn raccumulate<'t, M: Memory>(
        &self,
        origin: impl Into<Given<M>>,
        target: i32,
        target_disp: i64,
        target_count: i64,
        target_type: impl IntoTargetType<'t>,
        op: Op,
    ) -> Result<Request<M>> {
        let taken = Taken::new(origin.into(), self.core.parts().process());
        let there = (target_count, target_type.into_target_type());
        let call = Call::new(Action::Accumulate(op), target, target_disp, there);
        request(self.core, call, taken.map(|taken| vec![taken]))
    }

    /// A [`get_accumulate`](Epoch::get_accumulate) with a request, which is waited for individually
    /// (MPI-5.0 section 12.3.5). Only in passive epochs. The request gives both memories back.
    ///
    /// ```
    /// # use longshore::{Info, Op, Window};
    /// # let rank = longshore::init()?;
    /// # let window = Window::allocate(rank.world(), 64, 8, &Info::default())?;
    /// let long = rank.type_of::<i64>()?;
    /// window.lock_all(|epoch| {
    ///     let both = epoch.rget_accumulate(vec![1i64], vec![-1i64], 0, 0, 1, &long, Op::Sum)?;
    ///     let (added, before) = both.wait()?;
    ///     assert!(added == [1] && before[0] >= 0);
    ///     Ok(())
    /// })?;
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_accumulate`](Epoch::get_accumulate) and [`rput`](Epoch::rput).
    #[allow(clippy::too_many_arguments)] // MPI's
    #[track_caller]
    #[doc(alias = "MPI_Rget_accumulate")]
    pub fn rget_accumulate<'t, O: Memory, M: Memory>(
        &self,
        origin: impl Into<Given<O>>,
        result: impl Into<Given<M>>,
        target: i32,
        target_disp: i64,
        target_count: i64,
        target_type: impl IntoTargetType<'t>,
        op: Op,
    ) -> Result<Request<(O, M)>> {
        let process = self.core.parts().process();
        let both =
            || Ok(vec![Taken::new(origin.into(), process)?, Taken::new(result.into(), process)?]);
        let there = (target_count, target_type.into_target_type());
        let call = Call::new(Action::GetAccumulate(op), target, target_disp, there);
        request(self.core, call, both())
    }
}

#[cold]
fn raised(process: &Process, card: &Card, place: &Place, error: crate::Error) -> crate::Error {
    let error = error.at(|| place.clone());
    let error = match place.site {
        Some(site) => error.seen_at(site, || card.name()),
        None => error,
    };
    card.raise(process, error)
}

/// Issues an operation with a request on memory that the engine shares with the request.
#[track_caller]
fn request<B: Buffers>(
    core: &Core,
    call: Call<'_>,
    taken: Result<Vec<Taken>>,
) -> Result<Request<B>> {
    let taken = taken.map_err(|error| {
        core.failed(error, call.action.request_call(), Some(call.target), Location::caller())
    })?;
    let mut sides =
        taken.iter().map(|taken| Side { what: taken.what(), span: taken.memory.span() });
    let mut keepers = taken.iter().map(Taken::keeper);
    let (sides, keepers) = ([sides.next(), sides.next()], [keepers.next(), keepers.next()]);
    let [first, second] = keepers.map(|keeper| keeper.unwrap_or(Keeper::Lender));
    let (origin, result, holders) = match call.action {
        Action::Get => (None, sides[0], Holders { origin: second, result: first }),
        _ => (sides[0], sides[1], Holders { origin: first, result: second }),
    };
    let operation = Operation::new(call, Sides { origin, result, compare: None });
    let Request { process, ticket, place, card, .. } = issue(core, operation, holders)?;
    let memory = taken.into_iter().map(|taken| taken.memory).collect();
    Ok(Request { process, ticket, memory, place, card, buffers: PhantomData })
}

/// Issues an operation with a request that holds no memory: its lenders keep it.
#[track_caller]
pub(super) fn start(core: &Core, operation: Operation<'_>) -> Result<Request<()>> {
    issue(core, operation, Holders::lenders())
}

#[track_caller]
fn issue(core: &Core, operation: Operation<'_>, holders: Holders) -> Result<Request<()>> {
    let operation = operation.requested();
    let caller = Location::caller();
    let site = Some(caller);
    let place = Place { site, ..core.place(operation.name(), Some(operation.call.target), None) };
    core.check_passive(&place, caller)?;
    let parts = core.parts();
    let ticket = Arc::new(Ticket::of_epoch(parts.flight().ledger(), place.process));
    core.request(&operation, holders, &ticket)?;
    let (process, card) = (parts.process().clone(), core.card().clone());
    Ok(Request { process, ticket, memory: Vec::new(), place, card, buffers: PhantomData })
}
