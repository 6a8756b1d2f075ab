//! Memory that users lend: what they offer, and the scope in which the engine may hold it.
//!
//! Nothing here is unsafe, but the second of the module's rules rests on these lifetimes and on the drain.

use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use shipable::Element;

use super::span::Span;

/// A time in which memory may be lent to the engine; see [`scope`]. As in [`std::thread::scope`], `'scope` is longer than
/// the body and shorter than `'env`.
pub(crate) struct Scope<'scope, 'env: 'scope> {
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

impl<'scope> Scope<'scope, '_> {
    /// A scope for a body that leaves no span anywhere: what it calls is done when it returns.
    pub(crate) fn with<'env, R>(body: impl for<'s> FnOnce(&'s Scope<'s, 'env>) -> R) -> R {
        body(&Scope { scope: PhantomData, env: PhantomData })
    }

    /// Lends memory to be read, for the rest of the scope.
    #[inline]
    pub(crate) fn lend(&self, loan: Loan<'scope>) -> Span {
        loan.span
    }

    /// Lends memory to be written, for the rest of the scope.
    #[inline]
    pub(crate) fn lend_mut(&self, loan: LoanMut<'scope>) -> Span {
        loan.span
    }
}

/// Runs `body` in a scope in which it may lend memory, then `drain`, which has to return only once nothing holds a span
/// that was lent; it is told whether the body panicked. The body's panic goes on after the drain; one of the drain ends
/// the process.
pub(crate) fn scope<'env, R>(
    drain: impl FnOnce(bool),
    body: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R,
) -> R {
    let scope = Scope { scope: PhantomData, env: PhantomData };
    let result = catch_unwind(AssertUnwindSafe(|| body(&scope)));
    let bomb = Bomb;
    drain(result.is_err());
    std::mem::forget(bomb);
    result.unwrap_or_else(|panic| resume_unwind(panic))
}

/// Memory that is about to vanish may still be written to: nothing may run on.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        std::process::abort();
    }
}

/// Memory offered for reading.
#[derive(Clone, Copy)]
pub struct Loan<'a> {
    span: Span,
    lender: PhantomData<&'a [u8]>,
}

/// Memory offered for writing.
pub struct LoanMut<'a> {
    span: Span,
    lender: PhantomData<&'a mut [u8]>,
}

impl<'a> Loan<'a> {
    #[inline]
    pub(crate) fn new<T: Element>(memory: &'a [T]) -> Loan<'a> {
        Loan { span: Span::of(memory.as_ptr().cast_mut(), memory.len()), lender: PhantomData }
    }
}

impl Loan<'_> {
    /// Memory that a user points to, and keeps.
    pub(crate) fn pointed(span: Span) -> Self {
        Loan { span, lender: PhantomData }
    }
}

impl LoanMut<'_> {
    /// The same memory, for a shorter time.
    pub(crate) fn again(&mut self) -> LoanMut<'_> {
        LoanMut { span: self.span, lender: PhantomData }
    }

    /// Memory that a user points to, and keeps.
    pub(crate) fn pointed(span: Span) -> Self {
        LoanMut { span, lender: PhantomData }
    }
}

impl<'a> LoanMut<'a> {
    #[inline]
    pub(crate) fn new<T: Element>(memory: &'a mut [T]) -> LoanMut<'a> {
        LoanMut { span: Span::of(memory.as_mut_ptr(), memory.len()), lender: PhantomData }
    }
}
