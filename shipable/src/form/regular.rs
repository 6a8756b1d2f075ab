//! Compilation of regular types: arrays of arrays of a scalar, and structs of scalars.
//!
//! Most types are regular. Their nodes can't be equal, their subtrees aren't shared, and a reader
//! of the form computes the bounds that the datatype has. So their compilation needs none of the
//! tables of [`compile`](super::compile), whose form it makes (docs/tuning.md, "Regular types").

use super::node::{Field, Node, Placed, Span};
use super::vectors::{Vector, Vectors};
use super::{Layouts, Nodes};
use crate::arch::Architecture;
use crate::basic::Leaf;
use crate::bounds::{self, Bounds};
use crate::datatype::{Datatype, Node as Constructor, Order};

/// Compiles a regular type. Appends the nodes of its form to `nodes`, and their bounds to
/// `layouts`. `None` if a type isn't regular, if it is empty, or if a number is large.
pub(super) fn compile(
    datatype: &Datatype,
    architecture: &Architecture,
    layouts: &mut Layouts,
    nodes: &mut Nodes,
) -> Option<()> {
    let portable = datatype.is_portable();
    let mut made = Regular { architecture, portable, layouts, nodes };
    match datatype.node() {
        Constructor::Struct { blocklengths, displacements, children, .. } => {
            made.structure(blocklengths, Some(displacements), children)
        }
        Constructor::SimpleStruct { blocklengths, children } => {
            made.structure(blocklengths, None, children)
        }
        _ => made.array(datatype),
    }
}

struct Regular<'a> {
    architecture: &'a Architecture,
    portable: bool,
    layouts: &'a mut Layouts,
    nodes: &'a mut Nodes,
}

/// The unit of a constructor's displacements.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Extents,
    Bytes,
}

/// The most scalars of a struct, which are compared with each other.
const SCALARS: usize = 8;

impl Regular<'_> {
    fn array(&mut self, datatype: &Datatype) -> Option<()> {
        match datatype.node() {
            Constructor::Leaf(leaf) => self.scalar(*leaf),
            Constructor::Dup { child } => self.array(child),
            Constructor::Contiguous { count, child } => {
                self.array(child)?;
                self.blocks(Unit::Extents, [0, *count, 1, 0], None)
            }
            Constructor::Vector { count, blocklength, stride, child } => {
                self.array(child)?;
                self.blocks(Unit::Extents, [0, *blocklength, *count, *stride], None)
            }
            Constructor::Hvector { count, blocklength, stride, child, .. } => {
                self.array(child)?;
                self.blocks(Unit::Bytes, [0, *blocklength, *count, *stride], None)
            }
            Constructor::Subarray { sizes, subsizes, starts, order, child } => {
                self.nodes.reserve_exact(sizes.len() + 1);
                self.array(child)?;
                // From the fastest dimension to the slowest, each is an array of the one before.
                for step in 0..sizes.len() {
                    let dim = if *order == Order::C { sizes.len() - 1 - step } else { step };
                    let section = [starts[dim], subsizes[dim], 1, 0];
                    self.blocks(Unit::Extents, section, Some(sizes[dim]))?;
                }
                Some(())
            }
            _ => None,
        }
    }

    #[inline]
    fn scalar(&mut self, leaf: Leaf) -> Option<()> {
        let Leaf::Basic(basic) = leaf else { return None };
        let (width, align) = self.architecture.scalar(basic)?;
        self.nodes.push(Node::Leaf(leaf));
        self.layouts.push(Bounds::of_scalar(width, align));
        Some(())
    }

    /// Adds an array of the last node: blocks from a displacement on, with a length, a count and a
    /// stride. If `stated`, its bounds go from 0 to that many units.
    #[inline]
    fn blocks(
        &mut self,
        unit: Unit,
        [displacement, length, count, stride]: [i64; 4],
        stated: Option<i64>,
    ) -> Option<()> {
        /// Products of two such numbers and an extent are far below 2^63.
        const NEAR: i64 = 1 << 20;
        let near = |number: i64| (-NEAR..NEAR).contains(&number);
        let child = self.layouts.last()?;
        let extent = child.extent();
        let stride = if count == 1 { 0 } else { stride };
        let filled = length > 0 && count > 0;
        if !filled || ![displacement, length, count, stride, extent].into_iter().all(near) {
            return None;
        }
        let scale = if unit == Unit::Extents { extent } else { 1 };
        let (first, step) = (displacement * scale, stride * scale);
        let (inner, outer) = ((length - 1) * extent, (count - 1) * step);
        let least = first + inner.min(0) + outer.min(0);
        let mut bounds = child.spread(count * length, least, inner.abs() + outer.abs())?;
        let span = match stated {
            None if bounds.past_alignment() == 0 => Span::Natural,
            None => return None,
            Some(units) => {
                let whole = units.checked_mul(scale)?;
                bounds = bounds.resized(0, whole).ok()?;
                Span::Stated { lower: 0, extent: if self.portable { units } else { whole } }
            }
        };
        let (displacement, stride) =
            if self.portable { (displacement, stride) } else { (first, step) };
        let (length, count) = (length as u64, count as u64);
        let vectors = Vectors::one(Vector { displacement, length, count, stride });
        let child = self.nodes.len() as u32 - 1;
        self.nodes.push(Node::Array { child, vectors, span });
        self.layouts.push(bounds);
        Some(())
    }

    /// Adds a struct of scalars. Without displacements it is a simple struct.
    fn structure(
        &mut self,
        blocklengths: &[i64],
        displacements: Option<&[i64]>,
        children: &[Datatype],
    ) -> Option<()> {
        if children.len() > SCALARS || !blocklengths.iter().all(|&length| length > 0) {
            return None;
        }
        self.nodes.reserve_exact(children.len() + 1);
        match displacements {
            Some(displacements) => {
                let mut members = Vec::with_capacity(children.len());
                let all = blocklengths.iter().zip(displacements).zip(children);
                for ((&length, &displacement), child) in all {
                    let child = self.member(child)?;
                    members.push(Placed { child, length: length as u64, displacement });
                }
                let places = members.iter().map(|member| {
                    let layout = &self.layouts[member.child as usize];
                    (member.length, Some(member.displacement), layout)
                });
                let bounds = bounds::of_plain(places)?.padded().ok()?;
                self.nodes.push(Node::Struct { members: members.into(), span: Span::Natural });
                self.layouts.push(bounds);
            }
            None => {
                let mut members = Vec::with_capacity(children.len());
                for (&length, child) in blocklengths.iter().zip(children) {
                    members.push(Field { child: self.member(child)?, length: length as u64 });
                }
                let places = members
                    .iter()
                    .map(|member| (member.length, None, &self.layouts[member.child as usize]));
                let bounds = bounds::of_plain(places)?.padded().ok()?;
                self.nodes.push(Node::Simple { members: members.into() });
                self.layouts.push(bounds);
            }
        }
        Some(())
    }

    /// The index of a member's node.
    #[inline]
    fn member(&mut self, child: &Datatype) -> Option<u32> {
        let Constructor::Leaf(leaf) = child.node() else { return None };
        let same = |node: &Node| matches!(node, Node::Leaf(known) if known == leaf);
        match self.nodes.iter().position(same) {
            Some(index) => Some(index as u32),
            None => {
                self.scalar(*leaf)?;
                Some(self.nodes.len() as u32 - 1)
            }
        }
    }
}
