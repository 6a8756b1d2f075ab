//! Conversions of scalars between representations.
//!
//! A [`Conversion`] works on *units*. A copy's unit is a byte, and a swap's unit is the bytes that
//! it reverses. The unit of any other conversion is the whole scalar. A scalar of 16 bytes
//! therefore has sixteen units of a copy. A double-double has two units of a swap, since its halves
//! keep their places. Programs and kernels count in units when they merge runs or cut transfers.
//!
//! MPI-5.0 section 4.3.2: integers, logicals and characters convert exactly, and floating point to
//! the nearest value. A value that the target can't represent is an error. BYTE and PACKED are
//! never converted.

use std::fmt;

use crate::arch::{ByteOrder, FloatFormat, Scalar, Value};
use crate::float;
use crate::scalar::ScalarName;

pub use crate::error::Unconvertible;
pub use crate::float::Misfit;

/// The widest scalar, in bytes.
pub const MAX_SIZE: usize = 16;

/// A conversion from units of one representation to units of another.
///
/// ```
/// use shipable::arch::{ByteOrder, Scalar, Value};
/// use shipable::convert::Conversion;
///
/// let long = |size, order| Scalar { value: Value::Int { signed: true }, size, order };
/// let narrow = Conversion::between(long(8, ByteOrder::Little), long(4, ByteOrder::Big)).unwrap();
/// let mut out = [0; 4];
/// narrow.apply(&(-2i64).to_le_bytes(), &mut out).unwrap();
/// assert_eq!(out, (-2i32).to_be_bytes());
/// let refused = narrow.apply(&(1i64 << 40).to_le_bytes(), &mut out).unwrap_err();
/// assert_eq!(refused.value, "1099511627776");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Conversion {
    /// Bytes stay as they are.
    Copy,
    /// The bytes of each unit are reversed.
    Swap {
        /// The bytes that are reversed.
        unit: Unit,
    },
    /// Integers and characters of another width, sign or byte order.
    Resize(Ends),
    /// Logicals of another width, or with another `.TRUE.`. Any nonzero value is true, and true is
    /// written in the target's representation. Between other logicals the bits stay.
    Logical(Ends),
    /// Floating point of another format.
    Refloat(Ends),
}

/// The unit of a swap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Unit {
    /// Two bytes.
    Two = 2,
    /// Four bytes.
    Four = 4,
    /// Eight bytes.
    Eight = 8,
    /// Sixteen bytes.
    Sixteen = 16,
}

impl Unit {
    /// The unit of this many bytes.
    ///
    /// # Panics
    ///
    /// If no unit has this size.
    pub(crate) const fn of(bytes: usize) -> Unit {
        match bytes {
            2 => Unit::Two,
            4 => Unit::Four,
            8 => Unit::Eight,
            16 => Unit::Sixteen,
            _ => panic!("no swap has such a unit"),
        }
    }
}

/// The scalars at both ends of a conversion. Only [`Conversion::between`] makes them, since it
/// checks their sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ends {
    from: Scalar,
    to: Scalar,
}

/// A value that its target can't represent. MPI's class for it is CONVERSION.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{value} {reason}")]
pub struct ValueError {
    /// The value in decimal. If its bits are no number, the bits in hexadecimal.
    pub value: String,
    /// The reason.
    pub reason: Misfit,
}

impl Conversion {
    /// The conversion from one scalar to another.
    ///
    /// # Errors
    ///
    /// [`Unconvertible`] in three cases:
    ///
    /// - The scalars differ in kind, such as an integer and a float.
    /// - A scalar has a size that its kind can't have.
    /// - Bytes would change their number.
    pub fn between(from: Scalar, to: Scalar) -> Result<Conversion, Unconvertible> {
        let refused = Unconvertible { from, to };
        if !has_valid_size(from) || !has_valid_size(to) {
            return Err(refused);
        }
        let ends = Ends { from, to };
        let same_size = from.size == to.size;
        let (same_values, otherwise) = match (from.value, to.value) {
            (Value::Bytes, Value::Bytes) if same_size => return Ok(Conversion::Copy),
            (Value::Char, Value::Char) | (Value::Wide, Value::Wide) => {
                (same_size, Conversion::Resize(ends))
            }
            (Value::Int { signed: a }, Value::Int { signed: b }) => {
                (same_size && a == b, Conversion::Resize(ends))
            }
            (Value::Logical { truth: a }, Value::Logical { truth: b }) => (
                same_size && image_of(a, to.size) == image_of(b, to.size),
                Conversion::Logical(ends),
            ),
            (Value::Float(a), Value::Float(b)) => (same_size && a == b, Conversion::Refloat(ends)),
            _ => return Err(refused),
        };
        if !same_values {
            return Ok(otherwise);
        }
        let unit = match from.value {
            Value::Float(FloatFormat::DoubleDouble) => 8,
            _ => from.size,
        };
        Ok(match unit {
            _ if from.order == to.order || unit == 1 => Conversion::Copy,
            2 => Conversion::Swap { unit: Unit::Two },
            4 => Conversion::Swap { unit: Unit::Four },
            8 => Conversion::Swap { unit: Unit::Eight },
            16 => Conversion::Swap { unit: Unit::Sixteen },
            // Scalars of odd widths, and x87's padded image, which no machine stores in the other
            // byte order.
            _ => otherwise,
        })
    }

    /// The conversion in the other direction. It restores every value that wasn't rounded.
    pub fn reversed(self) -> Conversion {
        let reversed = |ends: Ends| Ends { from: ends.to, to: ends.from };
        match self {
            Conversion::Copy | Conversion::Swap { .. } => self,
            Conversion::Resize(ends) => Conversion::Resize(reversed(ends)),
            Conversion::Logical(ends) => Conversion::Logical(reversed(ends)),
            Conversion::Refloat(ends) => Conversion::Refloat(reversed(ends)),
        }
    }

    /// The bytes of a unit before the conversion.
    #[inline]
    pub fn from_size(self) -> u8 {
        match self {
            Conversion::Copy => 1,
            Conversion::Swap { unit } => unit as u8,
            Conversion::Resize(ends) | Conversion::Logical(ends) | Conversion::Refloat(ends) => {
                ends.from.size
            }
        }
    }

    /// The bytes of a unit after the conversion.
    #[inline]
    pub fn to_size(self) -> u8 {
        match self {
            Conversion::Copy => 1,
            Conversion::Swap { unit } => unit as u8,
            Conversion::Resize(ends) | Conversion::Logical(ends) | Conversion::Refloat(ends) => {
                ends.to.size
            }
        }
    }

    /// Whether bytes stay as they are.
    #[inline]
    pub fn is_copy(self) -> bool {
        matches!(self, Conversion::Copy)
    }

    /// Whether the conversion can refuse a value: if an integer or character may exceed the
    /// target's range. For floating point of another format, always true.
    pub fn can_fail(self) -> bool {
        match self {
            Conversion::Copy | Conversion::Swap { .. } | Conversion::Logical(_) => false,
            Conversion::Resize(Ends { from, to }) => match (from.value, to.value) {
                (Value::Int { signed: true }, Value::Int { signed: false }) => true,
                (Value::Int { signed: false }, Value::Int { signed: true }) => from.size >= to.size,
                _ => from.size > to.size,
            },
            Conversion::Refloat(_) => true,
        }
    }

    /// Converts one unit: `from_size` bytes to `to_size` bytes.
    ///
    /// # Errors
    ///
    /// [`ValueError`] if the target can't represent the value. `to` is then unchanged.
    ///
    /// # Panics
    ///
    /// If the slices have other lengths.
    pub fn apply(self, from: &[u8], to: &mut [u8]) -> Result<(), ValueError> {
        assert!(from.len() == self.from_size() as usize && to.len() == self.to_size() as usize);
        match self {
            Conversion::Copy => to.copy_from_slice(from),
            Conversion::Swap { .. } => {
                to.copy_from_slice(from);
                to.reverse();
            }
            Conversion::Resize(ends) => {
                let integer = Integer::load(ends.from, from, ends.from.size >= ends.to.size);
                if !integer.fits(ends.to) {
                    let value = integer.to_string();
                    return Err(ValueError { value, reason: Misfit::Range });
                }
                store(integer.bits, ends.to.order, to);
            }
            Conversion::Logical(ends) => {
                let truth = match ends.to.value {
                    Value::Logical { truth } if from.iter().any(|&byte| byte != 0) => truth,
                    _ => 0,
                };
                store(image_of(truth, ends.to.size), ends.to.order, to);
            }
            Conversion::Refloat(ends) => {
                let (from_format, to_format) = ends.formats();
                let image = load_float(ends.from, from_format, from);
                let number = float::decode(from_format, image)
                    .map_err(|reason| ValueError { value: format!("{image:#x}"), reason })?;
                let image = float::encode(to_format, &number)
                    .map_err(|reason| ValueError { value: number.to_string(), reason })?;
                store_float(image, ends.to, to_format, to);
            }
        }
        Ok(())
    }
}

impl Ends {
    /// The scalar before the conversion.
    pub fn from(&self) -> Scalar {
        self.from
    }

    /// The scalar after the conversion.
    pub fn to(&self) -> Scalar {
        self.to
    }

    fn formats(&self) -> (FloatFormat, FloatFormat) {
        match (self.from.value, self.to.value) {
            (Value::Float(from), Value::Float(to)) => (from, to),
            _ => unreachable!("Conversion::between pairs floats with floats only"),
        }
    }
}

fn has_valid_size(scalar: Scalar) -> bool {
    let size = scalar.size as usize;
    match scalar.value {
        Value::Bytes => size >= 1,
        Value::Float(format) => float::sizes(format).contains(&scalar.size),
        Value::Char | Value::Wide | Value::Int { .. } | Value::Logical { .. } => {
            (1..=MAX_SIZE).contains(&size)
        }
    }
}

/// A truth value in `size` bytes. All ones are extended to all ones.
pub(crate) fn image_of(truth: u64, size: u8) -> u128 {
    truth as i64 as i128 as u128 & ones(size)
}

/// A mask of `size` bytes.
fn ones(size: u8) -> u128 {
    u128::MAX >> (128 - 8 * size as u32)
}

/// An integer of up to 128 bits in two's complement, and whether it is negative.
struct Integer {
    bits: u128,
    negative: bool,
}

impl Integer {
    /// Loads an integer or a character. Characters have no sign, but a wide image of one may be the
    /// result of sign extension. It is read with its sign when it is narrowed.
    fn load(scalar: Scalar, bytes: &[u8], narrowing: bool) -> Integer {
        let signed = match scalar.value {
            Value::Int { signed } => signed,
            Value::Char => narrowing,
            _ => false,
        };
        let bits = load(scalar.order, bytes);
        let negative = signed && bits >> (8 * bytes.len() - 1) & 1 == 1;
        Integer { bits: if negative { bits | !ones(scalar.size) } else { bits }, negative }
    }

    fn fits(&self, to: Scalar) -> bool {
        let (greatest, least) = match to.value {
            Value::Int { signed: true } => (ones(to.size) >> 1, !(ones(to.size) >> 1)),
            Value::Char => (ones(to.size), !(ones(to.size) >> 1)),
            _ => (ones(to.size), 0),
        };
        if self.negative { least != 0 && self.bits >= least } else { self.bits <= greatest }
    }
}

impl fmt::Display for Integer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.negative { (self.bits as i128).fmt(f) } else { self.bits.fmt(f) }
    }
}

pub(crate) fn load(order: ByteOrder, bytes: &[u8]) -> u128 {
    let mut wide = [0; MAX_SIZE];
    match order {
        ByteOrder::Little => {
            wide[..bytes.len()].copy_from_slice(bytes);
            u128::from_le_bytes(wide)
        }
        ByteOrder::Big => {
            wide[MAX_SIZE - bytes.len()..].copy_from_slice(bytes);
            u128::from_be_bytes(wide)
        }
    }
}

pub(crate) fn store(bits: u128, order: ByteOrder, bytes: &mut [u8]) {
    match order {
        ByteOrder::Little => bytes.copy_from_slice(&bits.to_le_bytes()[..bytes.len()]),
        ByteOrder::Big => bytes.copy_from_slice(&bits.to_be_bytes()[MAX_SIZE - bytes.len()..]),
    }
}

/// Loads the image of a float: an integer in the float's byte order. For double-double, the high
/// half comes first in both byte orders.
pub(crate) fn load_float(scalar: Scalar, format: FloatFormat, bytes: &[u8]) -> u128 {
    let image = load(scalar.order, bytes);
    if low_half_last(scalar, format) { image.rotate_left(64) } else { image }
}

pub(crate) fn store_float(image: u128, scalar: Scalar, format: FloatFormat, bytes: &mut [u8]) {
    let image = if low_half_last(scalar, format) { image.rotate_left(64) } else { image };
    store(image, scalar.order, bytes);
}

fn low_half_last(scalar: Scalar, format: FloatFormat) -> bool {
    format == FloatFormat::DoubleDouble && scalar.order == ByteOrder::Little
}

impl fmt::Display for Conversion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Conversion::Copy => f.write_str("copy"),
            Conversion::Swap { unit } => write!(f, "swap{}", *unit as u8),
            Conversion::Resize(ends) => write!(f, "resize {ends}"),
            Conversion::Logical(ends) => write!(f, "logical {ends}"),
            Conversion::Refloat(ends) => write!(f, "refloat {ends}"),
        }
    }
}

impl fmt::Display for Ends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}>{}", ScalarName(self.from), ScalarName(self.to))
    }
}

#[cfg(test)]
mod tests;
