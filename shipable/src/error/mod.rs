//! The errors of this crate, and the MPI error class of each.
//!
//! [`Error`] is the only error type of the crate's calls. This module also defines the types that
//! its variants carry, so that it depends on no module that reports errors. Each of those modules
//! re-exports its own error: [`codec::CodecError`](crate::codec::CodecError) is defined here, for
//! example.
//!
//! - `class`: the MPI error classes;
//! - `conversion`, `decode`, `flat`, `memory`, `notation`: the errors that variants of [`Error`]
//!   carry.

mod class;
mod conversion;
mod decode;
mod flat;
mod memory;
mod notation;

pub use class::Class;
pub use conversion::{ConversionError, Unconvertible};
pub use decode::{CodecError, DecodeError};
pub use flat::FlatError;
pub use memory::OutOfBounds;
pub use notation::{ParseError, ParseProblem};

/// An error of this crate. Its text gives the mistake, the values involved, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument of a call is out of range, or contradicts another argument.
    #[error("{call}: {problem}")]
    Argument {
        /// The call's name in this crate.
        call: &'static str,
        /// The MPI error class.
        class: Class,
        /// The mistake, with its values.
        problem: String,
    },
    /// A size, bound or count doesn't fit 64 bits.
    #[error(
        "{what} does not fit 64 bits: make the counts, strides or displacements of the type smaller"
    )]
    Overflow {
        /// The quantity that doesn't fit.
        what: &'static str,
    },
    /// An architecture has no type of a Fortran kind.
    #[error("{architecture} has no type for {leaf}: ask for less precision or range")]
    NoSuchKind {
        /// The architecture's name.
        architecture: &'static str,
        /// The kind, in notation.
        leaf: String,
    },
    /// No architecture has this name.
    #[error("no architecture is called `{name}`: use one of {known}, or a descriptor")]
    UnknownArchitecture {
        /// The unknown name.
        name: String,
        /// The known names.
        known: String,
    },
    /// An architecture descriptor is invalid.
    #[error("architecture descriptor `{descriptor}`: {problem}")]
    Descriptor {
        /// The descriptor; only its beginning if it is too long.
        descriptor: String,
        /// The invalid field, and the rule that it breaks.
        problem: String,
    },
    /// No conversion is defined between two representations of an item.
    #[error(transparent)]
    Unconvertible(#[from] Unconvertible),
    /// A transfer reaches beyond its memory.
    #[error(transparent)]
    OutOfBounds(#[from] OutOfBounds),
    /// The bytes from a peer can't be decoded.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// The bytes from a peer don't encode a shipable form.
    #[error("not a form: {0}")]
    Decode(#[from] DecodeError),
    /// A text can't be parsed as a datatype.
    #[error("not a datatype: {0}")]
    Notation(#[from] ParseError),
    /// The bytes aren't a flat form, or its datatype can't be used here.
    #[error("flat form: {0}")]
    Flat(#[from] FlatError),
    /// An array has too few elements for a datatype's contents. Nothing was written.
    #[error(
        "{array} has room for {room}, but {needed} are returned: make it as large as the envelope reports"
    )]
    ArrayTooSmall {
        /// The array's argument name.
        array: &'static str,
        /// The array's length.
        room: usize,
        /// The length that the contents need.
        needed: usize,
    },
    /// A datatype's form nests deeper than peers accept.
    #[error("the form nests {depth} deep, at most {most} are supported: build the type flatter")]
    TooDeep {
        /// The form's depth.
        depth: u32,
        /// The greatest depth that peers accept.
        most: u32,
    },
    /// The program lowered from a form needs more memory than its limit.
    #[error(
        "the form takes more than the {most} bytes left for its program: build the type of fewer blocks"
    )]
    TooLarge {
        /// The limit in bytes.
        most: u64,
    },
    /// A locale-specific form is lowered for another representation than its builder's.
    #[error("the form is specific to {built} and means nothing in {asked}: use a portable type")]
    OtherRepresentation {
        /// The builder's architecture, by name if it has one.
        built: String,
        /// The other architecture, by name if it has one.
        asked: String,
    },
    /// A transfer starts or ends at an invalid position of its packed stream.
    #[error("position {position} of the packed stream: {problem}")]
    Position {
        /// The position in bytes.
        position: u64,
        /// The rule that it breaks.
        problem: String,
    },
    /// A copy between typed buffers whose packed streams differ in length.
    #[error("the packed stream has {from} bytes at the source and {to} at the destination")]
    Signature {
        /// The length in bytes of the source's packed stream.
        from: u64,
        /// The length in bytes of the destination's packed stream.
        to: u64,
    },
    /// A number that no variant of an enum has.
    #[error(
        "{number} is no {name}, whose numbers are {known}: build all programs of the job with the same enum, and \
         write each element before it is read"
    )]
    NoVariant {
        /// The number.
        number: String,
        /// The enum's name.
        name: &'static str,
        /// The numbers and names of its variants.
        known: String,
    },
    /// A value that the destination's representation can't hold.
    #[error(transparent)]
    Conversion(Box<ConversionError>),
}

/// The result of this crate's calls.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// The error for a quantity that doesn't fit 64 bits.
    ///
    /// A cold function, so that the success path builds and drops no error.
    #[cold]
    pub(crate) fn overflow(quantity: &'static str) -> Error {
        Error::Overflow { what: quantity }
    }

    /// The MPI error class.
    pub fn class(&self) -> Class {
        match self {
            Error::Argument { class, .. } => *class,
            Error::Overflow { .. } => Class::ValueTooLarge,
            Error::NoSuchKind { .. } => Class::Type,
            Error::UnknownArchitecture { .. } | Error::Descriptor { .. } => Class::Arg,
            Error::ArrayTooSmall { .. } => Class::Arg,
            Error::Unconvertible(_) | Error::Codec(_) => Class::Type,
            Error::Decode(_)
            | Error::TooDeep { .. }
            | Error::TooLarge { .. }
            | Error::OtherRepresentation { .. } => Class::Type,
            Error::Notation(error) => error.class(),
            Error::Flat(error) => error.class(),
            Error::Signature { .. } => Class::Type,
            Error::Position { .. } => Class::Arg,
            Error::Conversion(_) | Error::NoVariant { .. } => Class::Conversion,
            Error::OutOfBounds(_) => Class::Buffer,
        }
    }
}
