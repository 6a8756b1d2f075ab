//! The errors of reading flat forms.

use super::{Class, ParseError};

/// The error of reading a flat form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FlatError {
    /// The bytes don't begin with the magic of the expected kind and version.
    #[error("expected {expected}, but the bytes begin with {found}")]
    Magic {
        /// The expected kind, with its magic.
        expected: &'static str,
        /// A description of the first bytes.
        found: String,
    },
    /// The input ends before the form does.
    #[error("{found} bytes where the packed object has {needed}: unpack the whole of it")]
    Truncated {
        /// The number of bytes in the input.
        found: usize,
        /// The number of bytes that the form needs at least.
        needed: usize,
    },
    /// The length field holds no valid length.
    #[error("length `{0}`: it is 8 lowercase hexadecimal digits, and counts the whole")]
    Length(String),
    /// The checksum doesn't match the bytes.
    #[error("checksum `{stated}`, but that of the bytes is {computed:08x}: they were changed")]
    Checksum {
        /// The checksum in the form.
        stated: String,
        /// The checksum of the form's bytes.
        computed: u32,
    },
    /// A field is missing, or has invalid text.
    #[error("{field}: {problem}")]
    Field {
        /// The field's name.
        field: &'static str,
        /// The rule that it breaks.
        problem: String,
    },
    /// The tag is F: only the process that built the type can interpret it.
    #[error("tag F, a foreign type: only its builder can interpret it, so it can't be unpacked")]
    Foreign,
    /// The tag is P, but the type has displacements in bytes.
    #[error("tag P, but {culprit} is not portable")]
    NotPortable {
        /// The first part of the type that isn't portable, in notation.
        culprit: String,
    },
    /// The tag is L, and the form comes from another architecture.
    #[error(
        "tag L, specific to {built}, and this is {here}: pack a portable type to unpack it elsewhere"
    )]
    OtherArchitecture {
        /// The architecture that built the type, by name if it has one.
        built: String,
        /// The reader's architecture, by name if it has one.
        here: String,
    },
    /// The text field can't be parsed as a datatype.
    #[error("text: {0}")]
    Text(#[from] ParseError),
}

impl FlatError {
    /// The MPI error class.
    pub fn class(&self) -> Class {
        match self {
            FlatError::Truncated { .. } => Class::Truncate,
            FlatError::Text(error) => error.class(),
            _ => Class::Type,
        }
    }
}
