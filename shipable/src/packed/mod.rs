//! Packed buffers: MPI_Pack, MPI_Unpack and their external forms (MPI-5.0 sections 5.2 and 5.3).
//!
//! A packed buffer has no header, so both sides must agree on its representation. It is any
//! [`Architecture`]: a machine's own; [`Architecture::EXTERNAL32`], MPI's canonical one; or
//! [`Architecture::XDR`].
//!
//! A position is the offset in the buffer at which a call starts; the call moves it to its end.
//! Several calls may pack what other calls unpack in other portions, as long as the signatures
//! match.
//!
//! Bytes of `MPI_BYTE` and `MPI_PACKED` stay unchanged. A packed buffer is sent or put with the
//! type `MPI_PACKED`.
//!
//! The module `count` has the number of elements in the bytes of a message (MPI_Get_count,
//! MPI_Get_elements). The crate's module `xdr` has the padding between XDR's units of four bytes
//! and single bytes.

mod count;

use crate::arch::Architecture;
use crate::committed::{Committed, SharedProgram};
use crate::error::{Class, Error, Result};
use crate::memory::{View, ViewMut};
use crate::program::{Partial, Pool, Program};

/// The data representation with this name: `external32`, which MPI defines for `MPI_Pack_external`,
/// or Longshore's `xdr`.
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
    /// The bytes that `count` elements take in a buffer of `representation` (`MPI_Pack_size`,
    /// `MPI_Pack_external_size`).
    ///
    /// If several calls pack from position 0 on, they need at most the sum of their sizes.
    ///
    /// # Errors
    ///
    /// [`Error::Overflow`] if the size doesn't fit 64 bits; [`Error::NoSuchKind`] for a Fortran
    /// type that the representation lacks.
    pub fn pack_size(&self, count: u64, representation: &Architecture) -> Result<u64> {
        match self.units(representation)? {
            Some(units) => units.size(count),
            None => self.program(representation)?.stream_length(count),
        }
    }

    /// Packs `count` elements into `packed` at `position`, and moves the position past them
    /// (`MPI_Pack`, or `MPI_Pack_external` for an external representation).
    ///
    /// Displacement 0 of `memory` is MPI's buffer address.
    ///
    /// ```
    /// use shipable::{Architecture, Committed, Datatype, View, ViewMut};
    ///
    /// let every_other = Datatype::vector(2, 1, 2, &Datatype::int())?;
    /// let every_other = Committed::new(&every_other, &Architecture::X86_64)?;
    /// let external32 = Architecture::EXTERNAL32;
    /// let ints: Vec<u8> = [1i32, 2, 3, 4].map(i32::to_le_bytes).concat();
    /// let (mut packed, mut position) = ([0; 20], 4);
    /// every_other.pack(View::new(&ints), 1, &mut packed, &mut position, &external32)?;
    /// assert_eq!((&packed[..12], position), (&[0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 3][..], 12));
    ///
    /// // A big-endian machine unpacks two contiguous ints.
    /// let row = Committed::new(&Datatype::int(), &Architecture::S390X)?;
    /// let mut back = [0; 8];
    /// position = 4;
    /// row.unpack(&packed, &mut position, ViewMut::new(&mut back), 2, &external32)?;
    /// assert_eq!(back, [0, 0, 0, 1, 0, 0, 0, 3]);
    /// # Ok::<(), shipable::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// - ARG for a position past the buffer's end, TRUNCATE if the elements don't fit between the
    ///   position and the end, BUFFER if they aren't inside `memory`. Nothing is packed then.
    /// - CONVERSION for a value that the representation can't hold. The items before it are packed.
    /// - [`Error::Overflow`] and [`Error::NoSuchKind`], as [`Committed::pack_size`] returns them.
    ///
    /// On an error, the position doesn't move.
    pub fn pack(
        &self,
        memory: View<'_>,
        count: u64,
        packed: &mut [u8],
        position: &mut u64,
        representation: &Architecture,
    ) -> Result<()> {
        self.pack_in(None, memory, count, packed, position, representation)
    }

    /// The [`pack`](Committed::pack) of the same arguments. A long transfer is divided among the
    /// threads of a pool, except in XDR.
    ///
    /// # Errors
    ///
    /// Those of [`pack`](Committed::pack).
    pub fn pack_in(
        &self,
        pool: Option<&dyn Pool>,
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
                let out = &mut packed[*position as usize..end as usize];
                match pool {
                    Some(pool) => program.pack_in(pool, count, memory, 0, out)?,
                    None => program.pack(count, memory, 0, out)?,
                };
                end
            }
        };
        *position = end;
        Ok(())
    }

    /// Unpacks `count` elements from `packed` at `position`, and moves the position past them
    /// (`MPI_Unpack`, `MPI_Unpack_external`).
    ///
    /// # Errors
    ///
    /// - ARG for a position past the buffer's end, TRUNCATE if fewer bytes than `count` elements
    ///   follow the position, BUFFER if the elements aren't inside `memory`. Nothing is written
    ///   then.
    /// - CONVERSION for a value that the memory's representation can't hold. The items before it
    ///   are written.
    /// - [`Error::Overflow`] and [`Error::NoSuchKind`], as [`Committed::pack_size`] returns them.
    ///
    /// On an error, the position doesn't move.
    pub fn unpack(
        &self,
        packed: &[u8],
        position: &mut u64,
        memory: ViewMut<'_>,
        count: u64,
        representation: &Architecture,
    ) -> Result<()> {
        self.unpack_in(None, packed, position, memory, count, representation)
    }

    /// The [`unpack`](Committed::unpack) of the same arguments. A long transfer is divided among
    /// the threads of a pool, except in XDR.
    ///
    /// # Errors
    ///
    /// Those of [`unpack`](Committed::unpack).
    pub fn unpack_in(
        &self,
        pool: Option<&dyn Pool>,
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
                let partial = &mut Partial::default();
                match pool {
                    Some(pool) => program.unpack_in(pool, count, memory, 0, input, partial)?,
                    None => program.unpack(count, memory, 0, input, partial)?,
                }
                end
            }
        };
        *position = end;
        Ok(())
    }

    /// The program for a representation. The memory's own representation needs no lock.
    fn made_for<'p>(
        &'p self,
        representation: &Architecture,
        made: &'p mut Option<SharedProgram>,
    ) -> Result<&'p Program> {
        match self.architecture().same_representation(representation) {
            true => Ok(self.native()),
            false => Ok(made.insert(self.program(representation)?)),
        }
    }
}

/// The room that a call has in its packed buffer.
struct Room {
    call: &'static str,
    length: usize,
    count: u64,
}

impl Room {
    /// The position `bytes` after `position`, if it is inside the buffer.
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
