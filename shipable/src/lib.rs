//! What bytes mean: datatypes, forms, layout programs, pack, unpack, conversion.
//!
//! No I/O, no clock, and no threads but rayon's. Data flows in one direction:
//!
//! ```text
//!  Datatype ──commit──► Form ──lower(memory, stream)──► Program ──► kernels
//!  constructor tree;    shipable form;                  displacements in bytes and
//!  never rewritten      host-independent, encoded,      conversions; a host's own,
//!                       hashed, what ships              never ships
//! ```
//!
//! An [`Architecture`] says how a machine represents each [`Basic`] type; it is a value, so that any
//! machine packs and unpacks for any other. [`Bounds`] and [`Signature`] are found on the tree.
//! The module `oracle` (feature `oracle`) writes type maps out item by item; everything else is
//! tested against it.
//!
//! ```
//! use shipable::{Architecture, Committed, Datatype, View};
//! // A column of a matrix of four by three doubles, packed as s390x has them.
//! let matrix: Vec<u8> = (0..12).flat_map(|n| f64::from(n).to_ne_bytes()).collect();
//! let column = Datatype::vector(4, 1, 3, &Datatype::double())?;
//! let committed = Committed::new(&column, &Architecture::NATIVE)?;
//! let mut packed = [0; 32];
//! committed.program(&Architecture::S390X)?.pack(1, View::new(&matrix), 0, &mut packed)?;
//! assert_eq!(packed[8..16], 3f64.to_be_bytes());
//! # Ok::<(), shipable::Error>(())
//! ```

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
