//! Streams as they arrive: where their bytes go, and how far they have come. A peer has at most one
//! stream under way.

use super::messages::Receiving;
use super::origin::Bytes;
use super::scatter::Scatter;
use super::target::{Accumulate, CompareAndSwap};
use crate::error::{Error, ErrorKind};
use crate::numbers::Numbers;
use crate::wire::{Cut, Header, Kind};

/// The streams of all peers that are under way to this rank.
#[derive(Default)]
pub(super) struct Streams {
    /// By peer. Few of many peers have a stream under way at a time.
    under_way: Numbers<u32, Box<Stream>>,
}

/// A stream of a peer.
pub(super) struct Stream {
    pub header: Header,
    position: u64,
    pub sink: Sink,
}

/// The destination of a stream's bytes.
pub(super) enum Sink {
    /// A window's memory: the data of a put.
    Put(Scatter),
    /// The memory of an operation of this rank: its answer. With it, the bytes of the target's
    /// window.
    Reply(Scatter, Bytes),
    /// The operands of an accumulate, combined with a window's memory.
    Accumulate(Box<Accumulate>),
    /// The two elements of a compare-and-swap.
    Swap(Box<CompareAndSwap>),
    /// The receive that has cleared the message.
    Receive(Box<Receiving>),
    /// A buffer, to be handled as a whole.
    Collect(Vec<u8>),
    /// None: this rank refuses the operation.
    Refused(Error),
    /// None: the answer to an operation of this rank doesn't fit its memory. With it, the bytes of
    /// the target's window.
    Misfit(Error, Bytes),
    /// None: this rank has given up the operation or receive.
    Ignore,
}

impl Streams {
    /// Whether a peer has a stream under way.
    #[inline]
    pub(super) fn is_streaming(&self, peer: u32) -> bool {
        !self.is_empty() && self.under_way.contains_key(&peer)
    }

    /// Whether no peer has a stream under way.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Takes in the opening frame of a stream. Returns the stream if that is all of it: most are
    /// short, and nothing is stored then.
    ///
    /// # Errors
    /// The frame is longer than the stream. The stream stays, so that the loss of the peer ends a
    /// receive that waits for it.
    pub(super) fn open(
        &mut self,
        peer: u32,
        header: Header,
        sink: Sink,
        data: &[u8],
    ) -> Result<Option<Stream>, String> {
        let mut stream = Stream { header, position: 0, sink };
        let taken = stream.take(data);
        if taken.is_ok() && stream.is_whole() {
            return Ok(Some(stream));
        }
        self.under_way.insert(peer, Box::new(stream));
        taken.map(|()| None)
    }

    /// Takes in a `More`: the next frame of a stream. Returns the stream after its last frame.
    ///
    /// # Errors
    /// The frame belongs to no stream, or isn't the next one. The stream stays, so that the loss of
    /// the peer ends a receive that waits for it.
    pub(super) fn handle_more(
        &mut self,
        peer: u32,
        position: u64,
        data: &[u8],
    ) -> Result<Option<Stream>, String> {
        let stream = self.under_way.get_mut(&peer).ok_or("a More without a stream")?;
        if position != stream.position {
            return Err(format!(
                "a More from byte {position} on, where byte {} was due",
                stream.position
            ));
        }
        stream.take(data)?;
        Ok(if stream.is_whole() { self.take(peer) } else { None })
    }

    /// Takes in a `Cut`: the peer can't send the rest of its stream. Returns the stream, and the
    /// error that this is to those that wait for it.
    ///
    /// # Errors
    /// The peer has no stream under way, or the reason is unknown.
    pub(super) fn handle_cut(&mut self, peer: u32, reason: u32) -> Result<(Stream, Error), String> {
        let cut = Cut::from_wire(reason).ok_or_else(|| format!("a cut for reason {reason}"))?;
        let stream = self.take(peer).ok_or("a Cut without a stream")?;
        let error = match cut {
            Cut::Value => ErrorKind::Conversion(CUT.to_owned()),
            Cut::GivenUp => ErrorKind::GivenUp { by: peer },
        };
        Ok((stream, error.into()))
    }

    /// Takes out the stream that a peer has under way.
    pub(super) fn take(&mut self, peer: u32) -> Option<Stream> {
        self.under_way.remove(&peer).map(|stream| *stream)
    }

    /// Lets go of the memory of a receive that is given up.
    pub(super) fn abandon_receive(&mut self, number: u64) {
        self.abandon(
            |stream| matches!(&stream.sink, Sink::Receive(receiving) if receiving.is_for(number)),
        );
    }

    /// Lets go of the memory of fetching operations on a window, which are given up.
    pub(super) fn abandon_replies(&mut self, window: u32) {
        self.abandon(|Stream { header, .. }| {
            (header.kind, header.context) == (Kind::Reply, window)
        });
    }

    fn abandon(&mut self, which: impl Fn(&Stream) -> bool) {
        let streams = self.under_way.values_mut();
        streams.filter(|stream| which(stream)).for_each(|stream| stream.sink = Sink::Ignore);
    }
}

impl Stream {
    fn is_whole(&self) -> bool {
        self.position >= self.header.length
    }

    /// Takes in the next bytes.
    ///
    /// # Errors
    /// There are more than the stream has left.
    fn take(&mut self, data: &[u8]) -> Result<(), String> {
        let length = data.len() as u64;
        if length > self.header.length - self.position {
            return Err(format!(
                "a {:?} of more than the {} bytes that it announced",
                self.header.kind, self.header.length
            ));
        }
        match &mut self.sink {
            Sink::Put(scatter) => {
                if let Err(error) = scatter.take(self.position, data) {
                    self.sink = Sink::Refused(error);
                }
            }
            Sink::Reply(scatter, bytes) => {
                if let Err(error) = scatter.take(self.position, data) {
                    self.sink = Sink::Misfit(error, *bytes);
                }
            }
            Sink::Accumulate(accumulate) => {
                if let Err(error) = accumulate.take(self.position, data) {
                    self.sink = Sink::Refused(error);
                }
            }
            Sink::Swap(swap) => swap.take(data),
            Sink::Collect(bytes) => bytes.extend_from_slice(data),
            Sink::Receive(receiving) => receiving.take(self.position, data),
            Sink::Refused(_) | Sink::Misfit(..) | Sink::Ignore => {}
        }
        self.position += length;
        Ok(())
    }
}

const CUT: &str = "the sender met a value that its representation can't hold";
