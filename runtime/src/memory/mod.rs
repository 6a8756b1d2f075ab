//! Joins memory to programs.
//!
//! A [`Span`] is memory without a lifetime, so that the engine can hold it while an operation is under way. Four things
//! make its use sound:
//!
//! - memory of windows is held by the [`Exposed`] that gave the span, and whoever keeps the span keeps that too;
//! - memory that a user lends is lent in a [`scope`], whose drain lets go of every span before the scope ends, whatever
//!   the body does: return, fail, panic, or leak what it was given;
//! - memory that a user points to ([`raw`](crate::raw)) is theirs to keep until the operation is complete, as the
//!   unsafe call's contract says: what its elements consist of, which is all that is reached, and not what lies between;
//! - a span's bytes are reached by pointers with a checked length, never as a slice: others may write them at any time.
//!
//! What is unsafe about it is behind the safe surface of this module. [`raw`](crate::raw) and the windows' calls without
//! scopes, whose callers promise the third, are unsafe on their own account.

mod barrier;
mod combine;
mod exposed;
mod held;
mod loan;
mod span;

pub(crate) use barrier::full_barrier;
pub(crate) use exposed::{Exposed, Registered};
pub use held::{Elements, Memory};
pub(crate) use held::{Room, sealed};
pub use loan::{Loan, LoanMut};
pub(crate) use loan::{Scope, scope};
pub(crate) use span::{Span, Typed, zeroed};
