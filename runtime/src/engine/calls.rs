//! The methods of [`State`] that calls use: each hands its arguments to one protocol, with the
//! structs that it needs.
//!
//! `start_*` methods begin something that takes frames of others to end; `take_*` methods return
//! results.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};

use longshore_transport::fault::Chance;
use longshore_transport::lock::{Claim, Sharing};
use longshore_transport::{Access, PeerMemory, Rdma, RemoteMemory, Transfer};
use shipable::Architecture;

use super::agreements::{Decision, Name, Step, Steps, Vote};
use super::completion::{Ledger, Ticket};
use super::locks::{forsake_brief, lock_brief, ping_brief, signal_brief, unlock_brief};
use super::messages::{
    Arrival, Credit, Delivery, Direct, Heading, Landing, Message, OtherCall, Pattern, Status,
};
use super::origin::{Fetch, RdmaAccess};
use super::outbox::{Outgoing, Purpose, Source};
use super::revoked::Revocable;
use super::target::{Exposure, Opened};
use super::{Engine, Operation, State, Venue};
use crate::barrier::Barrier;
use crate::check::Check;
use crate::check::buffers::{Flight, Use};
use crate::check::messages::Room;
use crate::control::Tally;
use crate::error::{Error, ErrorKind, Result};
use crate::group::Group;
use crate::job::Hosts;
use crate::program::Line;
use crate::types::{Compiled, TargetType};
use crate::wire::{CONVERTED, Founding, Header, Introduction, Kind};

/// The job and its ranks.
impl State {
    /// Lets an adversary reorder operations that MPI leaves unordered.
    pub(crate) fn set_chance(&mut self, chance: Option<Chance>) {
        self.outbox.set_chance(chance);
    }

    /// Introduces this rank to itself, and sends its first hello.
    ///
    /// # Errors
    /// A hello is longer than the wire allows.
    pub(crate) fn start_hello(&mut self) -> Result<()> {
        self.introductions.start(&mut self.peers, &mut self.outbox)
    }

    /// The rank whose hello is due next; `None` once all ranks are known.
    pub(crate) fn awaited_hello(&self) -> Option<u32> {
        self.introductions.awaited(&self.peers)
    }

    /// The job's founding, once all ranks are known.
    ///
    /// # Errors
    /// A rank is gone, so it may never be known.
    pub(crate) fn take_hello(&mut self) -> Option<Result<Founding>> {
        self.introductions.take(&self.peers)
    }

    /// Introduces this rank to one of another world, which introduces itself in return.
    ///
    /// # Errors
    /// The hello is longer than the wire allows.
    pub(crate) fn approach(&mut self, peer: u32) -> Result<()> {
        let said = self.introductions.approach(peer, &self.peers, &mut self.outbox);
        said.map_err(|what| ErrorKind::Protocol { peer, what }.into())
    }

    /// Whether a rank has been introduced to this one.
    pub(crate) fn is_known(&self, peer: u32) -> bool {
        self.peers.is_known(peer)
    }

    /// The ranks of a group, with what their introductions say.
    pub(crate) fn introductions(&self, group: &Group) -> Vec<(u32, Introduction)> {
        let introduction = |&rank: &u32| Some((rank, self.peers.introduction(rank)?));
        group.processes().iter().filter_map(introduction).collect()
    }

    /// Takes in the introductions of ranks that another rank knows.
    ///
    /// # Errors
    /// A rank is out of range, or its representation isn't known here.
    pub(crate) fn acquaint(&mut self, by: u32, ranks: &[(u32, Introduction)]) -> Result<()> {
        for (rank, introduction) in ranks {
            let acquainted = match *rank < self.peers.me().size {
                true if self.peers.is_known(*rank) => Ok(()),
                true => self.peers.acquaint(*rank, introduction),
                false => Err(format!("it introduced rank {rank}, for which there is no room")),
            };
            acquainted.map_err(|what| ErrorKind::Protocol { peer: by, what })?;
        }
        Ok(())
    }

    /// The job's identity, known once `init` has ended.
    pub(crate) fn job(&self) -> u128 {
        self.introductions.job()
    }

    /// Whether data of equal length from or to a rank match without equal signatures.
    pub(crate) fn matches_by_length(&self, rank: u32) -> bool {
        self.peers.matches_by_length(rank)
    }

    /// A peer's representation, and whether it is emulated. All are known once `init` has ended.
    pub(crate) fn representation(&self, peer: u32) -> Option<(Architecture, bool)> {
        self.peers.representation(peer)
    }

    /// The representation in which a peer's messages travel.
    pub(crate) fn stream(&self, peer: u32) -> Architecture {
        *self.peers.stream_or_own(peer)
    }

    /// The flag that is set once a call has left a frame in the outbox, to be read without the
    /// engine's lock.
    pub(crate) fn stranded(&self) -> Arc<AtomicBool> {
        self.outbox.stranded().clone()
    }

    /// Whether a message waits that no receive has matched, as a flag to be read without the
    /// engine's lock.
    pub(crate) fn unmatched(&self) -> Arc<AtomicBool> {
        self.messages.unmatched()
    }

    /// The flag that is set once a peer or a window is lost, to be read without the engine's lock.
    pub(crate) fn bereft(&self) -> Arc<AtomicBool> {
        self.peers.bereft().clone()
    }

    /// The error of a call that needs a rank which is gone.
    #[inline]
    pub(crate) fn gone(&self, rank: u32) -> Option<Error> {
        self.peers.gone(rank)
    }

    /// The error of a call that all ranks of a group have to join, if one of them is lost.
    pub(crate) fn dead_among(&self, group: &Group) -> Option<Error> {
        self.peers.dead_among(group)
    }

    /// The error of a call that all ranks of a group have to join, possibly of a window's: a rank
    /// is lost, or the window is poisoned.
    pub(crate) fn lost_among(&self, group: &Group, window: Option<u32>) -> Option<Error> {
        match self.peers.is_bereft() {
            true => self.find_lost(group, window),
            false => None,
        }
    }

    /// The error of a barrier by flags whose ranks don't all come.
    #[inline(never)] // The loops of waits stay small.
    pub(crate) fn lost_at(&self, barrier: &Barrier) -> Option<Error> {
        // A poisoned window is lost, and a revoked communicator is not.
        match self.peers.is_bereft() || self.peers.is_troubled() {
            true => {
                let revoked = barrier.context().and_then(|context| self.revoked(context));
                revoked.or_else(|| self.find_lost(barrier.group(), barrier.window()))
            }
            false => None,
        }
    }

    #[cold]
    #[inline(never)]
    fn find_lost(&self, group: &Group, window: Option<u32>) -> Option<Error> {
        window.and_then(|window| self.poisoned(window)).or_else(|| self.dead_among(group))
    }

    /// The error of a call that waits for another rank of a window, if the window is poisoned.
    pub(crate) fn poisoned(&self, window: u32) -> Option<Error> {
        self.poisoned.error(window)
    }

    /// Notes that this rank has poisoned a window of a group.
    pub(crate) fn note_poisoned(&mut self, window: u32, announced: u64, group: &Group) {
        self.poisoned.note(window, announced, group, &self.peers);
    }

    /// The announcements on the communicator of a poisoned window that the rank that panicked has
    /// counted.
    pub(crate) fn announced_at(&self, window: u32) -> u64 {
        self.poisoned.announced(window)
    }

    /// Sends peers the news of the windows that this rank has poisoned.
    pub(crate) fn tell_poisoned(&mut self) {
        self.poisoned.tell(&self.peers, &mut self.outbox);
    }

    /// Whether the link has failed.
    #[inline]
    pub(crate) fn is_broken(&self) -> bool {
        self.peers.is_broken()
    }

    /// The error of a call that would wait, if the link has failed.
    #[inline]
    pub(crate) fn broken(&self) -> Option<Error> {
        self.peers.broken()
    }
}

/// The outbox.
impl State {
    /// Whether a frame has arrived, since the last call of this, that is no answer.
    #[inline]
    pub(crate) fn take_asked(&mut self) -> bool {
        std::mem::take(&mut self.asked)
    }

    /// Whether everything has been sent.
    pub(crate) fn is_flushed(&self) -> bool {
        self.outbox.is_flushed()
    }

    /// Appends an entry to the outbox. If its peer is gone, its operation fails at once.
    pub(super) fn push(&mut self, peer: u32, outgoing: Outgoing) {
        match self.peers.gone(peer) {
            None => self.outbox.push(peer, outgoing),
            Some(gone) => self.finish_outgoing(outgoing, Err(gone)),
        }
    }

    /// Removes the first entry of a peer's outbox, which is sent or can't be.
    pub(super) fn finish_first(&mut self, peer: u32, outcome: Result<()>) {
        if let Some(outgoing) = self.outbox.pop(peer) {
            self.finish_outgoing(outgoing, outcome);
        }
    }

    /// Ends an entry that is sent or can't be, for the operation or message that it belongs to.
    pub(super) fn finish_outgoing(&mut self, mut outgoing: Outgoing, outcome: Result<()>) {
        self.target.reuse(&mut outgoing);
        match (outgoing.into_purpose(), outcome) {
            (Purpose::Message(number), outcome) => self.messages.finish_send(number, outcome),
            // The target completes a put, but only this rank knows of a value that couldn't be
            // sent.
            (Purpose::Operation(kind, operation), Err(error)) => {
                self.operations.fail(kind, operation, error, &self.peers);
            }
            (Purpose::Notify(due), Ok(())) => self.notify_due(due),
            _ => {}
        }
    }
}

/// Windows, and operations on them.
impl State {
    /// Lets peers reach a window, and counts this rank's operations on it.
    pub(crate) fn open_window(&mut self, exposure: Arc<Exposure>, ledger: Arc<Ledger>) {
        let Exposure { window, group, same_op, opened, is_shared, .. } = &*exposure;
        self.operations.open_window(*window, group.clone(), ledger);
        if let Some(check) = self.notes.check() {
            let memory = match opened {
                Opened::Whole(memory) if !is_shared => Some(memory.span().addresses()),
                // Loads and stores of other ranks, which aren't seen, may order this rank's.
                Opened::Whole(_) | Opened::Attached(_) => None,
            };
            check.open_window(*window, group.processes(), *same_op, memory);
        }
        self.target.open_window(exposure);
    }

    /// Closes a window: no peer reaches it any more.
    pub(crate) fn close_window(&mut self, window: u32) {
        self.locks.forget_window(window, self.target.exposures());
        self.meetings.close(Venue::Window(window));
        self.target.close_window(window);
        if let Some(check) = self.notes.check() {
            check.close_window(window);
        }
        self.operations.close_window(window);
    }

    /// Ships a type's form to a peer, unless the peer knows it.
    ///
    /// # Errors
    /// The form is longer than the peer accepts.
    pub(crate) fn define(&mut self, peer: u32, target_type: TargetType<'_>) -> Result<()> {
        self.operations.shipped.define(peer, target_type, &self.peers, &mut self.outbox)
    }

    /// Expects the answer to an operation that fetches.
    pub(crate) fn expect(&mut self, operation: Operation, fetch: Fetch) {
        self.operations.expect(operation, fetch);
    }

    /// Settles a ticket once an operation is done.
    pub(crate) fn ticket(&mut self, operation: Operation, ticket: Arc<Ticket>) {
        self.operations.watch(operation, ticket);
    }

    /// Lets go of the memory that a window's operations were lent, except the memory that the
    /// network [accesses](State::take_accesses).
    pub(crate) fn let_go(&mut self, window: u32) {
        self.outbox.abandon_window(window);
        self.streams.abandon_replies(window);
        self.operations.abandon(window);
    }

    /// Lets go of the memory of a window's operations, and ends with an error each call that waits
    /// for one of them. If the job ends, all operations on the window count as done. Otherwise
    /// their targets still answer.
    pub(crate) fn give_up(&mut self, window: u32, job_ends: bool) {
        self.let_go(window);
        self.operations.give_up(window, job_ends);
    }

    /// Whether no operation is under way that holds memory or that a call waits for by itself. Each
    /// flush asks this, so it doesn't visit the peers.
    #[inline]
    pub(crate) fn holds_nothing(&self) -> bool {
        self.operations.is_empty() && self.outbox.is_empty() && self.streams.is_empty()
    }

    /// Starts an access to a peer's memory, as an operation on a window, and takes the transfer out
    /// of `waiting`. Returns `None`, and does nothing, if the network has no room yet. The lender
    /// of the transfer's memory waits until the access is over, even if the peer is gone meanwhile.
    pub(crate) fn start_access(
        &mut self,
        account: (u32, &Ledger),
        access: Access,
        place: &RemoteMemory<'_>,
        waiting: &mut Option<Transfer>,
    ) -> Option<Result<()>> {
        self.operations.start_access(account, access, place, waiting, &self.peers)
    }

    /// Takes out a window's accesses, to one target or to all. The caller drops them, which waits
    /// for the network, after it has unlocked the engine.
    #[must_use]
    pub(crate) fn take_accesses(&mut self, window: u32, target: Option<u32>) -> Vec<RdmaAccess> {
        self.operations.take_accesses(window, target)
    }

    /// Acknowledges the accesses that are done; true if any has ended.
    #[inline]
    pub(super) fn end_accesses(&mut self) -> bool {
        // In line: each progress comes by here, and most jobs have no accesses.
        self.operations.has_accesses() && self.end_some_accesses()
    }

    #[inline(never)]
    fn end_some_accesses(&mut self) -> bool {
        let mut broke = Vec::new();
        let ended = self.operations.end_accesses(&mut broke);
        broke.into_iter().for_each(|(peer, what)| self.peer_erred(peer, what));
        ended
    }
}

impl Engine {
    /// Starts to write `data` to a place of a peer's memory, as an operation on a window. Returns
    /// false if the put has to go by message: the network has no room or fails, the peer is gone,
    /// or an adversary reorders operations.
    pub(crate) fn write(
        &mut self,
        rdma: &Arc<dyn Rdma>,
        account: (u32, &Ledger),
        place: &RemoteMemory<'_>,
        data: Vec<u8>,
    ) -> bool {
        let State { operations, peers, outbox, .. } = &mut self.state;
        !outbox.is_reordered() && operations.start_write(rdma, account, place, data, peers)
    }
}

/// Locks, posts and completes.
impl State {
    /// Asks a peer for its window's lock: an operation that is done once the lock is granted.
    pub(crate) fn start_lock(&mut self, peer: u32, window: u32, number: u64, sharing: Sharing) {
        self.outbox.push_brief(peer, lock_brief(window, number, sharing));
    }

    /// Asks a peer for an answer after all earlier frames: an operation that is done then.
    pub(crate) fn start_ping(&mut self, peer: u32, window: u32, number: u64) {
        self.outbox.push_brief(peer, ping_brief(window, number));
    }

    /// Gives a peer's lock back, after all earlier frames.
    pub(crate) fn start_unlock(&mut self, peer: u32, window: u32) {
        self.notes.tell_clock(peer, &mut self.outbox);
        self.outbox.push_brief(peer, unlock_brief(window));
    }

    /// Forsakes the claim of this number on a peer's lock. The peer may have granted or refused it
    /// already.
    pub(crate) fn forsake_lock(&mut self, peer: u32, window: u32, number: u64) {
        self.outbox.push_brief(peer, forsake_brief(window, number));
    }

    /// Forsakes this rank's own claim on the lock of its window, which stands in the queue.
    pub(crate) fn forsake_own(&mut self, window: u32, claim: Claim) {
        self.locks.forsake_own(window, claim);
        self.grant_locks();
    }

    /// Takes back the claim that this rank forsook, if it still stands in the queue: a rank has one
    /// claim at a time.
    pub(crate) fn reclaim_own(&mut self, window: u32, sharing: Sharing) -> Option<Claim> {
        self.locks.reclaim_own(window, sharing)
    }

    /// Grants the claims whose turn has come; true if there is one.
    #[inline]
    pub(super) fn grant_locks(&mut self) -> bool {
        let State { locks, target, notes, outbox, .. } = self;
        locks.has_waiting() && locks.grant(target.exposures(), notes, outbox)
    }

    /// Counts a post or complete at a peer, after all earlier frames.
    pub(crate) fn start_signal(&mut self, peer: u32, window: u32, tally: Tally) {
        self.notes.tell_clock(peer, &mut self.outbox);
        self.outbox.push_brief(peer, signal_brief(window, tally));
    }
}

/// Messages between two ranks.
impl State {
    /// Starts to send a message: see [`Engine::start_send`](super::Engine::start_send). Returns
    /// the entry to be sent as well.
    pub(super) fn start_send(
        &mut self,
        peer: u32,
        message: Message,
    ) -> Result<(Option<u64>, Outgoing)> {
        let State { messages, peers, notes, outbox, .. } = self;
        messages.start_send(peer, message, peers, notes, outbox)
    }

    /// The credit for a message, if its only frame may be sent before all others.
    #[inline]
    pub(super) fn at_once(&mut self, peer: u32, message: &Heading) -> Option<Credit<'_>> {
        message.at_once(peer, &self.peers, &self.notes, &mut self.outbox)
    }

    /// Whether a short message has to wait for credit at its receiver.
    pub(super) fn lacks_credit(&self, peer: u32, message: &Heading) -> bool {
        message.lacks_credit(peer, &self.peers, &self.outbox)
    }

    /// The hash of the signature of a message of `count` elements of a type to a peer,
    /// marked as [`CONVERTED`] if they have other bytes there. The hash of the last one is kept.
    ///
    /// # Errors
    /// TYPE for too many elements.
    #[inline]
    pub(crate) fn signature(&mut self, peer: u32, datatype: &Compiled, count: u64) -> Result<u128> {
        let mark = if self.peers.converts(peer, datatype) { CONVERTED } else { 0 };
        Ok(self.messages.signature(datatype, count)? | mark)
    }

    /// Takes the outcome of a send, if it has ended.
    pub(crate) fn take_sent(&mut self, number: u64) -> Option<Result<()>> {
        self.messages.take_sent(number)
    }

    /// Whether a send has ended.
    pub(crate) fn is_sent(&self, number: u64) -> bool {
        self.messages.is_sent(number)
    }

    /// Notes that no call will ask for the end of a send. If it is under way, it goes on.
    pub(crate) fn forget_send(&mut self, number: u64) {
        self.messages.forget_send(number);
    }

    /// Posts a receive. Returns its number, by which [`take_received`](State::take_received)
    /// reports its end.
    pub(crate) fn start_receive(&mut self, pattern: Pattern, landing: Landing) -> u64 {
        self.messages.start_receive(pattern, landing, &self.peers, &mut self.outbox)
    }

    /// Receives a message that is here: see [`Messages::receive_directly`].
    ///
    /// [`Messages::receive_directly`]: super::messages::Messages::receive_directly
    #[inline]
    pub(crate) fn receive_directly(&mut self, direct: &Direct) -> Option<Status> {
        self.messages.receive_directly(direct, &mut self.outbox)
    }

    /// Starts a direct receive; false if a message is here, or another such receive waits.
    pub(crate) fn start_direct(&mut self, direct: &Direct) -> bool {
        self.messages.start_direct(direct, &self.peers)
    }

    /// The end of the direct receive, if it has come: its status, or `None` if its call has to post
    /// a receive.
    #[inline]
    pub(crate) fn take_direct(&mut self) -> Option<Option<Status>> {
        self.messages.take_direct()
    }

    /// Gives up the direct receive: lets go of its memory.
    pub(crate) fn abandon_direct(&mut self) {
        self.messages.abandon_direct();
    }

    /// A message that shows that its sender makes other collective calls than this rank, by its
    /// sender, number and code. This rank is in the call of this number and code, and waits for a
    /// message `from` a rank.
    pub(crate) fn misplaced(
        &self,
        context: u32,
        call: (i32, u128),
        from: Option<u32>,
    ) -> Option<OtherCall> {
        self.messages.misplaced(context, call, from)
    }

    /// The messages of a context that no receive has matched, as text.
    pub(crate) fn describe_unmatched(&self, context: u32) -> String {
        self.messages.describe_unmatched(context)
    }

    /// Takes out the messages of collective calls up to this number, which are over. Returns the
    /// sender, number and code of the first.
    #[inline]
    pub(crate) fn take_left_over(&mut self, context: u32, number: i32) -> Option<OtherCall> {
        self.messages.take_left_over(context, number, &self.peers, &mut self.outbox)
    }

    /// The message that a receive with this pattern would get. It stays in the queue.
    ///
    /// # Errors
    /// There is no such message, and a rank that may send it is gone.
    pub(crate) fn probe(&self, pattern: &Pattern) -> Option<Result<Arrival>> {
        self.messages.probe(pattern, &self.peers)
    }

    /// Claims the message that a receive with this pattern would get. Returns it, and the number by
    /// which it is received.
    ///
    /// # Errors
    /// There is no such message, and a rank that may send it is gone.
    pub(crate) fn claim(&mut self, pattern: &Pattern) -> Option<Result<(Arrival, u64)>> {
        self.messages.claim(pattern, &self.peers)
    }

    /// Receives a claimed message; [`take_received`](State::take_received) reports its end by the
    /// same number.
    pub(crate) fn receive_claimed(&mut self, number: u64, landing: Landing) {
        self.messages.receive_claimed(number, landing, &self.peers, &mut self.outbox);
    }

    /// Throws a claimed message away.
    pub(crate) fn discard_claimed(&mut self, number: u64) {
        self.receive_claimed(number, Landing::Nothing);
        self.abandon(number);
    }

    /// Takes a posted receive back; false if a message has matched it.
    pub(crate) fn withdraw(&mut self, number: u64) -> bool {
        self.messages.withdraw(number)
    }

    /// Whether a receive has ended.
    pub(crate) fn is_received(&self, number: u64) -> bool {
        self.messages.is_received(number)
    }

    /// Takes the outcome of a receive, if it has ended.
    pub(crate) fn take_received(&mut self, number: u64) -> Option<Result<Delivery>> {
        self.messages.take_received(number, &self.peers, &mut self.notes)
    }

    /// Takes the status of a receive, if it has ended.
    #[inline]
    pub(crate) fn take_status(&mut self, number: u64) -> Option<Result<Status>> {
        self.messages.take_status(number, &self.peers, &mut self.notes)
    }

    /// Sets the hosts of the job's ranks.
    pub(crate) fn set_hosts(&mut self, hosts: Hosts) {
        self.peers.set_hosts(hosts);
    }

    /// Lets messages be copied from the memory of the host's other processes.
    pub(crate) fn set_peer_memory(&mut self, memory: Arc<PeerMemory>) {
        self.messages.set_memory(memory);
    }

    /// Gives up a send or receive: lets go of its memory.
    pub(crate) fn abandon(&mut self, number: u64) {
        self.messages.abandon(number, &mut self.outbox);
        self.streams.abandon_receive(number);
    }
}

/// Barriers by messages.
impl State {
    /// Enters the next meeting of a group, to which this process belongs as `rank`.
    pub(crate) fn enter_meeting(&mut self, venue: Venue, group: &Group, rank: u32) {
        self.meetings.enter(venue, group, rank, &mut self.outbox);
    }

    /// The rank for which this one waits in the last meeting at a venue; `None` once the meeting is
    /// over.
    pub(crate) fn awaited_in_meeting(&self, venue: Venue) -> Option<u32> {
        self.meetings.awaited(venue)
    }

    /// Forgets a venue, where no rank meets any more.
    pub(crate) fn close_venue(&mut self, venue: Venue) {
        self.meetings.close(venue);
    }
}

/// Failures: agreements among survivors, and communicators that are revoked.
impl State {
    /// The members of a group that have failed, in the order in which this rank has learned of it.
    pub(crate) fn failed_among(&self, group: &Group) -> Vec<u32> {
        self.peers.failed_among(group)
    }

    /// The ranks whose failure is acknowledged on the communicator of this number.
    pub(crate) fn acknowledged(&self, communicator: u32) -> &[u32] {
        self.peers.acknowledged(communicator)
    }

    /// Acknowledges the failure of these ranks on a communicator: receives from any rank no longer
    /// wait for them.
    pub(crate) fn acknowledge_failed(&mut self, communicator: u32, failed: Vec<u32>) {
        self.peers.acknowledge(communicator, failed);
    }

    /// Begins this rank's part in an agreement of a group, by the number of its communicator and
    /// its own.
    pub(crate) fn start_agreement(&mut self, name: Name, group: &Group, vote: Vote) {
        let mut steps = Steps::new();
        self.agreements.start(name, group.processes(), vote, &mut steps);
        self.send_steps(steps);
    }

    /// Takes the decision of an agreement, if there is one.
    ///
    /// Members that it names have failed for this rank too, so that the program can acknowledge
    /// them: the decision may come before the news of their end.
    pub(crate) fn take_decision(&mut self, name: Name) -> Option<Decision> {
        let decision = self.agreements.take(name)?;
        self.peers.note_failed(&decision.failed);
        Some(decision)
    }

    /// No call of this rank takes the decision of an agreement.
    pub(crate) fn abandon_agreement(&mut self, name: Name) {
        self.agreements.abandon(name);
    }

    /// The rank for which an agreement waits at this rank.
    pub(crate) fn awaited_in_agreement(&self, name: Name) -> Option<u32> {
        self.agreements.awaited(name)
    }

    /// Takes in a step of an agreement.
    pub(super) fn handle_step(&mut self, peer: u32, name: Name, step: Step) {
        let mut steps = Steps::new();
        self.agreements.handle_step(peer, name, step, &mut steps);
        self.send_steps(steps);
    }

    /// Takes in the loss of a rank in all agreements.
    pub(super) fn leave_agreements(&mut self, rank: u32) {
        let mut steps = Steps::new();
        self.agreements.handle_gone(rank, &mut steps);
        self.send_steps(steps);
    }

    fn send_steps(&mut self, steps: Steps) {
        for (peer, (context, number), step) in steps {
            let (tag, data) = step.encode(self.peers.me().size);
            let header = Header {
                tag,
                context,
                operation: number.into(),
                length: data.len() as u64,
                ..Header::new(Kind::Agree)
            };
            let step = Outgoing::new(header, Source::Bytes(data.into()), Purpose::None);
            self.outbox.push(peer, step);
        }
    }

    /// Lets others revoke a communicator of this number, with these members.
    pub(crate) fn open_communicator(
        &mut self,
        communicator: u32,
        members: Group,
        object: Weak<dyn Revocable>,
    ) {
        self.revoked.open(communicator, members, object);
        // Another member may have been quicker to make it, and have revoked it.
        if self.peers.is_revoked(communicator) {
            self.end_revoked(communicator);
        }
    }

    /// Whether a send or a receive of this rank on a communicator is under way.
    pub(crate) fn has_messages_under_way(&self, communicator: u32) -> bool {
        self.messages.are_under_way_on(communicator)
    }

    /// Forgets a communicator that this rank has freed.
    pub(crate) fn close_communicator(&mut self, communicator: u32) {
        self.revoked.close(communicator);
    }

    /// Revokes a communicator: ends all that waits there, and lets its other members know.
    pub(crate) fn revoke(&mut self, communicator: u32) {
        if self.peers.note_revoked(communicator) {
            self.end_revoked(communicator);
        }
    }

    fn end_revoked(&mut self, communicator: u32) {
        self.messages.revoke(communicator);
        if let (Some(check), Some(members)) =
            (self.notes.check(), self.revoked.members(communicator))
        {
            check.stop_comparing(members.processes());
        }
        self.revoked.tell(communicator, self.peers.me().rank, &mut self.outbox);
    }

    /// The error of a call that waits on the communicator of a message's context, if that is
    /// revoked. Windows go on.
    pub(crate) fn revoked(&self, context: u32) -> Option<Error> {
        if !self.peers.is_troubled() {
            return None;
        }
        self.peers.revoked(context)
    }
}

/// `--check`.
impl State {
    /// Turns checking on.
    pub(crate) fn set_check(&mut self, check: Check) {
        self.notes.turn_on(check);
    }

    /// The record of uses of windows, under `--check`.
    pub(crate) fn check(&mut self) -> Option<&mut Check> {
        self.notes.check()
    }

    /// Orders this rank's later accesses after those that a peer made before its last frame.
    pub(crate) fn learn_clock(&mut self, peer: u32) {
        self.notes.learn_clock(peer);
    }

    /// Announces the send of the message that follows to its receiver. The call that has started it
    /// either blocks until the data may be changed, or doesn't wait.
    pub(crate) fn note_send(&mut self, peer: u32, line: Line, blocks: bool) {
        self.notes.announce_send(peer, line, blocks, &mut self.outbox);
    }

    /// Notes memory that an operation begins to use, under `--check`. It `stays` under way if its
    /// call doesn't wait for it.
    pub(crate) fn note_use(&mut self, of: Use, stays: bool) {
        if let Some(check) = self.notes.check() {
            check.begin_use(of, stays);
        }
    }

    /// Notes memory that a one-sided operation begins to use, under `--check`.
    pub(crate) fn note_one_sided(&mut self, flight: Flight, of: Use, is_requested: bool) {
        if let Some(check) = self.notes.check() {
            check.begin_one_sided(flight, of, is_requested);
        }
    }

    /// This rank has seen its operations on these targets of a window complete.
    pub(crate) fn end_one_sided(&mut self, window: u32, targets: &[u32]) {
        if let Some(check) = self.notes.check() {
            check.end_one_sided(window, targets);
        }
    }

    /// Notes a receive that has started, under `--check`.
    pub(crate) fn note_receive(&mut self, number: u64, room: Option<Room>) {
        if let (Some(check), Some(room)) = (self.notes.check(), room) {
            check.start_receive(number, room);
        }
    }

    /// The reports of messages that no receive has matched, with their kinds.
    pub(crate) fn report_unmatched(&self) -> Vec<(String, String)> {
        self.messages.report_unmatched(&self.peers)
    }

    /// Announces the call of the operation that follows to its target.
    pub(crate) fn note_call(&mut self, peer: u32, caller: Option<Line>) {
        self.notes.announce_call(peer, caller, &mut self.outbox);
    }

    /// Orders the accesses of the rank that the next operation notifies after those that this rank
    /// made before.
    pub(crate) fn note_notifying(&mut self, peer: u32) {
        self.notes.tell_clock(peer, &mut self.outbox);
    }

    /// This rank has read a notification counter of its window: its later accesses come after the
    /// operations that raised it.
    pub(crate) fn note_notified(&mut self, window: u32, counter: u16) {
        if let Some(check) = self.notes.check() {
            check.observe(window, counter);
        }
    }

    /// Informs a target that its operations up to number `issued` are done at this rank too, unless
    /// it knows. `number` issues the operation that the target answers this by.
    pub(crate) fn confirm(
        &mut self,
        target: u32,
        window: u32,
        issued: u64,
        number: impl FnOnce() -> u64,
    ) {
        self.notes.confirm(target, window, issued, number, &mut self.outbox);
    }

    /// Announces a post to the ranks of a window.
    pub(crate) fn note_post(
        &mut self,
        window: u32,
        ranks: &[u32],
        nocheck: bool,
        group: Vec<u32>,
        caller: Option<Line>,
    ) {
        self.notes.announce_post(window, ranks, (nocheck, group), caller, &mut self.outbox);
    }

    /// Announces a complete to a target.
    pub(crate) fn note_complete(
        &mut self,
        window: u32,
        peer: u32,
        nocheck: bool,
        caller: Option<Line>,
    ) {
        self.notes.announce_complete(window, peer, nocheck, caller, &mut self.outbox);
    }

    /// Sends a circle to all its ranks, so that all their calls fail.
    pub(crate) fn note_circle(&mut self, calls: Vec<(u32, u32)>, text: String) {
        let me = self.peers.me().rank;
        self.notes.announce_circle(me, calls, text, &mut self.outbox);
    }
}
