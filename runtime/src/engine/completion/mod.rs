//! The completion of this rank's operations: counters for all operations on a target, and tickets
//! for single ones.

mod ledger;
mod ticket;

pub(crate) use ledger::Ledger;
pub(crate) use ticket::Ticket;
pub(super) use ticket::Tickets;
