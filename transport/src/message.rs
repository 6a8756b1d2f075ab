//! Messages of any length over frames of limited length, on any link.
//!
//! A message is cut into frames of the link's limit, each but the last marked as continued. Nothing blocks, so two ranks
//! that send to each other at the same time can't deadlock as long as each polls and receives in turn.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::link::{Frame, Link, LinkError, Refused};

/// A message on its way out.
///
/// ```
/// use longshore_transport::{Link, message::{Assembler, Sending}, sim::Cluster};
///
/// let cluster = Cluster::new(2, 7)?;
/// let (mut left, mut right) = (cluster.link(0)?, cluster.link(1)?);
/// let text = vec![b'x'; 10 * left.frame_limit()];
/// let mut sending = Sending::new(1, text.clone());
/// let mut assembler = Assembler::new(1 << 30);
/// let received = loop {
///     sending.poll(&mut left)?;
///     if let Some(frame) = right.receive()? {
///         if let Some(message) = assembler.accept(&frame)? {
///             break message.into_owned();
///         }
///     }
/// };
/// assert!(received == text);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Sending {
    peer: u32,
    bytes: Vec<u8>,
    sent: usize,
    done: bool,
}

impl Sending {
    /// A message of `bytes` to `peer`. Between its first frame and its last, no other frame may go to that peer.
    pub fn new(peer: u32, bytes: impl Into<Vec<u8>>) -> Self {
        Self { peer, bytes: bytes.into(), sent: 0, done: false }
    }

    /// Whom it goes to.
    pub fn peer(&self) -> u32 {
        self.peer
    }

    /// Sends what the link has room for; true once all is sent.
    ///
    /// # Errors
    /// The link's own; [`Refused::WouldBlock`] is none.
    pub fn poll(&mut self, link: &mut dyn Link) -> Result<bool, LinkError> {
        while !self.done {
            let rest = &self.bytes[self.sent..];
            let len = rest.len().min(link.frame_limit());
            match link.reserve(self.peer, len) {
                Ok(mut frame) => {
                    frame.copy_from_slice(&rest[..len]);
                    let more = len < rest.len();
                    frame.commit_part(len, more);
                    self.sent += len;
                    self.done = !more;
                }
                Err(Refused::WouldBlock) => return Ok(false),
                Err(Refused::Failed(error)) => return Err(error),
            }
        }
        Ok(true)
    }
}

/// Joins frames into messages, per peer.
#[derive(Debug)]
pub struct Assembler {
    partial: HashMap<u32, Vec<u8>>,
    limit: usize,
}

impl Assembler {
    /// Accepts messages of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { partial: HashMap::new(), limit }
    }

    /// Takes a frame in; returns the message that it completes. A message of one frame is not copied.
    ///
    /// # Errors
    /// [`LinkError::Corrupt`] when the message grows past the limit. It is then forgotten.
    pub fn accept<'a>(&mut self, frame: &'a Frame<'_>) -> Result<Option<Cow<'a, [u8]>>, LinkError> {
        let peer = frame.peer();
        let begun = self.partial.get(&peer).map_or(0, Vec::len);
        if frame.len() > self.limit - begun {
            self.partial.remove(&peer);
            let what = format!("a message longer than the {} bytes allowed", self.limit);
            return Err(LinkError::Corrupt { peer, what });
        }
        if frame.more() {
            self.partial.entry(peer).or_default().extend_from_slice(frame);
            return Ok(None);
        }
        Ok(Some(match self.partial.remove(&peer) {
            Some(mut message) => {
                message.extend_from_slice(frame);
                Cow::Owned(message)
            }
            None => Cow::Borrowed(frame),
        }))
    }

    /// Forgets what a peer began, for one that is gone.
    pub fn forget(&mut self, peer: u32) {
        self.partial.remove(&peer);
    }
}
