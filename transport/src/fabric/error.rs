//! What goes wrong in a provider.

use std::fmt;

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
    /// Likewise, with this rank at the other end.
    pub(super) fn with(self, peer: u32) -> Self {
        Self { peer: Some(peer), ..self }
    }
}
