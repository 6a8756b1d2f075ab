//! The errors of parsing the text notation.

use super::{Class, Error};
use crate::limits::{MAX_DEPTH, MAX_LIST, MAX_TEXT};

/// The error of parsing a datatype's notation, with its position in the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {problem}")]
pub struct ParseError {
    /// The column, counted from 1. If the text ends too soon, it is one past the text's length.
    pub column: usize,
    /// The error at this column.
    pub problem: ParseProblem,
}

impl ParseError {
    /// The MPI error class: the class of the constructor's error if a constructor refused its
    /// arguments, otherwise TYPE.
    pub fn class(&self) -> Class {
        match &self.problem {
            ParseProblem::Refused(error) => error.class(),
            _ => Class::Type,
        }
    }
}

/// The kind of a parse error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseProblem {
    /// The text doesn't continue as the grammar requires.
    #[error("expected {expected}, found {found}")]
    Unexpected {
        /// A description of the text that the grammar allows here.
        expected: String,
        /// A description of the text that stands here.
        found: String,
    },
    /// A word in place of a type isn't the code of any basic type.
    #[error("no basic type has the code `{0}`")]
    UnknownBasic(String),
    /// A number is out of range, or isn't in the notation's number format.
    #[error("{what} `{text}` {problem}")]
    Number {
        /// The quantity that the number states.
        what: &'static str,
        /// The number's text.
        text: String,
        /// The rule that it breaks.
        problem: &'static str,
    },
    /// A list is shorter or longer than its stated length.
    #[error("a list of {of} states length {said}, but has {}", if listed > said { "more".to_string() } else { listed.to_string() })]
    List {
        /// The kind of the list's items.
        of: &'static str,
        /// The stated length.
        said: usize,
        /// The number of items found. `said + 1` stands for any greater number.
        listed: usize,
    },
    /// A reference to a type number that isn't defined before it.
    #[error("U{0} refers back to nothing: a type is defined before it is referred to")]
    Undefined(i64),
    /// A reference to a type from inside its own definition.
    #[error("U{number} is the type that begins at column {column}: a type can't contain itself")]
    Cycle {
        /// The type's number.
        number: i64,
        /// The column at which its definition begins.
        column: usize,
    },
    /// A second definition of a type number.
    #[error("U{number} is already defined at column {column}: refer to it, or use another number")]
    Redefined {
        /// The type's number.
        number: i64,
        /// The column at which its first definition begins.
        column: usize,
    },
    /// Definitions nest too deep.
    #[error("types nest deeper than {}, which is the most that is supported", MAX_DEPTH)]
    TooDeep,
    /// A list has more items than [`MAX_LIST`].
    #[error("a list of {0} items: at most {MAX_LIST} are supported")]
    TooMany(i64),
    /// The text is longer than [`MAX_TEXT`].
    #[error("a text of {0} bytes: at most {MAX_TEXT} are supported")]
    TooLong(usize),
    /// The constructor that begins at this column refuses its arguments.
    #[error(transparent)]
    Refused(Box<Error>),
}
