//! A link between hosts, over libfabric's connected endpoints (FI_EP_MSG).
//!
//! ```text
//!    FabricLink ── Connector ── Outbound: endpoint to a peer, with slots to write frames in
//!        │      ├─ Inbox ────── Inbound:  endpoint from a peer, with slots that frames arrive in
//!        │      └─ Peers:       which peers have joined, are silent, or are given up
//!        │
//!    Network: fabric, domain, event queue, completion queue, passive endpoint
//!             (one for each rank, on one interface)
//!    Watcher: a thread that rings the rank's bell in the segment for the two queues
//! ```
//!
//! Connected endpoints work between machines of any byte order and word size.
//!
//! **Connections.** A connection is made with the first frame to a peer, and carries frames only
//! from the rank that made it. Two ranks that connect to each other at the same time therefore need
//! no agreement. The request for a connection proves that its sender holds the job's secret. Then
//! both ends prove it again, by a challenge, before they accept anything else (see
//! [`crate::protocol`]). A connection that fails to prove it is dropped, counted and logged.
//!
//! **Frames.** A message holds one or more frames, each after a header of 8 bytes that the receiver
//! checks. A sender whose slots are all in use waits, so the receiver's pace limits the sender's.
//!
//! **Ends.** A peer that ends in good order sends a farewell after its frames. If a connection ends
//! without a farewell, and the launcher doesn't report the peer's end within a second, the peer
//! counts as lost.
//!
//! **Memory.** Ranks of equal byte order and 64-bit words access each other's memory through a
//! separate endpoint, in `rma`, which carries nothing else.
//!
//! **Encryption.** If the job asks for it, each message is encrypted where it was written, right
//! before it is sent, and decrypted where it was received (see [`crate::protocol::session`]). The
//! separate endpoint for memory can't be encrypted, so such a job doesn't open it. libfabric's own
//! headers stay readable. Before this module accepts a request, libfabric itself reads from any
//! sender a header and up to 256 bytes after it, and nothing more.

mod connection;
mod connector;
mod error;
mod ffi;
mod fid;
mod guests;
mod handles;
mod inbox;
mod keeper;
mod library;
mod listener;
mod peers;
mod place;
mod queue;
mod rma;
mod sockets;
#[cfg(test)]
mod tests;
mod watcher;

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{io, thread};

use thiserror::Error;

use crate::link::{Doorbell, Frame, FrameMut, Link, LinkError, Refused};
use crate::protocol::challenge::Nonce;
use crate::protocol::session::Protection;
use crate::rdma::Rdma;
use crate::segment::RankState;
use connection::Broken;
use connector::Connector;
pub use error::CallError;
use guests::Guests;
use handles::{Completion, Connection, Event, Network};
use inbox::Inbox;
use keeper::Keeper;
use library::Library;
pub use library::{LIBRARY, LibraryError, Version};
pub use listener::Listener;
use peers::Peers;
pub use place::{Place, Ports, WrongPorts};
use rma::RmaEndpoint;
use watcher::Watcher;

/// The longest frame, in bytes. With its headers, it fits four of the packets in which the system
/// hands data on (docs/tuning.md, "Frame length between hosts").
const FRAME: usize = 252 << 10;

/// The most frames under way on a connection that this process holds; the system's buffers hold
/// more. A 32-bit address space has no room for more with each of hundreds of peers.
const DEPTH: u8 = if cfg!(target_pointer_width = "32") { 2 } else { 8 };

/// The number of polls of the completion queue for each poll of the event queue, while the watcher
/// reports no events (docs/tuning.md, "Polling memory between hosts").
const EVENTS_EVERY: u32 = 64;

/// The number of polls of the completion queue for each poll of the RMA endpoint while that is
/// unused, because both cost the same (docs/tuning.md, "Polling memory between hosts").
const RMA_EVERY: u32 = 8;

/// The number of looks for events for each check of the descriptors that are left.
const LOOKS: u32 = 16;

/// The most strangers' connections that one poll accepts.
const STRANGERS: u32 = 32;

/// The longest time that the link of a dying rank waits without progress for its peers to take its
/// frames.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// An error of opening a link between hosts.
#[derive(Debug, Error)]
pub enum OpenError {
    /// This process has no libfabric.
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// The provider refused a call.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The system refused to listen or to start a thread.
    #[error("listening on {interface}: {source}")]
    System {
        /// The interface.
        interface: IpAddr,
        /// The system's error.
        source: io::Error,
    },
    /// Something else listens at each port that was tried.
    #[error(
        "listening on {interface}: {}",
        match ports {
            Some(ports) => format!("all ports of {ports} are in use"),
            None => "each port that the system found free was taken by another process".to_owned(),
        }
    )]
    InUse {
        /// The interface.
        interface: IpAddr,
        /// The range that the rank is limited to.
        ports: Option<Ports>,
    },
    /// The segment's handle is the launcher's.
    #[error(transparent)]
    Segment(#[from] crate::segment::SegmentError),
}

/// The libfabric of this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The library's version.
    pub version: Version,
    /// The file that it was loaded from, or that it is linked into.
    pub file: PathBuf,
    /// The names of this host's providers that offer connected endpoints.
    pub providers: Vec<String>,
}

/// Finds libfabric, which loads it.
///
/// # Errors
/// There is none, or it is too old.
pub fn find() -> Result<Found, LibraryError> {
    let library = Library::get()?;
    let (version, file) = (library.version(), library.file());
    Ok(Found { version, file, providers: handles::providers(library) })
}

/// Ends a test, with the reason on standard error, where this machine has no libfabric. If the
/// environment names one, the test must find it.
#[doc(hidden)]
#[macro_export]
macro_rules! needs_libfabric {
    () => {
        if let Err(error) = $crate::fabric::find() {
            let named = std::env::var($crate::fabric::LIBRARY);
            assert!(named.is_err(), "{error}");
            eprintln!("skipped: {error}");
            return;
        }
    };
}

/// A rank's connections to its peers on other hosts.
pub struct FabricLink {
    watcher: Watcher,
    guests: Arc<Mutex<Guests>>,
    _keeper: Keeper,
    connector: Connector,
    inbox: Inbox,
    network: Arc<Network>,
    rma: Option<Arc<RmaEndpoint>>,
    peers: Peers,
    ended: Vec<Completion>,
    polls: u32,
    /// The number of looks for events of connections.
    looks: u32,
    /// The number of completed operations.
    operations: u64,
    /// The permanent failure of the network, if it has failed.
    broken: Option<LinkError>,
    /// Whether the farewells are sent.
    left: bool,
}

impl FabricLink {
    /// The number of connections that were dropped because the other end didn't prove its
    /// membership.
    pub fn drops(&self) -> u64 {
        self.inbox.drops
    }

    /// Polls the network. After a permanent failure, returns that failure.
    fn look(&mut self) -> Result<(), LinkError> {
        if self.broken.is_none() {
            let Err(error) = self.poll() else { return Ok(()) };
            self.fail(error);
        }
        // RMA uses another endpoint, so accesses of peers and of this rank may still complete.
        let _ = self.rma.as_ref().map(|rma| rma.poll());
        // Taken requests are rejected when dropped, so that no peer waits for an answer.
        while let Ok(Some(_)) = self.network.next_event() {}
        self.broken.clone().map_or(Ok(()), Err)
    }

    /// Handles a permanent failure of the network: ends all connections, so that peers see this
    /// rank as lost. Operations under way on their slots are never reported any more.
    fn fail(&mut self, error: LinkError) {
        self.broken = Some(error);
        for peer in 0..self.size() {
            self.connector.end(peer);
        }
        self.inbox.close(|_| true);
    }

    /// Polls the network: sends held frames, and takes in completions, RMA and events.
    fn poll(&mut self) -> Result<(), LinkError> {
        self.polls = self.polls.wrapping_add(1);
        self.watcher.used();
        // Held frames are sent first, because the other steps take time.
        self.send_held();
        self.take_completions()?;
        self.poll_rma()?;
        let due = self.watcher.take_due();
        if due || !self.connector.is_settled() || self.polls % EVENTS_EVERY == 0 {
            self.take_events(due)?;
        }
        if self.peers.is_any_overdue() {
            // While the program computed, the last frames of silent peers may have arrived. An
            // error is repeated by the next poll.
            while self.take_completions().unwrap_or(false) {}
            for error in self.peers.mark_lost() {
                self.inbox.report(error);
            }
        }
        Ok(())
    }

    /// Makes progress on RMA and takes in its completions: at each poll while RMA is in use.
    fn poll_rma(&mut self) -> Result<(), LinkError> {
        let Some(rma) = self.rma.as_ref() else { return Ok(()) };
        if self.polls % RMA_EVERY != 0 && !rma.is_in_use() {
            return Ok(());
        }
        rma.poll()?;
        for (peer, error) in rma.take_failed() {
            self.peers.lose(peer, &error.into());
        }
        Ok(())
    }

    fn take_completions(&mut self) -> Result<bool, LinkError> {
        let mut ended = std::mem::take(&mut self.ended);
        let any = self.network.completions(&mut ended);
        self.operations += ended.len() as u64;
        for completion in ended.drain(..) {
            match self.connector.owner(completion.endpoint()) {
                Some(peer) => {
                    let error = self.connector.handle_completion(peer, completion, &mut self.peers);
                    error.into_iter().for_each(|error| self.inbox.report(error));
                }
                None => self.inbox.handle_completion(completion, &mut self.peers),
            }
        }
        self.ended = ended;
        any.map_err(|error| LinkError::Fabric(error.to_string()))
    }

    /// Takes in the events of connections. If there `may` be some, strangers may be connecting: a
    /// look accepts one connection, and reports no event for a stranger's.
    fn take_events(&mut self, may: bool) -> Result<(), LinkError> {
        let mut more = if may { STRANGERS } else { 0 };
        loop {
            self.looks = self.looks.wrapping_add(1);
            if self.looks % LOOKS == 0 {
                // While strangers arrive, nothing is accepted beside a keeper that is closing some:
                // it may be slow, and descriptors would run out meanwhile.
                let guests =
                    if may { self.guests.lock().ok() } else { self.guests.try_lock().ok() };
                if let Some(mut guests) = guests {
                    guests.make_room(may);
                }
            }
            let event = self.network.next_event();
            let event = event.map_err(|error| LinkError::Fabric(error.to_string()))?;
            let Some(event) = event else {
                if more == 0 || !self.watcher.has_events() {
                    break;
                }
                more -= 1;
                continue;
            };
            self.watcher.took();
            match event {
                Event::Request(request) => self.inbox.admit(request, &self.peers),
                Event::Connected(connection) => {
                    self.connector.handle_connected(connection, &mut self.peers);
                }
                Event::Closed(connection) => self.handle_end(connection, None)?,
                Event::Failed(connection, why) => self.handle_end(connection, Some(why))?,
            }
        }
        Ok(())
    }

    /// Handles the end of a connection. Everything that came over it is in the completion queue
    /// already.
    fn handle_end(
        &mut self,
        connection: Connection,
        why: Option<CallError>,
    ) -> Result<(), LinkError> {
        while self.take_completions()? {}
        let why = why.map_or(Broken::Ended, Broken::Call);
        match self.connector.peer_at(connection) {
            Some(peer) => self.connector.lose(peer, &why, &mut self.peers),
            None => self.inbox.handle_end(connection, &why, &mut self.peers),
        }
        Ok(())
    }

    /// Sends farewells to all peers, after all committed frames. Waits until the peers have taken
    /// both.
    fn say_last_words(&mut self) {
        let state = self.peers.segment.rank_state(self.peers.rank);
        let busy = |link: &FabricLink| {
            link.connector.is_unsent(&link.peers) || link.inbox.is_unsent(&link.peers)
        };
        // A rank that has finalized waits without limit: peers rely on its frames, even if they are
        // stopped for a while.
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
            // A farewell follows the frames to a peer, if there is a connection to it, so that a
            // peer that reads the farewell has read the frames. Otherwise it goes over the peer's
            // own connection.
            let told = self.connector.say_farewells(state);
            self.inbox.say_farewells(state, &told);
            wait(self);
        }
    }
}

/// The protection of one end of a new connection, and the end's nonce for the challenge.
fn opening(encrypts: bool) -> Result<(Protection, Nonce), String> {
    if encrypts {
        return Protection::encrypted();
    }
    let mut nonce = Nonce::default();
    getrandom::fill(&mut nonce).map_err(|error| error.to_string())?;
    Ok((Protection::Plain, nonce))
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
        self.connector.check_last(&mut self.peers);
        let size = self.size();
        if peer >= size {
            return Err(LinkError::NoSuchRank { rank: peer, size }.into());
        }
        let state = self.peers.segment.rank_state(peer);
        if state.is_gone() {
            // The caller stops waiting for the peer's frames once it learns that the peer is gone.
            // While some may still come, don't report that.
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
        self.connector.connect(peer, &self.network, &mut self.peers)?;
        let answers_follow = !self.inbox.is_empty();
        self.connector.frame(peer, len, answers_follow).ok_or(Refused::WouldBlock)
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
        self.connector.send_held(&mut self.peers);
    }

    /// Ends the connections with the peer. If the peer lives and waits for this rank, it learns of
    /// it by that.
    fn give_up(&mut self, peer: u32) {
        if peer >= self.size() || !self.peers.give_up(peer) {
            return;
        }
        self.connector.end(peer);
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
        self.rma.clone().map(|rma| rma as Arc<dyn Rdma>)
    }
}

impl Drop for FabricLink {
    fn drop(&mut self) {
        self.leave();
    }
}
