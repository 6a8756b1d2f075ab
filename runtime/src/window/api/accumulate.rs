//! Accumulates in scoped epochs (MPI-5.0 section 12.3.4): operations that combine data with the
//! target's, element by element, each atomic with respect to any other of them.

use shipable::Element;
use shipable::reduce::Op;

use super::epoch::Epoch;
use super::fetched::Fetched;
use crate::error::Result;
use crate::origin::{Destination, Origin};
use crate::types::TargetType;
use crate::window::operation::Action;

impl<'scope> Epoch<'scope, '_> {
    /// Combines data with what a target's window holds (MPI-5.0 section 12.3.4), in the target's representation: `op` of
    /// each operand and the item that is there takes the item's place. Each element is combined atomically with respect to
    /// all accumulates of any origin, and those of one origin to one place in the order of its calls.
    ///
    /// All items on both sides are of one predefined type, on which `op` is defined; [`Op::Replace`] is on all.
    ///
    /// ```
    /// # use longshore::{Info, Op, Window};
    /// # let rank = longshore::init()?;
    /// # let mut window = Window::allocate(rank.world(), 16, 8, &Info::default())?;
    /// let double = rank.type_of::<f64>()?;
    /// window.fence(|epoch| {
    ///     epoch.accumulate(&[0.5, 2.0], 0, 0, 2, &double, Op::Sum)?;
    ///     epoch.accumulate(&[1.5], 0, 1, 1, &double, Op::Max)
    /// })?;
    /// assert_eq!(window.get::<f64>(1)?, 2.0);
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`put`](Epoch::put); OP for an operation that the type doesn't take, TYPE where the items are of several types,
    /// or of different ones on the two sides.
    #[inline(always)]
    #[track_caller]
    pub fn accumulate<'t>(
        &self,
        origin: impl Into<Origin<'scope>>,
        target: i32,
        target_disp: i64,
        target_count: i64,
        target_type: impl Into<TargetType<'t>>,
        op: Op,
    ) -> Result<()> {
        let Origin { loan, what } = origin.into();
        let (operands, target_type) = ((self.scope.lend(loan), what), target_type.into());
        let (action, at) = (Action::Accumulate(op), target_disp);
        self.core.accumulate(action, operands, None, target, at, target_count, target_type)
    }

    /// As [`accumulate`](Epoch::accumulate), and gets what was there before (MPI-5.0 section 12.3.4). With [`Op::NoOp`] it
    /// changes nothing, and `origin` isn't looked at: an atomic get.
    ///
    /// ```
    /// # use longshore::{Info, Op, Window};
    /// # let rank = longshore::init()?;
    /// # let window = Window::allocate(rank.world(), 64, 8, &Info::default())?;
    /// let long = rank.type_of::<i64>()?;
    /// let (mut before, mut now, nothing) = ([-1i64; 2], [-1i64; 2], [0i64; 0]);
    /// window.lock_all(|epoch| {
    ///     epoch.flush(0, |epoch| epoch.get_accumulate(&[3i64, 4], &mut before, 0, 0, 2, &long, Op::Sum))?;
    ///     // An atomic get.
    ///     epoch.get_accumulate(&nothing, &mut now, 0, 0, 2, &long, Op::NoOp)
    /// })?;
    /// assert!(now[0] >= before[0] + 3 && now[1] >= before[1] + 4);
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`accumulate`](Epoch::accumulate), and for `result` as [`get`](Epoch::get).
    #[inline(always)]
    #[allow(clippy::too_many_arguments)] // MPI's
    #[track_caller]
    pub fn get_accumulate<'t>(
        &self,
        origin: impl Into<Origin<'scope>>,
        result: impl Into<Destination<'scope>>,
        target: i32,
        target_disp: i64,
        target_count: i64,
        target_type: impl Into<TargetType<'t>>,
        op: Op,
    ) -> Result<()> {
        let Origin { loan, what } = origin.into();
        let Destination { loan: room, what: wanted } = result.into();
        let (operands, target_type) = ((self.scope.lend(loan), what), target_type.into());
        let result = Some((self.scope.lend_mut(room), wanted));
        let (action, at) = (Action::GetAccumulate(op), target_disp);
        self.core.accumulate(action, operands, result, target, at, target_count, target_type)
    }
}

impl Epoch<'_, '_> {
    /// As [`get_accumulate`](Epoch::get_accumulate) of one element of a predefined type, which MPI says is likely to be
    /// faster (MPI-5.0 section 12.3.4). The type is `T`'s at the target as well: [`c::Long`](crate::c::Long) for a window of
    /// longs, `i64` for one of 64-bit integers.
    ///
    /// ```
    /// # use longshore::{Info, Op, Window};
    /// # let rank = longshore::init()?;
    /// # let mut window = Window::allocate(rank.world(), 64, 8, &Info::default())?;
    /// // Everyone a number of its own.
    /// let ticket = window.fence(|epoch| epoch.fetch_and_op(1i64, 0, 0, Op::Sum)?.wait())?;
    /// assert!((0..i64::from(rank.world().size())).contains(&ticket));
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`accumulate`](Epoch::accumulate). With PROC_NULL the value is zero.
    #[inline(always)]
    #[track_caller]
    pub fn fetch_and_op<T: Element>(
        &self,
        operand: T,
        target: i32,
        target_disp: i64,
        op: Op,
    ) -> Result<Fetched<T>> {
        self.core.fetch_value(operand, target, target_disp, op).map(Fetched::of)
    }

    /// Puts `new` where the element at the target equals `compare`, and returns what was there, equal or not (MPI-5.0
    /// section 12.3.4). Integers, logicals, [`c::Aint`](crate::c::Aint) and its like, and bytes.
    ///
    /// ```
    /// # use longshore::{Info, Window};
    /// # let rank = longshore::init()?;
    /// # let mut window = Window::allocate(rank.world(), 8, 8, &Info::default())?;
    /// let me = rank.world().rank() as i64 + 1;
    /// // Whoever finds 0 at rank 0 is its owner from then on; the others are told who is.
    /// let found = window.fence(|epoch| epoch.compare_and_swap(me, 0, 0, 0)?.wait())?;
    /// let owner = if found == 0 { me } else { found };
    /// assert_eq!(rank.world().allgather(&[owner])?, vec![owner; rank.world().size() as usize]);
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`fetch_and_op`](Epoch::fetch_and_op); TYPE for a type that can't be compared so.
    #[inline(always)]
    #[track_caller]
    pub fn compare_and_swap<T: Element>(
        &self,
        new: T,
        compare: T,
        target: i32,
        target_disp: i64,
    ) -> Result<Fetched<T>> {
        self.core.swap_value(new, compare, target, target_disp).map(Fetched::of)
    }
}
