//! What bytes mean: datatypes, forms, layout programs, pack, unpack, conversion.

pub mod codec;
