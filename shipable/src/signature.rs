//! Type signatures: the sequence of basic types of a type map, as a hash that composes.
//!
//! The hash is a polynomial over the field of 2^127 - 1 elements, evaluated at one fixed point:
//! `h(s1 s2 ... sn) = s1 x^(n-1) + ... + sn`. So `h(ab) = h(a) x^|b| + h(b)`, a repetition takes
//! O(log n) steps, and the hash doesn't depend on the tree's structure.
//!
//! Two unequal signatures of n items collide for at most n of the 2^127 points. A polynomial modulo
//! 2^64 would have collisions at every point.

use crate::basic::{Basic, Leaf, Makeup};

/// 2^127 - 1, a prime.
const P: u128 = (1 << 127) - 1;

/// The point: the fractional digits of pi, cut to 126 bits.
const X: u128 = 0x243f_6a88_85a3_08d3_1319_8a2e_0370_7344;

/// The signature of a type (MPI-5.0 section 5.1).
///
/// Two signatures are equal if the sequences of basic types are equal; otherwise they differ,
/// except for collisions of a 127-bit hash. Gaps, nesting and markers don't count. A pair counts as
/// its two members, a complex number as one item.
///
/// ```
/// use shipable::{Datatype, Signature};
/// let column = Datatype::vector(8, 1, 10, &Datatype::double())?;
/// assert_eq!(Signature::of(&column), Signature::of(&Datatype::double()).repeat(8).unwrap());
/// # Ok::<(), shipable::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Signature {
    /// The polynomial's value.
    pub hash: u128,
    /// The number of items.
    pub count: u64,
}

impl Signature {
    /// The signature of no items.
    pub const fn empty() -> Signature {
        Signature { hash: 0, count: 0 }
    }

    /// The signature of a leaf.
    pub fn of_leaf(leaf: Leaf) -> Signature {
        match leaf {
            Leaf::Basic(basic) if basic.is_marker() => Signature::empty(),
            Leaf::Basic(basic) => match basic.makeup() {
                Makeup::Pair(value, index) => {
                    let (value, index) = (item(value.into()), item(index.into()));
                    Signature { hash: add(mul(value, X), index), count: 2 }
                }
                _ => Signature { hash: item(leaf), count: 1 },
            },
            _ => Signature { hash: item(leaf), count: 1 },
        }
    }

    /// The signature of this sequence followed by another. `None` if the count doesn't fit 64 bits.
    pub fn then(&self, other: &Signature) -> Option<Signature> {
        let count = self.count.checked_add(other.count)?;
        if self.count == 0 || other.count == 0 {
            return Some(if self.count == 0 { *other } else { *self });
        }
        Some(Signature { hash: add(mul(self.hash, power(other.count)), other.hash), count })
    }

    /// The signature of this sequence repeated `n` times. `None` if the count doesn't fit 64 bits.
    pub fn repeat(&self, n: u64) -> Option<Signature> {
        let count = self.count.checked_mul(n)?;
        match (self.count, n) {
            (0, _) | (_, 1) => return Some(*self),
            (1, _) => {
                let hash = match u64::try_from(self.hash) {
                    Ok(word) => mul_word(word, series(n)),
                    Err(_) => mul(self.hash, series(n)),
                };
                return Some(Signature { hash, count });
            }
            _ => {}
        }
        // Horner's rule over the bits of n. After each bit, `hash` is the hash of as many copies as
        // the bits read so far form, and `step` is the factor that shifts by that many copies.
        let one = (self.hash, power(self.count));
        let (mut hash, mut step) = (0, 1);
        for bit in (0..u64::BITS - n.leading_zeros()).rev() {
            (hash, step) = (add(mul(hash, step), hash), mul(step, step));
            if n >> bit & 1 == 1 {
                (hash, step) = (add(mul(hash, one.1), one.0), mul(step, one.1));
            }
        }
        Some(Signature { hash, count })
    }
}

/// A leaf's coefficient. It differs between leaves and is never zero.
fn item(leaf: Leaf) -> u128 {
    let parameter = |n: Option<u32>| n.map_or(0, |n| u128::from(n) + 1);
    let f90 =
        |kind: u128, precision, range| kind << 100 | parameter(precision) << 40 | parameter(range);
    match leaf {
        Leaf::Basic(basic) => u128::from(basic.wire()),
        Leaf::F90Real { precision, range } => f90(1, precision, range),
        Leaf::F90Complex { precision, range } => f90(2, precision, range),
        Leaf::F90Integer { range } => f90(3, None, Some(range)),
    }
}

const fn add(a: u128, b: u128) -> u128 {
    reduce(a + b)
}

/// Reduces a number below 2^128, where 2^127 is congruent to 1.
const fn reduce(n: u128) -> u128 {
    let folded = (n & P) + (n >> 127);
    if folded >= P { folded - P } else { folded }
}

/// The product by halves of 64 bits. 2^128 is congruent to 2. The middle term, times 2^64, is split
/// at bit 63.
const fn mul(a: u128, b: u128) -> u128 {
    const LOW: u128 = u64::MAX as u128;
    let (a1, a0, b1, b0) = (a >> 64, a & LOW, b >> 64, b & LOW);
    let middle = a1 * b0 + a0 * b1;
    let high = reduce(2 * a1 * b1);
    let middle = ((middle & (LOW >> 1)) << 64) + (middle >> 63);
    add(add(high, reduce(middle)), reduce(a0 * b0))
}

/// The product with a word, as most items are: [`mul`] without the halves that are zero.
const fn mul_word(a: u64, b: u128) -> u128 {
    const LOW: u128 = u64::MAX as u128;
    let (a, b1, b0) = (a as u128, b >> 64, b & LOW);
    let middle = a * b1;
    let middle = ((middle & (LOW >> 1)) << 64) + (middle >> 63);
    add(reduce(middle), reduce(a * b0))
}

/// X to the powers of two.
const SQUARES: [u128; 64] = {
    let mut squares = [X; 64];
    let mut n = 1;
    while n < 64 {
        squares[n] = mul(squares[n - 1], squares[n - 1]);
        n += 1;
    }
    squares
};

/// The inverse of X - 1: its power of P - 2, by Fermat's little theorem.
const INVERSE: u128 = {
    let (mut inverse, mut square) = (1, X - 1);
    let mut bit = 0;
    while bit < 127 {
        if (P - 2) >> bit & 1 == 1 {
            inverse = mul(inverse, square);
        }
        square = mul(square, square);
        bit += 1;
    }
    inverse
};

/// X to the power of n.
fn power(mut n: u64) -> u128 {
    let mut result = 1;
    while n > 0 {
        let square = SQUARES[n.trailing_zeros() as usize];
        result = if result == 1 { square } else { mul(result, square) };
        n &= n - 1;
    }
    result
}

/// The geometric series x^(n-1) + ... + x + 1 = (x^n - 1) / (x - 1).
fn series(n: u64) -> u128 {
    let short = usize::try_from(n).ok().and_then(|n| SHORT_SERIES.get(n));
    short.copied().unwrap_or_else(|| mul(add(power(n), P - 1), INVERSE))
}

/// The first series. Most messages have few elements, and the look takes less than the formula's
/// products.
const SHORT_SERIES: [u128; 65] = {
    let mut series = [0; 65];
    let mut n = 1;
    while n < series.len() {
        series[n] = add(mul(series[n - 1], X), 1);
        n += 1;
    }
    series
};

const _: () = assert!(X < P && mul(INVERSE, X - 1) == 1 && (Basic::Ub as u8) > 0);
const _: () = assert!(mul_word(u64::MAX, P - 1) == mul(u64::MAX as u128, P - 1));
const _: () =
    assert!(mul_word(77, X) == mul(77, X) && mul_word(u64::MAX, X) == mul(u64::MAX as u128, X));

#[cfg(test)]
mod tests {
    use super::*;

    fn of(items: &[Basic]) -> Signature {
        items.iter().fold(Signature::empty(), |sequence, &basic| {
            sequence.then(&Signature::of_leaf(basic.into())).unwrap()
        })
    }

    #[test]
    fn mul_equals_shift_and_add() {
        let slow = |a: u128, b: u128| {
            (0..127).rev().fold(0, |sum, bit| {
                let double = add(sum, sum);
                if b >> bit & 1 == 1 { add(double, a) } else { double }
            })
        };
        let mut n = X;
        for _ in 0..1000 {
            let m = mul(n, X) ^ 0x55;
            for (a, b) in [(n, m % P), (P - 1, n), (P - 1, P - 1), (n, 1), (0, n)] {
                assert_eq!(mul(a, b), slow(a, b), "{a:x} {b:x}");
            }
            n = m % P;
        }
    }

    #[test]
    fn hashes_of_sequences_compose() {
        let (a, b) = ([Basic::Int, Basic::Double], [Basic::Char, Basic::Int, Basic::Int]);
        let together: Vec<_> = a.iter().chain(&b).copied().collect();
        assert_eq!(of(&a).then(&of(&b)), Some(of(&together)));
        assert_ne!(of(&a).then(&of(&b)), of(&b).then(&of(&a)));
        // Series are read from a table up to 64 items, and computed from there on.
        for n in 0..70 {
            for part in [&a[..1], &b] {
                assert_eq!(of(part).repeat(n), Some(of(&part.repeat(n as usize))), "{n}");
            }
        }
        assert_eq!(of(&a).repeat(1 << 40).unwrap().count, 2 << 40);
        assert_eq!(of(&a).repeat(u64::MAX), None);
    }

    #[test]
    fn pairs_count_as_two_items_and_markers_as_none() {
        assert_eq!(of(&[Basic::DoubleInt]), of(&[Basic::Double, Basic::Int]));
        assert_eq!(of(&[Basic::Lb, Basic::Int, Basic::Ub]), of(&[Basic::Int]));
        assert_ne!(of(&[Basic::CFloatComplex]), of(&[Basic::Float, Basic::Float]));
    }

    #[test]
    fn hashes_are_pinned_for_the_wire() {
        assert_eq!(of(&[Basic::Int, Basic::Double]).count, 2);
        assert_eq!(of(&[Basic::Int, Basic::Double]).hash, add(mul(9, X), 16));
    }
}
