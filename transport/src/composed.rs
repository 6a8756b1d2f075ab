//! Two links as one: each peer is reached by one of them.

use std::sync::Arc;

use crate::link::{Doorbell, Frame, FrameMut, Link, LinkError, Refused};
use crate::rdma::Rdma;

/// A link to peers near by, on this host, and one to those further away.
///
/// The far link's doorbell has to hear those near by as well: `fabric::FabricLink`'s does, as the segment's
/// own bell with a thread that rings it.
pub struct Composed<N, F> {
    near: N,
    far: F,
    is_near: Box<[bool]>,
    /// Which is asked first: they take turns.
    far_first: bool,
}

impl<N: Link, F: Link> Composed<N, F> {
    /// Rank r is reached by `near` where `is_near[r]`, else by `far`; this rank itself is near.
    ///
    /// # Panics
    /// If the two aren't of one rank and job, or `is_near` isn't of all its ranks.
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
            Err(error @ LinkError::Corrupt { .. }) => Err(error),
            // One that has failed says so again: whoever the other reaches is served.
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
