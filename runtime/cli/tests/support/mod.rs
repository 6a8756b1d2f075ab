//! `longshore run` under test: starts jobs, signals and observes them from outside.
#![allow(dead_code)] // no test binary uses all of it

pub mod program;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, bounded};
use nix::unistd::Pid;

/// A time that only a hang exceeds, also on the slowest machine.
pub const HANG: Duration = Duration::from_secs(60);

/// A running `longshore run`. All processes of the job have its mark in their environment.
pub struct LaunchedJob {
    pub child: Child,
    mark: String,
}

/// The result of `longshore run` after its end.
pub struct Finished {
    pub status: i32,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

/// Starts `longshore run` with the options in LONGSHORE_TEST_OPTIONS and with `words`.
///
/// In LONGSHORE_TEST_OPTIONS, `_` stands for a blank: `--host a:2,b:99 --start ip_netns_exec` runs
/// all jobs on two hosts.
pub fn start<S: AsRef<str>>(words: &[S]) -> LaunchedJob {
    let options = std::env::var("LONGSHORE_TEST_OPTIONS").unwrap_or_default();
    // A script's background processes ignore SIGINT. The launcher must not inherit that.
    let mut command = Command::new("env");
    command
        .args(["--default-signal", env!("CARGO_BIN_EXE_longshore"), "run"])
        .args(options.split_whitespace().map(|word| word.replace('_', " ")))
        .args(words.iter().map(AsRef::as_ref));
    adopt(command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()))
}

/// Starts a command that becomes `longshore run`.
pub fn adopt(command: &mut Command) -> LaunchedJob {
    static MARKS: AtomicU32 = AtomicU32::new(0);
    let mark =
        format!("LONGSHORE_TEST={}.{}", std::process::id(), MARKS.fetch_add(1, Ordering::Relaxed));
    let (name, value) = mark.split_once('=').unwrap();
    LaunchedJob { child: command.env(name, value).spawn().unwrap(), mark }
}

/// Runs `longshore run` with `words` until its end.
pub fn run<S: AsRef<str>>(words: &[S]) -> Finished {
    start(words).finish()
}

/// Runs `longshore run` with a shell script as the program.
pub fn sh<'a>(options: &[&'a str], script: &'a str) -> Finished {
    run(&[options, &["sh", "-c", script]].concat())
}

impl LaunchedJob {
    pub fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id() as i32)
    }

    /// Waits for the end of the job, and checks that no process is left running.
    pub fn finish(mut self) -> Finished {
        drop(self.child.stdin.take());
        let stdout = reader(self.child.stdout.take());
        let stderr = reader(self.child.stderr.take());
        let start = Instant::now();
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None if start.elapsed() > HANG => {
                    self.child.kill().unwrap();
                    panic!("the job hangs");
                }
                None => thread::sleep(Duration::from_millis(2)),
            }
        };
        self.expect_nothing_left();
        let status = status.code().or(status.signal().map(|signal| -signal)).unwrap();
        // No process of the job is left that could keep the pipes open.
        let stderr = String::from_utf8_lossy(&stderr.recv_timeout(HANG).unwrap()).into_owned();
        Finished { status, stdout: stdout.recv_timeout(HANG).unwrap(), stderr }
    }

    /// The processes with the job's mark, except the started process itself.
    pub fn running(&self) -> BTreeSet<i32> {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let marked = processes.filter(|process| {
            let environment = fs::read(process.path().join("environ")).unwrap_or_default();
            environment.split(|&byte| byte == 0).any(|each| each == self.mark.as_bytes())
        });
        let ids = marked.filter_map(|process| process.file_name().to_str()?.parse().ok());
        ids.filter(|&id| id != self.pid().as_raw()).collect()
    }

    /// The files under /dev/shm that the job's processes map.
    pub fn shared_files(&self) -> Vec<String> {
        let processes = self.running().into_iter();
        let maps = processes.flat_map(|pid| fs::read_to_string(format!("/proc/{pid}/maps")));
        let lines = maps.flat_map(|map| map.lines().map(str::to_owned).collect::<Vec<_>>());
        lines.filter(|line| line.contains("/dev/shm/")).collect()
    }

    fn expect_nothing_left(&self) {
        let start = Instant::now();
        while !self.running().is_empty() {
            assert!(start.elapsed() < HANG / 4, "left running: {:?}", self.running());
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Reads standard error until `count` ranks have printed that they wait.
    pub fn await_waiting(&mut self, count: usize) -> BufReader<impl Read + use<>> {
        let mut stderr = BufReader::new(self.child.stderr.take().unwrap());
        await_waiting(&mut stderr, count);
        stderr
    }
}

/// Reads `stderr` until `count` ranks have printed that they wait. Lines of the launcher don't
/// count: its watchdog uses the same word.
pub fn await_waiting(stderr: &mut impl BufRead, count: usize) {
    let mut waiting = 0;
    while waiting < count {
        let mut line = String::new();
        assert_ne!(stderr.read_line(&mut line).unwrap(), 0, "the job ended early");
        waiting += usize::from(line.contains("waits") && !line.starts_with("longshore:"));
    }
}

/// Reads a pipe to its end in a thread of its own. The channel brings all bytes at the end.
pub fn reader(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, read) = bounded(1);
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            pipe.read_to_end(&mut bytes).unwrap();
        }
        // A test that has failed receives nothing.
        let _ = sender.send(bytes);
    });
    read
}

impl Finished {
    pub fn lines(&self) -> Vec<String> {
        String::from_utf8_lossy(&self.stdout).lines().map(str::to_owned).collect()
    }

    /// The messages of the launcher itself.
    pub fn messages(&self) -> Vec<&str> {
        self.stderr.lines().filter(|line| line.starts_with("longshore: ")).collect()
    }

    #[track_caller]
    pub fn expect(&self, status: i32, messages: &[&str]) {
        assert_eq!((self.status, self.messages()), (status, messages.to_vec()), "{}", self.stderr);
    }
}

/// The parent of a process; 0 if the process has ended.
pub fn parent(pid: i32) -> i32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let words = stat.rsplit_once(')').map_or("", |(_, words)| words);
    words.split_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// A variable in the environment of a process; empty if there is none.
pub fn variable(pid: i32, name: &str) -> String {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let text = String::from_utf8_lossy(&environment).into_owned();
    let value = text.split('\0').find_map(|each| each.strip_prefix(name)?.strip_prefix('='));
    value.unwrap_or_default().to_owned()
}
