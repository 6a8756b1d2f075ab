//! The libfabric endpoints between two ranks on different hosts. They are chosen by a pure function
//! of both hello frames, because an endpoint that doesn't suit both may hang or corrupt data.

use std::fmt;

use shipable::Architecture;
use shipable::arch::ByteOrder;

/// The endpoints of a pair of ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// Only connections (FI_EP_MSG). They work between machines of any byte order and word size.
    Connected,
    /// Also a connectionless endpoint (FI_EP_RDM), by which each rank accesses the other's memory.
    Datagram,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Endpoint::Connected => "FI_EP_MSG",
            Endpoint::Datagram => "FI_EP_MSG and FI_EP_RDM",
        })
    }
}

/// The endpoints for two ranks of these architectures over a provider, with the reason.
///
/// ```
/// use longshore_job::endpoint::{Endpoint, choose};
/// use shipable::Architecture;
///
/// let (endpoint, why) = choose("tcp", &Architecture::X86_64, &Architecture::S390X);
/// assert_eq!((endpoint, why), (Endpoint::Connected, "byte orders differ"));
/// ```
pub fn choose(
    provider: &str,
    here: &Architecture,
    there: &Architecture,
) -> (Endpoint, &'static str) {
    let word = |of: &Architecture| of.pointer().size;
    let big = |of: &Architecture| of.order() == ByteOrder::Big;
    match provider {
        _ if big(here) != big(there) => (Endpoint::Connected, "byte orders differ"),
        _ if word(here) != word(there) => (Endpoint::Connected, "word sizes differ"),
        // libfabric's tcp provider: fi_write and fi_read are broken for 32-bit initiators.
        _ if word(here) < 8 => (Endpoint::Connected, "32-bit initiators send messages"),
        // The tcp provider passes a size_t for a socklen_t, so fi_enable fails.
        "tcp" if big(here) => {
            (Endpoint::Connected, "tcp has no FI_EP_RDM on 64-bit big-endian machines")
        }
        _ => (Endpoint::Datagram, "equal byte order and 64-bit words"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_follow_from_both_architectures() {
        use Architecture as A;
        use Endpoint::{Connected, Datagram};
        for (provider, here, there, expected) in [
            ("tcp", A::X86_64, A::X86_64, Datagram),
            ("tcp", A::X86_64, A::AARCH64, Datagram),
            ("tcp", A::X86_64, A::I686, Connected),
            ("tcp", A::X86_64, A::S390X, Connected),
            ("tcp", A::I686, A::I686, Connected),
            ("tcp", A::I686, A::S390X, Connected),
            ("tcp", A::S390X, A::S390X, Connected),
            ("tcp", A::M68K, A::M68K, Connected),
            ("verbs", A::X86_64, A::X86_64, Datagram),
            ("verbs", A::X86_64, A::S390X, Connected),
            ("verbs", A::S390X, A::S390X, Datagram),
        ] {
            for (one, other) in [(&here, &there), (&there, &here)] {
                let found = choose(provider, one, other);
                assert_eq!(found.0, expected, "{provider}: {one} and {other}: {}", found.1);
            }
        }
    }
}
