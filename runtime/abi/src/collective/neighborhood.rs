//! Collective calls among neighbours (MPI-5.0 section 8.6). All of them are one exchange, in which
//! each neighbour has memory of its own.

use crate::collective::nonblocking::start;
use crate::collective::prepared::prepare;
use crate::communicator::Comm;
use crate::edge::arg::Buffer;
use crate::edge::elements::{Elements, Typed, Varying};
use crate::edge::fault::{Fault, Result};
use crate::edge::handle::Handle;
use crate::objects::info::Info;
use crate::request::arguments::{Arguments, Neighborhood, Side, repeated, spread, typed};
use crate::topology::cartesian::Grid;
use crate::topology::graph::{Graph, Neighbors};
use longshore::Class;

/// The neighbours of this rank in the communicator's topology.
fn neighborhood(comm: &Comm) -> Result<Neighborhood> {
    let rank = comm.inner().rank();
    if let Some(grid) = comm.topology::<Grid>() {
        let ranks = grid.neighbors(rank);
        return Ok(Neighborhood { sources: ranks.clone(), destinations: ranks });
    }
    if let Some(graph) = comm.topology::<Graph>() {
        let ranks = graph.neighbors(rank)?.to_vec();
        return Ok(Neighborhood { sources: ranks.clone(), destinations: ranks });
    }
    let (sources, destinations) = comm.needed_topology::<Neighbors>("topology")?.ranks();
    Ok(Neighborhood { sources: sources.to_vec(), destinations: destinations.to_vec() })
}

/// The exchange of blocks, which are in the order of the neighbours.
///
/// In a periodic dimension of two or one ranks, both neighbours are the same rank. The block for
/// the one before is the one that this rank gets from behind, so each pair is sent in reverse
/// order.
fn exchange(
    comm: &Comm,
    mut around: Neighborhood,
    mut given: Vec<Side>,
    taken: Vec<Side>,
) -> Result<Arguments> {
    if comm.topology::<Grid>().is_some() {
        around.destinations.chunks_exact_mut(2).for_each(|pair| pair.swap(0, 1));
        given.chunks_exact_mut(2).for_each(|pair| pair.swap(0, 1));
    }
    Ok(Arguments::Neighbors(around, given, taken))
}

/// Refuses MPI_IN_PLACE, which these calls don't have.
fn check(data: Buffer) -> Result<()> {
    match data.is_in_place() {
        true => {
            let what = "MPI_IN_PLACE is no buffer of a call among neighbours".to_owned();
            Err(Fault::new(Class::Buffer, what))
        }
        false => Ok(()),
    }
}

macro_rules! among_neighbors {
    ($($_plain:ident $name:ident $started:ident $init:ident ($($arg:ident: $kind:ty),*);)*) => {
        $(
            pub fn $name($($arg: $kind,)* comm: &Comm) -> Result<()> {
                $_plain($($arg,)* comm)?.run(comm.inner())
            }

            pub fn $started($($arg: $kind,)* comm: Handle) -> Result<Handle> {
                start(comm, |comm| $_plain($($arg,)* comm))
            }

            pub fn $init($($arg: $kind,)* comm: Handle, _: Option<&Info>) -> Result<Handle> {
                prepare(comm, |comm| $_plain($($arg,)* comm))
            }
        )*
    };
}

among_neighbors! {
    allgather neighbor_allgather ineighbor_allgather neighbor_allgather_init (data: Elements, room: Elements);
    allgatherv neighbor_allgatherv ineighbor_allgatherv neighbor_allgatherv_init (data: Elements, room: Varying);
    alltoall neighbor_alltoall ineighbor_alltoall neighbor_alltoall_init (data: Elements, room: Elements);
    alltoallv neighbor_alltoallv ineighbor_alltoallv neighbor_alltoallv_init (data: Varying, room: Varying);
    alltoallw neighbor_alltoallw ineighbor_alltoallw neighbor_alltoallw_init (data: Typed, room: Typed);
}

fn allgather(data: Elements, room: Elements, comm: &Comm) -> Result<Arguments> {
    check(data.buffer)?;
    let around = neighborhood(comm)?;
    let given = repeated(data, around.destinations.len(), false)?;
    let taken = repeated(room, around.sources.len(), true)?;
    exchange(comm, around, given, taken)
}

fn allgatherv(data: Elements, room: Varying, comm: &Comm) -> Result<Arguments> {
    check(data.buffer)?;
    let around = neighborhood(comm)?;
    let given = repeated(data, around.destinations.len(), false)?;
    let taken = spread(room, around.sources.len())?;
    exchange(comm, around, given, taken)
}

fn alltoall(data: Elements, room: Elements, comm: &Comm) -> Result<Arguments> {
    check(data.buffer)?;
    let around = neighborhood(comm)?;
    let given = repeated(data, around.destinations.len(), true)?;
    let taken = repeated(room, around.sources.len(), true)?;
    exchange(comm, around, given, taken)
}

fn alltoallv(data: Varying, room: Varying, comm: &Comm) -> Result<Arguments> {
    check(data.buffer)?;
    let around = neighborhood(comm)?;
    let given = spread(data, around.destinations.len())?;
    let taken = spread(room, around.sources.len())?;
    exchange(comm, around, given, taken)
}

fn alltoallw(data: Typed, room: Typed, comm: &Comm) -> Result<Arguments> {
    check(data.buffer)?;
    let around = neighborhood(comm)?;
    let given = typed(data, around.destinations.len())?;
    let taken = typed(room, around.sources.len())?;
    exchange(comm, around, given, taken)
}
