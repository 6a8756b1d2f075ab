//! Locks and tallies of peers that don't touch this rank's control block themselves: the same operations, on arrival.
//!
//! A lock that can't be granted at once waits here, and is asked after whenever progress is made.

use std::collections::HashMap;

use longshore_transport::lock::{Claim, Sharing, User};

use super::State;
use super::outbox::Outgoing;
use crate::control::Tally;
use crate::error::ErrorKind;
use crate::wire::{Brief, Header, Kind};

/// What peers have and wait for.
#[derive(Default)]
pub(super) struct Locks {
    /// By window and peer, with the number by which each is answered.
    claims: HashMap<(u32, u32), (Claim, u64, Sharing)>,
    /// Those of the claims that aren't granted.
    waiting: Vec<(u32, u32)>,
}

/// How a lock is asked for on the wire.
fn sharing_from_wire(value: u64) -> Option<Sharing> {
    match value {
        1 => Some(Sharing::Shared),
        2 => Some(Sharing::Exclusive),
        _ => None,
    }
}

fn sharing_to_wire(sharing: Sharing) -> u64 {
    match sharing {
        Sharing::Shared => 1,
        Sharing::Exclusive => 2,
    }
}

impl State {
    /// Asks a peer for its window's lock: an operation that is done once the lock is granted.
    pub(crate) fn start_lock(&mut self, peer: u32, window: u32, number: u64, sharing: Sharing) {
        let value = sharing_to_wire(sharing);
        let brief = Brief { kind: Kind::Lock, context: window, operation: number, value };
        self.push(peer, Outgoing::brief(brief));
    }

    /// Asks a peer for an answer behind all that it sent before: an operation that is done then.
    pub(crate) fn start_ping(&mut self, peer: u32, window: u32, number: u64) {
        let brief = Brief { kind: Kind::Ping, context: window, operation: number, value: 0 };
        self.push(peer, Outgoing::brief(brief));
    }

    /// Gives a peer's lock back, behind all that was sent before.
    pub(crate) fn start_unlock(&mut self, peer: u32, window: u32) {
        self.release(peer);
        let brief = Brief { kind: Kind::Unlock, context: window, operation: 0, value: 0 };
        self.push(peer, Outgoing::brief(brief));
    }

    /// Tells a peer of a post or complete, behind all that was sent before.
    pub(crate) fn start_signal(&mut self, peer: u32, window: u32, tally: Tally) {
        self.release(peer);
        let kind = match tally {
            Tally::Posts => Kind::Post,
            Tally::Completes => Kind::Complete,
        };
        self.push(peer, Outgoing::brief(Brief { kind, context: window, operation: 0, value: 0 }));
    }

    pub(super) fn handle_lock(&mut self, peer: u32, brief: &Brief) {
        let Brief { context: window, operation, value, .. } = *brief;
        let claimed =
            self.windows.get(&window).ok_or(ErrorKind::WindowFreed).and_then(|exposure| {
                let control = &exposure.control;
                let member = control.group().rank_of(peer);
                let (Some(number), Some(sharing)) = (member, sharing_from_wire(value)) else {
                    return Err(ErrorKind::Protocol { peer, what: format!("a lock of {value}") });
                };
                if self.locks.claims.contains_key(&(window, peer)) {
                    return Err(ErrorKind::Epoch(TWICE));
                }
                if control.is_exposed(control.rank()) {
                    return Err(ErrorKind::Epoch(EXPOSED));
                }
                let user = User { number, served: true };
                Ok((control.claim(control.rank(), user, sharing), sharing))
            });
        match claimed {
            Ok((claim, sharing)) => {
                self.locks.claims.insert((window, peer), (claim, operation, sharing));
                self.locks.waiting.push((window, peer));
                self.grant();
            }
            Err(kind) => {
                let header = Header { context: window, operation, ..Header::new(Kind::Lock) };
                self.refuse(peer, &header, &kind.into());
            }
        }
    }

    /// Grants what can be granted by now; true if anything was.
    pub(super) fn grant(&mut self) -> bool {
        if self.locks.waiting.is_empty() {
            return false;
        }
        let mut granted = Vec::new();
        let State { locks: Locks { claims, waiting }, windows, .. } = self;
        waiting.retain(|&(window, peer)| {
            let claim = claims.get_mut(&(window, peer));
            let (Some((claim, operation, sharing)), Some(exposure)) = (claim, windows.get(&window))
            else {
                return false;
            };
            let control = &exposure.control;
            let waits = !control.poll(control.rank(), claim, true);
            if !waits {
                granted.push((window, peer, *operation, *sharing));
            }
            waits
        });
        for &(window, peer, operation, sharing) in &granted {
            self.grant_known(peer, window, sharing);
            self.done(peer, window, operation);
        }
        !granted.is_empty()
    }

    pub(super) fn handle_unlock(&mut self, peer: u32, window: u32) -> Result<(), String> {
        // Nobody waits for an unlock to arrive: the window may be freed by then, as one that all have left.
        let Some(exposure) = self.windows.get(&window) else { return Ok(()) };
        let claim = self.locks.claims.remove(&(window, peer));
        let (claim, _, sharing) = claim.ok_or("an unlock of no lock")?;
        exposure.control.release(exposure.control.rank(), claim);
        self.unlocked(peer, window, sharing);
        self.grant();
        Ok(())
    }

    pub(super) fn handle_tally(&mut self, peer: u32, window: u32, tally: Tally) {
        // A window that is freed here has no use for it.
        let Some(exposure) = self.windows.get(&window) else { return };
        let control = &exposure.control;
        if let Some(rank) = control.group().rank_of(peer) {
            control.signal_here(tally, rank);
        }
    }

    /// Lets go of locks that nobody will give back. One that waited for its turn is passed over by who comes behind it, once
    /// its owner is known to be dead.
    pub(super) fn forget_locks(&mut self, of: impl Fn(u32, u32) -> bool) {
        let State { locks: Locks { claims, waiting }, windows, .. } = self;
        waiting.retain(|&(window, peer)| !of(window, peer));
        claims.retain(|&(window, peer), (claim, ..)| {
            let forget = of(window, peer);
            // Does nothing to one whose turn hasn't come.
            if let (true, Some(exposure)) = (forget, windows.get(&window)) {
                exposure.control.release(exposure.control.rank(), *claim);
            }
            !forget
        });
    }
}

const TWICE: &str = "the window is locked by this rank already: unlock it first (rule 5)";

pub(crate) const EXPOSED: &str = "the target has exposed its window by a post: a window is either exposed or locked, not \
     both at a time (rule 6); lock it after its wait";
