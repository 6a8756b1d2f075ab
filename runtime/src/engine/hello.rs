//! How ranks introduce themselves to each other, before anything else.

use std::sync::Arc;

use shipable::Architecture;

use super::outbox::{Outgoing, Purpose, Source};
use super::peer::ROOM;
use super::{State, forms};
use crate::error::{ErrorKind, Result};
use crate::wire::{CONTROL_LIMIT, Founding, Header, Hello, Kind, PROTOCOL};

impl State {
    /// Sets off a hello to everyone, itself included.
    pub(crate) fn start_hello(&mut self) -> Result<()> {
        let hello = Hello {
            protocol: PROTOCOL,
            rank: self.me.rank,
            architecture: self.me.architecture.descriptor(),
            emulated: self.me.emulated,
            room: ROOM,
            form_limit: forms::LONGEST,
            secret: self.secret.clone(),
            founding: self.founding,
        };
        let bytes: Arc<[u8]> = shipable::codec::encode(&hello, CONTROL_LIMIT)
            .map_err(|error| ErrorKind::Protocol { peer: self.me.rank, what: error.to_string() })?
            .into();
        for peer in 0..self.me.size {
            let header = Header { length: bytes.len() as u64, ..Header::new(Kind::Hello) };
            self.push(peer, Outgoing::new(header, Source::Bytes(bytes.clone()), Purpose::None));
        }
        Ok(())
    }

    /// Checks who speaks; nothing else of a peer is listened to before.
    pub(super) fn handle_hello(&mut self, peer: u32, bytes: &[u8]) -> Result<(), String> {
        let hello: Hello =
            shipable::codec::decode(bytes, CONTROL_LIMIT).map_err(|error| error.to_string())?;
        if hello.protocol != PROTOCOL {
            return Err(format!(
                "it speaks protocol {}, this rank {PROTOCOL}: build both of one version",
                hello.protocol
            ));
        }
        if hello.secret != self.secret || hello.rank != peer {
            return Err("it can't prove that it belongs to this job".to_owned());
        }
        if self.peers[peer as usize].architecture().is_some() {
            return Err("it said hello twice".to_owned());
        }
        let architecture = Architecture::from_descriptor(&hello.architecture)
            .map_err(|error| error.to_string())?;
        if peer == 0 {
            self.founding = hello.founding;
        }
        self.peers[peer as usize].meet(architecture, &hello);
        Ok(())
    }

    /// The first rank that hasn't said hello.
    pub(crate) fn awaited_hello(&self) -> Option<u32> {
        self.peers.iter().position(|peer| peer.architecture().is_none()).map(|peer| peer as u32)
    }

    /// What the job begins with, once everyone has said hello; an error if someone never will.
    pub(crate) fn take_hello(&mut self) -> Option<Result<Founding>> {
        if let Some(gone) = (0..self.me.size).find_map(|rank| self.gone(rank)) {
            return Some(Err(gone));
        }
        let all_known = self.peers.iter().all(|peer| peer.architecture().is_some());
        let missing = || ErrorKind::Protocol { peer: 0, what: "it founded no job".to_owned() };
        all_known.then(|| self.founding.ok_or_else(|| missing().into()))
    }
}
