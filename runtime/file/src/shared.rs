//! State that the ranks of a file share besides its bytes: the shared pointer (MPI-5.0 section
//! 14.4.4), and the lock of atomic accesses. Both are in windows at the file's first rank.

use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use longshore::{Communicator, LockType, Op, Window};

use crate::error::Result;

/// The shared pointer of a file, in etypes.
pub(crate) struct Pointer {
    place: Place,
}

enum Place {
    /// The file has one rank.
    Own(Mutex<i64>),
    Window(Box<Mutex<Window>>),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pointer {
    /// A pointer at offset 0. Collective.
    pub fn new(comm: &Communicator) -> Result<Pointer> {
        let place = match comm.size() {
            1 => Place::Own(Mutex::new(0)),
            _ => Place::Window(Box::new(Mutex::new(word(comm)?))),
        };
        Ok(Pointer { place })
    }

    /// Combines the pointer with a number, and returns its old value.
    fn combine(&self, number: i64, op: Op) -> Result<i64> {
        match &self.place {
            Place::Own(own) => {
                let mut own = lock(own);
                let old = *own;
                match op {
                    Op::Sum => *own = own.wrapping_add(number),
                    Op::Replace => *own = number,
                    _ => {}
                }
                Ok(old)
            }
            Place::Window(window) => {
                let fetched = lock(window).lock(0, LockType::Shared, |epoch| {
                    epoch.fetch_and_op(number, 0, 0, op)?.wait()
                });
                Ok(fetched?)
            }
        }
    }

    /// Moves the pointer on by a number of etypes, and returns where it was.
    pub fn advance(&self, by: i64) -> Result<i64> {
        self.combine(by, Op::Sum)
    }

    pub fn get(&self) -> Result<i64> {
        self.combine(0, Op::NoOp)
    }

    pub fn set(&self, to: i64) -> Result<()> {
        self.combine(to, Op::Replace).map(drop)
    }

    /// Frees it. Collective.
    pub fn free(self) -> Result<()> {
        match self.place {
            Place::Own(_) => Ok(()),
            Place::Window(window) => {
                Ok(window.into_inner().unwrap_or_else(PoisonError::into_inner).free()?)
            }
        }
    }
}

/// The lock of a file under atomic mode: accesses of different ranks that overlap take place one
/// after the other.
pub(crate) enum Atomicity {
    /// The file has one rank, whose threads exclude each other.
    Own(RwLock<()>),
    Window(Box<Mutex<Window>>),
}

impl Atomicity {
    /// Collective.
    pub fn new(comm: &Communicator) -> Result<Atomicity> {
        Ok(match comm.size() {
            1 => Atomicity::Own(RwLock::default()),
            _ => Atomicity::Window(Box::new(Mutex::new(word(comm)?))),
        })
    }

    /// Carries out an access, which `writes`, when no access is under way that it may conflict
    /// with.
    pub fn exclude<T>(&self, writes: bool, access: impl FnOnce() -> Result<T>) -> Result<T> {
        match self {
            Atomicity::Own(own) if writes => {
                let _alone = own.write().unwrap_or_else(PoisonError::into_inner);
                access()
            }
            Atomicity::Own(own) => {
                let _shared = own.read().unwrap_or_else(PoisonError::into_inner);
                access()
            }
            Atomicity::Window(window) => {
                let kind = if writes { LockType::Exclusive } else { LockType::Shared };
                let window = lock(window);
                let mut outcome = None;
                window.lock(0, kind, |_| {
                    outcome = Some(access());
                    Ok(())
                })?;
                outcome.unwrap_or_else(|| unreachable!("the epoch ran its body"))
            }
        }
    }

    /// Frees it. Collective.
    pub fn free(self) -> Result<()> {
        match self {
            Atomicity::Own(_) => Ok(()),
            Atomicity::Window(window) => {
                Ok(window.into_inner().unwrap_or_else(PoisonError::into_inner).free()?)
            }
        }
    }
}

/// A window of one number at the first rank.
fn word(comm: &Communicator) -> Result<Window> {
    let size = if comm.rank() == 0 { 8 } else { 0 };
    Ok(Window::allocate(comm, size, 8, &longshore::Info::default())?)
}
