//! Messages between two ranks (point-to-point): the unexpected-message queue, posted receives, and
//! the rendezvous.
//!
//! - A short message is sent at once (`Eager`), if its sender has credit at the receiver for it. It
//!   is held in the unexpected-message queue until a receive matches it; then the credit is
//!   returned (`Credit`).
//! - A longer message, or one without credit, goes by rendezvous:
//!   1. The sender announces it (`Announce`; elsewhere called RTS).
//!   2. When a receive has matched it, the receiver clears it (`Clear`; CTS).
//!   3. The sender sends the data (`Bulk`).
//!
//!   To a like rank, an announcement also offers the sender's memory. A receiver on the same host
//!   lets the system copy the data from there to its own, once, and its `Clear` says that it has
//!   them. If the system refuses, or the data aren't one run of memory as
//!   they travel, they go by frames as above.
//!
//! So a rank holds a bounded number of bytes that no receive has matched. Every send under way and
//! every receive has a number, by which calls ask for its end.

mod direct;
mod matching;
mod queues;
mod receive;
mod requests;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use longshore_transport::{Offer, PeerMemory};
use shipable::Architecture;
use smallvec::SmallVec;

use super::context::Context;
use super::notes::Notes;
use super::outbox::{Outbox, Outgoing, Purpose, Source};
use super::peers::Peers;
use crate::bytes::Bytes;
use crate::check::messages::{Got, Told, unmatched};
use crate::error::{Error, ErrorKind, Result};
use crate::numbers::Numbers;
use crate::types::Compiled;
use crate::wire::{Brief, Header, Kind};

pub(crate) use direct::Direct;
use direct::Waiting;
pub use matching::UNDEFINED;
pub(crate) use matching::{Arrival, OtherCall, Pattern, Sender};
use queues::{Arrivals, Receives};
pub(super) use receive::Receiving;
pub use receive::Status;
pub(crate) use receive::{Delivery, Landing};
use requests::Requests;

/// Bytes of the longest message that is sent at once to a rank of the same host.
pub(crate) const EAGER: u64 = 4 << 10;

/// Bytes of the longest message that is sent at once to a rank of another host. An announcement
/// takes two crossings of the network more (docs/tuning.md, "Messages between hosts").
pub(crate) const EAGER_FAR: u64 = 64 << 10;

/// A message to be sent.
pub(crate) struct Message {
    pub context: u32,
    pub tag: i32,
    pub length: u64,
    pub signature: u128,
    pub source: Source,
    /// Whether the send ends only when a receive has matched it.
    pub synchronous: bool,
}

/// A message to be sent, without its data.
#[derive(Clone, Copy)]
pub(crate) struct Heading {
    pub context: u32,
    pub tag: i32,
    pub length: u64,
    pub signature: u128,
    pub synchronous: bool,
}

impl Heading {
    /// Whether the message is sent at once if there is credit for it.
    #[inline]
    fn is_short(&self, peer: u32, peers: &Peers) -> bool {
        let is_short = self.length <= EAGER || self.length <= EAGER_FAR && peers.is_far(peer);
        !self.synchronous && is_short
    }

    /// Whether the peer has room for the message before a receive has matched it.
    #[inline]
    fn has_credit(&self, peer: u32, peers: &Peers, out: &Outbox) -> bool {
        out.has_credit(peer, cost(self.length), peers.room(peer))
    }

    /// The header of the frame that opens the message.
    #[inline]
    fn header(&self, kind: Kind) -> Header {
        Header {
            context: self.context,
            displacement: self.tag.into(),
            // A small header has room for only half of the hash, and a message names no form.
            form: (self.signature >> 64) as u64,
            length: self.length,
            signature: self.signature,
            ..Header::new(kind)
        }
    }

    /// Whether the message is short, and can't be sent at once for lack of credit.
    pub(super) fn lacks_credit(&self, peer: u32, peers: &Peers, out: &Outbox) -> bool {
        self.is_short(peer, peers) && !self.has_credit(peer, peers, out)
    }

    /// The credit at the peer, if the message's only frame may be sent before all others: the
    /// message is short, nothing waits for the peer, and no notes are taken.
    #[inline]
    pub(super) fn at_once<'o>(
        &self,
        peer: u32,
        peers: &Peers,
        notes: &Notes,
        out: &'o mut Outbox,
    ) -> Option<Credit<'o>> {
        if notes.is_on() || out.is_reordered() || !self.is_short(peer, peers) {
            return None;
        }
        // The queue to a peer that is gone is closed.
        let (spent, cost) = (out.credit_if_idle(peer)?, cost(self.length));
        let after = spent.saturating_add(cost);
        (after <= peers.room(peer)).then_some(Credit { spent, after })
    }

    /// Writes the header of the message's only frame.
    #[inline]
    pub(super) fn encode(&self, out: &mut [u8; Header::SMALL_SIZE]) {
        self.header(Kind::Eager).encode_small(out);
    }

    /// Spends the credit that the message takes once it is sent at once.
    fn spend(&self, peer: u32, out: &mut Outbox) {
        out.spend_credit(peer, cost(self.length));
    }
}

/// The credit at a peer that a message will take.
pub(super) struct Credit<'o> {
    spent: &'o mut u64,
    after: u64,
}

impl Credit<'_> {
    /// The message is sent.
    #[inline]
    pub(super) fn spend(self) {
        *self.spent = self.after;
    }
}

impl Message {
    /// The message without its data.
    #[inline]
    pub(super) fn heading(&self) -> Heading {
        let Message { context, tag, length, signature, synchronous, .. } = *self;
        Heading { context, tag, length, signature, synchronous }
    }

    /// The message with a copy of its data, which lets go of the memory that had it.
    pub(crate) fn buffered(self) -> Result<Message> {
        let source = self.source.packed(self.length)?;
        Ok(Message { source, ..self })
    }
}

/// The messages of a rank.
#[derive(Default)]
pub(super) struct Messages {
    /// Messages that no receive has matched.
    unexpected: Arrivals,
    /// Receives that no message has matched.
    posted: Receives,
    /// The direct receive of a call that waits.
    waiting: Waiting,
    /// Messages that a probe has matched and taken out of the queue, to be received by number.
    matched: Numbers<u64, Unexpected>,
    /// Receives whose message is cleared and not begun, by sender and the sender's number.
    cleared: HashMap<(u32, u64), Receiving>,
    /// Sends that are announced and not cleared, with their receiver.
    announced: Numbers<u64, (u32, Outgoing)>,
    /// The numbers of sends and receives, and how those have ended that are over.
    requests: Requests,
    /// The memory of the host's other processes, if messages may be copied from there.
    memory: Option<Arc<PeerMemory>>,
    /// The type of the last short message, by its id, the number of its elements, and the hash of
    /// their signature.
    signed: Option<(u64, u64, u128)>,
}

/// A message that no receive has matched.
struct Unexpected {
    arrival: Arrival,
    body: Body,
    /// Under `--check`, what the sender has told of the message.
    known: Option<Box<Told>>,
}

enum Body {
    /// The data are here.
    Here(Data<'static>),
    /// The data are at the sender.
    Announced(Announced),
}

/// The data of a short message.
pub(super) enum Data<'a> {
    /// In the frame that brought them.
    Frame(&'a [u8]),
    /// Kept until a receive matches. Few bytes need no memory of their own.
    Kept(SmallVec<[u8; 32]>),
}

impl Data<'_> {
    fn into_owned(self) -> Data<'static> {
        match self {
            Data::Frame(bytes) => Data::Kept(SmallVec::from_slice(bytes)),
            Data::Kept(bytes) => Data::Kept(bytes),
        }
    }
}

impl Deref for Data<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Data::Frame(bytes) => bytes,
            Data::Kept(bytes) => bytes,
        }
    }
}

impl From<Data<'_>> for Bytes {
    fn from(data: Data<'_>) -> Bytes {
        match data {
            Data::Kept(bytes) if bytes.spilled() => Bytes::from(bytes.into_vec()),
            data => Bytes::from(Cow::from(&*data)),
        }
    }
}

/// A message whose data are at the sender.
#[derive(Clone, Copy)]
struct Announced {
    /// The sender's number of it.
    number: u64,
    /// The sender's memory that has the data.
    offer: Option<Offer>,
}

impl Announced {
    /// The message that a header announces.
    fn of(header: &Header) -> Announced {
        let offer = Offer { address: header.form, withdrawals: header.count as u32 };
        let offer = Some(offer).filter(|offer| offer.address != 0);
        Announced { number: header.operation, offer }
    }
}

/// The value of a `Clear` whose receiver has the data, or needs none.
const HAS_DATA: u64 = 1;

/// A receive that no message has matched, whose landing is in its slot.
struct Posted {
    number: u64,
    pattern: Pattern,
}

impl Messages {
    /// Whether a message waits that no receive has matched, as a flag to be read without the
    /// engine's lock.
    pub(super) fn unmatched(&self) -> Arc<AtomicBool> {
        self.unexpected.any()
    }

    /// Lets messages be copied from the memory of the host's other processes.
    pub(super) fn set_memory(&mut self, memory: Arc<PeerMemory>) {
        self.memory = Some(memory);
    }

    /// The hash of the signature of `count` elements of a type. That of the last message is kept.
    ///
    /// # Errors
    /// TYPE for too many elements.
    #[inline]
    pub(super) fn signature(&mut self, datatype: &Compiled, count: u64) -> Result<u128> {
        match self.signed {
            Some((id, of, hash)) if id == datatype.id() && of == count => Ok(hash),
            _ => {
                let hash = datatype.repeated(count)?;
                self.signed = Some((datatype.id(), count, hash));
                Ok(hash)
            }
        }
    }

    /// Starts to send a message: at once if it is short, there is credit and it isn't synchronous,
    /// otherwise by rendezvous. Returns the entry to be sent, and the number of the send, by which
    /// [`take_sent`](Messages::take_sent) reports its end; `None` if the entry is all of it.
    ///
    /// # Errors
    /// The peer is gone, or a value of a short message can't be sent.
    pub(super) fn start_send(
        &mut self,
        peer: u32,
        message: Message,
        peers: &Peers,
        notes: &mut Notes,
        out: &mut Outbox,
    ) -> Result<(Option<u64>, Outgoing)> {
        notes.tell_clock(peer, out);
        let heading = message.heading();
        let header = heading.header(Kind::Eager);
        if let Some(refused) = refused(peer, heading.context, peers) {
            return Err(refused);
        }
        if heading.is_short(peer, peers) && heading.has_credit(peer, peers, out) {
            // Packed first: a message that can't be sent costs no credit.
            let message = message.buffered()?;
            heading.spend(peer, out);
            let packed = message.source;
            return Ok((None, Outgoing::new(header, packed, Purpose::None)));
        }
        let number = self.requests.start_send();
        let bulk = Header { kind: Kind::Bulk, operation: number, ..header };
        let bulk = Outgoing::new(bulk, message.source, Purpose::Message(number));
        let offer = self.memory.as_ref().and_then(|memory| Some(memory.offer(bulk.address()?)));
        self.announced.insert(number, (peer, bulk));
        let offer = offer.unwrap_or(Offer { address: 0, withdrawals: 0 });
        let announce = Header {
            kind: Kind::Announce,
            operation: number,
            form: offer.address,
            count: offer.withdrawals.into(),
            ..header
        };
        Ok((Some(number), Outgoing::new(announce, Source::Empty, Purpose::None)))
    }

    /// Takes in a `Clear`: a receive has matched an announced message. Sends its data, unless the
    /// receiver has them.
    ///
    /// # Errors
    /// No such message is announced to the peer.
    pub(super) fn handle_clear(
        &mut self,
        peer: u32,
        number: u64,
        value: u64,
        out: &mut Outbox,
    ) -> Result<(), String> {
        let (to, bulk) = self.announced.remove(&number).ok_or(NOT_ANNOUNCED)?;
        if to != peer {
            return Err(NOT_ANNOUNCED.to_owned());
        }
        match value {
            HAS_DATA => self.finish_send(number, Ok(())),
            _ => out.push(peer, bulk),
        }
        Ok(())
    }

    /// The data of a message have been sent, or can't be.
    pub(super) fn finish_send(&mut self, number: u64, outcome: Result<()>) {
        self.requests.end_send(number, outcome);
    }

    /// Takes the outcome of a send, if it has ended.
    pub(super) fn take_sent(&mut self, number: u64) -> Option<Result<()>> {
        self.requests.take_sent(number)
    }

    /// Whether a send has ended.
    pub(super) fn is_sent(&self, number: u64) -> bool {
        self.requests.is_sent(number)
    }

    /// Notes that no call will ask for the end of a send. If it is under way, it goes on.
    pub(super) fn forget_send(&mut self, number: u64) {
        self.requests.forget(number);
    }

    /// Posts a receive. Returns its number, by which [`take_received`](Messages::take_received)
    /// reports its end.
    pub(super) fn start_receive(
        &mut self,
        pattern: Pattern,
        landing: Landing,
        peers: &Peers,
        out: &mut Outbox,
    ) -> u64 {
        if let Some(message) = self.unexpected.take(&pattern) {
            let number = self.requests.start_receive();
            self.deliver(message, number, landing, peers, out);
            number
        } else if let Some(gone) = lost(&pattern, peers) {
            self.requests.receive_at_once(Err(gone))
        } else {
            let number = self.requests.post(landing);
            self.posted.push(Posted { number, pattern });
            number
        }
    }

    /// Receives a message that is here, into the memory of a direct receive. `None`, and nothing
    /// has happened, if there is none, or if it can't just be copied.
    #[inline]
    pub(super) fn receive_directly(&mut self, direct: &Direct, out: &mut Outbox) -> Option<Status> {
        let status = self.unexpected.take_direct(direct, |message| match &message.body {
            Body::Here(data) if message.known.is_none() => direct.take(&message.arrival, data),
            _ => None,
        })?;
        out.return_credit(status.source as u32, cost(status.bytes));
        Some(status)
    }

    /// Starts a direct receive, for which no message may be here; false if there is one, or if
    /// another such receive waits.
    pub(super) fn start_direct(&mut self, direct: &Direct, peers: &Peers) -> bool {
        let is_here = |message: &Unexpected| direct.matches(&message.arrival);
        let is_first = matches!(self.waiting, Waiting::None) && !peers.is_troubled();
        if !is_first || self.unexpected.iter().any(is_here) {
            return false;
        }
        self.waiting = Waiting::For(*direct);
        true
    }

    /// The end of the direct receive, if it has come: its status, or `None` if its call has to post
    /// a receive.
    #[inline]
    pub(super) fn take_direct(&mut self) -> Option<Option<Status>> {
        let ended = match self.waiting {
            Waiting::Ended(status) => Some(status),
            Waiting::Disturbed => None,
            Waiting::None | Waiting::For(_) => return None,
        };
        self.waiting = Waiting::None;
        Some(ended)
    }

    /// Gives up the direct receive: lets go of its memory.
    pub(super) fn abandon_direct(&mut self) {
        self.waiting = Waiting::None;
    }

    /// The messages of a context that no receive has matched, as text.
    pub(super) fn describe_unmatched(&self, context: u32) -> String {
        /// The most kinds of messages that are listed.
        const LISTED: usize = 4;
        let (mut kinds, mut elsewhere) = (BTreeMap::<_, usize>::new(), 0);
        for Unexpected { arrival, .. } in self.unexpected.iter() {
            match arrival.context == context {
                true => *kinds.entry((arrival.peer, arrival.tag)).or_default() += 1,
                false => elsewhere += 1,
            }
        }
        let more: usize = kinds.values().skip(LISTED).sum::<usize>() + elsewhere;
        let kind = |((peer, tag), count)| format!("{count} of tag {tag} from rank {peer}");
        let mut listed: Vec<_> = kinds.into_iter().take(LISTED).map(kind).collect();
        if more > 0 {
            listed.push(format!("{more} others"));
        }
        match listed[..] {
            [] => "no unmatched message".to_owned(),
            _ => format!("unmatched messages: {}", listed.join(", ")),
        }
    }

    /// The data that users have sent and that no receive has matched: the reports of `--check`,
    /// with their kinds.
    pub(super) fn report_unmatched(&self, peers: &Peers) -> Vec<(String, String)> {
        let me = peers.me().rank;
        // A revocation ends the receives of messages that are under way.
        let is_due =
            |it: &&Unexpected| it.arrival.is_data() && peers.revoked(it.arrival.context).is_none();
        let data = self.unexpected.iter().filter(is_due);
        let report = |message: &Unexpected| {
            let Arrival { peer, tag, .. } = message.arrival;
            unmatched(me, peer, tag, message.known.as_deref())
        };
        data.map(report).collect()
    }

    /// An unexpected message that shows that its sender makes other collective calls than this
    /// rank; see [`Arrival::is_misplaced`].
    pub(super) fn misplaced(
        &self,
        context: u32,
        call: (i32, u128),
        from: Option<u32>,
    ) -> Option<OtherCall> {
        let mut arrivals = self.unexpected.iter().map(|message| &message.arrival);
        arrivals.find(|arrival| arrival.is_misplaced(context, call, from)).map(Arrival::other_call)
    }

    /// Takes out all messages of collective calls up to this number. Returns the first.
    pub(super) fn take_left_over(
        &mut self,
        context: u32,
        number: i32,
        peers: &Peers,
        out: &mut Outbox,
    ) -> Option<OtherCall> {
        let mut first = None;
        let is_left = |message: &Unexpected| message.arrival.is_left_over(context, number);
        for message in self.unexpected.extract(is_left) {
            first = first.or(Some(message.arrival.other_call()));
            // The sender of an announced message waits until it is received.
            let received = self.requests.start_receive();
            self.deliver(message, received, Landing::Nothing, peers, out);
            self.abandon(received, out);
        }
        first
    }

    /// The message that a receive with this pattern would get. It stays in the queue.
    ///
    /// # Errors
    /// There is no such message, and a rank that may send it is gone.
    pub(super) fn probe(&self, pattern: &Pattern, peers: &Peers) -> Option<Result<Arrival>> {
        let found = self.unexpected.first(pattern).map(|message| Ok(message.arrival));
        found.or_else(|| lost(pattern, peers).map(Err))
    }

    /// Takes the message that a receive with this pattern would get out of the queue. Returns it,
    /// and the number by which it is received.
    ///
    /// # Errors
    /// There is no such message, and a rank that may send it is gone.
    pub(super) fn claim(
        &mut self,
        pattern: &Pattern,
        peers: &Peers,
    ) -> Option<Result<(Arrival, u64)>> {
        let Some(message) = self.unexpected.take(pattern) else {
            return lost(pattern, peers).map(Err);
        };
        let (arrival, number) = (message.arrival, self.requests.start_receive());
        self.matched.insert(number, message);
        Some(Ok((arrival, number)))
    }

    /// Receives a claimed message; [`take_received`](Messages::take_received) reports its end by
    /// the same number.
    pub(super) fn receive_claimed(
        &mut self,
        number: u64,
        landing: Landing,
        peers: &Peers,
        out: &mut Outbox,
    ) {
        let Some(message) = self.matched.remove(&number) else { return };
        match (&message.body, peers.gone(message.arrival.peer)) {
            (Body::Announced(_), Some(gone)) => self.requests.end_receive(number, Err(gone)),
            _ => self.deliver(message, number, landing, peers, out),
        }
    }

    /// Takes a posted receive back; false if a message has matched it.
    pub(super) fn withdraw(&mut self, number: u64) -> bool {
        let is_posted = !self.posted.extract(|posted| posted.number == number).is_empty();
        if is_posted {
            self.requests.forget(number);
        }
        is_posted
    }

    /// Whether a receive has ended.
    pub(super) fn is_received(&self, number: u64) -> bool {
        self.requests.is_received(number)
    }

    /// Takes the outcome of a receive, if it has ended.
    pub(super) fn take_received(
        &mut self,
        number: u64,
        peers: &Peers,
        notes: &mut Notes,
    ) -> Option<Result<Delivery>> {
        let received = self.requests.take_received(number);
        match &received {
            Some(Ok(Delivery { known: Some(told), status, signature, .. })) => {
                let Status { source, tag, bytes, .. } = *status;
                let got = Got { peer: source as u32, tag, bytes, signature: *signature };
                notes.received(number, got, told, peers);
            }
            Some(Err(error)) => notes.failed(number, error, peers),
            _ => {}
        }
        received
    }

    /// Takes the status of a receive, if it has ended.
    #[inline]
    pub(super) fn take_status(
        &mut self,
        number: u64,
        peers: &Peers,
        notes: &mut Notes,
    ) -> Option<Result<Status>> {
        match self.requests.take_status(number) {
            Some(status) => Some(Ok(status)),
            None if self.requests.is_received(number) => {
                let received = self.take_received(number, peers, notes)?;
                Some(received.map(|delivery| delivery.status))
            }
            None => None,
        }
    }

    /// Gives up a send or receive: lets go of its memory.
    pub(super) fn abandon(&mut self, number: u64, out: &mut Outbox) {
        self.posted.extract(|posted| posted.number == number);
        self.cleared.retain(|_, receiving| receiving.number != number);
        self.requests.forget(number);
        if let Some((_, bulk)) = self.announced.get_mut(&number) {
            bulk.abandon();
            self.withdraw_offers();
        }
        out.abandon_message(number);
    }

    /// Takes in an `Eager`: a short message, with its data.
    pub(super) fn handle_eager(
        &mut self,
        peer: u32,
        header: &Header,
        data: Data<'_>,
        peers: &Peers,
        notes: &mut Notes,
        out: &mut Outbox,
    ) {
        let known = notes.told(peer);
        let arrival = arrival(peer, header, peers);
        let Some(number) = self.posted.take(&arrival) else {
            if self.waiting.take(&arrival, &data) {
                return out.return_credit(peer, cost(arrival.length));
            }
            let body = Body::Here(data.into_owned());
            return self.unexpected.push(Unexpected { arrival, body, known });
        };
        out.return_credit(peer, cost(arrival.length));
        let stream = peers.stream_or_own(peer);
        self.requests.land(number, |landing| {
            count(landing, &arrival, stream, peers);
            landing.receive(&arrival, known, stream, data)
        });
    }

    /// Takes in an `Announce`: a message whose data wait at the sender.
    pub(super) fn handle_announce(
        &mut self,
        peer: u32,
        header: &Header,
        peers: &Peers,
        notes: &mut Notes,
        out: &mut Outbox,
    ) {
        let known = notes.told(peer);
        let (arrival, announced) = (arrival(peer, header, peers), Announced::of(header));
        let Some(number) = self.posted.take(&arrival) else {
            self.waiting.announce(&arrival);
            let body = Body::Announced(announced);
            return self.unexpected.push(Unexpected { arrival, body, known });
        };
        if let Some(landing) = self.requests.take_landing(number) {
            let stream = peers.stream_or_own(peer);
            count(&landing, &arrival, stream, peers);
            let receiving = Receiving::new(number, landing, &arrival, known, stream);
            self.clear(&arrival, announced, number, receiving, out);
        }
    }

    /// Delivers a message of the queue to a receive that matches it: takes in its data, or clears
    /// it.
    #[inline]
    fn deliver(
        &mut self,
        Unexpected { arrival, body, known }: Unexpected,
        number: u64,
        landing: Landing,
        peers: &Peers,
        out: &mut Outbox,
    ) {
        let stream = peers.stream_or_own(arrival.peer);
        count(&landing, &arrival, stream, peers);
        match body {
            Body::Here(data) => {
                out.return_credit(arrival.peer, cost(arrival.length));
                let outcome = landing.receive(&arrival, known, stream, data);
                self.requests.end_receive(number, outcome);
            }
            Body::Announced(announced) => {
                let receiving = Receiving::new(number, landing, &arrival, known, stream);
                self.clear(&arrival, announced, number, receiving, out);
            }
        }
    }

    /// Takes in the data of an announced message, or asks its sender for them.
    #[inline(never)] // The path of short messages stays small.
    fn clear(
        &mut self,
        arrival: &Arrival,
        Announced { number: operation, offer }: Announced,
        number: u64,
        receiving: Result<Receiving>,
        out: &mut Outbox,
    ) {
        let mut value = 0;
        match receiving {
            Ok(mut receiving) => {
                if receiving.needs_nothing() || self.pull(&mut receiving, offer) {
                    self.requests.end_receive(number, receiving.into_outcome(None));
                    value = HAS_DATA;
                } else {
                    receiving.reserve(arrival.length);
                    self.cleared.insert((arrival.peer, operation), receiving);
                }
            }
            Err(error) => self.requests.end_receive(number, Err(error)),
        }
        // Cleared even if the message doesn't fit: its sender waits for this. The data are ignored
        // then.
        let clear = Brief { kind: Kind::Clear, context: 0, operation, value };
        out.push_brief(arrival.peer, clear);
    }

    /// Takes back the memory that messages have offered: it may be overwritten from now on.
    fn withdraw_offers(&self) {
        if let Some(memory) = &self.memory {
            memory.withdraw();
        }
    }

    /// Copies the data of a message that is offered; false if that isn't possible.
    fn pull(&self, receiving: &mut Receiving, offer: Option<Offer>) -> bool {
        let (Some(memory), Some(offer)) = (&self.memory, offer) else { return false };
        receiving.pull(memory, &offer)
    }

    /// Opens the stream of a `Bulk`. Returns the receive that cleared it, unless that has been
    /// given up.
    pub(super) fn open_bulk(&mut self, peer: u32, header: &Header) -> Option<Receiving> {
        self.cleared.remove(&(peer, header.operation))
    }

    /// Ends a receive: its message is here. `cut` is the error if the message ended early.
    pub(super) fn finish_receive(&mut self, receiving: Receiving, cut: Option<Error>) {
        self.requests.end_receive(receiving.number, receiving.into_outcome(cut));
    }

    /// Ends with an error all sends to a peer that is gone, and all receives that wait for a
    /// message of it. Messages that are here can still be received.
    pub(super) fn peer_gone(&mut self, peer: u32, gone: impl Fn() -> Error) {
        let announced = std::mem::take(&mut self.announced);
        for (number, (to, bulk)) in announced {
            if to == peer {
                // A peer may be given up and live.
                self.withdraw_offers();
                self.finish_send(number, Err(gone()));
            } else {
                self.announced.insert(number, (to, bulk));
            }
        }
        for ((from, operation), receiving) in std::mem::take(&mut self.cleared) {
            if from == peer {
                self.requests.end_receive(receiving.number, Err(gone()));
            } else {
                self.cleared.insert((from, operation), receiving);
            }
        }
        self.unexpected.extract(|message| {
            message.arrival.peer == peer && matches!(message.body, Body::Announced(_))
        });
        self.waiting.disturb();
        for posted in self.posted.extract(|posted| posted.pattern.sender.may_be(peer)) {
            self.requests.end_receive(posted.number, Err(gone()));
        }
    }

    /// Whether a send or a receive on a communicator is under way.
    pub(super) fn are_under_way_on(&self, communicator: u32) -> bool {
        let is_on = |context| Context::communicator(context) == communicator;
        self.posted.any(|posted| is_on(posted.pattern.context))
            || self.announced.values().any(|(_, bulk)| is_on(bulk.context()))
            || self.cleared.values().any(|receiving| is_on(receiving.context))
    }

    /// Ends with an error all sends and receives on a communicator that is revoked.
    pub(super) fn revoke(&mut self, communicator: u32) {
        self.waiting.disturb();
        let is_on = |context| Context::revocable(context) == Some(communicator);
        let revoked = || Err(ErrorKind::Revoked.into());
        for posted in self.posted.extract(|posted| is_on(posted.pattern.context)) {
            self.requests.end_receive(posted.number, Err(ErrorKind::Revoked.into()));
        }
        let Messages { announced, cleared, requests, .. } = self;
        for (number, (_, bulk)) in announced.iter_mut() {
            if is_on(bulk.context()) {
                // The receiver may clear it before it learns of the revocation.
                bulk.abandon();
                requests.end_send(*number, revoked());
            }
        }
        cleared.retain(|_, receiving| {
            let is_revoked = is_on(receiving.context);
            if is_revoked {
                requests.end_receive(receiving.number, Err(ErrorKind::Revoked.into()));
            }
            !is_revoked
        });
        self.withdraw_offers();
    }

    #[cfg(test)]
    pub(super) fn remembers_no_send(&self) -> bool {
        self.requests.remember_no_send() && self.announced.is_empty()
    }
}

/// The message that a header of a peer opens.
#[inline]
fn arrival(peer: u32, header: &Header, peers: &Peers) -> Arrival {
    let intake = peers.intake(peer);
    Arrival {
        peer,
        context: header.context,
        tag: header.displacement as i32,
        signature: signature(header),
        length: header.length,
        by_length: intake.by_length,
        is_native: intake.is_native,
    }
}

/// Counts the data of a message that has matched a receive, unless they are those of a like rank.
#[inline]
fn count(landing: &Landing, arrival: &Arrival, stream: &Architecture, peers: &Peers) {
    if let (Landing::Typed { datatype, .. }, false) = (landing, arrival.is_native) {
        peers.count_data(arrival.peer, arrival.length, !datatype.has_same_items(stream));
    }
}

/// The hash of a message's type signature.
fn signature(header: &Header) -> u128 {
    match header.small {
        true => u128::from(header.form) << 64 | header.signature,
        false => header.signature,
    }
}

/// The credit that a short message of so many bytes takes until a receive has matched it.
fn cost(length: u64) -> u64 {
    length + Header::SIZE as u64
}

const NOT_ANNOUNCED: &str = "a Clear of a message that is not announced";

/// The error of a send to a rank that is gone, or on a communicator that is revoked.
#[inline]
fn refused(peer: u32, context: u32, peers: &Peers) -> Option<Error> {
    if !peers.is_troubled() {
        return None;
    }
    peers.gone(peer).or_else(|| peers.revoked(context))
}

/// The error of a receive without a message, if a rank that may send it is gone, or the
/// communicator revoked.
#[inline]
fn lost(pattern: &Pattern, peers: &Peers) -> Option<Error> {
    if !peers.is_troubled() {
        return None;
    }
    peers.revoked(pattern.context).or_else(|| gone(pattern, peers))
}

/// The error of a receive without a message, if a rank that may send it is gone. A failure that is
/// acknowledged on the communicator ends no receive from any rank.
#[cold]
fn gone(pattern: &Pattern, peers: &Peers) -> Option<Error> {
    match &pattern.sender {
        Sender::One(sender) => peers.gone(*sender),
        Sender::Any(group) => {
            let known = peers.acknowledged(Context::communicator(pattern.context));
            let mut ranks = group.processes().iter().filter(|rank| !known.contains(rank));
            ranks.find_map(|&rank| peers.gone(rank))
        }
    }
}
