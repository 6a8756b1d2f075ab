//! Bounds, extents and sizes (MPI-5.0 sections 5.1.5 to 5.1.8).
//!
//! The rules that go beyond the text of MPI-5.0:
//!
//! - The markers LB and UB are sticky, as in MPI-1. If a type map contains one, it alone sets the
//!   bound: the lowest LB or the highest UB, at any depth of the tree. RESIZED, SUBARRAY and DARRAY
//!   set both bounds.
//! - Without a UB, the extent of every constructor is padded to a multiple of the alignment (the
//!   epsilon of section 5.1.6). Padding changes the extent of structs, and of blocks at byte
//!   displacements that aren't aligned.
//! - A simple struct has the bounds of its C struct. Markers of its members don't change them.
//!
//! [`Bounds`] are computed from the bounds of children, without a type tree, so that datatypes and
//! forms share these rules.

mod plain;
mod structs;

pub(crate) use plain::{Plain, PlainStruct, of_plain};
pub use structs::StructLayout;
pub(crate) use structs::structure;

use crate::arch::{Architecture, LeafLayout, ScalarWidth};
use crate::basic::{Basic, Leaf};
use crate::error::{Error, Result};

/// The bounds of a type on one architecture, in bytes. Displacements are relative to the address of
/// the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The lower bound.
    pub lb: i64,
    /// The upper bound.
    pub ub: i64,
    /// The displacement of the first byte of data; 0 if there is none.
    pub true_lb: i64,
    /// The end of the last byte of data; 0 if there is none.
    pub true_ub: i64,
    /// The bytes of data, without gaps.
    pub size: i64,
    /// The alignment that C gives it as a member of a struct.
    pub align: i64,
    /// The alignment of a C struct whose first member it is (see [`LeafLayout::leading_align`]).
    pub leading_align: i64,
    lower: Basis,
    upper: Basis,
    has_data: bool,
}

/// The basis of a bound. Of two bases, the greater one decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Basis {
    /// None: the type map is empty.
    Absent,
    /// The data of the type map.
    Natural,
    /// A marker, or a constructor that sets bounds.
    Sticky,
}

impl Bounds {
    /// The bounds of a type without data or markers.
    pub const EMPTY: Bounds = Bounds {
        lb: 0,
        ub: 0,
        true_lb: 0,
        true_ub: 0,
        size: 0,
        align: 1,
        leading_align: 1,
        lower: Basis::Absent,
        upper: Basis::Absent,
        has_data: false,
    };

    /// The distance from one element to the next.
    pub const fn extent(&self) -> i64 {
        self.ub - self.lb
    }

    /// The distance from the first byte of data to the end of the last.
    pub const fn true_extent(&self) -> i64 {
        self.true_ub - self.true_lb
    }

    /// Whether the type map has no entry, not even a marker.
    const fn is_empty(&self) -> bool {
        matches!((self.lower, self.upper), (Basis::Absent, Basis::Absent))
    }

    /// Whether both are equal, except for the alignment that they give to structs.
    pub(crate) fn lies_as(&self, other: &Bounds) -> bool {
        let Bounds { align, leading_align, .. } = *self;
        *self == Bounds { align, leading_align, ..*other }
    }

    /// The bounds of a leaf.
    ///
    /// # Errors
    /// The errors of [`Architecture::leaf`].
    pub fn of_leaf(leaf: Leaf, architecture: &Architecture) -> Result<Bounds> {
        match leaf {
            Leaf::Basic(Basic::Lb) => Ok(Bounds { lower: Basis::Sticky, ..Bounds::EMPTY }),
            Leaf::Basic(Basic::Ub) => Ok(Bounds { upper: Basis::Sticky, ..Bounds::EMPTY }),
            Leaf::Basic(basic) => Ok(match architecture.scalar(basic) {
                Some(scalar) => Bounds::of_scalar(scalar),
                None => Bounds::of_layout(&architecture.basic(basic)),
            }),
            _ => architecture.leaf(leaf).map(|layout| Bounds::of_layout(&layout)),
        }
    }

    #[inline]
    pub(crate) fn of_scalar(scalar: ScalarWidth) -> Bounds {
        let size = scalar.width.size.into();
        Bounds {
            ub: size,
            true_ub: size,
            size,
            align: scalar.align.into(),
            leading_align: scalar.width.align.into(),
            lower: Basis::Natural,
            upper: Basis::Natural,
            has_data: true,
            ..Bounds::EMPTY
        }
    }

    fn of_layout(layout: &LeafLayout) -> Bounds {
        let ends = layout.components.iter().map(|c| c.offset + u32::from(c.scalar.size));
        Bounds {
            ub: layout.extent.into(),
            true_ub: ends.max().unwrap_or(0).into(),
            size: layout.size.into(),
            align: layout.align.into(),
            leading_align: layout.leading_align.into(),
            lower: Basis::Natural,
            upper: Basis::Natural,
            has_data: true,
            ..Bounds::EMPTY
        }
    }

    /// The bounds of `copies` copies of this at displacements in `span`.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a bound doesn't fit 64 bits.
    pub fn repeat(&self, copies: i128, span: Span) -> Result<Bounds> {
        if copies == 0 {
            return Ok(Bounds::EMPTY);
        }
        let size = match copies {
            1 => Some(self.size),
            _ => product(self.size.into(), copies).ok().and_then(|n| i64::try_from(n).ok()),
        };
        let shifted = |bound: i64, by: i128| {
            let moved = match i64::try_from(by) {
                Ok(by) => bound.checked_add(by),
                Err(_) => i128::from(bound).checked_add(by).and_then(|n| i64::try_from(n).ok()),
            };
            moved.ok_or_else(|| Error::overflow("a bound"))
        };
        let bounds = Bounds {
            lb: shifted(self.lb, span.least)?,
            ub: shifted(self.ub, span.greatest)?,
            true_lb: if self.has_data { shifted(self.true_lb, span.least)? } else { 0 },
            true_ub: if self.has_data { shifted(self.true_ub, span.greatest)? } else { 0 },
            size: size.ok_or_else(|| Error::overflow("the size"))?,
            ..*self
        };
        bounds.settled()
    }

    /// The bounds of `count` copies of this, one extent apart, from `displacement` on.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a bound doesn't fit 64 bits.
    pub(crate) fn block(&self, count: i64, displacement: i64) -> Result<Bounds> {
        let reach = count.checked_sub(1).and_then(|steps| steps.checked_mul(self.extent()));
        let mut block = *self;
        if reach.and_then(|reach| block.spread(count, displacement, reach)).is_some() {
            return Ok(block);
        }
        let at = Span::at(displacement.into());
        self.repeat(count.into(), Span::steps(count, self.extent().into())?.plus(&at)?)
    }

    /// Makes these the bounds of copies, where the fast path of [`repeat`](Bounds::repeat) applies.
    ///
    /// The copies lie at displacements from `first` to `first + reach`. `None`, and nothing
    /// changes, if there are no data or copies, if a bound has no basis, or if a number leaves 64
    /// bits. Most types take this path.
    #[inline]
    pub(crate) fn spread(&mut self, copies: i64, first: i64, reach: i64) -> Option<()> {
        let simple = self.has_data && self.lower != Basis::Absent && self.upper != Basis::Absent;
        if !simple || copies < 1 || reach < 0 {
            return None;
        }
        let last = first.checked_add(reach)?;
        let (lb, ub) = (self.lb.checked_add(first)?, self.ub.checked_add(last)?);
        let true_lb = self.true_lb.checked_add(first)?;
        let true_ub = self.true_ub.checked_add(last)?;
        let size = self.size.checked_mul(copies)?;
        ub.checked_sub(lb)?;
        true_ub.checked_sub(true_lb)?;
        (self.lb, self.ub, self.true_lb, self.true_ub) = (lb, ub, true_lb, true_ub);
        self.size = size;
        Some(())
    }

    /// The bounds of both types together. For [`Bounds::leading_align`], this is the first in
    /// memory.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a bound doesn't fit 64 bits.
    pub fn join(&self, other: &Bounds) -> Result<Bounds> {
        let (lb, lower) = match self.lower.cmp(&other.lower) {
            std::cmp::Ordering::Less => (other.lb, other.lower),
            std::cmp::Ordering::Equal => (self.lb.min(other.lb), self.lower),
            std::cmp::Ordering::Greater => (self.lb, self.lower),
        };
        let (ub, upper) = match self.upper.cmp(&other.upper) {
            std::cmp::Ordering::Less => (other.ub, other.upper),
            std::cmp::Ordering::Equal => (self.ub.max(other.ub), self.upper),
            std::cmp::Ordering::Greater => (self.ub, self.upper),
        };
        let (true_lb, true_ub) = match (self.has_data, other.has_data) {
            (true, true) => (self.true_lb.min(other.true_lb), self.true_ub.max(other.true_ub)),
            (true, false) => (self.true_lb, self.true_ub),
            _ => (other.true_lb, other.true_ub),
        };
        let size = self.size.checked_add(other.size);
        let align = self.align.max(other.align);
        let leader = if self.has_data { self } else { other };
        let bounds = Bounds {
            lb,
            ub,
            true_lb,
            true_ub,
            size: size.ok_or_else(|| Error::overflow("the size"))?,
            align,
            leading_align: leader.leading_align.max(align),
            lower,
            upper,
            has_data: self.has_data || other.has_data,
        };
        bounds.settled()
    }

    /// This type with the bounds that a constructor sets.
    ///
    /// # Errors
    /// [`Error::Overflow`] if the upper bound doesn't fit 64 bits.
    pub fn resized(&self, lb: i64, extent: i64) -> Result<Bounds> {
        let ub = lb.checked_add(extent).ok_or_else(|| Error::overflow("a bound"))?;
        Ok(Bounds { lb, ub, lower: Basis::Sticky, upper: Basis::Sticky, ..*self })
    }

    /// This type with other bounds, as if its data set them. They hide the markers.
    ///
    /// # Errors
    /// [`Error::Overflow`] if the extent doesn't fit 64 bits.
    pub(crate) fn laid(&self, lb: i64, ub: i64) -> Result<Bounds> {
        Bounds { lb, ub, lower: Basis::Natural, upper: Basis::Natural, ..*self }.settled()
    }

    /// The bytes of the extent past the last multiple of the alignment; 0 if a marker sets the
    /// upper bound.
    #[inline]
    pub(crate) fn past_alignment(&self) -> i64 {
        if self.upper != Basis::Natural {
            return 0;
        }
        match self.leading_align {
            // The mask avoids a division, which would dominate this function.
            align if align > 0 && align & (align - 1) == 0 => self.extent() & (align - 1),
            align => self.extent().rem_euclid(align),
        }
    }

    /// This type with its extent padded to the alignment, unless a marker sets the upper bound.
    ///
    /// # Errors
    /// [`Error::Overflow`] if the upper bound doesn't fit 64 bits.
    pub fn padded(&self) -> Result<Bounds> {
        let past = self.past_alignment();
        if past == 0 {
            return Ok(*self);
        }
        let short = self.leading_align - past;
        let ub = self.ub.checked_add(short).ok_or_else(|| Error::overflow("a bound"))?;
        Bounds { ub, ..*self }.settled()
    }

    /// Sets a bound without a basis to the other bound, and checks that the extents fit 64 bits.
    fn settled(self) -> Result<Bounds> {
        let (lb, ub) = match (self.lower, self.upper) {
            (Basis::Absent, Basis::Absent) => (0, 0),
            (Basis::Absent, _) => (self.ub, self.ub),
            (_, Basis::Absent) => (self.lb, self.lb),
            _ => (self.lb, self.ub),
        };
        match (ub.checked_sub(lb), self.true_ub.checked_sub(self.true_lb)) {
            (Some(_), Some(_)) => Ok(Bounds { lb, ub, ..self }),
            _ => Err(Error::Overflow { what: "the extent" }),
        }
    }
}

/// The range of a set of displacements, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The least displacement.
    pub least: i128,
    /// The greatest displacement.
    pub greatest: i128,
}

impl Span {
    /// The range of one displacement.
    pub const fn at(displacement: i128) -> Span {
        Span { least: displacement, greatest: displacement }
    }

    /// The range of `count` displacements from 0 on, `step` apart. For a count of 0 it is the range
    /// of the displacement 0.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a displacement doesn't fit 128 bits.
    pub fn steps(count: i64, step: i128) -> Result<Span> {
        let last = product(i128::from(count.max(1) - 1), step)?;
        Ok(Span { least: last.min(0), greatest: last.max(0) })
    }

    /// The range of the sums of a displacement of this and a displacement of the other.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a sum doesn't fit 128 bits.
    pub fn plus(&self, other: &Span) -> Result<Span> {
        let sum = |a: i128, b: i128| a.checked_add(b).ok_or_else(|| Error::overflow("a bound"));
        Ok(Span {
            least: sum(self.least, other.least)?,
            greatest: sum(self.greatest, other.greatest)?,
        })
    }

    /// The smallest range that contains both.
    pub fn or(&self, other: &Span) -> Span {
        Span { least: self.least.min(other.least), greatest: self.greatest.max(other.greatest) }
    }
}

pub(crate) fn product(a: i128, b: i128) -> Result<i128> {
    // The fast path: two 64-bit factors can't overflow 128 bits.
    if let (Ok(a), Ok(b)) = (i64::try_from(a), i64::try_from(b)) {
        return Ok(i128::from(a) * i128::from(b));
    }
    a.checked_mul(b).ok_or_else(|| Error::overflow("a bound"))
}
