//! Epochs as scopes: what is borrowed in one is free again when it ends.

use crate::error::Result;
use crate::memory::{Scope, scope};
use crate::origin::{Destination, Origin};
use crate::types::TargetType;
use crate::window::core::Core;
use crate::window::local::Local;

/// An epoch in which the rank may put into and get from any rank's window.
///
/// `'scope` is the epoch: an operation borrows its buffer until then.
pub struct Epoch<'scope, 'env: 'scope> {
    scope: &'scope Scope<'scope, 'env>,
    core: &'scope Core,
}

impl<'scope> Epoch<'scope, '_> {
    /// Puts data into a target's window (MPI-5.0 section 12.3.1): where `target_count` elements of `target_type` lie from
    /// `target_disp` of the target's displacement units on. It is done when the epoch has ended.
    ///
    /// The type says what lies where at the target, in the target's representation. It is portable, or one that the target
    /// built and sent with [`type_send`](crate::Communicator::type_send).
    ///
    /// # Errors
    /// TYPE: rules T1 to T4, signatures that differ, a target type that overlaps itself; RANK, COUNT, DISP, BUFFER for what
    /// they name; RMA_RANGE outside of the target's window; RMA_SYNC without an epoch. Nothing is written then. What the
    /// target refuses, the call that ends the epoch returns.
    #[inline]
    pub fn put<'t>(
        &self,
        origin: impl Into<Origin<'scope>>,
        target: i32,
        target_disp: i64,
        target_count: i64,
        target_type: impl Into<TargetType<'t>>,
    ) -> Result<()> {
        let origin = origin.into();
        let span = self.scope.lend(origin.loan);
        self.core.put(span, &origin.what, target, target_disp, target_count, target_type.into())
    }

    /// Gets data from a target's window (MPI-5.0 section 12.3.2). They are there when the epoch has ended.
    ///
    /// # Errors
    /// As [`put`](Epoch::put); it is the origin's layout that must not overlap itself.
    pub fn get<'t>(
        &self,
        destination: impl Into<Destination<'scope>>,
        target: i32,
        target_disp: i64,
        target_count: i64,
        target_type: impl Into<TargetType<'t>>,
    ) -> Result<()> {
        let destination = destination.into();
        let span = self.scope.lend_mut(destination.loan);
        let target_type = target_type.into();
        self.core.get(span, &destination.what, target, target_disp, target_count, target_type)
    }

    /// Accessors to this rank's own memory. MPI leaves it open what they see of places that others write in this epoch.
    pub fn local(&self) -> Local<'scope> {
        Local::new(self.core)
    }
}

/// A chain of epochs; see [`Window::fences`](crate::Window::fences).
pub struct Chain<'w> {
    core: &'w Core,
}

impl<'w> Chain<'w> {
    pub(super) fn new(core: &'w Core) -> Chain<'w> {
        Chain { core }
    }

    /// Runs the next epoch, and the fence that ends it and opens another. Collective.
    ///
    /// # Errors
    /// As [`Window::fence`](crate::Window::fence).
    pub fn epoch<'env, R>(
        &mut self,
        body: impl for<'scope> FnOnce(&Epoch<'scope, 'env>) -> Result<R>,
    ) -> Result<R>
    where
        'w: 'env,
    {
        self.close(body, true)
    }

    /// Runs an epoch that is open, and the fence that ends it.
    pub(super) fn close<'env, R>(
        &mut self,
        body: impl for<'scope> FnOnce(&Epoch<'scope, 'env>) -> Result<R>,
        succeeds: bool,
    ) -> Result<R>
    where
        'w: 'env,
    {
        let core = self.core;
        let mut fenced = Ok(());
        let outcome = scope(
            // Operations have let go of their buffers once a fence, failed or not, or a drain returns. A rank that panics
            // meets nobody any more.
            |panicking| match panicking {
                true => core.drain(),
                false => fenced = core.fence(succeeds),
            },
            |scope| body(&Epoch { scope, core }),
        );
        outcome.and_then(|value| fenced.map(|()| value))
    }

    /// Accessors to this rank's own memory.
    pub fn local(&self) -> Local<'w> {
        Local::new(self.core)
    }
}
