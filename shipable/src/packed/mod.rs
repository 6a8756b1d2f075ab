//! Packed buffers: MPI_Pack, MPI_Unpack and their external forms (MPI-5.0 sections 5.2 and 5.3).
//!
//! A packed buffer has no header. Whoever packs and unpacks agrees on its representation, any [`Architecture`]: a machine's
//! own, or one that both ends know, such as [`Architecture::EXTERNAL32`], MPI's canonical one, or [`Architecture::XDR`]. A
//! position is where in the buffer a call starts, and where it has ended afterwards; what several calls packed, others unpack,
//! divided as they like, as long as the signatures match.
//!
//! Bytes of MPI_BYTE and MPI_PACKED stay as they are. What was packed is itself of type MPI_PACKED where it is sent or put.
//!
//! - `xdr`: where XDR's units of four bytes lie beside single bytes;
//! - `count`: how many elements the bytes of a message are (MPI_Get_count, MPI_Get_elements).

mod count;
mod xdr;

use std::sync::Arc;

use crate::arch::Architecture;
use crate::committed::Committed;
use crate::error::{Class, Error, Result};
use crate::memory::{View, ViewMut};
use crate::program::{Partial, Program};

pub(crate) use xdr::Units;

/// The representation that MPI names in `MPI_Pack_external`: `external32`; or `xdr`, this library's own.
///
/// ```
/// use shipable::{Architecture, Class, packed};
/// assert_eq!(packed::datarep("external32")?, Architecture::EXTERNAL32);
/// assert_eq!(packed::datarep("native").unwrap_err().class(), Class::UnsupportedDatarep);
/// # Ok::<(), shipable::Error>(())
/// ```
///
/// # Errors
///
/// UNSUPPORTED_DATAREP for any other name.
pub fn datarep(name: &str) -> Result<Architecture> {
    match name {
        "external32" => Ok(Architecture::EXTERNAL32),
        "xdr" => Ok(Architecture::XDR),
        _ => Err(Error::Argument {
            call: "datarep",
            class: Class::UnsupportedDatarep,
            problem: format!("no data representation is called `{name}`: use external32 or xdr"),
        }),
    }
}

impl Committed {
    /// Bytes that `count` elements take in a buffer of `representation` (`MPI_Pack_size`, `MPI_Pack_external_size`).
    ///
    /// What several calls pack from position 0 on takes no more than the sum of their sizes.
    ///
    /// # Errors
    ///
    /// [`Error::Overflow`] for more than 64 bits count; [`Error::NoSuchKind`] for a Fortran type that the representation lacks.
    pub fn pack_size(&self, count: u64, representation: &Architecture) -> Result<u64> {
        match self.units(representation)? {
            Some(units) => units.size(count),
            None => self.program(representation)?.stream_length(count),
        }
    }

    /// Packs `count` elements to `packed` from `position` on, and moves the position past them (`MPI_Pack`, and
    /// `MPI_Pack_external` where `representation` is an external one).
    ///
    /// `memory`'s displacement 0 is the address that MPI is given.
    ///
    /// ```
    /// use shipable::{Architecture, Committed, Datatype, View, ViewMut};
    ///
    /// let every_other = Committed::new(&Datatype::vector(2, 1, 2, &Datatype::int())?, &Architecture::X86_64)?;
    /// let ints: Vec<u8> = [1i32, 2, 3, 4].map(i32::to_le_bytes).concat();
    /// let (mut packed, mut position) = ([0; 20], 4);
    /// every_other.pack(View::new(&ints), 1, &mut packed, &mut position, &Architecture::EXTERNAL32)?;
    /// assert_eq!((&packed[..12], position), (&[0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 3][..], 12));
    ///
    /// // Elsewhere, as two ints in a row.
    /// let row = Committed::new(&Datatype::int(), &Architecture::S390X)?;
    /// let mut back = [0; 8];
    /// position = 4;
    /// row.unpack(&packed, &mut position, ViewMut::new(&mut back), 2, &Architecture::EXTERNAL32)?;
    /// assert_eq!(back, [0, 0, 0, 1, 0, 0, 0, 3]);
    /// # Ok::<(), shipable::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// ARG for a position past the buffer's end; TRUNCATE where the elements don't fit in behind it; BUFFER where they don't
    /// lie in `memory`: nothing is packed then. CONVERSION for a value that the representation can't hold; what lies before
    /// it is packed. The position stays where it was. And as [`Committed::pack_size`].
    pub fn pack(
        &self,
        memory: View<'_>,
        count: u64,
        packed: &mut [u8],
        position: &mut u64,
        representation: &Architecture,
    ) -> Result<()> {
        let room = Room { call: "pack", length: packed.len(), count };
        let mut made = None;
        let program = self.made_for(representation, &mut made)?;
        let end = match self.units(representation)? {
            Some(units) => {
                let end = room.end(*position, units.length(*position, count)?)?;
                units.pack((self.form(), program), memory, count, packed, *position)?;
                end
            }
            None => {
                let end = room.end(*position, program.stream_length(count)?)?;
                program.pack(count, memory, 0, &mut packed[*position as usize..end as usize])?;
                end
            }
        };
        *position = end;
        Ok(())
    }

    /// Unpacks `count` elements from `packed` from `position` on, and moves the position past them (`MPI_Unpack`,
    /// `MPI_Unpack_external`).
    ///
    /// # Errors
    ///
    /// ARG for a position past the buffer's end; TRUNCATE where fewer bytes than `count` elements lie behind it; BUFFER where
    /// the elements don't lie in `memory`: nothing is written then. CONVERSION for a value that the memory can't hold; what
    /// lies before it is written. The position stays where it was. And as [`Committed::pack_size`].
    pub fn unpack(
        &self,
        packed: &[u8],
        position: &mut u64,
        memory: ViewMut<'_>,
        count: u64,
        representation: &Architecture,
    ) -> Result<()> {
        let room = Room { call: "unpack", length: packed.len(), count };
        let mut made = None;
        let program = self.made_for(representation, &mut made)?;
        let end = match self.units(representation)? {
            Some(units) => {
                let end = room.end(*position, units.length(*position, count)?)?;
                units.unpack((self.form(), program), packed, *position, memory, count)?;
                end
            }
            None => {
                let end = room.end(*position, program.stream_length(count)?)?;
                let input = &packed[*position as usize..end as usize];
                program.unpack(count, memory, 0, input, &mut Partial::default())?;
                end
            }
        };
        *position = end;
        Ok(())
    }

    /// The program for a representation, without a lock where it is the memory's own.
    fn made_for<'p>(
        &'p self,
        representation: &Architecture,
        made: &'p mut Option<Arc<Program>>,
    ) -> Result<&'p Program> {
        match self.architecture().same_representation(representation) {
            true => Ok(self.native()),
            false => Ok(made.insert(self.program(representation)?)),
        }
    }
}

/// A packed buffer of a call.
struct Room {
    call: &'static str,
    length: usize,
    count: u64,
}

impl Room {
    /// The position after so many bytes, if they lie within the buffer.
    fn end(&self, position: u64, bytes: u64) -> Result<u64> {
        let Room { call, length, count } = *self;
        let Some(left) = (length as u64).checked_sub(position) else {
            let problem = format!(
                "position {position} lies past the buffer's {length} bytes: it counts bytes from the buffer's start"
            );
            return Err(Error::Argument { call, class: Class::Arg, problem });
        };
        if bytes > left {
            let problem = format!(
                "{count} elements take {bytes} bytes at position {position}, of which the buffer of {length} has {left}"
            );
            return Err(Error::Argument { call, class: Class::Truncate, problem });
        }
        Ok(position + bytes)
    }
}
