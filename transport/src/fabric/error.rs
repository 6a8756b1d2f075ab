//! What goes wrong in a provider.

use std::fmt;
use std::time::{Duration, Instant};

/// Refusals further apart say nothing of the time between: nobody tried.
const LULL: Duration = Duration::from_secs(1);

/// A call that a provider refused, or an operation that failed in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct CallError {
    /// The provider, as libfabric names it.
    pub provider: String,
    /// The call.
    pub call: &'static str,
    /// The rank at the other end, where there is one and it is known.
    pub peer: Option<u32>,
    /// libfabric's error number, positive.
    pub code: i32,
    /// What libfabric says of it.
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
    /// Whether this process is short of descriptors or memory, which says nothing of who is at the other end.
    pub(super) fn is_shortage(&self) -> bool {
        matches!(self.code, libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::ENOBUFS)
    }

    /// Likewise, with this rank at the other end.
    pub(super) fn with(self, peer: u32) -> Self {
        Self { peer: Some(peer), ..self }
    }
}

/// The first and the last time of those at which the provider had no room for something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refusals {
    pub since: Instant,
    pub last: Instant,
}

impl Refusals {
    /// With one more.
    pub(super) fn add(before: Option<Refusals>, now: Instant) -> Refusals {
        let before = before.filter(|before| now.duration_since(before.last) <= LULL);
        Refusals { since: before.map_or(now, |before| before.since), last: now }
    }

    /// For how long it has been tried.
    pub(super) fn tried(&self) -> Duration {
        self.last.duration_since(self.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_count_while_somebody_tries() {
        let (start, step) = (Instant::now(), LULL / 2);
        let first = Refusals::add(None, start);
        let second = Refusals::add(Some(first), start + step);
        assert_eq!(second, Refusals { since: start, last: start + step });
        let later = second.last + LULL + step;
        assert_eq!(Refusals::add(Some(second), later), Refusals { since: later, last: later });
    }
}
