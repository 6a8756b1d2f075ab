//! The reports of a window to the checker, under `--check`. Without it each is one look at a flag.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

use longshore_transport::lock::Sharing;

use super::flight::Flight;
use super::peers::{Peers, Target};
use crate::assert::Assert;
use crate::check::order::Object;
use crate::check::{Caller, ranks, site};
use crate::error::{Error, ErrorKind, Result, call_name, spoken};
use crate::job::Topic;
use crate::process::Process;
use crate::program::Line;

/// The connection of a window to the checker.
pub(super) struct Checking {
    process: Arc<Process>,
    window: u32,
    /// The source line of the call under way.
    caller: Cell<Option<Line>>,
    /// Whether the last start had NOCHECK, and its source line.
    started: Cell<(bool, Option<Line>)>,
}

impl Checking {
    pub(super) fn new(process: &Arc<Process>, window: u32) -> Checking {
        let (process, caller) = (process.clone(), Cell::new(None));
        Checking { process, window, caller, started: Cell::new((false, None)) }
    }

    /// The next call is made at this source line.
    #[inline]
    pub(super) fn called(&self, caller: Caller) {
        if self.process.notes_callers() {
            self.caller.set(Some(Line::of(caller)));
        }
    }

    /// The source line of the call under way, if uses of windows are checked or observed.
    pub(super) fn caller(&self) -> Option<Line> {
        self.caller.get()
    }

    /// The last start: whether it had NOCHECK, and its source line.
    pub(super) fn started(&self) -> (bool, Option<Line>) {
        self.started.get()
    }

    /// Compares a fence with the calls of the other ranks.
    ///
    /// # Errors
    /// The calls don't match.
    #[cold]
    pub(super) fn announce_fence(&self, peers: &Peers, assert: Assert) -> Result<()> {
        let call = || format!("fence of window {}", self.window);
        let (on, caller) = ((Object::Window(self.window), Some(self.window)), self.caller.get());
        let announced = peers.communicator().announce_with(call, on, None, assert.bits(), caller);
        announced.map(drop)
    }

    /// This rank's operations on a target, or on all, are done: the targets learn that this rank
    /// has seen it.
    pub(super) fn confirm(
        &self,
        flight: &Flight,
        peers: &Peers,
        target: Option<&Target>,
    ) -> Result<()> {
        if !self.process.checks() {
            return Ok(());
        }
        let peers = match target {
            Some(target) => std::slice::from_ref(&target.peer),
            None => peers.control().group().processes(),
        };
        let mut engine = self.process.engine();
        engine.state().end_one_sided(self.window, peers);
        for &peer in peers {
            let ledger = flight.ledger();
            let issued = ledger.issued(peer);
            engine.state().confirm(peer, self.window, issued, || ledger.issue(peer));
        }
        engine.progress();
        drop(engine);
        let settled = || peers.iter().all(|&peer| flight.outstanding(peer) == 0);
        self.process.wait(|_, _| settled().then_some(Ok(())))
    }

    /// This rank gets the lock of its own window, or is about to release it.
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
        if !self.process.checks() {
            return;
        }
        // Before the engine is locked, since it may take long to find the line.
        let site = site(Some(Line::of(caller))).into();
        if let Some(check) = self.process.engine().state().check() {
            check.touch(self.window, bytes, stores, site);
        }
    }

    /// The hint `accumulate_ops` has changed.
    pub(super) fn set_same_op(&self, same_op: bool) {
        if let Some(check) = self.process.engine().state().check() {
            check.set_same_op(self.window, same_op);
        }
    }

    /// This rank has started an access epoch to targets.
    pub(super) fn note_start(&self, peers: &Peers, targets: &[u32], assert: Assert) {
        if !self.process.checks() {
            return;
        }
        let nocheck = assert.contains(Assert::NOCHECK);
        self.started.set((nocheck, self.caller.get()));
        let mut engine = self.process.engine();
        for target in targets.iter().map(|&rank| peers.of(rank)) {
            engine.state().learn_clock(target.peer);
            // A start that doesn't wait for the posts is looked at by the target.
            if let (Some(check), false) = (engine.state().check(), nocheck) {
                check.started(self.window, target.peer, nocheck, &site(self.caller.get()));
            }
        }
    }

    /// This rank exposes its window to origins.
    pub(super) fn note_post(&self, peers: &Peers, origins: &[u32], assert: Assert) {
        if !self.process.checks() {
            return;
        }
        let group = origins.iter().map(|&rank| peers.of(rank).peer).collect();
        let members = peers.control().group().processes();
        let nocheck = assert.contains(Assert::NOCHECK);
        let mut engine = self.process.engine();
        engine.state().note_post(self.window, members, nocheck, group, self.caller.get());
        engine.progress();
    }

    /// The exposure of this rank's window to origins has ended.
    pub(super) fn note_exposure_end(&self, peers: &Peers, origins: &[u32]) {
        if !self.process.checks() {
            return;
        }
        let mut engine = self.process.engine();
        let state = engine.state();
        origins.iter().for_each(|&rank| state.learn_clock(peers.of(rank).peer));
        if let Some(check) = state.check() {
            check.expose(self.window, None);
        }
    }

    /// Rule 7, where a start or wait is part of a circle: reports the posts that a start waits for,
    /// or the ranks that should have started.
    pub(super) fn unmatched(
        &self,
        error: Error,
        call: &str,
        peers: &Peers,
        targets: &[u32],
    ) -> Error {
        let ErrorKind::Circle(circle) = error.kind() else { return error };
        let (window, name) = (self.window, spoken(&format!("a {{{call}}}")));
        let mut text = format!(
            "check: rule 7, window {window}: {name} that nothing can end\n{circle}\
             check:   {} at {}\n",
            call_name(call, true),
            site(self.caller.get())
        );
        let mut engine = self.process.engine();
        let Some(check) = engine.state().check() else { return error };
        let awaited: Vec<u32> = targets.iter().map(|&rank| peers.of(rank).peer).collect();
        if call == "wait" {
            text += &format!("check:   it waits for {} to complete\n", ranks(&awaited));
        }
        for &peer in awaited.iter().filter(|_| call == "start") {
            text += &match check.post_of(window, peer) {
                None => format!("check:   rank {peer} has posted to nobody\n"),
                Some(post) => {
                    let group = ranks(&post.group);
                    format!("check:   rank {peer}'s last post, at {}, is to {group}\n", post.site)
                }
            };
        }
        text += "check:   let the groups of start and post match; the call returns an error\n";
        check.tell(Topic::Windows, format!("7 {call} {}", site(self.caller.get())), || text);
        error
    }
}
