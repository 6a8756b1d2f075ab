//! Streams as they arrive: checked at their opening, taken in frame by frame.

use std::borrow::Cow;
use std::sync::Arc;

use shipable::{Partial, Program};

use super::exposure::{Exposure, Keep};
use super::folding::{Folding, Swapping};
use super::mail::Receiving;
use super::outbox::{Few, Outgoing, Purpose, Source};
use super::{BY_NUMBER, EAGER, Fetch, Operation, State, forms};
use crate::check::note::longest;
use crate::error::{Error, ErrorKind, Result, conversion};
use crate::memory::{Exposed, Span};
use crate::wire::{Brief, CONTROL_LIMIT, Cut, Header, Kind, hello_limit};

/// The stream that a peer has under way.
#[derive(Default)]
pub(super) enum Incoming {
    /// None.
    #[default]
    Idle,
    /// This one.
    Stream(Box<Stream>),
}

impl Incoming {
    /// Lets go of the memory of a receive that is given up.
    pub(super) fn abandon(&mut self, number: u64) {
        if let Incoming::Stream(stream) = self {
            if matches!(&stream.sink, Sink::Receive(receiving) if receiving.is_for(number)) {
                stream.sink = Sink::Ignore;
            }
        }
    }

    /// The receive that waits for the rest of the stream.
    pub(super) fn into_receiving(self) -> Option<Receiving> {
        match self {
            Incoming::Stream(stream) => match stream.sink {
                Sink::Receive(receiving) => Some(*receiving),
                _ => None,
            },
            Incoming::Idle => None,
        }
    }

    /// Lets go of the memory of a get that is given up.
    pub(super) fn abandon_reply(&mut self, window: u32) {
        if let Incoming::Stream(stream) = self {
            if (stream.header.kind, stream.header.context) == (Kind::Reply, window) {
                stream.sink = Sink::Ignore;
            }
        }
    }
}

pub(super) struct Stream {
    header: Header,
    position: u64,
    sink: Sink,
}

/// Where a stream's bytes go.
enum Sink {
    /// Into typed memory.
    Scatter(Scatter),
    /// Nowhere: it was refused, for this reason.
    Refused(Error),
    /// Nowhere: it answers a get of these bytes, and what it brought can't be taken.
    Misfit(Error, (i128, i128)),
    /// Into typed memory, by an operation.
    Fold(Box<Folding>),
    /// To be compared with what is there.
    Swap(Box<Swapping>),
    /// Together, to be looked at as a whole.
    Collect(Vec<u8>),
    /// To the receive that it was announced to.
    Receive(Box<Receiving>),
    /// Nowhere, for no reason that the peer has to know.
    Ignore,
}

/// Typed memory that a stream is unpacked into.
struct Scatter {
    program: Arc<Program>,
    count: u64,
    span: Span,
    partial: Partial,
    /// The bytes of the target's window, where it answers a get.
    answers: Option<(i128, i128)>,
    /// What keeps the memory.
    _keep: Keep,
}

/// An operation of a peer on a window, checked.
pub(super) struct Admitted<'a> {
    pub exposure: &'a Arc<Exposure>,
    pub form: &'a forms::Received,
    /// Its memory, displacement 0 being where the operation's lies.
    pub span: Span,
    memory: Cow<'a, Arc<Exposed>>,
}

impl Admitted<'_> {
    /// What keeps the memory.
    pub(super) fn keep(self) -> Keep {
        Keep::Shared { _memory: self.memory.into_owned() }
    }
}

impl State {
    /// Takes in an opening frame.
    pub(super) fn handle_opening(
        &mut self,
        peer: u32,
        header: Header,
        data: &[u8],
    ) -> Result<(), String> {
        if matches!(
            header.kind,
            Kind::Put | Kind::Get | Kind::Accumulate | Kind::Fetch | Kind::Swap
        ) {
            self.record(peer, &header);
            self.remember(peer, &header);
        }
        match header.kind {
            Kind::Get => {
                self.handle_get(peer, &header);
                return Ok(());
            }
            Kind::Announce => {
                self.mail.announced(peer, &header);
                self.handle_message();
                return Ok(());
            }
            _ => {}
        }
        if self.peers[peer as usize].is_streaming() {
            return Err(format!("a {:?} within a stream", header.kind));
        }
        if data.len() as u64 == header.length {
            if let Some(taken) = self.handle_whole(peer, &header, data) {
                return taken;
            }
        }
        let sink = self.open(peer, &header)?;
        let mut stream = Stream { header, position: 0, sink };
        match stream.take(data) {
            // Most are short: all is here, and nothing is kept.
            Ok(()) if stream.is_whole() => self.finish(peer, stream, None),
            taken => {
                // Where this fails, whoever waits for the stream is told with all that wait for the peer.
                self.peers[peer as usize].incoming = Incoming::Stream(Box::new(stream));
                self.streaming.insert(peer);
                taken
            }
        }
    }

    /// Takes in a frame that goes on with a stream.
    pub(super) fn handle_more(
        &mut self,
        peer: u32,
        position: u64,
        data: &[u8],
    ) -> Result<(), String> {
        // Where this fails, whoever waits for the stream is told with all that wait for the peer.
        let incoming = &mut self.peers[peer as usize].incoming;
        let Incoming::Stream(stream) = incoming else { return Err("more of no stream".to_owned()) };
        if position != stream.position {
            return Err(format!("bytes from {position} on where {} was due", stream.position));
        }
        stream.take(data)?;
        if !stream.is_whole() {
            return Ok(());
        }
        match self.take_stream(peer) {
            Incoming::Stream(stream) => self.finish(peer, *stream, None),
            Incoming::Idle => Ok(()),
        }
    }

    /// The peer can't send the rest of its stream.
    pub(super) fn handle_cut(&mut self, peer: u32, reason: u32) -> Result<(), String> {
        let cut = Cut::from_wire(reason).ok_or_else(|| format!("a cut for reason {reason}"))?;
        let Incoming::Stream(stream) = self.take_stream(peer) else {
            return Err("the end of no stream".to_owned());
        };
        self.finish(peer, *stream, Some(cut))
    }

    /// The stream that a peer had under way, which it has no more.
    pub(super) fn take_stream(&mut self, peer: u32) -> Incoming {
        self.streaming.remove(peer);
        std::mem::take(&mut self.peers[peer as usize].incoming)
    }

    /// Decides where a stream goes.
    fn open(&mut self, peer: u32, header: &Header) -> Result<Sink, String> {
        let collect = |limit: u64| match header.length <= limit {
            true => Ok(Sink::Collect(Vec::with_capacity(header.length as usize))),
            false => Err(format!("{:?} of {} bytes, above {limit}", header.kind, header.length)),
        };
        match header.kind {
            Kind::Hello => collect(hello_limit(self.me.size) as u64),
            Kind::Refuse => collect(CONTROL_LIMIT as u64),
            Kind::Eager => collect(EAGER),
            Kind::Note => collect(longest(self.me.size) as u64),
            Kind::Define if header.length > forms::LONGEST => {
                self.peers[peer as usize].forms.too_long(header.form, header.length);
                Ok(Sink::Ignore)
            }
            Kind::Define => collect(forms::LONGEST),
            Kind::Put => Ok(match self.admit_put(peer, header) {
                Ok(scatter) => Sink::Scatter(scatter),
                Err(error) => Sink::Refused(error),
            }),
            Kind::Accumulate | Kind::Fetch => {
                let admitted = self.admit(peer, header);
                let folding = admitted.and_then(|it| self.admit_folding(it, peer, header));
                Ok(match folding {
                    Ok(mut folding) => {
                        if let Some(room) = folding.room() {
                            *room = std::mem::take(&mut self.fetched);
                            room.clear();
                        }
                        Sink::Fold(Box::new(folding))
                    }
                    Err(error) => Sink::Refused(error),
                })
            }
            Kind::Swap => Ok(match self.admit_swapping(peer, header) {
                Ok(swapping) => Sink::Swap(Box::new(swapping)),
                Err(error) => Sink::Refused(error),
            }),
            Kind::Reply => self.open_reply(peer, header),
            Kind::Bulk => {
                let receiving = self.mail.take_receiving(peer, header.operation);
                // Its receive may have given up.
                Ok(receiving.map_or(Sink::Ignore, |receiving| Sink::Receive(Box::new(receiving))))
            }
            kind => Err(format!("a stream of {kind:?}")),
        }
    }

    fn admit_put(&self, peer: u32, header: &Header) -> Result<Scatter> {
        let (admitted, program) = self.admit_data(peer, header)?;
        Ok(Scatter {
            program: program.clone(),
            count: header.count,
            span: admitted.span,
            partial: Partial::default(),
            answers: None,
            _keep: admitted.keep(),
        })
    }

    /// A put that may begin, and the program that unpacks its data.
    pub(super) fn admit_data(
        &self,
        peer: u32,
        header: &Header,
    ) -> Result<(Admitted<'_>, &Arc<Program>)> {
        let admitted = self.admit(peer, header)?;
        let stream = self.stream_of(peer)?;
        let program = admitted.form.unpacking(&self.me.architecture, stream)?;
        let due = program.stream_length(header.count)?;
        if due != header.length {
            let what = format!("a put of {} bytes where its type has {due}", header.length);
            return Err(ErrorKind::Protocol { peer, what }.into());
        }
        Ok((admitted, program))
    }

    pub(super) fn admit(&self, peer: u32, header: &Header) -> Result<Admitted<'_>> {
        let exposure = self.windows.get(&header.context).ok_or(ErrorKind::WindowFreed)?;
        let form = self.peers[peer as usize].forms.get(header.form, peer)?;
        let (span, memory) = exposure.admit(header, form, self.me.rank, &self.me.architecture)?;
        Ok(Admitted { exposure, form, span, memory })
    }

    /// The bytes of its window that an operation of a peer touches, if it can be told.
    pub(super) fn reached(&self, peer: u32, header: &Header) -> Option<(i64, i64)> {
        let exposure = self.windows.get(&header.context)?;
        let form = self.peers[peer as usize].forms.get(header.form, peer).ok()?;
        let (start, end) = exposure.reach(header, form, &self.me.architecture).ok()?.bytes;
        Some((start.try_into().ok()?, end.try_into().ok()?))
    }

    /// A peer's operation of this number is done.
    pub(super) fn done(&mut self, peer: u32, context: u32, operation: u64) {
        let done = Brief { kind: Kind::Done, context, operation, value: 0 };
        self.push(peer, Outgoing::brief(done));
    }

    pub(super) fn stream_of(&self, peer: u32) -> Result<&shipable::Architecture> {
        let unknown = || ErrorKind::Gone { rank: peer, state: "unknown".to_owned() };
        Ok(self.peers[peer as usize].architecture().ok_or_else(unknown)?)
    }

    pub(super) fn handle_get(&mut self, peer: u32, header: &Header) {
        match self.admit_get(peer, header) {
            Ok(reply) => self.push(peer, reply),
            Err(error) => self.refuse(peer, header, &error),
        }
    }

    fn admit_get(&self, peer: u32, header: &Header) -> Result<Outgoing> {
        let admitted = self.admit(peer, header)?;
        let program = admitted.form.packing(&self.me.architecture)?;
        let length = program.stream_length(header.count)?;
        let (count, span) = (header.count, admitted.span);
        let source = match Few::zeroed(length) {
            Some(mut few) => {
                span.pack(program, count, 0, few.bytes_mut()).map_err(conversion)?;
                Source::Few(few)
            }
            None => {
                let program = program.clone();
                Source::Typed { program, count, span, _keep: admitted.keep() }
            }
        };
        Ok(reply_to(header, length, source))
    }

    fn open_reply(&mut self, peer: u32, header: &Header) -> Result<Sink, String> {
        let operation =
            Operation { target: peer, window: header.context, number: header.operation };
        let Some(fetch) = self.take_fetch(operation) else {
            // Its get was given up.
            return Ok(Sink::Ignore);
        };
        let Fetch { count, span, bytes, .. } = fetch;
        let scatter = self.answer_program(peer, &fetch, header.length).map(|program| Scatter {
            program,
            count,
            span,
            partial: Partial::default(),
            answers: Some(bytes),
            _keep: fetch.keep,
        });
        Ok(scatter.map_or_else(|error| Sink::Misfit(error, bytes), Sink::Scatter))
    }

    /// Takes out what waits for an answer; who waits for it alone is told by its completion.
    pub(super) fn take_fetch(&mut self, operation: Operation) -> Option<Fetch> {
        let fetch = self.gets.remove(operation)?;
        if let Some(ticket) = fetch.waiter() {
            self.tickets.insert(operation, ticket.clone());
        }
        Some(fetch)
    }

    /// What unpacks an answer of so many bytes.
    pub(super) fn answer_program(
        &self,
        peer: u32,
        fetch: &Fetch,
        length: u64,
    ) -> Result<Arc<Program>> {
        let due = match &fetch.origin {
            Some(origin) => {
                let program = origin.program(self.stream_of(peer)?)?;
                let due = program.stream_length(fetch.count)?;
                if due == length {
                    return Ok(program);
                }
                format!("{due}")
            }
            None => format!("{} in one frame", fetch.run.map_or(0, |(_, len)| len)),
        };
        let what = format!("{length} bytes in answer to a get of {due}");
        Err(ErrorKind::Protocol { peer, what }.into())
    }

    /// A put or accumulate of a peer is done.
    pub(super) fn finish_update(&mut self, peer: u32, header: &Header) {
        if header.tag & BY_NUMBER != 0 {
            return self.done(peer, header.context, header.operation);
        }
        self.peers[peer as usize].acknowledge(header.context);
        self.busy.insert(peer);
    }

    /// A stream has ended, whole or cut short: where its bytes went says what is to be done.
    fn finish(&mut self, peer: u32, stream: Stream, cut: Option<Cut>) -> Result<(), String> {
        let Stream { header, sink, .. } = stream;
        let (window, number) = (header.context, header.operation);
        let operation = Operation { target: peer, window, number };
        let cut = cut.map(|cut| Error::from(cut_short(peer, cut)));
        match (sink, cut) {
            (Sink::Refused(error), _) => self.refuse(peer, &header, &error),
            (Sink::Scatter(scatter), _) => {
                let answers = scatter.answers.is_some();
                // Whoever waits finds the memory let go of.
                drop(scatter);
                match answers {
                    true => self.complete(operation, None)?,
                    false => self.finish_update(peer, &header),
                }
            }
            (Sink::Misfit(error, bytes), _) => {
                let error = error.at(|| self.place(Kind::Get, peer, window, Some(bytes)));
                self.complete(operation, Some(error))?;
            }
            (Sink::Fold(folding), cut) => match (folding.into_fetched(), cut) {
                (None, _) => self.finish_update(peer, &header),
                (Some(_), Some(error)) => self.refuse(peer, &header, &error),
                (Some(fetched), None) => self.answer(peer, &header, fetched),
            },
            (Sink::Swap(_), Some(error)) => self.refuse(peer, &header, &error),
            (Sink::Swap(swapping), None) => {
                self.finish_swap(peer, &header, swapping.carry_out());
            }
            (Sink::Receive(receiving), cut) => self.mail.received(*receiving, cut),
            // A get that was given up is done all the same.
            (Sink::Ignore, _) if header.kind == Kind::Reply => self.complete(operation, None)?,
            (Sink::Ignore, _) => {}
            (Sink::Collect(_), Some(_)) => return Err(format!("a {:?} cut short", header.kind)),
            (Sink::Collect(bytes), None) => return self.finish_whole(peer, &header, bytes),
        }
        Ok(())
    }

    /// What is looked at as a whole is here.
    fn finish_whole(&mut self, peer: u32, header: &Header, bytes: Vec<u8>) -> Result<(), String> {
        match header.kind {
            Kind::Define => {
                let known = &mut self.peers[peer as usize];
                known.forms.define(header.form, header.tag, header.context, &bytes);
                known.recents.forget_form(header.form);
            }
            Kind::Hello => return self.handle_hello(peer, &bytes),
            Kind::Refuse => return self.handle_refusal(peer, *header, &bytes),
            Kind::Note => return self.handle_note(peer, header, &bytes),
            Kind::Eager => {
                self.mail.arrived(peer, header, bytes);
                self.handle_message();
            }
            kind => return Err(format!("a stream of {kind:?}")),
        }
        Ok(())
    }
}

/// The answer to an operation that fetches.
pub(super) fn reply_to(header: &Header, length: u64, source: Source) -> Outgoing {
    let reply = Header {
        context: header.context,
        operation: header.operation,
        length,
        ..Header::new(Kind::Reply)
    };
    Outgoing::new(reply, source, Purpose::None)
}

/// What is told of a stream that its sender ended before its length.
fn cut_short(peer: u32, cut: Cut) -> ErrorKind {
    match cut {
        Cut::Value => ErrorKind::Conversion(CUT.to_owned()),
        Cut::GivenUp => ErrorKind::GivenUp { by: peer },
    }
}

const CUT: &str = "the sender met a value that its representation can't hold";

impl Stream {
    fn is_whole(&self) -> bool {
        self.position >= self.header.length
    }

    /// Takes the next bytes in.
    fn take(&mut self, data: &[u8]) -> Result<(), String> {
        let length = data.len() as u64;
        if length > self.header.length - self.position {
            return Err(format!("a {:?} longer than it said", self.header.kind));
        }
        match &mut self.sink {
            Sink::Scatter(scatter) => {
                if let Err(error) = scatter.take(self.position, data) {
                    self.sink = match scatter.answers {
                        Some(bytes) => Sink::Misfit(error, bytes),
                        None => Sink::Refused(error),
                    };
                }
            }
            Sink::Fold(folding) => {
                if let Err(error) = folding.take(self.position, data) {
                    self.sink = Sink::Refused(error);
                }
            }
            Sink::Swap(swapping) => swapping.take(data),
            Sink::Collect(bytes) => bytes.extend_from_slice(data),
            Sink::Receive(receiving) => receiving.take(self.position, data),
            Sink::Refused(_) | Sink::Misfit(..) | Sink::Ignore => {}
        }
        self.position += length;
        Ok(())
    }
}

impl Scatter {
    fn take(&mut self, position: u64, data: &[u8]) -> Result<()> {
        self.span
            .unpack(&self.program, self.count, position, data, &mut self.partial)
            .map_err(conversion)
    }
}
