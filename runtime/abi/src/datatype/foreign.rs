//! Types that another rank built and sent by MPIX_Type_send. They describe data at that rank only,
//! so they are of another kind than the types of this process: any call but those that take a
//! target type refuses them.

use std::sync::Arc;

use longshore::{Class, ForeignType, IntoTargetType, TargetType};

use crate::datatype::Type;
use crate::edge::fault::Result;
use crate::edge::handle::{Handle, Kind, Object, find, insert, remove};

/// A type that another rank built.
pub struct Foreign(ForeignType);

impl Object for Foreign {
    const KIND: Kind = Kind::ForeignType;
    const CLASS: Class = Class::Type;
    const NULL: Handle = <Type as Object>::NULL;

    fn predefined(_: Handle) -> Option<Arc<Foreign>> {
        None
    }
}

/// The type of the data at a target.
pub enum Target {
    /// One of this process.
    Own(Arc<Type>),
    /// One that the target built.
    Foreign(Arc<Foreign>),
}

impl Target {
    /// The target type of a handle.
    ///
    /// # Errors
    /// TYPE for a handle of neither kind, and for a type that isn't committed.
    pub fn find(handle: Handle) -> Result<Target> {
        if let Ok(foreign) = find::<Foreign>(handle) {
            return Ok(Target::Foreign(foreign));
        }
        let own = find::<Type>(handle)?;
        own.committed()?;
        Ok(Target::Own(own))
    }

    /// The type, if it is one of this process.
    pub fn own(&self) -> Option<&Type> {
        match self {
            Target::Own(own) => Some(own),
            Target::Foreign(_) => None,
        }
    }

    /// What the calls of windows take.
    pub fn to_call(&self) -> Result<TargetType<'_>> {
        match self {
            Target::Own(own) => Ok(own.committed()?.into_target_type()),
            Target::Foreign(foreign) => Ok((&foreign.0).into_target_type()),
        }
    }
}

/// A handle of a type that another rank built.
pub fn received(datatype: ForeignType) -> Result<Handle> {
    insert(Arc::new(Foreign(datatype)))
}

/// Whether a handle is that of a received type.
pub fn is(handle: Handle) -> bool {
    find::<Foreign>(handle).is_ok()
}

/// Frees the handle of a received type.
pub fn free(handle: &mut Handle) -> Result<()> {
    remove::<Foreign>(handle).map(drop)
}
