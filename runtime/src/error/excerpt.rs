//! Excerpts of long types and sequences for error texts.

use std::fmt::Display;

/// The number of characters of a type or sequence that an error text shows.
pub(crate) const SHOWN: usize = 120;

/// The beginning of a type's text. The whole text may describe millions of blocks.
pub(crate) fn excerpt(datatype: &dyn Display) -> String {
    shipable::excerpt::excerpt(datatype, SHOWN)
}
