//! Runs every example as a job of processes with unlike representations.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use longshore::job::Routes;
use longshore_examples::shipments::Shipments;
use longshore_launcher::{Control, Job, Part, Patience, Settings, run};

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

/// The program of all examples.
const PROGRAM: &str = env!("CARGO_BIN_EXE_example");

/// Plays an example as each of the jobs.
fn play(name: &str, arguments: &[&Path]) {
    for archs in JOBS {
        for routes in [Routes::Best, Routes::Message] {
            let part = Part {
                ranks: u32::try_from(archs.len()).unwrap(),
                arguments: words(name, arguments),
                archs: archs.iter().map(ToString::to_string).collect(),
                ..Part::new(PROGRAM)
            };
            let timeout = Some(std::time::Duration::from_secs(120));
            let settings = Settings { routes, ..Settings::default() };
            let patience = Patience { timeout, ..Patience::default() };
            let job = Job { parts: vec![part], settings, patience, ..Job::default() };
            assert_eq!(run(&job, &Control::none()).unwrap(), 0, "{name} on {archs:?}, {routes}");
        }
    }
}

/// The arguments of the program: an example and its own arguments.
fn words(name: &str, arguments: &[&Path]) -> Vec<OsString> {
    let arguments = arguments.iter().map(OsString::from);
    std::iter::once(name.into()).chain(arguments).collect()
}

#[test]
fn halo() {
    play("halo", &[]);
}

#[test]
fn archive() {
    play("archive", &[]);
}

/// An archive that one job has written is read by another one, of fewer and other ranks.
#[test]
fn an_archive_outlives_its_job() {
    let name = format!("longshore-archive-of-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let mut written: Option<Vec<u8>> = None;
    for (word, archs) in [
        ("write", &["native", "s390x", "i686", "ppc"][..]),
        ("read", &["s390x", "native", "aarch64"]),
        ("write", &["m68k"]),
        ("read", &["win64", "native"]),
    ] {
        let part = Part {
            ranks: u32::try_from(archs.len()).unwrap(),
            arguments: words("archive", &[Path::new(word), &path]),
            archs: archs.iter().map(ToString::to_string).collect(),
            ..Part::new(PROGRAM)
        };
        let job = Job { parts: vec![part], ..Job::default() };
        assert_eq!(run(&job, &Control::none()).unwrap(), 0, "{word} on {archs:?}");
        let bytes = std::fs::read(&path).unwrap();
        let first = written.get_or_insert_with(|| bytes.clone());
        assert!(*first == bytes, "the bytes depend on the ranks {archs:?}");
    }
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn stencil() {
    play("stencil", &[]);
}

#[test]
fn records() {
    play("records", &[]);
}

#[test]
fn foreign() {
    play("foreign", &[]);
}

#[test]
fn overflow() {
    play("overflow", &[]);
}

#[test]
fn packed() {
    play("packed", &[]);
}

#[test]
fn telemetry() {
    play("telemetry", &["--rate".as_ref(), "0".as_ref()]);
}

#[test]
fn object() {
    play("object", &[]);
}

#[test]
fn hashtable() {
    play("hashtable", &[]);
}

#[test]
fn stealing() {
    play("stealing", &[]);
}

#[test]
fn histogram() {
    play("histogram", &[]);
}

#[test]
fn imbalance() {
    play("imbalance", &[]);
}

#[test]
fn first() {
    play("first", &[]);
}

#[test]
fn table() {
    let input = Path::new(env!("CARGO_TARGET_TMPDIR")).join("shipments.csv");
    Shipments::random(5000, 42).write(std::fs::File::create(&input).unwrap()).unwrap();
    play("table", &[&input]);
}

/// Runs a job of three native ranks of an example, and returns its status.
fn status(name: &str, arguments: &[&Path]) -> u8 {
    let part = Part { ranks: 3, arguments: words(name, arguments), ..Part::new(PROGRAM) };
    run(&Job { parts: vec![part], ..Job::default() }, &Control::none()).unwrap()
}

#[test]
fn a_failed_example_fails_its_job() {
    assert_eq!(status("table", &["no such file.csv".as_ref()]), 1);
}

#[test]
fn an_unknown_example_fails_its_job() {
    assert_eq!(status("no-such-example", &[]), 1);
}

#[test]
fn the_list_names_each_example_and_what_it_shows() {
    let list = Command::new(PROGRAM).arg("--list").output().unwrap();
    let list = String::from_utf8(list.stdout).unwrap();
    assert_eq!(list.lines().count(), longshore_examples::names().count());
    for (line, name) in list.lines().zip(longshore_examples::names()) {
        let (first, shows) = line.split_once(' ').unwrap();
        assert_eq!(first, name);
        assert!(shows.trim().len() > 20, "{line}");
    }
}

#[test]
fn make_shipments_writes_the_file_of_a_seed() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("made.csv");
    let words = words("make-shipments", &[&file, "40".as_ref(), "7".as_ref()]);
    assert!(Command::new(PROGRAM).args(words).status().unwrap().success());
    let made = Shipments::read(std::fs::File::open(&file).unwrap()).unwrap();
    assert_eq!(made, Shipments::random(40, 7));
}

#[test]
fn the_readme_quotes_the_first_program_unchanged() {
    let readme = include_str!("../../README.md");
    let (_, program) = include_str!("../src/first.rs").split_once("\n\n").unwrap();
    // The program `example` calls it, so it is public there.
    let program = program.replace("pub fn main()", "fn main()");
    assert!(readme.contains(&program), "README.md and examples/src/first.rs differ");
}
