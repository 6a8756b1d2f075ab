//! Errors of links and of remote memory access.

use thiserror::Error;

use crate::segment::RankState;

/// Why a link has no room for a frame.
#[derive(Debug, Error)]
pub enum Refused {
    /// The peer hasn't read enough earlier frames, or isn't connected yet: receive, then try again.
    #[error("no room for the frame yet")]
    WouldBlock,
    /// The frame can never be sent.
    #[error(transparent)]
    Failed(#[from] LinkError),
}

/// A permanent failure of a link.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LinkError {
    /// The peer receives nothing any more.
    #[error("rank {peer} is gone: {state}")]
    PeerGone {
        /// The peer.
        peer: u32,
        /// The peer's state, as the job knows it.
        state: RankState,
    },
    /// The frame exceeds the link's limit: send it in several frames.
    #[error("a frame of {len} bytes is above the link's limit of {limit}")]
    TooLong {
        /// The length asked for.
        len: usize,
        /// The link's limit.
        limit: usize,
    },
    /// The job has no such rank.
    #[error("no rank {rank} in a job of {size}")]
    NoSuchRank {
        /// The rank asked for.
        rank: u32,
        /// The size of the job.
        size: u32,
    },
    /// A peer sent data that no peer of this version sends.
    #[error("rank {peer} sent invalid data: {what}")]
    Corrupt {
        /// The peer.
        peer: u32,
        /// The violation that was found.
        what: String,
    },
    /// No connection with a peer could be made, in any job. Or an encrypted connection with it has
    /// ended, perhaps because a third party changed what travelled. The text says which, and names
    /// both hosts.
    #[error("{why}")]
    Connection {
        /// The peer.
        peer: u32,
        /// The two ends, and what was found.
        why: String,
    },
    /// The link's shared memory failed.
    #[error("shared memory: {0}")]
    Memory(String),
    /// The link's network failed: the text names the provider, the call and the peer.
    #[error("{0}")]
    Fabric(String),
}
