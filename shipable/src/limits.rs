//! Limits on the datatypes and texts that the crate accepts.

/// The deepest nesting of constructors: walks over a type tree recurse.
pub(crate) const MAX_DEPTH: usize = 256;

/// The longest text that [`parse`](crate::notation::parse) accepts, in bytes.
pub const MAX_TEXT: usize = 64 << 20;

/// The longest list of one constructor in a text: its blocks, members or dimensions.
pub const MAX_LIST: usize = 1 << 24;
