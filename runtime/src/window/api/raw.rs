//! The calls of a window without scopes: epochs are opened and closed one call at a time, and origins are pointers with a
//! count and a type, as in MPI.
//!
//! These are the calls that the scopes make, with all of their checks; what a scope knows by its borrows, the caller promises
//! here. A C interface is these calls with handles for types.
//!
//! How long an operation may use its memory says [`Raw`].
#![allow(unsafe_code)]

use std::panic::Location;

use shipable::reduce::Op;

use super::request::{Request, start};
use crate::assert::Assert;
use crate::error::Result;
use crate::group::Group;
use crate::origin::What;
use crate::raw::pointed;
use crate::types::{TargetType, Type};
use crate::window::core::Core;
use crate::window::operation::{Action, Operation, Side};
use crate::window::sync::lock::LockType;

/// A window's calls without scopes; see [`Window::raw`](crate::Window::raw).
///
/// Operations are unsafe, since they point to memory that they use **until they are complete**: until a call that completes
/// them, as MPI says which do ([`flush`](Raw::flush), [`unlock`](Raw::unlock), [`unlock_all`](Raw::unlock_all),
/// [`complete`](Raw::complete), [`fence`](Raw::fence) and their like; [`wait`](Request::wait) of a request), has returned. A
/// failure of such a call completes them as well, but if the call is refused (RMA_SYNC, ASSERT, RANK), operations remain pending
/// and their memory must stay. An operation that fails may use its memory until then too. What lies between the elements is left
/// alone, and may be anybody's. A local flush completes them at the origin, which is what their memory needs. All other calls are safe: out of order they are
/// refused.
///
/// Posts, waits and tests are without scopes anyway: [`Window::post`](crate::Window::post).
#[derive(Clone, Copy)]
pub struct Raw<'w> {
    core: &'w Core,
}

impl<'w> Raw<'w> {
    pub(in crate::window) fn new(core: &'w Core) -> Raw<'w> {
        Raw { core }
    }

    /// A fence (MPI-5.0 section 12.5.1). Collective. It ends the fence epoch, if one is open, and without
    /// [`Assert::NOSUCCEED`] opens another.
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
    /// As [`Window::fence_with`](crate::Window::fence_with).
    #[track_caller]
    pub fn fence(self, assert: Assert) -> Result<()> {
        self.core.called(Location::caller());
        self.core.fence(assert)
    }

    /// Opens an access epoch to a group once each of its ranks has [posted](crate::Window::post) (MPI-5.0 section 12.5.2).
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
    /// As [`Window::start`](crate::Window::start), but for those of operations.
    #[track_caller]
    pub fn start(self, group: &Group, assert: Assert) -> Result<()> {
        self.core.called(Location::caller());
        self.core.start(group, assert)
    }

    /// Ends the epoch that [`start`](Raw::start) opened; see there.
    ///
    /// # Errors
    /// RMA_SYNC without a start (rule 4); the first operation to fail; PROC_ABORTED where a target died.
    pub fn complete(self) -> Result<()> {
        self.core.complete()
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
    /// // SAFETY: the number that is got is looked at behind the flush, and both stay until the unlock has returned.
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
    /// As [`Window::lock_with`](crate::Window::lock_with), but for those of operations.
    pub fn lock(self, target: i32, lock_type: LockType, assert: Assert) -> Result<()> {
        self.core.lock(target, lock_type, assert)
    }

    /// Completes the operations on a target, and gives its lock back; see [`lock`](Raw::lock).
    ///
    /// # Errors
    /// RMA_SYNC for a target that isn't locked (rule 5); RANK, for PROC_NULL too; the first operation to fail; PROC_ABORTED where the
    /// target died.
    pub fn unlock(self, target: i32) -> Result<()> {
        self.core.unlock(target)
    }

    /// Locks all targets, shared (MPI-5.0 section 12.5.3).
    ///
    /// ```
    /// # use longshore::{Assert, Info, Op, Window};
    /// # let rank = longshore::init()?;
    /// # let world = rank.world();
    /// # let window = Window::allocate(world, 8, 8, &Info::default())?;
    /// # let (long, calls, one) = (rank.type_of::<i64>()?, window.raw(), 1i64);
    /// calls.lock_all(Assert::NONE)?;
    /// for target in 0..world.size() {
    ///     // SAFETY: the number stays until the unlock_all has returned.
    ///     unsafe { calls.accumulate((&raw const one).cast(), 1, &long, target, 0, 1, &long, Op::Sum)? };
    /// }
    /// calls.unlock_all()?;
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Window::lock_all_with`](crate::Window::lock_all_with), but for those of operations.
    pub fn lock_all(self, assert: Assert) -> Result<()> {
        self.core.lock_all(assert)
    }

    /// Completes all operations, and gives all locks back; see [`lock_all`](Raw::lock_all).
    ///
    /// # Errors
    /// As [`unlock`](Raw::unlock); RMA_SYNC without a lock_all (rule 4).
    pub fn unlock_all(self) -> Result<()> {
        self.core.unlock_all()
    }

    /// Completes the operations on a target, here and there (MPI-5.0 section 12.5.4); see [`lock`](Raw::lock).
    ///
    /// # Errors
    /// RMA_SYNC outside of a passive epoch (rule 11); the first operation to fail; PROC_ABORTED where the target died.
    #[inline]
    pub fn flush(self, target: i32) -> Result<()> {
        self.core.flush(target)
    }

    /// As [`flush`](Raw::flush), for all targets.
    ///
    /// # Errors
    /// As [`flush`](Raw::flush).
    #[inline]
    pub fn flush_all(self) -> Result<()> {
        self.core.flush_all()
    }

    /// As [`flush`](Raw::flush), at this side only: memory may be used again.
    ///
    /// # Errors
    /// As [`flush`](Raw::flush).
    pub fn flush_local(self, target: i32) -> Result<()> {
        self.core.flush_local(target)
    }

    /// As [`flush_local`](Raw::flush_local), for all targets.
    ///
    /// ```
    /// # use longshore::{Assert, Info, Window};
    /// # let rank = longshore::init()?;
    /// # let window = Window::allocate(rank.world(), 64, 8, &Info::default())?;
    /// let (long, calls, mut value) = (rank.type_of::<i64>()?, window.raw(), 7i64);
    /// calls.lock_all(Assert::NONE)?;
    /// // SAFETY: the value is left alone until a flush has returned.
    /// unsafe { calls.put((&raw const value).cast(), 1, &long, 0, 0, 1, &long)? };
    /// calls.flush_local(0)?;
    /// value += 1;
    /// // SAFETY: as above.
    /// unsafe { calls.put((&raw const value).cast(), 1, &long, 0, 1, 1, &long)? };
    /// calls.flush_local_all()?; // At this side,
    /// calls.flush_all()?; // and at the target's.
    /// calls.unlock_all()?;
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`flush`](Raw::flush).
    pub fn flush_local_all(self) -> Result<()> {
        self.core.flush_local_all()
    }

    /// Orders this rank's own loads and stores of its window against those of others (MPI-5.0 section 12.5.4).
    ///
    /// ```
    /// # use longshore::{Assert, Info, Window};
    /// # let rank = longshore::init()?;
    /// # let window = Window::allocate(rank.world(), 8, 8, &Info::default())?;
    /// let calls = window.raw();
    /// calls.lock_all(Assert::NONE)?;
    /// // SAFETY: the window has eight bytes, and no other rank writes them here.
    /// unsafe { window.base().cast::<u64>().write_volatile(1) };
    /// calls.sync()?; // From here on whoever is told that it is done finds it done.
    /// calls.unlock_all()?;
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// WIN for a freed window.
    pub fn sync(self) -> Result<()> {
        self.core.sync()
    }

    /// Puts `origin_count` elements of `origin_type` at `origin` into a target's window (MPI-5.0 section 12.3.1), as
    /// [`Epoch::put`](crate::Epoch::put); examples at [`fence`](Raw::fence) and [`lock`](Raw::lock).
    ///
    /// # Safety
    /// Until it is complete (see [`Raw`]) the elements at `origin` are memory that may be read by it, has been written, and is
    /// written by nobody.
    ///
    /// # Errors
    /// As [`Epoch::put`](crate::Epoch::put).
    #[inline(always)]
    #[allow(clippy::too_many_arguments)] // MPI's
    #[track_caller]
    pub unsafe fn put<'t>(
        self,
        origin: *const u8,
        origin_count: i64,
        origin_type: &Type,
        target: i32,
        target_disp: i64,
        target_count: i64,
        target_type: impl Into<TargetType<'t>>,
    ) -> Result<()> {
        let (span, what) = pointed(origin.cast_mut(), origin_count, origin_type);
        let target_type = target_type.into();
        let (action, at) = (Action::Put, target_disp);
        self.core.transfer(action, span, what, target, at, target_count, target_type)
    }

    /// Gets elements from a target's window (MPI-5.0 section 12.3.2), as [`Epoch::get`](crate::Epoch::get); an example at
    /// [`lock`](Raw::lock).
    ///
    /// # Safety
    /// Until it is complete (see [`Raw`]) the elements at `origin` are memory that may be written by it, and that nobody else reads or
    /// writes.
    ///
    /// # Errors
    /// As [`Epoch::get`](crate::Epoch::get).
    #[inline(always)]
    #[allow(clippy::too_many_arguments)] // MPI's
    #[track_caller]
    pub unsafe fn get<'t>(
        self,
        origin: *mut u8,
        origin_count: i64,
        origin_type: &Type,
        target: i32,
        target_disp: i64,
        target_count: i64,
        target_type: impl Into<TargetType<'t>>,
    ) -> Result<()> {
        let (span, what) = pointed(origin, origin_count, origin_type);
        let target_type = target_type.into();
        let (action, at) = (Action::Get, target_disp);
        self.core.transfer(action, span, what, target, at, target_count, target_type)
    }

    /// Combines elements with what a target's window holds (MPI-5.0 section 12.3.4), as
    /// [`Epoch::accumulate`](crate::Epoch::accumulate); an example at [`lock_all`](Raw::lock_all).
    ///
    /// # Safety
    /// As [`put`](Raw::put).
    ///
    /// # Errors
    /// As [`Epoch::accumulate`](crate::Epoch::accumulate).
    #[inline(always)]
    #[allow(clippy::too_many_arguments)] // MPI's
    #[track_caller]
    pub unsafe fn accumulate<'t>(
        self,
        origin: *const u8,
        origin_count: i64,
        origin_type: &Type,
        target: i32,
        target_disp: i64,
        target_count: i64,
        target_type: impl Into<TargetType<'t>>,
        op: Op,
    ) -> Result<()> {
        let origin = pointed(origin.cast_mut(), origin_count, origin_type);
        let target_type = target_type.into();
        let (action, at) = (Action::Accumulate(op), target_disp);
        self.core.accumulate(action, origin, None, target, at, target_count, target_type)
    }

    /// As [`accumulate`](Raw::accumulate), and gets what was there (MPI-5.0 section 12.3.4), as
    /// [`Epoch::get_accumulate`](crate::Epoch::get_accumulate). With [`Op::NoOp`] the origin isn't looked at: it may be null.
    ///
    /// ```
    /// # use longshore::{Assert, Info, Op, Window};
    /// # let rank = longshore::init()?;
    /// # let window = Window::allocate(rank.world(), 16, 8, &Info::default())?;
    /// # let (long, calls) = (rank.type_of::<i64>()?, window.raw());
    /// let (add, mut before) = ([3i64, 4], [-1i64; 2]);
    /// let (from, to) = (add.as_ptr().cast(), before.as_mut_ptr().cast());
    /// calls.lock_all(Assert::NONE)?;
    /// // SAFETY: the arrays hold two numbers each, and stay as they are until the unlock_all has returned.
    /// unsafe { calls.get_accumulate((from, 2, &long), (to, 2, &long), 0, 0, 2, &long, Op::Sum)? };
    /// calls.unlock_all()?;
    /// assert_eq!(before[0] % 3, 0);
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Safety
    /// As [`put`](Raw::put) for the origin, as [`get`](Raw::get) for the result.
    ///
    /// # Errors
    /// As [`Epoch::get_accumulate`](crate::Epoch::get_accumulate).
    #[inline(always)]
    #[allow(clippy::too_many_arguments)] // MPI's
    #[track_caller]
    pub unsafe fn get_accumulate<'t>(
        self,
        (origin, origin_count, origin_type): (*const u8, i64, &Type),
        (result, result_count, result_type): (*mut u8, i64, &Type),
        target: i32,
        target_disp: i64,
        target_count: i64,
        target_type: impl Into<TargetType<'t>>,
        op: Op,
    ) -> Result<()> {
        let origin = pointed(origin.cast_mut(), origin_count, origin_type);
        let result = Some(pointed(result, result_count, result_type));
        let target_type = target_type.into();
        let (action, at) = (Action::GetAccumulate(op), target_disp);
        self.core.accumulate(action, origin, result, target, at, target_count, target_type)
    }

    /// As [`get_accumulate`](Raw::get_accumulate) of one element of a predefined type (MPI-5.0 section 12.3.4), pairs
    /// included.
    ///
    /// ```
    /// # use longshore::{Assert, Info, Op, Window};
    /// # let rank = longshore::init()?;
    /// # let window = Window::allocate(rank.world(), 8, 8, &Info::default())?;
    /// # let (long, calls) = (rank.type_of::<i64>()?, window.raw());
    /// let (one, mut ticket) = (1i64, -1i64);
    /// let (from, to) = ((&raw const one).cast(), (&raw mut ticket).cast());
    /// calls.lock_all(Assert::NONE)?;
    /// // SAFETY: both numbers stay as they are until the unlock_all has returned.
    /// unsafe { calls.fetch_and_op(from, to, &long, 0, 0, Op::Sum)? };
    /// calls.unlock_all()?;
    /// assert!(ticket >= 0);
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Safety
    /// As [`put`](Raw::put) for the origin, as [`get`](Raw::get) for the result.
    ///
    /// # Errors
    /// As [`Epoch::fetch_and_op`](crate::Epoch::fetch_and_op).
    #[inline(always)]
    #[track_caller]
    pub unsafe fn fetch_and_op(
        self,
        origin: *const u8,
        result: *mut u8,
        datatype: &Type,
        target: i32,
        target_disp: i64,
        op: Op,
    ) -> Result<()> {
        let origin = pointed(origin.cast_mut(), 1, datatype);
        let result = Some(pointed(result, 1, datatype));
        let (action, own) = (Action::FetchAndOp(op), TargetType::Own(datatype));
        self.core.accumulate(action, origin, result, target, target_disp, 1, own)
    }

    /// Puts the element at `origin` where the one at the target equals the one at `compare`, and gets what was there
    /// (MPI-5.0 section 12.3.4), as [`Epoch::compare_and_swap`](crate::Epoch::compare_and_swap).
    ///
    /// ```
    /// # use longshore::{Assert, Info, Window};
    /// # let rank = longshore::init()?;
    /// # let window = Window::allocate(rank.world(), 8, 8, &Info::default())?;
    /// # let (long, calls) = (rank.type_of::<i64>()?, window.raw());
    /// let (me, free, mut owner) = (i64::from(rank.world().rank()) + 1, 0i64, -1i64);
    /// let [new, compare] = [&raw const me, &raw const free].map(<*const i64>::cast);
    /// calls.lock_all(Assert::NONE)?;
    /// // SAFETY: the three numbers stay as they are until the unlock_all has returned.
    /// unsafe { calls.compare_and_swap(new, compare, (&raw mut owner).cast(), &long, 0, 0)? };
    /// calls.unlock_all()?;
    /// assert!(owner >= 0);
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Safety
    /// As [`put`](Raw::put) for the origin and the element to compare, as [`get`](Raw::get) for the result.
    ///
    /// # Errors
    /// As [`Epoch::compare_and_swap`](crate::Epoch::compare_and_swap).
    #[inline(always)]
    #[track_caller]
    pub unsafe fn compare_and_swap(
        self,
        origin: *const u8,
        compare: *const u8,
        result: *mut u8,
        datatype: &Type,
        target: i32,
        target_disp: i64,
    ) -> Result<()> {
        let places = [compare.cast_mut(), origin.cast_mut(), result];
        let spans = places.map(|place| pointed(place, 1, datatype).0);
        let what = What::Typed { count: 1, datatype, at: 0, native: None };
        self.core.swap(spans, what, target, target_disp, TargetType::Own(datatype))
    }

    /// As [`put`](Raw::put), to be waited for by itself (MPI-5.0 section 12.3.5). Passive epochs only.
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
    /// As [`put`](Raw::put). A request that is dropped completes nothing.
    ///
    /// # Errors
    /// As [`Epoch::rput`](crate::Epoch::rput).
    #[allow(clippy::too_many_arguments)] // MPI's
    #[track_caller]
    pub unsafe fn rput<'t>(
        self,
        origin: *const u8,
        origin_count: i64,
        origin_type: &Type,
        target: i32,
        target_disp: i64,
        target_count: i64,
        target_type: impl Into<TargetType<'t>>,
    ) -> Result<Request<()>> {
        let (span, what) = pointed(origin.cast_mut(), origin_count, origin_type);
        let place = (target, target_disp, target_count, target_type.into());
        let origin = Some(Side { what, span });
        start(self.core, Operation::new(Action::Put, place, origin, None))
    }

    /// As [`get`](Raw::get), to be waited for by itself (MPI-5.0 section 12.3.5). Passive epochs only.
    ///
    /// ```
    /// # use longshore::{Assert, Info, Window};
    /// # let rank = longshore::init()?;
    /// # let window = Window::allocate(rank.world(), 8, 8, &Info::default())?;
    /// # let (long, calls) = (rank.type_of::<i64>()?, window.raw());
    /// let mut value = -1i64;
    /// calls.lock_all(Assert::NONE)?;
    /// // SAFETY: the value is left alone until the wait has returned.
    /// unsafe { calls.rget((&raw mut value).cast(), 1, &long, 0, 0, 1, &long)? }.wait()?;
    /// assert_eq!(value, 0);
    /// calls.unlock_all()?;
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Safety
    /// As [`get`](Raw::get). A request that is dropped completes nothing.
    ///
    /// # Errors
    /// As [`Epoch::rget`](crate::Epoch::rget).
    #[allow(clippy::too_many_arguments)] // MPI's
    #[track_caller]
    pub unsafe fn rget<'t>(
        self,
        origin: *mut u8,
        origin_count: i64,
        origin_type: &Type,
        target: i32,
        target_disp: i64,
        target_count: i64,
        target_type: impl Into<TargetType<'t>>,
    ) -> Result<Request<()>> {
        let (span, what) = pointed(origin, origin_count, origin_type);
        let place = (target, target_disp, target_count, target_type.into());
        let result = Some(Side { what, span });
        start(self.core, Operation::new(Action::Get, place, None, result))
    }

    /// As [`accumulate`](Raw::accumulate), to be waited for by itself (MPI-5.0 section 12.3.5). Passive epochs only.
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
    /// As [`rput`](Raw::rput).
    ///
    /// # Errors
    /// As [`Epoch::raccumulate`](crate::Epoch::raccumulate).
    #[allow(clippy::too_many_arguments)] // MPI's
    #[track_caller]
    pub unsafe fn raccumulate<'t>(
        self,
        origin: *const u8,
        origin_count: i64,
        origin_type: &Type,
        target: i32,
        target_disp: i64,
        target_count: i64,
        target_type: impl Into<TargetType<'t>>,
        op: Op,
    ) -> Result<Request<()>> {
        let (span, what) = pointed(origin.cast_mut(), origin_count, origin_type);
        let place = (target, target_disp, target_count, target_type.into());
        let origin = Some(Side { what, span });
        start(self.core, Operation::new(Action::Accumulate(op), place, origin, None))
    }

    /// As [`get_accumulate`](Raw::get_accumulate), to be waited for by itself (MPI-5.0 section 12.3.5). Passive epochs
    /// only.
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
    /// // SAFETY: both numbers are left alone until the wait has returned.
    /// unsafe { calls.rget_accumulate(from, to, 0, 0, 1, &long, Op::Sum)? }.wait()?;
    /// assert!(before >= 0);
    /// calls.unlock_all()?;
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Safety
    /// As [`rput`](Raw::rput) for the origin, as [`rget`](Raw::rget) for the result.
    ///
    /// # Errors
    /// As [`Epoch::rget_accumulate`](crate::Epoch::rget_accumulate).
    #[allow(clippy::too_many_arguments)] // MPI's
    #[track_caller]
    pub unsafe fn rget_accumulate<'t>(
        self,
        (origin, origin_count, origin_type): (*const u8, i64, &Type),
        (result, result_count, result_type): (*mut u8, i64, &Type),
        target: i32,
        target_disp: i64,
        target_count: i64,
        target_type: impl Into<TargetType<'t>>,
        op: Op,
    ) -> Result<Request<()>> {
        let (origin, from) = pointed(origin.cast_mut(), origin_count, origin_type);
        let (result, to) = pointed(result, result_count, result_type);
        let place = (target, target_disp, target_count, target_type.into());
        let (origin, result) = (Side { what: from, span: origin }, Side { what: to, span: result });
        let action = Action::GetAccumulate(op);
        start(self.core, Operation::new(action, place, Some(origin), Some(result)))
    }
}
