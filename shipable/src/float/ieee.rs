//! The interchange formats of IEEE 754, and bfloat16: a sign, a biased exponent, and a fraction
//! with an implied leading bit.

use super::misfit::Misfit;
use super::number::{Number, round};

/// A format, described by its widths.
pub(super) struct Ieee {
    /// The bits of the significand, including the implied one.
    precision: u32,
    exponent_bits: u32,
}

impl Ieee {
    pub(super) const BINARY16: Ieee = Ieee { precision: 11, exponent_bits: 5 };
    pub(super) const BFLOAT16: Ieee = Ieee { precision: 8, exponent_bits: 8 };
    pub(super) const BINARY32: Ieee = Ieee { precision: 24, exponent_bits: 8 };
    pub(super) const BINARY64: Ieee = Ieee { precision: 53, exponent_bits: 11 };
    pub(super) const BINARY128: Ieee = Ieee { precision: 113, exponent_bits: 15 };

    fn fraction_bits(&self) -> u32 {
        self.precision - 1
    }

    /// The exponent field of infinities and NaNs.
    fn top(&self) -> u128 {
        (1 << self.exponent_bits) - 1
    }

    /// The exponent of the least positive number.
    fn least(&self) -> i32 {
        let least_normal = 2 - (1 << (self.exponent_bits - 1));
        least_normal - self.fraction_bits() as i32
    }

    pub(super) fn decode(&self, image: u128) -> Number {
        let fraction = image & ((1 << self.fraction_bits()) - 1);
        let field = image >> self.fraction_bits() & self.top();
        let negative = image >> (self.fraction_bits() + self.exponent_bits) & 1 == 1;
        if field == self.top() {
            return match fraction {
                0 => Number::Infinite { negative },
                _ => Number::Nan { negative, payload: fraction << (128 - self.fraction_bits()) },
            };
        }
        if field == 0 {
            return Number::scaled(negative, fraction, self.least());
        }
        let significand = fraction | 1 << self.fraction_bits();
        Number::scaled(negative, significand, self.least() + (field as i32 - 1))
    }

    pub(super) fn encode(&self, number: &Number) -> Result<u128, Misfit> {
        let infinity = self.top() << self.fraction_bits();
        let magnitude = match *number {
            Number::Nan { payload, .. } => {
                let quiet = 1 << (self.fraction_bits() - 1);
                infinity | quiet | payload >> (128 - self.fraction_bits())
            }
            Number::Infinite { .. } => infinity,
            Number::Zero { .. } => 0,
            Number::Finite { exponent, significand, .. } => {
                let rounded = round(significand, exponent, self.precision, self.least());
                // The field of a normal number is one more than that of a subnormal one. The
                // significand's leading bit adds this 1, and a carry out of rounding adds 1 again.
                let magnitude =
                    ((rounded.above_least as u128) << self.fraction_bits()) + rounded.significand;
                if magnitude >= infinity {
                    return Err(Misfit::Overflow);
                }
                magnitude
            }
        };
        let sign = u128::from(number.is_negative()) << (self.fraction_bits() + self.exponent_bits);
        Ok(sign | magnitude)
    }
}
