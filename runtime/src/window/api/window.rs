//! Windows: memory that the ranks of a communicator open to each other (MPI-5.0 chapter 12).

use std::marker::PhantomData;
use std::panic::Location;

use shipable::Element;

use crate::assert::Assert;
use crate::communicator::Communicator;
use crate::engine::Policy;
use crate::error::{Error, Result};
use crate::flavor::{Flavor, Model};
use crate::group::Group;
use crate::memory::{Exposed, Memory};
use crate::object::{Cacheable, Card, attributes, error_handling, sealed};
use crate::process::Process;
use crate::route::Route;
use crate::window::core::Core;
use crate::window::create;
use crate::window::info::Info;
use crate::window::sync::lock::LockType;

use super::epoch::{Chain, Epoch, Passive, in_epoch, in_passive};
use super::local::Local;
use super::raw::Raw;

/// The memory of a window that isn't made over the user's: that of [`Window::allocate`] and [`Window::allocate_shared`] lies in
/// the job's segment, where like ranks reach it directly, and [`Window::create_dynamic`] brings none.
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
    pub(in crate::window) core: Core,
    memory: PhantomData<fn() -> M>,
}

impl sealed::Cacheable for Window {}
impl Cacheable for Window {}

impl Window<Allocated> {
    /// Makes a window of `size` bytes, all zero, in shared memory (MPI-5.0 section 12.2.2). Collective; sizes and units may
    /// differ between ranks. Displacements count `disp_unit` bytes.
    ///
    /// ```
    /// # use longshore::{Info, Window};
    /// # let rank = longshore::init()?;
    /// // Ten doubles at each rank, by their indices.
    /// let mut window = Window::allocate(rank.world(), 10 * 8, 8, &Info::default())?;
    /// window.set(9, 2.5f64)?;
    /// assert_eq!((window.get::<f64>(9)?, window.get::<f64>(0)?), (2.5, 0.0));
    /// window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// SIZE, DISP for the arguments, ARG where the info's assurances don't hold, NO_MEM; the same error's class at all
    /// ranks.
    #[track_caller]
    pub fn allocate(
        communicator: &Communicator,
        size: i64,
        disp_unit: i64,
        info: &Info,
    ) -> Result<Window<Allocated>> {
        let core = create::allocate(communicator, size, disp_unit, info)?;
        Ok(Window { core, memory: PhantomData })
    }

    /// Makes a window whose memory all its ranks load from and store to, each by [`shared_query`](Window::shared_query)
    /// (MPI-5.0 section 12.2.3). Collective; otherwise as [`allocate`](Window::allocate). The ranks' parts follow each other
    /// without a gap, unless the info `alloc_shared_noncontig` lets each have pages of its own.
    ///
    /// Ranks of unlike representation share memory too, since each part says whose representation it has.
    ///
    /// ```
    /// use longshore::{Info, Window};
    ///
    /// let rank = longshore::init()?;
    /// let world = rank.world();
    /// let window = Window::allocate_shared(world, 80, 8, &Info::default())?;
    /// // Everyone's part, written by its neighbour.
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
    /// As [`allocate`](Window::allocate); RMA_SHARED where a rank can't reach the memory of all (rule 17).
    #[track_caller]
    pub fn allocate_shared(
        communicator: &Communicator,
        size: i64,
        disp_unit: i64,
        info: &Info,
    ) -> Result<Window<Allocated>> {
        let core = create::allocate_shared(communicator, size, disp_unit, info)?;
        Ok(Window { core, memory: PhantomData })
    }

    /// Makes a window without memory, to which each rank [attaches](Window::attach) its own as it likes (MPI-5.0 section 12.2.4).
    /// Collective. Displacements are addresses at the target.
    ///
    /// ```
    /// use longshore::{Info, Window};
    ///
    /// let rank = longshore::init()?;
    /// let world = rank.world();
    /// let mut window = Window::create_dynamic(world, &Info::default())?;
    /// let list = window.attach(rank.buffer::<f64>(10)?)?;
    /// // Everyone learns where everyone's list is.
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
    /// As [`allocate`](Window::allocate).
    #[track_caller]
    pub fn create_dynamic(communicator: &Communicator, info: &Info) -> Result<Window<Allocated>> {
        let core = create::create_dynamic(communicator, info)?;
        Ok(Window { core, memory: PhantomData })
    }

    /// Ends the window (MPI-5.0 section 12.2.5). Collective. What is still attached to it goes with it.
    ///
    /// # Errors
    /// RMA_SYNC within an epoch, or while it is exposed (rule 25); PROC_ABORTED where a rank died. The window is gone then as well: nobody
    /// can wait for an exposure any more, and where it is RMA_SYNC the other ranks' free waits for this one's for ever. Else what an
    /// operation came to whose request was dropped behind its epoch.
    #[track_caller]
    pub fn free(self) -> Result<()> {
        self.core.free().map(drop)
    }
}

impl<M: Memory> Window<M> {
    /// Makes a window over memory of this rank's own: a `Vec`, a `Box` or a [`Buffer`](crate::Buffer) (MPI-5.0 section
    /// 12.2.1). Collective. Until [`free`](Window::free) returns it, only the window can reach the memory, so its bytes are
    /// copied to shared memory (and back), where like ranks reach them directly. The other ranks reach
    /// [`Pointed`](crate::Pointed) memory by messages.
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
    /// As [`allocate`](Window::allocate). BUFFER on a rank that emulates another architecture, for a `Vec` or `Box` of
    /// anything but bytes. The memory is lost then.
    #[track_caller]
    pub fn create(
        communicator: &Communicator,
        memory: M,
        disp_unit: i64,
        info: &Info,
    ) -> Result<Window<M>> {
        let core = create::create(communicator, memory, disp_unit, info)?;
        Ok(Window { core, memory: PhantomData })
    }

    /// Ends the window and gives its memory back (MPI-5.0 section 12.2.5). Collective.
    ///
    /// # Errors
    /// As the other `free`; the memory is lost then.
    #[track_caller]
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
    /// ```
    /// # use longshore::{Info, Window};
    /// # let rank = longshore::init()?;
    /// # let world = rank.world();
    /// # let mut window = Window::allocate(world, 64, 8, &Info::default())?;
    /// # let next = (world.rank() + 1) % world.size();
    /// let double = rank.type_of::<f64>()?;
    /// window.fence(|epoch| {
    ///     epoch.put(&[1.5], next, 0, 1, &double)?;
    ///     epoch.put(&[2.5], next, 1, 1, &double)
    /// })?;
    /// assert_eq!((window.get::<f64>(0)?, window.get::<f64>(1)?), (1.5, 2.5));
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// RMA_SYNC while the window is exposed, or another epoch is open (rules 3 and 6). The body's; else the first of its operations
    /// to fail, its target's refusals included; else PROC_ABORTED where a rank died.
    #[track_caller]
    pub fn fence<'env, R>(
        &'env mut self,
        body: impl for<'scope> FnOnce(&Epoch<'scope, 'env>) -> Result<R>,
    ) -> Result<R> {
        self.fence_with(Assert::NONE, Assert::NONE, body)
    }

    /// Likewise, with promises to the two fences. The closing fence is given NOSUCCEED automatically.
    ///
    /// # Errors
    /// As [`fence`](Window::fence); RMA_SYNC for a promise that wasn't kept (rule 9), ASSERT for one that a fence doesn't
    /// take.
    #[track_caller]
    pub fn fence_with<'env, R>(
        &'env mut self,
        opening: Assert,
        closing: Assert,
        body: impl for<'scope> FnOnce(&Epoch<'scope, 'env>) -> Result<R>,
    ) -> Result<R> {
        let allowed = closing.allowed_to_fence();
        allowed.map_err(|error| self.core.failed(error, "fence", None))?;
        let caller = Location::caller();
        self.core.called(caller);
        let close = |core: &Core| {
            core.called(caller);
            core.fence(closing | Assert::NOSUCCEED)
        };
        match self.core.fence(opening) {
            Err(error) if !self.core.is_fenced() => Err(error),
            // Who broke a promise has met the others all the same, and meets them again.
            opened => in_epoch(&self.core, close, |epoch| opened.and_then(|()| body(epoch))),
        }
    }

    /// Runs a chain of epochs, each closed by a fence that opens the next (MPI-5.0 section 12.5.1): n epochs take n + 1 fences.
    /// Collective. Between the epochs, and in them, the own memory is reached by the accessors of [`Chain::local`].
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
    /// # let next = (rank.world().rank() + 1) % rank.world().size();
    /// let sum = window.fences(|chain| {
    ///     chain.epoch(|epoch| epoch.put(&[40i64], next, 0, 1, &long))?;
    ///     let second = [chain.local().get::<i64>(0)? + 2];
    ///     chain.epoch(|epoch| epoch.put(&second, next, 1, 1, &long))?;
    ///     chain.local().get::<i64>(1)
    /// })?;
    /// assert_eq!(sum, 42);
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    #[track_caller]
    pub fn fences<R>(&mut self, body: impl FnOnce(&mut Chain<'_>) -> Result<R>) -> Result<R> {
        self.core.called(Location::caller());
        match self.core.fence(Assert::NONE) {
            Err(error) if !self.core.is_fenced() => Err(error),
            // Whoever is told here of what failed before has met the others all the same, who go on.
            opened => {
                let outcome = body(&mut Chain::new(&self.core));
                self.core.end_fences();
                opened.and(outcome)
            }
        }
    }

    /// Locks a target, runs the operations of `body`, and unlocks it (MPI-5.0 section 12.5.3). Nobody else takes part: the
    /// target need not call anything. Locks of several targets are nested.
    ///
    /// All operations on the target are done when it returns. The unlock takes place whatever `body` returns. Locks are fair:
    /// who asks first gets it first.
    ///
    /// # Errors
    /// RMA_SYNC within another epoch (rule 3), for a target that this rank has locked (rule 5) or that exposed its window
    /// (rule 6), or where the info key `no_locks` is true (rule 26); RANK, for PROC_NULL too. The body's; else the first of its operations
    /// to fail; else PROC_ABORTED where the target died.
    ///
    /// ```
    /// use longshore::{Info, LockType, Window};
    ///
    /// let rank = longshore::init()?;
    /// let window = Window::allocate(rank.world(), 8, 8, &Info::default())?;
    /// let long = rank.type_of::<i64>()?;
    /// window.lock(0, LockType::Exclusive, |epoch| epoch.put(&[7i64], 0, 0, 1, &long))?;
    /// # assert_eq!(window.get::<i64>(0)?, 7);
    /// window.free()?;
    /// rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    #[inline]
    pub fn lock<'env, R>(
        &'env self,
        target: i32,
        lock_type: LockType,
        body: impl for<'scope> FnOnce(&Passive<'scope, 'env>) -> Result<R>,
    ) -> Result<R> {
        self.lock_with(target, lock_type, Assert::NONE, body)
    }

    /// Likewise, with NOCHECK if the caller knows that no lock conflicts: none is taken then.
    ///
    /// # Errors
    /// As [`lock`](Window::lock); ASSERT for another promise (rule 10).
    #[inline]
    pub fn lock_with<'env, R>(
        &'env self,
        target: i32,
        lock_type: LockType,
        assert: Assert,
        body: impl for<'scope> FnOnce(&Passive<'scope, 'env>) -> Result<R>,
    ) -> Result<R> {
        self.core.lock(target, lock_type, assert)?;
        in_passive(&self.core, |core| core.unlock(target), body)
    }

    /// Locks all targets, shared, runs the operations of `body`, and unlocks them (MPI-5.0 section 12.5.3). Not collective.
    /// It costs the same however many targets there are: each lock is taken by the first operation that needs it. Only of a
    /// [shared](Window::allocate_shared) window all are taken at once, for loads and stores.
    ///
    /// # Errors
    /// As [`lock`](Window::lock).
    ///
    /// ```
    /// # use longshore::{Info, Window};
    /// # let rank = longshore::init()?;
    /// # let window = Window::allocate(rank.world(), 8, 8, &Info::default())?;
    /// # let long = rank.type_of::<i64>()?;
    /// window.lock_all(|epoch| {
    ///     for target in 0..rank.world().size() {
    ///         epoch.flush(target, |epoch| epoch.put(&[7i64], target, 0, 1, &long))?;
    ///     }
    ///     Ok(())
    /// })?;
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    #[inline]
    pub fn lock_all<'env, R>(
        &'env self,
        body: impl for<'scope> FnOnce(&Passive<'scope, 'env>) -> Result<R>,
    ) -> Result<R> {
        self.lock_all_with(Assert::NONE, body)
    }

    /// Likewise, with NOCHECK if the caller knows that no lock conflicts.
    ///
    /// # Errors
    /// As [`lock_with`](Window::lock_with).
    #[inline]
    pub fn lock_all_with<'env, R>(
        &'env self,
        assert: Assert,
        body: impl for<'scope> FnOnce(&Passive<'scope, 'env>) -> Result<R>,
    ) -> Result<R> {
        self.core.lock_all(assert)?;
        in_passive(&self.core, Core::unlock_all, body)
    }

    /// Waits until all ranks of a group have [posted](Window::post), runs operations on them, and completes (MPI-5.0
    /// section 12.5.2): all operations are done when it returns. The complete takes place whatever `body` returns.
    ///
    /// # Errors
    /// RMA_SYNC within another epoch (rule 3), and for operations on other targets (rule 2); GROUP for a group with processes
    /// that the window hasn't; ASSERT for another promise than NOCHECK. The body's; else the first of its operations to
    /// fail; else PROC_ABORTED where a target died.
    ///
    /// ```
    /// use longshore::{Assert, Info, Window};
    ///
    /// let rank = longshore::init()?;
    /// let world = rank.world();
    /// let window = Window::allocate(world, 8, 8, &Info::default())?;
    /// let long = rank.type_of::<i64>()?;
    /// // To the next rank, and from the one before.
    /// let (me, size) = (world.rank(), world.size());
    /// let (next, before) = ((me + 1) % size, (me + size - 1) % size);
    /// window.post(&world.group().incl(&[before])?, Assert::NONE)?;
    /// let value = [i64::from(me)];
    /// window.start(&world.group().incl(&[next])?, Assert::NONE, |epoch| {
    ///     epoch.put(&value, next, 0, 1, &long)
    /// })?;
    /// window.wait()?;
    /// assert_eq!(window.get::<i64>(0)?, i64::from(before));
    /// window.free()?;
    /// rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    #[track_caller]
    pub fn start<'env, R>(
        &'env self,
        group: &Group,
        assert: Assert,
        body: impl for<'scope> FnOnce(&Epoch<'scope, 'env>) -> Result<R>,
    ) -> Result<R> {
        self.core.called(Location::caller());
        self.core.start(group, assert)?;
        in_epoch(&self.core, Core::complete, body)
    }

    /// Exposes this rank's memory to the ranks of a group that start (MPI-5.0 section 12.5.2). Waits for nobody, but for the unlock of
    /// an unlike rank that is on its way.
    ///
    /// # Errors
    /// RMA_SYNC while it is exposed (rule 4) or locked (rule 6), or for a promise that wasn't kept (rule 9); GROUP for a group with
    /// processes that the window hasn't; ASSERT.
    #[track_caller]
    pub fn post(&self, group: &Group, assert: Assert) -> Result<()> {
        self.core.called(Location::caller());
        self.core.post(group, assert)
    }

    /// Waits until all ranks of the post's group have completed (MPI-5.0 section 12.5.2): their operations on this rank's memory are
    /// done.
    ///
    /// # Errors
    /// RMA_SYNC without a post (rule 4); PROC_ABORTED where one of them died.
    #[track_caller]
    pub fn wait(&self) -> Result<()> {
        self.core.called(Location::caller());
        self.core.wait()
    }

    /// Whether all ranks of the post's group have completed, without waiting for it (MPI-5.0 section 12.5.2). If so, the exposure has
    /// ended.
    ///
    /// # Errors
    /// As [`wait`](Window::wait).
    pub fn test(&self) -> Result<bool> {
        self.core.test()
    }

    /// Accessors to this rank's own memory, which copy.
    pub fn local(&self) -> Local<'_> {
        Local::new(&self.core)
    }

    /// A rank's part of a shared window, to be loaded from and stored to (MPI-5.0 section 12.2.3). With PROC_NULL it is that
    /// of the lowest rank whose size isn't 0; where all are, rank 0's. As MPI has it, what the ranks load and store at the
    /// same time is theirs to order: by a lock, by a barrier between two [`sync`](Passive::sync)s, or by a fence.
    ///
    /// # Errors
    /// RMA_FLAVOR on a window that isn't shared, which MPI allows since 4.1 (rule 16); RANK.
    pub fn shared_query(&self, rank: i32) -> Result<Local<'_>> {
        Local::shared(&self.core, rank)
    }

    /// The element at a displacement of this rank's own memory; see [`Local::get`].
    ///
    /// # Errors
    /// As [`Local::get`].
    #[track_caller]
    pub fn get<T: Element>(&self, displacement: i64) -> Result<T> {
        self.local().get(displacement)
    }

    /// Replaces the element at a displacement of this rank's own memory; see [`Local::set`].
    ///
    /// # Errors
    /// As [`Local::set`].
    #[track_caller]
    pub fn set<T: Element>(&mut self, displacement: i64, value: T) -> Result<()> {
        self.local().set(displacement, value)
    }

    /// Reads elements of this rank's own memory; see [`Local::read`].
    ///
    /// # Errors
    /// As [`Local::read`].
    #[track_caller]
    pub fn read<T: Element>(&self, displacement: i64, values: &mut [T]) -> Result<()> {
        self.local().read(displacement, values)
    }

    /// Writes elements of this rank's own memory; see [`Local::write`].
    ///
    /// # Errors
    /// As [`Local::write`].
    #[track_caller]
    pub fn write<T: Element>(&mut self, displacement: i64, values: &[T]) -> Result<()> {
        self.local().write(displacement, values)
    }

    /// The calls of epochs without scopes, with pointers to the origin's memory (MPI-5.0 sections 12.3 and 12.5): what this type's own
    /// are made of.
    ///
    /// ```
    /// use longshore::{Info, LockType, Window, Assert};
    ///
    /// let rank = longshore::init()?;
    /// let window = Window::allocate(rank.world(), 8, 8, &Info::default())?;
    /// let (long, value) = (rank.type_of::<i64>()?, 7i64);
    /// let calls = window.raw();
    /// calls.lock(0, LockType::Exclusive, Assert::NONE)?;
    /// // SAFETY: the value stays where it is until the unlock has returned.
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

    fn raised(&self, error: Error, call: &'static str) -> Error {
        self.core.failed(error, call, None)
    }

    /// The group of the communicator that it was made on (MPI-5.0 section 12.2.8).
    pub fn group(&self) -> &Group {
        self.core.parts().peers().communicator().group()
    }

    /// The window's number, as errors name it.
    pub fn number(&self) -> u32 {
        self.core.parts().id()
    }

    /// This rank's size in bytes.
    pub fn size(&self) -> u64 {
        self.core.parts().memory().measures().size
    }

    /// This rank's displacement unit in bytes.
    pub fn disp_unit(&self) -> u32 {
        self.core.parts().memory().measures().unit
    }

    /// The hints in use, with those that were left to their defaults (MPI-5.0 section 12.2.8).
    pub fn info(&self) -> Info {
        self.core.parts().info()
    }

    /// Changes hints: `accumulate_ordering` and `accumulate_ops` (MPI-5.0 section 12.2.8). Collective. The others stay what they were when
    /// the window was made.
    ///
    /// # Errors
    /// ARG where ranks give different ones; PROC_ABORTED where a rank died.
    #[track_caller]
    pub fn set_info(&self, info: &Info) -> Result<()> {
        self.core.set_info(info)
    }

    /// How it was made: the attribute MPI_WIN_CREATE_FLAVOR.
    pub fn flavor(&self) -> Flavor {
        self.core.parts().memory().flavor()
    }

    /// The attribute MPI_WIN_MODEL: [`Model::Unified`], as all windows are here. Whatever way an operation takes, it ends in the
    /// very memory that the target's accessors read.
    pub fn model(&self) -> Model {
        Model::Unified
    }

    /// Where this rank's memory begins: the attribute MPI_WIN_BASE. What holds for [`Local::base`] holds for it.
    pub fn base(&self) -> *mut u8 {
        self.local().base()
    }

    /// Which types may describe data in targets' windows.
    pub fn target_types(&self) -> Policy {
        self.core.parts().policy()
    }

    /// Which way operations on a target's window take.
    ///
    /// # Errors
    /// RANK.
    pub fn route(&self, target: i32) -> Result<Route> {
        self.core.route(target)
    }
}
