//! The errors of parsing the text notation.

use super::{Class, Error};
use crate::limits::{MAX_DEPTH, MAX_LIST, MAX_TEXT};

/// Why a text is no datatype, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {problem}")]
pub struct ParseError {
    /// Where, counted from 1; one past the text's length where the text ends too soon.
    pub column: usize,
    /// What is wrong there.
    pub problem: ParseProblem,
}

impl ParseError {
    /// The MPI error class: that of the constructor which refused its arguments, else TYPE.
    pub fn class(&self) -> Class {
        match &self.problem {
            ParseProblem::Refused(error) => error.class(),
            _ => Class::Type,
        }
    }
}

/// What can be wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseProblem {
    /// Something else belongs here.
    #[error("expected {expected}, found {found}")]
    Unexpected {
        /// What the grammar has here.
        expected: String,
        /// What the text has, in words.
        found: String,
    },
    /// A word where a type belongs that is the code of none.
    #[error("no basic type has the code `{0}`")]
    UnknownBasic(String),
    /// A number that is not written as the notation writes numbers, or is out of its range.
    #[error("{what} `{text}` {problem}")]
    Number {
        /// What it is the number of.
        what: &'static str,
        /// The number as it stands there.
        text: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A list is shorter or longer than is said before it.
    #[error("a list of {of} says {said}, but has {}", if listed > said { "more".to_string() } else { listed.to_string() })]
    List {
        /// What is listed.
        of: &'static str,
        /// The number that the text states.
        said: usize,
        /// How many there are; one more than `said` stands for all more.
        listed: usize,
    },
    /// A reference to a number that nothing before it defines.
    #[error("U{0} refers back to nothing: a type is defined before it is referred to")]
    Undefined(i64),
    /// A reference to a type inside that type.
    #[error("U{number} is the type that begins at column {column}: a type can't contain itself")]
    Cycle {
        /// The number.
        number: i64,
        /// Where its definition begins.
        column: usize,
    },
    /// A second definition of a number.
    #[error("U{number} is already defined at column {column}: refer to it, or use another number")]
    Redefined {
        /// The number.
        number: i64,
        /// Where the first definition begins.
        column: usize,
    },
    /// Definitions within definitions.
    #[error("types nest deeper than {}, which is the most that is supported", MAX_DEPTH)]
    TooDeep,
    /// More items in a list than [`MAX_LIST`].
    #[error("a list of {0} items: at most {MAX_LIST} are supported")]
    TooMany(i64),
    /// More text than [`MAX_TEXT`].
    #[error("a text of {0} bytes: at most {MAX_TEXT} are supported")]
    TooLong(usize),
    /// The constructor that begins here refuses its arguments.
    #[error(transparent)]
    Refused(Box<Error>),
}
