//! Memory that users lend: loans, and the scope in which the engine may hold them.
//!
//! Nothing here is unsafe, but the soundness of lent memory rests on these lifetimes and on the
//! drain. This is the second rule in the header of [`memory`](super).

use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use shipable::Element;

use super::span::Span;

/// A time in which memory may be lent to the engine; see [`scope`]. As in [`std::thread::scope`],
/// `'scope` is longer than the body and shorter than `'env`.
pub(crate) struct Scope<'scope, 'env: 'scope> {
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

impl<'scope> Scope<'scope, '_> {
    /// Runs a body in a scope. The body must leave no span anywhere: every operation that it calls
    /// is done when it returns.
    pub(crate) fn with<'env, R>(body: impl for<'s> FnOnce(&'s Scope<'s, 'env>) -> R) -> R {
        body(&Scope { scope: PhantomData, env: PhantomData })
    }

    /// Lends memory for reading until the scope ends.
    #[inline]
    pub(crate) fn lend(&self, loan: Loan<'scope>) -> Span {
        loan.span
    }

    /// Lends memory for writing until the scope ends.
    #[inline]
    pub(crate) fn lend_mut(&self, loan: LoanMut<'scope>) -> Span {
        loan.span
    }
}

/// Runs `body` in a scope in which it may lend memory, and then `drain`.
///
/// `drain` must return only when nothing holds a lent span any more. Its argument is true if the
/// body panicked. A panic of the body continues after the drain. A panic of the drain ends the
/// process.
pub(crate) fn scope<'env, R>(
    drain: impl FnOnce(bool),
    body: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R,
) -> R {
    let scope = Scope { scope: PhantomData, env: PhantomData };
    let result = catch_unwind(AssertUnwindSafe(|| body(&scope)));
    let guard = AbortOnDrop;
    drain(result.is_err());
    std::mem::forget(guard);
    result.unwrap_or_else(|panic| resume_unwind(panic))
}

/// Aborts the process when dropped: lent memory may still be written to after it is freed, so no
/// code may run on.
struct AbortOnDrop;

impl Drop for AbortOnDrop {
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
    /// The memory, for a holder that keeps the loan's lifetime.
    pub(crate) fn span(&self) -> Span {
        self.span
    }

    /// Memory that a user points to, and keeps alive.
    pub(crate) fn pointed(span: Span) -> Self {
        Loan { span, lender: PhantomData }
    }
}

impl LoanMut<'_> {
    /// The memory, for a holder that keeps the loan's lifetime.
    pub(crate) fn span(&self) -> Span {
        self.span
    }

    /// Lends the memory again for a shorter time: a reborrow.
    pub(crate) fn again(&mut self) -> LoanMut<'_> {
        LoanMut { span: self.span, lender: PhantomData }
    }

    /// Memory that a user points to, and keeps alive.
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
