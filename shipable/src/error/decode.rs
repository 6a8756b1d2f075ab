//! The errors of decoding values and forms from bytes.

use super::Error;

/// Why bytes couldn't be decoded, or a value not encoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// The encoded value is longer than its reader allows.
    #[error("{length} bytes, more than the {limit} that are allowed")]
    TooLong {
        /// Bytes there are.
        length: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// The bytes aren't an encoding of such a value.
    #[error("malformed: {0}")]
    Malformed(String),
    /// The value ends before the bytes do.
    #[error("{0} bytes are left over")]
    TrailingBytes(usize),
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
