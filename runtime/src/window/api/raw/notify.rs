//! Notified operations by pointer; see [`Epoch::put_notify`](crate::Epoch::put_notify).

use shipable::reduce::Op;

use super::Raw;
use crate::error::Result;
use crate::types::{IntoTargetType, Type};
use crate::window::call::{Action, Call};
use crate::window::near::{Elements, Sides};

impl Raw<'_> {
    /// Puts elements into a target's window, and raises counter `notify` there when they have
    /// arrived; see [`Epoch::put_notify`](crate::Epoch::put_notify).
    ///
    /// ```
    /// # use longshore::{Assert, Info, Window};
    /// # let rank = longshore::init()?;
    /// # let info = Info { max_num_notify: 1, ..Info::default() };
    /// # let window = Window::allocate(rank.world(), 8, 8, &info)?;
    /// # let (long, calls, value) = (rank.type_of::<i64>()?, window.raw(), 7i64);
    /// let (me, from) = (rank.world().rank(), (&raw const value).cast());
    /// calls.lock_all(Assert::NONE)?;
    /// // SAFETY: the value stays until the unlock_all has returned.
    /// unsafe { calls.put_notify(from, 1, &long, me, 0, 1, &long, 0)? };
    /// window.wait_notify(0, 1)?;
    /// calls.unlock_all()?;
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Safety
    /// The contract of [`put`](Raw::put). A notification doesn't complete the operation at the
    /// origin.
    ///
    /// # Errors
    /// Those of [`Epoch::put_notify`](crate::Epoch::put_notify).
    #[inline(always)]
    #[allow(clippy::too_many_arguments)] // MPI's
    #[track_caller]
    #[doc(alias = "MPI_Put_notify")]
    pub unsafe fn put_notify<'t>(
        self,
        origin: *const u8,
        origin_count: i64,
        origin_type: &Type,
        target: i32,
        target_disp: i64,
        target_count: i64,
        target_type: impl IntoTargetType<'t>,
        notify: i32,
    ) -> Result<()> {
        let near = Elements::from((origin, origin_count, origin_type));
        let there = (target_count, target_type.into_target_type());
        let call = Call::new(Action::Put, target, target_disp, there).notifying(notify);
        self.core.operate(call, Sides::of_origin(near))
    }

    /// Gets elements from a target's window, and raises counter `notify` there when they have been
    /// read; see [`Epoch::get_notify`](crate::Epoch::get_notify).
    ///
    /// ```
    /// # use longshore::{Assert, Info, Window};
    /// # let rank = longshore::init()?;
    /// # let info = Info { max_num_notify: 1, ..Info::default() };
    /// # let window = Window::allocate(rank.world(), 8, 8, &info)?;
    /// # let (long, calls, mut value) = (rank.type_of::<i64>()?, window.raw(), -1i64);
    /// let (me, to) = (rank.world().rank(), (&raw mut value).cast());
    /// calls.lock_all(Assert::NONE)?;
    /// // SAFETY: the value isn't used until the unlock_all has returned.
    /// unsafe { calls.get_notify(to, 1, &long, me, 0, 1, &long, 0)? };
    /// calls.unlock_all()?;
    /// assert_eq!((value, window.notify_value(0)?), (0, 1));
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Safety
    /// The contract of [`get`](Raw::get).
    ///
    /// # Errors
    /// Those of [`Epoch::get_notify`](crate::Epoch::get_notify).
    #[inline(always)]
    #[allow(clippy::too_many_arguments)] // MPI's
    #[track_caller]
    #[doc(alias = "MPI_Get_notify")]
    pub unsafe fn get_notify<'t>(
        self,
        origin: *mut u8,
        origin_count: i64,
        origin_type: &Type,
        target: i32,
        target_disp: i64,
        target_count: i64,
        target_type: impl IntoTargetType<'t>,
        notify: i32,
    ) -> Result<()> {
        let near = Elements::from((origin, origin_count, origin_type));
        let there = (target_count, target_type.into_target_type());
        let call = Call::new(Action::Get, target, target_disp, there).notifying(notify);
        self.core.operate(call, Sides::of_result(near))
    }

    /// Combines elements with the contents of a target's window, and raises counter `notify` there
    /// when that is done; see [`Epoch::accumulate_notify`](crate::Epoch::accumulate_notify).
    ///
    /// ```
    /// # use longshore::{Assert, Info, Op, Window};
    /// # let rank = longshore::init()?;
    /// # let info = Info { max_num_notify: 1, ..Info::default() };
    /// # let window = Window::allocate(rank.world(), 8, 8, &info)?;
    /// # let (long, calls, value) = (rank.type_of::<i64>()?, window.raw(), 7i64);
    /// let (me, from) = (rank.world().rank(), (&raw const value).cast());
    /// calls.lock_all(Assert::NONE)?;
    /// // SAFETY: the value stays until the unlock_all has returned.
    /// unsafe { calls.accumulate_notify(from, 1, &long, me, 0, 1, &long, Op::Sum, 0)? };
    /// calls.unlock_all()?;
    /// assert_eq!((window.get::<i64>(0)?, window.notify_value(0)?), (7, 1));
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Safety
    /// The contract of [`put`](Raw::put).
    ///
    /// # Errors
    /// Those of [`Epoch::accumulate_notify`](crate::Epoch::accumulate_notify).
    #[inline(always)]
    #[allow(clippy::too_many_arguments)] // MPI's
    #[track_caller]
    #[doc(alias = "MPI_Accumulate_notify")]
    pub unsafe fn accumulate_notify<'t>(
        self,
        origin: *const u8,
        origin_count: i64,
        origin_type: &Type,
        target: i32,
        target_disp: i64,
        target_count: i64,
        target_type: impl IntoTargetType<'t>,
        op: Op,
        notify: i32,
    ) -> Result<()> {
        let near = Elements::from((origin, origin_count, origin_type));
        let there = (target_count, target_type.into_target_type());
        let call = Call::new(Action::Accumulate(op), target, target_disp, there).notifying(notify);
        self.core.operate(call, Sides::of_origin(near))
    }

    /// Combines elements with the contents of a target's window and fetches the old contents, and
    /// raises counter `notify` there when that is done; see
    /// [`Epoch::get_accumulate_notify`](crate::Epoch::get_accumulate_notify).
    ///
    /// ```
    /// # use longshore::{Assert, Info, Op, Window};
    /// # let rank = longshore::init()?;
    /// # let info = Info { max_num_notify: 1, ..Info::default() };
    /// # let window = Window::allocate(rank.world(), 8, 8, &info)?;
    /// # let (long, calls, me) = (rank.type_of::<i64>()?, window.raw(), rank.world().rank());
    /// let (add, mut before) = (7i64, -1i64);
    /// let (from, to) = ((&raw const add).cast(), (&raw mut before).cast());
    /// let (from, to) = ((from, 1, &long), (to, 1, &long));
    /// calls.lock_all(Assert::NONE)?;
    /// // SAFETY: both numbers stay, and aren't used until the unlock_all has returned.
    /// unsafe { calls.get_accumulate_notify(from, to, me, 0, 1, &long, Op::Sum, 0)? };
    /// calls.unlock_all()?;
    /// assert_eq!((before, window.notify_value(0)?), (0, 1));
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
    /// Those of [`Epoch::get_accumulate_notify`](crate::Epoch::get_accumulate_notify).
    #[inline(always)]
    #[allow(clippy::too_many_arguments)] // MPI's
    #[track_caller]
    #[doc(alias = "MPI_Get_accumulate_notify")]
    pub unsafe fn get_accumulate_notify<'t>(
        self,
        origin: (*const u8, i64, &Type),
        result: (*mut u8, i64, &Type),
        target: i32,
        target_disp: i64,
        target_count: i64,
        target_type: impl IntoTargetType<'t>,
        op: Op,
        notify: i32,
    ) -> Result<()> {
        let action = Action::GetAccumulate(op);
        let sides = Sides::fetching(action, Elements::from(origin), result.into());
        let there = (target_count, target_type.into_target_type());
        let call = Call::new(action, target, target_disp, there).notifying(notify);
        self.core.operate(call, sides)
    }
}
