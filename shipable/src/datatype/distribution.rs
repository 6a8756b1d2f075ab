//! The storage order of arrays, and their distribution over processes.

/// `MPI_DISTRIBUTE_DFLT_DARG`. MPI's ABI defines it as 19, which would be ambiguous: 19 is also a
/// valid distribution argument.
pub const DISTRIBUTE_DFLT_DARG: i32 = -1;

/// The storage order of an array's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Row-major: the last dimension varies fastest.
    C,
    /// Column-major: the first dimension varies fastest.
    Fortran,
}

/// The distribution of one dimension of an array over processes (MPI-5.0 section 5.1.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Distribution {
    /// One block for each process. The distribution argument is the block length; by default the
    /// blocks are as equal as possible.
    Block,
    /// Blocks dealt out in turn. The distribution argument is the block length, by default 1.
    Cyclic,
    /// Not distributed: the process grid has one process in this dimension.
    None,
}

/// The indices of one dimension that one process owns, as a sequence of runs.
///
/// Runs have `block` indices, begin at `first`, and recur every `period` indices up to `size`. If
/// the process owns no index, `first` equals `size`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The first index of the first run.
    pub first: i64,
    /// The length of each run; `size` may cut the last one.
    pub block: i64,
    /// The distance from the start of a run to the start of the next.
    pub period: i64,
    /// The dimension's size.
    pub size: i64,
}

impl Share {
    /// The number of runs.
    pub fn runs(&self) -> i64 {
        let room = self.size - self.first;
        room / self.period + i64::from(room % self.period != 0)
    }

    /// The length of the last run; 0 if there are no runs.
    pub fn last_run(&self) -> i64 {
        match self.runs() {
            0 => 0,
            runs => self.block.min(self.size - self.first - (runs - 1) * self.period),
        }
    }

    /// The number of indices.
    pub fn count(&self) -> i64 {
        match self.runs() {
            0 => 0,
            runs => (runs - 1) * self.block + self.last_run(),
        }
    }

    /// The last index; `None` if the process owns no index.
    pub fn last(&self) -> Option<i64> {
        match self.runs() {
            0 => None,
            runs => Some(self.first + (runs - 1) * self.period + self.last_run() - 1),
        }
    }
}
