//! Starting a rank's process so that it can't outlive its launcher.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::prctl;
use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};
use nix::sys::signal::{SigHandler, SigSet, Signal, kill, signal};
use nix::unistd::{ForkResult, Pid, fork, getpid, getppid, setsid};

/// A running process.
pub(super) struct Process {
    child: Child,
    end: PidFd,
    session: Session,
}

/// The limit on this process's open descriptors, of which a launcher needs some for each rank or host.
#[derive(Clone, Copy)]
pub(super) enum Descriptors {
    /// It was high enough.
    Enough,
    /// It was raised, for the launcher alone: programs that use select(2) count on a low one.
    Raised { from: rlim_t, most: rlim_t },
}

impl Descriptors {
    /// What a child takes: its process, and three pipes, or a connection and two.
    const CHILD: u32 = 4;
    /// What a launcher has open besides, and while it starts a child.
    const SPARE: u32 = 64;

    /// Raises the limit to what so many children need, or as far as it goes.
    pub(super) fn allow(children: usize) -> io::Result<Descriptors> {
        let (from, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
        let children = u32::try_from(children).unwrap_or(u32::MAX);
        let needed = children.saturating_mul(Descriptors::CHILD).saturating_add(Descriptors::SPARE);
        let needed = rlim_t::from(needed).min(most);
        if from >= needed {
            return Ok(Descriptors::Enough);
        }
        setrlimit(Resource::RLIMIT_NOFILE, needed, most)?;
        Ok(Descriptors::Raised { from, most })
    }
}

/// The session of a started process, which decides whose signals reach it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Session {
    /// The launcher's: a terminal's reach it, and all that it starts.
    Launcher,
    /// Its own: a terminal's don't.
    Own,
    /// Likewise, and the launcher's reach all that it starts, as a terminal's would.
    OwnGroup,
}

/// A descriptor that is readable once a process has ended.
pub(super) struct PidFd(OwnedFd);

impl Process {
    /// Starts `command` with the descriptors `inherited` open under their own numbers.
    ///
    /// The kernel kills it when the calling *thread* ends, however that happens; a prefix such as
    /// qemu-user keeps that, since it survives exec.
    pub(super) fn start(
        command: &mut Command,
        inherited: &[BorrowedFd<'_>],
        descriptors: Descriptors,
        session: Session,
    ) -> io::Result<Process> {
        let launcher = getpid();
        let numbers: Vec<_> = inherited.iter().map(AsRawFd::as_raw_fd).collect();
        let prepare = move || {
            prctl::set_pdeathsig(Signal::SIGKILL)?;
            // A guarded launcher blocks what it forwards, and a mask survives exec.
            SigSet::empty().thread_set_mask()?;
            if getppid() != launcher {
                return Err(Errno::ESRCH.into()); // it died before the line above
            }
            for &number in &numbers {
                // SAFETY: `inherited` borrows it until the child has made its own copy by forking.
                let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
                fcntl(descriptor, FcntlArg::F_SETFD(FdFlag::empty()))?;
            }
            if session != Session::Launcher {
                setsid()?;
            }
            if let Descriptors::Raised { from, most } = descriptors {
                setrlimit(Resource::RLIMIT_NOFILE, from, most)?;
            }
            Ok(())
        };
        // SAFETY: between fork and exec it makes a few system calls and neither allocates nor locks.
        unsafe { command.pre_exec(prepare) };
        let mut child = command.spawn()?;
        match PidFd::open(Pid::from_raw(child.id() as i32)) {
            Ok(end) => Ok(Process { child, end, session }),
            Err(error) => {
                child.kill()?;
                child.wait()?;
                Err(error)
            }
        }
    }

    pub(super) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Sends it a signal. One that has ended but wasn't reaped takes no notice.
    pub(super) fn signal(&self, signal: Signal) {
        // Its number can't belong to another process before `reap`. The one failure left is a process
        // that took on another user's identity, which is then beyond our reach.
        let number = self.child.id() as i32;
        let whom = if self.session == Session::OwnGroup { -number } else { number };
        let _ = kill(Pid::from_raw(whom), signal);
    }

    /// Waits for its end.
    pub(super) fn reap(mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }

    pub(super) fn end(&self) -> &PidFd {
        &self.end
    }
}

impl PidFd {
    /// A handle of process `pid`, a child or the parent of the caller.
    pub(super) fn open(pid: Pid) -> io::Result<PidFd> {
        // SAFETY: pidfd_open takes two integers and reads no memory of ours.
        let number = unsafe { libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0) };
        let number = Errno::result(number)?;
        // SAFETY: the kernel just made this descriptor, and nothing else knows it.
        Ok(PidFd(unsafe { OwnedFd::from_raw_fd(number as i32) }))
    }
}

impl AsFd for PidFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Proof that the process has one thread.
pub(super) struct SingleThreaded(());

impl SingleThreaded {
    /// # Errors
    /// The process has other threads: a forked child would wait for ever for locks that they hold.
    pub(super) fn check() -> io::Result<SingleThreaded> {
        match std::fs::read_dir("/proc/self/task")?.count() {
            1 => Ok(SingleThreaded(())),
            threads => Err(io::Error::other(format!(
                "a launcher starts before its process makes threads; here are {threads}"
            ))),
        }
    }
}

/// Has ended children wait to be reaped, also where whoever started this process ignores SIGCHLD, which survives exec.
pub(super) fn keep_ended_children() -> io::Result<()> {
    // SAFETY: it installs no handler, so no code of ours runs in a signal's place.
    unsafe { signal(Signal::SIGCHLD, SigHandler::SigDfl) }?;
    Ok(())
}

/// Forks: `Some(child)` in the caller, `None` in the child, which goes on from here. The caller has made no thread since the
/// check.
///
/// # Errors
/// The process can't fork.
pub(super) fn fork_single_threaded(_: SingleThreaded) -> io::Result<Option<Pid>> {
    // SAFETY: this is the process's only thread, so the child's memory is in order.
    match unsafe { fork() }? {
        ForkResult::Parent { child } => Ok(Some(child)),
        ForkResult::Child => Ok(None),
    }
}
