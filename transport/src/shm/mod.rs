//! A link through rings in the segment: one ring for each ordered pair of ranks, mapped on first
//! use.
//!
//! A receiver polls only the few rings that it *watches*, so an idle rank costs the same in a job
//! of any size. After publishing to an unwatched ring, the sender *calls*: it sets its bit among
//! the receiver's [callers](crate::callers). The receiver watches that ring from then on. If the
//! receiver watches its maximum already, the new ring displaces the ring that was silent for
//! longest.

mod ends;
mod memory;
mod pace;

use std::sync::Arc;
use std::time::Duration;

use crate::link::{Doorbell, Frame, FrameMut, Link, LinkError, Refused};
use crate::ring;
use crate::segment::{Segment, SegmentError};
use ends::{Inbound, Outbound};

/// The most rings that a receiver watches. Polling an idle ring is cheap (docs/tuning.md, "Watched
/// rings").
const WATCHED: usize = 8;

/// The number of frames between two checks for callers while the watched rings are busy.
const PATIENCE: u32 = 32;

/// The best frame length for data that is packed and unpacked on the way (docs/tuning.md, "Frame
/// size for packed data").
const PIECE: usize = 16 << 10;

/// A rank's ends of all its rings.
///
/// ```
/// use longshore_transport::{Link, Segment, shm::ShmLink};
///
/// let segment = Segment::create(2)?;
/// let mut left = ShmLink::new(segment.as_rank(0)?)?;
/// let mut right = ShmLink::new(segment.as_rank(1)?)?;
/// let mut frame = left.reserve(1, 3)?;
/// frame.copy_from_slice(b"abc");
/// frame.commit();
/// assert_eq!(&*right.receive()?.unwrap(), b"abc");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ShmLink {
    segment: Segment,
    rank: u32,
    limit: usize,
    outbound: Vec<Option<Box<Outbound>>>,
    inbound: Vec<Option<Box<Inbound>>>,
    /// The peers whose rings are watched.
    watched: Vec<u32>,
    /// The index in `watched` of the ring to poll first.
    turn: usize,
    /// The number of frames received.
    frames: u32,
    /// The offset of the words in which callers set their bits.
    callers: u64,
    /// The first failure to watch the ring of a caller.
    broken: Option<LinkError>,
    /// A test's peer whose ring can't be mapped.
    #[cfg(test)]
    unmapped: Option<u32>,
}

impl ShmLink {
    /// The link of the rank to which `segment` belongs. Create only one per rank and segment, ever:
    /// only the ends of a ring know their positions in it.
    ///
    /// # Errors
    /// [`SegmentError::NotARank`] for the launcher's handle.
    pub fn new(segment: Segment) -> Result<Self, SegmentError> {
        let rank = segment.rank().ok_or(SegmentError::NotARank)?;
        let size = segment.size() as usize;
        Ok(Self {
            rank,
            limit: ring::frame_limit(segment.geometry().ring_bytes),
            outbound: std::iter::repeat_with(|| None).take(size).collect(),
            inbound: std::iter::repeat_with(|| None).take(size).collect(),
            watched: Vec::with_capacity(WATCHED),
            turn: 0,
            frames: 0,
            callers: segment.geometry().callers_of(rank),
            broken: None,
            #[cfg(test)]
            unmapped: None,
            segment,
        })
    }

    /// Whether a peer has called.
    #[inline]
    fn is_called(&self) -> bool {
        self.segment.callers_at(self.callers).is_called()
    }

    /// Watches the rings of the callers. A caller doesn't call again, so a ring that can't be
    /// watched breaks the link; the frames of the other callers still arrive.
    fn answer_calls(&mut self) {
        let segment = self.segment.clone();
        segment.callers_at(self.callers).take(|peer| {
            if peer < self.size() {
                let failed = self.watch(peer).err();
                self.broken = self.broken.take().or(failed);
            }
        });
    }

    /// Whether a quick test of the watched rings shows no frame.
    #[inline]
    fn are_quiet(&self) -> bool {
        let is_quiet = |&peer: &u32| {
            self.inbound[peer as usize].as_ref().is_none_or(|inbound| inbound.is_quiet())
        };
        self.watched.iter().all(is_quiet)
    }

    fn watch(&mut self, peer: u32) -> Result<(), LinkError> {
        #[cfg(test)]
        if self.unmapped == Some(peer) {
            return Err(LinkError::Memory("no room for a ring".to_owned()));
        }
        let inbound = match &mut self.inbound[peer as usize] {
            Some(inbound) => inbound,
            none => none.insert(Box::new(Inbound::new(&self.segment, self.rank, peer)?)),
        };
        if !inbound.watch() {
            return Ok(());
        }
        inbound.last = self.frames;
        if self.watched.len() == WATCHED {
            let silence = |&peer: &u32| {
                self.inbound[peer as usize].as_ref().map(|i| self.frames.wrapping_sub(i.last))
            };
            let longest = (0..WATCHED).max_by_key(|&i| silence(&self.watched[i])).unwrap_or(0);
            let silent = std::mem::replace(&mut self.watched[longest], peer);
            if let Some(inbound) = &mut self.inbound[silent as usize] {
                inbound.unwatch();
            }
        } else {
            self.watched.push(peer);
        }
        Ok(())
    }

    /// Answers callers, and polls the rings that are watched then.
    #[cold]
    fn poll_after_calls(&mut self) -> Result<Option<u32>, LinkError> {
        if self.is_called() {
            self.answer_calls();
        }
        self.poll()
    }

    /// The peer of a watched ring that holds a frame, if any.
    #[inline(always)]
    fn poll(&mut self) -> Result<Option<u32>, LinkError> {
        let count = self.watched.len();
        for step in 0..count {
            let index = self.turn + step;
            let index = if index < count { index } else { index - count };
            let peer = self.watched[index];
            let Some(inbound) = &mut self.inbound[peer as usize] else { continue };
            if inbound.is_quiet() {
                inbound.idle();
                continue;
            }
            match inbound.has_frame() {
                Ok(true) => {
                    self.turn = if index + 1 < count { index + 1 } else { 0 };
                    return Ok(Some(peer));
                }
                Ok(false) => {}
                Err(error) => {
                    self.watched.remove(index);
                    self.turn = 0;
                    return Err(error);
                }
            }
        }
        Ok(None)
    }
}

impl Link for ShmLink {
    #[inline]
    fn rank(&self) -> u32 {
        self.rank
    }

    #[inline]
    fn size(&self) -> u32 {
        self.segment.size()
    }

    #[inline]
    fn frame_limit(&self, _: u32) -> usize {
        self.limit
    }

    #[inline]
    fn piece(&self, _: u32) -> usize {
        self.limit.min(PIECE)
    }

    fn reserve(&mut self, peer: u32, len: usize) -> Result<FrameMut<'_>, Refused> {
        if len > self.limit {
            return Err(LinkError::TooLong { len, limit: self.limit }.into());
        }
        if self.segment.is_gone(peer) {
            let state = self.segment.rank_state(peer);
            return Err(LinkError::PeerGone { peer, state }.into());
        }
        let size = self.size();
        let outbound = match self.outbound.get_mut(peer as usize) {
            Some(Some(outbound)) => outbound,
            Some(none) => Outbound::open(none, &self.segment, self.rank, peer)?,
            None => return Err(LinkError::NoSuchRank { rank: peer, size }.into()),
        };
        outbound.frame(len)?.ok_or(Refused::WouldBlock)
    }

    fn receive(&mut self) -> Result<Option<Frame<'_>>, LinkError> {
        // Even while the watched rings are busy, the callers come first once every `PATIENCE`
        // frames.
        let patient = self.frames % PATIENCE != 0;
        let mut found = if patient { self.poll()? } else { None };
        if found.is_none() && (!patient || self.is_called()) {
            found = self.poll_after_calls()?;
        }
        let Some(peer) = found else { return self.broken.clone().map_or(Ok(None), Err) };
        self.frames = self.frames.wrapping_add(1);
        let Some(inbound) = &mut self.inbound[peer as usize] else { return Ok(None) };
        inbound.last = self.frames;
        Ok(inbound.frame())
    }

    #[inline]
    fn is_quiet(&mut self) -> bool {
        self.are_quiet() && !self.is_called()
    }

    #[inline]
    fn is_spent(&mut self) -> bool {
        // The next `receive` notices callers.
        self.are_quiet()
    }

    fn doorbell(&self) -> Arc<dyn Doorbell> {
        Arc::new(Bell { segment: self.segment.clone(), rank: self.rank })
    }
}

/// The rank's doorbell in the segment: a word on which a futex sleeps.
#[derive(Debug)]
struct Bell {
    segment: Segment,
    rank: u32,
}

impl Doorbell for Bell {
    fn arm(&self) {
        self.segment.arm(self.rank);
    }

    fn arm_for_requests(&self) -> bool {
        self.segment.arm_for_requests(self.rank);
        true
    }

    fn disarm(&self) {
        self.segment.disarm(self.rank);
    }

    fn sleep(&self, at_most: Duration) {
        self.segment.sleep(self.rank, at_most);
    }

    fn pause(&self) {
        std::hint::spin_loop();
    }

    fn ring(&self, peer: u32) -> Result<(), LinkError> {
        Ok(self.segment.ring(peer)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_that_cannot_be_mapped_hides_no_other_ring() {
        let segment = Segment::create(4).unwrap();
        let mut links =
            [0, 1, 2, 3].map(|rank| ShmLink::new(segment.as_rank(rank).unwrap()).unwrap());
        let [left, others @ ..] = &mut links;
        others.iter_mut().for_each(|other| other.reserve(0, 8).unwrap().commit());
        left.unmapped = Some(1);
        let heard = [(); 2].map(|()| left.receive().unwrap().map(|frame| frame.peer()));
        assert_eq!(heard, [Some(2), Some(3)]);
        for _ in 0..2 {
            assert!(matches!(left.receive(), Err(LinkError::Memory(_))));
        }
        // The other rings still work.
        others[1].reserve(0, 8).unwrap().commit();
        assert_eq!(left.receive().unwrap().map(|frame| frame.peer()), Some(2));
    }
}
