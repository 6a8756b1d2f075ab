//! Correctly rounded conversions between all floating point formats of C and Fortran.
//!
//! Steps of a conversion:
//!
//! 1. [`decode`] reads an image into a [`Number`]. The number is exact, except for a double-double
//!    whose halves lie more than 75 binary places apart. In that case the number's last bit is a
//!    sticky bit.
//! 2. [`encode`] rounds the number once, to nearest, ties to even. A number has at least 15 bits
//!    more than any format keeps, so one with a sticky bit rounds as the exact value would.
//!
//! A finite number that rounds beyond the format's greatest is an error. Underflow rounds, and
//! infinities stay. A NaN stays a quiet NaN, with as much of its payload as fits. An encoding that
//! is no number is refused with its name.
//!
//! Left out: other rounding modes, decimal formats, and the inverted quiet bit of old MIPS and
//! PA-RISC.

pub(crate) mod arithmetic;
mod double_double;
mod extended;
mod ieee;
mod misfit;
mod number;
mod text;

use std::ops::RangeInclusive;

use crate::arch::FloatFormat;
use ieee::Ieee;
pub use misfit::Misfit;
pub use number::Number;

/// The storage sizes that a format can have, in bytes.
pub fn sizes(format: FloatFormat) -> RangeInclusive<u8> {
    match format {
        FloatFormat::Binary16 | FloatFormat::Bfloat16 => 2..=2,
        FloatFormat::Binary32 => 4..=4,
        FloatFormat::Binary64 => 8..=8,
        FloatFormat::X87 => 10..=16,
        FloatFormat::M68k => 12..=12,
        FloatFormat::Binary128 | FloatFormat::DoubleDouble => 16..=16,
    }
}

/// Reads an image: the stored bytes as one integer, with the high half of a double-double on top.
/// Ignores padding.
///
/// # Errors
///
/// An x87 encoding that is no number.
pub fn decode(format: FloatFormat, image: u128) -> Result<Number, Misfit> {
    match format {
        FloatFormat::Binary16 => Ok(Ieee::BINARY16.decode(image)),
        FloatFormat::Bfloat16 => Ok(Ieee::BFLOAT16.decode(image)),
        FloatFormat::Binary32 => Ok(Ieee::BINARY32.decode(image)),
        FloatFormat::Binary64 => Ok(Ieee::BINARY64.decode(image)),
        FloatFormat::Binary128 => Ok(Ieee::BINARY128.decode(image)),
        FloatFormat::X87 => extended::decode_x87(image),
        FloatFormat::M68k => Ok(extended::decode_m68k(image)),
        FloatFormat::DoubleDouble => Ok(double_double::decode(image)),
    }
}

/// Makes the image of a number, rounded to nearest. Padding is zero.
///
/// # Errors
///
/// [`Misfit::Overflow`] if a finite number rounds beyond the format's greatest.
pub fn encode(format: FloatFormat, number: &Number) -> Result<u128, Misfit> {
    match format {
        FloatFormat::Binary16 => Ieee::BINARY16.encode(number),
        FloatFormat::Bfloat16 => Ieee::BFLOAT16.encode(number),
        FloatFormat::Binary32 => Ieee::BINARY32.encode(number),
        FloatFormat::Binary64 => Ieee::BINARY64.encode(number),
        FloatFormat::Binary128 => Ieee::BINARY128.encode(number),
        FloatFormat::X87 => extended::encode_x87(number),
        FloatFormat::M68k => extended::encode_m68k(number),
        FloatFormat::DoubleDouble => double_double::encode(number),
    }
}

#[cfg(test)]
mod tests;
