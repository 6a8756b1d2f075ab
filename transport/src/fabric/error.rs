//! Errors of a provider's calls, and how long a shortage of resources may last.

use std::fmt;
use std::time::{Duration, Instant};

/// The longest pause between two refusals that count as one series. After a longer pause, nobody
/// has tried.
const LULL: Duration = Duration::from_secs(1);

/// A call that a provider refused, or an operation that failed in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct CallError {
    /// The provider, as libfabric names it.
    pub provider: String,
    /// The name of the call.
    pub call: &'static str,
    /// The rank at the other end, if there is one and it is known.
    pub peer: Option<u32>,
    /// The error number of libfabric, as a positive number.
    pub code: i32,
    /// The text of libfabric for the error number.
    pub why: String,
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { provider, call, peer, code, why } = self;
        write!(f, "libfabric's provider {provider}: {call}")?;
        if let Some(peer) = peer {
            write!(f, " with rank {peer}")?;
        }
        write!(f, ": {why} ({code})")
    }
}

impl CallError {
    /// Whether this process is short of descriptors or memory. Such an error isn't the peer's
    /// fault.
    pub(super) fn is_shortage(&self) -> bool {
        matches!(self.code, libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::ENOBUFS)
    }

    /// This error, with `peer` as the rank at the other end.
    pub(super) fn with(self, peer: u32) -> Self {
        Self { peer: Some(peer), ..self }
    }
}

/// A series of refusals for lack of room or resources: its first and its last time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refusals {
    pub since: Instant,
    pub last: Instant,
}

impl Refusals {
    /// Adds a refusal to the series, or begins a new series.
    pub(super) fn add(before: Option<Refusals>, now: Instant) -> Refusals {
        let before = before.filter(|before| now.duration_since(before.last) <= LULL);
        Refusals { since: before.map_or(now, |before| before.since), last: now }
    }

    /// The duration of the series.
    pub(super) fn tried(&self) -> Duration {
        self.last.duration_since(self.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_without_tries_begins_a_new_series_of_refusals() {
        let (start, step) = (Instant::now(), LULL / 2);
        let first = Refusals::add(None, start);
        let second = Refusals::add(Some(first), start + step);
        assert_eq!(second, Refusals { since: start, last: start + step });
        let later = second.last + LULL + step;
        assert_eq!(Refusals::add(Some(second), later), Refusals { since: later, last: later });
    }
}
