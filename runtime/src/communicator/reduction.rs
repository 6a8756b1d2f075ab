//! Collective calls that combine data: reductions and scans (MPI-5.0 sections 6.9 and 6.11).
//!
//! The operands are combined in the representation in which they travel, which holds every value of
//! any rank.
//!
//! The data may be [`IN_PLACE`](crate::IN_PLACE): at all ranks, or only at the root of a reduction.
//!
//! Left out: reduce_scatter, nonblocking calls, user-defined operations.

use shipable::reduce::{Op, Reduction};
use shipable::{View, ViewMut};

use super::Communicator;
use super::calls::Call;
use super::message::{HEAD, open};
use crate::error::{Error, ErrorKind, Result, excerpt};
use crate::job::Activity;
use crate::memory::Scope;
use crate::origin::{Destination, IN_PLACE, Origin, What};
use crate::sequence::MATCH;

impl Communicator {
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
        let call = Call::new("reduce").by(op).with_root(root);
        let sample = self.sample_operands(&data, &mut room);
        self.collective(call, sample, Activity::Reduce, || {
            let root = self.root(root)?;
            let mut nowhere = IN_PLACE.into();
            let own = if self.rank() == root as i32 { &mut room } else { &mut nowhere };
            // Rank 0 combines, whichever rank is the root. The order of ranks decides the bits of a
            // sum of floats.
            let (total, failed) = self.total(data, own, op)?;
            let total = self.participants().pass(0, root, total)?;
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
        let sample = self.sample_operands(&data, &mut room);
        self.collective(Call::new("allreduce").by(op), sample, Activity::Reduce, || {
            let (total, failed) = self.total(data, &mut room, op)?;
            let total = self.participants().broadcast(total)?;
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
        let sample = self.sample_operands(&data, &mut room);
        self.collective(Call::new(call).by(op), sample, Activity::Scan, || {
            let (reduction, mine, failed) = self.operands(data, &mut room, op);
            let mut before: Option<Vec<u8>> = None;
            let mut whole = mine.clone();
            self.participants().scan(mine, |heard, held| {
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
        let total = self.participants().fold(mine, combine)?;
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
            let mut operands = ViewMut::new(&mut low[HEAD..]);
            let combined = reduction.combine(View::new(&high[HEAD..]), &mut operands, elements);
            if let Err(error) = combined {
                return Ok(self.seal(Err(error.into())).0);
            }
        }
        Ok(low)
    }
}
