//! A job in one process: queues for links, a segment that all ranks share, and a baton that makes runs repeatable.
//!
//! Faults are not here but in [`crate::fault`], which decorates any link.

mod baton;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::link::{Consume, Doorbell, Frame, FrameMut, Link, LinkError, Publish, Refused};
use crate::segment::{Cause, RankState, Segment, SegmentError};
use baton::{Baton, Turn};

/// A simulated job.
///
/// Its links work from any thread. Under [`Cluster::run`] one rank runs at a time: it passes the baton whenever it
/// pauses or sleeps on its doorbell, and a seed decides who is next, so that a seed is a run.
///
/// ```
/// use longshore_transport::{Link, Refused, sim::Cluster};
///
/// // Everyone sends its rank to the next one.
/// let sums = Cluster::new(4, 1)?.run(|mut seat| {
///     let rank = seat.link.rank();
///     let mut frame = seat.link.reserve((rank + 1) % 4, 1).unwrap();
///     frame[0] = rank as u8;
///     frame.commit();
///     let doorbell = seat.link.doorbell();
///     loop {
///         if let Some(frame) = seat.link.receive().unwrap() {
///             return frame[0];
///         }
///         doorbell.pause();
///     }
/// });
/// assert_eq!(sums, [3, 0, 1, 2]);
/// # Ok::<(), longshore_transport::SegmentError>(())
/// ```
#[derive(Clone)]
pub struct Cluster {
    shared: Arc<Shared>,
}

struct Shared {
    segment: Segment,
    limits: Limits,
    /// What is under way, by receiver, then sender.
    queues: Mutex<Vec<Vec<VecDeque<Vec<u8>>>>>,
    baton: Baton,
}

/// What a simulated link holds.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The longest frame, in bytes.
    pub frame: usize,
    /// Frames under way between two ranks, at most.
    pub frames: usize,
    /// After how much simulated time [`Cluster::run`] gives up.
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { frame: 4096, frames: 16, time: Duration::from_secs(600) }
    }
}

/// What a rank of a simulated job gets.
pub struct Seat {
    /// Its link.
    pub link: SimLink,
    /// Its handle of the segment.
    pub segment: Segment,
}

impl Cluster {
    /// A job of `ranks` ranks. The seed decides in which order they run.
    ///
    /// # Errors
    /// [`SegmentError::Geometry`] for no rank or too many; [`SegmentError::System`].
    pub fn new(ranks: u32, seed: u64) -> Result<Self, SegmentError> {
        Self::with_limits(ranks, seed, Limits::default())
    }

    /// Likewise, with links of these limits.
    ///
    /// # Errors
    /// As [`Cluster::new`].
    pub fn with_limits(ranks: u32, seed: u64, limits: Limits) -> Result<Self, SegmentError> {
        let segment = Segment::create(ranks)?;
        let row = || std::iter::repeat_with(VecDeque::new).take(ranks as usize).collect();
        let queues = Mutex::new(std::iter::repeat_with(row).take(ranks as usize).collect());
        let baton = Baton::new(ranks, seed, limits.time);
        Ok(Self { shared: Arc::new(Shared { segment, limits, queues, baton }) })
    }

    /// The link of `rank`.
    ///
    /// # Errors
    /// [`LinkError::NoSuchRank`].
    pub fn link(&self, rank: u32) -> Result<SimLink, LinkError> {
        self.segment(rank)?;
        let wire = Wire { shared: self.shared.clone(), rank, peer: rank };
        Ok(SimLink { wire, next: 0, staging: Vec::new(), current: Vec::new() })
    }

    /// The segment, as `rank` sees it.
    ///
    /// # Errors
    /// [`LinkError::NoSuchRank`].
    pub fn segment(&self, rank: u32) -> Result<Segment, LinkError> {
        Ok(self.shared.segment.as_rank(rank)?)
    }

    /// The segment, as the launcher sees it.
    pub fn launcher(&self) -> &Segment {
        &self.shared.segment
    }

    /// How much simulated time has passed: a microsecond a turn, and what all have slept through together.
    pub fn now(&self) -> Duration {
        self.shared.baton.now()
    }

    /// Runs `body` once for each rank, in a thread each, one at a time; what each returned, by rank.
    ///
    /// # Panics
    /// When a rank does: the first one's panic goes on here, and the others find that rank dead. When simulated time is
    /// up, which is what a job that hangs comes to.
    pub fn run<T: Send>(&self, body: impl Fn(Seat) -> T + Sync) -> Vec<T> {
        let outcomes: Vec<_> = std::thread::scope(|scope| {
            let start = |rank| {
                let body = &body;
                scope.spawn(move || {
                    let _seated = self.shared.baton.join(rank, &self.shared.segment);
                    let seat = Seat {
                        link: self.link(rank).expect("a rank of the job"),
                        segment: self.segment(rank).expect("a rank of the job"),
                    };
                    body(seat)
                })
            };
            let threads: Vec<_> = (0..self.shared.segment.size()).map(start).collect();
            threads.into_iter().map(|thread| thread.join()).collect()
        });
        let first = self.shared.baton.first_panic();
        let mut results = Vec::new();
        let mut panic = None;
        for (rank, outcome) in outcomes.into_iter().enumerate() {
            match outcome {
                Ok(value) => results.push(value),
                Err(cause) if panic.is_none() || first == Some(rank as u32) => panic = Some(cause),
                Err(_) => {}
            }
        }
        if let Some(cause) = panic {
            std::panic::resume_unwind(cause);
        }
        results
    }
}

/// A rank's link in a simulated job.
pub struct SimLink {
    wire: Wire,
    /// The peer to look at first.
    next: u32,
    staging: Vec<u8>,
    current: Vec<u8>,
}

/// Where a link's frames go.
struct Wire {
    shared: Arc<Shared>,
    rank: u32,
    /// Whom the frame being written is for.
    peer: u32,
}

impl Wire {
    fn queues(&self) -> MutexGuard<'_, Vec<Vec<VecDeque<Vec<u8>>>>> {
        self.shared.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Publish for Wire {
    fn publish(&mut self, bytes: &[u8]) {
        self.queues()[self.peer as usize][self.rank as usize].push_back(bytes.to_vec());
        let _ = self.shared.segment.ring(self.peer);
    }
}

/// The queue has forgotten the frame already.
impl Consume for Wire {
    fn consume(&mut self) {}
}

impl Link for SimLink {
    fn rank(&self) -> u32 {
        self.wire.rank
    }

    fn size(&self) -> u32 {
        self.wire.shared.segment.size()
    }

    fn frame_limit(&self, _: u32) -> usize {
        self.wire.shared.limits.frame
    }

    fn reserve(&mut self, peer: u32, len: usize) -> Result<FrameMut<'_>, Refused> {
        let Limits { frame: limit, frames, .. } = self.wire.shared.limits;
        if len > limit {
            return Err(LinkError::TooLong { len, limit }.into());
        }
        let size = self.size();
        if peer >= size {
            return Err(LinkError::NoSuchRank { rank: peer, size }.into());
        }
        let state = self.wire.shared.segment.rank_state(peer);
        if state.is_gone() {
            return Err(LinkError::PeerGone { peer, state }.into());
        }
        if self.wire.queues()[peer as usize][self.wire.rank as usize].len() >= frames {
            return Err(Refused::WouldBlock);
        }
        self.wire.peer = peer;
        self.staging.resize(len, 0);
        Ok(FrameMut::new(&mut self.staging, &mut self.wire))
    }

    fn receive(&mut self) -> Result<Option<Frame<'_>>, LinkError> {
        let size = self.size();
        let mut queues = self.wire.queues();
        let queues_here = &mut queues[self.wire.rank as usize];
        let order = (self.next..size).chain(0..self.next);
        let found = order.into_iter().find_map(|peer| {
            let bytes = queues_here[peer as usize].pop_front()?;
            Some((peer, bytes))
        });
        drop(queues);
        let Some((peer, bytes)) = found else { return Ok(None) };
        self.next = (peer + 1) % size;
        self.current = bytes;
        let _ = self.wire.shared.segment.ring(peer); // there is room again
        Ok(Some(Frame::new(peer, &self.current, &mut self.wire)))
    }

    fn doorbell(&self) -> Arc<dyn Doorbell> {
        Arc::new(Bell { shared: self.wire.shared.clone(), rank: self.wire.rank })
    }
}

/// The bell is the segment's own; only the sleeping differs.
struct Bell {
    shared: Arc<Shared>,
    rank: u32,
}

impl Doorbell for Bell {
    fn arm(&self) {
        self.shared.segment.arm(self.rank);
    }

    fn disarm(&self) {
        self.shared.segment.disarm(self.rank);
    }

    fn sleep(&self, at_most: Duration) {
        let at_most = at_most.min(crate::futex::LONGEST_SLEEP);
        if !self.shared.baton.pass(self.rank, Turn::Sleeping(at_most), &self.shared.segment) {
            self.shared.segment.sleep(self.rank, at_most);
        }
    }

    fn pause(&self) {
        if !self.shared.baton.pass(self.rank, Turn::Ready, &self.shared.segment) {
            std::thread::yield_now();
        }
    }

    fn ring(&self, peer: u32) -> Result<(), LinkError> {
        Ok(self.shared.segment.ring(peer)?)
    }
}

/// Marks a rank whose thread panicked as dead, so that the others don't wait for it.
fn bury(segment: &Segment, rank: u32) {
    segment.mark(rank, RankState::Dead(Cause::Lost));
}
