//! Types taken apart by handle: envelope, contents (seed 002; MPI-5.0 section 5.1.13), and the accessors of seed 000.

use shipable::Datatype;
use shipable::contents::{self, Counts, Elements, Envelope};
use shipable::datatype::{Combiner, Node};

use super::{Handle, Types};
use crate::error::Result;

/// Where [`Types::contents`] writes the arguments of a constructor; arrays may be longer than they need to be.
#[derive(Debug, Default)]
pub struct Arrays<'a> {
    /// `array_of_integers`.
    pub integers: &'a mut [i32],
    /// `array_of_addresses`.
    pub addresses: &'a mut [i64],
    /// `array_of_large_counts`; unused in the version with ints.
    pub large_counts: &'a mut [i64],
    /// `array_of_datatypes`.
    pub datatypes: &'a mut [Handle],
}

impl Types {
    /// How many arguments of each kind the type's constructor had.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// use longshore::handle::Types;
    /// use longshore::shipable::contents::Counts;
    ///
    /// let types = Types::new(&rank);
    /// let column = types.insert(longshore::Datatype::vector(8, 1, 10, &longshore::Datatype::double())?)?;
    /// let envelope = types.envelope(column, Counts::Int)?;
    /// assert_eq!((envelope.integers, envelope.datatypes), (3, 1));
    /// assert_eq!(types.type_count(column)?, 8);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// TYPE for a handle that is null, freed or foreign, and where an argument doesn't fit the version of the calls.
    pub fn envelope(&self, handle: Handle, counts: Counts) -> Result<Envelope> {
        let (_, datatype) = self.built_here(handle, TAKEN_APART)?;
        Ok(datatype.envelope(counts)?)
    }

    /// Writes the arguments of the type's constructor to arrays, in the order of the table in [`shipable::contents`].
    ///
    /// A handle of a derived type that is returned is a new reference to the type that the constructor was given, if that
    /// is still there, with the same name and attributes; it is to be freed as any other. Types that were freed meanwhile come
    /// back with an empty cache. A predefined type comes back as itself.
    ///
    /// ```
    /// use longshore::handle::{Arrays, Handle, Types};
    /// use longshore::shipable::{Basic, contents::Counts};
    /// use longshore::Datatype;
    ///
    /// # let rank = longshore::init()?;
    /// let types = Types::new(&rank);
    /// let column = types.insert(Datatype::vector(8, 1, 10, &Datatype::double())?)?;
    /// let (mut integers, mut datatypes) = ([0; 3], [Handle::NULL]);
    /// let arrays = Arrays { integers: &mut integers, datatypes: &mut datatypes, ..Arrays::default() };
    /// types.contents(column, Counts::Int, arrays)?;
    /// assert_eq!((integers, datatypes), ([8, 1, 10], [Handle::predefined(Basic::Double)]));
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// TYPE for a handle that is null, freed or foreign, or of a named type, and where an argument doesn't fit the version
    /// of the calls; ARG for the first array that is too short. Nothing is written then, and nothing to be freed.
    pub fn contents(&self, handle: Handle, counts: Counts, arrays: Arrays<'_>) -> Result<()> {
        let (_, datatype) = self.built_here(handle, TAKEN_APART)?;
        let contents = datatype.contents(counts)?;
        contents.envelope().fits(&Envelope {
            combiner: contents.combiner,
            integers: arrays.integers.len(),
            addresses: arrays.addresses.len(),
            large_counts: arrays.large_counts.len(),
            datatypes: arrays.datatypes.len(),
        })?;
        let references = self.references(&contents.datatypes)?;
        let mut datatypes = contents.datatypes.clone();
        contents.write(arrays.integers, arrays.addresses, arrays.large_counts, &mut datatypes)?;
        arrays.datatypes[..references.len()].copy_from_slice(&references);
        Ok(())
    }

    /// How many entries the type has (MPI_Type_count of 1995): see [`shipable::contents`].
    ///
    /// # Errors
    /// TYPE for a handle that is null, freed or foreign.
    pub fn type_count(&self, handle: Handle) -> Result<i64> {
        let (_, datatype) = self.built_here(handle, TAKEN_APART)?;
        Ok(contents::type_count(&datatype))
    }

    /// Writes at most the first `count` entries of the type to arrays, and sets `count` to how many there are of them
    /// (MPI_Type_elements of 1995); gives the combiner. A `count` of zero touches no array. What is in which array, the table of
    /// the accessors in [`shipable::contents`] says; entries of arrays that it doesn't name are left alone. Handles are new
    /// references, as in [`contents`](Types::contents).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// use longshore::handle::{Handle, Types};
    /// use longshore::Datatype;
    ///
    /// let types = Types::new(&rank);
    /// let members = [Datatype::int(), Datatype::double()];
    /// let pair = types.insert(Datatype::struct_(&[1, 2], &[0, 8], &members)?)?;
    /// let (mut count, mut lengths, mut places) = (types.type_count(pair)?, [0; 2], [0; 2]);
    /// let mut handles = [Handle::NULL; 2];
    /// types.type_elements(pair, &mut count, &mut lengths, &mut places, &mut handles)?;
    /// assert_eq!((count, lengths, places), (2, [1, 2], [0, 8]));
    /// assert_eq!(types.print(handles[1])?, "d");
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// TYPE for a handle that is null, freed or foreign; COUNT for a negative count; ARG for an array that is too short.
    /// Nothing is written then.
    pub fn type_elements(
        &self,
        handle: Handle,
        count: &mut i64,
        blocklengths: &mut [i64],
        displacements: &mut [i64],
        datatypes: &mut [Handle],
    ) -> Result<Combiner> {
        let (_, datatype) = self.built_here(handle, TAKEN_APART)?;
        let elements: Elements = contents::type_elements(&datatype, *count)?;
        let room = |array, room: usize, needed: usize| match room < needed {
            true => Err(shipable::Error::ArrayTooSmall { array, room, needed }),
            false => Ok(()),
        };
        room("array_of_blocklengths", blocklengths.len(), elements.blocklengths.len())?;
        room("array_of_displacements", displacements.len(), elements.displacements.len())?;
        room("array_of_types", datatypes.len(), elements.types.len())?;
        let references = self.references(&elements.types)?;
        blocklengths[..elements.blocklengths.len()].copy_from_slice(&elements.blocklengths);
        displacements[..elements.displacements.len()].copy_from_slice(&elements.displacements);
        datatypes[..references.len()].copy_from_slice(&references);
        *count = elements.count;
        Ok(elements.combiner)
    }

    /// New references, all or none.
    fn references(&self, datatypes: &[Datatype]) -> Result<Vec<Handle>> {
        let mut references = Vec::with_capacity(datatypes.len());
        for datatype in datatypes {
            match self.reference(datatype) {
                Ok(handle) => references.push(handle),
                Err(error) => {
                    // The caller never had them, so nobody is told.
                    references.into_iter().for_each(|handle| self.remove(handle));
                    return Err(error);
                }
            }
        }
        Ok(references)
    }

    /// A new reference to a type that was built of this very tree, if one is there; else a new type.
    fn reference(&self, datatype: &Datatype) -> Result<Handle> {
        let known = self.table().oldest(datatype).cloned();
        match known {
            Some(named) if !matches!(datatype.node(), Node::Leaf(_)) => {
                Ok(self.table().push(named))
            }
            _ => self.insert(datatype.clone()),
        }
    }
}

const TAKEN_APART: &str = "a type to take apart";
