//! The target: operations of peers on this rank's windows.
//!
//! An operation takes one of three ways, with one result:
//!
//! 1. The memo ([`recent`]): it is like one of the origin's last operations, and only compared with
//!    it.
//! 2. Whole: all its data are in one frame, so it needs no stream.
//! 3. A stream: its frames are taken in one by one.
//!
//! On the last two ways [`Target::admit`] checks the operation before it touches a byte. Each
//! operation is answered once: by an acknowledgement, by the data that it fetched, or by a refusal.

mod accumulate;
mod attachments;
mod exposure;
mod forms;
mod recent;

use std::borrow::Cow;
use std::sync::Arc;

use shipable::{Partial, SharedProgram};

use super::operation::Due;
use super::outbox::{InlineBytes, Outbox, Outgoing, Purpose, Source};
use super::peers::{Me, PeerTable, Peers};
use super::reply::{acknowledge, refusal, reply, reply_bytes};
use super::scatter::Scatter;
use crate::error::{Error, ErrorKind, Result, conversion};
use crate::memory::{Exposed, Keeper, Lease, Span};
use crate::wire::{Header, Kind};

pub(super) use accumulate::{Accumulate, CompareAndSwap};
pub(crate) use attachments::{Addresses, Attachments};
pub(super) use exposure::Exposures;
pub use exposure::Policy;
pub(crate) use exposure::{Exposure, Measures, Opened, check_counter, reach};
pub(super) use forms::LONGEST as LONGEST_FORM;
use forms::{ReceivedForm, ReceivedForms};
pub(super) use recent::Fetched;
use recent::Recents;

/// This rank's windows, and the forms and memos of the origins of operations on them.
pub(super) struct Target {
    exposures: Exposures,
    origins: PeerTable<Origin>,
    /// A buffer for the bytes that the next operation fetches. After an operation by the memo, the
    /// bytes that it fetched, if they are [`Fetched::Buffered`].
    fetched: Vec<u8>,
}

/// A peer, as the origin of operations on this rank's windows.
#[derive(Default)]
struct Origin {
    forms: ReceivedForms,
    recents: Recents,
}

/// The end of a peer's operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    Refused,
}

/// A peer's operation that has passed all checks.
pub(super) struct Admitted<'a> {
    pub exposure: &'a Arc<Exposure>,
    pub form: &'a ReceivedForm,
    /// The memory from the operation's displacement on.
    pub span: Span,
    memory: Cow<'a, Arc<Exposed>>,
}

impl Admitted<'_> {
    /// The memory, for an operation that goes on.
    fn lease(self) -> Lease {
        Lease::new(self.span, Keeper::Memory { _memory: self.memory.into_owned() })
    }
}

impl Target {
    pub(super) fn new(size: u32) -> Target {
        Target {
            exposures: Exposures::default(),
            origins: PeerTable::new(size),
            fetched: Vec::new(),
        }
    }

    #[inline]
    pub(super) fn exposures(&self) -> &Exposures {
        &self.exposures
    }

    pub(super) fn open_window(&mut self, exposure: Arc<Exposure>) {
        self.exposures.insert(exposure);
    }

    pub(super) fn close_window(&mut self, window: u32) {
        self.exposures.remove(window);
        self.origins.used().for_each(|(_, origin)| origin.recents.forget_window(window));
    }

    /// Takes in a `Define`: a form that a peer ships.
    pub(super) fn handle_define(&mut self, peer: u32, header: &Header, bytes: &[u8], me: &Me) {
        let origin = self.origins.of(peer);
        let names = header.count;
        origin.forms.define(header.form, header.tag, header.context, bytes, names, me);
        origin.recents.forget_form(header.form);
    }

    /// Takes in the opening frame of a `Define` that is too long to accept.
    pub(super) fn handle_long_define(&mut self, peer: u32, header: &Header) {
        self.origins.of(peer).forms.too_long(header.form, header.length);
    }

    /// Takes in a `Retire`: the type of a form is gone at the peer.
    pub(super) fn handle_retire(&mut self, peer: u32, form: u64) {
        let origin = self.origins.of(peer);
        origin.forms.retire(form);
        origin.recents.forget_form(form);
    }

    /// The form of this id, which a peer has shipped.
    ///
    /// # Errors
    /// The form was never defined, or it can't be used.
    fn form(&self, peer: u32, id: u64) -> Result<&ReceivedForm> {
        match self.origins.get(peer) {
            Some(origin) => origin.forms.get(id, peer),
            None => Err(ErrorKind::Form { peer, what: forms::never_defined(id) }.into()),
        }
    }

    /// Checks a peer's operation.
    ///
    /// # Errors
    /// The operation violates a rule, or its window or form isn't known.
    pub(super) fn admit(&self, peer: u32, header: &Header, peers: &Peers) -> Result<Admitted<'_>> {
        let exposure = self.exposures.get(header.context).ok_or(ErrorKind::WindowFreed)?;
        let form = self.form(peer, header.form)?;
        let me = peers.me();
        let (span, memory) = exposure.admit(header, form, me)?;
        Ok(Admitted { exposure, form, span, memory })
    }

    /// Checks a put. Returns the program that unpacks its data as well.
    fn admit_put(
        &self,
        peer: u32,
        header: &Header,
        peers: &Peers,
    ) -> Result<(Admitted<'_>, &SharedProgram)> {
        let admitted = self.admit(peer, header, peers)?;
        let stream = peers.stream_of(peer)?;
        let program = admitted.form.unpacking(&peers.me().architecture, stream)?;
        let due = program.stream_length(header.count)?;
        if due != header.length {
            let what = format!("a put of {} bytes where its type has {due}", header.length);
            return Err(ErrorKind::Protocol { peer, what }.into());
        }
        Ok((admitted, program))
    }

    /// Takes in a put, accumulate or fetching accumulate whose data are all in its frame. Returns
    /// `None`, and does nothing, for other frames.
    pub(super) fn handle_whole(
        &mut self,
        peer: u32,
        header: &Header,
        data: &[u8],
        peers: &Peers,
        out: &mut Outbox,
    ) -> Option<Outcome> {
        let outcome = match header.kind {
            Kind::Put => self.put(peer, header, data, peers).map(|()| None),
            Kind::Accumulate | Kind::Fetch => self.accumulate(peer, header, data, peers),
            _ => return None,
        };
        match outcome {
            Ok(Some(fetched)) => out.push(peer, reply_bytes(header, fetched)),
            Ok(None) => acknowledge(peer, header, out),
            Err(error) => {
                self.refuse(peer, header, &error, peers, out);
                return Some(Outcome::Refused);
            }
        }
        Some(Outcome::Done)
    }

    fn put(&self, peer: u32, header: &Header, data: &[u8], peers: &Peers) -> Result<()> {
        let (admitted, program) = self.admit_put(peer, header, peers)?;
        let mut partial = Partial::default();
        let put = admitted.span.unpack(program, header.count, 0, data, &mut partial);
        put.map_err(conversion)
    }

    /// Carries out an accumulate. Returns the bytes that it fetched, if it fetches.
    fn accumulate(
        &self,
        peer: u32,
        header: &Header,
        data: &[u8],
        peers: &Peers,
    ) -> Result<Option<Vec<u8>>> {
        let mut accumulate = self.admit_accumulate(peer, header, peers)?;
        accumulate.take(0, data)?;
        Ok(accumulate.into_fetched())
    }

    /// Takes in a get: its answer is packed at once if it is short, otherwise as it is sent.
    pub(super) fn handle_get(&self, peer: u32, header: &Header, peers: &Peers, out: &mut Outbox) {
        match self.admit_get(peer, header, peers) {
            // Its memory is read as the answer is sent.
            Ok(reply) => {
                let purpose = Due::of(peer, header).map_or(Purpose::None, Purpose::Notify);
                out.push(peer, reply.with_purpose(purpose));
            }
            Err(error) => self.refuse(peer, header, &error, peers, out),
        }
    }

    fn admit_get(&self, peer: u32, header: &Header, peers: &Peers) -> Result<Outgoing> {
        let admitted = self.admit(peer, header, peers)?;
        let program = admitted.form.packing(&peers.me().architecture)?;
        let length = program.stream_length(header.count)?;
        let (count, span) = (header.count, admitted.span);
        let source = match InlineBytes::zeroed(length) {
            Some(mut inline) => {
                span.pack(program, count, 0, inline.bytes_mut()).map_err(conversion)?;
                Source::Inline(inline)
            }
            None => {
                let program = program.clone();
                Source::Typed { program, count, lease: admitted.lease() }
            }
        };
        Ok(reply(header, length, source))
    }

    /// Opens the stream of a put. Returns the memory that it is unpacked into.
    pub(super) fn open_put(&self, peer: u32, header: &Header, peers: &Peers) -> Result<Scatter> {
        let (admitted, program) = self.admit_put(peer, header, peers)?;
        let program = program.clone();
        Ok(Scatter::new(program, header.count, admitted.lease()))
    }

    /// Refuses a peer's operation, or ends it early.
    pub(super) fn refuse(
        &self,
        peer: u32,
        operation: &Header,
        error: &Error,
        peers: &Peers,
        out: &mut Outbox,
    ) {
        let me = peers.me();
        let bytes = || {
            let exposure = self.exposures.get(operation.context)?;
            let form = self.form(peer, operation.form).ok()?;
            let bytes = exposure.reach(operation, form, &me.architecture).ok()?.bytes;
            Some((bytes.0.try_into().ok()?, bytes.1.try_into().ok()?))
        };
        out.push(peer, refusal(me.rank, peer, operation, error, bytes()));
    }

    /// Keeps the buffer of a reply that has been sent, for the next operation that fetches.
    pub(super) fn reuse(&mut self, outgoing: &mut Outgoing) {
        outgoing.give_back(&mut self.fetched);
    }
}
