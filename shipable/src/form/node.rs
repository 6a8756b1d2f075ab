//! The nodes of a form: items, their displacements, and the bounds of each node.

use smallvec::SmallVec;

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
        vectors: Box<[Vector]>,
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

/// The blocks of a vector type at a displacement: `count` blocks of `length` children each.
///
/// The first block lies at `displacement`, and each next block `stride` after the one before. The
/// children of a block lie one extent apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Vector {
    /// The displacement of the first block.
    pub displacement: i64,
    /// The number of children in a block.
    pub length: u64,
    /// The number of blocks.
    pub count: u64,
    /// The distance from one block to the next. It must be 0 if there is one block.
    pub stride: i64,
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
            Node::Array { child, vectors, .. } => (Some((*child, copies(vectors))), &[], &[]),
            Node::Simple { members } => (None, members, &[]),
            Node::Struct { members, .. } => (None, &[], members),
        };
        let simple = simple.iter().map(|member| (member.child, member.length.into()));
        let placed = placed.iter().map(|member| (member.child, member.length.into()));
        one.into_iter().chain(simple).chain(placed)
    }
}

/// The number of children in `vectors`.
pub(super) fn copies(vectors: &[Vector]) -> i128 {
    let few = vectors
        .iter()
        .try_fold(0u64, |sum, vector| sum.checked_add(vector.count.checked_mul(vector.length)?));
    // On overflow, count in 128 bits. Each product has two factors below 2^63, and there are at
    // most 2^32 products.
    few.map_or_else(
        || {
            vectors.iter().fold(0i128, |sum, vector| {
                sum.saturating_add(
                    i128::from(vector.count).saturating_mul(i128::from(vector.length)),
                )
            })
        },
        i128::from,
    )
}

/// Collects blocks as vectors: joins blocks that continue one another at one stride.
pub(super) struct VectorCollector(SmallVec<[Vector; 2]>);

impl VectorCollector {
    /// An empty collector with capacity for `blocks` blocks.
    pub(super) fn of(blocks: usize) -> VectorCollector {
        VectorCollector(SmallVec::with_capacity(blocks))
    }

    /// Adds one block, unless it is empty.
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
        self.0.push(Vector { displacement, length, count: 1, stride: 0 });
    }

    /// Adds a vector, unless it is empty.
    pub(super) fn vector(&mut self, vector: Vector) {
        match vector.count {
            1 => self.block(vector.displacement, vector.length),
            _ if vector.length > 0 && vector.count > 0 => self.0.push(vector),
            _ => {}
        }
    }

    pub(super) fn finish(self) -> Box<[Vector]> {
        match self.0.spilled() {
            true => self.0.into_boxed_slice(),
            false => self.0[..].into(),
        }
    }
}
