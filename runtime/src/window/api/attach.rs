//! Dynamic windows: memory is attached and detached, and displacements are addresses (MPI-5.0
//! section 12.2.4).

use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;

use super::window::Window;
use crate::engine::Attachments;
use crate::error::{ErrorKind, Result};
use crate::memory::{Exposed, Memory};
use crate::window::create::{check_native, give_back};

/// Memory that is attached to a dynamic window; [`Window::detach`] gives it back.
///
/// If this value is dropped, its memory stays attached until the window is freed, and is freed with
/// the window.
#[must_use = "the memory comes back from `detach`"]
pub struct Attached<M> {
    attachments: Arc<Attachments>,
    number: u64,
    address: i64,
    size: u64,
    memory: PhantomData<fn() -> M>,
}

impl<M> Attached<M> {
    /// The address of the first byte: its displacement in operations on this rank. Displacements
    /// count bytes, so the byte `n` bytes later has displacement `address() + n`.
    ///
    /// It is the memory's address in this process. On a rank that emulates another architecture it
    /// is an address that this architecture could have used. A rank sends it to its peers as an
    /// `i64`, regardless of the size of its pointers.
    pub fn address(&self) -> i64 {
        self.address
    }

    /// Its size in bytes.
    pub fn size(&self) -> i64 {
        self.size as i64
    }
}

impl<M> Window<M> {
    /// Attaches memory to a dynamic window (MPI-5.0 section 12.2.4). Not collective. From now on
    /// peers reach the memory by the addresses from [`Attached::address`] on. This rank reaches it
    /// by [`local`](Window::local), whose displacements are addresses too.
    ///
    /// While the memory is attached, its bytes may be moved to shared memory; its addresses stay.
    /// Ranks of this host with the same data representation then access them directly. A rank can
    /// have at most 510 such attachments at a time. Further ones are reached by messages.
    ///
    /// ```
    /// # use longshore::{Info, Window};
    /// # let rank = longshore::init()?;
    /// let (world, long) = (rank.world(), rank.type_of::<i64>()?);
    /// let window = Window::create_dynamic(world, &Info::default())?;
    /// let attached = window.attach(vec![0i64; 10])?;
    /// assert_eq!(attached.size(), 80);
    /// // Each rank learns the addresses of all others.
    /// let places = world.allgather(&[attached.address()])?;
    /// window.lock_all(|epoch| epoch.put(&[7i64], 0, places[0] + 16, 1, &long))?;
    /// world.barrier()?;
    /// let memory = window.detach(attached)?;
    /// assert!(world.rank() != 0 || memory[2] == 7);
    /// window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// - RMA_FLAVOR on a window that isn't dynamic (rule 16).
    /// - RMA_ATTACH for memory without an address on this rank, which emulates pointers that are
    ///   too short, or for memory that is attached already (rule 15).
    /// - BUFFER on a rank that emulates another architecture, for a `Vec` or `Box` with elements
    ///   other than bytes.
    ///
    /// On an error the memory is lost.
    #[track_caller]
    #[doc(alias = "MPI_Win_attach")]
    pub fn attach<A: Memory>(&self, memory: A) -> Result<Attached<A>> {
        let attach = || -> Result<Attached<A>> {
            let parts = self.core.parts();
            parts.process().ready()?;
            let attachments = parts.memory().attachable("attach")?;
            check_native::<A>(parts.process())?;
            let memory = Exposed::created(memory)?;
            let size = memory.span().len();
            let (number, address) = self.core.attach(memory, A::is_enclosed())?;
            let attachments = attachments.clone();
            Ok(Attached { attachments, number, address, size, memory: PhantomData })
        };
        let caller = Location::caller();
        attach().map_err(|error| self.core.failed(error, "attach", None, caller))
    }

    /// Ends an attachment and gives its memory back (MPI-5.0 section 12.2.4). Not collective. It
    /// waits for operations in progress on the memory. Later ones are refused.
    ///
    /// # Errors
    /// - RMA_FLAVOR on a window that isn't dynamic (rule 16).
    /// - RMA_ATTACH for memory that is attached to another window (rule 15).
    /// - PROC_ABORTED if the job is ending.
    ///
    /// On an error the memory is lost.
    #[track_caller]
    #[doc(alias = "MPI_Win_detach")]
    pub fn detach<A: Memory>(&self, attached: Attached<A>) -> Result<A> {
        let detach = || -> Result<A> {
            let parts = self.core.parts();
            parts.process().ready()?;
            let attachments = parts.memory().attachable("detach")?;
            if !Arc::ptr_eq(attachments, &attached.attachments) {
                return Err(ErrorKind::Detached.into());
            }
            give_back(self.core.detach(attached.number)?)
        };
        let caller = Location::caller();
        detach().map_err(|error| self.core.failed(error, "detach", None, caller))
    }
}
