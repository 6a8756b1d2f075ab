//! `longshore bench` as a command: real ranks measure, check data, and the report is complete.

#[path = "support/program.rs"]
mod program;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use program::write_program;

/// Waits until a process has a handler for a signal.
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

/// The output of a run that succeeded. No case of Longshore's has wrong data, failed or was
/// refused.
fn measured(words: &[&str]) -> String {
    let Output { status, stdout, stderr } = bench(words);
    let (text, problems) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{status}\n{text}\n{problems}");
    assert!(!text.contains("Longshore: "), "{text}");
    text.into_owned()
}

/// Measures with validation and checks that the CSV has rows of each bench. Unlike the tables, the
/// CSV includes rows during which the ranks' cores were moved.
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
fn puts_gets_and_accumulates_are_right_with_every_synchronisation_processes() {
    let benches = ["put_latency", "get_latency", "acc_latency"];
    checks_each(&benches, &["--sync", "all", "--size", "4,8"]);
}

#[test]
fn operations_are_right_on_every_window_flavor_processes() {
    let benches = ["fop_latency", "cas_latency", "get_acc_latency", "put_bibw"];
    checks_each(&benches, &["--window", "all", "--size", "64"]);
}

#[test]
fn operations_are_right_between_unlike_ranks_and_with_any_type_processes() {
    let words = ["put_latency", "get_bw", "--arch", "native,s390x", "--arch", "i686,native"];
    let types = ["--type", "struct", "--type", "U1(X:d:2:3/5,1/0)", "--size", "96"];
    measured(&[&words[..], &types, &["--quick", "--validate"]].concat());
}

#[test]
fn help_names_every_type() {
    let Output { status, stderr, .. } = bench(&["--type", "nothing"]);
    assert_eq!(status.code(), Some(2));
    let refusal = String::from_utf8(stderr).unwrap();
    let (_, named) = refusal.split_once("; expected ").unwrap();
    let names: Vec<_> = named.lines().next().unwrap().split(", ").collect();
    assert!(names.len() > 20, "{refusal}");
    let help = measured(&["--help"]);
    let words: Vec<_> = help.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    for name in names {
        assert!(words.contains(&name), "{name}\n{help}");
    }
}

#[test]
fn packing_and_machine_limits_are_measured_without_ranks() {
    let words = ["pack", "unpack", "copy", "commit", "define", "memcpy", "byte_swap"];
    measured(&[&words[..], &["--quick", "--validate"]].concat());
    measured(&["pack", "unpack", "--arch", "native,external32", "--quick", "--validate"]);
}

#[test]
fn a_run_without_a_picture_is_refused_before_it_measures() {
    let folder = std::env::temp_dir().join(format!("longshore-svg-{}", std::process::id()));
    let svg = ["--quick", "--svg", folder.to_str().unwrap()];
    for words in [&["put_latency"][..], &["put_latency", "--size", "8,64,512,4K"], &["memcpy"]] {
        let Output { status, stdout, stderr } = bench(&[words, &svg].concat());
        let refusal = String::from_utf8(stderr).unwrap();
        assert_eq!(status.code(), Some(2), "{words:?}: {refusal}");
        for option in ["--quick", "--size", "--peers", "--by c"] {
            assert!(refusal.contains(option), "{words:?}: {refusal}");
        }
        assert!(stdout.is_empty() && !folder.exists(), "{words:?}: it measured");
    }
    let drawn = ["memcpy", "--size", "8,16,32,64,128"];
    measured(&[&drawn[..], &svg].concat());
    assert!(folder.join("memcpy.svg").exists());
    fs::remove_dir_all(&folder).unwrap();
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
fn an_unwritable_file_is_reported_before_any_measurement() {
    let Output { status, stdout, stderr } = bench(&["memcpy", "--json", "/no/such/run.json"]);
    let problem = String::from_utf8_lossy(&stderr);
    assert!(!status.success() && stdout.is_empty(), "{status}");
    assert!(problem.contains("/no/such/run.json: "), "{problem}");
}

/// /dev/full can be opened, but every write to it fails.
#[test]
fn tables_are_printed_after_a_failed_write() {
    let words = ["memcpy", "--size", "8", "--quick", "--json", "/dev/full"];
    let Output { status, stdout, stderr } = bench(&words);
    let (text, problem) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(!status.success() && text.contains("memcpy"), "{status}\n{text}");
    assert!(problem.contains("/dev/full: "), "{problem}");
}

#[test]
fn a_closed_reader_is_no_failure_and_a_full_device_is_one_processes() {
    for words in [&["bench", "memcpy", "--size", "8", "--quick"][..], &["demo", "halo"]] {
        let into = |redirection: &str| {
            let mut shell = Command::new("bash");
            let script = format!("set -o pipefail; \"$@\" {redirection}");
            shell.args(["-c", &script, "bash", env!("CARGO_BIN_EXE_longshore")]).args(words);
            let Output { status, stderr, .. } = shell.output().unwrap();
            (status.code(), String::from_utf8_lossy(&stderr).into_owned())
        };
        let (status, problem) = into("| exec true");
        // A debug build of the bench warns of its figures.
        let unexpected: Vec<_> =
            problem.lines().filter(|line| !line.contains("debug build")).collect();
        assert!(status == Some(0) && unexpected.is_empty(), "{words:?}: {status:?}, {problem}");
        let (status, problem) = into("> /dev/full");
        assert_eq!(status, Some(1), "{words:?}: {problem}");
        assert!(problem.contains("longshore: ") && !problem.contains("panicked"), "{problem}");
    }
}

#[test]
fn an_interrupted_run_reports_its_measurements_processes() {
    let file = std::env::temp_dir().join(format!("longshore-stop-{}.json", std::process::id()));
    let path = file.to_str().unwrap();
    // Two benches, because rows of a put are left out if the ranks' cores are moved meanwhile.
    let words = ["bench", "put_latency", "pack", "--type", "d", "--size", "8", "--turns", "9999"];
    let mut run = Command::new(env!("CARGO_BIN_EXE_longshore"));
    let run = run.args(words).args(["--json", path]).stdout(Stdio::piped()).spawn().unwrap();
    let pid = Pid::from_raw(run.id() as i32);
    await_handler(pid, Signal::SIGINT);
    thread::sleep(Duration::from_secs(1)); // time for one row
    kill(pid, Signal::SIGINT).unwrap();
    let Output { status, stdout, .. } = run.wait_with_output().unwrap();
    assert_eq!(status.code(), Some(130));
    let report = measured(&["--from", path]);
    assert_eq!(String::from_utf8_lossy(&stdout), report);
    assert!(report.lines().any(|line| line.contains("pack")), "{report}");
    fs::remove_file(&file).unwrap();
}

#[test]
fn benches_that_need_two_cores_are_refused_on_one() {
    let mut command = Command::new("taskset");
    command.args(["-c", "0", env!("CARGO_BIN_EXE_longshore"), "bench", "cache_line", "tcp"]);
    let Output { status, stdout, .. } = command.arg("--quick").output().unwrap();
    let text = String::from_utf8_lossy(&stdout);
    assert!(status.success() && text.contains("limit: unsupported: needs two cores"), "{text}");
}

#[test]
fn a_bench_under_nohup_ignores_sighup_processes() {
    let mut run = Command::new("nohup");
    run.args([env!("CARGO_BIN_EXE_longshore"), "bench", "put_latency", "--type", "d"]);
    let run =
        run.args(["--size", "8", "--turns", "9999"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = run.spawn().unwrap();
    let pid = Pid::from_raw(run.id() as i32);
    await_handler(pid, Signal::SIGTERM);
    thread::sleep(Duration::from_secs(1)); // time to install the other handlers
    kill(pid, Signal::SIGHUP).unwrap();
    kill(pid, Signal::SIGTERM).unwrap();
    let Output { status, stderr, .. } = run.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&stderr);
    // If SIGHUP had counted, SIGTERM would have been the second signal and ended it at once.
    assert_eq!(status.code(), Some(143), "{told}");
    assert!(told.contains("another signal ends it at once"), "{told}");
    assert!(told.contains("measurements before the interruption"), "{told}");
}

#[test]
fn missing_peers_are_reported_with_the_remedy() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longshore"));
    command.args(["bench", "--peers"]).env_remove("LONGSHORE_PEERS");
    let Output { status, stdout, stderr } = command.output().unwrap();
    let problem = String::from_utf8_lossy(&stderr);
    assert!(!status.success() && stdout.is_empty(), "{status}");
    assert!(problem.contains("export LONGSHORE_PEERS=$(ci/peers)"), "{problem}");
}

/// Makes a folder with an imitation of an MPI library that consists of two scripts.
fn peer(name: &str, mpiexec: &str) -> PathBuf {
    let bin = std::env::temp_dir().join(format!("longshore-{name}-peer-{}", std::process::id()));
    fs::create_dir_all(&bin).unwrap();
    for (name, script) in [("mpicc", "#!/bin/sh\n"), ("mpiexec", mpiexec)] {
        write_program(&bin.join(name), script.as_bytes());
    }
    bin
}

#[test]
fn a_library_that_starts_no_program_is_reported_before_any_measurement_processes() {
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

/// The library's programs answer one case and then die.
#[test]
fn a_library_whose_programs_die_loses_only_its_turn_processes() {
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
fn impossible_choices_are_refused() {
    for (words, part) in [
        (&["put"][..], "put_latency"),
        (&["--window", "heap"], "expected allocate, create, dynamic, shared"),
        (&["--sync", ""], "flush"),
        (&["--size", "8,1G"], "from 1 to 64M"),
        (&["--arch", "native"], "two names"),
        (&["--arch", "native,vax"], "vax"),
        (&["pack", "put_latency", "--arch", "native,external32"], "is a representation of files"),
        (&["--type", "U1(V:d:4)"], "not a datatype"),
        (&["--type", "vector9"], "vector8"),
        (&["--turns", "0"], "1.."),
        (&["--from", "run.json", "--quick"], "cannot be used with"),
        (&["fop_latency", "--type", "U1(V:d:4:1:5)"], "fop_latency and cas_latency need int64"),
        (&["fabric"], "need --hosts"),
        (&["byte_swap", "--size", "4"], "byte_swap needs doubles"),
        (&["--rounds", "0"], "1.."),
    ] {
        let Output { status, stdout, stderr } = bench(words);
        let problem = String::from_utf8_lossy(&stderr);
        assert!(status.code() == Some(2) && stdout.is_empty(), "{words:?}: {status}");
        assert!(problem.contains(part), "{words:?}: {problem}");
    }
}

/// The tests run the command as it is built with them.
#[test]
fn figures_of_a_debug_build_come_with_a_warning() {
    let Output { status, stderr, .. } = bench(&["memcpy", "--size", "8", "--quick"]);
    let told = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{told}");
    assert_eq!(told.contains("this is a debug build"), cfg!(debug_assertions), "{told}");
}
