//! The elements that a call describes by several arguments, as one value.
//!
//! The exports make these values from a buffer and the parameters after it. `group.rs` of the crate
//! `longshore-abi-table` lists which parameters.

use std::ffi::c_int;
use std::sync::Arc;

use longshore::{Destination, Given, Origin, Pointed, Promised};

use crate::edge::arg::{Buffer, List, Numbers};
use crate::edge::fault::Result;
use crate::edge::handle::Handle;

/// Elements of one type, one after the other. The type is a handle, or what was found for one.
#[derive(Clone, Copy)]
pub struct Elements<T = Handle> {
    pub buffer: Buffer,
    pub count: i64,
    pub datatype: T,
}

/// The operands of a reduction, and the room for its result: elements of one type.
#[derive(Clone, Copy)]
pub struct Reduction {
    pub operands: Buffer,
    pub result: Buffer,
    pub count: i64,
    pub datatype: Handle,
}

impl Reduction {
    /// The operands.
    pub fn data(self) -> Elements {
        Elements { buffer: self.operands, count: self.count, datatype: self.datatype }
    }

    /// The room for the result.
    pub fn room(self) -> Elements {
        Elements { buffer: self.result, count: self.count, datatype: self.datatype }
    }
}

/// Partitions of as many elements each, one after the other.
#[derive(Clone, Copy)]
pub struct Divided {
    pub buffer: Buffer,
    pub partitions: c_int,
    pub count: i64,
    pub datatype: Handle,
}

/// Blocks of elements of one type. The displacements count its extent.
#[derive(Clone, Copy)]
pub struct Varying {
    pub buffer: Buffer,
    pub counts: Numbers,
    pub displacements: Numbers,
    pub datatype: Handle,
}

/// Blocks of elements of types of their own. The displacements are in bytes.
#[derive(Clone, Copy)]
pub struct Typed {
    pub buffer: Buffer,
    pub counts: Numbers,
    pub displacements: Numbers,
    pub types: List<Handle>,
}

/// The elements of an operation at its target, `disp` displacement units after the start of that
/// rank's memory.
#[derive(Clone, Copy)]
pub struct Remote {
    pub rank: c_int,
    pub disp: i64,
    pub count: i64,
    pub datatype: Handle,
}

/// The single elements of a fetch_and_op, and their place at the target.
#[derive(Clone, Copy)]
pub struct Fetch<T = Handle> {
    pub origin: Buffer,
    pub result: Buffer,
    pub datatype: T,
    pub rank: c_int,
    pub disp: i64,
}

/// The single elements of a compare_and_swap, and their place at the target.
#[derive(Clone, Copy)]
pub struct Swap<T = Handle> {
    pub origin: Buffer,
    pub compare: Buffer,
    pub result: Buffer,
    pub datatype: T,
    pub rank: c_int,
    pub disp: i64,
}

impl<T> Elements<T> {
    /// Elements of another type, at the same place.
    #[inline]
    pub fn of<U>(self, datatype: U) -> Elements<U> {
        Elements { buffer: self.buffer, count: self.count, datatype }
    }
}

impl<T> Elements<Option<Arc<T>>> {
    pub fn as_deref(&self) -> Elements<Option<&T>> {
        let datatype = self.datatype.as_deref();
        Elements { buffer: self.buffer, count: self.count, datatype }
    }
}

impl<'a> Elements<&'a longshore::Type> {
    /// Checks that there may be memory for them.
    ///
    /// # Errors
    /// Those of [`Buffer::check`].
    #[inline]
    pub fn check(self) -> Result<()> {
        self.buffer.check(self.count, self.datatype)
    }

    /// The elements, for a call that reads them.
    ///
    /// # Errors
    /// Those of [`Buffer::check`].
    #[inline]
    pub fn origin(self) -> Result<Origin<'a>> {
        self.buffer.origin(self.count, self.datatype)
    }

    /// Room for the elements, which a call writes.
    ///
    /// # Errors
    /// Those of [`Buffer::check`].
    #[inline]
    pub fn destination(self) -> Result<Destination<'a>> {
        self.buffer.destination(self.count, self.datatype)
    }

    /// Room for the elements, for an operation with a request.
    ///
    /// # Errors
    /// Those of [`Buffer::check`].
    #[inline]
    pub fn promised(self) -> Result<Promised<'a>> {
        self.buffer.promised(self.count, self.datatype)
    }

    /// The elements, for an operation with a request.
    ///
    /// # Errors
    /// Those of [`Buffer::check`].
    #[inline]
    pub fn given(self) -> Result<Given<Pointed>> {
        self.buffer.given(self.count, self.datatype)
    }
}
