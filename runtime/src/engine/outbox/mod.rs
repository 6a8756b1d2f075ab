//! The outbox: frames and streams that wait to be sent, in one queue a peer.
//!
//! Handlers never send. They append to the outbox, and the engine sends from it when the link has
//! room. Two kinds of frame are coalesced instead of queued: counts of operations that are done
//! (`Ack`) and credit for short messages (`Credit`). Both may overtake streams.

mod outgoing;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use longshore_transport::Link;
use longshore_transport::fault::Chance;

pub(super) use outgoing::{InlineBytes, Sent};
pub(crate) use outgoing::{Outgoing, Purpose, Source};

use super::peers::{PeerSet, PeerTable};
use crate::tap::Tap;
use crate::wire::{Brief, Kind};

/// The queues to all peers.
pub(super) struct Outbox {
    queues: PeerTable<Queue>,
    /// Bytes owed at which credit is given back to a peer: a quarter of this rank's room.
    due: u64,
    /// The peers that were gone before they had a queue.
    closed: PeerSet,
    /// Peers to which something may have to be sent.
    busy: PeerSet,
    /// The adversary, which reorders operations that MPI leaves unordered.
    chance: Option<Chance>,
    /// Whether a call has left a frame, for which the link had no room. The process reads it
    /// without the engine's lock.
    stranded: Arc<AtomicBool>,
}

/// The queue to one peer.
#[derive(Default)]
struct Queue {
    entries: VecDeque<Outgoing>,
    /// Operations of the peer that are done and not acknowledged yet, by window.
    acks: VecDeque<(u32, u64)>,
    /// Credit at the peer that this rank has spent, in bytes.
    spent: u64,
    /// Credit to be given back to the peer, in bytes.
    owed: u64,
    /// The peer is gone: nothing can be sent to it.
    is_closed: bool,
}

impl Queue {
    /// The next coalesced frame. Credit is one when this much is owed.
    fn brief(&self, due: u64) -> Option<Brief> {
        if self.is_closed {
            return None;
        }
        if let Some(&(context, value)) = self.acks.front() {
            return Some(Brief { kind: Kind::Ack, context, operation: 0, value });
        }
        (self.owed >= due).then_some(Brief {
            kind: Kind::Credit,
            context: 0,
            operation: 0,
            value: self.owed,
        })
    }
}

impl Outbox {
    /// The outbox of a rank that holds so many bytes of each peer's messages until they are
    /// received.
    pub(super) fn new(size: u32, room: u64) -> Outbox {
        Outbox {
            queues: PeerTable::new(size),
            due: (room / 4).max(1),
            closed: PeerSet::new(size),
            busy: PeerSet::new(size),
            chance: None,
            stranded: Arc::default(),
        }
    }

    /// Notes that a call has left a frame.
    #[cold]
    pub(super) fn strand(&self) {
        self.stranded.store(true, Ordering::Relaxed);
    }

    /// The flag that is set once a call has left a frame.
    pub(super) fn stranded(&self) -> &Arc<AtomicBool> {
        &self.stranded
    }

    /// Lets an adversary reorder operations that MPI leaves unordered.
    pub(super) fn set_chance(&mut self, chance: Option<Chance>) {
        self.chance = chance;
    }

    /// Whether an adversary reorders operations.
    #[inline]
    pub(super) fn is_reordered(&self) -> bool {
        self.chance.is_some()
    }

    /// The queue to a peer.
    #[inline]
    fn queue(&mut self, peer: u32) -> &mut Queue {
        let Outbox { queues, closed, .. } = self;
        queues.of_or(peer, || Queue { is_closed: closed.contains(peer), ..Queue::default() })
    }

    /// Appends an entry to a peer's queue. An entry for a peer that is gone is dropped.
    pub(super) fn push(&mut self, peer: u32, outgoing: Outgoing) {
        let chance = self.chance.as_mut().filter(|_| outgoing.is_unordered());
        let from_end = chance.map_or(0, |chance| {
            let entries =
                self.queues.get(peer).into_iter().flat_map(|queue| queue.entries.iter().rev());
            chance.below(entries.take_while(|out| out.is_unordered()).count() + 1)
        });
        let queue = self.queue(peer);
        if queue.is_closed {
            return;
        }
        let at = queue.entries.len() - from_end;
        queue.entries.insert(at, outgoing);
        self.busy.insert(peer);
    }

    /// Appends a frame without a stream to a peer's queue.
    pub(super) fn push_brief(&mut self, peer: u32, brief: Brief) {
        self.push(peer, Outgoing::brief(brief));
    }

    /// Answers a peer's operation by its number: it is done.
    pub(super) fn push_done(&mut self, peer: u32, window: u32, number: u64) {
        let brief = Brief { kind: Kind::Done, context: window, operation: number, value: 0 };
        self.push_brief(peer, brief);
    }

    /// Counts one more operation of a peer on a window as done.
    #[inline]
    pub(super) fn acknowledge(&mut self, peer: u32, window: u32) {
        let acks = &mut self.queue(peer).acks;
        match acks.iter_mut().find(|(of, _)| *of == window) {
            Some((_, count)) => *count += 1,
            None => acks.push_back((window, 1)),
        }
        self.busy.insert(peer);
    }

    /// Whether this rank has enough credit for a short message, header included, at a peer that
    /// has introduced itself with this `room`.
    pub(super) fn has_credit(&self, peer: u32, bytes: u64, room: u64) -> bool {
        let spent = self.queues.get(peer).map_or(0, |queue| queue.spent);
        spent.saturating_add(bytes) <= room
    }

    /// The credit that this rank has spent at a peer, if a frame may go there at once: the peer is
    /// there, and its queue is empty.
    #[inline]
    pub(super) fn credit_if_idle(&mut self, peer: u32) -> Option<&mut u64> {
        let queue = self.queue(peer);
        (!queue.is_closed && queue.entries.is_empty()).then_some(&mut queue.spent)
    }

    /// Spends credit that this rank has at a peer.
    pub(super) fn spend_credit(&mut self, peer: u32, bytes: u64) {
        self.queue(peer).spent += bytes;
    }

    /// Owes a peer the credit of a short message that was received.
    #[inline]
    pub(super) fn return_credit(&mut self, peer: u32, bytes: u64) {
        let due = self.due;
        let queue = self.queue(peer);
        queue.owed += bytes;
        if queue.owed >= due {
            self.busy.insert(peer);
        }
    }

    /// A peer gives credit back.
    ///
    /// # Errors
    /// This rank has spent less.
    pub(super) fn handle_credit(&mut self, peer: u32, bytes: u64) -> Result<(), String> {
        let spent = &mut self.queue(peer).spent;
        let left = spent.checked_sub(bytes);
        *spent =
            left.ok_or_else(|| format!("{bytes} bytes of credit, where {spent} were spent"))?;
        Ok(())
    }

    /// Whether a peer's queue is empty and the peer is there: a frame may go to it at once.
    #[inline]
    pub(super) fn is_idle(&self, peer: u32) -> bool {
        match self.queues.get(peer) {
            Some(queue) => !queue.is_closed && queue.entries.is_empty(),
            None => !self.closed.contains(peer),
        }
    }

    /// Whether nothing waits to be sent to any peer. Reads one bit for each peer.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.busy.is_empty()
    }

    /// Whether everything has been sent, coalesced frames included.
    pub(super) fn is_flushed(&self) -> bool {
        let is_empty = |queue: &Queue| queue.entries.is_empty() && queue.brief(self.due).is_none();
        self.queues.values().all(is_empty)
    }

    /// The lowest peer, at least this one, to which something may have to be sent.
    #[inline]
    pub(super) fn busy_from(&self, peer: u32) -> Option<u32> {
        self.busy.first_from(peer)
    }

    /// Notes that all for a peer has been sent.
    #[inline]
    pub(super) fn set_idle(&mut self, peer: u32) {
        self.busy.remove(peer);
    }

    /// Sends a peer's next coalesced frame; `None` if there is none.
    pub(super) fn send_brief(
        &mut self,
        peer: u32,
        link: &mut dyn Link,
        tap: &mut Tap,
    ) -> Option<Sent> {
        let queue = self.queues.get_mut(peer)?;
        let sent = outgoing::send_brief(link, peer, &queue.brief(self.due)?, tap);
        if !matches!(sent, Sent::Blocked | Sent::Gone(_)) && queue.acks.pop_front().is_none() {
            queue.owed = 0;
        }
        Some(sent)
    }

    /// Sends the next frame of the first entry of a peer's queue; `None` if the queue is empty.
    #[inline]
    pub(super) fn send_next(
        &mut self,
        peer: u32,
        link: &mut dyn Link,
        tap: &mut Tap,
    ) -> Option<Sent> {
        let front = self.queues.get_mut(peer)?.entries.front_mut()?;
        Some(front.send(link, peer, tap))
    }

    /// Removes the first entry of a peer's queue.
    pub(super) fn pop(&mut self, peer: u32) -> Option<Outgoing> {
        self.queues.get_mut(peer)?.entries.pop_front()
    }

    /// Closes the queue to a peer that is gone. Returns the entries that it held.
    pub(super) fn close(&mut self, peer: u32) -> VecDeque<Outgoing> {
        let Some(queue) = self.queues.get_mut(peer) else {
            self.closed.insert(peer);
            return VecDeque::new();
        };
        queue.is_closed = true;
        std::mem::take(&mut queue.entries)
    }

    /// Lets go of the memory of a message.
    pub(super) fn abandon_message(&mut self, number: u64) {
        self.abandon(|out| out.is_for(Purpose::Message(number)));
    }

    /// Lets go of the memory of all operations on a window.
    pub(super) fn abandon_window(&mut self, window: u32) {
        self.abandon(|out| out.is_on(window));
    }

    fn abandon(&mut self, which: impl Fn(&Outgoing) -> bool) {
        let entries = self.queues.used().flat_map(|(_, queue)| &mut queue.entries);
        entries.filter(|out| which(out)).for_each(Outgoing::abandon);
    }
}
