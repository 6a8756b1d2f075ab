//! Reports ranks that wait without progress: a pure state machine over the notes of the ranks.
//!
//! A rank is *stuck* if it has been in one call for longer than the watchdog's *patience* and has
//! neither received nor sent anything meanwhile. A long transfer is therefore never stuck. A report
//! comes
//!
//! - after the patience, if stuck ranks wait for each other in a circle or if every rank is stuck:
//!   no call can end, unless a message is late;
//! - after six times the patience, if some rank isn't stuck: it may still make the call that the
//!   others wait for. This is no hang, so one line names the ranks that are waited for.
//!
//! The watchdog ends no rank. It reports each call once, with the activities of all other ranks.

use std::time::{Duration, Instant};

use longshore_transport::Note;

use longshore_job::Activity;

/// The factor on the patience while some rank is not stuck.
const COMPUTING_FACTOR: u32 = 6;

/// The most ranks that a report describes. It gives only the number of all others.
const SHOWN: usize = 16;

/// The end of a report of a circle.
const CIRCLE: &str = "their calls can't end, unless a message is late, as in a network that is down; \
                      `longshore run --check` shows the source lines";

/// The hint of any other report.
const CHECK: &str =
    "`longshore run --check` reports calls that don't match, with their source lines";

/// A report of the watchdog.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    pub lines: Vec<String>,
    /// Whether the stuck ranks wait for each other, or every rank is stuck.
    pub hangs: bool,
}

/// The state of the watchdog of one job.
pub(super) struct Watchdog {
    patience: Duration,
    ranks: Vec<Watched>,
    /// The time of the next look.
    next: Option<Instant>,
}

#[derive(Clone)]
struct Watched {
    note: Option<Note>,
    since: Instant,
    /// The time of the last progress, or the start of the call.
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
        let next = now.checked_add(patience / 4);
        Watchdog { patience, ranks: vec![Watched::since(now); ranks as usize], next }
    }

    /// Watches more ranks.
    pub(super) fn add(&mut self, ranks: u32, now: Instant) {
        self.ranks.resize(self.ranks.len() + ranks as usize, Watched::since(now));
    }

    /// The time of the next look.
    pub(super) fn next(&self) -> Option<Instant> {
        self.next
    }

    /// Compares the notes of all ranks with earlier ones and returns a report, without lines if
    /// none is due. The note of a rank that has finalized or died is `None`. `remarked` gives what
    /// a rank has added to its note.
    pub(super) fn look(
        &mut self,
        now: Instant,
        notes: &[Option<Note>],
        remarked: impl Fn(u32) -> Option<String>,
    ) -> Report {
        self.next = now.checked_add(self.patience / 4);
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
            return Report::default();
        }
        for &rank in &stuck {
            self.ranks[rank as usize].reported = true;
        }
        let hangs = circle.is_some() || others == 0;
        let is_whole = hangs || self.ranks.iter().any(|rank| self.has_damage(rank));
        let lines = match is_whole {
            true => self.report(now, &stuck, circle.as_deref(), remarked),
            false => vec![self.describe_wait(now, &stuck)],
        };
        Report { lines, hangs }
    }

    /// A line about stuck ranks that wait for others, which aren't stuck.
    fn describe_wait(&self, now: Instant, stuck: &[u32]) -> String {
        let is_stuck = |rank: u32| stuck.binary_search(&rank).is_ok();
        let is_there = |rank: &u32| self.at(*rank).note.is_some();
        let others: Vec<u32> =
            (0..self.ranks.len() as u32).filter(|&rank| !is_stuck(rank)).filter(is_there).collect();
        let awaited = |rank: &u32| stuck.iter().any(|&it| self.waits_for(it) == Some(*rank));
        let known: Vec<u32> = others.iter().copied().filter(awaited).collect();
        let causes = if known.is_empty() { others } else { known };
        let since = |rank: u32| now - self.at(rank).since;
        let longest = stuck.iter().copied().max_by_key(|&rank| since(rank)).unwrap_or_default();
        let call = self.call(longest);
        let (waits, calls) = match stuck {
            [_] => ("waits", "in"),
            _ => ("wait", "the longest in"),
        };
        let first = causes.first().copied().unwrap_or_default();
        let is = match causes[..] {
            [_] => "is",
            _ => "aren't stuck; the first is",
        };
        let at = if self.at(first).is_waiting() { "in" } else { "at" };
        format!(
            "{} {waits} for {}, which {is} {at} {} for {:.1?}: {calls} {call} for {:.1?}",
            names(stuck),
            names(&causes),
            self.call(first),
            since(first),
            since(longest),
        )
    }

    fn waits_for(&self, rank: u32) -> Option<u32> {
        self.at(rank).note?.waits_for
    }

    /// The call of a rank, in words.
    fn call(&self, rank: u32) -> String {
        let watched = self.at(rank);
        let detail = watched.note.map_or(0, |note| note.detail);
        watched.activity().unwrap_or(Activity::Computing).describe(detail)
    }

    fn at(&self, rank: u32) -> &Watched {
        &self.ranks[rank as usize]
    }

    /// A circle of stuck ranks: each waits for the next, and the last waits for the first.
    fn circle(&self, stuck: &[u32]) -> Option<Vec<u32>> {
        let next = |rank: u32| {
            let waits_for = self.at(rank).note?.waits_for?;
            stuck.binary_search(&waits_for).is_ok().then_some(waits_for)
        };
        // A rank is on a circle if and only if a walk of at most `stuck.len()` steps returns to it.
        let circle_from = |&start: &u32| {
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
        stuck.iter().find_map(circle_from)
    }

    fn report(
        &self,
        now: Instant,
        stuck: &[u32],
        circle: Option<&[u32]>,
        remarked: impl Fn(u32) -> Option<String>,
    ) -> Vec<String> {
        let mut lines = vec![format!("no progress for {:.0?}:", self.patience)];
        let describe = |rank: u32| {
            let watched = self.at(rank);
            let duration = now - watched.since;
            let Some(note) = watched.note else { return format!("  rank {rank}: not in the job") };
            if self.is_damaged(&note) {
                return format!(
                    "  rank {rank}: its note in the job's shared memory is damaged (activity {}, waits for {:?}): \
                     a process of this host has overwritten it, or the rank is of another version",
                    note.code, note.waits_for
                );
            }
            let call = watched.activity().unwrap_or(Activity::Computing).describe(note.detail);
            let remark = remarked(rank).map(|remark| format!(" ({remark})")).unwrap_or_default();
            match (stuck.binary_search(&rank).is_ok(), note.waits_for) {
                (true, Some(peer)) => {
                    format!(
                        "  rank {rank}: in {call} for {duration:.1?}, waits for rank {peer}{remark}"
                    )
                }
                (true, None) => format!("  rank {rank}: in {call} for {duration:.1?}{remark}"),
                (false, _) if watched.is_waiting() => format!("  rank {rank}: in {call}"),
                (false, _) => format!("  rank {rank}: at {call} for {duration:.1?}"),
            }
        };
        let others = (0..self.ranks.len() as u32).filter(|rank| stuck.binary_search(rank).is_err());
        let order: Vec<u32> = stuck.iter().copied().chain(others).collect();
        lines.extend(order.iter().take(SHOWN).map(|&rank| describe(rank)));
        if order.len() > SHOWN {
            lines.push(format!("  and {} more ranks", order.len() - SHOWN));
        }
        if circle.is_none_or(|circle| circle.len() == 1) {
            lines.push(CHECK.to_owned());
        }
        if let Some(circle) = circle {
            let names: Vec<_> = circle.iter().map(|rank| format!("rank {rank}")).collect();
            match circle {
                [rank] => lines.push(format!("rank {rank} waits for itself: its call can't end")),
                _ => {
                    let circle = format!("{}, {}", names.join(", "), names[0]);
                    lines.push(format!("they wait in a circle: {circle}"));
                    // The watchdog sees no message under way.
                    lines.push(CIRCLE.to_owned());
                }
            }
        }
        lines
    }

    fn has_damage(&self, rank: &Watched) -> bool {
        rank.note.is_some_and(|note| self.is_damaged(&note))
    }

    /// Whether the words of a rank's note are none that a rank writes.
    fn is_damaged(&self, note: &Note) -> bool {
        let known = |rank: u32| (rank as usize) < self.ranks.len();
        Activity::from_code(note.code).is_none() || !note.waits_for.is_none_or(known)
    }
}

/// Ranks in words.
fn names(ranks: &[u32]) -> String {
    let shown: Vec<String> = ranks.iter().take(SHOWN).map(u32::to_string).collect();
    let more = match ranks.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let plural = if ranks.len() == 1 { "" } else { "s" };
    format!("rank{plural} {}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    struct Job {
        watchdog: Watchdog,
        start: Instant,
        notes: Vec<Option<Note>>,
        remarks: HashMap<u32, &'static str>,
    }

    impl Job {
        fn new(ranks: usize) -> Job {
            let start = Instant::now();
            let watchdog = Watchdog::new(ranks as u32, PATIENCE, start);
            let notes = vec![Some(Note::default()); ranks];
            Job { watchdog, start, notes, remarks: HashMap::new() }
        }

        fn call(&mut self, rank: usize, activity: Activity, detail: u32, waits_for: Option<u32>) {
            let calls = self.notes[rank].map_or(0, |note| note.calls) + 1;
            let note = Note { code: activity.code(), detail, calls, waits_for, moves: 0 };
            self.notes[rank] = Some(note);
        }

        fn at(&mut self, seconds: u64) -> Vec<String> {
            self.look(seconds).lines
        }

        fn look(&mut self, seconds: u64) -> Report {
            let remarked = |rank| self.remarks.get(&rank).map(|&text| text.to_owned());
            self.watchdog.look(self.start + Duration::from_secs(seconds), &self.notes, remarked)
        }
    }

    #[test]
    fn a_circle_is_reported_once() {
        let mut job = Job::new(3);
        job.call(0, Activity::Receive, 1, Some(1));
        job.call(1, Activity::Fence, 4, Some(0));
        job.remarks.insert(1, "window 4 \"halo\"");
        assert_eq!(job.at(0), [""; 0]);
        assert_eq!(job.at(9), [""; 0]);
        assert_eq!(
            job.at(11),
            [
                "no progress for 10s:",
                "  rank 0: in a receive from rank 1 for 11.0s, waits for rank 1",
                "  rank 1: in a fence of window 4 for 11.0s, waits for rank 0 (window 4 \"halo\")",
                "  rank 2: at its own work for 11.0s",
                "they wait in a circle: rank 0, rank 1, rank 0",
                CIRCLE,
            ]
        );
        assert_eq!(job.at(1000), [""; 0]);
    }

    #[test]
    fn a_rank_that_computes_is_named_late_and_in_one_line() {
        let mut job = Job::new(2);
        job.call(0, Activity::Barrier, 0, Some(1));
        assert_eq!(job.at(0), [""; 0]);
        assert_eq!(job.at(59), [""; 0]);
        let line =
            "rank 0 waits for rank 1, which is at its own work for 60.0s: in a barrier for 60.0s";
        assert_eq!(job.look(60), Report { lines: vec![line.to_owned()], hangs: false });
        assert_eq!(job.at(1000), [""; 0]);
    }

    #[test]
    fn many_ranks_that_wait_for_a_few_need_one_line() {
        let mut job = Job::new(40);
        (2..40).for_each(|rank| job.call(rank, Activity::Barrier, 0, Some(rank as u32 % 2)));
        job.at(0);
        let report = job.at(60);
        let [line] = &report[..] else { panic!("{report:?}") };
        let (start, end) = (
            "ranks 2, 3, 4, ",
            "17 and 22 more wait for ranks 0, 1, which aren't stuck; the first is at its own work \
             for 60.0s: the longest in a barrier for 60.0s",
        );
        assert!(line.starts_with(start) && line.ends_with(end), "{line}");
    }

    #[test]
    fn ranks_that_are_all_stuck_hang() {
        let mut job = Job::new(2);
        job.call(0, Activity::Receive, 1, Some(1));
        job.call(1, Activity::Receive, -1i32 as u32, None);
        job.at(0);
        assert!(job.look(10).hangs);
    }

    #[test]
    fn a_rank_that_makes_new_calls_is_not_stuck() {
        let mut job = Job::new(1);
        for second in 0..100 {
            job.call(0, Activity::Barrier, 0, None);
            assert_eq!(job.at(second), [""; 0]);
        }
        assert_eq!(job.at(108), [""; 0]);
        // There is no circle, but every rank is stuck.
        assert_eq!(job.at(110)[1], "  rank 0: in a barrier for 11.0s");
    }

    /// The calls get old, but their transfers make progress.
    #[test]
    fn a_rank_that_transfers_is_not_stuck() {
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
    fn a_circle_excludes_the_path_that_leads_into_it() {
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
        assert_eq!(report.len(), 1 + SHOWN + 3);
        let circle = &report[report.len() - 2];
        assert!(circle.ends_with("rank 37, rank 38, rank 39, rank 37"), "{report:?}");
    }

    #[test]
    fn a_circle_is_no_proof_while_a_message_may_be_late() {
        let mut job = Job::new(2);
        job.call(0, Activity::Receive, 1, Some(1));
        job.call(1, Activity::Receive, 0, Some(0));
        job.at(0);
        let report = job.at(11).join("\n");
        assert!(report.contains("unless a message is late, as in a network that is down"));
        assert!(report.contains("--check"), "{report}");
    }

    #[test]
    fn a_damaged_note_is_named() {
        let mut job = Job::new(3);
        job.call(0, Activity::Barrier, 0, Some(1));
        job.call(1, Activity::Barrier, 0, Some(70_000));
        job.call(2, Activity::Barrier, 0, Some(0));
        job.notes[2].as_mut().unwrap().code = 4711;
        job.at(0);
        let report = job.at(60);
        let damaged = |line: &str, rank: u32, words: &str| {
            line.starts_with(&format!(
                "  rank {rank}: its note in the job's shared memory is damaged"
            )) && line.contains(words)
        };
        assert!(report.iter().any(|line| damaged(line, 1, "waits for Some(70000)")), "{report:?}");
        assert!(report.iter().any(|line| damaged(line, 2, "activity 4711")), "{report:?}");
    }
}
