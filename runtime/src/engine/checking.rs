//! `--check` in the engine: notes that go in front of frames, and what is made of those that come. Without it, all here does
//! nothing.

use std::sync::Arc;

use longshore_transport::lock::Sharing;
use shipable::reduce::Op;

use super::incoming::Admitted;
use super::outbox::{Outgoing, Purpose, Source};
use super::{BY_NUMBER, Operation, State};
use crate::check::clock::Clock;
use crate::check::footprint::{Footprint, StretchSet};
use crate::check::history::{Access, Deed};
use crate::check::note::{Note, longest};
use crate::check::{Caller, Check, Posted, site};
use crate::wire::{Header, Kind};

impl State {
    /// Sends a note about an operation on a window, in front of what comes next.
    fn note(&mut self, peer: u32, window: u32, operation: u64, note: &Note) {
        // What is told is shorter than what is taken.
        let Ok(bytes) = shipable::codec::encode(note, longest(self.me.size)) else { return };
        let header = Header {
            context: window,
            operation,
            length: bytes.len() as u64,
            ..Header::new(Kind::Note)
        };
        self.push(peer, Outgoing::new(header, Source::Bytes(bytes.into()), Purpose::None));
    }

    /// Tells a peer what this rank knows.
    fn tell_known(&mut self, peer: u32) {
        let news = self.check.as_mut().and_then(|check| check.news_for(peer));
        if let Some(news) = news {
            self.note(peer, 0, 0, &Note::Knows(news));
        }
    }

    /// What comes next lets a peer know what this rank knows and did.
    pub(crate) fn tell_clock(&mut self, peer: u32) {
        self.tell_known(peer);
        if let Some(check) = &mut self.check {
            check.released();
        }
    }

    /// This rank comes to know what a peer did before what it sent.
    pub(crate) fn learn_clock(&mut self, peer: u32) {
        if let Some(check) = &mut self.check {
            check.learn_from(peer);
        }
    }

    /// An operation on a peer's window comes next.
    pub(crate) fn note_call(&mut self, peer: u32, caller: Option<Caller>) {
        if self.check.is_some() {
            self.tell_known(peer);
            self.note(peer, 0, 0, &Note::Calls(site(caller)));
        }
    }

    /// Tells a target that operations up to a number are done here as well, by an operation of its own, unless it knows.
    pub(crate) fn confirm(
        &mut self,
        target: u32,
        window: u32,
        issued: u64,
        number: impl FnOnce() -> u64,
    ) {
        let Some(check) = &mut self.check else { return };
        if !check.is_unconfirmed(window, target, issued) {
            return;
        }
        let number = number();
        check.confirmed(window, target, number);
        let settled = Note::Settled { number: issued, alone: false, clock: check.now() };
        self.note(target, window, number, &settled);
    }

    /// An operation that somebody waits for by itself is done: the target is to know before it is said here. False if
    /// nothing is checked.
    pub(super) fn confirm_alone(&mut self, operation: Operation) -> bool {
        let Operation { target, window, number } = operation;
        let Some(check) = &self.check else { return false };
        if !self.tickets.contains(operation) {
            return false;
        }
        let settled = Note::Settled { number, alone: true, clock: check.now() };
        self.note(target, window, number, &settled);
        true
    }

    /// What a rank knows that gets a window's lock goes in front of it.
    pub(super) fn grant_known(&mut self, peer: u32, window: u32, sharing: Sharing) {
        let known = self.check.as_ref().and_then(|check| check.lock_known(window, sharing));
        if let Some(known) = known {
            self.note(peer, window, 0, &Note::Grants(known.numbers().to_vec()));
        }
    }

    /// A peer gives the lock of this rank's window back.
    pub(super) fn unlocked(&mut self, peer: u32, window: u32, sharing: Sharing) {
        if let Some(check) = &mut self.check {
            check.unlock(window, peer, sharing);
        }
    }

    /// Tells the ranks of a window of a post.
    pub(crate) fn note_post(
        &mut self,
        window: u32,
        ranks: &[u32],
        nocheck: bool,
        group: Vec<u32>,
        caller: Option<Caller>,
    ) {
        let Some(check) = &mut self.check else { return };
        let site = site(caller);
        check.expose(window, Some(Posted { nocheck, site: site.clone(), group: group.clone() }));
        let note = Note::Posts { nocheck, site, group };
        ranks.iter().for_each(|&rank| self.note(rank, window, 0, &note));
    }

    /// Tells a target of a complete.
    pub(crate) fn note_complete(
        &mut self,
        window: u32,
        peer: u32,
        nocheck: bool,
        caller: Option<Caller>,
    ) {
        if self.check.is_some() {
            self.note(peer, window, 0, &Note::Completes { nocheck, site: site(caller) });
        }
    }

    /// Tells the ranks of a circle of it, so that all their calls fail.
    pub(crate) fn note_circle(&mut self, calls: Vec<(u32, u32)>, text: String) {
        let me = self.me.rank;
        let peers = calls.iter().map(|(rank, _)| *rank).filter(|peer| *peer != me);
        let peers: Vec<u32> = peers.collect();
        let note = Note::Circle { calls, text };
        peers.iter().for_each(|&peer| self.note(peer, 0, 0, &note));
    }

    /// Takes a note in.
    pub(super) fn handle_note(
        &mut self,
        peer: u32,
        header: &Header,
        bytes: &[u8],
    ) -> Result<(), String> {
        let limit = longest(self.me.size);
        let note = shipable::codec::decode(bytes, limit).map_err(|error| error.to_string())?;
        let Some(check) = &mut self.check else {
            return Err("it runs with --check, and this rank doesn't".to_owned());
        };
        let window = header.context;
        let known = |numbers: Vec<u64>| match numbers.len() == self.me.size as usize {
            true => Ok(Clock::from_numbers(numbers)),
            false => Err("a clock of another job".to_owned()),
        };
        match note {
            Note::Knows(numbers) => check.hear(peer, known(numbers)?),
            // Nobody may have had the lock, or accumulated.
            Note::Grants(numbers) if numbers.is_empty() => {}
            Note::Grants(numbers) => check.learn(&known(numbers)?),
            Note::Calls(site) => check.hear_of_call(peer, site),
            Note::Settled { number, alone, clock } => {
                check.settle(window, peer, number, alone, clock);
                match alone {
                    true => self.note(peer, window, number, &Note::Confirmed),
                    false => self.done(peer, window, header.operation),
                }
            }
            Note::Confirmed => {
                let (target, number) = (peer, header.operation);
                self.tickets.settle(Operation { target, window, number });
            }
            Note::Posts { nocheck, site, group } => {
                check.hear_of_post(window, peer, Posted { nocheck, site, group });
            }
            Note::Circle { calls, text } => check.hear_of_circle(calls, text),
            Note::Completes { nocheck, site } => check.completed(window, peer, nocheck, &site),
        }
        Ok(())
    }

    /// An operation of a peer has arrived: records it, if it is one that is carried out.
    pub(super) fn record(&mut self, peer: u32, header: &Header) {
        let Some(mut check) = self.check.take() else { return };
        if let Some((access, fetches)) = self.access(&mut check, peer, header) {
            let granted = check.access(header.context, access, fetches);
            self.check = Some(check);
            if let Some(granted) = granted.filter(|granted| !granted.is_empty()) {
                self.note(peer, header.context, header.operation, &Note::Grants(granted));
            }
            return;
        }
        self.check = Some(check);
    }

    fn access(&self, check: &mut Check, peer: u32, header: &Header) -> Option<(Access, bool)> {
        let site = check.take_call(peer);
        let Admitted { exposure, form, .. } = self.admit(peer, header).ok()?;
        let program = form.packing(&self.me.architecture).ok()?;
        let base = exposure.reach(header, form, &self.me.architecture).ok()?.base;
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
            alone: fetches || header.kind == Kind::Get || by_number,
            settled: None,
        };
        Some((access, fetches))
    }
}
