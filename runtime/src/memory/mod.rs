//! Joins memory to programs.
//!
//! A [`Span`] is memory without a lifetime, so that the engine can hold it while an operation is in
//! flight. Five rules make its use sound:
//!
//! 1. Memory of windows is kept alive by the [`Exposed`] that gave the span. The holder of the span
//!    holds the [`Exposed`] too.
//! 2. Memory that a user lends is lent in a [`scope`]. Its drain waits until nothing holds a lent
//!    span before the scope ends, even if the body fails, panics, or leaks its arguments.
//! 3. Memory that a user points to ([`raw`](crate::raw)) is kept alive by the caller until the
//!    operation is complete, by the contract of the unsafe calls. Only the bytes of the elements
//!    are accessed, never the gaps between them.
//! 4. A span's bytes are accessed through pointers with a checked length, never as a slice, since
//!    others may write them at any time.
//! 5. The exception are the elements of a [`Source`](crate::Source) or [`Sink`](crate::Sink) that
//!    are one run. The system reads and writes them as a slice. A source's memory is lent for
//!    reading, or belongs to its operation; a sink's is lent exclusively, or belongs to its
//!    operation. So nobody else writes the first, or uses the second, while the slice is there.
//!
//! This module has a safe interface over its unsafe code. [`raw`](crate::raw) and the windows'
//! calls without scopes are unsafe themselves, since their callers promise the third rule.

mod barrier;
mod combine;
mod exposed;
mod held;
mod lease;
mod loan;
mod placed;
mod span;

pub(crate) use barrier::full_barrier;
pub(crate) use exposed::{Exposed, Registered};
pub use held::{Elements, Memory};
pub(crate) use held::{Room, sealed};
pub(crate) use lease::{Keeper, Lease};
pub use loan::{Loan, LoanMut};
pub(crate) use loan::{Scope, scope};
pub(crate) use placed::{Placed, Places};
pub(crate) use span::{Side, Span, Typed, zeroed};
