//! Epochs as scopes: memory is borrowed by the operations of an epoch until the epoch ends.

use std::ops::Deref;
use std::panic::Location;

use super::local::Local;
use crate::assert::Assert;
use crate::check::Caller;
use crate::error::Result;
use crate::memory::{Scope, scope};
use crate::origin::{Destination, Origin};
use crate::types::IntoTargetType;
use crate::window::call::{Action, Call};
use crate::window::core::{Core, Failed};
use crate::window::near::{Side, Sides};

/// An epoch in which the rank may put into and get from the windows of its targets. The targets are
/// all ranks between two fences, the group of a start, or the ranks that are locked.
///
/// `'scope` is the time of the epoch: an operation borrows its buffer until the epoch ends.
pub struct Epoch<'scope, 'env: 'scope> {
    pub(in crate::window) scope: &'scope Scope<'scope, 'env>,
    pub(in crate::window) core: &'scope Core,
}

impl<'scope> Epoch<'scope, '_> {
    /// Puts data into a target's window (MPI-5.0 section 12.3.1). The data become `target_count`
    /// elements of `target_type`, from displacement `target_disp` on, in the target's displacement
    /// units. The put is done when the epoch has ended.
    ///
    /// The target type describes the data's layout at the target, in the target's representation.
    /// It is portable, or a type that the target built and sent with
    /// [`type_send`](crate::Communicator::type_send).
    ///
    /// The data are one value, an array, a slice, a vector, or what [`Origin`] describes.
    ///
    /// Bind the value outside of the closure: it is borrowed until the epoch ends. A temporary
    /// within the closure, such as `&[me as f64]`, is dropped before, so it doesn't compile (error
    /// E0716). A constant such as `&[1.0]` does, since it lives as long as the program. Values that
    /// are only known within the closure may be owned by the operation, by [`rput`](Epoch::rput).
    ///
    /// ```compile_fail,E0716
    /// # use longshore::{Result, Type, Window};
    /// # fn example(window: &mut Window, me: i32, double: &Type) -> Result<()> {
    /// window.fence(|epoch| epoch.put(&[me as f64], 1, 0, 1, double))
    /// # }
    /// ```
    ///
    /// ```
    /// # use longshore::{Info, Window};
    /// # let rank = longshore::init()?;
    /// # let world = rank.world();
    /// # let mut window = Window::allocate(world, 64, 8, &Info::default())?;
    /// let (me, size) = (world.rank(), world.size());
    /// let double = rank.type_of::<f64>()?;
    /// let values = [f64::from(me), 0.5];
    /// window.fence(|epoch| epoch.put(&values, (me + 1) % size, 3, 2, &double))?;
    /// assert_eq!(window.get::<f64>(3)?, f64::from((me + size - 1) % size));
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// - TYPE if a rule of T1 to T4 is broken, if the signatures differ, or if the target type
    ///   overlaps itself.
    /// - RANK, COUNT, DISP or BUFFER for a wrong target, count, displacement or origin.
    /// - RMA_RANGE outside of the target's window.
    /// - RMA_SYNC without an epoch.
    ///
    /// After these errors nothing is written. If the target refuses the operation, the call that
    /// ends the epoch returns the error.
    #[inline(always)]
    #[track_caller]
    #[doc(alias = "MPI_Put")]
    pub fn put<'t>(
        &self,
        origin: impl Into<Origin<'scope>>,
        target: i32,
        target_disp: i64,
        target_count: i64,
        target_type: impl IntoTargetType<'t>,
    ) -> Result<()> {
        // Destructured: keeping `Origin` whole defeats store forwarding (docs/tuning.md, "Scalar
        // arguments").
        let Origin { loan, what } = origin.into();
        let span = self.scope.lend(loan);
        let there = (target_count, target_type.into_target_type());
        let call = Call::new(Action::Put, target, target_disp, there);
        self.core.operate(call, Sides::of_origin(Side { what, span }))
    }

    /// Gets data from a target's window (MPI-5.0 section 12.3.2). They are in `destination` when
    /// the epoch has ended, so bind its memory outside of the closure and read it afterwards.
    ///
    /// ```
    /// # use longshore::{Info, Window};
    /// # let rank = longshore::init()?;
    /// # let world = rank.world();
    /// # let mut window = Window::allocate(world, 64, 8, &Info::default())?;
    /// # let next = (world.rank() + 1) % world.size();
    /// let double = rank.type_of::<f64>()?;
    /// window.set(3, 2.5f64)?;
    /// let mut values = [0.0; 2];
    /// window.fence(|epoch| epoch.get(&mut values, next, 3, 2, &double))?;
    /// assert_eq!(values, [2.5, 0.0]);
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`put`](Epoch::put). The layout that must not overlap itself is the origin's.
    #[inline(always)]
    #[track_caller]
    #[doc(alias = "MPI_Get")]
    pub fn get<'t>(
        &self,
        destination: impl Into<Destination<'scope>>,
        target: i32,
        target_disp: i64,
        target_count: i64,
        target_type: impl IntoTargetType<'t>,
    ) -> Result<()> {
        let Destination { loan, what } = destination.into();
        let span = self.scope.lend_mut(loan);
        let there = (target_count, target_type.into_target_type());
        let call = Call::new(Action::Get, target, target_disp, there);
        self.core.operate(call, Sides::of_result(Side { what, span }))
    }

    /// Accessors to this rank's own memory. As in MPI, their result is undefined at locations that
    /// another rank writes in this epoch.
    pub fn local(&self) -> Local<'scope> {
        Local::new(self.core)
    }
}

/// A chain of epochs; see [`Window::fences`](crate::Window::fences).
pub struct Chain<'w> {
    core: &'w Core,
}

impl<'w> Chain<'w> {
    pub(in crate::window) fn new(core: &'w Core) -> Chain<'w> {
        Chain { core }
    }

    /// Runs the next epoch, and the fence that closes it and opens another. Collective.
    ///
    /// ```
    /// # use longshore::{Info, Window};
    /// # let rank = longshore::init()?;
    /// # let mut window = Window::allocate(rank.world(), 64, 8, &Info::default())?;
    /// # let long = rank.type_of::<i64>()?;
    /// # let next = (rank.world().rank() + 1) % rank.world().size();
    /// window.fences(|chain| {
    ///     for round in 0..3i64 {
    ///         let value = [round];
    ///         // Each round has a place of its own, since the next put may come at any time.
    ///         chain.epoch(|epoch| epoch.put(&value, next, round, 1, &long))?;
    ///         assert_eq!(chain.local().get::<i64>(round)?, round);
    ///     }
    ///     Ok(())
    /// })?;
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Window::fence`](crate::Window::fence).
    #[track_caller]
    #[doc(alias = "MPI_Win_fence")]
    pub fn epoch<'env, R>(
        &mut self,
        body: impl for<'scope> FnOnce(&Epoch<'scope, 'env>) -> Result<R>,
    ) -> Result<R>
    where
        'w: 'env,
    {
        self.epoch_with(Assert::NONE, body)
    }

    /// Runs the next epoch, as [`epoch`](Chain::epoch) does, with asserts for the fence that closes
    /// it.
    ///
    /// ```
    /// # use longshore::{Info, Window};
    /// # let rank = longshore::init()?;
    /// # let mut window = Window::allocate(rank.world(), 64, 8, &Info::default())?;
    /// use longshore::Assert;
    ///
    /// # let long = rank.type_of::<i64>()?;
    /// window.fences(|chain| {
    ///     // The last epoch: the fence that closes it opens no other.
    ///     chain.epoch_with(Assert::NOSUCCEED, |epoch| epoch.put(&[1i64], 0, 0, 1, &long))
    /// })?;
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`epoch`](Chain::epoch), RMA_SYNC for a false assert (rule 9), and ASSERT for an
    /// assert that a fence doesn't take.
    #[track_caller]
    pub fn epoch_with<'env, R>(
        &mut self,
        assert: Assert,
        body: impl for<'scope> FnOnce(&Epoch<'scope, 'env>) -> Result<R>,
    ) -> Result<R>
    where
        'w: 'env,
    {
        let caller = Location::caller();
        let close = |core: &Core| {
            core.called(caller);
            core.fence(assert)
        };
        let core = self.core;
        in_epoch(core, close, body).map_err(|failed| core.epoch_failed(failed, caller))
    }

    /// Accessors to this rank's own memory.
    pub fn local(&self) -> Local<'w> {
        Local::new(self.core)
    }
}

/// An epoch in which targets are locked, with flushes; see [`Window::lock`](crate::Window::lock).
/// It dereferences to an [`Epoch`].
pub struct Passive<'scope, 'env: 'scope> {
    epoch: Epoch<'scope, 'env>,
}

impl<'scope, 'env> Deref for Passive<'scope, 'env> {
    type Target = Epoch<'scope, 'env>;

    #[inline]
    fn deref(&self) -> &Epoch<'scope, 'env> {
        &self.epoch
    }
}

impl<'scope> Passive<'scope, '_> {
    /// Runs operations, and completes them and all earlier ones on the target, at the origin and at
    /// the target (MPI-5.0 section 12.5.4).
    ///
    /// Buffers are borrowed only until it returns. It therefore also waits for operations on other
    /// targets in `body`.
    ///
    /// # Errors
    /// The error of `body`, otherwise that of the first operation that failed. RMA_SYNC for a
    /// target that isn't locked.
    ///
    /// ```
    /// # use longshore::{Info, LockType, Window};
    /// # let rank = longshore::init()?;
    /// # let window = Window::allocate(rank.world(), 16, 8, &Info::default())?;
    /// # let long = rank.type_of::<i64>()?;
    /// window.lock(0, LockType::Exclusive, |epoch| {
    ///     let mut counter = [0i64];
    ///     epoch.flush(0, |epoch| epoch.get(&mut counter, 0, 0, 1, &long))?;
    ///     counter[0] += 1; // free again
    ///     epoch.flush(0, |epoch| epoch.put(&counter, 0, 0, 1, &long))
    /// })?;
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    #[inline]
    #[track_caller]
    #[doc(alias = "MPI_Win_flush")]
    pub fn flush<'inner, R>(
        &self,
        target: i32,
        body: impl for<'s> FnOnce(&Passive<'s, 'inner>) -> Result<R>,
    ) -> Result<R>
    where
        'scope: 'inner,
    {
        in_passive(self.core, |core, caller| core.flush(target, caller), body)
    }

    /// Runs operations, and completes them and all earlier ones on all targets, at the origin and
    /// at the targets (MPI-5.0 section 12.5.4).
    ///
    /// ```
    /// # use longshore::{Info, Window};
    /// # let rank = longshore::init()?;
    /// # let window = Window::allocate(rank.world(), 64, 8, &Info::default())?;
    /// let (long, size) = (rank.type_of::<i64>()?, rank.world().size());
    /// window.lock_all(|epoch| {
    ///     let mut counts = vec![-1i64; size as usize];
    ///     epoch.flush_all(|epoch| {
    ///         let mut each = (0..size).zip(counts.chunks_mut(1));
    ///         each.try_for_each(|(target, count)| epoch.get(count, target, 0, 1, &long))
    ///     })?;
    ///     assert!(counts.iter().all(|count| *count == 0));
    ///     Ok(())
    /// })?;
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`flush`](Passive::flush).
    #[track_caller]
    #[doc(alias = "MPI_Win_flush_all")]
    pub fn flush_all<'inner, R>(
        &self,
        body: impl for<'s> FnOnce(&Passive<'s, 'inner>) -> Result<R>,
    ) -> Result<R>
    where
        'scope: 'inner,
    {
        in_passive(self.core, |core, caller| core.flush_all(caller), body)
    }

    /// Runs operations, and completes them and all earlier ones on the target, at the origin only
    /// (MPI-5.0 section 12.5.4).
    ///
    /// ```
    /// # use longshore::{Info, Window};
    /// # let rank = longshore::init()?;
    /// # let window = Window::allocate(rank.world(), 64, 8, &Info::default())?;
    /// let long = rank.type_of::<i64>()?;
    /// window.lock_all(|epoch| {
    ///     let mut value = [1i64];
    ///     epoch.flush_local(0, |epoch| epoch.put(&value, 0, 0, 1, &long))?;
    ///     value[0] = 2; // free again, though the put may not be there yet
    ///     epoch.flush_local_all(|epoch| epoch.put(&value, 0, 1, 1, &long))
    /// })?;
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`flush`](Passive::flush).
    #[track_caller]
    #[doc(alias = "MPI_Win_flush_local")]
    pub fn flush_local<'inner, R>(
        &self,
        target: i32,
        body: impl for<'s> FnOnce(&Passive<'s, 'inner>) -> Result<R>,
    ) -> Result<R>
    where
        'scope: 'inner,
    {
        in_passive(self.core, |core, caller| core.flush_local(target, caller), body)
    }

    /// Runs operations, and completes them and all earlier ones on all targets, at the origin only
    /// (MPI-5.0 section 12.5.4).
    ///
    /// # Errors
    /// Those of [`flush`](Passive::flush).
    #[track_caller]
    #[doc(alias = "MPI_Win_flush_local_all")]
    pub fn flush_local_all<'inner, R>(
        &self,
        body: impl for<'s> FnOnce(&Passive<'s, 'inner>) -> Result<R>,
    ) -> Result<R>
    where
        'scope: 'inner,
    {
        in_passive(self.core, |core, caller| core.flush_local_all(caller), body)
    }

    /// Orders this rank's own loads and stores of its window and those of other ranks (MPI-5.0
    /// section 12.5.4).
    ///
    /// ```
    /// # use longshore::{Info, Window};
    /// # let rank = longshore::init()?;
    /// # let window = Window::allocate(rank.world(), 64, 8, &Info::default())?;
    /// window.lock_all(|epoch| {
    ///     epoch.local().set(0, 7i64)?;
    ///     epoch.sync()?; // From here on whoever is told that it is set finds it set.
    ///     rank.world().barrier()?;
    ///     epoch.sync()
    /// })?;
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// WIN for a freed window.
    #[track_caller]
    #[doc(alias = "MPI_Win_sync")]
    pub fn sync(&self) -> Result<()> {
        self.core.sync(Location::caller())
    }
}

/// Runs the body of an open epoch, and then the call that closes it, even if the body fails. If the
/// body panics, the window is poisoned instead.
#[inline]
pub(in crate::window) fn in_epoch<'core: 'env, 'env, R>(
    core: &'core Core,
    close: impl FnOnce(&Core) -> Result<()>,
    body: impl for<'scope> FnOnce(&Epoch<'scope, 'env>) -> Result<R>,
) -> Result<R, Failed> {
    let mut closed = Ok(());
    let outcome = scope(
        |panicking| {
            if !panicking {
                closed = close(core);
            }
            // Afterwards no operation holds a buffer.
            core.drain();
            if panicking {
                core.poison();
            }
        },
        |scope| body(&Epoch { scope, core }),
    );
    match (outcome, closed) {
        (Ok(value), Ok(())) => Ok(value),
        (outcome, closed) => Err(Failed { body: outcome.err(), closing: closed.err() }),
    }
}

/// Runs the body of an open passive epoch, and then the call that closes it, even if the body
/// fails. The window's error handler gets an error of the closing call.
#[inline]
#[track_caller]
pub(in crate::window) fn in_passive<'core: 'env, 'env, R>(
    core: &'core Core,
    close: impl FnOnce(&Core, Caller) -> Result<()>,
    body: impl for<'scope> FnOnce(&Passive<'scope, 'env>) -> Result<R>,
) -> Result<R> {
    let caller = Location::caller();
    let body =
        |&Epoch { scope, core }: &Epoch<'_, 'env>| body(&Passive { epoch: Epoch { scope, core } });
    in_epoch(core, |core| close(core, caller), body)
        .map_err(|failed| core.epoch_failed(failed, caller))
}
