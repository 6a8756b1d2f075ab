//! The announcements of collective calls on a communicator and on its windows, under `--check`: a
//! pure state machine, which is equal at all ranks.
//!
//! 1. The ranks exchange what they have to announce in *rounds*, whose order is that of the
//!    communicator. A thread that makes a call begins one. Threads that wait for the end of theirs
//!    take part in those that other ranks begin.
//! 2. A call is agreed once every rank has announced one on its object. So the order of calls
//!    counts on each object only.
//! 3. Two ranks of one thread each, which announce calls on different objects, wait for each other
//!    in vain. All ranks learn it in the same round. There, every call that is announced and not
//!    agreed fails at all ranks, also those of ranks with several threads.
//! 4. If calls differ, rank 0 reports it. The next round says so, and only then do the calls of
//!    all ranks return: the first rank that gets an error may end the job.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::check::note::longest;
use crate::check::order::{Announcement, Object};

/// The part of one rank in a round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Part {
    /// Its new announcement, if it has one.
    pub said: Option<Announcement>,
    /// The objects of its calls that wait. Earlier announcements on other objects are void: their
    /// calls have failed.
    pub waiting: Vec<Object>,
    /// Whether another thread of the rank may make a call meanwhile.
    pub threads: bool,
    /// From rank 0, the numbers of the verdicts that it has reported since the last round.
    pub reported: Vec<u64>,
}

/// The calls of one rank that may wait for a verdict at a time, each in a thread of its own.
const MAX_WAITING: usize = 4096;

/// The longest encoding of an object, or of a verdict's number.
const LONGEST_ITEM: usize = 10;

impl Part {
    /// The longest encoded part in a job of `ranks` ranks. An announcement is at most as long as a
    /// note. Each waiting call adds its object, and at rank 0 the number of its verdict.
    pub(super) fn longest(ranks: u32) -> usize {
        longest(ranks) + 2 * MAX_WAITING * LONGEST_ITEM
    }
}

/// The announcements of all ranks to a call on one object, by rank; or those of the ranks that made
/// calls on different objects, with their ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Agreed(Vec<Announcement>),
    Differs(Vec<(u32, Announcement)>),
}

/// The state of a communicator's announcements at one rank.
#[derive(Debug, Default)]
pub(super) struct Agreement {
    /// Whether a thread of this rank takes part in a round now.
    pub busy: bool,
    /// The objects of this rank's announced calls that wait for a verdict.
    waiting: Vec<Object>,
    /// The announcements that wait for those of other ranks, by rank.
    open: Vec<Vec<Announcement>>,
    /// The number of verdicts so far.
    given: u64,
    /// The verdicts on this rank's calls that their threads haven't taken yet, with their numbers.
    verdicts: BTreeMap<Object, (u64, Verdict)>,
    /// At rank 0, the numbers of the verdicts reported since its last part in a round.
    reported: Vec<u64>,
    /// The numbers of the verdicts of which all ranks know that they are reported.
    known: BTreeSet<u64>,
}

impl Agreement {
    /// Takes the verdict on this rank's call on an object, with the verdict's number.
    pub(super) fn take(&mut self, object: Object) -> Option<(u64, Verdict)> {
        self.verdicts.remove(&object)
    }

    /// The part of this rank in a round that begins now.
    pub(super) fn part(&mut self, said: Option<Announcement>, threads: bool) -> Part {
        // Not before: a round in which the call isn't announced brings no verdict on it.
        self.waiting.extend(said.as_ref().map(|said| said.object));
        let reported = std::mem::take(&mut self.reported);
        Part { said, waiting: self.waiting.clone(), threads, reported }
    }

    /// Rank 0 has reported the verdict with this number.
    pub(super) fn report(&mut self, number: u64) {
        self.reported.push(number);
    }

    /// Whether this rank has reported verdicts of which the other ranks don't know.
    pub(super) fn has_reported(&self) -> bool {
        !self.reported.is_empty()
    }

    /// Whether all ranks know that the verdict with this number is reported.
    pub(super) fn is_reported(&self, number: u64) -> bool {
        self.known.contains(&number)
    }

    /// This rank's call on an object waits no more.
    pub(super) fn leave(&mut self, object: Object) {
        self.waiting.retain(|waiting| *waiting != object);
        self.verdicts.remove(&object);
    }

    /// The first rank that hasn't announced a call on this object.
    pub(super) fn awaited(&self, object: Object) -> Option<u32> {
        let has = |said: &Vec<Announcement>| said.iter().any(|it| it.object == object);
        self.open.iter().position(|said| !has(said)).map(|rank| rank as u32)
    }

    /// Takes in a round: the parts of all ranks, by rank.
    pub(super) fn handle_round(&mut self, parts: Vec<Part>) {
        self.open.resize_with(parts.len(), Vec::new);
        let threads: Vec<bool> = parts.iter().map(|part| part.threads).collect();
        for (open, part) in self.open.iter_mut().zip(parts) {
            self.known.extend(part.reported);
            open.retain(|it| part.waiting.contains(&it.object));
            if let Some(said) = part.said {
                open.retain(|it| it.object != said.object);
                open.push(said);
            }
        }
        let objects: Vec<Object> = self.open[0].iter().map(|it| it.object).collect();
        for object in objects {
            if self.awaited(object).is_none() {
                self.agree(object);
            }
        }
        let alone = self.open.iter().zip(&threads).filter(|(_, threads)| !**threads);
        let mut alone = alone.filter_map(|(open, _)| open.first()).map(|it| it.object);
        if alone.next().is_some_and(|first| alone.any(|other| other != first)) {
            let said = (0..).zip(&self.open);
            let said = said.filter_map(|(rank, open)| Some((rank, open.first()?.clone())));
            let said = Verdict::Differs(said.collect());
            self.open.iter_mut().for_each(Vec::clear);
            self.given += 1;
            for object in &self.waiting {
                self.verdicts.entry(*object).or_insert_with(|| (self.given, said.clone()));
            }
        }
    }

    fn agree(&mut self, object: Object) {
        let take = |open: &mut Vec<Announcement>| {
            let at = open.iter().position(|it| it.object == object);
            at.map(|at| open.remove(at))
        };
        let said = self.open.iter_mut().filter_map(take).collect();
        self.given += 1;
        // The call of this rank may have failed during the round.
        if self.waiting.contains(&object) {
            self.verdicts.insert(object, (self.given, Verdict::Agreed(said)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::report::Tally;

    const WORLD: Object = Object::Communicator;
    const FIRST: Object = Object::Window(1);
    const SECOND: Object = Object::Window(2);

    fn part(said: Option<Object>, waiting: &[Object], threads: bool) -> Part {
        let announcement = |object| Announcement {
            object,
            call: format!("call on {object:?}"),
            site: String::new(),
            promises: 0,
            sample: None,
            clock: Vec::new(),
            tally: Tally::default(),
        };
        let (said, waiting) = (said.map(announcement), waiting.to_vec());
        Part { said, waiting, threads, reported: Vec::new() }
    }

    fn is_agreed(verdict: Option<(u64, Verdict)>) -> bool {
        matches!(verdict, Some((_, Verdict::Agreed(said))) if said.len() == 2)
    }

    #[test]
    fn calls_on_one_object_agree_at_once() {
        let mut state = Agreement { waiting: vec![FIRST], ..Agreement::default() };
        let one = || part(Some(FIRST), &[FIRST], false);
        state.handle_round(vec![one(), one()]);
        assert!(is_agreed(state.take(FIRST)));
        assert_eq!(state.take(FIRST), None);
    }

    #[test]
    fn calls_of_threads_agree_in_any_order() {
        let mut state = Agreement { waiting: vec![FIRST], ..Agreement::default() };
        let first = part(Some(FIRST), &[FIRST], true);
        state.handle_round(vec![first, part(Some(SECOND), &[SECOND], true)]);
        assert_eq!((state.take(FIRST), state.awaited(FIRST)), (None, Some(1)));
        state.waiting.push(SECOND);
        let both = [FIRST, SECOND];
        let second = part(Some(SECOND), &both, true);
        state.handle_round(vec![second, part(None, &[SECOND], true)]);
        assert!(is_agreed(state.take(SECOND)));
        let last = part(None, &[FIRST], true);
        state.handle_round(vec![last, part(Some(FIRST), &[FIRST], true)]);
        assert!(is_agreed(state.take(FIRST)));
    }

    #[test]
    fn ranks_of_one_thread_differ_on_different_objects() {
        let mut state = Agreement { waiting: vec![WORLD], ..Agreement::default() };
        let (world, first) =
            (part(Some(WORLD), &[WORLD], false), part(Some(FIRST), &[FIRST], false));
        state.handle_round(vec![world.clone(), first]);
        let Some((_, Verdict::Differs(said))) = state.take(WORLD) else { panic!("{state:?}") };
        assert_eq!(said[1].1.call, "call on Window(1)");
        // The next calls match again.
        state.handle_round(vec![world.clone(), world]);
        assert!(is_agreed(state.take(WORLD)));
    }

    #[test]
    fn an_announcement_of_a_call_that_failed_is_void() {
        let mut state = Agreement { waiting: vec![FIRST], ..Agreement::default() };
        let first = || part(Some(FIRST), &[FIRST], true);
        state.handle_round(vec![first(), part(Some(SECOND), &[SECOND], true)]);
        state.leave(FIRST);
        state.handle_round(vec![part(None, &[], true), part(Some(FIRST), &[FIRST], true)]);
        assert_eq!((state.take(FIRST), state.awaited(FIRST)), (None, Some(0)));
    }
    #[test]
    fn a_call_that_failed_during_a_round_gets_no_verdict_later() {
        let mut state = Agreement { waiting: vec![FIRST], ..Agreement::default() };
        let first = || part(Some(FIRST), &[FIRST], true);
        let heard = vec![first(), first()];
        state.leave(FIRST);
        state.handle_round(heard);
        assert_eq!(state.take(FIRST), None);
    }

    #[test]
    fn calls_that_are_not_announced_yet_get_no_verdict() {
        let mut state = Agreement::default();
        let (world, second) =
            (part(Some(WORLD), &[WORLD], false), part(Some(SECOND), &[SECOND], false));
        let said = part(Some(FIRST), &[FIRST], true).said;
        let first = state.part(said, true);
        // Another thread of this rank is about to announce a call on the second window.
        state.handle_round(vec![first, world, second]);
        assert!(matches!(state.take(FIRST), Some((1, Verdict::Differs(said))) if said.len() == 3));
        assert_eq!((state.take(WORLD), state.take(SECOND)), (None, None));
    }

    #[test]
    fn a_report_is_known_after_the_round_that_says_so() {
        let mut state = Agreement::default();
        state.report(4);
        assert!(state.has_reported() && !state.is_reported(4));
        let mine = state.part(None, false);
        assert!(!state.has_reported());
        state.handle_round(vec![mine, part(None, &[], false)]);
        assert!(state.is_reported(4) && !state.is_reported(3));
    }

    #[test]
    fn a_part_with_many_waiting_calls_is_within_its_limit() {
        let waiting: Vec<_> = (0..MAX_WAITING as u32).map(|it| Object::Window(!it)).collect();
        let reported = vec![u64::MAX; MAX_WAITING];
        let long = Part { reported, ..part(Some(FIRST), &waiting, true) };
        let encoded = shipable::codec::encode(&long, Part::longest(1)).unwrap();
        assert!(shipable::codec::decode::<Part>(&encoded, Part::longest(1)).is_ok());
    }
}
