//! Floating point values independent of any format.

use std::cmp::Ordering;

/// A value between decoding and encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// Not a number.
    Nan {
        /// The sign bit.
        negative: bool,
        /// The fraction, aligned to the left: its leftmost bit is the quiet bit.
        payload: u128,
    },
    /// An infinity.
    Infinite {
        /// The sign.
        negative: bool,
    },
    /// A zero.
    Zero {
        /// The sign.
        negative: bool,
    },
    /// Any other number: 1.fraction times 2 to the `exponent`.
    Finite {
        /// The sign.
        negative: bool,
        /// The power of two that the leftmost bit of the significand stands for.
        exponent: i32,
        /// The leading 128 bits. The first is 1. The last is sticky: it is also set if any later
        /// bit is.
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

    /// The sum. Like [`sum`], but zeros of opposite signs add up to the positive zero.
    pub(super) fn plus(self, other: Number) -> Number {
        match (self, other) {
            (Number::Zero { negative: a }, Number::Zero { negative: b }) => {
                Number::Zero { negative: a && b }
            }
            _ => sum(self, other),
        }
    }

    /// The product: its leading 128 bits, the last of which is sticky.
    pub(super) fn times(self, other: Number) -> Number {
        let negative = self.is_negative() != other.is_negative();
        match (self, other) {
            (Number::Nan { .. }, _) => self,
            (_, Number::Nan { .. }) => other,
            (Number::Infinite { .. }, Number::Zero { .. })
            | (Number::Zero { .. }, Number::Infinite { .. }) => {
                Number::Nan { negative: false, payload: 0 }
            }
            (Number::Infinite { .. }, _) | (_, Number::Infinite { .. }) => {
                Number::Infinite { negative }
            }
            (Number::Zero { .. }, _) | (_, Number::Zero { .. }) => Number::Zero { negative },
            (
                Number::Finite { exponent: a_exponent, significand: a, .. },
                Number::Finite { exponent: b_exponent, significand: b, .. },
            ) => {
                let (high, low) = product(a, b);
                // The product of significands lies between 2^254 and 2^256, at most one bit below
                // the top.
                let short = high.leading_zeros();
                let top = high << short | low >> 1 >> (127 - short);
                let significand = top | u128::from(low << short != 0);
                let exponent = a_exponent + b_exponent + 1 - short as i32;
                Number::Finite { negative, exponent, significand }
            }
        }
    }

    /// The order of two numbers. `None` if either is a NaN.
    pub(super) fn compare(&self, other: &Number) -> Option<Ordering> {
        let key = |number: &Number| match *number {
            Number::Nan { .. } => None,
            Number::Zero { .. } => Some((0, 0, 0)),
            Number::Finite { exponent, significand, .. } => Some((1, exponent, significand)),
            Number::Infinite { .. } => Some((2, 0, 0)),
        };
        let (a, b) = (key(self)?, key(other)?);
        let is_zero = |key: (i32, i32, u128)| key.0 == 0;
        if is_zero(a) && is_zero(b) {
            return Some(Ordering::Equal);
        }
        let negative = |number: &Number, key| number.is_negative() && !is_zero(key);
        Some(match (negative(self, a), negative(other, b)) {
            (false, false) => a.cmp(&b),
            (true, true) => b.cmp(&a),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        })
    }
}

/// The upper and the lower half of a 256-bit product.
fn product(a: u128, b: u128) -> (u128, u128) {
    const LOW: u128 = u64::MAX as u128;
    let (a1, a0, b1, b0) = (a >> 64, a & LOW, b >> 64, b & LOW);
    let low = a0 * b0;
    // The product of two halves, plus at most 2^64 - 1 twice, doesn't overflow.
    let cross = a1 * b0 + (low >> 64);
    let middle = a0 * b1 + (cross & LOW);
    (a1 * b1 + (cross >> 64) + (middle >> 64), middle << 64 | low & LOW)
}

/// The sum of two numbers. At least its leading 126 bits are exact, and its last bit is sticky.
pub(super) fn sum(a: Number, b: Number) -> Number {
    match (a, b) {
        (Number::Nan { .. }, _) => a,
        (_, Number::Nan { .. }) => b,
        (Number::Infinite { negative }, Number::Infinite { negative: other })
            if negative != other =>
        {
            Number::Nan { negative: false, payload: 0 }
        }
        (Number::Infinite { .. }, _) | (_, Number::Zero { .. }) => a,
        (_, Number::Infinite { .. }) | (Number::Zero { .. }, _) => b,
        (
            Number::Finite { negative, exponent, significand },
            Number::Finite {
                negative: other,
                exponent: other_exponent,
                significand: other_significand,
            },
        ) => {
            if (exponent, significand) < (other_exponent, other_significand) {
                return sum(b, a);
            }
            // Leave one bit for the carry.
            let greater = shifted(significand, 1);
            let smaller = shifted(other_significand, 1 + exponent.abs_diff(other_exponent));
            if negative == other {
                Number::scaled(negative, greater + smaller, exponent - 126)
            } else if greater == smaller {
                Number::Zero { negative: false }
            } else {
                Number::scaled(negative, greater - smaller, exponent - 126)
            }
        }
    }
}

/// Shifts right. The last bit is sticky, which keeps sums and differences on the right side of
/// every halfway point.
fn shifted(significand: u128, by: u32) -> u128 {
    let kept = significand.checked_shr(by).unwrap_or(0);
    let lost = by >= 128 || kept << by != significand;
    kept | u128::from(lost)
}

/// A finite number's significand, rounded for a format.
pub(super) struct Rounded {
    /// At most `precision` bits, or one bit more if all were ones and were rounded up.
    pub significand: u128,
    /// The exponent of the significand's last bit, less that of the format's least positive number.
    pub above_least: u32,
}

/// Rounds to `precision` bits, to nearest, ties to even. The last bit stands for 2 to the `least`
/// or more.
pub(super) fn round(significand: u128, exponent: i32, precision: u32, least: i32) -> Rounded {
    let last = (exponent + 1 - precision as i32).max(least);
    let above_least = (last - least) as u32;
    let dropped = last - (exponent - 127);
    let significand = match dropped {
        // No format keeps more than 113 bits, so at least 15 bits are dropped.
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
