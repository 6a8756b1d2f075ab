//! Circles of ranks that wait for each other, found by one of these ranks (rules 7 and 8). The
//! segment contains the current call of each rank, and the rank for which it waits.

use std::time::{Duration, Instant};

use longshore_transport::{Note, Segment};

use crate::job::Activity;

/// A circle is reported after all its ranks have been in the same call for this time. On a busy
/// machine, a frame that is under way may end a call late.
const PATIENCE: Duration = Duration::from_secs(3);

/// A circle is reported after this number of rounds, in each of which all its ranks look for the
/// end of their calls. A round begins when all ranks have looked in the one before. A rank that is
/// stopped doesn't look. When it looks again, its call may end, or it may end the call of another
/// rank. The second look sees all that ranks sent at their first one.
const ROUNDS: u32 = 2;

/// A circle: its ranks, each with its current call.
pub(crate) struct WaitCycle {
    ranks: Vec<(u32, Note)>,
    /// The ranks' remarks on their calls, with the source lines.
    remarks: Vec<Option<String>>,
    since: Instant,
    /// The ranks' counts of looks when the current round began.
    looks: Vec<u32>,
    /// The rounds in which all ranks have looked.
    rounds: u32,
}

impl WaitCycle {
    /// The circle that contains a rank, if there is one.
    pub(crate) fn of(segment: &Segment, me: u32, size: u32) -> Option<WaitCycle> {
        let (mut ranks, mut remarks, mut looks) = (Vec::new(), Vec::new(), Vec::new());
        let mut rank = me;
        while ranks.len() < size as usize {
            let note = segment.noted(rank);
            let waits = Activity::from_code(note.code).is_some_and(|it| it != Activity::Computing);
            // Of a rank with several threads, another one may end the call.
            let waits = waits && !segment.has_threads(rank);
            let next = note.waits_for.filter(|next| waits && *next < size)?;
            ranks.push((rank, note));
            remarks.push(segment.remarked(rank));
            looks.push(segment.looks(rank));
            if next == me {
                return Some(WaitCycle { ranks, remarks, since: Instant::now(), looks, rounds: 0 });
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
                before.count_round(&self.looks);
                let lasts = before.rounds >= ROUNDS && before.since.elapsed() >= PATIENCE;
                lasts.then(|| (self.calls(), self.text()))
            }
            _ => {
                *seen = Some(self);
                None
            }
        }
    }

    /// Counts a round if all ranks have looked since the last one.
    fn count_round(&mut self, looks: &[u32]) {
        // A look may be under way when a round begins, so that only the next one counts.
        let has_looked = |(now, then): (&u32, &u32)| now.wrapping_sub(*then) >= 2;
        if looks.iter().zip(&self.looks).all(has_looked) {
            self.looks = looks.to_vec();
            self.rounds += 1;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A circle of ranks 0 and 1 with these counts of looks, found so many seconds ago.
    fn circle(looks: [u32; 2], seconds: u64) -> WaitCycle {
        let note = |waits_for| Note { code: 3, waits_for: Some(waits_for), ..Note::default() };
        let ranks = vec![(0, note(1)), (1, note(0))];
        let since = Instant::now().checked_sub(Duration::from_secs(seconds)).unwrap();
        WaitCycle { ranks, remarks: vec![None; 2], since, looks: looks.to_vec(), rounds: 0 }
    }

    #[test]
    fn a_rank_that_does_not_look_makes_no_circle() {
        let mut seen = Some(circle([0, 7], 60));
        for looks in 1..100 {
            assert!(circle([looks, 7], 0).has_lasted(&mut seen).is_none());
        }
        // It runs again.
        assert!(circle([100, 9], 0).has_lasted(&mut seen).is_none());
        assert!(circle([102, 10], 0).has_lasted(&mut seen).is_none());
        assert!(circle([102, 11], 0).has_lasted(&mut seen).is_some());
    }

    #[test]
    fn a_circle_has_to_last() {
        let mut seen = Some(circle([0, 0], 0));
        for looks in 1..100 {
            assert!(circle([looks, looks], 0).has_lasted(&mut seen).is_none());
        }
        let mut seen = Some(circle([0, 0], 60));
        assert!((1..5).any(|it| circle([2 * it, 2 * it], 0).has_lasted(&mut seen).is_some()));
    }
}
