//! Data representations of files (MPI-5.0 section 14.5).

use longshore::{Architecture, Class};

use crate::error::{Error, Result};

/// How values are represented in a file.
///
/// ```
/// use longshore_file::Datarep;
///
/// assert_eq!(Datarep::named("external32")?, Datarep::External32);
/// assert_eq!(Datarep::Native.name(), "native");
/// # Ok::<(), longshore_file::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Datarep {
    /// As in the memory of the rank that writes. Nothing is converted.
    #[default]
    Native,
    /// A representation that every rank of every job of Longshore reads: little-endian, with a
    /// `long` of 64 bits and a `long double` of 128 (IEEE binary128). It holds every value of every
    /// machine.
    Internal,
    /// MPI's representation for exchange: big-endian, with a `long` of 32 bits.
    External32,
}

impl Datarep {
    /// The representation of a name of MPI.
    ///
    /// # Errors
    /// UNSUPPORTED_DATAREP for an unknown name.
    pub fn named(name: &str) -> Result<Datarep> {
        let all = [Datarep::Native, Datarep::Internal, Datarep::External32];
        all.into_iter().find(|known| known.name() == name).ok_or_else(|| {
            let problem = format!(
                "no data representation is called {name:?}: use native, internal or external32"
            );
            Error::argument(Class::UnsupportedDatarep, problem)
        })
    }

    /// MPI's name.
    pub fn name(self) -> &'static str {
        match self {
            Datarep::Native => "native",
            Datarep::Internal => "internal",
            Datarep::External32 => "external32",
        }
    }

    /// The representation as a value, for a rank whose memory has the representation `own`.
    pub(crate) fn architecture(self, own: &Architecture) -> Architecture {
        match self {
            Datarep::Native => *own,
            Datarep::Internal => Architecture::AARCH64,
            Datarep::External32 => Architecture::EXTERNAL32,
        }
    }
}
