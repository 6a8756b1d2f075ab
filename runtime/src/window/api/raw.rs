//! The calls of a window without scopes. Each opens or closes an epoch, and origins are pointers
//! with a count and a type, as in MPI.
//!
//! The scopes make these calls, with all of their checks. The scopes' borrows guarantee that memory
//! stays; here the caller promises it. A C interface consists of these calls, with handles for
//! types.
//!
//! [`Raw`] describes how long an operation may use its memory.
#![allow(unsafe_code)]

mod halves;
mod notify;

use std::panic::Location;

use shipable::reduce::Op;

use super::request::{Request, start};
use crate::assert::Assert;
use crate::error::Result;
use crate::group::Group;
use crate::types::{IntoTargetType, Type};
use crate::window::call::{Action, Call};
use crate::window::core::Core;
use crate::window::near::{Elements, Sides};
use crate::window::operation::Operation;
use crate::window::sync::lock::LockType;

/// A window's calls without scopes; see [`Window::raw`](crate::Window::raw).
///
/// Operations are unsafe, since they use memory that the caller points to **until they are
/// complete**. An operation is complete when one of these calls has returned:
/// - a call that completes it by MPI's rules: [`flush`](Raw::flush), [`flush_all`](Raw::flush_all),
///   [`unlock`](Raw::unlock), [`unlock_all`](Raw::unlock_all), [`complete`](Raw::complete) or
///   [`fence`](Raw::fence);
/// - [`flush_local`](Raw::flush_local) or [`flush_local_all`](Raw::flush_local_all), which complete
///   it at the origin: its memory may be used again;
/// - [`wait`](Request::wait) of its request.
///
/// Such a call completes the operations even if it fails, with one exception. If the call is
/// refused (RMA_SYNC, ASSERT, RANK), operations remain pending and their memory must stay. An
/// operation that returns an error may use its memory until then, too.
///
/// Operations access only the bytes of the elements. The bytes between them may belong to others.
///
/// All other calls are safe: they are refused if they are out of order. Exposures have no scopes,
/// so [`Window::post`](crate::Window::post), `wait` and `test` are calls of the window.
#[derive(Clone, Copy)]
pub struct Raw<'w> {
    core: &'w Core,
}

impl<'w> Raw<'w> {
    pub(in crate::window) fn new(core: &'w Core) -> Raw<'w> {
        Raw { core }
    }

    /// Gives the window's error handler the error of a call that closes an epoch.
    #[inline]
    #[track_caller]
    fn raising(&self, closed: Result<()>) -> Result<()> {
        let caller = Location::caller();
        closed.map_err(|error| self.core.raise(error, caller))
    }

    /// The end of a call that closes an epoch.
    #[inline]
    #[track_caller]
    fn closing(&self, closed: Result<()>) -> Result<()> {
        self.core.note_epochs(Location::caller());
        self.raising(closed)
    }

    /// A fence (MPI-5.0 section 12.5.1). Collective. It ends the open fence epoch, if there is one.
    /// Without [`Assert::NOSUCCEED`] it opens another.
    ///
    /// ```
    /// # use longshore::{Assert, Info, Window};
    /// # let rank = longshore::init()?;
    /// # let window = Window::allocate(rank.world(), 8, 8, &Info::default())?;
    /// # let (long, calls, value) = (rank.type_of::<i64>()?, window.raw(), 7i64);
    /// calls.fence(Assert::NOPRECEDE)?;
    /// // SAFETY: the value stays until the second fence has returned.
    /// unsafe { calls.put((&raw const value).cast(), 1, &long, 0, 0, 1, &long)? };
    /// calls.fence(Assert::NOSUCCEED)?;
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Window::fence_with`](crate::Window::fence_with).
    #[track_caller]
    #[doc(alias = "MPI_Win_fence")]
    pub fn fence(self, assert: Assert) -> Result<()> {
        self.core.called(Location::caller());
        self.raising(self.core.fence(assert))
    }

    /// Waits until each rank of a group has [posted](crate::Window::post), and opens an access
    /// epoch to the group (MPI-5.0 section 12.5.2).
    ///
    /// ```
    /// # use longshore::{Assert, Info, Window};
    /// # let rank = longshore::init()?;
    /// # let world = rank.world();
    /// # let window = Window::allocate(world, 8, 8, &Info::default())?;
    /// # let (long, calls, value) = (rank.type_of::<i64>()?, window.raw(), 7i64);
    /// let me = world.group().incl(&[world.rank()])?;
    /// window.post(&me, Assert::NONE)?;
    /// calls.start(&me, Assert::NONE)?;
    /// // SAFETY: the value stays until the complete has returned.
    /// unsafe { calls.put((&raw const value).cast(), 1, &long, world.rank(), 0, 1, &long)? };
    /// calls.complete()?;
    /// window.wait()?;
    /// assert_eq!(window.get::<i64>(0)?, 7);
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Window::start`](crate::Window::start), except for the operations' errors.
    #[track_caller]
    #[doc(alias = "MPI_Win_start")]
    pub fn start(self, group: &Group, assert: Assert) -> Result<()> {
        let caller = Location::caller();
        self.core.called(caller);
        self.core.start(group, assert, caller)?;
        self.core.note_epochs(caller);
        Ok(())
    }

    /// Ends the access epoch that [`start`](Raw::start) opened, which has an example.
    ///
    /// # Errors
    /// - RMA_SYNC without a start (rule 4).
    /// - The error of the first operation that failed.
    /// - PROC_ABORTED if a target died.
    #[track_caller]
    #[doc(alias = "MPI_Win_complete")]
    pub fn complete(self) -> Result<()> {
        self.closing(self.core.complete(Location::caller()))
    }

    /// Locks a target (MPI-5.0 section 12.5.3).
    ///
    /// ```
    /// # use longshore::{Assert, Info, LockType, Window};
    /// # let rank = longshore::init()?;
    /// # let window = Window::allocate(rank.world(), 8, 8, &Info::default())?;
    /// # let (long, calls) = (rank.type_of::<i64>()?, window.raw());
    /// let (one, mut count) = (1i64, -1i64);
    /// calls.lock(0, LockType::Shared, Assert::NONE)?;
    /// // SAFETY: both numbers outlive the unlock. The result is read after the flush.
    /// unsafe {
    ///     calls.get((&raw mut count).cast(), 1, &long, 0, 0, 1, &long)?;
    ///     calls.flush(0)?;
    ///     count += 1;
    ///     calls.put((&raw const count).cast(), 1, &long, 0, 0, 1, &long)?;
    /// }
    /// calls.unlock(0)?;
    /// assert_eq!(count, one);
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Window::lock_with`](crate::Window::lock_with), except for the operations' errors.
    #[inline]
    #[track_caller]
    #[doc(alias = "MPI_Win_lock")]
    pub fn lock(self, target: i32, lock_type: LockType, assert: Assert) -> Result<()> {
        self.core.lock(target, lock_type, assert, Location::caller())?;
        self.core.note_epochs(Location::caller());
        Ok(())
    }

    /// Completes the operations on a target, and releases its lock. [`lock`](Raw::lock) has an
    /// example.
    ///
    /// # Errors
    /// - RMA_SYNC for a target that isn't locked (rule 5).
    /// - RANK for a rank outside of the window, and for PROC_NULL.
    /// - The error of the first operation that failed.
    /// - PROC_ABORTED if the target died.
    #[inline]
    #[track_caller]
    #[doc(alias = "MPI_Win_unlock")]
    pub fn unlock(self, target: i32) -> Result<()> {
        self.closing(self.core.unlock(target, Location::caller()))
    }

    /// Locks all targets with shared locks (MPI-5.0 section 12.5.3).
    ///
    /// ```
    /// # use longshore::{Assert, Info, Op, Window};
    /// # let rank = longshore::init()?;
    /// # let world = rank.world();
    /// # let window = Window::allocate(world, 8, 8, &Info::default())?;
    /// # let (long, calls, one) = (rank.type_of::<i64>()?, window.raw(), 1i64);
    /// calls.lock_all(Assert::NONE)?;
    /// for target in 0..world.size() {
    ///     let from = (&raw const one).cast();
    ///     // SAFETY: the number stays until the unlock_all has returned.
    ///     unsafe { calls.accumulate(from, 1, &long, target, 0, 1, &long, Op::Sum)? };
    /// }
    /// calls.unlock_all()?;
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Window::lock_all_with`](crate::Window::lock_all_with), except for the operations'
    /// errors.
    #[track_caller]
    #[doc(alias = "MPI_Win_lock_all")]
    pub fn lock_all(self, assert: Assert) -> Result<()> {
        self.core.lock_all(assert, Location::caller())?;
        self.core.note_epochs(Location::caller());
        Ok(())
    }

    /// Completes all operations, and releases all locks. [`lock_all`](Raw::lock_all) has an
    /// example.
    ///
    /// # Errors
    /// Those of [`unlock`](Raw::unlock), and RMA_SYNC without a lock_all (rule 4).
    #[track_caller]
    #[doc(alias = "MPI_Win_unlock_all")]
    pub fn unlock_all(self) -> Result<()> {
        self.closing(self.core.unlock_all(Location::caller()))
    }

    /// Completes the operations on a target, at the origin and at the target (MPI-5.0 section
    /// 12.5.4). [`lock`](Raw::lock) has an example.
    ///
    /// # Errors
    /// - RMA_SYNC outside of a passive epoch (rule 11).
    /// - The error of the first operation that failed.
    /// - PROC_ABORTED if the target died.
    #[inline]
    #[track_caller]
    #[doc(alias = "MPI_Win_flush")]
    pub fn flush(self, target: i32) -> Result<()> {
        self.raising(self.core.flush(target, Location::caller()))
    }

    /// Completes the operations on all targets, at the origin and at the targets (MPI-5.0 section
    /// 12.5.4).
    ///
    /// # Errors
    /// Those of [`flush`](Raw::flush).
    #[inline]
    #[track_caller]
    #[doc(alias = "MPI_Win_flush_all")]
    pub fn flush_all(self) -> Result<()> {
        self.raising(self.core.flush_all(Location::caller()))
    }

    /// Completes the operations on a target, at the origin only: their memory may be used again
    /// (MPI-5.0 section 12.5.4).
    ///
    /// # Errors
    /// Those of [`flush`](Raw::flush).
    #[inline]
    #[track_caller]
    #[doc(alias = "MPI_Win_flush_local")]
    pub fn flush_local(self, target: i32) -> Result<()> {
        self.raising(self.core.flush_local(target, Location::caller()))
    }

    /// Completes the operations on all targets, at the origin only: their memory may be used again
    /// (MPI-5.0 section 12.5.4).
    ///
    /// ```
    /// # use longshore::{Assert, Info, Window};
    /// # let rank = longshore::init()?;
    /// # let window = Window::allocate(rank.world(), 64, 8, &Info::default())?;
    /// let (long, calls, mut value) = (rank.type_of::<i64>()?, window.raw(), 7i64);
    /// calls.lock_all(Assert::NONE)?;
    /// // SAFETY: the value isn't changed until a flush has returned.
    /// unsafe { calls.put((&raw const value).cast(), 1, &long, 0, 0, 1, &long)? };
    /// calls.flush_local(0)?;
    /// value += 1;
    /// // SAFETY: the value isn't changed until the flush_local_all has returned.
    /// unsafe { calls.put((&raw const value).cast(), 1, &long, 0, 1, 1, &long)? };
    /// calls.flush_local_all()?; // Complete at the origin,
    /// calls.flush_all()?; // and at the target.
    /// calls.unlock_all()?;
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`flush`](Raw::flush).
    #[track_caller]
    #[doc(alias = "MPI_Win_flush_local_all")]
    pub fn flush_local_all(self) -> Result<()> {
        self.raising(self.core.flush_local_all(Location::caller()))
    }

    /// Orders this rank's own loads and stores of its window and those of other ranks (MPI-5.0
    /// section 12.5.4).
    ///
    /// ```
    /// # use longshore::{Assert, Info, Window};
    /// # let rank = longshore::init()?;
    /// # let window = Window::allocate(rank.world(), 8, 8, &Info::default())?;
    /// let calls = window.raw();
    /// calls.lock_all(Assert::NONE)?;
    /// // SAFETY: the window has eight bytes, and no other rank writes them here.
    /// unsafe { window.base().cast::<u64>().write_volatile(1) };
    /// calls.sync()?; // A rank that is notified after this finds the stored value.
    /// calls.unlock_all()?;
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// WIN for a freed window.
    #[track_caller]
    #[doc(alias = "MPI_Win_sync")]
    pub fn sync(self) -> Result<()> {
        self.core.sync(Location::caller())
    }

    /// Puts `origin_count` elements of `origin_type` at `origin` into a target's window (MPI-5.0
    /// section 12.3.1); see [`Epoch::put`](crate::Epoch::put). [`fence`](Raw::fence) and
    /// [`lock`](Raw::lock) have examples.
    ///
    /// # Safety
    /// Until the operation is complete (see [`Raw`]), the elements at `origin` must be initialized
    /// memory that may be read through the pointer. Nobody may write it.
    ///
    /// # Errors
    /// Those of [`Epoch::put`](crate::Epoch::put).
    #[inline(always)]
    #[allow(clippy::too_many_arguments)] // MPI's
    #[track_caller]
    #[doc(alias = "MPI_Put")]
    pub unsafe fn put<'t>(
        self,
        origin: *const u8,
        origin_count: i64,
        origin_type: &Type,
        target: i32,
        target_disp: i64,
        target_count: i64,
        target_type: impl IntoTargetType<'t>,
    ) -> Result<()> {
        let near = Elements::from((origin, origin_count, origin_type));
        let there = (target_count, target_type.into_target_type());
        let call = Call::new(Action::Put, target, target_disp, there);
        self.core.operate(call, Sides::of_origin(near))
    }

    /// Gets elements from a target's window into the memory at `origin` (MPI-5.0 section 12.3.2);
    /// see [`Epoch::get`](crate::Epoch::get). [`lock`](Raw::lock) has an example.
    ///
    /// # Safety
    /// Until the operation is complete (see [`Raw`]), the elements at `origin` must be memory that
    /// may be written through the pointer. Nobody else may read or write it.
    ///
    /// # Errors
    /// Those of [`Epoch::get`](crate::Epoch::get).
    #[inline(always)]
    #[allow(clippy::too_many_arguments)] // MPI's
    #[track_caller]
    #[doc(alias = "MPI_Get")]
    pub unsafe fn get<'t>(
        self,
        origin: *mut u8,
        origin_count: i64,
        origin_type: &Type,
        target: i32,
        target_disp: i64,
        target_count: i64,
        target_type: impl IntoTargetType<'t>,
    ) -> Result<()> {
        let near = Elements::from((origin, origin_count, origin_type));
        let there = (target_count, target_type.into_target_type());
        let call = Call::new(Action::Get, target, target_disp, there);
        self.core.operate(call, Sides::of_result(near))
    }

    /// Combines elements with the contents of a target's window (MPI-5.0 section 12.3.4); see
    /// [`Epoch::accumulate`](crate::Epoch::accumulate). [`lock_all`](Raw::lock_all) has an example.
    ///
    /// # Safety
    /// The contract of [`put`](Raw::put).
    ///
    /// # Errors
    /// Those of [`Epoch::accumulate`](crate::Epoch::accumulate).
    #[inline(always)]
    #[allow(clippy::too_many_arguments)] // MPI's
    #[track_caller]
    #[doc(alias = "MPI_Accumulate")]
    pub unsafe fn accumulate<'t>(
        self,
        origin: *const u8,
        origin_count: i64,
        origin_type: &Type,
        target: i32,
        target_disp: i64,
        target_count: i64,
        target_type: impl IntoTargetType<'t>,
        op: Op,
    ) -> Result<()> {
        let origin = (origin, origin_count, origin_type);
        let there = (target_count, target_type.into_target_type());
        // SAFETY: the caller's promise.
        unsafe { self.accumulating(origin, target, target_disp, there, op) }.operate()
    }

    /// Combines elements with the contents of a target's window, and fetches the old contents
    /// (MPI-5.0 section 12.3.4); see [`Epoch::get_accumulate`](crate::Epoch::get_accumulate). With
    /// [`Op::NoOp`] the origin is ignored, and may be null.
    ///
    /// ```
    /// # use longshore::{Assert, Info, Op, Window};
    /// # let rank = longshore::init()?;
    /// # let window = Window::allocate(rank.world(), 16, 8, &Info::default())?;
    /// # let (long, calls) = (rank.type_of::<i64>()?, window.raw());
    /// let (add, mut before) = ([3i64, 4], [-1i64; 2]);
    /// let (from, to) = (add.as_ptr().cast(), before.as_mut_ptr().cast());
    /// calls.lock_all(Assert::NONE)?;
    /// // SAFETY: the arrays hold two numbers each, and aren't used until the unlock_all has
    /// // returned.
    /// unsafe { calls.get_accumulate((from, 2, &long), (to, 2, &long), 0, 0, 2, &long, Op::Sum)? };
    /// calls.unlock_all()?;
    /// assert_eq!(before[0] % 3, 0);
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Safety
    /// The contract of [`put`](Raw::put) for the origin, and that of [`get`](Raw::get) for the
    /// result.
    ///
    /// # Errors
    /// Those of [`Epoch::get_accumulate`](crate::Epoch::get_accumulate).
    #[inline(always)]
    #[allow(clippy::too_many_arguments)] // MPI's
    #[track_caller]
    #[doc(alias = "MPI_Get_accumulate")]
    pub unsafe fn get_accumulate<'t>(
        self,
        origin: (*const u8, i64, &Type),
        result: (*mut u8, i64, &Type),
        target: i32,
        target_disp: i64,
        target_count: i64,
        target_type: impl IntoTargetType<'t>,
        op: Op,
    ) -> Result<()> {
        let there = (target_count, target_type.into_target_type());
        // SAFETY: the caller's promise.
        unsafe { self.get_accumulating(origin, result, target, target_disp, there, op) }.operate()
    }

    /// Combines one element of a predefined type with the element at the target, and fetches its
    /// old value (MPI-5.0 section 12.3.4). Pair types such as MPI_DOUBLE_INT are allowed.
    ///
    /// ```
    /// # use longshore::{Assert, Info, Op, Window};
    /// # let rank = longshore::init()?;
    /// # let window = Window::allocate(rank.world(), 8, 8, &Info::default())?;
    /// # let (long, calls) = (rank.type_of::<i64>()?, window.raw());
    /// let (one, mut ticket) = (1i64, -1i64);
    /// let (from, to) = ((&raw const one).cast(), (&raw mut ticket).cast());
    /// calls.lock_all(Assert::NONE)?;
    /// // SAFETY: both numbers stay, and aren't used until the unlock_all has returned.
    /// unsafe { calls.fetch_and_op(from, to, &long, 0, 0, Op::Sum)? };
    /// calls.unlock_all()?;
    /// assert!(ticket >= 0);
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Safety
    /// The contract of [`put`](Raw::put) for the origin, and that of [`get`](Raw::get) for the
    /// result.
    ///
    /// # Errors
    /// Those of [`Epoch::fetch_and_op`](crate::Epoch::fetch_and_op).
    #[inline(always)]
    #[track_caller]
    #[doc(alias = "MPI_Fetch_and_op")]
    pub unsafe fn fetch_and_op(
        self,
        origin: *const u8,
        result: *mut u8,
        datatype: &Type,
        target: i32,
        target_disp: i64,
        op: Op,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.fetching(origin, result, datatype, target, target_disp, op) }.operate()
    }

    /// Stores the element at `origin` if the element at the target equals the one at `compare`.
    /// Fetches the old value in both cases (MPI-5.0 section 12.3.4). See
    /// [`Epoch::compare_and_swap`](crate::Epoch::compare_and_swap).
    ///
    /// ```
    /// # use longshore::{Assert, Info, Window};
    /// # let rank = longshore::init()?;
    /// # let window = Window::allocate(rank.world(), 8, 8, &Info::default())?;
    /// # let (long, calls) = (rank.type_of::<i64>()?, window.raw());
    /// let (me, free, mut owner) = (i64::from(rank.world().rank()) + 1, 0i64, -1i64);
    /// let [new, compare] = [&raw const me, &raw const free].map(<*const i64>::cast);
    /// calls.lock_all(Assert::NONE)?;
    /// // SAFETY: the three numbers stay, and aren't used until the unlock_all has returned.
    /// unsafe { calls.compare_and_swap(new, compare, (&raw mut owner).cast(), &long, 0, 0)? };
    /// calls.unlock_all()?;
    /// assert!(owner >= 0);
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Safety
    /// The contract of [`put`](Raw::put) for the origin and for `compare`, and that of
    /// [`get`](Raw::get) for the result.
    ///
    /// # Errors
    /// Those of [`Epoch::compare_and_swap`](crate::Epoch::compare_and_swap).
    #[inline(always)]
    #[track_caller]
    #[doc(alias = "MPI_Compare_and_swap")]
    pub unsafe fn compare_and_swap(
        self,
        origin: *const u8,
        compare: *const u8,
        result: *mut u8,
        datatype: &Type,
        target: i32,
        target_disp: i64,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.swapping([origin, compare], result, datatype, target, target_disp) }.operate()
    }

    /// A [`put`](Raw::put) with a request, which is waited for individually (MPI-5.0 section
    /// 12.3.5). Only in passive epochs.
    ///
    /// ```
    /// # use longshore::{Assert, Info, Window};
    /// # let rank = longshore::init()?;
    /// # let window = Window::allocate(rank.world(), 8, 8, &Info::default())?;
    /// # let (long, calls, value) = (rank.type_of::<i64>()?, window.raw(), 7i64);
    /// calls.lock_all(Assert::NONE)?;
    /// // SAFETY: the value stays until the wait has returned.
    /// let request = unsafe { calls.rput((&raw const value).cast(), 1, &long, 0, 0, 1, &long)? };
    /// request.wait()?;
    /// calls.unlock_all()?;
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Safety
    /// The contract of [`put`](Raw::put). Dropping the request doesn't complete the operation.
    ///
    /// # Errors
    /// Those of [`Epoch::rput`](crate::Epoch::rput).
    #[allow(clippy::too_many_arguments)] // MPI's
    #[track_caller]
    #[doc(alias = "MPI_Rput")]
    pub unsafe fn rput<'t>(
        self,
        origin: *const u8,
        origin_count: i64,
        origin_type: &Type,
        target: i32,
        target_disp: i64,
        target_count: i64,
        target_type: impl IntoTargetType<'t>,
    ) -> Result<Request<()>> {
        let near = Elements::from((origin, origin_count, origin_type));
        let there = (target_count, target_type.into_target_type());
        let call = Call::new(Action::Put, target, target_disp, there);
        start(self.core, Operation::new(call, Sides::of_origin(near)))
    }

    /// A [`get`](Raw::get) with a request, which is waited for individually (MPI-5.0 section
    /// 12.3.5). Only in passive epochs.
    ///
    /// ```
    /// # use longshore::{Assert, Info, Window};
    /// # let rank = longshore::init()?;
    /// # let window = Window::allocate(rank.world(), 8, 8, &Info::default())?;
    /// # let (long, calls) = (rank.type_of::<i64>()?, window.raw());
    /// let mut value = -1i64;
    /// calls.lock_all(Assert::NONE)?;
    /// // SAFETY: the value isn't used until the wait has returned.
    /// unsafe { calls.rget((&raw mut value).cast(), 1, &long, 0, 0, 1, &long)? }.wait()?;
    /// assert_eq!(value, 0);
    /// calls.unlock_all()?;
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Safety
    /// The contract of [`get`](Raw::get). Dropping the request doesn't complete the operation.
    ///
    /// # Errors
    /// Those of [`Epoch::rget`](crate::Epoch::rget).
    #[allow(clippy::too_many_arguments)] // MPI's
    #[track_caller]
    #[doc(alias = "MPI_Rget")]
    pub unsafe fn rget<'t>(
        self,
        origin: *mut u8,
        origin_count: i64,
        origin_type: &Type,
        target: i32,
        target_disp: i64,
        target_count: i64,
        target_type: impl IntoTargetType<'t>,
    ) -> Result<Request<()>> {
        let near = Elements::from((origin, origin_count, origin_type));
        let there = (target_count, target_type.into_target_type());
        let call = Call::new(Action::Get, target, target_disp, there);
        start(self.core, Operation::new(call, Sides::of_result(near)))
    }

    /// An [`accumulate`](Raw::accumulate) with a request, which is waited for individually (MPI-5.0
    /// section 12.3.5). Only in passive epochs.
    ///
    /// ```
    /// # use longshore::{Assert, Info, Op, Window};
    /// # let rank = longshore::init()?;
    /// # let window = Window::allocate(rank.world(), 8, 8, &Info::default())?;
    /// # let (long, calls, one) = (rank.type_of::<i64>()?, window.raw(), 1i64);
    /// calls.lock_all(Assert::NONE)?;
    /// let from = (&raw const one).cast();
    /// // SAFETY: the number stays until the wait has returned.
    /// unsafe { calls.raccumulate(from, 1, &long, 0, 0, 1, &long, Op::Sum)? }.wait()?;
    /// calls.unlock_all()?;
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Safety
    /// The contract of [`rput`](Raw::rput).
    ///
    /// # Errors
    /// Those of [`Epoch::raccumulate`](crate::Epoch::raccumulate).
    #[allow(clippy::too_many_arguments)] // MPI's
    #[track_caller]
    #[doc(alias = "MPI_Raccumulate")]
    pub unsafe fn raccumulate<'t>(
        self,
        origin: *const u8,
        origin_count: i64,
        origin_type: &Type,
        target: i32,
        target_disp: i64,
        target_count: i64,
        target_type: impl IntoTargetType<'t>,
        op: Op,
    ) -> Result<Request<()>> {
        let origin = (origin, origin_count, origin_type);
        let there = (target_count, target_type.into_target_type());
        // SAFETY: the caller's promise.
        let described = unsafe { self.accumulating(origin, target, target_disp, there, op) };
        start(self.core, described.operation())
    }

    /// A [`get_accumulate`](Raw::get_accumulate) with a request, which is waited for individually
    /// (MPI-5.0 section 12.3.5). Only in passive epochs.
    ///
    /// ```
    /// # use longshore::{Assert, Info, Op, Window};
    /// # let rank = longshore::init()?;
    /// # let window = Window::allocate(rank.world(), 8, 8, &Info::default())?;
    /// # let (long, calls) = (rank.type_of::<i64>()?, window.raw());
    /// let (one, mut before) = (1i64, -1i64);
    /// let from = ((&raw const one).cast(), 1, &long);
    /// let to = ((&raw mut before).cast(), 1, &long);
    /// calls.lock_all(Assert::NONE)?;
    /// // SAFETY: both numbers stay, and aren't used until the wait has returned.
    /// unsafe { calls.rget_accumulate(from, to, 0, 0, 1, &long, Op::Sum)? }.wait()?;
    /// assert!(before >= 0);
    /// calls.unlock_all()?;
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Safety
    /// The contract of [`rput`](Raw::rput) for the origin, and that of [`rget`](Raw::rget) for the
    /// result.
    ///
    /// # Errors
    /// Those of [`Epoch::rget_accumulate`](crate::Epoch::rget_accumulate).
    #[allow(clippy::too_many_arguments)] // MPI's
    #[track_caller]
    #[doc(alias = "MPI_Rget_accumulate")]
    pub unsafe fn rget_accumulate<'t>(
        self,
        origin: (*const u8, i64, &Type),
        result: (*mut u8, i64, &Type),
        target: i32,
        target_disp: i64,
        target_count: i64,
        target_type: impl IntoTargetType<'t>,
        op: Op,
    ) -> Result<Request<()>> {
        let there = (target_count, target_type.into_target_type());
        // SAFETY: the caller's promise.
        let described =
            unsafe { self.get_accumulating(origin, result, target, target_disp, there, op) };
        start(self.core, described.operation())
    }
}
