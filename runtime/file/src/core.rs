//! The parts of a file that all accesses use, on any thread: the system's file, the view, the mode.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use longshore::{Communicator, Datatype};

use crate::amode::Amode;
use crate::datarep::Datarep;
use crate::error::Result;
use crate::info::Info;
use crate::shared::Atomicity;
use crate::status::Status;
use crate::storage::Storage;
use crate::view::View;

/// The parts of a file that accesses use, on any thread.
pub(crate) struct Core {
    pub storage: Storage,
    pub amode: Amode,
    state: Mutex<State>,
    is_atomic: AtomicBool,
    /// The lock of atomic accesses; made when the mode is first turned on.
    atomicity: Mutex<Option<Arc<Atomicity>>>,
}

/// The parts of a file that calls change.
pub(crate) struct State {
    pub view: Arc<View>,
    pub info: Arc<Info>,
    /// The individual pointer, in etypes.
    pub pointer: i64,
    /// The split collective call that has begun.
    pub split: Option<Split>,
}

/// A split collective call between its two halves.
pub(crate) struct Split {
    /// The name of both calls, without their ends.
    pub call: &'static str,
    pub outcome: Result<Status>,
}

impl Core {
    /// A file with its first view: all bytes.
    pub fn new(comm: &Communicator, storage: Storage, amode: Amode, info: &Info) -> Result<Core> {
        let byte = comm.commit(&Datatype::byte())?;
        let own = comm.representation(comm.rank())?;
        let view = View::new(0, &byte, &byte, Datarep::Native, &own)?;
        let state =
            State { view: Arc::new(view), info: Arc::new(info.clone()), pointer: 0, split: None };
        let (state, is_atomic) = (Mutex::new(state), AtomicBool::new(false));
        Ok(Core { storage, amode, state, is_atomic, atomicity: Mutex::new(None) })
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lock of atomic accesses, if the file is in atomic mode.
    pub fn atomicity(&self) -> Option<Arc<Atomicity>> {
        match self.is_atomic.load(Ordering::Relaxed) {
            true => self.atomicity.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            false => None,
        }
    }

    /// Carries out an access, which `writes`: in atomic mode when no other is under way.
    pub fn access<T>(&self, writes: bool, access: impl FnOnce() -> Result<T>) -> Result<T> {
        match self.atomicity() {
            Some(atomicity) => atomicity.exclude(writes, access),
            None => access(),
        }
    }

    /// Whether the file is in atomic mode.
    pub fn is_atomic(&self) -> bool {
        self.is_atomic.load(Ordering::Relaxed)
    }

    /// Turns atomic mode on or off. Collective.
    pub fn set_atomic(&self, comm: &Communicator, atomic: bool) -> Result<()> {
        let mut atomicity = self.atomicity.lock().unwrap_or_else(PoisonError::into_inner);
        if atomic && atomicity.is_none() {
            *atomicity = Some(Arc::new(Atomicity::new(comm)?));
        }
        self.is_atomic.store(atomic, Ordering::Relaxed);
        Ok(())
    }

    /// Frees the lock of atomic accesses, of which none is under way. Collective.
    pub fn free(&self) -> Result<()> {
        let taken = self.atomicity.lock().unwrap_or_else(PoisonError::into_inner).take();
        taken.and_then(Arc::into_inner).map_or(Ok(()), Atomicity::free)
    }
}
