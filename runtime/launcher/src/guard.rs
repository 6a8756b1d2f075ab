//! Two processes that watch each other, so that a job ends when its launcher ends for any reason.
//!
//! The process that the user started forks. It becomes the *front*: it forwards signals to its
//! child, waits for it, and exits with its status. The child is the launcher proper. Both are
//! subreapers: processes that ranks started and left running become children of the launcher, or of
//! the front if the launcher has ended, and that parent kills them.
//!
//! - If the front is killed, the launcher notices and kills the ranks and their leftover processes.
//! - If the launcher is killed, the kernel kills the ranks, and the front kills the leftovers.
//! - If both are killed at once, the kernel kills the ranks, also those behind a wrapper program:
//!   each has a lifeline. Only leftovers that are no ranks can survive.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd, siginfo};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::{Pid, getpid, getppid, getsid};

use super::process::{PidFd, SingleThreaded, fork_single_threaded, keep_ended_children};

/// The signals that the launcher forwards to the ranks, except those that it ignores.
const FORWARDED: [Signal; 6] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
];

/// The longest time without an exit among killed processes before `sweep` abandons them.
const SWEEP: Duration = Duration::from_millis(500);

/// The outside influences on a launcher: the signals sent to it, and the end of its front process.
#[derive(Default)]
pub struct Control {
    pub(super) signals: Option<SignalFd>,
    pub(super) front: Option<PidFd>,
}

impl Control {
    /// No outside influence, for a launcher inside a larger program, such as a test or a bench.
    pub fn none() -> Control {
        Control::default()
    }
}

/// Runs `launch` in a child process that the caller watches, and returns the child's status.
///
/// Only the caller returns: the child exits when `launch` has finished. If a signal kills the
/// child, the caller reports that under the child's `name`, such as "the launcher".
///
/// # Errors
/// The process has other threads, can't fork, or can't be watched.
pub fn guarded(name: &str, launch: impl FnOnce(&Control) -> u8) -> io::Result<u8> {
    let checked = SingleThreaded::check()?;
    keep_ended_children()?; // before the fork below makes the first child
    // The launcher must not read signals that it ignores, but the kernel queues a blocked signal
    // even if it is ignored.
    let ignored = ignored();
    let mask: SigSet =
        FORWARDED.into_iter().filter(|&each| ignored & 1 << (each as i32 - 1) == 0).collect();
    mask.thread_block()?; // in front and launcher; `Process::start` clears the mask for ranks
    // In the background, a read from the terminal must fail instead of stopping the launcher.
    SigSet::from_iter([Signal::SIGTTIN]).thread_block()?;
    let signals = SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
    let older = children(); // made before this process, perhaps a shell, executed the launcher
    prctl::set_child_subreaper(true)?; // not inherited by the fork
    let front = getpid();
    let forked = fork_single_threaded(checked).inspect_err(|_| {
        let _ = mask.thread_unblock(); // the error of the fork matters more
    });
    let Some(launcher) = forked? else {
        let status = serve(front, signals, launch).unwrap_or_else(|error| {
            eprintln!("longshore: {error}");
            1
        });
        sweep(&BTreeSet::new());
        std::process::exit(status.into());
    };
    let end = PidFd::open(launcher)?;
    let status = loop {
        let mut polled = [
            PollFd::new(end.as_fd(), PollFlags::POLLIN),
            PollFd::new(signals.as_fd(), PollFlags::POLLIN),
        ];
        match poll(&mut polled, PollTimeout::NONE) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        if polled[0].any() == Some(true) {
            break waitpid(launcher, None)?;
        }
        while let Some(information) = signals.read_signal()? {
            if let Some(signal) = to_forward(&information) {
                kill(launcher, signal)?;
            }
        }
    };
    sweep(&older);
    match status {
        WaitStatus::Exited(_, status) => Ok(status as u8),
        WaitStatus::Signaled(_, signal, _) => {
            eprintln!("longshore: {name} was killed by {signal}; its ranks have been killed");
            Ok(128 + signal as u8)
        }
        status => Err(io::Error::other(format!("waiting for {name}: {status:?}"))),
    }
}

/// Whether this process ignores the signal with number `signal`. For example, a process that nohup
/// started ignores SIGHUP.
///
/// ```
/// use longshore_launcher::is_ignored;
///
/// assert!(!is_ignored(9)); // no process can ignore SIGKILL
/// ```
pub fn is_ignored(signal: i32) -> bool {
    (1..=64).contains(&signal) && ignored() & 1 << (signal - 1) != 0
}

/// The signals that this process ignores, one bit each; the lowest bit is signal 1.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

fn serve(front: Pid, signals: SignalFd, launch: impl FnOnce(&Control) -> u8) -> io::Result<u8> {
    prctl::set_child_subreaper(true)?;
    let handle = PidFd::open(front);
    if getppid() != front {
        return Err(io::Error::other("the front process has ended"));
    }
    Ok(launch(&Control { signals: Some(signals), front: Some(handle?) }))
}

/// The signal, or `None` if the ranks of this host get it too. The kernel sends the signals of the
/// terminal to the whole foreground process group. It includes the ranks, and they must not get
/// them twice. But when the terminal is lost, only the session's leader gets SIGHUP.
pub(super) fn to_forward(information: &siginfo) -> Option<Signal> {
    const SI_KERNEL: i32 = 0x80;
    let signal = Signal::try_from(information.ssi_signo as i32).ok()?;
    let is_leader = || getsid(None) == Ok(getpid());
    let has_reached_all =
        information.ssi_code == SI_KERNEL && !(signal == Signal::SIGHUP && is_leader());
    (!has_reached_all).then_some(signal)
}

/// Kills and reaps the processes that ranks left running, which are now children of this process.
///
/// The children in `older` existed before the job and stay. The children of a killed process become
/// children of this process, so the loop continues until none is left. A number can't be reused
/// before its process is reaped, so `kill` can't hit another process.
fn sweep(older: &BTreeSet<Pid>) {
    let mut end = Instant::now() + SWEEP;
    loop {
        let left = &children() - older;
        if left.is_empty() {
            return;
        }
        for child in left {
            let _ = kill(child, Signal::SIGKILL); // fails if the child has changed its user
            if !matches!(waitpid(child, Some(WaitPidFlag::WNOHANG)), Ok(WaitStatus::StillAlive)) {
                end = Instant::now() + SWEEP;
            }
        }
        // Checked after a pass over all children, because this process itself may have been
        // suspended past the deadline.
        if end <= Instant::now() {
            return;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// The children of this process, from /proc.
fn children() -> BTreeSet<Pid> {
    // Most often there are none, and waitid finds that out faster than a scan of /proc.
    let ended = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    if waitid(Id::All, ended) == Err(Errno::ECHILD) {
        return BTreeSet::new();
    }
    let parent = getpid().to_string();
    let Ok(entries) = std::fs::read_dir("/proc") else { return BTreeSet::new() };
    entries
        .flatten()
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            // "pid (name) state parent ...", where the name may contain blanks and parentheses.
            let mut words = stat.rsplit_once(')')?.1.split_ascii_whitespace();
            (words.nth(1)? == parent).then(|| Pid::from_raw(pid))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_threads_is_refused() {
        let error = thread::spawn(|| guarded("the launcher", |_| 0)).join().unwrap().unwrap_err();
        assert!(error.to_string().contains("before its process makes threads"), "{error}");
    }
}
