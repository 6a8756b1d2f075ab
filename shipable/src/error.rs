//! What can go wrong, and the MPI error class of each.

use crate::codec::CodecError;
use crate::convert::Unconvertible;
use crate::form::DecodeError;
use crate::memory::OutOfBounds;
use crate::program::ConversionError;

/// MPI's error classes (MPI-5.0 section 9.4), so that a C edge can map without knowing the errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Class {
    Buffer,
    Count,
    Type,
    Tag,
    Comm,
    Rank,
    Request,
    Root,
    Group,
    Op,
    Topology,
    Dims,
    Arg,
    Unknown,
    Truncate,
    Other,
    Intern,
    Pending,
    InStatus,
    Access,
    Amode,
    Assert,
    BadFile,
    Base,
    Conversion,
    Disp,
    DupDatarep,
    FileExists,
    FileInUse,
    File,
    InfoKey,
    InfoNokey,
    InfoValue,
    Info,
    Io,
    Keyval,
    Locktype,
    Name,
    NoMem,
    NotSame,
    NoSpace,
    NoSuchFile,
    Port,
    ProcAborted,
    Quota,
    ReadOnly,
    RmaAttach,
    RmaConflict,
    RmaFlavor,
    RmaRange,
    RmaShared,
    RmaSync,
    Service,
    Session,
    Size,
    Spawn,
    UnsupportedDatarep,
    UnsupportedOperation,
    ValueTooLarge,
    Win,
    Errhandler,
}

impl Class {
    /// The name that MPI gives it, such as `MPI_ERR_TYPE`.
    pub fn mpi_name(self) -> String {
        let mut name = String::from("MPI_ERR");
        for letter in format!("{self:?}").chars() {
            if letter.is_ascii_uppercase() {
                name.push('_');
            }
            name.push(letter.to_ascii_uppercase());
        }
        name
    }
}

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
    /// A datatype's form would nest deeper than a peer accepts.
    #[error("the form nests {depth} deep, at most {most} are supported: build the type flatter")]
    TooDeep {
        /// Its depth.
        depth: u32,
        /// The greatest depth.
        most: u32,
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
    /// The MPI error class.
    pub fn class(&self) -> Class {
        match self {
            Error::Argument { class, .. } => *class,
            Error::Overflow { .. } => Class::ValueTooLarge,
            Error::NoSuchKind { .. } => Class::Type,
            Error::UnknownArchitecture { .. } | Error::Descriptor { .. } => Class::Arg,
            Error::Unconvertible(_) | Error::Codec(_) => Class::Type,
            Error::Decode(_) | Error::TooDeep { .. } | Error::OtherRepresentation { .. } => {
                Class::Type
            }
            Error::Signature { .. } => Class::Type,
            Error::Position { .. } => Class::Arg,
            Error::Conversion(_) => Class::Conversion,
            Error::OutOfBounds(_) => Class::Buffer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_the_names_of_mpi() {
        assert_eq!(Class::Type.mpi_name(), "MPI_ERR_TYPE");
        assert_eq!(Class::RmaSync.mpi_name(), "MPI_ERR_RMA_SYNC");
        assert_eq!(Class::InfoNokey.mpi_name(), "MPI_ERR_INFO_NOKEY");
        assert_eq!(Class::ValueTooLarge.mpi_name(), "MPI_ERR_VALUE_TOO_LARGE");
    }
}
