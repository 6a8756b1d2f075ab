//! Files (MPI-5.0 chapter 14). No function opens one yet, but handles are checked all the same.

use std::sync::{Arc, Mutex};

use longshore::Class;

use crate::edge::constants::{ERRORS_RETURN, FILE_NULL};
use crate::edge::handle::{Handle, Kind, Object};
use crate::edge::lock::lock;
use crate::objects::errhandler::Errhandler;
use crate::objects::object::Card;

/// A file.
pub struct File {
    card: Card,
}

static OF_FILES: Mutex<Option<Arc<Errhandler>>> = Mutex::new(None);

impl File {
    pub fn card(&self) -> &Card {
        &self.card
    }

    /// The handler of files that have none of their own: MPI_ERRORS_RETURN at first (MPI-5.0
    /// section 14.7).
    pub fn default_handler() -> Arc<Errhandler> {
        let set = lock(&OF_FILES).clone();
        set.or_else(|| Errhandler::predefined(ERRORS_RETURN)).unwrap_or_else(Errhandler::fatal)
    }

    pub fn set_default_handler(handler: Arc<Errhandler>) {
        *lock(&OF_FILES) = Some(handler);
    }
}

impl Object for File {
    const KIND: Kind = Kind::File;
    const CLASS: Class = Class::File;
    const NULL: Handle = FILE_NULL;

    fn predefined(_: Handle) -> Option<Arc<File>> {
        None
    }
}
