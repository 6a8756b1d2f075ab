//! How a rank's process ended, and what that means.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use nix::sys::signal::Signal;

use super::server::Standing;

/// How a rank ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// With status 0, and after finalize where it had joined.
    Finished,
    /// With another status.
    Exited(u8),
    /// By signal.
    Killed(i32),
    /// With status 0, but without finalize.
    Unfinalized,
    /// With status 0 and without init, while others wait for it in theirs.
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

    /// The job's exit status where this is its first failure, as mpiexec and shells have it.
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

/// How a process ended that is no rank.
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
    fn causes_and_their_statuses() {
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
