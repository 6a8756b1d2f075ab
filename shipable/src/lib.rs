//! What bytes mean: datatypes, forms, layout programs, pack, unpack, conversion.

pub mod arch;
pub mod basic;
pub mod bounds;
pub mod codec;
mod committed;
pub mod convert;
pub mod datatype;
pub mod element;
pub mod error;
pub mod float;
pub mod form;
pub mod kernels;
pub mod memory;
mod notation;
#[cfg(feature = "oracle")]
pub mod oracle;
pub mod program;
pub mod signature;

pub use arch::Architecture;
pub use basic::{Basic, Leaf};
pub use bounds::Bounds;
pub use committed::Committed;
pub use datatype::{Datatype, Distribution, Order};
pub use element::{Element, c, fortran};
pub use error::{Class, Error, Result};
pub use form::{Form, Tag};
pub use memory::{View, ViewMut};
pub use program::{ConversionError, Partial, Program};
pub use shipable_derive::Shipable;
pub use signature::Signature;
