//! The rare messages, encoded by the codec of forms.

use serde::{Deserialize, Serialize};
use shipable::Tag;

/// The version of everything in this module; one per job, exact match.
pub(crate) const PROTOCOL: u32 = 5;

/// The longest control message, in bytes.
pub(crate) const CONTROL_LIMIT: usize = 4096;

/// The longest hello, in bytes: all ranks of a job may be of kinds of their own.
pub(crate) fn hello_limit(ranks: u32) -> usize {
    CONTROL_LIMIT + ranks as usize * 512
}

/// The number of a form's tag on the wire (rule T6).
pub(crate) fn tag_to_wire(tag: Tag) -> u8 {
    match tag {
        Tag::Portable => 1,
        Tag::Locale => 2,
    }
}

/// How a rank introduces itself and those that it knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// Proof of membership: the job's secret.
    pub secret: Vec<u8>,
    /// What the job begins with, if rank 0 is among those that are introduced.
    pub founding: Option<Founding>,
    /// Ranks from the sender on, so many at a time that are alike.
    pub ranks: Vec<(u32, Introduction)>,
}

/// What its peers know of a rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Introduction {
    /// The descriptor of its representation.
    pub architecture: String,
    /// Whether that is another than its machine's.
    pub emulated: bool,
    /// Bytes of short messages that it holds for each peer before they are received.
    pub room: u64,
    /// The longest form that it takes.
    pub form_limit: u64,
}

/// What rank 0 decides for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Founding {
    /// Where the barrier of all ranks lies in the segment.
    pub barrier: (u64, u64),
    /// The job's identity: random, so that no two runs have the same.
    pub job: u128,
}

/// Why an operation wasn't done, or not to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refusal {
    /// MPI's class, as in [`shipable::Class::wire`].
    pub class: u8,
    /// The error's text.
    pub text: String,
    /// The bytes of the window that the operation was to touch, if they are in it.
    pub bytes: Option<(i64, i64)>,
}
