//! Datatypes taken apart: the arguments of the constructor (MPI-5.0 section 5.1.13), and the [`accessors`] of 1995.
//!
//! [`Datatype::envelope`] says how many arguments of each kind the constructor had, [`Datatype::contents`] which, and
//! [`Contents::rebuild`] calls it with them again. The arguments stand in the order that MPI's table gives them:
//!
//! | combiner | integers | addresses | datatypes |
//! |---|---|---|---|
//! | NAMED | none: it is erroneous to ask for its contents | | |
//! | DUP | | | oldtype |
//! | CONTIGUOUS | count | | oldtype |
//! | VECTOR | count, blocklength, stride | | oldtype |
//! | HVECTOR, HVECTOR_INTEGER | count, blocklength | stride | oldtype |
//! | INDEXED | count, blocklengths, displacements | | oldtype |
//! | HINDEXED, HINDEXED_INTEGER | count, blocklengths | displacements | oldtype |
//! | INDEXED_BLOCK | count, blocklength, displacements | | oldtype |
//! | HINDEXED_BLOCK | count, blocklength | displacements | oldtype |
//! | STRUCT, STRUCT_INTEGER | count, blocklengths | displacements | types |
//! | SIMPLE_STRUCT, which is ours | count, blocklengths | | types |
//! | SUBARRAY | ndims, sizes, subsizes, starts, order | | oldtype |
//! | DARRAY | size, rank, ndims, gsizes, distribs, dargs, psizes, order | | oldtype |
//! | F90_REAL, F90_COMPLEX | precision, range | | |
//! | F90_INTEGER | range | | |
//! | RESIZED | | lb, extent | oldtype |
//! | VALUE_INDEX | | | value, index |
//!
//! That is [`Counts::Int`]. In [`Counts::Large`], the version with `_c` in its name, everything that a large-count
//! constructor takes as an MPI_Count is a large count, addresses included; ndims, order, and the arguments of DARRAY
//! but its gsizes stay integers. Whether a type was made with large counts isn't kept, so either version may be asked
//! for; the one with ints is refused where an argument doesn't fit, as MPI refuses it for a type that was made with
//! large counts.
//!
//! Orders, distributions and undefined arguments are integers here, with the values of MPI-5.0's ABI, but for
//! [`DISTRIBUTE_DFLT_DARG`]. Handles, references and attributes are the runtime's.

pub mod accessors;
mod arguments;

pub use accessors::{Elements, type_count, type_elements};

use crate::datatype::{Combiner, Datatype};
use crate::error::{Class, Error, Result};
use arguments::{Reader, Writer};

/// `MPI_ORDER_C`.
pub const ORDER_C: i32 = 12;
/// `MPI_ORDER_FORTRAN`.
pub const ORDER_FORTRAN: i32 = 15;
/// `MPI_DISTRIBUTE_NONE`.
pub const DISTRIBUTE_NONE: i32 = 16;
/// `MPI_DISTRIBUTE_BLOCK`.
pub const DISTRIBUTE_BLOCK: i32 = 17;
/// `MPI_DISTRIBUTE_CYCLIC`.
pub const DISTRIBUTE_CYCLIC: i32 = 18;
/// `MPI_DISTRIBUTE_DFLT_DARG`. MPI's ABI has 19, which can't be told from an argument of 19.
pub const DISTRIBUTE_DFLT_DARG: i32 = -1;
/// `MPI_UNDEFINED`, of a Fortran kind's precision or range.
pub const UNDEFINED: i32 = -32766;

/// Which version of the calls is meant: of a count that is an int, or an MPI_Count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// `MPI_Type_get_envelope`, `MPI_Type_get_contents`.
    Int,
    /// `MPI_Type_get_envelope_c`, `MPI_Type_get_contents_c`.
    Large,
}

/// How many arguments of each kind a datatype's constructor had; also the room that arrays have for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Which constructor it was.
    pub combiner: Combiner,
    /// `num_integers`.
    pub integers: usize,
    /// `num_addresses`.
    pub addresses: usize,
    /// `num_large_counts`; 0 in the version with ints.
    pub large_counts: usize,
    /// `num_datatypes`.
    pub datatypes: usize,
}

/// The arguments of a datatype's constructor, in the order of the [module](self)'s table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// Which constructor it was.
    pub combiner: Combiner,
    /// `array_of_integers`.
    pub integers: Vec<i32>,
    /// `array_of_addresses`.
    pub addresses: Vec<i64>,
    /// `array_of_large_counts`; empty in the version with ints.
    pub large_counts: Vec<i64>,
    /// `array_of_datatypes`: the very objects that the constructor was given.
    pub datatypes: Vec<Datatype>,
}

impl Datatype {
    /// How many arguments its constructor had (`MPI_Type_get_envelope`); none if it is a named type.
    ///
    /// # Errors
    /// TYPE where an argument doesn't fit the version of the calls.
    pub fn envelope(&self, counts: Counts) -> Result<Envelope> {
        let mut writer = Writer::counting(self.combiner(), counts);
        writer.arguments(self)?;
        Ok(writer.envelope)
    }

    /// The arguments of its constructor (`MPI_Type_get_contents`).
    ///
    /// ```
    /// use shipable::{Datatype, contents::Counts};
    /// let column = Datatype::hvector(8, 1, 80, &Datatype::double())?;
    /// let contents = column.contents(Counts::Int)?;
    /// assert_eq!((contents.integers.as_slice(), contents.addresses.as_slice()), (&[8, 1][..], &[80][..]));
    /// assert_eq!(contents.datatypes, [Datatype::double()]);
    /// assert_eq!(column.contents(Counts::Large)?.large_counts, [8, 1, 80]);
    /// assert_eq!(contents.rebuild()?, column);
    /// # Ok::<(), shipable::Error>(())
    /// ```
    ///
    /// # Errors
    /// TYPE for a named type, and where an argument doesn't fit the version of the calls.
    pub fn contents(&self, counts: Counts) -> Result<Contents> {
        if let Some(named) = self.as_basic() {
            let problem = format!("{named} is a named predefined type: it has no contents");
            return Err(Error::Argument { call: "contents", class: Class::Type, problem });
        }
        let mut writer = Writer::keeping(self.combiner(), counts);
        writer.arguments(self)?;
        Ok(writer.contents)
    }
}

impl Envelope {
    /// Whether arrays with room for `room` hold as much as this says.
    ///
    /// # Errors
    /// [`Error::ArrayTooSmall`] for the first that doesn't, of class ARG.
    pub fn fits(&self, room: &Envelope) -> Result<()> {
        let arrays = [
            ("array_of_integers", room.integers, self.integers),
            ("array_of_addresses", room.addresses, self.addresses),
            ("array_of_large_counts", room.large_counts, self.large_counts),
            ("array_of_datatypes", room.datatypes, self.datatypes),
        ];
        match arrays.into_iter().find(|(_, room, needed)| room < needed) {
            None => Ok(()),
            Some((array, room, needed)) => Err(Error::ArrayTooSmall { array, room, needed }),
        }
    }
}

impl Contents {
    /// How much there is of each kind.
    pub fn envelope(&self) -> Envelope {
        Envelope {
            combiner: self.combiner,
            integers: self.integers.len(),
            addresses: self.addresses.len(),
            large_counts: self.large_counts.len(),
            datatypes: self.datatypes.len(),
        }
    }

    /// Writes them to arrays, which may be longer than they need to be. Nothing is written unless everything is.
    ///
    /// # Errors
    /// As [`Envelope::fits`].
    pub fn write(
        &self,
        integers: &mut [i32],
        addresses: &mut [i64],
        large_counts: &mut [i64],
        datatypes: &mut [Datatype],
    ) -> Result<()> {
        self.envelope().fits(&Envelope {
            combiner: self.combiner,
            integers: integers.len(),
            addresses: addresses.len(),
            large_counts: large_counts.len(),
            datatypes: datatypes.len(),
        })?;
        integers[..self.integers.len()].copy_from_slice(&self.integers);
        addresses[..self.addresses.len()].copy_from_slice(&self.addresses);
        large_counts[..self.large_counts.len()].copy_from_slice(&self.large_counts);
        datatypes[..self.datatypes.len()].clone_from_slice(&self.datatypes);
        Ok(())
    }

    /// Calls the constructor with them: the type that comes of it equals the one that they were taken from.
    ///
    /// # Errors
    /// TYPE for NAMED, ARG where there are too few or too many arguments of a kind; else as the constructor.
    pub fn rebuild(&self) -> Result<Datatype> {
        Reader::new(self).rebuild()
    }
}
