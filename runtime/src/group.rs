//! Groups of processes, and the ranks that they have there (MPI-5.0 section 7.3).
//!
//! A group is a value: an ordered set of processes, each named by its rank in the job. Making one asks nobody.
//!
//! Left out: groups of several jobs, and of sessions (MPI-5.0 sections 7.3.2 and 11.8).

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

pub use shipable::flat::Comparison;

use crate::error::{ErrorKind, Result};
use crate::hosts::Hosts;

/// The rank to which an operation does nothing (MPI-5.0 section 3.10).
///
/// Beware: it is -1, so `world.rank() - 1` at rank 0 is no error, but silently does nothing. At an edge that is what is
/// wanted; on a ring write `(me + size - 1) % size`.
pub const PROC_NULL: i32 = -1;

/// An ordered set of processes of the job.
///
/// ```
/// let rank = longshore::init()?;
/// let world = rank.world().group();
/// // Every other rank, from the last one on.
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
    /// Their ranks in the job, by rank in the group.
    ranks: Box<[u32]>,
    /// Whether these are 0, 1, 2 and so on.
    whole: bool,
    /// The other way round, where it was asked for.
    inverse: OnceLock<HashMap<u32, u32>>,
    /// Of the process whose group this is: its rank in the job.
    me: u32,
}

impl Group {
    /// The group of all processes of a job of `size`, at process `me`.
    pub(crate) fn of_job(size: u32, me: u32) -> Group {
        Group::new((0..size).collect(), me)
    }

    /// Processes by their ranks in the job, all different, at process `me`.
    pub(crate) fn new(ranks: Vec<u32>, me: u32) -> Group {
        let whole = ranks.iter().zip(0..).all(|(rank, place)| *rank == place);
        Group(Arc::new(Members { ranks: ranks.into(), whole, inverse: OnceLock::new(), me }))
    }

    /// How many processes there are (MPI-5.0 section 7.3.1).
    pub fn size(&self) -> i32 {
        self.0.ranks.len() as i32
    }

    /// This process's rank in it, if it belongs to it.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let world = rank.world();
    /// assert_eq!(world.group().rank(), Some(world.rank()));
    /// assert_eq!(world.group().excl(&[world.rank()])?.rank(), None);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    pub fn rank(&self) -> Option<i32> {
        self.rank_of(self.0.me).map(|rank| rank as i32)
    }

    /// The processes, by their ranks in the job.
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

    /// The ranks that processes of this group have in another one: none for those that don't belong to it, PROC_NULL for
    /// PROC_NULL (MPI-5.0 section 7.3.1).
    ///
    /// # Errors
    /// RANK for what is no rank of this group; GROUP for one of another process.
    pub fn translate_ranks(&self, ranks: &[i32], other: &Group) -> Result<Vec<Option<i32>>> {
        self.check_own(other)?;
        let translate = |&rank: &i32| match self.member(rank)? {
            Some(process) => Ok(other.rank_of(process).map(|rank| rank as i32)),
            None => Ok(Some(PROC_NULL)),
        };
        ranks.iter().map(translate).collect()
    }

    /// [`Comparison::Ident`], [`Comparison::Similar`] or [`Comparison::Unequal`] (MPI-5.0 section 7.3.1).
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

    /// The processes of this group, then those of the other that aren't in it (MPI-5.0 section 7.3.2).
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
    /// GROUP for a group of another process; likewise below.
    pub fn union(&self, other: &Group) -> Result<Group> {
        self.check_own(other)?;
        let added = other.0.ranks.iter().filter(|process| !self.contains(**process));
        Ok(self.with(self.0.ranks.iter().chain(added).copied().collect()))
    }

    /// The processes of this group that are in the other too, in the order of this one.
    ///
    /// # Errors
    /// As [`union`](Group::union).
    pub fn intersection(&self, other: &Group) -> Result<Group> {
        self.check_own(other)?;
        Ok(self.filtered(|process| other.contains(process)))
    }

    /// The processes of this group that aren't in the other, in the order of this one.
    ///
    /// # Errors
    /// As [`union`](Group::union).
    pub fn difference(&self, other: &Group) -> Result<Group> {
        self.check_own(other)?;
        Ok(self.filtered(|process| !other.contains(process)))
    }

    /// The processes with these ranks, in this order.
    ///
    /// # Errors
    /// RANK for what is no rank of this group, or is named twice.
    pub fn incl(&self, ranks: &[i32]) -> Result<Group> {
        Ok(self.with(self.distinct(ranks)?))
    }

    /// All processes but those with these ranks.
    ///
    /// # Errors
    /// As [`incl`](Group::incl).
    pub fn excl(&self, ranks: &[i32]) -> Result<Group> {
        let excluded = self.distinct(ranks)?;
        Ok(self.filtered(|process| !excluded.contains(&process)))
    }

    /// The processes with the ranks of these ranges, each first, last (which belongs to it) and stride.
    ///
    /// # Errors
    /// ARG for a stride of 0; as [`incl`](Group::incl) for the ranks that the ranges come to.
    pub fn range_incl(&self, ranges: &[(i32, i32, i32)]) -> Result<Group> {
        self.incl(&self.expand(ranges)?)
    }

    /// All processes but those with the ranks of these ranges.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// // All but every third.
    /// let world = rank.world().group();
    /// let some = world.range_excl(&[(0, world.size() - 1, 3)])?;
    /// assert_eq!(some.size(), world.size() - (world.size() + 2) / 3);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`range_incl`](Group::range_incl).
    pub fn range_excl(&self, ranges: &[(i32, i32, i32)]) -> Result<Group> {
        self.excl(&self.expand(ranges)?)
    }

    /// The process with a rank of this group, or none for PROC_NULL (rule 27).
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

    /// The process with this rank, which is one of this group's.
    #[inline]
    pub(crate) fn process(&self, rank: u32) -> u32 {
        self.0.ranks[rank as usize]
    }

    /// The rank that a process of the job has here.
    pub(crate) fn rank_of(&self, process: u32) -> Option<u32> {
        if self.0.whole {
            return ((process as usize) < self.0.ranks.len()).then_some(process);
        }
        let inverse =
            self.0.inverse.get_or_init(|| self.0.ranks.iter().copied().zip(0..).collect());
        inverse.get(&process).copied()
    }

    pub(crate) fn contains(&self, process: u32) -> bool {
        self.rank_of(process).is_some()
    }

    /// Refuses a group of another process, in whose mouth the ranks mean something else.
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

    /// The ranks of ranges. No more than there are in the group, and one: that one is out of it or there twice.
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

/// Groups on hosts.
impl Hosts {
    /// Whether all of a group share one.
    pub(crate) fn hold(&self, group: &Group) -> bool {
        let mut processes = group.processes().iter();
        self.is_one() || processes.all(|&process| self.share(process, group.process(0)))
    }

    /// The first rank of a group on the host of one of its processes, by its rank in the group.
    pub(crate) fn first_beside(&self, group: &Group, process: u32) -> u32 {
        let beside = |&other: &u32| self.share(other, process);
        group.processes().iter().position(beside).unwrap_or(0) as u32
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
    fn sets_keep_the_order_that_mpi_gives_them() {
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
        let eight = Group::of_job(8, 2);
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
    fn wrong_members_are_named() {
        let two = Group::of_job(2, 0);
        let words = |outcome: Result<Group>| outcome.unwrap_err().to_string();
        assert!(words(two.incl(&[0, 2])).contains("no rank 2 in a communicator or group of 2"));
        let none = words(two.excl(&[PROC_NULL]));
        assert!(none.contains("no rank -1") && !none.contains("PROC_NULL"), "{none}");
        assert!(words(two.incl(&[1, 1])).contains("rank 1 is named twice"));
        let elsewhere = two.union(&Group::of_job(2, 1)).unwrap_err();
        assert_eq!(elsewhere.class(), Class::Group);
    }

    #[test]
    fn groups_find_who_shares_a_host() {
        let hosts = Hosts::new(vec![4, 4, 7, 4]);
        let all = Group::of_job(4, 0);
        assert!(!hosts.hold(&all) && hosts.hold(&Group::new(vec![3, 0], 0)));
        assert_eq!((hosts.first_beside(&all, 3), hosts.first_beside(&all, 2)), (0, 2));
        assert_eq!(hosts.first_beside(&Group::new(vec![2, 3, 1], 1), 1), 1);
        assert!(Hosts::one().hold(&all));
    }
}
