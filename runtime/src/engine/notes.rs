//! `--check` in the engine: the notes that travel in front of frames, and the record of peers'
//! operations.
//!
//! A note is a stream of its own (`Kind::Note`). It names the window and operation that the next
//! frame is about. Without `--check` all methods do nothing. The module
//! [`crate::check`] decides which uses of a window are errors.

use std::sync::Arc;

use longshore_transport::lock::Sharing;
use shipable::reduce::Op;

use super::operation::{BY_NUMBER, Due, Operation};
use super::outbox::{Outbox, Outgoing, Purpose, Source};
use super::peers::Peers;
use super::target::{Admitted, Target};
use crate::check::clock::Clock;
use crate::check::footprint::{Footprint, StretchSet};
use crate::check::history::{Access, Deed};
use crate::check::messages::{Got, Send, Told};
use crate::check::note::{Note, longest};
use crate::check::{Check, Posted, site};
use crate::error::Error;
use crate::job::Topic;
use crate::program::Line;
use crate::wire::{Header, Kind};

/// The notes of a rank.
pub(super) struct Notes {
    /// `None` without `--check`.
    check: Option<Box<Check>>,
    /// The number of ranks in the job.
    size: u32,
}

impl Notes {
    pub(super) fn new(size: u32) -> Notes {
        Notes { check: None, size }
    }

    /// Turns checking on.
    pub(super) fn turn_on(&mut self, check: Check) {
        self.check = Some(Box::new(check));
    }

    /// Whether uses of windows are checked.
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.check.is_some()
    }

    /// The record, under `--check`.
    pub(super) fn check(&mut self) -> Option<&mut Check> {
        self.check.as_deref_mut()
    }

    /// Sends a note about an operation on a window. The frame that it is about follows.
    fn send(&self, peer: u32, window: u32, operation: u64, note: &Note, out: &mut Outbox) {
        // No note that this rank makes is too long.
        let Ok(bytes) = shipable::codec::encode(note, longest(self.size)) else { return };
        let header = Header {
            context: window,
            operation,
            length: bytes.len() as u64,
            ..Header::new(Kind::Note)
        };
        out.push(peer, Outgoing::new(header, Source::Bytes(bytes.into()), Purpose::None));
    }

    /// Sends a peer this rank's clock, if the peer doesn't know it.
    fn tell_known(&mut self, peer: u32, out: &mut Outbox) {
        let news = self.check.as_mut().and_then(|check| check.news_for(peer));
        if let Some(news) = news {
            self.send(peer, 0, 0, &Note::Knows(news), out);
        }
    }

    /// Sends a peer this rank's clock. The next frame orders the peer's later accesses after this
    /// rank's earlier ones.
    pub(super) fn tell_clock(&mut self, peer: u32, out: &mut Outbox) {
        self.tell_known(peer, out);
        if let Some(check) = &mut self.check {
            check.released();
        }
    }

    /// Orders this rank's later accesses after those that a peer made before its last frame.
    pub(super) fn learn_clock(&mut self, peer: u32) {
        if let Some(check) = &mut self.check {
            check.learn_from(peer);
        }
    }

    /// What a peer has told of the message that has just arrived, for the receive that gets it;
    /// `None` without `--check`.
    #[inline]
    pub(super) fn told(&mut self, peer: u32) -> Option<Box<Told>> {
        self.check.as_mut().map(|check| Box::new(check.take_told(peer)))
    }

    /// Announces the send of the message that follows, which a call has started.
    pub(super) fn announce_send(&mut self, peer: u32, line: Line, blocks: bool, out: &mut Outbox) {
        let Some(check) = &mut self.check else { return };
        let Send { site, is_first } = check.start_send(peer, line, blocks);
        let note = Note::Sends { site: site.to_string(), is_first };
        self.send(peer, 0, 0, &note, out);
    }

    /// Checks a message that a receive has got, and orders this rank's later accesses after those
    /// that its sender's clock covers.
    #[cold]
    pub(super) fn received(&mut self, number: u64, got: Got, told: &Told, peers: &Peers) {
        if let Some(check) = &mut self.check {
            let by_length = peers.matches_by_length(got.peer);
            let memory = by_length.then_some(&peers.me().architecture);
            check.end_receive(number, got, told, memory);
        }
    }

    /// Checks the error of a receive. Where all types are compared, as in Rust, the error is the
    /// report.
    #[cold]
    pub(super) fn failed(&mut self, number: u64, error: &Error, peers: &Peers) {
        if let Some(check) = &mut self.check {
            check.fail_receive(number, error, peers.me().by_length);
        }
    }

    /// Notes that a peer's operation raises a notification counter of this rank.
    pub(super) fn notified(&mut self, due: Due) {
        if let Some(check) = &mut self.check {
            check.notified(due.window, due.counter, due.origin, due.number);
        }
    }

    /// Announces the call of the operation that follows.
    pub(super) fn announce_call(&mut self, peer: u32, caller: Option<Line>, out: &mut Outbox) {
        if self.check.is_some() {
            self.tell_known(peer, out);
            self.send(peer, 0, 0, &Note::Calls(site(caller)), out);
        }
    }

    /// Informs a target that its operations up to number `issued` are done at this rank too, unless
    /// it knows. `number` issues the operation that the target answers this note by.
    pub(super) fn confirm(
        &mut self,
        target: u32,
        window: u32,
        issued: u64,
        number: impl FnOnce() -> u64,
        out: &mut Outbox,
    ) {
        let Some(check) = &mut self.check else { return };
        if !check.is_unconfirmed(window, target, issued) {
            return;
        }
        let number = number();
        check.confirmed(window, target, number);
        let settled = Note::Settled { number: issued, alone: false, clock: check.now() };
        self.send(target, window, number, &settled, out);
    }

    /// Informs the target that this one operation is done at this rank too. Its ticket is settled
    /// by the target's answer, a `Confirmed`: the target has to know before the call returns.
    pub(super) fn confirm_one(&mut self, operation: Operation, out: &mut Outbox) {
        let Operation { target, window, number } = operation;
        let Some(check) = &self.check else { return };
        let settled = Note::Settled { number, alone: true, clock: check.now() };
        self.send(target, window, number, &settled, out);
    }

    /// Sends the joined clocks of a lock's past holders to the peer that gets the lock.
    pub(super) fn grant(&mut self, peer: u32, window: u32, sharing: Sharing, out: &mut Outbox) {
        let known = self.check.as_ref().and_then(|check| check.lock_known(window, sharing));
        if let Some(known) = known {
            self.send(peer, window, 0, &Note::Grants(known.numbers().to_vec()), out);
        }
    }

    /// Notes that a peer has given back the lock of a window of this rank.
    pub(super) fn unlocked(&mut self, peer: u32, window: u32, sharing: Sharing) {
        if let Some(check) = &mut self.check {
            check.unlock(window, peer, sharing);
        }
    }

    /// Announces a post to the ranks of a window.
    pub(super) fn announce_post(
        &mut self,
        window: u32,
        ranks: &[u32],
        post: (bool, Vec<u32>),
        caller: Option<Line>,
        out: &mut Outbox,
    ) {
        let Some(check) = &mut self.check else { return };
        let ((nocheck, group), site) = (post, site(caller));
        check.expose(window, Some(Posted { nocheck, site: site.clone(), group: group.clone() }));
        let note = Note::Posts { nocheck, site, group };
        ranks.iter().for_each(|&rank| self.send(rank, window, 0, &note, out));
    }

    /// Announces a complete to a target.
    pub(super) fn announce_complete(
        &mut self,
        window: u32,
        peer: u32,
        nocheck: bool,
        caller: Option<Line>,
        out: &mut Outbox,
    ) {
        if self.check.is_some() {
            self.send(peer, window, 0, &Note::Completes { nocheck, site: site(caller) }, out);
        }
    }

    /// Sends a circle to all its ranks but this one, so that all their calls fail.
    pub(super) fn announce_circle(
        &mut self,
        me: u32,
        calls: Vec<(u32, u32)>,
        text: String,
        out: &mut Outbox,
    ) {
        let peers = calls.iter().map(|(rank, _)| *rank).filter(|peer| *peer != me);
        let peers: Vec<u32> = peers.collect();
        let note = Note::Circle { calls, text };
        peers.iter().for_each(|&peer| self.send(peer, 0, 0, &note, out));
    }

    /// Takes in a `Note`. Returns the operation that the target has confirmed, if the note is a
    /// confirmation.
    ///
    /// # Errors
    /// The note can't be decoded, or this rank isn't under `--check`.
    pub(super) fn handle_note(
        &mut self,
        peer: u32,
        header: &Header,
        bytes: &[u8],
        out: &mut Outbox,
    ) -> Result<Option<Operation>, String> {
        let note = shipable::codec::decode(bytes, longest(self.size));
        let note = note.map_err(|error| error.to_string())?;
        let Some(check) = &mut self.check else {
            return Err("it runs with --check, and this rank doesn't".to_owned());
        };
        let window = header.context;
        let size = self.size as usize;
        let clock = |numbers: Vec<u64>| match numbers.len() == size {
            true => Ok(Clock::from_numbers(numbers)),
            false => Err("a clock of another job".to_owned()),
        };
        match note {
            Note::Knows(numbers) => check.hear(peer, clock(numbers)?),
            // The lock had no holder before, or the location no accumulate.
            Note::Grants(numbers) if numbers.is_empty() => {}
            Note::Grants(numbers) => check.learn(&clock(numbers)?),
            Note::Calls(site) => check.hear_of_call(peer, site),
            Note::Sends { site, is_first } => check.hear_of_send(peer, site, is_first),
            Note::Settled { number, alone, clock } => {
                check.settle(window, peer, number, alone, clock);
                match alone {
                    true => self.send(peer, window, number, &Note::Confirmed, out),
                    false => out.push_done(peer, window, header.operation),
                }
            }
            Note::Confirmed => {
                let (target, number) = (peer, header.operation);
                return Ok(Some(Operation { target, window, number }));
            }
            Note::Posts { nocheck, site, group } => {
                check.hear_of_post(window, peer, Posted { nocheck, site, group });
            }
            Note::Circle { calls, text } => check.hear_of_circle(calls, text),
            Note::Completes { nocheck, site } => check.completed(window, peer, nocheck, &site),
        }
        Ok(None)
    }

    /// Records an operation of a peer that has arrived, if the target will carry it out. The origin
    /// of an operation that fetches gets the clocks of the accumulates before it.
    pub(super) fn record(
        &mut self,
        peer: u32,
        header: &Header,
        target: &Target,
        peers: &Peers,
        out: &mut Outbox,
    ) {
        let Some(check) = &mut self.check else { return };
        let Some((access, fetches)) = access(check, peer, header, target, peers) else { return };
        let granted = check.access(header.context, access, fetches);
        if let Some(granted) = granted.filter(|granted| !granted.is_empty()) {
            self.send(peer, header.context, header.operation, &Note::Grants(granted), out);
        }
    }
}

/// The bytes that an operation of a peer accesses, and whether it fetches. `None` if the target
/// refuses it.
fn access(
    check: &mut Check,
    peer: u32,
    header: &Header,
    target: &Target,
    peers: &Peers,
) -> Option<(Access, bool)> {
    let site = check.take_call(peer);
    let memory = &peers.me().architecture;
    let Admitted { exposure, form, .. } = target.admit(peer, header, peers).ok()?;
    if exposure.breaks_no_put(header) {
        let (window, owner) = (exposure.window, peers.me().rank);
        check.tell(Topic::Windows, format!("9 NOPUT {site}"), || {
            format!(
                "check: rule 9, window {window} of rank {owner}: the rank promised NOPUT, and its \
                 window is changed\ncheck:   by rank {peer} at {site}\ncheck:   leave out the \
                 assert\n"
            )
        });
    }
    let program = form.packing(memory).ok()?;
    let base = exposure.reach(header, form, memory).ok()?.base;
    let shape = StretchSet::new(program, header.count);
    let deed = match header.kind {
        Kind::Put => Deed::Put,
        Kind::Get => Deed::Get,
        Kind::Swap => Deed::Accumulate(None, form.form.single_leaf()?),
        _ => {
            let op = Op::from_wire(header.tag & !BY_NUMBER)?;
            Deed::Accumulate(Some(op), form.form.single_leaf()?)
        }
    };
    let fetches = matches!(header.kind, Kind::Fetch | Kind::Swap);
    let by_number = header.tag & BY_NUMBER != 0;
    let access = Access {
        origin: peer,
        deed,
        site,
        footprint: Footprint::new(Arc::new(shape), base),
        number: header.operation,
        alone: fetches || header.kind == Kind::Get || by_number || header.notify.is_some(),
        settled: None,
        seen: None,
    };
    Some((access, fetches))
}
