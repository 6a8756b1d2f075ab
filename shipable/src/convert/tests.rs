//! Integers of every width against `i128` arithmetic, and the limits of all other conversions.

use super::*;
use ByteOrder::{Big, Little};

fn int(signed: bool, size: u8, order: ByteOrder) -> Scalar {
    Scalar { value: Value::Int { signed }, size, order }
}

fn scalar(value: Value, size: u8, order: ByteOrder) -> Scalar {
    Scalar { value, size, order }
}

fn image(value: i128, size: u8, order: ByteOrder) -> Vec<u8> {
    match order {
        Little => value.to_le_bytes()[..size as usize].to_vec(),
        Big => value.to_be_bytes()[16 - size as usize..].to_vec(),
    }
}

fn range(signed: bool, size: u8) -> (i128, i128) {
    match (signed, size) {
        (true, 16) => (i128::MIN, i128::MAX),
        // Half of the range. The upper half has a test of its own.
        (false, 16) => (0, i128::MAX),
        (true, _) => (-(1 << (8 * size - 1)), (1 << (8 * size - 1)) - 1),
        (false, _) => (0, (1 << (8 * size)) - 1),
    }
}

#[test]
fn integers_keep_their_value_or_are_refused() {
    let kinds = || {
        [false, true]
            .into_iter()
            .flat_map(|signed| [1, 2, 3, 4, 8, 16].map(move |size| (signed, size)))
    };
    let edges: Vec<i128> = kinds()
        .flat_map(|(signed, size)| {
            let (least, greatest) = range(signed, size);
            [
                least,
                least + 1,
                greatest - 1,
                greatest,
                greatest.saturating_add(1),
                least.saturating_sub(1),
            ]
        })
        .chain([-1, 0, 1, 0x0102_0304_0506_0708, 77])
        .collect();
    for (from_signed, from_size) in kinds() {
        for (to_signed, to_size) in kinds() {
            let (least, greatest) = range(from_signed, from_size);
            let (to_least, to_greatest) = range(to_signed, to_size);
            for (from_order, to_order) in
                [(Little, Little), (Little, Big), (Big, Little), (Big, Big)]
            {
                let from = int(from_signed, from_size, from_order);
                let conversion =
                    Conversion::between(from, int(to_signed, to_size, to_order)).unwrap();
                let upper_half = (from_signed, from_size, to_signed) == (false, 16, true);
                let fits = to_least <= least && greatest <= to_greatest && !upper_half;
                assert_eq!(conversion.can_fail(), !fits, "{conversion}");
                for &value in edges.iter().filter(|&&value| least <= value && value <= greatest) {
                    let bytes = image(value, from_size, from_order);
                    let to_units = to_size / conversion.to_size();
                    let mut found = vec![0xee; to_size as usize];
                    let units = bytes.chunks(conversion.from_size() as usize);
                    let converted = units
                        .zip(found.chunks_mut((to_size / to_units) as usize))
                        .try_for_each(|(from, to)| conversion.apply(from, to));
                    if to_least <= value && value <= to_greatest {
                        assert_eq!(converted, Ok(()), "{conversion} {value}");
                        assert_eq!(found, image(value, to_size, to_order), "{conversion} {value}");
                    } else {
                        let refused = converted.unwrap_err();
                        assert_eq!(
                            refused,
                            ValueError { value: value.to_string(), reason: Misfit::Range }
                        );
                        assert!(found.iter().all(|&byte| byte == 0xee));
                    }
                }
            }
        }
    }
}

#[test]
fn large_unsigned_128_bit_integers_are_not_negative() {
    let huge = u128::MAX - 1;
    let conversion = Conversion::between(int(false, 16, Little), int(true, 16, Big)).unwrap();
    let refused = conversion.apply(&huge.to_le_bytes(), &mut [0; 16]).unwrap_err();
    assert_eq!(refused.value, huge.to_string());
    let conversion = Conversion::between(int(true, 16, Little), int(false, 16, Big)).unwrap();
    assert!(conversion.apply(&huge.to_le_bytes(), &mut [0; 16]).is_err());
}

fn applied(from: Scalar, to: Scalar, bytes: &[u8]) -> Result<Vec<u8>, ValueError> {
    let mut found = vec![0xee; to.size as usize];
    Conversion::between(from, to).unwrap().apply(bytes, &mut found).map(|()| found)
}

#[test]
fn nonzero_logicals_are_written_as_the_targets_true() {
    let logical = |truth, size, order| scalar(Value::Logical { truth }, size, order);
    let ones = logical(u64::MAX, 4, Big);
    let one = logical(1, 4, Little);
    assert_eq!(applied(one, ones, &[0, 0, 2, 0]), Ok(vec![0xff; 4]));
    assert_eq!(applied(one, ones, &[0; 4]), Ok(vec![0; 4]));
    assert_eq!(applied(ones, one, &[0xff; 4]), Ok(vec![1, 0, 0, 0]));
    assert_eq!(applied(one, logical(u64::MAX, 16, Big), &[1, 0, 0, 0]), Ok(vec![0xff; 16]));
    assert_eq!(applied(logical(1, 1, Little), logical(1, 4, Big), &[0x80]), Ok(vec![0, 0, 0, 1]));
    // Equal truth values of equal size have equal images, whatever their unused bits.
    let all = Conversion::between(ones, logical(0xffff_ffff, 4, Big));
    assert_eq!(all, Ok(Conversion::Copy));
}

#[test]
fn logicals_of_one_width_and_one_true_keep_their_bits() {
    let logical = |size, order| scalar(Value::Logical { truth: 1 }, size, order);
    let (little, big) = (logical(4, Little), logical(4, Big));
    // A .TRUE. of another compiler, and a `_Bool` that C doesn't define.
    assert_eq!(applied(little, big, &[0xff; 4]), Ok(vec![0xff; 4]));
    assert_eq!(applied(little, big, &[0, 2, 0, 0]), Ok(vec![0, 0, 2, 0]));
    assert_eq!(applied(logical(1, Little), logical(1, Big), &[5]), Ok(vec![5]));
    // No width but the destination's decides.
    assert_eq!(applied(logical(8, Little), big, &[0xff; 8]), Ok(vec![0, 0, 0, 1]));
}

#[test]
fn wide_characters_fit_or_are_refused() {
    let (narrow, wide) = (scalar(Value::Wide, 2, Little), scalar(Value::Wide, 4, Big));
    assert_eq!(applied(narrow, wide, &[0xff, 0xff]), Ok(vec![0, 0, 0xff, 0xff]));
    assert_eq!(applied(wide, narrow, &[0, 0, 0x20, 0xac]), Ok(vec![0xac, 0x20]));
    assert_eq!(applied(wide, narrow, &[0, 1, 0xf6, 0]).unwrap_err().value, "128512");
}

#[test]
fn zero_and_sign_extended_characters_narrow_alike() {
    let (char, xdr) = (scalar(Value::Char, 1, Little), scalar(Value::Char, 4, Big));
    assert_eq!(applied(char, xdr, &[0xe9]), Ok(vec![0, 0, 0, 0xe9]));
    assert_eq!(applied(xdr, char, &[0, 0, 0, 0xe9]), Ok(vec![0xe9]));
    assert_eq!(applied(xdr, char, &[0xff, 0xff, 0xff, 0xe9]), Ok(vec![0xe9]));
    assert!(applied(xdr, char, &[0, 0, 1, 0]).is_err());
    assert!(applied(xdr, char, &[0xff, 0xff, 0xff, 0x7f]).is_err());
}

#[test]
fn characters_can_fail_only_when_narrowed() {
    for value in [Value::Char, Value::Wide] {
        for (from, to) in [(1, 4), (2, 4), (3, 3), (4, 4), (4, 2), (4, 1)] {
            let [from, to] = [scalar(value, from, Little), scalar(value, to, Big)];
            let conversion = Conversion::between(from, to).unwrap();
            let sizes = [conversion.from_size(), conversion.to_size()].map(usize::from);
            let mut all = (0..=0xffff).chain(0xff_0000..=0xff_ffff).chain(0xffff_0000..=u32::MAX);
            let refused = all.any(|bits| {
                let mut out = [0; MAX_SIZE];
                conversion.apply(&bits.to_le_bytes()[..sizes[0]], &mut out[..sizes[1]]).is_err()
            });
            assert_eq!(conversion.can_fail(), refused, "{conversion}");
        }
    }
}

#[test]
fn refused_floats_report_their_value_or_encoding() {
    let float = |format, size, order| scalar(Value::Float(format), size, order);
    let double = float(FloatFormat::Binary64, 8, Big);
    let single = float(FloatFormat::Binary32, 4, Little);
    assert_eq!(applied(double, single, &0.1f64.to_be_bytes()), Ok(0.1f32.to_le_bytes().to_vec()));
    let refused = applied(double, single, &(-1e39f64).to_be_bytes()).unwrap_err();
    assert_eq!(refused.to_string(), "-1e39 overflows");
    let x87 = float(FloatFormat::X87, 12, Little);
    let unnormal =
        applied(x87, double, &[0, 0, 0, 0, 0, 0, 0, 0x40, 0xff, 0x3f, 0, 0]).unwrap_err();
    assert_eq!(
        unnormal.to_string(),
        "0x3fff4000000000000000 is an x87 unnormal, which is no number"
    );
}

#[test]
fn long_doubles_have_the_storage_of_compilers() {
    let float = |format, size, order| scalar(Value::Float(format), size, order);
    let x87 = float(FloatFormat::X87, 16, Little);
    let one_and_a_half = [0, 0, 0, 0, 0, 0, 0, 0xc0, 0xff, 0x3f, 1, 2, 3, 4, 5, 6];
    // m68k stores exponent, padding and significand. Both double-doubles store the high half first,
    // each half in its byte order.
    let m68k = float(FloatFormat::M68k, 12, Big);
    let image = vec![0x3f, 0xff, 0, 0, 0xc0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(applied(x87, m68k, &one_and_a_half), Ok(image));
    let big = float(FloatFormat::DoubleDouble, 16, Big);
    let little = float(FloatFormat::DoubleDouble, 16, Little);
    let quad = float(FloatFormat::Binary128, 16, Big);
    let sum = |order: fn(f64) -> [u8; 8]| [order(1.5), order(2f64.powi(-80))].concat();
    let mut exact = [0; 16];
    exact[..3].copy_from_slice(&[0x3f, 0xff, 0x80]);
    exact[15 - 32 / 8] = 1;
    assert_eq!(applied(quad, big, &exact), Ok(sum(f64::to_be_bytes)));
    assert_eq!(applied(quad, little, &exact), Ok(sum(f64::to_le_bytes)));
    assert_eq!(applied(little, quad, &sum(f64::to_le_bytes)), Ok(exact.to_vec()));
    assert_eq!(Conversion::between(big, little), Ok(Conversion::Swap { unit: Unit::Eight }));
    // The padding differs, so the image is rewritten, with zeros as padding.
    let short = float(FloatFormat::X87, 12, Little);
    let mut twelve = one_and_a_half[..12].to_vec();
    twelve[10..].fill(0);
    assert_eq!(applied(x87, short, &one_and_a_half), Ok(twelve));
}

#[test]
fn between_chooses_the_cheapest_conversion() {
    let between = |from, to| Conversion::between(from, to).unwrap();
    assert_eq!(between(int(true, 8, Big), int(true, 8, Big)), Conversion::Copy);
    assert_eq!(
        between(int(true, 8, Big), int(true, 8, Little)),
        Conversion::Swap { unit: Unit::Eight }
    );
    assert_eq!(between(int(true, 1, Big), int(true, 1, Little)), Conversion::Copy);
    let resize = between(int(true, 8, Big), int(true, 4, Little));
    assert_eq!((resize.from_size(), resize.to_size()), (8, 4));
    assert_eq!(resize.reversed(), between(int(true, 4, Little), int(true, 8, Big)));
    assert_eq!(resize.to_string(), "resize i8be>i4le");
    let bytes = |size| scalar(Value::Bytes, size, Big);
    assert_eq!(between(bytes(1), bytes(1)), Conversion::Copy);
    assert!(Conversion::between(bytes(1), bytes(4)).is_err());
    assert!(Conversion::between(bytes(1), int(true, 1, Big)).is_err());
    assert!(Conversion::between(int(true, 17, Big), int(true, 8, Big)).is_err());
    assert!(Conversion::between(int(true, 0, Big), int(true, 8, Big)).is_err());
    let error =
        Conversion::between(int(true, 4, Big), scalar(Value::Float(FloatFormat::Binary32), 4, Big));
    assert_eq!(error.unwrap_err().to_string(), "no conversion from i4be to f4be");
}
