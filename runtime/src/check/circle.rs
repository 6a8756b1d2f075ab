//! Ranks that wait for each other in a circle, seen by one of them (rules 7 and 8). What each does and waits for is in the segment.

use std::time::{Duration, Instant};

use longshore_transport::{Note, Segment};

use crate::job::Activity;

/// How long all of a circle's ranks have to be in the same call, and nothing move: longer than a frame under way takes to be noticed on a busy
/// machine.
const PATIENCE: Duration = Duration::from_secs(3);

/// Each rank of it, with what it does.
pub(crate) struct Circle {
    ranks: Vec<(u32, Note)>,
    since: Instant,
}

impl Circle {
    /// The circle that a rank is part of, if it is.
    pub(crate) fn of(segment: &Segment, me: u32, size: u32) -> Option<Circle> {
        let mut ranks = Vec::new();
        let mut rank = me;
        while ranks.len() < size as usize {
            let note = segment.noted(rank);
            let waits = Activity::from_code(note.code).is_some_and(|it| it != Activity::Computing);
            let next = note.waits_for.filter(|next| waits && *next < size)?;
            ranks.push((rank, note));
            if next == me {
                return Some(Circle { ranks, since: Instant::now() });
            }
            rank = next;
        }
        None
    }

    /// Remembers the circle if it is another one than before; its calls and its text, once it has lasted.
    pub(crate) fn has_lasted(self, seen: &mut Option<Circle>) -> Option<(Vec<(u32, u32)>, String)> {
        match seen {
            Some(before) if before.ranks == self.ranks => {
                let lasts = before.since.elapsed() >= PATIENCE;
                lasts.then(|| (self.calls(), self.text()))
            }
            _ => {
                *seen = Some(self);
                None
            }
        }
    }

    /// Its ranks, with the number of each one's call.
    fn calls(&self) -> Vec<(u32, u32)> {
        self.ranks.iter().map(|(rank, note)| (*rank, note.calls)).collect()
    }

    fn text(&self) -> String {
        let line = |&(rank, note): &(u32, Note)| {
            let what = Activity::from_code(note.code).unwrap_or(Activity::Computing);
            let what = what.describe(note.detail);
            let whom = note.waits_for.unwrap_or(rank);
            format!("check:   rank {rank}: in {what}, waits for rank {whom}\n")
        };
        self.ranks.iter().map(line).collect()
    }
}
