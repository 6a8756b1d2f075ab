//! Point-to-point communication of typed data and of datatypes (MPI-5.0 chapter 3; proposal 4
//! (docs/proposals.md)).
//!
//! Left out: the buffered and ready modes, persistent requests.

mod probe;
mod request;
mod short;

use std::cell::Cell;
use std::panic::Location;
use std::sync::MutexGuard;

use shipable::{Form, Tag, form::Limits};

use crate::check::Caller;
use crate::check::buffers::Use;
use crate::check::messages::Room;
use crate::communicator::{ANY_SOURCE, ANY_TAG, Communicator};
use crate::engine::{Channel, Engine, Landing, Message, Pattern, Sender, Source, State, Status};
use crate::error::{Error, ErrorKind, Result, type_string};
use crate::group::Group;
use crate::group::PROC_NULL;
use crate::job::Activity;
use crate::memory::{Lease, Scope, scope};
use crate::observe::At;
use crate::origin::{Destination, Elementwise, Origin, Run, What};
use crate::process::Process;
use crate::program::Line;
use crate::types::{ForeignType, OTHER_RANK, Type};
use crate::wire::tag_to_wire;

pub use probe::{Envelope, Matched};
pub use request::{Receiving, Sending};

impl Communicator {
    /// Sends data to a rank (MPI-5.0 section 3.4). Returns when the data may be changed again.
    ///
    /// The data travels in this rank's representation, and the receiver converts it. A short
    /// message is buffered. A long one waits until the receiver has a matching receive
    /// (rendezvous).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let world = rank.world();
    /// let (me, size) = (world.rank(), world.size());
    /// let (next, before) = ((me + 1) % size, (me + size - 1) % size);
    /// world.send(&[1.5, 2.5], next, 0)?;
    /// let mut got = [0.0; 2];
    /// let status = world.recv(&mut got, before, 0)?;
    /// assert_eq!((got, status.count), ([1.5, 2.5], 2));
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// RANK, TAG, COUNT or BUFFER for a wrong argument. CONVERSION if an emulated representation
    /// can't hold a value of a slice. PROC_ABORTED if the rank is dead.
    #[track_caller]
    #[doc(alias = "MPI_Send")]
    pub fn send<'a>(&self, data: impl Into<Origin<'a>>, dest: i32, tag: i32) -> Result<()> {
        let data = data.into();
        match self.send_at_once(data.loan.span(), &data.what, dest, tag) {
            true => Ok(()),
            false => self.send_as("send", data, dest, tag, false),
        }
    }

    /// A [`send`](Communicator::send) in the synchronous mode: returns only when a receive has
    /// matched the message (MPI-5.0 section 3.4).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let receiving = rank.alone().irecv(vec![0], 0, 0)?;
    /// rank.alone().ssend(&[7], 0, 0)?;
    /// assert_eq!(receiving.wait()?.0, [7]);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`send`](Communicator::send).
    #[track_caller]
    #[doc(alias = "MPI_Ssend")]
    pub fn ssend<'a>(&self, data: impl Into<Origin<'a>>, dest: i32, tag: i32) -> Result<()> {
        self.send_as("ssend", data.into(), dest, tag, true)
    }

    /// Receives data from a rank with a tag (MPI-5.0 section 3.2.4). [`ANY_SOURCE`] and [`ANY_TAG`]
    /// match every rank and every tag.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// use longshore::{ANY_SOURCE, ANY_TAG};
    ///
    /// let world = rank.world();
    /// world.send(&[7], world.rank(), 42)?;
    /// // The buffer may be longer than the message.
    /// let mut room = [0; 8];
    /// let status = world.recv(&mut room, ANY_SOURCE, ANY_TAG)?;
    /// assert_eq!((status.source, status.tag, status.count), (world.rank(), 42, 1));
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// TRUNCATE for a message longer than the buffer. TYPE for another signature. CONVERSION for a
    /// value that the receiving type can't hold. PROC_ABORTED if the rank is dead.
    #[track_caller]
    #[doc(alias = "MPI_Recv")]
    pub fn recv<'a>(
        &self,
        room: impl Into<Destination<'a>>,
        source: i32,
        tag: i32,
    ) -> Result<Status> {
        let room = room.into();
        let direct = self.direct(room.loan.span(), &room.what, source, tag);
        match direct.as_ref().and_then(|direct| self.receive_at_once(direct)) {
            Some(status) => Ok(status),
            None => self.recv_as("recv", direct, room, source, tag),
        }
    }

    /// Sends a type to a rank, which can use it only as the target type of operations on this
    /// process (rule T5; MPI_Type_send of proposal 4 (docs/proposals.md)).
    ///
    /// The message describes the type's layout in this rank's memory, even if the type is portable.
    /// It is buffered, whatever its length: the call doesn't wait for the receiver. To use a type
    /// of this rank on this rank itself, no message is needed: see
    /// [`Rank::foreign`](crate::Rank::foreign).
    ///
    /// ```
    /// # use longshore::{Info, Window};
    /// # let rank = longshore::init()?;
    /// use longshore::Datatype;
    ///
    /// // The second member lies 16 bytes after the first, as only its builder can know.
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
    /// Those of [`send`](Communicator::send).
    #[track_caller]
    #[doc(alias = "MPIX_Type_send")]
    pub fn type_send(&self, datatype: &Type, dest: i32, tag: i32) -> Result<()> {
        let caller = Location::caller();
        self.call("type_send", Activity::Send, dest, || {
            if !datatype.is_of(self.process().names()) {
                return Err(OTHER_RANK.into());
            }
            let form = datatype.form().to_locale(&self.process().me().architecture)?;
            let bytes = encode_type(&form, &type_string(datatype.datatype()));
            let message = Message {
                context: self.context(Channel::Types),
                tag: checked_tag(tag)?,
                length: bytes.len() as u64,
                signature: 0,
                source: Source::Bytes(bytes.into()),
                synchronous: false,
            };
            let Some(peer) = self.member(dest)? else { return Ok(()) };
            let call = (caller, false);
            if let Some(number) = self.process().start_send(peer, message, call)? {
                // The engine has the form, so nothing waits for the receiver.
                self.process().engine().state().forget_send(number);
            }
            Ok(())
        })
    }

    /// Receives a type that its builder sent with [`type_send`](Communicator::type_send).
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
    /// RANK for PROC_NULL, which sends no types. TYPE for a form with an unknown tag (rule T6), or
    /// for a message without a valid form. Otherwise the errors of [`recv`](Communicator::recv).
    #[track_caller]
    #[doc(alias = "MPIX_Type_recv")]
    pub fn type_recv(&self, source: i32, tag: i32) -> Result<ForeignType> {
        let transfer = Transfer::of(self, Location::caller());
        self.call("type_recv", Activity::Receive, source, || {
            if source == PROC_NULL {
                return Err(ErrorKind::TypeOfNull.into());
            }
            let pattern = self.pattern(source, tag, Channel::Types)?;
            transfer.start_receive(pattern, Landing::Bytes);
            let delivery = transfer.await_end(State::take_received);
            let delivery = delivery.inspect_err(|_| transfer.abandon())?;
            let builder = delivery.status.source as u32;
            let bytes = delivery.bytes.unwrap_or_default();
            let (form, text) = decode_type(&bytes, builder)?;
            ForeignType::new(self.process().names(), form, text, builder)
        })
    }

    /// Sends to one rank and receives from another at the same time (MPI-5.0 section 3.10). Two
    /// ranks that exchange long messages this way can't deadlock.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let world = rank.world();
    /// let (me, size) = (world.rank(), world.size());
    /// let (next, before) = ((me + 1) % size, (me + size - 1) % size);
    /// let mut got = [0];
    /// world.sendrecv((&[world.rank()], next, 0), (&mut got, before, 0))?;
    /// assert_eq!(got, [before]);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`send`](Communicator::send) and [`recv`](Communicator::recv).
    #[track_caller]
    #[doc(alias = "MPI_Sendrecv")]
    pub fn sendrecv<'a, 'b>(
        &self,
        (data, dest, send_tag): (impl Into<Origin<'a>>, i32, i32),
        (room, source, recv_tag): (impl Into<Destination<'b>>, i32, i32),
    ) -> Result<Status> {
        let (data, room) = (data.into(), room.into());
        let direct = self.direct(room.loan.span(), &room.what, source, recv_tag);
        // A long send needs a receive that is posted before it waits.
        if direct.is_none() || !self.send_at_once(data.loan.span(), &data.what, dest, send_tag) {
            return self.exchange((data, dest, send_tag), (room, source, recv_tag));
        }
        match direct.as_ref().and_then(|direct| self.receive_at_once(direct)) {
            Some(status) => Ok(status),
            None => self.recv_as("sendrecv", direct, room, source, recv_tag),
        }
    }

    /// A [`sendrecv`](Communicator::sendrecv) whose receive is posted before the send.
    #[track_caller]
    #[inline(never)] // The path of short messages stays small.
    fn exchange(
        &self,
        (data, dest, send_tag): (Origin<'_>, i32, i32),
        (room, source, recv_tag): (Destination<'_>, i32, i32),
    ) -> Result<Status> {
        let transfer = Transfer::of(self, Location::caller());
        let both = || -> Result<Status> {
            let send_tag = checked_tag(send_tag)?;
            let peer = self.member(dest)?;
            let pattern = match source {
                PROC_NULL => None,
                _ => Some(self.pattern(source, recv_tag, Channel::Data)?),
            };
            scope(
                |_| transfer.abandon(),
                |scope| {
                    let receives = pattern.is_some();
                    if let Some(pattern) = pattern {
                        let lease = Lease::lent(scope.lend_mut(room.loan));
                        let landing = self.landing(lease, &room.what)?;
                        transfer.start_receive(pattern, landing);
                    }
                    if let Some(peer) = peer {
                        let lease = Lease::lent(scope.lend(data.loan));
                        let message = self.message(lease, &data.what, peer, send_tag)?;
                        transfer.start_send(peer, message)?;
                    }
                    transfer.finish_both(receives)
                },
            )
        };
        let place = |error: Error| error.at(|| self.toward("sendrecv", dest));
        self.call("sendrecv", Activity::Receive, source, || both().map_err(place))
    }

    /// Sends data to one rank, and replaces it by data from another (MPI-5.0 section 3.10). The
    /// data is buffered until it is sent.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let world = rank.world();
    /// let (me, size) = (world.rank(), world.size());
    /// let (next, before) = ((me + 1) % size, (me + size - 1) % size);
    /// let mut value = [me];
    /// world.sendrecv_replace(&mut value, (next, 0), (before, 0))?;
    /// assert_eq!(value, [before]);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`sendrecv`](Communicator::sendrecv).
    #[track_caller]
    #[doc(alias = "MPI_Sendrecv_replace")]
    pub fn sendrecv_replace<'a>(
        &self,
        data: impl Into<Destination<'a>>,
        (dest, send_tag): (i32, i32),
        (source, recv_tag): (i32, i32),
    ) -> Result<Status> {
        let mut data = data.into();
        let transfer = Transfer::of(self, Location::caller());
        let both = || -> Result<Status> {
            let (send_tag, peer) = (checked_tag(send_tag)?, self.member(dest)?);
            let pattern = match source {
                PROC_NULL => None,
                _ => Some(self.pattern(source, recv_tag, Channel::Data)?),
            };
            let message = Scope::with(|scope| {
                let lease = Lease::lent(scope.lend_mut(data.loan.again()));
                // One to PROC_NULL isn't sent, but its arguments are checked.
                let to = peer.unwrap_or_default();
                self.message(lease, &data.what, to, send_tag)?.buffered()
            })?;
            scope(
                |_| transfer.abandon(),
                |scope| {
                    let receives = pattern.is_some();
                    if let Some(pattern) = pattern {
                        let lease = Lease::lent(scope.lend_mut(data.loan));
                        let landing = self.landing(lease, &data.what)?;
                        transfer.start_receive(pattern, landing);
                    }
                    if let Some(peer) = peer {
                        transfer.start_send(peer, message)?;
                    }
                    transfer.finish_both(receives)
                },
            )
        };
        let made = || both().map_err(|error| error.at(|| self.toward("sendrecv_replace", dest)));
        self.call("sendrecv_replace", Activity::Receive, source, made)
    }

    /// Runs the body of a call that communicates with rank `other`. Adds the place to its error.
    #[track_caller]
    fn call<T>(
        &self,
        call: &'static str,
        activity: Activity,
        other: i32,
        body: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let (process, caller) = (self.process(), Location::caller());
        let made = || {
            self.ready()?;
            let peer = self.member(other).ok().flatten();
            let at = At { peer, ..At::of(caller) };
            process.during(activity, peer.unwrap_or(other as u32), at, body)
        };
        made().map_err(|error| self.raise(error.at(|| self.toward(call, other)), caller))
    }

    #[track_caller]
    fn send_as(
        &self,
        call: &'static str,
        data: Origin<'_>,
        dest: i32,
        tag: i32,
        synchronous: bool,
    ) -> Result<()> {
        let transfer = Transfer::of(self, Location::caller());
        self.call(call, Activity::Send, dest, || {
            let tag = checked_tag(tag)?;
            let Some(peer) = self.member(dest)? else { return Ok(()) };
            scope(
                |_| transfer.abandon(),
                |scope| {
                    let lease = Lease::lent(scope.lend(data.loan));
                    let message = self.message(lease, &data.what, peer, tag)?;
                    transfer.start_send(peer, Message { synchronous, ..message })?;
                    transfer.finish_send()
                },
            )
        })
    }

    fn message(&self, lease: Lease, what: &What<'_>, peer: u32, tag: i32) -> Result<Message> {
        let process = self.process();
        let elements = what.resolve(process, lease.span())?;
        let Elementwise { datatype, count, span } = elements;
        let signature = process.engine().state().signature(peer, &datatype, count)?;
        let program = match process.me().emulated {
            // A slice is in the machine's representation.
            true => datatype.program(&process.me().architecture)?,
            false => datatype.shared_native(),
        };
        Ok(Message {
            context: self.context(Channel::Data),
            tag,
            length: program.stream_length(count)?,
            signature,
            source: Source::Typed { program, count, lease: lease.of_part(span) },
            synchronous: false,
        })
    }

    #[inline]
    fn landing(&self, lease: Lease, what: &What<'_>) -> Result<Landing> {
        let process = self.process();
        let (datatype, count, span) = match what.run(process, lease.span()) {
            // Such elements lie in their memory, and apart.
            Some(Run { datatype, count, span, .. }) => (datatype.clone(), count, span),
            None => {
                let elements = what.resolve(process, lease.span())?;
                elements.check_disjoint()?;
                let Elementwise { datatype, count, span } = elements;
                (datatype, count, span)
            }
        };
        let packed = self.foreign_packed().copied().map(Box::new);
        Ok(Landing::Typed { datatype, count, lease: lease.of_part(span), packed })
    }

    #[inline]
    fn pattern(&self, source: i32, tag: i32, channel: Channel) -> Result<Pattern> {
        let context = self.context(channel);
        let sender = match source {
            ANY_SOURCE => Sender::Any(self.peers().clone()),
            _ => Sender::One(self.member(source)?.ok_or_else(|| self.no_rank(source))?),
        };
        let tag = if tag == ANY_TAG { None } else { Some(checked_tag(tag)?) };
        Ok(Pattern { context, sender, tag })
    }

    fn no_rank(&self, rank: i32) -> ErrorKind {
        ErrorKind::Rank { rank, size: self.peers().size() as u32, null: false }
    }
}

impl Process {
    /// Starts a receive: see [`State::start_receive`]. It makes progress only if that leaves a
    /// frame to be sent, or if calls that don't wait [have to](Process::must_poll).
    #[inline]
    fn start_receive(&self, pattern: Pattern, landing: Landing, call: (Caller, bool)) -> u64 {
        match self.takes_longer_ways() {
            true => self.start_noted(pattern, landing, call),
            false => self.receive(self.engine(), |state| state.start_receive(pattern, landing)),
        }
    }

    /// Starts a receive on a longer way, and notes it under `--check`.
    #[cold]
    fn start_noted(&self, pattern: Pattern, landing: Landing, call: (Caller, bool)) -> u64 {
        let (source, tag) = (pattern.sender.one(), pattern.tag);
        let room = self.checks().then(|| landing.room(pattern.context, (source, tag), call.0));
        self.receive(self.engine_after_poll(), |state| {
            landing.note_use(room.as_ref(), call.1, state);
            let number = state.start_receive(pattern, landing);
            state.note_receive(number, room);
            number
        })
    }

    /// Starts to receive a claimed message: see [`State::receive_claimed`]. It makes progress as
    /// [`start_receive`](Process::start_receive) does.
    fn receive_claimed(&self, number: u64, landing: Landing, call: (Caller, bool)) {
        let engine = match self.takes_longer_ways() {
            true => self.before_claimed(number, &landing, call),
            false => self.engine(),
        };
        self.receive(engine, |state| state.receive_claimed(number, landing));
    }

    /// Makes progress if calls have to, and notes the receive of a claimed message under `--check`.
    #[cold]
    fn before_claimed(
        &self,
        number: u64,
        landing: &Landing,
        (caller, blocks): (Caller, bool),
    ) -> MutexGuard<'_, Engine> {
        // Nothing else can match the message.
        let room = || landing.room(u32::MAX, (Some(u32::MAX), None), caller);
        let room = self.checks().then(room);
        let mut engine = self.engine_after_poll();
        landing.note_use(room.as_ref(), blocks, engine.state());
        engine.state().note_receive(number, room);
        engine
    }

    /// The engine, after it has made progress if calls that don't wait have to.
    #[inline]
    fn engine_after_poll(&self) -> MutexGuard<'_, Engine> {
        let mut engine = self.engine();
        if self.must_poll() {
            engine.progress();
        }
        engine
    }

    fn receive<T>(
        &self,
        mut engine: MutexGuard<'_, Engine>,
        start: impl FnOnce(&mut State) -> T,
    ) -> T {
        let started = start(engine.state());
        // The sender of a long message that has been announced waits for an answer.
        engine.send_rest();
        started
    }

    /// Starts to send a message: see [`Engine::start_send`](crate::engine::Engine::start_send). It
    /// makes progress only if calls that don't wait [have to](Process::must_poll). It does so
    /// first: once the message has left, the call has no other effect.
    fn start_send(&self, peer: u32, message: Message, call: (Caller, bool)) -> Result<Option<u64>> {
        let mut engine = match self.takes_longer_ways() {
            true => self.before_send(peer, &message, call),
            false => self.engine(),
        };
        let number = engine.start_send(peer, message)?;
        drop(engine);
        self.leave_rest();
        Ok(number)
    }

    /// Makes progress if calls have to, and announces the send of the next message under `--check`.
    /// `blocks` says whether the call waits until the data may be changed.
    #[cold]
    fn before_send(
        &self,
        peer: u32,
        message: &Message,
        (caller, blocks): (Caller, bool),
    ) -> MutexGuard<'_, Engine> {
        let line = self.checks().then(|| Line::of(caller));
        let mut engine = self.engine_after_poll();
        if let Some(line) = line {
            if let Source::Typed { program, count, lease } = &message.source {
                let of = Use::new(("send", line), false, (program, *count, lease.span()));
                engine.state().note_use(of, !blocks);
            }
            engine.state().note_send(peer, line, blocks);
        }
        engine
    }
}

impl Landing {
    /// The receive that starts, as `--check` compares it with its message.
    #[cold]
    fn room(
        &self,
        context: u32,
        (source, tag): (Option<u32>, Option<i32>),
        caller: Caller,
    ) -> Room {
        let elements = match self {
            Landing::Typed { datatype, count, .. } => Some((datatype.clone(), *count)),
            _ => None,
        };
        Room { line: Line::of(caller), elements, context, source, tag }
    }

    /// Notes the memory that a receive uses, under `--check`.
    #[cold]
    fn note_use(&self, room: Option<&Room>, blocks: bool, state: &mut State) {
        if let (Landing::Typed { datatype, count, lease, .. }, Some(room)) = (self, room) {
            let memory = (datatype.native(), *count, lease.span());
            state.note_use(Use::new(("receive", room.line), true, memory), !blocks);
        }
    }
}

/// What a waiting send, receive or probe says about itself, after a while.
#[derive(Clone, Copy)]
struct Awaited {
    /// `None` for any tag.
    tag: Option<i32>,
    /// The context of a receive or probe, whose unmatched messages are listed.
    unmatched: Option<u32>,
    caller: Caller,
}

impl Awaited {
    /// Waits until `poll` returns a result. One that is there already mostly takes no progress.
    fn wait<T>(
        self,
        process: &Process,
        mut poll: impl FnMut(&mut State) -> Option<Result<T>>,
    ) -> Result<T> {
        process.wait_or_find(|state, arming| {
            let outcome = poll(state);
            if outcome.is_none() && arming {
                process.remark(|| self.describe(state));
            }
            outcome
        })
    }

    fn describe(self, state: &State) -> String {
        let tag = self.tag.map_or("any tag".to_owned(), |tag| format!("tag {tag}"));
        let at = Line::of_waiting(self.caller).map(|line| format!(", at {line}"));
        let mut text = tag + &at.unwrap_or_default();
        if let Some(context) = self.unmatched {
            text += &format!("; {}", state.describe_unmatched(context));
        }
        text
    }
}

const NOT_STARTED: &str = "the receive isn't started";

/// The send and the receive of one blocking call, while they are in progress.
struct Transfer<'a> {
    process: &'a Process,
    group: &'a Group,
    caller: Caller,
    /// The number of the send and its receiver, and what it waits for.
    sending: Cell<Option<(u64, u32, Awaited)>>,
    /// The number of the receive and its only sender, if there is one, and what it waits for.
    receiving: Cell<Option<(u64, Option<u32>, Awaited)>>,
    /// Whether the direct receive of the engine is that of the call.
    is_direct: Cell<bool>,
}

impl<'a> Transfer<'a> {
    fn of(communicator: &'a Communicator, caller: Caller) -> Transfer<'a> {
        let (process, group) = (communicator.process(), communicator.peers());
        let (sending, receiving, is_direct) = Default::default();
        Transfer { process, group, caller, sending, receiving, is_direct }
    }

    fn start_send(&self, peer: u32, message: Message) -> Result<()> {
        let awaited = Awaited { tag: Some(message.tag), unmatched: None, caller: self.caller };
        let number = self.process.start_send(peer, message, (self.caller, true))?;
        self.sending.set(number.map(|number| (number, peer, awaited)));
        Ok(())
    }

    fn start_receive(&self, pattern: Pattern, landing: Landing) {
        let sender = pattern.sender.one();
        let (tag, unmatched) = (pattern.tag, Some(pattern.context));
        let awaited = Awaited { tag, unmatched, caller: self.caller };
        let number = self.process.start_receive(pattern, landing, (self.caller, true));
        self.receiving.set(Some((number, sender, awaited)));
    }

    fn finish_send(&self) -> Result<()> {
        if let Some((number, peer, awaited)) = self.sending.get() {
            self.process.note_wait(Some(peer));
            awaited.wait(self.process, |state| state.take_sent(number))?;
            self.sending.set(None);
        }
        // A short message is sent, or waits in the outbox until the link has room.
        Ok(())
    }

    /// Waits for the send, and then for the receive if there is one.
    fn finish_both(&self, receives: bool) -> Result<Status> {
        self.finish_send()?;
        if receives { self.finish_receive() } else { Ok(NULL_STATUS) }
    }

    fn finish_receive(&self) -> Result<Status> {
        Ok(in_group(self.group, self.await_end(State::take_status)?))
    }

    /// Waits for the end of the receive, which `take` takes from the engine.
    fn await_end<T>(&self, take: impl Fn(&mut State, u64) -> Option<Result<T>>) -> Result<T> {
        let received = self.receiving.get();
        let (number, sender, awaited) = received.ok_or(ErrorKind::Request(NOT_STARTED))?;
        self.process.note_wait(sender);
        let ended = awaited.wait(self.process, |state| take(state, number));
        let rank_of = |peer| rank_in(self.group, peer);
        let ended = ended.map_err(|error| error.received_in(rank_of))?;
        self.receiving.set(None);
        Ok(ended)
    }

    /// Gives the lent memory back after an error, if the engine still uses it.
    fn abandon(&self) {
        let sending = self.sending.get().map(|(number, ..)| number);
        let receiving = self.receiving.get().map(|(number, ..)| number);
        for number in sending.into_iter().chain(receiving) {
            self.process.engine().state().abandon(number);
        }
        if self.is_direct.get() {
            self.process.engine().state().abandon_direct();
        }
    }
}

/// Converts a status from ranks of the job to ranks of the communicator. All senders are members.
#[inline]
fn in_group(group: &Group, status: Status) -> Status {
    Status { source: rank_in(group, status.source as u32), ..status }
}

#[inline]
fn rank_in(group: &Group, peer: u32) -> i32 {
    group.rank_of(peer).map_or(ANY_SOURCE, |rank| rank as i32)
}

/// The status of a receive from PROC_NULL.
const NULL_STATUS: Status =
    Status { source: PROC_NULL, tag: ANY_TAG, count: 0, elements: 0, bytes: 0 };

fn checked_tag(tag: i32) -> Result<i32> {
    if tag < 0 { Err(ErrorKind::Tag(tag).into()) } else { Ok(tag) }
}

/// Encodes the message of `type_send`: the form's tag, the length of the form, the form, and the
/// type in text notation.
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
