//! What ranks tell each other besides, under `--check`: in streams of their own, each in front of what it is about.

use serde::{Deserialize, Serialize};

/// The longest note in a job of so many ranks, encoded.
pub(crate) fn longest(ranks: u32) -> usize {
    8192 + 16 * ranks as usize
}

/// What a note says. The header of its stream names the window and the operation, where it is about one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Note {
    /// What the sender knows.
    Knows(Vec<u64>),
    /// What the receiver knows once it has what comes next: a lock, or what it fetched.
    Grants(Vec<u64>),
    /// Where the call of the next operation stands.
    Calls(String),
    /// The sender has seen its operations up to this number done, or this one alone, its clock having this number. To be
    /// answered: as an operation of the header's number, or where it is about one alone by a note.
    Settled { number: u64, alone: bool, clock: u64 },
    /// The receiver may say that an operation is done.
    Confirmed,
    /// The sender exposes its window to these ranks of the job.
    Posts { nocheck: bool, site: String, group: Vec<u32> },
    /// These ranks, each in this call, wait for each other: none of the calls can end.
    Circle { calls: Vec<(u32, u32)>, text: String },
    /// The sender ends its access to the receiver's window.
    Completes { nocheck: bool, site: String },
}
