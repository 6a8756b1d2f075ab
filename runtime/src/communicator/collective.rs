//! Collective calls that move and combine data (MPI-5.0 chapter 6), with O(log n) messages at each
//! rank.
//!
//! Data travels packed in a representation that all ranks know (see [`Communicator::pack`]). A rank
//! that forwards values can therefore not damage values that its own types can't hold. Reductions
//! are computed in that representation too.
//!
//! If a rank fails, it sends its error in place of its data. The ranks that need the data return
//! that error, so no rank waits forever.
//!
//! The data may be [`IN_PLACE`](crate::IN_PLACE): at all ranks, or only at the root of a rooted
//! call.
//!
//! Left out: MPI_Alltoallw, reduce_scatter, nonblocking and neighbourhood calls, user-defined
//! operations.

use std::panic::Location;

use std::ops::Range;

use shipable::reduce::{Op, Reduction};
use shipable::{Element, View, ViewMut};

use super::Communicator;
use super::agree::told;
use crate::error::{Error, ErrorKind, Result, conversion, excerpt};
use crate::job::Activity;
use crate::memory::{Scope, Span};
use crate::origin::{Destination, Elementwise, IN_PLACE, Origin, What};
use crate::sequence::{Items, MATCH};

/// The tag of messages that carry data of collective calls.
const DATA: i32 = 4;

/// Bytes before the packed data: a 0, and the hash of the data's signature.
const HEAD: usize = 17;
const FAILED: usize = 6;

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
    pub fn bcast<'a>(&self, data: impl Into<Destination<'a>>, root: i32) -> Result<()> {
        let data = data.into();
        self.collective("bcast", Activity::Broadcast, || {
            let root = self.root(root)?;
            let circle = self.circle(DATA).rooted(root);
            Scope::with(|scope| {
                let elements = data.what.resolve(self.process(), scope.lend_mut(data.loan));
                if self.rank() == root as i32 {
                    let packed = elements.and_then(|all| self.pack_part(&all, 0, all.count));
                    let (bytes, failed) = self.seal(packed);
                    circle.broadcast(bytes)?;
                    return failed.map_or(Ok(()), Err);
                }
                let bytes = circle.broadcast(Vec::new())?;
                let all = elements?;
                all.check_disjoint()?;
                self.unpack_from(&all, 0, all.count, &bytes)
            })
        })
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
    pub fn gather<'a, 'b>(
        &self,
        data: impl Into<Origin<'a>>,
        room: impl Into<Destination<'b>>,
        root: i32,
    ) -> Result<()> {
        self.gather_as("gather", data.into(), room.into(), None, root)
    }

    #[track_caller]
    pub(super) fn gather_as(
        &self,
        call: &'static str,
        data: Origin<'_>,
        mut room: Destination<'_>,
        ranges: Option<&[Range<i64>]>,
        root: i32,
    ) -> Result<()> {
        self.collective(call, Activity::Gather, || {
            let root = self.root(root)?;
            let (mine, failed) = self.seal(match self.rank() == root as i32 {
                true => self.packed_own(data, &mut room, ranges),
                false => self.packed_whole(data),
            });
            let all = self.circle(DATA).rooted(root).gather(&mine)?;
            failed.map_or(Ok(()), Err)?;
            all.map_or(Ok(()), |all| self.unpack_blocks(room, ranges, &all))
        })
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
    pub fn allgather_into<'a, 'b>(
        &self,
        data: impl Into<Origin<'a>>,
        room: impl Into<Destination<'b>>,
    ) -> Result<()> {
        self.allgather_as("allgather", data.into(), room.into(), None)
    }

    #[track_caller]
    pub(super) fn allgather_as(
        &self,
        call: &'static str,
        data: Origin<'_>,
        mut room: Destination<'_>,
        ranges: Option<&[Range<i64>]>,
    ) -> Result<()> {
        self.collective(call, Activity::Allgather, || {
            let (mine, failed) = self.seal(self.packed_own(data, &mut room, ranges));
            let all = self.circle(DATA).allgather(mine)?;
            failed.map_or(Ok(()), Err)?;
            self.unpack_blocks(room, ranges, &all)
        })
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
    pub fn scatter<'a, 'b>(
        &self,
        data: impl Into<Origin<'a>>,
        room: impl Into<Destination<'b>>,
        root: i32,
    ) -> Result<()> {
        self.scatter_as("scatter", data.into(), None, room.into(), root)
    }

    #[track_caller]
    pub(super) fn scatter_as(
        &self,
        call: &'static str,
        data: Origin<'_>,
        ranges: Option<&[Range<i64>]>,
        room: Destination<'_>,
        root: i32,
    ) -> Result<()> {
        self.collective(call, Activity::Scatter, || {
            let root = self.root(root)?;
            let (mut blocks, mut failed) = (Vec::new(), None);
            if self.rank() == root as i32 {
                let packed =
                    Scope::with(|scope| self.pack_blocks(data.what, scope.lend(data.loan), ranges));
                (blocks, failed) = self.seal_blocks(packed);
            }
            let mine = self.circle(DATA).rooted(root).scatter(blocks)?;
            failed.map_or(Ok(()), Err)?;
            match room.what {
                What::InPlace if self.rank() == root as i32 => Ok(()),
                _ => self.unpack_whole(room, &mine),
            }
        })
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
    pub fn alltoall<'a, 'b>(
        &self,
        data: impl Into<Origin<'a>>,
        room: impl Into<Destination<'b>>,
    ) -> Result<()> {
        self.alltoall_as("alltoall", (data.into(), None), (room.into(), None))
    }

    #[track_caller]
    pub(super) fn alltoall_as(
        &self,
        call: &'static str,
        (data, given): (Origin<'_>, Option<&[Range<i64>]>),
        (mut room, taken): (Destination<'_>, Option<&[Range<i64>]>),
    ) -> Result<()> {
        self.collective(call, Activity::Alltoall, || {
            let packed = Scope::with(|scope| match data.what {
                What::InPlace => {
                    self.pack_blocks(room.what, scope.lend_mut(room.loan.again()), taken)
                }
                what => self.pack_blocks(what, scope.lend(data.loan), given),
            });
            let (blocks, failed) = self.seal_blocks(packed);
            let all = self.circle(DATA).alltoall(blocks)?;
            failed.map_or(Ok(()), Err)?;
            self.unpack_blocks(room, taken, &all)
        })
    }

    /// Combines the elements of all ranks by a predefined operation, element by element, and stores
    /// the result at `root` (MPI-5.0 section 6.9.1).
    ///
    /// The operands are combined in the order of ranks, in the representation in which the
    /// communicator packs. It holds every value of any rank, so only a result that doesn't fit at
    /// the root is an error.
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
    /// OP for an operation that isn't defined on the type. TYPE for a type of several predefined
    /// types. Otherwise the errors of [`gather`](Communicator::gather).
    #[track_caller]
    pub fn reduce<'a, 'b>(
        &self,
        data: impl Into<Origin<'a>>,
        room: impl Into<Destination<'b>>,
        op: Op,
        root: i32,
    ) -> Result<()> {
        let (data, mut room) = (data.into(), room.into());
        self.collective("reduce", Activity::Reduce, || {
            let root = self.root(root)?;
            let mut nowhere = IN_PLACE.into();
            let own = if self.rank() == root as i32 { &mut room } else { &mut nowhere };
            // Rank 0 combines, whichever rank is the root. The order of ranks decides the bits of a sum
            // of floats.
            let (total, failed) = self.total(data, own, op)?;
            let total = self.circle(DATA).pass(0, root, total)?;
            failed.map_or(Ok(()), Err)?;
            if self.rank() == root as i32 { self.unpack_whole(room, &total) } else { Ok(()) }
        })
    }

    /// Combines the elements of all ranks by a predefined operation, and stores the result at every
    /// rank (MPI-5.0 section 6.9.6). Ranks of the same representation get the same bits.
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
    pub fn allreduce<'a, 'b>(
        &self,
        data: impl Into<Origin<'a>>,
        room: impl Into<Destination<'b>>,
        op: Op,
    ) -> Result<()> {
        let (data, mut room) = (data.into(), room.into());
        self.collective("allreduce", Activity::Reduce, || {
            let (total, failed) = self.total(data, &mut room, op)?;
            let total = self.circle(DATA).broadcast(total)?;
            failed.map_or(Ok(()), Err)?;
            self.unpack_whole(room, &total)
        })
    }

    /// Combines the elements of this rank and all lower ranks by a predefined operation (MPI-5.0
    /// section 6.11.1).
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
    pub fn scan<'a, 'b>(
        &self,
        data: impl Into<Origin<'a>>,
        room: impl Into<Destination<'b>>,
        op: Op,
    ) -> Result<()> {
        self.scan_as("scan", data.into(), room.into(), op, true)
    }

    /// Combines the elements of all lower ranks by a predefined operation, without this rank's own
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
    pub fn exscan<'a, 'b>(
        &self,
        data: impl Into<Origin<'a>>,
        room: impl Into<Destination<'b>>,
        op: Op,
    ) -> Result<()> {
        self.scan_as("exscan", data.into(), room.into(), op, false)
    }

    #[track_caller]
    fn scan_as(
        &self,
        call: &'static str,
        data: Origin<'_>,
        mut room: Destination<'_>,
        op: Op,
        inclusive: bool,
    ) -> Result<()> {
        self.collective(call, Activity::Scan, || {
            let (reduction, mine, failed) = self.operands(data, &mut room, op);
            let mut before: Option<Vec<u8>> = None;
            let mut whole = mine.clone();
            self.circle(DATA).scan(mine, |heard, held| {
                let nearer = before.take();
                before = Some(match nearer {
                    Some(nearer) => self.combined(&reduction, heard.clone(), &nearer)?,
                    None => heard.clone(),
                });
                whole = self.combined(&reduction, heard, held)?;
                Ok(whole.clone())
            })?;
            failed.map_or(Ok(()), Err)?;
            match (inclusive, before) {
                (true, _) => self.unpack_whole(room, &whole),
                (false, Some(before)) => self.unpack_whole(room, &before),
                (false, None) => Ok(()),
            }
        })
    }

    #[track_caller]
    fn collective<R>(
        &self,
        call: &'static str,
        activity: Activity,
        body: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        let caller = Location::caller();
        let made = || {
            self.ready()?;
            self.process().during(activity, 0, || {
                self.announce(|| call.to_owned(), caller)?;
                body()
            })
        };
        made().map_err(|error| self.raise(error.at(|| self.place(call))))
    }

    fn root(&self, root: i32) -> Result<u32> {
        match u32::try_from(root) {
            Ok(rank) if root < self.size() => Ok(rank),
            _ => Err(ErrorKind::Root { root, size: self.size() as u32 }.into()),
        }
    }

    /// The combination of all ranks' operands at rank 0, and an empty vector elsewhere. Also
    /// returns the error of this rank.
    fn total(
        &self,
        data: Origin<'_>,
        room: &mut Destination<'_>,
        op: Op,
    ) -> Result<(Vec<u8>, Option<Error>)> {
        let (reduction, mine, failed) = self.operands(data, room, op);
        let combine = |held, heard: Vec<u8>, _| self.combined(&reduction, held, &heard);
        let total = self.circle(DATA).fold(mine, combine)?;
        Ok((total.unwrap_or_default(), failed))
    }

    /// This rank's operands, read from `room` if the data is in place.
    fn operands(
        &self,
        data: Origin<'_>,
        room: &mut Destination<'_>,
        op: Op,
    ) -> (Option<Reduction>, Vec<u8>, Option<Error>) {
        let mut reduction = None;
        let packed = Scope::with(|scope| {
            let (what, span) = match data.what {
                What::InPlace => (room.what, scope.lend_mut(room.loan.again())),
                what => (what, scope.lend(data.loan)),
            };
            let all = what.resolve(self.process(), span)?;
            if matches!(op, Op::Replace | Op::NoOp) {
                return Err(ErrorKind::NotReducing.into());
            }
            let mixed = || ErrorKind::NotReducible { datatype: excerpt(&*all.datatype) };
            if all.count > 0 {
                let leaf = all.datatype.single_leaf().ok_or_else(mixed)?;
                let representation = self.packed_representation();
                reduction = Some(Reduction::new(op, leaf, representation)?);
            }
            self.pack_part(&all, 0, all.count)
        });
        let (bytes, failed) = self.seal(packed);
        (reduction, bytes, failed)
    }

    /// Combines the operands of lower ranks with those of higher ranks. If one of them is an error,
    /// the result is the first error.
    fn combined(
        &self,
        reduction: &Option<Reduction>,
        mut low: Vec<u8>,
        high: &[u8],
    ) -> Result<Vec<u8>> {
        let (left, right) = match (open(&low), open(high)) {
            (Err(_), _) => return Ok(low),
            (_, Err(_)) => return Ok(high.to_vec()),
            (Ok((left, _)), Ok((right, _))) => (left, right),
        };
        if left != right || low.len() != high.len() {
            let (origin, target) = ("some ranks".to_owned(), "others".to_owned());
            let remedy = MATCH.to_owned();
            let differ = Error::from(ErrorKind::Signature { origin, target, remedy });
            return Ok(self.seal(Err(differ)).0);
        }
        // There are no elements if there is no reduction.
        if let Some(reduction) = reduction {
            let elements = (low.len() - HEAD) as u64 / reduction.element().max(1);
            let mut low = ViewMut::new(&mut low[HEAD..]);
            reduction.combine(View::new(&high[HEAD..]), &mut low, elements)?;
        }
        Ok(low)
    }

    fn packed_whole(&self, data: Origin<'_>) -> Result<Vec<u8>> {
        Scope::with(|scope| {
            let all = data.what.resolve(self.process(), scope.lend(data.loan))?;
            self.pack_part(&all, 0, all.count)
        })
    }

    fn unpack_whole(&self, room: Destination<'_>, bytes: &[u8]) -> Result<()> {
        Scope::with(|scope| {
            let all = room.what.resolve(self.process(), scope.lend_mut(room.loan))?;
            all.check_disjoint()?;
            self.unpack_from(&all, 0, all.count, bytes)
        })
    }

    /// This rank's packed data. If it is in place, it is the rank's block of the room.
    fn packed_own(
        &self,
        data: Origin<'_>,
        room: &mut Destination<'_>,
        ranges: Option<&[Range<i64>]>,
    ) -> Result<Vec<u8>> {
        let What::InPlace = data.what else { return self.packed_whole(data) };
        Scope::with(|scope| {
            let all = room.what.resolve(self.process(), scope.lend_mut(room.loan.again()))?;
            let own = self.blocks(all.count, ranges)?.swap_remove(self.rank() as usize);
            self.pack_part(&all, own.start, own.end - own.start)
        })
    }

    /// One packed block for each rank.
    fn pack_blocks(
        &self,
        what: What<'_>,
        memory: Span,
        ranges: Option<&[Range<i64>]>,
    ) -> Result<Vec<Vec<u8>>> {
        let all = what.resolve(self.process(), memory)?;
        let blocks = self.blocks(all.count, ranges)?.into_iter();
        blocks.map(|block| self.pack_part(&all, block.start, block.end - block.start)).collect()
    }

    /// The messages of packed blocks. If packing failed, each of them is the error.
    fn seal_blocks(&self, packed: Result<Vec<Vec<u8>>>) -> (Vec<Vec<u8>>, Option<Error>) {
        match packed {
            Ok(blocks) => (blocks, None),
            Err(error) => {
                let (bytes, failed) = self.seal(Err(error));
                (vec![bytes; self.size() as usize], failed)
            }
        }
    }

    /// Unpacks all blocks that can be unpacked. Returns the first error.
    fn unpack_blocks(
        &self,
        room: Destination<'_>,
        ranges: Option<&[Range<i64>]>,
        blocks: &[Vec<u8>],
    ) -> Result<()> {
        Scope::with(|scope| {
            let all = room.what.resolve(self.process(), scope.lend_mut(room.loan))?;
            all.check_disjoint()?;
            let places = self.blocks(all.count, ranges)?;
            let unpack = |(place, bytes): (&Range<u64>, &Vec<u8>)| {
                self.unpack_from(&all, place.start, place.end - place.start, bytes)
            };
            let outcomes: Vec<_> = places.iter().zip(blocks).map(unpack).collect();
            outcomes.into_iter().collect()
        })
    }

    /// Each rank's range of `count` elements: its element of `ranges`, or one of equal blocks.
    fn blocks(&self, count: u64, ranges: Option<&[Range<i64>]>) -> Result<Vec<Range<u64>>> {
        let size = self.size() as u64;
        let Some(ranges) = ranges else {
            let block = count / size;
            return match count % size {
                0 => Ok((0..size).map(|rank| rank * block..(rank + 1) * block).collect()),
                _ => Err(ErrorKind::Blocks { count, size }.into()),
            };
        };
        let wrong = |what: String| Error::from(ErrorKind::Ranges(what));
        if ranges.len() as u64 != size {
            return Err(wrong(format!("{} ranges for {size} ranks", ranges.len())));
        }
        let inside = |(rank, range): (usize, &Range<i64>)| {
            let ends = (u64::try_from(range.start), u64::try_from(range.end));
            match ends {
                (Ok(start), Ok(end)) if start <= end && end <= count => Ok(start..end),
                _ => Err(wrong(format!("{range:?} for rank {rank}, of {count} elements"))),
            }
        };
        ranges.iter().enumerate().map(inside).collect()
    }

    /// Packs `count` elements from `first` on, after the header.
    fn pack_part(&self, all: &Elementwise, first: u64, count: u64) -> Result<Vec<u8>> {
        let (committed, representation) = (all.datatype.committed(), self.packed_representation());
        let size = committed.pack_size(count, representation)?;
        let mut bytes = vec![0; HEAD + size as usize];
        bytes[1..HEAD].copy_from_slice(&all.signature(count)?.to_le_bytes());
        let from = all.part(first)?;
        from.pack_to(committed, count, &mut bytes[HEAD..], &mut 0, representation)
            .map_err(conversion)?;
        Ok(bytes)
    }

    fn unpack_from(&self, all: &Elementwise, first: u64, count: u64, bytes: &[u8]) -> Result<()> {
        let (found, data) = open(bytes)?;
        if found != all.signature(count)? {
            let datatype = &*all.datatype;
            return Err(ErrorKind::Signature {
                origin: format!("{} bytes of other types or another count", data.len()),
                target: Items { count, form: datatype.form(), text: datatype }.to_string(),
                remedy: MATCH.to_owned(),
            }
            .into());
        }
        let to = all.part(first)?;
        to.unpack_from(all.datatype.committed(), count, data, &mut 0, self.packed_representation())
            .map_err(conversion)
    }

    /// The message of an outcome, and this rank's error if it is one.
    fn seal(&self, packed: Result<Vec<u8>>) -> (Vec<u8>, Option<Error>) {
        match packed {
            Ok(bytes) => (bytes, None),
            Err(error) => {
                let (class, text) = told(&error);
                let mut bytes = vec![1];
                bytes.extend(self.process().me().rank.to_le_bytes());
                bytes.push(class);
                bytes.extend(text.into_bytes());
                (bytes, Some(error))
            }
        }
    }
}

/// The signature hash and data of another rank's message, or its error.
fn open(bytes: &[u8]) -> Result<(u128, &[u8])> {
    let malformed = || ErrorKind::Collective;
    match bytes.split_first() {
        Some((0, rest)) => {
            let (signature, data) = rest.split_first_chunk().ok_or_else(malformed)?;
            Ok((u128::from_le_bytes(*signature), data))
        }
        Some((1, _)) if bytes.len() >= FAILED => {
            let by = u32::from_le_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]);
            let text = String::from_utf8_lossy(&bytes[FAILED..]).into_owned();
            Err(ErrorKind::elsewhere(by, bytes[5], text).into())
        }
        _ => Err(malformed().into()),
    }
}
