//! Datatypes and their bytes: forms, layout programs, pack, unpack and conversion between
//! representations.
//!
//! No I/O, no clock; threads are the caller's ([`program::Pool`]). Data flows in one direction:
//!
//! ```text
//!  Datatype ──commit──► Form ──lower(memory, stream)──► Program ──► kernels
//!  constructor tree;    shipable form;                  displacements in bytes and    loops keyed
//!  never rewritten      host-independent, encoded,      conversions; for one host,    by width
//!                       ships                           never ships
//! ```
//!
//! An [`Architecture`] describes how a machine represents each [`Basic`] type. It is a value, so
//! any machine can pack and unpack for any other. [`Bounds`] and [`Signature`] can be computed from
//! the tree and from the form. A [`Committed`] datatype holds its form and its programs. A receiver
//! needs only the bytes of a form. The module `oracle` (feature `oracle`) expands type maps item by
//! item, and all other modules are tested against it.
//!
//! ```
//! use shipable::form::Limits;
//! use shipable::{Architecture, Committed, Datatype, Form, Partial, View, ViewMut};
//!
//! // The little-endian origin packs a column of its 3 by 2 matrix. The target's datatype is the
//! // same column.
//! let (origin, target) = (Architecture::X86_64, Architecture::S390X);
//! let column = Committed::new(&Datatype::vector(3, 1, 2, &Datatype::int())?, &origin)?;
//! let matrix: Vec<u8> = (1..=6i32).flat_map(i32::to_le_bytes).collect();
//! let mut packed = [0; 12];
//! column.native().pack(1, View::new(&matrix), 0, &mut packed)?;
//! let shipped = column.form().encode();
//!
//! // The big-endian target computes the layout in its own memory, converts and scatters.
//! let form = Form::decode(&shipped, &Limits::default())?;
//! let program = form.lower(&target, &origin)?;
//! let mut window = [0; 24];
//! program.unpack(1, ViewMut::new(&mut window), 0, &packed, &mut Partial::default())?;
//! assert_eq!(window[8..12], 3i32.to_be_bytes());
//! # Ok::<(), shipable::Error>(())
//! ```
//!
//! Left out: attributes, names and handles, which belong to the runtime, and all I/O.

pub mod address;
pub mod arch;
pub mod basic;
pub mod bounds;
pub mod codec;
mod committed;
pub mod contents;
pub mod convert;
pub mod datatype;
mod dims;
pub mod element;
pub mod error;
pub mod excerpt;
mod fields;
pub mod flat;
pub mod float;
pub mod form;
pub mod kernels;
mod limits;
pub mod memory;
pub mod notation;
mod operation;
#[cfg(feature = "oracle")]
pub mod oracle;
pub mod packed;
pub mod program;
pub mod reduce;
pub mod relation;
mod scalar;
mod shared;
pub mod signature;
mod xdr;

pub use arch::Architecture;
pub use basic::{Basic, Leaf};
pub use bounds::Bounds;
pub use committed::{Committed, SharedProgram};
pub use datatype::{Datatype, Distribution, Order, TypeClass};
pub use element::{Data, Element, Enum, Enumeration, c, fortran};
pub use error::{Class, Error, Result};
pub use form::{Form, Tag};
pub use memory::{View, ViewMut};
pub use program::{ConversionError, Partial, Program, Stretch};
pub use relation::Relation;
pub use shipable_derive::Shipable;
pub use signature::Signature;
