//! Attributes: what a program caches on types, communicators and windows under keys of its own (MPI-5.0 section 7.7).
//!
//! A keyval belongs to a rank and to one kind of object. Its callbacks run on the thread that makes the call, with no lock
//! held, so they may call whatever they like. Dup asks the copy callback of each attribute, in the order in which they were
//! set, what the new object is to have. The delete callback is asked before an attribute goes: when it is deleted, when
//! another value takes its place, which counts as setting it anew, and when its object ends, the last one set first. An error of a callback is the error
//! of the call that asked it, which leaves that attribute as it was.
//!
//! Left out: predefined attributes. Those of windows, such as MPI_WIN_BASE, are calls of their own.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use shipable::Datatype;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Card, Handle, Names};
use crate::error::{ErrorKind, Result};

/// What a callback returns: any error will do.
pub type Outcome<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// A value, whatever it is.
pub(super) type Value = Arc<dyn Any + Send + Sync>;

type CopyCallback = Box<dyn Fn(&Holder<'_>, &Value) -> Outcome<Option<Value>> + Send + Sync>;
type DeleteCallback = Box<dyn Fn(&Holder<'_>, &Value) -> Outcome<()> + Send + Sync>;

/// What attributes can be cached on: [`Type`](crate::Type) (and foreign types), [`Communicator`](crate::Communicator),
/// [`Window`](crate::Window). Keyvals of one of them can't be used with another.
pub trait Cacheable: sealed::Cacheable {}

pub(crate) mod sealed {
    pub trait Cacheable {}
}

/// A key for attributes of type `T` on objects of kind `K`, made by [`Rank::create_keyval`](crate::Rank::create_keyval).
///
/// Cloning shares it. Dropping it leaves the attributes that were set with it where they are.
///
/// ```
/// use longshore::{Callbacks, Datatype, Keyval, Type};
///
/// let rank = longshore::init()?;
/// // A flattened copy of a type, made once; what is made of the type by dup has it too.
/// let flat: Keyval<Type, Vec<(i64, i64)>> = rank.create_keyval(Callbacks::default().share())?;
/// let column = rank.commit(&Datatype::vector(8, 1, 10, &Datatype::double())?)?;
/// let rows: Vec<_> = (0..8).map(|row| (row * 80, 8)).collect();
/// column.set_attr(&flat, rows)?;
/// assert_eq!(column.dup()?.attr(&flat)?.unwrap()[3], (240, 8));
/// # rank.finalize()?;
/// # Ok::<(), longshore::Error>(())
/// ```
pub struct Keyval<K, T> {
    pub(super) key: Arc<Key>,
    types: PhantomData<fn(K) -> T>,
}

pub(super) struct Key {
    /// The rank that it belongs to.
    pub(super) names: Arc<Names>,
    pub(super) copy: Option<CopyCallback>,
    delete: Option<DeleteCallback>,
    pub(super) freed: AtomicBool,
}

/// What is done with an attribute when its object is duplicated, and before it goes. By default a dup has nothing of it
/// (MPI_TYPE_NULL_COPY_FN), and nobody is told of its end (MPI_TYPE_NULL_DELETE_FN); likewise for the other kinds.
///
/// ```
/// # let rank = longshore::init()?;
/// use longshore::{Callbacks, Communicator, Keyval};
///
/// // A dup has the level above; who is freed says so.
/// let callbacks = Callbacks::default()
///     .copy(|_, level: &std::sync::Arc<u32>| Ok(Some(std::sync::Arc::new(**level + 1))))
///     .delete(|holder, _| {
///         assert!(holder.handle().is_none() && holder.datatype().is_none()); // a communicator, not by handle
///         Ok(())
///     });
/// let level: Keyval<Communicator, u32> = rank.create_keyval(callbacks)?;
/// rank.world().set_attr(&level, 0u32)?;
/// let dup = rank.world().dup()?;
/// assert_eq!(*dup.attr(&level)?.unwrap(), 1);
/// assert!(rank.world().delete_attr(&level)?);
/// dup.set_name("the level above");
/// assert_eq!(dup.name(), "the level above");
/// dup.free()?;
/// level.free();
/// # rank.finalize()?;
/// # Ok::<(), longshore::Error>(())
/// ```
pub struct Callbacks<T> {
    copy: Option<CopyCallback>,
    delete: Option<DeleteCallback>,
    value: PhantomData<fn(T)>,
}

impl<T> Default for Callbacks<T> {
    fn default() -> Self {
        Callbacks { copy: None, delete: None, value: PhantomData }
    }
}

impl<T: Any + Send + Sync> Callbacks<T> {
    /// A dup has the same value (MPI_TYPE_DUP_FN and the like).
    pub fn share(self) -> Self {
        let copy = |_: &Holder<'_>, value: &Value| Ok(Some(value.clone()));
        Callbacks { copy: Some(Box::new(copy)), ..self }
    }

    /// A dup has what this gives, if it gives something: MPI's flag. It is given the object that is duplicated.
    pub fn copy<F>(self, copy: F) -> Self
    where
        F: Fn(&Holder<'_>, &Arc<T>) -> Outcome<Option<Arc<T>>> + Send + Sync + 'static,
    {
        let copy = move |holder: &Holder<'_>, value: &Value| {
            // A keyval's attributes are of its type.
            let Ok(value) = value.clone().downcast() else { return Ok(None) };
            Ok(copy(holder, &value)?.map(|copied| copied as Value))
        };
        Callbacks { copy: Some(Box::new(copy)), ..self }
    }

    /// This is asked before the attribute goes; its error is the error of the call that would have removed it.
    pub fn delete<F>(self, delete: F) -> Self
    where
        F: Fn(&Holder<'_>, &Arc<T>) -> Outcome<()> + Send + Sync + 'static,
    {
        let delete = move |holder: &Holder<'_>, value: &Value| match value.clone().downcast() {
            Ok(value) => delete(holder, &value),
            Err(_) => Ok(()),
        };
        Callbacks { delete: Some(Box::new(delete)), ..self }
    }
}

impl<K: Cacheable, T: Any + Send + Sync> Keyval<K, T> {
    pub(crate) fn new(names: &Arc<Names>, callbacks: Callbacks<T>) -> Keyval<K, T> {
        let Callbacks { copy, delete, .. } = callbacks;
        let key = Key { names: names.clone(), copy, delete, freed: AtomicBool::new(false) };
        Keyval { key: Arc::new(key), types: PhantomData }
    }

    /// Frees it (MPI-5.0 section 7.7.2): no call takes it, or a clone of it, any more. Attributes that were set with it stay, and
    /// their callbacks are asked as before.
    pub fn free(self) {
        self.key.freed.store(true, Ordering::Relaxed);
    }
}

impl<K, T> Clone for Keyval<K, T> {
    fn clone(&self) -> Self {
        Keyval { key: self.key.clone(), types: PhantomData }
    }
}

impl<K, T> fmt::Debug for Keyval<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyval").field("freed", &self.key.freed).finish_non_exhaustive()
    }
}

/// An object as the callbacks of its attributes, and free handlers, see it.
#[derive(Clone, Copy)]
pub struct Holder<'a> {
    card: &'a Card,
    handle: Option<Handle>,
}

impl<'a> Holder<'a> {
    pub(crate) fn new(card: &'a Card, handle: Option<Handle>) -> Holder<'a> {
        Holder { card, handle }
    }

    /// The object's name.
    pub fn name(&self) -> String {
        self.card.name()
    }

    /// The handle by which it was named in the call, if it was.
    pub fn handle(&self) -> Option<Handle> {
        self.handle
    }

    /// The datatype, if the object is a type that was built here.
    pub fn datatype(&self) -> Option<&'a Datatype> {
        self.card.datatype.as_ref()
    }

    /// Another attribute of the object.
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

impl Key {
    pub(super) fn ask_delete(&self, holder: &Holder<'_>, value: &Value) -> Result<()> {
        let Some(delete) = &self.delete else { return Ok(()) };
        let asked = delete(holder, value);
        Ok(asked.map_err(|error| ErrorKind::Callback { which: "delete", error })?)
    }
}

/// The calls on names and attributes, for what has a [`Card`], and has errors of its calls `raised`.
macro_rules! attributes {
    ($kind:ty) => {
        /// Its name (MPI-5.0 section 7.8), at this rank; empty if it has none.
        pub fn name(&self) -> String {
            self.card().name()
        }

        /// Gives it a name, for people.
        pub fn set_name(&self, name: impl Into<String>) {
            self.card().set_name(name.into());
        }

        /// The attribute under a keyval (MPI-5.0 section 7.7.2), if it has one.
        ///
        /// # Errors
        /// KEYVAL for a freed keyval, or one of another rank.
        pub fn attr<T: std::any::Any + Send + Sync>(
            &self,
            keyval: &$crate::Keyval<$kind, T>,
        ) -> $crate::Result<Option<std::sync::Arc<T>>> {
            self.card().get(keyval).map_err(|error| self.raised(error, "get_attr"))
        }

        /// Sets the attribute under a keyval. One that is there already is deleted before, by its callback.
        ///
        /// # Errors
        /// As [`attr`](Self::attr); what the delete callback returns, and then nothing is set.
        pub fn set_attr<T: std::any::Any + Send + Sync>(
            &self,
            keyval: &$crate::Keyval<$kind, T>,
            value: impl Into<std::sync::Arc<T>>,
        ) -> $crate::Result<()> {
            let set = self.card().set(keyval, value.into(), None);
            set.map_err(|error| self.raised(error, "set_attr"))
        }

        /// Deletes the attribute under a keyval; false if there is none.
        ///
        /// # Errors
        /// As [`attr`](Self::attr); what the delete callback returns, and then the attribute stays.
        pub fn delete_attr<T: std::any::Any + Send + Sync>(
            &self,
            keyval: &$crate::Keyval<$kind, T>,
        ) -> $crate::Result<bool> {
            self.card().delete(keyval, None).map_err(|error| self.raised(error, "delete_attr"))
        }
    };
}

pub(crate) use attributes;
