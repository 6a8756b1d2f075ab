//! The stacks of this host's ranks, for a report of a job that hangs.
//!
//! A debugger of the system reads them: gdb, or eu-stack of elfutils. It works for programs in any
//! language. A rank needs no handler, which could wait for a lock that the hang holds. The debugger
//! stops the rank for as long as it reads. If it isn't allowed to attach, the state of each thread
//! comes from /proc; without a debugger, it does if it was asked for.
//!
//! Few debuggers run at a time ([`AT_A_TIME`]), since each reads the program's debug information.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fmt::Write;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::signal::Signal;
use nix::unistd::pipe2;

use super::message::Event;
use super::process::{Descriptors, Process, Session};

/// The most debuggers of a host that run at the same time.
const AT_A_TIME: usize = 4;
/// The most bytes that are read from a debugger.
const LIMIT: usize = 64 << 10;
/// The frames of each thread that a debugger prints.
const FRAMES: &str = "40";

/// A rank of this host and its process.
type Traced = (u32, u32);

/// The debuggers of this host.
#[derive(Default)]
pub(super) struct Stacks {
    waiting: VecDeque<Traced>,
    running: Vec<Tracer>,
    /// Whether the state of each thread is reported where there is no debugger.
    states: bool,
}

/// A debugger that reads the stacks of a rank. Without a debugger, the pipe is at its end.
struct Tracer {
    traced: Traced,
    debugger: Option<(&'static str, Process)>,
    pipe: OwnedFd,
    output: Vec<u8>,
}

impl Stacks {
    /// Asks for the stacks of ranks, given with their processes. A rank whose stacks are being read
    /// isn't asked twice. Each of the ranks gets an [`Event::Stacks`], which is empty without a
    /// debugger unless `states` of threads are wanted then.
    pub(super) fn ask(&mut self, ranks: impl Iterator<Item = Traced>, states: bool) {
        self.states = states;
        for traced in ranks {
            let is_known = self.waiting.contains(&traced)
                || self.running.iter().any(|tracer| tracer.traced == traced);
            if !is_known {
                self.waiting.push_back(traced);
            }
        }
        self.start();
    }

    /// The descriptors to poll for reading, with their ranks.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = (u32, BorrowedFd<'_>)> {
        self.running.iter().map(|tracer| (tracer.traced.0, tracer.pipe.as_fd()))
    }

    /// Reads once from the debugger of a rank, which polls readable. At its end, the rank's stacks
    /// are an event.
    pub(super) fn handle(&mut self, rank: u32, events: &mut Vec<Event>) {
        let Some(index) = self.running.iter().position(|tracer| tracer.traced.0 == rank) else {
            return;
        };
        let tracer = &mut self.running[index];
        let mut bytes = [0; 16 << 10];
        match nix::unistd::read(&tracer.pipe, &mut bytes) {
            Ok(count @ 1..) => {
                let room = LIMIT.saturating_sub(tracer.output.len());
                return tracer.output.extend_from_slice(&bytes[..count.min(room)]);
            }
            Err(Errno::EINTR | Errno::EAGAIN) => return,
            Ok(0) | Err(_) => {}
        }
        events.push(self.running.swap_remove(index).finish(self.states));
        self.start();
    }

    /// Ends all debuggers. The kernel lets go of the ranks. Those whose stacks aren't there get no
    /// event.
    pub(super) fn end(&mut self) {
        self.waiting.clear();
        self.running.drain(..).filter_map(|tracer| tracer.debugger).for_each(|(_, it)| end(it));
    }

    /// Starts debuggers for waiting ranks.
    fn start(&mut self) {
        while self.running.len() < AT_A_TIME {
            let Some(traced) = self.waiting.pop_front() else { return };
            // Without a pipe there are no stacks, and the launcher names the rank.
            self.running.extend(Tracer::start(traced));
        }
    }
}

/// Ends the debuggers, so that none outlives the job.
impl Drop for Stacks {
    fn drop(&mut self) {
        self.end();
    }
}

fn end(debugger: Process) {
    debugger.signal(Signal::SIGKILL);
    let _ = debugger.reap(); // an error leaves nothing to do
}

impl Tracer {
    fn start(traced: Traced) -> io::Result<Tracer> {
        let output = Vec::new();
        match debugger(traced.1) {
            Some((name, process, pipe)) => {
                Ok(Tracer { traced, debugger: Some((name, process)), pipe, output })
            }
            None => {
                let (pipe, _) = pipe2(OFlag::O_CLOEXEC)?;
                Ok(Tracer { traced, debugger: None, pipe, output })
            }
        }
    }

    /// The stacks that it printed.
    fn finish(self, states: bool) -> Event {
        let (rank, pid) = self.traced;
        let Some((name, process)) = self.debugger else {
            let states = states.then(|| threads(pid, "there is no debugger"));
            return Event::Stacks(rank, states.unwrap_or_default());
        };
        // It has closed its output, so it has no more to say.
        end(process);
        let output = String::from_utf8_lossy(&self.output);
        let text = match stacks(&output) {
            Some(stacks) => format!("process {pid}, by {name}:\n{stacks}"),
            None => {
                let last = output.lines().rfind(|line| !line.trim().is_empty());
                threads(pid, &format!("{name} said: {}", last.unwrap_or("nothing").trim()))
            }
        };
        Event::Stacks(rank, text)
    }
}

/// Starts a debugger that prints the stacks of a process. `None` if there is none.
fn debugger(pid: u32) -> Option<(&'static str, Process, OwnedFd)> {
    let (name, path) =
        ["gdb", "eu-stack"].into_iter().find_map(|name| Some((name, found(name)?)))?;
    let pid = pid.to_string();
    let frames = format!("thread apply all backtrace {FRAMES}");
    let words: &[&str] = match name {
        // Without the user's settings, and without debug information from the network.
        "gdb" => {
            &["-nx", "-batch", "-iex", "set debuginfod enabled off", "-p", &pid, "-ex", &frames]
        }
        _ => &["-n", FRAMES, "-p", &pid],
    };
    // Its errors go where its output goes: they say why it couldn't attach.
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "exec \"$0\" \"$@\" 2>&1"]).arg(path).args(words);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let enough = Descriptors::Enough;
    let started = Process::start(&mut command, &[], enough, Session::Own, None, false);
    let mut process = started.ok()?;
    match process.child().stdout.take() {
        Some(pipe) => Some((name, process, pipe.into())),
        None => {
            end(process);
            None
        }
    }
}

/// The path of a program in a folder of PATH.
fn found(name: &str) -> Option<OsString> {
    let path = std::env::var_os("PATH")?;
    let mut paths = std::env::split_paths(&path).map(|folder| folder.join(name));
    paths.find(|path| path.is_file()).map(OsString::from)
}

/// The lines of a debugger's output that are stacks: threads, their frames, and the frames' places
/// where they go on in the next line. `None` if there is no frame.
fn stacks(output: &str) -> Option<String> {
    let is_start = |line: &str| {
        line.starts_with('#') || line.starts_with("Thread ") || line.starts_with("TID ")
    };
    let mut text = String::new();
    let mut continues = false;
    for line in output.lines() {
        continues = is_start(line) || continues && line.starts_with("    ");
        if continues {
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }
    text.lines().any(|line| line.starts_with('#')).then_some(text)
}

/// The state of each thread of a process, as the kernel shows it, and why there is no more.
fn threads(pid: u32, why: &str) -> String {
    let mut text = format!("process {pid}, from /proc ({why}; gdb or eu-stack reads stacks):\n");
    let folder = format!("/proc/{pid}/task");
    let mut threads: Vec<u32> = fs::read_dir(&folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    threads.sort_unstable();
    for thread in threads {
        let folder = Path::new(&folder).join(thread.to_string());
        let read = |name: &str| -> io::Result<String> {
            Ok(fs::read_to_string(folder.join(name))?.trim().to_owned())
        };
        let name = read("comm").unwrap_or_default();
        let status = read("status").unwrap_or_default();
        let state = status.lines().find_map(|line| line.strip_prefix("State:"));
        let state = state.map_or("state unknown", str::trim);
        let place = read("wchan").ok().filter(|place| !place.is_empty() && place != "0");
        let place = place.map_or(String::new(), |place| format!(", in the kernel at {place}"));
        _ = writeln!(text, "thread {thread} {name:?}: {state}{place}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_are_told_from_other_lines_of_a_debugger() {
        let output = "[New LWP 8]\n0x7f in poll () from libc.so\n\nThread 2 (LWP 8 \"p\"):\n#0  a ()\n    at a.c:1\n#1  b ()\n[Inferior 1 detached]\n    x\n";
        let expected = "Thread 2 (LWP 8 \"p\"):\n#0  a ()\n    at a.c:1\n#1  b ()\n";
        assert_eq!(stacks(output).as_deref(), Some(expected));
        assert_eq!(stacks("ptrace: Operation not permitted.\n"), None);
    }

    #[test]
    fn threads_have_their_state_without_a_debugger() {
        let text = threads(std::process::id(), "there is no debugger");
        assert!(text.contains("(there is no debugger; gdb or eu-stack reads stacks)"), "{text}");
        assert!(text.lines().any(|line| line.contains(": R (running)")), "{text}");
    }
}
