//! The two 80-bit formats with an explicit integer bit: x87 and m68k.
//!
//! They have equal widths and an equal bias. They differ in four points:
//!
//! - The image: x87 has sign and exponent in bits 64 to 79, with padding above. m68k has them in
//!   bits 80 to 95, with padding below.
//! - Exponent field 0: on x87 it means the exponent of field 1. On m68k it means one less, so the
//!   least normal number of m68k is 2^-16383.
//! - Numbers with an exponent but without the integer bit: they are invalid on x87, and numbers on
//!   m68k.
//! - Infinities: x87 requires the integer bit. m68k ignores it and writes none (MC68881 user's
//!   manual, section 3).

use super::misfit::Misfit;
use super::number::{Number, round};

const TOP: u128 = 0x7fff;
const BIAS: i32 = 16383;
const INTEGER_BIT: u64 = 1 << 63;
const QUIET_BIT: u64 = 1 << 62;

/// Sign, exponent field, and significand with its integer bit.
struct Parts {
    negative: bool,
    field: u128,
    significand: u64,
}

impl Parts {
    fn new(head: u128, significand: u64) -> Parts {
        Parts { negative: head >> 15 & 1 == 1, field: head & TOP, significand }
    }

    fn head(&self) -> u128 {
        u128::from(self.negative) << 15 | self.field
    }

    fn is_nan(&self) -> bool {
        self.field == TOP && self.significand & !INTEGER_BIT != 0
    }

    fn nan(&self) -> Number {
        Number::Nan { negative: self.negative, payload: u128::from(self.significand) << 65 }
    }

    /// A finite number. Field 0 means an exponent of `field_0`.
    fn finite(&self, field_0: i32) -> Number {
        let exponent = if self.field == 0 { field_0 } else { self.field as i32 - BIAS };
        Number::scaled(self.negative, u128::from(self.significand), exponent - 63)
    }

    fn of(number: &Number, field_0: i32, infinity: u64) -> Result<Parts, Misfit> {
        let (field, significand) = match *number {
            Number::Nan { payload, .. } => (TOP, INTEGER_BIT | QUIET_BIT | (payload >> 65) as u64),
            Number::Infinite { .. } => (TOP, infinity),
            Number::Zero { .. } => (0, 0),
            Number::Finite { exponent, significand, .. } => {
                let rounded = round(significand, exponent, 64, field_0 - 63);
                let carry = rounded.significand >> 64;
                let significand = if carry == 1 { INTEGER_BIT } else { rounded.significand as u64 };
                let exponent = field_0 + rounded.above_least as i32 + carry as i32;
                let is_normal = significand & INTEGER_BIT != 0;
                let field = if is_normal { (exponent + BIAS) as u128 } else { 0 };
                if field >= TOP {
                    return Err(Misfit::Overflow);
                }
                (field, significand)
            }
        };
        Ok(Parts { negative: number.is_negative(), field, significand })
    }
}

const X87_FIELD_0: i32 = 1 - BIAS;
const M68K_FIELD_0: i32 = -BIAS;

pub(super) fn decode_x87(image: u128) -> Result<Number, Misfit> {
    let parts = Parts::new(image >> 64, image as u64);
    let has_integer_bit = parts.significand & INTEGER_BIT != 0;
    match parts.field {
        TOP if !has_integer_bit && parts.is_nan() => Err(Misfit::PseudoNan),
        TOP if !has_integer_bit => Err(Misfit::PseudoInfinity),
        TOP if parts.is_nan() => Ok(parts.nan()),
        TOP => Ok(Number::Infinite { negative: parts.negative }),
        1.. if !has_integer_bit => Err(Misfit::Unnormal),
        _ => Ok(parts.finite(X87_FIELD_0)),
    }
}

pub(super) fn encode_x87(number: &Number) -> Result<u128, Misfit> {
    let parts = Parts::of(number, X87_FIELD_0, INTEGER_BIT)?;
    Ok(parts.head() << 64 | u128::from(parts.significand))
}

pub(super) fn decode_m68k(image: u128) -> Number {
    let parts = Parts::new(image >> 80, image as u64);
    match parts.field {
        TOP if parts.is_nan() => parts.nan(),
        TOP => Number::Infinite { negative: parts.negative },
        _ => parts.finite(M68K_FIELD_0),
    }
}

pub(super) fn encode_m68k(number: &Number) -> Result<u128, Misfit> {
    let parts = Parts::of(number, M68K_FIELD_0, 0)?;
    Ok(parts.head() << 80 | u128::from(parts.significand))
}
