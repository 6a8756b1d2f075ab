//! Killed ranks and launchers, and what is left of their jobs.

use std::io::Read;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use longshore::job::Activity;
use longshore_transport::Segment;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::role;
use super::support::{HANG, parent, run, sh, start, variable};

/// Kills rank `victim` of three that play `name`, after the rank has noted `activity`.
fn kill_rank(name: &str, victim: u32, activity: Activity) {
    let mut run = start(&[vec!["-n".to_owned(), "3".to_owned()], role(name)].concat());
    let mut stderr = run.await_waiting(3);
    let is_victim = |&pid: &i32| variable(pid, "PMI_RANK") == victim.to_string();
    let pid = run.running().into_iter().find(is_victim).unwrap();
    // The rank prints that it waits before it notes its activity.
    let mut files = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let is_segment = |file: &std::path::Path| {
        std::fs::read_link(file).unwrap().to_string_lossy().starts_with("/memfd:longshore")
    };
    let file = files.find(|file| is_segment(&file.path())).unwrap().path();
    let file = std::fs::File::options().read(true).write(true).open(file).unwrap();
    let segment = Segment::attach(file.into(), victim).unwrap();
    let begun = Instant::now();
    while segment.noted(victim).code != activity.code() {
        assert!(begun.elapsed() < HANG, "{:?}", segment.noted(victim));
        thread::sleep(Duration::from_millis(1));
    }
    kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    let message = format!(
        "rank {victim} (env) was killed by SIGKILL, during {}; ending the other 2 ranks",
        activity.describe(0)
    );
    assert!(rest.contains(&message), "{rest}");
    assert_eq!(run.finish().status, 137);
}

#[test]
fn a_death_names_what_the_rank_was_doing() {
    kill_rank("wait", 2, Activity::Barrier);
}

#[test]
fn a_death_in_a_barrier_ends_those_that_wait_there() {
    kill_rank("barrier", 0, Activity::Computing);
    kill_rank("barrier", 1, Activity::Barrier);
}

#[test]
fn a_death_names_the_core_file() {
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap();
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("cores");
    std::fs::create_dir_all(&folder).unwrap();
    let options = ["--wdir", folder.to_str().unwrap(), "-n", "1"];
    // A program that is killed by itself: a shell may change its folder and its limits.
    let died = sh(&options, "ulimit -c unlimited && kill -SEGV $$");
    assert_eq!(died.status, 139, "{}", died.stderr);
    let told = died.stderr.split_once("was killed by SIGSEGV, before init; its core ");
    let (_, told) = told.unwrap_or_else(|| panic!("{}", died.stderr));
    if pattern.starts_with('|') {
        assert!(told.starts_with("went to "), "{told}");
    } else if !pattern.contains('%') {
        let path = std::path::Path::new(told.trim_end().strip_prefix("file is ").unwrap());
        assert!(path.is_file(), "{told}");
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn a_reported_death_lets_the_others_go_on() {
    // The barrier completes when the launcher has noticed the death.
    let script = "[ $PMI_RANK = 0 ] && kill -KILL $$; echo cmd=barrier_in >&$PMI_FD; \
                  read -r line <&$PMI_FD; echo $PMI_RANK; [ $PMI_RANK = 1 ]";
    let finished = run(&["-n", "3", "--on-death", "survive", "bash", "-c", script]);
    let mut lines = finished.lines();
    lines.sort();
    assert_eq!((finished.status, lines), (137, vec!["1".to_owned(), "2".to_owned()]));
    assert!(finished.messages()[0].ends_with("SIGKILL, before init; the others go on"));
}

#[test]
fn processes_that_a_rank_started_end_with_the_job() {
    let script = "sleep 60 & (trap '' TERM HUP; setsid sh -c 'sleep 60; true' & sleep 60) & [ $PMI_RANK = 1 ]";
    assert_eq!(sh(&["-n", "2"], script).status, 1);
}

/// A shell that executes the launcher in its place may have started a process before.
#[test]
fn children_older_than_the_launcher_outlive_it() {
    let script = "exec 3<&0; { cat <&3; echo lives; } & exec \"$@\"";
    let mut shell = Command::new("sh");
    shell.args(["-c", script, "sh", env!("CARGO_BIN_EXE_longshore"), "run", "sh", "-c"]);
    shell.arg("setsid sleep 60 & true"); // leaves a process to kill
    let mut run = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let stdin = run.stdin.take(); // which `cat` reads to its end
    assert!(run.wait().unwrap().success());
    drop(stdin);
    let mut said = String::new();
    run.stdout.unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(said, "lives\n");
}

/// Kills the launcher's two processes, or one of them, with ranks of several kinds under it.
fn kill_launcher(victims: fn(front: Pid, launcher: Pid) -> Vec<Pid>) {
    let shell = ["sh", "-c", "echo waits >&2; sleep 60; true"].map(str::to_owned).to_vec();
    let separator = vec![":".to_owned()];
    let wrapped = [
        vec!["sh".to_owned(), "-c".to_owned(), "\"$@\"; true".to_owned(), "sh".to_owned()],
        role("wait"),
    ]
    .concat();
    let mut run = start(&[role("wait"), separator.clone(), shell, separator, wrapped].concat());
    let _stderr = run.await_waiting(3);
    let front = run.pid();
    let is_launcher = |&&pid: &&i32| parent(pid) == front.as_raw();
    let launcher = Pid::from_raw(*run.running().iter().find(is_launcher).unwrap());
    for victim in victims(front, launcher) {
        kill(victim, Signal::SIGKILL).unwrap();
    }
    run.finish();
}

#[test]
fn nothing_outlives_a_killed_front() {
    kill_launcher(|front, _| vec![front]);
}

#[test]
fn nothing_outlives_a_killed_launcher() {
    kill_launcher(|_, launcher| vec![launcher]);
}

/// Starts a program that is `role` behind a shell, and kills launcher and front as if at once.
fn kill_both(role: Vec<String>) {
    let shell = ["sh", "-c", "echo waits >&2; \"$@\"; true", "sh"].map(str::to_owned).to_vec();
    let mut run = start(&[shell, role].concat());
    let _stderr = run.await_waiting(2);
    let front = run.pid();
    let launcher = *run.running().iter().find(|&&pid| parent(pid) == front.as_raw()).unwrap();
    // A stopped front can't kill the processes that the launcher leaves behind.
    kill(front, Signal::SIGSTOP).unwrap();
    kill(Pid::from_raw(launcher), Signal::SIGKILL).unwrap();
    kill(front, Signal::SIGKILL).unwrap();
    assert_eq!(run.finish().status, -9);
}

#[test]
fn ranks_notice_that_front_and_launcher_were_killed() {
    // Without the additions of `longshore run`, as under another launcher.
    let other = ["env", "-u", "LONGSHORE_LAUNCHER"].map(str::to_owned).to_vec();
    kill_both([other, role("orphan")].concat());
}

/// The rank behind the shell makes no call that could notice it.
#[test]
fn a_computing_rank_does_not_outlive_front_and_launcher() {
    kill_both(role("wait"));
}
