//! Which way an operation takes: decided by pure functions, carried out by a `match`.

use std::fmt;

/// How an origin reaches a target's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Route {
    /// The origin copies to or from the target's memory, which it has mapped.
    Direct,
    /// Puts and gets of few long runs access the target's memory, which is registered, over the network between hosts; all
    /// else takes messages.
    Rdma,
    /// The data travel in frames, and whoever receives them makes them right. Always works.
    Message,
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Route::Direct => "direct",
            Route::Rdma => "rdma",
            Route::Message => "message",
        })
    }
}

/// What decides on the route of a pair of ranks to a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    /// The user wants messages only.
    pub message_only: bool,
    /// One of the two has another representation than its machine.
    pub emulated: bool,
    /// Both have the same.
    pub same_representation: bool,
    /// The window's memory can be mapped, or is the origin's own.
    pub reachable: bool,
    /// It is registered, and an [endpoint](crate::endpoint) for that serves the pair.
    pub registered: bool,
}

/// The route of a pair.
pub(crate) fn choose(pair: Pair) -> Route {
    match pair {
        Pair {
            message_only: false,
            emulated: false,
            same_representation: true,
            reachable: true,
            ..
        } => Route::Direct,
        Pair {
            message_only: false,
            emulated: false,
            same_representation: true,
            registered: true,
            ..
        } => Route::Rdma,
        _ => Route::Message,
    }
}

/// What a put or get by [`Route::Direct`] comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// There is no data.
    Nothing,
    /// One run of bytes, at these displacements of the origin's and the target's memory.
    Run { origin: i64, target: i64, len: u64 },
    /// Two layouts, walked in step.
    Walk,
}

/// Plans an operation of `len` bytes whose layouts are single runs at these displacements, or aren't.
pub(crate) fn plan(len: u64, origin: Option<i64>, target: Option<i64>) -> Plan {
    match (origin, target) {
        _ if len == 0 => Plan::Nothing,
        (Some(origin), Some(target)) => Plan::Run { origin, target, len },
        _ => Plan::Walk,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_like_ranks_that_can_reach_the_memory_go_direct() {
        let direct = Pair {
            message_only: false,
            emulated: false,
            same_representation: true,
            reachable: true,
            registered: false,
        };
        assert_eq!(choose(direct), Route::Direct);
        assert_eq!(choose(Pair { message_only: true, ..direct }), Route::Message);
        assert_eq!(choose(Pair { emulated: true, ..direct }), Route::Message);
        assert_eq!(choose(Pair { same_representation: false, ..direct }), Route::Message);
        assert_eq!(choose(Pair { reachable: false, ..direct }), Route::Message);
    }

    #[test]
    fn only_like_ranks_access_registered_memory() {
        let rdma = Pair {
            message_only: false,
            emulated: false,
            same_representation: true,
            reachable: false,
            registered: true,
        };
        assert_eq!(choose(rdma), Route::Rdma);
        assert_eq!(choose(Pair { reachable: true, ..rdma }), Route::Direct);
        assert_eq!(choose(Pair { message_only: true, ..rdma }), Route::Message);
        assert_eq!(choose(Pair { emulated: true, ..rdma }), Route::Message);
        assert_eq!(choose(Pair { same_representation: false, ..rdma }), Route::Message);
        assert_eq!(choose(Pair { registered: false, ..rdma }), Route::Message);
    }

    #[test]
    fn plans() {
        assert_eq!(plan(0, None, None), Plan::Nothing);
        assert_eq!(plan(8, Some(1), Some(2)), Plan::Run { origin: 1, target: 2, len: 8 });
        assert_eq!(plan(8, None, Some(2)), Plan::Walk);
    }
}
