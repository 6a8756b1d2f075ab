//! Collective calls as they are announced under `--check`, before they are made (rules 8 and 9).

use super::Communicator;
use super::agree::Circle;
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
            true => self.announce_in(&self.circle(CALLS), call(), 0, Some(caller)).map(drop),
            false => Ok(()),
        }
    }

    /// Likewise, of a call on a window, with a fence's promises.
    pub(crate) fn announce_at(
        &self,
        window: u32,
        call: &str,
        promises: u32,
        caller: Option<Caller>,
    ) -> Result<()> {
        match self.process().checks() {
            true => {
                let call = format!("{call} of window {window}");
                self.announce_in(&self.circle_at(window), call, promises, caller).map(drop)
            }
            false => Ok(()),
        }
    }

    /// Gives what each rank has found.
    #[cold]
    fn announce_in(
        &self,
        circle: &Circle<'_>,
        call: String,
        promises: u32,
        caller: Option<Caller>,
    ) -> Result<Vec<Tally>> {
        let process = self.process();
        let (clock, tally) = match &mut process.engine().state().check {
            Some(check) => (check.release_to_all(), check.tally()),
            None => return Ok(Vec::new()),
        };
        let mine = Announcement { call, site: site(caller), promises, clock, tally };
        let ranks = self.group().processes();
        let said = circle.tell_within(&mine, longest(process.me().size))?;
        let mut known = Clock::default();
        for it in &said {
            known.join(&Clock::from_numbers(it.clock.clone()));
        }
        let mut engine = process.engine();
        if let Some(check) = &mut engine.state().check {
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
        let circle = self.circle(CALLS);
        let tallies = self.announce_in(&circle, "finalize".to_owned(), 0, Some(caller))?;
        if self.rank() == 0 {
            log::say(&summary(&tallies));
        }
        let told = tallies.iter().map(|tally| tally.told).sum();
        let fails = self.process().check_fails() && told > 0;
        Ok(fails.then(|| ErrorKind::Found(told).into()))
    }
}
