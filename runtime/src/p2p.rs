//! Messages between two ranks: typed data, and types themselves (MPI-5.0 section 3.2; seed 004).
//!
//! Left out: other modes than the standard one, persistent requests.

mod probe;
mod request;

use std::cell::Cell;

use shipable::{Form, Tag, form::Limits};

use crate::communicator::{ANY_SOURCE, ANY_TAG, Communicator};
use crate::engine::{
    Channel, Delivery, Keep, Landing, Message, Pattern, Sender, Source, State, Status,
};
use crate::error::{Error, ErrorKind, Result};
use crate::group::Group;
use crate::group::PROC_NULL;
use crate::job::Activity;
use crate::memory::{Span, scope};
use crate::origin::{Destination, Elementwise, Origin, What};
use crate::process::Process;
use crate::types::{ForeignType, OTHER_RANK, Type};
use crate::wire::tag_to_wire;

pub use probe::{Envelope, Matched};
pub use request::{Receiving, Sending};

impl Communicator {
    /// Sends data to a rank; returns once the data may be changed again (MPI-5.0 section 3.4).
    ///
    /// They travel in this rank's representation, and the receiver makes them right. A short message is buffered; a long
    /// one waits for its receive.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let world = rank.world();
    /// let (next, before) = ((world.rank() + 1) % world.size(), (world.rank() + world.size() - 1) % world.size());
    /// world.send(&[1.5, 2.5], next, 0)?;
    /// let mut got = [0.0; 2];
    /// let status = world.recv(&mut got, before, 0)?;
    /// assert_eq!((got, status.count), ([1.5, 2.5], 2));
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// RANK, TAG, COUNT, BUFFER for what they name; CONVERSION where an emulated representation can't hold a value of a
    /// slice; PROC_ABORTED if the rank is gone.
    pub fn send<'a>(&self, data: impl Into<Origin<'a>>, dest: i32, tag: i32) -> Result<()> {
        let data = data.into();
        self.call("send", Activity::Send, dest, || self.send_on(data, dest, tag))
    }

    /// Receives data that a rank sent with a tag, or [`ANY_SOURCE`] and [`ANY_TAG`] (MPI-5.0 section 3.2.4).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// use longshore::{ANY_SOURCE, ANY_TAG};
    ///
    /// let world = rank.world();
    /// world.send(&[7], world.rank(), 42)?;
    /// // Room for more than comes.
    /// let mut room = [0; 8];
    /// let status = world.recv(&mut room, ANY_SOURCE, ANY_TAG)?;
    /// assert_eq!((status.source, status.tag, status.count), (world.rank(), 42, 1));
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// TRUNCATE for a longer message, TYPE for one of another signature, CONVERSION for a value that doesn't fit here;
    /// PROC_ABORTED if the rank is gone.
    pub fn recv<'a>(
        &self,
        room: impl Into<Destination<'a>>,
        source: i32,
        tag: i32,
    ) -> Result<Status> {
        let room = room.into();
        self.call("recv", Activity::Receive, source, || self.recv_on(room, source, tag))
    }

    /// Sends a type to a rank, which can then use it as the target type of operations on this process, and for nothing else
    /// (rule T5).
    ///
    /// What travels is right in this rank's memory alone, even if the type is portable.
    ///
    /// ```
    /// # use longshore::{Info, Window};
    /// # let rank = longshore::init()?;
    /// use longshore::Datatype;
    ///
    /// // A pair whose second member lies 16 bytes behind its first, whatever others would make of it.
    /// let members = [Datatype::int(), Datatype::double()];
    /// let pair = rank.commit(&Datatype::struct_(&[1, 1], &[0, 16], &members)?)?;
    /// let mut window = Window::allocate(rank.world(), 64, 1, &Info::default())?;
    /// let me = rank.world().rank();
    /// rank.world().type_send(&pair, me, 0)?;
    /// let foreign = rank.world().type_recv(me, 0)?;
    /// let mut own = [0u8; 24];
    /// own[..4].copy_from_slice(&7i32.to_ne_bytes());
    /// let origin = longshore::Origin::typed(&own[..], 1, &pair);
    /// window.fence(|epoch| epoch.put(origin, me, 0, 1, &foreign))?;
    /// assert_eq!(window.get::<i32>(0)?, 7);
    /// window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`send`](Communicator::send).
    pub fn type_send(&self, datatype: &Type, dest: i32, tag: i32) -> Result<()> {
        self.call("type_send", Activity::Send, dest, || {
            if !datatype.is_of(self.process().names()) {
                return Err(OTHER_RANK.into());
            }
            let form = datatype.form().to_locale(&self.process().me().architecture)?;
            let bytes = encode_type(&form, &datatype.to_string());
            let message = Message {
                context: self.context(Channel::Types),
                tag: checked_tag(tag)?,
                length: bytes.len() as u64,
                signature: 0,
                source: Source::Bytes(bytes.into()),
            };
            let Some(peer) = self.member(dest)? else { return Ok(()) };
            let transfer = Transfer::of(self);
            transfer.start_send(peer, message)?;
            transfer.finish_send()
        })
    }

    /// Receives a type that its owner sent with [`type_send`](Communicator::type_send).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let world = rank.world();
    /// world.type_send(&rank.type_of::<f64>()?, world.rank(), 0)?;
    /// let foreign = world.type_recv(world.rank(), 0)?;
    /// assert_eq!(foreign.builder(), world.rank() as u32);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`recv`](Communicator::recv); RANK for PROC_NULL, of which no type comes; TYPE for a form with an unknown tag (rule T6) or that
    /// is none.
    pub fn type_recv(&self, source: i32, tag: i32) -> Result<ForeignType> {
        self.call("type_recv", Activity::Receive, source, || {
            if source != ANY_SOURCE && !matches!(self.member(source), Ok(Some(_))) {
                return Err(self.no_rank(source).into());
            }
            let pattern = self.pattern(source, tag, Channel::Types)?;
            let transfer = Transfer::of(self);
            transfer.start_receive(pattern, Landing::Bytes);
            let delivery = transfer.await_delivery().inspect_err(|_| transfer.abandon())?;
            let builder = delivery.status.source as u32;
            let (form, text) = decode_type(&delivery.bytes, builder)?;
            ForeignType::new(self.process().names(), form, text, builder)
        })
    }

    /// Sends to one rank and receives from another at the same time (MPI-5.0 section 3.10): two ranks that exchange long
    /// messages this way don't wait for each other.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let world = rank.world();
    /// let (next, before) = ((world.rank() + 1) % world.size(), (world.rank() + world.size() - 1) % world.size());
    /// let mut got = [0];
    /// world.sendrecv((&[world.rank()], next, 0), (&mut got, before, 0))?;
    /// assert_eq!(got, [before]);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`send`](Communicator::send) and [`recv`](Communicator::recv).
    pub fn sendrecv<'a, 'b>(
        &self,
        (data, dest, send_tag): (impl Into<Origin<'a>>, i32, i32),
        (room, source, recv_tag): (impl Into<Destination<'b>>, i32, i32),
    ) -> Result<Status> {
        let (data, room) = (data.into(), room.into());
        let both = || -> Result<Status> {
            let send_tag = checked_tag(send_tag)?;
            let peer = self.member(dest)?;
            let pattern = match source {
                PROC_NULL => None,
                _ => Some(self.pattern(source, recv_tag, Channel::Data)?),
            };
            let transfer = Transfer::of(self);
            scope(
                |_| transfer.abandon(),
                |scope| {
                    let receives = pattern.is_some();
                    if let Some(pattern) = pattern {
                        let span = scope.lend_mut(room.loan);
                        let landing = self.landing(span, &room.what, Keep::Lender)?;
                        transfer.start_receive(pattern, landing);
                    }
                    if let Some(peer) = peer {
                        let span = scope.lend(data.loan);
                        let (data, keep) = (&data.what, Keep::Lender);
                        let message = self.message(span, data, send_tag, keep)?;
                        transfer.start_send(peer, message)?;
                    }
                    transfer.finish_send()?;
                    if receives { transfer.finish_receive() } else { Ok(NOTHING) }
                },
            )
        };
        let place = |error: Error| error.at(|| self.toward("sendrecv", dest));
        self.call("sendrecv", Activity::Receive, source, || both().map_err(place))
    }

    /// Makes a call to or from another rank.
    fn call<T>(
        &self,
        call: &'static str,
        activity: Activity,
        other: i32,
        body: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let process = self.process();
        let made = || {
            self.ready()?;
            let peer = self.member(other).ok().flatten();
            process.during(activity, peer.unwrap_or(other as u32), body)
        };
        made().map_err(|error| self.raise(error.at(|| self.toward(call, other))))
    }

    fn send_on(&self, data: Origin<'_>, dest: i32, tag: i32) -> Result<()> {
        let tag = checked_tag(tag)?;
        let Some(peer) = self.member(dest)? else { return Ok(()) };
        let transfer = Transfer::of(self);
        scope(
            |_| transfer.abandon(),
            |scope| {
                let span = scope.lend(data.loan);
                let message = self.message(span, &data.what, tag, Keep::Lender)?;
                transfer.start_send(peer, message)?;
                transfer.finish_send()
            },
        )
    }

    fn recv_on(&self, room: Destination<'_>, source: i32, tag: i32) -> Result<Status> {
        if source == PROC_NULL {
            return Ok(NOTHING);
        }
        let pattern = self.pattern(source, tag, Channel::Data)?;
        let transfer = Transfer::of(self);
        scope(
            |_| transfer.abandon(),
            |scope| {
                let span = scope.lend_mut(room.loan);
                transfer.start_receive(pattern, self.landing(span, &room.what, Keep::Lender)?);
                transfer.finish_receive()
            },
        )
    }

    fn message(&self, span: Span, what: &What<'_>, tag: i32, keep: Keep) -> Result<Message> {
        let process = self.process();
        let elements = what.resolve(process, span)?;
        let signature = elements.signature(elements.count)?;
        let Elementwise { datatype, count, span } = elements;
        let program = datatype.program(&process.me().architecture)?;
        Ok(Message {
            context: self.context(Channel::Data),
            tag,
            length: program.stream_length(count)?,
            signature,
            source: Source::Typed { program, count, span, _keep: keep },
        })
    }

    fn landing(&self, span: Span, what: &What<'_>, keep: Keep) -> Result<Landing> {
        let elements = what.resolve(self.process(), span)?;
        elements.check_disjoint()?;
        let Elementwise { datatype, count, span } = elements;
        let packed = *self.packed_representation();
        Ok(Landing::Typed { datatype, count, span, packed, keep })
    }

    fn pattern(&self, source: i32, tag: i32, channel: Channel) -> Result<Pattern> {
        let context = self.context(channel);
        let sender = match source {
            ANY_SOURCE => Sender::Any(self.group().clone()),
            _ => Sender::One(self.member(source)?.ok_or_else(|| self.no_rank(source))?),
        };
        let tag = if tag == ANY_TAG { None } else { Some(checked_tag(tag)?) };
        Ok(Pattern { context, sender, tag })
    }

    fn no_rank(&self, rank: i32) -> ErrorKind {
        ErrorKind::Rank { rank, size: self.size() as u32, null: false }
    }
}

/// A send and a receive of one call, as far as they are under way.
struct Transfer<'a> {
    process: &'a Process,
    group: &'a Group,
    sending: Cell<Option<(u64, u32)>>,
    receiving: Cell<Option<(u64, Option<u32>)>>,
}

impl<'a> Transfer<'a> {
    fn of(communicator: &'a Communicator) -> Transfer<'a> {
        let (process, group) = (communicator.process(), communicator.group());
        let (sending, receiving) = (Cell::new(None), Cell::new(None));
        Transfer { process, group, sending, receiving }
    }

    fn wait<T>(&self, mut poll: impl FnMut(&mut State) -> Option<Result<T>>) -> Result<T> {
        self.process.wait(|state, _| poll(state))
    }

    fn start_send(&self, peer: u32, message: Message) -> Result<()> {
        let number = self.process.engine().state().start_send(peer, message)?;
        self.sending.set(number.map(|number| (number, peer)));
        Ok(())
    }

    fn start_receive(&self, pattern: Pattern, landing: Landing) {
        let sender = pattern.sender.one();
        let number = self.process.engine().state().start_receive(pattern, landing);
        self.receiving.set(Some((number, sender)));
    }

    fn finish_send(&self) -> Result<()> {
        if let Some((number, peer)) = self.sending.get() {
            self.process.note_wait(Some(peer));
            self.wait(|state| state.take_sent(number))?;
            self.sending.set(None);
            return Ok(());
        }
        // A short message has left this rank's hands; it also leaves this rank, now if its link has room.
        self.process.engine().progress();
        Ok(())
    }

    fn finish_receive(&self) -> Result<Status> {
        Ok(in_group(self.group, self.await_delivery()?.status))
    }

    fn await_delivery(&self) -> Result<Delivery> {
        let (number, sender) = self.receiving.get().unwrap_or_default();
        self.process.note_wait(sender);
        let delivery = self.wait(|state| state.take_received(number))?;
        self.receiving.set(None);
        Ok(delivery)
    }

    /// Lets go of what was lent, where the call failed before the engine did.
    fn abandon(&self) {
        let sending = self.sending.get().map(|(number, _)| number);
        let receiving = self.receiving.get().map(|(number, _)| number);
        for number in sending.into_iter().chain(receiving) {
            self.process.engine().state().abandon(number);
        }
    }
}

/// A status as the communicator's ranks have it: the engine knows those of the job. All senders are members.
fn in_group(group: &Group, status: Status) -> Status {
    let source = group.rank_of(status.source as u32);
    Status { source: source.map_or(ANY_SOURCE, |source| source as i32), ..status }
}

/// What is received of no rank.
const NOTHING: Status = Status { source: PROC_NULL, tag: ANY_TAG, count: 0, elements: 0 };

fn checked_tag(tag: i32) -> Result<i32> {
    if tag < 0 { Err(ErrorKind::Tag(tag).into()) } else { Ok(tag) }
}

/// What `type_send` sends: the form's tag, the length of the form, the form, and the type as its owner prints it.
fn encode_type(form: &Form, text: &str) -> Vec<u8> {
    let form = form.encode();
    let mut bytes = vec![tag_to_wire(Tag::Locale)];
    bytes.extend((form.len() as u64).to_le_bytes());
    bytes.extend(form);
    bytes.extend(text.as_bytes());
    bytes
}

fn decode_type(bytes: &[u8], peer: u32) -> Result<(Form, String)> {
    let malformed = |what: &str| ErrorKind::Form { peer, what: what.to_owned() };
    let (&tag, rest) = bytes.split_first().ok_or_else(|| malformed("it is empty"))?;
    if tag != tag_to_wire(Tag::Locale) {
        return Err(ErrorKind::UnknownTag(tag).into());
    }
    let (length, rest) = rest.split_first_chunk().ok_or_else(|| malformed("it has no length"))?;
    let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
    let (form, text) = rest.split_at_checked(length).ok_or_else(|| malformed("it is cut short"))?;
    let form = Form::decode(form, &Limits::default())?;
    if form.tag() != Tag::Locale {
        return Err(malformed("it isn't locale-specific").into());
    }
    Ok((form, String::from_utf8_lossy(text).into_owned()))
}
