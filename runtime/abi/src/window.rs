//! Windows: making them, and what is asked of them (MPI-5.0 section 12.2).

use std::ffi::c_int;
use std::sync::Arc;

use longshore::Class;

use crate::arg::Address;
use crate::constants::WIN_NULL;
use crate::handle::{Handle, Kind, Object};
use crate::object::Card;

/// A window.
pub struct Win {
    card: Card,
}

impl Object for Win {
    const KIND: Kind = Kind::Win;
    const CLASS: Class = Class::Win;
    const NULL: Handle = WIN_NULL;

    fn predefined(_: Handle) -> Option<Arc<Win>> {
        None
    }
}

impl Win {
    pub fn card(&self) -> &Card {
        &self.card
    }

    /// The value of a predefined attribute.
    pub fn attribute(&self, _keyval: c_int) -> Option<Address> {
        None
    }
}
