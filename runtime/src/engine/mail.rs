//! Messages between two ranks: what has arrived, what is waited for, and how the two meet.
//!
//! A short message goes at once and is held here until it is received, in room that its sender keeps account of. A longer
//! one, or one for which there is no room, is announced; its data follow once a receive has matched it. So a rank never
//! holds more than a bounded number of bytes that nobody asked for.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use shipable::{Architecture, Basic, Partial, Program, Signature};

use super::exposure::Keep;
use super::outbox::{Outgoing, Purpose, Source};
use super::{EAGER, State};
use crate::error::{Error, ErrorKind, Result, conversion};
use crate::group::Group;
use crate::memory::Span;
use crate::sequence::{Items, MATCH};
use crate::types::Compiled;
use crate::wire::{Brief, Header, Kind};

/// Kinds of message that never match each other, in the low bits of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Channel {
    /// The user's data.
    Data,
    /// Types that are sent.
    Types,
    /// What this crate sends for itself.
    Internal,
    /// What makes communicators of some of the ranks, by a tag of the user's.
    Groups,
    /// What windows agree on, by their number: threads may be at several at a time.
    Windows,
}

const CHANNELS: u32 = 5;

/// What a communicator's messages travel in: a number that none of its ranks uses for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Context(u32);

impl Context {
    /// Of all ranks of the job.
    pub(crate) const WORLD: Context = Context(0);

    /// Of a rank alone.
    pub(crate) const SELF: Context = Context(1);

    /// The first number for any other.
    pub(crate) const FIRST: u32 = 2;

    /// The one with a number, unless there are no so many.
    pub(crate) fn new(number: u32) -> Option<Context> {
        (number <= u32::MAX / CHANNELS).then_some(Context(number))
    }

    pub(crate) fn number(self) -> u32 {
        self.0
    }

    /// What one channel of it is on the wire.
    pub(crate) fn of(self, channel: Channel) -> u32 {
        self.0 * CHANNELS + channel as u32
    }
}

/// A message to be sent.
pub(crate) struct Message {
    pub context: u32,
    pub tag: i32,
    pub length: u64,
    pub signature: u128,
    pub source: Source,
}

/// What a receive waits for; without a tag, for any.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    pub context: u32,
    pub sender: Sender,
    pub tag: Option<i32>,
}

/// Who may have sent it, by ranks in the job.
#[derive(Clone, Debug)]
pub(crate) enum Sender {
    One(u32),
    Any(Group),
}

impl Sender {
    /// The one rank that it can be, if there is just one.
    pub(crate) fn one(&self) -> Option<u32> {
        match self {
            Sender::One(sender) => Some(*sender),
            Sender::Any(_) => None,
        }
    }

    fn may_be(&self, peer: u32) -> bool {
        match self {
            Sender::One(sender) => *sender == peer,
            Sender::Any(group) => group.contains(peer),
        }
    }
}

/// Where a received message goes.
pub(crate) enum Landing {
    /// Into typed memory of at most `count` elements.
    ///
    /// What was sent as MPI_PACKED is in the representation `packed`.
    Typed { datatype: Arc<Compiled>, count: u64, span: Span, packed: Architecture, keep: Keep },
    /// Into bytes of its own.
    Bytes,
}

/// What a receive received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Who sent it: its rank in the communicator.
    pub source: i32,
    /// With which tag.
    pub tag: i32,
    /// How many elements of the receive's type; [`UNDEFINED`] where the message ends within one (`MPI_Get_count`).
    pub count: i64,
    /// How many basic elements, a pair's being two (`MPI_Get_elements`).
    pub elements: i64,
}

/// No number: MPI_UNDEFINED.
pub const UNDEFINED: i64 = -32766;

/// A received message, its source a rank in the job.
pub(crate) struct Delivery {
    pub status: Status,
    /// The message itself, where its landing was [`Landing::Bytes`].
    pub bytes: Vec<u8>,
}

#[derive(Default)]
pub(super) struct Mail {
    arrived: VecDeque<Arrived>,
    posted: VecDeque<Posted>,
    receiving: HashMap<(u32, u64), Receiving>,
    received: HashMap<u64, Result<Delivery>>,
    announced: HashMap<u64, (u32, Outgoing)>,
    sent: HashMap<u64, Result<()>>,
    /// Sends whose end nobody asks for.
    forgotten: HashSet<u64>,
    /// What a probe has taken out, to be received by its number.
    claimed: HashMap<u64, Arrived>,
    last: u64,
}

/// A message before it is received: all but its data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Letter {
    /// Its sender, by rank in the job.
    pub peer: u32,
    context: u32,
    pub tag: i32,
    signature: u128,
    /// In bytes, in its sender's representation.
    length: u64,
}

struct Arrived {
    letter: Letter,
    body: Body,
}

enum Body {
    Here(Vec<u8>),
    /// At its sender, under this number.
    There(u64),
}

struct Posted {
    number: u64,
    pattern: Pattern,
    landing: Landing,
}

/// A receive whose message is coming in.
pub(super) struct Receiving {
    number: u64,
    status: Status,
    sink: Sink,
    error: Option<Error>,
}

enum Sink {
    Typed { program: Arc<Program>, count: u64, span: Span, partial: Partial, _keep: Keep },
    Bytes(Vec<u8>),
}

/// Bytes that are allocated for a message before any of it is here, at most.
const ROOM: u64 = 1 << 20;

impl Receiving {
    pub(super) fn is_for(&self, number: u64) -> bool {
        self.number == number
    }

    /// Checks a message against its landing.
    fn new(
        number: u64,
        landing: Landing,
        letter: &Letter,
        stream: &Architecture,
    ) -> Result<Receiving> {
        let mut status =
            Status { source: letter.peer as i32, tag: letter.tag, count: 0, elements: 0 };
        let sink = match landing {
            Landing::Bytes => {
                status.count = letter.length as i64;
                Sink::Bytes(Vec::new())
            }
            Landing::Typed { datatype, count: room, span, packed, keep } => {
                let fit = letter.fit(&datatype, stream, &packed)?;
                let longest = fit.program.stream_length(room)?;
                if letter.length > longest {
                    return Err(ErrorKind::Truncate { length: letter.length, room: longest }.into());
                }
                (status.count, status.elements) = (fit.count, fit.elements);
                let (program, count) = (fit.program, fit.touched);
                Sink::Typed { program, count, span, partial: Partial::default(), _keep: keep }
            }
        };
        Ok(Receiving { number, status, sink, error: None })
    }

    /// Takes all of a message in.
    fn take_whole(&mut self, message: Vec<u8>) {
        match &mut self.sink {
            Sink::Bytes(bytes) => *bytes = message,
            Sink::Typed { .. } => self.take(0, &message),
        }
    }

    /// Makes room for a message that is on its way; the longest grow as they come.
    fn make_room(&mut self, length: u64) {
        if let Sink::Bytes(bytes) = &mut self.sink {
            bytes.reserve(length.min(ROOM) as usize);
        }
    }

    /// Takes the next bytes in.
    pub(super) fn take(&mut self, position: u64, data: &[u8]) {
        if self.error.is_some() {
            return;
        }
        match &mut self.sink {
            Sink::Bytes(bytes) => bytes.extend_from_slice(data),
            Sink::Typed { program, count, span, partial, .. } => {
                let taken = span.unpack(program, *count, position, data, partial);
                self.error = taken.map_err(conversion).err();
            }
        }
    }
}

/// A message as elements of a type.
pub(crate) struct Fit {
    program: Arc<Program>,
    /// How many there are; [`UNDEFINED`] where the last one is there in part.
    pub count: i64,
    /// How many basic elements.
    pub elements: i64,
    /// How many, one in part included.
    touched: u64,
}

impl Letter {
    /// Checks it against a type, `stream` being the representation that it travels in.
    ///
    /// # Errors
    /// TYPE for elements of another signature.
    pub(crate) fn fit(
        &self,
        datatype: &Compiled,
        stream: &Architecture,
        packed: &Architecture,
    ) -> Result<Fit> {
        let read = |stream| -> Result<_> {
            let prefix = datatype.committed().signature_in(self.length, stream)?;
            Ok((datatype.program(stream)?, prefix))
        };
        let strict = read(stream);
        // Mostly they are the same. Where MPI_PACKED is on both sides, it reads the same in every representation.
        let same = matches!(&strict, Ok((_, Some(prefix))) if prefix.hash == self.signature);
        let relaxed = !same && self.is_relaxed(datatype, stream, packed);
        let (program, prefix) = if relaxed { read(packed)? } else { strict? };
        let size = program.stream_size();
        // The last element may be there in part.
        let count = self.length.checked_div(size).unwrap_or(0);
        let Some(Signature { count: elements, .. }) = prefix.filter(|_| same || relaxed) else {
            return Err(ErrorKind::Signature {
                origin: format!("a message of {} bytes", self.length),
                target: Items { count, form: datatype.form(), text: datatype }.to_string(),
                remedy: MATCH.to_owned(),
            }
            .into());
        };
        let whole = count * size == self.length;
        Ok(Fit {
            program,
            count: if whole { count as i64 } else { UNDEFINED },
            elements: elements as i64,
            touched: count + u64::from(!whole),
        })
    }

    /// Whether MPI_PACKED on one side relaxes the type matching (MPI-5.0 section 5.2): packed bytes can be received as what
    /// they are, and anything as bytes to unpack, if it travels in the representation that packed buffers have.
    fn is_relaxed(
        &self,
        datatype: &Compiled,
        stream: &Architecture,
        packed: &Architecture,
    ) -> bool {
        let bytes = |count| Signature::of_leaf(Basic::Packed.into()).repeat(count);
        if bytes(self.length).is_some_and(|bytes| bytes.hash == self.signature) {
            return true;
        }
        let signature = datatype.signature();
        bytes(signature.count) == Some(signature) && stream.same_representation(packed)
    }
}

impl Mail {
    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// A short message is here.
    pub(super) fn arrived(&mut self, peer: u32, header: &Header, bytes: Vec<u8>) {
        self.arrive(peer, header, Body::Here(bytes));
    }

    /// A message waits at its sender.
    pub(super) fn announced(&mut self, peer: u32, header: &Header) {
        self.arrive(peer, header, Body::There(header.operation));
    }

    fn arrive(&mut self, peer: u32, header: &Header, body: Body) {
        let letter = Letter {
            peer,
            context: header.context,
            tag: header.displacement as i32,
            signature: header.signature,
            length: header.length,
        };
        self.arrived.push_back(Arrived { letter, body });
    }

    /// The message that came last and the first receive for it, if there is one: all before have none.
    fn meet_receive(&mut self) -> Option<(Arrived, Posted)> {
        let letter = &self.arrived.back()?.letter;
        let receive = self.posted.iter().position(|posted| posted.pattern.fits(letter))?;
        Some((self.arrived.pop_back()?, self.posted.remove(receive)?))
    }

    /// The first message for the receive that was posted last, if there is one, and that receive: all before have none.
    fn meet_message(&mut self) -> Option<(Arrived, Posted)> {
        let pattern = &self.posted.back()?.pattern;
        let message = self.arrived.iter().position(|arrived| pattern.fits(&arrived.letter))?;
        Some((self.arrived.remove(message)?, self.posted.pop_back()?))
    }

    /// The receive to which a message was announced, unless it has given up.
    pub(super) fn take_receiving(&mut self, peer: u32, operation: u64) -> Option<Receiving> {
        self.receiving.remove(&(peer, operation))
    }

    /// A message has come in, or as much of it as could be sent.
    pub(super) fn received(&mut self, receiving: Receiving, cut: Option<Error>) {
        let Receiving { number, status, sink, error } = receiving;
        let bytes = match sink {
            Sink::Bytes(bytes) => bytes,
            Sink::Typed { .. } => Vec::new(),
        };
        let outcome = error.or(cut).map_or(Ok(Delivery { status, bytes }), Err);
        self.received.insert(number, outcome);
    }

    /// The data of an announced message, which its receiver asks for.
    pub(super) fn cleared(&mut self, peer: u32, number: u64) -> Option<Outgoing> {
        let (to, bulk) = self.announced.remove(&number)?;
        (to == peer).then_some(bulk)
    }

    /// A message has left, or can't.
    pub(super) fn sent(&mut self, number: u64, outcome: Result<()>) {
        if !self.forgotten.remove(&number) {
            self.sent.insert(number, outcome);
        }
    }

    #[cfg(test)]
    pub(super) fn remembers_no_send(&self) -> bool {
        self.sent.is_empty() && self.forgotten.is_empty() && self.announced.is_empty()
    }

    /// Nothing more comes from a peer, nor goes there.
    pub(super) fn peer_gone(&mut self, peer: u32, gone: impl Fn() -> Error) {
        let announced = std::mem::take(&mut self.announced);
        for (number, (to, bulk)) in announced {
            if to == peer {
                self.sent(number, Err(gone()));
            } else {
                self.announced.insert(number, (to, bulk));
            }
        }
        for ((from, operation), receiving) in std::mem::take(&mut self.receiving) {
            if from == peer {
                self.received.insert(receiving.number, Err(gone()));
            } else {
                self.receiving.insert((from, operation), receiving);
            }
        }
        // What is here already can still be received; what is not never comes.
        self.arrived
            .retain(|arrived| arrived.letter.peer != peer || matches!(arrived.body, Body::Here(_)));
        for posted in std::mem::take(&mut self.posted) {
            if posted.pattern.sender.may_be(peer) {
                self.received.insert(posted.number, Err(gone()));
            } else {
                self.posted.push_back(posted);
            }
        }
    }
}

impl Pattern {
    fn fits(&self, letter: &Letter) -> bool {
        self.context == letter.context
            && self.sender.may_be(letter.peer)
            && self.tag.is_none_or(|tag| tag == letter.tag)
    }
}

impl State {
    /// Sends a message: at once, if it is short and there is room; else it is announced. `pack` makes the bytes of a short
    /// one. Gives the number under which [`take_sent`](State::take_sent) tells of its end, where that isn't already.
    pub(crate) fn start_send(&mut self, peer: u32, message: Message) -> Result<Option<u64>> {
        self.tell_clock(peer);
        let header = Header {
            context: message.context,
            displacement: message.tag.into(),
            length: message.length,
            signature: message.signature,
            ..Header::new(Kind::Eager)
        };
        if let Some(gone) = self.gone(peer) {
            return Err(gone);
        }
        let cost = message.length + Header::SIZE as u64;
        if message.length <= EAGER && self.peers[peer as usize].has_room(cost) {
            // A value that can't be sent takes no room.
            let bytes = message.source.gather(message.length)?;
            self.peers[peer as usize].take_room(cost);
            self.push(peer, Outgoing::new(header, Source::Bytes(bytes), Purpose::None));
            return Ok(None);
        }
        let number = self.mail.next();
        let bulk = Header { kind: Kind::Bulk, operation: number, ..header };
        let bulk = Outgoing::new(bulk, message.source, Purpose::Message(number));
        self.mail.announced.insert(number, (peer, bulk));
        let announce = Header { kind: Kind::Announce, operation: number, ..header };
        self.push(peer, Outgoing::new(announce, Source::Empty, Purpose::None));
        Ok(Some(number))
    }

    /// How a send ended, if it has.
    pub(crate) fn take_sent(&mut self, number: u64) -> Option<Result<()>> {
        self.mail.sent.remove(&number)
    }

    /// Whether a send has ended.
    pub(crate) fn is_sent(&self, number: u64) -> bool {
        self.mail.sent.contains_key(&number)
    }

    /// Nobody asks how a send ended: one under way goes on.
    pub(crate) fn forget_send(&mut self, number: u64) {
        self.mail.sent.remove(&number);
        if self.is_sending(number) {
            self.mail.forgotten.insert(number);
        }
    }

    /// Whether a send is under way.
    fn is_sending(&self, number: u64) -> bool {
        let is_it = |out: &Outgoing| out.is_for(Purpose::Message(number));
        self.mail.announced.contains_key(&number)
            || self.peers.iter().any(|peer| peer.outbox.iter().any(is_it))
    }

    /// Waits for a message. Gives the number under which [`take_received`](State::take_received) tells of it.
    pub(crate) fn start_receive(&mut self, pattern: Pattern, landing: Landing) -> u64 {
        let number = self.mail.next();
        let sender = pattern.sender.clone();
        self.mail.posted.push_back(Posted { number, pattern, landing });
        if let Some((arrived, Posted { landing, .. })) = self.mail.meet_message() {
            self.deliver(arrived, number, landing);
        } else if let Some(gone) = self.lost(&sender) {
            self.mail.posted.pop_back();
            self.mail.received.insert(number, Err(gone));
        }
        number
    }

    /// The error of waiting for a message where someone who may send it is gone.
    fn lost(&self, sender: &Sender) -> Option<Error> {
        match sender {
            Sender::One(sender) => self.gone(*sender),
            Sender::Any(group) => group.processes().iter().find_map(|&rank| self.gone(rank)),
        }
    }

    /// The first message that a receive with this pattern would get, if there is one, which stays where it is.
    pub(crate) fn probe(&self, pattern: &Pattern) -> Option<Result<Letter>> {
        let mut letters = self.mail.arrived.iter().map(|arrived| arrived.letter);
        let found = letters.find(|letter| pattern.fits(letter)).map(Ok);
        found.or_else(|| self.lost(&pattern.sender).map(Err))
    }

    /// Likewise, and takes it out: it is received by its number alone.
    pub(crate) fn claim(&mut self, pattern: &Pattern) -> Option<Result<(Letter, u64)>> {
        let at = self.mail.arrived.iter().position(|arrived| pattern.fits(&arrived.letter));
        let Some(arrived) = at.and_then(|at| self.mail.arrived.remove(at)) else {
            return self.lost(&pattern.sender).map(Err);
        };
        let (letter, number) = (arrived.letter, self.mail.next());
        self.mail.claimed.insert(number, arrived);
        Some(Ok((letter, number)))
    }

    /// Receives what was taken out; [`take_received`](State::take_received) tells of it under the same number.
    pub(crate) fn receive_claimed(&mut self, number: u64, landing: Landing) {
        let Some(arrived) = self.mail.claimed.remove(&number) else { return };
        match (&arrived.body, self.gone(arrived.letter.peer)) {
            (Body::There(_), Some(gone)) => _ = self.mail.received.insert(number, Err(gone)),
            _ => self.deliver(arrived, number, landing),
        }
    }

    /// Throws away what was taken out.
    pub(crate) fn discard_claimed(&mut self, number: u64) {
        self.receive_claimed(number, Landing::Bytes);
        self.abandon(number);
    }

    /// Takes a receive back; false if a message has met it.
    pub(crate) fn withdraw(&mut self, number: u64) -> bool {
        let posted = self.mail.posted.len();
        self.mail.posted.retain(|posted| posted.number != number);
        self.mail.posted.len() < posted
    }

    /// Whether a receive has ended.
    pub(crate) fn is_received(&self, number: u64) -> bool {
        self.mail.received.contains_key(&number)
    }

    /// How a receive ended, if it has.
    pub(crate) fn take_received(&mut self, number: u64) -> Option<Result<Delivery>> {
        let received = self.mail.received.remove(&number);
        if let Some(Ok(delivery)) = &received {
            self.learn_clock(delivery.status.source as u32);
        }
        received
    }

    /// Lets go of the memory of a send or receive that is given up.
    pub(crate) fn abandon(&mut self, number: u64) {
        self.mail.posted.retain(|posted| posted.number != number);
        self.mail.receiving.retain(|_, receiving| receiving.number != number);
        self.mail.received.remove(&number);
        self.forget_send(number);
        if let Some((_, bulk)) = self.mail.announced.get_mut(&number) {
            bulk.abandon();
        }
        for peer in &mut self.peers {
            peer.incoming.abandon(number);
            let purpose = Purpose::Message(number);
            peer.outbox.iter_mut().filter(|out| out.is_for(purpose)).for_each(Outgoing::abandon);
        }
    }

    /// A message has come: gives it to a receive that waits for it.
    pub(super) fn handle_message(&mut self) {
        if let Some((arrived, Posted { number, landing, .. })) = self.mail.meet_receive() {
            self.deliver(arrived, number, landing);
        }
    }

    fn deliver(&mut self, Arrived { letter, body }: Arrived, number: u64, landing: Landing) {
        let stream = self.stream(letter.peer);
        let receiving = Receiving::new(number, landing, &letter, &stream);
        match (body, receiving) {
            (Body::Here(bytes), receiving) => {
                self.peers[letter.peer as usize].owe(letter.length + Header::SIZE as u64);
                self.busy.insert(letter.peer);
                match receiving {
                    Ok(mut receiving) => {
                        receiving.take_whole(bytes);
                        self.mail.received(receiving, None);
                    }
                    Err(error) => {
                        self.mail.received.insert(number, Err(error));
                    }
                }
            }
            (Body::There(operation), receiving) => {
                // The sender waits for its clearance even where the message fits no landing: its data are ignored then.
                match receiving {
                    Ok(mut receiving) => {
                        receiving.make_room(letter.length);
                        self.mail.receiving.insert((letter.peer, operation), receiving);
                    }
                    Err(error) => {
                        self.mail.received.insert(number, Err(error));
                    }
                }
                let clear = Brief { kind: Kind::Clear, context: 0, operation, value: 0 };
                self.push(letter.peer, Outgoing::brief(clear));
            }
        }
    }

    /// The representation that a peer's messages travel in.
    pub(crate) fn stream(&self, peer: u32) -> Architecture {
        *self.peers[peer as usize].architecture().unwrap_or(&self.me.architecture)
    }
}
