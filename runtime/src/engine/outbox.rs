//! What waits to be sent: streams that stop when a link is full and resume at their offset.

use std::sync::Arc;

use longshore_transport::{Link, LinkError, Refused};
use shipable::Program;

use super::Operation;
use super::exposure::Keep;
use crate::error::{Error, ErrorKind, conversion};
use crate::memory::Span;
use crate::tap::{Direction, Tap};
use crate::wire::{Brief, Header, Kind};

/// An entry of an outbox.
pub(crate) struct Outgoing {
    head: Head,
    source: Source,
    length: u64,
    sent: u64,
    stage: Stage,
    purpose: Purpose,
}

enum Head {
    Long(Header),
    Short(Brief),
}

enum Stage {
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
            stage: Stage::Waiting,
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
            stage: Stage::Waiting,
            purpose: Purpose::None,
        }
    }

    /// Whether it may go before or after another such operation: puts and gets among each other (MPI-5.0 section 12.7),
    /// as long as none of their frames has gone.
    pub(super) fn is_unordered(&self) -> bool {
        let operation = |header: &Header| matches!(header.kind, Kind::Put | Kind::Get);
        matches!(self.stage, Stage::Waiting)
            && matches!(&self.head, Head::Long(header) if operation(header))
    }

    pub(super) fn is_for(&self, purpose: Purpose) -> bool {
        self.purpose == purpose
    }

    /// Whether it is data of an operation on a window.
    pub(super) fn is_on(&self, window: u32) -> bool {
        matches!(self.purpose, Purpose::Operation(_, operation) if operation.window == window)
    }

    /// Lets go of the memory that it packs from.
    pub(super) fn abandon(&mut self) {
        self.source = Source::Abandoned;
    }

    pub(super) fn into_purpose(self) -> Purpose {
        self.purpose
    }

    /// Sends its next frame.
    pub(super) fn send(&mut self, link: &mut dyn Link, peer: u32, tap: &mut Tap) -> Sent {
        if let Stage::Broken(error) = &mut self.stage {
            let cut = Brief { kind: Kind::Cut, context: 0, operation: 0, value: self.sent };
            return match send_brief(link, peer, &cut, tap) {
                Sent::Done => {
                    let error = std::mem::replace(error, ErrorKind::Finalized.into());
                    Sent::Failed(error)
                }
                other => other,
            };
        }
        let mut words = [0; Header::SIZE];
        let header = self.header(&mut words);
        let left = self.length - self.sent;
        let piece = left.min((link.frame_limit() - header) as u64) as usize;
        let mut frame = match link.reserve(peer, header + piece) {
            Ok(frame) => frame,
            Err(Refused::WouldBlock) => return Sent::Blocked,
            Err(Refused::Failed(error)) => return Sent::Gone(error),
        };
        frame[..header].copy_from_slice(&words[..header]);
        match self.source.fill(self.sent, &mut frame[header..]) {
            Ok(()) => {
                tap.record(Direction::Sent, peer, &frame);
                frame.commit();
                self.sent += piece as u64;
                self.stage = Stage::Open;
                if self.sent == self.length { Sent::Done } else { Sent::More }
            }
            Err(error) => {
                // The peer hears of the operation all the same, so that it can acknowledge it.
                if matches!(self.stage, Stage::Waiting) {
                    tap.record(Direction::Sent, peer, &frame[..header]);
                    frame.commit_part(header);
                }
                self.stage = Stage::Broken(error);
                Sent::More
            }
        }
    }

    /// Writes the next frame's header and says how long it is.
    fn header(&self, words: &mut [u8; Header::SIZE]) -> usize {
        let brief = match (&self.stage, &self.head) {
            (Stage::Waiting, Head::Long(header)) => {
                *words = header.encode();
                return Header::SIZE;
            }
            (Stage::Waiting, Head::Short(brief)) => *brief,
            _ => Brief { kind: Kind::More, context: 0, operation: 0, value: self.sent },
        };
        words[..Brief::SIZE].copy_from_slice(&brief.encode());
        Brief::SIZE
    }
}

impl Source {
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
        match self {
            Source::Empty => {}
            Source::Abandoned => return Err(ErrorKind::Aborting { by: None }.into()),
            Source::Bytes(bytes) => {
                let position = position as usize;
                out.copy_from_slice(&bytes[position..position + out.len()]);
            }
            Source::Typed { program, count, span, .. } => {
                span.pack(program, *count, position, out).map_err(conversion)?;
            }
        }
        Ok(())
    }
}

/// Sends a frame that belongs to no stream.
pub(super) fn send_brief(link: &mut dyn Link, peer: u32, brief: &Brief, tap: &mut Tap) -> Sent {
    match link.reserve(peer, Brief::SIZE) {
        Ok(mut frame) => {
            frame.copy_from_slice(&brief.encode());
            tap.record(Direction::Sent, peer, &frame);
            frame.commit();
            Sent::Done
        }
        Err(Refused::WouldBlock) => Sent::Blocked,
        Err(Refused::Failed(error)) => Sent::Gone(error),
    }
}
