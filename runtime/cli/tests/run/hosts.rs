//! Jobs whose hosts are reached by a start command. Here that takes the host's name, which is a niceness, and all are this machine:
//! `env -i nice -n 1 longshore agent`. Nothing of the launcher's environment gets through it.

use std::fs;
use std::io::{BufRead, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::support::{Finished, Run, parent, run, sh, start, variable};
use super::{TELLS_OF_TERM, role};

/// One rank on the first host, up to three on the second.
const HOSTS: [&str; 4] = ["--host", "1:1,2:3", "--start", "env -i nice -n"];

fn on_hosts<'a>(options: &[&'a str], script: &'a str) -> Finished {
    sh(&[&HOSTS[..], options].concat(), script)
}

/// Ranks that wait on both hosts.
fn waiting(options: &[&str], script: &str) -> (Run, impl Read + use<>) {
    let mut run = start(&[&HOSTS[..], options, &["-n", "3", "sh", "-c", script]].concat());
    let stderr = run.await_waiting(3);
    (run, stderr)
}

const WAIT: &str = "echo waits >&2; sleep 60; true";

/// The words of a process.
fn words(pid: i32) -> String {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&words).replace('\0', " ")
}

fn niceness(pid: i32) -> i32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let words = stat.rsplit_once(')').map_or("", |(_, words)| words);
    words.split_whitespace().nth(16).and_then(|word| word.parse().ok()).unwrap_or_default()
}

/// That of the tests, on which a host's comes.
fn own_niceness() -> i32 {
    niceness(std::process::id() as i32)
}

/// The agent of a host: the process in front, and its child.
fn agent(run: &Run, host: i32) -> (Pid, Pid) {
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

/// A start command that is a script, with the host's name as `$1`.
fn script(name: &str, text: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("longshore-{name}-{}", std::process::id()));
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// ssh joins an agent's words, and the shell there parts them: both of a program in a folder whose name has a blank.
#[test]
fn a_folder_with_a_blank_gets_through_ssh() {
    let folder = std::env::temp_dir().join(format!("longshore's own {}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    let longshore = folder.join("longshore");
    fs::copy(env!("CARGO_BIN_EXE_longshore"), &longshore).unwrap();
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
fn ranks_fill_the_hosts() {
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

/// As many agents need more than the limit on open descriptors, which the ranks keep.
#[test]
fn many_hosts_need_many_descriptors() {
    let hosts = ["1"; 12].join(",");
    let script = "ulimit -Sn 32; exec \"$@\"";
    let launcher = ["sh", "-c", script, "sh", env!("CARGO_BIN_EXE_longshore"), "run"];
    let options = ["--host", &hosts, "--start", "nice -n", "-n", "12", "sh", "-c", "ulimit -Sn"];
    let finished = run(&[&launcher[..], &options].concat());
    assert_eq!(finished.lines(), vec!["32".to_owned(); 12], "{}", finished.stderr);
}

#[test]
fn programs_arguments_environment_and_folder_cross_over() {
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
    // What begins with LONGSHORE_ goes along, but for what a rank's launcher sets itself.
    let launcher =
        ["env", "LONGSHORE_ODD=1", "LONGSHORE_SEGMENT=77", env!("CARGO_BIN_EXE_longshore"), "run"];
    let script = "echo $LONGSHORE_ODD, $([ $LONGSHORE_SEGMENT = 77 ] && echo stale)";
    let nested = [&launcher[..], &HOSTS, &["-n", "2", "sh", "-c", script]].concat();
    assert_eq!(run(&nested).lines(), ["1,", "1,"]);
}

#[test]
fn output_and_input_cross_over() {
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

/// What the launcher says behind the orders may be here with them: nobody else says anything that would wake the agent.
#[test]
fn input_may_come_with_the_orders() {
    let start_command = script("late", "shift; { sleep 0.3; cat; } | \"$@\"");
    let start_words = ["--host", "a", "--start", start_command.to_str().unwrap()];
    let mut run = start(&[&start_words[..], &["--watchdog", "0", "cat"]].concat());
    run.child.stdin.take().unwrap().write_all(b"hello\n").unwrap();
    let finished = run.finish();
    fs::remove_file(start_command).unwrap();
    assert_eq!((finished.status, finished.lines()), (0, vec!["hello".to_owned()]));
}

#[test]
fn much_output_passes_a_slow_reader() {
    let mut run = start(&[&HOSTS[..], &["-n", "3", "sh", "-c", "yes | head -c 2000000"]].concat());
    thread::sleep(Duration::from_millis(300));
    assert!(run.child.try_wait().unwrap().is_none(), "it should wait for its reader");
    assert_eq!(run.finish().stdout.len(), 6_000_000);
}

#[test]
fn output_that_nobody_reads_ends_its_writers() {
    let mut run = start(&[&HOSTS[..], &["-n", "2", "yes"]].concat());
    drop(run.child.stdout.take());
    assert_eq!(run.finish().status, 128 + 13);
}

#[test]
fn statuses_deaths_and_timeouts_cross_over() {
    on_hosts(&["-n", "3"], "exit 0").expect(0, &[]);
    on_hosts(&["-n", "3"], "[ $PMI_RANK = 2 ] && kill -SEGV $$; sleep 60").expect(
        139,
        &["longshore: rank 2 (sh) was killed by SIGSEGV, before init; ending the other 2 ranks"],
    );
    on_hosts(&["-n", "2", "--timeout", "0.5"], "trap '' TERM; sleep 60; sleep 60").expect(
        124,
        &["longshore: the job took longer than 0.5 s; ending rank 0 (before init), rank 1 (before init)"],
    );
    let script = "[ $PMI_RANK = 0 ] && kill -KILL $$; sleep 0.3; echo $PMI_RANK";
    let finished = on_hosts(&["-n", "3", "--on-death", "report"], script);
    assert_eq!((finished.status, finished.lines().len()), (137, 2), "{}", finished.stderr);
}

#[test]
fn what_cannot_start_is_told() {
    let missing = run(&[&HOSTS[..], &["sleep", "60", ":", "./no-such-program"]].concat());
    missing.expect(
        127,
        &["longshore: host 2: part 2: can't start ./no-such-program: No such file or directory (os error 2); ending the other rank"],
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
        &["longshore: host 1: can't run /no/such/command: No such file or directory (os error 2)"],
    );
    let other = on_hosts(&["--agent", "echo Good day", "-n", "1"], "true");
    other.expect(
        1,
        &["longshore: host 1: no agent could be started, the start command exited with status 0, and printed \"Good day agent\""],
    );
}

#[test]
fn a_login_may_be_talkative() {
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
fn signals_cross_over() {
    let (run, _stderr) = waiting(&["--on-death", "report"], TELLS_OF_TERM);
    kill(run.pid(), Signal::SIGTERM).unwrap();
    let finished = run.finish();
    assert_eq!((finished.status, finished.lines()), (4, vec!["got it".to_owned(); 3]));
}

/// Other hosts know nothing of what the launcher ignores. Its rank sends it the signal there, and lives on.
#[test]
fn a_signal_that_the_launcher_ignores_stays_here() {
    let script = "trap '' HUP; exec \"$@\" $$";
    let launcher = ["sh", "-c", script, "sh", env!("CARGO_BIN_EXE_longshore"), "run"];
    let host = ["--host", "1", "--start", "env --default-signal=HUP nice -n"];
    let rank = ["sh", "-c", "kill -HUP $0; sleep 0.5; echo lives"];
    let finished = run(&[&launcher[..], &host, &rank].concat());
    assert_eq!((finished.status, finished.lines()), (0, vec!["lives".to_owned()]));
}

/// A peer may have its last messages still to come: on its host as on others it has finalized, and the job has its status.
#[test]
fn a_rank_that_fails_behind_its_finalize_is_not_dead_to_others() {
    // What the launcher had to tell of the first one's end is there when the barrier lets the other go. A network isn't needed.
    let behind = "echo cmd=barrier_in >&$PMI_FD; read -r line <&$PMI_FD; exec \"$@\"";
    let alone = ["env", "-u", "LONGSHORE_HOSTS"];
    let waits = [&[":", "bash", "-c", behind, "bash"], &alone[..]].concat();
    let own = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let first = [own(&alone), role("finish_and_fail")].concat();
    let words = [first, own(&waits), role("outlive")].concat();
    for hosts in [&[][..], &HOSTS] {
        let options = own(&[hosts, &["--on-death", "report"]].concat());
        run(&[options, words.clone()].concat()).expect(
            3,
            &["longshore: rank 0 (env) exited with status 3, after finalize; the others go on"],
        );
    }
}

/// Who reads command lines, or the environment of anything but ranks, doesn't find it.
#[test]
fn the_secret_is_in_the_environment_of_ranks_alone() {
    let here = start(&["-n", "2", "sh", "-c", WAIT]);
    for (mut run, ranks) in [(here, 2), (waiting(&[], WAIT).0, 3)] {
        if run.child.stderr.is_some() {
            drop(run.await_waiting(ranks));
        }
        let is_rank = |&pid: &i32| !variable(pid, "PMI_RANK").is_empty();
        let members: Vec<_> = run.running().into_iter().filter(is_rank).collect();
        let secret = variable(members[0], "LONGSHORE_SECRET");
        assert_eq!(secret.len(), 64);
        assert!(members.len() >= ranks);
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            assert!(!words(pid).contains(&secret), "{}", words(pid));
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            let environment = String::from_utf8_lossy(&environment).into_owned();
            let is_rank = environment.contains("PMI_RANK=");
            assert!(is_rank || !environment.contains(&secret), "{}", words(pid));
        }
        kill(run.pid(), Signal::SIGTERM).unwrap();
        run.finish();
    }
}

/// Kills something of the second host's agent, under which two of three ranks wait.
fn kill_agent(victims: fn((Pid, Pid)) -> Vec<Pid>) {
    let (run, mut stderr) = waiting(&[], &format!("printf .; {WAIT}"));
    for victim in victims(agent(&run, 2)) {
        // The front takes the agent with it, sometimes before its turn.
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
}

#[test]
fn the_job_ends_with_an_agent() {
    kill_agent(|(front, _)| vec![front]);
    kill_agent(|(_, agent)| vec![agent]);
    kill_agent(|(front, agent)| vec![front, agent]);
}

#[test]
fn an_agent_that_is_told_to_end_tells_how_its_ranks_did() {
    let (run, mut stderr) = waiting(&[], "echo waits >&2; exec sleep 60");
    kill(agent(&run, 2).1, Signal::SIGTERM).unwrap();
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    // Which of its two came first is nobody's business.
    let told = "(sh) was killed by SIGTERM, before init; ending the other 2 ranks\n";
    assert!(rest.contains(told) && !rest.contains("agent"), "{rest}");
    assert_eq!(run.finish().status, 143);
}

#[test]
fn the_job_ends_with_a_start_command() {
    // One that stands between, as ssh does.
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
    // Of the first nothing is under way when the launcher goes, of the second there is always something.
    let silent =
        "(trap '' TERM HUP; setsid sh -c 'sleep 60; true' & sleep 60) & echo waits >&2; sleep 60";
    let talkative =
        silent.replace("waits >&2; sleep 60", "waits >&2; while true; do echo >&2; done");
    let inner = |run: &Run| {
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

/// One that doesn't answer is given up.
#[test]
fn a_stopped_agent_holds_nobody_up() {
    let (run, mut stderr) = waiting(&[], WAIT);
    let (_, agent) = agent(&run, 2);
    kill(agent, Signal::SIGSTOP).unwrap();
    let first = run.running().into_iter().find(|&pid| variable(pid, "PMI_RANK") == "0");
    kill(Pid::from_raw(first.unwrap()), Signal::SIGKILL).unwrap();
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert!(
        rest.contains("rank 0 (sh) was killed by SIGKILL, before init; ending the other 2 ranks"),
        "{rest}"
    );
    assert!(
        rest.contains("host 2: its agent doesn't answer, the start command is given up"),
        "{rest}"
    );
    assert_eq!(run.finish().status, 137);
}
