//! MPI_Pack and MPI_Unpack of a communicator, and of external representations (MPI-5.0 sections 5.2 and 5.3).
//!
//! A packed buffer has no header, since a position may start above 0: its representation is the communicator's. Where all
//! members have one it is theirs, and packing gathers and nothing else. Where they differ it is one that all of them know,
//! little-endian with a `long` of 64 bits and a long double of 128, and every value of any member survives in it.

use shipable::{Architecture, packed};

use crate::communicator::Communicator;
use crate::error::{Error, ErrorKind, Result, conversion};
use crate::memory::Scope;
use crate::origin::{Destination, Elementwise, Origin};
use crate::process::Process;
use crate::rank::Rank;
use crate::types::Type;

/// What a communicator of unlike members packs in.
const CANONICAL: Architecture = Architecture::AARCH64;

impl Communicator {
    /// Packs data to `packed` from `position` on, and moves the position past them (`MPI_Pack`).
    ///
    /// Any member can unpack the bytes. They are sent, put or written to a file as bytes, of type MPI_BYTE or MPI_PACKED. What was
    /// sent as MPI_PACKED can also be received as what it is; and what was sent as anything else received as MPI_PACKED, to be
    /// unpacked, from a rank whose representation is the communicator's.
    ///
    /// ```
    /// let rank = longshore::init()?;
    /// let world = rank.world();
    /// let (mut packed, mut position) = ([0; 100], 0);
    /// world.pack(&[3i32], &mut packed, &mut position)?;
    /// world.pack(&[0.5, 1.5, 2.5], &mut packed, &mut position)?;
    /// let (mut count, mut values) = ([0i32], [0.0; 3]);
    /// position = 0;
    /// world.unpack(&packed, &mut position, &mut count)?;
    /// world.unpack(&packed, &mut position, &mut values[..count[0] as usize])?;
    /// assert_eq!(values, [0.5, 1.5, 2.5]);
    /// rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// ARG for a position past the end of `packed`, TRUNCATE where there is no room behind it, BUFFER where the data don't lie in
    /// their memory: nothing is packed then. The position stays where it was.
    pub fn pack<'a>(
        &self,
        data: impl Into<Origin<'a>>,
        packed: &mut [u8],
        position: &mut u64,
    ) -> Result<()> {
        pack(self.process(), data.into(), packed, position, self.packed_representation())
            .map_err(|error| self.raise(error.at(|| self.place("pack"))))
    }

    /// Unpacks from `position` of `packed` on, and moves the position past what was unpacked (`MPI_Unpack`).
    ///
    /// # Errors
    /// ARG for a position past the end of `packed`, TRUNCATE where too few bytes lie behind it, BUFFER where the room isn't
    /// there: nothing is written then. CONVERSION for a value that this rank's representation can't hold; what lies before it
    /// is written. The position stays where it was.
    pub fn unpack<'a>(
        &self,
        packed: &[u8],
        position: &mut u64,
        room: impl Into<Destination<'a>>,
    ) -> Result<()> {
        unpack(self.process(), packed, position, room.into(), self.packed_representation())
            .map_err(|error| self.raise(error.at(|| self.place("unpack"))))
    }

    /// Bytes that `count` elements take in a packed buffer (`MPI_Pack_size`).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// assert_eq!(rank.world().pack_size(3, &rank.type_of::<f64>()?)?, 24);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// COUNT for a negative count, VALUE_TOO_LARGE for more bytes than 64 bits count.
    pub fn pack_size(&self, count: i64, datatype: &Type) -> Result<u64> {
        pack_size(self.process(), count, datatype, self.packed_representation())
            .map_err(|error| self.raise(error.at(|| self.place("pack_size"))))
    }

    /// The representation that packed buffers have: found once, since members and their architectures never change.
    pub(crate) fn packed_representation(&self) -> &Architecture {
        self.packed().get_or_init(|| {
            let mut engine = self.process().engine();
            let known = |&other: &u32| Some(engine.state().representation(other)?.0);
            let members: Vec<_> = self.group().processes().iter().filter_map(known).collect();
            common(&members).unwrap_or(CANONICAL)
        })
    }
}

/// What members of these architectures pack in; none without members.
pub(crate) fn common(members: &[Architecture]) -> Option<Architecture> {
    let first = members.first()?;
    let alike = members.iter().all(|other| other.same_representation(first));
    Some(if alike { *first } else { CANONICAL })
}

/// The external representations: `external32`, which MPI defines, and `xdr`, RFC 4506's.
impl Rank {
    /// As [`Communicator::pack`], in an external representation (`MPI_Pack_external`).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let double = rank.type_of::<f64>()?;
    /// let mut packed = vec![0; rank.pack_external_size("external32", 2, &double)? as usize];
    /// rank.pack_external("external32", &[1.5, 2.5], &mut packed, &mut 0)?;
    /// assert_eq!(packed[..2], [0x3f, 0xf8]); // big-endian on every machine
    /// let mut values = [0.0; 2];
    /// rank.unpack_external("external32", &packed, &mut 0, &mut values)?;
    /// assert_eq!(values, [1.5, 2.5]);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Communicator::pack`]; UNSUPPORTED_DATAREP for another representation, CONVERSION for a value that it can't hold, such
    /// as a `long` of more than 32 bits.
    pub fn pack_external<'a>(
        &self,
        datarep: &str,
        data: impl Into<Origin<'a>>,
        packed: &mut [u8],
        position: &mut u64,
    ) -> Result<()> {
        self.external("pack_external", datarep, |process, representation| {
            pack(process, data.into(), packed, position, representation)
        })
    }

    /// As [`Communicator::unpack`], from an external representation (`MPI_Unpack_external`).
    ///
    /// # Errors
    /// As [`Communicator::unpack`]; UNSUPPORTED_DATAREP for another representation.
    pub fn unpack_external<'a>(
        &self,
        datarep: &str,
        packed: &[u8],
        position: &mut u64,
        room: impl Into<Destination<'a>>,
    ) -> Result<()> {
        self.external("unpack_external", datarep, |process, representation| {
            unpack(process, packed, position, room.into(), representation)
        })
    }

    /// As [`Communicator::pack_size`], in an external representation (`MPI_Pack_external_size`).
    ///
    /// # Errors
    /// As [`Communicator::pack_size`]; UNSUPPORTED_DATAREP for another representation.
    pub fn pack_external_size(&self, datarep: &str, count: i64, datatype: &Type) -> Result<u64> {
        self.external("pack_external_size", datarep, |process, representation| {
            pack_size(process, count, datatype, representation)
        })
    }

    /// A call about an external representation.
    fn external<T>(
        &self,
        call: &'static str,
        datarep: &str,
        body: impl FnOnce(&Process, &Architecture) -> Result<T>,
    ) -> Result<T> {
        let alone = self.alone();
        let datarep = packed::datarep(datarep).map_err(Error::from);
        let outcome = datarep.and_then(|representation| body(alone.process(), &representation));
        outcome.map_err(|error| alone.raise(error.at(|| alone.place(call))))
    }
}

fn pack(
    process: &Process,
    data: Origin<'_>,
    packed: &mut [u8],
    position: &mut u64,
    representation: &Architecture,
) -> Result<()> {
    process.ready()?;
    Scope::with(|scope| {
        let Elementwise { datatype, count, span } =
            data.what.resolve(process, scope.lend(data.loan))?;
        span.pack_to(datatype.committed(), count, packed, position, representation)
            .map_err(conversion)
    })
}

pub(crate) fn unpack(
    process: &Process,
    packed: &[u8],
    position: &mut u64,
    room: Destination<'_>,
    representation: &Architecture,
) -> Result<()> {
    process.ready()?;
    Scope::with(|scope| {
        let elements = room.what.resolve(process, scope.lend_mut(room.loan))?;
        elements.check_disjoint()?;
        let Elementwise { datatype, count, span } = elements;
        span.unpack_from(datatype.committed(), count, packed, position, representation)
            .map_err(conversion)
    })
}

fn pack_size(
    process: &Process,
    count: i64,
    datatype: &Type,
    representation: &Architecture,
) -> Result<u64> {
    process.ready()?;
    let count = u64::try_from(count).map_err(|_| Error::from(ErrorKind::Count(count)))?;
    Ok(datatype.compiled().committed().pack_size(count, representation)?)
}
