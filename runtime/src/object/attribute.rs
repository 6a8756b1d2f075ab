//! Attributes: values that a program caches on types, communicators and windows (MPI-5.0 section
//! 7.7).
//!
//! A keyval belongs to a rank and to one kind of object. Its callbacks run on the calling thread
//! without a lock held, so they may make any call.
//!
//! A dup calls the copy callback of each attribute, in the order in which the attributes were set.
//! The delete callback is called before an attribute is removed: when it is deleted, when it is
//! replaced, and when its object ends, the last one set first. A replacement counts as a new
//! attribute. An error of a callback is the error of the call that ran it, and the attribute stays.
//!
//! Left out: predefined attributes. Those of windows, such as MPI_WIN_BASE, are methods of
//! [`Window`](crate::Window).

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Holder, Names};
use crate::error::{ErrorKind, Result};

/// The result of a callback. It may fail with any error.
pub type Outcome<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The value of an attribute, of any type.
pub(super) type Value = Arc<dyn Any + Send + Sync>;

type CopyCallback = Box<dyn Fn(&Holder<'_>, &Value) -> Outcome<Option<Value>> + Send + Sync>;
type DeleteCallback = Box<dyn Fn(&Holder<'_>, &Value) -> Outcome<()> + Send + Sync>;

/// The kinds of objects that have attributes: [`Type`](crate::Type) (foreign types too),
/// [`Communicator`](crate::Communicator) and [`Window`](crate::Window). A keyval works with only
/// one of them.
pub trait Cacheable: sealed::Cacheable {}

pub(crate) mod sealed {
    pub trait Cacheable {}
}

/// A key for attributes of type `T` on objects of kind `K`, made by
/// [`Rank::create_keyval`](crate::Rank::create_keyval).
///
/// A clone is the same key. Dropping the key doesn't affect attributes that were set with it.
///
/// ```
/// use longshore::{Callbacks, Datatype, Keyval, Type};
///
/// let rank = longshore::init()?;
/// // A flattened copy of a type, made once; dups of the type share it.
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
    /// The names of the rank to which the keyval belongs.
    pub(super) names: Arc<Names>,
    pub(super) copy: Option<CopyCallback>,
    delete: Option<DeleteCallback>,
    pub(super) freed: AtomicBool,
}

/// The callbacks of a keyval, which run when an object is duplicated and before an attribute is
/// removed. By default a dup doesn't get the attribute (MPI_TYPE_NULL_COPY_FN and its
/// counterparts), and removal runs no callback (MPI_TYPE_NULL_DELETE_FN and its counterparts).
///
/// ```
/// # let rank = longshore::init()?;
/// use longshore::{Callbacks, Communicator, Keyval};
///
/// // The level of a dup is one higher.
/// let callbacks = Callbacks::default()
///     .copy(|_, level: &std::sync::Arc<u32>| Ok(Some(std::sync::Arc::new(**level + 1))))
///     .delete(|holder, _| {
///         // The object is a communicator, and has no handle.
///         assert!(holder.datatype().is_none());
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
    /// A dup gets the same value (MPI_TYPE_DUP_FN and its counterparts).
    pub fn share(self) -> Self {
        let copy = |_: &Holder<'_>, value: &Value| Ok(Some(value.clone()));
        Callbacks { copy: Some(Box::new(copy)), ..self }
    }

    /// A dup gets the value that `copy` returns, or none (MPI's flag is false then). `copy` is
    /// called with the original object.
    pub fn copy<F>(self, copy: F) -> Self
    where
        F: Fn(&Holder<'_>, &Arc<T>) -> Outcome<Option<Arc<T>>> + Send + Sync + 'static,
    {
        let copy = move |holder: &Holder<'_>, value: &Value| {
            // The downcast can't fail: all attributes of a keyval have its type.
            let Ok(value) = value.clone().downcast() else { return Ok(None) };
            Ok(copy(holder, &value)?.map(|copied| copied as Value))
        };
        Callbacks { copy: Some(Box::new(copy)), ..self }
    }

    /// `delete` is called before the attribute is removed. If it fails, so does the call that would
    /// remove the attribute.
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

    /// Frees the keyval (MPI-5.0 section 7.7.2). No call accepts it or a clone of it any more.
    /// Existing attributes stay, and their callbacks still run.
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

impl Key {
    pub(super) fn ask_delete(&self, holder: &Holder<'_>, value: &Value) -> Result<()> {
        let Some(delete) = &self.delete else { return Ok(()) };
        let asked = delete(holder, value);
        Ok(asked.map_err(|error| ErrorKind::Callback { which: "delete", error })?)
    }
}

/// The public methods on names and attributes, for a type with the methods `card` and `raised`.
macro_rules! attributes {
    ($kind:ty) => {
        /// The object's name at this rank (MPI-5.0 section 7.8); empty if it has none.
        #[doc(alias = "MPI_Comm_get_name")]
        #[doc(alias = "MPI_Win_get_name")]
        #[doc(alias = "MPI_Type_get_name")]
        pub fn name(&self) -> String {
            self.card().name()
        }

        /// Sets the object's name at this rank, which appears in diagnostics (MPI-5.0 section 7.8).
        #[doc(alias = "MPI_Comm_set_name")]
        #[doc(alias = "MPI_Win_set_name")]
        #[doc(alias = "MPI_Type_set_name")]
        pub fn set_name(&self, name: impl Into<String>) {
            self.card().set_name(name.into());
        }

        /// The attribute under a keyval (MPI-5.0 section 7.7.2); `None` if there is none.
        ///
        /// # Errors
        /// KEYVAL for a freed keyval, or one of another rank.
        #[track_caller]
        #[doc(alias = "MPI_Comm_get_attr")]
        #[doc(alias = "MPI_Win_get_attr")]
        #[doc(alias = "MPI_Type_get_attr")]
        pub fn attr<T: std::any::Any + Send + Sync>(
            &self,
            keyval: &$crate::Keyval<$kind, T>,
        ) -> $crate::Result<Option<std::sync::Arc<T>>> {
            let caller = std::panic::Location::caller();
            self.card().get(keyval).map_err(|error| self.raised(error, "get_attr", caller))
        }

        /// Sets the attribute under a keyval (MPI-5.0 section 7.7.2). An existing one is deleted
        /// first, with its callback.
        ///
        /// # Errors
        /// KEYVAL for a freed keyval, or one of another rank. The error of the delete callback;
        /// nothing is set then.
        #[track_caller]
        #[doc(alias = "MPI_Comm_set_attr")]
        #[doc(alias = "MPI_Win_set_attr")]
        #[doc(alias = "MPI_Type_set_attr")]
        pub fn set_attr<T: std::any::Any + Send + Sync>(
            &self,
            keyval: &$crate::Keyval<$kind, T>,
            value: impl Into<std::sync::Arc<T>>,
        ) -> $crate::Result<()> {
            let caller = std::panic::Location::caller();
            let set = self.card().set(keyval, value.into());
            set.map_err(|error| self.raised(error, "set_attr", caller))
        }

        /// Deletes the attribute under a keyval (MPI-5.0 section 7.7.2). Returns false if there is
        /// none.
        ///
        /// # Errors
        /// KEYVAL for a freed keyval, or one of another rank. The error of the delete callback; the
        /// attribute stays then.
        #[track_caller]
        #[doc(alias = "MPI_Comm_delete_attr")]
        #[doc(alias = "MPI_Win_delete_attr")]
        #[doc(alias = "MPI_Type_delete_attr")]
        pub fn delete_attr<T: std::any::Any + Send + Sync>(
            &self,
            keyval: &$crate::Keyval<$kind, T>,
        ) -> $crate::Result<bool> {
            let caller = std::panic::Location::caller();
            self.card().delete(keyval).map_err(|error| self.raised(error, "delete_attr", caller))
        }
    };
}

pub(crate) use attributes;
