//! Topologies of communicators (MPI-5.0 chapter 8).
//!
//! | file | holds |
//! |---|---|
//! | `mod.rs` | what all topologies have |
//! | [`cartesian`] | grids (section 8.5) |
//! | [`graph`] | graphs (section 8.5) |
//!
//! Ranks keep their numbers: a topology says only who is whose neighbour. Collective calls among
//! neighbours are in [`neighborhood`](crate::collective::neighborhood).

pub(crate) mod cartesian;
pub(crate) mod graph;

use std::ffi::c_int;
use std::ops::RangeInclusive;

use longshore::Class;

use crate::communicator::Comm;
use crate::edge::arg::Room;
use crate::edge::constants::{CART, DIST_GRAPH, GRAPH, UNDEFINED};
use crate::edge::fault::{Fault, Result};
use crate::topology::cartesian::Grid;
use crate::topology::graph::{Graph, Neighbors};

pub fn topo_test(comm: &Comm) -> Result<c_int> {
    Ok(match () {
        () if comm.topology::<Grid>().is_some() => CART,
        () if comm.topology::<Graph>().is_some() => GRAPH,
        () if comm.topology::<Neighbors>().is_some() => DIST_GRAPH,
        () => UNDEFINED,
    })
}

/// Sizes of a grid of so many nodes, as equal as possible and in descending order. Sizes that
/// aren't 0 are kept (MPI-5.0 section 8.5.2).
pub fn dims_create(nodes: c_int, ndims: usize, dims: Room<c_int>) -> Result<()> {
    let wrong = |what: String| Fault::new(Class::Dims, what);
    let dims = dims.slice(ndims, "dims")?;
    if nodes < 1 {
        return Err(wrong(format!("there are {nodes} nodes")));
    }
    if let Some(negative) = dims.iter().find(|size| **size < 0) {
        return Err(wrong(format!("a size is {negative}")));
    }
    let fixed = dims.iter().filter(|size| **size > 0);
    let fixed = fixed.map(|size| i64::from(*size)).try_fold(1i64, |product, size| {
        product.checked_mul(size).filter(|product| *product <= i64::from(nodes))
    });
    let Some(fixed) = fixed.filter(|fixed| i64::from(nodes) % fixed == 0) else {
        return Err(wrong(format!("{nodes} nodes make no grid with the sizes {dims:?}")));
    };
    let free = dims.iter().filter(|size| **size == 0).count();
    let left = (i64::from(nodes) / fixed) as c_int;
    if free == 0 {
        return match left {
            1 => Ok(()),
            _ => Err(wrong(format!("{nodes} nodes make no grid with the sizes {dims:?}"))),
        };
    }
    let sizes = balanced(left, free);
    for (out, size) in dims.iter_mut().filter(|size| **size == 0).zip(sizes) {
        *out = size;
    }
    Ok(())
}

/// The divisors of a number, ascending.
fn divisors(number: c_int) -> Vec<c_int> {
    let is_small = |size: &c_int| i64::from(*size) * i64::from(*size) <= i64::from(number);
    let small = (1..=number).take_while(is_small).filter(|size| number % size == 0);
    let mut all: Vec<c_int> = small.collect();
    let large: Vec<c_int> = all.iter().rev().map(|size| number / size).collect();
    all.extend(large);
    all.dedup();
    all
}

/// The factors of a number, descending, whose largest and smallest differ least. Among those with
/// the same difference, the ones whose smallest is largest.
fn balanced(number: c_int, count: usize) -> Vec<c_int> {
    let all = divisors(number);
    // The smallest factor isn't above the root, and the largest isn't below it.
    let above = all.partition_point(|size| power(*size, count) <= number.into());
    let root = all[above.saturating_sub(1)];
    let mut best = vec![1; count];
    best[0] = number;
    for largest in all.iter().copied().filter(|size| power(*size, count) >= number.into()) {
        let difference = best[0] - best[count - 1];
        if largest - root > difference {
            break;
        }
        let Some(mut found) = factors(number / largest, count - 1, 1..=largest, &all) else {
            continue;
        };
        found.push(largest);
        if largest - found[0] <= difference {
            found.reverse();
            best = found;
        }
    }
    best
}

/// Factors of a number within a range, ascending: the smallest is the largest possible, and so on
/// for the others. `all` has its divisors.
fn factors(
    number: c_int,
    count: usize,
    range: RangeInclusive<c_int>,
    all: &[c_int],
) -> Option<Vec<c_int>> {
    let (least, most) = (*range.start(), *range.end());
    if count == 0 {
        return (number == 1).then(Vec::new);
    }
    if power(least, count) > number.into() || power(most, count) < number.into() {
        return None;
    }
    let fits = |size: &c_int| {
        range.contains(size) && number % size == 0 && power(*size, count) <= number.into()
    };
    all.iter().rev().copied().filter(fits).find_map(|smallest| {
        let mut found = factors(number / smallest, count - 1, smallest..=most, all)?;
        found.insert(0, smallest);
        Some(found)
    })
}

fn power(size: c_int, exponent: usize) -> i64 {
    (0..exponent).fold(1i64, |product, _| product.saturating_mul(size.into()))
}

#[cfg(test)]
mod tests {
    use super::balanced;

    #[test]
    fn sizes_of_a_grid_differ_as_little_as_possible() {
        for (number, sizes) in [
            (7488, &[26, 18, 16][..]),
            (10800, &[27, 20, 20]),
            (34425, &[51, 27, 25]),
            (12, &[4, 3]),
            (7, &[7, 1, 1]),
            (64, &[4, 4, 4]),
            (1, &[1, 1]),
            (2_147_483_647, &[2_147_483_647, 1]),
            (1 << 30, &[2; 30]),
        ] {
            assert_eq!(balanced(number, sizes.len()), sizes, "{number}");
        }
    }
}
