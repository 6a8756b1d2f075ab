//! What is shown in errors of long types and sequences.

use std::fmt::Display;

/// How many letters of a sequence or of a type are shown.
pub(crate) const SHOWN: usize = 120;

/// A type in an error: its beginning, since it may have millions of blocks.
pub(crate) fn excerpt(datatype: &dyn Display) -> String {
    shipable::excerpt::excerpt(datatype, SHOWN)
}
