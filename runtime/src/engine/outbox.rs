//! What waits to be sent: streams that stop when a link is full and resume at their offset.

use std::sync::Arc;

use longshore_transport::{Link, LinkError, Refused};
use shipable::Program;

use super::Operation;
use super::exposure::Keep;
use crate::error::{Error, ErrorKind, conversion};
use crate::memory::Span;
use crate::tap::{Direction, Tap};
use crate::wire::{Brief, Cut, Header, Kind};

/// An entry of an outbox.
pub(crate) struct Outgoing {
    head: Head,
    source: Source,
    length: u64,
    sent: u64,
    headway: Headway,
    purpose: Purpose,
}

enum Head {
    Long(Header),
    Short(Brief),
}

enum Headway {
    /// Nothing has gone.
    Waiting,
    /// The opening frame has gone.
    Open,
    /// A value can't be sent: the stream ends here, once the peer has been told.
    Broken(Error),
}

/// Where a stream's bytes come from.
pub(crate) enum Source {
    /// There are none.
    Empty,
    /// Bytes as they are.
    Bytes(Arc<[u8]>),
    /// Likewise, in memory that is used again.
    Fetched(Vec<u8>),
    /// As many as lie here.
    Few(Few),
    /// Elements, packed on the way.
    Typed {
        /// From their memory to the stream.
        program: Arc<Program>,
        /// How many.
        count: u64,
        /// The memory.
        span: Span,
        /// What keeps it.
        _keep: Keep,
    },
    /// Nowhere any more: the stream is cut.
    Abandoned,
}

/// A few bytes: an element, or two.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Few {
    bytes: [u8; Few::ROOM],
    len: usize,
}

impl Few {
    pub(crate) const ROOM: usize = 32;

    /// So many bytes, zero at first; `None` for more than there is room for.
    #[inline]
    pub(crate) fn zeroed(len: u64) -> Option<Few> {
        let len = usize::try_from(len).ok().filter(|len| *len <= Few::ROOM)?;
        Some(Few { bytes: [0; Few::ROOM], len })
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

/// What a stream was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Nothing that anyone waits for.
    None,
    /// The data of this operation on a window.
    Operation(Kind, Operation),
    /// A message of this number.
    Message(u64),
}

/// The most that is kept for what the next operation fetches.
const KEPT: usize = 4 << 20;

/// What became of an attempt to send.
pub(super) enum Sent {
    /// A frame has gone, and there is more.
    More,
    /// The last one has gone.
    Done,
    /// The last one has gone, but not all values.
    Failed(Error),
    /// There is no room.
    Blocked,
    /// There never will be.
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
            headway: Headway::Waiting,
            purpose,
        }
    }

    /// A frame without a stream, in order with the streams.
    pub(crate) fn brief(brief: Brief) -> Outgoing {
        Outgoing {
            head: Head::Short(brief),
            source: Source::Empty,
            length: 0,
            sent: 0,
            headway: Headway::Waiting,
            purpose: Purpose::None,
        }
    }

    /// Whether it may go before or after another such operation: puts and gets among each other (MPI-5.0 section 12.7),
    /// as long as none of their frames has gone.
    pub(super) fn is_unordered(&self) -> bool {
        let operation = |header: &Header| matches!(header.kind, Kind::Put | Kind::Get);
        matches!(self.headway, Headway::Waiting)
            && matches!(&self.head, Head::Long(header) if operation(header))
    }

    pub(super) fn is_for(&self, purpose: Purpose) -> bool {
        self.purpose == purpose
    }

    /// Whether it is data of an operation on a window.
    pub(super) fn is_on(&self, window: u32) -> bool {
        matches!(self.purpose, Purpose::Operation(_, operation) if operation.window == window)
    }

    /// Lets go of the memory that it packs from. A stream of no bytes is whole with its opening frame: nothing of it is cut.
    pub(super) fn abandon(&mut self) {
        self.source = if self.length > 0 { Source::Abandoned } else { Source::Empty };
    }

    /// Gives memory back that it sent from, for the next to fetch, unless what is there is larger: for megabytes the system
    /// would give and take pages each time.
    pub(super) fn give_back(&mut self, spare: &mut Vec<u8>) {
        if let Source::Fetched(bytes) = &mut self.source {
            if (spare.capacity()..=KEPT).contains(&bytes.capacity()) {
                *spare = std::mem::take(bytes);
            }
        }
    }

    pub(super) fn into_purpose(self) -> Purpose {
        self.purpose
    }

    /// Sends its next frame.
    pub(super) fn send(&mut self, link: &mut dyn Link, peer: u32, tap: &mut Tap) -> Sent {
        if let Headway::Broken(error) = &mut self.headway {
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
                self.headway = Headway::Open;
                if self.sent == self.length { Sent::Done } else { Sent::More }
            }
            Err(error) => {
                // The peer hears of the operation all the same, so that it can acknowledge it.
                if let (Headway::Waiting, Head::Long(opening)) = (&self.headway, &self.head) {
                    frame[..Header::SIZE].copy_from_slice(&opening.encode());
                    tap.record(Direction::Sent, peer, &frame[..Header::SIZE]);
                    frame.commit_part(Header::SIZE);
                }
                self.headway = Headway::Broken(error);
                Sent::More
            }
        }
    }

    /// Writes the header of the next frame, which has at most `limit` bytes, and says how long it is.
    fn header(&self, words: &mut [u8; Header::SIZE], limit: usize) -> usize {
        let brief = match (&self.headway, &self.head) {
            (Headway::Waiting, Head::Long(header)) => {
                let size = header.whole_size();
                let whole = self.length.saturating_add(size as u64);
                // Where a value can't be sent the frame becomes a long header, and has to have room for it.
                let is_sure = whole >= Header::SIZE as u64 || self.source.is_sure();
                let size = if is_sure && whole <= limit as u64 { size } else { Header::SIZE };
                header.encode_whole(&mut words[..size]);
                return size;
            }
            (Headway::Waiting, Head::Short(brief)) => *brief,
            _ => Brief { kind: Kind::More, context: 0, operation: 0, value: self.sent },
        };
        words[..Brief::SIZE].copy_from_slice(&brief.encode());
        Brief::SIZE
    }
}

impl Source {
    /// Whether its bytes aren't one run.
    fn is_scattered(&self) -> bool {
        matches!(self, Source::Typed { program, count, .. } if program.contiguous(*count).is_none())
    }

    /// Whether its bytes are there, whatever happens.
    fn is_sure(&self) -> bool {
        matches!(self, Source::Empty | Source::Bytes(_) | Source::Fetched(_) | Source::Few(_))
    }

    /// All of its bytes.
    pub(super) fn gather(self, length: u64) -> Result<Arc<[u8]>, Error> {
        if let Source::Bytes(bytes) = self {
            return Ok(bytes);
        }
        let mut bytes: Arc<[u8]> = std::iter::repeat_n(0, length as usize).collect();
        if let Some(bytes) = Arc::get_mut(&mut bytes) {
            self.fill(0, bytes)?;
        }
        Ok(bytes)
    }

    /// Fills `out` with the stream's bytes from `position` on.
    fn fill(&self, position: u64, out: &mut [u8]) -> Result<(), Error> {
        let bytes: &[u8] = match self {
            Source::Empty => return Ok(()),
            Source::Abandoned => return Err(ErrorKind::Aborting { by: None }.into()),
            Source::Bytes(bytes) => bytes,
            Source::Fetched(bytes) => bytes,
            Source::Few(few) => few.bytes(),
            Source::Typed { program, count, span, .. } => {
                return span.pack(program, *count, position, out).map(drop).map_err(conversion);
            }
        };
        let position = position as usize;
        out.copy_from_slice(&bytes[position..position + out.len()]);
        Ok(())
    }
}

/// Sends a frame that belongs to no stream.
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
