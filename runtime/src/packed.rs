//! Packing and unpacking in a communicator's representation, and in external representations
//! (MPI-5.0 sections 5.2 and 5.3).
//!
//! A packed buffer has no header, since a position may start above 0. Its representation is a
//! property of the communicator. If all members have the same representation, it is that one, and
//! packing only gathers bytes. Otherwise it is one that all of them know: little-endian, with a
//! `long` of 64 bits and a `long double` of 128. It holds every value of every member.

use std::panic::Location;

use shipable::{Architecture, packed};

use crate::communicator::Communicator;
use crate::error::{Error, ErrorKind, Result, conversion};
use crate::memory::Scope;
use crate::origin::{Destination, Elementwise, Origin};
use crate::process::Process;
use crate::rank::Rank;
use crate::types::Type;

/// The representation of packed buffers if the members' representations differ.
const CANONICAL: Architecture = Architecture::AARCH64;

impl Communicator {
    /// Packs data into `packed` from `position` on, and advances the position (MPI_Pack).
    ///
    /// Any member can unpack the bytes. They can be sent, put, or written to a file as bytes, as
    /// MPI_BYTE or MPI_PACKED.
    ///
    /// Data that was sent as MPI_PACKED can be received with its own type. Data that was sent with
    /// another type can be received as MPI_PACKED and then unpacked, if the sender has the
    /// representation of packed buffers. That is the members' representation if all have the same,
    /// and otherwise [`Architecture::AARCH64`].
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
    /// ARG for a position past the end of `packed`. TRUNCATE if the data doesn't fit after the
    /// position. BUFFER if the data lies outside its memory. In these cases nothing is packed.
    /// After an error, the position is unchanged.
    #[track_caller]
    #[doc(alias = "MPI_Pack")]
    pub fn pack<'a>(
        &self,
        data: impl Into<Origin<'a>>,
        packed: &mut [u8],
        position: &mut u64,
    ) -> Result<()> {
        let caller = Location::caller();
        pack(self.process(), data.into(), packed, position, self.packed_representation())
            .map_err(|error| self.raised(error, "pack", caller))
    }

    /// Unpacks data from `position` of `packed` on, and advances the position (MPI_Unpack).
    ///
    /// # Errors
    /// ARG for a position past the end of `packed`. TRUNCATE if too few bytes follow the position.
    /// BUFFER if the data would lie outside its memory. In these cases nothing is written.
    /// CONVERSION for a value that this rank's type can't hold; the items before it are written.
    /// After an error, the position is unchanged.
    #[track_caller]
    #[doc(alias = "MPI_Unpack")]
    pub fn unpack<'a>(
        &self,
        packed: &[u8],
        position: &mut u64,
        room: impl Into<Destination<'a>>,
    ) -> Result<()> {
        let caller = Location::caller();
        unpack(self.process(), packed, position, room.into(), self.packed_representation())
            .map_err(|error| self.raised(error, "unpack", caller))
    }

    /// The number of bytes of `count` elements in a packed buffer (MPI_Pack_size).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// assert_eq!(rank.world().pack_size(3, &rank.type_of::<f64>()?)?, 24);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// COUNT for a negative count. VALUE_TOO_LARGE if the number of bytes exceeds 64 bits.
    #[track_caller]
    #[doc(alias = "MPI_Pack_size")]
    pub fn pack_size(&self, count: i64, datatype: &Type) -> Result<u64> {
        let caller = Location::caller();
        pack_size(self.process(), count, datatype, self.packed_representation())
            .map_err(|error| self.raised(error, "pack_size", caller))
    }

    /// The representation of packed buffers.
    pub(crate) fn packed_representation(&self) -> &Architecture {
        self.foreign_packed().unwrap_or(&self.process().me().architecture)
    }

    /// The representation of packed buffers, unless they hold values as this machine's memory does.
    /// It is determined once, since members and their architectures never change.
    pub(crate) fn foreign_packed(&self) -> Option<&Architecture> {
        let packed = self.packed().get_or_init(|| {
            let mut engine = self.process().engine();
            let known = |&other: &u32| Some(engine.state().representation(other)?.0);
            let members: Vec<_> = self.everyone().0.processes().iter().filter_map(known).collect();
            let packed = common(&members).unwrap_or(CANONICAL);
            drop(engine);
            let me = self.process().me();
            // The memory of a rank that emulates another machine still is this machine's.
            let is_native = !me.emulated && packed.same_representation(&me.architecture);
            (!is_native).then_some(packed)
        });
        packed.as_ref()
    }
}

/// The representation of packed buffers for members of these architectures; `None` without members.
pub(crate) fn common(members: &[Architecture]) -> Option<Architecture> {
    let first = members.first()?;
    let alike = members.iter().all(|other| other.same_representation(first));
    Some(if alike { *first } else { CANONICAL })
}

/// External representations: `external32` of MPI, and `xdr` of RFC 4506.
impl Rank {
    /// Packs data in an external representation (MPI_Pack_external). See [`Communicator::pack`].
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
    /// UNSUPPORTED_DATAREP for an unknown representation. CONVERSION for a value that it can't
    /// hold, such as a `long` of more than 32 bits. Otherwise the errors of [`Communicator::pack`].
    #[track_caller]
    #[doc(alias = "MPI_Pack_external")]
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

    /// Unpacks data from an external representation (MPI_Unpack_external). See
    /// [`Communicator::unpack`].
    ///
    /// # Errors
    /// UNSUPPORTED_DATAREP for an unknown representation. Otherwise the errors of
    /// [`Communicator::unpack`].
    #[track_caller]
    #[doc(alias = "MPI_Unpack_external")]
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

    /// The number of bytes of `count` elements in an external representation
    /// (MPI_Pack_external_size).
    ///
    /// # Errors
    /// UNSUPPORTED_DATAREP for an unknown representation. Otherwise the errors of
    /// [`Communicator::pack_size`].
    #[track_caller]
    #[doc(alias = "MPI_Pack_external_size")]
    pub fn pack_external_size(&self, datarep: &str, count: i64, datatype: &Type) -> Result<u64> {
        self.external("pack_external_size", datarep, |process, representation| {
            pack_size(process, count, datatype, representation)
        })
    }

    /// Runs the body of a call on an external representation. Its errors go to the handler of
    /// MPI_COMM_SELF.
    #[track_caller]
    fn external<T>(
        &self,
        call: &'static str,
        datarep: &str,
        body: impl FnOnce(&Process, &Architecture) -> Result<T>,
    ) -> Result<T> {
        let alone = self.alone();
        let datarep = packed::datarep(datarep).map_err(Error::from);
        let outcome = datarep.and_then(|representation| body(alone.process(), &representation));
        let caller = Location::caller();
        outcome.map_err(|error| alone.raised(error, call, caller))
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
