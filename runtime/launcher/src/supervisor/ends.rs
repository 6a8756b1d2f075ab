//! The supervisor's reactions to the end of ranks and hosts.
//!
//! Each end has a [`Cause`]. A failure sets the job's exit status, is printed with the activity of
//! the rank, and ends the job unless [`OnDeath::Survive`] lets the other ranks go on.
//!
//! The first failure counts. A rank that leaves without finalize tells its peers before it prints
//! why and exits, and the peers may fail and exit sooner. Each host knows which rank was the first
//! to die. The failures of other ranks are therefore *postponed* until that rank has ended.
//!
//! The job ends in phases: SIGTERM to the ranks that haven't left, to all ranks after [`LEAVE`],
//! SIGKILL after [`GRACE`]. Hosts that still don't answer are given up.

use std::process::ExitStatus;
use std::time::{Duration, Instant};

use longshore_transport::Cause as Death;
use nix::sys::signal::Signal;

use super::{LAST_WORDS, Phase, Supervisor};
use crate::cause::Cause;
use crate::message::Command;
use crate::server::Standing;
use longshore_job::{Activity, OnDeath};

/// The time that ranks have to end by themselves between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_millis(300);

/// The time that ranks which have left the job have to print their messages and exit, before they
/// get SIGTERM too.
const LEAVE: Duration = Duration::from_millis(300);

/// The longest time for which a failure is postponed. A rank that has left may still compute.
const PATIENCE: Duration = Duration::from_secs(1);

/// A failure of a rank that may be an effect of another rank's failure.
pub(super) struct Postponed {
    rank: u32,
    status: ExitStatus,
    /// The rank that died first, whose end is reported first.
    awaited: u32,
    /// The time at which to wait no longer.
    pub(super) until: Instant,
}

impl Supervisor<'_> {
    /// Handles the end of a host's start command, which ended with `status`. Ranks of the host that
    /// were still running are lost.
    pub(super) fn handle_lost(&mut self, host: usize, status: ExitStatus) {
        let Some(remote) = self.stations.remote(host) else { return };
        let lost: Vec<u32> = (0..self.ranks.len() as u32)
            .filter(|&rank| {
                self.ranks[rank as usize].runs && self.stations.host_of(rank) == host as u32
            })
            .filter(|&rank| self.postponed.iter().all(|failure| failure.rank != rank))
            .collect();
        if lost.is_empty() {
            return;
        }
        let (code, reason) = remote.describe_end(status);
        let has_run = remote.has_run();
        for &rank in &lost {
            self.note_end(rank);
            self.mark(rank, Death::Lost);
        }
        self.status.get_or_insert(code);
        match self.phase {
            Phase::Running => self.announce(&reason, has_run),
            Phase::GivenUp => self.say(&reason),
            // The job is ending anyway.
            Phase::Tracing(_) | Phase::Leaving(_) | Phase::Ending(_) | Phase::Killed(_) => {}
        }
        for rank in lost {
            let answer = self.server.handle_death(rank);
            self.answer(rank, answer);
        }
    }

    /// Records that a rank has ended, and forwards its unterminated last lines.
    fn note_end(&mut self, rank: u32) {
        let ended = &mut self.ranks[rank as usize];
        ended.runs = false;
        ended.stdout.flush(&mut self.queue);
        ended.stderr.flush(&mut self.queue);
        if !self.is_any_running() {
            // The timeout limits the ranks, not the time that agents take to exit.
            self.timers.deadline = None;
        }
    }

    /// Handles the end of a rank's process. `first_dead` is the rank that was the first to die as
    /// far as the rank's host knows.
    pub(super) fn handle_end(&mut self, rank: u32, status: ExitStatus, first_dead: Option<u32>) {
        if !self.ranks[rank as usize].runs {
            return;
        }
        let is_failure = Cause::new(status, self.server.standing(rank)) != Cause::Finished;
        match first_dead.filter(|&first| is_failure && first != rank) {
            Some(awaited) if (awaited as usize) < self.ranks.len() => {
                let until = Instant::now() + PATIENCE;
                self.postponed.push(Postponed { rank, status, awaited, until });
            }
            _ => self.conclude(rank, status),
        }
    }

    /// Handles the postponed failures that wait for no rank any more, or have waited for too long.
    pub(super) fn handle_postponed(&mut self) {
        while let Some(due) = self.postponed.iter().position(|failure| self.is_due(failure)) {
            let Postponed { rank, status, .. } = self.postponed.remove(due);
            self.conclude(rank, status);
        }
    }

    fn is_due(&self, failure: &Postponed) -> bool {
        let is_late = failure.until <= Instant::now();
        is_late || self.phase != Phase::Running || !self.has_to_end(failure.awaited)
    }

    /// Whether a rank, or the rank for which its postponed failure waits, still runs.
    fn has_to_end(&self, mut rank: u32) -> bool {
        // Ranks that take each other for the first dead wait in a circle.
        for _ in 0..=self.postponed.len() {
            match self.postponed.iter().find(|failure| failure.rank == rank) {
                Some(failure) => rank = failure.awaited,
                None => return self.ranks[rank as usize].runs,
            }
        }
        false
    }

    /// Reacts to the end of a rank's process.
    fn conclude(&mut self, rank: u32, status: ExitStatus) {
        self.note_end(rank);
        let cause = Cause::new(status, self.server.standing(rank));
        if self.server.standing(rank) == Standing::Finalized {
            // The rank has marked itself in its own host's segment.
            self.stations.remotes().for_each(|remote| remote.act(&Command::Finalized(rank)));
        }
        match cause {
            Cause::Finished => {
                self.ranks[rank as usize].absent = self.server.standing(rank) == Standing::Outside;
                self.look_for_absent();
            }
            cause => self.handle_failure(rank, cause),
        }
        let answer = self.server.handle_death(rank);
        self.answer(rank, answer);
    }

    /// Fails the job if ranks wait in init for a rank that has exited without init: they would wait
    /// for ever.
    pub(super) fn look_for_absent(&mut self) {
        if self.server.find(Standing::Joined).is_none() {
            return;
        }
        if let Some(rank) = self.ranks.iter().position(|rank| rank.absent) {
            self.ranks[rank].absent = false;
            self.handle_failure(rank as u32, Cause::Absent);
        }
    }

    fn handle_failure(&mut self, rank: u32, cause: Cause) {
        let death = match cause {
            Cause::Killed(signal) => Death::Signal(signal),
            Cause::Unfinalized | Cause::Absent => Death::Exit(0),
            cause => Death::Exit(i32::from(cause.status())),
        };
        let during = self.describe_activity(rank);
        // A finalized rank is not marked: its peers don't wait for it any more, and its last
        // messages to them may still be on the way.
        if self.server.standing(rank) != Standing::Finalized {
            self.mark(rank, death);
        }
        self.status.get_or_insert(cause.status());
        if self.phase != Phase::Running {
            return; // the launcher itself is ending this rank
        }
        let message = match self.interrupted {
            Some((signal, _)) if cause == Cause::Killed(signal as i32) => {
                format!("ended by {signal}")
            }
            _ if cause == Cause::Absent => format!("{} {cause}", self.name(rank)),
            _ => {
                let core = self.ranks[rank as usize].core.as_ref();
                let core = core.map_or(String::new(), |core| format!("; {core}"));
                format!("{} {cause}, {during}{core}", self.name(rank))
            }
        };
        self.announce(&message, true);
    }

    /// Prints a failure message, and ends the job unless [`OnDeath::Survive`] lets it go on. Ranks
    /// that never ran always end the job.
    fn announce(&mut self, message: &str, has_run: bool) {
        let goes_on = has_run && self.job.settings.on_death == OnDeath::Survive;
        match self.ranks.iter().filter(|rank| rank.runs).count() {
            0 => self.say(message),
            _ if goes_on => self.say(&format!("{message}; the others go on")),
            1 => self.say(&format!("{message}; ending the other rank")),
            others => self.say(&format!("{message}; ending the other {others} ranks")),
        }
        if !goes_on {
            self.end();
        }
    }

    /// Asks all ranks to end that haven't left the job.
    /// [`end_leavers`](Supervisor::end_leavers) follows after [`LEAVE`].
    pub(super) fn end(&mut self) {
        let code = i32::from(self.status.unwrap_or(1));
        self.stations.act_all(&Command::Abort(code));
        self.stations.act_all(&Command::End { leavers: false });
        self.phase = Phase::Leaving(Instant::now() + LEAVE);
    }

    /// Asks all other ranks to end. If they don't, [`kill`](Supervisor::kill) follows after
    /// [`GRACE`].
    pub(super) fn end_leavers(&mut self) {
        self.stations.act_all(&Command::End { leavers: true });
        self.phase = Phase::Ending(Instant::now() + GRACE);
    }

    pub(super) fn kill(&mut self) {
        self.signal(Signal::SIGKILL);
        self.phase = Phase::Killed(Instant::now() + LAST_WORDS);
    }

    fn describe_activity(&self, rank: u32) -> String {
        match self.server.standing(rank) {
            Standing::Outside | Standing::Dead => "before init".to_owned(),
            Standing::Finalized => "after finalize".to_owned(),
            Standing::Joined => {
                let noted = self.stations.noted(rank);
                let activity = Activity::from_code(noted.code).unwrap_or(Activity::Computing);
                format!("during {}", activity.describe(noted.detail))
            }
        }
    }

    /// The first running ranks with their activities, and the number of all others.
    pub(super) fn describe_living(&self) -> String {
        const SHOWN: usize = 8;
        let living: Vec<_> =
            (0..).zip(&self.ranks).filter(|(_, rank)| rank.runs).map(|(rank, _)| rank).collect();
        let mut described: Vec<_> = living
            .iter()
            .take(SHOWN)
            .map(|&rank| format!("rank {rank} ({})", self.describe_activity(rank)))
            .collect();
        if living.len() > SHOWN {
            described.push(format!("and {} more", living.len() - SHOWN));
        }
        described.join(", ")
    }

    pub(super) fn name(&self, rank: u32) -> String {
        let program = &self.ranks[rank as usize].program;
        format!("rank {rank} ({}){}", program.to_string_lossy(), self.place_of(rank))
    }

    /// The words that name the host of a rank. None in a job without hosts.
    pub(super) fn place_of(&self, rank: u32) -> String {
        let host = self.job.placement.hosts.get(self.stations.host_of(rank) as usize);
        host.map_or(String::new(), |host| format!(" on host {}", host.name.to_string_lossy()))
    }
}

/// The exit status of a job that a rank aborted with `code`: the code's low byte, as for any
/// process. An aborted job has failed, so that its status is never 0.
pub(super) fn status_of(code: i32) -> u8 {
    (code as u8).max(1)
}
