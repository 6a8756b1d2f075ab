//! Jobs on several hosts that a start command reaches.
//!
//! All hosts are this machine. The start command takes the host's name as a niceness:
//! `env -i nice -n 1 longshore agent`. It passes nothing of the launcher's environment on.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::role;
use super::signals::REPORTS_TERM;
use super::support::program::write_program;
use super::support::{Finished, LaunchedJob, parent, run, sh, start, variable};

/// One rank on the first host, up to three on the second.
const HOSTS: [&str; 4] = ["--host", "1:1,2:3", "--start", "env -i nice -n"];

fn on_hosts<'a>(options: &[&'a str], script: &'a str) -> Finished {
    sh(&[&HOSTS[..], options].concat(), script)
}

/// Starts three ranks that wait, on both hosts.
fn waiting(options: &[&str], script: &str) -> (LaunchedJob, impl Read + use<>) {
    let mut run = start(&[&HOSTS[..], options, &["-n", "3", "sh", "-c", script]].concat());
    let stderr = run.await_waiting(3);
    (run, stderr)
}

const WAIT: &str = "echo waits >&2; sleep 60; true";

/// The command line of a process.
fn words(pid: i32) -> String {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&words).replace('\0', " ")
}

fn niceness(pid: i32) -> i32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let words = stat.rsplit_once(')').map_or("", |(_, words)| words);
    words.split_whitespace().nth(16).and_then(|word| word.parse().ok()).unwrap_or_default()
}

/// The niceness of the tests, to which that of a host is added.
fn own_niceness() -> i32 {
    niceness(std::process::id() as i32)
}

/// The agent of a host: its front process and its launcher process.
fn agent(run: &LaunchedJob, host: i32) -> (Pid, Pid) {
    let niceness_there = own_niceness() + host;
    let mine = run.pid().as_raw();
    let is_mine = |mut pid: i32| loop {
        match parent(pid) {
            0 | 1 => return false,
            parent if parent == mine => return true,
            parent => pid = parent,
        }
    };
    let all = fs::read_dir("/proc").unwrap().flatten();
    let all = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let agents: Vec<_> = all
        .filter(|&pid| {
            words(pid).ends_with(" agent ") && niceness(pid) == niceness_there && is_mine(pid)
        })
        .collect();
    let inner = *agents.iter().find(|&&pid| agents.contains(&parent(pid))).unwrap();
    (Pid::from_raw(parent(inner)), Pid::from_raw(inner))
}

/// Makes a script that is a start command and gets the host's name as `$1`.
fn script(name: &str, text: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("longshore-{name}-{}", std::process::id()));
    write_program(&path, format!("#!/bin/sh\n{text}\n").as_bytes());
    path
}

/// ssh joins the agent's words, and a shell on the host splits them again.
#[test]
fn a_path_with_a_blank_passes_through_ssh() {
    let folder = std::env::temp_dir().join(format!("longshore's own {}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    let longshore = folder.join("longshore");
    write_program(&longshore, &fs::read(env!("CARGO_BIN_EXE_longshore")).unwrap());
    let ssh = script("ssh", r#"while [ "$1" = -o ]; do shift 2; done; shift; exec sh -c "$*""#);
    fs::rename(ssh, folder.join("ssh")).unwrap();
    let mut run = Command::new(&longshore);
    run.env("PATH", format!("{}:/usr/bin:/bin", folder.display()));
    run.args(["run", "--host", "a,b", "-n", "2", "sh", "-c", "echo $PMI_RANK"]);
    let output = run.output().unwrap();
    fs::remove_dir_all(folder).unwrap();
    let mut ranks: Vec<_> = output.stdout.lines().map(Result::unwrap).collect();
    ranks.sort();
    assert_eq!(ranks, ["0", "1"], "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_file_names_the_hosts() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hosts");
    fs::write(&file, "1 # one rank\n2 slots=3\n").unwrap();
    let hosts = ["--hostfile", file.to_str().unwrap(), "--start", "env -i nice -n"];
    let script = format!("echo $PMI_RANK $(($(nice) - {}))", own_niceness());
    let mut lines = sh(&[&hosts[..], &["-n", "3"]].concat(), &script).lines();
    lines.sort();
    assert_eq!(lines, ["0 1", "1 2", "2 2"]);
    fs::write(&file, "# none\n").unwrap();
    let refused = sh(&hosts, "true");
    assert_eq!(refused.status, 2);
    assert!(refused.stderr.contains("hosts has no host: give each a line"), "{}", refused.stderr);
}

#[test]
fn ranks_fill_the_hosts_in_order() {
    let sizes = format!("echo $PMI_RANK $LONGSHORE_HOSTS $#, $(($(nice) - {}))", own_niceness());
    let sizes = sizes.as_str();
    let mut lines = on_hosts(&["-n", "3"], sizes).lines();
    lines.sort();
    assert_eq!(lines, ["0 1,2 0, 1", "1 1,2 0, 2", "2 1,2 0, 2"]);
    let mut lines = on_hosts(&["-n", "1"], sizes).lines();
    lines.sort();
    assert_eq!(lines, ["0 1 0, 1"], "the second host has nothing to do");
    assert_eq!(on_hosts(&[], sizes).lines().len(), 4, "a program takes all places");
    let two = run(&[&HOSTS[..], &["true", ":", "echo", "of two"]].concat());
    assert_eq!(two.lines(), ["of two"], "two programs take one each");
    on_hosts(&["-n", "5"], sizes).expect(
        1,
        &["longshore: the job has 5 ranks, but its hosts take only 4: give --host more hosts, or larger numbers after ':'"],
    );
}

#[test]
fn ranks_go_to_the_hosts_in_turn() {
    let sizes = format!("echo $PMI_RANK $LONGSHORE_HOSTS, $(($(nice) - {}))", own_niceness());
    let in_turn = |options: &[&str]| {
        let mut lines = on_hosts(&[&["--map-by", "host"], options].concat(), &sizes).lines();
        lines.sort();
        lines
    };
    assert_eq!(in_turn(&["-n", "2"]), ["0 1,1, 1", "1 1,1, 2"]);
    assert_eq!(in_turn(&[]), ["0 1,3, 1", "1 1,3, 2", "2 1,3, 2", "3 1,3, 2"]);
    let hosts = ["--host", "1:2,2:3", "--start", "env -i nice -n", "--map-by", "host"];
    let mut lines = sh(&[&hosts[..], &["-v", "-n", "5"]].concat(), &sizes).lines();
    lines.sort();
    let expected = [(0, 1), (1, 2), (2, 1), (3, 2), (4, 2)];
    let expected = expected.map(|(rank, host)| format!("{rank} 1,1,1@0,2@1, {host}"));
    assert_eq!(lines, expected);
    // Deaths are named by the host of the rank.
    let died = sh(&[&hosts[..], &["-n", "4"]].concat(), "[ $PMI_RANK != 2 ] || exit 3; sleep 60");
    died.expect(
        3,
        &["longshore: rank 2 (sh) on host 1 exited with status 3, before init; ending the other 3 ranks"],
    );
}

/// Ranks 0, 2 and 4 share memory, and 1 and 3.
#[test]
fn ranks_that_are_no_neighbours_share_a_host() {
    longshore_transport::needs_libfabric!();
    let hosts = ["--host", "1:3,2:2", "--start", "env -i nice -n", "--map-by", "host"];
    let options = ["-x", "LONGSHORE_INTERFACE=lo", "-n", "5"];
    let options = [&hosts[..], &options].concat().into_iter().map(str::to_owned).collect();
    let finished = run(&[options, role("beside")].concat());
    finished.expect(0, &[]);
    let mut lines = finished.lines();
    lines.retain(|line| line.starts_with("rank"));
    lines.sort();
    let expected = [
        "rank 0 beside [0, 2, 4], sees [0, 2, 4]",
        "rank 1 beside [1, 3], sees [1, 3]",
        "rank 2 beside [0, 2, 4], sees [0, 2, 4]",
        "rank 3 beside [1, 3], sees [1, 3]",
        "rank 4 beside [0, 2, 4], sees [0, 2, 4]",
    ];
    assert_eq!(lines, expected);
}

/// Only ranks on several hosts load libfabric.
#[test]
fn a_host_without_libfabric_is_named_with_what_to_install_there() {
    let nowhere = ["-x", "LONGSHORE_LIBFABRIC=/nowhere/libfabric.so.1", "-n", "2"];
    let job = |hosts: &[&str]| {
        let options = [hosts, &nowhere].concat().into_iter().map(str::to_owned).collect();
        run(&[options, role("beside")].concat())
    };
    let finished = job(&[&HOSTS[..], &["-x", "LONGSHORE_INTERFACE=lo"]].concat());
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let error = format!(
        " run on different hosts, and on host {}, libfabric, which carries data between hosts, \
         can't be loaded: /nowhere/libfabric.so.1: ",
        name.trim()
    );
    assert!(finished.status != 0 && finished.stderr.contains(&error), "{}", finished.stderr);
    // The other rank is ended by the death of the one that reports first.
    let ranks = ["rank 0 and rank 1", "rank 1 and rank 0"];
    assert!(ranks.iter().any(|ranks| finished.stderr.contains(ranks)), "{}", finished.stderr);
    for remedy in ["LONGSHORE_LIBFABRIC", "apt-get install libfabric1", "one host"] {
        assert!(finished.stderr.contains(remedy), "{remedy}: {}", finished.stderr);
    }
    job(&[]).expect(0, &[]);
}

/// Ranks of one host take different ports. The system itself assigns ports above these.
#[test]
fn ranks_listen_on_the_ports_that_are_named() {
    longshore_transport::needs_libfabric!();
    let job = |ports: String| {
        let ports = format!("LONGSHORE_PORTS={ports}");
        let options = ["-x", "LONGSHORE_INTERFACE=lo", "-x", &ports, "-n", "3"];
        let options = [&["--host", "1:1,2:2", "--start", "env -i nice -n"][..], &options].concat();
        run(&[options.into_iter().map(str::to_owned).collect(), role("beside")].concat())
    };
    let low = 20_000 + process::id() % 100 * 100;
    job(format!("{low}:{}", low + 99)).expect(0, &[]);
    let one = format!("{low}:{low}");
    let narrow = job(one.clone());
    assert_ne!(narrow.status, 0);
    for part in [
        &format!("listening on 127.0.0.1: all ports of {one} are in use. Each rank needs two"),
        "of the job's ranks: set more in LONGSHORE_PORTS",
    ] {
        assert!(narrow.stderr.contains(part), "{part}: {}", narrow.stderr);
    }
    let wrong = job("5000".to_owned());
    assert_ne!(wrong.status, 0);
    assert!(wrong.stderr.contains("a range of ports such as 5000:5099"), "{}", wrong.stderr);
}

/// Twelve agents need more descriptors than the limit of 32.
#[test]
fn the_descriptor_limit_is_raised_for_many_agents() {
    let hosts = ["1"; 12].join(",");
    let script = "ulimit -Sn 32; exec \"$@\"";
    let launcher = ["sh", "-c", script, "sh", env!("CARGO_BIN_EXE_longshore"), "run"];
    let options = ["--host", &hosts, "--start", "nice -n", "-n", "12", "sh", "-c", "ulimit -Sn"];
    let finished = run(&[&launcher[..], &options].concat());
    assert_eq!(finished.lines(), vec!["32".to_owned(); 12], "{}", finished.stderr);
}

#[test]
fn programs_arguments_environment_and_folder_reach_the_hosts() {
    let script = "echo $PMI_RANK $A/$LONGSHORE_ARCH/${HOME-none} $(pwd) \"$@\"";
    let shell = ["sh", "-c", script, "sh"];
    let options = ["--wdir", "/usr", "-x", "A=1 2", "--arch", "s390x,native", "-n", "2"];
    let arguments = ["x  y", "'", "$A", ":", "-x", "B=\n", "-n", "1"];
    let finished = run(&[&HOSTS[..], &options, &shell, &arguments, &shell].concat());
    let mut lines = finished.lines();
    lines.sort();
    let expected =
        ["0 1 2/s390x/none /usr x  y ' $A", "1 1 2//none /usr x  y ' $A", "2 //none /usr"];
    assert_eq!(lines, expected);
    // All variables LONGSHORE_* are passed on, except those that the launcher sets itself.
    let launcher =
        ["env", "LONGSHORE_ODD=1", "LONGSHORE_LAUNCHER=77", env!("CARGO_BIN_EXE_longshore"), "run"];
    let script = "echo $LONGSHORE_ODD, $([ $LONGSHORE_LAUNCHER = 77 ] && echo stale)";
    let nested = [&launcher[..], &HOSTS, &["-n", "2", "sh", "-c", script]].concat();
    assert_eq!(run(&nested).lines(), ["1,", "1,"]);
}

#[test]
fn output_and_input_pass_between_hosts() {
    let words = [&HOSTS[..], &["--label", "-n", "3", "cat"]].concat();
    let mut run = start(&words);
    let much = "0123456789\n".repeat(100_000);
    let mut stdin = run.child.stdin.take().unwrap();
    let writer = thread::spawn(move || stdin.write_all(much.as_bytes()).unwrap());
    let finished = run.finish();
    writer.join().unwrap();
    assert_eq!(finished.stdout.len(), 100_000 * "[0] 0123456789\n".len());
    assert!(finished.lines().iter().all(|line| line == "[0] 0123456789"));

    let script = r"printf '\001\377\r\000x\n\nend'; printf 'error' >&2";
    let finished = on_hosts(&["-n", "1"], script);
    assert_eq!(finished.stdout, b"\x01\xff\r\0x\n\nend");
    assert_eq!(finished.stderr, "error");
}

/// If input arrives in one piece with the orders, no later message wakes the agent.
#[test]
fn input_that_arrives_with_the_orders_is_not_lost() {
    let start_command = script("late", "shift; { sleep 0.3; cat; } | \"$@\"");
    let start_words = ["--host", "a", "--start", start_command.to_str().unwrap()];
    let mut run = start(&[&start_words[..], &["--watchdog", "0", "cat"]].concat());
    run.child.stdin.take().unwrap().write_all(b"hello\n").unwrap();
    let finished = run.finish();
    fs::remove_file(start_command).unwrap();
    assert_eq!((finished.status, finished.lines()), (0, vec!["hello".to_owned()]));
}

#[test]
fn large_output_of_hosts_waits_for_a_slow_reader() {
    let mut run = start(&[&HOSTS[..], &["-n", "3", "sh", "-c", "yes | head -c 2000000"]].concat());
    thread::sleep(Duration::from_millis(300));
    assert!(run.child.try_wait().unwrap().is_none(), "it should wait for its reader");
    assert_eq!(run.finish().stdout.len(), 6_000_000);
}

#[test]
fn a_closed_reader_ends_the_writers_on_hosts_by_sigpipe() {
    let mut run = start(&[&HOSTS[..], &["-n", "2", "yes"]].concat());
    drop(run.child.stdout.take());
    assert_eq!(run.finish().status, 128 + 13);
}

#[test]
fn statuses_deaths_and_timeouts_are_reported_from_hosts() {
    on_hosts(&["-n", "3"], "exit 0").expect(0, &[]);
    on_hosts(&["-n", "3"], "[ $PMI_RANK = 2 ] && kill -SEGV $$; sleep 60").expect(
        139,
        &["longshore: rank 2 (sh) on host 2 was killed by SIGSEGV, before init; ending the other 2 ranks"],
    );
    on_hosts(&["-n", "2", "--timeout", "0.5", "--stacks=off"], "trap '' TERM; sleep 60; sleep 60").expect(
        124,
        &["longshore: the job took longer than 0.5 s; ending rank 0 (before init), rank 1 (before init)"],
    );
    let script = "[ $PMI_RANK = 0 ] && kill -KILL $$; sleep 0.3; echo $PMI_RANK";
    let finished = on_hosts(&["-n", "3", "--on-death", "survive"], script);
    assert_eq!((finished.status, finished.lines().len()), (137, 2), "{}", finished.stderr);
}

#[test]
fn programs_folders_hosts_and_agents_that_cannot_start_are_reported() {
    let missing = run(&[&HOSTS[..], &["sleep", "60", ":", "./no-such-program"]].concat());
    missing.expect(
        127,
        &["longshore: host 2: part 2: can't start ./no-such-program: No such file or directory (os error 2); \
           paths are relative to the ranks' working directory, which --wdir names; ending the other rank"],
    );
    let folder = on_hosts(&["--wdir", "/no/such", "-n", "1"], "true");
    folder.expect(
        1,
        &["longshore: host 1: can't start ranks in the folder /no/such: No such file or directory (os error 2); --wdir names another"],
    );
    let unreachable = run(&["--host", "1,x", "--start", "nice -n", "-n", "2", "sleep", "60"]);
    assert_eq!(unreachable.status, 1);
    assert!(unreachable.stderr.contains("x: nice: "), "{}", unreachable.stderr);
    let messages = unreachable.messages().join("\n");
    assert!(
        messages.contains("host x: no agent could be started, the start command exited with"),
        "{messages}"
    );
    run(&["--host", "1", "--start", "/no/such/command", "true"]).expect(
        127,
        &["longshore: host 1: can't run /no/such/command: No such file or directory (os error 2); --start names another start command"],
    );
    let other = on_hosts(&["--agent", "echo Good day", "-n", "1"], "true");
    other.expect(
        1,
        &["longshore: host 1: no agent could be started, the start command exited with status 0, and printed \"Good day agent\"; it must run a program there without a password"],
    );
}

#[test]
fn quotes_keep_the_words_of_a_start_command_together() {
    let start = r#"sh -c 'shift; exec "$@"' "a name""#;
    let finished = run(&["--host", "a,b", "--start", start, "-n", "2", "echo", "x"]);
    finished.expect(0, &[]);
    assert_eq!(finished.lines(), ["x", "x"]);
}

#[test]
fn output_of_a_login_before_the_greeting_is_ignored() {
    let start = script("login", "echo Welcome to $1; echo Last login: never; shift; exec \"$@\"");
    let finished =
        run(&["--host", "a,b", "--start", start.to_str().unwrap(), "-n", "2", "echo", "x"]);
    fs::remove_file(start).unwrap();
    assert_eq!(
        (finished.status, finished.lines()),
        (0, vec!["x".to_owned(); 2]),
        "{}",
        finished.stderr
    );
}

#[test]
fn signals_are_forwarded_to_hosts() {
    let (run, _stderr) = waiting(&["--on-death", "survive"], REPORTS_TERM);
    kill(run.pid(), Signal::SIGTERM).unwrap();
    let finished = run.finish();
    assert_eq!((finished.status, finished.lines()), (4, vec!["got it".to_owned(); 3]));
}

/// The rank sends the signal to the launcher. If the launcher forwarded it, the rank would die,
/// because ranks on hosts don't inherit the ignored signals.
#[test]
fn a_signal_that_the_launcher_ignores_is_not_forwarded() {
    let script = "trap '' HUP; exec \"$@\" $$";
    let launcher = ["sh", "-c", script, "sh", env!("CARGO_BIN_EXE_longshore"), "run"];
    let host = ["--host", "1", "--start", "env --default-signal=HUP nice -n"];
    let rank = ["sh", "-c", "kill -HUP $0; sleep 0.5; echo lives"];
    let finished = run(&[&launcher[..], &host, &rank].concat());
    assert_eq!((finished.status, finished.lines()), (0, vec!["lives".to_owned()]));
}

/// Peers may still receive the last messages of a finalized rank, so no host may mark it dead. The
/// job still has its status.
#[test]
fn a_rank_that_fails_after_finalize_is_not_dead_to_others() {
    // The barrier completes after the launcher has recorded the first rank's end on the other host.
    // Without LONGSHORE_HOSTS, the ranks need no network.
    let after_barrier = "echo cmd=barrier_in >&$PMI_FD; read -r line <&$PMI_FD; exec \"$@\"";
    let no_hosts = ["env", "-u", "LONGSHORE_HOSTS"];
    let waits = [&[":", "bash", "-c", after_barrier, "bash"], &no_hosts[..]].concat();
    let own = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let first = [own(&no_hosts), role("finish_and_fail")].concat();
    let words = [first, own(&waits), role("outlive")].concat();
    for (hosts, place) in [(&[][..], ""), (&HOSTS, " on host 1")] {
        let options = own(&[hosts, &["--on-death", "survive"]].concat());
        let line = format!(
            "longshore: rank 0 (env){place} exited with status 3, after finalize; the others go on"
        );
        run(&[options, words.clone()].concat()).expect(3, &[&line]);
    }
}

/// The second host knows only that rank 0 is lost, and its rank ends first.
#[test]
fn the_first_failure_of_all_hosts_decides_the_status() {
    // Without LONGSHORE_HOSTS, the ranks need no network.
    let no_hosts = ["env", "-u", "LONGSHORE_HOSTS"].map(str::to_owned).to_vec();
    let separator = vec![":".to_owned()];
    let (first, second) = (role("fail_late"), role("lose_rank_0"));
    let programs = [no_hosts.clone(), first, separator, no_hosts, second].concat();
    let finished = run(&[HOSTS.map(str::to_owned).to_vec(), programs].concat());
    finished.expect(
        3,
        &["longshore: rank 0 (env) on host 1 exited with status 3, during its own work; \
           ending the other rank"],
    );
}

#[test]
fn a_rank_that_leaves_first_is_named_on_another_host() {
    longshore_transport::needs_libfabric!();
    let options = ["-x", "LONGSHORE_INTERFACE=lo", "-n", "3"];
    crate::expect_slow_leaver(&[&HOSTS[..], &options].concat(), " on host 2");
}

/// The secret is on no command line and in the environment of no process.
#[test]
fn the_secret_is_in_no_environment() {
    let no_hosts = ["-n", "3", "env", "-u", "LONGSHORE_HOSTS"].map(str::to_owned).to_vec();
    let words = [no_hosts, role("secret")].concat();
    for hosts in [vec![], HOSTS.map(str::to_owned).to_vec()] {
        let mut run = start(&[hosts, words.clone()].concat());
        let mut line = String::new();
        let mut stderr = BufReader::new(run.child.stderr.take().unwrap());
        stderr.read_line(&mut line).unwrap();
        let (_, secret) = line.trim().split_once("secret ").unwrap();
        assert_eq!(secret.len(), 64);
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            for text in
                [crate::hosts::words(pid), String::from_utf8_lossy(&environment).into_owned()]
            {
                assert!(!text.contains(secret), "{}", crate::hosts::words(pid));
            }
        }
        kill(run.pid(), Signal::SIGTERM).unwrap();
        run.finish();
    }
}

/// Kills processes of the second host's agent while two of three ranks wait there.
fn kill_agent(victims: fn((Pid, Pid)) -> Vec<Pid>) -> String {
    let (run, mut stderr) = waiting(&[], &format!("printf .; {WAIT}"));
    for victim in victims(agent(&run, 2)) {
        // After the front is killed, the agent ends too, perhaps before it is killed here.
        let killed = kill(victim, Signal::SIGKILL);
        assert!(matches!(killed, Ok(()) | Err(Errno::ESRCH)), "{killed:?}");
    }
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert!(
        rest.contains("longshore: host 2: the connection to its agent is gone, the start command "),
        "{rest}"
    );
    assert!(rest.contains("; ending the other rank\n"), "{rest}");
    let finished = run.finish();
    assert_eq!((finished.status, finished.lines()), (1, vec!["...".to_owned()]));
    rest
}

#[test]
fn the_job_ends_when_an_agent_is_killed() {
    kill_agent(|(front, _)| vec![front]);
    let rest = kill_agent(|(_, agent)| vec![agent]);
    let who =
        "2: longshore: the agent of this host was killed by SIGKILL; its ranks have been killed";
    assert!(rest.contains(who), "{rest}");
    kill_agent(|(front, agent)| vec![front, agent]);
}

#[test]
fn an_agent_ended_by_sigterm_reports_the_ends_of_its_ranks() {
    let (run, mut stderr) = waiting(&[], "echo waits >&2; exec sleep 60");
    kill(agent(&run, 2).1, Signal::SIGTERM).unwrap();
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    // Either of the agent's two ranks may end first.
    let end = "(sh) on host 2 was killed by SIGTERM, before init; ending the other 2 ranks\n";
    assert!(rest.contains(end) && !rest.contains("agent"), "{rest}");
    assert_eq!(run.finish().status, 143);
}

#[test]
fn the_job_ends_when_a_start_command_is_killed() {
    // This start command stays alive as the agent's parent, as ssh does.
    let start_command = script("between", "shift; \"$@\"; exit");
    let words =
        ["--host", "a,b", "--start", start_command.to_str().unwrap(), "-n", "2", "sh", "-c", WAIT];
    let mut run = start(&words);
    let mut stderr = run.await_waiting(2);
    let between = run.running().into_iter().find(|&pid| words_of_shell(pid, &start_command, "b"));
    kill(Pid::from_raw(between.unwrap()), Signal::SIGKILL).unwrap();
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    fs::remove_file(start_command).unwrap();
    assert!(
        rest.contains(
            "host b: the connection to its agent is gone, the start command was killed by SIGKILL"
        ),
        "{rest}"
    );
    assert_eq!(run.finish().status, 1);
}

fn words_of_shell(pid: i32, script: &std::path::Path, host: &str) -> bool {
    words(pid).contains(&format!("{} {host} ", script.display()))
}

#[test]
fn nothing_on_any_host_outlives_the_launcher() {
    // The first script sends no output when the launcher is killed, the second one always does.
    let silent =
        "(trap '' TERM HUP; setsid sh -c 'sleep 60; true' & sleep 60) & echo waits >&2; sleep 60";
    let talkative =
        silent.replace("waits >&2; sleep 60", "waits >&2; while true; do echo >&2; done");
    let inner = |run: &LaunchedJob| {
        let is_launcher =
            |&pid: &i32| parent(pid) == run.pid().as_raw() && words(pid).contains(" run ");
        Pid::from_raw(run.running().into_iter().find(is_launcher).unwrap())
    };
    for victims in
        [|front, _| vec![front], |_, inner| vec![inner], |front, inner| vec![front, inner]]
            as [fn(Pid, Pid) -> Vec<Pid>; 3]
    {
        for script in [silent, &talkative] {
            let (run, _stderr) = waiting(&[], script);
            for victim in victims(run.pid(), inner(&run)) {
                kill(victim, Signal::SIGKILL).unwrap();
            }
            run.finish();
        }
    }
}

/// The launcher gives up an agent that doesn't answer.
#[test]
fn a_stopped_agent_does_not_delay_the_end_of_the_job() {
    let (run, mut stderr) = waiting(&[], WAIT);
    let (_, agent) = agent(&run, 2);
    kill(agent, Signal::SIGSTOP).unwrap();
    let first = run.running().into_iter().find(|&pid| variable(pid, "PMI_RANK") == "0");
    kill(Pid::from_raw(first.unwrap()), Signal::SIGKILL).unwrap();
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert!(
        rest.contains(
            "rank 0 (sh) on host 1 was killed by SIGKILL, before init; ending the other 2 ranks"
        ),
        "{rest}"
    );
    assert!(
        rest.contains("host 2: its agent doesn't answer, the start command is given up"),
        "{rest}"
    );
    assert_eq!(run.finish().status, 137);
}

/// libfabric's buffers are short, unless the user wants them otherwise.
#[test]
fn ranks_on_several_hosts_have_short_buffers_of_libfabric() {
    let ask = "echo ${FI_TCP_MAX_RX_SIZE-none}";
    assert_eq!(on_hosts(&["-n", "2"], ask).lines(), ["128", "128"]);
    assert_eq!(on_hosts(&["-n", "2", "-x", "FI_TCP_MAX_RX_SIZE=99"], ask).lines(), ["99", "99"]);
    assert_eq!(sh(&["-n", "1"], ask).lines(), ["none"]);
}

/// The host file, the option and the variable have one effect. Ranks have to agree on it.
#[test]
fn ranks_encrypt_when_they_are_asked_to() {
    longshore_transport::needs_libfabric!();
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("encrypted-hosts");
    fs::write(&file, "1 encrypt\n2 slots=2\n").unwrap();
    let there = ["--start", "env -i nice -n", "-v", "-n", "3", "-x", "LONGSHORE_INTERFACE=lo"];
    let job = |hosts: [&str; 2], options: &[&str]| {
        let options = [&hosts[..], &there, options].concat();
        run(&[options.into_iter().map(str::to_owned).collect(), role("beside")].concat())
    };
    let (hosts, file) = (["--host", "1:1,2:2"], ["--hostfile", file.to_str().unwrap()]);
    for (hosts, options) in
        [(hosts, &["--encrypt"][..]), (hosts, &["-x", "LONGSHORE_ENCRYPT=on"]), (file, &[])]
    {
        let done = job(hosts, options);
        assert_eq!(done.status, 0, "{options:?}: {}", done.stderr);
        for part in ["rank 0 on host 1 listens on 127.0.0.1 at port ", ", for encrypted messages"] {
            assert!(done.stderr.contains(part), "{options:?}: {part}: {}", done.stderr);
        }
    }
    let plain = job(hosts, &[]);
    assert_eq!(plain.status, 0, "{}", plain.stderr);
    assert!(!plain.stderr.contains("encrypted"), "{}", plain.stderr);
    let wrong = job(hosts, &["-x", "LONGSHORE_ENCRYPT=yes"]);
    assert!(wrong.status != 0 && wrong.stderr.contains("expected on or off"), "{}", wrong.stderr);
    let differ = "[ $PMI_RANK = 0 ] || export LONGSHORE_ENCRYPT=on; exec \"$@\"";
    let wrap = ["--wrap", "all", &format!("sh -c '{differ}' wrap")];
    let refused = job(hosts, &wrap);
    assert_ne!(refused.status, 0);
    let why = "on host 127.0.0.1 encrypts what it sends to other hosts, and rank ";
    assert!(refused.stderr.contains(why), "{}", refused.stderr);
    assert!(refused.stderr.contains("give all ranks LONGSHORE_ENCRYPT=on"), "{}", refused.stderr);
}
