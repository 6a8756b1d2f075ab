//! Properties of a form in the memory of an architecture: bounds, sizes, signature, and
//! displacements in bytes.

use super::Layouts;
use super::node::{Field, Node, Placed, Span};
use super::vectors::{Stored, Vector, Vectors, scaled};
use crate::arch::Architecture;
use crate::basic::Leaf;
use crate::bounds::{self, Bounds, StructLayout};
use crate::error::{Error, Result};
use crate::signature::Signature;

/// The bounds of every node.
pub(crate) fn layouts(
    nodes: &[Node],
    portable: bool,
    architecture: &Architecture,
) -> Result<Layouts> {
    let mut layouts = Layouts::with_capacity(nodes.len());
    for node in nodes {
        let layout = layout(node, portable, architecture, &layouts)?;
        layouts.push(layout);
    }
    Ok(layouts)
}

/// The bounds of a node. `known` are the bounds of the nodes before it.
pub(super) fn layout(
    node: &Node,
    portable: bool,
    architecture: &Architecture,
    known: &[Bounds],
) -> Result<Bounds> {
    match node {
        Node::Leaf(leaf) => Bounds::of_leaf(*leaf, architecture),
        Node::Array { child, vectors, span } => {
            let child = &known[*child as usize];
            let unit = if portable { child.extent() } else { 1 };
            let content = match near(vectors, unit, child) {
                Some(content) => content,
                None => child.repeat(vectors.copies(), far(vectors, unit, child.extent())?)?,
            };
            spanned(content, *span, unit)
        }
        Node::Simple { members } => {
            let all = members.iter();
            let all = all.map(|member| (member.length, None, &known[member.child as usize]));
            if let Some(bounds) = bounds::of_plain(all) {
                return bounds.padded();
            }
            let mut layout = StructLayout::new();
            for member in members {
                layout.push(signed(member.length)?, &known[member.child as usize])?;
            }
            layout.finish()
        }
        Node::Struct { members, span } => {
            let of = |member: &Placed| &known[member.child as usize];
            let all = members.iter();
            let all = all.map(|member| (member.length, Some(member.displacement), of(member)));
            let content =
                match bounds::of_plain(all) {
                    Some(bounds) => bounds,
                    None => bounds::structure(members.iter().map(|member| {
                        Ok((signed(member.length)?, member.displacement, of(member)))
                    }))?,
                };
            spanned(content, *span, 1)
        }
    }
}

fn spanned(content: Bounds, span: Span, unit: i64) -> Result<Bounds> {
    match span {
        Span::Natural => content.padded(),
        Span::Stated { lower, extent } => {
            content.resized(scaled(lower, unit)?, scaled(extent, unit)?)
        }
        Span::Laid { lower, extent } => {
            let upper = lower.checked_add(extent).ok_or_else(|| Error::overflow("a bound"))?;
            content.laid(lower, upper)
        }
    }
}

/// The bounds of the children in `vectors`, computed in 64 bits for speed: there may be millions of
/// vectors. `None` on overflow, or if the fast path of [`Bounds::spread`] doesn't apply.
fn near(vectors: &Vectors, unit: i64, child: &Bounds) -> Option<Bounds> {
    let (copies, least, greatest) = match vectors.stored() {
        Stored::Blocks(blocks) => {
            let [first, last] = blocks.reach();
            let (first, last) = (first.checked_mul(unit)?, last.checked_mul(unit)?);
            (blocks.copies(), first.min(last), first.max(last))
        }
        Stored::Vectors(vectors) => {
            let (mut copies, mut least, mut greatest) = (0u64, i64::MAX, i64::MIN);
            for vector in vectors {
                let [first, last] = ends(vector, unit, child.extent())?;
                (least, greatest) = (least.min(first), greatest.max(last));
                copies = copies.checked_add(vector.count.checked_mul(vector.length)?)?;
            }
            (copies, least, greatest)
        }
    };
    let mut all = *child;
    all.spread(i64::try_from(copies).ok()?, least, greatest.checked_sub(least)?)?;
    Some(all)
}

/// The least and the greatest displacement of a child of a vector. `None` on overflow.
#[inline]
fn ends(vector: &Vector, unit: i64, extent: i64) -> Option<[i64; 2]> {
    let steps = |count: u64, stride: i64| {
        let reach = i64::try_from(count).ok()?.checked_sub(1)?.checked_mul(stride)?;
        Some((reach.min(0), reach.max(0)))
    };
    let start = vector.displacement.checked_mul(unit)?;
    let (before, after) = steps(vector.length, extent)?;
    let (first, last) = match vector.count {
        1 => (0, 0),
        count => steps(count, vector.stride.checked_mul(unit)?)?,
    };
    let first = start.checked_add(before)?.checked_add(first)?;
    Some([first, start.checked_add(after)?.checked_add(last)?])
}

/// The displacements of the children in `vectors`, computed in 128 bits.
fn far(vectors: &Vectors, unit: i64, extent: i64) -> Result<bounds::Span> {
    let mut all = None::<bounds::Span>;
    for vector in vectors {
        let vector = reach(&vector, unit, extent)?;
        all = Some(all.map_or(vector, |all| all.or(&vector)));
    }
    Ok(all.unwrap_or(bounds::Span::at(0)))
}

/// The displacements of the children in one vector. The children of a block lie `extent` apart.
fn reach(vector: &Vector, unit: i64, extent: i64) -> Result<bounds::Span> {
    let stride = i128::from(vector.stride) * i128::from(unit);
    let blocks = bounds::Span::steps(signed(vector.count)?, stride)?;
    let block = bounds::Span::steps(signed(vector.length)?, extent.into())?;
    let start = i128::from(vector.displacement) * i128::from(unit);
    blocks.plus(&block)?.plus(&bounds::Span::at(start))
}

fn signed(count: u64) -> Result<i64> {
    i64::try_from(count).map_err(|_| Error::Overflow { what: "a count" })
}

/// The displacements of a simple struct's members.
pub(crate) fn places(members: &[Field], known: &[Bounds]) -> Result<Vec<i64>> {
    let mut layout = StructLayout::new();
    let places = members
        .iter()
        .map(|member| layout.push(signed(member.length)?, &known[member.child as usize]));
    places.collect()
}

/// The signature of the root.
pub(super) fn signature(nodes: &[Node]) -> Result<Signature> {
    Ok(signatures(nodes)?.pop().unwrap_or(Signature::empty()))
}

/// The signature of every node.
pub(crate) fn signatures(nodes: &[Node]) -> Result<Vec<Signature>> {
    let mut known: Vec<Signature> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let signature = match node {
            Node::Leaf(leaf) => Some(Signature::of_leaf(*leaf)),
            _ => node.parts().try_fold(Signature::empty(), |sum, (child, copies)| {
                let child = known[child as usize];
                match u64::try_from(copies) {
                    Ok(copies) => sum.then(&child.repeat(copies)?),
                    Err(_) => (child.count == 0).then_some(sum),
                }
            }),
        };
        known.push(signature.ok_or_else(|| Error::overflow("the number of basic items"))?);
    }
    Ok(known)
}

/// The leaf of all items of the root. `None` if there are no items, or items of several leaves.
pub(super) fn single_leaf(nodes: &[Node]) -> Option<Leaf> {
    // For each node, the leaf of all its items, or `Err` if there are several.
    let mut known: Vec<Result<Option<Leaf>, Several>> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let mut filled = node.parts().filter(|&(_, copies)| copies > 0);
        known.push(match node {
            Node::Leaf(Leaf::Basic(basic)) if basic.is_marker() => Ok(None),
            Node::Leaf(leaf) => Ok(Some(*leaf)),
            _ => filled.try_fold(None, |of, (child, _)| match (of, known[child as usize]?) {
                (None, leaf) | (leaf, None) => Ok(leaf),
                (a, b) if a == b => Ok(a),
                _ => Err(Several),
            }),
        });
    }
    known.pop()?.ok()?
}

/// The items have several leaves.
#[derive(Clone, Copy)]
struct Several;

/// Converts the nodes of a portable form to those of a locale-specific one.
pub(super) fn to_bytes(nodes: &[Node], architecture: &Architecture) -> Result<Vec<Node>> {
    let layouts = layouts(nodes, true, architecture)?;
    let mut placed = Vec::with_capacity(nodes.len());
    let mut seen = Vec::with_capacity(nodes.len());
    for (node, wanted) in nodes.iter().zip(&layouts) {
        let mut node = in_bytes(node, &layouts)?;
        seen.push(settle(&mut node, wanted, architecture, &seen)?);
        placed.push(node);
    }
    Ok(placed)
}

fn in_bytes(node: &Node, layouts: &[Bounds]) -> Result<Node> {
    Ok(match node {
        Node::Leaf(_) | Node::Struct { .. } => node.clone(),
        Node::Array { child, vectors, span } => {
            let unit = layouts[*child as usize].extent();
            let vectors = vectors.iter().map(|vector| {
                Ok(Vector {
                    displacement: scaled(vector.displacement, unit)?,
                    stride: scaled(vector.stride, unit)?,
                    ..vector
                })
            });
            let vectors = vectors.collect::<Result<Vec<_>>>()?.into();
            let span = match *span {
                Span::Stated { lower, extent } => {
                    Span::Stated { lower: scaled(lower, unit)?, extent: scaled(extent, unit)? }
                }
                span @ (Span::Natural | Span::Laid { .. }) => span,
            };
            Node::Array { child: *child, vectors, span }
        }
        Node::Simple { members } => Node::Struct {
            members: members
                .iter()
                .zip(places(members, layouts)?)
                .map(|(&Field { child, length }, displacement)| Placed {
                    child,
                    length,
                    displacement,
                })
                .collect(),
            span: Span::Natural,
        },
    })
}

/// Gives a node of a locale-specific form the bounds that are wanted. Returns the bounds that a
/// reader of the form computes for it.
///
/// A node states its bounds only if the reader would compute others. That happens to simple
/// structs, and under alignment rules that depend on the kinds of members (the power rule). A
/// stated node can still differ from the wanted one in alignment. If a parent is padded differently
/// for that reason, the parent states its bounds as well.
pub(super) fn settle(
    node: &mut Node,
    wanted: &Bounds,
    architecture: &Architecture,
    seen: &[Bounds],
) -> Result<Bounds> {
    let mut bounds = layout(node, false, architecture, seen)?;
    let (lower, extent) = (wanted.lb, wanted.extent());
    for stated in [Span::Laid { lower, extent }, Span::Stated { lower, extent }] {
        let (Node::Array { span, .. } | Node::Struct { span, .. }) = node else { break };
        if bounds.lies_as(wanted) {
            break;
        }
        *span = stated;
        bounds = layout(node, false, architecture, seen)?;
    }
    Ok(bounds)
}

/// The bounds of the root.
pub(super) fn bounds(
    nodes: &[Node],
    portable: bool,
    architecture: &Architecture,
) -> Result<Bounds> {
    Ok(layouts(nodes, portable, architecture)?.pop().unwrap_or(Bounds::EMPTY))
}

/// The bytes of every node's items in a packed stream of `architecture`.
pub(crate) fn sizes(nodes: &[Node], architecture: &Architecture) -> Result<Vec<u64>> {
    let mut sizes: Vec<u64> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let size = match node {
            Node::Leaf(leaf) => Some(architecture.leaf(*leaf)?.size.into()),
            _ => node.parts().try_fold(0i128, |sum, (child, copies)| {
                sum.checked_add(i128::from(sizes[child as usize]).checked_mul(copies)?)
            }),
        };
        let size = size.and_then(|size| i64::try_from(size).ok());
        sizes.push(size.ok_or_else(|| Error::overflow("the packed size"))? as u64);
    }
    Ok(sizes)
}
