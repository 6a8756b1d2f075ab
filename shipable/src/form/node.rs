//! The nodes of a form: items, their displacements, and the bounds of each node.

use super::vectors::Vectors;
use crate::basic::Leaf;

/// A node of a form. Its children are nodes before it.
///
/// A node describes a sequence of items at displacements, in the order of the type map. It also has
/// bounds, by which its parent places it. Displacements and strides count extents of the child in a
/// portable form, and bytes in a locale-specific one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// A predefined or parametrised type: one item, or the two of a pair or of a complex number.
    Leaf(Leaf),
    /// Children in blocks, as vectors.
    Array {
        /// The index of the child.
        child: u32,
        /// The vectors, in the order of the type map.
        vectors: Vectors,
        /// The bounds of the array.
        span: Span,
    },
    /// A simple struct, in portable forms only. The C layout rules of the memory's architecture
    /// place the members.
    Simple {
        /// The members, in order, without displacements.
        members: Box<[Field]>,
    },
    /// A struct whose members have displacements in bytes, in locale-specific forms only.
    Struct {
        /// The members, in order.
        members: Box<[Placed]>,
        /// The bounds of the struct.
        span: Span,
    },
}

/// A member of a simple struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Field {
    /// The index of the child.
    pub child: u32,
    /// The number of children, one extent apart.
    pub length: u64,
}

/// A member of a struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Placed {
    /// The index of the child.
    pub child: u32,
    /// The number of children, one extent apart.
    pub length: u64,
    /// The displacement from the struct's origin in bytes.
    pub displacement: i64,
}

/// The kinds of bounds of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Span {
    /// Computed: from the least lower bound of the children to the greatest upper bound, with
    /// padding for alignment.
    Natural,
    /// Stated explicitly, in the units of the node. Subarrays, distributed arrays and resized types
    /// have such bounds.
    Stated {
        /// The lower bound.
        lower: i64,
        /// The distance from the lower to the upper bound.
        extent: i64,
    },
    /// The bounds of a simple struct, or of blocks of one, in bytes. They hide the stated bounds of
    /// the members from the node's parents.
    Laid {
        /// The lower bound.
        lower: i64,
        /// The distance from the lower to the upper bound.
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

    /// The indices of the children in order, each with the number of its copies.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (u32, i128)> + '_ {
        let (one, simple, placed): (_, &[Field], &[Placed]) = match self {
            Node::Leaf(_) => (None, &[], &[]),
            Node::Array { child, vectors, .. } => (Some((*child, vectors.copies())), &[], &[]),
            Node::Simple { members } => (None, members, &[]),
            Node::Struct { members, .. } => (None, &[], members),
        };
        let simple = simple.iter().map(|member| (member.child, member.length.into()));
        let placed = placed.iter().map(|member| (member.child, member.length.into()));
        one.into_iter().chain(simple).chain(placed)
    }
}
