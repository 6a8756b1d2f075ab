//! Flat forms of datatypes and communicators: packed objects in ASCII, for files, servers and other
//! programs (proposal 1 (docs/proposals.md)).
//!
//! A flat communicator, a flat type and packed data, one after the other, form a self-describing
//! object. The communicator gives the representation of the data. Its reader needs no knowledge of
//! its writer.
//!
//! ```
//! use longshore::{Datatype, Destination, Origin};
//!
//! let rank = longshore::init()?;
//! let column = rank.commit(&Datatype::vector(3, 1, 2, &Datatype::double())?)?;
//! let matrix = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
//!
//! let mut object = rank.world().flat()?.into_bytes();
//! object.extend(column.flat()?.into_bytes());
//! let mut position = object.len() as u64;
//! object.resize(object.len() + rank.world().pack_size(1, &column)? as usize, 0);
//! rank.world().pack(Origin::typed(&matrix[..], 1, &column), &mut object, &mut position)?;
//!
//! // The reader, perhaps on another architecture:
//! let mut position = 0;
//! let origin = rank.unpack_communicator(&object, &mut position)?;
//! let datatype = rank.unpack_type(&object, &mut position)?;
//! let mut values = [0.0; 6];
//! let room = Destination::typed(&mut values[..], 1, &datatype);
//! rank.unpack_of(&origin, &object, &mut position, room)?;
//! assert_eq!(values, [1.0, 0.0, 3.0, 0.0, 5.0, 0.0]);
//! # rank.finalize()?;
//! # Ok::<(), longshore::Error>(())
//! ```

use std::panic::Location;

use shipable::flat::{self, CommunicatorDescription, Comparison};
use shipable::{Architecture, Datatype};

use crate::communicator::Communicator;
use crate::error::{ErrorKind, Result};
use crate::origin::Destination;
use crate::packed;
use crate::process::Process;
use crate::rank::Rank;
use crate::types::Type;

impl Type {
    /// The type's flat form, which [`Rank::unpack_type`] reads. A portable type can be read on any
    /// architecture, any other one only on those with the same representation.
    ///
    /// # Errors
    /// VALUE_TOO_LARGE for a type whose text is too long.
    pub fn flat(&self) -> Result<String> {
        Ok(flat::pack(self.datatype(), self.compiled().committed().architecture())?)
    }
}

impl Communicator {
    /// The communicator's flat form, which [`Rank::unpack_communicator`] reads. It contains the
    /// job's identity, the members, and their architectures. Local.
    ///
    /// # Errors
    /// OTHER after finalize.
    #[track_caller]
    pub fn flat(&self) -> Result<String> {
        let caller = Location::caller();
        let described = self.description().map_err(|error| self.raised(error, "flat", caller))?;
        Ok(described.pack())
    }

    /// Compares this communicator with an unpacked one, which may be of another job, or the flat
    /// form of this one.
    ///
    /// Returns [`Comparison::ArchEquiv`] if they have nothing else in common, but this
    /// implementation can convert between the architectures of both.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let flat = rank.world().flat()?;
    /// let described = rank.unpack_communicator(flat.as_bytes(), &mut 0)?;
    /// assert_eq!(rank.world().compare_unpacked(&described)?, longshore::Comparison::Ident);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// OTHER after finalize.
    #[track_caller]
    pub fn compare_unpacked(&self, other: &CommunicatorDescription) -> Result<Comparison> {
        let (described, caller) = (self.description(), Location::caller());
        let described =
            described.map_err(|error| self.raised(error, "compare_unpacked", caller))?;
        Ok(described.compare(other))
    }

    fn description(&self) -> Result<CommunicatorDescription> {
        let process = self.process();
        process.ready()?;
        let mut engine = process.engine();
        let state = engine.state();
        let mut members = Vec::new();
        for &member in self.group().processes() {
            // Every rank has sent its hello frame before the end of init.
            let unknown = || ErrorKind::Gone { rank: member, state: "unknown".to_owned() };
            let (architecture, _) = state.representation(member).ok_or_else(unknown)?;
            members.push((u64::from(member), architecture));
        }
        let members = members.iter().map(|(member, architecture)| (*member, architecture));
        Ok(CommunicatorDescription::new(state.job(), self.number().into(), members))
    }
}

impl Rank {
    /// Unpacks a datatype from its flat form at `position` of `packed`, and commits it. Advances
    /// the position.
    ///
    /// # Errors
    /// ARG for a position past the end. TRUNCATE for too few bytes. TYPE for bytes that are no
    /// datatype or are damaged, for byte displacements of another architecture, for a type that was
    /// foreign to its writer, and for a type that this rank's architecture can't represent. After
    /// an error, the position is unchanged.
    pub fn unpack_type(&self, packed: &[u8], position: &mut u64) -> Result<Type> {
        let mut after = *position;
        let committed = self.commit(&unpack_datatype(self.process(), packed, &mut after)?)?;
        *position = after;
        Ok(committed)
    }

    /// Unpacks a communicator from its flat form at `position` of `packed`. Advances the position.
    /// The result can be compared, and describes the representation of packed data. It can't be
    /// used to communicate.
    ///
    /// # Errors
    /// Those of [`unpack_type`](Rank::unpack_type).
    pub fn unpack_communicator(
        &self,
        packed: &[u8],
        position: &mut u64,
    ) -> Result<CommunicatorDescription> {
        unpack_communicator(self.process(), packed, position)
    }

    /// Unpacks data that was packed in a communicator of which the flat form was unpacked. See
    /// [`Communicator::unpack`].
    ///
    /// # Errors
    /// UNSUPPORTED_DATAREP if an architecture of the communicator's ranks isn't known. Otherwise
    /// the errors of [`Communicator::unpack`].
    #[track_caller]
    pub fn unpack_of<'a>(
        &self,
        communicator: &CommunicatorDescription,
        packed: &[u8],
        position: &mut u64,
        room: impl Into<Destination<'a>>,
    ) -> Result<()> {
        // Each architecture occurs once, whatever the number of ranks.
        let known = |(descriptor, _)| Architecture::from_descriptor(descriptor).ok();
        let known: Option<Vec<_>> = communicator.architectures().map(known).collect();
        let representation = known.and_then(|known| packed::common(&known));
        let representation = representation.ok_or(ErrorKind::Unrecognised)?;
        let caller = Location::caller();
        packed::unpack(self.process(), packed, position, room.into(), &representation)
            .map_err(|error| self.alone().raised(error, "unpack_of", caller))
    }
}

pub(crate) fn unpack_datatype(
    process: &Process,
    packed: &[u8],
    position: &mut u64,
) -> Result<Datatype> {
    process.ready()?;
    let here = &process.me().architecture;
    let (datatype, length) = flat::unpack(from(packed, *position)?, here)?;
    *position += length as u64;
    Ok(datatype)
}

pub(crate) fn unpack_communicator(
    process: &Process,
    packed: &[u8],
    position: &mut u64,
) -> Result<CommunicatorDescription> {
    process.ready()?;
    let (description, length) = CommunicatorDescription::unpack(from(packed, *position)?)?;
    *position += length as u64;
    Ok(description)
}

/// The bytes from a position on.
fn from(packed: &[u8], position: u64) -> Result<&[u8]> {
    Ok(&packed[start(position, packed.len())?..])
}

/// Converts a position in a buffer of `size` bytes to an index, which may be the end.
pub(crate) fn start(position: u64, size: usize) -> Result<usize> {
    let start = usize::try_from(position).ok().filter(|start| *start <= size);
    let wrong = || {
        ErrorKind::PackArguments(format!(
            "position {position} lies past the end of a buffer of {size} bytes: give one within it"
        ))
    };
    Ok(start.ok_or_else(wrong)?)
}
