//! The constructor of a type, by handle: envelope and contents (proposal 2 (docs/proposals.md);
//! MPI-5.0 section 5.1.13), and the accessors of proposal 0 (docs/proposals.md).

use shipable::Datatype;
use shipable::contents::{self, Counts, Elements, Envelope};
use shipable::datatype::{Combiner, Node};

use super::{Handle, Types};
use crate::error::Result;

/// The arrays that receive a constructor's arguments from [`Types::contents`]. They may be longer
/// than necessary.
#[derive(Debug, Default)]
pub struct Arrays<'a> {
    /// `array_of_integers`.
    pub integers: &'a mut [i32],
    /// `array_of_addresses`.
    pub addresses: &'a mut [i64],
    /// `array_of_large_counts`; unused with [`Counts::Int`].
    pub large_counts: &'a mut [i64],
    /// `array_of_datatypes`.
    pub datatypes: &'a mut [Handle],
}

impl Types {
    /// The number of arguments of each kind of the type's constructor (MPI_Type_get_envelope).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// use longshore::handle::Types;
    /// use longshore::shipable::contents::Counts;
    ///
    /// let types = Types::new(&rank);
    /// let column = longshore::Datatype::vector(8, 1, 10, &longshore::Datatype::double())?;
    /// let column = types.insert(column)?;
    /// let envelope = types.envelope(column, Counts::Int)?;
    /// assert_eq!((envelope.integers, envelope.datatypes), (3, 1));
    /// assert_eq!(types.type_count(column)?, 8);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// TYPE for a handle that is null, freed or foreign, and if an argument doesn't fit the
    /// integers that `counts` selects.
    pub fn envelope(&self, handle: Handle, counts: Counts) -> Result<Envelope> {
        let (_, datatype) = self.built_here(handle, TAKEN_APART)?;
        Ok(datatype.envelope(counts)?)
    }

    /// Writes the arguments of the type's constructor to arrays (MPI_Type_get_contents). The table
    /// in [`shipable::contents`] defines their order.
    ///
    /// Each returned handle of a derived type is a new reference, to be freed by the caller. If the
    /// type that the constructor was given still exists, the handle refers to it, with the same
    /// name and attributes. Otherwise it refers to a new type without attributes. A predefined type
    /// is returned as itself.
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
    /// let mut arrays = Arrays { integers: &mut integers, ..Arrays::default() };
    /// arrays.datatypes = &mut datatypes;
    /// types.contents(column, Counts::Int, arrays)?;
    /// assert_eq!((integers, datatypes), ([8, 1, 10], [Handle::predefined(Basic::Double)]));
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// TYPE for a handle that is null, freed, foreign, or of a named type, and if an argument
    /// doesn't fit the integers that `counts` selects. ARG for the first array that is too short.
    /// Nothing is written then, and no handle needs to be freed.
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

    /// The number of entries of the type (MPI_Type_count of proposal 0 (docs/proposals.md)): see
    /// [`shipable::contents`].
    ///
    /// # Errors
    /// TYPE for a handle that is null, freed or foreign.
    pub fn type_count(&self, handle: Handle) -> Result<i64> {
        let (_, datatype) = self.built_here(handle, TAKEN_APART)?;
        Ok(contents::type_count(&datatype))
    }

    /// Writes at most `count` entries of the type to arrays, and sets `count` to their number.
    /// Returns the combiner (MPI_Type_elements of proposal 0 (docs/proposals.md)).
    ///
    /// With a `count` of zero, no array is accessed. The table of the accessors in
    /// [`shipable::contents`] defines the contents of each array; other arrays are left unchanged.
    /// The handles are new references, as in [`contents`](Types::contents).
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
    /// TYPE for a handle that is null, freed or foreign. COUNT for a negative count. ARG for an
    /// array that is too short. Nothing is written then.
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

    /// New references to all of these types, or to none of them.
    fn references(&self, datatypes: &[Datatype]) -> Result<Vec<Handle>> {
        let mut references = Vec::with_capacity(datatypes.len());
        for datatype in datatypes {
            match self.reference(datatype) {
                Ok(handle) => references.push(handle),
                Err(error) => {
                    // The caller never had these references, so free handlers aren't called.
                    references.into_iter().for_each(|handle| self.remove(handle));
                    return Err(error);
                }
            }
        }
        Ok(references)
    }

    /// A new reference to a type of exactly this datatype tree, if one exists. Otherwise a new
    /// type.
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
