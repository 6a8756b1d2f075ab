//! Communicators by handle: those of the job, and unpacked ones, which can only be compared and
//! freed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shipable::flat::{CommunicatorDescription, Comparison};

use crate::communicator::{Communicator, FIRST, FREED};
use crate::error::{ErrorKind, Result};
use crate::process::Process;
use crate::rank::Rank;

/// A handle of a communicator. The numbers of freed handles aren't reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CommunicatorHandle(u64);

impl CommunicatorHandle {
    /// Refers to no communicator: MPI_COMM_NULL.
    pub const NULL: CommunicatorHandle = CommunicatorHandle(0);
    /// MPI_COMM_WORLD.
    pub const WORLD: CommunicatorHandle = CommunicatorHandle(1);
    /// MPI_COMM_SELF.
    pub const SELF: CommunicatorHandle = CommunicatorHandle(2);
}

enum Named {
    Own(Communicator),
    Unpacked(CommunicatorDescription),
}

struct Table {
    /// The communicators whose handles aren't freed, by handle.
    rows: BTreeMap<u64, Named>,
    /// The last handle that was returned.
    last: u64,
}

/// The table of communicators for which a rank has handles.
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
    process: Arc<Process>,
    table: Mutex<Table>,
}

impl Communicators {
    /// A table for a rank, which contains its two initial communicators.
    pub fn new(rank: &Rank) -> Communicators {
        let first =
            [(CommunicatorHandle::WORLD, rank.world()), (CommunicatorHandle::SELF, rank.alone())];
        let rows = first.map(|(handle, own)| (handle.0, Named::Own(own.share())));
        let table = Table { rows: rows.into(), last: CommunicatorHandle::SELF.0 };
        Communicators { process: rank.process().clone(), table: Mutex::new(table) }
    }

    /// Returns a handle of a communicator.
    pub fn insert(&self, communicator: Communicator) -> CommunicatorHandle {
        self.push(Named::Own(communicator))
    }

    pub(super) fn insert_unpacked(
        &self,
        description: CommunicatorDescription,
    ) -> CommunicatorHandle {
        self.push(Named::Unpacked(description))
    }

    /// The communicator, for any use except comparison.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// use longshore::handle::{CommunicatorHandle, Communicators};
    ///
    /// let world = Communicators::new(&rank).own(CommunicatorHandle::WORLD)?;
    /// assert_eq!(world.size(), rank.world().size());
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// COMM for a handle that is null, freed, or of an unpacked communicator. OTHER after
    /// [`finalize`](Rank::finalize).
    pub fn own(&self, handle: CommunicatorHandle) -> Result<Communicator> {
        self.process.ready()?;
        match self.table().find(handle)? {
            Named::Own(communicator) => Ok(communicator.share()),
            Named::Unpacked(_) => Err(UNPACKED.into()),
        }
    }

    /// Compares two communicators (MPI-5.0 section 7.4.1; for unpacked ones, proposal 1
    /// (docs/proposals.md)).
    ///
    /// # Errors
    /// COMM for a handle that is null or freed. OTHER after [`finalize`](Rank::finalize).
    pub fn compare(
        &self,
        one: CommunicatorHandle,
        other: CommunicatorHandle,
    ) -> Result<Comparison> {
        self.process.ready()?;
        let table = self.table();
        let (one, other) = (table.find(one)?, table.find(other)?);
        match (one, other) {
            (Named::Own(one), Named::Own(other)) => Ok(one.compare(other)),
            (Named::Own(own), Named::Unpacked(unpacked))
            | (Named::Unpacked(unpacked), Named::Own(own)) => own.compare_unpacked(unpacked),
            (Named::Unpacked(one), Named::Unpacked(other)) => Ok(one.compare(other)),
        }
    }

    /// Frees a communicator. Collective, unless it was unpacked.
    ///
    /// # Errors
    /// COMM for a handle that is null, freed, or of an initial communicator. Otherwise the errors
    /// of [`Communicator::free`], OTHER after [`finalize`](Rank::finalize) among them.
    pub fn free(&self, handle: CommunicatorHandle) -> Result<()> {
        self.process.ready()?;
        if handle == CommunicatorHandle::WORLD || handle == CommunicatorHandle::SELF {
            return Err(FIRST.into());
        }
        let freed = {
            let mut table = self.table();
            table.find(handle)?;
            table.rows.remove(&handle.0)
        };
        // Waits for other ranks and runs callbacks, so the lock is released.
        match freed {
            Some(Named::Own(communicator)) => communicator.free(),
            _ => Ok(()),
        }
    }

    fn push(&self, named: Named) -> CommunicatorHandle {
        let mut table = self.table();
        table.last += 1;
        let number = table.last;
        table.rows.insert(number, named);
        CommunicatorHandle(number)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn find(&self, handle: CommunicatorHandle) -> Result<&Named> {
        match self.rows.get(&handle.0) {
            Some(named) => Ok(named),
            None if handle == CommunicatorHandle::NULL => Err(NULL.into()),
            None if handle.0 <= self.last => Err(FREED.into()),
            None => Err(UNKNOWN.into()),
        }
    }
}

const NULL: ErrorKind = ErrorKind::CommunicatorHandle("null");
const UNKNOWN: ErrorKind = ErrorKind::CommunicatorHandle("unknown to this rank");
const UNPACKED: ErrorKind = ErrorKind::CommunicatorHandle(
    "unpacked: it can only be compared and freed, since its ranks may be gone",
);
