//! Graphs of processes (MPI-5.0 section 8.5).

use std::ffi::c_int;
use std::sync::Arc;

use longshore::Class;

use crate::communicator::{Comm, with_topology};
use crate::edge::arg::{List, Room};
use crate::edge::constants::UNDEFINED;
use crate::edge::fault::{Fault, Result};
use crate::edge::handle::Handle;
use crate::objects::object::Card;

/// The address MPI_UNWEIGHTED, in place of weights.
const UNWEIGHTED: usize = 10;
/// The address MPI_WEIGHTS_EMPTY, in place of no weights.
const WEIGHTS_EMPTY: usize = 11;

/// A graph that every rank knows.
pub struct Graph {
    /// For each node, the end of its edges, as the program gave it.
    index: Vec<c_int>,
    /// The neighbours of all nodes, node by node.
    edges: Vec<c_int>,
}

/// The neighbours of this rank, in a graph that no rank knows as a whole.
pub struct Neighbors {
    sources: Side,
    destinations: Side,
}

/// The neighbours of this rank on one side.
struct Side {
    ranks: Vec<c_int>,
    /// `None` for a graph without weights.
    weights: Option<Vec<c_int>>,
}

impl Graph {
    /// A graph that fits a communicator of `available` ranks.
    fn new(
        nodes: usize,
        index: List<c_int>,
        edges: List<c_int>,
        available: c_int,
    ) -> Result<Graph> {
        if nodes > available as usize {
            let what = format!("a graph of {nodes} nodes needs more than {available} ranks");
            return Err(Fault::argument(what));
        }
        let index = index.slice(nodes, "index")?;
        let mut before = 0;
        for (node, end) in index.iter().enumerate() {
            if *end < before {
                let what = format!("index[{node}] is {end}, after {before}: it must not decrease");
                return Err(Fault::argument(what));
            }
            before = *end;
        }
        let edges = edges.slice(before as usize, "edges")?;
        if let Some(at) = edges.iter().position(|node| !(0..nodes as c_int).contains(node)) {
            let what = format!("edges[{at}] is {}, but there are {nodes} nodes", edges[at]);
            return Err(Fault::argument(what));
        }
        Ok(Graph { index: index.to_vec(), edges: edges.to_vec() })
    }

    /// The neighbours of a node.
    pub fn neighbors(&self, node: c_int) -> Result<&[c_int]> {
        let nodes = self.index.len();
        let found = usize::try_from(node).ok().filter(|node| *node < nodes);
        let Some(node) = found else {
            let what = format!("there is no rank {node} in a graph of {nodes}");
            return Err(Fault::new(Class::Rank, what));
        };
        let start = node.checked_sub(1).map_or(0, |before| self.index[before]);
        Ok(&self.edges[start as usize..self.index[node] as usize])
    }
}

impl Neighbors {
    /// The sources and the destinations.
    pub fn ranks(&self) -> (&[c_int], &[c_int]) {
        (&self.sources.ranks, &self.destinations.ranks)
    }
}

fn graph(comm: &Comm) -> Result<&Graph> {
    comm.needed_topology("graph of MPI_Graph_create")
}

fn neighbors(comm: &Comm) -> Result<&Neighbors> {
    comm.needed_topology("graph of MPI_Dist_graph_create")
}

/// Writes the values for which a program has room.
fn write(values: &[c_int], most: usize, room: Room<c_int>, name: &'static str) -> Result<()> {
    let len = values.len().min(most);
    room.slice(len, name)?.copy_from_slice(&values[..len]);
    Ok(())
}

pub fn graph_create(
    comm: &Comm,
    nodes: c_int,
    index: List<c_int>,
    edges: List<c_int>,
    _reorder: bool,
) -> Result<Handle> {
    comm.intra()?;
    let count = usize::try_from(nodes);
    let count = count.map_err(|_| Fault::argument(format_args!("nnodes is {nodes}")));
    let graph = count.and_then(|count| Graph::new(count, index, edges, comm.inner().size()));
    let graph = graph.map_err(|fault| comm.refused("split", fault))?;
    let rank = comm.inner().rank();
    let inner = comm.inner().split((rank < nodes).then_some(0), rank)?;
    with_topology(comm, inner, Card::default(), Some(Arc::new(graph)))
}

pub fn graph_map(
    comm: &Comm,
    nodes: usize,
    index: List<c_int>,
    edges: List<c_int>,
) -> Result<c_int> {
    comm.intra()?;
    Graph::new(nodes, index, edges, comm.inner().size())?;
    let rank = comm.inner().rank();
    Ok(if (rank as usize) < nodes { rank } else { UNDEFINED })
}

pub fn graphdims_get(comm: &Comm) -> Result<(usize, usize)> {
    let graph = graph(comm)?;
    Ok((graph.index.len(), graph.edges.len()))
}

pub fn graph_get(
    comm: &Comm,
    max_index: usize,
    max_edges: usize,
    index: Room<c_int>,
    edges: Room<c_int>,
) -> Result<()> {
    let graph = graph(comm)?;
    write(&graph.index, max_index, index, "index")?;
    write(&graph.edges, max_edges, edges, "edges")
}

pub fn graph_neighbors_count(comm: &Comm, rank: c_int) -> Result<usize> {
    Ok(graph(comm)?.neighbors(rank)?.len())
}

pub fn graph_neighbors(comm: &Comm, rank: c_int, most: usize, room: Room<c_int>) -> Result<()> {
    write(graph(comm)?.neighbors(rank)?, most, room, "neighbors")
}

impl Side {
    /// The neighbours that a program gives.
    fn new(
        degree: c_int,
        ranks: List<c_int>,
        weights: List<c_int>,
        size: c_int,
        name: &'static str,
    ) -> Result<Side> {
        let degree = usize::try_from(degree)
            .map_err(|_| Fault::argument(format_args!("the number of {name} is {degree}")))?;
        let ranks = ranks.slice(degree, name)?.to_vec();
        if let Some(at) = ranks.iter().position(|rank| !(0..size).contains(rank)) {
            let what = format!("{name}[{at}] is {} in a communicator of {size}", ranks[at]);
            return Err(Fault::new(Class::Rank, what));
        }
        let weights = given(weights, degree)?;
        Ok(Side { ranks, weights })
    }

    /// Writes the neighbours for which a program has room, and their weights if there are any.
    fn write(
        &self,
        most: usize,
        room: Room<c_int>,
        weights: Room<c_int>,
        name: &'static str,
    ) -> Result<()> {
        write(&self.ranks, most, room, name)?;
        match &self.weights {
            Some(values) if !weights.is_at(UNWEIGHTED) => write(values, most, weights, "weights"),
            _ => Ok(()),
        }
    }
}

/// The weights that a program gives, which aren't negative.
fn given(weights: List<c_int>, count: usize) -> Result<Option<Vec<c_int>>> {
    if weights.number() == UNWEIGHTED {
        return Ok(None);
    }
    if weights.number() == WEIGHTS_EMPTY && count == 0 {
        return Ok(Some(Vec::new()));
    }
    let weights = weights.slice(count, "weights")?;
    match weights.iter().position(|weight| *weight < 0) {
        None => Ok(Some(weights.to_vec())),
        Some(at) => {
            Err(Fault::argument(format_args!("the weight at index {at} is {}", weights[at])))
        }
    }
}

/// What this rank gives, if all ranks give something right, and if all or none of them give
/// weights. So a rank whose call fails leaves no other one waiting.
fn agreed<T>(comm: &Comm, is_weighted: bool, given: Result<T>) -> Result<T> {
    let all = comm.inner().allgather(&[u8::from(given.is_ok()), u8::from(is_weighted)])?;
    let given = given?;
    let ranks = || all.chunks_exact(2);
    if let Some(rank) = ranks().position(|rank| rank[0] == 0) {
        return Err(Fault::argument(format_args!("rank {rank} gave a graph that is wrong")));
    }
    match ranks().position(|rank| rank[1] != all[1]) {
        None => Ok(given),
        Some(rank) => Err(Fault::argument(format_args!(
            "of rank 0 and rank {rank} only one gives MPI_UNWEIGHTED: give it at all ranks or none"
        ))),
    }
}

/// A communicator of the same ranks with a topology.
fn made(comm: &Comm, neighbors: Neighbors) -> Result<Handle> {
    let inner = comm.inner().split(Some(0), comm.inner().rank())?;
    with_topology(comm, inner, Card::default(), Some(Arc::new(neighbors)))
}

#[allow(clippy::too_many_arguments)] // MPI's
pub fn dist_graph_create_adjacent(
    comm: &Comm,
    indegree: c_int,
    sources: List<c_int>,
    source_weights: List<c_int>,
    outdegree: c_int,
    destinations: List<c_int>,
    destination_weights: List<c_int>,
    _info: Option<&crate::objects::info::Info>,
    _reorder: bool,
) -> Result<Handle> {
    comm.intra()?;
    let size = comm.inner().size();
    let given = || {
        let sources = Side::new(indegree, sources, source_weights, size, "sources")?;
        let destinations =
            Side::new(outdegree, destinations, destination_weights, size, "destinations")?;
        if sources.weights.is_some() != destinations.weights.is_some() {
            let what = "MPI_UNWEIGHTED is given for one side only: give it for both or for none";
            return Err(Fault::argument(what));
        }
        Ok(Neighbors { sources, destinations })
    };
    let is_weighted = source_weights.number() != UNWEIGHTED;
    made(comm, agreed(comm, is_weighted, given())?)
}

/// An edge of a distributed graph: source, destination and weight.
type Edge = [c_int; 3];

/// The edges that this rank gives.
fn edges(
    size: c_int,
    n: usize,
    sources: List<c_int>,
    degrees: List<c_int>,
    destinations: List<c_int>,
    weights: List<c_int>,
) -> Result<Vec<Edge>> {
    let sources = sources.slice(n, "sources")?;
    let degrees = degrees.slice(n, "degrees")?;
    if let Some(at) = degrees.iter().position(|degree| *degree < 0) {
        return Err(Fault::argument(format_args!("degrees[{at}] is {}", degrees[at])));
    }
    let count = degrees.iter().map(|degree| *degree as usize).sum();
    let destinations = destinations.slice(count, "destinations")?;
    let weights = given(weights, count)?;
    let from = sources.iter().zip(degrees);
    let from = from.flat_map(|(source, degree)| std::iter::repeat_n(*source, *degree as usize));
    let mut edges = Vec::with_capacity(count);
    for (at, (source, destination)) in from.zip(destinations).enumerate() {
        for (name, rank) in [("source", source), ("destination", *destination)] {
            if !(0..size).contains(&rank) {
                let what = format!("the {name} of edge {at} is {rank} in a communicator of {size}");
                return Err(Fault::new(Class::Rank, what));
            }
        }
        let weight = weights.as_ref().map_or(0, |weights| weights[at]);
        edges.push([source, *destination, weight]);
    }
    Ok(edges)
}

/// Each rank gives some edges of the graph, and learns those that begin or end at it.
#[allow(clippy::too_many_arguments)] // MPI's
pub fn dist_graph_create(
    comm: &Comm,
    n: usize,
    sources: List<c_int>,
    degrees: List<c_int>,
    destinations: List<c_int>,
    weights: List<c_int>,
    _info: Option<&crate::objects::info::Info>,
    _reorder: bool,
) -> Result<Handle> {
    comm.intra()?;
    let size = comm.inner().size();
    let is_weighted = weights.number() != UNWEIGHTED;
    let given = edges(size, n, sources, degrees, destinations, weights);
    let own = agreed(comm, is_weighted, given)?;
    let counts = comm.inner().allgather(&[3 * own.len() as i64])?;
    let mut ranges = Vec::with_capacity(counts.len());
    let mut end = 0;
    for count in counts {
        ranges.push(end..end + count);
        end += count;
    }
    let mut all = vec![0; end as usize];
    comm.inner().allgatherv(own.as_flattened(), &mut all, &ranges)?;
    let rank = comm.inner().rank();
    let side = |own: usize, other: usize| {
        let edges = || all.chunks_exact(3).filter(move |edge| edge[own] == rank);
        let weights = is_weighted.then(|| edges().map(|edge| edge[2]).collect());
        Side { ranks: edges().map(|edge| edge[other]).collect(), weights }
    };
    made(comm, Neighbors { sources: side(1, 0), destinations: side(0, 1) })
}

pub fn dist_graph_neighbors_count(comm: &Comm) -> Result<(c_int, c_int, bool)> {
    let Neighbors { sources, destinations } = neighbors(comm)?;
    let is_weighted = sources.weights.is_some();
    Ok((sources.ranks.len() as c_int, destinations.ranks.len() as c_int, is_weighted))
}

pub fn dist_graph_neighbors(
    comm: &Comm,
    most_in: usize,
    sources: Room<c_int>,
    source_weights: Room<c_int>,
    most_out: usize,
    destinations: Room<c_int>,
    destination_weights: Room<c_int>,
) -> Result<()> {
    let neighbors = neighbors(comm)?;
    neighbors.sources.write(most_in, sources, source_weights, "sources")?;
    neighbors.destinations.write(most_out, destinations, destination_weights, "destinations")
}
