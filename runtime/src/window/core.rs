//! The calls of a window, which give their errors a place. `issue` has those that operate, and
//! `values` those that operate on values; here are synchronisation, settings and the end.
//!
//! Scopes, calls by pointer and accessors all come down to these calls. A call's error names the
//! call, the window, the target and the epoch, and goes to the window's error handler once.

mod issue;
mod values;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::sync::Arc;

use super::access::check_usable;
use super::claim::{lock_own, note_pointer};
use super::info::{AccumulateOps, Info};
use super::lane::Lane;
use super::parts::Parts;
use super::peers::Target;
use super::promise::report;
use super::state::{FREE_IN_EPOCH, Step};
use super::sync::fence::fence;
use super::sync::flush::{flush, flush_idle, flush_local, is_idle, sync};
use super::sync::lock::{LockType, lock, lock_all, unlock, unlock_all};
use super::sync::poison::{poison, poisoned};
use super::sync::pscw::{complete, post, start, test, wait};
use super::unfreed::Unfreed;
use super::waiting::drain;
use crate::assert::Assert;
use crate::check::{Caller, site};
use crate::error::{Error, ErrorKind, Place, Result};
use crate::group::Group;
use crate::job::Activity;
use crate::memory::{Exposed, Span};
use crate::object::Card;
use crate::observe::EpochKind;
use crate::program::Line;
use crate::route::Route;

/// The errors of an epoch: of its body, which is the one that the call returns, and of its closing
/// call.
pub(super) struct Failed {
    pub body: Option<Error>,
    pub closing: Option<Error>,
}

/// A window at one rank. One thread uses it at a time.
pub(crate) struct Core {
    parts: Parts,
    card: Arc<Card>,
    unfreed: Unfreed,
    /// The lane of the last value that was fetched by messages.
    lane: RefCell<Option<Arc<Lane>>>,
}

impl Core {
    pub(super) fn new(parts: Parts) -> Core {
        let card = Arc::new(Card::new(parts.process().names()));
        let unfreed = Unfreed::new(&parts, &card);
        Core { parts, card, unfreed, lane: RefCell::new(None) }
    }

    pub(super) fn parts(&self) -> &Parts {
        &self.parts
    }

    pub(super) fn parts_mut(&mut self) -> &mut Parts {
        &mut self.parts
    }

    pub(super) fn card(&self) -> &Arc<Card> {
        &self.card
    }

    /// The next call is made at this source line.
    #[inline]
    pub(super) fn called(&self, caller: Caller) {
        self.parts.checking().called(caller);
    }

    /// Refuses a request outside of a passive epoch (rule 12).
    pub(super) fn check_passive(&self, place: &Place, caller: Caller) -> Result<()> {
        let passive = self.parts.epochs().check_passive();
        passive.map_err(|error| self.raise(error.at(|| place.clone()), caller))
    }

    /// The error of a call that closes an epoch has its place, but no handler has had it: its
    /// caller [raises](Core::raise) it when no operation holds memory any more.
    #[inline]
    pub(super) fn fence(&self, assert: Assert) -> Result<()> {
        let fenced = match self.parts.observed() {
            None => fence(&self.parts, assert),
            Some(_) => self.fence_observed(assert),
        };
        fenced.map_err(|error| self.placed(error, "fence", None))
    }

    #[cold]
    #[inline(never)]
    fn fence_observed(&self, assert: Assert) -> Result<()> {
        let (process, at) = (self.parts.process(), self.parts.at());
        self.close_epoch(EpochKind::Fence, None);
        let fenced = process.observed(Activity::Fence, at, || fence(&self.parts, assert));
        if self.is_fenced() {
            self.open_epoch(EpochKind::Fence, None);
        }
        fenced
    }

    /// Whether a fence has opened an epoch.
    pub(super) fn is_fenced(&self) -> bool {
        self.parts.epochs().is_fenced()
    }

    /// An epoch has begun, for the trace.
    #[inline]
    fn open_epoch(&self, kind: EpochKind, target: Option<i32>) {
        if let Some(observed) = self.parts.observed() {
            observed.open(kind, target, self.parts.checking().caller());
        }
    }

    /// An epoch has ended, for the trace.
    #[inline]
    fn close_epoch(&self, kind: EpochKind, target: Option<i32>) {
        if let Some(observed) = self.parts.observed() {
            observed.close(kind, target, None);
        }
    }

    /// Ends a chain of fence epochs.
    pub(super) fn end_fences(&self) {
        self.parts.epochs().end_fences();
    }

    pub(super) fn start(&self, group: &Group, assert: Assert, caller: Caller) -> Result<()> {
        let started = start(&self.parts, group, assert);
        if started.is_ok() {
            self.open_epoch(EpochKind::Access, None);
        }
        started.map_err(|error| self.failed(error, "start", None, caller))
    }

    /// Its error is for the caller to raise; see [`fence`](Core::fence).
    pub(super) fn complete(&self, caller: Caller) -> Result<()> {
        let completed = complete(&self.parts, caller);
        self.close_epoch(EpochKind::Access, None);
        completed.map_err(|error| self.placed(error, "complete", None))
    }

    pub(super) fn post(&self, group: &Group, assert: Assert, caller: Caller) -> Result<()> {
        let posted = post(&self.parts, group, assert);
        if posted.is_ok() {
            self.open_epoch(EpochKind::Exposure, None);
        }
        posted.map_err(|error| self.failed(error, "post", None, caller))
    }

    pub(super) fn wait(&self, caller: Caller) -> Result<()> {
        let waited = wait(&self.parts);
        self.close_epoch(EpochKind::Exposure, None);
        waited.map_err(|error| self.failed(error, "wait", None, caller))
    }

    pub(super) fn test(&self, caller: Caller) -> Result<bool> {
        let tested = test(&self.parts);
        if matches!(tested, Ok(true)) {
            self.close_epoch(EpochKind::Exposure, None);
        }
        tested.map_err(|error| self.failed(error, "test", None, caller))
    }

    #[inline]
    pub(super) fn lock(
        &self,
        target: i32,
        lock_type: LockType,
        assert: Assert,
        caller: Caller,
    ) -> Result<()> {
        self.called(caller);
        let locked = lock(&self.parts, target, lock_type, assert);
        locked.map_err(|error| self.failed(error, "lock", Some(target), caller))
    }

    /// Its error is for the caller to raise; see [`fence`](Core::fence).
    #[inline]
    pub(super) fn unlock(&self, target: i32, caller: Caller) -> Result<()> {
        let unlocked = unlock(&self.parts, target, caller);
        unlocked.map_err(|error| self.placed(error, "unlock", Some(target)))
    }

    #[inline]
    pub(super) fn lock_all(&self, assert: Assert, caller: Caller) -> Result<()> {
        self.called(caller);
        let locked = lock_all(&self.parts, assert);
        if locked.is_ok() {
            self.open_epoch(EpochKind::LockAll, None);
        }
        locked.map_err(|error| self.failed(error, "lock_all", None, caller))
    }

    /// Its error is for the caller to raise; see [`fence`](Core::fence).
    #[inline]
    pub(super) fn unlock_all(&self, caller: Caller) -> Result<()> {
        let unlocked = unlock_all(&self.parts, caller);
        self.close_epoch(EpochKind::LockAll, None);
        unlocked.map_err(|error| self.placed(error, "unlock_all", None))
    }

    /// Its error is for the caller to raise; see [`fence`](Core::fence). So are those of the other
    /// flushes.
    #[inline]
    pub(super) fn flush(&self, target: i32, caller: Caller) -> Result<()> {
        match self.try_flush(target) {
            true => Ok(()),
            false => self.flush_rest(target, caller),
        }
    }

    /// The attempt of a flush. Returns false if it has done nothing.
    #[inline]
    pub(super) fn try_flush(&self, target: i32) -> bool {
        flush_idle(&self.parts, target)
    }

    /// A flush where the attempt has failed.
    #[inline(never)]
    pub(super) fn flush_rest(&self, target: i32, caller: Caller) -> Result<()> {
        let flushed = flush(&self.parts, Some(target), caller);
        flushed.map_err(|error| self.placed(error, "flush", Some(target)))
    }

    #[inline]
    pub(super) fn flush_all(&self, caller: Caller) -> Result<()> {
        let flushed = flush(&self.parts, None, caller);
        flushed.map_err(|error| self.placed(error, "flush_all", None))
    }

    #[inline]
    pub(super) fn flush_local(&self, target: i32, caller: Caller) -> Result<()> {
        match self.try_flush_local(target) {
            true => Ok(()),
            false => self.flush_local_rest(target, caller),
        }
    }

    /// The attempt of a local flush. Returns false if it has done nothing.
    #[inline]
    pub(super) fn try_flush_local(&self, target: i32) -> bool {
        is_idle(&self.parts, target)
    }

    /// A local flush where the attempt has failed.
    #[inline(never)]
    pub(super) fn flush_local_rest(&self, target: i32, caller: Caller) -> Result<()> {
        let flushed = flush_local(&self.parts, Some(target), caller);
        flushed.map_err(|error| self.placed(error, "flush_local", Some(target)))
    }

    pub(super) fn flush_local_all(&self, caller: Caller) -> Result<()> {
        let flushed = flush_local(&self.parts, None, caller);
        flushed.map_err(|error| self.placed(error, "flush_local_all", None))
    }

    pub(super) fn sync(&self, caller: Caller) -> Result<()> {
        sync(&self.parts).map_err(|error| self.failed(error, "sync", None, caller))
    }

    /// Waits until no operation of this rank is in flight, whatever becomes of the job.
    #[inline]
    pub(super) fn drain(&self) {
        drain(&self.parts);
    }

    /// This rank panics within an epoch.
    #[cold]
    pub(super) fn poison(&self) {
        poison(&self.parts);
    }

    /// Takes this rank's own lock, if lock_all promised it.
    #[inline]
    pub(super) fn lock_own(&self) -> Result<()> {
        lock_own(&self.parts)
    }

    /// The program gets a pointer to its own memory.
    pub(super) fn note_pointer(&self) -> Result<()> {
        note_pointer(&self.parts)
    }

    /// The route to a target, by its rank in the window.
    #[track_caller]
    pub(super) fn route(&self, target: i32) -> Result<Route> {
        let (found, caller) = (self.parts.peers().target(target), Location::caller());
        let found = found.map_err(|error| self.failed(error, "route", Some(target), caller));
        Ok(found?.map_or(Route::Direct, |target| target.route))
    }

    /// Takes over the hints that may change. All ranks give equal ones.
    #[track_caller]
    pub(super) fn set_info(&self, info: &Info) -> Result<()> {
        const CALL: &str = "set_info";
        let (parts, caller) = (&self.parts, Location::caller());
        let (process, id) = (parts.process(), parts.id());
        let gather = || {
            let communicator = parts.peers().communicator();
            communicator.announce_at(id, || format!("{CALL} of window {id}"), caller)?;
            communicator.tell_at(id, &(*info, process.excuses()))
        };
        let set = || -> Result<()> {
            process.ready()?;
            check_usable(parts.epochs().state())?;
            let told = process.during(Activity::SetInfo, id, parts.at(), gather)?;
            let infos: Vec<Info> = told.iter().map(|(info, _)| *info).collect();
            let excuses = told.iter().all(|(_, excuses)| *excuses);
            let (info, difference) = Info::agree(&infos, excuses)?;
            if let Some(text) = difference.filter(|_| parts.peers().rank() == 0) {
                report(process, id, &text, &site(Some(Line::of(caller))));
            }
            parts.set_info(parts.info().changed_to(&info));
            parts.checking().set_same_op(info.accumulate_ops == AccumulateOps::SameOp);
            Ok(())
        };
        set().map_err(|error| self.failed(error, CALL, None, caller))
    }

    /// The rank whose memory is asked for, and the memory, which is empty where this rank can't
    /// load from it. With PROC_NULL it is the first rank whose memory isn't empty.
    #[track_caller]
    pub(super) fn shared_query(&self, rank: i32) -> Result<(&Target, Span)> {
        let (peers, memory) = (self.parts.peers(), self.parts.memory());
        let query = || -> Result<(&Target, Span)> {
            self.parts.process().ready()?;
            let first = || peers.of(peers.first_sized().unwrap_or(0));
            let owner = peers.target(rank)?.unwrap_or_else(first);
            Ok((owner, memory.loadable(owner)?))
        };
        let caller = Location::caller();
        query().map_err(|error| self.failed(error, "shared_query", Some(rank), caller))
    }

    /// Whether the window could be freed now (rule 25).
    #[track_caller]
    pub(super) fn check_free(&self) -> Result<()> {
        let check = || -> Result<()> {
            self.parts.process().ready()?;
            match self.parts.epochs().is_posted() {
                true => Err(ErrorKind::Epoch(FREE_IN_EPOCH).into()),
                false => self.parts.epochs().next(Step::Free).map(drop),
            }
        };
        let caller = Location::caller();
        check().map_err(|error| self.failed(error, "free", None, caller))
    }

    /// Attaches memory to a dynamic window: the attachment's number and its address.
    pub(super) fn attach(&self, memory: Exposed, is_enclosed: bool) -> Result<(u64, i64)> {
        check_usable(self.parts.epochs().state())?;
        if !is_enclosed {
            self.note_pointer()?;
        }
        self.parts.memory().attach(self.parts.process(), memory, is_enclosed)
    }

    /// Ends an attachment, when no operation holds its memory any more.
    pub(super) fn detach(&self, number: u64) -> Result<Exposed> {
        let (parts, id) = (&self.parts, self.parts.id());
        parts.memory().detach(parts.process(), parts.peers(), id, number)
    }

    /// Ends the window (rule 25). Collective. Returns its memory when no peer can reach it.
    ///
    /// 1. All ranks meet: none begins an operation any more.
    /// 2. Each closes its window, so that a late unlock finds it closed.
    /// 3. All meet again before any memory is freed. They meet by messages, since the flags of the
    ///    first meeting are part of that memory.
    #[track_caller]
    pub(super) fn free(self) -> Result<Exposed> {
        let (caller, mut cleared) = (Location::caller(), Ok(Ok(())));
        let parts = &self.parts;
        let (process, id, communicator) =
            (parts.process(), parts.id(), parts.peers().communicator());
        let mut end = || -> Result<()> {
            process.ready()?;
            if parts.epochs().is_posted() {
                return Err(ErrorKind::Epoch(FREE_IN_EPOCH).into());
            }
            parts.epochs().step(Step::Free)?;
            if let Some(observed) = parts.observed() {
                observed.name(self.card.name());
            }
            process.note(Activity::FreeWindow, id);
            // The other ranks wait for this one even where its callbacks refuse or panic.
            cleared = catch_unwind(AssertUnwindSafe(|| self.card.close()));
            let agreed = communicator.announce_at(id, || format!("free of window {id}"), caller);
            let met = agreed.and_then(|()| parts.peers().meet(id));
            let closed = met.and_then(|()| {
                process.engine().state().close_window(id);
                communicator.rendezvous_behind(id)
            });
            process.note(Activity::Computing, 0);
            closed
        };
        let place = |error: Error| self.failed(error, "free", None, caller);
        let ended = end();
        if parts.epochs().state().over().is_some() {
            process.windows().freed(id);
        }
        ended.map_err(place)?;
        // Late errors of dropped requests are reported only here.
        let left = parts.flight().take_failure(None).map_or(Ok(()), Err);
        let cleared = cleared.map(|cleared| cleared.and(left).map_err(place));
        let memory = self.parts.dismantle().close()?;
        cleared.unwrap_or_else(|panic| resume_unwind(panic))?;
        memory.ok_or_else(|| ErrorKind::Epoch(FREE_IN_EPOCH).into())
    }

    /// Notes the epoch that a call without a scope has opened or closed, under `--check`: rule 30.
    #[inline]
    pub(super) fn note_epochs(&self, caller: Caller) {
        if self.parts.process().checks() {
            self.unfreed.note_epochs(&self.parts, caller);
        }
    }

    /// Notes an activity on a target, by its rank in the window, for the watchdog.
    fn note(&self, activity: Activity, rank: i32) {
        let target = self.parts.peers().get(rank);
        self.parts.process().note(activity, target.map_or(rank as u32, |target| target.peer));
    }

    /// Notes the source line of the last operation on a target, for an error that comes later.
    fn note_site(&self, rank: i32, caller: Caller) {
        let flight = self.parts.flight();
        if let Some(target) = self.parts.peers().get(rank) {
            let locate = || flight.locate_failures(|error| self.locate(error));
            target.sites.note(flight.ledger().issued(target.peer), caller, locate);
        }
    }

    /// Adds the source line of a failed operation to its error.
    fn locate(&self, error: &mut Error) {
        error.locate(|rank, number| self.parts.peers().get(rank)?.sites.of(number));
    }

    /// Gives an error of a call its place, and the window's error handler the error.
    #[cold]
    pub(super) fn failed(
        &self,
        error: Error,
        call: &'static str,
        target: Option<i32>,
        caller: Caller,
    ) -> Error {
        self.raise(self.placed(error, call, target), caller)
    }

    /// Gives an error of a call its place.
    #[cold]
    fn placed(&self, error: Error, call: &'static str, target: Option<i32>) -> Error {
        if let ErrorKind::WindowPoisoned { by } = error.kind() {
            poisoned(&self.parts, *by);
            self.parts.process().windows().freed(self.parts.id());
        }
        let mut error = error.at(|| self.place(call, target, None));
        self.locate(&mut error);
        error.within(|| self.parts.epochs().state().to_string())
    }

    /// The error of an epoch that failed. The window's error handler gets the one of its closing
    /// call only now, since it may panic.
    #[cold]
    pub(super) fn epoch_failed(&self, Failed { body, closing }: Failed, caller: Caller) -> Error {
        let closing = closing.map(|error| self.raise(error, caller));
        body.or(closing).unwrap_or_else(|| ErrorKind::WindowFreed.into())
    }

    /// Gives the window's error handler an error of the call at a source line.
    #[cold]
    pub(super) fn raise(&self, error: Error, caller: Caller) -> Error {
        let error = error.seen_at(caller, || self.card.name());
        self.card.raise(self.parts.process(), error)
    }

    /// The place of a call on the window.
    pub(super) fn place(
        &self,
        call: &'static str,
        target: Option<i32>,
        bytes: Option<(i128, i128)>,
    ) -> Place {
        let parts = &self.parts;
        Place {
            call,
            rank: parts.process().me().rank,
            target,
            process: target.and_then(|target| parts.peers().get(target)?.peer.into()),
            window: Some(parts.id()),
            bytes,
            epoch: Some(parts.epochs().state().to_string()),
            ..Place::default()
        }
    }
}
