//! Locks of windows, by message, for origins that don't access this rank's control block
//! themselves.
//!
//! 1. The origin sends `Lock` after its earlier frames. The target claims the lock of its control
//!    block for it.
//! 2. The claim stands in the lock's queue until it is granted. Progress polls the claims that
//!    wait.
//! 3. A `Done` with the operation's number grants the lock; a `Refuse` refuses it.
//! 4. The origin sends `Unlock` after the operations of the epoch. One with an operation's number
//!    forsakes the claim: its origin waits for it no more, and the claim is released in its turn.
//!
//! Posts and completes by message are counted in the control block too, by
//! [`Exposures::handle_signal`](super::target::Exposures::handle_signal).

use std::collections::HashMap;

use longshore_transport::lock::{Claim, Sharing, User};

use super::notes::Notes;
use super::outbox::Outbox;
use super::reply::refusal;
use super::target::Exposures;
use crate::control::Tally;
use crate::error::ErrorKind;
use crate::wire::{Brief, Header, Kind};

/// The claims on the locks of this rank's windows.
pub(super) struct Locks {
    /// This rank, in the job.
    me: u32,
    /// By window and peer. This rank's own claim is here only while it is forsaken.
    requests: HashMap<(u32, u32), Request>,
    /// The requests that aren't granted.
    waiting: Vec<(u32, u32)>,
}

/// A claim on the lock of one of this rank's windows.
struct Request {
    claim: Claim,
    /// The number of the operation that the grant completes.
    operation: u64,
    /// The origin waits for it no more. It keeps its place in the queue, and is released in its
    /// turn.
    forsaken: bool,
}

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

/// The frame that asks a peer for its window's lock: an operation that is done once the lock is
/// granted.
pub(super) fn lock_brief(window: u32, number: u64, sharing: Sharing) -> Brief {
    let value = sharing_to_wire(sharing);
    Brief { kind: Kind::Lock, context: window, operation: number, value }
}

/// The frame that gives a peer's lock back.
pub(super) fn unlock_brief(window: u32) -> Brief {
    Brief { kind: Kind::Unlock, context: window, operation: 0, value: 0 }
}

/// The frame that forsakes the claim of this number on a peer's lock. The peer may have granted or
/// refused it already.
pub(super) fn forsake_brief(window: u32, number: u64) -> Brief {
    Brief { kind: Kind::Unlock, context: window, operation: number, value: 0 }
}

/// The frame that asks a peer for an answer after all earlier frames: an operation that is done
/// then.
pub(super) fn ping_brief(window: u32, number: u64) -> Brief {
    Brief { kind: Kind::Ping, context: window, operation: number, value: 0 }
}

/// The frame that counts a post or complete at a peer.
pub(super) fn signal_brief(window: u32, tally: Tally) -> Brief {
    let kind = match tally {
        Tally::Posts => Kind::Post,
        Tally::Completes => Kind::Complete,
    };
    Brief { kind, context: window, operation: 0, value: 0 }
}

impl Locks {
    pub(super) fn new(me: u32) -> Locks {
        Locks { me, requests: HashMap::new(), waiting: Vec::new() }
    }

    /// Forsakes this rank's own claim on the lock of its window, which stands in the queue.
    pub(super) fn forsake_own(&mut self, window: u32, claim: Claim) {
        let own = (window, self.me);
        self.requests.insert(own, Request { claim, operation: 0, forsaken: true });
        self.waiting.push(own);
    }

    /// Takes back the claim that this rank forsook, if it still stands in the queue: a rank has one
    /// claim at a time.
    pub(super) fn reclaim_own(&mut self, window: u32, sharing: Sharing) -> Option<Claim> {
        let own = (window, self.me);
        let mut claim = self.requests.remove(&own)?.claim;
        self.waiting.retain(|waiting| *waiting != own);
        claim.want(sharing);
        Some(claim)
    }

    /// Takes in a `Lock`.
    pub(super) fn handle_lock(
        &mut self,
        peer: u32,
        brief: &Brief,
        exposures: &Exposures,
        notes: &mut Notes,
        out: &mut Outbox,
    ) {
        match self.claim(peer, brief, exposures) {
            Ok(()) => _ = self.grant(exposures, notes, out),
            Err(kind) => {
                let Brief { context, operation, .. } = *brief;
                let header = Header { context, operation, ..Header::new(Kind::Lock) };
                out.push(peer, refusal(self.me, peer, &header, &kind.into(), None));
            }
        }
    }

    /// Claims the lock of a window for a peer, or renews the claim that the peer forsook.
    fn claim(&mut self, peer: u32, brief: &Brief, exposures: &Exposures) -> Result<(), ErrorKind> {
        let Brief { context: window, operation, value, .. } = *brief;
        let control = &exposures.get(window).ok_or(ErrorKind::WindowFreed)?.control;
        let member = control.group().rank_of(peer);
        let (Some(number), Some(sharing)) = (member, sharing_from_wire(value)) else {
            return Err(ErrorKind::Protocol { peer, what: format!("a lock of {value}") });
        };
        let known = self.requests.get_mut(&(window, peer));
        if known.as_ref().is_some_and(|request| !request.forsaken) {
            return Err(ErrorKind::Epoch(TWICE));
        }
        if control.is_exposed(control.rank()) {
            return Err(ErrorKind::Epoch(EXPOSED));
        }
        if let Some(request) = known {
            // It goes on waiting at its place in the queue.
            request.claim.want(sharing);
            (request.operation, request.forsaken) = (operation, false);
            return Ok(());
        }
        let user = User { number, served: true };
        let claim = control.claim(control.rank(), user, sharing);
        self.requests.insert((window, peer), Request { claim, operation, forsaken: false });
        self.waiting.push((window, peer));
        Ok(())
    }

    /// Whether a claim waits.
    #[inline]
    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Grants the claims whose turn has come; true if there is one.
    pub(super) fn grant(
        &mut self,
        exposures: &Exposures,
        notes: &mut Notes,
        out: &mut Outbox,
    ) -> bool {
        let mut granted = false;
        let Locks { requests, waiting, .. } = self;
        waiting.retain(|&(window, peer)| {
            let request = requests.get_mut(&(window, peer));
            let (Some(request), Some(exposure)) = (request, exposures.get(window)) else {
                return false;
            };
            let control = &exposure.control;
            if !control.poll(control.rank(), &mut request.claim, true) {
                return true;
            }
            if request.forsaken {
                control.release(control.rank(), request.claim);
                requests.remove(&(window, peer));
            } else {
                notes.grant(peer, window, request.claim.sharing(), out);
                out.push_done(peer, window, request.operation);
                granted = true;
            }
            false
        });
        granted
    }

    /// Takes in an `Unlock`: the peer gives the lock back, or forsakes its claim of this number.
    ///
    /// # Errors
    /// The peer has no claim.
    pub(super) fn handle_unlock(
        &mut self,
        peer: u32,
        brief: &Brief,
        exposures: &Exposures,
        notes: &mut Notes,
        out: &mut Outbox,
    ) -> Result<(), String> {
        let Brief { context: window, operation: forsaken, .. } = *brief;
        // An origin doesn't wait until its unlock arrives: the window may be freed meanwhile.
        let Some(exposure) = exposures.get(window) else { return Ok(()) };
        let at = (window, peer);
        if forsaken != 0 && self.waiting.contains(&at) {
            if let Some(request) = self.requests.get_mut(&at) {
                request.forsaken = true;
            }
            // Completes the operation of the claim, so that the peer's count of operations comes
            // out even.
            out.push_done(peer, window, forsaken);
            self.grant(exposures, notes, out);
            return Ok(());
        }
        let request = match self.requests.remove(&at) {
            Some(request) => request,
            // The claim was refused.
            None if forsaken != 0 => return Ok(()),
            None => return Err("an Unlock without a lock".to_owned()),
        };
        exposure.control.release(exposure.control.rank(), request.claim);
        notes.unlocked(peer, window, request.claim.sharing());
        self.grant(exposures, notes, out);
        Ok(())
    }

    /// Forgets the claims of a peer that is gone.
    pub(super) fn forget_peer(&mut self, peer: u32, exposures: &Exposures) {
        self.forget(|(_, of)| of == peer, exposures);
    }

    /// Forgets the claims on a window that is freed.
    pub(super) fn forget_window(&mut self, window: u32, exposures: &Exposures) {
        self.forget(|(of, _)| of == window, exposures);
    }

    /// Forgets claims, and releases the locks that they hold. A claim that waits is passed over in
    /// the queue once its owner is known to be dead.
    fn forget(&mut self, which: impl Fn((u32, u32)) -> bool, exposures: &Exposures) {
        self.waiting.retain(|&at| !which(at));
        self.requests.retain(|&at, request| {
            let forget = which(at);
            // Releasing a claim whose turn hasn't come does nothing.
            if let (true, Some(exposure)) = (forget, exposures.get(at.0)) {
                exposure.control.release(exposure.control.rank(), request.claim);
            }
            !forget
        });
    }
}

const TWICE: &str = "the window is locked by this rank already: unlock it first (rule 5)";

/// The refusal of a lock on a window that is exposed.
pub(crate) const EXPOSED: &str = "the target has exposed its window by a {post}: a window is either \
     exposed or locked, not both at a time (rule 6); lock it after its {wait}";
