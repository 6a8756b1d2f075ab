//! A lease: memory that an operation uses, together with the keeper that keeps it alive.

use std::any::Any;
use std::sync::Arc;

use super::exposed::Exposed;
use super::span::Span;

/// The owner that keeps leased memory alive.
pub(crate) enum Keeper {
    /// The lender of the memory, which waits until the engine has let go of it.
    Lender,
    /// The program, by its promise: the memory stays until the request of the operation has ended.
    Program,
    /// Memory of a window or of a request, kept by each holder of this.
    Memory { _memory: Arc<Exposed> },
    /// Any other owner, kept by each holder of this.
    Owner { _owner: Arc<dyn Any + Send + Sync> },
}

impl Keeper {
    /// An owner whose memory the span of a lease is.
    pub(crate) fn owner<T: Any + Send + Sync>(owner: &Arc<T>) -> Keeper {
        Keeper::Owner { _owner: owner.clone() }
    }

    /// Whether the memory's lender keeps it.
    pub(crate) fn is_lender(&self) -> bool {
        matches!(self, Keeper::Lender)
    }
}

/// A span, and what keeps its memory alive. Whoever holds the lease may use the span. If the
/// program keeps the memory, it does so until the engine has ended the operation, also of a request
/// that was dropped.
pub(crate) struct Lease {
    span: Span,
    _keeper: Keeper,
}

impl Lease {
    #[inline]
    pub(crate) fn new(span: Span, keeper: Keeper) -> Lease {
        Lease { span, _keeper: keeper }
    }

    /// Memory whose lender keeps it until the operation is done.
    #[inline]
    pub(crate) fn lent(span: Span) -> Lease {
        Lease::new(span, Keeper::Lender)
    }

    /// The memory, to be used while the lease is held.
    #[inline]
    pub(crate) fn span(&self) -> Span {
        self.span
    }

    /// The memory, and what keeps it alive.
    pub(crate) fn into_parts(self) -> (Span, Keeper) {
        (self.span, self._keeper)
    }

    /// The lease of a part of its memory: `span`, which lies in it.
    pub(crate) fn of_part(self, span: Span) -> Lease {
        Lease { span, ..self }
    }
}
