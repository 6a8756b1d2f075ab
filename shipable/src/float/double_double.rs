//! IBM's double-double: a value is the exact sum of two binary64, the first the sum rounded.

use super::ieee::Ieee;
use super::number::Number;
use crate::convert::Misfit;

pub(super) fn decode(image: u128) -> Number {
    let high = Ieee::BINARY64.decode(image >> 64);
    let low = Ieee::BINARY64.decode(image & u64::MAX as u128);
    sum(high, low)
}

/// Steps:
///
/// 1. high is the number rounded.
/// 2. low is what remains, which subtraction gives exactly, rounded.
/// 3. Where rounding has made low half a unit of high's last place, high may no longer be the sum
///    rounded: the hardware adds again, exactly.
pub(super) fn encode(number: &Number) -> Result<u128, Misfit> {
    let high = Ieee::BINARY64.encode(number)?;
    let low = match number {
        Number::Finite { .. } => sum(*number, Ieee::BINARY64.decode(high).negated()),
        _ => Number::Zero { negative: false },
    };
    let low = Ieee::BINARY64.encode(&low)?;
    let (high, low) = (f64::from_bits(high as u64), f64::from_bits(low as u64));
    let total = high + low;
    if high.is_finite() && total.is_infinite() {
        return Err(Misfit::Overflow);
    }
    let pair =
        if low == 0.0 || total == high { (high, low) } else { (total, low - (total - high)) };
    Ok(u128::from(pair.0.to_bits()) << 64 | u128::from(pair.1.to_bits()))
}

/// The sum of two numbers: exact in its leading 126 bits or more, and its last bit set if there is
/// more.
fn sum(a: Number, b: Number) -> Number {
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
            // One bit of room for the carry.
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

/// Shifted right; the last bit is also set if any bit is lost, which keeps sums and differences on
/// the right side of every halfway point.
fn shifted(significand: u128, by: u32) -> u128 {
    let kept = significand.checked_shr(by).unwrap_or(0);
    let lost = by >= 128 || kept << by != significand;
    kept | u128::from(lost)
}
