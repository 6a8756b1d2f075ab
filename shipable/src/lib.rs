//! What bytes mean: datatypes, forms, layout programs, pack, unpack, conversion.

pub mod arch;
pub mod basic;
pub mod bounds;
pub mod codec;
pub mod convert;
pub mod datatype;
pub mod error;
pub mod float;
pub mod kernels;
pub mod memory;
mod notation;
pub mod signature;

pub use arch::Architecture;
pub use basic::{Basic, Leaf};
pub use bounds::Bounds;
pub use datatype::{Datatype, Distribution, Order};
pub use error::{Class, Error, Result};
pub use signature::Signature;
