//! Types by handle, below the Rust types that make misuse impossible: the rules that a C edge relies on.
//!
//! A handle is a number: null, one of a predefined type, or the row of a table. A row is a pair of what the type is and of
//! its name and attributes, as James Cownie proposed it to the MPI Forum: dup makes a new row with the same first half, and a
//! reference that [`Types::contents`] returns is a new row with both halves the same. Rule 18 (committed, not freed, not null)
//! and rule T3 (a foreign type is a target type and nothing else) are checked here, for every use that a type has.
//!
//! Calls take the table by shared reference and hold no lock while callbacks and free handlers run, so these may use the
//! handle that they are told of.

mod communicators;
mod contents;
mod pack;

pub use crate::object::Handle;
pub use communicators::{CommunicatorHandle, Communicators};
pub use contents::Arrays;
pub use pack::{Argument, pack, pack_size, unpack};

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shipable::basic::{Basic, Leaf};
use shipable::datatype::Node;
use shipable::{Bounds, Datatype, Signature};

use crate::error::{ErrorKind, Result, excerpt};
use crate::flat;
use crate::object::{Card, Holder, Keyval};
use crate::process::Process;
use crate::rank::Rank;
use crate::types::{Compiled, ForeignType, OTHER_RANK, TargetType, Type};

/// What a handle names. A clone is another reference to the same.
#[derive(Clone)]
enum Named {
    Built(Datatype, Arc<Card>),
    Committed(Type),
    Foreign(ForeignType),
}

/// What a committed type is used as, other than target type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The origin type of an operation.
    Origin,
    /// Of what is sent.
    Send,
    /// Of what is received.
    Receive,
    /// Sent itself, by type_send.
    TypeSend,
    /// Of what is packed or unpacked.
    Pack,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Role::Origin => "an origin type",
            Role::Send => "the type of a send",
            Role::Receive => "the type of a receive",
            Role::TypeSend => "what type_send sends",
            Role::Pack => "the type of a pack",
        }
    }
}

/// A type of either kind, as a target type: what [`Types::target`] gives.
#[derive(Clone, Debug)]
pub enum Target {
    /// Committed here.
    Own(Type),
    /// Built at another process.
    Foreign(ForeignType),
}

impl<'a> From<&'a Target> for TargetType<'a> {
    fn from(target: &'a Target) -> TargetType<'a> {
        match target {
            Target::Own(own) => TargetType::Own(own),
            Target::Foreign(foreign) => TargetType::Foreign(foreign),
        }
    }
}

/// The types that a rank has handles of.
///
/// ```
/// use longshore::{Class, Datatype, handle::{Handle, Role, Types}};
///
/// let rank = longshore::init()?;
/// let types = Types::new(&rank);
/// let pair = types.insert(Datatype::contiguous(2, &Datatype::double())?)?;
/// assert_eq!(types.as_own(pair, Role::Origin).unwrap_err().class(), Class::Type); // not committed
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
/// assert_eq!((types.size(row)?, types.bounds(row)?.extent(), types.signature(row)?.count), (40, 40, 5));
/// // A dup has the attributes whose keyvals say so, and no name.
/// let level: Keyval<Type, u32> = rank.create_keyval(Callbacks::default().share())?;
/// types.set_attr(row, &level, 1u32)?;
/// let dup = types.dup(row)?;
/// assert_eq!(*types.attr(dup, &level)?.unwrap(), 1);
/// assert!(types.delete_attr(dup, &level)?);
/// assert_eq!(types.print(dup)?, "U1(D:U2(5d))");
/// assert_eq!(types.datatype(dup)?.signature(), types.signature(row)?);
/// // What was committed or received otherwise gets a handle, too.
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

#[derive(Default)]
struct Table {
    /// By handle, of those that aren't freed.
    rows: BTreeMap<u64, Named>,
    /// The last handle given out.
    last: u64,
    /// The rows of types that were built here and aren't freed, by the address of their tree, which a row keeps alive.
    by_tree: HashMap<usize, BTreeSet<u64>>,
    /// The predefined types that were asked for.
    basics: HashMap<Basic, Type>,
    /// Fortran's parametrised types, of which there is one for each choice of parameters.
    kinds: HashMap<Leaf, Handle>,
}

impl Types {
    /// A table for a rank, empty but for the predefined types.
    pub fn new(rank: &Rank) -> Types {
        Types { process: rank.process().clone(), table: Mutex::default() }
    }

    /// A handle of a datatype, to be committed, with a name and attributes of its own. A predefined type has its handle
    /// already, and one of Fortran's parametrised types the same whenever it is asked for.
    ///
    /// # Errors
    /// TYPE for a parametrised type that this rank's architecture lacks.
    pub fn insert(&self, datatype: Datatype) -> Result<Handle> {
        match datatype.node() {
            Node::Leaf(Leaf::Basic(basic)) => Ok(Handle::predefined(*basic)),
            Node::Leaf(kind) => {
                let kind = *kind;
                if let Some(handle) = self.table().kinds.get(&kind) {
                    return Ok(*handle);
                }
                let committed = self.compile(&datatype, None)?;
                let mut table = self.table();
                let handle = table.push(Named::Committed(committed));
                table.kinds.insert(kind, handle);
                Ok(handle)
            }
            _ => {
                let card = Arc::new(Card::of(self.process.names(), &datatype));
                Ok(self.table().push(Named::Built(datatype, card)))
            }
        }
    }

    /// A handle of a committed type, with the type's name and attributes; of a predefined type the one that it has.
    ///
    /// # Errors
    /// TYPE for a type of another rank.
    pub fn insert_own(&self, own: Type) -> Result<Handle> {
        if !own.is_of(self.process.names()) {
            return Err(OTHER_RANK.into());
        }
        match own.datatype().node() {
            Node::Leaf(_) => self.insert(own.datatype().clone()),
            _ => Ok(self.table().push(Named::Committed(own))),
        }
    }

    /// A handle of a type that another process sent.
    ///
    /// # Errors
    /// TYPE for a type that another rank received.
    pub fn insert_foreign(&self, foreign: ForeignType) -> Result<Handle> {
        match foreign.is_of(self.process.names()) {
            true => Ok(self.table().push(Named::Foreign(foreign))),
            false => Err(OTHER_RANK.into()),
        }
    }

    /// Commits a type, for all references to it; does nothing if it is committed.
    ///
    /// # Errors
    /// TYPE for a null, freed or foreign handle, and as [`Rank::commit`].
    pub fn commit(&self, handle: Handle) -> Result<()> {
        let (datatype, card) = match self.find(handle)? {
            Named::Built(datatype, card) => (datatype, card),
            Named::Foreign(foreign) => return Err(misused(&foreign, "committed again")),
            Named::Committed(_) => return Ok(()),
        };
        let committed = self.compile(&datatype, Some(card.clone()))?;
        self.table().commit(&datatype, &card, &committed);
        Ok(())
    }

    /// Frees a handle. What uses its type goes on, and so do other references to it. Free handlers are told of it first,
    /// with the handle still valid; if it was the last reference, its attributes are deleted.
    ///
    /// # Errors
    /// TYPE for a handle that is null, freed or of a predefined type; what a delete callback returns, and then the handle
    /// stays valid.
    pub fn free(&self, handle: Handle) -> Result<()> {
        let named = self.find(handle)?;
        let kind =
            named.datatype().is_some_and(|datatype| matches!(datatype.node(), Node::Leaf(_)));
        if kind {
            return Err(PREDEFINED_FREED.into());
        }
        let card = named.card();
        self.process.names().tell_free_handlers(&Holder::new(card, Some(handle)));
        // The row's, and this one.
        if Arc::strong_count(card) <= 2 {
            card.clear(Some(handle))?;
        }
        self.remove(handle);
        Ok(())
    }

    /// Empties a row, unless it is of a type that can't be freed.
    fn remove(&self, handle: Handle) {
        let Ok(named) = self.find(handle) else { return };
        let mut table = self.table();
        match named.datatype() {
            Some(datatype) if matches!(datatype.node(), Node::Leaf(_)) => return,
            Some(datatype) => table.forget(handle, datatype),
            None => {}
        }
        let row = table.rows.remove(&handle.0);
        // What may be the last reference ends after the lock.
        drop(table);
        drop((row, named));
    }

    /// A handle of a new type that is the same, committed if this one is (MPI-5.0 section 5.1.10): its attributes are what the
    /// copy callbacks make of this one's, its name is empty.
    ///
    /// # Errors
    /// TYPE for a handle that is null, freed or foreign; what a copy callback returns, and then there is no new type.
    pub fn dup(&self, handle: Handle) -> Result<Handle> {
        let (old, datatype) = self.built_here(handle, "a type to duplicate")?;
        let datatype = Datatype::dup(&datatype)?;
        let card = Arc::new(Card::of(self.process.names(), &datatype));
        old.card().copy_to(&card, Some(handle))?;
        let new = match old {
            Named::Committed(own) => {
                Named::Committed(Type::with_card(own.compiled().clone(), card))
            }
            _ => Named::Built(datatype, card),
        };
        Ok(self.table().push(new))
    }

    /// The attribute under a keyval, if the type has one.
    ///
    /// # Errors
    /// TYPE for a null or freed handle; as [`Type::attr`].
    pub fn attr<T: Any + Send + Sync>(
        &self,
        handle: Handle,
        keyval: &Keyval<Type, T>,
    ) -> Result<Option<Arc<T>>> {
        self.find(handle)?.card().get(keyval)
    }

    /// Sets the attribute under a keyval, for all references to the type.
    ///
    /// # Errors
    /// TYPE for a null or freed handle; as [`Type::set_attr`].
    pub fn set_attr<T: Any + Send + Sync>(
        &self,
        handle: Handle,
        keyval: &Keyval<Type, T>,
        value: impl Into<Arc<T>>,
    ) -> Result<()> {
        self.find(handle)?.card().set(keyval, value.into(), Some(handle))
    }

    /// Deletes the attribute under a keyval; false if there is none.
    ///
    /// # Errors
    /// TYPE for a null or freed handle; as [`Type::delete_attr`].
    pub fn delete_attr<T: Any + Send + Sync>(
        &self,
        handle: Handle,
        keyval: &Keyval<Type, T>,
    ) -> Result<bool> {
        self.find(handle)?.card().delete(keyval, Some(handle))
    }

    /// Its name: a predefined type's is MPI's, another's is empty at first.
    ///
    /// # Errors
    /// TYPE for a null or freed handle.
    pub fn name(&self, handle: Handle) -> Result<String> {
        Ok(self.find(handle)?.card().name())
    }

    /// Gives the type a name, for all references to it.
    ///
    /// # Errors
    /// TYPE for a null or freed handle.
    pub fn set_name(&self, handle: Handle, name: impl Into<String>) -> Result<()> {
        self.find(handle)?.card().set_name(name.into());
        Ok(())
    }

    /// The type for any use but that of a target type.
    ///
    /// # Errors
    /// TYPE for a handle that is null, freed, not committed (rule 18), or foreign (rule T3).
    pub fn as_own(&self, handle: Handle, role: Role) -> Result<Type> {
        match self.find(handle)? {
            Named::Committed(own) => Ok(own),
            Named::Foreign(foreign) => Err(misused(&foreign, role.name())),
            Named::Built(..) => Err(UNCOMMITTED.into()),
        }
    }

    /// The type as a target type.
    ///
    /// # Errors
    /// TYPE for a handle that is null, freed or not committed (rule 18).
    pub fn target(&self, handle: Handle) -> Result<Target> {
        match self.find(handle)? {
            Named::Committed(own) => Ok(Target::Own(own)),
            Named::Foreign(foreign) => Ok(Target::Foreign(foreign)),
            Named::Built(..) => Err(UNCOMMITTED.into()),
        }
    }

    /// The datatype, to build another one with it.
    ///
    /// # Errors
    /// TYPE for a handle that is null, freed or foreign.
    pub fn datatype(&self, handle: Handle) -> Result<Datatype> {
        Ok(self.built_here(handle, "a type to build another with")?.1)
    }

    /// Its bounds, in the rank's memory.
    ///
    /// # Errors
    /// TYPE for a handle that is null, freed or foreign.
    pub fn bounds(&self, handle: Handle) -> Result<Bounds> {
        match self.built_here(handle, "a type to ask the bounds of")? {
            (Named::Committed(own), _) => Ok(own.bounds()),
            (_, datatype) => Ok(datatype.bounds(&self.process.me().architecture)?),
        }
    }

    /// Its extent, in the rank's memory.
    ///
    /// # Errors
    /// As [`bounds`](Types::bounds).
    pub fn extent(&self, handle: Handle) -> Result<i64> {
        self.bounds(handle).map(|bounds| bounds.extent())
    }

    /// Bytes of data in it.
    ///
    /// # Errors
    /// As [`bounds`](Types::bounds).
    pub fn size(&self, handle: Handle) -> Result<i64> {
        self.bounds(handle).map(|bounds| bounds.size)
    }

    /// Its signature.
    ///
    /// # Errors
    /// As [`bounds`](Types::bounds).
    pub fn signature(&self, handle: Handle) -> Result<Signature> {
        let (_, datatype) = self.built_here(handle, "a type to ask the signature of")?;
        Ok(datatype.signature())
    }

    /// How a person reads it; any type that isn't freed has a text.
    ///
    /// # Errors
    /// TYPE for a null or freed handle.
    pub fn print(&self, handle: Handle) -> Result<String> {
        match self.find(handle)? {
            Named::Built(datatype, _) => Ok(datatype.to_string()),
            Named::Committed(own) => Ok(own.to_string()),
            Named::Foreign(foreign) => Ok(foreign.to_string()),
        }
    }

    /// Its flat form.
    fn flat(&self, handle: Handle) -> Result<String> {
        let (_, datatype) = self.built_here(handle, Role::Pack.name())?;
        Ok(shipable::flat::pack(&datatype, &self.process.me().architecture)?)
    }

    /// A committed type out of its flat form.
    fn unpack(&self, packed: &[u8], position: &mut u64) -> Result<Handle> {
        let mut after = *position;
        let datatype = flat::unpack_datatype(&self.process, packed, &mut after)?;
        let handle = self.insert(datatype)?;
        // A handle that can't be used isn't given out.
        self.commit(handle).inspect_err(|_| self.remove(handle))?;
        *position = after;
        Ok(handle)
    }

    /// What a handle names, and its tree, which a foreign type hasn't got.
    fn built_here(&self, handle: Handle, role: &'static str) -> Result<(Named, Datatype)> {
        let named = self.find(handle)?;
        match &named {
            Named::Foreign(foreign) => Err(misused(foreign, role)),
            Named::Built(datatype, _) => Ok(datatype.clone()),
            Named::Committed(own) => Ok(own.datatype().clone()),
        }
        .map(|datatype| (named, datatype))
    }

    fn compile(&self, datatype: &Datatype, card: Option<Arc<Card>>) -> Result<Type> {
        self.process.ready()?;
        let (names, architecture) = (self.process.names(), &self.process.me().architecture);
        let card = card.unwrap_or_else(|| Arc::new(Card::of(names, datatype)));
        Ok(Type::with_card(Compiled::new(names, datatype, architecture, None)?, card))
    }

    fn process(&self) -> &Process {
        &self.process
    }

    /// Locked for as long as no callback can run.
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a handle names.
    fn find(&self, handle: Handle) -> Result<Named> {
        if let Some(basic) = handle.as_predefined() {
            if let Some(known) = self.table().basics.get(&basic) {
                return Ok(Named::Committed(known.clone()));
            }
            let committed = self.compile(&basic.into(), None)?;
            let mut table = self.table();
            return Ok(Named::Committed(table.basics.entry(basic).or_insert(committed).clone()));
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

impl Named {
    fn card(&self) -> &Arc<Card> {
        match self {
            Named::Built(_, card) => card,
            Named::Committed(own) => own.shared_card(),
            Named::Foreign(foreign) => foreign.shared_card(),
        }
    }

    fn datatype(&self) -> Option<&Datatype> {
        match self {
            Named::Built(datatype, _) => Some(datatype),
            Named::Committed(own) => Some(own.datatype()),
            Named::Foreign(_) => None,
        }
    }
}

impl Table {
    fn push(&mut self, named: Named) -> Handle {
        self.last += 1;
        let handle = Handle(self.last);
        if let Some(datatype) = named.datatype() {
            self.by_tree.entry(datatype.key().addr()).or_default().insert(self.last);
        }
        self.rows.insert(self.last, named);
        handle
    }

    /// The oldest row of this very tree.
    fn oldest(&self, datatype: &Datatype) -> Option<&Named> {
        let rows = self.by_tree.get(&datatype.key().addr())?;
        self.rows.get(rows.first()?)
    }

    /// Commits all references to a type.
    fn commit(&mut self, datatype: &Datatype, card: &Arc<Card>, committed: &Type) {
        let same_tree = self.by_tree.get(&datatype.key().addr()).into_iter().flatten();
        for number in same_tree {
            match self.rows.get_mut(number) {
                Some(row @ Named::Built(..)) if Arc::ptr_eq(row.card(), card) => {
                    *row = Named::Committed(committed.clone());
                }
                _ => {}
            }
        }
    }

    fn forget(&mut self, handle: Handle, datatype: &Datatype) {
        let key = datatype.key().addr();
        if let Some(rows) = self.by_tree.get_mut(&key) {
            rows.remove(&handle.0);
            if rows.is_empty() {
                self.by_tree.remove(&key);
            }
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
