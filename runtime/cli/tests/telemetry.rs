//! The example `telemetry`, when something goes wrong: a race, a value that doesn't fit, and a
//! board whose power fails.

mod support;

use std::path::Path;

use longshore_benches::scratch::Scratch;
use support::{Finished, run};

/// Runs the ground, the commander and a board of 32 bits and the other byte order.
fn telemetry(options: &[&str], arguments: &[&str]) -> Finished {
    let program = [env!("CARGO_BIN_EXE_longshore"), "example", "telemetry"];
    let ranks = ["-n", "3", "--arch", "native,native,m68k"];
    run(&[options, &ranks, &program, &["--rate", "1000"], arguments].concat())
}

#[test]
fn a_race_is_told_with_both_places() {
    let finished = telemetry(&["--check"], &["--frames", "5", "--race"]);
    assert_eq!(finished.status, 0, "{}", finished.stderr);
    for place in ["put by rank 1 at examples/src/telemetry/commander.rs:", "check: rule 23"] {
        assert!(finished.stderr.contains(place), "{place}: {}", finished.stderr);
    }
    let ours = ["put by rank 2 at examples/src/telemetry/board.rs:", "load by rank 0 at "];
    assert!(ours.iter().any(|place| finished.stderr.contains(place)), "{}", finished.stderr);
    let orderly = telemetry(&["--check=fail"], &["--frames", "5"]);
    assert_eq!(orderly.status, 0, "{}", orderly.stderr);
}

#[test]
fn limits_that_the_board_cant_hold_are_refused_by_field_and_value() {
    let finished = telemetry(&[], &["--frames", "5"]);
    let told = String::from_utf8(finished.stdout).unwrap();
    let words = [
        "refused, as it must be: rank 2 ",
        "element 11, field passes[1].downlink (MPI_LONG): 3000000000 ",
    ];
    assert!(words.iter().all(|word| told.contains(word)), "{told}");
}

/// The numbers of the frames in an archive.
fn numbers(archive: &Path) -> Vec<u64> {
    let rows = std::fs::read_to_string(archive).unwrap();
    rows.lines().skip(1).map(|row| row.split(',').next().unwrap().parse().unwrap()).collect()
}

#[test]
fn a_new_job_goes_on_where_the_boards_power_failed() {
    let archive = Scratch::new("archive").unwrap();
    let file = archive.0.to_str().unwrap();
    let arguments = ["--frames", "60", "--archive", file];
    let failed =
        telemetry(&["--on-death", "survive"], &[&arguments[..], &["--fail-after", "30"]].concat());
    assert_ne!(failed.status, 0);
    assert!(failed.stderr.contains("the board is gone after 30 frames"), "{}", failed.stderr);
    assert_eq!(numbers(&archive.0), Vec::from_iter(0..30));
    let finished = telemetry(&[], &arguments);
    assert_eq!(finished.status, 0, "{}", finished.stderr);
    let told = String::from_utf8(finished.stdout).unwrap();
    assert!(told.contains("the archive has frames 0 to 29: the job goes on there"), "{told}");
    let all = numbers(&archive.0);
    assert!(all.len() > 90 && all.iter().copied().eq(0..all.len() as u64), "{all:?}");
}
