//! The nodes of a form: which items lie where, and what they span.

use smallvec::SmallVec;

use super::layout::copies;
use crate::basic::Leaf;

/// One node; its children are nodes before it.
///
/// A node stands for a sequence of items at displacements, in the order of the type map, and for the bounds by which its
/// parent places it. Displacements and strides are in extents of the child in a portable form, in bytes in a locale-specific one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// A predefined or parametrised type: one item, or the two of a pair or a complex number.
    Leaf(Leaf),
    /// Runs of children.
    Array {
        /// The child's index.
        child: u32,
        /// The runs, in the order of the type map.
        runs: Box<[Run]>,
        /// What the array spans.
        span: Span,
    },
    /// A simple struct, in portable forms only. Members lie where the C rules of the memory's architecture put them.
    Simple {
        /// The members, in order, without displacements.
        members: Box<[Field]>,
    },
    /// A struct with its members' displacements in bytes, in locale-specific forms only.
    Struct {
        /// The members, in order.
        members: Box<[Placed]>,
        /// What the struct spans.
        span: Span,
    },
}

/// `count` blocks of `length` children each: the first at `displacement`, each next one `stride` after the one before,
/// and the children of a block one extent apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Run {
    /// Where the first block lies.
    pub displacement: i64,
    /// Children in a block.
    pub length: u64,
    /// Blocks.
    pub count: u64,
    /// From one block to the next; 0 where there is one block.
    pub stride: i64,
}

/// A member of a simple struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Field {
    /// The child's index.
    pub child: u32,
    /// How many of it, one extent apart.
    pub length: u64,
}

/// A member of a struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Placed {
    /// The child's index.
    pub child: u32,
    /// How many of it, one extent apart.
    pub length: u64,
    /// Bytes from the struct's origin.
    pub displacement: i64,
}

/// The bounds of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Span {
    /// From the least lower bound of the children to the greatest upper one, and padded.
    Natural,
    /// Stated, as subarrays, distributed arrays and resized types do; in the units of the node.
    Stated {
        /// The lower bound.
        lower: i64,
        /// From the lower bound to the upper one.
        extent: i64,
    },
    /// Those of a simple struct or of blocks of it, in bytes, which hide what members state from the node's parents.
    Laid {
        /// The lower bound.
        lower: i64,
        /// From the lower bound to the upper one.
        extent: i64,
    },
}

impl Node {
    /// The indices of the children, in order.
    pub fn children(&self) -> impl Iterator<Item = u32> + '_ {
        let (one, simple, placed): (Option<u32>, &[Field], &[Placed]) = match self {
            Node::Leaf(_) => (None, &[], &[]),
            Node::Array { child, .. } => (Some(*child), &[], &[]),
            Node::Simple { members } => (None, members, &[]),
            Node::Struct { members, .. } => (None, &[], members),
        };
        let simple = simple.iter().map(|member| member.child);
        one.into_iter().chain(simple).chain(placed.iter().map(|member| member.child))
    }

    /// The children in order, each with how many of it there are.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (u32, i128)> + '_ {
        let (one, simple, placed): (_, &[Field], &[Placed]) = match self {
            Node::Leaf(_) => (None, &[], &[]),
            Node::Array { child, runs, .. } => (Some((*child, copies(runs))), &[], &[]),
            Node::Simple { members } => (None, members, &[]),
            Node::Struct { members, .. } => (None, &[], members),
        };
        let simple = simple.iter().map(|member| (member.child, member.length.into()));
        let placed = placed.iter().map(|member| (member.child, member.length.into()));
        one.into_iter().chain(simple).chain(placed)
    }
}

/// Collects runs, joining those that continue one another at the same stride.
pub(super) struct Runs(SmallVec<[Run; 2]>);

impl Runs {
    /// Room for as many blocks.
    pub(super) fn of(blocks: usize) -> Runs {
        Runs(SmallVec::with_capacity(blocks))
    }

    /// Adds a block. Empty ones are left out.
    pub(super) fn block(&mut self, displacement: i64, length: u64) {
        if length == 0 {
            return;
        }
        if let Some(last) = self.0.last_mut().filter(|last| last.length == length) {
            let step = displacement.checked_sub(last.displacement);
            let expected = last.stride.checked_mul(i64::try_from(last.count).unwrap_or(i64::MAX));
            match step {
                Some(step) if last.count == 1 => {
                    (last.count, last.stride) = (2, step);
                    return;
                }
                Some(_) if step == expected => {
                    last.count += 1;
                    return;
                }
                _ => {}
            }
        }
        self.0.push(Run { displacement, length, count: 1, stride: 0 });
    }

    /// Adds a run.
    pub(super) fn run(&mut self, run: Run) {
        match run.count {
            1 => self.block(run.displacement, run.length),
            _ if run.length > 0 && run.count > 0 => self.0.push(run),
            _ => {}
        }
    }

    pub(super) fn finish(self) -> Box<[Run]> {
        match self.0.spilled() {
            true => self.0.into_boxed_slice(),
            false => self.0[..].into(),
        }
    }
}
