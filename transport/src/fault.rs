//! A wrapper that makes any link behave as badly as a link may: it delays frames, reorders them
//! between peers, refuses reservations, lowers frame limits, and loses a peer.
//!
//! Until the cut of a peer, the wrapper keeps the promises of a link: reliability, and order per
//! peer.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::link::{Consume, Doorbell, Frame, FrameMut, Link, LinkError, Refused};
use crate::segment::{Cause, RankState};

/// The faults of a link.
#[derive(Debug, Clone, Copy, Default)]
pub struct Faults {
    /// Decides all random choices.
    pub seed: u64,
    /// A frame is held back for up to this number of calls of `receive`. Frames of other peers may
    /// overtake it.
    pub delay: u32,
    /// The percentage of reservations that are refused although there may be room.
    pub refuse: u32,
    /// Whether [`Link::frame_limit`] changes from frame to frame, so that senders send frames of
    /// all lengths.
    pub split: bool,
    /// The most frames held back; further frames stay with their senders. `None` means 64.
    pub hold: Option<usize>,
    /// The peer to lose, and the number of frames from and to it after which it is lost.
    pub cut: Option<(u32, u64)>,
    /// The number of calls of `receive` after which the link itself fails for good and receives
    /// nothing more.
    pub fail: Option<u64>,
}

impl Faults {
    /// The most calls of `receive` for which [`Faults::adversary`] holds a frame back.
    pub const DELAY: u32 = 12;

    /// All faults that a link may have and that a program mustn't notice.
    pub fn adversary(seed: u64) -> Faults {
        Faults {
            seed,
            delay: Faults::DELAY,
            refuse: 20,
            split: true,
            hold: None,
            cut: None,
            fail: None,
        }
    }
}

/// A source of random choices, decided by a seed.
pub struct Chance(SmallRng);

impl Chance {
    /// The source of `seed`.
    pub fn new(seed: u64) -> Chance {
        Chance(SmallRng::seed_from_u64(seed))
    }

    /// A number below `below`; 0 if `below` is 0.
    pub fn below(&mut self, below: usize) -> usize {
        self.0.random_range(0..below.max(1))
    }
}

/// A link with faults.
///
/// ```
/// use longshore_transport::{Link, LinkError, Refused, fault::{Faults, Faulty}, sim::Cluster};
///
/// let cluster = Cluster::new(2, 1)?;
/// let mut link = Faulty::new(cluster.link(0)?, Faults { cut: Some((1, 1)), ..Faults::default() });
/// link.reserve(1, 8)?.commit();
/// let refused = link.reserve(1, 8).err();
/// assert!(matches!(refused, Some(Refused::Failed(LinkError::PeerGone { peer: 1, .. }))));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Faulty<L> {
    inner: L,
    faults: Faults,
    random: SmallRng,
    /// The number of calls of `receive`.
    polls: u64,
    /// The number of frames between this rank and the peer to be cut.
    traffic: u64,
    limit: usize,
    held: Vec<VecDeque<Held>>,
    current: Vec<u8>,
    copied: Copied,
    restless: Arc<AtomicBool>,
}

struct Held {
    due: u64,
    bytes: Vec<u8>,
}

impl<L: Link> Faulty<L> {
    /// Wraps `inner` with `faults`.
    pub fn new(inner: L, faults: Faults) -> Self {
        let held = std::iter::repeat_with(VecDeque::new).take(inner.size() as usize).collect();
        let random = SmallRng::seed_from_u64(faults.seed ^ u64::from(inner.rank()) << 32);
        let restless = Arc::new(AtomicBool::new(false));
        let (current, copied, limit) = (Vec::new(), Copied, usize::MAX);
        Self { inner, faults, random, polls: 0, traffic: 0, limit, held, current, copied, restless }
    }

    /// Chooses a new frame limit. Half of the limits are short.
    fn change_limit(&mut self, peer: u32) {
        if self.faults.split {
            let most = self.inner.frame_limit(peer);
            let most = if self.random.random_bool(0.5) { most } else { most.min(4 * SHORTEST) };
            self.limit = self.random.random_range(SHORTEST.min(most)..=most);
        }
    }

    fn is_cut(&self, peer: u32) -> bool {
        self.faults.cut.is_some_and(|(lost, after)| lost == peer && self.traffic >= after)
    }

    fn is_to_be_cut(&self, peer: u32) -> bool {
        self.faults.cut.is_some_and(|(lost, _)| lost == peer)
    }

    /// Takes in the frames that have arrived.
    fn take_in(&mut self) -> Result<(), LinkError> {
        let limit = self.faults.hold.unwrap_or(64).max(1);
        while self.held.iter().map(VecDeque::len).sum::<usize>() < limit {
            let Some(frame) = self.inner.receive()? else { break };
            let (peer, bytes) = (frame.peer(), frame.to_vec());
            drop(frame);
            if self.is_cut(peer) {
                continue;
            }
            self.traffic += u64::from(self.is_to_be_cut(peer));
            let queue = &mut self.held[peer as usize];
            let due = self.polls + u64::from(self.random.random_range(0..=self.faults.delay));
            let due = queue.back().map_or(due, |before| due.max(before.due));
            queue.push_back(Held { due, bytes });
        }
        Ok(())
    }
}

/// The text of the failure that [`Faults::fail`] asks for.
const FAILURE: &str = "the link has failed, as injected";

/// The lowest limit: no link's own limit is lower.
const SHORTEST: usize = 128;

/// Releases nothing: the frame was copied when it arrived.
struct Copied;

impl Consume for Copied {
    fn consume(&mut self) {}
}

impl<L: Link> Link for Faulty<L> {
    fn rank(&self) -> u32 {
        self.inner.rank()
    }

    fn size(&self) -> u32 {
        self.inner.size()
    }

    fn frame_limit(&self, peer: u32) -> usize {
        self.limit.min(self.inner.frame_limit(peer))
    }

    fn piece(&self, peer: u32) -> usize {
        self.limit.min(self.inner.piece(peer))
    }

    fn reserve(&mut self, peer: u32, len: usize) -> Result<FrameMut<'_>, Refused> {
        if self.is_cut(peer) {
            let state = RankState::Dead(Cause::Lost);
            return Err(LinkError::PeerGone { peer, state }.into());
        }
        let refuse = self.random.random_range(0..100) < self.faults.refuse;
        let counts = u64::from(self.is_to_be_cut(peer));
        self.change_limit(peer);
        let frame = self.inner.reserve(peer, len)?;
        if refuse {
            self.restless.store(true, Relaxed);
            return Err(Refused::WouldBlock);
        }
        self.traffic += counts;
        Ok(frame)
    }

    fn receive(&mut self) -> Result<Option<Frame<'_>>, LinkError> {
        self.polls += 1;
        if self.faults.fail.is_some_and(|after| self.polls > after) {
            return Err(LinkError::Fabric(FAILURE.to_owned()));
        }
        self.take_in()?;
        let due = |queue: &VecDeque<Held>| queue.front().is_some_and(|held| held.due <= self.polls);
        let ready: Vec<usize> =
            (0..self.held.len()).filter(|&peer| due(&self.held[peer])).collect();
        self.restless.store(self.held.iter().any(|queue| !queue.is_empty()), Relaxed);
        if ready.is_empty() {
            return Ok(None);
        }
        let peer = ready[self.random.random_range(0..ready.len())];
        let Some(held) = self.held[peer].pop_front() else { return Ok(None) };
        self.current = held.bytes;
        Ok(Some(Frame::new(peer as u32, &self.current, &mut self.copied)))
    }

    fn send_held(&mut self) {
        self.inner.send_held();
    }

    fn give_up(&mut self, peer: u32) {
        self.inner.give_up(peer);
    }

    fn may_speak(&self, peer: u32) -> bool {
        self.inner.may_speak(peer)
            || self.held.get(peer as usize).is_some_and(|held| !held.is_empty())
    }

    fn leave(&mut self) {
        self.inner.leave();
    }

    fn doorbell(&self) -> Arc<dyn Doorbell> {
        Arc::new(Bell { inner: self.inner.doorbell(), restless: self.restless.clone() })
    }
}

/// Sleeps only briefly while frames are held back here, because nobody rings for them.
struct Bell {
    inner: Arc<dyn Doorbell>,
    restless: Arc<AtomicBool>,
}

impl Doorbell for Bell {
    fn arm(&self) {
        self.inner.arm();
    }

    fn disarm(&self) {
        self.inner.disarm();
    }

    fn sleep(&self, at_most: Duration) {
        let restless = self.restless.load(Relaxed);
        self.inner.sleep(if restless { at_most.min(Duration::from_micros(10)) } else { at_most });
    }

    fn pause(&self) {
        self.inner.pause();
    }

    fn ring(&self, peer: u32) -> Result<(), LinkError> {
        self.inner.ring(peer)
    }
}
