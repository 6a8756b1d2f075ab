//! The epochs of a window, as scopes (MPI-5.0 section 12.5).

use std::panic::Location;

use super::Window;
use crate::assert::Assert;
use crate::check::Caller;
use crate::error::Result;
use crate::group::Group;
use crate::window::api::epoch::{Chain, Epoch, Passive, in_epoch, in_passive};
use crate::window::core::Core;
use crate::window::sync::lock::LockType;

/// Poisons the window when dropped: a panic ends a chain of fences whose other ranks go on.
struct PoisonOnDrop<'a>(&'a Core);

impl Drop for PoisonOnDrop<'_> {
    fn drop(&mut self) {
        self.0.poison();
    }
}

impl<M> Window<M> {
    /// Runs one fence epoch: a fence, the operations of `body`, and a fence that closes the epoch
    /// (MPI-5.0 section 12.5.1). Collective.
    ///
    /// When it returns, all operations of all ranks are done, and their buffers aren't borrowed any
    /// more. The closing fence takes place even if `body` returns an error.
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
    /// RMA_SYNC while the window is exposed, or within another epoch (rules 3 and 6). After the
    /// opening fence, the first of these:
    /// 1. the error of `body`;
    /// 2. the error of the first operation that failed, including its target's refusal;
    /// 3. PROC_ABORTED if a rank died.
    #[track_caller]
    #[doc(alias = "MPI_Win_fence")]
    pub fn fence<'env, R>(
        &'env mut self,
        body: impl for<'scope> FnOnce(&Epoch<'scope, 'env>) -> Result<R>,
    ) -> Result<R> {
        self.fence_with(Assert::NONE, Assert::NONE, body)
    }

    /// Runs one fence epoch, as [`fence`](Window::fence) does, with asserts for the two fences. The
    /// closing fence always has NOSUCCEED.
    ///
    /// ```
    /// # use longshore::{Assert, Info, Window};
    /// # let rank = longshore::init()?;
    /// # let world = rank.world();
    /// # let mut window = Window::allocate(world, 80, 8, &Info::default())?;
    /// let next = (world.rank() + 1) % world.size();
    /// let double = rank.type_of::<f64>()?;
    /// let asserts = (Assert::NOPRECEDE, Assert::NOSUCCEED);
    /// window.fence_with(asserts.0, asserts.1, |epoch| epoch.put(&[2.5], next, 3, 1, &double))?;
    /// assert_eq!(window.get::<f64>(3)?, 2.5);
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`fence`](Window::fence), RMA_SYNC for a false assert (rule 9), and ASSERT for an
    /// assert that a fence doesn't take.
    #[track_caller]
    #[doc(alias = "MPI_Win_fence")]
    pub fn fence_with<'env, R>(
        &'env mut self,
        opening: Assert,
        closing: Assert,
        body: impl for<'scope> FnOnce(&Epoch<'scope, 'env>) -> Result<R>,
    ) -> Result<R> {
        let allowed = closing.allowed_to_fence();
        let caller = Location::caller();
        allowed.map_err(|error| self.core.failed(error, "fence", None, caller))?;
        self.core.called(caller);
        let close = |core: &Core| {
            core.called(caller);
            core.fence(closing | Assert::NOSUCCEED)
        };
        match self.open_by_fence(opening, caller) {
            Err(error) if !self.core.is_fenced() => Err(error),
            // A rank whose assert was false has joined the opening fence, so it must close it too.
            opened => {
                let body = |epoch: &Epoch<'_, 'env>| opened.and_then(|()| body(epoch));
                in_epoch(&self.core, close, body)
                    .map_err(|failed| self.core.epoch_failed(failed, caller))
            }
        }
    }

    /// Runs a chain of fence epochs, in which each closing fence opens the next epoch (MPI-5.0
    /// section 12.5.1): n epochs take n + 1 fences. Collective. [`Chain::local`] gives accessors to
    /// this rank's memory, in and between the epochs.
    ///
    /// If an epoch fails, its fence has taken place, and the chain can go on. A rank that ends its
    /// chain early leaves the other ranks waiting in their next fence.
    ///
    /// # Errors
    /// Those of [`fence`](Window::fence).
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
    #[doc(alias = "MPI_Win_fence")]
    pub fn fences<R>(&mut self, body: impl FnOnce(&mut Chain<'_>) -> Result<R>) -> Result<R> {
        let caller = Location::caller();
        self.core.called(caller);
        match self.open_by_fence(Assert::NONE, caller) {
            Err(error) if !self.core.is_fenced() => Err(error),
            // A rank that returns an earlier error here has joined the opening fence, and the
            // others go on.
            opened => {
                let guard = PoisonOnDrop(&self.core);
                let outcome = body(&mut Chain::new(&self.core));
                std::mem::forget(guard);
                self.core.end_fences();
                opened.and(outcome)
            }
        }
    }

    fn open_by_fence(&self, assert: Assert, caller: Caller) -> Result<()> {
        self.core.fence(assert).map_err(|error| self.core.raise(error, caller))
    }

    /// Locks a target, runs the operations of `body`, and unlocks it (MPI-5.0 section 12.5.3). Not
    /// collective: the target need not call anything. Locks of several targets are nested.
    ///
    /// When it returns, all operations on the target are done. The unlock takes place even if
    /// `body` returns an error. Locks are fair: they are granted in the order of the requests.
    ///
    /// # Errors
    /// - RMA_SYNC within another epoch (rule 3).
    /// - RMA_SYNC for a target that this rank has locked (rule 5), or that exposes its window
    ///   (rule 6).
    /// - RMA_SYNC if the info key `no_locks` is true (rule 26).
    /// - RANK for a rank outside of the window, and for PROC_NULL.
    ///
    /// After the lock, the first of these:
    /// 1. the error of `body`;
    /// 2. the error of the first operation that failed;
    /// 3. PROC_ABORTED if the target died.
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
    #[track_caller]
    #[doc(alias = "MPI_Win_lock")]
    #[doc(alias = "MPI_Win_unlock")]
    pub fn lock<'env, R>(
        &'env self,
        target: i32,
        lock_type: LockType,
        body: impl for<'scope> FnOnce(&Passive<'scope, 'env>) -> Result<R>,
    ) -> Result<R> {
        self.lock_with(target, lock_type, Assert::NONE, body)
    }

    /// Runs a lock epoch, as [`lock`](Window::lock) does, with an assert. With NOCHECK the program
    /// promises that no lock conflicts, so none is taken.
    ///
    /// ```
    /// # use longshore::{Assert, Info, LockType, Window};
    /// # let rank = longshore::init()?;
    /// # let world = rank.world();
    /// # let window = Window::allocate(world, 80, 8, &Info::default())?;
    /// // Each rank puts to itself only, so no lock conflicts.
    /// let (me, double) = (world.rank(), rank.type_of::<f64>()?);
    /// let put = window.lock_with(me, LockType::Exclusive, Assert::NOCHECK, |epoch| {
    ///     epoch.put(&[2.5], me, 3, 1, &double)
    /// });
    /// put?;
    /// assert_eq!(window.get::<f64>(3)?, 2.5);
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`lock`](Window::lock), and ASSERT for any other assert (rule 10).
    #[inline]
    #[track_caller]
    #[doc(alias = "MPI_Win_lock")]
    pub fn lock_with<'env, R>(
        &'env self,
        target: i32,
        lock_type: LockType,
        assert: Assert,
        body: impl for<'scope> FnOnce(&Passive<'scope, 'env>) -> Result<R>,
    ) -> Result<R> {
        let caller = Location::caller();
        self.core.lock(target, lock_type, assert, caller)?;
        in_passive(&self.core, |core, caller| core.unlock(target, caller), body)
    }

    /// Locks all targets with shared locks, runs the operations of `body`, and unlocks them
    /// (MPI-5.0 section 12.5.3). Not collective.
    ///
    /// Its cost doesn't depend on the number of targets: the first operation on a target takes its
    /// lock. Only in a [shared](Window::allocate_shared) window all locks are taken at once, since
    /// loads and stores need them.
    ///
    /// # Errors
    /// Those of [`lock`](Window::lock).
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
    #[track_caller]
    #[doc(alias = "MPI_Win_lock_all")]
    #[doc(alias = "MPI_Win_unlock_all")]
    pub fn lock_all<'env, R>(
        &'env self,
        body: impl for<'scope> FnOnce(&Passive<'scope, 'env>) -> Result<R>,
    ) -> Result<R> {
        self.lock_all_with(Assert::NONE, body)
    }

    /// Locks all targets, as [`lock_all`](Window::lock_all) does, with an assert. With NOCHECK the
    /// program promises that no lock conflicts, so none is taken.
    ///
    /// ```
    /// # use longshore::{Assert, Info, Window};
    /// # let rank = longshore::init()?;
    /// # let world = rank.world();
    /// # let window = Window::allocate(world, 80, 8, &Info::default())?;
    /// // Nobody locks exclusively, so no lock conflicts.
    /// let (next, double) = ((world.rank() + 1) % world.size(), rank.type_of::<f64>()?);
    /// window.lock_all_with(Assert::NOCHECK, |epoch| epoch.put(&[2.5], next, 3, 1, &double))?;
    /// world.barrier()?;
    /// assert_eq!(window.get::<f64>(3)?, 2.5);
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`lock_with`](Window::lock_with).
    #[inline]
    #[track_caller]
    #[doc(alias = "MPI_Win_lock_all")]
    pub fn lock_all_with<'env, R>(
        &'env self,
        assert: Assert,
        body: impl for<'scope> FnOnce(&Passive<'scope, 'env>) -> Result<R>,
    ) -> Result<R> {
        let caller = Location::caller();
        self.core.lock_all(assert, caller)?;
        in_passive(&self.core, |core, caller| core.unlock_all(caller), body)
    }

    /// Waits until all ranks of a group have [posted](Window::post), runs operations on them, and
    /// completes the epoch (MPI-5.0 section 12.5.2).
    ///
    /// When it returns, all operations are done. The complete takes place even if `body` returns an
    /// error.
    ///
    /// # Errors
    /// - RMA_SYNC within another epoch (rule 3), and for operations on other targets (rule 2).
    /// - GROUP for a group with processes outside of the window.
    /// - ASSERT for an assert other than NOCHECK.
    ///
    /// After the start, the first of these:
    /// 1. the error of `body`;
    /// 2. the error of the first operation that failed;
    /// 3. PROC_ABORTED if a target died.
    ///
    /// ```
    /// use longshore::{Assert, Info, Window};
    ///
    /// let rank = longshore::init()?;
    /// let world = rank.world();
    /// let window = Window::allocate(world, 8, 8, &Info::default())?;
    /// let long = rank.type_of::<i64>()?;
    /// // Puts to the next rank; the rank before puts here.
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
    #[doc(alias = "MPI_Win_start")]
    #[doc(alias = "MPI_Win_complete")]
    pub fn start<'env, R>(
        &'env self,
        group: &Group,
        assert: Assert,
        body: impl for<'scope> FnOnce(&Epoch<'scope, 'env>) -> Result<R>,
    ) -> Result<R> {
        let caller = Location::caller();
        self.core.called(caller);
        self.core.start(group, assert, caller)?;
        in_epoch(&self.core, |core| core.complete(caller), body)
            .map_err(|failed| self.core.epoch_failed(failed, caller))
    }

    /// Exposes this rank's memory to the ranks of a group, which start (MPI-5.0 section 12.5.2). It
    /// waits for no call of another rank. It waits only for an unlock that is on its way by
    /// message.
    ///
    /// # Errors
    /// - RMA_SYNC while the window is exposed (rule 4) or locked (rule 6), and for a false assert
    ///   (rule 9).
    /// - GROUP for a group with processes outside of the window.
    /// - ASSERT for an assert that a post doesn't take.
    #[track_caller]
    #[doc(alias = "MPI_Win_post")]
    pub fn post(&self, group: &Group, assert: Assert) -> Result<()> {
        let caller = Location::caller();
        self.core.called(caller);
        self.core.post(group, assert, caller)?;
        self.core.note_epochs(caller);
        Ok(())
    }

    /// Waits until all ranks of the post's group have completed (MPI-5.0 section 12.5.2). Their
    /// operations on this rank's memory are done then.
    ///
    /// # Errors
    /// RMA_SYNC without a post (rule 4), PROC_ABORTED if one of the ranks died.
    #[track_caller]
    #[doc(alias = "MPI_Win_wait")]
    pub fn wait(&self) -> Result<()> {
        let caller = Location::caller();
        self.core.called(caller);
        self.core.wait(caller)?;
        self.core.note_epochs(caller);
        Ok(())
    }

    /// Whether all ranks of the post's group have completed (MPI-5.0 section 12.5.2). If so, it
    /// ends the exposure. It doesn't wait.
    ///
    /// ```
    /// # use longshore::{Assert, Info, Window};
    /// # let rank = longshore::init()?;
    /// # let world = rank.world();
    /// # let window = Window::allocate(world, 80, 8, &Info::default())?;
    /// let group = world.group();
    /// window.post(group, Assert::NONE)?;
    /// window.start(group, Assert::NONE, |_| Ok(()))?;
    /// while !window.test()? {
    ///     // Other work.
    /// }
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`wait`](Window::wait).
    #[track_caller]
    #[doc(alias = "MPI_Win_test")]
    pub fn test(&self) -> Result<bool> {
        let is_over = self.core.test(Location::caller())?;
        if is_over {
            self.core.note_epochs(Location::caller());
        }
        Ok(is_over)
    }
}
