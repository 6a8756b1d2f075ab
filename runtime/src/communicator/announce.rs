//! Collective calls as they are announced under `--check`, before they are made (rules 8 and 9).

use super::Communicator;
use crate::check::clock::Clock;
use crate::check::note::longest;
use crate::check::order::{Announcement, Disagreement, compare};
use crate::check::report::{Tally, summary};
use crate::check::{Caller, site};
use crate::error::{Error, ErrorKind, Result};
use crate::log;

/// The tag of announcements.
const CALLS: i32 = 5;

impl Communicator {
    /// Tells all ranks which call this one makes, and hears theirs. Everyone comes to know what all did before.
    ///
    /// # Errors
    /// At all ranks, where they don't make the same call: RMA_SYNC.
    #[inline]
    pub(crate) fn announce(&self, call: impl FnOnce() -> String, caller: Caller) -> Result<()> {
        match self.process().checks() {
            true => self.announce_with(call, 0, Some(caller)).map(drop),
            false => Ok(()),
        }
    }

    /// Likewise, with a fence's promises, where uses of windows are checked. Gives what each rank has found.
    #[cold]
    pub(crate) fn announce_with(
        &self,
        call: impl FnOnce() -> String,
        promises: u32,
        caller: Option<Caller>,
    ) -> Result<Vec<Tally>> {
        let process = self.process();
        let (clock, tally) = match process.engine().state().check() {
            Some(check) => (check.release_to_all(), check.tally()),
            None => return Ok(Vec::new()),
        };
        let mine = Announcement { call: call(), site: site(caller), promises, clock, tally };
        let ranks = self.group().processes();
        let said = self.circle(CALLS).tell_within(&mine, longest(process.me().size))?;
        let mut known = Clock::default();
        for it in &said {
            known.join(&Clock::from_numbers(it.clock.clone()));
        }
        let mut engine = process.engine();
        if let Some(check) = engine.state().check() {
            check.learn_with(ranks, &known);
            if let Some(Disagreement { rule, kind, text }) = compare(ranks, &said) {
                // All see the same; one says it.
                if self.rank() == 0 {
                    check.tell(kind, || text.clone());
                }
                if rule == 8 {
                    return Err(ErrorKind::OutOfOrder(text).into());
                }
            }
        }
        Ok(said.into_iter().map(|it| it.tally).collect())
    }

    /// The last announcement of a job, and what was found in it: an error, of class OTHER, if it is to be one. It is the same
    /// at all ranks.
    ///
    /// # Errors
    /// As [`announce`](Communicator::announce).
    pub(crate) fn announce_end(&self, caller: Caller) -> Result<Option<Error>> {
        if !self.process().checks() {
            return Ok(None);
        }
        let tallies = self.announce_with(|| "finalize".to_owned(), 0, Some(caller))?;
        if self.rank() == 0 {
            log::say(&summary(&tallies));
        }
        let told = tallies.iter().map(|tally| tally.told).sum();
        let fails = self.process().check_fails() && told > 0;
        Ok(fails.then(|| ErrorKind::Found(told).into()))
    }
}
