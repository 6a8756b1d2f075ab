//! Frames between hosts, over libfabric's connected endpoints (FI_EP_MSG).
//!
//! ```text
//!    FabricLink ── Dialled ── Outbound: endpoint to a peer, slots to write frames in      made with the first frame
//!        │      ├─ Inbox ──── Inbound:  endpoint of a peer, slots that frames arrive in   accepted for a proof in the request
//!        │      └─ Peers:     who has joined, is silent, or is given up
//!        │
//!    Network: fabric, domain, event queue, completion queue, listener              one per rank and interface
//!    Watcher: a thread that rings the rank's bell in the segment for the two queues
//! ```
//!
//! This kind of endpoint is the one that works between machines of any byte order and word size. Connections are made on
//! first use and carry frames one way, so a rank has as many as it has peers that it talks to, and two ranks that connect at once
//! don't have to settle anything. A request for one carries a proof that its sender holds the job's secret; then both ends prove that
//! they do now, before anything else is listened to. What fails is dropped, counted and logged. A frame is a message behind a header of
//! 8 bytes, checked by its receiver; a sender that finds its slots in use waits, which is how the receiver's pace gets to it.
//!
//! A peer that leaves in good order says so, behind its frames. One whose connection ends otherwise is taken for lost after a
//! second in which the launcher didn't say what became of it.
//!
//! Like ranks access each other's memory by an endpoint of its own, `memory`, which carries nothing else.
//!
//! Left out: encryption. libfabric itself reads a request, whoever sends it, a header and up to 256 bytes that follow, and nothing behind it
//! before this module has accepted it.

mod connection;
mod dialled;
mod error;
mod handles;
mod inbox;
mod listener;
mod memory;
mod peers;
mod queue;
mod sockets;
#[cfg(test)]
mod tests;
mod watcher;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{io, thread};

use thiserror::Error;

use crate::link::{Doorbell, Frame, FrameMut, Link, LinkError, Refused};
use crate::protocol::challenge::Nonce;
use crate::rdma::Rdma;
use crate::segment::RankState;
use connection::Broken;
use dialled::Dialled;
pub use error::CallError;
use handles::{Completion, Connection, Event, Network};
use inbox::Inbox;
pub use listener::Listener;
use memory::Memory;
use peers::Peers;
use sockets::Keeper;
use watcher::Watcher;

/// The longest frame, in bytes: with all that goes before it, no more than what the system hands on as four packets, of somewhat less
/// than 64 KiB each. With one packet a put of 1 MiB took a fifth longer, with two a tenth; in frames whose rest was a short packet of
/// its own, a third. (Zen 5: `longshore bench put_latency --hosts --route message --size 1M`.)
const FRAME: usize = 252 << 10;

/// Frames under way on a connection, as far as this process holds them; the system's buffers hold more. Addresses of 32 bits have no
/// room for so many with each of hundreds of peers.
const DEPTH: u8 = if cfg!(target_pointer_width = "32") { 2 } else { 8 };

/// Looks at the completions between two at the events, where the watcher knows of none.
const EVENTS_EVERY: u32 = 64;

/// Likewise at memory that nobody has a use for: each costs as much as a look at the completions.
const MEMORY_EVERY: u32 = 8;

/// How long the link of a rank that ends badly waits for its peers to take something of what was committed.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Why a link between hosts can't be had.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The provider refused a call.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The system did.
    #[error("listening on {interface}: {source}")]
    System {
        /// The interface.
        interface: IpAddr,
        /// Why.
        source: io::Error,
    },
    /// The segment is the launcher's handle.
    #[error(transparent)]
    Segment(#[from] crate::segment::SegmentError),
}

/// The names of the providers here that serve connected endpoints.
pub fn providers() -> Vec<String> {
    handles::providers()
}

/// The version of libfabric that this program runs with.
pub fn version() -> (u32, u32) {
    handles::version()
}

/// A rank's connections to its peers.
pub struct FabricLink {
    watcher: Watcher,
    _keeper: Keeper,
    dialled: Dialled,
    inbox: Inbox,
    network: Arc<Network>,
    memory: Option<Arc<Memory>>,
    peers: Peers,
    ended: Vec<Completion>,
    polls: u32,
    /// Operations that have ended.
    operations: u64,
    /// What has failed, for good.
    broken: Option<LinkError>,
    /// Its last words are said.
    left: bool,
}

impl FabricLink {
    /// Connections that were dropped because what came over them proved no membership.
    pub fn drops(&self) -> u64 {
        self.inbox.drops
    }

    /// Takes in what has happened, until that fails.
    fn look(&mut self) -> Result<(), LinkError> {
        if self.broken.is_none() {
            let Err(error) = self.poll() else { return Ok(()) };
            self.fail(error);
        }
        // Accesses to memory don't go the same way: peers' and this rank's own may still end.
        let _ = self.memory.as_ref().map(|memory| memory.poll());
        // Whoever connects from here on is refused, so that nobody waits for an answer.
        while let Ok(Some(_)) = self.network.next_event() {}
        self.broken.clone().map_or(Ok(()), Err)
    }

    /// The network has failed, for good: ends all connections, so that peers take this rank for lost. What operations there are on slots
    /// nobody tells any more.
    fn fail(&mut self, error: LinkError) {
        self.broken = Some(error);
        for peer in 0..self.size() {
            self.dialled.end(peer);
        }
        self.inbox.close(|_| true);
    }

    /// Takes in what has happened.
    fn poll(&mut self) -> Result<(), LinkError> {
        self.polls = self.polls.wrapping_add(1);
        self.watcher.used();
        // What is held goes out before anything takes its time.
        self.send_held();
        self.take_completions()?;
        self.poll_memory()?;
        if self.watcher.take_due() || !self.dialled.is_settled() || self.polls % EVENTS_EVERY == 0 {
            self.take_events()?;
        }
        if self.peers.is_any_overdue() {
            // While the program computed, their last words may have come. An error comes again.
            while self.take_completions().unwrap_or(false) {}
            self.peers.mark_lost();
        }
        Ok(())
    }

    /// Lets accesses to memory go on, and takes in what has ended: each look, while there may be some.
    fn poll_memory(&mut self) -> Result<(), LinkError> {
        let Some(memory) = self.memory.as_ref() else { return Ok(()) };
        if self.polls % MEMORY_EVERY != 0 && !memory.is_in_use() {
            return Ok(());
        }
        memory.poll()?;
        for (peer, error) in memory.take_failed() {
            self.peers.lose(peer, &error.into());
        }
        Ok(())
    }

    fn take_completions(&mut self) -> Result<bool, LinkError> {
        let mut ended = std::mem::take(&mut self.ended);
        let any = self.network.completions(&mut ended);
        self.operations += ended.len() as u64;
        for completion in ended.drain(..) {
            match self.dialled.owner(completion.endpoint()) {
                Some(peer) => self.dialled.handle_completion(peer, completion, &mut self.peers),
                None => self.inbox.handle_completion(completion, &mut self.peers),
            }
        }
        self.ended = ended;
        any.map_err(|error| LinkError::Fabric(error.to_string()))
    }

    fn take_events(&mut self) -> Result<(), LinkError> {
        loop {
            let event = self.network.next_event();
            match event.map_err(|error| LinkError::Fabric(error.to_string()))? {
                None => break,
                Some(Event::Request(request)) => self.inbox.admit(request, &self.peers),
                Some(Event::Connected(connection)) => {
                    self.dialled.handle_connected(connection, &mut self.peers);
                }
                Some(Event::Closed(connection)) => self.handle_end(connection, None)?,
                Some(Event::Failed(connection, why)) => self.handle_end(connection, Some(why))?,
            }
        }
        Ok(())
    }

    /// A connection has ended. What came over it before is in the completion queue.
    fn handle_end(
        &mut self,
        connection: Connection,
        why: Option<CallError>,
    ) -> Result<(), LinkError> {
        while self.take_completions()? {}
        let why = why.map_or(Broken::Ended, Broken::Call);
        match self.dialled.peer_at(connection) {
            Some(peer) => self.dialled.lose(peer, &why, &mut self.peers),
            None => self.inbox.handle_end(connection, &why, &mut self.peers),
        }
        Ok(())
    }

    /// Says to all that this rank says nothing more, and why, behind all that was committed; waits as long as they take it.
    fn say_last_words(&mut self) {
        let state = self.peers.segment.rank_state(self.peers.rank);
        let busy = |link: &FabricLink| {
            link.dialled.is_unsent(&link.peers) || link.inbox.is_unsent(&link.peers)
        };
        // Others count on what a rank said that leaves in good order, be they stopped for a while.
        let patient = state == RankState::Finalized;
        let wait = |link: &mut FabricLink| {
            let (mut ended, mut until) = (link.operations, Instant::now() + LAST_WORDS);
            while busy(link) && (patient || Instant::now() < until) && link.look().is_ok() {
                if link.operations != ended {
                    (ended, until) = (link.operations, Instant::now() + LAST_WORDS);
                }
                thread::sleep(Duration::from_micros(20));
            }
        };
        wait(self);
        if state.is_gone() {
            // Behind the frames to a peer, where there are any, so that whoever hears it has heard them; else on the peer's own
            // connection.
            let told = self.dialled.say_farewells(state);
            self.inbox.say_farewells(state, &told);
            wait(self);
        }
    }
}

fn nonce() -> Result<Nonce, getrandom::Error> {
    let mut nonce = Nonce::default();
    getrandom::fill(&mut nonce)?;
    Ok(nonce)
}

impl Link for FabricLink {
    fn rank(&self) -> u32 {
        self.peers.rank
    }

    fn size(&self) -> u32 {
        self.peers.size()
    }

    fn frame_limit(&self, _: u32) -> usize {
        FRAME
    }

    fn reserve(&mut self, peer: u32, len: usize) -> Result<FrameMut<'_>, Refused> {
        if len > FRAME {
            return Err(LinkError::TooLong { len, limit: FRAME }.into());
        }
        self.watcher.used();
        self.dialled.check_last(&mut self.peers);
        let size = self.size();
        if peer >= size {
            return Err(LinkError::NoSuchRank { rank: peer, size }.into());
        }
        let state = self.peers.segment.rank_state(peer);
        if state.is_gone() {
            // Whoever hears that it is gone waits for nothing more of it.
            let is_final = state != RankState::Finalized || !self.may_speak(peer);
            let gone = LinkError::PeerGone { peer, state };
            return Err(if is_final { gone.into() } else { Refused::WouldBlock });
        }
        if let Some(broken) = &self.broken {
            return Err(broken.clone().into());
        }
        if self.peers.is_silent(peer) {
            return Err(Refused::WouldBlock);
        }
        self.dialled.connect(peer, &self.network, &mut self.peers)?;
        let answers_follow = !self.inbox.is_empty();
        self.dialled.frame(peer, len, answers_follow).ok_or(Refused::WouldBlock)
    }

    fn receive(&mut self) -> Result<Option<Frame<'_>>, LinkError> {
        self.inbox.give_back(&mut self.peers);
        if self.inbox.is_empty() {
            let looked = self.look();
            if self.inbox.is_empty() {
                looked?;
            }
        }
        self.inbox.next()
    }

    fn is_spent(&mut self) -> bool {
        self.inbox.is_empty()
    }

    fn send_held(&mut self) {
        self.dialled.send_held(&mut self.peers);
    }

    /// The ends of its connections tell the peer, which may live and wait for this rank.
    fn give_up(&mut self, peer: u32) {
        if peer >= self.size() || !self.peers.give_up(peer) {
            return;
        }
        self.dialled.end(peer);
        self.inbox.close(|inbound| inbound.greeting.from == peer);
    }

    fn may_speak(&self, peer: u32) -> bool {
        self.broken.is_none() && self.inbox.may_speak(peer, &self.peers)
    }

    fn leave(&mut self) {
        if !std::mem::replace(&mut self.left, true) {
            self.say_last_words();
        }
    }

    fn doorbell(&self) -> Arc<dyn Doorbell> {
        self.watcher.doorbell()
    }

    fn rdma(&self) -> Option<Arc<dyn Rdma>> {
        self.memory.clone().map(|memory| memory as Arc<dyn Rdma>)
    }
}

impl Drop for FabricLink {
    fn drop(&mut self) {
        self.leave();
    }
}
