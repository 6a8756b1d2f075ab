//! The engine: the links, the outbox and the protocols of one rank, under one lock.
//!
//! Every waiting call runs [`Engine::progress`]: it takes in the frames that have arrived and sends
//! those for which the links have room. Handlers never send; they append to the outbox. An entry
//! there holds the place to pack bytes from and not the bytes, so a transfer stops when a link is
//! full and resumes at its position.
//!
//! Each protocol is a struct with private fields, and knows nothing of the link or of [`State`].
//! Its `handle_*` methods take a frame (header and data) and the few other structs that they need,
//! and append answers to the [`Outbox`]. An error of theirs means that the peer broke the protocol;
//! the peer is lost then.
//!
//! | protocol | frames | module |
//! |---|---|---|
//! | introductions | Hello | [`hello`] |
//! | operations of peers on this rank's windows | Put Get Accumulate Fetch Swap | [`target`] |
//! | forms of peers' types | Define Retire | [`target`] |
//! | notifications, which operations of peers ask for | Put Get Accumulate Fetch | [`notified`] |
//! | posts and completes | Post Complete | [`target`] |
//! | operations of this rank on its peers' windows | Reply Refuse Ack Done | [`origin`] |
//! | locks | Lock Unlock | [`locks`] |
//! | answers after all earlier frames | Ping | this module |
//! | messages between two ranks | Eager Announce Clear Bulk | [`messages`] |
//! | credit for short messages | Credit | [`outbox`] |
//! | barriers by messages | Meet | [`meetings`] |
//! | windows in whose epochs a rank panicked | Poison | [`poison`] |
//! | agreements among the survivors of a communicator | Agree | [`agreements`] |
//! | communicators that are revoked | Revoke | [`revoked`] |
//! | `--check` | Note | [`notes`] |
//! | streams of several frames | More Cut | [`streams`] |
//!
//! Around them, [`peers`] holds the identity of each rank and whether it is gone, [`loss`] ends
//! everything that waits for a peer that is gone, and [`progress`] moves frames between the link
//! and the protocols. This module decides which frame goes to which protocol; [`calls`] has the
//! methods of [`State`] that calls use.

mod agreements;
mod calls;
mod completion;
mod context;
mod drops;
mod hello;
mod locks;
mod loss;
mod mailbox;
mod meetings;
mod messages;
mod notes;
mod notified;
mod operation;
mod origin;
mod outbox;
mod peers;
mod poison;
mod progress;
mod reply;
mod revoked;
mod scatter;
mod streams;
mod target;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use longshore_transport::Link;
use zeroize::{Zeroize, Zeroizing};

use crate::check::note;
use crate::control::Tally;
use crate::error::Error;
use crate::object::Names;
use crate::observe::Taken;
use crate::tap::Tap;
use crate::wire::{Brief, CONTROL_LIMIT, Founding, Frame, Header, Kind, hello_limit};

use agreements::{Agreements, Step};
use drops::Drops;
use hello::Introductions;
use locks::Locks;
use meetings::Meetings;
use messages::Messages;
use notes::Notes;
use origin::Operations;
use outbox::Outbox;
use peers::Peers;
use poison::Poisoned;
use reply::acknowledge;
use revoked::Revoked;
use streams::{Sink, Stream, Streams};
use target::{Fetched, LONGEST_FORM, Outcome, Target};

pub(crate) use agreements::{Decision, Subject, Vote};
pub(crate) use completion::{Ledger, Ticket};
pub(crate) use context::{Channel, Context};
pub(crate) use locks::EXPOSED;
pub(crate) use mailbox::{ANSWER, OPERANDS};
pub(crate) use meetings::Venue;
use messages::Data;
pub(crate) use messages::{
    Arrival, Delivery, Direct, EAGER, EAGER_FAR, Heading, Landing, Message, OtherCall, Pattern,
    Sender,
};
pub use messages::{Status, UNDEFINED};
use operation::Due;
pub(crate) use operation::{BY_NUMBER, Operation};
pub(crate) use origin::Fetch;
pub(crate) use outbox::{Outgoing, Purpose, Source};
pub(crate) use peers::Me;
pub(crate) use revoked::Revocable;
pub use target::Policy;
pub(crate) use target::{Addresses, Attachments, Exposure, Measures, Opened, check_counter, reach};

/// The engine of one rank.
pub(crate) struct Engine {
    /// Declared before the link: dropping an access polls the link's connections.
    state: State,
    link: Box<dyn Link>,
    /// The record of frames, for people.
    tap: Tap,
    /// This rank's mailbox, if ranks of this host have enough processors to poll.
    mailbox: Option<mailbox::Own>,
}

/// All protocols of a rank. The link is apart, so that a frame can lie in the link while it is
/// handled.
pub(crate) struct State {
    peers: Peers,
    introductions: Introductions,
    outbox: Outbox,
    notes: Notes,
    streams: Streams,
    /// Declared before `target`: dropping an access polls the network, which reaches the windows.
    operations: Operations,
    target: Target,
    drops: Drops,
    locks: Locks,
    messages: Messages,
    meetings: Meetings,
    poisoned: Poisoned,
    agreements: Agreements,
    revoked: Revoked,
    /// Whether a frame has arrived, since the last question, that is no answer.
    asked: bool,
}

impl Engine {
    pub(crate) fn new(
        me: Me,
        link: Box<dyn Link>,
        secret: Zeroizing<Vec<u8>>,
        names: Arc<Names>,
        founding: Option<Founding>,
    ) -> Engine {
        let state = State {
            peers: Peers::new(me),
            introductions: Introductions::new(secret, founding),
            outbox: Outbox::new(me.size, me.room),
            notes: Notes::new(me.size),
            streams: Streams::default(),
            operations: Operations::new(me.size),
            target: Target::new(me.size),
            drops: Drops::new(names),
            locks: Locks::new(me.rank),
            messages: Messages::default(),
            meetings: Meetings::default(),
            poisoned: Poisoned::default(),
            agreements: Agreements::new(me.rank),
            revoked: Revoked::default(),
            asked: false,
        };
        Engine { state, link, tap: Tap::default(), mailbox: None }
    }

    #[inline]
    pub(crate) fn state(&mut self) -> &mut State {
        &mut self.state
    }

    /// The counts of frames that the observer of this rank has.
    pub(crate) fn frames_taken(&mut self) -> Taken {
        let Engine { state, tap, .. } = self;
        let own = state.peers.me().architecture;
        let is_unlike = |peer| {
            let peer = state.peers.representation(peer);
            peer.is_some_and(|(other, _)| !other.same_representation(&own))
        };
        let taken = tap.observer().map(|observer| observer.taken(is_unlike));
        let mut taken = taken.unwrap_or_default();
        taken.messages = state.peers.exchanged();
        taken
    }

    /// The record of frames that this rank sent and received.
    pub(crate) fn tap(&mut self) -> &mut Tap {
        &mut self.tap
    }
}

impl State {
    /// Takes in a frame. Returns the bytes that the operation in it fetched, if the caller has to
    /// send them.
    ///
    /// # Errors
    /// The peer broke the protocol.
    #[inline(always)] // It has one caller, through which each frame passes.
    fn handle_frame(&mut self, peer: u32, bytes: &[u8]) -> Result<Option<Fetched>, String> {
        let frame = Frame::decode(bytes).ok_or("bytes that are no frame")?;
        let is_known = self.peers.is_known(peer);
        let (Frame::Long(Header { kind, .. }, _) | Frame::Short(Brief { kind, .. }, _)) = frame;
        self.asked |= !kind.is_answer();
        match frame {
            Frame::Long(header, data) => {
                let is_whole = header.length == data.len() as u64;
                if header.kind == Kind::Reply && is_whole && is_known {
                    self.handle_reply(peer, &header, data)?;
                    return Ok(None);
                }
                if let Some(fetched) = self.handle_again(peer, &header, data) {
                    if fetched.is_none() {
                        acknowledge(peer, &header, &mut self.outbox);
                    }
                    self.notify(Due::of(peer, &header));
                    return Ok(fetched);
                }
                if !is_known && header.kind != Kind::Hello {
                    return Err(format!("a {kind:?} before its hello"));
                }
                self.handle_opening(peer, header, data)?;
            }
            // The frame may be a later one of the peer's hello. Or the peer knows all ranks
            // already, and meets them.
            Frame::Short(brief, _)
                if !is_known && !matches!(brief.kind, Kind::More | Kind::Meet) =>
            {
                return Err(format!("a {kind:?} before its hello"));
            }
            Frame::Short(brief, data) => self.handle_brief(peer, &brief, data)?,
        }
        Ok(None)
    }

    /// Takes in a frame, if it is a short message with the small header and breaks no rule.
    #[inline(always)] // It has one caller, through which each frame passes.
    fn handle_short_message(&mut self, peer: u32, bytes: &[u8]) -> bool {
        let Some((header, data)) = Header::of_short_message(bytes) else { return false };
        let State { peers, outbox, notes, streams, messages, .. } = self;
        let is_right = peers.is_known(peer) && !streams.is_streaming(peer);
        if !is_right || header.length > EAGER_FAR {
            return false;
        }
        self.asked = true;
        messages.handle_eager(peer, &header, Data::Frame(data), peers, notes, outbox);
        true
    }

    /// Takes in an operation that is like one of its origin's last. In line, for the hot path.
    #[inline(always)]
    fn handle_again(&mut self, peer: u32, header: &Header, data: &[u8]) -> Option<Option<Fetched>> {
        if self.notes.is_on() || self.streams.is_streaming(peer) {
            return None;
        }
        self.target.handle_again(peer, header, data, &self.peers.me().architecture)
    }

    /// Takes in a `Reply` in one frame.
    fn handle_reply(&mut self, peer: u32, header: &Header, data: &[u8]) -> Result<(), String> {
        if self.streams.is_streaming(peer) {
            return Err("a Reply within a stream".to_owned());
        }
        let State { operations, peers, notes, outbox, .. } = self;
        operations.handle_reply(peer, header, data, peers, notes, outbox)
    }

    /// Takes in a frame with a short header.
    fn handle_brief(&mut self, peer: u32, brief: &Brief, data: &[u8]) -> Result<(), String> {
        let State { outbox, notes, operations, target, locks, messages, meetings, .. } = self;
        let Brief { kind, context, operation, value } = *brief;
        match kind {
            Kind::More => {
                if let Some(stream) = self.streams.handle_more(peer, value, data)? {
                    return self.finish(peer, stream, None);
                }
            }
            Kind::Cut => {
                let (stream, error) = self.streams.handle_cut(peer, context)?;
                return self.finish(peer, stream, Some(error));
            }
            Kind::Retire => target.handle_retire(peer, operation),
            Kind::Ack => operations.handle_ack(peer, context, value)?,
            Kind::Done => {
                let done = Operation { target: peer, window: context, number: operation };
                operations.complete(done, None, notes, outbox)?;
            }
            Kind::Ping => outbox.push_done(peer, context, operation),
            Kind::Credit => outbox.handle_credit(peer, value)?,
            Kind::Clear => messages.handle_clear(peer, operation, value, outbox)?,
            Kind::Meet => meetings.handle_meet(peer, brief, outbox)?,
            Kind::Lock => locks.handle_lock(peer, brief, target.exposures(), notes, outbox),
            Kind::Unlock => {
                locks.handle_unlock(peer, brief, target.exposures(), notes, outbox)?;
            }
            Kind::Post => target.exposures().handle_signal(peer, context, Tally::Posts),
            Kind::Complete => target.exposures().handle_signal(peer, context, Tally::Completes),
            _ => return self.handle_rare(peer, brief),
        }
        Ok(())
    }

    /// Takes in a frame with a short header that no path of any speed has to see.
    #[cold]
    #[inline(never)]
    fn handle_rare(&mut self, peer: u32, brief: &Brief) -> Result<(), String> {
        match brief.kind {
            Kind::Poison => {
                self.poisoned.handle_poison(peer, brief.context, brief.value, &self.peers);
            }
            Kind::Revoke => self.revoke(brief.context),
            kind => return Err(format!("a {kind:?} with a short header")),
        }
        Ok(())
    }

    /// Takes in a frame with a long header: an operation without a stream, or the opening of a
    /// stream. Out of line: in line, each poll of the link would prepare for all of them.
    #[inline(never)]
    fn handle_opening(&mut self, peer: u32, header: Header, data: &[u8]) -> Result<(), String> {
        use Kind::*;
        let State { peers, outbox, notes, streams, target, messages, .. } = self;
        let is_whole = data.len() as u64 == header.length;
        if matches!(header.kind, Put | Get | Accumulate | Fetch | Swap) {
            notes.record(peer, &header, target, peers, outbox);
            target.remember(peer, &header, peers);
        }
        match header.kind {
            Get => {
                target.handle_get(peer, &header, peers, outbox);
                return Ok(());
            }
            Announce => {
                messages.handle_announce(peer, &header, peers, notes, outbox);
                return Ok(());
            }
            _ => {}
        }
        if streams.is_streaming(peer) {
            return Err(format!("a {:?} within a stream", header.kind));
        }
        if is_whole {
            match target.handle_whole(peer, &header, data, peers, outbox) {
                Some(Outcome::Done) => {
                    self.notify(Due::of(peer, &header));
                    return Ok(());
                }
                Some(Outcome::Refused) => return Ok(()),
                None => {}
            }
        }
        let sink = self.open(peer, &header)?;
        match self.streams.open(peer, header, sink, data)? {
            Some(stream) => self.finish(peer, stream, None),
            None => Ok(()),
        }
    }

    /// Chooses the sink of a stream by its opening frame.
    ///
    /// # Errors
    /// The stream is longer than any of its kind.
    fn open(&mut self, peer: u32, header: &Header) -> Result<Sink, String> {
        let State { peers, operations, target, messages, .. } = self;
        let collect = |limit: u64| match header.length <= limit {
            true => Ok(Sink::Collect(Vec::with_capacity(header.length as usize))),
            false => Err(format!("{:?} of {} bytes, above {limit}", header.kind, header.length)),
        };
        let size = peers.me().size;
        let sink = match header.kind {
            Kind::Hello => return collect(hello_limit(size) as u64),
            Kind::Refuse => return collect(CONTROL_LIMIT as u64),
            Kind::Eager => return collect(EAGER_FAR),
            Kind::Note => return collect(note::longest(size) as u64),
            Kind::Agree => return collect(Step::longest(size) as u64),
            Kind::Define if header.length > LONGEST_FORM => {
                target.handle_long_define(peer, header);
                Sink::Ignore
            }
            Kind::Define => return collect(LONGEST_FORM),
            Kind::Put => target.open_put(peer, header, peers).map_or_else(Sink::Refused, Sink::Put),
            Kind::Accumulate | Kind::Fetch => {
                let accumulate = target.open_accumulate(peer, header, peers);
                accumulate.map_or_else(Sink::Refused, |it| Sink::Accumulate(Box::new(it)))
            }
            Kind::Swap => {
                let swap = target.open_swap(peer, header, peers);
                swap.map_or_else(Sink::Refused, |it| Sink::Swap(Box::new(it)))
            }
            Kind::Reply => match operations.open_reply(peer, header, peers) {
                Some((Ok(scatter), bytes)) => Sink::Reply(scatter, bytes),
                Some((Err(error), bytes)) => Sink::Misfit(error, bytes),
                None => Sink::Ignore,
            },
            Kind::Bulk => {
                let receiving = messages.open_bulk(peer, header);
                receiving.map_or(Sink::Ignore, |it| Sink::Receive(Box::new(it)))
            }
            kind => return Err(format!("a stream of {kind:?}")),
        };
        Ok(sink)
    }

    /// Hands a stream that has ended to its protocol. `cut` is the error if it ended early.
    fn finish(
        &mut self,
        peer: u32,
        Stream { header, sink, .. }: Stream,
        cut: Option<Error>,
    ) -> Result<(), String> {
        let State { peers, outbox, notes, operations, target, messages, .. } = self;
        let header = &header;
        let is_done = matches!((&sink, &cut), (Sink::Put(_) | Sink::Accumulate(_), None));
        match (sink, cut) {
            (Sink::Put(_), _) => acknowledge(peer, header, outbox),
            (Sink::Accumulate(accumulate), cut) => {
                target.finish_accumulate(peer, header, (*accumulate, cut), peers, outbox);
            }
            (Sink::Swap(swap), cut) => {
                target.finish_swap(peer, header, (*swap, cut), peers, outbox);
            }
            (Sink::Refused(error), _) => target.refuse(peer, header, &error, peers, outbox),
            (Sink::Reply(scatter, _), _) => {
                // Lets go of the memory before the calls that wait for it return.
                drop(scatter);
                operations.finish_reply(peer, header, None, peers, notes, outbox)?;
            }
            (Sink::Misfit(error, bytes), _) => {
                let failure = Some((error, bytes));
                operations.finish_reply(peer, header, failure, peers, notes, outbox)?;
            }
            // An operation that was given up is completed even so.
            (Sink::Ignore, _) if header.kind == Kind::Reply => {
                operations.finish_reply(peer, header, None, peers, notes, outbox)?;
            }
            (Sink::Ignore, _) => {}
            (Sink::Receive(receiving), cut) => messages.finish_receive(*receiving, cut),
            (Sink::Collect(mut bytes), Some(_)) => {
                bytes.zeroize();
                return Err(format!("a {:?} cut short", header.kind));
            }
            (Sink::Collect(bytes), None) => return self.finish_whole(peer, header, bytes),
        }
        if is_done {
            self.notify(Due::of(peer, header));
        }
        Ok(())
    }

    /// Hands a stream that was collected to its protocol.
    fn finish_whole(&mut self, peer: u32, header: &Header, bytes: Vec<u8>) -> Result<(), String> {
        let State { peers, outbox, notes, operations, target, messages, .. } = self;
        match header.kind {
            Kind::Define => target.handle_define(peer, header, &bytes, peers.me()),
            Kind::Hello => {
                // The hello has the job's secret.
                let bytes = Zeroizing::new(bytes);
                self.introductions.handle_hello(peer, &bytes, peers, outbox)?;
            }
            Kind::Refuse => {
                operations.handle_refusal(peer, header, &bytes, peers, notes, outbox)?;
            }
            Kind::Note => {
                if let Some(confirmed) = notes.handle_note(peer, header, &bytes, outbox)? {
                    operations.settle(confirmed);
                }
            }
            Kind::Agree => {
                let step = Step::decode(header.tag, &bytes, peers.me().size)?;
                self.handle_step(peer, (header.context, header.operation as u32), step);
            }
            Kind::Eager => {
                let data = Data::Kept(bytes.into());
                messages.handle_eager(peer, header, data, peers, notes, outbox);
            }
            kind => return Err(format!("a stream of {kind:?}")),
        }
        Ok(())
    }
}
