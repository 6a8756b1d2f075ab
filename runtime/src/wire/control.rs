//! Control messages: the rare ones, encoded by the codec of forms.

use serde::{Deserialize, Serialize};
use shipable::Tag;
use zeroize::Zeroizing;

/// The version of the wire format. All ranks of a job must have the same one.
pub(crate) const PROTOCOL: u32 = 16;

/// Bytes of the longest control message.
pub(crate) const CONTROL_LIMIT: usize = 4096;

/// Bytes of the longest hello, in which each rank of the job may need an introduction of its own.
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

/// The form in the bytes of a `Define`, and the names of its fields, which are the last `names`
/// bytes. `None` if they are no text.
pub(crate) fn split_names(bytes: &[u8], names: u64) -> Option<(&[u8], &str)> {
    let length = usize::try_from(names).ok()?;
    let (form, names) = bytes.split_at_checked(bytes.len().checked_sub(length)?)?;
    Some((form, std::str::from_utf8(names).ok()?))
}

/// A rank's introduction of itself and of the ranks that it knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// Proof of membership: the job's secret.
    pub secret: Zeroizing<Vec<u8>>,
    /// The job's founding, if rank 0 is among the ranks that are introduced.
    pub founding: Option<Founding>,
    /// The ranks from the sender on, in runs of ranks that are alike.
    pub ranks: Vec<(u32, Introduction)>,
}

/// A rank as its peers know it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Introduction {
    /// The descriptor of its representation.
    pub architecture: String,
    /// Whether the rank emulates that representation.
    pub emulated: bool,
    /// Whether the rank lets data of equal length match, where both ranks do.
    pub by_length: bool,
    /// The credit of each peer: bytes of short messages that the rank holds before they are
    /// received.
    pub room: u64,
    /// Bytes of the longest encoded form that the rank accepts.
    pub form_limit: u64,
}

/// The decisions of rank 0 for the whole job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Founding {
    /// The range of the segment, offset and length, of the barrier of all ranks.
    pub barrier: (u64, u64),
    /// The job's identity: a random number, so that two runs differ.
    pub job: u128,
}

/// Why the target refused an operation, or stopped it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refusal {
    /// The MPI error class, as [`shipable::Class::wire`] numbers it.
    pub class: u8,
    /// The error's text.
    pub text: String,
    /// The bytes of the window that the operation would touch, if they are inside of it.
    pub bytes: Option<(i64, i64)>,
}
