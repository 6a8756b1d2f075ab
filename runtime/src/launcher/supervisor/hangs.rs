//! The supervisor's deadlines, and its reports of a job that hangs: the watchdog's, and the stacks of
//! the ranks.

use std::time::{Duration, Instant};

use longshore_transport::Note;
use nix::poll::PollTimeout;

use super::{Phase, Supervisor};
use crate::launcher::TIMED_OUT;
use crate::launcher::message::Command;
use crate::launcher::server::Standing;
use crate::launcher::watchdog::Watchdog;

/// The time that debuggers have to read the ranks' stacks after a timeout.
const TRACING: Duration = Duration::from_secs(30);

impl Supervisor<'_> {
    /// The time until something is due that no descriptor reports.
    pub(super) fn time_left(&self) -> PollTimeout {
        let next = match self.phase {
            Phase::Running => {
                let postponed = self.postponed.iter().map(|failure| failure.until);
                let look = self.watchdog.as_ref().and_then(Watchdog::next);
                self.deadline.into_iter().chain(look).chain(postponed).min()
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
            Phase::Running if self.deadline.is_some_and(|deadline| deadline <= now) => {
                self.status = Some(TIMED_OUT);
                let seconds = self.job.patience.timeout.unwrap_or_default().as_secs_f64();
                let living = self.describe_living();
                self.say(&format!("the job took longer than {seconds} s; ending {living}"));
                match self.job.patience.stacks {
                    true => {
                        self.ask_for_stacks();
                        self.phase = Phase::Tracing(now + TRACING);
                    }
                    false => self.end(),
                }
            }
            Phase::Tracing(until) if until <= now || self.untraced().next().is_none() => {
                self.name_untraced();
                self.end();
            }
            Phase::Running if self.is_look_due(now) => self.look(now),
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

    fn is_look_due(&self, now: Instant) -> bool {
        self.watchdog.as_ref().and_then(Watchdog::next).is_some_and(|look| look <= now)
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
        let Some(watchdog) = &mut self.watchdog else { return };
        let report = watchdog.look(now, &notes, |rank| self.stations.remarked(rank));
        report.iter().for_each(|line| self.say(line));
        if self.job.patience.stacks && !report.is_empty() {
            self.ask_for_stacks();
        }
    }

    /// Asks for the stacks of all running ranks.
    fn ask_for_stacks(&mut self) {
        for rank in &mut self.ranks {
            rank.untraced = rank.runs;
        }
        self.stations.act_all(&Command::Stacks);
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
            let seconds = TRACING.as_secs();
            let names = names.join(", ");
            self.say(&format!("no stacks within {seconds} s of ranks: {names}"));
        }
    }

    /// Prints the stacks of a rank: a line that says how they were read, and the stacks.
    pub(super) fn handle_stacks(&mut self, rank: u32, text: &str) {
        self.ranks[rank as usize].untraced = false;
        let mut lines = text.lines();
        let how = lines.next().unwrap_or_default();
        self.say(&format!("stacks of rank {rank}, {how}"));
        lines.for_each(|line| self.say(&format!("  {line}")));
    }
}
