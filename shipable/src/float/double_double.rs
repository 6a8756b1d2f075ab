//! IBM's double-double: a value is the exact sum of two binary64 halves, and the high half is that
//! sum rounded.

use std::cmp::Ordering;

use super::ieee::Ieee;
use super::misfit::Misfit;
use super::number::{Number, sum};

pub(super) fn decode(image: u128) -> Number {
    let high = Ieee::BINARY64.decode(image >> 64);
    let low = Ieee::BINARY64.decode(image & u64::MAX as u128);
    sum(high, low)
}

/// Steps:
///
/// 1. The high half is the number, rounded.
/// 2. The low half is the remainder, which a subtraction gives exactly, rounded.
/// 3. If the low half was rounded to half a unit of the high half's last place, the high half may
///    not be the rounded sum. Add the halves once more; the hardware does that exactly.
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

/// The high and the low half of an image.
fn halves(image: u128) -> [f64; 2] {
    [f64::from_bits((image >> 64) as u64), f64::from_bits(image as u64)]
}

/// The image of a sum. `high` must have the greater magnitude.
fn image(high: f64, low: f64) -> u128 {
    // Adding a zero could change the sign of a zero.
    let total = if low == 0.0 { high } else { high + low };
    let rest = low - (total - high);
    // An infinity or NaN is determined by its high half. The low half is then a positive zero.
    let rest = if total.is_finite() && rest != 0.0 { rest } else { 0.0 };
    u128::from(total.to_bits()) << 64 | u128::from(rest.to_bits())
}

/// The rounded sum, and its rounding error, which is exact.
fn two_sum(a: f64, b: f64) -> [f64; 2] {
    let sum = a + b;
    let of_b = sum - a;
    [sum, (a - (sum - of_b)) + (b - of_b)]
}

/// The sum. Adds the high halves and the low halves, each with its rounding error, and
/// renormalises.
pub(super) fn add(a: u128, b: u128) -> u128 {
    let ([a_high, a_low], [b_high, b_low]) = (halves(a), halves(b));
    let [high, lost] = two_sum(a_high, b_high);
    if !high.is_finite() {
        return image(high, 0.0);
    }
    let [low, lost_low] = two_sum(a_low, b_low);
    if lost + low == 0.0 {
        return image(high, lost_low);
    }
    let [high, rest] = two_sum(high, lost + low);
    image(high, rest + lost_low)
}

/// The product, without that of the low halves, which lies below the last place.
pub(super) fn multiply(a: u128, b: u128) -> u128 {
    let ([a_high, a_low], [b_high, b_low]) = (halves(a), halves(b));
    let high = a_high * b_high;
    if !high.is_finite() || high == 0.0 {
        return image(high, 0.0);
    }
    let lost = a_high.mul_add(b_high, -high);
    image(high, lost + (a_high * b_low + a_low * b_high))
}

/// The negated image. A NaN is unchanged.
pub(super) fn negated(image: u128) -> u128 {
    let [high, low] = halves(image);
    if high.is_nan() {
        return image;
    }
    u128::from((-high).to_bits()) << 64 | u128::from((-low).to_bits())
}

/// The order of two images. `None` if either is a NaN.
pub(super) fn compare(a: u128, b: u128) -> Option<Ordering> {
    let ([a_high, a_low], [b_high, b_low]) = (halves(a), halves(b));
    match a_high.partial_cmp(&b_high)? {
        Ordering::Equal if a_high.is_finite() => a_low.partial_cmp(&b_low),
        ordering => Some(ordering),
    }
}
