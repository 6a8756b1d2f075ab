//! Values and remedies in the texts of errors.

use std::borrow::Cow;

use shipable::Leaf;

use crate::flavor::Flavor;
use crate::pointer::address_space;
use crate::program::{Language, language};
use crate::special::{ANY_SOURCE, ANY_TAG, PROC_NULL};

/// The phrases of texts that differ by the program's language.
pub(crate) struct Words {
    pub init: &'static str,
    pub finalize: &'static str,
    pub any_source: &'static str,
    pub any_tag: &'static str,
    pub proc_null: &'static str,
    pub in_place: &'static str,
    pub lock_types: &'static str,
    pub no_color: &'static str,
    pub pair_type: &'static str,
    pub named_pair: &'static str,
    pub predefined: &'static str,
    pub fetching: &'static str,
    pub type_send: &'static str,
    pub split_type: &'static str,
    pub ack_failed: &'static str,
    pub shrink: &'static str,
    pub simple_struct: &'static str,
    pub vector: &'static str,
    pub indexed: &'static str,
    pub indexed_block: &'static str,
    pub resized: &'static str,
}

const RUST: Words = Words {
    init: "init",
    finalize: "finalize",
    any_source: "ANY_SOURCE",
    any_tag: "ANY_TAG",
    proc_null: "PROC_NULL",
    in_place: "IN_PLACE",
    lock_types: "LOCK_SHARED or LOCK_EXCLUSIVE",
    no_color: "none",
    pair_type: "c::DoubleInt",
    named_pair: "use one of MPI's named pair types, such as c::DoubleInt",
    predefined: "use a number or one of the types of `c` and `fortran`, or get_accumulate",
    fetching: "get_accumulate or fetch_and_op",
    type_send: "type_send",
    split_type: "split_type",
    ack_failed: "ack_failed",
    shrink: "shrink",
    simple_struct: "build it with simple_struct, or derive it from a #[repr(C)] struct and pass rank.type_of::<T>()",
    vector: "build it with vector, which strides in extents",
    indexed: "build it with indexed, which counts extents",
    indexed_block: "build it with indexed_block, which counts extents",
    resized: "build it with a stride of vector, or as a larger simple_struct, in place of resized",
};

const C: Words = Words {
    init: "MPI_Init",
    finalize: "MPI_Finalize",
    any_source: "MPI_ANY_SOURCE",
    any_tag: "MPI_ANY_TAG",
    proc_null: "MPI_PROC_NULL",
    in_place: "MPI_IN_PLACE",
    lock_types: "MPI_LOCK_SHARED or MPI_LOCK_EXCLUSIVE",
    no_color: "MPI_UNDEFINED",
    pair_type: "MPI_DOUBLE_INT",
    named_pair: "use one of MPI's named pair types, such as MPI_DOUBLE_INT",
    predefined: "use a type with a name, such as MPI_INT, or MPI_Get_accumulate",
    fetching: "MPI_Get_accumulate or MPI_Fetch_and_op",
    type_send: "MPIX_Type_send",
    split_type: "MPI_Comm_split_type",
    ack_failed: "MPIX_Comm_ack_failed",
    shrink: "MPIX_Comm_shrink",
    simple_struct: "build it with MPIX_Type_create_simple_struct, whose displacements each machine computes",
    vector: "build it with MPI_Type_vector, which strides in extents",
    indexed: "build it with MPI_Type_indexed, which counts extents",
    indexed_block: "build it with MPI_Type_create_indexed_block, which counts extents",
    resized: "build it with a stride of MPI_Type_vector, or as a larger struct by MPIX_Type_create_simple_struct, \
              in place of MPI_Type_create_resized",
};

/// The phrases of the program's language, which its interface chooses before `init`.
pub(crate) fn words() -> &'static Words {
    match language() {
        Language::Rust => &RUST,
        Language::C => &C,
    }
}

/// The calls that have a name of their own in MPI, by the beginning of that name. Those of windows
/// come first: a communicator has calls with the same names.
const WINDOW_CALLS: (&str, &[&str]) = (
    "MPI_Win_",
    &[
        "allocate",
        "allocate_shared",
        "attach",
        "complete",
        "create",
        "create_dynamic",
        "detach",
        "fence",
        "flush",
        "flush_all",
        "flush_local",
        "flush_local_all",
        "free",
        "lock",
        "lock_all",
        "post",
        "set_info",
        "shared_query",
        "start",
        "sync",
        "test",
        "unlock",
        "unlock_all",
        "wait",
    ],
);
const COMMUNICATOR_CALLS: (&str, &[&str]) =
    ("MPI_Comm_", &["create", "create_group", "dup", "free", "idup", "split", "split_type"]);
/// Calls on communicators after failures, which MPI-5.0 doesn't have.
const FAILURE_CALLS: (&str, &[&str]) = (
    "MPIX_Comm_",
    &[
        "ack_failed",
        "agree",
        "failure_get_acked",
        "get_failed",
        "iagree",
        "is_revoked",
        "ishrink",
        "revoke",
        "shrink",
    ],
);
/// Calls whose name in MPI differs only by a capital letter.
const OTHER_CALLS: (&str, &[&str]) = (
    "MPI_",
    &[
        "accumulate",
        "allgather",
        "allgatherv",
        "allreduce",
        "alltoall",
        "alltoallv",
        "alltoallw",
        "barrier",
        "bcast",
        "compare_and_swap",
        "exscan",
        "fetch_and_op",
        "finalize",
        "gather",
        "gatherv",
        "get",
        "get_accumulate",
        "iallgather",
        "iallgatherv",
        "ialltoall",
        "ialltoallv",
        "ialltoallw",
        "ibarrier",
        "ibcast",
        "igather",
        "igatherv",
        "intercomm_create",
        "intercomm_merge",
        "iscatter",
        "iscatterv",
        "neighbor_alltoallw",
        "pack",
        "pack_size",
        "put",
        "raccumulate",
        "recv",
        "reduce",
        "reduce_local",
        "reduce_scatter",
        "reduce_scatter_block",
        "rget",
        "rget_accumulate",
        "rput",
        "scan",
        "scatter",
        "scatterv",
        "send",
        "sendrecv",
        "sendrecv_replace",
        "ssend",
        "unpack",
    ],
);

/// The name of a call in the program's language. Rust's name says whether it is one `on_window`.
pub(crate) fn call_name(call: &str, on_window: bool) -> Cow<'_, str> {
    match language() {
        Language::Rust => call.into(),
        Language::C => mpi_call(call, on_window),
    }
}

/// The name of a call in MPI, if it has one.
fn mpi_call(call: &str, on_window: bool) -> Cow<'_, str> {
    let owner = if on_window { WINDOW_CALLS } else { COMMUNICATOR_CALLS };
    if owner.1.contains(&call) {
        return format!("{}{call}", owner.0).into();
    }
    if FAILURE_CALLS.1.contains(&call) {
        return format!("{}{call}", FAILURE_CALLS.0).into();
    }
    match call.split_at_checked(1) {
        Some((first, rest)) if OTHER_CALLS.1.contains(&call) => {
            format!("{}{}{rest}", OTHER_CALLS.0, first.to_ascii_uppercase()).into()
        }
        _ => call.into(),
    }
}

/// The name of a predefined type in the program's language, or its code in the notation.
pub(crate) fn leaf_name(leaf: &Leaf) -> String {
    match (language(), leaf) {
        (Language::C, Leaf::Basic(basic)) => basic.mpi_name().to_owned(),
        _ => leaf.to_string(),
    }
}

/// A text in which calls on windows stand in braces, in the program's language.
pub(crate) fn spoken(text: &str) -> String {
    match language() {
        Language::Rust => spoken_by(text, Cow::from),
        Language::C => in_c(text),
    }
}

fn in_c(text: &str) -> String {
    let said = spoken_by(text, |call| mpi_call(call, true)).replace(" a MPI_", " an MPI_");
    if said.starts_with("a MPI_") { said.replacen("a MPI_", "an MPI_", 1) } else { said }
}

fn spoken_by<'a>(text: &'a str, name: impl Fn(&'a str) -> Cow<'a, str>) -> String {
    let (mut said, mut rest) = (String::with_capacity(2 * text.len()), text);
    while let Some((before, (call, after))) =
        rest.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
    {
        said += before;
        said += &name(call);
        rest = after;
    }
    said + rest
}

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
        ANY_SOURCE => words().any_source.to_owned(),
        PROC_NULL => words().proc_null.to_owned(),
        rank => rank.to_string(),
    }
}

/// Ranks as a list.
pub(super) fn ranks(ranks: &[u32]) -> String {
    let listed = ranks.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    format!("rank{} {listed}", if ranks.len() == 1 { "" } else { "s" })
}

/// A wrong tag as users write it.
pub(super) fn tag_name(tag: i32) -> String {
    match tag {
        ANY_TAG => format!("{} is only for receives", words().any_tag),
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

/// The call that makes windows of a flavor.
pub(super) fn flavor_call(flavor: Flavor) -> &'static str {
    match language() {
        Language::Rust => flavor.call(),
        Language::C => flavor.mpi_call(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_have_mpi_names() {
        for (call, on_window, name) in [
            ("put", true, "MPI_Put"),
            ("compare_and_swap", true, "MPI_Compare_and_swap"),
            ("free", true, "MPI_Win_free"),
            ("free", false, "MPI_Comm_free"),
            ("barrier", false, "MPI_Barrier"),
            ("shrink", false, "MPIX_Comm_shrink"),
            ("something", false, "something"),
        ] {
            assert_eq!(mpi_call(call, on_window), name);
        }
    }

    #[test]
    fn calls_in_braces_are_named_in_the_language() {
        let text = "a {lock} within {lock_all}: call {unlock_all} first";
        assert_eq!(spoken(text), "a lock within lock_all: call unlock_all first");
        let said = "an MPI_Win_lock within MPI_Win_lock_all: call MPI_Win_unlock_all first";
        assert_eq!(in_c(text), said);
        assert_eq!(in_c("end that by a {fence}"), "end that by an MPI_Win_fence");
        assert_eq!(spoken("no call {here"), "no call {here");
    }
}
