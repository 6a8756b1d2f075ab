//! A rank of the jobs whose calls are counted.

use longshore::{Allocated, Rank, Type, Window};

/// A rank of the job.
pub struct Side<'a> {
    pub rank: &'a Rank,
    pub window: &'a mut Window<Allocated>,
    pub double: Type,
}

impl Side<'_> {
    /// Whether this rank only waits.
    pub fn waits(&self) -> bool {
        self.rank.world().rank() != 0
    }
}
