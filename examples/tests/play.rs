//! Runs every example as a job of processes with unlike representations.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use longshore::job::Routes;
use longshore::launcher::{Control, Job, Part, Patience, Settings, run};
use longshore_examples::shipments::Shipments;

/// The jobs that every example runs as, by the representations of their ranks. One job has only
/// native ranks, which reach each other's windows directly.
const JOBS: [&[&str]; 6] = [
    &["native", "s390x", "i686", "m68k"],
    &["ppc64", "win64", "mips", "aarch64", "native"],
    &["i686", "native", "s390x"],
    &["s390x", "s390x", "aix32"],
    &["native", "native", "native"],
    &CROWD,
];

/// Many more ranks than cores.
const CROWD: [&str; 32] = {
    let mut archs = ["native"; 32];
    let mut rank = 0;
    while rank < archs.len() {
        archs[rank] = "s390x";
        archs[rank + 1] = "i686";
        rank += 4;
    }
    archs
};

fn play(program: &str, arguments: &[&Path]) {
    for archs in JOBS {
        for routes in [Routes::Best, Routes::Message] {
            let part = Part {
                ranks: u32::try_from(archs.len()).unwrap(),
                arguments: arguments.iter().map(OsString::from).collect(),
                archs: archs.iter().map(ToString::to_string).collect(),
                ..Part::new(program)
            };
            let timeout = Some(std::time::Duration::from_secs(120));
            let settings = Settings { routes, ..Settings::default() };
            let patience = Patience { timeout, ..Patience::default() };
            let job = Job { parts: vec![part], settings, patience, ..Job::default() };
            assert_eq!(run(&job, &Control::none()).unwrap(), 0, "{program} on {archs:?}, {routes}");
        }
    }
}

#[test]
fn halo() {
    play(env!("CARGO_BIN_EXE_halo"), &[]);
}

#[test]
fn stencil() {
    play(env!("CARGO_BIN_EXE_stencil"), &[]);
}

#[test]
fn records() {
    play(env!("CARGO_BIN_EXE_records"), &[]);
}

#[test]
fn foreign() {
    play(env!("CARGO_BIN_EXE_foreign"), &[]);
}

#[test]
fn overflow() {
    play(env!("CARGO_BIN_EXE_overflow"), &[]);
}

#[test]
fn packed() {
    play(env!("CARGO_BIN_EXE_packed"), &[]);
}

#[test]
fn telemetry() {
    play(env!("CARGO_BIN_EXE_telemetry"), &["--rate".as_ref(), "0".as_ref()]);
}

#[test]
fn object() {
    play(env!("CARGO_BIN_EXE_object"), &[]);
}

#[test]
fn hashtable() {
    play(env!("CARGO_BIN_EXE_hashtable"), &[]);
}

#[test]
fn stealing() {
    play(env!("CARGO_BIN_EXE_stealing"), &[]);
}

#[test]
fn histogram() {
    play(env!("CARGO_BIN_EXE_histogram"), &[]);
}

#[test]
fn imbalance() {
    play(env!("CARGO_BIN_EXE_imbalance"), &[]);
}

#[test]
fn first() {
    play(env!("CARGO_BIN_EXE_first"), &[]);
}

#[test]
fn table() {
    let input = Path::new(env!("CARGO_TARGET_TMPDIR")).join("shipments.csv");
    Shipments::random(5000, 42).write(std::fs::File::create(&input).unwrap()).unwrap();
    play(env!("CARGO_BIN_EXE_table"), &[&input]);
}

#[test]
fn a_failed_example_fails_its_job() {
    let missing = PathBuf::from("no such file.csv");
    let part = Part {
        ranks: 3,
        arguments: vec![missing.into()],
        ..Part::new(env!("CARGO_BIN_EXE_table"))
    };
    let job = Job { parts: vec![part], ..Job::default() };
    assert_eq!(run(&job, &Control::none()).unwrap(), 1);
}

#[test]
fn the_readme_quotes_the_first_program_unchanged() {
    let readme = include_str!("../../README.md");
    let program = include_str!("../src/bin/first.rs");
    let (_, program) = program.split_once("\n\n").unwrap();
    assert!(readme.contains(program), "README.md and examples/src/bin/first.rs differ");
}
