//! Communicators by handle: those of the job, and those that were unpacked, which can be compared and nothing else.

use std::sync::{Mutex, MutexGuard, PoisonError};

use shipable::flat::{CommunicatorDescription, Comparison};

use crate::communicator::Communicator;
use crate::error::{ErrorKind, Result};
use crate::process::Rank;

/// Names a communicator. Numbers aren't used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CommunicatorHandle(u64);

impl CommunicatorHandle {
    /// Names none: MPI_COMM_NULL.
    pub const NULL: CommunicatorHandle = CommunicatorHandle(0);
    /// MPI_COMM_WORLD.
    pub const WORLD: CommunicatorHandle = CommunicatorHandle(1);
    /// MPI_COMM_SELF.
    pub const SELF: CommunicatorHandle = CommunicatorHandle(2);
}

enum Named {
    Own(Communicator),
    Unpacked(CommunicatorDescription),
    Freed,
}

/// The communicators that a rank has handles of.
///
/// ```
/// use longshore::Comparison;
/// use longshore::handle::{CommunicatorHandle, Communicators};
///
/// let rank = longshore::init()?;
/// let communicators = Communicators::new(&rank);
/// let dup = communicators.insert(rank.world().dup()?);
/// let compared = communicators.compare(dup, CommunicatorHandle::WORLD)?;
/// assert_eq!(compared, Comparison::Congruent);
/// communicators.free(dup)?;
/// # rank.finalize()?;
/// # Ok::<(), longshore::Error>(())
/// ```
pub struct Communicators {
    rows: Mutex<Vec<Named>>,
}

impl Communicators {
    /// A table for a rank, with its two first communicators.
    pub fn new(rank: &Rank) -> Communicators {
        let first = [rank.world(), rank.alone()].map(|first| Named::Own(first.share()));
        Communicators { rows: Mutex::new(first.into()) }
    }

    /// A handle of a communicator.
    pub fn insert(&self, communicator: Communicator) -> CommunicatorHandle {
        self.push(Named::Own(communicator))
    }

    pub(super) fn insert_unpacked(
        &self,
        description: CommunicatorDescription,
    ) -> CommunicatorHandle {
        self.push(Named::Unpacked(description))
    }

    /// The communicator, for any use but comparison.
    ///
    /// # Errors
    /// COMM for a handle that is null, freed, or of a communicator that was unpacked.
    pub fn own(&self, handle: CommunicatorHandle) -> Result<Communicator> {
        match self.find(&self.rows(), handle)? {
            Named::Own(communicator) => Ok(communicator.share()),
            Named::Unpacked(_) => Err(UNPACKED.into()),
            Named::Freed => Err(FREED.into()),
        }
    }

    /// How two relate (MPI-5.0 section 7.4.1; seed 001, where one was unpacked).
    ///
    /// # Errors
    /// COMM for a handle that is null or freed.
    pub fn compare(
        &self,
        one: CommunicatorHandle,
        other: CommunicatorHandle,
    ) -> Result<Comparison> {
        let rows = self.rows();
        let (one, other) = (self.find(&rows, one)?, self.find(&rows, other)?);
        match (one, other) {
            (Named::Own(one), Named::Own(other)) => Ok(one.compare(other)),
            (Named::Own(own), Named::Unpacked(unpacked))
            | (Named::Unpacked(unpacked), Named::Own(own)) => own.compare_unpacked(unpacked),
            (Named::Unpacked(one), Named::Unpacked(other)) => Ok(one.compare(other)),
            (Named::Freed, _) | (_, Named::Freed) => Err(FREED.into()),
        }
    }

    /// Frees a communicator, with all its ranks, or one that was unpacked, alone.
    ///
    /// # Errors
    /// COMM for a handle that is null, freed, or one of the first two; as [`Communicator::free`].
    pub fn free(&self, handle: CommunicatorHandle) -> Result<()> {
        if handle == CommunicatorHandle::WORLD || handle == CommunicatorHandle::SELF {
            return Err(FIRST.into());
        }
        let freed = {
            let mut rows = self.rows();
            self.find(&rows, handle)?;
            let row = rows.get_mut(handle.0 as usize - 1);
            row.map(|row| std::mem::replace(row, Named::Freed))
        };
        // Others are waited for, and callbacks asked, without the lock.
        match freed {
            Some(Named::Own(communicator)) => communicator.free(),
            _ => Ok(()),
        }
    }

    fn push(&self, named: Named) -> CommunicatorHandle {
        let mut rows = self.rows();
        rows.push(named);
        CommunicatorHandle(rows.len() as u64)
    }

    fn rows(&self) -> MutexGuard<'_, Vec<Named>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find<'a>(&self, rows: &'a [Named], handle: CommunicatorHandle) -> Result<&'a Named> {
        let index = handle.0.checked_sub(1).ok_or(NULL)?;
        match usize::try_from(index).ok().and_then(|index| rows.get(index)) {
            None => Err(UNKNOWN.into()),
            Some(Named::Freed) => Err(FREED.into()),
            Some(named) => Ok(named),
        }
    }
}

const NULL: ErrorKind = ErrorKind::CommunicatorHandle("null");
const UNKNOWN: ErrorKind = ErrorKind::CommunicatorHandle("unknown to this rank");
const FREED: ErrorKind =
    ErrorKind::CommunicatorHandle("freed: use communicators before they are freed");
const FIRST: ErrorKind = ErrorKind::CommunicatorHandle(
    "there from the start: only communicators that were made can be freed",
);
const UNPACKED: ErrorKind = ErrorKind::CommunicatorHandle(
    "unpacked: it can be compared with others and freed, and nothing else, since its ranks may be gone",
);
