//! A window's state at its origin side, and its end: what the unscoped calls under the scopes share.

use std::cell::{Cell, RefCell};
use std::panic::Location;
use std::sync::Arc;

use longshore_transport::Range;

use super::directory::Directory;
use super::flight::Flight;
use super::info::{AccumulateOps, Info};
use super::pairs::Pairs;
use super::state::{EpochState, FREE_IN_EPOCH, Step};
use super::targets::{Target, Targets};
use crate::check::Caller;
use crate::communicator::Communicator;
use crate::control::Control;
use crate::engine::{Attachments, Measures, Policy};
use crate::error::{Error, ErrorKind, Place, Result};
use crate::flavor::Flavor;
use crate::job::Activity;
use crate::memory::Exposed;
use crate::object::Card;
use crate::process::{Meeting, Process};
use crate::route::Route;
use crate::window::accumulate::Ready;

/// A window at one rank. Used by one thread at a time.
pub(crate) struct Core {
    pub(super) process: Arc<Process>,
    pub(super) window: u32,
    pub(super) flavor: Flavor,
    pub(super) exposed: Arc<Exposed>,
    /// All of the memory that the ranks share.
    pub(super) whole: Option<Whole>,
    /// The memory of a dynamic window.
    pub(super) attachments: Option<Arc<Attachments>>,
    /// What of it like ranks reach directly, if there are any.
    pub(super) directory: Option<Directory>,
    pub(super) measures: Measures,
    /// The hints that are in use.
    pub(super) info: Cell<Info>,
    /// By rank in the window's communicator.
    pub(super) targets: Targets,
    /// Its operations that the engine has.
    pub(super) flight: Flight,
    pub(super) meeting: Meeting,
    pub(super) communicator: Communicator,
    pub(super) card: Arc<Card>,
    /// What this rank allocated in the segment.
    pub(super) ranges: Vec<Range>,
    pub(super) control: Arc<Control>,
    pub(super) epoch: Cell<EpochState>,
    /// Whether an operation was issued since the last synchronisation; one that this rank's checks refuse wasn't.
    pub(super) used: Cell<bool>,
    /// Whether this rank stored to its own memory since the last synchronisation.
    pub(super) stored: Cell<bool>,
    /// Whether the program has had a pointer to its own memory, through which it loads and stores unseen.
    pub(super) pointed: Cell<bool>,
    /// The targets of start, or those whose locks lock_all has taken.
    pub(super) opened: RefCell<Vec<u32>>,
    /// Whether lock_all has taken one by this rank's own claim.
    pub(super) claims: Cell<bool>,
    /// To whom this rank's window is exposed by a post.
    pub(super) posted: RefCell<Option<Vec<u32>>>,
    /// Where the call under way is made, and the last start, with NOCHECK or without; kept where uses of windows are checked.
    pub(super) caller: Cell<Option<Caller>>,
    pub(super) started: Cell<(bool, Option<Caller>)>,
    /// The last origin and target whose signatures were found equal.
    pub(super) matched: Cell<Option<Match>>,
    /// The last puts and gets that were found right.
    pub(super) pairs: Pairs,
    /// What the last accumulates did, ready to be done again.
    pub(super) recent: Ready,
}

/// Types by their ids, and counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Match {
    pub origin: (u64, u64),
    pub target: (u64, u64),
}

/// The memory that the ranks of a window share, mapped.
pub(super) struct Whole {
    /// Where it lies in the segment.
    pub offset: u64,
    pub exposed: Exposed,
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
        self.info.get().target_types
    }

    pub(super) fn route(&self, target: i32) -> Result<Route> {
        let found = self.target(target).map_err(|error| self.failed(error, "route", Some(target)));
        Ok(found?.map_or(Route::Direct, |target| target.route))
    }

    /// The target with a rank of the window's communicator, or none for PROC_NULL (rule 27).
    #[inline]
    pub(super) fn target(&self, rank: i32) -> Result<Option<&Target>> {
        match usize::try_from(rank).ok().and_then(|rank| self.targets.get(rank)) {
            Some(target) => Ok(Some(target)),
            None => self.communicator.member(rank).map(|_| None),
        }
    }

    /// Rule 16.
    pub(super) fn check_flavor(&self, call: &'static str, wanted: Flavor) -> Result<()> {
        match self.flavor {
            flavor if flavor == wanted => Ok(()),
            flavor => Err(ErrorKind::Flavor { call, flavor, wanted }.into()),
        }
    }

    /// Takes over those hints that may change; all ranks give the same.
    #[track_caller]
    pub(super) fn set_info(&self, info: &Info) -> Result<()> {
        const CALL: &str = "set_info";
        let caller = Location::caller();
        let tell = || {
            self.communicator.announce(|| format!("{CALL} of window {}", self.window), caller)?;
            self.communicator.tell_at(self.window, info)
        };
        let set = || -> Result<()> {
            self.process.ready()?;
            Info::check_equal(&self.process.during(Activity::SetInfo, self.window, tell)?)?;
            let Info { accumulate_ordering, accumulate_ops, .. } = *info;
            self.info.set(Info { accumulate_ordering, accumulate_ops, ..self.info.get() });
            if let Some(check) = self.process.engine().state().check() {
                check.set_same_op(self.window, accumulate_ops == AccumulateOps::SameOp);
            }
            Ok(())
        };
        set().map_err(|error| self.failed(error, CALL, None))
    }

    /// Rule 26: whoever said that nobody locks doesn't.
    pub(super) fn check_locks(&self) -> Result<()> {
        match self.info.get().no_locks {
            true => Err(ErrorKind::Epoch(NO_LOCKS).into()),
            false => Ok(()),
        }
    }

    /// The rank whose part of a shared window is asked for, and the part: with PROC_NULL the lowest that has one of any bytes.
    pub(super) fn shared_query(&self, rank: i32) -> Result<(&Target, Exposed)> {
        const CALL: &str = "shared_query";
        let query = || -> Result<(&Target, Exposed)> {
            self.process.ready()?;
            self.check_flavor(CALL, Flavor::Shared)?;
            let first = || self.targets.first_sized().unwrap_or(0);
            let owner = self.target(rank)?.unwrap_or_else(|| &self.targets[first()]);
            Ok((owner, self.part(owner)?))
        };
        query().map_err(|error| self.failed(error, CALL, Some(rank)))
    }

    /// A rank's part of the memory that the ranks share.
    pub(super) fn part(&self, target: &Target) -> Result<Exposed> {
        let part = || {
            let (whole, offset) = (self.whole.as_ref()?, target.offset?);
            whole.exposed.part(offset.checked_sub(whole.offset)?, target.measures.size)
        };
        let outside = || format!("rank {}'s part lies outside of what is shared", target.peer);
        part().ok_or_else(|| ErrorKind::NotShared(outside()).into())
    }

    /// Notes what this rank does to a target of its window, by its rank in the job.
    pub(super) fn note_on(&self, activity: Activity, rank: i32) {
        let target = usize::try_from(rank).ok().and_then(|rank| self.targets.get(rank));
        self.process.note(activity, target.map_or(rank as u32, |target| target.peer));
    }

    /// Waits until all operations of this rank are done.
    pub(super) fn await_all(&self) -> Result<()> {
        // Who has done all stays so here, where nothing is issued meanwhile.
        let mut from = 0;
        self.process.wait(|_, arming| {
            let Some(laggard) = self.flight.ledger.laggard(from) else { return Some(Ok(())) };
            from = laggard;
            if arming {
                self.process.note_wait(Some(laggard));
            }
            None
        })
    }

    /// Waits until no operation of this rank is under way, whatever becomes of the job.
    #[inline]
    pub(super) fn drain(&self) {
        if self.flight.is_shipped() {
            self.drain_engine();
        }
    }

    #[cold]
    fn drain_engine(&self) {
        let settled = if self.flight.ledger.is_settled() { Ok(()) } else { self.await_all() };
        match settled {
            // That nothing is lent any more doesn't depend on what the targets said.
            Ok(()) if self.flight.is_lent() => self.process.let_go(self.window),
            Ok(()) => {}
            // The job is being ended; no operation is taken any more.
            Err(_) => self.process.give_up(self.window),
        }
        // What is checked is confirmed when it is waited for, which this isn't.
        self.flight.land(self.process.checks());
    }

    /// Rule 25, then the collective end. Gives the memory back once nobody can reach it.
    #[track_caller]
    pub(super) fn free(self) -> Result<Exposed> {
        let (caller, mut cleared) = (Location::caller(), Ok(()));
        let mut end = || -> Result<()> {
            self.process.ready()?;
            if self.posted.borrow().is_some() {
                return Err(ErrorKind::Epoch(FREE_IN_EPOCH).into());
            }
            self.step(Step::Free)?;
            self.process.note(Activity::FreeWindow, self.window);
            // The others count on this rank, whatever its callbacks say.
            cleared = self.card.clear(None);
            // Once all are here nobody begins anything; where not all come, the engine keeps the memory, as of a window that is
            // dropped. An unlock may still be on its way. All close the window before any memory is freed; the second meeting makes
            // sure. It goes by messages, because the flags are part of what is freed.
            let call = || format!("free of window {}", self.window);
            let agreed = self.communicator.announce(call, caller);
            let met = agreed.and_then(|()| self.communicator.meet(&self.meeting));
            let closed = met.and_then(|()| {
                self.process.engine().state().close_window(self.window);
                self.communicator.rendezvous_behind(self.window)
            });
            self.process.note(Activity::Computing, 0);
            closed
        };
        let place = |error: Error| self.failed(error, "free", None);
        end().map_err(place)?;
        // What requests that were dropped came to behind the last epoch's end is told nowhere else.
        let left = self.flight.ledger.take_failure(None).map_or(Ok(()), Err);
        let wrong = cleared.and(left).map_err(place);
        let Core { process, exposed, whole, targets, meeting, control, ranges, .. } = self;
        let attached = self.attachments.map_or_else(Vec::new, |attachments| attachments.clear());
        drop((whole, targets, meeting, control, self.directory));
        // Out of what is given back here.
        let exposed = Arc::into_inner(exposed).map(Exposed::moved_back);
        // All of them, even where one fails.
        let ranges = ranges.into_iter().chain(attached);
        let freed: Vec<_> = ranges.map(|range| process.segment().free(range)).collect();
        freed.into_iter().collect::<Result<Vec<()>, _>>()?;
        wrong?;
        exposed.ok_or_else(|| ErrorKind::Epoch(FREE_IN_EPOCH).into())
    }

    /// Has the window's error handler deal with an error of a call on it.
    pub(super) fn raise(&self, error: Error) -> Error {
        self.card.raise(&self.process, error)
    }

    pub(super) fn place(
        &self,
        call: &'static str,
        target: Option<i32>,
        bytes: Option<(i128, i128)>,
    ) -> Place {
        Place { epoch: Some(self.epoch.get().to_string()), ..self.spot(call, target, bytes) }
    }

    /// The same without the epoch's state, which takes a text.
    pub(super) fn spot(
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
            epoch: None,
        }
    }
}

const NO_LOCKS: &str = "the window was made with the info no_locks=true, and is locked all the same: leave it out (rule 26)";
