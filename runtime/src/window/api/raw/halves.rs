//! The two halves of the calls that programs make most, for a C interface.
//!
//! [`Raw::accumulate`] is an attempt and, if that fails, the rest of the call. A function that has
//! nothing else to do after the attempt but to call another function for the rest needs no stack
//! for it (docs/tuning.md, "Attempts of calls by C"). So these functions describe a call, of which
//! a half is chosen.
//!
//! ```
//! use longshore::{Assert, Info, Op, TargetType, Window};
//!
//! # let rank = longshore::init()?;
//! let window = Window::allocate(rank.world(), 8, 8, &Info::default())?;
//! let (long, calls) = (rank.type_of::<i64>()?, window.raw());
//! let (one, mut old) = (1i64, -1i64);
//! let (from, to) = ((&raw const one).cast(), (&raw mut old).cast());
//! calls.lock_all(Assert::NONE)?;
//! let (add, room, there) = ((from, 1, &long), (to, 1, &long), (1, TargetType::Own(&long)));
//! for _ in 0..2 {
//!     // SAFETY: both numbers stay, and aren't used until the unlock_all has returned.
//!     let made = unsafe {
//!         [
//!             calls.fetching(from, to, &long, 0, 0, Op::Sum),
//!             calls.accumulating(add, 0, 0, there, Op::Sum),
//!             calls.get_accumulating(add, room, 0, 0, there, Op::Sum),
//!             calls.swapping([from, from], to, &long, 0, 0),
//!         ]
//!     };
//!     for call in made {
//!         if !call.attempt() {
//!             call.rest()?;
//!         }
//!     }
//!     if !calls.attempt_flush_local(0) {
//!         calls.rest_of_flush_local(0)?;
//!     }
//!     if !calls.attempt_flush(0) {
//!         calls.rest_of_flush(0)?;
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
use crate::window::call::{Action, Call};
use crate::window::core::Core;
use crate::window::near::{Elements, Sides};
use crate::window::operation::Operation;

/// An operation that is described, and not made yet.
#[derive(Clone, Copy)]
pub struct Described<'w> {
    core: &'w Core,
    call: Call<'w>,
    sides: Sides<Elements<'w>>,
}

impl<'w> Described<'w> {
    /// The whole call.
    ///
    /// # Errors
    /// Those of the call.
    #[inline(always)]
    #[track_caller]
    pub(super) fn operate(self) -> Result<()> {
        self.core.operate(self.call, self.sides)
    }

    /// The attempt: whether the call is made. Otherwise nothing is done, and
    /// [`rest`](Described::rest) makes the call.
    #[inline(always)]
    pub fn attempt(self) -> bool {
        self.core.attempt(self.call, self.sides)
    }

    /// The rest of a call whose attempt has just failed.
    ///
    /// # Errors
    /// Those of the call.
    #[inline]
    #[track_caller]
    pub fn rest(self) -> Result<()> {
        self.core.rest(&self.operation())
    }

    #[inline(always)]
    pub(super) fn operation(self) -> Operation<'w> {
        Operation::new(self.call, self.sides)
    }
}

impl<'w> Raw<'w> {
    /// [`Raw::accumulate`] of elements, at a target and a displacement, on `there`: the count and
    /// the type of the target's elements.
    ///
    /// # Safety
    /// The contract of [`Raw::accumulate`].
    #[doc(hidden)]
    #[inline]
    pub unsafe fn accumulating(
        self,
        origin: (*const u8, i64, &'w Type),
        target: i32,
        target_disp: i64,
        there: (i64, TargetType<'w>),
        op: Op,
    ) -> Described<'w> {
        let call = Call::new(Action::Accumulate(op), target, target_disp, there);
        Described { core: self.core, call, sides: Sides::of_origin(origin.into()) }
    }

    /// [`Raw::get_accumulate`], as [`accumulating`](Raw::accumulating) has its arguments.
    ///
    /// # Safety
    /// The contract of [`Raw::get_accumulate`].
    #[doc(hidden)]
    #[inline]
    pub unsafe fn get_accumulating(
        self,
        origin: (*const u8, i64, &'w Type),
        result: (*mut u8, i64, &'w Type),
        target: i32,
        target_disp: i64,
        there: (i64, TargetType<'w>),
        op: Op,
    ) -> Described<'w> {
        let action = Action::GetAccumulate(op);
        let sides = Sides::fetching(action, origin.into(), result.into());
        Described { core: self.core, call: Call::new(action, target, target_disp, there), sides }
    }

    /// [`Raw::fetch_and_op`].
    ///
    /// # Safety
    /// The contract of [`Raw::fetch_and_op`].
    #[doc(hidden)]
    #[inline]
    pub unsafe fn fetching(
        self,
        origin: *const u8,
        result: *mut u8,
        datatype: &'w Type,
        target: i32,
        target_disp: i64,
        op: Op,
    ) -> Described<'w> {
        let (action, there) = (Action::FetchAndOp(op), (1, TargetType::Own(datatype)));
        let one = |place| Elements::one(place, datatype);
        let sides = Sides::fetching(action, one(origin.cast_mut()), one(result));
        Described { core: self.core, call: Call::new(action, target, target_disp, there), sides }
    }

    /// [`Raw::compare_and_swap`], by the new value and the one to compare with.
    ///
    /// # Safety
    /// The contract of [`Raw::compare_and_swap`].
    #[doc(hidden)]
    #[inline]
    pub unsafe fn swapping(
        self,
        [origin, compare]: [*const u8; 2],
        result: *mut u8,
        datatype: &'w Type,
        target: i32,
        target_disp: i64,
    ) -> Described<'w> {
        let there = (1, TargetType::Own(datatype));
        let call = Call::new(Action::CompareAndSwap, target, target_disp, there);
        let one = |place| Some(Elements::one(place, datatype));
        let (origin, compare) = (one(origin.cast_mut()), one(compare.cast_mut()));
        let sides = Sides { origin, result: one(result), compare };
        Described { core: self.core, call, sides }
    }

    /// The attempt of [`Raw::flush`]: whether the call is made.
    #[doc(hidden)]
    #[inline]
    pub fn attempt_flush(self, target: i32) -> bool {
        self.core.try_flush(target)
    }

    /// The attempt of [`Raw::flush_local`]: whether the call is made.
    #[doc(hidden)]
    #[inline]
    pub fn attempt_flush_local(self, target: i32) -> bool {
        self.core.try_flush_local(target)
    }

    /// [`Raw::flush`] after its attempt has failed.
    ///
    /// # Errors
    /// Those of [`Raw::flush`].
    #[doc(hidden)]
    #[inline]
    #[track_caller]
    pub fn rest_of_flush(self, target: i32) -> Result<()> {
        self.raising(self.core.flush_rest(target, Location::caller()))
    }

    /// [`Raw::flush_local`] after its attempt has failed.
    ///
    /// # Errors
    /// Those of [`Raw::flush_local`].
    #[doc(hidden)]
    #[inline]
    #[track_caller]
    pub fn rest_of_flush_local(self, target: i32) -> Result<()> {
        self.raising(self.core.flush_local_rest(target, Location::caller()))
    }
}
