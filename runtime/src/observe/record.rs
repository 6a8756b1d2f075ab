//! What the launcher reads in the journal of a rank that has ended, in parts that fit in a message.

use longshore_transport::Journal;
use serde::{Deserialize, Serialize};

/// The most bytes of events in a part.
const PART: usize = 1 << 20;

/// A part of a rank's journal.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Record {
    /// The last snapshot.
    Snapshot(Vec<u8>),
    /// Events, after those of the parts before.
    Events(Vec<u8>),
    /// The last part: the number of events that had no room.
    Dropped(u32),
}

impl Record {
    /// The parts of a journal.
    pub(crate) fn read(journal: &Journal) -> impl Iterator<Item = Record> + '_ {
        let len = journal.len();
        let events = (0..len).step_by(PART).map(move |start| {
            let mut bytes = vec![0; PART.min(len - start)];
            journal.read(start, &mut bytes);
            Record::Events(bytes)
        });
        let snapshot = journal.snapshot().map(Record::Snapshot);
        snapshot.into_iter().chain(events).chain([Record::Dropped(journal.dropped())])
    }
}
