//! Inherited descriptors, whose numbers the launcher puts into the environment.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};

/// Returns an owned duplicate of descriptor `number`, and sets close-on-exec on both: the children
/// of a rank are not ranks and must not inherit them.
///
/// The original stays open until the process ends, because another part of the program may use the
/// same number.
pub(super) fn duplicate(number: RawFd) -> io::Result<OwnedFd> {
    if number < 0 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: the number isn't -1, the only value that the type excludes. If the descriptor isn't
    // open, the `fcntl` below fails and the borrow ends. This process never closes an inherited
    // descriptor, so an open one stays open for the time of the borrow.
    let original = unsafe { BorrowedFd::borrow_raw(number) };
    fcntl(original, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
    original.try_clone_to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn duplicates_are_closed_on_exec_and_bad_numbers_refused() {
        let file = std::fs::File::open("/dev/null").unwrap();
        fcntl(&file, FcntlArg::F_SETFD(FdFlag::empty())).unwrap();
        let copy = duplicate(file.as_raw_fd()).unwrap();
        for fd in [file.into(), copy] {
            assert_eq!(fcntl(&fd, FcntlArg::F_GETFD).unwrap(), FdFlag::FD_CLOEXEC.bits());
        }
        assert!(duplicate(-1).is_err());
        assert!(duplicate(RawFd::MAX).is_err());
    }
}
