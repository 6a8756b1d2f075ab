//! Windows: memory that the ranks of a communicator open to each other (MPI-5.0 chapter 12).
//!
//! Left out: dynamic and shared windows, passive and post-start-complete-wait epochs, accumulates, request-based
//! operations, attributes and names.

mod core;
mod create;
mod epoch;
mod info;
mod local;
mod operation;
#[cfg(test)]
mod tests;

use std::marker::PhantomData;

use shipable::Element;

use crate::attribute::{Card, attributes};
use crate::communicator::Communicator;
use crate::engine::Policy;
use crate::error::Result;
use crate::group::Group;
use crate::memory::{Exposed, Memory};
use crate::route::Route;
use crate::window::core::Core;

pub use epoch::{Chain, Epoch};
pub use info::Info;
pub use local::Local;

/// The memory of a window that [`Window::allocate`] made: it lies in the job's segment, where like ranks reach it directly.
#[derive(Debug)]
pub enum Allocated {}

/// Memory of this rank that all ranks of a communicator can put into and get from, and theirs.
///
/// A window made over memory of the user gives it back when it is freed. One that is dropped instead stays open to the
/// other ranks, and keeps its memory, until the end of the job.
///
/// ```
/// use longshore::{Info, Window};
///
/// let rank = longshore::init()?;
/// let world = rank.world();
/// let mut window = Window::allocate(world, 800, 8, &Info::default())?;
/// let double = rank.type_of::<f64>()?;
/// let next = (world.rank() + 1) % world.size();
/// window.fence(|epoch| epoch.put(&[1.5, 2.5], next, 10, 2, &double))?;
/// assert_eq!(window.get::<f64>(11)?, 2.5);
/// window.free()?;
/// rank.finalize()?;
/// # Ok::<(), longshore::Error>(())
/// ```
pub struct Window<M = Allocated> {
    core: Core,
    memory: PhantomData<fn() -> M>,
}

impl Window<Allocated> {
    /// Makes a window of `size` bytes, all zero, in shared memory (MPI-5.0 section 12.2.2). Collective; sizes and units may
    /// differ between ranks. Displacements count `disp_unit` bytes.
    ///
    /// # Errors
    /// SIZE, DISP for the arguments, ARG where the info's assurances don't hold, NO_MEM; the same error's class at all
    /// ranks.
    pub fn allocate(
        communicator: &Communicator,
        size: i64,
        disp_unit: i64,
        info: &Info,
    ) -> Result<Window<Allocated>> {
        let core = create::allocate(communicator, size, disp_unit, info)?;
        Ok(Window { core, memory: PhantomData })
    }

    /// Ends the window (MPI-5.0 section 12.2.5). Collective.
    ///
    /// # Errors
    /// RMA_SYNC within an epoch; PROC_ABORTED where a rank died.
    pub fn free(self) -> Result<()> {
        self.core.free().map(drop)
    }
}

impl<M: Memory> Window<M> {
    /// Makes a window over memory of this rank's own: a `Vec`, a `Box` or a [`Buffer`](crate::Buffer) (MPI-5.0 section
    /// 12.2.1). Collective. The other ranks reach it by messages.
    ///
    /// # Errors
    /// As [`allocate`](Window::allocate). BUFFER on a rank that emulates another architecture, for a `Vec` or `Box` of
    /// anything but bytes.
    pub fn create(
        communicator: &Communicator,
        memory: M,
        disp_unit: i64,
        info: &Info,
    ) -> Result<Window<M>> {
        let core = create::create(communicator, memory, disp_unit, info)?;
        Ok(Window { core, memory: PhantomData })
    }

    /// Ends the window and gives its memory back. Collective.
    ///
    /// # Errors
    /// As the other `free`; the memory is lost then.
    pub fn free(self) -> Result<M> {
        self.core.free().and_then(|exposed: Exposed| create::give_back(exposed))
    }
}

impl<M> Window<M> {
    /// Runs one epoch: a fence, the operations of `body`, a fence (MPI-5.0 section 12.5.1). Collective.
    ///
    /// All operations of all ranks are done when it returns; buffers are borrowed until then. The closing fence takes place
    /// whatever `body` returns.
    ///
    /// # Errors
    /// The body's; else the first of its operations to fail, its target's refusals included; else PROC_ABORTED where a rank
    /// died.
    pub fn fence<'env, R>(
        &'env mut self,
        body: impl for<'scope> FnOnce(&Epoch<'scope, 'env>) -> Result<R>,
    ) -> Result<R> {
        self.core.open_epochs()?;
        Chain::new(&self.core).close(body, false)
    }

    /// Runs a chain of epochs, each closed by a fence that opens the next: n epochs take n + 1 fences. Collective. Between
    /// the epochs, and in them, the own memory is reached by the accessors of [`Chain::local`].
    ///
    /// An epoch that fails has had its fence all the same. Whoever ends the chain for it leaves ranks that go on waiting.
    ///
    /// # Errors
    /// As [`fence`](Window::fence).
    ///
    /// ```
    /// # use longshore::{Info, Window};
    /// # let rank = longshore::init()?;
    /// # let mut window = Window::allocate(rank.world(), 16, 8, &Info::default())?;
    /// # let long = rank.type_of::<i64>()?;
    /// let sum = window.fences(|chain| {
    ///     chain.epoch(|epoch| epoch.put(&[40i64], 0, 0, 1, &long))?;
    ///     let second = [chain.local().get::<i64>(0)? + 2];
    ///     chain.epoch(|epoch| epoch.put(&second, 0, 1, 1, &long))?;
    ///     chain.local().get::<i64>(1)
    /// })?;
    /// assert_eq!(sum, 42);
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    pub fn fences<R>(&mut self, body: impl FnOnce(&mut Chain<'_>) -> Result<R>) -> Result<R> {
        self.core.open_epochs()?;
        let mut chain = Chain::new(&self.core);
        let outcome = body(&mut chain);
        self.core.end_epochs();
        outcome
    }

    /// Accessors to this rank's own memory, which copy.
    pub fn local(&self) -> Local<'_> {
        Local::new(&self.core)
    }

    /// The element at a displacement of this rank's own memory; see [`Local::get`].
    ///
    /// # Errors
    /// As [`Local::get`].
    pub fn get<T: Element>(&self, displacement: i64) -> Result<T> {
        self.local().get(displacement)
    }

    /// Replaces the element at a displacement of this rank's own memory; see [`Local::set`].
    ///
    /// # Errors
    /// As [`Local::set`].
    pub fn set<T: Element>(&mut self, displacement: i64, value: T) -> Result<()> {
        self.local().set(displacement, value)
    }

    /// Reads elements of this rank's own memory; see [`Local::read`].
    ///
    /// # Errors
    /// As [`Local::read`].
    pub fn read<T: Element>(&self, displacement: i64, values: &mut [T]) -> Result<()> {
        self.local().read(displacement, values)
    }

    /// Writes elements of this rank's own memory; see [`Local::write`].
    ///
    /// # Errors
    /// As [`Local::write`].
    pub fn write<T: Element>(&mut self, displacement: i64, values: &[T]) -> Result<()> {
        self.local().write(displacement, values)
    }

    attributes!(Window);

    fn card(&self) -> &Card {
        &self.core.card
    }

    /// The group of the communicator that it was made on (MPI-5.0 section 12.2.8).
    pub fn group(&self) -> &Group {
        self.core.communicator.group()
    }

    /// The window's number, as errors name it.
    pub fn number(&self) -> u32 {
        self.core.number()
    }

    /// This rank's size in bytes.
    pub fn size(&self) -> u64 {
        self.core.size()
    }

    /// This rank's displacement unit in bytes.
    pub fn disp_unit(&self) -> u32 {
        self.core.unit()
    }

    /// Which types may describe data in targets' windows.
    pub fn target_types(&self) -> Policy {
        self.core.policy()
    }

    /// Which way operations on a target's window take.
    ///
    /// # Errors
    /// RANK.
    pub fn route(&self, target: i32) -> Result<Route> {
        self.core.route(target)
    }
}
