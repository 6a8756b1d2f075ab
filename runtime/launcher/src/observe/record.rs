//! What the launcher reads in the journal of a rank that has ended, in parts that fit in a message.

use longshore_job::journal::open::Open;
use longshore_transport::{Journal, Note};
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
    /// The calls in which the rank has ended, after all events.
    Open(Open),
    /// The last part: the number of events that had no room.
    Dropped(u32),
}

impl Record {
    /// The parts of the journal of a rank that has just ended, and whose last note this is.
    pub(crate) fn read(journal: &Journal, note: Note) -> impl Iterator<Item = Record> + '_ {
        let len = journal.len();
        let events = (0..len).step_by(PART).map(move |start| {
            let mut bytes = vec![0; PART.min(len - start)];
            journal.read(start, &mut bytes);
            Record::Events(bytes)
        });
        let snapshot = journal.snapshot().map(Record::Snapshot);
        // Without memory for another mapping, the report has no such calls.
        let open = journal.open_calls().ok().map(|calls| Record::Open(Open::read(&calls, note)));
        snapshot.into_iter().chain(events).chain(open).chain([Record::Dropped(journal.dropped())])
    }
}
