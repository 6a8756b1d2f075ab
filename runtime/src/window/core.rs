//! A window's state at its origin side, its epochs, and its end: the unscoped calls under the scopes.

use std::cell::{Cell, OnceCell};
use std::fmt;
use std::sync::Arc;

use longshore_transport::Range;
use shipable::Architecture;

use crate::attribute::Card;
use crate::barrier::Barrier;
use crate::communicator::Communicator;
use crate::engine::{Ledger, Measures, Policy};
use crate::error::{Error, ErrorKind, Place, Result};
use crate::job::Activity;
use crate::memory::{Exposed, Span};
use crate::process::Process;
use crate::route::Route;

/// A window at one rank. Used by one thread at a time.
pub(crate) struct Core {
    pub(super) process: Arc<Process>,
    pub(super) window: u32,
    pub(super) exposed: Arc<Exposed>,
    pub(super) measures: Measures,
    pub(super) policy: Policy,
    /// By rank in the window's communicator.
    pub(super) targets: Box<[Target]>,
    pub(super) ledger: Arc<Ledger>,
    pub(super) barrier: Barrier,
    pub(super) communicator: Communicator,
    pub(super) card: Card,
    /// What this rank allocated in the segment.
    pub(super) ranges: Vec<Range>,
    pub(super) epoch: Cell<EpochState>,
    /// Whether the engine was handed operations since it last had none.
    pub(super) shipped: Cell<bool>,
    /// The last origin and target whose signatures were found equal.
    pub(super) matched: Cell<Option<Match>>,
}

/// Types by their ids, and counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Match {
    pub origin: (u64, u64),
    pub target: (u64, u64),
}

/// What an origin knows of a target.
pub(super) struct Target {
    /// Its rank in the job, by which the engine and the ledger know it.
    pub peer: u32,
    pub measures: Measures,
    pub architecture: Architecture,
    pub route: Route,
    /// Where its memory lies in the segment, if it does.
    pub range: Option<Range>,
    pub door: OnceCell<Door>,
}

/// A target's memory, mapped.
pub(super) struct Door {
    pub span: Span,
    pub _memory: Held,
}

/// What keeps a door's memory.
pub(super) enum Held {
    Mapped { _mapping: Exposed },
    Own { _exposed: Arc<Exposed> },
}

/// The state of a window's epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EpochState {
    /// No epoch, so no operation.
    Closed,
    /// Between two fences, of which this is the first's number.
    Fence(u64),
    /// The window is freed.
    Freed,
}

impl fmt::Display for EpochState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EpochState::Closed => f.write_str("no epoch"),
            EpochState::Fence(number) => write!(f, "fence epoch {number}"),
            EpochState::Freed => f.write_str("freed"),
        }
    }
}

impl Core {
    pub(super) fn number(&self) -> u32 {
        self.window
    }

    pub(super) fn size(&self) -> u64 {
        self.measures.size
    }

    pub(super) fn unit(&self) -> u32 {
        self.measures.unit
    }

    pub(super) fn policy(&self) -> Policy {
        self.policy
    }

    pub(super) fn route(&self, target: i32) -> Result<Route> {
        Ok(self.target(target)?.map_or(Route::Direct, |target| target.route))
    }

    /// The target with a rank of the window's communicator, or none for PROC_NULL (rule 27).
    #[inline]
    pub(super) fn target(&self, rank: i32) -> Result<Option<&Target>> {
        match usize::try_from(rank).ok().and_then(|rank| self.targets.get(rank)) {
            Some(target) => Ok(Some(target)),
            None => self.communicator.member(rank).map(|_| None),
        }
    }

    /// A fence: all operations of this rank are done, then all ranks meet. With `succeeds`, it opens the next epoch. Whether
    /// or not it fails, no operation of this rank is under way when it returns.
    pub(super) fn fence(&self, succeeds: bool) -> Result<()> {
        if let Err(error) = self.process.ready() {
            self.process.engine().state().give_up(self.window);
            return Err(error);
        }
        let number = match self.epoch.get() {
            EpochState::Freed => return Err(ErrorKind::WindowFreed.into()),
            EpochState::Closed => 0,
            EpochState::Fence(number) => number,
        };
        self.process.note(Activity::Fence, self.window);
        let flushed = self.flush();
        let met = self.process.meet(&self.barrier);
        self.process.note(Activity::Computing, 0);
        let place = || self.place("fence", None, None);
        let outcome = flushed.and(met.map_err(|error| error.at(place)));
        self.epoch.set(if succeeds { EpochState::Fence(number + 1) } else { EpochState::Closed });
        outcome
    }

    /// The fence that opens the first epoch of a chain; none is open if it fails.
    pub(super) fn open_epochs(&self) -> Result<()> {
        self.fence(true).inspect_err(|_| self.end_epochs())
    }

    /// What closes the last epoch was a fence already.
    pub(super) fn end_epochs(&self) {
        self.epoch.set(EpochState::Closed);
    }

    /// Waits until all operations of this rank are done; gives the first failure.
    fn flush(&self) -> Result<()> {
        if self.shipped.get() {
            let settled = self.settle();
            self.drain();
            settled?;
        }
        let Some(error) = self.ledger.take_failure() else { return Ok(()) };
        let place = || self.place("fence", None, None);
        Err(error.at(place).within(|| self.epoch.get().to_string()))
    }

    fn settle(&self) -> Result<()> {
        self.process.wait(|_, arming| {
            if arming {
                self.process.note_wait(self.ledger.laggard());
            }
            self.ledger.is_settled().then_some(Ok(()))
        })
    }

    /// Waits until no operation of this rank is under way, whatever becomes of the job.
    pub(super) fn drain(&self) {
        let settled = self.settle();
        let mut engine = self.process.engine();
        match settled {
            // That nothing is lent any more doesn't depend on what the targets said.
            Ok(()) => engine.state().let_go(self.window),
            // The job is being ended; no operation is taken any more.
            Err(_) => engine.state().give_up(self.window),
        }
        self.shipped.set(false);
    }

    /// Rule 25, then the collective end. Gives the memory back once nobody can reach it.
    pub(super) fn free(self) -> Result<Exposed> {
        let mut cleared = Ok(());
        let mut end = || -> Result<()> {
            self.process.ready()?;
            match self.epoch.replace(EpochState::Freed) {
                EpochState::Closed => {}
                EpochState::Freed => return Err(ErrorKind::WindowFreed.into()),
                open => {
                    self.epoch.set(open);
                    return Err(ErrorKind::Epoch(FREE_IN_EPOCH).into());
                }
            }
            self.process.note(Activity::FreeWindow, self.window);
            // The others count on this rank, whatever its callbacks say.
            cleared = self.card.clear(None);
            // By messages: the barrier is of what is given back.
            let met = self.communicator.rendezvous();
            self.process.engine().state().close_window(self.window);
            self.process.note(Activity::Computing, 0);
            met
        };
        let place = |error: Error| error.at(|| self.place("free", None, None));
        end().map_err(place)?;
        let cleared = cleared.map_err(place);
        let Core { process, exposed, targets, barrier, ranges, .. } = self;
        drop((targets, barrier));
        let exposed = Arc::into_inner(exposed);
        for range in ranges {
            process.segment().free(range)?;
        }
        cleared?;
        exposed.ok_or_else(|| ErrorKind::Epoch(FREE_IN_EPOCH).into())
    }

    pub(super) fn place(
        &self,
        call: &'static str,
        target: Option<i32>,
        bytes: Option<(i128, i128)>,
    ) -> Place {
        Place {
            call,
            rank: self.process.me().rank,
            target,
            process: target.and_then(|target| self.target(target).ok()??.peer.into()),
            window: Some(self.window),
            bytes,
            epoch: Some(self.epoch.get().to_string()),
        }
    }
}

const FREE_IN_EPOCH: &str = "a window isn't freed with an epoch open or operations under way: \
     end the epoch first";
