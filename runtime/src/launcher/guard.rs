//! Two processes that watch each other, so that a job ends with its launcher, however that ends.
//!
//! The process that the user started forks and stands *in front*: it passes signals on, waits, and
//! leaves with the launcher's status. Its child is the launcher proper. Both are subreapers: whatever a
//! rank started and left behind becomes a child of the launcher, or of the front once the launcher is
//! gone, and is killed there.
//!
//! - The front is killed: the launcher sees it and kills the ranks and what they left.
//! - The launcher is killed: the kernel kills the ranks, and the front what they left.
//! - Both are killed at once: the kernel kills the ranks; their children see a closed connection.

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
use nix::unistd::{Pid, getpid, getppid};

use super::process::{PidFd, SingleThreaded, fork_single_threaded, keep_ended_children};

/// Signals that the ranks get when the launcher gets them, but for those that it ignores.
const FORWARDED: [Signal; 6] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
];

/// How long a killed process may take to vanish before it is left behind.
const SWEEP: Duration = Duration::from_millis(500);

/// How a launcher is steered from outside: the signals sent to it, and the process in front of it.
#[derive(Default)]
pub struct Control {
    pub(super) signals: Option<SignalFd>,
    pub(super) front: Option<PidFd>,
}

impl Control {
    /// None at all, for a launcher inside a larger program, such as a test or a bench.
    pub fn none() -> Control {
        Control::default()
    }
}

/// Runs `launch` in a child that the caller watches, and gives back the status that it returned.
/// It returns in the caller alone.
///
/// # Errors
/// The process has other threads, can't fork, or can't be watched.
pub fn guarded(launch: impl FnOnce(&Control) -> u8) -> io::Result<u8> {
    let checked = SingleThreaded::check()?;
    keep_ended_children()?; // before there is one
    // The kernel keeps a signal that is blocked for whoever reads it, also where it is ignored.
    let ignored = ignored();
    let mask: SigSet =
        FORWARDED.into_iter().filter(|&each| ignored & 1 << (each as i32 - 1) == 0).collect();
    mask.thread_block()?; // in both; ranks start with an empty mask again
    // Input that a terminal has for another job is no input for this one, and no reason to stop.
    SigSet::from_iter([Signal::SIGTTIN]).thread_block()?;
    let signals = SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
    let older = children(); // of whatever this process was, a shell perhaps, before it became a launcher
    prctl::set_child_subreaper(true)?; // not inherited by the fork
    let front = getpid();
    let forked = fork_single_threaded(checked).inspect_err(|_| {
        let _ = mask.thread_unblock(); // there is an error to return already
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
            eprintln!("longshore: the launcher was killed by {signal}, and the ranks with it");
            Ok(128 + signal as u8)
        }
        status => Err(io::Error::other(format!("waiting for the launcher: {status:?}"))),
    }
}

/// Whether this process ignores the signal of this number, as one that nohup started does SIGHUP.
///
/// ```
/// use longshore::launcher::is_ignored;
///
/// assert!(!is_ignored(9)); // nobody can
/// ```
pub fn is_ignored(signal: i32) -> bool {
    (1..=64).contains(&signal) && ignored() & 1 << (signal - 1) != 0
}

/// The signals that this process ignores, a bit each, the lowest for number 1.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

fn serve(front: Pid, signals: SignalFd, launch: impl FnOnce(&Control) -> u8) -> io::Result<u8> {
    prctl::set_child_subreaper(true)?;
    let handle = PidFd::open(front);
    if getppid() != front {
        return Err(io::Error::other("the process in front is gone"));
    }
    Ok(launch(&Control { signals: Some(signals), front: Some(handle?) }))
}

/// The signal, unless the kernel sent it: what is typed at a terminal reaches the whole foreground
/// group, the ranks among them, and shouldn't reach them twice.
pub(super) fn to_forward(information: &siginfo) -> Option<Signal> {
    const SI_KERNEL: i32 = 0x80;
    let signal = Signal::try_from(information.ssi_signo as i32).ok()?;
    (information.ssi_code != SI_KERNEL).then_some(signal)
}

/// Kills the processes that ranks left behind, now children of this process as those `older` than the job are, and their
/// children as they follow. Each is reaped, so that no number is used twice.
fn sweep(older: &BTreeSet<Pid>) {
    let mut end = Instant::now() + SWEEP;
    loop {
        let left = &children() - older;
        if left.is_empty() {
            return;
        }
        for child in left {
            let _ = kill(child, Signal::SIGKILL); // it may be another user's by now
            if !matches!(waitpid(child, Some(WaitPidFlag::WNOHANG)), Ok(WaitStatus::StillAlive)) {
                end = Instant::now() + SWEEP;
            }
        }
        // Behind a look at all: this process may have been held up itself.
        if end <= Instant::now() {
            return;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// This process's children, as /proc tells.
fn children() -> BTreeSet<Pid> {
    // Mostly there are none, which the kernel says sooner.
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
            // "pid (name) state parent ...", and a name may hold anything
            let mut words = stat.rsplit_once(')')?.1.split_ascii_whitespace();
            (words.nth(1)? == parent).then(|| Pid::from_raw(pid))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_threads_is_told_so() {
        let error = thread::spawn(|| guarded(|_| 0)).join().unwrap().unwrap_err();
        assert!(error.to_string().contains("before its process makes threads"), "{error}");
    }
}
