//! Groups (MPI-5.0 section 7.3).

use std::ffi::c_int;
use std::sync::{Arc, OnceLock};

use longshore::{Class, Comparison};

use crate::edge::arg::{List, Room};
use crate::edge::constants::{
    CONGRUENT, GROUP_EMPTY, GROUP_NULL, IDENT, PROC_NULL, SIMILAR, UNDEFINED, UNEQUAL,
};
use crate::edge::fault::{Fault, Result};
use crate::edge::handle::{Handle, Kind, Object, insert, remove};
use crate::edge::state;

/// A group.
pub struct Group {
    inner: longshore::Group,
    /// The number of the session that it comes from.
    session: Option<u64>,
}

impl Object for Group {
    const KIND: Kind = Kind::Group;
    const CLASS: Class = Class::Group;
    const NULL: Handle = GROUP_NULL;

    fn predefined(handle: Handle) -> Option<Arc<Group>> {
        static EMPTY: OnceLock<Arc<Group>> = OnceLock::new();
        if handle != GROUP_EMPTY {
            return None;
        }
        let world = state::get()?.rank().world();
        let empty =
            || world.group().incl(&[]).map(|inner| Arc::new(Group { inner, session: None }));
        match EMPTY.get() {
            Some(empty) => Some(empty.clone()),
            None => Some(EMPTY.get_or_init(|| empty().unwrap_or_else(|_| unreachable())).clone()),
        }
    }
}

fn unreachable() -> Arc<Group> {
    unreachable!("no ranks make a group of any communicator")
}

impl Group {
    pub fn inner(&self) -> &longshore::Group {
        &self.inner
    }

    /// The number of the session that it comes from.
    pub fn session(&self) -> Option<u64> {
        self.session
    }
}

/// A handle of a group of a session, or of none: MPI_GROUP_EMPTY for an empty one.
pub fn made(inner: longshore::Group, session: Option<u64>) -> Result<Handle> {
    match inner.size() {
        0 => Ok(GROUP_EMPTY),
        _ => insert(Arc::new(Group { inner, session })),
    }
}

/// The constant for the result of a comparison.
pub fn compared(comparison: Comparison) -> c_int {
    match comparison {
        Comparison::Ident => IDENT,
        Comparison::Congruent => CONGRUENT,
        Comparison::Similar => SIMILAR,
        // Only unpacked communicators compare as the last.
        Comparison::Unequal | Comparison::ArchEquiv => UNEQUAL,
    }
}

pub fn group_size(group: &Group) -> Result<c_int> {
    Ok(group.inner.size())
}

pub fn group_rank(group: &Group) -> Result<c_int> {
    Ok(group.inner.rank().unwrap_or(UNDEFINED))
}

pub fn group_compare(one: &Group, other: &Group) -> Result<c_int> {
    Ok(compared(one.inner.compare(&other.inner)))
}

pub fn group_union(one: &Group, other: &Group) -> Result<Handle> {
    made(one.inner.union(&other.inner)?, one.session.or(other.session))
}

pub fn group_intersection(one: &Group, other: &Group) -> Result<Handle> {
    made(one.inner.intersection(&other.inner)?, one.session.or(other.session))
}

pub fn group_difference(one: &Group, other: &Group) -> Result<Handle> {
    made(one.inner.difference(&other.inner)?, one.session.or(other.session))
}

pub fn group_incl(group: &Group, n: usize, ranks: List<c_int>) -> Result<Handle> {
    made(group.inner.incl(ranks.slice(n, "ranks")?)?, group.session)
}

pub fn group_excl(group: &Group, n: usize, ranks: List<c_int>) -> Result<Handle> {
    made(group.inner.excl(ranks.slice(n, "ranks")?)?, group.session)
}

fn ranges(n: usize, ranges: List<[c_int; 3]>) -> Result<Vec<(i32, i32, i32)>> {
    let ranges = ranges.slice(n, "ranges")?;
    Ok(ranges.iter().map(|&[first, last, step]| (first, last, step)).collect())
}

pub fn group_range_incl(group: &Group, n: usize, list: List<[c_int; 3]>) -> Result<Handle> {
    made(group.inner.range_incl(&ranges(n, list)?)?, group.session)
}

pub fn group_range_excl(group: &Group, n: usize, list: List<[c_int; 3]>) -> Result<Handle> {
    made(group.inner.range_excl(&ranges(n, list)?)?, group.session)
}

pub fn group_translate_ranks(
    group: &Group,
    n: usize,
    ranks: List<c_int>,
    other: &Group,
    room: Room<c_int>,
) -> Result<()> {
    let ranks = ranks.slice(n, "ranks1")?;
    let real: Vec<c_int> = ranks.iter().copied().filter(|rank| *rank != PROC_NULL).collect();
    let mut translated = group.inner.translate_ranks(&real, &other.inner)?.into_iter();
    let room = room.slice(n, "ranks2")?;
    for (rank, out) in ranks.iter().zip(room) {
        *out = match *rank {
            PROC_NULL => PROC_NULL,
            _ => translated.next().flatten().unwrap_or(UNDEFINED),
        };
    }
    Ok(())
}

pub fn group_free(group: &mut Handle) -> Result<()> {
    if *group == GROUP_EMPTY {
        // Calls that make an empty group return it, so a program may free it.
        *group = GROUP_NULL;
        return Ok(());
    }
    if *group == GROUP_NULL {
        return Err(Fault::new(Class::Group, "the group is null".to_owned()));
    }
    remove::<Group>(group).map(drop)
}
