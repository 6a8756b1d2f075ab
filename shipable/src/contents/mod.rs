//! The contents of datatypes: the arguments of their constructors (MPI-5.0 section 5.1.13), and the
//! [`accessors`] of proposal 0 (docs/proposals.md).
//!
//! [`Datatype::envelope`] returns the number of arguments of each kind, [`Datatype::contents`] the
//! arguments themselves, and [`Contents::rebuild`] calls the constructor with them again. The
//! arguments have the order of MPI's table:
//!
//! | combiner | integers | addresses | datatypes |
//! |---|---|---|---|
//! | NAMED | none: asking for its contents is erroneous | | |
//! | DUP | | | oldtype |
//! | CONTIGUOUS | count | | oldtype |
//! | VECTOR | count, blocklength, stride | | oldtype |
//! | HVECTOR, HVECTOR_INTEGER | count, blocklength | stride | oldtype |
//! | INDEXED | count, blocklengths, displacements | | oldtype |
//! | HINDEXED, HINDEXED_INTEGER | count, blocklengths | displacements | oldtype |
//! | INDEXED_BLOCK | count, blocklength, displacements | | oldtype |
//! | HINDEXED_BLOCK | count, blocklength | displacements | oldtype |
//! | STRUCT, STRUCT_INTEGER | count, blocklengths | displacements | types |
//! | SIMPLE_STRUCT, which MPI hasn't | count, blocklengths | | types |
//! | SUBARRAY | ndims, sizes, subsizes, starts, order | | oldtype |
//! | DARRAY | size, rank, ndims, gsizes, distribs, dargs, psizes, order | | oldtype |
//! | F90_REAL, F90_COMPLEX | precision, range | | |
//! | F90_INTEGER | range | | |
//! | RESIZED | | lb, extent | oldtype |
//! | VALUE_INDEX | | | value, index |
//!
//! The table shows the calls with int counts, [`Counts::Int`]. In the calls with large counts,
//! [`Counts::Large`], every argument that the constructor's `_c` version takes as an `MPI_Count` is
//! a large count, addresses included. The integers ndims, size, rank, distribs, dargs, psizes and
//! order stay integers.
//!
//! A datatype doesn't record which version made it, so both may return its contents. The version
//! with int counts fails if an argument doesn't fit an int. MPI requires this failure for every
//! type that was made with large counts.
//!
//! Orders, distributions and undefined arguments are integers here, with the values of MPI-5.0's
//! ABI, except for [`DISTRIBUTE_DFLT_DARG`].
//!
//! Left out: handles, references and attributes, which belong to the runtime.

pub mod accessors;
mod arguments;

pub use crate::datatype::DISTRIBUTE_DFLT_DARG;
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
/// `MPI_UNDEFINED`, for the precision or range of a Fortran kind.
pub const UNDEFINED: i32 = -32766;

/// The version of the calls: with counts that are ints, or with counts that are `MPI_Count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// `MPI_Type_get_envelope`, `MPI_Type_get_contents`.
    Int,
    /// `MPI_Type_get_envelope_c`, `MPI_Type_get_contents_c`.
    Large,
}

/// The number of arguments of each kind of a datatype's constructor. It also describes the lengths
/// of the arrays that receive them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The constructor's name.
    pub combiner: Combiner,
    /// `num_integers`.
    pub integers: usize,
    /// `num_addresses`.
    pub addresses: usize,
    /// `num_large_counts`; 0 for [`Counts::Int`].
    pub large_counts: usize,
    /// `num_datatypes`.
    pub datatypes: usize,
}

/// The arguments of a datatype's constructor, in the order of the table in the [module](self)'s
/// documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// The constructor's name.
    pub combiner: Combiner,
    /// `array_of_integers`.
    pub integers: Vec<i32>,
    /// `array_of_addresses`.
    pub addresses: Vec<i64>,
    /// `array_of_large_counts`; empty for [`Counts::Int`].
    pub large_counts: Vec<i64>,
    /// `array_of_datatypes`: the same objects that the constructor was given.
    pub datatypes: Vec<Datatype>,
}

impl Datatype {
    /// The number of arguments of its constructor (`MPI_Type_get_envelope`); 0 of each kind for a
    /// named type.
    ///
    /// # Errors
    /// TYPE if an argument doesn't fit this version of the calls.
    #[doc(alias = "MPI_Type_get_envelope")]
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
    /// assert_eq!(contents.integers, [8, 1]);
    /// assert_eq!(contents.addresses, [80]);
    /// assert_eq!(contents.datatypes, [Datatype::double()]);
    /// assert_eq!(column.contents(Counts::Large)?.large_counts, [8, 1, 80]);
    /// assert_eq!(contents.rebuild()?, column);
    /// # Ok::<(), shipable::Error>(())
    /// ```
    ///
    /// # Errors
    /// TYPE for a named type, or if an argument doesn't fit this version of the calls.
    #[doc(alias = "MPI_Type_get_contents")]
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
    /// Checks that arrays of the lengths in `room` can receive these arguments.
    ///
    /// # Errors
    /// [`Error::ArrayTooSmall`], of class ARG, for the first array that is too short.
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
    /// The number of arguments of each kind.
    pub fn envelope(&self) -> Envelope {
        Envelope {
            combiner: self.combiner,
            integers: self.integers.len(),
            addresses: self.addresses.len(),
            large_counts: self.large_counts.len(),
            datatypes: self.datatypes.len(),
        }
    }

    /// Writes the arguments to arrays, which may be longer than needed. On an error, nothing is
    /// written.
    ///
    /// # Errors
    /// [`Error::ArrayTooSmall`], of class ARG, for the first array that is too short.
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

    /// Calls the constructor with these arguments. The result equals the type that they were taken
    /// from.
    ///
    /// # Errors
    /// TYPE for a named type, ARG for too few or too many arguments of a kind, and the
    /// constructor's own errors.
    pub fn rebuild(&self) -> Result<Datatype> {
        Reader::new(self).rebuild()
    }
}
