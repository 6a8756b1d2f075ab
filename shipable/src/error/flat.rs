//! The errors of reading flat forms.

use super::{Class, ParseError};

/// Why bytes are no flat form that can be used here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FlatError {
    /// The bytes begin as no flat form does, or as one of another kind or version.
    #[error("expected {expected}, but the bytes begin with {found}")]
    Magic {
        /// What was asked for, and how it begins.
        expected: &'static str,
        /// What they begin with, in words.
        found: String,
    },
    /// There are fewer bytes than the form has.
    #[error("{found} bytes where the packed object has {needed}: unpack the whole of it")]
    Truncated {
        /// How many there are.
        found: usize,
        /// How many there have to be, as far as is known.
        needed: usize,
    },
    /// The length is none.
    #[error("length `{0}`: it is 8 lowercase hexadecimal digits, and counts the whole")]
    Length(String),
    /// The checksum is that of other bytes.
    #[error("checksum `{stated}`, but that of the bytes is {computed:08x}: they were changed")]
    Checksum {
        /// What the form says.
        stated: String,
        /// What its bytes have.
        computed: u32,
    },
    /// A field is missing, or isn't written as it has to be.
    #[error("{field}: {problem}")]
    Field {
        /// The field's name.
        field: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// Tag F: the type was received from another process, whose own it is.
    #[error(
        "tag F, a foreign type: it means something to its builder only, and can't be packed or unpacked"
    )]
    Foreign,
    /// Tag P on a type whose displacements are in bytes.
    #[error("tag P, but {culprit} is not portable")]
    NotPortable {
        /// The part of the type, in notation.
        culprit: String,
    },
    /// Tag L, from another architecture.
    #[error(
        "tag L, specific to {built}, and this is {here}: pack a portable type to unpack it elsewhere"
    )]
    OtherArchitecture {
        /// Its descriptor.
        built: String,
        /// The reader's.
        here: String,
    },
    /// The text is no datatype.
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
