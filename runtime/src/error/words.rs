//! Values and remedies in the texts of errors.

use crate::pointer::address_space;
use crate::special::{ANY_SOURCE, ANY_TAG, PROC_NULL};

/// The component that made a type locale-specific, in parentheses, unless it is the type itself.
pub(super) fn locale_cause(culprit: &str, constructor: &str, datatype: &str) -> String {
    match culprit == datatype {
        true => format!(" (its {constructor} made it so)"),
        false => format!(" ({constructor} of {culprit} made it so)"),
    }
}

/// A rank as users write it: a special one by its name.
pub(super) fn rank_name(rank: i32) -> String {
    match rank {
        ANY_SOURCE => "ANY_SOURCE".to_owned(),
        PROC_NULL => "PROC_NULL".to_owned(),
        rank => rank.to_string(),
    }
}

/// A wrong tag as users write it.
pub(super) fn tag_name(tag: i32) -> String {
    match tag {
        ANY_TAG => "ANY_TAG is only for receives".to_owned(),
        tag => format!("{tag} is negative"),
    }
}

/// The displacements of which the bytes would lie in the window.
pub(super) fn range_remedy(
    (start, end): (i128, i128),
    size: u64,
    displacement: i64,
    unit: u32,
) -> String {
    let (unit, length) = (i128::from(unit.max(1)), end - start);
    let first = start - i128::from(displacement) * unit;
    // The lowest is a multiple of the unit that isn't below the window's start.
    let lowest = (-first).max(0).div_euclid(unit) + i128::from((-first).max(0) % unit != 0);
    let highest = (i128::from(size) - length - first).div_euclid(unit);
    match highest >= lowest {
        true => format!("stay within it, by a displacement from {lowest} to {highest}"),
        false => format!("{length} bytes fit at no displacement, so use fewer"),
    }
}

/// The notification counters that a window has.
pub(super) fn counter_remedy(number: u16) -> String {
    match number {
        0 => "the window has none, so make it with the info mpi_assert_max_num_notify".to_owned(),
        number => format!(
            "use one from 0 up and below {number}, the window's info mpi_assert_max_num_notify"
        ),
    }
}

/// The owner of a window, seen from the caller.
pub(super) fn owner(own: bool) -> &'static str {
    if own { "this rank's" } else { "the target's" }
}

/// The remedy for a displacement beyond the reach of the target's pointers.
pub(super) fn address_remedy(size: u64, pointer: u8) -> String {
    match size == address_space(pointer) {
        true => "give an address of memory that the target attached".to_owned(),
        false => format!("stay within its window of {size} bytes"),
    }
}
