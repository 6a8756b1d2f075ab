//! The two halves of the calls that programs make most, for a C interface.
//!
//! [`Raw::accumulate`] is an attempt and, if that fails, the rest of the call. A function that has
//! nothing else to do after the attempt but to call another function for the rest needs no stack
//! for it (docs/tuning.md, "Attempts of calls by C").
//!
//! ```
//! use longshore::{Assert, Info, Op, Window};
//!
//! # let rank = longshore::init()?;
//! let window = Window::allocate(rank.world(), 8, 8, &Info::default())?;
//! let (long, calls) = (rank.type_of::<i64>()?, window.raw());
//! let (one, mut old) = (1i64, -1i64);
//! let (from, to) = ((&raw const one).cast(), (&raw mut old).cast());
//! calls.lock_all(Assert::NONE)?;
//! for _ in 0..2 {
//!     // SAFETY: both numbers stay, and aren't used until the unlock_all has returned.
//!     unsafe {
//!         if !calls.attempt().fetch_and_op(from, to, &long, 0, 0, Op::Sum) {
//!             calls.rest().fetch_and_op(from, to, &long, 0, 0, Op::Sum)?;
//!         }
//!         if !calls.attempt().accumulate(from, 1, &long, 0, 0, 1, &long, Op::Sum) {
//!             calls.rest().accumulate(from, 1, &long, 0, 0, 1, &long, Op::Sum)?;
//!         }
//!         let (add, room) = ((from, 1, &long), (to, 1, &long));
//!         if !calls.attempt().get_accumulate(add, room, 0, 0, 1, &long, Op::Sum) {
//!             calls.rest().get_accumulate(add, room, 0, 0, 1, &long, Op::Sum)?;
//!         }
//!         if !calls.attempt().compare_and_swap(from, from, to, &long, 0, 0) {
//!             calls.rest().compare_and_swap(from, from, to, &long, 0, 0)?;
//!         }
//!     }
//!     if !calls.attempt().flush_local(0) {
//!         calls.rest().flush_local(0)?;
//!     }
//!     if !calls.attempt().flush(0) {
//!         calls.rest().flush(0)?;
//!     }
//! }
//! calls.unlock_all()?;
//! assert!(window.get::<i64>(0)? >= 6);
//! # window.free()?;
//! # rank.finalize()?;
//! # Ok::<(), longshore::Error>(())
//! ```

use std::panic::Location;

use shipable::reduce::Op;

use super::Raw;
use crate::error::Result;
use crate::types::{TargetType, Type};
use crate::window::core::Core;
use crate::window::operation::Action;

/// The attempts of a window's calls. Each returns whether the call is made. Otherwise it has done
/// nothing, and [`Rest`] makes the call.
#[derive(Clone, Copy)]
pub struct Attempt<'w> {
    core: &'w Core,
}

/// A window's calls whose [`Attempt`] has just failed.
#[derive(Clone, Copy)]
pub struct Rest<'w> {
    core: &'w Core,
}

impl<'w> Raw<'w> {
    /// The attempts of the calls.
    #[doc(hidden)]
    #[inline(always)]
    pub fn attempt(self) -> Attempt<'w> {
        Attempt { core: self.core }
    }

    /// The calls whose attempts have failed.
    #[doc(hidden)]
    #[inline(always)]
    pub fn rest(self) -> Rest<'w> {
        Rest { core: self.core }
    }
}

impl Attempt<'_> {
    /// [`Raw::accumulate`].
    ///
    /// # Safety
    /// The contract of [`Raw::accumulate`].
    #[inline(always)]
    #[allow(clippy::too_many_arguments)] // MPI's
    pub unsafe fn accumulate(
        self,
        origin: *const u8,
        origin_count: i64,
        origin_type: &Type,
        target: i32,
        target_disp: i64,
        target_count: i64,
        target_type: &Type,
        op: Op,
    ) -> bool {
        let origin = (origin.cast_mut(), origin_count, origin_type);
        let (action, at) = (Action::Accumulate(op), target_disp);
        self.core.try_accumulate(action, origin, None, target, at, target_count, target_type)
    }

    /// [`Raw::get_accumulate`].
    ///
    /// # Safety
    /// The contract of [`Raw::get_accumulate`].
    #[inline(always)]
    #[allow(clippy::too_many_arguments)] // MPI's
    pub unsafe fn get_accumulate(
        self,
        (origin, origin_count, origin_type): (*const u8, i64, &Type),
        result: (*mut u8, i64, &Type),
        target: i32,
        target_disp: i64,
        target_count: i64,
        target_type: &Type,
        op: Op,
    ) -> bool {
        let (origin, result) = ((origin.cast_mut(), origin_count, origin_type), Some(result));
        let (action, at) = (Action::GetAccumulate(op), target_disp);
        self.core.try_accumulate(action, origin, result, target, at, target_count, target_type)
    }

    /// [`Raw::fetch_and_op`].
    ///
    /// # Safety
    /// The contract of [`Raw::fetch_and_op`].
    #[inline(always)]
    pub unsafe fn fetch_and_op(
        self,
        origin: *const u8,
        result: *mut u8,
        datatype: &Type,
        target: i32,
        target_disp: i64,
        op: Op,
    ) -> bool {
        self.core.try_fetch(op, origin.cast_mut(), result, target, target_disp, datatype)
    }

    /// [`Raw::compare_and_swap`].
    ///
    /// # Safety
    /// The contract of [`Raw::compare_and_swap`].
    #[inline(always)]
    pub unsafe fn compare_and_swap(
        self,
        origin: *const u8,
        compare: *const u8,
        result: *mut u8,
        datatype: &Type,
        target: i32,
        target_disp: i64,
    ) -> bool {
        let places = [compare.cast_mut(), origin.cast_mut(), result];
        self.core.try_swap(places, target, target_disp, datatype)
    }

    /// [`Raw::flush`].
    #[inline(always)]
    pub fn flush(self, target: i32) -> bool {
        self.core.try_flush(target)
    }

    /// [`Raw::flush_local`].
    #[inline(always)]
    pub fn flush_local(self, target: i32) -> bool {
        self.core.try_flush_local(target)
    }
}

impl Rest<'_> {
    /// [`Raw::accumulate`].
    ///
    /// # Safety
    /// The contract of [`Raw::accumulate`].
    ///
    /// # Errors
    /// Those of [`Raw::accumulate`].
    #[inline(always)]
    #[allow(clippy::too_many_arguments)] // MPI's
    #[track_caller]
    pub unsafe fn accumulate(
        self,
        origin: *const u8,
        origin_count: i64,
        origin_type: &Type,
        target: i32,
        target_disp: i64,
        target_count: i64,
        target_type: &Type,
        op: Op,
    ) -> Result<()> {
        let origin = (origin.cast_mut(), origin_count, origin_type);
        let place = (target, target_disp, target_count, TargetType::Own(target_type));
        self.core.accumulate_rest(Action::Accumulate(op), origin, None, place)
    }

    /// [`Raw::get_accumulate`].
    ///
    /// # Safety
    /// The contract of [`Raw::get_accumulate`].
    ///
    /// # Errors
    /// Those of [`Raw::get_accumulate`].
    #[inline(always)]
    #[allow(clippy::too_many_arguments)] // MPI's
    #[track_caller]
    pub unsafe fn get_accumulate(
        self,
        (origin, origin_count, origin_type): (*const u8, i64, &Type),
        result: (*mut u8, i64, &Type),
        target: i32,
        target_disp: i64,
        target_count: i64,
        target_type: &Type,
        op: Op,
    ) -> Result<()> {
        let (origin, result) = ((origin.cast_mut(), origin_count, origin_type), Some(result));
        let place = (target, target_disp, target_count, TargetType::Own(target_type));
        self.core.accumulate_rest(Action::GetAccumulate(op), origin, result, place)
    }

    /// [`Raw::fetch_and_op`].
    ///
    /// # Safety
    /// The contract of [`Raw::fetch_and_op`].
    ///
    /// # Errors
    /// Those of [`Raw::fetch_and_op`].
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
        self.core.fetch_rest(op, origin.cast_mut(), result, target, target_disp, datatype)
    }

    /// [`Raw::compare_and_swap`].
    ///
    /// # Safety
    /// The contract of [`Raw::compare_and_swap`].
    ///
    /// # Errors
    /// Those of [`Raw::compare_and_swap`].
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
        self.core.swap_rest(places, target, target_disp, datatype)
    }

    /// [`Raw::flush`].
    ///
    /// # Errors
    /// Those of [`Raw::flush`].
    #[inline(always)]
    #[track_caller]
    pub fn flush(self, target: i32) -> Result<()> {
        let caller = Location::caller();
        Raw { core: self.core }.raising(self.core.flush_rest(target, caller))
    }

    /// [`Raw::flush_local`].
    ///
    /// # Errors
    /// Those of [`Raw::flush_local`].
    #[inline(always)]
    #[track_caller]
    pub fn flush_local(self, target: i32) -> Result<()> {
        let caller = Location::caller();
        Raw { core: self.core }.raising(self.core.flush_local_rest(target, caller))
    }
}
