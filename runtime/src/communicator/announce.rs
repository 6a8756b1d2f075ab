//! The announcement of a collective call under `--check`, before the call is made (rules 8 and 9).

use std::future::Future;
use std::pin::pin;
use std::sync::{MutexGuard, PoisonError};

use super::Communicator;
use super::agreement::{Agreement, Part, Verdict};
use super::calls::{Call, Ongoing};
use super::message::Side;
use super::participants::finish;
use crate::bytes::Bytes;
use crate::check::buffers::Use;
use crate::check::clock::Clock;
use crate::check::order::{Announcement, Disagreement, Object, Sample, compare, differ};
use crate::check::report::{Tally, summary};
use crate::check::{Caller, site};
use crate::engine::{Channel, Pattern, Sender, State};
use crate::error::{Error, ErrorKind, Result};
use crate::job::Topics;
use crate::log;
use crate::memory::{Scope, Span};
use crate::origin::{Destination, Origin, What};
use crate::program::Line;
use crate::sequence::Items;

impl Communicator {
    /// Sends all ranks the name of this rank's call, and compares it with theirs. It also makes all
    /// earlier accesses of all ranks known to each of them. Does nothing without `--check`.
    ///
    /// # Errors
    /// RMA_SYNC at all ranks if they make different calls.
    #[inline]
    pub(crate) fn announce(&self, call: impl FnOnce() -> String, caller: Caller) -> Result<()> {
        match self.process().checks() {
            true => self.announce_on(Object::Communicator, call, caller),
            false => Ok(()),
        }
    }

    /// Announces a call on a window of this communicator's ranks, as
    /// [`announce`](Communicator::announce) does.
    ///
    /// # Errors
    /// RMA_SYNC at all ranks if they make different calls.
    pub(crate) fn announce_at(
        &self,
        window: u32,
        call: impl FnOnce() -> String,
        caller: Caller,
    ) -> Result<()> {
        match self.process().checks() {
            true => self.announce_on(Object::Window(window), call, caller),
            false => Ok(()),
        }
    }

    fn announce_on(
        &self,
        object: Object,
        call: impl FnOnce() -> String,
        caller: Caller,
    ) -> Result<()> {
        self.announce_with(call, (object, None), None, 0, Some(Line::of(caller))).map(drop)
    }

    /// Announces a call on data, of which all ranks give the same sample.
    ///
    /// # Errors
    /// RMA_SYNC at all ranks if they make different calls, or give different data.
    #[inline]
    pub(super) fn announce_data(
        &self,
        call: Call,
        sample: Option<Sample>,
        caller: Caller,
    ) -> Result<()> {
        // The ranks of two groups give different roots, and data of their own.
        let (call, sample) = match self.is_inter() {
            true => (call.without_root(), None),
            false => (call, sample),
        };
        match self.process().checks() {
            true => {
                let (on, line) = ((Object::Communicator, None), Some(Line::of(caller)));
                self.announce_with(|| call.to_string(), on, sample, 0, line).map(drop)
            }
            false => Ok(()),
        }
    }

    /// Under `--check`, returns the sample of `data`, of which all ranks give the same. `None` for
    /// data in place.
    pub(super) fn sample(&self, data: &Origin<'_>) -> Option<Sample> {
        let checks = self.process().checks();
        checks.then(|| Scope::with(|scope| self.sample_at(data.what, scope.lend(data.loan), 1)))?
    }

    /// Under `--check`, returns the sample of one of `parts` equal parts of `room`, of which all
    /// ranks give the same.
    pub(super) fn sample_room(&self, room: &mut Destination<'_>, parts: u64) -> Option<Sample> {
        let loan = self.process().checks().then(|| room.loan.again())?;
        Scope::with(|scope| self.sample_at(room.what, scope.lend_mut(loan), parts))
    }

    /// Under `--check`, returns the sample of the operands of a reduction, of which all ranks give
    /// the same.
    pub(super) fn sample_operands(
        &self,
        data: &Origin<'_>,
        room: &mut Destination<'_>,
    ) -> Option<Sample> {
        match data.what {
            What::InPlace => self.sample_room(room, 1),
            _ => self.sample(data),
        }
    }

    /// The sample of one of `parts` equal parts of some data. `None` for data that the call itself
    /// refuses.
    fn sample_at(&self, what: What<'_>, memory: Span, parts: u64) -> Option<Sample> {
        let all = what.resolve(self.process(), memory).ok()?;
        let count = all.count / parts;
        let datatype = &*all.datatype;
        let text = Items { count, form: datatype.form(), text: datatype }.to_string();
        Some(Sample { signature: all.signature(count).ok()?, text })
    }

    /// Announces a call on an object under `--check`, with the asserts of a fence. Returns each
    /// rank's count of reports. If `window` is given, the call fails once that window is poisoned.
    #[cold]
    pub(crate) fn announce_with(
        &self,
        call: impl FnOnce() -> String,
        (object, window): (Object, Option<u32>),
        sample: Option<Sample>,
        promises: u32,
        caller: Option<Line>,
    ) -> Result<Vec<Tally>> {
        let process = self.process();
        process.note_thread();
        // Calls on windows go on, but the rounds end, in which the ranks compare them.
        let goes_on = || matches!(object, Object::Window(_)) && self.has_been_revoked();
        if goes_on() {
            return Ok(Vec::new());
        }
        let (clock, tally, topics) = match process.engine().state().check() {
            Some(check) => (check.release_to_all(), check.tally(), check.topics()),
            None => return Ok(Vec::new()),
        };
        let (call, site) = (call(), site(caller));
        let mine = Announcement { object, call, site, promises, sample, clock, tally };
        let verdict = self.take_part(Some(mine), window, |agreement| {
            agreement.take(object).ok_or_else(|| agreement.awaited(object))
        });
        self.agreement().leave(object);
        let (all, rank) = self.everyone();
        let ranks = all.processes();
        let (number, verdict) = match verdict {
            Err(_) if goes_on() => return Ok(Vec::new()),
            verdict => verdict?,
        };
        let (said, found) = match verdict {
            Verdict::Agreed(said) => {
                let found = compare(ranks, &said, topics);
                (said, found)
            }
            Verdict::Differs(said) => {
                let of = |rank: &u32| ranks.get(*rank as usize).copied().unwrap_or_default();
                let callers: Vec<u32> = said.iter().map(|(rank, _)| of(rank)).collect();
                let said: Vec<_> = said.into_iter().map(|(_, said)| said).collect();
                (Vec::new(), Some(differ(&callers, &said)))
            }
        };
        let mut known = Clock::default();
        for it in &said {
            known.join(&Clock::from_numbers(it.clock.clone()));
        }
        if let Some(check) = process.engine().state().check() {
            check.learn_with(ranks, &known);
            // All ranks come to this result, so only one of them reports it.
            if let (Some(Disagreement { topic, kind, text, .. }), 0) = (&found, rank) {
                check.tell(*topic, kind.clone(), || text.clone());
            }
        }
        if let Some(Disagreement { rule: 8, text, .. }) = found {
            if rank == 0 {
                self.agreement().report(number);
            }
            // The first rank that gets the error may end the job: not before the report.
            self.take_part(None, window, |agreement| match agreement.is_reported(number) {
                true => Ok(()),
                false => Err(Some(0)),
            })?;
            return Err(ErrorKind::OutOfOrder(text).into());
        }
        Ok(said.into_iter().map(|it| it.tally).collect())
    }

    /// Takes part in rounds until `look` returns a value, which it returns. Until then, `look`
    /// returns the rank that this thread waits for. The first round announces `news`.
    fn take_part<T>(
        &self,
        mut news: Option<Announcement>,
        window: Option<u32>,
        mut look: impl FnMut(&mut Agreement) -> Result<T, Option<u32>>,
    ) -> Result<T> {
        let process = self.process();
        loop {
            if let Some(value) = self.await_round(&mut look, news.is_some(), window)? {
                return Ok(value);
            }
            let threads = process.may_have_threads();
            let part = self.agreement().part(news.take(), threads);
            let limit = Part::longest(process.me().size);
            let heard = finish(pin!(self.announcing(window).allgather_values_within(&part, limit)));
            // With the engine locked, since other threads of this rank look before they sleep.
            let engine = process.engine();
            let mut agreement = self.agreement();
            agreement.busy = false;
            let heard = heard.map(|parts| agreement.handle_round(parts));
            drop(agreement);
            process.nudge();
            drop(engine);
            heard?;
        }
    }

    /// Waits until `look` returns a value, or until a round is to be made: for news of this rank,
    /// or since another rank has begun it. Returns `None` for a round, which no other thread of
    /// this rank joins.
    fn await_round<T>(
        &self,
        look: &mut impl FnMut(&mut Agreement) -> Result<T, Option<u32>>,
        has_news: bool,
        window: Option<u32>,
    ) -> Result<Option<T>> {
        let (process, (all, _)) = (self.process(), self.everyone());
        let context = self.context(Channel::Internal);
        let begun = |state: &mut State| {
            let (sender, tag) = (Sender::Any(all.clone()), Some(self.next_announcement()));
            state.probe(&Pattern { context, sender, tag })
        };
        process.wait(|state, arming| {
            let mut agreement = self.agreement();
            let awaited = match look(&mut agreement) {
                Ok(value) => return Some(Ok(Some(value))),
                Err(awaited) => awaited,
            };
            if !agreement.busy {
                let join = match has_news || agreement.has_reported() {
                    true => Some(Ok(())),
                    false => begun(state).map(|it| it.map(drop)),
                };
                agreement.busy = matches!(join, Some(Ok(())));
                if let Some(join) = join {
                    return Some(join.map(|()| None));
                }
            }
            if arming {
                process.note_wait(
                    awaited.and_then(|rank| all.processes().get(rank as usize).copied()),
                );
            }
            let revoked = state.revoked(self.context(Channel::Internal));
            revoked.or_else(|| state.lost_among(all, window)).map(Err)
        })
    }

    /// Under `--check`, returns the sample of a call with a request, of which all ranks give the
    /// same.
    pub(super) fn sample_started(
        &self,
        call: Call,
        data: Side<'_>,
        room: Side<'_>,
    ) -> Option<Sample> {
        if !self.process().checks() {
            return None;
        }
        let (side, parts) = match call.name() {
            "bcast" | "gather" | "allgather" => (data, 1),
            "scatter" => (room, 1),
            "alltoall" => (room, self.peers().size() as u64),
            "reduce"
            | "allreduce"
            | "scan"
            | "exscan"
            | "reduce_scatter"
            | "reduce_scatter_block" => {
                (if matches!(data.what, What::InPlace) { room } else { data }, 1)
            }
            _ => return None,
        };
        self.sample_at(side.what, side.span, parts)
    }

    /// Under `--check`, notes the memory that a call with a request uses.
    pub(super) fn note_use(
        &self,
        call: &'static str,
        side: Side<'_>,
        writes: bool,
        caller: Caller,
    ) {
        // Blocks with places of their own may leave gaps, which others use.
        if !self.process().checks() || call.ends_with('v') {
            return;
        }
        let Ok(all) = side.what.resolve(self.process(), side.span) else { return };
        let memory = (all.datatype.native(), all.count, all.span);
        let of = Use::new((call, Line::of(caller)), writes, memory);
        self.process().engine().state().note_use(of, true);
    }

    /// The announcement of a call with a request, or of the start of a persistent one.
    #[cold]
    pub(super) fn started_announcement(
        &self,
        (name, call): (&str, Call),
        sample: Option<Sample>,
        caller: Caller,
    ) -> Announcement {
        let (call, sample) = match self.is_inter() {
            true => (call.without_root(), None),
            false => (call, sample),
        };
        let name = match self.reserved {
            Some(_) => format!("{}_init", call.name()),
            None => name.to_owned(),
        };
        let arguments = call.to_string().split_off(call.name().len());
        Announcement {
            object: Object::Communicator,
            call: name + &arguments,
            site: site(Some(Line::of(caller))),
            promises: 0,
            sample,
            clock: Vec::new(),
            tally: Tally::default(),
        }
    }

    /// The steps of a call with a request under `--check`: its ranks announce it to each other,
    /// compare it, and then make it. So no data move between calls that differ, and no rank waits
    /// in one.
    pub(super) async fn compared(
        self,
        at: Ongoing,
        mine: Announcement,
        steps: impl Future<Output = Result<()>>,
    ) -> Result<()> {
        // Messages of a sender arrive in order, so those of the announcement come before those of
        // the call, which has the same number.
        let all = self.participants(Ongoing { call: Call::new("barrier"), ..at });
        let limit = Part::longest(self.process().me().size);
        let said = all.allgather_values_within(&mine, limit).await?;
        let (everyone, rank) = self.everyone();
        let found = {
            let mut engine = self.process().engine();
            let check = engine.state().check();
            let topics = check.as_ref().map_or(Topics::default(), |check| check.topics());
            let found = compare(everyone.processes(), &said, topics);
            if let (Some(check), Some(found), 0) = (check, &found, rank) {
                check.tell(found.topic, found.kind.clone(), || found.text.clone());
            }
            found
        };
        let Some(Disagreement { text, .. }) = found else { return steps.await };
        // The first rank that gets the error may end the job: not before the report.
        all.allgather(Bytes::default()).await?;
        Err(ErrorKind::OutOfOrder(text).into())
    }

    fn agreement(&self) -> MutexGuard<'_, Agreement> {
        self.shared.agreement.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Announces finalize, the last call of a job. Under `--check=fail`, returns an error of class
    /// OTHER at all ranks if there were reports.
    ///
    /// # Errors
    /// RMA_SYNC at all ranks if they make different calls.
    pub(crate) fn announce_end(&self, caller: Caller) -> Result<Option<Error>> {
        if !self.process().checks() {
            return Ok(None);
        }
        // After it, the messages of all ranks are here.
        self.announce(|| "finalize".to_owned(), caller)?;
        self.process().check_messages();
        let tallies = {
            let (on, line) = ((Object::Communicator, None), Some(Line::of(caller)));
            self.announce_with(|| "finalize".to_owned(), on, None, 0, line)?
        };
        if self.rank() == 0 {
            log::say(&summary(&tallies));
        }
        let told = tallies.iter().map(|tally| tally.told).sum();
        let fails = self.process().check_fails() && told > 0;
        Ok(fails.then(|| ErrorKind::Found(told).into()))
    }
}
