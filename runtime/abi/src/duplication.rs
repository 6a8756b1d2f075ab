//! Communicators that are duplicated with a request (MPI-5.0 section 7.4.2).

use std::sync::Arc;

use longshore::{Collective, Communicator, Waitable};

use crate::communicator::Draft;
use crate::handle::Reserved;

/// A duplicate that is being made.
pub struct Duplication {
    under_way: Collective<Communicator>,
    /// Everything that it has of its own, and its handle.
    draft: Draft,
    handle: Reserved,
}

impl Duplication {
    pub fn new(under_way: Collective<Communicator>, draft: Draft, handle: Reserved) -> Duplication {
        Duplication { under_way, draft, handle }
    }

    pub fn waitable(&self) -> &dyn Waitable {
        &self.under_way
    }

    pub fn wait(self) -> longshore::Result<()> {
        let inner = self.under_way.wait()?;
        self.handle.fill(Arc::new(self.draft.with(inner)));
        Ok(())
    }
}
