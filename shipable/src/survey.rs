//! Surveys: one walk over a datatype's tree that finds its bounds, its portability, and whether
//! compiling it can fail. It needs no form.

use crate::arch::Architecture;
use crate::bounds::{self, Bounds, Span, StructLayout, product};
use crate::datatype::{Datatype, Node, Order, Visited};
use crate::error::{Error, Result};
use crate::form::{Form, Limits};

/// The result of a survey.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Survey {
    pub bounds: Bounds,
    /// Whether the type is portable.
    pub portable: bool,
    /// Whether compiling the type, and lowering the form for its own memory, is certain to succeed.
    ///
    /// Then the tree is within the depth limit, and all displacements, strides and sizes are at
    /// most 2^60, so that sums and products of a few of them fit 64 bits.
    pub safe: bool,
}

/// The limit of numbers in safe types, far below 2^63.
const NEAR: u64 = 1 << 60;

impl Survey {
    /// Surveys a datatype.
    ///
    /// # Errors
    /// The errors of [`Datatype::bounds`].
    pub(crate) fn of(datatype: &Datatype, architecture: &Architecture) -> Result<Survey> {
        let mut walk = Walk {
            architecture,
            // A tree of two levels has no shared inner subtree.
            known: (datatype.depth() > 2).then(Visited::new),
            portable: true,
            near: true,
            levels: datatype.depth(),
        };
        let bounds = walk.bounds(datatype)?;
        let safe = walk.near && walk.levels <= Limits::DEPTH as usize;
        Ok(Survey { bounds, portable: walk.portable, safe })
    }

    /// The survey of a contiguous type or vector of a scalar type, for small arguments. `None`
    /// otherwise.
    ///
    /// The result equals that of [`of`](Survey::of), but the computation stays in registers
    /// (docs/tuning.md, "Surveys of vectors of scalars").
    #[inline(always)]
    pub(crate) fn of_scalars(datatype: &Datatype, architecture: &Architecture) -> Option<Survey> {
        let (count, blocklength, stride, unit, child) = match datatype.node() {
            Node::Contiguous { count, child } => (1, *count, 0, None, child),
            Node::Vector { count, blocklength, stride, child } => {
                (*count, *blocklength, *stride, None, child)
            }
            Node::Hvector { count, blocklength, stride, child, .. } => {
                (*count, *blocklength, *stride, Some(1), child)
            }
            _ => return None,
        };
        let (width, align) = architecture.scalar(child.as_basic()?)?;
        let bounds = Bounds::of_scalar_blocks((width, align), count, blocklength, (stride, unit))?;
        Some(Survey { bounds, portable: unit.is_none(), safe: true })
    }
}

impl Datatype {
    /// The bounds, size and alignment of one element on an architecture.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a bound doesn't fit 64 bits; [`Error::NoSuchKind`] for a Fortran type
    /// that the architecture lacks. If [`Form::compile`] succeeds, this does too.
    pub fn bounds(&self, architecture: &Architecture) -> Result<Bounds> {
        match Survey::of(self, architecture) {
            Ok(survey) => Ok(survey.bounds),
            // A survey also computes bounds of subtrees that hold no data, which a form leaves out.
            Err(error) => Form::bounds_of(self, architecture).map_err(|_| error),
        }
    }
}

/// A walk over a tree that visits each shared subtree once.
struct Walk<'a> {
    architecture: &'a Architecture,
    known: Option<Visited<Bounds>>,
    /// Whether all constructors visited so far are portable.
    portable: bool,
    /// Whether all numbers recorded so far are at most [`NEAR`].
    near: bool,
    /// An upper bound of the form's nesting depth. In a form, each dimension of an array is a node.
    levels: usize,
}

impl Walk<'_> {
    fn bounds(&mut self, datatype: &Datatype) -> Result<Bounds> {
        if let Node::Leaf(leaf) = datatype.node() {
            return Bounds::of_leaf(*leaf, self.architecture)?.padded();
        }
        if let Some(known) = self.known.as_ref().and_then(|known| known.get(datatype)) {
            return Ok(known);
        }
        let bounds = self.of_node(datatype.node())?.padded()?;
        let Bounds { lb, ub, true_lb, true_ub, size, .. } = bounds;
        [lb, ub, true_lb, true_ub, size].into_iter().for_each(|bound| self.record(bound));
        self.portable &= datatype.node().is_portable();
        if let Some(known) = &mut self.known {
            known.insert(datatype, bounds);
        }
        Ok(bounds)
    }

    /// Records a displacement or length in bytes. A value that overflowed is recorded as `i64::MAX`
    /// or `i64::MIN`.
    fn record(&mut self, bytes: i64) {
        self.near &= bytes.unsigned_abs() <= NEAR;
    }

    /// Records the length of one step, and of `count` steps.
    fn record_steps(&mut self, count: i64, step: i64) {
        self.record(step);
        self.record(step.saturating_mul(count));
    }

    fn of_node(&mut self, node: &Node) -> Result<Bounds> {
        match node {
            Node::Leaf(leaf) => Bounds::of_leaf(*leaf, self.architecture),
            Node::Dup { child } => self.bounds(child),
            Node::Contiguous { count, child } => {
                let child = self.bounds(child)?;
                self.record_steps(*count, child.extent());
                child.block(*count, 0)
            }
            Node::Vector { count, blocklength, stride, child } => {
                let child = self.bounds(child)?;
                self.strided(&child, *count, *blocklength, (*stride, child.extent()))
            }
            Node::Hvector { count, blocklength, stride, child, .. } => {
                let child = self.bounds(child)?;
                self.strided(&child, *count, *blocklength, (*stride, 1))
            }
            Node::Indexed { blocklengths, displacements, child } => {
                let child = self.bounds(child)?;
                let lengths = blocklengths.iter().copied();
                self.blocks(&child, lengths, displacements, child.extent())
            }
            Node::Hindexed { blocklengths, displacements, child, .. } => {
                let child = self.bounds(child)?;
                self.blocks(&child, blocklengths.iter().copied(), displacements, 1)
            }
            Node::IndexedBlock { blocklength, displacements, child } => {
                let child = self.bounds(child)?;
                let lengths = std::iter::repeat(*blocklength);
                self.blocks(&child, lengths, displacements, child.extent())
            }
            Node::HindexedBlock { blocklength, displacements, child } => {
                let child = self.bounds(child)?;
                self.blocks(&child, std::iter::repeat(*blocklength), displacements, 1)
            }
            Node::Struct { blocklengths, displacements, children, .. } => {
                let members = blocklengths.iter().zip(displacements).zip(children);
                let scalars = members.clone().map(|((&n, &at), child)| (n, Some(at), child));
                if let Some(bounds) = bounds::of_scalars(self.architecture, scalars) {
                    return Ok(bounds);
                }
                bounds::structure(members.map(|((&blocklength, &displacement), child)| {
                    let child = self.bounds(child)?;
                    self.record(displacement);
                    self.record_steps(blocklength, child.extent());
                    Ok((blocklength, displacement, child))
                }))
            }
            Node::SimpleStruct { blocklengths, children } => {
                let members = blocklengths.iter().zip(children);
                let scalars = members.clone().map(|(&n, child)| (n, None, child));
                if let Some(bounds) = bounds::of_scalars(self.architecture, scalars) {
                    return Ok(bounds);
                }
                let mut layout = StructLayout::new();
                for (&blocklength, child) in members {
                    let child = self.bounds(child)?;
                    self.record_steps(blocklength, child.extent());
                    layout.push(blocklength, &child)?;
                }
                layout.finish()
            }
            Node::Subarray { sizes, subsizes, starts, child, order } => {
                let child = self.bounds(child)?;
                self.array(&child, sizes, *order, |at| {
                    let (start, subsize) = (starts[at], subsizes[at]);
                    (start, start + subsize - 1, subsize)
                })
            }
            Node::Darray { gsizes, order, child, .. } => {
                let child = self.bounds(child)?;
                let shares = node.shares().unwrap_or_default();
                let whole =
                    gsizes.iter().fold(child.extent(), |all, &size| all.saturating_mul(size));
                shares.iter().for_each(|share| self.record_steps(share.period, whole));
                self.array(&child, gsizes, *order, |at| {
                    let share = &shares[at];
                    (share.first, share.last().unwrap_or(share.first), share.count())
                })
            }
            Node::Resized { lb, extent, child } => {
                self.record(*extent);
                self.bounds(child)?.resized(*lb, *extent)
            }
            Node::ValueIndex { value, index } => {
                let mut layout = StructLayout::new();
                for &member in [value, index] {
                    layout.push(1, &Bounds::of_leaf(member.into(), self.architecture)?)?;
                }
                layout.finish()
            }
        }
    }

    /// The bounds of strided blocks. The stride is in units of `unit` bytes.
    fn strided(
        &mut self,
        child: &Bounds,
        count: i64,
        blocklength: i64,
        (stride, unit): (i64, i64),
    ) -> Result<Bounds> {
        self.record_steps(count, stride.saturating_mul(unit));
        self.record_steps(blocklength, child.extent());
        if let Some(bounds) = spread_blocks(child, count, blocklength, (stride, unit)) {
            return Ok(bounds);
        }
        let copies = product(count.into(), blocklength.into())?;
        let stride = product(stride.into(), unit.into())?;
        let block = Span::steps(blocklength, child.extent().into())?;
        child.repeat(copies, Span::steps(count, stride)?.plus(&block)?)
    }

    /// The bounds of blocks at displacements in units of `unit` bytes.
    fn blocks(
        &mut self,
        child: &Bounds,
        lengths: impl Iterator<Item = i64> + Clone,
        displacements: &[i64],
        unit: i64,
    ) -> Result<Bounds> {
        let filled = || lengths.clone().zip(displacements).filter(|(length, _)| *length > 0);
        let extent = child.extent();
        // The displacement of an empty block is ignored.
        let (longest, farthest) = filled().fold((0, 0), |(longest, farthest), (length, at)| {
            (length.max(longest), at.unsigned_abs().max(farthest))
        });
        self.record(i64::try_from(farthest).unwrap_or(i64::MAX).saturating_mul(unit));
        self.record_steps(longest, extent);
        let (mut copies, mut all) = (0i128, None::<Span>);
        if self.near {
            // These products are far from the limits of 64 bits.
            let (mut least, mut greatest) = (i64::MAX, i64::MIN);
            for (length, at) in filled() {
                let (first, last) = (at * unit, at * unit + (length - 1) * extent);
                (least, greatest) = (least.min(first).min(last), greatest.max(first).max(last));
                copies += i128::from(length);
            }
            if copies > 0 {
                all = Some(Span { least: least.into(), greatest: greatest.into() });
            }
        } else {
            for (length, &at) in filled() {
                let block = Span::steps(length, extent.into())?;
                let block = block.plus(&Span::at(i128::from(at) * i128::from(unit)))?;
                // At most 2^63 blocks of at most 2^63 elements fit 128 bits.
                copies += i128::from(length);
                all = Some(all.map_or(block, |all| all.or(&block)));
            }
        }
        child.repeat(copies, all.unwrap_or(Span::at(0)))
    }

    /// The bounds of a part of an array. `part` returns the first index, the last index and the
    /// number of indices in a dimension.
    fn array(
        &mut self,
        child: &Bounds,
        sizes: &[i64],
        order: Order,
        part: impl Fn(usize) -> (i64, i64, i64),
    ) -> Result<Bounds> {
        self.levels += sizes.len();
        // From the fastest dimension to the slowest.
        let (mut stride, mut copies, mut span) = (i128::from(child.extent()), 1, Span::at(0));
        let mut items = 1i64;
        for step in 0..sizes.len() {
            let at = if order == Order::C { sizes.len() - 1 - step } else { step };
            let (first, last, count) = part(at);
            let (first, last) = (product(first.into(), stride)?, product(last.into(), stride)?);
            let part = Span { least: first.min(last), greatest: first.max(last) };
            span = span.plus(&part)?;
            copies = product(copies, count.into())?;
            stride = product(stride, sizes[at].into())?;
            // A slower dimension may make the part empty, but the form has a node for each
            // dimension.
            self.record(i64::try_from(copies).unwrap_or(i64::MAX).saturating_mul(child.size));
            items = items.saturating_mul(sizes[at]);
        }
        // Sizes are at least 1, so no dimension has more items than the product.
        self.record(items);
        let extent = i64::try_from(stride).map_err(|_| Error::Overflow { what: "the extent" })?;
        child.repeat(copies, span)?.resized(0, extent)
    }
}

/// The bounds of blocks at an ascending stride of `stride` units. `None` if a number doesn't fit 64
/// bits.
fn spread_blocks(
    child: &Bounds,
    count: i64,
    blocklength: i64,
    (stride, unit): (i64, i64),
) -> Option<Bounds> {
    if count < 1 || blocklength < 1 || stride < 0 || child.extent() < 0 {
        return None;
    }
    let blocks = stride.checked_mul(unit)?.checked_mul(count - 1)?;
    let block = child.extent().checked_mul(blocklength - 1)?;
    child.spread(count.checked_mul(blocklength)?, 0, blocks.checked_add(block)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::basic::Basic;

    #[test]
    fn surveys_of_scalar_blocks_equal_the_walk() {
        const FEW: i64 = 1 << 27;
        let mut fast = 0;
        for architecture in Architecture::all() {
            for child in Basic::ALL.iter().map(|&basic| Datatype::basic(basic)) {
                let numbers = [-3, 0, 1, 2, 7, 24, FEW - 1, FEW];
                let pairs = numbers[1..].iter().flat_map(|&n| numbers.map(|m| (n, m)));
                for (count, length) in pairs {
                    let made = numbers.iter().flat_map(|&stride| {
                        [
                            Datatype::vector(count, length, stride, &child),
                            Datatype::hvector(count, length, stride, &child),
                        ]
                    });
                    let contiguous = Datatype::contiguous(count, &child);
                    for datatype in made.chain([contiguous]).flatten() {
                        let Some(found) = Survey::of_scalars(&datatype, architecture) else {
                            continue;
                        };
                        let walked = Survey::of(&datatype, architecture).unwrap();
                        assert_eq!(found.bounds, walked.bounds, "{datatype} on {architecture}");
                        assert_eq!((found.portable, found.safe), (walked.portable, walked.safe));
                        fast += 1;
                    }
                }
            }
        }
        assert!(fast > 100_000, "{fast}");
    }
}
