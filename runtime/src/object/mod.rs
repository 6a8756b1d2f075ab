//! The common part of MPI objects (types, communicators and windows): name, attributes and error
//! handler. A [`Card`] contains them.

mod attribute;
mod errhandler;
mod names;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shipable::Datatype;
use shipable::datatype::Node;

use crate::error::{ErrorKind, Result};
use attribute::{Key, Value};

pub use attribute::{Cacheable, Callbacks, Keyval, Outcome};
pub(crate) use attribute::{attributes, sealed};
pub use errhandler::ErrorHandler;
pub(crate) use errhandler::error_handling;
pub(crate) use names::Names;

/// The name, attributes and error handler of an object. A dup gets a card of its own.
pub(crate) struct Card {
    names: Arc<Names>,
    kind: Kind,
    name: Mutex<String>,
    entries: Mutex<Vec<Entry>>,
    errhandler: Mutex<ErrorHandler>,
    /// Whether the end of the object calls no free handlers: they were called, or the user never
    /// had the object.
    silent: AtomicBool,
}

/// What an object is.
enum Kind {
    /// A type that the rank built.
    Type(Datatype),
    /// A type that the rank received.
    Foreign,
    /// A communicator or window.
    Other,
}

#[derive(Clone)]
struct Entry {
    key: Arc<Key>,
    value: Value,
}

/// An object, as callbacks of attributes, free handlers and error handlers see it.
///
/// ```
/// # let rank = longshore::init()?;
/// use longshore::{Callbacks, Communicator, Keyval};
///
/// let level: Keyval<Communicator, u32> = rank.create_keyval(Callbacks::default())?;
/// let other = level.clone();
/// let callbacks = Callbacks::default().delete(move |holder, _| {
///     assert_eq!(holder.name(), "the level above");
///     assert!(holder.datatype().is_none());
///     assert_eq!(holder.attr(&other).unwrap().as_deref(), Some(&1));
///     Ok(())
/// });
/// let noted: Keyval<Communicator, ()> = rank.create_keyval(callbacks)?;
/// let dup = rank.world().dup()?;
/// dup.set_name("the level above");
/// dup.set_attr(&level, 1u32)?;
/// dup.set_attr(&noted, ())?;
/// assert!(dup.delete_attr(&noted)?);
/// dup.free()?;
/// # rank.finalize()?;
/// # Ok::<(), longshore::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Holder<'a> {
    card: &'a Card,
}

impl<'a> Holder<'a> {
    pub(crate) fn new(card: &'a Card) -> Holder<'a> {
        Holder { card }
    }

    /// The object's name.
    pub fn name(&self) -> String {
        self.card.name()
    }

    /// The datatype, if the object is a type that this rank built.
    pub fn datatype(&self) -> Option<&'a Datatype> {
        self.card.datatype()
    }

    /// An attribute of the object.
    ///
    /// # Errors
    /// KEYVAL for a freed keyval, or one of another rank.
    pub fn attr<K: Cacheable, T: Any + Send + Sync>(
        &self,
        keyval: &Keyval<K, T>,
    ) -> Result<Option<Arc<T>>> {
        self.card.get(keyval)
    }
}

impl Card {
    pub(crate) fn new(names: &Arc<Names>) -> Card {
        Card::with(names, Kind::Other, String::new())
    }

    pub(crate) fn of_foreign(names: &Arc<Names>) -> Card {
        Card::with(names, Kind::Foreign, String::new())
    }

    /// The card of a type. A predefined type has its MPI name from the start.
    pub(crate) fn of(names: &Arc<Names>, datatype: &Datatype) -> Card {
        let name = datatype.as_basic().map_or("", |basic| basic.mpi_name()).to_owned();
        Card::with(names, Kind::Type(datatype.clone()), name)
    }

    fn with(names: &Arc<Names>, kind: Kind, name: String) -> Card {
        let (name, entries, errhandler) = (Mutex::new(name), Mutex::default(), Mutex::default());
        let silent = AtomicBool::new(false);
        Card { names: names.clone(), kind, name, entries, errhandler, silent }
    }

    pub(crate) fn datatype(&self) -> Option<&Datatype> {
        match &self.kind {
            Kind::Type(datatype) => Some(datatype),
            Kind::Foreign | Kind::Other => None,
        }
    }

    /// Calls the free handlers for a type, unless it is predefined. If this frees the `last`
    /// reference, the end of the card doesn't call them again.
    pub(crate) fn tell_freed(&self, last: bool) {
        if last {
            self.silence();
        }
        let freed = match &self.kind {
            Kind::Type(datatype) => !matches!(datatype.node(), Node::Leaf(_)),
            Kind::Foreign => true,
            Kind::Other => false,
        };
        if freed {
            self.names.tell_free_handlers(&Holder::new(self));
        }
    }

    /// Calls no free handlers at the end of the card.
    fn silence(&self) {
        self.silent.store(true, Ordering::Relaxed);
    }

    pub(crate) fn name(&self) -> String {
        self.name.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_name(&self, name: String) {
        *self.name.lock().unwrap_or_else(PoisonError::into_inner) = name;
    }

    pub(crate) fn errhandler(&self) -> ErrorHandler {
        self.errhandler.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_errhandler(&self, handler: ErrorHandler) {
        let mut errhandler = self.errhandler.lock().unwrap_or_else(PoisonError::into_inner);
        // The old handler is dropped after the lock is released: its drop may call in.
        let _replaced = std::mem::replace(&mut *errhandler, handler);
        drop(errhandler);
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check<K, T>(&self, keyval: &Keyval<K, T>) -> Result<()> {
        if !Arc::ptr_eq(&keyval.key.names, &self.names) {
            return Err(ErrorKind::Keyval("of another rank: create it at this one").into());
        }
        match keyval.key.freed.load(Ordering::Relaxed) {
            true => Err(ErrorKind::Keyval("freed: use keyvals before they are freed").into()),
            false => Ok(()),
        }
    }

    fn find(&self, key: &Arc<Key>) -> Option<Value> {
        let entries = self.entries();
        let entry = entries.iter().find(|entry| Arc::ptr_eq(&entry.key, key))?;
        Some(entry.value.clone())
    }

    /// Removes an entry. The caller drops it after the lock is released, since the value's drop may
    /// read attributes.
    fn take(&self, key: &Arc<Key>) -> Option<Entry> {
        take(&mut self.entries(), key)
    }

    pub(crate) fn get<K: Cacheable, T: Any + Send + Sync>(
        &self,
        keyval: &Keyval<K, T>,
    ) -> Result<Option<Arc<T>>> {
        self.check(keyval)?;
        Ok(self.find(&keyval.key).and_then(|value| value.downcast().ok()))
    }

    pub(crate) fn set<K: Cacheable, T: Any + Send + Sync>(
        &self,
        keyval: &Keyval<K, T>,
        value: Arc<T>,
    ) -> Result<()> {
        self.check(keyval)?;
        if let Some(before) = self.find(&keyval.key) {
            keyval.key.ask_delete(&Holder::new(self), &before)?;
        }
        // The old entry is deleted first, so the new one counts as the last one set. It is dropped
        // after the lock is released, as in `take`.
        let _replaced = {
            let mut entries = self.entries();
            let replaced = take(&mut entries, &keyval.key);
            entries.push(Entry { key: keyval.key.clone(), value });
            replaced
        };
        Ok(())
    }

    /// Deletes an attribute. Returns whether there was one.
    pub(crate) fn delete<K: Cacheable, T: Any + Send + Sync>(
        &self,
        keyval: &Keyval<K, T>,
    ) -> Result<bool> {
        self.check(keyval)?;
        let Some(value) = self.find(&keyval.key) else { return Ok(false) };
        keyval.key.ask_delete(&Holder::new(self), &value)?;
        drop(self.take(&keyval.key));
        Ok(true)
    }

    /// Deletes all attributes, the last one set first. Stops at the first callback that fails. The
    /// attribute of a callback that panics is deleted, so that the callback isn't asked again.
    fn clear(&self) -> Result<()> {
        loop {
            let last = self.entries().last().cloned();
            let Some(Entry { key, value }) = last else { return Ok(()) };
            let ask = || key.ask_delete(&Holder::new(self), &value);
            match catch_unwind(AssertUnwindSafe(ask)) {
                Ok(asked) => asked?,
                Err(panic) => {
                    drop(self.take(&key));
                    resume_unwind(panic);
                }
            }
            drop(self.take(&key));
        }
    }

    /// Deletes all attributes of an object that is freed even if a callback fails. The callback
    /// that failed isn't asked again, and [`end`](Card::end) asks the remaining ones.
    pub(crate) fn close(&self) -> Result<()> {
        self.clear().inspect_err(|_| {
            let failed = self.entries().pop();
            drop(failed); // after the lock is released, as in `take`
        })
    }

    /// Copies the attributes to a dup, as their copy callbacks decide. If a callback fails, the dup
    /// gets none.
    pub(crate) fn copy_to(&self, dup: &Card) -> Result<()> {
        let entries = self.entries().clone();
        for Entry { key, value } in entries {
            let Some(copy) = &key.copy else { continue };
            let copied = copy(&Holder::new(self), &value);
            match copied.map_err(|error| ErrorKind::Callback { which: "copy", error }) {
                Ok(Some(value)) => dup.entries().push(Entry { key: key.clone(), value }),
                Ok(None) => {}
                Err(error) => {
                    dup.end();
                    dup.silence();
                    return Err(error.into());
                }
            }
        }
        Ok(())
    }

    /// Deletes all attributes, and ignores the errors and panics of callbacks: it is called while
    /// the object is dropped, also by a panic.
    fn end(&self) {
        loop {
            let last = self.entries().pop();
            let Some(Entry { key, value }) = last else { return };
            // The object is gone, so no call can return an error.
            let ask = || key.ask_delete(&Holder::new(self), &value);
            let _ = catch_unwind(AssertUnwindSafe(ask));
        }
    }
}

fn take(entries: &mut Vec<Entry>, key: &Arc<Key>) -> Option<Entry> {
    let at = entries.iter().position(|entry| Arc::ptr_eq(&entry.key, key))?;
    Some(entries.remove(at))
}

impl Drop for Card {
    fn drop(&mut self) {
        self.end();
        if !*self.silent.get_mut() {
            self.tell_freed(true);
        }
    }
}
