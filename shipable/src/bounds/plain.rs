//! The bounds of structs whose members are plain, as those of most structs are.

use super::{Basis, Bounds};
use crate::arch::ScalarWidth;

impl Bounds {
    /// This type, if it is plain.
    #[inline]
    fn plain(&self) -> Option<Plain> {
        let is_filled = self.has_data
            && (self.lower, self.upper) == (Basis::Natural, Basis::Natural)
            && (self.lb, self.true_lb) == (0, 0)
            && (self.true_ub, self.size) == (self.ub, self.ub);
        if !is_filled {
            return None;
        }
        Plain::new(self.ub, self.align, self.leading_align)
    }
}

/// The bounds of a struct's members, before padding, for plain members and small numbers.
///
/// A member has a blocklength, a displacement and the bounds of one element. A displacement of
/// `None` is the one that C gives the member. `None` unless [`PlainStruct`] takes all members.
pub(crate) fn of_plain<'a>(
    members: impl Iterator<Item = (u64, Option<i64>, &'a Bounds)>,
) -> Option<Bounds> {
    let mut all = PlainStruct::new();
    for (blocklength, displacement, member) in members {
        all.push(i64::try_from(blocklength).ok()?, displacement, &member.plain()?)?;
    }
    all.finish()
}

/// A type that holds data from 0 to its extent, as predefined types of one scalar do. It is short.
/// Its alignments are powers of two, and its extent is a multiple of the leading one.
#[derive(Clone, Copy)]
pub(crate) struct Plain {
    extent: i64,
    align: i64,
    leading_align: i64,
}

impl Plain {
    /// A predefined type of one scalar.
    #[inline]
    pub(crate) fn of_scalar(scalar: ScalarWidth) -> Plain {
        let ScalarWidth { width, align } = scalar;
        let (extent, align) = (width.size.into(), align.into());
        Plain { extent, align, leading_align: width.align.into() }
    }

    /// `None` if a type with these numbers isn't plain.
    #[inline]
    fn new(extent: i64, align: i64, leading_align: i64) -> Option<Plain> {
        const LONG: i64 = 1 << 20;
        let is_power = |align: i64| align > 0 && align & (align - 1) == 0;
        // Sizes that are multiples of power-of-two alignments need no padding.
        let is_whole =
            is_power(align) && is_power(leading_align) && extent & (leading_align - 1) == 0;
        let plain = is_whole && (1..LONG).contains(&extent);
        plain.then_some(Plain { extent, align, leading_align })
    }

    /// The displacement that C gives it as a member of a struct after one that ends at `end`.
    #[inline]
    fn place_after(&self, end: i64) -> i64 {
        (end + self.align - 1) & -self.align
    }
}

/// The bounds of a struct of plain members, before padding. Members are added in order.
///
/// All numbers have to be far from the limits of 64 bits; most structs qualify. The result equals
/// that of [`structure`] and [`StructLayout`], which are slower because they copy bounds
/// (docs/tuning.md, "Bounds of plain members").
pub(crate) struct PlainStruct {
    lb: i64,
    ub: i64,
    /// The end of the member that was added last.
    end: i64,
    size: i64,
    align: i64,
    leading_align: i64,
}

impl PlainStruct {
    pub(crate) fn new() -> PlainStruct {
        PlainStruct { lb: i64::MAX, ub: i64::MIN, end: 0, size: 0, align: 1, leading_align: 1 }
    }

    /// Adds a block of elements and returns its displacement, which is the given one, or the one
    /// that C gives it. `None` if the block is empty, or a number is large.
    #[inline]
    pub(crate) fn push(
        &mut self,
        blocklength: i64,
        displacement: Option<i64>,
        member: &Plain,
    ) -> Option<i64> {
        const FAR: i64 = 1 << 40;
        let at = displacement.unwrap_or_else(|| member.place_after(self.end));
        if !(1..FAR).contains(&blocklength) || !(-FAR..FAR).contains(&at) {
            return None;
        }
        let size = blocklength * member.extent;
        self.end = at + size;
        // The member at the lowest address sets the leading alignment, independent of its index.
        if at < self.lb {
            (self.lb, self.leading_align) = (at, member.leading_align);
        }
        self.ub = self.ub.max(self.end);
        // Members may overlap, so their displacements don't bound the sum of their sizes.
        self.size = self.size.checked_add(size)?;
        self.align = self.align.max(member.align);
        Some(at)
    }

    /// The bounds, without padding. `None` if there are no members.
    fn finish(self) -> Option<Bounds> {
        let ub = self.ub;
        self.up_to(ub)
    }

    /// The bounds, with the extent padded to the alignment. `None` if there are no members.
    #[inline]
    pub(crate) fn padded(self) -> Option<Bounds> {
        // All numbers are far from the limits, and the alignments are powers of two.
        let mask = self.align.max(self.leading_align) - 1;
        let extent = self.ub.wrapping_sub(self.lb);
        let ub = self.ub.wrapping_add(extent.wrapping_neg() & mask);
        self.up_to(ub)
    }

    /// The bounds with this upper bound.
    #[inline]
    fn up_to(self, upper: i64) -> Option<Bounds> {
        let PlainStruct { lb, ub, size, align, leading_align, .. } = self;
        (size > 0).then_some(Bounds {
            lb,
            ub: upper,
            true_lb: lb,
            true_ub: ub,
            size,
            align,
            leading_align: align.max(leading_align),
            lower: Basis::Natural,
            upper: Basis::Natural,
            has_data: true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{StructLayout, structure};
    use super::*;
    use crate::arch::Architecture;
    use crate::basic::Basic;
    use crate::error::Result;

    /// The general computation, member by member.
    fn content(members: &[(i64, Option<i64>, Bounds)]) -> Result<Bounds> {
        if members.iter().any(|(_, displacement, _)| displacement.is_some()) {
            return structure(members.iter().map(|(blocklength, displacement, member)| {
                Ok((*blocklength, displacement.unwrap_or(0), member.padded()?))
            }));
        }
        let mut layout = StructLayout::new();
        for (blocklength, _, member) in members {
            layout.push(*blocklength, &member.padded()?)?;
        }
        layout.finish()
    }

    #[test]
    fn plain_members_have_the_bounds_of_the_general_computation() {
        let mut fast = 0;
        for architecture in Architecture::all() {
            for &first in Basic::ALL {
                for &second in Basic::ALL {
                    for displacements in
                        [[None; 3], [Some(0), Some(24), Some(48)], [Some(40), Some(-8), Some(-8)]]
                    {
                        let members = [(1, first), (3, second), (2, Basic::Char)];
                        let members = members.iter().zip(displacements).map(
                            |(&(blocklength, member), displacement)| {
                                let bounds = Bounds::of_leaf(member.into(), architecture).unwrap();
                                (blocklength, displacement, bounds)
                            },
                        );
                        let members: Vec<_> = members.collect();
                        let given = members.iter().map(|(n, at, member)| (*n as u64, *at, member));
                        if let Some(found) = of_plain(given) {
                            fast += 1;
                            let expected = content(&members);
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
        assert!(fast > 10_000, "{fast}");
    }

    #[test]
    fn every_scalar_is_plain() {
        for architecture in Architecture::all() {
            for &basic in Basic::ALL {
                let Some(scalar) = architecture.scalar(basic) else { continue };
                let Plain { extent, align, leading_align } = Plain::of_scalar(scalar);
                assert!(Plain::new(extent, align, leading_align).is_some(), "{basic:?}");
            }
        }
    }

    #[test]
    fn sums_of_sizes_beyond_64_bits_leave_the_fast_path() {
        let of = |basic: Basic| Bounds::of_leaf(basic.into(), &Architecture::X86_64).unwrap();
        let (widest, one) = (of(Basic::LongDouble), of(Basic::Char));
        let long = std::iter::repeat_n(((1 << 40) - 1, Some(0), &widest), 1 << 20);
        // 2^64 - 2^24 bytes; more members wrap the sum around to a small size.
        for more in [0, 1, 2] {
            let members = long.clone().chain([((1 << 24) - 1, Some(0), &one)]);
            let members = members.chain(std::iter::repeat_n((1, Some(0), &widest), more));
            assert!(of_plain(members).is_none(), "{more}");
        }
    }
}
