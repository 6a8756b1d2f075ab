//! Types of strided arrays, made of MPI's constructors so that they are portable.
//!
//! 1. Axes of one element disappear, and an axis that continues the next one joins it.
//! 2. The remaining axes are a contiguous or vector type, or a subarray if they lie as in a larger
//!    array.
//! 3. Otherwise vectors are nested, as long as each stride is a multiple of the inner extent.
//! 4. Otherwise all displacements are listed.

use super::check::Call;
use super::{Datatype, Order};
use crate::error::{Class, Result};

/// An axis of an array: a number of elements, and the distance between two of them in extents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Axis {
    count: i64,
    stride: i64,
}

impl Datatype {
    /// The elements of an array with axes of these lengths and strides, the last axis fastest.
    /// Strides are in extents of the child, and may be zero or negative. Displacement 0 is the
    /// element whose indices are all 0.
    ///
    /// The type is portable if the child is. It is a contiguous type, a vector, a subarray or
    /// nested vectors where one of them has this layout. Otherwise it lists a displacement for
    /// each element, or for each run of adjacent elements. Don't rely on the extent of this type:
    /// a subarray's is that of the whole array.
    ///
    /// MPI has no such constructor. The crate ndarray describes its arrays by the same numbers.
    ///
    /// ```
    /// use shipable::Datatype;
    ///
    /// let double = Datatype::double();
    /// // Two rows of three elements, of a matrix whose rows have five.
    /// let part = Datatype::strided(&[2, 3], &[5, 1], &double)?;
    /// assert_eq!(part.to_string(), "U1(V:d:2:3:5)");
    /// // The same elements column by column.
    /// let columns = Datatype::strided(&[3, 2], &[1, 5], &double)?;
    /// assert_eq!(columns.to_string(), "U1(XB:d:6:1:0,5,1,6,2,7)");
    /// # Ok::<(), shipable::Error>(())
    /// ```
    ///
    /// # Errors
    /// ARG for lists of different lengths or a negative length; VALUE_TOO_LARGE if the number of
    /// elements or a displacement doesn't fit 64 bits.
    pub fn strided(shape: &[i64], strides: &[i64], child: &Datatype) -> Result<Datatype> {
        let call = Call("strided");
        call.lengths([("lengths", shape.len()), ("strides", strides.len())])?;
        for (at, &length) in shape.iter().enumerate() {
            if length < 0 {
                let problem = format!("lengths[{at}] is {length}: it must not be negative");
                return Err(call.refuse(Class::Arg, problem));
            }
        }
        if shape.contains(&0) {
            return Datatype::contiguous(0, child);
        }
        let too_large = || {
            let problem = "the array reaches beyond 64 bits: give shorter lengths or strides";
            call.refuse(Class::ValueTooLarge, problem.to_owned())
        };
        check_reach(shape, strides).ok_or_else(too_large)?;
        match joined(shape, strides)[..] {
            [] => Datatype::contiguous(1, child),
            [Axis { count, stride: 1 }] => Datatype::contiguous(count, child),
            [Axis { count, stride }] => Datatype::vector(count, 1, stride, child),
            [Axis { count, stride }, Axis { count: run, stride: 1 }] => {
                Datatype::vector(count, run, stride, child)
            }
            ref axes => match part(axes, child) {
                Some(part) => part,
                None => match nested(axes, child) {
                    Some(nested) => nested,
                    None => listed(axes, child),
                },
            },
        }
    }
}

/// `None` unless the elements' number and displacements fit 64 bits.
fn check_reach(shape: &[i64], strides: &[i64]) -> Option<()> {
    let mut number = 1i64;
    let (mut lowest, mut highest) = (0i64, 0i64);
    for (&count, &stride) in shape.iter().zip(strides) {
        number = number.checked_mul(count)?;
        let last = (count - 1).checked_mul(stride)?;
        lowest = lowest.checked_add(last.min(0))?;
        highest = highest.checked_add(last.max(0))?;
    }
    Some(())
}

/// The axes of more than one element. An axis whose elements continue the next axis joins it.
fn joined(shape: &[i64], strides: &[i64]) -> Vec<Axis> {
    let mut axes: Vec<Axis> = Vec::new();
    let all = shape.iter().zip(strides).map(|(&count, &stride)| Axis { count, stride });
    for inner in all.filter(|axis| axis.count > 1) {
        match axes.last_mut() {
            Some(outer) if inner.count.checked_mul(inner.stride) == Some(outer.stride) => {
                *outer = Axis { count: outer.count * inner.count, stride: inner.stride };
            }
            _ => axes.push(inner),
        }
    }
    axes
}

/// The axes as a part of a larger array in C's order: each stride is a multiple of the next one.
fn part(axes: &[Axis], child: &Datatype) -> Option<Result<Datatype>> {
    let (first, last) = (axes.first()?, axes.last()?);
    let mut sizes = vec![first.count];
    for pair in axes.windows(2) {
        let (outer, inner) = (pair[0], pair[1]);
        let holds = inner.stride > 0
            && outer.stride % inner.stride == 0
            && outer.stride / inner.stride >= inner.count;
        sizes.push(if holds { outer.stride / inner.stride } else { return None });
    }
    let mut counts: Vec<i64> = axes.iter().map(|axis| axis.count).collect();
    if last.stride > 1 {
        sizes.push(last.stride);
        counts.push(1);
    }
    let starts = vec![0; sizes.len()];
    // The whole array may be too large where its part isn't.
    sizes.iter().try_fold(1i64, |size, &next| size.checked_mul(next))?;
    Some(Datatype::subarray(&sizes, &counts, &starts, Order::C, child))
}

/// The axes as vectors of vectors.
fn nested(axes: &[Axis], child: &Datatype) -> Option<Result<Datatype>> {
    // The extent of the vectors so far, in extents of the child.
    let mut extent = 1i64;
    let mut vectors = child.clone();
    for &Axis { count, stride } in axes.iter().rev() {
        if stride % extent != 0 {
            return None;
        }
        vectors = match Datatype::vector(count, 1, stride / extent, &vectors) {
            Ok(vectors) => vectors,
            refused => return Some(refused),
        };
        extent = (count - 1).checked_mul(stride.checked_abs()?)?.checked_add(extent)?;
    }
    Some(Ok(vectors))
}

/// The axes as a list of the displacements of all runs.
fn listed(axes: &[Axis], child: &Datatype) -> Result<Datatype> {
    let (run, outer) = match axes.split_last() {
        Some((Axis { count, stride: 1 }, outer)) => (*count, outer),
        _ => (1, axes),
    };
    let mut displacements = vec![0];
    for &Axis { count, stride } in outer {
        let next = |start: i64| (0..count).map(move |index| start + index * stride);
        displacements = displacements.into_iter().flat_map(next).collect();
    }
    Datatype::indexed_block(run, &displacements, child)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Architecture, Committed, Tag, View};

    /// The numbers that the type of these axes packs from a memory that holds its own indices,
    /// displacement 0 being at `start`.
    fn packed(shape: &[i64], strides: &[i64], start: usize) -> Vec<i32> {
        let datatype = Datatype::strided(shape, strides, &Datatype::int32()).unwrap();
        let committed = Committed::new(&datatype, &Architecture::NATIVE).unwrap();
        assert_eq!(committed.tag(), Tag::Portable, "{datatype}");
        let memory: Vec<u8> = (0..4096i32).flat_map(i32::to_ne_bytes).collect();
        let mut packed = vec![0; committed.bounds().size as usize];
        let view = View::new(&memory).shifted(4 * start as i64).unwrap();
        let mut position = 0;
        let native = Architecture::NATIVE;
        committed.pack(view, 1, &mut packed, &mut position, &native).unwrap();
        packed.chunks(4).map(|number| i32::from_ne_bytes(number.try_into().unwrap())).collect()
    }

    fn expected(shape: &[i64], strides: &[i64], start: usize) -> Vec<i32> {
        let axes = shape.iter().zip(strides);
        let next = |all: Vec<i64>, (&count, &stride): (&i64, &i64)| -> Vec<i64> {
            all.into_iter()
                .flat_map(|at| (0..count).map(move |index| at + index * stride))
                .collect()
        };
        axes.fold(vec![start as i64], next).into_iter().map(|at| at as i32).collect()
    }

    #[test]
    fn elements_come_in_the_order_of_their_indices() {
        let lengths = [1, 2, 3, 4];
        let strides = [-60, -7, -1, 0, 1, 2, 3, 4, 12, 20, 21, 60];
        let mut checked = 0;
        let mut check = |shape: &[i64], strides: &[i64]| {
            let (packed, expected) = (packed(shape, strides, 1500), expected(shape, strides, 1500));
            assert_eq!(packed, expected, "{shape:?} {strides:?}");
            checked += 1;
        };
        check(&[], &[]);
        for a in strides {
            lengths.iter().for_each(|&n| check(&[n], &[a]));
            for b in strides {
                lengths.iter().for_each(|&n| check(&[n, 3], &[a, b]));
                for c in strides {
                    lengths.iter().for_each(|&n| check(&[2, n, 3], &[a, b, c]));
                }
            }
        }
        assert_eq!(checked, 1 + 4 * (12 + 144 + 1728));
    }

    #[test]
    fn layouts_have_the_shortest_type_that_fits() {
        let text = |shape: &[i64], strides: &[i64]| {
            Datatype::strided(shape, strides, &Datatype::double()).unwrap().to_string()
        };
        assert_eq!(text(&[2, 3, 4], &[12, 4, 1]), "U1(24d)");
        assert_eq!(text(&[4, 1], &[-3, 9]), "U1(V:d:4:1:-3)");
        assert_eq!(text(&[2, 3], &[10, 1]), "U1(V:d:2:3:10)");
        let part =
            Datatype::subarray(&[2, 5, 4], &[2, 3, 2], &[0; 3], Order::C, &Datatype::double());
        assert_eq!(text(&[2, 3, 2], &[20, 4, 1]), part.unwrap().to_string());
        assert_eq!(text(&[2, 3], &[-9, 4]), "U1(V:U2(V:d:3:1:4):2:1:-1)");
    }

    #[test]
    fn wrong_lengths_are_refused() {
        let refused = |shape: &[i64], strides: &[i64]| {
            Datatype::strided(shape, strides, &Datatype::int()).unwrap_err().class()
        };
        assert_eq!(refused(&[2], &[]), Class::Arg);
        assert_eq!(refused(&[-2], &[1]), Class::Arg);
        assert_eq!(refused(&[2, 3], &[i64::MAX, 1]), Class::ValueTooLarge);
    }
}
