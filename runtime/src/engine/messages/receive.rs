//! A receive: the memory that it fills, and its outcome.

use std::sync::Arc;

use longshore_transport::{Offer, PeerMemory};
use shipable::{Architecture, Partial, Program, SharedProgram};

use super::Data;
use super::matching::{Arrival, Fit};
use crate::bytes::Bytes;
use crate::check::messages::Told;
use crate::error::{Error, ErrorKind, Result, conversion};
use crate::memory::{Lease, Side, Span};
use crate::types::Compiled;

/// The destination of a received message.
pub(crate) enum Landing {
    /// Typed memory, of at most `count` elements. Data sent as MPI_PACKED are in the representation
    /// `packed`, or in that of the type.
    Typed { datatype: Arc<Compiled>, count: u64, lease: Lease, packed: Option<Box<Architecture>> },
    /// Typed memory of exactly the message's elements, about which sender and receiver have agreed
    /// before.
    Agreed { program: SharedProgram, count: u64, lease: Lease },
    /// A buffer of bytes, returned in the [`Delivery`].
    Bytes,
    /// Nowhere: the data are thrown away.
    Nothing,
}

/// The outcome of a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The sender's rank in the communicator.
    pub source: i32,
    /// The message's tag.
    pub tag: i32,
    /// The number of elements of the receive's type; [`UNDEFINED`](crate::UNDEFINED) if the message
    /// ends within one (`MPI_Get_count`).
    pub count: i64,
    /// The number of basic elements, two for each pair (`MPI_Get_elements`).
    pub elements: i64,
    /// The length of the message in bytes, in the representation of its sender
    /// ([`Communicator::representation`](crate::Communicator::representation)).
    pub bytes: u64,
}

/// A received message. Its source is a rank of the job.
pub(crate) struct Delivery {
    pub status: Status,
    /// The hash of the data's type signature, as the sender gave it.
    pub signature: u128,
    /// The data, if the landing was [`Landing::Bytes`]. Apart, so that others are short to move.
    pub bytes: Option<Box<Bytes>>,
    /// Under `--check`, what the sender has told of the message.
    pub known: Option<Box<Told>>,
}

/// A receive whose message is arriving.
pub(in crate::engine) struct Receiving {
    pub(super) number: u64,
    pub(super) context: u32,
    status: Status,
    signature: u128,
    buffer: Buffer,
    known: Option<Box<Told>>,
    error: Option<Error>,
}

enum Buffer {
    Typed { program: SharedProgram, count: u64, lease: Lease, partial: Partial },
    Bytes(Bytes),
    Nothing,
}

/// The most bytes that are allocated for a message before its data arrive.
const ROOM: u64 = 1 << 20;

/// The least average length of the runs into which the system copies a message. Each run is a step
/// of its own for the system; shorter runs are unpacked sooner.
const RUN: u64 = 512;

impl Landing {
    /// Checks a message against the landing. Its data travel in the representation `stream`.
    #[inline]
    fn open(self, arrival: &Arrival, stream: &Architecture) -> Result<(Status, Buffer)> {
        let mut status = Status::of(arrival, 0);
        let buffer = match self {
            Landing::Bytes => {
                status.count = arrival.length as i64;
                Buffer::Bytes(Bytes::default())
            }
            Landing::Nothing => Buffer::Nothing,
            Landing::Agreed { program, count, lease } => {
                status = agreed(&program, count, arrival)?;
                Buffer::Typed { program, count, lease, partial: Partial::default() }
            }
            Landing::Typed { datatype, count: room, lease, packed } => {
                let fit = fit(arrival, (&datatype, room), stream, packed.as_deref())?;
                (status.count, status.elements) = (fit.count, fit.elements);
                let count = fit.touched;
                let program = fit.program.unwrap_or_else(|| datatype.shared_native());
                Buffer::Typed { program, count, lease, partial: Partial::default() }
            }
        };
        Ok((status, buffer))
    }

    /// Receives a message that is all here.
    ///
    /// # Errors
    /// The signatures differ, the message is too long, or a value doesn't fit.
    #[inline]
    pub(super) fn receive(
        &self,
        arrival: &Arrival,
        known: Option<Box<Told>>,
        stream: &Architecture,
        message: Data<'_>,
    ) -> Result<Delivery> {
        let taken = match self {
            Landing::Typed { datatype, count, lease, packed } => {
                let room = (&**datatype, *count, lease.span());
                let status = take(room, packed.as_deref(), arrival, stream, &message);
                status.map(|status| (status, None))
            }
            Landing::Agreed { program, count, lease } => {
                let status = agreed(program, *count, arrival);
                let taken = status.and_then(|status| {
                    let mut partial = Partial::default();
                    let taken = lease.span().unpack(program, *count, 0, &message, &mut partial);
                    taken.map(|_| status).map_err(conversion)
                });
                taken.map(|status| (status, None))
            }
            Landing::Bytes => {
                let status = Status::of(arrival, arrival.length as i64);
                Ok((status, Some(Box::new(message.into()))))
            }
            Landing::Nothing => Ok((Status::of(arrival, 0), None)),
        };
        match taken {
            Ok((status, bytes)) => {
                Ok(Delivery { status, signature: arrival.signature, bytes, known })
            }
            Err(error) => Err(refused(error, arrival, known)),
        }
    }
}

impl Status {
    /// The status of a message of so many elements, whose basic elements aren't counted.
    #[inline]
    fn of(arrival: &Arrival, count: i64) -> Status {
        let (source, tag, bytes) = (arrival.peer as i32, arrival.tag, arrival.length);
        Status { source, tag, count, elements: 0, bytes }
    }
}

/// Checks a message against the elements on which sender and receiver have agreed.
fn agreed(program: &Program, count: u64, arrival: &Arrival) -> Result<Status> {
    match program.stream_length(count)? == arrival.length {
        true => Ok(Status::of(arrival, count as i64)),
        false => Err(ErrorKind::Collective.into()),
    }
}

/// The error of a receive that can't take its message, with that message.
#[cold]
fn refused(error: Error, arrival: &Arrival, known: Option<Box<Told>>) -> Error {
    let sent = known.and_then(|told| told.send).map(|send| Box::from(&*send.site));
    error.of_message(arrival.peer, arrival.tag).sent_from(sent)
}

/// One run of memory for elements of one type.
#[derive(Clone, Copy)]
pub(super) struct Room {
    pub bytes: Span,
    /// The number of its elements.
    pub count: u64,
    /// The number of basic elements of an element.
    pub items: u64,
    /// The hash of the signature of all elements, if a message has to have it. Otherwise the
    /// messages match that match by length.
    pub signature: Option<u128>,
}

impl Room {
    /// The room for `count` elements of a type, if that is one run.
    #[inline]
    pub(super) fn of(datatype: &Compiled, count: u64, memory: Span) -> Option<Room> {
        let native = datatype.native();
        let length = native.stream_length(count).ok()?;
        let bytes = memory.part_at(native.contiguous(count)?, length)?;
        Some(Room { bytes, count, items: datatype.items(), signature: None })
    }

    /// Copies the data of a message; see [`Direct::take`](super::direct::Direct::take).
    #[inline]
    pub(super) fn take(&self, arrival: &Arrival, data: &[u8]) -> Option<Status> {
        let Room { mut bytes, count: room, items, signature } = *self;
        let (length, len) = (arrival.length, bytes.len());
        let matches = match signature {
            None => arrival.is_alike(),
            // A shorter message has another signature.
            Some(signature) => arrival.is_native && arrival.hash() == signature && length == len,
        };
        if !matches || length > len || data.len() as u64 != length {
            return None;
        }
        // Mostly the message fills the room, and then nothing is divided.
        let count = match length == len {
            true => room,
            false => {
                length.checked_div(len / room).filter(|count| count * (len / room) == length)?
            }
        };
        bytes.bytes_at_mut(0, length)?.copy_from_slice(data);
        let elements = items.checked_mul(count)? as i64;
        Some(Status { elements, ..Status::of(arrival, count as i64) })
    }
}

/// Takes a message that is all here into elements of a type, of which there is room for some.
#[inline]
fn take(
    (datatype, room, span): (&Compiled, u64, Span),
    packed: Option<&Architecture>,
    arrival: &Arrival,
    stream: &Architecture,
    message: &[u8],
) -> Result<Status> {
    let run = packed.is_none().then(|| Room::of(datatype, room, span)).flatten();
    if let Some(status) = run.and_then(|run| run.take(arrival, message)) {
        return Ok(status);
    }
    let fit = fit(arrival, (datatype, room), stream, packed)?;
    let (program, mut partial) = (fit.program(datatype), Partial::default());
    let taken = span.unpack(program, fit.touched, 0, message, &mut partial);
    taken.map_err(conversion)?;
    Ok(Status { elements: fit.elements, ..Status::of(arrival, fit.count) })
}

/// Checks a message against a type and the number of its elements for which there is room.
#[inline]
fn fit(
    arrival: &Arrival,
    (datatype, room): (&Compiled, u64),
    stream: &Architecture,
    packed: Option<&Architecture>,
) -> Result<Fit> {
    let fit = arrival.fit(datatype, stream, packed)?;
    let (length, room) = (arrival.length, fit.program(datatype).stream_length(room)?);
    if length > room { Err(ErrorKind::Truncate { length, room }.into()) } else { Ok(fit) }
}

impl Buffer {
    /// Takes in the data from `position` on.
    #[inline]
    fn take(&mut self, position: u64, data: &[u8]) -> Result<()> {
        match self {
            Buffer::Bytes(bytes) => bytes.extend(data),
            Buffer::Nothing => Ok(()),
            Buffer::Typed { program, count, lease, partial } => {
                let taken = lease.span().unpack(program, *count, position, data, partial);
                taken.map(drop).map_err(conversion)
            }
        }
    }
}

impl Receiving {
    pub(in crate::engine) fn is_for(&self, number: u64) -> bool {
        self.number == number
    }

    /// Checks a message against its landing. Its data travel in the representation `stream`.
    ///
    /// # Errors
    /// The signatures differ, or the message is too long.
    pub(super) fn new(
        number: u64,
        landing: Landing,
        arrival: &Arrival,
        known: Option<Box<Told>>,
        stream: &Architecture,
    ) -> Result<Receiving> {
        let (status, buffer) = match landing.open(arrival, stream) {
            Ok(opened) => opened,
            Err(error) => return Err(refused(error, arrival, known)),
        };
        let signature = arrival.signature;
        let context = arrival.context;
        Ok(Receiving { number, context, status, signature, buffer, known, error: None })
    }

    /// Whether the receive needs no data.
    pub(super) fn needs_nothing(&self) -> bool {
        matches!(self.buffer, Buffer::Nothing)
    }

    /// Copies the data of an announced message from the memory that its sender offers. Returns
    /// false if that isn't possible, and may have overwritten the receive's memory then.
    pub(super) fn pull(&mut self, memory: &PeerMemory, offer: &Offer) -> bool {
        let (peer, length) = (self.status.source as u32, self.status.bytes);
        match &mut self.buffer {
            Buffer::Typed { program, count, lease, .. } => {
                // Not of a message that ends within an element.
                let is_whole = program.stream_length(*count) == Ok(length);
                if !program.is_all_copy() || !is_whole {
                    return false;
                }
                let most = usize::try_from(length / RUN).unwrap_or(usize::MAX);
                let Some(runs) = program.runs(*count, most) else { return false };
                Side { span: lease.span(), runs: &runs }.take(memory, peer, offer, 0)
            }
            Buffer::Bytes(bytes) => {
                *bytes = Bytes::default();
                let mut position = 0;
                while position < length {
                    let piece = (length - position).min(ROOM);
                    let Ok(room) = bytes.extend_stale(piece as usize) else { return false };
                    let is_read = Span::with_bytes(room, |span| {
                        Side { span, runs: &[(0, piece)] }.take(memory, peer, offer, position)
                    });
                    if !is_read {
                        return false;
                    }
                    position += piece;
                }
                true
            }
            Buffer::Nothing => true,
        }
    }

    /// Allocates the buffer of an announced message. The buffer of a long message grows as the data
    /// arrive.
    pub(super) fn reserve(&mut self, length: u64) {
        if let Buffer::Bytes(bytes) = &mut self.buffer {
            // Without memory, the first piece fails.
            *bytes = Bytes::with_room(length.min(ROOM) as usize).unwrap_or_default();
        }
    }

    /// Takes in the data from `position` on. After the first error it ignores the rest.
    pub(in crate::engine) fn take(&mut self, position: u64, data: &[u8]) {
        if self.error.is_none() {
            self.error = self.buffer.take(position, data).err();
        }
    }

    /// The outcome of the receive. `cut` is the error if the message ended early.
    pub(super) fn into_outcome(self, cut: Option<Error>) -> Result<Delivery> {
        let Receiving { status, signature, buffer, known, error, .. } = self;
        let bytes = match buffer {
            Buffer::Bytes(bytes) => Some(Box::new(bytes)),
            Buffer::Typed { .. } | Buffer::Nothing => None,
        };
        match error.or(cut) {
            Some(error) => Err(error.of_message(status.source as u32, status.tag)),
            None => Ok(Delivery { status, signature, bytes, known }),
        }
    }
}
