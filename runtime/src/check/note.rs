//! Notes: messages of `--check` between ranks. Each travels in a stream of its own, before the
//! frame that it describes.

use serde::{Deserialize, Serialize};

/// The longest texts and numbers of a note together, as encoded, without those of each rank.
const LONGEST_TEXT: usize = 8192;

/// The longest part of a note about one rank: its number and its clock number, or its call's.
const LONGEST_OF_RANK: usize = 16;

/// The longest encoded note in a job of `ranks` ranks.
pub(crate) fn longest(ranks: u32) -> usize {
    LONGEST_TEXT + LONGEST_OF_RANK * ranks as usize
}

/// A note. The header of its stream contains the window and the operation, if the note is about
/// one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Note {
    /// The sender's clock.
    Knows(Vec<u64>),
    /// The clock that the receiver adopts with the next frame: a lock grant or a fetched value.
    Grants(Vec<u64>),
    /// The source location of the next operation.
    Calls(String),
    /// The source location of the next message, and whether its call blocks while no receive is
    /// posted for a message of the receiver.
    Sends { site: String, is_first: bool },
    /// The sender has seen its operations up to `number` done, or with `alone` only that one.
    /// `clock` is its clock number. The receiver acknowledges it: as an operation with the header's
    /// number, or with [`Confirmed`](Note::Confirmed) if `alone` is set.
    Settled { number: u64, alone: bool, clock: u64 },
    /// The receiver may report the operation as complete.
    Confirmed,
    /// The sender exposes its window to these ranks of the job.
    Posts { nocheck: bool, site: String, group: Vec<u32> },
    /// These ranks, each in its call of this number, wait for each other in a circle.
    Circle { calls: Vec<(u32, u32)>, text: String },
    /// The sender completes its access to the receiver's window.
    Completes { nocheck: bool, site: String },
}
