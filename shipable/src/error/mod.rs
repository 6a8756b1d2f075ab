//! The errors of this crate, and the MPI error class of each.
//!
//! [`Error`] is the one error type. The types that it carries are defined here too, so that no error
//! depends on the module that reports it. Each such module re-exports its own: for example,
//! [`codec::CodecError`](crate::codec::CodecError) is defined here.
//!
//! - `class`: the MPI error classes;
//! - `conversion`, `decode`, `flat`, `memory`, `notation`: the payloads, by the modules that
//!   report them.

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

/// An error of this crate. Its text says what was wrong, with which values, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument of a call is out of its range, or contradicts another.
    #[error("{call}: {problem}")]
    Argument {
        /// The call, as this crate names it.
        call: &'static str,
        /// The class that MPI gives this mistake.
        class: Class,
        /// What is wrong, with the values.
        problem: String,
    },
    /// A size, bound or count leaves the range of 64 bits.
    #[error(
        "{what} does not fit 64 bits: make the counts, strides or displacements of the type smaller"
    )]
    Overflow {
        /// The quantity.
        what: &'static str,
    },
    /// An architecture has no type for a Fortran kind.
    #[error("{architecture} has no type for {leaf}: ask for less precision or range")]
    NoSuchKind {
        /// The architecture's name.
        architecture: &'static str,
        /// The type, in notation.
        leaf: String,
    },
    /// No architecture goes by this name.
    #[error("no architecture is called `{name}`: use one of {known}, or a descriptor")]
    UnknownArchitecture {
        /// What was asked for.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// An architecture descriptor can't be read.
    #[error("architecture descriptor `{descriptor}`: {problem}")]
    Descriptor {
        /// The whole descriptor.
        descriptor: String,
        /// What is wrong with it, and where.
        problem: String,
    },
    /// Two representations of one item have no conversion between them.
    #[error(transparent)]
    Unconvertible(#[from] Unconvertible),
    /// Memory is too small for what was to be moved.
    #[error(transparent)]
    OutOfBounds(#[from] OutOfBounds),
    /// Bytes from a peer can't be decoded.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// Bytes from a peer are no form.
    #[error("not a form: {0}")]
    Decode(#[from] DecodeError),
    /// Text is no datatype.
    #[error("not a datatype: {0}")]
    Notation(#[from] ParseError),
    /// Bytes are no flat form, or none that can be used here.
    #[error("flat form: {0}")]
    Flat(#[from] FlatError),
    /// An array is too small for the contents of a datatype. Nothing was written.
    #[error(
        "{array} has room for {room}, but {needed} are returned: make it as large as the envelope says"
    )]
    ArrayTooSmall {
        /// The argument's name.
        array: &'static str,
        /// The room that it has.
        room: usize,
        /// The room that is needed.
        needed: usize,
    },
    /// A datatype's form would nest deeper than a peer accepts.
    #[error("the form nests {depth} deep, at most {most} are supported: build the type flatter")]
    TooDeep {
        /// Its depth.
        depth: u32,
        /// The greatest depth.
        most: u32,
    },
    /// A form would take more memory than there is room for, once it is lowered.
    #[error(
        "the form takes more than the {most} bytes left for its program: build the type of fewer blocks"
    )]
    TooLarge {
        /// The room, in bytes.
        most: u64,
    },
    /// A locale-specific form is asked what it means in another representation.
    #[error("the form is specific to {built} and means nothing in {asked}: use a portable type")]
    OtherRepresentation {
        /// The architecture that it was built on, as a descriptor.
        built: String,
        /// The architecture asked for, as a descriptor.
        asked: String,
    },
    /// A transfer starts or ends where its packed stream doesn't.
    #[error("position {position} of the packed stream: {problem}")]
    Position {
        /// The position, in bytes.
        position: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// Typed memory is copied to typed memory of another signature.
    #[error("the packed stream has {from} bytes at the source and {to} at the destination")]
    Signature {
        /// Bytes of the source's packed stream.
        from: u64,
        /// Bytes of the destination's.
        to: u64,
    },
    /// A value that its destination can't represent.
    #[error(transparent)]
    Conversion(Box<ConversionError>),
}

/// The result of a call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Made by a call, so that what doesn't overflow doesn't make and drop one.
    #[cold]
    pub(crate) fn overflow(what: &'static str) -> Error {
        Error::Overflow { what }
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
            Error::Conversion(_) => Class::Conversion,
            Error::OutOfBounds(_) => Class::Buffer,
        }
    }
}
