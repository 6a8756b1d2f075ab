//! Communicators that are duplicated with a request (MPI-5.0 section 7.4.2).
//!
//! The handle of a duplicate exists from the start. Until the request is complete it refers to what
//! the communicator has of its own, such as its error handler: programs set that at once.

use std::sync::Arc;

use longshore::{Collective, Communicator, Waitable};

use crate::communicator::{Comm, Own};
use crate::edge::fault::Result;
use crate::edge::handle::{Handle, insert, remove, replace};

/// A duplicate that is being made.
pub struct Duplication {
    under_way: Collective<Communicator>,
    own: Arc<Own>,
    handle: Handle,
}

impl Duplication {
    /// Gives the duplicate a handle.
    pub fn new(under_way: Collective<Communicator>, own: Arc<Own>) -> Result<Duplication> {
        let handle = insert(own.clone())?;
        Ok(Duplication { under_way, own, handle })
    }

    pub fn handle(&self) -> Handle {
        self.handle
    }

    pub fn waitable(&self) -> &dyn Waitable {
        &self.under_way
    }

    /// Waits for the communicator, which the handle then refers to. If it isn't made, the handle
    /// is freed.
    pub fn wait(self) -> longshore::Result<()> {
        let mut handle = self.handle;
        match self.under_way.wait() {
            Ok(inner) => {
                // The handle can't have been freed: no call frees one of this kind.
                let _ = replace::<Own, Comm>(handle, Arc::new(self.own.with(inner)));
                Ok(())
            }
            Err(error) => {
                let _ = remove::<Own>(&mut handle);
                Err(error)
            }
        }
    }
}
