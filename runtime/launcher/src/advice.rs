//! Advice about system errors that keep a job from starting.

use std::io;

use longshore_transport::SegmentError;
use nix::errno::Errno;

use super::limits::Limits;

/// The advice for a failed call, with a separator before it. Empty if there is none.
pub(super) fn of_call(error: &io::Error) -> String {
    let Some(number) = error.raw_os_error() else { return String::new() };
    match Errno::from_raw(number) {
        Errno::EMFILE | Errno::ENFILE => {
            "; raise the limit on open files (ulimit -n), or start fewer ranks of one host".into()
        }
        Errno::EAGAIN => {
            "; raise the limit on processes (ulimit -u), or start fewer ranks of one host".into()
        }
        Errno::ENOMEM | Errno::ENOSPC | Errno::EFBIG => {
            let limit = Limits::read().memory.map_or(String::new(), |bytes| {
                format!(", of which the control group grants {} MiB", bytes >> 20)
            });
            format!("; free memory of this host{limit}, or start fewer ranks of it")
        }
        Errno::ENOSYS | Errno::EPERM => {
            "; a container may forbid the call: allow it in the container's seccomp profile".into()
        }
        _ => String::new(),
    }
}

/// The advice for a segment that can't be made. The texts of other errors have theirs.
pub(super) fn of_segment(error: &SegmentError) -> String {
    match error {
        SegmentError::System { errno, .. } => of_call(&io::Error::from_raw_os_error(*errno)),
        _ => String::new(),
    }
}

/// The advice for a program that can't be started.
pub(super) fn of_program(error: &io::Error) -> String {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ENOENT) => {
            "; paths are relative to the ranks' working directory, which --wdir names".into()
        }
        Some(Errno::EACCES) => "; give a program that may be run (chmod +x)".into(),
        Some(_) => of_call(error),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_call_names_the_limit_to_raise() {
        let advice = |errno: Errno| of_call(&io::Error::from_raw_os_error(errno as i32));
        assert!(advice(Errno::EMFILE).contains("ulimit -n"));
        assert!(advice(Errno::EAGAIN).contains("ulimit -u"));
        assert!(advice(Errno::ENOMEM).starts_with("; free memory of this host"));
        assert_eq!(advice(Errno::EINVAL), "");
    }

    #[test]
    fn errors_with_a_text_of_their_own_get_no_advice() {
        assert_eq!(of_program(&io::Error::other("it is a program for m68k")), "");
        assert_eq!(of_segment(&SegmentError::NotARank), "");
    }
}
