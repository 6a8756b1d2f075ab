//! Conversions against exact fixed-point arithmetic, and against rustc_apfloat for the formats that
//! it has.

use std::cmp::Ordering;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rustc_apfloat::ieee::{BFloat, Double, Half, Quad, Single, X87DoubleExtended};
use rustc_apfloat::{Float, FloatConvert, Status};

use super::*;
use FloatFormat::*;

const SIMPLE: [FloatFormat; 7] = [Binary16, Bfloat16, Binary32, Binary64, X87, M68k, Binary128];

fn cases(default: usize) -> usize {
    std::env::var("LONGSHORE_TEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

/// A magnitude in fixed point, wide enough for every number of every format.
#[derive(Clone, PartialEq, Eq)]
struct Fixed(Vec<u32>);

impl Fixed {
    /// The power of two that bit 0 stands for.
    const POINT: i32 = -16500;
    const WORDS: usize = 2 * 16500 / 32 + 8;

    fn zero() -> Fixed {
        Fixed(vec![0; Fixed::WORDS])
    }

    /// `significand` times 2 to the `exponent`, one bit at a time.
    fn new(significand: u128, exponent: i32) -> Fixed {
        let mut fixed = Fixed::zero();
        for bit in (0..128).filter(|bit| significand >> bit & 1 == 1) {
            let position = (exponent + bit - Fixed::POINT) as usize;
            fixed.0[position / 32] |= 1 << (position % 32);
        }
        fixed
    }

    fn plus(&self, other: &Fixed) -> Fixed {
        let mut carry = 0;
        let sums = self.0.iter().zip(&other.0).map(|(&a, &b)| {
            let sum = u64::from(a) + u64::from(b) + carry;
            carry = sum >> 32;
            sum as u32
        });
        Fixed(sums.collect())
    }

    /// The magnitude of the difference.
    fn apart(&self, other: &Fixed) -> Fixed {
        if self.compare(other) == Ordering::Less {
            return other.apart(self);
        }
        let mut borrow = 0;
        let differences = self.0.iter().zip(&other.0).map(|(&a, &b)| {
            let difference = i64::from(a) - i64::from(b) - borrow;
            borrow = i64::from(difference < 0);
            difference as u32
        });
        Fixed(differences.collect())
    }

    fn twice(&self) -> Fixed {
        self.plus(self)
    }

    fn compare(&self, other: &Fixed) -> Ordering {
        self.0.iter().rev().cmp(other.0.iter().rev())
    }
}

/// The sign, and the ordinal among the format's magnitudes: 0 is zero, 1 the least positive number,
/// and so on up to infinity.
fn ordinal(format: FloatFormat, image: u128) -> (bool, u128) {
    let ordinal = |sign: u32| (image >> sign & 1 == 1, image & ((1 << sign) - 1));
    match format {
        Binary16 | Bfloat16 => ordinal(15),
        Binary32 => ordinal(31),
        Binary64 => ordinal(63),
        Binary128 => ordinal(127),
        X87 => {
            let field = image >> 64 & 0x7fff;
            (image >> 79 & 1 == 1, field << 63 | image & (u128::MAX >> 65))
        }
        M68k => {
            let (field, significand) = (image >> 80 & 0x7fff, image & u128::from(u64::MAX));
            (image >> 95 & 1 == 1, (field << 63) + significand)
        }
        DoubleDouble => unreachable!(),
    }
}

/// The ordinal of infinity.
fn infinity(format: FloatFormat) -> u128 {
    match format {
        Binary16 => 0x1f << 10,
        Bfloat16 => 0xff << 7,
        Binary32 => 0xff << 23,
        Binary64 => 0x7ff << 52,
        Binary128 => 0x7fff << 112,
        X87 => 0x7fff << 63,
        M68k => 0x8000 << 63,
        DoubleDouble => unreachable!(),
    }
}

/// The magnitude of an ordinal. For infinity, the magnitude that would follow the greatest number.
fn magnitude_of(format: FloatFormat, ordinal: u128) -> Fixed {
    let (fraction_bits, least) = match format {
        Binary16 => (10, -24),
        Bfloat16 => (7, -133),
        Binary32 => (23, -149),
        Binary64 => (52, -1074),
        Binary128 => (112, -16494),
        X87 => (63, -16445),
        M68k => (63, -16446),
        DoubleDouble => unreachable!(),
    };
    let (field, fraction) = (ordinal >> fraction_bits, ordinal & ((1 << fraction_bits) - 1));
    match field {
        0 => Fixed::new(fraction, least),
        _ => Fixed::new(fraction | 1 << fraction_bits, least + field as i32 - 1),
    }
}

/// The image that the format's hardware produces for an ordinal.
fn image(format: FloatFormat, negative: bool, ordinal: u128) -> u128 {
    let sign = u128::from(negative);
    let (field, fraction) = (ordinal >> 63, ordinal & (u128::MAX >> 65));
    let integer_bit = |is_set: bool| u128::from(is_set) << 63;
    match format {
        Binary16 | Bfloat16 => sign << 15 | ordinal,
        Binary32 => sign << 31 | ordinal,
        Binary64 => sign << 63 | ordinal,
        Binary128 => sign << 127 | ordinal,
        X87 => sign << 79 | field << 64 | integer_bit(field != 0) | fraction,
        M68k if ordinal == infinity(M68k) => sign << 95 | 0x7fff << 80,
        M68k => sign << 95 | field.saturating_sub(1) << 80 | integer_bit(field != 0) | fraction,
        DoubleDouble => unreachable!(),
    }
}

/// Checks that `found` is `exact`, correctly rounded.
fn check(exact: &Fixed, negative: bool, to: FloatFormat, found: Result<u128, Misfit>) {
    let found = match found {
        Ok(found) => found,
        Err(misfit) => {
            assert_eq!(misfit, Misfit::Overflow);
            let top = infinity(to);
            let limit = magnitude_of(to, top - 1).plus(&magnitude_of(to, top));
            assert_ne!(exact.twice().compare(&limit), Ordering::Less, "fits {to:?}");
            return;
        }
    };
    let (sign, at) = ordinal(to, found);
    assert_eq!((sign, image(to, sign, at)), (negative, found), "{to:?} {found:#x}");
    assert!(at < infinity(to));
    let (doubled, here) = (exact.twice(), magnitude_of(to, at));
    let is_even = at & 1 == 0;
    let above = doubled.compare(&here.plus(&magnitude_of(to, at + 1)));
    assert!(above == Ordering::Less || above == Ordering::Equal && is_even, "{to:?} {found:#x}");
    if at > 0 {
        let below = doubled.compare(&here.plus(&magnitude_of(to, at - 1)));
        assert!(
            below == Ordering::Greater || below == Ordering::Equal && is_even,
            "{to:?} {found:#x}"
        );
    }
}

fn convert(from: FloatFormat, image: u128, to: FloatFormat) -> Result<u128, Misfit> {
    encode(to, &decode(from, image)?)
}

/// Ordinals at which rounding changes, and random ones.
fn ordinals(format: FloatFormat, random: &mut SmallRng, count: usize) -> Vec<u128> {
    let top = infinity(format);
    let fraction_bits = if format == M68k { 63 } else { top.trailing_zeros() };
    let one = 1 << fraction_bits;
    let mut ordinals =
        vec![0, 1, 2, 3, one - 1, one, one + 1, 2 * one - 1, 2 * one, top - 1, top - 2, top / 2];
    // Around the limits of each narrower format's range: powers of two, halfway points, and their
    // neighbours.
    for end in [
        15, 16, 127, 128, 1023, 1024, 16383, -14, -24, -25, -126, -149, -150, -1022, -1074, -1075,
        -16382, -16383, -16445, -16446,
    ] {
        let bias = if format == M68k { 16384 } else { (top >> fraction_bits >> 1) as i32 };
        if let Some(field) =
            u128::try_from(end + bias).ok().filter(|&field| field << fraction_bits < top)
        {
            let start = field << fraction_bits;
            for kept in [10, 23, 52, 63, 112] {
                if kept < fraction_bits {
                    let half = 1 << (fraction_bits - kept - 1);
                    let last = ((1 << kept) - 1) << (fraction_bits - kept);
                    ordinals.extend([0, half, last, last | half].iter().flat_map(|&at| {
                        [start + at, start + at + 1, (start + at).saturating_sub(1)]
                    }));
                }
            }
        }
    }
    ordinals.extend((0..count).map(|i| {
        let ordinal = random.random_range(0..top);
        // Long runs of zeros or ones make halfway points likely.
        let low = random.random_range(0..=fraction_bits);
        match i % 3 {
            0 => ordinal,
            1 => ordinal >> low << low,
            _ => ordinal | ((1 << low) - 1),
        }
    }));
    ordinals.retain(|&ordinal| ordinal < top);
    ordinals
}

#[test]
fn every_conversion_rounds_to_nearest() {
    let mut random = SmallRng::seed_from_u64(1);
    for from in SIMPLE {
        for at in ordinals(from, &mut random, cases(400)) {
            let (negative, exact) = (random.random(), magnitude_of(from, at));
            let image = image(from, negative, at);
            for to in SIMPLE {
                check(&exact, negative, to, convert(from, image, to));
            }
            check_double_double(&exact, negative, convert(from, image, DoubleDouble));
        }
    }
}

/// The high half must be the rounded sum. The sum must be as close as the low half's last bit
/// allows.
fn check_double_double(exact: &Fixed, negative: bool, found: Result<u128, Misfit>) {
    let magnitude = |part: f64| magnitude_of(Binary64, u128::from(part.abs().to_bits()));
    let Ok(found) = found else {
        // Half of the low half's last place beyond the greatest number.
        let end = 2f64.powi(970);
        let low = f64::from_bits(end.to_bits() - 1);
        let limit = magnitude(f64::MAX).twice().plus(&magnitude(low)).plus(&magnitude(end));
        assert_ne!(exact.twice().compare(&limit), Ordering::Less, "fits");
        return;
    };
    let (high, low) = (f64::from_bits((found >> 64) as u64), f64::from_bits(found as u64));
    assert!(high.is_finite() && high + low == high, "{high:e} + {low:e}");
    assert_eq!(high.is_sign_negative(), negative);
    let sum = if low == 0.0 || (low < 0.0) == (high < 0.0) {
        magnitude(high).plus(&magnitude(low))
    } else {
        magnitude(high).apart(&magnitude(low))
    };
    let step = magnitude(f64::from_bits(low.abs().to_bits() + 1)).apart(&magnitude(low));
    assert_ne!(sum.apart(exact).twice().compare(&step), Ordering::Greater, "{high:e} + {low:e}");
}

#[test]
fn double_doubles_convert_with_one_rounding() {
    let mut random = SmallRng::seed_from_u64(2);
    for case in 0..cases(6000) {
        let high_field = random.random_range(1..0x7fe);
        let high = f64::from_bits((high_field << 52) | (random.random::<u64>() >> 12));
        // The low half is at most half of the high half's last bit. Exact halves and far lower
        // values matter most.
        let distance = match case % 4 {
            0 => 53,
            1 => random.random_range(53..60),
            2 => random.random_range(53..140),
            _ => random.random_range(53..2100),
        };
        let fraction = if case % 3 == 0 { 0 } else { random.random::<u64>() >> 12 };
        let low = match high_field.checked_sub(distance) {
            Some(field) if case % 4 != 0 || fraction == 0 => {
                f64::from_bits((field << 52) | fraction)
            }
            _ => f64::from_bits(random.random_range(0..2)),
        };
        let (opposed, negative) = (random.random(), random.random());
        if high + low != high {
            continue;
        }
        let parts = [high, low].map(|part| magnitude_of(Binary64, u128::from(part.to_bits())));
        let exact = if opposed { parts[0].apart(&parts[1]) } else { parts[0].plus(&parts[1]) };
        let signed =
            |part: f64, negative: bool| u128::from(if negative { -part } else { part }.to_bits());
        let image = signed(high, negative) << 64 | signed(low, negative != opposed);
        for to in SIMPLE {
            check(&exact, negative, to, convert(DoubleDouble, image, to));
        }
    }
}

#[test]
fn double_double_round_trips_through_binary128() {
    let mut random = SmallRng::seed_from_u64(3);
    for _ in 0..cases(2000) {
        let high =
            f64::from_bits(random.random_range(200u64..0x7fe) << 52 | random.random::<u64>() >> 12);
        // The halves adjoin, so the sum has up to 107 bits.
        let low = (high * 2f64.powi(-54)) * random.random_range(-1.0..1.0);
        let low = if high + low == high { f64::from_bits(low.to_bits() & !0xff) } else { 0.0 };
        let image = u128::from(high.to_bits()) << 64 | u128::from(low.to_bits());
        let quad = convert(DoubleDouble, image, Binary128).unwrap();
        let back = convert(Binary128, quad, DoubleDouble).unwrap();
        let (quad, back) = (decode(Binary128, quad).unwrap(), decode(DoubleDouble, back).unwrap());
        assert_eq!(quad, back);
    }
}

/// The conversion by rustc_apfloat. Both formats must be in [`SHARED`].
fn by_apfloat(from: FloatFormat, image: u128, to: FloatFormat) -> (u128, Status) {
    fn step<A: Float + FloatConvert<B>, B: Float>(image: u128) -> (u128, Status) {
        let converted = A::from_bits(image).convert(&mut false);
        (converted.value.to_bits(), converted.status)
    }
    fn to_any<A>(image: u128, to: FloatFormat) -> (u128, Status)
    where
        A: Float
            + FloatConvert<Half>
            + FloatConvert<BFloat>
            + FloatConvert<Single>
            + FloatConvert<Double>
            + FloatConvert<X87DoubleExtended>
            + FloatConvert<Quad>,
    {
        match to {
            Binary16 => step::<A, Half>(image),
            Bfloat16 => step::<A, BFloat>(image),
            Binary32 => step::<A, Single>(image),
            Binary64 => step::<A, Double>(image),
            X87 => step::<A, X87DoubleExtended>(image),
            _ => step::<A, Quad>(image),
        }
    }
    match from {
        Binary16 => to_any::<Half>(image, to),
        Bfloat16 => to_any::<BFloat>(image, to),
        Binary32 => to_any::<Single>(image, to),
        Binary64 => to_any::<Double>(image, to),
        X87 => to_any::<X87DoubleExtended>(image, to),
        _ => to_any::<Quad>(image, to),
    }
}

const SHARED: [FloatFormat; 6] = [Binary16, Bfloat16, Binary32, Binary64, X87, Binary128];

fn compare_with_apfloat(from: FloatFormat, image: u128, to: FloatFormat) {
    let (expected, status) = by_apfloat(from, image, to);
    let expected = match status.contains(Status::OVERFLOW) {
        true => Err(Misfit::Overflow),
        false => Ok(expected),
    };
    assert_eq!(convert(from, image, to), expected, "{from:?} {image:#x} to {to:?}");
}

#[test]
fn every_half_converts_as_in_apfloat() {
    for half in [Binary16, Bfloat16] {
        for image in 0..1 << 16 {
            for to in SHARED {
                compare_with_apfloat(half, image, to);
            }
        }
    }
}

#[test]
fn rounding_to_a_half_is_right_around_every_halfway_point() {
    for half in [Binary16, Bfloat16] {
        for at in 0..infinity(half) {
            let [here, next] =
                [at, at + 1].map(|at| f64::from_bits(by_apfloat(half, at, Binary64).0 as u64));
            let next = if next.is_infinite() { 2.0 * f64::from(1 << 15) } else { next };
            // No binary32 is halfway to what would follow the greatest bfloat16.
            if half == Bfloat16 && at + 1 == infinity(half) {
                break;
            }
            let halfway = ((here + next) / 2.0) as f32;
            for single in [halfway.to_bits() - 1, halfway.to_bits(), halfway.to_bits() + 1] {
                compare_with_apfloat(Binary32, single.into(), half);
            }
        }
    }
}

#[test]
fn other_formats_convert_as_in_apfloat() {
    let mut random = SmallRng::seed_from_u64(4);
    for from in SHARED {
        for at in ordinals(from, &mut random, cases(3000)) {
            let image = image(from, random.random(), at);
            for to in SHARED {
                compare_with_apfloat(from, image, to);
            }
        }
    }
}

#[test]
fn narrowing_matches_the_hardware() {
    let mut random = SmallRng::seed_from_u64(5);
    for at in ordinals(Binary64, &mut random, cases(20_000)) {
        let single = f64::from_bits(at as u64) as f32;
        let expected =
            if single.is_finite() { Ok(single.to_bits().into()) } else { Err(Misfit::Overflow) };
        assert_eq!(convert(Binary64, at, Binary32), expected);
    }
}

#[test]
fn infinities_zeros_and_nans_survive_conversion() {
    let special = |format: FloatFormat, number: Number| encode(format, &number).unwrap();
    let all = [Binary16, Bfloat16, Binary32, Binary64, X87, M68k, Binary128, DoubleDouble];
    for from in all {
        for to in all {
            for negative in [false, true] {
                for number in [Number::Zero { negative }, Number::Infinite { negative }] {
                    let image = convert(from, special(from, number), to);
                    assert_eq!(decode(to, image.unwrap()), Ok(number), "{from:?} to {to:?}");
                }
                // The quiet bit and the six bits after it, which fit even the narrowest format.
                let payload = 0b1011_0010 << 120;
                let nan = special(from, Number::Nan { negative, payload });
                let image = convert(from, nan, to).unwrap();
                assert_eq!(
                    decode(to, image),
                    Ok(Number::Nan { negative, payload: payload >> 121 << 121 })
                );
            }
        }
    }
    // A signalling NaN whose payload bits don't fit binary16 is still a NaN.
    assert_eq!(convert(Binary64, 0x7ff0_0000_0000_0001, Binary16), Ok(0x7e00));
    assert_eq!(convert(Binary32, 0xff80_0001, Binary64), Ok(0xfff8_0000_2000_0000));
}

#[test]
fn invalid_x87_encodings_are_refused_by_name() {
    let x87 = |head: u128, significand: u128| decode(X87, head << 64 | significand);
    assert_eq!(x87(0x3fff, 0x4000_0000_0000_0000), Err(Misfit::Unnormal));
    assert_eq!(x87(0xbfff, 0), Err(Misfit::Unnormal));
    assert_eq!(x87(0x7fff, 0), Err(Misfit::PseudoInfinity));
    assert_eq!(x87(0xffff, 1), Err(Misfit::PseudoNan));
    // A denormal with an integer bit equals the number with field 1.
    assert_eq!(x87(0, 3 << 62), x87(1, 3 << 62));
    // Padding isn't part of the value.
    assert_eq!(decode(X87, u128::MAX << 80 | 0x3fff << 64 | 1 << 63), decode(Binary16, 0x3c00));
}

#[test]
fn m68k_has_its_own_denormals_unnormals_and_infinities() {
    let m68k = |head: u128, significand: u128| head << 80 | significand;
    let x87 = |head: u128, significand: u128| head << 64 | significand;
    let one = 1 << 63;
    // The least normal number of m68k is half of x87's. On x87 it is a denormal.
    assert_eq!(convert(M68k, m68k(0, one), X87), Ok(x87(0, one >> 1)));
    assert_eq!(convert(X87, x87(1, one), M68k), Ok(m68k(1, one)));
    assert_eq!(convert(X87, x87(0, one >> 1), M68k), Ok(m68k(0, one)));
    assert_eq!(convert(X87, x87(0, 1), M68k), Ok(m68k(0, 2)));
    // The least number of m68k is half of x87's least. A tie rounds to zero, and three times the
    // number to twice x87's least.
    assert_eq!(convert(M68k, m68k(0, 1), X87), Ok(0));
    assert_eq!(convert(M68k, m68k(0, 3), X87), Ok(x87(0, 2)));
    // An unnormal is a number, and the integer bit of an infinity is ignored.
    assert_eq!(convert(M68k, m68k(0x3fff, one >> 1), Binary32), Ok(0x3f00_0000));
    assert_eq!(convert(M68k, m68k(0x7fff, one), Binary32), Ok(0x7f80_0000));
    assert_eq!(convert(M68k, m68k(0xffff, 0), X87), Ok(x87(0xffff, one)));
    assert_eq!(convert(Binary32, 0xff80_0000, M68k), Ok(m68k(0xffff, 0)));
}

#[test]
fn double_doubles_are_written_normalised() {
    let double = |value: f64| u128::from(value.to_bits());
    // One and a half units in the last place, less a bit that the low half can't hold. The low half
    // rounds to half a unit of an odd high half.
    let one_unit = 1 | 0x3fff << 112 | 1 << 60;
    let image = convert(Binary128, one_unit + (1 << 59) - 2, DoubleDouble).unwrap();
    let (high, low) = (f64::from_bits((image >> 64) as u64), f64::from_bits(image as u64));
    assert_eq!(high + low, high);
    // The greatest number, and the first value that rounds beyond it.
    let greatest = double(f64::MAX) << 64 | (double(2f64.powi(970)) - 1);
    let quad = convert(DoubleDouble, greatest, Binary128).unwrap();
    assert_eq!(convert(Binary128, quad, DoubleDouble), Ok(greatest));
    let last_place = 1 << (113 - 107);
    assert_eq!(convert(Binary128, quad + last_place / 2 - 1, DoubleDouble), Ok(greatest));
    assert_eq!(convert(Binary128, quad + last_place / 2, DoubleDouble), Err(Misfit::Overflow));
}

#[test]
fn values_are_printed_in_decimal() {
    let text = |format, image| decode(format, image).unwrap().to_string();
    assert_eq!(text(Binary64, 1e300f64.to_bits().into()), "1e300");
    assert_eq!(text(Binary32, (-0.5f32).to_bits().into()), "-5e-1");
    assert_eq!(text(Binary128, 0x7ffe << 112 | (u128::MAX >> 16)), "1.190e4932");
    assert_eq!(text(X87, 0x8001 << 64 | 1 << 63), "-3.362e-4932");
    assert_eq!(text(Binary16, 0x7c00), "infinity");
}

/// The sign and the exact magnitude of an image.
fn magnitude(format: FloatFormat, image: u128) -> (bool, Fixed) {
    let (negative, at) = ordinal(format, image);
    (negative, magnitude_of(format, at))
}

/// A finite number's significand and exponent.
fn parts(format: FloatFormat, image: u128) -> Option<(u128, i32)> {
    match decode(format, image) {
        Ok(Number::Finite { exponent, significand, .. }) => {
            let zeros = significand.trailing_zeros();
            Some((significand >> zeros, exponent - 127 + zeros as i32))
        }
        _ => None,
    }
}

/// The result of an operation, with infinity as an overflow.
fn finite(format: FloatFormat, found: u128) -> Result<u128, Misfit> {
    match decode(format, found) {
        Ok(Number::Infinite { .. }) => Err(Misfit::Overflow),
        _ => Ok(found),
    }
}

#[test]
fn sums_and_differences_are_rounded_once() {
    let mut random = SmallRng::seed_from_u64(11);
    for format in SIMPLE {
        let ordinals = ordinals(format, &mut random, cases(300));
        for _ in 0..cases(1500) {
            let mut pick = || {
                let at = ordinals[random.random_range(0..ordinals.len())];
                // Neighbours cancel.
                let at = if random.random() { at } else { at.saturating_add(1) };
                image(format, random.random(), at.min(infinity(format) - 1))
            };
            let (a, b) = (pick(), pick());
            let ((a_negative, a_exact), (b_negative, b_exact)) =
                (magnitude(format, a), magnitude(format, b));
            let cases = [
                (arithmetic::add(format, a, b), b_negative),
                (arithmetic::subtract(format, a, b), !b_negative),
            ];
            for (found, b_negative) in cases {
                let (negative, exact) = match a_negative == b_negative {
                    true => (a_negative, a_exact.plus(&b_exact)),
                    false => {
                        let less = a_exact.compare(&b_exact) == Ordering::Less;
                        (if less { b_negative } else { a_negative }, a_exact.apart(&b_exact))
                    }
                };
                // An exact cancellation gives the positive zero.
                let negative = negative && (exact != Fixed::zero() || a_negative == b_negative);
                check(&exact, negative, format, finite(format, found));
            }
        }
    }
}

#[test]
fn products_are_rounded_once() {
    let mut random = SmallRng::seed_from_u64(12);
    for format in [Binary16, Bfloat16, Binary32, Binary64, X87, M68k] {
        let ordinals = ordinals(format, &mut random, cases(300));
        for _ in 0..cases(1500) {
            let mut pick =
                || image(format, random.random(), ordinals[random.random_range(0..ordinals.len())]);
            let (a, b) = (pick(), pick());
            let (Some((x, x_at)), Some((y, y_at))) = (parts(format, a), parts(format, b)) else {
                continue;
            };
            let (product, at) = (x * y, x_at + y_at);
            // Beyond the fixed-point range, the product is far outside the format.
            if !(Fixed::POINT..=16300).contains(&at) {
                continue;
            }
            let negative = ordinal(format, a).0 != ordinal(format, b).0;
            let found = arithmetic::multiply(format, a, b);
            check(&Fixed::new(product, at), negative, format, finite(format, found));
        }
    }
    // Products of binary128 have 226 bits. Compare them with apfloat.
    let ordinals = ordinals(Binary128, &mut random, cases(300));
    for _ in 0..cases(3000) {
        let mut pick =
            || image(Binary128, random.random(), ordinals[random.random_range(0..ordinals.len())]);
        let (a, b) = (pick(), pick());
        let wanted = (Quad::from_bits(a) * Quad::from_bits(b)).value;
        assert_eq!(arithmetic::multiply(Binary128, a, b), wanted.to_bits(), "{a:#x} {b:#x}");
    }
}

#[test]
fn binary64_arithmetic_matches_the_hardware() {
    let mut random = SmallRng::seed_from_u64(13);
    let special =
        [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, f64::MAX, f64::MIN_POSITIVE, 1.0];
    for _ in 0..cases(20_000) {
        let mut pick = || match random.random_range(0..8) {
            0 => special[random.random_range(0..special.len())],
            _ => f64::from_bits(random.random()),
        };
        let (a, b) = (pick(), pick());
        let image = |value: f64| u128::from(value.to_bits());
        for (found, wanted) in [
            (arithmetic::add(Binary64, image(a), image(b)), a + b),
            (arithmetic::subtract(Binary64, image(a), image(b)), a - b),
            (arithmetic::multiply(Binary64, image(a), image(b)), a * b),
        ] {
            let found = f64::from_bits(found as u64);
            assert!(
                found.to_bits() == wanted.to_bits() || found.is_nan() && wanted.is_nan(),
                "{a:e} {b:e}"
            );
        }
        assert_eq!(arithmetic::compare(Binary64, image(a), image(b)), a.partial_cmp(&b));
    }
}

#[test]
fn double_double_arithmetic_is_accurate_to_100_bits() {
    let mut random = SmallRng::seed_from_u64(14);
    let pair = |high: f64, low: f64| u128::from(high.to_bits()) << 64 | u128::from(low.to_bits());
    // One plus a tiny number, minus one.
    let tiny = 2f64.powi(-900);
    assert_eq!(arithmetic::add(DoubleDouble, pair(1.0, tiny), pair(-1.0, 0.0)), pair(tiny, 0.0));
    for _ in 0..cases(20_000) {
        let mut pick = || {
            let high = random.random_range(-1.0..1.0) * 2f64.powi(random.random_range(-60..60));
            let low = high * random.random_range(-1.0..1.0) * 2f64.powi(-54);
            pair(high + low, low - ((high + low) - high))
        };
        let (a, b) = (pick(), pick());
        let [x, y] = [a, b].map(|image| decode(DoubleDouble, image).unwrap());
        for (found, exact, scale) in [
            (arithmetic::add(DoubleDouble, a, b), x.plus(y), x.plus(y)),
            (arithmetic::multiply(DoubleDouble, a, b), x.times(y), x.times(y)),
        ] {
            let [high, low] = [found >> 64, found].map(|half| f64::from_bits(half as u64));
            assert_eq!(high, high + low, "normalised");
            let off = decode(DoubleDouble, found).unwrap().plus(exact.negated());
            if let (Number::Finite { exponent: off, .. }, Number::Finite { exponent, .. }) =
                (off, scale)
            {
                assert!(off < exponent - 100, "{a:#x} {b:#x}: {off} of {exponent}");
            }
        }
        assert_eq!(arithmetic::compare(DoubleDouble, a, b), x.compare(&y));
    }
}
