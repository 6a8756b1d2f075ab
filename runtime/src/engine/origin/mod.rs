//! The origin: operations of this rank on windows of its peers, from their issue until they are
//! done.
//!
//! 1. The window counts an operation in its [`Ledger`] and sends it. An operation that fetches
//!    leaves the memory for its answer here ([`Fetch`]); an operation that a call waits for by
//!    itself leaves a [`Ticket`].
//! 2. The target answers with one of these frames: `Ack` counts operations that are done; `Done`
//!    names one of them; `Reply` brings the data of one; `Refuse` brings the error of one.
//! 3. The answer completes the operation: its ledger counts it as done, its failure is stored, its
//!    ticket is settled.
//!
//! Accesses to registered memory ([`accesses`]) have no answer: the network reports when they are
//! done.

mod accesses;
mod fetches;
mod forms;

use std::sync::Arc;

use shipable::{Partial, SharedProgram};

use super::completion::{Ledger, Ticket, Tickets};
use super::notes::Notes;
use super::operation::Operation;
use super::outbox::Outbox;
use super::peers::Peers;
use super::scatter::Scatter;
use crate::error::{Error, ErrorKind, Place, Result, conversion};
use crate::group::Group;
use crate::numbers::Numbers;
use crate::wire::{CONTROL_LIMIT, Header, Kind, Refusal};

pub(crate) use accesses::RdmaAccess;
pub(crate) use fetches::Fetch;
use fetches::Fetches;
use forms::ShippedForms;

/// The operations of this rank that are under way.
pub(super) struct Operations {
    /// Dropping an access waits for the network.
    accesses: Vec<RdmaAccess>,
    windows: Numbers<u32, Account>,
    fetches: Fetches,
    tickets: Tickets,
    /// The forms of their types.
    pub(super) shipped: ShippedForms,
}

/// A window to whose targets this rank issues operations.
struct Account {
    ledger: Arc<Ledger>,
    group: Group,
}

/// Bytes of a target's window, for errors.
pub(super) type Bytes = (i128, i128);

impl Operations {
    pub(super) fn new(size: u32) -> Operations {
        Operations {
            accesses: Vec::new(),
            windows: Numbers::default(),
            fetches: Fetches::default(),
            tickets: Tickets::default(),
            shipped: ShippedForms::new(size),
        }
    }

    pub(super) fn open_window(&mut self, window: u32, group: Group, ledger: Arc<Ledger>) {
        self.windows.insert(window, Account { ledger, group });
    }

    pub(super) fn close_window(&mut self, window: u32) {
        self.windows.remove(&window);
    }

    #[cfg(test)]
    pub(super) fn ledger(&self, window: u32) -> Arc<Ledger> {
        self.windows[&window].ledger.clone()
    }

    /// Expects the answer to an operation that fetches.
    pub(super) fn expect(&mut self, operation: Operation, fetch: Fetch) {
        self.fetches.insert(operation, fetch);
    }

    /// Settles a ticket once an operation is done.
    pub(super) fn watch(&mut self, operation: Operation, ticket: Arc<Ticket>) {
        self.tickets.insert(operation, ticket);
    }

    /// Whether no operation is under way that holds memory or that a call waits for by itself.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.fetches.is_empty() && self.tickets.is_empty() && self.accesses.is_empty()
    }

    /// Takes in an `Ack`: `count` more operations on a window are done at the peer.
    ///
    /// # Errors
    /// Fewer were under way.
    #[inline]
    pub(super) fn handle_ack(&self, peer: u32, window: u32, count: u64) -> Result<(), String> {
        match self.windows.get(&window) {
            Some(account) => account.ledger.acknowledge(peer, count),
            None => Ok(()),
        }
    }

    /// Takes in a `Reply` in one frame. Not in line: that would slow down the frames of peers'
    /// operations.
    ///
    /// # Errors
    /// No operation was under way.
    #[inline(never)]
    pub(super) fn handle_reply(
        &mut self,
        peer: u32,
        header: &Header,
        data: &[u8],
        peers: &Peers,
        notes: &mut Notes,
        out: &mut Outbox,
    ) -> Result<(), String> {
        let operation = named(peer, header);
        let Some(fetch) = self.fetches.remove(operation) else {
            // The operation was given up.
            return self.complete(operation, None, notes, out);
        };
        let run = fetch.run.filter(|(_, len)| *len == header.length);
        if run.is_some_and(|(first, _)| fetch.lease.span().write(first, data)) {
            let completed = self.complete(operation, None, notes, out);
            fetch.waiter.iter().for_each(|ticket| ticket.settle());
            return completed;
        }
        let failure = self.unpack(operation, &fetch, data, peers);
        self.complete(operation, failure, notes, out)
    }

    /// Unpacks an answer in one frame, whose bytes aren't those of the memory. Returns its failure.
    #[cold]
    fn unpack(
        &mut self,
        operation: Operation,
        fetch: &Fetch,
        data: &[u8],
        peers: &Peers,
    ) -> Option<Error> {
        self.hand_over(operation, fetch);
        let unpack = || -> Result<()> {
            let program = answer_program(operation.target, fetch, data.len() as u64, peers)?;
            let mut partial = Partial::default();
            let unpacked = fetch.lease.span().unpack(&program, fetch.count, 0, data, &mut partial);
            unpacked.map_err(conversion)
        };
        let error = unpack().err()?;
        Some(error.at(|| self.place(peers, Kind::Get, operation, Some(fetch.bytes))))
    }

    /// Moves the ticket of a fetch to the table of tickets, so that the operation's completion
    /// settles it.
    fn hand_over(&mut self, operation: Operation, fetch: &Fetch) {
        if let Some(ticket) = &fetch.waiter {
            self.tickets.insert(operation, ticket.clone());
        }
    }

    /// Opens a `Reply` of several frames. Returns the memory that it is unpacked into, or the error
    /// that it fits none; and the target's bytes. `None` if the operation was given up.
    pub(super) fn open_reply(
        &mut self,
        peer: u32,
        header: &Header,
        peers: &Peers,
    ) -> Option<(Result<Scatter>, Bytes)> {
        let operation = named(peer, header);
        let fetch = self.fetches.remove(operation)?;
        self.hand_over(operation, &fetch);
        let program = answer_program(peer, &fetch, header.length, peers);
        let Fetch { count, lease, bytes, .. } = fetch;
        Some((program.map(|program| Scatter::new(program, count, lease)), bytes))
    }

    /// The last frame of a `Reply` is here. The memory that it was unpacked into has been let go
    /// of.
    ///
    /// # Errors
    /// No operation was under way.
    pub(super) fn finish_reply(
        &mut self,
        peer: u32,
        header: &Header,
        failure: Option<(Error, Bytes)>,
        peers: &Peers,
        notes: &mut Notes,
        out: &mut Outbox,
    ) -> Result<(), String> {
        let operation = named(peer, header);
        let failure = failure.map(|(error, bytes)| {
            error.at(|| self.place(peers, Kind::Get, operation, Some(bytes)))
        });
        self.complete(operation, failure, notes, out)
    }

    /// Takes in a `Refuse`: the operation is done, and it failed.
    ///
    /// # Errors
    /// The refusal can't be decoded, or no operation was under way.
    pub(super) fn handle_refusal(
        &mut self,
        peer: u32,
        header: &Header,
        bytes: &[u8],
        peers: &Peers,
        notes: &mut Notes,
        out: &mut Outbox,
    ) -> Result<(), String> {
        let refusal: Refusal =
            shipable::codec::decode(bytes, CONTROL_LIMIT).map_err(|error| error.to_string())?;
        let class = shipable::Class::from_wire(refusal.class).unwrap_or(shipable::Class::Unknown);
        let operation = named(peer, header);
        if let Some(fetch) = self.fetches.remove(operation) {
            self.hand_over(operation, &fetch);
        }
        let error = Error::from(ErrorKind::Refused { by: peer, class, text: refusal.text });
        let (rank, Operation { window, number, .. }) = (peers.me().rank, operation);
        tracing::warn!(rank, peer, window, operation = number, %error, "was refused");
        let kind = Kind::from_wire(header.tag).unwrap_or(Kind::Put);
        let bytes = refusal.bytes.map(|(start, end)| (start.into(), end.into()));
        let error = error.at(|| self.place(peers, kind, operation, bytes));
        self.complete(operation, Some(error), notes, out)
    }

    /// Completes an operation: its answer is here.
    ///
    /// # Errors
    /// No operation was under way.
    #[inline]
    pub(super) fn complete(
        &mut self,
        operation: Operation,
        error: Option<Error>,
        notes: &mut Notes,
        out: &mut Outbox,
    ) -> Result<(), String> {
        // Under `--check` the target confirms first: its confirmation settles the ticket.
        let awaits_confirmation = notes.is_on() && self.tickets.contains(operation);
        if awaits_confirmation {
            notes.confirm_one(operation, out);
        }
        if let Some(Account { ledger, .. }) = self.windows.get(&operation.window) {
            if let Some(error) = error {
                self.tickets.fail(operation, error, ledger);
            }
            ledger.acknowledge(operation.target, 1)?;
        }
        if !awaits_confirmation {
            self.tickets.settle(operation);
        }
        Ok(())
    }

    /// Settles the ticket of an operation that the target has confirmed.
    pub(super) fn settle(&mut self, operation: Operation) {
        self.tickets.settle(operation);
    }

    /// Notes that the data of an operation couldn't be sent. The target completes the operation
    /// even so.
    pub(super) fn fail(&self, kind: Kind, operation: Operation, error: Error, peers: &Peers) {
        if let Some(Account { ledger, .. }) = self.windows.get(&operation.window) {
            let error = error.at(|| self.place(peers, kind, operation, None));
            self.tickets.fail(operation, error, ledger);
        }
    }

    /// Ends all operations on a target that is gone, with an error.
    pub(super) fn target_gone(&mut self, target: u32, gone: impl Fn() -> Error) {
        self.fetches.give_up(|operation| operation.target == target, &gone);
        self.tickets.give_up(|operation| operation.target == target, &gone);
        for Account { ledger, .. } in self.windows.values() {
            ledger.target_gone(target, &gone);
        }
    }

    /// Lets go of the memory that fetching operations on a window write to.
    pub(super) fn abandon(&mut self, window: u32) {
        self.fetches.give_up(|operation| operation.window == window, aborting);
    }

    /// Ends with an error each call that waits for one operation on a window. If the job ends, all
    /// operations on the window count as done: no target will answer. Otherwise the targets still
    /// answer.
    pub(super) fn give_up(&mut self, window: u32, job_ends: bool) {
        self.tickets.give_up(|operation| operation.window == window, aborting);
        if let Some(Account { ledger, group }) = self.windows.get(&window).filter(|_| job_ends) {
            group.processes().iter().for_each(|&target| ledger.release(target));
        }
    }

    /// The place of an error of an operation of this rank.
    fn place(
        &self,
        peers: &Peers,
        kind: Kind,
        operation: Operation,
        bytes: Option<Bytes>,
    ) -> Place {
        let Operation { target, window, .. } = operation;
        let rank = self.windows.get(&window).and_then(|account| account.group.rank_of(target));
        Place {
            call: kind.call(),
            rank: peers.me().rank,
            target: rank.map(|rank| rank as i32),
            process: Some(target),
            window: Some(window),
            bytes,
            ..Place::default()
        }
    }
}

/// The operation that an answer names.
fn named(peer: u32, header: &Header) -> Operation {
    Operation { target: peer, window: header.context, number: header.operation }
}

fn aborting() -> Error {
    ErrorKind::Aborting { by: None }.into()
}

/// The program that unpacks an answer of `length` bytes.
///
/// # Errors
/// The operation fetches another number of bytes.
fn answer_program(peer: u32, fetch: &Fetch, length: u64, peers: &Peers) -> Result<SharedProgram> {
    let due = match &fetch.origin {
        Some(origin) => {
            let program = origin.program(peers.stream_of(peer)?)?;
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
