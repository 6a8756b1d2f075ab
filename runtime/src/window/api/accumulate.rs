//! Accumulates in scoped epochs (MPI-5.0 section 12.3.4): operations that combine data with the
//! target's, element by element and atomically.

use shipable::Element;
use shipable::reduce::Op;

use super::epoch::Epoch;
use super::fetched::Fetched;
use crate::error::Result;
use crate::origin::{Destination, Origin};
use crate::types::IntoTargetType;
use crate::window::call::{Action, Call};
use crate::window::near::{Side, Sides};

impl<'scope> Epoch<'scope, '_> {
    /// Combines data with the contents of a target's window (MPI-5.0 section 12.3.4). Each item
    /// there becomes `op` of the operand and its old value, computed in the target's
    /// representation.
    ///
    /// Each element is combined atomically with respect to all accumulates of all origins.
    /// Accumulates of one origin to one location are applied in the order of its calls.
    ///
    /// All items on both sides have one predefined type on which `op` is defined. [`Op::Replace`]
    /// is defined on every predefined type.
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
    /// Those of [`put`](Epoch::put), and:
    /// - OP for an operation that isn't defined on the type;
    /// - TYPE if the items have several types, or different ones on the two sides.
    #[inline(always)]
    #[track_caller]
    #[doc(alias = "MPI_Accumulate")]
    pub fn accumulate<'t>(
        &self,
        origin: impl Into<Origin<'scope>>,
        target: i32,
        target_disp: i64,
        target_count: i64,
        target_type: impl IntoTargetType<'t>,
        op: Op,
    ) -> Result<()> {
        let Origin { loan, what } = origin.into();
        let span = self.scope.lend(loan);
        let there = (target_count, target_type.into_target_type());
        let call = Call::new(Action::Accumulate(op), target, target_disp, there);
        self.core.operate(call, Sides::of_origin(Side { what, span }))
    }

    /// Combines data with the contents of a target's window, and fetches the old contents (MPI-5.0
    /// section 12.3.4). See [`accumulate`](Epoch::accumulate) for the operation and its atomicity.
    ///
    /// With [`Op::NoOp`] it is an atomic get: the target's contents stay, and `origin` is ignored.
    ///
    /// ```
    /// # use longshore::{Info, Op, Window};
    /// # let rank = longshore::init()?;
    /// # let window = Window::allocate(rank.world(), 64, 8, &Info::default())?;
    /// let long = rank.type_of::<i64>()?;
    /// let (mut before, mut now, nothing) = ([-1i64; 2], [-1i64; 2], [0i64; 0]);
    /// window.lock_all(|epoch| {
    ///     epoch.flush(0, |epoch| {
    ///         epoch.get_accumulate(&[3i64, 4], &mut before, 0, 0, 2, &long, Op::Sum)
    ///     })?;
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
    /// Those of [`accumulate`](Epoch::accumulate), and for `result` those of [`get`](Epoch::get).
    #[inline(always)]
    #[allow(clippy::too_many_arguments)] // MPI's
    #[track_caller]
    #[doc(alias = "MPI_Get_accumulate")]
    pub fn get_accumulate<'t>(
        &self,
        origin: impl Into<Origin<'scope>>,
        result: impl Into<Destination<'scope>>,
        target: i32,
        target_disp: i64,
        target_count: i64,
        target_type: impl IntoTargetType<'t>,
        op: Op,
    ) -> Result<()> {
        let Origin { loan, what } = origin.into();
        let Destination { loan: room, what: wanted } = result.into();
        let operands = Side { what, span: self.scope.lend(loan) };
        let result = Side { what: wanted, span: self.scope.lend_mut(room) };
        let there = (target_count, target_type.into_target_type());
        let call = Call::new(Action::GetAccumulate(op), target, target_disp, there);
        self.core.operate(call, Sides::fetching(call.action, operands, result))
    }
}

impl Epoch<'_, '_> {
    /// Combines one element of a target's window with `operand`, and fetches its old value (MPI-5.0
    /// section 12.3.4). MPI expects it to be faster than [`get_accumulate`](Epoch::get_accumulate)
    /// of one element.
    ///
    /// The target's element has the predefined type of `T`: [`c::Long`](crate::c::Long) for a
    /// window of C longs, `i64` for one of 64-bit integers.
    ///
    /// ```
    /// # use longshore::{Info, Op, Window};
    /// # let rank = longshore::init()?;
    /// # let mut window = Window::allocate(rank.world(), 64, 8, &Info::default())?;
    /// // Each rank draws a number of its own.
    /// let ticket = window.fence(|epoch| epoch.fetch_and_op(1i64, 0, 0, Op::Sum)?.wait())?;
    /// assert!((0..i64::from(rank.world().size())).contains(&ticket));
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`accumulate`](Epoch::accumulate). With PROC_NULL the value is zero.
    #[inline(always)]
    #[track_caller]
    #[doc(alias = "MPI_Fetch_and_op")]
    pub fn fetch_and_op<T: Element>(
        &self,
        operand: T,
        target: i32,
        target_disp: i64,
        op: Op,
    ) -> Result<Fetched<T>> {
        self.core.fetch_value(operand, target, target_disp, op).map(Fetched::of)
    }

    /// Stores `new` if the element at the target equals `compare`, and fetches the old value in
    /// both cases (MPI-5.0 section 12.3.4). `T` is an integer, a logical, a byte, or an address
    /// type such as [`c::Aint`](crate::c::Aint).
    ///
    /// ```
    /// # use longshore::{Info, Window};
    /// # let rank = longshore::init()?;
    /// # let mut window = Window::allocate(rank.world(), 8, 8, &Info::default())?;
    /// let me = rank.world().rank() as i64 + 1;
    /// // The first rank that finds 0 at rank 0 is the owner; the others find its number.
    /// let found = window.fence(|epoch| epoch.compare_and_swap(me, 0, 0, 0)?.wait())?;
    /// let owner = if found == 0 { me } else { found };
    /// assert_eq!(rank.world().allgather(&[owner])?, vec![owner; rank.world().size() as usize]);
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`fetch_and_op`](Epoch::fetch_and_op), and TYPE for a type that can't be compared.
    #[inline(always)]
    #[track_caller]
    #[doc(alias = "MPI_Compare_and_swap")]
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
