//! The arguments of collective calls. They are checked once, for calls that wait, calls with
//! requests and persistent calls.
//!
//! Counts and types that a call ignores, such as those of the send buffer for MPI_IN_PLACE, are not
//! looked at.

use std::ffi::c_int;
use std::ops::Range;
use std::sync::Arc;

use longshore::{
    Class, Collective, Communicator, Destination, Given, IN_PLACE, Neighbors, Origin, Pointed,
    SharedOperator, Waitable,
};

use crate::communicator::Comm;
use crate::communicator::duplication::Duplication;
use crate::datatype::Type;
use crate::edge::arg::{Buffer, Numbers, nowhere};
use crate::edge::elements::{Elements, Typed, Varying};
use crate::edge::fault::{Fault, Result};
use crate::edge::handle::{Handle, find};
use crate::operation::Op;

/// A collective call, with what it is given.
pub enum Arguments {
    Barrier,
    Bcast(Blocks, c_int),
    Gather(Blocks, Blocks, c_int),
    Scatter(Blocks, Blocks, c_int),
    Allgather(Blocks, Blocks),
    Alltoall(Blocks, Blocks),
    /// The data are those of the room if they are in place.
    Alltoallw(Option<Vec<Side>>, Vec<Side>),
    Reduce(Operands, c_int),
    Allreduce(Operands),
    Scan(Operands),
    Exscan(Operands),
    ReduceScatter(Operands, Option<Vec<Range<i64>>>),
    Neighbors(Neighborhood, Vec<Side>, Vec<Side>),
}

/// The neighbours of a rank: where its blocks come from, and where they go.
pub struct Neighborhood {
    pub sources: Vec<c_int>,
    pub destinations: Vec<c_int>,
}

impl Neighborhood {
    fn get(&self) -> Neighbors<'_> {
        Neighbors { sources: &self.sources, destinations: &self.destinations }
    }
}

/// The memory of one side of a call: elements of a datatype.
pub struct Side {
    buffer: Buffer,
    count: i64,
    datatype: Arc<Type>,
}

impl Side {
    pub fn new(elements: Elements) -> Result<Side> {
        let Elements { buffer, count, datatype } = elements;
        let datatype = find::<Type>(datatype)?;
        if count < 0 {
            return Err(Fault::new(Class::Count, format!("a count is {count}")));
        }
        buffer.check(count, datatype.committed()?)?;
        Ok(Side { buffer, count, datatype })
    }

    /// Elements `shift` bytes after a buffer, which may be MPI_BOTTOM. MPI_IN_PLACE isn't moved, so
    /// that it is refused.
    fn after(shift: i64, elements: Elements) -> Result<Side> {
        let buffer = match elements.buffer {
            in_place if in_place.is_in_place() => in_place,
            buffer => buffer.after(shift),
        };
        Side::new(Elements { buffer, ..elements })
    }

    /// Refuses data that lie where the result goes (MPI-5.0 section 6.2): elements without gaps
    /// that overlap, or elements of one type from one address on. Programs that mean MPI_IN_PLACE
    /// give such buffers.
    fn check_apart(&self, room: &Side) -> Result<()> {
        let overlaps = match (self.bytes(), room.bytes()) {
            (Some(data), Some(room)) => overlap(&data, &room),
            _ => self.begins_like(room),
        };
        if overlaps { Err(self.lies_in(room)) } else { Ok(()) }
    }

    fn lies_in(&self, room: &Side) -> Fault {
        let [data, room] = [self, room].map(|side| side.buffer.address());
        let what = format!(
            "the data at {data:p} lie where the result goes, at {room:p}: use MPI_IN_PLACE, or buffers apart"
        );
        Fault::new(Class::Buffer, what)
    }

    /// The addresses of the elements, if there are no gaps between them.
    fn bytes(&self) -> Option<Range<i64>> {
        self.bytes_of(&(0..self.count))
    }

    /// The addresses of some of the elements, if there are no gaps between them. The elements of a
    /// buffer at MPI_BOTTOM are where their types say.
    fn bytes_of(&self, elements: &Range<i64>) -> Option<Range<i64>> {
        let bounds = self.datatype.committed().ok()?.bounds();
        let is_dense = bounds.lb == 0 && bounds.size == bounds.extent();
        let first = self.buffer.address().addr() as i64;
        let at = |element: i64| first.checked_add(bounds.size.checked_mul(element)?);
        let (start, end) = (at(elements.start)?, at(elements.end)?);
        (is_dense && first != 0).then_some(start..end)
    }

    fn begins_like(&self, other: &Side) -> bool {
        let [here, there] = [self, other].map(|side| side.buffer.address().addr());
        let has_any = self.count > 0 && other.count > 0;
        here == there && here != 0 && has_any && Arc::ptr_eq(&self.datatype, &other.datatype)
    }

    fn origin(&self) -> Result<Origin<'_>> {
        self.buffer.origin(self.count, self.datatype.committed()?)
    }

    fn room(&self) -> Result<Destination<'_>> {
        self.buffer.destination(self.count, self.datatype.committed()?)
    }

    fn given(&self) -> Result<Given<Pointed>> {
        self.buffer.given(self.count, self.datatype.committed()?)
    }
}

/// Whether two ranges of addresses have an address in common.
fn overlap(one: &Range<i64>, other: &Range<i64>) -> bool {
    one.start.max(other.start) < one.end.min(other.end)
}

pub fn too_many() -> Fault {
    Fault::new(Class::Count, "a count and a displacement are too large together".to_owned())
}

/// The blocks of one side, or its only one. There is no side if the data are in place or ignored.
#[derive(Default)]
pub struct Blocks {
    pub side: Option<Side>,
    /// The elements of each rank's block, unless all are equally long.
    pub ranges: Option<Vec<Range<i64>>>,
}

impl Blocks {
    /// One block.
    pub fn one(elements: Elements) -> Result<Blocks> {
        if elements.buffer.is_in_place() {
            return Ok(Blocks::default());
        }
        Ok(Blocks { side: Some(Side::new(elements)?), ranges: None })
    }

    /// A block of these elements for each rank.
    pub fn equal(elements: Elements, comm: &Comm) -> Result<Blocks> {
        let count = elements.count;
        if count < 0 {
            return Err(Fault::new(Class::Count, format!("a count is {count}")));
        }
        let count = count.checked_mul(i64::from(comm.peers())).ok_or_else(too_many)?;
        Ok(Blocks { side: Some(Side::new(Elements { count, ..elements })?), ranges: None })
    }

    /// A block of its own length and place for each rank.
    pub fn varying(blocks: Varying, comm: &Comm) -> Result<Blocks> {
        let Varying { buffer, counts, displacements, datatype } = blocks;
        let places = places(counts, displacements, comm.peers() as usize)?;
        // The runtime counts elements from the first one, and takes no negative places.
        let mut ranges = Vec::new();
        for (count, start) in places {
            ranges.push(start..start.checked_add(count).ok_or_else(too_many)?);
        }
        let used = || ranges.iter().filter(|range| !range.is_empty());
        let first = used().map(|range| range.start).min().unwrap_or(0);
        let end = used().map(|range| range.end).max().unwrap_or(0);
        let whole = end.checked_sub(first).ok_or_else(too_many)?;
        let moved = |range: &Range<i64>| match range.is_empty() {
            true => 0..0,
            false => range.start - first..range.end - first,
        };
        let ranges = ranges.iter().map(moved).collect();
        let extent = find::<Type>(datatype)?.committed()?.extent();
        let shift = first.checked_mul(extent).ok_or_else(too_many)?;
        let side = Side::after(shift, Elements { buffer, count: whole, datatype })?;
        Ok(Blocks { side: Some(side), ranges: Some(ranges) })
    }

    /// Refuses data that lie where the result goes. If both sides have blocks of their own places,
    /// they may lie in each other's gaps, so only those from one address on are found.
    fn check_apart(&self, room: &Blocks) -> Result<()> {
        let (Some(data), Some(place)) = (&self.side, &room.side) else { return Ok(()) };
        let any_in = |side: &Side, blocks: &[Range<i64>], other: &Side| {
            let other = other.bytes()?;
            let mut parts = blocks.iter().filter_map(|block| side.bytes_of(block));
            Some(parts.any(|part| overlap(&part, &other)))
        };
        let overlaps = match (&self.ranges, &room.ranges) {
            (None, None) => return data.check_apart(place),
            (None, Some(blocks)) => any_in(place, blocks, data),
            (Some(blocks), None) => any_in(data, blocks, place),
            (Some(_), Some(_)) => None,
        };
        let overlaps = overlaps.unwrap_or(false) || data.begins_like(place);
        if overlaps { Err(data.lies_in(place)) } else { Ok(()) }
    }

    fn origin(&self) -> Result<Origin<'_>> {
        self.side.as_ref().map_or(Ok(IN_PLACE.into()), Side::origin)
    }

    fn room(&self) -> Result<Destination<'_>> {
        self.side.as_ref().map_or(Ok(IN_PLACE.into()), Side::room)
    }

    fn given(&self) -> Result<Given<Pointed>> {
        self.side.as_ref().map_or(Ok(nowhere()), Side::given)
    }

    fn ranges(&self) -> &[Range<i64>] {
        self.ranges.as_deref().unwrap_or_default()
    }
}

/// The counts and displacements of blocks.
fn places(counts: Numbers, displacements: Numbers, blocks: usize) -> Result<Vec<(i64, i64)>> {
    let counts = counts.to_vec(blocks, "the counts")?;
    let displacements = displacements.to_vec(blocks, "the displacements")?;
    if let Some(at) = counts.iter().position(|count| *count < 0) {
        return Err(Fault::new(Class::Count, format!("the count of block {at} is {}", counts[at])));
    }
    Ok(counts.into_iter().zip(displacements).collect())
}

/// So many blocks, with types of their own.
pub fn typed(typed: Typed, blocks: usize) -> Result<Vec<Side>> {
    let Typed { buffer, counts, displacements, types } = typed;
    let places = places(counts, displacements, blocks)?.into_iter();
    let types = types.slice(blocks, "the types")?;
    let side = |((count, at), datatype): ((i64, i64), &Handle)| {
        Side::after(at, Elements { buffer, count, datatype: *datatype })
    };
    places.zip(types).map(side).collect()
}

/// So many blocks, of one type.
pub fn spread(varying: Varying, blocks: usize) -> Result<Vec<Side>> {
    let Varying { buffer, counts, displacements, datatype } = varying;
    let extent = find::<Type>(datatype)?.committed()?.extent();
    let side = |(count, at): (i64, i64)| {
        let shift = at.checked_mul(extent).ok_or_else(too_many)?;
        Side::after(shift, Elements { buffer, count, datatype })
    };
    places(counts, displacements, blocks)?.into_iter().map(side).collect()
}

/// Blocks of the same length, one after the other or, if they don't advance, all the same.
pub fn repeated(block: Elements, blocks: usize, advances: bool) -> Result<Vec<Side>> {
    let extent = find::<Type>(block.datatype)?.committed()?.extent();
    let step = match advances {
        true => block.count.checked_mul(extent).ok_or_else(too_many)?,
        false => 0,
    };
    let side = |at: usize| {
        let shift = step.checked_mul(at as i64).ok_or_else(too_many)?;
        Side::after(shift, block)
    };
    (0..blocks).map(side).collect()
}

/// The operands of a reduction: the data unless they are in place, and the room.
pub struct Operands {
    data: Blocks,
    room: Blocks,
    op: SharedOperator,
}

impl Operands {
    /// Data and room of one type, unless the call ignores them.
    pub fn new(
        data: Elements,
        room: Elements,
        op: &Arc<Op>,
        (ignores_data, ignores_room): (bool, bool),
    ) -> Result<Operands> {
        let datatype = op.operands(room.datatype)?;
        let op = op.on(datatype)?;
        let data = match ignores_data {
            true => Blocks::default(),
            false => Blocks::one(data.of(datatype))?,
        };
        let room = match ignores_room {
            true => Blocks::default(),
            false => Blocks { side: Some(Side::new(room.of(datatype))?), ranges: None },
        };
        Ok(Operands { data, room, op })
    }

    /// Refuses operands that lie where the result goes.
    pub fn check_apart(&self) -> Result<()> {
        self.data.check_apart(&self.room)
    }

    /// The memory and the operation, for a call that waits.
    pub fn lent(&self) -> Result<(Origin<'_>, Destination<'_>, &SharedOperator)> {
        Ok((self.data.origin()?, self.room.room()?, &self.op))
    }

    fn given(&self) -> Result<(Given<Pointed>, Given<Pointed>, SharedOperator)> {
        Ok((self.data.given()?, self.room.given()?, self.op.clone()))
    }
}

/// A call under way.
pub enum Started {
    Nothing(Collective<()>),
    One(Collective<Pointed>),
    Two(Collective<(Pointed, Pointed)>),
    Many(Collective<(Vec<Pointed>, Vec<Pointed>)>),
    Duplicate(Box<Duplication>),
}

impl Started {
    pub fn waitable(&self) -> &dyn Waitable {
        match self {
            Started::Nothing(call) => call,
            Started::One(call) => call,
            Started::Two(call) => call,
            Started::Many(call) => call,
            Started::Duplicate(call) => call.waitable(),
        }
    }

    pub fn wait(self) -> longshore::Result<()> {
        match self {
            Started::Nothing(call) => call.wait(),
            Started::One(call) => call.wait().map(drop),
            Started::Two(call) => call.wait().map(drop),
            Started::Many(call) => call.wait().map(drop),
            Started::Duplicate(call) => call.wait(),
        }
    }
}

impl Arguments {
    /// The root of the call, if it has one.
    pub fn root(&self) -> Option<c_int> {
        match self {
            Arguments::Bcast(_, root)
            | Arguments::Gather(.., root)
            | Arguments::Scatter(.., root)
            | Arguments::Reduce(_, root) => Some(*root),
            _ => None,
        }
    }

    /// Refuses data that lie where the result goes.
    pub fn check_apart(&self) -> Result<()> {
        match self {
            Arguments::Gather(data, room, _)
            | Arguments::Scatter(data, room, _)
            | Arguments::Allgather(data, room)
            | Arguments::Alltoall(data, room) => data.check_apart(room),
            Arguments::Reduce(operands, _)
            | Arguments::Allreduce(operands)
            | Arguments::Scan(operands)
            | Arguments::Exscan(operands)
            | Arguments::ReduceScatter(operands, _) => operands.check_apart(),
            Arguments::Alltoallw(Some(given), taken) => {
                given.iter().zip(taken).try_for_each(|(data, room)| data.check_apart(room))
            }
            Arguments::Barrier
            | Arguments::Bcast(..)
            | Arguments::Alltoallw(None, _)
            | Arguments::Neighbors(..) => Ok(()),
        }
    }

    /// Makes the call, which waits.
    pub fn run(&self, comm: &Communicator) -> Result<()> {
        Ok(match self {
            Arguments::Barrier => comm.barrier(),
            Arguments::Bcast(data, root) => comm.bcast(data.room()?, *root),
            Arguments::Gather(data, all, root) => match &all.ranges {
                None => comm.gather(data.origin()?, all.room()?, *root),
                Some(ranges) => comm.gatherv(data.origin()?, all.room()?, ranges, *root),
            },
            Arguments::Scatter(all, mine, root) => match &all.ranges {
                None => comm.scatter(all.origin()?, mine.room()?, *root),
                Some(ranges) => comm.scatterv(all.origin()?, ranges, mine.room()?, *root),
            },
            Arguments::Allgather(data, all) => match &all.ranges {
                None => comm.allgather_into(data.origin()?, all.room()?),
                Some(ranges) => comm.allgatherv(data.origin()?, all.room()?, ranges),
            },
            Arguments::Alltoall(data, all) => match &all.ranges {
                None => comm.alltoall(data.origin()?, all.room()?),
                Some(ranges) => {
                    comm.alltoallv((data.origin()?, data.ranges()), (all.room()?, ranges))
                }
            },
            Arguments::Alltoallw(given, taken) => {
                // All data are packed before any are received.
                comm.alltoallw(origins(given.as_ref().unwrap_or(taken))?, rooms(taken)?)
            }
            Arguments::Reduce(operands, root) => {
                let (data, room, op) = operands.lent()?;
                comm.reduce(data, room, op, *root)
            }
            Arguments::Allreduce(operands) => {
                let (data, room, op) = operands.lent()?;
                comm.allreduce(data, room, op)
            }
            Arguments::Scan(operands) => {
                let (data, room, op) = operands.lent()?;
                comm.scan(data, room, op)
            }
            Arguments::Exscan(operands) => {
                let (data, room, op) = operands.lent()?;
                comm.exscan(data, room, op)
            }
            Arguments::ReduceScatter(operands, ranges) => {
                let (data, room, op) = operands.lent()?;
                match ranges {
                    None => comm.reduce_scatter_block(data, room, op),
                    Some(ranges) => comm.reduce_scatter(data, room, ranges, op),
                }
            }
            Arguments::Neighbors(neighbors, given, taken) => {
                comm.neighbor_alltoallw(neighbors.get(), origins(given)?, rooms(taken)?)
            }
        }?)
    }

    /// Starts the call.
    pub fn start(&self, comm: &Communicator) -> Result<Started> {
        let two = match self {
            Arguments::Barrier => return Ok(Started::Nothing(comm.ibarrier()?)),
            Arguments::Bcast(data, root) => {
                return Ok(Started::One(comm.ibcast(data.given()?, *root)?));
            }
            Arguments::Alltoallw(data, all) => {
                let given = data.as_ref().unwrap_or(all);
                return Ok(Started::Many(comm.ialltoallw(givens(given)?, givens(all)?)?));
            }
            Arguments::Neighbors(neighbors, given, taken) => {
                let (given, taken) = (givens(given)?, givens(taken)?);
                let exchange = comm.ineighbor_alltoallw(neighbors.get(), given, taken)?;
                return Ok(Started::Many(exchange));
            }
            Arguments::Gather(data, all, root) => match &all.ranges {
                None => comm.igather(data.given()?, all.given()?, *root),
                Some(ranges) => comm.igatherv(data.given()?, all.given()?, ranges, *root),
            },
            Arguments::Scatter(all, mine, root) => match &all.ranges {
                None => comm.iscatter(all.given()?, mine.given()?, *root),
                Some(ranges) => comm.iscatterv(all.given()?, ranges, mine.given()?, *root),
            },
            Arguments::Allgather(data, all) => match &all.ranges {
                None => comm.iallgather(data.given()?, all.given()?),
                Some(ranges) => comm.iallgatherv(data.given()?, all.given()?, ranges),
            },
            Arguments::Alltoall(data, all) => match &all.ranges {
                None => comm.ialltoall(data.given()?, all.given()?),
                Some(ranges) => {
                    comm.ialltoallv((data.given()?, data.ranges()), (all.given()?, ranges))
                }
            },
            Arguments::Reduce(operands, root) => {
                let (data, room, op) = operands.given()?;
                comm.ireduce(data, room, op, *root)
            }
            Arguments::Allreduce(operands) => {
                let (data, room, op) = operands.given()?;
                comm.iallreduce(data, room, op)
            }
            Arguments::Scan(operands) => {
                let (data, room, op) = operands.given()?;
                comm.iscan(data, room, op)
            }
            Arguments::Exscan(operands) => {
                let (data, room, op) = operands.given()?;
                comm.iexscan(data, room, op)
            }
            Arguments::ReduceScatter(operands, ranges) => {
                let (data, room, op) = operands.given()?;
                match ranges {
                    None => comm.ireduce_scatter_block(data, room, op),
                    Some(ranges) => comm.ireduce_scatter(data, room, ranges, op),
                }
            }
        };
        Ok(Started::Two(two?))
    }
}

fn origins(sides: &[Side]) -> Result<Vec<Origin<'_>>> {
    sides.iter().map(Side::origin).collect()
}

fn rooms(sides: &[Side]) -> Result<Vec<Destination<'_>>> {
    sides.iter().map(Side::room).collect()
}

fn givens(sides: &[Side]) -> Result<Vec<Given<Pointed>>> {
    sides.iter().map(Side::given).collect()
}
