//! Reductions and scans with requests.

use std::future::Future;
use std::ops::Range;

use super::super::Communicator;
use super::super::calls::{Call, Ongoing};
use super::super::message::Side;
use super::super::operator::{Operator, SharedOperator};
use super::{Collective, Shared, side};
use crate::error::Result;
use crate::given::Given;
use crate::memory::Memory;

impl Communicator {
    /// Starts to combine the elements of all ranks, with the result at `root`. See
    /// [`reduce`](Communicator::reduce).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// use longshore::Op;
    ///
    /// let me = rank.world().rank();
    /// let (_, greatest) = rank.world().ireduce(vec![me], vec![0], Op::Max, 0)?.wait()?;
    /// assert!(me != 0 || greatest == [rank.world().size() - 1]);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`reduce`](Communicator::reduce), when the call is waited for.
    #[track_caller]
    #[doc(alias = "MPI_Ireduce")]
    pub fn ireduce<M: Memory, N: Memory>(
        &self,
        data: impl Into<Given<M>>,
        room: impl Into<Given<N>>,
        op: impl Into<SharedOperator>,
        root: i32,
    ) -> Result<Collective<(M, N)>> {
        let op = op.into();
        let call = const { Call::new("reduce") }.by(op.get().predefined()).with_root(root);
        let both = (data.into(), room.into());
        self.start_reduction(
            ("ireduce", call),
            both,
            op,
            move |own, at, (data, room, op)| own.short_reduce(at, data, room, op, Some(root)),
            async move |own, at, (data, room, op)| {
                own.reduce_steps(at, side(&data), side(&room), op.get(), root).await
            },
        )
    }

    /// Starts to combine the elements of all ranks, with the result at every rank. See
    /// [`allreduce`](Communicator::allreduce).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// use longshore::Op;
    ///
    /// let (_, sum) = rank.world().iallreduce(vec![1.5], vec![0.0], Op::Sum)?.wait()?;
    /// assert_eq!(sum, [1.5 * f64::from(rank.world().size())]);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`allreduce`](Communicator::allreduce), when the call is waited for.
    #[track_caller]
    #[doc(alias = "MPI_Iallreduce")]
    pub fn iallreduce<M: Memory, N: Memory>(
        &self,
        data: impl Into<Given<M>>,
        room: impl Into<Given<N>>,
        op: impl Into<SharedOperator>,
    ) -> Result<Collective<(M, N)>> {
        let op = op.into();
        let call = const { Call::new("allreduce") }.by(op.get().predefined());
        let both = (data.into(), room.into());
        self.start_reduction(
            ("iallreduce", call),
            both,
            op,
            move |own, at, (data, room, op)| own.short_reduce(at, data, room, op, None),
            async move |own, at, (data, room, op)| {
                own.allreduce_steps(at, side(&data), side(&room), op.get()).await
            },
        )
    }

    /// Starts to combine the elements of this rank and all lower ranks. See
    /// [`scan`](Communicator::scan).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// use longshore::Op;
    ///
    /// let (_, up_to) = rank.world().iscan(vec![1], vec![0], Op::Sum)?.wait()?;
    /// assert_eq!(up_to, [rank.world().rank() + 1]);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`scan`](Communicator::scan), when the call is waited for.
    #[track_caller]
    #[doc(alias = "MPI_Iscan")]
    pub fn iscan<M: Memory, N: Memory>(
        &self,
        data: impl Into<Given<M>>,
        room: impl Into<Given<N>>,
        op: impl Into<SharedOperator>,
    ) -> Result<Collective<(M, N)>> {
        let call = ("iscan", const { Call::new("scan") });
        self.start_scan(call, (data.into(), room.into()), op.into(), true)
    }

    /// Starts to combine the elements of all lower ranks. See
    /// [`exscan`](Communicator::exscan).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// use longshore::Op;
    ///
    /// let (_, before) = rank.world().iexscan(vec![1], vec![0], Op::Sum)?.wait()?;
    /// assert_eq!(before, [rank.world().rank()]);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`exscan`](Communicator::exscan), when the call is waited for.
    #[track_caller]
    #[doc(alias = "MPI_Iexscan")]
    pub fn iexscan<M: Memory, N: Memory>(
        &self,
        data: impl Into<Given<M>>,
        room: impl Into<Given<N>>,
        op: impl Into<SharedOperator>,
    ) -> Result<Collective<(M, N)>> {
        let call = ("iexscan", const { Call::new("exscan") });
        self.start_scan(call, (data.into(), room.into()), op.into(), false)
    }

    /// Starts to combine the elements of all ranks, with a block of the result at each. See
    /// [`reduce_scatter_block`](Communicator::reduce_scatter_block).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// use longshore::Op;
    ///
    /// let (me, size) = (rank.world().rank(), rank.world().size());
    /// let data = Vec::from_iter(0..size);
    /// let blocks = rank.world().ireduce_scatter_block(data, vec![-1], Op::Sum)?;
    /// assert_eq!(blocks.wait()?.1, [me * size]);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`reduce_scatter_block`](Communicator::reduce_scatter_block), when the call is
    /// waited for.
    #[track_caller]
    #[doc(alias = "MPI_Ireduce_scatter_block")]
    pub fn ireduce_scatter_block<M: Memory, N: Memory>(
        &self,
        data: impl Into<Given<M>>,
        room: impl Into<Given<N>>,
        op: impl Into<SharedOperator>,
    ) -> Result<Collective<(M, N)>> {
        let op = op.into();
        let call = const { Call::new("reduce_scatter_block") }.by(op.get().predefined());
        let both = (data.into(), room.into());
        self.start_reduction(
            ("ireduce_scatter_block", call),
            both,
            op,
            move |own, at, (data, room, op)| own.short_reduce_scatter(at, data, room, op),
            async move |own, at, (data, room, op)| {
                own.reduce_scatter_steps(at, side(&data), side(&room), None, op.get()).await
            },
        )
    }

    /// Starts to combine the elements of all ranks, with a range of the result at each. See
    /// [`reduce_scatter`](Communicator::reduce_scatter).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// use longshore::Op;
    ///
    /// let (me, size) = (rank.world().rank(), rank.world().size());
    /// let ranges: Vec<_> = (0..i64::from(size)).map(|rank| rank..rank + 1).collect();
    /// let data = Vec::from_iter(0..size);
    /// let parts = rank.world().ireduce_scatter(data, vec![-1], &ranges, Op::Max)?;
    /// assert_eq!(parts.wait()?.1, [me]);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`reduce_scatter`](Communicator::reduce_scatter), when the call is waited for.
    #[track_caller]
    #[doc(alias = "MPI_Ireduce_scatter")]
    pub fn ireduce_scatter<M: Memory, N: Memory>(
        &self,
        data: impl Into<Given<M>>,
        room: impl Into<Given<N>>,
        ranges: &[Range<i64>],
        op: impl Into<SharedOperator>,
    ) -> Result<Collective<(M, N)>> {
        let (op, ranges) = (op.into(), ranges.to_vec());
        let call = const { Call::new("reduce_scatter") }.by(op.get().predefined());
        let both = (data.into(), room.into());
        self.start_reduction(
            ("ireduce_scatter", call),
            both,
            op,
            |_, _, _| None,
            async move |own, at, (data, room, op)| {
                own.reduce_scatter_steps(at, side(&data), side(&room), Some(&ranges), op.get())
                    .await
            },
        )
    }

    /// Starts a scan, which is `inclusive` or not.
    #[track_caller]
    fn start_scan<M: Memory, N: Memory>(
        &self,
        (name, call): (&'static str, Call),
        both: (Given<M>, Given<N>),
        op: SharedOperator,
        inclusive: bool,
    ) -> Result<Collective<(M, N)>> {
        let call = call.by(op.get().predefined());
        self.start_reduction(
            (name, call),
            both,
            op,
            move |own, at, (data, room, op)| own.short_scan(at, data, room, op, inclusive),
            async move |own, at, (data, room, op)| {
                own.scan_steps(at, side(&data), side(&room), op.get(), inclusive).await
            },
        )
    }

    /// Starts a reduction with the data and the room of this rank, as
    /// [`start_both`](Communicator::start_both) does.
    #[track_caller]
    fn start_reduction<M, N, F>(
        &self,
        name_and_call: (&'static str, Call),
        both: (Given<M>, Given<N>),
        op: SharedOperator,
        short: impl Fn(&Communicator, Ongoing, (Side<'_>, Side<'_>, Operator<'_>)) -> Option<Result<()>>
        + Send
        + Sync
        + 'static,
        general: impl FnOnce(Communicator, Ongoing, (Shared, Shared, SharedOperator)) -> F
        + Send
        + 'static,
    ) -> Result<Collective<(M, N)>>
    where
        M: Memory,
        N: Memory,
        F: Future<Output = Result<()>> + Send + 'static,
    {
        let by = op.clone();
        self.start_both(
            name_and_call,
            both,
            move |own, at, data, room| short(own, at, (data, room, by.get())),
            |own, at, data, room| general(own, at, (data, room, op)),
        )
    }
}
