//! Collective calls that combine data: reductions and scans (MPI-5.0 sections 6.9 and 6.11).
//!
//! The operands are combined as they travel: as the bytes that all ranks have in common, or in a
//! representation that holds every value of any rank.
//!
//! The data may be [`IN_PLACE`](crate::IN_PLACE): at all ranks, or only at the root of a reduction.
//!
//! Each call has its steps in an asynchronous function, which the [calls with
//! requests](super::nonblocking) share.

use std::ops::Range;
use std::panic::Location;
use std::pin::pin;
use std::sync::Arc;

use shipable::reduce::{Op, Reduction};
use shipable::{View, ViewMut};

use super::Communicator;
use super::calls::{Call, Ongoing};
use super::message::{Block, Side, open, whole_length};
use super::operator::{Operator, UserOp};
use super::participants::finish;
use super::places::{announced, announcement};
use super::shapes::HEAD;
use super::slices::{Announced, Stream, equal_slices};
use crate::bytes::Bytes;
use crate::error::{Error, ErrorKind, Result, excerpt};
use crate::job::Activity;
use crate::origin::{Destination, Elementwise, Origin, What};
use crate::sequence::MATCH;
use crate::types::Compiled;

impl Communicator {
    /// Combines the elements of all ranks by an operation, element by element, and stores
    /// the result at `root` (MPI-5.0 section 6.9.1).
    ///
    /// The operands are combined in the order of ranks, in a representation that holds every value
    /// of any rank: their own, or that in which the communicator packs. So only a result that
    /// doesn't fit at the root is an error.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// use longshore::Op;
    ///
    /// let mut greatest = [0];
    /// rank.world().reduce(&[rank.world().rank()], &mut greatest, Op::Max, 0)?;
    /// assert!(rank.world().rank() != 0 || greatest == [rank.world().size() - 1]);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// OP for an operation that isn't defined on the type. TYPE for a predefined operation on a
    /// type of several predefined types. Otherwise the errors of [`gather`](Communicator::gather).
    #[track_caller]
    #[doc(alias = "MPI_Reduce")]
    pub fn reduce<'a, 'b, 'o>(
        &self,
        data: impl Into<Origin<'a>>,
        room: impl Into<Destination<'b>>,
        op: impl Into<Operator<'o>>,
        root: i32,
    ) -> Result<()> {
        let (data, mut room, op) = (data.into(), room.into(), op.into());
        let call = const { Call::new("reduce") }.by(op.predefined()).with_root(root);
        let sample = self.sample_operands(&data, &mut room);
        self.collective(call, sample, Activity::Reduce, |at| {
            self.both(data, room, |data, room| {
                let short = self.short_reduce(at, data, room, op, Some(root));
                short.unwrap_or_else(|| finish(pin!(self.reduce_steps(at, data, room, op, root))))
            })
        })
    }

    pub(super) async fn reduce_steps(
        &self,
        at: Ongoing,
        data: Side<'_>,
        room: Side<'_>,
        op: Operator<'_>,
        root: i32,
    ) -> Result<()> {
        if self.is_inter() {
            return self.inter_reduce(at, data, room, op, root).await;
        }
        let root = self.root(root)?;
        let own =
            if self.rank() == root as i32 { room } else { Side { what: What::InPlace, ..room } };
        let (combining, mine, failed) = self.operands(data, own, op, Slicing::Equal(at));
        let total = self.total(at, &combining, mine, (op, Some(root))).await?;
        if let Total::Announced = total {
            let announced = combining.announced.ok_or_else(|| ErrorKind::Collective)?;
            return self.reduce_slices(at, &announced, room, Some(root)).await;
        }
        failed.map_or(Ok(()), Err)?;
        match total {
            Total::Here(total) if self.rank() == root as i32 => self.unpack_whole(room, &total),
            _ => Ok(()),
        }
    }

    /// Combines all ranks' operands at `root`, or at all ranks. Ranks that have announced theirs
    /// learn whether all have.
    ///
    /// Predefined operations give like ranks the same bits, and unlike ranks the same values, since
    /// all of them combine the same stream. So each rank of a board combines what all have posted,
    /// whatever their representations. Otherwise rank 0 combines. The order of ranks decides the
    /// bits of a sum of floats, whichever rank is the root.
    async fn total(
        &self,
        at: Ongoing,
        combining: &Combining<'_>,
        mine: Bytes,
        (op, root): (Operator<'_>, Option<u32>),
    ) -> Result<Total> {
        let mine = match self.posted_total(at, combining, mine, (op, root)).await? {
            Ok(total) => return Ok(total),
            Err(mine) => mine,
        };
        let participants = self.participants(at);
        let Some(root) = root else {
            let combine = |held: Bytes, heard, _| self.combined(combining, &held, heard);
            let total = participants.fold(mine, combine).await?.unwrap_or_default();
            let total = participants.broadcast(total).await?;
            return Ok(Total::of(Arc::try_unwrap(total).or_else(|total| Bytes::copy_of(&total))?));
        };
        match self.combine_at_first(at, combining, mine).await? {
            Total::Here(total) => {
                let total = participants.pass(0, root, total).await?;
                Ok(if self.rank() == root as i32 { Total::of(total) } else { Total::Elsewhere })
            }
            other => Ok(other),
        }
    }

    /// The combination, which each rank that needs it computes from the board. `Err` with this
    /// rank's operands if they go by messages.
    ///
    /// The type doesn't decide this: ranks of unequal signatures, which is an error, must take part
    /// in the same exchanges to learn of it.
    async fn posted_total(
        &self,
        at: Ongoing,
        combining: &Combining<'_>,
        mine: Bytes,
        (op, root): (Operator<'_>, Option<u32>),
    ) -> Result<std::result::Result<Total, Bytes>> {
        if op.predefined().is_none() {
            return Ok(Err(mine));
        }
        let all = match self.participants(at).posted(mine, root).await? {
            Err(mine) => return Ok(Err(mine)),
            Ok(None) => return Ok(Ok(Total::Elsewhere)),
            Ok(Some(all)) => all,
        };
        let mut all = all.into_iter();
        let first = all.next().unwrap_or_default();
        let total = all.try_fold(first, |low, high| self.combined(combining, &low, high))?;
        Ok(Ok(Total::of(total)))
    }

    /// Combines all ranks' operands at rank 0, and lets ranks that have announced them know
    /// whether all have. Ranks with a board come here only with operands that none announces.
    async fn combine_at_first(
        &self,
        at: Ongoing,
        combining: &Combining<'_>,
        mine: Bytes,
    ) -> Result<Total> {
        let participants = self.participants(at);
        let mut all_announced = announced(&mine).is_some();
        let mut awaiting = Vec::new();
        let combine = |held: Bytes, heard: Bytes, bit| {
            if announced(&heard).is_some() {
                awaiting.push(participants.process_at(participants.position() + bit));
            }
            let both = self.combined(combining, &held, heard)?;
            all_announced = announced(&both).is_some();
            Ok(both)
        };
        let total = participants.fold(mine, combine).await?;
        // A rank whose operands don't match those below it has told its parent so.
        if let Some(parent) = participants.parent().filter(|_| all_announced) {
            all_announced = participants.exchange(None, Some(parent)).await?[..] == [1];
        }
        if !awaiting.is_empty() {
            let verdict = Arc::new(Bytes::copy_of(&[all_announced.into()])?);
            let each = awaiting.into_iter().map(|child| (child, verdict.clone()));
            participants.exchange_all(each, &[]).await?;
        }
        Ok(if all_announced { Total::Announced } else { Total::Here(total.unwrap_or_default()) })
    }

    /// Combines announced operands, slice by slice, into the room of `root` or of all ranks.
    async fn reduce_slices(
        &self,
        at: Ongoing,
        announced: &Announced,
        room: Side<'_>,
        root: Option<u32>,
    ) -> Result<()> {
        let result = self.combine_slice(at, announced).await?;
        self.spread_slices(at, result, announced, (room, root)).await
    }

    /// Combines the elements of all ranks by an operation, and stores the result at every rank
    /// (MPI-5.0 section 6.9.6). Ranks of the same representation get the same bits.
    ///
    /// ```
    /// use longshore::Op;
    ///
    /// # let rank = longshore::init()?;
    /// let mut sum = [0.0];
    /// rank.world().allreduce(&[1.5], &mut sum, Op::Sum)?;
    /// assert_eq!(sum, [1.5 * f64::from(rank.world().size())]);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`reduce`](Communicator::reduce), at all ranks.
    #[track_caller]
    #[doc(alias = "MPI_Allreduce")]
    pub fn allreduce<'a, 'b, 'o>(
        &self,
        data: impl Into<Origin<'a>>,
        room: impl Into<Destination<'b>>,
        op: impl Into<Operator<'o>>,
    ) -> Result<()> {
        let (data, mut room, op) = (data.into(), room.into(), op.into());
        let sample = self.sample_operands(&data, &mut room);
        self.collective(
            const { Call::new("allreduce") }.by(op.predefined()),
            sample,
            Activity::Reduce,
            |at| {
                self.both(data, room, |data, room| {
                    let short = self.short_reduce(at, data, room, op, None);
                    short.unwrap_or_else(|| finish(pin!(self.allreduce_steps(at, data, room, op))))
                })
            },
        )
    }

    pub(super) async fn allreduce_steps(
        &self,
        at: Ongoing,
        data: Side<'_>,
        room: Side<'_>,
        op: Operator<'_>,
    ) -> Result<()> {
        if self.is_inter() {
            return self.inter_allreduce(at, data, room, op).await;
        }
        let (combining, mine, failed) = self.operands(data, room, op, Slicing::Equal(at));
        let total = self.total(at, &combining, mine, (op, None)).await?;
        failed.map_or(Ok(()), Err)?;
        match (total, &combining.announced) {
            (Total::Announced, Some(announced)) => {
                self.reduce_slices(at, announced, room, None).await
            }
            (Total::Here(total), _) => self.unpack_whole(room, &total),
            _ => Err(ErrorKind::Collective.into()),
        }
    }

    /// Combines the elements of this rank and all lower ranks by an operation (MPI-5.0 section
    /// 6.11.1).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// use longshore::Op;
    ///
    /// let mut up_to = [0];
    /// rank.world().scan(&[1], &mut up_to, Op::Sum)?;
    /// assert_eq!(up_to, [rank.world().rank() + 1]);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// The error of a lower rank. Otherwise those of [`reduce`](Communicator::reduce).
    #[track_caller]
    #[doc(alias = "MPI_Scan")]
    pub fn scan<'a, 'b, 'o>(
        &self,
        data: impl Into<Origin<'a>>,
        room: impl Into<Destination<'b>>,
        op: impl Into<Operator<'o>>,
    ) -> Result<()> {
        self.scan_as(const { Call::new("scan") }, data.into(), room.into(), op.into(), true)
    }

    /// Combines the elements of all lower ranks by an operation, without this rank's own
    /// (MPI-5.0 section 6.11.2). At rank 0, `room` is left unchanged.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// use longshore::Op;
    ///
    /// // The offset of this rank's block in a file.
    /// let mut start = [0u64];
    /// rank.world().exscan(&[100u64], &mut start, Op::Sum)?;
    /// assert_eq!(start, [100 * rank.world().rank() as u64]);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`scan`](Communicator::scan).
    #[track_caller]
    #[doc(alias = "MPI_Exscan")]
    pub fn exscan<'a, 'b, 'o>(
        &self,
        data: impl Into<Origin<'a>>,
        room: impl Into<Destination<'b>>,
        op: impl Into<Operator<'o>>,
    ) -> Result<()> {
        self.scan_as(const { Call::new("exscan") }, data.into(), room.into(), op.into(), false)
    }

    #[track_caller]
    fn scan_as(
        &self,
        call: Call,
        data: Origin<'_>,
        mut room: Destination<'_>,
        op: Operator<'_>,
        inclusive: bool,
    ) -> Result<()> {
        let sample = self.sample_operands(&data, &mut room);
        self.collective(call.by(op.predefined()), sample, Activity::Scan, |at| {
            self.both(data, room, |data, room| {
                let short = self.short_scan(at, data, room, op, inclusive);
                short
                    .unwrap_or_else(|| finish(pin!(self.scan_steps(at, data, room, op, inclusive))))
            })
        })
    }

    pub(super) async fn scan_steps(
        &self,
        at: Ongoing,
        data: Side<'_>,
        room: Side<'_>,
        op: Operator<'_>,
        inclusive: bool,
    ) -> Result<()> {
        self.intra()?;
        let (combining, mine, failed) = self.operands(data, room, op, Slicing::None);
        let combine = |low: &[u8], high: Bytes| self.combined(&combining, low, high);
        let (before, whole) = self.participants(at).scan(mine, combine).await?;
        failed.map_or(Ok(()), Err)?;
        match (inclusive, before) {
            (true, _) => self.unpack_whole(room, &whole),
            (false, Some(before)) => self.unpack_whole(room, &before),
            (false, None) => Ok(()),
        }
    }

    /// Combines the elements of all ranks by an operation, and stores a block of the result at each
    /// rank (MPI-5.0 section 6.10.1). The data has as many elements as all rooms together. If it is
    /// [`IN_PLACE`](crate::IN_PLACE), it is in the room, whose first elements are the result.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// use longshore::Op;
    ///
    /// let (me, size) = (rank.world().rank(), rank.world().size());
    /// let mut mine = [-1];
    /// rank.world().reduce_scatter_block(&Vec::from_iter(0..size), &mut mine, Op::Sum)?;
    /// assert_eq!(mine, [me * size]);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// COUNT for a number of elements that the number of ranks doesn't divide. Otherwise those of
    /// [`reduce`](Communicator::reduce), at all ranks.
    #[track_caller]
    #[doc(alias = "MPI_Reduce_scatter_block")]
    pub fn reduce_scatter_block<'a, 'b, 'o>(
        &self,
        data: impl Into<Origin<'a>>,
        room: impl Into<Destination<'b>>,
        op: impl Into<Operator<'o>>,
    ) -> Result<()> {
        let (data, room) = (data.into(), room.into());
        self.reduce_scatter_as(
            const { Call::new("reduce_scatter_block") },
            data,
            room,
            None,
            op.into(),
        )
    }

    /// Combines the elements of all ranks by an operation, and stores the elements `ranges[r]` of
    /// the result at rank r (MPI-5.0 section 6.10.2). All ranks give the same ranges.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// use longshore::Op;
    ///
    /// let (me, size) = (rank.world().rank(), rank.world().size());
    /// // Rank 0 gets the first two elements, each other rank one.
    /// let range = |rank| if rank == 0 { 0..2 } else { rank + 1..rank + 2 };
    /// let ranges: Vec<_> = (0..i64::from(size)).map(range).collect();
    /// let mut mine = vec![-1; if me == 0 { 2 } else { 1 }];
    /// rank.world().reduce_scatter(&Vec::from_iter(0..=size), &mut mine, &ranges, Op::Max)?;
    /// assert_eq!(mine.last(), Some(&(me + 1)));
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// COUNT for a range outside the data, or if the number of ranges isn't the number of ranks.
    /// Otherwise those of [`reduce`](Communicator::reduce), at all ranks.
    #[track_caller]
    #[doc(alias = "MPI_Reduce_scatter")]
    pub fn reduce_scatter<'a, 'b, 'o>(
        &self,
        data: impl Into<Origin<'a>>,
        room: impl Into<Destination<'b>>,
        ranges: &[Range<i64>],
        op: impl Into<Operator<'o>>,
    ) -> Result<()> {
        let (data, room) = (data.into(), room.into());
        self.reduce_scatter_as(
            const { Call::new("reduce_scatter") },
            data,
            room,
            Some(ranges),
            op.into(),
        )
    }

    #[track_caller]
    fn reduce_scatter_as(
        &self,
        call: Call,
        data: Origin<'_>,
        mut room: Destination<'_>,
        ranges: Option<&[Range<i64>]>,
        op: Operator<'_>,
    ) -> Result<()> {
        let sample = self.sample_operands(&data, &mut room);
        self.collective(call.by(op.predefined()), sample, Activity::Reduce, |at| {
            self.both(data, room, |data, room| {
                let short = match ranges {
                    None => self.short_reduce_scatter(at, data, room, op),
                    Some(_) => None,
                };
                short.unwrap_or_else(|| {
                    finish(pin!(self.reduce_scatter_steps(at, data, room, ranges, op)))
                })
            })
        })
    }

    pub(super) async fn reduce_scatter_steps(
        &self,
        at: Ongoing,
        data: Side<'_>,
        room: Side<'_>,
        ranges: Option<&[Range<i64>]>,
        op: Operator<'_>,
    ) -> Result<()> {
        if self.is_inter() {
            return self.inter_reduce_scatter(at, data, room, ranges, op).await;
        }
        let (combining, mine, failed) = self.operands(data, room, op, Slicing::Of(at, ranges));
        let (block, failed_here) = match self.posted_total(at, &combining, mine, (op, None)).await?
        {
            Ok(total) => (self.own_block(total, &combining, ranges)?, None),
            Err(mine) => self.dealt_block(at, &combining, mine, ranges).await?,
        };
        failed.or(failed_here).map_or(Ok(()), Err)?;
        let block = match (block, &combining.announced) {
            (Total::Announced, Some(announced)) => {
                self.combined_block(at, &combining, announced, ranges).await?
            }
            (Total::Here(block), _) => block,
            _ => return Err(ErrorKind::Collective.into()),
        };
        match &combining.all {
            Some((_, count)) if data.is_in_place() => {
                let own = self.blocks(*count, ranges)?.swap_remove(self.rank() as usize);
                self.unpack_first(room, own.end - own.start, &block)
            }
            _ => self.unpack_whole(room, &block),
        }
    }

    /// This rank's block of the combination, which each rank computes from the board, as a message.
    fn own_block(
        &self,
        total: Total,
        combining: &Combining<'_>,
        ranges: Option<&[Range<i64>]>,
    ) -> Result<Total> {
        match (total, &combining.all) {
            (Total::Here(total), Some(all)) if open(&total).is_ok() => {
                let mut blocks = self.blocks_of_total(&total, all, ranges)?;
                Ok(Total::Here(blocks.swap_remove(self.rank() as usize)))
            }
            (total, _) => Ok(total),
        }
    }

    /// This rank's block of the combination, which rank 0 computes and deals, as a message.
    async fn dealt_block(
        &self,
        at: Ongoing,
        combining: &Combining<'_>,
        mine: Bytes,
        ranges: Option<&[Range<i64>]>,
    ) -> Result<(Total, Option<Error>)> {
        let combine = |held: Bytes, heard, _| self.combined(combining, &held, heard);
        let total = self.participants(at).fold(mine, combine).await?;
        let blocks = match (&total, &combining.all) {
            (None, _) => Ok(Vec::new()),
            // Without operands, the total is this rank's error.
            (Some(total), operands) if operands.is_none() || announced(total).is_some() => {
                (0..self.size()).map(|_| Bytes::copy_of(total)).collect()
            }
            (Some(_), None) => Ok(Vec::new()),
            (Some(total), Some(all)) => self.blocks_of_total(total, all, ranges),
        };
        let (blocks, failed) = self.seal_blocks(blocks);
        Ok((Total::of(self.participants(at).scatter(blocks).await?), failed))
    }

    /// This rank's block of the combination of announced operands, as a message.
    async fn combined_block(
        &self,
        at: Ongoing,
        combining: &Combining<'_>,
        announced: &Announced,
        ranges: Option<&[Range<i64>]>,
    ) -> Result<Bytes> {
        let block = self.combine_slice(at, announced).await?;
        let (datatype, count) = combining.all.as_ref().ok_or_else(|| ErrorKind::Collective)?;
        let own = self.blocks_for(self.group(), *count, ranges)?.swap_remove(self.rank() as usize);
        let mut message = Bytes::with_room(whole_length(block.len() as u64)?)?;
        message.extend(&[0])?;
        message.extend(&datatype.repeated(own.end - own.start)?.to_le_bytes())?;
        message.extend(&block)?;
        Ok(message)
    }

    /// Combines this rank's data with the data in `room`, and stores the result there (MPI-5.0
    /// section 6.9.7). The operands in `data` come first. No other rank takes part.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// use longshore::Op;
    ///
    /// let mut sum = [1, 2];
    /// rank.world().reduce_local(&[10, 20], &mut sum, Op::Sum)?;
    /// assert_eq!(sum, [11, 22]);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`reduce`](Communicator::reduce).
    #[track_caller]
    #[doc(alias = "MPI_Reduce_local")]
    pub fn reduce_local<'a, 'b, 'o>(
        &self,
        data: impl Into<Origin<'a>>,
        room: impl Into<Destination<'b>>,
        op: impl Into<Operator<'o>>,
    ) -> Result<()> {
        let (data, room, op) = (data.into(), room.into(), op.into());
        let caller = Location::caller();
        let made = |data: Side<'_>, room: Side<'_>| {
            self.ready()?;
            let own = Side { what: What::InPlace, ..data };
            let (_, high, failed) = self.operands(own, room, op, Slicing::None);
            failed.map_or(Ok(()), Err)?;
            let (combining, low, failed) = self.operands(data, room, op, Slicing::None);
            failed.map_or(Ok(()), Err)?;
            let total = self.combined(&combining, &low, high)?;
            self.unpack_whole(room, &total)
        };
        self.both(data, room, made).map_err(|error| self.raised(error, "reduce_local", caller))
    }

    /// This rank's operands, read from `room` if the data is in place. Their message announces them
    /// if they are long and may be announced.
    pub(super) fn operands<'o>(
        &self,
        data: Side<'_>,
        room: Side<'_>,
        op: Operator<'o>,
        slicing: Slicing<'_>,
    ) -> (Combining<'o>, Bytes, Option<Error>) {
        let mut combining = Combining { by: Means::Nothing, all: None, announced: None };
        let mut pack = || {
            let operands = if data.is_in_place() { room } else { data }.resolve(self)?;
            combining.by = self.means(op, &operands)?;
            combining.all = Some((operands.datatype.clone(), operands.count));
            let length = self.packed_size(&operands, operands.count)?;
            match combining.by {
                Means::Predefined(reduction)
                    if slicing.may_be(self, &operands.datatype, length)? =>
                {
                    let (message, announced) =
                        self.announced(operands, length, reduction, slicing)?;
                    combining.announced = Some(Box::new(announced));
                    Ok(message)
                }
                _ => {
                    let mut bytes = self.pack_part(&operands, 0, operands.count)?;
                    if let (Slicing::Of(_, Some(ranges)), Means::Predefined(_)) =
                        (slicing, &combining.by)
                    {
                        let blocks = self.blocks_for(self.group(), operands.count, Some(ranges))?;
                        let named =
                            divided(operands.signature(operands.count)?, blocks.into_iter());
                        bytes[1..HEAD].copy_from_slice(&named.to_le_bytes());
                    }
                    Ok(bytes)
                }
            }
        };
        let (bytes, failed) = self.seal(pack());
        (combining, bytes, failed)
    }

    /// The announcement of long operands of so many bytes, and what it announces.
    fn announced(
        &self,
        operands: Elementwise,
        length: u64,
        reduction: Reduction,
        slicing: Slicing<'_>,
    ) -> Result<(Bytes, Announced)> {
        let signature = operands.signature(operands.count)?;
        let (mut named, size) = (signature, self.group().size() as u64);
        let slices = match slicing {
            Slicing::Of(_, ranges) => {
                let blocks = self.blocks_for(self.group(), operands.count, ranges)?;
                let place = |elements| self.packed_size(&operands, elements);
                let slice = |block: &Range<u64>| Ok(place(block.start)?..place(block.end)?);
                let slices = blocks.iter().map(slice).collect::<Result<Vec<_>>>()?;
                named = divided(signature, slices.iter().cloned());
                slices
            }
            _ => equal_slices(length, reduction.element().max(1), size).collect(),
        };
        let operands = match self.is_run(&operands) {
            true => Stream::Run(operands),
            false => Stream::Packed(self.pack_bare(Block::of(&operands))?),
        };
        let message = Bytes::copy_of(&announcement(named, length))?;
        Ok((message, Announced { operands, reduction, signature, slices }))
    }

    /// How an operation combines the data of a call.
    fn means<'o>(&self, op: Operator<'o>, all: &Elementwise) -> Result<Means<'o>> {
        match op {
            Operator::Predefined(Op::Replace | Op::NoOp) => Err(ErrorKind::NotReducing.into()),
            _ if all.count == 0 => Ok(Means::Nothing),
            Operator::Predefined(op) => {
                let mixed = || ErrorKind::NotReducible { datatype: excerpt(&*all.datatype) };
                let leaf = all.datatype.single_leaf().ok_or_else(mixed)?;
                Ok(Means::Predefined(match self.stream(&all.datatype) {
                    None => all.datatype.reduction(op, leaf)?,
                    Some(other) => Reduction::new(op, leaf, other)?,
                }))
            }
            Operator::User(op) => op.check(self, all).map(|()| Means::User(op)),
        }
    }

    /// Combines the operands of lower ranks with those of higher ranks. The lower ranks' come
    /// first, as the operands of an accumulate do. If one of them is an error, the result is the
    /// first error.
    pub(super) fn combined(
        &self,
        combining: &Combining<'_>,
        low: &[u8],
        mut high: Bytes,
    ) -> Result<Bytes> {
        let differ = || {
            let (origin, target) = ("some ranks".to_owned(), "others".to_owned());
            let remedy = MATCH.to_owned();
            let differ = Error::from(ErrorKind::Signature { origin, target, remedy });
            Ok(self.seal(Err(differ)).0)
        };
        match (announced(low), announced(&high)) {
            (None, None) => {}
            (lower, higher) if lower == higher => return Ok(high),
            // One of them may be an error.
            (Some(_), None) if open(&high).is_err() => return Ok(high),
            (None, Some(_)) if open(low).is_err() => return Bytes::copy_of(low),
            _ => return differ(),
        }
        let (left, right) = match (open(low), open(&high)) {
            (Err(_), _) => return Bytes::copy_of(low),
            (_, Err(_)) => return Ok(high),
            (Ok((left, _)), Ok((right, _))) => (left, right),
        };
        if left != right || low.len() != high.len() {
            return differ();
        }
        let outcome = match (&combining.by, &combining.all) {
            (Means::Predefined(reduction), _) => {
                let elements = (low.len() - HEAD) as u64 / reduction.element().max(1);
                let mut target = ViewMut::new(&mut high[HEAD..]);
                let combined = reduction.combine(View::new(&low[HEAD..]), &mut target, elements);
                combined.map(|()| high).map_err(Error::from)
            }
            (Means::User(op), Some((datatype, count))) => {
                op.combine(self, (datatype, *count), low, &high)
            }
            _ => Ok(high),
        };
        Ok(self.seal(outcome).0)
    }

    /// The blocks of a packed total, a message for each rank.
    pub(super) fn blocks_of_total(
        &self,
        total: &[u8],
        (datatype, count): &(Arc<Compiled>, u64),
        ranges: Option<&[Range<i64>]>,
    ) -> Result<Vec<Bytes>> {
        let (_, data) = open(total)?;
        let block = |range: Range<u64>| {
            let elements = range.end - range.start;
            let place = |elements| self.stream_length(datatype, elements);
            let (from, to) = (place(range.start)? as usize, place(range.end)? as usize);
            let mut bytes = Bytes::with_room(whole_length((to - from) as u64)?)?;
            bytes.extend(&[0])?;
            bytes.extend(&datatype.repeated(elements)?.to_le_bytes())?;
            bytes.extend(&data[from..to])?;
            Ok(bytes)
        };
        let blocks = self.blocks_for(self.group(), *count, ranges)?;
        blocks.into_iter().map(block).collect()
    }
}

/// The hash of the signature of operands that the ranks divide into these ranges. Ranks that divide
/// theirs in different ways don't match.
pub(super) fn divided(signature: u128, ranges: impl Iterator<Item = Range<u64>>) -> u128 {
    let ends = ranges.flat_map(|range| [range.start, range.end]);
    ends.fold(signature, |hash, end| {
        (hash ^ u128::from(end)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(61)
    })
}

/// How the ranks of a call divide long operands.
#[derive(Clone, Copy)]
pub(super) enum Slicing<'a> {
    /// They don't: the operands are packed.
    None,
    /// Into equal slices.
    Equal(Ongoing),
    /// Into the blocks that the ranks get: those of these ranges, or equal ones.
    Of(Ongoing, Option<&'a [Range<i64>]>),
}

impl Slicing<'_> {
    /// Whether operands of a type, of so many bytes, are announced, and combined slice by slice.
    fn may_be(self, communicator: &Communicator, datatype: &Compiled, length: u64) -> Result<bool> {
        Ok(match self {
            Slicing::None => false,
            Slicing::Equal(at) | Slicing::Of(at, _) => {
                // All ranks decide alike.
                let longest = match communicator.participants(at).board()? {
                    Some(board) => board.longest_posted(at.call),
                    None => communicator.longest_short(at)?,
                };
                length > longest && communicator.copies(datatype)
            }
        })
    }
}

/// How a call combines operands, and the datatype and number of elements of its data.
pub(super) struct Combining<'o> {
    by: Means<'o>,
    /// `None` if the data was refused.
    pub all: Option<(Arc<Compiled>, u64)>,
    /// The operands, if the rank has announced them.
    announced: Option<Box<Announced>>,
}

/// The combination of all ranks' operands, as a rank has it.
enum Total {
    /// Its message, which may be an error.
    Here(Bytes),
    /// All ranks have announced operands that match.
    Announced,
    /// Another rank has it.
    Elsewhere,
}

impl Total {
    fn of(message: Bytes) -> Total {
        if announced(&message).is_some() { Total::Announced } else { Total::Here(message) }
    }
}

enum Means<'o> {
    /// There are no elements.
    Nothing,
    Predefined(Reduction),
    User(&'o UserOp<'o>),
}
