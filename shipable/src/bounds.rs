//! Bounds, extents and sizes (MPI-5.0 sections 5.1.5 to 5.1.8).
//!
//! The markers LB and UB are sticky, as MPI-1 has them: where a type map holds one, the bound is
//! that of the lowest (highest) marker and what the data would give is of no account. RESIZED,
//! SUBARRAY and DARRAY set both. Where there is no UB, however deep, the extent is padded to a
//! multiple of the alignment (the epsilon of section 5.1.6), whatever the constructor: in structs,
//! and in blocks at bytes that aren't multiples of their alignment, it shows. A simple struct has
//! the bounds of the C struct that it stands for, and markers don't show through it.
//!
//! [`Bounds`] composes without its type tree, so that forms find their bounds by the same rules.

use std::borrow::Borrow;

use crate::arch::{Architecture, LeafLayout, Width};
use crate::basic::{Basic, Leaf};
use crate::datatype::Datatype;
use crate::error::{Error, Result};

/// Where a type lies on one architecture. All in bytes, relative to the address of the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The lower bound.
    pub lb: i64,
    /// The upper bound.
    pub ub: i64,
    /// The first byte of data; 0 where there is none.
    pub true_lb: i64,
    /// The end of the last byte of data; 0 where there is none.
    pub true_ub: i64,
    /// Bytes of data, gaps left out.
    pub size: i64,
    /// The alignment that C gives it as a member of a struct.
    pub align: i64,
    /// The alignment that it gives a struct which starts with it (see
    /// [`LeafLayout::leading_align`]).
    pub leading_align: i64,
    lower: Mark,
    upper: Mark,
    has_data: bool,
}

/// What a bound rests on; the greater decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Mark {
    /// On nothing: the type map is empty.
    Absent,
    /// On the data.
    Natural,
    /// On a marker, or a constructor that sets it.
    Sticky,
}

impl Bounds {
    /// Those of a type without data or markers.
    pub const EMPTY: Bounds = Bounds {
        lb: 0,
        ub: 0,
        true_lb: 0,
        true_ub: 0,
        size: 0,
        align: 1,
        leading_align: 1,
        lower: Mark::Absent,
        upper: Mark::Absent,
        has_data: false,
    };

    /// The distance from one element to the next.
    pub const fn extent(&self) -> i64 {
        self.ub - self.lb
    }

    /// The length of what holds data.
    pub const fn true_extent(&self) -> i64 {
        self.true_ub - self.true_lb
    }

    /// Whether the type map has no entry, not even a marker.
    const fn is_empty(&self) -> bool {
        matches!((self.lower, self.upper), (Mark::Absent, Mark::Absent))
    }

    /// Whether both lie alike, whatever alignment they give to structs.
    pub(crate) fn lies_as(&self, other: &Bounds) -> bool {
        let Bounds { align, leading_align, .. } = *self;
        *self == Bounds { align, leading_align, ..*other }
    }

    /// Those of a leaf.
    ///
    /// # Errors
    /// As [`Architecture::leaf`].
    pub fn of_leaf(leaf: Leaf, architecture: &Architecture) -> Result<Bounds> {
        match leaf {
            Leaf::Basic(Basic::Lb) => Ok(Bounds { lower: Mark::Sticky, ..Bounds::EMPTY }),
            Leaf::Basic(Basic::Ub) => Ok(Bounds { upper: Mark::Sticky, ..Bounds::EMPTY }),
            Leaf::Basic(basic) => Ok(match architecture.scalar(basic) {
                Some((width, align)) => Bounds::of_scalar(width, align),
                None => Bounds::of_layout(&architecture.basic(basic)),
            }),
            _ => architecture.leaf(leaf).map(|layout| Bounds::of_layout(&layout)),
        }
    }

    fn of_scalar(width: Width, align: u32) -> Bounds {
        let size = width.size.into();
        Bounds {
            ub: size,
            true_ub: size,
            size,
            align: align.into(),
            leading_align: width.align.into(),
            lower: Mark::Natural,
            upper: Mark::Natural,
            has_data: true,
            ..Bounds::EMPTY
        }
    }

    /// Those of blocks of a scalar, of this width and alignment as a member, a stride of so many units apart, or of so many scalars: where
    /// there is one, all lies forwards without padding, and numbers are small.
    #[inline(always)]
    pub(crate) fn of_scalar_blocks(
        (width, align): (Width, u32),
        count: i64,
        blocklength: i64,
        (stride, unit): (i64, Option<i64>),
    ) -> Option<Bounds> {
        // The product of two and the size of a scalar is far from the ends of 64 bits.
        const FEW: i64 = 1 << 27;
        let (extent, own_align) = (i64::from(width.size), i64::from(width.align));
        let few = |number: i64| (1..FEW).contains(&number);
        let stride_is_small = (0..FEW).contains(&stride);
        let step = stride.wrapping_mul(unit.unwrap_or(extent));
        let is_whole = own_align & (own_align - 1) == 0 && (extent | step) & (own_align - 1) == 0;
        if !few(count) || !few(blocklength) || !stride_is_small || !is_whole {
            return None;
        }
        let end = (count - 1) * step + blocklength * extent;
        Some(Bounds {
            lb: 0,
            ub: end,
            true_lb: 0,
            true_ub: end,
            size: count * blocklength * extent,
            align: align.into(),
            leading_align: own_align,
            lower: Mark::Natural,
            upper: Mark::Natural,
            has_data: true,
        })
    }

    fn of_layout(layout: &LeafLayout) -> Bounds {
        let ends = layout.components.iter().map(|c| c.offset + u32::from(c.scalar.size));
        Bounds {
            ub: layout.extent.into(),
            true_ub: ends.max().unwrap_or(0).into(),
            size: layout.size.into(),
            align: layout.align.into(),
            leading_align: layout.leading_align.into(),
            lower: Mark::Natural,
            upper: Mark::Natural,
            has_data: true,
            ..Bounds::EMPTY
        }
    }

    /// Those of `copies` of this at displacements of which `span` holds the least and the greatest.
    ///
    /// # Errors
    /// [`Error::Overflow`].
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

    /// Those of `count` of this, one extent apart, from a displacement on.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub(crate) fn block(&self, count: i64, displacement: i64) -> Result<Bounds> {
        let reach = count.checked_sub(1).and_then(|steps| steps.checked_mul(self.extent()));
        if let Some(block) = reach.and_then(|reach| self.spread(count, displacement, reach)) {
            return Ok(block);
        }
        let at = Span::at(displacement.into());
        self.repeat(count.into(), Span::steps(count, self.extent().into())?.plus(&at)?)
    }

    /// What [`repeat`](Bounds::repeat) finds for `copies` of this between `first` and as much as `reach` behind it, where that is
    /// simple: there are data, copies and bounds, and nothing leaves 64 bits. Most are so, and this takes few instructions.
    pub(crate) fn spread(&self, copies: i64, first: i64, reach: i64) -> Option<Bounds> {
        let simple = self.has_data && self.lower != Mark::Absent && self.upper != Mark::Absent;
        if !simple || copies < 1 || reach < 0 {
            return None;
        }
        let last = first.checked_add(reach)?;
        let bounds = Bounds {
            lb: self.lb.checked_add(first)?,
            ub: self.ub.checked_add(last)?,
            true_lb: self.true_lb.checked_add(first)?,
            true_ub: self.true_ub.checked_add(last)?,
            size: self.size.checked_mul(copies)?,
            ..*self
        };
        bounds.ub.checked_sub(bounds.lb)?;
        bounds.true_ub.checked_sub(bounds.true_lb)?;
        Some(bounds)
    }

    /// Those of both together, this being the one that lies first in memory for
    /// [`Bounds::leading_align`].
    ///
    /// # Errors
    /// [`Error::Overflow`].
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

    /// Those of the same data between bounds that a constructor sets.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub fn resized(&self, lb: i64, extent: i64) -> Result<Bounds> {
        let ub = lb.checked_add(extent).ok_or_else(|| Error::overflow("a bound"))?;
        Ok(Bounds { lb, ub, lower: Mark::Sticky, upper: Mark::Sticky, ..*self })
    }

    /// Those of the same data between bounds that are as good as the data's own: markers don't show
    /// through them.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub(crate) fn laid(&self, lb: i64, ub: i64) -> Result<Bounds> {
        Bounds { lb, ub, lower: Mark::Natural, upper: Mark::Natural, ..*self }.settled()
    }

    /// Those of a type of this content: unless a marker sets the upper bound, the extent is padded
    /// to the alignment.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub fn padded(&self) -> Result<Bounds> {
        if self.upper != Mark::Natural {
            return Ok(*self);
        }
        let past = match self.leading_align {
            // A division costs more than all the rest.
            align if align > 0 && align & (align - 1) == 0 => self.extent() & (align - 1),
            align => self.extent().rem_euclid(align),
        };
        if past == 0 {
            return Ok(*self);
        }
        let short = self.leading_align - past;
        let ub = self.ub.checked_add(short).ok_or_else(|| Error::overflow("a bound"))?;
        Bounds { ub, ..*self }.settled()
    }

    /// A bound that rests on nothing is the other one; the extent fits 64 bits.
    fn settled(self) -> Result<Bounds> {
        let (lb, ub) = match (self.lower, self.upper) {
            (Mark::Absent, Mark::Absent) => (0, 0),
            (Mark::Absent, _) => (self.ub, self.ub),
            (_, Mark::Absent) => (self.lb, self.lb),
            _ => (self.lb, self.ub),
        };
        match (ub.checked_sub(lb), self.true_ub.checked_sub(self.true_lb)) {
            (Some(_), Some(_)) => Ok(Bounds { lb, ub, ..self }),
            _ => Err(Error::Overflow { what: "the extent" }),
        }
    }
}

/// The least and the greatest of a set of displacements, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The least.
    pub least: i128,
    /// The greatest.
    pub greatest: i128,
}

impl Span {
    /// One displacement.
    pub const fn at(displacement: i128) -> Span {
        Span { least: displacement, greatest: displacement }
    }

    /// `count` displacements from 0 on, `step` apart. None at all for a count of 0.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub fn steps(count: i64, step: i128) -> Result<Span> {
        let last = product(i128::from(count.max(1) - 1), step)?;
        Ok(Span { least: last.min(0), greatest: last.max(0) })
    }

    /// The sums of a displacement here and one there.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub fn plus(&self, other: &Span) -> Result<Span> {
        let sum = |a: i128, b: i128| a.checked_add(b).ok_or_else(|| Error::overflow("a bound"));
        Ok(Span {
            least: sum(self.least, other.least)?,
            greatest: sum(self.greatest, other.greatest)?,
        })
    }

    /// The displacements of both.
    pub fn or(&self, other: &Span) -> Span {
        Span { least: self.least.min(other.least), greatest: self.greatest.max(other.greatest) }
    }
}

pub(crate) fn product(a: i128, b: i128) -> Result<i128> {
    // One instruction, and mostly all that it takes.
    if let (Ok(a), Ok(b)) = (i64::try_from(a), i64::try_from(b)) {
        return Ok(i128::from(a) * i128::from(b));
    }
    a.checked_mul(b).ok_or_else(|| Error::overflow("a bound"))
}

/// Lays members out one after the other as C does: the layout of a simple struct.
///
/// A block of a member lies with its lower bound at the first address that is free and aligned.
/// Members without content take no part.
#[derive(Clone, Debug)]
pub struct StructLayout {
    end: i128,
    content: Bounds,
}

impl StructLayout {
    /// A struct without members yet.
    pub const fn new() -> StructLayout {
        StructLayout { end: 0, content: Bounds::EMPTY }
    }

    /// Adds a block of elements and returns its displacement.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub fn push(&mut self, blocklength: i64, member: &Bounds) -> Result<i64> {
        let block = member.block(blocklength, 0)?;
        let low = i128::from(block.lb.min(block.ub));
        let high = i128::from(block.lb.max(block.ub));
        let align = if block.is_empty() { 1 } else { i128::from(block.align) };
        let start = self.end + (-self.end).rem_euclid(align);
        let displacement =
            i64::try_from(start - low).map_err(|_| Error::Overflow { what: "a displacement" })?;
        self.content = self.content.join(&block.block(1, displacement)?)?;
        self.end = start + (high - low);
        Ok(displacement)
    }

    /// The bounds of the struct: from 0 to the padded tail, whatever bounds its members set.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub fn finish(self) -> Result<Bounds> {
        let content = self.content;
        if content.is_empty() {
            return Ok(content);
        }
        let ub = i64::try_from(self.end).map_err(|_| Error::Overflow { what: "a bound" })?;
        content.laid(0, ub)?.padded()
    }
}

impl Default for StructLayout {
    fn default() -> StructLayout {
        StructLayout::new()
    }
}

/// Those of a struct's content: members, each a blocklength, a displacement and the bounds of one
/// element.
pub(crate) fn structure(
    members: impl Iterator<Item = Result<(i64, i64, impl Borrow<Bounds>)>>,
) -> Result<Bounds> {
    let mut content = Bounds::EMPTY;
    for member in members {
        let (blocklength, displacement, member) = member?;
        let block = member.borrow().block(blocklength, displacement)?;
        // The member that lies first in memory leads, wherever it stands in the list.
        let leads = block.has_data && block.true_lb < content.true_lb;
        content = match content.has_data && leads {
            true => block.join(&content)?,
            false => content.join(&block)?,
        };
    }
    Ok(content)
}

/// Those of a struct's content where that is simple: members of predefined types that are one scalar each, and numbers that keep far
/// from the ends of 64 bits, as those of most structs do. `displacement` is none where C lays the member out.
///
/// It finds what [`structure`] and [`StructLayout`] do, in a fourth of the time: they copy bounds that have only just been written.
pub(crate) fn of_scalars<'a>(
    architecture: &Architecture,
    members: impl Iterator<Item = (i64, Option<i64>, &'a Datatype)>,
) -> Option<Bounds> {
    const FAR: i64 = 1 << 40;
    let (mut lb, mut ub, mut end, mut size) = (i64::MAX, i64::MIN, 0, 0i64);
    let (mut align, mut leading_align) = (1, 1);
    for (blocklength, displacement, member) in members {
        let (width, member_align) = architecture.scalar(member.as_basic()?)?;
        let (extent, own_align) = (i64::from(width.size), i64::from(width.align));
        let member_align = i64::from(member_align);
        // A multiple of their own alignment, so that nothing pads them; and powers of two.
        let is_whole = |align: i64| align & (align - 1) == 0;
        let is_simple =
            is_whole(member_align) && is_whole(own_align) && extent & (own_align - 1) == 0;
        let at = displacement.unwrap_or((end + member_align - 1) & -member_align);
        if !is_simple || !(1..FAR).contains(&blocklength) || !(-FAR..FAR).contains(&at) {
            return None;
        }
        end = at + blocklength * extent;
        // The member that lies first in memory leads, wherever it stands in the list.
        if at < lb {
            (lb, leading_align) = (at, own_align);
        }
        ub = ub.max(end);
        // Members may lie over each other, so their places don't bound their sum.
        size = size.checked_add(blocklength * extent)?;
        align = align.max(member_align);
    }
    (size > 0).then_some(Bounds {
        lb,
        ub,
        true_lb: lb,
        true_ub: ub,
        size,
        align,
        leading_align: align.max(leading_align),
        lower: Mark::Natural,
        upper: Mark::Natural,
        has_data: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The long way, member by member.
    fn content(
        architecture: &Architecture,
        members: &[(i64, Option<i64>, Datatype)],
    ) -> Result<Bounds> {
        let of = |member: &Datatype| {
            Bounds::of_leaf(member.as_basic().unwrap_or(Basic::Byte).into(), architecture)?.padded()
        };
        if members.iter().any(|(_, displacement, _)| displacement.is_some()) {
            return structure(members.iter().map(|(blocklength, displacement, member)| {
                Ok((*blocklength, displacement.unwrap_or(0), of(member)?))
            }));
        }
        let mut layout = StructLayout::new();
        for (blocklength, _, member) in members {
            layout.push(*blocklength, &of(member)?)?;
        }
        layout.finish()
    }

    #[test]
    fn scalars_lie_as_all_members_do() {
        let mut quick = 0;
        for architecture in Architecture::all() {
            for &first in Basic::ALL {
                for &second in Basic::ALL {
                    for places in
                        [[None; 3], [Some(0), Some(24), Some(48)], [Some(40), Some(-8), Some(-8)]]
                    {
                        let members = [(1, first), (3, second), (2, Basic::Char)];
                        let members =
                            members.iter().zip(places).map(|(&(blocklength, member), place)| {
                                (blocklength, place, Datatype::basic(member))
                            });
                        let members: Vec<_> = members.collect();
                        let given = members.iter().map(|(n, at, member)| (*n, *at, member));
                        if let Some(found) = of_scalars(architecture, given) {
                            quick += 1;
                            let expected = content(architecture, &members);
                            assert_eq!(
                                found.padded(),
                                expected.and_then(|all| all.padded()),
                                "{first:?}, {second:?}"
                            );
                        }
                    }
                }
            }
        }
        assert!(quick > 10_000, "{quick}");
    }

    #[test]
    fn a_sum_of_many_long_members_is_left_to_the_long_way() {
        let (widest, one) = (Datatype::basic(Basic::LongDouble), Datatype::basic(Basic::Char));
        let long = std::iter::repeat_n(((1 << 40) - 1, Some(0), &widest), 1 << 20);
        // 2^64 - 2^24 bytes, and on to a size that looks like a small one.
        for more in [0, 1, 2] {
            let members = long.clone().chain([((1 << 24) - 1, Some(0), &one)]);
            let members = members.chain(std::iter::repeat_n((1, Some(0), &widest), more));
            assert!(of_scalars(&Architecture::X86_64, members).is_none(), "{more}");
        }
    }
}
