//! Communicators (MPI-5.0 section 7.4).

use std::sync::Arc;

use longshore::{Class, Communicator};

use crate::constants::{COMM_NULL, COMM_SELF, COMM_WORLD};
use crate::handle::{Handle, Kind, Object};
use crate::object::Card;
use crate::state;

/// A communicator.
pub struct Comm {
    inner: Communicator,
    card: Card,
}

impl Object for Comm {
    const KIND: Kind = Kind::Comm;
    const CLASS: Class = Class::Comm;
    const NULL: Handle = COMM_NULL;

    fn predefined(handle: Handle) -> Option<Arc<Comm>> {
        match handle {
            COMM_WORLD => state::get().map(|state| state.world().clone()),
            COMM_SELF => state::get().map(|state| state.alone().clone()),
            _ => None,
        }
    }
}

impl Comm {
    /// One of the two communicators that exist from the start.
    pub fn initial(inner: Communicator, handle: Handle) -> Arc<Comm> {
        let name = if handle == COMM_WORLD { "MPI_COMM_WORLD" } else { "MPI_COMM_SELF" };
        Arc::new(Comm { inner, card: Card::named(name) })
    }

    pub fn inner(&self) -> &Communicator {
        &self.inner
    }

    pub fn card(&self) -> &Card {
        &self.card
    }
}
