//! The trait that every transport implements, with its frames and doorbells.

use std::sync::Arc;
use std::time::Duration;

pub use crate::error::{LinkError, Refused};
use crate::rdma::Rdma;

/// Reliable, ordered frames between this rank and each of its peers, itself included.
///
/// Frames are written and read in place. No method blocks, except [`leave`](Link::leave): a link
/// without room returns [`Refused::WouldBlock`]. A thread that wants to sleep uses the
/// [`Doorbell`], outside of any lock that guards the link.
///
/// A committed frame travels at once, or during later calls on the sender's link. A rank that waits
/// for the effect of a frame elsewhere must therefore keep calling [`receive`](Link::receive), as
/// it would to wait for a frame.
///
/// The methods are of four kinds:
///
/// - Getters: [`rank`](Link::rank), [`size`](Link::size), [`frame_limit`](Link::frame_limit),
///   [`piece`](Link::piece), [`may_speak`](Link::may_speak), [`doorbell`](Link::doorbell) and
///   [`rdma`](Link::rdma).
/// - Sending: [`reserve`](Link::reserve), and [`send_held`](Link::send_held) before a pause.
/// - Polling: [`receive`](Link::receive), and the cheap tests [`is_quiet`](Link::is_quiet) and
///   [`is_spent`](Link::is_spent).
/// - Ending: [`give_up`](Link::give_up) for one peer, and [`leave`](Link::leave) for all.
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

    /// The number of ranks in the job.
    fn size(&self) -> u32;

    /// The longest frame to `peer`, in bytes, that [`reserve`](Link::reserve) accepts. It holds at
    /// least until the next call of `reserve`.
    fn frame_limit(&self, peer: u32) -> usize;

    /// The best payload per frame, in bytes, for data that is packed and unpacked on the way to
    /// `peer`. The receiver unpacks one frame while the sender packs the next. At most
    /// [`frame_limit`](Link::frame_limit).
    fn piece(&self, peer: u32) -> usize {
        self.frame_limit(peer)
    }

    /// Reserves room for a frame of `len` bytes to `peer`. Its initial content is unspecified.
    /// Nothing is sent before [`FrameMut::commit`]; a frame dropped without a commit is discarded.
    ///
    /// # Errors
    /// [`Refused::WouldBlock`] while the peer has not made room; [`Refused::Failed`] when it never
    /// will.
    fn reserve(&mut self, peer: u32, len: usize) -> Result<FrameMut<'_>, Refused>;

    /// The next frame that has arrived, if any, in order per peer. Dropping the frame consumes it.
    ///
    /// Frames that a peer sent before it died still arrive.
    ///
    /// # Errors
    /// [`LinkError::Corrupt`] when a peer broke the protocol, and [`LinkError::Connection`] when no
    /// connection with a peer could be made, or when an encrypted one has ended; the peer's later
    /// frames are ignored.
    /// [`LinkError::Memory`] or [`LinkError::Fabric`] when the link itself has failed for good.
    /// After that, every call without a frame to return repeats the error.
    fn receive(&mut self) -> Result<Option<Frame<'_>>, LinkError>;

    /// Whether a test of a few nanoseconds shows that [`receive`](Link::receive) would find
    /// nothing. Returns `false` when only a longer test can decide.
    fn is_quiet(&mut self) -> bool {
        false
    }

    /// Whether [`receive`](Link::receive) would have to make a system call, or a test of a few
    /// nanoseconds shows no frame. The caller then answers the frame in hand before it polls again.
    fn is_spent(&mut self) -> bool {
        false
    }

    /// Sends the frames that the link holds back to combine them with others. Call this before a
    /// pause.
    fn send_held(&mut self) {}

    /// Treats a peer as dead: this rank sends nothing more to it, and may ignore its later frames.
    /// Where the link can notify the peer, the peer learns of it. Links whose peers see the job's
    /// state do nothing.
    fn give_up(&mut self, peer: u32) {
        let _ = peer;
    }

    /// Whether more frames may come from a peer that the job knows to have finalized. That news may
    /// arrive before the peer's last frames. The result holds only right after
    /// [`receive`](Link::receive) found nothing.
    fn may_speak(&self, peer: u32) -> bool {
        let _ = peer;
        false
    }

    /// Announces the end of this rank to all peers, after all committed frames. Waits until the
    /// peers have taken both.
    ///
    /// This is the last call on a link, once the job's state marks the rank as finalized or dead.
    /// Links whose peers see that mark do nothing.
    fn leave(&mut self) {}

    /// The doorbell on which this rank sleeps: a handle that outlives any lock around the link.
    fn doorbell(&self) -> Arc<dyn Doorbell>;

    /// Remote memory access, if the link has it: a handle that outlives any lock around the link.
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

/// Puts a rank to sleep until a peer sends it a frame, makes room for one, rings it, or dies.
///
/// To sleep:
///
/// 1. [`arm`](Doorbell::arm) the bell.
/// 2. Check again whether there is work. Skip the sleep if there is.
/// 3. [`sleep`](Doorbell::sleep).
/// 4. [`disarm`](Doorbell::disarm) the bell.
///
/// An event after step 1 is either seen in step 2 or ends the sleep. Several threads of a rank may
/// sleep at the same time: one ring wakes all of them.
pub trait Doorbell: Send + Sync {
    /// Asks peers to ring from now on. A full barrier: later loads are not older than it.
    fn arm(&self);

    /// Arms the bell, as [`arm`](Doorbell::arm) does, and lets [answers](FrameMut::commit_answer)
    /// arrive without ringing it. Returns whether answers then don't ring.
    ///
    /// A request may ring late, by less than a millisecond, on a link where immediate wake-ups
    /// would slow down this rank's own calls.
    fn arm_for_requests(&self) -> bool {
        self.arm();
        false
    }

    /// Tells peers that they need not ring from now on.
    fn disarm(&self);

    /// Sleeps until the bell rings, for at most `at_most` and at most 100 ms. Returns at once if
    /// the bell has rung since it was armed. May return early.
    fn sleep(&self, at_most: Duration);

    /// One turn of a spin loop: lets other threads run. Every wait that neither sleeps nor returns
    /// must call it; otherwise a simulated job stands still.
    fn pause(&self);

    /// Wakes `peer` if it sleeps on its doorbell, without a frame. (A committed frame rings by
    /// itself.)
    ///
    /// A full barrier: a peer that wakes sees all earlier writes of this rank, and so does a peer
    /// that armed its bell too late to be rung.
    ///
    /// # Errors
    /// [`LinkError::NoSuchRank`].
    fn ring(&self, peer: u32) -> Result<(), LinkError>;
}

/// A frame being written. [`commit`](FrameMut::commit) sends it; dropping it discards it.
pub struct FrameMut<'a> {
    bytes: &'a mut [u8],
    publish: &'a mut dyn Publish,
}

/// Sends a written frame. Only links implement it.
pub trait Publish {
    /// Sends `bytes`, the used part of the reserved frame.
    fn publish(&mut self, bytes: &[u8]);

    /// Sends `bytes` as an answer: see [`FrameMut::commit_answer`].
    fn publish_answer(&mut self, bytes: &[u8]) {
        self.publish(bytes);
    }

    /// Sends `bytes`, which may wait for further frames: see [`FrameMut::commit_lazily`].
    fn publish_lazily(&mut self, bytes: &[u8]) {
        self.publish(bytes);
    }
}

impl<'a> FrameMut<'a> {
    /// A frame over `bytes`, to be sent by `publish`.
    #[inline]
    pub fn new(bytes: &'a mut [u8], publish: &'a mut dyn Publish) -> Self {
        Self { bytes, publish }
    }

    /// Sends the whole frame.
    #[inline]
    pub fn commit(self) {
        self.publish.publish(self.bytes);
    }

    /// Sends the whole frame as an answer, which only a blocked call needs to see. It doesn't ring
    /// a peer that is [armed for requests](Doorbell::arm_for_requests).
    ///
    /// While other answers may follow, the link may hold the frame back and send them together, as
    /// it does for a frame that is [committed lazily](FrameMut::commit_lazily).
    #[inline]
    pub fn commit_answer(self) {
        self.publish.publish_answer(self.bytes);
    }

    /// Sends the whole frame, perhaps later and together with others, where each would cost a
    /// system call. It leaves at the latest when [`receive`](Link::receive) finds nothing, or when
    /// the rank calls [`send_held`](Link::send_held).
    #[inline]
    pub fn commit_lazily(self) {
        self.publish.publish_lazily(self.bytes);
    }

    /// Sends the first `len` bytes of the frame.
    ///
    /// # Panics
    /// If `len` is larger than the reserved length.
    #[inline]
    pub fn commit_part(self, len: usize) {
        self.publish.publish(&self.bytes[..len]);
    }
}

impl std::ops::Deref for FrameMut<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

impl std::ops::DerefMut for FrameMut<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        self.bytes
    }
}

/// A received frame, in place. Dropping it gives its room back to the sender.
pub struct Frame<'a> {
    peer: u32,
    bytes: &'a [u8],
    consume: &'a mut dyn Consume,
}

/// Releases a frame that was read. Only links implement it.
pub trait Consume {
    /// Gives the frame's room back.
    fn consume(&mut self);
}

impl<'a> Frame<'a> {
    /// A frame from `peer` in `bytes`, to be released by `consume`.
    #[inline]
    pub fn new(peer: u32, bytes: &'a [u8], consume: &'a mut dyn Consume) -> Self {
        Self { peer, bytes, consume }
    }

    /// The rank that sent the frame.
    #[inline]
    pub fn peer(&self) -> u32 {
        self.peer
    }
}

impl std::ops::Deref for Frame<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

impl Drop for Frame<'_> {
    #[inline]
    fn drop(&mut self) {
        self.consume.consume();
    }
}
