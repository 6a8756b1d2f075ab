//! The errors of decoding values and forms from bytes.

use super::Error;

/// The error of encoding a value to bytes, or of decoding a value from bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// The encoding is longer than the limit.
    #[error("{length} bytes, more than the {limit} that are allowed")]
    TooLong {
        /// Its length in bytes.
        length: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The bytes encode no such value, or the value has no encoding.
    #[error("malformed: {0}")]
    Malformed(String),
    /// The value ends before the last byte.
    #[error("{0} bytes are left over")]
    TrailingBytes(usize),
}

/// The error of decoding a shipable form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The first byte is neither the tag of a portable form nor the tag of a locale-specific form.
    #[error("unknown tag {0:#04x}: a form is tagged P or L")]
    UnknownTag(u8),
    /// The bytes don't encode a list of nodes.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// A node is invalid.
    #[error("node {node}: {problem}")]
    Node {
        /// Its index in the list.
        node: usize,
        /// The rule that it breaks.
        problem: &'static str,
    },
    /// The list has no nodes.
    #[error("no nodes")]
    Empty,
    /// The form has more items, or wider bounds, than 64 bits can express; or its builder's
    /// architecture is unknown.
    #[error("{0}")]
    Unsound(Box<Error>),
}
