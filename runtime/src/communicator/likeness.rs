//! What the members of a communicator have in common, and how elements of a type travel between
//! them.
//!
//! In collective calls, elements travel in one of three ways:
//!
//! - **Copied.** All basic types of the elements have the same bytes at all members. The stream of
//!   a rank has its own representation, and so that of all others.
//! - **Copied, but not as they lie.** The rank emulates another machine, and the elements are those
//!   of a slice, in the representation of this machine. They are converted at this rank only.
//! - **Converted.** The stream has the representation in which the communicator packs.
//!
//! All ranks of a call must find the same way of its data. Their datatypes may differ, but have
//! equal signatures, and so the same basic types. Therefore the way depends on the basic types that
//! occur and on the members' representations, and on nothing else: not on offsets, extents or
//! bounds, which differ between the ranks' datatypes. If the signatures aren't equal, the ranks may
//! find different ways. Each message starts with the hash of its signature, which the receiver
//! compares before it looks at the data.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use shipable::Architecture;

use super::Communicator;
use crate::observe::Exchanged;
use crate::types::Compiled;

impl Communicator {
    /// Whether collective data of equal length match without equal signatures: all members let
    /// them, and nothing is converted between them.
    pub(crate) fn matches_by_length(&self) -> bool {
        self.likeness().by_length
    }

    /// Whether elements of a type have the same bytes at all members. All ranks of a call find the
    /// same.
    pub(super) fn copies(&self, datatype: &Compiled) -> bool {
        self.travels(datatype).copies
    }

    /// Whether elements of a type have the same bytes at all members, and lie in this rank's memory
    /// as they travel.
    #[inline]
    pub(super) fn copies_as_they_lie(&self, datatype: &Compiled) -> bool {
        let likeness = self.likeness();
        likeness.is_plain || {
            let way = likeness.way(self, datatype);
            way.copies && way.lies
        }
    }

    /// The representation in which elements of a type travel; `None` if they travel as they lie in
    /// this rank's memory.
    #[inline]
    pub(super) fn stream(&self, datatype: &Compiled) -> Option<&Architecture> {
        let way = self.travels(datatype);
        match (way.lies, way.copies) {
            (true, _) => None,
            (false, true) => Some(&self.process().me().architecture),
            (false, false) => Some(self.packed_representation()),
        }
    }

    /// Counts data that are packed or unpacked in a call of unlike ranks.
    #[inline]
    pub(super) fn count_exchanged(&self, datatype: &Compiled, bytes: u64) {
        let likeness = self.likeness();
        if !likeness.is_plain {
            likeness.pending.store(0, Relaxed);
            match likeness.way(self, datatype).lies {
                true => self.exchanged_with_others(bytes, 0),
                false => self.exchanged_with_others(0, bytes),
            }
        }
    }

    /// A short call is about to copy data. If it leaves them to the general steps, or to its next
    /// attempt, those count them.
    #[inline]
    pub(super) fn count_short(&self, bytes: u64) {
        let likeness = self.likeness();
        if !likeness.is_plain {
            likeness.pending.fetch_add(bytes, Relaxed);
        }
    }

    /// A short call leaves its data to its next attempt, or to the general steps.
    #[inline]
    pub(super) fn forget_short(&self) {
        let likeness = self.likeness();
        if !likeness.is_plain {
            likeness.pending.store(0, Relaxed);
        }
    }

    /// A short call has copied its data.
    #[inline]
    pub(super) fn count_short_done(&self) {
        let likeness = self.likeness();
        if !likeness.is_plain {
            self.exchanged_with_others(likeness.pending.swap(0, Relaxed), 0);
        }
    }

    #[cold]
    fn exchanged_with_others(&self, copied: u64, converted: u64) {
        let is_unlike = self.likeness().others.as_ref().is_some_and(|others| !others.is_empty());
        let has_any = copied > 0 || converted > 0;
        if let Some(observer) = self.process().observer().filter(|_| is_unlike && has_any) {
            let from = self.process().me().architecture;
            observer.exchanged(&Exchanged { from, to: None, copied, converted });
        }
    }

    #[inline]
    fn travels(&self, datatype: &Compiled) -> Way {
        let likeness = self.likeness();
        match likeness.is_plain {
            true => Way { copies: true, lies: true },
            false => likeness.way(self, datatype),
        }
    }

    /// It is determined once: the members and their representations never change.
    #[inline]
    fn likeness(&self) -> &Likeness {
        self.shared.likeness.get_or_init(|| self.find_likeness())
    }

    #[cold]
    fn find_likeness(&self) -> Likeness {
        let me = self.process().me();
        let mut engine = self.process().engine();
        let state = engine.state();
        let members = self.everyone().0.processes();
        let (mut others, mut are_known) = (Vec::<Architecture>::new(), true);
        for &member in members {
            match state.representation(member) {
                None => are_known = false,
                Some((kind, _)) if kind.same_representation(&me.architecture) => {}
                Some((kind, _)) if others.contains(&kind) => {}
                Some((kind, _)) => others.push(kind),
            }
        }
        let by_length = members.iter().all(|&member| state.matches_by_length(member));
        let is_plain = are_known && others.is_empty() && !me.emulated;
        let others = are_known.then(|| others.into_boxed_slice());
        let (ways, pending) = Default::default();
        Likeness { is_plain, by_length, others, ways, pending }
    }
}

/// The properties that all members share.
pub(super) struct Likeness {
    /// All members are alike, and none emulates another machine.
    is_plain: bool,
    /// Data of equal length match without equal signatures.
    by_length: bool,
    /// The representations of members that are unlike this rank; `None` if some aren't known.
    others: Option<Box<[Architecture]>>,
    /// The ways of the types of the last calls, each in one word with the type's id. Ids begin at 1
    /// and are never reused.
    ways: [AtomicU64; 16],
    /// Bytes that a short call is about to copy.
    pending: AtomicU64,
}

/// How elements of a type travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Way {
    /// They have the same bytes at all members.
    copies: bool,
    /// They lie in this rank's memory as they travel.
    lies: bool,
}

impl Likeness {
    #[inline(never)]
    fn way(&self, communicator: &Communicator, datatype: &Compiled) -> Way {
        let id = datatype.id();
        let known = &self.ways[(id % self.ways.len() as u64) as usize];
        let word = known.load(Relaxed);
        if word >> 2 == id {
            return Way { copies: word & 2 != 0, lies: word & 1 != 0 };
        }
        let way = self.find(communicator, datatype);
        known.store(id << 2 | u64::from(way.copies) << 1 | u64::from(way.lies), Relaxed);
        way
    }

    /// A representation that lacks one of the basic types has no such elements, so that they don't
    /// have the same bytes.
    fn find(&self, communicator: &Communicator, datatype: &Compiled) -> Way {
        let (form, own) = (datatype.form(), &communicator.process().me().architecture);
        let same = |here: &Architecture, there: &Architecture| {
            form.has_same_items(here, there).unwrap_or(false)
        };
        let others = self.others.as_deref();
        let copies = others.is_some_and(|others| others.iter().all(|other| same(own, other)));
        let stream = if copies { own } else { communicator.packed_representation() };
        Way { copies, lies: same(datatype.committed().architecture(), stream) }
    }
}

#[cfg(test)]
mod tests {
    use shipable::{Basic, Datatype};

    use super::*;
    use crate::sim::{Options, run};

    /// The ways of a type in the rank's memory, and of its elements in slices, at each rank.
    fn ways(kinds: &[Architecture], datatype: &Datatype) -> Vec<[Way; 2]> {
        let options = Options { architectures: kinds.to_vec(), ..Options::default() };
        let body = |rank: crate::Rank| {
            let world = rank.world();
            let commit = |architecture: &Architecture| {
                world.process().elements().commit_on(datatype, architecture, None).unwrap()
            };
            let types = [commit(&world.process().me().architecture), commit(&Architecture::NATIVE)];
            let found = [0, 1].map(|at| world.travels(types[at].compiled()));
            // As the communicator remembers them.
            assert_eq!([0, 1].map(|at| world.travels(types[at].compiled())), found);
            rank.finalize().unwrap();
            found
        };
        run(kinds.len() as u32, &options, body).unwrap()
    }

    #[test]
    fn all_ranks_find_the_way_by_the_basic_types_that_occur() {
        use Architecture as A;
        let (int, wide) = (Datatype::int(), Datatype::from(Basic::LongDouble));
        let gaps = Datatype::hvector(3, 1, 1 << 20, &int).unwrap();
        let mixed = Datatype::struct_(&[1, 1], &[0, 16], &[int.clone(), wide.clone()]).unwrap();
        let none = Datatype::struct_(&[1, 0], &[0, 16], &[int.clone(), wide.clone()]).unwrap();
        let kinds = [A::X86_64, A::AARCH64, A::X86_64];
        for datatype in [&int, &gaps, &none] {
            for [memory, slices] in ways(&kinds, datatype) {
                assert_eq!(memory, Way { copies: true, lies: true }, "{datatype}");
                let lies = A::NATIVE.order() == A::X86_64.order();
                assert_eq!(slices, Way { copies: true, lies }, "{datatype}");
            }
        }
        // Packed buffers have the representation of aarch64.
        for datatype in [&wide, &mixed] {
            let lies = ways(&kinds, datatype).concat().into_iter().map(|way| {
                assert!(!way.copies);
                way.lies
            });
            let native = A::NATIVE.same_representation(&A::AARCH64);
            assert!(lies.eq([false, native, true, native, false, native]), "{datatype}");
        }
        // Big-endian ranks have ints in common, which this machine's slices don't have.
        for [memory, slices] in ways(&[A::S390X, A::PPC64], &int) {
            assert_eq!(memory, Way { copies: true, lies: true });
            assert_eq!(slices, Way { copies: true, lies: A::NATIVE.order() == A::S390X.order() });
        }
        for [memory, _] in ways(&[A::X86_64, A::S390X], &int) {
            assert!(!memory.copies);
        }
    }
}
