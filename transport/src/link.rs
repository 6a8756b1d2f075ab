//! The trait that every transport implements, and what passes through it.

use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::rdma::Rdma;
use crate::segment::RankState;

/// Reliable, ordered frames between this rank and each of its peers, itself included.
///
/// A frame is written and read in place. Nothing here blocks: a link that has no room says [`Refused::WouldBlock`], and
/// whoever wants to sleep does so on the [`Doorbell`], outside of any lock that guards the link.
///
/// What was committed travels at once, or while its sender calls the link: who waits for what a frame does elsewhere keeps
/// calling [`receive`](Link::receive), as who waits for a frame does.
///
/// The four kinds of method: getters are [`rank`](Link::rank), [`size`](Link::size), [`frame_limit`](Link::frame_limit),
/// [`piece`](Link::piece), [`may_speak`](Link::may_speak), [`doorbell`](Link::doorbell) and [`rdma`](Link::rdma); [`reserve`](Link::reserve) sends, and
/// [`send_held`](Link::send_held) before a pause what it held back; [`receive`](Link::receive) is polled,
/// [`is_quiet`](Link::is_quiet) in between, and [`is_spent`](Link::is_spent) behind a frame; and [`give_up`](Link::give_up) and
/// [`leave`](Link::leave) end it, with one peer and with all.
///
/// ```
/// use longshore_transport::{Link, sim::Cluster};
///
/// let cluster = Cluster::new(2, 7)?;
/// let (mut left, mut right) = (cluster.link(0)?, cluster.link(1)?);
/// let mut frame = left.reserve(1, 5)?;
/// frame.copy_from_slice(b"hello");
/// frame.commit();
/// let frame = right.receive()?.unwrap();
/// assert_eq!((frame.peer(), &*frame), (0, &b"hello"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Link: Send {
    /// This rank.
    fn rank(&self) -> u32;

    /// How many ranks the job has.
    fn size(&self) -> u32;

    /// The longest frame to `peer`, in bytes, that [`reserve`](Link::reserve) accepts, at least until its next call.
    fn frame_limit(&self, peer: u32) -> usize;

    /// How much of data that its sender packs, and its receiver unpacks, best goes in each of several frames to `peer`: one is
    /// unpacked while the next is packed. At most [`frame_limit`](Link::frame_limit).
    fn piece(&self, peer: u32) -> usize {
        self.frame_limit(peer)
    }

    /// Room for a frame of `len` bytes to `peer`. What the frame holds at first is unspecified. Nothing is sent before
    /// [`FrameMut::commit`]; a frame dropped without it was never there.
    ///
    /// # Errors
    /// [`Refused::WouldBlock`] while the peer has not made room; [`Refused::Failed`] when it never will.
    fn reserve(&mut self, peer: u32, len: usize) -> Result<FrameMut<'_>, Refused>;

    /// The next frame that has arrived, if any, in order per peer. It is consumed when it is dropped.
    ///
    /// Frames that a peer sent before it died still arrive.
    ///
    /// # Errors
    /// [`LinkError::Corrupt`] when a peer wrote what no peer writes; what it sends afterwards is ignored. [`LinkError::Memory`] or
    /// [`LinkError::Fabric`] when the link itself has failed, for good: each call says so that finds no frame.
    fn receive(&mut self) -> Result<Option<Frame<'_>>, LinkError>;

    /// Whether a glance of a few nanoseconds shows that [`receive`](Link::receive) would find nothing. False where it takes
    /// more to know.
    fn is_quiet(&mut self) -> bool {
        false
    }

    /// Whether [`receive`](Link::receive) would have to ask the system for more, or a glance shows none: who has taken a frame
    /// answers it before.
    fn is_spent(&mut self) -> bool {
        false
    }

    /// Sends what is held for company. Whoever may look no more for a while calls it behind what moved.
    fn send_held(&mut self) {}

    /// This rank takes a peer for dead: sends it nothing more, and may hear nothing more of it. A peer that lives after all gets to
    /// know so, where the link can tell it; nothing where peers see what the job knows of them.
    fn give_up(&mut self, peer: u32) {
        let _ = peer;
    }

    /// Whether more may come of a peer that the job knows to have finalized: the news may be faster than its last frames. Good for
    /// a time at which [`receive`](Link::receive) finds nothing.
    fn may_speak(&self, peer: u32) -> bool {
        let _ = peer;
        false
    }

    /// Says to all peers what the job knows of this rank's end, behind all that was committed, and waits as long as they take
    /// it. The last call on a link, once the rank is marked as finalized or dead; nothing where peers see that mark.
    fn leave(&mut self) {}

    /// What this rank sleeps on: a handle that outlives any lock around the link.
    fn doorbell(&self) -> Arc<dyn Doorbell>;

    /// Direct access to the memory of peers, where the link has it: a handle that outlives any lock around the link.
    fn rdma(&self) -> Option<Arc<dyn Rdma>> {
        None
    }
}

impl<L: Link + ?Sized> Link for Box<L> {
    fn rank(&self) -> u32 {
        (**self).rank()
    }

    fn size(&self) -> u32 {
        (**self).size()
    }

    fn frame_limit(&self, peer: u32) -> usize {
        (**self).frame_limit(peer)
    }

    fn piece(&self, peer: u32) -> usize {
        (**self).piece(peer)
    }

    fn reserve(&mut self, peer: u32, len: usize) -> Result<FrameMut<'_>, Refused> {
        (**self).reserve(peer, len)
    }

    fn receive(&mut self) -> Result<Option<Frame<'_>>, LinkError> {
        (**self).receive()
    }

    fn is_quiet(&mut self) -> bool {
        (**self).is_quiet()
    }

    fn is_spent(&mut self) -> bool {
        (**self).is_spent()
    }

    fn send_held(&mut self) {
        (**self).send_held();
    }

    fn give_up(&mut self, peer: u32) {
        (**self).give_up(peer);
    }

    fn may_speak(&self, peer: u32) -> bool {
        (**self).may_speak(peer)
    }

    fn leave(&mut self) {
        (**self).leave();
    }

    fn doorbell(&self) -> Arc<dyn Doorbell> {
        (**self).doorbell()
    }

    fn rdma(&self) -> Option<Arc<dyn Rdma>> {
        (**self).rdma()
    }
}

/// What a rank sleeps on until a peer sends it a frame, makes room for one, rings it, or dies.
///
/// To sleep: [`arm`](Doorbell::arm); look once more whether there is anything to do; if not, [`sleep`](Doorbell::sleep);
/// then [`disarm`](Doorbell::disarm). What happens after `arm` either is seen by that look or ends the sleep. Several
/// threads of a rank may sleep at the same time: one ring wakes them all.
pub trait Doorbell: Send + Sync {
    /// From here on peers ring. A full barrier: loads after it are not older than it.
    fn arm(&self);

    /// As [`arm`](Doorbell::arm), but frames that are [answers](FrameMut::commit_answer) needn't ring. True if they don't.
    /// A request may ring late, by less than a millisecond, where to be awake for it costs the calls that this rank makes.
    fn arm_for_requests(&self) -> bool {
        self.arm();
        false
    }

    /// From here on peers need not ring.
    fn disarm(&self);

    /// Sleeps until the bell rings, at most for `at_most` and at most for 100 ms; returns at once if it has rung since
    /// it was armed. May also return early.
    fn sleep(&self, at_most: Duration);

    /// One turn of a spin loop: lets whoever else wants to run do so. Every wait that neither sleeps nor returns calls
    /// it, or a simulated job stands still.
    fn pause(&self);

    /// Wakes `peer` if it sleeps on its doorbell, although no frame was sent to it (a committed frame does so by
    /// itself). A full barrier: what was written before is seen by whoever wakes, and by whoever armed too late to.
    ///
    /// # Errors
    /// [`LinkError::NoSuchRank`].
    fn ring(&self, peer: u32) -> Result<(), LinkError>;
}

/// A frame being written. It is sent by [`commit`](FrameMut::commit), and forgotten when dropped without.
pub struct FrameMut<'a> {
    bytes: &'a mut [u8],
    publish: &'a mut dyn Publish,
}

/// What a link does with a frame once it is written. Implemented by links only.
pub trait Publish {
    /// Sends what was written, `bytes` being the part that counts of what was reserved.
    fn publish(&mut self, bytes: &[u8]);

    /// The same for an answer.
    fn publish_answer(&mut self, bytes: &[u8]) {
        self.publish(bytes);
    }

    /// The same for a frame that may wait for others.
    fn publish_lazily(&mut self, bytes: &[u8]) {
        self.publish(bytes);
    }
}

impl<'a> FrameMut<'a> {
    /// A frame over `bytes`, which `publish` sends.
    pub fn new(bytes: &'a mut [u8], publish: &'a mut dyn Publish) -> Self {
        Self { bytes, publish }
    }

    /// Sends the whole frame.
    pub fn commit(self) {
        self.publish.publish(self.bytes);
    }

    /// Sends the whole frame, which only a call that waits needs to see: it doesn't ring who is
    /// [armed for requests](Doorbell::arm_for_requests). While other answers may follow, it may go with them, as one that is
    /// [committed lazily](FrameMut::commit_lazily).
    pub fn commit_answer(self) {
        self.publish.publish_answer(self.bytes);
    }

    /// Sends the whole frame, at the latest when its sender finds by [`receive`](Link::receive) that nothing has arrived, or
    /// [sends what is held](Link::send_held): with others, where each would cost a call of the system.
    pub fn commit_lazily(self) {
        self.publish.publish_lazily(self.bytes);
    }

    /// Sends the first `len` bytes.
    ///
    /// # Panics
    /// If `len` is more than was reserved.
    pub fn commit_part(self, len: usize) {
        self.publish.publish(&self.bytes[..len]);
    }
}

impl std::ops::Deref for FrameMut<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

impl std::ops::DerefMut for FrameMut<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.bytes
    }
}

/// A frame that has arrived, in place. Dropping it gives its room back to the sender.
pub struct Frame<'a> {
    peer: u32,
    bytes: &'a [u8],
    consume: &'a mut dyn Consume,
}

/// What a link does once a frame has been read. Implemented by links only.
pub trait Consume {
    /// Gives the frame's room back.
    fn consume(&mut self);
}

impl<'a> Frame<'a> {
    /// A frame from `peer` in `bytes`, which `consume` takes back.
    pub fn new(peer: u32, bytes: &'a [u8], consume: &'a mut dyn Consume) -> Self {
        Self { peer, bytes, consume }
    }

    /// Who sent it.
    pub fn peer(&self) -> u32 {
        self.peer
    }
}

impl std::ops::Deref for Frame<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

impl Drop for Frame<'_> {
    fn drop(&mut self) {
        self.consume.consume();
    }
}

/// Why a link has no room for a frame.
#[derive(Debug, Error)]
pub enum Refused {
    /// The peer has not read enough of what was sent before, or isn't reached yet: receive, then try again.
    #[error("no room for the frame yet")]
    WouldBlock,
    /// It would never be sent.
    #[error(transparent)]
    Failed(#[from] LinkError),
}

/// What goes wrong on a link for good.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LinkError {
    /// The peer receives nothing any more.
    #[error("rank {peer} is gone: {state}")]
    PeerGone {
        /// The peer.
        peer: u32,
        /// What the job knows of it.
        state: RankState,
    },
    /// A frame above the link's limit: what is longer goes in several.
    #[error("a frame of {len} bytes is above the link's limit of {limit}")]
    TooLong {
        /// The length asked for.
        len: usize,
        /// The link's limit.
        limit: usize,
    },
    /// A rank outside of the job.
    #[error("no rank {rank} in a job of {size}")]
    NoSuchRank {
        /// The rank asked for.
        rank: u32,
        /// The size of the job.
        size: u32,
    },
    /// A peer wrote what no peer of this version writes.
    #[error("rank {peer} sent what cannot be: {what}")]
    Corrupt {
        /// The peer.
        peer: u32,
        /// What was found.
        what: String,
    },
    /// The shared memory behind the link failed.
    #[error("shared memory: {0}")]
    Memory(String),
    /// The network behind the link failed: provider, call and peer are in the text.
    #[error("{0}")]
    Fabric(String),
}
