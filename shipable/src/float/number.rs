//! A floating point value apart from any format.

use std::fmt;

use super::ieee::Ieee;

/// A value between decoding and encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// Not a number.
    Nan {
        /// Its sign bit.
        negative: bool,
        /// Its fraction, leftmost bit (the quiet bit) leftmost.
        payload: u128,
    },
    /// An infinity.
    Infinite {
        /// Its sign.
        negative: bool,
    },
    /// A zero.
    Zero {
        /// Its sign.
        negative: bool,
    },
    /// Any other: 1.fraction times 2 to the `exponent`.
    Finite {
        /// Its sign.
        negative: bool,
        /// The power of two that its leftmost bit stands for.
        exponent: i32,
        /// Its leading 128 bits, the leftmost one. The last is also set if any bit beyond is.
        significand: u128,
    },
}

impl Number {
    /// `significand` times 2 to the `exponent`.
    pub(super) fn scaled(negative: bool, significand: u128, exponent: i32) -> Number {
        if significand == 0 {
            return Number::Zero { negative };
        }
        let shift = significand.leading_zeros();
        Number::Finite {
            negative,
            exponent: exponent + 127 - shift as i32,
            significand: significand << shift,
        }
    }

    pub(super) fn is_negative(&self) -> bool {
        match *self {
            Number::Nan { negative, .. }
            | Number::Infinite { negative }
            | Number::Zero { negative }
            | Number::Finite { negative, .. } => negative,
        }
    }

    pub(super) fn negated(self) -> Number {
        let negative = !self.is_negative();
        match self {
            Number::Nan { payload, .. } => Number::Nan { negative, payload },
            Number::Infinite { .. } => Number::Infinite { negative },
            Number::Zero { .. } => Number::Zero { negative },
            Number::Finite { exponent, significand, .. } => {
                Number::Finite { negative, exponent, significand }
            }
        }
    }
}

/// The leading bits of a finite number as a format keeps them.
pub(super) struct Rounded {
    /// Up to `precision` bits, or one more if all were ones and rounded up.
    pub significand: u128,
    /// How many units of the format's least positive number's exponent the significand's last bit
    /// lies above it.
    pub above_least: u32,
}

/// Rounds to `precision` bits, the last of which stands for 2 to the `least` or more: to nearest,
/// ties to even.
pub(super) fn round(significand: u128, exponent: i32, precision: u32, least: i32) -> Rounded {
    let last = (exponent + 1 - precision as i32).max(least);
    let above_least = (last - least) as u32;
    let dropped = last - (exponent - 127);
    let significand = match dropped {
        // Only binary formats of up to 113 bits exist, so at least 15 bits are dropped.
        1..=127 => {
            let (kept, rest) = (significand >> dropped, significand << (128 - dropped));
            let half = 1 << 127;
            kept + u128::from(rest > half || (rest == half && kept & 1 == 1))
        }
        128 => u128::from(significand > 1 << 127),
        _ => 0,
    };
    Rounded { significand, above_least }
}

/// In decimal: exactly as the shortest that reads back as the same binary64, or to three places.
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
