//! What the launcher knows of one rank when that has ended.

use longshore_job::journal::open::Open;
use longshore_job::journal::snapshot::Snapshot;

/// What is known of one rank.
#[derive(Clone, Debug, Default)]
pub(super) struct Counted {
    /// Its counters. A rank that was killed within the first call has none.
    pub snapshot: Option<Snapshot>,
    /// The calls in which it has ended.
    pub open: Open,
}

impl Counted {
    /// Whether the rank has finalized, so that nothing is missing.
    pub(super) fn is_complete(&self) -> bool {
        self.snapshot.as_ref().is_some_and(|it| it.complete)
    }
}
