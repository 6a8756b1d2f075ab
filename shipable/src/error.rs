//! What can go wrong, and the MPI error class of each.

use crate::codec::CodecError;
use crate::convert::Unconvertible;
use crate::flat::FlatError;
use crate::form::DecodeError;
use crate::memory::OutOfBounds;
use crate::notation::ParseError;
use crate::program::ConversionError;

macro_rules! classes {
    ($($name:ident = $wire:literal;)*) => {
        /// MPI's error classes (MPI-5.0 section 9.4), so that a C edge can map without knowing the errors.
        ///
        /// The discriminant is the class's code on the wire, not MPI's constant, and never changes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        #[allow(missing_docs)]
        pub enum Class {
            $($name = $wire,)*
        }

        impl Class {
            /// Every class, in the order of the wire codes.
            pub const ALL: &'static [Class] = &[$(Class::$name),*];

            /// The class with this wire code, if there is one.
            pub const fn from_wire(code: u8) -> Option<Class> {
                match code { $($wire => Some(Class::$name),)* _ => None }
            }
        }
    };
}

classes! {
    Buffer = 1;
    Count = 2;
    Type = 3;
    Tag = 4;
    Comm = 5;
    Rank = 6;
    Request = 7;
    Root = 8;
    Group = 9;
    Op = 10;
    Topology = 11;
    Dims = 12;
    Arg = 13;
    Unknown = 14;
    Truncate = 15;
    Other = 16;
    Intern = 17;
    Pending = 18;
    InStatus = 19;
    Access = 20;
    Amode = 21;
    Assert = 22;
    BadFile = 23;
    Base = 24;
    Conversion = 25;
    Disp = 26;
    DupDatarep = 27;
    FileExists = 28;
    FileInUse = 29;
    File = 30;
    InfoKey = 31;
    InfoNokey = 32;
    InfoValue = 33;
    Info = 34;
    Io = 35;
    Keyval = 36;
    Locktype = 37;
    Name = 38;
    NoMem = 39;
    NotSame = 40;
    NoSpace = 41;
    NoSuchFile = 42;
    Port = 43;
    ProcAborted = 44;
    Quota = 45;
    ReadOnly = 46;
    RmaAttach = 47;
    RmaConflict = 48;
    RmaFlavor = 49;
    RmaRange = 50;
    RmaShared = 51;
    RmaSync = 52;
    Service = 53;
    Session = 54;
    Size = 55;
    Spawn = 56;
    UnsupportedDatarep = 57;
    UnsupportedOperation = 58;
    ValueTooLarge = 59;
    Win = 60;
    Errhandler = 61;
}

impl Class {
    /// The code on the wire.
    pub const fn wire(self) -> u8 {
        self as u8
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wire_codes_lead_back_and_never_change() {
        for &class in Class::ALL {
            assert_eq!(Class::from_wire(class.wire()), Some(class));
        }
        assert_eq!((Class::Buffer.wire(), Class::Errhandler.wire()), (1, 61));
        assert_eq!((Class::from_wire(0), Class::from_wire(61 + 1)), (None, None));
    }

    #[test]
    fn classes_have_the_names_of_mpi() {
        assert_eq!(Class::Type.mpi_name(), "MPI_ERR_TYPE");
        assert_eq!(Class::RmaSync.mpi_name(), "MPI_ERR_RMA_SYNC");
        assert_eq!(Class::InfoNokey.mpi_name(), "MPI_ERR_INFO_NOKEY");
        assert_eq!(Class::ValueTooLarge.mpi_name(), "MPI_ERR_VALUE_TOO_LARGE");
    }
}
