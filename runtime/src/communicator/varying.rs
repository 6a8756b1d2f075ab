//! Collective calls in which each rank has its own number of elements (MPI-5.0 sections 6.5 to 6.8).
//!
//! Where MPI has a count and a displacement for each rank, these have a range: the elements of the buffer, counted from its
//! first, that are that rank's.

use std::ops::Range;

use super::Communicator;
use crate::error::Result;
use crate::origin::{Destination, Origin};

impl Communicator {
    /// As [`gather`](Communicator::gather), rank r's data becoming the elements `ranges[r]` of the root's room (MPI-5.0 section
    /// 6.5). Others' `room` and `ranges` aren't looked at.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let (me, size) = (rank.world().rank(), rank.world().size());
    /// // Rank r has r + 1 numbers; between any two ranks' there is a gap.
    /// let start = |rank: i32| i64::from(rank * (rank + 3) / 2);
    /// let ranges: Vec<_> = (0..size).map(|rank| start(rank)..start(rank) + i64::from(rank) + 1).collect();
    /// let mut room = vec![-1; start(size) as usize];
    /// rank.world().gatherv(&vec![me; me as usize + 1], &mut room, &ranges, 0)?;
    /// assert!(me != 0 || room[..2] == [0, -1]);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`gather`](Communicator::gather); at the root, COUNT for a range that doesn't lie in the room, and for another number of
    /// ranges than ranks.
    #[track_caller]
    pub fn gatherv<'a, 'b>(
        &self,
        data: impl Into<Origin<'a>>,
        room: impl Into<Destination<'b>>,
        ranges: &[Range<i64>],
        root: i32,
    ) -> Result<()> {
        self.gather_as("gatherv", data.into(), room.into(), Some(ranges), root)
    }

    /// As [`gatherv`](Communicator::gatherv), to all ranks (MPI-5.0 section 6.7).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let world = rank.world();
    /// // Only rank 0 has something to say.
    /// let ranges: Vec<_> = (0..world.size()).map(|rank| if rank == 0 { 0..2 } else { 2..2 }).collect();
    /// let data = if world.rank() == 0 { vec![1.5, 2.5] } else { vec![] };
    /// let mut room = [0.0; 2];
    /// world.allgatherv(&data, &mut room, &ranges)?;
    /// assert_eq!(room, [1.5, 2.5]);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`gatherv`](Communicator::gatherv), at all ranks.
    #[track_caller]
    pub fn allgatherv<'a, 'b>(
        &self,
        data: impl Into<Origin<'a>>,
        room: impl Into<Destination<'b>>,
        ranges: &[Range<i64>],
    ) -> Result<()> {
        self.allgather_as("allgatherv", data.into(), room.into(), Some(ranges))
    }

    /// As [`scatter`](Communicator::scatter), rank r's block being the elements `ranges[r]` of the root's data (MPI-5.0 section
    /// 6.6). Ranges may overlap. Others' `data` and `ranges` aren't looked at.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let (me, size) = (i64::from(rank.world().rank()), i64::from(rank.world().size()));
    /// // Each has what its neighbour to the right has, too.
    /// let data: Vec<i64> = (0..=size).collect();
    /// let ranges: Vec<_> = (0..size).map(|rank| rank..rank + 2).collect();
    /// let mut mine = [-1i64; 2];
    /// rank.world().scatterv(&data, &ranges, &mut mine, 0)?;
    /// assert_eq!(mine, [me, me + 1]);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`scatter`](Communicator::scatter); COUNT for a range that doesn't lie in the data, and for another number of ranges
    /// than ranks, at all ranks.
    #[track_caller]
    pub fn scatterv<'a, 'b>(
        &self,
        data: impl Into<Origin<'a>>,
        ranges: &[Range<i64>],
        room: impl Into<Destination<'b>>,
        root: i32,
    ) -> Result<()> {
        self.scatter_as("scatterv", data.into(), Some(ranges), room.into(), root)
    }

    /// As [`alltoall`](Communicator::alltoall): the elements `given[j]` of rank i's data become the elements `taken[i]` of rank j's
    /// room (MPI-5.0 section 6.8). With [`IN_PLACE`](crate::IN_PLACE) as data, `given` isn't looked at.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let (me, size) = (i64::from(rank.world().rank()), i64::from(rank.world().size()));
    /// // Rank i gives rank j j numbers.
    /// let given: Vec<_> = (0..size).map(|to| 0..to).collect();
    /// let taken: Vec<_> = (0..size).map(|from| from * me..(from + 1) * me).collect();
    /// let mut room = vec![-1i64; (size * me) as usize];
    /// rank.world().alltoallv((&vec![me; size as usize], &given), (&mut room, &taken))?;
    /// assert!(room.iter().all(|from| (0..size).contains(from)));
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`allgatherv`](Communicator::allgatherv).
    #[track_caller]
    pub fn alltoallv<'a, 'b>(
        &self,
        (data, given): (impl Into<Origin<'a>>, &[Range<i64>]),
        (room, taken): (impl Into<Destination<'b>>, &[Range<i64>]),
    ) -> Result<()> {
        self.alltoall_as("alltoallv", (data.into(), Some(given)), (room.into(), Some(taken)))
    }
}
