//! What a rank has counted so far, as it is handed to the launcher.

use serde::{Deserialize, Serialize};
use shipable::codec::{self, CodecError};

/// The most bytes of a snapshot in its journal.
const LIMIT: usize = 2 << 20;

/// The counts of one rank.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Nanoseconds since `init`.
    pub elapsed: u64,
    /// Whether the rank has finalized, so that nothing is missing.
    pub complete: bool,
    pub windows: Vec<WindowCounts>,
    pub calls: Vec<CallCounts>,
    pub peers: Vec<PeerCounts>,
    /// Data between ranks of unlike kinds.
    pub kinds: Vec<KindCounts>,
    /// The sleeps of calls that waited, and their nanoseconds.
    pub sleeps: u64,
    pub slept: u64,
    /// Frames for which a link had no room at first.
    pub retries: u64,
    /// Forms of types that were shipped, and their bytes.
    pub forms: u64,
    pub form_bytes: u64,
    /// Windows whose counts are among those of window [`OTHERS`], since there were too many.
    pub merged: u64,
}

/// The number that stands for windows whose counts are kept together.
pub const OTHERS: u32 = u32::MAX;

/// The operations of a rank on one window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WindowCounts {
    pub id: u32,
    /// The window's name; empty if it has none.
    pub name: String,
    pub targets: Vec<TargetCounts>,
}

/// The operations on one target, by its rank in the job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetCounts {
    pub rank: u32,
    pub rows: Vec<Row>,
}

/// The operations of one kind, route and size class.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    pub kind: u8,
    pub route: u8,
    pub class: u8,
    pub count: u64,
    pub bytes: u64,
    /// The time of the calls, of operations of 4 KiB and more.
    pub nanos: u64,
}

/// The calls of one kind, window and source line that may wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallCounts {
    /// The code of the activity.
    pub activity: u32,
    pub window: Option<u32>,
    pub file: String,
    pub line: u32,
    pub count: u64,
    pub nanos: u64,
    pub longest: u64,
    /// The nanoseconds of waits that were for one rank, the longest first.
    pub waited_for: Vec<(u32, u64)>,
}

/// The frames between a rank and one peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PeerCounts {
    pub rank: u32,
    pub sent: u64,
    pub sent_bytes: u64,
    pub received: u64,
    pub received_bytes: u64,
    /// Frames with data of another representation, which this rank converted.
    pub converted: u64,
    pub converted_bytes: u64,
}

/// The bytes of data that went from ranks of one kind to ranks of another, as one of the ranks
/// counted them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KindCounts {
    /// The name of the representation from which they came.
    pub from: String,
    /// The one to which they went; `None` for data of the first kind that went into and out of
    /// collective calls of ranks of several kinds.
    pub to: Option<String>,
    pub copied: u64,
    pub converted: u64,
}

impl Snapshot {
    pub fn encode(&self) -> Result<Vec<u8>, CodecError> {
        codec::encode(self, LIMIT)
    }

    /// Decodes what a rank has left. The rank is of the same version as the launcher, or its
    /// journal would have been refused.
    pub fn decode(bytes: &[u8]) -> Result<Snapshot, CodecError> {
        codec::decode(bytes, LIMIT)
    }
}

impl WindowCounts {
    /// Adds the counts of another window.
    pub fn merge(&mut self, other: WindowCounts) {
        for TargetCounts { rank, rows } in other.targets {
            rows.into_iter().for_each(|row| self.add(rank, row));
        }
    }

    /// Adds operations on a target.
    pub fn add(&mut self, rank: u32, row: Row) {
        match self.targets.iter_mut().find(|target| target.rank == rank) {
            None => self.targets.push(TargetCounts { rank, rows: vec![row] }),
            Some(target) => target.add(row),
        }
    }
}

impl TargetCounts {
    fn add(&mut self, row: Row) {
        let is_like = |known: &&mut Row| {
            (known.kind, known.route, known.class) == (row.kind, row.route, row.class)
        };
        match self.rows.iter_mut().find(is_like) {
            None => self.rows.push(row),
            Some(known) => {
                known.count += row.count;
                known.bytes += row.bytes;
                known.nanos += row.nanos;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_windows_keep_every_operation() {
        let row = |kind, count| Row { kind, route: 0, class: 0, count, bytes: 8 * count, nanos: 0 };
        let window = |id, rank, rows| {
            let targets = vec![TargetCounts { rank, rows }];
            WindowCounts { id, name: String::new(), targets }
        };
        let mut all = window(OTHERS, 1, vec![row(0, 2)]);
        all.merge(window(4, 1, vec![row(0, 3), row(1, 1)]));
        all.merge(window(5, 2, vec![row(0, 7)]));
        assert_eq!(all.targets[0].rows, [row(0, 5), row(1, 1)]);
        assert_eq!(all.targets[1].rows, [row(0, 7)]);
    }
}
