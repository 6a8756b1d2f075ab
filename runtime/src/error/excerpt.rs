//! Excerpts of long types and sequences for error texts.

use std::fmt::{self, Display};

use shipable::Datatype;

use crate::program::{Language, language};

/// The number of characters of a type or sequence that an error text shows.
pub(crate) const SHOWN: usize = 120;

/// The beginning of a type's text. The whole text may describe millions of blocks.
pub(crate) fn excerpt(datatype: &dyn Display) -> String {
    shipable::excerpt::excerpt(datatype, SHOWN)
}

/// A type as the program's language has it: in C the calls that make it, in Rust its notation.
pub(crate) fn type_text(datatype: &Datatype, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match language() {
        Language::Rust => datatype.fmt(f),
        Language::C => datatype.calls().fmt(f),
    }
}

/// A type's text in the program's language, for ranks to which the type is sent.
pub(crate) fn type_string(datatype: &Datatype) -> String {
    match language() {
        Language::Rust => datatype.to_string(),
        Language::C => datatype.calls().to_string(),
    }
}

/// The beginning of a type's text in the program's language.
pub(crate) fn type_excerpt(datatype: &Datatype) -> String {
    match language() {
        Language::Rust => excerpt(datatype),
        Language::C => excerpt(&datatype.calls()),
    }
}
