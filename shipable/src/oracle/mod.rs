//! The oracle: a slow implementation of type maps, bounds, signatures, pack and unpack, against
//! which the fast ones are tested.
//!
//! It writes type maps out entry by entry, so its memory is proportional to the number of items. It
//! follows MPI's definitions, and shares only three things with the crate's other modules: the
//! constructor tree, the layout of a single leaf, and the conversion of a single scalar.

mod pack;
mod random;
mod seeds;
mod typemap;

pub use pack::{Refusal, pack, unpack};
pub use random::{Options, Random};
pub use seeds::{cases, each_seed};
pub use typemap::{Item, NaiveBounds, bounds, effort, expand, flatten, overlaps};
