//! Owners that keep memory alive while the engine reads or writes it.

use std::sync::Arc;

use super::completion::Ticket;
use crate::memory::Exposed;

/// The owner of memory that the engine reads or writes.
pub(crate) enum Keep {
    /// The lender of the memory, which waits until the engine has let go of it.
    Lender,
    /// Shared memory of a window, kept by each holder of this.
    Shared { _memory: Arc<Exposed> },
    /// The room for one element in a ticket, kept by each holder of this.
    Room { _room: Arc<Ticket> },
    /// The room for one element in a ticket. The caller that waits for the element by itself learns
    /// of it by the ticket.
    Waiter(Arc<Ticket>),
}
