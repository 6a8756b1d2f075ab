//! The crate half's numbers as elements, and their conversions beside that crate's.

use half::{bf16, f16};
use shipable::arch::{ByteOrder, FloatFormat, Scalar, Value};
use shipable::convert::{Conversion, Misfit};
use shipable::oracle::{self, Random};
use shipable::{Architecture, Basic, Element, Shipable};

#[derive(Clone, Copy, Shipable)]
#[repr(C)]
struct Weight {
    value: bf16,
    scale: [f16; 2],
    bias: f32,
}

#[test]
fn halves_are_elements_and_fields() {
    assert_eq!(Weight::simple().unwrap().to_string(), "U1(SS:3:bf16/1,f16/2,f/1)");
    assert_eq!(f16::datatype().to_string(), "f16");
    for architecture in [Architecture::NATIVE, Architecture::S390X, Architecture::I686] {
        assert_eq!(architecture.basic(Basic::Bfloat16).size, 2);
    }
    // XDR has no type of two bytes.
    assert_eq!(Architecture::XDR.basic(Basic::Bfloat16).size, 4);
}

const SINGLE: Scalar = scalar(FloatFormat::Binary32, 4);

const fn scalar(format: FloatFormat, size: u8) -> Scalar {
    Scalar { value: Value::Float(format), size, order: ByteOrder::Little }
}

/// What a number of 16 bits becomes, or the reason why it doesn't fit.
fn narrowed(from: Scalar, bytes: &[u8], format: FloatFormat) -> Result<u16, Misfit> {
    let mut out = [0; 2];
    let conversion = Conversion::between(from, scalar(format, 2)).unwrap();
    conversion.apply(bytes, &mut out).map_err(|error| error.reason)?;
    Ok(u16::from_le_bytes(out))
}

/// The crate makes infinity of what is too great. A conversion refuses it.
fn expect(found: Result<u16, Misfit>, bits: u16, is_finite: bool, from: f64) {
    match is_finite || !from.is_finite() {
        true => assert_eq!(found, Ok(bits), "{from:e}"),
        false => assert_eq!(found, Err(Misfit::Overflow), "{from:e}"),
    }
}

/// The crate rounds a binary32 to nearest, ties to even. It doesn't round a binary64 so: it drops
/// its low bits. The unit tests of the conversions compare these with another crate.
#[test]
fn single_numbers_are_rounded_as_the_crate_does() {
    let mut random = Random::new(1, oracle::Options::default());
    for case in 0..200_000u64 {
        // Every other number is near the middle between two halves.
        let bits = random.below(1 << 32) as u32;
        let single = f32::from_bits(if case % 2 == 0 { bits } else { bits & !0x3fff | 0x8001 });
        if single.is_nan() {
            continue;
        }
        let (short, brain) = (f16::from_f32(single), bf16::from_f32(single));
        let bytes = single.to_le_bytes();
        let found = narrowed(SINGLE, &bytes, FloatFormat::Binary16);
        expect(found, short.to_bits(), short.is_finite(), single.into());
        let found = narrowed(SINGLE, &bytes, FloatFormat::Bfloat16);
        expect(found, brain.to_bits(), brain.is_finite(), single.into());
    }
}

#[test]
fn every_half_widens_exactly() {
    for bits in 0..=u16::MAX {
        for (format, wide) in [
            (FloatFormat::Binary16, f16::from_bits(bits).to_f32()),
            (FloatFormat::Bfloat16, bf16::from_bits(bits).to_f32()),
        ] {
            let mut out = [0; 4];
            let conversion = Conversion::between(scalar(format, 2), SINGLE).unwrap();
            conversion.apply(&bits.to_le_bytes(), &mut out).unwrap();
            let found = f32::from_le_bytes(out);
            assert!(found.to_bits() == wide.to_bits() || found.is_nan() && wide.is_nan());
        }
    }
}
