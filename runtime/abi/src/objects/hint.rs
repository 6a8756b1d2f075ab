//! The keys of infos that MPI and Longshore know, and suggestions for misspelt ones.
//!
//! An unknown key has no effect, as in MPI. A program's own keys are unlike all of these.

use longshore::job::Topic;
use longshore_file::Info;

use crate::edge::{line, state};

/// The keys of MPI-5.0 and of Longshore, but those of hints for files.
const KEYS: &[&str] = &[
    "accumulate_ops",
    "accumulate_ordering",
    "alloc_shared_noncontig",
    "ip_address",
    "ip_port",
    "mpi_accumulate_granularity",
    "mpi_assert_allow_overtaking",
    "mpi_assert_exact_length",
    "mpi_assert_max_num_notify",
    "mpi_assert_memory_alloc_kinds",
    "mpi_assert_no_any_source",
    "mpi_assert_no_any_tag",
    "mpi_assert_strict_persistent_collective_ordering",
    "mpi_assert_strict_start_ordering",
    "mpi_hw_resource_type",
    "mpi_initial_errhandler",
    "mpi_memory_alloc_kinds",
    "mpi_minimum_memory_alignment",
    "mpi_pset_name",
    "mpi_shared_memory",
    "mpi_size",
    "nb_proc",
    "no_locks",
    "no_threads",
    "same_disp_unit",
    "same_size",
    "target_types",
    "thread_level",
];

/// The most changes of single characters that make a misspelt key of a known one. Short keys of
/// programs are near to known ones by chance.
const CHANGES: usize = 2;

/// The length of a known key from which on there may be more than one change.
const LONG: usize = 12;

/// Under `--check`, reports a key that is nearly a known one.
pub fn report(key: &str) {
    let Some(state) = state::get() else { return };
    state.rank().report(Topic::Windows, &format!("info {key}"), || {
        let known = suggestion(key)?;
        let at = line::of_call(true).map_or(String::new(), |line| format!(" at {line}"));
        let what = "is unknown, and has no effect";
        Some(format!("check: info key {key:?}{at} {what}: did you mean {known}?\n"))
    });
}

/// The known key that is nearest to an unknown one, if it is near.
fn suggestion(key: &str) -> Option<&'static str> {
    let known = || KEYS.iter().chain(&Info::KEYS).copied();
    if known().any(|known| known == key) {
        return None;
    }
    let changes = known().map(|known| (changes(key, known), known));
    let most = |known: &str| if known.len() < LONG { 1 } else { CHANGES };
    let near = changes.filter(|(changes, known)| *changes <= most(known));
    near.min().map(|(_, known)| known)
}

/// The changes of single characters, case apart, that make one text of another.
fn changes(one: &str, other: &str) -> usize {
    let other: Vec<u8> = other.to_ascii_lowercase().into_bytes();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.to_ascii_lowercase().bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (place, known) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *known);
            diagonal = row[place + 1];
            row[place + 1] = replaced.min(row[place] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_keys_that_are_probably_misspelt_get_a_suggestion() {
        for (key, known) in [
            ("no_lock", Some("no_locks")),
            ("No_Locks", Some("no_locks")),
            ("same_unit", None),
            ("some_sizes", None),
            ("mpi_sizes", Some("mpi_size")),
            ("acumulate_order", None),
            ("acumulate_orderin", Some("accumulate_ordering")),
            ("no_locks", None),
        ] {
            assert_eq!(suggestion(key), known, "{key}");
        }
    }
}
