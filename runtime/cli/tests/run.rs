//! `longshore run` as a command: output, statuses, deaths and leftovers of real processes.
//!
//! The ranks are shells, or this test binary, whose test `rank` plays the role in ROLE.

#[path = "run/binding.rs"]
mod binding;
#[path = "run/deaths.rs"]
mod deaths;
#[path = "run/explained.rs"]
mod explained;
#[path = "run/hosts.rs"]
mod hosts;
#[path = "run/limits.rs"]
mod limits;
#[path = "run/observed.rs"]
mod observed;
#[path = "run/output.rs"]
mod output;
#[path = "run/roles.rs"]
mod roles;
#[path = "run/room.rs"]
mod room;
#[path = "run/signals.rs"]
mod signals;
#[path = "run/small.rs"]
mod small;
mod support;
#[path = "run/threads.rs"]
mod threads;
#[path = "run/waits.rs"]
mod waits;

use std::thread;
use std::time::{Duration, Instant};

use longshore::job::{Activity, Environment};
use longshore_transport::{Cause, JobState, RankState, Segment};
use roles::{
    alone, barrier, beside, children, circle, conflict, exit, fatal, fences, full, greedy, idle,
    join, leave, leave_slowly, locks, signals, stalls, stopped, stopped_circle, talkative, unfreed,
};
use support::program::write_program;
use support::{HANG, run, sh};

/// The program of the ranks if ROLE is set; otherwise it does nothing.
#[test]
fn rank() {
    let Ok(role) = std::env::var("ROLE") else { return };
    match role.as_str() {
        "barrier" => return barrier(),
        "beside" => return beside(),
        "circle" => return circle(),
        "stalls" => return stalls(),
        "conflict" => return conflict(),
        "explained" => return explained::puts(),
        "room" => return room::fill(),
        "fences" => return fences(),
        "greedy" => return greedy(),
        "talkative" => return talkative(),
        "locks" => return locks(),
        "stopped" => return stopped(),
        "stopped_circle" => return stopped_circle(),
        "unfreed" => return unfreed(),
        "full" => return full(),
        "fatal" => return fatal(),
        "leave" => return leave(),
        "leave_slowly" => return leave_slowly(),
        "exit" => return exit(),
        "idle" => return idle(),
        "join" => return join(),
        "signals" => return signals(),
        "children" => return children(),
        "alone" => return alone(),
        "threads" => return threads::threads(),
        "small" => return small::small(),
        "late" => return observed::late(),
        "flushes" => return observed::flushes(),
        "kinds" => return observed::kinds(),
        "hangs" => return observed::hangs(),
        "variable" => return observed::variable(),
        _ => {}
    }
    let mut job = Environment::from_env().unwrap().expect("a launcher");
    let segment = Segment::attach(job.segment.try_clone().unwrap(), job.rank).unwrap();
    match role.as_str() {
        "finish" => job.finalize().unwrap(),
        "meet" => {
            // The ranks share one segment if each sees the marks of all others.
            segment.mark(job.rank, RankState::Alive);
            let start = Instant::now();
            while (0..job.size).any(|rank| segment.rank_state(rank) == RankState::Absent) {
                assert!(start.elapsed() < HANG, "the other ranks' marks don't appear");
                thread::sleep(Duration::from_millis(1));
            }
            job.finalize().unwrap();
        }
        "finish_and_fail" => {
            segment.mark(job.rank, RankState::Finalized);
            job.finalize().unwrap();
            std::process::exit(3);
        }
        "outlive" => {
            assert_eq!(segment.rank_state(0), RankState::Finalized);
            job.finalize().unwrap();
        }
        "vanish" => {}
        "abort" | "abort_0" | "abort_256" => {
            let code = role.strip_prefix("abort_").map_or(5, |code| code.parse().unwrap());
            job.abort(code).unwrap();
            thread::sleep(HANG);
        }
        "lose_rank_0" => {
            segment.mark(0, RankState::Dead(Cause::Lost));
            std::process::exit(9);
        }
        "fail_late" => {
            thread::sleep(Duration::from_millis(300));
            std::process::exit(3);
        }
        "fail_after_rank_1" => {
            while segment.rank_state(1) != RankState::Dead(Cause::Lost) {
                thread::sleep(Duration::from_millis(1));
            }
            std::process::exit(3);
        }
        "talk_while_the_job_ends" => {
            eprint!("Error: ");
            segment.mark(job.rank, RankState::Dead(Cause::Lost));
            while segment.job_state() == JobState::Running {
                thread::sleep(Duration::from_millis(1));
            }
            thread::sleep(Duration::from_millis(50));
            eprintln!("not cut");
            std::process::exit(4);
        }
        "twice" => assert!(Environment::from_env().is_err()),
        "wait" => {
            segment.note(Activity::Barrier.code(), 0);
            eprintln!("rank {} waits", job.rank);
            thread::sleep(HANG);
        }
        "secret" => {
            let digits: String = job.secret.bytes().map(|byte| format!("{byte:02x}")).concat();
            eprintln!("rank {} waits, secret {digits}", job.rank);
            thread::sleep(HANG);
        }
        "orphan" => {
            eprintln!("rank {} waits", job.rank);
            while !job.is_orphaned() {
                thread::sleep(Duration::from_millis(5));
            }
        }
        role => panic!("no role {role}"),
    }
    std::process::exit(0);
}

/// The words that start this binary as a rank.
fn role(name: &str) -> Vec<String> {
    let program = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
    let words = ["env", &format!("ROLE={name}"), &program, "--exact", "rank", "--nocapture", "-q"];
    words.map(str::to_owned).to_vec()
}

#[test]
fn the_first_failing_rank_decides_the_status() {
    sh(&["-n", "3"], "exit 0").expect(0, &[]);
    sh(&[], "exit 7").expect(7, &["longshore: rank 0 (sh) exited with status 7, before init"]);
    sh(&["-n", "2"], "[ $PMI_RANK = 0 ] && exec sleep 60; exit 3").expect(
        3,
        &["longshore: rank 1 (sh) exited with status 3, before init; ending the other rank"],
    );
    sh(&["-n", "3"], "[ $PMI_RANK = 1 ] && kill -SEGV $$; sleep 60").expect(
        139,
        &["longshore: rank 1 (sh) was killed by SIGSEGV, before init; ending the other 2 ranks"],
    );
}

/// The exit status is the class of the error, regardless of the order in which the ranks end.
#[test]
fn a_fatal_error_ends_the_job() {
    let class = longshore::Class::RmaSync;
    for _ in 0..10 {
        let finished = run(&[vec!["-n".to_owned(), "3".to_owned()], role("fatal")].concat());
        assert_eq!(finished.status, i32::from(class.wire()), "{}", finished.stderr);
        let words = ["rank 1 ends the job", &class.mpi_name(), "a wait or test without a post"];
        assert!(words.iter().all(|word| finished.stderr.contains(word)), "{}", finished.stderr);
        assert!(!finished.stderr.contains("rank 0 ends the job"), "{}", finished.stderr);
    }
}

/// The message names the rank that left first, not a rank that ended because of it.
#[test]
fn a_rank_that_leaves_without_finalize_is_named() {
    for _ in 0..10 {
        let finished = run(&[vec!["-n".to_owned(), "3".to_owned()], role("leave")].concat());
        let line = "longshore: rank 1 (env) exited with status 7, during its own work; \
                    ending the other 2 ranks";
        finished.expect(7, &[line]);
    }
}

/// The rank that leaves first is still about to print its message when the others end.
#[test]
fn a_rank_that_leaves_first_still_prints_its_message() {
    expect_slow_leaver(&["-n", "3"], "");
}

/// Runs three ranks, of which rank 1 leaves first and prints why. That rank decides how the job
/// ends.
fn expect_slow_leaver(options: &[&str], place: &str) {
    let words = options.iter().map(|&word| word.to_owned()).collect();
    let finished = run(&[words, role("leave_slowly")].concat());
    let line = format!(
        "longshore: rank 1 (env){place} exited with status 3, during its own work; \
         ending the other 2 ranks"
    );
    finished.expect(3, &[&line]);
    assert!(finished.stderr.contains("Error: the cause\n"), "{}", finished.stderr);
}

/// The job ends because of rank 0 while rank 1, which has left the job, prints its message.
#[test]
fn ranks_that_have_left_finish_their_messages_when_the_job_ends() {
    let second = [vec![":".to_owned()], role("talk_while_the_job_ends")].concat();
    let finished = run(&[role("fail_after_rank_1"), second].concat());
    let line = "longshore: rank 0 (env) exited with status 3, during its own work; \
                ending the other rank";
    finished.expect(3, &[line]);
    assert!(finished.stderr.contains("Error: not cut\n"), "{}", finished.stderr);
}

#[test]
fn an_exit_within_a_fence_is_an_exit_without_finalize() {
    let finished = run(&[vec!["-n".to_owned(), "2".to_owned()], role("exit")].concat());
    let line = "longshore: rank 1 (env) exited without finalize, during its own work; \
                ending the other rank";
    finished.expect(1, &[line]);
    // With `survive`, the other rank prints the cause too.
    let reported = ["--on-death", "survive", "-n", "2"].map(str::to_owned).to_vec();
    let stderr = run(&[reported, role("exit")].concat()).stderr;
    let cause = "rank 1 has failed: dead, exited with status 0, without finalize";
    assert!(stderr.contains(cause), "{stderr}");
}

#[test]
fn an_unwritable_standard_error_changes_no_status() {
    let lost = |options: &[&str], name: &str| {
        let shell = ["sh", "-c", "exec \"$@\" 2> /dev/full", "sh"];
        let words = options.iter().chain(&shell).map(|&word| word.to_owned());
        run(&words.chain(role(name)).collect::<Vec<_>>()).status
    };
    assert_eq!(lost(&["-n", "3", "--check"], "conflict"), 0);
    assert_eq!(lost(&["-n", "3"], "fatal"), i32::from(longshore::Class::RmaSync.wire()));
}

/// `ulimit -f` counts units of 512 bytes, and limits the segment too.
#[test]
fn a_limit_on_file_sizes_is_named_if_it_is_too_low() {
    let limited = |limit: &str| {
        let script = format!("ulimit -f {limit}; exec \"$@\"");
        let launcher = ["sh", "-c", &script, "sh", env!("CARGO_BIN_EXE_longshore"), "run"];
        run(&[launcher.map(str::to_owned).to_vec(), role("finish")].concat())
    };
    limited("1000000").expect(0, &[]);
    let finished = limited("1000");
    assert_eq!(finished.status, 1, "{}", finished.stderr);
    assert!(finished.stderr.contains("(ulimit -f)"), "{}", finished.stderr);
}

/// Some daemons and shells ignore SIGCHLD. The launcher can't wait for its children if it inherits
/// that.
#[test]
fn statuses_arrive_if_the_launcher_starts_with_sigchld_ignored() {
    let script = "trap '' CHLD; exec \"$@\"";
    let launcher = ["bash", "-c", script, "bash", env!("CARGO_BIN_EXE_longshore"), "run"];
    let finished = run(&[&launcher[..], &["sh", "-c", "exit 7"]].concat());
    assert_eq!(finished.status, 7, "{}", finished.stderr);
}

/// Sixty ranks need more descriptors than the limit of 64.
#[test]
fn the_descriptor_limit_is_raised_for_the_launcher_only() {
    let script = "ulimit -Sn 64; exec \"$@\" run -n 60 sh -c 'ulimit -Sn'";
    let finished = run(&["sh", "-c", script, "sh", env!("CARGO_BIN_EXE_longshore")]);
    finished.expect(0, &[]);
    assert_eq!(finished.lines(), vec!["64".to_owned(); 60]);
}

#[test]
fn a_program_that_cannot_start_is_named_with_status_126_or_127() {
    let missing = run(&["sleep", "60", ":", "./no-such-program"]);
    missing.expect(
        127,
        &["longshore: part 2: can't start ./no-such-program: No such file or directory (os error 2); \
           paths are relative to the ranks' working directory, which --wdir names"],
    );
    run(&["no-such-program"]).expect(
        127,
        &["longshore: part 1: can't start no-such-program: no folder of PATH has a program of this name; \
           a program in the working directory is ./no-such-program"],
    );
    let forbidden = run(&["/etc/passwd"]);
    forbidden.expect(
        126,
        &["longshore: part 1: can't start /etc/passwd: Permission denied (os error 13); give a program that may be run \
           (chmod +x)"],
    );
}

/// A copy of this test's program with changed bytes.
fn changed_program(name: &str, change: impl FnOnce(&mut Vec<u8>)) -> String {
    let path = std::env::temp_dir().join(format!("longshore-{name}-{}", std::process::id()));
    let mut bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    change(&mut bytes);
    write_program(&path, &bytes);
    path.to_str().unwrap().to_owned()
}

/// The C library would start the program through a shell, which complains about its syntax.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_program_of_another_architecture_is_named_with_its_emulator() {
    const AARCH64: [u8; 2] = [183, 0]; // the machine in the header
    let path = changed_program("foreign", |bytes| bytes[18..20].copy_from_slice(&AARCH64));
    let finished = run(&["true", ":", &path]);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(finished.status, 126, "{}", finished.stderr);
    let message = format!(
        "longshore: part 2: can't start {path}: it is a program for aarch64, which this machine \
         (x86-64) can't run: give an emulator before the program, such as qemu-aarch64"
    );
    assert!(finished.stderr.starts_with(&message), "{}", finished.stderr);
    assert!(finished.stderr.ends_with(&format!(" {path}\n")), "{}", finished.stderr);
}

/// The kernel reports the program itself as missing.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_missing_loader_is_named() {
    const LOADER: &[u8] = b"/lib64/ld-linux-x86-64.so.2\0";
    let path = changed_program("loaderless", |bytes| {
        let at = bytes.windows(LOADER.len()).position(|window| window == LOADER).unwrap();
        bytes[at + 1] = b'L';
    });
    let finished = run(&[&path]);
    std::fs::remove_file(&path).unwrap();
    let message = format!(
        "longshore: part 1: can't start {path}: it is a program for x86-64, and its loader \
         /Lib64/ld-linux-x86-64.so.2 isn't installed: install the C library for x86-64, or link \
         the program statically"
    );
    finished.expect(126, &[&message]);
}

#[test]
fn wrong_options_are_refused_with_an_explanation() {
    for (words, explanation) in [
        (&["-n", "0", "true"][..], "invalid value '0' for '-n <N>'"),
        (&["-n", "two", "true"], "a number of ranks from 1 to 4096"),
        (&["-n", "5000", "true"], "a number of ranks from 1 to 4096"),
        (&["-np", "2", "true"], "unknown option '-np' before the program: did you mean -n?"),
        (&["-n4", "true"], "unknown option '-n4' before the program: did you mean -n 4?"),
        (&["-np4", "true"], "did you mean -n 4?"),
        (&["-xA=1", "true"], "did you mean -x A=1?"),
        (&["--np", "2", "true"], "unknown option '--np' before the program: did you mean -n?"),
        (&["--adversary", "abc", "true"], "expected a seed: a number"),
        (&["--check=race", "true"], "any of races, buffers, requests, messages, collectives"),
        (&["--check=off,races", "true"], "any of races, buffers, requests, messages, collectives"),
        (&[], "part 1 has no program"),
        (&["true", ":"], "part 2 has no program"),
        (&["true", ":", "-n", "2"], "part 2 has no program"),
        (&[":", "true"], "part 1 has no program"),
        (&["--bogus", "true"], "part 1: unknown option '--bogus'"),
        (&["--chek", "true"], "unknown option '--chek' before the program: did you mean --check?"),
        (
            &["true", ":", "--arc=i686", "true"],
            "part 2: unknown option '--arc=i686' before the program: did you mean --arch?",
        ),
        (&["--arch", "pdp11", "true"], "use one of native, x86-64, i686, s390x"),
        (&["true", ":", "--label", "true"], "part 2: '--label' is an option of the whole job"),
        (&["true", ":", "--timeout=5", "true"], "give it before the first program"),
        (&["--arch", "native,", "true"], "use one of"),
        (&["--arch", "native,xdr", "true"], "xdr is a representation of files and buffers"),
        (&["--env", "NO_SUCH", "true"], "-x NO_SUCH: no such variable is set here"),
        (&["--host", "a:0", "true"], "a number of ranks above 0"),
        (&["--host", "-oProxyCommand=x", "true"], "expected NAME or NAME:N"),
        (&["--start", "ip netns exec", "true"], "not provided:\n  <--host"),
        (&["--host", "a", "--hostfile", "b", "true"], "cannot be used with"),
        (&["--hostfile", "/no/hosts", "true"], "can't read the hosts in /no/hosts"),
        (&["--wrap", "2-1", "gdb", "true"], "expected ranks, such as 0, 1-3 or all"),
        (&["--wrap", "0", " ", "true"], "expected a command"),
        (&["--host", "a", "--start", "sh -c 'exec", "true"], "a quote isn't closed"),
        (&["--host", "a", "--start", " ", "true"], "expected a command"),
        (&["--env", "=1", "true"], "-x =1: expected NAME=VALUE"),
        (&["-x", "LONGSHORE_ARCH=s390x", "true"], "use --arch"),
        (&["-x", "LONGSHORE_ROUTE=message", "true"], "use --route"),
        (&["--timeout", "0", "true"], "a number of seconds above 0"),
        (&["--on-death", "cry", "true"], "expected end or survive"),
        (&["--route", "direct", "true"], "expected best or message"),
    ] {
        let finished = run(words);
        assert_eq!(finished.status, 2, "{words:?}");
        assert!(finished.stderr.contains(explanation), "{words:?}: {}", finished.stderr);
    }
    let crowd = run(&["true", ":", "-n", "2896", "true"]);
    assert_eq!(crowd.status, 1);
    assert!(crowd.stderr.contains("1 to 2896 are possible"), "{}", crowd.stderr);
}

#[test]
fn parts_have_their_own_ranks_environment_and_representations() {
    let script = "echo $PMI_RANK/$PMI_SIZE ${A-} ${LONGSHORE_ARCH-native} $LONGSHORE_ROUTE \"$@\"";
    let shell = ["sh", "-c", script, "sh"];
    let first = ["--route", "message", "-n", "3", "--arch", "s390x,native", "--env", "A=1=2"];
    let second = ["-n", "2", "--", "-x"];
    let words =
        [&first[..], &shell, &["-n", "9"], &[":"], &second[..2], &shell, &second[2..]].concat();
    let mut lines = run(&words).lines();
    lines.sort();
    assert_eq!(
        lines,
        [
            "0/5 1=2 s390x message -n 9",
            "1/5 1=2 native message -n 9",
            "2/5 1=2 s390x message -n 9",
            "3/5 native message -- -x",
            "4/5 native message -- -x",
        ]
    );
}

#[test]
fn a_waiting_rank_uses_no_processor_time_processes() {
    for options in [&["-n", "3"] as &[&str], &["--route", "message", "-n", "3"], &["-n", "16"]] {
        let options = options.iter().map(|&word| word.to_owned()).collect();
        run(&[options, role("idle")].concat()).expect(0, &[]);
    }
}

#[test]
fn threads_of_the_runtime_block_all_signals() {
    let words = ["--route", "message", "-n", "2"].map(str::to_owned).to_vec();
    run(&[words, role("signals")].concat()).expect(0, &[]);
}

#[test]
fn ranks_log_at_the_level_of_longshore_log() {
    let job = |words: &[&str]| {
        run(&[words.iter().map(|word| word.to_string()).collect(), role("join")].concat())
    };
    let told = |level: &str| job(&["-n", "2", "-x", &format!("LONGSHORE_LOG={level}")]).stderr;
    let lines = |text: &str, word: &str| text.lines().filter(|line| line.contains(word)).count();
    for (level, made) in [("info", 0), ("debug", 2)] {
        let told = told(level);
        let initialized = lines(&told, "INFO longshore::process::setup: initialized rank=");
        let dup = lines(&told, "DEBUG longshore::communicator::create: communicator made rank=");
        assert_eq!((initialized, dup), (2, made), "{level}: {told}");
        assert_eq!(told.contains("DEBUG"), level == "debug", "{told}");
    }
    assert!(!job(&["-n", "2"]).stderr.contains("INFO"));
    assert!(
        told("loud")
            .contains("LONGSHORE_LOG=\"loud\" in the environment: expected off, error, warn")
    );
}

#[test]
fn ranks_join_and_finalize() {
    let words = [vec!["-n".to_owned(), "32".to_owned()], role("finish")].concat();
    run(&words).expect(0, &[]);
}

/// Without the additions of `longshore run`, the ranks see the environment of another PMI-1
/// launcher.
#[test]
fn ranks_find_each_other_with_only_pmi() {
    let unset = ["-n", "5", "env", "-u", "LONGSHORE_LAUNCHER"];
    run(&[unset.map(str::to_owned).to_vec(), role("meet")].concat()).expect(0, &[]);
}

#[test]
fn an_end_without_finalize_is_a_failure() {
    run(&role("vanish"))
        .expect(1, &["longshore: rank 0 (env) exited without finalize, during its own work"]);
    run(&role("twice"))
        .expect(1, &["longshore: rank 0 (env) exited without finalize, during its own work"]);
}

#[test]
fn a_rank_that_others_wait_for_in_vain_is_a_failure() {
    let words = [vec!["true".to_owned(), ":".to_owned()], role("wait")].concat();
    run(&words).expect(
        1,
        &["longshore: rank 0 (true) exited without init, for which other ranks wait; ending the other rank"],
    );
}

#[test]
fn a_rank_can_abort_the_job() {
    let words = [role("abort"), vec![":".to_owned()], role("wait")].concat();
    run(&words).expect(5, &["longshore: rank 0 (env) aborted the job with code 5"]);
}

/// The status is the low byte of the code, but never 0.
#[test]
fn an_abort_never_has_status_0() {
    for code in [0, 256] {
        let aborting = role(&format!("abort_{code}"));
        let words = [aborting, vec![":".to_owned()], role("wait")].concat();
        let message = format!("longshore: rank 0 (env) aborted the job with code {code}");
        run(&words).expect(1, &[&message]);
    }
}

/// Neither the secret nor the segment reaches a process that a rank starts.
/// Runs two shells as ranks, with the program that joins as their arguments.
fn joined_by(script: &str) -> support::Finished {
    let words = ["-n", "2", "bash", "-c", script, "bash"].map(str::to_owned);
    run(&[words.to_vec(), role("join")].concat())
}

#[test]
fn a_process_that_is_not_the_rank_is_told_so() {
    let cure =
        "One process of each rank calls init, once; start another program by a launcher of its own";
    for (script, why) in [
        (r#""$@"; "$@""#, "another process has joined as that rank"),
        (r#"eval "exec $PMI_FD>&-"; "$@""#, "the descriptor PMI_FD, isn't open"),
    ] {
        let finished = joined_by(script);
        assert_eq!(finished.status, 0, "{}", finished.stderr);
        for rank in 0..2 {
            let words = format!("this process isn't rank {rank} of its job: ");
            assert!(finished.stderr.contains(&words), "{}", finished.stderr);
        }
        let text = &finished.stderr;
        assert!(text.contains(why) && text.contains(cure) && !text.contains("cmd="), "{text}");
    }
    // Programs that run at once share the connection. Which of them joins depends on timing.
    for at in 0..10 {
        let script = [r#""$@" & "$@" & wait"#, r#""$@" & "$@" & "$@" & wait"#][at % 2];
        let finished = joined_by(script);
        assert_eq!(finished.status, 0, "{}", finished.stderr);
        // Their lines may be mixed.
        let told = finished.stderr.matches("another process has joined as that rank").count();
        assert_eq!(told, 2 * (1 + at % 2), "{}", finished.stderr);
        assert!(!finished.stderr.contains("cmd="), "{}", finished.stderr);
    }
    // A job of one rank needs no launcher.
    let finished = joined_by(r#""$@"; env -u PMI_FD "$@""#);
    assert_eq!((finished.status, finished.stderr.as_str()), (0, ""));
}

#[test]
fn children_of_a_rank_inherit_nothing_of_the_job() {
    let finished = run(&[vec!["-n".to_owned(), "2".to_owned()], role("children")].concat());
    finished.expect(0, &[]);
    let lines = finished.lines();
    assert_eq!(lines.iter().filter(|line| *line == "rank 0 of 1").count(), 2, "{lines:?}");
    let is_look = |line: &&String| line.starts_with("before ") || line.starts_with("after ");
    let looks: Vec<_> = lines.iter().filter(is_look).collect();
    assert!(looks.len() > 10, "{lines:?}");
    for line in looks {
        let (when, target) = line.split_once(' ').unwrap();
        // Wrappers need the connection, so that it is there before init.
        let is_connection = when == "before" && target.starts_with("socket:");
        let is_usual = ["/dev/null", "pipe:", "/proc/"].iter().any(|it| target.starts_with(it));
        assert!(is_connection || is_usual, "{line}");
    }
    let sockets = lines.iter().filter(|line| line.contains(" socket:")).count();
    assert_eq!(sockets, 2, "{lines:?}");
}
