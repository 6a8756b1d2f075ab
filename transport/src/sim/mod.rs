//! A simulated job in one process: its links are queues, its ranks share a segment, and its
//! schedule is repeatable.
//!
//! Faults are in [`crate::fault`], which wraps any link.

mod baton;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::link::{Consume, Doorbell, Frame, FrameMut, Link, LinkError, Publish, Refused};
use crate::segment::{Cause, RankState, Segment, SegmentError};
use baton::{Baton, Turn};

/// A simulated job.
///
/// Its links work from any thread. Under [`Cluster::run`] only the rank that holds the *baton*
/// runs. It passes the baton whenever it pauses or sleeps on its doorbell, and a seed decides which
/// rank is next. A seed therefore determines the whole execution.
///
/// ```
/// use longshore_transport::{Link, Refused, sim::Cluster};
///
/// // Each rank sends its number to the next rank.
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
    queues: Mutex<Queues>,
    baton: Baton,
}

/// The frames under way to each rank.
type Queues = Vec<Inbox>;

/// The frames under way to a rank, with a queue for each rank that has sent to it. The queues are
/// in ascending order of the senders, which are few in a large job.
#[derive(Clone, Default)]
struct Inbox(Vec<(u32, VecDeque<Vec<u8>>)>);

impl Inbox {
    #[inline]
    fn place(&self, sender: u32) -> Result<usize, usize> {
        self.0.binary_search_by_key(&sender, |(sender, _)| *sender)
    }

    #[inline]
    fn push(&mut self, sender: u32, frame: Vec<u8>) {
        let at = self.place(sender).unwrap_or_else(|at| {
            self.0.insert(at, (sender, VecDeque::new()));
            at
        });
        self.0[at].1.push_back(frame);
    }

    /// The number of frames from a sender.
    #[inline]
    fn count(&self, sender: u32) -> usize {
        self.place(sender).map_or(0, |at| self.0[at].1.len())
    }

    /// Takes the next frame. Senders take turns, from `first` on.
    #[inline]
    fn pop(&mut self, first: u32) -> Option<(u32, Vec<u8>)> {
        let at = self.place(first).unwrap_or_else(|at| at);
        let (before, after) = self.0.split_at_mut(at);
        let mut queues = after.iter_mut().chain(before);
        queues.find_map(|(sender, queue)| Some((*sender, queue.pop_front()?)))
    }
}

/// The limits of a simulated job.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The longest frame, in bytes.
    pub frame: usize,
    /// The most frames under way between two ranks.
    pub frames: usize,
    /// The simulated time after which [`Cluster::run`] gives up.
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { frame: 4096, frames: 16, time: Duration::from_secs(600) }
    }
}

/// The resources of a rank in a simulated job.
pub struct Seat {
    /// The rank's link.
    pub link: SimLink,
    /// The rank's handle to the segment.
    pub segment: Segment,
}

impl Cluster {
    /// A job of `ranks` ranks with default limits. The seed decides in which order they run.
    ///
    /// # Errors
    /// [`SegmentError::Geometry`] for no rank or too many; [`SegmentError::System`].
    pub fn new(ranks: u32, seed: u64) -> Result<Self, SegmentError> {
        Self::with_limits(ranks, seed, Limits::default())
    }

    /// A job of `ranks` ranks with `limits`. The seed decides in which order they run.
    ///
    /// # Errors
    /// [`SegmentError::Geometry`] for no rank or too many; [`SegmentError::System`].
    pub fn with_limits(ranks: u32, seed: u64, limits: Limits) -> Result<Self, SegmentError> {
        let segment = Segment::without_rings(ranks)?;
        let queues = Mutex::new(vec![Inbox::default(); ranks as usize]);
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

    /// The segment handle of `rank`.
    ///
    /// # Errors
    /// [`LinkError::NoSuchRank`].
    pub fn segment(&self, rank: u32) -> Result<Segment, LinkError> {
        Ok(self.shared.segment.as_rank(rank)?)
    }

    /// The segment handle of the launcher.
    pub fn launcher(&self) -> &Segment {
        &self.shared.segment
    }

    /// The simulated time that has passed: a microsecond a turn, plus the time during which all
    /// ranks slept.
    pub fn now(&self) -> Duration {
        self.shared.baton.now()
    }

    /// Runs `body` once for each rank, each in a thread, one at a time. Returns the results by
    /// rank.
    ///
    /// # Panics
    /// If a rank panics: the first panic is resumed here, and the other ranks see that rank as
    /// dead. If the simulated time is up, which means that the job hangs.
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

/// The longest buffer that is kept from frame to frame.
const STAGING: usize = 4096;

/// The link of a rank in a simulated job.
pub struct SimLink {
    wire: Wire,
    /// The peer whose queue is checked first.
    next: u32,
    staging: Vec<u8>,
    current: Vec<u8>,
}

/// The sending and consuming side of a link's frames.
struct Wire {
    shared: Arc<Shared>,
    rank: u32,
    /// The receiver of the frame being written.
    peer: u32,
}

impl Wire {
    #[inline]
    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.shared.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Publish for Wire {
    fn publish(&mut self, bytes: &[u8]) {
        self.queues()[self.peer as usize].push(self.rank, bytes.to_vec());
        let _ = self.shared.segment.ring(self.peer);
    }
}

/// Releases nothing: the frame was taken from the queue when it was received.
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
        let under_way = self.wire.queues()[peer as usize].count(self.wire.rank);
        if under_way >= frames {
            return Err(Refused::WouldBlock);
        }
        self.wire.peer = peer;
        // The memory of a long frame isn't kept: it would count as the rank's.
        self.staging.truncate(len);
        self.staging.shrink_to(STAGING.max(len));
        self.staging.resize(len, 0);
        Ok(FrameMut::new(&mut self.staging, &mut self.wire))
    }

    fn receive(&mut self) -> Result<Option<Frame<'_>>, LinkError> {
        let size = self.size();
        let found = self.wire.queues()[self.wire.rank as usize].pop(self.next);
        let Some((peer, bytes)) = found else { return Ok(None) };
        self.next = (peer + 1) % size;
        self.current = bytes;
        let _ = self.wire.shared.segment.ring(peer); // There is room again.
        Ok(Some(Frame::new(peer, &self.current, &mut self.wire)))
    }

    fn doorbell(&self) -> Arc<dyn Doorbell> {
        Arc::new(Bell { shared: self.wire.shared.clone(), rank: self.wire.rank })
    }
}

/// The segment's own bell, with sleep in simulated time.
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

/// Marks a rank whose thread panicked as dead, so that the other ranks don't wait for it.
fn bury(segment: &Segment, rank: u32) {
    segment.mark(rank, RankState::Dead(Cause::Lost));
}
