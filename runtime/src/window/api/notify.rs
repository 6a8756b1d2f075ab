//! Notified operations: each raises a counter at its target when its data are there, so the target
//! needs no message to learn of it.

use std::panic::Location;

use shipable::reduce::Op;

use super::epoch::Epoch;
use super::window::Window;
use crate::error::Result;
use crate::origin::{Destination, Origin};
use crate::types::IntoTargetType;
use crate::window::call::{Action, Call};
use crate::window::near::{Side, Sides};

impl<'scope> Epoch<'scope, '_> {
    /// Puts data into a target's window, as [`put`](Epoch::put) does, and notifies the target:
    /// counter `notify` of its window rises by one when the data are there. The target reads or
    /// awaits the counter by [`wait_notify`](Window::wait_notify) and the like. The put is done at
    /// the origin when the epoch has ended, or a flush.
    ///
    /// The notification is of this put only. Other operations of the origin may still be under way,
    /// also those that it called before, unless a flush has completed them. A put of no elements
    /// notifies too. An operation that is refused, or stops at a value that doesn't fit, raises
    /// nothing.
    ///
    /// The info [`max_num_notify`](crate::Info::max_num_notify) says how many counters each rank
    /// has. A counter may be raised by any number of ranks.
    ///
    /// The call is that of the MPI Forum's proposal of notified communication, MPI_Put_notify.
    ///
    /// ```
    /// use longshore::{Info, Window};
    ///
    /// let rank = longshore::init()?;
    /// let world = rank.world();
    /// let info = Info { max_num_notify: 1, ..Info::default() };
    /// let window = Window::allocate(world, 8, 8, &info)?;
    /// let (double, next) = (rank.type_of::<f64>()?, (world.rank() + 1) % world.size());
    /// let value = [2.5];
    /// window.lock_all(|epoch| {
    ///     epoch.put_notify(&value, next, 0, 1, &double, 0)?;
    ///     // The neighbour's value, which needs no message and no collective call.
    ///     window.wait_notify(0, 1)?;
    ///     assert_eq!(epoch.local().get::<f64>(0)?, 2.5);
    ///     Ok(())
    /// })?;
    /// window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`put`](Epoch::put), and ARG for a counter that the window doesn't have (rule 31).
    #[inline(always)]
    #[allow(clippy::too_many_arguments)] // MPI's
    #[track_caller]
    #[doc(alias = "MPI_Put_notify")]
    pub fn put_notify<'t>(
        &self,
        origin: impl Into<Origin<'scope>>,
        target: i32,
        target_disp: i64,
        target_count: i64,
        target_type: impl IntoTargetType<'t>,
        notify: i32,
    ) -> Result<()> {
        let Origin { loan, what } = origin.into();
        let span = self.scope.lend(loan);
        let there = (target_count, target_type.into_target_type());
        let call = Call::new(Action::Put, target, target_disp, there).notifying(notify);
        self.core.operate(call, Sides::of_origin(Side { what, span }))
    }

    /// Gets data from a target's window, as [`get`](Epoch::get) does, and notifies the target:
    /// counter `notify` of its window rises by one when the data have been read. From then on the
    /// target may write there again. See [`put_notify`](Epoch::put_notify).
    ///
    /// ```
    /// # use longshore::{Info, Window};
    /// # let rank = longshore::init()?;
    /// # let world = rank.world();
    /// # let info = Info { max_num_notify: 1, ..Info::default() };
    /// # let mut window = Window::allocate(world, 8, 8, &info)?;
    /// # let (double, next) = (rank.type_of::<f64>()?, (world.rank() + 1) % world.size());
    /// window.set(0, 2.5f64)?;
    /// world.barrier()?;
    /// let mut value = [0.0];
    /// window.lock_all(|epoch| epoch.get_notify(&mut value, next, 0, 1, &double, 0))?;
    /// assert_eq!(value, [2.5]);
    /// window.wait_notify(0, 1)?;
    /// window.set(0, 3.5f64)?; // The neighbour has read the value.
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get`](Epoch::get), and ARG for a counter that the window doesn't have (rule 31).
    #[inline(always)]
    #[allow(clippy::too_many_arguments)] // MPI's
    #[track_caller]
    #[doc(alias = "MPI_Get_notify")]
    pub fn get_notify<'t>(
        &self,
        destination: impl Into<Destination<'scope>>,
        target: i32,
        target_disp: i64,
        target_count: i64,
        target_type: impl IntoTargetType<'t>,
        notify: i32,
    ) -> Result<()> {
        let Destination { loan, what } = destination.into();
        let span = self.scope.lend_mut(loan);
        let there = (target_count, target_type.into_target_type());
        let call = Call::new(Action::Get, target, target_disp, there).notifying(notify);
        self.core.operate(call, Sides::of_result(Side { what, span }))
    }

    /// Combines data with the contents of a target's window, as [`accumulate`](Epoch::accumulate)
    /// does, and notifies the target: counter `notify` of its window rises by one when all elements
    /// are combined. See [`put_notify`](Epoch::put_notify).
    ///
    /// ```
    /// # use longshore::{Info, Op, Window};
    /// # let rank = longshore::init()?;
    /// # let world = rank.world();
    /// # let info = Info { max_num_notify: 1, ..Info::default() };
    /// # let window = Window::allocate(world, 8, 8, &info)?;
    /// # let double = rank.type_of::<f64>()?;
    /// let half = [0.5];
    /// window.lock_all(|epoch| {
    ///     epoch.accumulate_notify(&half, 0, 0, 1, &double, Op::Sum, 0)?;
    ///     if world.rank() == 0 {
    ///         window.wait_notify(0, world.size() as u64)?;
    ///         assert_eq!(epoch.local().get::<f64>(0)?, 0.5 * f64::from(world.size()));
    ///     }
    ///     Ok(())
    /// })?;
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`accumulate`](Epoch::accumulate), and ARG for a counter that the window doesn't
    /// have (rule 31).
    #[inline(always)]
    #[allow(clippy::too_many_arguments)] // MPI's
    #[track_caller]
    #[doc(alias = "MPI_Accumulate_notify")]
    pub fn accumulate_notify<'t>(
        &self,
        origin: impl Into<Origin<'scope>>,
        target: i32,
        target_disp: i64,
        target_count: i64,
        target_type: impl IntoTargetType<'t>,
        op: Op,
        notify: i32,
    ) -> Result<()> {
        let Origin { loan, what } = origin.into();
        let span = self.scope.lend(loan);
        let there = (target_count, target_type.into_target_type());
        let call = Call::new(Action::Accumulate(op), target, target_disp, there).notifying(notify);
        self.core.operate(call, Sides::of_origin(Side { what, span }))
    }

    /// Combines data with the contents of a target's window and fetches the old contents, as
    /// [`get_accumulate`](Epoch::get_accumulate) does, and notifies the target: counter `notify` of
    /// its window rises by one when that is done. See [`put_notify`](Epoch::put_notify).
    ///
    /// ```
    /// # use longshore::{Info, Op, Window};
    /// # let rank = longshore::init()?;
    /// # let info = Info { max_num_notify: 1, ..Info::default() };
    /// # let window = Window::allocate(rank.world(), 8, 8, &info)?;
    /// # let long = rank.type_of::<i64>()?;
    /// let (one, mut before) = ([1i64], [-1i64]);
    /// window.lock_all(|epoch| {
    ///     epoch.get_accumulate_notify(&one, &mut before, 0, 0, 1, &long, Op::Sum, 0)
    /// })?;
    /// assert!(before[0] >= 0);
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`get_accumulate`](Epoch::get_accumulate), and ARG for a counter that the window
    /// doesn't have (rule 31).
    #[inline(always)]
    #[allow(clippy::too_many_arguments)] // MPI's
    #[track_caller]
    #[doc(alias = "MPI_Get_accumulate_notify")]
    pub fn get_accumulate_notify<'t>(
        &self,
        origin: impl Into<Origin<'scope>>,
        result: impl Into<Destination<'scope>>,
        target: i32,
        target_disp: i64,
        target_count: i64,
        target_type: impl IntoTargetType<'t>,
        op: Op,
        notify: i32,
    ) -> Result<()> {
        let Origin { loan, what } = origin.into();
        let Destination { loan: room, what: wanted } = result.into();
        let operands = Side { what, span: self.scope.lend(loan) };
        let result = Side { what: wanted, span: self.scope.lend_mut(room) };
        let (action, there) =
            (Action::GetAccumulate(op), (target_count, target_type.into_target_type()));
        let call = Call::new(action, target, target_disp, there).notifying(notify);
        self.core.operate(call, Sides::fetching(action, operands, result))
    }
}

impl<M> Window<M> {
    /// The number of notification counters of each rank: the info
    /// [`max_num_notify`](crate::Info::max_num_notify).
    ///
    /// ```
    /// # use longshore::{Info, Window};
    /// # let rank = longshore::init()?;
    /// let info = Info::default().set("mpi_assert_max_num_notify", "4")?;
    /// let window = Window::allocate(rank.world(), 8, 8, &info)?;
    /// assert_eq!((window.num_notify(), window.notify_value(3)?), (4, 0));
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    #[doc(alias = "MPI_Win_get_num_notify")]
    pub fn num_notify(&self) -> i32 {
        self.core.parts().info().max_num_notify.into()
    }

    /// The value of notification counter `notify` of this rank: the operations that have notified
    /// it since the window was made, or since the last [reset](Window::reset_notify_value).
    /// [`num_notify`](Window::num_notify) has an example.
    ///
    /// This rank sees the data of all operations that the value counts, in any epoch or in none.
    ///
    /// # Errors
    /// ARG for a counter that the window doesn't have (rule 31), and WIN for a freed or poisoned
    /// window.
    #[inline]
    #[track_caller]
    #[doc(alias = "MPI_Win_get_notify_value")]
    pub fn notify_value(&self, notify: i32) -> Result<u64> {
        self.core.notify_value(notify, Location::caller())
    }

    /// Sets notification counter `notify` of this rank to 0, and returns its value before. A
    /// notification that arrives meanwhile is counted before or after, and never lost.
    ///
    /// ```
    /// # use longshore::{Info, Window};
    /// # let rank = longshore::init()?;
    /// # let info = Info { max_num_notify: 1, ..Info::default() };
    /// # let window = Window::allocate(rank.world(), 8, 8, &info)?;
    /// # let (long, me) = (rank.type_of::<i64>()?, rank.world().rank());
    /// window.lock_all(|epoch| epoch.put_notify(&[7i64], me, 0, 1, &long, 0))?;
    /// assert_eq!((window.reset_notify_value(0)?, window.notify_value(0)?), (1, 0));
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`notify_value`](Window::notify_value).
    #[track_caller]
    #[doc(alias = "MPI_Win_reset_notify_value")]
    pub fn reset_notify_value(&self, notify: i32) -> Result<u64> {
        self.core.reset_notify_value(notify, Location::caller())
    }

    /// Waits until notification counter `notify` of this rank has at least this value, and returns
    /// its value. This rank sees the data of all operations that it counts. It answers its peers
    /// meanwhile. [`put_notify`](Epoch::put_notify) has an example.
    ///
    /// # Errors
    /// Those of [`notify_value`](Window::notify_value), and PROC_ABORTED if a rank of the window
    /// died: it may be the one that was to notify this one.
    #[inline]
    #[track_caller]
    pub fn wait_notify(&self, notify: i32, value: u64) -> Result<u64> {
        self.core.wait_notify(notify, value, Location::caller())
    }

    /// Whether notification counter `notify` of this rank has at least this value. As
    /// [`wait_notify`](Window::wait_notify), without waiting.
    ///
    /// ```
    /// # use longshore::{Info, Window};
    /// # let rank = longshore::init()?;
    /// # let info = Info { max_num_notify: 1, ..Info::default() };
    /// # let window = Window::allocate(rank.world(), 8, 8, &info)?;
    /// # let (long, me) = (rank.type_of::<i64>()?, rank.world().rank());
    /// assert!(!window.test_notify(0, 1)?);
    /// window.lock_all(|epoch| epoch.put_notify(&[7i64], me, 0, 1, &long, 0))?;
    /// assert!(window.test_notify(0, 1)?);
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`wait_notify`](Window::wait_notify).
    #[inline]
    #[track_caller]
    pub fn test_notify(&self, notify: i32, value: u64) -> Result<bool> {
        self.core.test_notify(notify, value, Location::caller())
    }
}
