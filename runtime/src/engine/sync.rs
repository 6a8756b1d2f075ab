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
    /// By window and peer; this rank's own, where it is forsaken.
    claims: HashMap<(u32, u32), Wish>,
    /// Those of the claims that aren't granted.
    waiting: Vec<(u32, u32)>,
}

/// A claim on this rank's lock of a window.
struct Wish {
    claim: Claim,
    /// The number by which it is answered.
    operation: u64,
    /// Nobody waits for it any more. It keeps its place in the queue, and is let go of in its turn.
    forsaken: bool,
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
        self.tell_clock(peer);
        let brief = Brief { kind: Kind::Unlock, context: window, operation: 0, value: 0 };
        self.push(peer, Outgoing::brief(brief));
    }

    /// Waits no more for a peer's lock that was asked for with this number. The peer may have granted or refused it by now.
    pub(crate) fn forsake_lock(&mut self, peer: u32, window: u32, number: u64) {
        let brief = Brief { kind: Kind::Unlock, context: window, operation: number, value: 0 };
        self.push(peer, Outgoing::brief(brief));
    }

    /// Likewise for this rank's own claim, which stands in the queue.
    pub(crate) fn forsake_own(&mut self, window: u32, claim: Claim) {
        let wish = Wish { claim, operation: 0, forsaken: true };
        self.locks.claims.insert((window, self.me.rank), wish);
        self.locks.waiting.push((window, self.me.rank));
        self.grant();
    }

    /// Takes such a claim back, where it still stands in the queue: a rank has one at a time.
    pub(crate) fn reclaim_own(&mut self, window: u32, sharing: Sharing) -> Option<Claim> {
        let own = (window, self.me.rank);
        let mut claim = self.locks.claims.remove(&own)?.claim;
        self.locks.waiting.retain(|waiting| *waiting != own);
        claim.want(sharing);
        Some(claim)
    }

    /// Tells a peer of a post or complete, behind all that was sent before.
    pub(crate) fn start_signal(&mut self, peer: u32, window: u32, tally: Tally) {
        self.tell_clock(peer);
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
                let known = self.locks.claims.get_mut(&(window, peer));
                if known.as_ref().is_some_and(|wish| !wish.forsaken) {
                    return Err(ErrorKind::Epoch(TWICE));
                }
                if control.is_exposed(control.rank()) {
                    return Err(ErrorKind::Epoch(EXPOSED));
                }
                if let Some(wish) = known {
                    // It waits on where it stands.
                    wish.claim.want(sharing);
                    (wish.operation, wish.forsaken) = (operation, false);
                    return Ok(None);
                }
                let user = User { number, served: true };
                let claim = control.claim(control.rank(), user, sharing);
                Ok(Some(Wish { claim, operation, forsaken: false }))
            });
        match claimed {
            Ok(wish) => {
                if let Some(wish) = wish {
                    self.locks.claims.insert((window, peer), wish);
                    self.locks.waiting.push((window, peer));
                }
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
            let (Some(wish), Some(exposure)) = (claim, windows.get(&window)) else {
                return false;
            };
            let control = &exposure.control;
            let waits = !control.poll(control.rank(), &mut wish.claim, true);
            match (waits, wish.forsaken) {
                (true, _) => {}
                (false, false) => {
                    granted.push((window, peer, wish.operation, wish.claim.sharing()));
                }
                (false, true) => {
                    control.release(control.rank(), wish.claim);
                    claims.remove(&(window, peer));
                }
            }
            waits
        });
        for &(window, peer, operation, sharing) in &granted {
            self.grant_known(peer, window, sharing);
            self.done(peer, window, operation);
        }
        !granted.is_empty()
    }

    /// A peer gives a lock back, or waits no more for the one that it asked for with this number.
    pub(super) fn handle_unlock(
        &mut self,
        peer: u32,
        window: u32,
        forsaken: u64,
    ) -> Result<(), String> {
        // Nobody waits for an unlock to arrive: the window may be freed by then, as one that all have left.
        let Some(exposure) = self.windows.get(&window) else { return Ok(()) };
        let at = (window, peer);
        if forsaken != 0 && self.locks.waiting.contains(&at) {
            if let Some(wish) = self.locks.claims.get_mut(&at) {
                wish.forsaken = true;
            }
            // Its asking is over, so that the peer's account comes out even.
            self.done(peer, window, forsaken);
            self.grant();
            return Ok(());
        }
        let wish = match self.locks.claims.remove(&at) {
            Some(wish) => wish,
            // It was refused.
            None if forsaken != 0 => return Ok(()),
            None => return Err("an unlock of no lock".to_owned()),
        };
        exposure.control.release(exposure.control.rank(), wish.claim);
        self.unlocked(peer, window, wish.claim.sharing());
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
        claims.retain(|&(window, peer), wish| {
            let forget = of(window, peer);
            // Does nothing to one whose turn hasn't come.
            if let (true, Some(exposure)) = (forget, windows.get(&window)) {
                exposure.control.release(exposure.control.rank(), wish.claim);
            }
            !forget
        });
    }
}

const TWICE: &str = "the window is locked by this rank already: unlock it first (rule 5)";

pub(crate) const EXPOSED: &str = "the target has exposed its window by a post: a window is either exposed or locked, not \
     both at a time (rule 6); lock it after its wait";
