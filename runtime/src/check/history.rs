//! The past accesses to one rank's window with which a later one may conflict (rules 22 and 23).
//!
//! An access is *settled* once its origin has seen it complete (by a flush, an unlock, a fence and
//! so on) and the target knows of that. It is recorded with the number of the origin's clock at
//! that time. An access that notifies is *seen* once the window's owner has read the counter that
//! it raised. It is recorded with the number of the owner's clock. An access is ordered before
//! another one exactly if it is settled or seen, and the other's origin knows the number.
//!
//! Two accesses conflict if they have bytes in common, neither is ordered before the other, and
//! their kinds may not be concurrent.
//!
//! A new access is compared with the recorded ones. All accesses ordered before it have arrived,
//! and none ordered after it can have arrived. [`History::forget_known`] drops the accesses that
//! all ranks know to be settled. Beyond [`LIMIT`] accesses, the oldest are dropped, settled ones
//! first, and conflicts with them go unseen.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use shipable::Leaf;
use shipable::reduce::Op;

use super::clock::Clock;
use super::footprint::{Footprint, Overlap};
use crate::error::{call_name, leaf_name};

/// The limit of recorded accesses to one window.
pub(crate) const LIMIT: usize = 16_384;

/// The limit of reported conflicts of one access.
const TOLD: usize = 4;

/// The limit of granules with a clock of their own for accumulates.
const GRANULES: usize = 4096;

/// The longest access, in bytes, that is recorded by granules.
const SHORT: i64 = 64;

/// The source location of a call.
pub(crate) type Site = Arc<str>;

/// The kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    Put,
    Get,
    /// An accumulate of any kind, with the predefined type of its items. A compare and swap has no
    /// operation.
    Accumulate(Option<Op>, Leaf),
    /// A load by the window's owner.
    Load,
    /// A store by the window's owner.
    Store,
}

impl Deed {
    /// The rule that two concurrent accesses to the same bytes break, if any. `same_op` is the
    /// window's `accumulate_ops=same_op`.
    fn conflicts(self, other: Deed, same_op: bool) -> Option<u8> {
        use Deed::*;
        match (self, other) {
            (Get | Load, Get | Load) => None,
            // The owner may poll a value that others accumulate to.
            (Accumulate(..), Load) | (Load, Accumulate(..)) => None,
            (Accumulate(_, one), Accumulate(_, two)) if one != two => Some(22),
            (Accumulate(Some(one), _), Accumulate(Some(two), _)) => {
                let idle = !same_op && (one == Op::NoOp || two == Op::NoOp);
                (one != two && !idle).then_some(22)
            }
            // A spin lock needs both a compare and swap and a replace.
            (Accumulate(..), Accumulate(..)) => None,
            _ => Some(23),
        }
    }
}

impl fmt::Display for Deed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Deed::Put => f.write_str(&call_name("put", true)),
            Deed::Get => f.write_str(&call_name("get", true)),
            Deed::Accumulate(Some(op), leaf) => {
                write!(f, "{} ({op} of {})", call_name("accumulate", true), leaf_name(leaf))
            }
            Deed::Accumulate(None, leaf) => {
                write!(f, "{} (of {})", call_name("compare_and_swap", true), leaf_name(leaf))
            }
            Deed::Load => f.write_str("load"),
            Deed::Store => f.write_str("store"),
        }
    }
}

/// One access, or several consecutive ones of the same kind and source location.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    /// The origin, by its rank in the job.
    pub origin: u32,
    pub deed: Deed,
    pub site: Site,
    pub footprint: Footprint,
    /// The origin's number of the operation. Operations settle in this order, except those with a
    /// request of their own.
    pub number: u64,
    /// Whether the operation has a request, or notifies, so that it may be over before others.
    pub alone: bool,
    /// The origin's clock number when the access settled.
    pub settled: Option<u64>,
    /// The window's owner, and its clock number when it had read the counter that the access
    /// raised.
    pub seen: Option<(u32, u64)>,
}

impl Access {
    /// Whether the access is ordered before the actions of a rank with this clock.
    fn is_before(&self, known: &Clock) -> bool {
        let settled = self.settled.is_some_and(|settled| known.of(self.origin) >= settled);
        settled || self.seen.is_some_and(|(owner, number)| known.of(owner) >= number)
    }

    /// Whether this access makes the record of the one right before it redundant.
    fn replaces(&self, last: &Access) -> bool {
        let alike = self.origin == last.origin && self.deed == last.deed && self.site == last.site;
        let is_over = last.settled.is_some() || last.seen.is_some();
        alike && (is_over || !last.alone && !self.alone)
    }
}

/// A recorded access that conflicts with a new one, and bytes that both touch.
#[derive(Clone, Debug)]
pub(crate) struct Conflict {
    pub rule: u8,
    pub earlier: Access,
    pub bytes: Range<i64>,
}

/// The recorded accesses to a window.
pub(crate) struct History {
    pub same_op: bool,
    /// The accesses, by age.
    accesses: BTreeMap<u64, Access>,
    /// The ages of all accesses by start, in classes by length (see [`class`]).
    places: BTreeMap<u32, BTreeSet<(i64, u64)>>,
    /// The origins and ages of accesses that aren't settled.
    pending: BTreeSet<(u32, u64)>,
    /// The joined clocks of origins that accumulated to each granule of 8 bytes.
    atomics: BTreeMap<i64, Clock>,
    /// The joined clocks of the origins of all other accumulates.
    anywhere: Clock,
    next: u64,
    /// The number of accesses, or parts of them, with which conflicts go unseen.
    pub missed: u64,
}

impl History {
    pub(crate) fn new(same_op: bool) -> History {
        History {
            same_op,
            accesses: BTreeMap::new(),
            places: BTreeMap::new(),
            pending: BTreeSet::new(),
            atomics: BTreeMap::new(),
            anywhere: Clock::default(),
            next: 0,
            missed: 0,
        }
    }

    /// Records an access by an origin with this clock. Returns conflicts with earlier accesses, at
    /// most [`TOLD`].
    pub(crate) fn add(&mut self, access: Access, known: &Clock) -> Vec<Conflict> {
        let Some(bounds) = access.footprint.bounds() else { return Vec::new() };
        self.missed += u64::from(!access.footprint.is_whole());
        let mut conflicts = Vec::new();
        let mut replaced = Vec::new();
        for age in self.near(&bounds) {
            let Some(earlier) = self.accesses.get(&age) else { continue };
            if access.replaces(earlier) && access.footprint.is(&earlier.footprint) {
                replaced.push(age);
            }
            let Some(rule) = access.deed.conflicts(earlier.deed, self.same_op) else { continue };
            let ours = access.origin == earlier.origin;
            // Accumulates of one rank are ordered, and so are its own loads and stores.
            if earlier.is_before(known) || ours && rule == 22 || conflicts.len() == TOLD {
                continue;
            }
            match access.footprint.overlap(&earlier.footprint) {
                Overlap::No => {}
                Overlap::Open => self.missed += 1,
                Overlap::At(bytes) => {
                    conflicts.push(Conflict { rule, earlier: earlier.clone(), bytes });
                }
            }
        }
        replaced.into_iter().for_each(|age| self.remove(age));
        let access = self.joined(access);
        self.insert(access);
        if self.accesses.len() > LIMIT {
            self.make_room();
        }
        conflicts
    }

    /// Joins the access with the last recorded one, if both together are one run of bytes.
    fn joined(&mut self, access: Access) -> Access {
        let Some((&age, last)) = self.accesses.last_key_value() else { return access };
        let runs = access.footprint.as_run().zip(last.footprint.as_run());
        match runs {
            Some((new, old))
                if access.replaces(last)
                    && last.settled == access.settled
                    && last.seen == access.seen
                    && new.start <= old.end
                    && old.start <= new.end =>
            {
                self.remove(age);
                let both = old.start.min(new.start)..old.end.max(new.end);
                Access { footprint: Footprint::run(both), ..access }
            }
            _ => access,
        }
    }

    /// The ages of the accesses whose bounds overlap `bounds`.
    fn near(&self, bounds: &Range<i64>) -> Vec<u64> {
        let mut ages = Vec::new();
        for (&class, places) in &self.places {
            let first = bounds.start.saturating_sub(1i64.checked_shl(class).unwrap_or(i64::MAX));
            let near = places.range((first, 0)..(bounds.end, 0));
            ages.extend(near.map(|&(_, age)| age).filter(|age| {
                let other = self.accesses.get(age).and_then(|other| other.footprint.bounds());
                other.is_some_and(|other| other.start < bounds.end && bounds.start < other.end)
            }));
        }
        ages.sort_unstable();
        ages
    }

    fn insert(&mut self, access: Access) {
        if let Some(bounds) = access.footprint.bounds() {
            let age = self.next;
            self.next += 1;
            self.places.entry(class(&bounds)).or_default().insert((bounds.start, age));
            if access.settled.is_none() {
                self.pending.insert((access.origin, age));
            }
            self.accesses.insert(age, access);
        }
    }

    fn remove(&mut self, age: u64) {
        let Some(access) = self.accesses.remove(&age) else { return };
        self.pending.remove(&(access.origin, age));
        let Some(bounds) = access.footprint.bounds() else { return };
        if let Some(places) = self.places.get_mut(&class(&bounds)) {
            places.remove(&(bounds.start, age));
        }
    }

    /// Drops an eighth of [`LIMIT`] accesses.
    fn make_room(&mut self) {
        let ages = |settled: bool| {
            let of = self.accesses.iter().filter(move |(_, it)| it.settled.is_some() == settled);
            of.map(|(age, _)| *age)
        };
        let oldest: Vec<_> = ages(true).chain(ages(false)).take(LIMIT / 8).collect();
        self.missed += oldest.len() as u64;
        oldest.into_iter().for_each(|age| self.remove(age));
    }

    /// Settles the operations of an origin up to `number`, or with `alone` only that one. `clock`
    /// is the origin's clock number.
    pub(crate) fn settle(&mut self, origin: u32, number: u64, alone: bool, clock: u64) {
        let meant = |access: &Access| match alone {
            true => access.number == number,
            false => access.number <= number,
        };
        let of_origin = self.pending.range((origin, 0)..=(origin, u64::MAX));
        let ages: Vec<u64> = of_origin.map(|(_, age)| *age).collect();
        for age in ages {
            let access = self.accesses.get_mut(&age).filter(|access| meant(access));
            if let Some(access) = access {
                access.settled = Some(clock);
                self.pending.remove(&(origin, age));
            }
        }
    }

    /// The window's owner has read the counter that an operation raised. `seen` is the owner, and
    /// its clock number.
    pub(crate) fn see(&mut self, origin: u32, number: u64, seen: (u32, u64)) {
        // It is among the last ones, and its origin may have seen it complete already.
        let mut latest = self.accesses.values_mut().rev();
        if let Some(access) = latest.find(|it| (it.origin, it.number) == (origin, number)) {
            access.seen = Some(seen);
        }
    }

    /// Drops the accesses that all ranks know to be settled.
    pub(crate) fn forget_known(&mut self, by_all: &Clock) {
        let known: Vec<_> = self
            .accesses
            .iter()
            .filter(|(_, it)| it.is_before(by_all))
            .map(|(age, _)| *age)
            .collect();
        known.into_iter().for_each(|age| self.remove(age));
    }

    /// The joined clocks of the accumulates to these bytes. A rank that fetches from them adopts
    /// it.
    pub(crate) fn acquired(&self, bytes: &Range<i64>) -> Clock {
        let mut known = self.anywhere.clone();
        for clock in self.atomics.range(granules(bytes)).map(|(_, clock)| clock) {
            known.join(clock);
        }
        known
    }

    /// Records the clock of an origin that accumulates to these bytes.
    pub(crate) fn released(&mut self, bytes: &Range<i64>, known: &Clock) {
        if bytes.end - bytes.start > SHORT || self.atomics.len() >= GRANULES {
            self.anywhere.join(known);
            return;
        }
        for granule in granules(bytes) {
            self.atomics.entry(granule).or_default().join(known);
        }
    }
}

fn granules(bytes: &Range<i64>) -> Range<i64> {
    bytes.start >> 3..((bytes.end - 1) >> 3) + 1
}

/// The class of a length: the exponent of the least power of two that isn't below it.
fn class(bounds: &Range<i64>) -> u32 {
    bounds.end.abs_diff(bounds.start).next_power_of_two().trailing_zeros()
}

#[cfg(test)]
mod tests {
    use shipable::Basic;
    use shipable::oracle::{Random, cases};

    use super::*;

    const RANKS: u32 = 3;

    fn deed(random: &mut Random, op: Op) -> Deed {
        match random.below(4) {
            0 => Deed::Put,
            1 => Deed::Get,
            2 => Deed::Accumulate(None, Basic::Int64.into()),
            _ => Deed::Accumulate(Some(op), Basic::Int64.into()),
        }
    }

    /// The reference implementation: compares every byte with every earlier access.
    #[derive(Default)]
    struct Naive(Vec<(Access, Range<i64>)>);

    impl Naive {
        fn conflicts(&self, access: &Access, bytes: &Range<i64>, known: &Clock) -> bool {
            self.0.iter().any(|(earlier, others)| {
                let rule = access.deed.conflicts(earlier.deed, false);
                let ours = access.origin == earlier.origin;
                rule.is_some_and(|rule| !(ours && rule == 22))
                    && !earlier.is_before(known)
                    && bytes.clone().any(|byte| others.contains(&byte))
            })
        }
    }

    #[test]
    fn conflicts_equal_those_of_the_reference() {
        let mut random = Random::new(3, Default::default());
        let (mut quiet, mut loud) = (0, 0);
        for _ in 0..cases(300) {
            let (mut history, mut naive) = (History::new(false), Naive::default());
            let mut clocks = vec![Clock::new(RANKS); RANKS as usize];
            (0..).zip(&mut clocks).for_each(|(rank, clock)| clock.advance(rank));
            for number in 1..200 {
                let origin = random.below(RANKS.into()) as u32;
                match random.below(8) {
                    // A flush.
                    0 | 1 => {
                        let now = clocks[origin as usize].of(origin);
                        history.settle(origin, number, false, now);
                        for (access, _) in naive.0.iter_mut().filter(|it| it.0.origin == origin) {
                            access.settled.get_or_insert(now);
                        }
                    }
                    // A message.
                    2 => {
                        let told = clocks[origin as usize].clone();
                        clocks[origin as usize].advance(origin);
                        clocks[random.below(RANKS.into()) as usize].join(&told);
                    }
                    3 if random.below(5) == 0 => {
                        let mut known = Clock::default();
                        clocks.iter().for_each(|clock| _ = known.join(clock));
                        for (rank, clock) in (0..).zip(&mut clocks) {
                            clock.join(&known);
                            clock.advance(rank);
                        }
                        history.forget_known(&known);
                    }
                    _ => {
                        let start = random.below(60) as i64;
                        let bytes = start..start + 1 + random.below(10) as i64;
                        let access = Access {
                            origin,
                            deed: deed(
                                &mut random,
                                if number % 7 == 0 { Op::Max } else { Op::Sum },
                            ),
                            site: format!("{}", random.below(3)).into(),
                            footprint: Footprint::run(bytes.clone()),
                            number,
                            alone: random.below(2) == 0,
                            settled: None,
                            seen: None,
                        };
                        let known = &clocks[origin as usize];
                        let expected = naive.conflicts(&access, &bytes, known);
                        let found = history.add(access.clone(), known);
                        assert_eq!(!found.is_empty(), expected, "{access:?}: {found:?}");
                        *if expected { &mut loud } else { &mut quiet } += 1;
                        naive.0.push((access, bytes));
                    }
                }
            }
            assert_eq!(history.missed, 0);
        }
        assert!(quiet.min(loud) > 10 * cases(300), "{quiet} {loud}");
    }

    fn put(number: u64, bytes: Range<i64>) -> Access {
        let footprint = Footprint::run(bytes);
        let site = "a.rs:1".into();
        let (deed, alone) = (Deed::Put, false);
        Access { origin: 0, deed, site, footprint, number, alone, settled: None, seen: None }
    }

    #[test]
    fn similar_accesses_are_joined_and_the_excess_is_counted() {
        let mut history = History::new(false);
        let known = Clock::new(RANKS);
        for at in 0..1000 {
            assert!(history.add(put(1 + at as u64, 8 * at..8 * at + 8), &known).is_empty());
        }
        assert_eq!((history.accesses.len(), history.missed), (1, 0));
        for at in 0..LIMIT as i64 {
            let at = 10_000 + 24 * at;
            assert!(history.add(put(2000 + at as u64, at..at + 8), &known).is_empty());
        }
        assert!(history.accesses.len() <= LIMIT);
        assert_eq!(history.missed, LIMIT as u64 / 8);
        // Conflicts with younger accesses are still found.
        let last = 10_000 + 24 * (LIMIT as i64 - 1);
        let other = Access { origin: 1, ..put(1, last + 4..last + 5) };
        assert_eq!(history.add(other, &known)[0].bytes, last + 4..last + 5);
    }
}
