//! The announcements of collective calls on a communicator and on its windows, under `--check`: a
//! pure state machine, which is equal at all ranks.
//!
//! 1. The ranks exchange what they have to announce in *rounds*, whose order is that of the
//!    communicator. A thread that makes a call begins one. Threads that wait for the end of theirs
//!    take part in those that other ranks begin.
//! 2. A call is agreed once every rank has announced one on its object. So the order of calls
//!    counts on each object only.
//! 3. Ranks of one thread each, which announce calls on different objects, wait for each other in
//!    vain. All ranks learn it in the same round, and forget the announcements of that round and
//!    those before.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

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
    /// The objects of this rank's calls that wait for a verdict.
    pub waiting: Vec<Object>,
    /// The announcements that wait for those of other ranks, by rank.
    open: Vec<Vec<Announcement>>,
    /// The verdicts on this rank's calls that their threads haven't taken yet.
    verdicts: BTreeMap<Object, Verdict>,
}

impl Agreement {
    /// Takes the verdict on this rank's call on an object.
    pub(super) fn take(&mut self, object: Object) -> Option<Verdict> {
        self.verdicts.remove(&object)
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
            for object in &self.waiting {
                self.verdicts.entry(*object).or_insert_with(|| said.clone());
            }
        }
    }

    fn agree(&mut self, object: Object) {
        let take = |open: &mut Vec<Announcement>| {
            let at = open.iter().position(|it| it.object == object);
            at.map(|at| open.remove(at))
        };
        let said = self.open.iter_mut().filter_map(take).collect();
        self.verdicts.insert(object, Verdict::Agreed(said));
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
        Part { said: said.map(announcement), waiting: waiting.to_vec(), threads }
    }

    fn is_agreed(verdict: Option<Verdict>) -> bool {
        matches!(verdict, Some(Verdict::Agreed(said)) if said.len() == 2)
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
        let Some(Verdict::Differs(said)) = state.take(WORLD) else { panic!("{state:?}") };
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
}
