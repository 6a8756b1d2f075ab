//! Reductions: predefined operations on typed memory in any representation.
//!
//! ```text
//!  packed operands in their sender's representation
//!      │ Stage: converts element by element, unless the representations agree
//!      │        or the reduction's loop swaps bytes itself
//!      ▼
//!  packed operands in the memory's representation
//!      │ Reduction: combines them with the items of a Program's memory, in place
//!      ▼
//!  previous values of the items, packed, for fetching accumulates
//! ```
//!
//! The operation happens in the representation of the memory that it changes, as MPI requires: a
//! sum of two shorts wraps around where shorts of that machine do. All elements have one predefined
//! type (MPI-5.0 section 12.3.4), so a position in the packed stream determines the element that it
//! lies in.
//!
//! Loops of machine instructions compute the types that the machine has, in both byte orders.
//! Software computes the others: long double in other formats, half precision, and Fortran's truth
//! values. Integers wrap around. Floating point rounds to nearest and overflows to infinity. Each
//! [`Op`] describes its result for NaN.
//!
//! Left out: user-defined operations, which MPI doesn't allow in accumulates either.

mod apply;
mod software;
mod stage;

pub use crate::operation::{Op, check_swap};
pub use apply::Sides;
pub use stage::{Carry, Stage};

use crate::arch::{Architecture, ByteOrder, Scalar, Value};
use crate::basic::{Leaf, Makeup};
use crate::convert::{Conversion, MAX_SIZE};
use crate::error::{Class, Error, Result};
use crate::kernels::fold::{Fold, ReadyFold};
use crate::kernels::{Kernel, KernelError, Lane};
use crate::memory::{View, ViewMut};
use software::{LONGEST, Software};

/// An operation on elements of one type, in the memory of one architecture.
///
/// ```
/// use shipable::reduce::{Op, Reduction};
/// use shipable::{Architecture, Basic, View, ViewMut};
///
/// // Adds 1 to two shorts of a big-endian machine.
/// let sum = Reduction::new(Op::Sum, Basic::Short.into(), &Architecture::S390X)?;
/// let mut memory = [0x00, 0xff, 0x7f, 0xff];
/// sum.combine(View::new(&[0, 1, 0, 1]), &mut ViewMut::new(&mut memory), 2)?;
/// assert_eq!(memory, [0x01, 0x00, 0x80, 0x00]);
/// # Ok::<(), shipable::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Reduction {
    op: Op,
    /// The bytes of an element in the packed stream.
    element: u32,
    method: Method,
}

#[derive(Clone, Copy, Debug)]
enum Method {
    /// The value stays.
    Keep,
    /// The operand replaces the value.
    Replace,
    Fold(Fold),
    Software(Software),
}

impl Reduction {
    /// The reduction of elements of `leaf` in the memory of `architecture`.
    ///
    /// # Errors
    ///
    /// Those of [`Op::check`] and [`Architecture::leaf`].
    pub fn new(op: Op, leaf: Leaf, architecture: &Architecture) -> Result<Reduction> {
        op.check(leaf)?;
        let layout = architecture.leaf(leaf)?;
        let complex = is_complex(leaf);
        let scalars = layout.components.iter().map(|component| component.scalar);
        let scalars: smallvec::SmallVec<[Scalar; 2]> = scalars.collect();
        let method = match (op, &scalars[..]) {
            (Op::NoOp, _) | (_, []) => Method::Keep,
            (Op::Replace, _) => Method::Replace,
            (_, &[first, ref rest @ ..]) => match Fold::find(op, &scalars, complex) {
                Some(fold) => Method::Fold(fold),
                None => {
                    Method::Software(Software { op, first, second: rest.first().copied(), complex })
                }
            },
        };
        Ok(Reduction { op, element: layout.size, method })
    }

    /// The reduction for operands in the other byte order. `None` if no loop does both.
    fn across(&self) -> Option<Reduction> {
        let Method::Fold(fold) = &self.method else { return None };
        Some(Reduction { method: Method::Fold(fold.across()?), ..*self })
    }

    /// The reduction as one loop, with nothing left to decide. `None` if software computes it, or
    /// if the bytes of its elements are no power of two.
    ///
    /// ```
    /// use shipable::reduce::{Op, Reduction};
    /// use shipable::{Architecture, Basic, View, ViewMut};
    ///
    /// let sum = Reduction::new(Op::Sum, Basic::Int8.into(), &Architecture::NATIVE)?;
    /// let mut memory = [1, 2];
    /// let combiner = sum.combiner().ok_or("there is a loop")?;
    /// combiner.combine(View::new(&[3, 4]), &mut ViewMut::new(&mut memory), 2)?;
    /// assert_eq!(memory, [4, 6]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn combiner(&self) -> Option<Combiner> {
        match &self.method {
            Method::Keep => Some(Combiner(ReadyFold::KEEP)),
            Method::Replace => Some(Combiner(ReadyFold::REPLACE)),
            Method::Fold(fold) => fold.ready().map(Combiner),
            Method::Software(_) => None,
        }
    }

    /// The operation.
    #[inline]
    pub fn op(&self) -> Op {
        self.op
    }

    /// The bytes of an element in a packed stream of its representation.
    #[inline]
    pub fn element(&self) -> u64 {
        self.element.into()
    }

    /// Combines `elements` packed operands with as many packed elements, in place. Both start at
    /// displacement 0.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfBounds`] if either view has too few bytes. Nothing is changed.
    #[inline]
    pub fn combine(
        &self,
        operands: View<'_>,
        target: &mut ViewMut<'_>,
        elements: u64,
    ) -> Result<()> {
        match elements.checked_mul(self.element()) {
            Some(bytes) => self.combine_packed(operands, target, bytes),
            None => Err(Error::Overflow { what: "the packed size" }),
        }
    }

    /// Combines `bytes` of packed operands with as many bytes of packed elements, in place. Both
    /// start at displacement 0 and hold whole elements.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfBounds`] if either view has too few bytes. Nothing is changed.
    #[inline(always)] // a call would take as long as a fold of one element
    pub fn combine_packed(
        &self,
        operands: View<'_>,
        target: &mut ViewMut<'_>,
        bytes: u64,
    ) -> Result<()> {
        match &self.method {
            Method::Fold(fold) => Ok(fold.run(operands, target, 0, bytes)?),
            // Reborrowed: otherwise the caller's view would have to live in memory, for this arm
            // only.
            _ => self.combine_at(operands, &mut target.reborrow(), 0, bytes),
        }
    }

    /// Combines `bytes` of operands with the elements at displacement `at`.
    #[inline(never)]
    fn combine_at(
        &self,
        operands: View<'_>,
        target: &mut ViewMut<'_>,
        at: i64,
        bytes: u64,
    ) -> Result<()> {
        match &self.method {
            Method::Keep => {}
            Method::Replace => {
                let lane = |start| Lane { start, strides: [0; 2] };
                let copy = Kernel::new(Conversion::Copy, bytes);
                match copy.transfer([1, 1], operands, lane(0), target, lane(at)) {
                    Err(KernelError::OutOfBounds(error)) => return Err(error.into()),
                    // A copy never refuses a value.
                    Err(KernelError::Value { .. }) | Ok(()) => {}
                }
            }
            Method::Fold(fold) => fold.run(operands, target, at, bytes)?,
            Method::Software(software) => {
                let size = self.element as usize;
                let (mut operand, mut current) = ([0; LONGEST], [0; LONGEST]);
                let (operand, current) = (&mut operand[..size], &mut current[..size]);
                for element in 0..bytes / self.element() {
                    let offset = (element * self.element()) as i64;
                    operands.read(offset, operand)?;
                    target.read(at + offset, current)?;
                    software.combine(operand, current);
                    target.write(at + offset, current)?;
                }
            }
        }
        Ok(())
    }
}

/// A reduction as one loop: what remains of a [`Reduction`] that is carried out again and again. By
/// default the values stay.
#[derive(Clone, Copy, Debug)]
pub struct Combiner(ReadyFold);

impl Default for Combiner {
    fn default() -> Combiner {
        Combiner(ReadyFold::KEEP)
    }
}

impl Combiner {
    /// Combines `bytes` of packed operands with as many bytes of packed elements, in place. Both
    /// start at displacement 0 and hold whole elements.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfBounds`] if either view has too few bytes. Nothing is changed.
    #[inline]
    pub fn combine(&self, operands: View<'_>, target: &mut ViewMut<'_>, bytes: u64) -> Result<()> {
        Ok(self.0.run(operands, target, bytes)?)
    }
}

/// Compare and swap of one element, in the memory of one architecture (MPI-5.0 section 12.3.4).
#[derive(Clone, Copy, Debug)]
pub struct Swap {
    scalar: Scalar,
}

impl Default for Swap {
    /// Compare and swap of a byte.
    fn default() -> Swap {
        Swap { scalar: Scalar { value: Value::Bytes, size: 1, order: ByteOrder::Little } }
    }
}

impl Swap {
    /// Compare and swap of elements of `leaf`.
    ///
    /// # Errors
    ///
    /// Those of [`check_swap`] and [`Architecture::leaf`].
    pub fn new(leaf: Leaf, architecture: &Architecture) -> Result<Swap> {
        check_swap(leaf)?;
        let components = architecture.leaf(leaf)?.components;
        let refused = || Error::Argument {
            call: "a compare-and-swap",
            class: Class::Type,
            problem: format!("{leaf} holds no data"),
        };
        Ok(Swap { scalar: components.first().ok_or_else(refused)?.scalar })
    }

    /// The bytes of an element.
    #[inline]
    pub fn element(&self) -> u64 {
        self.scalar.size.into()
    }

    /// Stores `new` if the element equals `compare`, and returns the previous value in `old`.
    ///
    /// Two logicals are equal if both are true or both are false. All arguments hold one element in
    /// the memory's representation.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfBounds`] if the element doesn't lie in the memory.
    pub fn apply(
        &self,
        target: &mut ViewMut<'_>,
        compare: &[u8],
        new: &[u8],
        old: &mut [u8],
    ) -> Result<()> {
        target.read(0, old)?;
        if software::equal(self.scalar, compare, old) {
            target.write(0, new)?;
        }
        Ok(())
    }

    /// Whether two elements are equal. Each is given as an integer, with zeros beyond its bytes.
    #[inline]
    pub fn is_equal(&self, a: u64, b: u64) -> bool {
        match self.scalar.value {
            Value::Logical { .. } => (a != 0) == (b != 0),
            _ => a == b,
        }
    }

    /// Stores `new` if the element equals `compare`. All lie at displacement 0 of their views. The
    /// previous value isn't returned.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfBounds`] if an element doesn't lie in its view.
    #[inline]
    pub fn apply_views(
        &self,
        mut target: ViewMut<'_>,
        compare: View<'_>,
        new: View<'_>,
    ) -> Result<()> {
        let size = usize::from(self.scalar.size);
        let (mut wanted, mut fresh, mut old) = ([0; MAX_SIZE], [0; MAX_SIZE], [0; MAX_SIZE]);
        compare.read(0, &mut wanted[..size])?;
        new.read(0, &mut fresh[..size])?;
        self.apply(&mut target, &wanted[..size], &fresh[..size], &mut old[..size])
    }
}

fn is_complex(leaf: Leaf) -> bool {
    match leaf {
        Leaf::Basic(basic) => matches!(basic.makeup(), Makeup::Complex(_)),
        Leaf::F90Complex { .. } => true,
        Leaf::F90Real { .. } | Leaf::F90Integer { .. } => false,
    }
}
