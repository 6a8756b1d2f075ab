//! What bytes mean: datatypes, forms, layout programs, pack, unpack, conversion.

pub mod arch;
pub mod codec;
pub mod convert;
pub mod float;
pub mod kernels;
pub mod memory;
