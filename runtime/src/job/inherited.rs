//! Descriptors that a launcher hands down by number.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};

/// An owned duplicate of descriptor `number`, closed on exec, and marks the original so too: the
/// children of a rank are no ranks.
///
/// The original stays open until the process ends, since another part of the program may hold the
/// same number.
pub(super) fn duplicate(number: RawFd) -> io::Result<OwnedFd> {
    if number < 0 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: the number isn't -1, the one value that the type excludes. Whether it is open is for
    // the first call below to say, and nothing in this process closes an inherited descriptor.
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
