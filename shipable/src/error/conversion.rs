//! The errors of converting a scalar from one representation to another.

use crate::scalar::{Scalar, ScalarName};

/// The error of a conversion between two scalars that has no definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no conversion from {} to {}", ScalarName(*from), ScalarName(*to))]
pub struct Unconvertible {
    /// The scalar at the source.
    pub from: Scalar,
    /// The scalar at the destination.
    pub to: Scalar,
}

/// A value that the destination's representation can't hold (MPI-5.0 section 4.3.2).
///
/// Its error class is CONVERSION.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "element {item}{} ({datatype}): {value} as {from} {reason} as {to}",
    .field.as_ref().map(|field| format!(", field {field}")).unwrap_or_default()
)]
pub struct ConversionError {
    /// The index of the basic item, from 0 at the start of the transfer. The two parts of a pair or
    /// a complex number count as one item each.
    pub item: u64,
    /// The path of the item's field, such as `battery[2].charge`, if the type is that of a struct
    /// with `#[derive(Shipable)]`. Begins with the index of the element, if the transfer has
    /// several.
    pub field: Option<String>,
    /// MPI's name of the item's type.
    pub datatype: String,
    /// The value in decimal; a value without a decimal text is given as its bits in hexadecimal.
    pub value: String,
    /// The reason: for example, that it overflows.
    pub reason: String,
    /// The source's representation.
    pub from: String,
    /// The destination's representation.
    pub to: String,
}
