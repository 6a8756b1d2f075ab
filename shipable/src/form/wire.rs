//! The encoding of a form: a tag, then the nodes in the codec's encoding.
//!
//! ```text
//! byte 0      'P' portable, or 'L' locale-specific
//! then, if L  the descriptor of the builder's architecture, a string
//! then        the list of nodes, children before parents, the root last;
//!             a child is encoded as the number of nodes that it lies back
//! ```
//!
//! [`decode`] validates: for any bytes, it returns either a sound form or an error.

use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::node::{Field, Node, Placed, Span};
use super::vectors::Vector;
use super::{Form, Tag, layout};
use crate::arch::Architecture;
use crate::basic::{Basic, Leaf};
use crate::codec;
use crate::error::{DecodeError, Error};

/// The limits of a form that is decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes of an encoded form. A form takes up to about 22 times as much memory, and 45
    /// times while it is decoded.
    pub bytes: usize,
    /// The greatest depth of nesting.
    pub depth: u32,
}

impl Limits {
    /// The greatest depth of any form that [`Form::compile`] makes. A subarray nests once for each
    /// of its dimensions.
    pub const DEPTH: u32 = 1024;
}

impl Default for Limits {
    /// 64 MiB, enough for an indexed type of several million blocks.
    fn default() -> Limits {
        Limits { bytes: 64 << 20, depth: Limits::DEPTH }
    }
}

#[derive(Serialize, Deserialize)]
struct Located<T> {
    builder: String,
    nodes: T,
}

/// A node on the wire. It is written directly from a form's node, and read directly into the lists
/// that a node holds.
#[derive(Serialize, Deserialize)]
enum WireNode<Vectors, Fields, Members> {
    Basic(u8),
    F90Real(Option<u32>, Option<u32>),
    F90Complex(Option<u32>, Option<u32>),
    F90Integer(u32),
    Array(u32, Vectors, WireSpan),
    Simple(Fields),
    Struct(Members, WireSpan),
}

/// Displacement, length, count, stride.
type WireVector = (i64, u64, u64, i64);

/// The distance back to the child in nodes, length.
type WireField = (u32, u64);

/// The distance back to the child in nodes, length, displacement.
type WirePlaced = (u32, u64, i64);

/// The bounds of a node. Stated ones are a lower bound and an extent.
#[derive(Serialize, Deserialize)]
enum WireSpan {
    Natural,
    Stated(i64, i64),
    Laid(i64, i64),
}

const PORTABLE: u8 = b'P';
const LOCALE: u8 = b'L';

pub(super) fn encode(form: &Form) -> Vec<u8> {
    let nodes = Outgoing(&form.nodes);
    let (tag, body) = match form.builder_architecture() {
        None => (PORTABLE, codec::encode(&nodes, usize::MAX)),
        Some(builder) => {
            let located = Located { builder: builder.descriptor(), nodes };
            (LOCALE, codec::encode(&located, usize::MAX))
        }
    };
    // The codec fails only beyond its limit, and there is none here.
    let mut bytes = body.unwrap_or_default();
    bytes.insert(0, tag);
    bytes
}

/// Nodes, serialised without a copy.
struct Outgoing<'a>(&'a [Node]);

impl Serialize for Outgoing<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.iter().enumerate().map(|(index, node)| to_wire(index as u32, node)))
    }
}

/// A list that serialises the items of an iterator.
struct Mapped<I>(I);

impl<I: ExactSizeIterator<Item: Serialize> + Clone> Serialize for Mapped<I> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.clone())
    }
}

pub(super) fn decode(bytes: &[u8], limits: &Limits) -> Result<Form, DecodeError> {
    let unsound = |error| DecodeError::Unsound(Box::new(error));
    let Some((&tag, body)) = bytes.split_first() else { return Err(DecodeError::Empty) };
    let limit = limits.bytes.saturating_sub(1);
    let (builder, nodes) = match tag {
        PORTABLE => (None, codec::decode::<Incoming<false>>(body, limit)?.nodes?),
        LOCALE => {
            let located: Located<Incoming<true>> = codec::decode(body, limit)?;
            let builder = Architecture::from_descriptor(&located.builder).map_err(unsound)?;
            (Some(builder), located.nodes.nodes?)
        }
        unknown => return Err(DecodeError::UnknownTag(unknown)),
    };
    let tag = if builder.is_some() { Tag::Locale } else { Tag::Portable };
    let mut depths: Vec<u32> = Vec::with_capacity(nodes.len());
    for (index, node) in nodes.iter().enumerate() {
        let below = node.children().map(|child| depths[child as usize]).max();
        let depth = 1 + below.unwrap_or(0);
        if depth > limits.depth {
            return Err(DecodeError::Node { node: index, problem: "nested too deep" });
        }
        depths.push(depth);
    }
    if nodes.is_empty() {
        return Err(DecodeError::Empty);
    }
    drop(depths);
    // This check covers this process, or the builder. A form may still be too large in another
    // representation, which is checked when a caller asks for that.
    let memory = builder.unwrap_or(Architecture::NATIVE);
    layout::signature(&nodes).map_err(unsound)?;
    match layout::bounds(&nodes, tag == Tag::Portable, &memory) {
        Ok(_) | Err(Error::NoSuchKind { .. }) => {}
        Err(error) => return Err(unsound(error)),
    }
    // A peer may encode a number in more bytes than it needs. Encoding the form again gives the
    // shortest bytes.
    Ok(Form::new(builder, nodes))
}

fn to_wire(index: u32, node: &Node) -> WireNode<impl Serialize, impl Serialize, impl Serialize> {
    let stated = |span: &Span| match *span {
        Span::Natural => WireSpan::Natural,
        Span::Stated { lower, extent } => WireSpan::Stated(lower, extent),
        Span::Laid { lower, extent } => WireSpan::Laid(lower, extent),
    };
    match node {
        Node::Leaf(Leaf::Basic(basic)) => WireNode::Basic(basic.wire()),
        Node::Leaf(Leaf::F90Real { precision, range }) => WireNode::F90Real(*precision, *range),
        Node::Leaf(Leaf::F90Complex { precision, range }) => {
            WireNode::F90Complex(*precision, *range)
        }
        Node::Leaf(Leaf::F90Integer { range }) => WireNode::F90Integer(*range),
        Node::Array { child, vectors, span } => {
            let vectors = vectors.iter();
            let vectors = vectors.map(|vector| -> WireVector {
                (vector.displacement, vector.length, vector.count, vector.stride)
            });
            WireNode::Array(index - child, Mapped(vectors), stated(span))
        }
        Node::Simple { members } => {
            let members = members.iter();
            let members =
                members.map(move |member| -> WireField { (index - member.child, member.length) });
            WireNode::Simple(Mapped(members))
        }
        Node::Struct { members, span } => {
            let members = members.iter().map(move |member| -> WirePlaced {
                (index - member.child, member.length, member.displacement)
            });
            WireNode::Struct(Mapped(members), stated(span))
        }
    }
}

/// Nodes, deserialised and validated without an intermediate list.
struct Incoming<const LOCALE: bool> {
    nodes: Result<Vec<Node>, DecodeError>,
}

impl<'de, const LOCALE: bool> Deserialize<'de> for Incoming<LOCALE> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let tag = if LOCALE { Tag::Locale } else { Tag::Portable };
        let (mut first_problem, mut childless) = (None, HashSet::new());
        let read = |node: IncomingNode, index: usize| {
            if first_problem.is_some() {
                // The codec must reach the end of the bytes, but no further node is kept.
                return None;
            }
            let node = from_wire(index, node, tag).and_then(|node| {
                // A node without children takes few bytes but a node's memory. Compiled forms
                // contain each only once, so repetitions are refused.
                let repeated = node.children().next().is_none() && !childless.insert(node.clone());
                if repeated { Err("equals a node before it") } else { Ok(node) }
            });
            let named = |problem| DecodeError::Node { node: index, problem };
            node.map_err(|problem| first_problem = Some(named(problem))).ok()
        };
        let nodes = from.deserialize_seq(List { read, of: PhantomData })?;
        Ok(Incoming { nodes: first_problem.map_or(Ok(nodes), Err) })
    }
}

type IncomingNode =
    WireNode<Items<WireVector, Vector>, Items<WireField, Field>, Items<WirePlaced, Placed>>;

/// A list within a node. Its children are still distances back.
struct Items<W, T> {
    items: Vec<T>,
    of: PhantomData<W>,
}

impl<'de, W: Deserialize<'de>, T: From<W>> Deserialize<'de> for Items<W, T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let read = |item: W, _| Some(item.into());
        Ok(Items { items: from.deserialize_seq(List { read, of: PhantomData })?, of: PhantomData })
    }
}

impl From<WireVector> for Vector {
    fn from((displacement, length, count, stride): WireVector) -> Vector {
        Vector { displacement, length, count, stride }
    }
}

impl From<WireField> for Field {
    fn from((child, length): WireField) -> Field {
        Field { child, length }
    }
}

impl From<WirePlaced> for Placed {
    fn from((child, length, displacement): WirePlaced) -> Placed {
        Placed { child, length, displacement }
    }
}

/// Deserialises a list item by item, and ignores its claimed length. The memory grows by a quarter
/// at a time, so that a hostile list takes memory in proportion to its bytes.
struct List<R, W> {
    read: R,
    of: PhantomData<W>,
}

impl<'de, W, T, R> Visitor<'de> for List<R, W>
where
    W: Deserialize<'de>,
    R: FnMut(W, usize) -> Option<T>,
{
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<Vec<T>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            if items.len() == items.capacity() {
                items.reserve_exact((items.len() / 4).max(4));
            }
            items.extend((self.read)(item, items.len()));
        }
        Ok(items)
    }
}

fn from_wire(index: usize, wire: IncomingNode, tag: Tag) -> Result<Node, &'static str> {
    let child = |back: u32| {
        let child = index.checked_sub(back as usize).filter(|_| back > 0);
        child.map(|child| child as u32).ok_or("a child isn't a node before it")
    };
    let stated = |span: WireSpan| match span {
        WireSpan::Natural => Ok(Span::Natural),
        WireSpan::Stated(lower, extent) => Ok(Span::Stated { lower, extent }),
        WireSpan::Laid(lower, extent) if tag == Tag::Locale => Ok(Span::Laid { lower, extent }),
        WireSpan::Laid(..) => Err("bounds in bytes in a portable form"),
    };
    Ok(match wire {
        WireNode::Basic(code) => {
            Node::Leaf(Basic::from_wire(code).ok_or("unknown basic type")?.into())
        }
        WireNode::F90Real(precision, range) => Node::Leaf(Leaf::F90Real { precision, range }),
        WireNode::F90Complex(precision, range) => Node::Leaf(Leaf::F90Complex { precision, range }),
        WireNode::F90Integer(range) => Node::Leaf(Leaf::F90Integer { range }),
        WireNode::Array(back, Items { items: vectors, .. }, span) => {
            let holds = |vector: &Vector| {
                vector.length > 0 && vector.count > 0 && (vector.count > 1 || vector.stride == 0)
            };
            if !vectors.iter().all(holds) {
                return Err("a vector without items, or one block with a stride");
            }
            Node::Array { child: child(back)?, vectors: vectors.into(), span: stated(span)? }
        }
        WireNode::Simple(Items { items: mut members, .. }) if tag == Tag::Portable => {
            for member in &mut members {
                member.child = child(member.child)?;
            }
            Node::Simple { members: members.into() }
        }
        WireNode::Struct(Items { items: mut members, .. }, span) if tag == Tag::Locale => {
            for member in &mut members {
                member.child = child(member.child)?;
            }
            Node::Struct { members: members.into(), span: stated(span)? }
        }
        WireNode::Simple(_) => return Err("a simple struct in a locale-specific form"),
        WireNode::Struct(..) => return Err("displacements in bytes in a portable form"),
    })
}
