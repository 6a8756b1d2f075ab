//! Sums, products and comparisons in software, for formats that the machine lacks.
//!
//! Operands and results are images of one format. A result is the exact result rounded once, to
//! nearest, ties to even. Beyond the greatest number it is infinity. A NaN operand gives a NaN, and
//! so does an x87 image that is no number, as on the x87.
//!
//! Double-double defines no rounding. It is computed in pairs, to within 2^-102 of the operands'
//! greater magnitude, and exactly if the sum fits.

use std::cmp::Ordering;

use super::number::Number;
use super::{decode, double_double, encode};
use crate::arch::FloatFormat;

/// The sum.
pub(crate) fn add(format: FloatFormat, a: u128, b: u128) -> u128 {
    match format {
        FloatFormat::DoubleDouble => double_double::add(a, b),
        _ => image(format, read(format, a).plus(read(format, b))),
    }
}

/// The difference.
pub(crate) fn subtract(format: FloatFormat, a: u128, b: u128) -> u128 {
    match format {
        FloatFormat::DoubleDouble => double_double::add(a, double_double::negated(b)),
        _ => {
            // A NaN stays unchanged.
            let b = match read(format, b) {
                nan @ Number::Nan { .. } => nan,
                number => number.negated(),
            };
            image(format, read(format, a).plus(b))
        }
    }
}

/// The product.
pub(crate) fn multiply(format: FloatFormat, a: u128, b: u128) -> u128 {
    match format {
        FloatFormat::DoubleDouble => double_double::multiply(a, b),
        _ => image(format, read(format, a).times(read(format, b))),
    }
}

/// The order of two images. `None` if either is a NaN.
pub(crate) fn compare(format: FloatFormat, a: u128, b: u128) -> Option<Ordering> {
    match format {
        FloatFormat::DoubleDouble => double_double::compare(a, b),
        _ => read(format, a).compare(&read(format, b)),
    }
}

fn read(format: FloatFormat, image: u128) -> Number {
    decode(format, image).unwrap_or(Number::Nan { negative: false, payload: 0 })
}

fn image(format: FloatFormat, number: Number) -> u128 {
    encode(format, &number)
        // `encode` refuses only overflow, and infinity doesn't overflow.
        .or_else(|_| encode(format, &Number::Infinite { negative: number.is_negative() }))
        .unwrap_or_default()
}
