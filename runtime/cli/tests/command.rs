//! The command `longshore` itself: its help and its colours.

use std::process::{Command, Output};

const COMMANDS: [&str; 7] = ["run", "info", "inspect", "demo", "bench", "trace", "install"];

fn longshore(words: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longshore"));
    for name in ["CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "LONGSHORE_ADVERSARY", "NO_COLOR"] {
        command.env_remove(name);
    }
    command.args(words).envs(environment.iter().copied()).output().unwrap()
}

#[test]
fn help_fits_its_columns() {
    for columns in [60, 100, 132] {
        for name in COMMANDS {
            let environment = [("COLUMNS", columns.to_string())];
            let [(variable, value)] = &environment;
            let help = longshore(&[name, "--help"], &[(variable, value)]);
            let help = String::from_utf8(help.stdout).unwrap();
            assert!(help.lines().count() > 5, "{name}: {help}");
            let widest = help.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= columns, "{name}: {widest} of {columns} columns:\n{help}");
            let examples = help.split_once("\nExamples:\n").map(|(_, rest)| rest.trim_end());
            let examples = examples.unwrap_or_else(|| panic!("{name}: no examples: {help}"));
            assert!(!examples.contains("\n\n"), "{name}: examples don't end it: {help}");
        }
    }
}

#[test]
fn a_misspelt_subcommand_gets_a_suggestion() {
    for (given, meant) in [("rnu", "run"), ("rum", "run"), ("tarce", "trace"), ("ifno", "info")] {
        let Output { status, stderr, .. } = longshore(&[given], &[]);
        let told = String::from_utf8(stderr).unwrap();
        assert_eq!(status.code(), Some(2), "{told}");
        assert!(told.contains(&format!("'{meant}'")), "{given}: {told}");
    }
    let told = longshore(&["xylophone"], &[]).stderr;
    assert!(!String::from_utf8(told).unwrap().contains("tip: "));
}

#[test]
fn a_job_that_cannot_start_leaves_no_file_and_empties_none() {
    let folder = std::env::temp_dir().join(format!("longshore-vain-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    std::fs::write(path("old.trace"), "an earlier trace").unwrap();
    let stats = format!("--stats={}", path("stats.json"));
    for trace in [path("new.trace"), path("old.trace")] {
        let words = ["run", &stats, "--trace", &trace, "-n", "2", "./nothing-of-this-name"];
        assert_eq!(longshore(&words, &[]).status.code(), Some(127));
    }
    assert_eq!(std::fs::read_to_string(path("old.trace")).unwrap(), "an earlier trace");
    let left = std::fs::read_dir(&folder).unwrap().count();
    assert_eq!(left, 1, "files of jobs that didn't start");
    let words = ["run", &stats, "--trace", &path("old.trace"), "true"];
    longshore(&words, &[]);
    assert_ne!(std::fs::read_to_string(path("old.trace")).unwrap(), "an earlier trace");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn facts_are_printed_as_json() {
    let told = longshore(&["info", "--json"], &[("LONGSHORE_ROUTE", "message")]);
    let facts: serde_json::Value = serde_json::from_slice(&told.stdout).unwrap();
    assert_eq!(facts["machine"]["representation"], shipable::Architecture::NATIVE.name());
    let named = |list: &str, key: &str, name: &str| {
        let list = facts[list].as_array().unwrap();
        list.iter().find(|one| one[key] == name).unwrap_or_else(|| panic!("{name}")).clone()
    };
    let s390x = named("representations", "name", "s390x");
    assert_eq!((&s390x["order"], &s390x["long"]), (&"big".into(), &8.into()));
    let route = named("settings", "variable", "LONGSHORE_ROUTE");
    assert_eq!((&route["value"], &route["source"]), (&"message".into(), &"environment".into()));
    let log = named("settings", "variable", "LONGSHORE_LOG");
    assert_eq!((&log["value"], &log["source"]), (&"off".into(), &"default".into()));
}

#[test]
fn info_says_which_libfabric_there_is_or_what_to_do() {
    let fabric = |environment: &[(&str, &str)]| -> serde_json::Value {
        let told = longshore(&["info", "--json"], environment);
        let facts: serde_json::Value = serde_json::from_slice(&told.stdout).unwrap();
        facts["transports"]["fabric"].clone()
    };
    let nowhere = [("LONGSHORE_LIBFABRIC", "/nowhere/libfabric.so.1")];
    let error = fabric(&nowhere)["error"].as_str().unwrap().to_owned();
    assert!(error.contains("/nowhere/libfabric.so.1") && error.contains("libfabric1"), "{error}");
    let told = longshore(&["info"], &nowhere);
    let text = String::from_utf8(told.stdout).unwrap();
    assert!(told.status.success() && text.contains(&error), "{text}");

    longshore_transport::needs_libfabric!();
    let found = fabric(&[]);
    let library = found["library"].as_str().unwrap();
    assert!(std::path::Path::new(library).exists(), "{found}");
    let providers = found["providers"].as_array().unwrap();
    assert!(providers.contains(&"tcp".into()), "{found}");
    let text = String::from_utf8(longshore(&["info"], &[]).stdout).unwrap();
    assert!(text.contains(library), "{text}");
}

#[test]
fn colours_can_be_forced_and_refused() {
    let words = ["inspect", "U1(S:2:c/1/0,d/1/8)"];
    let has_colours = |environment: &[(&str, &str)]| {
        let printed = longshore(&words, environment).stdout;
        printed.windows(2).any(|bytes| bytes == b"\x1b[")
    };
    assert!(!has_colours(&[]), "a pipe has no colours");
    assert!(has_colours(&[("CLICOLOR_FORCE", "1")]));
    assert!(!has_colours(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
}

#[test]
fn the_demo_shows_one_form_and_its_id_in_each_put_processes() {
    let Output { status, stdout, stderr } = longshore(&["demo", "halo", "--verbose"], &[]);
    let shown = String::from_utf8(stdout).unwrap();
    assert!(status.success(), "{shown}{}", String::from_utf8_lossy(&stderr));
    let count = |text: &str| shown.matches(text).count();
    let form = "form 1, tag 50 (portable), 12 bytes: 0 = d; 1 = 0 x 1 every 6 count 8\n";
    assert_eq!(count(form), 1, "{shown}");
    assert_eq!(count("1 x form 1 at displacement 0\n"), 2, "{shown}");
    assert_eq!(count("bytes 24 to 31 name the form: 01 00 00 00 00 00 00 00\n"), 2, "{shown}");
    assert_eq!(count("·· is a byte that the operation didn't write"), 1, "{shown}");
}

#[test]
fn the_demo_says_what_runs_and_what_each_example_shows_processes() {
    let demo = |words: &[&str]| {
        let Output { status, stdout, stderr } = longshore(&[&["demo"], words].concat(), &[]);
        let shown = String::from_utf8(stdout).unwrap();
        assert!(status.success(), "{shown}{}", String::from_utf8_lossy(&stderr));
        shown
    };
    let shown = demo(&["overflow"]);
    let native = shipable::Architecture::NATIVE.name();
    for line in [
        "Each example is a job of 4 ranks:",
        &format!("  rank 0: {native}, this machine"),
        "  rank 1: s390x, emulated here",
        "  rank 3: m68k, emulated here",
        "overflow: A value that doesn't fit at the target is refused by name, and the job goes on.",
        "1 of 1 examples passed",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line}\n{shown}");
    }
    // Frames, but none of their bytes and no memories.
    assert!(
        shown.contains("  wire    0 -> 2  form 1, ") && !shown.contains("  memory  "),
        "{shown}"
    );
    assert!(!shown.contains("··") && shown.contains("--verbose"), "{shown}");
    let verbose = demo(&["overflow", "--verbose"]);
    assert!(verbose.contains("  memory  rank 0") && verbose.contains("··"), "{verbose}");
    assert_eq!(longshore_examples::NAMES[..2], ["overflow", "foreign"]);
    for name in longshore_examples::NAMES {
        assert!(!longshore_examples::shows(name).is_empty(), "{name}");
    }
}

#[test]
fn info_compares_two_representations() {
    let told = longshore(&["info", "--pair", "x86-64", "aarch64"], &[]);
    let text = String::from_utf8(told.stdout).unwrap();
    let relation = |name: &str| {
        let line = text.lines().find(|line| line.split_whitespace().next() == Some(name));
        line.and_then(|line| line.split_whitespace().nth(1)).map(str::to_owned)
    };
    for (name, expected) in [
        ("MPI_DOUBLE", "equal"),
        ("MPI_WCHAR", "equal"),
        ("MPI_LONG_DOUBLE", "converted"),
        ("MPI_LONG_DOUBLE_INT", "converted"),
    ] {
        assert_eq!(relation(name).as_deref(), Some(expected), "{name}: {text}");
    }
    for (words, says) in [
        (&["info", "--pair", "x86-64"][..], "2 values"),
        (&["info", "--pair", "x86-64", "vax"][..], "vax"),
        (&["info", "--pair", "xdr", "x86-64"][..], "no rank can have"),
    ] {
        let refused = longshore(words, &[]);
        let text = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(2) && text.contains(says), "{words:?}: {text}");
    }
}
