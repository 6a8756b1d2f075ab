//! How ranks introduce themselves, before anything else: each comes to know all, and says hello to few.
//!
//! 1. Before step k a rank knows the `held = 2^k` ranks from itself on.
//! 2. It introduces as many of them as are missing there to the rank `held` before it, and hears from the one `held` after.
//!
//! So a job of n ranks takes n ceil(log2 n) hellos, over the connections that collective calls use later.

use std::collections::HashMap;

use shipable::Architecture;

use super::outbox::{Outgoing, Purpose, Source};
use super::peer::ROOM;
use super::{State, forms};
use crate::error::{ErrorKind, Result};
use crate::wire::{Founding, Header, Hello, Introduction, Kind, PROTOCOL, hello_limit};

/// Whom this rank knows.
#[derive(Default)]
pub(super) struct Greetings {
    /// So many ranks, from itself on.
    held: u32,
    /// Of what kind they are: so many at a time that are alike.
    ranks: Vec<(u32, Introduction)>,
    /// Hellos that came before their turn, by sender.
    early: HashMap<u32, Hello>,
}

impl Greetings {
    fn add(&mut self, introduction: &Introduction) {
        self.held += 1;
        match self.ranks.last_mut() {
            Some((run, last)) if last == introduction => *run += 1,
            _ => self.ranks.push((1, introduction.clone())),
        }
    }

    /// The first `count` ranks.
    fn first(&self, mut count: u32) -> Vec<(u32, Introduction)> {
        let mut ranks = Vec::new();
        for (run, introduction) in &self.ranks {
            let taken = count.min(*run);
            if taken > 0 {
                ranks.push((taken, introduction.clone()));
            }
            count -= taken;
        }
        ranks
    }
}

impl State {
    /// Introduces this rank to itself, and sets off its hellos.
    pub(crate) fn start_hello(&mut self) -> Result<()> {
        let mine = Introduction {
            architecture: self.me.architecture.descriptor(),
            emulated: self.me.emulated,
            room: ROOM,
            form_limit: forms::LONGEST,
        };
        let introduced = self.introduce(self.me.rank, &mine);
        introduced.map_err(|what| self.no_hello(what))?;
        self.say_hello().map_err(|what| self.no_hello(what))
    }

    fn no_hello(&self, what: String) -> crate::error::Error {
        ErrorKind::Protocol { peer: self.me.rank, what }.into()
    }

    /// A peer is of this kind.
    fn introduce(&mut self, rank: u32, introduction: &Introduction) -> Result<(), String> {
        let architecture = Architecture::from_descriptor(&introduction.architecture);
        let architecture = architecture.map_err(|error| error.to_string())?;
        self.peers[rank as usize].meet(architecture, introduction);
        self.greetings.add(introduction);
        Ok(())
    }

    /// How many ranks the rank `held` before this one is missing, where this one knows `held`.
    fn missing(&self, held: u32) -> u32 {
        held.min(self.me.size - held)
    }

    /// The next hello, unless this rank knows all.
    fn say_hello(&mut self) -> Result<(), String> {
        let held = self.greetings.held;
        if held >= self.me.size {
            return Ok(());
        }
        let ranks = self.greetings.first(self.missing(held));
        let (secret, founding) = (self.secret.clone(), self.founding);
        let hello = Hello { protocol: PROTOCOL, secret, founding, ranks };
        let bytes = shipable::codec::encode(&hello, hello_limit(self.me.size));
        let bytes = bytes.map_err(|error| error.to_string())?;
        let header = Header { length: bytes.len() as u64, ..Header::new(Kind::Hello) };
        let peer = (self.me.rank + self.me.size - held) % self.me.size;
        self.push(peer, Outgoing::new(header, Source::Bytes(bytes.into()), Purpose::None));
        Ok(())
    }

    /// Checks who speaks; nothing else of a peer is listened to before it is known, but that it is there.
    pub(super) fn handle_hello(&mut self, peer: u32, bytes: &[u8]) -> Result<(), String> {
        let hello: Hello = shipable::codec::decode(bytes, hello_limit(self.me.size))
            .map_err(|error| error.to_string())?;
        if hello.protocol != PROTOCOL {
            return Err(format!(
                "it speaks protocol {}, this rank {PROTOCOL}: build both of one version",
                hello.protocol
            ));
        }
        if hello.secret != self.secret {
            return Err("it can't prove that it belongs to this job".to_owned());
        }
        let distance = (peer + self.me.size - self.me.rank) % self.me.size;
        if !distance.is_power_of_two() {
            return Err(format!("a hello to rank {}, which is {distance} before it", self.me.rank));
        }
        let introduced: u64 = hello.ranks.iter().map(|(run, _)| u64::from(*run)).sum();
        if introduced != u64::from(self.missing(distance)) {
            return Err(format!("a hello for {introduced} ranks, not {}", self.missing(distance)));
        }
        if self.greetings.early.insert(peer, hello).is_some() || self.representation(peer).is_some()
        {
            return Err("it said hello twice".to_owned());
        }
        self.advance_hellos()
    }

    /// Takes in what has come, in the order of the steps.
    fn advance_hellos(&mut self) -> Result<(), String> {
        loop {
            let awaited = self.awaited_hello();
            let Some(hello) = awaited.and_then(|peer| self.greetings.early.remove(&peer)) else {
                return Ok(());
            };
            self.founding = self.founding.or(hello.founding);
            for (run, introduction) in &hello.ranks {
                for _ in 0..*run {
                    let next = (self.me.rank + self.greetings.held) % self.me.size;
                    self.introduce(next, introduction)?;
                }
            }
            self.say_hello()?;
        }
    }

    /// The rank whose hello comes next; none once all are known.
    pub(crate) fn awaited_hello(&self) -> Option<u32> {
        let held = self.greetings.held;
        (held < self.me.size).then(|| (self.me.rank + held) % self.me.size)
    }

    /// What the job begins with, once all are known; an error if someone never will be.
    pub(crate) fn take_hello(&mut self) -> Option<Result<Founding>> {
        if let Some(gone) = (0..self.me.size).find_map(|rank| self.gone(rank)) {
            return Some(Err(gone));
        }
        if self.awaited_hello().is_some() {
            return None;
        }
        let missing = || ErrorKind::Protocol { peer: 0, what: "it founded no job".to_owned() };
        Some(self.founding.ok_or_else(|| missing().into()))
    }
}
