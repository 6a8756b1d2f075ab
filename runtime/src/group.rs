//! Groups of processes, and their ranks in the group (MPI-5.0 section 7.3).
//!
//! A group is a local value: an ordered set of processes, each identified by its rank in the job.
//! Making one needs no communication.
//!
//! Left out: groups of sessions (MPI-5.0 section 7.3.2).

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

pub use shipable::flat::Comparison;

use crate::error::{ErrorKind, Result};
use crate::job::Hosts;

pub use crate::special::PROC_NULL;

/// An ordered set of processes of the job (MPI-5.0 section 7.3).
///
/// ```
/// let rank = longshore::init()?;
/// let world = rank.world().group();
/// // Every second rank, in reverse order.
/// let some = world.range_incl(&[(world.size() - 1, 0, -2)])?;
/// let rest = world.difference(&some)?;
/// assert_eq!(some.size() + rest.size(), world.size());
/// assert_eq!(some.translate_ranks(&[0], world)?, [Some(world.size() - 1)]);
/// # rank.finalize()?;
/// # Ok::<(), longshore::Error>(())
/// ```
#[derive(Clone)]
pub struct Group(Arc<Members>);

struct Members {
    /// The members' ranks in the job, by rank in the group.
    ranks: Box<[u32]>,
    /// Whether the ranks in the group equal those in the job.
    whole: bool,
    /// The rank in the group of each member, by rank in the job; built at its first use.
    inverse: OnceLock<HashMap<u32, u32>>,
    /// The process that made the group, by its rank in the job.
    me: u32,
}

impl Group {
    /// The group of the processes of a world, at process `me`.
    pub(crate) fn of_world(world: Range<u32>, me: u32) -> Group {
        Group::new(world.collect(), me)
    }

    /// The group of these distinct ranks of the job, at process `me`.
    pub(crate) fn new(ranks: Vec<u32>, me: u32) -> Group {
        let whole = ranks.iter().zip(0..).all(|(rank, place)| *rank == place);
        Group(Arc::new(Members { ranks: ranks.into(), whole, inverse: OnceLock::new(), me }))
    }

    /// The number of processes (MPI-5.0 section 7.3.1).
    #[doc(alias = "MPI_Group_size")]
    pub fn size(&self) -> i32 {
        self.0.ranks.len() as i32
    }

    /// The rank of this process in the group; `None` if it isn't a member (MPI-5.0 section 7.3.1).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let world = rank.world();
    /// assert_eq!(world.group().rank(), Some(world.rank()));
    /// assert_eq!(world.group().excl(&[world.rank()])?.rank(), None);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    #[doc(alias = "MPI_Group_rank")]
    pub fn rank(&self) -> Option<i32> {
        self.rank_of(self.0.me).map(|rank| rank as i32)
    }

    /// The members' ranks in the job, in the order of their ranks in the group.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let all: Vec<u32> = (0..rank.world().size() as u32).collect();
    /// assert_eq!(rank.world().group().processes(), all);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    pub fn processes(&self) -> &[u32] {
        &self.0.ranks
    }

    /// Translates ranks of this group to ranks of another one (MPI-5.0 section 7.3.1). The result
    /// is `None` for a process outside the other group, and PROC_NULL for PROC_NULL.
    ///
    /// # Errors
    /// RANK for a rank outside this group. GROUP for a group of another process.
    #[doc(alias = "MPI_Group_translate_ranks")]
    pub fn translate_ranks(&self, ranks: &[i32], other: &Group) -> Result<Vec<Option<i32>>> {
        self.check_own(other)?;
        let translate = |&rank: &i32| match self.member(rank)? {
            Some(process) => Ok(other.rank_of(process).map(|rank| rank as i32)),
            None => Ok(Some(PROC_NULL)),
        };
        ranks.iter().map(translate).collect()
    }

    /// Compares the members of two groups (MPI-5.0 section 7.3.1). Returns [`Comparison::Ident`]
    /// for the same processes in the same order, [`Comparison::Similar`] for another order, and
    /// [`Comparison::Unequal`] otherwise.
    #[doc(alias = "MPI_Group_compare")]
    pub fn compare(&self, other: &Group) -> Comparison {
        if self.0.ranks == other.0.ranks {
            return Comparison::Ident;
        }
        let all = || self.0.ranks.iter().all(|&process| other.contains(process));
        match self.size() == other.size() && all() {
            true => Comparison::Similar,
            false => Comparison::Unequal,
        }
    }

    /// The processes of this group, then those that are only in the other group (MPI-5.0 section
    /// 7.3.2).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// use longshore::Comparison;
    ///
    /// let world = rank.world().group();
    /// let (first, rest) = (world.incl(&[0])?, world.excl(&[0])?);
    /// assert_eq!(first.union(&rest)?.compare(world), Comparison::Ident);
    /// assert_eq!(first.intersection(&rest)?.size(), 0);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// GROUP for a group of another process.
    #[doc(alias = "MPI_Group_union")]
    pub fn union(&self, other: &Group) -> Result<Group> {
        self.check_own(other)?;
        let added = other.0.ranks.iter().filter(|process| !self.contains(**process));
        Ok(self.with(self.0.ranks.iter().chain(added).copied().collect()))
    }

    /// The processes that are in both groups, in the order of this one (MPI-5.0 section 7.3.2).
    ///
    /// # Errors
    /// GROUP for a group of another process.
    #[doc(alias = "MPI_Group_intersection")]
    pub fn intersection(&self, other: &Group) -> Result<Group> {
        self.check_own(other)?;
        Ok(self.filtered(|process| other.contains(process)))
    }

    /// The processes of this group that aren't in the other one, in the order of this one (MPI-5.0
    /// section 7.3.2).
    ///
    /// # Errors
    /// GROUP for a group of another process.
    #[doc(alias = "MPI_Group_difference")]
    pub fn difference(&self, other: &Group) -> Result<Group> {
        self.check_own(other)?;
        Ok(self.filtered(|process| !other.contains(process)))
    }

    /// The processes with these ranks, in this order (MPI-5.0 section 7.3.2).
    ///
    /// # Errors
    /// RANK for a rank outside this group, or one that is passed twice.
    #[doc(alias = "MPI_Group_incl")]
    pub fn incl(&self, ranks: &[i32]) -> Result<Group> {
        Ok(self.with(self.distinct(ranks)?))
    }

    /// The processes without these ranks, in the order of this group (MPI-5.0 section 7.3.2).
    ///
    /// # Errors
    /// RANK for a rank outside this group, or one that is passed twice.
    #[doc(alias = "MPI_Group_excl")]
    pub fn excl(&self, ranks: &[i32]) -> Result<Group> {
        let excluded = self.distinct(ranks)?;
        Ok(self.filtered(|process| !excluded.contains(&process)))
    }

    /// The processes with the ranks of these ranges (MPI-5.0 section 7.3.2). A range consists of
    /// first rank, last rank and stride, and includes both ends.
    ///
    /// # Errors
    /// ARG for a stride of 0. RANK for a rank outside this group, or one that is in the ranges
    /// twice.
    #[doc(alias = "MPI_Group_range_incl")]
    pub fn range_incl(&self, ranges: &[(i32, i32, i32)]) -> Result<Group> {
        self.incl(&self.expand(ranges)?)
    }

    /// The processes without the ranks of these ranges (MPI-5.0 section 7.3.2). A range consists of
    /// first rank, last rank and stride, and includes both ends.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// // Without every third rank.
    /// let world = rank.world().group();
    /// let some = world.range_excl(&[(0, world.size() - 1, 3)])?;
    /// assert_eq!(some.size(), world.size() - (world.size() + 2) / 3);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`range_incl`](Group::range_incl).
    #[doc(alias = "MPI_Group_range_excl")]
    pub fn range_excl(&self, ranges: &[(i32, i32, i32)]) -> Result<Group> {
        self.excl(&self.expand(ranges)?)
    }

    /// The process with this rank in the group; `None` for PROC_NULL (rule 27).
    #[inline]
    pub(crate) fn member(&self, rank: i32) -> Result<Option<u32>> {
        match usize::try_from(rank).ok().and_then(|rank| self.0.ranks.get(rank)) {
            Some(process) => Ok(Some(*process)),
            None if rank == PROC_NULL => Ok(None),
            None => {
                let size = self.0.ranks.len() as u32;
                Err(ErrorKind::Rank { rank, size, null: true }.into())
            }
        }
    }

    /// The process with this rank, which must be valid.
    #[inline]
    pub(crate) fn process(&self, rank: u32) -> u32 {
        self.0.ranks[rank as usize]
    }

    /// The rank in this group of a process of the job.
    #[inline]
    pub(crate) fn rank_of(&self, process: u32) -> Option<u32> {
        if self.0.whole {
            return ((process as usize) < self.0.ranks.len()).then_some(process);
        }
        self.look_up(process)
    }

    #[inline(never)]
    fn look_up(&self, process: u32) -> Option<u32> {
        let inverse =
            self.0.inverse.get_or_init(|| self.0.ranks.iter().copied().zip(0..).collect());
        inverse.get(&process).copied()
    }

    pub(crate) fn contains(&self, process: u32) -> bool {
        self.rank_of(process).is_some()
    }

    /// Refuses a group of another process: its rank numbers have another meaning there.
    pub(crate) fn check_own(&self, other: &Group) -> Result<()> {
        if self.0.me == other.0.me {
            return Ok(());
        }
        let what =
            format!("it is a group of process {}, used at process {}", other.0.me, self.0.me);
        Err(ErrorKind::Group(what).into())
    }

    fn with(&self, ranks: Vec<u32>) -> Group {
        Group::new(ranks, self.0.me)
    }

    fn filtered(&self, keep: impl Fn(u32) -> bool) -> Group {
        self.with(self.0.ranks.iter().copied().filter(|process| keep(*process)).collect())
    }

    fn distinct(&self, ranks: &[i32]) -> Result<Vec<u32>> {
        let mut seen = vec![false; self.0.ranks.len()];
        let mut processes = Vec::with_capacity(ranks.len().min(seen.len()));
        for &rank in ranks {
            let size = seen.len() as u32;
            let wrong = || ErrorKind::Rank { rank, size, null: false };
            let place = usize::try_from(rank).map_err(|_| wrong())?;
            match seen.get_mut(place) {
                None => return Err(wrong().into()),
                Some(true) => return Err(ErrorKind::RankTwice(rank).into()),
                Some(seen) => *seen = true,
            }
            processes.push(self.0.ranks[place]);
        }
        Ok(processes)
    }

    /// The ranks of the ranges, but at most one more than the group has: the last of these is
    /// invalid or a repetition.
    fn expand(&self, ranges: &[(i32, i32, i32)]) -> Result<Vec<i32>> {
        let mut ranks = Vec::new();
        for &(first, last, stride) in ranges {
            if stride == 0 {
                return Err(ErrorKind::Stride.into());
            }
            let mut rank = i64::from(first);
            while (stride > 0 && rank <= last.into()) || (stride < 0 && rank >= last.into()) {
                ranks.push(rank as i32);
                if ranks.len() > self.0.ranks.len() {
                    return Ok(ranks);
                }
                rank += i64::from(stride);
            }
        }
        Ok(ranks)
    }
}

/// Equal groups have the same processes in the same order.
impl PartialEq for Group {
    fn eq(&self, other: &Group) -> bool {
        self.0.ranks == other.0.ranks
    }
}

impl Eq for Group {}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Group").field(&self.0.ranks).finish()
    }
}

/// Queries about the hosts of a group.
/// The places of a group's processes.
impl Group {
    /// Whether all processes are on one host.
    pub(crate) fn is_on_one(&self, hosts: &Hosts) -> bool {
        let mut processes = self.processes().iter();
        hosts.is_one() || processes.all(|&process| hosts.share(process, self.process(0)))
    }

    /// The first rank whose process is on the host of `process`.
    pub(crate) fn first_beside(&self, hosts: &Hosts, process: u32) -> u32 {
        let beside = |&other: &u32| hosts.share(other, process);
        self.processes().iter().position(beside).unwrap_or(0) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shipable::Class;

    fn group(ranks: &[u32]) -> Group {
        Group::new(ranks.to_vec(), 2)
    }

    #[test]
    fn set_operations_keep_mpis_order() {
        let (left, right) = (group(&[4, 2, 0]), group(&[0, 1, 2]));
        assert_eq!(left.union(&right).unwrap().processes(), [4, 2, 0, 1]);
        assert_eq!(left.intersection(&right).unwrap().processes(), [2, 0]);
        assert_eq!(left.difference(&right).unwrap().processes(), [4]);
        assert_eq!(right.difference(&right).unwrap().size(), 0);
        assert_eq!((left.rank(), right.rank()), (Some(1), Some(2)));
        assert_eq!(group(&[]).rank(), None);
        let there = left.translate_ranks(&[0, 1, PROC_NULL], &right).unwrap();
        assert_eq!(there, [None, Some(2), Some(PROC_NULL)]);
    }

    #[test]
    fn groups_compare_by_members_and_order() {
        let one = group(&[3, 1]);
        assert_eq!(one.compare(&group(&[3, 1])), Comparison::Ident);
        assert_eq!(one.compare(&group(&[1, 3])), Comparison::Similar);
        assert_eq!(one.compare(&group(&[1, 2])), Comparison::Unequal);
        assert_eq!(one.compare(&group(&[1, 3, 0])), Comparison::Unequal);
    }

    #[test]
    fn ranges_are_inclusive_and_may_run_down() {
        let eight = Group::of_world(0..8, 2);
        assert_eq!(eight.range_incl(&[(1, 5, 2)]).unwrap().processes(), [1, 3, 5]);
        assert_eq!(eight.range_incl(&[(6, 1, -3), (7, 7, 1)]).unwrap().processes(), [6, 3, 7]);
        assert_eq!(eight.range_excl(&[(0, 6, 1)]).unwrap().processes(), [7]);
        assert_eq!(eight.range_incl(&[(3, 2, 1)]).unwrap().size(), 0);
        let class = |outcome: Result<Group>| outcome.unwrap_err().class();
        assert_eq!(class(eight.range_incl(&[(0, 1, 0)])), Class::Arg);
        assert_eq!(class(eight.range_incl(&[(6, 8, 1)])), Class::Rank);
        assert_eq!(class(eight.range_incl(&[(0, i32::MAX, 1)])), Class::Rank);
        assert_eq!(class(eight.range_incl(&[(0, 2, 1), (2, 3, 1)])), Class::Rank);
    }

    #[test]
    fn errors_name_the_wrong_ranks() {
        let two = Group::of_world(0..2, 0);
        let words = |outcome: Result<Group>| outcome.unwrap_err().to_string();
        assert!(words(two.incl(&[0, 2])).contains("no rank 2 in a communicator or group of 2"));
        let none = words(two.excl(&[PROC_NULL]));
        assert!(none.contains("no rank PROC_NULL") && !none.contains("or PROC_NULL"), "{none}");
        assert!(words(two.incl(&[1, 1])).contains("rank 1 is named twice"));
        let elsewhere = two.union(&Group::of_world(0..2, 1)).unwrap_err();
        assert_eq!(elsewhere.class(), Class::Group);
    }

    #[test]
    fn the_hosts_of_a_group_are_found() {
        let hosts = Hosts::new(vec![4, 4, 7, 4]);
        let all = Group::of_world(0..4, 0);
        assert!(!all.is_on_one(&hosts) && Group::new(vec![3, 0], 0).is_on_one(&hosts));
        assert_eq!((all.first_beside(&hosts, 3), all.first_beside(&hosts, 2)), (0, 2));
        assert_eq!(Group::new(vec![2, 3, 1], 1).first_beside(&hosts, 1), 1);
        assert!(all.is_on_one(&Hosts::one()));
    }
}
