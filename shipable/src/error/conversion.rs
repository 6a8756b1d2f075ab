//! The errors of converting a scalar from one representation to another.

use crate::arch::scalar::{Scalar, ScalarName};

/// Two scalars between which no conversion is defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no conversion from {} to {}", ScalarName(*from), ScalarName(*to))]
pub struct Unconvertible {
    /// What there is.
    pub from: Scalar,
    /// What is wanted.
    pub to: Scalar,
}

/// A value that the representation at its destination doesn't have. MPI-5.0 section 4.3.2; the class is CONVERSION.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("element {item} ({datatype}): {value} as {from} {reason} as {to}")]
pub struct ConversionError {
    /// Which basic item, from 0 at the start of the transfer; the parts of pairs and complex numbers count one each.
    pub item: u64,
    /// Its type, by the name that MPI gives it.
    pub datatype: String,
    /// The value in decimal, or the bits, in hexadecimal, of what has none.
    pub value: String,
    /// What is wrong with it.
    pub reason: String,
    /// What the value was read as.
    pub from: String,
    /// What it should have become.
    pub to: String,
}
