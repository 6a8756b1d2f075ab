//! The reports of `--check`. Each kind of fault is reported once, however often it occurs.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::history::{Access, Conflict};
use crate::job::{Topic, Topics};
use crate::log;

/// The limit of different reports of one rank.
const DIFFERENT: usize = 200;

/// The numbers of a rank's reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tally {
    /// Faults reported.
    pub told: u64,
    /// Faults of a kind that was reported already.
    pub alike: u64,
    /// Remarks, each once, on what MPI allows and a program hardly means.
    pub remarks: u64,
    /// Accesses, or parts of them, that were forgotten early or not compared.
    pub missed: u64,
}

/// The reports of one rank.
pub(crate) struct Reports {
    /// What is reported.
    topics: Topics,
    known: HashSet<String>,
    texts: Vec<String>,
    tally: Tally,
}

impl Reports {
    pub(crate) fn new(topics: Topics) -> Reports {
        let (known, texts, tally) = Default::default();
        Reports { topics, known, texts, tally }
    }

    /// What is reported.
    pub(crate) fn topics(&self) -> Topics {
        self.topics
    }

    /// Reports a fault, unless its topic isn't reported, or one of its kind was reported already.
    /// The kind names the rule and the calls.
    pub(crate) fn tell(&mut self, topic: Topic, kind: String, text: impl FnOnce() -> String) {
        if !self.topics.include(topic) {
            return;
        }
        match self.is_new(kind) {
            true => {
                self.tally.told += 1;
                self.say(text());
            }
            false => self.tally.alike += 1,
        }
    }

    /// Prints a remark, unless its topic isn't reported, or one of its kind was printed already. It
    /// is no fault.
    pub(crate) fn remark(&mut self, topic: Topic, kind: String, text: impl FnOnce() -> String) {
        if self.topics.include(topic) && self.is_new(kind) {
            self.tally.remarks += 1;
            self.say(text());
        }
    }

    /// Whether nothing of this kind was reported so far, and there is room for it.
    fn is_new(&mut self, kind: String) -> bool {
        self.known.len() < DIFFERENT && self.known.insert(kind)
    }

    fn say(&mut self, text: String) {
        log::say(&text);
        self.texts.push(text);
    }

    pub(crate) fn texts(&self) -> &[String] {
        &self.texts
    }

    pub(crate) fn tally(&self, missed: u64) -> Tally {
        Tally { missed, ..self.tally }
    }
}

/// The kind of a conflict: its rule and calls, whichever ranks and windows are involved.
pub(crate) fn kind(later: &Access, Conflict { rule, earlier, .. }: &Conflict) -> String {
    let mut sides = [earlier, later].map(|access| format!("{} {}", access.deed, access.site));
    sides.sort_unstable();
    format!("{rule} {} {}", sides[0], sides[1])
}

/// The report of a conflict in a rank's window.
pub(crate) fn describe(window: u32, owner: u32, later: &Access, conflict: &Conflict) -> String {
    let Conflict { rule, earlier, bytes } = conflict;
    let (what, advice) = match rule {
        22 => (
            "accumulates that aren't of one operation and type",
            "let all use one operation (or MPI_NO_OP) and one type, or order them",
        ),
        _ => (
            "accesses to the same bytes that nothing orders",
            "order them, by a fence, a flush and a message, an exclusive lock and the like, or accumulate instead",
        ),
    };
    let side = |access: &Access| {
        let bounds = access.footprint.bounds().unwrap_or(0..0);
        let Access { origin, deed, site, .. } = access;
        let gaps = if access.footprint.as_run().is_some() { "" } else { ", with gaps" };
        format!(
            "check:   {deed} by rank {origin} at {site}: bytes {}..{}{gaps}\n",
            bounds.start, bounds.end
        )
    };
    format!(
        "check: rule {rule}, window {window} of rank {owner}: {what}\n{}{}check:   both touch bytes {}..{}; {advice}\n",
        side(earlier),
        side(later),
        bytes.start,
        bytes.end,
    )
}

/// The notice at the start of a job on several hosts. A host's segment contains only the calls of
/// its own ranks.
pub(crate) const SEVERAL_HOSTS: &str = "check: several hosts: ranks that wait for each other in a circle (rules 7 and 8) are \
    found only if they share a host; longshore run's watchdog reports the others\n";

/// The summary at the end of a job.
pub(crate) fn summary(tallies: &[Tally]) -> String {
    let sum = |what: fn(&Tally) -> u64| tallies.iter().map(what).sum::<u64>();
    let (told, alike, missed) = (sum(|it| it.told), sum(|it| it.alike), sum(|it| it.missed));
    let remarks = sum(|it| it.remarks);
    let mut text = match (told, alike) {
        (0, _) if remarks > 0 => "check: no fault".to_owned(),
        (0, _) => "check: nothing to report".to_owned(),
        (1, 0) => "check: 1 report".to_owned(),
        (_, 0) => format!("check: {told} reports"),
        (1, _) => format!("check: 1 report, and {alike} more findings like it"),
        _ => format!("check: {told} reports, and {alike} more findings like them"),
    };
    match remarks {
        0 => {}
        1 => text += ", 1 remark",
        remarks => text += &format!(", {remarks} remarks"),
    }
    if missed > 0 {
        text += &format!(
            "; {missed} accesses were too many or too irregular to be compared with all others"
        );
    }
    text + "\n"
}
