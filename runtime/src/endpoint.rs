//! Which of libfabric's endpoints serve two ranks of different hosts: a pure function of what their hellos said, since trying ends
//! in hangs and silent corruption.

use std::fmt;

use shipable::Architecture;
use shipable::arch::ByteOrder;

/// What serves a pair besides the connections that carry its frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// Connections alone (FI_EP_MSG): they work between machines of any byte order and word size.
    Connected,
    /// An endpoint without connections (FI_EP_RDM) as well, by which each accesses the other's memory.
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

/// The endpoints for two ranks of these architectures by a provider, and why.
///
/// ```
/// use longshore::Architecture;
/// use longshore::endpoint::{Endpoint, choose};
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
        // fi_write and fi_read of a 32-bit initiator are broken in tcp.
        _ if word(here) < 8 => (Endpoint::Connected, "32-bit initiators send messages"),
        // A size_t is passed for a socklen_t: fi_enable fails.
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
    fn each_pair_has_its_endpoint() {
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
