//! One link made of two: each peer is reached by one of them.

use std::sync::Arc;

use crate::link::{Doorbell, Frame, FrameMut, Link, LinkError, Refused};
use crate::rdma::Rdma;

/// A link to peers on this host, called near, and a link to all other peers, called far.
///
/// The far link's doorbell must also ring for near peers. The doorbell of `fabric::FabricLink`
/// does: it is the segment's own bell, which a thread rings for the network.
pub struct Composed<N, F> {
    near: N,
    far: F,
    is_near: Box<[bool]>,
    /// Whether the far link is polled first. The links take turns.
    far_first: bool,
}

impl<N: Link, F: Link> Composed<N, F> {
    /// Reaches rank r through `near` if `is_near[r]`, and otherwise through `far`. This rank itself
    /// is near.
    ///
    /// # Panics
    /// If the two links differ in rank or job size, or if `is_near` doesn't have an entry for each
    /// rank.
    pub fn new(near: N, far: F, is_near: Vec<bool>) -> Self {
        assert_eq!((near.rank(), near.size()), (far.rank(), far.size()), "links of two jobs");
        assert_eq!(is_near.len(), near.size() as usize, "a link for each rank");
        Self { near, far, is_near: is_near.into(), far_first: false }
    }

    fn is_far(&self, peer: u32) -> bool {
        self.is_near.get(peer as usize) == Some(&false)
    }
}

impl<N: Link, F: Link> Link for Composed<N, F> {
    fn rank(&self) -> u32 {
        self.near.rank()
    }

    fn size(&self) -> u32 {
        self.near.size()
    }

    fn frame_limit(&self, peer: u32) -> usize {
        if self.is_far(peer) { self.far.frame_limit(peer) } else { self.near.frame_limit(peer) }
    }

    fn piece(&self, peer: u32) -> usize {
        if self.is_far(peer) { self.far.piece(peer) } else { self.near.piece(peer) }
    }

    fn reserve(&mut self, peer: u32, len: usize) -> Result<FrameMut<'_>, Refused> {
        if self.is_far(peer) { self.far.reserve(peer, len) } else { self.near.reserve(peer, len) }
    }

    fn receive(&mut self) -> Result<Option<Frame<'_>>, LinkError> {
        self.far_first = !self.far_first;
        let Self { near, far, far_first, .. } = self;
        let (first, second): (&mut dyn Link, &mut dyn Link) =
            if *far_first { (far, near) } else { (near, far) };
        match first.receive() {
            Ok(Some(frame)) => Ok(Some(frame)),
            Ok(None) => second.receive(),
            Err(error @ (LinkError::Corrupt { .. } | LinkError::Connection { .. })) => Err(error),
            // A failed link repeats its error later. Meanwhile the peers of the other link are
            // served.
            Err(error) => match second.receive() {
                Ok(None) => Err(error),
                other => other,
            },
        }
    }

    fn is_spent(&mut self) -> bool {
        self.near.is_quiet() && self.far.is_spent()
    }

    fn send_held(&mut self) {
        self.near.send_held();
        self.far.send_held();
    }

    fn give_up(&mut self, peer: u32) {
        if self.is_far(peer) { self.far.give_up(peer) } else { self.near.give_up(peer) }
    }

    fn may_speak(&self, peer: u32) -> bool {
        if self.is_far(peer) { self.far.may_speak(peer) } else { self.near.may_speak(peer) }
    }

    fn leave(&mut self) {
        self.near.leave();
        self.far.leave();
    }

    fn doorbell(&self) -> Arc<dyn Doorbell> {
        self.far.doorbell()
    }

    fn rdma(&self) -> Option<Arc<dyn Rdma>> {
        self.far.rdma()
    }
}
