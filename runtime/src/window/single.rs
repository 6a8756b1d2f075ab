//! Operations on one element of a predefined type: fetch_and_op and compare_and_swap (MPI-5.0 section 12.3.4).

use std::any::TypeId;
use std::sync::Arc;

use shipable::reduce::{Op, Reduction, Swap};
use shipable::{Element, Leaf};

use super::accumulate::Side;
use super::api::Epoch;
use super::api::{Called, Fetched};
use super::core::Core;
use super::operation::Call;
use super::targets::Target;
use crate::engine::{Keep, Reach, Source, Ticket, reach};
use crate::error::{Error, ErrorKind, Result, conversion, excerpt};
use crate::flavor::Flavor;
use crate::job::Activity;
use crate::memory::{Span, Typed, zeroed};
use crate::origin::Elementwise;
use crate::types::{TargetType, Type};
use crate::wire::Kind;

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
    #[inline]
    #[track_caller]
    pub fn fetch_and_op<T: Element>(
        &self,
        operand: T,
        target: i32,
        target_disp: i64,
        op: Op,
    ) -> Result<Fetched<T>> {
        match self.core.fetch_here(&operand, target, target_disp, op) {
            Some(value) => Ok(Fetched::here(value)),
            None => self.core.fetch_one(&[operand], target, target_disp, One::Op(op)),
        }
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
    #[inline]
    #[track_caller]
    pub fn compare_and_swap<T: Element>(
        &self,
        new: T,
        compare: T,
        target: i32,
        target_disp: i64,
    ) -> Result<Fetched<T>> {
        match self.core.swap_here(&new, &compare, target, target_disp) {
            Some(value) => Ok(Fetched::here(value)),
            None => self.core.fetch_one(&[compare, new], target, target_disp, One::Swap),
        }
    }
}

/// What is done to one element.
#[derive(Clone, Copy)]
pub(super) enum One {
    Op(Op),
    Swap,
}

impl One {
    pub(super) fn name(self) -> &'static str {
        match self {
            One::Op(_) => "fetch_and_op",
            One::Swap => "compare_and_swap",
        }
    }

    pub(super) fn wire(self) -> u8 {
        match self {
            One::Op(op) => op.wire(),
            One::Swap => 0,
        }
    }

    /// What it is called as.
    pub(super) fn call(
        self,
        target: i32,
        displacement: i64,
        target_type: TargetType<'_>,
    ) -> Call<'_> {
        let kind = if matches!(self, One::Swap) { Kind::Swap } else { Kind::Fetch };
        Call { name: self.name(), kind, target, displacement, count: 1, target_type }
    }
}

/// An operation on one element, and the types that describe it.
struct Single<'a> {
    one: One,
    target: i32,
    displacement: i64,
    /// In the origin's memory.
    here: &'a Type,
    /// In the target's.
    there: &'a Type,
}

impl Core {
    /// The quick way of a fetch_and_op. In line, without closures, as [`Core::transfer`] has it.
    #[inline(always)]
    fn fetch_here<T: Element>(&self, operand: &T, target: i32, at: i64, op: Op) -> Option<T> {
        let recent = self.recent.fetch.borrow();
        let (id, last, reduction) = recent.as_ref()?;
        if (*id, *last) != (TypeId::of::<T>(), op) {
            return None;
        }
        let (target, at) = self.quick_place(target, at)?;
        let old = match target.door.get() {
            Some(door) => {
                let _held = self.control.accumulate(target.rank);
                door.span.fetch(reduction, at, operand)
            }
            None => self.fetch_attached(reduction, target, at, *operand),
        }?;
        self.used.set(true);
        Some(old)
    }

    /// The same in memory that the target attached.
    #[inline(never)]
    fn fetch_attached<T: Element>(
        &self,
        reduction: &Reduction,
        target: &Target,
        at: i64,
        operand: T,
    ) -> Option<T> {
        let reached = self.reach_in_order(target, at)?;
        let _held = self.control.accumulate(target.rank);
        reached.span.fetch(reduction, at, &operand)
    }

    /// The quick way of a compare_and_swap, likewise.
    #[inline(always)]
    fn swap_here<T: Element>(&self, new: &T, compare: &T, target: i32, at: i64) -> Option<T> {
        let recent = self.recent.swap.borrow();
        let (id, swap) = recent.as_ref()?;
        if *id != TypeId::of::<T>() {
            return None;
        }
        let (target, at) = self.quick_place(target, at)?;
        let old = match target.door.get() {
            Some(door) => {
                let _held = self.control.accumulate(target.rank);
                door.span.compare_and_swap(swap, at, compare, new)
            }
            None => self.swap_attached(swap, target, at, [*compare, *new]),
        }?;
        self.used.set(true);
        Some(old)
    }

    /// The same in memory that the target attached.
    #[inline(never)]
    fn swap_attached<T: Element>(
        &self,
        swap: &Swap,
        target: &Target,
        at: i64,
        [compare, new]: [T; 2],
    ) -> Option<T> {
        let reached = self.reach_in_order(target, at)?;
        let _held = self.control.accumulate(target.rank);
        reached.span.compare_and_swap(swap, at, &compare, &new)
    }

    /// A target that is near, and the byte of a displacement in its window.
    #[inline(always)]
    fn quick_place(&self, target: i32, displacement: i64) -> Option<(&Target, i64)> {
        let target = self.targets.get(usize::try_from(target).ok()?)?;
        if !target.is_near() || !self.opens(target) || displacement < 0 {
            return None;
        }
        let at = displacement.checked_mul(i64::from(target.measures.unit))?;
        Some((target, at))
    }

    /// One element: what was there, here or on its way.
    #[track_caller]
    fn fetch_one<T: Element>(
        &self,
        operands: &[T],
        target: i32,
        displacement: i64,
        one: One,
    ) -> Result<Fetched<T>> {
        if let Some(fetched) = self.frame_one(operands, target, displacement, one) {
            return Ok(fetched);
        }
        self.issued(one.name(), target, Activity::Accumulate, |bytes| {
            self.checked_one(operands, target, displacement, one, bytes)
        })
    }

    fn checked_one<T: Element>(
        &self,
        operands: &[T],
        rank: i32,
        displacement: i64,
        one: One,
        bytes: &mut Option<(i128, i128)>,
    ) -> Result<Fetched<T>> {
        self.process.ready()?;
        let elements = self.process.elements();
        let (here, there) = (&elements.in_slices::<T>()?, &elements.in_memory::<T>()?);
        let single = Single { one, target: rank, displacement, here, there };
        let Some(place) = self.check_single(&single, bytes)? else {
            return Ok(Fetched::here(zeroed()));
        };
        if self.reach_to_update(place.target, place.reach.bytes)?.is_some() {
            let (id, architecture) = (TypeId::of::<T>(), &self.process.me().architecture);
            let old = match (one, operands) {
                (One::Op(op), [value, ..]) => {
                    let reduction = Reduction::new(op, place.leaf, architecture)?;
                    self.recent.fetch.replace(Some((id, op, reduction)));
                    self.fetch_here(value, rank, displacement, op)
                }
                (One::Swap, [compare, new]) => {
                    self.recent.swap.replace(Some((id, Swap::new(place.leaf, architecture)?)));
                    self.swap_here(new, compare, rank, displacement)
                }
                _ => None,
            };
            match old {
                Some(old) => return Ok(Fetched::here(old)),
                None if self.flavor != Flavor::Dynamic => return Err(single.refused()),
                // What was attached there a moment ago may be no more: its owner knows.
                None => {}
            }
        }
        let count = operands.len() as u64;
        let packed = Span::with_slice(operands, |span| single.pack(self, span, count))?;
        let lane = self.lane();
        let ticket = lane.ticket();
        let keep = Keep::Room { _room: ticket.clone() };
        let old = single.old(ticket.room().span::<T>(), keep);
        self.ship_single(&single, &place, packed, old, Some(ticket.clone()))?;
        let call = Called {
            call: one.name(),
            target: rank,
            peer: place.target.peer,
            bytes: *bytes,
            epoch: self.epoch.get(),
        };
        Ok(Fetched::coming(lane, call))
    }

    /// Does it by pointers: the operands are one element each, compare_and_swap's in the order compare, new; what was there
    /// goes to `old`. Who gives the memory keeps it until the operation is done.
    #[track_caller]
    pub(super) fn single(
        &self,
        one: One,
        operands: &[Span],
        old: Span,
        datatype: &Type,
        target: i32,
        displacement: i64,
    ) -> Result<()> {
        let single = Single { one, target, displacement, here: datatype, there: datatype };
        self.issued(one.name(), target, Activity::Accumulate, |bytes| {
            self.checked_single(&single, operands, old, bytes)
        })
    }

    fn checked_single(
        &self,
        single: &Single<'_>,
        operands: &[Span],
        old: Span,
        bytes: &mut Option<(i128, i128)>,
    ) -> Result<()> {
        self.process.ready()?;
        let Some(place) = self.check_single(single, bytes)? else { return Ok(()) };
        let Some(reached) = self.reach_to_update(place.target, place.reach.bytes)? else {
            let parts = operands.iter().map(|&span| single.pack(self, span, 1));
            let packed = parts.collect::<Result<Vec<_>>>()?.concat();
            return self.ship_single(single, &place, packed, single.old(old, Keep::Lender), None);
        };
        let there = reached.span.shifted(place.reach.base).ok_or_else(|| single.refused())?;
        let architecture = &self.process.me().architecture;
        let typed = |span| Typed { program: single.here.compiled().native(), count: 1, span };
        match (single.one, operands) {
            (One::Op(op), _) => {
                let reduction = Reduction::new(op, place.leaf, architecture)?;
                let operand = operands.first().map_or(there, |operand| *operand);
                let _held = self.control.accumulate(single.target as u32);
                let all = 0..reduction.element();
                Span::combine(&reduction, &typed(operand), &typed(there), Some(&typed(old)), all)
                    .map_err(conversion)
            }
            (One::Swap, &[compare, new]) => {
                let swap = Swap::new(place.leaf, architecture)?;
                let _held = self.control.accumulate(single.target as u32);
                match there.swap_at(&swap, 0, [compare, new], old) {
                    true => Ok(()),
                    false => Err(single.refused()),
                }
            }
            (One::Swap, _) => Err(single.refused()),
        }
    }

    /// Where the operation takes place, once everything about it is right; nowhere for PROC_NULL.
    fn check_single(
        &self,
        single: &Single<'_>,
        bytes: &mut Option<(i128, i128)>,
    ) -> Result<Option<Place<'_>>> {
        let Some(target) = self.target(single.target)? else {
            return self.check_epoch().map(|()| None);
        };
        self.access(target)?;
        let call = single.call();
        call.target_type.check_rank(self.process.names())?;
        let leaf = single.check()?;
        let bounds = call.target_type.bounds_on(&target.architecture)?;
        let displacement = single.displacement;
        let reach = reach(target.measures, displacement, 1, &bounds, &target.architecture)?;
        *bytes = Some(reach.bytes);
        self.used.set(true);
        Ok(Some(Place { target, leaf, reach }))
    }

    fn ship_single(
        &self,
        single: &Single<'_>,
        place: &Place<'_>,
        packed: Vec<u8>,
        old: Side,
        ticket: Option<Arc<Ticket>>,
    ) -> Result<()> {
        let source = (packed.len() as u64, Source::Bytes(packed.into()));
        let (code, bytes) = (single.one.wire(), place.reach.bytes);
        self.ship_update(&single.call(), code, place.target, 1, source, Some(old), ticket, bytes)
    }
}

/// Where an operation takes place.
struct Place<'a> {
    target: &'a Target,
    leaf: Leaf,
    reach: Reach,
}

impl Single<'_> {
    fn call(&self) -> Call<'_> {
        self.one.call(self.target, self.displacement, TargetType::Own(self.there))
    }

    /// Rule 21: the predefined type that the element is of, here and there.
    fn check(&self) -> Result<Leaf> {
        let not_predefined = || {
            let datatype = excerpt(self.here.datatype());
            Error::from(ErrorKind::NotPredefined { call: self.one.name(), datatype })
        };
        let leaf = self.here.compiled().single_leaf().ok_or_else(not_predefined)?;
        let whole = shipable::Signature::of_leaf(leaf) == self.here.signature();
        // One that lies elsewhere than where it is said to be was built.
        let shifted = self.here.compiled().native().contiguous(1).is_some_and(|first| first != 0);
        if !whole || shifted || !self.there.compiled().is_portable() {
            return Err(not_predefined());
        }
        match self.one {
            One::Op(op) => op.check(leaf)?,
            One::Swap => shipable::reduce::check_swap(leaf)?,
        }
        Ok(leaf)
    }

    /// Operands that lie one after the other, packed in the rank's representation; an operation without any has none.
    fn pack(&self, core: &Core, operands: Span, count: u64) -> Result<Vec<u8>> {
        if matches!(self.one, One::Op(Op::NoOp)) {
            return Ok(Vec::new());
        }
        let program = self.here.program(&core.process.me().architecture)?;
        let mut packed = vec![0; program.stream_length(count)? as usize];
        operands.pack(&program, count, 0, &mut packed).map_err(conversion)?;
        Ok(packed)
    }

    /// Where what was there goes.
    fn old(&self, span: Span, keep: Keep) -> Side {
        let datatype = self.here.compiled().clone();
        Side { elements: Elementwise { datatype, count: 1, span }, keep }
    }

    fn refused(&self) -> Error {
        ErrorKind::Displacement(self.displacement).into()
    }
}
