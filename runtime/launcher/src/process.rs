//! Starts processes that can't outlive their launcher.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sched::sched_setaffinity;
use nix::sys::prctl;
use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};
use nix::sys::signal::{SigHandler, SigSet, Signal, kill, signal};
use nix::unistd::{ForkResult, Pid, fork, getpid, getppid, setsid};
use rustix::process::{PTracer, PidfdFlags, set_ptracer};

use super::binding::Cores;

/// A running process.
pub(super) struct Process {
    child: Child,
    end: PidFd,
    session: Session,
}

/// The limit on this process's open descriptors. A launcher needs several for each rank or host.
#[derive(Clone, Copy)]
pub(super) enum Descriptors {
    /// The limit was high enough.
    Enough,
    /// The limit was raised for the launcher only: programs that use select(2) rely on a low limit.
    Raised { from: rlim_t, most: rlim_t },
}

impl Descriptors {
    /// Descriptors for one child: its pidfd, its journal, and three pipes or a connection and three
    /// pipes.
    const CHILD: u32 = 6;
    /// Descriptors that a launcher uses itself, including those open while it starts a child.
    const SPARE: u32 = 64;

    /// Raises the limit to the need of `children` children, or to the hard limit if that is lower.
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

/// The session of a started process. The session decides which signals reach the process.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Session {
    /// The launcher's session. Signals of the terminal reach the process and its children.
    Launcher,
    /// A session of its own, which no signals of the terminal reach.
    Own,
    /// A session of its own. [`Process::signal`] reaches the process and its whole process group,
    /// as a signal of the terminal would.
    OwnGroup,
}

/// A pidfd: a descriptor that becomes readable when a process has ended.
pub(super) struct PidFd(OwnedFd);

impl Process {
    /// Starts `command` with the descriptors `inherited` open under their own numbers, bound to
    /// `cores` if there are any.
    ///
    /// The kernel kills the process when the calling *thread* ends for any reason. The setting
    /// survives exec, so it also holds if a wrapper such as qemu-user starts the program.
    ///
    /// With `traceable`, debuggers that the caller starts may attach to the process, even where the
    /// system lets only its ancestors do so (Yama's `ptrace_scope` 1).
    pub(super) fn start(
        command: &mut Command,
        inherited: &[BorrowedFd<'_>],
        descriptors: Descriptors,
        session: Session,
        cores: Option<Cores>,
        traceable: bool,
    ) -> io::Result<Process> {
        let launcher = getpid();
        let numbers: Vec<_> = inherited.iter().map(AsRawFd::as_raw_fd).collect();
        let prepare = move || {
            prctl::set_pdeathsig(Signal::SIGKILL)?;
            // A guarded launcher blocks the signals that it forwards, and the mask survives exec.
            SigSet::empty().thread_set_mask()?;
            if getppid() != launcher {
                return Err(Errno::ESRCH.into()); // the launcher died before `set_pdeathsig`
            }
            for &number in &numbers {
                // SAFETY: this runs in the forked child, which has its own copy of the descriptor:
                // `inherited` borrows the original until `spawn` below has forked.
                let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
                fcntl(descriptor, FcntlArg::F_SETFD(FdFlag::empty()))?;
            }
            if traceable {
                // It fails where the system has no such limit.
                let launcher = rustix::process::Pid::from_raw(launcher.as_raw());
                let _ = set_ptracer(launcher.map_or(PTracer::None, PTracer::ProcessID));
            }
            if session != Session::Launcher {
                setsid()?;
            }
            if let Some(cores) = &cores {
                sched_setaffinity(Pid::from_raw(0), cores.set())?;
            }
            if let Descriptors::Raised { from, most } = descriptors {
                setrlimit(Resource::RLIMIT_NOFILE, from, most)?;
            }
            Ok(())
        };
        // SAFETY: `prepare` runs between fork and exec. It makes only system calls, and it neither
        // allocates nor takes locks.
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

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal to the process. A process that has ended but wasn't reaped ignores it.
    pub(super) fn signal(&self, signal: Signal) {
        // No other process can have this number before `reap`. The call can still fail if the
        // process has changed its user, and then the launcher can't end it.
        let number = self.child.id() as i32;
        let recipient = if self.session == Session::OwnGroup { -number } else { number };
        let _ = kill(Pid::from_raw(recipient), signal);
    }

    /// Waits for the end of the process.
    pub(super) fn reap(mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }

    pub(super) fn end(&self) -> &PidFd {
        &self.end
    }
}

impl PidFd {
    /// Opens a pidfd of process `pid`, a child or the parent of the caller.
    pub(super) fn open(pid: Pid) -> io::Result<PidFd> {
        let pid = rustix::process::Pid::from_raw(pid.as_raw());
        let pid = pid.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(PidFd(rustix::process::pidfd_open(pid, PidfdFlags::empty())?))
    }
}

impl AsFd for PidFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Proof that the process had only one thread when [`check`](SingleThreaded::check) ran.
pub(super) struct SingleThreaded(());

impl SingleThreaded {
    /// Checks that the process has one thread.
    ///
    /// # Errors
    /// The process has other threads. A forked child would wait for ever for the locks they hold.
    pub(super) fn check() -> io::Result<SingleThreaded> {
        match std::fs::read_dir("/proc/self/task")?.count() {
            1 => Ok(SingleThreaded(())),
            threads => Err(io::Error::other(format!(
                "a launcher must start before its process makes threads; this process has {threads}"
            ))),
        }
    }
}

/// Sets SIGCHLD to its default, so that ended children remain until they are reaped.
///
/// A parent that ignores SIGCHLD passes that setting on through exec.
pub(super) fn keep_ended_children() -> io::Result<()> {
    // SAFETY: SIG_DFL installs no handler, so no code of this program runs in a signal context.
    unsafe { signal(Signal::SIGCHLD, SigHandler::SigDfl) }?;
    Ok(())
}

/// Forks. Returns `Some(child)` in the caller and `None` in the child. The caller must not have
/// made a thread since the check.
///
/// # Errors
/// The process can't fork.
pub(super) fn fork_single_threaded(_: SingleThreaded) -> io::Result<Option<Pid>> {
    // SAFETY: `SingleThreaded` proves that this is the only thread. No other thread can have held a
    // lock at the fork, so the child may run any code.
    match unsafe { fork() }? {
        ForkResult::Parent { child } => Ok(Some(child)),
        ForkResult::Child => Ok(None),
    }
}
