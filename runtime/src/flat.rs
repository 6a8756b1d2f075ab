//! Datatypes and communicators as objects to be packed: in flat ASCII form, for files, servers and other programs (seed 001).
//!
//! Data, the type that describes them, and the communicator that says in what representation they are, one after the other,
//! are an object that describes itself: whoever reads it needs to know nothing of who wrote it.
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
//! // Elsewhere, perhaps on another architecture:
//! let mut position = 0;
//! let origin = rank.unpack_communicator(&object, &mut position)?;
//! let datatype = rank.unpack_type(&object, &mut position)?;
//! let mut values = [0.0; 6];
//! rank.unpack_of(&origin, &object, &mut position, Destination::typed(&mut values[..], 1, &datatype))?;
//! assert_eq!(values, [1.0, 0.0, 3.0, 0.0, 5.0, 0.0]);
//! # rank.finalize()?;
//! # Ok::<(), longshore::Error>(())
//! ```

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
    /// Its flat form, which [`Rank::unpack_type`] reads: on any architecture if it is portable, else on like ones.
    ///
    /// # Errors
    /// VALUE_TOO_LARGE for a type with too long a text.
    pub fn flat(&self) -> Result<String> {
        Ok(flat::pack(self.datatype(), self.compiled().committed().architecture())?)
    }
}

impl Communicator {
    /// Its flat form, which [`Rank::unpack_communicator`] reads: which job's it is, its members, and their architectures.
    /// Local.
    ///
    /// # Errors
    /// OTHER after finalize.
    pub fn flat(&self) -> Result<String> {
        let described = self.description().map_err(|error| self.raised(error, "flat"))?;
        Ok(described.pack())
    }

    /// How it relates to a communicator that was unpacked, perhaps one of another job, or itself at another time.
    /// [`Comparison::ArchEquiv`] where they have nothing in common but that this implementation can translate between the
    /// architectures of both.
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
    pub fn compare_unpacked(&self, other: &CommunicatorDescription) -> Result<Comparison> {
        let described = self.description();
        let described = described.map_err(|error| self.raised(error, "compare_unpacked"))?;
        Ok(described.compare(other))
    }

    fn description(&self) -> Result<CommunicatorDescription> {
        let process = self.process();
        process.ready()?;
        let mut engine = process.engine();
        let state = engine.state();
        let mut members = Vec::new();
        for &member in self.group().processes() {
            // All ranks have said hello by the end of init.
            let unknown = || ErrorKind::Gone { rank: member, state: "unknown".to_owned() };
            let (architecture, _) = state.representation(member).ok_or_else(unknown)?;
            members.push((u64::from(member), architecture));
        }
        let members = members.iter().map(|(member, architecture)| (*member, architecture));
        Ok(CommunicatorDescription::new(state.job(), self.number().into(), members))
    }
}

impl Rank {
    /// Reads the flat form of a datatype from `position` of `packed` on, moves the position past it, and commits the datatype.
    ///
    /// # Errors
    /// TYPE for bytes that are none, or that were damaged, TRUNCATE for too few; TYPE for a type with byte displacements of another architecture, or
    /// that was foreign to its writer; for what this rank's architecture can't represent. ARG for a position past the end. The
    /// position stays where it was.
    pub fn unpack_type(&self, packed: &[u8], position: &mut u64) -> Result<Type> {
        let mut after = *position;
        let committed = self.commit(&unpack_datatype(self.process(), packed, &mut after)?)?;
        *position = after;
        Ok(committed)
    }

    /// Reads the flat form of a communicator likewise. What comes of it can be compared, and says how data are represented;
    /// nobody can be reached by it.
    ///
    /// # Errors
    /// As [`unpack_type`](Rank::unpack_type).
    pub fn unpack_communicator(
        &self,
        packed: &[u8],
        position: &mut u64,
    ) -> Result<CommunicatorDescription> {
        unpack_communicator(self.process(), packed, position)
    }

    /// As [`Communicator::unpack`], of data that were packed in a communicator that was unpacked.
    ///
    /// # Errors
    /// As [`Communicator::unpack`]; UNSUPPORTED_DATAREP where the architectures of its ranks aren't all recognised.
    pub fn unpack_of<'a>(
        &self,
        communicator: &CommunicatorDescription,
        packed: &[u8],
        position: &mut u64,
        room: impl Into<Destination<'a>>,
    ) -> Result<()> {
        // Each of them once, however many ranks there are.
        let known = |(descriptor, _)| Architecture::from_descriptor(descriptor).ok();
        let known: Option<Vec<_>> = communicator.architectures().map(known).collect();
        let representation = known.and_then(|known| packed::common(&known));
        let representation = representation.ok_or(ErrorKind::Unrecognised)?;
        packed::unpack(self.process(), packed, position, room.into(), &representation)
            .map_err(|error| self.alone().raise(error.at(|| self.alone().place("unpack_of"))))
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

/// A position in a buffer of `size` bytes, as an index of at most that.
pub(crate) fn start(position: u64, size: usize) -> Result<usize> {
    let start = usize::try_from(position).ok().filter(|start| *start <= size);
    let wrong = || {
        ErrorKind::PackArguments(format!(
            "position {position} lies past the end of a buffer of {size} bytes: give one within it"
        ))
    };
    Ok(start.ok_or_else(wrong)?)
}
