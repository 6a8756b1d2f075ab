//! Circles of ranks that wait for each other, found by one of these ranks (rules 7 and 8). The
//! segment contains the current call of each rank, and the rank for which it waits.

use std::time::{Duration, Instant};

use longshore_transport::{Note, Segment};

use crate::job::Activity;

/// A circle is reported after all its ranks have been in the same call for this time. On a busy
/// machine, a frame that is under way may end a call late.
const PATIENCE: Duration = Duration::from_secs(3);

/// A circle: its ranks, each with its current call.
pub(crate) struct WaitCycle {
    ranks: Vec<(u32, Note)>,
    /// The ranks' remarks on their calls, with the source lines.
    remarks: Vec<Option<String>>,
    since: Instant,
}

impl WaitCycle {
    /// The circle that contains a rank, if there is one.
    pub(crate) fn of(segment: &Segment, me: u32, size: u32) -> Option<WaitCycle> {
        let (mut ranks, mut remarks) = (Vec::new(), Vec::new());
        let mut rank = me;
        while ranks.len() < size as usize {
            let note = segment.noted(rank);
            let waits = Activity::from_code(note.code).is_some_and(|it| it != Activity::Computing);
            let next = note.waits_for.filter(|next| waits && *next < size)?;
            ranks.push((rank, note));
            remarks.push(segment.remarked(rank));
            if next == me {
                return Some(WaitCycle { ranks, remarks, since: Instant::now() });
            }
            rank = next;
        }
        None
    }

    /// Keeps the circle in `seen` if it is a new one. Returns its calls and text after it has
    /// lasted long enough.
    pub(crate) fn has_lasted(
        self,
        seen: &mut Option<WaitCycle>,
    ) -> Option<(Vec<(u32, u32)>, String)> {
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

    /// The ranks of the circle, with the numbers of their calls.
    fn calls(&self) -> Vec<(u32, u32)> {
        self.ranks.iter().map(|(rank, note)| (*rank, note.calls)).collect()
    }

    fn text(&self) -> String {
        let line = |(&(rank, note), remark): (&(u32, Note), &Option<String>)| {
            let what = Activity::from_code(note.code).unwrap_or(Activity::Computing);
            let what = what.describe(note.detail);
            let whom = note.waits_for.unwrap_or(rank);
            let remark = remark.as_ref().map(|text| format!(" ({text})")).unwrap_or_default();
            format!("check:   rank {rank}: in {what}, waits for rank {whom}{remark}\n")
        };
        self.ranks.iter().zip(&self.remarks).map(line).collect()
    }
}
