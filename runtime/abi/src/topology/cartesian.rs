//! Grids of processes (MPI-5.0 section 8.5).

use std::ffi::c_int;
use std::sync::Arc;

use longshore::Class;

use crate::communicator::{Comm, with_topology};
use crate::edge::arg::{List, Room};
use crate::edge::constants::{PROC_NULL, UNDEFINED};
use crate::edge::fault::{Fault, Result};
use crate::edge::handle::Handle;
use crate::objects::object::Card;

/// A grid of the ranks of a communicator, in row-major order: the last coordinate varies fastest.
pub struct Grid {
    dims: Vec<Dimension>,
}

/// A dimension of a grid.
#[derive(Clone, Copy)]
struct Dimension {
    size: c_int,
    is_periodic: bool,
}

impl Grid {
    /// A grid that fits a communicator of `available` ranks.
    fn new(
        ndims: c_int,
        sizes: List<c_int>,
        periods: List<c_int>,
        available: c_int,
    ) -> Result<Grid> {
        let wrong = |what: String| Fault::new(Class::Dims, what);
        let ndims = usize::try_from(ndims).map_err(|_| wrong(format!("ndims is {ndims}")))?;
        let sizes = sizes.slice(ndims, "dims")?;
        let periods = periods.slice(ndims, "periods")?;
        if let Some(at) = sizes.iter().position(|size| *size < 1) {
            return Err(wrong(format!("dims[{at}] is {}", sizes[at])));
        }
        let nodes = sizes.iter().try_fold(1, |nodes: c_int, size| nodes.checked_mul(*size));
        if nodes.is_none_or(|nodes| nodes > available) {
            let what = format!("a grid of the sizes {sizes:?} needs more than {available} ranks");
            return Err(wrong(what));
        }
        let dims = sizes.iter().zip(periods);
        let dims = dims.map(|(size, period)| Dimension { size: *size, is_periodic: *period != 0 });
        Ok(Grid { dims: dims.collect() })
    }

    /// The number of its nodes.
    fn nodes(&self) -> c_int {
        self.dims.iter().map(|dim| dim.size).product()
    }

    /// The coordinates of a rank.
    fn coordinates(&self, rank: c_int) -> Vec<c_int> {
        let mut rest = rank;
        let mut coordinates: Vec<c_int> = Vec::with_capacity(self.dims.len());
        for dim in self.dims.iter().rev() {
            coordinates.push(rest % dim.size);
            rest /= dim.size;
        }
        coordinates.reverse();
        coordinates
    }

    /// The rank at coordinates; `None` outside of a dimension that isn't periodic.
    fn rank(&self, coordinates: &[c_int]) -> Option<c_int> {
        self.dims.iter().zip(coordinates).try_fold(0, |rank, (dim, at)| {
            let is_inside = dim.is_periodic || (0..dim.size).contains(at);
            is_inside.then(|| rank * dim.size + at.rem_euclid(dim.size))
        })
    }

    /// The neighbours of a rank: in each dimension the one before and the one after.
    pub fn neighbors(&self, rank: c_int) -> Vec<c_int> {
        let pairs = (0..self.dims.len()).map(|direction| self.shifted(rank, direction, 1));
        pairs.flat_map(|(before, after)| [before, after]).collect()
    }

    /// The ranks `disp` before and after a rank in a dimension.
    fn shifted(&self, rank: c_int, direction: usize, disp: c_int) -> (c_int, c_int) {
        let own = self.coordinates(rank);
        let at = |steps: i64| {
            let size = i64::from(self.dims[direction].size);
            let place = i64::from(own[direction]) + steps;
            let place = match self.dims[direction].is_periodic {
                true => place.rem_euclid(size),
                false if (0..size).contains(&place) => place,
                false => return PROC_NULL,
            };
            let mut there = own.clone();
            there[direction] = place as c_int;
            self.rank(&there).unwrap_or(PROC_NULL)
        };
        (at(-i64::from(disp)), at(i64::from(disp)))
    }
}

fn grid(comm: &Comm) -> Result<&Grid> {
    comm.needed_topology("grid")
}

/// Checks that an array has room for what a call writes.
fn check_room(room: usize, needed: usize) -> Result<()> {
    if room >= needed {
        return Ok(());
    }
    Err(Fault::argument(format_args!("maxdims is {room}, but the grid has {needed} dimensions")))
}

pub fn cart_create(
    comm: &Comm,
    ndims: c_int,
    dims: List<c_int>,
    periods: List<c_int>,
    _reorder: bool,
) -> Result<Handle> {
    comm.intra()?;
    let grid = Grid::new(ndims, dims, periods, comm.inner().size());
    let grid = grid.map_err(|fault| comm.refused("split", fault))?;
    let rank = comm.inner().rank();
    let color = (rank < grid.nodes()).then_some(0);
    let inner = comm.inner().split(color, rank)?;
    with_topology(comm, inner, Card::default(), Some(Arc::new(grid)))
}

/// The grids of the dimensions that remain.
pub fn cart_sub(comm: &Comm, remain: List<c_int>) -> Result<Handle> {
    let grid = grid(comm)?;
    let remain = remain.slice(grid.dims.len(), "remain_dims");
    let remain = remain.map_err(|fault| comm.refused("split", fault))?;
    let own = grid.coordinates(comm.inner().rank());
    let part = |stays: bool| {
        let chosen = move |at: &usize| (remain[*at] != 0) == stays;
        let dims = (0..grid.dims.len()).filter(chosen).map(|at| grid.dims[at]).collect();
        let coordinates: Vec<c_int> =
            (0..grid.dims.len()).filter(chosen).map(|at| own[at]).collect();
        let grid = Grid { dims };
        let place = grid.rank(&coordinates).unwrap_or(0);
        (grid, place)
    };
    // Ranks with the same coordinates in the other dimensions are together.
    let ((_, color), (sub, key)) = (part(false), part(true));
    let inner = comm.inner().split(Some(color), key)?;
    with_topology(comm, inner, Card::default(), Some(Arc::new(sub)))
}

pub fn cartdim_get(comm: &Comm) -> Result<c_int> {
    Ok(grid(comm)?.dims.len() as c_int)
}

pub fn cart_get(
    comm: &Comm,
    maxdims: usize,
    dims: Room<c_int>,
    periods: Room<c_int>,
    coords: Room<c_int>,
) -> Result<()> {
    let grid = grid(comm)?;
    let ndims = grid.dims.len();
    check_room(maxdims, ndims)?;
    let own = grid.coordinates(comm.inner().rank());
    coords.slice(ndims, "coords")?.copy_from_slice(&own);
    let sizes = dims.slice(ndims, "dims")?;
    let periods = periods.slice(ndims, "periods")?;
    for ((dim, size), period) in grid.dims.iter().zip(sizes).zip(periods) {
        (*size, *period) = (dim.size, c_int::from(dim.is_periodic));
    }
    Ok(())
}

pub fn cart_rank(comm: &Comm, coords: List<c_int>) -> Result<c_int> {
    let grid = grid(comm)?;
    let coords = coords.slice(grid.dims.len(), "coords")?;
    let outside = || {
        let what = format!("no rank has the coordinates {coords:?}: they are outside of the grid");
        Fault::argument(what)
    };
    grid.rank(coords).ok_or_else(outside)
}

pub fn cart_coords(comm: &Comm, rank: c_int, maxdims: usize, coords: Room<c_int>) -> Result<()> {
    let grid = grid(comm)?;
    if !(0..comm.inner().size()).contains(&rank) {
        return Err(comm.no_rank(rank));
    }
    check_room(maxdims, grid.dims.len())?;
    coords.slice(grid.dims.len(), "coords")?.copy_from_slice(&grid.coordinates(rank));
    Ok(())
}

pub fn cart_shift(comm: &Comm, direction: c_int, disp: c_int) -> Result<(c_int, c_int)> {
    let grid = grid(comm)?;
    let ndims = grid.dims.len();
    match usize::try_from(direction) {
        Ok(direction) if direction < ndims => {
            Ok(grid.shifted(comm.inner().rank(), direction, disp))
        }
        _ => {
            let what = format!("the direction is {direction}, but the grid has {ndims} dimensions");
            Err(Fault::argument(what))
        }
    }
}

pub fn cart_map(
    comm: &Comm,
    ndims: c_int,
    dims: List<c_int>,
    periods: List<c_int>,
) -> Result<c_int> {
    comm.intra()?;
    let grid = Grid::new(ndims, dims, periods, comm.inner().size())?;
    let rank = comm.inner().rank();
    Ok(if rank < grid.nodes() { rank } else { UNDEFINED })
}
