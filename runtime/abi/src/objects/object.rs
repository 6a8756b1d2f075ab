//! What every object of a program has: a name, attributes, an error handler, hints.

use std::sync::{Arc, Mutex, MutexGuard};

use crate::edge::lock::lock;
use crate::objects::errhandler::Errhandler;
use crate::objects::info::Pairs;
use crate::objects::keyval::Attributes;

/// The name, attributes, error handler and hints of an object.
#[derive(Default)]
pub struct Card {
    name: Mutex<String>,
    attributes: Mutex<Attributes>,
    errhandler: Mutex<Option<Arc<Errhandler>>>,
    hints: Mutex<Pairs>,
}

impl Card {
    /// The card of a predefined object.
    pub fn named(name: &str) -> Card {
        Card { name: Mutex::new(name.to_owned()), ..Card::default() }
    }

    /// The card of a dup.
    pub fn with_attributes(attributes: Attributes) -> Card {
        Card { attributes: Mutex::new(attributes), ..Card::default() }
    }

    pub fn name(&self) -> String {
        lock(&self.name).clone()
    }

    /// Sets the name, of which MPI keeps as much as a program has room for.
    pub fn set_name(&self, name: &str) {
        let mut end = name.len().min(crate::edge::constants::MAX_OBJECT_NAME as usize - 1);
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        name[..end].clone_into(&mut lock(&self.name));
    }

    /// Its attributes. No function of the program may run while they are locked.
    pub fn attributes(&self) -> MutexGuard<'_, Attributes> {
        lock(&self.attributes)
    }

    /// The error handler; MPI_ERRORS_ARE_FATAL unless another was set.
    pub fn errhandler(&self) -> Arc<Errhandler> {
        self.given_errhandler().unwrap_or_else(Errhandler::fatal)
    }

    /// The error handler that was set.
    pub fn given_errhandler(&self) -> Option<Arc<Errhandler>> {
        lock(&self.errhandler).clone()
    }

    pub fn set_errhandler(&self, handler: Arc<Errhandler>) {
        *lock(&self.errhandler) = Some(handler);
    }

    /// The hints that the program gave.
    pub fn hints(&self) -> MutexGuard<'_, Pairs> {
        lock(&self.hints)
    }
}
