//! The announcement of a collective call under `--check`, before the call is made (rules 8 and 9).

use super::Communicator;
use super::calls::Call;
use super::participants::finish;
use crate::check::clock::Clock;
use crate::check::note::longest;
use crate::check::order::{Announcement, Disagreement, Sample, compare};
use crate::check::report::{Tally, summary};
use crate::check::{Caller, site};
use crate::error::{Error, ErrorKind, Result};
use crate::log;
use crate::memory::{Scope, Span};
use crate::origin::{Destination, Origin, What};
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
            true => self.announce_with(call, None, None, 0, Some(caller)).map(drop),
            false => Ok(()),
        }
    }

    /// Announces a call on data, of which all ranks give a like sample.
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
                self.announce_with(|| call.to_string(), None, sample, 0, Some(caller)).map(drop)
            }
            false => Ok(()),
        }
    }

    /// Under `--check`, what all ranks give alike: the elements of `data`, unless they are in
    /// place.
    pub(super) fn sample(&self, data: &Origin<'_>) -> Option<Sample> {
        let checks = self.process().checks();
        checks.then(|| Scope::with(|scope| self.sample_at(data.what, scope.lend(data.loan), 1)))?
    }

    /// Under `--check`, what all ranks give alike: one of so many equal parts of `room`.
    pub(super) fn sample_room(&self, room: &mut Destination<'_>, parts: u64) -> Option<Sample> {
        let loan = self.process().checks().then(|| room.loan.again())?;
        Scope::with(|scope| self.sample_at(room.what, scope.lend_mut(loan), parts))
    }

    /// Under `--check`, what all ranks give alike to a reduction.
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

    /// `None` for data that the call itself refuses.
    fn sample_at(&self, what: What<'_>, memory: Span, parts: u64) -> Option<Sample> {
        let all = what.resolve(self.process(), memory).ok()?;
        let count = all.count / parts;
        let datatype = &*all.datatype;
        let text = Items { count, form: datatype.form(), text: datatype }.to_string();
        Some(Sample { signature: all.signature(count).ok()?, text })
    }

    /// Announces a call under `--check`, with the window and the asserts of a fence. Returns each
    /// rank's count of reports.
    #[cold]
    pub(crate) fn announce_with(
        &self,
        call: impl FnOnce() -> String,
        window: Option<u32>,
        sample: Option<Sample>,
        promises: u32,
        caller: Option<Caller>,
    ) -> Result<Vec<Tally>> {
        let process = self.process();
        let (clock, tally) = match process.engine().state().check() {
            Some(check) => (check.release_to_all(), check.tally()),
            None => return Ok(Vec::new()),
        };
        let mine =
            Announcement { call: call(), site: site(caller), promises, sample, clock, tally };
        let (all, rank) = self.everyone();
        let ranks = all.processes();
        let said = finish(
            self.announcing(window).allgather_values_within(&mine, longest(process.me().size)),
        )?;
        let mut known = Clock::default();
        for it in &said {
            known.join(&Clock::from_numbers(it.clock.clone()));
        }
        let mut engine = process.engine();
        if let Some(check) = engine.state().check() {
            check.learn_with(ranks, &known);
            if let Some(Disagreement { rule, kind, text }) = compare(ranks, &said) {
                // All ranks come to this result, so only one of them reports it.
                if rank == 0 {
                    check.tell(kind, || text.clone());
                }
                if rule == 8 {
                    return Err(ErrorKind::OutOfOrder(text).into());
                }
            }
        }
        Ok(said.into_iter().map(|it| it.tally).collect())
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
        let tallies = self.announce_with(|| "finalize".to_owned(), None, None, 0, Some(caller))?;
        if self.rank() == 0 {
            log::say(&summary(&tallies));
        }
        let told = tallies.iter().map(|tally| tally.told).sum();
        let fails = self.process().check_fails() && told > 0;
        Ok(fails.then(|| ErrorKind::Found(told).into()))
    }
}
