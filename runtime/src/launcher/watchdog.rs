//! Who waits for whom, once nothing has moved for a while: a pure function of what the ranks note.
//!
//! A rank that has been in one call for longer than the watchdog's patience, and taken nothing in or sent off meanwhile, is
//! *stuck*: a transfer may take as long as it likes. That is reported
//!
//! - at once, where the stuck ranks wait for each other in a circle, or where every rank is stuck: no call will end;
//! - after six times the patience, where some rank is at its own work: it may well come to the others' call.
//!
//! Nothing is ended. A call is reported once, with all that the others do.

use std::time::{Duration, Instant};

use longshore_transport::Note;

use crate::job::Activity;

/// How much longer stuck ranks are left alone while another one works.
const COMPUTING_FACTOR: u32 = 6;

/// Ranks that a report describes; of others it gives the number.
const SHOWN: usize = 16;

/// Watches the ranks of a job.
pub(super) struct Watchdog {
    patience: Duration,
    ranks: Vec<Watched>,
}

#[derive(Clone)]
struct Watched {
    note: Option<Note>,
    since: Instant,
    /// When something moved last, or the call began.
    moved: Instant,
    reported: bool,
}

impl Watched {
    fn since(now: Instant) -> Watched {
        Watched { note: None, since: now, moved: now, reported: false }
    }

    fn activity(&self) -> Option<Activity> {
        self.note.map(|note| Activity::from_code(note.code).unwrap_or(Activity::Computing))
    }

    fn is_waiting(&self) -> bool {
        self.activity().is_some_and(|activity| activity != Activity::Computing)
    }
}

impl Watchdog {
    pub(super) fn new(ranks: u32, patience: Duration, now: Instant) -> Watchdog {
        Watchdog { patience, ranks: vec![Watched::since(now); ranks as usize] }
    }

    /// When to look again.
    pub(super) fn next(&self, now: Instant) -> Option<Instant> {
        now.checked_add(self.patience / 4)
    }

    /// What each rank notes, or nothing of one that is no part of the job: the lines of a report, if there is one.
    pub(super) fn look(&mut self, now: Instant, notes: &[Option<Note>]) -> Vec<String> {
        for (watched, note) in self.ranks.iter_mut().zip(notes) {
            let call = |note: &Option<Note>| note.map(|note| (note.code, note.detail, note.calls));
            let moves = |note: &Option<Note>| note.map(|note| note.moves);
            if call(&watched.note) != call(note) {
                *watched = Watched::since(now);
            } else if moves(&watched.note) != moves(note) {
                watched.moved = now;
            }
            watched.note = *note;
        }
        let stuck: Vec<u32> = (0..)
            .zip(&self.ranks)
            .filter(|(_, rank)| rank.is_waiting() && now - rank.moved >= self.patience)
            .map(|(rank, _)| rank)
            .collect();
        let circle = self.circle(&stuck);
        let others = self.ranks.iter().filter(|rank| rank.note.is_some()).count() - stuck.len();
        let longest = stuck.iter().map(|&rank| now - self.at(rank).moved).max().unwrap_or_default();
        let due = circle.is_some() || others == 0 || longest >= self.patience * COMPUTING_FACTOR;
        if !due || stuck.iter().all(|&rank| self.at(rank).reported) {
            return Vec::new();
        }
        for &rank in &stuck {
            self.ranks[rank as usize].reported = true;
        }
        self.report(now, &stuck, circle.as_deref())
    }

    fn at(&self, rank: u32) -> &Watched {
        &self.ranks[rank as usize]
    }

    /// Stuck ranks each of which waits for the next, and the last for the first.
    fn circle(&self, stuck: &[u32]) -> Option<Vec<u32>> {
        let next = |rank: u32| {
            let waits_for = self.at(rank).note?.waits_for?;
            stuck.binary_search(&waits_for).is_ok().then_some(waits_for)
        };
        // Who is on a circle comes back to itself within as many steps as there are ranks.
        let back = |&start: &u32| {
            let mut path = vec![start];
            let mut rank = next(start)?;
            while rank != start {
                if path.len() == stuck.len() {
                    return None;
                }
                path.push(rank);
                rank = next(rank)?;
            }
            Some(path)
        };
        stuck.iter().find_map(back)
    }

    fn report(&self, now: Instant, stuck: &[u32], circle: Option<&[u32]>) -> Vec<String> {
        let mut lines = vec![format!("no progress for {:.0?}:", self.patience)];
        let describe = |rank: u32| {
            let watched = self.at(rank);
            let for_long = now - watched.since;
            let Some(note) = watched.note else { return format!("  rank {rank}: not in the job") };
            let what = watched.activity().unwrap_or(Activity::Computing).describe(note.detail);
            match (stuck.binary_search(&rank).is_ok(), note.waits_for) {
                (true, Some(peer)) => {
                    format!("  rank {rank}: in {what} for {for_long:.1?}, waits for rank {peer}")
                }
                (true, None) => format!("  rank {rank}: in {what} for {for_long:.1?}"),
                (false, _) if watched.is_waiting() => format!("  rank {rank}: in {what}"),
                (false, _) => format!("  rank {rank}: at {what} for {for_long:.1?}"),
            }
        };
        let others = (0..self.ranks.len() as u32).filter(|rank| stuck.binary_search(rank).is_err());
        let order: Vec<u32> = stuck.iter().copied().chain(others).collect();
        lines.extend(order.iter().take(SHOWN).map(|&rank| describe(rank)));
        if order.len() > SHOWN {
            lines.push(format!("  and {} more ranks", order.len() - SHOWN));
        }
        if let Some(circle) = circle {
            let names: Vec<_> = circle.iter().map(|rank| format!("rank {rank}")).collect();
            lines.push(match circle {
                [alone] => format!("rank {alone} waits for itself: its call can't end"),
                _ => format!(
                    "they wait in a circle, so that no call can end: {}, {}",
                    names.join(", "),
                    names[0]
                ),
            });
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    struct Job {
        watchdog: Watchdog,
        start: Instant,
        notes: Vec<Option<Note>>,
    }

    impl Job {
        fn new(ranks: usize) -> Job {
            let start = Instant::now();
            let watchdog = Watchdog::new(ranks as u32, PATIENCE, start);
            Job { watchdog, start, notes: vec![Some(Note::default()); ranks] }
        }

        fn call(&mut self, rank: usize, activity: Activity, detail: u32, waits_for: Option<u32>) {
            let calls = self.notes[rank].map_or(0, |note| note.calls) + 1;
            let note = Note { code: activity.code(), detail, calls, waits_for, moves: 0 };
            self.notes[rank] = Some(note);
        }

        fn at(&mut self, seconds: u64) -> Vec<String> {
            self.watchdog.look(self.start + Duration::from_secs(seconds), &self.notes)
        }
    }

    #[test]
    fn a_circle_is_reported_once() {
        let mut job = Job::new(3);
        job.call(0, Activity::Receive, 1, Some(1));
        job.call(1, Activity::Fence, 4, Some(0));
        assert_eq!(job.at(0), [""; 0]);
        assert_eq!(job.at(9), [""; 0]);
        assert_eq!(
            job.at(11),
            [
                "no progress for 10s:",
                "  rank 0: in a receive from rank 1 for 11.0s, waits for rank 1",
                "  rank 1: in a fence of window 4 for 11.0s, waits for rank 0",
                "  rank 2: at its own work for 11.0s",
                "they wait in a circle, so that no call can end: rank 0, rank 1, rank 0",
            ]
        );
        assert_eq!(job.at(1000), [""; 0]);
    }

    #[test]
    fn who_works_is_given_time() {
        let mut job = Job::new(2);
        job.call(0, Activity::Barrier, 0, Some(1));
        assert_eq!(job.at(0), [""; 0]);
        assert_eq!(job.at(59), [""; 0]);
        assert_eq!(job.at(60)[1], "  rank 0: in a barrier for 60.0s, waits for rank 1");
    }

    #[test]
    fn who_moves_is_not_stuck() {
        let mut job = Job::new(1);
        for second in 0..100 {
            job.call(0, Activity::Barrier, 0, None);
            assert_eq!(job.at(second), [""; 0]);
        }
        assert_eq!(job.at(108), [""; 0]);
        // No circle, but nobody is left to end it.
        assert_eq!(job.at(110)[1], "  rank 0: in a barrier for 11.0s");
    }

    /// A transfer takes as long as it takes; its calls are as old as they are.
    #[test]
    fn who_transfers_is_not_stuck() {
        let mut job = Job::new(2);
        job.call(0, Activity::Send, 1, Some(1));
        job.call(1, Activity::Receive, 0, Some(0));
        for second in 0..100 {
            job.notes.iter_mut().flatten().for_each(|note| note.moves += 1);
            assert_eq!(job.at(second), [""; 0]);
        }
        assert_eq!(job.at(108), [""; 0]);
        assert_eq!(job.at(110)[1], "  rank 0: in a send to rank 1 for 110.0s, waits for rank 1");
        job.notes.iter_mut().flatten().for_each(|note| note.moves += 1);
        assert_eq!(job.at(111), [""; 0]);
        assert_eq!(job.at(200), [""; 0]);
    }

    #[test]
    fn a_path_into_a_circle_is_not_on_it() {
        let mut job = Job::new(40);
        for rank in 0..40 {
            job.call(
                rank,
                Activity::Receive,
                0,
                Some(if rank == 39 { 37 } else { rank as u32 + 1 }),
            );
        }
        job.at(0);
        let report = job.at(20);
        assert_eq!(report.len(), 1 + SHOWN + 2);
        assert!(
            report.last().unwrap().ends_with("rank 37, rank 38, rank 39, rank 37"),
            "{report:?}"
        );
    }
}
