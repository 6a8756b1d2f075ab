//! Windows: memory that the ranks of a communicator open to each other (MPI-5.0 chapter 12).

mod epochs;
mod misplaced;

use std::marker::PhantomData;

use shipable::Element;

use crate::check::Caller;
use crate::communicator::Communicator;
use crate::engine::Policy;
use crate::error::{Error, ErrorKind, Result};
use crate::flavor::{Flavor, Model};
use crate::group::Group;
use crate::memory::{Exposed, Memory};
use crate::object::{Cacheable, Card, attributes, error_handling, sealed};
use crate::process::Process;
use crate::raw::Pointed;
use crate::route::Route;
use crate::window::core::Core;
use crate::window::create;
use crate::window::info::Info;

use super::local::Local;
use super::raw::Raw;

/// Marks a window that has no memory of the user. The memory of [`Window::allocate`] and
/// [`Window::allocate_shared`] is in the job's shared memory. A window of
/// [`Window::create_dynamic`] has no memory until some is attached.
#[derive(Debug)]
pub enum Allocated {}

/// A window: memory of each rank of a communicator, into which all its ranks can put and from which
/// they can get.
///
/// A window over the user's memory gives it back when it is freed. A window that is dropped instead
/// stays open to the other ranks, with its memory, until the end of the job.
///
/// A panic within an epoch poisons the window. If the program catches the panic, every later epoch,
/// operation, `set_info` and `free` returns an error of class WIN, at the other ranks too.
///
/// Ranks of one host with the same data representation are called *like ranks*, and those with the
/// same byte order *related ranks*. They access each other's memory directly if it is in shared
/// memory. Between related ranks that aren't like, data of types that differ are converted.
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
    pub(in crate::window) core: Core,
    memory: PhantomData<fn() -> M>,
}

impl sealed::Cacheable for Window {}
impl Cacheable for Window {}

impl Window<Allocated> {
    /// Makes a window of `size` bytes in shared memory, all zero (MPI-5.0 section 12.2.2).
    /// Collective. Displacements count `disp_unit` bytes. Sizes and units may differ between ranks.
    ///
    /// ```
    /// # use longshore::{Info, Window};
    /// # let rank = longshore::init()?;
    /// // Ten doubles at each rank, addressed by their indices.
    /// let mut window = Window::allocate(rank.world(), 10 * 8, 8, &Info::default())?;
    /// window.set(9, 2.5f64)?;
    /// assert_eq!((window.get::<f64>(9)?, window.get::<f64>(0)?), (2.5, 0.0));
    /// window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// All ranks return an error of the same class:
    /// - SIZE or DISP for a wrong argument;
    /// - ARG if an assurance in the info doesn't hold;
    /// - NO_MEM.
    #[track_caller]
    #[doc(alias = "MPI_Win_allocate")]
    pub fn allocate(
        communicator: &Communicator,
        size: i64,
        disp_unit: i64,
        info: &Info,
    ) -> Result<Window<Allocated>> {
        let core = create::allocate(communicator, size, disp_unit, info)?;
        Ok(Window { core, memory: PhantomData })
    }

    /// Makes a window whose memory all its ranks can load from and store to (MPI-5.0 section
    /// 12.2.3). Collective. Each rank gets access to a rank's part by
    /// [`shared_query`](Window::shared_query). The arguments are those of
    /// [`allocate`](Window::allocate).
    ///
    /// The ranks' parts are contiguous, unless the info `alloc_shared_noncontig` allows each part
    /// to have its own pages.
    ///
    /// Ranks with different representations can share memory, since each part reports its owner's
    /// representation.
    ///
    /// ```
    /// use longshore::{Info, Window};
    ///
    /// let rank = longshore::init()?;
    /// let world = rank.world();
    /// let window = Window::allocate_shared(world, 80, 8, &Info::default())?;
    /// // Each rank writes the part of the next rank.
    /// let next = window.shared_query((world.rank() + 1) % world.size())?;
    /// next.set(3, 2.5f64)?;
    /// window.lock_all(|epoch| epoch.sync())?;
    /// world.barrier()?;
    /// assert_eq!(window.get::<f64>(3)?, 2.5);
    /// window.free()?;
    /// rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`allocate`](Window::allocate), and RMA_SHARED if a rank can't map the memory of
    /// all (rule 17).
    #[track_caller]
    #[doc(alias = "MPI_Win_allocate_shared")]
    pub fn allocate_shared(
        communicator: &Communicator,
        size: i64,
        disp_unit: i64,
        info: &Info,
    ) -> Result<Window<Allocated>> {
        let core = create::allocate_shared(communicator, size, disp_unit, info)?;
        Ok(Window { core, memory: PhantomData })
    }

    /// Makes a window without memory, to which each rank [attaches](Window::attach) memory later
    /// (MPI-5.0 section 12.2.4). Collective. Displacements are addresses at the target.
    ///
    /// ```
    /// use longshore::{Info, Window};
    ///
    /// let rank = longshore::init()?;
    /// let world = rank.world();
    /// let mut window = Window::create_dynamic(world, &Info::default())?;
    /// let list = window.attach(rank.buffer::<f64>(10)?)?;
    /// // Each rank learns the address of every list.
    /// let lists = world.allgather(&[list.address()])?;
    /// let next = (world.rank() + 1) % world.size();
    /// let double = rank.type_of::<f64>()?;
    /// window.fence(|epoch| epoch.put(&[2.5], next, lists[next as usize] + 8 * 3, 1, &double))?;
    /// assert_eq!(window.get::<f64>(list.address() + 8 * 3)?, 2.5);
    /// assert_eq!(window.detach(list)?.get(3)?, 2.5);
    /// window.free()?;
    /// rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`allocate`](Window::allocate).
    #[track_caller]
    #[doc(alias = "MPI_Win_create_dynamic")]
    pub fn create_dynamic(communicator: &Communicator, info: &Info) -> Result<Window<Allocated>> {
        let core = create::create_dynamic(communicator, info)?;
        Ok(Window { core, memory: PhantomData })
    }

    /// Frees the window (MPI-5.0 section 12.2.5). Collective. Memory that is still attached to it
    /// is freed too.
    ///
    /// # Errors
    /// - RMA_SYNC within an epoch, or while the window is exposed (rule 25). The other ranks'
    ///   `free` then waits for ever.
    /// - PROC_ABORTED if a rank died.
    /// - Otherwise the error of an operation whose request was dropped after its epoch.
    ///
    /// The window is lost in each case.
    #[track_caller]
    #[doc(alias = "MPI_Win_free")]
    pub fn free(self) -> Result<()> {
        self.core.free().map(drop)
    }
}

impl<M: Memory> Window<M> {
    /// Makes a window over memory of the user: a `Vec`, a `Box` or a [`Buffer`](crate::Buffer)
    /// (MPI-5.0 section 12.2.1). Collective. [`free`](Window::free) gives the memory back.
    ///
    /// Until then only the window can reach the memory. Its bytes are moved to shared memory if
    /// there are related ranks, which access it directly there. [`Pointed`](crate::Pointed) memory
    /// stays in place, and the other ranks reach it by messages.
    ///
    /// ```
    /// # use longshore::{Info, Window};
    /// # let rank = longshore::init()?;
    /// # let world = rank.world();
    /// let mut window = Window::create(world, vec![1.0f64; 10], 8, &Info::default())?;
    /// let double = rank.type_of::<f64>()?;
    /// let next = (world.rank() + 1) % world.size();
    /// window.fence(|epoch| epoch.put(&[2.5], next, 4, 1, &double))?;
    /// let values = window.free()?;
    /// assert_eq!(values[3..6], [1.0, 2.5, 1.0]);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`allocate`](Window::allocate). BUFFER on a rank that emulates another
    /// architecture, for a `Vec` or `Box` with elements other than bytes. On an error the memory is
    /// lost.
    #[track_caller]
    #[doc(alias = "MPI_Win_create")]
    pub fn create(
        communicator: &Communicator,
        memory: M,
        disp_unit: i64,
        info: &Info,
    ) -> Result<Window<M>> {
        Window::create_checked(communicator, Ok(memory), disp_unit, info)
    }

    /// As [`create`](Window::create), for a rank that may have an error in place of memory, such as
    /// an interface in another language that found an argument wrong. All ranks get the error, so
    /// none of them waits for this one.
    ///
    /// ```
    /// use longshore::{Class, ErrorKind, Info, Window};
    ///
    /// # let rank = longshore::init()?;
    /// let world = rank.world();
    /// let memory = match world.rank() {
    ///     0 => Err(ErrorKind::Count(-1)),
    ///     _ => Ok(vec![0u8; 8]),
    /// };
    /// let made = Window::create_checked(world, memory, 1, &Info::default());
    /// assert_eq!(made.err().map(|error| error.class()), Some(Class::Count));
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`create`](Window::create), and the error of any rank.
    #[track_caller]
    #[doc(alias = "MPI_Win_create")]
    pub fn create_checked(
        communicator: &Communicator,
        memory: Result<M, ErrorKind>,
        disp_unit: i64,
        info: &Info,
    ) -> Result<Window<M>> {
        let core = create::create(communicator, memory, disp_unit, info)?;
        Ok(Window { core, memory: PhantomData })
    }

    /// Frees the window, and gives its memory back (MPI-5.0 section 12.2.5). Collective.
    ///
    /// # Errors
    /// - RMA_SYNC within an epoch, or while the window is exposed (rule 25). The other ranks'
    ///   `free` then waits for ever.
    /// - PROC_ABORTED if a rank died.
    /// - Otherwise the error of an operation whose request was dropped after its epoch.
    ///
    /// The window and its memory are lost in each case.
    #[track_caller]
    #[doc(alias = "MPI_Win_free")]
    pub fn free(self) -> Result<M> {
        self.core.free().and_then(|exposed: Exposed| create::give_back(exposed))
    }
}

impl<M> Window<M> {
    /// Checks that [`free`](Window::free) wouldn't be refused now (rule 25). An interface whose
    /// windows outlive a refused free, as MPI's do, calls it first.
    ///
    /// ```
    /// # use longshore::{Assert, Info, Window};
    /// # let rank = longshore::init()?;
    /// let window = Window::allocate(rank.world(), 8, 8, &Info::default())?;
    /// window.raw().lock_all(Assert::NONE)?;
    /// assert!(window.may_free().is_err());
    /// window.raw().unlock_all()?;
    /// window.may_free()?;
    /// window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// RMA_SYNC within an epoch, or while the window is exposed.
    #[track_caller]
    pub fn may_free(&self) -> Result<()> {
        self.core.check_free()
    }
}

impl From<Window<Pointed>> for Window<Allocated> {
    /// The same window, whose memory the program still has by its pointer. So windows of all
    /// flavors have one type, as in a C interface.
    fn from(window: Window<Pointed>) -> Window<Allocated> {
        Window { core: window.core, memory: PhantomData }
    }
}

impl<M> Window<M> {
    /// Accessors to this rank's own memory, which copy elements.
    ///
    /// ```
    /// # use longshore::{Info, Window};
    /// # let rank = longshore::init()?;
    /// let window = Window::allocate(rank.world(), 16, 8, &Info::default())?;
    /// window.local().set(1, 2.5)?;
    /// assert_eq!(window.local().get::<f64>(1)?, 2.5);
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    pub fn local(&self) -> Local<'_> {
        Local::new(&self.core)
    }

    /// Accessors to a rank's memory, for loads and stores (MPI-5.0 section 12.2.6).
    ///
    /// All ranks can load from all of a shared window. In an allocated or created window a rank can
    /// load from its own memory, and from that of like ranks that it reaches directly. The size is
    /// 0 where it can't, and in a dynamic window.
    ///
    /// With PROC_NULL it is the memory of the lowest rank whose size isn't 0. If all sizes are 0,
    /// it is that of rank 0.
    ///
    /// As in MPI, the program must order conflicting loads and stores of different ranks. It can
    /// use a lock, a fence, or a barrier between two calls of [`sync`](crate::Passive::sync).
    ///
    /// # Errors
    /// RANK for a rank outside of the window.
    #[track_caller]
    #[doc(alias = "MPI_Win_shared_query")]
    pub fn shared_query(&self, rank: i32) -> Result<Local<'_>> {
        Local::shared(&self.core, rank)
    }

    /// The element at a displacement of this rank's own memory; see [`Local::get`].
    ///
    /// # Errors
    /// Those of [`Local::get`].
    #[track_caller]
    pub fn get<T: Element>(&self, displacement: i64) -> Result<T> {
        self.local().get(displacement)
    }

    /// Replaces the element at a displacement of this rank's own memory; see [`Local::set`].
    ///
    /// # Errors
    /// Those of [`Local::set`].
    #[track_caller]
    pub fn set<T: Element>(&mut self, displacement: i64, value: T) -> Result<()> {
        self.local().set(displacement, value)
    }

    /// Reads elements of this rank's own memory; see [`Local::read`], and the example of
    /// [`write`](Window::write).
    ///
    /// # Errors
    /// Those of [`Local::read`].
    #[track_caller]
    pub fn read<T: Element>(&self, displacement: i64, values: &mut [T]) -> Result<()> {
        self.local().read(displacement, values)
    }

    /// Writes elements of this rank's own memory; see [`Local::write`].
    ///
    /// ```
    /// # use longshore::{Info, Window};
    /// # let rank = longshore::init()?;
    /// # let world = rank.world();
    /// # let mut window = Window::allocate(world, 80, 8, &Info::default())?;
    /// window.write(2, &[1.5, 2.5])?;
    /// let mut values = [0.0; 2];
    /// window.read(2, &mut values)?;
    /// assert_eq!(values, [1.5, 2.5]);
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Local::write`].
    #[track_caller]
    pub fn write<T: Element>(&mut self, displacement: i64, values: &[T]) -> Result<()> {
        self.local().write(displacement, values)
    }

    /// The calls of epochs without scopes, with pointers to the origin's memory (MPI-5.0 sections
    /// 12.3 and 12.5). The calls of this type are made of them.
    ///
    /// ```
    /// use longshore::{Info, LockType, Window, Assert};
    ///
    /// let rank = longshore::init()?;
    /// let window = Window::allocate(rank.world(), 8, 8, &Info::default())?;
    /// let (long, value) = (rank.type_of::<i64>()?, 7i64);
    /// let calls = window.raw();
    /// calls.lock(0, LockType::Exclusive, Assert::NONE)?;
    /// // SAFETY: the value stays in place until the unlock has returned.
    /// unsafe { calls.put((&raw const value).cast(), 1, &long, 0, 0, 1, &long)? };
    /// calls.unlock(0)?;
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    pub fn raw(&self) -> Raw<'_> {
        Raw::new(&self.core)
    }

    attributes!(Window);
    error_handling!();

    fn process(&self) -> &Process {
        self.core.parts().process()
    }

    fn card(&self) -> &Card {
        self.core.card()
    }

    fn raised(&self, error: Error, call: &'static str, caller: Caller) -> Error {
        self.core.failed(error, call, None, caller)
    }

    /// The group of the window's communicator (MPI-5.0 section 12.2.8).
    ///
    /// ```
    /// # use longshore::{Info, Window};
    /// # let rank = longshore::init()?;
    /// let window = Window::allocate(rank.world(), 16, 8, &Info::default())?;
    /// assert!(window.group() == rank.world().group());
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    #[doc(alias = "MPI_Win_get_group")]
    pub fn group(&self) -> &Group {
        self.core.parts().peers().communicator().group()
    }

    /// The window's number, by which errors name it.
    ///
    /// ```
    /// # use longshore::{Flavor, Info, Model, Window};
    /// # let rank = longshore::init()?;
    /// # let world = rank.world();
    /// # let window = Window::allocate(world, 80, 8, &Info::default())?;
    /// println!("window {} of {} bytes", window.number(), window.size());
    /// assert_eq!((window.disp_unit(), window.size()), (8, 80));
    /// assert_eq!((window.flavor(), window.model()), (Flavor::Allocate, Model::Unified));
    /// assert!(!window.base().is_null());
    /// let (route, types) = (window.route(world.rank())?, window.target_types());
    /// println!("by {route:?}, with {types:?}");
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    pub fn number(&self) -> u32 {
        self.core.parts().id()
    }

    /// The size of this rank's memory in bytes.
    #[doc(alias = "MPI_Win_get_attr")]
    pub fn size(&self) -> i64 {
        self.core.parts().memory().measures().size as i64
    }

    /// This rank's displacement unit in bytes.
    #[doc(alias = "MPI_Win_get_attr")]
    pub fn disp_unit(&self) -> i64 {
        self.core.parts().memory().measures().unit.into()
    }

    /// The hints in use, including those with default values (MPI-5.0 section 12.2.8).
    #[doc(alias = "MPI_Win_get_info")]
    pub fn info(&self) -> Info {
        self.core.parts().info()
    }

    /// Changes the hints `accumulate_ordering`, `accumulate_ops`, `no_locks`, `same_size`,
    /// `same_disp_unit` and `alloc_shared_noncontig` (MPI-5.0 section 12.2.8). Collective. The last
    /// three matter only when a window is made, so that their new values are only kept. Other
    /// hints keep the values that they had at the window's creation.
    ///
    /// ```
    /// # use longshore::{Info, Window};
    /// # let rank = longshore::init()?;
    /// # let world = rank.world();
    /// # let window = Window::allocate(world, 80, 8, &Info::default())?;
    /// let hints = window.info();
    /// window.set_info(&hints)?;
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// ARG if ranks give different hints, PROC_ABORTED if a rank died.
    #[track_caller]
    #[doc(alias = "MPI_Win_set_info")]
    pub fn set_info(&self, info: &Info) -> Result<()> {
        self.core.set_info(info)
    }

    /// The call that made the window: the attribute MPI_WIN_CREATE_FLAVOR.
    #[doc(alias = "MPI_Win_get_attr")]
    pub fn flavor(&self) -> Flavor {
        self.core.parts().memory().flavor()
    }

    /// The attribute MPI_WIN_MODEL, always [`Model::Unified`]: every route ends in the memory that
    /// the target's accessors read.
    #[doc(alias = "MPI_Win_get_attr")]
    pub fn model(&self) -> Model {
        Model::Unified
    }

    /// The address of this rank's memory: the attribute MPI_WIN_BASE. [`Local::base`] has the rules
    /// for its use.
    #[doc(alias = "MPI_Win_get_attr")]
    pub fn base(&self) -> *mut u8 {
        self.local().base()
    }

    /// The types that may describe data in targets' windows.
    pub fn target_types(&self) -> Policy {
        self.core.parts().policy()
    }

    /// The route of operations to a target's window.
    ///
    /// # Errors
    /// RANK for a rank outside of the window.
    #[track_caller]
    pub fn route(&self, target: i32) -> Result<Route> {
        self.core.route(target)
    }
}
