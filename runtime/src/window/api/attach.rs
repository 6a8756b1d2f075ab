//! Dynamic windows: memory comes and goes, and displacements are addresses (MPI-5.0 section 12.2.4).

use std::marker::PhantomData;
use std::sync::Arc;

use super::window::Window;
use crate::engine::Attachments;
use crate::error::{ErrorKind, Result};
use crate::memory::{Exposed, Memory};
use crate::window::create::{check_native, give_back};

/// Memory that is attached to a dynamic window; [`Window::detach`] gives it back.
///
/// One that is dropped leaves its memory attached until the window is freed, and the memory goes with it then.
#[must_use = "the memory comes back from `detach`"]
pub struct Attached<M> {
    attachments: Arc<Attachments>,
    number: u64,
    address: i64,
    size: u64,
    memory: PhantomData<fn() -> M>,
}

impl<M> Attached<M> {
    /// Where it begins: the displacement of its first byte in operations on this rank. Those of others count bytes from there.
    ///
    /// It is where the memory lies; on a rank that emulates another architecture, where that machine might have put it.
    /// A rank tells it to its peers as an `i64`, whatever the size of its pointers.
    pub fn address(&self) -> i64 {
        self.address
    }

    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }
}

impl<M> Window<M> {
    /// Attaches memory to a dynamic window: peers reach it from now on, by the addresses from
    /// [`Attached::address`] on (MPI-5.0 section 12.2.4). Not collective. This rank reaches it by [`local`](Window::local), whose
    /// displacements are addresses too.
    ///
    /// Where that lets like ranks reach them directly its bytes are moved to shared memory until it is detached, as
    /// [`Window::create`] does it; the addresses stay what they were. That holds for the first 510 attachments of a rank that there
    /// are at a time; what is attached beyond is reached by messages.
    ///
    /// ```
    /// # use longshore::{Info, Window};
    /// # let rank = longshore::init()?;
    /// let (world, long) = (rank.world(), rank.type_of::<i64>()?);
    /// let window = Window::create_dynamic(world, &Info::default())?;
    /// let attached = window.attach(vec![0i64; 10])?;
    /// assert_eq!(attached.size(), 80);
    /// // Everyone learns where everyone's memory lies.
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
    /// RMA_FLAVOR on another window (rule 16); RMA_ATTACH for memory that has no address, as on a rank that emulates pointers
    /// too short for it; BUFFER on a rank that emulates another architecture, for a `Vec` or `Box` of anything but bytes. The memory is
    /// lost then.
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
        attach().map_err(|error| self.core.failed(error, "attach", None))
    }

    /// Ends an attachment and gives its memory back (MPI-5.0 section 12.2.4). Not collective. Operations that reach this rank
    /// afterwards are refused; for those under way it waits.
    ///
    /// # Errors
    /// RMA_FLAVOR on a window that isn't dynamic (rule 16), RMA_ATTACH for what is attached to another (rule 15);
    /// PROC_ABORTED where the job is being ended. The memory is lost then.
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
        detach().map_err(|error| self.core.failed(error, "detach", None))
    }
}
