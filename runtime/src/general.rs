//! Generalized requests: operations that code outside of this crate carries out, perhaps on a
//! thread of its own (MPI-5.0 section 13.2).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::communicator::Communicator;
use crate::error::Result;
use crate::process::Process;
use crate::several::sealed::{self, Frame, Maker};
use crate::several::{Waitable, wait_all};

/// A request of an operation that other code carries out. It mixes with other requests in
/// [`wait_all`] and [`wait_some`](crate::wait_some).
///
/// ```
/// use longshore::wait_all;
///
/// # let rank = longshore::init()?;
/// let (completer, request) = rank.alone().general();
/// let receiving = rank.alone().irecv(vec![0], 0, 0)?;
/// rank.alone().send(&[7], 0, 0)?;
/// let worker = std::thread::spawn(move || {
///     // The operation.
///     completer.complete();
/// });
/// wait_all(&[&request, &receiving])?;
/// assert!(request.test()?);
/// receiving.wait()?;
/// worker.join().unwrap();
/// # rank.finalize()?;
/// # Ok::<(), longshore::Error>(())
/// ```
#[must_use = "`wait` returns when the operation is complete"]
pub struct General {
    process: Arc<Process>,
    is_complete: Arc<AtomicBool>,
}

/// Completes a [`General`] request. Dropping it does so too, so that nobody waits for an operation
/// that panicked.
pub struct Completer {
    process: Arc<Process>,
    is_complete: Arc<AtomicBool>,
}

impl Communicator {
    /// A request of this rank that the other value completes (MPI_Grequest_start). See [`General`]
    /// for an example.
    #[doc(alias = "MPI_Grequest_start")]
    pub fn general(&self) -> (Completer, General) {
        let process = self.process().clone();
        let is_complete = Arc::new(AtomicBool::new(false));
        let completer = Completer { process: process.clone(), is_complete: is_complete.clone() };
        (completer, General { process, is_complete })
    }
}

impl Completer {
    /// Completes the request, from any thread, and wakes the calls that wait for it.
    #[doc(alias = "MPI_Grequest_complete")]
    pub fn complete(self) {}
}

impl Drop for Completer {
    fn drop(&mut self) {
        // Pairs with the load in `is_complete`.
        self.is_complete.store(true, Ordering::Release);
        // A thread that is about to sleep holds the engine for its last look.
        drop(self.process.engine());
        self.process.nudge();
    }
}

impl General {
    fn is_complete(&self) -> bool {
        // Pairs with the store of the completer.
        self.is_complete.load(Ordering::Acquire)
    }

    /// Whether the operation is complete. Makes progress.
    ///
    /// # Errors
    /// PROC_ABORTED if the job is being aborted.
    #[track_caller]
    pub fn test(&self) -> Result<bool> {
        self.process.test(|_| self.is_complete())
    }

    /// Waits until the operation is complete.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let (completer, request) = rank.alone().general();
    /// completer.complete();
    /// request.wait()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// PROC_ABORTED if the job is being aborted.
    #[track_caller]
    pub fn wait(&self) -> Result<()> {
        wait_all(&[self])
    }
}

impl sealed::Waitable for General {
    fn is_complete(&self, _: Frame<'_>) -> bool {
        self.is_complete()
    }

    fn process(&self) -> Option<Maker<'_>> {
        Some(Maker(&self.process))
    }

    fn awaited(&self) -> Option<u32> {
        None
    }
}

impl Waitable for General {}
