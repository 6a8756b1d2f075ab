//! The state of a window's epochs at one rank, and the permission to operate that follows from it.
//!
//! Every operation gets a [`Permit`] first. A permit that was used marks its epoch as used, and
//! nothing else does: a fence epoch without an operation may still be followed by any other epoch.

use std::cell::{Cell, RefCell};

use super::peers::Target;
use super::state::{Access, EpochState, Step};
use crate::error::{ErrorKind, Result};

/// The epochs of a window at this rank.
pub(super) struct Epochs {
    state: Cell<EpochState>,
    /// Whether an operation was issued since the last synchronisation. An operation that this
    /// rank's checks refuse doesn't count.
    used: Cell<bool>,
    /// Whether this rank stored to its own memory since the last synchronisation.
    stored: Cell<bool>,
    /// Whether the program has had a pointer to its own memory: the window doesn't see loads and
    /// stores through it.
    pointed: Cell<bool>,
    /// The targets of start, or the targets whose locks lock_all has taken.
    opened: RefCell<Vec<u32>>,
    /// Whether lock_all has taken a lock by this rank's own claim.
    claims: Cell<bool>,
    /// The ranks to which a post exposes this rank's window.
    posted: RefCell<Option<Vec<u32>>>,
}

/// The permission to issue one operation in the current epoch.
#[derive(Clone, Copy)]
pub(super) struct Permit<'a>(&'a Epochs);

impl Permit<'_> {
    /// The operation was issued.
    #[inline]
    pub(super) fn used(self) {
        self.0.used.set(true);
    }
}

impl Epochs {
    /// No epoch. `pointed` tells whether the program has a pointer to the window's memory.
    pub(super) fn new(pointed: bool) -> Epochs {
        Epochs {
            state: Cell::new(EpochState::Closed),
            used: Cell::new(false),
            stored: Cell::new(false),
            pointed: Cell::new(pointed),
            opened: RefCell::default(),
            claims: Cell::new(false),
            posted: RefCell::new(None),
        }
    }

    #[inline]
    pub(super) fn state(&self) -> EpochState {
        self.state.get()
    }

    /// Whether an operation was issued since the last synchronisation.
    pub(super) fn is_used(&self) -> bool {
        self.used.get()
    }

    /// Takes a step, if it is legal. Inlined, since each call site knows its step, and most of the
    /// table goes.
    #[inline(always)]
    pub(super) fn step(&self, step: Step) -> Result<()> {
        self.enter(self.next(step)?);
        Ok(())
    }

    /// The state to which a step leads, if the step is legal.
    #[inline(always)]
    pub(super) fn next(&self, step: Step) -> Result<EpochState> {
        Ok(self.state.get().after(step, self.used.get())?)
    }

    /// Completes a step to this state.
    #[inline]
    pub(super) fn enter(&self, state: EpochState) {
        self.state.set(state);
        self.used.set(false);
    }

    /// Returns to the state before a step that failed.
    pub(super) fn restore(&self, state: EpochState) {
        self.state.set(state);
    }

    /// Whether a fence has opened an epoch.
    pub(super) fn is_fenced(&self) -> bool {
        matches!(self.state.get(), EpochState::Fence(_))
    }

    /// Ends a chain of fence epochs: the fence that closed the last of them opened another.
    pub(super) fn end_fences(&self) {
        if self.is_fenced() {
            self.state.set(EpochState::Closed);
        }
    }

    /// Rule 1, for an operation on PROC_NULL.
    pub(super) fn check_open(&self) -> Result<()> {
        match self.state.get() {
            EpochState::Closed => Err(ErrorKind::Epoch(NO_EPOCH).into()),
            state => check_usable(state),
        }
    }

    /// Rules 11 and 12: flushes, and operations with requests, need a passive epoch.
    #[inline]
    pub(super) fn check_passive(&self) -> Result<()> {
        match self.state.get() {
            EpochState::Locks(_) | EpochState::LockAll { .. } => Ok(()),
            state => {
                check_usable(state)?;
                Err(ErrorKind::Epoch(NOT_PASSIVE).into())
            }
        }
    }

    /// No rank can use the window any more, since one panicked within an epoch.
    pub(super) fn poison(&self, by: u32) {
        self.enter(EpochState::Poisoned(by));
        self.opened.take();
        self.claims.set(false);
        self.posted.take();
    }

    /// The permission to operate on a target, if the epoch gives it without further action.
    #[inline(always)]
    pub(super) fn permit(&self, target: &Target) -> Option<Permit<'_>> {
        let fenced = matches!(self.state.get(), EpochState::Fence(_));
        (fenced || target.epochs.access.get() != Access::Closed).then_some(Permit(self))
    }

    /// Rules 1 and 2: the permission to operate on a target. Within lock_all the first operation
    /// on a target takes its lock by `lock`, which learns whether lock_all was given NOCHECK.
    pub(super) fn allow(
        &self,
        target: &Target,
        lock: impl FnOnce(bool) -> Result<()>,
    ) -> Result<Permit<'_>> {
        self.check_open()?;
        if let Some(permit) = self.permit(target) {
            return Ok(permit);
        }
        match self.state.get() {
            EpochState::LockAll { unchecked } => lock(unchecked).map(|()| Permit(self)),
            EpochState::Started(_) => Err(ErrorKind::Epoch(NOT_STARTED).into()),
            _ => Err(ErrorKind::Epoch(NOT_LOCKED).into()),
        }
    }

    /// Whether this rank stored to its own memory since the last synchronisation (rule 9).
    #[inline]
    pub(super) fn has_stored(&self) -> bool {
        self.stored.get()
    }

    /// This rank stores to its own memory.
    #[inline]
    pub(super) fn note_store(&self) {
        self.stored.set(true);
    }

    /// A synchronisation has ordered this rank's stores.
    #[inline]
    pub(super) fn forget_stores(&self) {
        self.stored.set(false);
    }

    /// Whether the program has had a pointer to its own memory.
    #[inline]
    pub(super) fn is_pointed(&self) -> bool {
        self.pointed.get()
    }

    /// The program gets a pointer to its own memory.
    pub(super) fn note_pointer(&self) {
        self.pointed.set(true);
    }

    /// Start has opened these targets.
    pub(super) fn open(&self, targets: Vec<u32>) {
        self.opened.replace(targets);
    }

    /// The targets that start opened; there are none afterwards.
    pub(super) fn close(&self) -> Vec<u32> {
        self.opened.take()
    }

    /// Lock_all has taken the lock of a target, by this rank's own claim or otherwise.
    #[inline]
    pub(super) fn note_locked(&self, target: u32, claimed: bool) {
        self.claims.set(self.claims.get() | claimed);
        self.opened.borrow_mut().push(target);
    }

    /// Whether lock_all has taken a lock by this rank's own claim.
    #[inline]
    pub(super) fn has_claims(&self) -> bool {
        self.claims.get()
    }

    /// Gives the targets whose locks lock_all took to `release`; there are none afterwards.
    #[inline]
    pub(super) fn release_locked(&self, release: impl FnMut(u32)) {
        let mut opened = self.opened.borrow_mut();
        opened.iter().copied().for_each(release);
        // The list keeps its allocation for the next epoch.
        opened.clear();
        self.claims.set(false);
    }

    /// Whether a post exposes this rank's window.
    #[inline]
    pub(super) fn is_posted(&self) -> bool {
        self.posted.borrow().is_some()
    }

    /// A post exposes this rank's window to these ranks.
    pub(super) fn expose(&self, origins: Vec<u32>) {
        self.posted.replace(Some(origins));
    }

    /// Looks at the ranks to which this rank's window is exposed, if it is.
    pub(super) fn with_posted<R>(&self, look: impl FnOnce(Option<&[u32]>) -> R) -> R {
        look(self.posted.borrow().as_deref())
    }

    /// Ends the exposure; the ranks to which the window was exposed.
    pub(super) fn end_exposure(&self) -> Vec<u32> {
        self.stored.set(false);
        self.posted.take().unwrap_or_default()
    }
}

/// Refuses a window in a state in which no call can use it.
pub(super) fn check_usable(state: EpochState) -> Result<()> {
    state.over().map_or(Ok(()), |over| Err(over.into()))
}

const NO_EPOCH: &str = "an operation needs an access epoch to its target: make it between two calls of {fence}, of {lock} and {unlock}, \
     or of {start} and {complete}";
const NOT_LOCKED: &str = "the target isn't locked: lock it too, or use {lock_all} (rule 2)";
const NOT_STARTED: &str = "the target isn't in the start group: call {start} with it too (rule 2)";
const NOT_PASSIVE: &str =
    "this call needs a passive epoch: make it within a {lock} or {lock_all} (rules 11 and 12)";
