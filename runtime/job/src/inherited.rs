//! Descriptors that the launcher passes: the PMI-1 connection, whose number is in the environment,
//! and those that come over that connection.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::libc;
use nix::sys::signal::Signal;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
use nix::sys::stat::{SFlag, fstat};
use nix::unistd::getpid;

use super::Error;

/// The command of fcntl(2) that chooses the signal of O_ASYNC. The crate `libc` lacks it for the
/// GNU C library. Its number is the same on all architectures but PA-RISC.
const F_SETSIG: libc::c_int = 10;

/// Whether this process has taken its connection.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Takes the connection with descriptor `number` for this process. `/dev/null` stays under the
/// number, and the children of this process inherit that: they are no ranks. Returns `None` in such
/// a child.
///
/// # Errors
/// The descriptor isn't open, or this process has taken it before. `AlreadyExists` if another
/// process that has inherited it has taken it and runs.
pub(super) fn take(number: RawFd) -> Result<Option<OwnedFd>, Error> {
    if number < 0 {
        return Err(Error::Launcher(io::ErrorKind::InvalidInput.into()));
    }
    let failed = |errno: Errno| Error::Launcher(errno.into());
    // SAFETY: the number isn't -1, the only value that the type excludes. If the descriptor isn't
    // open, the `fstat` below fails and the borrow ends. This process never closes the inherited
    // descriptor, so an open one stays open for the time of the borrow.
    let original = unsafe { BorrowedFd::borrow_raw(number) };
    let kind = SFlag::from_bits_truncate(fstat(original).map_err(failed)?.st_mode) & SFlag::S_IFMT;
    if TAKEN.swap(true, Ordering::Relaxed) {
        return Err(Error::Twice);
    }
    if kind != SFlag::S_IFSOCK {
        return Ok(None);
    }
    let taken = original.try_clone_to_owned().map_err(Error::Launcher)?;
    let null = File::open("/dev/null").map_err(Error::Launcher)?;
    uninterrupted(|| {
        // SAFETY: a system call that replaces the descriptor `number`, which is open and inherited:
        // no value of this process owns it. Borrows of it, such as `original`, stay valid.
        Errno::result(unsafe { libc::dup2(null.as_raw_fd(), number) })
    })
    .map_err(failed)?;
    lock(&taken)?;
    Ok(Some(taken))
}

/// Locks a connection for this process, until it ends or closes a descriptor of the connection.
/// Processes that have inherited the same connection would otherwise read each other's replies, and
/// wait for their own for ever.
fn lock(socket: &OwnedFd) -> Result<(), Error> {
    // SAFETY: all bytes zero are a valid value of this C structure of numbers.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_WRLCK as libc::c_short;
    match fcntl(socket, FcntlArg::F_SETLK(&lock)) {
        Err(Errno::EAGAIN | Errno::EACCES) => {
            Err(Error::Launcher(io::ErrorKind::AlreadyExists.into()))
        }
        // A system that doesn't lock sockets can't tell.
        _ => Ok(()),
    }
}

/// The result of a system call, which is repeated while signals interrupt it. A program's handler
/// may be set without SA_RESTART, and some calls aren't restarted at all.
pub(super) fn uninterrupted<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::EINTR) => {}
            outcome => return outcome,
        }
    }
}

/// Receives bytes with descriptors from a socket. The descriptors are closed on exec.
pub(super) fn receive(
    socket: &impl AsRawFd,
    bytes: &mut [u8],
) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = nix::cmsg_space!([RawFd; 3]);
    let mut parts = [io::IoSliceMut::new(bytes)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let message = loop {
        // A message that was interrupted has left nothing in the buffers.
        match recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut space), flags) {
            Err(Errno::EINTR) => {}
            received => break received?,
        }
    };
    let mut descriptors = Vec::new();
    for part in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(numbers) = part {
            // SAFETY: the kernel has just created these descriptors, and no other value owns them.
            let owned = numbers.into_iter().map(|number| unsafe { OwnedFd::from_raw_fd(number) });
            descriptors.extend(owned);
        }
    }
    Ok((message.bytes, descriptors))
}

/// Has the kernel kill this process as soon as nobody can write to the pipe `lifeline` any more.
/// Only the launcher of this host can.
pub(super) fn die_with(lifeline: &OwnedFd) -> io::Result<()> {
    for (command, value) in
        [(libc::F_SETOWN, getpid().as_raw()), (F_SETSIG, Signal::SIGKILL as libc::c_int)]
    {
        // SAFETY: a system call on an open descriptor. Both commands take a number.
        Errno::result(unsafe { libc::fcntl(lifeline.as_raw_fd(), command, value) })?;
    }
    fcntl(lifeline, FcntlArg::F_SETFL(OFlag::O_ASYNC | OFlag::O_NONBLOCK))?;
    // The launcher may have ended before.
    match uninterrupted(|| nix::unistd::read(lifeline, &mut [0])) {
        Err(Errno::EAGAIN) => Ok(()),
        Err(error) => Err(error.into()),
        Ok(_) => Err(io::Error::other("the launcher has ended")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    /// All in one test, since a process takes its connection once.
    #[test]
    fn a_connection_is_taken_once_and_leaves_nothing_to_children() {
        assert!(take(-1).is_err());
        assert!(take(RawFd::MAX).is_err());
        // As inherited: no value of this process owns it.
        let (ours, theirs) = UnixStream::pair().unwrap();
        let number = std::os::fd::IntoRawFd::into_raw_fd(theirs);
        let taken = take(number).unwrap().expect("a socket");
        let flags = fcntl(&taken, FcntlArg::F_GETFD).unwrap();
        assert_eq!(flags, libc::FD_CLOEXEC);
        drop((ours, taken));
        let left = std::fs::read_link(format!("/proc/self/fd/{number}")).unwrap();
        assert_eq!(left, std::path::Path::new("/dev/null"));
        let again = take(number).unwrap_err();
        assert!(again.to_string().contains("joined its job before"), "{again}");
    }
}
