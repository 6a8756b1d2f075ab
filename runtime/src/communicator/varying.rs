//! Collective calls in which each rank has its own number of elements (MPI-5.0 sections 6.5 to
//! 6.8).
//!
//! MPI describes each rank's block by a count and a displacement. These calls take a range instead:
//! indices of elements in the buffer.

use std::ops::Range;
use std::pin::pin;

use super::Communicator;
use super::calls::{Call, Ongoing};
use super::message::{Blocks, Side};
use super::participants::finish;
use crate::error::{ErrorKind, Result};
use crate::job::Activity;
use crate::memory::Scope;
use crate::origin::{Destination, Origin};

impl Communicator {
    /// Collects a block of data from each rank at `root` (MPI-5.0 section 6.5). The blocks may
    /// differ in length: rank r's data becomes the elements `ranges[r]` of the root's `room`. At
    /// other ranks, `room` and `ranges` are ignored.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let (me, size) = (rank.world().rank(), rank.world().size());
    /// // Rank r sends r + 1 numbers; the root leaves a gap after each block.
    /// let start = |rank: i32| i64::from(rank * (rank + 3) / 2);
    /// let range = |rank: i32| start(rank)..start(rank) + i64::from(rank) + 1;
    /// let ranges: Vec<_> = (0..size).map(range).collect();
    /// let mut room = vec![-1; start(size) as usize];
    /// rank.world().gatherv(&vec![me; me as usize + 1], &mut room, &ranges, 0)?;
    /// assert!(me != 0 || room[..2] == [0, -1]);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// At the root, COUNT for a range outside the room, or if the number of ranges isn't the number
    /// of ranks. Otherwise the errors of [`gather`](Communicator::gather).
    #[track_caller]
    #[doc(alias = "MPI_Gatherv")]
    pub fn gatherv<'a, 'b>(
        &self,
        data: impl Into<Origin<'a>>,
        room: impl Into<Destination<'b>>,
        ranges: &[Range<i64>],
        root: i32,
    ) -> Result<()> {
        self.gather_as(const { Call::new("gatherv") }, data.into(), room.into(), Some(ranges), root)
    }

    /// Collects blocks of different lengths from all ranks at every rank (MPI-5.0 section 6.7).
    /// Rank r's data becomes the elements `ranges[r]` of each rank's `room`.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let world = rank.world();
    /// // Only rank 0 contributes elements.
    /// let range = |rank| if rank == 0 { 0..2 } else { 2..2 };
    /// let ranges: Vec<_> = (0..world.size()).map(range).collect();
    /// let data = if world.rank() == 0 { vec![1.5, 2.5] } else { vec![] };
    /// let mut room = [0.0; 2];
    /// world.allgatherv(&data, &mut room, &ranges)?;
    /// assert_eq!(room, [1.5, 2.5]);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`gatherv`](Communicator::gatherv), at all ranks.
    #[track_caller]
    #[doc(alias = "MPI_Allgatherv")]
    pub fn allgatherv<'a, 'b>(
        &self,
        data: impl Into<Origin<'a>>,
        room: impl Into<Destination<'b>>,
        ranges: &[Range<i64>],
    ) -> Result<()> {
        self.allgather_as(const { Call::new("allgatherv") }, data.into(), room.into(), Some(ranges))
    }

    /// Sends each rank a block of the root's data (MPI-5.0 section 6.6). Rank r receives the
    /// elements `ranges[r]`. The ranges may overlap. At other ranks, `data` and `ranges` are
    /// ignored.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let (me, size) = (i64::from(rank.world().rank()), i64::from(rank.world().size()));
    /// // Each rank also receives the first element of its right neighbour.
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
    /// COUNT at all ranks for a range outside the data, or if the number of ranges isn't the number
    /// of ranks. Otherwise the errors of [`scatter`](Communicator::scatter).
    #[track_caller]
    #[doc(alias = "MPI_Scatterv")]
    pub fn scatterv<'a, 'b>(
        &self,
        data: impl Into<Origin<'a>>,
        ranges: &[Range<i64>],
        room: impl Into<Destination<'b>>,
        root: i32,
    ) -> Result<()> {
        self.scatter_as(
            const { Call::new("scatterv") },
            data.into(),
            Some(ranges),
            room.into(),
            root,
        )
    }

    /// Sends a block from each rank to each rank (MPI-5.0 section 6.8). The elements `given[j]` of
    /// rank i's data become the elements `taken[i]` of rank j's room. If the data is
    /// [`IN_PLACE`](crate::IN_PLACE), `given` is ignored.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let (me, size) = (i64::from(rank.world().rank()), i64::from(rank.world().size()));
    /// // Each rank sends j numbers to rank j.
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
    /// Those of [`allgatherv`](Communicator::allgatherv).
    #[track_caller]
    #[doc(alias = "MPI_Alltoallv")]
    pub fn alltoallv<'a, 'b>(
        &self,
        (data, given): (impl Into<Origin<'a>>, &[Range<i64>]),
        (room, taken): (impl Into<Destination<'b>>, &[Range<i64>]),
    ) -> Result<()> {
        self.alltoall_as(
            const { Call::new("alltoallv") },
            (data.into(), Some(given)),
            (room.into(), Some(taken)),
        )
    }

    /// Sends data from each rank to each rank, each with a datatype of its own (MPI-5.0 section
    /// 6.8). Rank i's `given[j]` goes to rank j's `taken[i]`, whose signature is the same.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let world = rank.world();
    /// // Even ranks get numbers, and odd ranks bytes.
    /// let (numbers, bytes) = ([world.rank(); 2], [world.rank() as u8]);
    /// let of = |to: usize| if to % 2 == 0 { (&numbers).into() } else { (&bytes).into() };
    /// let (mut all, mut few) = (vec![[0; 2]; world.size() as usize], vec![[0u8]; world.size() as usize]);
    /// let taken: Vec<longshore::Destination> = match world.rank() % 2 {
    ///     0 => all.iter_mut().map(Into::into).collect(),
    ///     _ => few.iter_mut().map(Into::into).collect(),
    /// };
    /// world.alltoallw((0..world.size() as usize).map(of), taken)?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// COUNT if the number of origins or destinations isn't the number of ranks. Otherwise those of
    /// [`alltoallv`](Communicator::alltoallv).
    #[track_caller]
    #[doc(alias = "MPI_Alltoallw")]
    pub fn alltoallw<'a, 'b>(
        &self,
        given: impl IntoIterator<Item = Origin<'a>>,
        taken: impl IntoIterator<Item = Destination<'b>>,
    ) -> Result<()> {
        let (given, taken) = (Vec::from_iter(given), Vec::from_iter(taken));
        self.collective(const { Call::new("alltoallw") }, None, Activity::Alltoall, |at| {
            lent(given, taken, |given, taken| finish(pin!(self.alltoallw_steps(at, given, taken))))
        })
    }

    pub(super) async fn alltoallw_steps(
        &self,
        at: Ongoing,
        given: &[Side<'_>],
        taken: &[Side<'_>],
    ) -> Result<()> {
        let size = self.peers().size() as usize;
        let blocks = match (given.len(), taken.len()) {
            (a, b) if (a, b) == (size, size) => {
                let each = given.iter().map(|data| data.resolve(self).map(Some));
                each.collect::<Result<_>>().map(Blocks::Each)
            }
            (a, b) => {
                let what = format!("{a} origins and {b} destinations for {size} ranks");
                Err(ErrorKind::Ranges(what).into())
            }
        };
        let (mut rooms, mut outcomes) = (Vec::new(), Vec::new());
        for room in taken {
            let room = room.resolve(self).and_then(|all| all.check_disjoint().map(|()| all));
            let (room, outcome) =
                room.map_or_else(|error| (None, Err(error)), |all| (Some(all), Ok(())));
            rooms.push(room);
            outcomes.push(outcome);
        }
        self.exchange_memory(at, blocks, false, Ok(Blocks::Each(rooms)), outcomes).await
    }
}

/// Lends the memories of a call to its body.
pub(super) fn lent<R>(
    given: Vec<Origin<'_>>,
    taken: Vec<Destination<'_>>,
    body: impl FnOnce(&[Side<'_>], &[Side<'_>]) -> Result<R>,
) -> Result<R> {
    Scope::with(|scope| {
        let given = given.into_iter();
        let given = given.map(|data| Side { what: data.what, span: scope.lend(data.loan) });
        let taken = taken.into_iter();
        let taken = taken.map(|room| Side { what: room.what, span: scope.lend_mut(room.loan) });
        body(&Vec::from_iter(given), &Vec::from_iter(taken))
    })
}
