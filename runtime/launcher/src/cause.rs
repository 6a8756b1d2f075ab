//! The cause of the end of a rank's process, with its exit status and description.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use nix::sys::signal::Signal;

use super::server::Standing;

/// The cause of a rank's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// Exit status 0, after finalize or without init.
    Finished,
    /// An exit status other than 0.
    Exited(u8),
    /// A signal.
    Killed(i32),
    /// Exit status 0 after init, but without finalize.
    Unfinalized,
    /// Exit status 0 without init, while other ranks wait for this rank in their init.
    Absent,
}

impl Cause {
    pub(super) fn new(status: ExitStatus, standing: Standing) -> Cause {
        match (status.code(), status.signal()) {
            (Some(0), _) if standing == Standing::Joined => Cause::Unfinalized,
            (Some(0), _) => Cause::Finished,
            (Some(code), _) => Cause::Exited(code as u8),
            (None, signal) => Cause::Killed(signal.unwrap_or_default()),
        }
    }

    /// The exit status of a job whose first failure this is: the one that mpiexec and shells use.
    pub(super) fn status(self) -> u8 {
        match self {
            Cause::Finished => 0,
            Cause::Exited(code) => code,
            Cause::Killed(signal) => 128 + signal as u8,
            Cause::Unfinalized | Cause::Absent => 1,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Cause::Finished => f.write_str("finished"),
            Cause::Exited(code) => write!(f, "exited with status {code}"),
            Cause::Killed(number) => match Signal::try_from(number) {
                Ok(signal) => write!(f, "was killed by {signal}"),
                Err(_) => write!(f, "was killed by signal {number}"),
            },
            Cause::Unfinalized => f.write_str("exited without finalize"),
            Cause::Absent => f.write_str("exited without init, for which other ranks wait"),
        }
    }
}

/// Describes the end of a process that is not a rank.
pub(super) fn describe(status: ExitStatus) -> String {
    match status.success() {
        true => "exited with status 0".to_owned(),
        false => Cause::new(status, Standing::Outside).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause(raw: i32, standing: Standing) -> Cause {
        Cause::new(ExitStatus::from_raw(raw), standing)
    }

    #[test]
    fn each_cause_has_a_status_and_a_description() {
        for (raw, standing, status, text) in [
            (0, Standing::Outside, 0, "finished"),
            (0, Standing::Finalized, 0, "finished"),
            (0, Standing::Joined, 1, "exited without finalize"),
            (3 << 8, Standing::Finalized, 3, "exited with status 3"),
            (9, Standing::Joined, 137, "was killed by SIGKILL"),
            (128 | 11, Standing::Joined, 139, "was killed by SIGSEGV"),
            (40, Standing::Joined, 168, "was killed by signal 40"),
        ] {
            let cause = cause(raw, standing);
            assert_eq!((cause.status(), cause.to_string().as_str()), (status, text));
        }
    }
}
