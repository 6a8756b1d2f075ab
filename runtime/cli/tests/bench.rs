//! `longshore bench` from outside: what it measures is measured by real ranks, checked, and reported.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Waits until a process takes a signal by a handler, and so may be sent it.
fn await_handler(pid: Pid, signal: Signal) {
    let start = Instant::now();
    let handles = |status: String| {
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        u64::from_str_radix(mask.trim(), 16).unwrap() & 1 << (signal as i32 - 1) != 0
    };
    while !handles(fs::read_to_string(format!("/proc/{pid}/status")).unwrap()) {
        assert!(start.elapsed() < Duration::from_secs(60), "it handles no {signal}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn bench(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_longshore")).arg("bench").args(words).output().unwrap()
}

/// What succeeded wrote, with nothing in it about wrong data, or about cases that this library lost or refused.
fn measured(words: &[&str]) -> String {
    let Output { status, stdout, stderr } = bench(words);
    let (text, problems) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{status}\n{text}\n{problems}");
    assert!(!text.contains("Longshore: "), "{text}");
    text.into_owned()
}

/// Measures and checks, and has a row of each bench. Tables leave out rows during which the cores were moved, the CSV none.
fn checks_each(benches: &[&str], words: &[&str]) {
    let name = format!("longshore-{}-{}.csv", benches.join("-"), std::process::id());
    let file = std::env::temp_dir().join(name);
    let to = ["--quick", "--validate", "--csv", file.to_str().unwrap()];
    measured(&[benches, words, &to].concat());
    let rows = fs::read_to_string(&file).unwrap();
    for bench in benches {
        let of = |row: &&str| row.split(',').any(|word| word == *bench);
        let (checked, unchecked): (Vec<_>, Vec<_>) =
            rows.lines().filter(of).partition(|row| row.ends_with(",yes"));
        assert!(!checked.is_empty() && unchecked.is_empty(), "{bench}\n{rows}");
    }
    fs::remove_file(&file).unwrap();
}

#[test]
fn every_synchronisation_moves_the_right_data_processes() {
    let benches = ["put_latency", "get_latency", "acc_latency"];
    checks_each(&benches, &["--sync", "all", "--size", "4,8"]);
}

#[test]
fn every_window_and_single_operation_moves_the_right_data_processes() {
    let benches = ["fop_latency", "cas_latency", "get_acc_latency", "put_bibw"];
    checks_each(&benches, &["--window", "all", "--size", "64"]);
}

#[test]
fn unlike_ranks_and_types_of_any_kind_move_the_right_data_processes() {
    let words = ["put_latency", "get_bw", "--arch", "native,s390x", "--arch", "i686,native"];
    let types = ["--type", "struct", "--type", "U1(X:d:2:3/5,1/0)", "--size", "96"];
    measured(&[&words[..], &types, &["--quick", "--validate"]].concat());
}

#[test]
fn help_names_every_type() {
    let Output { status, stderr, .. } = bench(&["--type", "nothing"]);
    assert_eq!(status.code(), Some(2));
    let refusal = String::from_utf8(stderr).unwrap();
    let (_, named) = refusal.split_once("there are ").unwrap();
    let names: Vec<_> = named.lines().next().unwrap().split(", ").collect();
    assert!(names.len() > 20, "{refusal}");
    let help = measured(&["--help"]);
    let words: Vec<_> = help.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    for name in names {
        assert!(words.contains(&name), "{name}\n{help}");
    }
}

#[test]
fn types_alone_and_limits_need_no_ranks() {
    let words =
        ["pack", "unpack", "copy", "commit", "commit_ready", "define", "memcpy", "byte_swap"];
    measured(&[&words[..], &["--quick", "--validate"]].concat());
    measured(&["pack", "unpack", "--arch", "native,external32", "--quick", "--validate"]);
}

#[test]
fn a_run_is_reported_again_from_its_json() {
    let folder = std::env::temp_dir().join(format!("longshore-bench-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let words =
        ["memcpy", "byte_swap", "--size", "8,64,4K,64K,1M", "--quick", "--json", &path("run.json")];
    let first = measured(&words);
    let again =
        ["--from", &path("run.json"), "--csv", &path("run.csv"), "--markdown", &path("run.md")];
    let again = measured(&[&again[..], &["--svg", &path("pictures")]].concat());
    assert_eq!(first, again);
    let read = |name: &str| fs::read_to_string(path(name)).unwrap();
    assert_eq!(read("run.csv").lines().count(), 1 + 10);
    assert!(read("run.md").contains("**memcpy**"));
    assert!(read("pictures/byte_swap.svg").contains("4 KiB"));
    let Output { status, stderr, .. } = bench(&["--from", &path("run.csv")]);
    assert!(
        !status.success() && String::from_utf8_lossy(&stderr).contains("run.csv: not a report")
    );
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_file_that_cannot_be_written_is_told_before_anything_is_measured() {
    let Output { status, stdout, stderr } = bench(&["memcpy", "--json", "/no/such/run.json"]);
    let problem = String::from_utf8_lossy(&stderr);
    assert!(!status.success() && stdout.is_empty(), "{status}");
    assert!(problem.contains("/no/such/run.json: "), "{problem}");
}

/// The device is full: it can be opened, and not be written.
#[test]
fn a_write_that_fails_costs_no_table() {
    let words = ["memcpy", "--size", "8", "--quick", "--json", "/dev/full"];
    let Output { status, stdout, stderr } = bench(&words);
    let (text, problem) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(!status.success() && text.contains("memcpy"), "{status}\n{text}");
    assert!(problem.contains("/dev/full: "), "{problem}");
}

#[test]
fn what_is_printed_to_nobody_is_no_failure_and_to_a_full_device_is_one_processes() {
    for words in [&["bench", "memcpy", "--size", "8", "--quick"][..], &["demo", "halo"]] {
        let into = |redirection: &str| {
            let mut shell = Command::new("bash");
            let script = format!("set -o pipefail; \"$@\" {redirection}");
            shell.args(["-c", &script, "bash", env!("CARGO_BIN_EXE_longshore")]).args(words);
            let Output { status, stderr, .. } = shell.output().unwrap();
            (status.code(), String::from_utf8_lossy(&stderr).into_owned())
        };
        assert_eq!(into("| exec true"), (Some(0), String::new()), "{words:?}");
        let (status, problem) = into("> /dev/full");
        assert_eq!(status, Some(1), "{words:?}: {problem}");
        assert!(problem.contains("longshore: ") && !problem.contains("panicked"), "{problem}");
    }
}

#[test]
fn an_interrupted_run_reports_what_it_measured_processes() {
    let file = std::env::temp_dir().join(format!("longshore-stop-{}.json", std::process::id()));
    let path = file.to_str().unwrap();
    // Of a put nothing may be left: cores that are moved meanwhile.
    let words = ["bench", "put_latency", "pack", "--type", "d", "--size", "8", "--turns", "9999"];
    let mut run = Command::new(env!("CARGO_BIN_EXE_longshore"));
    let run = run.args(words).args(["--json", path]).stdout(Stdio::piped()).spawn().unwrap();
    let pid = Pid::from_raw(run.id() as i32);
    await_handler(pid, Signal::SIGINT);
    thread::sleep(Duration::from_secs(1)); // for a row
    kill(pid, Signal::SIGINT).unwrap();
    let Output { status, stdout, .. } = run.wait_with_output().unwrap();
    assert_eq!(status.code(), Some(130));
    let report = measured(&["--from", path]);
    assert_eq!(String::from_utf8_lossy(&stdout), report);
    assert!(report.lines().any(|line| line.contains("pack")), "{report}");
    fs::remove_file(&file).unwrap();
}

#[test]
fn what_needs_two_cores_is_refused_on_one() {
    let mut command = Command::new("taskset");
    command.args(["-c", "0", env!("CARGO_BIN_EXE_longshore"), "bench", "cache_line", "tcp"]);
    let Output { status, stdout, .. } = command.arg("--quick").output().unwrap();
    let text = String::from_utf8_lossy(&stdout);
    assert!(status.success() && text.contains("limit: unsupported: needs two cores"), "{text}");
}

#[test]
fn what_nohup_starts_outlives_its_terminal_processes() {
    let mut run = Command::new("nohup");
    run.args([env!("CARGO_BIN_EXE_longshore"), "bench", "put_latency", "--type", "d"]);
    let run =
        run.args(["--size", "8", "--turns", "9999"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = run.spawn().unwrap();
    let pid = Pid::from_raw(run.id() as i32);
    await_handler(pid, Signal::SIGTERM);
    thread::sleep(Duration::from_secs(1)); // what else it handles comes behind
    kill(pid, Signal::SIGHUP).unwrap();
    kill(pid, Signal::SIGTERM).unwrap();
    let Output { status, stderr, .. } = run.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&stderr);
    // Had the first counted, the second would have ended it at once.
    assert_eq!(status.code(), Some(143), "{told}");
    assert!(told.contains("another signal ends it at once"), "{told}");
    assert!(told.contains("what was measured before"), "{told}");
}

#[test]
fn without_peers_it_says_what_to_do() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longshore"));
    command.args(["bench", "--peers"]).env_remove("LONGSHORE_PEERS");
    let Output { status, stdout, stderr } = command.output().unwrap();
    let problem = String::from_utf8_lossy(&stderr);
    assert!(!status.success() && stdout.is_empty(), "{status}");
    assert!(problem.contains("export LONGSHORE_PEERS=$(ci/peers)"), "{problem}");
}

/// A folder of an MPI library that is made of two scripts.
fn peer(name: &str, mpiexec: &str) -> PathBuf {
    let bin = std::env::temp_dir().join(format!("longshore-{name}-peer-{}", std::process::id()));
    fs::create_dir_all(&bin).unwrap();
    for (name, script) in [("mpicc", "#!/bin/sh\n"), ("mpiexec", mpiexec)] {
        fs::write(bin.join(name), script).unwrap();
        fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    bin
}

#[test]
fn a_library_that_starts_nothing_is_told_before_anything_is_measured_processes() {
    let mpiexec = "#!/bin/sh\n\
        [ \"$1\" = --version ] && echo 'HYDRA build details: Version: 0.1' && exit\n\
        echo 'no network' >&2\n\
        exit 3\n";
    let bin = peer("lame", mpiexec);
    let mut command = Command::new(env!("CARGO_BIN_EXE_longshore"));
    command.args(["bench", "pack", "--quick", "--peers"]).env("LONGSHORE_PEERS", &bin);
    let Output { status, stdout, stderr } = command.output().unwrap();
    let problem = String::from_utf8_lossy(&stderr);
    assert!(!status.success() && stdout.is_empty(), "{status}");
    assert!(
        problem.contains("can't start our program") && problem.contains("no network"),
        "{problem}"
    );
    fs::remove_dir_all(&bin).unwrap();
}

/// Its programs answer one case, and die.
#[test]
fn a_library_that_dies_is_named_and_loses_no_more_than_its_turn_processes() {
    let mpiexec = "#!/bin/sh\n\
        [ \"$1\" = --version ] && echo 'HYDRA build details: Version: 0.1' && exit\n\
        [ \"$4\" ] || exit 0\n\
        printf '0\\t1\\t2\\t3\\t0\\t0\\tyes\\n'\n\
        echo 'it fell over' >&2\n\
        exit 3\n";
    let bin = peer("dying", mpiexec);
    let mut command = Command::new(env!("CARGO_BIN_EXE_longshore"));
    command.args(["bench", "pack", "--size", "8,64", "--type", "d", "--quick", "--peers"]);
    let Output { status, stdout, stderr } = command.env("LONGSHORE_PEERS", &bin).output().unwrap();
    let (text, problems) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{status}\n{text}\n{problems}");
    assert!(text.contains("MPICH 0.1") && text.contains("it fell over"), "{text}");
    fs::remove_dir_all(&bin).unwrap();
}

#[test]
fn what_cannot_be_measured_is_refused() {
    for (words, part) in [
        (&["put"][..], "put_latency"),
        (&["--window", "heap"], "there are allocate, create, dynamic, shared"),
        (&["--sync", ""], "flush"),
        (&["--size", "8,1G"], "from 1 to 64M"),
        (&["--arch", "native"], "two names"),
        (&["--arch", "native,vax"], "vax"),
        (&["pack", "put_latency", "--arch", "native,external32"], "external32 serves files"),
        (&["--type", "U1(V:d:4)"], "not a datatype"),
        (&["--type", "vector9"], "vector8"),
        (&["--turns", "0"], "1.."),
        (&["--from", "run.json", "--quick"], "cannot be used with"),
        (&["fop_latency", "--type", "U1(V:d:4:1:5)"], "of int64 alone"),
        (&["fabric"], "need --hosts"),
        (&["byte_swap", "--size", "4"], "of doubles alone"),
        (&["--rounds", "0"], "1.."),
    ] {
        let Output { status, stdout, stderr } = bench(words);
        let problem = String::from_utf8_lossy(&stderr);
        assert!(status.code() == Some(2) && stdout.is_empty(), "{words:?}: {status}");
        assert!(problem.contains(part), "{words:?}: {problem}");
    }
}
