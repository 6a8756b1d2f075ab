//! The decimal text of a number, for error messages.

use std::fmt;

use super::ieee::Ieee;
use super::number::Number;

/// Decimal: the shortest text that reads back as the same binary64, otherwise three decimal places.
impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.is_negative() { "-" } else { "" };
        match *self {
            Number::Nan { .. } => f.write_str("NaN"),
            Number::Infinite { .. } => write!(f, "{sign}infinity"),
            Number::Zero { .. } => write!(f, "{sign}0"),
            Number::Finite { exponent, significand, .. } => {
                if let Some(double) = Ieee::BINARY64
                    .encode(self)
                    .ok()
                    .filter(|&image| Ieee::BINARY64.decode(image) == *self)
                {
                    return write!(f, "{:e}", f64::from_bits(double as u64));
                }
                let fraction = significand as f64 / 2f64.powi(127);
                let logarithm = fraction.log10() + exponent as f64 * std::f64::consts::LOG10_2;
                let decimal = logarithm.floor();
                write!(f, "{sign}{:.3}e{decimal}", 10f64.powf(logarithm - decimal))
            }
        }
    }
}
