//! `longshore run` as a command: output, statuses, deaths and leftovers of real processes.
//!
//! The ranks are shells, or this test binary, whose test `rank` plays the role in ROLE.

#[path = "run/hosts.rs"]
mod hosts;
mod support;
#[path = "run/waits.rs"]
mod waits;

use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use longshore::job::{Activity, Environment};
use longshore_transport::{Cause, JobState, RankState, Segment};
use nix::fcntl::OFlag;
use nix::pty::{grantpt, posix_openpt, ptsname_r, unlockpt};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use support::{HANG, await_waiting, parent, run, sh, start, variable};

/// The program of the ranks if ROLE is set; otherwise it does nothing.
#[test]
fn rank() {
    let Ok(role) = std::env::var("ROLE") else { return };
    match role.as_str() {
        "barrier" => return barrier(),
        "circle" => return circle(),
        "conflict" => return conflict(),
        "fences" => return fences(),
        "locks" => return locks(),
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

fn join() {
    match longshore::init() {
        Ok(rank) => {
            drop(rank.world().dup().unwrap());
            rank.finalize().unwrap();
        }
        Err(error) => eprintln!("{error}"),
    }
}

/// All ranks except rank 0 wait in a barrier for rank 0.
fn barrier() {
    let rank = longshore::init().unwrap();
    let world = rank.world();
    eprintln!("rank {} waits", world.rank());
    if world.rank() == 0 {
        thread::sleep(HANG);
    }
    world.barrier().unwrap();
    rank.finalize().unwrap();
}

/// Every rank receives from the previous one, and no rank sends.
fn circle() {
    let rank = longshore::init().unwrap();
    let world = rank.world();
    let last = (world.rank() + world.size() - 1) % world.size();
    // Rank 0 confuses its tags.
    if world.rank() == 0 {
        (0..2).for_each(|_| world.send(&[0u8], 1, 8).unwrap());
    }
    world.recv(&mut [0u8], last, 7).unwrap();
}

/// All ranks put to the same bytes of rank 0 without an order: a conflict (rule 23).
fn conflict() {
    let rank = longshore::init().unwrap();
    let (world, info) = (rank.world(), longshore::Info::default());
    let mut window = longshore::Window::allocate(world, 8, 8, &info).unwrap();
    let byte = rank.type_of::<u8>().unwrap();
    window.fence(|epoch| epoch.put(&[1u8], 0, 0, 1, &byte)).unwrap();
    window.free().unwrap();
    rank.finalize().unwrap();
}

/// The ranks fence two windows in different orders (rule 8).
fn fences() {
    let rank = longshore::init().unwrap();
    let mut windows = [0, 1].map(|_| {
        longshore::Window::allocate(rank.world(), 8, 8, &longshore::Info::default()).unwrap()
    });
    windows[0].set_name("halo");
    windows[rank.world().rank() as usize].fences(|_| Ok(())).unwrap();
}

/// Each rank locks its own window and then the other's.
fn locks() {
    let rank = longshore::init().unwrap();
    let (world, info) = (rank.world(), longshore::Info::default());
    let windows = ["left", "right"].map(|name| {
        let window = longshore::Window::allocate(world, 8, 8, &info).unwrap();
        window.set_name(name);
        window
    });
    let (me, exclusive) = (world.rank() as usize, longshore::LockType::Exclusive);
    let outcome = windows[me].lock(0, exclusive, |_| {
        world.barrier()?;
        windows[1 - me].lock(0, exclusive, |_| Ok(()))
    });
    eprintln!("{}", outcome.unwrap_err());
    windows.into_iter().for_each(|window| drop(window.free()));
    rank.finalize().unwrap();
}

/// Rank 1 drops one window within an epoch, and forgets another.
fn unfreed() {
    let rank = longshore::init().unwrap();
    let (world, info) = (rank.world(), longshore::Info::default());
    let halo = longshore::Window::allocate(world, 8, 8, &info).unwrap();
    let forgotten = longshore::Window::allocate(world, 8, 8, &info).unwrap();
    let freed = longshore::Window::allocate(world, 8, 8, &info).unwrap();
    if world.rank() == 1 {
        halo.set_name("halo");
        halo.raw().lock(1, longshore::LockType::Shared, longshore::Assert::NONE).unwrap();
        forgotten.raw().lock_all(longshore::Assert::NONE).unwrap();
        forgotten.raw().unlock_all().unwrap();
        drop(halo);
    } else {
        halo.set_name("left");
        std::mem::forget(halo);
    }
    freed.free().unwrap();
    rank.finalize().unwrap();
    drop(forgotten);
}

/// Rank 0 puts to a rank that doesn't answer, until the limit of operations on the way.
fn full() {
    let rank = longshore::init().unwrap();
    let (world, info) = (rank.world(), longshore::Info::default());
    let window = longshore::Window::allocate(world, 8, 8, &info).unwrap();
    if world.rank() == 1 {
        thread::sleep(HANG);
    }
    let byte = rank.type_of::<u8>().unwrap();
    let (shared, unasked) = (longshore::LockType::Shared, longshore::Assert::NOCHECK);
    let puts = window.lock_with(1, shared, unasked, |epoch| {
        (0..1000).try_for_each(|_| epoch.put(&[1u8], 1, 0, 1, &byte))
    });
    puts.unwrap();
}

/// Rank 1 makes an error, and the window's error handler ends the job. Rank 0 has a fatal error
/// handler too, which must not report the end of the job as an error of rank 0.
fn fatal() {
    let rank = longshore::init().unwrap();
    let world = rank.world();
    let window = longshore::Window::allocate(world, 8, 8, &longshore::Info::default()).unwrap();
    window.set_errhandler(longshore::ErrorHandler::Fatal);
    if world.rank() == 0 {
        world.set_errhandler(longshore::ErrorHandler::Fatal);
    }
    if world.rank() == 1 {
        let _ = window.wait();
        unreachable!();
    }
    world.barrier().unwrap();
}

/// Rank 1 exits without finalize, and then the others exit because of that.
fn leave() {
    let rank = longshore::init().unwrap();
    let me = rank.world().rank();
    rank.world().barrier().unwrap();
    if me == 1 {
        drop(rank);
        std::process::exit(7);
    }
    rank.world().barrier().unwrap_err();
    std::process::exit(9);
}

/// Rank 1 leaves like a program whose `main` returns an error: the rank is dropped before the
/// message is printed. The others exit because of that, and sooner.
fn leave_slowly() {
    let rank = longshore::init().unwrap();
    let me = rank.world().rank();
    if me == 1 {
        rank.world().barrier().unwrap();
        drop(rank);
        thread::sleep(Duration::from_millis(100));
        eprint!("Error: ");
        thread::sleep(Duration::from_millis(100));
        eprintln!("the cause");
        std::process::exit(3);
    }
    while rank.world().barrier().is_ok() {}
    drop(rank);
    std::process::exit(9);
}

/// Rank 1 ends its process within a fence. The others fail because of that.
fn exit() {
    let rank = longshore::init().unwrap();
    let me = rank.world().rank();
    let info = longshore::Info::default();
    let mut window = longshore::Window::allocate(rank.world(), 8, 8, &info).unwrap();
    let fenced = window.fence(|_| {
        if me == 1 {
            std::process::exit(0);
        }
        Ok(())
    });
    fenced.and_then(|()| window.fence(|_| Ok(()))).unwrap();
}

/// Rank 0 sleeps for a second and all others wait. No rank may use the processor.
fn idle() {
    const IDLE: Duration = Duration::from_secs(1);
    let rank = longshore::init().unwrap();
    let world = rank.world();
    // Peers that reach the window by messages make the rank start its progress thread.
    let window = longshore::Window::allocate(world, 8, 8, &longshore::Info::default()).unwrap();
    let before = processor_time();
    match world.rank() {
        0 => thread::sleep(IDLE),
        1 => drop(world.recv(&mut [0u8], 0, 0).unwrap()),
        _ => {}
    }
    if world.rank() == 0 {
        world.send(&[0u8], 1, 0).unwrap();
    }
    world.barrier().unwrap();
    let used = processor_time() - before;
    // A waiting rank wakes only now and then to check the job. A polling rank would use all of the
    // time, or its share.
    assert!(used < IDLE / 10, "rank {} took {used:?}", world.rank());
    window.free().unwrap();
    rank.finalize().unwrap();
    std::process::exit(0);
}

/// The threads that init and windows start must block all signals: a signal must reach a thread of
/// the program.
fn signals() {
    let own = threads();
    let rank = longshore::init().unwrap();
    let (world, info) = (rank.world(), longshore::Info::default());
    let window = longshore::Window::allocate(world, 8, 8, &info).unwrap();
    let others = || threads().into_iter().filter(|thread| !own.contains(thread));
    assert!(others().count() > 0, "there is no progress thread");
    for thread in others() {
        let status = std::fs::read_to_string(format!("/proc/self/task/{thread}/status")).unwrap();
        let line = |name: &str| {
            let found = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            found.trim_start_matches(':').trim()
        };
        let blocked = u64::from_str_radix(line("SigBlk"), 16).unwrap();
        for signal in Signal::iterator() {
            use Signal::*;
            // No thread can block the first two, and a thread causes the others itself.
            if !matches!(
                signal,
                SIGKILL | SIGSTOP | SIGBUS | SIGFPE | SIGILL | SIGSEGV | SIGSYS | SIGTRAP
            ) {
                let bit = 1 << (signal as i32 - 1);
                assert_ne!(blocked & bit, 0, "{signal} may reach {}", line("Name"));
            }
        }
    }
    window.free().unwrap();
    rank.finalize().unwrap();
    std::process::exit(0);
}

/// Prints what a process gets that a rank starts, before and after the rank's init, and starts a
/// Longshore program.
fn children() {
    let look = "env | grep -E '^[A-Z_]*=[0-9a-f]{64}$'; ls -l /proc/self/fd | sed -n 's/.* -> //p'";
    let child = |when: &str| {
        let output = Command::new("sh").args(["-c", look]).output().unwrap();
        for line in String::from_utf8(output.stdout).unwrap().lines() {
            println!("{when} {line}");
        }
    };
    child("before");
    let rank = longshore::init().unwrap();
    child("after");
    let words = ["--exact", "rank", "--nocapture", "-q"];
    let own = std::env::current_exe().unwrap();
    let status = Command::new(own).args(words).env("ROLE", "alone").status().unwrap();
    assert!(status.success());
    rank.finalize().unwrap();
    let again = longshore::init().map(|_| ()).unwrap_err().to_string();
    assert!(again.contains("this process has joined its job before"), "{again}");
    std::process::exit(0);
}

fn alone() {
    let rank = longshore::init().unwrap();
    println!("rank {} of {}", rank.world().rank(), rank.world().size());
    rank.finalize().unwrap();
    std::process::exit(0);
}

/// The numbers of this process's threads.
fn threads() -> Vec<i32> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    tasks.filter_map(|task| task.file_name().to_str()?.parse().ok()).collect()
}

/// The processor time of this process with all its threads.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, words) = stat.rsplit_once(')').unwrap();
    let ticks = words.split_whitespace().skip(11).take(2).map(|word| word.parse::<u64>().unwrap());
    // Linux counts hundredths of a second on every architecture.
    Duration::from_millis(10 * ticks.sum::<u64>())
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
    expect_slow_leaver(&["-n", "3"]);
}

/// Runs three ranks, of which rank 1 leaves first and prints why. That rank decides how the job
/// ends.
fn expect_slow_leaver(options: &[&str]) {
    let words = options.iter().map(|&word| word.to_owned()).collect();
    let finished = run(&[words, role("leave_slowly")].concat());
    let line = "longshore: rank 1 (env) exited with status 3, during its own work; \
                ending the other 2 ranks";
    finished.expect(3, &[line]);
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
    // With `report`, the other rank prints the cause too.
    let reported = ["--on-death", "report", "-n", "2"].map(str::to_owned).to_vec();
    let stderr = run(&[reported, role("exit")].concat()).stderr;
    let cause = "rank 1 is gone: dead, exited with status 0, without finalize";
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
        &["longshore: part 2: can't start ./no-such-program: No such file or directory (os error 2)"],
    );
    run(&["no-such-program"]).expect(
        127,
        &["longshore: part 1: can't start no-such-program: no folder of PATH has a program of this name; \
           a program in the working directory is ./no-such-program"],
    );
    let forbidden = run(&["/etc/passwd"]);
    forbidden.expect(
        126,
        &["longshore: part 1: can't start /etc/passwd: Permission denied (os error 13)"],
    );
}

/// A copy of this test's program with changed bytes.
fn changed_program(name: &str, change: impl FnOnce(&mut Vec<u8>)) -> String {
    let path = std::env::temp_dir().join(format!("longshore-{name}-{}", std::process::id()));
    std::fs::copy(std::env::current_exe().unwrap(), &path).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    change(&mut bytes);
    std::fs::write(&path, bytes).unwrap();
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
        (&["--start", "ip netns exec", "true"], "not provided:\n  --host"),
        (&["--host", "a", "--start", "sh -c 'exec", "true"], "a quote isn't closed"),
        (&["--host", "a", "--start", " ", "true"], "expected a command"),
        (&["--env", "=1", "true"], "-x =1: expected NAME=VALUE"),
        (&["-x", "LONGSHORE_ARCH=s390x", "true"], "use --arch"),
        (&["-x", "LONGSHORE_ROUTE=message", "true"], "use --route"),
        (&["--timeout", "0", "true"], "a number of seconds above 0"),
        (&["--on-death", "cry", "true"], "expected end or report"),
        (&["--route", "direct", "true"], "expected best or message"),
    ] {
        let finished = run(words);
        assert_eq!(finished.status, 2, "{words:?}");
        assert!(finished.stderr.contains(explanation), "{words:?}: {}", finished.stderr);
    }
    let crowd = run(&["true", ":", "-n", "4096", "true"]);
    assert_eq!(crowd.status, 1);
    assert!(crowd.stderr.contains("1 to 4096 are possible"), "{}", crowd.stderr);
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
fn output_is_forwarded_by_whole_lines() {
    let script =
        "for i in 1 2 3 4 5 6 7 8 9; do printf \"$PMI_RANK a\"; printf 'b '; printf 'c\\n'; done";
    let labelled = sh(&["--label", "-n", "4"], script).lines();
    assert_eq!(labelled.len(), 36);
    for line in &labelled {
        let (label, rank) = (&line[..4], &line[4..5]);
        assert_eq!((label, &line[4..]), (&*format!("[{rank}] "), &*format!("{rank} ab c")));
    }
    assert!(sh(&["-n", "4"], script).lines().iter().all(|line| line.ends_with(" ab c")));
}

#[test]
fn output_is_forwarded_byte_by_byte() {
    let script = r"printf '\001\377\r\000x\n\nend'; printf 'error' >&2";
    let plain = sh(&[], script);
    assert_eq!(plain.stdout, b"\x01\xff\r\0x\n\nend");
    assert_eq!(plain.stderr, "error");
    let labelled = sh(&["--label"], script);
    assert_eq!(labelled.stdout, b"[0] \x01\xff\r\0x\n[0] \n[0] end\n");
    assert_eq!(labelled.stderr, "[0] error\n");
}

#[test]
fn large_output_waits_for_a_slow_reader() {
    let mut run = start(&["-n", "3", "sh", "-c", "yes | head -c 2000000"]);
    thread::sleep(Duration::from_millis(200));
    assert!(run.child.try_wait().unwrap().is_none(), "it should wait for its reader");
    assert_eq!(run.finish().stdout.len(), 6_000_000);
}

#[test]
fn a_closed_reader_ends_the_writers_by_sigpipe() {
    let mut run = start(&["-n", "2", "yes"]);
    drop(run.child.stdout.take());
    assert_eq!(run.finish().status, 128 + 13);
}

#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let script = "exec \"$@\" > /dev/full";
    let finished =
        run(&["sh", "-c", script, "sh", env!("CARGO_BIN_EXE_longshore"), "run", "echo", "lost"]);
    assert_eq!(finished.status, 1);
    assert!(finished.stderr.contains("writing to standard output: No space left on device"));
}

#[test]
fn input_goes_to_rank_0() {
    let mut run = start(&["--label", "-n", "3", "cat"]);
    run.child.stdin.take().unwrap().write_all(b"one\ntwo").unwrap();
    assert_eq!(run.finish().stdout, b"[0] one\n[0] two\n");
}

#[test]
fn a_timeout_ends_the_job() {
    let finished = sh(&["-n", "2", "--timeout", "0.2"], "trap '' TERM; sleep 60; sleep 60");
    finished.expect(
        124,
        &["longshore: the job took longer than 0.2 s; ending rank 0 (before init), rank 1 (before init)"],
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
fn a_reported_death_lets_the_others_go_on() {
    // The barrier completes when the launcher has noticed the death.
    let script = "[ $PMI_RANK = 0 ] && kill -KILL $$; echo cmd=barrier_in >&$PMI_FD; \
                  read -r line <&$PMI_FD; echo $PMI_RANK; [ $PMI_RANK = 1 ]";
    let finished = run(&["-n", "3", "--on-death", "report", "bash", "-c", script]);
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

/// A script that reports SIGTERM. It is for jobs with `--on-death report`: otherwise the first rank
/// to exit ends the others before their traps have run.
const REPORTS_TERM: &str =
    "trap 'echo got it; exit 4' TERM; echo waits >&2; while true; do sleep 0.01; done";

#[test]
fn signals_are_forwarded() {
    let mut run = start(&["-n", "2", "--on-death", "report", "sh", "-c", REPORTS_TERM]);
    let _stderr = run.await_waiting(2);
    kill(run.pid(), Signal::SIGTERM).unwrap();
    let finished = run.finish();
    assert_eq!((finished.status, finished.lines()), (4, vec!["got it".to_owned(); 2]));
}

#[test]
fn ranks_block_no_signals() {
    // Without a shell in between, which could unblock inherited signals.
    let finished = run(&["-n", "1", "grep", "SigBlk", "/proc/self/status"]);
    let mask = finished.lines().concat();
    let digits = mask.trim_start_matches("SigBlk:").trim();
    assert_eq!((finished.status, u64::from_str_radix(digits, 16)), (0, Ok(0)), "{mask}");
}

#[test]
fn a_second_interrupt_kills() {
    let script = "trap 'echo waits >&2' INT; echo waits >&2; while true; do sleep 0.01; done";
    let mut run = start(&["-n", "2", "sh", "-c", script]);
    let mut stderr = run.await_waiting(2);
    let interrupt = |pid| kill(pid, Signal::SIGINT).unwrap();
    interrupt(run.pid());
    await_waiting(&mut stderr, 2);
    thread::sleep(Duration::from_millis(150)); // a second signal doesn't count if it comes sooner
    interrupt(run.pid());
    assert_eq!(run.finish().status, 137);
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

/// Starts ranks from a terminal whose session the launcher leads, as `ssh -t` does, and closes the
/// terminal.
#[test]
fn ranks_end_when_their_terminal_is_lost() {
    // No other process may inherit this end of the terminal.
    let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    let master = posix_openpt(flags).unwrap();
    grantpt(&master).and_then(|()| unlockpt(&master)).unwrap();
    let mut options = std::fs::File::options();
    let slave = options.read(true).write(true).custom_flags(OFlag::O_NOCTTY.bits());
    let slave = slave.open(ptsname_r(&master).unwrap()).unwrap();
    let plain = ["sh", "-c", "echo waits >&2; sleep 60; true"].map(str::to_owned).to_vec();
    let words = [vec!["-n".to_owned(), "2".to_owned()], role("wait"), vec![":".to_owned()], plain];
    let mut command = Command::new("setsid");
    command.args(["--ctty", "env", "--default-signal", env!("CARGO_BIN_EXE_longshore"), "run"]);
    command.args(words.concat()).stdin(slave.try_clone().unwrap());
    let mut run = support::adopt(command.stdout(slave).stderr(Stdio::piped()));
    drop(command); // with its copies of the terminal's end
    let mut stderr = run.await_waiting(3);
    drop(master);
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("ended by SIGHUP"), "{rest}");
    assert_eq!(run.finish().status, 129, "{rest}");
}

/// Neither the secret nor the segment reaches a process that a rank starts.
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
