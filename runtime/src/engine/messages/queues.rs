//! The queues of a rank's messages: of receives that no message has matched, and of messages that
//! no receive has matched.
//!
//! Mostly they are short, and then a list is searched. What comes while [`LISTED`] entries wait
//! goes to bins, until these are empty again. So all entries of the list are older than those of
//! bins, and a match takes about the same time with thousands of them.
//!
//! | queue | an entry is in | a match looks into |
//! |---|---|---|
//! | receives | the bin of its key, which may have wildcards | the four bins whose keys match the message |
//! | messages | the four bins whose keys match it | the bin of the receive's key |

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::direct::Direct;
use super::matching::{Arrival, Pattern};
use super::{Posted, Unexpected};
use crate::numbers::Mixer;

/// The most entries of a list (docs/tuning.md, "Lists of waiting receives and messages").
const LISTED: usize = 64;

/// What a receive asks for: a sender and a tag of a context, or any. Only members of a communicator
/// send in its contexts, so any sender is one of its group.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    context: u32,
    sender: Option<u32>,
    tag: Option<i32>,
}

impl Key {
    fn of(pattern: &Pattern) -> Key {
        Key { context: pattern.context, sender: pattern.sender.one(), tag: pattern.tag }
    }

    /// Whether messages of several senders or tags match it.
    fn is_open(&self) -> bool {
        self.sender.is_none() || self.tag.is_none()
    }

    /// The keys of all receives that a message matches, that without wildcards first.
    fn matching(arrival: &Arrival) -> [Key; 4] {
        let Arrival { context, peer, tag, .. } = *arrival;
        let key = |sender, tag| Key { context, sender, tag };
        let (from, tagged) = (Some(peer), Some(tag));
        [key(from, tagged), key(from, None), key(None, tagged), key(None, None)]
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let sender = self.sender.unwrap_or(u32::MAX);
        hasher.write_u64(u64::from(self.context) << 32 | u64::from(sender));
        hasher.write_u64(self.tag.map_or(u64::MAX, |tag| tag as u64));
    }
}

type Bins<T> = HashMap<Key, T, BuildHasherDefault<Mixer>>;

/// Receives that no message has matched, in the order of their calls.
#[derive(Default)]
pub(super) struct Receives {
    list: VecDeque<Posted>,
    /// Those of bins, with their order. No bin is empty.
    bins: Bins<VecDeque<(u64, Posted)>>,
    /// Memory of bins that were emptied, for the next ones.
    spare: Vec<VecDeque<(u64, Posted)>>,
    /// The number of receives in bins that take any sender or any tag.
    open: usize,
    /// The order of the last receive that went to bins.
    last: u64,
}

/// The most emptied bins whose memory is kept, and the most entries that each has room for.
const SPARE: usize = 4;
const SPARE_ROOM: usize = 1024;

impl Receives {
    /// Adds the receive that is called last.
    pub(super) fn push(&mut self, posted: Posted) {
        if self.bins.is_empty() && self.list.len() < LISTED {
            return self.list.push_back(posted);
        }
        self.last += 1;
        let key = Key::of(&posted.pattern);
        self.open += usize::from(key.is_open());
        let spare = || self.spare.pop().unwrap_or_default();
        let bin = self.bins.entry(key).or_insert_with(spare);
        bin.push_back((self.last, posted));
    }

    /// Takes out the first receive that a message matches. Returns its number.
    #[inline]
    pub(super) fn take(&mut self, arrival: &Arrival) -> Option<u64> {
        if self.list.is_empty() {
            return if self.bins.is_empty() { None } else { self.take_binned(arrival) };
        }
        self.take_listed(arrival)
    }

    fn take_listed(&mut self, arrival: &Arrival) -> Option<u64> {
        match self.list.iter().position(|posted| posted.pattern.matches(arrival)) {
            Some(0) => self.list.pop_front().map(|posted| posted.number),
            Some(at) => self.list.remove(at).map(|posted| posted.number),
            None if self.bins.is_empty() => None,
            None => self.take_binned(arrival),
        }
    }

    /// Takes the first receive that a message matches out of its bin.
    #[inline(never)]
    fn take_binned(&mut self, arrival: &Arrival) -> Option<u64> {
        let keys = Key::matching(arrival);
        let key = if self.open == 0 { keys[0] } else { self.first_of(keys)? };
        let Entry::Occupied(mut bin) = self.bins.entry(key) else { return None };
        self.open -= usize::from(key.is_open());
        let posted = bin.get_mut().pop_front();
        if bin.get().is_empty() {
            let emptied = bin.remove();
            if self.spare.len() < SPARE && emptied.capacity() <= SPARE_ROOM {
                self.spare.push(emptied);
            }
        }
        posted.map(|(_, posted)| posted.number)
    }

    /// The key of these whose bin has the first receive.
    fn first_of(&self, keys: [Key; 4]) -> Option<Key> {
        let first = |key| Some((self.bins.get(&key)?.front()?.0, key));
        Some(keys.into_iter().filter_map(first).min_by_key(|it| it.0)?.1)
    }

    /// Whether `is_it` holds of any receive.
    pub(super) fn any(&self, is_it: impl Fn(&Posted) -> bool) -> bool {
        let mut binned = self.bins.values().flatten().map(|(_, posted)| posted);
        self.list.iter().any(&is_it) || binned.any(is_it)
    }

    /// Takes out all receives of which `is_it` holds.
    pub(super) fn extract(&mut self, is_it: impl Fn(&Posted) -> bool) -> Vec<Posted> {
        let mut taken = Vec::new();
        for posted in std::mem::take(&mut self.list) {
            match is_it(&posted) {
                true => taken.push(posted),
                false => self.list.push_back(posted),
            }
        }
        for bin in self.bins.values_mut() {
            for (order, posted) in std::mem::take(bin) {
                match is_it(&posted) {
                    true => taken.push(posted),
                    false => bin.push_back((order, posted)),
                }
            }
        }
        self.bins.retain(|_, bin| !bin.is_empty());
        let open = self.bins.iter().filter(|(key, _)| key.is_open());
        self.open = open.map(|(_, bin)| bin.len()).sum();
        taken
    }
}

/// Messages that no receive has matched, in the order of their arrival: the unexpected-message
/// queue.
#[derive(Default)]
pub(super) struct Arrivals {
    list: VecDeque<Unexpected>,
    /// Those of bins, by their order.
    binned: BTreeMap<u64, Unexpected>,
    bins: Bins<Bin>,
    /// The order of the last message that went to bins.
    last: u64,
    /// Whether there are any, readable without the engine's lock.
    any: Arc<AtomicBool>,
}

/// The places of messages in their order. The first message is there.
#[derive(Default)]
struct Bin {
    places: VecDeque<u64>,
    /// The number of messages that are there. Places of others are left out once they are more.
    there: usize,
}

impl Arrivals {
    /// Whether there are any, as a flag to be read without the engine's lock.
    pub(super) fn any(&self) -> Arc<AtomicBool> {
        self.any.clone()
    }

    fn note_any(&self) {
        let any = !self.list.is_empty() || !self.binned.is_empty();
        self.any.store(any, Ordering::Relaxed);
    }

    /// Adds the message that arrived last.
    pub(super) fn push(&mut self, message: Unexpected) {
        self.any.store(true, Ordering::Relaxed);
        if self.binned.is_empty() && self.list.len() < LISTED {
            return self.list.push_back(message);
        }
        self.last += 1;
        for key in Key::matching(&message.arrival) {
            let bin = self.bins.entry(key).or_default();
            bin.places.push_back(self.last);
            bin.there += 1;
        }
        self.binned.insert(self.last, message);
    }

    /// The first message that a receive matches.
    pub(super) fn first(&self, pattern: &Pattern) -> Option<&Unexpected> {
        let mut list = self.list.iter();
        list.find(|message| pattern.matches(&message.arrival))
            .or_else(|| self.binned.get(&self.first_binned(pattern)?))
    }

    /// Takes out the first message that a direct receive matches, if `take` takes its data. `None`
    /// also if bins have to be looked into.
    #[inline]
    pub(super) fn take_direct<T>(
        &mut self,
        direct: &Direct,
        take: impl FnOnce(&Unexpected) -> Option<T>,
    ) -> Option<T> {
        let at = self.list.iter().position(|message| direct.matches(&message.arrival))?;
        let taken = take(&self.list[at])?;
        match at {
            0 => drop(self.list.pop_front()),
            _ => drop(self.list.remove(at)),
        }
        self.note_any();
        Some(taken)
    }

    /// Takes out the first message that a receive matches.
    pub(super) fn take(&mut self, pattern: &Pattern) -> Option<Unexpected> {
        let listed = self.list.iter().position(|message| pattern.matches(&message.arrival));
        let taken = match listed {
            Some(0) => self.list.pop_front(),
            Some(at) => self.list.remove(at),
            None => self.remove(self.first_binned(pattern)?),
        };
        self.note_any();
        taken
    }

    fn first_binned(&self, pattern: &Pattern) -> Option<u64> {
        if self.binned.is_empty() {
            return None;
        }
        self.bins.get(&Key::of(pattern))?.places.front().copied()
    }

    /// All messages in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Unexpected> {
        self.list.iter().chain(self.binned.values())
    }

    /// Takes out all messages of which `is_it` holds, in their order.
    pub(super) fn extract(&mut self, is_it: impl Fn(&Unexpected) -> bool) -> Vec<Unexpected> {
        let mut taken = Vec::new();
        for message in std::mem::take(&mut self.list) {
            match is_it(&message) {
                true => taken.push(message),
                false => self.list.push_back(message),
            }
        }
        let places = self.binned.iter().filter(|(_, message)| is_it(message));
        let places: Vec<u64> = places.map(|(place, _)| *place).collect();
        taken.extend(places.into_iter().filter_map(|place| self.remove(place)));
        self.note_any();
        taken
    }

    /// Takes a message out of the bins.
    fn remove(&mut self, place: u64) -> Option<Unexpected> {
        let Arrivals { binned, bins, .. } = self;
        let message = binned.remove(&place)?;
        for key in Key::matching(&message.arrival) {
            let Entry::Occupied(mut bin) = bins.entry(key) else { continue };
            let Bin { places, there } = bin.get_mut();
            *there -= 1;
            if *there == 0 {
                bin.remove();
            } else if places.len() > 2 * *there {
                places.retain(|place| binned.contains_key(place));
            } else {
                while places.front().is_some_and(|first| !binned.contains_key(first)) {
                    places.pop_front();
                }
            }
        }
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use longshore_transport::fault::Chance;

    use super::super::super::peers::ByLength;
    use super::super::matching::Sender;
    use super::super::{Announced, Body, Posted, Unexpected};
    use super::*;
    use crate::group::Group;

    const RANKS: usize = 3;
    const TAGS: usize = 4;

    fn arrival(context: u32, peer: u32, tag: i32, length: u64) -> Arrival {
        let (signature, by_length, is_native) = (0, ByLength::Never, false);
        Arrival { peer, context, tag, signature, length, by_length, is_native }
    }

    fn message(arrival: Arrival) -> Unexpected {
        Unexpected {
            arrival,
            body: Body::Announced(Announced { number: 0, offer: None }),
            known: None,
        }
    }

    /// A message of a random context, sender and tag, whose length is its number.
    fn any_arrival(chance: &mut Chance, number: u64) -> Arrival {
        let [context, peer, tag] = [2, RANKS, TAGS].map(|most| chance.below(most));
        arrival(context as u32, peer as u32, tag as i32, number)
    }

    fn any_pattern(chance: &mut Chance) -> Pattern {
        let Arrival { context, peer, tag, .. } = any_arrival(chance, 0);
        let sender = match chance.below(3) {
            0 => Sender::Any(Group::of_world(0..RANKS as u32, 0)),
            _ => Sender::One(peer),
        };
        Pattern { context, sender, tag: (chance.below(3) > 0).then_some(tag) }
    }

    /// Lists that are searched from their beginning, as the standard words it.
    #[derive(Default)]
    struct Lists {
        posted: Vec<(u64, Pattern)>,
        arrived: Vec<Arrival>,
    }

    fn both(seed: u64, steps: u64, sends: usize) {
        let mut chance = Chance::new(seed);
        let (mut receives, mut arrivals) = (Receives::default(), Arrivals::default());
        let mut lists = Lists::default();
        for step in 0..steps {
            if chance.below(8) < sends {
                let arrival = any_arrival(&mut chance, step);
                let mut posted = lists.posted.iter();
                let expected = posted.position(|(_, pattern)| pattern.matches(&arrival));
                let expected = expected.map(|at| lists.posted.remove(at).0);
                let found = receives.take(&arrival);
                assert_eq!(found, expected, "seed {seed}, step {step}");
                if found.is_none() {
                    arrivals.push(message(arrival));
                    lists.arrived.push(arrival);
                }
            } else {
                let pattern = any_pattern(&mut chance);
                let at = lists.arrived.iter().position(|arrival| pattern.matches(arrival));
                let expected = at.map(|at| lists.arrived[at].length);
                let probed = arrivals.first(&pattern).map(|message| message.arrival.length);
                assert_eq!(probed, expected, "seed {seed}, step {step}");
                let taken = arrivals.take(&pattern).map(|message| message.arrival.length);
                assert_eq!(taken, expected, "seed {seed}, step {step}");
                match at {
                    Some(at) => _ = lists.arrived.remove(at),
                    None => {
                        lists.posted.push((step, pattern.clone()));
                        receives.push(Posted { number: step, pattern });
                    }
                }
            }
            if chance.below(50) == 0 {
                let peer = chance.below(RANKS) as u32;
                let taken = receives.extract(|posted| posted.pattern.sender.one() == Some(peer));
                let before = lists.posted.len();
                lists.posted.retain(|(_, pattern)| pattern.sender.one() != Some(peer));
                assert_eq!(taken.len(), before - lists.posted.len());
                let taken = arrivals.extract(|message| message.arrival.peer == peer);
                let taken: Vec<_> = taken.iter().map(|message| message.arrival.length).collect();
                let expected = lists.arrived.iter().filter(|arrival| arrival.peer == peer);
                assert_eq!(taken, expected.map(|arrival| arrival.length).collect::<Vec<_>>());
                lists.arrived.retain(|arrival| arrival.peer != peer);
            }
            assert_eq!(arrivals.any().load(Ordering::Relaxed), !lists.arrived.is_empty());
            let left: Vec<_> = arrivals.iter().map(|message| message.arrival.length).collect();
            let expected = lists.arrived.iter().map(|arrival| arrival.length);
            assert_eq!(left, expected.collect::<Vec<_>>(), "seed {seed}, step {step}");
        }
    }

    #[test]
    fn matches_are_those_of_lists() {
        for seed in 0..40 {
            // Mostly messages wait, or receives, or few of both.
            for sends in [6, 2, 4] {
                both(seed, 400, sends);
            }
        }
    }

    /// A message that nobody receives doesn't keep the places of those that came after it.
    #[test]
    fn places_of_messages_that_are_gone_are_left_out() {
        let mut arrivals = Arrivals::default();
        for tag in 0..=LISTED as i32 {
            arrivals.push(message(arrival(0, 0, tag, 0)));
        }
        let next = Pattern { context: 0, sender: Sender::One(0), tag: Some(1000) };
        for _ in 0..10_000 {
            arrivals.push(message(arrival(0, 0, 1000, 0)));
            assert!(arrivals.take(&next).is_some());
        }
        assert!(arrivals.bins.values().all(|bin| bin.places.len() <= 2 * bin.there));
        assert_eq!((arrivals.iter().count(), arrivals.bins.len()), (LISTED + 1, 4));
    }
}
