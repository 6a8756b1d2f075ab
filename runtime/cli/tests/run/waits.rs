//! Ranks that wait for each other, and windows that are left over.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};

use super::role;
use super::support::{adopt, run, sh, start};

#[test]
fn a_timeout_ends_the_job() {
    let options = ["-n", "2", "--timeout", "0.2", "--stacks=off"];
    let finished = sh(&options, "trap '' TERM; sleep 60; sleep 60");
    finished.expect(
        124,
        &["longshore: the job took longer than 0.2 s; ending rank 0 (before init), rank 1 (before init)"],
    );
}

/// Runs ranks that get stuck until the watchdog reports `expected`, apart from durations and line
/// numbers. Reports about ranks that are still starting don't count. With a long `patience`, ranks
/// have said more about their calls, which is left out otherwise.
fn stuck(patience: &str, options: &[&str], name: &str, expected: &[&str]) {
    let common = ["--watchdog", patience, "--timeout", "60", "--stacks=timeout"];
    let options = [&common, options].concat();
    let options: Vec<_> = options.into_iter().map(str::to_owned).collect();
    let mut run = start(&[options, role(name)].concat());
    let without_time = |line: &str| match line.split_once(" for ") {
        Some((start, rest)) => {
            format!("{start}{}", rest.find(", ").map_or("", |at| &rest[at..]))
        }
        None => line.to_owned(),
    };
    let is_long = patience == LONG;
    let without_remark = |line: String| match line.split_once(" (") {
        Some((start, _)) if !is_long => start.to_owned(),
        _ => without_lines(&line),
    };
    let mut report = Vec::new();
    for line in BufReader::new(run.child.stderr.take().unwrap()).lines() {
        let line = line.unwrap();
        let Some(line) = line.strip_prefix("longshore: ") else { continue };
        assert!(!line.starts_with("the job took"), "{report:?}");
        match line {
            line if line.starts_with("no progress for ") => report.clear(),
            line => report.push(without_remark(without_time(line))),
        }
        let is_early =
            |line: &String| ["in init", "the making of"].iter().any(|at| line.contains(at));
        if report.len() == expected.len() && !report.iter().any(is_early) {
            break;
        }
    }
    assert_eq!(report, expected);
    kill(run.pid(), Signal::SIGTERM).unwrap();
    assert_eq!(run.finish().status, 143);
}

/// A patience that is longer than the time after which ranks say more.
const LONG: &str = "3";

/// A text with `LINE` for each line and column of a Rust source.
fn without_lines(text: &str) -> String {
    let mut parts = text.split(".rs:");
    let first = parts.next().unwrap_or_default().to_owned();
    let skip = |rest: &str| {
        let line = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let column = line.strip_prefix(':').unwrap_or(line);
        column.trim_start_matches(|c: char| c.is_ascii_digit()).to_owned()
    };
    parts.fold(first, |text, rest| text + ".rs:LINE" + &skip(rest))
}

const LATE: &str = "their calls can't end, unless a message is late, as in a network that is down; \
                    `longshore run --check` shows the source lines";

#[test]
fn the_watchdog_reports_which_rank_waits_for_which() {
    stuck(
        LONG,
        &["-n", "3"],
        "circle",
        &[
            "  rank 0: in a receive from rank 2, waits for rank 2 (tag 7, at runtime/cli/tests/run/roles.rs:LINE; \
             no unmatched message)",
            "  rank 1: in a receive from rank 0, waits for rank 0 (tag 7, at runtime/cli/tests/run/roles.rs:LINE; \
             unmatched messages: 2 of tag 8 from rank 0)",
            "  rank 2: in a receive from rank 1, waits for rank 1 (tag 7, at runtime/cli/tests/run/roles.rs:LINE; \
             no unmatched message)",
            "they wait in a circle: rank 0, rank 2, rank 1, rank 0",
            LATE,
        ],
    );
    stuck(
        LONG,
        &["-n", "2"],
        "fences",
        &[
            "  rank 0: in a fence of window 1, waits for rank 1 (\"halo\")",
            "  rank 1: in a fence of window 3, waits for rank 0",
            "they wait in a circle: rank 0, rank 1, rank 0",
            LATE,
        ],
    );
}

/// Runs ranks of which one sleeps outside of calls, until the watchdog says for whom the other
/// waits. It says so in one line, without stacks, and the job goes on.
fn waits(options: &[&str], name: &str, expected: (&str, &str)) {
    let options = [&["-n", "2", "--watchdog", "0.1", "--timeout", "60"], options].concat();
    let options: Vec<_> = options.into_iter().map(str::to_owned).collect();
    let mut run = start(&[options, role(name)].concat());
    let (mut lines, mut is_named) = (Vec::new(), false);
    for line in BufReader::new(run.child.stderr.take().unwrap()).lines() {
        let line = line.unwrap();
        // Ranks that are still starting wait, too.
        let line = line.strip_prefix("longshore: ").filter(|line| !line.contains(": in init for "));
        let Some(line) = line else { continue };
        lines.push(line.to_owned());
        if line.starts_with(expected.0) && line.contains(expected.1) {
            is_named = true;
            break;
        }
    }
    assert!(is_named && lines.len() == 1, "{lines:?}");
    kill(run.pid(), Signal::SIGTERM).unwrap();
    let finished = run.finish();
    assert!(!finished.stderr.contains("stacks"), "{}", finished.stderr);
}

#[test]
fn a_rank_that_sleeps_outside_of_calls_is_named_in_one_line() {
    let whom = "rank 1 waits for rank 0, which is at its own work for ";
    waits(&[], "barrier", (whom, ": in a barrier for "));
    // The limit of operations on the way is reached.
    let whom = "rank 0 waits for rank 1, which is at its own work for ";
    waits(
        &["--route", "message", "--progress", "off"],
        "full",
        (whom, ": in a put to rank 1 for "),
    );
}

/// The job ends before six times the watchdog's patience.
#[test]
fn the_watchdog_waits_longer_for_a_rank_before_init() {
    let options = ["--watchdog", "0.3", "--timeout", "1.5", "--stacks=off"];
    let options = options.map(str::to_owned).to_vec();
    let slow = [":", "sleep", "60"].map(str::to_owned).to_vec();
    let finished = run(&[options, role("wait"), slow].concat());
    assert_eq!((finished.status, finished.messages().len()), (124, 1), "{}", finished.stderr);
}

#[test]
fn a_circle_of_locks_names_windows_and_source_lines() {
    let words = |words: &[&str]| words.iter().map(|word| word.to_string()).collect::<Vec<_>>();
    let finished = run(&[words(&["--check", "-n", "2"]), role("locks")].concat());
    let text = without_lines(&finished.stderr);
    let lines = [
        "rank 0: in a lock of rank 0, waits for rank 1 (window 3 \"right\", at runtime/cli/tests/run/roles.rs:LINE)",
        "rank 1: in a lock of rank 0, waits for rank 0 (window 1 \"left\", at runtime/cli/tests/run/roles.rs:LINE)",
    ];
    assert!(lines.iter().all(|line| text.contains(line)), "{text}");
}

/// The words of a job of two ranks under `--check`.
fn checked(name: &str) -> Vec<String> {
    let words = ["--check=fail", "--watchdog", "30", "-n", "2"].map(str::to_owned);
    [words.to_vec(), role(name)].concat()
}

#[test]
fn a_rank_that_is_stopped_in_a_matching_call_makes_no_circle() {
    let finished = run(&checked("stopped"));
    assert_eq!(finished.status, 0, "{}", finished.stderr);
}

#[test]
fn a_circle_is_reported_after_one_of_its_ranks_was_stopped() {
    let finished = run(&checked("stopped_circle"));
    assert_eq!(finished.status, 0, "{}", finished.stderr);
    let text = without_lines(&finished.stderr);
    assert!(text.contains("ranks wait for each other in a circle"), "{text}");
    for (rank, other) in [(0, 1), (1, 0)] {
        let line = format!("rank {rank}: in a receive from rank {other}, waits for rank {other}");
        assert!(text.contains(&line), "{text}");
    }
}

#[test]
fn windows_that_are_not_freed_are_reported_under_check() {
    let job = |check: &str| {
        run(&[vec![check.to_owned(), "-n".to_owned(), "2".to_owned()], role("unfreed")].concat())
    };
    let finished = job("--check=fail");
    assert_ne!(finished.status, 0);
    let text = without_lines(&finished.stderr);
    let reports = [
        "check: rule 30, window 1 \"left\" of rank 0: not freed\n\
         check:   made at runtime/cli/tests/run/roles.rs:LINE\n",
        "check: rule 30, window 1 \"halo\" of rank 1: not freed\n\
         check:   made at runtime/cli/tests/run/roles.rs:LINE, and dropped without free\n\
         check:   an epoch is open, since the call at runtime/cli/tests/run/roles.rs:LINE: 1 target locked; end it by \
         unlock, unlock_all, complete or wait\n",
        "check: rule 30, window 3 of rank 1: not freed\n\
         check:   made at runtime/cli/tests/run/roles.rs:LINE\n\
         check:   call free on every window before finalize",
    ];
    for report in reports {
        assert!(text.contains(report), "{report}\n{text}");
    }
    assert!(!text.contains("window 5"), "{text}");
    let unchecked = job("--check=off");
    assert_eq!((unchecked.status, unchecked.stderr.as_str()), (0, ""));
}

/// Whether this machine has a debugger that reads stacks.
fn has_debugger() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&path);
    folders.any(|folder| ["gdb", "eu-stack"].iter().any(|name| folder.join(name).is_file()))
}

#[test]
fn a_timeout_shows_the_stacks_of_all_ranks() {
    let options = ["-n", "2", "--timeout", "2", "--stacks"].map(str::to_owned).to_vec();
    let finished = run(&[options, role("barrier")].concat());
    assert_eq!(finished.status, 124);
    let text = &finished.stderr;
    for rank in 0..2 {
        let stacks = format!("longshore: stacks of rank {rank}, process ");
        assert!(text.contains(&stacks), "{text}");
    }
    if has_debugger() {
        // Rank 0 sleeps in the function of its role, and rank 1 waits in the call.
        assert!(text.contains("barrier"), "{text}");
        assert!(text.contains("Communicator"), "{text}");
    }
    let (end, first) = (text.find("the job took longer").unwrap(), text.find("stacks of").unwrap());
    assert!(end < first, "{text}");
}

/// Nobody has asked for the stacks, so a large job ends soon.
#[test]
fn a_timeout_shows_the_stacks_of_some_ranks_of_many() {
    let finished = run(&["-n", "18", "--timeout", "1", "/bin/sleep", "60"]);
    assert_eq!(finished.status, 124);
    let text = &finished.stderr;
    assert!(
        text.contains("longshore: stacks of 16 of 18 ranks follow: --stacks prints all\n"),
        "{text}"
    );
    let has_stacks = |rank| text.contains(&format!("longshore: stacks of rank {rank}, process "));
    if has_debugger() {
        assert!((0..16).all(has_stacks) && !(16..18).any(has_stacks), "{text}");
    } else {
        assert!(!(0..18).any(has_stacks), "{text}");
    }
}

#[test]
fn a_report_of_the_watchdog_shows_the_stacks_of_all_ranks() {
    let options = ["-n", "2", "--watchdog", "0.5", "--timeout", "60", "--stacks"];
    let options = options.map(str::to_owned).to_vec();
    let mut run = start(&[options, role("circle")].concat());
    let mut missing = vec![0, 1];
    for line in BufReader::new(run.child.stderr.take().unwrap()).lines() {
        let line = line.unwrap();
        assert!(!line.contains("the job took"), "no stacks of ranks {missing:?}");
        missing.retain(|rank| !line.starts_with(&format!("longshore: stacks of rank {rank}, ")));
        if missing.is_empty() {
            break;
        }
    }
    kill(run.pid(), Signal::SIGTERM).unwrap();
    assert_eq!(run.finish().status, 143);
}

#[test]
fn a_report_of_a_circle_shows_stacks_without_being_asked() {
    let options = ["-n", "3", "--watchdog", "0.5", "--timeout", "60"].map(str::to_owned);
    let mut run = start(&[options.to_vec(), role("circle")].concat());
    let (mut is_reported, mut is_shown) = (false, false);
    for line in BufReader::new(run.child.stderr.take().unwrap()).lines() {
        let line = line.unwrap();
        assert!(!line.contains("the job took"), "{is_reported}");
        let is = |start: &str| line.starts_with(&format!("longshore: {start}"));
        is_reported |= is("no progress for ");
        // A debugger may take too long on a busy machine.
        let shows = ["stacks of rank ", "gdb, or eu-stack", "no stacks in time of ranks: "];
        is_shown = shows.into_iter().any(is);
        if is_shown {
            break;
        }
    }
    assert!(is_reported && is_shown);
    kill(run.pid(), Signal::SIGTERM).unwrap();
    assert_eq!(run.finish().status, 143);
}

/// Rank 0 waits outside of calls for its standard input, so that the ranks aren't stopped.
#[test]
fn a_report_without_a_circle_shows_no_stacks_unasked() {
    let options = ["-n", "2", "--watchdog", "0.1", "--timeout", "60"].map(str::to_owned);
    let mut run = start(&[options.to_vec(), role("stalls")].concat());
    let mut stdin = run.child.stdin.take().unwrap();
    let mut reports = 0;
    for line in BufReader::new(run.child.stderr.take().unwrap()).lines() {
        let line = line.unwrap();
        assert!(!line.contains("stack") && !line.contains("the job took"), "{line}");
        if line.contains(" waits for rank 0, which is at its own work for ") {
            reports += 1;
            _ = stdin.write_all(b"x");
        }
    }
    assert_eq!((run.finish().status, reports), (0, 2));
}

#[test]
fn without_a_debugger_the_states_of_threads_are_shown() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longshore"));
    command.args(["run", "-n", "2", "--timeout", "1", "--stacks", "/bin/sleep", "60"]);
    command.env("PATH", "/nonexistent");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let finished = adopt(&mut command).finish();
    assert_eq!(finished.status, 124);
    let text = &finished.stderr;
    let why = "from /proc (there is no debugger; gdb or eu-stack reads stacks):";
    assert_eq!(text.matches(why).count(), 2, "{text}");
    assert_eq!(text.matches("\"sleep\": S (sleeping)").count(), 2, "{text}");

    // Nobody has asked for these.
    let mut command = Command::new(env!("CARGO_BIN_EXE_longshore"));
    command.args(["run", "-n", "2", "--timeout", "0.5", "/bin/sleep", "60"]);
    command.env("PATH", "/nonexistent");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    adopt(&mut command).finish().expect(
        124,
        &[
            "longshore: the job took longer than 0.5 s; ending rank 0 (before init), rank 1 (before init)",
            "longshore: gdb, or eu-stack of elfutils, would print the stacks of these ranks",
        ],
    );
}
