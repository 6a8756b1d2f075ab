//! Entries of the outbox: a frame, or a stream that stops when the link is full and resumes at its
//! position.
//!
//! An entry holds no packed bytes but the place to pack them from, so a long stream takes no
//! memory.

use std::sync::Arc;

use longshore_transport::{Link, LinkError, Refused};
use shipable::SharedProgram;
use zeroize::Zeroizing;

use crate::bytes::Bytes;
use crate::engine::operation::{Due, Operation};
use crate::error::{Error, ErrorKind, conversion};
use crate::memory::Lease;
use crate::tap::{Direction, Tap};
use crate::wire::{Brief, Cut, Header, Kind};

/// An entry of an outbox.
pub(crate) struct Outgoing {
    head: Head,
    source: Source,
    length: u64,
    sent: u64,
    phase: Phase,
    purpose: Purpose,
}

/// The header of the opening frame.
enum Head {
    Long(Header),
    Short(Brief),
}

/// How far an entry has been sent.
enum Phase {
    /// Not at all.
    Waiting,
    /// The opening frame has been sent.
    Open,
    /// A value can't be sent. The stream ends here, with a `Cut` frame.
    Broken(Error),
}

/// Where a stream's bytes come from.
pub(crate) enum Source {
    /// The stream has no bytes.
    Empty,
    /// Packed bytes.
    Bytes(Arc<[u8]>),
    /// Packed bytes of a message, whose memory serves later messages.
    Kept(Arc<Bytes>),
    /// Bytes that are overwritten once they are sent.
    Secret(Zeroizing<Vec<u8>>),
    /// Packed bytes in a buffer that the target uses again.
    Fetched(Vec<u8>),
    /// Packed bytes that are stored in the entry itself.
    Inline(InlineBytes),
    /// Elements, which are packed as they are sent.
    Typed {
        /// From the elements' memory to the stream.
        program: SharedProgram,
        /// The number of elements.
        count: u64,
        /// Their memory.
        lease: Lease,
    },
    /// The sender has let go of the memory: the stream is cut.
    Abandoned,
}

/// Room for one or two elements, without an allocation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InlineBytes {
    bytes: [u8; InlineBytes::ROOM],
    len: usize,
}

impl InlineBytes {
    pub(crate) const ROOM: usize = 32;

    /// `len` zero bytes; `None` if there is no room for them.
    #[inline]
    pub(crate) fn zeroed(len: u64) -> Option<InlineBytes> {
        let len = usize::try_from(len).ok().filter(|len| *len <= InlineBytes::ROOM)?;
        Some(InlineBytes { bytes: [0; InlineBytes::ROOM], len })
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    #[inline]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.len]
    }
}

/// The operation or message to which a stream belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// No call waits for the stream.
    None,
    /// The stream is the data of this operation on a window.
    Operation(Kind, Operation),
    /// The stream is the data of the message of this number.
    Message(u64),
    /// The stream is the data of a peer's operation that notifies this rank once they are read.
    Notify(Due),
}

/// Bytes of the largest buffer that the target keeps for the next operation that fetches.
const KEPT: usize = 4 << 20;

/// The outcome of an attempt to send a frame.
pub(in crate::engine) enum Sent {
    /// The frame is sent, and more frames follow.
    More,
    /// The last frame is sent.
    Done,
    /// The last frame is sent, but the stream was cut at a value that can't be sent.
    Failed(Error),
    /// The link has no room now.
    Blocked,
    /// The link to the peer has failed.
    Gone(LinkError),
}

impl Outgoing {
    /// A stream of `header.length` bytes.
    pub(crate) fn new(header: Header, source: Source, purpose: Purpose) -> Outgoing {
        let length = if matches!(source, Source::Empty) { 0 } else { header.length };
        Outgoing {
            head: Head::Long(header),
            source,
            length,
            sent: 0,
            phase: Phase::Waiting,
            purpose,
        }
    }

    /// A frame without a stream. It keeps its place in the order of the queue.
    pub(crate) fn brief(brief: Brief) -> Outgoing {
        Outgoing {
            head: Head::Short(brief),
            source: Source::Empty,
            length: 0,
            sent: 0,
            phase: Phase::Waiting,
            purpose: Purpose::None,
        }
    }

    /// The entry, for another purpose.
    pub(in crate::engine) fn with_purpose(self, purpose: Purpose) -> Outgoing {
        Outgoing { purpose, ..self }
    }

    /// Whether the entry may change places with another such entry: a put or get, of which no frame
    /// is sent yet (MPI-5.0 section 12.7).
    pub(super) fn is_unordered(&self) -> bool {
        let operation = |header: &Header| matches!(header.kind, Kind::Put | Kind::Get);
        matches!(self.phase, Phase::Waiting)
            && matches!(&self.head, Head::Long(header) if operation(header))
    }

    /// The window of the entry's operation, or the context of its message.
    pub(in crate::engine) fn context(&self) -> u32 {
        match self.head {
            Head::Long(Header { context, .. }) | Head::Short(Brief { context, .. }) => context,
        }
    }

    pub(super) fn is_for(&self, purpose: Purpose) -> bool {
        self.purpose == purpose
    }

    /// Whether the entry is the data of an operation on a window.
    pub(super) fn is_on(&self, window: u32) -> bool {
        matches!(self.purpose, Purpose::Operation(_, operation) if operation.window == window)
    }

    /// The address of the stream's bytes, if they lie in one run of memory as they travel.
    pub(in crate::engine) fn address(&self) -> Option<u64> {
        let start = match &self.source {
            Source::Bytes(bytes) => bytes.as_ptr(),
            Source::Kept(bytes) => bytes.as_ptr(),
            Source::Typed { program, count, lease } => {
                lease.span().address(program.contiguous(*count)?).cast_const()
            }
            _ => return None,
        };
        Some(start.addr() as u64)
    }

    /// Lets go of the memory that the entry packs from. A stream of no bytes isn't cut: its opening
    /// frame is all of it.
    pub(in crate::engine) fn abandon(&mut self) {
        self.source = if self.length > 0 { Source::Abandoned } else { Source::Empty };
    }

    /// Gives the buffer of fetched bytes back for the next operation that fetches, unless `spare`
    /// is larger. Otherwise the system would map and unmap the pages of a large buffer each time.
    pub(in crate::engine) fn give_back(&mut self, spare: &mut Vec<u8>) {
        if let Source::Fetched(bytes) = &mut self.source {
            if (spare.capacity()..=KEPT).contains(&bytes.capacity()) {
                *spare = std::mem::take(bytes);
            }
        }
    }

    pub(in crate::engine) fn into_purpose(self) -> Purpose {
        self.purpose
    }

    /// Sends the next frame.
    pub(in crate::engine) fn send(
        &mut self,
        link: &mut dyn Link,
        peer: u32,
        tap: &mut Tap,
    ) -> Sent {
        if let Phase::Broken(error) = &mut self.phase {
            let why = match error.kind() {
                ErrorKind::Aborting { .. } => Cut::GivenUp,
                _ => Cut::Value,
            };
            let context = why as u32;
            let cut = Brief { kind: Kind::Cut, context, operation: 0, value: self.sent };
            return match send_brief(link, peer, &cut, tap) {
                Sent::Done => {
                    let error = std::mem::replace(error, ErrorKind::Finalized.into());
                    Sent::Failed(error)
                }
                other => other,
            };
        }
        let mut words = [0; Header::SIZE];
        let limit = link.frame_limit(peer);
        let header = self.header(&mut words, limit);
        let left = self.length - self.sent;
        let room = limit - header;
        let is_cut = self.length > room as u64 && self.source.is_scattered();
        let room = if is_cut { room.min(link.piece(peer)) } else { room };
        let piece = left.min(room as u64) as usize;
        let mut frame = match link.reserve(peer, header + piece) {
            Ok(frame) => frame,
            Err(Refused::WouldBlock) => return Sent::Blocked,
            Err(Refused::Failed(error)) => return Sent::Gone(error),
        };
        frame[..header].copy_from_slice(&words[..header]);
        match self.source.fill(self.sent, &mut frame[header..]) {
            Ok(()) => {
                tap.record(Direction::Sent, peer, &frame);
                let (Head::Long(Header { kind, .. }) | Head::Short(Brief { kind, .. })) = self.head;
                match kind.is_answer() && piece as u64 == self.length {
                    true => frame.commit_answer(),
                    false => frame.commit(),
                }
                self.sent += piece as u64;
                self.phase = Phase::Open;
                if self.sent == self.length { Sent::Done } else { Sent::More }
            }
            Err(error) => {
                // The opening frame is sent even so: the peer has to acknowledge the operation.
                if let (Phase::Waiting, Head::Long(opening)) = (&self.phase, &self.head) {
                    frame[..Header::SIZE].copy_from_slice(&opening.encode());
                    tap.record(Direction::Sent, peer, &frame[..Header::SIZE]);
                    frame.commit_part(Header::SIZE);
                }
                self.phase = Phase::Broken(error);
                Sent::More
            }
        }
    }

    /// Writes the header of the next frame, which has at most `limit` bytes. Returns the header's
    /// length.
    fn header(&self, words: &mut [u8; Header::SIZE], limit: usize) -> usize {
        let brief = match (&self.phase, &self.head) {
            (Phase::Waiting, Head::Long(header)) => {
                let size = header.whole_size();
                let whole = self.length.saturating_add(size as u64);
                // If a value can't be sent, a long header replaces the frame, so the frame must
                // have room for one.
                let is_sure = whole >= Header::SIZE as u64 || self.source.is_sure();
                let size = if is_sure && whole <= limit as u64 { size } else { Header::SIZE };
                header.encode_whole(&mut words[..size]);
                return size;
            }
            (Phase::Waiting, Head::Short(brief)) => *brief,
            _ => Brief { kind: Kind::More, context: 0, operation: 0, value: self.sent },
        };
        words[..Brief::SIZE].copy_from_slice(&brief.encode());
        Brief::SIZE
    }
}

impl Source {
    /// Whether the bytes lie in several runs of memory.
    fn is_scattered(&self) -> bool {
        matches!(self, Source::Typed { program, count, .. } if program.contiguous(*count).is_none())
    }

    /// Whether the bytes are packed already, so that no value can fail to convert.
    fn is_sure(&self) -> bool {
        !matches!(self, Source::Typed { .. } | Source::Abandoned)
    }

    /// The source with all its `length` bytes packed.
    pub(in crate::engine) fn packed(self, length: u64) -> Result<Source, Error> {
        if let Source::Bytes(_) | Source::Kept(_) = self {
            return Ok(self);
        }
        if let Some(mut inline) = InlineBytes::zeroed(length) {
            self.fill(0, inline.bytes_mut())?;
            return Ok(Source::Inline(inline));
        }
        let mut bytes: Arc<[u8]> = std::iter::repeat_n(0, length as usize).collect();
        if let Some(bytes) = Arc::get_mut(&mut bytes) {
            self.fill(0, bytes)?;
        }
        Ok(Source::Bytes(bytes))
    }

    /// Fills `out` with the stream's bytes from `position` on.
    pub(in crate::engine) fn fill(&self, position: u64, out: &mut [u8]) -> Result<(), Error> {
        let bytes: &[u8] = match self {
            Source::Empty => return Ok(()),
            Source::Abandoned => return Err(ErrorKind::Aborting { by: None }.into()),
            Source::Bytes(bytes) => bytes,
            Source::Kept(bytes) => bytes,
            Source::Secret(bytes) => bytes,
            Source::Fetched(bytes) => bytes,
            Source::Inline(bytes) => bytes.bytes(),
            Source::Typed { program, count, lease } => {
                return lease
                    .span()
                    .pack(program, *count, position, out)
                    .map(drop)
                    .map_err(conversion);
            }
        };
        let position = position as usize;
        out.copy_from_slice(&bytes[position..position + out.len()]);
        Ok(())
    }
}

/// Sends a frame without a stream.
pub(super) fn send_brief(link: &mut dyn Link, peer: u32, brief: &Brief, tap: &mut Tap) -> Sent {
    match link.reserve(peer, Brief::SIZE) {
        Ok(mut frame) => {
            frame.copy_from_slice(&brief.encode());
            tap.record(Direction::Sent, peer, &frame);
            match brief.kind.is_answer() {
                true => frame.commit_answer(),
                false => frame.commit(),
            }
            Sent::Done
        }
        Err(Refused::WouldBlock) => Sent::Blocked,
        Err(Refused::Failed(error)) => Sent::Gone(error),
    }
}
