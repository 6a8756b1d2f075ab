//! The comparison of one portable form in the memories of two architectures: whether its items lie
//! at the same offsets, and whether they have the same bytes.

use super::layout::{layouts, places};
use super::node::{Field, Node};
use super::vectors::Vectors;
use super::{Form, Tag};
use crate::arch::{Architecture, LeafLayout};
use crate::basic::Leaf;
use crate::error::Result;

/// The first difference between the layouts of a datatype in two memories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// An item lies at another offset.
    Offset {
        /// The index of the member of the outermost struct that has the item, if there is a struct.
        member: Option<u64>,
        /// The basic type of the item.
        leaf: Leaf,
        /// The offset in bytes in the memory of the first architecture.
        here: i64,
        /// The offset in bytes in the memory of the second architecture.
        there: i64,
    },
    /// All items of one element lie at the same offsets, but the next element begins elsewhere.
    Extent {
        /// The extent in bytes in the memory of the first architecture.
        here: i64,
        /// The extent in bytes in the memory of the second architecture.
        there: i64,
    },
    /// The displacements in bytes aren't those of C's rule, so those of the second architecture are
    /// unknown: a basic type has another size or alignment there.
    Unknown {
        /// The basic type.
        leaf: Leaf,
        /// The size and the alignment in bytes in the memory of the first architecture.
        here: (u32, u32),
        /// The size and the alignment in bytes in the memory of the second architecture.
        there: (u32, u32),
    },
}

/// An item, and its offsets from a node's origin.
#[derive(Clone, Copy)]
struct Placed {
    leaf: Leaf,
    /// The index of the member of the outermost struct so far.
    member: Option<u64>,
    here: i64,
    there: i64,
}

impl Placed {
    fn plus(self, here: i64, there: i64) -> Placed {
        let (here, there) = (self.here.saturating_add(here), self.there.saturating_add(there));
        Placed { here, there, ..self }
    }

    fn of_member(self, member: u64) -> Placed {
        Placed { member: Some(member), ..self }
    }

    /// The distance between the two offsets.
    fn shift(&self) -> i64 {
        self.there.saturating_sub(self.here)
    }
}

/// A node's first item, and the first item with another shift than that one. A parent may place
/// its children so that it makes up for the shift that all of their items have.
#[derive(Clone, Copy, Default)]
struct Compared {
    first: Option<Placed>,
    other: Option<Placed>,
}

impl Form {
    /// The first difference between the layouts of one element in two memories, and of the element
    /// after it. `None` if there is none. The form must be portable.
    ///
    /// # Errors
    /// Those of [`Form::bounds`] for either architecture.
    pub(crate) fn difference(
        &self,
        here: &Architecture,
        there: &Architecture,
    ) -> Result<Option<Difference>> {
        assert!(self.tag() == Tag::Portable, "a form with byte displacements has one memory");
        let nodes = self.nodes();
        let near = layouts(nodes, true, here)?;
        let far = layouts(nodes, true, there)?;
        let mut known: Vec<Compared> = Vec::with_capacity(nodes.len());
        for node in nodes {
            let extents =
                |child: u32| (near[child as usize].extent(), far[child as usize].extent());
            let compared = match node {
                Node::Leaf(leaf) => of_leaf(*leaf, &here.leaf(*leaf)?, &there.leaf(*leaf)?),
                Node::Array { child, vectors, .. } => {
                    of_array(known[*child as usize], vectors, extents(*child))
                }
                Node::Simple { members } => {
                    let starts = places(members, &near)?.into_iter().zip(places(members, &far)?);
                    of_struct(members, starts, &known, extents)
                }
                Node::Struct { .. } => unreachable!("a portable form has no byte displacements"),
            };
            known.push(compared);
        }
        let root = known.last().copied().unwrap_or_default();
        let moved = root.first.filter(|first| first.shift() != 0).or(root.other);
        if let Some(Placed { leaf, member, here, there }) = moved {
            return Ok(Some(Difference::Offset { member, leaf, here, there }));
        }
        let extents = near.last().zip(far.last()).map(|(a, b)| (a.extent(), b.extent()));
        Ok(match extents {
            Some((here, there)) if root.first.is_some() && here != there => {
                Some(Difference::Extent { here, there })
            }
            _ => None,
        })
    }

    /// Whether all items have the same bytes in two memories, wherever they lie.
    ///
    /// # Errors
    /// Those of [`Architecture::leaf`].
    pub fn has_same_items(&self, here: &Architecture, there: &Architecture) -> Result<bool> {
        for leaf in self.leaves() {
            if !is_same(&here.leaf(leaf)?, &there.leaf(leaf)?) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The first basic type of another size or alignment in the other memory, with both.
    ///
    /// # Errors
    /// Those of [`Architecture::leaf`].
    pub(crate) fn misfit(
        &self,
        here: &Architecture,
        there: &Architecture,
    ) -> Result<Option<Difference>> {
        // Bounds that are stated take place in a struct, also those of a type without elements.
        for node in self.nodes() {
            let Node::Leaf(leaf) = *node else { continue };
            let (near, far) = (here.leaf(leaf)?, there.leaf(leaf)?);
            if !lies_same(&near, &far) {
                let (here, there) = ((near.extent, near.align), (far.extent, far.align));
                return Ok(Some(Difference::Unknown { leaf, here, there }));
            }
        }
        Ok(None)
    }

    /// The basic types that occur in an element.
    fn leaves(&self) -> Vec<Leaf> {
        let nodes = self.nodes();
        let mut occurs = vec![false; nodes.len()];
        if let Some(root) = occurs.last_mut() {
            *root = true;
        }
        let mut leaves = Vec::new();
        for (at, node) in nodes.iter().enumerate().rev() {
            if !occurs[at] {
                continue;
            }
            if let Node::Leaf(leaf) = node {
                leaves.push(*leaf);
            }
            for (child, copies) in node.parts() {
                occurs[child as usize] |= copies > 0;
            }
        }
        leaves
    }
}

/// Whether the items of a leaf have the same bytes. The order of a single byte doesn't matter.
fn is_same(near: &LeafLayout, far: &LeafLayout) -> bool {
    let all = near.components.iter().zip(&far.components);
    near.components.len() == far.components.len()
        && all.into_iter().all(|(near, far)| {
            let (near, far) = (near.scalar, far.scalar);
            let is_like = (near.value, near.size) == (far.value, far.size);
            is_like && (near.size == 1 || near.order == far.order)
        })
}

/// Whether C gives a leaf the same place everywhere.
fn lies_same(near: &LeafLayout, far: &LeafLayout) -> bool {
    let all = near.components.iter().zip(&far.components);
    let of = |it: &LeafLayout| (it.size, it.extent, it.align, it.leading_align);
    of(near) == of(far)
        && near.components.len() == far.components.len()
        && all.into_iter().all(|(near, far)| near.offset == far.offset)
}

fn of_leaf(leaf: Leaf, near: &LeafLayout, far: &LeafLayout) -> Compared {
    let items = near.components.iter().zip(&far.components);
    let mut items = items.map(|(near, far)| {
        let (here, there) = (near.offset.into(), far.offset.into());
        Placed { leaf, member: None, here, there }
    });
    // The first component lies at the leaf's start.
    Compared { first: items.next(), other: items.find(|item| item.shift() != 0) }
}

/// Displacements in the vectors count extents of the child.
fn of_array(child: Compared, vectors: &Vectors, (near, far): (i64, i64)) -> Compared {
    let mut filled = vectors.iter().filter(|vector| vector.length > 0 && vector.count > 0);
    let (Some(item), Some(start)) = (child.first, filled.clone().next()) else {
        return Compared::default();
    };
    let index = start.displacement;
    let at =
        |item: Placed, index: i64| item.plus(index.saturating_mul(near), index.saturating_mul(far));
    let mut other = child.other.map(|other| at(other, index));
    if other.is_none() && near != far {
        // All children at one index have one shift.
        let elsewhere = filled.find_map(|vector| match vector.displacement {
            displacement if displacement != index => Some(displacement),
            _ if vector.length > 1 => Some(index + 1),
            _ if vector.count > 1 && vector.stride != 0 => Some(index + vector.stride),
            _ => None,
        });
        other = elsewhere.map(|index| at(item, index));
    }
    Compared { first: Some(at(item, index)), other }
}

fn of_struct(
    members: &[Field],
    starts: impl Iterator<Item = (i64, i64)>,
    known: &[Compared],
    extents: impl Fn(u32) -> (i64, i64),
) -> Compared {
    let mut whole = Compared::default();
    for (index, (member, (here, there))) in (0..).zip(members.iter().zip(starts)) {
        let child = known[member.child as usize];
        let Some(item) = child.first.filter(|_| member.length > 0) else { continue };
        let item = item.plus(here, there).of_member(index);
        let first = *whole.first.get_or_insert(item);
        let (near, far) = extents(member.child);
        whole.other = match child.other {
            _ if item.shift() != first.shift() => Some(item),
            Some(other) => Some(other.plus(here, there).of_member(index)),
            None if member.length > 1 && near != far => Some(item.plus(near, far)),
            None => None,
        };
        if whole.other.is_some() {
            break;
        }
    }
    whole
}
