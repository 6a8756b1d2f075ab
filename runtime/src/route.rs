//! The choice of the route of operations: pure functions decide, and a `match` acts.

use std::fmt;

/// How an origin reaches a target's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Route {
    /// The origin loads from and stores to the target's memory, which it has mapped. Data that
    /// have other bytes at the target take messages.
    Direct,
    /// The memory belongs to another process of this host. The system copies the data of long puts
    /// and gets. All other operations take the target's mailbox, or messages.
    Peer,
    /// Puts and gets of few long runs access the target's registered memory over the network
    /// between hosts. All other operations take messages.
    Rdma,
    /// The data travel in frames, and their receiver converts them. This route always works.
    Message,
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Route::Direct => "direct",
            Route::Peer => "peer",
            Route::Rdma => "rdma",
            Route::Message => "message",
        })
    }
}

/// The facts that decide the route of one rank to another's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RouteFacts {
    /// The user wants only messages.
    pub message_only: bool,
    /// Data of some types have the same bytes at both ranks: which ones, each operation asks of its
    /// types ([`Relation`](shipable::Relation)).
    pub related: bool,
    /// The window's memory can be mapped, or is the origin's own.
    pub reachable: bool,
    /// The target is another process of this host, and the window isn't dynamic.
    pub beside: bool,
    /// The window's memory is registered, and an [endpoint](crate::endpoint) with remote access
    /// serves the two ranks.
    pub registered: bool,
}

/// Chooses the route by these facts.
pub(crate) fn choose(facts: RouteFacts) -> Route {
    match facts {
        RouteFacts { message_only: false, related: true, reachable: true, .. } => Route::Direct,
        RouteFacts { message_only: false, related: true, beside: true, .. } => Route::Peer,
        RouteFacts { message_only: false, related: true, registered: true, .. } => Route::Rdma,
        _ => Route::Message,
    }
}

/// The way of copying the data of a put or get by [`Route::Direct`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopyPlan {
    /// There are no data.
    Nothing,
    /// One run of bytes, at these displacements of the origin's and the target's memory.
    Run { origin: i64, target: i64, len: u64 },
    /// Two layouts, walked in step.
    Walk,
}

/// Plans the copy of `len` bytes. A displacement is given for a layout that is a single run.
pub(crate) fn plan_copy(len: u64, origin: Option<i64>, target: Option<i64>) -> CopyPlan {
    match (origin, target) {
        _ if len == 0 => CopyPlan::Nothing,
        (Some(origin), Some(target)) => CopyPlan::Run { origin, target, len },
        _ => CopyPlan::Walk,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_related_ranks_that_reach_the_memory_go_direct() {
        let direct = RouteFacts {
            message_only: false,
            related: true,
            reachable: true,
            beside: false,
            registered: false,
        };
        assert_eq!(choose(direct), Route::Direct);
        assert_eq!(choose(RouteFacts { message_only: true, ..direct }), Route::Message);
        assert_eq!(choose(RouteFacts { related: false, ..direct }), Route::Message);
        assert_eq!(choose(RouteFacts { reachable: false, ..direct }), Route::Message);
    }

    #[test]
    fn only_related_ranks_of_a_host_copy_each_others_memory() {
        let peer = RouteFacts {
            message_only: false,
            related: true,
            reachable: false,
            beside: true,
            registered: true,
        };
        assert_eq!(choose(peer), Route::Peer);
        assert_eq!(choose(RouteFacts { reachable: true, ..peer }), Route::Direct);
        assert_eq!(choose(RouteFacts { message_only: true, ..peer }), Route::Message);
        assert_eq!(choose(RouteFacts { related: false, ..peer }), Route::Message);
        assert_eq!(choose(RouteFacts { beside: false, ..peer }), Route::Rdma);
    }

    #[test]
    fn only_related_ranks_access_registered_memory() {
        let rdma = RouteFacts {
            message_only: false,
            related: true,
            reachable: false,
            beside: false,
            registered: true,
        };
        assert_eq!(choose(rdma), Route::Rdma);
        assert_eq!(choose(RouteFacts { reachable: true, ..rdma }), Route::Direct);
        assert_eq!(choose(RouteFacts { message_only: true, ..rdma }), Route::Message);
        assert_eq!(choose(RouteFacts { related: false, ..rdma }), Route::Message);
        assert_eq!(choose(RouteFacts { registered: false, ..rdma }), Route::Message);
    }

    #[test]
    fn only_single_runs_are_copied_as_runs() {
        assert_eq!(plan_copy(0, None, None), CopyPlan::Nothing);
        assert_eq!(plan_copy(8, Some(1), Some(2)), CopyPlan::Run { origin: 1, target: 2, len: 8 });
        assert_eq!(plan_copy(8, None, Some(2)), CopyPlan::Walk);
    }
}
