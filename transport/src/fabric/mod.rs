//! Frames between hosts, over libfabric's connected endpoints (FI_EP_MSG).
//!
//! ```text
//!    FabricLink ── Outbound: endpoint to a peer, slots to write frames in          made with the first frame
//!        │      └─ Inbound:  endpoint of a peer, slots that frames arrive in       accepted for a proof that came with the request
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
mod listener;
mod memory;
mod peers;
mod queue;
mod sockets;
#[cfg(test)]
mod tests;
mod watcher;

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{io, thread};

use thiserror::Error;

use crate::link::{Consume, Doorbell, Frame, FrameMut, Link, LinkError, Refused};
use crate::protocol::challenge::{Greeting, Key, Nonce};
use crate::protocol::frame;
use crate::rdma::Rdma;
use crate::segment::RankState;
use connection::{Broken, Inbound, News};
use dialled::Dialled;
pub use error::CallError;
use handles::{Completion, Connection, Event, Network, Request};
pub use listener::Listener;
use memory::Memory;
use peers::Peers;
use sockets::Keeper;
use watcher::Watcher;

/// The longest frame, in bytes: with all that goes before it, no more than what the system hands on as four packets, of somewhat less
/// than 64 KiB each. With one packet a put of 1 MiB took a fifth longer, with two a tenth; in frames whose rest was a short packet of
/// its own, a third. (Zen 5: `longshore bench put_latency --hosts --route message --size 1M`.)
const FRAME: usize = 252 << 10;

/// Frames under way on a connection, as far as this process holds them; the system's buffers hold more.
const DEPTH: u8 = 8;

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
    /// By the number of the endpoint.
    inbound: HashMap<usize, Inbound>,
    network: Arc<Network>,
    memory: Option<Arc<Memory>>,
    peers: Peers,
    key: Key,
    arrived: VecDeque<Arrived>,
    /// The message that was read to its end: its endpoint and slot.
    current: Option<(usize, u8)>,
    ended: Vec<Completion>,
    polls: u32,
    /// Operations that have ended.
    operations: u64,
    drops: u64,
    /// What has failed, for good.
    broken: Option<LinkError>,
    /// Its last words are said.
    left: bool,
    read: Read,
}

/// What the next `receive`s give, in order.
enum Arrived {
    /// In a slot's message, whose last frame gives the slot back.
    Frame {
        endpoint: usize,
        slot: u8,
        at: Range<usize>,
        is_last: bool,
    },
    Trouble(LinkError),
}

/// A frame's slot is offered again by the next `receive`.
struct Read;

impl Consume for Read {
    fn consume(&mut self) {}
}

impl FabricLink {
    /// Connections that were dropped because what came over them proved no membership.
    pub fn drops(&self) -> u64 {
        self.drops
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
        self.close_inbound(|_| true);
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
        if self.peers.is_any_silent() {
            self.give_up_silent();
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
            self.handle_completion(completion);
        }
        self.ended = ended;
        any.map_err(|error| LinkError::Fabric(error.to_string()))
    }

    fn handle_completion(&mut self, completion: Completion) {
        let number = completion.endpoint();
        if let Some(peer) = self.dialled.owner(number) {
            return self.dialled.handle_completion(peer, completion, &mut self.peers);
        }
        let Some(inbound) = self.inbound.get_mut(&number) else { return };
        if inbound.closed {
            return;
        }
        let peers = &mut self.peers;
        let heard = inbound.handle_completion(completion, &self.key, |greeting| {
            peers.expect(greeting)?;
            nonce().map_err(|error| error.to_string())
        });
        match heard {
            Ok(News::Nothing) => {}
            Ok(News::Joined(peer)) => {
                // Two of one name may have been challenged at once: both hold the secret, so one is a fault of ours.
                if !peers.join(peer) {
                    let what = "it connected twice".to_owned();
                    self.arrived.push_back(Arrived::Trouble(LinkError::Corrupt { peer, what }));
                }
                tracing::debug!(rank = peers.rank, peer, "accepted a connection");
            }
            Ok(News::Frames(slot, len)) => {
                if let Some(peer) = inbound.peer() {
                    peers.hear(peer);
                }
                let all = frame::frames(inbound.message(slot, len));
                self.arrived.extend(all.map(|at| {
                    let is_last = at.end == len;
                    Arrived::Frame { endpoint: number, slot, at, is_last }
                }));
            }
            Ok(News::Farewell(state)) => {
                if let Some(peer) = inbound.peer() {
                    self.peers.part(peer, state);
                }
            }
            Err(why) => self.lose_inbound(number, why),
        }
    }

    fn take_events(&mut self) -> Result<(), LinkError> {
        loop {
            let event = self.network.next_event();
            match event.map_err(|error| LinkError::Fabric(error.to_string()))? {
                None => break,
                Some(Event::Request(request)) => self.admit(request),
                Some(Event::Connected(connection)) => {
                    self.dialled.handle_connected(connection, &mut self.peers);
                }
                Some(Event::Closed(connection)) => self.handle_end(connection, None)?,
                Some(Event::Failed(connection, why)) => self.handle_end(connection, Some(why))?,
            }
        }
        Ok(())
    }

    /// Somebody asks for a connection. Nobody gets one without a proof: what comes over it the provider reads before this rank does.
    /// Nothing hurries a guest, since a rank may compute for as long as it likes before its next call; and there are few, since each
    /// greeting is a rank's that knows the secret, and no second guest's.
    fn admit(&mut self, request: Request) {
        let greeting = match self.requested(request.words()) {
            Ok(greeting) => greeting,
            Err(why) => return self.drop_one(&why),
        };
        match Inbound::accept(request, greeting) {
            Ok(inbound) => drop(self.inbound.insert(inbound.endpoint.number(), inbound)),
            Err(error) => self.drop_one(&error.to_string()),
        }
    }

    /// Whether a request's words are such as this rank accepts; the greeting that is to follow.
    fn requested(&self, words: &[u8]) -> Result<Greeting, String> {
        let greeting = self.key.requested(words)?;
        self.peers.expect(&greeting)?;
        match self.inbound.values().any(|inbound| inbound.greeting == greeting) {
            true => Err(format!("a request of rank {}, said again", greeting.from)),
            false => Ok(greeting),
        }
    }

    fn drop_one(&mut self, why: &str) {
        self.drops += 1;
        tracing::warn!(rank = self.peers.rank, drops = self.drops, why, "dropped a connection");
    }

    /// A connection has ended. What came over it before is in the completion queue.
    fn handle_end(
        &mut self,
        connection: Connection,
        why: Option<CallError>,
    ) -> Result<(), LinkError> {
        while self.take_completions()? {}
        let why = why.map_or(Broken::Ended, Broken::Call);
        if let Some(peer) = self.dialled.peer_at(connection) {
            self.dialled.lose(peer, &why, &mut self.peers);
            return Ok(());
        }
        let mut all = self.inbound.iter();
        if let Some((&number, _)) = all.find(|(_, one)| one.endpoint.connection() == connection) {
            self.lose_inbound(number, why);
        }
        Ok(())
    }

    fn lose_inbound(&mut self, number: usize, why: Broken) {
        let Some(inbound) = self.inbound.get_mut(&number) else { return };
        let peer = inbound.peer();
        if inbound.closed {
            return;
        }
        inbound.closed = true;
        let Some(peer) = peer else {
            self.inbound.remove(&number);
            return self.drop_one(&why.to_string());
        };
        if let Broken::Protocol(what) = &why {
            let what = what.clone();
            self.arrived.push_back(Arrived::Trouble(LinkError::Corrupt { peer, what }));
        }
        self.peers.lose(peer, &why);
        self.retire(number);
    }

    /// Listens to these no more, and closes those that have no frame to be read.
    fn close_inbound(&mut self, which: impl Fn(&Inbound) -> bool) {
        self.inbound.retain(|_, inbound| {
            inbound.closed |= which(inbound);
            !inbound.closed || inbound.unread > 0
        });
    }

    /// Closes an endpoint whose frames are all read.
    fn retire(&mut self, number: usize) {
        if self.inbound.get(&number).is_some_and(|inbound| inbound.closed && inbound.unread == 0) {
            self.inbound.remove(&number);
        }
    }

    /// Takes those for lost of whom nobody has said anything, nor they themselves.
    fn give_up_silent(&mut self) {
        if self.peers.is_any_overdue() {
            // While the program computed, their last words may have come. An error comes again.
            while self.take_completions().unwrap_or(false) {}
        }
        self.peers.mark_lost();
    }

    /// Offers the slot of the frame that was read last for another.
    fn give_back(&mut self) {
        let Some((number, slot)) = self.current.take() else { return };
        let Some(inbound) = self.inbound.get_mut(&number) else { return };
        match inbound.give_back(slot) {
            Ok(()) => self.retire(number),
            Err(error) => self.lose_inbound(number, error.into()),
        }
    }

    /// Says to all that this rank says nothing more, and why, behind all that was committed; waits as long as they take it.
    fn say_last_words(&mut self) {
        let state = self.peers.segment.rank_state(self.peers.rank);
        let busy = |link: &FabricLink| {
            let mut guests = link.inbound.values();
            link.dialled.is_unsent(&link.peers)
                || guests.any(|guest| {
                    guest.is_unsent() && !guest.peer().is_some_and(|peer| link.peers.is_gone(peer))
                })
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
            self.say_farewells(state);
            wait(self);
        }
    }

    /// Says farewell to each peer once: behind the frames to it, where there are any, so that whoever hears it has heard them; else
    /// on the peer's own connection.
    fn say_farewells(&mut self, state: RankState) {
        let told = self.dialled.say_farewells(state);
        for inbound in self.inbound.values_mut() {
            if inbound.peer().is_some_and(|peer| !told.contains(&peer)) {
                inbound.say_farewell(state);
            }
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
            return Err(LinkError::PeerGone { peer, state }.into());
        }
        if let Some(broken) = &self.broken {
            return Err(broken.clone().into());
        }
        if self.peers.is_silent(peer) {
            return Err(Refused::WouldBlock);
        }
        self.dialled.connect(peer, &self.network, &mut self.peers)?;
        let answers_follow = !self.arrived.is_empty();
        self.dialled.frame(peer, len, answers_follow).ok_or(Refused::WouldBlock)
    }

    fn receive(&mut self) -> Result<Option<Frame<'_>>, LinkError> {
        self.give_back();
        if self.arrived.is_empty() {
            let looked = self.look();
            if self.arrived.is_empty() {
                looked?;
            }
        }
        let (endpoint, slot, at, is_last) = match self.arrived.pop_front() {
            None => return Ok(None),
            Some(Arrived::Trouble(error)) => return Err(error),
            Some(Arrived::Frame { endpoint, slot, at, is_last }) => (endpoint, slot, at, is_last),
        };
        let Some(inbound) = self.inbound.get(&endpoint) else { return Ok(None) };
        let Some(peer) = inbound.peer() else { return Ok(None) };
        self.current = is_last.then_some((endpoint, slot));
        let bytes = &inbound.message(slot, at.end)[at.start..];
        Ok(Some(Frame::new(peer, bytes, &mut self.read)))
    }

    fn is_spent(&mut self) -> bool {
        self.arrived.is_empty()
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
        self.close_inbound(|inbound| inbound.greeting.from == peer);
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
