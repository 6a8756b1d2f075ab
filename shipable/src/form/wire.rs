//! A form's bytes: a tag, then the nodes as the codec encodes them.
//!
//! ```text
//! byte 0      'P' portable, or 'L' locale-specific
//! then, if L  the descriptor of the builder's architecture, a string
//! then        the list of nodes, children before parents, the root last; a child by how many nodes it lies back
//! ```
//!
//! [`decode`] is validation: whatever the bytes say, what comes out of it is a sound form.

use serde::{Deserialize, Serialize};

use super::node::{Field, Node, Placed, Run, Span};
use super::{Form, Tag, layout};
use crate::arch::Architecture;
use crate::basic::{Basic, Leaf};
use crate::codec::{self, CodecError};
use crate::error::Error;

/// What a reader of forms accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the encoded form. A form takes no more memory than about 25 times that, and 60 times while it is read.
    pub bytes: usize,
    /// How deep nodes nest.
    pub depth: u32,
}

impl Limits {
    /// As deep as any form that [`Form::compile`] makes: a subarray nests once for each of its dimensions.
    pub const DEPTH: u32 = 1024;
}

impl Default for Limits {
    /// 64 MiB, which holds an indexed type of several million blocks.
    fn default() -> Limits {
        Limits { bytes: 64 << 20, depth: Limits::DEPTH }
    }
}

/// Why bytes are no form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The tag is neither that of a portable form nor that of a locale-specific one.
    #[error("unknown tag {0:#04x}: a form is tagged P or L")]
    UnknownTag(u8),
    /// The bytes aren't an encoding of nodes.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// The nodes make no sense.
    #[error("node {node}: {problem}")]
    Node {
        /// The index of the node.
        node: usize,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// There are no nodes.
    #[error("no nodes")]
    Empty,
    /// The nodes' items, or their bounds, leave the range of 64 bits, or the builder's architecture is unknown.
    #[error("{0}")]
    Unsound(Box<Error>),
}

#[derive(Serialize, Deserialize)]
struct Located<T> {
    builder: String,
    nodes: T,
}

#[derive(Serialize, Deserialize)]
enum WireNode {
    Basic(u8),
    F90Real(Option<u32>, Option<u32>),
    F90Complex(Option<u32>, Option<u32>),
    F90Integer(u32),
    Array(u32, Vec<WireRun>, WireSpan),
    Simple(Vec<(u32, u64)>),
    Struct(Vec<(u32, u64, i64)>, WireSpan),
}

/// Displacement, length, count, stride.
type WireRun = (i64, u64, u64, i64);

/// Lower bound and extent, where they are given.
#[derive(Serialize, Deserialize)]
enum WireSpan {
    Natural,
    Stated(i64, i64),
    Laid(i64, i64),
}

const PORTABLE: u8 = b'P';
const LOCALE: u8 = b'L';

pub(super) fn encode(form: &Form) -> Vec<u8> {
    let nodes: Vec<WireNode> =
        form.nodes.iter().enumerate().map(|(index, node)| to_wire(index as u32, node)).collect();
    let (tag, body) = match &form.builder {
        None => (PORTABLE, codec::encode(&nodes, usize::MAX)),
        Some(builder) => {
            let located = Located { builder: builder.descriptor(), nodes };
            (LOCALE, codec::encode(&located, usize::MAX))
        }
    };
    // Lists of numbers always have an encoding.
    let mut bytes = body.unwrap_or_default();
    bytes.insert(0, tag);
    bytes
}

pub(super) fn decode(bytes: &[u8], limits: &Limits) -> Result<Form, DecodeError> {
    let unsound = |error| DecodeError::Unsound(Box::new(error));
    let Some((&tag, body)) = bytes.split_first() else { return Err(DecodeError::Empty) };
    let limit = limits.bytes.saturating_sub(1);
    let (builder, wire): (Option<Architecture>, Vec<WireNode>) = match tag {
        PORTABLE => (None, codec::decode(body, limit)?),
        LOCALE => {
            let located: Located<Vec<WireNode>> = codec::decode(body, limit)?;
            let builder = Architecture::from_descriptor(&located.builder).map_err(unsound)?;
            (Some(builder), located.nodes)
        }
        unknown => return Err(DecodeError::UnknownTag(unknown)),
    };
    let tag = if builder.is_some() { Tag::Locale } else { Tag::Portable };
    let mut depths: Vec<u32> = Vec::with_capacity(wire.len());
    let mut nodes = Vec::with_capacity(wire.len());
    for (index, wire) in wire.into_iter().enumerate() {
        let problem = |problem| DecodeError::Node { node: index, problem };
        let node = from_wire(index, wire, tag).map_err(problem)?;
        let depth = 1 + node.children().map(|child| depths[child as usize]).max().unwrap_or(0);
        if depth > limits.depth {
            return Err(problem("nested too deep"));
        }
        depths.push(depth);
        nodes.push(node);
    }
    if nodes.is_empty() {
        return Err(DecodeError::Empty);
    }
    // What no architecture could hold is refused here; what another one couldn't, when it is asked for.
    let memory = builder.unwrap_or(Architecture::NATIVE);
    layout::signature(&nodes).map_err(unsound)?;
    match layout::bounds(&nodes, tag == Tag::Portable, &memory) {
        Ok(_) | Err(Error::NoSuchKind { .. }) => {}
        Err(error) => return Err(unsound(error)),
    }
    // A number can be encoded in more bytes than it needs: the hash is that of the shortest.
    Ok(Form::new(builder, nodes.into(), None))
}

fn to_wire(index: u32, node: &Node) -> WireNode {
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
        Node::Array { child, runs, span } => {
            let runs = runs.iter().map(|run| (run.displacement, run.length, run.count, run.stride));
            WireNode::Array(index - child, runs.collect(), stated(span))
        }
        Node::Simple { members } => {
            let members = members.iter().map(|member| (index - member.child, member.length));
            WireNode::Simple(members.collect())
        }
        Node::Struct { members, span } => {
            let members = members
                .iter()
                .map(|member| (index - member.child, member.length, member.displacement));
            WireNode::Struct(members.collect(), stated(span))
        }
    }
}

fn from_wire(index: usize, wire: WireNode, tag: Tag) -> Result<Node, &'static str> {
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
        WireNode::Array(back, runs, span) => {
            let runs = runs.into_iter().map(|(displacement, length, count, stride)| {
                match length > 0 && count > 0 && (count > 1 || stride == 0) {
                    true => Ok(Run { displacement, length, count, stride }),
                    false => Err("a run without items, or one block with a stride"),
                }
            });
            Node::Array {
                child: child(back)?,
                runs: runs.collect::<Result<_, _>>()?,
                span: stated(span)?,
            }
        }
        WireNode::Simple(members) if tag == Tag::Portable => {
            let members =
                members.into_iter().map(|(back, length)| Ok(Field { child: child(back)?, length }));
            Node::Simple { members: members.collect::<Result<_, &str>>()? }
        }
        WireNode::Struct(members, span) if tag == Tag::Locale => {
            let members = members.into_iter().map(|(back, length, displacement)| {
                Ok(Placed { child: child(back)?, length, displacement })
            });
            Node::Struct { members: members.collect::<Result<_, &str>>()?, span: stated(span)? }
        }
        WireNode::Simple(_) => return Err("a simple struct in a locale-specific form"),
        WireNode::Struct(..) => return Err("displacements in bytes in a portable form"),
    })
}

/// FNV-1a of 128 bits: peers of one job don't forge forms, they repeat them.
pub(super) fn hash(bytes: &[u8]) -> u128 {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(BASIS, |hash, &byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME))
}
