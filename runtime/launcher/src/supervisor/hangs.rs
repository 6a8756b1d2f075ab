//! The supervisor's deadlines, and its reports of a job that hangs: the watchdog's, and the stacks
//! of the ranks.

use std::time::{Duration, Instant};

use longshore_transport::Note;
use nix::poll::PollTimeout;

use super::{Phase, Supervisor};
use crate::frames::shortened;
use crate::message::Command;
use crate::server::Standing;
use crate::watchdog::Watchdog;
use crate::{Patience, Stacks, TIMED_OUT};

/// The time that debuggers have to read the stacks of all ranks after a timeout.
const TRACING: Duration = Duration::from_secs(30);

/// The time that they have for stacks that nobody asked for.
const BRIEF_TRACING: Duration = Duration::from_secs(10);

/// The most ranks whose stacks are read if nobody asked for them.
const TRACED: usize = 16;

/// The stacks that the watchdog's first report of a hang has without being asked for them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unasked {
    /// There was no report.
    Not,
    /// Debuggers read them, until this time at the latest.
    Until(Instant),
    /// Later reports have none.
    Over,
}

/// The times at which a running job is looked at, and ended.
pub(super) struct Timers {
    /// The time at which the job times out.
    pub deadline: Option<Instant>,
    watchdog: Option<Watchdog>,
    unasked: Unasked,
}

impl Timers {
    /// Those of a job of `size` ranks that begins now.
    pub(super) fn new(patience: &Patience, size: u32) -> Timers {
        let now = Instant::now();
        Timers {
            deadline: patience.timeout.and_then(|timeout| now.checked_add(timeout)),
            watchdog: patience.watchdog.map(|patience| Watchdog::new(size, patience, now)),
            unasked: Unasked::Not,
        }
    }

    /// Has the watchdog look at so many more ranks.
    pub(super) fn add(&mut self, ranks: u32) {
        if let Some(watchdog) = &mut self.watchdog {
            watchdog.add(ranks, Instant::now());
        }
    }

    /// The time of the watchdog's next look.
    fn look(&self) -> Option<Instant> {
        self.watchdog.as_ref().and_then(Watchdog::next)
    }
}

impl Unasked {
    fn until(self) -> Option<Instant> {
        match self {
            Unasked::Until(until) => Some(until),
            Unasked::Not | Unasked::Over => None,
        }
    }
}

impl Supervisor<'_> {
    /// The time until something is due that no descriptor reports.
    pub(super) fn time_left(&self) -> PollTimeout {
        let next = match self.phase {
            Phase::Running => {
                let postponed = self.postponed.iter().map(|failure| failure.until);
                let Timers { deadline, unasked, .. } = &self.timers;
                let times = [*deadline, self.timers.look(), unasked.until()];
                times.into_iter().flatten().chain(postponed).min()
            }
            Phase::Tracing(at) | Phase::Leaving(at) | Phase::Ending(at) | Phase::Killed(at) => {
                Some(at)
            }
            Phase::GivenUp => None,
        };
        let overdue = self.stations.overdue();
        let Some(next) = next.into_iter().chain(overdue).min() else { return PollTimeout::NONE };
        // Rounded up: poll(2) counts in milliseconds, and a timeout of 0 would spin.
        let left = next.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
        PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)
    }

    /// Handles what is due.
    pub(super) fn handle_time(&mut self) {
        let now = Instant::now();
        match self.phase {
            Phase::Running if self.timers.deadline.is_some_and(|deadline| deadline <= now) => {
                self.status = Some(TIMED_OUT);
                let seconds = self.job.patience.timeout.unwrap_or_default().as_secs_f64();
                let living = self.describe_living();
                self.say(&format!("the job took longer than {seconds} s; ending {living}"));
                match self.job.patience.stacks {
                    Stacks::Off => self.end(),
                    Stacks::Timeout | Stacks::Hang => {
                        self.ask_for_some_stacks();
                        self.phase = Phase::Tracing(now + BRIEF_TRACING);
                    }
                    Stacks::All | Stacks::Full => {
                        self.ask_for_all_stacks();
                        self.phase = Phase::Tracing(now + TRACING);
                    }
                }
            }
            Phase::Tracing(until) if until <= now || self.untraced().next().is_none() => {
                self.name_untraced();
                self.end();
            }
            Phase::Running if self.timers.unasked.until().is_some_and(|until| until <= now) => {
                self.end_unasked();
            }
            Phase::Running if self.timers.look().is_some_and(|look| look <= now) => self.look(now),
            Phase::Leaving(end) if end <= now => self.end_leavers(),
            Phase::Ending(kill) if kill <= now => self.kill(),
            Phase::Killed(give_up) if give_up <= now => {
                self.phase = Phase::GivenUp;
                self.stations
                    .remotes()
                    .for_each(|remote| remote.give_up("its agent doesn't answer"));
            }
            _ => {}
        }
        self.stations.give_up_overdue(now);
    }

    /// Passes the notes of all ranks to the watchdog and prints its report.
    fn look(&mut self, now: Instant) {
        let notes: Vec<_> = (0..self.ranks.len() as u32)
            .map(|rank| match self.server.standing(rank) {
                Standing::Outside => Some(Note::default()), // it computes, and may still call init
                Standing::Joined => Some(self.stations.noted(rank)),
                Standing::Finalized | Standing::Dead => None,
            })
            .collect();
        let Some(watchdog) = &mut self.timers.watchdog else { return };
        let report = watchdog.look(now, &notes, |rank| self.stations.remarked(rank));
        report.lines.iter().for_each(|line| self.say(line));
        match (self.job.patience.stacks, self.timers.unasked) {
            _ if report.lines.is_empty() => {}
            (Stacks::All | Stacks::Full, _) => self.ask_for_all_stacks(),
            // To read the stacks stops the ranks, and one that only takes long is no fault.
            (Stacks::Hang, Unasked::Not) if report.hangs => {
                self.ask_for_some_stacks();
                self.timers.unasked = Unasked::Until(now + BRIEF_TRACING);
            }
            _ => {}
        }
    }

    /// Ends the debuggers that nobody asked for: the job may go on, and they have stopped its ranks
    /// for long enough.
    fn end_unasked(&mut self) {
        self.timers.unasked = Unasked::Over;
        if self.untraced().next().is_some() {
            self.name_untraced();
            self.stations.act_all(&Command::EndStacks);
            self.ranks.iter_mut().for_each(|rank| rank.untraced = false);
        }
    }

    /// Asks for the stacks of all running ranks.
    fn ask_for_all_stacks(&mut self) {
        let running: Vec<u32> = self.running().collect();
        self.ask_for_stacks(running, true);
    }

    /// Asks for the stacks of at most [`TRACED`] running ranks. The ranks whose activity is the
    /// rarest come first: mostly a few ranks keep the others waiting.
    fn ask_for_some_stacks(&mut self) {
        let running: Vec<u32> = self.running().collect();
        let all = running.len();
        let activity = |&rank: &u32| (self.server.standing(rank), self.stations.noted(rank).code);
        let activities: Vec<_> = running.iter().map(activity).collect();
        let mut chosen = rarest_first(&running, &activities);
        chosen.truncate(TRACED);
        chosen.sort_unstable();
        if chosen.len() < all {
            let number = chosen.len();
            self.say(&format!("stacks of {number} of {all} ranks follow: --stacks prints all"));
        }
        self.ask_for_stacks(chosen, false);
    }

    fn ask_for_stacks(&mut self, ranks: Vec<u32>, states: bool) {
        ranks.iter().for_each(|&rank| self.ranks[rank as usize].untraced = true);
        self.stations.act_all(&Command::Stacks { ranks, states });
    }

    fn running(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.ranks).filter(|(_, rank)| rank.runs).map(|(rank, _)| rank)
    }

    /// The running ranks whose stacks were asked for and aren't there yet.
    fn untraced(&self) -> impl Iterator<Item = u32> {
        let ranks = (0..).zip(&self.ranks);
        ranks.filter(|(_, rank)| rank.untraced && rank.runs).map(|(rank, _)| rank)
    }

    /// Prints the ranks whose stacks didn't come in time.
    fn name_untraced(&mut self) {
        let names: Vec<_> = self.untraced().map(|rank| rank.to_string()).collect();
        if !names.is_empty() {
            let names = names.join(", ");
            self.say(&format!("no stacks in time of ranks: {names}"));
        }
    }

    /// Prints the stacks of a rank: a line that says how they were read, and the stacks.
    pub(super) fn handle_stacks(&mut self, rank: u32, text: &str) {
        self.ranks[rank as usize].untraced = false;
        if text.is_empty() {
            if self.untraced().next().is_none() {
                self.say("gdb, or eu-stack of elfutils, would print the stacks of these ranks");
            }
            return;
        }
        let mut lines = text.lines();
        let how = lines.next().unwrap_or_default();
        self.say(&format!("stacks of rank {rank}, {how}"));
        let shown = match self.job.patience.stacks {
            Stacks::Full => lines.map(str::to_owned).collect(),
            _ => shortened(lines),
        };
        shown.iter().for_each(|line| self.say(&format!("  {line}")));
    }
}

/// The ranks with the rarest activities first, and otherwise in their order.
fn rarest_first<T: PartialEq>(ranks: &[u32], activities: &[T]) -> Vec<u32> {
    let alike = |activity| activities.iter().filter(|&other| other == activity).count();
    let counts = activities.iter().map(alike);
    let mut all: Vec<(usize, u32)> = counts.zip(ranks.iter().copied()).collect();
    all.sort_unstable();
    all.into_iter().map(|(_, rank)| rank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rank_that_does_something_else_comes_first() {
        let activities = ["in a fence", "in a fence", "computing", "in a fence"];
        assert_eq!(rarest_first(&[3, 4, 7, 9], &activities), [7, 3, 4, 9]);
    }
}
