//! Types by handle, for an interface in C, where the compiler can't enforce the rules that Rust
//! types enforce.
//!
//! A handle is a number: null, that of a predefined type, or that of a row of a table. A row has
//! two parts, the type itself and its card (name and attributes), as in proposal 3
//! (docs/proposals.md). A dup is a new row with the same type and a new card. A handle returned by
//! [`Types::contents`] is a new row with the same type and the same card.
//!
//! Rule 18 (the type is committed, not freed and not null) and rule T3 (a foreign type is only a
//! target type) are checked here for every use of a type.
//!
//! Calls take the table by shared reference, and hold no lock while callbacks and free handlers
//! run. These may therefore use the handle that they are passed.

mod communicators;
mod contents;
mod pack;
mod table;

pub use crate::object::Handle;
pub use communicators::{CommunicatorHandle, Communicators};
pub use contents::Arrays;
pub use pack::{Argument, pack, pack_size, unpack};

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shipable::basic::Leaf;
use shipable::datatype::Node;
use shipable::{Bounds, Datatype, Signature};

use crate::error::{ErrorKind, Result, excerpt};
use crate::flat;
use crate::object::{Card, Keyval};
use crate::process::Process;
use crate::rank::Rank;
use crate::types::{Compiled, ForeignType, IntoTargetType, OTHER_RANK, TargetType, Type, key_of};
use table::{Named, Table};

/// The role of a committed type in a call, other than that of the target type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The origin type of an operation.
    Origin,
    /// The type of data that is sent.
    Send,
    /// The type of data that is received.
    Receive,
    /// A type that is itself sent, by type_send.
    TypeSend,
    /// The type of data that is packed or unpacked.
    Pack,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Role::Origin => "an origin type",
            Role::Send => "the type of a send",
            Role::Receive => "the type of a receive",
            Role::TypeSend => "the type that type_send sends",
            Role::Pack => "the type of a pack",
        }
    }
}

/// A target type, own or foreign, as [`Types::target`] returns it.
#[derive(Clone, Debug)]
pub enum Target {
    /// A type committed here.
    Own(Type),
    /// A type built at another process.
    Foreign(ForeignType),
}

impl<'a> IntoTargetType<'a> for &'a Target {
    fn into_target_type(self) -> TargetType<'a> {
        match self {
            Target::Own(own) => TargetType::Own(own),
            Target::Foreign(foreign) => TargetType::Foreign(foreign),
        }
    }
}

/// The table of types for which a rank has handles.
///
/// ```
/// use longshore::{Class, Datatype, handle::{Handle, Role, Types}};
///
/// let rank = longshore::init()?;
/// let types = Types::new(&rank);
/// let pair = types.insert(Datatype::contiguous(2, &Datatype::double())?)?;
/// // The type isn't committed yet.
/// assert_eq!(types.as_own(pair, Role::Origin).unwrap_err().class(), Class::Type);
/// types.commit(pair)?;
/// assert_eq!(types.extent(pair)?, 16);
/// types.free(pair)?;
/// assert!(types.target(pair).is_err());
/// # rank.finalize()?;
/// # Ok::<(), longshore::Error>(())
/// ```
///
/// ```
/// # let rank = longshore::init()?;
/// use longshore::{Callbacks, Datatype, Keyval, Type, handle::{Handle, Types}, shipable::Basic};
///
/// let types = Types::new(&rank);
/// assert_eq!(types.name(Handle::predefined(Basic::Double))?, "MPI_DOUBLE");
/// let row = types.insert(Datatype::contiguous(5, &Datatype::double())?)?;
/// types.set_name(row, "row")?;
/// assert_eq!(types.name(row)?, "row");
/// assert_eq!((types.size(row)?, types.bounds(row)?.extent()), (40, 40));
/// assert_eq!(types.signature(row)?.count, 5);
/// // A dup gets the attributes that its keyvals share, and no name.
/// let level: Keyval<Type, u32> = rank.create_keyval(Callbacks::default().share())?;
/// types.set_attr(row, &level, 1u32)?;
/// let dup = types.dup(row)?;
/// assert_eq!(*types.attr(dup, &level)?.unwrap(), 1);
/// assert!(types.delete_attr(dup, &level)?);
/// assert_eq!(types.print(dup)?, "U1(D:U2(5d))");
/// assert_eq!(types.datatype(dup)?.signature(), types.signature(row)?);
/// // Types that were committed or received without a handle can get one.
/// let own = types.insert_own(rank.type_of::<f64>()?)?;
/// assert_eq!(types.extent(own)?, 8);
/// rank.world().type_send(&rank.type_of::<f64>()?, rank.world().rank(), 0)?;
/// let foreign = types.insert_foreign(rank.world().type_recv(rank.world().rank(), 0)?)?;
/// assert!(types.target(foreign).is_ok() && types.size(foreign).is_err());
/// # rank.finalize()?;
/// # Ok::<(), longshore::Error>(())
/// ```
pub struct Types {
    process: Arc<Process>,
    table: Mutex<Table>,
}

impl Types {
    /// A table for a rank. It contains only the predefined types.
    pub fn new(rank: &Rank) -> Types {
        Types { process: rank.process().clone(), table: Mutex::default() }
    }

    /// Returns a handle of a datatype that isn't committed yet, with a name and attributes of its
    /// own. A predefined type has its handle already. A parametrised type of Fortran always gets
    /// the same handle.
    ///
    /// # Errors
    /// TYPE for a parametrised type that this rank's architecture lacks. OTHER after
    /// [`finalize`](Rank::finalize), as for every call of the table.
    pub fn insert(&self, datatype: Datatype) -> Result<Handle> {
        self.process.ready()?;
        match datatype.node() {
            Node::Leaf(Leaf::Basic(basic)) => Ok(Handle::predefined(*basic)),
            Node::Leaf(kind) => {
                let kind = key_of(*kind);
                if let Some(handle) = self.table().kinds.get(&kind) {
                    return Ok(*handle);
                }
                let committed = self.process.elements().commit(&datatype)?;
                let mut table = self.table();
                let handle = table.push_committed(committed);
                table.kinds.insert(kind, handle);
                Ok(handle)
            }
            _ => {
                let card = Arc::new(Card::of(self.process.names(), &datatype));
                let mut table = self.table();
                let datatype = table.tree_of(&card, datatype);
                Ok(table.push(Named::Built(datatype, card)))
            }
        }
    }

    /// Returns a handle of a committed type, with the type's name and attributes. A predefined type
    /// has its handle already.
    ///
    /// # Errors
    /// TYPE for a type of another rank.
    pub fn insert_own(&self, own: Type) -> Result<Handle> {
        self.process.ready()?;
        if !own.is_of(self.process.names()) {
            return Err(OTHER_RANK.into());
        }
        match own.datatype().node() {
            Node::Leaf(_) => self.insert(own.datatype().clone()),
            _ => Ok(self.table().push_committed(own)),
        }
    }

    /// Returns a handle of a type that another process sent.
    ///
    /// # Errors
    /// TYPE for a type that another rank received.
    pub fn insert_foreign(&self, foreign: ForeignType) -> Result<Handle> {
        self.process.ready()?;
        match foreign.is_of(self.process.names()) {
            true => Ok(self.table().push(Named::Foreign(foreign))),
            false => Err(OTHER_RANK.into()),
        }
    }

    /// Commits a type, for all handles that refer to it. Does nothing if it is committed already.
    ///
    /// # Errors
    /// TYPE for a null, freed or foreign handle. Otherwise the errors of [`Rank::commit`].
    pub fn commit(&self, handle: Handle) -> Result<()> {
        let (datatype, card) = match self.find(handle)? {
            Named::Built(datatype, card) => (datatype, card),
            Named::Foreign(foreign) => return Err(misused(&foreign, "committed again")),
            Named::Committed(..) => return Ok(()),
        };
        let (names, architecture) = (self.process.names(), &self.process.me().architecture);
        let compiled = Compiled::new(names, &datatype, architecture, None)?;
        self.table().commit(&datatype, &Type::with_card(compiled, card));
        Ok(())
    }

    /// Frees a handle (MPI-5.0 section 5.1.9). Operations in progress and other handles of the type
    /// remain valid. If it is the last handle, the attributes are deleted. Then free handlers are
    /// called, while the handle is still valid.
    ///
    /// Dropping the table frees all handles in it, and ignores errors.
    ///
    /// # Errors
    /// TYPE for a handle that is null, freed, or of a predefined type. The error of a delete
    /// callback; the handle stays valid then.
    pub fn free(&self, handle: Handle) -> Result<()> {
        let named = self.find(handle)?;
        if named.is_predefined() {
            return Err(PREDEFINED_FREED.into());
        }
        let last = named.is_last();
        if last {
            named.card().clear(Some(handle))?;
        }
        // No callback can refuse any more.
        named.card().tell_freed(Some(handle), last);
        drop(named);
        self.remove(handle);
        Ok(())
    }

    /// Removes a row, unless its type can't be freed. No free handler is called.
    fn remove(&self, handle: Handle) {
        let Ok(named) = self.find(handle) else { return };
        if named.is_predefined() {
            return;
        }
        if named.is_last() {
            named.card().silence();
        }
        let mut table = self.table();
        if let Some(datatype) = named.datatype() {
            table.forget(handle, datatype);
        }
        let row = table.rows.remove(&handle.0);
        // Perhaps the last references: they are dropped after the lock is released.
        drop(table);
        drop((row, named));
    }

    /// Duplicates a type (MPI-5.0 section 5.1.10). The new type is committed if the old one is. The
    /// copy callbacks decide which attributes it gets; its name is empty.
    ///
    /// # Errors
    /// TYPE for a handle that is null, freed or foreign. The error of a copy callback; no type is
    /// made then.
    pub fn dup(&self, handle: Handle) -> Result<Handle> {
        let (old, datatype) = self.built_here(handle, "a type to duplicate")?;
        let datatype = Datatype::dup(&datatype)?;
        let card = Arc::new(Card::of(self.process.names(), &datatype));
        old.card().copy_to(&card, Some(handle))?;
        let mut table = self.table();
        Ok(match old {
            Named::Committed(_, own) => {
                table.push_committed(Type::with_card(own.compiled().clone(), card))
            }
            _ => table.push(Named::Built(datatype, card)),
        })
    }

    /// The attribute under a keyval; `None` if the type has none.
    ///
    /// # Errors
    /// TYPE for a null or freed handle. Otherwise the errors of [`Type::attr`].
    pub fn attr<T: Any + Send + Sync>(
        &self,
        handle: Handle,
        keyval: &Keyval<Type, T>,
    ) -> Result<Option<Arc<T>>> {
        self.find(handle)?.card().get(keyval)
    }

    /// Sets the attribute under a keyval, for all handles that refer to the type.
    ///
    /// # Errors
    /// TYPE for a null or freed handle. Otherwise the errors of [`Type::set_attr`].
    pub fn set_attr<T: Any + Send + Sync>(
        &self,
        handle: Handle,
        keyval: &Keyval<Type, T>,
        value: impl Into<Arc<T>>,
    ) -> Result<()> {
        self.find(handle)?.card().set(keyval, value.into(), Some(handle))
    }

    /// Deletes the attribute under a keyval. Returns false if there is none.
    ///
    /// # Errors
    /// TYPE for a null or freed handle. Otherwise the errors of [`Type::delete_attr`].
    pub fn delete_attr<T: Any + Send + Sync>(
        &self,
        handle: Handle,
        keyval: &Keyval<Type, T>,
    ) -> Result<bool> {
        self.find(handle)?.card().delete(keyval, Some(handle))
    }

    /// The type's name. A predefined type has its MPI name; another type's name is empty at first.
    ///
    /// # Errors
    /// TYPE for a null or freed handle.
    pub fn name(&self, handle: Handle) -> Result<String> {
        Ok(self.find(handle)?.card().name())
    }

    /// Sets the type's name, for all handles that refer to it.
    ///
    /// # Errors
    /// TYPE for a null or freed handle.
    pub fn set_name(&self, handle: Handle, name: impl Into<String>) -> Result<()> {
        self.find(handle)?.card().set_name(name.into());
        Ok(())
    }

    /// The type, for any use except that of a target type.
    ///
    /// # Errors
    /// TYPE for a handle that is null, freed, not committed (rule 18), or foreign (rule T3).
    pub fn as_own(&self, handle: Handle, role: Role) -> Result<Type> {
        match self.find(handle)? {
            Named::Committed(_, own) => Ok(own),
            Named::Foreign(foreign) => Err(misused(&foreign, role.name())),
            Named::Built(..) => Err(UNCOMMITTED.into()),
        }
    }

    /// The type, for use as a target type.
    ///
    /// # Errors
    /// TYPE for a handle that is null, freed or not committed (rule 18).
    pub fn target(&self, handle: Handle) -> Result<Target> {
        match self.find(handle)? {
            Named::Committed(_, own) => Ok(Target::Own(own)),
            Named::Foreign(foreign) => Ok(Target::Foreign(foreign)),
            Named::Built(..) => Err(UNCOMMITTED.into()),
        }
    }

    /// The datatype, from which another one can be built.
    ///
    /// # Errors
    /// TYPE for a handle that is null, freed or foreign.
    pub fn datatype(&self, handle: Handle) -> Result<Datatype> {
        Ok(self.built_here(handle, "a type to build another with")?.1)
    }

    /// The type's bounds in the rank's memory.
    ///
    /// # Errors
    /// TYPE for a handle that is null, freed or foreign.
    pub fn bounds(&self, handle: Handle) -> Result<Bounds> {
        match self.built_here(handle, "a type to ask the bounds of")? {
            (Named::Committed(_, own), _) => Ok(own.bounds()),
            (_, datatype) => Ok(datatype.bounds(&self.process.me().architecture)?),
        }
    }

    /// The type's extent in the rank's memory.
    ///
    /// # Errors
    /// Those of [`bounds`](Types::bounds).
    pub fn extent(&self, handle: Handle) -> Result<i64> {
        self.bounds(handle).map(|bounds| bounds.extent())
    }

    /// The type's size: the number of bytes of its data.
    ///
    /// # Errors
    /// Those of [`bounds`](Types::bounds).
    pub fn size(&self, handle: Handle) -> Result<i64> {
        self.bounds(handle).map(|bounds| bounds.size)
    }

    /// The type's signature.
    ///
    /// # Errors
    /// Those of [`bounds`](Types::bounds).
    pub fn signature(&self, handle: Handle) -> Result<Signature> {
        let (_, datatype) = self.built_here(handle, "a type to ask the signature of")?;
        Ok(datatype.signature())
    }

    /// The type in text notation. Foreign types have one too.
    ///
    /// # Errors
    /// TYPE for a null or freed handle.
    pub fn print(&self, handle: Handle) -> Result<String> {
        match self.find(handle)? {
            Named::Built(datatype, _) | Named::Committed(datatype, _) => Ok(datatype.to_string()),
            Named::Foreign(foreign) => Ok(foreign.to_string()),
        }
    }

    /// The type's flat form.
    fn flat(&self, handle: Handle) -> Result<String> {
        let (_, datatype) = self.built_here(handle, Role::Pack.name())?;
        Ok(shipable::flat::pack(&datatype, &self.process.me().architecture)?)
    }

    /// Unpacks a type from its flat form and commits it.
    fn unpack(&self, packed: &[u8], position: &mut u64) -> Result<Handle> {
        let mut after = *position;
        let datatype = flat::unpack_datatype(&self.process, packed, &mut after)?;
        let handle = self.insert(datatype)?;
        // A type that can't be committed gets no handle.
        self.commit(handle).inspect_err(|_| self.remove(handle))?;
        *position = after;
        Ok(handle)
    }

    /// The type of a handle and its datatype. A foreign type has no datatype, so it is refused.
    fn built_here(&self, handle: Handle, role: &'static str) -> Result<(Named, Datatype)> {
        let named = self.find(handle)?;
        match &named {
            Named::Foreign(foreign) => Err(misused(foreign, role)),
            Named::Built(datatype, _) | Named::Committed(datatype, _) => Ok(datatype.clone()),
        }
        .map(|datatype| (named, datatype))
    }

    fn process(&self) -> &Process {
        &self.process
    }

    /// Locks the table. The lock must be released before any callback runs.
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The type of a handle.
    fn find(&self, handle: Handle) -> Result<Named> {
        self.process.ready()?;
        if let Some(basic) = handle.as_predefined() {
            let named = |own: &Type| Named::Committed(basic.into(), own.clone());
            if let Some(known) = self.table().basics.get(&basic) {
                return Ok(named(known));
            }
            let committed = self.process.elements().commit(&basic.into())?;
            return Ok(named(self.table().basics.entry(basic).or_insert(committed)));
        }
        if handle == Handle::NULL {
            return Err(ErrorKind::TypeHandle("null").into());
        }
        let table = self.table();
        match table.rows.get(&handle.0) {
            Some(named) => Ok(named.clone()),
            None if handle.0 <= table.last => Err(FREED.into()),
            None => Err(ErrorKind::TypeHandle("unknown to this rank").into()),
        }
    }
}

impl Drop for Types {
    fn drop(&mut self) {
        let table = self.table.get_mut().unwrap_or_else(PoisonError::into_inner);
        while let Some((number, named)) = table.rows.pop_first() {
            let last = Arc::strong_count(named.card()) == 1;
            if last {
                named.card().end();
            }
            named.card().tell_freed(Some(Handle(number)), last);
        }
    }
}

const FREED: ErrorKind = ErrorKind::TypeHandle("freed: use types before they are freed");
const UNCOMMITTED: ErrorKind = ErrorKind::TypeHandle("not committed: commit the type first");
const PREDEFINED_FREED: ErrorKind =
    ErrorKind::TypeHandle("of a predefined type: only types that were made can be freed");

fn misused(foreign: &ForeignType, role: &'static str) -> crate::Error {
    let (datatype, builder) = (excerpt(foreign), foreign.builder());
    ErrorKind::ForeignElsewhere { datatype, builder, role }.into()
}
