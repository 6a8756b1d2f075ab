//! Types by handle, below the Rust types that make misuse impossible: the rules that a C edge relies on.
//!
//! A handle is a number. It is null, names a type that isn't committed yet, a committed one, a foreign one, or one that was
//! freed. Rule 18 (committed, not freed, not null) and rule T3 (a foreign type is a target type and nothing else) are
//! checked here, for every use that a type has.

use shipable::{Bounds, Datatype, Signature};

use crate::error::{ErrorKind, Result};
use crate::process::Rank;
use crate::types::{ForeignType, TargetType, Type};

/// Names a type. Numbers aren't used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handle(u64);

impl Handle {
    /// Names none.
    pub const NULL: Handle = Handle(0);
}

/// What a handle names.
enum Named {
    Built(Datatype),
    Committed(Type),
    Foreign(ForeignType),
    Freed,
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

/// The types that a rank has handles of.
///
/// ```
/// use longshore::{Class, Datatype, handle::{Handle, Role, Types}};
///
/// let rank = longshore::init()?;
/// let mut types = Types::default();
/// let double = types.insert(Datatype::double());
/// assert_eq!(types.as_own(double, Role::Origin).unwrap_err().class(), Class::Type); // not committed
/// types.commit(double, &rank)?;
/// assert_eq!(types.extent(double)?, 8);
/// types.free(double)?;
/// assert!(types.target(double).is_err());
/// # rank.finalize()?;
/// # Ok::<(), longshore::Error>(())
/// ```
#[derive(Default)]
pub struct Types {
    named: Vec<Named>,
}

impl Types {
    /// A handle of a datatype, to be committed.
    pub fn insert(&mut self, datatype: Datatype) -> Handle {
        self.name(Named::Built(datatype))
    }

    /// A handle of a type that another process sent.
    pub fn insert_foreign(&mut self, foreign: ForeignType) -> Handle {
        self.name(Named::Foreign(foreign))
    }

    /// Commits a type; does nothing if it is committed.
    ///
    /// # Errors
    /// TYPE for a null, freed or foreign handle, and as [`Rank::commit`].
    pub fn commit(&mut self, handle: Handle, rank: &Rank) -> Result<()> {
        let committed = match self.find(handle)? {
            Named::Built(datatype) => rank.commit(datatype)?,
            Named::Committed(_) => return Ok(()),
            Named::Foreign(foreign) => return Err(misused(foreign, "committed again")),
            Named::Freed => return Err(FREED.into()),
        };
        if let Some(named) = self.slot(handle) {
            *named = Named::Committed(committed);
        }
        Ok(())
    }

    /// Frees a handle. What uses its type goes on.
    ///
    /// # Errors
    /// TYPE for a null or freed handle.
    pub fn free(&mut self, handle: Handle) -> Result<()> {
        self.find(handle)?;
        if let Some(named) = self.slot(handle) {
            *named = Named::Freed;
        }
        Ok(())
    }

    /// The type for any use but that of a target type.
    ///
    /// # Errors
    /// TYPE for a handle that is null, freed, not committed (rule 18), or foreign (rule T3).
    pub fn as_own(&self, handle: Handle, role: Role) -> Result<&Type> {
        match self.find(handle)? {
            Named::Committed(own) => Ok(own),
            Named::Foreign(foreign) => Err(misused(foreign, role.name())),
            Named::Built(_) => Err(UNCOMMITTED.into()),
            Named::Freed => Err(FREED.into()),
        }
    }

    /// The type as a target type.
    ///
    /// # Errors
    /// TYPE for a handle that is null, freed or not committed (rule 18).
    pub fn target(&self, handle: Handle) -> Result<TargetType<'_>> {
        match self.find(handle)? {
            Named::Committed(own) => Ok(TargetType::Own(own)),
            Named::Foreign(foreign) => Ok(TargetType::Foreign(foreign)),
            Named::Built(_) => Err(UNCOMMITTED.into()),
            Named::Freed => Err(FREED.into()),
        }
    }

    /// The datatype, to build another one with it, or to look at its constructor.
    ///
    /// # Errors
    /// TYPE for a handle that is null, freed or foreign.
    pub fn contents(&self, handle: Handle) -> Result<&Datatype> {
        match self.find(handle)? {
            Named::Built(datatype) => Ok(datatype),
            Named::Committed(own) => Ok(own.datatype()),
            Named::Foreign(foreign) => {
                Err(misused(foreign, "a type to take apart or to build another with"))
            }
            Named::Freed => Err(FREED.into()),
        }
    }

    /// Its bounds, in the rank's memory.
    ///
    /// # Errors
    /// TYPE for a handle that is null, freed, not committed or foreign.
    pub fn bounds(&self, handle: Handle) -> Result<Bounds> {
        self.measured(handle, "a type to ask the bounds of").map(Type::bounds)
    }

    /// Its extent, in the rank's memory.
    ///
    /// # Errors
    /// As [`bounds`](Types::bounds).
    pub fn extent(&self, handle: Handle) -> Result<i64> {
        self.measured(handle, "a type to ask the extent of").map(Type::extent)
    }

    /// Bytes of data in it.
    ///
    /// # Errors
    /// As [`bounds`](Types::bounds).
    pub fn size(&self, handle: Handle) -> Result<i64> {
        self.measured(handle, "a type to ask the size of").map(|own| own.bounds().size)
    }

    /// Its signature.
    ///
    /// # Errors
    /// As [`bounds`](Types::bounds).
    pub fn signature(&self, handle: Handle) -> Result<Signature> {
        self.measured(handle, "a type to ask the signature of").map(Type::signature)
    }

    /// How a person reads it; any type that isn't freed has a text.
    ///
    /// # Errors
    /// TYPE for a null or freed handle.
    pub fn print(&self, handle: Handle) -> Result<String> {
        match self.find(handle)? {
            Named::Built(datatype) => Ok(datatype.to_string()),
            Named::Committed(own) => Ok(own.to_string()),
            Named::Foreign(foreign) => Ok(foreign.to_string()),
            Named::Freed => Err(FREED.into()),
        }
    }

    fn measured(&self, handle: Handle, role: &'static str) -> Result<&Type> {
        match self.find(handle)? {
            Named::Foreign(foreign) => Err(misused(foreign, role)),
            _ => self.as_own(handle, Role::Pack),
        }
    }

    fn name(&mut self, named: Named) -> Handle {
        self.named.push(named);
        Handle(self.named.len() as u64)
    }

    fn slot(&mut self, handle: Handle) -> Option<&mut Named> {
        let index = usize::try_from(handle.0.checked_sub(1)?).ok()?;
        self.named.get_mut(index)
    }

    fn find(&self, handle: Handle) -> Result<&Named> {
        let index = handle.0.checked_sub(1).ok_or(ErrorKind::TypeHandle("null"))?;
        let found = usize::try_from(index).ok().and_then(|index| self.named.get(index));
        match found {
            None => Err(ErrorKind::TypeHandle("unknown to this rank").into()),
            Some(Named::Freed) => Err(FREED.into()),
            Some(named) => Ok(named),
        }
    }
}

const FREED: ErrorKind = ErrorKind::TypeHandle("freed: use types before they are freed");
const UNCOMMITTED: ErrorKind = ErrorKind::TypeHandle("not committed: commit the type first");

fn misused(foreign: &ForeignType, role: &'static str) -> crate::Error {
    let (datatype, builder) = (foreign.to_string(), foreign.builder());
    ErrorKind::ForeignElsewhere { datatype, builder, role }.into()
}
