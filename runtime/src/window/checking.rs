//! What a window tells the engine under `--check`. Without it, each of these is one look at a flag.

use std::ops::Range;

use longshore_transport::lock::Sharing;

use super::core::Core;
use super::state::EpochState;
use super::targets::Target;
use crate::assert::Assert;
use crate::check::{Caller, ranks, site};
use crate::error::{Error, ErrorKind, Result};

impl Core {
    /// The call that comes is made here.
    #[inline]
    pub(super) fn called(&self, caller: Caller) {
        if self.process.checks() {
            self.caller.set(Some(caller));
        }
    }

    /// This rank comes to a fence, in this state. Where the others don't, nothing begins.
    #[cold]
    pub(super) fn announce_fence(&self, assert: Assert, before: EpochState) -> Result<()> {
        let call = || format!("fence of window {}", self.window);
        let caller = self.caller.get();
        let agreed = self.communicator.announce_with(call, assert.bits(), caller);
        if agreed.is_err() && self.is_fenced() {
            self.epoch.set(before);
        }
        agreed.map(drop)
    }

    /// This rank's operations on a target, or on all, are done: the targets come to know that this rank has seen it.
    pub(super) fn confirm(&self, target: Option<&Target>) -> Result<()> {
        if !self.process.checks() {
            return Ok(());
        }
        let peers = match target {
            Some(target) => std::slice::from_ref(&target.peer),
            None => self.control.group().processes(),
        };
        let mut engine = self.process.engine();
        for &peer in peers {
            let issued = self.flight.ledger.issued(peer);
            engine.state().confirm(peer, self.window, issued, || self.flight.ledger.issue(peer));
        }
        engine.progress();
        drop(engine);
        let settled = || peers.iter().all(|&peer| self.flight.ledger.outstanding(peer) == 0);
        self.process.wait(|_, _| settled().then_some(Ok(())))
    }

    /// This rank has the lock of its own window, or is to give it back.
    #[inline]
    pub(super) fn own_lock(&self, sharing: Sharing, gets: bool) {
        if self.process.checks() {
            self.note_own_lock(sharing, gets);
        }
    }

    #[cold]
    fn note_own_lock(&self, sharing: Sharing, gets: bool) {
        let mut engine = self.process.engine();
        if let Some(check) = engine.state().check() {
            match gets {
                true => check.lock_own(self.window, sharing),
                false => check.unlock_own(self.window, sharing),
            }
        }
    }

    /// This rank loads from its window, or stores to it.
    #[cold]
    pub(super) fn touched(&self, bytes: Range<i64>, stores: bool, caller: Caller) {
        let mut engine = self.process.engine();
        if let Some(check) = engine.state().check() {
            check.touch(self.window, bytes, stores, caller);
        }
    }

    /// This rank has started to targets.
    pub(super) fn note_start(&self, targets: &[u32], assert: Assert) {
        if !self.process.checks() {
            return;
        }
        let nocheck = assert.contains(Assert::NOCHECK);
        self.started.set((nocheck, self.caller.get()));
        let mut engine = self.process.engine();
        for target in targets.iter().map(|&rank| &self.targets[rank as usize]) {
            engine.state().learn_clock(target.peer);
            // What begins without a look at posts is looked at by the target.
            if let (Some(check), false) = (engine.state().check(), nocheck) {
                check.started(self.window, target.peer, nocheck, &site(self.caller.get()));
            }
        }
    }

    /// This rank exposes its window to others.
    pub(super) fn note_post(&self, origins: &[u32], assert: Assert) {
        if !self.process.checks() {
            return;
        }
        let group = origins.iter().map(|&rank| self.targets[rank as usize].peer).collect();
        let members = self.control.group().processes();
        let nocheck = assert.contains(Assert::NOCHECK);
        let mut engine = self.process.engine();
        engine.state().note_post(self.window, members, nocheck, group, self.caller.get());
        engine.progress();
    }

    /// This rank's exposure to others has ended.
    pub(super) fn note_exposed(&self, origins: &[u32]) {
        if !self.process.checks() {
            return;
        }
        let mut engine = self.process.engine();
        let state = engine.state();
        origins.iter().for_each(|&rank| state.learn_clock(self.targets[rank as usize].peer));
        if let Some(check) = state.check() {
            check.expose(self.window, None);
        }
    }

    /// Rule 7, where it has come to a circle: says what is known of the posts that a start waits for, or who should have
    /// started.
    pub(super) fn unmatched(&self, error: Error, call: &str, targets: &[u32]) -> Error {
        let ErrorKind::Circle(circle) = error.kind() else { return error };
        let window = self.window;
        let mut text = format!(
            "check: rule 7, window {window}: a {call} that nothing can end\n{circle}\
             check:   {call} at {}\n",
            site(self.caller.get())
        );
        let mut engine = self.process.engine();
        let Some(check) = engine.state().check() else { return error };
        let peers: Vec<u32> =
            targets.iter().map(|&rank| self.targets[rank as usize].peer).collect();
        if call == "wait" {
            text += &format!("check:   it waits for {} to complete\n", ranks(&peers));
        }
        for &peer in peers.iter().filter(|_| call == "start") {
            text += &match check.post_of(window, peer) {
                None => format!("check:   rank {peer} has posted to nobody\n"),
                Some(post) => {
                    let group = ranks(&post.group);
                    format!("check:   rank {peer}'s last post, at {}, is to {group}\n", post.site)
                }
            };
        }
        text += "check:   let the groups of start and post match; the call returns an error\n";
        check.tell(format!("7 {call} {}", site(self.caller.get())), || text);
        error
    }
}
