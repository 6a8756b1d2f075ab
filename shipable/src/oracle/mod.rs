//! The slow truth: type maps written out entry by entry, and bounds, signatures, pack and unpack
//! found from them. Everything fast is tested against it, here and in the crates above.
//!
//! It takes as much memory as the type has items, and it follows MPI's definitions rather than
//! this crate's other modules: it shares with them the constructor tree, the layout of a single
//! leaf and the conversion of a single scalar.

mod pack;
mod random;
mod typemap;

pub use pack::{Refusal, pack, unpack};
pub use random::{Options, Random, cases};
pub use typemap::{Item, NaiveBounds, bounds, effort, expand, flatten, overlaps};
