//! Collective calls that move data (MPI-5.0 sections 6.4 to 6.8), by a board on one host, and with
//! O(log n) messages at each rank otherwise.
//!
//! The data may be [`IN_PLACE`](crate::IN_PLACE): at all ranks, or only at the root of a rooted
//! call.
//!
//! Each call has its steps in an asynchronous function, which the [calls with
//! requests](super::nonblocking) share.

use std::ops::Range;
use std::panic::Location;
use std::pin::pin;

use shipable::Element;

use super::Communicator;
use super::blocks::landing;
use super::calls::{Call, Ongoing};
use super::message::{Block, Blocks, Side, parted};
use super::participants::finish;
use super::places::{announced, place};
use crate::bytes::Bytes;
use crate::check::order::Sample;
use crate::error::{ErrorKind, Result};
use crate::job::Activity;
use crate::memory::Scope;
use crate::observe::At;
use crate::origin::{Destination, Origin};

impl Communicator {
    /// Sends the root's data to all ranks (MPI-5.0 section 6.4). It is read at `root` and written
    /// at the other ranks.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let mut limits = if rank.world().rank() == 0 { [0.5, 1.5] } else { [0.0; 2] };
    /// rank.world().bcast(&mut limits, 0)?;
    /// assert_eq!(limits, [0.5, 1.5]);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// ROOT for a rank outside the communicator. TYPE if the signature differs from the root's.
    /// CONVERSION for a value that this rank's type can't hold. The root's error, if it failed
    /// there. PROC_ABORTED if a rank died.
    #[track_caller]
    #[doc(alias = "MPI_Bcast")]
    pub fn bcast<'a>(&self, data: impl Into<Destination<'a>>, root: i32) -> Result<()> {
        let mut data = data.into();
        let call = const { Call::new("bcast") }.with_root(root);
        let sample = self.sample_room(&mut data, 1);
        self.collective(call, sample, Activity::Broadcast, |at| {
            Scope::with(|scope| {
                let data = Side { what: data.what, span: scope.lend_mut(data.loan) };
                let short = self.short_bcast(at, data, root);
                short.unwrap_or_else(|| finish(pin!(self.bcast_steps(at, data, root))))
            })
        })
    }

    pub(super) async fn bcast_steps(&self, at: Ongoing, data: Side<'_>, root: i32) -> Result<()> {
        if self.is_inter() {
            return self.inter_bcast(at, data, root).await;
        }
        let root = self.root(root)?;
        let participants = self.participants(at).rooted(root);
        let elements = data.resolve(self);
        if self.rank() == root as i32 {
            let mut long = None;
            let (bytes, failed) = self.seal(elements.and_then(|all| {
                let (bytes, announced) =
                    self.block_message(Block::of(&all), self.longest_short(at)?, true)?;
                long = announced;
                Ok(bytes)
            }));
            participants.broadcast(bytes).await?;
            if long.is_some() {
                participants.spread(long).await?;
            }
            return failed.map_or(Ok(()), Err);
        }
        let bytes = participants.broadcast(Bytes::default()).await?;
        let room = elements.and_then(|all| all.check_disjoint().map(|()| all));
        let Some(found) = announced(&bytes) else {
            let room = room?;
            return self.unpack_from(&room, 0, room.count, &bytes);
        };
        let (held, failed) = parted(room.and_then(|room| self.long_room(Block::of(&room), found)));
        if place(&bytes).is_some() {
            // The root sends it to the ranks that don't read it from there.
            let into = [(self.group().process(root), landing(held.as_ref()))];
            participants.transfer(None.into_iter(), into.into_iter()).await?;
        } else {
            participants.spread(held).await?;
        }
        failed.map_or(Ok(()), Err)
    }

    /// Collects equal blocks of data from all ranks at `root`, in the order of ranks (MPI-5.0
    /// section 6.5). At other ranks, `room` is ignored and may be empty.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let world = rank.world();
    /// let mut all = vec![0; if world.rank() == 0 { world.size() as usize } else { 0 }];
    /// world.gather(&[world.rank()], &mut all, 0)?;
    /// assert!(all.iter().copied().eq(0..all.len() as i32));
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// At the root, COUNT if the room isn't a multiple of the number of ranks, and the error of
    /// another rank. Otherwise the errors of [`bcast`](Communicator::bcast).
    #[track_caller]
    #[doc(alias = "MPI_Gather")]
    pub fn gather<'a, 'b>(
        &self,
        data: impl Into<Origin<'a>>,
        room: impl Into<Destination<'b>>,
        root: i32,
    ) -> Result<()> {
        self.gather_as(const { Call::new("gather") }, data.into(), room.into(), None, root)
    }

    #[track_caller]
    pub(super) fn gather_as(
        &self,
        call: Call,
        data: Origin<'_>,
        room: Destination<'_>,
        ranges: Option<&[Range<i64>]>,
        root: i32,
    ) -> Result<()> {
        let sample = self.sample(&data).filter(|_| ranges.is_none());
        self.collective(call.with_root(root), sample, Activity::Gather, |at| {
            self.both(data, room, |data, room| {
                let short = match ranges {
                    None => self.short_gather(at, data, room, Some(root)),
                    Some(_) => None,
                };
                short.unwrap_or_else(|| {
                    finish(pin!(self.gather_steps(at, data, room, ranges, root)))
                })
            })
        })
    }

    pub(super) async fn gather_steps(
        &self,
        at: Ongoing,
        data: Side<'_>,
        room: Side<'_>,
        ranges: Option<&[Range<i64>]>,
        root: i32,
    ) -> Result<()> {
        if self.is_inter() {
            return self.inter_gather(at, data, room, ranges, root).await;
        }
        let root = self.root(root)?;
        let in_place = data.is_in_place() && self.rank() == root as i32;
        let given = match in_place {
            true => self.parts(room, ranges),
            false => data.resolve(self).map(|all| Blocks::Each(vec![Some(all)])),
        };
        self.collect_memory(at, root, (given, in_place), || self.rooms(room, ranges)).await
    }

    /// Collects equal blocks of data from all ranks at every rank, in the order of ranks (MPI-5.0
    /// section 6.7).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let world = rank.world();
    /// let mut all = rank.buffer::<i64>(2 * world.size() as usize)?;
    /// world.allgather_into(&[7i64, i64::from(world.rank())], &mut all)?;
    /// assert_eq!(all.get(1)?, 0);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`gather`](Communicator::gather), at all ranks.
    #[track_caller]
    #[doc(alias = "MPI_Allgather")]
    pub fn allgather_into<'a, 'b>(
        &self,
        data: impl Into<Origin<'a>>,
        room: impl Into<Destination<'b>>,
    ) -> Result<()> {
        self.allgather_as(const { Call::new("allgather") }, data.into(), room.into(), None)
    }

    #[track_caller]
    pub(super) fn allgather_as(
        &self,
        call: Call,
        data: Origin<'_>,
        room: Destination<'_>,
        ranges: Option<&[Range<i64>]>,
    ) -> Result<()> {
        let sample = self.sample(&data).filter(|_| ranges.is_none());
        self.collective(call, sample, Activity::Allgather, |at| {
            self.both(data, room, |data, room| {
                let short = match ranges {
                    None => self.short_gather(at, data, room, None),
                    Some(_) => None,
                };
                short.unwrap_or_else(|| finish(pin!(self.allgather_steps(at, data, room, ranges))))
            })
        })
    }

    pub(super) async fn allgather_steps(
        &self,
        at: Ongoing,
        data: Side<'_>,
        room: Side<'_>,
        ranges: Option<&[Range<i64>]>,
    ) -> Result<()> {
        if self.is_inter() {
            return self.inter_allgather(at, data, room, ranges).await;
        }
        let in_place = data.is_in_place();
        let given = match in_place {
            true => self.parts(room, ranges),
            false => data.resolve(self).map(|all| Blocks::Each(vec![Some(all)])),
        };
        self.gather_memory(at, given, in_place, self.rooms(room, ranges)).await
    }

    /// Returns the elements of all ranks, in the order of ranks (MPI-5.0 section 6.7). Each rank
    /// must pass the same number of elements.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let world = rank.world();
    /// assert_eq!(world.allgather(&[world.rank()])?, Vec::from_iter(0..world.size()));
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`allgather_into`](Communicator::allgather_into).
    #[track_caller]
    #[doc(alias = "MPI_Allgather")]
    pub fn allgather<T: Element>(&self, mine: &[T]) -> Result<Vec<T>> {
        let mut all = mine.repeat(self.size() as usize);
        self.allgather_into(mine, &mut all)?;
        Ok(all)
    }

    /// Sends each rank its block of the root's data, which consists of equal blocks (MPI-5.0
    /// section 6.6). At other ranks, `data` is ignored.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let world = rank.world();
    /// let parts = if world.rank() == 0 { Vec::from_iter(0..2 * world.size()) } else { vec![] };
    /// let mut mine = [0; 2];
    /// world.scatter(&parts, &mut mine, 0)?;
    /// assert_eq!(mine, [2 * world.rank(), 2 * world.rank() + 1]);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// COUNT at all ranks if the data isn't a multiple of the number of ranks. Otherwise the errors
    /// of [`bcast`](Communicator::bcast).
    #[track_caller]
    #[doc(alias = "MPI_Scatter")]
    pub fn scatter<'a, 'b>(
        &self,
        data: impl Into<Origin<'a>>,
        room: impl Into<Destination<'b>>,
        root: i32,
    ) -> Result<()> {
        self.scatter_as(const { Call::new("scatter") }, data.into(), None, room.into(), root)
    }

    #[track_caller]
    pub(super) fn scatter_as(
        &self,
        call: Call,
        data: Origin<'_>,
        ranges: Option<&[Range<i64>]>,
        mut room: Destination<'_>,
        root: i32,
    ) -> Result<()> {
        let sample = self.sample_room(&mut room, 1).filter(|_| ranges.is_none());
        self.collective(call.with_root(root), sample, Activity::Scatter, |at| {
            self.both(data, room, |data, room| {
                let short = match ranges {
                    None => self.short_scatter(at, data, room, root),
                    Some(_) => None,
                };
                short.unwrap_or_else(|| {
                    finish(pin!(self.scatter_steps(at, data, ranges, room, root)))
                })
            })
        })
    }

    pub(super) async fn scatter_steps(
        &self,
        at: Ongoing,
        data: Side<'_>,
        ranges: Option<&[Range<i64>]>,
        room: Side<'_>,
        root: i32,
    ) -> Result<()> {
        if self.is_inter() {
            return self.inter_scatter(at, data, ranges, room, root).await;
        }
        let root = self.root(root)?;
        let whole = || {
            let all = room.resolve(self)?;
            all.check_disjoint()?;
            Ok(Blocks::Each(vec![Some(all)]))
        };
        let given = || self.parts(data, ranges);
        let in_place = room.is_in_place() && self.rank() == root as i32;
        self.deal_memory(at, root, given, whole, in_place).await
    }

    /// Sends block j of each rank's data to rank j, where it becomes block i if it comes from rank
    /// i (MPI-5.0 section 6.8).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let (me, size) = (rank.world().rank(), rank.world().size());
    /// let mut from = vec![-1; size as usize];
    /// rank.world().alltoall(&vec![me; size as usize], &mut from)?;
    /// assert_eq!(from, Vec::from_iter(0..size));
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`allgather_into`](Communicator::allgather_into).
    #[track_caller]
    #[doc(alias = "MPI_Alltoall")]
    pub fn alltoall<'a, 'b>(
        &self,
        data: impl Into<Origin<'a>>,
        room: impl Into<Destination<'b>>,
    ) -> Result<()> {
        self.alltoall_as(const { Call::new("alltoall") }, (data.into(), None), (room.into(), None))
    }

    #[track_caller]
    pub(super) fn alltoall_as(
        &self,
        call: Call,
        (data, given): (Origin<'_>, Option<&[Range<i64>]>),
        (mut room, taken): (Destination<'_>, Option<&[Range<i64>]>),
    ) -> Result<()> {
        let size = self.peers().size() as u64;
        let sample = self.sample_room(&mut room, size).filter(|_| taken.is_none());
        self.collective(call, sample, Activity::Alltoall, |at| {
            self.both(data, room, |data, room| {
                let short = match (given, taken) {
                    (None, None) => self.short_alltoall(at, data, room),
                    _ => None,
                };
                short.unwrap_or_else(|| {
                    finish(pin!(self.alltoall_steps(at, (data, given), (room, taken))))
                })
            })
        })
    }

    pub(super) async fn alltoall_steps(
        &self,
        at: Ongoing,
        (data, given): (Side<'_>, Option<&[Range<i64>]>),
        (room, taken): (Side<'_>, Option<&[Range<i64>]>),
    ) -> Result<()> {
        let in_place = data.is_in_place() && !self.is_inter();
        let blocks = if in_place { self.parts(room, taken) } else { self.parts(data, given) };
        self.exchange_memory(at, blocks, in_place, self.rooms(room, taken), Vec::new()).await
    }

    /// Lends the memory of a call to its body.
    pub(super) fn both<R>(
        &self,
        data: Origin<'_>,
        room: Destination<'_>,
        body: impl FnOnce(Side<'_>, Side<'_>) -> Result<R>,
    ) -> Result<R> {
        Scope::with(|scope| {
            let data = Side { what: data.what, span: scope.lend(data.loan) };
            body(data, Side { what: room.what, span: scope.lend_mut(room.loan) })
        })
    }

    /// Announces a collective call on data and runs its body. Adds the place to its error. Under
    /// `--check` a sample of the data is compared with those of the other ranks.
    #[track_caller]
    pub(super) fn collective<R>(
        &self,
        call: Call,
        sample: Option<Sample>,
        activity: Activity,
        body: impl FnOnce(Ongoing) -> Result<R>,
    ) -> Result<R> {
        let caller = Location::caller();
        let made = || {
            self.ready()?;
            self.process().during(activity, 0, At::of(caller), || {
                self.announce_data(call, sample, caller)?;
                let at = self.begin(call);
                self.end_call(at, body(at))
            })
        };
        made().map_err(|error| self.raised(error, call.name(), caller))
    }

    /// Checks the root of a call.
    pub(super) fn root(&self, root: i32) -> Result<u32> {
        match u32::try_from(root) {
            Ok(rank) if root < self.size() => Ok(rank),
            _ => Err(ErrorKind::Root { root, size: self.size() as u32 }.into()),
        }
    }
}
