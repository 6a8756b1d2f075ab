//! Floating point values between all the formats that C and Fortran have, correctly rounded.
//!
//! Steps of a conversion:
//!
//! 1. [`decode`] reads an image into a [`Number`]: exact, but for a double-double whose halves lie
//!    more than 75 binary places apart, where the number's last bit says that there is more below
//!    it.
//! 2. [`encode`] rounds it once, to nearest and ties to even. 128 bits are at least 15 more than
//!    any format keeps, so a last bit set for "more below" rounds as the exact value would.
//!
//! A finite number that rounds beyond the greatest is an error, underflow rounds, infinities stay,
//! and a NaN stays one, quiet, with as much of its payload as there is room for. Encodings that are
//! no numbers are refused by name.
//!
//! Not here: other rounding modes, decimal formats, and the quiet bit's opposite sense
//! on old MIPS and PA-RISC.

pub(crate) mod arithmetic;
mod double_double;
mod extended;
mod ieee;
mod number;

use std::ops::RangeInclusive;

use crate::arch::FloatFormat;
use crate::convert::Misfit;
use ieee::Ieee;
pub use number::Number;

/// The storage sizes that a format can have, in bytes.
pub fn sizes(format: FloatFormat) -> RangeInclusive<u8> {
    match format {
        FloatFormat::Binary16 => 2..=2,
        FloatFormat::Binary32 => 4..=4,
        FloatFormat::Binary64 => 8..=8,
        FloatFormat::X87 => 10..=16,
        FloatFormat::M68k => 12..=12,
        FloatFormat::Binary128 | FloatFormat::DoubleDouble => 16..=16,
    }
}

/// Reads an image: the stored bytes as one integer, double-double's high half on top. Padding is
/// ignored.
///
/// # Errors
///
/// An x87 encoding that is no number.
pub fn decode(format: FloatFormat, image: u128) -> Result<Number, Misfit> {
    match format {
        FloatFormat::Binary16 => Ok(Ieee::BINARY16.decode(image)),
        FloatFormat::Binary32 => Ok(Ieee::BINARY32.decode(image)),
        FloatFormat::Binary64 => Ok(Ieee::BINARY64.decode(image)),
        FloatFormat::Binary128 => Ok(Ieee::BINARY128.decode(image)),
        FloatFormat::X87 => extended::decode_x87(image),
        FloatFormat::M68k => Ok(extended::decode_m68k(image)),
        FloatFormat::DoubleDouble => Ok(double_double::decode(image)),
    }
}

/// Makes the image of a number, rounded to nearest; padding is zero.
///
/// # Errors
///
/// [`Misfit::Overflow`] if a finite number rounds to beyond the format's greatest.
pub fn encode(format: FloatFormat, number: &Number) -> Result<u128, Misfit> {
    match format {
        FloatFormat::Binary16 => Ieee::BINARY16.encode(number),
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
