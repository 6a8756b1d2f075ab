//! Topologies of communicators (MPI-5.0 chapter 8).
//!
//! Ranks keep their numbers: a topology says only who is whose neighbour.

use std::ffi::c_int;

use longshore::Class;

use crate::arg::Room;
use crate::cartesian::Grid;
use crate::communicator::Comm;
use crate::constants::{CART, DIST_GRAPH, GRAPH, UNDEFINED};
use crate::fault::{Fault, Result};
use crate::graph::{Graph, Neighbors};

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

/// The factors of a number, descending, whose largest is the least possible, and so on for the
/// others.
fn balanced(number: c_int, factors: usize) -> Vec<c_int> {
    if factors == 1 {
        return vec![number];
    }
    // The largest factor is at least the root, and the rest must not exceed it.
    let reaches = |size: c_int| {
        let mut product = 1i64;
        for _ in 0..factors {
            product = product.saturating_mul(i64::from(size));
        }
        product >= i64::from(number)
    };
    for largest in divisors(number).into_iter().filter(|size| reaches(*size)) {
        let mut rest = balanced(number / largest, factors - 1);
        if rest[0] <= largest {
            rest.insert(0, largest);
            return rest;
        }
    }
    let mut sizes = vec![number];
    sizes.resize(factors, 1);
    sizes
}
